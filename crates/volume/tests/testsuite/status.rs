//! What is known of a volume at a glance: which objects are lost, and whether there are any.

use std::path::PathBuf;

use paritas_volume::Volume;
use paritas_volume::node::{Counters, NodeCall};

use crate::common::{Disks, content, damage, name, put};

#[tokio::test]
async fn the_status_shows_what_a_repair_could_not_make_whole() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    for object in ["lost", "other"] {
        put(&volume, object, &content(300_000)).await;
    }
    let is_part = |path: &PathBuf| path.to_string_lossy().contains("/lost.");
    let parts: Vec<PathBuf> = disks.files("objects").into_iter().filter(is_part).collect();
    let away: Vec<Vec<u8>> = parts[..3].iter().map(|path| std::fs::read(path).unwrap()).collect();
    // One is gone, and two are damaged, which only a deep look sees.
    std::fs::remove_file(&parts[0]).unwrap();
    parts[1..3].iter().for_each(|path| damage(path));
    for object in ["lost", "other"] {
        let _ = volume.repair(&name(object), true).await;
    }
    assert_eq!(volume.status().await.unwrap().lost.objects, 1);
    assert_eq!(volume.lost("").await, [name("lost")]);
    // A quick repair cannot tell that it is whole again.
    let _ = volume.repair(&name("lost"), false).await;
    assert_eq!(volume.status().await.unwrap().lost.objects, 1);
    parts.iter().zip(&away).for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    volume.repair(&name("lost"), true).await.unwrap();
    assert_eq!(volume.status().await.unwrap().lost.objects, 0);
    // It goes with its object, too.
    parts[..3].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    volume.repair(&name("lost"), true).await.unwrap_err();
    assert_eq!(volume.status().await.unwrap().lost.objects, 1);
    put(&volume, "lost", &content(10)).await;
    assert_eq!(volume.status().await.unwrap().lost.objects, 0);
    assert_eq!(disks.files("lost").len(), 0);
}

/// Hints about objects that were replaced or removed since go with the next repair of everything.
#[tokio::test]
async fn hints_about_former_objects_go() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    // A removal could not delete everything on a disk that was away; the name has an object anew.
    put(&volume, "owed", &content(10_000)).await;
    let hidden = disks.hide(&[0]);
    disks.open("2+1").remove(&name("owed")).await.unwrap();
    hidden.show();
    let volume = disks.open("2+1");
    put(&volume, "owed", &content(10_000)).await;
    volume.repair(&name("owed"), false).await.unwrap();
    assert!(volume.status().await.unwrap().owed.objects > 0, "the hint is about the removal");
    // An object that could not be repaired was removed.
    put(&volume, "lost", b"small").await;
    let of_it = |path: &PathBuf| path.to_string_lossy().contains("/lost@/");
    disks.files("manifests").iter().filter(|path| of_it(path)).for_each(|path| damage(path));
    volume.repair(&name("lost"), false).await.unwrap_err();
    volume.remove(&name("lost")).await.unwrap();
    volume.repair(&name("lost"), true).await.unwrap();
    assert_eq!(volume.status().await.unwrap().lost.objects, 1);
    // One that waits still keeps its hint.
    put(&volume, "waits", &content(10_000)).await;
    let of_it = |path: &PathBuf| path.to_string_lossy().contains("/waits.");
    let parts: Vec<PathBuf> = disks.files("objects").into_iter().filter(of_it).collect();
    parts[..2].iter().for_each(|path| std::fs::remove_file(path).unwrap());
    volume.repair(&name("waits"), false).await.unwrap_err();
    volume.collect().await.unwrap();
    let status = volume.status().await.unwrap();
    assert_eq!((status.owed.objects, status.lost.objects), (0, 1));
    assert_eq!(volume.lost("").await, [name("waits")]);
}

#[tokio::test]
async fn whether_there_is_any_object_is_told_without_a_listing_of_all() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let has_any = async |prefix, except| volume.any(prefix, except).await.unwrap().is_some();
    assert!(!has_any("a/", None).await);
    // More removed names than are looked for before all are listed.
    for object in 0..12 {
        put(&volume, &format!("a/{object}"), b"x").await;
        volume.remove(&name(&format!("a/{object}"))).await.unwrap();
    }
    assert!(!has_any("a/", None).await);
    let last = name("a/zz");
    put(&volume, last.as_str(), b"x").await;
    assert!(has_any("a/", None).await);
    assert!(!has_any("a/", Some(&last)).await);
    assert!(!has_any("b", None).await && has_any("a/z", None).await);
}

/// Asks for the status, and returns the number of objects that wait for promotion and of reads.
async fn backlog_and_reads(volume: &Volume, counters: &Counters) -> (usize, u64) {
    let before = counters.of(NodeCall::Read).calls;
    let backlog = volume.status().await.unwrap().backlog.objects;
    (backlog, counters.of(NodeCall::Read).calls - before)
}

#[tokio::test]
async fn a_long_backlog_takes_as_many_reads_as_a_short_one() {
    let disks = Disks::new(5);
    let (volume, counters) = disks.open_counted("bbdpg:k=2,m=1,m2=2,base=cauchy");
    volume.mark_nodes().await.unwrap();
    put(&volume, "object", &content(100_000)).await;
    volume.status().await.unwrap();
    let (backlog, reads) = backlog_and_reads(&volume, &counters).await;
    assert_eq!(backlog, 1);
    for object in 0..20 {
        put(&volume, &format!("more/{object}"), &content(100_000)).await;
    }
    assert_eq!(backlog_and_reads(&volume, &counters).await, (21, reads));
    assert_eq!(volume.backlog("more/").await.len(), 20);
}
