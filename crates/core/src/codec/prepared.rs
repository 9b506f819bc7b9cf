//! Questions prepared once and asked often.
//!
//! A call through [`Prepared`] takes no lock, looks nothing up and allocates nothing (up to 64
//! buffers), so it is what small calls are made with: network packets, stripe units of a few
//! kilobytes.

use std::fmt;
use std::sync::Arc;

use crate::codec::cache::Question;
use crate::codec::{Codec, Shards};
use crate::define::cells::NodeId;
use crate::error::{Error, Result};
use crate::run::buffers::{Buffer, Stores};
use crate::run::executable::Executable;
use crate::run::threads::Threads;

/// A question prepared for one codec: which shards are read and which are made. It does not borrow
/// the codec, is cheap to clone, and may be used by several threads at once.
///
/// ```
/// use paritas::{Code, Codec, CodecOptions};
/// let codec = Codec::new(Code::new(&"4+2".parse()?)?, CodecOptions::default())?;
/// let encoder = codec.encoder()?;
/// let data = vec![[7_u8; 1000]; 4];
/// let mut parity = vec![[0_u8; 1000]; 2];
/// encoder.run(&data, &mut parity)?;
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Clone)]
pub struct Prepared {
    executable: Arc<Executable>,
    /// The buffers of the sources and of the targets.
    sources: Arc<[usize]>,
    targets: Arc<[usize]>,
    threads: Threads,
    stores: Stores,
}

impl Prepared {
    /// Makes the targets from the sources, each in the order in which the question named them. All
    /// are equally long for each of their rows: in most codes, equally long.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Length`] if a count or length is wrong.
    pub fn run<S: AsRef<[u8]>, T: AsMut<[u8]>>(
        &self,
        sources: &[S],
        targets: &mut [T],
    ) -> Result<()> {
        if (sources.len(), targets.len()) != (self.sources.len(), self.targets.len()) {
            return Err(self.wrong_count(sources.len(), targets.len()));
        }
        let sources = self.sources.iter().zip(sources);
        let sources = sources.map(|(&buffer, bytes)| (buffer, Buffer::Source(bytes.as_ref())));
        let targets = self.targets.iter().zip(targets);
        let targets = targets.map(|(&buffer, bytes)| (buffer, Buffer::Target(bytes.as_mut())));
        self.executable.run(sources.chain(targets), self.threads, self.stores)
    }

    #[cold]
    fn wrong_count(&self, sources: usize, targets: usize) -> Error {
        let (read, made) = (self.sources.len(), self.targets.len());
        Error::length(format!(
            "{read} shards are read and {made} made; got {sources} and {targets}"
        ))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sources, targets) = (&self.sources, &self.targets);
        f.debug_struct("Prepared").field("sources", sources).field("targets", targets).finish()
    }
}

impl Codec {
    /// Encoding, prepared: sources are the shards of the nodes that hold data, targets those of the
    /// nodes that do not, in node order, as for [`Codec::encode`].
    ///
    /// # Errors
    /// If a node holds data and parity.
    pub fn encoder(&self) -> Result<Prepared> {
        self.expect_node_buffers()?;
        let (sources, targets) = self.encoding.shards.split(&self.code)?;
        self.prepared(&self.encoding.question, &numbers(sources), &numbers(targets))
    }

    /// The reconstruction of lost nodes, prepared: sources are the shards of `present`, targets those
    /// of `lost`, in the order given. Shards that turn out not to be needed are passed all the same.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if the lost nodes are not determined.
    pub fn reconstructor(&self, present: &[NodeId], lost: &[NodeId]) -> Result<Prepared> {
        self.expect_node_buffers()?;
        let nodes = self.code.node_count();
        if let Some(node) = present.iter().chain(lost).find(|node| node.index() >= nodes) {
            let (spec, node) = (self.code.spec(), node.index());
            return Err(Error::parameters(format!(
                "{spec} has nodes 0 to {}; got {node}",
                nodes - 1
            )));
        }
        let cells = |nodes: &[NodeId]| self.code.cells_of(nodes.iter().copied());
        let question = Question::compute(&cells(present), &cells(lost));
        self.prepared(&question, &numbers(present), &numbers(lost))
    }

    /// The update of parity after the data shard of `node` changed, prepared: sources are the old and
    /// the new shard, targets the shards of the nodes that hold no data, in node order, which are
    /// changed in place.
    ///
    /// # Errors
    /// If the node holds no data, or a node holds data and parity.
    pub fn updater(&self, node: NodeId) -> Result<Prepared> {
        self.expect_node_buffers()?;
        let shards = Shards::new(&self.code, self.code.stages());
        let (sources, targets) = shards.split(&self.code)?;
        if sources.binary_search(&node).is_err() {
            return Err(Error::length(format!("node {} holds no data", node.index())));
        }
        let targets: Vec<usize> = (2..).take(targets.len()).collect();
        self.prepared(&Question::Update(node), &[0, 1], &targets)
    }

    fn prepared(
        &self,
        question: &Question,
        sources: &[usize],
        targets: &[usize],
    ) -> Result<Prepared> {
        Ok(Prepared {
            executable: self.program(question)?,
            sources: sources.into(),
            targets: targets.into(),
            threads: self.threads(),
            stores: self.options.stores,
        })
    }
}

fn numbers(nodes: &[NodeId]) -> Vec<usize> {
    nodes.iter().map(|node| node.index()).collect()
}
