//! Repairing protected files.

use std::path::PathBuf;

use paritas_protect::{FileFinding, FileState, Protection, RepairJob, RepairReport, repair};
use paritas_report::parts::{MovedFileEntry, ObjectStateWord};
use paritas_report::protections::ProtectRepairLine;

use super::kinds::{self, add_steps};
use super::{add_disks, add_lines, below, disk_entries, fields, skipped_entries, title, verify};
use crate::args::shards::Repair;
use crate::commands::many::word_of;
use crate::commands::shards::file_entries;
use crate::exit::{Exit, Failure};
use crate::output::{Output, counted, shown};

/// Repairs one protection, and reports.
pub fn run(
    protection: &Protection,
    args: &Repair,
    output: &Output,
) -> Result<ObjectStateWord, Failure> {
    super::warn_of_absent(protection, output);
    let job = RepairJob::default()
        .to(args.to.clone())
        .restore_changed(args.restore_changed)
        .move_back(args.move_back)
        .clean(args.clean)
        .dry_run(args.dry_run)
        .memory(args.memory.bytes())
        .threads(args.work.threads.most())
        .sync(args.work.is_synced());
    // Every byte counts twice: it is verified, and read again to compute what is lost.
    let progress = output.progress(Some(2 * protection.bytes_to_verify()));
    let report = repair(protection, &job, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    for kind in &report.not_kept {
        output.warn(&format!("the file system of restored files does not keep their {kind}"));
    }
    report.warnings.iter().for_each(|warning| output.warn(warning));
    super::warn_of_unfinished(protection, output);
    let state = state(&report, args);
    if args.search.reports(state) {
        let line = line(protection, &report, (state, args), seconds);
        output.result(line, || text(protection, &report, state, args));
    }
    failure(protection, &report, state).map_or(Ok(state), Err)
}

/// Returns what failed: paths that could not be restored, files or parity that could not be read,
/// or a protection that is beyond repair.
fn failure(
    protection: &Protection,
    report: &RepairReport,
    state: ObjectStateWord,
) -> Option<Failure> {
    let title = title(protection);
    if let Some(first) = report.failed.first() {
        let (paths, reason) = (counted(report.failed.len(), "path"), &first.reason);
        let message = format!("{paths} in {title} could not be restored; the first: {reason}");
        let exit = if report.check_failed { Exit::CheckFailed } else { Exit::Io };
        return Some(Failure { exit, message });
    }
    let (exit, message) = match state {
        ObjectStateWord::Lost => (Exit::Lost, format!("{title} is beyond repair")),
        ObjectStateWord::Unknown => (Exit::Io, unread_message(protection, report)),
        _ => return None,
    };
    Some(Failure { exit, message })
}

/// Says how many files could not be read, and names the first.
fn unread_message(protection: &Protection, report: &RepairReport) -> String {
    let title = title(protection);
    let reason = |finding: &FileFinding| match &finding.state {
        FileState::Unreadable(why) => Some(format!("{}: {why}", shown(&finding.name))),
        _ => None,
    };
    let reasons: Vec<String> = report.found.findings.iter().filter_map(reason).collect();
    match reasons.first() {
        Some(first) => {
            let count = counted(reasons.len(), "file");
            format!("{count} in {title} could not be read; the first: {first}")
        }
        None => format!("parity of {title} could not be read"),
    }
}

/// Returns the state after a repair.
fn state(report: &RepairReport, args: &Repair) -> ObjectStateWord {
    let is_untouched =
        report.restored.is_empty() && report.moved_back.is_empty() && report.parity.is_empty();
    match word_of(report.found.status) {
        state @ (ObjectStateWord::Lost | ObjectStateWord::Unknown) => state,
        state if args.dry_run => state,
        _ if !report.failed.is_empty() => ObjectStateWord::Unknown,
        _ if !changed(report, args).is_empty() => ObjectStateWord::Repairable,
        _ if is_untouched && is_parity_left(report, args) => ObjectStateWord::Repairable,
        _ if is_untouched => ObjectStateWord::Intact,
        _ => ObjectStateWord::Repaired,
    }
}

/// Whether damaged parity stays as it is, because everything is written to the folder of `--to`.
fn is_parity_left(report: &RepairReport, args: &Repair) -> bool {
    args.to.is_some() && !report.found.parity.is_empty()
}

/// Returns changed files that stay as they are.
fn changed(report: &RepairReport, args: &Repair) -> Vec<PathBuf> {
    let is_left = !args.restore_changed && args.to.is_none();
    let findings = report.found.findings.iter().filter(|_| is_left);
    let changed = findings.filter(|finding| matches!(finding.state, FileState::Changed(_)));
    changed.map(|finding| finding.path.clone()).collect()
}

/// Returns files that cannot be read, and so are not restored.
fn unread<'r>(
    report: &'r RepairReport,
    args: &Repair,
) -> impl Iterator<Item = &'r FileFinding> + use<'r> {
    let findings = if args.to.is_none() { &report.found.findings[..] } else { &[] };
    findings.iter().filter(|finding| matches!(finding.state, FileState::Unreadable(_)))
}

