//! A schedule bound to memory: the places of its cells in the buffers of a call.
//!
//! A buffer is a sequence of strips, and a strip is `rows` packets. So the cell of row `r` of
//! stripe `s` begins at byte `(s · rows + r) · packet` of its buffer. A buffer may be a whole node
//! (its rows interleaved strip by strip), or one lane of a node. A program may process only some
//! *columns* of every packet, so that several programs can divide a packet among them.

use std::collections::{HashMap, HashSet};
use std::iter::repeat_n;
use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::plan::pieces::{self, PieceValue, SchedulePiece};
use crate::plan::schedule::{Schedule, Slot};

/// The place of a cell: a packet of every strip of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellLocation {
    /// The buffer's number in the call.
    pub buffer: usize,
    /// The row in the buffer's strips.
    pub row: usize,
}

/// A schedule, with the locations of its inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    schedule: Schedule,
    inputs: Vec<CellLocation>,
    outputs: Vec<CellLocation>,
    /// For each buffer of a call, the number of rows of its strips. Parts of a question share it: a
    /// wide code has thousands of parts and of buffers.
    rows: Arc<[usize]>,
    /// The buffers in use, ascending.
    access: Vec<BufferAccess>,
    packet: usize,
    columns: Range<usize>,
}

/// The number of a buffer, whether it is read, and whether it is written.
type BufferAccess = (usize, (bool, bool));

/// Returns the buffers that cells are read from and written to, ascending.
fn accesses(inputs: &[CellLocation], outputs: &[CellLocation]) -> Vec<BufferAccess> {
    let read = inputs.iter().map(|location| (location.buffer, (true, false)));
    let written = outputs.iter().map(|location| (location.buffer, (false, true)));
    let mut accesses: Vec<BufferAccess> = read.chain(written).collect();
    accesses.sort_unstable();
    accesses.dedup_by(|(other, more), (buffer, all)| {
        let is_same = other == buffer;
        if is_same {
            *all = (all.0 | more.0, all.1 | more.1);
        }
        is_same
    });
    accesses
}

/// The bytes of the buffers of a call that a program touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// For each buffer, the number of rows of its strips.
    pub(crate) rows: Arc<[usize]>,
    /// Cells that are read, and cells that are written.
    pub(crate) read: Vec<CellLocation>,
    pub(crate) written: Vec<CellLocation>,
    /// The bytes of each of these cells that are touched.
    pub(crate) columns: Range<usize>,
}

impl Program {
    /// Binds a schedule. `rows[b]` is the number of packets in a strip of buffer `b`, `packet` the
    /// number of bytes of a packet.
    ///
    /// # Errors
    /// If counts differ, a location is outside its buffer, two outputs share a place, an output
    /// shares the place of an input that is read after the output is written, or the packet is
    /// empty.
    pub fn new(
        schedule: Schedule,
        inputs: Vec<CellLocation>,
        outputs: Vec<CellLocation>,
        rows: impl Into<Arc<[usize]>>,
        packet: usize,
    ) -> Result<Self> {
        let rows = rows.into();
        if schedule.inputs() != inputs.len() || schedule.outputs() != outputs.len() || packet == 0 {
            return Err(Error::schedule(format!(
                "a program needs {} input and {} output locations and a packet of at least a byte",
                schedule.inputs(),
                schedule.outputs()
            )));
        }
        let outside = |l: &&CellLocation| rows.get(l.buffer).is_none_or(|&rows| l.row >= rows);
        if let Some(CellLocation { buffer, row }) = inputs.iter().chain(&outputs).find(outside) {
            return Err(Error::schedule(format!("row {row} of buffer {buffer} does not exist")));
        }
        let (access, columns) = (accesses(&inputs, &outputs), 0..packet);
        let program = Self { schedule, inputs, outputs, rows, access, packet, columns };
        program.check_sharing()?;
        Ok(program)
    }

    /// Restricts the program to some bytes of every packet.
    ///
    /// # Errors
    /// If the range is empty or outside the packet.
    pub fn over_columns(self, columns: Range<usize>) -> Result<Self> {
        if columns.is_empty() || columns.end > self.packet {
            let packet = self.packet;
            return Err(Error::schedule(format!(
                "packets of {packet} bytes have no bytes {columns:?}"
            )));
        }
        Ok(Self { columns, ..self })
    }

