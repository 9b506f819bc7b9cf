//! The change times (ctime) that files have got from repairs.
//!
//! The catalogue has the change time of each file from when it was protected. A repair cannot give
//! that back to a file, so decay in a restored file would look like a change of a program
//! (`times.rs`). Therefore a repair notes the new times in a file beside the parity:
//!
//! `LABEL-<8 hex of the protection's id>.restored.parity`
//!
//! It begins with the 16 bytes `Paritas restored`, and has a *mark* of 16 bytes for each file,
//! oldest first: the beginning of a BLAKE3 digest of the protection's id, the path, the digest of
//! the file and its change time. So a mark states something that stays true: when the file at this
//! path had this change time, its bytes were right. A mark that is damaged, or belongs to a file
//! that has changed since, equals none that is asked for. Without the file, the times of the
//! catalogue count alone.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use paritas_store::place::attributes::Timestamp;
use paritas_store::place::system::open_file;

use crate::find::{EntryKind, ProtectedEntry, Protection};
use crate::format::RESTORED;
use crate::paths::owned_name;

/// The context that separates these digests from all other uses of BLAKE3.
const CONTEXT: &str = "Paritas: the change time of a file that a repair restored";
/// The beginning of the file.
const BEGIN: Mark = *b"Paritas restored";
/// Largest number of marks that are kept. More take more memory than they are worth.
const MOST: usize = 1 << 20;

/// States that a file had the right bytes when it had a change time.
pub(crate) type Mark = [u8; 16];

/// Returns the mark of a protected file, if it has the change time `changed`. Only files have
/// marks.
pub(crate) fn mark(
    protection: &Protection,
    entry: &ProtectedEntry,
    changed: Timestamp,
) -> Option<Mark> {
    let EntryKind::File { size, digest, .. } = entry.kind else { return None };
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(protection.id().as_bytes()).update(&size.to_le_bytes()).update(&digest);
    hasher.update(&changed.seconds.to_le_bytes()).update(&changed.nanoseconds.to_le_bytes());
    hasher.update(&entry.path);
    hasher.finalize().as_bytes().first_chunk().copied()
}

/// Returns the paths of the files with marks, which need not exist.
pub(crate) fn places(protection: &Protection) -> Vec<PathBuf> {
    let id = &protection.id().to_string()[..8];
    let rest = format!("-{id}{RESTORED}");
    let name = owned_name([&protection.settings.label[..], rest.as_bytes()].concat());
    protection.parity_folders().into_iter().map(|folder| folder.join(&name)).collect()
}

/// Whether the file at a path is such a list. It lies beside parity, and leads to no protection.
pub fn is_list_of_restored(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.ends_with(RESTORED.as_bytes()) && read(path).is_ok_and(|marks| !marks.is_empty())
}

/// Returns all marks of a protection.
pub(crate) fn marks(protection: &Protection) -> impl Iterator<Item = Mark> {
    places(protection).into_iter().filter_map(|place| read(&place).ok()).flatten()
}

/// Reads the marks at a path. If nothing is there, there are none.
///
/// # Errors
/// If something else is there, or if the system refuses.
fn read(place: &Path) -> io::Result<Vec<Mark>> {
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => _ = found?,
    }
    let mut bytes = Vec::new();
    let most = (MOST + 1) * size_of::<Mark>();
    open_file(place)?.take(most as u64).read_to_end(&mut bytes)?;
    match bytes.as_chunks().0 {
        [BEGIN, marks @ ..] => Ok(marks.to_vec()),
        _ => Err(io::Error::other("another file has the name of the list")),
    }
}

/// Returns the bytes of the file at a path after more marks were added.
///
/// # Errors
/// As for [`read`].
pub(crate) fn with_more(place: &Path, more: &[Mark]) -> io::Result<Vec<u8>> {
    let (mut marks, new) = (read(place)?, HashSet::<&Mark>::from_iter(more));
    marks.retain(|mark| !new.contains(mark));
    marks.extend(more);
    let newest = &marks[marks.len().saturating_sub(MOST)..];
    Ok([&BEGIN[..], newest.as_flattened()].concat())
}
