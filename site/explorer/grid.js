// The picture of a code: a column for each node, a cell for each packet or bit of a word.

const SVG = "http://www.w3.org/2000/svg";
/** More cells than this are not drawn. */
const MOST_CELLS = 6000;
/** More edges than this are not drawn. */
const MOST_EDGES = 600;

export class Grid {
  /** `onNode` is called with a node that was pressed, `onCell` with a cell that is looked at, or null. */
  constructor(element, { onNode, onCell }) {
    this.element = element;
    this.onNode = onNode;
    this.onCell = onCell;
    this.cursor = null;
    const cellOf = (event) => event.target.closest?.("[data-cell]")?.dataset.cell;
    element.addEventListener("pointerover", (event) => this.onCell(cellOf(event) ?? null));
    element.addEventListener("pointerleave", () => this.onCell(this.cursor));
    element.addEventListener("click", (event) => {
      const node = event.target.closest?.("[data-node]")?.dataset.node;
      if (node !== undefined) this.onNode(Number(node));
      else if (cellOf(event) !== undefined) this.#moveTo(Number(cellOf(event)));
    });
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("blur", () => this.#moveTo(null));
  }

  /** Draws a code. */
  draw(code) {
    this.code = code;
    this.cells = new Map();
    this.nodes = [];
    this.cursor = null;
    this.element.replaceChildren();
    if (code.cells.length > MOST_CELLS) {
      this.element.textContent = `${code.cells.length} cells are too many to be drawn; nodes can be lost by their numbers in the address.`;
      return;
    }
    this.#size();
    for (let node = 0; node < code.nodes; node++) this.element.append(this.#button(node));
    this.#rows();
    if (code.lt) this.#data();
  }

  #size() {
    const room = this.element.parentElement.clientWidth - 14;
    const width = Math.max(14, Math.min(60, Math.floor(room / this.code.nodes) - 3));
    this.labelled = width >= 32;
    this.element.style.gridTemplateColumns = `repeat(${this.code.nodes}, ${width}px)`;
    this.element.style.setProperty("--cell", `${this.labelled ? 26 : Math.min(width, 18)}px`);
  }

  #button(node) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "node";
    button.dataset.node = node;
    button.textContent = node;
    button.setAttribute("aria-label", `Node ${node}, ${this.#holds(node)}`);
    this.nodes.push(button);
    return button;
  }

