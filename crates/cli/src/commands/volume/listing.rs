//! `paritas volume ls`, `stat`, `rm` and `status`.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::path::Path;

use paritas_report::parts::{DigestText, ModeText};
use paritas_report::volumes::{
    NodeStatusEntry, VolumeLsLine, VolumeRmLine, VolumeStatLine, VolumeStatusLine,
};
use paritas_shards::Timestamp;
use paritas_volume::{
    ErrorKind, FoundObject, GetOptions, Listed, Listing, NodeStatus, ObjectName, Volume,
    VolumeStatus,
};

use super::{AT_ONCE, each, folder_prefix, object, report};
use crate::args::volume::{Ls, Rm, Stat};
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, counted, mode_text, quoted, shown, time_entry, time_text};

/// Lists objects.
pub async fn ls(volume: &Volume, args: &Ls, output: &Output) -> Outcome {
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let listing = list(volume, prefix, args.staleness.options(), output).await?;
    for (name, listed) in &listing.objects {
        let Listed { version, length, .. } = listed;
        let line = VolumeLsLine { version: report::version_fields(name, listed) };
        let name = match (args.null, io::stdout().is_terminal()) {
            (true, _) => name.to_string(),
            (false, true) => quoted(name.as_str()),
            (false, false) => shown(name.as_str()).to_string(),
        };
        output.name(line, if args.null { '\0' } else { '\n' }, || match args.long {
            true => format!("{length:>15}  {}  {}  {name}", version.generation, version.object),
            false => name,
        });
    }
    Ok(Exit::Done)
}

/// Lists the objects whose names begin with a prefix. Fails if there are none, unless the prefix is
/// empty.
pub async fn list(
    volume: &Volume,
    prefix: &str,
    options: GetOptions,
    output: &Output,
) -> Result<Listing, Failure> {
    let listing = volume.list_with(prefix, options).await?;
    listing.flaws.iter().for_each(|flaw| output.warn(&flaw.to_string()));
    if !listing.is_sure {
        output.warn("too few nodes answered to be sure that these are all objects");
    }
    match listing.objects.is_empty() && !prefix.is_empty() {
        true => Err(nothing_below(prefix)),
        false => Ok(listing),
    }
}

/// Returns the failure that no object's name begins with a prefix.
pub fn nothing_below(prefix: &str) -> Failure {
    Failure::not_recognised(format!("there is no object whose name begins with {}", shown(prefix)))
}

/// Shows what is known about an object.
pub async fn stat(volume: &Volume, args: &Stat, output: &Output) -> Outcome {
    let object = object::find(volume, &args.name, args.staleness, output).await?;
    output.result(stat_line(&args.name, &object), || stat_text(&args.name, &object));
    Ok(Exit::Done)
}

fn stat_line(name: &ObjectName, object: &FoundObject) -> VolumeStatLine {
    VolumeStatLine {
        found: report::found_fields(name, object),
        digest: DigestText::of(object.digest()),
        code: object.code(),
        nodes: object.nodes(),
        mode: object.mode().map(mode_text).map(ModeText::of),
        modified: object.modified().map(time_entry),
        created: object.created(),
        pieces: object.pieces().map(<[_]>::len),
        notes: object.notes().clone(),
    }
}

fn stat_text(name: &ObjectName, object: &FoundObject) -> String {
    let listed = object.listed();
    let unknown = || "unknown".to_owned();
    let created = Timestamp { seconds: object.created() as i64, nanoseconds: 0 };
    let nodes: Vec<String> =
        object.nodes().into_iter().map(|node| node.unwrap_or_else(|| "?".to_owned())).collect();
    let stored = match (object.code(), object.pieces()) {
        (Some(code), _) => format!("code      {code}\n  nodes     {}", nodes.join(", ")),
        (None, Some(pieces)) => format!("stored    in {}", counted(pieces.len(), "piece")),
        (None, None) => "stored    in its manifests".to_owned(),
    };
    let note = |(name, text): (&String, &String)| {
        format!("\n  note      {}: {}", shown(name.as_str()), shown(text.as_str()))
    };
    let notes: String = object.notes().iter().map(note).collect();
    format!(
        "{}\n  object    {}, generation {}\n  length    {} bytes\n  digest    {}\n  {stored}\n  \
         mode      {}\n  modified  {}\n  created   {}{notes}{}",
        shown(name.as_str()),
        listed.version.object,
        listed.version.generation,
        listed.length,
        object.digest(),
        object.mode().map_or_else(unknown, mode_text),
        object.modified().map_or_else(unknown, time_text),
        time_text(created),
        report::flaw_lines(object.flaws())
    )
}

