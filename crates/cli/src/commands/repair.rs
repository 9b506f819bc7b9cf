//! `paritas repair`: what is missing or damaged is written anew.

use paritas_store::{DigestCheck, Object, RepairJob, RepairReport, repair};
use serde_json::{Value, json};

use crate::args::Repair;
use crate::commands::{Outcome, shards};
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output};

/// Repairs all objects, as far as each can be; the exit code is that of the worst.
pub fn run(args: &Repair, output: &Output) -> Outcome {
    args.to.iter().try_for_each(|to| exit::require_folder("--to", to))?;
    let inventory = shards::find(&args.paths, output)?;
    let objects = shards::chosen(&inventory, args.object.as_deref())?;
    let mut worst: Option<Failure> = None;
    for object in objects {
        if let Err(failure) = one(object, args, output) {
            let worse = worst.as_ref().is_none_or(|worst| failure.exit > worst.exit);
            let other = if worse { worst.replace(failure) } else { Some(failure) };
            other.iter().for_each(|failure| output.warn(&failure.message));
        }
    }
    worst.map_or(Ok(Exit::Done), Err)
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
    output.result(value(object, &report, seconds), || text(object, &report));
    Ok(())
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
        let mut entry = json!({"index": shard.shard, "was": shards::state(shard.was)});
        output::insert_name(&mut entry, "path", shard.path.as_os_str());
        entry
    });
    value["repaired"] = repaired.collect();
    value
}

fn text(object: &Object, report: &RepairReport) -> String {
    let name = object.name().display();
    if report.repaired.is_empty() {
        return format!("{name}: intact, nothing to repair");
    }
    let mut text = format!("{name}: {} shards written", report.repaired.len());
    for shard in &report.repaired {
        let (index, was, path) = (shard.shard, shards::state(shard.was), shard.path.display());
        text.push_str(&format!("\n  shard {index} was {was}: {path}"));
    }
    text
}
