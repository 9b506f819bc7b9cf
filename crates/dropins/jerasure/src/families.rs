//! `reed_sol.h`, `cauchy.h`, `liberation.h`: the matrices of the techniques. A technique that is
//! also a code family of Paritas takes its matrix from there.

use std::ffi::c_int;
use std::ptr::null_mut;

use paritas::Code;
use paritas::code::BitMatrix;

use crate::calls::{given, values, values_mut};
use crate::fields::field;
use crate::linear::{Matrix, bit_values};

/// Returns the parity rows of the code named `spec`, over its data cells.
fn parity_bits(spec: &str) -> Option<BitMatrix> {
    let code: Code = spec.parse().ok()?;
    let parity = code.nodes().filter(|&node| !code.holds_data(node));
    let cells = parity.flat_map(|node| code.node_cells(node));
    let rows: Vec<Vec<usize>> =
        cells.map(|&cell| code.row(cell).iter().map(|&data| data as usize).collect()).collect();
    Some(BitMatrix::from_supports(code.data_cells().len(), &rows))
}

fn bit_matrix_of(spec: &str) -> *mut c_int {
    parity_bits(spec).map_or(null_mut(), |bits| given(&bit_values(&bits)))
}

/// Returns the coefficients of a code in the packet layout. The first column of a coefficient's bit
/// matrix is the coefficient itself.
fn coefficients_of(spec: &str, w: usize) -> *mut c_int {
    let Some(bits) = parity_bits(spec) else { return null_mut() };
    let element = |row: usize, column: usize| {
        (0..w)
            .fold(0, |element, bit| element | u32::from(bits.get(row * w + bit, column * w)) << bit)
    };
    let (m, k) = (bits.rows() / w, bits.columns() / w);
    let all = (0..m * k).map(|at| element(at / k, at % k) as c_int);
    given(&all.collect::<Vec<_>>())
}

fn sizes<const N: usize>(values: [c_int; N]) -> Option<[usize; N]> {
    let sizes = values.map(|value| usize::try_from(value).unwrap_or(0));
    sizes.iter().all(|&size| size > 0).then_some(sizes)
}

/// Returns the extended Vandermonde matrix: row i holds the powers of i, and the last row is 0, …,
/// 0, 1.
fn vandermonde(rows: usize, columns: usize, w: c_int) -> Option<Matrix> {
    let field = field(w)?;
    if rows < columns || rows as u64 > field.size() || columns as u64 > field.size() {
        return None;
    }
    let row = |row: usize| -> Vec<u32> {
        let power = |column: usize| field.power(row as u32, column as u64);
        let last = |column: usize| u32::from(column + 1 == columns);
        let entry = |column| if row + 1 == rows { last(column) } else { power(column) };
        (0..columns).map(entry).collect()
    };
    Some(Matrix { field, rows: (0..rows).map(row).collect() })
}

/// Returns the distribution matrix: an identity on top. In the rows below it, the first row and the
/// first column are all ones.
fn distribution(rows: usize, columns: usize, w: c_int) -> Option<Matrix> {
    let mut matrix = vandermonde(rows, columns, w)?;
    let field = matrix.field;
    let top = Matrix { field, rows: matrix.rows[..columns].to_vec() };
    matrix = matrix.times(&top.inverse()?);
    let Some(first) = matrix.rows.get(columns).cloned() else { return Some(matrix) };
    let scales: Option<Vec<u32>> = first.iter().map(|&value| field.inverse(value)).collect();
    let scales = scales?;
    for row in &mut matrix.rows[columns..] {
        let pairs = row.iter_mut().zip(&scales);
        pairs.for_each(|(value, &scale)| *value = field.multiply(*value, scale));
        let scale = field.inverse(row[0])?;
        row.iter_mut().for_each(|value| *value = field.multiply(*value, scale));
    }
    Some(matrix)
}

fn given_matrix(matrix: Option<Matrix>) -> *mut c_int {
    matrix.map_or(null_mut(), |matrix| given(&matrix.values()))
}

/// Returns the extended Vandermonde matrix, row by row; null if the sizes are not valid.
#[unsafe(no_mangle)]
pub extern "C" fn reed_sol_extended_vandermonde_matrix(
    rows: c_int,
    cols: c_int,
    w: c_int,
) -> *mut c_int {
    let Some([rows, columns]) = sizes([rows, cols]) else { return null_mut() };
    given_matrix(vandermonde(rows, columns, w))
}

