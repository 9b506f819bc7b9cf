//! Paritas: erasure codes, compiled.
//!
//! Ten shards of data and four of parity survive the loss of any four:
//!
//! ```
//! let codec = paritas::Codec::new(10, 4)?;
//! let object = b"an object of any length".repeat(1000);
//! let data = codec.split(&object)?;
//! let mut parity = vec![vec![0; codec.shard_len(object.len())]; 4];
//! codec.encode(&data, &mut parity)?;
//!
//! let mut shards: Vec<Option<Vec<u8>>> = data.into_iter().chain(parity).map(Some).collect();
//! shards[3..7].fill(None);
//! codec.reconstruct(&mut shards)?;
//! assert_eq!(codec.join(&shards, object.len())?, object);
//! # Ok::<(), paritas::Error>(())
//! ```
//!
//! [`Codec`] does this for any code ([`FAMILIES`]), over the caller's memory, in calls from a
//! kilobyte to a gigabyte. The crate `paritas-shards` handles files with checksums. The library has
//! three concepts:
//!
//! - A **code** is a generator matrix over GF(2) and a placement of its cells on nodes ([`Code`]).
//! - A **schedule** is a straight-line XOR program that computes wanted cells from cells at hand
//!   ([`Schedule`]).
//! - A **kernel** runs a schedule over bytes ([`Codec`], [`Kernel`]).
//!
//! Encoding, decoding, degraded reads, repair and parity updates are all one question,
//! [`Code::schedule`].

mod codec;
mod define;
mod error;
mod limits;
mod long;
mod lt;
mod plan;
mod run;

/// Losses that a code survives.
pub mod erasure {
    pub use crate::define::erasure::{Losses, combinations};
    pub use crate::plan::survival::{Survival, survival};
}

/// Graphs of LT codes: how they are drawn, and how many blocks decoding takes.
pub mod graph {
    pub use crate::define::lt::{
        Graph, MAX_ATTEMPTS, MAX_BLOCKS, MAX_DATA_BLOCKS, Originals, Parameters, Peeling,
        Selection, Soliton, Variant,
    };
    pub use crate::plan::lt::{Balance, Decoder, Freedom, Method, Reception};
}

/// Passes that write schedules, and passes that shorten or reorder schedules.
pub mod passes {
    pub use crate::plan::optimise::{direct, fuse, matching, order, refine, slp, smart};
}

/// Searches for Cauchy matrices with short schedules.
pub mod search {
    pub use crate::plan::search::{
        Annealing, Children, Crossover, Found, Genetic, Limit, MAX_WIDTH, Method, Problem,
        Progress, search,
    };
}

pub use codec::Codec;
pub use codec::explain::{Call, ExplainedPart, Explanation};
pub use codec::lanes::LaneCodec;
pub use codec::options::{CodecOptions, DEFAULT_PACKET};
pub use codec::prepared::Prepared;
pub use define::bitmatrix::BitMatrix;
pub use define::builder::CodeBuilder;
pub use define::cauchy::CauchyMatrix;
pub use define::cells::{Cell, CellId, CellSet, NodeId, Place, Role};
pub use define::code::Code;
pub use define::families::{FAMILIES, Family};
pub use define::field::Field;
pub use define::lt::LtCode;
pub use define::matrix::{ParityMatrix, ParityPlacement};
pub use define::pin::Pin;
pub use define::spec::{MAX_SPEC_BYTES, Spec};
pub use define::stages::Promotion;
pub use define::symbols::SymbolMatrix;
pub use error::{Error, ErrorKind, Result};
pub use long::{LongCode, LongRecovery, LongSums};
pub use lt::{LtBlock, LtBlocks, LtDecoder, LtEncoder, LtInfo, LtOptions};
pub use plan::combination::Combination;
pub use plan::cost::{Cost, Objective};
pub use plan::interpret::interpret;
pub use plan::machine::{Machine, Multiplier};
pub use plan::schedule::{MAX_SLOTS, Op, Schedule, Slot};
pub use plan::steps::Instructions;
pub use plan::{Account, Cut, Order, Pass, Plan, PlanOptions, Reads};
pub use run::buffers::{Buffer, Stores};
pub use run::dispatch::{Kernel, KernelChoice, Width, WordKernel, can_compile};
pub use run::pages::Pages;
pub use run::threads::Split;
