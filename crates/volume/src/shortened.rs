//! The names of objects whose paths shorten them.
//!
//! A listing shows such a path, and the manifests there tell the name. One manifest tells all
//! components of its name, so one is read for each component that is not known yet: a folder with a
//! long name costs one request, however many objects it has.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::stream;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cluster::Cluster;
use crate::flaw::Flaw;
use crate::manifest::Manifest;
use crate::names::{self, ObjectName, Texts};
use crate::protocol::{Listed, NodeIndex};

/// Number of manifests that are read side by side.
const AT_ONCE: usize = 64;

/// Shortened paths.
pub(crate) struct Shortened<'a> {
    pub cluster: &'a Cluster,
    /// For each path, the versions there and the nodes that showed them.
    pub paths: BTreeMap<String, BTreeMap<Listed, Vec<NodeIndex>>>,
}

impl Shortened<'_> {
    /// Takes in a version that a node has.
    pub fn add(&mut self, path: String, listed: Listed, node: NodeIndex) {
        self.paths.entry(path).or_default().entry(listed).or_default().push(node);
    }

    /// Returns the names that stand at the paths, and a flaw for each path without a manifest that
    /// can be read.
    pub async fn names(&self) -> (BTreeMap<String, ObjectName>, Vec<Flaw>) {
        let (mut texts, mut failures) = (Texts::default(), BTreeMap::new());
        let mut unread: BTreeSet<&str> = self.paths.keys().map(String::as_str).collect();
        loop {
            let mut first: BTreeMap<&str, &str> = BTreeMap::new();
            for &path in &unread {
                texts.unknown(path).iter().for_each(|text| _ = first.entry(text).or_insert(path));
            }
            if first.is_empty() {
                break;
            }
            let read = async |path: &'_ str| (path.to_owned(), self.name_at(path).await);
            let read = stream::iter(first.into_values()).map(read).buffer_unordered(AT_ONCE);
            for (path, name) in read.collect::<Vec<_>>().await {
                unread.remove(&*path);
                match name {
                    Ok(name) => texts.learn(&name),
                    // It was removed since it was listed.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => _ = failures.insert(path, error),
                }
            }
        }
        let name = |path: &String| Some((path.clone(), texts.name(path)?));
        let names: BTreeMap<_, _> = self.paths.keys().filter_map(name).collect();
        failures.retain(|path, _| !names.contains_key(path));
        let nameless = failures.into_iter().map(|(path, error)| {
            let folder = names::manifests_at(&path);
            let message = format!(
                "{folder}: the name of what is here cannot be told, because no manifest can be \
                 read; store the object again, or delete this folder: {}",
                error.message()
            );
            Flaw::new(error.node().unwrap_or_default(), None, message)
        });
        (names, nameless.collect())
    }

    /// Reads the name that stands at a path from one of the manifests there. If the listed
    /// manifests are gone, a newer version has replaced them, so the folder is listed again.
    async fn name_at(&self, path: &str) -> Result<ObjectName> {
        let versions = &self.paths[path];
        let absent = format!("there is no manifest at {path}");
        let mut failure = Error::new(ErrorKind::NotFound, absent);
        let mut note = |error: Error| {
            if failure.kind() == ErrorKind::NotFound {
                failure = error;
            }
        };
        for (listed, nodes) in versions.iter().rev() {
            for &node in nodes {
                match self.name_in(node, &names::manifest_at(path, listed)).await {
                    Ok(name) => return Ok(name),
                    Err(error) => note(error),
                }
            }
        }
        let nodes: BTreeSet<NodeIndex> = versions.values().flatten().copied().collect();
        for node in nodes {
            let folder = names::manifests_at(path);
            let mut entries = self.cluster.node(node).list(&folder);
            while let Some(Ok(entry)) = entries.next().await {
                match self.name_in(node, &entry.path).await {
                    Ok(name) => return Ok(name),
                    Err(error) => note(error),
                }
            }
        }
        Err(failure)
    }

    async fn name_in(&self, node: NodeIndex, path: &str) -> Result<ObjectName> {
        let named = |error: Error| error.at_node(self.cluster.node_name(node));
        let bytes = self.cluster.node(node).read(path, None).await.map_err(named)?;
        Manifest::from_bytes(path, &bytes).map(|manifest| manifest.name).map_err(named)
    }
}
