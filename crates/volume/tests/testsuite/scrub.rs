//! The scrub of a volume: it reads everything, and goes on where it was interrupted.

use std::time::Duration;

use crate::common::{Disks, content, name, put};
use paritas_volume::{ErrorKind, PutOptions, Scrub, Upkeep, Volume, keep};
use serde_json::json;

const OBJECTS: usize = 40;
const SPEC: &str = "2+1";

fn object(number: usize) -> String {
    format!("folder/{number:02}")
}

/// Returns a volume with many objects, every fourth of them in shards.
async fn filled(disks: &Disks) -> Volume {
    let volume = disks.volume(SPEC).await;
    for number in 0..OBJECTS {
        let length = if number % 4 == 3 { 20_000 } else { 10 };
        let source = std::io::Cursor::new(content(length));
        volume.put(&name(&object(number)), source, PutOptions::default()).await.unwrap();
    }
    volume
}

/// Scrubs at most `most` objects, and returns their names.
async fn scrub(scrub: &mut Scrub<'_>, most: usize) -> Vec<String> {
    let mut names = Vec::new();
    while names.len() < most
        && let Some((name, repaired)) = scrub.next().await
    {
        repaired.unwrap();
        names.push(name.as_str().to_owned());
    }
    names
}

/// If several processes look after a volume, only one reads all blocks.
#[tokio::test]
async fn keepers_share_a_scrub() {
    let disks = Disks::new(3);
    let volume = filled(&disks).await;
    let ((one, of_one), (other, of_other)) = (disks.open_counted(SPEC), disks.open_counted(SPEC));
    let (hour, look) = (Duration::from_secs(3600), Duration::from_millis(20));
    let upkeep = Upkeep { look, collect: hour, scrub: hour };
    let told = |doing: &str, error: &paritas_volume::Error| panic!("{doing}: {error}");
    let scrubbed = async {
        while volume.scrub_status().await.last.is_none() {
            tokio::time::sleep(look).await;
        }
    };
    tokio::select! {
        () = keep(&one, upkeep, &told) => {}
        () = keep(&other, upkeep, &told) => {}
        () = scrubbed => {}
    }
    // Ten objects in shards have 20,000 bytes each.
    let read = [of_one.bytes_read(), of_other.bytes_read()];
    assert!(read.iter().max() > Some(&300_000) && read.iter().min() < Some(&100_000), "{read:?}");
}

#[tokio::test]
async fn a_scrub_goes_on_where_it_was_interrupted() {
    let disks = Disks::new(3);
    let volume = filled(&disks).await;
    let status = volume.status().await.unwrap().scrub;
    assert_eq!((status.pass, status.last), (None, None));
    // A bit changes in the last object.
    let last = volume.find(&name(&object(39)), Default::default()).await.unwrap();
    let id = last.listed().version.object.to_string();
    let shard =
        disks.files("objects").into_iter().find(|path| path.to_string_lossy().contains(&id));
    let shard = shard.unwrap();
    let whole = std::fs::read(&shard).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    std::fs::write(&shard, damaged).unwrap();

    let first = scrub(&mut volume.scrub().await.unwrap(), 25).await;
    assert_eq!(first, (0..25).map(object).collect::<Vec<_>>());
    drop(volume);
    // One disk is lost, and the cursor is on the others.
    let hidden = disks.hide(&[1]);
    let volume = disks.open(SPEC);
    let pass = volume.status().await.unwrap().scrub.pass.unwrap();
    assert!((16..=25).contains(&pass.done), "{pass:?}");
    assert_eq!((&pass.after, pass.names, pass.left), (&object(pass.done - 1), OBJECTS, 0));
    hidden.show();

    let mut second = volume.scrub().await.unwrap();
    assert_eq!(scrub(&mut second, 100).await, (pass.done..OBJECTS).map(object).collect::<Vec<_>>());
    assert!(std::fs::read(&shard).unwrap() == whole);
    let status = disks.open(SPEC).status().await.unwrap().scrub;
    let last = status.last.unwrap();
    assert_eq!((status.pass, last.began, last.names, last.left), (None, pass.began, OBJECTS, 0));
    assert!(last.ended >= last.began);
    // The next pass begins anew.
    assert_eq!(volume.scrub().await.unwrap().names().count(), OBJECTS);
}

