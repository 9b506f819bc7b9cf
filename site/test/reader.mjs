// Uses the explorer as a reader does who types, waits and errs: reader.mjs SITE.
import assert from "node:assert/strict";
import { after, test } from "node:test";

import { close, faults, open, shown } from "./browser.mjs";

const TIMEOUT = { timeout: 60_000 };

after(close);

/** Opens the explorer at an address, calls `use`, and checks that no page failed meanwhile. */
function reader(title, address, use, { folder = "", width } = {}) {
  test(title, TIMEOUT, async () => {
    faults.length = 0;
    const page = await open(`${folder}explorer/index.html#${address}`, width);
    page.setDefaultTimeout(10_000);
    try {
      await use(page);
      assert.deepEqual(faults, []);
    } finally {
      await page.close();
    }
  });
}

const text = (page, id) => page.locator(`#${id}`).innerText();
const value = (page, id) => page.locator(`#${id}`).inputValue();
const goTo = (page, hash) => page.evaluate((hash) => void (location.hash = hash), hash);
const pressed = (page) => page.locator('#grid .node[aria-pressed="true"]').evaluateAll((nodes) => nodes.map((node) => Number(node.dataset.node)));
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.name || document.activeElement.dataset.node);
const names = (page, state) => page.locator(`#grid .cell.${state}`).evaluateAll((cells) => cells.map((cell) => cell.title));
const attention = { state: "visible" };

// The code.

reader("the family of K+M is the one that the library chooses", "code=32%2B32", async (page) => {
  await shown(page, "32+32", []);
  assert.equal(await value(page, "family"), "backblaze");
  assert.equal(await text(page, "full-name"), "Full name: backblaze:k=32,m=32");
  assert.match(await text(page, "facts"), /bits a word\s+8/);
  await page.locator('#parameters [name="k"]').fill("4");
  await shown(page, "4+32", []);
  assert.equal(await value(page, "family"), "cauchy");
  assert.match(await text(page, "facts"), /packets a node/);
});

reader("a code that is refused leaves the page as it is", "code=rdp:k=6&lost=1", async (page) => {
  await shown(page, "rdp:k=6", [1]);
  await page.locator("#spec").fill("rdp:k=0");
  await page.locator("#code-error").waitFor(attention);
  await page.locator('#grid [data-node="2"]').click();
  await shown(page, "rdp:k=6", [1, 2]);
});

reader("a code that is refused does not keep an answer from coming", "code=rdp:k=6&lost=", async (page) => {
  await shown(page, "rdp:k=6", []);
  await page.locator('#grid [data-node="2"]').click();
  await page.locator("#spec").fill("rdp:k=0");
  await page.locator("#code-error").waitFor(attention);
  await shown(page, "rdp:k=6", [2]);
}, { folder: "slow/" });

// The address.

for (const [bad, told] of [
  ["code=rdp:k=6&lost=0&stage=abc", /stage=abc/],
  ["code=rdp:k=6&lost=0&stage=2", /stage=2/],
  ["code=bbdpg:k=3,m=2,m2=3&lost=0&stage=-1", /stage=-1/],
  ["code=rdp:k=6&lost=0&stage=1.5", /stage=1\.5/],
  ["code=rdp:k=6&lost=0,x", /lost=x/],
  ["code=rdp:k=6&lost=0,99,-1,1.5,1e0", /lost=99.*lost=-1.*lost=1\.5.*lost=1e0/],
  ["code=rdp:k=6&lost=0&data=maybe", /data=maybe/],
]) {
  reader(`${bad} is followed but for one value`, bad, async (page) => {
    const code = bad.match(/code=([^&]*)/)[1];
    await shown(page, code, [0]);
    assert.match(await text(page, "address-error"), told);
    await page.locator('#grid [data-node="1"]').click();
    await shown(page, code, [0, 1]);
    assert.match(await text(page, "verdict"), /All is recovered/);
  });
}

reader("an address with a code that is refused shows another one, and tells why", "code=rdp:k=0&lost=1", async (page) => {
  await shown(page, "rdp:k=6", [0, 3]);
  assert.match(await text(page, "address-error"), /rdp:k=0.*k must be/);
});

