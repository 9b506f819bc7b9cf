//! Delayed parity generation: m parities at once, m2 - m more later, from part of what is stored.
//!
//! S. Mousavi, T. Zhou and C. Tian, *Delayed parity generation in MDS storage codes* (ISIT 2018);
//! T. Zhou, *Erasure coding optimization for data storage* (dissertation, Texas A&M, 2020), chapter
//! 4 and appendix A. A group is m2 stripes of k data symbols. The first m stripes are encoded with
//! all m2 parities of a code C, the other m2 - m stripes with the first m parities of a code C̄. In
//! stage one, only m parities of each stripe are stored. Parity m + j of stripe i is added to
//! parity i of stripe m + j, and is stored nowhere else before stage two:
//!
//! ```text
//!                 stripe i ≤ m         stripe m + j
//!    parity i'    p(i', i)             p̄(i', m+j) + p(m+j, i')      stage one, i' ≤ m
//!    parity m+j'  p(m+j', i)           p̄(m+j', m+j)                 stage two, j' ≤ m2 - m
//! ```
//!
//! Stage two reads the data and parity of the last m2 - m stripes. Their data gives all their p̄.
//! Subtracting p̄ from their stored parity leaves exactly the parities that the first stripes lack.
//! That is (m2 - m)(k + m) symbols of k·m2, and no code reads less (theorem 1). Any m nodes may be
//! lost after stage one and any m2 after stage two: the first m stripes are plain C; once they are
//! decoded, their parities can be subtracted from the other stripes, which are then plain C̄. From
//! m2 = k + m on, no code can read less than all data. Nothing is added then, and stage two reads
//! the data.
//!
//! In `dpg` C̄ is C (the 2018 construction); in `bbdpg` the two are chosen separately.
//! `docs/dpg.md` has the proofs and a worked example.

mod base;
mod group;
mod shape;

use crate::define::code::Code;
use crate::define::families::Family;
use crate::define::families::dpg::base::Bases;
use crate::define::families::dpg::group::Group;
use crate::define::families::dpg::shape::{DpgShape, NAMES};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::Result;

pub(super) const DPG: Family = Family {
    name: NAMES[0],
    summary: "delayed parity generation: m parities at once, m2 in all, over one base code",
    limits: "1 <= m < m2, k + m2 nodes within the base's limit; base=FAMILY (default: cauchy) and its parameters; interleave=none|first|all",
    example: "dpg:k=6,m=2,m2=4",
    define,
    rebuild,
};

pub(super) const BBDPG: Family = Family {
    name: NAMES[1],
    summary: "delayed parity generation over two base codes, the second for the stripes that are read",
    limits: "as dpg; bar=FAMILY (default: base) and its parameters, each with bar- before it, where they differ from the base's",
    example: "bbdpg:k=6,m=2,m2=4",
    define,
    rebuild,
};

fn define(spec: &Spec) -> Result<Code> {
    let shape = DpgShape::read(spec)?;
    code(spec, shape, &Bases::define(spec, shape)?)
}

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    let shape = DpgShape::read(spec)?;
    code(spec, shape, &Bases::rebuild(spec, shape.k, shape.m2, pin)?)
}

