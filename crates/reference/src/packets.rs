//! The packet layout: the bits of a symbol lie in w different packets.
//!
//! A shard is a sequence of strips, a strip is w packets of `packet` bytes. Bit b of byte j of
//! packet r is bit r of symbol (j, b) of its strip. So a strip holds 8 x `packet` symbols side by
//! side, and an XOR of two packets adds one bit of each of them at once, which is what makes
//! bit-matrix codes fast. Here every symbol is gathered, processed as a number, and scattered
//! again.

use crate::field::Field;
use crate::matrix::{self, NotEnough};

/// Returns the m parity shards of k `data` shards. `coefficients` holds m rows of k elements.
///
/// # Panics
///
/// If the lengths of the shards differ or are not a multiple of w x `packet` bytes, if `packet` is
/// 0, or if a row does not have k coefficients.
pub fn encode(
    field: &Field,
    coefficients: &[Vec<u64>],
    data: &[Vec<u8>],
    packet: usize,
) -> Vec<Vec<u8>> {
    let data: Vec<_> = data.iter().map(|s| gather(field, s, packet)).collect();
    matrix::encode(field, coefficients, &data)
        .iter()
        .map(|symbols| scatter(field, symbols, packet))
        .collect()
}

/// Fills in the lost shards (`None`) of k + m `shards`, data first. Present shards do not change.
///
/// # Errors
///
/// If the present shards do not determine the lost ones ([`NotEnough`]); `shards` is then
/// unchanged.
///
/// # Panics
///
/// As [`encode`] does.
pub fn reconstruct(
    field: &Field,
    coefficients: &[Vec<u64>],
    shards: &mut [Option<Vec<u8>>],
    packet: usize,
) -> Result<(), NotEnough> {
    let present: Vec<_> =
        shards.iter().map(|shard| Some(gather(field, shard.as_ref()?, packet))).collect();
    let all = matrix::reconstruct(field, coefficients, &present)?;
    for (shard, symbols) in shards.iter_mut().zip(&all) {
        shard.get_or_insert_with(|| scatter(field, symbols, packet));
    }
    Ok(())
}

/// Returns the symbols of a shard: strip by strip, byte by byte, lowest bit first.
fn gather(field: &Field, shard: &[u8], packet: usize) -> Vec<u64> {
    let w = field.w() as usize;
    assert!(packet > 0, "a packet has at least one byte");
    assert!(
        shard.len().is_multiple_of(w * packet),
        "a shard of {} bytes is not a run of strips of {w} packets of {packet} bytes",
        shard.len()
    );
    let mut symbols = Vec::new();
    for strip in shard.chunks_exact(w * packet) {
        for j in 0..packet {
            for b in 0..8 {
                let bit = |r: usize| u64::from((strip[r * packet + j] >> b) & 1);
                symbols.push((0..w).map(|r| bit(r) << r).sum());
            }
        }
    }
    symbols
}

/// Returns the shard with these symbols; undoes [`gather`].
fn scatter(field: &Field, symbols: &[u64], packet: usize) -> Vec<u8> {
    let w = field.w() as usize;
    let mut shard = Vec::new();
    for of_strip in symbols.chunks_exact(8 * packet) {
        let mut strip = vec![0; w * packet];
        for (number, symbol) in of_strip.iter().enumerate() {
            let (j, b) = (number / 8, number % 8);
            for r in 0..w {
                let bit = ((symbol >> r) & 1) as u8;
                strip[r * packet + j] |= bit << b;
            }
        }
        shard.extend(strip);
    }
    shard
}

#[cfg(test)]
mod tests {
    use super::{encode, gather};
    use crate::field::Field;

    /// Two strips of two packets of two bytes; each byte holds one bit, set by hand.
    #[test]
    fn where_the_bits_of_a_symbol_lie() {
        let field = Field::new(2, 0b111);
        let shard = [0x01, 0x80, 0x01, 0x00, 0x00, 0x04, 0x02, 0x04];
        let mut expected = [0; 32];
        expected[0] = 3;
        expected[15] = 1;
        expected[16 + 1] = 2;
        expected[16 + 10] = 3;
        assert_eq!(gather(&field, &shard, 2), expected);
    }

    /// In GF(4), 2 times 0, 1, 2, 3 is 0, 2, 3, 1. The low four bit positions of the two packets
    /// hold those symbols: low bits 1010, high bits 1100, most significant position first.
    #[test]
    fn doubling_in_gf4_by_hand() {
        let field = Field::new(2, 0b111);
        let parity = encode(&field, &[vec![2]], &[vec![0b1010, 0b1100]], 1);
        assert_eq!(parity, [[0b1100, 0b0110]]);
    }

    #[test]
    #[should_panic(expected = "not a run of strips")]
    fn shards_are_whole_strips() {
        encode(&Field::new(4, 0x13), &[vec![1]], &[vec![0; 6]], 2);
    }
}
