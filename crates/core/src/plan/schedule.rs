//! The schedule: a straight-line XOR program.
//!
//! Operations are `target = source ^ source ^ …` over inputs (`i0`, `i1`, …), temporaries (`t0`, …)
//! and outputs (`o0`, …). Sources may also be added to a target that has a value,
//! `target ^= source ^ …`; data-first orders need this; the passes do not. An operation without
//! sources sets a cell to zeros.
//!
//! In the word layout a cell holds words of GF(2^w), and an operation may multiply its sum by a
//! constant, `target = factor * (source ^ …)`. A schedule of this kind names its field
//! ([`Schedule::over`]); everything else is the same for packets and words.
//!
//! Schedules are only made through [`Schedule::new`] and [`Schedule::over`], which check them, so
//! every kernel may rely on these rules.

use std::fmt;

use crate::define::field::Field;
use crate::define::symbols::WORD_WIDTHS;
use crate::error::{Error, Result};

/// Largest number of inputs, of temporaries and of outputs of a schedule.
pub const MAX_SLOTS: usize = 1 << 24;

/// A cell that an operation reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A cell at hand.
    Input(u32),
    /// An intermediate cell.
    Temp(u32),
    /// A wanted cell.
    Output(u32),
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(n) => write!(f, "i{n}"),
            Self::Temp(n) => write!(f, "t{n}"),
            Self::Output(n) => write!(f, "o{n}"),
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Op {
    /// The temporary or output that is written.
    pub target: Slot,
    /// Whether the sources are added to the target's value instead of replacing it.
    pub accumulate: bool,
    /// Element of the schedule's field that the sum is multiplied by; 1 in packet schedules.
    pub factor: u32,
    /// Cells that are XORed; no slot occurs twice, and the target is not among them.
    pub sources: Vec<Slot>,
}

impl Op {
    /// `target = sources[0] ^ sources[1] ^ …`
    pub fn assign(target: Slot, sources: Vec<Slot>) -> Self {
        Self { target, accumulate: false, factor: 1, sources }
    }

    /// `target = factor * (sources[0] ^ sources[1] ^ …)`
    pub fn multiply(target: Slot, factor: u32, sources: Vec<Slot>) -> Self {
        Self { target, accumulate: false, factor, sources }
    }

    /// `target ^= sources[0] ^ sources[1] ^ …`
    pub fn add(target: Slot, sources: Vec<Slot>) -> Self {
        Self { target, accumulate: true, factor: 1, sources }
    }
}

/// A checked straight-line XOR program.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Schedule {
    inputs: usize,
    temps: usize,
    outputs: usize,
    ops: Vec<Op>,
    field: Option<Field>,
}

impl Schedule {
    /// Checks and takes a list of operations that only XOR.
    ///
    /// # Errors
    /// If an operation writes an input, reads a slot that has no value yet, names a slot out of
    /// range or twice, assigns a slot that is assigned already, adds to a slot that is not yet
    /// assigned, or multiplies; or if an output is never assigned. The message gives the
    /// operation's number, from 0.
    pub fn new(inputs: usize, temps: usize, outputs: usize, ops: Vec<Op>) -> Result<Self> {
        Self::checked(inputs, temps, outputs, ops, None)
    }

    /// Checks and takes a list of operations on words of `field`, which may multiply.
    ///
    /// # Errors
    /// As [`Schedule::new`]; also if words of the field do not have 8, 16 or 32 bits, a factor is
    /// not an element of it, or an operation adds a multiple to its target.
    pub fn over(
        field: Field,
        inputs: usize,
        temps: usize,
        outputs: usize,
        ops: Vec<Op>,
    ) -> Result<Self> {
        if !WORD_WIDTHS.contains(&(field.width() as usize)) {
            let w = field.width();
            return Err(Error::schedule(format!("words must have w = 8, 16 or 32 bits; got {w}")));
        }
        Self::checked(inputs, temps, outputs, ops, Some(field))
    }

