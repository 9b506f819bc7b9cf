//! The programs that encode a code and that recover its lost nodes, for any losses. They take n log
//! n operations, solving the equations included.
//!
//! **Encoding** takes the data nodes' chunks to the parity nodes' chunks. If parity has the first
//! points, a chunk has one entry for each point before the data. If data has the first points, the
//! number of data nodes must be a power of two; for other numbers, encoding is a recovery of the
//! parity.
//!
//! **Recovery** (Lin, Al-Naffouri and Han, *FFT algorithm for binary extension finite fields and
//! its application to Reed-Solomon codes*, 2016, section V). F is the polynomial of a code word, E
//! the points whose values are unknown, and Λ the polynomial that vanishes on E. The product G =
//! Λ·F is known at all points: it is zero on E, and a known value times Λ elsewhere. Its degree is
//! below the number of points, so one inverse transform gives its coefficients. The derivative is
//! G' = Λ'·F + Λ·F'. On E, Λ is zero, so G' equals Λ'·F there. So one transform of G' and a
//! division by Λ' give the unknown values.
//!
//! The values of Λ and Λ' are products of differences of points, and differences are XORs: the
//! logarithms of all of them are a convolution, which Walsh and Hadamard's transform takes.

use crate::define::evaluation::Evaluation;
use crate::define::field::Field;
use crate::define::logarithms::{Logarithms, ORDER};
use crate::define::ones::walsh_hadamard;
use crate::define::tower::Element;
use crate::plan::transform::program::{TransformProgram, chunks};

/// Returns the program that computes the parity nodes with the numbers `rows`, ascending. The data
/// nodes are the buffers from 0 on, the parity nodes those after them. `None` if the data nodes
/// have the first points and their number is not a power of two.
pub(crate) fn encoding(
    field: Field,
    evaluation: &Evaluation,
    rows: &[usize],
) -> Option<TransformProgram> {
    let (data, parity) = (evaluation.data(), evaluation.parity());
    let size = if parity.start == 0 { data.start } else { data.len() };
    if !size.is_power_of_two() {
        return None;
    }
    let inputs = data.clone().enumerate().map(|(buffer, point)| (point, buffer, Element(1)));
    let outputs = rows.iter().enumerate();
    let outputs = outputs.map(|(n, row)| (parity.start + row, data.len() + n, Element(1)));
    let (inputs, outputs) = (chunks(size, inputs), chunks(size, outputs));
    Some(TransformProgram::of_bytes(field, size.ilog2(), inputs, outputs, false))
}

/// Returns the program that computes the nodes `to` from the nodes `from`, both ascending. `from`
/// are k nodes; they are the buffers from 0 on, and `to` the buffers after them. `None` if the
/// field has no tables.
pub(crate) fn recovery(
    field: Field,
    evaluation: &Evaluation,
    from: &[u8],
    to: &[u8],
) -> Option<TransformProgram> {
    let logarithms = field.logarithms()?;
    let points = evaluation.points();
    let mut unknown = vec![1; points];
    let known = |node: &u8| evaluation.point((*node).into());
    from.iter().for_each(|node| unknown[known(node)] = 0);
    evaluation.zeros().for_each(|point| unknown[point] = 0);
    let products = products(logarithms, unknown);
    let power = |logarithm: usize| Element(logarithms.power(logarithm).into());
    let inputs = from.iter().enumerate().map(|(buffer, node)| {
        let point = known(node);
        (point, buffer, power(products[point]))
    });
    let outputs = to.iter().enumerate().map(|(n, node)| {
        let point = known(node);
        (point, from.len() + n, power(ORDER - products[point]))
    });
    let (inputs, outputs) = (chunks(points, inputs), chunks(points, outputs));
    Some(TransformProgram::of_bytes(field, points.ilog2(), inputs, outputs, true))
}

/// Returns a lower bound on the operations of a recovery of `to` nodes from `from` nodes. In each
/// level, every value takes part in a butterfly, and a butterfly has at most two values.
pub(crate) fn least_operations(evaluation: &Evaluation, from: usize, to: usize) -> usize {
    let levels = evaluation.points().ilog2() as usize;
    let butterflies = |values: usize| levels * values.div_ceil(2);
    3 * (butterflies(from) + butterflies(to)) + levels * evaluation.points() + from + to
}

/// Returns, for every point, the logarithm of the product of its differences to all chosen points
/// but itself. `chosen` is 1 for each chosen point and 0 for every other point.
fn products(logarithms: &Logarithms, mut chosen: Vec<i32>) -> Vec<usize> {
    let count = chosen.len();
    let mut factors: Vec<i32> = (0..count).map(|n| logarithms.log(n as u8) as i32).collect();
    let transform = |values: &mut [i32]| walsh_hadamard(values, |a, b| (a + b, a - b));
    transform(&mut factors);
    transform(&mut chosen);
    let order = ORDER as i32;
    // All numbers stay below 2^31: there are at most 256, of up to 254 · 256 each.
    for (value, factor) in chosen.iter_mut().zip(factors) {
        *value = *value * (factor % order) % order;
    }
    transform(&mut chosen);
    // Transforming twice multiplies by the number of points, 2^k. Its inverse is 2^(8 - k), because
    // 2^8 is 1 modulo the order.
    let inverse = (256 / count) as i32;
    chosen.into_iter().map(|sum| (sum % order * inverse).rem_euclid(order) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_leave_out_the_point_itself() {
        for (field, count) in [(Field::bytes(), 16), (Field::cantor(), 256), (Field::cantor(), 2)] {
            let logarithms = field.logarithms().unwrap();
            let chosen: Vec<i32> = (0..count).map(|n| i32::from(n * 7 % 5 < 2)).collect();
            let made = products(logarithms, chosen.clone());
            for (point, &product) in made.iter().enumerate() {
                let others = (0..count as usize).filter(|&n| chosen[n] == 1 && n != point);
                let right = others.fold(1, |all, n| logarithms.product(all, (n ^ point) as u8));
                assert_eq!(logarithms.power(product), right, "{point}");
            }
        }
    }

    /// A recovery takes two transforms of all points, whatever is lost.
    #[test]
    fn operations_grow_as_n_log_n() {
        let operations = |k: usize, m: usize| {
            let from: Vec<u8> = (m as u8..=(k + m - 1) as u8).collect();
            let to: Vec<u8> = (0..m as u8).collect();
            let evaluation = Evaluation::data_first(k, m);
            let encodes = encoding(Field::bytes(), &evaluation, &(0..m).collect::<Vec<usize>>());
            let recovers = recovery(Field::bytes(), &evaluation, &from, &to).unwrap();
            (encodes.map_or(0, |program| program.operations()), recovers.operations())
        };
        // Two transforms of 32 entries: 160 butterflies, and 64 values.
        assert_eq!(operations(32, 32).0, 160 * 3 + 64);
        // Two transforms of 64 entries, except for pairs of zeros and pairs that nobody wants.
        let half = 32 / 2 * 5;
        assert_eq!(operations(32, 32).1, 2 * (half + 32) * 3 + 64 * 6 + 64 + 64);
        assert_eq!(operations(128, 128).0, 7 * 64 * 2 * 3 + 256);
        assert_eq!(operations(100, 28).0, 0, "no power of two");
        for (k, m) in [(32, 32), (100, 28), (3, 2), (128, 128)] {
            let least = least_operations(&Evaluation::data_first(k, m), k, m);
            assert!((least..2 * least).contains(&operations(k, m).1), "{k}+{m}: {least}");
        }
    }
}
