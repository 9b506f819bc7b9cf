//! Objects on nodes that fail in every way, and processes that stop at any moment.
//!
//! In each run, some nodes are faulty, at most as many as the volume may lose. Their faults come
//! from the run's seed. One client or two are at work, and each may stop at any moment. Whatever
//! happens, what a put has acknowledged comes back, nothing partial is ever seen, verification
//! tells the truth, and repair brings everything into order once the faults are over.
//!
//! The last tests change an object at one certain moment of another client's work.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{CALLS, Disks, Hidden, content, get, name};
use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, join};
use futures::stream::{self, StreamExt};
use paritas_volume::node::{Fault, Faulty, Meter, Metered, Node, NodeCall, Timed, Trigger};
use paritas_volume::{ErrorKind, PutOptions, Result, Setup, State, Verdict, Volume};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const FAULTS: [Fault; 8] = [
    Fault::Refuse,
    Fault::Hang,
    Fault::Cut,
    Fault::Short,
    Fault::Flip,
    Fault::Full,
    Fault::Stale,
    Fault::Forbidden,
];

/// What clients do while nodes fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Put,
    Repair,
    Promote,
    Remove,
    /// A disk was lost. An empty one takes its place.
    Replace,
    /// A disk is emptied.
    Drain,
    TwoPuts,
    PutAndGet,
    RemoveAndPut,
    PutAndRepair,
    PromoteAndRepair,
    TwoPromotes,
}

const WORKS: [Work; 12] = [
    Work::Put,
    Work::Repair,
    Work::Promote,
    Work::Remove,
    Work::Replace,
    Work::Drain,
    Work::TwoPuts,
    Work::PutAndGet,
    Work::RemoveAndPut,
    Work::PutAndRepair,
    Work::PromoteAndRepair,
    Work::TwoPromotes,
];

impl Work {
    fn promotes(self) -> bool {
        matches!(self, Self::Promote | Self::PromoteAndRepair | Self::TwoPromotes)
    }

    fn spec(self) -> &'static str {
        if self.promotes() { "bbdpg:k=4,m=1,m2=2,base=cauchy" } else { "4+2" }
    }

    /// Returns the number of nodes that may fail besides. A replaced disk is lost already, and so
    /// is one that is drained as soon as it is empty; before promotion one shard may be missing.
    fn faulty(self) -> usize {
        if self.promotes() || matches!(self, Self::Replace | Self::Drain) { 1 } else { 2 }
    }
}

/// The disk that is replaced or drained.
const LEAVING: usize = 6;

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Returns new bytes, different from all others.
    fn content(&mut self) -> Vec<u8> {
        let mut bytes = content(self.choose(&[0, 100, 5000, 150_000, 400_000]));
        bytes.extend(self.0.next_u64().to_le_bytes());
        bytes
    }

    /// Returns how long a client is at work: to the end, or to a random moment.
    fn stop(&mut self) -> Duration {
        // Early moments and late ones, up to a quarter of a second.
        let end = 1 << self.choose(&[10, 12, 14, 16, 18]);
        match self.below(2) {
            0 => Duration::from_micros(self.below(end)),
            _ => Duration::from_secs(3600),
        }
    }

    fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|i| all.swap(i, self.below(i as u64 + 1) as usize));
        all
    }
}

/// What may be read after a run.
#[derive(Debug)]
struct Allowed {
    contents: Vec<Vec<u8>>,
    /// Whether there may be no object.
    nothing: bool,
}

async fn put(volume: &Volume, bytes: &[u8]) -> Result<()> {
    let source = std::io::Cursor::new(bytes.to_vec());
    volume.put(&name("object"), source, PutOptions::default()).await.map(|_| ())
}

/// Fills the disk that replaces a lost one, and repairs everything.
async fn replace(volume: &Volume) -> Result<()> {
    volume.fill(&format!("disk{LEAVING}")).await?;
    repair_all(volume).await
}

async fn repair_all(volume: &Volume) -> Result<()> {
    for object in volume.most_urgent_first(&volume.overview("").await?).await {
        volume.repair(&object, false).await?;
    }
    Ok(())
}

