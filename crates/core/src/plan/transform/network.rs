//! Transforms as schedules: the parity of a code as a network of butterflies.
//!
//! A polynomial of degree below 2^r is kept as its coefficients over the basis of Lin, Chung and
//! Han ([`crate::define::subspace`]). Its values at the 2^r points from `start` on follow in r
//! levels of 2^(r-1) *butterflies*, from level r - 1 down to 0. A butterfly of level i takes two
//! entries 2^i apart, a and b, with the factor f that level polynomial i has at the first point of
//! their group of 2^(i+1) points:
//!
//! ```text
//! forward   u = a + f·b      v = u + b
//! inverse   b = u + v        a = u + f·b
//! ```
//!
//! With k data nodes at the points 0 to k - 1, the coefficients come from inverse butterflies, and
//! parity from forward ones. Nothing has to be a power of two: k values and the knowledge that the
//! coefficients from k on are zero determine a polynomial, too. [`Network::complete`] finds its
//! other values half by half, as the truncated transform of van der Hoeven does (*The truncated
//! Fourier transform and applications*, 2004). Where parity has the first points, blocks of data
//! are transformed back each by itself, and the values of the sum at the parity's points are the
//! parity (Lin, Chung and Han, section 4.2).
//!
//! Products with 0 and sums with zeros are left out, and so is all that no output needs. What is
//! left is one way to write the sums of products of the code's matrix, and is proved to be.

use crate::define::evaluation::Evaluation;
use crate::define::field::Field;
use crate::define::subspace::Subspaces;
use crate::error::Result;
use crate::plan::schedule::{Op, Schedule, Slot};

/// Largest number of levels that are taken in one pass, on entries that stay in registers.
const PASS: u32 = 3;

/// A value; `None` is zero.
type NetworkValue = Option<Slot>;

/// Returns the schedule of a code's encoding: inputs are the data nodes, and outputs the parity
/// nodes of the numbers `rows`. `None` if the field has no level polynomials. If `adds_three`, the
/// schedule is for a machine that adds three vectors at once: sums are merged, which would cost
/// other machines registers.
///
/// # Errors
/// If there are more cells than a schedule may have.
pub(crate) fn encoding(
    field: Field,
    evaluation: &Evaluation,
    rows: &[usize],
    adds_three: bool,
) -> Result<Option<Schedule>> {
    let Some(subspaces) = Subspaces::of(field) else { return Ok(None) };
    let mut network = Network { subspaces, temps: 0, ops: Vec::new() };
    let inputs = evaluation.data().len();
    let values = if evaluation.parity().start == 0 {
        network.parity_first(evaluation)
    } else {
        network.data_first(evaluation)
    };
    let outputs: Vec<NetworkValue> = rows.iter().map(|&row| values[row]).collect();
    network.remove_needless(&outputs);
    if adds_three {
        network.merge_sums(&outputs);
    }
    network.finish(field, inputs, &outputs).map(Some)
}

/// A schedule under construction. Every temporary is assigned once.
struct Network {
    subspaces: &'static Subspaces,
    temps: u32,
    ops: Vec<Op>,
}

impl Network {
    fn assign(&mut self, factor: u8, sources: Vec<Slot>) -> NetworkValue {
        let target = Slot::Temp(self.temps);
        self.temps += 1;
        self.ops.push(Op::multiply(target, factor.into(), sources));
        Some(target)
    }

    fn sum(&mut self, a: NetworkValue, b: NetworkValue) -> NetworkValue {
        match (a, b) {
            (Some(a), Some(b)) if a == b => None,
            (Some(a), Some(b)) => self.assign(1, vec![a, b]),
            (value, None) | (None, value) => value,
        }
    }

    fn product(&mut self, factor: u8, value: NetworkValue) -> NetworkValue {
        match (factor, value) {
            (0, _) | (_, None) => None,
            (1, value) => value,
            (factor, Some(value)) => self.assign(factor, vec![value]),
        }
    }

    fn forward_butterfly(&mut self, [a, b]: [NetworkValue; 2], factor: u8) -> [NetworkValue; 2] {
        let product = self.product(factor, b);
        let u = self.sum(a, product);
        // With the factor 1, v is a + b + b.
        let v = if factor == 1 { a } else { self.sum(u, b) };
        [u, v]
    }

