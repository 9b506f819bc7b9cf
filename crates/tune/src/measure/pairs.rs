//! Pairs of samples, the ratio that follows from them, and its uncertainty.
//!
//! A pair is one sample of the *subject* (the program that is measured) and one sample of the
//! *base* (the program that it is compared with), back to back. The order alternates, so the
//! samples of two pairs are subject, base, base, subject: a machine that grows steadily slower
//! makes one ratio too small and the next too large. If the speed changes in the middle of a pair,
//! the pair is an outlier, which the median over all pairs ignores. A sample is never left out
//! because of its own time.
//!
//! A bootstrap estimates the error of the median (B. Efron, *Bootstrap methods: another look at the
//! jackknife*, 1979): pairs are drawn at random from the pairs that were taken, and the medians of
//! many such drawings spread as the medians of new measurements would. Two neighbours are drawn at
//! a time (the block bootstrap of H. R. Künsch, 1989), because they have opposite orders. The
//! drawings come from a fixed seed: the same samples give the same interval.
//!
//! `lab/pairs.py` is the same estimator; `vectors/pairs.json` holds both to the same numbers.

use std::cmp::Ordering;

/// Smallest number of pairs for a verdict. In simulated sessions, intervals from 12 pairs contain
/// the ratio in 90 % of all sessions, and intervals from 20 pairs in 95 %.
const FEWEST: usize = 20;

/// Number of drawings of pairs.
const DRAWINGS: usize = 1000;

/// Number of neighbouring pairs that are drawn at a time: one of each order.
const BLOCK: usize = 2;

/// Fraction of the drawings that the interval leaves out at either end. On a simulated machine with
/// drift, steps and preemptions, the interval then contains the ratio in 95 % of the sessions of 20
/// to 40 pairs, and in 97 % of the sessions of 100 pairs and more. If it left out 2.5 %, it would
/// contain the ratio in 92 % of the short sessions.
const TAIL: f64 = 0.0125;

/// A ratio is known if the upper end of its interval is at most this many times the lower end.
const KNOWN: f64 = 1.1;

/// One of the two sides of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The program that is measured.
    Subject,
    /// The program that the subject is compared with.
    Base,
}

/// Samples of a subject and its base, taken in pairs.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    subject: Vec<f64>,
    base: Vec<f64>,
}

/// Bounds on the number of pairs that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    /// Number of pairs that are always taken.
    pub least: usize,
    /// Largest number of pairs, taken only while the question is open.
    pub most: usize,
}

/// Speed of the subject, divided by that of its base.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Ratio {
    /// The median over all pairs.
    pub median: f64,
    /// The lower end of the interval that contains the ratio with 95 % confidence.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// The number of pairs.
    pub pairs: usize,
}

/// The verdict: which of the two sides is faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairVerdict {
    /// The subject: the whole interval is above 1.
    Faster,
    /// The base: the whole interval is below 1.
    Slower,
    /// Neither: the interval contains 1 and is narrow.
    Level,
    /// Unknown: the interval contains 1 and is wide, or there are too few pairs.
    TooNoisy,
}

/// Spread of the seconds of all samples of one side, each for one run.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SecondsSpread {
    /// Half of the samples are below this time.
    pub median: f64,
    /// A tenth of the samples are below this time; a machine reaches it in quiet moments.
    pub p10: f64,
    /// Time of the fastest sample.
    pub min: f64,
    /// Time of the slowest sample.
    pub max: f64,
}

impl Rounds {
    /// Takes `least` pairs, and up to four times this number while the question is open. If even
    /// four times is too few for a verdict, takes just `least`.
    pub fn from_least(least: usize) -> Self {
        let most = least.saturating_mul(4);
        Self { least, most: if most < FEWEST { least } else { most } }
    }
}

impl Pairs {
    /// Takes pairs until `is_settled` accepts their ratio, within the bounds of `rounds`. `sample`
    /// runs a side and returns the seconds that one run takes.
    ///
    /// # Errors
    /// If `sample` fails; the first error is returned.
    pub fn take<E>(
        rounds: Rounds,
        is_settled: impl Fn(&Ratio) -> bool,
        mut sample: impl FnMut(Side) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let mut pairs = Self::default();
        let mut until = rounds.least;
        loop {
            while pairs.len() < until {
                pairs.take_one(&mut sample)?;
            }
            if until >= rounds.most || pairs.ratio().is_none_or(|ratio| is_settled(&ratio)) {
                return Ok(pairs);
            }
            until = (2 * until).min(rounds.most);
        }
    }

