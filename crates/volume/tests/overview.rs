//! Many objects that are found and verified by one listing of each node.

mod common;

use std::path::PathBuf;

use common::{Disks, content, name, put};
use paritas_volume::node::NodeCall;
use paritas_volume::{ErrorKind, State};

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
