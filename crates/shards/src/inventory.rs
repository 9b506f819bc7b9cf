//! What a scan finds: objects, files that cannot be used, and files that killed processes left
//! behind.

use std::io;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::object::names::parse;
use paritas_store::shown::{first_few, shown};

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
    /// The system's number of its refusal, if it refused to open it.
    pub(crate) number: Option<i32>,
}

impl Ignored {
    /// Whether the path was given to [`crate::scan`], and cannot be opened or does not exist.
    pub fn is_unread_path(&self) -> bool {
        self.named && (self.unreadable || self.path.metadata().is_err())
    }
}

impl Inventory {
    /// Returns the inventory of `paths` if it has an object.
    ///
    /// # Errors
    /// If it has none: the error of [`Inventory::obstacle`] or, if nothing hides objects,
    /// [`crate::ErrorKind::NotRecognised`]. The message says why given files are not shards.
    pub fn expect_some(self, paths: &[PathBuf]) -> Result<Self> {
        if !self.objects.is_empty() {
            return Ok(self);
        }
        Err(self.obstacle().unwrap_or_else(|| {
            let paths = first_few(paths.iter().map(|path| shown(path).to_string())).join(", ");
            let reasons = self.list(|ignored| ignored.named);
            let reasons = reasons.map(|reasons| format!("; {reasons}")).unwrap_or_default();
            Error::not_recognised(format!("there are no shards in {paths}{reasons}"))
        }))
    }

    /// Returns the error for what may hide objects: files and folders that could not be read
    /// ([`crate::ErrorKind::Io`]) or, if there are none, [`Inventory::unknown_shards`].
    pub fn obstacle(&self) -> Option<Error> {
        let is_unread = |ignored: &Ignored| ignored.unreadable || ignored.is_unread_path();
        self.unread(is_unread).or_else(|| self.unknown_shards())
    }

    /// Returns the error for given paths that cannot be read or do not exist, if there are any.
    pub fn unread_paths(&self) -> Option<Error> {
        self.unread(Ignored::is_unread_path)
    }

    /// Returns the error for shards of a later version, or of a code that this version does not
    /// know, if there are any ([`crate::ErrorKind::NotRecognised`]).
    pub fn unknown_shards(&self) -> Option<Error> {
        let shards = self.list(|ignored| ignored.unknown)?;
        Some(Error::not_recognised(format!(
            "this version of paritas, {}, cannot read all shards: {shards}",
            env!("CARGO_PKG_VERSION")
        )))
    }

    /// Returns the error for the paths for which `is_unread` holds. Its cause is what the system
    /// said of the first of them that exists or, if none exists, that it does not.
    fn unread(&self, is_unread: impl Fn(&Ignored) -> bool) -> Option<Error> {
        let error = Error::failed(self.list(&is_unread)?);
        let unread: Vec<&Ignored> = self.ignored.iter().filter(|it| is_unread(it)).collect();
        let first = unread.iter().find(|it| it.unreadable).or(unread.first())?;
        let absent = io::ErrorKind::NotFound;
        Some(match first.number.map(io::Error::from_raw_os_error) {
            Some(said) if first.unreadable || said.kind() == absent => error.because(said),
            _ if first.unreadable => error,
            _ => error.because(io::Error::from(absent)),
        })
    }

    /// Describes the files for which `is_listed` holds and why they are not shards. Returns `None`
    /// if there are none.
    pub(crate) fn list(&self, is_listed: impl Fn(&Ignored) -> bool) -> Option<String> {
        let listed: Vec<&Ignored> = self.ignored.iter().filter(|it| is_listed(it)).collect();
        let say =
            |ignored: &&Ignored| format!("{} {}", shown(&ignored.path), shown(&ignored.reason));
        let notes = first_few(listed.iter().map(say));
        (!notes.is_empty()).then(|| notes.join(", "))
    }

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
