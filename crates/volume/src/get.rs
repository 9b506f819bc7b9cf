//! Reading objects.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use paritas_shards::{FileTarget, Output, PieceDigest};
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver as Receiving, channel};

use crate::cluster::Cluster;
use crate::files::NameFiles;
use crate::find::{FindJob, find_piece, is_replaced, look_everywhere, replaced};
use crate::flaw::{Flaw, told};
use crate::found::{FoundObject, ObjectBytes};
use crate::names::ObjectName;
use crate::transfer::receive::{KeepPieces, Pieces, Wanted, run_blocking};

/// Reads the bytes of an object that was found.
pub(crate) struct ReadJob<'a> {
    pub cluster: &'a Cluster,
    pub object: FoundObject,
    /// Is told the number of bytes done since it was last called.
    pub progress: &'a (dyn Fn(u64) + Send + Sync),
}

/// Finds an object and writes its bytes to a stream.
pub(crate) async fn read_all(
    cluster: &Cluster,
    name: &ObjectName,
    sink: &mut (dyn Write + Send),
) -> Result<FoundObject> {
    let object = FindJob::of(cluster, name).run().await?;
    ReadJob { cluster, object, progress: &|_| {} }.run(None, sink).await
}

impl ReadJob<'_> {
    /// Writes the bytes in a range, or all, to a stream.
    pub async fn run(
        self,
        range: Option<Range<u64>>,
        sink: &mut (dyn Write + Send),
    ) -> Result<FoundObject> {
        self.copy(range, ByteSink::Stream(sink)).await
    }

    /// Hands over the bytes in a range, or all, in pieces.
    pub async fn run_to_sink(
        self,
        range: Option<Range<u64>>,
        sink: &mut dyn PieceSink,
    ) -> Result<FoundObject> {
        self.copy(range, ByteSink::Pieces(sink)).await
    }

    /// Writes all bytes to a file.
    pub async fn run_to_file(self, target: FileTarget) -> Result<FoundObject> {
        let mut output = Output::create(target, self.object.mode(), self.object.modified())?;
        output.expect_room(self.object.length())?;
        if !output.takes_positions() || self.object.pieces().is_some() {
            let object = self.run(None, &mut output).await?;
            let warnings = output.commit()?;
            return Ok(FoundObject { warnings, ..object });
        }
        let output = SharedValue::new(output);
        let object = self.copy(None, ByteSink::File(&output)).await?;
        let output = output.alone().await;
        let warnings = run_blocking(move || output.commit()).await??;
        Ok(FoundObject { warnings, ..object })
    }

    async fn copy(mut self, range: Option<Range<u64>>, sink: ByteSink<'_>) -> Result<FoundObject> {
        let name = self.object.name().clone();
        let whole = 0..self.object.length();
        let range = range.unwrap_or_else(|| whole.clone());
        expect_within(&name, &range, whole.end)?;
        if self.object.pieces().is_some() {
            return self.copy_pieces(range, sink).await;
        }
        let receiver = self.object.receiver();
        receiver.map_or(Ok(()), |it| self.cluster.expect_room(&name, &it.layout))?;
        let digest = (range == whole).then(|| SharedValue::new(PieceDigest::new(whole.end)));
        let left = VecDeque::from([range]);
        let mut copy = CopyJob { sink, digest, left, progress: self.progress };
        match copy.run(&self.object).await {
            // The shards may have moved. The bytes that are written already are right, and stay.
            Err(error) if error.kind() == ErrorKind::TooFewShards => {
                self.object.note_reading();
                let silent;
                (self.object, silent) = look_everywhere(self.cluster, self.object).await;
                if let Err(error) = copy.run(&self.object).await {
                    return Err(self.gone(error, silent).await);
                }
            }
            result => result?,
        }
        if let Some(digest) = copy.digest {
            self.expect_digest(digest.alone().await)?;
        }
        self.object.note_reading();
        Ok(self.object)
    }

    /// Copies bytes of an object in pieces, one piece after the other. The digest of a piece that
    /// is copied whole is checked.
    async fn copy_pieces(
        mut self,
        range: Range<u64>,
        mut sink: ByteSink<'_>,
    ) -> Result<FoundObject> {
        let (cluster, progress) = (self.cluster, self.progress);
        let ObjectBytes::Pieces { upload, pieces } = &self.object.content else {
            return Ok(self.object);
        };
        let (mut start, mut flaws, mut read_bytes) = (0, Vec::new(), 0);
        for piece in pieces {
            let end = start + piece.length;
            let wanted = range.start.max(start)..range.end.min(end);
            if !wanted.is_empty() {
                let files = NameFiles { cluster, name: self.object.name() };
                let version = self.object.listed().version;
                let object = find_piece(files, version, upload, piece).await?;
                let wanted = wanted.start - start..wanted.end - start;
                let job = ReadJob { cluster, object, progress };
                let read = Box::pin(job.copy(Some(wanted), sink.again())).await?;
                read_bytes += read.read_bytes;
                flaws.extend(read.flaws);
            }
            start = end;
        }
        flaws.into_iter().for_each(|flaw| flaw.add_to(&mut self.object.flaws));
        self.object.read_bytes += read_bytes;
        Ok(self.object)
    }

    fn expect_digest(&self, digest: PieceDigest) -> Result<()> {
        let (digest, expected) = (digest.finish(), self.object.digest);
        if digest == Some(expected) {
            return Ok(());
        }
        let got = digest.map_or("none".to_owned(), |digest| digest.to_string());
        let message = format!("{}: the digest must be {expected}; got {got}", self.object.name());
        Err(Error::new(ErrorKind::DigestMismatch, message))
    }

    /// Returns the reason why shards are missing. If another version has replaced the object, the
    /// error says so. Otherwise it is `error`, with the flaws in `silent` if a node did not answer.
    async fn gone(&self, error: Error, silent: Vec<Flaw>) -> Error {
        if error.kind() != ErrorKind::TooFewShards {
            return error;
        }
        let name = self.object.name();
        let files = NameFiles { cluster: self.cluster, name };
        let (is_replaced, flaws) = is_replaced(files, self.object.listed().version).await;
        if is_replaced {
            return replaced(name);
        }
        let silent = if silent.is_empty() { flaws } else { silent };
        match silent.is_empty() {
            true => Error::new(error.kind(), format!("{name}: {error}")),
            false => Error::new(
                ErrorKind::TooFewNodes,
                format!("{name}: {error}. Not all nodes answered: {}", told(&silent)),
            ),
        }
        .because(error)
    }
}

