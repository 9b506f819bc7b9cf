//! Sending: from a source of bytes to the shards on their nodes.
//!
//! Threads read, hash and encode segments; a task for each part writes its blocks in order. A
//! segment's memory is shared by all these tasks without copying, and comes back to the pool when
//! the last of them is done with it. So the pool bounds the memory, and a slow node slows the
//! source down instead of filling the memory.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use bytes::Bytes;
use futures::future::join_all;
use paritas_shards::Digest;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::encode::encode_segments;
use paritas_store::object::layout::ObjectLayout;
use paritas_store::object::segment::Segment;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinHandle};

use crate::flaw::{is_full, no_space};
use crate::node::Writer;
use crate::outside::block;
use crate::transfer::Settings;

/// What was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Number of bytes of the object.
    pub length: u64,
    pub digest: Digest,
    /// For each part: success if it is durable on its node, otherwise the error.
    pub parts: Vec<Result<()>>,
}

/// Encodes all bytes of `source` and writes part i to `writers[i]`. Parts without a writer are not
/// written.
///
/// # Errors
/// If the source cannot be read, or if fewer than `needed` parts could be written. Then nothing
/// appears on any node. (If enough were written, some may still fail to appear; [`Sent::parts`]
/// tells which.)
pub(crate) async fn send(
    layout: &ObjectLayout,
    source: impl Read + Send + 'static,
    writers: Vec<Option<Box<dyn Writer>>>,
    needed: usize,
    settings: &Settings,
    progress: Arc<dyn Fn(u64) + Send + Sync>,
) -> Result<Sent> {
    let begun = writers.iter().flatten().count();
    let alive = Arc::new(Alive { count: AtomicUsize::new(begun), needed });
    let upload = |(part, writer)| {
        let (layout, alive) = (layout.clone(), Arc::clone(&alive));
        PartUpload { layout, part, unit: settings.unit, alive }.spawn(writer)
    };
    let (lines, uploads): (Vec<_>, Vec<_>) = writers.into_iter().enumerate().map(upload).unzip();
    let tasks = uploads.iter().map(JoinHandle::abort_handle).collect();
    let _given_up = GiveUp { alive: Arc::clone(&alive), uploads: tasks };
    let coder = Coder { layout: layout.clone(), lines, alive, progress };
    let pool = Pool::new(layout, settings);
    let coded = block("encoding", move || coder.run(source, &pool)).await?;
    // The coder has dropped its ends of the lines: uploads without an end give up.
    let written = join_all(uploads).await.into_iter();
    let written = written.map(|part| part.unwrap_or_else(|e| Err(Error::internal("uploading", e))));
    let written: Vec<Result<Box<dyn Writer>>> = written.collect();
    let enough = written.iter().flatten().count() >= needed;
    match coded {
        Ok((length, digest)) if enough => {
            let parts = join_all(written.into_iter().map(finish)).await;
            Ok(Sent { length, digest, parts })
        }
        coded => {
            let error = coded.map_or_else(|error| error, |_| too_few(needed, begun, &written));
            join_all(written.into_iter().flatten().map(|writer| writer.abort())).await;
            Err(error)
        }
    }
}

/// Number of uploads that have not failed, and number of uploads that are needed.
struct Alive {
    count: AtomicUsize,
    needed: usize,
}

impl Alive {
    fn lose_one(&self) {
        let less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn are_too_few(&self) -> bool {
        self.count.load(Ordering::Relaxed) < self.needed.max(1)
    }
}

/// Makes the coder and the uploads end when nobody waits for them any longer: they run apart from
/// the caller, and dropping the caller's future does not stop them. The uploads end at once,
/// however long the coder waits for its source.
struct GiveUp {
    alive: Arc<Alive>,
    uploads: Vec<AbortHandle>,
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.alive.count.store(0, Ordering::Relaxed);
        self.uploads.iter().for_each(AbortHandle::abort);
    }
}

/// Makes a part that has been written appear on its node.
async fn finish(written: Result<Box<dyn Writer>>) -> Result<()> {
    written?.finish().await
}

