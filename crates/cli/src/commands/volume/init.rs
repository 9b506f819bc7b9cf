//! `paritas volume init`: writes a volume file, tries out the nodes, and marks them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use paritas_report::parts::IdText;
use paritas_report::volumes::{AbilitiesEntry, ProbedNodeEntry, VolumeInitLine};
use paritas_volume::config::{Config, NodeEntry};
use paritas_volume::node::{Abilities, Probe};
use paritas_volume::{Member, Volume};

use super::report;
use crate::args::volume::{Init, NodeArg};
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{Output, counted, shown};

/// Writes a volume file if nodes are given, and prepares the nodes.
pub async fn run(args: &Init, output: &Output) -> Outcome {
    let (config, probes) = match &args.code {
        Some(code) => write(args, &code.to_string()).await?,
        None => read(&args.volume).await?,
    };
    let volume = super::open(&args.volume)?;
    let marked = async {
        // Nodes that were given just now are as empty as they must be.
        if args.code.is_none() {
            volume.expect_no_lost_node().await?;
        }
        volume.mark_nodes().await
    };
    marked.await.map_err(|error: paritas_volume::Error| unmarked(args, error.into()))?;
    let warnings = warnings(&volume, &probes);
    warnings.iter().for_each(|warning| output.warn(warning));
    tell(&args.volume, &config, &volume, &probes, &warnings, output);
    Ok(Exit::Done)
}

/// Writes a volume file with the abilities of its nodes. Returns its content and the probes.
async fn write(args: &Init, code: &str) -> Result<(Config, Vec<Probe>), Failure> {
    if args.volume.is_dir() {
        return Err(Failure::arguments(format!(
            "{} is a folder; the first name is that of the volume file to write",
            shown(&args.volume)
        )));
    }
    if args.volume.symlink_metadata().is_ok() {
        return Err(Failure::arguments(format!(
            "{} exists; without --node, its nodes are prepared",
            shown(&args.volume)
        )));
    }
    let name = name(args);
    let nodes = entries(named(&args.node, &[]), &args.domain, &args.credentials)?;
    Ok(paritas_volume::create(&args.volume, &name, code, nodes, paritas_tune::codec_options)
        .await?)
}

async fn read(path: &Path) -> Result<(Config, Vec<Probe>), Failure> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(Failure::arguments(format!(
            "there is no {}; --code and --node write a new volume file",
            shown(path)
        )));
    }
    let config = Config::read(path)?;
    config.expect_apart(path.parent().unwrap_or(Path::new("")))?;
    let volume = super::open(path)?;
    let probes = volume.probe_nodes().await?;
    for (node, probe) in config.nodes.iter().zip(&probes) {
        probe.expect_useful(&node.name)?;
        probe.expect_cases(&node.name, node.abilities)?;
    }
    Ok((config, probes))
}

fn name(args: &Init) -> String {
    let of_file = || args.volume.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    args.name.clone().or_else(of_file).unwrap_or_default()
}

/// Returns the name and the URI of each new node. Those without a name are numbered, behind the
/// `present` nodes.
pub fn named(nodes: &[NodeArg], present: &[NodeEntry]) -> Vec<(String, String)> {
    let is_taken = |name: &str| {
        present.iter().any(|node| node.name == name)
            || nodes.iter().any(|node| node.name.as_deref() == Some(name))
    };
    let numbers = present.len() + 1..;
    let mut free = numbers.map(|number| format!("node{number}")).filter(|name| !is_taken(name));
    let mut name = |node: &NodeArg| node.name.clone().or_else(|| free.next()).unwrap_or_default();
    nodes.iter().map(|node| (name(node), node.uri.clone())).collect()
}

/// Returns the entries for the volume file of `nodes`, which are names and URIs. `domains` and
/// `credentials` each pair the name of a node with its domain or the place of its credentials.
pub fn entries(
    nodes: Vec<(String, String)>,
    domains: &[(String, String)],
    credentials: &[(String, String)],
) -> Result<Vec<NodeEntry>, Failure> {
    let names: BTreeSet<&str> = nodes.iter().map(|(name, _)| &**name).collect();
    let domains = by_node("--domain", domains, &names)?;
    let credentials = by_node("--credentials", credentials, &names)?;
    if let Some((name, _)) = nodes.iter().find(|(_, uri)| uri.starts_with("memory:")) {
        return Err(Failure::arguments(format!(
            "node {name}: what is kept in memory is gone when the command ends; give a folder"
        )));
    }
    let entry = |(name, uri): &(String, String)| {
        let mut entry = NodeEntry::new(name, uri);
        if let Some(&domain) = domains.get(&**name) {
            entry = entry.with_domain(domain);
        }
        entry.credentials = credentials.get(&**name).map(|&place| place.to_owned());
        entry
    };
    Ok(nodes.iter().map(entry).collect())
}

/// Returns the values that `flag` gives to nodes, by their names. Refuses other names, and names
/// given twice.
fn by_node<'a>(
    flag: &str,
    given: &'a [(String, String)],
    names: &BTreeSet<&str>,
) -> Result<BTreeMap<&'a str, &'a str>, Failure> {
    let mut found = BTreeMap::new();
    for (name, said) in given {
        let refused = |why| Failure::arguments(format!("{flag} {}: {why}", shown(name)));
        if !names.contains(&**name) {
            return Err(refused("there is no such node"));
        }
        if found.insert(&**name, &**said).is_some() {
            return Err(refused("this node is given twice"));
        }
    }
    Ok(found)
}

