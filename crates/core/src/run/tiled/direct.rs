//! The direct kernels: sums of packets, and of multiples of words, whose terms are data.
//!
//! A block of vectors of every output is summed in registers before the next block begins. In long
//! packets the vectors of a block lie side by side. If packets are shorter than a block, each
//! vector of a block comes from a strip of its own, and the packets are processed vector by vector.
//! So looking a term up costs little compared with adding it.

use std::ops::Range;

use crate::limits::TILED_BUDGET;
use crate::plan::direct::sums::Terms;
use crate::run::buffers::{BufferPlace, Memory, Table};
use crate::run::tiled::multiplier::Multiplier;
use crate::run::tiled::transform::recovery::run_recovery;
use crate::run::tiled::transform::run_transform;
use crate::run::tiled::vector::Vector;

/// The cells of sums, in some strips.
pub(crate) struct DirectMemory<'a> {
    /// The packets of the first strip that are read.
    pub(crate) inputs: &'a [*mut u8],
    /// The packets of the first strip that are computed.
    pub(crate) outputs: &'a [*mut u8],
    /// Bytes of a packet and of a strip of every buffer.
    pub(crate) packet: usize,
    pub(crate) strip: usize,
    /// Number of strips.
    pub(crate) strips: usize,
}

/// Adds packets: the kernel for every instruction set. `LANES` is the number of vectors of a block.
///
/// # Safety
/// As [`DirectRunner`](super::DirectRunner); `V`'s instruction set is available.
#[inline(always)]
pub(super) unsafe fn run_sums<V: Vector, const LANES: usize>(
    terms: &Terms,
    memory: &DirectMemory<'_>,
) {
    let Terms::Packets { inputs, ends } = terms else { return };
    let sums = PacketTerms { inputs, ends };
    let vectors = memory.packet / V::BYTES;
    // SAFETY: the caller's contract. The columns of the three calls are disjoint and end with the
    // packet.
    unsafe {
        if vectors >= LANES {
            let block = LANES * V::BYTES;
            let whole = memory.packet / block * block;
            for strip in 0..memory.strips {
                for column in (0..whole).step_by(block) {
                    sums.block::<V, LANES>(memory, strip * memory.strip + column, V::BYTES);
                }
            }
            sums.columns::<V, LANES>(memory, whole..vectors * V::BYTES);
        } else {
            sums.columns::<V, LANES>(memory, 0..vectors * V::BYTES);
        }
        let words = memory.packet / 8 * 8;
        sums.columns::<u64, 1>(memory, vectors * V::BYTES..words);
        sums.columns::<u8, 1>(memory, words..memory.packet);
    }
}

/// Loads vectors that begin `step` bytes apart. Closures would do, but compilers leave them outside
/// of the functions that enable an instruction set.
///
/// # Safety
/// The vectors are valid for reading; `V` is available.
#[inline(always)]
unsafe fn load<V: Vector, const LANES: usize>(from: *const u8, step: usize) -> [V; LANES] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut vectors = [V::load(from); LANES];
        for (lane, vector) in vectors.iter_mut().enumerate().skip(1) {
            *vector = V::load(from.wrapping_add(lane * step));
        }
        vectors
    }
}

/// Packets that are added.
struct PacketTerms<'a> {
    inputs: &'a [u32],
    ends: &'a [u32],
}

