//! `paritas repair`: what is missing or damaged is written anew.

use paritas_store::{
    DigestCheck, Object, RepairJob, RepairReport, ShardReport, ShardState, repair,
};
use serde_json::{Value, json};

use crate::args::Repair;
use crate::commands::{Outcome, shards};
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Repairs all objects, as far as each can be; the exit code is that of the worst.
pub fn run(args: &Repair, output: &Output) -> Outcome {
    args.to.iter().try_for_each(|to| exit::require_folder("--to", to))?;
    let inventory = shards::find(&args.paths, output)?;
    let objects = shards::chosen(&inventory, args.object.as_deref())?;
    shards::each(objects, output, |object| one(object, args, output))
}

fn one(object: &Object, args: &Repair, output: &Output) -> Result<(), Failure> {
    let job = RepairJob {
        to: args.to.clone(),
        sync: args.work.is_synced(),
        threads: args.work.threads,
        fewest_reads: args.fewest_reads,
    };
    // Every byte is verified, and read again for what is written.
    let progress = output.progress(object.length().map(|length| 2 * length));
    let report = repair(object, &job, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    report.warnings.iter().for_each(|warning| output.warn(warning));
    output.result(value(object, &report, seconds), || text(object, &report));
    expect_all_read(object, &report)
}

/// A shard that could not be opened stays as it is, and nobody knows how that is.
fn expect_all_read(object: &Object, report: &RepairReport) -> Result<(), Failure> {
    let unread: Vec<String> =
        unreadable(report).map(|shard| shards::shard_name(shard.index, shard.stage)).collect();
    if unread.is_empty() {
        return Ok(());
    }
    let (name, unread) = (shown(object.name()), unread.join(", "));
    let message = format!("{name}: {unread} could not be opened, and was left as it is");
    Err(Failure { exit: Exit::Io, message })
}

/// The shards that could not be opened.
fn unreadable(report: &RepairReport) -> impl Iterator<Item = &ShardReport> {
    let shards = report.before.iter().flat_map(|before| &before.shards);
    shards.filter(|shard| shard.state == ShardState::Unreadable)
}

fn value(object: &Object, report: &RepairReport, seconds: f64) -> Value {
    let mut value = shards::describe("repair", object);
    value["seconds"] = json!(seconds);
    value["read_bytes"] = json!(report.read_bytes);
    value["digest_check"] = json!(match report.digest {
        DigestCheck::Right => "right",
        DigestCheck::Wrong => "wrong",
        DigestCheck::Unchecked => "unchecked",
    });
    let repaired = report.repaired.iter().map(|shard| {
        let mut entry =
            json!({"index": shard.shard, "stage": shard.stage, "was": shards::state(shard.was)});
        output::insert_name(&mut entry, "path", shard.path.as_os_str());
        entry
    });
    value["repaired"] = repaired.collect();
    let unread =
        unreadable(report).map(|shard| json!({"index": shard.index, "stage": shard.stage}));
    value["unreadable"] = unread.collect();
    shards::insert_placement(&mut value, &report.placement);
    value["warnings"] = json!(report.warnings);
    value
}

fn text(object: &Object, report: &RepairReport) -> String {
    let name = shown(object.name());
    if report.repaired.is_empty() && unreadable(report).next().is_none() {
        return format!("{name}: intact, nothing to repair");
    }
    let mut text = format!("{name}: {} written", counted(report.repaired.len(), "shard"));
    for shard in &report.repaired {
        let name = shards::shard_name(shard.shard, shard.stage);
        let (was, path) = (shards::state(shard.was), shown(&shard.path));
        text.push_str(&format!("\n  {name} was {was}: {path}"));
    }
    text
}
