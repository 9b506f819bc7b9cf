//! Sending and receiving over nodes in memory that fail as they are told to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::object::layout::{NewObject, ObjectLayout};

use crate::node::{Abilities, Entry, Fault, Faulty, Mode, Node, NodeCall, Stat, Trigger, Writer};
use crate::transfer::rebuild::Rebuild;
use crate::transfer::receive::{Receiver, Wanted};
use crate::transfer::send::{Sent, send};
use crate::transfer::{Pace, Place, Settings, ShardedObject};

#[derive(Debug, Default)]
struct Files(Mutex<BTreeMap<String, Bytes>>);

/// A node whose reads hang, fail, or are slow.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory {
    files: Arc<Files>,
    hangs: bool,
    /// Whether it is a folder of this machine, and whether it holds up a thread that may block.
    is_local: bool,
    holds_up: Arc<AtomicBool>,
    fails_writing_after: Option<usize>,
}

struct MemoryWriter {
    node: Memory,
    path: String,
    content: Vec<u8>,
}

#[async_trait]
impl Writer for MemoryWriter {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        pieces.iter().for_each(|piece| self.content.extend(piece));
        match self.node.fails_writing_after {
            Some(most) if self.content.len() > most => {
                Err(Error::new(ErrorKind::Io, "the disk is full"))
            }
            _ => Ok(()),
        }
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        self.node.files.0.lock().unwrap().insert(self.path, self.content.into());
        Ok(())
    }

    async fn abort(self: Box<Self>) {}
}

#[async_trait]
impl Node for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn abilities(&self) -> Abilities {
        Abilities::ALL
    }

    fn is_local(&self) -> bool {
        self.is_local
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        let file = self.files.0.lock().unwrap().get(path).cloned();
        let file = file.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such file"))?;
        let range = range.unwrap_or(0..file.len() as u64);
        if range.end > file.len() as u64 {
            return Err(Error::new(ErrorKind::Io, "the file ends early"));
        }
        Ok(file.slice(range.start as usize..range.end as usize))
    }

    async fn read_here(&self, path: &str, range: Range<u64>) -> Result<Bytes> {
        while self.holds_up.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.read(path, Some(range)).await
    }

    async fn stat(&self, _: &str) -> Result<Option<Stat>> {
        Ok(None)
    }

    fn list<'a>(&'a self, _: &'a str) -> BoxStream<'a, Result<Entry>> {
        stream::empty().boxed()
    }

    async fn write(&self, _: &str, _: Bytes, _: Mode) -> Result<()> {
        Ok(())
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        let (node, path) = (self.clone(), path.to_owned());
        Ok(Box::new(MemoryWriter { node, path, content: Vec::new() }))
    }

    async fn delete(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

/// Time in which an object comes that only hanging nodes could hold up: others answer at once.
const SOON: Duration = Duration::from_millis(500);

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * i % 251) as u8 ^ (i >> 8) as u8).collect()
}

pub(super) fn layout(spec: &str, block: usize) -> ObjectLayout {
    let code = paritas::Code::new(&spec.parse().unwrap()).unwrap();
    let shape = NewObject { block_bytes: block, ..NewObject::default() };
    ObjectLayout::new(code, "object", shape).unwrap()
}

pub(super) fn settings() -> Settings {
    Settings { unit: 16 << 10, memory: 1 << 20, threads: 2, ..Settings::default() }
}

async fn put(
    layout: &ObjectLayout,
    nodes: &[Memory],
    content: &[u8],
    needed: usize,
) -> Result<Sent> {
    let mut writers = Vec::new();
    for (part, node) in nodes.iter().enumerate() {
        writers.push(Some(node.writer(&part.to_string()).await?));
    }
    let source = std::io::Cursor::new(content.to_vec());
    send(layout, source, writers, needed, &settings(), Arc::new(|_| {})).await
}