/// Checks that a range is within an object of `length` bytes.
fn expect_within(name: &ObjectName, range: &Range<u64>, length: u64) -> Result<()> {
    let Range { start, end } = *range;
    if start > length {
        return Err(Error::parameters(format!(
            "the range begins at {start}, after the end of {name} ({length} bytes)"
        )));
    }
    match start > end || end > length {
        false => Ok(()),
        true => Err(Error::parameters(format!(
            "the range {start} to {end} is not within the {length} bytes of {name}"
        ))),
    }
}

/// Takes the bytes of an object in order, piece by piece, without copying them.
#[async_trait]
pub trait PieceSink: Send {
    /// Takes the next bytes. Reading waits until this returns.
    ///
    /// # Errors
    /// If nobody wants the bytes any longer.
    async fn take(&mut self, piece: Bytes) -> io::Result<()>;
}

/// Where an object's bytes go.
enum ByteSink<'a> {
    /// To a stream, in order.
    Stream(&'a mut (dyn Write + Send)),
    /// In pieces, in order.
    Pieces(&'a mut dyn PieceSink),
    /// To a file: all of them, in any order. The threads that decode bytes also write them, while
    /// they are still in the cache.
    File(&'a SharedValue<Output>),
}

impl ByteSink<'_> {
    /// Returns the same place, for the next piece of an object.
    fn again(&mut self) -> ByteSink<'_> {
        match self {
            Self::Stream(stream) => ByteSink::Stream(*stream),
            Self::Pieces(sink) => ByteSink::Pieces(*sink),
            Self::File(file) => ByteSink::File(file),
        }
    }

    /// Writes the next bytes in order, unless the file has them already.
    async fn take(&mut self, pieces: Pieces) -> Result<()> {
        for piece in pieces {
            let taken = match self {
                Self::Stream(stream) => stream.write_all(&piece),
                Self::Pieces(sink) => sink.take(piece).await,
                Self::File(_) => return Ok(()),
            };
            taken.map_err(|error| {
                Error::new(ErrorKind::Io, format!("writing the output: {error}")).because(error)
            })?;
        }
        Ok(())
    }
}

/// A value that other threads use for short moments.
struct SharedValue<T> {
    value: Arc<T>,
    /// Signals that a thread no longer uses the value.
    returned: Arc<Notify>,
}

