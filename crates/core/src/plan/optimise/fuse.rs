//! Fusing: temporaries that do not pay are merged into the operations that use them.
//!
//! A pair that `slp` extracted may have a single use left after later pairs took its other uses. An
//! operation with n sources reads them once and writes once, whereas a chain of pairs stores and
//! loads every partial sum.

use crate::plan::cost::Objective;
use crate::plan::optimise::rows::{Rows, symmetric_difference};

/// Inlines temporaries as long as the cost does not rise. An output that is only a copy of a
/// temporary replaces the temporary.
pub(crate) fn fuse(rows: &mut Rows, objective: Objective) {
    name_by_output(rows);
    while inline_all(rows, objective) {}
}

/// Replaces a temporary by the first output that is only a copy of it.
fn name_by_output(rows: &mut Rows) {
    for output in 0..rows.outputs() {
        let [copied] = rows.row(output)[..] else { continue };
        let Some(temp) = rows.row_of(copied).filter(|&row| rows.is_temp(row)) else { continue };
        let columns = rows.row(temp).clone();
        rows.set(temp, Vec::new());
        rows.set(output, columns);
        let swap = [copied, rows.column_of(output)];
        for row in 0..rows.len() {
            if rows.row(row).contains(&copied) {
                let mut swap = swap;
                swap.sort_unstable();
                rows.set(row, symmetric_difference(rows.row(row), &swap));
            }
        }
    }
}

/// Visits all temporaries once, sources before their uses. Returns whether any was inlined.
fn inline_all(rows: &mut Rows, objective: Objective) -> bool {
    let order = rows.order();
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
    for &row in &order {
        let made = rows.row(row).iter().filter_map(|&column| rows.row_of(column));
        made.filter(|&temp| rows.is_temp(temp)).for_each(|temp| users[temp].push(row as u32));
    }
    let mut inlined = false;
    for row in order {
        if rows.is_temp(row) && objective.is_inlined(users[row].len(), rows.row(row).len()) {
            rows.inline(row, &users[row]);
            inlined = true;
        }
    }
    inlined
}

#[cfg(test)]
mod tests {
    use crate::plan::optimise::passes;

    #[test]
    fn single_uses_are_inlined_and_copies_named() {
        let before = "inputs 4 temps 3 outputs 3\n\
                      t0 = i0 ^ i1\nt1 = t0 ^ i2\nt2 = i2 ^ i3\no0 = t0 ^ i3\no1 = t1\no2 = t2 ^ i0\n";
        let after = "inputs 4 temps 1 outputs 3\n\
                     t0 = i0 ^ i1\no0 = i3 ^ t0\no1 = i2 ^ t0\no2 = i0 ^ i2 ^ i3\n";
        assert_eq!(passes::fuse(&before.parse().unwrap()).unwrap().to_string(), after);
    }

    #[test]
    fn sources_that_meet_twice_cancel() {
        let before = "inputs 3 temps 1 outputs 1\nt0 = i0 ^ i1\no0 = t0 ^ i1 ^ i2\n";
        let after = "inputs 3 temps 0 outputs 1\no0 = i0 ^ i2\n";
        assert_eq!(passes::fuse(&before.parse().unwrap()).unwrap().to_string(), after);
    }
}
