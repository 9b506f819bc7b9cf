//! Verifying a part of a protection: its files are read first. Only if something in the part is not
//! as it was, everything else is read, because that says whether the part can be repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Examination, has_size, replaced, set_renamed, set_unreadable, state_by_metadata};
use crate::evidence::FileState;
use crate::find::EntryKind;
use crate::scan::digest_of;
use crate::times::ChangeTimes;
use crate::tree::{Tree, map_in_threads};

impl Examination<'_> {
    /// Returns the states of what the part that was asked for has, if all its bytes are right.
    /// Returns `None` if more must be read to tell, or no part was asked for.
    pub(super) fn intact_part(&self, tree: &Tree) -> Option<BTreeMap<usize, FileState>> {
        let protection = self.protection;
        if self.options.quick || !protection.is_part() {
            return None;
        }
        let times = ChangeTimes::of(protection, tree);
        let (mut states, mut files) = (BTreeMap::new(), BTreeSet::new());
        for (number, entry) in protection.entries.iter().enumerate() {
            if !protection.covers(number) {
                continue;
            }
            let found = tree.of(number);
            let state = state_by_metadata(entry, found, &times);
            match (&entry.kind, found) {
                (EntryKind::File { size, .. }, Some(found)) if has_size(found, *size) => {
                    files.insert(number);
                    let is_touched = state.is_some();
                    states.extend(is_touched.then_some((number, FileState::Touched)));
                }
                _ => states.extend(state.map(|state| (number, state))),
            }
        }
        states.extend(replaced(protection, tree));
        set_unreadable(protection, tree, &mut states);
        self.compare_names(tree, &times, &mut states);
        for number in self.files_of_whole_links(&states) {
            states.remove(&number);
            files.remove(&number);
        }
        set_renamed(protection, tree, &mut states);
        states.retain(|&number, _| protection.covers(number));
        let is_intact = states.values().all(|state| *state == FileState::Touched);
        (is_intact && self.have_digests(&files)).then_some(states)
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
    fn have_digests(&self, files: &BTreeSet<usize>) -> bool {
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
