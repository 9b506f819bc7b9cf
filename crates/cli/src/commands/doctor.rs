//! `paritas doctor`: shows what this machine offers, and checks every kernel.

use paritas::research::can_compile;
use paritas::{Code, Codec, CodecOptions, DEFAULT_PACKET, Kernel, KernelChoice};
use paritas_report::machine::{DoctorLine, KernelEntry};
use paritas_tune::Tuning;

use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{Output, counted};

/// Checks the machine and reports. A kernel that computes wrong results is an internal error.
pub fn run(output: &Output) -> Outcome {
    let kernels: Vec<Finding> =
        Kernel::available().map(Finding::of).collect::<Result<_, paritas::Error>>()?;
    let compiling = can_compile();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tuning = Tuning::remembered();
    let chosen = tuning.map_or_else(|| Kernel::best(DEFAULT_PACKET), |tuning| tuning.kernel);
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
        text
    });
    expect_right(&kernels)
}

fn expect_right(kernels: &[Finding]) -> Outcome {
    match kernels.iter().find(|finding| !finding.right) {
        None => Ok(Exit::Done),
        Some(Finding { kernel, .. }) => Err(Failure::internal(format!(
            "the {kernel} kernel computes wrong results on this processor; use --kernel to avoid it"
        ))),
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

/// Encodes some data with a kernel. Returns the parity, and the reason if another kernel ran in its
/// place.
fn encode(kernel: Kernel) -> Result<(Vec<Vec<u8>>, Option<String>), paritas::Error> {
    let options = CodecOptions::default().kernel(KernelChoice::Only(kernel));
    let codec = Codec::with_options(Code::new(&"10+4".parse()?)?, options)?;
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
