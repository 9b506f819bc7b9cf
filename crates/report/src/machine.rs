//! Lines about the machine: `tune` and `doctor`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::{Name, PathKey};

/// A decision of `tune`, and its measurements.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DecisionLine {
    /// The question that the decision answers.
    pub question: &'static str,
    /// The code, shards or buffers that the decision applies to.
    pub about: String,
    /// The name of the best choice, or the weight that was found.
    pub chosen: String,
    /// All choices that were measured.
    pub choices: Vec<ChoiceEntry>,
}

/// A choice that was measured.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChoiceEntry {
    /// The name of the choice.
    pub name: String,
    /// The speed in GB/s, as the median of all samples.
    pub gbps: f64,
    /// The speed in GB/s, as the 90th percentile of all samples.
    pub gbps_p90: f64,
    /// The speed divided by that of the built-in default, as the median of all pairs.
    pub ratio: f64,
    /// The lower end of the 95 % confidence interval of ratio.
    pub ratio_low: f64,
    /// The upper end of the 95 % confidence interval of ratio.
    pub ratio_high: f64,
    /// The number of pairs that were measured.
    pub pairs: usize,
}

/// The settings that `tune` saved or deleted.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(extend("oneOf" = [
    {"required": ["forgotten"]}, {"required": ["tuning", "path"]},
    {"required": ["tuning", "path_bytes"]},
]))]
pub struct TuningLine {
    /// The path of the file of settings.
    #[serde(flatten)]
    path: Option<Name<PathKey>>,
    /// The settings that were saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SettingsEntry")]
    tuning: Option<SettingsEntry>,
    /// With --forget, whether there were settings to delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    forgotten: Option<bool>,
}

impl TuningLine {
    /// Creates the line for settings that were saved at a path.
    pub fn saved(tuning: SettingsEntry, path: Name<PathKey>) -> Self {
        Self { path: Some(path), tuning: Some(tuning), forgotten: None }
    }

    /// Creates the line for settings that were deleted, if there were any.
    pub fn forgotten(found: bool) -> Self {
        Self { path: None, tuning: None, forgotten: Some(found) }
    }
}

/// The settings that are fastest on this machine.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsEntry {
    /// The processor that was measured.
    pub processor: String,
    /// The kernel for packets.
    pub kernel: String,
    /// The kernel for words.
    pub word_kernel: String,
    /// The total number of bytes of a call's buffers above which results are written with
    /// non-temporal stores.
    pub nontemporal_from: usize,
    /// Whether wide stripes are prefetched.
    pub prefetch: bool,
    /// The number of threads that are worth using.
    pub threads: usize,
    /// The number of processors that the measuring process could use; the field threads applies
    /// only to processes that can use the same number.
    #[schemars(range(min = 1))]
    pub processors: Option<usize>,
    /// Whether the measuring process could run compiled kernels; the settings apply only to
    /// processes for which this is the same.
    pub compiles: Option<bool>,
    /// The number of bytes of buffers that each thread should have before another thread is used,
    /// for codes that were not measured.
    pub bytes_a_thread: usize,
    /// The way in which threads share the work of a call.
    pub split: String,
    /// The time of an XOR, in thousandths of the time of a copy.
    pub xor_weight: u32,
    /// The fastest settings of individual codes, by SPEC.
    pub codes: BTreeMap<String, CodeTuningEntry>,
}

/// The fastest settings of one code.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeTuningEntry {
    /// The name of the kernel.
    pub kernel: String,
    /// The pass that reduces XORs.
    pub pass: String,
    /// The number of bytes of buffers that each thread should have before another thread is used;
    /// null if this was not measured.
    pub bytes_a_thread: Option<usize>,
    /// The packet in bytes with which shards in memory are encoded fastest; null for codes without
    /// packets.
    #[schemars(range(min = 1))]
    pub packet: Option<usize>,
}

/// The processor and its kernels, printed by `doctor`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DoctorLine {
    /// The version of paritas.
    pub version: &'static str,
    /// The architecture of the processor.
    pub architecture: &'static str,
    /// The number of threads that the machine runs at once.
    pub threads: usize,
    /// The number of bytes of a packet in files.
    pub packet: usize,
    /// The name of the kernel that is used for files.
    pub kernel: &'static str,
    /// Whether settings that `tune` measured on this machine are used.
    pub tuned: bool,
    /// Whether compiled kernels can run.
    pub executable_memory: bool,
    /// The reason why compiled kernels cannot run; null if they can.
    pub executable_memory_error: Option<String>,
    /// The kernels that the processor can run.
    pub kernels: Vec<KernelEntry>,
    /// The kernels for codes in words that the processor can run.
    pub word_kernels: Vec<WordKernelEntry>,
}

/// A kernel for codes in words that this processor can run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WordKernelEntry {
    /// The name of the kernel.
    pub name: &'static str,
    /// Whether the kernel computes what the scalar kernel computes.
    pub right: bool,
}

/// A kernel that this processor can run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct KernelEntry {
    /// The name of the kernel.
    pub name: &'static str,
    /// The number of bytes of the kernel's vectors.
    pub vector_bytes: usize,
    /// Whether the kernel computes what the scalar kernel computes.
    pub right: bool,
    /// The reason why another kernel ran in its place; null if this kernel ran.
    pub fallback: Option<String>,
    /// Whether the kernel only repeats the papers' measurements and is never chosen.
    pub lab: bool,
}
