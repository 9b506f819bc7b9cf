//! Who may read parity.
//!
//! Whoever reads parity and enough of the protected files can compute the rest of them. So parity
//! gives a permission only if all protected files give it, and if all folders that lead to a
//! protected file, but not to the parity, let the same people in. A mailbox whose files are open to
//! all, in a folder that only its owner may enter, gets parity for its owner alone. Parity belongs
//! to the owner and the group of the root. To a file of another group, the members of that group
//! are others.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use paritas_store::place::attributes::{Access, Attributes, Owner};
use paritas_store::place::refused::Refused;
use paritas_store::place::system::{mount_point, open_to_read};
use paritas_store::shown::shown;

use crate::catalogue::{Item, ItemKind};
use crate::find::{EntryKind, ProtectedEntry};
use crate::system::path_in;
use crate::tree::above;

/// All permissions that parity may give.
const ALL: u32 = 0o666;
/// The permissions that the owner always has.
const OWNER: u32 = 0o600;
/// The bits of a mode for everybody but the owner, and those for others.
const NOT_OWNER: u32 = 0o077;
const OTHERS: u32 = 0o007;
/// The distance between the bits of others and those of the group.
const GROUP_SHIFT: u32 = 3;
/// The bits of a folder's mode that let its group and others in.
const ENTER: u32 = 0o011;

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
}

/// Returns the mode for parity in the folders `parity` that is made of protected files below
/// `root`. The owner may always read and write.
pub(crate) fn parity_mode<'p>(
    root: &Path,
    parity: &[PathBuf],
    guards: impl Iterator<Item = Guard<'p>>,
) -> u32 {
    let leads_to_parity = |folder: &Path| parity.iter().all(|place| place.starts_with(folder));
    let owner = owner_of(root);
    let outer = root.ancestors().filter(|folder| !leads_to_parity(folder));
    let outer = outer.filter_map(|folder| {
        let Attributes { mode, owner: of, .. } = Attributes::of_path(folder).ok()?;
        Some(for_group_of(owner, mode?, of))
    });
    let mut mode = outer.fold(ALL, |all, folder| all & behind(folder));
    let guards = guards.map(|it| Guard { mode: for_group_of(owner, it.mode, it.owner), ..it });
    let (folders, files): (Vec<Guard<'_>>, Vec<Guard<'_>>) =
        guards.partition(|guard| guard.is_folder);
    // The folders that keep somebody out, until one of their files is met.
    let closed = folders.into_iter().filter(|folder| {
        behind(folder.mode) != ALL && !leads_to_parity(&path_in(root, folder.path))
    });
    let mut closed: HashMap<&[u8], u32> = closed.map(|it| (it.path, behind(it.mode))).collect();
    for file in files {
        mode &= file.mode;
        if mode & !OWNER == 0 {
            break;
        }
        if !closed.is_empty() {
            mode = above(file.path).filter_map(|it| closed.remove(it)).fold(mode, |a, b| a & b);
        }
    }
    mode | OWNER
}

/// Returns the mode that parity of the owner `parity` may have because of a file or folder of this
/// mode and owner. If their groups differ, nobody knows who is in both, so the group and others get
/// only what the file gives to both.
fn for_group_of(parity: Option<Owner>, mode: u32, owner: Option<Owner>) -> u32 {
    match parity.zip(owner) {
        Some((parity, owner)) if parity.group != owner.group => {
            let both = mode >> GROUP_SHIFT & mode & OTHERS;
            mode & !NOT_OWNER | both << GROUP_SHIFT | both
        }
        _ => mode,
    }
}

/// Returns the permissions that a folder of this mode leaves to the files in it.
fn behind(folder: u32) -> u32 {
    OWNER | ((folder & ENTER) * 0o6)
}

/// Returns who may use parity of this mode. It belongs to the owner of the root, also if somebody
/// else makes it.
pub(crate) fn parity_access(root: &Path, mode: u32) -> Access {
    Access::of_shards(&Attributes { mode: Some(mode), modified: None, owner: owner_of(root) })
}

fn owner_of(root: &Path) -> Option<Owner> {
    fs::metadata(root).ok().and_then(|root| Attributes::of(&root).owner)
}

/// Takes from parity files that exist what `access` does not give. Returns what the system refuses,
/// in words.
pub(crate) fn narrow<'p>(files: impl Iterator<Item = &'p Path>, access: Access) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for path in files {
        let new: Vec<String> = match open_to_read(path).and_then(|file| access.settle(&file)) {
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
