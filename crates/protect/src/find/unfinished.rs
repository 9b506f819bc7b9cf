//! What a killed process has left beside the parity: files that it was still writing or had not
//! published, and published ones that it had not named yet.
//!
//! Files have temporary names from the beginning on file systems that cannot make files without
//! names, and where few files may be open. Headers are written last, so only the names of such
//! files tell what they were to be. Elsewhere files get temporary names when they are whole, and
//! their own names when all have temporary ones. As soon as one has its own name, all are
//! published, and those that have not are parity as any other.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::object::names::without_old;
use paritas_store::place::lock::{FolderLocks, is_held};
use paritas_store::place::system::rename_new;
use paritas_store::staging::{commit_over, directory_of, final_name, has_temporary_name};

use super::Protection;
use super::files::{files_in, parity_files_in};
use crate::catalogue::FOLDER;
use crate::format::{EXTENSION, Header};
use crate::parity::ParityFile;
use crate::paths::name_bytes;

/// Returns the name that a parity file should have, if it has a temporary one, or that of a file
/// which is about to be replaced.
fn own_name(path: &Path) -> Option<&OsStr> {
    let name = path.file_name()?;
    final_name(path).or_else(|| Some(without_old(name)).filter(|own| *own != name))
}

/// Number of digits of a protection's id in the names of its files.
const ID_DIGITS: usize = 8;

impl Protection {
    /// Returns the unfinished files beside the parity: the process that wrote them was killed. In
    /// the folder for parity in the root, files of other protections with this label count as well:
    /// a first protection that was never finished had an id of its own. If a process still holds
    /// any of the files, none is returned.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let all = self.parity_folders().into_iter().flat_map(|folder| {
            let is_own = folder == self.root.join(FOLDER);
            let mut files = files_in(&folder).unwrap_or_default();
            files.retain(|path| self.is_unfinished(path, is_own));
            files
        });
        let all: Vec<PathBuf> = all.collect();
        if all.iter().any(|path| is_held(path)) { Vec::new() } else { all }
    }

    /// Whether a file has the temporary name of a parity file or of a list of restored files, and
    /// is no published parity file. In the root's own folder, the id in the name may be another
    /// one.
    fn is_unfinished(&self, path: &Path, is_own: bool) -> bool {
        let rest = final_name(path).and_then(|name| {
            let rest = name_bytes(name).strip_prefix(&self.settings.label[..])?;
            rest.strip_prefix(b"-")?.split_at_checked(ID_DIGITS)
        });
        let Some((id, rest)) = rest else { return false };
        let is_id = match is_own {
            true => id.iter().all(u8::is_ascii_hexdigit),
            false => self.id.to_string().as_bytes().starts_with(id),
        };
        let end = format!(".{EXTENSION}");
        is_id
            && rest.starts_with(b".")
            && rest.ends_with(end.as_bytes())
            && ParityFile::recognise(path).is_none_or(|file| !self.is_published(&file.header))
    }

    /// Whether any file of a layer in the folders for parity has its own name.
    fn is_published(&self, layer: &Header) -> bool {
        let files = self.parity_folders().into_iter();
        let mut files = files.flat_map(|folder| parity_files_in(&folder).unwrap_or_default());
        files.any(|file| file.header.agrees(layer) && !has_temporary_name(&file.path))
    }

    /// Returns the parity files that a killed process has published and not named, or was about to
    /// replace. No process holds any of them.
    pub fn unnamed(&self) -> impl Iterator<Item = &Path> {
        let files = self.layers.iter().flat_map(|layer| layer.files.iter().flatten());
        let is_unnamed = |path: &&Path| own_name(path).is_some() && !is_held(path);
        files.map(|file| file.path.as_path()).filter(is_unnamed)
    }

    /// Names the parity files that have no names of their own. One whose name is taken, or whose
    /// folder cannot be written to, is parity under the temporary name.
    pub(crate) fn name_unnamed(&self) {
        let mut unnamed = self.unnamed().peekable();
        if unnamed.peek().is_none() {
            return;
        }
        let Ok(_locks) = FolderLocks::acquire(self.parity_files().map(directory_of)) else {
            return;
        };
        for path in unnamed {
            if let Some(name) = own_name(path) {
                let _ = rename_new(path, &path.with_file_name(name));
            }
        }
    }

    /// Removes the unfinished files, and returns them. The folders are locked meanwhile.
    ///
    /// # Errors
    /// If the system refuses ([`crate::ErrorKind::Io`]).
    pub(crate) fn remove_unfinished(&self) -> Result<Vec<PathBuf>> {
        let removed = RefCell::new(Vec::new());
        let find = || {
            removed.replace(self.unfinished());
            Ok::<_, Error>(removed.borrow().clone())
        };
        if !self.unfinished().is_empty() {
            commit_over(&self.parity_folders(), find, Vec::new(), false)?;
        }
        Ok(removed.into_inner())
    }
}
