//! The codec: a code, its schedules and a kernel, ready to run over memory.
//!
//! Whatever is asked, the answer is [`Codec::compute`]: cells at hand, cells wanted, buffers. The
//! schedule for a question is planned and compiled once and kept. [`Codec::encode`],
//! [`Codec::reconstruct`] and [`Codec::update`] say the same in the words of their use.

mod blocks;
mod sharing;
mod stages;
mod words;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::define::cells::{CellId, CellSet, Code, NodeId, Role};
use crate::error::{Error, Result};
use crate::plan::{Plan, PlanOptions};
use crate::run::kernel::{Buffer, Executable, Stores};
use crate::run::parallel::{BYTES_A_THREAD, Split, Threads};
use crate::run::program::{Location, Program};
use crate::run::select::{Compiling, Kernel, KernelChoice};
use crate::run::words::select::WordKernel;

/// The packet size of files and the default of codecs, in bytes.
pub const DEFAULT_PACKET: usize = 64;

/// How many compiled programs a codec keeps; the oldest goes first.
const KEPT_PROGRAMS: usize = 256;

/// What a buffer of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferLayout {
    /// One buffer a node: strips of all its rows.
    #[default]
    Node,
    /// One buffer for each lane of each node (see [`Code::lane_rows`]).
    Lane,
}

/// How a codec in the word layout computes sums in which nothing is multiplied, such as plain parity
/// and what it gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sums {
    /// By the word kernel, as all else.
    #[default]
    Words,
    /// By the kernel of the packet layout.
    Xor,
}

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
    /// What computes plain sums, for codes in the word layout.
    pub sums: Sums,
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
            sums: Sums::default(),
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
    encoding: Encoding,
    programs: Mutex<Programs>,
    answers: Mutex<blocks::Answers>,
}

