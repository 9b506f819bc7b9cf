//! `paritas volume add` and `drain`: nodes join a volume and leave it.

use std::path::Path;

use paritas_report::volumes::{VolumeAddLine, VolumeDrainLine};
use paritas_volume::config::NodeEntry;
use paritas_volume::node::Probe;
use paritas_volume::{Edit, Volume};

use super::{init, report, upkeep};
use crate::args::volume::{Add, Drain};
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{Output, counted, shown};

/// Tries out new nodes, marks them, and adds them to the volume file.
pub async fn add(args: &Add, output: &Output) -> Outcome {
    let mut edit = Edit::open(&args.volume)?;
    let nodes = init::named(&args.node, &edit.config().nodes);
    let domains = of_nodes("--domain", &args.domain, &nodes)?;
    let credentials = of_nodes("--credentials", &args.credentials, &nodes)?;
    let mut nodes = init::entries(nodes, &domains, &credentials)?;
    let mut draft = Edit::open(&args.volume)?;
    nodes.iter().try_for_each(|node| draft.add(node))?;
    let volume = Volume::of(draft.config(), draft.base(), paritas_tune::codec_options)?;
    let mut probes = Vec::new();
    for node in &mut nodes {
        volume.expect_empty_node(&node.name).await?;
        let probe = volume.probe_node(&node.name).await?;
        probe.expect_useful(&node.name)?;
        node.abilities = Some(probe.abilities);
        edit.add(node)?;
        probes.push(probe);
    }
    // Marks come first: a marked node that no file lists does no harm, but a listed node without a
    // mark would.
    for node in &nodes {
        volume.mark_new_node(&node.name).await?;
    }
    edit.save()?;
    report_added(&args.volume, &volume, &nodes, &probes, output);
    Ok(Exit::Done)
}

/// Returns the values of `flag`, each with its node's name. The name may be left out if there is
/// only one node.
fn of_nodes(
    flag: &str,
    given: &[String],
    nodes: &[(String, String)],
) -> Result<Vec<(String, String)>, Failure> {
    let of_node = |text: &String| match (text.split_once('='), nodes) {
        (Some((name, said)), _) if !name.is_empty() && !said.is_empty() => {
            Ok((name.to_owned(), said.to_owned()))
        }
        (None, [(only, _)]) if !text.is_empty() => Ok((only.clone(), text.clone())),
        _ => Err(Failure::arguments(format!(
            "{flag} must begin with NAME= if there are several nodes; got {}",
            shown(text)
        ))),
    };
    given.iter().map(of_node).collect()
}

fn report_added(
    path: &Path,
    volume: &Volume,
    nodes: &[NodeEntry],
    probes: &[Probe],
    output: &Output,
) {
    let added = || nodes.iter().zip(probes);
    let mut warnings = init::placement_warnings(volume);
    let named: Vec<(&str, &Probe)> =
        added().map(|(node, probe)| (node.name.as_str(), probe)).collect();
    warnings.extend(init::node_warnings(&named));
    warnings.iter().for_each(|warning| output.warn(warning));
    let entry =
        |(node, probe): (&NodeEntry, &Probe)| init::node_entry(&node.name, node.domain(), probe);
    let (nodes_added, tolerance) = (added().map(entry).collect(), volume.tolerance());
    output.result(VolumeAddLine { nodes: nodes_added, tolerance, warnings }, || {
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        format!(
            "{} added: {} has {}, {}\n  give every client this file (`serve` and `keep` notice \
             it); then {} moves shards and manifests of older objects to where they belong now, \
             where clients with the old file do not look for them",
            names.join(", "),
            shown(path),
            counted(volume.node_count(), "node"),
            report::tolerance_text(volume),
            report::command("repair", path, "")
        )
    });
}

/// Moves what a node holds to the others. Returns the worst exit code.
pub async fn drain(args: &Drain, output: &Output) -> Outcome {
    let mut edit = Edit::open(&args.volume)?;
    if edit.drain(&args.node)? {
        edit.save()?;
    }
    let mut volume = super::open_background(&args.volume, args.background)?;
    let before = volume.shards_on(&args.node).await.ok();
    let repaired = upkeep::repair_all(&mut volume, output).await;
    let left = volume.shards_on(&args.node).await;
    if let Err(error) = &left {
        output.warn(&error.to_string());
    }
    let is_settled = matches!(repaired, Ok(Exit::Done));
    let drained = Drained { before, left: left.ok(), is_settled };
    let is_removed = args.remove && drained.is_removable();
    if is_removed {
        let mut edit = Edit::open(&args.volume)?;
        edit.remove(&args.node)?;
        edit.save()?;
    }
    output.result(drained.line(&args.node, is_removed), || drained.text(args, is_removed));
    match repaired? {
        Exit::Done if !drained.is_removable() => Ok(Exit::Repairable),
        exit => Ok(exit),
    }
}

/// The result of draining a node.
struct Drained {
    /// Number of shards on the node before, if it answered.
    before: Option<usize>,
    /// Number of shards on the node now, if it answers.
    left: Option<usize>,
    /// Whether every object is in order on the other nodes.
    is_settled: bool,
}

impl Drained {
    /// Whether nothing is lost if the node leaves. A node that does not answer may leave if all
    /// objects are in order without it.
    fn is_removable(&self) -> bool {
        self.is_settled && self.left.is_none_or(|left| left == 0)
    }

    fn moved(&self) -> Option<usize> {
        self.before.zip(self.left).map(|(before, left)| before.saturating_sub(left))
    }

    fn line(&self, node: &str, is_removed: bool) -> VolumeDrainLine {
        VolumeDrainLine {
            node: node.to_owned(),
            shards: self.left,
            moved: self.moved(),
            removable: self.is_removable(),
            removed: is_removed,
        }
    }

    fn text(&self, args: &Drain, is_removed: bool) -> String {
        let (node, path) = (shown(&args.node), shown(&args.volume));
        let drain = |more: &str| report::command("drain", &args.volume, &format!(" {node}{more}"));
        let moved = match (self.moved(), self.left) {
            (Some(moved), Some(left)) => {
                format!("{} moved, {left} left", counted(moved, "shard"))
            }
            _ => "it does not answer".to_owned(),
        };
        let next = match (self.is_removable(), self.is_settled) {
            (true, _) if is_removed => format!(
                "it is removed from {path}; delete its files once every client has this file \
                 (`serve` and `keep` notice it)"
            ),
            (true, _) => format!(
                "nothing needs it any more: once every client has {path} (`serve` and `keep` notice \
                 it), {} removes it",
                drain(" --remove")
            ),
            (false, true) => format!(
                "what is left belongs to objects that are being written, or whose put was \
                 interrupted on another machine and which are removed after a day: run {} again \
                 when the put is done, or after that day",
                drain("")
            ),
            (false, false) => format!(
                "not all objects are in order on the other nodes: do what is said of them above; if \
                 {node} cannot be written, unmount it or stop its server; then run {} again",
                drain("")
            ),
        };
        format!("{node}: {moved}\n  {next}")
    }
}
