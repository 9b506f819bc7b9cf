//! Runs the program for a caller's table over the caller's regions.
//!
//! A program is made only for a table that is used enough ([`PAYS_AFTER`]). Until then, and so for
//! tables that are used once (each degraded read has its own), sums are computed term by term: for
//! each of the 256 coefficients, a small program adds that multiple of one region to another.

use std::slice;
use std::sync::OnceLock;

use paritas::Prepared;
use paritas::code::Field;
use paritas_dropins::{Key, Programs, Recent, Regions, multiples, product};
use smallvec::SmallVec;

use crate::field;

/// Bytes of the table of one coefficient.
pub(crate) const TABLE: usize = 32;

/// Source bytes that calls with a table read before its program is made. For 10+4, making the
/// program takes 0.2 to 0.4 ms, the time in which this many bytes are encoded term by term.
const PAYS_AFTER: usize = 1 << 20;

/// Bytes of each region that [`add_terms`] handles at a time, so that they stay in the cache.
const TILE: usize = 16 << 10;

static PROGRAMS: Programs<u8> = Programs::new(PAYS_AFTER, |_| BYTES_EACH);

/// Estimated bytes of a program for each byte of a large table: 2 KiB for each coefficient.
const BYTES_EACH: usize = 64;

/// For each coefficient c, the program that adds c times one region to another.
static TERMS: [OnceLock<Option<Prepared>>; 256] = [const { OnceLock::new() }; 256];

thread_local! {
    static RECENT: Recent<u8> = const { Recent::new(Vec::new()) };
}

/// Number of programs that have been made for tables so far.
pub(crate) fn made() -> usize {
    PROGRAMS.made()
}

/// First number of a key's shape: the sums replace the targets, or are added to them.
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

/// Adds coefficient (i, `column`) of the table times `source` to each `targets[i]`.
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

/// Returns the coefficients of a table; `None` if `ec_init_tables` cannot have made it.
fn coefficients(table: &[u8]) -> Option<Vec<u32>> {
    let coefficient = |table: &[u8]| {
        // Entry 1 is the product with 1: the coefficient itself.
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

/// Runs the program for a table. Without a program, adds term by term if `ec_init_tables` made the
/// table, and otherwise looks up every byte.
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
    // `add_terms` cannot handle overlapping regions, so they get a program at once.
    let passed = || if regions.overlap_somewhere() { PAYS_AFTER } else { bytes * sources.len() };
    let is_done = PROGRAMS.run(&RECENT, key, passed, make, |program| {
        program.is_some_and(|program| regions.run(program).is_ok())
    });
    if is_done {
        return;
    }
    let adds = shape[0] == ADD;
    // Overlapping regions come here only if their program cannot be made or run. SAFETY: as the
    // caller promises; no regions overlap.
    if !regions.overlap_somewhere() && unsafe { add_terms(bytes, adds, content, sources, targets) }
    {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { look_up(bytes, adds, content, sources, targets) };
}

/// Returns the program that adds `coefficient` times one region to another. It is made before it is
/// kept, so that no call waits for another one.
fn term(coefficient: u32) -> Option<&'static Prepared> {
    let term = &TERMS[coefficient as usize];
    if let Some(made) = term.get() {
        return made.as_ref();
    }
    let made = Field::new(8).ok().and_then(|field| multiples(field, &[coefficient]).ok());
    term.get_or_init(|| made).as_ref()
}

/// Computes the sums term by term. Returns false, without writing anything, if `ec_init_tables`
/// cannot have made the table.
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
                    // Unreachable, because both regions have the same length. A target with only
                    // part of its sum must not be returned.
                    std::process::abort();
                }
            }
        }
    }
    true
}

/// Computes every byte by looking up both of its halves in the table. Works for any table content.
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
