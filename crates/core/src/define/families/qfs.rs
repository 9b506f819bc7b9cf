//! QFS: triple parity by powers of two and of four.
//!
//! The triple-parity Reed-Solomon code of the Quantcast File System (Ovsiannikov et al., *The
//! Quantcast File System*, VLDB 2013), an extension of RAID-6. Data symbol j has the coefficient 1
//! in the first parity, 2^j in the second and 4^j = (2^j)^2 in the third. The points 2^j are
//! distinct for j < 2^w - 1, and so are their squares. So every square submatrix is a Vandermonde
//! matrix, of the points or of their squares, with columns scaled: any three nodes may be lost.
//!
//! Symbols are stored as packets, so the third parity, too, needs only XORs. QFS itself stores
//! words in blocks of its own; this family has its matrix, not its files.

use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::families::Family;
use crate::define::field::{Field, elements};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::{SymbolMatrix, expect_size};
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: "qfs",
    summary: "triple parity by powers of 1, 2 and 4, as QFS; in packets",
    limits: "m = 3, 1 <= k <= 2^w - 1, w from 2 to 32 (default: 8)",
    example: "qfs:k=6",
    define,
    rebuild,
};

const DEFAULT_WIDTH: usize = 8;
const PARITIES: usize = 3;

fn define(spec: &Spec) -> Result<Code> {
    let (k, w) = read(spec)?;
    code(Field::new(w as u32)?, k)
}

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    let (k, w) = read(spec)?;
    code(Field::with_polynomial(w as u32, pin.one("polynomial")?)?, k)
}

fn read(spec: &Spec) -> Result<(usize, usize)> {
    spec.allow(&["k", "w"])?;
    let (k, w) = (spec.required("k")?, spec.number("w")?.unwrap_or(DEFAULT_WIDTH));
    if !(2..=32).contains(&w) {
        let message = format!("{spec}: w must be from 2 to 32; got {w}");
        return Err(Error::parameters(message));
    }
    let most = elements(w) - 1;
    if !(1..=most).contains(&k) {
        let wider = (w + 1..=32).find(|&w| (1..elements(w)).contains(&k));
        let hint = wider.map(|w| format!("; or use w = {w}")).unwrap_or_default();
        return Err(Error::parameters(format!(
            "{spec}: k must be from 1 to {most}, because the powers of two repeat; got {k}{hint}"
        )));
    }
    expect_size(k, PARITIES, w)?;
    Ok((k, w))
}

fn code(field: Field, k: usize) -> Result<Code> {
    let powers = |base: u32| -> Vec<u32> {
        let next = |&power: &u32| Some(field.multiply(power, base));
        std::iter::successors(Some(1), next).take(k).collect()
    };
    let two = powers(2);
    if two[1..].contains(&1) {
        return Err(Error::parameters(format!(
            "with the polynomial {:#x} the powers of two repeat before {k}",
            field.polynomial()
        )));
    }
    let rows = vec![vec![1; k], two, powers(field.multiply(2, 2))];
    let mut builder = CodeBuilder::new(k + PARITIES);
    builder.symbols(&SymbolMatrix::new(field, k, rows)?);
    builder.pin(Pin::new().with("polynomial", [field.polynomial()]));
    let spec = Spec::new(FAMILY.name).with("k", k).with("w", field.width());
    builder.finish(spec, PARITIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("qfs:k=256", "got 256; or use w = 9"),
            ("qfs:k=0", "k must be from 1 to 255"),
            ("qfs:k=8,w=3", "got 8; or use w = 4"),
            ("qfs:k=1,w=1", "w must be from 2 to 32; got"),
            ("qfs:k=8,w=33", "w must be from 2 to 32; got"),
            ("qfs:k=4294967295,w=32", "more than"),
            ("qfs:k=8,m=3", "no parameter m"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }

    /// 0x11B is irreducible, but 2 generates only 51 of its elements.
    #[test]
    fn a_pinned_polynomial_must_serve() {
        let rebuild = |k: usize| {
            let pin = Pin::new().with("polynomial", [0x11B]);
            Code::rebuild(&Spec::new("qfs").with("k", k), &pin)
        };
        assert!(rebuild(51).is_ok());
        assert!(rebuild(52).unwrap_err().to_string().contains("repeat before 52"));
    }
}
