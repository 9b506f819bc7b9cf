//! Verifying a part of a protection: its files are read first. Only if something in the part is not
//! as it was, everything else is read, because that says whether the part can be repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use paritas_store::error::Result;

use super::{Examination, look, replaced, set_renamed, set_unreadable, state_by_metadata};
use crate::evidence::{Evidence, FileState};
use crate::find::EntryKind;
use crate::scan::digest_of;
use crate::times::ChangeTimes;
use crate::tree::{FoundEntry, FoundKind, map_in_threads};

impl Examination<'_> {
    /// Returns the evidence that all bytes of the part that was asked for are right. It has no
    /// layers. Returns `None` if more must be read to tell, or no part was asked for.
    pub(super) fn intact_part(&self) -> Result<Option<Evidence>> {
        let protection = self.protection;
        if self.options.quick || !protection.is_part() {
            return Ok(None);
        }
        let tree = look(protection, self.threads)?;
        if self.options.from_disk {
            self.forget_cached(&tree)?;
        }
        let times = ChangeTimes::of(protection, &tree);
        let mut states = BTreeMap::new();
        self.compare_names(&tree, &times, &mut states);
        let whole_links = self.files_of_whole_links(&states);
        states.extend(replaced(protection, &tree));
        let mut files = Vec::new();
        for (number, entry) in protection.entries.iter().enumerate() {
            if !protection.covers(number) || whole_links.contains(&number) {
                continue;
            }
            let found = tree.of(number);
            let state = state_by_metadata(entry, found, &times);
            match (&entry.kind, found) {
                (EntryKind::File { size, .. }, Some(found)) if has_size(found, *size) => {
                    files.push(number);
                    let is_touched = state.is_some();
                    states.extend(is_touched.then_some((number, FileState::Touched)));
                }
                _ => states.extend(state.map(|state| (number, state))),
            }
        }
        set_unreadable(protection, &tree, &mut states);
        set_renamed(protection, &tree, &mut states);
        states.retain(|&number, _| protection.covers(number));
        let is_intact =
            states.values().all(|state| *state == FileState::Touched) && self.have_digests(&files);
        let (elsewhere, layers) = Default::default();
        Ok(is_intact.then_some(Evidence { tree, states, elsewhere, layers }))
    }

    /// Returns the files outside of the part whose hard links in the part all have the right bytes,
    /// although they do not lead to the file any more: `states` has them as touched. The file may
    /// be gone.
    fn files_of_whole_links(&self, states: &BTreeMap<usize, FileState>) -> BTreeSet<usize> {
        let protection = self.protection;
        let (mut whole, mut others) = (BTreeSet::new(), BTreeSet::new());
        for (number, entry) in protection.entries.iter().enumerate() {
            let EntryKind::HardLink { target } = &entry.kind else { continue };
            if protection.covers_path(&entry.path) && !protection.covers_path(target) {
                let is_whole = states.get(&number) == Some(&FileState::Touched);
                let of = if is_whole { &mut whole } else { &mut others };
                of.extend(protection.entry_at(target));
            }
        }
        &whole - &others
    }

    /// Whether the files of some entries have the bytes that were protected.
    fn have_digests(&self, files: &[usize]) -> bool {
        let is_broken = AtomicBool::new(false);
        map_in_threads(self.threads.min(files.len()), files.iter(), |&number| {
            if is_broken.load(Ordering::Relaxed) {
                return;
            }
            let entry = &self.protection.entries[number];
            let EntryKind::File { size, digest, .. } = entry.kind else { return };
            let now = digest_of(&self.protection.path_of(entry), size);
            is_broken.fetch_or(now != Some(digest), Ordering::Relaxed);
            (self.progress)(size);
        });
        !is_broken.into_inner()
    }
}

fn has_size(found: &FoundEntry, size: u64) -> bool {
    matches!(found.kind, FoundKind::File { size: now, .. } if now == size)
}
