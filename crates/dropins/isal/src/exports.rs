//! The functions under ISA-L's names.

use std::ffi::{c_char, c_int, c_void};
use std::slice;

use crate::field;
use crate::tables::{self, TABLE};

/// Returns the `count` pointers at `pointers`; an empty slice if `count` is not positive or
/// `pointers` is null.
///
/// # Safety
/// `pointers` is valid for reads of `count` pointers.
unsafe fn list<'a>(pointers: *const *mut u8, count: c_int) -> &'a [*mut u8] {
    match usize::try_from(count) {
        // SAFETY: as the caller promises.
        Ok(count) if count > 0 && !pointers.is_null() => unsafe {
            slice::from_raw_parts(pointers, count)
        },
        _ => &[],
    }
}

/// Returns the name and version of this library, so that a program can check that it was loaded
/// instead of ISA-L.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_isal_version() -> *const c_char {
    concat!("Paritas ", env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the number of programs compiled for tables so far. A table gets a program once calls
/// with it have read 1 MiB of source bytes, or at once if regions overlap.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_isal_programs() -> usize {
    tables::made()
}

/// Multiplies two elements of GF(2^8).
#[unsafe(no_mangle)]
pub extern "C" fn gf_mul(a: u8, b: u8) -> u8 {
    field::multiply(a, b)
}

/// Returns the inverse of `a`; 0 for 0.
#[unsafe(no_mangle)]
pub extern "C" fn gf_inv(a: u8) -> u8 {
    field::inverse(a)
}

/// Writes the generator matrix of a Vandermonde code: `m` rows of `k` columns, the first `k` rows
/// an identity.
///
/// # Safety
/// `a` is valid for `max(m, k) · k` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gf_gen_rs_matrix(a: *mut u8, m: c_int, k: c_int) {
    let (Ok(n), Ok(k)) = (usize::try_from(m), usize::try_from(k)) else { return };
    // Row k holds the powers of 1, row k + 1 those of 2, row k + 2 those of 4, and so on.
    let (mut base, mut power) = (1, 1);
    let entry = |_row, column| {
        let value = power;
        power = field::multiply(power, base);
        if column + 1 == k {
            (base, power) = (field::multiply(base, 2), 1);
        }
        value
    };
    // SAFETY: as the caller promises.
    unsafe { generator(a, n, k, entry) };
}

/// Writes the generator matrix of a Cauchy code: `m` rows of `k` columns, the first `k` rows an
/// identity.
///
/// # Safety
/// `a` is valid for `max(m, k) · k` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gf_gen_cauchy1_matrix(a: *mut u8, m: c_int, k: c_int) {
    let (Ok(n), Ok(k)) = (usize::try_from(m), usize::try_from(k)) else { return };
    let entry = |row: usize, column: usize| field::inverse((row ^ column) as u8);
    // SAFETY: as the caller promises.
    unsafe { generator(a, n, k, entry) };
}

/// # Safety
/// `a` is valid for `max(n, k) · k` bytes.
unsafe fn generator(a: *mut u8, n: usize, k: usize, entry: impl FnMut(usize, usize) -> u8) {
    if n * k > 0 {
        // ISA-L writes the whole identity, even if `n` is less than `k`.
        let n = n.max(k);
        // SAFETY: as the caller promises.
        field::generator(unsafe { slice::from_raw_parts_mut(a, n * k) }, n, k, entry);
    }
}

/// Inverts the matrix `input` of `n` rows into `output`, and overwrites `input`. Returns 0, or -1
/// if `input` has no inverse.
///
/// # Safety
/// Both matrices are valid for `n · n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gf_invert_matrix(input: *mut u8, output: *mut u8, n: c_int) -> c_int {
    let Some(n) = usize::try_from(n).ok().filter(|&n| n > 0) else { return 0 };
    // SAFETY: as the caller promises.
    let (from, to) = unsafe {
        (slice::from_raw_parts_mut(input, n * n), slice::from_raw_parts_mut(output, n * n))
    };
    if field::invert(from, to, n) { 0 } else { -1 }
}

/// Writes the table of one coefficient.
///
/// # Safety
/// `gftbl` is valid for 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gf_vect_mul_init(c: u8, gftbl: *mut u8) {
    let table = field::table(c);
    // SAFETY: as the caller promises.
    unsafe { gftbl.copy_from_nonoverlapping(table.as_ptr(), TABLE) };
}

