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
//! [`Codec`] does this for any code ([`FAMILIES`]), over the caller's memory. The crate
//! `paritas-shards` handles files with checksums. The library has three concepts:
//!
//! - A **code** is a generator matrix over GF(2) and a placement of its cells on nodes ([`Code`]).
//! - A **schedule** is a straight-line XOR program that computes wanted cells from cells at hand.
//! - A **kernel** runs a schedule over bytes ([`Codec`], [`Kernel`]).
//!
//! Encoding, decoding, degraded reads, repair and parity updates are all one question: compute the
//! wanted cells from the cells at hand.
//!
//! # Which call for which size
//!
//! | what there is | call |
//! | --- | --- |
//! | an object, and shards of any length | [`Codec::split`], [`Codec::encode`], [`Codec::reconstruct`], [`Codec::join`] |
//! | shards in the caller's own memory, a kilobyte to a gigabyte each | [`Codec::encode`] over slices, [`Codec::reconstruct_into`] over [`Buffer`]s |
//! | many calls of a few kilobytes | a [`Prepared`] question ([`Codec::encoder`]): each call costs some tens of nanoseconds |
//! | one changed shard | [`Codec::update`] |
//! | segments of a file, laid out in lanes | [`LaneCodec`] |
//! | thousands of blocks, any of which may be lost | [`long::LongCode`] |
//! | any number of blocks; slightly more than k of them suffice | [`lt::LtEncoder`] |
//!
//! # For those who know other libraries
//!
//! | other library | its call | here |
//! | --- | --- | --- |
//! | reed-solomon-erasure | `ReedSolomon::new(k, m)` | [`Codec::new`], or the same bytes by `"backblaze:k=10,m=4".parse::<Codec>()` |
//! | | `encode(&mut shards)` | [`Codec::encode`] of data and parity |
//! | | `reconstruct(&mut shards)` | [`Codec::reconstruct`] |
//! | | `verify(&shards)` | [`Codec::verify`], which returns the nodes that disagree: `codec.verify(&shards)?.is_empty()` |
//! | reed-solomon-simd | `encode(k, m, data)` | [`Codec::encode`]; for thousands of shards [`long::LongCode::encode`] |
//! | | `decode(k, m, originals, recovery)` | [`Codec::reconstruct_into`]; [`long::LongRecovery`] |
//! | ISA-L | `gf_gen_cauchy1_matrix` | `"isal-cauchy:k=10,m=4".parse::<Codec>()` |
//! | | `ec_init_tables`, `ec_encode_data` | [`Codec::encoder`] once, then [`Prepared::run`] |
//! | | inverting a matrix for `ec_encode_data` | [`Codec::reconstructor`] once, then [`Prepared::run`] |
//!
//! # What to keep beside shards
//!
//! The bytes of shards follow from the spec of the code with all its parameters, as
//! `codec.code().spec()` tells it, and in codes over packets from the packet size,
//! [`Codec::packet`]. What such a spec means never changes. A short spec such as `10+4` stands for
//! the code that this version recommends, and a later version may recommend another.
//!
//! # Where memory may not be executed
//!
//! Kernels are compiled when a question is asked. Some systems forbid a process to execute memory
//! that it has written (hardened containers, some phones). Then kernels that were compiled ahead of
//! time run the same schedules, operation by operation. Results are the same, and nothing fails.
//! [`Codec::fallback`] tells the reason, and [`CodecOptions::kernel`] chooses such a kernel from
//! the beginning.
//!
//! # Features
//!
//! Without features the crate needs fourteen others. `research` adds the module
//! `research`: schedules as data, the passes that shorten them, searches for matrices, graphs of LT
//! codes, costs, and the kernels that repeat the papers' measurements. `serde` makes
//! kernels, passes, splits and widths storable by their names.

mod codec;
mod define;
mod error;
mod limits;
pub mod long;
pub mod lt;
mod plan;
mod run;

/// What codes are made of: cells, their places, matrices and fields; and codes that a user defines.
pub mod code {
    pub use crate::define::bitmatrix::BitMatrix;
    pub use crate::define::builder::CodeBuilder;
    pub use crate::define::cauchy::CauchyMatrix;
    pub use crate::define::cells::{Cell, CellId, CellSet, Place, Role};
    pub use crate::define::field::Field;
    pub use crate::define::matrix::{ParityMatrix, ParityPlacement};
    pub use crate::define::pin::Pin;
    pub use crate::define::spec::MAX_SPEC_BYTES;
    pub use crate::define::stages::Promotion;
    pub use crate::define::symbols::SymbolMatrix;
    pub use crate::plan::Reads;
}

/// Losses that a code survives.
pub mod erasure {
    pub use crate::define::erasure::{Losses, combinations};
    pub use crate::plan::survival::{Survival, survival, survival_with};
}

/// For comparing codes: schedules as data, and what is known about them.
#[cfg(feature = "research")]
pub mod research {
    pub use crate::codec::explain::{Call, ExplainedPart, Explanation};
    pub use crate::plan::combination::Combination;
    pub use crate::plan::cost::{Cost, Objective};
    pub use crate::plan::interpret::interpret;
    pub use crate::plan::machine::{Machine, Multiplier};
    pub use crate::plan::optimise::passes;
    pub use crate::plan::schedule::{MAX_SLOTS, Op, Schedule, Slot};
    pub use crate::plan::steps::Instructions;
    pub use crate::plan::{Account, Cut, Order, Pass, Plan, PlanOptions};
    pub use crate::run::dispatch::{Width, WordKernel, can_compile};

    /// Graphs of LT codes: how they are drawn, and how freely their blocks replace each other.
    pub mod graph {
        pub use crate::define::lt::{
            MAX_ATTEMPTS, MAX_BLOCKS, MAX_DATA_BLOCKS, Originals, Parameters, Peeling, Selection,
            Soliton, Variant,
        };
        pub use crate::plan::lt::{Balance, Freedom};
    }

    /// Searches for Cauchy matrices with short schedules.
    pub mod search {
        pub use crate::plan::search::{
            Annealing, Children, Crossover, FoundMatrix, Genetic, MAX_WIDTH, Problem, SearchLimit,
            SearchMethod, SearchProgress, search,
        };
    }
}

pub use codec::Codec;
pub use codec::lanes::LaneCodec;
pub use codec::options::{CodecOptions, DEFAULT_PACKET};
pub use codec::prepared::Prepared;
pub use define::cells::NodeId;
pub use define::code::Code;
pub use define::families::{FAMILIES, Family};
pub use define::spec::Spec;
pub use error::{Error, ErrorKind, Result};
pub use run::buffers::{Buffer, Stores};
pub use run::dispatch::{Kernel, KernelChoice};
pub use run::pages::Pages;
pub use run::threads::Split;
