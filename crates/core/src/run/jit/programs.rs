//! Programs over words for the tests of compiled code, and test bytes for any program.

use crate::define::code::Code;
use crate::define::field::Field;
use crate::plan::chance::Chance;
use crate::plan::machine::LINE;
use crate::plan::products::CoefficientRows;
use crate::plan::program::{CellLocation, Program};
use crate::run::jit::isa::Isa;

/// Lines of every cell of words that a run covers. With this many, each byte of 4-byte words is
/// looked up in a table 256 times.
pub(super) const LINES_OF_WORDS: usize = 16;

/// Returns a stream of random bytes, which depends only on the seed.
pub(super) fn random_bytes(seed: u64) -> impl FnMut() -> u8 {
    let mut stream = Chance::new(seed);
    move || (stream.bits() >> 56) as u8
}

/// Makes a program of sums of products, inputs first in the buffers. The last `replaced` inputs lie
/// in the same places as the outputs of the same numbers.
pub(super) fn of_rows(rows: &CoefficientRows, replaced: usize, isa: Isa) -> Program {
    let schedule = rows.schedule(isa.target().machine).unwrap();
    let at = |buffer| CellLocation { buffer, row: 0 };
    let first = rows.inputs - replaced;
    let buffers = first + rows.coefficients.len();
    let (inputs, outputs) =
        ((0..rows.inputs).map(at).collect(), (first..buffers).map(at).collect());
    Program::new(schedule, inputs, outputs, vec![1; buffers], LINE).unwrap()
}

/// The parity of a code over words.
pub(super) fn parity(spec: &str) -> CoefficientRows {
    let code = Code::new(&spec.parse().unwrap()).unwrap();
    let symbols = code.symbols().unwrap();
    CoefficientRows {
        field: symbols.field(),
        inputs: symbols.data_nodes(),
        coefficients: symbols.parity().to_vec(),
    }
}

/// New parity from the old and new contents of data node 0 and the old parity.
fn updated_parity(spec: &str) -> CoefficientRows {
    let CoefficientRows { field, coefficients, .. } = parity(spec);
    let outputs = coefficients.len();
    let row = |(output, row): (usize, &Vec<u32>)| {
        let old = (0..outputs).map(|n| u32::from(n == output));
        [row[0]; 2].into_iter().chain(old).collect()
    };
    let coefficients = coefficients.iter().enumerate().map(row).collect();
    CoefficientRows { field, inputs: 2 + outputs, coefficients }
}

/// Programs of codes over words of each length: with many products, with few, and with only
/// doublings; updates in place; outputs that are zero or a copy of an input.
pub(super) fn programs_of_words(isa: Isa) -> Vec<(String, Program)> {
    let encoded = [
        "isal-cauchy:k=10,m=4",
        "isal-cauchy:k=3,m=7",
        "backblaze:k=6,m=3",
        "raid6:k=9",
        "raid6:k=9,w=16",
        "raid6:k=9,w=32",
        "reed-solomon:k=3,m=2,w=16",
        "reed-solomon:k=3,m=2,w=32",
        "reed-solomon:k=12,m=3,w=16",
    ];
    let encoded = encoded.map(|spec| (spec.to_owned(), of_rows(&parity(spec), 0, isa)));
    let updated = [
        "isal-cauchy:k=10,m=4",
        "raid6:k=9",
        "raid6:k=9,w=32",
        "reed-solomon:k=3,m=2,w=16",
        "reed-solomon:k=3,m=2,w=32",
    ];
    let updated = updated.map(|spec| {
        let rows = updated_parity(spec);
        (format!("an update of {spec}"), of_rows(&rows, rows.coefficients.len(), isa))
    });
    let trivial = [8, 16, 32].map(|width| {
        let coefficients = vec![vec![0, 0, 0], vec![0, 1, 0], vec![2, 0, 7], vec![1, 1, 0]];
        let rows = CoefficientRows { field: Field::new(width).unwrap(), inputs: 3, coefficients };
        (format!("zeros and ones, w={width}"), of_rows(&rows, 0, isa))
    });
    encoded.into_iter().chain(updated).chain(trivial).collect()
}