/// Works to the end, or until `stop` has passed. Returns whether all was done.
async fn until<T>(stop: Duration, work: impl Future<Output = Result<T>>) -> bool {
    matches!(tokio::time::timeout(stop, work).await, Ok(Ok(_)))
}

/// Does the work on volumes that know nothing of each other, and returns what may be read then.
/// Each client stops at a random moment in every other run.
async fn act(volumes: [&Volume; 2], work: Work, old: &[u8], chance: &mut Chance) -> Allowed {
    let (first, second) = (chance.content(), chance.content());
    let [a, b] = [chance.stop(), chance.stop()];
    let [one, other] = volumes;
    let object = &name("object");
    let keeps = |contents: Vec<&[u8]>| Allowed {
        contents: contents.into_iter().map(<[u8]>::to_vec).collect(),
        nothing: false,
    };
    match work {
        Work::Put => match until(a, put(one, &first)).await {
            true => keeps(vec![&first]),
            false => keeps(vec![old, &first]),
        },
        Work::TwoPuts => {
            let both = join(until(a, put(one, &first)), until(b, put(other, &second))).await;
            match both {
                (false, false) => keeps(vec![old, &first, &second]),
                _ => keeps(vec![&first, &second]),
            }
        }
        Work::PutAndGet => {
            let read = tokio::time::timeout(b, get(other, "object"));
            let (written, read) = join(until(a, put(one, &first)), read).await;
            match read {
                // It was replaced while it was read.
                Ok(Err(error)) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
                Ok(Ok(bytes)) => assert!(bytes == old || bytes == first, "other bytes are read"),
                Err(_) => {}
            }
            if written { keeps(vec![&first]) } else { keeps(vec![old, &first]) }
        }
        Work::RemoveAndPut => {
            let remove = until(b, other.remove(object));
            let contents = match join(until(a, put(one, &first)), remove).await {
                (false, false) => keeps(vec![old, &first]),
                _ => keeps(vec![&first]),
            };
            Allowed { nothing: true, ..contents }
        }
        Work::Remove => match until(a, one.remove(object)).await {
            true => Allowed { contents: Vec::new(), nothing: true },
            false => Allowed { nothing: true, ..keeps(vec![old]) },
        },
        Work::PutAndRepair => {
            let repair = until(b, other.repair(object, true));
            match join(until(a, put(one, &first)), repair).await.0 {
                true => keeps(vec![&first]),
                false => keeps(vec![old, &first]),
            }
        }
        Work::Repair => keep_old(until(a, one.repair(object, true)), old).await,
        Work::Promote => keep_old(until(a, one.promote(object)), old).await,
        Work::Replace => keep_old(until(a, replace(one)), old).await,
        Work::Drain => keep_old(until(a, repair_all(one)), old).await,
        Work::PromoteAndRepair => {
            let repair = until(b, other.repair(object, true));
            keep_old(join(until(a, one.promote(object)), repair), old).await
        }
        Work::TwoPromotes => {
            keep_old(join(until(a, one.promote(object)), until(b, other.promote(object))), old)
                .await
        }
    }
}

/// Does work that changes no object.
async fn keep_old<T>(work: impl Future<Output = T>, old: &[u8]) -> Allowed {
    work.await;
    Allowed { contents: vec![old.to_vec()], nothing: false }
}

fn expect(read: Result<Vec<u8>>, allowed: &Allowed, when: &str) {
    match read {
        Ok(bytes) => assert!(allowed.contents.contains(&bytes), "{when}: other bytes"),
        Err(error) if error.kind() == ErrorKind::NotFound && allowed.nothing => {}
        Err(error) => panic!("{when}: {error}"),
    }
}

/// The disks of a run, and what goes wrong with them.
struct Scene {
    work: Work,
    disks: Disks,
    faulty: Vec<usize>,
    rules: Vec<(NodeCall, Fault, Trigger)>,
    seeds: Vec<u64>,
}