#[tokio::test]
async fn what_is_left_to_repair_is_counted_and_too_few_nodes_end_a_scrub() {
    let disks = Disks::new(3);
    filled(&disks).await;
    let hidden = disks.hide(&[2]);
    let volume = disks.open(SPEC);
    let mut begun = volume.scrub().await.unwrap();
    assert_eq!(scrub(&mut begun, 20).await.len(), 20);
    let more = disks.hide(&[0]);
    let (stopped, error) = begun.next().await.unwrap();
    assert_eq!(stopped.as_str(), object(20));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TooFewNodes);
    assert!(begun.next().await.is_none());
    more.show();
    hidden.show();

    let volume = disks.open(SPEC);
    let mut again = volume.scrub().await.unwrap();
    assert_eq!(scrub(&mut again, 100).await, (20..OBJECTS).map(object).collect::<Vec<_>>());
    // Of the first 20, the objects in shards lacked one, and some of the others a manifest.
    let last = volume.status().await.unwrap().scrub.last.unwrap();
    assert!((5..=20).contains(&last.left), "{last:?}");
}

#[tokio::test]
async fn a_cursor_that_cannot_be_read_is_as_good_as_none() {
    let disks = Disks::new(3);
    let volume = filled(&disks).await;
    (0..3)
        .for_each(|disk| std::fs::write(disks.path(disk).join("scrub"), "{\"saves\": -1").unwrap());
    assert_eq!(volume.scrub().await.unwrap().names().count(), OBJECTS);
}

/// Two of three nodes cannot say which versions of one object they have.
#[cfg(unix)]
#[tokio::test]
async fn an_object_that_cannot_be_judged_does_not_keep_a_scrub_from_the_others() {
    let disks = Disks::new(3);
    let volume = filled(&disks).await;
    let folder = |disk: usize| disks.path(disk).join("manifests/folder/03@");
    for disk in 0..2 {
        std::fs::rename(folder(disk), disks.path(disk).join("away")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder(disk)).unwrap();
    }
    let scrub_all = async || {
        let mut scrub = volume.scrub().await.unwrap();
        let mut failed = Vec::new();
        while let Some((name, repaired)) = scrub.next().await {
            failed.extend(repaired.err().map(|error| (name.as_str().to_owned(), error.kind())));
        }
        let status = volume.status().await.unwrap().scrub;
        assert_eq!(status.pass, None);
        (failed, status.last.unwrap())
    };
    for _ in 0..2 {
        let (failed, last) = scrub_all().await;
        assert_eq!(failed, [(object(3), ErrorKind::TooFewNodes)]);
        assert_eq!((last.names, last.left), (OBJECTS, 1));
    }
    for disk in 0..2 {
        std::fs::remove_file(folder(disk)).unwrap();
        std::fs::rename(disks.path(disk).join("away"), folder(disk)).unwrap();
    }
    let (failed, last) = scrub_all().await;
    assert_eq!((failed, last.left), (Vec::new(), 0));
}

#[tokio::test]
async fn no_number_in_a_cursor_is_too_great() {
    let disks = Disks::new(3);
    let volume = filled(&disks).await;
    let most = usize::MAX;
    let pass = json!({"began": most, "after": "", "done": most, "names": most, "left": most});
    let text = json!({"saves": most, "pass": pass, "last": null}).to_string();
    (0..3).for_each(|disk| std::fs::write(disks.path(disk).join("scrub"), &text).unwrap());
    assert_eq!(volume.status().await.unwrap().scrub.pass.unwrap().left, most);
    let mut again = volume.scrub().await.unwrap();
    assert_eq!(scrub(&mut again, 100).await.len(), OBJECTS);
    let status = volume.status().await.unwrap().scrub;
    assert_eq!((status.pass, status.last.unwrap().names), (None, OBJECTS));
}

/// A machine whose clock was wrong keeps no other from scrubbing.
#[tokio::test]
async fn a_pass_that_ended_in_the_future_does_not_count() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, "object", &content(100_000)).await;
    let mut scrub = volume.scrub().await.unwrap();
    while scrub.next().await.is_some() {}
    let ended = volume.scrub_status().await.last.unwrap().ended;
    let years = 10 * 365 * 24 * 3600;
    for disk in 0..3 {
        let file = disks.path(disk).join("scrub");
        let text = std::fs::read_to_string(&file).unwrap();
        let wrong = format!("\"ended\":{}", ended + years);
        std::fs::write(&file, text.replace(&format!("\"ended\":{ended}"), &wrong)).unwrap();
    }
    let last = async || volume.scrub_status().await.last.unwrap().ended;
    assert_eq!(last().await, ended + years);
    let look = Duration::from_millis(20);
    let upkeep = Upkeep { look, scrub: Duration::from_secs(60), ..Upkeep::default() };
    let scrubbed = async {
        while last().await > ended + 3600 {
            tokio::time::sleep(look).await;
        }
    };
    tokio::select! {
        () = keep(&volume, upkeep, &|_, _| {}) => {}
        () = scrubbed => {}
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("no scrub"),
    }
}