/// Tells how to go on after a node could not be marked.
fn unmarked(args: &Init, failure: Failure) -> Failure {
    let path = shown(&args.volume);
    let next = match args.code {
        Some(_) => format!(
            "{path} is written: once this is mended, {} prepares its nodes",
            report::command("init", &args.volume, "")
        ),
        None => {
            format!("{} says what each node needs", report::command("status", &args.volume, ""))
        }
    };
    let message = format!("{}; {next}", failure.message);
    Failure { message, ..failure }
}

/// Returns warnings about what may be lost, and about what nodes cannot do.
fn warnings(volume: &Volume, probes: &[Probe]) -> Vec<String> {
    let mut warnings = placement_warnings(volume);
    let names = volume.members().iter().map(|member| member.name.as_str());
    warnings.extend(node_warnings(&names.zip(probes).collect::<Vec<_>>()));
    warnings
}

/// Returns warnings about what nodes cannot do, one for each shortcoming.
pub fn node_warnings(nodes: &[(&str, &Probe)]) -> Vec<String> {
    let mut lacking: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, probe) in nodes {
        for what in shortcomings(probe.abilities) {
            match lacking.iter_mut().find(|(known, _)| *known == what) {
                Some((_, names)) => names.push(name),
                None => lacking.push((what, vec![name])),
            }
        }
    }
    let warning = |(what, names): (&str, Vec<&str>)| {
        format!("{} {}: {what}", if names.len() == 1 { "node" } else { "nodes" }, names.join(", "))
    };
    lacking.into_iter().map(warning).collect()
}

/// Returns warnings about what may be lost.
pub fn placement_warnings(volume: &Volume) -> Vec<String> {
    let serving = volume.members().iter().filter(|member| !member.is_drained);
    let (nodes, shards) = (serving.clone().count(), volume.code().node_count());
    let tolerance = volume.tolerance();
    let mut domains: BTreeMap<&str, usize> = BTreeMap::new();
    serving.for_each(|member| *domains.entry(&member.domain).or_default() += 1);
    let mut warnings = Vec::new();
    if tolerance == 0 {
        warnings.push("no node may be lost: with any of them, objects are lost".to_owned());
    }
    if nodes < shards {
        let most = counted(shards.div_ceil(nodes), "shard");
        warnings.push(format!(
            "{} for {shards} shards: a node has up to {most}, and {}",
            counted(nodes, "node"),
            report::may_be_lost(tolerance)
        ));
    }
    if domains.len() < shards.min(nodes) {
        let most = counted(shards.div_ceil(domains.len()), "shard");
        warnings.push(format!(
            "{} for {shards} shards: up to {most} are lost with a domain",
            counted(domains.len(), "domain")
        ));
    }
    let is_large = |(_, count): &(&&str, &usize)| **count > tolerance.max(1);
    warnings.extend(domains.iter().filter(is_large).map(|(domain, count)| {
        format!("domain {domain} has {count} nodes, of which only {tolerance} may be lost")
    }));
    warnings
}

/// Returns the consequences of the abilities that a node lacks.
fn shortcomings(abilities: Abilities) -> impl Iterator<Item = &'static str> {
    let Abilities { create, ranges, streams, .. } = abilities;
    let lacks = [
        (create, "of two programs that create a file at the same moment, both may succeed"),
        (ranges, "a request for a range returns the whole file, so small reads are slow"),
        (
            streams,
            "only whole files can be written, so shards are kept in memory until they are complete",
        ),
    ];
    lacks.into_iter().filter(|(can, _)| !can).map(|(_, what)| what)
}

/// Returns the entry for a node and the result of its probe.
pub fn node_entry(name: &str, domain: &str, probe: &Probe) -> ProbedNodeEntry {
    let Abilities { write, list, create, ranges, streams, cases } = probe.abilities;
    ProbedNodeEntry {
        name: name.to_owned(),
        domain: domain.to_owned(),
        abilities: AbilitiesEntry { write, list, create, ranges, streams, cases },
        clock_ahead: probe.clock_ahead,
    }
}

fn tell(
    path: &Path,
    config: &Config,
    volume: &Volume,
    probes: &[Probe],
    warnings: &[String],
    output: &Output,
) {
    let node = |(member, probe): (&Member, &Probe)| node_entry(&member.name, &member.domain, probe);
    let line = VolumeInitLine {
        path: path.into(),
        name: config.name.clone(),
        id: IdText::of(&config.id),
        code: volume.code().spec().to_string(),
        tolerance: volume.tolerance(),
        nodes: volume.members().iter().zip(probes).map(node).collect(),
        warnings: warnings.to_vec(),
    };
    output.result(line, || {
        format!(
            "{}: {} over {}, {}",
            shown(path),
            volume.code().spec(),
            counted(volume.node_count(), "node"),
            report::tolerance_text(volume)
        )
    });
}
