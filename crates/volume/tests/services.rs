//! A service that runs elsewhere keeps the trait's promises. `scripts/test-services` starts servers
//! and runs this test for each, with these variables:
//!
//! - `PARITAS_SERVICE`: the node's URI;
//! - `PARITAS_CREDENTIALS`: what stands under `credentials` in a volume file, if anything does;
//! - `PARITAS_WRITER`: for a service that can only be read, the folder that it shows.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use paritas_volume::config::Config;
use paritas_volume::node::{Abilities, Counted, Folder, Node, conformance, open, probe};

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn service(abilities: Option<Abilities>) -> Arc<dyn Node> {
    let uri = variable("PARITAS_SERVICE").expect("PARITAS_SERVICE is the URI of a node");
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
    let Abilities { write, list, create, ranges, streams } = abilities;
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
        Some(folder) => conformance::check_reader(&node, &Folder::new("w", folder, false)).await,
    };
    let seconds = start.elapsed().as_secs_f64();
    // A server that reads no ranges shows it only when it is asked for one.
    println!("{} in {seconds:.1} s; {report}", words(node.abilities()));
    assert!(report.passed());
}

/// A writer that is forgotten is like one that was killed. SFTP has its file by then; WebDAV and
/// buckets have none.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: run scripts/test-services"]
async fn what_a_kill_leaves_can_be_swept() {
    if variable("PARITAS_WRITER").is_some() {
        return;
    }
    let node = service(None);
    let mut writer = node.writer("left/over").await.unwrap();
    writer.write(vec![vec![0; 1 << 20].into()]).await.unwrap();
    std::mem::forget(writer);
    assert_eq!(node.stat("left/over").await.unwrap(), None);
    let listed: Vec<_> = node.list("").try_collect().await.unwrap();
    assert_eq!(listed, []);
    assert_eq!(node.sweep(Duration::from_secs(3600)).await.unwrap(), 0);
    let left = u64::from(variable("PARITAS_SERVICE").unwrap().starts_with("sftp:"));
    assert_eq!(node.sweep(Duration::ZERO).await.unwrap(), left);
}
