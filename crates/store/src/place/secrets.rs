//! Files of secrets: keys of a gateway, credentials of nodes.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::place::attributes::{Attributes, OTHERS, PERMISSIONS};
use crate::shown::shown;

/// Reads a text that holds secrets.
///
/// # Errors
/// If the file cannot be read, or if others than its owner may use it
/// ([`crate::error::ErrorKind::Parameters`]). Where the system has no permission bits, anybody may.
pub fn read_secrets(path: &Path) -> Result<String> {
    let failed = |error| Error::io("reading", path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mode = Attributes::of(&file.metadata().map_err(failed)?).mode;
    if let Some(mode) = mode.filter(|mode| mode & OTHERS != 0) {
        return Err(Error::parameters(format!(
            "others than the owner may use {0}, which holds secrets (mode {1:o}): `chmod 600 {0}`",
            shown(path),
            mode & PERMISSIONS
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}
