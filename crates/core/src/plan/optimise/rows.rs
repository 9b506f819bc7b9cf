//! Rows: a schedule as sets of numbered columns, the form that passes rewrite.
//!
//! Column `c` below the number of inputs is an input; column `inputs + r` is the result of row `r`.
//! The first rows are the outputs, the others temporaries. No order is kept while rows are
//! rewritten. [`Rows::schedule`] finds one, drops rows that are not needed and numbers temporaries
//! in that order.

use crate::error::Result;
use crate::plan::cost::Cost;
use crate::plan::schedule::{Op, Schedule, Slot};

/// The columns whose XOR a row is, ascending.
pub(crate) type Columns = Vec<u32>;

/// A single-assignment schedule without an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rows {
    inputs: usize,
    outputs: usize,
    rows: Vec<Columns>,
    /// For each row, whether it was rewritten since [`Rows::settle`].
    changed: Vec<bool>,
}

impl Rows {
    /// Returns the rows of a schedule.
    ///
    /// # Errors
    /// If it is not single-assignment.
    pub(crate) fn new(schedule: &Schedule) -> Result<Self> {
        schedule.require_single_assignment()?;
        let (inputs, outputs) = (schedule.inputs(), schedule.outputs());
        let column = |slot: Slot| match slot {
            Slot::Input(n) => n,
            Slot::Output(n) => (inputs as u32) + n,
            Slot::Temp(n) => (inputs + outputs) as u32 + n,
        };
        let mut rows = vec![Columns::new(); outputs + schedule.temps()];
        for op in schedule.ops() {
            let row = &mut rows[column(op.target) as usize - inputs];
            row.extend(op.sources.iter().map(|&source| column(source)));
            row.sort_unstable();
        }
        let changed = vec![true; rows.len()];
        Ok(Self { inputs, outputs, rows, changed })
    }

    /// Makes rows that are all outputs, over inputs.
    pub(crate) fn of_outputs(inputs: usize, rows: Vec<Columns>) -> Self {
        let outputs = rows.len();
        Self::of_columns(inputs, outputs, rows)
    }

    /// Makes rows. The first `outputs` rows are outputs, the others temporaries; the columns of
    /// each row are ascending.
    pub(crate) fn of_columns(inputs: usize, outputs: usize, rows: Vec<Columns>) -> Self {
        Self { inputs, outputs, changed: vec![true; rows.len()], rows }
    }

    /// Number of columns: inputs and rows.
    pub(crate) fn columns(&self) -> usize {
        self.inputs + self.rows.len()
    }

    /// The number of inputs.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of outputs.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Columns whose XOR row `row` is.
    pub(crate) fn row(&self, row: usize) -> &Columns {
        &self.rows[row]
    }