impl Scene {
    fn new(work: Work, chance: &mut Chance) -> Self {
        let rule = |chance: &mut Chance| {
            let trigger = match chance.below(3) {
                0 => Trigger::Chance(0.3),
                1 => Trigger::At(1 + chance.below(4)),
                _ => Trigger::From(1 + chance.below(4)),
            };
            (chance.choose(&CALLS), chance.choose(&FAULTS), trigger)
        };
        let faulty = chance.shuffled(6)[..work.faulty()].to_vec();
        let rules = (0..1 + chance.below(4)).map(|_| rule(chance)).collect();
        let seeds = (0..6).map(|_| chance.below(u64::MAX)).collect();
        Self { work, disks: Disks::new(LEAVING + 1), faulty, rules, seeds }
    }

    /// Opens the volume as its file says once the work is begun.
    fn open(&self, wrap: &dyn Fn(usize, Arc<dyn Node>) -> Arc<dyn Node>) -> Volume {
        let drain = |setup: &mut Setup| {
            setup.nodes[LEAVING].0.is_drained = self.work == Work::Drain;
        };
        self.disks.open_changed(self.work.spec(), wrap, drain)
    }

    fn clean(&self) -> Volume {
        self.open(&|_, node| node)
    }

    fn failing(&self) -> Volume {
        self.open(&|disk, node| {
            if !self.faulty.contains(&disk) {
                return node;
            }
            let faulty = Faulty::new(node, self.seeds[disk]);
            let add = |node: Faulty, &(call, fault, trigger)| node.with(call, fault, trigger);
            let faulty = self.rules.iter().fold(faulty, add);
            Arc::new(Timed::new(Arc::new(faulty), Duration::from_millis(200)))
        })
    }

    /// Hides random disks, at most as many as the volume may lose. Together they have at most as
    /// many shards of the object as may be lost according to `verdict`; manifests are counted
    /// instead if the object is kept in them.
    fn hide(&self, verdict: &Verdict, chance: &mut Chance) -> Hidden {
        let folder = if verdict.stages == 0 { "/manifests/" } else { "/objects/" };
        let (mut left, mut hidden) = (verdict.spare, Vec::new());
        for disk in chance.shuffled(LEAVING + 1) {
            let files = self.disks.files_on(disk).into_keys();
            let shards = files.filter(|path| path.to_string_lossy().contains(folder)).count();
            if shards <= left && hidden.len() < self.clean().tolerance() {
                left -= shards;
                hidden.push(disk);
            }
        }
        self.disks.hide(&hidden)
    }
}

async fn run(seed: u64) {
    let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
    let work = WORKS[seed as usize % WORKS.len()];
    let scene = Scene::new(work, &mut chance);
    let first = scene.disks.volume(work.spec()).await;
    let old = chance.content();
    put(&first, &old).await.unwrap();
    if work == Work::Replace {
        std::fs::remove_dir_all(scene.disks.path(LEAVING)).unwrap();
        std::fs::create_dir(scene.disks.path(LEAVING)).unwrap();
    }
    let what = format!("seed {seed}: {work:?}, {:?} fail by {:?}", scene.faulty, scene.rules);
    let (one, other) = (scene.failing(), scene.failing());
    let allowed = act([&one, &other], work, &old, &mut chance).await;
    drop((one, other));

    // The faulty nodes are as good as lost.
    expect(get(&scene.clean(), "object").await, &allowed, &what);
    let lost = scene.disks.hide(&scene.faulty);
    expect(get(&scene.clean(), "object").await, &allowed, &format!("{what}, these lost"));
    lost.show();

    if work == Work::Replace {
        scene.clean().fill(&format!("disk{LEAVING}")).await.unwrap();
    }
    let is_intact = expect_truth(&scene, &allowed, &mut chance, &what).await;
    let clean = scene.clean();
    match clean.repair(&name("object"), true).await {
        Ok(repaired) => {
            assert!(!repaired.is_owed, "{what}: {:?}", repaired.flaws);
            assert!(!is_intact || repaired.stored == 0, "{what}: it was called intact");
        }
        Err(error) if allowed.nothing => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{what}: {error}");
        }
        Err(error) => panic!("{what}: repair: {error}"),
    }
    let is_there = get(&clean, "object").await.is_ok();
    let is_intact = expect_truth(&scene, &allowed, &mut chance, &format!("{what}, repaired")).await;
    assert_eq!(is_intact, is_there, "{what}");
    if work == Work::Drain {
        let files = scene.disks.files_on(LEAVING).into_keys();
        let mut shards = files.filter(|path| path.to_string_lossy().contains("/objects/"));
        assert_eq!(shards.next(), None, "{what}");
    }
}

