//! Repairs: of objects whose homes have changed, because a node was added or drained, and of parts
//! that are damaged or out of reach.

use crate::common::{Disks, content, damage, get, name, put};
use paritas_volume::{ErrorKind, State, Volume};

/// Repairs everything, and returns what could not be repaired.
async fn repaired(volume: Volume) -> Vec<String> {
    let mut failures = Vec::new();
    for object in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
        failures.extend(volume.repair(&object, false).await.err().map(|error| error.to_string()));
    }
    failures
}

/// Where a part is rotten, a repair reads its other copy.
#[tokio::test]
async fn a_repair_reads_another_copy_of_a_rotten_part() {
    for is_gone in [false, true] {
        let disks = Disks::new(4);
        let volume = disks.volume("2+1").await;
        let bytes = content(300_000);
        put(&volume, "object", &bytes).await;
        let part = |end: &str| {
            let mut parts = disks.files("objects").into_iter();
            parts.find(|path| path.to_str().unwrap().ends_with(end)).unwrap()
        };
        let (home, lost) = (part(".1of3.paritas"), part(".2of3.paritas"));
        let has_none = |disk: &usize| {
            disks.files_on(*disk).keys().all(|it| !it.to_str().unwrap().contains("objects"))
        };
        let spare = (0..4).find(has_none).unwrap();
        let disk = (0..4).find(|&disk| home.starts_with(disks.path(disk))).unwrap();
        let copy = disks.path(spare).join(home.strip_prefix(disks.path(disk)).unwrap());
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(&home, &copy).unwrap();
        match is_gone {
            true => std::fs::write(&home, b"").unwrap(),
            false => damage(&home),
        }
        std::fs::remove_file(&lost).unwrap();
        volume.repair(&name("object"), false).await.unwrap();
        assert!(lost.exists() && get(&volume, "object").await.unwrap() == bytes);
    }
}

/// Two shards are damaged, each in another block or in its header: no two are whole, and every
/// block can be had.
#[tokio::test]
async fn scattered_damage_is_repaired_block_by_block() {
    for places in [[5_000, -5_000], [20, 20], [-20, 5_000]] {
        let disks = Disks::new(4);
        let volume = disks.volume("2+1").await;
        let bytes = content(1_600_000);
        put(&volume, "object", &bytes).await;
        for (end, place) in [".1of3.paritas", ".2of3.paritas"].into_iter().zip(places) {
            let mut parts = disks.files("objects").into_iter();
            let part = parts.find(|path| path.to_str().unwrap().ends_with(end)).unwrap();
            let mut shard = std::fs::read(&part).unwrap();
            let at = if place < 0 { shard.len() as i64 + place } else { place };
            shard[at as usize] ^= 1;
            std::fs::write(&part, shard).unwrap();
        }
        assert_eq!(volume.verify(&name("object"), true).await.unwrap().state, State::Repairable);
        let repaired = volume.repair(&name("object"), true).await.unwrap();
        assert_eq!((repaired.stored, repaired.is_owed), (2, false), "{places:?}");
        assert_eq!(volume.verify(&name("object"), true).await.unwrap().state, State::Intact);
        assert!(get(&volume, "object").await.unwrap() == bytes);
    }
}

/// A shard that is missing may be on the node that does not answer.
#[tokio::test]
async fn a_silent_node_makes_no_object_lost() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "object", &content(90_000)).await;
    let shard = disks.files("objects").into_iter().next().unwrap();
    std::fs::remove_file(&shard).unwrap();
    let silent = (0..3).find(|&disk| !shard.starts_with(disks.path(disk))).unwrap();
    let away = disks.path(silent).with_extension("away");
    std::fs::rename(disks.path(silent), &away).unwrap();
    for is_deep in [false, true] {
        let error = volume.repair(&name("object"), is_deep).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooFewNodes, "{error}");
    }
    std::fs::rename(&away, disks.path(silent)).unwrap();
    assert_eq!(volume.repair(&name("object"), false).await.unwrap().stored, 1);
    assert_eq!(volume.status().await.unwrap().lost.objects, 0);
}

/// Damaged blocks of some shards and whole ones of others may suffice, whether all nodes answer or
/// not.
#[tokio::test]
async fn blocks_at_hand_may_suffice_without_a_silent_node() {
    let disks = Disks::new(4);
    let volume = disks.volume("2+2").await;
    let bytes = content(1_600_000);
    put(&volume, "object", &bytes).await;
    let parts: Vec<_> = disks.files("objects").into_iter().collect();
    for (part, place) in parts.iter().zip([5_000, 400_000, 600_000]) {
        let mut shard = std::fs::read(part).unwrap();
        shard[place] ^= 1;
        std::fs::write(part, shard).unwrap();
    }
    let silent = (0..4).find(|&disk| parts[3].starts_with(disks.path(disk))).unwrap();
    std::fs::rename(disks.path(silent), disks.path(silent).with_extension("away")).unwrap();
    let state = async || volume.verify(&name("object"), true).await.unwrap().state;
    assert_eq!(state().await, State::Repairable);
    for part in &parts[..2] {
        std::fs::remove_file(part).unwrap();
    }
    assert_eq!(state().await, State::Unknown);
}

/// A crash of a machine can leave the mark of a node without content.
#[tokio::test]
async fn a_node_with_a_blank_mark_is_replaced_in_place() {
    let disks = Disks::new(4);
    let volume = disks.volume("2+1").await;
    let bytes = content(90_000);
    put(&volume, "object", &bytes).await;
    for blank in ["", "\0\0\0\0"] {
        std::fs::write(disks.path(1).join("ready"), blank).unwrap();
        let volume = disks.open("2+1");
        let status = volume.status().await.unwrap();
        let problem = status.nodes[1].problem.as_deref().unwrap();
        assert!(problem.contains("its file `ready` is damaged"), "{problem}");
        assert_eq!((status.unreadable(), status.useless()), (1, 1));
        volume.fill("disk1").await.unwrap();
        assert_eq!(disks.open("2+1").status().await.unwrap().useless(), 0);
    }
    assert!(get(&volume, "object").await.unwrap() == bytes);
    assert_eq!(volume.verify(&name("object"), true).await.unwrap().state, State::Intact);
}

/// What one repair has moved from where the other one has found it is not lost.
#[tokio::test(flavor = "multi_thread")]
async fn two_repairs_at_once_lose_nothing() {
    const OBJECTS: usize = 40;
    let disks = Disks::new(7);
    let volume = disks.volume("4+2").await;
    for object in 0..OBJECTS {
        put(&volume, &object.to_string(), &content(20_000 + object)).await;
    }
    for drained in [3, 5] {
        let repairs = [(); 2].map(|()| tokio::spawn(repaired(disks.open_drained("4+2", drained))));
        for repair in repairs {
            assert_eq!(repair.await.unwrap(), [""; 0]);
        }
        let volume = disks.open_drained("4+2", drained);
        assert_eq!(volume.status().await.unwrap().lost.objects, 0);
        for object in 0..OBJECTS {
            let (bytes, object) = (content(20_000 + object), object.to_string());
            assert!(get(&volume, &object).await.unwrap() == bytes);
            assert_eq!(volume.verify(&name(&object), true).await.unwrap().spare, 2);
        }
    }
}
