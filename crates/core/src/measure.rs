//! Timing on machines that are not quiet.
//!
//! A neighbour on the same core halves a processor's speed from one millisecond to the next. So every
//! sample stands between two runs of a fixed calibration loop, and counts if both of them ran at
//! the machine's full speed. The samples' own times have no say in that: nothing is called an outlier
//! because it is slow. Where buffers lie decides over caches, so [`Shard`] is memory at a chosen place.

use std::hint::black_box;
use std::time::Instant;

/// How much slower than the fastest a calibration may be and count as full speed.
const SLACK: f64 = 1.04;

/// Samples, each between two calibrations.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Sample>);

#[derive(Debug, Clone, Copy)]
struct Sample {
    before: f64,
    seconds: f64,
    after: f64,
}

/// Seconds of the samples that count, each for one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Half of the samples are below.
    pub median: f64,
    /// The fastest.
    pub min: f64,
    /// The slowest.
    pub max: f64,
    /// How many samples count.
    pub kept: usize,
}

impl Samples {
    /// Takes one more; `sample` returns the seconds that one run took.
    ///
    /// # Errors
    /// That of `sample`.
    pub fn take<E>(&mut self, sample: impl FnOnce() -> Result<f64, E>) -> Result<(), E> {
        let before = calibrate();
        let seconds = sample()?;
        self.0.push(Sample { before, seconds, after: calibrate() });
        Ok(())
    }

    /// The samples whose brackets both ran at full speed; all of them if none did. Nothing when no
    /// sample was taken.
    pub fn spread(&self) -> Option<Spread> {
        let brackets = self.0.iter().flat_map(|sample| [sample.before, sample.after]);
        let full_speed = SLACK * brackets.fold(f64::INFINITY, f64::min);
        let counts = |sample: &&Sample| sample.before.max(sample.after) <= full_speed;
        let mut seconds: Vec<f64> = self.0.iter().filter(counts).map(|s| s.seconds).collect();
        let kept = seconds.len();
        if kept == 0 {
            seconds = self.0.iter().map(|sample| sample.seconds).collect();
        }
        seconds.sort_by(f64::total_cmp);
        let (min, max) = (*seconds.first()?, *seconds.last()?);
        Some(Spread { median: seconds[seconds.len() / 2], min, max, kept })
    }
}

/// Seconds for one run of `run`, repeated for at least so long.
///
/// # Errors
/// The first of `run`.
pub fn repeat<E>(least: f64, mut run: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut runs = 0_u32;
    let start = Instant::now();
    loop {
        run()?;
        runs += 1;
        let seconds = start.elapsed().as_secs_f64();
        if seconds >= least {
            return Ok(seconds / f64::from(runs));
        }
    }
}

/// The bytes of a page: what addresses must not share to be kept in one set of a cache.
const PAGE: usize = 4096;

/// Memory of a shard, at a chosen place within a page.
#[derive(Debug)]
pub struct Shard {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Shard {
    /// Memory of `length` bytes that begins `offset` bytes (modulo a page) after a page's begin;
    /// nothing when the system has not as much.
    pub fn new(length: usize, offset: usize) -> Option<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(length.checked_add(2 * PAGE)?).ok()?;
        memory.resize(length + 2 * PAGE, 0);
        let start = memory.as_ptr().align_offset(PAGE) % PAGE + offset % PAGE;
        Some(Self { memory, start, length })
    }

    /// Fills it with bytes of no short period.
    pub fn fill(&mut self, seed: usize) {
        self.bytes_mut().iter_mut().zip(pattern(seed)).for_each(|(to, from)| *to = from);
    }

    /// Whether it holds what [`Shard::fill`] made.
    pub fn is_filled(&self, seed: usize) -> bool {
        self.bytes().iter().zip(pattern(seed)).all(|(&is, right)| is == right)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }

    /// Its bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.length]
    }
}

/// Memory of many shards of one length, at equal distances.
#[derive(Debug)]
pub struct Shards {
    memory: Shard,
    length: usize,
    stride: usize,
}

