//! What killed processes left behind, told apart.
//!
//! An encoding that replaces a set of shards goes through these states, each of which a kill may
//! leave (see [`super::place`]; old shards are `O`, new ones `N`):
//!
//! | what has been done | files | what is said |
//! | --- | --- | --- |
//! | part of `N` is written | `O`, temporary files | `O`; [`LeftoverState::Unfinished`] |
//! | all of `N` is written | `O`, `N` under temporary names | `O`; [`LeftoverState::Unnamed`] |
//! | some of `O` is set aside | `O`, partly set aside, and the same | `O`, [`LeftoverState::SetAside`]; the same |
//! | some of `N` has names | `O` set aside, `N` | `N`; [`LeftoverState::Replaced`] |
//! | some of `O` is removed | the rest of `O` set aside, `N` | the same |
//!
//! So there is one object in every state, whole, and what is left of the other is no object. Where
//! nothing is replaced there is no `O`; a whole `N` under temporary names is an object then, and as
//! long as any of its files has such a name, [`LeftoverState::Nameless`] says so.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use paritas::CodecOptions;

use crate::error::{Error, Result};
use crate::shard::format::{Identity, ObjectId};
use crate::shard::geometry::Part;
use crate::shard::names;
use crate::shard::object::{Inventory, Object, scan_files};
use crate::shard::recognise::{Recognised, ShardFile};
use crate::system::name_of;

/// Files of one object that a process left behind when it was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The object's name.
    pub name: OsString,
    /// Its id, if any file states it.
    pub object: Option<ObjectId>,
    /// Their state.
    pub state: LeftoverState,
    /// The files, in order.
    pub files: Vec<PathBuf>,
}

/// The state of files that were left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverState {
    /// Temporary files that do not make a whole set. Nothing needs them, unless the command that
    /// writes them still runs.
    Unfinished,
    /// A whole set of shards under temporary names, of which none has got its own, where there are
    /// shards of another object of that name.
    Unnamed,
    /// Shards that still have temporary names, since an encoding was killed before all of them got
    /// their own. They count as shards of their object in the inventory, and [`super::repair`] gives
    /// them their names.
    Nameless,
    /// Shards that an encoding had set aside for the object `by`, which has all of its own, as far
    /// as headers and footers tell. A scan of these files alone finds their object.
    Replaced {
        /// The object that took their place.
        by: ObjectId,
    },
    /// Shards that an encoding had set aside, of an object that nothing whole has replaced. They
    /// count as shards of that object in the inventory.
    SetAside {
        /// An object of the same name that is there and not whole.
        rival: Option<ObjectId>,
    },
}

/// Looks for what was left behind of objects of one name.
///
/// # Errors
/// If a directory cannot be read.
pub fn leftovers_of(directories: &[PathBuf], name: &OsStr) -> Result<Vec<Leftover>> {
    let mut files = Vec::new();
    for directory in directories {
        let failed = |error| Error::io("reading the directory", directory, &error);
        for entry in fs::read_dir(directory).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            let shard = names::of_temporary(&file).unwrap_or(&file);
            if names::parse(shard).is_some_and(|parsed| parsed.belongs_to(name)) {
                files.push(directory.join(file));
            }
        }
    }
    let inventory: Inventory = scan_files(files, &|_| CodecOptions::default());
    Ok(inventory.leftovers)
}

