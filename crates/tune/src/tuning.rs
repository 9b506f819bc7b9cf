//! Tunings: the settings that are best on a machine, and the options that follow from them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use paritas::research::{Objective, Pass, WordKernel, can_compile};
use paritas::{Code, CodecOptions, Kernel, KernelChoice, Spec, Split, Stores};
use serde::{Deserialize, Serialize};

use crate::measure::{Pairs, Ratio, Side};
use crate::memory::RememberedFolder;

/// Name under which the tuning is remembered.
const NAME: &str = "tuning-1";

/// The best settings that were found on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tuning {
    /// Processor that was measured.
    pub processor: String,
    /// Kernel of the packet layout, for codes that were not measured themselves.
    pub kernel: Kernel,
    /// Kernel of the word layout.
    pub word_kernel: WordKernel,
    /// Total bytes of a call's buffers above which results are written with non-temporal stores.
    pub nontemporal_from: usize,
    /// Whether wide stripes are prefetched.
    pub prefetch: bool,
    /// Number of threads that are worth using.
    pub threads: usize,
    /// Number of processors that the measuring process could use. With another number, for example
    /// after the machine was resized, `threads` does not apply. `None` in files of earlier
    /// versions.
    #[serde(default)]
    pub(crate) processors: Option<usize>,
    /// Whether the measuring process could run compiled kernels. The settings do not apply to
    /// processes that differ in this. `None` in files of earlier versions.
    #[serde(default)]
    pub(crate) compiles: Option<bool>,
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

/// The best settings that were found for one code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CodeTuning {
    /// The kernel.
    pub kernel: Kernel,
    /// How XORs are reduced.
    pub pass: Pass,
    /// Bytes of buffers that each thread should have before another thread is worth using; `None`
    /// if this was not measured, for example for LT codes and on machines where one thread is best.
    #[serde(default)]
    pub bytes_a_thread: Option<usize>,
    /// Bytes of the packet with which shards in memory are encoded fastest, with the number of
    /// threads that are worth using. It is not applied to codecs automatically, because the packet
    /// size is part of the stored format. `None` if the code has no packets, and in files of
    /// earlier versions.
    #[serde(default)]
    pub packet: Option<usize>,
}

impl CodeTuning {
    pub(crate) fn new(kernel: Kernel, pass: Pass) -> Self {
        Self { kernel, pass, bytes_a_thread: None, packet: None }
    }
}

