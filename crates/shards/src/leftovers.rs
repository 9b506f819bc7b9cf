//! The files that killed processes left behind, and how to tell them apart.
//!
//! An encoding that replaces a set of shards goes through these states, and a kill may leave any of
//! them (see [`paritas_store::staging`]; `O` are the old shards, `N` the new ones):
//!
//! | done so far | files | reported |
//! | --- | --- | --- |
//! | part of `N` is written | `O`, temporary files | `O`; [`LeftoverState::Unfinished`] |
//! | all of `N` is written | `O`, `N` under temporary names | `O`; [`LeftoverState::Unnamed`] |
//! | some of `O` is set aside | `O`, partly set aside; `N` under temporary names | `O`, [`LeftoverState::SetAside`]; [`LeftoverState::Unnamed`] |
//! | some of `N` has names | `O` set aside, `N` | `N`; [`LeftoverState::Replaced`] |
//! | some of `O` is removed | the rest of `O` set aside, `N` | `N`; [`LeftoverState::Replaced`] |
//!
//! So in every state exactly one object is reported, and it is whole. The files of the other are
//! reported as leftovers. If nothing is replaced, `O` does not exist. Then a whole `N` under
//! temporary names is an object, and [`LeftoverState::Nameless`] is reported as long as any of its
//! files has a temporary name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::object::Object;
use crate::recognise::{Recognised, ShardFile};
use paritas_store::object::format::{Identity, ObjectId};
use paritas_store::object::geometry::Part;
use paritas_store::object::names;
use paritas_store::place::identity::Inodes;
use paritas_store::place::system::name_of;
use paritas_store::staging::directory_of;
use paritas_store::staging::has_temporary_name;

/// Files of one object that a process left behind when it was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Temporary files that do not form a whole set. They can be removed, unless the command that
    /// writes them is still running.
    Unfinished,
    /// Complete copies of shards that also exist under their own names, written by a command that
    /// was interrupted before it gave the copies names.
    Copies,
    /// A whole set of shards that all still have temporary names. One of their folders holds shards
    /// of another object of the same name.
    Unnamed,
    /// Shards that still have temporary names, because an encoding was killed before all of them
    /// got their own. They count as shards of their object in the inventory, and [`crate::repair`]
    /// gives them their names.
    Nameless,
    /// Shards that an encoding set aside for the object `by`. All shards of `by` exist, judging by
    /// their headers and footers. A scan of the set-aside files alone finds their object.
    Replaced {
        /// The object that replaced them.
        by: ObjectId,
    },
    /// Shards that an encoding set aside, although no whole object has replaced their object. They
    /// count as shards of their object in the inventory.
    SetAside {
        /// Another object of the same name, which is incomplete.
        rival: Option<ObjectId>,
    },
}