    fn inverse_butterfly(&mut self, [u, v]: [NetworkValue; 2], factor: u8) -> [NetworkValue; 2] {
        let b = self.sum(u, v);
        let product = self.product(factor, b);
        let a = if factor == 1 { v } else { self.sum(u, product) };
        [a, b]
    }

    /// Takes the levels of a pass of the transform at the points from `start` on, in one of the
    /// groups of entries that the pass does not mix with others.
    fn group(
        &mut self,
        values: &mut [NetworkValue],
        start: usize,
        group: &ButterflyGroup,
        inverse: bool,
    ) {
        let ButterflyGroup { first, level, levels } = *group;
        for step in 0..levels {
            let step = if inverse { step } else { levels - 1 - step };
            for pair in 0..1_usize << (levels - 1) {
                let (number, offset) = (pair >> step, pair & ((1 << step) - 1));
                let low = first + (((number << (step + 1)) + offset) << level);
                let high = low + (1 << (level + step));
                // The first entry of the pair's group of entries.
                let above = level + step + 1;
                let origin = (low >> above) << above;
                let factor = self.subspaces.value(level + step, start + origin);
                let pair = [values[low], values[high]];
                [values[low], values[high]] = match inverse {
                    true => self.inverse_butterfly(pair, factor),
                    false => self.forward_butterfly(pair, factor),
                };
            }
        }
    }

    fn forward(&mut self, coefficients: &[NetworkValue], start: usize) -> Vec<NetworkValue> {
        let mut values = coefficients.to_vec();
        for pass in passes(coefficients.len()).iter().rev() {
            pass.iter().for_each(|group| self.group(&mut values, start, group, false));
        }
        values
    }

    fn inverse(&mut self, values: &[NetworkValue], start: usize) -> Vec<NetworkValue> {
        let mut coefficients = values.to_vec();
        for pass in passes(values.len()) {
            pass.iter().for_each(|group| self.group(&mut coefficients, start, group, true));
        }
        coefficients
    }

    /// Completes a polynomial of n coefficients, where n is the length of `coefficients`. Given are
    /// its first values (`known`), at the points from `start` on, and its coefficients from number
    /// `known.len()` on; the earlier entries of `coefficients` do not matter. Returns all n
    /// coefficients, and the n values at the points from `start` on.
    fn complete(
        &mut self,
        known: &[NetworkValue],
        coefficients: &[NetworkValue],
        start: usize,
    ) -> [Vec<NetworkValue>; 2] {
        let (size, count) = (coefficients.len(), known.len());
        if count == size {
            return [self.inverse(known, start), known.to_vec()];
        }
        if count == 0 {
            return [coefficients.to_vec(), self.forward(coefficients, start)];
        }
        match count <= size / 2 {
            true => self.complete_from_few(known, coefficients, start),
            false => self.complete_from_most(known, coefficients, start),
        }
    }

    /// Does what [`Self::complete`] does, where at most half of the values are known.
    fn complete_from_few(
        &mut self,
        known: &[NetworkValue],
        coefficients: &[NetworkValue],
        start: usize,
    ) -> [Vec<NetworkValue>; 2] {
        let (half, count) = (coefficients.len() / 2, known.len());
        let factor = self.subspaces.value(half.ilog2(), start);
        let (mut low, high) = (coefficients[..half].to_vec(), coefficients[half..].to_vec());
        let mut upper = high.clone();
        for entry in count..half {
            let pair = [low[entry], high[entry]];
            [low[entry], upper[entry]] = self.forward_butterfly(pair, factor);
        }
        let [mut first, values] = self.complete(known, &low, start);
        for entry in 0..count {
            upper[entry] = self.sum(first[entry], high[entry]);
            let product = self.product(factor, high[entry]);
            first[entry] = self.sum(first[entry], product);
        }
        first[count..].copy_from_slice(&coefficients[count..half]);
        let upper = self.forward(&upper, start + half);
        [[first, high].concat(), [values, upper].concat()]
    }