/// Returns the error for too few written parts, with the reasons why others failed. A part that was
/// cancelled because of others has not failed: it counts as one of the `begun` parts that could be
/// written.
fn too_few(needed: usize, begun: usize, written: &[Result<Box<dyn Writer>>]) -> Error {
    let failed = written.iter().filter_map(|part| part.as_ref().err());
    let failed = failed.filter(|error| error.kind() != ErrorKind::Cancelled);
    let failed: Vec<&Error> = failed.collect();
    let reasons: Vec<String> = failed.iter().map(ToString::to_string).collect();
    let given = begun.saturating_sub(reasons.len());
    let error = Error::too_few_nodes(needed, given).with_reasons(&reasons);
    match failed.into_iter().any(is_full) {
        true => error.because(no_space()),
        false => error,
    }
}

/// What a line to an upload carries.
enum UploadItem {
    /// A segment, from which the upload takes the block of its part.
    Block(Arc<Sealed>),
    /// The end of the object.
    End { length: u64, digest: Digest },
}

type Line = UnboundedSender<UploadItem>;
type UploadTask = JoinHandle<Result<Box<dyn Writer>>>;

/// The threads' side.
struct Coder {
    layout: ObjectLayout,
    lines: Vec<Option<Line>>,
    alive: Arc<Alive>,
    progress: Arc<dyn Fn(u64) + Send + Sync>,
}

impl Coder {
    fn run(self, source: impl Read + Send, pool: &Pool) -> Result<(u64, Digest)> {
        let parts = 0..self.lines.len();
        let done = |mut segment: Segment, bytes: usize| {
            let wanted = self.lines.iter().enumerate().filter(|(_, line)| line.is_some());
            wanted.for_each(|(part, _)| _ = segment.seal(part));
            let sealed = Arc::new(Sealed { segment: Some(segment), home: pool.home.clone() });
            for line in self.lines.iter().flatten() {
                // An upload that has failed takes nothing more.
                let _ = line.send(UploadItem::Block(Arc::clone(&sealed)));
            }
            if self.alive.are_too_few() {
                return Err(Error::cancelled());
            }
            (self.progress)(bytes as u64);
            Ok(())
        };
        let coded = encode_segments(source, parts, pool.threads, || pool.take(&self.layout), done);
        let (length, digest) = match coded {
            Ok(coded) => coded,
            // Stopped by failed uploads, which tell why.
            Err(error) if error.kind() == ErrorKind::Cancelled => {
                return Ok((0, Digest::new([0; 32])));
            }
            Err(error) => return Err(error),
        };
        for line in self.lines.iter().flatten() {
            let _ = line.send(UploadItem::End { length, digest });
        }
        Ok((length, digest))
    }
}

/// Segments that are used again and again.
struct Pool {
    home: mpsc::Sender<Segment>,
    free: Mutex<mpsc::Receiver<Segment>>,
    /// Number of segments that may still be made.
    room: AtomicUsize,
    /// Number of threads that take segments.
    threads: usize,
}

impl Pool {
    /// Makes room for segments of `memory` bytes together, but at least for what one thread holds
    /// and what the upload of the part with the smallest blocks collects for one request.
    fn new(layout: &ObjectLayout, settings: &Settings) -> Self {
        let (home, free) = mpsc::channel();
        let block = |part| layout.lanes(part).map(|lane| layout.lane_bytes(lane)).sum::<usize>();
        let smallest = layout.parts_in(1).map(block).min().unwrap_or_default();
        let collected = settings.unit.div_ceil(smallest.max(1)) + 2;
        let threads = settings.threads_for(layout, collected);
        let room = (settings.memory / layout.segment_memory().max(1)).max(collected + threads);
        Self { home, free: Mutex::new(free), room: AtomicUsize::new(room), threads }
    }

    /// Takes a free segment, makes a new one while there is room, and otherwise waits for one.
    fn take(&self, layout: &ObjectLayout) -> Result<Segment> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(segment) = free.try_recv() {
            return Ok(segment);
        }
        let less = |room: usize| room.checked_sub(1);
        match self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => layout.segment(),
            // The pool holds a sender itself, so the line never closes.
            Err(_) => free.recv().map_err(|_| Error::cancelled()),
        }
    }
}

