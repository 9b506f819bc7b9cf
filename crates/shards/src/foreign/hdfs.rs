//! The cells of HDFS's erasure-coded blocks, as files `NAME.0`, `NAME.1`, ….
//!
//! HDFS (*HDFS Erasure Coding*, hadoop.apache.org) stripes a block group round robin over k data
//! blocks in cells, of 1 MiB in all of its own policies. The last cells end where the data ends, so
//! data blocks may differ in length. Parity cells are as long as the first data cell of their
//! stripe, and are computed as if zeros followed the shorter cells. The native coder is
//! `isal-cauchy`: the policy RS-6-3 is `isal-cauchy:k=6,m=3`. This module reads and writes the
//! block files alone, without the checksums that a data node keeps in files beside them.

use std::path::PathBuf;

use paritas::Code;
use paritas_store::error::{Error, Result};
use paritas_store::shown::counted;

use crate::foreign::layout::{FragmentLayout, Last};
use crate::foreign::plain::{lengths, names, numbered, with_numbers};
use crate::foreign::{ExportPlan, ForeignFormat, Hints, Survey, data_nodes, unmeant, word};

/// Number of bytes of a cell in HDFS's own policies.
const CELL: u64 = 1 << 20;

pub(super) struct Hdfs;

impl ForeignFormat for Hdfs {
    fn fragments_among(&self, files: Vec<PathBuf>) -> Vec<PathBuf> {
        with_numbers(files)
    }

    fn survey(&self, files: &[PathBuf], hints: &Hints) -> Result<Survey> {
        let code = hints.required_code()?;
        let k = data_nodes(&code)?;
        let (name, files) = numbered(files, code.node_count())?;
        let length = match hints.length {
            Some(length) => length,
            None => data_length(&files, k)?,
        };
        let layout = layout(&code, k, length, hints)?;
        Ok(Survey { layout, code, name, header: 0, packet: None, files, warning: None })
    }

    fn plan(&self, code: &Code, name: &str, length: u64, hints: &Hints) -> Result<ExportPlan> {
        let layout = layout(code, data_nodes(code)?, length, hints)?;
        Ok(ExportPlan { layout, packet: None, files: names(name, code), others: Vec::new() })
    }
}

fn layout(code: &Code, k: usize, length: u64, hints: &Hints) -> Result<FragmentLayout> {
    let cell = hints.cell.unwrap_or(CELL);
    if cell == 0 {
        return Err(Error::parameters("a cell must have at least 1 byte; got 0"));
    }
    let word = word(code);
    if !cell.is_multiple_of(word) {
        return Err(unmeant(
            &["cell"],
            &format!("must be a whole number of words of {}; got {cell}", counted(word, "byte")),
        ));
    }
    let layout = FragmentLayout { k, length, cell, last: Last::Ragged };
    let parity = layout.parity_length();
    if !parity.is_multiple_of(word) {
        return Err(Error::parameters(format!(
            "parity of HDFS must be a whole number of words of {}, but that of a file of {} has {}; \
             use a code with w = 8",
            counted(word, "byte"),
            counted(length, "byte"),
            counted(parity, "byte")
        )));
    }
    Ok(layout)
}

/// Returns the total length of the data fragments, which is the length of the file.
fn data_length(files: &[Option<PathBuf>], k: usize) -> Result<u64> {
    let all: Option<Vec<u64>> = lengths(&files[..k])?.into_iter().collect();
    let all = all.ok_or_else(|| {
        Error::parameters(
            "a data fragment is missing, so the length of the file is unknown; give it as `length`",
        )
        .naming(&["length"])
    })?;
    let sum = all.iter().try_fold(0_u64, |sum, &length| sum.checked_add(length));
    sum.ok_or_else(|| Error::parameters("the data fragments are longer than any file together"))
}
