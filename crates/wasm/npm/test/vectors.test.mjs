// Holds the module to vectors/codes.json, which an independent implementation has written.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { Codec, ParitasError, describe, families, plan, readSchedule, survey } from "../paritas.js";

const vectors = process.env.PARITAS_VECTORS ?? new URL("../../../../vectors/", import.meta.url).pathname;
const { cases } = JSON.parse(await readFile(`${vectors}/codes.json`));

const hex = (bytes) => Buffer.from(bytes).toString("hex");

/** The data of the vectors: byte i of shard j is 73 (i + 1) (j + 1) mod 251. */
function dataOf({ k, rows, packet, stripes, tail = 0 }) {
  const bytes = rows * (stripes * packet + tail);
  return Array.from({ length: k }, (_, j) => Uint8Array.from({ length: bytes }, (_, i) => (73 * (i + 1) * (j + 1)) % 251));
}

const simple = cases.filter((one) => one.default_pin && !one.data_rows && one.parity);

test("there are cases", () => assert.ok(simple.length > 10, `${simple.length}`));

for (const one of simple) {
  test(`${one.spec}, packets of ${one.packet}`, () => {
    const codec = new Codec(one.spec, { packet: one.packet });
    const data = dataOf(one);
    const parity = codec.encode(data);
    assert.deepEqual(parity.map(hex), one.parity);
    const whole = [...data, ...parity];
    assert.deepEqual(codec.verify(whole), []);
    for (const lost of one.lost) {
      const shards = whole.map((shard, node) => (lost.includes(node) ? null : shard));
      assert.deepEqual(codec.reconstruct(shards).map(hex), whole.map(hex), `${lost}`);
      assert.ok(plan(one.spec, { lost }).recovered, `${lost}`);
    }
    for (const lost of one.lost_too_many) {
      const shards = whole.map((shard, node) => (lost.includes(node) ? null : shard));
      assert.throws(() => codec.reconstruct(shards), { name: "ParitasError", kind: "NotEnough" }, `${lost}`);
    }
    codec.close();
  });
}

test("an object comes back from any shards that suffice", () => {
  for (const code of ["10+4", "isal-cauchy:k=10,m=4", "rdp:k=6", "backblaze:k=20,m=6"]) {
    const codec = new Codec(code);
    const object = Uint8Array.from({ length: 100_001 }, (_, i) => (i * i) % 253);
    const data = codec.split(object);
    const shards = [...data, ...codec.encode(data)];
    const lost = shards.map((shard, node) => (node < codec.tolerance ? null : shard));
    assert.deepEqual(codec.join(codec.reconstruct(lost), object.length), object, code);
    shards[codec.nodes - 1][7] ^= 1;
    assert.deepEqual(codec.verify(shards), [codec.nodes - 1], code);
    codec.close();
    assert.throws(() => codec.split(object), /closed/);
  }
});

test("nodes that hold data and parity are encoded in place", () => {
  const codec = new Codec("xcode:n=5");
  const shards = Array.from({ length: 5 }, (_, node) => new Uint8Array(5 * codec.packet).fill(node + 1));
  const whole = codec.encode(shards);
  assert.deepEqual(codec.verify(whole), []);
  assert.deepEqual(codec.reconstruct([null, null, ...whole.slice(2)]), whole);
});

test("a loss is told cell by cell", () => {
  const code = describe("rdp:k=4");
  assert.equal(code.spec, "rdp:k=4,p=5");
  assert.deepEqual([code.nodes, code.tolerance, code.cells.filter(({ role }) => role === "data").length], [6, 2, 16]);
  const one = plan("rdp:k=4", { lost: [0] });
  assert.deepEqual([one.plan.xors, one.plan.reads], [12, [0, 4, 4, 4, 4, 0]]);
  assert.deepEqual(readSchedule(one.plan.text).ops, one.plan.ops);
  const three = plan("rdp:k=4", { lost: [0, 1, 2] });
  assert.equal(three.recovered, false);
  assert.ok(three.cells.some(({ missing }) => missing.length > 0) && three.reason);
  assert.equal(survey("rdp:k=4", { lose: 2, most: 100 }).recovered, 15);
});

