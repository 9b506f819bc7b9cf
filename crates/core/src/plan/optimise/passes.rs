//! The passes as functions from schedules to schedules, for callers who combine passes themselves.

use crate::define::bitmatrix::BitMatrix;
use crate::error::Result;
use crate::plan::budget::Budget;
use crate::plan::cost::Objective;
use crate::plan::optimise::rows::Rows;
use crate::plan::schedule::Schedule;

pub use crate::plan::optimise::matching::Preference;
pub use crate::plan::optimise::order::{data_first, few_live};
pub use crate::plan::optimise::refine::Effort;

/// Returns a schedule in which output `r` is the XOR of the inputs for which row `r` of the matrix
/// has a one.
///
/// # Errors
/// If the matrix is larger than a schedule may be.
pub fn direct(matrix: &BitMatrix) -> Result<Schedule> {
    let supports: Vec<Vec<usize>> =
        (0..matrix.rows()).map(|r| matrix.support(r).collect()).collect();
    super::direct::schedule(matrix.columns(), &supports)
}

/// Expresses operations by earlier ones where that takes fewer XORs.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn smart(schedule: &Schedule) -> Result<Schedule> {
    rewritten(schedule, super::smart::from_earlier)
}

/// Extracts pairs of inputs by matching until each pair occurs only once. Schedules of more than
/// 4,096 inputs stay as they are.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn matching(schedule: &Schedule, preference: Preference) -> Result<Schedule> {
    rewritten(schedule, |rows| super::matching::extract_matchings(rows, preference))
}

/// Extracts common pairs until each pair occurs only once. Schedules with more than 4,096 sources
/// that are used at least twice, or with more than 65,535 operations, stay as they are.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn slp(schedule: &Schedule) -> Result<Schedule> {
    let all = &mut Budget::unlimited();
    rewritten(schedule, |rows| _ = super::slp::extract_pairs(rows, None, all))
}

/// Inlines every temporary that exactly one operation reads. An output that is only a copy of a
/// temporary replaces the temporary.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn fuse(schedule: &Schedule) -> Result<Schedule> {
    rewritten(schedule, |rows| super::fuse::fuse(rows, Objective::Xors))
}

/// Makes a schedule cheaper by computing parts of it anew.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn refine(schedule: &Schedule, effort: Effort) -> Result<Schedule> {
    let all = &mut Budget::unlimited();
    rewritten(schedule, |rows| _ = super::refine::refine(rows, effort, all))
}

/// Orders the operations by output; each output is preceded by the temporaries that it is the first
/// to need.
///
/// # Errors
/// If the schedule is not single-assignment.
pub fn parity_first(schedule: &Schedule) -> Result<Schedule> {
    rewritten(schedule, |_| {})
}

fn rewritten(schedule: &Schedule, pass: impl FnOnce(&mut Rows)) -> Result<Schedule> {
    let mut rows = Rows::new(schedule)?;
    pass(&mut rows);
    rows.schedule()
}
