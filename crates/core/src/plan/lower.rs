//! Lowering: turns a schedule into operations on the vectors of one machine.
//!
//! Packets need no lowering: an XOR of cells is an XOR of vectors. For words this module decides
//! how to multiply by a constant.
//!
//! Multiplication by a constant of GF(2^(8N)) is a linear map of a word's bits. Divided into bytes,
//! it is N by N linear maps of bytes: byte `to` of a product is the sum over `from` of a map of
//! byte `from` of the word ([`ByteMap`]). Memory holds the bytes of a word side by side. So N
//! vectors of words are separated into N *planes*, where plane p holds byte p of every word, and
//! joined again before they are stored; words of four bytes take two rounds of pairs. (Plank,
//! Greenan and Miller, *Screaming fast Galois field arithmetic using Intel SIMD instructions*, FAST
//! 2013, call words so arranged in memory the alternate mapping; here it exists in registers
//! alone.) With N = 1 nothing is rearranged.
//!
//! A machine maps bytes in one of two ways. With GFNI a map is a matrix of 8 by 8 bits. Elsewhere
//! it is two tables of 16 bytes, one for the low half of a byte and one for the high half. The
//! halves of a cell are extracted once for all its products; the halves of a sum of two cells are
//! the sums of their halves.
//!
//! In a schedule whose only factor is 2, such as Horner's rule for P and Q of RAID-6, words stay as
//! they are. Doubling is a shift, followed by an XOR of the polynomial's tail where the top bit was
//! set (H. Peter Anvin, *The mathematics of RAID-6*).

use std::collections::HashMap;

use crate::define::field::Field;
use crate::error::{Error, Result};
use crate::plan::machine::{Machine, Multiplier};
use crate::plan::schedule::{Op, Schedule, Slot};
use crate::plan::vector::{
    LANE, Lane, Map, PairOperation, Value, VectorOp, VectorProgram, VectorWork,
};

/// Returns the vector program of a schedule on a machine, operation by operation in the schedule's
/// order.
///
/// # Errors
/// If an operation adds to its target, which compiled kernels do not do.
pub(crate) fn lower(schedule: &Schedule, machine: Machine) -> Result<VectorProgram> {
    if !schedule.is_single_assignment() {
        return Err(Error::schedule("schedules with `^=` are not compiled"));
    }
    match schedule.field() {
        None => Ok(packets(schedule)),
        Some(field) => Ok(Lowering::new(schedule, field, machine).run()),
    }
}

/// Lowers a schedule of packets: slots are vectors and sums are XORs.
fn packets(schedule: &Schedule) -> VectorProgram {
    let value = |slot: &Slot| match *slot {
        Slot::Input(n) => Value::Input(n),
        Slot::Temp(n) => Value::Temp(n),
        Slot::Output(n) => Value::Output(n),
    };
    let op = |op: &Op| VectorOp {
        target: value(&op.target),
        work: VectorWork::Xor(op.sources.iter().map(value).collect()),
    };
    VectorProgram {
        group: 1,
        inputs: schedule.inputs(),
        temps: schedule.temps(),
        outputs: schedule.outputs(),
        constants: Vec::new(),
        ops: schedule.ops().iter().map(op).collect(),
    }
}

/// A linear map of bytes, given by the images of its eight bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteMap(pub(crate) [u8; 8]);

impl ByteMap {
    /// Returns how byte `to` of a word times `factor` depends on byte `from` of the word.
    pub(crate) fn of_product(field: Field, factor: u32, to: usize, from: usize) -> Self {
        let image = |bit: usize| field.multiply(factor, 1 << (8 * from + bit));
        Self(std::array::from_fn(|bit| (image(bit) >> (8 * to)) as u8))
    }

    /// Applies the map to a byte.
    pub(crate) fn apply(self, byte: u8) -> u8 {
        let bits = (0..8).filter(|bit| byte >> bit & 1 == 1);
        bits.fold(0, |sum, bit| sum ^ self.0[bit])
    }