fn receiver(
    layout: &ObjectLayout,
    nodes: &[Memory],
    length: usize,
    gone: &[usize],
) -> Arc<Receiver> {
    let there = |(part, node): (usize, &Memory)| {
        (!gone.contains(&part)).then(|| place(Arc::new(node.clone()), part))
    };
    let places = nodes.iter().enumerate().map(there).map(Vec::from_iter).collect();
    Receiver::new(layout.clone(), length as u64, places, settings())
}

/// Returns the place of a part on a node whose pace is not known yet.
pub(super) fn place(node: Arc<dyn Node>, part: usize) -> Place {
    Place { node, pace: Arc::default(), path: part.to_string() }
}

async fn get(receiver: Arc<Receiver>, range: Range<u64>) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut bytes = std::pin::pin!(receiver.bytes(range));
    while let Some(pieces) = bytes.next().await {
        pieces?.iter().for_each(|piece| all.extend_from_slice(piece));
    }
    Ok(all)
}

#[tokio::test]
async fn what_is_sent_comes_back() {
    for (spec, length) in
        [("4+2", 1_000_003), ("rdp:k=4", 300_000), ("xcode:n=5", 99_999), ("4+2", 1), ("4+2", 0)]
    {
        let layout = layout(spec, 4096);
        let nodes: Vec<Memory> = (0..layout.part_count()).map(|_| Memory::default()).collect();
        let content = content(length);
        let sent = put(&layout, &nodes, &content, nodes.len()).await.unwrap();
        assert_eq!(sent.length, length as u64);
        assert_eq!(sent.digest.to_string(), blake3::hash(&content).to_hex().to_string());
        for (part, node) in nodes.iter().enumerate() {
            let file = node.files.0.lock().unwrap()[&part.to_string()].len() as u64;
            assert_eq!(layout.file_bytes(part, length as u64), Some(file));
        }
        let end = length as u64;
        for gone in [&[][..], &[0], &[1, 4]] {
            let receiver = receiver(&layout, &nodes, length, gone);
            assert!(get(receiver, 0..end).await.unwrap() == content, "{spec} without {gone:?}");
        }
        for range in [0..end.min(1), end / 3..end / 2, end - end.min(5)..end] {
            let receiver = receiver(&layout, &nodes, length, &[2]);
            let part = get(receiver, range.clone()).await.unwrap();
            assert!(part == content[range.start as usize..range.end as usize]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn lt_objects_come_from_any_nodes() {
    let layout = layout("lt:k=64,n=128,nodes=8,seed=3", 1024);
    let mut nodes: Vec<Memory> = (0..8).map(|_| Memory::default()).collect();
    let content = content(500_000);
    put(&layout, &nodes, &content, 8).await.unwrap();
    for part in [1, 6] {
        let mut files = nodes[part].files.0.lock().unwrap();
        let mut file = files[&part.to_string()].to_vec();
        let middle = file.len() / 2;
        file[middle] ^= 1;
        files.insert(part.to_string(), file.into());
    }
    for (gone, hanging) in [(&[][..], &[][..]), (&[0, 5], &[]), (&[3], &[4, 7])] {
        nodes.iter_mut().enumerate().for_each(|(i, node)| node.hangs = hanging.contains(&i));
        for range in [0..500_000, 123..70_000] {
            let receiver = receiver(&layout, &nodes, content.len(), gone);
            let read = tokio::time::timeout(SOON, get(receiver, range.clone()));
            let part = read.await.unwrap().unwrap();
            assert!(
                part == content[range.start as usize..range.end as usize],
                "{gone:?} {hanging:?}"
            );
        }
    }
    nodes.iter_mut().for_each(|node| node.hangs = false);
    let error = get(receiver(&layout, &nodes, 500_000, &[0, 1, 2, 3, 4, 5]), 0..500_000).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TooFewShards);
}

/// A service that takes a file only at once holds it all, but must not hold the memory of segments,
/// for which the encoder waits.
#[tokio::test(flavor = "multi_thread")]
async fn services_that_take_files_at_once_keep_no_segments() {
    let layout = layout("4+2", 4096);
    let content = content(8 << 20);
    let mut writers = Vec::new();
    for part in 0..layout.part_count() {
        let node = crate::node::Endpoint::memory(format!("node {part}")).unwrap();
        writers.push(Some(node.writer("file").await.unwrap()));
    }
    let source = std::io::Cursor::new(content.clone());
    let settings = settings();
    let sent = send(&layout, source, writers, 6, &settings, Arc::new(|_| {}));
    let sent = tokio::time::timeout(Duration::from_secs(60), sent).await;
    // An encoder that waits for ever would keep the runtime from ending.
    let Ok(sent) = sent else { std::process::abort() };
    assert_eq!(sent.unwrap().length, content.len() as u64);
}

#[tokio::test]
async fn damage_is_read_around_and_noted() {
    let layout = layout("4+2", 4096);
    let nodes: Vec<Memory> = (0..6).map(|_| Memory::default()).collect();
    let content = content(400_000);
    put(&layout, &nodes, &content, 6).await.unwrap();
    for part in [0, 3] {
        let mut files = nodes[part].files.0.lock().unwrap();
        let mut file = files[&part.to_string()].to_vec();
        let middle = file.len() / 2;
        file[middle] ^= 1;
        files.insert(part.to_string(), file.into());
    }
    let receiver = receiver(&layout, &nodes, content.len(), &[]);
    assert!(get(Arc::clone(&receiver), 0..400_000).await.unwrap() == content);
    let flaws: BTreeSet<usize> = receiver.flaws().into_iter().map(|(part, _)| part).collect();
    assert_eq!(flaws, BTreeSet::from([0, 3]));
}

#[tokio::test]
async fn too_much_loss_is_told() {
    let layout = layout("4+2", 4096);
    let nodes: Vec<Memory> = (0..6).map(|_| Memory::default()).collect();
    put(&layout, &nodes, &content(50_000), 6).await.unwrap();
    let error = get(receiver(&layout, &nodes, 50_000, &[0, 1, 5]), 0..50_000).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards);
    assert!(error.to_string().contains("3 of 6 shards can be read, 4 are enough"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn hanging_nodes_do_not_hold_up_a_read() {
    for (spec, hanging) in [("4+2", &[0, 2][..]), ("10+6", &[1, 4, 5, 9, 11])] {
        let layout = layout(spec, 4096);
        let mut nodes: Vec<Memory> = (0..layout.part_count()).map(|_| Memory::default()).collect();
        let content = content(2_000_000);
        put(&layout, &nodes, &content, nodes.len()).await.unwrap();
        hanging.iter().for_each(|&node| nodes[node].hangs = true);
        let receiver = receiver(&layout, &nodes, content.len(), &[]);
        let read = tokio::time::timeout(SOON, get(receiver, 0..2_000_000));
        assert!(read.await.unwrap().unwrap() == content, "{spec}");
    }
}

#[test]
fn nodes_that_were_late_most_often_are_asked_last() {
    let layout = layout("4+2", 4096);
    let nodes: Vec<Memory> = (0..6).map(|_| Memory::default()).collect();
    let receiver = receiver(&layout, &nodes, 100_000, &[3]);
    assert_eq!(receiver.preference(&[]), [0, 1, 2, 4, 5]);
    for (part, times) in [(0, 5), (1, 1), (2, 2), (4, 3)] {
        (0..times).for_each(|_| receiver.pace_of(part).unwrap().late());
    }
    assert_eq!(receiver.preference(&[]), [1, 5, 2, 4, 0]);
    receiver.pace_of(0).unwrap().answered(Duration::from_millis(1));
    assert_eq!(receiver.preference(&[1]), [0, 5, 2, 4]);
}

#[tokio::test]
async fn a_node_that_fails_in_mid_put_is_told() {
    let layout = layout("4+2", 4096);
    let mut nodes: Vec<Memory> = (0..6).map(|_| Memory::default()).collect();
    nodes[1].fails_writing_after = Some(20_000);
    let content = content(500_000);
    let sent = put(&layout, &nodes, &content, 5).await.unwrap();
    let failed: Vec<usize> = (0..6).filter(|&part| sent.parts[part].is_err()).collect();
    assert_eq!(failed, [1]);
    assert!(
        get(receiver(&layout, &nodes, content.len(), &[1]), 0..500_000).await.unwrap() == content
    );

    for node in &nodes {
        node.files.0.lock().unwrap().clear();
    }
    let error = put(&layout, &nodes, &content, 6).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewNodes);
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert!(nodes.iter().all(|node| node.files.0.lock().unwrap().is_empty()));
}

/// Keeps bytes at their positions.
async fn keep_all(receiver: &Arc<Receiver>, range: Range<u64>) -> (Vec<u8>, Vec<Range<u64>>) {
    let kept = Arc::new(Mutex::new(vec![0; receiver.length as usize]));
    let own = Arc::clone(&kept);
    let keep = move |start: u64, pieces: &Vec<Bytes>| {
        let mut at = start as usize;
        for piece in pieces {
            own.lock().unwrap()[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        Ok(())
    };
    let done = AtomicU64::new(0);
    let count = |bytes| _ = done.fetch_add(bytes, Ordering::Relaxed);
    let wanted = Wanted { range: range.clone(), keep: Some(Arc::new(keep)) };
    let left = receiver.keep_all(wanted, &count).await;
    let missing: u64 = left.iter().map(|left| left.end - left.start).sum();
    assert_eq!(done.into_inner() + missing, range.end - range.start);
    let kept = kept.lock().unwrap()[range.start as usize..range.end as usize].to_vec();
    (kept, left)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_in_folders_is_kept_in_any_order() {
    let (layout, content) = (layout("4+2", 4 << 10), content(3_000_001));
    let nodes = vec![Memory { is_local: true, ..Memory::default() }; 6];
    put(&layout, &nodes, &content, 6).await.unwrap();
    for gone in [&[][..], &[1, 4]] {
        let receiver = receiver(&layout, &nodes, content.len(), gone);
        for range in [0..content.len(), 0..1, 1_234_567..2_345_678, 7..7] {
            let wide = range.start as u64..range.end as u64;
            let (kept, left) = keep_all(&receiver, wide).await;
            assert_eq!((&kept[..], left), (&content[range], Vec::new()));
        }
    }
    let receiver = receiver(&layout, &nodes, content.len(), &[0, 1, 2]);
    let (_, left) = keep_all(&receiver, 0..content.len() as u64).await;
    assert_eq!(left.first().map(|range| range.start), Some(0));
    assert_eq!(left.last().map(|range| range.end), Some(content.len() as u64));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_any_length_is_told_in_few_ranges() {
    let (layout, content) = (layout("4+2", 4 << 10), content(300_000));
    let nodes = vec![Memory { is_local: true, ..Memory::default() }; 6];
    put(&layout, &nodes, &content, 6).await.unwrap();
    // The nodes have the beginning of an object that is said to be far longer.
    let receiver = receiver(&layout, &nodes, 1 << 62, &[]);
    let wanted = Wanted { range: 0..1 << 62, keep: Some(Arc::new(|_, _| Ok(()))) };
    let left = receiver.keep_all(wanted, &|_| {}).await;
    assert!((1..=settings().threads + 1).contains(&left.len()), "{left:?}");
    assert_eq!(left.last().map(|range| range.end), Some(1 << 62));
    assert!(get(receiver, 0..1 << 62).await.is_err());
}

struct Held(#[allow(dead_code, reason = "it is counted")] Arc<()>);

#[async_trait]
impl Writer for Held {
    async fn write(&mut self, _: Vec<Bytes>) -> Result<()> {
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    async fn abort(self: Box<Self>) {}
}

struct Stalled(std::sync::mpsc::Receiver<()>);

impl std::io::Read for Stalled {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(0)
    }
}

#[tokio::test]
async fn uploads_that_are_given_up_end_though_the_source_stalls() {
    let (layout, held) = (layout("4+2", 4 << 10), Arc::new(()));
    let writers = (0..6).map(|_| -> Option<Box<dyn Writer>> { Some(Box::new(Held(held.clone()))) });
    let (line, end) = std::sync::mpsc::channel();
    let (settings, writers) = (settings(), writers.collect());
    let sent = send(&layout, Stalled(end), writers, 4, &settings, Arc::new(|_| {}));
    assert!(tokio::time::timeout(Duration::from_millis(50), sent).await.is_err());
    let begun = std::time::Instant::now();
    while Arc::strong_count(&held) > 1 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        tokio::task::yield_now().await;
    }
    drop(line);
}

#[test]
fn threads_are_limited_by_the_memory() {
    let layout = layout("4+2", 4 << 10);
    let segment = layout.segment_memory();
    let threads = |segments: usize| {
        let settings = Settings { threads: 8, memory: segments * segment, ..settings() };
        [0, 4].map(|others| settings.threads_for(&layout, others))
    };
    assert_eq!([0, 1, 6, 12, 100].map(threads), [[1, 1], [1, 1], [6, 2], [8, 8], [8, 8]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_holds_up_threads_is_read_in_the_usual_way() {
    let (layout, content) = (layout("4+2", 4 << 10), content(2_000_000));
    let holds_up = Arc::new(AtomicBool::new(false));
    let local = Memory { is_local: true, ..Memory::default() };
    let mut nodes = vec![local; 6];
    nodes[2].holds_up = Arc::clone(&holds_up);
    put(&layout, &nodes, &content, 6).await.unwrap();
    let receiver = receiver(&layout, &nodes, content.len(), &[]);
    holds_up.store(true, Ordering::Relaxed);
    let (_, left) = keep_all(&receiver, 0..content.len() as u64).await;
    assert_eq!(left.first().map(|range| range.start), Some(0));
    assert_eq!(get(Arc::clone(&receiver), 0..content.len() as u64).await.unwrap(), content);
    holds_up.store(false, Ordering::Relaxed);
}

/// Returns what makes part 0 of an object from the others, which are on `nodes`.
fn rebuild_of_first(
    layout: &ObjectLayout,
    sent: &Sent,
    nodes: impl Iterator<Item = Arc<dyn Node>>,
) -> Rebuild {
    let there = |(part, node): (usize, Arc<dyn Node>)| (part != 0).then(|| place(node, part));
    let (length, digest) = (sent.length, sent.digest);
    Rebuild {
        object: ShardedObject { id: layout.object(), layout: layout.clone(), length, digest },
        places: nodes.enumerate().map(there).map(Vec::from_iter).collect(),
        settings: settings(),
    }
}

/// As when the disk of the only target is full.
#[tokio::test]
async fn a_repair_that_can_write_nothing_more_reads_nothing_more() {
    let layout = layout("4+2", 4096);
    let nodes: Vec<Memory> = (0..6).map(|_| Memory::default()).collect();
    let sent = put(&layout, &nodes, &content(4_000_000), 6).await.unwrap();
    let others = nodes.iter().map(|node| Arc::new(node.clone()) as Arc<dyn Node>);
    let rebuild = rebuild_of_first(&layout, &sent, others);
    let full = Memory { fails_writing_after: Some(20_000), ..Memory::default() };
    let made = rebuild.run(vec![(0, place(Arc::new(full), 0))], &|_| {}).await.unwrap();
    assert!(made.parts[0].is_err(), "{made:?}");
    assert!(made.read_bytes < 1_000_000, "{made:?}");
}

#[tokio::test]
async fn a_repair_asks_a_node_no_more_after_its_first_failure() {
    let layout = layout("4+2", 4096);
    let nodes: Vec<Memory> = (0..6).map(|_| Memory::default()).collect();
    let content = content(1_000_000);
    let sent = put(&layout, &nodes, &content, 6).await.unwrap();
    let bad = Arc::new(Faulty::new(Arc::new(nodes[1].clone()), 0).with(
        NodeCall::Read,
        Fault::Refuse,
        Trigger::From(1),
    ));
    let of = |(part, node): (usize, &Memory)| -> Arc<dyn Node> {
        if part == 1 { bad.clone() } else { Arc::new(node.clone()) }
    };
    let rebuild = rebuild_of_first(&layout, &sent, nodes.iter().enumerate().map(of));
    let node = Memory::default();
    let place = place(Arc::new(node.clone()), 0);
    let made = rebuild.run(vec![(0, place)], &|_| {}).await.unwrap();
    assert!(made.parts.iter().all(Result::is_ok), "{made:?}");
    assert!(node.files.0.lock().unwrap()["0"] == nodes[0].files.0.lock().unwrap()["0"]);
    let segments = layout.segments(sent.length);
    assert!(segments > 50 && bad.happened() <= 16, "{} of {segments}", bad.happened());
}

/// A source without an end, which counts what is read of it.
struct Endless(Arc<AtomicU64>);

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(buffer.len())
    }
}

#[tokio::test]
async fn a_put_that_is_given_up_ends() {
    let layout = layout("4+2", 4096);
    let mut writers = Vec::new();
    for part in 0..6 {
        writers.push(Some(Memory::default().writer(&part.to_string()).await.unwrap()));
    }
    let read = Arc::new(AtomicU64::new(0));
    let source = Endless(Arc::clone(&read));
    let settings = settings();
    let sent = send(&layout, source, writers, 6, &settings, Arc::new(|_| {}));
    assert!(tokio::time::timeout(Duration::from_millis(20), sent).await.is_err());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = read.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(before > 0 && read.load(Ordering::Relaxed) == before, "the source is read on");
}

#[tokio::test]
async fn parts_with_small_blocks_do_not_wait_for_memory_that_they_hold() {
    // One part has two blocks of each segment, the others one.
    let layout = layout("lt:k=8,n=17,nodes=16,seed=1", 1024);
    let nodes: Vec<Memory> = (0..16).map(|_| Memory::default()).collect();
    let mut writers = Vec::new();
    for (part, node) in nodes.iter().enumerate() {
        writers.push(Some(node.writer(&part.to_string()).await.unwrap()));
    }
    let settings = Settings { unit: 256 << 10, memory: 1, threads: 1, ..Settings::default() };
    let source = std::io::Cursor::new(content(8_000_000));
    let sent = send(&layout, source, writers, 16, &settings, Arc::new(|_| {}));
    let sent = tokio::time::timeout(Duration::from_secs(20), sent).await;
    assert_eq!(sent.expect("the put must end").unwrap().length, 8_000_000);
}

#[tokio::test]
async fn a_shard_that_has_moved_says_nothing_about_its_old_node() {
    for spec in ["4+2", "lt:k=64,n=128,nodes=8,seed=3"] {
        let layout = layout(spec, 1024);
        let nodes: Vec<Memory> = (0..layout.part_count()).map(|_| Memory::default()).collect();
        let content = content(500_000);
        put(&layout, &nodes, &content, nodes.len()).await.unwrap();
        nodes[0].files.0.lock().unwrap().clear();
        let receiver = receiver(&layout, &nodes, content.len(), &[]);
        assert!(get(Arc::clone(&receiver), 0..500_000).await.unwrap() == content);
        let place = &receiver.places[0][0];
        assert!(!place.pace.is_unreliable(), "{spec}");
        assert!(!receiver.is_there(0), "{spec}: it is asked for no more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_late_is_tried_again_after_a_while() {
    let pace = Pace::default();
    pace.late();
    pace.late();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(pace.lateness(), 2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!pace.is_unreliable());
    pace.late();
    assert_eq!(pace.lateness(), 3, "it has not answered in time since");
}
