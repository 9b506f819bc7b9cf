//! Objects of volumes over folders: written, read, lost in part, repaired, promoted. This file is
//! long because each promise is tried by itself, from the first byte to the last repair.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::gate::slow;
use crate::common::{Disks, content, damage, get, name, put};
use paritas_volume::node::{Fault, Faulty, Node, NodeCall, Trigger};
use paritas_volume::{ErrorKind, GetOptions, Notes, PutOptions, State, Volume};

#[tokio::test]
async fn objects_of_all_lengths_come_back() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    for length in [0, 1, 4096, 4097, 300_000, 3_000_000] {
        let object = format!("folder/of {length} bytes");
        let bytes = content(length);
        let report = put(&volume, &object, &bytes).await;
        assert_eq!(report.is_inline, length <= 4096, "{length}");
        assert!(!report.is_owed, "{:?}", report.flaws);
        assert_eq!(report.nodes.len(), if report.is_inline { 3 } else { 6 });
        assert!(get(&volume, &object).await.unwrap() == bytes);
    }
    let listing = volume.list("").await.unwrap();
    let lengths: Vec<u64> = listing.objects.values().map(|listed| listed.length).collect();
    assert_eq!(lengths.iter().sum::<u64>(), 3_308_194);
    assert_eq!(volume.list("folder/of 4").await.unwrap().objects.len(), 2);
    assert_eq!(volume.list("other/").await.unwrap().objects.len(), 0);
    let error = get(&volume, "folder").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_range_reads_one_block() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(5_000_000);
    put(&volume, "object", &bytes).await;
    let mut part = Vec::new();
    let range = 2_000_000..2_004_096;
    let object = volume
        .get(&name("object"), Some(range.clone()), &mut part, GetOptions::default(), &|_| {})
        .await
        .unwrap();
    assert!(part == bytes[range.start as usize..range.end as usize]);
    // One block has 256 stripes of three rows of 64 bytes: the largest power of two of such stripes
    // that fits into 64 KiB.
    assert_eq!(object.read_bytes(), 256 * 3 * 64 + 8);
}

#[tokio::test]
async fn versions_replace_each_other_whole() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    for length in [100_000, 50, 200_000, 0] {
        let bytes = content(length);
        put(&volume, "object", &bytes).await;
        assert!(get(&volume, "object").await.unwrap() == bytes);
    }
    // Nothing is left of older versions. All nodes had one, so all have the newest.
    assert_eq!(disks.files("objects").len(), 0);
    assert_eq!(disks.files("manifests").len(), 6);
    volume.remove(&name("object")).await.unwrap();
    assert_eq!(get(&volume, "object").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(volume.remove(&name("object")).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(volume.list("").await.unwrap().objects.len(), 0);
    put(&volume, "object", b"again").await;
    assert!(get(&volume, "object").await.unwrap() == b"again");
}

#[tokio::test]
async fn lost_disks_are_survived_and_filled_again() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let (large, small) = (content(400_000), content(100));
    put(&volume, "large", &large).await;
    put(&volume, "small", &small).await;
    let verdict = volume.verify(&name("large"), true).await.unwrap();
    assert_eq!((verdict.state, verdict.spare), (State::Intact, 2), "{verdict:?}");

    // Two disks lose all they have, but their marks.
    let lost = |disk: usize| {
        for folder in ["objects", "manifests"] {
            let _ = std::fs::remove_dir_all(disks.path(disk).join(folder));
        }
    };
    lost(1);
    lost(4);
    assert!(get(&volume, "large").await.unwrap() == large);
    assert!(get(&volume, "small").await.unwrap() == small);
    let verdict = volume.verify(&name("large"), false).await.unwrap();
    assert_eq!((verdict.state, verdict.spare, verdict.missing.len()), (State::Repairable, 0, 2));
    for object in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
        assert!(!volume.repair(&object, false).await.unwrap().is_owed);
    }
    for object in ["large", "small"] {
        let verdict = volume.verify(&name(object), true).await.unwrap();
        assert_eq!((verdict.state, verdict.spare), (State::Intact, 2), "{verdict:?}");
    }
    lost(0);
    lost(2);
    assert!(get(&volume, "large").await.unwrap() == large);
    lost(3);
    let error = get(&volume, "large").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
}

