//! A schedule bound to memory: where its cells lie in the buffers of a call.
//!
//! A buffer is a run of strips, and a strip is `rows` packets. So the cell of row `r` of stripe `s`
//! begins at byte `(s · rows + r) · packet` of its buffer. A buffer may be a whole node (its rows
//! interleaved strip by strip), or one lane of a node.

use crate::error::{Error, Result};
use crate::plan::schedule::{Schedule, Slot};

/// Which packet of every strip of which buffer a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// The buffer's number in the call.
    pub buffer: usize,
    /// The row in the buffer's strips.
    pub row: usize,
}

/// A schedule with the locations of its inputs and outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    schedule: Schedule,
    inputs: Vec<Location>,
    outputs: Vec<Location>,
    /// Per buffer, the rows of its strips.
    rows: Vec<usize>,
    packet: usize,
}

impl Program {
    /// Binds a schedule. `rows[b]` is the number of packets in a strip of buffer `b`, `packet`
    /// their bytes.
    ///
    /// # Errors
    /// When counts differ, a location is outside its buffer, two outputs lie in one place, an
    /// output lies where an input is still read after it, or the packet is empty.
    pub fn new(
        schedule: Schedule,
        inputs: Vec<Location>,
        outputs: Vec<Location>,
        rows: Vec<usize>,
        packet: usize,
    ) -> Result<Self> {
        if schedule.inputs() != inputs.len() || schedule.outputs() != outputs.len() || packet == 0 {
            return Err(Error::length(format!(
                "a program needs {} input and {} output locations and a packet of at least a byte",
                schedule.inputs(),
                schedule.outputs()
            )));
        }
        let outside = |l: &&Location| rows.get(l.buffer).is_none_or(|&rows| l.row >= rows);
        if let Some(Location { buffer, row }) = inputs.iter().chain(&outputs).find(outside) {
            return Err(Error::length(format!("row {row} of buffer {buffer} does not exist")));
        }
        let program = Self { schedule, inputs, outputs, rows, packet };
        program.check_sharing()?;
        Ok(program)
    }

    /// The schedule.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The bytes of a packet.
    pub fn packet(&self) -> usize {
        self.packet
    }

    /// The number of packets in a strip of each buffer.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Where an input or output lies; `None` for temporaries.
    pub fn location(&self, slot: Slot) -> Option<Location> {
        match slot {
            Slot::Input(n) => Some(self.inputs[n as usize]),
            Slot::Output(n) => Some(self.outputs[n as usize]),
            Slot::Temp(_) => None,
        }
    }

    /// The bytes of one strip of a buffer.
    pub fn strip(&self, buffer: usize) -> usize {
        self.rows[buffer] * self.packet
    }

    /// Whether a buffer is read, and whether it is written.
    pub(crate) fn access(&self, buffer: usize) -> (bool, bool) {
        let in_buffer = |locations: &[Location]| locations.iter().any(|l| l.buffer == buffer);
        (in_buffer(&self.inputs), in_buffer(&self.outputs))
    }

    fn check_sharing(&self) -> Result<()> {
        let mut seen = std::collections::HashMap::new();
        for (output, location) in self.outputs.iter().enumerate() {
            if seen.insert(*location, output).is_some() {
                return Err(Error::length(format!("two outputs lie at {location:?}")));
            }
        }
        for (input, location) in self.inputs.iter().enumerate() {
            let shared = seen.get(location);
            if shared.is_some_and(|&output| !self.schedule.may_share(input, output)) {
                return Err(Error::length(format!(
                    "input {input} at {location:?} is read after it is overwritten"
                )));
            }
        }
        Ok(())
    }
}