    /// Returns the images of the 16 values of a byte's low half, and those of its high half.
    pub(crate) fn tables(self) -> [Lane; 2] {
        let low = std::array::from_fn(|value| self.apply(value as u8));
        [low, std::array::from_fn(|value| self.apply((value as u8) << 4))]
    }

    /// Returns the map as `gf2p8affineqb` takes it: bit i of a product is the parity of the byte
    /// AND row i, and row i is byte 7 - i of the matrix.
    pub(crate) fn matrix(self) -> [u8; 8] {
        let bit = |r: usize, column: usize| (self.0[column] >> r & 1) << column;
        let row = |r: usize| (0..8).fold(0, |bits, column| bits | bit(r, column));
        std::array::from_fn(|byte| row(7 - byte))
    }
}

/// Repeats a pattern to the length of a constant.
fn repeated(pattern: &[u8]) -> Lane {
    std::array::from_fn(|n| pattern[n % pattern.len()])
}

/// A vector, given as a sum of one or more vectors that may not have been computed yet.
type VectorSum = Vec<Value>;

/// The vectors of a slot of the schedule that have been computed so far.
#[derive(Debug, Clone, Default)]
struct KnownVectors {
    /// For each plane, the vectors whose XOR it is; `None` until they are needed.
    planes: Option<Vec<VectorSum>>,
    /// For each plane, its low and high halves; `None` until they are needed.
    halves: Option<Vec<[Value; 2]>>,
}

/// How a temporary is computed and used.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    /// Position of the operation that computes it.
    maker: usize,
    /// Position of the first operation that uses it.
    first_use: usize,
    /// Number of operations that use it; `multiplied` is the number of these that only multiply it.
    uses: usize,
    multiplied: usize,
}

impl Facts {
    /// Collects the facts about each temporary of a schedule.
    fn of(schedule: &Schedule) -> Vec<Self> {
        let mut facts = vec![Self::default(); schedule.temps()];
        for (position, op) in schedule.ops().iter().enumerate() {
            if let Slot::Temp(n) = op.target {
                facts[n as usize].maker = position;
            }
            for source in &op.sources {
                if let Slot::Temp(n) = source {
                    let fact = &mut facts[*n as usize];
                    if fact.uses == 0 {
                        fact.first_use = position;
                    }
                    fact.uses += 1;
                    fact.multiplied += usize::from(op.factor != 1 && op.sources.len() == 1);
                }
            }
        }
        facts
    }
}

struct Lowering<'a> {
    schedule: &'a Schedule,
    field: Field,
    machine: Machine,
    /// Whether words stay in the order that they have in memory.
    whole: bool,
    inputs: Vec<KnownVectors>,
    temps: Vec<KnownVectors>,
    outputs: Vec<KnownVectors>,
    /// Facts about each temporary, collected beforehand.
    facts: Vec<Facts>,
    constants: HashMap<Lane, u32>,
    program: VectorProgram,
}

impl<'a> Lowering<'a> {
    fn new(schedule: &'a Schedule, field: Field, machine: Machine) -> Self {
        let whole = schedule.ops().iter().all(|op| op.factor <= 2);
        let affine_bytes = machine.multiplier == Multiplier::Affine && schedule.word() == 1;
        let whole = whole && field.has_powers() && !affine_bytes && is_doubled_once(schedule);
        let group = if whole { 1 } else { schedule.word() };
        let known = |count| vec![KnownVectors::default(); count];
        Self {
            schedule,
            field,
            machine,
            whole,
            inputs: known(schedule.inputs()),
            temps: known(schedule.temps()),
            outputs: known(schedule.outputs()),
            facts: Facts::of(schedule),
            constants: HashMap::new(),
            program: VectorProgram {
                group,
                inputs: schedule.inputs() * group,
                temps: 0,
                outputs: schedule.outputs() * group,
                constants: Vec::new(),
                ops: Vec::new(),
            },
        }
    }