macro_rules! init_tables {
    ($($name:ident)*) => {
        $(/// Writes the tables of a matrix of `rows` rows and `k` columns; see `ec_init_tables` of ISA-L.
        ///
        /// # Safety
        /// `a` is valid for `rows · k` bytes, and `gftbls` for `32 · rows · k`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(k: c_int, rows: c_int, a: *mut u8, gftbls: *mut u8) {
            let (Ok(k), Ok(rows)) = (usize::try_from(k), usize::try_from(rows)) else { return };
            for at in 0..k * rows {
                // SAFETY: as the caller promises.
                unsafe { gf_vect_mul_init(*a.add(at), gftbls.add(TABLE * at)) };
            }
        })*
    };
}

init_tables! { ec_init_tables ec_init_tables_base }

/// Multiplies the region `src` into `dest` by the coefficient whose table is `gftbl`. Returns 0, or
/// 1 if `len` is not a multiple of 32.
///
/// # Safety
/// `gftbl` is valid for 32 bytes, and the regions for `len`.
unsafe fn multiply(len: c_int, gftbl: *mut u8, src: *mut c_void, dest: *mut c_void) -> c_int {
    if len % 32 != 0 {
        return 1;
    }
    // SAFETY: as the caller promises.
    unsafe { tables::encode(len, gftbl, &[src.cast()], &[dest.cast()]) };
    0
}

macro_rules! multiply {
    ($($name:ident)*) => {
        $(/// Multiplies a region by a coefficient; see `gf_vect_mul` of ISA-L.
        ///
        /// # Safety
        /// `gftbl` is valid for 32 bytes, and the regions for `len`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            len: c_int,
            gftbl: *mut u8,
            src: *mut c_void,
            dest: *mut c_void,
        ) -> c_int {
            // SAFETY: as the caller promises.
            unsafe { multiply(len, gftbl, src, dest) }
        })*
    };
}

multiply! { gf_vect_mul gf_vect_mul_sse gf_vect_mul_avx }

/// Multiplies the region `src` into `dest` by the coefficient whose table is `a`; `len` can be any
/// number. Returns 0, or -1 if `len` is not a multiple of 32, which ISA-L refuses from version 2.31
/// on. In version 2.30 the function returned nothing and took any length.
///
/// # Safety
/// `a` is valid for 32 bytes, and the regions for `len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gf_vect_mul_base(
    len: c_int,
    a: *mut u8,
    src: *mut u8,
    dest: *mut u8,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { tables::encode(len, a, &[src], &[dest]) };
    if len % 32 == 0 { 0 } else { -1 }
}

macro_rules! encode {
    ($($name:ident)*) => {
        $(/// Computes `rows` coding regions from `k` data regions; see `ec_encode_data` of ISA-L.
        ///
        /// # Safety
        /// `gftbls` is valid for `32 · k · rows` bytes, and all regions for `len`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            len: c_int,
            k: c_int,
            rows: c_int,
            gftbls: *mut u8,
            data: *mut *mut u8,
            coding: *mut *mut u8,
        ) {
            // SAFETY: as the caller promises.
            unsafe { tables::encode(len, gftbls, list(data, k), list(coding, rows)) };
        })*
    };
}

encode! {
    ec_encode_data ec_encode_data_base ec_encode_data_sse ec_encode_data_avx ec_encode_data_avx2
    ec_encode_data_avx512
}

macro_rules! encode_update {
    ($($name:ident)*) => {
        $(/// Adds the contribution of data region `vec_i` to `rows` coding regions; see
        /// `ec_encode_data_update` of ISA-L.
        ///
        /// # Safety
        /// `g_tbls` is valid for `32 · k · rows` bytes, and all regions for `len`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            len: c_int,
            k: c_int,
            rows: c_int,
            vec_i: c_int,
            g_tbls: *mut u8,
            data: *mut u8,
            coding: *mut *mut u8,
        ) {
            let (Ok(k), Ok(column)) = (usize::try_from(k), usize::try_from(vec_i)) else { return };
            // SAFETY: as the caller promises.
            unsafe { tables::update(len, k, column, g_tbls, data, list(coding, rows)) };
        })*
    };
}

encode_update! {
    ec_encode_data_update ec_encode_data_update_base ec_encode_data_update_sse
    ec_encode_data_update_avx ec_encode_data_update_avx2 ec_encode_data_update_avx512
}

