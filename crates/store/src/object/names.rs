//! The names of shard files.
//!
//! | state | name |
//! | --- | --- |
//! | final | `NAME.<i>of<n>.paritas`, i from 0, with as many digits as n |
//! | final, where that was taken by another file | `NAME.<i>of<n>-<number>.paritas` |
//! | a part that a later stage adds to a shard | `NAME.<i>of<n>.stage<s>.paritas`, likewise with `-<number>` |
//! | being written | `.NAME.<i>of<n>.paritas.<8 hex>.tmp` |
//! | about to be replaced | `NAME.<i>of<n>.paritas.<8 hex>.old` |
//! | no shard, moved aside by repair | `NAME.<i>of<n>.paritas.damaged-<8 hex>-<16 hex>`  |
//!
//! Names are bytes. Shards are recognised by content; names only tell which files to leave
//! alone (those being written) and which ones an encoding would replace. Where the last three
//! would be longer than a file's name may be, NAME is cut; how long it may be differs
//! ([`crate::place::names::in_short`]).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::object::format::Identity;
use crate::object::geometry::{Geometry, Part};
use crate::place::names::{AsideName, MOST_ENCRYPTED, MOST_NAME, cut};
use crate::place::system::{entry_number, name_bytes, name_of, owned_name};
use crate::shown::shown;

const EXTENSION: &str = ".paritas";
const STAGE: &[u8] = b".stage";
const TEMPORARY: &[u8] = b".tmp";
const OLD: &[u8] = b".old";

/// The name of one shard's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardName<'a> {
    name: &'a [u8],
    middle: String,
    /// `.stage2` or the like, or nothing.
    stage: String,
}

impl<'a> ShardName<'a> {
    /// Returns the name of shard `index` of `count` of the object `name`; for a part that is added
    /// to a shard, with its stage.
    ///
    /// # Errors
    /// If the name is longer than file systems allow.
    pub(crate) fn new(
        name: &'a OsStr,
        index: usize,
        count: usize,
        added: Option<u8>,
    ) -> Result<Self> {
        let (middle, stage) = (middle(index, count), stage(added));
        let name = Self { name: name_bytes(name), middle, stage };
        let length = name.finished().len();
        if length <= MOST_NAME {
            return Ok(name);
        }
        Err(Error::parameters(format!(
            "the shards of {} would have names of {length} bytes; file systems allow \
             {MOST_NAME}: give a name of at most {} bytes",
            shown(name_of(name.name)),
            MOST_NAME - (length - name.name.len())
        )))
    }

    /// Returns what the final name adds to the object's name.
    pub(crate) fn suffix(index: usize, count: usize, added: Option<u8>) -> String {
        [&middle(index, count), &stage(added), EXTENSION].concat()
    }

    /// Returns the final name.
    pub fn finished(&self) -> OsString {
        self.join("")
    }

    /// Returns the final name with a number, for a file whose plain name is taken by another. If
    /// the name is too long, the operating system reports it.
    pub fn numbered(&self, number: usize) -> OsString {
        self.join(&format!("-{number}"))
    }

    fn join(&self, number: &str) -> OsString {
        let [middle, stage] = [&self.middle, &self.stage].map(String::as_bytes);
        owned_name([self.name, middle, number.as_bytes(), stage, EXTENSION.as_bytes()].concat())
    }
}

impl Identity {
    /// Returns the canonical name of a part's file.
    pub fn part_name(&self, geometry: &Geometry, part: usize) -> Result<ShardName<'_>> {
        let (shard, added) = in_name(geometry, part);
        ShardName::new(self.name(), shard, self.shards as usize, added)
    }

    /// Returns what the canonical name of a part's file adds to the object's name.
    pub(crate) fn part_suffix(&self, geometry: &Geometry, part: usize) -> String {
        let (shard, added) = in_name(geometry, part);
        ShardName::suffix(shard, self.shards as usize, added)
    }
}

/// Returns what the name of a part's file tells: the shard and, for a part that is added to one,
/// the stage.
fn in_name(geometry: &Geometry, part: usize) -> (usize, Option<u8>) {
    let Part { stage, shard } = geometry.part(part);
    (shard, geometry.is_added(part).then_some(stage))
}

fn middle(index: usize, count: usize) -> String {
    let width = count.to_string().len();
    format!(".{index:0width$}of{count}")
}

fn stage(added: Option<u8>) -> String {
    added.map_or_else(String::new, |stage| format!(".stage{stage}"))
}

/// Returns the name of at most `most` bytes under which a file is written that will be called
/// `name`.
pub(crate) fn temporary(name: &OsStr, random: u32, most: usize) -> OsString {
    let suffix = format!(".{random:08x}");
    decorate(b".", name, &[suffix.as_bytes(), TEMPORARY].concat(), most)
}

/// Returns the name of at most `most` bytes that a file called `name` has while it is replaced.
pub(crate) fn old(name: &OsStr, random: u32, most: usize) -> OsString {
    let suffix = format!(".{random:08x}");
    decorate(b"", name, &[suffix.as_bytes(), OLD].concat(), most)
}

