//! Why bytes that are expected at a path could not be read, and what that says about them.

use std::io;
use std::path::Path;

use paritas_store::error::Error;
use paritas_store::place::system::is_bad_place;
use paritas_store::shown::shown;

/// Why a file was not read as it should have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The system refused, for this reason: no permission, a network mount that does not answer, a
    /// damaged file system. The bytes may be intact.
    Refused(String),
    /// The disk cannot read them, for this reason.
    Broken(String),
    /// The file is not there any more, or has become something else.
    Gone,
    /// The file has fewer bytes than are expected.
    Short,
    /// The file was replaced or written since it was found.
    Changed,
}

impl Trouble {
    /// Returns what an error in opening or reading a file says about its bytes.
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            _ if is_bad_place(error) => Self::Broken(error.to_string()),
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory => Self::Gone,
            _ if is_other_kind(error) => Self::Gone,
            _ => Self::Refused(error.to_string()),
        }
    }
}

/// Whether a link or a socket is in the place of a file.
#[cfg(unix)]
fn is_other_kind(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let codes = [Errno::LOOP, Errno::NXIO];
    codes.iter().any(|code| error.raw_os_error() == Some(code.raw_os_error()))
}

#[cfg(not(unix))]
fn is_other_kind(_error: &io::Error) -> bool {
    false
}

/// Returns the error for a file whose bytes have changed and whose time has not.
pub(crate) fn damaged(path: &Path) -> Error {
    Error::digest(format!(
        "{} is damaged: its time has not changed, but its bytes have; repair it first, or touch it \
         if you have changed it",
        shown(path)
    ))
}

/// Returns the error for a file that cannot be read and whose time has not changed.
pub(crate) fn unreadable(path: &Path) -> Error {
    Error::failed(format!(
        "{} cannot be read, and its time has not changed; make it readable or repair it first, \
         because new parity would not know its bytes",
        shown(path)
    ))
}

/// Returns the error for a protected file that could not be read again for new parity.
pub(crate) fn unread(path: &Path) -> Error {
    Error::digest(format!(
        "{} is protected, but could not be read again, so the old parity stays; repair it first, \
         or run the command again if you have changed it meanwhile",
        shown(path)
    ))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// Only a disk's own error says that bytes are damaged, and only an absent name that they are
    /// missing. What does not answer today may be intact.
    #[test]
    fn refusals_say_nothing_about_bytes() {
        let of = |code: Errno| Trouble::of(&io::Error::from(code));
        for code in [Errno::NOTCONN, Errno::UCLEAN, Errno::STALE, Errno::ACCESS, Errno::MFILE] {
            assert!(matches!(of(code), Trouble::Refused(_)), "{code}");
        }
        for code in [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NXIO] {
            assert_eq!(of(code), Trouble::Gone, "{code}");
        }
        assert!(matches!(of(Errno::IO), Trouble::Broken(_)));
    }
}