reader("an address is judged by the code that it names", "code=rdp:k=6&lost=0", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  await goTo(page, "code=bbdpg:k=3,m=2,m2=3&lost=5&stage=2");
  await shown(page, "bbdpg:k=3,m=2,m2=3", [5]);
  assert.equal(await value(page, "stage"), "2");
  await goTo(page, "code=rdp:k=0&lost=1,2&stage=7&data=1");
  await page.locator("#code-error").waitFor(attention);
  await page.locator('#grid [data-node="4"]').click();
  await shown(page, "bbdpg:k=3,m=2,m2=3", [4, 5]);
  assert.match(await page.evaluate(() => location.hash), /^#code=bbdpg:k=3,m=2,m2=3&lost=4,5&stage=2&beside=/);
});

reader("a click while a code is described does not undo the choice", "code=rdp:k=6&lost=", async (page) => {
  await shown(page, "rdp:k=6", []);
  await page.locator("#spec").fill("evenodd:k=5");
  await page.locator("#verdict").getByText("being computed").waitFor();
  await page.locator('#grid [data-node="2"]').click();
  await shown(page, "evenodd:k=5", [2]);
  assert.equal(await value(page, "spec"), "evenodd:k=5");
}, { folder: "wide/" });

reader("Back leads to the code before", "code=rdp:k=6&lost=", async (page) => {
  await shown(page, "rdp:k=6", []);
  await page.locator('#grid [data-node="2"]').click();
  await shown(page, "rdp:k=6", [2]);
  await page.locator("#spec").fill("evenodd:k=5");
  await shown(page, "evenodd:k=5", [2]);
  await page.locator('#grid [data-node="2"]').click();
  await shown(page, "evenodd:k=5", []);
  await page.evaluate(() => history.back());
  await shown(page, "rdp:k=6", [2]);
  assert.equal(await value(page, "spec"), "rdp:k=6");
  await page.evaluate(() => history.forward());
  await shown(page, "evenodd:k=5", []);
});

reader("another code that is refused is told beside it", "code=rdp:k=6&lost=0&beside=nonsense", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  await page.locator("#other-error").waitFor(attention);
  assert.match(await text(page, "other-error"), /nonsense/);
});

// The question.

reader("without a plan the page goes on", "code=10%2B4&lost=0,1,2,3,4", async (page) => {
  await shown(page, "10+4", [0, 1, 2, 3, 4]);
  assert.equal(await page.locator("#steps-part").isVisible(), false);
  await page.locator('#grid [data-cell="0"]').hover();
  assert.match(await text(page, "cell-note"), /Not to be recovered/);
  await page.locator('#grid [data-node="4"]').click();
  await shown(page, "10+4", [0, 1, 2, 3]);
});

reader("while the library is at work the page can be used", "code=rdp:k=6&lost=0", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  await page.locator("#spec").fill("evenodd:k=5");
  await page.locator('#facts [data-figure="packets a node"] dd').getByText("4").waitFor();
  await page.locator("#grid [data-cell]").first().hover();
  await page.locator("#position").dispatchEvent("input");
  await page.locator("#steps").dispatchEvent("pointerleave");
  await page.locator('#grid [data-node="2"]').click();
  assert.deepEqual(await pressed(page), [0, 2]);
  await shown(page, "evenodd:k=5", [0, 2]);
}, { folder: "slow/" });

reader("nodes are lost after the stage that the menu shows", "code=dpg:k=4,m=1,m2=3", async (page) => {
  const code = "dpg:k=4,m=1,m2=3";
  await shown(page, code, []);
  assert.equal(await value(page, "stage"), "1");
  await page.locator("#random").click();
  await page.waitForFunction(() => document.querySelectorAll('#grid [aria-pressed="true"]').length > 0);
  const [node, ...others] = await pressed(page);
  assert.ok(node < 5 && others.length === 0, `nodes ${[node, ...others]}`);
  await shown(page, code, [node]);
  assert.equal(await value(page, "stage"), "1");
  await page.locator("#stage").selectOption("2");
  await page.locator("#random").click();
  await page.waitForFunction(() => document.querySelectorAll('#grid [aria-pressed="true"]').length === 3);
  assert.equal(await value(page, "stage"), "2");
  // A node that holds nothing after a stage cannot be lost then.
  await goTo(page, `code=${code}&lost=1,6&stage=2`);
  await shown(page, code, [1, 6]);
  await page.locator("#stage").selectOption("1");
  await shown(page, code, [1]);
  await page.locator('#grid [data-node="6"]').click({ force: true });
  await goTo(page, `code=${code}&lost=2,6&stage=1`);
  await shown(page, code, [2]);
  assert.match(await text(page, "address-error"), /lost=6 \(it holds nothing after stage 1\)/);
});