/// Returns the code of a group over its base codes.
fn code(spec: &Spec, shape: DpgShape, bases: &Bases) -> Result<Code> {
    shape.expect_size(spec, bases.width())?;
    let mut builder = Group { shape, c: bases.c(), bar: bases.bar() }.build();
    builder.lane_rows(bases.width()).pin(bases.pin());
    let DpgShape { k, m, m2, interleave } = shape;
    let sizes = Spec::new(spec.family()).with("k", k).with("m", m).with("m2", m2);
    builder.finish(bases.write(sizes).with("interleave", interleave.name()), m2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(spec: &str) -> Result<Code> {
        Code::new(&spec.parse()?)
    }

    #[test]
    fn specs_are_canonical() {
        for (spec, canonical) in [
            ("dpg:k=6,m=2,m2=4", "dpg:k=6,m=2,m2=4,base=cauchy,w=4,interleave=none"),
            ("bbdpg:k=6,m=2,m2=4", "bbdpg:k=6,m=2,m2=4,base=cauchy,w=4,interleave=none"),
            (
                "bbdpg:interleave=all,k=3,m2=3,m=2,w=8,base=cauchy,bar=cauchy",
                "bbdpg:k=3,m=2,m2=3,base=cauchy,w=8,interleave=all",
            ),
            (
                "bbdpg:k=2,m=1,m2=2,w=3,points=7.1.0.4,bar-points=1.2.3.4",
                "bbdpg:k=2,m=1,m2=2,base=cauchy,w=3,points=7.1.0.4,bar-points=1.2.3.4,interleave=none",
            ),
            (
                "bbdpg:k=4,m=1,m2=2,base=rdp,bar=evenodd,interleave=first",
                "bbdpg:k=4,m=1,m2=2,base=rdp,p=5,bar=evenodd,bar-p=5,interleave=first",
            ),
            (
                "dpg:k=4,m=1,m2=2,base=raid6",
                "dpg:k=4,m=1,m2=2,base=raid6,w=8,layout=words,interleave=none",
            ),
        ] {
            let code = code(spec).unwrap();
            assert_eq!(code.spec().to_string(), canonical);
            assert_eq!(Code::new(code.spec()).unwrap().spec(), code.spec());
            let again = Code::rebuild(code.spec(), code.pin()).unwrap();
            let describe = |code: &Code| {
                let mut bytes = Vec::new();
                code.describe(|part| bytes.extend_from_slice(part));
                bytes
            };
            assert_eq!((again.spec(), again.pin()), (code.spec(), code.pin()));
            assert_eq!(describe(&again), describe(&code));
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("dpg:k=6,m=2", "m2 is missing"),
            ("dpg:k=6,m=4,m2=4", "use m2 = 5"),
            ("dpg:k=6,m=0,m2=4", "at least 1; got k = 6 and m = 0"),
            ("dpg:k=0,m=1,m2=2", "at least 1; got k = 0 and m = 1"),
            ("dpg:k=9223372036854775807,m=1,m2=2", "= over 18446744073709551615 bits"),
            ("dpg:k=6,m=2,m2=4,interleave=some", "must be none, first or all; got some"),
            ("dpg:k=6,m=2,m2=4,w=3", "use w = 4"),
            ("dpg:k=6,m=2,m2=4,bar=cauchy", "no parameter bar"),
            ("dpg:k=6,m=2,m2=4,base=couchy", "couchy"),
            ("dpg:k=6,m=2,m2=4,base=rdp", "rdp has 2 parity nodes, not m2 = 4"),
            ("dpg:k=2,m=1,m2=2,base=matrix,w=1,rows=c.c", "survives any 1 losses, not m2 = 2"),
            ("dpg:k=5,m=1,m2=2,base=xcode,n=7", "xcode"),
            ("dpg:k=4,m=1,m2=2,base=dpg", "cannot be the base"),
            ("bbdpg:k=4,m=1,m2=2,bar=rdp", "3 rows a node and 4"),
            ("bbdpg:k=4,m=1,m2=2,base=rdp,bar-w=4", "no parameter w"),
            ("dpg:k=1,m=1,m2=18446744073709551615", "more than"),
            ("dpg:k=1,m=1,m2=50000", "dpg:k=1,m=1,m2=50000: the bit matrix of a group has"),
            ("dpg:k=100,m=4,m2=90", "k·m2²·w² = 51840000 bits with w = 8, more than"),
        ] {
            let error = code(spec).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }

    #[test]
    fn pins_of_other_codes_are_refused() {
        let code = code("bbdpg:k=4,m=1,m2=2,w=3").unwrap();
        let half = Code::new(&"dpg:k=4,m=1,m2=2,w=3".parse().unwrap()).unwrap();
        let error = Code::rebuild(code.spec(), half.pin()).unwrap_err().to_string();
        assert!(error.contains("polynomial"), "{error}");
    }
}