/// Returns the distribution matrix of a Vandermonde code; null if the sizes are not valid.
#[unsafe(no_mangle)]
pub extern "C" fn reed_sol_big_vandermonde_distribution_matrix(
    rows: c_int,
    cols: c_int,
    w: c_int,
) -> *mut c_int {
    let Some([rows, columns]) = sizes([rows, cols]) else { return null_mut() };
    given_matrix(distribution(rows, columns, w))
}

/// Returns the coding matrix of technique `reed_sol_van`: m rows of k; null if the sizes are not
/// valid.
#[unsafe(no_mangle)]
pub extern "C" fn reed_sol_vandermonde_coding_matrix(k: c_int, m: c_int, w: c_int) -> *mut c_int {
    let Some([k, m]) = sizes([k, m]) else { return null_mut() };
    let coding = distribution(k + m, k, w);
    given_matrix(coding.map(|all| Matrix { field: all.field, rows: all.rows[k..].to_vec() }))
}

/// Returns the coding matrix of technique `reed_sol_r6_op`; null if w is not 8, 16 or 32.
#[unsafe(no_mangle)]
pub extern "C" fn reed_sol_r6_coding_matrix(k: c_int, w: c_int) -> *mut c_int {
    let (Some([k]), 8 | 16 | 32) = (sizes([k]), w) else { return null_mut() };
    let coding = field(w).map(|field| {
        let powers = (0..k).map(|column| field.power(2, column as u64)).collect();
        Matrix { field, rows: vec![vec![1; k], powers] }
    });
    given_matrix(coding)
}

/// Returns the coding matrix of technique `cauchy_orig`; null if there are too many devices.
#[unsafe(no_mangle)]
pub extern "C" fn cauchy_original_coding_matrix(k: c_int, m: c_int, w: c_int) -> *mut c_int {
    let (Some([k, m]), Some(field)) = (sizes([k, m]), field(w)) else { return null_mut() };
    if (k + m) as u64 > field.size() {
        return null_mut();
    }
    let points: Vec<c_int> = (0..k + m).map(|point| point as c_int).collect();
    cauchy(w, &points[..m], &points[m..])
}

/// Returns the Cauchy matrix of points X (rows) and Y (columns).
///
/// # Safety
/// `X` is valid for reads of `m` values, and `Y` for `k`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cauchy_xy_coding_matrix(
    k: c_int,
    m: c_int,
    w: c_int,
    X: *mut c_int,
    Y: *mut c_int,
) -> *mut c_int {
    let Some([k, m]) = sizes([k, m]) else { return null_mut() };
    // SAFETY: as the caller promises.
    let (x, y) = unsafe { (values(X, m), values(Y, k)) };
    cauchy(w, x, y)
}

fn cauchy(w: c_int, x: &[c_int], y: &[c_int]) -> *mut c_int {
    let Some(field) = field(w) else { return null_mut() };
    let entry = |a: c_int, b: c_int| {
        let fits = field.contains(u64::from(a as u32)) && field.contains(u64::from(b as u32));
        field.inverse((a ^ b) as u32).filter(|_| fits).map(|entry| entry as c_int)
    };
    let all: Option<Vec<c_int>> =
        x.iter().flat_map(|&a| y.iter().map(move |&b| entry(a, b))).collect();
    all.map_or(null_mut(), |all| given(&all))
}