    /// Takes one more pair, in the opposite order to the pair before.
    ///
    /// # Errors
    /// If `sample` fails; the first error is returned.
    fn take_one<E>(&mut self, mut sample: impl FnMut(Side) -> Result<f64, E>) -> Result<(), E> {
        let (subject, base);
        if self.len().is_multiple_of(2) {
            subject = sample(Side::Subject)?;
            base = sample(Side::Base)?;
        } else {
            base = sample(Side::Base)?;
            subject = sample(Side::Subject)?;
        }
        self.subject.push(subject);
        self.base.push(base);
        Ok(())
    }

    /// Returns the number of pairs.
    pub fn len(&self) -> usize {
        self.subject.len()
    }

    /// Whether no pair was taken.
    pub fn is_empty(&self) -> bool {
        self.subject.is_empty()
    }

    /// Returns the speed of the subject, divided by that of its base; `None` if no pair was taken.
    pub fn ratio(&self) -> Option<Ratio> {
        let logs = |(subject, base): (&f64, &f64)| base.ln() - subject.ln();
        let mut logs: Vec<f64> = self.subject.iter().zip(&self.base).map(logs).collect();
        let (low, high) = interval(&logs)?;
        let median = median(&mut logs)?;
        let [median, low, high] = [median, low, high].map(f64::exp);
        Some(Ratio { median, low, high, pairs: self.len() })
    }

    /// Returns the spread of one side's samples; `None` if no pair was taken.
    pub fn spread(&self, side: Side) -> Option<SecondsSpread> {
        let mut seconds = match side {
            Side::Subject => self.subject.clone(),
            Side::Base => self.base.clone(),
        };
        seconds.sort_by(f64::total_cmp);
        Some(SecondsSpread {
            median: median(&mut seconds.clone())?,
            p10: quantile(&seconds, 0.1)?,
            min: *seconds.first()?,
            max: *seconds.last()?,
        })
    }
}

impl FromIterator<(f64, f64)> for Pairs {
    /// Collects seconds of subject and base, in the order in which they were taken.
    fn from_iter<I: IntoIterator<Item = (f64, f64)>>(pairs: I) -> Self {
        let (subject, base) = pairs.into_iter().unzip();
        Self { subject, base }
    }
}

impl Ratio {
    /// Ratio of something to itself.
    pub const ONE: Self = Self { median: 1.0, low: 1.0, high: 1.0, pairs: 0 };

    /// Returns the geometric mean of `ratios`; [`Ratio::ONE`] if there are none. Its interval is
    /// the mean of both ends. That is wider than necessary, because all ratios are unlikely to be
    /// off in the same direction.
    pub fn mean(ratios: &[Self]) -> Self {
        let mean = |value: fn(&Self) -> f64| {
            let sum: f64 = ratios.iter().map(|ratio| value(ratio).ln()).sum();
            (sum / ratios.len().max(1) as f64).exp()
        };
        Self {
            median: mean(|ratio| ratio.median),
            low: mean(|ratio| ratio.low),
            high: mean(|ratio| ratio.high),
            pairs: ratios.iter().map(|ratio| ratio.pairs).min().unwrap_or(0),
        }
    }

    /// Whether the ratio is above `bound`; `None` if `bound` lies within the interval, or if there
    /// are too few pairs.
    pub fn exceeds(&self, bound: f64) -> Option<bool> {
        if self.pairs < FEWEST {
            return None;
        }
        match (self.low.total_cmp(&bound), self.high.total_cmp(&bound)) {
            (Ordering::Greater, _) => Some(true),
            (_, Ordering::Less) => Some(false),
            _ => None,
        }
    }

    /// Whether the ratio is uncertain: its interval is wider than a tenth, or there are too few
    /// pairs.
    pub fn is_noisy(&self) -> bool {
        self.pairs < FEWEST || self.high > KNOWN * self.low
    }

    /// Returns the faster side, if it is known.
    pub fn verdict(&self) -> PairVerdict {
        match self.exceeds(1.0) {
            Some(true) => PairVerdict::Faster,
            Some(false) => PairVerdict::Slower,
            None if self.is_noisy() => PairVerdict::TooNoisy,
            None => PairVerdict::Level,
        }
    }
}

impl PairVerdict {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Level => "level",
            Self::TooNoisy => "too noisy",
        }
    }
}

/// Returns the bounds of the interval for the median of `values`; `None` if there are none.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    let mut random = Random(1);
    let mut drawing = Vec::with_capacity(count + BLOCK);
    let mut medians = Vec::with_capacity(DRAWINGS);
    for _ in 0..DRAWINGS {
        drawing.clear();
        while drawing.len() < count {
            let start = random.below(count);
            drawing.extend((start..start + BLOCK).map(|place| values[place % count]));
        }
        drawing.truncate(count);
        medians.push(median(&mut drawing)?);
    }
    medians.sort_by(f64::total_cmp);
    Some((quantile(&medians, TAIL)?, quantile(&medians, 1.0 - TAIL)?))
}

