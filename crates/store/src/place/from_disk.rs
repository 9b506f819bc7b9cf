//! Reading from the disk what the system may still have in memory. The system keeps what was
//! written or read lately, and reading it from there says nothing about the disk.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::place::system::{drop_cached, file_system, open_to_read, write_back};

/// Has the system drop what it keeps of these files in memory, so that they are next read from
/// where they are stored. What is not written yet is written before that. What a process has mapped
/// stays in memory. Files that cannot be opened are left: whoever reads them finds out.
///
/// # Errors
/// If this is not Linux ([`crate::error::ErrorKind::Parameters`]), or if the system cannot write
/// what it has in memory.
pub fn forget_cached<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    // Only what is written can be dropped.
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