    fn checked(
        inputs: usize,
        temps: usize,
        outputs: usize,
        ops: Vec<Op>,
        field: Option<Field>,
    ) -> Result<Self> {
        if inputs.max(temps).max(outputs) > MAX_SLOTS {
            return Err(Error::schedule(format!(
                "a schedule has at most {MAX_SLOTS} cells of a kind: inputs, temporaries or outputs"
            )));
        }
        let schedule = Self { inputs, temps, outputs, ops, field };
        schedule.validate()?;
        Ok(schedule)
    }

    /// The number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of temporaries.
    pub fn temps(&self) -> usize {
        self.temps
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The operations in order.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Field of the words, or `None` if cells are packets.
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// Number of bytes of a word: 1 if cells are packets.
    pub fn word(&self) -> usize {
        self.field.map_or(1, |field| field.width() as usize / 8)
    }

    /// Whether every target is assigned once and never added to.
    pub fn is_single_assignment(&self) -> bool {
        self.ops.iter().all(|op| !op.accumulate)
    }

    /// Refuses schedules that the passes do not support.
    ///
    /// # Errors
    /// If an operation adds to its target, or cells hold words.
    pub(crate) fn require_single_assignment(&self) -> Result<()> {
        if self.is_single_assignment() && self.field.is_none() {
            return Ok(());
        }
        Err(Error::schedule("passes work on schedules of packets without `^=`"))
    }

    /// Whether output `output` may share the memory of input `input`, that is, whether nothing
    /// reads the input after the operation that first writes the output.
    pub fn may_share(&self, input: usize, output: usize) -> bool {
        self.conflict(&[(input, output)]).is_none()
    }

    /// Returns the first of these pairs of an input and an output that may not share memory.
    pub(crate) fn conflict(&self, pairs: &[(usize, usize)]) -> Option<(usize, usize)> {
        if pairs.is_empty() {
            return None;
        }
        let (mut read, mut written) = (vec![None; self.inputs], vec![None; self.outputs]);
        for (number, op) in self.ops.iter().enumerate() {
            for &source in &op.sources {
                if let Slot::Input(input) = source {
                    read[input as usize] = Some(number);
                }
            }
            if let Slot::Output(output) = op.target {
                written[output as usize].get_or_insert(number);
            }
        }
        let conflicts = |&&(input, output): &&(usize, usize)| {
            let read: Option<usize> = read.get(input).copied().flatten();
            let written = written.get(output).copied().flatten();
            read.is_some_and(|read| written.is_none_or(|written| written < read))
        };
        pairs.iter().find(conflicts).copied()
    }

    fn validate(&self) -> Result<()> {
        let mut assigned =
            Assigned { temps: vec![false; self.temps], outputs: vec![false; self.outputs] };
        for (number, op) in self.ops.iter().enumerate() {
            self.validate_op(op, &mut assigned)
                .map_err(|what| Error::schedule(format!("operation {number}: {what}")))?;
        }
        match assigned.outputs.iter().position(|&done| !done) {
            Some(output) => Err(Error::schedule(format!("output o{output} is never assigned"))),
            None => Ok(()),
        }
    }

    fn validate_op(&self, op: &Op, assigned: &mut Assigned) -> Result<(), String> {
        let mut sorted = op.sources.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{} is named twice", pair[0]));
        }
        for &source in &op.sources {
            if source == op.target {
                return Err(format!("{source} is made from itself"));
            }
            if !self.is_ready(source, assigned)? {
                return Err(format!("{source} is read before it is assigned"));
            }
        }
        if op.factor != 1 {
            self.validate_factor(op)?;
        }
        if matches!(op.target, Slot::Input(_)) {
            return Err(format!("{} is an input and cannot be written", op.target));
        }
        match (self.is_ready(op.target, assigned)?, op.accumulate) {
            (true, false) => Err(format!("{} is assigned twice", op.target)),
            (false, true) => Err(format!("{} is added to before it is assigned", op.target)),
            _ => {
                assigned.mark(op.target);
                Ok(())
            }
        }
    }

