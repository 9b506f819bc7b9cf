//! `paritas doctor`: shows what this machine offers, and checks every kernel.

use paritas::research::{WordKernel, can_compile};
use paritas::{Code, Codec, CodecOptions, DEFAULT_PACKET, Kernel, KernelChoice};
use paritas_report::machine::{DoctorLine, KernelEntry, WordKernelEntry};
use paritas_tune::Tuning;

use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{Output, counted};

/// Checks the machine and reports. A kernel that computes wrong results is an internal error.
pub fn run(output: &Output) -> Outcome {
    let kernels: Vec<Finding> =
        Kernel::available().map(Finding::of).collect::<Result<_, paritas::Error>>()?;
    let word_kernels: Vec<WordFinding> =
        WordKernel::available().map(WordFinding::of).collect::<Result<_, paritas::Error>>()?;
    let compiling = can_compile();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tuning = Tuning::remembered();
    let chosen = tuning.map_or_else(|| Kernel::best(DEFAULT_PACKET), |tuning| tuning.kernel);
    let chosen_for_words = tuning.map_or_else(WordKernel::best, |tuning| tuning.word_kernel);
    let line = DoctorLine {
        version: env!("CARGO_PKG_VERSION"),
        architecture: std::env::consts::ARCH,
        threads,
        packet: DEFAULT_PACKET,
        kernel: chosen.name(),
        tuned: tuning.is_some(),
        executable_memory: compiling.is_ok(),
        executable_memory_error: compiling.as_ref().err().map(ToString::to_string),
        kernels: kernels.iter().map(Finding::entry).collect(),
        word_kernels: word_kernels.iter().map(WordFinding::entry).collect(),
    };
    output.result(line, || {
        let mut text = format!(
            "paritas {} on {}, {}\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH,
            counted(threads, "thread")
        );
        match &compiling {
            Ok(()) => text.push_str("  compiled kernels can run\n"),
            Err(why) => text.push_str(&format!(
                "  compiled kernels cannot run ({why}); tiled kernels are used\n"
            )),
        }
        text.push_str(match tuning {
            Some(_) => "  tuned: settings measured on this machine are used\n",
            None => "  not tuned: built-in defaults are used (see paritas tune)\n",
        });
        kernels.iter().for_each(|finding| text.push_str(&finding.line(chosen)));
        word_kernels.iter().for_each(|finding| text.push_str(&finding.line(chosen_for_words)));
        text
    });
    let packets = kernels.iter().find(|finding| !finding.right).map(|found| found.kernel.name());
    let words = word_kernels.iter().find(|finding| !finding.right).map(|found| found.kernel.name());
    let wrong = |kernel: &str, remedy: &str| {
        let what = format!("the {kernel} kernel computes wrong results on this processor");
        Err(Failure::internal(format!("{what}; {remedy}")))
    };
    match (packets, words) {
        (Some(kernel), _) => wrong(kernel, "use --kernel to avoid it"),
        (_, Some(kernel)) => wrong(kernel, "use codes in packets to avoid it"),
        (None, None) => Ok(Exit::Done),
    }
}

/// The result of checking a kernel for codes in words.
struct WordFinding {
    kernel: WordKernel,
    right: bool,
}

impl WordFinding {
    fn of(kernel: WordKernel) -> Result<Self, paritas::Error> {
        let encode =
            |kernel| encode("isal-cauchy:k=10,m=4", CodecOptions::default().word_kernel(kernel));
        Ok(Self { kernel, right: encode(kernel)?.0 == encode(WordKernel::Scalar)?.0 })
    }

    fn entry(&self) -> WordKernelEntry {
        WordKernelEntry { name: self.kernel.name(), right: self.right }
    }

    fn line(&self, chosen: WordKernel) -> String {
        let verdict = if self.right { "computes right" } else { "COMPUTES WRONG" };
        let mark = if self.kernel == chosen { "  (chosen for codes in words)" } else { "" };
        format!("  kernel {}: {verdict}{mark}\n", self.kernel.name())
    }
}

/// The result of checking a kernel.
struct Finding {
    kernel: Kernel,
    right: bool,
    /// The reason why another kernel ran in its place.
    fallback: Option<String>,
}

impl Finding {
    fn of(kernel: Kernel) -> Result<Self, paritas::Error> {
        let encode =
            |kernel| encode("10+4", CodecOptions::default().kernel(KernelChoice::Only(kernel)));
        let (parity, fallback) = encode(kernel)?;
        let right = parity == encode(Kernel::Scalar)?.0;
        Ok(Self { kernel, right, fallback })
    }

    fn entry(&self) -> KernelEntry {
        KernelEntry {
            name: self.kernel.name(),
            vector_bytes: self.kernel.vector_bytes(),
            right: self.right,
            fallback: self.fallback.clone(),
            lab: self.kernel.is_of_the_lab(),
        }
    }

    fn line(&self, chosen: Kernel) -> String {
        let verdict = if self.right { "computes right" } else { "COMPUTES WRONG" };
        let mark = match self.kernel {
            kernel if kernel == chosen => "  (chosen for files)",
            kernel if kernel.is_of_the_lab() => "  (for the lab; never chosen)",
            _ => "",
        };
        let fallback = self.fallback.iter().map(|why| format!("; {why}")).collect::<String>();
        let width = 8 * self.kernel.vector_bytes();
        format!("  kernel {}: {width} bits, {verdict}{fallback}{mark}\n", self.kernel)
    }
}

/// Encodes some data with a code of ten data nodes and four parity nodes. Returns the parity, and
/// the reason if another kernel ran than the options name.
fn encode(
    code: &str,
    options: CodecOptions,
) -> Result<(Vec<Vec<u8>>, Option<String>), paritas::Error> {
    let codec = Codec::with_options(Code::new(&code.parse()?)?, options)?;
    let length = 33 * codec.strip();
    let data: Vec<Vec<u8>> = (0..10_usize)
        .map(|node| (0..length).map(|i| (i % 251 * 7 + node * 31) as u8).collect())
        .collect();
    let mut parity = vec![vec![0; length]; 4];
    codec.encode(
        &data.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        &mut parity.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
    )?;
    Ok((parity, codec.fallback()))
}
