//! Degree distributions: the ideal and the robust soliton (section II of the evaluation, and Luby,
//! *LT codes*, FOCS 2002).
//!
//! With k data blocks, a block has degree i with a probability proportional to ρ(i) + τ(i):
//!
//! ```text
//! ρ(1) = 1/k          ρ(i) = 1/(i (i - 1))             the ideal soliton
//! R = c ln(k/δ) √k    s = max(2, ceil(k/R))            the ripple that is aimed at, and the spike
//! τ(i) = R/(i k) for i < s    τ(s) = R ln(R/δ)/k       the addition that makes it robust
//! ```
//!
//! The paper's text garbles τ; `docs/errata.md` has the reading that gives its figures.
//!
//! Logarithms may differ in their last bit between platforms, but degrees must not. So only three
//! numbers come from floating point: s, R/k and τ(s), the latter two in units of 2^-44. These are
//! kept with the object. All probabilities follow from them by whole-number division.

use crate::error::{Error, Result};

/// Largest number of data blocks of an LT code.
pub const MAX_DATA_BLOCKS: usize = 1 << 16;

/// Probability 1 before normalisation.
const UNIT: u64 = 1 << 44;

/// Largest c; the paper's is also 100. Up to here the sum of all weights stays below 2^62.
const MAX_C: f64 = 100.0;
/// Smallest delta.
const MIN_DELTA: f64 = 1e-9;
/// Largest integer weight that a pin may give the ripple or the spike.
const MAX_WEIGHT: u64 = UNIT << 16;

/// A degree distribution, held as the whole numbers that everything else follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Soliton {
    data: u32,
    spike: u32,
    ripple: u64,
    spike_weight: u64,
}

impl Soliton {
    /// Returns the ideal soliton distribution for `data` blocks.
    ///
    /// # Errors
    /// If `data` is 0 or above [`MAX_DATA_BLOCKS`].
    pub fn ideal(data: usize) -> Result<Self> {
        Self::from_integers(data, data, 0, 0)
    }

    /// Returns the robust soliton distribution for `data` blocks.
    ///
    /// # Errors
    /// As [`Soliton::ideal`]; also if `c` is not above 0 and at most 100, or if `delta` is not from
    /// 1e-9 to 1.
    pub fn robust(data: usize, c: f64, delta: f64) -> Result<Self> {
        check_data(data)?;
        if !(c > 0.0 && c <= MAX_C) {
            return Err(Error::parameters(format!(
                "c must be greater than 0 and at most {MAX_C}; got {c}"
            )));
        }
        if !(MIN_DELTA..=1.0).contains(&delta) {
            return Err(Error::parameters(format!(
                "delta must be from {MIN_DELTA} to 1; got {delta}"
            )));
        }
        let k = data as f64;
        let ripple = c * (k / delta).ln() * k.sqrt();
        // A ripple of 0 (k = delta = 1) makes this infinite, and a ripple below delta makes the
        // logarithm negative. In both cases nothing is added.
        let spike = (k / ripple).ceil().clamp(2.0, k.max(2.0)).min(k);
        let spike_weight = (ripple * (ripple / delta).ln() / k).max(0.0);
        let whole = |weight: f64| (weight * UNIT as f64).round() as u64;
        Self::from_integers(data, spike as usize, whole(ripple / k), whole(spike_weight))
    }

    /// Returns the distribution that [`Soliton::integers`] was taken from.
    ///
    /// # Errors
    /// If the numbers do not describe a distribution.
    pub fn from_integers(
        data: usize,
        spike: usize,
        ripple: u64,
        spike_weight: u64,
    ) -> Result<Self> {
        check_data(data)?;
        if spike == 0 || spike > data || ripple.max(spike_weight) > MAX_WEIGHT {
            return Err(Error::parameters(format!(
                "a spike at degree {spike}, of weight {spike_weight} over a ripple of {ripple}, is not \
                 possible; degrees are from 1 to {data}, weights at most {MAX_WEIGHT}"
            )));
        }
        Ok(Self { data: data as u32, spike: spike as u32, ripple, spike_weight })
    }

    /// The number of data blocks, k.
    pub fn data(&self) -> usize {
        self.data as usize
    }

