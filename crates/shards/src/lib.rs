//! Shard files: erasure-coded objects on disk.
//!
//! An *object* is a file or the bytes of a pipe. [`encode`] cuts it into *segments*, encodes each
//! with a [`paritas::Code`], and writes one *shard file* for every node of the code. A shard file
//! describes itself completely. So [`scan`] recognises shards by their content, whatever their
//! names are, and gathers them into [`Object`]s. From there [`verify`] finds damage, [`decode`]
//! gives the object back, and [`repair`] makes every shard whole again. [`foreign`] turns other
//! tools' fragments into shards, and shards into such fragments.
//!
//! ```
//! use paritas_shards::{EncodeJob, FileTarget, decode, encode, scan};
//! # let directory = tempfile::tempdir()?;
//! # let shards = directory.path().to_path_buf();
//! let job = EncodeJob::new(paritas::Code::new(&"4+2".parse()?)?, "hello", vec![shards.clone()]);
//! let report = encode(&job, &b"hello, world"[..], &|_| {})?;
//! std::fs::remove_file(&report.shards[0])?;
//! std::fs::remove_file(&report.shards[3])?;
//!
//! let inventory = scan(&[shards.clone()]);
//! let target = FileTarget::new(shards.join("hello"));
//! decode(&inventory.objects[0], target, None, &|_| {})?;
//! assert_eq!(std::fs::read(shards.join("hello"))?, b"hello, world");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The differences between Linux, macOS and Windows are handled in
//! [`paritas_store::place::system`].

pub mod foreign;

mod aside;
mod choose;
mod decode;
mod encode;
mod folders;
mod inventory;
mod leftovers;
mod level;
mod object;
mod place;
mod placement;
mod promote;
mod rateless;
mod rebalance;
mod rebuild;
mod recognise;
mod repair;
mod scan;
mod sources;
mod targets;
mod unread;
mod verify;
mod wrecks;

pub use aside::AsideFile;
pub use decode::{DecodeReport, DecodeTarget, FileTarget, Output, Preserve, decode};
pub use encode::{DEFAULT_CODE, EncodeJob, EncodeReport, Expectation, Preparation, encode};
pub use folders::{BetterSpread, FolderShards, Placement};
pub use inventory::{Ignored, Inventory};
pub use leftovers::{Leftover, LeftoverState};
pub use object::Object;
pub use paritas_store::error::{Error, ErrorKind, Result};
pub use paritas_store::object::format::{Digest, ObjectId};
pub use paritas_store::object::geometry::{DEFAULT_BLOCK_BYTES, Part};
pub use paritas_store::object::pieces::PieceDigest;
pub use paritas_store::place::attributes::{Attributes, Owner, Timestamp};
pub use paritas_store::place::from_disk::forget_cached;
pub use paritas_store::place::source::FileSource;
pub use paritas_store::place::system::{drop_cached, sync_directory};
pub use paritas_store::progress::Progress;
pub use paritas_store::shown::{Shown, counted, shown};
pub use paritas_store::staging::MovedAside;
pub use paritas_store::state::State;
pub use promote::{AddedPart, PromoteJob, PromoteReport, promote};
pub use rateless::{ReceptionReport, likely_tolerance, reception, reception_key};
pub use rebalance::{MovedShard, RebalanceReport, rebalance};
pub use recognise::ShardFile;
pub use repair::{RepairJob, RepairReport, RepairedShard, repair, shard_name};
pub use scan::{leftovers_of, scan, scan_with};
pub use sources::FileReport;
pub use verify::{
    DigestCheck, ShardReport, ShardState, VerifyReport, WrongLane, verify, verify_deep,
};
pub use wrecks::Wreck;
