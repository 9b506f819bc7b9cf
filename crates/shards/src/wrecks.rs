//! Files that have the names of shards, but no readable header or footer any more. If every shard
//! of an object was cut to a few bytes, only the files' names tell of the object.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::inventory::{Ignored, Inventory};
use crate::object::Object;
use paritas_store::object::names;
use paritas_store::place::system::name_of;

/// All that is left of an object: files that have the names of its shards, but cannot be read as
/// shards. No shard of an object of that name was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wreck {
    /// The object's name, as the files' names have it.
    pub name: OsString,
    /// The files, in order.
    pub files: Vec<PathBuf>,
}

impl Inventory {
    /// Returns what is left of objects of which no shard was found, by name. If shards of an object
    /// of its name were found, a file counts as a damaged shard of that object instead. A file that
    /// could not be opened is left out, because it may be anything, and so is a shard that this
    /// version cannot read.
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
