//! Lines about codes and schedules: `codes` and `schedule`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{DrawingKey, Name};

/// A family of codes, with the figures of an example.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FamilyLine {
    /// The name of the family.
    pub name: &'static str,
    /// A description of the family in a few words.
    pub summary: &'static str,
    /// The limits of its parameters.
    pub limits: &'static str,
    /// An example of the family, as a canonical SPEC.
    pub example: &'static str,
    /// The figures of the example.
    #[serde(flatten)]
    pub figures: FiguresFields,
}

/// The size and the cost of a code.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct FiguresFields {
    /// The number of nodes that may be lost, whichever they are; null for an LT code.
    pub tolerance: Option<usize>,
    /// The overhead: (stored bytes - data bytes) / data bytes.
    pub overhead: f64,
    /// The number of ones of the bit matrix.
    pub ones: usize,
    /// A lower bound on the number of ones of any code of this shape; null for an LT code.
    pub fewest_ones: Option<usize>,
    /// ones divided by fewest_ones; null for an LT code.
    pub density: Option<f64>,
}

/// A code, printed by `codes SPEC`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CodeLine {
    /// The canonical SPEC.
    pub code: String,
    /// The stages, from the first.
    pub stages: Vec<CodeStageEntry>,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes that hold data.
    pub data_nodes: usize,
    /// The number of data packets of a stripe.
    pub data_cells: usize,
    /// The number of parity packets of a stripe.
    pub parity_cells: usize,
    /// The figures of the code.
    #[serde(flatten)]
    pub figures: FiguresFields,
    /// The named lists of numbers that determine the matrix, as shards store them.
    pub pin: BTreeMap<String, Vec<u64>>,
    /// A code in the word layout that is faster on processors with GFNI; null if there is none.
    pub faster: Option<FasterCodeEntry>,
    /// For a matrix that the user gave, the losses that it survives, for each number of lost nodes
    /// from 1 to m; null for other codes.
    pub losses: Option<Vec<SurvivedLossesEntry>>,
    /// With --matrix, the bit matrix: a string for each parity packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>", inner(regex(pattern = "^[01]*$")))]
    pub matrix: Option<Vec<String>>,
    /// With --matrix, the node and the row of each parity packet, in the order of the matrix's
    /// rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Option<[usize; 2]>>")]
    pub matrix_rows: Option<Vec<Option<[usize; 2]>>>,
    /// With --matrix, the node and the row of each data packet, in the order of the matrix's
    /// columns; null for one that is stored on no node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Option<[usize; 2]>>")]
    pub matrix_columns: Option<Vec<Option<[usize; 2]>>>,
    /// With --svg, the path of the drawing.
    #[serde(flatten)]
    pub svg: Option<Name<DrawingKey>>,
    /// For an LT code, the number of blocks that decoding takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ReceptionEntry")]
    pub reception: Option<ReceptionEntry>,
}

/// A stage of a code.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct CodeStageEntry {
    /// The number of nodes after the stage.
    pub nodes: usize,
    /// The number of nodes that may be lost after the stage, whichever they are.
    pub tolerance: usize,
    /// The number of packets of a stripe that the stage reads.
    pub reads: usize,
    /// The number of packets of a stripe that the stage computes.
    pub makes: usize,
}

/// The number of losses of some number of nodes that a code survives.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct SurvivedLossesEntry {
    /// The number of nodes lost at once.
    #[schemars(range(min = 1))]
    pub lost: usize,
    /// The number of sets of that many nodes; 2^64 - 1 if there are more.
    #[schemars(range(min = 1))]
    pub sets: u64,
    /// The number of sets that were tried: all, or a random sample of 10,000.
    #[schemars(range(min = 1))]
    pub tried: u64,
    /// The number of tried sets after whose loss all data can be computed.
    pub survived: u64,
}

/// A code in the word layout that is faster on processors with GFNI.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FasterCodeEntry {
    /// The SPEC of the code in the word layout.
    pub code: String,
    /// The measured shape that is most similar, as k+m.
    pub measured: String,
    /// The speed in GB/s of the code in the packet layout at the measured shape.
    pub gbps: f64,
    /// The speed in GB/s of the code in the word layout at the measured shape.
    pub words_gbps: f64,
}

/// The number of blocks that decoding an LT code takes, by simulation.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ReceptionEntry {
    /// The number of blocks that can be received, in random order.
    pub blocks: usize,
    /// The average number of blocks needed, as a multiple of k; null if all blocks were too few in
    /// every run.
    pub average: Option<f64>,
    /// The multiple of k that sufficed in 99.9 % of all runs, or in all runs if they are fewer than
    /// a thousand; null if even all blocks were too few.
    pub p999: Option<f64>,
    /// The number of runs of the simulation.
    pub runs: usize,
    /// The number of runs in which even all blocks did not suffice.
    pub failures: usize,
}