/// Removes objects. Returns the worst exit code.
pub async fn rm(volume: &Volume, args: &Rm, output: &Output) -> Outcome {
    let names = names_to_remove(volume, args, output).await?;
    let remove = async |name: ObjectName| {
        let report = match volume.remove(&name).await {
            // Another process has removed it since it was listed.
            Err(error) if args.recursive && error.kind() == ErrorKind::NotFound => {
                return Ok(Exit::Done);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(object::absent(volume, &name).await);
            }
            report => report?,
        };
        let line = VolumeRmLine {
            name: name.to_string(),
            generation: report.listed.version.generation,
            owed: report.is_owed,
            flaws: report::flaw_entries(&report.flaws),
        };
        output.result(line, || {
            let owed = if report.is_owed { "; a repair removes the rest" } else { "" };
            let flaws = report::flaw_lines(&report.flaws);
            format!("{}: removed{owed}{flaws}", shown(name.as_str()))
        });
        Ok(Exit::Done)
    };
    each(names.into_iter().collect(), AT_ONCE, output, remove).await.end(output)
}

/// Returns the names that are given, or those of all objects below them.
async fn names_to_remove(
    volume: &Volume,
    args: &Rm,
    output: &Output,
) -> Result<BTreeSet<ObjectName>, Failure> {
    let mut names = BTreeSet::new();
    for name in &args.names {
        match args.recursive {
            true => {
                let prefix = folder_prefix(name);
                if prefix.is_empty() {
                    return Err(Failure::arguments(
                        "an empty PREFIX would remove every object; name the folders to remove",
                    ));
                }
                let found = list(volume, &prefix, GetOptions::default(), output).await?;
                names.extend(found.objects.into_keys());
            }
            false => _ = names.insert(ObjectName::new(name.as_str())?),
        }
    }
    Ok(names)
}

/// Shows the state of the nodes, and what waits to be done. Says what to do about the latter.
pub async fn status(volume: &Volume, path: &Path, output: &Output) -> Outcome {
    let status = volume.status().await?;
    output.result(status_line(&status), || status_text(volume, &status));
    if volume.troubles().is_empty() && (status.owed.objects > 0 || status.useless() > 0) {
        let failed = status.nodes.iter().filter(|node| node.problem.is_some());
        let failed = failed.map(|node| node.name.as_str()).collect();
        output.next(&report::repair_command_once_writable(path, &failed));
    } else if volume.troubles().is_empty() && status.lost.objects > 0 {
        output.next(&format!(
            "{} names the lost objects, and forgets those that are whole by now",
            report::command("repair", path, " --deep")
        ));
    }
    Ok(match status.useless() {
        useless if useless > status.tolerance => Exit::Io,
        _ if status.lost.objects > 0 => Exit::Lost,
        0 if status.owed.objects == 0 => Exit::Done,
        _ => Exit::Repairable,
    })
}

fn status_line(status: &VolumeStatus) -> VolumeStatusLine {
    let node = |node: &NodeStatus| NodeStatusEntry {
        name: node.name.clone(),
        domain: node.domain.clone(),
        drained: node.is_drained,
        problem: node.problem.clone(),
        answer_seconds: node.answered_in.as_secs_f64(),
        free_bytes: node.free_bytes,
    };
    VolumeStatusLine {
        tolerance: status.tolerance,
        lacking_for_puts: status.lacking_for_puts(),
        nodes: status.nodes.iter().map(node).collect(),
        owed: report::waiting_entry(&status.owed),
        lost: report::waiting_entry(&status.lost),
        backlog: report::waiting_entry(&status.backlog),
        scrub: report::scrub_entry(&status.scrub),
    }
}

/// Describes a node in a line of its own.
fn node_text(node: &NodeStatus) -> String {
    let state = node.problem.as_deref().unwrap_or("ready");
    let drained = if node.is_drained { ", drained" } else { "" };
    let domain = match node.domain == node.name {
        true => String::new(),
        false => format!(" (domain {})", node.domain),
    };
    let free = node.free_bytes.map(|free| format!(", {} free", output::bytes(free)));
    let free = free.unwrap_or_default();
    let answered = match node.problem {
        None => format!(", answers in {:.1} ms", 1000.0 * node.answered_in.as_secs_f64()),
        Some(_) => String::new(),
    };
    format!("\n  {}{domain}: {state}{drained}{free}{answered}", node.name)
}

fn status_text(volume: &Volume, status: &VolumeStatus) -> String {
    let nodes: String = status.nodes.iter().map(node_text).collect();
    // What lies on a full node can be read.
    let now = match status.unreadable() {
        0 => String::new(),
        unreadable if unreadable > status.tolerance => {
            "; now too few can be used: --allow-stale reads what is left".to_owned()
        }
        unreadable => {
            format!("; now {}", report::more_may_be_lost(status.tolerance - unreadable))
        }
    };
    let puts = match status.lacking_for_puts() {
        0 => String::new(),
        lacking => format!("; puts and removals are refused until {lacking} more can be used"),
    };
    let lost = match status.lost.objects {
        0 => String::new(),
        _ => format!(
            "\nlost when last repaired (repair --deep looks again): {}",
            report::waiting_text(&status.lost)
        ),
    };
    format!(
        "{}, {}{now}{puts}{nodes}{lost}\nknown to be owed (verify looks): {}\nbacklog: {}\nscrub: {}",
        counted(status.nodes.len(), "node"),
        report::tolerance_text(volume),
        report::waiting_text(&status.owed),
        report::waiting_text(&status.backlog),
        report::scrub_text(&status.scrub)
    )
}
