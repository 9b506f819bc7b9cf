//! The best matrices found so far: data, made by `paritas schedule SPEC --search local`.
//!
//! `matrices.txt` says how each was found. A line holds a shape, the data and parity points, and
//! the row scalings. Any such matrix is MDS if its points are distinct and its scalings nonzero,
//! which tests check line by line. A spec that names k, m and w and no points means the matrix of
//! its line, and programs keep such specs beside their shards, without a pin. So the lines stay as
//! they are, and no line is added: a better matrix needs another parameter or another name.

/// One matrix; its first row is plain parity.
pub(super) struct TableMatrix {
    shape: [usize; 3],
    /// k data points, then m parity points.
    pub(super) points: Vec<u64>,
    /// The factors of the m rows.
    pub(super) rows: Vec<u64>,
}

/// Returns the matrix for k, m and w, if there is one. Only its line is read: reading all of them
/// takes ten times as long as making a code.
pub(super) fn find(k: usize, m: usize, w: usize) -> Option<TableMatrix> {
    let shape = format!("{k} {m} {w} ");
    let entry = lines().find(|line| line.starts_with(&shape)).and_then(parse);
    entry.filter(|entry| entry.shape == [k, m, w])
}

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("matrices.txt").lines().filter(|line| !line.starts_with('#'))
}

/// Reads `k m w | points | rows | how it was found`.
fn parse(line: &str) -> Option<TableMatrix> {
    let numbers = |field: &str| -> Option<Vec<u64>> {
        field.split_whitespace().map(|number| number.parse().ok()).collect()
    };
    let mut fields = line.split('|').map(numbers);
    let shape = fields.next()??.iter().map(|&number| number as usize).collect::<Vec<_>>();
    Some(TableMatrix {
        shape: shape.try_into().ok()?,
        points: fields.next()??,
        rows: fields.next()??,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::define::code::Code;

    /// Three sets of shapes: every k up to 32 and m up to 8 with the smallest w; k up to 16 and m
    /// up to 6 with w = 8; and, for delayed parity generation, k up to 16 and m < m2 up to 8 with
    /// the smallest w of k + m2.
    #[test]
    fn every_shape_is_there_once() {
        let smallest = |k: usize, m: usize| (k + m).next_power_of_two().trailing_zeros() as usize;
        let small = (1..=32).flat_map(|k| (1..=8).map(move |m| [k, m, smallest(k, m)]));
        let wide = (1..=16).flat_map(|k| (1..=6).map(move |m| [k, m, 8]));
        let later = (1..=16).flat_map(|k| (2..=8).map(move |m2| (k, m2)));
        let later = later.flat_map(|(k, m2)| (1..m2).map(move |m| [k, m, smallest(k, m2)]));
        let expected: HashSet<[usize; 3]> =
            small.chain(wide).chain(later).chain([[6, 2, 4]]).collect();
        let entries: Vec<TableMatrix> = lines().filter_map(parse).collect();
        let shapes: HashSet<[usize; 3]> = entries.iter().map(|entry| entry.shape).collect();
        assert_eq!(shapes, expected);
        assert_eq!(entries.len(), expected.len());
        assert_eq!(lines().count(), entries.len(), "a line cannot be read");
    }

    /// Specs that programs keep mean these matrices: none may change, and none may be added.
    #[test]
    fn matrices_stay_as_they_are() {
        let mut hasher = blake3::Hasher::new();
        for line in lines() {
            let (matrix, _) = line.rsplit_once('|').unwrap();
            hasher.update(matrix.as_bytes());
        }
        let expected = "d3cc38147e9472bcaa359cbc53bae67632452fbe407529f25ed04a2eaa22257c";
        assert_eq!(hasher.finalize().to_string(), expected);
    }

    /// Distinct points and nonzero scalings make every square submatrix invertible, so every entry
    /// is MDS.
    #[test]
    fn every_entry_is_mds() {
        for TableMatrix { shape: [k, m, w], points, rows } in lines().filter_map(parse) {
            let distinct: HashSet<&u64> = points.iter().collect();
            assert_eq!((points.len(), distinct.len()), (k + m, k + m), "{k} {m} {w}");
            assert!(points.iter().all(|&point| point < 1 << w), "{k} {m} {w}");
            assert!(rows.iter().all(|&row| 0 < row && row < 1 << w), "{k} {m} {w}");
            assert_eq!(rows.len(), m);
        }
    }

    #[test]
    fn new_codes_have_these_matrices_and_plain_first_parity() {
        for TableMatrix { shape: [k, m, w], points, rows } in lines().filter_map(parse).step_by(7) {
            let code = Code::new(&format!("cauchy:k={k},m={m},w={w}").parse().unwrap()).unwrap();
            let matrix = code.cauchy_matrix().unwrap();
            assert_eq!(
                (&matrix.points()[..], &matrix.row_scalings()[..]),
                (&points[..], &rows[..])
            );
            assert!(matrix.symbols().unwrap().parity()[0].iter().all(|&entry| entry == 1));
        }
    }
}