#[tokio::test]
async fn a_disk_that_lost_its_mark_counts_as_none() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(10_000);
    put(&volume, "object", &bytes).await;
    for disk in [0, 3] {
        std::fs::remove_dir_all(disks.path(disk)).unwrap();
        std::fs::create_dir(disks.path(disk)).unwrap();
    }
    let volume = disks.open("4+2");
    assert!(get(&volume, "object").await.unwrap() == bytes);
    std::fs::remove_dir_all(disks.path(1)).unwrap();
    std::fs::create_dir(disks.path(1)).unwrap();
    let volume = disks.open("4+2");
    let error = get(&volume, "object").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewNodes);
    assert!(error.to_string().contains("does not bear the volume's mark"), "{error}");
}

#[tokio::test]
async fn a_lost_disk_is_replaced_by_an_empty_one() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let (large, small) = (content(300_000), content(200));
    for object in 0..8 {
        put(&volume, &format!("large/{object}"), &large).await;
        put(&volume, &format!("small/{object}"), &small).await;
    }
    volume.remove(&name("large/0")).await.unwrap();
    // Enough other disks have the mark of what was removed.
    let counted = || {
        let mut files = disks.files_on(2);
        files.retain(|path, _| path.extension().is_none_or(|kind| kind != "removed"));
        files
    };
    let before = counted();
    std::fs::remove_dir_all(disks.path(2)).unwrap();
    std::fs::create_dir(disks.path(2)).unwrap();

    let volume = disks.open("4+2");
    for other in ["letter", "scrub.log"] {
        std::fs::write(disks.path(2).join(other), "somebody's").unwrap();
        let error = volume.fill("disk2").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
        std::fs::remove_file(disks.path(2).join(other)).unwrap();
    }
    volume.fill("disk2").await.unwrap();
    // All that was counted on is there again, so two other disks may go.
    let hidden = disks.hide(&[0, 5]);
    for object in 1..8 {
        assert!(get(&volume, &format!("small/{object}")).await.unwrap() == small);
    }
    let error = get(&volume, "large/0").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    hidden.show();
    // A replacement that ends here is not forgotten.
    let owed = volume.owed("").await;
    assert_eq!(owed, (1..8).map(|object| name(&format!("large/{object}"))).collect::<Vec<_>>());
    for object in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
        let repaired = volume.repair(&object, false).await.unwrap();
        assert!(!repaired.is_owed, "{:?}", repaired.flaws);
    }
    assert_eq!(counted(), before);
    assert!(volume.fill("disk7").await.unwrap_err().to_string().contains("disk7"));
}

#[tokio::test]
async fn small_objects_whose_copies_are_elsewhere_survive_a_replacement() {
    let disks = Disks::new(3);
    disks.volume("2+1").await;
    // Disk 2 is down, so each object is on disks 0 and 1, wherever its copies belong.
    let hidden = disks.hide(&[2]);
    let volume = disks.open("2+1");
    for object in 0..16 {
        put(&volume, &object.to_string(), b"small").await;
    }
    hidden.show();
    std::fs::remove_dir_all(disks.path(1)).unwrap();
    std::fs::create_dir(disks.path(1)).unwrap();
    assert_eq!(disks.open("2+1").fill("disk1").await.unwrap().manifests, 16);
    let hidden = disks.hide(&[0]);
    let volume = disks.open("2+1");
    for object in 0..16 {
        assert!(get(&volume, &object.to_string()).await.unwrap() == b"small");
    }
    hidden.show();
}

#[tokio::test]
async fn nodes_that_fail_in_mid_verification_make_nothing_lost() {
    let disks = Disks::new(6);
    put(&disks.volume("4+2").await, "object", &content(300_000)).await;
    // The third listing of a node looks for shards; deep verification reads them after that.
    for (call, first, is_deep) in [(NodeCall::List, 3, false), (NodeCall::Read, 4, true)] {
        let wrap = |disk: usize, node: Arc<dyn Node>| -> Arc<dyn Node> {
            if disk < 3 {
                return node;
            }
            let fails = Faulty::new(node, 0).with(call, Fault::Refuse, Trigger::From(first));
            Arc::new(fails.with(NodeCall::Stat, Fault::Refuse, Trigger::From(1)))
        };
        let volume = disks.open_with("4+2", &wrap);
        let verdict = volume.verify(&name("object"), is_deep).await.unwrap();
        assert_eq!(verdict.state, State::Unknown, "{verdict:?}");
    }
}