/// Returns the median, which is the mean of the two middle values if their number is even. Changes
/// the order of `values`.
fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    let is_odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(if is_odd { upper } else { (lower + upper) / 2.0 })
}

/// Returns the value below which a `share` of the `sorted` values lies, or the one next to it.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((share * last as f64 + 0.5) as usize).copied()
}

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, *Fast splittable pseudorandom number generators*,
/// 2014): it takes a few lines in any language, so `lab/pairs.py` draws the same numbers.
struct Random(u64);

impl Random {
    /// Returns a number below `bound`. The bias of the remainder is below 2^-40 for any number of
    /// pairs that can be taken.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose speed drifts and changes in steps, and which sometimes takes the processor
    /// away.
    struct Machine {
        random: Random,
        /// Factor by which the machine is slower than a quiet one.
        slowness: f64,
        /// Whether a neighbour runs on the same core, which doubles all times.
        is_shared: bool,
    }

    impl Machine {
        fn new(seed: u64) -> Self {
            Self { random: Random(seed), slowness: 1.0, is_shared: false }
        }

        /// Returns a number between 0 and 1.
        fn chance(&mut self) -> f64 {
            self.random.below(1 << 20) as f64 / f64::from(1 << 20)
        }

        /// Returns the seconds of a run that takes `seconds` on a quiet machine.
        fn run(&mut self, seconds: f64) -> f64 {
            self.slowness *= 1.0 + 0.02 * (self.chance() - 0.45);
            if self.chance() < 0.05 {
                self.is_shared = !self.is_shared;
            }
            let neighbour = if self.is_shared { 2.0 } else { 1.0 };
            let preempted = if self.chance() < 0.03 { 10.0 } else { 1.0 };
            let jitter = 1.0 + 0.02 * (self.chance() + self.chance() - 1.0);
            seconds * self.slowness * neighbour * preempted * jitter
        }

        /// Takes pairs of a subject that is `ratio` times as fast as its base.
        fn pairs(&mut self, ratio: f64, count: usize) -> Pairs {
            let rounds = Rounds { least: count, most: count };
            let sample = |side| match side {
                Side::Subject => Ok::<_, ()>(self.run(1.0 / ratio)),
                Side::Base => Ok(self.run(1.0)),
            };
            Pairs::take(rounds, |_| true, sample).unwrap()
        }
    }

    /// During a session, the machine becomes many times slower, and it is twice as slow for a while
    /// in between. In 400 sessions the interval misses the true ratio in about 5 %.
    #[test]
    fn intervals_cover_the_ratio_in_drift_and_steps() {
        for (ratio, count) in [(1.0, 21), (1.3, 40), (0.7, 100)] {
            let covers = |&seed: &u64| {
                let found = Machine::new(seed).pairs(ratio, count).ratio().unwrap();
                (found.low..=found.high).contains(&ratio)
            };
            let covered = (1..=400).filter(covers).count();
            assert!(covered >= 370, "{ratio}: {covered} of 400 with {count} pairs");
        }
    }

    /// Narrowness is tested as well, because an interval that contains everything would also
    /// contain the ratio.
    #[test]
    fn intervals_are_narrow_where_samples_agree() {
        let found = Machine::new(3).pairs(1.3, 100).ratio().unwrap();
        assert!(found.high / found.low < 1.02, "{found:?}");
        assert_eq!((found.verdict(), found.is_noisy()), (PairVerdict::Faster, false));
        assert_eq!(Machine::new(3).pairs(0.7, 100).ratio().unwrap().verdict(), PairVerdict::Slower);
    }

    /// If every sample takes 2 % longer than the one before, one order makes the subject look
    /// 2 % faster, and the other 2 % slower.
    #[test]
    fn alternating_order_cancels_drift() {
        let mut seconds = 1.0;
        let mut sample = |_| {
            seconds *= 1.02;
            Ok::<_, ()>(seconds)
        };
        let pairs = Pairs::take(Rounds { least: 40, most: 40 }, |_| true, &mut sample).unwrap();
        let found = pairs.ratio().unwrap();
        assert!(
            (found.median - 1.0).abs() < 1e-9 && found.verdict() == PairVerdict::Level,
            "{found:?}"
        );
        let in_one_order: Pairs =
            (0..40).map(|n| 1.02_f64.powi(n)).map(|s| (s, 1.02 * s)).collect();
        assert!((in_one_order.ratio().unwrap().median - 1.02).abs() < 1e-9);
    }

