//! Nodes of this machine: folders and memory keep the trait's promises, and decorators do what they
//! are for. Services have tests of their own (`services.rs`).

use crate::conformance;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::gate::slow;
use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::join_all;
use paritas_volume::config::{Config, NodeEntry};
use paritas_volume::node::{
    Counted, Endpoint, Fault, Faulty, FolderNode, Limited, MOST_WHOLE, Mode, Node, NodeCall,
    STAGING, Trigger, open, probe,
};
use paritas_volume::{ErrorKind, Result};
use tempfile::TempDir;

fn folder(sync: bool) -> (TempDir, Arc<dyn Node>) {
    let root = TempDir::new().unwrap();
    let node = Arc::new(FolderNode::new("disk", root.path(), sync));
    (root, node)
}

fn memory() -> Arc<dyn Node> {
    Arc::new(Endpoint::memory("memory").unwrap())
}

async fn write(node: &dyn Node, path: &str, content: &'static str) -> Result<()> {
    node.write(path, content.into(), Mode::Replace).await
}

async fn read(node: &dyn Node, path: &str) -> Result<Bytes> {
    node.read(path, None).await
}

async fn paths(node: &dyn Node, prefix: &str) -> Result<Vec<String>> {
    let mut paths: Vec<_> = node.list(prefix).map_ok(|entry| entry.path).try_collect().await?;
    paths.sort();
    Ok(paths)
}

async fn conforms(node: &dyn Node) {
    let report = conformance::check(node).await;
    assert!(report.passed(), "{report}");
    assert_eq!(report.outcomes.len(), 20, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_conforms_and_is_empty_again() {
    let (root, node) = folder(false);
    conforms(&*node).await;
    let left: Vec<_> = std::fs::read_dir(root.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(std::fs::read_dir(root.path().join(STAGING)).unwrap().count(), 0);
}

#[tokio::test]
async fn memory_conforms() {
    conforms(&*memory()).await;
}

#[tokio::test]
async fn decorated_nodes_conform() {
    let counted = Arc::new(Counted::of(memory()));
    let limited = Arc::new(Limited::to(counted.clone(), 1, Some(4 << 30)));
    conforms(&Faulty::new(limited, 1)).await;
    assert!(counted.meter().bytes_written() > 20 << 20);
    assert!(counted.meter().bytes_read() > 20 << 20);
}

#[tokio::test]
async fn the_suite_notices_every_fault() {
    let faults = [
        (NodeCall::Read, Fault::Refuse),
        (NodeCall::Read, Fault::Flip),
        (NodeCall::Read, Fault::Short),
        (NodeCall::Read, Fault::Stale),
        (NodeCall::Stat, Fault::Short),
        (NodeCall::Stat, Fault::Stale),
        (NodeCall::List, Fault::Short),
        (NodeCall::List, Fault::Stale),
        (NodeCall::Write, Fault::Short),
        (NodeCall::Piece, Fault::Short),
        (NodeCall::Piece, Fault::Flip),
        (NodeCall::Finish, Fault::Cut),
        (NodeCall::Delete, Fault::Forbidden),
    ];
    for (call, fault) in faults {
        let node = Faulty::new(memory(), 2).with(call, fault, Trigger::From(3));
        let report = conformance::check(&node).await;
        assert!(!report.passed(), "{call:?} {fault:?}");
    }
}

#[tokio::test]
async fn a_synced_folder_stores_files() {
    let (_root, node) = folder(true);
    write(&*node, "a/b/c", "content").await.unwrap();
    let mut writer = node.writer("a/d").await.unwrap();
    writer.write(vec![Bytes::from_static(b"more")]).await.unwrap();
    writer.finish().await.unwrap();
    assert_eq!(read(&*node, "a/b/c").await.unwrap(), "content");
    assert_eq!(paths(&*node, "").await.unwrap(), ["a/b/c", "a/d"]);
}

#[tokio::test]
async fn a_missing_root_is_no_absent_file() {
    let (root, node) = folder(false);
    drop(root);
    let results = [
        read(&*node, "a").await.map(drop),
        node.stat("a").await.map(drop),
        paths(&*node, "").await.map(drop),
        write(&*node, "a", "x").await,
        node.delete("a").await,
        node.writer("a").await.map(drop),
        node.sweep(Duration::ZERO).await.map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.node()), (ErrorKind::Io, Some("disk")), "{error}");
        assert!(error.to_string().contains("is its disk mounted?"), "{error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn no_path_leaves_a_folder() {
    let (root, node) = folder(false);
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), root.path().join("file")).unwrap();
    for path in ["link/secret", "link/new/x", "file"] {
        let results = [
            read(&*node, path).await.map(drop),
            node.stat(path).await.map(drop),
            write(&*node, path, "y").await,
            node.delete(path).await,
        ];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Refused, "{path}");
        }
    }
    assert_eq!(paths(&*node, "link/").await.unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(paths(&*node, "").await.unwrap(), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"x");
}