/// A thread's reference to a shared value. The value may be gone already: a thread that hangs on a
/// folder does not keep it alive.
struct Borrowed<T> {
    value: Weak<T>,
    returned: Arc<Notify>,
}

/// A shared value while a thread uses it.
struct InUse<'a, T> {
    value: Option<Arc<T>>,
    returned: &'a Notify,
}

impl<T> SharedValue<T> {
    fn new(value: T) -> Self {
        Self { value: Arc::new(value), returned: Arc::default() }
    }

    fn lend(&self) -> Borrowed<T> {
        Borrowed { value: Arc::downgrade(&self.value), returned: Arc::clone(&self.returned) }
    }

    /// Waits until no other thread uses it. After a flaw, a thread may still work on a unit that
    /// was given up and that another node has delivered meanwhile.
    async fn alone(self) -> T {
        let mut shared = self.value;
        loop {
            match Arc::try_unwrap(shared) {
                Ok(value) => return value,
                Err(again) => shared = again,
            }
            // A return in between is noticed, too.
            self.returned.notified().await;
        }
    }
}

impl<T> Borrowed<T> {
    /// Uses the value, unless it is gone.
    fn with<R>(&self, work: impl FnOnce(&T) -> R) -> Option<R> {
        let in_use = InUse { value: Some(self.value.upgrade()?), returned: &self.returned };
        in_use.value.as_deref().map(work)
    }
}

impl<T> Drop for InUse<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.returned.notify_one();
    }
}

/// Copies an object's bytes.
struct CopyJob<'s, 'p> {
    sink: ByteSink<'s>,
    /// The digest of the bytes, if the object is copied whole.
    digest: Option<SharedValue<PieceDigest>>,
    /// The ranges that are not copied yet; just one if the order matters.
    left: VecDeque<Range<u64>>,
    progress: &'p (dyn Fn(u64) + Send + Sync),
}

impl CopyJob<'_, '_> {
    async fn run(&mut self, object: &FoundObject) -> Result<()> {
        if let (ByteSink::File(_), Some(receiver)) = (&self.sink, object.receiver())
            && receiver.is_local()
        {
            for range in std::mem::take(&mut self.left) {
                let wanted = Wanted { range, keep: Some(self.keep()) };
                self.left.extend(receiver.keep_all(wanted, self.progress).await);
            }
        }
        while let Some(range) = self.left.front() {
            let wanted = Wanted { range: range.clone(), keep: Some(self.keep()) };
            self.run_in_order(object, wanted).await?;
            self.left.pop_front();
        }
        Ok(())
    }

    async fn run_in_order(&mut self, object: &FoundObject, wanted: Wanted) -> Result<()> {
        let mut bytes = ahead(object.bytes(wanted));
        while let Some(pieces) = bytes.recv().await {
            let pieces = pieces?;
            let count = pieces.iter().map(|piece| piece.len() as u64).sum();
            self.sink.take(pieces).await?;
            self.left.iter_mut().take(1).for_each(|range| range.start += count);
            (self.progress)(count);
        }
        // The digest of a whole object would show it, but a range has none.
        match self.left.front().is_none_or(Range::is_empty) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Internal, "reading has ended before the last byte")),
        }
    }

    /// Returns the function to which a thread hands the bytes that it has decoded.
    fn keep(&self) -> KeepPieces {
        let output = match &self.sink {
            ByteSink::File(output) => Some(output.lend()),
            ByteSink::Stream(_) | ByteSink::Pieces(_) => None,
        };
        let digest = self.digest.as_ref().map(SharedValue::lend);
        Arc::new(move |start, pieces| {
            if let Some(output) = &output {
                output.with(|output| output.write_at(pieces, start)).transpose()?;
            }
            if let Some(digest) = &digest {
                digest.with(|digest| digest.take(start, pieces));
            }
            Ok(())
        })
    }
}

/// Number of transmission units that have arrived and wait to be written.
const AHEAD: usize = 1;

/// Reads bytes in a separate task, so that reading goes on while earlier bytes are written. The
/// task ends when the receiver is dropped.
pub(crate) fn ahead(mut bytes: BoxStream<'static, Result<Pieces>>) -> Receiving<Result<Pieces>> {
    let (line, received) = channel(AHEAD);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                biased;
                // Nobody waits for more.
                () = line.closed() => return,
                pieces = bytes.next() => match pieces {
                    Some(pieces) => if line.send(pieces).await.is_err() { return },
                    None => return,
                },
            }
        }
    });
    received
}
