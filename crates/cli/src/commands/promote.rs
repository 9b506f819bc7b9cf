//! `paritas promote`: adds the parity of a later stage, computed from part of what is stored.

use paritas_report::shard_parts::{AddedShardEntry, PartEntry};
use paritas_report::shards::{ObjectFields, PromoteLine};
use paritas_shards::{AddedPart, Object, PromoteJob, PromoteReport, promote};

use crate::args::shards::Promote;
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
    output.result(line(object, &report, seconds), || text(object, &report));
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

fn line(object: &Object, report: &PromoteReport, seconds: f64) -> PromoteLine {
    let stage = report.stage;
    let added = |part: &AddedPart| AddedShardEntry {
        part: PartEntry { index: part.shard, stage },
        path: (&part.path).into(),
    };
    PromoteLine {
        object: ObjectFields { stage, ..shards::fields(object) },
        tolerance: object.code().tolerance_at(stage),
        read_bytes: report.read_bytes,
        read_payload_bytes: report.read_payload,
        damaged_segments: report.damaged_segments,
        missing: report.missing.clone(),
        seconds,
        added: report.added.iter().map(added).collect(),
        warnings: warnings(object, report),
    }
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
