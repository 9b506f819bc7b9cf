//! Executables: prepared kernels behind a safe interface.
//!
//! [`Executable::run_at`] is the only place that checks the buffers of a call against the cells
//! that a program reads and writes, decides how results are stored, and gives work to threads. All
//! code below may rely on it. Packets, words and the long blocks of LT codes are three kinds of
//! [`PreparedKernel`]; an executable treats them alike.
//!
//! Buffers need not hold whole strips. The remainder is a last strip with shorter packets, its
//! *tail*: a buffer of `rows` rows and `rows · (stripes · packet + tail)` bytes ends with `rows`
//! packets of `tail` bytes. It is copied to a whole strip, run, and copied back, because a kernel
//! runs over whole packets only.

#![allow(unsafe_code)]

use std::ops::Range;

use crate::error::{Error, Result};
use crate::limits::TILE_BYTES;
use crate::plan::direct::sums::Sums;
use crate::plan::execution::{Execution, ProgramPart as PlannedPart, Turns, column_ranges};
use crate::plan::machine::LINE;
use crate::plan::program::Program;
use crate::run::buffers::{BufferPlace, Memory, PreparedKernel, Scratch, Stores, Table};
use crate::run::threads::{self, Threads};

/// How one buffer of a call is used.
#[derive(Debug, Clone, Copy)]
struct BufferUse {
    /// Rows of a strip.
    rows: usize,
    read: bool,
    written: bool,
    /// Whether the caller may leave the buffer out although the program writes it.
    optional: bool,
}

impl BufferUse {
    fn is_used(&self) -> bool {
        self.read || self.written
    }
}

/// A prepared program, and whether a later program reads what it writes.
struct PreparedPart {
    kernel: Box<dyn PreparedKernel>,
    feeds: bool,
}

/// One prepared program, or several programs that share the work of one question.
pub(crate) struct Executable {
    /// For each buffer of a call, how it is used.
    uses: Vec<BufferUse>,
    /// Whether all buffers are used and none may be left out.
    needs_all: bool,
    /// Bytes of a packet, and bytes of a word in it.
    packet: usize,
    word: usize,
    /// Threads and tiles get ranges of stripes that begin at multiples of `grain`, so that only the
    /// last range ends within a body of the compiled code.
    grain: usize,
    /// Bytes of a strip, for each buffer that belongs to the executable.
    kept: Vec<usize>,
    parts: Vec<PreparedPart>,
    turns: Turns,
}

/// The result of checking a call's buffers.
struct CheckedCall {
    stripes: usize,
    /// Bytes of a packet of the last, shorter strip; 0 if there is no such strip.
    tail: usize,
    /// Bytes of all buffers together.
    bytes: usize,
}

impl Executable {
    /// Prepares a planned execution; `prepare` makes the kernel of each part.
    ///
    /// # Errors
    /// As `prepare`.
    pub(crate) fn new(
        execution: Execution,
        prepare: impl Fn(PlannedPart) -> Result<Box<dyn PreparedKernel>>,
    ) -> Result<Self> {
        let Execution { parts, turns } = execution;
        let mut uses = uses_of(&parts);
        let kept = match turns {
            Turns::SideBySide | Turns::ByColumns { .. } => 0,
            Turns::ByTiles { kept } => kept.min(uses.len()),
        };
        let kept = uses.split_off(uses.len() - kept);
        let first = parts.first().map(|part| &part.program);
        let (packet, word) = first.map_or((1, 1), |p| (p.packet(), p.schedule().word()));
        // The numbers are powers of two.
        let compiled = parts.iter().filter_map(|part| part.variants.as_ref()?.as_ref().ok());
        let grain = compiled.map(|variants| variants.shape().together(packet)).max().unwrap_or(1);
        let prepared = parts.into_iter().map(|part| {
            let feeds = part.feeds;
            Ok(PreparedPart { kernel: prepare(part)?, feeds })
        });
        Ok(Self {
            needs_all: needs_all(&uses),
            uses,
            packet,
            word,
            grain,
            kept: kept.iter().map(|used| used.rows * packet).collect(),
            parts: prepared.collect::<Result<_>>()?,
            turns,
        })
    }

