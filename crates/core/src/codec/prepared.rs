//! Prepared questions: an encoder, a reconstructor or an updater, prepared once and run often.
//!
//! A call through [`Prepared`] takes no lock and looks nothing up; for codes as small as 10+4, it
//! allocates nothing. It suits small calls: network packets, and stripe units of a few kilobytes.
//! One call in the life of a question is an exception: after half a megabyte of shards, it plans
//! and compiles ([`crate::codec::answer`]), which takes a fraction of a millisecond for 10+4.

use std::fmt;
use std::sync::Arc;

use crate::codec::answer::QuestionAnswer;
use crate::error::{Error, Result};
use crate::run::buffers::{Buffer, Stores, enter};
use crate::run::threads::Threads;

/// An encoder, a reconstructor or an updater of one codec, ready to run. The shards that are read
/// and those that are computed are fixed. It does not borrow the codec, is cheap to clone, and may
/// be used by several threads at once.
///
/// ```
/// use paritas::Codec;
/// let encoder = Codec::new(4, 2)?.encoder()?;
/// let data = vec![[7_u8; 1200]; 4];
/// let mut parity = vec![[0_u8; 1200]; 2];
/// encoder.run(&data, &mut parity)?;
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Clone)]
pub struct Prepared {
    pub(super) answer: Arc<QuestionAnswer>,
    /// Buffers of the sources and of the targets.
    pub(super) sources: Arc<[usize]>,
    pub(super) targets: Arc<[usize]>,
    /// Whether each shard of a group is a target; `None` for one that is neither read nor computed
    /// ([`Prepared::run_strided`]).
    pub(super) are_targets: Arc<[Option<bool>]>,
    /// The node of each buffer; `None` if buffer n belongs to node n.
    pub(super) nodes: Option<Arc<[usize]>>,
    pub(super) threads: Threads,
    pub(super) stores: Stores,
}

/// Returns for each of `count` shards whether it is a target; `None` for one that is neither.
pub(super) fn are_targets(
    count: usize,
    sources: &[usize],
    targets: &[usize],
) -> Arc<[Option<bool>]> {
    let mut found = vec![None; count];
    sources.iter().for_each(|&shard| found[shard] = Some(false));
    targets.iter().for_each(|&shard| found[shard] = Some(true));
    found.into()
}

impl Prepared {
    /// Computes the targets from the sources, both in the order in which the question named them.
    /// All shards have the same number of bytes for each of their rows: in most codes, the same
    /// length.
    ///
    /// # Errors
    /// If the number of shards is wrong ([`crate::ErrorKind::Buffers`]), or the length of a shard
    /// ([`crate::ErrorKind::Length`]).
    pub fn run<S: AsRef<[u8]>, T: AsMut<[u8]>>(
        &self,
        sources: &[S],
        targets: &mut [T],
    ) -> Result<()> {
        if (sources.len(), targets.len()) != (self.sources.len(), self.targets.len()) {
            return Err(self.wrong_count(sources.len(), targets.len()));
        }
        self.answer.run_placed(
            |places| {
                // If nothing is to be computed, the program is empty and has no places for buffers.
                for (&buffer, bytes) in self.sources.iter().zip(sources) {
                    if let Some(place) = places.get_mut(buffer) {
                        *place = bytes.as_ref().into();
                    }
                }
                for (&buffer, bytes) in self.targets.iter().zip(targets) {
                    if let Some(place) = places.get_mut(buffer) {
                        *place = bytes.as_mut().into();
                    }
                }
            },
            |buffer| self.node(buffer),
            self.threads,
            self.stores,
        )
    }

    /// Computes the targets of one or more groups of shards that lie in one buffer. In a group,
    /// shard n begins n · `stride` bytes after the group; for an encoder or a reconstructor, n is
    /// the number of its node (for an LT code, of its [buffer](crate::Codec::buffer_count)), and
    /// for an updater its place among sources and targets. All shards have `stride` bytes, and
    /// groups follow each other.
    ///
    /// ```
    /// use paritas::Codec;
    /// let codec = Codec::new(4, 2)?;
    /// let mut groups = vec![7_u8; 3 * 6 * 1200];
    /// codec.encoder()?.run_strided(&mut groups, 1200)?;
    /// let encoded = groups.clone();
    /// groups.chunks_mut(6 * 1200).for_each(|group| group[1200..3600].fill(0));
    /// codec.reconstructor(&[0, 3, 4, 5], &[1, 2])?.run_strided(&mut groups, 1200)?;
    /// assert!(groups == encoded);
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the buffer does not hold a whole number of groups, or if a shard cannot have `stride`
    /// bytes ([`crate::ErrorKind::Length`]).
    pub fn run_strided(&self, buffer: &mut [u8], stride: usize) -> Result<()> {
        if stride == 0 {
            return Err(Error::length("the stride must be at least one byte; got 0"));
        }
        let count = self.are_targets.len();
        let group = count.saturating_mul(stride);
        if group == 0 || !buffer.len().is_multiple_of(group) {
            let length = buffer.len();
            let message = format!(
                "the buffer must have groups of {count} shards of {stride} bytes; got {length} bytes"
            );
            return Err(Error::length(message).given_instead(length));
        }
        for group in buffer.chunks_exact_mut(group) {
            let shards = group.chunks_exact_mut(stride).zip(&self.are_targets[..]).enumerate();
            let buffers = shards.filter_map(|(number, (shard, is_target))| {
                let target = (*is_target)?;
                Some((number, if target { Buffer::Target(shard) } else { Buffer::Source(shard) }))
            });
            let name = |buffer| self.node(buffer);
            self.answer.run_placed(|p| enter(p, buffers), name, self.threads, self.stores)?;
        }
        Ok(())
    }

    #[cold]
    fn wrong_count(&self, sources: usize, targets: usize) -> Error {
        let (read, made) = (self.sources.len(), self.targets.len());
        let (what, needed, given) = match sources == read {
            true => ("computed", made, targets),
            false => ("read", read, sources),
        };
        let message = format!("the number of shards that are {what} must be {needed}; got {given}");
        Error::buffers(message).expecting(needed).given_instead(given)
    }

    /// Returns the number of the node that a buffer belongs to.
    fn node(&self, buffer: usize) -> usize {
        self.nodes.as_ref().map_or(buffer, |nodes| nodes[buffer])
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sources, targets) = (&self.sources, &self.targets);
        f.debug_struct("Prepared").field("sources", sources).field("targets", targets).finish()
    }
}
