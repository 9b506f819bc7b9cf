//! Handles: pointers that C keeps between calls.
//!
//! A handle is a pointer to a value. A mark before the value tells its kind, so a handle of another
//! kind is refused. A handle that has been freed is also refused, as long as its memory has not
//! been used again. The types that C sees are empty; they stand for a [`Handle::Value`].

use std::ptr;

use crate::memory;
use crate::status::{Failure, Result, value};

/// A kind of handle.
pub(crate) trait Handle {
    /// The value that a handle of this kind points to.
    type Value: Send + Sync;
    /// Name of the kind in messages.
    const NAME: &'static str;
}

#[repr(C)]
struct Marked<T> {
    mark: u64,
    value: T,
}

/// Returns the mark of a kind: FNV-1a of its name.
fn mark<H: Handle>() -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    H::NAME.as_bytes().iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// Makes a handle for the value that `make` returns, and stores it in `to`; on failure stores null.
///
/// # Safety
/// `to` is null or valid for a write.
pub(crate) unsafe fn give<H: Handle>(
    to: *mut *mut H,
    make: impl FnOnce() -> Result<H::Value>,
) -> Result<()> {
    let what = "the pointer for the new handle";
    // SAFETY: as the caller promises.
    unsafe { memory::store(to, ptr::null_mut(), what) }?;
    let marked = Box::new(Marked { mark: mark::<H>(), value: make()? });
    // SAFETY: as the caller promises.
    unsafe { memory::store(to, Box::into_raw(marked).cast(), what) }
}

/// Returns the value of a handle.
///
/// # Safety
/// `handle` is null, or comes from [`give`] and is not freed during `'a`.
pub(crate) unsafe fn open<'a, H: Handle>(handle: *const H) -> Result<&'a H::Value> {
    let name = H::NAME;
    let marked = handle.cast::<Marked<H::Value>>();
    if marked.is_null() {
        return Err(Failure::arguments(format!("the {name} must not be null")));
    }
    // SAFETY: every handle of any kind begins with its mark.
    let found = || unsafe { ptr::addr_of!((*marked).mark).read_volatile() };
    if !marked.is_aligned() || found() != mark::<H>() {
        return Err(Failure::arguments(format!("{handle:p} is no {name}, or has been freed")));
    }
    // SAFETY: the mark says that this is a handle of this kind, and the caller that it lives.
    Ok(unsafe { &(*marked).value })
}

/// Answers a question about the value of a handle; returns 0 if there is no such handle.
///
/// # Safety
/// As [`open`].
pub(crate) unsafe fn ask<H: Handle, T: Default>(
    handle: *const H,
    question: impl FnOnce(&H::Value) -> T,
) -> T {
    // SAFETY: as the caller promises.
    value(|| unsafe { open(handle) }.map(question))
}

/// Frees a handle. Null, and handles of another kind, are left alone.
///
/// # Safety
/// `handle` is null, or comes from [`give`] and is not in use.
pub(crate) unsafe fn free<H: Handle>(handle: *mut H) -> Result<()> {
    match handle.is_null() {
        true => Ok(()),
        // SAFETY: as the caller promises.
        false => unsafe { take(handle) }.map(drop),
    }
}

/// Frees a handle, and returns its value. Handles of another kind are left alone.
///
/// # Safety
/// As [`free`].
pub(crate) unsafe fn take<H: Handle>(handle: *mut H) -> Result<H::Value> {
    // SAFETY: as the caller promises.
    unsafe { open::<H>(handle) }?;
    let marked = handle.cast::<Marked<H::Value>>();
    // SAFETY: `open` found a handle of this kind, which is not in use elsewhere. The write is
    // volatile, so that the compiler keeps it although the memory is freed.
    unsafe {
        ptr::addr_of_mut!((*marked).mark).write_volatile(0);
        Ok(Box::from_raw(marked).value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number;
    struct Text;
    impl Handle for Number {
        type Value = u32;
        const NAME: &'static str = "number";
    }
    impl Handle for Text {
        type Value = String;
        const NAME: &'static str = "text";
    }

    #[test]
    fn a_handle_of_another_kind_is_refused() {
        let mut handle: *mut Number = ptr::null_mut();
        // SAFETY: the handle comes from `give`, and is freed once by its own kind.
        unsafe {
            give(&mut handle, || Ok(7)).unwrap();
            assert_eq!(*open(handle).unwrap(), 7);
            assert!(open(handle.cast::<Text>()).is_err());
            assert!(free(handle.cast::<Text>()).is_err());
            assert_eq!(*open(handle).unwrap(), 7);
            free(handle).unwrap();
            assert!(open::<Number>(ptr::null()).is_err());
            free::<Number>(ptr::null_mut()).unwrap();
        }
    }

    #[test]
    fn a_failure_leaves_null() {
        let mut handle = ptr::dangling_mut::<Number>();
        // SAFETY: the pointer is valid for a write.
        let made = unsafe { give(&mut handle, || Err(Failure::arguments("no"))) };
        assert!(made.is_err() && handle.is_null());
    }
}
