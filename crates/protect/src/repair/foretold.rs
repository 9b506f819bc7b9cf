//! What a repair would do, without doing it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use paritas_store::error::Result;
use paritas_store::place::space::by_disk;

use super::{RepairReport, RepairRun};
use crate::find::EntryKind;

impl RepairRun<'_> {
    /// Puts into a report what would be restored, moved back and written, how much that takes, and
    /// what would fail.
    pub(super) fn foretell(&mut self, wanted: &[usize], report: &mut RepairReport) -> Result<()> {
        let layers = 0..self.protection.layers.len();
        let parity: Vec<_> = layers.clone().flat_map(|layer| self.parity_needs(layer)).collect();
        self.expect_space(wanted, report)?;
        let done = self.foretell_entries(wanted);
        let mut written = self.foretell_needs(wanted, &done);
        for (number, done) in done {
            let path = self.target.path_of(self.path_at(number));
            match done {
                Ok(()) => report.restored.push(path),
                Err(error) => report.fail(path, &error),
            }
        }
        self.foretell_returns(report);
        for number in layers {
            let places = self.parity_needs(number).into_iter().map(|(path, _)| path);
            report.parity.extend(places);
        }
        written.extend(parity);
        written.extend(self.copies_back().into_iter().map(|(_, need)| need));
        report.disks = by_disk(&written);
        Ok(())
    }

    /// Returns the entries that would be written, and whether that is expected to succeed. The
    /// fate of a hard link depends on that of its file.
    fn foretell_entries(&self, wanted: &[usize]) -> BTreeMap<usize, Result<()>> {
        let is_wanted = |number: usize| wanted.binary_search(&number).is_ok();
        let target_of = |number: usize| match &self.protection.entries[number].kind {
            EntryKind::HardLink { target } => Some(target),
            _ => None,
        };
        let files = wanted.iter().copied().filter(|&number| target_of(number).is_none());
        let mut done: BTreeMap<usize, Result<()>> =
            files.map(|number| (number, self.expect_restored(number, wanted))).collect();
        for number in 0..self.protection.entries.len() {
            let Some(target) = target_of(number) else { continue };
            let file = self.protection.entry_at(target);
            let of_file = file.and_then(|file| Some((file, done.get(&file)?.is_ok())));
            let is_new = of_file.is_some_and(|(file, is_ok)| is_ok && self.follows(number, file));
            if is_wanted(number) || is_new {
                let expected = self.expect_restored(number, wanted);
                let is_there = self.was_restored(&self.protection.entries[number]);
                let expected = expected.and_then(|()| match of_file {
                    Some((_, false)) if !is_there => Err(self.without_file(number, target)),
                    _ => Ok(()),
                });
                done.insert(number, expected);
            }
        }
        done
    }

    /// Expects that an entry can be restored, as far as this is known before it is tried.
    fn expect_restored(&self, number: usize, wanted: &[usize]) -> Result<()> {
        self.expect_unchanged(number, wanted)?;
        let entry = &self.protection.entries[number];
        let is_link = !entry.is_file();
        if self.restored_before.contains(&number) || is_link && self.was_restored(entry) {
            return Ok(());
        }
        match self.crowded.get(&number).filter(|_| entry.is_file()) {
            Some(refused) => Err(self.no_room(refused)),
            None => {
                let is_folder = entry.kind == EntryKind::Folder;
                self.target.expect_way(self.path_at(number), is_folder, self.seen(number))
            }
        }
    }

    /// Returns the path and the room of each file that would be written, also if its disk has too
    /// little room.
    fn foretell_needs(
        &self,
        wanted: &[usize],
        done: &BTreeMap<usize, Result<()>>,
    ) -> Vec<(PathBuf, u64)> {
        let is_tried = |number: &&usize| {
            done.get(*number).is_some_and(Result::is_ok) || self.crowded.contains_key(*number)
        };
        let tried: Vec<usize> = wanted.iter().filter(is_tried).copied().collect();
        let needs = self.file_needs(&tried).into_iter();
        needs.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Puts into a report what would be moved back.
    fn foretell_returns(&self, report: &mut RepairReport) {
        for back in self.returns(&report.restored) {
            match self.crowded.get(&back.number) {
                Some(refused) => report.fail(back.to(self), &self.no_room(refused)),
                None => report.moved_back.push((back.from.clone(), back.to(self))),
            }
        }
    }
}