#[tokio::test]
async fn a_drained_disk_is_emptied_of_shards() {
    let disks = Disks::new(7);
    let volume = disks.volume("4+2").await;
    let large = content(100_000);
    for object in 0..10 {
        put(&volume, &format!("large/{object}"), &large).await;
        put(&volume, &format!("small/{object}"), b"small").await;
    }
    let parts = |disk: usize| {
        let files = disks.files_on(disk).into_keys();
        files.filter(|path| path.to_string_lossy().contains("/objects/")).count()
    };
    assert!(parts(3) > 0);
    let all: usize = (0..7).map(parts).sum();
    let volume = disks.open_drained("4+2", 3);
    for object in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
        let repaired = volume.repair(&object, false).await.unwrap();
        assert!(!repaired.is_owed, "{:?}", repaired.flaws);
    }
    assert_eq!((parts(3), (0..7).map(parts).sum::<usize>()), (0, all));
    assert_eq!(volume.shards_on("disk3").await.unwrap(), 0);
    // Without it, any two of the others may be lost: the small objects are on three of them.
    for (one, other) in [(0, 1), (0, 2), (1, 2), (4, 5), (4, 6), (5, 6), (0, 4), (1, 5), (2, 6)] {
        let hidden = disks.hide(&[one, other]);
        let volume = disks.open_without("4+2", 3);
        for object in 0..10 {
            assert_eq!(get(&volume, &format!("small/{object}")).await.unwrap(), b"small");
        }
        hidden.show();
    }
    for object in 0..10 {
        let object = format!("large/{object}");
        let (mut bytes, options) = (Vec::new(), GetOptions::default());
        let found = volume.get(&name(&object), None, &mut bytes, options, &|_| {}).await.unwrap();
        assert!(bytes == large);
        assert!(found.flaws().is_empty(), "a moved shard is found: {:?}", found.flaws());
        assert_eq!(volume.verify(&name(&object), true).await.unwrap().spare, 2);
    }
}

/// A second's bytes go at once; all others have to wait.
#[tokio::test]
async fn what_is_done_in_the_background_spares_the_nodes() {
    let disks = Disks::new(3);
    let bytes = content(300_000);
    put(&disks.volume("2+1").await, "object", &bytes).await;
    std::fs::remove_dir_all(disks.path(1).join("objects")).unwrap();
    let rate: paritas_volume::Rate = "100kB".parse().unwrap();
    let volume = disks.open("2+1").in_background(Some(rate));
    let start = std::time::Instant::now();
    // From each of two disks come, and to the third go, 150,000 bytes and some headers.
    assert_eq!(volume.repair(&name("object"), false).await.unwrap().stored, 1);
    assert!(start.elapsed().as_millis() >= 400, "{:?}", start.elapsed());
    for text in ["0", "-1", "fast", ""] {
        assert!(text.parse::<paritas_volume::Rate>().is_err(), "{text}");
    }
    assert_eq!("none".parse(), Ok(paritas_volume::Rate(None)));
}

#[tokio::test]
async fn progress_moves_by_bytes() {
    let disks = Disks::new(6);
    let spec = "bbdpg:k=4,m=1,m2=2,base=cauchy";
    let bytes = content(3_000_000);
    put(&disks.volume(spec).await, "object", &bytes).await;
    let mut volume = disks.open(spec);
    let told: Arc<std::sync::Mutex<Vec<u64>>> = Default::default();
    let line = Arc::clone(&told);
    volume.watch(move |of, bytes| {
        assert_eq!(*of, name("object"));
        line.lock().unwrap().push(bytes);
    });
    let steps = || {
        let steps = std::mem::take(&mut *told.lock().unwrap());
        (steps.len(), steps.iter().sum::<u64>())
    };
    // Five of six parts are there, and each counts a sixth of the object. Steps are a mebibyte
    // long.
    volume.verify(&name("object"), true).await.unwrap();
    let (count, sum) = steps();
    assert!(count == 5 && sum == 2_500_000, "{count}: {sum}");
    volume.promote(&name("object")).await.unwrap();
    let (count, sum) = steps();
    assert!(count >= 10 && sum == 3_000_000, "{count}: {sum}");
    let first = node_of(&volume, 0).await;
    std::fs::remove_dir_all(disks.path(first).join("objects")).unwrap();
    volume.repair(&name("object"), false).await.unwrap();
    let (count, sum) = steps();
    assert!(count >= 10 && sum == 3_000_000, "{count}: {sum}");
}

/// Returns the number of the disk that has a part of the object.
async fn node_of(volume: &Volume, part: usize) -> usize {
    let object = volume.find(&name("object"), GetOptions::default()).await.unwrap();
    object.nodes()[part].as_ref().unwrap()["disk".len()..].parse().unwrap()
}

