//! The codec: a code, its schedules and a kernel, ready to run over memory.
//!
//! Whatever is asked, the answer is [`Codec::compute`]: cells at hand, cells wanted, buffers. The
//! schedule for a question is planned and compiled once and kept. [`Codec::encode`],
//! [`Codec::reconstruct`] and [`Codec::update`] say the same in the words of their use.

mod cache;
pub(crate) mod explain;
pub(crate) mod prepared;
mod stages;

use std::sync::{Arc, OnceLock};

use crate::codec::cache::{Cache, Question};
use crate::codec::prepared::Prepared;
use crate::define::cells::{CellId, CellSet, NodeId, Role};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::limits::{BYTES_A_THREAD, KEPT_LT_PROGRAMS, KEPT_PROGRAMS};
use crate::plan::PlanOptions;
use crate::plan::blocks::BlockProgram;
use crate::plan::execution::{Execution, Planner, Shares};
use crate::plan::layout::{BufferLayout, Layout};
use crate::plan::variants::Target;
use crate::run::blocks;
use crate::run::buffers::{Buffer, Stores};
use crate::run::dispatch::{Kernel, KernelChoice, Serving, WordKernel};
use crate::run::executable::Executable;
use crate::run::threads::{Split, Threads, thread_count};

/// The packet size of files and the default of codecs, in bytes.
pub const DEFAULT_PACKET: usize = 64;

/// How a codec is to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodecOptions {
    /// The bytes of a packet.
    pub packet: usize,
    /// What the buffers are.
    pub layout: BufferLayout,
    /// The most threads a call may use; 0 stands for the machine's.
    pub threads: usize,
    /// How many bytes of buffers a thread should have to do at least, for another to be used.
    pub bytes_a_thread: usize,
    /// How they share the work of [`Codec::compute`]; an update is always split by stripe.
    pub split: Split,
    /// Which kernel runs. For a code in the word layout, a word kernel on the same registers.
    pub kernel: KernelChoice,
    /// Which word kernel runs, whatever `kernel` is, for codes in the word layout.
    pub word_kernel: Option<WordKernel>,
    /// How results are stored.
    pub stores: Stores,
    /// Whether compiled kernels prefetch wide stripes (of 17 streams and more, with which the processor's own
    /// prefetchers lose track) that are stored past the cache.
    pub prefetch: bool,
    /// Which passes plan.
    pub plan: PlanOptions,
}

impl Default for CodecOptions {
    fn default() -> Self {
        Self {
            packet: DEFAULT_PACKET,
            layout: BufferLayout::default(),
            threads: 0,
            bytes_a_thread: BYTES_A_THREAD,
            split: Split::default(),
            kernel: KernelChoice::default(),
            word_kernel: None,
            stores: Stores::default(),
            prefetch: true,
            plan: PlanOptions::default(),
        }
    }
}

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
    code: Code,
    options: CodecOptions,
    layout: Layout,
    serving: Serving,
    encoding: Encoding,
    programs: Cache,
}

impl Codec {
    /// A codec for a code.
    ///
    /// # Errors
    /// If the packet is empty or larger than 2^30 bytes, or the kernel is not available.
    pub fn new(code: Code, options: CodecOptions) -> Result<Self> {
        if options.packet == 0 || options.packet > 1 << 30 {
            return Err(Error::parameters(format!(
                "packet: must be 1 to 2^30 bytes; got {}",
                options.packet
            )));
        }
        let kernel = options.kernel.resolve(options.packet);
        if !kernel.is_available() {
            return Err(kernel.unavailable());
        }
        if let Some(kernel) = options.word_kernel.filter(|kernel| !kernel.is_available()) {
            return Err(kernel.unavailable());
        }
        let layout = Layout::new(&code, options.layout, options.packet);
        let kept = if code.graph().is_some() { KEPT_LT_PROGRAMS } else { KEPT_PROGRAMS };
        let (encoding, programs) = (Encoding::new(&code), Cache::new(kept));
        let serving = match code.symbols() {
            Some(_) => {
                let chosen = WordKernel::resolve(options.kernel);
                let by_name = options.word_kernel.is_some() || options.kernel.is_by_name();
                let kernel = options.word_kernel.unwrap_or(chosen);
                Serving::words(kernel, by_name, options.prefetch)
            }
            None => Serving::packets(options.kernel, kernel, options.prefetch),
        };
        Ok(Self { code, options, layout, serving, encoding, programs })
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The bytes of a packet.
    pub fn packet(&self) -> usize {
        self.options.packet
    }

    /// How threads share a call's work.
    pub fn split(&self) -> Split {
        self.options.split
    }

    /// The name of the kernel that runs, in either layout; for blocks of an LT code the tiled one.
    pub fn kernel_name(&self) -> &'static str {
        let kernel = if self.has_blocks() { self.kernel().tiled() } else { self.kernel() };
        self.word_kernel().map_or_else(|| kernel.name(), WordKernel::name)
    }

    /// The kernel that runs in the packet layout.
    pub fn kernel(&self) -> Kernel {
        self.options.kernel.resolve(self.options.packet)
    }

