//! RAID-6: P, the XOR of the data, and Q, the sum of data times powers of two.
//!
//! H. Peter Anvin, *The mathematics of RAID-6* (2004 to 2011), as in Linux's md and dm-raid (with w
//! = 8), ISA-L's `raid6` (w = 8) and Jerasure's `reed_sol_r6_op` (w = 8, 16 and 32). Let 2 generate
//! the field's nonzero elements. Its powers 2^0 to 2^(k-1) are then distinct for k ≤ 2^w - 1. Two
//! lost data symbols x and y are solved from x + y and 2^x·x + 2^y·y; any other two losses are
//! easier.
//!
//! In the word layout ([`layout=words`](super)) a kernel computes Q by Horner's rule; each step
//! doubles all words of a register at once. In the packet layout Q's block for data node j is the
//! bit matrix of 2^j, at any w up to 32. Doubling is cheap there too, because it shifts rows.

use crate::define::builder::CodeBuilder;
use crate::define::code::Code;
use crate::define::families::Family;
use crate::define::field::{Field, elements};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::{SymbolMatrix, WORD_WIDTHS, expect_size};
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: "raid6",
    summary: "P + Q by powers of two, as Linux RAID-6",
    limits: "m = 2, 1 <= k <= 2^w - 1; layout=words with w = 8 (the default), 16 or 32, or layout=packets with w <= 32",
    example: "raid6:k=6",
    define,
    rebuild,
};

/// Default width of a word, in bits.
const DEFAULT_WIDTH: usize = 8;

/// How symbols are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SymbolLayout {
    Packets,
    Words,
}

struct Raid6Shape {
    k: usize,
    w: usize,
    layout: SymbolLayout,
}

fn define(spec: &Spec) -> Result<Code> {
    let shape = Raid6Shape::read(spec)?;
    let field = Field::new(shape.w as u32)?;
    shape.code(field)
}

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    let shape = Raid6Shape::read(spec)?;
    let field = Field::with_polynomial(shape.w as u32, pin.one("polynomial")?)?;
    shape.code(field)
}

impl Raid6Shape {
    fn read(spec: &Spec) -> Result<Self> {
        spec.allow(&["k", "w", "layout"])?;
        let (k, w) = (spec.required("k")?, spec.number("w")?.unwrap_or(DEFAULT_WIDTH));
        let layout = match spec.text("layout") {
            Some("words") | None => SymbolLayout::Words,
            Some("packets") => SymbolLayout::Packets,
            Some(other) => {
                let message = format!("{spec}: layout must be words or packets; got {other}");
                return Err(Error::spec(message));
            }
        };
        let shape = Self { k, w, layout };
        shape.check(spec)?;
        Ok(shape)
    }

    fn check(&self, spec: &Spec) -> Result<()> {
        let &Self { k, w, layout } = self;
        if layout == SymbolLayout::Words && !WORD_WIDTHS.contains(&w) {
            return Err(Error::parameters(format!(
                "{spec}: w must be 8, 16 or 32 in words; got {w}, for which use layout=packets"
            )));
        }
        if w == 0 || w > 32 {
            let message = format!("{spec}: w must be from 1 to 32; got {w}");
            return Err(Error::parameters(message));
        }
        let most = elements(w) - 1;
        if k == 0 || k > most {
            let wider =
                (w + 1..=32).filter(|w| layout == SymbolLayout::Packets || WORD_WIDTHS.contains(w));
            let wider = wider.filter(|_| k > 0).find(|&w| k < elements(w));
            let hint = wider.map(|w| format!("; or use w = {w}")).unwrap_or_default();
            return Err(Error::parameters(format!(
                "{spec}: k must be from 1 to {most}, because the powers of two repeat; got {k}{hint}"
            )));
        }
        expect_size(k, 2, w)
    }

