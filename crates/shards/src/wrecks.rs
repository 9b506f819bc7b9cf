//! Files that have the names of shards, but whose headers and footers are no longer readable. If
//! every shard of an object was cut to a few bytes, only the files' names tell of the object.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::inventory::{Ignored, Inventory};
use crate::object::Object;
use paritas_store::object::names;
use paritas_store::place::system::name_of;

/// The remains of an object: files that have the names of its shards, but cannot be read as shards.
/// The scan found no shard of an object of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wreck {
    /// The object's name, taken from the names of the files.
    pub name: OsString,
    /// The files, in order.
    pub files: Vec<PathBuf>,
}

impl Inventory {
    /// Returns the remains of objects without a readable shard, by name. If readable shards of an
    /// object of that name were found, a file counts as a damaged shard of that object instead. Two
    /// kinds of files are left out: files that could not be opened, because they may be anything,
    /// and shards that this version cannot read.
    pub fn wrecks(&self) -> Vec<Wreck> {
        let found: HashSet<&OsStr> = self.objects.iter().map(Object::name).collect();
        let mut wrecks: BTreeMap<OsString, Vec<PathBuf>> = BTreeMap::new();
        let is_known = |ignored: &&Ignored| !ignored.unreadable && !ignored.unknown;
        for ignored in self.ignored.iter().filter(is_known) {
            let parsed = ignored.path.file_name().and_then(names::parse);
            let Some(parsed) = parsed.filter(|parsed| !parsed.old) else { continue };
            let name = name_of(parsed.name);
            if !found.contains(name) && ignored.path.is_file() {
                wrecks.entry(name.to_owned()).or_default().push(ignored.path.clone());
            }
        }
        wrecks.into_iter().map(|(name, files)| Wreck { name, files }).collect()
    }
}
