//! Promotion moves exactly the bytes of theorem 1: what is read from nodes and written to them is
//! counted at the nodes, and compared with what the code's parameters and the object's length say.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::{Disks, content, name, put};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use paritas_shards::Digest;
use paritas_store::object::layout::ObjectLayout;
use paritas_volume::node::{
    Abilities, Counters, Entry, Fault, Faulty, Mode, Node, NodeCall, Stat, Trigger, Writer,
};
use paritas_volume::{ErrorKind, Result, State, Volume};

/// Bytes of a packet.
const PACKET: u64 = 64;
/// Bytes of a checksum. Every symbol of a segment has one.
const CHECKSUM: u64 = 8;
/// Wanted bytes of a block of a shard, as the volumes of these tests have it.
const BLOCK: u64 = 64 << 10;

/// Bytes of the claim of a promoter that does not tell its process: the seconds since 1970, and who
/// claims.
const CLAIM: u64 = 10 + 1 + 32 + 1;

/// Returns the bytes of a claim of this process. On Linux it tells the process: the machine, its
/// number, and when it began.
fn claim_bytes() -> u64 {
    let Ok(state) = std::fs::read_to_string("/proc/self/stat") else { return CLAIM };
    let began = state.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    CLAIM + 1 + format!("{}-{}-{began}", "0".repeat(16), std::process::id()).len() as u64
}

/// A group of delayed parity: k data nodes, m parities at once, m2 in all, without interleaving.
#[derive(Debug, Clone, Copy)]
struct Group {
    k: u64,
    m: u64,
    m2: u64,
}

impl Group {
    fn spec(self) -> String {
        let Self { k, m, m2 } = self;
        format!("bbdpg:k={k},m={m},m2={m2},base=cauchy")
    }

    fn nodes(self) -> usize {
        (self.k + self.m2) as usize
    }

    /// Returns the number of symbols of a group that promotion reads: as theorem 1 says, or all
    /// data where that is less.
    fn symbols_read(self) -> u64 {
        let Self { k, m, m2 } = self;
        ((m2 - m) * (k + m)).min(k * m2)
    }

    /// Returns the number of symbols of a group that promotion makes.
    fn symbols_made(self) -> u64 {
        (self.m2 - self.m) * self.m2
    }

    /// Returns how an object of `length` bytes is cut, if a symbol has `width` packets.
    fn cut(self, width: u64, length: u64) -> Cut {
        let symbol = width * PACKET;
        let group = self.k * self.m2 * symbol;
        let stripes = BLOCK / (self.m2 * symbol);
        let full = 1 << stripes.ilog2();
        Cut { symbol, groups: length.div_ceil(group), segments: length.div_ceil(group * full) }
    }
}

/// How an object is cut into groups and segments.
struct Cut {
    /// Bytes of a symbol.
    symbol: u64,
    groups: u64,
    segments: u64,
}

impl Cut {
    /// Returns the number of bytes of `symbols` symbols of each group, with a checksum for each
    /// symbol of a segment.
    fn bytes(&self, symbols: u64) -> u64 {
        symbols * (self.groups * self.symbol + self.segments * CHECKSUM)
    }
}

/// Opens the volume so that all its nodes count together.
async fn counted(disks: &Disks, spec: &str) -> (Volume, Arc<Counters>) {
    let (volume, counters) = disks.open_counted(spec);
    volume.mark_nodes().await.unwrap();
    // From here on the nodes' marks are known, and not read again.
    volume.status().await.unwrap();
    (volume, counters)
}

/// Returns the bytes of one manifest.
fn manifest_bytes(disks: &Disks) -> u64 {
    std::fs::metadata(&disks.files("manifests")[0]).unwrap().len()
}

/// Returns the bytes of the headers at both ends of the parts of stage 2.
fn headers_of_stage_2(disks: &Disks, length: u64) -> u64 {
    let any = std::fs::read(&disks.files("objects")[0]).unwrap();
    let layout = ObjectLayout::read(&any, |_| Default::default()).unwrap();
    let header = |part| {
        let footer = layout.footer(part, length, Digest::new([0; 32])).unwrap();
        (layout.front(part).unwrap().len() + footer.len()) as u64
    };
    layout.parts_in(2).map(header).sum()
}