    /// Why another kernel had to serve than [`Codec::kernel`], if that has happened: the system
    /// forbids executable memory, or compiled code was found to compute wrong.
    pub fn fallback(&self) -> Option<String> {
        let why = self.programs.find_map(Executable::fallback)?;
        Some(format!("{} cannot serve: {why}", self.kernel_name()))
    }

    /// The kernel that runs words, if the code is in the word layout.
    fn word_kernel(&self) -> Option<WordKernel> {
        let chosen = || WordKernel::resolve(self.options.kernel);
        self.code.symbols().map(|_| self.options.word_kernel.unwrap_or_else(chosen))
    }

    /// The bytes of the largest strip: what a shard grows by from one whole stripe to the next. In
    /// the word layout, unless buffers are lanes, a strip is one word.
    ///
    /// A shard need not be a whole number of strips. A buffer of `rows` rows may have any multiple
    /// of `rows` bytes; what is left behind the last whole strip is a strip of shorter packets.
    pub fn strip(&self) -> usize {
        if let Some(symbols) = self.code.symbols() {
            let w = symbols.field().width() as usize;
            return match self.options.layout {
                BufferLayout::Node => w / 8,
                BufferLayout::Lane => w * self.options.packet,
            };
        }
        let rows = self.layout.cells.iter().map(Vec::len).max().unwrap_or(0);
        rows * self.options.packet
    }

    /// The number of buffers of a call: node by node, within a node lane by lane where the layout
    /// is [`BufferLayout::Lane`], then data cells that are stored nowhere.
    pub fn buffer_count(&self) -> usize {
        self.layout.cells.len()
    }

    /// The cells of a buffer by row. A buffer has `rows · length` bytes, where `length` is the same
    /// for all buffers; in the word layout, `length` bytes.
    ///
    /// # Panics
    /// When there is no such buffer.
    pub fn buffer_cells(&self, buffer: usize) -> &[CellId] {
        &self.layout.cells[buffer]
    }

    /// The node that a buffer belongs to, if it is stored.
    ///
    /// # Panics
    /// When there is no such buffer.
    pub fn buffer_node(&self, buffer: usize) -> Option<NodeId> {
        let cell = self.layout.cells[buffer].first()?;
        self.code.cell(*cell).place.map(|place| place.node)
    }

    /// The buffers that hold data, in the order of the user's bytes. With
    /// [`BufferLayout::Lane`] they hold nothing else.
    pub fn data_buffers(&self) -> &[usize] {
        &self.layout.data
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
        let buffers = buffers.iter_mut().map(Buffer::reborrow).enumerate();
        self.answer(&Question::compute(have, want), buffers)
    }

