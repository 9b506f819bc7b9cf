//! Parts of reports that several commands share.

use std::path::Path;

use paritas_shards::Timestamp;
use paritas_volume::names::ObjectName;
use paritas_volume::{Flaw, FoundObject, ScrubPass, ScrubStatus, Volume, Waiting};
use serde_json::{Value, json};

use crate::commands::leftovers::quoted;
use crate::output::{Output, counted, shown, time_text};

/// Returns a command on a volume as a user types it.
pub fn command(verb: &str, path: &Path, more: &str) -> String {
    format!("`paritas volume {verb} {}{more}`", quoted(path))
}

/// Returns the command that repairs all objects, and what it does.
pub fn repair_command(path: &Path) -> String {
    let repair = command("repair", path, "");
    format!("{repair} restores what is damaged, missing or not in its place")
}

/// Returns what was wrong on nodes, in JSON.
pub fn flaw_values(flaws: &[Flaw]) -> Value {
    let value = |flaw: &Flaw| {
        let Flaw { node, shard, message, count, .. } = flaw;
        json!({"node": node, "shard": shard, "message": message, "count": count})
    };
    flaws.iter().map(value).collect()
}

/// Says how many nodes may be lost, whichever they are.
pub fn may_be_lost(nodes: usize) -> String {
    match nodes {
        0 => "no node may be lost".to_owned(),
        _ => format!("any {} may be lost", counted(nodes, "node")),
    }
}

/// Says how many nodes besides those that are lost may be lost, whichever they are.
pub fn more_may_be_lost(nodes: usize) -> String {
    match nodes {
        0 => "no more nodes may be lost".to_owned(),
        1 => "any 1 more node may be lost".to_owned(),
        _ => format!("any {nodes} more nodes may be lost"),
    }
}

/// Says how many nodes may be lost by what a volume's code tolerates. Before an object is promoted,
/// these are fewer.
pub fn tolerance_text(volume: &Volume) -> String {
    let all = may_be_lost(volume.tolerance());
    match volume.tolerance_before_promotion() {
        first if first == volume.tolerance() => all,
        0 => format!("{all} once promoted, none before"),
        first => format!("{all} once promoted, any {first} before"),
    }
}

/// Returns a line for each thing that was wrong on a node.
pub fn flaw_lines(flaws: &[Flaw]) -> String {
    flaws.iter().map(|flaw| format!("\n  {flaw}")).collect()
}

/// Describes an object that was found, in JSON.
pub fn describe(kind: &str, name: &ObjectName, object: &FoundObject) -> Value {
    let listed = object.listed();
    json!({
        "type": kind, "name": name.as_str(), "object": listed.version.object.to_string(),
        "generation": listed.version.generation, "length": listed.length,
        "sure": object.is_sure(), "flaws": flaw_values(object.flaws()),
    })
}

/// Warns if an object may not be the newest version of its name.
pub fn warn_if_stale(name: &ObjectName, object: &FoundObject, output: &Output) {
    if !object.is_sure() {
        let name = shown(name.as_str());
        output.warn(&format!(
            "{name}: too few nodes answered to be sure that this is the newest version"
        ));
    }
}

/// Returns objects that wait for something, in JSON.
pub fn waiting_value(waiting: &Waiting) -> Value {
    json!({"objects": waiting.objects, "oldest_seconds": waiting.oldest_seconds})
}

/// Describes objects that wait for something, for people.
pub fn waiting_text(waiting: &Waiting) -> String {
    let objects = counted(waiting.objects, "object");
    match waiting.oldest_seconds {
        Some(seconds) => format!("{objects}, the oldest for {}", age(seconds)),
        None => objects,
    }
}

/// Returns how far a scrub is, in JSON.
pub fn scrub_value(scrub: &ScrubStatus) -> Value {
    let pass = scrub.pass.as_ref().map(|pass| {
        json!({
            "began": pass.began, "after": pass.after, "done": pass.done, "names": pass.names,
            "left": pass.left,
        })
    });
    let last = scrub.last.map(|last| {
        json!({"began": last.began, "ended": last.ended, "names": last.names, "left": last.left})
    });
    json!({"pass": pass, "last": last})
}

/// Describes how far a scrub is, for people.
pub fn scrub_text(scrub: &ScrubStatus) -> String {
    let left = |objects: usize| match objects {
        0 => String::new(),
        objects => format!(", something was left to repair of {}", counted(objects, "object")),
    };
    let pass = scrub.pass.as_ref().map(|pass| {
        let ScrubPass { began, done, names, .. } = *pass;
        let began = time_text(Timestamp { seconds: began as i64, nanoseconds: 0 });
        format!("{done} of {} done since {began}{}", counted(names, "name"), left(pass.left))
    });
    let last = scrub.last.map_or("no full pass yet".to_owned(), |last| {
        let ended = time_text(Timestamp { seconds: last.ended as i64, nanoseconds: 0 });
        format!("the last full pass ended {ended}{}", left(last.left))
    });
    pass.into_iter().chain([last]).collect::<Vec<_>>().join("; ")
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => counted(seconds, "second"),
        120..7200 => counted(seconds / 60, "minute"),
        7200..172_800 => counted(seconds / 3600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}
