//! Liberation codes: minimal-density RAID-6 for w an odd prime.
//!
//! Plank, *The RAID-6 Liberation Codes* (FAST 2008), section 3. X_0 is the identity. X_j is the
//! identity rotated by j columns, so row i has its one in column i + j, with an additional one in
//! row y = j(w - 1)/2, column y + j - 1. Rows and columns are modulo w. For w prime and k ≤ w any
//! two losses are recoverable, and Q has kw + k - 1 ones, the fewest possible.
//!
//! With composite w the sum of two blocks may be singular, so such w are refused; Jerasure's
//! library accepts them. With k < w the code has the first k blocks, as in Jerasure.

use crate::define::bitmatrix::BitMatrix;
use crate::define::code::Code;
use crate::define::families::array::Sizes;
use crate::define::families::{Family, density, rebuild_fixed};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "liberation",
    summary: "Liberation codes: RAID-6 with the fewest ones, w prime, as Jerasure",
    limits: "m = 2, 1 <= k <= w, w an odd prime up to 257 (default: the smallest that fits)",
    example: "liberation:k=7",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

const SIZES: Sizes = Sizes { key: "w", less: 0, spare: 0 };

fn define(spec: &Spec) -> Result<Code> {
    let (k, w) = SIZES.read(spec)?;
    let pin = Pin::new().with("prime", [w as u64]);
    density::code(SIZES.spec(FAMILY.name, k, w), pin, &blocks(k, w))
}

fn blocks(k: usize, w: usize) -> Vec<BitMatrix> {
    let block = |j: usize| {
        let y = j * (w - 1) / 2 % w;
        let extra = (j > 0).then(|| (y, (y + j + w - 1) % w));
        density::block(w, (0..w).map(|i| (i, (i + j) % w)).chain(extra))
    };
    (0..k).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::families::density::tests::{assert_densest, is_mds};

    #[test]
    fn any_two_losses_with_the_fewest_ones() {
        for w in [3, 5, 7, 11, 13, 17, 31] {
            assert_densest(&blocks(w, w));
        }
    }

    #[test]
    fn composite_widths_would_not_do() {
        for w in [9, 15, 21] {
            assert!(!is_mds(&blocks(w, w)), "w = {w}");
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            (
                "liberation:k=4,w=9",
                "w must be an odd prime up to 257, and for k = 4 at least 5; use w = 7",
            ),
            ("liberation:k=8,w=9", "use w = 11"),
            ("liberation:k=8,w=7", "use w = 11"),
            ("liberation:k=2,w=2", "use w = 3"),
            ("liberation:k=3,w=18446744073709551615", "use w = 257"),
            ("liberation:k=0", "k must be from 1 to 257; got"),
            ("liberation:k=258", "k must be from 1 to 257; got"),
            ("liberation:k=3,m=2", "no parameter m"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }
}