reader("a shard's length that is no number is no size", "code=rdp:k=6&lost=0", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  for (const length of ["", "-5", "many"]) {
    await page.locator("#shard-bytes").fill(length);
    assert.equal(await page.locator('#costs [data-figure="bytes read"] dd').innerText(), "?");
  }
  await page.locator("#shard-bytes").fill("6144");
  assert.equal(await page.locator('#costs [data-figure="bytes read"] dd').innerText(), "36 KiB");
});

// The keyboard.

reader("a parameter that is typed keeps the focus and the cursor", "code=cauchy:k=5,m=2&lost=", async (page) => {
  await shown(page, "cauchy:k=5,m=2", []);
  const input = page.locator('#parameters [name="k"]');
  await input.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Backspace");
  await page.keyboard.type("1");
  await shown(page, "cauchy:k=1,m=2", []);
  await page.keyboard.type("2");
  await shown(page, "cauchy:k=12,m=2", []);
  assert.equal(await focused(page), "k");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "m");
  await page.keyboard.type("3");
  await page.keyboard.press("Tab");
  await shown(page, "cauchy:k=12,m=3", []);
  assert.equal(await focused(page), "spec", "the focus is where the reader moved it meanwhile");
});

reader("a node keeps the focus when the window gets another width", "code=rdp:k=6&lost=0", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  await page.locator('#grid [data-node="3"]').focus();
  await page.setViewportSize({ width: 700, height: 900 });
  await page.waitForTimeout(400);
  assert.equal(await focused(page), "3");
  assert.deepEqual(await pressed(page), [0]);
  assert.equal((await names(page, "recovered")).length, 6);
});

reader("arrow keys move among the nodes, which are one stop", "code=rdp:k=6&lost=0", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  await page.locator("#grid").focus();
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "0");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await shown(page, "rdp:k=6", [0, 1]);
  assert.equal(await focused(page), "1");
  await page.keyboard.press("End");
  assert.equal(await focused(page), "7");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "data-only");
});

// The steps.

reader("the last step is shown as the others are", "code=rdp:k=6&lost=0", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  await page.locator("#first").click();
  const count = await page.locator("#steps li").count();
  for (let step = 1; step <= count; step++) {
    await page.locator("#next").click();
    const [target, sum] = (await page.locator('#steps [aria-current="step"] span').nth(1).innerText()).split(" = ");
    assert.deepEqual(await names(page, "target"), [target]);
    assert.deepEqual((await names(page, "source")).sort(), sum.split(" ⊕ ").sort());
    assert.equal((await names(page, "recovered")).length, step);
  }
});

reader("a long schedule is listed in pages, and every step can be reached", "code=32%2B32&lost=", async (page) => {
  await shown(page, "32+32", []);
  const count = Number(await page.locator("#position").getAttribute("max"));
  assert.ok(count > 3000, `${count} steps`);
  assert.ok((await page.locator("#steps li").count()) < 1000);
  assert.equal(await page.locator('#steps [aria-current="step"] span').first().innerText(), count.toLocaleString("en"));
  assert.match(await page.locator("#steps li").first().innerText(), /Steps 1 to 3,500 are not listed here/);
  await page.locator("#first").click();
  assert.match(await page.locator("#steps li").last().innerText(), /Steps 501 to .* are not listed here/);
  await page.locator("#steps .more button").focus();
  await page.keyboard.press("Enter");
  assert.match(await text(page, "counter"), /^501 of/);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.step), "501");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-current")), "step");
  assert.match(await text(page, "counter"), /^500 of/);
  await page.keyboard.press("End");
  assert.ok((await text(page, "counter")).startsWith(count.toLocaleString("en")));
  assert.match(await text(page, "temps-note"), /more temporaries are not drawn/);
  const slowest = await page.evaluate(() => {
    const times = [3400, 10, 1700, 1701, 3000].map((step) => {
      const start = performance.now();
      document.getElementById("position").value = step;
      document.getElementById("position").dispatchEvent(new Event("input"));
      document.body.getBoundingClientRect();
      return performance.now() - start;
    });
    return Math.max(...times);
  });
  assert.ok(slowest < 500, `a move takes ${slowest} ms`);
});

