//! Settings that are measured on the machine at hand, and remembered.
//!
//! Processors with the same instruction sets differ in which of them is fastest, in how large a set
//! of buffers pays for stores past the cache, and in what a second thread is worth. [`measure`] finds
//! out; [`Tuning::remember`] keeps the answer in the user's cache directory, from where
//! [`CodecOptions::for_this_machine`] takes it. Where nothing was ever measured, the built-in defaults
//! serve.
//!
//! Only *how* bytes are computed is tuned: kernels, schedules, stores, threads and splits. What is
//! computed, and so stored, never depends on it.

mod decide;
mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::codec::{CodecOptions, Sums};
use crate::define::spec::Spec;
use crate::measure::{Pairs, Ratio, Side};
use crate::plan::Pass;
use crate::plan::cost::Objective;
use crate::run::kernel::Stores;
use crate::run::parallel::Split;
use crate::run::select::{Kernel, KernelChoice};
use crate::run::words::select::WordKernel;

pub use decide::measure;

/// The codes that are measured unless others are asked for.
pub const USUAL_CODES: [&str; 6] = ["4+2", "6+3", "8+3", "10+4", "12+4", "20+4"];

/// What was found to be best here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// The processor that was measured.
    pub processor: String,
    /// The kernel of the packet layout for codes that were not measured themselves.
    pub kernel: Kernel,
    /// The kernel of the word layout.
    pub word_kernel: WordKernel,
    /// What computes plain sums in the word layout.
    pub sums: Sums,
    /// From how many bytes of all buffers of a call on results are stored past the cache.
    pub past_cache_from: usize,
    /// Whether wide stripes are prefetched.
    pub prefetch: bool,
    /// How many threads are worth their while.
    pub threads: usize,
    /// How many bytes of buffers a thread should have for another to be worth its while.
    pub bytes_a_thread: usize,
    /// How they share a call's work.
    pub split: Split,
    /// How many thousandths of the time of copying a packet adding it to another takes, for
    /// [`Objective::Weighted`]; the dissertation's where it was not measured.
    #[serde(default = "printed_weight")]
    pub xor_weight: u32,
    /// What is best for single codes, by spec.
    pub codes: BTreeMap<String, CodeTuning>,
}

/// What was found to be best for one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeTuning {
    /// The kernel.
    pub kernel: Kernel,
    /// How XORs are reduced.
    pub pass: Pass,
}

/// One decision, and the measurements behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What is decided.
    pub question: &'static str,
    /// For which code, set of buffers and the like.
    pub about: String,
    /// All choices, each measured in pairs with the built-in one.
    pub choices: Vec<Choice>,
    /// The one that was taken, or the weight.
    pub chosen: String,
}

/// A choice, and how fast it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// GB/s of user data, the median of all samples.
    pub gbps: f64,
    /// The GB/s that a tenth of the samples reach.
    pub gbps_p90: f64,
    /// How many times as fast as the built-in choice it does the same work.
    pub ratio: Ratio,
}

impl Choice {
    /// One side of some pairs, each sample of which was about `bytes` of user data.
    fn new(name: String, bytes: usize, pairs: &Pairs, side: Side) -> Self {
        let speed = |seconds: Option<f64>| seconds.map_or(0.0, |s| bytes as f64 / s / 1e9);
        let spread = pairs.spread(side);
        Self {
            name,
            gbps: speed(spread.map(|spread| spread.median)),
            gbps_p90: speed(spread.map(|spread| spread.p10)),
            ratio: pairs.ratio().filter(|_| side == Side::Subject).unwrap_or(Ratio::ONE),
        }
    }
}

impl Tuning {
    /// What was remembered for this processor, if anything. Read once a process.
    pub fn remembered() -> Option<&'static Self> {
        static REMEMBERED: OnceLock<Option<Tuning>> = OnceLock::new();
        REMEMBERED.get_or_init(Self::read).as_ref()
    }

    /// How many thousandths of a copy an XOR costs: as measured, or as printed where nothing was.
    pub fn xor_weight_here() -> u32 {
        Self::remembered().map_or(Objective::PRINTED_WEIGHT, |tuning| tuning.xor_weight)
    }

    fn read() -> Option<Self> {
        let text = fs::read_to_string(Self::path()?).ok()?;
        let tuning: Self = serde_json::from_str(&text).ok()?;
        tuning.fits(&processor()).then_some(tuning)
    }

    /// Whether the tuning is for this processor, and names nothing that it lacks.
    fn fits(&self, processor: &str) -> bool {
        let mut kernels = self.codes.values().map(|code| code.kernel).chain([self.kernel]);
        self.processor == processor
            && kernels.all(Kernel::is_available)
            && self.word_kernel.is_available()
    }

    /// Keeps the tuning for later processes; returns where.
    ///
    /// # Errors
    /// When there is no cache directory, or it cannot be written.
    pub fn remember(&self) -> io::Result<PathBuf> {
        let path = Self::path().ok_or_else(no_directory)?;
        let directory = path.parent().ok_or_else(no_directory)?;
        fs::create_dir_all(directory)?;
        // Under another name first, so that no process reads half of it.
        let half = directory.join(format!("tuning.{}.tmp", std::process::id()));
        fs::write(&half, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&half, &path)?;
        Ok(path)
    }

    /// Forgets what was remembered; returns whether there was anything.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget() -> io::Result<bool> {
        match fs::remove_file(Self::path().ok_or_else(no_directory)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where tunings are remembered, if the user has a cache directory.
    pub fn path() -> Option<PathBuf> {
        Some(dirs::cache_dir()?.join("paritas").join("tuning-1.json"))
    }

    /// The options for a code, as measured.
    pub fn options(&self, code: &Spec) -> CodecOptions {
        let mut options = CodecOptions {
            kernel: KernelChoice::Prefer(self.kernel),
            word_kernel: Some(self.word_kernel),
            sums: self.sums,
            stores: Stores::PastCacheFrom(self.past_cache_from),
            prefetch: self.prefetch,
            threads: self.threads,
            bytes_a_thread: self.bytes_a_thread,
            split: self.split,
            ..CodecOptions::default()
        };
        if let Some(tuned) = self.codes.get(&code.to_string()) {
            options.kernel = KernelChoice::Prefer(tuned.kernel);
            options.plan.pass = tuned.pass;
        }
        options
    }
}

fn printed_weight() -> u32 {
    Objective::PRINTED_WEIGHT
}

fn no_directory() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the user has no cache directory")
}

/// The processor's name, as far as the system tells it.
fn processor() -> String {
    let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

impl CodecOptions {
    /// The options for a code as tuned for this machine, or the defaults where nothing was tuned.
    pub fn for_this_machine(code: &Spec) -> Self {
        Tuning::remembered().map_or_else(Self::default, |tuning| tuning.options(code))
    }
}
