//! Versions of an object, and what the name of a manifest's file says about one.

use std::fmt;

use paritas_shards::ObjectId;

/// One version of what a name means. Of two versions, the greater one counts: the one with the
/// higher generation, or, of equal generations, with the greater object id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// One more than the greatest generation that the writer found, or the seconds since 1970,
    /// whichever is greater. A version in place of another one
    /// (`protocol::Put::in_place_of`) has the generation of that one.
    pub generation: u64,
    /// The id of the object that the version consists of. It is drawn at random, so no two versions
    /// share it.
    pub object: ObjectId,
}

/// What a version makes of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionKind {
    /// The name means an object.
    Put,
    /// The name means nothing any more.
    Removed,
}

/// What a listing tells about a manifest: all that the name of its file contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listed {
    /// The version.
    pub version: Version,
    /// What the version makes of the name.
    pub kind: VersionKind,
    /// The object's length in bytes, 0 if it was removed.
    pub length: u64,
}

impl VersionKind {
    /// Returns the kind as it stands in file names and manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for VersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} ({})", self.generation, self.object)
    }
}
