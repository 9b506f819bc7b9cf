//! The rest of `jerasure.h`: inverses, products, and printing.

use std::ffi::{c_char, c_double, c_int};
use std::ptr::null_mut;

use crate::calls::{self, given, size, values, values_mut};
use crate::encode::erased;
use crate::fields::field;
use crate::linear::{Matrix, bit_matrix, bit_values, bits, inverse_bits, survivors};
use crate::schedules;

/// Returns the name and version of this library, so that a program can check that it was loaded
/// instead of Jerasure.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_jerasure_version() -> *const c_char {
    concat!("Paritas ", env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the number of programs compiled so far. It is above 0 once this library has encoded
/// something.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_jerasure_programs() -> usize {
    calls::made() + schedules::made()
}

/// Returns the bit matrix of `matrix`; null if `matrix` is null or empty, or if there are no words
/// of w bits.
///
/// # Safety
/// `matrix` is null, or valid for `k · m` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_matrix_to_bitmatrix(
    k: c_int,
    m: c_int,
    w: c_int,
    matrix: *mut c_int,
) -> *mut c_int {
    let (k, m) = (size(k, "k"), size(m, "m"));
    // SAFETY: as the caller promises.
    let matrix = Matrix::new(w, unsafe { values(matrix, k * m) }, k);
    match matrix.filter(|matrix| !matrix.rows.is_empty()) {
        Some(matrix) => given(&bit_values(&bit_matrix(&matrix))),
        None => null_mut(),
    }
}

/// Returns an array with 1 for each device that `erasures` names, and 0 for the others; null if
/// fewer than k devices survive.
///
/// # Safety
/// `erasures` ends with -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_erasures_to_erased(
    k: c_int,
    m: c_int,
    erasures: *mut c_int,
) -> *mut c_int {
    let (k, m) = (size(k, "k"), size(m, "m"));
    // SAFETY: as the caller promises.
    let erased = unsafe { erased(erasures, k + m) };
    match survivors(&erased, k) {
        Some(_) => given(&erased.into_iter().map(c_int::from).collect::<Vec<_>>()),
        None => null_mut(),
    }
}

/// Writes `made` to `target` and returns 0. Returns -1 if it is `None`.
///
/// # Safety
/// `target` has room for the values of `made`.
unsafe fn write(made: Option<Vec<c_int>>, target: *mut c_int) -> c_int {
    let Some(made) = made else { return -1 };
    // SAFETY: as the caller promises.
    unsafe { values_mut(target, made.len()) }.copy_from_slice(&made);
    0
}

/// # Safety
/// `mat` is valid for `rows · rows` values.
unsafe fn inverse(mat: *const c_int, rows: c_int, w: c_int) -> Option<Vec<c_int>> {
    let rows = size(rows, "rows");
    // SAFETY: as the caller promises.
    Some(Matrix::new(w, unsafe { values(mat, rows * rows) }, rows)?.inverse()?.values())
}

/// # Safety
/// `mat` is valid for `rows · rows` values.
unsafe fn bit_inverse(mat: *const c_int, rows: c_int) -> Option<Vec<c_int>> {
    let rows = size(rows, "rows");
    // SAFETY: as the caller promises.
    inverse_bits(&bits(unsafe { values(mat, rows * rows) }, rows)).map(|bits| bit_values(&bits))
}

/// Inverts a matrix over GF(2^w). Returns 0, or -1 if there is no inverse.
///
/// # Safety
/// Both matrices are valid for `rows · rows` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_invert_matrix(
    mat: *mut c_int,
    inv: *mut c_int,
    rows: c_int,
    w: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { write(inverse(mat, rows, w), inv) }
}

/// Inverts a matrix of bits. Returns 0, or -1 if there is no inverse.
///
/// # Safety
/// Both matrices are valid for `rows · rows` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_invert_bitmatrix(
    mat: *mut c_int,
    inv: *mut c_int,
    rows: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { write(bit_inverse(mat, rows), inv) }
}

/// Returns 1 if a matrix over GF(2^w) has an inverse, else 0.
///
/// # Safety
/// `mat` is valid for `rows · rows` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_invertible_matrix(
    mat: *mut c_int,
    rows: c_int,
    w: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    c_int::from(unsafe { inverse(mat, rows, w) }.is_some())
}

/// Returns 1 if a matrix of bits has an inverse, else 0.
///
/// # Safety
/// `mat` is valid for `rows · rows` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_invertible_bitmatrix(mat: *mut c_int, rows: c_int) -> c_int {
    // SAFETY: as the caller promises.
    c_int::from(unsafe { bit_inverse(mat, rows) }.is_some())
}

/// Writes the numbers of the first k surviving devices to `dm_ids` and returns them. `None` if
/// fewer survive.
///
/// # Safety
/// `erased` is valid for `n` values, and `dm_ids` for `k`.
unsafe fn first(
    erased: *const c_int,
    n: usize,
    k: usize,
    dm_ids: *mut c_int,
) -> Option<Vec<usize>> {
    // SAFETY: as the caller promises.
    let erased: Vec<bool> = unsafe { values(erased, n) }.iter().map(|&it| it != 0).collect();
    let sources = survivors(&erased, k)?.sources;
    // SAFETY: as the caller promises.
    for (id, &source) in unsafe { values_mut(dm_ids, k) }.iter_mut().zip(&sources) {
        *id = source as c_int;
    }
    Some(sources)
}

