//! LT codes: sparse random rows, drawn from a seed.
//!
//! A block is the XOR of a few of the k data blocks, its *neighbours*. Their number is drawn from a
//! [`Soliton`] distribution; which ones they are is drawn evenly. A set of somewhat more than k
//! blocks gives the data back with high probability. The code is Luby's (FOCS 2002). Uyeda, Xia and
//! Chien compared its variants for storage (*Evaluation of a high performance erasure code
//! implementation*, 2004). The variants here are theirs. That paper is called "the evaluation"
//! below, and its sections and tables are cited.
//!
//! A [`Graph`] is bipartite and sparse. It follows from [`Parameters`] to the bit on every platform
//! (`generator.rs` is the specification), so a shard stores a few numbers instead of the graph. A
//! stored object uses it through a [`Code`](crate::Code) of tolerance 0, since the losses that a
//! graph bears are a matter of chance ([`Code::graph`](crate::Code::graph)). Its rows stay sparse;
//! as a dense matrix they may have 2^36 entries. [`Peeling`] follows what received blocks
//! determine; schedules come from [`crate::plan::lt`].
//!
//! Cells are numbered as in a code that stores no data: the data blocks first, then the blocks.

mod code;
mod generator;
mod graph;
mod peeling;
mod soliton;

pub use code::{FAMILY, LtCode};
#[cfg(feature = "research")]
pub use graph::MAX_ATTEMPTS;
pub use graph::{Graph, MAX_BLOCKS};
pub use peeling::Peeling;
pub use soliton::{MAX_DATA_BLOCKS, Soliton};

/// The parameters that a graph is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// The distribution of degrees, which also determines the number of data blocks.
    pub soliton: Soliton,
    /// The number of blocks, originals included.
    pub blocks: usize,
    /// The seed.
    pub seed: u64,
    /// How the graph is built.
    pub variant: Variant,
}

/// How a graph is built: any combination of the evaluation's variants (section IV).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Variant {
    /// Whether the data blocks themselves are among the blocks.
    pub originals: Originals,
    /// How neighbours are chosen.
    pub selection: Selection,
    /// Whether graphs are drawn until one can be peeled when no block is lost.
    pub decodable: bool,
}

/// Whether the data blocks themselves are the first blocks of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Originals {
    /// All blocks are drawn.
    #[default]
    None,
    /// The data blocks come first, and no other block has degree 1 (tables 8 and 9).
    Only,
    /// The data blocks come first, and further blocks may have degree 1 (tables 12 and 13).
    AndDegreeOne,
}

/// How neighbours are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Selection {
    /// Evenly at random (Luby's).
    #[default]
    Random,
    /// Evenly at random; then each data block that is in fewer blocks than this number is added to
    /// random ones (*coverage threshold*).
    Coverage(u32),
    /// From a queue of random permutations, so that all data blocks are used equally often
    /// (*uniform coverage*).
    Uniform,
}