    /// Whether the cells of `want` can be made from those of `have`. The schedule is planned and
    /// kept, so that asking costs nothing when it is run afterwards.
    pub fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        self.program(&Question::compute(have, want)).is_ok()
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
        self.expect_node_buffers()?;
        let standing = &self.encoding.standing;
        self.expect_count("node", nodes.len(), standing.len())?;
        let nodes = nodes.iter_mut().map(|node| Buffer::Target(node));
        let numbers = standing.iter().map(|node| node.index());
        self.answer(&self.encoding.question, numbers.zip(nodes))
    }

    /// Makes the shards that are [`Buffer::Target`] from those that are [`Buffer::Source`], all stages
    /// being done.
    ///
    /// # Errors
    /// As [`Codec::compute`].
    pub fn reconstruct(&self, nodes: &mut [Buffer<'_>]) -> Result<()> {
        self.reconstruct_at(self.code.stages(), nodes)
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
        self.expect_node_buffers()?;
        let (sources, targets) = self.encoding.shards.split(&self.code)?;
        self.prepared(&self.encoding.question, &numbers(sources), &numbers(targets))
    }

    /// The reconstruction of lost nodes, prepared: sources are the shards of `present`, targets those
    /// of `lost`, in the order given. Shards that turn out not to be needed are passed all the same.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if the lost nodes are not determined.
    pub fn reconstructor(&self, present: &[NodeId], lost: &[NodeId]) -> Result<Prepared> {
        self.expect_node_buffers()?;
        let nodes = self.code.node_count();
        if let Some(node) = present.iter().chain(lost).find(|node| node.index() >= nodes) {
            let (spec, node) = (self.code.spec(), node.index());
            return Err(Error::parameters(format!(
                "{spec} has nodes 0 to {}; got {node}",
                nodes - 1
            )));
        }
        let cells = |nodes: &[NodeId]| self.code.cells_of(nodes.iter().copied());
        let question = Question::compute(&cells(present), &cells(lost));
        self.prepared(&question, &numbers(present), &numbers(lost))
    }

    /// The update of parity after the data shard of `node` changed, prepared: sources are the old and
    /// the new shard, targets the shards of the nodes that hold no data, in node order, which are
    /// changed in place.
    ///
    /// # Errors
    /// If the node holds no data, or a node holds data and parity.
    pub fn updater(&self, node: NodeId) -> Result<Prepared> {
        self.expect_node_buffers()?;
        let shards = Shards::new(&self.code, self.code.stages());
        let (sources, targets) = shards.split(&self.code)?;
        if sources.binary_search(&node).is_err() {
            return Err(Error::length(format!("node {} holds no data", node.index())));
        }
        let targets: Vec<usize> = (2..).take(targets.len()).collect();
        self.prepared(&Question::Update(node), &[0, 1], &targets)
    }

    fn prepared(
        &self,
        question: &Question,
        sources: &[usize],
        targets: &[usize],
    ) -> Result<Prepared> {
        Ok(Prepared {
            executable: self.program(question)?,
            sources: sources.into(),
            targets: targets.into(),
            threads: self.threads(),
            stores: self.options.stores,
        })
    }

    /// Answers a question over buffers, each with its number.
    fn answer<'b>(
        &self,
        question: &Question,
        buffers: impl IntoIterator<Item = (usize, Buffer<'b>)>,
    ) -> Result<()> {
        self.program(question)?.run(buffers, self.threads(), self.options.stores)
    }

    /// The program for a question: one that is kept, or a new one.
    fn program(&self, question: &Question) -> Result<Arc<Executable>> {
        self.programs.get(question, || self.prepare(question))
    }

    fn prepare(&self, question: &Question) -> Result<Executable> {
        if let (Question::Compute(have, want), true) = (question, self.has_blocks()) {
            return self.prepare_blocks(have, want);
        }
        self.serving.prepare(self.execution(question)?)
    }

    /// Plans a question to the end.
    fn execution(&self, question: &Question) -> Result<Execution> {
        self.execution_for(question, self.serving.target())
    }

    /// The same for any machine.
    fn execution_for(&self, question: &Question, target: Option<Target>) -> Result<Execution> {
        let planner = self.planner(target);
        match question {
            Question::Compute(have, want) => planner.compute(have, want),
            Question::Update(node) => {
                let shards = Shards::new(&self.code, self.code.stages());
                let (_, targets) = shards.split(&self.code)?;
                planner.update(*node, targets)
            }
        }
    }

    fn planner(&self, target: Option<Target>) -> Planner<'_> {
        let threads = || thread_count(self.options.threads);
        Planner {
            code: &self.code,
            layout: &self.layout,
            target,
            shares: match self.options.split {
                Split::Stripe => Shares::Stripes,
                Split::Node => Shares::Nodes(threads()),
                Split::Columns => Shares::Columns(threads()),
                Split::Rows => Shares::Rows(threads()),
            },
            options: self.options.plan,
        }
    }

    /// Whether buffers are the blocks of an LT code, whose schedules are run down whole blocks.
    fn has_blocks(&self) -> bool {
        self.code.graph().is_some() && self.layout.cells.iter().all(|cells| cells.len() == 1)
    }

    /// Solves an LT code's graph. That costs more than running a small segment, and an object's
    /// segments mostly miss the same blocks: answers are kept, also those that say no.
    fn prepare_blocks(&self, have: &CellSet, want: &CellSet) -> Result<Executable> {
        let plan = self.code.schedule_with(have, want, self.options.plan)?;
        let locate = |cells: &[CellId]| -> Vec<usize> {
            cells.iter().map(|cell| self.layout.locations[cell.index()].buffer).collect()
        };
        let (inputs, outputs) = (locate(plan.inputs()), locate(plan.outputs()));
        let program = BlockProgram::new(plan.schedule())?;
        let kernel = self.kernel();
        let runners = kernel.runners().ok_or_else(|| kernel.unavailable())?;
        blocks::prepare(program, runners, inputs, outputs, self.buffer_count())
    }

    fn threads(&self) -> Threads {
        Threads { most: self.options.threads, bytes_each: self.options.bytes_a_thread }
    }

    fn expect_node_buffers(&self) -> Result<()> {
        match self.options.layout {
            BufferLayout::Node => Ok(()),
            BufferLayout::Lane => {
                Err(Error::parameters("a codec over lanes is used through compute"))
            }
        }
    }

    fn expect_count(&self, what: &str, given: usize, needed: usize) -> Result<()> {
        if given == needed {
            return Ok(());
        }
        let spec = self.code.spec();
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

/// The nodes that stand at the end of a stage, in order, by what they hold.
#[derive(Debug)]
struct Shards {
    data: Vec<NodeId>,
    parity: Vec<NodeId>,
    /// A node that holds both.
    mixed: Option<NodeId>,
}

impl Shards {
    fn new(code: &Code, stage: u8) -> Self {
        let (data, parity): (Vec<NodeId>, _) =
            code.nodes_at(stage).into_iter().partition(|&node| code.holds_data(node));
        let is_data = |&cell: &CellId| code.cell(cell).role == Role::Data;
        let mixed = data.iter().find(|&&node| !code.node_cells(node).iter().all(is_data)).copied();
        Self { data, parity, mixed }
    }

    /// Those that hold data, and those that hold none.
    fn split(&self, code: &Code) -> Result<(&[NodeId], &[NodeId])> {
        match self.mixed {
            None => Ok((&self.data, &self.parity)),
            Some(node) => Err(Error::parameters(format!(
                "{}: node {} holds data and parity; use encode_nodes or compute",
                code.spec(),
                node.index()
            ))),
        }
    }
}
