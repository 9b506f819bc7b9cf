//! Many objects that are found, verified and put by one listing of each node.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use crate::common::{Disks, content, get, name, put};
use paritas_volume::node::NodeCall;
use paritas_volume::{
    ErrorKind, GetOptions, Overview, PutOptions, PutReport, Result, State, Volume,
};

/// Small objects that are intact cost one request each, and one listing of each node for all.
#[tokio::test]
async fn many_objects_are_verified_by_one_overview() {
    let disks = Disks::new(6);
    disks.volume("4+2").await;
    let (volume, counters) = disks.open_counted("4+2");
    for object in 0..20 {
        put(&volume, &format!("small/{object}"), &content(50)).await;
    }
    put(&volume, "large", &content(400_000)).await;
    put(&volume, "gone", &content(50)).await;
    put(&volume, "new", &content(50)).await;
    put(&volume, "damaged", &content(300_000)).await;
    counters.take();
    let overview = volume.overview("").await.unwrap();
    assert_eq!(overview.objects().count(), 24);
    for object in 0..20 {
        let small = name(&format!("small/{object}"));
        let verdict = volume.verify_by(&overview, &small, false).await.unwrap();
        assert_eq!((verdict.state, verdict.spare), (State::Intact, 2));
    }
    let asked = counters.take();
    assert_eq!(asked[&NodeCall::List].calls, 6);
    // One manifest each, and the marks of nodes if that takes long.
    assert!((20..=26).contains(&asked[&NodeCall::Read].calls), "{asked:?}");
    volume.verify_by(&overview, &name("large"), false).await.unwrap();
    let asked = counters.take();
    assert_eq!((asked[&NodeCall::List].calls, asked[&NodeCall::Read].calls), (6, 1));

    let found = volume.find_by(&overview, &name("small/0")).await.unwrap();
    let listed = overview.objects().find(|(it, _)| **it == name("small/0"));
    assert_eq!(Some(found.listed()), listed.map(|(_, listed)| listed));
    let asked = counters.take();
    assert_eq!((asked.get(&NodeCall::List), asked[&NodeCall::Read].calls), (None, 1));

    // What changed since the overview is looked at anew.
    volume.remove(&name("gone")).await.unwrap();
    put(&volume, "new", &content(70)).await;
    let is_smaller = |path: &PathBuf| path.metadata().unwrap().len() < 90_000;
    let part = disks.files("objects").into_iter().find(is_smaller);
    std::fs::remove_file(part.unwrap()).unwrap();
    for is_deep in [false, true] {
        assert_eq!(volume.find_by(&overview, &name("new")).await.unwrap().length(), 70);
        let gone = volume.find_by(&overview, &name("gone")).await;
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
        let by = async |object| volume.verify_by(&overview, &name(object), is_deep).await;
        assert_eq!(by("gone").await.unwrap_err().kind(), ErrorKind::NotFound);
        let verdict = by("new").await.unwrap();
        assert_eq!((verdict.state, verdict.listed.length), (State::Intact, 70));
        assert_eq!(by("large").await.unwrap().state, State::Intact);
        let verdict = by("damaged").await.unwrap();
        assert_eq!((verdict.state, verdict.missing.len()), (State::Repairable, 1));
    }
    let _hidden = disks.hide(&[2]);
    let verdict = volume.verify_by(&overview, &name("large"), false).await.unwrap();
    assert_eq!((verdict.state, verdict.spare), (State::Repairable, 1));
}

/// Stores an object whose length is known, by an overview if there is one.
async fn put_by(
    volume: &Volume,
    overview: Option<&Arc<Overview>>,
    object: &str,
    bytes: &[u8],
) -> Result<PutReport> {
    let mut options = PutOptions::default();
    options.length = Some(bytes.len() as u64);
    options.overview = overview.cloned();
    volume.put(&name(object), Cursor::new(bytes.to_vec()), options).await
}

