//! The protocol of volumes: which version of an object counts, and what may be written and removed
//! when.
//!
//! Everything here is pure: no input, no output, no clock. `docs/volumes.md` tells the protocol and
//! why each of its rules is there.

mod quorum;
mod version;
mod view;

pub use quorum::Quorum;
pub use version::{Kind, Listed, Version};
pub use view::View;

/// The number of a node in the list of a volume's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub usize);
