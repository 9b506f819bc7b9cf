//! Programs for matrices of `int`, and access to the memory of callers.

use std::slice;

use paritas::Prepared;
use paritas_dropins::{Key, Programs, Recent, Regions};

static PROGRAMS: Programs<i32> = Programs::new(0, bytes_each);

thread_local! {
    static RECENT: Recent<i32> = const { Recent::new(Vec::new()) };
}

/// Number of programs that have been made so far for matrices.
pub(crate) fn made() -> usize {
    PROGRAMS.made()
}

/// Bytes of a program for each number in its bit matrix or schedule, as measured.
pub(crate) const BYTES_A_BIT: usize = 256;

/// Estimates the bytes of a program for each number in its matrix.
fn bytes_each(&[kind, ..]: &[usize; 6]) -> usize {
    let of_bits =
        [CallKind::Packets, CallKind::DecodePackets].map(|kind| kind as usize).contains(&kind);
    if of_bits { BYTES_A_BIT } else { 2048 }
}

/// What a program computes.
#[derive(Clone, Copy)]
pub(crate) enum CallKind {
    Words = 0,
    Packets = 1,
    DecodeWords = 2,
    DecodePackets = 3,
    Add = 4,
}

/// Runs the program for `content`; `make` makes it if there is none yet. Returns false if no
/// program can be made.
///
/// # Safety
/// All regions are valid for `bytes` bytes, the targets for writes.
pub(crate) unsafe fn run(
    kind: CallKind,
    shape: [usize; 5],
    content: &[i32],
    make: impl FnOnce() -> Option<Prepared>,
    (bytes, sources, targets): (usize, &[*mut u8], &[*mut u8]),
) -> bool {
    if targets.is_empty() || bytes == 0 {
        return true;
    }
    let [a, b, c, d, e] = shape;
    let key = Key { shape: [kind as usize, a, b, c, d, e], content };
    let read = sources.iter().map(|source| source.cast_const());
    // SAFETY: as the caller promises.
    let regions = unsafe { Regions::new(bytes, read, targets.iter().copied()) };
    let make = || make().ok_or_else(none);
    PROGRAMS.run(
        &RECENT,
        key,
        || 0,
        make,
        |program| match program {
            None => false,
            Some(program) => match regions.run(program) {
                Ok(()) => true,
                Err(error) => fail(&error.to_string()),
            },
        },
    )
}

/// Returns the error of a program that cannot be made. Its text is never shown.
pub(crate) fn none() -> paritas::Error {
    match "none".parse::<paritas::Code>() {
        Err(error) => error,
        Ok(_) => fail("there is a code named none"),
    }
}

/// Ends the process with a message, as Jerasure does when it is called with wrong arguments.
pub(crate) fn fail(message: &str) -> ! {
    eprintln!("libJerasure of Paritas: {message}");
    std::process::abort()
}

/// Returns `value` as a size. Ends the process if it is below 0.
pub(crate) fn size(value: i32, what: &str) -> usize {
    usize::try_from(value).unwrap_or_else(|_| fail(&format!("{what} must not be {value}")))
}

/// Returns the `count` values at `pointer`; an empty slice if it is null.
///
/// # Safety
/// `pointer` is valid for reads of `count` values, or null.
pub(crate) unsafe fn values<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if pointer.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts(pointer, count) }
}

/// As [`values`], for writing.
///
/// # Safety
/// `pointer` is valid for writes of `count` values, or null.
pub(crate) unsafe fn values_mut<'a, T>(pointer: *mut T, count: usize) -> &'a mut [T] {
    if pointer.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: as the caller promises.
    unsafe { slice::from_raw_parts_mut(pointer, count) }
}

/// Copies `values` to memory from `malloc`, which the caller frees. Returns null if there is no
/// memory.
pub(crate) fn given<T: Copy>(values: &[T]) -> *mut T {
    let bytes = size_of_val(values);
    // SAFETY: `malloc` may be called with any size.
    let memory = unsafe { libc::malloc(bytes.max(1)) }.cast::<T>();
    if !memory.is_null() {
        // SAFETY: the memory is new and has room for the values; `malloc` aligns it for any of
        // these types.
        unsafe { memory.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    }
    memory
}
