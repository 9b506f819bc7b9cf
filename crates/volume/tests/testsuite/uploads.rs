//! Uploads that several clients work on at once, and clients and nodes that stop at a bad moment:
//! no object that counts, or may come to count, loses a piece.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use crate::common::gate::Gate;
use crate::common::{Disks, content, get, listed, name, put, put_piece};
use paritas_shards::Attributes;
use paritas_volume::node::{Counters, NodeCall};
use paritas_volume::{
    ErrorKind, Expected, GetOptions, Notes, Piece, PutOptions, State, Upload, Volume,
};

const OBJECT: &str = "films/a";
/// The folder of the manifests of the object's name begins so.
const MANIFESTS: &str = "manifests/films/";
const CUT: usize = 70_000;
const HOUR: u64 = 3600;

/// Stores two pieces of `bytes`.
async fn stored<'v>(volume: &'v Volume, bytes: &[u8]) -> (Upload<'v>, Vec<Piece>) {
    let upload = volume.begin_upload(&name(OBJECT), Notes::new()).await.unwrap();
    put_piece(&upload, 1, &bytes[..CUT]).await;
    put_piece(&upload, 2, &bytes[CUT..]).await;
    let pieces = pieces_of(&upload).await;
    (upload, pieces)
}

async fn pieces_of(upload: &Upload<'_>) -> Vec<Piece> {
    upload.pieces().await.unwrap().into_iter().map(|stored| stored.piece).collect()
}

async fn complete(upload: Upload<'_>, pieces: Vec<Piece>) -> paritas_volume::Result<()> {
    upload.complete(pieces, Notes::new(), Attributes::default(), Expected::Anything).await.map(drop)
}

/// Makes the versions of all own objects of a kind older.
fn age(disks: &Disks, kind: &str, seconds: u64) {
    for path in disks.files(&format!("manifests/%2Eparitas/{kind}")) {
        let text = fs::read_to_string(&path).unwrap();
        let mut fields: serde_json::Value =
            serde_json::from_str(text.split_once('\n').unwrap().0).unwrap();
        for time in ["generation", "created"] {
            fields[time] = (fields[time].as_u64().unwrap() - seconds).into();
        }
        let (line, generation) = (fields.to_string(), fields["generation"].as_u64().unwrap());
        fs::write(&path, format!("{line}\n{}\n", blake3::hash(line.as_bytes()))).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        let rest = file.split_once('-').unwrap().1;
        fs::rename(&path, path.with_file_name(format!("{generation:016x}-{rest}"))).unwrap();
    }
}

fn age_all(disks: &Disks, seconds: u64) {
    ["closing", "pieces", "uploads"].iter().for_each(|kind| age(disks, kind, seconds));
}

/// Deletes the manifests of own objects of a kind.
fn forget(disks: &Disks, kind: &str) {
    let manifests = disks.files(&format!("manifests/%2Eparitas/{kind}"));
    assert!(!manifests.is_empty());
    manifests.iter().for_each(|path| fs::remove_file(path).unwrap());
}

/// A record that nobody can read keeps nobody from the other uploads, and the pieces of its upload
/// stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_no_obstacle() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    let unreadable = stored(&volume, &bytes).await.0.id().to_owned();
    let idle = stored(&volume, &bytes).await.0.id().to_owned();
    age_all(&disks, 8 * 24 * HOUR);
    let of = |kind: &str, id: &str| {
        let files = disks.files(&format!("manifests/%2Eparitas/{kind}")).into_iter();
        files.filter(|path| path.to_str().unwrap().contains(id)).collect::<Vec<_>>()
    };
    of("uploads", &unreadable).iter().for_each(|path| fs::write(path, "nothing").unwrap());
    let open = volume.uploads().await.unwrap();
    assert_eq!(open.iter().map(Upload::id).collect::<Vec<_>>(), [&*idle]);
    assert!(volume.collect().await.is_err(), "somebody has to know");
    let stored = |id: &str| {
        let is_put = |path: &&PathBuf| path.extension().is_some_and(|kind| kind == "put");
        of("pieces", id).iter().filter(is_put).count()
    };
    assert!(stored(&unreadable) > 0 && stored(&idle) == 0);
    assert!(volume.uploads().await.unwrap().is_empty());
}