#[tokio::test]
async fn an_object_that_lost_all_later_parity_waits_for_promotion_again() {
    let disks = Disks::new(6);
    let volume = disks.volume("bbdpg:k=4,m=1,m2=2,base=cauchy").await;
    put(&volume, "object", &content(300_000)).await;
    volume.promote(&name("object")).await.unwrap();
    assert!(volume.backlog("").await.is_empty());
    let last = node_of(&volume, 5).await;
    std::fs::remove_dir_all(disks.path(last).join("objects")).unwrap();
    volume.repair(&name("object"), false).await.unwrap();
    assert_eq!(volume.backlog("").await, [name("object")]);
    volume.promote(&name("object")).await.unwrap();
    assert_eq!(volume.verify(&name("object"), true).await.unwrap().stage, 2);
    assert!(volume.backlog("").await.is_empty());
}

#[tokio::test]
async fn nothing_is_written_where_the_mark_is_missing() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    put(&volume, "object", &content(50_000)).await;
    std::fs::remove_dir_all(disks.path(1)).unwrap();
    std::fs::create_dir(disks.path(1)).unwrap();
    let volume = disks.open("4+2");
    let report = put(&volume, "other", &content(50_000)).await;
    assert!(report.is_owed);
    for _ in 0..2 {
        assert!(volume.repair(&name("object"), true).await.unwrap().is_owed);
    }
    let owed = volume.owed("").await;
    assert_eq!(owed.into_iter().collect::<BTreeSet<_>>(), [name("object"), name("other")].into());
    assert_eq!(disks.files_on(1).len(), 0);
    // What belongs there is on other disks meanwhile.
    let verdict = volume.verify(&name("object"), true).await.unwrap();
    assert_eq!((verdict.state, verdict.missing.len()), (State::Repairable, 0), "{verdict:?}");
}

/// A disk is unmounted while the volume is in use, so that its place is an empty folder.
#[tokio::test]
async fn a_disk_that_is_unmounted_later_counts_as_none() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "before", &content(10_000)).await;
    let hidden = disks.hide(&[0]);
    std::fs::create_dir(disks.path(0)).unwrap();
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert!(put(&volume, "after", &content(20_000)).await.is_owed);
    assert!(disks.files_on(0).is_empty());
    assert!(get(&volume, "before").await.unwrap() == content(10_000));
    assert!(volume.status().await.unwrap().nodes[0].problem.is_some());
    std::fs::remove_dir(disks.path(0)).unwrap();
    hidden.show();
    assert!(get(&volume, "after").await.unwrap() == content(20_000));
    assert!(!volume.repair(&name("after"), false).await.unwrap().is_owed);
}

#[tokio::test]
async fn an_object_that_is_replaced_while_it_is_read_is_not_called_lost() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    put(&volume, "object", &content(3_000_000)).await;
    let found = volume.find(&name("object"), GetOptions::default()).await.unwrap();
    put(&volume, "object", &content(2_000_000)).await;
    let error = volume.read(found, None, &mut Vec::new(), &|_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");

    // Shards that were moved meanwhile are found again, in the middle of the object, too.
    let found = volume.find(&name("object"), GetOptions::default()).await.unwrap();
    let mut moved = disks.files("objects");
    moved.sort();
    let parts: Vec<Vec<u8>> = moved.iter().map(|path| std::fs::read(path).unwrap()).collect();
    for (at, path) in moved.iter().enumerate() {
        let other = &moved[(at + 1) % moved.len()];
        let file = other.with_file_name(path.file_name().unwrap());
        std::fs::remove_file(path).unwrap();
        std::fs::write(file, &parts[at]).unwrap();
    }
    let mut bytes = Vec::new();
    volume.read(found, None, &mut bytes, &|_| {}).await.unwrap();
    assert!(bytes == content(2_000_000));
}

#[tokio::test]
async fn damage_is_found_by_deep_verification_and_repaired() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(1_000_000);
    put(&volume, "object", &bytes).await;
    let shard =
        disks.files("objects").into_iter().find(|path| path.to_string_lossy().contains("2of6"));
    let shard = shard.unwrap();
    let mut content = std::fs::read(&shard).unwrap();
    content[100_000] ^= 4;
    std::fs::write(&shard, &content).unwrap();
    assert!(get(&volume, "object").await.unwrap() == bytes);
    assert_eq!(volume.verify(&name("object"), false).await.unwrap().state, State::Intact);
    let verdict = volume.verify(&name("object"), true).await.unwrap();
    assert_eq!((verdict.state, &verdict.missing[..]), (State::Repairable, &[2][..]));
    assert_eq!(verdict.flaws[0].shard, Some(2));
    let repaired = volume.repair(&name("object"), true).await.unwrap();
    assert_eq!((repaired.stored, repaired.is_owed), (1, false), "{:?}", repaired.flaws);
    content[100_000] ^= 4;
    assert!(std::fs::read(&shard).unwrap() == content);
}

