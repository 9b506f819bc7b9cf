//! Verifying protected files.

use std::ops::Range;

use paritas_protect::{
    FileFinding, FileState, LayerReport, ParityFinding, Protected, Protection, Status,
    VerifyOptions, VerifyReport, verify,
};
use serde_json::{Value, json};

use super::{add_lines, below, describe, geometry_value, path_values, skipped_values, title};
use crate::args::Verify;
use crate::commands::many::State;
use crate::exit::Failure;
use crate::output::{self, Output, counted, shown};

/// Number of byte ranges of a file that a line has.
const RANGES: usize = 4;

/// Verifies one protection, and reports.
pub fn run(protection: &Protection, args: &Verify, output: &Output) -> Result<State, Failure> {
    super::warn_of_absent(protection, output);
    let options = VerifyOptions::default().quick(args.quick).from_disk(args.from_disk);
    let options = options.threads(args.threads.most());
    let total = if args.quick { 0 } else { protection.bytes_to_verify() };
    let progress = output.progress(Some(total));
    let report = verify(protection, &options, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let state = state(&report);
    if args.search.reports(state) {
        let value = value(protection, &report, state, args.quick, seconds);
        output.result(value, || text(protection, &report, state, args));
    }
    Ok(state)
}

/// Returns the state of a protection. What may not be read could be intact, so nothing is known.
pub fn state(report: &VerifyReport) -> State {
    match report.status {
        _ if report.count(|state| matches!(state, FileState::Unreadable(_))) > 0 => State::Unknown,
        _ if report.parity.iter().any(|finding| finding.unreadable) => State::Unknown,
        Status::Intact => State::Intact,
        Status::Repairable => State::Repairable,
        Status::BeyondRepair => State::Lost,
    }
}

fn value(
    protection: &Protection,
    report: &VerifyReport,
    state: State,
    quick: bool,
    seconds: f64,
) -> Value {
    let mut value = describe("protect-verify", protection);
    value["status"] = json!(state.name());
    value["quick"] = json!(quick);
    value["intact_files"] = json!(report.intact_files);
    value["findings"] = report.findings.iter().map(finding_value).collect();
    value["parity"] = report.parity.iter().map(parity_value).collect();
    value["layers"] = report.layers.iter().map(layer_value).collect();
    value["unreadable_layers"] = json!(report.unreadable_layers);
    value["new"] = path_values(&report.new);
    value["skipped"] = skipped_values(&report.skipped);
    value["seconds"] = json!(seconds);
    value
}

fn finding_value(finding: &FileFinding) -> Value {
    let mut value = super::path_value(&finding.path);
    value["kind"] = json!(match finding.kind {
        Protected::File => "file",
        Protected::Folder => "folder",
        Protected::Symlink => "symlink",
        Protected::HardLink => "hard-link",
    });
    value["state"] = json!(word(&finding.state));
    value["size"] = json!(finding.size);
    match &finding.state {
        FileState::Damaged(ranges) | FileState::Changed(ranges) => {
            let range = |range: &Range<u64>| json!({"start": range.start, "end": range.end});
            value["ranges"] = ranges.iter().map(range).collect();
        }
        FileState::Moved(to) => output::insert_name(&mut value, "moved_to", to.as_os_str()),
        FileState::Unreadable(why) => value["reason"] = json!(why),
        FileState::Touched | FileState::Missing => {}
    }
    value
}

fn parity_value(finding: &ParityFinding) -> Value {
    let mut value = super::path_value(&finding.path);
    value["missing"] = json!(finding.missing);
    value["unreadable"] = json!(finding.unreadable);
    value["damaged_blocks"] = json!(finding.damaged_blocks);
    value["damaged_pieces"] = json!(finding.damaged_pieces);
    value
}

fn layer_value(layer: &LayerReport) -> Value {
    let mut value = geometry_value(&layer.geometry);
    value["generation"] = json!(layer.generation);
    value["lost"] = json!(layer.lost);
    value["at_hand"] = json!(layer.at_hand);
    value["needed"] = json!(layer.needed);
    value["left"] = json!(layer.left);
    value
}

/// Returns the word for what has become of a file.
fn word(state: &FileState) -> &'static str {
    match state {
        FileState::Touched => "touched",
        FileState::Damaged(_) => "damaged",
        FileState::Changed(_) => "changed",
        FileState::Missing => "missing",
        FileState::Moved(_) => "moved",
        FileState::Unreadable(_) => "unreadable",
    }
}

fn text(protection: &Protection, report: &VerifyReport, state: State, args: &Verify) -> String {
    let (files, bytes) = (counted(report.files, "file"), output::bytes(protection.bytes()));
    let quick = if args.quick { " by size and time" } else { "" };
    let mut text = format!("{}: {}{quick}, {files}, {bytes}", title(protection), state.name());
    text.push_str(&verdict(report, state));
    let lines = lines(protection, report, args.search.verbose);
    add_lines(&mut text, &lines, args.search.verbose);
    let touched = report.count(|state| *state == FileState::Touched);
    if touched > 0 {
        let things = counted(touched, "thing");
        text.push_str(&format!(
            "\n  touched  {things} with the same content and other times or modes"
        ));
    }
    let missing = report.count(|state| *state == FileState::Missing);
    if args.quick && missing > 0 && !report.new.is_empty() {
        text.push_str("\n  renamed  files count as missing; without --quick, they are recognised");
    }
    if !report.new.is_empty() {
        let new = counted(report.new.len(), "file");
        text.push_str(&format!(
            "\n  new      {new}; `paritas protect --update` protects new files"
        ));
    }
    text
}