impl Codec {
    /// A codec for a code.
    ///
    /// # Errors
    /// When the packet is empty or larger than 2^30 bytes, or the kernel is not available.
    pub fn new(code: Code, options: CodecOptions) -> Result<Self> {
        if options.packet == 0 || options.packet > 1 << 30 {
            return Err(Error::parameters(format!(
                "packet = {}: a packet has 1 to 2^30 bytes",
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
        let layout = Layout::new(&code, options.layout);
        let (programs, answers) = (Mutex::default(), Mutex::default());
        let encoding = Encoding::new(&code);
        Ok(Self { code, options, layout, encoding, programs, answers })
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
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let why = programs.by_question.values().find_map(|program| program.fallback())?;
        Some(format!("{} cannot serve: {why}", self.kernel()))
    }

    /// The bytes of the largest strip; a shard of every node is a whole number of strips. In the word
    /// layout, unless buffers are lanes, a strip is one word.
    pub fn strip(&self) -> usize {
        if let Some(strip) = self.word_strip() {
            return strip;
        }
        let rows = self.layout.cells.iter().map(Vec::len).max().unwrap_or(0);
        rows * self.options.packet
    }

    /// The number of buffers of a call: node by node, within a node lane by lane where the layout
    /// is [`BufferLayout::Lane`], then data cells that are stored nowhere.
    pub fn buffer_count(&self) -> usize {
        self.layout.cells.len()
    }

    /// The cells of a buffer by row. A buffer has `stripes · rows · packet` bytes; in the word layout,
    /// `stripes · strip`.
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
        self.answer(&Question::compute(have, want), buffers)
    }

    /// Whether the cells of `want` can be made from those of `have`. The schedule is planned and
    /// kept, so that asking costs nothing when it is run afterwards.
    pub fn solvable(&self, have: &CellSet, want: &CellSet) -> bool {
        match self.has_blocks() {
            true => self.block_answer(have, want).is_ok(),
            false => self.program(&Question::compute(have, want)).is_ok(),
        }
    }

    /// Makes all parity from all data: `data` and `parity` are the shards of the nodes that hold
    /// data and of those that do not, in node order. In a code of several stages that is the parity of
    /// the first, and the nodes are those that stand then; the rest is for [`Codec::promote`].
    ///
    /// # Errors
    /// When a count or length is wrong. Codes with data and parity on one node are encoded by
    /// [`Codec::encode_nodes`].
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<()> {
        self.expect_node_buffers()?;
        let (sources, targets) = self.encoding.shards.split(&self.code)?;
        self.expect_count("data", data.len(), sources.len())?;
        self.expect_count("parity", parity.len(), targets.len())?;
        let mut buffers: Vec<Buffer<'_>> = self.absent();
        sources.iter().zip(data).for_each(|(n, d)| buffers[n.index()] = Buffer::Source(d));
        targets.iter().zip(parity).for_each(|(n, p)| buffers[n.index()] = Buffer::Target(p));
        self.answer(&self.encoding.question, &mut buffers)
    }

    /// Makes all parity from all data, in shards that hold both: `nodes` are all shards, their
    /// parity rows are overwritten. In a code of several stages they are those that stand after the
    /// first, whose parity is made; later rows are left alone.
    ///
    /// # Errors
    /// When a count or length is wrong.
    pub fn encode_nodes(&self, nodes: &mut [&mut [u8]]) -> Result<()> {
        self.expect_node_buffers()?;
        self.expect_count("node", nodes.len(), self.encoding.standing.len())?;
        let mut buffers = self.absent();
        let standing = self.encoding.standing.iter();
        standing.zip(nodes).for_each(|(n, node)| buffers[n.index()] = Buffer::Target(node));
        self.answer(&self.encoding.question, &mut buffers)
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
        self.expect_node_buffers()?;
        let shards = Shards::new(&self.code, self.code.stages());
        let (sources, targets) = shards.split(&self.code)?;
        if sources.binary_search(&node).is_err() {
            return Err(Error::length(format!("node {} holds no data", node.index())));
        }
        self.expect_count("parity", parity.len(), targets.len())?;
        let mut buffers = vec![Buffer::Source(old), Buffer::Source(new)];
        buffers.extend(parity.iter_mut().map(|shard| Buffer::Target(shard)));
        self.answer(&Question::Update(node), &mut buffers)
    }

    fn update_program(&self, node: NodeId, targets: &[NodeId]) -> Result<Program> {
        let parity = self.code.cells_of(targets.iter().copied());
        let (schedule, touched) = self.code.schedule_update(node, &parity, self.options.plan)?;
        let rows = self.code.node_cells(node).len();
        let old_and_new =
            (0..2 * rows).map(|cell| Location { buffer: cell / rows, row: cell % rows });
        let outputs: Vec<Location> = touched
            .iter()
            .filter_map(|&cell| self.code.cell(cell).place)
            .map(|place| {
                let number = targets.iter().position(|&target| target == place.node);
                Location { buffer: 2 + number.unwrap_or(0), row: place.row }
            })
            .collect();
        let inputs = old_and_new.chain(outputs.iter().copied()).collect();
        let nodes = [node, node].into_iter().chain(targets.iter().copied());
        let strips = nodes.map(|node| self.code.node_cells(node).len()).collect();
        Program::new(schedule, inputs, outputs, strips, self.options.packet)
    }

    /// The machine code that a kernel makes for a question, an instruction a line; `None` where it
    /// is not a compiled one or does not serve. This processor need not have the kernel.
    ///
    /// # Errors
    /// As [`Codec::compute`].
    pub fn listing(
        &self,
        kernel: Kernel,
        have: &CellSet,
        want: &CellSet,
    ) -> Result<Option<String>> {
        match self.word_kernel() {
            Some(_) => Ok(None),
            None => Ok(kernel.listing(&self.bind(self.plan(have, want)?)?)),
        }
    }

    fn compiling(&self) -> Compiling {
        let patience = self.options.kernel.patience();
        Compiling { patience, prefetch: self.options.prefetch }
    }

    fn threads(&self) -> Threads {
        Threads { most: self.options.threads, bytes_each: self.options.bytes_a_thread }
    }

    fn answer(&self, question: &Question, buffers: &mut [Buffer<'_>]) -> Result<()> {
        if let (Question::Compute(have, want), true) = (question, self.has_blocks()) {
            return self.compute_blocks(have, want, buffers);
        }
        self.program(question)?.run(buffers, self.threads(), self.options.stores)
    }

    /// The program for a question: one that is kept, or a new one.
    fn program(&self, question: &Question) -> Result<Arc<Executable>> {
        let programs = || self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = programs().by_question.get(question) {
            return Ok(Arc::clone(found));
        }
        // Planned outside the lock: two threads may plan the same question, which is harmless.
        let executable = Arc::new(self.prepare(question)?);
        programs().insert(question.clone(), Arc::clone(&executable));
        Ok(executable)
    }

    fn prepare(&self, question: &Question) -> Result<Executable> {
        match *question {
            Question::Compute(ref have, ref want) => self.compile_shared(have, want),
            Question::Update(node) => {
                let shards = Shards::new(&self.code, self.code.stages());
                let (_, targets) = shards.split(&self.code)?;
                match self.word_kernel() {
                    Some(kernel) => self.compile_word_update(kernel, node, targets),
                    None => self.compile(&self.update_program(node, targets)?),
                }
            }
        }
    }

    /// Compiles a question, over some columns of the packets.
    fn compile_part(
        &self,
        have: &CellSet,
        want: &CellSet,
        columns: Range<usize>,
    ) -> Result<Executable> {
        match self.word_kernel() {
            Some(kernel) => self.compile_words(kernel, have, want),
            None => self.compile(&self.bind(self.plan(have, want)?)?.over_columns(columns)?),
        }
    }

    fn compile(&self, program: &Program) -> Result<Executable> {
        self.kernel().compile(program, self.compiling())
    }

    fn plan(&self, have: &CellSet, want: &CellSet) -> Result<Plan> {
        self.code.schedule_with(have, want, self.options.plan)
    }

    fn bind(&self, plan: Plan) -> Result<Program> {
        let locate = |cells: &[CellId]| -> Vec<Location> {
            cells.iter().map(|cell| self.layout.locations[cell.index()]).collect()
        };
        let (inputs, outputs) = (locate(plan.inputs()), locate(plan.outputs()));
        let rows = self.layout.cells.iter().map(Vec::len).collect();
        Program::new(plan.into_schedule(), inputs, outputs, rows, self.options.packet)
    }

    fn absent<'a>(&self) -> Vec<Buffer<'a>> {
        (0..self.buffer_count()).map(|_| Buffer::Absent).collect()
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

/// Which cells lie where.
#[derive(Debug)]
struct Layout {
    /// Per buffer, its cells by row.
    cells: Vec<Vec<CellId>>,
    /// Per cell, its place; auxiliary cells have none and are never asked for.
    locations: Vec<Location>,
    /// The buffers with data.
    data: Vec<usize>,
}

impl Layout {
    fn new(code: &Code, layout: BufferLayout) -> Self {
        let mut cells: Vec<Vec<CellId>> = Vec::new();
        for node in code.nodes() {
            let rows = code.node_cells(node);
            let rows_a_buffer = match layout {
                BufferLayout::Node => rows.len(),
                BufferLayout::Lane => code.lane_rows(),
            };
            cells.extend(rows.chunks(rows_a_buffer).map(<[CellId]>::to_vec));
        }
        let unplaced = code.data_cells().iter().filter(|&&cell| code.cell(cell).place.is_none());
        cells.extend(unplaced.map(|&cell| vec![cell]));
        let mut locations = vec![Location { buffer: 0, row: 0 }; code.cell_count()];
        for (buffer, cells) in cells.iter().enumerate() {
            for (row, cell) in cells.iter().enumerate() {
                locations[cell.index()] = Location { buffer, row };
            }
        }
        let mut data: Vec<usize> =
            code.data_cells().iter().map(|cell| locations[cell.index()].buffer).collect();
        data.dedup();
        Self { cells, locations, data }
    }
}

/// What encoding a code takes, found once.
#[derive(Debug)]
struct Encoding {
    question: Question,
    /// The nodes that stand then.
    standing: Vec<NodeId>,
    shards: Shards,
}

impl Encoding {
    fn new(code: &Code) -> Self {
        let question = Question::compute(&code.stored(Role::Data), &code.made_in(1));
        Self { question, standing: code.nodes_at(1), shards: Shards::new(code, 1) }
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

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Question {
    Compute(CellSet, CellSet),
    Update(NodeId),
}

impl Question {
    fn compute(have: &CellSet, want: &CellSet) -> Self {
        Self::Compute(have.clone(), want.clone())
    }
}

#[derive(Default)]
struct Programs {
    by_question: HashMap<Question, Arc<Executable>>,
    oldest_first: VecDeque<Question>,
}

impl Programs {
    fn insert(&mut self, question: Question, executable: Arc<Executable>) {
        if self.by_question.insert(question.clone(), executable).is_none() {
            self.oldest_first.push_back(question);
        }
        if self.oldest_first.len() > KEPT_PROGRAMS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.by_question.remove(&oldest);
        }
    }
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} programs", self.by_question.len())
    }
}
