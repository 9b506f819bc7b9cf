//! `paritas volume`: objects over disks, hosts and buckets.

mod bench;
mod init;
mod listing;
mod members;
mod object;
mod report;
mod tree;
mod upkeep;

use std::path::Path;

use futures::StreamExt;
use paritas_volume::{ErrorKind, Volume};

use crate::args::volume::{self as args, Background, VolumeCommand};
use crate::commands::Outcome;
use crate::commands::many::Worst;
use crate::exit::{self, Exit, Failure};
use crate::output::Output;

/// Number of small objects that are handled at a time.
const AT_ONCE: usize = 16;

/// Runs a command about a volume. Ctrl-C and SIGTERM end it.
pub fn run(args: args::Volume, output: &Output) -> Outcome {
    let is_terminated = exit::at_second_signal();
    let output = output.clone();
    let run = paritas_volume::run_apart(|| async move { Ok(act(&args.command, &output).await) });
    match run {
        Err(error) if error.kind() == ErrorKind::Cancelled && is_terminated() => {
            Err(Failure { exit: Exit::Terminated, message: error.to_string() })
        }
        run => run?,
    }
}

async fn act(command: &VolumeCommand, output: &Output) -> Outcome {
    match command {
        VolumeCommand::Init(args) => init::run(args, output).await,
        VolumeCommand::Put(args) if args.recursive => tree::put(args, output).await,
        VolumeCommand::Put(args) => object::put(args, output).await,
        VolumeCommand::Get(args) if args.recursive => tree::get(args, output).await,
        VolumeCommand::Get(args) => object::get(args, output).await,
        VolumeCommand::Cat(args) => object::cat(args, output).await,
        VolumeCommand::Ls(args) => listing::ls(args, output).await,
        VolumeCommand::Stat(args) => listing::stat(args, output).await,
        VolumeCommand::Rm(args) => listing::rm(args, output).await,
        VolumeCommand::Verify(args) => upkeep::verify(args, output).await,
        VolumeCommand::Repair(args) => upkeep::repair(args, output).await,
        VolumeCommand::Promote(args) => upkeep::promote(args, output).await,
        VolumeCommand::Reencode(args) => upkeep::reencode(args, output).await,
        VolumeCommand::Bench(args) => bench::run(args, output).await,
        VolumeCommand::Add(args) => members::add(args, output).await,
        VolumeCommand::Drain(args) => members::drain(args, output).await,
        VolumeCommand::Replace(args) => upkeep::replace(args, output).await,
        VolumeCommand::Status(args) => listing::status(args, output).await,
    }
}

fn open(path: &Path) -> Result<Volume, Failure> {
    Ok(Volume::open(path, paritas_tune::codec_options)?)
}

/// Opens a volume for what is done in the background.
fn open_background(path: &Path, background: Background) -> Result<Volume, Failure> {
    Ok(open(path)?.in_background(background.rate))
}

/// Runs `act` on each item, at most `most` at a time. Returns the worst exit code.
async fn each<T>(
    items: Vec<T>,
    most: usize,
    output: &Output,
    act: impl AsyncFn(T) -> Outcome,
) -> Worst {
    let mut worst = Worst::default();
    let mut outcomes = futures::stream::iter(items).map(|item| act(item)).buffer_unordered(most);
    while let Some(outcome) = outcomes.next().await {
        worst.note(outcome, output);
    }
    worst
}

/// Returns what the names below a folder of names begin with.
fn folder_prefix(folder: &str) -> String {
    match folder.trim_end_matches('/') {
        "" => String::new(),
        folder => format!("{folder}/"),
    }
}
