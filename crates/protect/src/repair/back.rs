//! Moving back what has moved: by its name on the same disk, and by a copy from another one.

use std::path::PathBuf;

use paritas_store::error::{Error, Result};
use paritas_store::place::system::FileSystem;
use paritas_store::shown::shown;

use super::{RepairReport, RepairRun};
use crate::evidence::FileState;
use crate::find::{EntryKind, ProtectedEntry};
use crate::restore::MoveSource;
use crate::tree::name_of;

/// Something that goes back to where it was.
pub(super) struct Return<'r> {
    /// The number of the entry.
    pub number: usize,
    entry: &'r ProtectedEntry,
    /// The path at which it is.
    pub from: PathBuf,
    /// Whether its name differs from the recorded one, but not for the file system.
    is_alike: bool,
}

impl Return<'_> {
    /// Returns the path to which it goes.
    pub fn to<'t>(&'t self, repair: &'t RepairRun<'_>) -> PathBuf {
        repair.target.path_of(&self.entry.path)
    }
}

impl<'a> RepairRun<'a> {
    /// Returns what goes back: files and links that are elsewhere, and names that differ from the
    /// recorded ones, but not for the file system. An entry that was changed, and is not restored,
    /// keeps its present name, too; `restored` are the restored paths.
    pub(super) fn returns(&self, restored: &[PathBuf]) -> Vec<Return<'a>> {
        if !self.job.move_back || self.job.to.is_some() {
            return Vec::new();
        }
        let protection = self.protection;
        let states = self.evidence.states.iter();
        let states = states.filter(|(number, _)| protection.covers(**number));
        let returns = states.filter_map(|(&number, state)| {
            let entry = &protection.entries[number];
            let is_moved = matches!(state, FileState::Moved(_));
            match (protection.renamed(number, &self.evidence.tree), state) {
                (Some(path), _) => {
                    let from = self.target.path_of(path);
                    let is_right = is_moved || restored.contains(&from);
                    // Only a folder above it may have another name.
                    let is_renamed = name_of(path) != name_of(&entry.path);
                    let is_alike = true;
                    (is_right && is_renamed).then_some(Return { number, entry, from, is_alike })
                }
                (None, FileState::Moved(from)) if entry.kind != EntryKind::Folder => from
                    .starts_with(&protection.root)
                    .then(|| Return { number, entry, from: from.clone(), is_alike: false }),
                _ => None,
            }
        });
        returns.collect()
    }

    /// Returns the files that are copied, because they go back to a disk other than the one that
    /// they are on: their numbers, their paths there, and the bytes that they take there.
    pub(super) fn copies_back(&self) -> Vec<(usize, (PathBuf, u64))> {
        let is_copied = |back: &Return<'_>| {
            let now = back.from.parent().and_then(FileSystem::of);
            let then = back.to(self).ancestors().find_map(FileSystem::of);
            !back.is_alike && back.entry.is_file() && FileSystem::begins(now, then)
        };
        let copies = self.returns(&[]).into_iter().filter(is_copied);
        copies.map(|back| (back.number, (back.to(self), self.room_of(back.number)))).collect()
    }

    /// Moves back all that is to go back.
    pub(super) fn move_back(&self, report: &mut RepairReport) -> Result<()> {
        for back in self.returns(&report.restored) {
            let relative = self.protection.relative(&back.from).unwrap_or_default();
            let path = &back.entry.path;
            let moved = match self.crowded.get(&back.number) {
                Some(refused) => Err(self.no_room(refused)),
                None if back.is_alike => self.target.rename_alike(name_of(&relative), path),
                None => self.take_back(back.entry, &relative),
            };
            match moved {
                Ok(()) => report.moved_back.push((back.from.clone(), back.to(self))),
                Err(error) => self.note(Err(error), path, report)?,
            }
        }
        Ok(())
    }

    fn take_back(&self, entry: &ProtectedEntry, from: &[u8]) -> Result<()> {
        match self.target.take(from, &entry.path)? {
            MoveSource::Here => Ok(()),
            MoveSource::OtherDisk => self.copy_back(entry, from),
        }
    }

    /// Makes again what is on another disk, and then removes it there.
    fn copy_back(&self, entry: &ProtectedEntry, from: &[u8]) -> Result<()> {
        match &entry.kind {
            EntryKind::File { size, digest, .. } => {
                return self.target.take_from_disk(from, &entry.path, *size, *digest);
            }
            EntryKind::Symlink { target } => self.target.symlink(entry, target, None)?,
            EntryKind::HardLink { target } => self.target.hard_link(target, &entry.path, None)?,
            EntryKind::Folder => return Ok(()),
        }
        // A file system without links has got none.
        match std::fs::symlink_metadata(self.target.path_of(&entry.path)).is_ok() {
            true => self.target.remove(from),
            false => Err(Error::failed(format!(
                "{} stays, because its old file system has no links",
                shown(&self.target.path_of(from))
            ))),
        }
    }
}
