//! From files to objects: [`scan`] looks at files, and gathers shards into objects by their
//! content.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paritas::{CodecOptions, Spec};
use paritas_store::error::{Error, Result};

use crate::aside::AsideFile;
use crate::choose::tell_apart;
use crate::folders::GivenFolder;
use crate::inventory::{Ignored, Inventory};
use crate::leftovers::{self, Leftover, LeftoverState};
use crate::object::{Object, UnopenedPath};
use crate::recognise::{NoShard, Recognised, recognise};
use paritas_store::object::format::Identity;
use paritas_store::object::geometries::{Geometries, Options};
use paritas_store::object::names;
use paritas_store::place::identity::Inodes;
use paritas_store::staging::has_temporary_name;

/// Finds shards in files and directories (but not in subdirectories). Codecs of the objects found
/// are run with [`CodecOptions::default`].
pub fn scan(paths: &[PathBuf]) -> Inventory {
    scan_with(paths, |_| CodecOptions::default())
}

/// Finds shards as [`scan`] does. Codecs of the objects found are run with the options (except for
/// packet and threads) that `options` returns, which is called once for each code.
pub fn scan_with(paths: &[PathBuf], options: impl Fn(&Spec) -> CodecOptions) -> Inventory {
    let paths = &distinct(paths);
    let mut listed = names::list(paths);
    let mut gathering = gather(paths);
    for _ in 1..MOST_LOOKS {
        let now = names::list(paths);
        if now == listed {
            break;
        }
        (listed, gathering) = (now, gather(paths));
    }
    gathering.finish(&options)
}

/// Returns paths without duplicates, even if one path is spelled in several ways.
fn distinct(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or(path.components().collect());
    paths.iter().filter(|path| seen.insert(resolved(path))).cloned().collect()
}

/// How often a scan looks at folders in which shards appear or vanish during the scan. Otherwise,
/// while another process replaces an object, half of its old shards and half of the new ones would
/// look like two damaged objects.
const MOST_LOOKS: usize = 4;

fn gather(paths: &[PathBuf]) -> ScanFindings {
    let given = paths.iter().filter_map(|path| GivenFolder::look(path)).collect();
    let mut gathering = ScanFindings { given, ..ScanFindings::default() };
    for path in paths {
        match fs::read_dir(path) {
            Ok(entries) => gathering.add_directory(path, entries),
            Err(error) if path.is_dir() => gathering.refuse_folder(path, &error),
            Err(_) => gathering.add_file(path, true),
        }
    }
    gathering
}

/// Finds the files that were left behind from objects named `name`.
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
    files.sort_unstable();
    let mut gathering = ScanFindings::default();
    for path in files {
        match has_temporary_name(&path) {
            true => gathering.temporary.push(path),
            false => gathering.add_file(&path, false),
        }
    }
    Ok(gathering.finish(&|_| CodecOptions::default()).leftovers)
}

/// The findings of a scan so far.
#[derive(Default)]
struct ScanFindings {
    /// The files that were looked at. A file that is reached on two paths counts as one copy.
    seen: Inodes,
    /// Shards, each with whether the path itself was given.
    found: Vec<(Recognised, bool)>,
    /// Files in directories that have temporary names.
    temporary: Vec<PathBuf>,
    /// The temporary files that do not belong to an object.
    unfinished: Vec<(PathBuf, Option<Recognised>)>,
    ignored: Vec<Ignored>,
    unread: Vec<UnopenedPath>,
    given: Vec<GivenFolder>,
    moved_aside: Vec<AsideFile>,
}

