//! A service that runs elsewhere keeps the trait's promises. `scripts/test-services` starts servers
//! and runs this test for each, with these variables:
//!
//! - `PARITAS_SERVICE`: the node's URI;
//! - `PARITAS_CREDENTIALS`: what stands under `credentials` in a volume file, if anything does;
//! - `PARITAS_WRITER`: for a service that can only be read, the folder that it shows;
//! - `PARITAS_UPLOADS_OF_2010`: set if the server says of every upload that it was begun then.

use crate::conformance;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use paritas_volume::config::Config;
use paritas_volume::node::{Abilities, Counted, FolderNode, Node, open, probe};
use paritas_volume::{ErrorKind, GetOptions, Member, ObjectName, PutOptions, Setup, State, Volume};

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn service(abilities: Option<Abilities>) -> Arc<dyn Node> {
    service_below("", abilities)
}

/// Opens a folder of the service.
fn service_below(folder: &str, abilities: Option<Abilities>) -> Arc<dyn Node> {
    let uri = variable("PARITAS_SERVICE").expect("PARITAS_SERVICE is the URI of a node");
    let (path, query) = uri.split_at(uri.find('?').unwrap_or(uri.len()));
    let uri = match folder {
        "" => uri.clone(),
        folder => format!("{}/{folder}{query}", path.trim_end_matches('/')),
    };
    let credentials = variable("PARITAS_CREDENTIALS")
        .map(|credentials| format!("credentials = {credentials:?}\n"))
        .unwrap_or_default();
    let mut config = Config::parse(&format!(
        "name = \"v\"\nid = \"00112233445566778899aabbccddeeff\"\ncode = \"4+2\"\n\
         [limits]\nrequests = 16\n[[node]]\nname = \"n\"\nuri = {uri:?}\n{credentials}"
    ))
    .unwrap();
    config.nodes[0].abilities = abilities;
    open(&config.nodes[0], &config, Path::new("/"), &variable).unwrap()
}

