//! Sums of products: how the rows of a combination are computed over words.
//!
//! A row of coefficients c_j says that an output is the sum of c_j times input j. The schedule
//! takes one input after the other and adds its multiples to all outputs side by side. So every
//! input is read once, and an output needs one register until it is complete. A coefficient of 1 is
//! an XOR. P and Q of RAID-6 are computed by Horner's rule, in which doubling is the only
//! multiplication.
//!
//! Fewer products than coefficients suffice if a matrix repeats itself crosswise. For two outputs
//! and two inputs x and y whose coefficients are a and v, v and d,
//!
//! ```text
//! a·x + v·y = v·(x + y) + (a + v)·x
//! v·x + d·y = v·(x + y) + (d + v)·y
//! ```
//!
//! takes three products instead of four, since v·(x + y) is shared. A Cauchy matrix 1/(r xor j),
//! such as ISA-L's, consists of such squares wherever two rows differ only in their last bit, and
//! two columns as well. So does the systematic Vandermonde matrix of klauspost/reedsolomon and
//! MinIO, whose rows and columns are multiples of those of such a matrix. So 10+4 takes 30 products
//! where the matrix has 40 coefficients. The shared products of two outputs are summed up
//! separately and added to both at the end.

use std::collections::HashMap;

use crate::define::field::Field;
use crate::error::Result;
use crate::plan::machine::{Machine, Multiplier};
use crate::plan::schedule::{Op, Schedule, Slot};

/// Rows of coefficients over inputs.
pub(crate) struct CoefficientRows {
    pub(crate) field: Field,
    pub(crate) inputs: usize,
    /// For each output, one coefficient for each input.
    pub(crate) coefficients: Vec<Vec<u32>>,
}

/// Largest number of outputs of one schedule on a machine. All sums stay in registers, together
/// with the operands that are needed to multiply two inputs and their sum. Words of several bytes
/// have a sum for each byte, and two outputs that share products have a third sum.
pub(crate) fn outputs_held(machine: Machine, word: usize) -> usize {
    let operands = match (machine.multiplier, machine.ternary) {
        // Four inputs, their two sums and two products; or two inputs, their sum and one product.
        (Multiplier::Affine, true) => 6 * word + 2,
        (Multiplier::Affine, false) => 3 * word + 1,
        // The halves of two inputs, and two products.
        _ => 4 * word + 2,
    };
    let sums = machine.values().saturating_sub(operands) / word;
    (2 * sums / 3).max(1)
}

impl CoefficientRows {
    /// Whether a column equals the next one and is not zero. In an update, the columns of a node's
    /// old and new content are equal.
    fn columns_are_equal(&self, column: usize) -> bool {
        let equal = |row: &Vec<u32>| row[column..].get(1) == Some(&row[column]);
        let used = |row: &Vec<u32>| row[column] != 0;
        self.coefficients.iter().all(equal) && self.coefficients.iter().any(used)
    }

    /// Returns the schedule of the rows.
    ///
    /// # Errors
    /// If there are more cells than a schedule may have.
    pub(crate) fn schedule(&self, machine: Machine) -> Result<Schedule> {
        if let Some(powers) = Powers::of(self) {
            return powers.schedule(self);
        }
        let mut stream = ProductStream::new(self, machine);
        stream.run();
        let ProductStream { temps, ops, .. } = stream;
        Schedule::over(self.field, self.inputs, temps as usize, self.coefficients.len(), ops)
    }
}

/// Outputs P, the plain sum, and Q, whose coefficients are the first powers of two.
struct Powers {
    p: u32,
    q: u32,
    /// Inputs, by descending power.
    inputs: Vec<u32>,
}

impl Powers {
    fn of(rows: &CoefficientRows) -> Option<Self> {
        let [first, second] = &rows.coefficients[..] else { return None };
        let is_p = |row: &[u32]| rows.inputs > 0 && row.iter().all(|&c| c == 1);
        let (p, powers) = match (is_p(first), is_p(second)) {
            (true, _) => (0, second),
            (_, true) => (1, first),
            _ => return None,
        };
        let inputs = by_descending_power(rows.field, powers)?;
        Some(Self { p, q: 1 - p, inputs })
    }

