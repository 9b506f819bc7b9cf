//! Finds the entry to divide a row by so that its bit matrices have the fewest ones.
//!
//! Normalising a Cauchy matrix, and Jerasure's improvement of one, try every entry of a row as its
//! divisor. That is k² quotients a row, and for each the ones of its w by w bit matrix have to be
//! counted. There are three ways to count them, with the same result; the one with the fewest steps
//! is used:
//!
//! - *by quotient*: compute the quotient and count its ones;
//! - *by logarithm*: in a field of up to 2^20 elements, a quotient is a difference of logarithms,
//!   and a table holds the number of ones by logarithm;
//! - *by transform*: count for all divisors together. Bit r of e · f is the parity of the bits of e
//!   that row r of f's bit matrix selects. A Walsh-Hadamard transform of the row gives, for all
//!   possible selections at once, the number of entries that have that bit set. Each divisor then
//!   takes w² look-ups, whatever k is.

use crate::define::field::Field;

/// Width of the widest field for which a table of all elements is built.
pub(crate) const WIDEST_TABLE: u32 = 20;

/// Counts ones for the rows of one matrix.
#[derive(Debug)]
pub(crate) struct Ones {
    field: Field,
    logarithms: Option<OnesTable>,
}

/// Logarithms to the base x, and numbers of ones by logarithm.
#[derive(Debug)]
struct OnesTable {
    /// Logarithm of each element; that of zero is not used.
    of: Vec<u32>,
    /// Number of ones by logarithm. The list is stored twice over, so a difference needs no
    /// reduction.
    ones: Vec<u32>,
}

impl Ones {
    /// Prepares for `rows` rows of `length` entries.
    pub(crate) fn new(field: Field, rows: usize, length: usize) -> Self {
        let quotients = (rows as u64).saturating_mul(length as u64).saturating_mul(length as u64);
        let pays = field.width() <= WIDEST_TABLE && quotients >= field.size();
        Self { field, logarithms: pays.then(|| OnesTable::new(field)).flatten() }
    }

    /// Returns the number of ones of a row after division by each of `divisors`, which are not
    /// zero.
    pub(crate) fn divided(&self, row: &[u32], divisors: &[u32]) -> Vec<usize> {
        let w = u64::from(self.field.width());
        let lookups = row.len() as u64 * divisors.len() as u64;
        let transform = self.field.size() * w + divisors.len() as u64 * 3 * w * w;
        match &self.logarithms {
            Some(_) if transform < lookups => self.by_transform(row, divisors),
            Some(logarithms) => logarithms.divided(row, divisors),
            None => divisors.iter().map(|&divisor| self.by_quotient(row, divisor)).collect(),
        }
    }

    fn by_quotient(&self, row: &[u32], divisor: u32) -> usize {
        let factor = self.inverse(divisor);
        row.iter().map(|&entry| self.field.ones(self.field.multiply(entry, factor))).sum()
    }

    fn inverse(&self, nonzero: u32) -> u32 {
        self.field.inverse(nonzero).unwrap_or(0)
    }

    fn by_transform(&self, row: &[u32], divisors: &[u32]) -> Vec<usize> {
        let mut balance = vec![0_i32; self.field.size() as usize];
        row.iter().for_each(|&entry| balance[entry as usize] += 1);
        walsh_hadamard(&mut balance, |a, b| (a + b, a - b));
        let w = self.field.width();
        let (count, selections) = (row.len() as i64, i64::from(w) * i64::from(w));
        let ones = |&divisor: &u32| {
            // Number of entries with even parity minus the number with odd parity, over all
            // selections.
            let sum: i64 = self
                .selections(self.inverse(divisor))
                .fold(0, |sum, selection| sum + i64::from(balance[selection as usize]));
            ((count * selections - sum) / 2) as usize
        };
        divisors.iter().map(ones).collect()
    }

    /// Rows of the bit matrices of f, f · x, … f · x^(w - 1). Each selects the bits of e whose
    /// parity is one bit of e · f · x^c.
    fn selections(&self, f: u32) -> impl Iterator<Item = u32> {
        let w = self.field.width();
        let mut columns = [0_u32; 64];
        let mut column = f;
        for place in &mut columns[..2 * w as usize - 1] {
            *place = column;
            column = self.field.times_x(column);
        }
        let mask = u64::from(u32::MAX) >> (32 - w);
        (0..w).flat_map(move |r| {
            let bits = columns[..2 * w as usize - 1].iter().enumerate();
            let bits = bits.fold(0_u64, |bits, (c, y)| bits | u64::from(y >> r & 1) << c);
            (0..w).map(move |c| (bits >> c & mask) as u32)
        })
    }
}

impl OnesTable {
    /// Returns `None` if x does not generate the field.
    fn new(field: Field) -> Option<Self> {
        let order = field.size() as usize - 1;
        let mut of = vec![u32::MAX; field.size() as usize];
        let mut ones = Vec::with_capacity(2 * order);
        let mut power = 1;
        for logarithm in 0..order {
            if of[power as usize] != u32::MAX {
                return None;
            }
            of[power as usize] = logarithm as u32;
            ones.push(field.ones(power) as u32);
            power = field.times_x(power);
        }
        ones.extend_from_within(..);
        Some(Self { of, ones })
    }

    fn divided(&self, row: &[u32], divisors: &[u32]) -> Vec<usize> {
        let order = self.ones.len() / 2;
        let nonzero = row.iter().filter(|&&entry| entry != 0);
        let row: Vec<usize> = nonzero.map(|&entry| self.of[entry as usize] as usize).collect();
        let ones = |&divisor: &u32| {
            let quotients = &self.ones[order - self.of[divisor as usize] as usize..];
            row.iter().map(|&entry| quotients[entry] as usize).sum()
        };
        divisors.iter().map(ones).collect()
    }
}

/// Replaces every element by a signed sum of all elements. The sign is minus where the indices of
/// both elements have an odd number of ones in common. `butterfly` gives the sum and the difference
/// of two elements.
pub(crate) fn walsh_hadamard<T: Copy>(values: &mut [T], butterfly: impl Fn(T, T) -> (T, T)) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = butterfly(*a, *b);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All three ways, in fields small and large.
    #[test]
    fn the_ways_agree() {
        for w in [1, 2, 3, 8, 11, 16] {
            let field = Field::new(w).unwrap();
            let mut x = 0x9E37_79B9_u32;
            let mut next = || {
                x = x.wrapping_mul(0x2545_F491).rotate_left(9) ^ 0x1234_5678;
                x & (field.size() - 1) as u32
            };
            let row: Vec<u32> = (0..50).map(|_| next()).collect();
            let divisors: Vec<u32> = row.iter().copied().filter(|&entry| entry != 0).collect();
            let ones = Ones::new(field, 1 << 16, 50);
            let counted: Vec<usize> =
                divisors.iter().map(|&divisor| ones.by_quotient(&row, divisor)).collect();
            assert_eq!(ones.by_transform(&row, &divisors), counted, "w = {w}");
            let logarithms = ones.logarithms.as_ref().unwrap();
            assert_eq!(logarithms.divided(&row, &divisors), counted, "w = {w}");
        }
    }

    /// AES's polynomial is irreducible, but x does not generate its field.
    #[test]
    fn fields_without_logarithms_are_counted_by_quotient() {
        let field = Field::with_polynomial(8, 0x11B).unwrap();
        let ones = Ones::new(field, 100, 100);
        assert!(ones.logarithms.is_none());
        assert_eq!(ones.divided(&[1, 2], &[1, 2])[0], field.ones(1) + field.ones(2));
    }
}
