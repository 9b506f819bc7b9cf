//! `paritas protect`: puts parity beside files that stay where they are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paritas_protect::{
    Geometry, Plan, ProtectJob, ProtectReport, Protection, Skipped, UpdateJob, UpdateReport,
    Updated,
};
use paritas_store::memory::usable;
use serde_json::{Value, json};

use crate::args::protect::{Memory, Protect};
use crate::commands::many::Worst;
use crate::commands::protections::{
    self, add_lines, below, geometry_value, path_values, share, skipped_values, title,
    warn_of_absent, warn_of_memory,
};
use crate::commands::{Outcome, leftovers};
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Protects files, or brings their protections up to date.
pub fn run(args: &Protect, output: &Output) -> Outcome {
    warn_of_memory(args.memory, output);
    match args.update {
        true => update_all(args, output),
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
    let plan = paritas_protect::plan(&job)?;
    expect_files(&plan)?;
    cost(&plan, args).iter().for_each(|note| output.warn(note));
    let progress = output.progress(Some(plan.bytes_to_read));
    let report = paritas_protect::protect(&plan, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let name = (&*plan.root, &*plan.label);
    let mut value = value(&report.id.to_string(), name, Some(&report), seconds);
    value["read_bytes"] = json!(plan.bytes_to_read);
    value["passes"] = json!(plan.passes);
    warn_of_gaps(&report, output);
    output.result(value, || text(name, &report, args.verbose));
    expect_all_protected(&report.skipped)
}

/// Refuses to protect nothing: perhaps a disk is not mounted.
fn expect_files(plan: &Plan) -> Result<(), Failure> {
    match plan.files {
        0 => Err(Failure::arguments(format!(
            "{} has no files to protect; if it is on a disk, that may not be mounted",
            shown(&plan.root)
        ))),
        _ => Ok(()),
    }
}

/// Says what is read more than once.
fn cost(plan: &Plan, args: &Protect) -> Option<String> {
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

/// Describes the limit of memory, and where it is from.
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

/// Says when most of the parity is spent on files that could not be read.
fn warn_of_gaps(report: &ProtectReport, output: &Output) {
    let (gaps, parity) = (report.gap_blocks, report.geometry.parity);
    if gaps * 2 > parity {
        output.warn(&format!(
            "files that could not be read take {} of {}; protect everything anew with --force, or \
             leave them out by --exclude",
            gaps.min(parity),
            counted(parity, "parity block")
        ));
    }
}

/// Reports what is protected and could not be looked at. Its protection stays as it was.
fn expect_all_seen(held: &[Skipped]) -> Result<(), Failure> {
    let Some(Skipped { path, reason, .. }) = held.first() else { return Ok(()) };
    let others = match held.len() - 1 {
        0 => String::new(),
        more => format!(", nor could {more} others"),
    };
    let message = format!(
        "{} could not be looked at: {reason}{others}; what is protected there stays as it was",
        shown(path)
    );
    Err(Failure { exit: Exit::Io, message })
}

/// Reports files that are not protected although they should be. Nobody expects it of sockets.
fn expect_all_protected(skipped: &[Skipped]) -> Outcome {
    let unread: Vec<&Skipped> = skipped.iter().filter(|skipped| !skipped.is_special()).collect();
    match unread.first() {
        None => Ok(Exit::Done),
        Some(Skipped { path, reason, .. }) => {
            let others = match unread.len() - 1 {
                0 => String::new(),
                more => format!(", nor are {more} others"),
            };
            let message = format!("{} is not protected: {reason}{others}", shown(path));
            Err(Failure { exit: Exit::Io, message })
        }
    }
}

fn update_all(args: &Protect, output: &Output) -> Outcome {
    let wanted = args.name.as_ref().map(std::ffi::OsStr::new);
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
        worst.note(update(protection, args, output), output);
    }
    worst.end(output)
}

fn update(protection: &Protection, args: &Protect, output: &Output) -> Outcome {
    warn_of_absent(protection, output);
    let job = UpdateJob::default()
        .checksum(args.checksum)
        .memory(args.memory.bytes())
        .threads(args.work.threads.most())
        .sync(args.work.is_synced());
    let progress = output.progress(None);
    let report = paritas_protect::update(protection, &job, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let name = (protection.root(), &*protection.label());
    let id = report.protected.as_ref().map_or(protection.id(), |protected| protected.id);
    let mut value = value(&id.to_string(), name, report.protected.as_ref(), seconds);
    value["updated"] = json!(match report.updated {
        Updated::Nothing => "nothing",
        Updated::Layer => "layer",
        Updated::Anew => "anew",
    });
    for (name, count) in [
        ("kept", report.kept),
        ("added", report.added),
        ("changed", report.changed),
        ("gone", report.gone),
    ] {
        value[name] = json!(count);
    }
    value["skipped"] = skipped_values(&report.skipped);
    report.protected.iter().for_each(|protected| warn_of_gaps(protected, output));
    value["held"] = skipped_values(&report.held);
    output.result(value, || update_text(protection, &report, args.verbose));
    expect_all_seen(&report.held)?;
    expect_all_protected(&report.skipped)
}

/// Returns the result in JSON, as far as it is the same with and without `--update`.
fn value(
    id: &str,
    (root, label): (&Path, &str),
    report: Option<&ProtectReport>,
    seconds: f64,
) -> Value {
    let nothing = Geometry { length: 0, block: 0, data: 0, parity: 0 };
    let geometry = report.map_or(nothing, |report| report.geometry);
    let number = |of: fn(&ProtectReport) -> u64| json!(report.map_or(0, of));
    let mut value = geometry_value(&geometry);
    value["type"] = json!("protect");
    value["id"] = json!(id);
    value["label"] = json!(label);
    output::insert_name(&mut value, "root", root.as_os_str());
    for null in ["updated", "kept", "added", "changed", "gone", "read_bytes", "passes"] {
        value[null] = Value::Null;
    }
    value["held"] = json!([]);
    value["files"] = number(|report| report.files);
    value["bytes"] = number(|report| report.bytes);
    value["parity_bytes"] = json!(geometry.parity * geometry.block);
    value["catalogue_bytes"] = number(|report| report.catalogue_bytes);
    value["stored_bytes"] = number(|report| report.stored_bytes);
    value["parity_files"] = path_values(report.iter().flat_map(|report| &report.parity_files));
    value["skipped"] = skipped_values(report.map_or(&[], |report| &report.skipped));
    value["seconds"] = json!(seconds);
    value
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
    let Geometry { block, data, parity, .. } = report.geometry;
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
    let folders: Vec<String> = folders.into_iter().map(leftovers::quoted).collect();
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

/// Says how much the parity is beside the files. Beside almost nothing, what each parity file has
/// besides parity says little.
fn of_the_files(report: &ProtectReport) -> String {
    match report.stored_bytes > 10 * report.bytes {
        true => String::new(),
        false => format!(", {} of the files", share(report.stored_bytes, report.bytes)),
    }
}

fn update_text(protection: &Protection, report: &UpdateReport, verbose: bool) -> String {
    let UpdateReport { kept, added, changed, gone, .. } = report;
    let how = match report.updated {
        Updated::Nothing => return format!("{}: nothing has changed", title(protection)),
        Updated::Layer => "parity added for what is new",
        Updated::Anew => "all parity made anew",
    };
    let kept = counted(*kept, "file");
    let mut text = format!(
        "{}: {how}; {kept} kept, {added} new, {changed} changed, {gone} gone",
        title(protection)
    );
    if let Some(protected) = &report.protected {
        add_written(&mut text, protection.root(), protected, verbose);
    }
    text
}
