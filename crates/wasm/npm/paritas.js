// Paritas for JavaScript: the calls of paritas.d.ts, over the WebAssembly module beside this file.
//
// A request is a JSON object, followed by the bytes of shards; so is an answer (crates/wasm/src/message.rs).

const url = new URL("./paritas.wasm", import.meta.url);

async function moduleBytes() {
  if (url.protocol !== "file:") {
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
    return response.arrayBuffer();
  }
  // A bundler for browsers must not look for Node's module.
  const files = "node:fs/promises";
  const { readFile } = await import(/* webpackIgnore: true */ /* @vite-ignore */ files);
  return readFile(url);
}

const compiled = await WebAssembly.compile(await moduleBytes());
let instance = new WebAssembly.Instance(compiled, {}).exports;
/** The number of the instance. Codecs note it, and not the instance, whose memory would be kept with them. */
let generation = 1;

/** Most bytes of one allocation of the module. */
const LARGEST = 2 ** 31 - 1;

/** Why a call was refused. */
export class ParitasError extends Error {
  constructor({ kind, message }) {
    super(message);
    this.name = "ParitasError";
    this.kind = kind;
  }
}

/** Refuses numbers that are not whole, by name: JSON would turn NaN into null, the default. */
function expectWhole(numbers) {
  for (const [name, value] of Object.entries(numbers)) {
    if (value === undefined || value === null || Number.isSafeInteger(value)) continue;
    const got = typeof value === "number" ? value : typeof value;
    throw new ParitasError({ kind: "Request", message: `${name} must be a whole number; got ${got}` });
  }
}

/** Shards as an array. */
function listOf(shards) {
  if (typeof shards?.[Symbol.iterator] === "function") return Array.from(shards);
  throw new ParitasError({ kind: "Request", message: `shards must be an array; got ${shards === null ? null : typeof shards}` });
}

/** Returns the options. Refuses those whose names are not among `known`. */
function optionsOf(options, known) {
  const unknown = Object.keys(options ?? {}).find((key) => !known.includes(key));
  if (unknown === undefined) return options ?? {};
  throw new ParitasError({ kind: "Request", message: `there is no option ${unknown}; there are ${known.join(", ")}` });
}

/** The number of bytes of a shard, or null if it is missing. Other arrays count in something else than bytes. */
function lengthOf(shard, node) {
  if (shard === null || shard === undefined) return null;
  // Not `instanceof`: an array of another frame or context has another constructor.
  if (ArrayBuffer.isView(shard) && shard[Symbol.toStringTag] === "Uint8Array") return shard.length;
  const kind = shard.constructor?.name ?? typeof shard;
  throw new ParitasError({ kind: "Request", message: `shard ${node} must be a Uint8Array; got ${kind}` });
}

/**
 * Calls the module. After an exception, be it for want of memory or of the caller's stack, it cannot go on; codecs are
 * opened again in a new one.
 */
function call(act, bytes) {
  try {
    return act() >>> 0;
  } catch (error) {
    instance = new WebAssembly.Instance(compiled, {}).exports;
    generation += 1;
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    throw new ParitasError({ kind: "Memory", message: `the module failed at ${bytes} bytes, probably for want of memory` });
  }
}

/** Asks the module, and returns its answer: a JSON object, with the shards that it has made. */
function ask(request, shards = []) {
  const lengths = shards.map(lengthOf);
  const text = new TextEncoder().encode(JSON.stringify({ ...request, shards: lengths }));
  const bytes = lengths.reduce((sum, length) => sum + (length ?? 0), 4 + text.length);
  const room = bytes > LARGEST ? 0 : call(() => instance.paritas_room(bytes), bytes);
  if (room === 0) throw new ParitasError({ kind: "Memory", message: `there is no memory for ${bytes} bytes` });
  const message = new Uint8Array(instance.memory.buffer, room, bytes);
  new DataView(instance.memory.buffer).setUint32(room, text.length, true);
  message.set(text, 4);
  let place = 4 + text.length;
  for (const shard of shards) {
    if (!shard) continue;
    message.set(shard, place);
    place += shard.length;
  }
  return read(call(() => instance.paritas_answer(), bytes));
}

function read(bytes) {
  const answer = new Uint8Array(instance.memory.buffer, instance.paritas_answer_start() >>> 0, bytes);
  let place = 4 + new DataView(answer.buffer, answer.byteOffset).getUint32(0, true);
  const json = JSON.parse(new TextDecoder().decode(answer.subarray(4, place)));
  if (json.error) throw new ParitasError(json.error);
  json.shards = json.shards.map((length) => {
    if (length === null) return null;
    place += length;
    return answer.slice(place - length, place);
  });
  return json;
}

function askOnly(request) {
  const { shards: _, ...answer } = ask(request);
  return answer;
}

const forgotten = new FinalizationRegistry((open) => {
  try {
    close(open);
  } catch {
    // A module that failed is gone, with its codecs.
  }
});

/** Closes a codec, unless the module that had it is gone. */
function close({ codec, home }) {
  if (home === generation) ask({ do: "close", codec });
}

/** Encodes and reconstructs the shards of one code, in memory. */
export class Codec {
  #open;

  constructor(code, options) {
    const { packet } = optionsOf(options, ["packet"]);
    expectWhole({ packet });
    const facts = askOnly({ do: "open", code, packet });
    this.#open = { codec: facts.codec, home: generation };
    this.code = facts.spec;
    for (const name of ["nodes", "dataNodes", "tolerance", "unit", "packet", "kernel"]) this[name] = facts[name];
    Object.freeze(this);
    forgotten.register(this, this.#open, this);
  }

  #ask(what, shards, more) {
    const open = this.#open;
    if (!open.home) throw new ParitasError({ kind: "Request", message: "the codec is closed" });
    if (open.home !== generation) {
      open.codec = askOnly({ do: "open", code: this.code, packet: this.packet }).codec;
      open.home = generation;
    }
    return ask({ do: what, codec: open.codec, ...more }, listOf(shards));
  }

  split(object) {
    return this.#ask("split", [object]).shards;
  }

  encode(shards) {
    return this.#ask("encode", shards).shards;
  }

  reconstruct(shards) {
    const all = listOf(shards);
    const made = this.#ask("reconstruct", all).shards;
    return all.map((shard, node) => shard ?? made[node]);
  }

  verify(shards) {
    return this.#ask("verify", shards).wrong;
  }

  join(shards, bytes) {
    expectWhole({ bytes });
    return this.#ask("join", shards, { bytes }).shards[0];
  }

  close() {
    forgotten.unregister(this);
    if (this.#open.home) close(this.#open);
    this.#open.home = null;
  }
}

/** Lists the families of codes. */
export function families() {
  return askOnly({ do: "families" }).families;
}

/** Describes a code, its nodes and its cells. */
export function describe(code) {
  return askOnly({ do: "code", code });
}

/** Says whether and how losses are recovered or, without losses, how a stage is encoded. */
export function plan(code, question) {
  const asked = optionsOf(question, ["lost", "stage", "dataOnly", "fewestReads"]);
  expectWhole({ stage: asked.stage });
  return askOnly({ ...asked, do: "plan", code });
}

/** Tries losses of a number of nodes, and says what they cost. */
export function survey(code, options) {
  const { lose, most } = optionsOf(options, ["lose", "most"]);
  expectWhole({ lose, most });
  return askOnly({ do: "survey", code, lose, most });
}

/** Reads and counts the text of a schedule. */
export function readSchedule(text) {
  return askOnly({ do: "schedule", text });
}
