//! Who may read parity.
//!
//! Whoever reads parity and enough of the protected files can compute the rest of them. So parity
//! gives a permission only if all protected files give it, and if all folders that lead to a
//! protected file, but not to the parity, let the same people in. A mailbox whose files are open to
//! all, in a folder that only its owner may enter, gets parity for its owner alone. Parity belongs
//! to the owner and the group of the root. To a file of another group, the members of that group
//! are others.
//!
//! If the owner of the root may not read all protected files, parity stays with whoever makes it,
//! and nobody else may read it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use paritas_store::place::attributes::{Access, Attributes, Owner, for_group_of};
use paritas_store::place::refused::Refused;
use paritas_store::place::system::{mount_point, open_file};
use paritas_store::shown::shown;

use crate::catalogue::{Item, ItemKind};
use crate::find::{EntryKind, ProtectedEntry};
use crate::paths::path_in;
use crate::tree::above;

/// All permissions that parity may give.
const ALL: u32 = 0o666;
/// The permissions that the owner always has.
const OWNER: u32 = 0o600;
/// The distance between the bits of others and those of the group.
const GROUP_SHIFT: u32 = 3;
/// The bits of a folder's mode that let its group and others in.
const ENTER: u32 = 0o011;
/// The bits of others that let them read a file, and enter a folder.
const READ_BY_OTHERS: u32 = 0o004;
const ENTER_BY_OTHERS: u32 = 0o001;
/// The user who may do everything.
const ROOT_USER: u32 = 0;

/// A protected file or folder, as far as it says who may read parity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard<'p> {
    path: &'p [u8],
    /// A mode that gives nobody more than its mode and its access control list do together.
    mode: u32,
    owner: Option<Owner>,
    is_folder: bool,
}

impl<'p> Guard<'p> {
    /// Returns what an item says. Links say nothing.
    pub fn of_item(item: &'p Item) -> Option<Self> {
        let is_folder = match item.kind {
            ItemKind::Folder => true,
            ItemKind::File { .. } | ItemKind::Kept { .. } => false,
            ItemKind::Symlink { .. } | ItemKind::HardLink { .. } | ItemKind::Gap { .. } => {
                return None;
            }
        };
        let (mode, owner) = (item.details.narrowed(item.mode), item.details.owner);
        Some(Self { path: &item.path, mode, owner, is_folder })
    }

    /// Returns what an entry says. Links say nothing.
    pub fn of_entry(entry: &'p ProtectedEntry) -> Option<Self> {
        let is_folder = match entry.kind {
            EntryKind::Folder => true,
            EntryKind::File { .. } => false,
            EntryKind::Symlink { .. } | EntryKind::HardLink { .. } => return None,
        };
        let (mode, owner) = (entry.details.narrowed(entry.mode), entry.details.owner);
        Some(Self { path: &entry.path, mode, owner, is_folder })
    }

    /// Whether a user has a permission, which is given as the bit of others. Somebody else may be
    /// in the group, so group and others must both have it, unless the groups are the same.
    fn lets(&self, user: Option<Owner>, permission: u32) -> bool {
        let Some((user, owner)) = user.zip(self.owner) else { return true };
        let of_group = self.mode >> GROUP_SHIFT & permission != 0;
        let of_others = self.mode & permission != 0;
        let may_all = user.user == ROOT_USER || user.user == owner.user;
        may_all || of_group && (of_others || user.group == owner.group)
    }
}