    /// Q is `(…(2·d_(k-1) + d_(k-2))·2 + …)·2 + d_0` by Horner's rule; P is summed up at the same
    /// time.
    fn schedule(&self, rows: &CoefficientRows) -> Result<Schedule> {
        let (mut ops, mut temps) = (Vec::new(), 0);
        let mut temp = || {
            temps += 1;
            Slot::Temp(temps - 1)
        };
        let mut sums: Option<[Slot; 2]> = None;
        for (left, &input) in (0..self.inputs.len()).rev().zip(&self.inputs) {
            let input = Slot::Input(input);
            let targets = [self.p, self.q].map(|n| (left == 0).then_some(Slot::Output(n)));
            sums = Some(match sums {
                None if left > 0 => [input, input],
                None => {
                    let copies = targets.map(|target| target.unwrap_or(input));
                    ops.extend(copies.map(|copy| Op::assign(copy, vec![input])));
                    copies
                }
                Some([p, q]) => {
                    let doubled = temp();
                    ops.push(Op::multiply(doubled, 2, vec![q]));
                    [p, doubled].into_iter().zip(targets).for_each(|(sum, target)| {
                        let target = target.unwrap_or_else(&mut temp);
                        ops.push(Op::assign(target, vec![sum, input]));
                    });
                    let made = ops[ops.len() - 2..].iter().map(|op| op.target);
                    let made: Vec<Slot> = made.collect();
                    [made[0], made[1]]
                }
            });
        }
        Schedule::over(rows.field, rows.inputs, temps as usize, 2, ops)
    }
}

/// Returns the positions of 2^(k-1), …, 4, 2, 1 in a list that consists of exactly these powers in
/// any order. Returns `None` for other lists, and if two of the powers are equal.
fn by_descending_power(field: Field, powers: &[u32]) -> Option<Vec<u32>> {
    let positions: HashMap<u32, u32> = powers.iter().copied().zip(0..).collect();
    let mut power = 1;
    let mut ascending = Vec::with_capacity(powers.len());
    for _ in powers {
        ascending.push(*positions.get(&power)?);
        power = field.multiply(power, 2);
    }
    ascending.reverse();
    (positions.len() == powers.len()).then_some(ascending)
}

/// The operand of a multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ProductOperand {
    Input(u32),
    /// The sum of two inputs.
    Sum(u32, u32),
}

/// A sum of products.
#[derive(Debug, Default)]
struct Sum {
    /// Operands, in the order of the batches, each with its factor; no factor is zero.
    terms: Vec<(ProductOperand, u32)>,
    /// Number of terms that have been added so far.
    added: usize,
    /// Number of the shared sum that is added at the end.
    shared: Option<usize>,
}

/// The products of a matrix, in the order in which they are computed.
struct Products {
    /// Operands that are processed together, in order.
    batches: Vec<Vec<ProductOperand>>,
    /// Sums that two outputs share.
    shared: Vec<Sum>,
    outputs: Vec<Sum>,
}

impl Products {
    fn new(rows: &CoefficientRows, machine: Machine) -> Self {
        let pairing = Pairing::of(rows);
        let mut products = Self {
            batches: Vec::new(),
            shared: Vec::new(),
            outputs: rows.coefficients.iter().map(|_| Sum::default()).collect(),
        };
        let mut operands = Vec::new();
        let mut column = 0;
        while column < rows.inputs {
            let paired = pairing.filter(|p| p.is_first(p.columns, column, rows.inputs));
            let equal = rows.columns_are_equal(column);
            operands.push(match paired {
                _ if equal => products.add_equal_columns(rows, column),
                paired => products.add_columns(rows, column, paired),
            });
            column += if equal || paired.is_some() { 2 } else { 1 };
        }
        products.batches = batches(operands, rows, machine);
        products
    }

    /// Adds the products of a column and of the next one, which is multiplied by the same factors.
    fn add_equal_columns(&mut self, rows: &CoefficientRows, column: usize) -> Vec<ProductOperand> {
        let sum = ProductOperand::Sum(column as u32, column as u32 + 1);
        for (output, row) in self.outputs.iter_mut().zip(&rows.coefficients) {
            if row[column] != 0 {
                output.terms.push((sum, row[column]));
            }
        }
        vec![sum]
    }

    /// Adds the products of a column, or of two columns that are paired. Returns the operands.
    fn add_columns(
        &mut self,
        rows: &CoefficientRows,
        column: usize,
        pairing: Option<Pairing>,
    ) -> Vec<ProductOperand> {
        let Some(pairing) = pairing else {
            for output in 0..rows.coefficients.len() {
                self.add(rows, output, column);
            }
            return vec![ProductOperand::Input(column as u32)];
        };
        let mut output = 0;
        let mut is_summed = false;
        while output < rows.coefficients.len() {
            let first = pairing.is_first(pairing.rows, output, rows.coefficients.len());
            let square = first.then(|| Square::at(rows, output, column));
            match square.filter(Square::saves) {
                Some(square) => {
                    self.add_square(square, output, column);
                    is_summed = true;
                    output += 2;
                }
                None => {
                    self.add(rows, output, column);
                    self.add(rows, output, column + 1);
                    output += 1;
                }
            }
        }
        let [x, y] = [column as u32, column as u32 + 1];
        let mut operands = vec![ProductOperand::Input(x), ProductOperand::Input(y)];
        if is_summed {
            operands.push(ProductOperand::Sum(x, y));
        }
        operands
    }

