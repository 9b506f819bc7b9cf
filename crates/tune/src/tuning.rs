//! Tunings: what was found to be best on a machine, and the options that follow from it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use paritas::{
    CodecOptions, Kernel, KernelChoice, Objective, Pass, Spec, Split, Stores, WordKernel,
};
use serde::{Deserialize, Serialize};

use crate::measure::{Pairs, Ratio, Side};
use crate::memory::Memory;

/// Name under which the tuning is remembered.
const NAME: &str = "tuning-1";

/// The settings that were found to be best on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tuning {
    /// Processor that was measured.
    pub processor: String,
    /// Kernel of the packet layout, for codes that were not measured themselves.
    pub kernel: Kernel,
    /// Kernel of the word layout.
    pub word_kernel: WordKernel,
    /// Bytes of all buffers of a call together, from which on results are written with non-temporal
    /// stores.
    pub nontemporal_from: usize,
    /// Whether wide stripes are prefetched.
    pub prefetch: bool,
    /// Number of threads that are worth using.
    pub threads: usize,
    /// Bytes of buffers that each thread should have before another thread is worth using, for
    /// codes that were not measured themselves.
    pub bytes_a_thread: usize,
    /// How threads share the work of a call.
    pub split: Split,
    /// Time to add a packet to another, in thousandths of the time to copy one, for
    /// [`Objective::Weighted`]; the dissertation's value if it was not measured.
    #[serde(default = "printed_weight")]
    pub xor_weight: u32,
    /// Best settings of single codes, by spec.
    pub codes: BTreeMap<String, CodeTuning>,
}

/// The settings that were found to be best for one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CodeTuning {
    /// The kernel.
    pub kernel: Kernel,
    /// How XORs are reduced.
    pub pass: Pass,
    /// Bytes of buffers that each thread should have before another thread is worth using; `None`
    /// if this was not measured, as for LT codes and on machines where one thread is best.
    #[serde(default)]
    pub bytes_a_thread: Option<usize>,
}

/// One decision, and the measurements behind it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The setting that is decided.
    pub question: &'static str,
    /// The cases that the decision holds for: a code, a set of buffers and the like.
    pub about: String,
    /// All choices, each measured in pairs with the built-in one.
    pub choices: Vec<Choice>,
    /// The choice that was taken, or the weight.
    pub chosen: String,
}

/// A choice, and how fast it is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// GB/s of user data, the median of all samples.
    pub gbps: f64,
    /// GB/s that a tenth of the samples reach.
    pub gbps_p90: f64,
    /// How many times as fast as the built-in choice this one does the same work.
    pub ratio: Ratio,
}

impl Choice {
    /// Creates a choice from one side of some pairs; each sample was about `bytes` bytes of user
    /// data.
    pub(crate) fn new(name: String, bytes: usize, pairs: &Pairs, side: Side) -> Self {
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
    /// Returns what was remembered for this processor, if anything. Each process reads the file
    /// once.
    pub fn remembered() -> Option<&'static Self> {
        static REMEMBERED: OnceLock<Option<Tuning>> = OnceLock::new();
        let recall = || Self::recall(&Memory::of_user()?, &processor());
        REMEMBERED.get_or_init(recall).as_ref()
    }

    /// Returns what `memory` holds, if it is for `processor`.
    fn recall(memory: &Memory, processor: &str) -> Option<Self> {
        memory.recall(NAME).filter(|tuning: &Self| tuning.fits(processor))
    }

    /// Whether the tuning is for this processor, and names nothing that the processor lacks.
    fn fits(&self, processor: &str) -> bool {
        let mut kernels = self.codes.values().map(|code| code.kernel).chain([self.kernel]);
        self.processor == processor
            && kernels.all(Kernel::is_available)
            && self.word_kernel.is_available()
    }

    /// Keeps the tuning in the user's cache directory for later processes; returns its path.
    ///
    /// # Errors
    /// If there is no cache directory, or if it cannot be written.
    pub fn remember(&self) -> io::Result<PathBuf> {
        Memory::of_user().ok_or_else(no_directory)?.remember(NAME, self)
    }

    /// Forgets what was remembered; returns whether there was anything.
    ///
    /// # Errors
    /// If there is no cache directory, or if the file cannot be removed.
    pub fn forget() -> io::Result<bool> {
        Memory::of_user().ok_or_else(no_directory)?.forget(NAME)
    }

    /// Returns where tunings are remembered; `None` if the user has no cache directory.
    pub fn path() -> Option<PathBuf> {
        Some(Memory::of_user()?.path(NAME))
    }

    /// Returns the options for a code, as measured.
    pub fn options(&self, code: &Spec) -> CodecOptions {
        let mut options = CodecOptions::default()
            .kernel(KernelChoice::Prefer(self.kernel))
            .word_kernel(self.word_kernel)
            .stores(Stores::NonTemporalFrom(self.nontemporal_from))
            .prefetch(self.prefetch)
            .threads(self.threads)
            .bytes_a_thread(self.bytes_a_thread)
            .split(self.split);
        if let Some(tuned) = self.codes.get(&code.to_string()) {
            options.kernel = KernelChoice::Prefer(tuned.kernel);
            options.plan.pass = tuned.pass;
            options.bytes_a_thread = tuned.bytes_a_thread.unwrap_or(options.bytes_a_thread);
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

/// Returns the processor's name, as far as the system reports it.
pub(crate) fn processor() -> String {
    let facts = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuning() -> Tuning {
        let (kernel, pass) = (Kernel::Scalar, Pass::Direct);
        let of_code = CodeTuning { kernel, pass, bytes_a_thread: Some(99) };
        Tuning {
            processor: "this one".to_owned(),
            kernel: Kernel::best(64),
            word_kernel: WordKernel::Scalar,
            nontemporal_from: 1000,
            prefetch: false,
            threads: 3,
            bytes_a_thread: 77,
            split: Split::Rows,
            xor_weight: 725,
            codes: BTreeMap::from([("cauchy:k=6,m=3,w=4".to_owned(), of_code)]),
        }
    }

    #[test]
    fn options_follow() {
        let other = tuning().options(&"cauchy:k=4,m=2,w=3".parse().unwrap());
        let expected = CodecOptions::default()
            .kernel(KernelChoice::Prefer(Kernel::best(64)))
            .word_kernel(WordKernel::Scalar)
            .stores(Stores::NonTemporalFrom(1000))
            .prefetch(false)
            .threads(3)
            .bytes_a_thread(77)
            .split(Split::Rows);
        assert_eq!(other, expected);
        let measured = tuning().options(&"cauchy:k=6,m=3,w=4".parse().unwrap());
        assert_eq!(measured.kernel, KernelChoice::Prefer(Kernel::Scalar));
        assert_eq!((measured.plan.pass, measured.bytes_a_thread), (Pass::Direct, 99));
    }

    #[test]
    fn tunings_of_other_processors_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Memory::at(folder.path());
        memory.remember(NAME, &tuning()).unwrap();
        assert_eq!(Tuning::recall(&memory, "this one"), Some(tuning()));
        assert_eq!(Tuning::recall(&memory, "another"), None);
        let foreign = if cfg!(target_arch = "x86_64") { Kernel::Neon } else { Kernel::Sse2 };
        memory.remember(NAME, &Tuning { kernel: foreign, ..tuning() }).unwrap();
        assert_eq!(Tuning::recall(&memory, "this one"), None);
    }
}
