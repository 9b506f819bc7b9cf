//! Paths as a catalogue has them: relative to a root, with slashes, as bytes.

use std::path::{Path, PathBuf};

pub(crate) use paritas_store::place::system::{name_bytes, name_of, owned_name};

/// Returns the path in `root` for a relative path with slashes, as a catalogue has it.
pub(crate) fn path_in(root: &Path, path: &[u8]) -> PathBuf {
    match path.is_empty() {
        true => root.to_owned(),
        false => root.join(name_of(path)),
    }
}

/// Returns the bytes of an absolute path.
pub(crate) fn whole_bytes(path: &Path) -> Vec<u8> {
    name_bytes(path.as_os_str()).to_vec()
}

/// Returns a relative path as a catalogue writes it.
pub(crate) fn path_bytes(path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.iter().map(name_bytes).collect();
    parts.join(&b'/')
}