/// A shard may be on two nodes after a repair that was interrupted. Where one copy is damaged, the
/// other serves.
#[tokio::test]
async fn another_copy_of_a_damaged_shard_is_read() {
    let disks = Disks::new(4);
    disks.volume("2+1").await;
    let volume = disks.open_drained("2+1", 3);
    put(&volume, "object", &content(100_000)).await;
    let shards = disks.files("objects");
    let copy = disks.path(3).join(shards[0].strip_prefix(disks.path(0)).unwrap());
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(&shards[0], &copy).unwrap();
    shards[..2].iter().for_each(|path| damage(path));
    assert!(get(&volume, "object").await.unwrap() == content(100_000));
}

#[tokio::test]
async fn damaged_manifests_are_found_by_deep_verification_and_repaired() {
    for length in [100, 100_000] {
        let disks = Disks::new(6);
        let volume = disks.volume("4+2").await;
        put(&volume, "object", &content(length)).await;
        let manifests = disks.files("manifests");
        let whole = std::fs::read(&manifests[0]).unwrap();
        for damaged in [0, manifests.len() - 1] {
            damage(&manifests[damaged]);
            assert!(get(&volume, "object").await.unwrap() == content(length));
            let verdict = volume.verify(&name("object"), true).await.unwrap();
            assert_eq!((verdict.state, verdict.flaws.len()), (State::Repairable, 1));
            assert_eq!(verdict.spare, if length == 100 { 1 } else { 2 });
            assert!(!volume.repair(&name("object"), true).await.unwrap().is_owed);
            assert!(std::fs::read(&manifests[damaged]).unwrap() == whole);
            let verdict = volume.verify(&name("object"), true).await.unwrap();
            assert_eq!(verdict.state, State::Intact, "{verdict:?}");
        }
    }
}