/// Two clients complete an upload with different pieces. Both are answered, and the later object
/// keeps its pieces.
#[tokio::test(flavor = "multi_thread")]
async fn two_completions_keep_the_pieces_of_the_object() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    let (upload, pieces) = stored(&volume, &bytes).await;
    let (slow, gate) = Gate::before(&disks, "2+1", 0..);
    let other = slow.find_upload(upload.id()).await.unwrap();
    gate.hold(NodeCall::Write, "/uploads/");
    let later = async {
        gate.caught().await;
        // The manifest is written. The first part is stored once more.
        put_piece(&upload, 1, &bytes[..CUT]).await;
        let mut pieces = pieces_of(&upload).await;
        assert_eq!(pieces.len(), 3);
        pieces.remove(0);
        complete(upload, pieces).await.unwrap();
        gate.open();
    };
    let (earlier, ()) = tokio::join!(complete(other, pieces), later);
    earlier.unwrap();
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    assert_eq!(volume.collect_uploads().await.unwrap(), 0);
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    assert_eq!(listed(&volume, ".paritas/pieces/").await.len(), 2);
    assert_eq!(listed(&volume, ".paritas/closing/").await, [""; 0]);
}

/// A client gives up an upload that was completed since it was found, and is killed.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_abort_loses_nothing() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    for (call, path) in
        [(NodeCall::Write, "/uploads/"), (NodeCall::List, MANIFESTS), (NodeCall::Delete, "")]
    {
        let (upload, pieces) = stored(&volume, &bytes).await;
        let (slow, gate) = Gate::before(&disks, "2+1", 0..);
        let late = slow.find_upload(upload.id()).await.unwrap();
        complete(upload, pieces).await.unwrap();
        gate.hold(call, path);
        tokio::select! {
            done = late.give_up() => assert!(!done.unwrap()),
            () = gate.caught() => {}
        }
        assert_eq!(listed(&volume, ".paritas/uploads/").await.len(), 1, "{path}");
        age(&disks, "pieces", 30 * HOUR);
        assert_eq!(volume.collect_uploads().await.unwrap(), 0);
        assert!(get(&volume, OBJECT).await.unwrap() == bytes);
        volume.remove(&name(OBJECT)).await.unwrap();
        assert_eq!(listed(&volume, ".paritas/").await, [""; 0]);
    }
}

/// One node has the record that says that the upload was given up. Whoever finds it and removes the
/// pieces first makes all readers find it.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_not_settled_is_settled_before_pieces_go() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, OBJECT, b"before").await;
    let (upload, pieces) = stored(&volume, &content(2 * CUT)).await;
    let (cut_off, gate) = Gate::before(&disks, "2+1", 1..);
    let given_up = cut_off.find_upload(upload.id()).await.unwrap();
    gate.refuse(NodeCall::Write, "/uploads/");
    given_up.give_up().await.unwrap_err();
    let (blind, gate) = Gate::before(&disks, "2+1", ..1);
    gate.refuse(NodeCall::List, "/uploads/");
    let late = blind.find_upload(upload.id()).await.unwrap();
    let (collector, gate) = Gate::before(&disks, "2+1", ..);
    gate.hold(NodeCall::List, MANIFESTS);
    let mut collect = std::pin::pin!(collector.collect_uploads());
    tokio::select! {
        // The collector may have overlooked the record.
        collected = &mut collect => return assert_eq!(collected.unwrap(), 0),
        () = gate.caught() => {}
    }
    assert_eq!(complete(late, pieces).await.unwrap_err().kind(), ErrorKind::Busy);
    gate.open();
    collect.await.unwrap();
    assert!(get(&volume, OBJECT).await.unwrap() == b"before");
}

