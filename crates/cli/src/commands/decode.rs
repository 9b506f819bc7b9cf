//! `paritas decode`: turns shards into objects again.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, is_separator};

use paritas_report::parts::DigestText;
use paritas_report::shard_parts::ShardEntry;
use paritas_report::shards::DecodeLine;
use paritas_shards::{
    DecodeReport, DecodeTarget, FileTarget, Inventory, Object, Preserve, ShardState, decode,
};

use crate::args::is_stdout;
use crate::args::shards::Decode;
use crate::commands::many::Worst;
use crate::commands::{Outcome, shards};
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, shown};

/// Decodes one object to a file or pipe, or all objects to a folder.
pub fn run(args: &Decode, output: &Output) -> Outcome {
    let inventory = shards::find(&args.paths, output)?;
    if !is_stdout(&args.out) && is_folder(&args.out) {
        return into_folder(args, inventory, output);
    }
    one(shards::choose(&inventory, args.object.as_deref())?, &args.out, args, output)
}

/// Whether a path is a folder, or ends with a separator because it is meant to become one.
pub fn is_folder(out: &Path) -> bool {
    let last = out.as_os_str().as_encoded_bytes().last();
    out.is_dir() || last.is_some_and(|&last| is_separator(last.into()))
}

/// Decodes each object to a file of its name. Returns the worst exit code.
fn into_folder(args: &Decode, inventory: Inventory, output: &Output) -> Outcome {
    let wrecks = if args.object.is_none() { inventory.wrecks() } else { Vec::new() };
    let objects = shards::taken(inventory, args.object.as_deref())?;
    let _new = exit::make_out(&args.out)?;
    let mut ids: BTreeMap<OsString, Vec<String>> = BTreeMap::new();
    for object in &objects {
        ids.entry(object.name().to_owned()).or_default().push(object.id().to_string());
    }
    let (twins, ids): (BTreeMap<_, _>, BTreeMap<_, _>) =
        ids.into_iter().partition(|(_, ids)| ids.len() > 1);
    let mut worst = Worst::default();
    for wreck in &wrecks {
        let message = format!("{}: {}", shown(&wreck.name), shards::wreck_text(wreck));
        worst.note(Err(Failure { exit: Exit::Lost, message }), output);
    }
    twins.iter().for_each(|(name, ids)| worst.note(Err(same_name(name, ids)), output));
    for object in objects.into_iter().filter(|object| ids.contains_key(object.name())) {
        // A stored name is always a base name: shards with any other name are not recognised.
        let path = args.out.join(object.name());
        let free = expect_free(&path, args.force).and_then(|()| expect_no_link(&path));
        worst.note(free.and_then(|()| one(&object, &path, args, output)), output);
    }
    worst.end(output)
}

fn same_name(name: &OsStr, ids: &[String]) -> Failure {
    Failure::arguments(format!(
        "{} objects are called {}, so none of them was decoded; choose one with --object: {}",
        ids.len(),
        shown(name),
        ids.join(", ")
    ))
}

/// Refuses a path that is taken, unless `force` is set.
fn expect_free(path: &Path, force: bool) -> Result<(), Failure> {
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::arguments(format!("{} exists; --force replaces it", shown(path))))
}

/// Refuses a symbolic link in the place of a name that shards state: it would lead out of the
/// folder.
fn expect_no_link(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => Err(Failure::arguments(format!(
            "{} is a symbolic link, and is not followed; give its target as the file to write",
            shown(path)
        ))),
        _ => Ok(()),
    }
}

fn one(object: &Object, out: &Path, args: &Decode, output: &Output) -> Outcome {
    let target = match is_stdout(out) {
        true => {
            output::expect_open_stdout()?;
            DecodeTarget::Writer(Box::new(std::io::stdout()))
        }
        false => FileTarget::new(out)
            .force(args.force)
            .sync(args.work.is_synced())
            .preserve(preserve(args))
            .into(),
    };
    let progress = output.progress(object.length());
    let threads = args.work.threads.most();
    let report = decode(object, target, threads, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    report.warnings.iter().for_each(|warning| output.warn(warning));
    let unreadable = object.unreadable();
    let state = |shard: usize| match unreadable.contains(&shard) {
        true => ShardState::Unreadable,
        false => ShardState::Missing,
    };
    let line = DecodeLine {
        object: shards::fields(object),
        digest: DigestText::of(report.digest),
        seconds,
        path: if is_stdout(out) { Path::new("-") } else { out }.into(),
        shards: unusable(&report, state),
    };
    output.result(line, || text(object, &report, state));
    Ok(Exit::Done)
}

/// Returns the result for people.
fn text(object: &Object, report: &DecodeReport, state: impl Fn(usize) -> ShardState) -> String {
    let mut text =
        format!("{}: {} recovered, digest right", object.label(), output::bytes(report.length));
    for &index in &report.missing {
        text.push_str(&format!("\n  shard {index} was {}", state(index).name()));
    }
    for line in report.damaged.iter().filter_map(shards::file_line) {
        text.push_str(&format!("\n{line}"));
    }
    text
}

/// Returns the shards that were missing, each with its state, and the damaged files.
fn unusable(report: &DecodeReport, state: impl Fn(usize) -> ShardState) -> Vec<ShardEntry> {
    let missing = report.missing.iter().map(|&index| ShardEntry {
        index,
        stage: None,
        state: shards::word(state(index)),
        file: None,
    });
    missing.chain(report.damaged.iter().map(shards::file_entry)).collect()
}

fn preserve(args: &Decode) -> Preserve {
    match args {
        Decode { no_preserve: true, .. } => Preserve::Nothing,
        Decode { preserve_special: true, .. } => Preserve::Special,
        _ => Preserve::Usual,
    }
}
