// Drives the explorer in Chromium: explorer.mjs SITE COMMAND SHOTS. Its answers to random codes and losses must be
// those of the command `paritas schedule`, its pages must fit and pass axe, and nothing may come from another server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { promisify } from "node:util";

import axe from "axe-core";

import { close, faults, open, shown } from "./browser.mjs";

const [, command, shots] = process.argv.slice(2);
const CASES = 200;

// A generator of Park and Miller: the same cases in every run.
let seed = 2004;
const below = (count) => (seed = (seed * 48271) % 2147483647) % count;
const from = (low, high) => low + below(high - low + 1);
const one = (list) => list[below(list.length)];

function randomCode() {
  const k = from(1, 7);
  return one([
    () => `${from(1, 12)}+${from(1, 4)}`,
    () => `cauchy-good:k=${k},m=${from(1, 3)}`,
    () => `cauchy-orig:k=${k},m=${from(1, 3)}`,
    () => `rdp:k=${from(1, 10)}`,
    () => `evenodd:k=${from(1, 10)}`,
    () => `star:k=${k}`,
    () => `xcode:n=${one([5, 7, 11])}`,
    () => `liberation:k=${k}`,
    () => `blaum-roth:k=${k}`,
    () => `liber8tion:k=${k}`,
    () => `qfs:k=${k}`,
    () => `raid6:k=${k}`,
    () => `isal-cauchy:k=${k},m=${from(1, 3)}`,
    () => `backblaze:k=${k},m=${from(1, 3)}`,
    () => `dpg:k=${from(2, 4)},m=1,m2=${from(2, 3)}`,
    () => `bbdpg:k=${from(2, 4)},m=2,m2=${from(3, 4)}`,
    () => `matrix:k=2,m=2,w=1,rows=c.c`,
  ])();
}

async function schedule(code, lost, stage, fewest) {
  const args = ["schedule", code, "--text", "--json"];
  if (lost.length > 0) args.push("--erase", lost.join(","));
  if (code.includes("dpg:")) args.push("--stage", stage);
  if (fewest && lost.length > 0) args.push("--fewest-reads");
  try {
    return JSON.parse((await promisify(execFile)(command, args)).stdout);
  } catch (error) {
    return { refused: `${error.stderr}${error.stdout}` };
  }
}

async function compare(page, number) {
  const code = randomCode();
  const fewest = below(4) === 0;
  await page.evaluate((hash) => (location.hash = hash), `code=${code}&lost=${fewest ? "&fewest=1" : ""}`);
  await shown(page, code, []);
  const nodes = await page.locator("#grid .node:not(.absent)").count();
  const lost = [...new Set(Array.from({ length: below(5) }, () => below(nodes)))].sort((a, b) => a - b);
  for (const node of lost) await page.locator(`#grid [data-node="${node}"]`).click();
  await shown(page, code, lost);
  const stage = await page.locator("#stage").inputValue();
  const expected = await schedule(code, lost, stage, fewest);
  const what = `case ${number}: ${code} without ${lost} after stage ${stage}${fewest ? ", fewest reads" : ""}`;
  const verdict = await page.locator("#verdict").innerText();
  if (expected.refused) {
    const [reason] = verdict.split(/\.( \d|$)/);
    assert.ok(expected.refused.includes(reason.slice(0, 60)), `${what}: "${verdict}" is not of "${expected.refused}"`);
    return "refused";
  }
  assert.ok(/recovered|Nothing/.test(verdict), `${what}: ${verdict}`);
  const figure = async (name) => Number((await page.locator(`#costs [data-figure="${name}"] dd`).innerText()).replaceAll(",", ""));
  assert.equal(await figure("XORs"), expected.xors, `${what}: XORs`);
  assert.equal(await figure("steps"), expected.ops, `${what}: steps`);
  assert.equal(await figure("temporaries"), expected.temps, `${what}: temporaries`);
  if (lost.length > 0) {
    assert.equal(await figure("cells read"), expected.reads.reduce((a, b) => a + b, 0), `${what}: cells read`);
    assert.equal(await figure("from nodes"), expected.reads.filter(Boolean).length, `${what}: nodes read`);
    const recovered = await page.locator("#grid .recovered").count();
    assert.equal(recovered, Number(expected.text.match(/outputs (\d+)/)[1]), `${what}: cells drawn as recovered`);
  }
  assert.equal((await page.locator("#schedule").textContent()).trim(), expected.text.trim(), `${what}: schedule`);
  return "recovered";
}

