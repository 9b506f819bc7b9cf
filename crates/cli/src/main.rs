//! The program `paritas`. All that it does is in the library beside it, which the Python package
//! calls as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    paritas_cli::run(std::env::args_os().collect()).into()
}
