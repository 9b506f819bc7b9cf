//! Fuzzes texts of bit matrices: reading never panics; what is read prints back equal, and so does
//! its spec; a code that is made of it survives the loss of every single node.

#![no_main]

use libfuzzer_sys::fuzz_target;
use paritas::code::ParityMatrix;
use paritas::erasure::survival;
use paritas::{Code, Spec};

/// Larger matrices are read and printed, but not made codes of.
const MAX_CELLS: usize = 512;

fuzz_target!(|text: &str| {
    let Ok(matrix) = text.parse::<ParityMatrix>() else { return };
    let again: ParityMatrix = matrix.to_string().parse().expect("what prints is read");
    assert_eq!(again, matrix);
    let spec: Spec = matrix.spec().to_string().parse().expect("what prints is read");
    assert_eq!(spec, matrix.spec());
    if (matrix.k() + matrix.m()) * matrix.w() > MAX_CELLS {
        return;
    }
    let (of_text, of_spec) = (Code::from_matrix(&matrix), Code::new(&spec));
    assert_eq!(of_text.is_ok(), of_spec.is_ok());
    if let Ok(code) = of_spec {
        assert_eq!(code.parity_matrix(), Some(matrix));
        let losses = survival(&code, code.tolerance(), 100);
        assert!(code.tolerance() > 0 && losses.survived == losses.tried);
    }
});
