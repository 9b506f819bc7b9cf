//! The codec: a code, its schedules and a kernel, ready to run over memory.
//!
//! Whatever is asked, the answer is [`Codec::compute`]: cells at hand, cells wanted, buffers. The
//! schedule for a question is planned and compiled once and kept. [`Codec::encode`],
//! [`Codec::reconstruct`] and [`Codec::update`] say the same in the words of their use.

mod cache;
mod engine;
pub(crate) mod explain;
pub(crate) mod lanes;
pub(crate) mod options;
pub(crate) mod prepared;
mod shards;
mod stages;

use std::sync::OnceLock;

use crate::codec::cache::Question;
use crate::codec::engine::Engine;
use crate::codec::explain::{Call, Explanation};
use crate::codec::options::CodecOptions;
use crate::codec::prepared::Prepared;
use crate::codec::shards::Shards;
use crate::define::cells::{CellId, CellSet, NodeId, Role};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::plan::layout::BufferLayout;
use crate::run::buffers::Buffer;
use crate::run::dispatch::Kernel;
use crate::run::threads::Split;

/// A code that can be run.
///
/// ```
/// use paritas::{Code, Codec, CodecOptions};
/// let codec = Codec::new(Code::new(&"4+2".parse()?)?, CodecOptions::default())?;
/// let strip = codec.strip(); // every shard is a whole number of strips
/// let data = vec![vec![7_u8; 10 * strip]; 4];
/// let mut parity = vec![vec![0_u8; 10 * strip]; 2];
/// let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
/// let mut targets: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
/// codec.encode(&data, &mut targets)?;
///
/// // Nodes 0 and 3 are lost; any four of six are enough.
/// use paritas::Buffer::{Source, Target};
/// let (mut first, mut last) = (vec![0; 10 * strip], vec![0; 10 * strip]);
/// codec.reconstruct(&mut [
///     Target(&mut first), Source(data[1]), Source(data[2]), Target(&mut last),
///     Source(&parity[0]), Source(&parity[1]),
/// ])?;
/// assert_eq!((&first[..], &last[..]), (data[0], data[3]));
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug)]
pub struct Codec {
    engine: Engine,
    encoding: Encoding,
}

impl Codec {
    /// A codec for a code.
    ///
    /// # Errors
    /// If the packet is empty or larger than 2^30 bytes, or the kernel is not available.
    pub fn new(code: Code, options: CodecOptions) -> Result<Self> {
        let encoding = Encoding::new(&code);
        Ok(Self { engine: Engine::new(code, options, BufferLayout::Node)?, encoding })
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.engine.code
    }

    /// The bytes of a packet.
    pub fn packet(&self) -> usize {
        self.engine.options.packet
    }

    /// How threads share a call's work.
    pub fn split(&self) -> Split {
        self.engine.options.split
    }

