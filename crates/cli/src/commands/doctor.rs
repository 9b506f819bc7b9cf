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
    let kernels = Kernel::available().map(checked).collect::<Result<Vec<_>, _>>()?;
    let word_kernels =
        WordKernel::available().map(checked_for_words).collect::<Result<Vec<_>, _>>()?;
    let wrong = wrong_kernel(&kernels, &word_kernels);
    let tuning = Tuning::remembered();
    let for_files = tuning.map_or_else(|| Kernel::best(DEFAULT_PACKET), |tuning| tuning.kernel);
    let for_words = tuning.map_or_else(WordKernel::best, |tuning| tuning.word_kernel);
    let compiling = can_compile();
    let line = DoctorLine {
        version: env!("CARGO_PKG_VERSION"),
        architecture: std::env::consts::ARCH,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        packet: DEFAULT_PACKET,
        kernel: for_files.name(),
        tuned: tuning.is_some(),
        executable_memory: compiling.is_ok(),
        executable_memory_error: compiling.err().map(|why| why.to_string()),
        kernels,
        word_kernels,
    };
    let text = text(&line, for_words.name());
    output.result(line, || text);
    wrong.map_or(Ok(Exit::Done), |message| Err(Failure::internal(message)))
}

/// Returns what to say if a kernel computes wrong results.
fn wrong_kernel(kernels: &[KernelEntry], word_kernels: &[WordKernelEntry]) -> Option<String> {
    let packets = kernels.iter().filter(|kernel| !kernel.right);
    let words = word_kernels.iter().filter(|kernel| !kernel.right);
    let (name, remedy) = packets
        .map(|kernel| (kernel.name, "use --kernel to avoid it"))
        .chain(words.map(|kernel| (kernel.name, "use codes in packets to avoid it")))
        .next()?;
    Some(format!("the {name} kernel computes wrong results on this processor; {remedy}"))
}

/// Returns the result for people.
fn text(line: &DoctorLine, for_words: &str) -> String {
    let threads = counted(line.threads, "thread");
    let mut text = format!("paritas {} on {}, {threads}\n", line.version, line.architecture);
    text.push_str(&match &line.executable_memory_error {
        None => "  compiled kernels can run\n".to_owned(),
        Some(why) => format!("  compiled kernels cannot run ({why}); tiled kernels are used\n"),
    });
    text.push_str(match line.tuned {
        true => "  tuned: settings measured on this machine are used\n",
        false => "  not tuned: built-in defaults are used (see paritas tune)\n",
    });
    let verdict = |right| if right { "computes right" } else { "COMPUTES WRONG" };
    for kernel in &line.kernels {
        let fallback = kernel.fallback.iter().map(|why| format!("; {why}")).collect::<String>();
        let mark = match kernel.name {
            name if name == line.kernel => "  (chosen for files)",
            _ if kernel.lab => "  (for the lab; never chosen)",
            _ => "",
        };
        let (name, bits) = (kernel.name, 8 * kernel.vector_bytes);
        let right = verdict(kernel.right);
        text.push_str(&format!("  kernel {name}: {bits} bits, {right}{fallback}{mark}\n"));
    }
    for kernel in &line.word_kernels {
        let mark = if kernel.name == for_words { "  (chosen for codes in words)" } else { "" };
        text.push_str(&format!("  kernel {}: {}{mark}\n", kernel.name, verdict(kernel.right)));
    }
    text
}

/// Checks a kernel of codes in packets.
fn checked(kernel: Kernel) -> Result<KernelEntry, paritas::Error> {
    let encode =
        |kernel| encode("10+4", CodecOptions::default().kernel(KernelChoice::Only(kernel)));
    let (parity, fallback) = encode(kernel)?;
    Ok(KernelEntry {
        name: kernel.name(),
        vector_bytes: kernel.vector_bytes(),
        right: parity == encode(Kernel::Scalar)?.0,
        fallback,
        lab: kernel.is_of_the_lab(),
    })
}

/// Checks a kernel of codes in words.
fn checked_for_words(kernel: WordKernel) -> Result<WordKernelEntry, paritas::Error> {
    let encode =
        |kernel| encode("isal-cauchy:k=10,m=4", CodecOptions::default().word_kernel(kernel));
    let right = encode(kernel)?.0 == encode(WordKernel::Scalar)?.0;
    Ok(WordKernelEntry { name: kernel.name(), right })
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