#[tokio::test]
async fn what_a_kill_leaves_is_not_listed_and_can_be_swept() {
    let (root, node) = folder(false);
    write(&*node, "a", "x").await.unwrap();
    std::fs::write(root.path().join(STAGING).join("left"), "half").unwrap();
    assert_eq!(paths(&*node, "").await.unwrap(), ["a"]);
    assert_eq!(node.sweep(Duration::from_secs(3600)).await.unwrap(), 0);
    assert_eq!(node.sweep(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(std::fs::read_dir(root.path().join(STAGING)).unwrap().count(), 0);
    let inside = format!("{STAGING}/x");
    assert_eq!(write(&*node, &inside, "y").await.unwrap_err().kind(), ErrorKind::Parameters);
}

/// Writes files to the folder that a variable names, until it is killed.
#[tokio::test]
#[ignore = "run by a_killed_writer_leaves_whole_files"]
async fn write_for_ever() {
    let Ok(root) = std::env::var("PARITAS_TEST_FOLDER") else {
        return;
    };
    let node = FolderNode::new("disk", root, false);
    let piece = Bytes::from(vec![7; 100_000]);
    for number in 0_u64.. {
        let mut writer = node.writer(&format!("a/{}", number % 5)).await.unwrap();
        for _ in 0..10 {
            writer.write(vec![piece.clone()]).await.unwrap();
        }
        writer.finish().await.unwrap();
    }
}

#[tokio::test]
async fn a_killed_writer_leaves_whole_files() {
    let (root, node) = folder(false);
    let mut left = 0;
    for wait in [300, 310, 320, 330] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "nodes::write_for_ever", "--ignored"])
            .env("PARITAS_TEST_FOLDER", root.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(wait)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let paths = paths(&*node, "").await.unwrap();
        assert!(!paths.is_empty());
        for path in paths {
            let content = read(&*node, &path).await.unwrap();
            assert_eq!(content.len(), 1_000_000, "{path}");
        }
        left += node.sweep(Duration::ZERO).await.unwrap();
    }
    assert!(left <= 4, "{left} unfinished files after four kills");
}

