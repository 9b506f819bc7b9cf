//! `paritas volume bench`: how fast objects are stored and read, compared with plain files on the
//! same nodes.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use paritas_report::volumes::{VolumeBenchLine, VolumeOperationWord as Op};
use paritas_volume::{GetOptions, ObjectName, Pattern, PlainFiles, PutOptions, Volume};

use super::AT_ONCE;
use crate::args::volume::Bench;
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};

/// Bytes of the ranges that are read.
const RANGE: u64 = 4096;

/// Seconds that one round took: with the volume, and with plain files.
#[derive(Clone, Copy)]
struct Pair {
    own: f64,
    plain: f64,
}

/// Returns the name of an operation in texts.
fn name(op: Op) -> &'static str {
    match op {
        Op::Put => "put",
        Op::Get => "get",
        Op::Range => "range",
        Op::Promote => "promote",
    }
}

/// Measures a volume, and removes the objects that were stored for it.
pub async fn run(args: &Bench, output: &Output) -> Outcome {
    let volume = super::open(&args.volume)?;
    let (names, pattern) = (names(args.objects.unwrap_or(1))?, Pattern::random()?);
    let subject = VolumeSubject { volume: &volume, names, pattern, args };
    let measured = subject.measure().await;
    // After a failure, too, objects are removed as far as nodes answer.
    let removed = subject.remove().await;
    let pairs = measured?;
    removed?;
    for op in [Op::Put, Op::Get, Op::Range, Op::Promote] {
        let of_op = pairs.iter().filter(|(of, _)| *of == op);
        let of_op: Vec<Pair> = of_op.map(|(_, pair)| *pair).collect();
        if !of_op.is_empty() {
            subject.report(op, &of_op, output);
        }
    }
    Ok(Exit::Done)
}

/// Returns names that no other object has.
fn names(count: usize) -> Result<Vec<ObjectName>, Failure> {
    let folder = format!("paritas-bench/{}", paritas_shards::ObjectId::random()?);
    let name = |number| Ok(ObjectName::new(format!("{folder}/{number}"))?);
    (0..count).map(name).collect()
}

/// A volume that is measured with objects of one length.
struct VolumeSubject<'a> {
    volume: &'a Volume,
    names: Vec<ObjectName>,
    pattern: Pattern,
    args: &'a Bench,
}