  #holds(node) {
    const roles = new Set(this.code.cells.filter((cell) => cell.node === node).map(({ role }) => role));
    return [...roles].sort().join(" and ");
  }

  #rows() {
    const { cells, laneRows } = this.code;
    const stored = cells.map((cell, number) => ({ ...cell, number })).filter(({ node }) => node !== null);
    const most = Math.max(...stored.map(({ row }) => row)) + 1;
    // The stripes of a group of delayed parity stand apart; other codes have rows, not stripes.
    const lanes = this.code.stages.length > 1 ? laneRows : most;
    let line = 2;
    for (let row = 0; row < most; row++) {
      if (lanes < most && row % lanes === 0) {
        const title = document.createElement("div");
        title.className = "lane";
        title.textContent = `stripe ${row / lanes + 1}`;
        title.style.gridRow = line++;
        this.element.append(title);
      }
      for (const cell of stored.filter((cell) => cell.row === row)) {
        this.element.append(this.#cell(cell, line, cell.node + 1));
      }
      line++;
    }
    this.line = line;
  }

  #cell(cell, row, column) {
    const element = document.createElement("span");
    element.className = `cell ${cell.role}`;
    element.dataset.cell = cell.number;
    element.style.gridRow = row;
    element.style.gridColumn = column;
    if (this.labelled) element.textContent = cell.name;
    element.title = cell.name;
    this.cells.set(cell.number, element);
    return element;
  }

  // The data of an LT code is stored nowhere. It stands below the blocks, with a line to each block that contains it.
  #data() {
    const between = document.createElement("div");
    between.className = "between";
    between.style.gridRow = this.line++;
    const title = document.createElement("div");
    title.className = "lane";
    title.textContent = "Above: blocks, each the sum of the data blocks that lines lead to. Below: the data, which is stored nowhere.";
    title.style.gridRow = this.line + Math.ceil(this.code.data.length / this.code.nodes);
    this.element.append(between, title);
    this.code.data.forEach((number, position) => {
      const row = this.line + Math.floor(position / this.code.nodes);
      this.element.append(this.#cell({ ...this.code.cells[number], number }, row, (position % this.code.nodes) + 1));
    });
    this.#edges(between);
  }

  #edges(between) {
    const edges = this.code.cells.flatMap(({ node, sources }, block) => (node === null ? [] : (sources ?? []).map((data) => [block, data])));
    if (edges.length > MOST_EDGES) return;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("aria-hidden", "true");
    this.edges = edges.map(([block, data]) => {
      const line = document.createElementNS(SVG, "line");
      const [from, to] = [this.cells.get(block), this.cells.get(data)];
      const middle = (element) => element.offsetLeft + element.offsetWidth / 2;
      line.setAttribute("x1", middle(from));
      // Lines begin below all blocks, so that they cross none.
      line.setAttribute("y1", between.offsetTop);
      line.setAttribute("x2", middle(to));
      line.setAttribute("y2", to.offsetTop);
      line.setAttribute("stroke-width", "1");
      svg.append(line);
      return { block, data, line };
    });
    this.element.append(svg);
  }

  /** Shows which cells are lost, recovered, read and made: sets of cell numbers. */
  show({ lostNodes, standing, lost, hopeless, recovered, sources, target }) {
    this.nodes.forEach((button, node) => {
      button.setAttribute("aria-pressed", lostNodes.has(node));
      button.classList.toggle("absent", !standing.has(node));
    });
    for (const [number, element] of this.cells) {
      const { role, stage, node } = this.code.cells[number];
      const later = node !== null && stage > this.stage && !recovered.has(number) && !lost.has(number);
      const state = later ? "later" : recovered.has(number) ? "recovered" : hopeless.has(number) ? "lost gone" : lost.has(number) ? "lost" : role;
      const cursor = number === this.cursor ? " cursor" : "";
      element.className = `cell ${state}${sources.has(number) ? " source" : ""}${target === number ? " target" : ""}${cursor}`;
    }
    for (const { block, data, line } of this.edges ?? []) {
      const used = (sources.has(block) || target === block) && (sources.has(data) || target === data);
      const gone = lost.has(block) || recovered.has(data);
      line.setAttribute("stroke", used ? "var(--accent)" : "var(--soft)");
      line.setAttribute("stroke-width", used ? "2" : "1");
      line.setAttribute("opacity", used ? "1" : gone ? "0.12" : "0.45");
    }
  }

  #moveTo(cell) {
    if (this.cursor !== null) this.cells.get(this.cursor)?.classList.remove("cursor");
    this.cursor = cell;
    const element = this.cells?.get(cell);
    element?.classList.add("cursor");
    element?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.onCell(cell);
  }

  #key(event) {
    const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (event.target !== this.element || !this.cells.size) return;
    if (event.key === "Enter" || event.key === " ") {
      const node = this.code.cells[this.cursor]?.node;
      if (node !== null && node !== undefined) this.onNode(node);
      event.preventDefault();
      return;
    }
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    if (this.cursor === null) return this.#moveTo(this.cells.keys().next().value);
    const here = this.cells.get(this.cursor);
    const ahead = [...this.cells].filter(([, { offsetLeft: x, offsetTop: y }]) => (step[0] ? y === here.offsetTop && Math.sign(x - here.offsetLeft) === step[0] : x === here.offsetLeft && Math.sign(y - here.offsetTop) === step[1]));
    const distance = ([, { offsetLeft: x, offsetTop: y }]) => Math.abs(x - here.offsetLeft) + Math.abs(y - here.offsetTop);
    ahead.sort((a, b) => distance(a) - distance(b));
    if (ahead.length > 0) this.#moveTo(ahead[0][0]);
  }
}
