//! Conclusions from the times at which the system last changed anything about a file (ctime).
//!
//! A disk that loses bits does not change this time. A program that writes to a file does, even if
//! it sets the file's own time back afterwards. So this time distinguishes decay from intended
//! writes. But renaming a file or changing its mode changes it as well, and a tree that was copied
//! has new times everywhere. Therefore these times count only if at least half of the files still
//! have theirs. Otherwise a file whose bytes differ and whose own time does not counts as damaged.

use paritas_store::place::attributes::Timestamp;

use crate::find::{ProtectedEntry, Protection};
use crate::tree::{FoundEntry, FoundKind, Tree};

/// Whether the times tell which files were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeTimes {
    tell: bool,
}

impl ChangeTimes {
    /// Compares the times of all files that have the size and the time of change that they had. The
    /// entries' paths must have been matched with the tree.
    pub fn of(protection: &Protection, tree: &Tree) -> Self {
        let (mut kept, mut new) = (0, 0);
        for (number, entry) in protection.entries.iter().enumerate() {
            let found = tree.of(number).filter(|found| has_size_and_time(entry, found));
            let Some((now, then)) = found.and_then(|it| it.changed).zip(entry.details.changed)
            else {
                continue;
            };
            match now == then {
                true => kept += 1,
                false => new += 1,
            }
        }
        Self { tell: kept > 0 && kept >= new }
    }

    /// Whether a file was certainly touched since it was protected, whatever time it has itself.
    pub fn was_touched(self, entry: &ProtectedEntry, changed: Option<Timestamp>) -> bool {
        let times = entry.details.changed.zip(changed);
        self.tell && times.is_some_and(|(then, now)| then != now)
    }
}

fn has_size_and_time(entry: &ProtectedEntry, found: &FoundEntry) -> bool {
    let has_size = match found.kind {
        FoundKind::File { size, .. } => entry.is_file() && size == entry.size(),
        _ => false,
    };
    has_size && found.modified == entry.modified
}