    fn add(&mut self, rows: &CoefficientRows, output: usize, column: usize) {
        let factor = rows.coefficients[output][column];
        if factor != 0 {
            self.outputs[output].terms.push((ProductOperand::Input(column as u32), factor));
        }
    }

    fn add_square(&mut self, square: Square, output: usize, column: usize) {
        let number = match self.outputs[output].shared {
            Some(number) => number,
            None => {
                self.shared.push(Sum::default());
                let number = self.shared.len() - 1;
                self.outputs[output].shared = Some(number);
                self.outputs[output + 1].shared = Some(number);
                number
            }
        };
        let [x, y] = [column as u32, column as u32 + 1];
        self.shared[number].terms.push((ProductOperand::Sum(x, y), square.shared));
        for (row, (input, factor)) in square.own.into_iter().enumerate() {
            if factor != 0 {
                let input = ProductOperand::Input([x, y][input]);
                self.outputs[output + row].terms.push((input, factor));
            }
        }
    }
}

/// Groups operands into batches. Two vectors are best added at once on a machine that has
/// three-input XORs. Where a product is one vector, the products of two inputs are added at a time;
/// elsewhere a product consists of two vectors already.
fn batches(
    operands: Vec<Vec<ProductOperand>>,
    rows: &CoefficientRows,
    machine: Machine,
) -> Vec<Vec<ProductOperand>> {
    let pairs_pay =
        machine.ternary && machine.multiplier == Multiplier::Affine && rows.field.width() == 8;
    if pairs_pay {
        operands.chunks(2).map(<[Vec<ProductOperand>]>::concat).collect()
    } else {
        operands.concat().into_iter().map(|operand| vec![operand]).collect()
    }
}

/// Which rows and columns are paired: from the first on, or from the second.
#[derive(Debug, Clone, Copy)]
struct Pairing {
    rows: usize,
    columns: usize,
}

impl Pairing {
    /// Returns the pairing that saves the most products, or `None` if no pairing saves any.
    fn of(rows: &CoefficientRows) -> Option<Self> {
        let choices = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let choices = choices.map(|(rows, columns)| Self { rows, columns });
        let saved = choices.iter().map(|pairing| pairing.saved(rows));
        let (saved, pairing) = saved.zip(choices).max_by_key(|&(saved, _)| saved)?;
        (saved > 0).then_some(pairing)
    }

    /// Whether number `n` of `count` is the first of a pair, where pairs begin at `start`.
    fn is_first(self, start: usize, n: usize, count: usize) -> bool {
        n >= start && (n - start).is_multiple_of(2) && n + 1 < count
    }

    fn saved(self, rows: &CoefficientRows) -> usize {
        let squares = (self.rows..rows.coefficients.len().saturating_sub(1)).step_by(2);
        let columns = (self.columns..rows.inputs.saturating_sub(1)).step_by(2);
        let squares = squares.flat_map(|row| columns.clone().map(move |column| (row, column)));
        squares.filter(|&(row, column)| Square::at(rows, row, column).saves()).count()
    }
}

/// Two outputs and two inputs, computed with a shared product.
struct Square {
    /// The factor of the sum of the inputs.
    shared: u32,
    /// For each output, the input that is multiplied additionally, and its factor.
    own: [(usize, u32); 2],
    /// Number of products saved.
    saved: isize,
}

impl Square {
    /// Returns the cheaper of the two ways. Saves nothing if the coefficients do not repeat
    /// crosswise.
    fn at(rows: &CoefficientRows, row: usize, column: usize) -> Self {
        let [a, b, c, d] =
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(r, c)| rows.coefficients[row + r][column + c]);
        let products = |factors: &[u32]| factors.iter().filter(|&&factor| factor > 1).count();
        let before = products(&[a, b, c, d]) as isize;
        let square = |shared: u32, own: [(usize, u32); 2]| Self {
            shared,
            own,
            saved: before - products(&[shared, own[0].1, own[1].1]) as isize,
        };
        let ways = [
            (b == c).then(|| square(b, [(0, a ^ b), (1, d ^ b)])),
            (a == d).then(|| square(a, [(1, b ^ a), (0, c ^ a)])),
        ];
        let none = Self { shared: 0, own: [(0, 0); 2], saved: 0 };
        ways.into_iter().flatten().max_by_key(|way| way.saved).unwrap_or(none)
    }

    fn saves(&self) -> bool {
        self.saved > 0 && self.shared != 0
    }
}

