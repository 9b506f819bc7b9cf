//! Making parts of an object from other parts of it: for repair, and for a later stage.
//!
//! Only the lanes that the plan needs are read. For one lost shard, many codes need less than k
//! whole shards; for a later stage of delayed parity, they are just the symbols that the code
//! names. If one of these is damaged or out of reach in a segment, enough whole blocks of the
//! segment are read instead.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::{join_all, try_join_all};
use futures::stream::{self, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::layout::ObjectLayout;
use paritas_store::object::segment::Segment;

use crate::node::Writer;
use crate::transfer::receive::{Receiver, run_blocking, shared_lane};
use crate::transfer::{Place, Settings, ShardedObject};

/// An object with parts to be made.
#[derive(Debug)]
pub(crate) struct Rebuild {
    pub object: ShardedObject,
    /// Where each part is. If it is not there any more, the next place is asked.
    pub places: Vec<Vec<Place>>,
    pub settings: Settings,
}

/// What was done.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    /// For each target: success if it is durable on its node, otherwise the error.
    pub parts: Vec<Result<()>>,
    /// Number of bytes of blocks that were read.
    pub read_bytes: u64,
}

/// A target that is being written.
struct Writing {
    part: usize,
    writer: Result<Box<dyn Writer>>,
}

impl Rebuild {
    /// Makes parts, each in the file at its place. Tells `progress` how many more bytes of the
    /// object are done.
    ///
    /// # Errors
    /// If the parts that can be read do not determine them ([`crate::ErrorKind::TooFewShards`]).
    /// Then nothing appears.
    pub async fn run(
        self,
        targets: Vec<(usize, Place)>,
        progress: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Rebuilt> {
        let parts: Vec<usize> = targets.iter().map(|(part, _)| *part).collect();
        let ShardedObject { layout, length, digest, .. } = self.object;
        let receiver = Receiver::new(layout.clone(), length, self.places, self.settings);
        let plan = Arc::new(ReadPlan::new(&receiver, parts)?);
        let mut writings = join_all(targets.into_iter().map(begin)).await;
        for writing in &mut writings {
            let front = layout.front(writing.part)?;
            writing.write(vec![front.into()]).await;
        }
        if let Err(error) = write_segments(&receiver, &plan, &mut writings, progress).await {
            let writers = writings.into_iter().filter_map(|writing| writing.writer.ok());
            join_all(writers.map(|writer| writer.abort())).await;
            return Err(error);
        }
        for writing in &mut writings {
            let footer = layout.footer(writing.part, length, digest)?;
            writing.write(vec![footer.into()]).await;
        }
        let parts = join_all(writings.into_iter().map(Writing::finish)).await;
        Ok(Rebuilt { parts, read_bytes: receiver.read_bytes() })
    }
}

/// Makes all segments and writes their blocks, as long as one of them can be written.
async fn write_segments(
    receiver: &Arc<Receiver>,
    plan: &Arc<ReadPlan>,
    writings: &mut [Writing],
    progress: &(dyn Fn(u64) + Send + Sync),
) -> Result<()> {
    let (layout, mut segments) = (&receiver.layout, made(receiver, plan));
    while writings.iter().any(|writing| writing.writer.is_ok()) {
        let Some(segment) = segments.next().await else { break };
        let segment = Arc::new(segment?);
        join_all(writings.iter_mut().map(|w| w.write_block(layout, &segment))).await;
        let bytes = layout.segment_range(receiver.length, segment.number());
        progress(bytes.end - bytes.start);
    }
    Ok(())
}

/// What is read to make some parts. A part that could not be read once is left out from then on,
/// because every request to a node that hangs would take the whole time limit.
struct ReadPlan {
    make: Vec<usize>,
    lanes: Mutex<Arc<Vec<usize>>>,
}

impl ReadPlan {
    fn new(receiver: &Receiver, make: Vec<usize>) -> Result<Self> {
        let lanes = Self::needed(receiver, &make).map_err(|error| match error.kind() {
            ErrorKind::TooFewShards => too_few(receiver),
            _ => error,
        })?;
        Ok(Self { make, lanes: Mutex::new(Arc::new(lanes)) })
    }

    /// Returns the lanes that are read to make parts: the lanes that the code names for a stage, if
    /// all other parts exist, or the lanes that a plan needs.
    fn needed(receiver: &Receiver, make: &[usize]) -> Result<Vec<usize>> {
        let layout = &receiver.layout;
        let there: Vec<usize> =
            (0..layout.part_count()).filter(|&part| receiver.is_there(part)).collect();
        let stage = make.iter().map(|&part| layout.part(part).stage).max().unwrap_or(1);
        let is_promotion = stage > 1 && make.len() == layout.parts_in(stage).len();
        if is_promotion {
            let lanes = layout.lanes_of_promotion(stage);
            let has = |lane: &usize| there.iter().any(|&part| layout.lanes(part).contains(lane));
            if lanes.iter().all(has) {
                return Ok(lanes);
            }
        }
        layout.lanes_to_make(&there, make)
    }

