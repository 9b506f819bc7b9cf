// The picture of a code: a column for each node, a cell for each packet or bit of a word.

const SVG = "http://www.w3.org/2000/svg";
/** More nodes than this are not drawn. */
const MOST_NODES = 1100;
/** Of a code with more cells than this, the nodes are drawn without cells. */
const MOST_CELLS = 6000;
/** More edges than this are not drawn. */
const MOST_EDGES = 600;
/** Widths of a column in pixels. A narrower one could not be hit with a finger, nor hold a node's number. */
const NARROWEST = 28;
const WIDEST = 60;
/** Width of a letter of a cell's name in pixels, and what its borders take. */
const LETTER = 7.5;
const BORDERS = 4;

const count = (number) => number.toLocaleString("en");

export class Grid {
  /** `onNode` is called with a node that was pressed, `onCell` with a cell that is looked at, or null. */
  constructor(element, { onNode, onCell }) {
    this.element = element;
    this.onNode = onNode;
    this.onCell = onCell;
    this.cursor = null;
    this.cells = new Map();
    this.nodes = [];
    this.edges = [];
    this.faded = () => false;
    this.looked = null;
    const numberOf = (event, what) => {
      const text = event.target.closest?.(`[data-${what}]`)?.dataset[what];
      return text === undefined ? null : Number(text);
    };
    const look = (cell) => {
      if (cell !== this.looked) this.onCell(cell ?? this.cursor);
      this.looked = cell;
    };
    // A grid that is drawn below a pointer at rest makes it enter cells, but not move.
    element.addEventListener("pointermove", (event) => look(numberOf(event, "cell")));
    element.addEventListener("pointerleave", () => look(null));
    element.addEventListener("click", (event) => {
      const [node, cell] = [numberOf(event, "node"), numberOf(event, "cell")];
      if (node !== null) this.onNode(node);
      else if (cell !== null) this.#moveTo(cell);
    });
    element.addEventListener("keydown", (event) => (event.target === element ? this.#cellKey(event) : this.#nodeKey(event)));
    element.addEventListener("focusin", (event) => this.#stopAt(this.nodes.indexOf(event.target)));
    element.addEventListener("blur", () => this.#moveTo(null));
  }

  /** Draws a code. The node that has the focus keeps it. */
  draw(code) {
    const focused = this.nodes.indexOf(document.activeElement);
    this.code = code;
    this.cells = new Map();
    this.nodes = [];
    this.edges = [];
    this.element.replaceChildren();
    this.#moveTo(null);
    if (code.nodes > MOST_NODES) {
      this.#say(`${count(code.nodes)} nodes are too many to be drawn. They can be lost in the address of this page, as in lost=0,7.`, 1);
      return;
    }
    const drawn = code.cells.length <= MOST_CELLS;
    this.#size(drawn);
    this.#buttons();
    if (!drawn) return this.#say(`${count(code.cells.length)} cells are too many to be drawn.`, 2);
    const line = this.#rows();
    if (code.lt) this.#data(line);
    this.nodes[focused]?.focus({ preventScroll: true });
  }

  #size(drawn) {
    const { nodes, cells } = this.code;
    const longest = cells.filter(isDrawn).reduce((most, { name }) => Math.max(most, name.length), 0);
    const room = this.element.parentElement.clientWidth - 14;
    const width = Math.max(NARROWEST, Math.min(WIDEST, Math.floor(room / nodes) - 3));
    this.labelled = drawn && width >= longest * LETTER + BORDERS;
    this.element.style.gridTemplateColumns = `repeat(${nodes}, ${width}px)`;
    this.element.style.setProperty("--cell", `${this.labelled ? 26 : 18}px`);
  }

  #buttons() {
    const roles = Array.from({ length: this.code.nodes }, () => new Set());
    for (const { node, role } of this.code.cells) roles[node]?.add(role);
    this.nodes = roles.map((held, node) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "node", textContent: node });
      button.dataset.node = node;
      button.setAttribute("aria-label", `Node ${node}, ${[...held].sort().join(" and ")}`);
      return button;
    });
    this.#stopAt(0);
    this.element.append(...this.nodes);
  }

  /** Draws the stored cells, and returns the first free line below them. */
  #rows() {
    const { stages, laneRows, cells } = this.code;
    const rows = [];
    for (const [number, cell] of cells.entries()) if (cell.node !== null) (rows[cell.row] ??= []).push({ ...cell, number });
    // The stripes of a group of delayed parity stand apart; other codes have rows, not stripes.
    const lanes = stages.length > 1 ? laneRows : rows.length;
    const title = stripesAreLanes(cells) ? "stripe" : "lane";
    let line = 2;
    for (const [row, inRow] of rows.entries()) {
      if (lanes < rows.length && row % lanes === 0) this.#say(`${title} ${row / lanes + 1}`, line++);
      for (const cell of inRow) this.element.append(this.#cell(cell, line, cell.node + 1));
      line++;
    }
    return line;
  }

  #say(text, line) {
    const title = Object.assign(document.createElement("div"), { className: "lane", textContent: text });
    title.style.gridRow = line;
    this.element.append(title);
  }

  #cell(cell, line, column) {
    const element = document.createElement("span");
    element.className = `cell ${cell.role}`;
    element.dataset.cell = cell.number;
    element.style.gridRow = line;
    element.style.gridColumn = column;
    if (this.labelled) element.textContent = cell.name;
    element.title = cell.name;
    this.cells.set(cell.number, element);
    return element;
  }

  // The data of an LT code is stored nowhere. It stands below the blocks, with a line to each block that contains it.
  #data(line) {
    const { nodes, cells, data } = this.code;
    const edges = cells.flatMap(({ node, sources }, block) => (node === null ? [] : (sources ?? []).map((from) => [block, from])));
    const drawn = edges.length <= MOST_EDGES;
    const between = Object.assign(document.createElement("div"), { className: drawn ? "between" : "between none" });
    between.style.gridRow = line;
    this.element.append(between);
    data.forEach((number, position) => {
      const below = line + 1 + Math.floor(position / nodes);
      this.element.append(this.#cell({ ...cells[number], number }, below, (position % nodes) + 1));
    });
    const lines = drawn ? "that lines lead to" : `that light up when one is pointed at; ${count(edges.length)} lines are too many to be drawn`;
    this.#say(`Above: blocks, each the sum of the data blocks ${lines}. Below: the data, which is stored nowhere.`, line + 1 + Math.ceil(data.length / nodes));
    if (drawn) this.#edges(between, edges);
  }

  #edges(between, edges) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("aria-hidden", "true");
    this.edges = edges.map(([block, data]) => {
      const line = document.createElementNS(SVG, "line");
      const [from, to] = [this.cells.get(block), this.cells.get(data)];
      const middle = (element) => element.offsetLeft + element.offsetWidth / 2;
      line.setAttribute("x1", middle(from));
      // Lines stay between the blocks and the data, so that they cross neither.
      line.setAttribute("y1", between.offsetTop);
      line.setAttribute("x2", middle(to));
      line.setAttribute("y2", between.offsetTop + between.offsetHeight);
      svg.append(line);
      return { block, data, line };
    });
    this.element.append(svg);
  }

  /** Shows which nodes are lost, and which hold nothing yet and cannot be. */
  showNodes({ lostNodes, standing }) {
    this.nodes.forEach((button, node) => {
      button.setAttribute("aria-pressed", lostNodes.has(node));
      button.setAttribute("aria-disabled", !standing.has(node));
      button.classList.toggle("absent", !standing.has(node));
    });
  }

  /** Shows which cells are lost, not made yet, and recovered: sets of cell numbers. */
  showCells({ lost, hopeless, unmade, recovered }) {
    this.faded = ({ block, data }) => lost.has(block) || recovered.has(data);
    for (const [number, element] of this.cells) {
      const state = recovered.has(number) ? "recovered" : hopeless.has(number) ? "lost gone" : lost.has(number) ? "lost" : unmade.has(number) ? "later" : this.code.cells[number].role;
      element.className = `cell ${state}${number === this.cursor ? " cursor" : ""}`;
    }
  }

  /** Marks a cell, and those that it is the sum of. */
  mark(target, sources) {
    for (const [number, element] of this.cells) {
      element.classList.toggle("target", number === target);
      element.classList.toggle("source", sources.has(number));
    }
    const marked = (cell) => cell === target || sources.has(cell);
    for (const edge of this.edges) {
      const used = marked(edge.block) && marked(edge.data);
      edge.line.setAttribute("class", used ? "used" : this.faded(edge) ? "faded" : "");
    }
  }

  /** Scrolls the picture sideways until a cell is seen; the page stays where it is. */
  reveal(cell) {
    const element = this.cells.get(cell);
    if (!element) return;
    const [seen, its] = [this.element.parentElement.getBoundingClientRect(), element.getBoundingClientRect()];
    const [left, right] = [its.left - seen.left, its.right - seen.right];
    this.element.parentElement.scrollLeft += left < 0 ? left : Math.max(right, 0);
  }

  #moveTo(cell) {
    this.cells.get(this.cursor)?.classList.remove("cursor");
    this.cursor = cell;
    this.looked = null;
    const element = this.cells.get(cell);
    element?.classList.add("cursor");
    element?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.onCell(cell);
  }

  #cellKey(event) {
    if (!this.cells.size) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      const node = this.code.cells[this.cursor]?.node ?? null;
      if (node !== null) this.onNode(node);
      return;
    }
    const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    if (this.cursor === null) return this.#moveTo(this.cells.keys().next().value);
    const here = this.cells.get(this.cursor);
    const ahead = [...this.cells].filter(([, { offsetLeft: x, offsetTop: y }]) => (step[0] ? y === here.offsetTop && Math.sign(x - here.offsetLeft) === step[0] : x === here.offsetLeft && Math.sign(y - here.offsetTop) === step[1]));
    const distance = ([, { offsetLeft: x, offsetTop: y }]) => Math.abs(x - here.offsetLeft) + Math.abs(y - here.offsetTop);
    ahead.sort((a, b) => distance(a) - distance(b));
    if (ahead.length > 0) this.#moveTo(ahead[0][0]);
  }

  // The nodes are one stop of the tabulator key; arrow keys move among them.
  #nodeKey(event) {
    const here = this.nodes.indexOf(event.target);
    const next = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: this.nodes.length - 1 }[event.key];
    if (here < 0 || next === undefined) return;
    event.preventDefault();
    this.nodes[next]?.focus();
  }

  #stopAt(node) {
    if (node < 0) return;
    this.nodes.forEach((button, other) => (button.tabIndex = other === node ? 0 : -1));
  }
}

/** Whether a cell is drawn: all but those that only help to define others. */
const isDrawn = ({ role }) => role !== "auxiliary";

/**
 * Whether the lanes of all nodes are stripes, in order. They are not where a node gets cells in several stages: it keeps
 * those of later stages behind the others.
 */
function stripesAreLanes(cells) {
  const stages = new Map();
  return cells.every(({ node, stage }) => node === null || stage === (stages.get(node) ?? stages.set(node, stage).get(node)));
}