/// Verifies the object, hides disks that may be lost according to the verdict, and reads the
/// object. Returns whether the verdict is that the object is intact.
async fn expect_truth(scene: &Scene, allowed: &Allowed, chance: &mut Chance, what: &str) -> bool {
    let verdict = match scene.clean().verify(&name("object"), true).await {
        Ok(verdict) => verdict,
        Err(error) => {
            expect(Err(error), allowed, what);
            return false;
        }
    };
    assert!(matches!(verdict.state, State::Intact | State::Repairable), "{what}: {verdict:?}");
    let lost = scene.hide(&verdict, chance);
    expect(
        get(&scene.clean(), "object").await,
        allowed,
        &format!("{what}, {verdict:?}, {lost:?} lost"),
    );
    lost.show();
    verdict.state == State::Intact
}

fn run_all(seeds: std::ops::Range<u64>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    // Most of the time is spent waiting for nodes that hang.
    runtime.block_on(stream::iter(seeds).map(run).buffer_unordered(16).collect::<()>());
}

#[test]
fn what_was_acknowledged_survives() {
    run_all(0..100);
}

/// Lets something happen before a call of the nodes, and lets this call and all later ones wait
/// until it has happened.
#[derive(Default)]
struct Meddler(Mutex<Option<Plan>>);

/// What happens before calls of one kind, and how many of them come before it.
struct Plan {
    call: NodeCall,
    left: usize,
    deed: Shared<BoxFuture<'static, ()>>,
}

impl fmt::Debug for Meddler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meddler")
    }
}

impl Meddler {
    fn open(self: &Arc<Self>, disks: &Disks, code: &str) -> Volume {
        disks.open_with(code, &|_, node| Arc::new(Metered::new(node, Arc::clone(self))))
    }

    /// Lets `deed` happen after `left` calls of a kind.
    fn plan(&self, call: NodeCall, left: usize, deed: impl Future<Output = ()> + Send + 'static) {
        *self.0.lock().unwrap() = Some(Plan { call, left, deed: deed.boxed().shared() });
    }

    /// Counts a call. Returns what is to happen before it.
    fn count(&self, call: NodeCall) -> Option<Shared<BoxFuture<'static, ()>>> {
        let mut plan = self.0.lock().unwrap();
        let plan = plan.as_mut().filter(|plan| plan.call == call)?;
        match plan.left.checked_sub(1) {
            Some(left) => {
                plan.left = left;
                None
            }
            None => Some(plan.deed.clone()),
        }
    }
}

#[async_trait]
impl Meter for Meddler {
    type Guard = ();

    async fn begin(&self, call: NodeCall, _path: &str) -> Result<()> {
        if let Some(deed) = self.count(call) {
            deed.await;
        }
        Ok(())
    }

    async fn carry(&self, _call: NodeCall, _bytes: u64) {}
}

/// Replaces the object by another client, or removes it if there are no bytes.
async fn change(other: Volume, bytes: Option<Vec<u8>>) {
    match bytes {
        Some(bytes) => put(&other, &bytes).await.unwrap(),
        None => _ = other.remove(&name("object")).await.unwrap(),
    }
}

#[tokio::test]
async fn an_object_that_is_replaced_after_the_survey_is_read_anew() {
    for (old, new) in [(100, Some(200)), (100_000, Some(200_000)), (100, None), (100_000, None)] {
        let (disks, meddler) = (Disks::new(6), Arc::new(Meddler::default()));
        put(&disks.volume("4+2").await, &content(old)).await.unwrap();
        let volume = meddler.open(&disks, "4+2");
        // The marks of the nodes are read now, so manifests are read next.
        volume.list("").await.unwrap();
        meddler.plan(NodeCall::Read, 0, change(disks.open("4+2"), new.map(content)));
        match (get(&volume, "object").await, new) {
            (Ok(bytes), Some(new)) => assert!(bytes == content(new)),
            (Err(error), None) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
            (read, new) => panic!("{old}, {new:?}: {:?}", read.map(|bytes| bytes.len())),
        }
    }
}