    #[test]
    fn sides_alternate() {
        let mut order = String::new();
        let mut pairs = Pairs::default();
        for _ in 0..4 {
            let sample = |side| {
                order.push(if side == Side::Subject { 's' } else { 'b' });
                Ok::<_, ()>(if side == Side::Subject { 1.0 } else { 3.0 })
            };
            pairs.take_one(sample).unwrap();
        }
        assert_eq!(order, "sbbssbbs");
        let ratio = pairs.ratio().unwrap();
        assert!((ratio.median - 3.0).abs() < 1e-12 && ratio.pairs == 4);
    }

    #[test]
    fn too_few_pairs_give_no_verdict() {
        let alike = |count: usize| Pairs::from_iter(vec![(1.0, 2.0); count]).ratio();
        assert_eq!(alike(0), None);
        for count in [1, 2, FEWEST - 1] {
            let found = alike(count).unwrap();
            assert_eq!((found.verdict(), found.is_noisy()), (PairVerdict::TooNoisy, true));
            assert_eq!(found.exceeds(1.5), None);
        }
        let found = alike(FEWEST).unwrap();
        assert_eq!((found.verdict(), found.is_noisy()), (PairVerdict::Faster, false));
        assert_eq!((found.exceeds(1.9), found.exceeds(2.1)), (Some(true), Some(false)));
    }

    /// Ratios that vary widely give no verdict, however many pairs there are.
    #[test]
    fn noise_gives_no_verdict() {
        let mut random = Random(5);
        let pairs: Pairs =
            (0..100).map(|_| (1.0, [0.5, 0.7, 1.0, 1.4, 2.0][random.below(5)])).collect();
        let found = pairs.ratio().unwrap();
        assert_eq!((found.verdict(), found.is_noisy()), (PairVerdict::TooNoisy, true), "{found:?}");
    }

    #[test]
    fn open_questions_take_more_rounds() {
        let rounds = Rounds { least: 20, most: 50 };
        let taken = |settled: usize| {
            let sample = |_| Ok::<_, ()>(1.0);
            Pairs::take(rounds, |ratio| ratio.pairs >= settled, sample).unwrap().len()
        };
        assert_eq!([0, 20, 21, 41, 1000].map(taken), [20, 20, 40, 50, 50]);
        assert_eq!(Pairs::take(rounds, |_| true, |_| Err(7)).unwrap_err(), 7);
        assert_eq!(Rounds::from_least(41), Rounds { least: 41, most: 164 });
        assert_eq!(Rounds::from_least(2), Rounds { least: 2, most: 2 });
    }

    /// All samples count, including the slow ones.
    #[test]
    fn spreads_are_of_all_samples() {
        let pairs: Pairs = (1..=11).map(|n| (f64::from(n), 100.0)).collect();
        let spread = SecondsSpread { median: 6.0, p10: 2.0, min: 1.0, max: 11.0 };
        assert_eq!(pairs.spread(Side::Subject), Some(spread));
        assert_eq!(pairs.spread(Side::Base).unwrap().p10, 100.0);
        assert_eq!(Pairs::default().spread(Side::Base), None);
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn means_are_geometric() {
        let ratio =
            |low: f64, high: f64, pairs| Ratio { median: (low * high).sqrt(), low, high, pairs };
        let mean = Ratio::mean(&[ratio(1.0, 4.0, 30), ratio(4.0, 16.0, 20)]);
        for (found, right) in [(mean.median, 4.0), (mean.low, 2.0), (mean.high, 8.0)] {
            assert!((found - right).abs() < 1e-12, "{mean:?}");
        }
        assert_eq!((mean.pairs, Ratio::mean(&[])), (20, Ratio::ONE));
    }

    #[derive(serde::Deserialize)]
    struct Cases {
        cases: Vec<Case>,
    }

    #[derive(serde::Deserialize)]
    struct Case {
        samples: Vec<(f64, f64)>,
        ratio: [f64; 3],
        verdict: String,
        noisy: bool,
        subject: [f64; 4],
    }

    /// Checks that the results equal those of `lab/pairs.py`.
    #[test]
    fn vectors_agree() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/pairs.json");
        let cases: Cases = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(cases.cases.len() > 5);
        for case in cases.cases {
            let pairs = Pairs::from_iter(case.samples);
            let (ratio, spread) = (pairs.ratio().unwrap(), pairs.spread(Side::Subject).unwrap());
            let found = [ratio.low, ratio.median, ratio.high];
            let seconds = [spread.min, spread.p10, spread.median, spread.max];
            let near = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() < 1e-9;
            assert!(found.iter().zip(&case.ratio).all(near), "{found:?} {:?}", case.ratio);
            assert!(seconds.iter().zip(&case.subject).all(near), "{seconds:?} {:?}", case.subject);
            assert_eq!((ratio.verdict().name(), ratio.is_noisy()), (&case.verdict[..], case.noisy));
        }
    }
}