/// Says what can be repaired.
pub fn verdict(report: &VerifyReport, state: State) -> String {
    let sum = |of: fn(&LayerReport) -> u64| report.layers.iter().map(of).sum::<u64>();
    let lost = sum(|layer| layer.lost);
    let layers = counted(report.unreadable_layers, "catalogue");
    match state {
        State::Unknown => "; some of it cannot be read now".to_owned(),
        State::Lost if report.unreadable_layers > 0 => {
            format!(" — beyond repair: {layers} cannot be read")
        }
        State::Lost => {
            // Parity of other layers is of no use to these.
            let of_lost = |of: fn(&LayerReport) -> u64| -> u64 {
                report.layers.iter().filter(|layer| layer.needed > 0).map(of).sum()
            };
            let needed = match of_lost(|layer| layer.needed) {
                1 => "1 more is needed".to_owned(),
                more => format!("{more} more are needed"),
            };
            format!(
                " — beyond repair: {} lost, {} at hand, {needed}",
                counted(of_lost(|layer| layer.lost), "block"),
                counted(of_lost(|layer| layer.at_hand), "parity block"),
            )
        }
        _ => {
            let (left, layer) = left(report);
            let blocks = counted(sum(|layer| layer.geometry.data + layer.geometry.parity), "block");
            let lost_blocks = counted(lost, "block");
            match state {
                _ if lost == 0 => format!("; any {left} more of {blocks} may be lost{layer}"),
                // Only files that were changed or removed before an update have lost any.
                State::Intact => format!(
                    "; {lost_blocks} of old versions use up parity; any {left} more may be \
                     lost{layer}"
                ),
                _ => {
                    format!("; {lost_blocks} lost, any {left} more of {blocks} may be lost{layer}")
                }
            }
        }
    }
}

/// Returns how many more blocks may be lost, and names the layer that limits this number if others
/// have more parity. Each layer has parity of its own, so as many may be lost anywhere as where the
/// least is left.
fn left(report: &VerifyReport) -> (u64, String) {
    let coded = (0..).zip(&report.layers).filter(|(_, layer)| layer.geometry.data > 0);
    let left = coded.map(|(number, layer)| (layer.left, number));
    let most = left.clone().map(|(left, _)| left).max();
    let (least, number): (u64, usize) = left.min().unwrap_or_default();
    let note = match most > Some(least) {
        true => format!(" (layer {number} has the least parity left)"),
        false => String::new(),
    };
    (least, note)
}

/// Returns a line for each file that is not as it was, and for each parity file, worst first. Those
/// of which only times or modes differ have lines if the report is verbose.
fn lines(protection: &Protection, report: &VerifyReport, verbose: bool) -> Vec<String> {
    let order = ["damaged", "missing", "unreadable", "changed", "moved", "touched"];
    let mut lines = Vec::new();
    for &wanted in &order[..order.len() - usize::from(!verbose)] {
        let findings = report.findings.iter().filter(|one| word(&one.state) == wanted);
        lines.extend(findings.map(|finding| line(protection, finding)));
    }
    lines.extend(report.parity.iter().map(|finding| parity_line(protection, finding)));
    let skipped = report.skipped.iter();
    let skipped = skipped
        .map(|one| format!("skipped  {}: {}", below(protection.root(), &one.path), one.reason));
    lines.extend(skipped);
    lines
}

fn line(protection: &Protection, finding: &FileFinding) -> String {
    let (name, what) = (shown(&finding.name), word(&finding.state));
    let size = output::bytes(finding.size);
    match &finding.state {
        FileState::Damaged(ranges) | FileState::Changed(ranges) => {
            format!("{what:8} {name}{}", ranges_text(ranges))
        }
        FileState::Moved(to) => {
            format!("{what:8} {name} is now {}", below(protection.root(), to))
        }
        FileState::Unreadable(why) => format!("unread   {name}: {why}"),
        _ if finding.kind == Protected::File => format!("{what:8} {name}, {size}"),
        _ => format!("{what:8} {name}"),
    }
}

fn ranges_text(ranges: &[Range<u64>]) -> String {
    if ranges.is_empty() {
        return String::new();
    }
    let few: Vec<String> = ranges
        .iter()
        .take(RANGES)
        .map(|range| format!("{} to {}", range.start, range.end))
        .collect();
    let more = match ranges.len().saturating_sub(RANGES) {
        0 => String::new(),
        more => format!(" and {more} more ranges"),
    };
    format!(": bytes {}{more}", few.join(", "))
}

fn parity_line(protection: &Protection, finding: &ParityFinding) -> String {
    let path = below(protection.root(), &finding.path);
    match (finding.missing, finding.damaged_blocks) {
        _ if finding.unreadable => format!("parity   {path} may not be read"),
        (true, _) => format!("parity   {path} is missing"),
        (false, 0) => format!("parity   {path}: parts of its headers or its catalogue are damaged"),
        (false, blocks) => format!("parity   {path}: {} damaged", counted(blocks, "block")),
    }
}