impl VolumeSubject<'_> {
    async fn measure(&self) -> Result<Vec<(Op, Pair)>, Failure> {
        let mut pairs = Vec::new();
        for round in 0..self.args.rounds {
            let files = self.files()?;
            let measured = self.measure_once(round, &files, &mut pairs).await;
            futures::future::try_join_all(files.iter().map(PlainFiles::delete)).await?;
            measured?;
            self.remove().await?;
        }
        Ok(pairs)
    }

    async fn measure_once(
        &self,
        round: u32,
        files: &[PlainFiles],
        pairs: &mut Vec<(Op, Pair)>,
    ) -> Result<(), Failure> {
        let is_first = round.is_multiple_of(2);
        let write = self.all_files(files, async |files| Ok(files.write().await?));
        pairs.push((Op::Put, pair(is_first, self.put(), write).await?));
        let needed = self.needed();
        let read = self.all_files(files, async |files| Ok(files.read(needed).await?));
        pairs.push((Op::Get, pair(is_first, self.get(), read).await?));
        let [(name, file)] = &self.names.iter().zip(files).collect::<Vec<_>>()[..] else {
            return Ok(());
        };
        if self.args.objects.is_some() {
            return Ok(());
        }
        let range = self.range(round);
        let of_file = 0..RANGE.min(self.file_bytes());
        let read = async { Ok(file.read_part(of_file).await?) };
        pairs.push((Op::Range, pair(is_first, self.get_range(name, range), read).await?));
        if self.is_staged() {
            let more = self.later_files()?;
            let write = async { Ok(more.write().await?) };
            let promoted = pair(is_first, self.promote(name), write).await;
            more.delete().await?;
            pairs.push((Op::Promote, promoted?));
            // The added parity must not change the bytes that are read.
            self.get().await?;
        }
        Ok(())
    }

    /// Whether objects get further parity later.
    fn is_staged(&self) -> bool {
        self.volume.code().stages() > 1 && !self.is_inline()
    }

    fn is_inline(&self) -> bool {
        self.args.size <= self.volume.inline_bytes() as u64
    }

    /// Returns the number of plain files that stand for an object: one for each shard of the first
    /// stage, or for each copy of the manifest.
    fn count(&self) -> usize {
        match self.is_inline() {
            true => self.volume.tolerance() + 1,
            false => self.volume.shards_at(1),
        }
    }

    /// Returns the number of plain files that together hold as many bytes as the object.
    fn needed(&self) -> usize {
        match self.is_inline() {
            true => 1,
            false => self.volume.shards_needed(),
        }
    }

    fn file_bytes(&self) -> u64 {
        self.args.size.div_ceil(self.needed() as u64)
    }

    /// Returns the plain files that stand for each object.
    fn files(&self) -> Result<Vec<PlainFiles>, Failure> {
        let (count, bytes) = (self.count(), self.file_bytes());
        let files = |_| Ok(self.volume.plain_files(count, bytes, &self.pattern)?);
        self.names.iter().map(files).collect()
    }

    /// Returns the plain files that stand for the shards of the last stage.
    fn later_files(&self) -> Result<PlainFiles, Failure> {
        let more = self.volume.shards_at(self.volume.code().stages()) - self.volume.shards_at(1);
        Ok(self.volume.plain_files(more, self.file_bytes(), &self.pattern)?)
    }

    /// Runs `act` on the files of all objects, up to [`AT_ONCE`] at a time.
    async fn all_files(
        &self,
        files: &[PlainFiles],
        act: impl AsyncFn(&PlainFiles) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let acts = futures::stream::iter(files).map(|files| act(files));
        acts.buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Runs `act` on all objects, up to [`AT_ONCE`] at a time.
    async fn all(
        &self,
        act: impl AsyncFn(&ObjectName) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let acts = futures::stream::iter(&self.names).map(|name| act(name));
        acts.buffer_unordered(AT_ONCE).try_collect().await
    }

    async fn put(&self) -> Result<(), Failure> {
        self.all(async |name| {
            let source =
                PatternSource { pattern: self.pattern.clone(), at: 0, end: self.args.size };
            let mut options = PutOptions::default();
            options.length = Some(self.args.size);
            let put = self.volume.put(name, source, options).await?;
            match put.is_owed {
                false => Ok(()),
                true => Err(Failure::from(paritas_volume::Error::new(
                    paritas_volume::ErrorKind::TooFewNodes,
                    "not all nodes took their shards, so nothing can be measured",
                ))),
            }
        })
        .await
    }

    async fn get(&self) -> Result<(), Failure> {
        self.all(async |name| self.get_range(name, 0..self.args.size).await).await
    }

    /// Reads a range, and compares it with what was stored.
    async fn get_range(&self, name: &ObjectName, range: Range<u64>) -> Result<(), Failure> {
        let mut sink = PatternCheck { pattern: &self.pattern, at: range.start };
        let whole = 0..self.args.size;
        let wanted = (range != whole).then_some(range.clone());
        let options = GetOptions::default();
        self.volume.get(name, wanted, &mut sink, options, &|_| {}).await?;
        match sink.at == range.end {
            true => Ok(()),
            false => Err(Failure::internal("fewer bytes came back than were stored")),
        }
    }

    /// Returns the range that is read in a round. The ranges of all rounds are spread over the
    /// object.
    fn range(&self, round: u32) -> Range<u64> {
        let length = RANGE.min(self.args.size);
        let places = self.args.size - length + 1;
        let start = u64::from(round) * places / u64::from(self.args.rounds);
        start..start + length
    }

    async fn promote(&self, name: &ObjectName) -> Result<(), Failure> {
        let promoted = self.volume.promote(name).await?;
        match promoted.is_owed {
            false => Ok(()),
            true => Err(Failure::internal("not all shards of the later stage were stored")),
        }
    }

    /// Removes the objects that exist.
    async fn remove(&self) -> Result<(), Failure> {
        self.all(async |name| match self.volume.remove(name).await {
            Err(error) if error.kind() != paritas_volume::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        })
        .await
    }

    fn report(&self, op: Op, pairs: &[Pair], output: &Output) {
        let own = SampleSpread::of(pairs.iter().map(|pair| pair.own).collect());
        let plain = SampleSpread::of(pairs.iter().map(|pair| pair.plain).collect());
        let ratio = SampleSpread::of(pairs.iter().map(|pair| pair.plain / pair.own).collect());
        let Bench { size, objects, .. } = *self.args;
        let amount = self.amount(op);
        let line = VolumeBenchLine {
            op,
            size,
            objects,
            rounds: pairs.len(),
            seconds_median: own.median,
            seconds_min: own.min,
            seconds_max: own.max,
            rate: amount / own.median,
            plain_seconds_median: plain.median,
            plain_seconds_min: plain.min,
            plain_seconds_max: plain.max,
            plain_rate: amount / plain.median,
            ratio: ratio.median,
            ratio_min: ratio.min,
            ratio_max: ratio.max,
        };
        output.result(line, || {
            let SampleSpread { median, min, max } = ratio;
            let (own, plain) = (self.spread_text(op, &own), self.spread_text(op, &plain));
            let op = name(op);
            format!("{op:<8} {own}; plain files {plain}; ratio {median:.2} ({min:.2} to {max:.2})")
        });
    }

    /// Returns the amount of work of one round: the number of objects or of bytes.
    fn amount(&self, op: Op) -> f64 {
        let Bench { size, objects, .. } = *self.args;
        match (op, objects) {
            (_, Some(objects)) => objects as f64,
            (Op::Range, None) => RANGE.min(size) as f64,
            (_, None) => size as f64,
        }
    }

    /// Returns the speed of a round as text. For ranges, this is the time.
    fn speed_text(&self, op: Op, seconds: f64) -> String {
        let rate = self.amount(op) / seconds;
        match (op, self.args.objects) {
            (_, Some(_)) => format!("{rate:.0} objects/s"),
            (Op::Range, None) => format!("{:.2} ms", seconds * 1000.0),
            (_, None) => format!("{}/s", output::bytes(rate as u64)),
        }
    }

    /// Returns the spread of speeds as text: the median, then both ends, the smaller number first.
    fn spread_text(&self, op: Op, seconds: &SampleSpread) -> String {
        let SampleSpread { median, min, max } = *seconds;
        let ends = if op == Op::Range { [min, max] } else { [max, min] };
        let [from, to] = ends.map(|seconds| self.speed_text(op, seconds));
        format!("{} (from {from} to {to})", self.speed_text(op, median))
    }
}

