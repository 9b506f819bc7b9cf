//! Files that this process cannot open. They are left out before the blocks are chosen, so that no
//! place in the stream is taken for them, and no parity for such a place.

use std::collections::HashMap;
use std::path::Path;

use paritas_store::place::system::{may_read, user};

use crate::catalogue::{Item, ItemKind};
use crate::parity::refusal;
use crate::paths::path_in;
use crate::tree::{Skipped, map_in_threads};

/// The files among some items that cannot be opened, each with the reason.
#[derive(Debug, Default)]
pub(crate) struct ClosedFiles(HashMap<Vec<u8>, String>);

impl ClosedFiles {
    /// Looks at the files among `items` that have bytes and are not plainly this user's. Opens
    /// those that the system does not call readable, because it may know too little of them.
    pub fn among<'i>(
        root: &Path,
        items: impl Iterator<Item = &'i Item> + Send,
        threads: usize,
    ) -> Self {
        let user = user();
        // Who owns a file and lets its owner read may read it.
        let is_ours = |item: &Item| {
            let owner = item.details.owner.map(|owner| owner.user);
            user.is_some() && owner == user && item.mode & 0o400 != 0
        };
        let is_doubtful = |item: &&Item| {
            matches!(item.kind, ItemKind::File { size, .. } if size > 0) && !is_ours(item)
        };
        let closed = map_in_threads(threads, items.filter(is_doubtful), |item| {
            let path = path_in(root, &item.path);
            let why = if may_read(&path) { None } else { refusal(&path) };
            why.map(|why| (item.path.clone(), why.to_string()))
        });
        Self(closed.into_iter().flatten().collect())
    }

    /// Whether an item is such a file, or a hard link to one.
    pub fn has(&self, item: &Item) -> bool {
        match &item.kind {
            ItemKind::HardLink { target } => self.0.contains_key(target),
            _ => self.0.contains_key(&item.path),
        }
    }

    /// Returns the files in the order of their paths, for reports.
    pub fn skipped(self, root: &Path) -> Vec<Skipped> {
        let skipped =
            |(path, reason): (Vec<u8>, String)| Skipped { path: path_in(root, &path), reason };
        let mut all: Vec<Skipped> = self.0.into_iter().map(skipped).collect();
        all.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        all
    }
}
