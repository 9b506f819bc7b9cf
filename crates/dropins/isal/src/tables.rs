//! Calls with a caller's table: the program for its content, run over the caller's regions.

use std::slice;

use paritas::{Field, Prepared};
use paritas_dropins::{Key, Programs, Recent, Regions, multiples, product};
use smallvec::SmallVec;

use crate::field;

/// Bytes of a table for one coefficient.
pub(crate) const TABLE: usize = 32;

static PROGRAMS: Programs<u8> = Programs::new();

thread_local! {
    static RECENT: Recent<u8> = const { Recent::new(Vec::new()) };
}

/// Number of programs that have been made for tables so far.
pub(crate) fn made() -> usize {
    PROGRAMS.made()
}

/// What is done with the sums: they replace the targets, or are added to them.
const REPLACE: usize = 0;
const ADD: usize = 1;

/// Computes `targets[i]` as the sum over j of coefficient (i, j) of the table times `sources[j]`.
///
/// # Safety
/// `table` is valid for 32 bytes for each pair of source and target, and all regions for `len`
/// bytes, the targets for writes.
pub(crate) unsafe fn encode(len: i32, table: *const u8, sources: &[*mut u8], targets: &[*mut u8]) {
    let Some(bytes) = usize::try_from(len).ok().filter(|&len| len > 0) else { return };
    if sources.is_empty() || targets.is_empty() {
        return;
    }
    // SAFETY: as the caller promises.
    let content = unsafe { slice::from_raw_parts(table, TABLE * sources.len() * targets.len()) };
    let shape = [REPLACE, sources.len(), targets.len(), 0, 0, 0];
    let make = || {
        let rows = content.chunks_exact(TABLE * sources.len()).map(coefficients);
        product(Field::new(8)?, expect_all(rows)?)
    };
    // SAFETY: as the caller promises.
    unsafe { run(bytes, shape, content, sources, targets, make) };
}

/// Adds to `targets[i]` coefficient (i, `column`) of a table of `columns` columns times `source`.
///
/// # Safety
/// As [`encode`]; `table` has `columns` columns.
pub(crate) unsafe fn update(
    len: i32,
    columns: usize,
    column: usize,
    table: *const u8,
    source: *mut u8,
    targets: &[*mut u8],
) {
    let Some(bytes) = usize::try_from(len).ok().filter(|&len| len > 0) else { return };
    if targets.is_empty() || column >= columns {
        return;
    }
    // SAFETY: as the caller promises.
    let table = unsafe { slice::from_raw_parts(table, TABLE * columns * targets.len()) };
    let of_column = table.chunks_exact(TABLE).skip(column).step_by(columns);
    let content: SmallVec<[u8; 16 * TABLE]> = of_column.flatten().copied().collect();
    let make = || {
        let [factors] = &expect_all([coefficients(&content)])?[..] else {
            return product_of_none();
        };
        multiples(Field::new(8)?, factors)
    };
    let shape = [ADD, 1, targets.len(), 0, 0, 0];
    // SAFETY: as the caller promises.
    unsafe { run(bytes, shape, &content, &[source], targets, make) };
}

fn product_of_none() -> paritas::Result<Prepared> {
    product(Field::new(8)?, Vec::new())
}

/// Returns the coefficients of a table, if it is what `ec_init_tables` makes of some.
fn coefficients(table: &[u8]) -> Option<Vec<u32>> {
    let coefficient = |table: &[u8]| {
        // Products with 1 are the coefficients themselves.
        (*table == field::table(table[1])).then(|| u32::from(table[1]))
    };
    table.chunks_exact(TABLE).map(coefficient).collect()
}

/// Returns all rows, or an error if one is missing.
fn expect_all(rows: impl IntoIterator<Item = Option<Vec<u32>>>) -> paritas::Result<Vec<Vec<u32>>> {
    match rows.into_iter().collect() {
        Some(rows) => Ok(rows),
        None => product_of_none().map(|_| Vec::new()),
    }
}

/// Runs the program for a table; where there is none, looks every byte up.
///
/// # Safety
/// As [`encode`].
unsafe fn run(
    bytes: usize,
    shape: [usize; 6],
    content: &[u8],
    sources: &[*mut u8],
    targets: &[*mut u8],
    make: impl FnOnce() -> paritas::Result<Prepared>,
) {
    let read = sources.iter().map(|source| source.cast_const());
    // SAFETY: as the caller promises.
    let regions = unsafe { Regions::new(bytes, read, targets.iter().copied()) };
    let key = Key { shape, content };
    let is_done = PROGRAMS.run(&RECENT, key, make, |program| {
        program.is_some_and(|program| regions.run(program).is_ok())
    });
    if !is_done {
        // SAFETY: as the caller promises.
        unsafe { look_up(bytes, shape[0] == ADD, content, sources, targets) };
    }
}

/// Computes every byte by looking its halves up in the table, whatever this holds.
///
/// # Safety
/// As [`encode`]; `content` has a table for each pair of source and target.
unsafe fn look_up(
    bytes: usize,
    adds: bool,
    content: &[u8],
    sources: &[*mut u8],
    targets: &[*mut u8],
) {
    let mut sums: SmallVec<[u8; 64]> = SmallVec::new();
    for at in 0..bytes {
        sums.clear();
        for (row, &target) in content.chunks_exact(TABLE * sources.len()).zip(targets) {
            // SAFETY: as the caller promises.
            let mut sum = if adds { unsafe { *target.add(at) } } else { 0 };
            for (table, &source) in row.chunks_exact(TABLE).zip(sources) {
                // SAFETY: as the caller promises.
                let byte = usize::from(unsafe { *source.add(at) });
                sum ^= table[byte & 15] ^ table[16 + (byte >> 4)];
            }
            sums.push(sum);
        }
        for (&sum, &target) in sums.iter().zip(targets) {
            // SAFETY: as the caller promises.
            unsafe { *target.add(at) = sum };
        }
    }
}
