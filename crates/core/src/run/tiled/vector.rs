//! The operations that an instruction set must offer for the tiled kernels.

use crate::plan::machine::LINE;

/// A register of bytes that can be loaded, XORed and stored.
///
/// # Safety
/// `BYTES` is the size of the type, loads and stores touch exactly that many bytes and need no
/// alignment. The methods may only be called where the processor has the instruction set; they
/// are meant to be inlined into functions with the matching `target_feature`.
pub(crate) unsafe trait Vector: Copy {
    /// Bytes of a register.
    const BYTES: usize;

    /// # Safety
    /// `from` is valid for reading `BYTES`.
    unsafe fn load(from: *const u8) -> Self;

    /// # Safety
    /// `to` is valid for writing `BYTES`.
    unsafe fn store(self, to: *mut u8);

    /// # Safety
    /// The processor has the instruction set.
    unsafe fn xor(self, other: Self) -> Self;

    /// Loads the first half of a register from `first`, and the second half from `second`.
    ///
    /// # Safety
    /// Both are valid for reading half of `BYTES`.
    #[inline(always)]
    unsafe fn load_halves(first: *const u8, second: *const u8) -> Self {
        let (mut bytes, half) = ([0; LINE], Self::BYTES / 2);
        // SAFETY: the caller's contract; no register is longer than a line.
        unsafe {
            bytes.as_mut_ptr().copy_from_nonoverlapping(first, half);
            bytes.as_mut_ptr().add(half).copy_from_nonoverlapping(second, half);
            Self::load(bytes.as_ptr())
        }
    }

    /// Stores the first half of the register at `first`, and the second half at `second`.
    ///
    /// # Safety
    /// Both are valid for writing half of `BYTES`.
    #[inline(always)]
    unsafe fn store_halves(self, first: *mut u8, second: *mut u8) {
        let (mut bytes, half) = ([0; LINE], Self::BYTES / 2);
        // SAFETY: the caller's contract; no register is longer than a line.
        unsafe {
            self.store(bytes.as_mut_ptr());
            first.copy_from_nonoverlapping(bytes.as_ptr(), half);
            second.copy_from_nonoverlapping(bytes.as_ptr().add(half), half);
        }
    }
}

/// A vector that can be written with a non-temporal store.
///
/// # Safety
/// `stream` writes exactly the vector's bytes. The methods may only be called where the processor
/// has the instruction set; they are meant to be inlined into functions with the matching
/// `target_feature`.
pub(crate) unsafe trait Streaming: Vector {
    /// Stores with a non-temporal store, if the instruction set has one.
    ///
    /// # Safety
    /// `to` is valid for writing a vector and aligned to the bytes of one, or to a cache line if
    /// a vector is longer than that.
    unsafe fn stream(self, to: *mut u8);

    /// Makes streamed data visible to other threads before anything that follows.
    ///
    /// # Safety
    /// The processor has the instruction set.
    unsafe fn fence();

    /// Prefetches the cache line of `from` into the second-level cache, if the instruction set can;
    /// the address need not be valid.
    #[inline(always)]
    fn prefetch(from: *const u8) {
        let _ = from;
    }
}

// SAFETY: eight bytes, read and written unaligned; every processor has the instructions.
unsafe impl Vector for u64 {
    const BYTES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for eight readable bytes.
        unsafe { from.cast::<u64>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for eight writable bytes.
        unsafe { to.cast::<u64>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }
}

// SAFETY: one byte.
unsafe impl Vector for u8 {
    const BYTES: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller vouches for a readable byte.
        unsafe { from.read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller vouches for a writable byte.
        unsafe { to.write(self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }
}

// SAFETY: a store touches eight bytes.
unsafe impl Streaming for u64 {
    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller vouches for the bytes.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    unsafe fn fence() {}
}
