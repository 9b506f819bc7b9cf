// Calls of the library, answered by a worker. A new question ends one that still runs.

export class Library {
  #worker = null;
  #waiting = new Map();
  #next = 0;

  #start() {
    this.#worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.#worker.onmessage = ({ data: { id, answer, error, broken } }) => {
      const waiting = this.#waiting.get(id);
      if (!waiting) return;
      if (broken) return this.#fail(new Error(error));
      this.#waiting.delete(id);
      if (error === undefined) waiting.resolve(answer);
      else waiting.reject(new Error(error));
    };
    this.#worker.onerror = (event) => this.#fail(new Error(event.message || "the library could not be loaded"));
  }

  // A module that has failed, or been ended, is not used again.
  #fail(error) {
    this.#worker?.terminate();
    this.#worker = null;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  ask(call, ...args) {
    if (!this.#worker) this.#start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, call, args });
    });
  }

  /** Drops the questions that are not answered yet. */
  drop() {
    if (this.#waiting.size > 0) this.#fail(new Dropped());
  }
}

/** A newer question has taken the place of this one. */
export class Dropped extends Error {}