    /// Creates an executable from a kernel over whole blocks. All buffers have the same length. If
    /// results are `optional`, a buffer that is `written` and not `read` may be left out. Threads
    /// begin at multiples of `grain` bytes.
    pub(crate) fn of_blocks(
        kernel: Box<dyn PreparedKernel>,
        buffers: usize,
        read: impl IntoIterator<Item = usize>,
        written: impl IntoIterator<Item = usize>,
        optional: bool,
        grain: usize,
    ) -> Self {
        let unused = BufferUse { rows: 1, read: false, written: false, optional: false };
        let mut uses = vec![unused; buffers];
        read.into_iter().for_each(|buffer| uses[buffer].read = true);
        for buffer in written {
            uses[buffer].written = true;
            uses[buffer].optional = optional && !uses[buffer].read;
        }
        Self {
            needs_all: needs_all(&uses),
            uses,
            packet: 1,
            word: 1,
            grain,
            kept: Vec::new(),
            parts: vec![PreparedPart { kernel, feeds: false }],
            turns: Turns::SideBySide,
        }
    }

    /// Creates an executable of one kernel for sums over packets of `packet` bytes, where each
    /// buffer has the number of rows that `rows` says.
    pub(crate) fn of_sums(
        sums: Sums,
        rows: &[usize],
        packet: usize,
        kernel: impl FnOnce(Sums) -> Box<dyn PreparedKernel>,
    ) -> Self {
        let unused =
            |&rows: &usize| BufferUse { rows, read: false, written: false, optional: false };
        let mut uses: Vec<BufferUse> = rows.iter().map(unused).collect();
        sums.inputs.iter().for_each(|cell| uses[cell.buffer].read = true);
        sums.outputs.iter().for_each(|cell| uses[cell.buffer].written = true);
        Self {
            needs_all: needs_all(&uses),
            uses,
            packet,
            word: 1,
            grain: 1,
            kept: Vec::new(),
            parts: vec![PreparedPart { kernel: kernel(sums), feeds: false }],
            turns: Turns::SideBySide,
        }
    }

    /// Number of buffers of a call.
    pub(crate) fn buffers(&self) -> usize {
        self.uses.len()
    }

    /// Returns why another kernel than the intended one runs; `None` if the intended one runs.
    pub(crate) fn fallback(&self) -> Option<String> {
        self.parts.iter().find_map(|part| part.kernel.fallback())
    }

    /// Whether threads share the stripes, instead of the parts or the columns of packets.
    pub(crate) fn is_by_stripes(&self) -> bool {
        match self.turns {
            Turns::SideBySide => self.parts.len() == 1,
            Turns::ByTiles { .. } => true,
            Turns::ByColumns { .. } => false,
        }
    }

