//! The protocol of volumes: which version of an object counts, and what may be written and removed
//! when.
//!
//! Everything here is pure: no input, no output, no clock. A [`RunningMachine`] says what to ask
//! which node, and is told the answers; data do not pass through it. `docs/volumes.md` tells the
//! protocol and why each of its rules is there.
//!
//! - [`Put`] stores a new version of a name, or the mark of its removal.
//! - [`Get`] finds the version that counts.
//! - [`Promote`] adds the parts of a later stage to an object.
//! - [`Repair`] brings one name into order.
//! - [`Census`] finds what clients left that stopped.

mod action;
#[cfg(test)]
mod explore;
mod get;
mod machine;
mod orphans;
mod promote;
mod put;
mod quorum;
mod removal;
mod repair;
mod settling;
mod spread;
#[cfg(test)]
mod tests;
mod version;
mod view;

pub use action::{Action, Answer, Event, NodeIndex, PartIndex, Request, Shape};
pub use get::{Get, GetOutcome};
pub use machine::{NextStep, Procedure, RunningMachine};
pub use orphans::Census;
pub use promote::{Promote, PromoteOutcome};
pub use put::{Expected, NewParts, Put, PutOutcome};
pub use quorum::Quorum;
pub use repair::{Repair, RepairOutcome};
pub use spread::{PartPlaces, Spread};
pub use version::{Listed, Version, VersionKind};
pub use view::View;
