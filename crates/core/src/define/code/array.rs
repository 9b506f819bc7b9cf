//! What the array codes over a prime share: the smallest prime that fits, and its refusals.

use crate::define::cells::Pin;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

/// The largest prime an array code is built on.
const MAX_PRIME: usize = 257;

/// Reads `k` and `p` of a spec; `p` defaults to the smallest odd prime with k ≤ columns(p).
pub(super) fn read(spec: &Spec, columns: fn(usize) -> usize) -> Result<(usize, usize)> {
    spec.allow(&["k", "p"])?;
    let k = spec.required("k")?;
    let smallest = (3..=MAX_PRIME).find(|&p| is_prime(p) && columns(p) >= k);
    let p = match (spec.number("p")?, smallest) {
        (Some(p), _) => p,
        (None, Some(p)) => p,
        (None, None) => {
            let most = columns(MAX_PRIME);
            return Err(Error::parameters(format!(
                "{spec}: k = {k}, but {} serves k from 1 to {most}",
                spec.family()
            )));
        }
    };
    if k == 0 || !(3..=MAX_PRIME).contains(&p) || !is_prime(p) || columns(p) < k {
        let hint = smallest.map(|p| format!("; for k = {k} use p = {p}")).unwrap_or_default();
        return Err(Error::parameters(format!(
            "{spec}: p must be an odd prime up to {MAX_PRIME}, and k from 1 to {}{hint}",
            columns(if p <= MAX_PRIME && is_prime(p) { p } else { MAX_PRIME })
        )));
    }
    Ok((k, p))
}

/// Reads the spec of stored data, whose prime is pinned.
pub(super) fn read_pinned(
    spec: &Spec,
    pin: &Pin,
    columns: fn(usize) -> usize,
) -> Result<(usize, usize)> {
    let (k, p) = read(spec, columns)?;
    let pinned = pin.one("prime")?;
    if pinned != p as u64 {
        return Err(Error::parameters(format!("{spec} does not fit its pinned prime {pinned}")));
    }
    Ok((k, p))
}

fn is_prime(n: usize) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}