#[tokio::test]
async fn promotion_moves_the_bytes_of_theorem_1() {
    for (k, m, m2) in [(4, 1, 2), (6, 2, 4), (8, 2, 3), (5, 3, 4), (2, 1, 4)] {
        let group = Group { k, m, m2 };
        let disks = Disks::new(group.nodes());
        let (volume, counters) = counted(&disks, &group.spec()).await;
        let width = volume.code().data_cells().len() as u64 / (k * m2);
        let stripe = k * m2 * width * PACKET;
        // Less than a group, whole groups, one byte more, and several segments with a ragged end.
        for length in [5000, 3 * stripe, 3 * stripe + 1, 1_000_003] {
            put(&volume, "object", &content(length as usize)).await;
            let manifest = manifest_bytes(&disks);
            counters.take();
            let promoted = volume.promote(&name("object")).await.unwrap();
            let (read, written) = (counters.bytes_read(), counters.bytes_written());

            let cut = group.cut(width, length);
            let what = format!("{group:?}, {length} bytes");
            let symbols = cut.bytes(group.symbols_read());
            assert_eq!(promoted.read_bytes, symbols, "{what}");
            assert_eq!(read, symbols + manifest, "{what}");
            let parts = cut.bytes(group.symbols_made()) + headers_of_stage_2(&disks, length);
            assert_eq!(written, parts + claim_bytes(), "{what}");
        }
    }
}

/// The group of the tests that promote one object.
const GROUP: Group = Group { k: 4, m: 1, m2: 3 };

/// Returns a volume with one object that waits for promotion, and the bytes of symbols that this
/// reads.
async fn waiting(disks: &Disks) -> (Volume, Arc<Counters>, u64) {
    let (volume, counters) = counted(disks, &GROUP.spec()).await;
    let width = volume.code().data_cells().len() as u64 / (GROUP.k * GROUP.m2);
    put(&volume, "object", &content(300_000)).await;
    let symbols = GROUP.cut(width, 300_000).bytes(GROUP.symbols_read());
    (volume, counters, symbols)
}

