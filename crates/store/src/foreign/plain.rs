//! Plain fragments: `NAME.0`, `NAME.1`, …, each a contiguous part of the file or parity.
//!
//! This is what the simple encoder among the examples of klauspost/reedsolomon writes
//! (github.com/klauspost/reedsolomon, `examples/simple-encoder.go`): `Split` cuts a file into k
//! equal parts and pads the last with zeros. The fragments tell neither k nor the file's length:
//! without a given one, the padding is taken for a part of the file.

use std::ffi::OsString;
use std::path::PathBuf;

use paritas::Code;

use crate::error::{Error, Result};
use crate::foreign::layout::{Last, Layout};
use crate::foreign::{
    Foreign, Hints, Plan, Survey, by_number, data_nodes, expect_family, file_name, not_recognised,
};

pub(super) struct Plain {
    /// The one family, if there is only one.
    pub family: Option<&'static str>,
}

impl Foreign for Plain {
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
                "{k} data fragments of {part} bytes hold {most} bytes, not {length}"
            )));
        }
        let layout = Layout { k, length, cell: part.max(1), last: Last::Even(part.max(1)) };
        let warning = hints.length.is_none().then(|| {
            format!(
                "these fragments do not tell the length of the file: all {most} bytes are kept, with \
                 the zeros that pad the last ones, if any; give the length (--length) to leave them out"
            )
        });
        Ok(Survey { code, name, layout, header: 0, packet: None, files, warning })
    }

    fn plan(&self, code: &Code, name: &str, length: u64, _: &Hints) -> Result<Plan> {
        self.expect_family(code)?;
        let k = data_nodes(code)?;
        // Whole words in every fragment.
        let word = code.symbols().map_or(1, |symbols| u64::from(symbols.field().width()) / 8);
        let cell = length.div_ceil(k as u64).next_multiple_of(word).max(word);
        let layout = Layout { k, length, cell, last: Last::Even(cell) };
        Ok(Plan { layout, packet: None, files: names(name, code), others: Vec::new() })
    }
}

impl Plain {
    fn expect_family(&self, code: &Code) -> Result<()> {
        self.family.map_or(Ok(()), |family| expect_family(code, &[family]))
    }
}

/// Names without headers.
pub(super) fn names(name: &str, code: &Code) -> Vec<(String, Vec<u8>)> {
    (0..code.node_count()).map(|number| (format!("{name}.{number}"), Vec::new())).collect()
}

/// Reads the numbers of `NAME.<i>`; all have one name.
pub(super) fn numbered(
    files: &[PathBuf],
    count: usize,
) -> Result<(OsString, Vec<Option<PathBuf>>)> {
    let mut found: Option<&str> = None;
    let mut numbered = Vec::new();
    for path in files {
        let parsed = file_name(path).rsplit_once('.');
        let Some((name, number)) = parsed.and_then(|(n, i)| Some((n, i.parse().ok()?))) else {
            return Err(not_recognised(path, "fragments are called NAME.<i>"));
        };
        if *found.get_or_insert(name) != name {
            return Err(not_recognised(
                path,
                "fragments of two files are given; name those of one",
            ));
        }
        numbered.push((number, path.clone()));
    }
    Ok((found.unwrap_or_default().into(), by_number(count, numbered)?))
}

/// The length of the fragments, of which those that are at hand must have the same.
fn common_length(files: &[Option<PathBuf>]) -> Result<u64> {
    let lengths = lengths(files)?;
    let mut found = lengths.iter().flatten();
    let first = found.next().copied().unwrap_or(0);
    match found.find(|&&length| length != first) {
        None => Ok(first),
        Some(other) => Err(Error::parameters(format!(
            "fragments have {first} and {other} bytes; all have the same unless they are damaged: \
             leave those out"
        ))),
    }
}

/// The lengths of the files that are at hand.
pub(super) fn lengths(files: &[Option<PathBuf>]) -> Result<Vec<Option<u64>>> {
    let length = |path: &PathBuf| match path.metadata() {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) => Err(Error::io("reading", path, &error)),
    };
    files.iter().map(|path| path.as_ref().map(length).transpose()).collect()
}
