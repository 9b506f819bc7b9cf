//! What a killed process was still writing where files have temporary names from the beginning: on
//! file systems that cannot make files without names, and where few files may be open. Headers are
//! written last, so only the names of such files tell what they were to be.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::place::lock::is_held;
use paritas_store::staging::{commit_over, final_name};

use super::Protection;
use super::files::files_in;
use crate::catalogue::FOLDER;
use crate::format::EXTENSION;
use crate::parity::ParityFile;
use crate::system::name_bytes;

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
    /// is none. In the root's own folder, the id in the name may be another one.
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
            && ParityFile::recognise(path).is_none()
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
