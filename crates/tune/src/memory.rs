//! Memory of findings that are worth keeping: one JSON file each, in the user's cache directory.
//!
//! Everything here can be measured again, so nothing is lost if a file is missing or cannot be
//! read. A file with unexpected contents counts as missing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A folder of remembered values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedFolder {
    folder: PathBuf,
}

impl RememberedFolder {
    /// Opens the folder `paritas` in the user's cache directory (`XDG_CACHE_HOME` or `~/.cache` on
    /// Linux); `None` if the user has no cache directory.
    pub fn of_user() -> Option<Self> {
        Some(Self::at(dirs::cache_dir()?.join("paritas")))
    }

    /// Opens a folder, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the path of the value `name`; `name` may contain folders.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }

    /// Returns the value `name`, if it exists and can be read.
    pub fn recall<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let text = fs::read_to_string(self.path(name)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Keeps `value` under `name`; returns its path.
    ///
    /// # Errors
    /// If the folder or the file cannot be written.
    pub fn remember(&self, name: &str, value: &impl Serialize) -> io::Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        // Written under another name first, so that no process reads a half-written file.
        let half = path.with_extension(format!("{}.tmp", std::process::id()));
        let text = serde_json::to_vec_pretty(value)?;
        let written = fs::write(&half, text).and_then(|()| fs::rename(&half, &path));
        if written.is_err() {
            // The disk may be full, so the half-written file is removed.
            let _ = fs::remove_file(&half);
        }
        written.map(|()| path)
    }

    /// Deletes the value `name`; returns whether it existed.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn forget(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.path(name)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let memory = RememberedFolder::at(folder.path().join("new"));
        assert_eq!(memory.recall::<Vec<u32>>("deep/list"), None);
        assert!(!memory.forget("deep/list").unwrap());
        let path = memory.remember("deep/list", &[1_u32, 2]).unwrap();
        assert_eq!(path, folder.path().join("new/deep/list.json"));
        assert_eq!(memory.recall("deep/list"), Some(vec![1_u32, 2]));
        memory.remember("deep/list", &[3_u32]).unwrap();
        assert_eq!(memory.recall("deep/list"), Some(vec![3_u32]));
        assert_eq!(fs::read_dir(folder.path().join("new/deep")).unwrap().count(), 1);
        assert!(memory.forget("deep/list").unwrap());
        assert_eq!(memory.recall::<Vec<u32>>("deep/list"), None);
    }

    #[test]
    fn what_does_not_fit_is_as_good_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let memory = RememberedFolder::at(folder.path());
        for text in ["", "{", "\"text\"", "[1, -2]"] {
            fs::write(memory.path("list"), text).unwrap();
            assert_eq!(memory.recall::<Vec<u32>>("list"), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(RememberedFolder::at(folder.path().join("file")).remember("list", &[1]).is_err());
        fs::create_dir(folder.path().join("list.json")).unwrap();
        assert!(RememberedFolder::at(folder.path()).remember("list", &[1]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing half-written stays");
    }
}
