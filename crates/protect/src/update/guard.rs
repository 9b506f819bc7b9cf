//! The limit up to which an update treats changes as made on purpose.
//!
//! An update gives up the parity that can repair files that are gone or changed. If most files are,
//! the cause is probably an accident: a program has overwritten them, or a script has removed them.

use std::fmt;
use std::str::FromStr;

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::shown::{counted, shown};

use crate::find::Protection;
use crate::percent;

/// Number of files below which an update is never refused: if there are only a few files, most of
/// them often change at the same time.
const LEAST_FILES: u64 = 20;

/// A share of the protected files, and of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    millionths: u32,
}

impl Share {
    /// A half.
    pub const HALF: Self = Self { millionths: 500_000 };
    /// Everything.
    pub const ALL: Self = Self { millionths: 1_000_000 };

    /// Whether a part is more than this share of a whole.
    fn is_exceeded(self, part: u64, whole: u64) -> bool {
        u128::from(part) * 1_000_000 > u128::from(whole) * u128::from(self.millionths)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        percent::write(self.millionths, f)
    }
}

impl FromStr for Share {
    type Err = Error;

    /// Reads a percentage from 0% to 100%, such as `80%` or `2.5%`.
    fn from_str(text: &str) -> Result<Self> {
        let millionths = percent::parse(text, 100.0).ok_or_else(|| {
            Error::parameters(format!(
                "a share is a percentage from 0% to 100%, such as 80% or 0.5%; got {text:?}"
            ))
        })?;
        Ok(Self { millionths })
    }
}

/// How much of a protection is gone or changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct GoneShare {
    /// Number of files that are gone or changed.
    pub files: u64,
    /// Number of bytes that these files had.
    pub bytes: u64,
}

impl GoneShare {
    /// Returns the error for an update that would give up more than `most` of the files or of the
    /// bytes, and at least twenty files.
    pub fn refusal(self, protection: &Protection, most: Share) -> Option<Error> {
        let Self { files, bytes } = self;
        let (of_files, of_bytes) = (protection.files(), protection.bytes());
        let is_much = most.is_exceeded(files, of_files) || most.is_exceeded(bytes, of_bytes);
        (is_much && files >= LEAST_FILES).then(|| {
            Error::new(
                ErrorKind::TooManyChanges,
                format!(
                    "{}: {files} of {} are gone or changed, {bytes} of {of_bytes} bytes: more than \
                     {most}, so nothing was written, and the old parity can still repair them; if \
                     all of this was done on purpose, update with `accept_changes`; files that \
                     a program removes as a rule are named by `accept_removals`",
                    shown(protection.root()),
                    counted(of_files, "file")
                ),
            )
            .naming(&["accept_changes", "accept_removals"])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read() {
        assert_eq!("50%".parse::<Share>().unwrap(), Share::HALF);
        assert_eq!("100".parse::<Share>().unwrap(), Share::ALL);
        assert_eq!("2.5 %".parse::<Share>().unwrap().to_string(), "2.5%");
        for text in ["", "%", "-1%", "101%", "half", "nan", "inf"] {
            let error = text.parse::<Share>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Parameters, "{text}");
        }
    }

    #[test]
    fn a_share_itself_is_not_too_much() {
        assert!(!Share::HALF.is_exceeded(50, 100) && Share::HALF.is_exceeded(51, 100));
        assert!(!Share::ALL.is_exceeded(u64::MAX, u64::MAX) && !Share::HALF.is_exceeded(0, 0));
    }
}
