//! LT codes over memory: blocks from an object, and the object from enough blocks.
//!
//! The interface follows the evaluation's appendix (Uyeda, Xia and Chien 2004), in the terms of
//! this library. [`LtEncoder::encode`] computes n blocks and an [`LtInfo`]. An [`LtDecoder`] made
//! from that information receives blocks in any order until [`LtDecoder::push`] reports that they
//! suffice; then [`LtDecoder::reconstruct`] returns the object. These values hold all the state.
//! Returned bytes lie in large pages ([`Pages`]); a caller with memory of its own uses
//! [`LtEncoder::encode_into`] and [`LtDecoder::reconstruct_into`].
//!
//! To decode, the graph is solved first, which touches no block, and the schedule is proved. Then
//! several threads run it tile by tile over all blocks at once, so that each block is read once and
//! each part of the object written once (`run/blocks.rs`). To encode, the graph is the schedule.

mod blocks;
mod info;
mod metadata;

pub use crate::define::lt::{Graph, LtCode};
pub use crate::plan::lt::{Decoder, Method, Reception};
pub use blocks::{LtBlock, LtBlocks};
pub use info::LtInfo;

use std::num::NonZeroUsize;

use crate::define::cells::CellId;
use crate::error::{Error, Result};
use crate::limits::BYTES_A_THREAD;
use crate::plan::Plan;
use crate::plan::blocks::BlockProgram;
use crate::plan::prove::Proof;
use crate::plan::schedule::Schedule;
use crate::run;
use crate::run::buffers::{BufferPlace, Stores};
use crate::run::dispatch::KernelChoice;
use crate::run::pages::Pages;
use crate::run::threads::Threads;

/// Packet size, in bytes, for which a kernel is chosen.
const PACKET: usize = 64;

/// Options for running LT codes.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LtOptions {
    /// The method by which received blocks become a schedule.
    pub method: Method,
    /// Largest number of threads of a call; by default as many as the machine has processors.
    pub threads: Option<NonZeroUsize>,
    /// Kernel that runs. If a compiled kernel is chosen, the tiled kernel on the same registers
    /// runs.
    pub kernel: KernelChoice,
    /// How results are stored.
    pub stores: Stores,
}

impl Default for LtOptions {
    fn default() -> Self {
        Self {
            method: Method::Inactivation,
            threads: None,
            kernel: KernelChoice::default(),
            stores: Stores::default(),
        }
    }
}

impl LtOptions {
    /// Sets the method by which received blocks become a schedule.
    pub fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// Uses at most `threads` threads; 0 means as many as the machine has processors.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: NonZeroUsize::new(threads), ..self }
    }

    /// Sets the choice of a kernel.
    pub fn kernel(self, kernel: KernelChoice) -> Self {
        Self { kernel, ..self }
    }

    /// Stores results as `stores` says.
    pub fn stores(self, stores: Stores) -> Self {
        Self { stores, ..self }
    }

    /// Runs a schedule over whole blocks. For error messages, `number` returns the caller's number
    /// of an output.
    fn run<'b>(
        &self,
        schedule: &Schedule,
        inputs: &[&'b [u8]],
        outputs: Vec<Option<&'b mut [u8]>>,
        number: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let program = BlockProgram::new(schedule)?;
        let chosen = self.kernel.resolve(PACKET);
        let runners = chosen.runners().ok_or_else(|| chosen.unavailable())?;
        let threads = Threads { most: self.threads, bytes_each: BYTES_A_THREAD };
        let (read, made) = (inputs.len(), outputs.len());
        let numbers = (0..read).collect();
        let executable = run::blocks::prepare(
            program,
            runners,
            numbers,
            (read..read + made).collect(),
            true,
            read + made,
        )?;
        let place = |places: &mut [BufferPlace<'b>]| {
            let inputs = inputs.iter().map(|&input| BufferPlace::from(input));
            let outputs = outputs
                .into_iter()
                .map(|output| output.map_or(BufferPlace::ABSENT, BufferPlace::from));
            places.iter_mut().zip(inputs.chain(outputs)).for_each(|(place, of)| *place = of);
        };
        let name = |buffer: usize| buffer.checked_sub(read).map_or(buffer, &number);
        executable.run_placed(place, name, threads, self.stores)
    }
}

