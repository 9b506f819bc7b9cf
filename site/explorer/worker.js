// Runs the library beside the page, so that the page stays at hand while a plan is made.
//
// Messages that come before the library is loaded wait for it: a worker that listened only then would miss them.
const library = import("./paritas.js");

onmessage = async ({ data: { id, call, args } }) => {
  try {
    postMessage({ id, answer: (await library)[call](...args) });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};
