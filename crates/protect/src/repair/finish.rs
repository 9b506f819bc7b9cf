//! Giving restored files their names, without replacing a file whose bytes are still needed.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;
use paritas_store::staging::commit;

use super::{Files, Parity, RepairReport, RepairRun};
use crate::find::EntryKind;
use crate::restore::Complete;

/// The files that are complete and do not have their names yet, by entry.
type CompleteFiles<'t> = BTreeMap<usize, Complete<'t>>;

impl<'a> RepairRun<'a> {
    /// Gives the restored files their names, once all of them are complete. Returns the files that
    /// still have bytes of entries that are not restored. They are not replaced.
    pub(super) fn finish_files(
        &self,
        wanted: &[usize],
        files: Files<'a>,
        report: &mut RepairReport,
    ) -> Result<HashSet<PathBuf>> {
        let mut complete = self.complete_files(files, report)?;
        let mut needed = self.leave_needed(wanted, &mut complete, report)?;
        self.sync_names(report)?;
        self.replace_files(complete, &mut needed, report)?;
        Ok(needed)
    }

    /// Compares the restored files with their digests, and returns the files whose digests are
    /// right.
    fn complete_files(
        &self,
        files: Files<'a>,
        report: &mut RepairReport,
    ) -> Result<CompleteFiles<'a>> {
        let mut complete = CompleteFiles::new();
        for (number, restoring) in files {
            let entry = &self.protection.entries[number];
            let EntryKind::File { digest, .. } = entry.kind else { continue };
            match restoring.complete(entry, digest) {
                Ok(restored) => _ = complete.insert(number, restored),
                Err(error) => self.note(Err(error), self.path_at(number), report)?,
            }
        }
        Ok(complete)
    }

    /// Takes out of `complete` the files that would replace a file with bytes that are still
    /// needed. Returns the files that still have bytes of entries that are not restored.
    fn leave_needed(
        &self,
        wanted: &[usize],
        complete: &mut CompleteFiles<'a>,
        report: &mut RepairReport,
    ) -> Result<HashSet<PathBuf>> {
        // Entries outside the part that was asked for may be restored later.
        let is_other = |number: &&usize| !self.protection.covers(**number);
        let others = self.evidence.states.keys().filter(is_other);
        let left = wanted.iter().chain(&self.lost).chain(others);
        let mut needed = self.sources_of(left.filter(|number| !complete.contains_key(*number)));
        let is_needed = |number: &usize, needed: &HashSet<PathBuf>| {
            needed.contains(&self.target.path_of(self.path_at(*number)))
        };
        // A file that is refused is not restored either, so its bytes must stay, too.
        while let Some(number) = complete.keys().copied().find(|it| is_needed(it, &needed)) {
            complete.remove(&number);
            let path = self.path_at(number);
            self.note(self.expect_free(path, &needed), path, report)?;
            needed.extend(self.sources_of([number].iter()));
        }
        Ok(needed)
    }

    /// Gives complete files their names, except where this would replace a file in `needed`. If a
    /// file does not get its name, the files that have its bytes are added to `needed`.
    fn replace_files(
        &self,
        complete: CompleteFiles<'a>,
        needed: &mut HashSet<PathBuf>,
        report: &mut RepairReport,
    ) -> Result<()> {
        let mut replaced = HashSet::new();
        for (number, mut restored) in complete {
            let path = self.path_at(number);
            let sources = self.sources_of([number].iter());
            if !sources.is_disjoint(&replaced) {
                // Some of its bytes are no longer anywhere else.
                restored.keep();
            }
            let done = self.expect_free(path, needed).and_then(|()| restored.finish());
            match done.is_ok() {
                true => _ = replaced.insert(self.target.path_of(path)),
                false => needed.extend(sources),
            }
            self.note(done, path, report)?;
        }
        Ok(())
    }

    /// Returns the files from which the bytes of some entries are read.
    pub(super) fn sources_of<'n>(
        &self,
        entries: impl Iterator<Item = &'n usize>,
    ) -> HashSet<PathBuf> {
        let sources = entries.filter_map(|&number| match self.protection.entries[number].kind {
            EntryKind::File { layer, piece, size, .. } if size > 0 => {
                Some(self.evidence.layers[layer].stream.sources_of(piece))
            }
            _ => None,
        });
        sources.flatten().cloned().collect()
    }

    /// Gives the new parity files of a layer their names.
    pub(super) fn finish_parity(
        &self,
        number: usize,
        parity: Parity,
        report: &mut RepairReport,
    ) -> Result<()> {
        if parity.is_empty() {
            return Ok(());
        }
        let layer = &self.protection.layers[number];
        let places = parity.keys().map(|&index| self.protection.place_of(layer, index));
        let places: Vec<PathBuf> = places.collect();
        let files = parity.into_values().collect();
        match commit(files, self.job.sync) {
            Ok(committed) => {
                report.parity.extend(places);
                report.warn(committed.warnings());
            }
            Err(error) => self.note_parity(number, error, report)?,
        }
        Ok(())
    }

    /// Refuses to replace a file if it has bytes of another one that could not be restored.
    pub(super) fn expect_free(&self, path: &[u8], needed: &HashSet<PathBuf>) -> Result<()> {
        let path = self.target.path_of(path);
        match needed.contains(&path) {
            false => Ok(()),
            true => Err(Error::busy(format!(
                "{} stays, because it has bytes of a file that could not be restored",
                shown(&path)
            ))),
        }
    }
}
