//! The codec: a code over shards in memory.
//!
//! Objects and shards are what most callers have ([`Codec::split`], [`Codec::encode`],
//! [`Codec::reconstruct`], [`Codec::verify`], [`Codec::join`], in `objects`). Below them, whatever is
//! asked is [`Codec::compute`]: which cells are at hand, which are wanted, and the buffers. The schedule
//! for a question is planned and compiled once and kept.

mod cache;
mod engine;
pub(crate) mod explain;
pub(crate) mod lanes;
mod objects;
pub(crate) mod options;
pub(crate) mod prepared;
mod shards;
mod stages;

use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use crate::codec::cache::Question;
use crate::codec::engine::Engine;
use crate::codec::explain::{Call, Explanation};
use crate::codec::options::CodecOptions;
use crate::codec::prepared::Prepared;
use crate::codec::shards::Shards;
use crate::define::cells::{CellId, CellSet, NodeId, Role};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::layout::BufferLayout;
use crate::run::buffers::Buffer;
use crate::run::dispatch::Kernel;

/// Encodes and reconstructs the shards of one code, in memory.
///
/// ```
/// use paritas::Codec;
///
/// let codec = Codec::new(10, 4)?;
/// let object = b"ten shards of data and four of parity".repeat(1000);
/// let data = codec.split(&object)?;
/// let mut parity = vec![vec![0; codec.shard_len(object.len())]; 4];
/// codec.encode(&data, &mut parity)?;
///
/// let mut shards: Vec<Option<Vec<u8>>> = data.into_iter().chain(parity).map(Some).collect();
/// shards[3..7].fill(None); // any four of fourteen
/// codec.reconstruct(&mut shards)?;
/// assert_eq!(codec.join(&shards, object.len())?, object);
/// # Ok::<(), paritas::Error>(())
/// ```
///
/// Shards that are the caller's memory are [`Buffer`]s ([`Codec::reconstruct_into`]), and whoever makes
/// many small calls keeps a [`Prepared`] one ([`Codec::encoder`]). Other codes have names, and how
/// a code is run is said by options:
///
/// ```
/// use paritas::{Codec, CodecOptions};
/// let raid: Codec = "rdp:k=6".parse()?;
/// assert_eq!(raid.code().node_count(), 8);
/// let codec = Codec::with_options("20+4".parse()?, CodecOptions::default().threads(1))?;
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug)]
pub struct Codec {
    engine: Engine,
    encoding: Encoding,
}

impl Codec {
    /// A codec for `k` shards of data and `m` of parity, of which any `m` may be lost: the code
    /// `K+M`, which is Cauchy Reed-Solomon with the fewest XORs that are known.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Parameters`] if `k` or `m` is 0 or there are too many nodes.
    pub fn new(k: usize, m: usize) -> Result<Self> {
        format!("{k}+{m}").parse()
    }

    /// A codec for any code.
    ///
    /// # Errors
    /// If the packet is empty or larger than 2^30 bytes, or the processor lacks the kernel.
    pub fn with_options(code: Code, options: CodecOptions) -> Result<Self> {
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

    /// How the code is run.
    pub fn options(&self) -> &CodecOptions {
        &self.engine.options
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
    pub fn encode<D: AsRef<[u8]>, P: AsMut<[u8]>>(
        &self,
        data: &[D],
        parity: &mut [P],
    ) -> Result<()> {
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

    /// Makes the shards that are [`Buffer::Target`] from those that are [`Buffer::Source`], in the
    /// caller's memory, all stages being done.
    ///
    /// # Errors
    /// As [`Codec::compute`].
    pub fn reconstruct_into(&self, nodes: &mut [Buffer<'_>]) -> Result<()> {
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

    /// Runs a plan that somebody else has written, once it is proved to make the cells that it
    /// says. Buffers with cells that it makes are [`Buffer::Target`], others with cells that it reads
    /// [`Buffer::Source`]; the rest may be absent. It is compiled once and kept, as a question is.
    ///
    /// ```
    /// use paritas::{Buffer, Codec, CodecOptions, Plan};
    /// let codec = Codec::new(2, 1)?;
    /// let cells = |node: usize| codec.code().node_cells(paritas::NodeId::new(node)).to_vec();
    /// assert_eq!(cells(0).len(), 2); // two packets a strip
    /// let schedule = "inputs 4 temps 0 outputs 2\no0 = i0 ^ i2\no1 = i1 ^ i3\n".parse()?;
    /// let plan = Plan::new(schedule, [cells(0), cells(1)].concat(), cells(2))?;
    /// let mut parity = vec![0; 256];
    /// codec.run(&plan, &mut [
    ///     Buffer::Source(&[1; 256]), Buffer::Source(&[2; 256]), Buffer::Target(&mut parity),
    /// ])?;
    /// assert_eq!(parity, [3; 256]);
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::ErrorKind::Schedule`] if the plan makes a cell wrong, names cells that the code does not have,
    /// or is for words; [`crate::ErrorKind::Length`] if the buffers do not fit.
    pub fn run(&self, plan: &Plan, buffers: &mut [Buffer<'_>]) -> Result<()> {
        let buffers = buffers.iter_mut().map(Buffer::reborrow).enumerate();
        self.engine.answer(&Question::Plan(Arc::new(plan.clone())), buffers)
    }

    fn expect_count(&self, what: &str, given: usize, needed: usize) -> Result<()> {
        if given == needed {
            return Ok(());
        }
        let spec = self.code().spec();
        Err(Error::length(format!("{spec}: {what} shards must be {needed}; got {given}")))
    }
}

impl FromStr for Codec {
    type Err = Error;

    /// A codec for the code of a name, with default options.
    fn from_str(text: &str) -> Result<Self> {
        Self::with_options(text.parse()?, CodecOptions::default())
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
