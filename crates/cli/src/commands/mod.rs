//! One file a command.

mod bench;
mod codes;
mod doctor;
mod generate;
mod schedule;

use crate::args::Command;
use crate::exit::{Exit, Failure};
use crate::output::Output;

type Outcome = Result<Exit, Failure>;

/// Runs a command.
pub fn run(command: Command, output: &Output) -> Outcome {
    match command {
        Command::Codes(args) => codes::run(&args, output),
        Command::Schedule(args) => schedule::run(&args, output),
        Command::Bench(args) => bench::run(&args, output),
        Command::Doctor => doctor::run(output),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { directory } => generate::man(&directory),
        _ => Err(Failure::internal("not yet")),
    }
}