/// With an overview, an object in shards costs a request for each shard and one for each manifest.
/// Without one, each node lists the versions of the name once.
#[tokio::test]
async fn many_objects_are_put_by_one_overview() {
    let disks = Disks::new(6);
    disks.volume("4+2").await;
    let (volume, counters) = disks.open_counted("4+2");
    put(&volume, "a/old", &content(90_000)).await;
    counters.take();
    let requests = || {
        let asked = counters.take();
        let calls = |kind| asked.get(&kind).map_or(0, |tally| tally.calls);
        assert_eq!((calls(NodeCall::Piece), calls(NodeCall::Finish)), (0, 0));
        (calls(NodeCall::List), calls(NodeCall::Write))
    };
    let overview = Arc::new(volume.overview_to_put("a/", 5).await.unwrap());
    assert_eq!(requests(), (6, 0));
    for object in ["a/0", "a/1", "a/2"] {
        put_by(&volume, Some(&overview), object, &content(80_000)).await.unwrap();
        assert_eq!(requests(), (0, 12));
    }
    put_by(&volume, Some(&overview), "a/small", b"small").await.unwrap();
    assert_eq!(requests(), (0, 3));
    // It does not show other names.
    put_by(&volume, Some(&overview), "b", &content(80_000)).await.unwrap();
    assert_eq!(requests(), (6, 12));
    put_by(&volume, None, "a/3", &content(80_000)).await.unwrap();
    assert_eq!(requests(), (6, 12));
    // The version that the overview shows is superseded and removed.
    put_by(&volume, Some(&overview), "a/old", &content(70_000)).await.unwrap();
    assert_eq!(volume.find(&name("a/old"), GetOptions::default()).await.unwrap().length(), 70_000);
    let verdict = volume.verify(&name("a/old"), true).await.unwrap();
    assert_eq!((verdict.state, verdict.listed.length), (State::Intact, 70_000));
    let of_old = |path: &PathBuf| path.display().to_string().contains("old@");
    assert_eq!(disks.files("manifests").into_iter().filter(of_old).count(), 6);
    // Listing many names is not worth the while for one.
    for object in 0..101 {
        put(&volume, &format!("many/{object}"), &content(5_000)).await;
    }
    assert!(volume.overview_to_put("many/", 1).await.is_none());
    assert!(volume.overview_to_put("many/", 2).await.is_some());
}

#[tokio::test]
async fn a_put_by_an_overview_needs_nodes_that_are_there_now() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    put(&volume, "a", &content(80_000)).await;
    // A new handle, because each remembers for seconds which nodes are there.
    let overview = Arc::new(disks.open("4+2").overview("").await.unwrap());
    let hidden = disks.hide(&[0, 2, 3, 5]);
    for bytes in [content(80_001), b"small".to_vec()] {
        let refused = put_by(&disks.open("4+2"), Some(&overview), "a", &bytes).await;
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooFewNodes);
        assert!(error.message().starts_with("a is not written: "), "{error}");
    }
    hidden.show();
    let found = disks.open("4+2").find(&name("a"), GetOptions::default()).await.unwrap();
    assert_eq!(found.length(), 80_000);
}

/// A version that others write after the overview may count instead, but nothing is mixed.
#[tokio::test]
async fn a_put_by_an_overview_races_with_puts_that_came_after_it() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let overview = Arc::new(volume.overview("").await.unwrap());
    for round in 0..4 {
        let object = format!("a{round}");
        let (first, second) = (content(80_000 + round), content(90_000 + round));
        put(&volume, &object, &first).await;
        put_by(&volume, Some(&overview), &object, &second).await.unwrap();
        volume.repair(&name(&object), false).await.unwrap();
        let verdict = volume.verify(&name(&object), true).await.unwrap();
        assert_eq!(verdict.state, State::Intact, "{:?}", verdict.flaws);
        let read = get(&volume, &object).await.unwrap();
        assert!(read == first || read == second);
    }
}
