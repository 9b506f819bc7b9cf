//! The parity files in a folder, recognised by their names or, if their names were changed, by
//! their content.
//!
//! A file system check, a phone or an old file system may have given parity files other names. To
//! recognise them by content, each file of a folder is opened, and its first and last bytes are
//! read. That is done for the top level of folders that are given or that a catalogue names, if
//! they are small or nothing there has the name of a parity file; never for whole trees.

use std::fs;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};

use crate::format::{EXTENSION, RESTORED};
use crate::parity::ParityFile;
use crate::paths::name_bytes;

/// Largest number of files in a folder for which all files are looked at, whatever their names are.
/// Opening that many takes some ten milliseconds, or seconds on a hard disk.
const FEW: usize = 1_000;

/// Returns the parity files in a folder.
pub(super) fn parity_files_in(folder: &Path) -> Result<Vec<ParityFile>> {
    let files = files_in(folder)?;
    let is_each = files.len() <= FEW || !files.iter().any(|path| is_named(path));
    let candidates = files.iter().filter(|path| is_each || is_named(path));
    Ok(candidates.filter_map(|path| ParityFile::recognise(path)).collect())
}

/// Whether a folder holds a parity file under the name of a parity file.
pub(super) fn holds_named(folder: &Path) -> Result<bool> {
    Ok(named_files_in(folder)?.iter().any(|path| ParityFile::recognise(path).is_some()))
}

/// Returns the files in a folder that have names of parity files.
pub(super) fn named_files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_in(folder)?;
    files.retain(|path| is_named(path));
    Ok(files)
}

/// Whether a file has the name of a parity file, in letters of either case.
fn is_named(path: &Path) -> bool {
    let mark = format!(".{EXTENSION}");
    let name = path.file_name().map(name_bytes).unwrap_or_default();
    let has_mark = |part: &[u8]| part.eq_ignore_ascii_case(mark.as_bytes());
    !name.ends_with(RESTORED.as_bytes()) && name.windows(mark.len()).any(has_mark)
}

/// Returns the paths of the files in a folder, in order. Pipes and devices are left out, because
/// opening one may have side effects.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error| Error::io("reading the folder", folder, &error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            paths.push(folder.join(entry.file_name()));
        }
    }
    paths.sort();
    Ok(paths)
}
