//! `paritas decode`: shards become the object again.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use paritas_store::{DecodeTarget, Preserve, ShardState, decode};
use serde_json::json;

use crate::args::Decode;
use crate::commands::{Outcome, shards};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, shown};

/// Decodes and reports.
pub fn run(args: &Decode, output: &Output) -> Outcome {
    refuse_folder(&args.out)?;
    let inventory = shards::find(&args.paths, output)?;
    let object = shards::choose(&inventory, args.object.as_deref())?;
    let target = match args.out.as_os_str() == "-" {
        true => DecodeTarget::Writer(Box::new(std::io::stdout())),
        false => DecodeTarget::File {
            path: args.out.clone(),
            force: args.force,
            sync: args.work.is_synced(),
            preserve: preserve(args),
        },
    };
    let progress = output.progress(object.length());
    let report = decode(object, target, args.work.threads, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let unreadable = object.unreadable();
    let state = |shard: &usize| match unreadable.contains(shard) {
        true => shards::state(ShardState::Unreadable),
        false => shards::state(ShardState::Missing),
    };
    let missing = report.missing.iter().map(|i| json!({"index": i, "state": state(i)}));
    let damaged = report.damaged.iter().map(shards::file_value);
    let mut value = shards::describe("decode", object);
    value["digest"] = json!(report.digest.to_string());
    value["seconds"] = json!(seconds);
    value["shards"] = missing.chain(damaged).collect();
    output::insert_name(&mut value, "path", args.out.as_os_str());
    output.result(value, || {
        let mut text = format!(
            "{}: {} recovered, digest right",
            shown(object.name()),
            output::bytes(report.length)
        );
        for index in &report.missing {
            text.push_str(&format!("\n  shard {index} was {}", state(index)));
        }
        for line in report.damaged.iter().filter_map(shards::file_line) {
            text.push_str(&format!("\n{line}"));
        }
        text
    });
    Ok(Exit::Done)
}

fn preserve(args: &Decode) -> Preserve {
    match args {
        Decode { no_preserve: true, .. } => Preserve::Nothing,
        Decode { preserve_special: true, .. } => Preserve::Special,
        _ => Preserve::Usual,
    }
}

/// The name is to be a file's, and that is better said before the work than after it.
fn refuse_folder(out: &Path) -> Result<(), Failure> {
    if !out.is_dir() && !out.as_os_str().as_bytes().ends_with(b"/") {
        return Ok(());
    }
    let out = shown(out);
    Err(Failure::arguments(format!("--out {out} is a folder; name a file in it")))
}
