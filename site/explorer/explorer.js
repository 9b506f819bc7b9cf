// The explorer: the state of the page, which its address holds, and what is shown of it.
import { addressOf, judge, readAddress } from "./address.js";
import { compareCodes, comparisonNote, comparisonTable } from "./comparison.js";
import { Grid } from "./grid.js";
import { Dropped, Library } from "./library.js";
import { StepList } from "./steps.js";

const element = (id) => document.getElementById(id);
/** More temporaries than this are not drawn. */
const MOST_TEMPS = 96;
/** More characters of a schedule's text than this are not shown. */
const MOST_TEXT = 1_000_000;
/** More terms of a cell's sum than this are not named. */
const MOST_TERMS = 40;
/** Milliseconds after which the page says that it waits for an answer. */
const PATIENCE = 300;
/** What an address without a code shows. */
const FIRST = { code: "rdp:k=6", lost: [0, 3] };

/** What is asked. `code` was accepted by the library, and the rest fits that code; `beside` is what the reader typed. */
const state = { code: null, lost: [], stage: null, dataOnly: false, fewestReads: false, beside: "cauchy:k=6,m=2" };
const library = new Library();
const surveys = new Library();
const schedules = new Library();
let families = [];
/** The facts of the code, and the answer to what is asked; null while the library is at work. */
let code = null;
let answer = null;
/** The code whose description is awaited; null while none is. */
let chosen = null;
/** After which step of the plan each output is whole, and each temporary has a value. */
let written = new Map();
let position = 0;

const grid = new Grid(element("grid"), { onNode: toggle, onCell: describeCell });
const steps = new StepList(element("steps"), { onStep: moveTo, onLook: (step) => showStep(step ?? position) });

const numberText = (number) => number.toLocaleString("en");
const plural = (count, one, many = `${one}s`) => `${numberText(count)} ${count === 1 ? one : many}`;
const nodesText = (nodes) => `${nodes.length === 1 ? "node" : "nodes"} ${nodes.join(", ")}`;
const name = (cell) => code.cells[cell].name;
const rowsOf = ({ cells }) => cells.reduce((most, { row }) => Math.max(most, (row ?? -1) + 1), 1);
const ops = () => answer?.plan?.ops ?? [];

// The address.

/** The code of the newest entry of the browser's history; null while an address is followed. */
let entered = null;

/** Writes the address. A code that the reader chose has an entry of its own, so that Back leads to the code before. */
function writeAddress() {
  const isChosen = entered !== null && entered !== state.code;
  history[isChosen ? "pushState" : "replaceState"](null, "", addressOf(state));
  entered = state.code;
}

/** Shows what the address says. What cannot be followed is told. */
async function followAddress() {
  entered = null;
  const given = readAddress(location.hash);
  const before = code ? state : FIRST;
  if (given.code === undefined) given.lost ??= before.lost.join(",");
  let ignored = [];
  const refusal = await chooseCode(given.code?.trim() ?? before.code, {
    questionFor(found) {
      const judged = judge(given, found);
      ignored = judged.ignored;
      return { ...judged.question, beside: given.beside ?? state.beside };
    },
  });
  if (refusal !== null && !code) {
    await chooseCode(FIRST.code, { questionFor: () => ({ lost: FIRST.lost }) });
    ignored = [`code=${given.code} (${refusal})`];
  }
  if (ignored.length > 0) tell("address", `Ignored in the address: ${ignored.join("; ")}.`);
}

// The code.

function specOf(family, parameters) {
  return `${family}:${parameters.map(([key, value]) => `${key}=${value}`).join(",")}`;
}

/** Returns K and M of a spec K+M, for which the library chooses a family. */
const shortForm = (spec) => spec.match(/^(\d+)\+(\d+)$/)?.slice(1) ?? null;

/** Returns the parameters that a spec names, as pairs. */
function parametersOf(spec) {
  const short = shortForm(spec);
  if (short) return [["k", short[0]], ["m", short[1]]];
  const [, rest = ""] = spec.split(/:(.*)/s);
  return rest.split(",").filter(Boolean).map((part) => part.split(/=(.*)/s).slice(0, 2));
}

