//! Disks that were mounted in a root, and are not mounted now.
//!
//! While a disk is not mounted, the folder at which it is mounted is empty or does not exist. The
//! files that were protected on the disk are not missing then; their state is unknown. A repair
//! would fill the wrong disk, and an update would give up the parity that can repair the right one.

use std::path::Path;

use paritas_store::place::system::is_mount;

use crate::find::{EntryKind, ProtectedEntry, Protection};
use crate::system::path_in;
use crate::tree::{FoundKind, Skipped, Tree};

/// The reason why a disk shows no protected file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// Nothing is mounted where the disk was.
    NotMounted,
    /// An empty disk is mounted there.
    Empty,
}

impl Absence {
    /// Returns the words for it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotMounted => "its disk is not mounted",
            Self::Empty => "the disk that is mounted there is empty",
        }
    }
}

/// Returns the folders at which other file systems were mounted, if nothing that was protected
/// there is found now.
pub(crate) fn absent<'p>(protection: &'p Protection, tree: &Tree) -> Vec<(&'p [u8], Absence)> {
    let mounts = protection.settings.mounts.iter().map(|mount| mount.as_slice());
    mounts.filter_map(|mount| Some((mount, absence(protection, tree, mount)?))).collect()
}

fn absence(protection: &Protection, tree: &Tree, mount: &[u8]) -> Option<Absence> {
    let mut inner = protection.entries[protection.below(mount)].iter();
    let has_content = inner.clone().any(|entry| entry.kind != EntryKind::Folder);
    if !has_content || inner.any(|entry| is_there(protection, tree, entry)) {
        return None;
    }
    match is_mount(&path_in(&protection.root, mount)) {
        false => Some(Absence::NotMounted),
        true if !tree.holds_any(mount) => Some(Absence::Empty),
        true => None,
    }
}

/// Whether something is at the path of an entry that was probably protected there: it has the size
/// and the time of the file, or the target of the link. A program that did not find its folders and
/// files may have made others of the same names.
fn is_there(protection: &Protection, tree: &Tree, entry: &ProtectedEntry) -> bool {
    let Some(found) = tree.at(&entry.path) else { return false };
    let size_of =
        |target: &[u8]| protection.entry_at(target).map(|number| protection.entries[number].size());
    let has_time = found.modified == entry.modified;
    match (&entry.kind, &found.kind) {
        (EntryKind::File { size, .. }, FoundKind::File { size: now, .. }) => {
            has_time && size == now
        }
        (EntryKind::HardLink { target }, FoundKind::File { size: now, .. }) => {
            has_time && size_of(target) == Some(*now)
        }
        (EntryKind::Symlink { target }, FoundKind::Symlink { target: now }) => target == now,
        _ => false,
    }
}

/// Returns the paths of absent disks with the reasons.
pub(crate) fn as_skipped(root: &Path, absent: &[(&[u8], Absence)]) -> Vec<Skipped> {
    let skipped = |(path, absence): &(&[u8], Absence)| Skipped {
        path: path_in(root, path),
        reason: absence.reason().to_owned(),
    };
    absent.iter().map(skipped).collect()
}