    fn validate_factor(&self, op: &Op) -> Result<(), String> {
        let factor = op.factor;
        match self.field {
            None => Err(format!("packets are not multiplied; got the factor {factor}")),
            Some(field) if !field.contains(factor.into()) => {
                Err(format!("a factor must be below {}; got {factor}", field.size()))
            }
            Some(_) if op.accumulate => Err("a multiple is added to its target".to_owned()),
            Some(_) => Ok(()),
        }
    }

    fn is_ready(&self, slot: Slot, assigned: &Assigned) -> Result<bool, String> {
        let ready = match slot {
            Slot::Input(n) => ((n as usize) < self.inputs).then_some(true),
            Slot::Temp(n) => assigned.temps.get(n as usize).copied(),
            Slot::Output(n) => assigned.outputs.get(n as usize).copied(),
        };
        ready.ok_or_else(|| format!("{slot} is out of range"))
    }
}

struct Assigned {
    temps: Vec<bool>,
    outputs: Vec<bool>,
}

impl Assigned {
    fn mark(&mut self, slot: Slot) {
        match slot {
            Slot::Input(_) => {}
            Slot::Temp(n) => self.temps[n as usize] = true,
            Slot::Output(n) => self.outputs[n as usize] = true,
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Schedule>().unwrap_err().to_string()
    }

    #[test]
    fn wrong_programs_are_refused_with_the_operation() {
        let head = "inputs 2 temps 2 outputs 1\n";
        for (body, part) in [
            ("o0 = i0 ^ i2", "operation 0: i2 is out of range"),
            ("o0 = i0\ni1 = o0", "operation 1: i1 is an input"),
            ("o0 = i0 ^ i0", "operation 0: i0 is named twice"),
            ("o0 = t0", "operation 0: t0 is read before"),
            ("t0 = i0\nt0 = i1\no0 = t0", "operation 1: t0 is assigned twice"),
            ("t0 = i0\nt1 ^= i1\no0 = t0", "operation 1: t1 is added to before"),
            ("o0 = i0\no0 ^= o0", "operation 1: o0 is made from itself"),
            ("t0 = i0", "o0 is never assigned"),
            ("t7 = i0\no0 = i0", "t7 is out of range"),
            ("o0 = 2 * i0", "operation 0: packets are not multiplied; got the factor 2"),
        ] {
            let message = error(&format!("{head}{body}"));
            assert!(message.contains(part), "{body}: {message}");
        }
    }

    #[test]
    fn factors_are_elements_of_the_field() {
        for (head, body, part) in [
            ("field 8 0x11d", "o0 = 256 * i0", "a factor must be below 256; got 256"),
            ("field 8 0x11d", "o0 = i0\no0 ^= 2 * i1", "a multiple is added"),
            ("field 4 0x13", "o0 = 3 * i0", "words must have w = 8, 16 or 32 bits; got 4"),
            ("field 8 0x100", "o0 = i0", "not irreducible"),
        ] {
            let message = error(&format!("inputs 2 temps 0 outputs 1 {head}\n{body}"));
            assert!(message.contains(part), "{head} {body}: {message}");
        }
    }

    #[test]
    fn sharing_memory_is_allowed_up_to_the_write() {
        let text = "inputs 3 temps 1 outputs 2\nt0 = i0 ^ i1\no0 = t0 ^ i2\no1 = t0 ^ i0\n";
        let schedule: Schedule = text.parse().unwrap();
        assert!(schedule.may_share(2, 0));
        assert!(schedule.may_share(0, 1));
        assert!(!schedule.may_share(0, 0));
        assert!(schedule.may_share(1, 0));
    }
}