    /// Returns programs that compute the same when they run in turn, and the number of additional
    /// buffers in which they keep values for each other; `None` if the schedule is short or cannot
    /// be cut. For `ranks` of inputs see [`pieces::cut`].
    ///
    /// # Errors
    /// Never, for a valid program.
    pub(crate) fn in_pieces(&self, ranks: &[usize]) -> Result<Option<(Vec<Self>, usize)>> {
        let Some((pieces, kept)) = pieces::cut(&self.schedule, ranks)? else { return Ok(None) };
        // Compiled code processes strips of one length.
        let strip = self.inputs.first().map_or(1, |input| self.rows[input.buffer]);
        let more = kept.div_ceil(strip);
        let rows: Arc<[usize]> = self.rows.iter().copied().chain(repeat_n(strip, more)).collect();
        let locate = |value: &PieceValue| match *value {
            PieceValue::Input(n) => self.inputs[n as usize],
            PieceValue::Output(n) => self.outputs[n as usize],
            PieceValue::Kept(n) => CellLocation {
                buffer: self.rows.len() + n as usize / strip,
                row: n as usize % strip,
            },
        };
        let bind = |SchedulePiece { schedule, inputs, outputs }: SchedulePiece| {
            let inputs = inputs.iter().map(locate).collect();
            let outputs = outputs.iter().map(locate).collect();
            let whole = Self::new(schedule, inputs, outputs, Arc::clone(&rows), self.packet)?;
            whole.over_columns(self.columns())
        };
        let pieces = pieces.into_iter().map(bind).collect::<Result<_>>()?;
        Ok(Some((pieces, more)))
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Number of bytes of a packet.
    pub fn packet(&self) -> usize {
        self.packet
    }

    /// Bytes of every packet that the program processes.
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// Offset in its strip at which the program's part of a packet begins.
    pub fn offset(&self, location: CellLocation) -> usize {
        location.row * self.packet + self.columns.start
    }

    /// The number of packets in a strip of each buffer.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Location of an input or output; `None` for temporaries.
    pub fn location(&self, slot: Slot) -> Option<CellLocation> {
        match slot {
            Slot::Input(n) => Some(self.inputs[n as usize]),
            Slot::Output(n) => Some(self.outputs[n as usize]),
            Slot::Temp(_) => None,
        }
    }

    /// Number of bytes of one strip of a buffer.
    pub fn strip(&self, buffer: usize) -> usize {
        self.rows[buffer] * self.packet
    }

    /// Whether a buffer is read, and whether it is written.
    pub(crate) fn access(&self, buffer: usize) -> (bool, bool) {
        let found = self.access.binary_search_by_key(&buffer, |&(number, _)| number);
        found.map_or((false, false), |place| self.access[place].1)
    }

    /// The buffers that are read or written, ascending.
    pub(crate) fn buffers_in_use(&self) -> impl Iterator<Item = usize> {
        self.access.iter().map(|&(buffer, _)| buffer)
    }

    /// Pairs of an input and the output that overwrites it.
    pub(crate) fn shared(&self) -> Vec<(usize, usize)> {
        let outputs: HashMap<CellLocation, usize> = self.outputs.iter().copied().zip(0..).collect();
        let inputs = self.inputs.iter().enumerate();
        inputs.filter_map(|(input, place)| Some((input, *outputs.get(place)?))).collect()
    }

    /// The buffer that each input lies in.
    pub(crate) fn streams(&self) -> Vec<usize> {
        self.inputs.iter().map(|location| location.buffer).collect()
    }

    /// Whether every buffer in use is a single stream of packets, and packets are processed whole.
    pub(crate) fn is_flat(&self) -> bool {
        let mut used = self.buffers_in_use();
        self.columns == (0..self.packet) && used.all(|buffer| self.rows[buffer] == 1)
    }

    /// Returns the bytes that the program touches.
    pub(crate) fn footprint(&self) -> Footprint {
        Footprint {
            rows: Arc::clone(&self.rows),
            read: self.inputs.clone(),
            written: self.outputs.clone(),
            columns: self.columns(),
        }
    }

    fn check_sharing(&self) -> Result<()> {
        let mut seen = HashSet::new();
        if let Some(location) = self.outputs.iter().find(|&&location| !seen.insert(location)) {
            return Err(Error::schedule(format!("two outputs lie at {location:?}")));
        }
        match self.schedule.conflict(&self.shared()) {
            None => Ok(()),
            Some((input, _)) => Err(Error::schedule(format!(
                "input {input} at {:?} is read after it is overwritten",
                self.inputs[input]
            ))),
        }
    }
}
