// The page's address: which code is shown, what is lost, what is asked. People write addresses by hand, too.

/** Returns the values of an address, as texts by their keys. */
export function readAddress(hash) {
  // A plus is a part of codes such as 10+4, and no blank.
  return Object.fromEntries(new URLSearchParams(hash.slice(1).replaceAll("+", "%2B")));
}

/** Returns the address of a state. */
export function addressOf({ code, lost, stage, dataOnly, fewestReads, beside }) {
  const parts = [["code", code], ["lost", lost.join(",")], stage && ["stage", stage], dataOnly && ["data", "1"], fewestReads && ["fewest", "1"], ["beside", beside]];
  // A blank is a plus in a form, and a plus would be read as a part of a code.
  const text = new URLSearchParams(parts.filter(Boolean)).toString().replaceAll("+", "%20");
  return `#${text.replaceAll("%3A", ":").replaceAll("%3D", "=").replaceAll("%2C", ",").replaceAll("%2B", "+")}`;
}

/** Judges the values of an address by the facts of its code. Returns what is asked, and the values that are ignored. */
export function judge(address, code) {
  const ignored = [];
  const numbers = (key, texts, low, high) => texts.flatMap((text) => {
    if (/^\d+$/.test(text) && Number(text) >= low && Number(text) <= high) return [Number(text)];
    ignored.push(`${key}=${text} (${code.spec} has ${low === high ? `only ${low}` : `${low} to ${high}`})`);
    return [];
  });
  const flag = (key) => {
    if (!["0", "1", undefined].includes(address[key])) ignored.push(`${key}=${address[key]} (it is 0 or 1)`);
    return address[key] === "1";
  };
  const [stage = null] = numbers("stage", address.stage ? [address.stage] : [], 1, code.stages.length);
  const { nodes } = code.stages[(stage ?? code.stages.length) - 1];
  const named = numbers("lost", (address.lost ?? "").split(",").filter(Boolean), 0, code.nodes - 1);
  const lost = [...new Set(named)].sort((a, b) => a - b).filter((node) => {
    if (!nodes.includes(node)) ignored.push(`lost=${node} (it holds nothing after stage ${stage})`);
    return nodes.includes(node);
  });
  const question = { lost, stage, dataOnly: flag("data"), fewestReads: flag("fewest") };
  return { question, ignored };
}
