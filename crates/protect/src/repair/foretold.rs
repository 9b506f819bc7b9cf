//! What a repair would do, without doing it.

use paritas_store::place::space::by_disk;

use super::{RepairReport, RepairRun};
use crate::find::EntryKind;

impl RepairRun<'_> {
    /// Puts into a report what would be restored, moved back and written, and how much that takes.
    pub(super) fn foretell(&self, wanted: &[usize], report: &mut RepairReport) {
        let (mut restored, mut written) = (Vec::new(), Vec::new());
        for (number, entry) in self.protection.entries.iter().enumerate() {
            let is_wanted = wanted.binary_search(&number).is_ok();
            let path = self.target.path_of(self.path_at(number));
            let is_folder = matches!(entry.kind, EntryKind::Folder);
            let expect = || {
                self.expect_unchanged(number, wanted)?;
                self.target.expect_way(self.path_at(number), is_folder)
            };
            if is_wanted && let Err(error) = expect() {
                report.fail(path, &error);
                continue;
            }
            if is_wanted && entry.size() > 0 {
                written.push((path.clone(), self.room_of(number)));
            }
            restored.extend((is_wanted || self.is_linked_anew(number, wanted)).then_some(path));
        }
        report.restored = restored;
        let returns = self.returns(&report.restored).into_iter();
        report.moved_back = returns.map(|back| (back.from.clone(), back.to(self))).collect();
        for (number, layer) in self.protection.layers.iter().enumerate() {
            for index in self.broken(number) {
                let path = self.protection.place_of(layer, index);
                written.push((path.clone(), layer.header.file_length(index)));
                report.parity.push(path);
            }
        }
        written.extend(self.copies_back().into_iter().map(|(_, need)| need));
        report.disks = by_disk(&written);
    }

    /// Whether a hard link is made again because its file is restored.
    fn is_linked_anew(&self, number: usize, wanted: &[usize]) -> bool {
        let EntryKind::HardLink { target } = &self.protection.entries[number].kind else {
            return false;
        };
        let is_new =
            |&file: &usize| wanted.binary_search(&file).is_ok() && self.follows(number, file);
        self.protection.entry_at(target).filter(is_new).is_some()
    }
}
