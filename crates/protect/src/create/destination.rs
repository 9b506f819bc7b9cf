//! Where new parity goes: its folders and its label, and existing files that are in the way.

use std::fs;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::place::attributes::hand_over;
use paritas_store::place::folder::Folder;
use paritas_store::place::system::open_folder;
use paritas_store::shown::shown;

use super::{LayerOrder, ProtectJob};
use crate::access::owner_of;
use crate::catalogue::{FOLDER, MOST_FOLDERS};
use crate::find::{Protection, expect_read, folder_in, in_folders};
use crate::label;
use crate::paths::{path_bytes, path_in};
use crate::tree::{Skipped, Tree};

/// Refuses paths that were given and cannot be protected.
pub(super) fn refuse_skipped(root: &Path, starts: &[Vec<u8>], tree: &Tree) -> Result<()> {
    let given: Vec<PathBuf> = starts.iter().map(|start| path_in(root, start)).collect();
    match tree.skipped.iter().find(|skipped| given.contains(&skipped.path)) {
        Some(Skipped { path, reason }) => {
            Err(Error::parameters(format!("{} cannot be protected: {reason}", shown(path))))
        }
        None => Ok(()),
    }
}

/// Refuses folders for parity in which an update would treat the parity files as new files.
pub(crate) fn refuse_inside(
    root: &Path,
    starts: &[&[u8]],
    tree: &Tree,
    folders: &[PathBuf],
) -> Result<()> {
    let is_inside = |folder: &&PathBuf| {
        folder.strip_prefix(root).is_ok_and(|path| tree.enters(starts, &path_bytes(path)))
    };
    match folders.iter().find(is_inside) {
        Some(folder) => Err(Error::parameters(format!(
            "the parity in {} would be protected itself, because the folder is among the protected \
             ones; choose another folder, or leave this one out by `excludes`",
            shown(folder)
        ))
        .naming(&["excludes"])),
        None => Ok(()),
    }
}

/// Returns the label of a job: the one it states, or the name of the only file or of the root.
pub(super) fn label(job: &ProtectJob, root: &Path, starts: &[Vec<u8>]) -> Result<String> {
    let only = match starts {
        [only] if !only.is_empty() => path_in(root, only),
        _ => root.to_owned(),
    };
    let label = job.label.clone().unwrap_or_else(|| label::after(&only));
    let has_length = (1..=label::MOST).contains(&label.len());
    match has_length && label::is_safe(label.as_bytes()) {
        true => Ok(label),
        false => Err(Error::parameters(format!(
            "{label:?} cannot be a label; it must have 1 to {} bytes, no slash, and must not begin \
             with a dot",
            label::MOST
        ))),
    }
}

pub(super) fn parity_folders(job: &ProtectJob, root: &Path) -> Result<Vec<PathBuf>> {
    let inner = folder_in(root)?;
    if job.parity_dirs.is_empty() {
        return Ok(vec![inner]);
    }
    if job.parity_dirs.len() > MOST_FOLDERS {
        return Err(Error::parameters(format!(
            "{} folders for parity were given; at most {MOST_FOLDERS} are possible",
            job.parity_dirs.len()
        )));
    }
    let whole = |folder: &PathBuf| match fs::canonicalize(folder) {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(path) => Err(Error::parameters(format!("{} is not a folder", shown(&path)))),
        Err(error) => Err(Error::io("opening the folder for parity", folder, &error)),
    };
    let folders = job.parity_dirs.iter().map(whole).collect::<Result<Vec<PathBuf>>>()?;
    match folders.iter().enumerate().find(|&(at, folder)| folders[..at].contains(folder)) {
        None => Ok(folders),
        Some((at, _)) => Err(Error::parameters(format!(
            "{}: this folder is given twice in `parity_dirs`; each should be on a disk of its own",
            shown(&job.parity_dirs[at])
        ))
        .naming(&["parity_dirs"])),
    }
}

/// Makes the folder for parity if it is `.paritas` in the root. Any other folder must exist.
pub(super) fn make_folder(folder: &Path, order: &LayerOrder) -> Result<()> {
    if *folder != order.root.join(FOLDER) {
        return Ok(());
    }
    match fs::create_dir(folder) {
        Ok(()) => {
            give_to_owner(&order.root, folder);
            // The names of the parity files are useful only if the name of their folder is durable,
            // too.
            let sync = || Folder::open(&order.root).and_then(|root| root.sync());
            let synced = if order.sync { sync() } else { Ok(()) };
            synced.map_err(|error| Error::io("syncing", &order.root, &error))
        }
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::io("making", folder, &error))
        }
        _ => Ok(()),
    }
}

/// Gives a new folder to the owner of the root, if this process may give it away.
fn give_to_owner(root: &Path, folder: &Path) {
    if let (Some(owner), Ok(folder)) = (owner_of(root), open_folder(folder)) {
        hand_over(&folder, owner);
    }
}

/// Returns the protections of this root and label, if they may be replaced. If the job asks for no
/// label, and no protection there has the label `label`, these count instead: protections whose
/// label becomes `label` once the characters that some file systems refuse are replaced, because
/// older programs did not replace them; and the only protection, if it protects the same paths,
/// because then the root has got another name since.
pub(super) fn protected_already(
    (root, starts): (&Path, &[Vec<u8>]),
    folders: &[PathBuf],
    job: &ProtectJob,
    label: &str,
) -> Result<Vec<Protection>> {
    let mut old = at_root(root, folders)?;
    if old.is_empty() {
        expect_read(folders, label)?;
    }
    let is_older = job.label.is_none() && old.iter().all(|one| one.label() != label);
    let is_renamed = is_older && old.len() == 1 && old[0].starts().eq(starts);
    old.retain(|one| match is_older {
        true => is_renamed || label::portable(&one.label()) == label,
        false => one.label() == label,
    });
    match old.first() {
        Some(first) if !job.force => Err(Error::exists(format!(
            "{} is protected already, under the label {} (id {}); `update` updates that \
             protection, `force` replaces it, and `label` makes another one beside it",
            shown(root),
            shown(&first.label()),
            first.id()
        ))
        .naming(&["update", "force", "label"])),
        _ => Ok(old),
    }
}

/// Returns the protections of a root with parity in some folders, in the root, or in folders that
/// the parity there names.
pub(super) fn at_root(root: &Path, folders: &[PathBuf]) -> Result<Vec<Protection>> {
    let mut folders = folders.to_vec();
    folders.push(root.join(FOLDER));
    let mut found = in_folders(&folders)?;
    found.retain(|one| one.root() == root);
    Ok(found)
}
