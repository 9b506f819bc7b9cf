//! Paritas: erasure codes, compiled.
//!
//! - A **code** is a generator matrix over GF(2) and a placement of its cells on nodes
//!   ([`Code`]).
//! - A **schedule** is a straight-line XOR program that computes wanted cells from cells at hand
//!   ([`Schedule`]).
//! - A **kernel** runs a schedule over bytes ([`Codec`], [`Kernel`]).
//!
//! Encoding, decoding, degraded reads, repair and parity updates are all one question,
//! [`Code::schedule`]. The modules below stand in the order in which data flows.

pub mod define;
pub mod plan;

mod codec;
mod error;
mod limits;
mod lt;
mod run;

pub use codec::Codec;
pub use codec::explain::{Call, ExplainedPart, Explanation};
pub use codec::lanes::LaneCodec;
pub use codec::options::{CodecOptions, DEFAULT_PACKET};
pub use codec::prepared::Prepared;
pub use define::builder::CodeBuilder;
pub use define::cauchy::CauchyMatrix;
pub use define::cells::{Cell, CellId, CellSet, NodeId, Place, Role};
pub use define::code::Code;
pub use define::families::{FAMILIES, Family};
pub use define::lt::LtCode;
pub use define::pin::Pin;
pub use define::spec::Spec;
pub use define::stages::Promotion;
pub use define::symbols::SymbolMatrix;
pub use error::{Error, ErrorKind, Result};
pub use lt::{LtBlock, LtBlocks, LtDecoder, LtEncoder, LtInfo, LtOptions};
pub use plan::combination::Combination;
pub use plan::cost::{Cost, Objective};
pub use plan::schedule::{Op, Schedule, Slot};
pub use plan::search;
pub use plan::{Account, Cut, Order, Pass, Plan, PlanOptions, Reads};
pub use run::buffers::{Buffer, Stores};
pub use run::dispatch::{Kernel, KernelChoice, WordKernel, can_compile};
pub use run::pages::Pages;
pub use run::threads::Split;
