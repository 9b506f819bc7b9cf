//! Delayed parity generation, from its definition: stripe by stripe, symbol by symbol.
//!
//! A group consists of m2 stripes of k data symbols. One code encodes the first m stripes, a second
//! code the others; both have m2 parities. Stage one stores k + m symbols of every stripe, stage
//! two the other m2 - m. If m2 < k + m, parity m + j of stripe i is added to parity i of stripe m +
//! j, for every i < m and j < m2 - m. Nothing here depends on cells or fields: a symbol is a
//! sequence of bytes, which can cover many groups, and the caller passes the functions that encode
//! a stripe.
//!
//! Source: Zhou, *Erasure coding optimization for data storage* (dissertation, 2020), section 4.7
//! and appendix A. Its figure 4.3 shows three layouts for (k, m, m2) = (3, 2, 3); [`Interleave`]
//! defines the rotation of stripes for all parameters.

/// Placement of symbols on nodes. Stripes and symbols count from 0; the k data symbols come first,
/// then parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// Symbol s on node s.
    None,
    /// Symbol s < k + m of stripe j on node (s + j·m) mod (k + m), others on node s.
    First,
    /// Symbol s of stripe j on node (s + j·(m2 - m)) mod (k + m2).
    All,
}

/// The sizes of a group.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Data symbols of a stripe.
    pub k: usize,
    /// Parities of stage one.
    pub m: usize,
    /// Parities of both stages, and also stripes of a group.
    pub m2: usize,
    /// The placement.
    pub interleave: Interleave,
}

/// A stored symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The stripe, from 0.
    pub stripe: usize,
    /// Its number in the stripe, from 0.
    pub symbol: usize,
    /// The stage in which it is computed: 1 or 2.
    pub stage: u8,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A function that computes m2 parity symbols from k data symbols.
pub type Encode<'a> = &'a dyn Fn(&[Vec<u8>]) -> Vec<Vec<u8>>;

/// Returns for each node its symbols in the order in which they are stored: by stage, then by
/// stripe. `data` holds the data symbols of each stripe; `first` encodes the first m stripes,
/// `last` the others.
///
/// # Panics
///
/// If `data` does not hold m2 stripes.
pub fn nodes(shape: Shape, first: Encode, last: Encode, data: &[Vec<Vec<u8>>]) -> Vec<Vec<Stored>> {
    let Shape { k, m, m2, .. } = shape;
    assert_eq!(data.len(), m2, "a group has m2 stripes");
    let mut parity: Vec<Vec<Vec<u8>>> = data.iter().take(m).map(|stripe| first(stripe)).collect();
    parity.extend(data.iter().skip(m).map(|stripe| last(stripe)));
    if m2 < k + m {
        let (first, last) = parity.split_at_mut(m);
        for (i, complete) in first.iter().enumerate() {
            for (partner, sums) in complete[m..].iter().zip(&mut *last) {
                sums[i].iter_mut().zip(partner).for_each(|(byte, more)| *byte ^= more);
            }
        }
    }
    let mut nodes = vec![Vec::new(); k + m2];
    for (stripe, (data, parity)) in data.iter().zip(parity).enumerate() {
        for (symbol, bytes) in data.iter().cloned().chain(parity).enumerate() {
            let stage = if symbol < k + m { 1 } else { 2 };
            let stored = Stored { stripe, symbol, stage, bytes };
            nodes[node(shape, stripe, symbol)].push(stored);
        }
    }
    nodes.iter_mut().for_each(|symbols| symbols.sort_by_key(|s| (s.stage, s.stripe)));
    nodes
}

fn node(Shape { k, m, m2, interleave }: Shape, stripe: usize, symbol: usize) -> usize {
    match interleave {
        Interleave::First if symbol < k + m => (symbol + stripe * m) % (k + m),
        Interleave::All => (symbol + stripe * (m2 - m)) % (k + m2),
        Interleave::None | Interleave::First => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::{Interleave, Shape, nodes};

    /// Returns the parities a + b and a + 2b. The numbers are so small that 2b needs no reduction.
    fn sums(stripe: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (a, b) = (stripe[0][0], stripe[1][0]);
        vec![vec![a ^ b], vec![a ^ (2 * b)]]
    }

    /// k = 2, m = 1, m2 = 2, stripes (1, 2) and (4, 8). The parities are 3, 5 and 12, 20; the
    /// stored parities of stage one are 3 and 12 + 5.
    #[test]
    fn two_stripes_by_hand() {
        let data = [vec![vec![1], vec![2]], vec![vec![4], vec![8]]];
        let of = |interleave| -> Vec<Vec<(u8, u8)>> {
            let shape = Shape { k: 2, m: 1, m2: 2, interleave };
            let nodes = nodes(shape, &sums, &sums, &data);
            let pairs = nodes.iter().map(|node| node.iter().map(|s| (s.stage, s.bytes[0])));
            pairs.map(Iterator::collect).collect()
        };
        let first = [[(1, 1), (1, 4)], [(1, 2), (1, 8)], [(1, 3), (1, 9)], [(2, 5), (2, 20)]];
        assert_eq!(of(Interleave::None), first);
        let rotated = [[(1, 1), (1, 9)], [(1, 2), (1, 4)], [(1, 3), (1, 8)], [(2, 5), (2, 20)]];
        assert_eq!(of(Interleave::First), rotated);
        let all = [[(1, 1), (2, 20)], [(1, 2), (1, 4)], [(1, 3), (1, 8)], [(1, 9), (2, 5)]];
        assert_eq!(of(Interleave::All), all);
    }

    /// With k = 1, m = 1 and m2 = 2, m2 is not less than k + m, so no parity is added to another.
    #[test]
    fn low_rates_are_not_coupled() {
        let copies = |stripe: &[Vec<u8>]| vec![stripe[0].clone(); 2];
        let shape = Shape { k: 1, m: 1, m2: 2, interleave: Interleave::None };
        let stored = nodes(shape, &copies, &copies, &[vec![vec![7]], vec![vec![9]]]);
        assert!(stored.iter().all(|node| (node[0].bytes[0], node[1].bytes[0]) == (7, 9)));
    }
}