    /// Returns the numbers to store so that any platform can rebuild the distribution: s, and R/k
    /// and τ(s) in units of 2^-44.
    pub fn integers(&self) -> (usize, u64, u64) {
        (self.spike as usize, self.ripple, self.spike_weight)
    }

    /// Weight of a degree from 1 to k.
    fn weight(&self, degree: u32) -> u64 {
        let i = u64::from(degree);
        let ideal = if i == 1 { UNIT / u64::from(self.data) } else { UNIT / (i * (i - 1)) };
        let added = match degree.cmp(&self.spike) {
            std::cmp::Ordering::Less => self.ripple / i,
            std::cmp::Ordering::Equal => self.spike_weight,
            std::cmp::Ordering::Greater => 0,
        };
        ideal + added
    }

    /// Probabilities of the degrees from 1 to k.
    pub fn probabilities(&self) -> Vec<f64> {
        let weights: Vec<u64> = (1..=self.data).map(|degree| self.weight(degree)).collect();
        let total = weights.iter().sum::<u64>() as f64;
        weights.iter().map(|&weight| weight as f64 / total).collect()
    }

    /// The average degree.
    pub fn mean(&self) -> f64 {
        let terms = self.probabilities().into_iter().zip(1..);
        terms.map(|(probability, degree)| probability * f64::from(degree)).sum()
    }

    /// Returns the thresholds that degrees are drawn by.
    pub(super) fn thresholds(&self) -> Thresholds {
        let sum = |below: &mut u64, degree| {
            *below += self.weight(degree);
            Some(*below)
        };
        Thresholds((1..=self.data).scan(0, sum).collect())
    }
}

fn check_data(data: usize) -> Result<()> {
    if (1..=MAX_DATA_BLOCKS).contains(&data) {
        return Ok(());
    }
    Err(Error::parameters(format!(
        "an LT code must have from 1 to {MAX_DATA_BLOCKS} data blocks; got {data}"
    )))
}

/// For each degree, the sum of its weight and those of smaller degrees. A random number below the
/// last threshold selects the first degree whose threshold is above it.
#[derive(Debug)]
pub(super) struct Thresholds(Vec<u64>);

impl Thresholds {
    /// Draws a degree; `below` returns a random number below its argument.
    pub(super) fn degree(&self, below: impl FnOnce(u64) -> u64) -> u32 {
        self.find(below(self.total()))
    }

    /// Draws a degree of at least 2, or 1 if no other exists.
    pub(super) fn degree_above_one(&self, below: impl FnOnce(u64) -> u64) -> u32 {
        match self.total() - self.0[0] {
            0 => 1,
            rest => self.find(self.0[0] + below(rest)),
        }
    }

    fn total(&self) -> u64 {
        self.0[self.0.len() - 1]
    }

