//! Objects and their shard files.
//!
//! [`mod@format`] is the byte layout. Everything else follows the flow of data: [`encode`] writes
//! shard files, [`scan`] recognises them, [`promote`] adds the parts of a later stage of their
//! code, and [`verify`], [`decode`] and [`repair`] read them. All of these cut an object into
//! segments that threads share (`crew`). Each thread has the memory of one segment, whose size does
//! not depend on the object's.

pub mod format;

mod aside;
pub(crate) mod attributes;
mod choose;
mod crew;
mod decode;
mod encode;
mod folders;
mod geometry;
mod leftovers;
mod lock;
mod names;
mod object;
mod open_files;
pub(crate) mod place;
pub(crate) mod positional;
mod promote;
mod rateless;
mod rebalance;
mod rebuild;
mod recognise;
mod repair;
mod segment;
mod sources;
mod unread;
mod verify;
mod wrecks;

pub use aside::AsideFile;
pub use attributes::{Attributes, Owner, Timestamp};
pub use decode::{DecodeReport, DecodeTarget, Preserve, decode};
pub use encode::{EncodeJob, EncodeReport, Expectation, Preparation, encode};
pub use folders::{BetterSpread, FolderShards, Placement};
pub use format::{Digest, ObjectId};
pub use geometry::{DEFAULT_BLOCK_BYTES, Part};
pub use leftovers::{Leftover, LeftoverState, leftovers_of};
pub use object::{Ignored, Inventory, Object, scan, scan_with};
pub use place::MovedAside;
pub use promote::{AddedPart, PromoteJob, PromoteReport, promote};
pub use rateless::{ReceptionReport, reception, reception_key};
pub use rebalance::{MovedShard, RebalanceReport, rebalance};
pub use recognise::ShardFile;
pub use repair::{RepairJob, RepairReport, RepairedShard, repair};
pub use sources::FileReport;
pub use verify::{
    DigestCheck, ShardReport, ShardState, Status, VerifyReport, WrongLane, verify, verify_deep,
};
pub use wrecks::Wreck;

/// A function that is told, from any thread, the number of bytes done since it was last called.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);
