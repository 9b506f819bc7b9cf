//! Labels: the beginnings of the names of parity files.

use std::path::Path;

use paritas_store::place::names::is_foreign;
use paritas_store::shown::shown;

/// Largest number of bytes of a label.
pub(crate) const MOST: usize = 100;

/// Whether names that begin with these bytes stay in the folder for parity and are not hidden. A
/// catalogue may be forged, so a label that was read is checked, too.
pub(crate) fn is_safe(label: &[u8]) -> bool {
    // On Windows these characters have a meaning in paths, and could lead out of the folder.
    let is_foreign = cfg!(windows) && label.iter().any(|byte| matches!(byte, b'\\' | b':'));
    let is_path = label.iter().any(|byte| matches!(byte, b'/' | 0));
    !is_foreign && !is_path && !label.starts_with(b".")
}

/// Returns the label after a file or folder: its name, without dots in front. Characters that some
/// file systems refuse become `_`, because the parity may be put or copied to any disk. If nothing
/// is left of the name, it is `root`.
pub(crate) fn after(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| shown(name).to_string());
    match portable(&name[..name.floor_char_boundary(MOST)]).trim_start_matches('.') {
        "" => "root".to_owned(),
        label => label.to_owned(),
    }
}

/// Returns a label with `_` in place of the characters that some file systems refuse.
pub(crate) fn portable(label: &str) -> String {
    label.chars().map(|character| if is_foreign(character) { '_' } else { character }).collect()
}