fn line(
    protection: &Protection,
    report: &RepairReport,
    (state, args): (ObjectStateWord, &Repair),
    seconds: f64,
) -> ProtectRepairLine {
    let layers = &report.found.layers;
    ProtectRepairLine {
        protection: fields(protection),
        dry_run: args.dry_run,
        status: state,
        restored: file_entries(&report.restored),
        moved_back: moved_entries(&report.moved_back),
        kept: moved_entries(&report.kept),
        cleaned: file_entries(&report.cleaned),
        not_kept: report.not_kept.clone(),
        parity: file_entries(&report.parity),
        changed: file_entries(&changed(report, args)),
        lost: file_entries(&report.lost),
        failed: skipped_entries(&report.failed),
        disks: disk_entries(&report.disks),
        lost_blocks: layers.iter().map(|layer| layer.lost).sum(),
        needed: layers.iter().map(|layer| layer.needed).sum(),
        seconds,
    }
}

/// Returns entries for files that were moved: each from its first path to its second.
fn moved_entries(moved: &[(PathBuf, PathBuf)]) -> Vec<MovedFileEntry> {
    let entry =
        |(from, to): &(PathBuf, PathBuf)| MovedFileEntry { path: to.into(), from: from.into() };
    moved.iter().map(entry).collect()
}

fn text(
    protection: &Protection,
    report: &RepairReport,
    state: ObjectStateWord,
    args: &Repair,
) -> String {
    let mut text = headline(protection, report, state, args);
    add_lines(&mut text, &lines(protection, report, state, args), args.search.verbose);
    let left: Vec<String> = changed(report, args)
        .iter()
        .map(|path| format!("changed  {} stays as it is", below(protection.root(), path)))
        .collect();
    add_lines(&mut text, &left, args.search.verbose);
    if args.dry_run {
        add_disks(&mut text, &report.disks);
        text.push_str("\n  nothing was written (--dry-run)");
    }
    if is_parity_left(report, args) {
        let count = counted(report.found.parity.len(), "parity file");
        text.push_str(&format!(
            "\n  parity   {count} to be written anew, by `repair` without --to"
        ));
    }
    add_steps(&mut text, steps(protection, report, state, args));
    text
}

/// Returns the first line: the state, and how much was done.
fn headline(
    protection: &Protection,
    report: &RepairReport,
    state: ObjectStateWord,
    args: &Repair,
) -> String {
    let name = title(protection);
    match state {
        ObjectStateWord::Lost => {
            let (verdict, done) =
                (verify::verdict(&report.found, state), done(report, state, args));
            format!("{name}: lost{verdict}; {done}")
        }
        ObjectStateWord::Intact => format!("{name}: intact, nothing to repair"),
        _ => format!("{name}: {}", done(report, state, args)),
    }
}

