//! Parts of reports that several commands share.

use std::collections::BTreeSet;
use std::path::Path;

use paritas_report::parts::IdText;
use paritas_report::volumes::{
    FoundFields, FullPassEntry, NodeFlawEntry, ScrubEntry, ScrubPassEntry, VersionFields,
    WaitingEntry,
};
use paritas_shards::Timestamp;
use paritas_volume::{
    Flaw, FoundObject, FullPass, Listed, ObjectName, ScrubPass, ScrubStatus, Volume, Waiting,
};

use crate::output::{Output, counted, shell_path, shown, time_text};

/// Returns a command on a volume as a user types it.
pub fn command(verb: &str, path: &Path, more: &str) -> String {
    format!("`paritas volume {verb} {}{more}`", shell_path(path))
}

/// Returns the command that repairs all objects, and what it does. Damage that only a deep look has
/// found (`is_deep`) needs a deep repair.
pub fn repair_command(path: &Path, is_deep: bool) -> String {
    let repair = command("repair", path, if is_deep { " --deep" } else { "" });
    format!("{repair} restores what is damaged, missing or not in its place")
}

/// As [`repair_command`], if these nodes did not take what they were sent. A read-only disk, for
/// example, does not take what a repair writes either.
pub fn repair_command_once_writable(path: &Path, nodes: &BTreeSet<&str>) -> String {
    let repair = repair_command(path, false);
    match nodes.is_empty() {
        true => repair,
        false => {
            let nodes: Vec<&str> = nodes.iter().copied().collect();
            format!("once files can be written on {}, {repair}", shown(&nodes.join(", ")))
        }
    }
}

/// Returns entries for flaws on nodes.
pub fn flaw_entries(flaws: &[Flaw]) -> Vec<NodeFlawEntry> {
    let entry = |flaw: &Flaw| NodeFlawEntry {
        node: flaw.node.clone(),
        shard: flaw.shard,
        message: flaw.message.clone(),
        count: flaw.count,
    };
    flaws.iter().map(entry).collect()
}

/// Describes how many nodes may be lost, whichever they are.
pub fn may_be_lost(nodes: usize) -> String {
    match nodes {
        0 => "no node may be lost".to_owned(),
        _ => format!("any {} may be lost", counted(nodes, "node")),
    }
}

/// Describes how many more nodes may be lost, whichever they are.
pub fn more_may_be_lost(nodes: usize) -> String {
    match nodes {
        0 => "no more nodes may be lost".to_owned(),
        1 => "any 1 more node may be lost".to_owned(),
        _ => format!("any {nodes} more nodes may be lost"),
    }
}

/// Describes how many nodes a volume tolerates to lose. Before an object is promoted, these may be
/// fewer.
pub fn tolerance_text(volume: &Volume) -> String {
    let all = may_be_lost(volume.tolerance());
    match volume.tolerance_before_promotion() {
        first if first == volume.tolerance() => all,
        0 => format!("{all} once promoted, none before"),
        first => format!("{all} once promoted, any {first} before"),
    }
}

/// Returns a line for each flaw on a node.
pub fn flaw_lines(flaws: &[Flaw]) -> String {
    flaws.iter().map(|flaw| format!("\n  {flaw}")).collect()
}

/// Returns the fields of every line about a version of an object.
pub fn version_fields(name: &ObjectName, listed: &Listed) -> VersionFields {
    VersionFields {
        name: name.to_string(),
        object: IdText::of(listed.version.object),
        generation: listed.version.generation,
        length: listed.length,
    }
}

/// Returns the fields of every line about an object that was found.
pub fn found_fields(name: &ObjectName, object: &FoundObject) -> FoundFields {
    FoundFields {
        version: version_fields(name, &object.listed()),
        sure: object.is_sure(),
        flaws: flaw_entries(object.flaws()),
    }
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

/// Returns the entry for objects that wait for something.
pub fn waiting_entry(waiting: &Waiting) -> WaitingEntry {
    WaitingEntry { objects: waiting.objects, oldest_seconds: waiting.oldest_seconds }
}

/// Describes objects that wait for something, for people.
pub fn waiting_text(waiting: &Waiting) -> String {
    let objects = counted(waiting.objects, "object");
    match waiting.oldest_seconds {
        Some(seconds) => format!("{objects}, the oldest for {}", age(seconds)),
        None => objects,
    }
}

/// Returns the entry for how far a scrub is.
pub fn scrub_entry(scrub: &ScrubStatus) -> ScrubEntry {
    let pass = |pass: &ScrubPass| ScrubPassEntry {
        began: pass.began,
        after: pass.after.clone(),
        done: pass.done,
        names: pass.names,
        left: pass.left,
    };
    let last =
        |FullPass { began, ended, names, left, .. }| FullPassEntry { began, ended, names, left };
    ScrubEntry { pass: scrub.pass.as_ref().map(pass), last: scrub.last.map(last) }
}

/// Describes how far a scrub is, for people.
pub fn scrub_text(scrub: &ScrubStatus) -> String {
    let left = |objects: usize| match objects {
        0 => String::new(),
        objects => format!(", {} not confirmed whole", counted(objects, "object")),
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
