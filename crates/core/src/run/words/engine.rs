//! A word program in the form that a kernel runs: which algorithm, over which bytes, stored how.

use std::ops::Range;

use crate::run::kernel::vector::Streaming;
use crate::run::kernel::{Compiled, Memory};
use crate::run::words::horner::Horner;
use crate::run::words::multiplier::Multiplier;
use crate::run::words::products::Products;
use crate::run::words::program::WordProgram;

/// A cache line: what is stored past the cache is stored in whole ones.
pub(super) const LINE: usize = 64;

/// Compiles a program for an instruction set; `None` where the processor has it not, and for words
/// that are not of 8, 16 or 32 bits.
pub(super) fn compile<M: Multiplier>(program: &WordProgram) -> Option<Box<dyn Compiled>> {
    if !M::is_available() {
        return None;
    }
    match program.field().width() {
        8 => Some(Box::new(Engine::<M, 1>::new(program))),
        16 => Some(Box::new(Engine::<M, 2>::new(program))),
        32 => Some(Box::new(Engine::<M, 4>::new(program))),
        _ => None,
    }
}

/// A compiled program over words of N bytes. Only [`compile`] makes one, where the processor has the
/// instruction set.
pub(super) struct Engine<M: Multiplier, const N: usize> {
    algorithm: Algorithm<M, N>,
    outputs: Vec<usize>,
    /// The bytes of a strip, and of a stripe of all buffers that are used.
    strip: usize,
    stripe: usize,
    /// Whether stores may bypass the cache: not where what they hold is read before.
    streams: bool,
}

enum Algorithm<M: Multiplier, const N: usize> {
    Products(Products<M, N>),
    Horner(Horner),
}

/// Some bytes of every buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) length: usize,
    /// Whether results are stored past the cache; they then begin at a cache line.
    pub(super) streams: bool,
}

impl<M: Multiplier, const N: usize> Compiled for Engine<M, N> {
    unsafe fn run(&self, memory: &Memory, stripes: Range<usize>) {
        // SAFETY: the caller's contract; `compile` found the processor to have the instruction set.
        unsafe { M::enter(self, memory, stripes) }
    }
}

impl<M: Multiplier, const N: usize> Engine<M, N> {
    fn new(program: &WordProgram) -> Self {
        let algorithm = match Horner::new(program) {
            Some(horner) => Algorithm::Horner(horner),
            None => Algorithm::Products(Products::new(program)),
        };
        let used = program.inputs().len() + program.outputs().len();
        Self {
            algorithm,
            outputs: program.outputs().to_vec(),
            strip: program.strip(),
            stripe: used * program.strip(),
            streams: M::Register::STREAMS && !program.adds(),
        }
    }

    /// Runs over a range of stripes.
    ///
    /// # Safety
    /// As [`Multiplier::enter`], from where it is called.
    #[inline(always)]
    pub(super) unsafe fn run_here(&self, memory: &Memory, stripes: Range<usize>) {
        let bytes = stripes.start * self.strip..stripes.end * self.strip;
        for span in self.spans(memory, bytes) {
            // SAFETY: the caller's contract: a span lies within the strips of `stripes` and is a
            // whole number of words; where it streams, every output begins at a cache line.
            unsafe {
                match &self.algorithm {
                    Algorithm::Products(products) => products.run(memory, span),
                    Algorithm::Horner(horner) => horner.run::<M, N>(memory, span),
                }
                if span.streams {
                    M::Register::fence();
                }
            }
        }
    }

    /// All bytes at once, or where results go past the cache, those before the first whole line and
    /// the rest.
    fn spans(&self, memory: &Memory, bytes: Range<usize>) -> [Span; 2] {
        let past_cache = self.streams && memory.past_cache(self.stripe);
        let before = self.bytes_before_lines(memory, bytes.start).filter(|_| past_cache);
        let head = before.unwrap_or(0).min(bytes.len());
        [
            Span { start: bytes.start, length: head, streams: false },
            Span {
                start: bytes.start + head,
                length: bytes.len() - head,
                streams: before.is_some(),
            },
        ]
    }

    /// How far it is to the next cache line in all outputs; `None` where they differ, or the line
    /// begins within a word.
    fn bytes_before_lines(&self, memory: &Memory, start: usize) -> Option<usize> {
        let distance =
            |&output: &usize| (memory.pointer(output).addr() + start).wrapping_neg() % LINE;
        let first = distance(self.outputs.first()?);
        let all = self.outputs.iter().all(|output| distance(output) == first);
        (all && first.is_multiple_of(N)).then_some(first)
    }
}
