//! Volumes: erasure-coded objects over disks, hosts and buckets.
//!
//! A *volume* keeps objects on *nodes*. A node is any place that stores files under names: a
//! directory, a bucket, a folder of another host. No program of Paritas runs on it. An object is
//! cut into the shards of an erasure code. Each shard is a shard file like those of
//! [`paritas_shards`], and goes to its own node. A small *manifest*, written last, makes the object
//! visible.
//!
//! Everything that decides whether data survive is in `protocol`: state machines without input and
//! output, which a test explores exhaustively. Each verb of [`Volume`] is a job in a file of its
//! own (`put`, `find`, `get`, `repair`, `promote`, `list` and others), over the nodes in `cluster`;
//! `driver` executes what the protocol asks for, `transfer` moves blocks, and all access to storage
//! goes through [`node`]. `outside` has what comes from the system, so that a simulation can
//! replace it: the time of day, random numbers, threads that block.

pub mod config;
pub mod node;

mod claim;
mod cleaning;
mod clock;
mod cluster;
mod collect;
mod create;
mod driver;
mod edit;
mod files;
mod find;
mod flaw;
mod found;
mod get;
mod hands;
mod heartbeat;
mod hints;
mod keeper;
mod list;
mod manifest;
mod marks;
mod members;
mod names;
mod open;
mod outside;
mod overview;
mod placement;
mod plain;
mod process;
mod promote;
mod protocol;
mod put;
mod reencode;
mod repair;
mod replace;
mod resume;
mod run;
mod scrub;
mod setup;
mod shortened;
#[cfg(any(test, feature = "simulation"))]
#[doc(hidden)]
pub mod simulation;
mod stages;
mod status;
mod strangers;
mod transfer;
mod turns;
mod unfinished;
mod upload;
mod verify;
mod volume;

pub use create::create;
pub use edit::Edit;
pub use flaw::Flaw;
pub use found::{FoundObject, GetOptions};
pub use get::PieceSink;
pub use hints::Waiting;
pub use keeper::{Upkeep, keep};
pub use list::Listing;
pub use manifest::{Notes, Piece};
pub use marks::NodeTrouble;
pub use names::ObjectName;
pub use overview::Overview;
pub use paritas_store::error::{Error, ErrorKind, Result};
pub use paritas_store::place::source::SteadyFile;
pub use paritas_store::state::State;
pub use placement::Member;
pub use plain::{Pattern, PlainFiles};
pub use promote::Repaired;
pub use protocol::{Expected, Listed, Version, VersionKind};
pub use put::{PutOptions, PutReport, RemoveReport};
pub use reencode::Reencoded;
pub use replace::Filled;
pub use resume::PiecewisePut;
pub use run::{Runner, run, run_apart, run_until_told};
pub use scrub::{FullPass, Scrub, ScrubPass, ScrubStatus};
pub use setup::{Rate, Setup};
pub use status::{NodeStatus, VolumeStatus};
pub use upload::{PutPiece, StoredPiece, Upload};
pub use verify::Verdict;
pub use volume::Volume;