/// Returns who may use parity in the folders `parity` that is made of protected files below `root`.
pub(crate) fn parity_access<'p>(
    root: &Path,
    parity: &[PathBuf],
    guards: impl Iterator<Item = Guard<'p>>,
) -> Access {
    let leads_to_parity = |folder: &Path| parity.iter().all(|place| place.starts_with(folder));
    let outer = root.ancestors().filter(|folder| !leads_to_parity(folder));
    let outer = outer.filter_map(|folder| {
        let Attributes { mode, owner, .. } = Attributes::of_path(folder).ok()?;
        Some(Guard { path: b"", mode: mode?, owner, is_folder: true })
    });
    let (mut folders, files): (Vec<Guard<'_>>, Vec<Guard<'_>>) =
        guards.partition(|guard| guard.is_folder);
    folders.retain(|folder| !leads_to_parity(&path_in(root, folder.path)));
    let guards = ParityGuards { owner: owner_of(root), outer: outer.collect(), folders, files };
    let (mode, owner) = match guards.open_to_owner() {
        true => (guards.mode(), guards.owner),
        false => (OWNER, None),
    };
    Access::of_shards(&Attributes { mode: Some(mode), modified: None, owner })
}

/// Everything that says who may read parity.
struct ParityGuards<'p> {
    /// The owner of the root.
    owner: Option<Owner>,
    /// The folders that lead to the root, but not to the parity.
    outer: Vec<Guard<'p>>,
    /// The protected folders that do not lead to the parity.
    folders: Vec<Guard<'p>>,
    files: Vec<Guard<'p>>,
}

impl ParityGuards<'_> {
    /// Whether the owner of the root may read all protected files.
    fn open_to_owner(&self) -> bool {
        let lets = |guard: &Guard<'_>, permission| guard.lets(self.owner, permission);
        let shut = self.folders.iter().filter(|folder| !lets(folder, ENTER_BY_OTHERS));
        let shut: HashSet<&[u8]> = shut.map(|folder| folder.path).collect();
        let is_open = |file: &Guard<'_>| {
            let is_reached = shut.is_empty() || above(file.path).all(|it| !shut.contains(it));
            is_reached && lets(file, READ_BY_OTHERS)
        };
        self.outer.iter().all(|folder| lets(folder, ENTER_BY_OTHERS))
            && self.files.iter().all(is_open)
    }

    /// Returns the mode for parity of the owner of the root, who may always read and write it.
    fn mode(&self) -> u32 {
        let for_group = |guard: &Guard<'_>| for_group_of(self.owner, guard.mode, guard.owner);
        let outer = self.outer.iter().map(|folder| behind(for_group(folder)));
        let mut mode = outer.fold(ALL, |all, folder| all & folder);
        // The folders that keep somebody out, until one of their files is met.
        let closed = self.folders.iter().map(|folder| (folder.path, behind(for_group(folder))));
        let mut closed: HashMap<&[u8], u32> = closed.filter(|(_, mode)| *mode != ALL).collect();
        for file in &self.files {
            mode &= for_group(file);
            if mode & !OWNER == 0 {
                break;
            }
            if !closed.is_empty() {
                mode = above(file.path).filter_map(|it| closed.remove(it)).fold(mode, |a, b| a & b);
            }
        }
        mode | OWNER
    }
}

/// Returns the permissions that a folder of this mode leaves to the files in it.
fn behind(folder: u32) -> u32 {
    OWNER | ((folder & ENTER) * 0o6)
}

/// Returns the owner of a root.
pub(crate) fn owner_of(root: &Path) -> Option<Owner> {
    fs::metadata(root).ok().and_then(|root| Attributes::of(&root).owner)
}

/// Takes from parity files that exist what `access` does not give. Returns what the system refuses,
/// in words.
pub(crate) fn narrow<'p>(files: impl Iterator<Item = &'p Path>, access: Access) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for path in files {
        let new: Vec<String> = match open_file(path).and_then(|file| access.settle(&file)) {
            Ok(Refused { modes, .. }) => {
                let mount = shown(&mount_point(path)).to_string();
                Refused { modes, ..Refused::default() }.warnings(&mount).collect()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => vec![format!("{} keeps its mode: {error}", shown(path))],
        };
        warnings.extend(new.into_iter().filter(|one| !warnings.contains(one)).collect::<Vec<_>>());
    }
    warnings
}