    /// The name of the kernel that runs, in either layout; for blocks of an LT code the tiled one.
    pub fn kernel_name(&self) -> &'static str {
        self.engine.kernel_name()
    }

    /// The kernel that runs in the packet layout.
    pub fn kernel(&self) -> Kernel {
        self.engine.kernel()
    }

    /// Why another kernel had to serve than [`Codec::kernel`], if that has happened: the system
    /// forbids executable memory, or compiled code was found to compute wrong.
    pub fn fallback(&self) -> Option<String> {
        self.engine.fallback()
    }

    /// The bytes of the largest strip: what a shard grows by from one whole stripe to the next. In
    /// the word layout a strip is one word.
    ///
    /// A shard need not be a whole number of strips. A buffer of `rows` rows may have any multiple
    /// of `rows` bytes; what is left behind the last whole strip is a strip of shorter packets.
    pub fn strip(&self) -> usize {
        match self.code().symbols() {
            Some(symbols) => symbols.field().width() as usize / 8,
            None => self.engine.layout.widest() * self.packet(),
        }
    }

    /// The number of buffers of [`Codec::compute`]: one a node, and one for each data cell that is
    /// stored nowhere.
    pub fn buffer_count(&self) -> usize {
        self.engine.layout.cells.len()
    }

    /// The cells of a buffer by row. A buffer has `rows · length` bytes, where `length` is the same
    /// for all buffers; in the word layout, `length` bytes.
    ///
    /// # Panics
    /// When there is no such buffer.
    pub fn buffer_cells(&self, buffer: usize) -> &[CellId] {
        &self.engine.layout.cells[buffer]
    }

    /// Makes the cells of `want` from those of `have`. Buffers with wanted cells are
    /// [`Buffer::Target`], others that are read [`Buffer::Source`]; the rest may be absent.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] when some wanted cells are not determined,
    /// [`crate::ErrorKind::Length`] when the buffers do not fit.
    pub fn compute(
        &self,
        have: &CellSet,
        want: &CellSet,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        self.engine.compute(have, want, buffers)
    }

    /// Whether the cells of `want` can be made from those of `have`. The schedule is planned and
    /// kept, so that asking costs nothing when it is run afterwards.
    pub fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        self.engine.solvable(have, want)
    }

    /// What [`Codec::compute`] runs, to be read: once the program has been compiled. Until then, and
    /// where nothing may be compiled, the tiled kernel runs the schedule as it was planned,
    /// operation by operation.
    ///
    /// # Errors
    /// As [`Codec::compute`].
    pub fn explain(&self, have: &CellSet, want: &CellSet, call: &Call) -> Result<Explanation> {
        self.engine.explain(have, want, call)
    }

    /// Makes all parity from all data: `data` and `parity` are the shards of the nodes that hold
    /// data and of those that do not, in node order. In a code of several stages that is the parity of
    /// the first, and the nodes are those that stand then; the rest is for [`Codec::promote`].
    ///
    /// # Errors
    /// When a count or length is wrong. Codes with data and parity on one node are encoded by
    /// [`Codec::encode_nodes`].
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<()> {
        if let Some(prepared) = self.encoding.prepared.get() {
            return prepared.run(data, parity);
        }
        let prepared = self.encoder()?;
        self.encoding.prepared.get_or_init(|| prepared).run(data, parity)
    }

    /// Makes all parity from all data, in shards that hold both: `nodes` are all shards, their
    /// parity rows are overwritten. In a code of several stages they are those that stand after the
    /// first, whose parity is made; later rows are left alone.
    ///
    /// # Errors
    /// When a count or length is wrong.
    pub fn encode_nodes(&self, nodes: &mut [&mut [u8]]) -> Result<()> {
        let standing = &self.encoding.standing;
        self.expect_count("node", nodes.len(), standing.len())?;
        let nodes = nodes.iter_mut().map(|node| Buffer::Target(node));
        let numbers = standing.iter().map(|node| node.index());
        self.engine.answer(&self.encoding.question, numbers.zip(nodes))
    }

    /// Makes the shards that are [`Buffer::Target`] from those that are [`Buffer::Source`], all stages
    /// being done.
    ///
    /// # Errors
    /// As [`Codec::compute`].
    pub fn reconstruct(&self, nodes: &mut [Buffer<'_>]) -> Result<()> {
        self.reconstruct_at(self.code().stages(), nodes)
    }

    /// Brings parity up to date after the data shard of `node` changed from `old` to `new`, in
    /// place. `parity` are the shards of the nodes that hold no data, in node order, all stages
    /// being done.
    ///
    /// # Errors
    /// When the node holds no data, or a count or length is wrong.
    pub fn update(
        &self,
        node: NodeId,
        old: &[u8],
        new: &[u8],
        parity: &mut [&mut [u8]],
    ) -> Result<()> {
        self.updater(node)?.run(&[old, new], parity)
    }

    /// Encoding, prepared: sources are the shards of the nodes that hold data, targets those of the
    /// nodes that do not, in node order, as for [`Codec::encode`].
    ///
    /// # Errors
    /// If a node holds data and parity.
    pub fn encoder(&self) -> Result<Prepared> {
        let (sources, targets) = self.encoding.shards.split(self.code())?;
        self.engine.prepared(&self.encoding.question, &numbers(sources), &numbers(targets))
    }

    /// The reconstruction of lost nodes, prepared: sources are the shards of `present`, targets those
    /// of `lost`, in the order given. Shards that turn out not to be needed are passed all the same.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if the lost nodes are not determined.
    pub fn reconstructor(&self, present: &[NodeId], lost: &[NodeId]) -> Result<Prepared> {
        let nodes = self.code().node_count();
        if let Some(node) = present.iter().chain(lost).find(|node| node.index() >= nodes) {
            let (spec, node) = (self.code().spec(), node.index());
            return Err(Error::parameters(format!(
                "{spec} has nodes 0 to {}; got {node}",
                nodes - 1
            )));
        }
        let cells = |nodes: &[NodeId]| self.code().cells_of(nodes.iter().copied());
        let question = Question::compute(&cells(present), &cells(lost));
        self.engine.prepared(&question, &numbers(present), &numbers(lost))
    }

    /// The update of parity after the data shard of `node` changed, prepared: sources are the old and
    /// the new shard, targets the shards of the nodes that hold no data, in node order, which are
    /// changed in place.
    ///
    /// # Errors
    /// If the node holds no data, or a node holds data and parity.
    pub fn updater(&self, node: NodeId) -> Result<Prepared> {
        let shards = Shards::new(self.code(), self.code().stages());
        let (sources, targets) = shards.split(self.code())?;
        if sources.binary_search(&node).is_err() {
            return Err(Error::length(format!("node {} holds no data", node.index())));
        }
        let targets: Vec<usize> = (2..).take(targets.len()).collect();
        self.engine.prepared(&Question::Update(node), &[0, 1], &targets)
    }

    fn expect_count(&self, what: &str, given: usize, needed: usize) -> Result<()> {
        if given == needed {
            return Ok(());
        }
        let spec = self.code().spec();
        Err(Error::length(format!("{spec} needs {needed} {what} shards, {given} are given")))
    }
}

fn numbers(nodes: &[NodeId]) -> Vec<usize> {
    nodes.iter().map(|node| node.index()).collect()
}

/// What encoding a code takes, found once.
#[derive(Debug)]
struct Encoding {
    question: Question,
    /// The nodes that stand then.
    standing: Vec<NodeId>,
    shards: Shards,
    /// The question prepared, once it has been asked.
    prepared: OnceLock<Prepared>,
}

impl Encoding {
    fn new(code: &Code) -> Self {
        let question = Question::compute(&code.stored(Role::Data), &code.made_in(1));
        let (standing, shards) = (code.nodes_at(1), Shards::new(code, 1));
        Self { question, standing, shards, prepared: OnceLock::new() }
    }
}