    fn lanes(&self) -> Arc<Vec<usize>> {
        Arc::clone(&self.lanes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Turns to the next place of a part that could not be read at place `turn`. Leaves the part
    /// out if there is none; if the others do not suffice, the plan stays.
    fn pass_over(&self, receiver: &Receiver, part: usize, turn: usize, error: &Error) {
        receiver.note(part, error.message());
        if !receiver.try_next_place(part, turn)
            && receiver.leave_out(part)
            && let Ok(lanes) = Self::needed(receiver, &self.make)
        {
            *self.lanes.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(lanes);
        }
    }
}

/// Returns the error for parts that do not determine the others.
fn too_few(receiver: &Receiver) -> Error {
    let all = receiver.layout.part_count();
    let there = (0..all).filter(|&part| receiver.is_there(part)).count();
    Error::too_few(format!(
        "{there} of its {all} shards are at hand, and do not determine the others"
    ))
}

/// Returns the segments of an object in order, with all parts of the plan made and sealed.
fn made<'a>(
    receiver: &'a Arc<Receiver>,
    plan: &'a Arc<ReadPlan>,
) -> stream::BoxStream<'a, Result<Segment>> {
    let count = receiver.layout.segments(receiver.length);
    let ahead =
        (receiver.settings.memory / 2 / receiver.layout.segment_memory().max(1)).clamp(1, 16);
    stream::iter(0..count)
        .map(move |number| make(Arc::clone(receiver), number, Arc::clone(plan)))
        .buffered(ahead)
        .boxed()
}

/// Makes the blocks of some parts of one segment.
async fn make(receiver: Arc<Receiver>, number: u64, plan: Arc<ReadPlan>) -> Result<Segment> {
    // If a lane cannot be read, the segment is read in whole blocks below.
    let lanes = read_lanes(&receiver, number, &plan.lanes()).await.unwrap_or_else(|failed| {
        plan.pass_over(&receiver, failed.part, failed.turn, &failed.error);
        Vec::new()
    });
    let (this, for_make) = (Arc::clone(&receiver), Arc::clone(&plan));
    let (segment, is_made) = run_blocking(move || {
        let mut segment = this.layout.segment()?;
        segment.begin(number, &this.layout.extent(this.length));
        for (part, lanes, bytes) in lanes {
            for lane in segment.accept_lanes(part, lanes, &bytes) {
                this.note(part, &format!("lane {lane} of segment {number} fails its checksum"));
            }
        }
        let is_made = seal(&mut segment, &for_make.make).is_ok();
        Ok::<_, Error>((segment, is_made))
    })
    .await??;
    match is_made {
        true => Ok(segment),
        false => make_from_blocks(receiver, segment, plan).await,
    }
}

/// Makes the blocks of some parts of a segment from whole blocks of others, wherever these are.
/// Parts that were left out are tried last.
async fn make_from_blocks(
    receiver: Arc<Receiver>,
    mut segment: Segment,
    plan: Arc<ReadPlan>,
) -> Result<Segment> {
    let number = segment.number();
    segment.begin(number, &receiver.layout.extent(receiver.length));
    let is_left_out = |&part: &usize| !receiver.places[part].is_empty() && !receiver.is_there(part);
    let left_out: Vec<usize> = (0..receiver.places.len()).filter(is_left_out).collect();
    let mut read = Vec::new();
    for part in receiver.preference(&[]).into_iter().chain(left_out) {
        for turn in receiver.turn(part)..receiver.places[part].len() {
            match receiver.read_at(part, turn, number).await {
                Ok(block) if segment.accept(part, &block).is_empty() => {
                    read.push(part);
                    break;
                }
                Ok(_) => receiver
                    .note(part, &format!("its block of segment {number} fails its checksum")),
                Err(error) => plan.pass_over(&receiver, part, turn, &error),
            }
        }
        if segment.is_solvable() {
            return run_blocking(move || {
                seal(&mut segment, &plan.make)?;
                Ok::<_, Error>(segment)
            })
            .await?;
        }
    }
    Err(receiver.lost(&(number..number + 1), &read))
}

fn seal(segment: &mut Segment, parts: &[usize]) -> Result<()> {
    for &part in parts {
        segment.make(part..part + 1)?;
        segment.seal(part);
    }
    Ok(())
}

/// A part that could not be read, and the number of the place that was asked for it.
struct FailedRead {
    part: usize,
    turn: usize,
    error: Error,
}

/// Reads the lanes in `needed` (ascending) of one segment, adjacent ones together. Fails with the
/// first part that cannot be read.
async fn read_lanes(
    receiver: &Receiver,
    number: u64,
    needed: &[usize],
) -> Result<Vec<(usize, Range<usize>, Bytes)>, FailedRead> {
    let layout = &receiver.layout;
    let mut runs = Vec::new();
    for part in 0..layout.part_count() {
        let lanes = layout.lanes(part);
        let own: Vec<usize> = needed.iter().copied().filter(|lane| lanes.contains(lane)).collect();
        let adjacent = own.chunk_by(|a, b| a + 1 == *b);
        runs.extend(adjacent.map(|run| (part, run[0]..run[0] + run.len())));
    }
    let read = |(part, lanes): (usize, Range<usize>)| async move {
        let turn = receiver.turn(part);
        let bytes = receiver.read_lanes(part, number, lanes.clone()).await;
        bytes.map(|bytes| (part, lanes, bytes)).map_err(|error| FailedRead { part, turn, error })
    };
    try_join_all(runs.into_iter().map(read)).await
}

async fn begin((part, place): (usize, Place)) -> Writing {
    Writing { part, writer: place.node.writer(&place.path).await }
}

impl Writing {
    async fn write_block(&mut self, layout: &ObjectLayout, segment: &Arc<Segment>) {
        let lanes = layout.lanes(self.part);
        let pieces = lanes.map(|lane| shared_lane(Arc::clone(segment), lane));
        self.write(pieces.collect()).await;
    }

    /// Appends bytes, unless writing has failed.
    async fn write(&mut self, pieces: Vec<Bytes>) {
        let Ok(writer) = &mut self.writer else { return };
        if let Err(error) = writer.write(pieces).await
            && let Ok(writer) = std::mem::replace(&mut self.writer, Err(error))
        {
            writer.abort().await;
        }
    }

    async fn finish(self) -> Result<()> {
        self.writer?.finish().await
    }
}