    fn run(mut self) -> VectorProgram {
        let ops = self.schedule.ops();
        for (position, op) in ops.iter().enumerate() {
            if self.deferred(op.target).is_some() {
                continue;
            }
            let planes = match op.factor {
                1 => self.sum(&op.sources),
                _ => self.product(op),
            };
            let joins = op.factor != 1 && self.is_used_soon(op.target, position);
            let planes = if joins { planes } else { self.make(op.target, planes) };
            self.known_mut(op.target).planes = Some(planes);
        }
        self.program
    }

    fn known_mut(&mut self, slot: Slot) -> &mut KnownVectors {
        match slot {
            Slot::Input(n) => &mut self.inputs[n as usize],
            Slot::Temp(n) => &mut self.temps[n as usize],
            Slot::Output(n) => &mut self.outputs[n as usize],
        }
    }

    /// Returns the sources of a sum that is used only in multiplications. Such a sum is not
    /// computed before its first use, because perhaps only its halves are needed.
    fn deferred(&self, slot: Slot) -> Option<&'a [Slot]> {
        let Slot::Temp(n) = slot else { return None };
        let Facts { maker, uses, multiplied, .. } = self.facts[n as usize];
        let op = &self.schedule.ops()[maker];
        (op.factor == 1 && uses == multiplied).then_some(&op.sources[..])
    }

    /// Whether a product is used only once and so soon that it need not be summed up first: by the
    /// next operation but one, or by the next sum.
    fn is_used_soon(&self, slot: Slot, position: usize) -> bool {
        let Slot::Temp(n) = slot else { return false };
        let Facts { first_use, uses, .. } = self.facts[n as usize];
        let between = &self.schedule.ops()[position + 1..first_use.max(position + 1)];
        uses == 1 && (between.len() < 2 || between.iter().all(|op| op.factor != 1))
    }

    fn temp(&mut self, work: VectorWork) -> Value {
        let target = Value::Temp(self.program.temps as u32);
        self.program.temps += 1;
        self.program.ops.push(VectorOp { target, work });
        target
    }

    fn map(&mut self, map: Map, a: Value) -> Value {
        self.temp(VectorWork::Map(map, a))
    }

    fn pair(&mut self, pair: PairOperation, a: Value, b: Value) -> Value {
        self.temp(VectorWork::Pair(pair, [a, b]))
    }

    fn constant(&mut self, pattern: &[u8]) -> Value {
        let bytes = repeated(pattern);
        let constants = &mut self.program.constants;
        let number = *self.constants.entry(bytes).or_insert_with(|| {
            constants.push(bytes);
            constants.len() as u32 - 1
        });
        Value::Constant(number)
    }

    /// Computes the planes of a slot from these sums; those of an output are also stored.
    fn make(&mut self, target: Slot, planes: Vec<VectorSum>) -> Vec<VectorSum> {
        let group = self.program.group as u32;
        if let (Slot::Output(n), [sum]) = (target, &planes[..]) {
            let target = Value::Output(n);
            self.program.ops.push(VectorOp { target, work: VectorWork::Xor(sum.clone()) });
            return vec![vec![target]];
        }
        let mut made: Vec<Value> =
            planes.into_iter().map(|sum| self.temp(VectorWork::Xor(sum))).collect();
        let planes = made.iter().map(|&value| vec![value]).collect();
        if let Slot::Output(n) = target {
            self.join(&mut made);
            for (value, part) in made.into_iter().zip(0..) {
                let target = Value::Output(n * group + part);
                self.program.ops.push(VectorOp { target, work: VectorWork::Xor(vec![value]) });
            }
        }
        planes
    }

    /// Returns the planes of the sum of some slots.
    fn sum(&mut self, sources: &[Slot]) -> Vec<VectorSum> {
        let mut sums = vec![VectorSum::new(); self.program.group];
        for &source in sources {
            for (sum, plane) in sums.iter_mut().zip(self.planes(source)) {
                sum.extend(plane);
            }
        }
        sums
    }

    /// Returns the planes of a slot. They are separated or summed up when first needed.
    fn planes(&mut self, slot: Slot) -> Vec<VectorSum> {
        if let Some(planes) = &self.known_mut(slot).planes {
            return planes.clone();
        }
        let planes = match slot {
            Slot::Input(n) => {
                let group = self.program.group as u32;
                let mut vectors: Vec<Value> =
                    (0..group).map(|part| Value::Input(n * group + part)).collect();
                self.separate(&mut vectors);
                vectors.into_iter().map(|plane| vec![plane]).collect()
            }
            deferred => {
                let sources = self.deferred(deferred).unwrap_or_default();
                let sums = self.sum(sources);
                self.make(deferred, sums)
            }
        };
        self.known_mut(slot).planes = Some(planes.clone());
        planes
    }

    /// Returns the planes of a slot, one vector each.
    fn vectors(&mut self, slot: Slot) -> Vec<Value> {
        let planes = self.planes(slot);
        if planes.iter().all(|plane| plane.len() == 1) {
            return planes.concat();
        }
        let made = self.make(slot, planes);
        self.known_mut(slot).planes = Some(made.clone());
        made.concat()
    }

    /// Returns the planes of a multiple of a sum.
    fn product(&mut self, op: &Op) -> Vec<VectorSum> {
        let group = self.program.group;
        if op.factor == 0 || op.sources.is_empty() {
            return vec![VectorSum::new(); group];
        }
        let single = match op.sources[..] {
            [single] => Some(single),
            _ => None,
        };
        if self.whole {
            let sum = self.sum(&op.sources).swap_remove(0);
            return vec![self.doubled(sum)];
        }
        if self.machine.multiplier == Multiplier::Affine {
            let vectors = match single {
                Some(slot) => self.vectors(slot),
                None => self.sum(&op.sources).into_iter().map(|sum| self.single(sum)).collect(),
            };
            return self.by_matrices(op.factor, &vectors);
        }
        let halves = match single {
            Some(slot) => self.halves(slot),
            None => self.sum(&op.sources).into_iter().map(|sum| self.cut(sum)).collect(),
        };
        self.by_tables(op.factor, &halves)
    }

    /// Computes a sum into one vector.
    fn single(&mut self, sum: VectorSum) -> Value {
        match sum[..] {
            [value] => value,
            _ => self.temp(VectorWork::Xor(sum)),
        }
    }

    fn by_matrices(&mut self, factor: u32, planes: &[Value]) -> Vec<VectorSum> {
        let mut products = vec![VectorSum::new(); planes.len()];
        for (to, product) in products.iter_mut().enumerate() {
            for (from, &plane) in planes.iter().enumerate() {
                let map = ByteMap::of_product(self.field, factor, to, from);
                if map.0 != [0; 8] {
                    let matrix = self.constant(&map.matrix());
                    product.push(self.pair(PairOperation::Affine, plane, matrix));
                }
            }
        }
        products
    }

    fn by_tables(&mut self, factor: u32, halves: &[[Value; 2]]) -> Vec<VectorSum> {
        let mut products = vec![VectorSum::new(); halves.len()];
        for (to, product) in products.iter_mut().enumerate() {
            for (from, &halves) in halves.iter().enumerate() {
                let tables = ByteMap::of_product(self.field, factor, to, from).tables();
                for (half, table) in halves.into_iter().zip(tables) {
                    if table != [0; LANE] {
                        let table = self.constant(&table);
                        product.push(self.pair(PairOperation::Lookup, half, table));
                    }
                }
            }
        }
        products
    }

    /// Returns the halves of all planes of a slot. If the sources of a sum have been split into
    /// halves already, its halves are the sums of theirs.
    fn halves(&mut self, slot: Slot) -> Vec<[Value; 2]> {
        if let Some(halves) = &self.known_mut(slot).halves {
            return halves.clone();
        }
        let sources = self.deferred(slot).unwrap_or_default();
        let cut: Option<Vec<Vec<[Value; 2]>>> =
            sources.iter().map(|&source| self.known_mut(source).halves.clone()).collect();
        let halves: Vec<[Value; 2]> = match cut {
            Some(cut) if cut.len() > 1 => (0..self.program.group)
                .map(|plane| {
                    [0, 1].map(|half| {
                        let sum = cut.iter().map(|halves| halves[plane][half]).collect();
                        self.temp(VectorWork::Xor(sum))
                    })
                })
                .collect(),
            _ => self.planes(slot).into_iter().map(|plane| self.cut(plane)).collect(),
        };
        self.known_mut(slot).halves = Some(halves.clone());
        halves
    }

    /// Splits every byte into its low and its high half.
    fn cut(&mut self, sum: VectorSum) -> [Value; 2] {
        let bytes = self.single(sum);
        let mask = self.constant(&[0x0F]);
        let low = self.pair(PairOperation::And, bytes, mask);
        if self.machine.multiplier == Multiplier::ShuffleNeon {
            return [low, self.map(Map::ShiftBytes(4), bytes)];
        }
        let shifted = self.map(Map::ShiftWords(4), bytes);
        [low, self.pair(PairOperation::And, shifted, mask)]
    }

    /// Doubles a sum whose words have the same order as in memory. Returns the result as a sum of
    /// two vectors.
    fn doubled(&mut self, sum: VectorSum) -> VectorSum {
        let words = self.single(sum);
        let bytes = self.schedule.word();
        let tail = self.constant(&self.field.polynomial().to_le_bytes()[..bytes]);
        let by_comparing = bytes == 1 && self.machine.multiplier == Multiplier::Shuffle;
        let sign = if by_comparing {
            let zero = self.constant(&[0]);
            self.pair(PairOperation::Greater, zero, words)
        } else {
            self.map(Map::Sign(bytes as u8), words)
        };
        let shifted = self.map(Map::Twice(bytes as u8), words);
        vec![shifted, self.pair(PairOperation::And, sign, tail)]
    }

    /// Separates the vectors of a cell into planes.
    fn separate(&mut self, vectors: &mut [Value]) {
        let pairs = rounds(vectors.len());
        for (a, b) in pairs {
            [vectors[a], vectors[b]] = self.separate_pair(vectors[a], vectors[b]);
        }
    }

    /// Undoes [`Lowering::separate`].
    fn join(&mut self, vectors: &mut [Value]) {
        for (a, b) in rounds(vectors.len()).into_iter().rev() {
            let low = self.pair(PairOperation::InterleaveLow, vectors[a], vectors[b]);
            vectors[b] = self.pair(PairOperation::InterleaveHigh, vectors[a], vectors[b]);
            vectors[a] = low;
        }
    }

    /// Returns the bytes at even places of two vectors, and those at odd places.
    fn separate_pair(&mut self, a: Value, b: Value) -> [Value; 2] {
        if self.machine.multiplier == Multiplier::ShuffleNeon {
            return [self.pair(PairOperation::Even, a, b), self.pair(PairOperation::Odd, a, b)];
        }
        let mask = self.constant(&[0xFF, 0]);
        let even = [a, b].map(|vector| self.pair(PairOperation::And, vector, mask));
        let odd = [a, b].map(|vector| self.map(Map::ShiftWords(8), vector));
        [even, odd].map(|[a, b]| self.pair(PairOperation::Pack, a, b))
    }
}

/// Returns the pairs of `count` vectors that are separated, round by round. In words of four bytes,
/// the first round takes neighbours, after which even vectors hold the bytes 0 and 2 and odd ones 1
/// and 3. The second round takes those pairs.
fn rounds(count: usize) -> Vec<(usize, usize)> {
    match count {
        4 => vec![(0, 1), (2, 3), (0, 2), (1, 3)],
        2 => vec![(0, 1)],
        _ => Vec::new(),
    }
}

/// Whether each slot is doubled at most once. Keeping its halves would then gain nothing.
fn is_doubled_once(schedule: &Schedule) -> bool {
    let mut doubled = std::collections::HashSet::new();
    let products = schedule.ops().iter().filter(|op| op.factor == 2);
    products.flat_map(|op| &op.sources).all(|source| doubled.insert(*source))
}