    fn code(&self, field: Field) -> Result<Code> {
        let &Self { k, w, layout } = self;
        let powers = powers_of_two(field, k)?;
        let matrix = SymbolMatrix::new(field, k, vec![vec![1; k], powers])?;
        let mut builder = CodeBuilder::new(k + 2);
        builder.pin(Pin::new().with("polynomial", [field.polynomial()]));
        let layout = match layout {
            SymbolLayout::Words => {
                builder.words(matrix);
                "words"
            }
            SymbolLayout::Packets => {
                builder.symbols(&matrix);
                "packets"
            }
        };
        let spec = Spec::new(FAMILY.name).with("k", k).with("w", w).with("layout", layout);
        builder.finish(spec, 2)
    }
}

/// Returns 2^0 to 2^(k-1). They must be distinct, which a pinned polynomial that is not primitive
/// may violate.
fn powers_of_two(field: Field, k: usize) -> Result<Vec<u32>> {
    let two = if field.width() == 1 { 1 } else { 2 };
    let powers: Vec<u32> =
        std::iter::successors(Some(1), |&power| Some(field.multiply(power, two))).take(k).collect();
    if powers[1..].contains(&1) {
        return Err(Error::parameters(format!(
            "with the polynomial {:#x} the powers of two repeat before {k}",
            field.polynomial()
        )));
    }
    Ok(powers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::erasure::{Losses, combinations};

    fn code(spec: &str) -> Result<Code> {
        Code::new(&spec.parse()?)
    }

    #[test]
    fn specs_are_completed() {
        for (given, canonical) in [
            ("raid6:k=6", "raid6:k=6,w=8,layout=words"),
            ("raid6:k=6,layout=packets", "raid6:k=6,w=8,layout=packets"),
            ("raid6:k=7,layout=packets,w=3", "raid6:k=7,w=3,layout=packets"),
            ("raid6:k=300,w=16", "raid6:k=300,w=16,layout=words"),
            ("raid6:w=32,k=3", "raid6:k=3,w=32,layout=words"),
        ] {
            let code = code(given).unwrap();
            assert_eq!(code.spec().to_string(), canonical);
            let again = Code::rebuild(code.spec(), code.pin()).unwrap();
            assert_eq!((again.spec(), again.symbols()), (code.spec(), code.symbols()));
        }
    }

    #[test]
    fn two_losses_are_recoverable_at_any_width() {
        for (k, w) in [(1, 1), (3, 2), (7, 3), (10, 4), (5, 7), (4, 16), (3, 31), (3, 32)] {
            let code = code(&format!("raid6:k={k},w={w},layout=packets")).unwrap();
            for lost in combinations(k + 2, 2) {
                let lost: Vec<_> =
                    lost.into_iter().map(crate::define::cells::NodeId::new).collect();
                assert!(Losses::of_nodes(&code, &lost).is_solvable(), "k = {k}, w = {w}: {lost:?}");
            }
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("raid6:k=256", "got 256; or use w = 16"),
            ("raid6:k=0", "k must be from 1 to 255"),
            ("raid6:k=8,w=3,layout=packets", "got 8; or use w = 4"),
            ("raid6:k=8,w=4", "got 4, for which use layout=packets"),
            ("raid6:k=8,w=33,layout=packets", "w must be from 1 to 32; got 33"),
            ("raid6:k=8,layout=bytes", "layout must be words or packets; got bytes"),
            ("raid6:k=4294967295,w=32,layout=packets", "more than"),
            ("raid6:k=8,m=2", "no parameter m"),
        ] {
            let error = code(spec).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }

    /// 0x11B is irreducible, but 2 generates only 51 of its elements.
    #[test]
    fn a_pinned_polynomial_must_serve() {
        let rebuild = |k: usize, polynomial: u64| {
            let spec = Spec::new("raid6").with("k", k);
            Code::rebuild(&spec, &Pin::new().with("polynomial", [polynomial]))
        };
        assert!(rebuild(51, 0x11B).is_ok());
        assert!(rebuild(52, 0x11B).unwrap_err().to_string().contains("repeat before 52"));
        assert!(rebuild(4, 0x101).is_err());
        assert!(Code::rebuild(&Spec::new("raid6").with("k", 4), &Pin::new()).is_err());
    }
}