test("only bytes are shards", () => {
  const codec = new Codec("4+2");
  const bytes = new Uint8Array(codec.unit);
  const kinds = [new Uint16Array(codec.unit), bytes.buffer, [...bytes], new DataView(bytes.buffer), "a".repeat(codec.unit), 0, false];
  for (const wrong of kinds) {
    const refused = { name: "ParitasError", kind: "Request", message: /shard 1 must be a Uint8Array; got / };
    assert.throws(() => codec.encode([bytes, wrong, bytes, bytes]), refused);
    assert.throws(() => codec.reconstruct([bytes, wrong, bytes, bytes, null, null]), refused);
  }
  assert.throws(() => codec.split(bytes.buffer), /must be a Uint8Array; got ArrayBuffer/);
  assert.equal(codec.encode([bytes, Buffer.from(bytes), bytes, bytes]).length, 2);
  codec.close();
});

test("an array of another context is bytes, and a packet is a number", async () => {
  const { runInNewContext } = await import("node:vm");
  const codec = new Codec("4+2");
  const bytes = new Uint8Array(codec.unit);
  const other = runInNewContext(`new Uint8Array(${codec.unit})`);
  assert.equal(codec.encode([bytes, other, bytes, bytes]).length, 2);
  for (const packet of [NaN, Infinity, 1.5]) {
    assert.throws(() => new Codec("4+2", { packet }), { name: "ParitasError", message: /packet must be a whole number/ });
  }
  const shards = codec.split(bytes);
  assert.throws(() => codec.join(shards, "10"), { name: "ParitasError", message: /bytes must be .*; got string/ });
  assert.throws(() => survey("4+2", { lose: NaN, most: 10 }), { name: "ParitasError", message: /lose must be/ });
  assert.throws(() => plan("4+2", { stage: 0.5 }), { name: "ParitasError", message: /stage must be/ });
  assert.throws(() => plan("4+2", { losts: [0] }), { name: "ParitasError", message: /no option losts; there are lost, stage/ });
  assert.throws(() => plan("4+2", { do: "survey" }), { name: "ParitasError", message: /no option do/ });
  assert.ok(plan("4+2", null).recovered && new Codec("4+2", null));
  assert.throws(() => codec.reconstruct(), { name: "ParitasError", message: /shards must be an array; got undefined/ });
});

test("codes of several stages are encoded whole or refused", () => {
  const codec = new Codec("bbdpg:k=6,m=2,m2=4");
  const data = codec.split(new Uint8Array(10_000).map((_, at) => at * 31));
  const all = codec.reconstruct([...data, ...codec.encode(data), null, null]);
  assert.deepEqual(codec.verify(all), []);
  const several = new Codec("dpg:k=6,m=2,m2=4,interleave=all");
  const shards = Array.from({ length: several.nodes }, () => new Uint8Array(several.unit));
  assert.throws(() => several.encode(shards), { name: "ParitasError", message: /rows of node .* to a later stage/ });
});

test("after memory ran out, codecs go on", () => {
  const codec = new Codec("4+2");
  const small = codec.split(new Uint8Array(1000));
  const large = new Codec("backblaze:k=6,m=2");
  assert.throws(() => large.split(new Uint8Array(1.6e9)), { name: "ParitasError", kind: "Memory" });
  assert.equal(codec.encode(small).length, 2);
  assert.equal(large.split(new Uint8Array(600)).length, 6);
  codec.close();
  large.close();
});

test("what is refused has the library's message", () => {
  assert.throws(() => describe("rdp:k=0"), (error) => error instanceof ParitasError && /k must be/.test(error.message));
  assert.throws(() => plan("4+2", { lost: [6] }), /numbered 0 to 5; got 6/);
  assert.throws(() => new Codec("4+2").encode([new Uint8Array(3)]), ParitasError);
  assert.ok(families().some(({ name }) => name === "rdp"));
});