/// A segment whose blocks are all ready. It goes back to its pool when nobody holds it any longer.
#[derive(Debug)]
struct Sealed {
    segment: Option<Segment>,
    home: mpsc::Sender<Segment>,
}

impl Drop for Sealed {
    fn drop(&mut self) {
        if let Some(segment) = self.segment.take() {
            // Without a pool, the memory is given back to the system.
            drop(self.home.send(segment));
        }
    }
}

/// A lane of a sealed segment, as shared memory.
struct SealedLane {
    sealed: Arc<Sealed>,
    lane: usize,
}

impl AsRef<[u8]> for SealedLane {
    fn as_ref(&self) -> &[u8] {
        self.sealed.segment.as_ref().map_or(&[], |segment| segment.sealed_lane(self.lane))
    }
}

/// The task that writes one part.
struct PartUpload {
    layout: ObjectLayout,
    part: usize,
    unit: usize,
    alive: Arc<Alive>,
}

impl PartUpload {
    /// Begins the task, and returns the line to it, if the part has a writer.
    fn spawn(self, writer: Option<Box<dyn Writer>>) -> (Option<Line>, UploadTask) {
        let (line, blocks) = unbounded_channel();
        let line = writer.is_some().then_some(line);
        let lost = writer.is_some().then(|| Arc::clone(&self.alive));
        let upload = async move {
            let result = self.run(writer, blocks).await;
            if let (Some(alive), Err(_)) = (lost, &result) {
                alive.lose_one();
            }
            result
        };
        (line, tokio::spawn(upload))
    }

    /// Writes the part, and returns its writer. Everything is written then, and only has to appear.
    async fn run(
        self,
        writer: Option<Box<dyn Writer>>,
        blocks: UnboundedReceiver<UploadItem>,
    ) -> Result<Box<dyn Writer>> {
        let missing = || Error::new(ErrorKind::Cancelled, "no node takes this part");
        let mut writer = writer.ok_or_else(missing)?;
        match self.write(&mut *writer, blocks).await {
            Ok(()) => Ok(writer),
            Err(error) => {
                writer.abort().await;
                Err(error)
            }
        }
    }

    /// Writes headers and blocks, and returns once the object has ended.
    async fn write(
        &self,
        writer: &mut dyn Writer,
        mut blocks: UnboundedReceiver<UploadItem>,
    ) -> Result<()> {
        let mut unit = UploadUnit::begin(self.unit, self.layout.front(self.part)?.into());
        let (mut next, mut early) = (0, BTreeMap::new());
        while let Some(item) = blocks.recv().await {
            if self.alive.are_too_few() {
                break;
            }
            match item {
                UploadItem::Block(sealed) => _ = early.insert(sealed.number(), sealed),
                UploadItem::End { length, digest } => {
                    unit.push(self.layout.footer(self.part, length, digest)?.into());
                    return writer.write(unit.pieces).await;
                }
            }
            while let Some(sealed) = early.remove(&next) {
                next += 1;
                for lane in self.layout.lanes(self.part) {
                    let sealed = Arc::clone(&sealed);
                    unit.push(Bytes::from_owner(SealedLane { sealed, lane }));
                }
                if unit.bytes >= unit.full {
                    writer.write(unit.take()).await?;
                }
            }
        }
        Err(Error::new(ErrorKind::Cancelled, "the object did not come to its end"))
    }
}

impl Sealed {
    fn number(&self) -> u64 {
        self.segment.as_ref().map_or(0, Segment::number)
    }
}

/// Pieces that are written by one request.
struct UploadUnit {
    pieces: Vec<Bytes>,
    bytes: usize,
    full: usize,
}

impl UploadUnit {
    fn begin(full: usize, first: Bytes) -> Self {
        Self { bytes: first.len(), pieces: vec![first], full }
    }

    fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.pieces.push(piece);
    }

    fn take(&mut self) -> Vec<Bytes> {
        self.bytes = 0;
        std::mem::take(&mut self.pieces)
    }
}
