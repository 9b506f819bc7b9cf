//! Versions of an object, and the facts about a version in the name of its manifest's file.

use std::fmt;

use paritas_shards::ObjectId;

/// One version of a name. Of two versions, the greater one counts: the version with the higher
/// generation or, if the generations are equal, with the greater object id.
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

/// The effect of a version on its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionKind {
    /// The name means an object.
    Put,
    /// The name was removed.
    Removed,
}

/// The facts in the name of a manifest's file, which listings show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Listed {
    /// The version.
    pub version: Version,
    /// The effect of the version on the name.
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