/// Earlier versions removed the record first, and put it back if the object had the pieces.
#[tokio::test(flavor = "multi_thread")]
async fn pieces_without_a_record_stay_while_an_object_may_have_them() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    let (upload, pieces) = stored(&volume, &bytes).await;
    let record = name(&format!(".paritas/uploads/{}", upload.id()));
    complete(upload, pieces).await.unwrap();
    forget(&disks, "uploads");
    age(&disks, "pieces", 30 * HOUR);
    assert_eq!(volume.collect_uploads().await.unwrap(), 0);
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    assert_eq!(listed(&volume, ".paritas/uploads/").await, [record.to_string()], "it is known");
    // Pieces without a record are removed if all nodes say that no object has them.
    forget(&disks, "uploads");
    volume.remove(&name(OBJECT)).await.unwrap();
    let hidden = disks.hide(&[0]);
    assert_eq!(disks.open("2+1").collect_uploads().await.unwrap(), 0);
    hidden.show();
    assert_eq!(disks.open("2+1").collect_uploads().await.unwrap(), 1);
    assert_eq!(listed(&volume, ".paritas/").await, [""; 0]);
}

/// Only one node has the manifest of a completion, and it is silent when the upload is given up.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_completion_is_not_taken_back() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    for is_later in [false, true] {
        put(&volume, OBJECT, &content(100_000)).await;
        let (cut_off, gate) = Gate::before(&disks, "2+1", 1..);
        let (upload, pieces) = stored(&cut_off, &bytes).await;
        gate.refuse(NodeCall::Write, MANIFESTS);
        let id = upload.id().to_owned();
        complete(upload, pieces).await.unwrap_err();
        if is_later {
            age_all(&disks, 8 * 24 * HOUR);
        }
        let hidden = disks.hide(&[0]);
        let others = disks.open("2+1");
        assert_eq!(others.collect_uploads().await.unwrap(), 0);
        if let Ok(upload) = others.find_upload(&id).await {
            assert_eq!(upload.give_up().await.unwrap_err().kind(), ErrorKind::Busy);
        }
        hidden.show();
        let volume = disks.open("2+1");
        assert!(get(&volume, OBJECT).await.unwrap() == bytes);
        // Looking at all nodes does not settle the version, so the next look needs all of them too.
        assert_eq!(volume.collect_uploads().await.unwrap(), 0);
        let hidden = disks.hide(&[0]);
        assert_eq!(disks.open("2+1").collect_uploads().await.unwrap(), 0);
        hidden.show();
        let volume = disks.open("2+1");
        assert!(get(&volume, OBJECT).await.unwrap() == bytes);
        volume.repair(&name(OBJECT), false).await.unwrap();
        assert_eq!(volume.collect_uploads().await.unwrap(), 0);
        assert!(get(&volume, OBJECT).await.unwrap() == bytes);
        volume.remove(&name(OBJECT)).await.unwrap();
        age_all(&disks, 8 * 24 * HOUR);
        volume.collect_uploads().await.unwrap();
        assert_eq!(listed(&volume, ".paritas/").await, [""; 0]);
    }
}

/// Only one node has the version that replaces an object in pieces, and it is lost.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_put_does_not_replace_an_object_in_pieces() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    let (upload, pieces) = stored(&volume, &bytes).await;
    complete(upload, pieces).await.unwrap();
    let (cut_off, gate) = Gate::before(&disks, "2+1", 1..);
    gate.refuse(NodeCall::Write, MANIFESTS);
    let (short, options) = (Cursor::new(b"short".to_vec()), PutOptions::default());
    cut_off.put(&name(OBJECT), short, options).await.unwrap_err();
    assert_eq!(volume.collect_uploads().await.unwrap(), 0);
    let _lost = disks.hide(&[0]);
    assert!(get(&disks.open("2+1"), OBJECT).await.unwrap() == bytes);
}

/// A client that completes an upload sleeps for two hours before it writes the manifest.
#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_sleeps_keeps_its_pieces() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    let (upload, pieces) = stored(&volume, &bytes).await;
    let (slow, gate) = Gate::before(&disks, "2+1", 0..);
    let sleeping = slow.find_upload(upload.id()).await.unwrap();
    gate.hold(NodeCall::List, MANIFESTS);
    let abort = async {
        gate.caught().await;
        age(&disks, "closing", 2 * HOUR);
        let refused = upload.give_up().await;
        gate.open();
        refused
    };
    let (completed, refused) = tokio::join!(complete(sleeping, pieces), abort);
    completed.unwrap();
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Busy);
}

