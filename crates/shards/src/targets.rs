//! The choice of paths for parts that are written anew: in place of a damaged file, beside another
//! part of the same shard, or in the folder with the fewest shards.

use std::fs;
use std::io;
use std::iter::Cycle;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use crate::folders::{Domains, FolderShards};
use crate::object::Object;
use crate::place::{Occupant, WholePart};
use paritas_store::staging::{Replace, directory_of};

/// The choice of the paths that parts are written to.
pub(super) struct Targets<'a> {
    object: &'a Object,
    /// The directories that the caller asked for, taken in turn. If the caller named no directory,
    /// the folders in use are taken.
    to: Cycle<slice::Iter<'a, PathBuf>>,
    domains: Domains<'a>,
    /// The folders in use, by number of the domain.
    folders: Vec<FolderShards>,
}

impl<'a> Targets<'a> {
    /// Takes the folders that hold the object. A folder that was given to the scan and does not
    /// hold any of its shards is taken if it is empty, like a disk that was replaced, or if the
    /// object is spread over several folders anyway.
    pub(super) fn new(object: &'a Object, to: &'a [PathBuf]) -> Self {
        let domains = Domains::new(&object.given);
        let mut targets = Self { object, to: to.iter().cycle(), domains, folders: Vec::new() };
        for (part, files) in object.parts().iter().enumerate() {
            if let Some(file) = files.first() {
                let domain = targets.domains.of_file(file.path());
                targets.put(part, domain, directory_of(file.path()));
            }
        }
        let is_spread = targets.folders.len() > 1;
        for folder in object.given.iter().filter(|folder| folder.is_empty || is_spread) {
            targets.add_folder(&folder.path);
        }
        targets
    }

    /// Adds a folder.
    pub(super) fn add_folder(&mut self, folder: &Path) {
        let domain = self.domains.of_folder(folder);
        self.folder(domain, folder);
    }

    /// Returns the number of the domain that a file is in.
    pub(super) fn domain_of(&mut self, file: &Path) -> usize {
        let domain = self.domains.of_file(file);
        self.folder(domain, directory_of(file));
        domain
    }

    /// Returns the folders of all domains, by number.
    pub(super) fn into_folders(self) -> Vec<PathBuf> {
        self.folders.into_iter().map(|folder| folder.path).collect()
    }

    /// Returns the folder of a domain. If the domain is new, its folder is `path`.
    fn folder(&mut self, domain: usize, path: &Path) -> &mut FolderShards {
        if domain == self.folders.len() {
            self.folders.push(FolderShards { path: path.to_owned(), shards: Vec::new() });
        }
        &mut self.folders[domain]
    }

    /// Notes that a part is in a domain.
    fn put(&mut self, part: usize, domain: usize, directory: &Path) {
        let shard = self.object.part(part).shard;
        let folder = self.folder(domain, directory);
        if !folder.shards.contains(&shard) {
            folder.shards.push(shard);
        }
    }

    /// Returns a path for each part, and whether a file there is replaced.
    pub(super) fn choose(mut self, parts: &[usize]) -> Result<Vec<(PathBuf, Replace)>> {
        parts.iter().map(|&part| self.choose_one(part)).collect()
    }

    fn choose_one(&mut self, part: usize) -> Result<(PathBuf, Replace)> {
        let to = self.to.next();
        if let (None, Some(damaged)) = (to, self.object.parts[part].first()) {
            return self.in_place(part, damaged.path());
        }
        let directory = to.cloned().or_else(|| self.beside(part)).or_else(|| self.emptiest());
        let directory = directory.unwrap_or_else(|| PathBuf::from("."));
        let domain = self.domains.of_folder(&directory);
        self.put(part, domain, &directory);
        self.free_name(&directory, part)
    }

    /// Returns the path at which a damaged file of a part is replaced.
    pub(super) fn in_place(&self, part: usize, damaged: &Path) -> Result<(PathBuf, Replace)> {
        let path = place_of(damaged).map_err(|error| vanished(damaged, &error))?;
        Ok((path, self.replace(part)))
    }

    /// Returns the directory of another part of the same shard. A shard's parts belong together,
    /// because a shard is lost as a whole.
    fn beside(&self, part: usize) -> Option<PathBuf> {
        let shard = self.object.part(part).shard;
        let parts = (0..self.object.parts.len()).filter(|&p| self.object.part(p).shard == shard);
        let file = parts.filter_map(|part| self.object.parts[part].first()).next()?;
        Some(directory_of(file.path()).to_owned())
    }

    /// Returns the folder with the fewest shards. So the fullest folders, whose loss costs most,
    /// stay as small as possible.
    fn emptiest(&self) -> Option<PathBuf> {
        let emptiest = self.folders.iter().min_by_key(|folder| folder.shards.len());
        emptiest.map(|folder| folder.path.clone())
    }

    /// Returns a path in the directory that is free, or whose file may be replaced.
    pub(super) fn free_name(&self, directory: &Path, part: usize) -> Result<(PathBuf, Replace)> {
        let name = self.object.part_name(part)?;
        let mut path = directory.join(name.finished());
        for number in 2.. {
            if self.object.occupant(part, &path) != Occupant::Other {
                break;
            }
            path = directory.join(name.numbered(number));
        }
        Ok((path, self.replace(part)))
    }

    fn replace(&self, part: usize) -> Replace {
        Replace::Judged(Arc::new(WholePart {
            identity: self.object.identity.clone(),
            part: self.object.part(part),
        }))
    }
}

impl Object {
    /// Returns what already exists at `path`, where a part is to be written.
    pub(super) fn occupant(&self, part: usize, path: &Path) -> Occupant {
        Occupant::of(path, &self.identity, self.part(part))
    }
}

/// Returns the path at which a file is replaced. The target of a link is replaced, not the link.
fn place_of(file: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(file)?.is_symlink() {
        true => fs::canonicalize(file),
        false => Ok(file.to_owned()),
    }
}

/// Returns the error for a file that the scan found and whose path can no longer be resolved.
fn vanished(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::busy(format!(
            "another process has removed {} in the meantime; run the command again",
            shown(path)
        )),
        _ => Error::io("resolving", path, error),
    }
}
