//! The program `paritas`. All its work is done by the library beside it, which the Python package
//! calls as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    paritas_cli::run(std::env::args_os().collect()).into()
}
