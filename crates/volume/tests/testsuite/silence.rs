//! Nodes that fall silent: each command waits for all of them together at most one time limit.
//!
//! Time is virtual, and nodes that answer do so at once. So what the clock shows in the end is what
//! was waited in vain.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{CALLS, content, get, name};
use async_trait::async_trait;
use futures::future::join_all;
use paritas_volume::node::{
    Endpoint, Fault, Faulty, Meter, Metered, Node, NodeCall, Timed, Trigger,
};
use paritas_volume::{
    Error, ErrorKind, GetOptions, Member, PutOptions, Result, Setup, State, Volume,
};
use tokio::time::Instant;

/// The time limit of each node.
const LIMIT: Duration = Duration::from_secs(10);

/// Further time that commands may wait: surveys for nodes that are a little slower than others,
/// readers before they ask another node.
const PAUSES: Duration = Duration::from_secs(3);

/// A code that is promoted. Two nodes may be lost, one before promotion.
const STAGED: &str = "bbdpg:k=4,m=1,m2=2,base=cauchy";
/// A code of one stage. Two nodes may be lost.
const PLAIN: &str = "4+2";
const NODES: usize = 8;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    PutLarge,
    PutSmall,
    Get,
    List,
    Find,
    Remove,
    Verify,
    Repair,
    RepairAll,
    Collect,
    Promote,
    Backlog,
    Reencode,
    Status,
    Scrub,
    Fill,
    ShardsOn,
}

const VERBS: [Verb; 17] = [
    Verb::PutLarge,
    Verb::PutSmall,
    Verb::Get,
    Verb::List,
    Verb::Find,
    Verb::Remove,
    Verb::Verify,
    Verb::Repair,
    Verb::RepairAll,
    Verb::Collect,
    Verb::Promote,
    Verb::Backlog,
    Verb::Reencode,
    Verb::Status,
    Verb::Scrub,
    Verb::Fill,
    Verb::ShardsOn,
];

impl Verb {
    /// Returns the code of the volume when it is filled, and when the verb is done.
    fn codes(self) -> [&'static str; 2] {
        match self {
            Self::Promote | Self::Backlog => [STAGED; 2],
            Self::Reencode => [PLAIN, "5+3"],
            _ => [PLAIN; 2],
        }
    }

    /// Whether the verb is refused if one node more than may be lost is silent.
    fn needs_a_quorum(self) -> bool {
        !matches!(self, Self::Status | Self::Backlog | Self::Collect | Self::ShardsOn)
    }

    async fn act(self, volume: &Volume) -> Result<()> {
        let object = &name("object");
        match self {
            Self::PutLarge => put(volume, "new", 300_000).await,
            Self::PutSmall => put(volume, "new", 100).await,
            Self::Get => {
                assert!(get(volume, "object").await? == content(300_000));
                Ok(())
            }
            Self::List => volume.list("").await.map(drop),
            Self::Find => volume.find(object, GetOptions::default()).await.map(drop),
            Self::Remove => volume.remove(object).await.map(drop),
            Self::Verify => {
                let verdict = volume.verify(object, true).await?;
                assert!(matches!(verdict.state, State::Intact | State::Repairable));
                Ok(())
            }
            Self::Repair => volume.repair(object, true).await.map(drop),
            Self::RepairAll => {
                for name in volume.most_urgent_first(&volume.overview("").await?).await {
                    volume.repair(&name, false).await?;
                }
                volume.collect().await.map(drop)
            }
            Self::Collect => volume.collect().await.map(drop),
            Self::Promote => volume.promote(object).await.map(drop),
            Self::Backlog => {
                volume.backlog("").await;
                Ok(())
            }
            Self::Reencode => volume.reencode(object).await.map(drop),
            Self::Status => volume.status().await.map(drop),
            Self::Scrub => {
                let mut scrub = volume.scrub().await?;
                while let Some((_, repaired)) = scrub.next().await {
                    repaired?;
                }
                Ok(())
            }
            Self::Fill => volume.fill(&node_name(NODES - 1)).await.map(drop),
            // A silent node fails, the others have been told about.
            Self::ShardsOn => {
                let nodes = (0..NODES).map(node_name);
                join_all(nodes.map(async |node| volume.shards_on(&node).await.ok())).await;
                Ok(())
            }
        }
    }
}

