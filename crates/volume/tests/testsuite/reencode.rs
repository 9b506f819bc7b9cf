//! Objects are cut anew by another code.

use crate::common::{Disks, content, name};
use paritas_volume::{ErrorKind, FoundObject, GetOptions, PutOptions, Reencoded, State, Volume};

async fn put(volume: &Volume, object: &str, bytes: &[u8]) {
    let mut options = PutOptions::default();
    options.attributes.mode = Some(0o640);
    let source = std::io::Cursor::new(bytes.to_vec());
    volume.put(&name(object), source, options).await.unwrap();
}

async fn get(volume: &Volume, object: &str) -> (FoundObject, Vec<u8>) {
    let mut bytes = Vec::new();
    let got = volume.get(&name(object), None, &mut bytes, GetOptions::default(), &|_| {}).await;
    (got.unwrap(), bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_changes_its_code_and_nothing_else() {
    let disks = Disks::new(8);
    let bytes = content(1_234_567);
    let before = {
        let volume = disks.volume("4+2").await;
        put(&volume, "large", &bytes).await;
        put(&volume, "small", &bytes[..100]).await;
        get(&volume, "large").await.0
    };
    for spec in ["rdp:k=4", "bbdpg:k=3,m=2,m2=3,base=cauchy", "lt:k=64,n=128,nodes=8"] {
        let volume = disks.open_changed(spec, &|_, node| node, |setup| setup.losses = Some(2));
        let done = volume.reencode(&name("large")).await.unwrap();
        assert!(matches!(done, Reencoded::Changed(report) if !report.is_owed), "{spec}");
        let (object, got) = get(&volume, "large").await;
        assert!(got == bytes, "{spec}");
        assert_eq!(object.code().unwrap(), volume.code().spec().to_string());
        assert_eq!((object.mode(), object.digest()), (before.mode(), before.digest()));
        let (old, new) = (before.listed().version, object.listed().version);
        assert!(new.generation == old.generation && new.object > old.object);
        let verdict = volume.verify(&name("large"), true).await.unwrap();
        assert_eq!(verdict.state, State::Intact);
        let shards = volume.code().node_count() - usize::from(volume.code().stages() > 1);
        assert_eq!(disks.files("objects").len(), shards, "nothing is left of the old shards");
        for object in ["large", "small"] {
            let again = volume.reencode(&name(object)).await.unwrap();
            assert!(matches!(again, Reencoded::Unchanged), "{spec} {object}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_that_have_moved_are_found() {
    let disks = Disks::new(6);
    let few = |setup: &mut paritas_volume::Setup| setup.nodes.truncate(3);
    let volume = disks.open_changed("2+1", &|_, node| node, few);
    volume.mark_nodes().await.unwrap();
    let bytes = content(100_000);
    for object in 0..8 {
        put(&volume, &object.to_string(), &bytes).await;
    }
    let open = |spec| disks.open_changed(spec, &|_, node| node, |setup| setup.losses = Some(1));
    let volume = open("2+1");
    volume.mark_nodes().await.unwrap();
    for object in 0..8 {
        volume.repair(&name(&object.to_string()), false).await.unwrap();
    }
    let volume = open("3+1");
    for object in 0..8 {
        let done = volume.reencode(&name(&object.to_string())).await.unwrap();
        assert!(matches!(done, Reencoded::Changed(report) if !report.is_owed));
        assert!(get(&volume, &object.to_string()).await.1 == bytes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_keeps_its_shards() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    put(&volume, "object", &content(300_000)).await;
    let shards = disks.files("objects");
    for path in &shards[..3] {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    let volume = disks.open_changed("3+2", &|_, node| node, |setup| setup.losses = Some(2));
    let error = volume.reencode(&name("object")).await.unwrap_err();
    assert!(error.to_string().contains("shards can be read"), "{error}");
    assert_eq!(disks.files("objects"), shards);
    let error = volume.reencode(&name("nothing")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
