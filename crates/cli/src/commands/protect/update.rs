//! `paritas protect --update`: brings protections up to date, unless too much has changed.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use paritas_protect::{
    ChangedFiles, ParityCost, ProtectPlan, Protection, UpdateJob, UpdatePlan, UpdateReport,
    Updated, plan_update,
};
use paritas_report::parts::IdText;
use paritas_report::protections::{ChangesFields, ProtectLine, UpdateWord};

use super::{add_written, dry_run, expect_all_protected, expect_all_seen, line, warn_of_parity};
use crate::args::protect::Protect;
use crate::commands::Outcome;
use crate::commands::many::Worst;
use crate::commands::protections::{
    self, add_lines, below, skipped_entries, title, warn_of_absent, warn_of_unfinished,
};
use crate::commands::shards::file_entries;
use crate::exit::{Exit, Failure, with_flags};
use crate::output::{Output, counted, shown};

/// Updates all protections at the paths.
pub fn run(args: &Protect, output: &Output) -> Outcome {
    let wanted = args.name.as_ref().map(OsStr::new);
    let mut found = protections::among(&args.paths, wanted)?;
    let mut worst = Worst::default();
    found.failures.drain(..).for_each(|failure| worst.note(Err(failure), output));
    found.others.iter().for_each(|path| worst.note(Err(unprotected(path)), output));
    for protection in &found.protections {
        worst.note(one(protection, args, output), output);
    }
    worst.end(output)
}

/// Returns the failure for a path that no protection was found for.
fn unprotected(path: &Path) -> Failure {
    if let Err(error) = path.symlink_metadata() {
        return Failure::io(format!("opening {}", shown(path)), &error);
    }
    Failure::not_recognised(format!(
        "{} is not protected yet, and has no parity; leave out --update, or if its parity is \
         elsewhere, name the folder of the parity instead; if this folder should have parity, its \
         disk may not be mounted",
        shown(path)
    ))
}

