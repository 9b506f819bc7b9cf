// The explorer: the state of the page, which its address holds, and what is shown of it.
import { Grid } from "./grid.js";
import { Dropped, Library } from "./library.js";

const element = (id) => document.getElementById(id);
/** More steps than this are not listed. */
const MOST_STEPS = 3000;
/** Losses of each kind that are tried for a comparison. */
const TRIED = 60;
/** A code with more cells is not compared by losses, which would take minutes. */
const MOST_COMPARED = 1200;

const state = { code: "rdp:k=6", lost: [0, 3], stage: null, dataOnly: false, fewestReads: false, beside: "cauchy:k=6,m=2" };
const library = new Library();
const surveys = new Library();
let families = [];
let code = null;
let answer = null;
let position = 0;

const grid = new Grid(element("grid"), { onNode: toggle, onCell: describeCell });

const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const nodesText = (nodes) => `${nodes.length === 1 ? "node" : "nodes"} ${nodes.join(", ")}`;
const name = (cell) => code.cells[cell].name;

// The address.

function readAddress() {
  // A plus is a part of codes such as 10+4, and no blank.
  const given = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
  if (given.has("code")) Object.assign(state, { code: given.get("code"), lost: [] });
  if (given.has("lost")) state.lost = [...new Set(given.get("lost").split(",").filter(Boolean).map(Number))];
  if (given.has("beside")) state.beside = given.get("beside");
  state.stage = given.has("stage") ? Number(given.get("stage")) : null;
  state.dataOnly = given.has("data");
  state.fewestReads = given.has("fewest");
}

function writeAddress() {
  const { code, lost, stage, dataOnly, fewestReads, beside } = state;
  const parts = [["code", code], ["lost", lost.join(",")], stage && ["stage", stage], dataOnly && ["data", "1"], fewestReads && ["fewest", "1"], ["beside", beside]];
  const text = new URLSearchParams(parts.filter(Boolean)).toString();
  history.replaceState(null, "", `#${text.replaceAll("%3A", ":").replaceAll("%3D", "=").replaceAll("%2C", ",").replaceAll("%2B", "+")}`);
}

// The code.

function specOf(family, parameters) {
  return `${family}:${parameters.map(([key, value]) => `${key}=${value}`).join(",")}`;
}

/** Returns the family and the parameters of a spec; those of `cauchy` for K+M. */
function partsOf(spec) {
  const short = spec.match(/^\s*(\d+)\+(\d+)\s*$/);
  if (short) return ["cauchy", [["k", short[1]], ["m", short[2]]]];
  const [family, rest = ""] = spec.split(/:(.*)/s);
  return [family, rest.split(",").filter(Boolean).map((part) => part.split(/=(.*)/s).slice(0, 2))];
}

async function chooseCode(spec, lost = []) {
  element("spec").value = spec;
  library.drop();
  try {
    const found = await library.ask("describe", spec);
    Object.assign(state, { code: spec, lost: lost.filter((node) => node < found.nodes) });
    code = found;
    // The last answer is about the cells of another code.
    answer = null;
    if (state.stage > code.stages.length) state.stage = null;
    refuse("code", null);
    showCode();
    await ask();
    compare();
  } catch (error) {
    if (!(error instanceof Dropped)) refuse("code", error.message);
  }
}

function refuse(what, message) {
  const line = element(`${what}-error`);
  line.hidden = message === null;
  line.textContent = message ?? "";
  element(what === "code" ? "spec" : "other").setAttribute("aria-invalid", message !== null);
}

function showCode() {
  const [family, parameters] = partsOf(state.code);
  element("family").value = family;
  const known = families.find((one) => one.name === family);
  element("family-note").textContent = known ? `${known.summary}. ${known.limits}` : "";
  const inputs = parameters.map(([key, value]) => {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { value, name: key, spellcheck: false });
    label.append(key, input);
    return label;
  });
  element("parameters").replaceChildren(...inputs);
  const data = code.dataNodes.length;
  figures("facts", [
    ["nodes", code.nodes],
    ["with data", data],
    ["may be lost", code.tolerance ?? "varies"],
    ["overhead", `${(100 * code.overhead).toFixed(1)} %`],
    [code.word ? "bits a word" : "packets a node", code.word ?? Math.max(...code.cells.map(({ row }) => (row ?? -1) + 1))],
    ["ones", code.ones.toLocaleString("en")],
    ...(code.fewestOnes ? [["fewest ones possible", code.fewestOnes.toLocaleString("en")]] : []),
  ]);
  const stages = element("stage");
  element("stage-option").hidden = code.stages.length === 1;
  element("later-key").hidden = code.stages.length === 1;
  stages.replaceChildren(...code.stages.map(({ tolerance }, at) => new Option(`${at + 1}: any ${tolerance} may be lost`, at + 1)));
  element("data-only").disabled = code.lt;
  grid.draw(code);
}

