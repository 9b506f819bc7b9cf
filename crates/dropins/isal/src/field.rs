//! GF(2^8) with the polynomial 0x11D, and ISA-L's matrices over it.

/// Powers of 2, stored twice (510 is 2 · 255), so that the sum of two logarithms is an index
/// without reduction.
const POWERS: [u8; 510] = {
    let mut powers = [0; 510];
    let (mut power, mut i) = (1_u32, 0);
    while i < 510 {
        powers[i] = power as u8;
        power <<= 1;
        if power > 0xFF {
            power ^= 0x11D;
        }
        i += 1;
    }
    powers
};

/// Logarithms to base 2; entry 0 is unused.
const LOGARITHMS: [u8; 256] = {
    let mut logarithms = [0; 256];
    let mut i = 0;
    while i < 255 {
        logarithms[POWERS[i] as usize] = i as u8;
        i += 1;
    }
    logarithms
};

/// Returns the product of two elements.
pub(crate) fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[usize::from(LOGARITHMS[usize::from(a)]) + usize::from(LOGARITHMS[usize::from(b)])]
}

/// Returns the inverse of `a`; 0 for 0, as in ISA-L.
pub(crate) fn inverse(a: u8) -> u8 {
    if a == 0 { 0 } else { POWERS[255 - usize::from(LOGARITHMS[usize::from(a)])] }
}

/// Returns the 32-byte table of one coefficient: its products with 0, 1, … 15, then with 0, 16, …
/// 240.
pub(crate) fn table(coefficient: u8) -> [u8; 32] {
    std::array::from_fn(|i| {
        let factor = if i < 16 { i } else { (i - 16) << 4 };
        multiply(coefficient, factor as u8)
    })
}

/// Writes a matrix of `n` rows and `k` columns: an identity in the first `k` rows, and `entry(row,
/// column)` in the rows below.
pub(crate) fn generator(
    matrix: &mut [u8],
    n: usize,
    k: usize,
    mut entry: impl FnMut(usize, usize) -> u8,
) {
    for (at, value) in matrix[..n * k].iter_mut().enumerate() {
        let (row, column) = (at / k, at % k);
        *value = if row < k { u8::from(row == column) } else { entry(row, column) };
    }
}

/// Inverts the matrix `from` of `n` rows into `to` by Gauss-Jordan elimination, and overwrites
/// `from`. Returns whether `from` has an inverse.
pub(crate) fn invert(from: &mut [u8], to: &mut [u8], n: usize) -> bool {
    generator(to, n, n, |_, _| 0);
    for i in 0..n {
        if from[i * n + i] == 0 {
            let Some(other) = (i + 1..n).find(|&row| from[row * n + i] != 0) else { return false };
            for column in 0..n {
                from.swap(i * n + column, other * n + column);
                to.swap(i * n + column, other * n + column);
            }
        }
        let scale = inverse(from[i * n + i]);
        for column in 0..n {
            from[i * n + column] = multiply(from[i * n + column], scale);
            to[i * n + column] = multiply(to[i * n + column], scale);
        }
        for row in (0..n).filter(|&row| row != i) {
            let factor = from[row * n + i];
            for column in 0..n {
                from[row * n + column] ^= multiply(factor, from[i * n + column]);
                to[row * n + column] ^= multiply(factor, to[i * n + column]);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the definition of a product: shift, add, reduce.
    #[test]
    fn products_are_those_of_the_field() {
        let slow = |a: u8, b: u8| {
            let sum = (0..8)
                .filter(|bit| b >> bit & 1 == 1)
                .fold(0_u32, |sum, bit| sum ^ u32::from(a) << bit);
            (8..16).rev().fold(sum, |sum, bit| {
                if sum >> bit & 1 == 1 { sum ^ 0x11D << (bit - 8) } else { sum }
            }) as u8
        };
        for a in 0..=255 {
            assert_eq!(multiply(a, inverse(a)), u8::from(a != 0));
            for b in 0..=255 {
                assert_eq!(multiply(a, b), slow(a, b), "{a} times {b}");
                let table = table(a);
                assert_eq!(
                    table[usize::from(b & 15)] ^ table[16 + usize::from(b >> 4)],
                    slow(a, b)
                );
            }
        }
    }

    #[test]
    fn singular_matrices_are_refused() {
        let mut to = [0; 4];
        assert!(!invert(&mut [1, 2, 1, 2], &mut to, 2));
        assert!(invert(&mut [0, 2, 1, 2], &mut to, 2));
        assert_eq!(to, [1, 1, inverse(2), 0]);
    }
}
