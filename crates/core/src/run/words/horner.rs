//! P and Q of RAID-6 without multiplication.
//!
//! With data d_0 to d_(k-1), Q = d_0 + 2·d_1 + 4·d_2 + … is (…(2·d_(k-1) + d_(k-2))·2 + …)·2 + d_0 by
//! Horner's rule, and doubling a register full of words takes a shift and a conditional XOR
//! (H. Peter Anvin, *The mathematics of RAID-6*). P is summed on the way. Words of 16 and 32 bits
//! double as they lie in memory, without being pulled apart.
//!
//! Every doubling waits for the one before, so four registers are worked on side by side.

use crate::define::field::Field;
use crate::run::kernel::Memory;
use crate::run::kernel::vector::Vector;
use crate::run::words::access::{Access, Padded, Whole, load, store};
use crate::run::words::engine::Span;
use crate::run::words::multiplier::Multiplier;
use crate::run::words::program::WordProgram;

/// The registers that are worked on side by side.
const TOGETHER: usize = 4;

/// A program that makes P and Q.
pub(super) struct Horner {
    /// Highest power first.
    inputs: Vec<usize>,
    p: usize,
    q: usize,
    field: Field,
}

impl Horner {
    /// `None` where the program is not just P and Q: a plain sum, and a sum in which the
    /// coefficients are the first powers of two, in any order.
    pub(super) fn new(program: &WordProgram) -> Option<Self> {
        let field = program.field();
        let &[first, second] = program.outputs() else { return None };
        if program.adds() || program.inputs().is_empty() {
            return None;
        }
        let is_p = |output: usize| program.row(output).iter().all(|&coefficient| coefficient == 1);
        let (p, q, powers) = match (is_p(0), is_p(1)) {
            (true, _) => (first, second, program.row(1)),
            (_, true) => (second, first, program.row(0)),
            _ => return None,
        };
        let order = by_descending_power(field, powers)?;
        let inputs = order.into_iter().map(|input| program.inputs()[input]).collect();
        Some(Self { inputs, p, q, field })
    }
}

/// The positions of 2^(k-1), …, 4, 2, 1 in a list of just these, in any order and all different.
fn by_descending_power(field: Field, powers: &[u32]) -> Option<Vec<usize>> {
    let mut power = 1;
    let mut positions: Vec<usize> = Vec::with_capacity(powers.len());
    for _ in powers {
        let position = powers.iter().position(|&p| p == power)?;
        if positions.first() == Some(&position) {
            return None;
        }
        positions.push(position);
        power = field.multiply(power, 2);
    }
    positions.reverse();
    Some(positions)
}

impl Horner {
    /// Runs over some bytes of all buffers.
    ///
    /// # Safety
    /// As [`super::products::Products::run`].
    #[inline(always)]
    pub(super) unsafe fn run<M: Multiplier, const N: usize>(&self, memory: &Memory, span: Span) {
        let register = M::Register::BYTES;
        let start = |buffer: usize| memory.pointer(buffer).wrapping_add(span.start);
        let sources: Vec<*const u8> = self.inputs.iter().map(|&b| start(b).cast_const()).collect();
        let targets = [start(self.p), start(self.q)];
        let mut at = 0;
        // SAFETY: `at` plus the bytes that are touched never exceeds the span.
        unsafe {
            let two = M::two::<N>(self.field);
            while at + TOGETHER * register <= span.length {
                let access = Whole { streams: span.streams };
                step::<M, N, Whole, TOGETHER>(&sources, targets, at, two, access);
                at += TOGETHER * register;
            }
            while at < span.length {
                let access = Padded { bytes: register.min(span.length - at) };
                step::<M, N, Padded, 1>(&sources, targets, at, two, access);
                at += access.bytes;
            }
        }
    }
}

/// Makes some registers of P and Q.
///
/// # Safety
/// Sources and targets are valid for the access at `at`; `M`'s instruction set is
/// available.
#[inline(always)]
unsafe fn step<M: Multiplier, const N: usize, A: Access, const REGISTERS: usize>(
    sources: &[*const u8],
    [p, q]: [*mut u8; 2],
    at: usize,
    two: M::Register,
    access: A,
) {
    let [highest, others @ ..] = sources else { return };
    // SAFETY: the caller's contract.
    unsafe {
        let mut p_sums: [M::Register; REGISTERS] = load(highest.add(at), access);
        let mut q_sums = p_sums;
        for source in others {
            let data: [M::Register; REGISTERS] = load(source.add(at), access);
            for i in 0..REGISTERS {
                p_sums[i] = p_sums[i].xor(data[i]);
                q_sums[i] = M::double::<N>(q_sums[i], two).xor(data[i]);
            }
        }
        store(p.add(at), p_sums, access);
        store(q.add(at), q_sums, access);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_found_in_any_order() {
        let field = Field::new(8).unwrap();
        assert_eq!(by_descending_power(field, &[1, 2, 4]), Some(vec![2, 1, 0]));
        assert_eq!(by_descending_power(field, &[4, 1, 2]), Some(vec![0, 2, 1]));
        assert_eq!(by_descending_power(field, &[1, 4]), None);
        assert_eq!(by_descending_power(field, &[1, 1]), None);
    }

    /// In AES's field 2 has the order 51: after that many, powers come again.
    #[test]
    fn powers_that_come_again_are_none() {
        let field = Field::with_polynomial(8, 0x11B).unwrap();
        let powers: Vec<u32> = (0..52).map(|exponent| field.power(2, exponent)).collect();
        assert!(by_descending_power(field, &powers[..51]).is_some());
        assert_eq!(by_descending_power(field, &powers), None);
    }
}