/// Removes objects that others have replaced from `objects`, and returns all files that were set
/// aside, as leftovers.
pub(super) fn set_aside(objects: &mut Vec<Object>) -> Vec<Leftover> {
    let mut leftovers = Vec::new();
    for index in (0..objects.len()).rev() {
        let object = &objects[index];
        let (files, others): (Vec<PathBuf>, Vec<PathBuf>) =
            all_paths(object).partition(|path| is_set_aside(path));
        if files.is_empty() {
            continue;
        }
        let folders = folders_of(&files);
        let is_in_the_way = |path: PathBuf| !is_set_aside(&path) && is_in(&path, &folders);
        let is_rival = |other: &&Object| {
            other.id() != object.id()
                && other.name() == object.name()
                && all_paths(other).any(is_in_the_way)
        };
        let rivals = || objects.iter().filter(is_rival);
        // A repair that was killed may have left temporary files of the object.
        let is_left = others.iter().all(|path| has_temporary_name(path));
        let (state, files) = match rivals().find(|rival| is_left && is_whole(rival)) {
            Some(by) => (LeftoverState::Replaced { by: by.id() }, [files, others].concat()),
            None => (LeftoverState::SetAside { rival: rivals().next().map(Object::id) }, files),
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

/// Reports the parts whose files all have temporary names.
pub(super) fn nameless(objects: &[Object]) -> Vec<Leftover> {
    let leftover = |object: &Object| {
        let nameless =
            |files: &&Vec<ShardFile>| files.iter().all(|file| has_temporary_name(file.path()));
        let files = object.parts().iter().filter(nameless).flatten();
        let mut files: Vec<PathBuf> = files.map(|file| file.path().to_owned()).collect();
        files.sort_unstable();
        let (name, object) = (object.name().to_owned(), Some(object.id()));
        let state = LeftoverState::Nameless;
        (!files.is_empty()).then_some(Leftover { name, object, state, files })
    };
    objects.iter().filter_map(leftover).collect()
}

/// Returns the folders that files are in. Only files in the same folder can have been set aside for
/// each other: objects with one name in different folders are unrelated.
pub(super) fn folders_of(files: &[PathBuf]) -> Inodes {
    let mut folders = Inodes::default();
    files.iter().for_each(|file| _ = folders.add(directory_of(file)));
    folders
}

/// Whether a file is in one of these folders.
pub(super) fn is_in(file: &Path, folders: &Inodes) -> bool {
    folders.has(directory_of(file))
}

fn all_paths(object: &Object) -> impl Iterator<Item = PathBuf> {
    object.parts().iter().flatten().map(|file| file.path().to_owned())
}

/// Reports the shards that have copies under temporary names beside files under their own names.
/// Until the object is intact such a copy may be the only good one, so it counts as a file of the
/// object.
pub(super) fn copies(objects: &[Object]) -> impl Iterator<Item = Leftover> {
    objects.iter().filter_map(|object| {
        let copies = object.parts().iter().flat_map(|files| {
            let (copies, named): (Vec<&Path>, Vec<&Path>) =
                files.iter().map(|file| file.path()).partition(|path| has_temporary_name(path));
            if named.is_empty() { Vec::new() } else { copies }
        });
        let files: Vec<PathBuf> = copies.map(Path::to_owned).collect();
        let (name, id) = (object.name().to_owned(), Some(object.id()));
        let copies = Leftover { name, object: id, state: LeftoverState::Copies, files };
        (!copies.files.is_empty()).then_some(copies)
    })
}

/// Returns the files of parts, except files with a temporary name whose part also has another file:
/// these are leftovers, not places of the part.
pub(super) fn without_copies<'p>(
    files: impl Iterator<Item = (usize, &'p Path)>,
) -> Vec<(usize, &'p Path)> {
    let mut files: Vec<(usize, &Path)> = files.collect();
    let own_names = files.iter().filter(|(_, path)| !has_temporary_name(path));
    let named: BTreeSet<usize> = own_names.map(|&(part, _)| part).collect();
    files.retain(|(part, path)| !named.contains(part) || !has_temporary_name(path));
    files
}

/// Whether a file has a temporary name, or was set aside for an object that does not exist.
pub(crate) fn is_unnamed(object: &Object, path: &Path) -> bool {
    has_temporary_name(path) || is_set_aside(path) && !object.is_contested
}

/// Whether a file has the name of a shard that was set aside.
pub(super) fn is_set_aside(path: &Path) -> bool {
    path.file_name().is_some_and(|name| names::without_old(name) != name)
}

/// Whether every part of an object has a file that looks whole.
fn is_whole(object: &Object) -> bool {
    object.parts().iter().enumerate().all(|(part, files)| {
        files.iter().any(|file| object.flaws(part, file).is_empty() && !is_set_aside(file.path()))
    })
}

/// Groups temporary files that do not belong to an object into leftovers. `parts` returns the
/// number of parts that an object has right after encoding.
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
            set.complete.extend(file.has_both_records().then_some(part));
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

/// Returns the name of the object that a temporary file belongs to, if it belongs to any.
fn object_name(path: &Path, recognised: Option<&Recognised>) -> Option<OsString> {
    if let Some(recognised) = recognised {
        return Some(recognised.identity.name().to_owned());
    }
    let shard = names::of_temporary(path.file_name()?)?;
    names::parse(shard).map(|parsed| name_of(parsed.name).to_owned())
}
