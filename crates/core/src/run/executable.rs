//! Executables: prepared kernels behind a safe interface.
//!
//! [`Executable::run`] is the one place where the buffers of a call are checked against what a
//! program touches, where it is decided how results are stored, and where work is given to threads.
//! Everything below may rely on it. Packets, words and the long blocks of LT codes are three kinds
//! of [`PreparedKernel`]; here they are the same.
//!
//! Buffers need not hold whole strips. What is left is a last strip with shorter packets, its *tail*:
//! a buffer of `rows` rows and `rows · (stripes · packet + tail)` bytes ends with `rows` packets of
//! `tail` bytes. It is copied to a whole strip, run, and copied back, because a kernel runs over whole
//! packets only.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::limits::TILE_BYTES;
use crate::plan::execution::{Execution, Part as PlannedPart, Turns};
use crate::plan::machine::LINE;
use crate::plan::program::Program;
use crate::run::buffers::{Buffer, Line, Memory, Place, PreparedKernel, Scratch, Stores, Table};
use crate::run::threads::{self, Threads};

/// How one buffer of a call is used.
#[derive(Debug, Clone, Copy)]
struct BufferUse {
    /// The rows of a strip.
    rows: usize,
    read: bool,
    written: bool,
    /// Whether it may be left out although it is written.
    optional: bool,
}

impl BufferUse {
    fn is_used(self) -> bool {
        self.read || self.written
    }
}

/// A prepared program, and whether a later one reads what it writes.
struct Part {
    kernel: Box<dyn PreparedKernel>,
    feeds: bool,
}

/// One prepared program, or several that share out the work of a question.
pub(crate) struct Executable {
    /// Of the buffers of a call.
    uses: Vec<BufferUse>,
    /// The bytes of a packet, and of a word in it.
    packet: usize,
    word: usize,
    /// Threads get ranges of stripes that begin at multiples of this.
    grain: usize,
    /// The bytes of a strip of each buffer that belongs to the executable.
    kept: Vec<usize>,
    parts: Vec<Part>,
    turns: Turns,
}

/// What is known of a call's buffers once they have been checked.
struct Call {
    stripes: usize,
    /// The bytes of a packet of the last, shorter strip; 0 where there is none.
    tail: usize,
    /// The bytes of all buffers.
    bytes: usize,
}

impl Executable {
    /// Prepares what has been planned; `prepare` makes the kernel of a part.
    ///
    /// # Errors
    /// Those of `prepare`.
    pub(crate) fn new(
        execution: Execution,
        prepare: impl Fn(PlannedPart) -> Result<Box<dyn PreparedKernel>>,
    ) -> Result<Self> {
        let Execution { parts, turns } = execution;
        let mut uses = uses_of(&parts);
        let kept = match turns {
            Turns::SideBySide => 0,
            Turns::ByTiles { kept } => kept.min(uses.len()),
        };
        let kept = uses.split_off(uses.len() - kept);
        let first = parts.first().map(|part| &part.program);
        let (packet, word) = first.map_or((1, 1), |p| (p.packet(), p.schedule().word()));
        let prepared = parts.into_iter().map(|part| {
            let feeds = part.feeds;
            Ok(Part { kernel: prepare(part)?, feeds })
        });
        Ok(Self {
            uses,
            packet,
            word,
            grain: 1,
            kept: kept.iter().map(|used| used.rows * packet).collect(),
            parts: prepared.collect::<Result<_>>()?,
            turns,
        })
    }

    /// A kernel over whole blocks: buffers are as long as each other, and those that are `written`
    /// may be left out. `grain` is the number of bytes at multiples of which threads begin.
    pub(crate) fn of_blocks(
        kernel: Box<dyn PreparedKernel>,
        buffers: usize,
        read: impl IntoIterator<Item = usize>,
        written: impl IntoIterator<Item = usize>,
        grain: usize,
    ) -> Self {
        let unused = BufferUse { rows: 1, read: false, written: false, optional: false };
        let mut uses = vec![unused; buffers];
        read.into_iter().for_each(|buffer| uses[buffer].read = true);
        for buffer in written {
            uses[buffer].written = true;
            uses[buffer].optional = true;
        }
        Self {
            uses,
            packet: 1,
            word: 1,
            grain,
            kept: Vec::new(),
            parts: vec![Part { kernel, feeds: false }],
            turns: Turns::SideBySide,
        }
    }

    /// Why another kernel had to serve than the one that was to, if that has happened.
    pub(crate) fn fallback(&self) -> Option<String> {
        self.parts.iter().find_map(|part| part.kernel.fallback())
    }