/// An XOR schedule and its costs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ScheduleLine {
    /// The canonical SPEC.
    pub code: String,
    /// The nodes that are computed from the others; empty for encoding.
    pub erased: Vec<usize>,
    /// The stage that is computed, or after which nodes are lost.
    pub stage: u8,
    /// The pass that reduces XORs.
    pub pass: String,
    /// The order of the operations.
    pub order: String,
    /// The quantity that was minimised.
    pub cost: String,
    /// The cost of an XOR as a multiple of that of a copy; null unless cost is weighted.
    pub weight: Option<f64>,
    /// Whether the schedule reads the fewest packets that the search found.
    pub fewest_reads: bool,
    /// The kernel whose instructions are counted.
    pub kernel: &'static str,
    /// The number of ones of the bit matrix.
    pub ones: usize,
    /// The number of two-input XORs.
    pub xors: usize,
    /// The number of operations that set their target instead of adding to it.
    pub copies: usize,
    /// The number of XORs and copies together.
    pub total: usize,
    /// The number of operations.
    pub ops: usize,
    /// The number of temporaries.
    pub temps: usize,
    /// The number of XORs if an XOR takes up to three inputs.
    pub ternary: usize,
    /// The instructions of the compiled kernel.
    #[serde(flatten)]
    pub instructions: InstructionsFields,
    /// The number of packets that are read from each node.
    pub reads: Vec<usize>,
    /// The number of seconds that planning took; null after a search.
    pub plan_seconds: Option<f64>,
    /// The number of steps that planning was allowed to take.
    pub plan_budget: u64,
    /// The number of steps that planning took.
    pub plan_steps: u64,
    /// The parts of planning that were left out because they take more steps than were left.
    pub plan_cut: Vec<CutWord>,
    /// Whether the schedule comes from the list of those that were refined beforehand, for common
    /// codes.
    pub plan_known: bool,
    /// The search for the matrix; null if there was none.
    pub search: Option<SearchEntry>,
    /// The packets of rule (3.1): the largest with which a stripe fits into a cache, at least 64
    /// bytes.
    pub packet_rule: PacketRuleEntry,
    /// With --text, the node and the row of each input; null for one that is stored on no node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Option<[usize; 2]>>")]
    pub inputs: Option<Vec<Option<[usize; 2]>>>,
    /// With --text, the node and the row of each output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Option<[usize; 2]>>")]
    pub outputs: Option<Vec<Option<[usize; 2]>>>,
    /// With --text, the operations, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub text: Option<String>,
    /// With --asm, the machine code, one instruction a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub asm: Option<String>,
    /// With --asm, --set or --align, the program of a call over shards in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RunsEntry")]
    pub runs: Option<RunsEntry>,
}

/// What a compiled kernel executes for each vector of a packet.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub struct InstructionsFields {
    /// The number of instructions that the compiled kernel executes for each vector of a packet;
    /// null if no kernel is compiled.
    pub instructions: Option<usize>,
    /// The number of loads that the compiled kernel executes for each vector of a packet; null if
    /// no kernel is compiled.
    pub loads: Option<usize>,
    /// The number of stores that the compiled kernel executes for each vector of a packet; null if
    /// no kernel is compiled.
    pub stores: Option<usize>,
}

/// A search for a matrix.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SearchEntry {
    /// The method, as --search names it.
    pub method: String,
    /// The seed of the search.
    pub seed: u64,
    /// The number of schedules that were planned.
    pub evaluations: usize,
    /// The number of children that a genetic algorithm had; 0 for other methods.
    pub children: usize,
    /// The number of children that are better than at least one of their parents.
    pub better_children: usize,
}

/// The packets of rule (3.1): the largest with which a stripe fits into a cache, at least 64 bytes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PacketRuleEntry {
    /// The number of packets that a stripe needs: those that are read, the results and the
    /// temporaries.
    pub stripe_packets: usize,
    /// The caches of the first processor; empty if the system does not describe them, or if the
    /// code has no packets.
    pub caches: Vec<CacheEntry>,
}

/// A cache, and the packet with which a stripe fits into it.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct CacheEntry {
    /// The level of the cache.
    #[schemars(range(min = 1))]
    pub level: u8,
    /// The number of bytes of the cache.
    #[schemars(range(min = 1))]
    pub cache_bytes: usize,
    /// The number of bytes of a packet.
    #[schemars(range(min = 64))]
    pub packet: usize,
}

/// The program of a call over shards in memory.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunsEntry {
    /// The name of the kernel that runs.
    pub kernel: &'static str,
    /// The number of bytes of all shards of the call together.
    pub set_bytes: usize,
    /// The alignment of shards in bytes.
    pub align: usize,
    /// Whether results are written with non-temporal stores.
    pub nontemporal: bool,
    /// Whether the parts run in turn over tiles of stripes.
    pub in_turn: bool,
    /// The parts of the program, in order.
    pub parts: Vec<RunPartEntry>,
}

/// A part of the program of a call.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RunPartEntry {
    /// The buffer and the row of each input.
    pub inputs: Vec<[usize; 2]>,
    /// The buffer and the row of each output.
    pub outputs: Vec<[usize; 2]>,
    /// Whether inputs are copied to a scratch buffer first.
    pub stages_inputs: bool,
    /// Whether inputs are prefetched.
    pub prefetches: bool,
    /// The instructions of the compiled kernel.
    #[serde(flatten)]
    pub instructions: InstructionsFields,
    /// With --text, the operations, one a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub text: Option<String>,
    /// With --asm, the machine code, one instruction a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub asm: Option<String>,
}

/// A part of planning that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CutWord {
    /// The search for a smaller set of cells to read.
    Reads,
    /// Following the code's own equations after every equation has at least two unknowns.
    Structure,
    /// Expressing each lost cell by cells at hand.
    Elimination,
    /// Choosing the pivots that cause the least fill-in.
    Pivots,
    /// Shortening every set of equations that was found.
    Alternatives,
    /// Common pairs across all rows.
    Pairs,
    /// Some or all rounds of refining.
    Refining,
}