impl PacketTerms<'_> {
    /// Computes some columns of every packet, a vector of `LANES` strips at a time.
    ///
    /// # Safety
    /// As [`run_sums`]; the columns are whole vectors and lie within a packet.
    #[inline(always)]
    unsafe fn columns<V: Vector, const LANES: usize>(
        &self,
        memory: &DirectMemory<'_>,
        columns: Range<usize>,
    ) {
        if columns.is_empty() {
            return;
        }
        let mut strip = 0;
        while strip < memory.strips {
            let left = memory.strips - strip;
            let starts = columns.clone().step_by(V::BYTES);
            let starts = starts.map(|column| strip * memory.strip + column);
            // SAFETY: the columns lie within a packet, and the strips that a block takes exist.
            strip += unsafe {
                match left {
                    _ if left >= LANES => self.blocks::<V, LANES>(memory, starts),
                    4.. => self.blocks::<V, 4>(memory, starts),
                    2.. => self.blocks::<V, 2>(memory, starts),
                    _ => self.blocks::<V, 1>(memory, starts),
                }
            };
        }
    }

    /// Computes vectors of `LANES` strips, which begin at the bytes `starts` of every cell, and
    /// returns the number of strips.
    ///
    /// # Safety
    /// All cells are valid for these vectors.
    #[inline(always)]
    unsafe fn blocks<V: Vector, const LANES: usize>(
        &self,
        memory: &DirectMemory<'_>,
        starts: impl Iterator<Item = usize>,
    ) -> usize {
        for start in starts {
            // SAFETY: the caller's contract.
            unsafe { self.block::<V, LANES>(memory, start, memory.strip) };
        }
        LANES
    }

    /// Computes `LANES` vectors of every output. The first one lies `offset` bytes after the first
    /// byte of the cell, and each further one `step` bytes after the one before.
    ///
    /// # Safety
    /// All cells are valid for these vectors.
    #[inline(always)]
    unsafe fn block<V: Vector, const LANES: usize>(
        &self,
        memory: &DirectMemory<'_>,
        offset: usize,
        step: usize,
    ) {
        let mut start = 0;
        for (output, &end) in memory.outputs.iter().zip(self.ends) {
            let terms = &self.inputs[start..end as usize];
            let at = |term: u32| memory.inputs[term as usize].wrapping_add(offset);
            // SAFETY: the caller's contract; a sum has at least one term.
            unsafe {
                let mut sums = load::<V, LANES>(at(terms[0]), step);
                for &term in &terms[1..] {
                    let from = at(term);
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        *sum = sum.xor(V::load(from.wrapping_add(lane * step)));
                    }
                }
                let to = output.wrapping_add(offset);
                for (lane, sum) in sums.into_iter().enumerate() {
                    sum.store(to.wrapping_add(lane * step));
                }
            }
            start = end as usize;
        }
    }
}

/// Computes words of a byte by products or by a transform: the kernel for every instruction set.
/// `GROUP` is the number of entries of a transform that a pass holds in registers; for the other
/// parameters see [`run_products`].
///
/// # Safety
/// As [`run_products`]. A transform's buffers are the inputs and the outputs.
#[inline(always)]
pub(super) unsafe fn run_words<
    V: Vector,
    M: Multiplier<V>,
    const OUTPUTS: usize,
    const LANES: usize,
    const TOGETHER: usize,
    const GROUP: usize,
>(
    terms: &Terms,
    memory: &DirectMemory<'_>,
) {
    let Terms::Transform(program) = terms else {
        // SAFETY: the caller's contract.
        return unsafe { run_products::<V, M, OUTPUTS, LANES, TOGETHER>(terms, memory) };
    };
    let mut places = Table::new();
    let read = memory.inputs.len();
    let start = |n: usize| if n < read { memory.inputs[n] } else { memory.outputs[n - read] };
    let length = memory.strips * memory.strip;
    let places =
        places.fill(read + memory.outputs.len(), |n| BufferPlace::of_part(start(n), length));
    let memory_of_transform = Memory { places, nontemporal: false };
    // SAFETY: the caller's contract: each buffer is valid for all strips, which are whole granules.
    unsafe {
        if program.derives() {
            run_recovery::<V, M, GROUP>(program, &memory_of_transform, 0..memory.strips);
        } else {
            run_transform::<V, M, GROUP, 1>(program, &memory_of_transform, 0..memory.strips);
        }
    }
}

/// Adds multiples of words of a byte. `OUTPUTS` sums of `LANES` vectors each are kept in registers,
/// and `TOGETHER` inputs are added to them at a time: two where an instruction adds three vectors.
/// A strip is a single packet.
///
/// # Safety
/// As [`DirectRunner`](super::DirectRunner); `V`'s instruction set is available, and vectors divide
/// a packet.
#[inline(always)]
unsafe fn run_products<
    V: Vector,
    M: Multiplier<V>,
    const OUTPUTS: usize,
    const LANES: usize,
    const TOGETHER: usize,
>(
    terms: &Terms,
    memory: &DirectMemory<'_>,
) {
    let Terms::Words { field, factors } = terms else { return };
    let inputs = memory.inputs.len();
    let bytes = memory.strips * memory.strip;
    // All outputs are computed over a tile of the inputs, which stays in the second-level cache.
    let tile = (TILED_BUDGET / inputs).next_multiple_of(LANES * V::BYTES);
    for start in (0..bytes).step_by(tile) {
        let columns = start..bytes.min(start + tile);
        let groups = memory.outputs.chunks(OUTPUTS).zip(factors.chunks(OUTPUTS * inputs));
        for (outputs, factors) in groups {
            let group =
                DirectProducts::<V, M> { all: M::factors(*field), inputs: memory.inputs, factors };
            // SAFETY: the caller's contract.
            unsafe {
                match *outputs {
                    [a] => group.run::<1, LANES, TOGETHER>(&[a], columns.clone()),
                    [a, b] => group.run::<2, LANES, TOGETHER>(&[a, b], columns.clone()),
                    [a, b, c] => group.run::<3, LANES, TOGETHER>(&[a, b, c], columns.clone()),
                    [a, b, c, d, ..] => {
                        group.run::<4, LANES, TOGETHER>(&[a, b, c, d], columns.clone())
                    }
                    [] => {}
                }
            }
        }
    }
}