macro_rules! dot_product {
    ($($name:ident)*) => {
        $(/// Computes one region from `vlen` source regions; see `gf_vect_dot_prod` of ISA-L.
        ///
        /// # Safety
        /// `gftbls` is valid for `32 · vlen` bytes, and all regions for `len`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            len: c_int,
            vlen: c_int,
            gftbls: *mut u8,
            src: *mut *mut u8,
            dest: *mut u8,
        ) {
            // SAFETY: as the caller promises.
            unsafe { tables::encode(len, gftbls, list(src, vlen), &[dest]) };
        })*
    };
}

dot_product! {
    gf_vect_dot_prod gf_vect_dot_prod_base gf_vect_dot_prod_sse gf_vect_dot_prod_avx
    gf_vect_dot_prod_avx2 gf_vect_dot_prod_avx512
}

macro_rules! dot_products {
    ($($rows:literal: $($name:ident)*;)*) => {
        $($(/// Computes several regions from `vlen` sources; see ISA-L's function of the same name.
        ///
        /// # Safety
        /// `gftbls` is valid for 32 bytes for each pair of source and target, and all regions for
        /// `len`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            len: c_int,
            vlen: c_int,
            gftbls: *mut u8,
            src: *mut *mut u8,
            dest: *mut *mut u8,
        ) {
            // SAFETY: as the caller promises.
            unsafe { tables::encode(len, gftbls, list(src, vlen), list(dest, $rows)) };
        })*)*
    };
}

dot_products! {
    2: gf_2vect_dot_prod_sse gf_2vect_dot_prod_avx gf_2vect_dot_prod_avx2 gf_2vect_dot_prod_avx512;
    3: gf_3vect_dot_prod_sse gf_3vect_dot_prod_avx gf_3vect_dot_prod_avx2 gf_3vect_dot_prod_avx512;
    4: gf_4vect_dot_prod_sse gf_4vect_dot_prod_avx gf_4vect_dot_prod_avx2 gf_4vect_dot_prod_avx512;
    5: gf_5vect_dot_prod_sse gf_5vect_dot_prod_avx gf_5vect_dot_prod_avx2 gf_5vect_dot_prod_avx512;
    6: gf_6vect_dot_prod_sse gf_6vect_dot_prod_avx gf_6vect_dot_prod_avx2 gf_6vect_dot_prod_avx512;
}

macro_rules! multiply_add {
    ($($name:ident)*) => {
        $(/// Adds a multiple of one region to another; see `gf_vect_mad` of ISA-L.
        ///
        /// # Safety
        /// `gftbls` is valid for `32 · vec` bytes, and both regions for `len`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            len: c_int,
            vec: c_int,
            vec_i: c_int,
            gftbls: *mut u8,
            src: *mut u8,
            dest: *mut u8,
        ) {
            let (Ok(k), Ok(column)) = (usize::try_from(vec), usize::try_from(vec_i)) else {
                return;
            };
            // SAFETY: as the caller promises.
            unsafe { tables::update(len, k, column, gftbls, src, &[dest]) };
        })*
    };
}

multiply_add! {
    gf_vect_mad gf_vect_mad_base gf_vect_mad_sse gf_vect_mad_avx gf_vect_mad_avx2
    gf_vect_mad_avx512
}

macro_rules! multiply_adds {
    ($($rows:literal: $($name:ident)*;)*) => {
        $($(/// Adds multiples of one region to several; see ISA-L's function of the same name.
        ///
        /// # Safety
        /// `gftbls` is valid for `32 · vec` bytes for each target, and all regions for `len`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            len: c_int,
            vec: c_int,
            vec_i: c_int,
            gftbls: *mut u8,
            src: *mut u8,
            dest: *mut *mut u8,
        ) {
            let (Ok(k), Ok(column)) = (usize::try_from(vec), usize::try_from(vec_i)) else {
                return;
            };
            // SAFETY: as the caller promises.
            unsafe { tables::update(len, k, column, gftbls, src, list(dest, $rows)) };
        })*)*
    };
}

multiply_adds! {
    2: gf_2vect_mad_sse gf_2vect_mad_avx gf_2vect_mad_avx2 gf_2vect_mad_avx512;
    3: gf_3vect_mad_sse gf_3vect_mad_avx gf_3vect_mad_avx2 gf_3vect_mad_avx512;
    4: gf_4vect_mad_sse gf_4vect_mad_avx gf_4vect_mad_avx2 gf_4vect_mad_avx512;
    5: gf_5vect_mad_sse gf_5vect_mad_avx gf_5vect_mad_avx2 gf_5vect_mad_avx512;
    6: gf_6vect_mad_sse gf_6vect_mad_avx gf_6vect_mad_avx2 gf_6vect_mad_avx512;
}