    fn find(&self, number: u64) -> u32 {
        self.0.partition_point(|&threshold| threshold <= number) as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The average degrees of table 18, printed digit by printed digit. Its authors' program seems
    /// to have had ρ(1) = 0. With 1/k, as they printed and as here, averages are up to 0.08 %
    /// lower.
    #[test]
    fn average_degrees_are_those_of_the_paper() {
        for (c, delta, printed) in [
            (0.1, 1.0, "10.03576"),
            (1.2, 1.0, "4.815068"),
            (1.4, 0.5, "4.000171"),
            (1.6, 1.0, "4.025548"),
            (2.0, 1.0, "3.799221"),
            (2.0, 0.2, "2.864407"),
            (1.9, 0.05, "2.690313"),
            (5.0, 0.7, "2.412966"),
            (10.0, 0.7, "2.148624"),
            (30.0, 0.00001, "1.969518"),
            (100.0, 0.00005, "1.958965"),
            (100.0, 0.1, "1.940646"),
        ] {
            let soliton = Soliton::robust(1024, c, delta).unwrap();
            let total: u64 = (1..=1024).map(|degree| soliton.weight(degree)).sum();
            let first = (UNIT / 1024) as f64 / total as f64;
            let theirs = (soliton.mean() - first) / (1.0 - first);
            let decimals = printed.len() - printed.find('.').unwrap() - 1;
            assert_eq!(format!("{theirs:.decimals$}"), printed, "c = {c}, delta = {delta}");
            assert!((soliton.mean() / theirs - 1.0).abs() < 0.0008, "c = {c}, delta = {delta}");
        }
    }

    /// k/R is not a whole number, and is rounded up.
    #[test]
    fn the_spike_is_the_next_whole_number() {
        for (c, delta, ratio, spike) in [
            (0.1, 1.0, 46.17, 47),
            (2.0, 1.0, 2.308, 3),
            (1.4, 0.5, 2.998, 3),
            (5.0, 0.7, 0.878, 2),
        ] {
            let ripple = c * (1024.0_f64 / delta).ln() * 32.0;
            assert!((1024.0 / ripple - ratio).abs() < 0.005, "c = {c}, delta = {delta}");
            assert_eq!(Soliton::robust(1024, c, delta).unwrap().integers().0, spike);
        }
    }

    /// The mean of the ideal soliton is the k-th harmonic number.
    #[test]
    fn the_ideal_mean_is_harmonic() {
        for data in [1, 2, 10, 1000, 65_536] {
            let harmonic: f64 = (1..=data).map(|i| 1.0 / f64::from(i)).sum();
            let mean = Soliton::ideal(data as usize).unwrap().mean();
            assert!((mean / harmonic - 1.0).abs() < 1e-5, "{data}: {mean} is not {harmonic}");
        }
    }

    /// Whole numbers give the probabilities of the definition.
    #[test]
    fn weights_are_those_of_the_definition() {
        let (k, c, delta) = (1000.0_f64, 0.2, 0.05);
        let ripple = c * (k / delta).ln() * k.sqrt();
        let spike = (k / ripple).ceil();
        let weight = |i: f64| {
            let ideal = if i == 1.0 { 1.0 / k } else { 1.0 / (i * (i - 1.0)) };
            let added = if i < spike { ripple / (i * k) } else { 0.0 };
            ideal + if i == spike { ripple * (ripple / delta).ln() / k } else { added }
        };
        let total: f64 = (1..=1000).map(|i| weight(f64::from(i))).sum();
        let soliton = Soliton::robust(1000, c, delta).unwrap();
        for (probability, i) in soliton.probabilities().into_iter().zip(1..) {
            assert!((probability - weight(f64::from(i)) / total).abs() < 1e-10, "degree {i}");
        }
    }

    #[test]
    fn thresholds_part_the_numbers() {
        let thresholds = Thresholds(vec![2, 5, 6]);
        let degrees: Vec<u32> = (0..6).map(|number| thresholds.degree(|_| number)).collect();
        assert_eq!(degrees, [1, 1, 2, 2, 2, 3]);
        let degrees: Vec<u32> =
            (0..4).map(|number| thresholds.degree_above_one(|_| number)).collect();
        assert_eq!(degrees, [2, 2, 2, 3]);
    }

    #[test]
    fn small_codes_and_integers_round_trip() {
        for (data, c, delta) in
            [(1, 0.1, 1.0), (1, 100.0, 1e-9), (2, 1.0, 0.5), (65_536, 0.03, 0.5)]
        {
            let soliton = Soliton::robust(data, c, delta).unwrap();
            let (spike, ripple, weight) = soliton.integers();
            assert_eq!(Soliton::from_integers(data, spike, ripple, weight).unwrap(), soliton);
            assert!(soliton.thresholds().degree(|total| total - 1) as usize <= data);
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        assert!(Soliton::ideal(0).is_err());
        assert!(Soliton::ideal(MAX_DATA_BLOCKS + 1).is_err());
        for (c, delta) in
            [(0.0, 0.5), (f64::NAN, 0.5), (101.0, 0.5), (1.0, 0.0), (1.0, 1.5), (1.0, f64::NAN)]
        {
            assert!(Soliton::robust(10, c, delta).is_err(), "c = {c}, delta = {delta}");
        }
        assert!(Soliton::from_integers(10, 11, 0, 0).is_err());
        assert!(Soliton::from_integers(10, 0, 0, 0).is_err());
        assert!(Soliton::from_integers(10, 2, u64::MAX, 0).is_err());
    }
}