    /// Does what [`Self::complete`] does, where more than half of the values are known.
    fn complete_from_most(
        &mut self,
        known: &[NetworkValue],
        coefficients: &[NetworkValue],
        start: usize,
    ) -> [Vec<NetworkValue>; 2] {
        let (half, count) = (coefficients.len() / 2, known.len());
        let factor = self.subspaces.value(half.ilog2(), start);
        let (mut low, mut high) = (coefficients[..half].to_vec(), coefficients[half..].to_vec());
        let (given, rest) = known.split_at(half);
        let first = self.inverse(given, start);
        for entry in count - half..half {
            high[entry] = self.sum(first[entry], high[entry]);
        }
        let [upper, values] = self.complete(rest, &high, start + half);
        for entry in 0..half {
            [low[entry], high[entry]] =
                self.inverse_butterfly([first[entry], upper[entry]], factor);
        }
        [[low, high].concat(), [given.to_vec(), values].concat()]
    }

    /// Returns the values at the points of the parity, where data has the first points.
    fn data_first(&mut self, evaluation: &Evaluation) -> Vec<NetworkValue> {
        let data: Vec<NetworkValue> = (0..evaluation.data().len() as u32).map(input).collect();
        let size = data.len().next_power_of_two();
        let starts: Vec<usize> = (size..evaluation.parity().end).step_by(size).collect();
        let values = if data.len() == size {
            [data.clone(), self.through(&data, &starts)].concat()
        } else {
            let [coefficients, values] = self.complete(&data, &vec![None; size], 0);
            let others = starts.iter().flat_map(|&start| self.forward(&coefficients, start));
            values.into_iter().chain(others).collect()
        };
        values[evaluation.parity()].to_vec()
    }

    /// Returns the values at the chunks of points that begin at `starts`, of the polynomial that
    /// has the values `known` at the first chunk. The last pass of the inverse transform and the
    /// first one of each transform have the same groups, and run group by group, so that entries
    /// stay in registers from one to the other.
    fn through(&mut self, known: &[NetworkValue], starts: &[usize]) -> Vec<NetworkValue> {
        let (mut values, size) = (known.to_vec(), known.len());
        let passes = passes(size);
        let Some((last, lower)) = passes.split_last() else {
            return starts.iter().flat_map(|_| known.to_vec()).collect();
        };
        lower.iter().flatten().for_each(|group| self.group(&mut values, 0, group, true));
        let mut chunks = vec![vec![None; size]; starts.len()];
        for group in last {
            self.group(&mut values, 0, group, true);
            for (chunk, &start) in chunks.iter_mut().zip(starts) {
                for entry in group.entries() {
                    chunk[entry] = values[entry];
                }
                self.group(chunk, start, group, false);
            }
        }
        for (chunk, &start) in chunks.iter_mut().zip(starts) {
            for group in lower.iter().rev().flatten() {
                self.group(chunk, start, group, false);
            }
        }
        chunks.concat()
    }

    /// Returns the values at the points of the parity, where parity has the first points.
    fn parity_first(&mut self, evaluation: &Evaluation) -> Vec<NetworkValue> {
        let (start, count) = (evaluation.data().start, evaluation.data().len());
        let mut sums = vec![None; start];
        for first in (0..count).step_by(start) {
            let entries = (first..first + start).map(|n| input(n as u32).filter(|_| n < count));
            let block = self.inverse(&entries.collect::<Vec<NetworkValue>>(), start + first);
            for (sum, value) in sums.iter_mut().zip(block) {
                *sum = self.sum(*sum, value);
            }
        }
        self.forward(&sums, 0)
    }

    /// Removes the operations that no output needs.
    fn remove_needless(&mut self, outputs: &[NetworkValue]) {
        let needed = self.needed(outputs);
        self.ops.retain(|op| matches!(op.target, Slot::Temp(n) if needed[n as usize]));
    }