#[tokio::test]
async fn an_object_whose_manifests_are_all_damaged_is_lost_if_all_nodes_answer() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "object", &content(100_000)).await;
    disks.files("manifests").iter().for_each(|path| damage(path));
    let error = volume.verify(&name("object"), false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
    assert!(error.to_string().contains("objects/"), "{error}");
    let _hidden = disks.hide(&[2]);
    let error = disks.open("2+1").verify(&name("object"), false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
}

#[tokio::test]
async fn a_damaged_manifest_is_read_from_nodes_that_are_slow() {
    let disks = Disks::new(6);
    put(&disks.volume("4+2").await, "object", &content(100)).await;
    let manifests = disks.files("manifests");
    damage(&manifests[0]);
    // A survey does not wait for the two nodes that have it, too.
    let wrap = |disk: usize, node: Arc<dyn Node>| -> Arc<dyn Node> {
        match manifests[1..].iter().any(|path| path.starts_with(disks.path(disk))) {
            true => slow(node, Duration::from_millis(200)),
            false => node,
        }
    };
    let volume = disks.open_with("4+2", &wrap);
    assert!(get(&volume, "object").await.unwrap() == content(100));
}

#[tokio::test]
async fn delayed_parity_is_added_later() {
    let disks = Disks::new(12);
    let spec = "bbdpg:k=8,m=2,m2=4,base=cauchy";
    let volume = disks.volume(spec).await;
    let bytes = content(2_000_000);
    put(&volume, "object", &bytes).await;
    assert_eq!(volume.status().await.unwrap().backlog.objects, 1);
    let verdict = volume.verify(&name("object"), true).await.unwrap();
    assert_eq!((verdict.state, verdict.stage, verdict.spare), (State::Intact, 1, 2), "{verdict:?}");
    let promoted = volume.promote(&name("object")).await.unwrap();
    assert!(!promoted.is_owed);
    // (m2 - m)(k + m) packets of a group instead of k m2.
    let group = promoted.read_bytes as f64 / bytes.len() as f64 * 8.0;
    println!("read {group} of 8 shards");
    let verdict = volume.verify(&name("object"), true).await.unwrap();
    assert_eq!((verdict.state, verdict.stage, verdict.spare), (State::Intact, 2, 4), "{verdict:?}");
    assert_eq!(volume.status().await.unwrap().backlog.objects, 0);
    for disk in [0, 3, 7, 9] {
        let _ = std::fs::remove_dir_all(disks.path(disk).join("objects"));
    }
    assert!(get(&volume, "object").await.unwrap() == bytes);
}

/// If parts of the first stage are lost, parts of the second are read at once, not after the object
/// was read in vain.
#[tokio::test]
async fn parts_of_a_later_stage_are_read_where_others_are_lost() {
    let disks = Disks::new(8);
    let volume = disks.volume("bbdpg:k=5,m=2,m2=3").await;
    let bytes = content(2_000_000);
    put(&volume, "object", &bytes).await;
    volume.promote(&name("object")).await.unwrap();
    let is_lost = |path: &PathBuf| {
        let path = path.to_string_lossy();
        (0..3).any(|shard| path.contains(&format!(".{shard}of8.")))
    };
    disks.files("objects").iter().filter(|path| is_lost(path)).for_each(|path| {
        std::fs::remove_file(path).unwrap();
    });
    let (volume, counters) = disks.open_counted(&volume.code().spec().to_string());
    assert!(get(&volume, "object").await.unwrap() == bytes);
    let read = counters.bytes_read();
    assert!(read < 2_100_000, "{read} bytes");
}

/// The damage that made the read look on all nodes is told, and what was read in vain counts.
#[tokio::test]
async fn a_read_that_was_saved_by_a_copy_tells_why() {
    let disks = Disks::new(4);
    let volume = disks.volume("2+1").await;
    let bytes = content(200_000);
    put(&volume, "object", &bytes).await;
    let files = disks.files("objects");
    let [damaged, gone, _] = &files[..] else { panic!("{files:?}") };
    let disk = (0..4).find(|&disk| !files.iter().any(|file| file.starts_with(disks.path(disk))));
    let of = (0..4).find(|&disk| damaged.starts_with(disks.path(disk))).unwrap();
    let copy = disks.path(disk.unwrap()).join(damaged.strip_prefix(disks.path(of)).unwrap());
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    std::fs::copy(damaged, copy).unwrap();
    damage(damaged);
    std::fs::remove_file(gone).unwrap();
    let (mut read, none) = (Vec::new(), GetOptions::default());
    let found = volume.get(&name("object"), None, &mut read, none, &|_| {}).await.unwrap();
    assert!(read == bytes);
    let flaws: Vec<String> = found.flaws().iter().map(ToString::to_string).collect();
    let node = format!("disk{of}: shard ");
    assert!(flaws.iter().any(|flaw| flaw.starts_with(&node)), "{flaws:?}");
    assert!(found.read_bytes() > 250_000, "{} bytes", found.read_bytes());
}

#[tokio::test]
async fn a_damaged_part_of_a_later_stage_is_made_anew() {
    let disks = Disks::new(6);
    let volume = disks.volume("bbdpg:k=4,m=1,m2=2,base=cauchy").await;
    let bytes = content(100_000);
    put(&volume, "object", &bytes).await;
    volume.promote(&name("object")).await.unwrap();
    let late =
        disks.files("objects").into_iter().find(|path| path.to_string_lossy().contains(".5of6"));
    let late = late.unwrap();
    let whole = std::fs::read(&late).unwrap();
    std::fs::write(&late, &whole[..whole.len() - 500]).unwrap();
    let early =
        disks.files("objects").into_iter().find(|path| path.to_string_lossy().contains(".0of6"));
    std::fs::remove_file(early.unwrap()).unwrap();
    let verdict = volume.verify(&name("object"), false).await.unwrap();
    assert_eq!((verdict.state, verdict.stage, verdict.spare), (State::Repairable, 2, 0));
    let repaired = volume.repair(&name("object"), false).await.unwrap();
    assert_eq!((repaired.stored, repaired.flaws.len()), (2, 1), "{:?}", repaired.flaws);
    assert!(std::fs::read(&late).unwrap() == whole);
    assert_eq!(volume.verify(&name("object"), true).await.unwrap().state, State::Intact);
}

#[tokio::test]
async fn only_old_orphans_are_collected_and_only_if_all_nodes_answer() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "kept", &content(50_000)).await;
    put(&volume, "orphan", &content(50_000)).await;
    let old = std::time::SystemTime::now() - Duration::from_secs(25 * 3600);
    for path in disks.files("objects") {
        std::fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    assert_eq!(volume.collect().await.unwrap(), 0);
    let manifests = disks.files("manifests").into_iter();
    for path in manifests.filter(|path| path.to_string_lossy().contains("orphan")) {
        std::fs::remove_file(path).unwrap();
    }
    let hidden = disks.hide(&[1]);
    assert_eq!(disks.open("2+1").collect().await.unwrap(), 0);
    hidden.show();
    assert_eq!(volume.collect().await.unwrap(), 1);
    assert_eq!(disks.files("objects").len(), 3);
    assert!(get(&volume, "kept").await.unwrap() == content(50_000));
}

