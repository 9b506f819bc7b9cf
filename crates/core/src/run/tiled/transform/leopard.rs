//! Leopard's symbols as the values of a transform. Their bytes lie in blocks in an order of their
//! own, and are mapped to elements of the field by a linear map.

use std::array;

use crate::define::tower::Element;
use crate::plan::machine::LINE;
use crate::plan::transform::program::TransformValue;
use crate::run::tiled::multiplier::Multiplier;
use crate::run::tiled::transform::{Scalar, TransformTile, load, store};
use crate::run::tiled::vector::Vector;

impl<const PARTS: usize> TransformTile<'_, PARTS> {
    /// Fills the entry of a value: reads `bytes` bytes of Leopard's symbols at `from`, appends
    /// zeros, and multiplies by the value's factor.
    ///
    /// # Safety
    /// The tile is valid, and so are the bytes.
    #[inline(always)]
    pub(super) unsafe fn import<V: Vector, M: Multiplier<V>>(
        self,
        value: &TransformValue,
        from: *const u8,
        bytes: usize,
    ) {
        let (entry, maps) = (self.entry(value.entry), &M::leopard()[0]);
        let factor = Scalar::<V, M>::new(self.factors.value(value.factor), M::factors(self.base));
        for granule in (0..self.width()).step_by(PARTS * LINE) {
            let (left, to) = (bytes.saturating_sub(granule), entry.wrapping_add(granule));
            let from = from.wrapping_add(granule);
            // SAFETY: the granule is one of the entry's, and only bytes that are left are read.
            unsafe {
                if left < PARTS * LINE {
                    to.write_bytes(0, PARTS * LINE);
                    for [near, far, count] in leopard_pieces(left) {
                        to.add(near).copy_from_nonoverlapping(from.wrapping_add(far), count);
                    }
                }
                for at in (0..LINE).step_by(V::BYTES) {
                    let place = to.add(at);
                    let symbols = match left < PARTS * LINE {
                        true => load(place),
                        false => load_symbols(from, at),
                    };
                    let mut symbols = mapped::<V, M, PARTS>(symbols, maps);
                    if value.factor != Element::ONE {
                        symbols = factor.times::<false, PARTS>(symbols);
                    }
                    store(symbols, place);
                }
            }
        }
    }

    /// Multiplies the entry of a value by the value's factor, and writes it as Leopard's symbols to
    /// the `bytes` bytes at `to`, which may be those of the entry. If `adds`, adds it to these
    /// bytes instead.
    ///
    /// # Safety
    /// As [`TransformTile::import`].
    #[inline(always)]
    pub(super) unsafe fn export<V: Vector, M: Multiplier<V>>(
        self,
        value: &TransformValue,
        to: *mut u8,
        bytes: usize,
        adds: bool,
    ) {
        let (entry, maps) = (self.entry(value.entry), &M::leopard()[1]);
        let factor = Scalar::<V, M>::new(self.factors.value(value.factor), M::factors(self.base));
        for granule in (0..self.width()).step_by(PARTS * LINE) {
            let (left, from) = (bytes.saturating_sub(granule), entry.wrapping_add(granule));
            let to = to.wrapping_add(granule);
            let mut copy = [0; 2 * LINE];
            // SAFETY: the granule is one of the entry's, and only bytes that are left are written.
            unsafe {
                let from = unless_same(from, to, &mut copy[..PARTS * LINE]);
                for at in (0..LINE).step_by(V::BYTES) {
                    let place = from.add(at);
                    let mut symbols = load::<V, PARTS>(place);
                    if value.factor != Element::ONE {
                        symbols = factor.times::<false, PARTS>(symbols);
                    }
                    symbols = mapped::<V, M, PARTS>(symbols, maps);
                    if left < PARTS * LINE {
                        store(symbols, place);
                        continue;
                    }
                    if adds {
                        let there = load_symbols::<V, PARTS>(to, at);
                        symbols = array::from_fn(|part| symbols[part].xor(there[part]));
                    }
                    store_symbols(symbols, to, at);
                }
                if left < PARTS * LINE {
                    export_end(from, to, left, adds);
                }
            }
        }
    }
}

