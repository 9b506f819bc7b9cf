// Runs the library beside the page, so that the page stays at hand while a plan is made.
//
// Messages that come before the library is loaded wait for it: a worker that listened only then would miss them.
const library = import("./paritas.js");

onmessage = async ({ data: { id, call, args } }) => {
  try {
    postMessage({ id, answer: (await library)[call](...args) });
  } catch (error) {
    // The library refuses with its own kind of error. After any other, such as a trap, it cannot be used again.
    postMessage({ id, error: error.message, broken: error.name !== "ParitasError" });
  }
};