/** What of the question still fits when another code takes the place of this one. */
function questionThatFits({ stages }) {
  const stage = stages.length > 1 && state.stage <= stages.length ? state.stage : null;
  const { nodes } = stages[(stage ?? stages.length) - 1];
  return { stage, lost: state.lost.filter((node) => nodes.includes(node)) };
}

/**
 * Shows a code, if the library accepts it; returns why it does not, or null. `questionFor` returns what to ask of the
 * code, from its facts. With `typing`, the control that has the focus is left as it is.
 */
async function chooseCode(spec, { questionFor = questionThatFits, typing = false } = {}) {
  const write = (input, value) => {
    if (!typing || input !== document.activeElement) input.value = value;
  };
  write(element("spec"), spec);
  tell("address", null);
  library.drop();
  chosen = spec;
  const waiting = setTimeout(showWaiting, PATIENCE);
  try {
    const found = await library.ask("describe", spec);
    chosen = null;
    Object.assign(state, { code: spec, ...questionFor(found) });
    code = found;
  } catch (error) {
    if (error instanceof Dropped) return null;
    chosen = null;
    refuse("code", error.message);
    // The question about the code that stays may have been dropped for this one.
    if (code && !answer) ask();
    return error.message;
  } finally {
    clearTimeout(waiting);
  }
  refuse("code", null);
  // The last answer is about the cells of another code.
  answer = null;
  write(element("other"), state.beside);
  showCode(write);
  ask().then(compare);
  return null;
}

/** Shows that a chosen code is still being described. */
function showWaiting() {
  answer = null;
  document.body.setAttribute("aria-busy", "true");
  if (code) showAnswer();
}

/** Shows a message on the line of its own, or hides the line. */
function tell(what, message) {
  const line = element(`${what}-error`);
  line.hidden = message === null;
  line.textContent = message ?? "";
}

/** Shows why the library refuses the code, or the other one; with null, that it does not. */
function refuse(what, message) {
  tell(what, message);
  element(what === "code" ? "spec" : "other").setAttribute("aria-invalid", message !== null);
}

function showCode(write) {
  const known = families.find(({ name }) => name === code.family);
  element("family").value = code.family;
  element("family-note").textContent = known ? `${known.summary}. ${known.limits}` : "";
  element("full-name").hidden = state.code === code.spec;
  element("full-name").textContent = `Full name: ${code.spec}`;
  showParameters(write);
  figures("facts", [
    ["nodes", code.nodes],
    ["with data", code.dataNodes.length],
    ["may be lost", code.tolerance ?? "varies"],
    ["overhead", `${(100 * code.overhead).toFixed(1)} %`],
    code.word ? ["bits a word", code.word] : ["packets a node", rowsOf(code)],
    ["ones", numberText(code.ones)],
    ...(code.fewestOnes ? [["fewest ones possible", numberText(code.fewestOnes)]] : []),
  ]);
  element("stage-option").hidden = code.stages.length === 1;
  element("stage").replaceChildren(...code.stages.map(({ tolerance }, at) => new Option(`${at + 1}: any ${tolerance} may be lost`, at + 1)));
  element("data-only").disabled = code.lt;
  grid.draw(code);
}

function showParameters(write) {
  const parameters = parametersOf(state.code);
  const inputs = [...element("parameters").querySelectorAll("input")];
  // Inputs that can stay do, so that they keep the focus and the place of the cursor.
  if (inputs.map(({ name }) => name).join() === parameters.map(([key]) => key).join()) {
    inputs.forEach((input, at) => write(input, parameters[at][1]));
    return;
  }
  const labels = parameters.map(([key, value]) => {
    const label = document.createElement("label");
    label.append(key, Object.assign(document.createElement("input"), { value, name: key, spellcheck: false, autocapitalize: "off" }));
    return label;
  });
  element("parameters").replaceChildren(...labels);
}

