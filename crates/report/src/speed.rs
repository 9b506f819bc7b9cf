//! Lines about the speed of codes: `bench`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The speed of a code, measured by `bench`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BenchLine {
    /// What was measured.
    #[serde(flatten)]
    pub run: BenchFields,
    /// The nodes that decoding computes; empty for other operations, null for an LT code.
    pub erased: Option<Vec<usize>>,
    /// The number of bytes of a packet; null for an LT code.
    pub packet: Option<usize>,
    /// The order in which operations were planned; null for an LT code.
    pub order: Option<OrderWord>,
    /// The way in which threads shared the work: stripe if it cannot be shared as requested; null
    /// for an LT code.
    pub split: Option<SplitWord>,
    /// The number of pairs that count, which are all that were measured.
    pub kept: usize,
    /// The speed in GB/s, as the 90th percentile of all samples.
    pub gbps_p90: f64,
    /// The speed of the slowest sample in GB/s.
    pub gbps_min: f64,
    /// The speed of the fastest sample in GB/s.
    pub gbps_max: f64,
    /// The speed of the roofline in GB/s, as the median of all samples.
    pub roofline_gbps: f64,
    /// The speed of the roofline in GB/s, as the 90th percentile of all samples.
    pub roofline_gbps_p90: f64,
    /// The speed of the code divided by the roofline's, as the median of all pairs.
    pub roofline_fraction: f64,
    /// The lower end of the 95 % confidence interval of roofline_fraction.
    pub roofline_fraction_low: f64,
    /// The upper end of the 95 % confidence interval of roofline_fraction.
    pub roofline_fraction_high: f64,
    /// The number of seconds of the first run, which plans and compiles.
    pub first_seconds: f64,
    /// The blocks of an LT code.
    #[serde(flatten)]
    pub blocks: Option<BenchBlocksFields>,
}

/// The measurement: what was measured, in what memory, and how certain the result is.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BenchFields {
    /// The canonical SPEC.
    pub code: String,
    /// The operation.
    pub op: OperationWord,
    /// The stage that is computed, or after which nodes are lost.
    pub stage: u8,
    /// The requested number of bytes of all shards together.
    pub set_bytes: usize,
    /// The number of bytes of a shard.
    pub shard_bytes: usize,
    /// The position of shards in memory.
    pub align: AlignWord,
    /// The name of the kernel that ran.
    pub kernel: &'static str,
    /// The largest number of threads; 0 means one for each processor.
    pub threads: usize,
    /// The requested number of pairs.
    pub reps: u32,
    /// The number of pairs that were measured.
    pub pairs: usize,
    /// The speed in GB/s, as the median of all samples.
    pub gbps_median: f64,
    /// The comparison with the roofline, or with the other run.
    pub verdict: VerdictWord,
    /// Whether the comparison is uncertain.
    pub noisy: bool,
}

/// The blocks of an LT code that was measured.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct BenchBlocksFields {
    /// For an LT code, the number of bytes of a block.
    pub block_bytes: usize,
    /// For an LT code, the number of blocks that were made or received.
    pub blocks: usize,
    /// For an LT code, the number of blocks that were received as a multiple of k; null for encode.
    pub reception: Option<f64>,
    /// For an LT code, the seed of the order in which blocks were received; null for encode.
    pub seed: Option<u64>,
}

/// The speed of a code with some settings, divided by its speed with other settings or by the speed
/// of another code, measured by `bench --against`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ComparisonLine {
    /// What was measured.
    #[serde(flatten)]
    pub run: BenchFields,
    /// The nodes that decoding computes; empty for other operations.
    pub erased: Vec<usize>,
    /// The number of bytes of a packet.
    pub packet: usize,
    /// The order in which operations were planned.
    pub order: OrderWord,
    /// The way in which threads shared the work: stripe if it cannot be shared as requested.
    pub split: SplitWord,
    /// The way in which threads shared the work of the other run.
    pub against_split: SplitWord,
    /// The settings of the other run that differ, as on the command line.
    pub against: String,
    /// The canonical SPEC of the other run.
    pub against_code: String,
    /// The name of the kernel of the other run.
    pub against_kernel: &'static str,
    /// The speed of the other run in GB/s, as the median of all samples.
    pub against_gbps: f64,
    /// The speed divided by the other run's, as the median of all pairs.
    pub ratio: f64,
    /// The lower end of the 95 % confidence interval of ratio.
    pub ratio_low: f64,
    /// The upper end of the 95 % confidence interval of ratio.
    pub ratio_high: f64,
}

/// An operation on shards in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationWord {
    /// All parity from all data.
    Encode,
    /// Lost nodes from the others.
    Decode,
    /// Parity after a change of one data node.
    Update,
    /// The parity of the second stage.
    Promote,
}

/// The position of shards in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlignWord {
    /// At cache lines, each shifted against the one before.
    Staggered,
    /// Each at the start of a page.
    Page,
}

/// The order in which operations are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderWord {
    /// One wanted packet after the other.
    Parity,
    /// One source packet after the other.
    Data,
    /// The order that a compiled kernel runs.
    Fused,
}

/// The way in which threads share the work of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SplitWord {
    /// Each takes some of the stripes.
    Stripe,
    /// Each computes some of the nodes.
    Node,
    /// Each takes some bytes of every packet.
    Columns,
    /// Each computes some rows of every node.
    Rows,
}

/// Which of two measured sides is faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum VerdictWord {
    /// The code, or the settings given first.
    #[serde(rename = "faster")]
    Faster,
    /// The other side.
    #[serde(rename = "slower")]
    Slower,
    /// Neither.
    #[serde(rename = "level")]
    Level,
    /// Unknown, because the samples differ too much or are too few.
    #[serde(rename = "too noisy")]
    TooNoisy,
}