/// Returns a line for each file that was (or would be) written, moved, kept or removed, and for
/// each that is lost, failed, or cannot be read.
fn lines(
    protection: &Protection,
    report: &RepairReport,
    state: ObjectStateWord,
    args: &Repair,
) -> Vec<String> {
    let root = args.to.as_deref().unwrap_or(protection.root());
    let [restored, moved, written] = match args.dry_run {
        true => ["restore ", "move    ", "to be written anew"],
        false => ["restored", "moved   ", "written anew"],
    };
    let paths = report.restored.iter().map(|path| below(root, path));
    let mut lines: Vec<String> = paths.map(|path| format!("{restored} {path}")).collect();
    lines.extend(
        report
            .moved_back
            .iter()
            .map(|(from, to)| format!("{moved} {} back to {}", below(root, from), below(root, to))),
    );
    lines.extend(report.kept.iter().map(|(from, to)| {
        format!("kept     the old {} as {}", below(root, from), below(root, to))
    }));
    lines.extend(report.cleaned.iter().map(|path| format!("removed  {}", below(root, path))));
    let parity = report.parity.iter().map(|path| below(root, path));
    lines.extend(parity.map(|path| format!("parity   {path} {written}")));
    let why = match state {
        // What it needs may be there again.
        ObjectStateWord::Unknown => ["waiting ", ", for what cannot be read"],
        _ => ["lost    ", ""],
    };
    let lost = report.lost.iter().map(|path| below(root, path));
    lines.extend(lost.map(|path| format!("{} {path}{}", why[0], why[1])));
    lines.extend(unread(report, args).map(|finding| verify::finding_line(protection, finding)));
    let closed = report.found.parity.iter().filter(|finding| finding.unreadable);
    lines.extend(closed.map(|finding| verify::parity_line(protection, finding)));
    lines.extend(report.failed.iter().map(|one| format!("failed   {}", one.reason)));
    lines
}

/// Returns what to do next.
fn steps(
    protection: &Protection,
    report: &RepairReport,
    state: ObjectStateWord,
    args: &Repair,
) -> Vec<String> {
    let is_lost = state == ObjectStateWord::Lost;
    let mut steps = Vec::new();
    if !changed(report, args).is_empty() {
        let [accept, restore] = kinds::for_changed(protection, &report.found.layers);
        // An update would give up what is lost.
        steps.extend(Some(accept).filter(|_| !is_lost));
        steps.push(restore);
    }
    if is_lost {
        steps.push(kinds::beyond_repair(protection));
    }
    if unread(report, args).next().is_some() {
        steps.push(kinds::for_unreadable(protection, "repair"));
    }
    if !report.kept.is_empty() {
        steps.push(kinds::for_copies(protection));
    }
    steps
}

/// Counts what was done or would be done: files, folders and links, and parity files.
fn done(report: &RepairReport, state: ObjectStateWord, args: &Repair) -> String {
    let lost = if state == ObjectStateWord::Unknown { "waiting" } else { "lost" };
    let would = if args.dry_run { " would be" } else { "" };
    let parity = counted(report.parity.len(), "parity file");
    let parts = [
        (report.restored.len(), format!("{}{would} restored", report.restored.len())),
        (report.moved_back.len(), format!("{}{would} moved back", report.moved_back.len())),
        (report.parity.len(), format!("{parity}{would} written anew")),
        (report.cleaned.len(), format!("{} removed", counted(report.cleaned.len(), "leftover"))),
        (report.lost.len(), format!("{} {lost}", report.lost.len())),
        (report.failed.len(), format!("{} failed", report.failed.len())),
    ];
    let done = parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, said)| said);
    match done.collect::<Vec<_>>() {
        done if done.is_empty() => format!("nothing{would} restored"),
        done => done.join(", "),
    }
}