async fn put(volume: &Volume, object: &str, length: usize) -> Result<()> {
    let source = std::io::Cursor::new(content(length));
    volume.put(&name(object), source, PutOptions::default()).await.map(drop)
}

fn node_name(node: usize) -> String {
    format!("node{node}")
}

/// Nodes in memory.
struct Stores(Vec<Arc<dyn Node>>);

impl Stores {
    /// Makes a volume with some objects, which wait for promotion.
    async fn filled(code: &str, verb: Verb) -> Self {
        let store =
            |node| -> Arc<dyn Node> { Arc::new(Endpoint::memory(node_name(node)).unwrap()) };
        let mut stores = Self((0..NODES).map(store).collect());
        let volume = stores.open(code, &|_, node| node);
        volume.mark_nodes().await.unwrap();
        for (object, length) in [("object", 300_000), ("other", 100_000), ("small", 100)] {
            put(&volume, object, length).await.unwrap();
        }
        if verb == Verb::Fill {
            stores.0[NODES - 1] = store(NODES - 1);
        }
        stores
    }

    fn open(&self, code: &str, wrap: &dyn Fn(usize, Arc<dyn Node>) -> Arc<dyn Node>) -> Volume {
        let node = |(number, store): (usize, &Arc<dyn Node>)| {
            let name = node_name(number);
            let member = Member { domain: name.clone(), name, is_drained: false };
            (member, wrap(number, Arc::clone(store)))
        };
        let code = paritas::Code::new(&code.parse().unwrap()).unwrap();
        let nodes = self.0.iter().enumerate().map(node).collect();
        let mut setup = Setup::new("0".repeat(32), code, nodes);
        (setup.block_bytes, setup.losses) = (64 << 10, Some(2));
        Volume::new(setup).unwrap()
    }

    /// Opens a volume in which the nodes `hanging` hang, for each kind in `calls` from the `nth`
    /// call on.
    fn hanging(&self, code: &str, hanging: &[usize], calls: &[NodeCall], nth: u64) -> Volume {
        let wrap = |number: usize, node: Arc<dyn Node>| -> Arc<dyn Node> {
            let hang =
                |node: Faulty, &call: &NodeCall| node.with(call, Fault::Hang, Trigger::From(nth));
            let node = match hanging.contains(&number) {
                true => Arc::new(calls.iter().fold(Faulty::new(node, 0), hang)),
                false => node,
            };
            Arc::new(Timed::new(node, LIMIT))
        };
        self.open(code, &wrap)
    }
}

fn told(done: &Result<()>) -> String {
    done.as_ref().err().map(Error::to_string).unwrap_or_default()
}

