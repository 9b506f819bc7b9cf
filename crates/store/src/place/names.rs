//! Names that file systems refuse. FAT, exFAT, NTFS and Windows shares do not take some characters
//! that Linux takes everywhere else, nor dots and blanks at the end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::place::system::name_bytes;

/// Returns what a folder's file system refuses in a name, each as it is shown: `:`, or "a dot at the
/// end". Tries each out by a file in the folder, which is removed again. Returns nothing if the
/// folder cannot be written to.
pub fn refused_in(folder: &Path, name: &OsStr) -> Vec<String> {
    let Some(name) = name.to_str() else { return Vec::new() };
    let takes = |part: &str| is_taken(folder, part);
    if !takes("x") {
        return Vec::new();
    }
    let mut tried = Vec::new();
    for character in name.chars().filter(|character| !character.is_alphanumeric()) {
        if !tried.contains(&character) {
            tried.push(character);
        }
    }
    let refused = tried.into_iter().filter(|character| !takes(&format!("x{character}x")));
    let mut refused: Vec<String> =
        refused.map(|character| format!("`{}`", character.escape_debug())).collect();
    let ends = [('.', "a dot at the end"), (' ', "a blank at the end")];
    let is_end = |&&(end, _): &&(char, _)| name.ends_with(end) && !takes(&format!("x{end}"));
    refused.extend(ends.iter().filter(is_end).map(|(_, shown)| (*shown).to_owned()));
    refused
}

/// Whether a folder takes a file with this at the end of its name, and lists it so.
fn is_taken(folder: &Path, end: &str) -> bool {
    let name = format!(".paritas-{:08x}-{end}", std::process::id());
    let path = folder.join(&name);
    match File::options().write(true).create_new(true).open(&path) {
        Ok(_) => {
            let is_listed = fs::read_dir(folder).is_ok_and(|entries| {
                let mut names = entries.flatten().map(|entry| entry.file_name());
                names.any(|found| name_bytes(&found) == name.as_bytes())
            });
            let _ = fs::remove_file(&path);
            is_listed
        }
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_refused_here_and_nothing_left() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(refused_in(folder.path(), "a: b?*. ".as_ref()), Vec::<String>::new());
        assert_eq!(refused_in(folder.path(), "a\0b".as_ref()), ["`\\0`"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let absent = folder.path().join("absent");
        assert_eq!(refused_in(&absent, "a:b".as_ref()), Vec::<String>::new());
    }
}