/// Computes blocks from objects.
///
/// ```
/// use paritas::lt::{LtCode, LtDecoder, LtEncoder, LtOptions};
/// let code = LtCode::new(&"lt:k=10,n=30".parse()?)?;
/// let object: Vec<u8> = (0..12_345).map(|i| i as u8).collect();
/// let (info, blocks) = LtEncoder::new(code, LtOptions::default())?.encode(&object)?;
///
/// let mut decoder = LtDecoder::new(&info, LtOptions::default())?;
/// for block in blocks.iter().rev() {
///     if decoder.push(block)? {
///         break;
///     }
/// }
/// assert_eq!(&decoder.reconstruct()?[..], object);
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug)]
pub struct LtEncoder {
    code: LtCode,
    graph: Graph,
    options: LtOptions,
}

impl LtEncoder {
    /// Returns an encoder; draws the code's graph.
    ///
    /// # Errors
    /// As [`LtCode::graph`].
    pub fn new(code: LtCode, options: LtOptions) -> Result<Self> {
        let graph = code.graph()?;
        Ok(Self { code, graph, options })
    }

    /// The code.
    pub fn code(&self) -> &LtCode {
        &self.code
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns all blocks of an object, and the information that a decoder needs about them.
    ///
    /// # Errors
    /// If the object is empty ([`crate::ErrorKind::Parameters`]), or if memory does not suffice
    /// ([`crate::ErrorKind::Memory`]).
    pub fn encode(&self, object: &[u8]) -> Result<(LtInfo, LtBlocks)> {
        expect_object(object.len())?;
        let bytes = object.len().div_ceil(self.code.data());
        let mut blocks = LtBlocks::zeroed(self.code.blocks(), bytes)?;
        let numbers: Vec<usize> = (0..blocks.count()).collect();
        self.encode_into(object, &numbers, &mut blocks.targets())?;
        let info = LtInfo::new(self.code.clone(), object.len(), &blocks);
        Ok((info, blocks))
    }

    /// Computes some blocks of an object into the caller's memory: `blocks[i]` becomes the block
    /// with number `numbers[i]`. All blocks have the same length, at least a k-th of the object. If
    /// k blocks of that length are longer than the object, the object is extended with zeros.
    ///
    /// # Errors
    /// If `blocks` does not have one block for each of `numbers` ([`crate::ErrorKind::Buffers`]).
    /// If the object is empty, if the code lacks a block that `numbers` names, if a number occurs
    /// twice, or if the blocks are too short for the object ([`crate::ErrorKind::Parameters`]). If
    /// the blocks differ in length ([`crate::ErrorKind::Length`]).
    pub fn encode_into(
        &self,
        object: &[u8],
        numbers: &[usize],
        blocks: &mut [&mut [u8]],
    ) -> Result<()> {
        if numbers.len() != blocks.len() {
            let (needed, given) = (numbers.len(), blocks.len());
            let message =
                format!("the number of blocks must be {needed}, one for each number; got {given}");
            return Err(Error::buffers(message).expecting(needed).given_instead(given));
        }
        expect_object(object.len())?;
        let plan = self.graph.encode_some(numbers)?;
        let Some(bytes) = blocks.first().map(|block| block.len()) else { return Ok(()) };
        let data = self.code.data();
        if bytes.checked_mul(data).is_none_or(|room| room < object.len()) || bytes == 0 {
            return Err(Error::parameters(format!(
                "{data} blocks of {bytes} bytes do not hold an object of {} bytes",
                object.len()
            )));
        }
        let padded = Padded::new(object, bytes, data);
        let inputs: Vec<&[u8]> =
            plan.inputs().iter().map(|cell| padded.block(cell.index())).collect();
        let outputs: Vec<Option<&mut [u8]>> =
            blocks.iter_mut().map(|block| Some(&mut block[..])).collect();
        self.options.run(plan.schedule(), &inputs, outputs, |output| numbers[output])
    }
}

/// Checks that an object is not empty.
fn expect_object(bytes: usize) -> Result<()> {
    match bytes {
        0 => Err(Error::parameters("an object must have at least 1 byte; got 0")),
        _ => Ok(()),
    }
}

/// An object, divided into whole blocks.
struct Padded<'o> {
    object: &'o [u8],
    bytes: usize,
    /// The first block that the object does not fill: the rest of the object, then zeros. All
    /// blocks after it are `zeros`.
    last: Vec<u8>,
    zeros: Vec<u8>,
}

