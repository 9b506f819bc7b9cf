//! Names of all kinds, on nodes of all kinds: volumes that older programs stored, long names,
//! control characters, and nodes that do not tell upper from lower case.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use paritas::CodecOptions;
use paritas_volume::node::{Abilities, Caseless, Entry, Mode, Node, NodeCall, Stat, Writer};
use paritas_volume::{ErrorKind, GetOptions, ObjectName, PutOptions, Result, State, Volume};

use crate::common::{Disks, content, get, name, walk};

async fn put(volume: &Volume, name: &ObjectName, bytes: &[u8]) {
    let source = std::io::Cursor::new(bytes.to_vec());
    let report = volume.put(name, source, PutOptions::default()).await.unwrap();
    assert!(!report.is_owed, "{report:?}");
}

async fn listed(volume: &Volume, prefix: &str) -> Vec<String> {
    let listing = volume.list(prefix).await.unwrap();
    assert_eq!(listing.flaws, []);
    listing.objects.keys().map(ObjectName::to_string).collect()
}

fn copy(from: &Path, to: &Path) {
    let mut files = Vec::new();
    walk(from, &mut files);
    for file in files {
        let target = to.join(file.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(file, target).unwrap();
    }
}

/// `vectors/volume/old` was stored by version 0.1.0, which took names of up to 200 bytes a
/// component when they are escaped.
#[tokio::test]
async fn a_volume_that_an_older_program_stored_is_used_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let old: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../vectors/volume/old"].iter().collect();
    copy(&old, place.path());
    let open =
        || Volume::open(&place.path().join("tank.toml"), |_| CodecOptions::default()).unwrap();
    let volume = open();
    let deep = format!("{}/100% Photo.JPG", "ж".repeat(33));
    let long = "x".repeat(200);
    let all = ["@home/.rc", "letters/to a friend", &long, &deep, "файл/é ü.txt"];
    assert_eq!(listed(&volume, "").await, all);
    assert_eq!(listed(&volume, &deep[..4]).await, [&*deep]);
    let files = || {
        let mut files = Vec::new();
        walk(place.path(), &mut files);
        files.into_iter().collect::<BTreeSet<PathBuf>>()
    };
    let before = files();
    for (text, bytes) in [("@home/.rc", &b"small"[..]), (&deep, &[b'z'; 4100])] {
        assert_eq!(get(&volume, text).await.unwrap(), bytes);
        assert_eq!(volume.verify(&name(text), true).await.unwrap().state, State::Intact);
        let repaired = volume.repair(&name(text), true).await.unwrap();
        assert_eq!((repaired.stored, repaired.manifests, repaired.is_owed), (0, 0, false));
    }
    let gone = volume.find(&name("gone away"), GetOptions::default()).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    assert_eq!(files(), before, "nothing is moved");
    // A new version replaces the old one at its place.
    put(&volume, &name("letters/to a friend"), b"hello again").await;
    volume.remove(&name(&deep)).await.unwrap();
    std::fs::remove_dir_all(place.path().join("n2")).unwrap();
    std::fs::create_dir(place.path().join("n2")).unwrap();
    let volume = open();
    assert!(volume.fill("n2").await.unwrap().manifests > 0);
    for object in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
        volume.repair(&object, false).await.unwrap();
    }
    assert_eq!(listed(&volume, "").await, [all[0], all[1], all[2], all[4]]);
    assert_eq!(get(&volume, all[1]).await.unwrap(), b"hello again");
    let versions = files().into_iter().filter(|path| path.to_str().unwrap().contains("to%20a"));
    assert_eq!(versions.count(), 2, "the old version is gone");
}

/// Names that need every form: escaped, shortened components, shortened ends, control characters.
fn odd_names() -> Vec<ObjectName> {
    let deep: Vec<String> = (0..15).map(|at| format!("{at}{}", "ю".repeat(31))).collect();
    let mut texts = vec![
        "Протокол заседания комиссии по закупкам 2025.docx".to_owned(),
        format!("p/{}", "x".repeat(255)),
        format!("{}/a", "длинная-папка-".repeat(9)),
        format!("{}/b", "длинная-папка-".repeat(9)),
        "new\nline \t\u{1b}[K".to_owned(),
        "blank /  at both ends ".to_owned(),
        "é".to_owned(),
        "e\u{301}".to_owned(),
        "Photo.JPG".to_owned(),
        "photo.jpg".to_owned(),
        "a:*?\"<>|\\b.".to_owned(),
        deep.join("/"),
        deep[..14].join("/"),
    ];
    texts.sort();
    texts.iter().map(|text| name(text)).collect()
}