fn one(protection: &Protection, args: &Protect, output: &Output) -> Outcome {
    warn_of_absent(protection, output);
    warn_of_unfinished(protection, output);
    let job = UpdateJob::default()
        .checksum(args.checksum)
        .most_changed(args.most_changed)
        .accept_changes(args.accept_changes)
        .accept_removals(args.accept_removals.clone())
        .memory(args.memory.bytes())
        .threads(args.work.threads.most())
        .sync(args.work.is_synced());
    let start = Instant::now();
    let plan = plan_update(protection, &job)?;
    if args.dry_run || plan.refusal().is_some() {
        return foretell(protection, plan, args, start.elapsed().as_secs_f64(), output);
    }
    let progress = output.progress(plan.parity.as_ref().map(|parity| parity.bytes_to_read));
    let read = plan.parity.as_ref().map_or((0, 0), |parity| (parity.bytes_to_read, parity.passes));
    let report = plan.carry_out(&|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let name = (protection.root(), &*protection.label());
    let id = report.protected.as_ref().map_or(protection.id(), |protected| protected.id);
    let line = ProtectLine {
        changes: changes(word(report.updated), report.kept, &report.files),
        read_bytes: read.0,
        passes: read.1,
        held: skipped_entries(&report.held),
        skipped: skipped_entries(&report.skipped),
        ..line(Some(IdText::of(id)), name, report.protected.as_ref(), seconds)
    };
    report.warnings.iter().for_each(|warning| output.warn(warning));
    report.protected.iter().for_each(|protected| warn_of_parity(protected, output));
    output.result(line, || text(protection, &report, args.verbose));
    expect_all_seen(&report.held)?;
    expect_all_protected(&report.skipped)
}

/// Reports an update that is not carried out, because of `--dry-run` or because too much has
/// changed.
fn foretell(
    protection: &Protection,
    plan: UpdatePlan<'_>,
    args: &Protect,
    seconds: f64,
    output: &Output,
) -> Outcome {
    let name = (protection.root(), &*protection.label());
    let is_refused = plan.refusal().is_some();
    let done = if is_refused { UpdateWord::Refused } else { word(plan.updated) };
    let mut line = ProtectLine {
        dry_run: args.dry_run,
        changes: changes(done, plan.kept, &plan.files),
        held: skipped_entries(&plan.held),
        skipped: skipped_entries(&plan.skipped),
        ..line(Some(IdText::of(protection.id())), name, None, seconds)
    };
    let foretold = plan.parity.as_ref().filter(|_| args.dry_run && plan.refusal().is_none());
    let cost = foretold.map(|parity| Ok::<_, Failure>((parity, parity.cost()?))).transpose()?;
    if let Some((parity, cost)) = &cost {
        line = dry_run::foretold(line, parity, cost);
    }
    output.result(line, || foretold_text(protection, &plan, cost.as_ref(), args.verbose));
    match plan.refusal() {
        Some(error) => {
            let message = with_flags(&error.to_string(), error.fields());
            Err(Failure { exit: Exit::Repairable, message })
        }
        None => {
            cost.map_or(Ok(()), |(_, cost)| dry_run::expect_room(&cost))?;
            expect_all_seen(&plan.held)?;
            expect_all_protected(&plan.skipped)
        }
    }
}

/// Describes what an update would do. `cost` is the plan of the parity that it would write, and
/// what that takes.
fn foretold_text(
    protection: &Protection,
    plan: &UpdatePlan<'_>,
    cost: Option<&(&ProtectPlan, ParityCost)>,
    verbose: bool,
) -> String {
    let mut text = match plan.updated {
        _ if plan.refusal().is_some() => format!("{}: not updated", title(protection)),
        Updated::Nothing => return format!("{}: nothing has changed", title(protection)),
        Updated::Layer if plan.files.is_empty() => format!(
            "{}: changes of names, attributes, links and folders would be noted",
            title(protection)
        ),
        Updated::Layer => format!("{}: parity would be added", title(protection)),
        Updated::Anew => format!("{}: all parity would be made anew", title(protection)),
    };
    add_changes(&mut text, protection.root(), plan.kept, &plan.files, verbose);
    if let Some((parity, cost)) = cost {
        dry_run::add(&mut text, parity, cost, verbose);
    }
    text
}

fn word(updated: Updated) -> UpdateWord {
    match updated {
        Updated::Nothing => UpdateWord::Nothing,
        Updated::Layer => UpdateWord::Layer,
        Updated::Anew => UpdateWord::Anew,
    }
}

fn changes(updated: UpdateWord, kept: u64, files: &ChangedFiles) -> ChangesFields {
    let ChangedFiles { added, changed, gone, .. } = files;
    ChangesFields {
        updated: Some(updated),
        kept: Some(kept),
        added: Some(added.len()),
        changed: Some(changed.len()),
        gone: Some(gone.len()),
        added_files: file_entries(added),
        changed_files: file_entries(changed),
        gone_files: file_entries(gone),
    }
}

fn text(protection: &Protection, report: &UpdateReport, verbose: bool) -> String {
    let how = match report.updated {
        Updated::Nothing => return format!("{}: nothing has changed", title(protection)),
        Updated::Layer if report.files.is_empty() => {
            "no file's bytes have changed; changes of names, attributes, links and folders are noted"
        }
        Updated::Layer => "parity added for what is new",
        Updated::Anew => "all parity made anew",
    };
    let mut text = format!("{}: {how}", title(protection));
    add_changes(&mut text, protection.root(), report.kept, &report.files, verbose);
    if let Some(protected) = &report.protected {
        add_written(&mut text, protection.root(), protected, verbose);
    }
    text
}

/// Adds the counts of kept, new, changed and gone files, and lines for the files: gone ones first,
/// then changed and new ones.
fn add_changes(text: &mut String, root: &Path, kept: u64, files: &ChangedFiles, verbose: bool) {
    let ChangedFiles { added, changed, gone, .. } = files;
    let (new, other, lost) = (added.len(), changed.len(), gone.len());
    let kept = counted(kept, "file");
    text.push_str(&format!("; {kept} kept, {new} new, {other} changed, {lost} gone"));
    let mut lines = Vec::new();
    for (what, paths) in [("gone", gone), ("changed", changed), ("new", added)] {
        lines.extend(paths.iter().map(|path| format!("{what:8} {}", below(root, path))));
    }
    add_lines(text, &lines, verbose);
}
