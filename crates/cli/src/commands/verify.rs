//! `paritas verify`: reads and checks every block of every shard, and every protected file.

use paritas_protect::Protection;
use paritas_report::parts::{ObjectStateWord, RangeEntry};
use paritas_report::shard_parts::{PartEntry, WrongLaneEntry};
use paritas_report::shards::{BlocksFields, VerifyLine};
use paritas_shards::{
    DigestCheck, Object, ShardFile, State, VerifyReport, WrongLane, forget_cached, verify,
    verify_deep,
};

use crate::args::shards::Verify;
use crate::commands::many::{self, Handle, word_of};
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

    fn object(&self, object: &Object, label: &str) -> Result<ObjectStateWord, Failure> {
        one(object, label, self.args, self.output)
    }

    fn protection(&self, protection: &Protection) -> Result<ObjectStateWord, Failure> {
        protections::verify::run(protection, self.args, self.output)
    }
}

fn one(
    object: &Object,
    label: &str,
    args: &Verify,
    output: &Output,
) -> Result<ObjectStateWord, Failure> {
    let progress = output.progress(object.length());
    if args.from_disk {
        forget_cached(object.parts().iter().flatten().map(ShardFile::path))?;
    }
    let verify = if args.deep { verify_deep } else { verify };
    let report = verify(object, args.threads.most(), &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let state = word_of(report.status);
    if args.search.reports(state) {
        output.result(line(object, &report, seconds), || text(object, label, &report));
    }
    Ok(state)
}

fn line(object: &Object, report: &VerifyReport, seconds: f64) -> VerifyLine {
    let blocks = object.code().graph().map(|graph| BlocksFields {
        blocks: graph.blocks(),
        good_blocks: report.good_blocks,
        likely_needed: report.likely_needed,
    });
    VerifyLine {
        object: shards::fields(object),
        status: word_of(report.status),
        tolerable_losses: report.tolerable,
        digest_ok: match report.digest {
            DigestCheck::Right => Some(true),
            DigestCheck::Wrong => Some(false),
            DigestCheck::Unchecked => None,
        },
        damaged_segments: report.damaged_segments,
        seconds,
        shards: shards::shard_entries(&report.shards),
        placement: shards::placement_fields(&report.placement),
        aside: shards::aside_entries(object.moved_aside()),
        recomputed_segments: report.recomputed_segments,
        wrong_lanes: report.wrong_lanes.iter().map(wrong_lane).collect(),
        lost_ranges: report.lost.iter().map(RangeEntry::from).collect(),
        reason: report.reason.clone(),
        blocks,
    }
}

fn wrong_lane(wrong: &WrongLane) -> WrongLaneEntry {
    let WrongLane { shard, stage, lane, first_segment, segments, .. } = *wrong;
    WrongLaneEntry { part: PartEntry { index: shard, stage }, lane, first_segment, segments }
}

fn text(object: &Object, label: &str, report: &VerifyReport) -> String {
    let mut text = format!("{label}: {}", word_of(report.status).name());
    if let Some(length) = object.length() {
        text.push_str(&format!(", {}", output::bytes(length)));
    }
    match report.status {
        State::Lost => text.push_str(" — beyond repair"),
        State::Unknown if report.digest != DigestCheck::Right => {}
        _ => text.push_str(&tolerable_text(object, report)),
    }
    text.extend(shards::stage_note(object).map(|note| format!("\n  {note}")));
    text.extend(shards::placement_text(&report.placement).map(|note| format!("\n  {note}")));
    text.extend(shards::better_text(&report.placement).map(|note| format!("\n  {note}")));
    text.extend(shards::aside_text(object).map(|note| format!("\n  {note}")));
    for shard in &report.shards {
        if shard.files.is_empty() {
            let shard = paritas_shards::shard_name(shard.index, shard.stage);
            text.push_str(&format!("\n  {shard} is missing"));
        }
        for line in shards::file_lines(&shard.files) {
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
    text.extend(next_step(object, report).map(|step| format!("\n  next: {step}")));
    text
}

/// Says how many more shards may be lost.
fn tolerable_text(object: &Object, report: &VerifyReport) -> String {
    let likely = if object.code().graph().is_some() { "likely " } else { "" };
    let (losses, are) = match report.tolerable {
        1 => ("loss", "is"),
        _ => ("losses", "are"),
    };
    format!(", {likely}{} more {losses} {are} tolerable", report.tolerable)
}

/// Returns what to do next about an object.
fn next_step(object: &Object, report: &VerifyReport) -> Option<String> {
    match report.status {
        State::Intact if report.has_useful_copies(object) => Some(format!(
            "{} writes the damaged files anew, so that more folders may be lost",
            shards::command("repair", object, report)
        )),
        // The reason says what to do about wrong parity. Nothing helps against a wrong digest.
        State::Intact | State::Inconsistent => None,
        State::Lost if report.digest == DigestCheck::Wrong => None,
        State::Repairable => Some(format!(
            "{} writes anew what is damaged or missing",
            shards::command("repair", object, report)
        )),
        State::Lost => Some(shards::FIND_MORE.to_owned()),
        State::Unknown => Some(format!(
            "make readable what cannot be read, or mount its disk; then {}",
            shards::command("verify", object, report)
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
