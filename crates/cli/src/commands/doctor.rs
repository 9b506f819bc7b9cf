//! `paritas doctor`: what this machine offers, and whether every kernel computes right.

use paritas::{Code, Codec, CodecOptions, DEFAULT_PACKET, Kernel, KernelChoice};
use serde_json::json;

use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Checks and reports; a kernel that computes wrong is an internal error.
pub fn run(output: &Output) -> Outcome {
    let kernels: Vec<(Kernel, bool)> = Kernel::available()
        .map(|kernel| Ok((kernel, computes_right(kernel)?)))
        .collect::<Result<_, paritas::Error>>()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let chosen = Kernel::best(DEFAULT_PACKET);
    let value = json!({
        "type": "doctor", "version": env!("CARGO_PKG_VERSION"), "architecture": std::env::consts::ARCH,
        "threads": threads, "packet": DEFAULT_PACKET, "kernel": chosen.name(),
        "kernels": kernels.iter().map(|(kernel, right)| json!({
            "name": kernel.name(), "vector_bytes": kernel.vector_bytes(), "right": right,
        })).collect::<Vec<_>>(),
    });
    output.result(value, || {
        let mut text = format!(
            "paritas {} on {}, {threads} threads\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::ARCH
        );
        for (kernel, right) in &kernels {
            let verdict = if *right { "computes right" } else { "COMPUTES WRONG" };
            let mark = if *kernel == chosen { "  (chosen for files)" } else { "" };
            let width = 8 * kernel.vector_bytes();
            text.push_str(&format!("  kernel {kernel}: {width} bits, {verdict}{mark}\n"));
        }
        text
    });
    match kernels.iter().find(|(_, right)| !right) {
        None => Ok(Exit::Done),
        Some((kernel, _)) => Err(Failure::internal(format!(
            "the {kernel} kernel computes wrong on this processor; use --kernel to avoid it"
        ))),
    }
}

/// Encodes the same data with this kernel and with the plainest one.
fn computes_right(kernel: Kernel) -> Result<bool, paritas::Error> {
    let parity = |kernel| -> Result<Vec<Vec<u8>>, paritas::Error> {
        let options =
            CodecOptions { kernel: KernelChoice::Only(kernel), ..CodecOptions::default() };
        let codec = Codec::new(Code::new(&"10+4".parse()?)?, options)?;
        let length = 33 * codec.strip();
        let data: Vec<Vec<u8>> = (0..10_usize)
            .map(|node| (0..length).map(|i| (i % 251 * 7 + node * 31) as u8).collect())
            .collect();
        let mut parity = vec![vec![0; length]; 4];
        codec.encode(
            &data.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &mut parity.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
        )?;
        Ok(parity)
    };
    Ok(parity(kernel)? == parity(Kernel::Scalar)?)
}