function chooseParameters() {
  const parameters = [...element("parameters").querySelectorAll("input")].map(({ name, value }) => [name, value.trim()]);
  // The library chooses the family of K+M anew.
  const spec = shortForm(state.code) ? parameters.map(([, value]) => value).join("+") : specOf(code.family, parameters);
  chooseCode(spec, { typing: true });
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

/** The stage that is asked about: the chosen one, or what the library takes: the last one for losses, the first one for encoding. */
function stage() {
  return state.stage ?? (state.lost.length > 0 ? code.stages.length : 1);
}

/** The nodes that hold anything at the end of the stage. Others cannot be lost. */
const standing = () => code.stages[stage() - 1].nodes;

/** Asks about a loss, at the end of the stage that the menu shows. */
function lose(nodes) {
  if (code.stages.length > 1) state.stage = stage();
  state.lost = nodes.sort((a, b) => a - b);
  ask();
}

function toggle(node) {
  if (standing().includes(node)) lose(state.lost.includes(node) ? state.lost.filter((other) => other !== node) : [...state.lost, node]);
}

/** Loses as many nodes as the stage survives; of an LT code, a quarter. */
function loseSome() {
  const left = [...standing()];
  const count = code.lt ? Math.ceil(left.length / 4) : code.stages[stage() - 1].tolerance;
  lose(Array.from({ length: count }, () => left.splice(Math.floor(Math.random() * left.length), 1)[0]));
}

/** Whether the data of an LT code is decoded. Its data lies on no node, so a loss is no question of its own. */
const decodes = () => code.lt && state.lost.length > 0;

async function ask() {
  if (!code) return;
  writeAddress();
  showQuestion();
  // The question will be asked of the code that is being described, or of this one if that is refused.
  if (chosen !== null) return showWaiting();
  const waiting = setTimeout(showAnswer, PATIENCE);
  library.drop();
  answer = null;
  const { lost } = state;
  // Encoding makes all parity from all data: what is wanted and what is read are no choice.
  const dataOnly = decodes() || (state.dataOnly && lost.length > 0);
  const fewestReads = state.fewestReads && lost.length > 0;
  try {
    answer = await library.ask("plan", state.code, { lost, stage: stage(), dataOnly, fewestReads });
  } catch (error) {
    if (error instanceof Dropped) return;
    answer = { recovered: false, reason: error.message, cells: [], plan: null };
  } finally {
    clearTimeout(waiting);
  }
  showAnswer();
  document.body.setAttribute("aria-busy", "false");
  document.body.dataset.shown = `${state.code} ${lost.join(",")}`;
}

function showQuestion() {
  element("stage").value = stage();
  element("data-only").checked = state.dataOnly || decodes();
  element("fewest-reads").checked = state.fewestReads;
  document.body.setAttribute("aria-busy", "true");
  delete document.body.dataset.shown;
  showNodes();
}

function showNodes() {
  grid.showNodes({ lostNodes: new Set(state.lost), standing: new Set(standing()) });
}

function verdict() {
  if (!answer) return "This is being computed…";
  const { lost } = state;
  const { recovered, reason, cells, plan } = answer;
  const hopeless = cells.filter(({ missing }) => missing.length > 0).length;
  if (!recovered) return `${reason}${plan ? `. ${plural(cells.length - hopeless, "cell")} of ${numberText(cells.length)} can still be computed.` : "."}`;
  if (lost.length === 0 && stage() > 1) return `Nothing is lost. Stage ${stage()} adds ${plural(cells.length, "cell")} of parity, computed from a part of what is stored.`;
  if (lost.length === 0) return `Nothing is lost. These steps encode: ${plural(cells.length, "cell")} of parity from the data.`;
  if (cells.length === 0) return "Nothing that is wanted was lost.";
  return `All is recovered: ${plural(cells.length, "cell")} after the loss of ${nodesText(lost)}.`;
}

/** Shows the answer or, while there is none, that it is awaited. */
function showAnswer() {
  element("verdict").textContent = verdict();
  element("verdict").className = answer && !answer.recovered ? "bad" : "";
  element("steps-part").hidden = ops().length === 0;
  position = ops().length;
  showText(answer?.plan?.text ?? "");
  showCosts();
  showSteps();
  moveTo(position);
}

function showText(text) {
  const shown = text.length > MOST_TEXT ? text.slice(0, text.lastIndexOf("\n", MOST_TEXT) + 1) : text;
  const hidden = text.slice(shown.length).split("\n").length - 1;
  element("schedule").textContent = shown;
  element("schedule-note").hidden = hidden === 0;
  element("schedule-note").textContent = `${plural(hidden, "more line is", "more lines are")} not shown. The command \`paritas schedule --text\` prints them all.`;
}

function showCosts() {
  const text = element("shard-bytes").value.trim();
  const known = /^\d+$/.test(text);
  element("shard-bytes").setAttribute("aria-invalid", !known);
  const plan = answer?.plan;
  if (!plan) return figures("costs", []);
  const size = (cells) => (known ? sizeText((cells * Number(text)) / rowsOf(code)) : "?");
  const read = plan.inputs.length;
  figures("costs", [
    ["XORs", numberText(plan.xors)],
    ["cells read", numberText(read)],
    ["from nodes", plan.reads.filter((reads) => reads > 0).length],
    ["steps", numberText(plan.ops.length)],
    ["temporaries", numberText(plan.temps)],
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
  const listed = ops();
  steps.show(listed.length, (step) => stepText(listed[step - 1]));
  element("position").max = listed.length;
  written = new Map();
  for (const [at, { target }] of listed.entries()) if (target[0] === "o" || !written.has(target)) written.set(target, at + 1);
  const temps = answer?.plan?.temps ?? 0;
  const chips = Array.from({ length: Math.min(temps, MOST_TEMPS) }, (_, at) => {
    return Object.assign(document.createElement("span"), { className: "cell", textContent: `t${at}` });
  });
  element("temps").replaceChildren(...chips);
  element("temps-note").hidden = temps <= MOST_TEMPS;
  element("temps-note").textContent = `${plural(temps - MOST_TEMPS, "more temporary is", "more temporaries are")} not drawn.`;
}

function moveTo(step) {
  if (!code) return;
  position = Math.max(0, Math.min(ops().length, step));
  element("position").value = position;
  element("counter").textContent = `${numberText(position)} of ${numberText(ops().length)}`;
  steps.moveTo(position);
  showStep(position);
  const target = ops()[position - 1]?.target;
  if (target) grid.reveal(cellOf(target));
}

/** Shows the cells as they are after `step` steps, and marks what the last of them reads and makes. */
function showStep(step) {
  const { lost: nodes } = state;
  const lostNodes = new Set(nodes);
  const wanted = answer?.cells ?? [];
  const lost = new Set(nodes.length > 0 ? wanted.map(({ cell }) => cell) : []);
  const unmade = new Set(nodes.length > 0 ? [] : wanted.map(({ cell }) => cell));
  for (const [number, { node, stage: made }] of code.cells.entries()) {
    if (made > stage()) unmade.add(number);
    else if (lostNodes.has(node)) lost.add(number);
  }
  const hopeless = new Set(wanted.filter(({ missing }) => missing.length > 0).map(({ cell }) => cell));
  const recovered = new Set((answer?.plan?.outputs ?? []).filter((_, at) => written.get(`o${at}`) <= step));
  grid.showCells({ lost, hopeless, unmade, recovered });
  const { target = null, sources = [], accumulate = false } = ops()[step - 1] ?? {};
  const read = sources.concat(accumulate ? [target] : []);
  grid.mark(target && cellOf(target), new Set(read.map(cellOf).filter((cell) => cell !== null)));
  [...element("temps").children].forEach((chip, at) => {
    const slot = `t${at}`;
    chip.className = `cell${written.get(slot) <= step ? " recovered" : ""}${target === slot ? " target" : read.includes(slot) ? " source" : ""}`;
  });
}

/** Describes the cell that is looked at, and marks what it is the sum of; with null, shows the current step again. */
function describeCell(number) {
  const note = element("cell-note");
  if (number === null || !code) {
    note.textContent = "";
    if (code) showStep(position);
    return;
  }
  const { name: own, role, node, stage: made, sources } = code.cells[number];
  const answered = answer?.cells.find(({ cell }) => cell === number);
  const fate = made > stage() || !state.lost.includes(node) ? "" : answered && (answered.missing ?? []).length === 0 ? ", lost, and computed from others" : ", lost";
  const where = node === null ? "stored nowhere" : `on node ${node}${fate}`;
  const later = made > 1 ? `, made in stage ${made}` : "";
  const sum = sources === null ? ", a sum of too many cells to be named" : sources.length > 0 ? `: ${sumText(sources)}` : "";
  const missing = answered?.missing ?? [];
  const gone = missing.length > 0 ? ` Not to be recovered, because ${listText(missing.map(name), ", ")} cannot.` : "";
  note.textContent = `${own}, ${role} ${where}${later}${sum}.${gone}`;
  const summed = new Set((sources ?? []).flatMap(withParts));
  grid.mark(summed.size > 0 ? number : null, summed);
}

/** A sum by the names of its cells. Cells that are drawn nowhere are sums in brackets. */
function sumText(sources) {
  const term = (cell) => (code.cells[cell].role === "auxiliary" ? `(${sumText(code.cells[cell].sources)})` : name(cell));
  return listText(sources.map(term), " ⊕ ");
}

/** Returns a cell, or the cells that it is the sum of, if it is drawn nowhere. */
const withParts = (cell) => (code.cells[cell].role === "auxiliary" ? code.cells[cell].sources.flatMap(withParts) : [cell]);

const listText = (names, between) => (names.length > MOST_TERMS ? `${names.slice(0, MOST_TERMS).join(between)}${between}${numberText(names.length - MOST_TERMS)} more` : names.join(between));

// The comparison.

async function compare() {
  writeAddress();
  surveys.drop();
  refuse("other", null);
  let shown = false;
  try {
    await compareCodes(surveys, [state.code, state.beside], (columns) => {
      shown = true;
      element("comparison").replaceChildren(...comparisonTable(columns));
      element("comparison-note").textContent = comparisonNote(columns);
    });
  } catch (error) {
    if (error instanceof Dropped) return;
    if (error.spec === state.beside) refuse("other", error.message);
    else tell("other", error.message);
    if (!shown) for (const id of ["comparison", "comparison-note"]) element(id).replaceChildren();
  }
}

// A schedule of the reader's.

async function readOwn() {
  const line = element("own-count");
  schedules.drop();
  try {
    const { xors, copies, ops, temps, ternary } = await schedules.ask("readSchedule", element("own").value);
    line.className = "";
    line.textContent = `${plural(ops.length, "operation")}: ${plural(xors, "XOR")} and ${plural(copies, "copy", "copies")}, ${plural(temps, "temporary", "temporaries")}; with three-input XORs, ${numberText(ternary)}.`;
  } catch (error) {
    if (error instanceof Dropped) return;
    line.className = "error";
    line.textContent = error.message;
  }
}

// What the reader does.

/** Returns a function that acts when it has not been called for a while. */
function later(milliseconds, action) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

function listen() {
  const on = (id, event, action) => element(id).addEventListener(event, action);
  const onQuestion = (id, event, change) => on(id, event, () => {
    if (!code) return;
    change(element(id));
    ask();
  });
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  on("family", "change", () => {
    const { example } = families.find(({ name }) => name === element("family").value);
    chooseCode(example, { questionFor: () => ({ lost: [], stage: null }) });
  });
  on("parameters", "input", later(250, chooseParameters));
  on("spec", "input", later(400, () => chooseCode(element("spec").value.trim(), { typing: true })));
  on("other", "input", later(400, () => {
    state.beside = element("other").value.trim();
    if (code) compare();
  }));
  onQuestion("stage", "change", ({ value }) => {
    state.stage = Number(value);
    state.lost = state.lost.filter((node) => standing().includes(node));
  });
  onQuestion("data-only", "change", ({ checked }) => (state.dataOnly = checked));
  onQuestion("fewest-reads", "change", ({ checked }) => (state.fewestReads = checked));
  on("restore", "click", () => code && lose([]));
  on("random", "click", () => code && loseSome());
  on("shard-bytes", "input", showCosts);
  on("position", "input", () => moveTo(Number(element("position").value)));
  on("first", "click", () => moveTo(0));
  on("back", "click", () => moveTo(position - 1));
  on("next", "click", () => moveTo(position + 1));
  on("last", "click", () => moveTo(Infinity));
  on("own", "input", later(250, readOwn));
  let width = innerWidth;
  addEventListener("resize", later(150, () => {
    if (innerWidth === width || !code) return;
    width = innerWidth;
    grid.draw(code);
    showNodes();
    showStep(position);
  }));
  addEventListener("hashchange", followAddress);
}

async function start() {
  try {
    families = await library.ask("families");
  } catch (error) {
    element("verdict").textContent = "The library could not be loaded.";
    return refuse("code", error.message);
  }
  element("family").replaceChildren(...families.map(({ name }) => new Option(name, name)));
  listen();
  readOwn();
  followAddress();
}

start();
