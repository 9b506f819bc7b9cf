// The list of a schedule's steps. A long schedule is listed in pages, because a browser takes seconds for
// tens of thousands of lines.

/** Steps of a page. */
const PAGE = 500;

export class StepList {
  #list;
  #count = 0;
  #text = null;
  #page = null;
  #position = 0;
  #looked = 0;

  /** `onStep` is called with a step that was chosen, from 1, and `onLook` with one that is pointed at, or null. */
  constructor(list, { onStep, onLook }) {
    this.#list = list;
    const stepOf = ({ target }) => Number(target.closest?.("[data-step]")?.dataset.step ?? 0);
    list.addEventListener("click", (event) => stepOf(event) > 0 && onStep(stepOf(event)));
    const look = (step) => {
      if (step !== this.#looked) onLook(step || null);
      this.#looked = step;
    };
    // A list that scrolls below a pointer at rest makes it enter steps, but not move.
    list.addEventListener("pointermove", (event) => look(stepOf(event)));
    list.addEventListener("pointerleave", () => look(0));
    list.addEventListener("keydown", (event) => {
      const next = { ArrowDown: this.#position + 1, ArrowUp: this.#position - 1, Home: 1, End: this.#count }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      onStep(Math.min(this.#count, Math.max(1, next)));
    });
  }

  /** Lists a schedule of `count` steps; `text` returns the text of a step. */
  show(count, text) {
    this.#count = count;
    this.#text = text;
    this.#page = null;
    this.#list.style.setProperty("--digits", `${count.toLocaleString("en").length}ch`);
  }

  /** Marks a step as the current one; before the first step, marks none. Keeps the focus in the list if it is there. */
  moveTo(step) {
    const focused = this.#list.contains(document.activeElement);
    const page = Math.floor(Math.max(0, step - 1) / PAGE);
    if (page !== this.#page) this.#showPage(page);
    const before = this.#button(this.#position);
    before?.removeAttribute("aria-current");
    before?.setAttribute("tabindex", -1);
    this.#position = step;
    this.#looked = 0;
    const current = this.#button(step);
    current?.setAttribute("aria-current", "step");
    const stop = current ?? this.#button(1);
    stop?.setAttribute("tabindex", 0);
    if (current) this.#scrollTo(current.parentElement);
    else this.#list.scrollTop = 0;
    if (focused) stop?.focus();
  }

  #button(step) {
    return this.#list.querySelector(`li:not(.more) > [data-step="${step}"]`);
  }

  #showPage(page) {
    this.#page = page;
    const [first, last] = [page * PAGE + 1, Math.min(this.#count, (page + 1) * PAGE)];
    const items = [];
    for (let step = first; step <= last; step++) items.push(this.#item(step, step.toLocaleString("en"), this.#text(step)));
    const more = (step, from, to) => {
      const range = from === to ? `Step ${from.toLocaleString("en")} is` : `Steps ${from.toLocaleString("en")} to ${to.toLocaleString("en")} are`;
      const item = this.#item(step, "…", `${range} not listed here. Go to step ${step.toLocaleString("en")}.`);
      item.className = "more";
      item.firstChild.tabIndex = 0;
      return item;
    };
    if (first > 1) items.unshift(more(first - 1, 1, first - 1));
    if (last < this.#count) items.push(more(last + 1, last + 1, this.#count));
    this.#list.replaceChildren(...items);
  }

  #item(step, number, text) {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), { type: "button", tabIndex: -1 });
    button.dataset.step = step;
    for (const textContent of [number, text]) button.append(Object.assign(document.createElement("span"), { textContent }));
    item.append(button);
    return item;
  }

  // The list scrolls, the page does not.
  #scrollTo({ offsetTop, offsetHeight }) {
    const list = this.#list;
    const top = offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + offsetHeight - list.clientHeight;
  }
}