/// One decision, and the measurements behind it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Decision {
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
    /// GB/s of user data, the 90th percentile of all samples.
    pub gbps_p90: f64,
    /// Speed of this choice for the same work, divided by that of the built-in choice.
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
    /// Returns the remembered tuning for this processor, if there is one. Each process reads the
    /// file once.
    pub fn remembered() -> Option<&'static Self> {
        static REMEMBERED: OnceLock<Option<Tuning>> = OnceLock::new();
        let recall = || Self::recall(&RememberedFolder::of_user()?, &processor());
        REMEMBERED.get_or_init(recall).as_ref()
    }

    /// Returns the tuning in `memory`, if it is for `processor`.
    fn recall(memory: &RememberedFolder, processor: &str) -> Option<Self> {
        memory.recall(NAME).filter(|tuning: &Self| tuning.fits(processor))
    }

    /// Whether the tuning is for this processor and for processes like this one, and the processor
    /// can run all kernels that it names.
    fn fits(&self, processor: &str) -> bool {
        let mut kernels = self.codes.values().map(|code| code.kernel).chain([self.kernel]);
        self.processor == processor
            && self.compiles.is_none_or(|compiles| compiles == can_compile().is_ok())
            && kernels.all(Kernel::is_available)
            && self.word_kernel.is_available()
    }

    /// Keeps the tuning in the user's cache directory for later processes; returns its path. Codes
    /// that were measured on this machine earlier, and not now, keep their settings if the earlier
    /// tuning found the same number of threads, under the same conditions (the number of
    /// processors, and whether compiled kernels may run).
    ///
    /// # Errors
    /// If there is no cache directory, or if it cannot be written.
    pub fn remember(&mut self) -> io::Result<PathBuf> {
        self.remember_in(&RememberedFolder::of_user().ok_or_else(no_directory)?)
    }

    fn remember_in(&mut self, memory: &RememberedFolder) -> io::Result<PathBuf> {
        let machine = |tuning: &Self| (tuning.processors, tuning.compiles, tuning.threads);
        let earlier = Self::recall(memory, &self.processor);
        if let Some(earlier) = earlier.filter(|earlier| machine(earlier) == machine(self)) {
            for (code, tuned) in earlier.codes {
                self.codes.entry(code).or_insert(tuned);
            }
        }
        memory.remember(NAME, self)
    }

    /// Deletes the remembered tuning; returns whether there was one.
    ///
    /// # Errors
    /// If there is no cache directory, or if the file cannot be removed.
    pub fn forget() -> io::Result<bool> {
        RememberedFolder::of_user().ok_or_else(no_directory)?.forget(NAME)
    }

    /// Returns the path at which tunings are remembered; `None` if the user has no cache directory.
    pub fn path() -> Option<PathBuf> {
        Some(RememberedFolder::of_user()?.path(NAME))
    }

    /// Returns the packet size with which a code is encoded fastest; `None` if it was not measured.
    pub fn packet(&self, code: &Spec) -> Option<usize> {
        self.codes.get(&code.to_string())?.packet
    }

    /// Returns the options for a code, as measured.
    pub fn options(&self, code: &Spec) -> CodecOptions {
        self.options_on(code, processors())
    }

    /// As [`Tuning::options`], on a machine of this many processors.
    fn options_on(&self, code: &Spec, processors: usize) -> CodecOptions {
        let mut options = CodecOptions::default()
            .kernel(KernelChoice::Prefer(self.kernel))
            .word_kernel(self.word_kernel)
            .stores(Stores::NonTemporalFrom(self.nontemporal_from))
            .prefetch(self.prefetch)
            .bytes_a_thread(self.bytes_a_thread)
            .split(self.split_of(code));
        if self.processors.is_none_or(|measured| measured == processors) {
            options = options.threads(self.threads);
        }
        if let Some(tuned) = self.codes.get(&code.to_string()) {
            options.kernel = KernelChoice::Prefer(tuned.kernel);
            options.plan.pass = tuned.pass;
            options.bytes_a_thread = tuned.bytes_a_thread.unwrap_or(options.bytes_a_thread);
        }
        options
    }

    /// Returns how threads share the work of a code: as measured, unless its layout has no rows.
    fn split_of(&self, code: &Spec) -> Split {
        match self.split {
            Split::Rows if is_in_words(code) => Split::default(),
            split => split,
        }
    }
}

/// Whether a code is in the word layout.
fn is_in_words(code: &Spec) -> bool {
    Code::new(code).is_ok_and(|code| code.symbols().is_some())
}

fn printed_weight() -> u32 {
    Objective::PRINTED_WEIGHT
}

fn no_directory() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the user has no cache directory")
}