/// A lost piece is told by repair and scrub, as it is by verification.
#[tokio::test(flavor = "multi_thread")]
async fn repair_and_scrub_miss_a_lost_piece() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let bytes = content(2 * CUT);
    let (upload, pieces) = stored(&volume, &bytes).await;
    let piece = format!("pieces/{}/{:05}", upload.id(), pieces[1].number);
    complete(upload, pieces).await.unwrap();
    volume.repair(&name(OBJECT), true).await.unwrap();
    let error = volume.remove(&name(&format!(".paritas/{piece}"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
    forget(&disks, &format!("{piece}@"));
    assert_eq!(volume.verify(&name(OBJECT), false).await.unwrap().state, State::Lost);
    let error = volume.repair(&name(OBJECT), false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
    let mut scrub = volume.scrub().await.unwrap();
    while scrub.next().await.is_some() {}
    assert_eq!(volume.scrub_status().await.last.unwrap().left, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_may_be_changed_any_number_of_times() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    put(&volume, OBJECT, b"short").await;
    for round in 0..150 {
        let found = volume.find(&name(OBJECT), GetOptions::default()).await.unwrap();
        let notes = [("tags".to_owned(), round.to_string())].into();
        volume.renote(found, &notes, None).await.unwrap();
    }
    assert!(get(&volume, OBJECT).await.unwrap() == b"short");
}

/// What does not fit into a manifest is refused before anything is stored.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_notes_are_refused_at_once() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let notes: Notes = [("tags".to_owned(), "x".repeat(44_000))].into();
    let refused = |error: paritas_volume::Error| {
        assert_eq!(error.kind(), ErrorKind::Parameters, "{error}");
        for part in [OBJECT, "44004", "32768"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    };
    for length in [5, 100_000] {
        let mut options = PutOptions::default();
        let noted = notes.clone();
        options.notes = Some(std::sync::Arc::new(move || noted.clone()));
        let source = Cursor::new(content(length));
        refused(volume.put(&name(OBJECT), source, options).await.unwrap_err());
    }
    refused(volume.begin_upload(&name(OBJECT), notes.clone()).await.unwrap_err());
    assert_eq!((disks.files("objects").len(), disks.files("manifests").len()), (0, 0));
    let (upload, pieces) = stored(&volume, &content(2 * CUT)).await;
    let completed = upload.complete(pieces, notes, Attributes::default(), Expected::Anything).await;
    refused(completed.unwrap_err());
    assert_eq!(listed(&volume, ".paritas/closing/").await, [""; 0]);
}

/// A put and a removal learn from the old manifest whether there are pieces, and list no uploads.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_other_names_cost_puts_nothing() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let (upload, pieces) = stored(&volume, &content(2 * CUT)).await;
    complete(upload, pieces).await.unwrap();
    let (watched, gate) = Gate::before(&disks, "2+1", 0..);
    gate.refuse(NodeCall::List, "/uploads/");
    for length in [5, 100_000, 50_000] {
        put(&watched, "films/b", &content(length)).await;
    }
    watched.remove(&name("films/b")).await.unwrap();
    gate.open();
    watched.remove(&name(OBJECT)).await.unwrap();
    assert_eq!(listed(&volume, ".paritas/").await, [""; 0]);
}

/// What is asked each hour about an upload that is complete, and whose object is there.
#[tokio::test(flavor = "multi_thread")]
async fn collecting_asks_little_about_complete_uploads() {
    let disks = Disks::new(3);
    let (volume, counters) = disks.open_counted("2+1");
    volume.mark_nodes().await.unwrap();
    let lists = |of: &Counters| of.of(NodeCall::List).calls;
    let mut costs = Vec::new();
    for object in ["films/a", "films/b", "films/c"] {
        let upload = volume.begin_upload(&name(object), Notes::new()).await.unwrap();
        put_piece(&upload, 1, &content(CUT)).await;
        let pieces = pieces_of(&upload).await;
        complete(upload, pieces).await.unwrap();
        volume.collect().await.unwrap();
        let before = lists(&counters);
        volume.collect().await.unwrap();
        costs.push(lists(&counters) - before);
    }
    // One list of each node: the versions of the object's name.
    assert_eq!([costs[1] - costs[0], costs[2] - costs[1]], [3, 3], "{costs:?}");
    volume.remove(&name("films/b")).await.unwrap();
    volume.collect().await.unwrap();
    assert_eq!(listed(&volume, ".paritas/uploads/").await.len(), 2);
}
