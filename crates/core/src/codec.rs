//! The codec: a code over shards in memory.
//!
//! Most callers work with objects and shards ([`Codec::split`], [`Codec::encode`],
//! [`Codec::reconstruct`], [`Codec::verify`], [`Codec::join`], in `objects`). Each of these calls
//! comes down to [`Codec::compute`], which takes the cells at hand, the cells that are wanted, and
//! the buffers. At first a question is answered without a plan. Once it has been asked about many
//! bytes, it is planned and compiled, and its program is kept (`answer`).

mod answer;
mod cache;
mod engine;
#[cfg(feature = "research")]
pub(crate) mod explain;
pub(crate) mod lanes;
mod objects;
pub(crate) mod options;
pub(crate) mod prepared;
mod question;
mod setup;
mod shards;
mod stages;

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use crate::codec::engine::Engine;
#[cfg(feature = "research")]
use crate::codec::explain::{Call, Explanation};
use crate::codec::options::CodecOptions;
use crate::codec::prepared::Prepared;
use crate::codec::question::Question;
use crate::codec::shards::StageNodes;
use crate::define::cells::{CellId, CellSet, NodeId, Role};
use crate::define::code::Code;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::Plan;
use crate::plan::combination::Change;
use crate::plan::layout::BufferLayout;
use crate::run::buffers::Buffer;
use crate::run::dispatch::Kernel;
use crate::run::threads::Split;

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
/// To work in the caller's own memory, pass shards as [`Buffer`]s ([`Codec::reconstruct_into`]). To
/// make many small calls, keep a [`Prepared`] question ([`Codec::encoder`]). Other codes are
/// created by name, and options say how a code is run:
///
/// ```
/// use paritas::{Codec, CodecOptions};
/// let raid: Codec = "rdp:k=6".parse()?;
/// assert_eq!(raid.code().node_count(), 8);
/// let codec = Codec::with_options("20+4".parse()?, CodecOptions::default().threads(1))?;
/// # Ok::<(), paritas::Error>(())
/// ```
///
/// Make one codec and keep it. A question (encoding, and every pattern of losses) that is asked for
/// the first time runs at once, without a plan. (Codes over words of 16 and 32 bits, LT codes and
/// updates are planned at once: the first call takes some milliseconds, of the widest codes
/// seconds.) Once a question has been asked about half a
/// megabyte of each shard, it is planned and compiled, which takes about a millisecond for usual
/// codes, and runs up to several times as fast from then on; the programs are kept. Several threads
/// may call a codec at once, and a call uses all processors where that pays
/// ([`CodecOptions::threads`]). Each thread that computes keeps up to 8 MiB of scratch for its next
/// call.
pub struct Codec {
    engine: Engine,
    encoding: PreparedEncoding,
}

impl Codec {
    /// Creates a codec for `k` shards of data and `m` shards of parity. Any `m` of these k + m
    /// shards may be lost. Its code is `K+M`: Cauchy Reed-Solomon with the fewest XORs known. If
    /// k·m is at least 300, m at least 2 and k + m at most 256, the code is `backblaze` instead,
    /// which transforms compute faster.
    ///
    /// # Errors
    /// If `k` or `m` is 0, or if the code is too large ([`crate::ErrorKind::Parameters`]). The
    /// limits are 65,536 nodes and k·m·w² = 2^25, where w is the smallest number with k + m ≤ 2^w:
    /// 500 + 500 shards are possible, 600 + 600 are not.
    pub fn new(k: usize, m: usize) -> Result<Self> {
        format!("{k}+{m}").parse()
    }

    /// Creates a codec for any code.
    ///
    /// # Errors
    /// If the packet is empty or larger than 2^30 bytes, or if the processor lacks the kernel.
    pub fn with_options(code: Code, options: CodecOptions) -> Result<Self> {
        let encoding = PreparedEncoding::new(&code);
        Ok(Self { engine: Engine::new(code, options, BufferLayout::Node)?, encoding })
    }

    /// Returns the code.
    pub fn code(&self) -> &Code {
        &self.engine.setup.code
    }

    /// Returns the number of shards with data, k. In codes whose nodes hold data and parity, that
    /// is the number of all shards.
    pub fn data_shards(&self) -> usize {
        self.code().nodes().filter(|&node| self.code().holds_data(node)).count()
    }

    /// Returns the number of shards that hold no data, m, after all stages of the code.
    pub fn parity_shards(&self) -> usize {
        self.code().node_count() - self.data_shards()
    }

