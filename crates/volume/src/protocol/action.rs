//! The requests of a machine to nodes, and their answers.

use paritas_shards::ObjectId;

use crate::protocol::{Listed, Spread};

/// The number of a node in the list of a volume's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub usize);

/// The number of a part of an object: parts are numbered by stage and then by shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartIndex(pub usize);

/// A request to one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Action {
    /// The node.
    pub node: NodeIndex,
    /// The request.
    pub request: Request,
}

/// A request to a node. All requests of one machine are about one name.
///
/// Requests may be repeated: writing the same file again, or deleting a file that is gone, changes
/// nothing. No request depends on another of the same batch, so the actions that a machine returns
/// together may all run side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Request {
    /// Lists the versions of the name. Answer: [`Answer::Versions`].
    ListVersions,
    /// Reads a manifest and keeps its content for [`Self::WriteManifest`]. Answer:
    /// [`Answer::Manifest`].
    ReadManifest(Listed),
    /// Writes a manifest: the new version's, or one that was read before. Replaces a damaged one.
    /// Answer: [`Answer::Done`].
    WriteManifest(Listed),
    /// Deletes a manifest. Answer: [`Answer::Done`].
    DeleteManifest(Listed),
    /// Finds the whole parts of an object that the node has. Answer: [`Answer::Parts`].
    FindParts(ObjectId),
    /// Reads a part completely and checks it. Answer: [`Answer::Done`] if it is whole.
    CheckPart {
        /// The object.
        object: ObjectId,
        /// The part.
        part: PartIndex,
    },
    /// Makes a part from the caller's bytes or from other parts, and stores it whole or not at all.
    /// Answer: [`Answer::Stored`], or [`Answer::Impossible`].
    StorePart {
        /// The object.
        object: ObjectId,
        /// The part.
        part: PartIndex,
    },
    /// Deletes a part. Answer: [`Answer::Done`].
    DeletePart {
        /// The object.
        object: ObjectId,
        /// The part.
        part: PartIndex,
    },
    /// Deletes everything of an object that this machine has stored. Answer: [`Answer::Done`].
    DeleteObject(ObjectId),
    /// Deletes everything of the object of an older version, if a manifest of that version says
    /// that it is one of this name: a listing alone may show a file that somebody has copied there.
    /// Answer: [`Answer::Done`].
    DeleteOlder(Listed),
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// All versions of the name that the node has.
    Versions(Vec<Listed>),
    /// What the manifest describes.
    Manifest(Shape),
    /// The whole parts of the object that the node has.
    Parts(Vec<PartIndex>),
    /// The part is durable. `length` is the length of the object, in bytes.
    Stored {
        /// The length of the object in bytes.
        length: u64,
    },
    /// The part cannot be made: too few other parts are whole and reachable.
    Impossible,
    /// The request is done, and its effect is durable.
    Done,
    /// The node refused or did not answer in time. A write or a deletion may have happened already,
    /// or may still happen later.
    Failed,
}

/// The facts from a manifest that the protocol needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Shape {
    /// An object in shards.
    Shards {
        /// The places where its parts belong.
        spread: Spread,
        /// Number of parts up to the end of each stage.
        stages: Vec<usize>,
    },
    /// An object whose bytes are in its manifest.
    Inline {
        /// The nodes that its manifest may be on, the best first.
        order: Vec<NodeIndex>,
    },
    /// The name was removed.
    Removed {
        /// The nodes that the mark may be on, the best first.
        order: Vec<NodeIndex>,
    },
}

/// An answered action.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// The action.
    pub action: Action,
    /// The answer.
    pub answer: Answer,
}

impl Event {
    /// Returns whether the node answered, and did not fail.
    pub fn is_done(&self) -> bool {
        self.answer != Answer::Failed
    }
}

/// Returns the same request to each of some nodes.
pub(crate) fn ask(nodes: impl IntoIterator<Item = NodeIndex>, request: Request) -> Vec<Action> {
    nodes.into_iter().map(|node| Action { node, request }).collect()
}
