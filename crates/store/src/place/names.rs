//! Names that file systems refuse. Only the file system knows which names these are; but once it
//! has refused a name, this module says what is unusual in it, or gives it a shorter one.

use std::io;
use std::path::{Path, PathBuf};

use crate::place::system::name_bytes;

/// Characters that exFAT, FAT, NTFS or file servers for Windows refuse in names.
const FOREIGN: &str = "<>:\"/\\|?*";

/// Number of bytes in the longest name of a file on common file systems.
pub const MOST_NAME: usize = 255;
/// Number of bytes in the longest name of a file where names are encrypted (eCryptfs, and
/// Synology's encrypted shares).
pub const MOST_ENCRYPTED: usize = 143;

/// Makes something under a name of its own. `make` gets the largest length of the name in bytes:
/// first [`MOST_NAME`], and if the file system refuses that name, [`MOST_ENCRYPTED`].
///
/// # Errors
/// If `make` returns an error.
pub fn in_short<T>(mut make: impl FnMut(usize) -> io::Result<T>) -> io::Result<T> {
    match make(MOST_NAME) {
        Err(error) if is_of_name(&error) => make(MOST_ENCRYPTED),
        made => made,
    }
}

/// Whether an error may say that a file system refuses a name: it is too long, or has something in
/// it that is not allowed.
fn is_of_name(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput)
        || is_bad_sequence(error)
}

/// Returns the beginning of a name, at most `most` bytes. Letters stay whole, because some file
/// systems refuse names that are not UTF-8.
pub fn cut(name: &[u8], most: usize) -> &[u8] {
    let most = most.min(name.len());
    let end = match str::from_utf8(name) {
        Ok(text) => text.floor_char_boundary(most),
        Err(_) => most,
    };
    &name[..end]
}

/// A name that repair gives to a file that it puts aside: `NAME.damaged-<8 hex>-<16 hex>`. The
/// first digits begin the id of the object or of the protection. The others are a digest; whoever
/// gives the name decides what it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsideName<'a> {
    /// The file's name before; its end may be cut off.
    pub name: &'a [u8],
    /// The beginning of the id.
    pub id: &'a str,
    /// The digest.
    pub digest: &'a str,
}

impl<'a> AsideName<'a> {
    const MARK: &'static [u8] = b".damaged-";
    /// Number of hexadecimal digits of the id.
    pub const ID_DIGITS: usize = 8;
    /// Number of hexadecimal digits of the digest.
    pub const DIGEST_DIGITS: usize = 16;
    /// Number of bytes that follow the name.
    pub const SUFFIX: usize = Self::MARK.len() + Self::ID_DIGITS + 1 + Self::DIGEST_DIGITS;

    /// Returns what follows the name, from an id and a digest that may have more digits.
    pub fn suffix(id: &str, digest: &str) -> Vec<u8> {
        let (id, digest) = (&id[..Self::ID_DIGITS], &digest[..Self::DIGEST_DIGITS]);
        [Self::MARK, id.as_bytes(), b"-", digest.as_bytes()].concat()
    }

    /// Reads the name of a file. Returns `None` if a repair never gives such a name.
    pub fn parse(file: &'a [u8]) -> Option<Self> {
        let (name, suffix) = file.split_at_checked(file.len().checked_sub(Self::SUFFIX)?)?;
        let stated = str::from_utf8(suffix.strip_prefix(Self::MARK)?).ok()?;
        let (id, digest) = stated.split_once('-')?;
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fits = id.len() == Self::ID_DIGITS && is_hex(id) && is_hex(digest);
        (fits && !name.is_empty()).then_some(Self { name, id, digest })
    }
}

/// Whether some file systems refuse a character in names.
pub fn is_foreign(character: char) -> bool {
    FOREIGN.contains(character) || character.is_control()
}

/// A name that a file system has refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedName {
    /// A folder on the file system.
    pub folder: PathBuf,
    /// What the file system does, in words: `refuses the character ':' in names`.
    pub refusal: String,
}