reader("a step brings the cell that it makes into view", "code=32%2B32&lost=", async (page) => {
  await shown(page, "32+32", []);
  const count = Number(await page.locator("#position").getAttribute("max"));
  const pageTop = await page.evaluate(() => scrollY);
  for (const step of [1, count >> 1, count - 1, 20, count]) {
    await page.evaluate((step) => {
      document.getElementById("position").value = step;
      document.getElementById("position").dispatchEvent(new Event("input"));
    }, step);
    const outside = await page.evaluate(() => {
      const view = document.getElementById("grid-scroll").getBoundingClientRect();
      return [...document.querySelectorAll("#grid .cell.target")].filter((cell) => {
        const { left, right } = cell.getBoundingClientRect();
        return left < view.left - 1 || right > view.right + 1;
      }).length;
    });
    assert.equal(outside, 0, `step ${step}`);
  }
  assert.equal(await page.evaluate(() => scrollY), pageTop);
});

reader("the text of a very long schedule is cut, and the page tells it", "code=leopard8:k=128,m=128&lost=", async (page) => {
  await shown(page, "leopard8:k=128,m=128", []);
  await page.locator("details").click();
  assert.match(await text(page, "schedule-note"), /^[\d,]+ more lines are not shown/);
  const lines = (await page.locator("#schedule").textContent()).trimEnd().split("\n").length;
  const steps = Number(await page.locator("#position").getAttribute("max"));
  assert.equal(lines - 1 + Number((await text(page, "schedule-note")).match(/^[\d,]+/)[0].replaceAll(",", "")), steps);
});

// The picture.

/** Returns the titles of stripes or lanes, and the rows of names below each. */
const picture = (page) => page.locator("#grid").evaluate((grid) => {
  const rows = new Map();
  for (const element of grid.querySelectorAll(".cell, .lane")) {
    const row = Number(element.style.gridRow.split(" ")[0]);
    if (element.className === "lane") rows.set(row, element.textContent);
    else rows.set(row, [...(rows.get(row) ?? []), element]);
  }
  const inOrder = [...rows].sort(([a], [b]) => a - b).map(([, row]) => row);
  return inOrder.map((row) => (typeof row === "string" ? row : row.sort((a, b) => a.offsetLeft - b.offsetLeft).map(({ title }) => title).join(" ")));
});

reader("cells stand in the column of their node and the line of their row", "code=xcode:n=5&lost=", async (page) => {
  await shown(page, "xcode:n=5", []);
  const row = (letter, line) => [0, 1, 2, 3, 4].map((node) => `${letter}${node}.${line}`).join(" ");
  assert.deepEqual(await picture(page), [row("d", 0), row("d", 1), row("d", 2), row("p", 3), row("p", 4)]);
  const columns = await page.locator("#grid").evaluate((grid) => [...grid.querySelectorAll(".cell")].every((cell) => cell.offsetLeft === grid.querySelector(`[data-node="${cell.title[1]}"]`).offsetLeft));
  assert.ok(columns, "cells are not below their nodes");
});

reader("a code of one cell a node is one line", "code=1%2B1&lost=0", async (page) => {
  await shown(page, "1+1", [0]);
  assert.deepEqual(await picture(page), ["d0.0 p1.0"]);
  assert.deepEqual(await names(page, "recovered"), ["d0.0"]);
});

reader("stripes of delayed parity are named where lanes are stripes", "code=bbdpg:k=3,m=2,m2=3&lost=", async (page) => {
  const titles = async () => (await picture(page)).filter((line) => /^[a-z]+ \d$/.test(line));
  await shown(page, "bbdpg:k=3,m=2,m2=3", []);
  assert.deepEqual(await titles(), ["stripe 1", "stripe 2", "stripe 3"]);
  await page.locator("#first").click();
  assert.equal((await names(page, "later")).length, 27, "no parity is made yet");
  await page.locator("#last").click();
  assert.deepEqual((await names(page, "later")).filter((cell) => !cell.startsWith("p5.")), []);
  assert.equal((await names(page, "later")).length, 9);
  await page.locator("#stage").selectOption("2");
  await page.locator("#verdict").getByText("Stage 2 adds 9 cells").waitFor();
  await page.locator("#first").click();
  assert.equal((await names(page, "later")).length, 9);
  await page.locator("#last").click();
  assert.equal((await names(page, "later")).length, 0);
  // With this interleaving a node keeps its cells of stage two behind those of the stripes that follow.
  await goTo(page, "code=dpg:k=4,m=1,m2=3,interleave=all&lost=");
  await shown(page, "dpg:k=4,m=1,m2=3,interleave=all", []);
  assert.deepEqual(await titles(), ["lane 1", "lane 2", "lane 3"]);
});

