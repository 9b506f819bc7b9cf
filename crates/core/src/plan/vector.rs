//! Vector programs: a schedule as operations of one machine on whole vectors, before register
//! allocation.
//!
//! An operation computes one vector from others. Most are XORs of any number of vectors. The word
//! layout also has maps of single vectors and operations on pairs, which together multiply by
//! constants (see `lower.rs`). All of them treat each 16 bytes of a vector alike, so running a
//! program on vectors of 16 bytes shows what it computes on any machine.

use std::array::from_fn;

/// A vector that an operation reads or computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    /// A vector of an input.
    Input(u32),
    /// A constant: the same 16 bytes repeated.
    Constant(u32),
    /// An intermediate result.
    Temp(u32),
    /// A vector of an output.
    Output(u32),
}

/// An operation on one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Map {
    /// Every 16-bit word shifted right by this many bits; zeros come in.
    ShiftWords(u8),
    /// Every byte shifted right by this many bits; zeros come in.
    ShiftBytes(u8),
    /// Every word of this many bytes becomes all ones where its top bit is set, else zero.
    Sign(u8),
    /// Every word of this many bytes shifted left by one bit.
    Twice(u8),
}

/// An operation on two vectors, `a` and `b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairOperation {
    /// The bits that are set in both.
    And,
    /// A look-up: byte i of the result is byte `a[i]` of table `b`; `a[i]` is below 16.
    Lookup,
    /// Every byte of `a` times the bit matrix in the 8 bytes of `b` at the same place
    /// (`gf2p8affineqb`).
    Affine,
    /// Every byte becomes all ones if the byte of `a` is greater than that of `b` (both signed),
    /// else zero.
    Greater,
    /// The low bytes of all 16-bit words of `a`, then of `b`; the high bytes are zero.
    Pack,
    /// The bytes of `a`, then of `b`, at even places.
    Even,
    /// The bytes of `a`, then of `b`, at odd places.
    Odd,
    /// The first 8 bytes of `a` and of `b`, alternating.
    InterleaveLow,
    /// The last 8 bytes of `a` and of `b`, alternating.
    InterleaveHigh,
}

impl PairOperation {
    /// Whether `b` may be read from memory on a machine with memory operands.
    pub(crate) fn reads_memory(self) -> bool {
        self != Self::Lookup
    }
}

/// How a vector is computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VectorWork {
    /// The XOR of any number of vectors; none occurs twice.
    Xor(Vec<Value>),
    Map(Map, Value),
    Pair(PairOperation, [Value; 2]),
}

impl VectorWork {
    /// Returns the vectors that are read.
    pub(crate) fn sources(&self) -> &[Value] {
        match self {
            Self::Xor(sources) => sources,
            Self::Map(_, source) => std::slice::from_ref(source),
            Self::Pair(_, sources) => sources,
        }
    }
}

/// One operation; every target is computed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VectorOp {
    pub(crate) target: Value,
    pub(crate) work: VectorWork,
}

/// The bytes of a constant, which fill a vector by repetition.
pub(crate) type Lane = [u8; LANE];

/// Number of bytes that all operations treat alike.
pub(crate) const LANE: usize = 16;

/// Operations on vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VectorProgram {
    /// Number of consecutive vectors of each cell that one run handles: cell `n` is the vectors
    /// `n * group` to `n * group + group - 1`.
    pub(crate) group: usize,
    /// The number of vectors of inputs, temporaries and outputs.
    pub(crate) inputs: usize,
    pub(crate) temps: usize,
    pub(crate) outputs: usize,
    pub(crate) constants: Vec<Lane>,
    pub(crate) ops: Vec<VectorOp>,
}

impl VectorProgram {
    /// Number of vectors that have names.
    pub(crate) fn values(&self) -> usize {
        self.inputs + self.constants.len() + self.temps + self.outputs
    }

    /// A number below [`VectorProgram::values`] for each vector, inputs first.
    pub(crate) fn number(&self, value: Value) -> usize {
        let constants = self.inputs;
        let temps = constants + self.constants.len();
        match value {
            Value::Input(n) => n as usize,
            Value::Constant(n) => constants + n as usize,
            Value::Temp(n) => temps + n as usize,
            Value::Output(n) => temps + self.temps + n as usize,
        }
    }
}

