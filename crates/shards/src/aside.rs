//! Files that repair moves aside. Such a file is not a shard, but has the name of a shard that is
//! to be written. It may be the remains of that shard, or a user's own file. So it is kept, under a
//! name that tells what it is:
//!
//! `NAME.3of6.paritas.damaged-<8 hex of the object's id>-<16 hex of a digest>`
//!
//! The digest covers the object's id and the file's content. If a file under such a name still has
//! that content, repair moved it aside for this object, and may remove it. Any other file stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::object::format::ObjectId;
use paritas_store::object::names;
use paritas_store::place::names::{AsideName, in_short};
use paritas_store::place::system::{open_to_read, rename_new};
use paritas_store::shown::shown;

/// The context that separates these digests from all other uses of BLAKE3.
const CONTEXT: &str = "Paritas: a file that repair moved aside";

/// A file that repair moved aside, now or earlier.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AsideFile {
    /// The path.
    pub path: PathBuf,
    /// Its length in bytes.
    pub bytes: u64,
}

impl AsideFile {
    /// Looks at a file. Returns `None` unless its name says that it was moved aside.
    pub(crate) fn look(path: &Path) -> Option<Self> {
        names::set_aside(path.file_name()?)?;
        let metadata = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self { path: path.to_owned(), bytes: metadata.len() })
    }

    /// Whether the name says that the file was moved aside for this object.
    pub(crate) fn is_named_for(&self, object: ObjectId) -> bool {
        self.stated().is_some_and(|aside| object.to_string().starts_with(aside.id))
    }

    fn stated(&self) -> Option<AsideName<'_>> {
        names::set_aside(self.path.file_name()?)
    }

    /// Removes the file if repair moved it aside for this object. Returns whether it did.
    pub(crate) fn remove(&self, object: ObjectId) -> Result<bool> {
        let failed = |error| Error::io("removing", &self.path, &error);
        match digest(&self.path, object) {
            Ok(digest) if self.states(&digest) => fs::remove_file(&self.path).map_err(failed)?,
            Ok(_) => return Ok(false),
            // Another process has removed it already.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(true)
    }

    fn states(&self, digest: &str) -> bool {
        self.stated().is_some_and(|aside| aside.digest == digest)
    }
}

/// Moves a file aside because a shard of this object needs its name, and returns the new path.
pub(crate) fn move_aside(path: &Path, object: ObjectId) -> Result<PathBuf> {
    let failed = |error| Error::io("moving aside", path, &error);
    let digest = digest(path, object).map_err(failed)?;
    let (name, id) = (path.file_name().unwrap_or_default(), object.to_string());
    let mut aside = PathBuf::new();
    let renamed = in_short(|most| {
        aside = path.with_file_name(names::moved_aside(name, &id, &digest, most));
        rename_new(path, &aside)
    });
    match renamed {
        // A file with the same content lies there already, so replacing it loses nothing.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let known = AsideFile { path: aside.clone(), bytes: 0 };
            let is_same = self::digest(&aside, object).is_ok_and(|digest| known.states(&digest));
            if !is_same {
                return Err(Error::exists(format!("{} is in the way", shown(&aside))));
            }
            fs::rename(path, &aside).map_err(failed)?;
        }
        renamed => renamed.map_err(failed)?,
    }
    Ok(aside)
}

fn digest(path: &Path, object: ObjectId) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(object.to_string().as_bytes());
    hasher.update_reader(open_to_read(path)?)?;
    Ok(hasher.finalize().to_hex()[..AsideName::DIGEST_DIGITS].to_owned())
}
