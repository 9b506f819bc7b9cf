//! Files that could not be opened, and the questions that they leave open. Without permission, or
//! with too few descriptors, the content of a file is unknown: it may be any shard, or none. So a
//! verdict is given only if it would stay the same if such files held the missing shards intact.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use paritas::erasure::combinations;
use paritas_store::shown::{first_few, shown};

use crate::object::{Object, UnopenedPath};
use paritas_store::object::geometry::Geometry;

/// Lower and upper limit of the number of sets of parts that are tried as the content of unopened
/// files. If there are more sets, the question whether any set is enough stays open.
const TRIALS: (usize, usize) = (16, 4096);

/// Number of cells that all trials examine together. This takes a few seconds at most.
const TRIED_CELLS: usize = 1 << 20;

impl Object {
    /// Returns the largest number of files of this object that the unopened paths may hold.
    pub(crate) fn unread_room(&self) -> usize {
        match self.unread.iter().any(|unread| unread.is_folder) {
            true => usize::MAX,
            false => self.unread.len(),
        }
    }

    /// Returns the unopened files that have the name of a part.
    pub(crate) fn unread_files(&self, part: usize) -> impl Iterator<Item = &UnopenedPath> {
        let name = self.part_name(part).map(|name| name.finished()).unwrap_or_default();
        self.unread.iter().filter(move |unread| unread.path.file_name() == Some(OsStr::new(&name)))
    }

    /// Returns the shards with a part that lacks a readable file, but has a file of its name that
    /// could not be opened.
    pub fn unreadable(&self) -> Vec<usize> {
        let parts = self.missing_parts().into_iter();
        let unread = parts.filter(|&part| self.unread_files(part).next().is_some());
        let shards: BTreeSet<usize> = unread.map(|part| self.part(part).shard).collect();
        shards.into_iter().collect()
    }

    /// Returns a message about the paths that could not be opened, and why. Returns `None` if all
    /// could be opened.
    pub(crate) fn unread_note(&self) -> Option<String> {
        let shown = |unread: &UnopenedPath| format!("{} ({})", shown(&unread.path), unread.reason);
        let notes = first_few(self.unread.iter().map(shown));
        (!notes.is_empty()).then(|| notes.join(", "))
    }

    /// Whether all of `segments` could be computed if the files that could not be opened were
    /// intact: those of the parts in `known`, and any others that fit into [`Self::unread_room`].
    /// Each segment is given as its good buffers.
    pub(crate) fn could_be_had<'s>(
        &self,
        segments: impl IntoIterator<Item = &'s Vec<bool>>,
        known: &[usize],
    ) -> bool {
        let (geometry, room) = (&*self.geometry, self.unread_room());
        if room == 0 && known.is_empty() {
            return false;
        }
        let segments = segments.into_iter().map(|good| with_parts(geometry, good, known));
        let segments: Vec<Vec<bool>> = segments.collect();
        let lacking = |part: &usize| {
            let is_bad = |good: &Vec<bool>| !has_part(geometry, good, *part);
            segments.iter().any(is_bad)
        };
        let lacking: Vec<usize> = (0..geometry.part_count()).filter(lacking).collect();
        if room >= lacking.len() {
            return true;
        }
        if segments.iter().any(|good| falls_short(geometry, good, room)) {
            return false;
        }
        let cells = geometry.code().cell_count() * segments.len().max(1);
        let trials = (TRIED_CELLS / cells).clamp(TRIALS.0, TRIALS.1);
        let mut sets = combinations(lacking.len(), room);
        let is_enough = |set: Vec<usize>| {
            let parts: Vec<usize> = set.into_iter().map(|index| lacking[index]).collect();
            let solvable =
                |good: &Vec<bool>| geometry.is_solvable(&with_parts(geometry, good, &parts));
            segments.iter().all(solvable)
        };
        sets.by_ref().take(trials).any(is_enough) || sets.next().is_some()
    }
}

fn has_part(geometry: &Geometry, good: &[bool], part: usize) -> bool {
    geometry.part_buffers(part).all(|buffer| good[buffer])
}

/// Whether a segment has too few cells to compute its data, even if any `room` of its missing parts
/// were added.
fn falls_short(geometry: &Geometry, good: &[bool], room: usize) -> bool {
    let cells = |buffers: &mut dyn Iterator<Item = usize>| geometry.cells(buffers).len();
    let gain = |part| cells(&mut geometry.part_buffers(part).filter(|&buffer| !good[buffer]));
    let mut gains: Vec<usize> = (0..geometry.part_count()).map(gain).collect();
    gains.sort_unstable_by(|a, b| b.cmp(a));
    let had = cells(&mut (0..good.len()).filter(|&buffer| good[buffer]));
    had + gains.iter().take(room).sum::<usize>() < geometry.code().data_cells().len()
}

/// Returns the good buffers together with those of `parts`.
fn with_parts(geometry: &Geometry, good: &[bool], parts: &[usize]) -> Vec<bool> {
    let mut good = good.to_vec();
    let buffers = parts.iter().flat_map(|&part| geometry.part_buffers(part));
    buffers.for_each(|buffer| good[buffer] = true);
    good
}
