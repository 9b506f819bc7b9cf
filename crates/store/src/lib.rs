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
//! use paritas_store::{DecodeTarget, EncodeJob, decode, encode, leftovers_of, scan};
//! # let directory = tempfile::tempdir()?;
//! # let shards = directory.path().to_path_buf();
//! let job = EncodeJob::new(paritas::Code::new(&"4+2".parse()?)?, "hello", vec![shards.clone()]);
//! let report = encode(&job, &b"hello, world"[..], &|_| {})?;
//! std::fs::remove_file(&report.shards[0])?;
//! std::fs::remove_file(&report.shards[3])?;
//!
//! let inventory = scan(&[shards.clone()]);
//! let target = DecodeTarget::file(shards.join("hello"));
//! decode(&inventory.objects[0], target, 0, &|_| {})?;
//! assert_eq!(std::fs::read(shards.join("hello"))?, b"hello, world");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate is for Unix systems: names are bytes, and shards are read and written at positions
//! from several threads at once.

mod error;
pub mod foreign;
pub mod shard;
mod shown;
mod system;

pub use error::{Error, ErrorKind, Result};
pub use shard::{
    AddedPart, AsideFile, Attributes, BetterSpread, DEFAULT_BLOCK_BYTES, DecodeReport,
    DecodeTarget, Digest, DigestCheck, EncodeJob, EncodeReport, Expectation, FileReport,
    FolderShards, Ignored, Inventory, Leftover, LeftoverState, MovedAside, MovedShard, Object,
    ObjectId, Owner, Part, Placement, Preparation, Preserve, Progress, PromoteJob, PromoteReport,
    RebalanceReport, ReceptionReport, RepairJob, RepairReport, RepairedShard, ShardFile,
    ShardReport, ShardState, Status, Timestamp, VerifyReport, Wreck, WrongLane, decode, encode,
    leftovers_of, promote, rebalance, reception, reception_key, repair, scan, scan_with, verify,
    verify_deep,
};
pub use shown::{Shown, counted, shown};
