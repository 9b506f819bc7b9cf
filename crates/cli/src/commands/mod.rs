//! The commands, one in each file.

mod bench;
mod codes;
mod decode;
mod doctor;
mod encode;
mod foreign;
mod generate;
mod info;
mod leftovers;
mod many;
mod operations;
mod packet_rule;
mod picture;
mod places;
mod promote;
mod protect;
mod protections;
mod repair;
mod schedule;
mod schema;
#[cfg(feature = "gateway")]
mod serve;
mod shards;
mod source;
mod tune;
mod verify;
#[cfg(feature = "volume")]
mod volume;

use crate::args::Command;
use crate::exit::{Exit, Failure};
use crate::output::Output;

type Outcome = Result<Exit, Failure>;

/// Runs a command.
pub fn run(command: Command, output: &Output) -> Outcome {
    match command {
        Command::Protect(args) => protect::run(&args, output),
        Command::Encode(args) => encode::run(&args, output),
        Command::Decode(args) => decode::run(&args, output),
        Command::Verify(args) => verify::run(&args, output),
        Command::Promote(args) => promote::run(&args, output),
        Command::Repair(args) => repair::run(&args, output),
        Command::Info(args) => info::run(&args, output),
        Command::Import(args) => foreign::import(&args, output),
        Command::Export(args) => foreign::export(&args, output),
        #[cfg(feature = "volume")]
        Command::Volume(args) => volume::run(args, output),
        #[cfg(feature = "gateway")]
        Command::Serve(args) => serve::run(&args, output),
        Command::Codes(args) => codes::run(&args, output),
        Command::Schedule(args) => schedule::run(&args, output),
        Command::Bench(args) => bench::run(&args, output),
        Command::Tune(args) => tune::run(&args, output),
        Command::Doctor => doctor::run(output),
        Command::Schema { command } => schema::run(&command, output),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { directory } => generate::man(&directory),
    }
}
