//! Puts standard input into a volume whose nodes count what comes and throw it away, and tells how
//! much memory that took. It shows that a put's memory does not grow with the object.
//!
//! ```text
//! truncate --size 20G sparse
//! cat sparse | cargo run --release -p paritas-volume --example put_pipe -- 10+4 [MOST_MEBIBYTES]
//! ```
//!
//! Exits with 1 if the process took more than MOST_MEBIBYTES, or if a shard has another length than
//! its code and the object's length say.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, stdin};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use paritas_volume::node::{Abilities, Entry, FolderNode, Mode, Node, Stat, Writer};
use paritas_volume::{Member, ObjectName, PutOptions, Result, Setup, Volume, run};

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let spec = arguments.next().ok_or("SPEC must be given")?;
    let most = arguments.next().map(|text| text.parse::<u64>()).transpose()?;
    let folder = tempfile::tempdir()?;
    let code = paritas::Code::new(&spec.parse()?)?;
    let data_shards = code.nodes().filter(|&node| code.holds_data(node)).count() as u64;
    let (mut nodes, mut sinks) = (Vec::new(), Vec::new());
    for disk in 0..code.node_count() {
        let name = format!("disk{disk}");
        std::fs::create_dir(folder.path().join(&name))?;
        let files = FolderNode::new(&name, folder.path().join(&name), false);
        let sink = Sink { files, shards: Arc::default() };
        let node: Arc<dyn Node> = Arc::new(sink.clone());
        nodes.push((Member { domain: name.clone(), name, is_drained: false }, node));
        sinks.push(sink);
    }
    let volume = Volume::new(Setup::new("0".repeat(32), code, nodes))?;
    run(volume.mark_nodes())?;
    let (length, source) = counted(stdin());
    let report = run(volume.put(&ObjectName::new("object")?, source, PutOptions::default()))?;
    let length = length.load(Ordering::Relaxed);
    println!("{spec}: {length} bytes put, {} nodes", report.nodes.len());
    for sink in &sinks {
        let bytes = sink.bytes();
        println!("{}: {bytes} bytes", sink.name());
        // Headers and checksums come on top of each shard's part of the object.
        let share = length / data_shards;
        if bytes < share || bytes > share + share / 100 + (4 << 20) {
            return Err(
                format!("{}: {bytes} bytes are not a share of the object", sink.name()).into()
            );
        }
    }
    let peak = peak_memory()? >> 20;
    println!("at most {peak} MiB of memory");
    match most {
        Some(most) if peak > most => Err(format!("{peak} MiB are more than {most}").into()),
        _ => Ok(()),
    }
}

/// Counts the bytes of a source.
fn counted(source: impl Read + Send + 'static) -> (Arc<AtomicU64>, impl Read + Send + 'static) {
    struct Counting<R>(R, Arc<AtomicU64>);
    impl<R: Read> Read for Counting<R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.read(buffer)?;
            self.1.fetch_add(bytes as u64, Ordering::Relaxed);
            Ok(bytes)
        }
    }
    let count = Arc::new(AtomicU64::new(0));
    (count.clone(), Counting(source, count))
}

/// Returns the most memory that this process has had, in bytes.
fn peak_memory() -> std::result::Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM")?;
    Ok(kibibytes.parse::<u64>()? << 10)
}

/// A node that counts the bytes of shards and throws them away. Small files are kept.
#[derive(Debug, Clone)]
struct Sink {
    files: FolderNode,
    shards: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Sink {
    fn bytes(&self) -> u64 {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }

    fn shard(&self, path: &str) -> Option<Stat> {
        let shards = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        shards.get(path).map(|&length| Stat { length, modified: None })
    }
}

#[async_trait]
impl Node for Sink {
    fn name(&self) -> &str {
        self.files.name()
    }

    fn abilities(&self) -> Abilities {
        self.files.abilities()
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.files.read(path, range).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        match self.shard(path) {
            Some(stat) => Ok(Some(stat)),
            None => self.files.stat(path).await,
        }
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        self.files.list(prefix)
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.files.write(path, content, mode).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        Ok(Box::new(Counting { sink: self.clone(), path: path.to_owned(), bytes: 0 }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.files.delete(path).await
    }
}

struct Counting {
    sink: Sink,
    path: String,
    bytes: u64,
}

#[async_trait]
impl Writer for Counting {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        self.bytes += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        let mut shards = self.sink.shards.lock().unwrap_or_else(PoisonError::into_inner);
        shards.insert(self.path.clone(), self.bytes);
        Ok(())
    }

    async fn abort(self: Box<Self>) {}
}
