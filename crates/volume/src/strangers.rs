//! Manifests that lie where they do not belong: those of another volume or of another name, which
//! somebody has copied there.
//!
//! Such a file is whole, so it is surely no version of the name. It does not count as one, and
//! nobody touches it: it may be the last copy of its content.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::NodeIndex;

/// The strangers that were met on the nodes of a volume: what is wrong with each, by its path and
/// node.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<BTreeMap<(String, NodeIndex), String>>);

impl Strangers {
    fn known(&self) -> MutexGuard<'_, BTreeMap<(String, NodeIndex), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, node: NodeIndex, path: &str, flaw: &str) {
        self.known().insert((path.to_owned(), node), flaw.to_owned());
    }

    /// Forgets a file that was written anew.
    pub fn remove(&self, node: NodeIndex, path: &str) {
        self.known().remove(&(path.to_owned(), node));
    }

    pub fn has(&self, node: NodeIndex, path: &str) -> bool {
        self.known().contains_key(&(path.to_owned(), node))
    }

    /// Returns what is wrong with the strangers in a folder, each with its node.
    pub fn in_folder(&self, folder: &str) -> Vec<(NodeIndex, String)> {
        let known = self.known();
        let after = known.range((folder.to_owned(), NodeIndex(0))..);
        let inside = after.take_while(|((path, _), _)| path.starts_with(folder));
        inside.map(|((_, node), flaw)| (*node, flaw.clone())).collect()
    }
}
