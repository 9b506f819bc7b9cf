//! How kernels touch memory: whole vectors, or the first bytes of one through a padded copy.

use crate::run::kernel::vector::Streaming;

/// How vectors are loaded and stored.
pub(super) trait Access: Copy {
    /// # Safety
    /// `from` is valid for reading as many bytes as the access takes; `V` is available.
    unsafe fn load<V: Streaming>(self, from: *const u8) -> V;

    /// # Safety
    /// `to` is valid for writing as many bytes as the access takes, and as well aligned as the
    /// access promises; `V` is available.
    unsafe fn store<V: Streaming>(self, vector: V, to: *mut u8);
}

/// Loads consecutive vectors.
///
/// # Safety
/// As [`Access::load`], for each of them.
#[inline(always)]
pub(super) unsafe fn load<V: Streaming, A: Access, const VECTORS: usize>(
    from: *const u8,
    access: A,
) -> [V; VECTORS] {
    // SAFETY: the caller's contract.
    unsafe {
        let mut vectors = [access.load::<V>(from); VECTORS];
        for i in 1..VECTORS {
            vectors[i] = access.load(from.add(i * V::BYTES));
        }
        vectors
    }
}

/// Stores consecutive vectors.
///
/// # Safety
/// As [`Access::store`], for each of them.
#[inline(always)]
pub(super) unsafe fn store<V: Streaming, A: Access, const VECTORS: usize>(
    to: *mut u8,
    vectors: [V; VECTORS],
    access: A,
) {
    for i in 0..VECTORS {
        // SAFETY: the caller's contract.
        unsafe { access.store(vectors[i], to.add(i * V::BYTES)) };
    }
}

/// Whole vectors.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    /// Whether stores bypass the cache; they go to aligned places then.
    pub(super) streams: bool,
}

impl Access for Whole {
    #[inline(always)]
    unsafe fn load<V: Streaming>(self, from: *const u8) -> V {
        // SAFETY: the caller's contract.
        unsafe { V::load(from) }
    }

    #[inline(always)]
    unsafe fn store<V: Streaming>(self, vector: V, to: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe {
            if self.streams {
                vector.stream(to);
            } else {
                vector.store(to);
            }
        }
    }
}

/// The first bytes of a vector; others are read as zero and not written.
#[derive(Clone, Copy)]
pub(super) struct Padded {
    pub(super) bytes: usize,
}

impl Access for Padded {
    #[inline(always)]
    unsafe fn load<V: Streaming>(self, from: *const u8) -> V {
        assert!(self.bytes <= V::BYTES);
        // SAFETY: a vector of zero bytes is zero and has room for `bytes`, for which `from` is valid.
        unsafe {
            let mut padded: V = std::mem::zeroed();
            let bytes: *mut u8 = (&raw mut padded).cast();
            bytes.copy_from_nonoverlapping(from, self.bytes);
            V::load(bytes)
        }
    }

    #[inline(always)]
    unsafe fn store<V: Streaming>(self, vector: V, to: *mut u8) {
        assert!(self.bytes <= V::BYTES);
        let mut padded = vector;
        let bytes: *mut u8 = (&raw mut padded).cast();
        // SAFETY: as above, the other way.
        unsafe {
            vector.store(bytes);
            to.copy_from_nonoverlapping(bytes, self.bytes);
        }
    }
}
