//! What a scan finds: objects, files that cannot be used, and files that killed processes left
//! behind.

use std::path::{Path, PathBuf};

use paritas_store::object::names::parse;

use crate::folders::GivenFolder;
use crate::leftovers::Leftover;
use crate::object::Object;

/// The objects and other files that were found at some paths.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Inventory {
    /// The objects, in the order in which their first shards were found.
    pub objects: Vec<Object>,
    /// The files that are not shards, or cannot be used.
    pub ignored: Vec<Ignored>,
    /// Files that killed processes left behind.
    pub leftovers: Vec<Leftover>,
}

/// A path that contributes no shard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ignored {
    /// The path.
    pub path: PathBuf,
    /// The reason, in the form "is not a shard".
    pub reason: String,
    /// Whether the path itself was given to [`crate::scan`], not only a directory that contains it.
    pub named: bool,
    /// Whether it could not be opened, so its content is unknown. It may be a shard of any object
    /// that was found; [`crate::verify`] takes this into account.
    pub unreadable: bool,
    /// Whether it is a shard that this version cannot read: it has a later version of the format,
    /// or a code that this version does not know, or its headers are whole but state something
    /// impossible.
    pub unknown: bool,
}

impl Inventory {
    /// Adds each of `folders` that does not exist yet, as if it were empty and had been given to
    /// the scan. It is made when a shard is to be written there. A path with the name of a shard
    /// file is that of a lost shard, and is left out.
    pub fn offer(&mut self, folders: &[PathBuf]) {
        let is_shard = |path: &Path| path.file_name().is_some_and(|name| parse(name).is_some());
        let absent =
            folders.iter().filter(|path| path.symlink_metadata().is_err() && !is_shard(path));
        let absent: Vec<GivenFolder> = absent.map(|folder| GivenFolder::absent(folder)).collect();
        if absent.is_empty() {
            return;
        }
        for object in &mut self.objects {
            object.given = object.given.iter().chain(&absent).cloned().collect();
        }
    }
}
