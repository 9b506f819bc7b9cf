//! The word layout: a symbol is a little-endian word of 8, 16 or 32 bits.
//!
//! This is how ISA-L, MinIO, zfec, Linux RAID-6 and Jerasure's Reed-Solomon codes store symbols. A
//! shard is a sequence of these words, with nothing between or around them.

use crate::field::Field;
use crate::matrix::{self, NotEnough};

/// Returns the m parity shards of k `data` shards. `coefficients` holds m rows of k elements.
///
/// # Panics
///
/// If w is not 8, 16 or 32, if the lengths of the shards differ or are not a multiple of w bits, or
/// if a row does not have k coefficients.
pub fn encode(field: &Field, coefficients: &[Vec<u64>], data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let data: Vec<_> = data.iter().map(|shard| symbols(field, shard)).collect();
    matrix::encode(field, coefficients, &data).iter().map(|symbols| bytes(field, symbols)).collect()
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
) -> Result<(), NotEnough> {
    let present: Vec<_> =
        shards.iter().map(|shard| Some(symbols(field, shard.as_ref()?))).collect();
    let all = matrix::reconstruct(field, coefficients, &present)?;
    for (shard, symbols) in shards.iter_mut().zip(&all) {
        shard.get_or_insert_with(|| bytes(field, symbols));
    }
    Ok(())
}

/// Number of bytes of a word.
fn word_size(field: &Field) -> usize {
    let w = field.w();
    assert!(matches!(w, 8 | 16 | 32), "words have 8, 16 or 32 bits");
    w as usize / 8
}

fn symbols(field: &Field, shard: &[u8]) -> Vec<u64> {
    let size = word_size(field);
    assert!(
        shard.len().is_multiple_of(size),
        "a shard of {} bytes is not a run of words of {size} bytes",
        shard.len()
    );
    let append = |high: u64, &low: &u8| (high << 8) | u64::from(low);
    shard.chunks_exact(size).map(|word| word.iter().rev().fold(0, append)).collect()
}

fn bytes(field: &Field, symbols: &[u64]) -> Vec<u8> {
    let size = word_size(field);
    symbols.iter().flat_map(|symbol| symbol.to_le_bytes().into_iter().take(size)).collect()
}

#[cfg(test)]
mod tests {
    use super::encode;
    use crate::field::Field;

    /// P and Q of Linux RAID-6: coefficients 1 and powers of 2. Q is
    /// 0x80 + 2 * 0x80 + 4 * 0x80 = 0x80 + 0x1D + 0x3A.
    #[test]
    fn raid6_bytes_by_hand() {
        let field = Field::new(8, 0x11D);
        let rows = [vec![1, 1, 1], vec![1, 2, 4]];
        let data = [vec![0x80, 1], vec![0x80, 0], vec![0x80, 1]];
        assert_eq!(encode(&field, &rows, &data), [[0x80, 0], [0xA7, 5]]);
    }

    /// Doubling the top bit leaves the polynomial's tail: 0x100B and 0x00400007.
    #[test]
    fn words_are_little_endian() {
        let double = [vec![2]];
        let field = Field::new(16, 0x1100B);
        let parity = encode(&field, &double, &[vec![0x00, 0x80, 0x80, 0x00]]);
        assert_eq!(parity, [[0x0B, 0x10, 0x00, 0x01]]);
        let field = Field::new(32, 0x1_0040_0007);
        let parity = encode(&field, &double, &[vec![0, 0, 0, 0x80]]);
        assert_eq!(parity, [[0x07, 0, 0x40, 0]]);
    }

    #[test]
    #[should_panic(expected = "8, 16 or 32 bits")]
    fn other_word_sizes_are_refused() {
        encode(&Field::new(4, 0x13), &[vec![1]], &[vec![0]]);
    }
}