function figures(id, pairs) {
  const pair = ([term, value]) => {
    const div = document.createElement("div");
    div.append(Object.assign(document.createElement("dt"), { textContent: term }), Object.assign(document.createElement("dd"), { textContent: value }));
    div.dataset.figure = term;
    return div;
  };
  element(id).replaceChildren(...pairs.map(pair));
}

// The question and its answer.

function toggle(node) {
  const lost = new Set(state.lost);
  if (!lost.delete(node)) lost.add(node);
  state.lost = [...lost].sort((a, b) => a - b);
  ask();
}

/** The stage that is asked about: that of the menu, or the last one for losses and the first one for encoding. */
function stage() {
  return state.stage ?? (state.lost.length > 0 ? code.stages.length : 1);
}

/** Whether the data of an LT code is decoded. Its data lies on no node, so a loss is no question of its own. */
const decodes = () => code.lt && state.lost.length > 0;

async function ask() {
  writeAddress();
  element("stage").value = stage();
  element("data-only").checked = state.dataOnly || decodes();
  element("fewest-reads").checked = state.fewestReads;
  document.body.setAttribute("aria-busy", "true");
  library.drop();
  const { lost, fewestReads } = state;
  const dataOnly = decodes() || (state.dataOnly && lost.length > 0);
  try {
    answer = await library.ask("plan", state.code, { lost, stage: stage(), dataOnly, fewestReads });
  } catch (error) {
    if (error instanceof Dropped) return;
    answer = { recovered: false, reason: error.message, cells: [], plan: null };
  }
  position = answer.plan?.ops.length ?? 0;
  showAnswer();
  document.body.setAttribute("aria-busy", "false");
  document.body.dataset.shown = `${state.code} ${lost.join(",")}`;
}

function verdict() {
  const { lost } = state;
  const { recovered, reason, cells, plan } = answer;
  const hopeless = cells.filter(({ missing }) => missing.length > 0).length;
  if (!recovered) return `${reason}${plan ? `. ${plural(cells.length - hopeless, "cell")} of ${cells.length} can still be computed.` : "."}`;
  if (lost.length === 0 && stage() > 1) return `Nothing is lost. Stage ${stage()} adds ${plural(cells.length, "cell")} of parity, computed from a part of what is stored.`;
  if (lost.length === 0) return `Nothing is lost. These steps encode: ${plural(cells.length, "cell")} of parity from the data.`;
  if (cells.length === 0) return "Nothing that is wanted was lost.";
  return `All is recovered: ${plural(cells.length, "cell")} after the loss of ${nodesText(lost)}.`;
}

function showAnswer() {
  const { plan, recovered } = answer;
  element("verdict").textContent = verdict();
  element("verdict").className = recovered ? "" : "bad";
  element("steps-part").hidden = !plan?.ops.length;
  element("schedule").textContent = plan?.text ?? "";
  showCosts();
  showSteps();
  showPosition();
}

function showCosts() {
  const plan = answer?.plan;
  if (!plan) return figures("costs", []);
  const rows = Math.max(1, ...code.cells.map(({ row }) => (row ?? -1) + 1));
  const bytes = Number(element("shard-bytes").value) / rows;
  const size = (cells) => (Number.isFinite(bytes) ? sizeText(cells * bytes) : "?");
  const read = plan.inputs.length;
  figures("costs", [
    ["XORs", plan.xors.toLocaleString("en")],
    ["cells read", read.toLocaleString("en")],
    ["from nodes", plan.reads.filter((reads) => reads > 0).length],
    ["steps", plan.ops.length.toLocaleString("en")],
    ["temporaries", plan.temps],
    ["bytes read", size(read)],
    ["bytes XORed", size(plan.xors)],
  ]);
}