/// The schedule under construction.
struct ProductStream {
    products: Products,
    /// Current value of each sum, if it has one: the shared sums first, then the outputs.
    sums: Vec<Option<Slot>>,
    /// Slots of the operands and products that have been computed.
    made: HashMap<(ProductOperand, u32), Slot>,
    temps: u32,
    ops: Vec<Op>,
}

impl ProductStream {
    fn new(rows: &CoefficientRows, machine: Machine) -> Self {
        let products = Products::new(rows, machine);
        let sums = vec![None; products.shared.len() + products.outputs.len()];
        Self { products, sums, made: HashMap::new(), temps: 0, ops: Vec::new() }
    }

    fn temp(&mut self) -> Slot {
        self.temps += 1;
        Slot::Temp(self.temps - 1)
    }

    fn run(&mut self) {
        for batch in std::mem::take(&mut self.products.batches) {
            self.made.clear();
            for number in 0..self.sums.len() {
                self.add_batch(number, &batch);
            }
        }
        for output in 0..self.products.outputs.len() {
            self.finish(output);
        }
    }

    /// Returns the sum of this number; shared sums come first.
    fn sum(&mut self, number: usize) -> &mut Sum {
        match number.checked_sub(self.products.shared.len()) {
            None => &mut self.products.shared[number],
            Some(output) => &mut self.products.outputs[output],
        }
    }

    /// Adds the products of a batch to a sum.
    fn add_batch(&mut self, number: usize, batch: &[ProductOperand]) {
        let sum = self.sum(number);
        let left = sum.terms[sum.added..].iter();
        let now: Vec<_> = left.take_while(|term| batch.contains(&term.0)).copied().collect();
        sum.added += now.len();
        let (is_last, shared) = (sum.added == sum.terms.len(), sum.shared);
        if now.is_empty() {
            return;
        }
        let mut sources: Vec<Slot> = self.sums[number].into_iter().collect();
        sources.extend(now.into_iter().map(|term| self.product(term)));
        let output = number.checked_sub(self.products.shared.len());
        let target = match output {
            Some(output) if is_last && self.is_complete(shared) => {
                sources.extend(shared.and_then(|shared| self.sums[shared]));
                Slot::Output(output as u32)
            }
            _ if sources.len() == 1 => {
                self.sums[number] = Some(sources[0]);
                return;
            }
            _ => self.temp(),
        };
        self.sums[number] = Some(target);
        self.ops.push(Op::assign(target, sources));
    }

    /// Whether all terms of the shared sum have been added; true if there is no shared sum.
    fn is_complete(&self, shared: Option<usize>) -> bool {
        let is_complete = |sum: &Sum| sum.added == sum.terms.len();
        shared.is_none_or(|shared| is_complete(&self.products.shared[shared]))
    }

    /// Completes an output that has no value yet.
    fn finish(&mut self, output: usize) {
        let number = self.products.shared.len() + output;
        let target = Slot::Output(output as u32);
        if self.sums[number] != Some(target) {
            let shared = self.products.outputs[output].shared;
            let shared = shared.and_then(|shared| self.sums[shared]);
            let sources = self.sums[number].into_iter().chain(shared).collect();
            self.ops.push(Op::assign(target, sources));
        }
    }

