//! What has become of each protected file, by comparing it with what is there.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use paritas_store::error::Result;

use super::{Changes, UpdateJob, before, content, has_bytes, kept_entry, moved};
use crate::catalogue::{Item, ItemKind};
use crate::create::ClosedFiles;
use crate::find::Protection;
use crate::paths::path_in;
use crate::tree::{Tree, threads};
use crate::trouble;

impl Changes<'_> {
    /// Keeps the files that have their bytes under the same paths as before.
    pub(super) fn keep_in_place(
        &mut self,
        protection: &Protection,
        tree: &Tree,
        job: &UpdateJob,
        items: &mut [Item],
    ) -> Result<()> {
        for (place, item) in items.iter_mut().enumerate() {
            if item.is_file()
                && let Some(entry) = before(protection, tree, place)
                && has_bytes(protection, item, entry, &self.times, job.checksum)?
            {
                self.keep(item, entry);
            }
        }
        Ok(())
    }

    /// Keeps the files that were protected under other paths, which are gone.
    pub(super) fn keep_moved(
        &mut self,
        protection: &Protection,
        job: &UpdateJob,
        items: &mut [Item],
    ) {
        let moved = moved(protection, items, &self.alive, threads(job.threads));
        for item in items {
            let is_new = item.is_file();
            let entry = moved.get(&item.path).filter(|entry| is_new && !self.is_alive(entry));
            if let Some(entry) = entry {
                self.keep(item, entry);
            }
        }
    }

    /// Leaves out new files that this user cannot open, and hard links to them. Otherwise each
    /// update would make parity for their places in the stream.
    ///
    /// # Errors
    /// If such a file is protected under another of its names ([`crate::ErrorKind::Io`]).
    pub(super) fn leave_closed(
        &mut self,
        protection: &Protection,
        items: &mut Vec<Item>,
        most: Option<NonZeroUsize>,
    ) -> Result<()> {
        let is_new = |item: &&Item| protection.entry_at(&item.path).is_none();
        let closed =
            ClosedFiles::among(&protection.root, items.iter().filter(is_new), threads(most));
        if let Some(known) = items.iter().find(|item| closed.has(item) && !is_new(item)) {
            return Err(trouble::unreadable(&path_in(&protection.root, &known.path)));
        }
        items.retain(|item| !closed.has(item));
        self.closed = closed.skipped(&protection.root);
        Ok(())
    }

    /// Notes the files that were not kept: each is new, or changed if its path was protected.
    pub(super) fn note_new(&mut self, protection: &Protection, items: &[Item]) {
        for item in items.iter().filter(|item| item.is_file()) {
            match self.changed_entry(protection, item) {
                Some(entry) => self.changed.push(entry),
                None => self.added.push(item.path.clone()),
            }
        }
    }

    /// Notes the entries whose bytes are gone and whose paths no other files have.
    pub(super) fn note_gone(&mut self, protection: &Protection, items: &[Item]) {
        let linked: HashSet<usize> = linked(protection, items).collect();
        let is_gone = |&number: &usize| {
            let entry = &protection.entries[number];
            entry.is_file()
                && !self.is_alive(entry)
                && self.changed.binary_search(&number).is_err()
                && !linked.contains(&number)
        };
        self.gone = (0..protection.entries.len()).filter(is_gone).collect();
    }
}

/// Returns the numbers of the files that have become further names of files with the same bytes.
/// Programs that look for duplicates make such links.
fn linked(protection: &Protection, items: &[Item]) -> impl Iterator<Item = usize> {
    items.iter().filter_map(|item| {
        let ItemKind::HardLink { target } = &item.kind else { return None };
        let number = protection.entry_at(&item.path)?;
        let file = items.binary_search_by(|item| item.path.cmp(target)).ok()?;
        let same = content(kept_entry(protection, &items[file])?);
        (content(&protection.entries[number]) == same).then_some(number)
    })
}