/// Makes the matrix that computes the data from the first k surviving devices, and writes the
/// numbers of these devices to `dm_ids`. Returns 0, or -1 if there is no such matrix.
///
/// # Safety
/// `matrix` is valid for `k · m` values, `erased` for `k + m`, `decoding_matrix` for `k · k`, and
/// `dm_ids` for `k`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_make_decoding_matrix(
    k: c_int,
    m: c_int,
    w: c_int,
    matrix: *mut c_int,
    erased: *mut c_int,
    decoding_matrix: *mut c_int,
    dm_ids: *mut c_int,
) -> c_int {
    let (k, m) = (size(k, "k"), size(m, "m"));
    let all: Vec<usize> = (0..k).collect();
    // SAFETY: as the caller promises.
    let made = unsafe { first(erased, k + m, k, dm_ids) }.and_then(|sources| {
        // SAFETY: as the caller promises.
        let coding = Matrix::new(w, unsafe { values(matrix, k * m) }, k)?;
        Some(crate::linear::recovery(&coding, k, &sources, &all)?.values())
    });
    // SAFETY: as the caller promises.
    unsafe { write(made, decoding_matrix) }
}

/// As `jerasure_make_decoding_matrix`, for a bit matrix.
///
/// # Safety
/// As `jerasure_make_decoding_matrix`, with w rows and w columns for each device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_make_decoding_bitmatrix(
    k: c_int,
    m: c_int,
    w: c_int,
    matrix: *mut c_int,
    erased: *mut c_int,
    decoding_matrix: *mut c_int,
    dm_ids: *mut c_int,
) -> c_int {
    let (k, m, w) = (size(k, "k"), size(m, "m"), size(w, "w"));
    let all: Vec<usize> = (0..k).collect();
    // SAFETY: as the caller promises.
    let made = unsafe { first(erased, k + m, k, dm_ids) }.and_then(|sources| {
        // SAFETY: as the caller promises.
        let coding = bits(unsafe { values(matrix, k * m * w * w) }, k * w);
        Some(bit_values(&crate::linear::bit_recovery(&coding, w, &sources, &all)?))
    });
    // SAFETY: as the caller promises.
    unsafe { write(made, decoding_matrix) }
}

/// Returns the product of two matrices over GF(2^w); null if their sizes do not fit.
///
/// # Safety
/// The matrices are valid for `r1 · c1` and `r2 · c2` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_matrix_multiply(
    m1: *mut c_int,
    m2: *mut c_int,
    r1: c_int,
    c1: c_int,
    r2: c_int,
    c2: c_int,
    w: c_int,
) -> *mut c_int {
    if c1 != r2 {
        return null_mut();
    }
    let [r1, c1, c2] = [r1, c1, c2].map(|value| size(value, "rows and columns"));
    // SAFETY: as the caller promises.
    let (a, b) = unsafe { (values(m1, r1 * c1), values(m2, c1 * c2)) };
    match (Matrix::new(w, a, c1), Matrix::new(w, b, c2)) {
        (Some(a), Some(b)) => given(&a.times(&b).values()),
        _ => null_mut(),
    }
}

/// Prints text through C's `stdout`, so that it stays in order with the program's own output.
fn print(mut text: String) {
    text.push('\0');
    // SAFETY: both are texts that end with a null byte, and `%s` takes one.
    unsafe { libc::printf(c"%s".as_ptr(), text.as_ptr()) };
}

/// Prints a matrix over GF(2^w) in columns of equal width.
///
/// # Safety
/// `matrix` is valid for `rows · cols` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_print_matrix(
    matrix: *mut c_int,
    rows: c_int,
    cols: c_int,
    w: c_int,
) {
    let (rows, columns) = (size(rows, "rows"), size(cols, "cols"));
    let width = field(w).map_or(10, |field| (field.size() - 1).to_string().len());
    // SAFETY: as the caller promises.
    for row in unsafe { values(matrix, rows * columns) }.chunks(columns.max(1)) {
        let row: Vec<String> = row.iter().map(|&v| format!("{:width$}", v as u32)).collect();
        print(row.join(" ") + "\n");
    }
}

/// Prints a matrix of bits in blocks of w rows and columns.
///
/// # Safety
/// `matrix` is valid for `rows · cols` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_print_bitmatrix(
    matrix: *mut c_int,
    rows: c_int,
    cols: c_int,
    w: c_int,
) {
    let (rows, columns, w) = (size(rows, "rows"), size(cols, "cols"), size(w, "w").max(1));
    // SAFETY: as the caller promises.
    let all = unsafe { values(matrix, rows * columns) };
    for (number, row) in all.chunks(columns.max(1)).enumerate() {
        let block = |block: &[c_int]| block.iter().map(c_int::to_string).collect::<String>();
        let blocks: Vec<String> = row.chunks(w).map(block).collect();
        let gap = if number > 0 && number % w == 0 { "\n" } else { "" };
        print(format!("{gap}{}\n", blocks.join(" ")));
    }
}

/// Writes three zeros. Jerasure writes counts of bytes here, which this library does not keep.
///
/// # Safety
/// `fill_in` is valid for three numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_get_stats(fill_in: *mut c_double) {
    // SAFETY: as the caller promises.
    unsafe { values_mut(fill_in, 3) }.fill(0.0);
}

/// Returns 0. Build scripts call it to check that the library can be linked.
#[unsafe(no_mangle)]
pub extern "C" fn jerasure_autoconf_test() -> c_int {
    0
}