/// Sums of multiples of the same inputs.
struct DirectProducts<'a, V: Vector, M: Multiplier<V>> {
    all: &'static [M::Factor; 256],
    inputs: &'a [*mut u8],
    /// For each output, a factor for each input.
    factors: &'a [u8],
}

impl<V: Vector, M: Multiplier<V>> DirectProducts<'_, V, M> {
    /// Computes some columns of the outputs.
    ///
    /// # Safety
    /// As [`run_products`]; the columns are whole vectors, and all cells are valid for them.
    #[inline(always)]
    unsafe fn run<const OUTPUTS: usize, const LANES: usize, const TOGETHER: usize>(
        &self,
        outputs: &[*mut u8; OUTPUTS],
        columns: Range<usize>,
    ) {
        let block = LANES * V::BYTES;
        let whole = columns.start + columns.len() / block * block;
        for column in (columns.start..whole).step_by(block) {
            // SAFETY: the caller's contract.
            unsafe { self.block::<OUTPUTS, LANES, TOGETHER>(outputs, column) };
        }
        for column in (whole..columns.end).step_by(V::BYTES) {
            // SAFETY: the caller's contract.
            unsafe { self.block::<OUTPUTS, 1, TOGETHER>(outputs, column) };
        }
    }

    /// Computes `LANES` vectors of the outputs from byte `column` on.
    ///
    /// # Safety
    /// All cells are valid for these vectors; there is at least one input, and for each output a
    /// factor for each input.
    #[inline(always)]
    unsafe fn block<const OUTPUTS: usize, const LANES: usize, const TOGETHER: usize>(
        &self,
        outputs: &[*mut u8; OUTPUTS],
        column: usize,
    ) {
        let count = self.inputs.len();
        // SAFETY: the caller's contract.
        unsafe {
            let vectors = load::<V, LANES>(self.inputs[0].wrapping_add(column), V::BYTES);
            let mut sums = [vectors; OUTPUTS];
            for (output, sums) in sums.iter_mut().enumerate() {
                for sum in sums {
                    *sum = M::times(*sum, self.factor(output, 0));
                }
            }
            let together = 1 + (count - 1) / TOGETHER * TOGETHER;
            for input in (1..together).step_by(TOGETHER) {
                self.add::<OUTPUTS, LANES, TOGETHER>(&mut sums, input, column);
            }
            for input in together..count {
                self.add::<OUTPUTS, LANES, 1>(&mut sums, input, column);
            }
            for (sums, output) in sums.iter().zip(outputs) {
                for (lane, sum) in sums.iter().enumerate() {
                    sum.store(output.wrapping_add(column + lane * V::BYTES));
                }
            }
        }
    }

    /// The factor of an input in an output.
    #[inline(always)]
    fn factor(&self, output: usize, input: usize) -> &'static M::Factor {
        &self.all[usize::from(self.factors[output * self.inputs.len() + input])]
    }

    /// Adds multiples of `INPUTS` inputs, from number `first` on, to the sums of a block.
    ///
    /// # Safety
    /// As [`DirectProducts::block`]; there are that many inputs from `first` on.
    #[inline(always)]
    unsafe fn add<const OUTPUTS: usize, const LANES: usize, const INPUTS: usize>(
        &self,
        sums: &mut [[V; LANES]; OUTPUTS],
        first: usize,
        column: usize,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            let at = |n: usize| self.inputs[first + n].wrapping_add(column);
            let mut vectors = [load::<V, LANES>(at(0), V::BYTES); INPUTS];
            for (n, vectors) in vectors.iter_mut().enumerate().skip(1) {
                *vectors = load(at(n), V::BYTES);
            }
            for (output, sums) in sums.iter_mut().enumerate() {
                for (n, vectors) in vectors.iter().enumerate() {
                    let factor = self.factor(output, first + n);
                    for (sum, &vector) in sums.iter_mut().zip(vectors) {
                        *sum = sum.xor(M::times(vector, factor));
                    }
                }
            }
        }
    }
}