impl Shards {
    /// Memory of `count` shards of `length` bytes, the first at a page's begin, each `stride` bytes (but no
    /// less than its length) after the one before; nothing when the system has not as much.
    pub fn new(count: usize, length: usize, stride: usize) -> Option<Self> {
        let stride = stride.max(length).max(1);
        let memory = Shard::new(count.checked_mul(stride)?, 0)?;
        Some(Self { memory, length, stride })
    }

    /// Fills each with other bytes of no short period.
    pub fn fill(&mut self) {
        for (seed, shard) in self.iter_mut().enumerate() {
            shard.iter_mut().zip(pattern(seed)).for_each(|(to, from)| *to = from);
        }
    }

    /// The bytes of each.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.memory.bytes().chunks_exact(self.stride).map(|shard| &shard[..self.length])
    }

    /// The bytes of each, to be written.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let chunks = self.memory.bytes_mut().chunks_exact_mut(self.stride);
        chunks.map(|shard| &mut shard[..self.length])
    }
}

fn pattern(seed: usize) -> impl Iterator<Item = u8> {
    (0..).map(move |i: usize| ((i % 251) * 7 + seed * 31 + i / 251 * 3) as u8)
}

/// The seconds of a fixed chain of multiplications, which needs nothing but the core.
fn calibrate() -> f64 {
    let start = Instant::now();
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..30_000 {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1);
    }
    black_box(x);
    start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(before: f64, seconds: f64, after: f64) -> Sample {
        Sample { before, seconds, after }
    }

    #[test]
    fn brackets_decide() {
        let taken = vec![
            sample(1.0, 7.0, 1.0),
            sample(1.0, 1.0, 1.5),
            sample(1.02, 9.0, 1.03),
            sample(2.0, 2.0, 2.0),
            sample(1.0, 8.0, 1.0),
        ];
        let spread = Samples(taken).spread().unwrap();
        assert_eq!(spread, Spread { median: 8.0, min: 7.0, max: 9.0, kept: 3 });
    }

    #[test]
    fn all_samples_where_no_bracket_is_fast() {
        let spread = Samples(vec![sample(1.0, 5.0, 2.0), sample(2.0, 6.0, 2.0)]).spread();
        assert_eq!(spread, Some(Spread { median: 6.0, min: 5.0, max: 6.0, kept: 0 }));
        assert_eq!(Samples::default().spread(), None);
    }

    #[test]
    fn shards_lie_where_they_are_to() {
        for offset in [0, 1, 320, 4095, 5000] {
            let mut shard = Shard::new(10_000, offset).unwrap();
            assert_eq!(shard.bytes().as_ptr().addr() % PAGE, offset % PAGE);
            shard.fill(3);
            assert!(shard.is_filled(3) && !shard.is_filled(4));
            shard.bytes_mut()[9_999] ^= 1;
            assert!(!shard.is_filled(3));
        }
        assert!(Shard::new(usize::MAX, 0).is_none());
    }

    #[test]
    fn many_shards_lie_at_equal_distances() {
        let mut shards = Shards::new(5, 100, 192).unwrap();
        shards.fill();
        let starts: Vec<usize> = shards.iter().map(|shard| shard.as_ptr().addr()).collect();
        assert!(starts[0].is_multiple_of(PAGE) && starts.windows(2).all(|w| w[1] - w[0] == 192));
        assert!(shards.iter().all(|shard| shard.len() == 100));
        let first: Vec<u8> = shards.iter().map(|shard| shard[0]).collect();
        assert_eq!(first, [0, 31, 62, 93, 124]);
        shards.iter_mut().for_each(|shard| shard.fill(7));
        assert!(shards.iter().all(|shard| shard.iter().all(|&byte| byte == 7)));
        assert_eq!(Shards::new(3, 64, 0).unwrap().iter().len(), 3);
        assert!(Shards::new(usize::MAX, 64, 64).is_none());
    }

    #[test]
    fn runs_are_counted() {
        let mut runs = 0;
        let seconds = repeat(0.002, || {
            runs += 1;
            std::thread::sleep(std::time::Duration::from_micros(700));
            Ok::<(), ()>(())
        });
        assert!(runs <= 3 && seconds.unwrap() >= 0.0007);
        assert_eq!(repeat(1.0, || Err(3)), Err(3));
    }
}
