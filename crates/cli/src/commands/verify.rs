//! `paritas verify`: reads and checks every block of every shard, and every protected file.

use paritas_protect::Protection;
use paritas_shards::{
    DigestCheck, Object, ShardFile, State as Found, VerifyReport, WrongLane, forget_cached, verify,
    verify_deep,
};
use serde_json::{Value, json};

use crate::args::Verify;
use crate::commands::many::{self, Handle, State};
use crate::commands::protections::Limited;
use crate::commands::{Outcome, protections, shards};
use crate::exit::Failure;
use crate::output::{self, Output};

/// Verifies all objects and protections. Returns the worst exit code.
pub fn run(args: &Verify, output: &Output) -> Outcome {
    many::each_found(&args.search, output, &Job { args, output })
}

struct Job<'a> {
    args: &'a Verify,
    output: &'a Output,
}

impl Handle for Job<'_> {
    fn limited(&self) -> Limited {
        Limited::new([("--deep", self.args.deep)], [("--quick", self.args.quick)])
    }

    fn object(&self, object: &Object, label: &str) -> Result<State, Failure> {
        one(object, label, self.args, self.output)
    }

    fn protection(&self, protection: &Protection) -> Result<State, Failure> {
        protections::verify::run(protection, self.args, self.output)
    }
}

fn one(object: &Object, label: &str, args: &Verify, output: &Output) -> Result<State, Failure> {
    let progress = output.progress(object.length());
    if args.from_disk {
        forget_cached(object.parts().iter().flatten().map(ShardFile::path))?;
    }
    let verify = if args.deep { verify_deep } else { verify };
    let report = verify(object, args.threads.most(), &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let state = State::from(report.status);
    if args.search.reports(state) {
        output.result(value(object, &report, seconds), || text(object, label, &report));
    }
    Ok(state)
}

fn value(object: &Object, report: &VerifyReport, seconds: f64) -> Value {
    let mut value = shards::describe("verify", object);
    value["status"] = json!(State::from(report.status).name());
    value["tolerable_losses"] = json!(report.tolerable);
    value["digest_ok"] = match report.digest {
        DigestCheck::Right => json!(true),
        DigestCheck::Wrong => json!(false),
        DigestCheck::Unchecked => json!(null),
    };
    if let Some(graph) = object.code().graph() {
        value["blocks"] = json!(graph.blocks());
        value["good_blocks"] = json!(report.good_blocks);
        value["likely_needed"] = json!(report.likely_needed);
    }
    value["damaged_segments"] = json!(report.damaged_segments);
    value["recomputed_segments"] = json!(report.recomputed_segments);
    value["wrong_lanes"] = report.wrong_lanes.iter().map(wrong_lane_value).collect();
    value["seconds"] = json!(seconds);
    value["shards"] = json!(shards::shard_values(&report.shards));
    shards::insert_placement(&mut value, &report.placement);
    value["aside"] = json!(shards::aside_values(object.moved_aside()));
    let ranges = report.lost.iter().map(|range| json!({"start": range.start, "end": range.end}));
    value["lost_ranges"] = ranges.collect();
    value["reason"] = json!(report.reason);
    value
}

fn wrong_lane_value(wrong: &WrongLane) -> Value {
    let WrongLane { shard, stage, lane, first_segment, segments, .. } = wrong;
    json!({
        "index": shard, "stage": stage, "lane": lane, "first_segment": first_segment,
        "segments": segments,
    })
}

fn text(object: &Object, label: &str, report: &VerifyReport) -> String {
    let mut text = format!("{label}: {}", State::from(report.status).name());
    if let Some(length) = object.length() {
        text.push_str(&format!(", {}", output::bytes(length)));
    }
    match report.status {
        Found::Lost => text.push_str(" — beyond repair"),
        Found::Unknown if report.digest != DigestCheck::Right => {}
        _ => {
            let likely = if object.code().graph().is_some() { "likely " } else { "" };
            let (losses, are) = match report.tolerable {
                1 => ("loss", "is"),
                _ => ("losses", "are"),
            };
            let more = format!(", {likely}{} more {losses} {are} tolerable", report.tolerable);
            text.push_str(&more);
        }
    }
    text.extend(shards::stage_note(object).map(|note| format!("\n  {note}")));
    text.extend(shards::placement_text(&report.placement).map(|note| format!("\n  {note}")));
    text.extend(shards::better_text(&report.placement).map(|note| format!("\n  {note}")));
    text.extend(shards::aside_text(object).map(|note| format!("\n  {note}")));
    for shard in &report.shards {
        if shard.files.is_empty() {
            let shard = shards::shard_name(shard.index, shard.stage);
            text.push_str(&format!("\n  {shard} is missing"));
        }
        for line in shard.files.iter().filter_map(shards::file_line) {
            text.push_str(&format!("\n{line}"));
        }
    }
    text.extend(recomputed_note(report).map(|note| format!("\n  {note}")));
    if let Some(reason) = &report.reason {
        text.push_str(&format!("\n  {reason}"));
    }
    for range in &report.lost {
        text.push_str(&format!("\n  bytes {} to {} are lost", range.start, range.end));
    }
    text.extend(next_step(report).map(|step| format!("\n  next: {step}")));
    text
}

/// Returns what to do next about an object.
fn next_step(report: &VerifyReport) -> Option<String> {
    match report.status {
        // The reason says what to do about wrong parity.
        Found::Intact | Found::Inconsistent => None,
        Found::Repairable => Some(format!(
            "{} writes anew what is damaged or missing",
            shards::command("repair", &report.placement)
        )),
        Found::Lost => Some(shards::FIND_MORE.to_owned()),
        Found::Unknown => Some(format!(
            "make readable what cannot be read, or mount its disk; then {}",
            shards::command("verify", &report.placement)
        )),
    }
}

/// Returns a note if some parity could not be recomputed.
fn recomputed_note(report: &VerifyReport) -> Option<String> {
    let (recomputed, segments) = (report.recomputed_segments?, report.segments);
    (recomputed < segments).then(|| {
        format!(
            "parity was recomputed in {recomputed} of {segments} segments; the others lack data"
        )
    })
}