/// Returns a path and the folders above it. The folder of a bare name is the working folder.
pub(crate) fn upwards(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().map(|above| match above.as_os_str().is_empty() {
        true => Path::new("."),
        false => above,
    })
}

/// Tells what a file system refuses in a name, if `error` may say so. It is the error of making
/// something at `path`, of renaming it to `path`, or of making a folder on the way there.
pub(crate) fn refused_name(path: &Path, error: &io::Error) -> Option<RefusedName> {
    let verb = match error.kind() {
        io::ErrorKind::InvalidInput => "refuses",
        _ if is_bad_sequence(error) => "refuses",
        // The driver of exFAT reports this error.
        io::ErrorKind::NotFound => "probably refuses",
        _ => return None,
    };
    let is_there = |path: &&Path| std::fs::symlink_metadata(path).is_ok();
    let (folder, first) = upwards(path)
        .zip(upwards(path).skip(1))
        .find_map(|(inner, outer)| is_there(&outer).then_some((outer, inner.file_name()?)))?;
    let refusal = format!("{verb} {}", unusual_in(name_bytes(first))?);
    Some(RefusedName { folder: folder.to_owned(), refusal })
}

/// Returns what is unusual in a name.
fn unusual_in(name: &[u8]) -> Option<String> {
    let Ok(name) = str::from_utf8(name) else {
        return Some("names that are not UTF-8".to_owned());
    };
    let end = || match name.chars().next_back()? {
        '.' => Some("names that end in a dot".to_owned()),
        ' ' => Some("names that end in a blank".to_owned()),
        _ => None,
    };
    let foreign = name.chars().find(|&character| is_foreign(character));
    foreign.map(|character| format!("the character {character:?} in names")).or_else(end)
}

#[cfg(unix)]
fn is_bad_sequence(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::ILSEQ.raw_os_error())
}

#[cfg(not(unix))]
fn is_bad_sequence(_error: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn letters_are_not_cut() {
        let name = "a\u{44f}\u{1f600}".as_bytes();
        let lengths = (0..9).map(|most| cut(name, most).len());
        assert_eq!(lengths.collect::<Vec<_>>(), [0, 1, 1, 3, 3, 3, 3, 7, 7]);
        assert_eq!(cut(b"a\xff\x80\x80\x80", 3), b"a\xff\x80");
    }

    #[test]
    fn names_of_files_put_aside_are_read() {
        let suffix = AsideName::suffix("0123456789", "0123456789abcdef00");
        assert_eq!(suffix, b".damaged-01234567-0123456789abcdef");
        let file = [b"a.damaged-", &suffix[..]].concat();
        let (id, digest) = ("01234567", "0123456789abcdef");
        assert_eq!(AsideName::parse(&file), Some(AsideName { name: b"a.damaged-", id, digest }));
        for wrong in
            ["a.damaged-0123456-0123456789abcdefa", "a.damaged-01234567-0123456789abcdeg", "b"]
        {
            assert_eq!(AsideName::parse(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(AsideName::parse(&suffix), None);
    }

    #[test]
    fn what_is_refused_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let why = |name: &[u8], kind: io::ErrorKind| {
            let refused = refused_name(&folder.path().join(OsStr::from_bytes(name)), &kind.into());
            refused.map(|refused| {
                assert_eq!(refused.folder, folder.path());
                refused.refusal
            })
        };
        let invalid = io::ErrorKind::InvalidInput;
        for (name, what) in [
            (&b"a:b"[..], "the character ':' in names"),
            (b"a?/inner", "the character '?' in names"),
            (b"a\x01", "the character '\\u{1}' in names"),
            (b"a.", "names that end in a dot"),
            (b"a /inner", "names that end in a blank"),
            (b"\xff", "names that are not UTF-8"),
        ] {
            assert_eq!(why(name, invalid), Some(format!("refuses {what}")));
            let absent = why(name, io::ErrorKind::NotFound);
            assert_eq!(absent, Some(format!("probably refuses {what}")));
            assert_eq!(why(name, io::ErrorKind::StorageFull), None);
        }
        assert_eq!(why(b"usual.name", invalid), None);
    }
}
