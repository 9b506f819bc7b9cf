//! What an update cannot look at now, and therefore does not give up.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use super::Changes;
use crate::catalogue::{Item, ItemKind};
use crate::find::{EntryKind, Protection};
use crate::mounts;
use crate::paths::path_in;
use crate::tree::{Skipped, Tree, above};

/// Protected things that cannot be looked at now. They may still exist, so they are not given up.
pub(super) struct Held {
    /// Where it is, and why it cannot be looked at.
    pub places: Vec<Skipped>,
    /// The folders at which disks belong, in order: mounted ones, and those that are not mounted.
    pub mounts: Vec<Vec<u8>>,
    /// The numbers of the entries at these places, and of the folders that lead to them.
    pub entries: BTreeSet<usize>,
    /// Folders for parity whose disks may not be mounted. Their parity files are missing.
    parity: Vec<PathBuf>,
}

impl Held {
    /// Looks for entries that cannot be looked at. `gives_up` says that the user has accepted the
    /// loss of disks that are not mounted, with the protected files and the parity on them.
    pub fn new(protection: &Protection, tree: &Tree, gives_up: bool) -> Self {
        let absent = if gives_up { Vec::new() } else { mounts::absent(protection, tree) };
        let mounts = mounts::belonging(tree, &absent);
        let parity = if gives_up { Vec::new() } else { protection.absent_parity() };
        let mut held = Self { places: Vec::new(), mounts, entries: BTreeSet::new(), parity };
        for place in mounts::as_skipped(&protection.root, &absent) {
            held.add(protection, place);
        }
        for skipped in tree.skipped.iter().filter(|skipped| !skipped.is_special()) {
            let path = protection.relative(&skipped.path);
            if path.is_some_and(|path| protection.needs(&path)) {
                held.add(protection, skipped.clone());
            }
        }
        held
    }

    fn add(&mut self, protection: &Protection, place: Skipped) {
        let path = protection.relative(&place.path).unwrap_or_default();
        let way = above(&path).chain([&path[..]]);
        self.entries.extend(way.filter_map(|path| protection.entry_at(path)));
        self.entries.extend(protection.below(&path));
        self.places.push(place);
    }

    /// Returns the folders for the parity of a new layer.
    pub fn folders(&self, protection: &Protection) -> Vec<PathBuf> {
        let mut folders = protection.parity_folders();
        folders.retain(|folder| !self.parity.contains(folder));
        folders
    }

    pub fn is_nothing(&self) -> bool {
        self.places.is_empty() && self.parity.is_empty()
    }

    /// Refuses to make everything anew without what cannot be read. New parity would also make the
    /// parity worthless that is on a disk which is not mounted, and forget its folder.
    pub fn refuse_anew(&self) -> Result<()> {
        match self.places.first() {
            None => self.parity.first().map_or(Ok(()), |folder| Err(absent_parity(folder))),
            Some(Skipped { path, reason }) => Err(Error::failed(format!(
                "{} cannot be read ({reason}), so its parity cannot be made anew; make it \
                 readable first, or mount its disk",
                shown(path)
            ))),
        }
    }
}

/// Returns the error for a folder without its parity while all parity is to be made anew.
fn absent_parity(folder: &Path) -> Error {
    let what = match folder.is_dir() {
        true => "has none of it now",
        false => "does not exist now",
    };
    Error::failed(format!(
        "the folder {} for parity {what}, and what was put there would become worthless if all \
         parity were made anew; mount its disk, or repair first, which writes the missing \
         parity; if it is gone for good, update with `accept_changes`",
        shown(folder)
    ))
    .naming(&["accept_changes"])
}

fn no_longer_a_folder(path: &Path) -> Error {
    let message = format!(
        "{} was a folder on a disk that is not mounted, and is no longer a folder; put the folder back, or, \
         if what was in it is gone, update with `accept_changes`",
        shown(path)
    );
    Error::failed(message).naming(&["accept_changes"])
}

impl Changes<'_> {
    /// Keeps the protected entries that cannot be looked at (`held`), as they are protected.
    /// Entries that were found, under their own name or another, are kept already.
    ///
    /// # Errors
    /// If a folder above such an entry is no longer a folder ([`ErrorKind::Io`]).
    pub(super) fn hold(&mut self, protection: &Protection, held: &Held) -> Result<()> {
        if held.entries.is_empty() {
            return Ok(());
        }
        self.leave_impostors(protection, held);
        let is_folder = |item: &Item| matches!(item.kind, ItemKind::Folder);
        let there: HashMap<Vec<u8>, bool> =
            self.items.iter().map(|item| (item.path.clone(), is_folder(item))).collect();
        for &number in &held.entries {
            let entry = &protection.entries[number];
            if let Some(above) = above(&entry.path).find(|above| there.get(*above) == Some(&false))
            {
                return Err(no_longer_a_folder(&path_in(&protection.root, above)));
            }
            if there.contains_key(&entry.path) || self.is_alive(entry) {
                continue;
            }
            let kind = match entry.kind.clone() {
                EntryKind::Folder => ItemKind::Folder,
                EntryKind::Symlink { target } => ItemKind::Symlink { target },
                EntryKind::HardLink { target } => ItemKind::HardLink { target },
                EntryKind::File { layer, piece, .. } => {
                    self.kept += 1;
                    self.alive.insert((layer, piece));
                    ItemKind::Kept { layer: layer as u32, piece: piece as u32 }
                }
            };
            self.items.push(entry.with_kind(kind));
        }
        let mut gone = std::mem::take(&mut self.gone);
        gone.retain(|&number| !self.is_alive(&protection.entries[number]));
        self.gone = gone;
        self.items.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        self.leave_links_without_files();
        Ok(())
    }

    /// Leaves out the hard links to what is not kept.
    fn leave_links_without_files(&mut self) {
        let is_file =
            |item: &&Item| matches!(item.kind, ItemKind::File { .. } | ItemKind::Kept { .. });
        let files: HashSet<Vec<u8>> =
            self.items.iter().filter(is_file).map(|item| item.path.clone()).collect();
        self.items.retain(|item| match &item.kind {
            ItemKind::HardLink { target } => files.contains(target),
            _ => true,
        });
    }

    /// Leaves out the files that have the names of held ones and other bytes: a program has made
    /// them while a disk is not mounted, and they are hidden when it is.
    fn leave_impostors(&mut self, protection: &Protection, held: &Held) {
        let is_held = |number: usize| {
            let is_folder = protection.entries[number].kind == EntryKind::Folder;
            !is_folder && held.entries.contains(&number)
        };
        let is_impostor = |item: &&Item| {
            let is_kept = matches!(item.kind, ItemKind::Kept { .. });
            !is_kept && protection.entry_at(&item.path).is_some_and(is_held)
        };
        let impostors: HashSet<Vec<u8>> =
            self.items.iter().filter(is_impostor).map(|item| item.path.clone()).collect();
        // A folder may have taken the place of a file.
        let is_in_one =
            |path: &[u8]| above(path).chain([path]).any(|path| impostors.contains(path));
        self.items.retain(|item| !is_in_one(&item.path));
        self.added.retain(|path| !is_in_one(path));
        self.changed.retain(|&number| !is_held(number));
    }
}
