//! Parts of a protection: some of its files and folders. A verification or a repair can be limited
//! to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};

use super::{EntryKind, Protection};
use crate::paths::path_in;
use crate::tree::{folder_of, is_below};

/// The part of a protection that was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct AskedPart {
    /// Paths relative to the root, in ascending order. None lies below another one.
    paths: Vec<Vec<u8>>,
    /// The numbers of the files elsewhere that hard links in the part are names of.
    linked: BTreeSet<usize>,
}

impl AskedPart {
    fn has(&self, path: &[u8]) -> bool {
        let has = |path: &[u8]| self.paths.binary_search_by(|one| one.as_slice().cmp(path)).is_ok();
        let mut path = path;
        loop {
            match has(path) {
                false if path.is_empty() => return false,
                false => path = folder_of(path),
                true => return true,
            }
        }
    }
}

impl Protection {
    /// Returns the paths, relative to the root, of the part that was asked for. The list is empty
    /// if this is the whole protection.
    pub fn parts(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let paths = self.part.iter().flat_map(|part| &part.paths);
        paths.map(|path| path_in(Path::new(""), path))
    }

    /// Whether this is a part of the protection, and not all of it.
    pub fn is_part(&self) -> bool {
        self.part.is_some()
    }

    /// Returns the whole protection that this is a part of.
    pub fn whole(&self) -> Self {
        Self { part: None, ..self.clone() }
    }

    /// Whether something is protected at a path or below it.
    pub(crate) fn holds(&self, path: &[u8]) -> bool {
        path.is_empty() || self.entry_at(path).is_some() || !self.below(path).is_empty()
    }

    /// Makes this the part at some paths, relative to the root. It stays the whole if everything
    /// that was given to protect lies in the part.
    pub(crate) fn narrow(&mut self, mut paths: Vec<Vec<u8>>) {
        paths.sort_unstable();
        paths.dedup_by(|path, before| is_below(path, before));
        let mut part = AskedPart { paths, linked: BTreeSet::new() };
        if self.starts().all(|start| part.has(start)) {
            return;
        }
        for entry in &self.entries {
            let EntryKind::HardLink { target } = &entry.kind else { continue };
            if part.has(&entry.path) && !part.has(target) {
                part.linked.extend(self.entry_at(target));
            }
        }
        self.part = Some(part);
    }

    /// Whether an entry belongs to the part that was asked for. If the part has a hard link, the
    /// linked file belongs to it, too.
    pub(crate) fn covers(&self, number: usize) -> bool {
        self.part.as_ref().is_none_or(|part| {
            part.has(&self.entries[number].path) || part.linked.contains(&number)
        })
    }

    /// Whether a path, relative to the root, lies in the part that was asked for.
    pub(crate) fn covers_path(&self, path: &[u8]) -> bool {
        self.part.as_ref().is_none_or(|part| part.has(path))
    }

    /// Whether the part that was asked for lies below a path, relative to the root.
    pub(crate) fn has_part_below(&self, path: &[u8]) -> bool {
        let mut paths = self.part.iter().flat_map(|part| &part.paths);
        paths.any(|one| is_below(one, path))
    }

    /// Whether the part that was asked for may have files that only a lost catalogue knew.
    pub(crate) fn may_lack_entries(&self) -> bool {
        let is_known = |path: &Vec<u8>| {
            let kind = self.entry_at(path).map(|number| &self.entries[number].kind);
            kind.is_some_and(|kind| *kind != EntryKind::Folder)
        };
        self.unreadable_layers > 0
            && self.part.as_ref().is_none_or(|part| !part.paths.iter().all(is_known))
    }

    /// Refuses a part, for jobs that need the whole protection.
    pub(crate) fn expect_whole(&self) -> Result<()> {
        let Some(part) = self.part.as_ref().and_then(|part| part.paths.first()) else {
            return Ok(());
        };
        let (part, root) = (path_in(&self.root, part), paritas_store::shown::shown(&self.root));
        Err(Error::parameters(format!(
            "{} is protected as part of {root}: name {root}",
            paritas_store::shown::shown(&part)
        )))
    }
}
