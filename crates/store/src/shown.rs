//! Names as people see them. Stored names and paths are data: they may contain any byte but NUL. A
//! line break or a terminal's escape sequence in a name must not forge a line of a report.

use std::ffi::OsStr;
use std::fmt::{self, Write};

/// Shows a name, a path or a stored text in a message. Control characters, line breaks of all kinds
/// and marks that change the direction of writing are escaped as in Rust (`\n`, `\u{1b}`). Bytes
/// that are not UTF-8 become U+FFFD.
///
/// ```
/// use paritas_store::shown::shown;
/// assert_eq!(shown("a\nb: intact\u{1b}[K").to_string(), r"a\nb: intact\u{1b}[K");
/// ```
pub fn shown<T: AsRef<OsStr> + ?Sized>(name: &T) -> Shown<'_> {
    Shown(name.as_ref())
}

/// A name, a path or a stored text that is displayed as [`shown`] describes.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(&'a OsStr);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.to_string_lossy().chars() {
            match is_harmful(character) {
                true => write!(f, "{}", character.escape_default())?,
                false => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// Returns a number followed by the noun that it counts, for a message: `1 shard`, `2 shards`.
///
/// ```
/// assert_eq!(paritas_store::shown::counted(1_u64, "shard"), "1 shard");
/// assert_eq!(paritas_store::shown::counted(0_u64, "byte"), "0 bytes");
/// assert_eq!(paritas_store::shown::counted(2_u64, "copy"), "2 copies");
/// assert_eq!(paritas_store::shown::counted(2_u64, "day"), "2 days");
/// ```
pub fn counted(count: impl TryInto<u64>, thing: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    if count == 1 {
        return format!("1 {thing}");
    }
    match thing.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {thing}s"),
    }
}

/// Returns the verb that follows a count: `is` or `are`.
///
/// ```
/// assert_eq!([0, 1, 2].map(paritas_store::shown::are), ["are", "is", "are"]);
/// ```
pub fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Largest number of things that a message names; further ones are only counted.
const NAMED: usize = 8;

/// Returns the first notes for a message and, if there are more than eight, a last one that counts
/// the others. Notes that are only counted are not made.
///
/// ```
/// let notes = (1..=10).map(|number| number.to_string()).collect::<Vec<String>>();
/// let few = paritas_store::shown::first_few(notes.into_iter());
/// assert_eq!(few.join(", "), "1, 2, 3, 4, 5, 6, 7, 8, and 2 more");
/// ```
pub fn first_few(notes: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = notes.len().saturating_sub(NAMED);
    let mut few: Vec<String> = notes.take(NAMED).collect();
    few.extend((more > 0).then(|| format!("and {more} more")));
    few
}

/// Whether a character moves the cursor, ends a line, or reorders the characters beside it.
fn is_harmful(character: char) -> bool {
    let separates_lines = matches!(character, '\u{2028}' | '\u{2029}');
    let reorders = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || separates_lines || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forges_lines_is_escaped() {
        for (name, text) in [
            ("plain name.tar", "plain name.tar"),
            ("größe \u{1f600} back\\slash", "größe \u{1f600} back\\slash"),
            ("a\r\n\tb", r"a\r\n\tb"),
            ("\u{1b}[2K\u{7f}\u{9b}", r"\u{1b}[2K\u{7f}\u{9b}"),
            ("\u{202e}x\u{2028}", r"\u{202e}x\u{2028}"),
        ] {
            assert_eq!(shown(name).to_string(), text);
        }
    }

    #[test]
    #[cfg(unix)]
    fn what_is_not_utf8_is_replaced() {
        use std::os::unix::ffi::OsStrExt;
        let bytes = OsStr::from_bytes(b"caf\xe9\n");
        assert_eq!(shown(bytes).to_string(), "caf\u{fffd}\\n");
    }
}
