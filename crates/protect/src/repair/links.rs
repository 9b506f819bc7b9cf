//! Restoring links: symbolic ones, and the names of files that have several.

use std::collections::HashSet;
use std::path::PathBuf;

use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use super::{RepairReport, RepairRun};
use crate::evidence::FileState;
use crate::find::EntryKind;
use crate::scan::digest_of;
use crate::tree::FoundKind;

impl RepairRun<'_> {
    /// Returns the number of a hard link to a missing file that still has all of its bytes.
    pub(super) fn other_name(&self, number: usize) -> Option<usize> {
        let is_missing = self.evidence.states.get(&number) == Some(&FileState::Missing);
        let at = self.evidence.elsewhere.get(&number);
        let at = at.filter(|_| is_missing && self.job.to.is_none())?;
        let link = self.protection.entry_at(&self.protection.relative(at)?);
        let file = &self.protection.entries[number].path;
        let leads_to_it = |link: &usize| {
            let kind = &self.protection.entries[*link].kind;
            matches!(kind, EntryKind::HardLink { target } if target == file)
        };
        link.filter(leads_to_it)
    }

    /// Restores a missing file from a hard link to it: both are one file again. The link must still
    /// have the right bytes.
    pub(super) fn link_to(&self, link: usize, file: usize) -> Result<()> {
        let entries = &self.protection.entries;
        let (from, to) = (&entries[link].path, &entries[file].path);
        let is_whole = match entries[file].kind {
            EntryKind::File { size, digest, .. } => {
                digest_of(&self.target.path_of(from), size) == Some(digest)
            }
            _ => false,
        };
        match is_whole {
            true => self.target.hard_link(from, to, None),
            false => Err(Error::busy(format!(
                "{} changed while the repair read it; run the repair again",
                shown(&self.target.path_of(from))
            ))),
        }
    }

    /// Whether a hard link to a file is made anew because the file was made anew. A link stays if
    /// the file got its bytes from it, or from another name of the same file on the disk.
    pub(super) fn follows(&self, link: usize, file: usize) -> bool {
        let links_of = |number| match self.evidence.tree.of(number)?.kind {
            FoundKind::File { links, .. } => links,
            _ => None,
        };
        let is_name = |from: usize| {
            from == link || links_of(from).is_some() && links_of(from) == links_of(link)
        };
        !self.is_own(link) && !self.other_name(file).is_some_and(is_name)
    }

    /// Restores symbolic links, and hard links to files that were restored.
    pub(super) fn make_links(
        &self,
        wanted: &[usize],
        needed: &HashSet<PathBuf>,
        report: &mut RepairReport,
    ) -> Result<()> {
        let restored: HashSet<PathBuf> = report.restored.iter().cloned().collect();
        let is_restored = |file: usize| restored.contains(&self.target.path_of(self.path_at(file)));
        let is_wanted = |number: &usize| wanted.binary_search(number).is_ok();
        for (number, entry) in self.protection.entries.iter().enumerate() {
            let is_due = match &entry.kind {
                EntryKind::Symlink { .. } => is_wanted(&number),
                EntryKind::HardLink { target } => {
                    let file = self.protection.entry_at(target);
                    let is_new = |&file: &usize| is_restored(file) && self.follows(number, file);
                    is_wanted(&number) || file.filter(is_new).is_some()
                }
                EntryKind::File { .. } | EntryKind::Folder => false,
            };
            if is_due {
                let is_missing = |file: &[u8]| {
                    let file = self.protection.entry_at(file);
                    file.is_some_and(|file| is_wanted(&file) && !is_restored(file))
                };
                let done = self.expect_free(&entry.path, needed);
                let done = done.and_then(|()| self.expect_unchanged(number, wanted));
                let done = done.and_then(|()| self.make_link(number, is_missing));
                self.note(done, &entry.path, report)?;
            }
        }
        Ok(())
    }

    /// Makes a link, unless an earlier repair has made it. `is_missing` tells of a file whether it
    /// should have been restored and was not.
    fn make_link(&self, number: usize, is_missing: impl Fn(&[u8]) -> bool) -> Result<()> {
        let entry = &self.protection.entries[number];
        match &entry.kind {
            _ if self.was_restored(entry) => Ok(()),
            EntryKind::Symlink { target } => self.target.symlink(entry, target, self.seen(number)),
            EntryKind::HardLink { target } if is_missing(target) => {
                Err(self.without_file(number, target))
            }
            EntryKind::HardLink { target } => {
                let file = self.place_of(target);
                self.target.hard_link(&file, &entry.path, self.seen(number))
            }
            EntryKind::File { .. } | EntryKind::Folder => Ok(()),
        }
    }

    /// Returns the error for a hard link to the file `target` that is not restored.
    pub(super) fn without_file(&self, link: usize, target: &[u8]) -> Error {
        Error::failed(format!(
            "{} is another name of {}, which could not be restored",
            shown(&self.target.path_of(&self.protection.entries[link].path)),
            shown(&self.target.path_of(target))
        ))
    }

    /// Returns the path in the tree at which a protected file is: another one if it was moved, and
    /// neither moves back nor is restored elsewhere.
    fn place_of(&self, file: &[u8]) -> Vec<u8> {
        let number = self.protection.entry_at(file).filter(|_| self.job.to.is_none());
        match number.and_then(|number| self.evidence.states.get(&number)) {
            Some(FileState::Moved(to)) if !self.job.move_back => {
                self.protection.relative(to).unwrap_or_else(|| file.to_vec())
            }
            _ => file.to_vec(),
        }
    }

    /// Whether somebody has put bytes of their own where an entry was.
    pub(super) fn is_own(&self, number: usize) -> bool {
        matches!(self.evidence.states.get(&number), Some(FileState::Changed(_)))
    }
}
