//! Blaum-Roth codes: minimal-density RAID-6 for w + 1 an odd prime.
//!
//! Blaum and Roth, *On lowest density MDS codes* (IEEE Transactions on Information Theory, 1999).
//! Let p = w + 1 be prime. Number the rows of a column from 1 to w, and give column j > 0 a row 0
//! that is not stored: the XOR of its rows j and j / 2, where halving is modulo p. Row r of Q is
//! then the XOR of row r + j modulo p of every column j, a diagonal. So in X_j each row has a
//! single one, except row p - j, which has two, in columns j and j / 2. X_0 is the identity.
//!
//! With k < w the code has the first k blocks. The numbers are those of Jerasure's `blaum_roth`,
//! which accepts any w. If w + 1 is not prime, some losses of two nodes are unrecoverable, so such
//! w are refused here.

use crate::define::bitmatrix::BitMatrix;
use crate::define::code::Code;
use crate::define::families::array::Sizes;
use crate::define::families::{Family, density, rebuild_fixed};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::Result;

pub(super) const FAMILY: Family = Family {
    name: "blaum-roth",
    summary: "Blaum-Roth codes: RAID-6 with the fewest ones, w + 1 prime, as Jerasure",
    limits: "m = 2, 1 <= k <= w, w + 1 an odd prime up to 257 (default: the smallest that fits)",
    example: "blaum-roth:k=6",
    define,
    rebuild: |spec, pin| rebuild_fixed(spec, pin, define),
};

const SIZES: Sizes = Sizes { key: "w", less: 1, spare: 1 };

fn define(spec: &Spec) -> Result<Code> {
    let (k, p) = SIZES.read(spec)?;
    let pin = Pin::new().with("prime", [p as u64]);
    density::code(SIZES.spec(FAMILY.name, k, p), pin, &blocks(k, p))
}

fn blocks(k: usize, p: usize) -> Vec<BitMatrix> {
    let block = |j: usize| {
        let half = if j.is_multiple_of(2) { j / 2 } else { (j + p) / 2 };
        let shifted = (1..p).filter(|r| r + j != p).map(|r| (r, (r + j) % p));
        let folded = [(p - j, j), (p - j, half)].into_iter().filter(|_| j > 0);
        density::block(p - 1, shifted.chain(folded).map(|(r, c)| (r - 1, c - 1)))
    };
    (0..k).map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::families::density::tests::{assert_densest, is_mds};

    #[test]
    fn any_two_losses_with_the_fewest_ones() {
        for p in [3, 5, 7, 11, 13, 17, 31] {
            assert_densest(&blocks(p - 1, p));
        }
    }

    #[test]
    fn without_a_prime_it_would_not_do() {
        for p in [9, 15, 21] {
            assert!(!is_mds(&blocks(p - 1, p)), "p = {p}");
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            (
                "blaum-roth:k=4,w=7",
                "w + 1 must be an odd prime up to 257, and for k = 4 at least 5; use w = 6",
            ),
            ("blaum-roth:k=7,w=7", "use w = 10"),
            ("blaum-roth:k=7,w=6", "use w = 10"),
            (&format!("blaum-roth:k=3,w={}", usize::MAX), "use w = 256"),
            ("blaum-roth:k=0", "k must be from 1 to 256; got"),
            ("blaum-roth:k=257", "k must be from 1 to 256; got"),
        ] {
            let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }
}
