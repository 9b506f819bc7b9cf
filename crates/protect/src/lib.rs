//! Protection: parity beside files that stay where they are.
//!
//! [`protect`] reads files and folders and writes *parity files* beside them, or elsewhere; it
//! never changes what it protects. [`find`] reads what was protected, [`verify`] says what is
//! damaged and whether it can be repaired, [`repair`] makes it whole again, and [`update()`] brings
//! the protection up to date after changes.
//!
//! ```
//! use paritas_protect::{ProtectJob, RepairJob, State, VerifyOptions};
//! # let folder = tempfile::tempdir()?;
//! # let photos = folder.path().join("photos");
//! # std::fs::create_dir(&photos)?;
//! # std::fs::write(photos.join("a.jpg"), [7; 100_000])?;
//! # std::fs::write(photos.join("b.jpg"), [9; 1_000])?;
//! let plan = paritas_protect::plan(&ProtectJob::new(vec![photos.clone()]))?;
//! paritas_protect::protect(&plan, &|_| {})?;
//! std::fs::remove_file(photos.join("b.jpg"))?;
//!
//! let found = paritas_protect::find(&[photos.clone()])?;
//! let report = paritas_protect::verify(&found[0], &VerifyOptions::default(), &|_| {})?;
//! assert_eq!(report.status, State::Repairable);
//! paritas_protect::repair(&found[0], &RepairJob::default(), &|_| {})?;
//! assert_eq!(std::fs::read(photos.join("b.jpg"))?, [9; 1_000]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All files form one stream of bytes, without anything between them. The stream is cut into blocks
//! (`geometry.rs`), over which one long code makes parity blocks. With P parity blocks, any damage
//! to at most P blocks is repaired, wherever it is: flipped bits, lost files and folders, lost
//! parity files. `format.rs` has the bytes of parity files, and `catalogue.rs` those of the
//! catalogue, which says what is protected.

mod access;
mod aside;
mod catalogue;
mod coding;
mod create;
mod details;
mod digest;
mod evidence;
mod exclude;
mod find;
mod folding;
mod format;
mod geometry;
mod label;
mod mounts;
mod parity;
mod paths;
mod percent;
mod pieces;
mod repair;
mod restore;
mod restored;
mod scan;
mod sparse;
mod stream;
mod times;
mod tree;
mod trouble;
mod update;
mod verify;

pub use catalogue::FOLDER;
pub use create::{
    ParityCost, ProtectJob, ProtectPlan, ProtectReport, default_memory, plan, protect,
};
pub use evidence::FileState;
pub use find::{
    IsWanted, Other, Protection, find, find_among, has_parity, holds_parity, parity_at,
};
pub use format::Id;
pub use geometry::{Redundancy, StreamGeometry};
pub use paritas_store::error::{Error, ErrorKind, Result};
pub use paritas_store::place::space::DiskNeed;
pub use paritas_store::state::State;
pub use repair::{RepairJob, RepairReport, repair};
pub use restored::is_list_of_restored;
pub use tree::Skipped;
pub use update::{
    ChangedFiles, Share, UpdateJob, UpdatePlan, UpdateReport, Updated, plan_update, update,
};
pub use verify::{
    FileFinding, LayerReport, ParityFinding, Protected, VerifyOptions, VerifyReport, verify,
};