/// Times two jobs back to back: `own` runs first if `is_first`, and otherwise second.
async fn pair(
    is_first: bool,
    own: impl Future<Output = Result<(), Failure>>,
    plain: impl Future<Output = Result<(), Failure>>,
) -> Result<Pair, Failure> {
    if is_first {
        let own = seconds(own).await?;
        return Ok(Pair { own, plain: seconds(plain).await? });
    }
    let plain = seconds(plain).await?;
    Ok(Pair { own: seconds(own).await?, plain })
}

async fn seconds(job: impl Future<Output = Result<(), Failure>>) -> Result<f64, Failure> {
    let start = Instant::now();
    job.await?;
    Ok(start.elapsed().as_secs_f64().max(1e-9))
}

/// The median and the ends of some numbers.
struct SampleSpread {
    median: f64,
    min: f64,
    max: f64,
}

impl SampleSpread {
    /// Returns the spread of at least one number.
    fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
        let last = numbers.len().saturating_sub(1);
        let median = f64::midpoint(at(last / 2), at(last.div_ceil(2)));
        Self { median, min: at(0), max: at(last) }
    }
}

/// A pattern as the source of an object.
struct PatternSource {
    pattern: Pattern,
    at: u64,
    end: u64,
}

impl Read for PatternSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.end - self.at).min(buffer.len() as u64);
        if most == 0 {
            return Ok(0);
        }
        let bytes = self.pattern.at(self.at, most);
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// Compares what is written to it with a pattern.
struct PatternCheck<'a> {
    pattern: &'a Pattern,
    at: u64,
}

impl Write for PatternCheck<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.pattern.is_at(self.at, bytes) {
            return Err(io::Error::other("it differs from what was stored"));
        }
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