/// Returns the processor's name, as far as the system reports it.
pub(crate) fn processor() -> String {
    name_in(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// Returns the processor's name in the report of Linux. On AArch64 Linux does not report a name,
/// but the numbers of the designer and of the design.
fn name_in(facts: &str) -> String {
    let fact = |key: &str| {
        let value = |line: &str| Some(line.strip_prefix(key)?.split_once(':')?.1.trim().to_owned());
        facts.lines().find_map(value)
    };
    let design = || {
        let (designer, part) = (fact("CPU implementer")?, fact("CPU part")?);
        Some(format!("{} {designer} {part}", std::env::consts::ARCH))
    };
    let name = fact("model name").or_else(design);
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Returns the number of processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuning() -> Tuning {
        let (kernel, pass) = (Kernel::Scalar, Pass::Direct);
        let of_code = CodeTuning { kernel, pass, bytes_a_thread: Some(99), packet: Some(2048) };
        Tuning {
            processor: "this one".to_owned(),
            kernel: Kernel::best(64),
            word_kernel: WordKernel::Scalar,
            nontemporal_from: 1000,
            prefetch: false,
            threads: 3,
            processors: Some(4),
            compiles: None,
            bytes_a_thread: 77,
            split: Split::Rows,
            xor_weight: 725,
            codes: BTreeMap::from([("cauchy:k=6,m=3,w=4".to_owned(), of_code)]),
        }
    }

    #[test]
    fn options_follow() {
        let other = tuning().options_on(&"cauchy:k=4,m=2,w=3".parse().unwrap(), 4);
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
        assert_eq!(measured.packet, CodecOptions::default().packet, "packets are stored");
        assert_eq!(tuning().packet(&"cauchy:k=6,m=3,w=4".parse().unwrap()), Some(2048));
        assert_eq!(tuning().packet(&"cauchy:k=4,m=2,w=3".parse().unwrap()), None);
        // Words have no rows, so a codec would refuse to split them by rows.
        let words = tuning().options(&"isal-cauchy:k=4,m=2".parse().unwrap());
        assert_eq!(words.split, Split::Stripe);
    }

    /// On a machine that was resized, the measured number of threads is not used.
    #[test]
    fn threads_are_for_as_many_processors_as_were_measured() {
        let spec = "cauchy:k=4,m=2,w=3".parse().unwrap();
        let threads = |tuning: Tuning, processors| tuning.options_on(&spec, processors).threads;
        assert_eq!(threads(tuning(), 4), CodecOptions::default().threads(3).threads);
        assert_eq!(threads(tuning(), 64), CodecOptions::default().threads);
        let mut earlier = serde_json::to_value(tuning()).unwrap();
        earlier.as_object_mut().unwrap().remove("processors");
        let earlier: Tuning = serde_json::from_value(earlier).unwrap();
        assert_eq!(threads(earlier, 64), CodecOptions::default().threads(3).threads);
    }

    #[test]
    fn processors_have_names_or_numbers() {
        let x86 = "processor\t: 0\nmodel name\t: A: fast one\nmodel name\t: another\n";
        assert_eq!(name_in(x86), "A: fast one");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(name_in(arm), format!("{} 0x41 0xd0c", std::env::consts::ARCH));
        assert_eq!(name_in(""), std::env::consts::ARCH);
    }

    #[test]
    fn codes_that_were_measured_before_keep_their_settings() {
        let folder = tempfile::tempdir().unwrap();
        let memory = RememberedFolder::at(folder.path());
        tuning().remember_in(&memory).unwrap();
        let of_code = CodeTuning::new(Kernel::Scalar, Pass::Smart);
        let codes = BTreeMap::from([("cauchy:k=4,m=2,w=3".to_owned(), of_code)]);
        let mut new = Tuning { codes: codes.clone(), xor_weight: 1, ..tuning() };
        new.remember_in(&memory).unwrap();
        let both = Tuning::recall(&memory, "this one").unwrap();
        assert_eq!((both.xor_weight, both.codes.len()), (1, 2));
        assert_eq!(both, new);
        assert_eq!(both.packet(&"cauchy:k=6,m=3,w=4".parse().unwrap()), Some(2048));
        // What was measured on another processor is forgotten.
        let mut other = Tuning { processor: "another".to_owned(), codes, ..tuning() };
        other.remember_in(&memory).unwrap();
        assert_eq!(Tuning::recall(&memory, "another").unwrap().codes.len(), 1);
        let mut resized = Tuning { processors: Some(64), codes: BTreeMap::new(), ..other };
        resized.remember_in(&memory).unwrap();
        assert!(Tuning::recall(&memory, "another").unwrap().codes.is_empty());
    }

    #[test]
    fn tunings_of_other_processors_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let memory = RememberedFolder::at(folder.path());
        memory.remember(NAME, &tuning()).unwrap();
        assert_eq!(Tuning::recall(&memory, "this one"), Some(tuning()));
        assert_eq!(Tuning::recall(&memory, "another"), None);
        for (compiles, fits) in [(can_compile().is_ok(), true), (can_compile().is_err(), false)] {
            let tuning = Tuning { compiles: Some(compiles), ..tuning() };
            memory.remember(NAME, &tuning).unwrap();
            assert_eq!(Tuning::recall(&memory, "this one").is_some(), fits);
        }
        let foreign = if cfg!(target_arch = "x86_64") { Kernel::Neon } else { Kernel::Sse2 };
        memory.remember(NAME, &Tuning { kernel: foreign, ..tuning() }).unwrap();
        assert_eq!(Tuning::recall(&memory, "this one"), None);
    }
}