impl<'o> Padded<'o> {
    fn new(object: &'o [u8], bytes: usize, data: usize) -> Self {
        let full = object.len() / bytes;
        let mut last = object[full * bytes..].to_vec();
        last.resize(if full < data { bytes } else { 0 }, 0);
        let zeros = vec![0; if full + 1 < data { bytes } else { 0 }];
        Self { object, bytes, last, zeros }
    }

    fn block(&self, data: usize) -> &[u8] {
        let full = self.object.len() / self.bytes;
        match data.cmp(&full) {
            std::cmp::Ordering::Less => &self.object[data * self.bytes..][..self.bytes],
            std::cmp::Ordering::Equal => &self.last,
            std::cmp::Ordering::Greater => &self.zeros,
        }
    }
}

/// Rebuilds an object from blocks in any order. `B` holds the bytes of a block: a slice, or memory
/// that the decoder owns.
#[derive(Debug, Clone)]
pub struct LtDecoder<B = Vec<u8>> {
    info: LtInfo,
    options: LtOptions,
    solver: Decoder,
    /// For each block, its bytes if it has been received and may be needed.
    blocks: Vec<Option<B>>,
}

impl<B: AsRef<[u8]>> LtDecoder<B> {
    /// Returns a decoder that has not received any block yet; draws the graph.
    ///
    /// # Errors
    /// As [`LtCode::graph`].
    pub fn new(info: &LtInfo, options: LtOptions) -> Result<Self> {
        let graph = info.graph()?;
        Self::with_graph(info, &graph, options)
    }

    /// Like [`LtDecoder::new`], with a graph that has been drawn already by [`LtInfo::graph`]. Many
    /// segments can share one graph.
    ///
    /// # Errors
    /// If the graph is not that of the code.
    pub fn with_graph(info: &LtInfo, graph: &Graph, options: LtOptions) -> Result<Self> {
        let (needed, given) = ((info.data(), info.blocks()), (graph.data(), graph.blocks()));
        if given != needed {
            return Err(Error::parameters(format!(
                "a graph of {} blocks over {} data blocks is foreign: the code has {} over {}",
                given.1, given.0, needed.1, needed.0
            )));
        }
        if !info.has_graph(graph)? {
            return Err(Error::parameters(format!(
                "the graph is foreign: its blocks have other neighbours than those of {}",
                info.code().spec()
            )));
        }
        let solver = Decoder::new(graph, options.method);
        let blocks = (0..graph.blocks()).map(|_| None).collect();
        Ok(Self { info: info.clone(), options, solver, blocks })
    }

