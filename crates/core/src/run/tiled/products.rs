//! Products of words and a constant, as libraries of 2009 computed them. They are for the lab.
//!
//! - *Doubling* is H. Peter Anvin's, from *The mathematics of RAID-6* (2007): a register of 64 bits
//!   holds several words of the field. One shift doubles them all. The field's polynomial is then
//!   added to the words whose top bit was set. A mask selects these words; two shifts and a
//!   subtraction make it from the top bits.
//! - Any other constant has *tables*, one for each byte of a word: each byte is looked up, and the
//!   entries are summed up. Jerasure and zfec do this for words of 8 bits.
//!
//! So a code whose only factor is 2 is fast (Q of RAID-6, by Horner's rule). The same code is slow
//! when it decodes two data nodes, which takes other factors.

use std::sync::atomic::{Ordering, compiler_fence};

use crate::define::field::Field;
use crate::run::tiled::vector::Vector;

/// Bytes of a register.
const REGISTER: usize = 8;

/// Multiplication of words by a constant, which is not 1.
pub(super) enum Product {
    Double(Doubling),
    /// Words of one byte: the product of each value.
    Bytes(Box<[u8; 256]>),
    /// Words of two bytes: for each of their bytes, its share of the product.
    Pairs(Box<[[u32; 256]; 2]>),
    /// Words of four bytes.
    Quads(Box<[[u32; 256]; 4]>),
}

/// The constants that double all words of a register.
pub(super) struct Doubling {
    /// Bits of a word.
    width: u32,
    /// The top bit of each word.
    tops: u64,
    /// In each word, the element x^`width` of the field.
    overflow: u64,
}

impl Product {
    pub(super) fn new(field: Field, factor: u32) -> Self {
        let multiples = field.multiples_of(factor);
        let share = |byte: usize, value: usize| multiples.of((value as u32) << (8 * byte));
        let table = |byte| std::array::from_fn(|value| share(byte, value));
        match (factor, field.width()) {
            (2, _) if field.has_powers() => Self::Double(Doubling::new(field)),
            (_, 8) => Self::Bytes(Box::new(std::array::from_fn(|value| share(0, value) as u8))),
            (_, 16) => Self::Pairs(Box::new(std::array::from_fn(table))),
            _ => Self::Quads(Box::new(std::array::from_fn(table))),
        }
    }

    /// Multiplies `length` bytes, which are whole words.
    ///
    /// # Safety
    /// `source` is valid for reading `length` bytes and `target` for writing them; both may be the
    /// same place, but must not overlap otherwise.
    #[inline(never)]
    pub(super) unsafe fn run(&self, source: *const u8, target: *mut u8, length: usize) {
        // SAFETY: the caller's contract, passed on.
        unsafe {
            match self {
                Self::Double(doubling) => doubling.run(source, target, length),
                Self::Bytes(table) => {
                    for at in 0..length {
                        target.add(at).write(table[usize::from(source.add(at).read())]);
                    }
                }
                Self::Pairs(tables) => look_up(tables, source, target, length),
                Self::Quads(tables) => look_up(tables, source, target, length),
            }
        }
    }
}

/// Looks each byte of words of `N` bytes up in its table.
///
/// # Safety
/// As [`Product::run`].
unsafe fn look_up<const N: usize>(
    tables: &[[u32; 256]; N],
    source: *const u8,
    target: *mut u8,
    length: usize,
) {
    for at in (0..length / N * N).step_by(N) {
        // SAFETY: the word ends before `length`; an array of bytes needs no alignment.
        let word: [u8; N] = unsafe { source.add(at).cast::<[u8; N]>().read() };
        let shares = tables.iter().zip(&word).map(|(table, &byte)| table[usize::from(byte)]);
        let product = shares.fold(0, |sum, share| sum ^ share).to_le_bytes();
        // SAFETY: as above; a product has at least `N` bytes.
        unsafe { product.as_ptr().copy_to_nonoverlapping(target.add(at), N) };
    }
}

impl Doubling {
    fn new(field: Field) -> Self {
        let width = field.width();
        let in_each =
            |word: u32| (0..64 / width).fold(0, |all, n| all | u64::from(word) << (n * width));
        let top = 1 << (width - 1);
        Self { width, tops: in_each(top), overflow: in_each(field.times_x(top)) }
    }

    /// Doubles all words of a register.
    #[inline(always)]
    fn of(&self, words: u64) -> u64 {
        let tops = words & self.tops;
        // All bits of each word whose top bit is set.
        let mask = (tops << 1).wrapping_sub(tops >> (self.width - 1));
        (words ^ tops) << 1 ^ mask & self.overflow
    }

    /// # Safety
    /// As [`Product::run`].
    #[inline(always)]
    unsafe fn run(&self, source: *const u8, target: *mut u8, length: usize) {
        let mut at = 0;
        while at + REGISTER <= length {
            // SAFETY: the register ends before `length`.
            unsafe {
                let words = u64::from_le(u64::load(source.add(at)));
                self.of(words).to_le().store(target.add(at));
            }
            // Keeps the compiler from joining registers; it costs no instruction.
            compiler_fence(Ordering::SeqCst);
            at += REGISTER;
        }
        let mut last = [0; REGISTER];
        // SAFETY: less than a register is left, up to `length`.
        unsafe {
            source.add(at).copy_to_nonoverlapping(last.as_mut_ptr(), length - at);
            last = self.of(u64::from_le_bytes(last)).to_le_bytes();
            last.as_ptr().copy_to_nonoverlapping(target.add(at), length - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::symbols::WORD_WIDTHS;

    /// Every kind of product, over lengths that are not whole registers, in place and to another
    /// buffer.
    #[test]
    fn products_are_those_of_the_field() {
        let fields = WORD_WIDTHS.map(|width| Field::new(width as u32).unwrap());
        for field in fields.into_iter().chain([Field::cantor()]) {
            let width = field.width() as usize;
            for (factor, words) in [(2, 0), (2, 1), (2, 100), (2, 333), (3, 100), (0x8E, 333)] {
                let bytes = words * width / 8;
                let source: Vec<u8> = (0..bytes).map(|at| (at * at * 31 + at * 7) as u8).collect();
                let mut expected = vec![0; bytes];
                field.multiples_of(factor).add(&source, &mut expected);
                let product = Product::new(field, factor);
                let (mut apart, mut in_place) = (vec![0xC3; bytes + 1], source.clone());
                // SAFETY: the buffers have `bytes` bytes.
                unsafe {
                    product.run(source.as_ptr(), apart.as_mut_ptr(), bytes);
                    product.run(in_place.as_ptr(), in_place.as_mut_ptr(), bytes);
                }
                assert!(apart[..bytes] == expected && apart[bytes] == 0xC3, "{width} {factor}");
                assert!(in_place == expected, "{width} {factor}");
            }
        }
    }

    #[test]
    fn only_doubling_has_no_tables() {
        for width in WORD_WIDTHS {
            let field = Field::new(width as u32).unwrap();
            let is_doubled = |factor| matches!(Product::new(field, factor), Product::Double(_));
            assert!(is_doubled(2) && !is_doubled(3) && !is_doubled(4));
        }
    }
}