impl Map {
    /// Applies the map to 16 bytes.
    pub(crate) fn apply(self, a: Lane) -> Lane {
        match self {
            Self::ShiftWords(bits) => words::<2>(a, |word| word >> bits),
            Self::ShiftBytes(bits) => a.map(|byte| byte >> bits),
            Self::Sign(1) => words::<1>(a, |word| (word >> 7) * 0xFF),
            Self::Sign(2) => words::<2>(a, |word| (word >> 15) * 0xFFFF),
            Self::Sign(_) => words::<4>(a, |word| (word >> 31) * u32::MAX),
            Self::Twice(1) => words::<1>(a, |word| word << 1),
            Self::Twice(2) => words::<2>(a, |word| word << 1),
            Self::Twice(_) => words::<4>(a, |word| word << 1),
        }
    }
}

/// Applies `map` to every little-endian word of N bytes.
fn words<const N: usize>(a: Lane, map: impl Fn(u32) -> u32) -> Lane {
    let mut mapped = a;
    for word in mapped.chunks_exact_mut(N) {
        let mut bytes = [0; 4];
        bytes[..N].copy_from_slice(word);
        word.copy_from_slice(&map(u32::from_le_bytes(bytes)).to_le_bytes()[..N]);
    }
    mapped
}

impl PairOperation {
    /// Applies the operation to 16 bytes of each vector.
    pub(crate) fn apply(self, a: Lane, b: Lane) -> Lane {
        let both = |n: usize| if n < LANE { a[n] } else { b[n - LANE] };
        let turns = |n: usize| if n.is_multiple_of(2) { a[n / 2] } else { b[n / 2] };
        match self {
            Self::And => from_fn(|n| a[n] & b[n]),
            // Machines differ in the result for larger numbers; correct programs never use them.
            Self::Lookup => from_fn(|n| b.get(usize::from(a[n])).copied().unwrap_or(0xFF)),
            Self::Affine => from_fn(|n| transformed(a[n], &b[n / 8 * 8..][..8])),
            Self::Greater => from_fn(|n| if a[n] as i8 > b[n] as i8 { 0xFF } else { 0 }),
            Self::Pack | Self::Even => from_fn(|n| both(2 * n)),
            Self::Odd => from_fn(|n| both(2 * n + 1)),
            Self::InterleaveLow => from_fn(turns),
            Self::InterleaveHigh => from_fn(|n| turns(n + LANE)),
        }
    }
}

/// A byte times a bit matrix as `gf2p8affineqb` defines it: bit i of the product is the parity of
/// the byte AND the matrix's byte 7 - i.
fn transformed(byte: u8, matrix: &[u8]) -> u8 {
    (0..8).fold(0, |bits, i| bits | ((matrix[7 - i] & byte).count_ones() as u8 & 1) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Lane = [
        0x00, 0x80, 0x01, 0x7F, 0xFF, 0xFF, 0x12, 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE, 0xF0, 0x0F,
        0x10,
    ];

    #[test]
    fn maps_by_hand() {
        assert_eq!(Map::ShiftWords(4).apply(A)[..4], [0x00, 0x08, 0xF0, 0x07]);
        assert_eq!(Map::ShiftBytes(4).apply(A)[..4], [0x00, 0x08, 0x00, 0x07]);
        assert_eq!(Map::Sign(1).apply(A)[..4], [0x00, 0xFF, 0x00, 0x00]);
        assert_eq!(Map::Sign(2).apply(A)[..4], [0xFF, 0xFF, 0x00, 0x00]);
        assert_eq!(Map::Sign(4).apply(A)[8..12], [0xFF; 4]);
        assert_eq!(Map::Twice(1).apply(A)[..4], [0x00, 0x00, 0x02, 0xFE]);
        assert_eq!(Map::Twice(2).apply(A)[..4], [0x00, 0x00, 0x02, 0xFE]);
        assert_eq!(Map::Twice(4).apply(A)[4..8], [0xFE, 0xFF, 0x25, 0x68]);
    }

    #[test]
    fn pairs_by_hand() {
        let b: Lane = from_fn(|n| n as u8);
        assert_eq!(PairOperation::Lookup.apply([15; LANE], b), [15; LANE]);
        assert_eq!(PairOperation::Pack.apply(A, b)[..3], [0x00, 0x01, 0xFF]);
        assert_eq!(PairOperation::Odd.apply(A, b)[7..10], [0x10, 1, 3]);
        assert_eq!(PairOperation::InterleaveLow.apply(A, b)[..4], [0x00, 0, 0x80, 1]);
        assert_eq!(PairOperation::InterleaveHigh.apply(A, b)[..4], [0x56, 8, 0x78, 9]);
        assert_eq!(PairOperation::Greater.apply([0; LANE], A)[..5], [0, 0xFF, 0, 0, 0xFF]);
        let identity = 0x0102_0408_1020_4080_u64.to_le_bytes();
        let identity: Lane = from_fn(|n| identity[n % 8]);
        assert_eq!(PairOperation::Affine.apply(A, identity), A);
    }
}