impl ScanFindings {
    fn add_directory(&mut self, directory: &Path, entries: fs::ReadDir) {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if names::is_temporary(&entry.file_name()) => {
                    self.temporary.push(entry.path());
                }
                Ok(entry) if names::set_aside(&entry.file_name()).is_some() => {
                    self.moved_aside.extend(AsideFile::look(&entry.path()));
                }
                Ok(entry) => files.push(entry.path()),
                Err(error) => self.refuse_folder(directory, &error),
            }
        }
        files.sort_unstable();
        files.iter().filter(|path| !path.is_dir()).for_each(|path| self.add_file(path, false));
    }

    fn add_file(&mut self, path: &Path, named: bool) {
        if !self.seen.add(path) {
            return;
        }
        match recognise(path) {
            Ok(recognised) => self.found.push((recognised, named)),
            // If a given path cannot be opened, it may even be unknown whether it is a folder.
            Err(why) => self.refuse(path, why, named, named && fs::metadata(path).is_err()),
        }
    }

    fn refuse_folder(&mut self, path: &Path, error: &io::Error) {
        self.refuse(path, NoShard::refused(error), true, true);
    }

    fn refuse(&mut self, path: &Path, why: NoShard, named: bool, is_folder: bool) {
        let NoShard { reason, is_unreadable, is_unknown, number } = why;
        if is_unreadable {
            let (path, reason) = (path.to_owned(), reason.clone());
            self.unread.push(UnopenedPath { path, reason, is_folder });
        }
        self.ignored.push(Ignored {
            path: path.to_owned(),
            reason,
            named,
            unreadable: is_unreadable,
            unknown: is_unknown,
            number,
        });
    }

    /// Ignores a shard whose headers are right, but state something that this version cannot read.
    fn ignore(&mut self, path: &Path, reason: String, named: bool) {
        let path = path.to_owned();
        let (unreadable, unknown, number) = (false, true, None);
        self.ignored.push(Ignored { path, reason, named, unreadable, unknown, number });
    }

    /// Adds files with temporary names that are shards. Usually such files are unfinished, and not
    /// shards. But a crash while a complete set gets its names leaves some files with temporary
    /// names. Such files are complete, and other files of their object have their names.
    fn add_unnamed(&mut self) {
        let mut named: HashSet<Identity> = HashSet::new();
        named.extend(self.found.iter().map(|(recognised, _)| recognised.identity.clone()));
        let mut temporary = std::mem::take(&mut self.temporary);
        temporary.sort_unstable();
        for path in temporary {
            let unnamed = match recognise(&path) {
                Err(why) if why.is_unreadable || why.is_unknown => {
                    self.refuse(&path, why, false, false);
                    continue;
                }
                unnamed => unnamed.ok(),
            };
            let complete = |r: &Recognised| r.file.has_both_records();
            match unnamed.as_ref().filter(|r| complete(r)) {
                Some(r) if named.contains(&r.identity) => self.add_file(&path, false),
                _ => self.unfinished.push((path, unnamed)),
            }
        }
    }

    /// Accepts a whole set of files with temporary names as an object, unless an object of its name
    /// was found in the same folders. Returns whether it did.
    fn adopt(&mut self, left: &Leftover) -> bool {
        if left.state != LeftoverState::Unnamed {
            return false;
        }
        let folders = leftovers::folders_of(&left.files);
        let is_taken = |(found, _): &(Recognised, bool)| {
            found.identity.name() == left.name && leftovers::is_in(&found.file.path, &folders)
        };
        if self.found.iter().any(is_taken) {
            return false;
        }
        left.files.iter().for_each(|path| self.add_file(path, false));
        true
    }

    fn finish(mut self, options: Options<'_>) -> Inventory {
        self.add_unnamed();
        let mut geometries = Geometries::new(options);
        let parts = |identity: &Identity| Some(geometries.of(identity, None).ok()?.parts_until(1));
        let mut leftovers = leftovers::temporary(std::mem::take(&mut self.unfinished), parts);
        leftovers.retain(|left| !self.adopt(left));
        let mut objects: Vec<Object> = Vec::new();
        let mut by_identity: HashMap<Identity, Result<usize, String>> = HashMap::new();
        for (recognised, named) in std::mem::take(&mut self.found) {
            let Recognised { file, identity, part } = recognised;
            let length = file.footer.map(|footer| footer.total.length);
            let place = by_identity.entry(identity).or_insert_with_key(|identity| {
                objects.push(Object::new(identity.clone(), geometries.of(identity, length)?));
                Ok(objects.len() - 1)
            });
            let path = file.path.clone();
            let added = place.clone().and_then(|place| objects[place].add(part, file));
            if let Err(reason) = added {
                self.ignore(&path, reason, named);
            }
        }
        objects.retain(|object| object.parts.iter().any(|files| !files.is_empty()));
        let unread: Arc<[UnopenedPath]> = self.unread.into();
        let given: Arc<[GivenFolder]> = self.given.into();
        for object in &mut objects {
            object.unread = Arc::clone(&unread);
            object.given = Arc::clone(&given);
            let is_of = |file: &&AsideFile| file.is_named_for(object.id());
            object.moved_aside = self.moved_aside.iter().filter(is_of).cloned().collect();
            object.settle();
        }
        leftovers.extend(leftovers::set_aside(&mut objects));
        leftovers.extend(leftovers::copies(&objects));
        leftovers.extend(leftovers::nameless(&objects));
        tell_apart(&mut objects);
        Inventory { objects, ignored: self.ignored, leftovers }
    }
}