    /// All rows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Columns> {
        self.rows.iter()
    }

    /// Replaces the columns of row `row`.
    pub(crate) fn set(&mut self, row: usize, columns: Columns) {
        self.rows[row] = columns;
        self.changed[row] = true;
    }

    /// Rows that were rewritten since [`Rows::settle`].
    pub(crate) fn changed(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).filter(|&row| self.changed[row])
    }

    /// Marks all rows as not rewritten.
    pub(crate) fn settle(&mut self) {
        self.changed.fill(false);
    }

    /// Adds a temporary, and returns its column.
    pub(crate) fn push(&mut self, columns: Columns) -> u32 {
        self.rows.push(columns);
        self.changed.push(true);
        self.columns() as u32 - 1
    }

    /// Returns the row that computes a column, or `None` if the column is an input.
    pub(crate) fn row_of(&self, column: u32) -> Option<usize> {
        (column as usize).checked_sub(self.inputs)
    }

    /// Returns the column that a row computes.
    pub(crate) fn column_of(&self, row: usize) -> u32 {
        (self.inputs + row) as u32
    }

    /// Whether a row is a temporary.
    pub(crate) fn is_temp(&self, row: usize) -> bool {
        row >= self.outputs
    }

    /// Replaces temporary `temp` by its columns in the rows `users`, and empties it. `users` are
    /// all rows that use it.
    pub(crate) fn inline(&mut self, temp: usize, users: &[u32]) {
        let column = self.column_of(temp);
        let columns = std::mem::take(&mut self.rows[temp]);
        for &user in users {
            let row = &mut self.rows[user as usize];
            row.retain(|&c| c != column);
            *row = symmetric_difference(row, &columns);
            self.changed[user as usize] = true;
        }
    }

    /// Removes temporaries that no output needs.
    pub(crate) fn drop_unused(&mut self) {
        let mut kept: Vec<usize> =
            self.order().into_iter().filter(|&row| self.is_temp(row)).collect();
        kept.sort_unstable();
        let mut names: Vec<u32> = (0..self.columns() as u32).collect();
        let first = self.inputs + self.outputs;
        kept.iter().zip(first..).for_each(|(&row, name)| names[self.inputs + row] = name as u32);
        let rows: Vec<usize> = (0..self.outputs).chain(kept).collect();
        let renamed = rows.iter().map(|&row| {
            self.rows[row].iter().map(|&column| names[column as usize]).collect::<Columns>()
        });
        self.rows = renamed.collect();
        self.changed = rows.iter().map(|&row| self.changed[row]).collect();
    }

    /// Whether row `row` depends on row `on`, or is that row.
    pub(crate) fn depends(&self, row: usize, on: usize) -> bool {
        let mut seen = vec![false; self.rows.len()];
        let mut stack = vec![row];
        while let Some(row) = stack.pop() {
            if row == on {
                return true;
            }
            if !std::mem::replace(&mut seen[row], true) {
                stack.extend(self.rows[row].iter().filter_map(|&column| self.row_of(column)));
            }
        }
        false
    }

    /// Returns the cost of the rows that outputs need.
    pub(crate) fn cost(&self) -> Cost {
        let mut cost = Cost::default();
        for row in self.order() {
            cost.add(self.rows[row].len(), false);
            cost.temps += usize::from(self.is_temp(row));
        }
        cost
    }

    /// Returns the rows that outputs need, in an order in which sources come before their uses:
    /// outputs in their order, each preceded by the temporaries that it is the first to need. Rows
    /// that form a cycle are left out.
    pub(crate) fn order(&self) -> Vec<usize> {
        #[derive(Clone, Copy, PartialEq)]
        enum RowState {
            New,
            Open,
            Done,
        }
        let mut states = vec![RowState::New; self.rows.len()];
        let mut order = Vec::with_capacity(self.rows.len());
        let mut stack = Vec::new();
        for output in 0..self.outputs {
            // A stack replaces recursion, because schedules may be deep. Each row is visited twice,
            // before and after its sources.
            stack.push(output);
            while let Some(&row) = stack.last() {
                match states[row] {
                    RowState::New => {
                        states[row] = RowState::Open;
                        let sources = self.rows[row].iter().rev().filter_map(|&c| self.row_of(c));
                        stack.extend(sources.filter(|&source| states[source] == RowState::New));
                    }
                    RowState::Open => {
                        states[row] = RowState::Done;
                        order.push(row);
                        stack.pop();
                    }
                    RowState::Done => {
                        stack.pop();
                    }
                }
            }
        }
        order
    }

    /// Returns the schedule in parity-first order.
    ///
    /// # Errors
    /// If rows form a cycle, or if there are more rows than a schedule may have.
    pub(crate) fn schedule(&self) -> Result<Schedule> {
        let order = self.order();
        let mut names: Vec<Slot> = (0..self.columns() as u32).map(Slot::Input).collect();
        let mut temps = 0;
        let mut ops = Vec::with_capacity(order.len());
        for row in order {
            let target = if self.is_temp(row) {
                temps += 1;
                Slot::Temp(temps - 1)
            } else {
                Slot::Output(row as u32)
            };
            names[self.inputs + row] = target;
            let mut sources: Vec<Slot> =
                self.rows[row].iter().map(|&column| names[column as usize]).collect();
            sources.sort_unstable();
            ops.push(Op::assign(target, sources));
        }
        Schedule::new(self.inputs, temps as usize, self.outputs, ops)
    }
}

/// Returns the elements that are in exactly one of two ascending lists, ascending.
pub(crate) fn symmetric_difference(a: &[u32], b: &[u32]) -> Columns {
    let mut difference = Columns::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) if x < y => difference.extend(a.next()),
            (Some(_), None) => difference.extend(a.next()),
            (_, Some(_)) => difference.extend(b.next()),
            (None, None) => return difference,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: &str = "inputs 3 temps 2 outputs 2\n\
                         t0 = i1 ^ i2\nt1 = i0 ^ i2\no0 = t0 ^ i0\no1 = t0\n";

    #[test]
    fn unneeded_rows_are_dropped_and_the_rest_renumbered() {
        let rows = Rows::new(&PAIRS.parse().unwrap()).unwrap();
        let expected = "inputs 3 temps 1 outputs 2\nt0 = i1 ^ i2\no0 = i0 ^ t0\no1 = t0\n";
        assert_eq!(rows.schedule().unwrap().to_string(), expected);
    }

    #[test]
    fn inlining_cancels() {
        let mut rows = Rows::new(&PAIRS.parse().unwrap()).unwrap();
        rows.inline(2, &[0, 1]);
        let expected = "inputs 3 temps 0 outputs 2\no0 = i0 ^ i1 ^ i2\no1 = i1 ^ i2\n";
        assert_eq!(rows.schedule().unwrap().to_string(), expected);
    }

    #[test]
    fn differences() {
        assert_eq!(symmetric_difference(&[1, 2, 5], &[2, 3, 5, 9]), [1, 3, 9]);
        assert_eq!(symmetric_difference(&[], &[4]), [4]);
    }

    #[test]
    fn rows_in_a_ring_are_refused() {
        let mut rows = Rows::of_outputs(1, vec![vec![0], vec![0]]);
        rows.set(0, vec![2]);
        rows.set(1, vec![1]);
        assert!(rows.schedule().is_err());
    }
}
