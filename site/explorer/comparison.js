// The comparison of two codes, by what they store and by what losses cost.

/** Losses of each kind that are tried. */
const TRIED = 60;
/** A code with more cells is not compared by losses, which would take minutes. */
const MOST_CELLS = 1200;

/** Describes and tries codes, one after the other, and calls `onColumns` whenever more is known about them. */
export async function compareCodes(library, specs, onColumns) {
  const columns = [];
  for (const spec of specs) columns.push({ facts: await about(spec, library.ask("describe", spec)) });
  onColumns(columns);
  for (const [at, column] of columns.entries()) {
    const spec = specs[at];
    column.encode = (await about(spec, library.ask("plan", spec, {}))).plan;
    onColumns(columns);
    if (!isTried(column.facts)) continue;
    column.one = await about(spec, library.ask("survey", spec, { lose: 1, most: TRIED }));
    onColumns(columns);
    column.all = await about(spec, library.ask("survey", spec, { lose: column.facts.tolerance, most: TRIED }));
    onColumns(columns);
  }
}

/** Waits for an answer. An error gets the member `spec`, the code that the question was about. */
async function about(spec, answer) {
  try {
    return await answer;
  } catch (error) {
    throw Object.assign(error, { spec });
  }
}

const isTried = ({ lt, cells }) => !lt && cells.length <= MOST_CELLS;

const perCell = (count, { facts }) => count / facts.data.length;
const average = (survey, what) => (survey?.recovered ? survey[what] / survey.recovered : NaN);
const worst = (survey) => (survey?.recovered ? survey.worstXors : NaN);
const percent = (digits) => (value) => `${(100 * value).toFixed(digits)} %`;

/** What is compared: its title, its value in a column, whether less or more is better, and how it is written. */
const COMPARED = [
  ["nodes", ({ facts }) => facts.nodes, null],
  ["nodes that may be lost", ({ facts }) => facts.tolerance ?? NaN, "more"],
  ["overhead", ({ facts }) => facts.overhead, "less", percent(1)],
  ["XORs of encoding, for each data cell", (column) => perCell(column.encode?.xors, column), "less"],
  ["one node lost: XORs, average, for each data cell", (column) => perCell(average(column.one, "xors"), column), "less"],
  ["one node lost: XORs, worst, for each data cell", (column) => perCell(worst(column.one), column), "less"],
  ["one node lost: cells read, as a part of the data", (column) => perCell(average(column.one, "reads"), column), "less", percent(0)],
  ["most nodes lost: XORs, average, for each data cell", (column) => perCell(average(column.all, "xors"), column), "less"],
  ["most nodes lost: XORs, worst, for each data cell", (column) => perCell(worst(column.all), column), "less"],
];

/** Returns the parts of a table of columns. A value that is not known, or not yet, is a dash. */
export function comparisonTable(columns) {
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
      cell.textContent = Number.isFinite(value) ? text(value) : "–";
      const rest = values.filter((other) => other !== value);
      const beats = (other) => (better === "less" ? value < other : better === "more" && value > other);
      cell.classList.toggle("better", rest.length > 0 && rest.every(beats));
    }
  }
  return table.children;
}

/** Returns what is to be said below a table of columns. */
export function comparisonNote(columns) {
  const told = ["The better value is bold."];
  const isPending = ({ facts, encode, all }) => encode === undefined || (isTried(facts) && all === undefined);
  if (columns.some(isPending)) told.push("Other values are still being computed.");
  const sampled = ({ sets, tried }) => sets === null || sets > tried;
  if (columns.some(({ one, all }) => [one, all].some((survey) => survey && sampled(survey)))) told.push(`Where more than ${TRIED} losses are possible, ${TRIED / 2} to ${TRIED} of them were tried.`);
  for (const { facts } of columns.filter(({ facts }) => !isTried(facts))) {
    const why = facts.lt ? "which ones it survives depends on the blocks that they leave" : `it has ${facts.cells.length.toLocaleString("en")} cells, and trying would take minutes`;
    told.push(`Losses of ${facts.spec} are not tried: ${why}.`);
  }
  return told.join(" ");
}