/// Lowers the number of ones in the bit matrix of `matrix`, in place. First it scales the columns
/// so that the first row is all ones. Then it divides every other row by the element that leaves
/// the fewest ones.
///
/// # Safety
/// `matrix` is valid for `k · m` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cauchy_improve_coding_matrix(
    k: c_int,
    m: c_int,
    w: c_int,
    matrix: *mut c_int,
) {
    let (Some([k, m]), Some(field)) = (sizes([k, m]), field(w)) else { return };
    // SAFETY: as the caller promises.
    let values = unsafe { values_mut(matrix, k * m) };
    let times = |value: c_int, factor: u32| field.multiply(value as u32, factor) as c_int;
    for column in 0..k {
        let Some(scale) = field.inverse(values[column] as u32) else { continue };
        (0..m).for_each(|row| values[row * k + column] = times(values[row * k + column], scale));
    }
    for row in values.chunks_exact_mut(k).skip(1) {
        let ones = |row: &[c_int], scale: u32| -> usize {
            row.iter().map(|&value| field.ones(times(value, scale) as u32)).sum()
        };
        let mut best = (ones(row, 1), 1);
        for &value in row.iter().filter(|&&value| value != 1) {
            let Some(scale) = field.inverse(value as u32) else { continue };
            let count = ones(row, scale);
            if count < best.0 {
                best = (count, scale);
            }
        }
        row.iter_mut().for_each(|value| *value = times(*value, best.1));
    }
}

/// Returns the coding matrix of technique `cauchy_good`; null if there are too many devices.
#[unsafe(no_mangle)]
pub extern "C" fn cauchy_good_general_coding_matrix(k: c_int, m: c_int, w: c_int) -> *mut c_int {
    let Some([size]) = sizes([w]) else { return null_mut() };
    coefficients_of(&format!("cauchy-good:k={k},m={m},w={w}"), size)
}

/// Returns the number of ones in the bit matrix of the element `n`.
#[unsafe(no_mangle)]
pub extern "C" fn cauchy_n_ones(n: c_int, w: c_int) -> c_int {
    field(w).map_or(0, |field| field.ones(n as u32) as c_int)
}

/// Returns the bit matrix of two parity nodes. The first has the identity for each of the k data
/// nodes. The second has a block of w rows and columns for each, of which `block(node, w)` gives
/// the rows and columns of the ones. The result is null unless 1 <= k <= w, or if memory is short.
///
/// The families of Paritas refuse widths with which some losses of two nodes are beyond recovery.
/// Jerasure makes their matrices all the same, and stored data may depend on them.
fn two_parity_bits<B: Iterator<Item = (usize, usize)>>(
    [k, w]: [c_int; 2],
    block: impl Fn(usize, usize) -> B,
) -> *mut c_int {
    let Some([k, w]) = sizes([k, w]).filter(|[k, w]| k <= w) else { return null_mut() };
    let width = k.saturating_mul(w);
    let count = width.saturating_mul(w).saturating_mul(2);
    let mut bits = Vec::new();
    if bits.try_reserve_exact(count).is_err() {
        return null_mut();
    }
    bits.resize(count, 0);
    for node in 0..k {
        (0..w).for_each(|row| bits[row * width + node * w + row] = 1);
        block(node, w).for_each(|(row, column)| bits[(w + row) * width + node * w + column] = 1);
    }
    given(&bits)
}

/// Returns the bit matrix of technique `liberation`; null if the sizes are not valid.
#[unsafe(no_mangle)]
pub extern "C" fn liberation_coding_bitmatrix(k: c_int, w: c_int) -> *mut c_int {
    two_parity_bits([k, w], |j, w| {
        let row = j * ((w - 1) / 2) % w;
        let further = (j > 0).then(|| (row, (row + j + w - 1) % w));
        (0..w).map(move |row| (row, (row + j) % w)).chain(further)
    })
}

/// Returns the bit matrix of technique `liber8tion`; null if `k` is not valid.
#[unsafe(no_mangle)]
pub extern "C" fn liber8tion_coding_bitmatrix(k: c_int) -> *mut c_int {
    bit_matrix_of(&format!("liber8tion:k={k}"))
}

/// Returns the bit matrix of technique `blaum_roth`; null if the sizes are not valid.
#[unsafe(no_mangle)]
pub extern "C" fn blaum_roth_coding_bitmatrix(k: c_int, w: c_int) -> *mut c_int {
    two_parity_bits([k, w], |j, w| {
        let p = w + 1;
        let half = if j % 2 == 0 { j / 2 } else { p / 2 + 1 + j / 2 };
        let diagonal = (1..p).filter(move |row| row + j != p).map(move |row| (row, (row + j) % p));
        let folded = [(p - j, j), (p - j, half)].into_iter().filter(move |_| j > 0);
        diagonal.chain(folded).map(|(row, column)| (row - 1, column - 1))
    })
}