/// Deleting the last file of a folder removes the folder, in which another task may be about to
/// create a file.
#[tokio::test(flavor = "multi_thread")]
async fn folders_come_and_go_under_writers() {
    let (_root, node) = folder(false);
    let work = (0..4).map(|task| {
        let node = node.clone();
        tokio::spawn(async move {
            let path = format!("shared/deep/{task}");
            for _ in 0..100 {
                write(&*node, &path, "x").await.unwrap();
                node.delete(&path).await.unwrap();
            }
        })
    });
    for done in join_all(work).await {
        done.unwrap();
    }
    assert_eq!(paths(&*node, "").await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_file_is_no_folder() {
    let (_root, node) = folder(false);
    write(&*node, "a", "x").await.unwrap();
    assert_eq!(write(&*node, "a/b", "y").await.unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(node.stat("a/b").await.unwrap(), None);
    write(&*node, "c/d", "x").await.unwrap();
    assert_eq!(node.stat("c").await.unwrap(), None);
    assert_eq!(read(&*node, "c").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(write(&*node, "c", "y").await.unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(paths(&*node, "").await.unwrap(), ["a", "c/d"]);
}

#[tokio::test]
async fn counters_count() {
    let node = Counted::of(memory());
    write(&node, "a", "12345").await.unwrap();
    let mut writer = node.writer("b").await.unwrap();
    writer.write(vec!["123".into(), "45".into()]).await.unwrap();
    writer.write(vec!["6".into()]).await.unwrap();
    writer.finish().await.unwrap();
    node.read("a", Some(1..3)).await.unwrap();
    read(&node, "absent").await.unwrap_err();
    paths(&node, "").await.unwrap();
    let counters = node.meter();
    let tally = |call| (counters.of(call).calls, counters.of(call).bytes);
    assert_eq!(tally(NodeCall::Write), (2, 5));
    assert_eq!(tally(NodeCall::Piece), (2, 6));
    assert_eq!(tally(NodeCall::Finish), (1, 0));
    assert_eq!(tally(NodeCall::Read), (2, 2));
    assert_eq!(tally(NodeCall::List), (1, 0));
    assert_eq!((counters.bytes_written(), counters.bytes_read()), (11, 2));
    assert_eq!(counters.take().len(), 5);
    assert_eq!(tally(NodeCall::Read), (0, 0));
}

#[tokio::test]
async fn limits_hold() {
    let node = Limited::to(slow(memory(), Duration::from_millis(40)), 2, None);
    let start = Instant::now();
    join_all((0..10).map(|_| node.stat("a"))).await;
    assert!(start.elapsed() >= Duration::from_millis(195), "{:?}", start.elapsed());

    let node = Limited::to(memory(), 4, Some(1_000_000));
    let start = Instant::now();
    // The first second's bytes may go at once.
    node.write("a", vec![0; 1_300_000].into(), Mode::Replace).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(290), "{:?}", start.elapsed());
}

#[tokio::test]
async fn faults_come_when_they_are_due() {
    let node = Faulty::new(memory(), 3)
        .with(NodeCall::Read, Fault::Refuse, Trigger::At(2))
        .with(NodeCall::Write, Fault::Full, Trigger::From(2))
        .with(NodeCall::Stat, Fault::Hang, Trigger::At(1));
    write(&node, "a", "x").await.unwrap();
    assert_eq!(write(&node, "a", "y").await.unwrap_err().kind(), ErrorKind::Io);
    let kinds = [
        read(&node, "a").await.map_err(|error| error.kind()),
        read(&node, "a").await.map_err(|error| error.kind()),
        read(&node, "a").await.map_err(|error| error.kind()),
    ];
    assert_eq!(kinds, [Ok("x".into()), Err(ErrorKind::Io), Ok("x".into())]);
    let hung = tokio::time::timeout(Duration::from_millis(20), node.stat("a")).await;
    assert!(hung.is_err());
    assert_eq!(node.happened(), 3);
}

#[tokio::test]
async fn the_same_seed_has_the_same_faults() {
    let run = async |seed| {
        let node =
            Faulty::new(memory(), seed).with(NodeCall::Read, Fault::Cut, Trigger::Chance(0.5));
        write(&node, "a", "x").await.unwrap();
        let mut failed = Vec::new();
        for _ in 0..64 {
            failed.push(read(&node, "a").await.is_err());
        }
        failed
    };
    assert_eq!(run(7).await, run(7).await);
    assert_ne!(run(7).await, run(8).await);
}

#[tokio::test]
async fn a_stale_node_shows_what_was() {
    let node = Faulty::new(memory(), 4)
        .with(NodeCall::Read, Fault::Stale, Trigger::At(3))
        .with(NodeCall::List, Fault::Stale, Trigger::From(1))
        .with(NodeCall::Stat, Fault::Stale, Trigger::From(1));
    write(&node, "a", "old").await.unwrap();
    write(&node, "a", "new content").await.unwrap();
    write(&node, "b", "x").await.unwrap();
    assert_eq!(read(&node, "a").await.unwrap(), "new content");
    assert_eq!(read(&node, "a").await.unwrap(), "new content");
    assert_eq!(read(&node, "a").await.unwrap(), "old");
    assert_eq!(paths(&node, "").await.unwrap(), ["a"]);
    assert_eq!(node.stat("a").await.unwrap().unwrap().length, 3);
    assert_eq!(node.stat("b").await.unwrap(), None);
}

#[tokio::test]
async fn a_cut_writer_leaves_no_part_of_a_file() {
    for call in [NodeCall::Piece, NodeCall::Finish] {
        for seed in 0..8 {
            let node = Faulty::new(memory(), seed).with(call, Fault::Cut, Trigger::At(1));
            let mut writer = node.writer("a").await.unwrap();
            let written = writer.write(vec!["12345678".into()]).await;
            let finished = writer.finish().await;
            assert!(finished.is_err());
            match (call, node.stat("a").await.unwrap()) {
                (NodeCall::Piece, found) => assert!(written.is_err() && found.is_none()),
                (_, found) => assert!(found.is_none_or(|found| found.length == 8)),
            }
        }
    }
}

#[tokio::test]
async fn probes_tell_what_is_true() {
    let (_root, node) = folder(false);
    let found = probe(&*node).await.unwrap();
    assert_eq!(found.abilities, node.abilities());
    assert!(found.clock_ahead.unwrap().abs() < 2.0, "{found:?}");
    assert_eq!(paths(&*node, "").await.unwrap(), Vec::<String>::new());

    let forbidden =
        Faulty::new(memory(), 5).with(NodeCall::Write, Fault::Forbidden, Trigger::From(1));
    let found = probe(&forbidden).await.unwrap();
    assert!(!found.abilities.write && !found.abilities.create && found.abilities.list);

    // A node that loses what was written does not just lack an ability: probing it fails.
    let forgetful = Faulty::new(memory(), 6).with(NodeCall::Read, Fault::Short, Trigger::From(1));
    assert_eq!(probe(&forgetful).await.unwrap_err().kind(), ErrorKind::Io);
}

fn config(text: &str) -> Config {
    let head = "name = \"v\"\nid = \"00112233445566778899aabbccddeeff\"\ncode = \"4+2\"\n";
    Config::parse(&format!("{head}{text}")).unwrap()
}

#[tokio::test]
async fn a_volume_file_opens_nodes() {
    let base = TempDir::new().unwrap();
    std::fs::create_dir(base.path().join("disk")).unwrap();
    let config = config(
        "[limits]\nrequests = 1\n\
         [[node]]\nname = \"a\"\nuri = \"disk\"\n[[node]]\nname = \"b\"\nuri = \"memory:\"\n",
    );
    for entry in &config.nodes {
        let node = open(entry, &config, base.path(), &|_| None).unwrap();
        assert_eq!(node.name(), entry.name);
        write(&*node, "x/y", "content").await.unwrap();
        assert_eq!(read(&*node, "x/y").await.unwrap(), "content");
    }
    assert_eq!(std::fs::read(base.path().join("disk/x/y")).unwrap(), b"content");
}

/// Returns everything that one can see of an error.
fn shown(error: &paritas_volume::Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    text
}

fn entry(uri: &str, credentials: Option<&str>) -> (Config, NodeEntry) {
    let credentials =
        credentials.map(|from| format!("credentials = {from:?}\n")).unwrap_or_default();
    let config = config(&format!("[[node]]\nname = \"n\"\nuri = {uri:?}\n{credentials}"));
    let entry = config.nodes[0].clone();
    (config, entry)
}

#[test]
fn credentials_that_cannot_be_used_are_named_but_not_shown() {
    let folder = TempDir::new().unwrap();
    let with_mode = |mode, name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        let file = std::fs::File::open(folder.path().join(name)).unwrap();
        paritas_store::place::system::set_mode(&file, mode).unwrap();
    };
    let file = |name: &str, text: &str| with_mode(0o600, name, text);
    with_mode(0o640, "shared.toml", "user = \"me\"\npassword = \"Sentinel-secret\"\n");
    file("bad.toml", "user = \"me\"\npassword = Sentinel-secret\n");
    file("half.toml", "password = \"Sentinel-secret\"\n");
    file("odd.toml", "passwort = \"Sentinel-secret\"\n");
    let cases = [
        ("s3://bucket", None, "AWS_ACCESS_KEY_ID"),
        ("s3://bucket", Some("MINE"), "MINE_ACCESS_KEY_ID"),
        ("webdav://h/x", Some("MINE"), "MINE_USER"),
        ("webdav://h/x", Some("bad.toml"), "line 2"),
        ("webdav://h/x", Some("odd.toml"), "line 1"),
        ("webdav://h/x", Some("none.toml"), "none.toml"),
        #[cfg(unix)]
        ("webdav://h/x", Some("shared.toml"), "(mode 640): `chmod 600"),
        ("webdav://h/x", Some("half.toml"), "lacks user and password"),
        ("s3://bucket", Some("half.toml"), "lacks access_key_id and secret_access_key"),
        ("sftp://h/x", Some("no.key"), "no.key"),
        ("sftp://h/x", Some("MINE"), "MINE_KEY_FILE"),
        ("webdav://me:Sentinel-secret@h/x", None, "`credentials`"),
    ];
    for (uri, credentials, part) in cases {
        let (config, entry) = entry(uri, credentials);
        let error = open(&entry, &config, folder.path(), &|_| None).unwrap_err();
        let kind = if uri.contains('@') { ErrorKind::Parameters } else { ErrorKind::Refused };
        assert_eq!((error.kind(), error.node()), (kind, Some("n")), "{uri}");
        assert!(shown(&error).contains(part), "{uri}: {error}");
        assert!(!shown(&error).contains("Sentinel"), "{uri}: {}", shown(&error));
    }
}

#[tokio::test]
async fn only_small_files_are_read_whole() {
    let (_root, folder) = folder(false);
    for node in [folder, memory()] {
        for (more, kind) in [(0, None), (1, Some(ErrorKind::NotRecognised))] {
            let bytes = MOST_WHOLE as usize + more;
            node.write("file", vec![7; bytes].into(), Mode::Replace).await.unwrap();
            let read = node.read("file", None).await;
            assert_eq!(read.as_ref().err().map(|error| error.kind()), kind);
            assert!(read.map_or(kind.is_some(), |read| read.len() == bytes));
            let range = node.read("file", Some(0..bytes as u64)).await.unwrap();
            assert_eq!(range.len(), bytes);
        }
    }
}
