//! Verifying protected files.

use std::ops::Range;

use paritas_protect::{
    FileFinding, FileState, LayerReport, ParityFinding, Protected, Protection, StreamGeometry,
    VerifyOptions, VerifyReport, verify,
};
use paritas_report::parts::{ObjectStateWord, RangeEntry};
use paritas_report::protections::{
    FindingEntry, ParityFindingEntry, ProtectVerifyLine, ProtectedKindWord, VerifiedLayerEntry,
};

use super::kinds::{add_steps, counts, finding_word, is_changed_alone, next_steps};
use super::{add_lines, below, fields, layer_entry, skipped_entries, title};
use crate::args::shards::Verify;
use crate::commands::many::word_of;
use crate::commands::shards::file_entries;
use crate::exit::Failure;
use crate::output::{self, Output, counted, shown};

/// Largest number of byte ranges of a file that a line shows.
const RANGES: usize = 4;

/// Verifies one protection, and reports.
pub fn run(
    protection: &Protection,
    args: &Verify,
    output: &Output,
) -> Result<ObjectStateWord, Failure> {
    super::warn_of_absent(protection, output);
    super::warn_of_unfinished(protection, output);
    let options = VerifyOptions::default().quick(args.quick).from_disk(args.from_disk);
    let options = options.threads(args.threads.most());
    let total = if args.quick { 0 } else { protection.bytes_to_verify() };
    let progress = output.progress(Some(total));
    let report = verify(protection, &options, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let state = word_of(report.status);
    if args.search.reports(state) {
        let line = line(protection, &report, state, args.quick, seconds);
        output.result(line, || text(protection, &report, state, args));
    }
    Ok(state)
}

fn line(
    protection: &Protection,
    report: &VerifyReport,
    state: ObjectStateWord,
    quick: bool,
    seconds: f64,
) -> ProtectVerifyLine {
    ProtectVerifyLine {
        protection: fields(protection),
        status: state,
        quick,
        intact_files: report.intact_files,
        findings: report.findings.iter().map(finding_entry).collect(),
        parity: report.parity.iter().map(parity_entry).collect(),
        layers: report.layers.iter().map(verified_entry).collect(),
        unreadable_layers: report.unreadable_layers,
        new: file_entries(&report.new),
        replaced: file_entries(&report.replaced),
        skipped: skipped_entries(&report.skipped),
        seconds,
    }
}

fn finding_entry(finding: &FileFinding) -> FindingEntry {
    let ranges = |ranges: &[Range<u64>]| ranges.iter().map(RangeEntry::from).collect();
    let (ranges, moved_to, reason) = match &finding.state {
        FileState::Damaged(lost) | FileState::Changed(lost) => (Some(ranges(lost)), None, None),
        FileState::Moved(to) => (None, Some(to.into()), None),
        FileState::Unreadable(why) => (None, None, Some(why.clone())),
        FileState::Touched | FileState::Missing => (None, None, None),
    };
    FindingEntry {
        path: (&finding.path).into(),
        kind: match finding.kind {
            Protected::File => ProtectedKindWord::File,
            Protected::Folder => ProtectedKindWord::Folder,
            Protected::Symlink => ProtectedKindWord::Symlink,
            Protected::HardLink => ProtectedKindWord::HardLink,
        },
        state: finding_word(&finding.state),
        size: finding.size,
        has_time: finding.has_time,
        ranges,
        moved_to,
        reason,
    }
}

fn parity_entry(finding: &ParityFinding) -> ParityFindingEntry {
    let ParityFinding { path, missing, unreadable, damaged_blocks, damaged_pieces, .. } = finding;
    ParityFindingEntry {
        path: path.into(),
        missing: *missing,
        unreadable: *unreadable,
        damaged_blocks: *damaged_blocks,
        damaged_pieces: *damaged_pieces,
    }
}

fn verified_entry(layer: &LayerReport) -> VerifiedLayerEntry {
    let LayerReport { generation, geometry, lost, at_hand, needed, left, .. } = *layer;
    let blocks = layer_entry(&geometry);
    VerifiedLayerEntry { blocks, generation, lost, at_hand, needed, left }
}

fn text(
    protection: &Protection,
    report: &VerifyReport,
    state: ObjectStateWord,
    args: &Verify,
) -> String {
    let (files, bytes) = (counted(report.files, "file"), output::bytes(protection.bytes()));
    let quick = if args.quick { " by size and time" } else { "" };
    let word = match state {
        ObjectStateWord::Repairable if is_changed_alone(report) => "changed",
        state => state.name(),
    };
    let mut text = format!("{}: {word}{quick}, {files}, {bytes}", title(protection));
    text.push_str(&verdict(report, state));
    text.extend(counts(report).map(|counts| format!("\n  {counts}")));
    let verbose = args.search.verbose;
    add_lines(&mut text, &lines(protection, report, verbose), verbose);
    let missing = report.count(|state| *state == FileState::Missing);
    if args.quick && missing > 0 && !report.new.is_empty() {
        text.push_str("\n  renamed  files count as missing; without --quick, they are recognised");
    }
    add_steps(&mut text, next_steps(protection, report, state, args.quick));
    text
}

/// Describes what can be repaired.
pub fn verdict(report: &VerifyReport, state: ObjectStateWord) -> String {
    let layers = counted(report.unreadable_layers, "catalogue");
    match state {
        ObjectStateWord::Unknown => "; some of it cannot be read now".to_owned(),
        // Only a part was asked for, so only its files were read, not the parity.
        _ if report.layers.is_empty() => "; nothing else was read".to_owned(),
        ObjectStateWord::Lost if report.unreadable_layers > 0 => {
            format!(" — beyond repair: {layers} cannot be read")
        }
        ObjectStateWord::Lost => shortage(report),
        _ => losses(report, state),
    }
}

/// Describes how many blocks are lost beyond repair, and how many more are needed.
fn shortage(report: &VerifyReport) -> String {
    // The parity of a layer cannot repair other layers.
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

/// Describes how many lost blocks can be computed, and how many more may be lost.
fn losses(report: &VerifyReport, state: ObjectStateWord) -> String {
    let sum = |of: fn(&LayerReport) -> u64| report.layers.iter().map(of).sum::<u64>();
    let lost = sum(|layer| layer.lost);
    let room = room(report, sum(|layer| layer.geometry.data + layer.geometry.parity));
    let lost_blocks = counted(lost, "block");
    match state {
        _ if lost == 0 => format!("; {room}"),
        // Only files that were changed or removed before an update have lost blocks.
        ObjectStateWord::Intact => {
            format!("; parity stands for {lost_blocks} of old versions; {room}")
        }
        _ if is_changed_alone(report) => {
            format!("; parity stands for {lost_blocks} of changed files; {room}")
        }
        _ => format!("; {lost_blocks} lost, {room}"),
    }
}

/// Describes how much more may be lost, wherever it is. Each layer has its own parity, so the layer
/// with the least parity left decides.
fn room(report: &VerifyReport, blocks: u64) -> String {
    let coded = report.layers.iter().filter(|layer| layer.geometry.data > 0);
    let left = coded.clone().map(|layer| layer.left).min().unwrap_or(0);
    let bytes = coded.map(|layer| layer.left.saturating_mul(layer.geometry.block)).min();
    let blocks = counted(blocks, "block");
    match bytes.filter(|&bytes| bytes > 0) {
        None => format!("no more of {blocks} may be lost"),
        Some(bytes) => format!(
            "any {left} more of {blocks} may be lost, about {}, wherever they are",
            output::bytes(bytes)
        ),
    }
}

/// Returns a line for each layer, if there are several.
fn layer_lines(report: &VerifyReport) -> impl Iterator<Item = String> + '_ {
    let layers = report.layers.iter().filter(|_| report.layers.len() > 1);
    layers.map(|layer| {
        let StreamGeometry { data, parity, block, .. } = layer.geometry;
        format!(
            "layer    {}: {} of {block} bytes, {} lost, any {} more may be lost",
            layer.generation,
            counted(data + parity, "block"),
            layer.lost,
            layer.left
        )
    })
}

/// Returns a line for each file that is not as it was, worst first, for each parity file with a
/// finding, and for each skipped path. A verbose report also has lines for touched, new and
/// replaced files, and for layers.
fn lines(protection: &Protection, report: &VerifyReport, verbose: bool) -> Vec<String> {
    let root = protection.root();
    let findings = report.findings.iter();
    let mut findings: Vec<&FileFinding> =
        findings.filter(|finding| verbose || finding.state != FileState::Touched).collect();
    findings.sort_by_key(|finding| finding_word(&finding.state));
    let mut lines: Vec<String> =
        findings.into_iter().map(|finding| finding_line(protection, finding)).collect();
    lines.extend(report.parity.iter().map(|finding| parity_line(protection, finding)));
    let skipped = report.skipped.iter();
    lines.extend(skipped.map(|one| format!("skipped  {}: {}", below(root, &one.path), one.reason)));
    if verbose {
        lines.extend(report.new.iter().map(|path| format!("new      {}", below(root, path))));
        let replaced = report.replaced.iter();
        lines.extend(replaced.map(|path| format!("replaced {}", below(root, path))));
        lines.extend(layer_lines(report));
    }
    lines
}

pub(super) fn finding_line(protection: &Protection, finding: &FileFinding) -> String {
    let (name, what) = (shown(&finding.name), finding.state.name());
    let size = output::bytes(finding.size);
    match &finding.state {
        FileState::Damaged(ranges) | FileState::Changed(ranges) => {
            let is_kept = finding.has_time && matches!(finding.state, FileState::Changed(_));
            let time = if is_kept { ", with its time kept" } else { "" };
            format!("{what:8} {name}{time}{}", ranges_text(ranges))
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
        more => format!(" and {}", counted(more, "more range")),
    };
    format!(": bytes {}{more}", few.join(", "))
}

pub(super) fn parity_line(protection: &Protection, finding: &ParityFinding) -> String {
    let path = below(protection.root(), &finding.path);
    match (finding.missing, finding.damaged_blocks) {
        _ if finding.unreadable => format!("parity   {path} may not be read"),
        (true, _) => format!("parity   {path} is missing"),
        (false, 0) => format!("parity   {path}: parts of its headers or its catalogue are damaged"),
        (false, blocks) => format!("parity   {path}: {} damaged", counted(blocks, "block")),
    }
}
