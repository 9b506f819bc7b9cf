//! Disks that were mounted in a root and are not mounted now, and disks that hide what was
//! protected.
//!
//! While a disk is not mounted, the folder at which it is mounted is empty or does not exist. The
//! files that were protected on the disk are not missing then; their state is unknown. A repair
//! would fill the wrong disk, and an update would give up the parity that can repair the right one.
//! The same is true of files in a folder at which another disk is mounted now, if the protection
//! stays on one file system.

use std::collections::BTreeSet;
use std::path::Path;

use paritas_store::place::system::is_mount;

use crate::find::{EntryKind, ProtectedEntry, Protection};
use crate::paths::path_in;
use crate::tree::{FoundKind, Skipped, Tree, is_below};

/// The reason why a disk shows no protected file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// Nothing is mounted where the disk was.
    NotMounted,
    /// An empty disk is mounted there.
    Empty,
    /// A disk is mounted there that the protection does not look into.
    Hidden,
}

impl Absence {
    /// Returns the words for it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotMounted => "its disk is not mounted",
            Self::Empty => "the disk that is mounted there is empty",
            Self::Hidden => "another disk is mounted there, over the protected files",
        }
    }
}

/// Returns the folders at which other file systems were mounted, or are mounted and not looked
/// into, if nothing that was protected there is found now.
pub(crate) fn absent<'p>(protection: &'p Protection, tree: &'p Tree) -> Vec<(&'p [u8], Absence)> {
    let known = protection.settings.mounts.iter().map(|mount| mount.as_slice());
    let hiding = tree.mounts.iter().map(|mount| &mount[..]);
    let hiding = hiding.filter(|mount| hides(protection, tree, mount));
    let mounts: BTreeSet<&[u8]> = known.chain(hiding).collect();
    let absent = |mount| Some((mount, absence(protection, tree, mount)?));
    mounts.into_iter().filter_map(absent).collect()
}

fn absence(protection: &Protection, tree: &Tree, mount: &[u8]) -> Option<Absence> {
    let mut inner = protection.entries[protection.below(mount)].iter();
    let has_content = inner.clone().any(|entry| entry.kind != EntryKind::Folder);
    if !has_content || inner.any(|entry| is_there(protection, tree, entry)) {
        return None;
    }
    match is_mount(&path_in(&protection.root, mount)) {
        _ if hides(protection, tree, mount) => Some(Absence::Hidden),
        false => Some(Absence::NotMounted),
        true if !tree.holds_any(mount) => Some(Absence::Empty),
        true => None,
    }
}

/// Whether a disk is mounted at a folder that is not looked into, because the protection stays on
/// one file system. Given paths are looked into, and so are the folders above them.
fn hides(protection: &Protection, tree: &Tree, mount: &[u8]) -> bool {
    protection.settings.one_file_system
        && tree.mounts.iter().any(|it| it == mount)
        && !protection.starts().any(|start| is_below(start, mount))
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

/// Returns, in order, the folders at which disks belong: those that are mounted, and those that are
/// not mounted now. A disk that hides protected files does not belong there.
pub(crate) fn belonging(tree: &Tree, absent: &[(&[u8], Absence)]) -> Vec<Vec<u8>> {
    let mut all: BTreeSet<&[u8]> = tree.mounts.iter().map(|mount| &mount[..]).collect();
    for &(mount, absence) in absent {
        match absence {
            Absence::Hidden => all.remove(mount),
            Absence::NotMounted | Absence::Empty => all.insert(mount),
        };
    }
    all.into_iter().map(<[u8]>::to_vec).collect()
}

/// Returns the paths of absent disks with the reasons.
pub(crate) fn as_skipped(root: &Path, absent: &[(&[u8], Absence)]) -> Vec<Skipped> {
    let skipped = |(path, absence): &(&[u8], Absence)| Skipped {
        path: path_in(root, path),
        reason: absence.reason().to_owned(),
    };
    absent.iter().map(skipped).collect()
}
