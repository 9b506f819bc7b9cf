//! `paritas protect`: puts parity beside files that stay where they are.

mod dry_run;
mod update;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use paritas_protect::{ProtectJob, ProtectPlan, ProtectReport, Skipped, StreamGeometry};
use paritas_report::parts::IdText;
use paritas_report::protections::{ChangesFields, ProtectLine};
use paritas_store::memory::usable;

use crate::args::protect::{Memory, Protect};
use crate::commands::Outcome;
use crate::commands::protections::{
    add_lines, below, layer_entry, share, skipped_entries, warn_of_memory,
};
use crate::commands::shards::file_entries;
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Protects files, or brings their protections up to date.
pub fn run(args: &Protect, output: &Output) -> Outcome {
    warn_of_memory(args.memory, output);
    match args.update {
        true => update::run(args, output),
        false => protect(args, output),
    }
}

fn protect(args: &Protect, output: &Output) -> Outcome {
    args.parity_dir.iter().try_for_each(|dir| exit::require_folder("--parity-dir", dir))?;
    let job = ProtectJob::new(args.paths.clone())
        .redundancy(args.redundancy)
        .parity_dirs(args.parity_dir.clone())
        .excludes(args.exclude.clone())
        .one_file_system(args.one_file_system)
        .memory(args.memory.bytes())
        .threads(args.work.threads.most())
        .label(args.name.clone())
        .force(args.force)
        .sync(args.work.is_synced());
    let start = Instant::now();
    let plan = paritas_protect::plan(&job)?;
    expect_files(&plan, args)?;
    cost(&plan, args).iter().for_each(|note| output.warn(note));
    warn_of_unmatched(&plan, output);
    if args.dry_run {
        let cost = dry_run::report(&plan, args, start.elapsed().as_secs_f64(), output)?;
        dry_run::expect_room(&cost)?;
        return expect_all_protected(&plan.skipped);
    }
    let progress = output.progress(Some(plan.bytes_to_read));
    let report = paritas_protect::protect(&plan, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let name = (&*plan.root, &*plan.label);
    let line = ProtectLine {
        read_bytes: plan.bytes_to_read,
        passes: plan.passes,
        unmatched_excludes: plan.unmatched_excludes.clone(),
        ..line(Some(IdText::of(report.id)), name, Some(&report), seconds)
    };
    warn_of_parity(&report, output);
    output.result(line, || text(name, &report, args.verbose));
    expect_all_protected(&report.skipped)
}

/// Refuses a plan without files: perhaps none can be read, or a disk is not mounted.
fn expect_files(plan: &ProtectPlan, args: &Protect) -> Result<(), Failure> {
    let why = match args.exclude.is_empty() {
        true => "if it is on a disk, that may not be mounted",
        false => "its disk may not be mounted, or --exclude leaves out all of its files",
    };
    match plan.files {
        0 => expect_all_protected(&plan.skipped).and(Err(Failure::arguments(format!(
            "{} has no files to protect; {why}",
            shown(&plan.root)
        )))),
        _ => Ok(()),
    }
}

/// Warns of patterns that match nothing: they may be misspelt.
fn warn_of_unmatched(plan: &ProtectPlan, output: &Output) {
    for pattern in &plan.unmatched_excludes {
        output.warn(&format!("--exclude {} matches nothing", output::quoted(pattern)));
    }
}

/// Returns a warning if files are read more than once.
fn cost(plan: &ProtectPlan, args: &Protect) -> Option<String> {
    (plan.passes > 1).then(|| {
        format!(
            "{} of parity do not fit into {}: the files are read in {} passes, {} instead of {}",
            output::bytes(plan.parity_bytes),
            limit(args.memory),
            plan.passes,
            output::bytes(plan.bytes_to_read),
            output::bytes(plan.geometry.length),
        )
    })
}

/// Describes the limit of memory, and where it comes from.
fn limit(memory: Memory) -> String {
    let bytes = output::bytes(memory.bytes());
    match (memory.memory, usable()) {
        (Some(_), _) => format!("--memory {bytes}"),
        (None, Some(usable)) if memory.bytes() == usable / 4 => format!(
            "{bytes} of memory, a quarter of the {} that this process may use (--memory allows \
             more)",
            output::bytes(usable)
        ),
        (None, _) => format!("{bytes} of memory, the default of --memory"),
    }
}

/// Prints the warnings of a report, and warns if more than half of the parity is spent on files
/// that could not be read.
fn warn_of_parity(report: &ProtectReport, output: &Output) {
    report.warnings.iter().for_each(|warning| output.warn(warning));
    let (gaps, parity) = (report.gap_blocks, report.geometry.parity);
    if gaps * 2 > parity {
        output.warn(&format!(
            "files that could not be read, or changed while they were read, take {} of {}; protect \
             everything anew with --force, or leave them out by --exclude",
            gaps.min(parity),
            counted(parity, "parity block")
        ));
    }
}

/// Fails if protected paths could not be examined. Their protection stays as it was.
fn expect_all_seen(held: &[Skipped]) -> Result<(), Failure> {
    let Some(Skipped { path, reason, .. }) = held.first() else { return Ok(()) };
    let others = match held.len() - 1 {
        0 => String::new(),
        more => format!(", nor could {}", counted(more, "other path")),
    };
    let message = format!(
        "{} could not be looked at: {reason}{others}; what is protected there stays as it was \
         (--accept-changes gives up a disk that is not mounted)",
        shown(path)
    );
    Err(Failure { exit: Exit::Io, message })
}

/// Fails if files are not protected although they should be. Sockets, pipes and devices need not
/// be.
fn expect_all_protected(skipped: &[Skipped]) -> Outcome {
    let unread: Vec<&Skipped> = skipped.iter().filter(|skipped| !skipped.is_special()).collect();
    match unread.first() {
        None => Ok(Exit::Done),
        Some(Skipped { path, reason, .. }) => {
            let others = match unread.len() - 1 {
                0 => String::new(),
                1 => ", nor is 1 other path".to_owned(),
                more => format!(", nor are {more} other paths"),
            };
            let message = format!("{} is not protected: {reason}{others}", shown(path));
            Err(Failure { exit: Exit::Io, message })
        }
    }
}

/// Returns the fields for what was written, if anything, that are the same with and without
/// `--update`.
fn line(
    id: Option<IdText>,
    (root, label): (&Path, &str),
    report: Option<&ProtectReport>,
    seconds: f64,
) -> ProtectLine {
    let nothing = StreamGeometry { length: 0, block: 0, data: 0, parity: 0 };
    let geometry = report.map_or(nothing, |report| report.geometry);
    let number = |of: fn(&ProtectReport) -> u64| report.map_or(0, of);
    ProtectLine {
        id,
        label: label.to_owned(),
        root: root.into(),
        dry_run: false,
        changes: ChangesFields::default(),
        files: number(|report| report.files),
        bytes: number(|report| report.bytes),
        blocks: layer_entry(&geometry),
        parity_bytes: geometry.parity * geometry.block,
        catalogue_bytes: number(|report| report.catalogue_bytes),
        stored_bytes: number(|report| report.stored_bytes),
        read_bytes: 0,
        passes: 0,
        held: Vec::new(),
        parity_files: file_entries(report.iter().flat_map(|report| &report.parity_files)),
        disks: Vec::new(),
        unmatched_excludes: Vec::new(),
        skipped: skipped_entries(report.map_or(&[], |report| &report.skipped)),
        seconds,
    }
}

fn text((root, label): (&Path, &str), report: &ProtectReport, verbose: bool) -> String {
    let bytes = output::bytes(report.bytes);
    let (label, files) = (shown(label), counted(report.files, "file"));
    let mut text = format!("{label}: {files}, {bytes} protected");
    add_written(&mut text, root, report, verbose);
    text
}

/// Describes the parity that was written.
fn add_written(text: &mut String, root: &Path, report: &ProtectReport, verbose: bool) {
    let StreamGeometry { block, data, parity, .. } = report.geometry;
    if data > 0 {
        let left = parity.saturating_sub(report.gap_blocks);
        text.push_str(&format!(
            "\n  repairs  any {left} lost or damaged of {} blocks, about {}, wherever they are",
            data + parity - report.gap_blocks,
            output::bytes(left * block)
        ));
    }
    let folders: BTreeSet<&Path> =
        report.parity_files.iter().filter_map(|path| path.parent()).collect();
    let folders: Vec<String> = folders.into_iter().map(output::shell_path).collect();
    text.push_str(&format!(
        "\n  parity   {}{}, in {}: {}",
        output::bytes(report.stored_bytes),
        of_the_files(report),
        counted(report.parity_files.len(), "file"),
        folders.join(", ")
    ));
    if verbose {
        let paths: Vec<&PathBuf> = report.parity_files.iter().collect();
        paths.iter().for_each(|path| text.push_str(&format!("\n           {}", shown(path))));
    }
    let line = |one: &Skipped| format!("skipped  {}: {}", below(root, &one.path), one.reason);
    let skipped: Vec<String> = report.skipped.iter().map(line).collect();
    add_lines(text, &skipped, verbose);
}

/// Returns the stored bytes as a share of the files, for texts. Small files have none: their
/// catalogues and headers would outweigh the parity.
fn of_the_files(report: &ProtectReport) -> String {
    match report.stored_bytes > 10 * report.bytes {
        true => String::new(),
        false => format!(", {} of the files", share(report.stored_bytes, report.bytes)),
    }
}
