//! Plain fragments: `NAME.0`, `NAME.1`, …. Each fragment is a contiguous part of the file, or
//! parity.
//!
//! The simple encoder among the examples of klauspost/reedsolomon writes them
//! (github.com/klauspost/reedsolomon, `examples/simple-encoder.go`): `Split` cuts a file into k
//! equal parts and pads the last with zeros. The fragments state neither k nor the file's length.
//! If the user gives no length, the padding counts as a part of the file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use paritas::Code;
use paritas_store::error::{Error, Result};

use crate::foreign::layout::{FragmentLayout, Last};
use crate::foreign::{
    ExportPlan, ForeignFormat, Hints, Survey, by_number, data_nodes, expect_family, file_name,
    not_recognised, word,
};

pub(super) struct Plain {
    /// The only family, if the format takes only one.
    pub family: Option<&'static str>,
}

impl ForeignFormat for Plain {
    fn fragments_among(&self, files: Vec<PathBuf>) -> Vec<PathBuf> {
        with_numbers(files)
    }

    fn survey(&self, files: &[PathBuf], hints: &Hints) -> Result<Survey> {
        let code = hints.required_code()?;
        self.expect_family(&code)?;
        let k = data_nodes(&code)?;
        let (name, files) = numbered(files, code.node_count())?;
        let part = common_length(&files)?;
        let most = part.saturating_mul(k as u64);
        let length = hints.length.unwrap_or(most);
        if length > most {
            return Err(Error::parameters(format!(
                "the length must be at most {most} bytes, as {k} data fragments of {part} bytes \
                 hold; got {length}"
            )));
        }
        let layout = FragmentLayout { k, length, cell: part.max(1), last: Last::Even(part.max(1)) };
        let warning = hints.length.is_none().then(|| {
            format!(
                "these fragments do not tell the length of the file: all {most} bytes are kept, with \
                 any zeros that pad the end; `length` leaves the padding out"
            )
        });
        Ok(Survey { code, name, layout, header: 0, packet: None, files, warning })
    }

    fn plan(&self, code: &Code, name: &str, length: u64, _: &Hints) -> Result<ExportPlan> {
        self.expect_family(code)?;
        let k = data_nodes(code)?;
        // Every fragment is a whole number of words.
        let word = word(code);
        let cell = length.div_ceil(k as u64).next_multiple_of(word).max(word);
        let layout = FragmentLayout { k, length, cell, last: Last::Even(cell) };
        Ok(ExportPlan { layout, packet: None, files: names(name, code), others: Vec::new() })
    }
}

impl Plain {
    fn expect_family(&self, code: &Code) -> Result<()> {
        self.family.map_or(Ok(()), |family| expect_family(code, &[family]))
    }
}

/// Returns the names of all fragments, without headers.
pub(super) fn names(name: &str, code: &Code) -> Vec<(String, Vec<u8>)> {
    (0..code.node_count()).map(|number| (format!("{name}.{number}"), Vec::new())).collect()
}

/// Returns the files that are named as fragments are, or all if none is.
pub(super) fn with_numbers(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let (named, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|path| name_and_number(path).is_some());
    if named.is_empty() { others } else { named }
}

/// Reads the name of a fragment's file: `NAME.<i>`.
fn name_and_number(path: &Path) -> Option<(&str, usize)> {
    let (name, number) = file_name(path).rsplit_once('.')?;
    Some((name, number.parse().ok()?))
}

/// Reads the name that all `files` have in common, and their numbers: they are called `NAME.<i>`.
pub(super) fn numbered(
    files: &[PathBuf],
    count: usize,
) -> Result<(OsString, Vec<Option<PathBuf>>)> {
    let mut found: Option<&str> = None;
    let mut numbered = Vec::new();
    for path in files {
        let Some((name, number)) = name_and_number(path) else {
            return Err(not_recognised(path, "the name of a fragment must be NAME.<i>"));
        };
        if *found.get_or_insert(name) != name {
            return Err(not_recognised(
                path,
                "fragments of two files are given; give those of one file",
            ));
        }
        numbered.push((number, path.clone()));
    }
    Ok((found.unwrap_or_default().into(), by_number(count, numbered)?))
}

/// Returns the length of the fragments, which must be the same for all that are at hand.
fn common_length(files: &[Option<PathBuf>]) -> Result<u64> {
    let lengths = lengths(files)?;
    let mut found = lengths.iter().flatten();
    let first = found.next().copied().unwrap_or(0);
    match found.find(|&&length| length != first) {
        None => Ok(first),
        Some(other) => Err(Error::parameters(format!(
            "fragments must have equal lengths; got {first} and {other} bytes; leave out damaged ones"
        ))),
    }
}

/// Returns the lengths of the files that are at hand.
pub(super) fn lengths(files: &[Option<PathBuf>]) -> Result<Vec<Option<u64>>> {
    let length = |path: &PathBuf| match path.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) => Err(Error::io("reading", path, &error)),
    };
    files.iter().map(|path| path.as_ref().map(length).transpose()).collect()
}
