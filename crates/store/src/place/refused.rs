//! The attributes of files that file systems refuse to keep. Bytes are worth more than modes and
//! times, so a refusal is noted instead of returned as an error.

use std::fmt;
use std::io;

/// The kinds of attributes that a file system did not take over, of one file or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused {
    /// Modes: who may read and write.
    pub modes: bool,
    /// Times of change.
    pub times: bool,
    /// Owners, though this process may give files away.
    pub owners: bool,
    /// Access control lists.
    pub lists: bool,
    /// Other extended attributes.
    pub extended: bool,
    /// Links.
    pub links: bool,
    /// Names that are durable after a crash.
    pub syncing: bool,
}

impl Refused {
    /// Returns the kinds that `self` or `other` has.
    pub fn or(self, other: Self) -> Self {
        Self {
            modes: self.modes | other.modes,
            times: self.times | other.times,
            owners: self.owners | other.owners,
            lists: self.lists | other.lists,
            extended: self.extended | other.extended,
            links: self.links | other.links,
            syncing: self.syncing | other.syncing,
        }
    }

    /// Returns the kinds that `self` has and `other` lacks.
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            modes: self.modes & !other.modes,
            times: self.times & !other.times,
            owners: self.owners & !other.owners,
            lists: self.lists & !other.lists,
            extended: self.extended & !other.extended,
            links: self.links & !other.links,
            syncing: self.syncing & !other.syncing,
        }
    }

    /// Returns the names of the kinds. Each gets its own warning.
    pub fn kinds(self) -> impl Iterator<Item = &'static str> {
        let kinds = [
            (self.modes, "modes"),
            (self.times, "times"),
            (self.owners, "owners"),
            (self.lists, "access control lists"),
            (self.extended, "extended attributes"),
            (self.links, "links"),
            (self.syncing, "syncing of folders"),
        ];
        kinds.into_iter().filter_map(|(is_refused, kind)| is_refused.then_some(kind))
    }

    /// Returns a warning for each kind, about a file system that is mounted at `mount`.
    pub fn warnings(self, mount: &str) -> impl Iterator<Item = String> {
        self.kinds().map(move |kind| {
            format!("all bytes are written, but the file system at {mount} refuses {kind}")
        })
    }

    /// Whether nothing was refused.
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// Lists the kinds: `modes, times`.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kinds().collect::<Vec<_>>().join(", "))
    }
}

/// Whether an error says that a file system does not do something, or does not let this process do
/// it: the call is unknown or not supported, its arguments are not understood, or the file belongs
/// to somebody else.
pub fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput
    )
}

/// Returns whether something was refused.
///
/// # Errors
/// If it failed for any other reason.
pub fn refusal(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(false),
        Err(error) if is_refusal(&error) => Ok(true),
        Err(error) => Err(error),
    }
}