/// Takes objects that others have replaced out of the list, and says what has been set aside.
pub(super) fn set_aside(objects: &mut Vec<Object>) -> Vec<Leftover> {
    let mut leftovers = Vec::new();
    for index in (0..objects.len()).rev() {
        let object = &objects[index];
        let files: Vec<PathBuf> = all_paths(object).filter(|p| is_set_aside(p)).collect();
        if files.is_empty() {
            continue;
        }
        let is_rival = |other: &&Object| {
            other.id() != object.id()
                && other.name() == object.name()
                && all_paths(other).any(|path| !is_set_aside(&path))
        };
        let rivals = || objects.iter().filter(is_rival);
        let is_left = files.len() == all_paths(object).count();
        let state = match rivals().find(|rival| is_left && is_whole(rival)) {
            Some(by) => LeftoverState::Replaced { by: by.id() },
            None => LeftoverState::SetAside { rival: rivals().next().map(Object::id) },
        };
        let (name, object) = (object.name().to_owned(), Some(object.id()));
        leftovers.push(Leftover { name, object, state, files });
        match state {
            LeftoverState::Replaced { .. } => _ = objects.remove(index),
            LeftoverState::SetAside { rival: Some(_) } => objects[index].is_contested = true,
            _ => {}
        }
    }
    leftovers
}

/// Says of which parts all files have temporary names.
pub(super) fn nameless(objects: &[Object]) -> Vec<Leftover> {
    let leftover = |object: &Object| {
        let nameless = |files: &&Vec<ShardFile>| files.iter().all(|file| is_temporary(file.path()));
        let files = object.parts().iter().filter(nameless).flatten();
        let mut files: Vec<PathBuf> = files.map(|file| file.path().to_owned()).collect();
        files.sort_unstable();
        let (name, object) = (object.name().to_owned(), Some(object.id()));
        let state = LeftoverState::Nameless;
        (!files.is_empty()).then_some(Leftover { name, object, state, files })
    };
    objects.iter().filter_map(leftover).collect()
}

fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(names::is_temporary)
}

fn all_paths(object: &Object) -> impl Iterator<Item = PathBuf> {
    object.parts().iter().flatten().map(|file| file.path().to_owned())
}

/// Whether a file has the name of a shard that was set aside.
pub(super) fn is_set_aside(path: &Path) -> bool {
    path.file_name().is_some_and(|name| names::without_old(name) != name)
}

/// Whether every part of an object has a file that looks as it was written.
fn is_whole(object: &Object) -> bool {
    object.parts().iter().enumerate().all(|(part, files)| {
        files.iter().any(|file| object.flaws(part, file).is_empty() && !is_set_aside(file.path()))
    })
}

/// Sorts temporary files that are part of no object; `parts` is how many an object has when it has
/// just been encoded.
pub(super) fn temporary(
    files: Vec<(PathBuf, Option<Recognised>)>,
    mut parts: impl FnMut(&Identity) -> Option<usize>,
) -> Vec<Leftover> {
    let mut sets: BTreeMap<(OsString, Option<ObjectId>), TemporarySet> = BTreeMap::new();
    for (path, recognised) in files {
        let Some(name) = object_name(&path, recognised.as_ref()) else { continue };
        let object = recognised.as_ref().map(|recognised| recognised.identity.object);
        let set = sets.entry((name, object)).or_default();
        set.files.push(path);
        if let Some(Recognised { file, identity, part }) = recognised {
            let is_complete = file.has_front() && file.has_footer();
            set.complete.extend(is_complete.then_some(part));
            set.identity.get_or_insert(identity);
        }
    }
    let leftover = |((name, object), set): (_, TemporarySet)| {
        let wanted = set.identity.as_ref().and_then(&mut parts);
        let state = match wanted.is_some_and(|parts| set.complete.len() >= parts) {
            true => LeftoverState::Unnamed,
            false => LeftoverState::Unfinished,
        };
        Leftover { name, object, state, files: set.files }
    };
    sets.into_iter().map(leftover).collect()
}

/// The temporary files of one encoding.
#[derive(Default)]
struct TemporarySet {
    files: Vec<PathBuf>,
    identity: Option<Identity>,
    complete: BTreeSet<Part>,
}

/// The name of the object that a temporary file is of, if it is of any.
fn object_name(path: &Path, recognised: Option<&Recognised>) -> Option<OsString> {
    if let Some(recognised) = recognised {
        return Some(recognised.identity.name().to_owned());
    }
    let shard = names::of_temporary(path.file_name()?)?;
    names::parse(shard).map(|parsed| name_of(parsed.name).to_owned())
}