    /// Receives a block. Returns whether the object can be rebuilt. A block that was received
    /// before changes nothing. With inactivation, more blocks than suffice make
    /// [`LtDecoder::reconstruct`] faster (twice as fast in cache with 1.05 k blocks, for k = 1024);
    /// so push every block at hand.
    ///
    /// # Errors
    /// If the code has no block of that number, if its length differs, or if its checksum differs
    /// from that in the [`LtInfo`] (the block is damaged, or belongs to another object). The
    /// decoder then stays as it was.
    pub fn push(&mut self, block: LtBlock<B>) -> Result<bool> {
        let LtBlock { number, bytes } = block;
        self.info.check(number, bytes.as_ref())?;
        let before = self.received();
        let ready = self.solver.push(number)?;
        if self.received() > before {
            self.blocks[number] = Some(bytes);
        }
        Ok(ready)
    }

    /// Whether the object can be rebuilt.
    pub fn is_ready(&self) -> bool {
        self.solver.is_ready()
    }

    /// Number of different blocks received.
    pub fn received(&self) -> usize {
        self.solver.received()
    }

    /// Returns the schedule that rebuilds the object from blocks; see [`Decoder::plan`].
    ///
    /// # Errors
    /// As [`LtDecoder::reconstruct`].
    pub fn plan(&self) -> Result<Plan> {
        self.solver.plan()
    }

    /// Returns the object, in new memory.
    ///
    /// # Errors
    /// If the blocks received do not suffice ([`crate::ErrorKind::NotEnough`]); the message says
    /// how many more are likely needed. If the system lacks memory for the object
    /// ([`crate::ErrorKind::Memory`]).
    pub fn reconstruct(&self) -> Result<Pages> {
        if !self.is_ready() {
            return Err(self.solver.not_enough());
        }
        let bytes = self.info.object_bytes();
        let bytes = usize::try_from(bytes).map_err(|_| Error::too_large(bytes))?;
        let mut object = Pages::zeroed(bytes)?;
        self.reconstruct_into(&mut object)?;
        Ok(object)
    }

    /// Writes the object to the caller's memory, which must have the object's length. This is
    /// faster than [`LtDecoder::reconstruct`] if the memory has been used before, because the
    /// system need not clear it.
    ///
    /// # Errors
    /// As [`LtDecoder::reconstruct`]; also if `object` has another length
    /// ([`crate::ErrorKind::Length`]).
    pub fn reconstruct_into(&self, object: &mut [u8]) -> Result<()> {
        let (expected, given) = (self.info.object_bytes(), object.len());
        if given as u64 != expected {
            let message = format!("memory for the object must have {expected} bytes; got {given}");
            return Err(Error::length(message).expecting(expected as usize).given_instead(given));
        }
        if !self.is_ready() {
            return Err(self.solver.not_enough());
        }
        let plan = Proof::of_graph(self.solver.graph()).proved(self.solver.plan()?)?;
        let data = self.info.data();
        let block = |cell: &CellId| self.blocks[cell.index() - data].as_ref();
        let inputs: Option<Vec<&[u8]>> =
            plan.inputs().iter().map(|cell| block(cell).map(B::as_ref)).collect();
        let inputs = inputs.ok_or_else(|| self.solver.not_enough())?;
        self.write(plan.schedule(), &inputs, object)
    }

    fn write(&self, schedule: &Schedule, inputs: &[&[u8]], object: &mut [u8]) -> Result<()> {
        let bytes = self.info.block_bytes();
        let whole = object.len() / bytes * bytes;
        let (full, rest) = object.split_at_mut(whole);
        let mut last = vec![0; if rest.is_empty() { 0 } else { bytes }];
        let mut outputs: Vec<Option<&mut [u8]>> = full.chunks_exact_mut(bytes).map(Some).collect();
        if !last.is_empty() {
            outputs.push(Some(&mut last));
        }
        outputs.resize_with(self.info.data(), || None);
        self.options.run(schedule, inputs, outputs, |output| output)?;
        rest.copy_from_slice(&last[..rest.len()]);
        Ok(())
    }

    /// Estimates how many of the blocks not yet received are still needed: the average over random
    /// orders. Returns `None` if even all of them would not suffice.
    pub fn likely_needed(&self) -> Option<usize> {
        self.solver.likely_needed()
    }
}
