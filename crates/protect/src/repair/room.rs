//! Room on disks for what is restored, and what killed repairs have left there.
//!
//! A leftover may fill a disk, so that nothing could be restored there ever again. If a disk has
//! too little room, a repair first removes the leftovers from which no byte is read. If that does
//! not help, it removes those whose blocks the parity can replace. A leftover that is a whole
//! missing file is not copied: it gets the name of the file, and takes no room.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::place::space::{NoRoom, Room};
use paritas_store::shown::{counted, shown};

use super::{RepairReport, RepairRun};
use crate::evidence::is_left_by;
use crate::find::EntryKind;
use crate::sparse;

/// The leftovers that take room which a repair needs.
#[derive(Debug, Default)]
struct Obstacles {
    /// No byte is read from these.
    unused: Vec<PathBuf>,
    /// The parity can replace all that is read from these.
    replaceable: Vec<PathBuf>,
}

impl RepairRun<'_> {
    /// Removes leftovers if there is too little room beside them. Returns whether any of them had
    /// blocks that are to be computed now.
    pub(super) fn make_room(&self, wanted: &[usize]) -> bool {
        if self.job.dry_run {
            return false;
        }
        let Obstacles { unused, replaceable } = self.obstacles(wanted);
        unused.iter().chain(&replaceable).for_each(|path| self.remove(path));
        !replaceable.is_empty()
    }

    /// Notes what is not written for lack of room: on each disk by itself, the files, if it has no
    /// room for all that is to be restored there; the layers whose parity has no room; and the
    /// files that have no room to be copied back.
    pub(super) fn expect_space(
        &mut self,
        wanted: &[usize],
        report: &mut RepairReport,
    ) -> Result<()> {
        let mut room = self.room(wanted);
        let refused = room.take(&self.file_needs(wanted)).into_iter();
        self.crowded = refused.map(|(at, no_room)| (wanted[at], no_room)).collect();
        for number in 0..self.protection.layers.len() {
            if let Err(refused) = room.take_all(&self.parity_needs(number)) {
                self.note_parity(number, self.no_room(&refused), report)?;
                self.without_room.push(number);
            }
        }
        let (numbers, needs): (Vec<usize>, Vec<_>) = self.copies_back().into_iter().unzip();
        let refused = room.take(&needs).into_iter();
        self.crowded.extend(refused.map(|(at, no_room)| (numbers[at], no_room)));
        Ok(())
    }

    /// Returns the room on disks. A dry run counts the leftovers that a repair would remove first.
    fn room(&self, wanted: &[usize]) -> Room {
        let mut room = Room::default();
        if self.job.dry_run {
            let Obstacles { unused, replaceable } = self.obstacles(wanted);
            unused.iter().chain(&replaceable).for_each(|path| give(&mut room, path));
        }
        room
    }

    /// Returns the leftovers to remove, so that there is room for more.
    fn obstacles(&self, wanted: &[usize]) -> Obstacles {
        let mut room = Room::default();
        let crowded = self.count_crowded(wanted, &room);
        if crowded == 0 {
            return Obstacles::default();
        }
        let unused = self.unused_leftovers(wanted);
        unused.iter().for_each(|path| give(&mut room, path));
        let still_crowded = self.count_crowded(wanted, &room);
        let mut replaceable = self.replaceable_leftovers();
        replaceable.iter().for_each(|path| give(&mut room, path));
        if self.count_crowded(wanted, &room) == still_crowded {
            replaceable.clear();
        }
        Obstacles { unused, replaceable }
    }

    /// Returns the number of files and parity files that find no room.
    fn count_crowded(&self, wanted: &[usize], room: &Room) -> usize {
        let mut needs = self.file_needs(wanted);
        needs.extend((0..self.protection.layers.len()).flat_map(|it| self.parity_needs(it)));
        needs.extend(self.copies_back().into_iter().map(|(_, need)| need));
        room.clone().take(&needs).len()
    }

    /// Returns the leftovers from which nothing is read.
    fn unused_leftovers(&self, wanted: &[usize]) -> Vec<PathBuf> {
        if self.protection.may_lack_entries() {
            return Vec::new();
        }
        let mut left: Vec<PathBuf> = match self.job.to {
            None => self.evidence.leftovers(self.protection).cloned().collect(),
            Some(_) => self.leftovers_in_target(wanted),
        };
        let layers = self.evidence.layers.iter();
        let used: HashSet<&PathBuf> = layers.flat_map(|layer| layer.stream.sources()).collect();
        left.retain(|path| !used.contains(path));
        left
    }

    /// Returns the leftovers from which blocks are read, if the parity can compute all of these.
    fn replaceable_leftovers(&self) -> Vec<PathBuf> {
        if self.job.to.is_some() || self.protection.may_lack_entries() {
            return Vec::new();
        }
        let resumed: HashSet<&PathBuf> =
            self.evidence.elsewhere.keys().filter_map(|&number| self.resumed(number)).collect();
        let used: HashSet<&PathBuf> = self
            .evidence
            .leftovers(self.protection)
            .filter(|path| !resumed.contains(path))
            .collect();
        let pairs = self.protection.layers.iter().zip(&self.evidence.layers);
        let mut counts = pairs.map(|(layer, evidence)| {
            let mut blocks = evidence.stream.blocks_from(&layer.header.geometry, &used);
            blocks.extend(&evidence.lost);
            (blocks.len(), evidence)
        });
        let suffices = counts
            .all(|(lost, evidence)| lost == evidence.lost.len() || lost <= evidence.rows.len());
        match suffices {
            true => used.into_iter().cloned().collect(),
            false => Vec::new(),
        }
    }

    /// Returns the leftover that is a whole file, of the entry of this number, and that needs only
    /// its name. If it is several files, it becomes the first.
    pub(super) fn resumed(&self, number: usize) -> Option<&PathBuf> {
        let left = self.evidence.elsewhere.get(&number)?;
        let place = self.target.path_of(self.path_at(number));
        let id = self.protection.id.to_string();
        let is_there =
            self.job.to.is_none() && place.parent() == left.parent() && is_left_by(left, &id);
        let first = || self.evidence.elsewhere.iter().find(|(_, other)| *other == left);
        (is_there && first().is_some_and(|(&first, _)| first == number)).then_some(left)
    }

    /// Returns the path and the room of each thing that is to be restored.
    pub(super) fn file_needs(&self, wanted: &[usize]) -> Vec<(PathBuf, u64)> {
        let need =
            |&number: &usize| (self.target.path_of(self.path_at(number)), self.room_of(number));
        wanted.iter().map(need).collect()
    }

    /// Returns the path and the room of each parity file of a layer that is to be written anew.
    pub(super) fn parity_needs(&self, number: usize) -> Vec<(PathBuf, u64)> {
        let layer = &self.protection.layers[number];
        let need = |index| {
            let path = self.protection.place_of(layer, index);
            (path, layer.header.file_length(index))
        };
        self.broken(number).into_iter().map(need).collect()
    }

    /// Returns the number of bytes that an entry takes on its disk. Blocks of zeros take nothing,
    /// nor does a further name of a file, nor what an earlier repair has written.
    pub(super) fn room_of(&self, number: usize) -> u64 {
        let EntryKind::File { layer, piece, size, .. } = self.protection.entries[number].kind
        else {
            return 0;
        };
        let is_there = self.other_name(number).is_some() || self.restored_before.contains(&number);
        if is_there || self.resumed(number).is_some() {
            return 0;
        }
        let start = self.evidence.layers[layer].stream.pieces()[piece].start;
        let layer = &self.protection.layers[layer];
        sparse::room(start..start + size, &layer.header.geometry, &layer.checksums)
    }

    /// Returns the error for a disk that has too little room. Names the leftovers, which also take
    /// room.
    pub(super) fn no_room(&self, NoRoom { path, needed, left }: &NoRoom) -> Error {
        let leftovers = self.evidence.leftovers(self.protection).filter(|path| path.exists());
        let leftovers: Vec<&PathBuf> = leftovers.collect();
        let what_else = leftovers.first().map_or_else(String::new, |first| {
            let more = match leftovers.len() - 1 {
                0 => String::new(),
                more => format!(" and {} more", counted(more as u64, "file")),
            };
            format!(
                "; a killed repair has left {}{more}, which may have bytes that are needed",
                shown(first)
            )
        });
        Error::failed(format!(
            "the repair writes before it removes anything, and the disk of {} has room for {left} \
             of the {needed} bytes that would be restored there{what_else}",
            shown(path)
        ))
    }
}

/// Counts the room of a leftover as free.
fn give(room: &mut Room, leftover: &Path) {
    let taken = fs::symlink_metadata(leftover).map_or(0, |found| sparse::taken(&found));
    room.give(leftover, taken);
}
