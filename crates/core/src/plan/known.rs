//! Known schedules for encoding the usual codes. They were refined for longer than a caller would
//! wait.
//!
//! Refining 10+4 takes some tens of milliseconds. Reading its known schedule takes some tens of
//! microseconds, and that schedule is shorter. `known/schedules.txt` is data, made by `cargo run
//! --release -p paritas --example known_schedules`: a line `= SPEC`, then the schedule of the
//! code's parity from its data, in the text form of schedules.
//!
//! A schedule is found by what it computes, not by the name of the code: a code that is rebuilt
//! from an older pin may have another matrix than this version's default, and the default matrix
//! may be given by its points or bit by bit.

use crate::define::bitmatrix::BitMatrix;
use crate::define::cells::CellId;
use crate::define::code::Code;
use crate::plan::optimise::rows::Rows;
use crate::plan::schedule::{Schedule, Slot};

const SCHEDULES: &str = include_str!("known/schedules.txt");

/// Returns the rows of the known schedule that computes the wanted cells of a code from the cells
/// at hand, if there is one.
pub(super) fn find(code: &Code, inputs: &[CellId], wanted: &[CellId]) -> Option<Rows> {
    let mut known = of_shape(inputs.len(), wanted.len()).filter_map(|text| text.parse().ok());
    let schedule = known.find(|schedule| computes(schedule, code, inputs, wanted))?;
    Rows::new(&schedule).ok()
}

/// Returns the texts of the schedules with these numbers of inputs and outputs.
fn of_shape(inputs: usize, outputs: usize) -> impl Iterator<Item = &'static str> {
    let (begin, end) = (format!("inputs {inputs} "), format!(" outputs {outputs}"));
    let texts = SCHEDULES.split("\n= ").filter_map(|entry| entry.split_once('\n'));
    texts.map(|(_, text)| text).filter(move |text| {
        let head = text.lines().next().unwrap_or_default();
        head.starts_with(&begin) && head.ends_with(&end)
    })
}

/// Whether a schedule computes exactly the wanted cells from these inputs.
fn computes(schedule: &Schedule, code: &Code, inputs: &[CellId], wanted: &[CellId]) -> bool {
    if schedule.inputs() != inputs.len() || schedule.outputs() != wanted.len() {
        return false;
    }
    let data = code.data_cells().len();
    let row_of = |slot: Slot| match slot {
        Slot::Input(n) => n as usize,
        Slot::Output(n) => inputs.len() + n as usize,
        Slot::Temp(n) => inputs.len() + wanted.len() + n as usize,
    };
    let mut made = BitMatrix::zero(inputs.len() + wanted.len() + schedule.temps(), data);
    for (row, &cell) in inputs.iter().enumerate() {
        code.row(cell).iter().for_each(|&column| made.flip(row, column as usize));
    }
    for op in schedule.ops() {
        let target = row_of(op.target);
        op.sources.iter().for_each(|&source| made.add_row(row_of(source), target));
    }
    let is_right = |(output, &cell): (usize, &CellId)| {
        let row = code.row(cell).iter().map(|&column| column as usize);
        made.support(inputs.len() + output).eq(row)
    };
    wanted.iter().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::{NodeId, Role};
    use crate::plan::PlanOptions;

    fn specs() -> impl Iterator<Item = &'static str> {
        SCHEDULES.lines().filter_map(|line| line.strip_prefix("= "))
    }

    /// Every known schedule computes its code's parity and is no longer than the result of some
    /// rounds of refining.
    #[test]
    fn schedules_are_right_and_short() {
        for spec in specs() {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            assert_eq!(code.spec().to_string(), spec);
            let parity: Vec<CellId> = code.stored(Role::Parity).iter().collect();
            let rows = find(&code, code.data_cells(), &parity).unwrap();
            let options = PlanOptions { rounds: Some(20), ..PlanOptions::default() };
            let (have, want) = (code.stored(Role::Data), code.stored(Role::Parity));
            let planned = code.schedule_with(&have, &want, options).unwrap();
            let planned = Rows::new(planned.schedule()).unwrap();
            assert!(rows.cost().total <= planned.cost().total, "{spec}");
        }
    }

    #[test]
    fn the_usual_codes_are_known() {
        for short in ["4+2", "6+3", "8+3", "10+4", "12+4", "20+4"] {
            let code = Code::new(&short.parse().unwrap()).unwrap();
            let parity: Vec<CellId> = code.stored(Role::Parity).iter().collect();
            assert!(find(&code, code.data_cells(), &parity).is_some(), "{short}");
        }
    }

    /// The matrix of `cauchy:k=8,m=4,w=4`, given by its points.
    #[test]
    fn another_name_of_a_matrix_has_its_schedule() {
        let pinned = "cauchy:k=8,m=4,w=4,points=3.5.7.15.12.9.8.10.0.1.11.13,\
                      rows=1.15.3.11,columns=3.5.7.15.12.9.8.10";
        let [one, other] = ["cauchy:k=8,m=4,w=4", pinned].map(|spec| {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let plan = code.schedule(&code.stored(Role::Data), &code.stored(Role::Parity)).unwrap();
            assert!(plan.account().is_known, "{spec}");
            plan.schedule().clone()
        });
        assert_eq!(one, other);
    }

    /// The same spec with another matrix: its second and third parity nodes are exchanged.
    #[test]
    fn other_matrices_are_seen() {
        let code = Code::new(&"6+3".parse().unwrap()).unwrap();
        let mut parity: Vec<CellId> = code.stored(Role::Parity).iter().collect();
        assert!(find(&code, code.data_cells(), &parity).is_some());
        let width = code.node_cells(NodeId::new(0)).len();
        parity.rotate_left(width);
        assert!(find(&code, code.data_cells(), &parity).is_none());
    }
}
