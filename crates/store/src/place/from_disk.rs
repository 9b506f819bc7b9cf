//! Reading from the disk what the system may still have in memory. The system caches what was
//! written or read lately, and a read from the cache tells nothing about the disk.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::place::system::{drop_cached, file_system, open_to_read, write_back};

/// Has the system drop its cached pages of these files, so that the next read comes from the disk.
/// Pages that are not written yet are written first. Pages that a process has mapped stay in
/// memory. Files that cannot be opened are skipped: their reader will get the error.
///
/// # Errors
/// If this is not Linux ([`crate::error::ErrorKind::Parameters`]), or if the system cannot write
/// what it has in memory.
pub fn forget_cached<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    // Only pages that are written can be dropped.
    let mut written = BTreeSet::new();
    for path in paths {
        let Ok(file) = open_to_read(path) else { continue };
        let mut forget = || {
            if written.insert(file_system(&file)?) {
                write_back(&file)?;
            }
            drop_cached(&file)
        };
        forget().map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => {
                Error::parameters("only Linux can be told to read from the disk")
            }
            _ => Error::io("having the system read from the disk", path, &error),
        })?;
    }
    Ok(())
}
