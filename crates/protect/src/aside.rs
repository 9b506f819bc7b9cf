//! Copies of the files that a repair has replaced.
//!
//! A file may have been changed on purpose although its time was kept, as happens in containers,
//! mail boxes and trees whose times are all equal. So the replaced file stays beside the new one,
//! under a name like the names that repair gives to damaged shards:
//!
//! `NAME.damaged-<8 hex of the protection's id>-<16 hex of a digest>`
//!
//! The digest covers the rest of the name, and the size and the time of the file. If the size or
//! time of a file under such a name has changed since, the file belongs to a user: it is protected
//! like any other file, and is never removed.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use paritas_store::place::attributes::Attributes;
use paritas_store::place::names::{AsideName, cut, in_short};

use crate::paths::name_bytes;

/// The context that separates these digests from all other uses of BLAKE3.
const CONTEXT: &str = "Paritas: a file that the repair of a protection replaced";
/// Largest number of copies of one file that have the same size and time.
const MOST_ALIKE: u8 = 16;
/// File systems keep times to this many seconds at least.
const GRANULE: i64 = 2;

/// Gives a copy of a file called `name` the first name that is free, for a protection of the id
/// `id`, and returns it. `give` does so, unless the name is taken
/// ([`io::ErrorKind::AlreadyExists`]).
///
/// # Errors
/// If all names are taken, or if `give` returns another error.
pub(crate) fn give_name(
    id: &str,
    name: &[u8],
    file: &Metadata,
    mut give: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let mut give = |copy: Vec<u8>| match give(&copy) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
        given => Some(given.map(|()| copy)),
    };
    let too_many = || {
        let why = "there are too many copies of what was replaced here (their names have `.damaged-` \
                   in them); remove those that nobody needs";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
    };
    in_short(|most| names(id, name, file, most).find_map(&mut give).unwrap_or_else(too_many))
}

/// Returns the names of at most `most` bytes that a copy may have. The end of a very long name is
/// cut off.
fn names<'a>(
    id: &'a str,
    name: &'a [u8],
    file: &Metadata,
    most: usize,
) -> impl Iterator<Item = Vec<u8>> + use<'a> {
    let name = cut(name, most - AsideName::SUFFIX);
    let id = &id[..AsideName::ID_DIGITS];
    let facts = facts(file);
    (0..MOST_ALIKE).map(move |number| {
        let digest = digest(id, name, facts, number);
        [name, &AsideName::suffix(id, &digest)].concat()
    })
}

/// Whether the file at a path is a copy that the repair of a protection has made, and nobody has
/// changed it since.
pub(crate) fn is_copy(path: &Path, file: &Metadata) -> bool {
    parse(path).is_some_and(|AsideName { name, id, digest: stated }| {
        let facts = facts(file);
        (0..MOST_ALIKE).any(|number| digest(id, name, facts, number) == stated)
    })
}

/// Whether the name of a copy says that the protection of this id has replaced the file.
pub(crate) fn is_of(path: &Path, id: &str) -> bool {
    parse(path).is_some_and(|stated| id.starts_with(stated.id))
}

fn parse(path: &Path) -> Option<AsideName<'_>> {
    AsideName::parse(name_bytes(path.file_name()?))
}

/// Returns the size of a file, and its time as every file system keeps it.
fn facts(file: &Metadata) -> (u64, i64) {
    let seconds = Attributes::of(file).modified.map_or(0, |time| time.seconds);
    (file.len(), seconds.div_euclid(GRANULE))
}

fn digest(id: &str, name: &[u8], (size, time): (u64, i64), number: u8) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(id.as_bytes()).update(&size.to_le_bytes()).update(&time.to_le_bytes());
    hasher.update(&[number]).update(name);
    hasher.finalize().to_hex()[..AsideName::DIGEST_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::owned_name;
    use std::fs;

    #[test]
    fn only_unchanged_copies_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let id = "0123456789abcdef";
        for length in [1, 100, 255] {
            let old = folder.path().join("x".repeat(length));
            fs::write(&old, "content").unwrap();
            let name = name_bytes(old.file_name().unwrap());
            let names: Vec<_> = names(id, name, &fs::metadata(&old).unwrap(), 255).collect();
            assert!(names.iter().all(|name| name.len() <= 255));
            let copies =
                [&names[0], &names[15]].map(|it| folder.path().join(owned_name(it.clone())));
            fs::rename(&old, &copies[0]).unwrap();
            let file = fs::metadata(&copies[0]).unwrap();
            for copy in &copies {
                assert!(is_copy(copy, &file) && is_of(copy, id) && !is_of(copy, "1123456789"));
            }
            fs::write(&copies[0], "other content").unwrap();
            assert!(!is_copy(&copies[0], &fs::metadata(&copies[0]).unwrap()));
            assert!(!is_copy(folder.path(), &file));
        }
    }

    /// Copies have names that file systems take: whole letters, and fewer bytes where names are
    /// encrypted.
    #[test]
    fn copies_have_names_that_file_systems_take() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("\u{44f}".repeat(127));
        fs::write(&old, "content").unwrap();
        let (id, file) = ("0123456789abcdef", fs::metadata(&old).unwrap());
        for (most, number) in [(255, 0), (255, 5), (143, 0), (143, 5)] {
            let mut taken = 0;
            let give = |copy: &[u8]| match str::from_utf8(copy) {
                Ok(copy) if copy.len() <= most => {
                    taken += 1;
                    let is_free = taken > number;
                    is_free.then_some(()).ok_or_else(|| io::ErrorKind::AlreadyExists.into())
                }
                _ => Err(io::ErrorKind::InvalidFilename.into()),
            };
            let copy = give_name(id, name_bytes(old.file_name().unwrap()), &file, give).unwrap();
            assert!(copy.len() >= most - 1 && is_copy(Path::new(&owned_name(copy)), &file));
        }
        let name = old.file_name().unwrap();
        let full =
            give_name(id, name_bytes(name), &file, |_| Err(io::ErrorKind::AlreadyExists.into()));
        assert!(full.unwrap_err().to_string().contains("too many copies"));
    }
}