    /// If the only use of a sum is in another sum, merges it into that sum. Half of the sums of
    /// each level are of this kind.
    fn merge_sums(&mut self, outputs: &[NetworkValue]) {
        let mut uses = vec![0; self.temps as usize];
        // A use by anything but a sum counts twice, so that the value is not merged.
        let mut count = |slot: Slot, by: usize| {
            if let Slot::Temp(n) = slot {
                uses[n as usize] += by;
            }
        };
        outputs.iter().flatten().for_each(|&slot| count(slot, 2));
        for op in &self.ops {
            let by = if op.factor == 1 { 1 } else { 2 };
            op.sources.iter().for_each(|&source| count(source, by));
        }
        let mut parts: Vec<Option<Vec<Slot>>> = vec![None; self.temps as usize];
        for mut op in std::mem::take(&mut self.ops) {
            if op.factor == 1 {
                op.sources = sum_of(op.sources.iter().flat_map(|source| {
                    let merged = match source {
                        Slot::Temp(n) => parts[*n as usize].as_deref(),
                        _ => None,
                    };
                    merged.unwrap_or(std::slice::from_ref(source))
                }));
            }
            match op.target {
                Slot::Temp(n) if op.factor == 1 && uses[n as usize] == 1 => {
                    parts[n as usize] = Some(op.sources);
                }
                _ => self.ops.push(op),
            }
        }
    }

    /// Returns for each temporary whether an output needs it.
    fn needed(&self, outputs: &[NetworkValue]) -> Vec<bool> {
        let mut needed = vec![false; self.temps as usize];
        let need = |needed: &mut [bool], slot: Slot| {
            if let Slot::Temp(n) = slot {
                needed[n as usize] = true;
            }
        };
        outputs.iter().flatten().for_each(|&slot| need(&mut needed, slot));
        for op in self.ops.iter().rev() {
            let Slot::Temp(n) = op.target else { continue };
            if needed[n as usize] {
                op.sources.iter().for_each(|&source| need(&mut needed, source));
            }
        }
        needed
    }

    /// Returns the schedule of these outputs.
    fn finish(self, field: Field, inputs: usize, outputs: &[NetworkValue]) -> Result<Schedule> {
        // A temporary that equals one or more outputs takes the place of the first of them.
        let mut places: Vec<Option<Slot>> = vec![None; self.temps as usize];
        let mut copies = Vec::new();
        for (output, &value) in (0..).map(Slot::Output).zip(outputs) {
            match value {
                Some(Slot::Temp(n)) if places[n as usize].is_none() => {
                    places[n as usize] = Some(output);
                }
                value => copies.push((output, value)),
            }
        }
        let mut temps = 0;
        for op in &self.ops {
            let Slot::Temp(n) = op.target else { continue };
            places[n as usize].get_or_insert_with(|| {
                temps += 1;
                Slot::Temp(temps - 1)
            });
        }
        let placed = |slot: Slot| match slot {
            Slot::Temp(n) => places[n as usize].unwrap_or(slot),
            slot => slot,
        };
        let ops = self.ops.into_iter().map(|op| Op {
            target: placed(op.target),
            sources: op.sources.iter().map(|&source| placed(source)).collect(),
            ..op
        });
        let copies = copies
            .into_iter()
            .map(|(output, value)| Op::assign(output, value.map(placed).into_iter().collect()));
        Schedule::over(field, inputs, temps as usize, outputs.len(), ops.chain(copies).collect())
    }
}

/// Returns the slots that occur an odd number of times in `all`. They have the same sum as `all`,
/// because equal slots cancel in pairs.
fn sum_of<'a>(all: impl Iterator<Item = &'a Slot>) -> Vec<Slot> {
    let mut sum = Vec::new();
    for slot in all {
        match sum.iter().position(|other| other == slot) {
            Some(place) => _ = sum.remove(place),
            None => sum.push(*slot),
        }
    }
    sum
}

fn input(number: u32) -> NetworkValue {
    Some(Slot::Input(number))
}

/// Entries that a pass takes together: 2^levels entries from `first` on, 2^level apart.
struct ButterflyGroup {
    first: usize,
    level: u32,
    levels: u32,
}

impl ButterflyGroup {
    /// The numbers of the entries.
    fn entries(&self) -> impl Iterator<Item = usize> {
        let (first, level) = (self.first, self.level);
        (0..1 << self.levels).map(move |number: usize| first + (number << level))
    }
}