    /// Returns the unit of a data shard's length, in bytes: every length must be a multiple of it.
    /// The unit is the shard's number of rows or, in the word layout, the bytes of a word.
    pub fn shard_unit(&self) -> usize {
        self.shard_len(1)
    }

    /// Returns the bytes of a packet.
    pub fn packet(&self) -> usize {
        self.engine.setup.options.packet
    }

    /// Returns the options: how the code is run.
    pub fn options(&self) -> &CodecOptions {
        &self.engine.setup.options
    }

    /// Returns the name of the kernel that runs, in either layout: that of the tiled kernel for
    /// blocks of an LT code, and where the chosen kernel could not run some program so far
    /// ([`Codec::fallback`]).
    pub fn kernel_name(&self) -> &'static str {
        self.engine.kernel_name()
    }

    /// Returns the kernel that runs in the packet layout.
    pub fn kernel(&self) -> Kernel {
        self.engine.setup.kernel()
    }

    /// Returns why [`Codec::kernel`] cannot run some program; `None` if it has run all programs so
    /// far. Possible reasons: the system forbids executable memory, the check of compiled code
    /// found a wrong result, or the program cannot be compiled (its packets are not whole
    /// registers, for example). The tiled kernel with the same registers then runs instead.
    pub fn fallback(&self) -> Option<String> {
        self.engine.fallback()
    }

    /// Returns how threads share the work of the questions so far: as [`CodecOptions::split`] says,
    /// or by stripe. Some work can only be split by stripe: a single node or row, a packet of one
    /// cache line, an update, and all work of one thread.
    pub fn split_in_use(&self) -> Split {
        self.engine.split_in_use()
    }

    /// Returns the bytes of the largest strip, by which a shard grows from one whole stripe to the
    /// next. In the word layout a strip is one word.
    ///
    /// A shard need not be a whole number of strips. A buffer of `rows` rows may have any multiple
    /// of `rows` bytes; the bytes after the last whole strip form a strip of shorter packets.
    pub fn strip(&self) -> usize {
        match self.code().symbols() {
            Some(symbols) => symbols.field().width() as usize / 8,
            None => self.engine.setup.layout.widest() * self.packet(),
        }
    }

    /// Returns the number of buffers of [`Codec::compute`]: one for each node, and one for each
    /// data cell that is stored nowhere.
    pub fn buffer_count(&self) -> usize {
        self.engine.setup.layout.cells.len()
    }

    /// Returns the cells of a buffer by row. A buffer has `rows · length` bytes, where `length` is
    /// the same for all buffers; in the word layout, `length` bytes.
    ///
    /// # Panics
    /// If there is no such buffer.
    pub fn buffer_cells(&self, buffer: usize) -> &[CellId] {
        &self.engine.setup.layout.cells[buffer]
    }

    /// Computes the cells of `want` from those of `have`. Buffers with wanted cells are
    /// [`Buffer::Target`], and other buffers that are read are [`Buffer::Source`]; the rest may be
    /// absent. If `buffers` is shorter than [`Codec::buffer_count`], the remaining buffers are
    /// absent; if it is longer, the rest is ignored.
    ///
    /// # Errors
    /// If the cells of `have` do not determine all wanted cells ([`crate::ErrorKind::NotEnough`]);
    /// if the code lacks a cell of either set, or if no buffer holds a cell that is read or
    /// computed ([`crate::ErrorKind::Parameters`]); or if the buffers do not fit
    /// ([`crate::ErrorKind::Buffers`], [`crate::ErrorKind::Length`]).
    pub fn compute(
        &self,
        have: &CellSet,
        want: &CellSet,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        self.engine.compute(have, want, buffers)
    }

    /// Returns whether the cells of `want` can be computed from those of `have`. The answer is
    /// prepared and kept, so a later call that asks the same question need not prepare it again.
    ///
    /// The blocks of an LT code determine all data or nothing: it is not looked for whether they
    /// happen to determine some of it. Where words are not divided, a set with a part of a word is
    /// refused, and the answer is `false`.
    pub fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        self.engine.solvable(have, want)
    }

    /// Explains what [`Codec::compute`] runs once the program has been compiled. Until then, and
    /// where compiling is not allowed, the tiled kernel runs the schedule as it was planned,
    /// operation by operation.
    ///
    /// # Errors
    /// As [`Codec::compute`].
    #[cfg(feature = "research")]
    pub fn explain(&self, have: &CellSet, want: &CellSet, call: &Call) -> Result<Explanation> {
        self.engine.explain(have, want, call)
    }

    /// Computes all parity from all data. `data` are the shards of the nodes that hold data, and
    /// `parity` the shards of the other nodes, both in node order. All shards are equally long, a
    /// multiple of [`Codec::shard_unit`]; the previous content of `parity` does not matter. In a
    /// code of several stages only the first stage's parity is computed, and the nodes are those
    /// that hold cells at the end of that stage; [`Codec::promote`] computes the rest.
    ///
    /// A shard may be encoded in parts, if each part begins at a multiple of [`Codec::strip`], and
    /// ends at such a multiple or at the end of the shard. Shards of codes over bytes, such as
    /// `backblaze`, may be cut anywhere.
    ///
    /// # Errors
    /// If the number of shards is wrong ([`crate::ErrorKind::Buffers`]), or the length of a shard
    /// ([`crate::ErrorKind::Length`]); or if a node holds both data and parity
    /// ([`crate::ErrorKind::Parameters`]): [`Codec::encode_nodes`] encodes codes of that kind, and
    /// [`LtEncoder`](crate::lt::LtEncoder) LT codes.
    pub fn encode<D: AsRef<[u8]>, P: AsMut<[u8]>>(
        &self,
        data: &[D],
        parity: &mut [P],
    ) -> Result<()> {
        self.prepared_encoding()?.run(data, parity)
    }

    /// Computes the parity of one or more groups of shards that lie in one buffer. Each shard has
    /// `stride` bytes. The shards of a group lie in node order, and groups lie one after the other.
    /// This suits network packets, if a caller keeps many groups of them in one allocation.
    ///
    /// ```
    /// let codec = paritas::Codec::new(4, 2)?;
    /// let mut groups = vec![7_u8; 3 * 6 * 1200];
    /// codec.encode_strided(&mut groups, 1200)?;
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Codec::encoder`] and [`Prepared::run_strided`].
    pub fn encode_strided(&self, buffer: &mut [u8], stride: usize) -> Result<()> {
        self.prepared_encoding()?.run_strided(buffer, stride)
    }

    fn prepared_encoding(&self) -> Result<&Prepared> {
        if let Some(prepared) = self.encoding.prepared.get() {
            return Ok(prepared);
        }
        let prepared = self.encoder()?;
        Ok(self.encoding.prepared.get_or_init(|| prepared))
    }

    /// Computes all parity from all data, in shards that hold both. `nodes` are all shards; their
    /// parity rows are overwritten. In a code of several stages, `nodes` are those that hold cells
    /// at the end of the first stage. Only that stage's parity is computed; later rows are left
    /// alone.
    ///
    /// # Errors
    /// If a count or length is wrong, or if the shards are blocks of an LT code.
    pub fn encode_nodes(&self, nodes: &mut [&mut [u8]]) -> Result<()> {
        self.expect_data()?;
        let standing = &self.encoding.standing;
        self.expect_count("node", nodes.len(), standing.len())?;
        let nodes = nodes.iter_mut().map(|node| Buffer::Target(node));
        let numbers = standing.iter().map(|node| node.index());
        self.engine.answer(&self.encoding.question, numbers.zip(nodes))
    }

    /// Computes the shards that are [`Buffer::Target`] from those that are [`Buffer::Source`], in
    /// the caller's memory, after all stages of the code. `nodes` has one buffer for each node, or
    /// more precisely [`Codec::buffer_count`] buffers.
    ///
    /// # Errors
    /// As [`Codec::compute`]; also if `nodes` has another number of buffers
    /// ([`crate::ErrorKind::Buffers`]).
    pub fn reconstruct_into(&self, nodes: &mut [Buffer<'_>]) -> Result<()> {
        self.reconstruct_at(self.code().stages(), nodes)
    }

    /// Updates parity in place after the data shard of `node` changed from `old` to `new`. `parity`
    /// are the shards of the nodes that hold no data, in node order, after all stages of the code.
    /// The shards may be updated in parts, which are cut as for [`Codec::encode`].
    ///
    /// ```
    /// let codec = paritas::Codec::new(4, 2)?;
    /// let mut data = vec![vec![7; 1200]; 4];
    /// let mut parity = vec![vec![0; 1200]; 2];
    /// codec.encode(&data, &mut parity)?;
    /// let old = std::mem::replace(&mut data[3], vec![9; 1200]);
    /// codec.update(3, &old, &data[3], &mut parity)?;
    /// assert_eq!(codec.verify(&[data, parity].concat())?, []);
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `node` does not exist, or holds no data or none that parity depends on
    /// ([`crate::ErrorKind::Parameters`]), or if the number of shards or a length is wrong
    /// ([`crate::ErrorKind::Buffers`], [`crate::ErrorKind::Length`]).
    pub fn update<P: AsMut<[u8]>>(
        &self,
        node: impl Into<NodeId>,
        old: &[u8],
        new: &[u8],
        parity: &mut [P],
    ) -> Result<()> {
        let node = node.into();
        let updater = self.updater(node)?;
        if old.len() != new.len() {
            let (before, after) = (old.len(), new.len());
            let message =
                format!("old shard {node} has {before} bytes, and new shard {node} has {after}");
            return Err(Error::length(message).at(node.index()).given_instead(after));
        }
        updater.run(&[old, new], parity)
    }

    /// Prepares encoding. The sources are the shards of the nodes that hold data, and the targets
    /// the shards of the other nodes, both in node order, as for [`Codec::encode`].
    ///
    /// # Errors
    /// If a node holds data and parity, or blocks of an LT code ([`crate::ErrorKind::Parameters`]).
    pub fn encoder(&self) -> Result<Prepared> {
        self.expect_data()?;
        let (sources, targets) = self.encoding.shards.split(self.code())?;
        self.engine.prepared(&self.encoding.question, None, &numbers(sources), &numbers(targets))
    }

    /// Prepares the reconstruction of lost nodes. The sources are the shards of `present` and the
    /// targets the shards of `lost`, in the order given. Shards that the plan does not need must be
    /// passed as well. If no node is lost, running does nothing.
    ///
    /// # Errors
    /// If the present nodes do not determine the lost ones ([`crate::ErrorKind::NotEnough`]), or if
    /// a node does not exist or is named twice ([`crate::ErrorKind::Parameters`]).
    pub fn reconstructor<N: Into<NodeId> + Copy>(
        &self,
        present: &[N],
        lost: &[N],
    ) -> Result<Prepared> {
        let ids = |nodes: &[N]| nodes.iter().map(|&node| node.into()).collect::<Vec<NodeId>>();
        let (present, lost) = (&ids(present), &ids(lost));
        let mut named = vec![false; self.code().node_count()];
        for &node in present.iter().chain(lost) {
            self.expect_node(node)?;
            if std::mem::replace(&mut named[node.index()], true) {
                let message = format!("node {node} must be named once, as present or lost");
                return Err(Error::parameters(message).at(node.index()));
            }
        }
        let cells = |nodes: &[NodeId]| {
            let mut cells = CellSet::new(self.code().cell_count());
            let lists = &self.engine.setup.layout.lists;
            nodes.iter().for_each(|node| cells.add(lists, node.index()));
            cells
        };
        let question = Question::Compute(cells(present), cells(lost));
        let prepared = self.engine.prepared(&question, None, &numbers(present), &numbers(lost));
        prepared.map_err(|error| self.by_shards(error, self.code().stages(), present.len()))
    }

    /// Prepares the update of parity after the data shard of `node` changed. The sources are the
    /// old and the new shard. The targets are the shards of the nodes that hold no data, in node
    /// order; they are changed in place.
    ///
    /// # Errors
    /// If `node` does not exist or holds no data, or if some node holds both data and parity
    /// ([`crate::ErrorKind::Parameters`]).
    pub fn updater(&self, node: impl Into<NodeId>) -> Result<Prepared> {
        self.changer(node.into(), Change::OldAndNew)
    }

    /// Prepares the update of parity by a difference: the XOR of the old and the new data shard of
    /// `node`. The source is the difference, and the targets are as for [`Codec::updater`]. A store
    /// that sends changes to the nodes with parity sends the difference alone.
    ///
    /// ```
    /// let codec = paritas::Codec::new(4, 2)?;
    /// let mut data = vec![vec![7_u8; 1200]; 4];
    /// let mut parity = vec![vec![0; 1200]; 2];
    /// codec.encode(&data, &mut parity)?;
    /// let difference: Vec<u8> = data[3].iter().map(|byte| byte ^ 9).collect();
    /// data[3].fill(9);
    /// codec.difference_updater(3)?.run(&[difference], &mut parity)?;
    /// assert_eq!(codec.verify(&[data, parity].concat())?, []);
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Codec::updater`].
    pub fn difference_updater(&self, node: impl Into<NodeId>) -> Result<Prepared> {
        self.changer(node.into(), Change::Difference)
    }

    fn changer(&self, node: NodeId, change: Change) -> Result<Prepared> {
        self.expect_node(node)?;
        let shards = StageNodes::new(self.code(), self.code().stages());
        let (sources, parity) = shards.split(self.code())?;
        if sources.binary_search(&node).is_err() {
            let message = format!("node {node} holds no data");
            return Err(Error::parameters(message).at(node.index()));
        }
        let given: Vec<usize> = (0..change.shards()).collect();
        let targets: Vec<usize> = (given.len()..).take(parity.len()).collect();
        let (question, count) = (Question::Update(node, change), given.len() + targets.len());
        let prepared = self.engine.prepared(&question, Some(count), &given, &targets)?;
        let nodes = given.iter().map(|_| &node).chain(parity).map(|node| node.index()).collect();
        Ok(Prepared { nodes: Some(nodes), ..prepared })
    }

    /// Runs a plan that the caller supplies, after proving that the plan computes the cells that it
    /// claims. Buffers with cells that the plan computes are [`Buffer::Target`], and others with
    /// cells that it reads are [`Buffer::Source`]; the rest may be absent. The plan is compiled
    /// once and kept, like the schedule of a question.
    ///
    /// ```
    /// use paritas::{Buffer, Codec, CodecOptions};
    /// use paritas::research::Plan;
    /// let codec = Codec::new(2, 1)?;
    /// let cells = |node: usize| codec.code().node_cells(node).to_vec();
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
    /// If the plan computes a cell wrongly, names cells that the code lacks, or is for words
    /// ([`crate::ErrorKind::Schedule`]); if some cell of the plan is in no buffer
    /// ([`crate::ErrorKind::Parameters`]); if the buffers do not fit
    /// ([`crate::ErrorKind::Buffers`], [`crate::ErrorKind::Length`]).
    pub fn run(&self, plan: &Plan, buffers: &mut [Buffer<'_>]) -> Result<()> {
        let buffers = buffers.iter_mut().map(Buffer::reborrow).enumerate();
        self.engine.answer(&Question::Plan(Arc::new(plan.clone())), buffers)
    }

    /// Checks that nodes hold the data from which parity is computed.
    fn expect_data(&self) -> Result<()> {
        if self.code().graph().is_none() {
            return Ok(());
        }
        let spec = self.code().spec();
        let message = format!("{spec} is an LT code, whose blocks are made by an LT encoder");
        Err(Error::parameters(message))
    }

    fn expect_node(&self, node: NodeId) -> Result<()> {
        let nodes = self.code().node_count();
        if node.index() < nodes {
            return Ok(());
        }
        let (spec, last) = (self.code().spec(), nodes - 1);
        // A larger number became the largest one when it was made a `NodeId`.
        let more = if node == NodeId::from(usize::MAX) { " or more" } else { "" };
        let message = format!("{spec}: a node's number must be at most {last}; got {node}{more}");
        Err(Error::parameters(message).at(node.index()))
    }

    /// Rewrites an error about missing cells so that it counts shards. `present` is the number of
    /// shards at hand at the end of `stage`.
    fn by_shards(&self, error: Error, stage: u8, present: usize) -> Error {
        let code = self.code();
        if error.kind() != ErrorKind::NotEnough || code.graph().is_some() {
            return error;
        }
        let (all, tolerance) = (code.nodes_at(stage).len(), code.tolerance_at(stage));
        let missing = all.saturating_sub(present);
        let message = format!(
            "{}: {missing} of {all} shards are missing; any {tolerance} may be missing",
            code.spec()
        );
        Error::not_enough(message).expecting(all - tolerance).given_instead(present)
    }

    fn expect_count(&self, what: &str, given: usize, needed: usize) -> Result<()> {
        if given == needed {
            return Ok(());
        }
        let spec = self.code().spec();
        let message = format!("{spec}: the number of {what} shards must be {needed}; got {given}");
        Err(Error::buffers(message).expecting(needed).given_instead(given))
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Codec({}, {})", self.code().spec(), self.kernel_name())
    }
}

impl FromStr for Codec {
    type Err = Error;

    /// Creates a codec for the code named `text`, with default options.
    fn from_str(text: &str) -> Result<Self> {
        Self::with_options(text.parse()?, CodecOptions::default())
    }
}

fn numbers(nodes: &[NodeId]) -> Vec<usize> {
    nodes.iter().map(|node| node.index()).collect()
}

/// Everything that encoding a code needs, prepared once.
#[derive(Debug)]
struct PreparedEncoding {
    question: Question,
    /// Nodes that hold cells at the end of the first stage.
    standing: Vec<NodeId>,
    shards: StageNodes,
    /// The prepared question, once it has been asked.
    prepared: OnceLock<Prepared>,
}

impl PreparedEncoding {
    fn new(code: &Code) -> Self {
        let question = Question::compute(&code.stored(Role::Data), &code.made_in(1));
        let (standing, shards) = (code.nodes_at(1), StageNodes::new(code, 1));
        Self { question, standing, shards, prepared: OnceLock::new() }
    }
}
