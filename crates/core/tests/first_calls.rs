//! What the first call of a wide code allocates: counted, because times differ from machine to
//! machine.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use paritas::Codec;

thread_local! {
    /// Number of allocations of this thread.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATIONS.get();
    let made = run();
    (made, ALLOCATIONS.get() - before)
}

/// A codec allocates a few times for each node, not for each cell; of these there are eight.
#[test]
fn a_wide_codec_allocates_by_nodes() {
    for (k, m) in [(32, 32), (128, 128)] {
        let spec = format!("backblaze:k={k},m={m}");
        let (codec, made) = allocations(|| spec.parse::<Codec>().unwrap());
        let data = vec![vec![1; 64]; k];
        let mut parity = vec![vec![0; 64]; m];
        let (_, encoded) = allocations(|| codec.encode(&data, &mut parity).unwrap());
        let (_, again) = allocations(|| codec.encode(&data, &mut parity).unwrap());
        assert!(made < 4 * (k + m), "{spec}: {made} allocations");
        assert!(encoded < 2 * (k + m), "{spec}: {encoded} allocations");
        assert!(again < 10, "{spec}: {again} allocations");
    }
}