/// Returns the place of a granule, or that of its copy if it lies where it will be overwritten. The
/// copy is as long as the granule.
///
/// # Safety
/// The granule is valid.
#[inline(always)]
unsafe fn unless_same(from: *mut u8, to: *mut u8, copy: &mut [u8]) -> *mut u8 {
    if from != to {
        return from;
    }
    // SAFETY: the caller's contract.
    unsafe { copy.as_mut_ptr().copy_from_nonoverlapping(from, copy.len()) };
    copy.as_mut_ptr()
}

/// Writes a granule at the end of a block, which has only `left` bytes of it. If `adds`, adds it to
/// these bytes instead.
///
/// # Safety
/// The granule is valid, and so are the bytes.
unsafe fn export_end(from: *const u8, to: *mut u8, left: usize, adds: bool) {
    for [near, far, count] in leopard_pieces(left) {
        // SAFETY: the caller's contract; the pieces are within the granule and the bytes.
        unsafe {
            let (from, to) = (from.add(near), to.wrapping_add(far));
            if adds {
                for byte in 0..count {
                    *to.add(byte) ^= *from.add(byte);
                }
            } else {
                to.copy_from_nonoverlapping(from, count);
            }
        }
    }
}

/// Returns where the bytes of a granule lie at the end of a block of Leopard's symbols, which has
/// `left` bytes of the granule. Each entry is a run of bytes: its place in the granule, its place
/// in the block, and its length. In a block, 64 bytes are the low bytes of 32 symbols and then
/// their high bytes. If fewer bytes remain at the end, the first half are low bytes and the second
/// half high bytes.
#[inline(always)]
fn leopard_pieces(left: usize) -> [[usize; 3]; 4] {
    let half = |chunk: usize| left.saturating_sub(chunk * LINE).min(LINE) / 2;
    let [first, second] = [half(0), half(1)];
    [
        [0, 0, first],
        [LINE, first, first],
        [LINE / 2, LINE, second],
        [LINE + LINE / 2, LINE + second, second],
    ]
}

/// Returns where the low bytes of a register's symbols lie in a whole granule of Leopard's symbols:
/// first those of its first half, then those of its second half. `at` is the register's place among
/// the low bytes. The high bytes lie half a line after the low bytes.
#[inline(always)]
fn halves(at: usize, register: usize) -> [usize; 2] {
    [at, at + register / 2].map(|symbol| symbol / HALF_LINE * LINE + symbol % HALF_LINE)
}

/// Loads symbols of a whole granule of Leopard's, from its place in a block.
///
/// # Safety
/// The granule is valid for reading, and the processor has the instruction set.
#[inline(always)]
unsafe fn load_symbols<V: Vector, const PARTS: usize>(from: *const u8, at: usize) -> [V; PARTS] {
    let [first, second] = halves(at, V::BYTES);
    // SAFETY: the caller's contract.
    array::from_fn(|part| unsafe {
        let from = from.add(part * HALF_LINE);
        match V::BYTES <= HALF_LINE {
            true => V::load(from.add(first)),
            false => V::load_halves(from.add(first), from.add(second)),
        }
    })
}

/// Stores symbols of a whole granule of Leopard's at its place in a block.
///
/// # Safety
/// As [`load_symbols`], for writing.
#[inline(always)]
unsafe fn store_symbols<V: Vector, const PARTS: usize>(
    symbols: [V; PARTS],
    to: *mut u8,
    at: usize,
) {
    let [first, second] = halves(at, V::BYTES);
    for (part, bytes) in symbols.into_iter().enumerate() {
        // SAFETY: the caller's contract.
        unsafe {
            let to = to.add(part * HALF_LINE);
            match V::BYTES <= HALF_LINE {
                true => bytes.store(to.add(first)),
                false => bytes.store_halves(to.add(first), to.add(second)),
            }
        }
    }
}

const HALF_LINE: usize = LINE / 2;

/// Maps the bytes of symbols: from Leopard's symbols to elements, or back, as `maps` says.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn mapped<V: Vector, M: Multiplier<V>, const PARTS: usize>(
    symbols: [V; PARTS],
    maps: &[M::Factor; 3],
) -> [V; PARTS] {
    let (low, high) = (symbols[0], symbols[PARTS - 1]);
    let mut mapped = symbols;
    // SAFETY: the caller's contract.
    unsafe {
        mapped[0] = M::times(low, &maps[0]).xor(M::times(high, &maps[1]));
        mapped[PARTS - 1] = M::times(high, &maps[2]);
    }
    mapped
}
