//! Calls with a caller's table: the program for its content, run over the caller's regions.
//!
//! Until a program pays, and for tables that are seen once (a degraded read has one of its own),
//! the sums are made term by term, by 256 small programs that add a multiple of one region to
//! another.

use std::slice;
use std::sync::OnceLock;

use paritas::Prepared;
use paritas::code::Field;
use paritas_dropins::{Key, Programs, Recent, Regions, multiples, product};
use smallvec::SmallVec;

use crate::field;

/// Bytes of a table for one coefficient.
pub(crate) const TABLE: usize = 32;

/// Bytes of sources that pass before a table's program is made. Making it takes 0.2 to 0.4 ms for
/// 10+4, in which as many bytes are encoded term by term.
const PAYS_AFTER: usize = 1 << 20;

/// Bytes of a region that are handled at a time term by term, so that they stay in the cache.
const TILE: usize = 16 << 10;

static PROGRAMS: Programs<u8> = Programs::new(PAYS_AFTER, |_| BYTES_EACH);

/// Bytes of a program for each byte of its table, for large tables: 2 KiB for a coefficient.
const BYTES_EACH: usize = 64;

/// For each coefficient, the program that adds that multiple of a region to another.
static TERMS: [OnceLock<Option<Prepared>>; 256] = [const { OnceLock::new() }; 256];

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

/// Returns the coefficients of a table, if `ec_init_tables` makes this table of some coefficients.
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

/// Runs the program for a table; where there is none, adds term by term, or looks every byte up.
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
    // Only programs cope with regions that overlap.
    let passed = || if regions.overlap_somewhere() { PAYS_AFTER } else { bytes * sources.len() };
    let is_done = PROGRAMS.run(&RECENT, key, passed, make, |program| {
        program.is_some_and(|program| regions.run(program).is_ok())
    });
    if is_done {
        return;
    }
    let adds = shape[0] == ADD;
    // Regions that overlap have a program unless none can be made.
    // SAFETY: as the caller promises; no regions overlap.
    if !regions.overlap_somewhere() && unsafe { add_terms(bytes, adds, content, sources, targets) }
    {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { look_up(bytes, adds, content, sources, targets) };
}

/// Returns the program that adds a multiple of a region to another.
fn term(coefficient: u32) -> Option<&'static Prepared> {
    let make = || multiples(Field::new(8).ok()?, &[coefficient]).ok();
    TERMS[coefficient as usize].get_or_init(make).as_ref()
}

/// Computes the sums term by term. Returns false, and has written nothing, if the table is not one
/// that `ec_init_tables` makes.
///
/// # Safety
/// As [`encode`]; no target overlaps another region.
unsafe fn add_terms(
    bytes: usize,
    adds: bool,
    content: &[u8],
    sources: &[*mut u8],
    targets: &[*mut u8],
) -> bool {
    let terms = coefficients(content).map(|all| all.into_iter().map(|c| (c > 0).then(|| term(c))));
    let Some(terms) = terms.map(Iterator::collect::<Vec<_>>) else { return false };
    if terms.iter().any(|term| matches!(term, Some(None))) {
        return false;
    }
    for start in (0..bytes).step_by(TILE) {
        let length = TILE.min(bytes - start);
        for (terms, target) in terms.chunks_exact(sources.len()).zip(targets) {
            // SAFETY: as the caller promises.
            let target = unsafe { slice::from_raw_parts_mut(target.add(start), length) };
            if !adds {
                target.fill(0);
            }
            for (term, source) in terms.iter().zip(sources) {
                let Some(Some(term)) = term else { continue };
                // SAFETY: as the caller promises.
                let source = unsafe { slice::from_raw_parts(source.add(start), length) };
                if term.run(&[source], &mut [&mut *target]).is_err() {
                    // Two regions of one length suit the program; half a sum must not be taken for
                    // a whole one.
                    std::process::abort();
                }
            }
        }
    }
    true
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