async fn expect_all(volume: &Volume, names: &[ObjectName], length: usize) {
    let texts: Vec<String> = names.iter().map(ObjectName::to_string).collect();
    assert_eq!(listed(volume, "").await, texts);
    for object in names {
        assert!(
            get(volume, object.as_str()).await.unwrap() == content(length + object.as_str().len())
        );
        let (folder, _) = object.as_str().rsplit_once('/').unwrap_or_default();
        let below = texts.iter().filter(|text| text.starts_with(folder)).cloned();
        assert_eq!(listed(volume, folder).await, below.collect::<Vec<_>>());
        assert!(listed(volume, &format!("{object}")).await.contains(&object.to_string()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_all_kinds_are_stored_listed_repaired_and_removed() {
    for length in [1, 10_000] {
        let disks = Disks::new(4);
        let volume = disks.volume("2+1").await;
        let names = odd_names();
        for object in &names {
            put(&volume, object, &content(length + object.as_str().len())).await;
        }
        expect_all(&volume, &names, length).await;
        for file in disks.files("") {
            let path = file.to_str().unwrap();
            assert!(path.is_ascii() && path.split('/').all(|part| part.len() <= 255), "{path}");
        }
        // A lost disk is filled, and its shards are made again.
        std::fs::remove_dir_all(disks.path(1)).unwrap();
        std::fs::create_dir(disks.path(1)).unwrap();
        let volume = disks.open("2+1");
        volume.fill("disk1").await.unwrap();
        for object in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
            assert!(!volume.repair(&object, true).await.unwrap().is_owed);
        }
        expect_all(&volume, &names, length).await;
        for object in &names {
            assert_eq!(volume.verify(object, true).await.unwrap().state, State::Intact);
            volume.remove(object).await.unwrap();
        }
        assert_eq!(listed(&volume, "").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_folder_with_a_long_name_costs_one_request_a_listing() {
    let disks = Disks::new(3);
    disks.volume("2+1").await;
    let (volume, counters) = disks.open_counted("2+1");
    for number in 0..30 {
        put(&volume, &name(&format!("{}/{number}", "папка".repeat(20))), b"x").await;
    }
    counters.take();
    assert_eq!(listed(&volume, "").await.len(), 30);
    let marks = 3;
    assert!(counters.of(NodeCall::Read).calls <= 1 + marks, "{:?}", counters.of(NodeCall::Read));
    assert_eq!(counters.of(NodeCall::List).calls, 3);
}

#[tokio::test]
async fn a_damaged_manifest_hides_no_name_while_another_is_whole() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let object = name(&"я".repeat(120));
    put(&volume, &object, b"small").await;
    let manifests = disks.files("manifests");
    assert_eq!(manifests.len(), 2);
    std::fs::write(&manifests[0], "damaged").unwrap();
    let listing = volume.list("").await.unwrap();
    assert_eq!(listing.objects.keys().collect::<Vec<_>>(), [&object]);
    std::fs::write(&manifests[1], "damaged").unwrap();
    let listing = volume.list("").await.unwrap();
    assert!(listing.objects.is_empty());
    assert!(listing.flaws[0].message.contains("manifests/!"), "{:?}", listing.flaws);
    // An object that is lost with its name is told wherever all objects are counted.
    let nameless: Vec<_> = volume.overview("").await.unwrap().nameless().collect();
    assert_eq!((nameless.len(), nameless[0].kind()), (1, ErrorKind::TooFewShards));
    let error = volume.any("", None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
    let mut scrub = volume.scrub().await.unwrap();
    assert!(scrub.next().await.is_none());
    assert_eq!(scrub.nameless().len(), 1);
    assert_eq!(volume.scrub_status().await.last.unwrap().left, 1);
    // A node that is filled without it would say that there is no object.
    std::fs::remove_dir_all(disks.path(2)).unwrap();
    std::fs::create_dir(disks.path(2)).unwrap();
    let error = disks.open("2+1").fill("disk2").await.unwrap_err();
    assert!(error.to_string().contains("cannot be told"), "{error}");
}

/// A node that changes all names of files to lower case.
#[derive(Debug)]
struct Lowering(Arc<dyn Node>);

#[async_trait]
impl Node for Lowering {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    async fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.0.read(&path.to_lowercase(), range).await
    }

    async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.0.stat(&path.to_lowercase()).await
    }

    fn list<'a>(&'a self, prefix: &'a str) -> BoxStream<'a, Result<Entry>> {
        let entries = async move { self.0.list(&prefix.to_lowercase()).collect::<Vec<_>>().await };
        futures::stream::once(entries).flat_map(futures::stream::iter).boxed()
    }

    async fn write(&self, path: &str, content: Bytes, mode: Mode) -> Result<()> {
        self.0.write(&path.to_lowercase(), content, mode).await
    }

    async fn writer(&self, path: &str) -> Result<Box<dyn Writer>> {
        self.0.writer(&path.to_lowercase()).await
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.0.delete(&path.to_lowercase()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_differ_in_case_stay_apart_on_nodes_that_do_not_tell_it() {
    let disks = Disks::new(3);
    let lower = |_, node| -> Arc<dyn Node> { Arc::new(Lowering(node)) };
    let caseless = |_, node| -> Arc<dyn Node> { Arc::new(Caseless::new(Arc::new(Lowering(node)))) };
    let found = disks.open_with("2+1", &lower).probe_nodes().await.unwrap();
    assert!(found.iter().all(|probe| !probe.abilities.cases), "{found:?}");
    let volume = disks.open_with("2+1", &caseless);
    volume.mark_nodes().await.unwrap();
    let names = odd_names();
    for object in &names {
        put(&volume, object, &content(7000 + object.as_str().len())).await;
    }
    expect_all(&volume, &names, 7000).await;
    for object in &names {
        let verdict = volume.verify(object, true).await.unwrap();
        assert!(verdict.flaws.is_empty() && verdict.state != State::Lost, "{verdict:?}");
    }
    // A disk that tells them apart may be replaced by one that does not, if the volume file says
    // so.
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, &names[0], b"x").await;
    std::fs::remove_dir_all(disks.path(1)).unwrap();
    std::fs::create_dir(disks.path(1)).unwrap();
    let refused = disks.open_with("2+1", &lower).fill("disk1").await.unwrap_err();
    assert!(refused.to_string().contains("cases = false"), "{refused}");
    assert!(disks.open_with("2+1", &caseless).fill("disk1").await.is_ok());
    let node = disks.open("2+1");
    assert!(node.probe_nodes().await.unwrap().iter().all(|probe| probe.abilities.cases));
}