function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const unit = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** unit).toLocaleString("en", { maximumFractionDigits: unit ? 1 : 0 })} ${units[unit]}`;
}

// The steps.

/** Returns the cell that a slot of the plan is, or null for a temporary. LT codes compute data cells in temporaries. */
function cellOf(slot) {
  const number = Number(slot.slice(1));
  return slot[0] === "i" ? answer.plan.inputs[number] : slot[0] === "o" ? answer.plan.outputs[number] : null;
}

const slotText = (slot) => (cellOf(slot) === null ? slot : name(cellOf(slot)));

function stepText({ target, accumulate, factor, sources }) {
  const sum = sources.map(slotText).join(" ⊕ ") || "0";
  const product = factor === 1 ? sum : `${factor} · (${sum})`;
  return `${slotText(target)} ${accumulate ? "⊕=" : "="} ${product}`;
}

function showSteps() {
  const ops = answer.plan?.ops ?? [];
  const items = ops.slice(0, MOST_STEPS).map((op, at) => {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), { type: "button", tabIndex: at === ops.length - 1 ? 0 : -1 });
    const text = Object.assign(document.createElement("b"), { textContent: stepText(op) });
    text.style.fontWeight = "normal";
    button.append(Object.assign(document.createElement("span"), { textContent: at + 1 }), text);
    button.addEventListener("click", () => moveTo(at + 1));
    item.append(button);
    return item;
  });
  if (ops.length > MOST_STEPS) {
    items.push(Object.assign(document.createElement("li"), { textContent: `and ${plural(ops.length - MOST_STEPS, "step")} more` }));
  }
  element("steps").replaceChildren(...items);
  element("position").max = ops.length;
  const temps = Array.from({ length: Math.min(answer.plan?.temps ?? 0, 96) }, (_, at) => {
    return Object.assign(document.createElement("span"), { className: "cell", textContent: `t${at}` });
  });
  element("temps").replaceChildren(...temps);
}

function moveTo(step, focus = false) {
  position = Math.max(0, Math.min(answer.plan?.ops.length ?? 0, step));
  showPosition();
  if (focus) element("steps").children[position - 1]?.firstChild.focus();
}

function showPosition() {
  const ops = answer.plan?.ops ?? [];
  element("position").value = position;
  element("counter").textContent = `${position} of ${ops.length}`;
  [...element("steps").querySelectorAll("button")].forEach((button, at) => {
    button.tabIndex = at === Math.max(0, position - 1) ? 0 : -1;
    if (at === position - 1) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  });
  const current = element("steps").children[position - 1];
  if (current) {
    const list = element("steps");
    if (current.offsetTop < list.scrollTop + list.offsetTop) list.scrollTop = current.offsetTop - list.offsetTop;
    const below = current.offsetTop + current.offsetHeight - list.offsetTop - list.clientHeight;
    if (below > list.scrollTop) list.scrollTop = below;
  }
  showStep(position);
}

/** Shows the cells as they are after `step` steps, and marks what the last of them reads and makes. */
function showStep(step) {
  const ops = answer.plan?.ops ?? [];
  const done = ops.slice(0, step);
  const recovered = new Set(done.map(({ target }) => cellOf(target)).filter((cell) => cell !== null));
  const lostNodes = new Set(state.lost);
  const standing = new Set(code.stages[stage() - 1].nodes);
  const isLost = ({ node, stage: made }) => node !== null && lostNodes.has(node) && made <= stage();
  const lost = new Set(code.cells.map((cell, number) => (isLost(cell) ? number : -1)).filter((number) => number >= 0));
  for (const { cell } of answer.cells) if (state.lost.length > 0) lost.add(cell);
  const hopeless = new Set(answer.cells.filter(({ missing }) => missing.length > 0).map(({ cell }) => cell));
  const last = step > 0 && step < ops.length ? ops[step - 1] : null;
  const sources = new Set((last?.sources ?? []).map(cellOf).filter((cell) => cell !== null));
  if (last?.accumulate) sources.add(cellOf(last.target));
  grid.stage = stage();
  grid.show({ lostNodes, standing, lost, hopeless, recovered, sources, target: last ? cellOf(last.target) : null });
  const made = new Set(done.map(({ target }) => target));
  [...element("temps").children].forEach((chip, at) => {
    const slot = `t${at}`;
    const state = last?.target === slot ? " target" : last?.sources.includes(slot) ? " source" : "";
    chip.className = `cell${made.has(slot) ? " recovered" : ""}${state}`;
  });
}

function describeCell(number) {
  const note = element("cell-note");
  if (number === null || !code) {
    note.textContent = "";
    if (answer) showStep(position);
    return;
  }
  const { name: own, role, node, stage: made, sources } = code.cells[number];
  const where = node === null ? "stored nowhere" : `on node ${node}`;
  const later = made > 1 ? `, made in stage ${made}` : "";
  const sum = sources === null ? "" : sources.length > 0 ? `: ${sources.map(name).join(" ⊕ ")}` : "";
  const missing = answer?.cells.find(({ cell }) => cell === Number(number))?.missing ?? [];
  const gone = missing.length > 0 ? ` Not to be recovered, because ${missing.map(name).join(", ")} cannot.` : "";
  note.textContent = `${own}, ${role} ${where}${later}${sum}.${gone}`;
  element("grid").querySelectorAll(".source, .target").forEach((cell) => cell.classList.remove("source", "target"));
  for (const source of sources ?? []) grid.cells.get(source)?.classList.add("source");
}

// The comparison.

async function compare() {
  writeAddress();
  surveys.drop();
  const specs = [state.code, state.beside];
  element("other").value = state.beside;
  refuse("other", null);
  const columns = [];
  try {
    for (const spec of specs) columns.push({ facts: await surveys.ask("describe", spec) });
    showComparison(columns);
    for (const [at, column] of columns.entries()) {
      column.encode = (await surveys.ask("plan", specs[at], {})).plan;
      showComparison(columns);
      if (column.facts.lt || column.facts.cells.length > MOST_COMPARED) continue;
      column.one = await surveys.ask("survey", specs[at], { lose: 1, most: TRIED });
      showComparison(columns);
      column.all = await surveys.ask("survey", specs[at], { lose: column.facts.tolerance, most: TRIED });
      showComparison(columns);
    }
  } catch (error) {
    if (error instanceof Dropped) return;
    refuse("other", error.message);
    if (columns.length < 2) element("comparison").replaceChildren();
  }
}

const average = (survey, what) => (survey?.recovered ? survey[what] / survey.recovered : null);

/** What is compared: how each is told, its value in a column, and whether less is better. */
const COMPARED = [
  ["nodes", ({ facts }) => facts.nodes, null],
  ["nodes that may be lost", ({ facts }) => facts.tolerance, "more"],
  ["overhead", ({ facts }) => facts.overhead, "less", (value) => `${(100 * value).toFixed(1)} %`],
  ["XORs of encoding, for each data cell", ({ facts, encode }) => encode && encode.xors / facts.data.length, "less"],
  ["one node lost: XORs, average, for each data cell", ({ facts, one }) => one && average(one, "xors") / facts.data.length, "less"],
  ["one node lost: XORs, worst, for each data cell", ({ facts, one }) => one && one.worstXors / facts.data.length, "less"],
  ["one node lost: cells read, as a part of the data", ({ facts, one }) => one && average(one, "reads") / facts.data.length, "less", (value) => `${(100 * value).toFixed(0)} %`],
  ["most nodes lost: XORs, average, for each data cell", ({ facts, all }) => all && average(all, "xors") / facts.data.length, "less"],
  ["most nodes lost: XORs, worst, for each data cell", ({ facts, all }) => all && all.worstXors / facts.data.length, "less"],
];

function showComparison(columns) {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  head.append(document.createElement("td"));
  for (const { facts } of columns) head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: facts.spec }));
  const body = table.createTBody();
  for (const [title, of, better, text = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 })] of COMPARED) {
    const values = columns.map(of);
    const row = body.insertRow();
    row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: title }));
    for (const value of values) {
      const cell = row.insertCell();
      const known = value !== null && value !== undefined && Number.isFinite(value);
      cell.textContent = known ? text(value) : "–";
      const rest = values.filter((other) => other !== value);
      const best = known && rest.length > 0 && rest.every((other) => (better === "less" ? value < other : better === "more" && value > other));
      cell.classList.toggle("better", best);
    }
  }
  element("comparison").replaceChildren(...table.children);
  const tried = columns.map(({ all }) => all?.sets > TRIED).some(Boolean);
  element("comparison-note").textContent = `The better value is bold.${tried ? ` Where there are more than ${TRIED} losses of most nodes, about that many were tried.` : ""}`;
}

// A schedule of the reader's.

async function readOwn() {
  const line = element("own-count");
  try {
    const { xors, copies, ops, temps, ternary } = await library.ask("readSchedule", element("own").value);
    line.className = "";
    line.textContent = `${plural(ops.length, "operation")}: ${plural(xors, "XOR")} and ${copies} ${copies === 1 ? "copy" : "copies"}, ${plural(temps, "temporary").replace("temporarys", "temporaries")}; with three-input XORs, ${ternary}.`;
  } catch (error) {
    if (error instanceof Dropped) return;
    line.className = "error";
    line.textContent = error.message;
  }
}

// What the reader does.

function later(milliseconds, action) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

function listen() {
  const on = (id, event, action) => element(id).addEventListener(event, action);
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  on("family", "change", () => chooseCode(families.find(({ name }) => name === element("family").value).example));
  on("parameters", "input", later(250, () => {
    const parameters = [...element("parameters").querySelectorAll("input")].map(({ name, value }) => [name, value.trim()]);
    chooseCode(specOf(partsOf(state.code)[0], parameters), state.lost).then(() => element("parameters").querySelector(`[name="${focused}"]`)?.focus());
  }));
  let focused = null;
  on("parameters", "focusin", (event) => (focused = event.target.name));
  on("spec", "input", later(400, () => chooseCode(element("spec").value.trim(), state.lost)));
  on("other", "input", later(400, () => {
    state.beside = element("other").value.trim();
    compare();
  }));
  on("stage", "change", () => {
    state.stage = Number(element("stage").value);
    ask();
  });
  on("data-only", "change", () => {
    state.dataOnly = element("data-only").checked;
    ask();
  });
  on("fewest-reads", "change", () => {
    state.fewestReads = element("fewest-reads").checked;
    ask();
  });
  on("restore", "click", () => {
    state.lost = [];
    ask();
  });
  on("random", "click", () => {
    const standing = [...code.stages[code.stages.length - 1].nodes];
    const count = Math.min(standing.length, code.tolerance ?? Math.ceil(standing.length / 4));
    state.lost = [];
    while (state.lost.length < count) state.lost.push(...standing.splice(Math.floor(Math.random() * standing.length), 1));
    state.lost.sort((a, b) => a - b);
    ask();
  });
  on("shard-bytes", "input", showCosts);
  on("position", "input", () => moveTo(Number(element("position").value)));
  on("first", "click", () => moveTo(0));
  on("back", "click", () => moveTo(position - 1));
  on("next", "click", () => moveTo(position + 1));
  on("last", "click", () => moveTo(Infinity));
  const stepOf = (event) => [...element("steps").children].indexOf(event.target.closest("li")) + 1;
  on("steps", "pointerover", (event) => stepOf(event) > 0 && showStep(stepOf(event)));
  on("steps", "pointerleave", () => showStep(position));
  on("steps", "keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    moveTo(Math.max(1, position + by), true);
  });
  on("own", "input", later(250, readOwn));
  let width = innerWidth;
  addEventListener("resize", later(150, () => {
    if (innerWidth === width || !code || !answer) return;
    width = innerWidth;
    grid.draw(code);
    showStep(position);
  }));
  addEventListener("hashchange", () => {
    readAddress();
    chooseCode(state.code, state.lost);
  });
}

async function start() {
  readAddress();
  listen();
  try {
    families = await library.ask("families");
  } catch (error) {
    return refuse("code", error.message);
  }
  element("family").replaceChildren(...families.map(({ name }) => new Option(name, name)));
  await chooseCode(state.code, state.lost);
  if (!code) await chooseCode("rdp:k=6", [0, 3]);
  readOwn();
}

start();