    /// Runs the program over the buffers that `place` enters in a table of all buffers of a call.
    /// `name` returns the number by which the caller knows a buffer, for errors.
    ///
    /// # Errors
    /// If a buffer that the program needs is absent, if a buffer that it writes is only a source,
    /// or if the lengths do not fit each other. Also if the system lacks memory for one whole
    /// strip, which is needed to run a last strip with shorter packets.
    pub(crate) fn run_placed<'b>(
        &self,
        place: impl FnOnce(&mut [BufferPlace<'b>]),
        name: impl Fn(usize) -> usize,
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        let mut places = Table::new();
        let places = places.fill(self.buffers(), |_| BufferPlace::ABSENT);
        place(places);
        self.run_at(places, name, threads, stores)
    }

    /// Runs the program over the buffers of a table, which has a place for each buffer of a call.
    /// `name` is as in [`Executable::run_placed`].
    ///
    /// # Errors
    /// As [`Executable::run_placed`].
    pub(crate) fn run_at(
        &self,
        places: &[BufferPlace<'_>],
        name: impl Fn(usize) -> usize,
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        let call = self.check(places, name)?;
        let nontemporal = stores.are_nontemporal(call.bytes);
        let memory = Memory { places, nontemporal };
        if call.stripes > 0 {
            self.run_stripes(&memory, call.stripes, call.bytes, threads);
        }
        if call.tail > 0 {
            self.run_tail(&memory, &call)?;
        }
        Ok(())
    }

    /// Checks the buffers of a call; `name` is as in [`Executable::run_placed`].
    fn check(
        &self,
        places: &[BufferPlace<'_>],
        name: impl Fn(usize) -> usize,
    ) -> Result<CheckedCall> {
        let is_needed = |used: &BufferUse, place: &BufferPlace<'_>| {
            used.is_used() && !(used.optional && place.is_absent())
        };
        let right = match self.needs_all {
            true => self.rows_of(places, |_, _| true),
            false => self.rows_of(places, is_needed),
        };
        let (row, rows) = right.map_err(|(number, row)| {
            misfit(name(number), self.uses[number], places[number], row)
        })?;
        if self.word > 1 && !row.is_multiple_of(self.word) {
            let word = self.word;
            let message = format!(
                "a shard's length must be a multiple of {word} bytes, its words; got {row}"
            );
            return Err(Error::length(message).given_instead(row));
        }
        Ok(CheckedCall {
            stripes: row / self.packet,
            tail: row % self.packet,
            bytes: row.saturating_mul(rows),
        })
    }

    /// Returns the bytes of a row, which are the same for all buffers that are needed, and the
    /// number of rows of these buffers together. Calls with many short buffers spend much of their
    /// time here, so no buffer takes a branch.
    ///
    /// # Errors
    /// Returns the number of the first buffer that is wrong, and the bytes that its rows should
    /// have.
    #[inline(always)]
    fn rows_of(
        &self,
        places: &[BufferPlace<'_>],
        is_needed: impl Fn(&BufferUse, &BufferPlace<'_>) -> bool,
    ) -> Result<(usize, usize), (usize, usize)> {
        let mut needed =
            self.uses.iter().zip(places).filter(|&(used, place)| is_needed(used, place));
        let row = needed.next().map_or(0, |(used, place)| place.length / used.rows);
        let is_wrong = |row: usize, used: &BufferUse, place: &BufferPlace<'_>| {
            place.is_absent()
                | (row.checked_mul(used.rows) != Some(place.length))
                | (used.written & !place.is_target)
        };
        let (mut rows, mut any_wrong) = (0, false);
        for (used, place) in self.uses.iter().zip(places) {
            let is_needed = is_needed(used, place);
            rows += usize::from(is_needed) * used.rows;
            any_wrong |= is_needed & is_wrong(row, used, place);
        }
        if !any_wrong {
            return Ok((row, rows));
        }
        let mut uses = self.uses.iter().zip(places);
        // What is given says what the others should have, if anything is given.
        let is_given = |(used, place): &(&BufferUse, &BufferPlace<'_>)| {
            let is_whole = !place.is_absent() && place.length.is_multiple_of(used.rows);
            used.read && is_needed(used, place) && is_whole
        };
        let given = uses.clone().find(is_given);
        let row = given.map_or(row, |(used, place)| place.length / used.rows);
        let first = uses.position(|(used, it)| is_needed(used, it) && is_wrong(row, used, it));
        Err((first.unwrap_or(0), row))
    }

    /// Runs whole stripes of memory that [`Executable::check`] has checked.
    fn run_stripes(&self, memory: &Memory<'_>, stripes: usize, bytes: usize, threads: Threads) {
        let run = |part: &PreparedPart, range: Range<usize>| {
            // SAFETY: `check` found every buffer present, long enough for all stripes and of the
            // right kind, and everything that is written is borrowed exclusively; all buffers are
            // the call's. Threads get disjoint stripes (those of a column are disjoint, too), or
            // they get parts, and `Execution` has checked that no part writes a cell that another
            // part reads or writes.
            unsafe { part.kernel.run(memory, range) };
        };
        let run_all = |range: Range<usize>| match &self.parts[..] {
            [part] if self.kept.is_empty() => run(part, range),
            _ => self.run_by_tiles(memory, range),
        };
        match self.turns {
            _ if self.is_by_stripes() => {
                threads::over_stripes(stripes, self.grain, bytes, threads, run_all);
            }
            Turns::ByColumns { packet, shares } => {
                let columns = column_ranges(packet, shares).into_iter();
                // A stripe of words is a cache line.
                let columns: Vec<Range<usize>> =
                    columns.map(|bytes| bytes.start / LINE..bytes.end / LINE).collect();
                threads::over_columns(stripes, packet / LINE, &columns, bytes, threads, run_all);
            }
            _ => threads::over_parts(&self.parts, bytes, threads, |part| run(part, 0..stripes)),
        }
    }

    /// Runs all parts in turn over stripes of memory that [`Executable::check`] has checked.
    fn run_by_tiles(&self, memory: &Memory<'_>, range: Range<usize>) {
        let strips =
            self.uses.iter().filter(|used| used.is_used()).map(|used| used.rows * self.packet);
        let stripe: usize = strips.chain(self.kept.iter().copied()).sum();
        let grains = (TILE_BYTES / stripe.max(1) / self.grain).max(1);
        let tile = (grains * self.grain).min(range.len()).max(1);
        let room = |strip: &usize| (tile * strip).next_multiple_of(LINE);
        let mut kept = Scratch::new(self.kept.iter().map(room).sum());
        let first = kept.start();
        let mut places = memory.places.to_vec();
        places.resize(self.uses.len() + self.kept.len(), BufferPlace::ABSENT);
        for start in range.clone().step_by(tile) {
            let tile = start..range.end.min(start + tile);
            let mut next = first;
            for (place, strip) in places[self.uses.len()..].iter_mut().zip(&self.kept) {
                *place = place.at(next.wrapping_sub(start * strip));
                next = next.wrapping_add(room(strip));
            }
            for part in &self.parts {
                let nontemporal = memory.nontemporal && !part.feeds;
                let memory = Memory { places: &places, nontemporal };
                // SAFETY: `check` found every buffer of the call present, long enough and of the
                // right kind, and everything that is written is borrowed exclusively. The kept
                // buffers belong to this thread and have `tile` strips; `Execution` has checked
                // that they are written before they are read. Threads get disjoint stripes.
                unsafe { part.kernel.run(&memory, tile.clone()) };
            }
        }
    }

    /// Runs the last strip, whose packets are shorter, in a copy with whole packets.
    ///
    /// # Errors
    /// If the system lacks memory for the copy.
    fn run_tail(&self, memory: &Memory<'_>, call: &CheckedCall) -> Result<()> {
        let &CheckedCall { stripes, tail, .. } = call;
        let rows: usize = self.uses.iter().filter(|u| u.is_used()).map(|used| used.rows).sum();
        let mut scratch = Scratch::try_new(rows.saturating_mul(self.packet))?;
        // SAFETY: the scratch has exactly this many bytes.
        unsafe { scratch.start().write_bytes(0, rows * self.packet) };
        let mut copies = Table::new();
        let copies = copies.fill(self.uses.len(), |_| BufferPlace::ABSENT);
        let mut start = scratch.start();
        for (used, copy) in self.uses.iter().zip(&mut *copies).filter(|(used, _)| used.is_used()) {
            *copy = copy.at(start);
            start = start.wrapping_add(used.rows * self.packet);
        }
        // Calls `copy` with the place of every row in the buffer and its place in the padded copy.
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
        // SAFETY: `check` found that every used buffer ends with `rows` packets of `tail` bytes
        // after its whole strips, and the copy has room for `rows` whole packets.
        for_rows(&|used| used.is_used(), &|row, padded| unsafe {
            padded.copy_from_nonoverlapping(row, tail);
        });
        let padded = Memory { places: copies, nontemporal: false };
        if self.parts.len() > 1 && self.turns != Turns::SideBySide {
            self.run_by_tiles(&padded, 0..1);
        } else {
            for part in &self.parts {
                // SAFETY: every used buffer has one whole strip in the copy.
                unsafe { part.kernel.run(&padded, 0..1) };
            }
        }
        // SAFETY: as above; everything that is written is borrowed exclusively.
        for_rows(&|used| used.written, &|row, padded| unsafe {
            row.copy_from_nonoverlapping(padded, tail);
        });
        Ok(())
    }
}

/// Returns the error for a buffer whose rows should have `row` bytes each.
#[cold]
fn misfit(number: usize, used: BufferUse, place: BufferPlace<'_>, row: usize) -> Error {
    let (rows, length) = (used.rows, place.length);
    let expected = row.saturating_mul(rows);
    let error = if place.is_absent() {
        Error::buffers(format!("buffer {number} is needed but absent"))
    } else if used.written && !place.is_target {
        Error::buffers(format!("buffer {number} is computed, so it must be a target"))
    } else if !length.is_multiple_of(rows) {
        Error::length(format!(
            "buffer {number} must have a multiple of {rows} bytes, its rows; got {length} (codes over \
             words, as backblaze and isal-cauchy, take any length)"
        ))
    } else {
        let message =
            format!("buffer {number} must have {expected} bytes, as the others; got {length}");
        Error::length(message).expecting(expected)
    };
    error.at(number).given_instead(length)
}

/// Whether all buffers are used and none may be left out.
fn needs_all(uses: &[BufferUse]) -> bool {
    uses.iter().all(|used| used.is_used() && !used.optional)
}

/// Combines the uses of each buffer by all parts.
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
