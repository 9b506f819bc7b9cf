/** Why a call was refused. */
export class ParitasError extends Error {
  /** "Parameters", "NotEnough", "Length", "Spec", … as in the Rust library; "Request" for a request that does not fit. */
  readonly kind: string;
}

/** Encodes and reconstructs the shards of one code, in memory. */
export class Codec {
  /** @param code a code's name, such as "10+4" or "rdp:k=6" */
  constructor(code: string, options?: { packet?: number });
  /** The code's canonical name. */
  readonly code: string;
  /** Number of nodes: one shard for each. */
  readonly nodes: number;
  /** Numbers of the nodes that hold data. */
  readonly dataNodes: number[];
  /** Number of nodes that may be lost, whichever they are. */
  readonly tolerance: number;
  /** The length of a data shard must be a multiple of this. */
  readonly unit: number;
  /** Bytes of a packet. */
  readonly packet: number;
  /** Name of the kernel that runs. */
  readonly kernel: string;
  /** Cuts an object into data shards of equal length. */
  split(object: Uint8Array): Uint8Array[];
  /** Returns the parity shards of data shards. Where nodes hold data and parity, takes and returns the shards of all nodes.
   * Of a code of several stages (dpg), these are the shards of the first stage; `reconstruct` computes the others as if they
   * were lost. Codes whose shards have rows of several stages (`interleave=all`) are refused. */
  encode(shards: Uint8Array[]): Uint8Array[];
  /** Returns the shards of all nodes: those given, and those that are computed where `null` was given. */
  reconstruct(shards: (Uint8Array | null | undefined)[]): Uint8Array[];
  /** Returns the numbers of the nodes whose parity differs from the data. */
  verify(shards: Uint8Array[]): number[];
  /** Joins an object of `bytes` bytes from the shards of all nodes. */
  join(shards: (Uint8Array | null | undefined)[], bytes: number): Uint8Array;
  /** Gives the codec's memory back. */
  close(): void;
}

export interface Family {
  name: string;
  summary: string;
  limits: string;
  example: string;
}

export interface Cell {
  name: string;
  role: "data" | "parity" | "auxiliary";
  /** The node and the row that store the cell; null if it is stored nowhere. */
  node: number | null;
  row: number | null;
  stage: number;
  /** Numbers of the cells whose XOR defines this one; null where a code has too many. */
  sources: number[] | null;
}

export interface CodeFacts {
  spec: string;
  family: string;
  /** Bits of a word, if the code is over words; null if cells are packets. */
  word: number | null;
  nodes: number;
  dataNodes: number[];
  /** Null for an LT code. */
  tolerance: number | null;
  stages: { tolerance: number; nodes: number[] }[];
  cells: Cell[];
  /** Numbers of the data cells, in the order of the user's bytes. */
  data: number[];
  laneRows: number;
  /** (Stored bytes - data bytes) / data bytes. */
  overhead: number;
  ones: number;
  fewestOnes: number | null;
  lt: boolean;
}

export interface Schedule {
  ops: { target: string; accumulate: boolean; factor: number; sources: string[] }[];
  xors: number;
  copies: number;
  total: number;
  temps: number;
  ternary: number;
  text: string;
}

export interface Plan extends Schedule {
  /** Numbers of the cells that i0, i1, … of the schedule are. */
  inputs: number[];
  /** Numbers of the cells that o0, o1, … of the schedule are. */
  outputs: number[];
  /** Number of cells read from each node. */
  reads: number[];
}

export interface LossAnswer {
  recovered: boolean;
  /** What the library says if not all is recovered. */
  reason: string | null;
  /** The wanted cells; `missing` are the lost data cells that keep one from being computed. */
  cells: { cell: number; missing: number[] }[];
  /** How the cells that can be computed are computed. */
  plan: Plan | null;
}

export interface Question {
  /** The lost nodes. Without any, the question is how the stage is encoded. */
  lost?: number[];
  stage?: number;
  /** Whether only the data is wanted. */
  dataOnly?: boolean;
  /** Whether the fewest cells are read, instead of the fewest XORs made. */
  fewestReads?: boolean;
}

export interface Survey {
  /** Number of sets of that many nodes; null if there are too many to be counted through. */
  sets: number | null;
  tried: number;
  recovered: number;
  /** The XORs of all recovered sets together, the largest number of one set, and that set. */
  xors: number;
  worstXors: number;
  worst: number[];
  /** The cells that are read for all recovered sets together, and the largest number for one set. */
  reads: number;
  worstReads: number;
}

export function families(): Family[];
export function describe(code: string): CodeFacts;
export function plan(code: string, question?: Question): LossAnswer;
export function survey(code: string, survey: { lose: number; most: number }): Survey;
export function readSchedule(text: string): Schedule;
