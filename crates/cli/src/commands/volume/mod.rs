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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use paritas_volume::{ErrorKind, Member, NodeTrouble, Volume};

use crate::args::volume::{self as args, Background, VolumeCommand};
use crate::commands::Outcome;
use crate::commands::many::Worst;
use crate::exit::{self, Exit, Failure};
use crate::output::{Output, shell_name, shown};

/// Number of small objects that are handled at a time.
const AT_ONCE: usize = 16;

/// Runs a command about a volume. Ctrl-C and SIGTERM end it; for a service, that is the usual end.
pub fn run(args: args::Volume, output: &Output) -> Outcome {
    let is_service = matches!(args.command, VolumeCommand::Keep(_));
    let is_terminated = Arc::<AtomicBool>::default();
    let (output, terminated) = (output.clone(), Arc::clone(&is_terminated));
    let run = paritas_volume::run_apart(move || {
        exit::at_second_signal(&terminated);
        async move { Ok(act(&args.command, &output).await) }
    });
    match run {
        Err(error) if error.kind() == ErrorKind::Cancelled && is_service => Ok(Exit::Done),
        Err(error)
            if error.kind() == ErrorKind::Cancelled && is_terminated.load(Ordering::Relaxed) =>
        {
            Err(Failure { exit: Exit::Terminated, message: error.to_string() })
        }
        run => run?,
    }
}

async fn act(command: &VolumeCommand, output: &Output) -> Outcome {
    match command {
        VolumeCommand::Init(args) => init::run(args, output).await,
        VolumeCommand::Put(args) => act_on(&args.volume, args, output, put).await,
        VolumeCommand::Get(args) => act_on(&args.volume, args, output, get).await,
        VolumeCommand::Cat(args) => act_on(&args.volume, args, output, object::cat).await,
        VolumeCommand::Ls(args) => act_on(&args.volume, args, output, listing::ls).await,
        VolumeCommand::Stat(args) => act_on(&args.volume, args, output, listing::stat).await,
        VolumeCommand::Rm(args) => act_on(&args.volume, args, output, listing::rm).await,
        VolumeCommand::Verify(args) => {
            let verify = async |volume: &mut Volume| upkeep::verify(volume, args, output).await;
            advised(&args.volume, args.deep, output, verify).await
        }
        VolumeCommand::Repair(args) => upkeep::repair(args, output).await,
        VolumeCommand::Promote(args) => upkeep::promote(args, output).await,
        VolumeCommand::Reencode(args) => upkeep::reencode(args, output).await,
        VolumeCommand::Bench(args) => bench::run(args, output).await,
        VolumeCommand::Keep(args) => upkeep::keep(args, output).await,
        VolumeCommand::Add(args) => members::add(args, output).await,
        VolumeCommand::Drain(args) => members::drain(args, output).await,
        VolumeCommand::Replace(args) => upkeep::replace(args, output).await,
        VolumeCommand::Status(args) => {
            let volume = open(&args.volume)?;
            let outcome = listing::status(&volume, &args.volume, output).await;
            advise_nodes(&volume, &args.volume, output);
            outcome
        }
    }
}

/// Stores a file or, with --recursive, a tree.
async fn put(volume: &Volume, args: &args::Put, output: &Output) -> Outcome {
    match args.recursive {
        true => tree::put(volume, args, output).await,
        false => object::put(volume, args, output).await,
    }
}

/// Gets an object or, with --recursive, a tree.
async fn get(volume: &Volume, args: &args::Get, output: &Output) -> Outcome {
    match args.recursive {
        true => tree::get(volume, args, output).await,
        false => object::get(volume, args, output).await,
    }
}

/// Runs `command` with its arguments on a volume, as [`advised`] does.
async fn act_on<A>(
    path: &Path,
    args: &A,
    output: &Output,
    command: impl AsyncFnOnce(&Volume, &A, &Output) -> Outcome,
) -> Outcome {
    let work = async |volume: &mut Volume| command(volume, args, output).await;
    advised(path, false, output, work).await
}

/// Opens a volume and calls `work` with it. Then says what to do about nodes that cannot be used
/// and, if there are none, about objects that are damaged. `is_deep` says whether `work` reads
/// every block.
async fn advised(
    path: &Path,
    is_deep: bool,
    output: &Output,
    work: impl AsyncFnOnce(&mut Volume) -> Outcome,
) -> Outcome {
    let mut volume = open(path)?;
    let outcome = work(&mut volume).await;
    advise(&volume, path, &outcome, is_deep, output);
    outcome
}

/// Says what to do about nodes that cannot be used and, if there are none, about objects that are
/// damaged.
fn advise(volume: &Volume, path: &Path, outcome: &Outcome, is_deep: bool, output: &Output) {
    advise_nodes(volume, path, output);
    if volume.troubles().is_empty() && matches!(outcome, Ok(Exit::Repairable)) {
        output.next(&report::repair_command(path, is_deep));
    }
}

/// Says what to do about nodes that cannot be used.
fn advise_nodes(volume: &Volume, path: &Path, output: &Output) {
    for (node, trouble) in volume.troubles() {
        output.next(&advice(path, node, trouble));
    }
}

/// Returns what to do about a node that cannot be used.
fn advice(path: &Path, node: &Member, trouble: NodeTrouble) -> String {
    let (name, as_word) = (shown(&node.name), shell_name(&node.name));
    match trouble {
        NodeTrouble::Foreign => format!(
            "the place of {name} is not that node: mount the right disk there, or correct its `uri` \
             in {}; if the node was renamed there, give it its old `name` back",
            shown(path)
        ),
        NodeTrouble::Refused => format!(
            "give this user access to {name}, its credentials, the right key of its host, or the \
             program that connects to it; if what {name} holds is still there, it need not be replaced"
        ),
        _ => {
            let command = match node.is_drained {
                true => report::command("drain", path, &format!(" --remove {as_word}")),
                false => report::command("replace", path, &format!(" {as_word}")),
            };
            format!("mount the disk of {name} or start its server; if it is lost, {command}")
        }
    }
}

fn open(path: &Path) -> Result<Volume, Failure> {
    Ok(Volume::open(path, paritas_tune::codec_options)?)
}

/// Opens a volume for work in the background.
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

/// Returns the prefix of all names in a folder of names: the folder and `/`, or nothing.
fn folder_prefix(folder: &str) -> String {
    match folder.trim_end_matches('/') {
        "" => String::new(),
        folder => format!("{folder}/"),
    }
}