#[tokio::test]
async fn lt_objects_survive_lost_disks() {
    let disks = Disks::new(8);
    let volume = disks.volume("lt:k=64,n=128,nodes=8,seed=3").await;
    let bytes = content(1_000_000);
    put(&volume, "object", &bytes).await;
    for disk in [2, 5] {
        let _ = std::fs::remove_dir_all(disks.path(disk).join("objects"));
    }
    assert!(get(&volume, "object").await.unwrap() == bytes);
    let repaired = volume.repair(&name("object"), false).await.unwrap();
    assert_eq!((repaired.stored, repaired.is_owed), (2, false));
    assert_eq!(volume.verify(&name("object"), true).await.unwrap().state, State::Intact);
}

#[tokio::test]
async fn node_folders_are_shard_folders() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(100_000);
    put(&volume, "photos/one", &bytes).await;
    let shards = disks.files("objects");
    let inventory = paritas_shards::scan(&shards);
    assert_eq!((inventory.objects.len(), inventory.ignored.len()), (1, 0));
    let report = paritas_shards::verify(&inventory.objects[0], None, &|_| {}).unwrap();
    assert_eq!(report.status, State::Intact);
    assert_eq!(inventory.objects[0].name(), "one");
}

#[tokio::test]
async fn what_an_interrupted_put_leaves_is_invisible() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    struct Broken(usize);
    impl std::io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::Error::other("the cable was pulled"));
            }
            let bytes = buffer.len().min(self.0);
            self.0 -= bytes;
            buffer[..bytes].fill(7);
            Ok(bytes)
        }
    }
    let error =
        volume.put(&name("object"), Broken(500_000), PutOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("the cable was pulled"), "{error}");
    assert_eq!(disks.files("").len(), 6, "{:?}", disks.files(""));
    assert_eq!(get(&volume, "object").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(volume.collect().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_heartbeat_of_a_long_put_ends_with_it() {
    /// A source of the bytes that come by a channel. It ends when the channel is closed.
    struct Slow(std::sync::mpsc::Receiver<u8>);
    impl std::io::Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let Ok(byte) = self.0.recv() else { return Ok(0) };
            buffer[0] = byte;
            Ok(1)
        }
    }
    let disks = Disks::new(3);
    let volume = Arc::new(disks.volume("2+1").await);
    let until_there = async |folder: &str, count: usize| {
        while disks.files(folder).len() < count {
            tokio::task::yield_now().await;
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let (line, source) = std::sync::mpsc::channel();
    let putting = Arc::clone(&volume);
    let putting = tokio::spawn(async move {
        putting.put(&name("object"), Slow(source), PutOptions::default()).await
    });
    content(9000).into_iter().for_each(|byte| line.send(byte).unwrap());
    until_there(".paritas-new", 1).await;
    tokio::time::advance(Duration::from_secs(3601)).await;
    until_there("running", 3).await;
    drop(line);
    putting.await.unwrap().unwrap();
    assert_eq!(disks.files("running"), Vec::<PathBuf>::new());
    assert!(get(&volume, "object").await.unwrap() == content(9000));
}

/// Readers are sure only if enough nodes answer, so each node that fails is one less that may be
/// lost, wherever the shards are. A node that is far away is not lost.
#[tokio::test]
async fn nodes_that_fail_count_as_lost() {
    let disks = Disks::new(6);
    disks.volume("4+2").await;
    let put = async |volume: Volume| {
        let bytes = std::io::Cursor::new(content(100_000));
        let put = volume.put(&name("object"), bytes, PutOptions::default()).await.unwrap();
        (put.is_owed, put.spare)
    };
    let far = |disk: usize, node| match disk {
        0 | 1 => slow(node, Duration::from_millis(60)),
        _ => node,
    };
    assert_eq!(put(disks.open_with("4+2", &far)).await, (false, 2));
    let hidden = disks.hide(&[0, 1]);
    assert_eq!(put(disks.open("4+2")).await, (true, 0));
    hidden.show();
}

/// Two shards of an object are on one node after a put without another one, so this node and one
/// more lose it, though any two shards may be lost.
#[tokio::test]
async fn what_may_be_lost_counts_nodes() {
    let disks = Disks::new(4);
    let volume = disks.volume("2+2").await;
    let hidden = disks.hide(&[0]);
    let bytes = std::io::Cursor::new(content(100_000));
    let report = volume.put(&name("doubled"), bytes, PutOptions::default()).await.unwrap();
    assert_eq!((report.is_owed, report.spare), (true, 1), "{report:?}");
    hidden.show();
    let volume = disks.open("2+2");
    let verdict = volume.verify(&name("doubled"), false).await.unwrap();
    assert_eq!((verdict.state, verdict.spare), (State::Repairable, 1), "{verdict:?}");
    put(&volume, "whole", &content(100_000)).await;
    let urgent = volume.most_urgent_first(&volume.overview("").await.unwrap()).await;
    assert_eq!(urgent, [name("doubled"), name("whole")]);
    volume.repair(&name("doubled"), false).await.unwrap();
    assert_eq!(volume.verify(&name("doubled"), false).await.unwrap().spare, 2);

    for (count, code, length, spare) in [
        (5, "10+4", 100_000, 1),
        (4, "4+4", 100_000, 2),
        (4, "2+2", 100, 2),
        (4, "lt:k=64,n=128,nodes=8", 100_000, 1),
    ] {
        let disks = Disks::new(count);
        let volume = disks.volume(code).await;
        put(&volume, "object", &content(length)).await;
        let verdict = volume.verify(&name("object"), false).await.unwrap();
        assert_eq!((verdict.state, verdict.spare), (State::Intact, spare), "{code}, {length}");
        // A node that does not answer may not be lost a second time.
        let _hidden = disks.hide(&[count - 1]);
        let volume = disks.open(code);
        let verdict = volume.verify(&name("object"), false).await.unwrap();
        assert_eq!(verdict.spare, spare - 1, "{code}, {length}");
    }
}

#[tokio::test]
async fn a_put_that_too_few_nodes_could_take_writes_nothing() {
    let disks = Disks::new(4);
    let volume = disks.volume("2+2").await;
    put(&volume, "old", b"old").await;
    let hidden = disks.hide(&[0, 1]);
    let volume = disks.open("2+2");
    for length in [100, 100_000] {
        let bytes = std::io::Cursor::new(content(length));
        let error = volume.put(&name("new"), bytes, PutOptions::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooFewNodes);
        let message = error.to_string();
        assert!(message.contains("new is not written: 2 of 4 nodes answered, 3 must"), "{message}");
    }
    let message = volume.remove(&name("old")).await.unwrap_err().to_string();
    assert!(message.contains("old is not removed: 2 of 4 nodes answered, 3 must. "), "{message}");
    hidden.show();
    let volume = disks.open("2+2");
    let names: Vec<_> = volume.list("").await.unwrap().objects.into_keys().collect();
    assert_eq!(names, [name("old")]);
}

#[cfg(unix)]
#[tokio::test]
async fn files_on_folders_are_their_owner_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "small", b"small").await;
    put(&volume, "large", &content(100_000)).await;
    for file in [disks.files("objects"), disks.files("manifests")].concat() {
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700), "{file:?}");
    }
}

