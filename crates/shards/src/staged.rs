//! Files that are written without names, and get their names together. It serves programs that
//! write sets of files beside other people's files, as encoding does.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use crate::names;
use crate::place::{NewFile, Pending, Replace, commit_over};
use paritas_store::error::{Error, Result};
use paritas_store::place::attributes::{Access, Attributes};

/// A file that is being written. If it is dropped before [`publish`] has named it, it is removed.
/// On a file system that can make files without names, even a killed process leaves nothing of it
/// behind.
#[derive(Debug)]
pub struct StagedFile(Pending);

impl StagedFile {
    /// Begins files, one for each of `targets`. `attributes` are those of the source of the files:
    /// whoever may not read the source may not read them either. A file that already has the name
    /// is replaced if `replace` is set.
    ///
    /// # Errors
    /// If a file cannot be created ([`crate::ErrorKind::Io`]).
    pub fn create_all(
        targets: impl IntoIterator<Item = PathBuf>,
        attributes: &Attributes,
        replace: bool,
    ) -> Result<Vec<Self>> {
        let access = Access::of_shards(attributes);
        let replace = if replace { Replace::Always } else { Replace::Never };
        let new = |target| NewFile { target, replace: replace.clone(), access };
        let files = Pending::create_all(targets.into_iter().map(new).collect(), 0)?;
        Ok(files.into_iter().map(Self).collect())
    }

    /// Writes slices at the position `offset`, one after the other.
    ///
    /// # Errors
    /// If the system refuses ([`crate::ErrorKind::Io`]).
    pub fn write_at(&self, slices: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        self.0.write_at(slices, offset)
    }
}

/// Whether a file has a temporary name, because it is still being written, or because the process
/// that wrote it was killed.
pub fn has_temporary_name(path: &Path) -> bool {
    path.file_name().is_some_and(names::is_temporary)
}

/// Gives all files their names, and then removes the files that `old` returns. `old` is called
/// while the `folders` are locked, so that no other process publishes files there meanwhile. On an
/// error everything is as before, except for files that had already been replaced. A file that
/// `old` returns and that cannot be removed is no error; it is left under another name. Returns a
/// warning of each kind of attribute that a file system refused to keep.
///
/// # Errors
/// If the system refuses ([`crate::ErrorKind::Io`]), another process has put a file in the way
/// ([`crate::ErrorKind::Busy`]), or `old` returns an error.
pub fn publish<E: From<Error>>(
    files: Vec<StagedFile>,
    folders: &[PathBuf],
    old: impl FnOnce() -> std::result::Result<Vec<PathBuf>, E>,
    sync: bool,
) -> std::result::Result<Vec<String>, E> {
    let files = files.into_iter().map(|file| file.0).collect();
    commit_over(folders, old, files, sync).map(|committed| committed.warnings())
}
