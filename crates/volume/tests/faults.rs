//! Objects on nodes that fail in every way, and processes that stop at any moment.
//!
//! In each run up to as many nodes are faulty as may be lost. Their faults come from the run's
//! seed. Whatever happens, what a put has acknowledged comes back, nothing partial is ever seen,
//! and repair brings everything into order once the faults are over.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Disks, content, name};
use paritas_volume::node::{Call, Fault, Faulty, Node, Timed, Trigger};
use paritas_volume::{GetOptions, Health, PutOptions, Volume};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const CALLS: [Call; 7] =
    [Call::Read, Call::Stat, Call::List, Call::Write, Call::Piece, Call::Finish, Call::Delete];
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

/// What a client does while nodes fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Put,
    Repair,
    Promote,
    Remove,
    TwoPuts,
}

const WORKS: [Work; 5] = [Work::Put, Work::Repair, Work::Promote, Work::Remove, Work::TwoPuts];

struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// What may be read after a run.
#[derive(Debug)]
struct Allowed {
    contents: Vec<Vec<u8>>,
    /// Whether there may be no object.
    nothing: bool,
}

async fn put(volume: &Volume, bytes: &[u8]) -> paritas_volume::Result<()> {
    let source = std::io::Cursor::new(bytes.to_vec());
    volume.put(&name("object"), source, PutOptions::default()).await.map(|_| ())
}

async fn get(volume: &Volume) -> paritas_volume::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    volume.get(&name("object"), None, &mut bytes, GetOptions::default(), &|_| {}).await?;
    Ok(bytes)
}

/// Does the work, and returns what may be read then. The work stops at a random moment in every
/// other run.
async fn act(volume: &Volume, work: Work, old: &[u8], chance: &mut Chance) -> Allowed {
    let lengths = [0, 100, 5000, 150_000, 400_000];
    let [first, second] = [chance.choose(&lengths), chance.choose(&lengths)].map(|length| {
        let mut bytes = content(length as usize);
        bytes.extend(chance.below(u64::MAX).to_le_bytes());
        bytes
    });
    let stop = match chance.below(2) {
        0 => Duration::from_micros(chance.below(30_000)),
        _ => Duration::from_secs(3600),
    };
    let keeps = |contents: Vec<Vec<u8>>| Allowed { contents, nothing: false };
    match work {
        Work::Put => match tokio::time::timeout(stop, put(volume, &first)).await {
            Ok(Ok(())) => keeps(vec![first]),
            _ => keeps(vec![old.to_vec(), first]),
        },
        Work::TwoPuts => {
            let both = futures::future::join(put(volume, &first), put(volume, &second));
            match tokio::time::timeout(stop, both).await {
                Ok((Ok(()), Ok(()))) => keeps(vec![first, second]),
                Ok((Ok(()), Err(_)) | (Err(_), Ok(()))) => keeps(vec![first, second]),
                _ => keeps(vec![old.to_vec(), first, second]),
            }
        }
        Work::Repair => {
            let _ = tokio::time::timeout(stop, volume.repair(&name("object"), true)).await;
            keeps(vec![old.to_vec()])
        }
        Work::Promote => {
            let _ = tokio::time::timeout(stop, volume.promote(&name("object"))).await;
            keeps(vec![old.to_vec()])
        }
        Work::Remove => match tokio::time::timeout(stop, volume.remove(&name("object"))).await {
            Ok(Ok(_)) => Allowed { contents: Vec::new(), nothing: true },
            _ => Allowed { contents: vec![old.to_vec()], nothing: true },
        },
    }
}

fn expect(read: paritas_volume::Result<Vec<u8>>, allowed: &Allowed, when: &str) {
    match read {
        Ok(bytes) => assert!(allowed.contents.contains(&bytes), "{when}: other bytes"),
        Err(error) if error.kind() == paritas_volume::ErrorKind::NotFound && allowed.nothing => {}
        Err(error) => panic!("{when}: {error}"),
    }
}

async fn run(seed: u64) {
    let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(seed));
    let work = chance.choose(&WORKS);
    let (spec, disks) = match work {
        Work::Promote => ("bbdpg:k=4,m=1,m2=2,base=cauchy", Disks::new(6)),
        _ => ("4+2", Disks::new(6)),
    };
    let clean = disks.volume(spec).await;
    let mut old = content(chance.choose(&[0, 3000, 200_000]));
    old.extend(seed.to_le_bytes());
    put(&clean, &old).await.unwrap();

    let tolerance = if work == Work::Promote { 1 } else { 2 };
    let faulty: Vec<usize> = (0..tolerance).map(|_| chance.below(6) as usize).collect();
    let mut seeds: Vec<u64> = (0..6).map(|_| chance.below(u64::MAX)).collect();
    let rules: Vec<(Call, Fault, Trigger)> = (0..1 + chance.below(4))
        .map(|_| {
            let trigger = match chance.below(3) {
                0 => Trigger::Chance(0.3),
                1 => Trigger::At(1 + chance.below(4)),
                _ => Trigger::From(1 + chance.below(4)),
            };
            (chance.choose(&CALLS), chance.choose(&FAULTS), trigger)
        })
        .collect();
    let wrap = |disk: usize, node: Arc<dyn Node>| -> Arc<dyn Node> {
        if !faulty.contains(&disk) {
            return node;
        }
        let mut node = Faulty::new(node, seeds[disk]);
        for &(call, fault, trigger) in &rules {
            node = node.with(call, fault, trigger);
        }
        Arc::new(Timed::new(Arc::new(node), Duration::from_millis(200)))
    };
    let failing = disks.open_with(spec, &wrap);
    let what = format!("seed {seed}: {work:?} with nodes {faulty:?} failing by {rules:?}");
    let allowed = act(&failing, work, &old, &mut chance).await;
    drop(failing);

    // The faulty nodes are as good as lost.
    expect(get(&clean).await, &allowed, &what);
    let lost = disks.hide(&faulty);
    expect(get(&disks.open(spec)).await, &allowed, &format!("{what}, these lost"));
    lost.show();
    seeds.clear();

    let clean = disks.open(spec);
    match clean.repair(&name("object"), true).await {
        Ok(repaired) => assert!(!repaired.is_owed, "{what}: {:?}", repaired.flaws),
        Err(error) if allowed.nothing => {
            assert_eq!(error.kind(), paritas_volume::ErrorKind::NotFound, "{what}: {error}");
        }
        Err(error) => panic!("{what}: repair: {error}"),
    }
    let read = get(&clean).await;
    let is_there = read.is_ok();
    expect(read, &allowed, &format!("{what}, repaired"));
    if is_there {
        let verdict = clean.verify(&name("object"), true).await.unwrap();
        assert_eq!(verdict.health, Health::Intact, "{what}: {verdict:?}");
    }
}

fn run_all(seeds: std::ops::Range<u64>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        for seed in seeds {
            run(seed).await;
        }
    });
}

#[test]
fn what_was_acknowledged_survives() {
    run_all(0..100);
}

/// The long form, for scripts/test-soak.
#[test]
#[ignore = "takes minutes"]
fn what_was_acknowledged_survives_two_thousand_runs() {
    run_all(1000..3000);
}
