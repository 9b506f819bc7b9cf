//! Leopard's symbols as the values of a transform. Their bytes lie in blocks in an order of their
//! own, and are mapped to elements of the field by a linear map.

use crate::define::tower::Element;
use crate::plan::machine::LINE;
use crate::plan::transform::program::TransformValue;
use crate::run::tiled::multiplier::Multiplier;
use crate::run::tiled::transform::{Scalar, TransformTile, load, store};
use crate::run::tiled::vector::Vector;

impl<const PARTS: usize> TransformTile<PARTS> {
    /// Makes an entry of the `bytes` bytes of Leopard's symbols at `from`, and of zeros after them,
    /// multiplied by the value's factor.
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
            // SAFETY: the granule is one of the entry's, and only bytes that are left are read.
            unsafe {
                if left < PARTS * LINE {
                    to.write_bytes(0, PARTS * LINE);
                }
                for [near, far, count] in leopard_pieces(left) {
                    copy(from.wrapping_add(granule + far), to.add(near), count);
                }
                for at in (0..LINE).step_by(V::BYTES) {
                    let place = to.add(at);
                    let mut symbols = mapped::<V, M, PARTS>(load(place), maps);
                    if value.factor != Element::ONE {
                        symbols = factor.times::<false, PARTS>(symbols);
                    }
                    store(symbols, place);
                }
            }
        }
    }

    /// Writes an entry, multiplied by the value's factor, as Leopard's symbols to the `bytes` bytes
    /// at `to`, or adds it to those if `adds`.
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
            // SAFETY: the granule is one of the entry's, and only bytes that are left are written.
            unsafe {
                for at in (0..LINE).step_by(V::BYTES) {
                    let place = from.add(at);
                    let mut symbols = load::<V, PARTS>(place);
                    if value.factor != Element::ONE {
                        symbols = factor.times::<false, PARTS>(symbols);
                    }
                    store(mapped::<V, M, PARTS>(symbols, maps), place);
                }
                for [near, far, count] in leopard_pieces(left) {
                    let (from, to) = (from.add(near), to.wrapping_add(granule + far));
                    if adds {
                        for byte in 0..count {
                            *to.add(byte) ^= *from.add(byte);
                        }
                    } else {
                        copy(from, to, count);
                    }
                }
            }
        }
    }
}

/// Returns where a granule's bytes lie in a block of Leopard's symbols of which `left` bytes are
/// left: runs of bytes, each with its place in the granule, its place in the block, and its length.
/// 64 bytes of a block are the low bytes of 32 symbols and then their high bytes; fewer bytes, at a
/// block's end, are as many low bytes as high bytes.
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

/// Copies `count` bytes, mostly half a line.
///
/// # Safety
/// Both places are valid for the bytes, and apart.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match count {
            HALF_LINE => to.copy_from_nonoverlapping(from, HALF_LINE),
            _ => to.copy_from_nonoverlapping(from, count),
        }
    }
}

const HALF_LINE: usize = LINE / 2;

/// Returns symbols whose bytes are mapped: those of Leopard as elements, or elements as those of
/// Leopard.
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
