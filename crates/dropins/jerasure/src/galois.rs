//! `galois.h`: arithmetic on words and regions.

use std::ffi::{c_char, c_int, c_void};

use paritas_dropins::product;

use crate::calls::{CallKind, fail, run, values};
use crate::fields::field;
use crate::regions::{add, multiply_region};

/// Returns the product of two words of w bits.
#[unsafe(no_mangle)]
pub extern "C" fn galois_single_multiply(a: c_int, b: c_int, w: c_int) -> c_int {
    match field(w) {
        Some(field) => field.multiply(a as u32, b as u32) as c_int,
        None => fail(&format!("there are no words of {w} bits")),
    }
}

/// Returns `a` divided by `b`, two words of w bits: 0 if `a` is 0, else -1 if `b` is 0.
#[unsafe(no_mangle)]
pub extern "C" fn galois_single_divide(a: c_int, b: c_int, w: c_int) -> c_int {
    let Some(field) = field(w) else { fail(&format!("there are no words of {w} bits")) };
    match field.inverse(b as u32) {
        _ if a == 0 => 0,
        Some(inverse) => field.multiply(a as u32, inverse) as c_int,
        None => -1,
    }
}

/// Returns the inverse of a word of w bits; -1 for 0.
#[unsafe(no_mangle)]
pub extern "C" fn galois_inverse(x: c_int, w: c_int) -> c_int {
    galois_single_divide(1, x, w)
}

/// Adds (XORs) `src` to `dest`.
///
/// # Safety
/// Both regions are valid for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galois_region_xor(src: *mut c_char, dest: *mut c_char, nbytes: c_int) {
    let bytes = usize::try_from(nbytes).unwrap_or(0);
    // SAFETY: as the caller promises.
    unsafe { add(src.cast(), dest.cast(), bytes) };
}

/// Multiplies a region of words of w bits, as [`multiply_region`].
///
/// # Safety
/// As [`multiply_region`].
unsafe fn multiply(
    w: c_int,
    region: *mut c_char,
    factor: c_int,
    nbytes: c_int,
    other: *mut c_char,
    adds: bool,
) {
    let Some(field) = field(w) else { fail(&format!("there are no words of {w} bits")) };
    // SAFETY: as the caller promises.
    unsafe { multiply_region(field, region.cast(), factor as u32, nbytes, other.cast(), adds) };
}

macro_rules! region_multiply {
    ($($name:ident $w:literal;)*) => {
        $(/// Multiplies a region of words by `multby`. The product replaces the region if `r2` is
        /// null; else it replaces `r2`, or is added to `r2` if `add` is not 0.
        ///
        /// # Safety
        /// `region` is valid for `nbytes` bytes; `r2` is null, or valid for `nbytes` bytes, too.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            region: *mut c_char,
            multby: c_int,
            nbytes: c_int,
            r2: *mut c_char,
            add: c_int,
        ) {
            // SAFETY: as the caller promises.
            unsafe { multiply($w, region, multby, nbytes, r2, add != 0) };
        })*
    };
}

region_multiply! {
    galois_w08_region_multiply 8;
    galois_w16_region_multiply 16;
    galois_w32_region_multiply 32;
}

macro_rules! region_xor {
    ($($name:ident)*) => {
        $(/// Adds (XORs) `src` to `dest`.
        ///
        /// # Safety
        /// Both regions are valid for `nbytes` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(src: *mut c_void, dest: *mut c_void, nbytes: c_int) {
            // SAFETY: as the caller promises.
            unsafe { galois_region_xor(src.cast(), dest.cast(), nbytes) };
        })*
    };
}

region_xor! { galois_w8_region_xor galois_w16_region_xor galois_w32_region_xor }

macro_rules! double_region {
    ($($name:ident $w:literal;)*) => {
        $(/// Multiplies the words of a region by 2, in place.
        ///
        /// # Safety
        /// `region` is valid for `nbytes` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(region: *mut c_char, nbytes: c_int) {
            // SAFETY: as the caller promises.
            unsafe { multiply($w, region, 2, nbytes, std::ptr::null_mut(), false) };
        })*
    };
}

double_region! {
    reed_sol_galois_w08_region_multby_2 8;
    reed_sol_galois_w16_region_multby_2 16;
    reed_sol_galois_w32_region_multby_2 32;
}

/// Computes the XOR of `k` regions.
///
/// # Safety
/// `data_ptrs` is valid for reads of `k` pointers, and all regions for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_do_parity(
    k: c_int,
    data_ptrs: *mut *mut c_char,
    parity_ptr: *mut c_char,
    size: c_int,
) {
    let k = usize::try_from(k).unwrap_or(0);
    // SAFETY: as the caller promises.
    let data: &[*mut u8] = unsafe { values(data_ptrs.cast(), k) };
    let bytes = usize::try_from(size).unwrap_or(0);
    let make = || product(field(8)?, vec![vec![1; k]]).ok();
    let shape = [k, 1, 8, 0, 0];
    // SAFETY: as the caller promises.
    if !unsafe { run(CallKind::Add, shape, &[], make, (bytes, data, &[parity_ptr.cast()])) } {
        fail(&format!("{k} regions have no parity"));
    }
}