reader("a sum names cells that are drawn, not those that only help", "code=evenodd:k=3&lost=", async (page) => {
  await shown(page, "evenodd:k=3", []);
  await page.locator('#grid [title="p4.0"]').hover();
  const note = await text(page, "cell-note");
  assert.doesNotMatch(note, /aux/);
  assert.match(note, /^p4\.0, parity on node 4: .*\(.*⊕.*\)/);
  const named = new Set(note.match(/d\d\.\d/g));
  assert.deepEqual(new Set(await names(page, "source")), named);
});

reader("lines of an LT code lie between blocks and data", "code=lt:k=24,n=40,nodes=8&lost=", async (page) => {
  await shown(page, "lt:k=24,n=40,nodes=8", []);
  const edges = await page.locator("#grid").evaluate((grid) => {
    const { offsetTop: top, offsetHeight } = grid.querySelector(".between");
    return [...grid.querySelectorAll("line")].map((line) => [Number(line.getAttribute("y1")) >= top, Number(line.getAttribute("y2")) <= top + offsetHeight]);
  });
  assert.ok(edges.length > 24 && edges.flat().every(Boolean), JSON.stringify(edges.slice(0, 3)));
  await page.locator('#grid [title="p0.1"]').hover();
  assert.equal(await page.locator("#grid line.used").count(), (await names(page, "source")).length);
  assert.ok((await names(page, "source")).length > 0);
  // Too many lines are not drawn, and the page tells it; nor are those of the code before.
  await goTo(page, "code=lt:k=64,n=128&lost=");
  await shown(page, "lt:k=64,n=128", []);
  assert.equal(await page.locator("#grid line").count(), 0);
  assert.match(await page.locator("#grid .lane").innerText(), /lines are too many to be drawn/);
});

reader("a code of too many cells is drawn by its nodes", "code=evenodd:k=100&lost=", async (page) => {
  await shown(page, "evenodd:k=100", []);
  assert.match(await page.locator("#grid .lane").innerText(), /[\d,]+ cells are too many to be drawn/);
  await page.locator('#grid [data-node="7"]').click();
  await shown(page, "evenodd:k=100", [7]);
  await goTo(page, "code=lt:k=40000,n=140000,nodes=2000&lost=1999");
  await shown(page, "lt:k=40000,n=140000,nodes=2000", [1999]);
  assert.match(await page.locator("#grid .lane").innerText(), /2,000 nodes are too many to be drawn/);
});

reader("names of cells are written where they fit, and nodes are wide enough for a finger", "code=32%2B32&lost=", async (page) => {
  for (const code of ["32+32", "10+4", "100+28"]) {
    await goTo(page, `code=${code}&lost=`);
    await shown(page, code, []);
    const cut = await page.locator("#grid .cell, #grid .node").evaluateAll((cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent));
    assert.deepEqual(cut, [], code);
    assert.ok((await page.locator("#grid .node").first().evaluate((node) => node.offsetWidth)) >= 24);
  }
}, { width: 400 });

reader("a finger loses nodes, describes cells and chooses steps", "code=rdp:k=6&lost=", async (page) => {
  await shown(page, "rdp:k=6", []);
  await page.locator('#grid [data-node="1"]').tap();
  await shown(page, "rdp:k=6", [1]);
  await page.locator('#grid [title="p6.0"]').tap();
  assert.match(await text(page, "cell-note"), /^p6\.0, parity on node 6: d0\.0 ⊕ /);
  await page.locator("#steps button").first().tap();
  assert.equal(await text(page, "counter"), "1 of 6");
  assert.equal((await names(page, "recovered")).length, 1);
}, { width: 400 });

// The comparison.

reader("a comparison tells which losses it does not try", "code=100%2B28&lost=&beside=lt:k=16,n=32", async (page) => {
  await page.locator("#comparison-note").getByText("more than 60 losses").waitFor({ timeout: 50_000 });
  assert.match(await text(page, "comparison-note"), /Losses of lt:.* are not tried: which ones it survives/);
});

// A schedule of the reader's.

reader("a schedule is read while a plan is made", "code=rdp:k=6&lost=0", async (page) => {
  await shown(page, "rdp:k=6", [0]);
  await page.locator("#own").fill("inputs 2 temps 0 outputs 1\no0 = i0 ^ i1\n");
  await page.waitForTimeout(240);
  await page.locator('#grid [data-node="1"]').click();
  await page.locator("#own-count").getByText("1 operation: 1 XOR and 1 copy, 0 temporaries").waitFor();
}, { folder: "slow/" });
