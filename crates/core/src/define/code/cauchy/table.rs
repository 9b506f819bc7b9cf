//! The best matrices found so far: data, made by `paritas schedule SPEC --search local`.
//!
//! `matrices.txt` says how each was found. A line is a shape, then the data and parity points,
//! then the row scalings; that any such matrix is MDS follows from distinct points and nonzero
//! scalings, which tests check line by line. Pins hold the numbers themselves, so a better line may
//! replace another at any time.

use std::sync::LazyLock;

/// One matrix; its first row is plain parity.
pub(super) struct Entry {
    shape: [usize; 3],
    /// k data points, then m parity points.
    pub(super) points: Vec<u64>,
    /// The factors of the m rows.
    pub(super) rows: Vec<u64>,
}

/// The matrix for k, m and w, if there is one.
pub(super) fn find(k: usize, m: usize, w: usize) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.shape == [k, m, w])
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let lines = include_str!("matrices.txt").lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(parse).collect()
});

/// Reads `k m w | points | rows | how it was found`.
fn parse(line: &str) -> Option<Entry> {
    let numbers = |field: &str| -> Option<Vec<u64>> {
        field.split_whitespace().map(|number| number.parse().ok()).collect()
    };
    let mut fields = line.split('|').map(numbers);
    let shape = fields.next()??.iter().map(|&number| number as usize).collect::<Vec<_>>();
    Some(Entry { shape: shape.try_into().ok()?, points: fields.next()??, rows: fields.next()?? })
}