fn words(abilities: Abilities) -> String {
    let Abilities { write, list, create, ranges, streams, .. } = abilities;
    let all = [
        (write, "writes"),
        (list, "lists"),
        (create, "creates once"),
        (ranges, "reads ranges"),
        (streams, "streams"),
    ];
    let can: Vec<_> = all.iter().filter(|(can, _)| *can).map(|(_, word)| *word).collect();
    if can.is_empty() { "reads only whole files".to_owned() } else { can.join(", ") }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: run scripts/test-services"]
async fn a_service_conforms() {
    let start = Instant::now();
    let found = probe(&*service(None)).await.unwrap();
    let node = Counted::of(service(Some(found.abilities)));
    let report = match variable("PARITAS_WRITER") {
        None => conformance::check(&node).await,
        Some(folder) => {
            conformance::check_reader(&node, &FolderNode::new("w", folder, false)).await
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    // A server that reads no ranges shows it only when it is asked for one.
    println!("{} in {seconds:.1} s; {report}", words(node.abilities()));
    assert!(report.passed());
}

/// A writer that is forgotten is like one that was killed. SFTP has its file by then, a WebDAV
/// server may have it, and a bucket has an upload in parts.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: run scripts/test-services"]
async fn what_a_kill_leaves_can_be_swept() {
    if variable("PARITAS_WRITER").is_some() {
        return;
    }
    let node = service(None);
    let path = &format!("objects/ab/{}/left.1of3.paritas", "ab".repeat(16));
    let mut writer = node.writer(path).await.unwrap();
    for _ in 0..20 {
        writer.write(vec![vec![0; 1 << 20].into()]).await.unwrap();
    }
    std::mem::forget(writer);
    assert_eq!(node.stat(path).await.unwrap(), None);
    let listed: Vec<_> = node.list("").try_collect().await.unwrap();
    assert_eq!(listed, []);
    assert_eq!(node.sweep(Duration::from_secs(3600)).await.unwrap(), 0);
    // A WebDAV server deals with an abandoned request in its own time.
    let swept = node.sweep(Duration::ZERO).await.unwrap();
    match variable("PARITAS_SERVICE").unwrap() {
        uri if uri.starts_with("sftp:") => assert_eq!(swept, 1),
        // A time of long ago is not believed.
        uri if uri.starts_with("s3:") => {
            assert_eq!(swept, u64::from(variable("PARITAS_UPLOADS_OF_2010").is_none()));
        }
        _ => {}
    }
    assert_eq!(node.sweep(Duration::ZERO).await.unwrap(), 0);
}

/// A volume over two folders of the service and two of this machine: written, read in full and in
/// part, promoted, repaired after the loss of what one node had, and emptied.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: run scripts/test-services"]
async fn a_volume_lives_there() {
    if variable("PARITAS_WRITER").is_some() {
        return;
    }
    let disks = tempfile::tempdir().unwrap();
    let found = probe(&*service(None)).await.unwrap();
    let mut nodes: Vec<(Member, Arc<dyn Node>)> = Vec::new();
    for name in ["far1", "far2", "near1", "near2"] {
        let node: Arc<dyn Node> = match name.strip_prefix("near") {
            None => service_below(&format!("volume/{name}"), Some(found.abilities)),
            Some(_) => {
                let folder = disks.path().join(name);
                std::fs::create_dir(&folder).unwrap();
                Arc::new(FolderNode::new(name, folder, false))
            }
        };
        let name = name.to_owned();
        nodes.push((Member { domain: name.clone(), name, is_drained: false }, node));
    }
    let code = paritas::Code::new(&"bbdpg:k=2,m=1,m2=2,base=cauchy".parse().unwrap()).unwrap();
    let volume = Volume::new(Setup::new("0".repeat(32), code, nodes)).unwrap();
    volume.mark_nodes().await.unwrap();

    let get = async |name: &ObjectName, range| {
        let mut bytes = Vec::new();
        let options = GetOptions::default();
        volume.get(name, range, &mut bytes, options, &|_| {}).await.map(|_| bytes)
    };
    let large = ObjectName::new("folder of 100%/large?").unwrap();
    let small = ObjectName::new("small #1").unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u64).map(|i| (i * i % 251) as u8).collect();
    for (name, length) in [(&large, bytes.len()), (&small, 1000)] {
        let source = std::io::Cursor::new(bytes[..length].to_vec());
        let report = volume.put(name, source, PutOptions::default()).await.unwrap();
        assert!(!report.is_owed, "{:?}", report.flaws);
        assert!(get(name, None).await.unwrap() == bytes[..length]);
        let range = length as u64 / 3..length as u64 / 2;
        let part = get(name, Some(range.clone())).await.unwrap();
        assert!(part == bytes[range.start as usize..range.end as usize]);
    }
    assert_eq!(volume.list("").await.unwrap().objects.len(), 2);
    assert_eq!(volume.promote(&large).await.unwrap().stored, 1);
    for folder in ["objects", "manifests"] {
        let _ = std::fs::remove_dir_all(disks.path().join("near1").join(folder));
    }
    for name in [&large, &small] {
        let repaired = volume.repair(name, true).await.unwrap();
        assert!(!repaired.is_owed, "{repaired:?}");
        let verdict = volume.verify(name, true).await.unwrap();
        assert_eq!(verdict.state, State::Intact, "{verdict:?}");
        volume.remove(name).await.unwrap();
        assert_eq!(get(name, None).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
    for folder in ["volume/far1", "volume/far2"] {
        let node = service_below(folder, None);
        let left: Vec<_> = node.list("objects/").try_collect().await.unwrap();
        assert_eq!(left, []);
        let rest: Vec<_> = node.list("").try_collect().await.unwrap();
        for entry in rest {
            node.delete(&entry.path).await.unwrap();
        }
    }
}
