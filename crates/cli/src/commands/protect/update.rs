//! `paritas protect --update`: brings protections up to date, unless too much has changed.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Instant;

use paritas_protect::{
    ChangedFiles, Protection, UpdateJob, UpdatePlan, UpdateReport, Updated, plan_update,
};
use serde_json::{Value, json};

use super::{add_written, dry_run, expect_all_protected, expect_all_seen, value, warn_of_parity};
use crate::args::protect::Protect;
use crate::commands::Outcome;
use crate::commands::many::Worst;
use crate::commands::protections::{
    self, add_lines, below, path_values, skipped_values, title, warn_of_absent,
};
use crate::exit::{Exit, Failure, with_flags};
use crate::output::{Output, counted, shown};

/// Updates all protections at the paths.
pub fn run(args: &Protect, output: &Output) -> Outcome {
    let wanted = args.name.as_ref().map(OsStr::new);
    let mut found = protections::among(&args.paths, wanted)?;
    let mut worst = Worst::default();
    found.failures.drain(..).for_each(|failure| worst.note(Err(failure), output));
    if let Some(path) = found.others.first() {
        let message = format!(
            "{} is not protected yet; leave out --update, or if its parity is elsewhere, name \
             the folder of the parity instead",
            shown(path)
        );
        worst.note(Err(Failure::not_recognised(message)), output);
    }
    for protection in &found.protections {
        worst.note(one(protection, args, output), output);
    }
    worst.end(output)
}

fn one(protection: &Protection, args: &Protect, output: &Output) -> Outcome {
    warn_of_absent(protection, output);
    let job = UpdateJob::default()
        .checksum(args.checksum)
        .most_changed(args.most_changed)
        .accept_changes(args.accept_changes)
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
    let mut value = value(&id.to_string(), name, report.protected.as_ref(), seconds);
    insert_changes(&mut value, how(report.updated), report.kept, &report.files);
    (value["read_bytes"], value["passes"]) = (json!(read.0), json!(read.1));
    value["skipped"] = skipped_values(&report.skipped);
    report.protected.iter().for_each(|protected| warn_of_parity(protected, output));
    value["held"] = skipped_values(&report.held);
    output.result(value, || text(protection, &report, args.verbose));
    expect_all_seen(&report.held)?;
    expect_all_protected(&report.skipped)
}

/// Reports an update that is not carried out, because nobody asked for it yet, or because too much
/// has changed.
fn foretell(
    protection: &Protection,
    plan: UpdatePlan<'_>,
    args: &Protect,
    seconds: f64,
    output: &Output,
) -> Outcome {
    let name = (protection.root(), &*protection.label());
    let mut value = value(&protection.id().to_string(), name, None, seconds);
    let done = if plan.refusal().is_some() { "refused" } else { how(plan.updated) };
    insert_changes(&mut value, done, plan.kept, &plan.files);
    value["dry_run"] = json!(args.dry_run);
    value["held"] = skipped_values(&plan.held);
    value["skipped"] = skipped_values(&plan.skipped);
    let foretold = plan.parity.as_ref().filter(|_| args.dry_run && plan.refusal().is_none());
    let cost = foretold.map(|parity| Ok::<_, Failure>((parity, parity.cost()?))).transpose()?;
    if let Some((parity, cost)) = &cost {
        dry_run::insert(&mut value, parity, cost);
    }
    output.result(value, || {
        let mut text = match plan.updated {
            _ if plan.refusal().is_some() => format!("{}: not updated", title(protection)),
            Updated::Nothing => return format!("{}: nothing has changed", title(protection)),
            Updated::Layer => format!("{}: parity would be added", title(protection)),
            Updated::Anew => format!("{}: all parity would be made anew", title(protection)),
        };
        add_changes(&mut text, protection.root(), plan.kept, &plan.files, args.verbose);
        if let Some((parity, cost)) = &cost {
            dry_run::add(&mut text, parity, cost, args.verbose);
        }
        text
    });
    match plan.refusal() {
        Some(error) => {
            let message = with_flags(&error.to_string(), error.fields());
            Err(Failure { exit: Exit::Repairable, message })
        }
        None => {
            expect_all_seen(&plan.held)?;
            expect_all_protected(&plan.skipped)
        }
    }
}

fn how(updated: Updated) -> &'static str {
    match updated {
        Updated::Nothing => "nothing",
        Updated::Layer => "layer",
        Updated::Anew => "anew",
    }
}

fn insert_changes(value: &mut Value, updated: &str, kept: u64, files: &ChangedFiles) {
    value["updated"] = json!(updated);
    value["kept"] = json!(kept);
    for (name, paths) in
        [("added", &files.added), ("changed", &files.changed), ("gone", &files.gone)]
    {
        value[name] = json!(paths.len());
        value[format!("{name}_files")] = path_values(paths);
    }
}

fn text(protection: &Protection, report: &UpdateReport, verbose: bool) -> String {
    let how = match report.updated {
        Updated::Nothing => return format!("{}: nothing has changed", title(protection)),
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

/// Adds the counts of what has changed, and lines for the files, those that are lost first.
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
