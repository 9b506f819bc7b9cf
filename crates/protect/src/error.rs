//! The one public error of the crate: an opaque struct over a public kind, with a message that
//! carries the numbers and what to do.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use paritas_shards::shown;
use paritas_store::place::names::{RefusedName, refused_name};

/// An error in protecting files, or in finding, verifying, repairing or updating a protection.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    fields: &'static [&'static str],
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The sort of an error. A command line maps each to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A path, a number or a pattern that cannot be used.
    Parameters,
    /// The files are protected already, and the job forbids to replace the protection.
    Exists,
    /// No parity file was found, or those that were found do not say what they protect.
    NotRecognised,
    /// More is lost than the parity at hand can repair.
    BeyondRepair,
    /// The bytes that were computed do not have the digest of the protected file; or a file is
    /// damaged, and must be repaired before an update.
    CheckFailed,
    /// So many protected files are gone or changed that an update does not take it for intended.
    TooManyChanges,
    /// The operating system refused to read or to write.
    Io,
    /// The operating system lacks the memory.
    Memory,
    /// Another process works on the same files, or files change while they are read.
    Busy,
    /// A defect of this program.
    Internal,
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the sort of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file or folder that the error is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the fields of the job that the message names, in backquotes, and the functions. A
    /// program whose users know them by other names can put those in their place.
    pub fn fields(&self) -> &'static [&'static str] {
        self.0.fields
    }

    /// Adds the fields of the job, and the functions, that the message names.
    pub(crate) fn naming(mut self, fields: &'static [&'static str]) -> Self {
        self.0.fields = fields;
        self
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            path: None,
            fields: &[],
            source: None,
        }))
    }

    pub(crate) fn parameters(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Parameters, message)
    }

    pub(crate) fn not_recognised(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotRecognised, message)
    }

    /// Creates the error for the operating system's refusal of an action on a path. `doing` names
    /// the action, such as "writing".
    pub(crate) fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::OutOfMemory => ErrorKind::Memory,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, format!("{doing} {}: {source}", shown(path)));
        error.0.path = Some(path.to_owned());
        error.0.source = Some(source.into());
        error
    }

    /// Creates the error for something that could not be made at a path. If the file system refuses
    /// its name, says what in it.
    pub(crate) fn making(doing: &str, path: &Path, source: io::Error) -> Self {
        let refused = refused_name(path, &source);
        let mut error = Self::io(doing, path, source);
        if let Some(RefusedName { folder, refusal }) = refused {
            error.0.message += &format!("; the file system of {} {refusal}", shown(&folder));
        }
        error
    }

    /// Creates the error for a file whose bytes have changed and whose time has not.
    pub(crate) fn damaged(path: &Path) -> Self {
        Self::new(
            ErrorKind::CheckFailed,
            format!(
                "{} is damaged: its time has not changed, but its bytes have; repair it first, or \
                 touch it if you have changed it",
                shown(path)
            ),
        )
    }

    /// Creates the error for a file that cannot be read and whose time has not changed.
    pub(crate) fn unreadable(path: &Path) -> Self {
        Self::new(
            ErrorKind::Io,
            format!(
                "{} cannot be read, and its time has not changed; make it readable or repair it \
                 first, because new parity would not know its bytes",
                shown(path)
            ),
        )
    }

    /// Creates the error for a protected file that could not be read again for new parity.
    pub(crate) fn unread(path: &Path) -> Self {
        Self::new(
            ErrorKind::CheckFailed,
            format!(
                "{} is protected, but could not be read again, so the old parity stays; repair it \
                 first, or run the command again if you have changed it meanwhile",
                shown(path)
            ),
        )
    }

    fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }
}

impl From<paritas::Error> for Error {
    fn from(error: paritas::Error) -> Self {
        let kind = match error.kind() {
            paritas::ErrorKind::Spec | paritas::ErrorKind::Parameters => ErrorKind::Parameters,
            paritas::ErrorKind::Memory => ErrorKind::Memory,
            paritas::ErrorKind::NotEnough => ErrorKind::BeyondRepair,
            _ => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string()).because(error)
    }
}

impl From<paritas_shards::Error> for Error {
    fn from(error: paritas_shards::Error) -> Self {
        use paritas_shards::ErrorKind as Shards;
        let kind = match error.kind() {
            Shards::Parameters => ErrorKind::Parameters,
            Shards::Exists => ErrorKind::Exists,
            Shards::Io => ErrorKind::Io,
            Shards::Memory => ErrorKind::Memory,
            Shards::Busy => ErrorKind::Busy,
            _ => ErrorKind::Internal,
        };
        let mut own = Self::new(kind, error.to_string());
        own.0.path = error.path().map(Path::to_owned);
        own.0.fields = error.fields();
        own.because(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