/// Returns the name of at most `most` bytes that a file called `name` gets when it is moved aside,
/// with the beginning of the object's id and a digest.
pub fn moved_aside(name: &OsStr, id: &str, digest: &str, most: usize) -> OsString {
    decorate(b"", name, &AsideName::suffix(id, digest), most)
}

/// Reads the name of a file that was moved aside, if the file had the name of a shard.
pub fn set_aside(file: &OsStr) -> Option<AsideName<'_>> {
    AsideName::parse(name_bytes(file)).filter(|aside| parse(name_of(aside.name)).is_some())
}

/// Joins prefix, name and suffix. If the result would be longer than `most` bytes, cuts the
/// object's name in `name`. The result may be as long as `name`: if that is too long, the file
/// cannot get its name, which is better known before it is written.
fn decorate(prefix: &[u8], name: &OsStr, suffix: &[u8], most: usize) -> OsString {
    let name = name_bytes(name);
    let object = parse(name_of(name)).map_or(name.len(), |parsed| parsed.name.len());
    let length = prefix.len() + name.len() + suffix.len();
    let excess = length.saturating_sub(most.max(name.len()));
    let kept = cut(&name[..object], object.saturating_sub(excess));
    owned_name([prefix, kept, &name[object..], suffix].concat())
}

/// Returns the names of finished and old shard files in folders, with the number of each file.
pub fn list(folders: &[PathBuf]) -> BTreeSet<(OsString, u64)> {
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let entries = entries.filter_map(|entry| entry.ok().map(|e| (e.file_name(), entry_number(&e))));
    entries.filter(|(name, _)| parse(name).is_some()).collect()
}

/// The facts that a file's name states.
#[derive(Debug, PartialEq, Eq)]
pub struct ParsedName<'a> {
    /// The object's name; cut if `old` and very long.
    pub name: &'a [u8],
    /// Whether the file is about to be replaced.
    pub old: bool,
    /// Number of bytes after the object's name.
    rest: usize,
}

impl ParsedName<'_> {
    /// Whether this is a shard file of an object of that name.
    pub fn belongs_to(&self, name: &OsStr) -> bool {
        let name = name_bytes(name);
        self.name == name
            || self.old
                && !self.name.is_empty()
                && name.starts_with(self.name)
                && name.len() + self.rest > MOST_ENCRYPTED
    }
}

/// Reads the name of a final or old shard file.
pub fn parse(file: &OsStr) -> Option<ParsedName<'_>> {
    let finished = without_old(file);
    let old = finished != file;
    let stem = without_stage(name_bytes(finished).strip_suffix(EXTENSION.as_bytes())?);
    let dot = stem.iter().rposition(|&byte| byte == b'.')?;
    let (name, middle) = (&stem[..dot], &stem[dot + 1..]);
    let middle = std::str::from_utf8(middle).ok()?;
    let (index, rest) = middle.split_once("of")?;
    let (count, number) = rest.split_once('-').unwrap_or((rest, "2"));
    let rest = name_bytes(file).len() - name.len();
    let is_name = [index, count, number].iter().all(|part| is_digits(part.as_bytes()));
    is_name.then_some(ParsedName { name, old, rest })
}

/// Returns the stem of a file's name without the stage of a part that was added to a shard.
fn without_stage(stem: &[u8]) -> &[u8] {
    let split = stem.iter().rposition(|&byte| byte == b'.').map(|dot| stem.split_at(dot));
    match split {
        Some((rest, end)) if end.strip_prefix(STAGE).is_some_and(is_digits) => rest,
        _ => stem,
    }
}

/// Returns a file's name without the mark of being about to be replaced.
pub fn without_old(file: &OsStr) -> &OsStr {
    strip_random(name_bytes(file), OLD).map_or(file, name_of)
}

/// Whether the name is that of a file that is still being written, by an encoding or any other job.
pub fn is_temporary(file: &OsStr) -> bool {
    of_temporary(file).is_some()
}

/// Returns the final name of a file that is being written under the temporary name `file`.
pub fn of_temporary(file: &OsStr) -> Option<&OsStr> {
    let name = name_bytes(file).strip_prefix(b".")?;
    strip_random(name, TEMPORARY).map(name_of)
}

/// Removes `.<8 hex>` and a suffix.
fn strip_random<'a>(name: &'a [u8], suffix: &[u8]) -> Option<&'a [u8]> {
    let rest = name.strip_suffix(suffix)?;
    let (rest, random) = rest.split_at_checked(rest.len().checked_sub(9)?)?;
    (random[0] == b'.' && random[1..].iter().all(u8::is_ascii_hexdigit)).then_some(rest)
}

fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn os(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn indices_are_padded() {
        let shard = |index, count, added| ShardName::new(os("a.tar"), index, count, added).unwrap();
        let name = |index, count| shard(index, count, None).finished();
        assert_eq!(name(3, 14), "a.tar.03of14.paritas");
        assert_eq!(name(3, 6), "a.tar.3of6.paritas");
        assert_eq!(name(9, 10), "a.tar.09of10.paritas");
        assert_eq!(shard(3, 6, None).numbered(2), "a.tar.3of6-2.paritas");
        assert_eq!(shard(3, 10, Some(2)).finished(), "a.tar.03of10.stage2.paritas");
        assert_eq!(shard(3, 10, Some(2)).numbered(2), "a.tar.03of10-2.stage2.paritas");
    }

    #[test]
    fn names_are_read_from_the_right() {
        let parsed =
            |file| parse(os(file)).map(|p| (String::from_utf8_lossy(p.name).into(), p.old));
        let found = |name: &str, old| Some((name.to_owned(), old));
        assert_eq!(parsed("a.3of6.paritas"), found("a", false));
        assert_eq!(parsed("a.3of6-12.paritas"), found("a", false));
        assert_eq!(parsed("a.3of6.paritas.0of4.paritas"), found("a.3of6.paritas", false));
        assert_eq!(parsed("a.3of6.stage2.paritas"), found("a", false));
        assert_eq!(parsed("a.3of6-2.stage2.paritas.0123abcd.old"), found("a", true));
        assert_eq!(parsed("a.3of6.stage2.0of4.paritas"), found("a.3of6.stage2", false));
        assert_eq!(parsed("a.3of6.paritas.0123abcd.old"), found("a", true));
        for other in ["a.stage2.paritas", "a.3of6.stage.paritas", "a.3of6.stage2.stage2.paritas"] {
            assert_eq!(parsed(other), None, "{other}");
        }
        for other in ["a", "a.paritas", "a.3of.paritas", "a.3of6-.paritas", "a.3of6.paritas.old"] {
            assert_eq!(parsed(other), None::<(String, bool)>, "{other}");
        }
        let aside = moved_aside(os("a.3of6.paritas"), "0123abcd", "0123456789abcdef", MOST_NAME);
        assert_eq!(aside, "a.3of6.paritas.damaged-0123abcd-0123456789abcdef");
        let stated = set_aside(&aside).unwrap();
        assert_eq!((stated.id, stated.digest), ("0123abcd", "0123456789abcdef"));
        assert_eq!(parse(&aside), None);
        for other in ["a.3of6.paritas.damaged-0123abcd-0123456789abcdeg", "a.3of6.paritas.damaged"]
        {
            assert_eq!(set_aside(os(other)), None, "{other}");
        }
        assert_eq!(set_aside(os("letter.damaged-0123abcd-0123456789abcdef")), None);
        assert!(is_temporary(os(".a.3of6.paritas.0123abcd.tmp")));
        assert!(!is_temporary(os("a.3of6.paritas.0123abcd.tmp")));
        assert!(!is_temporary(os(".tmp")));
    }

    #[test]
    fn long_names_are_cut_or_refused() {
        let longest = "x".repeat(255 - ".3of6.paritas".len());
        let name = ShardName::new(os(&longest), 3, 6, None).unwrap().finished();
        assert_eq!(name.len(), 255);
        for most in [MOST_NAME, MOST_ENCRYPTED] {
            // A name that may be so long is not made shorter.
            assert_eq!(temporary(&name, 1, most).len(), 255);
            let letters = OsString::from("\u{44f}".repeat(60));
            let name = ShardName::new(&letters, 3, 6, None).unwrap().finished();
            assert_eq!(name.len(), 133);
            let temporary = temporary(&name, 1, most);
            assert!(temporary.len() <= most && is_temporary(&temporary));
            let old = old(&name, 1, most);
            assert!(old.len() <= most && parse(&old).unwrap().belongs_to(&letters));
            let aside = moved_aside(&name, "0123abcd", "0123456789abcdef", most);
            assert!(aside.len() <= most && set_aside(&aside).is_some());
            // No letter is split.
            assert!([temporary, old, aside].iter().all(|name| name.to_str().is_some()));
        }
        assert!(!parse(os("a.3of6.paritas.0123abcd.old")).unwrap().belongs_to(os("ab")));
        let error = ShardName::new(os(&(longest + "x")), 3, 6, None).unwrap_err().to_string();
        assert!(error.contains("at most 242 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_names(bytes in proptest::collection::vec(any::<u8>(), 1..260)) {
            let name = name_of(&bytes);
            let _ = parse(name);
            let _ = is_temporary(name);
            let _ = set_aside(name);
            for added in [None, Some(2)] {
                let Ok(shard) = ShardName::new(name, 0, 3, added) else { continue };
                let file = shard.finished();
                prop_assert!(parse(&file).unwrap().belongs_to(name));
                for most in [MOST_NAME, MOST_ENCRYPTED] {
                    prop_assert!(parse(&old(&file, 7, most)).unwrap().belongs_to(name));
                    prop_assert!(is_temporary(&temporary(&file, 7, most)));
                    prop_assert!(temporary(&file, 7, most).len() <= most.max(file.len()));
                }
            }
        }
    }
}