// The answers.
const page = await open("explorer/index.html");
await shown(page, "rdp:k=6", [0, 3]);
const counts = { recovered: 0, refused: 0 };
for (let number = 0; number < CASES; number++) counts[await compare(page, number)]++;
assert.ok(counts.recovered > 100 && counts.refused > 20, JSON.stringify(counts));
console.log(`${CASES} codes and losses: ${counts.recovered} recovered and ${counts.refused} refused, as the command says`);

// A code that does not exist is refused in the library's words.
await page.locator("#spec").fill("rdp:k=0");
await page.locator("#code-error").waitFor({ state: "visible" });
assert.match(await page.locator("#code-error").innerText(), /k must be/);

// After a trap the library begins anew.
const trapped = await open("trap/explorer/index.html");
await shown(trapped, "rdp:k=6", [0, 3]);
await trapped.locator("#spec").fill("trap");
await trapped.getByText("unreachable executed").waitFor();
await trapped.locator("#spec").fill("rdp:k=5");
await shown(trapped, "rdp:k=5", [0, 3]);
await trapped.close();

// The keyboard alone: a cell, its node, a step.
await page.locator("#spec").fill("rdp:k=4");
await shown(page, "rdp:k=4", []).catch(async () => page.locator("#restore").click());
await page.locator("#restore").click();
await shown(page, "rdp:k=4", []);
await page.locator("#grid").focus();
await page.keyboard.press("ArrowRight");
await page.keyboard.press("ArrowRight");
assert.match(await page.locator("#cell-note").innerText(), /^d1\.0, data on node 1/);
await page.keyboard.press("Enter");
await shown(page, "rdp:k=4", [1]);
await page.locator("#first").focus();
await page.keyboard.press("Enter");
assert.equal(await page.locator("#grid .lost").count(), 4);
await page.locator("#next").focus();
await page.keyboard.press("Enter");
assert.equal(await page.locator("#grid .recovered.target").count(), 1);
assert.equal(await page.locator("#grid .source").count(), 4);
await page.close();

// A comparison ends with all figures.
const compared = await open("explorer/index.html#code=rdp:k=6&lost=0&beside=evenodd:k=6");
await compared.waitForFunction(() => document.querySelectorAll("#comparison td").length > 10 && ![...document.querySelectorAll("#comparison tbody td")].some((cell) => cell.textContent === "–"), null, { timeout: 60_000 });
assert.match(await compared.locator("#comparison").innerText(), /overhead\s+33\.3 %\s+33\.3 %/);
await compared.close();

// What it looks like.
await mkdir(shots, { recursive: true });
const views = [
  ["rdp", "rdp:k=6", [0, 3], ""],
  ["hopeless", "10+4", [0, 1, 2, 3, 4], ""],
  ["lt", "lt:k=16,n=32", [1, 4, 7], ""],
  ["dpg", "bbdpg:k=3,m=2,m2=3", [], "&stage=2"],
];
for (const [name, code, lost, more] of views) {
  for (const width of [360, 768, 1440]) {
    for (const scheme of ["light", "dark"]) {
      const view = await open(`explorer/index.html#code=${code}&lost=${lost}${more}`, width, scheme);
      await shown(view, code, lost);
      if (name !== "hopeless") await view.locator("#back").click();
      await view.screenshot({ path: `${shots}/${name}-${width}-${scheme}.png`, fullPage: true });
      await view.evaluate(axe.source);
      const { violations } = await view.evaluate(() => globalThis.axe.run());
      for (const { id, nodes } of violations) faults.push(`axe: ${name} ${width} ${scheme}: ${id}: ${nodes[0].html}`);
      const over = await view.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) faults.push(`${name} at ${width} is ${over} pixels too wide`);
      await view.close();
    }
  }
}

// The pages: search finds, and nothing comes from elsewhere.
const home = await open("index.html");
await home.keyboard.press("/");
await home.keyboard.type("peeling");
await home.locator(".md-search-result__item").first().waitFor({ timeout: 20_000 });
await home.locator('a[href="explorer/index.html"]').first().waitFor({ state: "attached" });
for (const path of ["index.html", "protect.html", "codes.html"]) {
  const phone = await open(path, 360, "dark");
  const over = await phone.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (over > 0) faults.push(`${path} on a phone is ${over} pixels too wide`);
  await phone.screenshot({ path: `${shots}/${path}-360.png` });
  await phone.close();
}

await close();
assert.deepEqual(faults, []);
console.log(`${views.length * 6} views of the explorer without findings of axe; pictures are in ${shots}`);