/// Returns the paths and contents of all parts of stage 2.
fn parts_of_stage_2(disks: &Disks) -> Vec<(PathBuf, Vec<u8>)> {
    let late = |path: &PathBuf| {
        let path = path.to_string_lossy();
        [".5of7.", ".6of7."].iter().any(|part| path.contains(part))
    };
    let paths = disks.files("objects").into_iter().filter(late);
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[tokio::test]
async fn of_two_promoters_one_reads() {
    let disks = Disks::new(GROUP.nodes());
    let (first, counters, symbols) = waiting(&disks).await;
    let second = disks.open_counted_by(&GROUP.spec(), &counters);
    second.status().await.unwrap();
    let manifest = manifest_bytes(&disks);
    counters.take();
    let object = name("object");
    let both = [first.promote(&object), second.promote(&object)];
    let mut done = 0;
    for result in futures::future::join_all(both).await {
        match result {
            // The second one may have begun when the first one was done, and found all there.
            Ok(promoted) => done += promoted.stored,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        }
    }
    assert_eq!(done, 2);
    let is_read = counters.bytes_read() > symbols + 2 * manifest;
    let claim = if is_read { claim_bytes() } else { 0 };
    assert_eq!(counters.bytes_read(), symbols + 2 * manifest + claim);
    assert_eq!(disks.files("backlog").len(), 0, "hints and claims are gone");
}

#[tokio::test]
async fn a_claim_is_respected_until_it_is_void() {
    let disks = Disks::new(GROUP.nodes());
    let (volume, counters, symbols) = waiting(&disks).await;
    let hints = disks.files("backlog");
    let object = hints[0].file_name().unwrap().to_str().unwrap().to_owned();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let claim = |since: u64| {
        let text = format!("{since} {}\n", "5".repeat(32));
        assert_eq!(text.len() as u64, CLAIM);
        hints.iter().for_each(|hint| {
            std::fs::create_dir_all(hint.parent().unwrap()).unwrap();
            std::fs::write(hint.with_file_name(format!("{object}.claim")), &text).unwrap();
        });
    };
    let manifest = manifest_bytes(&disks);
    for since in [now - 60, now + 60] {
        claim(since);
        counters.take();
        let error = volume.promote(&name("object")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert_eq!(counters.bytes_read(), manifest + CLAIM);
        assert_eq!(volume.status().await.unwrap().backlog.objects, 1);
    }
    for since in [now - 130, now + 1000] {
        claim(since);
        counters.take();
        let promoted = volume.promote(&name("object")).await.unwrap();
        let expected = if since < now { symbols } else { 0 };
        assert_eq!(promoted.read_bytes, expected, "the second time, all is there");
    }
}

#[tokio::test]
async fn a_promoter_that_stops_leaves_no_claim() {
    let disks = Disks::new(GROUP.nodes());
    let hang = |_, node| -> Arc<dyn Node> {
        Arc::new(Faulty::new(node, 0).with(NodeCall::Piece, Fault::Hang, Trigger::From(2)))
    };
    let (clean, _, _) = waiting(&disks).await;
    let volume = disks.open_with(&GROUP.spec(), &hang);
    let object = name("object");
    let promoted = tokio::time::timeout(Duration::from_millis(200), volume.promote(&object)).await;
    assert!(promoted.is_err());
    while disks.files("backlog").iter().any(|path| path.extension().is_some()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(clean.promote(&object).await.unwrap().stored, 2);
}

/// A node that cannot create a file only if there is none.
#[derive(Debug)]
struct Plain(Arc<dyn Node>);

#[async_trait]
impl Node for Plain {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn abilities(&self) -> Abilities {
        Abilities { create: false, ..self.0.abilities() }
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.0.read(path, range).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.0.stat(path).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        self.0.list(prefix)
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        assert_eq!(mode, Mode::Replace, "{path}");
        self.0.write(path, content, mode).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        self.0.writer(path).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.0.delete(path).await
    }
}

#[tokio::test]
async fn without_claims_two_promoters_write_equal_bytes() {
    let disks = Disks::new(GROUP.nodes());
    let (reference, _, _) = waiting(&disks).await;
    reference.promote(&name("object")).await.unwrap();
    let parts = parts_of_stage_2(&disks);
    parts.iter().for_each(|(path, _)| std::fs::remove_file(path).unwrap());

    let plain = |_, node| -> Arc<dyn Node> { Arc::new(Plain(node)) };
    let [first, second] = [(); 2].map(|()| disks.open_with(&GROUP.spec(), &plain));
    let object = name("object");
    for result in futures::future::join_all([first.promote(&object), second.promote(&object)]).await
    {
        assert!(!result.unwrap().is_owed);
    }
    assert!(parts_of_stage_2(&disks) == parts);
}

#[tokio::test]
async fn promotion_goes_on_where_it_stopped() {
    let disks = Disks::new(GROUP.nodes());
    let (volume, counters, _) = waiting(&disks).await;
    let object = name("object");
    volume.promote(&object).await.unwrap();
    let parts = parts_of_stage_2(&disks);
    let [(first, whole), (last, lacking)] = &parts[..] else { panic!("{}", parts.len()) };
    parts.iter().for_each(|(path, _)| std::fs::remove_file(path).unwrap());

    // The promoter is stopped when one part has its name and the other one has not.
    let hang = |disk: usize, node: Arc<dyn Node>| -> Arc<dyn Node> {
        match last.starts_with(disks.path(disk)) {
            true => {
                Arc::new(Faulty::new(node, 0).with(NodeCall::Finish, Fault::Hang, Trigger::At(1)))
            }
            false => node,
        }
    };
    let stopped = disks.open_with(&GROUP.spec(), &hang);
    let stopped = tokio::time::timeout(Duration::from_millis(300), stopped.promote(&object));
    assert!(stopped.await.is_err());
    assert!(std::fs::read(first).unwrap() == *whole && !last.exists());
    let written = |path| std::fs::metadata(path).unwrap().modified().unwrap();
    let before = written(first);
    while disks.files("backlog").iter().any(|path| path.extension().is_some()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    counters.take();
    let promoted = volume.promote(&object).await.unwrap();
    assert_eq!((promoted.stored, promoted.is_owed), (1, false));
    assert_eq!(counters.bytes_written(), lacking.len() as u64 + claim_bytes());
    assert_eq!(written(first), before);
    assert!(parts_of_stage_2(&disks) == parts);
}

#[tokio::test]
async fn those_are_promoted_first_that_have_waited_longest() {
    let disks = Disks::new(GROUP.nodes());
    let volume = disks.volume(&GROUP.spec()).await;
    // The name of one ends in white space.
    for object in ["c/last ", "a/middle", "b/first", "a/small"] {
        put(&volume, object, &content(if object == "a/small" { 10 } else { 5000 })).await;
    }
    // The hints are as old as their texts say. One disk knows them longer than the others.
    for path in disks.files("backlog") {
        let text = std::fs::read_to_string(&path).unwrap();
        let object = text.trim_end_matches('\n').split_once(' ').unwrap().1;
        let since = ["b/first", "a/middle", "c/last "].iter().position(|it| *it == object).unwrap();
        let is_old = path.starts_with(disks.path(0));
        let since = if is_old { 1000 + since } else { 9000 - since };
        std::fs::write(&path, format!("{since} {object}\n")).unwrap();
    }
    let backlog = async |prefix: &str| {
        let names = volume.backlog(prefix).await;
        names.iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(backlog("").await, ["b/first", "a/middle", "c/last "]);
    assert_eq!(backlog("a/").await, ["a/middle"]);
    volume.promote(&name("b/first")).await.unwrap();
    assert_eq!(backlog("").await, ["a/middle", "c/last "]);
}

/// With this interleaving, nodes that hold parity of the first stage get more of it in the second.
#[tokio::test]
async fn later_parts_of_nodes_that_have_earlier_ones_are_intact() {
    let disks = Disks::new(6);
    let volume = disks.volume("bbdpg:k=3,m=2,m2=3,interleave=all").await;
    put(&volume, "object", &content(300_000)).await;
    let object = name("object");
    volume.promote(&object).await.unwrap();
    let verdict = volume.verify(&object, true).await.unwrap();
    assert_eq!((verdict.state, verdict.stage), (State::Intact, 2), "{verdict:?}");
    assert_eq!(volume.repair(&object, true).await.unwrap().stored, 0);
}

#[tokio::test]
async fn an_object_that_is_lost_cannot_be_promoted() {
    let disks = Disks::new(6);
    let volume = disks.volume("bbdpg:k=4,m=1,m2=2,base=cauchy").await;
    put(&volume, "object", &content(100_000)).await;
    disks.files("objects").iter().take(2).for_each(|path| std::fs::remove_file(path).unwrap());
    let error = volume.promote(&name("object")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
    assert!(error.to_string().contains("object: too few shards are whole"), "{error}");
    // A node that is silent may have one.
    let _hidden = disks.hide(&[5]);
    let volume = disks.open("bbdpg:k=4,m=1,m2=2,base=cauchy");
    assert_eq!(volume.promote(&name("object")).await.unwrap_err().kind(), ErrorKind::TooFewNodes);
}

/// Nothing of the object tells that it was promoted. That it waits for nothing does.
#[tokio::test]
async fn a_later_stage_that_is_lost_altogether_is_missed() {
    let disks = Disks::new(GROUP.nodes());
    let (volume, ..) = waiting(&disks).await;
    let object = name("object");
    let verdict = volume.verify(&object, false).await.unwrap();
    assert_eq!((verdict.state, verdict.stage), (State::Intact, 1), "{verdict:?}");
    volume.promote(&object).await.unwrap();
    let parts = parts_of_stage_2(&disks);
    parts.iter().for_each(|(path, _)| std::fs::remove_file(path).unwrap());
    let verdict = volume.verify(&object, false).await.unwrap();
    assert_eq!((verdict.state, verdict.stage), (State::Repairable, 2), "{verdict:?}");
    assert_eq!(verdict.missing, [5, 6]);
    volume.repair(&object, false).await.unwrap();
    let verdict = volume.verify(&object, false).await.unwrap();
    assert_eq!((verdict.state, verdict.stage), (State::Intact, 1), "{verdict:?}");
    assert_eq!(volume.backlog("").await, std::slice::from_ref(&object), "it waits again");
    volume.promote(&object).await.unwrap();
    let found: Vec<_> = parts_of_stage_2(&disks);
    assert!(found == parts, "the same parts are back");
}
