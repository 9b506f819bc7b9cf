//! Moving back what has moved: by its name on the same disk, and by a copy from another one.

use std::path::Path;

use paritas_shards::shown;

use super::{Repair, RepairReport};
use crate::error::{Error, ErrorKind, Result};
use crate::evidence::FileState;
use crate::find::{Entry, EntryKind};
use crate::restore::Place;
use crate::system::path_bytes;
use crate::tree::name_of;

impl Repair<'_> {
    /// Moves back files and links that are elsewhere, and gives names back that differ from the
    /// recorded ones, but not for the file system.
    pub(super) fn move_back(&self, report: &mut RepairReport) -> Result<()> {
        let states = self.evidence.states.iter();
        for (&number, state) in states.filter(|(number, _)| self.protection.covers(**number)) {
            let entry = &self.protection.entries[number];
            let renamed = self.protection.renamed(number, &self.evidence.tree);
            match (renamed, state) {
                (Some(path), state) => self.name_back(entry, path, state, report)?,
                (None, FileState::Moved(from)) if entry.kind != EntryKind::Folder => {
                    self.take_back(entry, from, report)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take_back(&self, entry: &Entry, from: &Path, report: &mut RepairReport) -> Result<()> {
        let Ok(relative) = from.strip_prefix(&self.protection.root) else { return Ok(()) };
        let relative = path_bytes(relative);
        let taken = match self.target.take(&relative, &entry.path) {
            Ok(Place::Here) => Ok(()),
            Ok(Place::OtherDisk) => self.copy_back(entry, &relative),
            Err(error) => Err(error),
        };
        match taken {
            Ok(()) => report.moved_back.push((from.into(), self.target.path_of(&entry.path))),
            Err(error) => self.note(Err(error), &entry.path, report)?,
        }
        Ok(())
    }

    /// Makes again what is on another disk, and then removes it there.
    fn copy_back(&self, entry: &Entry, from: &[u8]) -> Result<()> {
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
            false => Err(Error::new(
                ErrorKind::Io,
                format!(
                    "{} stays, because its old file system has no links",
                    shown(&self.target.path_of(from))
                ),
            )),
        }
    }

    /// Gives back its recorded name to something at `path`, unless it was changed and stays as it
    /// is, or only a folder above it has another name.
    fn name_back(
        &self,
        entry: &Entry,
        path: &[u8],
        state: &FileState,
        report: &mut RepairReport,
    ) -> Result<()> {
        let place = self.target.path_of(path);
        let is_right = matches!(state, FileState::Moved(_)) || report.restored.contains(&place);
        if !is_right || name_of(path) == name_of(&entry.path) {
            return Ok(());
        }
        match self.target.rename_alike(name_of(path), &entry.path) {
            Ok(()) => report.moved_back.push((place, self.target.path_of(&entry.path))),
            Err(error) => self.note(Err(error), &entry.path, report)?,
        }
        Ok(())
    }
}
