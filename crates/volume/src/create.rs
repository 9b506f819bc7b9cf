//! Making a volume: its file is written once its nodes were probed.

use std::path::Path;

use paritas::{CodecOptions, Spec};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::config::{Config, NodeEntry};
use crate::node::Probe;
use crate::volume::Volume;

/// Probes the nodes of a new volume, which must be empty, and writes the volume file with their
/// abilities. Returns the configuration and the probe of each node. The nodes are not marked yet:
/// [`Volume::mark_nodes`] does that.
///
/// # Errors
/// If the file exists already, two nodes are at one place, or a node has files
/// ([`ErrorKind::Exists`]), if the name, the code or a node cannot be used
/// ([`ErrorKind::Parameters`]), if a node does not answer, or if the file cannot be written
/// ([`ErrorKind::Io`]).
pub async fn create(
    path: &Path,
    name: &str,
    code: &str,
    mut nodes: Vec<NodeEntry>,
    options: impl Fn(&Spec) -> CodecOptions,
) -> Result<(Config, Vec<Probe>)> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::new(ErrorKind::Exists, format!("{} exists", path.display())));
    }
    let draft = Config::draft(name, code, &nodes)?;
    let base = path.parent().unwrap_or(Path::new(""));
    draft.expect_apart(base)?;
    let volume = Volume::of(&draft, base, options)?;
    volume.expect_empty_nodes().await?;
    let probes = volume.probe_nodes().await?;
    for (node, probe) in nodes.iter_mut().zip(&probes) {
        probe.expect_useful(&node.name)?;
        node.abilities = Some(probe.abilities);
    }
    Ok((Config::init(path, name, code, &nodes)?, probes))
}
