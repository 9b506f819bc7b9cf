//! Noting the change times that restored files have now, so that later damage to them is told from
//! changes ([`crate::restored`]).

use std::collections::HashSet;
use std::fs;
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::place::attributes::Timestamp;
use paritas_store::staging::{NewFile, Replace, StagedFile, commit};

use super::{RepairReport, RepairRun};
use crate::find::{EntryKind, ProtectedEntry};
use crate::restored::{Mark, mark, places, with_more};
use crate::scan::digest_of;
use crate::times::ChangeTimes;

impl RepairRun<'_> {
    /// Notes the change times of the files that were restored or moved back. In a tree that was
    /// copied, these times say nothing, and are not noted. If they cannot be noted, everything is
    /// restored nevertheless, so that is only a warning.
    pub(super) fn remember(&self, report: &mut RepairReport) {
        if self.job.to.is_some()
            || !ChangeTimes::of(self.protection, &self.evidence.tree).may_tell()
        {
            return;
        }
        let marks = self.marks(report);
        for place in places(self.protection).iter().filter(|_| !marks.is_empty()) {
            if let Err(error) = self.note_marks(place, &marks) {
                report.warn(vec![format!(
                    "damage to the restored files will count as a change until the next update, \
                     because it could not be noted that they were restored: {error}"
                )]);
            }
        }
    }

    /// Returns the marks of the files that were restored or moved back.
    fn marks(&self, report: &RepairReport) -> Vec<Mark> {
        let back = report.moved_back.iter().map(|(_, to)| to);
        let written: HashSet<&PathBuf> = report.restored.iter().chain(back).collect();
        let marks = self.protection.entries.iter().enumerate().filter_map(|(number, entry)| {
            let paths = [&entry.path, self.path_at(number)].map(|path| self.target.path_of(path));
            paths.iter().find(|path| written.contains(path))?;
            // A new name gives its file a new change time, too.
            let file = self.protection.file_of(number);
            let path = self.target.path_of(self.path_at(file));
            self.mark_of(&self.protection.entries[file], &path)
        });
        marks.collect()
    }

    /// Returns the mark of a file. Its bytes are read once more: somebody may have written to it
    /// since it was restored, and what has that change time must be what was protected.
    fn mark_of(&self, entry: &ProtectedEntry, path: &Path) -> Option<Mark> {
        let EntryKind::File { size, digest, .. } = entry.kind else { return None };
        let changed = || Timestamp::changed(&fs::symlink_metadata(path).ok()?);
        let before = changed()?;
        let is_right = digest_of(path, size) == Some(digest) && changed() == Some(before);
        mark(self.protection, entry, before).filter(|_| is_right)
    }

    fn note_marks(&self, place: &Path, marks: &[Mark]) -> Result<()> {
        let bytes = with_more(place, marks).map_err(|error| Error::io("reading", place, &error))?;
        let file = StagedFile::create(NewFile {
            target: place.to_owned(),
            replace: Replace::Always,
            access: self.parity_access(),
        })?;
        file.write_at(&mut [IoSlice::new(&bytes)], 0)?;
        commit(vec![file], self.job.sync).map(|_| ())
    }
}
