//! The program `paritas`. All its work is done by the library beside it, which the Python package
//! calls as well.

use std::process::ExitCode;

/// The static program allocates with mimalloc: with the allocator of musl, which has one lock for
/// all threads, many small files would take up to half as long again.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    paritas_cli::run(std::env::args_os().collect()).into()
}
