//! A combination bound to memory: in which buffers its inputs and outputs lie.
//!
//! Words do not interact: word i of an output is made of word i of every input, at the same place
//! in all buffers. So a strip is any number of words, the same for all buffers.

use crate::define::field::Field;
use crate::error::{Error, Result};
use crate::plan::combination::Combination;
use crate::run::program::{Footprint, Location};

/// Sums of multiples of buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordProgram {
    field: Field,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Per output, a row of coefficients for the inputs.
    rows: Vec<Vec<u32>>,
    adds: bool,
    buffers: usize,
    strip: usize,
}

impl WordProgram {
    /// Binds a combination to buffers: input i lies in buffer `inputs[i]`, output i in
    /// `outputs[i]`. There are `buffers` of them, with strips of `strip` bytes. With `adds`, the
    /// sums are added to what the outputs hold.
    ///
    /// # Errors
    /// When the counts differ, there is no such buffer, a buffer is written twice or read and
    /// written, or a strip is no whole number of words.
    pub(crate) fn new(
        combination: &Combination,
        inputs: Vec<usize>,
        outputs: Vec<usize>,
        adds: bool,
        buffers: usize,
        strip: usize,
    ) -> Result<Self> {
        let counts = (combination.inputs().len(), combination.outputs().len());
        if counts != (inputs.len(), outputs.len()) {
            let (inputs, outputs) = counts;
            return Err(Error::length(format!(
                "a combination needs places for {inputs} inputs and {outputs} outputs"
            )));
        }
        if let Some(buffer) = inputs.iter().chain(&outputs).find(|&&buffer| buffer >= buffers) {
            return Err(Error::length(format!("buffer {buffer} does not exist")));
        }
        let shared = |&(i, buffer): &(usize, &usize)| {
            inputs.contains(buffer) || outputs[..i].contains(buffer)
        };
        if let Some((_, buffer)) = outputs.iter().enumerate().find(shared) {
            return Err(Error::length(format!("buffer {buffer} is written and used otherwise")));
        }
        let field = combination.field();
        if strip == 0 || !(8 * strip).is_multiple_of(field.width() as usize) {
            let width = field.width();
            return Err(Error::length(format!("{strip} bytes are not words of {width} bits")));
        }
        let rows = (0..outputs.len()).map(|o| combination.coefficients(o).to_vec()).collect();
        Ok(Self { field, inputs, outputs, rows, adds, buffers, strip })
    }

    /// The field of the words.
    pub(crate) fn field(&self) -> Field {
        self.field
    }

    /// The buffers that are read.
    pub(crate) fn inputs(&self) -> &[usize] {
        &self.inputs
    }

    /// The buffers that are written.
    pub(crate) fn outputs(&self) -> &[usize] {
        &self.outputs
    }

    /// The coefficients of an output.
    pub(crate) fn row(&self, output: usize) -> &[u32] {
        &self.rows[output]
    }

    /// Whether sums are added to what the outputs hold.
    pub(crate) fn adds(&self) -> bool {
        self.adds
    }

    /// The bytes of a strip of any buffer.
    pub(crate) fn strip(&self) -> usize {
        self.strip
    }

    /// What the program touches. A strip is one cell.
    pub(crate) fn footprint(&self) -> Footprint {
        let cells = |buffers: &[usize]| -> Vec<Location> {
            buffers.iter().map(|&buffer| Location { buffer, row: 0 }).collect()
        };
        let (mut read, written) = (cells(&self.inputs), cells(&self.outputs));
        if self.adds {
            read.extend(&written);
        }
        Footprint { strips: vec![self.strip; self.buffers], read, written, columns: 0..self.strip }
    }
}
