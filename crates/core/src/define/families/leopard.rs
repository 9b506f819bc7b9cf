//! Leopard's codes, in the word layout: the bytes of catid's Leopard and of klauspost/reedsolomon
//! with `WithLeopardGF`.
//!
//! A byte is an element of GF(2^8) with the polynomial 0x11D, written over Cantor's basis
//! ([`Field::cantor`]). With L the smallest power of two that is at least m, parity node i has the
//! point i and data node j the point L + j. The parity is that of the polynomials of degree below
//! n - L that are zero at the points from L + k on, where n is the number of points
//! (Sian-Jheng Lin, Tareq Y. Al-Naffouri and Yunghsiang S. Han, *FFT algorithm for binary extension
//! finite fields and its application to Reed-Solomon codes*, 2016). So the coefficient of data node
//! j in parity node i is
//!
//! ```text
//! ((L + j) / L) / (i xor (L + j))        (the dividend is a number, rounded down)
//! ```
//!
//! as in long codes ([`crate::define::long`]), over another field.

use crate::define::code::Code;
use crate::define::evaluation::Evaluation;
use crate::define::families::{Family, rebuild_fixed, words};
use crate::define::field::Field;
use crate::define::spec::Spec;
use crate::define::symbols::SymbolMatrix;
use crate::error::{Error, Result};

/// Leopard's code over GF(2^16), which is a long code ([`crate::define::long`]).
pub(super) const LEOPARD16: &str = "leopard16";

pub(super) const LEOPARD8: Family = Family {
    name: "leopard8",
    summary: "the bytes of Leopard and klauspost/reedsolomon's WithLeopardGF, up to 256 points",
    limits: "k >= 1, m >= 1, k + (m rounded up to a power of two) <= 256; words of 8 bits. For up to 65536 points, leopard16 is a long code of the library (paritas::long)",
    example: "leopard8:k=128,m=128",
    define: |spec| build(spec),
    rebuild: |spec, pin| rebuild_fixed(spec, pin, build),
};

fn build(spec: &Spec) -> Result<Code> {
    let (k, m) = words::read(spec)?;
    let start = m.next_power_of_two();
    if start + k > words::MAX_NODES {
        return Err(Error::parameters(format!(
            "{spec}: k plus m rounded up to a power of two must be at most {}; got k = {k} and \
             {start}; {}, or leopard16 of the Rust library",
            words::MAX_NODES,
            match words::MAX_NODES.saturating_sub(start) {
                0 => format!("use m up to {}", words::MAX_NODES / 2),
                most => format!("for m = {m} use k up to {most}"),
            }
        )));
    }
    let field = Field::cantor();
    let coefficient = |row: usize, column: usize| {
        let point = start + column;
        let inverse = field.inverse((row ^ point) as u32).unwrap_or(0);
        field.multiply((point / start) as u32, inverse)
    };
    let row = |row| (0..k).map(|column| coefficient(row, column)).collect();
    let matrix = SymbolMatrix::new(field, k, (0..m).map(row).collect())?;
    let matrix = matrix.evaluated(Evaluation::parity_first(k, m));
    words::code_of(matrix, Spec::new(spec.family()).with("k", k).with("m", m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::pin::Pin;

    #[test]
    fn the_pin_and_the_limits_are_checked() {
        let code = |text: &str| Code::new(&text.parse().unwrap());
        let widest = code("leopard8:k=128,m=128").unwrap();
        assert!(Code::rebuild(widest.spec(), widest.pin()).is_ok());
        assert!(Code::rebuild(widest.spec(), &Pin::new()).is_err());
        let error = code("leopard8:k=200,m=56").unwrap_err().to_string();
        assert!(error.contains("for m = 56 use k up to 192"), "{error}");
        assert!(error.contains("leopard16 of the Rust library"), "{error}");
        let error = code("leopard16:k=192,m=56").unwrap_err().to_string();
        assert!(error.contains("no code family `leopard16`"), "{error}");
        assert!(error.ends_with("which only the Rust library has"), "{error}");
        assert!(code("leopard8:k=192,m=56").is_ok() && code("leopard8:k=255,m=1").is_ok());
        assert!(code("leopard8:k=1,m=129").unwrap_err().to_string().contains("; use m up to 128"));
    }

    #[test]
    fn one_parity_node_is_the_sum_of_the_data() {
        let code = Code::new(&"leopard8:k=9,m=1".parse().unwrap()).unwrap();
        assert_eq!(code.symbols().unwrap().parity(), [vec![1; 9]]);
    }
}
