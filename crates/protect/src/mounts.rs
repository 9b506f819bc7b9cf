//! Disks that were mounted in a root, and are not there now.
//!
//! The folder at which a disk is mounted is empty while it is not, or does not exist. What was
//! protected on the disk is not missing then: nothing is known of it. A repair would fill the wrong
//! disk, and an update would give up what can repair the right one.

use std::path::Path;

use paritas_store::place::system::is_mount;

use crate::find::{EntryKind, Protection};
use crate::system::path_in;
use crate::tree::{Skipped, Tree};

/// Returns the folders at which other file systems were mounted, and where nothing of what was
/// protected there is found now: nothing is mounted, or what is mounted is empty. Each has the
/// reason in words.
pub(crate) fn absent<'p>(protection: &'p Protection, tree: &Tree) -> Vec<(&'p [u8], &'static str)> {
    let mounts = protection.settings.mounts.iter().map(|mount| mount.as_slice());
    mounts.filter_map(|mount| Some((mount, absence(protection, tree, mount)?))).collect()
}

fn absence(protection: &Protection, tree: &Tree, mount: &[u8]) -> Option<&'static str> {
    let mut inner = protection.entries[protection.below(mount)].iter();
    let is_there = |path: &[u8]| tree.at(path).is_some();
    let has_content = inner.clone().any(|entry| entry.kind != EntryKind::Folder);
    if !has_content || inner.any(|entry| is_there(&entry.path)) {
        return None;
    }
    match is_mount(&path_in(&protection.root, mount)) {
        false => Some("its disk is not mounted"),
        true if !tree.holds_any(mount) => Some("the disk that is mounted there is empty"),
        true => None,
    }
}

/// Returns the paths of absent disks with the reasons.
pub(crate) fn as_skipped(root: &Path, absent: &[(&[u8], &str)]) -> Vec<Skipped> {
    let skipped = |(path, reason): &(&[u8], &str)| Skipped {
        path: path_in(root, path),
        reason: (*reason).to_owned(),
    };
    absent.iter().map(skipped).collect()
}
