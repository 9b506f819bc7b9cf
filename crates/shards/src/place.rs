//! Where shard files go: what may exist under their names already, and the room that they need.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::aside::move_aside;
use crate::recognise::{NoShard, recognise};
#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::object::format::Identity;
use paritas_store::object::geometry::Part;
use paritas_store::object::names;
use paritas_store::place::space::Room;
use paritas_store::shown::shown;
use paritas_store::staging::{Judge, MovedAside, Ruling};

/// What already exists under the name that a part is to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occupant {
    Nobody,
    /// A file of the same part.
    SamePart,
    /// A file that is not a shard. It may be the remains of this shard.
    NoShard,
    /// Another shard, a file that cannot be read, or something other than a file.
    Other,
}

impl Occupant {
    /// Looks at what a path leads to.
    pub fn of(path: &Path, identity: &Identity, part: Part) -> Self {
        if fs::symlink_metadata(path).is_err() {
            return Self::Nobody;
        }
        match recognise(path) {
            Ok(shard) if shard.part == part && shard.identity == *identity => Self::SamePart,
            Err(why) if why.is_unreadable || why.is_unknown => Self::Other,
            Err(_) if path.is_file() => Self::NoShard,
            _ => Self::Other,
        }
    }
}

/// A part of an object that is written whole. It replaces a copy of the same part. A file that is
/// not a shard is moved aside ([`crate::aside`]); anything else stays.
#[derive(Debug)]
pub(crate) struct WholePart {
    pub identity: Identity,
    pub part: Part,
}

impl Judge for WholePart {
    fn judge(&self, path: &Path) -> Result<Ruling> {
        match Occupant::of(path, &self.identity, self.part) {
            Occupant::SamePart => Ok(Ruling::Replaced),
            Occupant::NoShard => {
                let to = move_aside(path, self.identity.object)?;
                Ok(Ruling::Moved(MovedAside::new(path.to_owned(), to)))
            }
            Occupant::Nobody | Occupant::Other => Ok(Ruling::Stays),
        }
    }
}

/// Refuses files for which their disks have no room: each is a path and a number of bytes.
pub(crate) fn expect_room<'a>(files: impl IntoIterator<Item = (&'a Path, u64)>) -> Result<()> {
    let files: Vec<_> = files.into_iter().map(|(path, bytes)| (path.to_owned(), bytes)).collect();
    Ok(Room::default().take_all(&files)?)
}

/// Returns the shard files in `directories` that belong to an object of this name, in order. Such a
/// file is named after the object, and its content states the object's name. Another file with such
/// a file name is the user's own.
///
/// # Errors
/// If a directory cannot be read, or a file with such a name cannot be opened ([`ErrorKind::Io`]):
/// if it were left, it would be a shard of an older object beside those of a new one.
pub(crate) fn existing(directories: &[PathBuf], name: &OsStr) -> Result<Vec<PathBuf>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for directory in directories {
        let failed = |error| Error::io("reading the directory", directory, &error);
        // One directory may be given in several ways.
        if !seen.insert(fs::canonicalize(directory).map_err(failed)?) {
            continue;
        }
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let file = entry.file_name();
            let named_so = names::parse(&file).is_some_and(|parsed| parsed.belongs_to(name));
            if !named_so {
                continue;
            }
            let path = directory.join(file);
            match recognise(&path) {
                Ok(shard) if shard.identity.name() == name => found.push(path),
                Err(why) if why.is_unreadable => return Err(unopened(&path, &why)),
                _ => {}
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns the error for a file that has the name of a shard and cannot be opened.
fn unopened(path: &Path, why: &NoShard) -> Error {
    Error::failed(format!(
        "{} {}, and it may be a shard of that name; make it readable, or move it away",
        shown(path),
        why.reason
    ))
}

/// Whether a file is a shard of an object of this name.
pub(crate) fn is_shard_of(path: &Path, name: &OsStr) -> bool {
    recognise(path).is_ok_and(|shard| shard.identity.name() == name)
}