/// Divides the levels of a transform of `size` entries into passes, the lowest levels first, and
/// the entries of each pass into groups.
fn passes(size: usize) -> Vec<Vec<ButterflyGroup>> {
    let levels = size.ilog2();
    let count = levels.div_ceil(PASS);
    let bound = |pass: u32| levels * pass / count;
    let groups = |pass: u32| {
        let (level, levels) = (bound(pass), bound(pass + 1) - bound(pass));
        let firsts = (0..size).filter(move |first| first >> level & ((1 << levels) - 1) == 0);
        firsts.map(move |first| ButterflyGroup { first, level, levels }).collect()
    };
    (0..count).map(groups).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::cost::Cost;
    use crate::plan::products::CoefficientRows;
    use crate::plan::prove;

    /// The coefficients by which parity follows from data, by Lagrange's formula. Points at which
    /// the polynomial is zero are among the points that determine it.
    fn interpolated(field: Field, evaluation: &Evaluation) -> CoefficientRows {
        let given: Vec<u32> =
            evaluation.data().chain(evaluation.zeros()).map(|point| point as u32).collect();
        let product = |at: u32, but: u32| {
            let others = given.iter().filter(|&&point| point != but);
            others.fold(1, |product, &point| field.multiply(product, at ^ point))
        };
        let coefficient = |at: u32, from: u32| {
            let scale = field.inverse(product(from, from)).unwrap();
            field.multiply(product(at, from), scale)
        };
        let row = |at: usize| {
            let data = evaluation.data();
            data.map(|from| coefficient(at as u32, from as u32)).collect()
        };
        CoefficientRows {
            field,
            inputs: evaluation.data().len(),
            coefficients: evaluation.parity().map(row).collect(),
        }
    }

    /// The number of products with factors other than 1.
    fn products(schedule: &Schedule) -> usize {
        schedule.ops().iter().filter(|op| op.factor != 1).count()
    }

    #[test]
    fn all_small_shapes_are_right() {
        for (k, m) in (1..12).flat_map(|k| (1..12).map(move |m| (k, m))) {
            for field in [Field::bytes(), Field::cantor()] {
                for evaluation in [Evaluation::data_first(k, m), Evaluation::parity_first(k, m)] {
                    let rows = interpolated(field, &evaluation);
                    let all: Vec<usize> = (0..m).collect();
                    for adds_three in [false, true] {
                        let schedule = encoding(field, &evaluation, &all, adds_three);
                        prove::rows(&rows, &schedule.unwrap().unwrap()).unwrap();
                    }
                }
            }
        }
    }

    /// Some of the outputs, in any order, of wide codes.
    #[test]
    fn wide_shapes_are_right() {
        for (k, m, chosen) in [
            (32, 32, vec![31, 0, 7]),
            (200, 56, (0..56).collect()),
            (17, 239, vec![238]),
            (128, 128, vec![5, 99]),
        ] {
            let evaluation = Evaluation::data_first(k, m);
            let mut rows = interpolated(Field::bytes(), &evaluation);
            rows.coefficients = chosen.iter().map(|&row| rows.coefficients[row].clone()).collect();
            for adds_three in [false, true] {
                let schedule = encoding(Field::bytes(), &evaluation, &chosen, adds_three);
                prove::rows(&rows, &schedule.unwrap().unwrap()).unwrap();
            }
        }
    }

    /// Products and XORs of encodings; the matrices have k·m coefficients.
    #[test]
    fn butterflies_are_counted() {
        let counts = |k, m| {
            let all: Vec<usize> = (0..m).collect();
            let evaluation = Evaluation::data_first(k, m);
            let schedule = |adds_three| {
                encoding(Field::bytes(), &evaluation, &all, adds_three).unwrap().unwrap()
            };
            let [plain, merged] = [false, true].map(|adds_three| Cost::of(&schedule(adds_three)));
            assert_eq!((plain.xors, plain.ternary), (merged.xors, plain.xors));
            (products(&schedule(true)), merged.xors, merged.ternary)
        };
        // Of 160 and 896 butterflies of the shapes that are powers of two, 31 and 127 have the
        // factor 0. The last numbers count XORs of three vectors as one.
        assert_eq!(
            [(10, 4), (32, 32), (128, 128), (200, 56)].map(|(k, m)| counts(k, m)),
            [(14, 35, 27), (129, 289, 225), (769, 1665, 1281), (681, 1561, 1153)]
        );
    }
}
