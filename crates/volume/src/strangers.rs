//! Manifests that lie where they do not belong: those of another volume or of another name, which
//! somebody has copied there.
//!
//! Such a file is whole, so it is surely no version of the name. It does not count as one, and
//! nobody touches it: it may be the last copy of its content.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::protocol::NodeIndex;

/// The strangers that were met on the nodes of a volume: what is wrong with each, by its node and
/// path.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<BTreeMap<(NodeIndex, String), String>>);

impl Strangers {
    fn known(&self) -> MutexGuard<'_, BTreeMap<(NodeIndex, String), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, node: NodeIndex, path: &str, flaw: &str) {
        self.known().insert((node, path.to_owned()), flaw.to_owned());
    }

    /// Forgets a file that was written anew.
    pub fn remove(&self, node: NodeIndex, path: &str) {
        self.known().remove(&(node, path.to_owned()));
    }

    pub fn has(&self, node: NodeIndex, path: &str) -> bool {
        self.known().contains_key(&(node, path.to_owned()))
    }

    /// Returns what is wrong with the strangers in a folder, each with its node.
    pub fn in_folder(&self, folder: &str) -> Vec<(NodeIndex, String)> {
        let known = self.known();
        let inside = known.iter().filter(|((_, path), _)| path.starts_with(folder));
        inside.map(|((node, _), flaw)| (*node, flaw.clone())).collect()
    }
}
