//! Conclusions from the times at which the system last changed anything about a file (ctime).
//!
//! A disk that loses bits does not change this time. A program that writes to a file does, even if
//! it sets the file's own time back afterwards. So this time distinguishes decay from intended
//! writes. But renaming a file or changing its mode changes it as well, and a tree that was copied
//! has new times everywhere. Therefore these times count only if at least half of the files still
//! have theirs: the one in the catalogue, or the one that a repair has noted (`restored.rs`).
//! Otherwise a file whose bytes differ and whose own time does not counts as damaged.
//!
//! Whether these times count or not, a file with a new one may have other bytes. So what trusts
//! sizes and times reads it: an update, which notes the new time if the bytes are right, and a
//! quick verification. After one update, the times of a copied tree count again.

use std::collections::HashSet;
use std::path::Path;

use paritas_store::place::attributes::{Attributes, Timestamp};

use crate::find::{ProtectedEntry, Protection};
use crate::restored::{Mark, mark, marks};
use crate::tree::{FoundEntry, FoundKind, Tree};

/// Whether the times tell which files were written.
#[derive(Debug)]
pub(crate) struct ChangeTimes<'p> {
    protection: &'p Protection,
    /// Number of files that have their times.
    kept: u64,
    /// Number of files that have other times.
    new: u64,
    /// The marks of the times that repairs have noted.
    restored: HashSet<Mark>,
}

impl<'p> ChangeTimes<'p> {
    /// Compares the times of all files that have the size and the time of change that they had. A
    /// time that says nothing is not counted. The entries' paths must have been matched with the
    /// tree.
    pub fn of(protection: &'p Protection, tree: &Tree) -> Self {
        let restored = marks(protection).collect();
        let mut times = Self { protection, kept: 0, new: 0, restored };
        for (number, entry) in protection.entries.iter().enumerate() {
            let found = tree.of(number).filter(|found| has_size_and_time(entry, found));
            let Some(changed) = found.map(|found| found.changed) else { continue };
            match times.has_its_time(entry, changed) {
                Some(true) if says_nothing(protection, entry, changed) => {}
                Some(true) => times.kept += 1,
                Some(false) => times.new += 1,
                None => {}
            }
        }
        times
    }

    /// Whether at least as many files have kept their times as have new ones. This is also true if
    /// no file has a known time.
    pub fn may_tell(&self) -> bool {
        self.kept >= self.new
    }

    /// Whether a file counts as touched since it was protected or restored, whatever time it has
    /// itself.
    pub fn was_touched(&self, entry: &ProtectedEntry, changed: Option<Timestamp>) -> bool {
        self.tell() && self.is_new(entry, changed)
    }

    /// Whether a file may have been written since it was protected or restored, whatever the times
    /// of the other files say: it has another time than those at which its bytes were right, or its
    /// time says nothing.
    pub fn is_new(&self, entry: &ProtectedEntry, changed: Option<Timestamp>) -> bool {
        let is_right = self.has_its_time(entry, changed);
        is_right.is_some_and(|it| !it || says_nothing(self.protection, entry, changed))
    }

    /// Whether the file at a path has the time `modified` at this moment, and nothing says that it
    /// was touched since it was protected as `entry`.
    pub fn is_untouched(&self, entry: &ProtectedEntry, modified: Timestamp, path: &Path) -> bool {
        let found = std::fs::symlink_metadata(path).ok();
        found
            .filter(|found| Attributes::of(found).modified == Some(modified))
            .is_some_and(|found| !self.was_touched(entry, Timestamp::changed(&found)))
    }

    fn tell(&self) -> bool {
        self.kept > 0 && self.may_tell()
    }

    /// Whether a file has a time at which its bytes were right, if any such time is known.
    fn has_its_time(&self, entry: &ProtectedEntry, changed: Option<Timestamp>) -> Option<bool> {
        let (then, now) = entry.details.changed.zip(changed)?;
        let is_restored = || {
            !self.restored.is_empty()
                && mark(self.protection, entry, now).is_some_and(|it| self.restored.contains(&it))
        };
        Some(then == now || is_restored())
    }
}

/// Whether a file that has the time of its entry may have been written since, because a later write
/// gave it the same time: the time is a whole second, and as late as the reading of the file. The
/// clock of a file server may be two seconds behind.
fn says_nothing(
    protection: &Protection,
    entry: &ProtectedEntry,
    changed: Option<Timestamp>,
) -> bool {
    let read = protection.created().seconds;
    let is_late = |time: Timestamp| time.nanoseconds == 0 && time.seconds.saturating_add(2) >= read;
    changed == entry.details.changed && changed.is_some_and(is_late)
}

/// Whether the file at a path has the time `modified` at this moment.
pub(crate) fn has_time_now(modified: Timestamp, path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path).ok();
    found.is_some_and(|found| Attributes::of(&found).modified == Some(modified))
}

/// Whether a file has another time than the catalogue says, so that an update notes it.
pub(crate) fn is_news(entry: &ProtectedEntry, changed: Option<Timestamp>) -> bool {
    entry.details.changed.zip(changed).is_some_and(|(then, now)| then != now)
}

fn has_size_and_time(entry: &ProtectedEntry, found: &FoundEntry) -> bool {
    let has_size = match found.kind {
        FoundKind::File { size, .. } => entry.is_file() && size == entry.size(),
        _ => false,
    };
    has_size && found.modified == entry.modified
}
