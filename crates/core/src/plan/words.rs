//! Work on words: sums of products of whole buffers, cut into parts that a machine keeps in
//! registers.

use std::sync::Arc;

use crate::error::Result;
use crate::limits::{MOST_POINTERS, PRODUCTS_A_PART};
use crate::plan::arrange;
use crate::plan::machine::{LINE, Machine};
use crate::plan::products::{self, CoefficientRows};
use crate::plan::program::{CellLocation, Program};
use crate::plan::prove;
use crate::plan::schedule::Schedule;
use crate::plan::steps::LOAD_COST;

/// Sums of products of whole buffers of words.
pub(super) struct Words {
    pub rows: CoefficientRows,
    /// Numbers of the input buffers; `outputs` has those of the outputs.
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    /// The number of rows of each buffer: one, of words.
    pub buffers: Arc<[usize]>,
    /// Whether the sums are added to the current content of the outputs.
    pub in_place: bool,
}

impl Words {
    /// Splits the outputs into shares for threads.
    pub fn shares(&self, shares: usize) -> Vec<Self> {
        let size = self.outputs.len().div_ceil(shares.max(1)).max(1);
        self.chunks(size, self.inputs.len().max(1))
    }

    /// Splits the work into parts whose sums stay in registers and whose code stays in the
    /// instruction cache, unless there would be too many.
    pub fn parts(&self, machine: Machine) -> Vec<Self> {
        let word = self.rows.field.width() as usize / 8;
        let most = products::outputs_held(machine, word);
        let groups = self.outputs.len().div_ceil(most).max(1);
        // Part sizes are even, because pairs of outputs share products.
        let size = self.outputs.len().div_ceil(groups).next_multiple_of(2).min(most).max(1);
        let inputs = (PRODUCTS_A_PART / (size * word * word)).max(2);
        let parts = self.outputs.len().div_ceil(size) * self.inputs.len().div_ceil(inputs);
        match parts * self.buffers.len() <= MOST_POINTERS {
            true => self.chunks(size, inputs),
            false => self.chunks(self.outputs.len().max(1), self.inputs.len().max(1)),
        }
    }

    /// Splits the work into parts of at most `outputs` outputs and `inputs` inputs. Parts with the
    /// same outputs follow each other: the first part sets the outputs, the others add to them.
    fn chunks(&self, outputs: usize, inputs: usize) -> Vec<Self> {
        let mut parts = Vec::new();
        let all: Vec<usize> = (0..self.outputs.len()).collect();
        let columns: Vec<usize> = (0..self.inputs.len()).collect();
        for outputs in all.chunks(outputs) {
            let used = |&&input: &&usize| {
                outputs.iter().any(|&output| self.rows.coefficients[output][input] != 0)
            };
            let columns: Vec<usize> = columns.iter().filter(used).copied().collect();
            let mut groups: Vec<&[usize]> = columns.chunks(inputs).collect();
            if groups.is_empty() {
                groups.push(&[]);
            }
            for (number, columns) in groups.into_iter().enumerate() {
                let coefficients = outputs.iter().map(|&output| {
                    columns.iter().map(|&input| self.rows.coefficients[output][input]).collect()
                });
                parts.push(Self {
                    rows: CoefficientRows {
                        field: self.rows.field,
                        inputs: columns.len(),
                        coefficients: coefficients.collect(),
                    },
                    inputs: columns.iter().map(|&input| self.inputs[input]).collect(),
                    outputs: outputs.iter().map(|&output| self.outputs[output]).collect(),
                    buffers: Arc::clone(&self.buffers),
                    in_place: self.in_place || number > 0,
                });
            }
        }
        parts
    }

    /// Whether the parts cost more than `cost` on a machine (see
    /// [`Instructions::cost`](crate::plan::steps::Instructions::cost)). The cost is counted only if
    /// a lower bound does not decide, because planning the parts of a wide code takes a quarter of
    /// a second.
    pub fn costs_more(&self, cost: usize, machine: Machine) -> Result<bool> {
        let factors = self.rows.coefficients.iter().flatten();
        let products = factors.filter(|&&factor| factor > 1).count();
        // Shared products save a quarter at most. A product is an instruction and a constant from
        // memory, and an instruction with three operands adds two products.
        if products * 3 / 4 * (1 + LOAD_COST) + products / 2 > cost {
            return Ok(true);
        }
        let mut left = cost;
        for part in self.parts(machine) {
            let part = arrange::cost(&part.rows.schedule(machine)?, machine)?;
            match left.checked_sub(part) {
                Some(rest) => left = rest,
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Returns the program, after it has been proved.
    pub fn program(&self, machine: Machine) -> Result<Program> {
        let mut inputs = self.inputs.clone();
        let mut coefficients = self.rows.coefficients.clone();
        if self.in_place {
            inputs.extend(&self.outputs);
            for (output, row) in coefficients.iter_mut().enumerate() {
                row.extend((0..self.outputs.len()).map(|n| u32::from(n == output)));
            }
        }
        let rows = CoefficientRows { field: self.rows.field, inputs: inputs.len(), coefficients };
        self.bound(rows.schedule(machine)?, &rows, &inputs)
    }

    /// Returns the program of another schedule for the same sums, after it has been proved. The
    /// sums replace the content of the outputs.
    pub fn program_of(&self, schedule: Schedule) -> Result<Program> {
        self.bound(schedule, &self.rows, &self.inputs)
    }

    fn bound(
        &self,
        schedule: Schedule,
        rows: &CoefficientRows,
        inputs: &[usize],
    ) -> Result<Program> {
        prove::rows(rows, &schedule)?;
        let place = |&buffer: &usize| CellLocation { buffer, row: 0 };
        let (inputs, outputs) =
            (inputs.iter().map(place).collect(), self.outputs.iter().map(place).collect());
        Program::new(schedule, inputs, outputs, Arc::clone(&self.buffers), LINE)
    }
}