/// A put after it would have a generation that no reader looks at.
#[tokio::test]
async fn a_file_that_states_the_last_generation_makes_no_put_invisible() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, b"first").await.unwrap();
    let manifest = disks.files("manifests").remove(0);
    let file = manifest.file_name().unwrap().to_str().unwrap();
    let (_, rest) = file.split_once('-').unwrap();
    let forged = manifest.with_file_name(format!("7fffffffffffffff-{rest}"));
    std::fs::write(&forged, "forged").unwrap();
    let error = put(&volume, b"again").await.unwrap_err().to_string();
    assert!(error.contains("states generation 7fffffffffffffff"), "{error}");
    std::fs::remove_file(forged).unwrap();
    assert!(get(&volume, "object").await.unwrap() == b"first");
    put(&volume, b"again").await.unwrap();
}

#[tokio::test]
async fn an_object_that_changes_while_it_is_verified_is_not_called_lost() {
    for new in [Some(200_000), Some(200), None] {
        let (disks, meddler) = (Disks::new(6), Arc::new(Meddler::default()));
        put(&disks.volume("4+2").await, &content(100_000)).await.unwrap();
        let volume = meddler.open(&disks, "4+2");
        // The survey and the count of manifests list 6 nodes each. Next, shards are looked for.
        meddler.plan(NodeCall::List, 12, change(disks.open("4+2"), new.map(content)));
        match (volume.verify(&name("object"), false).await, new) {
            (Ok(verdict), Some(new)) => {
                assert_eq!(verdict.state, State::Intact, "{verdict:?}");
                assert_eq!(verdict.listed.length, new as u64);
            }
            (Err(error), None) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
            (verdict, new) => panic!("{new:?}: {verdict:?}"),
        }
    }
}

/// The seed 2856 of the simulation (`src/simulation`) found that such an object was called lost.
#[tokio::test]
async fn an_object_that_changes_while_it_is_promoted_is_not_called_lost() {
    const CODE: &str = "bbdpg:k=4,m=1,m2=2,base=cauchy";
    for new in [Some(200_000), Some(200), None] {
        let (disks, meddler) = (Disks::new(7), Arc::new(Meddler::default()));
        put(&disks.volume(CODE).await, &content(100_000)).await.unwrap();
        let volume = meddler.open(&disks, CODE);
        // Two surveys list 7 nodes each. Next, shards are looked for.
        meddler.plan(NodeCall::List, 14, change(disks.open(CODE), new.map(content)));
        let error = volume.promote(&name("object")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{new:?}: {error}");
    }
}

#[tokio::test]
async fn objects_may_change_while_a_lost_disk_is_filled() {
    for new in [Some(200_000), Some(200), None] {
        let (disks, meddler) = (Disks::new(6), Arc::new(Meddler::default()));
        put(&disks.volume("4+2").await, &content(100_000)).await.unwrap();
        std::fs::remove_dir_all(disks.path(1)).unwrap();
        std::fs::create_dir(disks.path(1)).unwrap();
        let volume = meddler.open(&disks, "4+2");
        volume.list("").await.unwrap();
        // The new disk's missing mark is read once more.
        meddler.plan(NodeCall::Read, 1, change(disks.open("4+2"), new.map(content)));
        volume.fill("disk1").await.unwrap();
        let volume = disks.open("4+2");
        let verdict = volume.verify(&name("object"), false).await;
        match new {
            Some(new) => {
                assert_eq!(verdict.unwrap().listed.length, new as u64);
                assert!(!volume.repair(&name("object"), false).await.unwrap().is_owed);
                assert!(get(&volume, "object").await.unwrap() == content(new));
            }
            None => assert_eq!(verdict.unwrap_err().kind(), ErrorKind::NotFound),
        }
    }
}

/// The long form, for scripts/test-soak.
#[test]
#[ignore = "takes minutes"]
fn what_was_acknowledged_survives_two_thousand_runs() {
    run_all(1000..3000);
}
