//! The parameters of a group.

use crate::define::spec::Spec;
use crate::define::symbols::MAX_BITS;
use crate::error::{Error, Result};

/// Names of the group families. Their codes cannot be the base of other groups.
pub(super) const NAMES: [&str; 2] = ["dpg", "bbdpg"];

/// How a group's symbols are spread over nodes (the dissertation's figure 4.3). Symbol s of a
/// stripe is data for s < k, parity of stage one for k ≤ s < k + m, and parity of stage two
/// otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interleave {
    /// Symbol s of every stripe is on node s.
    None,
    /// Stage one is rotated over its k + m nodes, by m more with each stripe, which spreads its
    /// parity evenly. Stage two has its own nodes.
    First,
    /// All symbols are rotated over all nodes, by m2 - m more with each stripe. This spreads the
    /// parity of stage two evenly, and also its reads: the data and the first parity of the last
    /// stripes.
    All,
}

impl Interleave {
    const ALL: [Self; 3] = [Self::None, Self::First, Self::All];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::First => "first",
            Self::All => "all",
        }
    }

    /// Reads the placement of a spec; the default is `None`.
    pub(super) fn read(spec: &Spec) -> Result<Self> {
        let name = spec.text("interleave").unwrap_or(Self::None.name());
        Self::ALL.into_iter().find(|interleave| interleave.name() == name).ok_or_else(|| {
            let [none, first, all] = Self::ALL.map(Self::name);
            Error::spec(format!("{spec}: interleave must be {none}, {first} or {all}; got {name}"))
        })
    }
}

/// k, m, m2 and the placement, checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct DpgShape {
    pub(super) k: usize,
    /// Number of parities of stage one.
    pub(super) m: usize,
    /// Number of parities of both stages, and of stripes in a group.
    pub(super) m2: usize,
    pub(super) interleave: Interleave,
}

impl DpgShape {
    pub(super) fn read(spec: &Spec) -> Result<Self> {
        let (k, m, m2) = (spec.required("k")?, spec.required("m")?, spec.required("m2")?);
        if k == 0 || m == 0 {
            let message = format!("{spec}: k and m must be at least 1; got k = {k} and m = {m}");
            return Err(Error::parameters(message));
        }
        if m >= m2 {
            return Err(Error::parameters(format!(
                "{spec}: m2, the parities of both stages, must be more than m; got m = {m} and \
                 m2 = {m2}; use m2 = {}",
                m.saturating_add(1)
            )));
        }
        let shape = Self { k, m, m2, interleave: Interleave::read(spec)? };
        // Refuses groups that are too big at any width, before base codes are made.
        shape.expect_size(spec, 1)?;
        Ok(shape)
    }

    /// Refuses groups whose bit matrices would be too big: a group is a code with m2 times the data
    /// and the parity of its base, whose symbols have w rows.
    pub(super) fn expect_size(self, spec: &Spec, w: usize) -> Result<()> {
        let Self { k, m2, .. } = self;
        let factors = [m2, m2, w * w];
        let bits = factors.into_iter().try_fold(k, usize::checked_mul);
        if bits.is_some_and(|bits| bits <= MAX_BITS) {
            return Ok(());
        }
        let bits = bits.map_or_else(|| format!("over {}", usize::MAX), |bits| bits.to_string());
        Err(Error::parameters(format!(
            "{spec}: the bit matrix of a group has k·m2²·w² = {bits} bits with w = {w}, more than \
             {MAX_BITS}; use a smaller k or m2"
        )))
    }

    /// Whether stage two can read less than all data. Only then are parities of some stripes added
    /// to those of others.
    pub(super) fn is_coupled(self) -> bool {
        self.m2 < self.k + self.m
    }
}
