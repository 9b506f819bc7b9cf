//! `paritas promote`: adds the parity of a later stage, computed from part of what is stored.

use paritas_shards::{Object, PromoteJob, PromoteReport, promote};
use serde_json::{Value, json};

use crate::args::Promote;
use crate::commands::many::Worst;
use crate::commands::{Outcome, shards};
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Promotes all objects, each as far as possible. Returns the worst exit code.
pub fn run(args: &Promote, output: &Output) -> Outcome {
    args.to.iter().try_for_each(|to| exit::require_folder("--to", to))?;
    let inventory = shards::find(&args.paths, output)?;
    let mut worst = Worst::default();
    for object in shards::taken(inventory, args.object.as_deref())? {
        worst.note(one(&object, args, output).map(|()| Exit::Done), output);
    }
    worst.end(output)
}

fn one(object: &Object, args: &Promote, output: &Output) -> Result<(), Failure> {
    let job = PromoteJob::default()
        .to(args.to.clone())
        .sync(args.work.is_synced())
        .threads(args.work.threads.most());
    let progress = output.progress(object.length());
    let report = promote(object, &job, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    warnings(object, &report).iter().for_each(|warning| output.warn(warning));
    output.result(value(object, &report, seconds), || text(object, &report));
    Ok(())
}

fn warnings(object: &Object, report: &PromoteReport) -> Vec<String> {
    let mut warnings = report.warnings.clone();
    let name = object.label();
    if !report.missing.is_empty() {
        let missing: Vec<String> = report.missing.iter().map(usize::to_string).collect();
        warnings.push(format!(
            "{name}: shards are missing ({}); repair writes them",
            missing.join(", ")
        ));
    }
    if report.damaged_segments > 0 {
        let segments = counted(report.damaged_segments, "segment");
        warnings.push(format!(
            "{name}: blocks are damaged in {segments}, so others were read instead; verify tells \
             which, and repair rewrites them"
        ));
    }
    warnings
}

fn value(object: &Object, report: &PromoteReport, seconds: f64) -> Value {
    let mut value = shards::describe("promote", object);
    value["stage"] = json!(report.stage);
    value["tolerance"] = json!(object.code().tolerance_at(report.stage));
    value["read_bytes"] = json!(report.read_bytes);
    value["read_payload_bytes"] = json!(report.read_payload);
    value["damaged_segments"] = json!(report.damaged_segments);
    value["missing"] = json!(report.missing);
    value["seconds"] = json!(seconds);
    value["warnings"] = json!(warnings(object, report));
    let added = report.added.iter().map(|part| {
        let mut entry = json!({"index": part.shard, "stage": report.stage});
        output::insert_name(&mut entry, "path", part.path.as_os_str());
        entry
    });
    value["added"] = added.collect();
    value
}

fn text(object: &Object, report: &PromoteReport) -> String {
    let (name, code) = (object.label(), object.code());
    let (stage, stages) = (report.stage, object.stages());
    let tolerance = code.tolerance_at(stage);
    if report.added.is_empty() {
        return format!(
            "{name}: already in stage {stage} of {stages}, nothing to do; any {} may be lost",
            counted(tolerance, "shard")
        );
    }
    let gone = match report.missing.len() {
        0 => String::new(),
        1 => ", 1 is missing".to_owned(),
        gone => format!(", {gone} are missing"),
    };
    let mut text = format!(
        "{name}: stage {stage} of {stages}, any {tolerance} of {} shards may be lost{gone}; {} \
         added, {} read",
        object.shard_count(),
        counted(report.added.len(), "file"),
        output::bytes(report.read_payload)
    );
    for part in &report.added {
        text.push_str(&format!("\n  shard {}: {}", part.shard, shown(&part.path)));
    }
    text
}