/// Does what a client does (`verb`) on a volume in which the nodes `hanging` hang, for each kind in
/// `calls` from the `nth` call on.
async fn act(
    verb: Verb,
    hanging: &[usize],
    calls: &[NodeCall],
    nth: u64,
) -> (Result<()>, Duration) {
    let [before, after] = verb.codes();
    let stores = Stores::filled(before, verb).await;
    let volume = stores.hanging(after, hanging, calls, nth);
    let begun = Instant::now();
    let done = verb.act(&volume).await;
    let took = begun.elapsed();
    println!(
        "{verb:?}, {hanging:?} hang from call {nth} of {calls:?} on: {took:?} {}",
        told(&done)
    );
    (done, took)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_hangs_is_waited_for_once_whatever_is_done() {
    for verb in VERBS {
        let (done, took) = act(verb, &[1], &CALLS, 1).await;
        assert!(done.is_ok() && took <= LIMIT + PAUSES, "{verb:?}: {took:?}, {}", told(&done));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_may_begin_to_hang_at_any_call() {
    let soak = std::env::var_os("PARITAS_SOAK").is_some();
    let tried: Vec<u64> = if soak { (1..=12).collect() } else { vec![1, 2, 3, 5, 8, 12] };
    // A thread waits for what `reencode` reads, and virtual time stands still for threads.
    for verb in VERBS.into_iter().filter(|verb| *verb != Verb::Reencode) {
        for call in CALLS {
            for &nth in &tried {
                let (done, took) = act(verb, &[2], &[call], nth).await;
                let is_right = done.is_ok() && took <= LIMIT + PAUSES;
                assert!(is_right, "{verb:?} {call:?} {nth}: {took:?}, {}", told(&done));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_nodes_as_may_be_lost_are_waited_for_together() {
    for verb in VERBS {
        // The node that is filled is one of them, and before promotion only one may be lost.
        let hanging = if matches!(verb, Verb::Fill | Verb::Promote) { &[1][..] } else { &[1, 4] };
        let (done, took) = act(verb, hanging, &CALLS, 1).await;
        assert!(done.is_ok() && took <= LIMIT + PAUSES, "{verb:?}: {took:?}, {}", told(&done));
    }
}

#[tokio::test(start_paused = true)]
async fn with_one_silent_node_more_the_refusal_comes_after_one_limit() {
    for verb in VERBS {
        let (done, took) = act(verb, &[1, 3, 4], &CALLS, 1).await;
        assert!(took <= LIMIT + PAUSES, "{verb:?}: {took:?}");
        if verb.needs_a_quorum() {
            assert_eq!(done.unwrap_err().kind(), ErrorKind::TooFewNodes, "{verb:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_is_asked_no_more_once_it_is_known_to_be_silent() {
    let stores = Stores::filled(PLAIN, Verb::List).await;
    let volume = stores.hanging(PLAIN, &[1], &CALLS, 1);
    volume.list("").await.unwrap();
    let begun = Instant::now();
    for verb in [Verb::PutLarge, Verb::PutSmall, Verb::Repair, Verb::Remove, Verb::List] {
        verb.act(&volume).await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

/// A node that answers nothing before a certain moment, and counts what it has answered.
#[derive(Debug)]
struct Outage {
    end: Instant,
    answered: AtomicUsize,
}

#[async_trait]
impl Meter for Outage {
    type Guard = ();

    async fn begin(&self, _call: NodeCall, _path: &str) -> Result<()> {
        if Instant::now() < self.end {
            std::future::pending::<()>().await;
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn carry(&self, _call: NodeCall, _bytes: u64) {}
}

#[tokio::test(start_paused = true)]
async fn long_work_takes_back_a_node_that_has_recovered_and_waits_for_it_once() {
    let stores = Stores::filled(PLAIN, Verb::List).await;
    let end = Instant::now() + Duration::from_secs(25);
    let outage = Arc::new(Outage { end, answered: AtomicUsize::new(0) });
    let volume = stores.open(PLAIN, &|number, node| match number {
        1 => {
            let node = Metered::new(node, Arc::clone(&outage));
            Arc::new(Timed::new(Arc::new(node), LIMIT))
        }
        _ => node,
    });
    let (mut waited, mut taken_back) = (Duration::ZERO, None);
    for second in 0..60 {
        let begun = Instant::now();
        let listing = volume.list("").await.unwrap();
        assert!(listing.is_sure);
        waited += begun.elapsed();
        taken_back = taken_back.or(listing.flaws.is_empty().then_some(second));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(waited, LIMIT);
    // It rests for three limits, and is tried beside the next listing.
    assert!(taken_back.is_some_and(|second| (30..33).contains(&second)), "{taken_back:?}");
    assert!(outage.answered.load(Ordering::Relaxed) > 20);
}

#[tokio::test(start_paused = true)]
async fn a_put_that_cannot_begin_enough_shards_says_so_after_one_limit() {
    // Each node is the home of a shard, and two of the shards may be missing.
    let stores = Stores::filled("6+2", Verb::PutLarge).await;
    let volume = stores.hanging("6+2", &[1, 3, 4], &[NodeCall::Write], 1);
    let begun = Instant::now();
    let refused = put(&volume, "new", 300_000).await.unwrap_err();
    assert!(begun.elapsed() <= LIMIT + PAUSES, "{:?}", begun.elapsed());
    assert_eq!(refused.kind(), ErrorKind::TooFewNodes);
    let message = refused.to_string();
    assert!(message.contains("6 nodes must take part; got 5: "), "{message}");
    for node in ["node1", "node3", "node4"] {
        let why = format!("{node}: no answer within 10 s");
        assert!(message.contains(&why), "{message}");
    }
}