/// Objects in manifests have no parts, and nothing waits for their later stages.
#[tokio::test(flavor = "multi_thread")]
async fn removing_a_small_object_takes_few_requests() {
    let disks = Disks::new(3);
    let (volume, counters) = disks.open_counted("2+1");
    volume.mark_nodes().await.unwrap();
    for (length, lists, deletions) in [(2_000, 3, 3 * 2 + 2), (100_000, 6, 3 * (5 + 1 + 1 + 1))] {
        put(&volume, "a", &content(length)).await;
        counters.take();
        volume.remove(&name("a")).await.unwrap();
        let made = [NodeCall::List, NodeCall::Delete].map(|call| counters.of(call).calls);
        assert_eq!(made, [lists, deletions], "{length} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_folders_take_one_request_of_each_node() {
    let disks = Disks::new(3);
    let (volume, counters) = disks.open_counted("2+1");
    volume.mark_nodes().await.unwrap();
    for object in ["a/1", "a/2/3", "b", "Ä d/x"] {
        put(&volume, object, &content(2_000)).await;
    }
    volume.begin_upload(&name("e/f"), Notes::new()).await.unwrap();
    counters.take();
    let folders: Vec<String> = volume.first_folders().await.unwrap().into_iter().collect();
    assert_eq!(folders, ["a", "Ä d"]);
    assert_eq!(counters.of(NodeCall::List).calls, 3);
}
