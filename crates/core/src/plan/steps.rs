//! Steps: the vector instructions that a plan finally consists of.
//!
//! A step is one instruction of a machine with registers, or close to one on every supported
//! machine. `allocate.rs` makes steps from a vector program; `run/jit` translates each step to
//! machine code and makes no choices.

use crate::plan::vector::{Map, PairOperation};

/// A vector register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u8);

/// A vector in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryOperand {
    /// The current vector of an input.
    Input(u32),
    /// The current vector of an output.
    Output(u32),
    /// A vector of the scratch.
    Scratch(u32),
    /// A constant of the program.
    Constant(u32),
}

/// An operand that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand<M = MemoryOperand> {
    /// A register.
    Register(Register),
    /// Memory.
    Memory(M),
}

/// One vector instruction; `M` describes the memory that it reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step<M = MemoryOperand> {
    /// `to = 0`
    Zero {
        /// The register that is written.
        to: Register,
    },
    /// `to = from`
    Load {
        /// The register that is written.
        to: Register,
        /// The operand that is loaded.
        from: Operand<M>,
    },
    /// `to = a ^ b`
    Xor {
        /// The register that is written.
        to: Register,
        /// The first source.
        a: Register,
        /// The second source.
        b: Operand<M>,
    },
    /// `to ^= a ^ b`
    Xor3 {
        /// The register that the sources are added to.
        to: Register,
        /// The first source.
        a: Register,
        /// The second source.
        b: Operand<M>,
    },
    /// `to = map(a)`
    Map {
        /// The register that is written.
        to: Register,
        /// The operation.
        map: Map,
        /// The source.
        a: Register,
    },
    /// `to = pair(a, b)`
    Pair {
        /// The register that is written.
        to: Register,
        /// The operation.
        pair: PairOperation,
        /// The first source.
        a: Register,
        /// The second source.
        b: Operand<M>,
    },
    /// `to = from`
    Store {
        /// The register that is read.
        from: Register,
        /// The vector that is written.
        to: M,
    },
}

impl<M> Operand<M> {
    fn map<N>(self, place: impl FnOnce(M) -> N) -> Operand<N> {
        match self {
            Self::Register(register) => Operand::Register(register),
            Self::Memory(memory) => Operand::Memory(place(memory)),
        }
    }
}

impl<M> Step<M> {
    /// Returns the same instruction with its memory described in another way.
    pub fn map<N>(self, place: impl FnOnce(M) -> N) -> Step<N> {
        match self {
            Self::Zero { to } => Step::Zero { to },
            Self::Load { to, from } => Step::Load { to, from: from.map(place) },
            Self::Xor { to, a, b } => Step::Xor { to, a, b: b.map(place) },
            Self::Xor3 { to, a, b } => Step::Xor3 { to, a, b: b.map(place) },
            Self::Map { to, map, a } => Step::Map { to, map, a },
            Self::Pair { to, pair, a, b } => Step::Pair { to, pair, a, b: b.map(place) },
            Self::Store { from, to } => Step::Store { from, to: place(to) },
        }
    }
}

impl Step {
    /// Returns the memory that the instruction reads.
    pub fn reads(&self) -> Option<MemoryOperand> {
        match *self {
            Self::Load { from: Operand::Memory(memory), .. }
            | Self::Xor { b: Operand::Memory(memory), .. }
            | Self::Xor3 { b: Operand::Memory(memory), .. }
            | Self::Pair { b: Operand::Memory(memory), .. } => Some(memory),
            _ => None,
        }
    }
}

/// A schedule's instructions for one run: `group` consecutive vectors of every cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// The instructions.
    pub steps: Vec<Step>,
    /// Number of vectors of scratch.
    pub scratch: usize,
    /// Number of vectors that are loaded.
    pub loads: usize,
    /// Number of vectors that are stored.
    pub stores: usize,
    /// Number of consecutive vectors of each cell: `MemoryOperand::Input(n)` is vector `n % group`
    /// of input `n / group`, and likewise for outputs.
    pub group: usize,
    /// Constants, each to be repeated over a whole vector.
    pub constants: Vec<[u8; 16]>,
}

impl Allocation {
    /// Returns the vectors of inputs that are read, ascending; a schedule may leave some out.
    pub(crate) fn inputs_read(&self) -> Vec<u32> {
        let read = |step: &Step| match step.reads() {
            Some(MemoryOperand::Input(n)) => Some(n),
            _ => None,
        };
        let mut inputs: Vec<u32> = self.steps.iter().filter_map(read).collect();
        inputs.sort_unstable();
        inputs.dedup();
        inputs
    }

    /// Returns the number of times that vectors of inputs and outputs are read.
    pub(crate) fn reads_of_cells(&self) -> usize {
        let is_cell = |read: &MemoryOperand| {
            matches!(read, MemoryOperand::Input(_) | MemoryOperand::Output(_))
        };
        self.steps.iter().filter_map(Step::reads).filter(is_cell).count()
    }

    /// Counts the instructions.
    pub(crate) fn instructions(&self) -> Instructions {
        Instructions { count: self.steps.len(), loads: self.loads, stores: self.stores }
    }

    /// As [`Instructions::cost`].
    pub(crate) fn cost(&self) -> usize {
        self.instructions().cost()
    }
}

/// Cost of a load in addition to its instruction; see [`Instructions::cost`].
pub(crate) const LOAD_COST: usize = 4;

/// Counts of the instructions that a compiled kernel executes in one run over one vector of every
/// cell (in the word layout, over the group of vectors that takes its place).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instructions {
    /// Number of vector instructions, loads and stores included.
    pub count: usize,
    /// Number of vectors that are loaded.
    pub loads: usize,
    /// Number of vectors that are stored.
    pub stores: usize,
}

impl Instructions {
    /// Cost in quarters of a load: a load counts 4, a store 8, and every instruction, loads and
    /// stores included, 1 more. Processors load two or three vectors a cycle and store one, and run
    /// several other instructions beside them. With these weights the orders of 6+3, 10+4 and 20+4
    /// rank as they were measured.
    pub fn cost(self) -> usize {
        LOAD_COST * (self.loads + 2 * self.stores) + self.count
    }
}
