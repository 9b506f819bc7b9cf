//! Names of files and their bytes, which systems treat differently.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Returns the bytes of a name.
#[cfg(unix)]
pub(crate) fn name_bytes(name: &OsStr) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(name)
}

/// Returns the name that has these bytes.
#[cfg(unix)]
pub(crate) fn owned_name(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// Returns the bytes of a name.
#[cfg(not(unix))]
pub(crate) fn name_bytes(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}

/// Returns the name that has these bytes, with U+FFFD for what is not UTF-8.
#[cfg(not(unix))]
pub(crate) fn owned_name(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Returns the path in `root` for a relative path with slashes, as a catalogue has it.
pub(crate) fn path_in(root: &Path, path: &[u8]) -> PathBuf {
    match path.is_empty() {
        true => root.to_owned(),
        false => root.join(owned_name(path.to_vec())),
    }
}

/// Returns a relative path as a catalogue writes it.
pub(crate) fn path_bytes(path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.iter().map(name_bytes).collect();
    parts.join(&b'/')
}