    /// Runs the program over buffers, each with its number; others are absent.
    ///
    /// # Errors
    /// If a buffer that the program needs is absent, one that it writes is only a source, or the
    /// lengths do not fit each other.
    pub(crate) fn run<'b>(
        &self,
        buffers: impl IntoIterator<Item = (usize, Buffer<'b>)>,
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        let place = |places: &mut [Place<'b>]| {
            for (number, buffer) in buffers {
                if let Some(place) = places.get_mut(number) {
                    *place = buffer.into();
                }
            }
        };
        self.run_placed(place, threads, stores)
    }

    /// The same for buffers that `place` notes in a table of all buffers of a call.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub(crate) fn run_placed<'b>(
        &self,
        place: impl FnOnce(&mut [Place<'b>]),
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        let mut places = Table::new();
        let places = places.fill(self.uses.len(), |_| Place::ABSENT);
        place(places);
        self.run_over(places, threads, stores)
    }

    fn run_over(&self, places: &[Place<'_>], threads: Threads, stores: Stores) -> Result<()> {
        let call = self.check(places)?;
        let nontemporal = stores.are_nontemporal(call.bytes);
        let memory = Memory { places, nontemporal };
        if call.stripes > 0 {
            self.run_stripes(&memory, call.stripes, call.bytes, threads);
        }
        if call.tail > 0 {
            self.run_tail(&memory, &call);
        }
        Ok(())
    }

    /// Checks the buffers of a call.
    fn check(&self, places: &[Place<'_>]) -> Result<Call> {
        // The bytes of one row of every buffer.
        let mut row = None;
        let mut rows = 0;
        for (number, (used, place)) in self.uses.iter().zip(places).enumerate() {
            if !used.is_used() || used.optional && place.is_absent() {
                continue;
            }
            let expected = *row.get_or_insert_with(|| place.length / used.rows);
            let is_right = place.length == expected * used.rows;
            if place.is_absent() || !is_right || used.written && !place.is_target {
                return Err(misfit(number, *used, *place, expected));
            }
            rows += used.rows;
        }
        let row = row.unwrap_or(0);
        if self.word > 1 && !row.is_multiple_of(self.word) {
            let word = self.word;
            return Err(Error::length(format!("{row} bytes are not whole words of {word} bytes")));
        }
        Ok(Call { stripes: row / self.packet, tail: row % self.packet, bytes: row * rows })
    }

    /// Runs whole stripes of memory that [`Executable::check`] has seen.
    fn run_stripes(&self, memory: &Memory<'_>, stripes: usize, bytes: usize, threads: Threads) {
        let run = |part: &Part, range: Range<usize>| {
            // SAFETY: `check` found every buffer present, long enough for all stripes and of the
            // right kind, and exclusive borrows stand behind all that is written; there are only
            // the call's. Threads get disjoint stripes, or parts of which `Execution` has seen that
            // none writes what another touches.
            unsafe { part.kernel.run(memory, range) };
        };
        match (&self.parts[..], self.turns) {
            ([part], _) if self.kept.is_empty() => {
                threads::over_stripes(stripes, self.grain, bytes, threads, |range| {
                    run(part, range);
                });
            }
            (_, Turns::ByTiles { .. }) => {
                let run = |range| self.run_by_tiles(memory, range);
                threads::over_stripes(stripes, self.grain, bytes, threads, run);
            }
            (parts, Turns::SideBySide) => {
                threads::over_parts(parts, bytes, threads, |part| run(part, 0..stripes));
            }
        }
    }

    /// Runs all parts in turn over stripes of memory that [`Executable::check`] has seen.
    fn run_by_tiles(&self, memory: &Memory<'_>, range: Range<usize>) {
        let strips =
            self.uses.iter().filter(|used| used.is_used()).map(|used| used.rows * self.packet);
        let stripe: usize = strips.chain(self.kept.iter().copied()).sum();
        let tile = (TILE_BYTES / stripe.max(1)).clamp(1, range.len().max(1));
        let lines = |strip: &usize| (tile * strip).div_ceil(LINE);
        let mut kept: Vec<Box<[MaybeUninit<Line>]>> =
            self.kept.iter().map(|strip| Box::new_uninit_slice(lines(strip))).collect();
        let mut places = memory.places.to_vec();
        places.resize(self.uses.len() + self.kept.len(), Place::ABSENT);
        for start in range.clone().step_by(tile) {
            let tile = start..range.end.min(start + tile);
            let of_kept = places[self.uses.len()..].iter_mut().zip(&mut kept).zip(&self.kept);
            for ((place, lines), strip) in of_kept {
                *place = place.at(lines.as_mut_ptr().cast::<u8>().wrapping_sub(start * strip));
            }
            for part in &self.parts {
                let nontemporal = memory.nontemporal && !part.feeds;
                let memory = Memory { places: &places, nontemporal };
                // SAFETY: `check` found every buffer of the call present, long enough and of the
                // right kind, and exclusive borrows stand behind all that is written. The kept ones
                // are this thread's, have `tile` strips, and `Execution` has seen that they are
                // written before they are read. Threads get disjoint stripes.
                unsafe { part.kernel.run(&memory, tile.clone()) };
            }
        }
    }

    /// Runs the last strip, whose packets are shorter, in a copy with whole packets.
    fn run_tail(&self, memory: &Memory<'_>, call: &Call) {
        let &Call { stripes, tail, .. } = call;
        let rows: usize = self.uses.iter().filter(|u| u.is_used()).map(|used| used.rows).sum();
        let mut scratch = Scratch::new(rows * self.packet);
        // SAFETY: the scratch has this many bytes.
        unsafe { scratch.start().write_bytes(0, rows * self.packet) };
        let mut copies = Table::new();
        let copies = copies.fill(self.uses.len(), |_| Place::ABSENT);
        let mut start = scratch.start();
        for (used, copy) in self.uses.iter().zip(&mut *copies).filter(|(used, _)| used.is_used()) {
            *copy = copy.at(start);
            start = start.wrapping_add(used.rows * self.packet);
        }
        // Calls `copy` with the places of every row in the buffer and in its copy.
        let for_rows = |buffers: &dyn Fn(&BufferUse) -> bool, copy: &dyn Fn(*mut u8, *mut u8)| {
            let places = self.uses.iter().zip(memory.places).zip(&*copies);
            for ((used, buffer), padded) in places.filter(|((used, _), _)| buffers(used)) {
                let strip = buffer.start.wrapping_add(stripes * used.rows * self.packet);
                for row in 0..used.rows {
                    copy(
                        strip.wrapping_add(row * tail),
                        padded.start.wrapping_add(row * self.packet),
                    );
                }
            }
        };
        // SAFETY: `check` found every buffer that is used to end with `rows` packets of `tail` bytes
        // behind its whole strips, and the copy has room for as many whole packets.
        for_rows(&|used| used.is_used(), &|row, padded| unsafe {
            padded.copy_from_nonoverlapping(row, tail);
        });
        let padded = Memory { places: copies, nontemporal: false };
        if self.parts.len() > 1 && self.turns != Turns::SideBySide {
            self.run_by_tiles(&padded, 0..1);
        } else {
            for part in &self.parts {
                // SAFETY: every buffer that is used has one whole strip in the copy.
                unsafe { part.kernel.run(&padded, 0..1) };
            }
        }
        // SAFETY: as above; exclusive borrows stand behind all that is written.
        for_rows(&|used| used.written, &|row, padded| unsafe {
            row.copy_from_nonoverlapping(padded, tail);
        });
    }
}

/// What is wrong with a buffer, each of whose rows should have `row` bytes.
#[cold]
fn misfit(number: usize, used: BufferUse, place: Place<'_>, row: usize) -> Error {
    let (rows, length, expected) = (used.rows, place.length, row * used.rows);
    Error::length(if place.is_absent() {
        format!("buffer {number} is needed but absent")
    } else if used.written && !place.is_target {
        format!("buffer {number} is to be written")
    } else if !length.is_multiple_of(rows) {
        format!(
            "buffer {number} has {length} bytes; a node of {rows} rows must have a multiple of {rows}"
        )
    } else {
        format!("buffer {number} must have {expected} bytes, as others do; got {length}")
    })
}

/// What the parts do with each buffer, together.
fn uses_of(parts: &[PlannedPart]) -> Vec<BufferUse> {
    let rows = parts.first().map_or(&[][..], |part| part.program.rows());
    let unused = |&rows: &usize| BufferUse { rows, read: false, written: false, optional: false };
    let mut uses: Vec<BufferUse> = rows.iter().map(unused).collect();
    for program in parts.iter().map(|part| &*part.program) {
        for (number, used) in uses.iter_mut().enumerate() {
            let (read, written) = Program::access(program, number);
            used.read |= read;
            used.written |= written;
        }
    }
    uses
}
