//! Nodes that fail in the middle of a put: their shards go to spare nodes, or are owed.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Disks, content, get, name};
use paritas_volume::node::{Fault, Faulty, Limited, Node, NodeCall, Trigger};
use paritas_volume::{PutOptions, PutReport, Reencoded, Setup, State, Volume};

/// Bytes of the object. A shard has more than are sent at a time.
const LENGTH: usize = 5_000_000;

/// Opens a marked volume in which the disks `fails` refuse the given call when its trigger says so.
async fn failing(
    disks: &Disks,
    fails: &[usize],
    (call, trigger): (NodeCall, Trigger),
    change: impl Fn(&mut Setup),
) -> Volume {
    disks.volume("4+2").await;
    let wrap = |disk, node: Arc<dyn Node>| -> Arc<dyn Node> {
        match fails.contains(&disk) {
            true => Arc::new(Faulty::new(node, 0).with(call, Fault::Refuse, trigger)),
            false => node,
        }
    };
    disks.open_changed("4+2", &wrap, change)
}

async fn put(volume: &Volume) -> PutReport {
    let source = std::io::Cursor::new(content(LENGTH));
    volume.put(&name("object"), source, PutOptions::default()).await.unwrap()
}

/// Returns the number of shards on each disk.
fn shards(disks: &Disks, count: usize) -> Vec<usize> {
    let is_shard = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "paritas");
    (0..count).map(|disk| disks.files_on(disk).into_keys().filter(is_shard).count()).collect()
}

/// Repairs the object over sound disks, and checks that each has its own.
async fn settle(disks: &Disks) {
    let sound = disks.open("4+2");
    assert!(!sound.repair(&name("object"), true).await.unwrap().is_owed);
    let verdict = sound.verify(&name("object"), true).await.unwrap();
    assert_eq!((verdict.state, verdict.spare), (State::Intact, 2), "{verdict:?}");
    assert_eq!(sound.status().await.unwrap().owed.objects, 0);
    assert!(get(&sound, "object").await.unwrap() == content(LENGTH));
}

#[tokio::test]
async fn a_failed_node_s_shard_goes_to_a_spare_one_within_the_put() {
    // In mid-transfer, and when the file should appear.
    for moment in [(NodeCall::Piece, Trigger::From(2)), (NodeCall::Finish, Trigger::From(1))] {
        // The object's id is drawn at random: of eight disks, two are spare, now these and now
        // those. So one of four fails surely.
        let disks = Disks::new(8);
        for missing in [0, 1] {
            let fails = [0, 1];
            let volume =
                failing(&disks, &fails, moment, |setup: &mut Setup| setup.missing = missing).await;
            put(&volume).await;
            let shards = shards(&disks, 8);
            assert_eq!(shards, [0, 0, 1, 1, 1, 1, 1, 1], "{moment:?}, {missing}");
            // Two disks more may be lost at once.
            let hidden = disks.hide(&[3, 6]);
            assert!(get(&disks.open("4+2"), "object").await.unwrap() == content(LENGTH));
            hidden.show();
            settle(&disks).await;
        }
    }
}

#[tokio::test]
async fn without_a_spare_node_the_shard_is_owed() {
    let disks = Disks::new(6);
    let moment = (NodeCall::Piece, Trigger::From(2));
    let volume = failing(&disks, &[4], moment, |setup: &mut Setup| setup.missing = 1).await;
    let report = put(&volume).await;
    assert!(report.is_owed && report.flaws.iter().any(|flaw| flaw.node == "disk4"), "{report:?}");
    assert_eq!(shards(&disks, 6), [1, 1, 1, 1, 0, 1]);
    let status = volume.status().await.unwrap();
    assert_eq!(status.owed.objects, 1);
    assert_eq!(volume.owed("").await, [name("object")]);
    settle(&disks).await;
    assert_eq!(shards(&disks, 6), [1; 6]);
}

#[tokio::test]
async fn a_spare_node_is_in_a_failure_domain_that_has_room() {
    // Three hosts have three disks each. Every host gets two shards.
    for fails in 0..3 {
        let disks = Disks::new(9);
        let hosts = |setup: &mut Setup| {
            setup.missing = 1;
            let members = setup.nodes.iter_mut().enumerate();
            members.for_each(|(disk, (member, _))| member.domain = format!("host{}", disk / 3));
        };
        let volume = failing(&disks, &[fails], (NodeCall::Piece, Trigger::From(2)), hosts).await;
        put(&volume).await;
        let shards = shards(&disks, 9);
        let on_hosts: Vec<usize> = shards.chunks(3).map(|disks| disks.iter().sum()).collect();
        assert_eq!((on_hosts, shards[fails]), (vec![2, 2, 2], 0), "{shards:?}");
        // A host may be lost.
        let hidden = disks.hide(&[3, 4]);
        let volume = disks.open_changed("4+2", &|_, node| node, hosts);
        assert!(get(&volume, "object").await.unwrap() == content(LENGTH));
        hidden.show();
    }
}

/// Nodes that take one request at a time are read from and written to at once, by puts that must
/// make the shards of missing nodes anew, by repair and by re-encoding, and nothing waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn one_request_at_a_time_suffices() {
    let one =
        |_: usize, node: Arc<dyn Node>| -> Arc<dyn Node> { Arc::new(Limited::to(node, 1, None)) };
    let disks = Disks::new(5);
    disks.volume("3+2").await;
    let volume = disks.open_with("3+2", &one);
    let work = async {
        for round in 0..4 {
            for missing in [&[2][..], &[2, 3]] {
                let hidden = disks.hide(missing);
                assert!(put(&volume).await.is_owed, "round {round}, without {missing:?}");
                assert!(get(&volume, "object").await.unwrap() == content(LENGTH));
                drop(hidden);
                assert!(volume.repair(&name("object"), true).await.is_ok());
            }
        }
        let other = disks.open_with("rdp:k=3", &one);
        assert!(matches!(other.reencode(&name("object")).await, Ok(Reencoded::Changed(_))));
        assert!(get(&other, "object").await.unwrap() == content(LENGTH));
    };
    tokio::time::timeout(Duration::from_secs(120), work).await.expect("nothing hangs");
}