    /// Returns the slot of a multiple of an operand, which is computed if it does not exist yet.
    fn product(&mut self, (operand, factor): (ProductOperand, u32)) -> Slot {
        if let Some(&made) = self.made.get(&(operand, factor)) {
            return made;
        }
        let made = match (operand, factor) {
            (ProductOperand::Input(n), 1) => Slot::Input(n),
            (ProductOperand::Sum(x, y), 1) => {
                let target = self.temp();
                let sources = vec![Slot::Input(x), Slot::Input(y)];
                self.ops.push(Op::assign(target, sources));
                target
            }
            (_, factor) => {
                let source = self.product((operand, 1));
                let target = self.temp();
                self.ops.push(Op::multiply(target, factor, vec![source]));
                target
            }
        };
        self.made.insert((operand, factor), made);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::cost::Cost;
    use crate::plan::interpret::interpret;

    const MACHINES: [Machine; 2] = [
        Machine::AVX2,
        Machine { registers: 32, ternary: true, multiplier: Multiplier::Affine, ..Machine::AVX2 },
    ];

    fn products(schedule: &Schedule) -> usize {
        schedule.ops().iter().filter(|op| op.factor != 1).count()
    }

    /// The inputs are the unit vectors in turn, so that outputs are the coefficients.
    fn assert_right(rows: &CoefficientRows, schedule: &Schedule) {
        let word = rows.field.width() as usize / 8;
        let unit = |input: usize| -> Vec<u8> {
            let mut bytes = vec![0; rows.inputs * word];
            bytes[input * word] = 1;
            bytes
        };
        let units: Vec<Vec<u8>> = (0..rows.inputs).map(unit).collect();
        let cells: Vec<&[u8]> = units.iter().map(Vec::as_slice).collect();
        let made = interpret(schedule, &cells).unwrap();
        for (made, row) in made.iter().zip(&rows.coefficients) {
            let expected: Vec<u8> =
                row.iter().flat_map(|c| c.to_le_bytes()[..word].to_vec()).collect();
            assert_eq!(made, &expected, "{schedule}");
        }
    }

    /// The coefficients 1/(r xor j) of rows r from `inputs` on.
    fn cauchy(inputs: u32, outputs: u32) -> CoefficientRows {
        let field = Field::new(8).unwrap();
        let row = |r: u32| (0..inputs).map(|j| field.inverse(r ^ j).unwrap()).collect();
        let coefficients = (inputs..inputs + outputs).map(row).collect();
        CoefficientRows { field, inputs: inputs as usize, coefficients }
    }

    #[test]
    fn squares_share_a_product() {
        for (inputs, outputs, expected) in [(10, 4, 30), (12, 4, 36), (6, 3, 15), (9, 3, 22)] {
            let rows = cauchy(inputs, outputs);
            for machine in MACHINES {
                let schedule = rows.schedule(machine).unwrap();
                assert_right(&rows, &schedule);
                assert_eq!(products(&schedule), expected, "{inputs}+{outputs}: {schedule}");
            }
        }
    }

    #[test]
    fn rows_of_any_kind_are_right() {
        let (bytes, words) = (Field::new(8).unwrap(), Field::new(16).unwrap());
        for (field, coefficients) in [
            (bytes, vec![vec![1, 0, 7], vec![0, 1, 1], vec![0, 0, 1], vec![0, 0, 0]]),
            (bytes, vec![vec![0], vec![0]]),
            (bytes, vec![vec![3, 5], vec![5, 3], vec![5, 5], vec![1, 5]]),
            (bytes, vec![vec![3, 3], vec![3, 3]]),
            (bytes, vec![vec![2, 4, 1], vec![1, 1, 1]]),
            (bytes, vec![vec![1, 1, 1], vec![4, 1, 2]]),
            (bytes, vec![vec![1], vec![1]]),
            (bytes, vec![vec![1, 1], vec![1, 1]]),
            (words, vec![vec![1, 0, 700], vec![0, 700, 1], vec![40_000, 2, 3]]),
        ] {
            let inputs = coefficients[0].len();
            let rows = CoefficientRows { field, inputs, coefficients };
            for machine in MACHINES {
                assert_right(&rows, &rows.schedule(machine).unwrap());
            }
        }
    }

    #[test]
    fn powers_are_found_in_any_order() {
        let field = Field::new(8).unwrap();
        assert_eq!(by_descending_power(field, &[1, 2, 4]), Some(vec![2, 1, 0]));
        assert_eq!(by_descending_power(field, &[4, 1, 2]), Some(vec![0, 2, 1]));
        assert_eq!(by_descending_power(field, &[1, 4]), None);
        assert_eq!(by_descending_power(field, &[1, 1]), None);
    }

    /// In AES's field 2 has the order 51: after 51 powers they repeat.
    #[test]
    fn powers_that_come_again_are_none() {
        let field = Field::with_polynomial(8, 0x11B).unwrap();
        let powers: Vec<u32> = (0..52).map(|exponent| field.power(2, exponent)).collect();
        assert!(by_descending_power(field, &powers[..51]).is_some());
        assert_eq!(by_descending_power(field, &powers), None);
    }

    #[test]
    fn p_and_q_take_doublings_only() {
        let field = Field::new(8).unwrap();
        let coefficients = vec![vec![1; 4], vec![1, 2, 4, 8]];
        let schedule =
            CoefficientRows { field, inputs: 4, coefficients }.schedule(Machine::AVX2).unwrap();
        assert!(schedule.ops().iter().all(|op| op.factor <= 2));
        assert_eq!((products(&schedule), Cost::of(&schedule).xors), (3, 6), "{schedule}");
    }
}
