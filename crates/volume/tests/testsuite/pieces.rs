//! Objects in pieces: what an upload stores is one object when it is complete, and nothing before.

use std::fs::{self, File};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::gate::Gate;
use crate::common::{Disks, content, get, listed, name, put_piece};
use paritas_shards::Attributes;
use paritas_volume::node::NodeCall;
use paritas_volume::{
    ErrorKind, Expected, GetOptions, PutOptions, Reencoded, State, SteadyFile, Upload, Volume,
};
use paritas_volume::{Notes, Piece};

const OBJECT: &str = "films/a b.webm";
const CUT: [usize; 3] = [150_000, 70_001, 9];

fn notes(text: &str) -> Notes {
    [("type".to_owned(), text.to_owned())].into()
}

/// Stores the pieces of `bytes`, the last one first, with gaps in the numbers.
async fn stored<'v>(volume: &'v Volume, bytes: &[u8]) -> (Upload<'v>, Vec<Piece>) {
    let upload = volume.begin_upload(&name(OBJECT), notes("video")).await.unwrap();
    let starts = CUT.iter().scan(0, |end, length| {
        *end += length;
        Some(*end - length)
    });
    for (at, start) in starts.enumerate().collect::<Vec<_>>().into_iter().rev() {
        put_piece(&upload, 2 * at as u32 + 1, &bytes[start..start + CUT[at]]).await;
    }
    let pieces = upload.pieces().await.unwrap().into_iter().map(|stored| stored.piece).collect();
    (upload, pieces)
}

async fn completed(volume: &Volume, bytes: &[u8]) {
    let (upload, pieces) = stored(volume, bytes).await;
    upload.complete(pieces, Notes::new(), Attributes::default(), Expected::Anything).await.unwrap();
}

/// Returns an upload as a client knows it who found it before somebody else completed it.
async fn overtaken<'v>(volume: &'v Volume, bytes: &[u8]) -> Upload<'v> {
    let (upload, pieces) = stored(volume, bytes).await;
    let found = volume.find_upload(upload.id()).await.unwrap();
    upload.complete(pieces, Notes::new(), Attributes::default(), Expected::Anything).await.unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_become_one_object() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(CUT.iter().sum());
    let (upload, pieces) = stored(&volume, &bytes).await;
    let id = upload.id().to_owned();
    assert_eq!(listed(&volume, "").await, [""; 0], "nothing before");
    assert_eq!(volume.uploads().await.unwrap().len(), 1);
    // Any client goes on with it.
    let again = volume.find_upload(&id).await.unwrap();
    assert_eq!((again.name(), again.notes()), (&name(OBJECT), &notes("video")));
    put_piece(&again, 8, b"left out").await;
    again
        .complete(pieces.clone(), notes("film"), Attributes::default(), Expected::Anything)
        .await
        .unwrap();
    assert_eq!(listed(&volume, "").await, [OBJECT]);
    assert_eq!(listed(&volume, ".paritas/pieces/").await.len(), 3, "the fourth is removed");
    assert_eq!(volume.uploads().await.unwrap().len(), 0);
    let found = volume.find(&name(OBJECT), GetOptions::default()).await.unwrap();
    assert_eq!((found.length(), found.notes()), (bytes.len() as u64, &notes("film")));
    assert_eq!(found.pieces(), Some(&pieces[..]));
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    let hidden = disks.hide(&[1, 4]);
    for range in [0..1, 149_999..150_001, 150_000..220_001, 220_001..220_010, 5..220_009, 7..7] {
        let part = &bytes[range.start as usize..range.end as usize];
        let (mut read, options) = (Vec::new(), GetOptions::default());
        let got = volume.get(&name(OBJECT), Some(range.clone()), &mut read, options, &|_| {}).await;
        assert!(read == part, "{range:?}");
        let is_in_shards = range.start < 220_001 && !range.is_empty();
        assert_eq!(got.unwrap().read_bytes() > 0, is_in_shards, "{range:?}");
    }
    hidden.show();
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_are_verified_repaired_and_cut_anew_as_objects_are() {
    let disks = Disks::new(6);
    let bytes = content(CUT.iter().sum());
    let volume = disks.volume("4+2").await;
    let (upload, pieces) = stored(&volume, &bytes).await;
    let first = pieces[0].number.to_string();
    upload.complete(pieces, Notes::new(), Attributes::default(), Expected::Anything).await.unwrap();
    let state = async || volume.verify(&name(OBJECT), true).await.unwrap().state;
    assert_eq!(state().await, State::Intact);
    let parts = disks.files("objects");
    assert_eq!(parts.len(), 12, "the shortest piece is in its manifests");
    fs::remove_file(&parts[0]).unwrap();
    assert_eq!(state().await, State::Repairable);
    assert_eq!(volume.repair(&name(OBJECT), false).await.unwrap().stored, 1);
    assert_eq!(state().await, State::Intact);
    fs::remove_file(&parts[0]).unwrap();
    for name in volume.most_urgent_first(&volume.overview("").await.unwrap()).await {
        volume.repair_one_of_all(&name, false).await.unwrap();
    }
    assert_eq!(state().await, State::Intact);
    let other = disks.open_changed("rdp:k=4", &|_, node| node, |setup| setup.losses = Some(2));
    let done = other.reencode(&name(OBJECT)).await.unwrap();
    assert!(matches!(done, Reencoded::Changed(_)));
    assert!(get(&other, OBJECT).await.unwrap() == bytes);
    let parts =
        disks.files("objects").into_iter().filter(|path| path.to_string_lossy().contains(&first));
    parts.take(3).for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(other.verify(&name(OBJECT), false).await.unwrap().state, State::Lost);
}

/// Returns the shards of a piece.
fn shards_of(disks: &Disks, piece: &Piece) -> Vec<PathBuf> {
    let begin = format!("{}.", piece.number);
    let is_of = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&begin);
    disks.files("objects").into_iter().filter(is_of).collect()
}

/// A piece that is lost keeps no other from being repaired, and is not called an absent object.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_piece_is_told_and_others_are_repaired() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let (upload, pieces) = stored(&volume, &content(CUT.iter().sum())).await;
    upload
        .complete(pieces.clone(), Notes::new(), Attributes::default(), Expected::Anything)
        .await
        .unwrap();
    shards_of(&disks, &pieces[0])[..3].iter().for_each(|path| fs::remove_file(path).unwrap());
    fs::remove_file(&shards_of(&disks, &pieces[1])[0]).unwrap();
    let error = volume.repair(&name(OBJECT), false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
    assert_eq!(shards_of(&disks, &pieces[1]).len(), 6);
    let is_of_first =
        |path: &PathBuf| path.to_str().unwrap().contains(&format!("/{}@/", pieces[0].number));
    let manifests = disks.files("manifests");
    manifests
        .iter()
        .filter(|path| is_of_first(path))
        .for_each(|path| fs::remove_file(path).unwrap());
    let error = volume.reencode(&name(OBJECT)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooFewShards, "{error}");
}

/// Pieces are promoted with their object.
#[tokio::test(flavor = "multi_thread")]
async fn pieces_are_promoted_by_the_name_of_their_object() {
    let disks = Disks::new(6);
    let volume = disks.volume("bbdpg:k=3,m=1,m2=3,base=cauchy").await;
    completed(&volume, &content(CUT.iter().sum())).await;
    assert_eq!(volume.backlog("").await.len(), 2);
    assert!(volume.promote(&name(OBJECT)).await.unwrap().stored > 0);
    assert_eq!(volume.backlog("").await, []);
    assert_eq!(volume.verify(&name(OBJECT), true).await.unwrap().spare, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_go_with_their_object() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(CUT.iter().sum());
    for by in ["removal", "put", "upload", "collecting"] {
        completed(&volume, &bytes).await;
        assert_eq!(volume.collect_uploads().await.unwrap(), 0, "it is in use");
        match by {
            "put" => {
                let short = Cursor::new(b"short".to_vec());
                volume.put(&name(OBJECT), short, PutOptions::default()).await.unwrap();
            }
            "upload" => {
                completed(&volume, &bytes).await;
                assert_eq!(listed(&volume, ".paritas/uploads/").await.len(), 1);
                volume.remove(&name(OBJECT)).await.unwrap();
            }
            "collecting" => {
                // The old manifests cannot be read when they are deleted.
                let (stubborn, gate) = Gate::before(&disks, "4+2", 0..);
                gate.refuse(NodeCall::Read, "manifests/films/");
                stubborn.remove(&name(OBJECT)).await.unwrap();
                assert_eq!(listed(&volume, ".paritas/pieces/").await.len(), 3);
                assert_eq!(volume.collect().await.unwrap(), 1);
            }
            _ => _ = volume.remove(&name(OBJECT)).await.unwrap(),
        }
        assert_eq!(listed(&volume, ".paritas/").await, [""; 0], "{by}");
        assert_eq!(disks.files("objects").len(), 0, "{by}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_completes_and_who_gives_up_see_each_other() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(CUT.iter().sum());
    // Given up after it was completed by somebody else: the pieces stay.
    let late = overtaken(&volume, &bytes).await;
    assert!(!late.give_up().await.unwrap());
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    assert_eq!(volume.collect_uploads().await.unwrap(), 0);
    // Completed after it was given up: the object stays as it was.
    let (upload, pieces) = stored(&volume, &bytes).await;
    let early = volume.find_upload(upload.id()).await.unwrap();
    assert!(early.give_up().await.unwrap());
    let error = upload
        .complete(pieces, Notes::new(), Attributes::default(), Expected::Anything)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    volume.remove(&name(OBJECT)).await.unwrap();
    volume.collect().await.unwrap();
    assert_eq!(disks.files("objects").len(), 0);
}

/// Whatever the order of their steps, the name means the old bytes or the new ones, whole.
#[tokio::test(flavor = "multi_thread")]
async fn completing_and_giving_up_at_once_lose_nothing() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let (bytes, before) = (content(CUT.iter().sum()), b"before".to_vec());
    for round in 0..24 {
        volume
            .put(&name(OBJECT), Cursor::new(before.clone()), PutOptions::default())
            .await
            .unwrap();
        let (upload, pieces) = stored(&volume, &bytes).await;
        let other = volume.find_upload(upload.id()).await.unwrap();
        let id = upload.id().to_owned();
        let complete =
            upload.complete(pieces, Notes::new(), Attributes::default(), Expected::Anything);
        let give_up = async {
            tokio::time::sleep(std::time::Duration::from_millis(round)).await;
            other.give_up().await
        };
        let (completed, given_up) = tokio::join!(complete, give_up);
        let now = get(&volume, OBJECT).await.unwrap();
        match completed {
            Ok(_) => assert!(now == bytes, "round {round}: {given_up:?}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Busy, "round {round}: {error}");
                assert!(now == before, "round {round}");
            }
        }
        if let Ok(upload) = volume.find_upload(&id).await {
            // Both saw each other, or it is complete.
            upload.give_up().await.unwrap();
        }
        assert!(get(&volume, OBJECT).await.unwrap() == now);
    }
    volume.remove(&name(OBJECT)).await.unwrap();
    volume.collect().await.unwrap();
    assert_eq!(listed(&volume, ".paritas/").await, [""; 0]);
}

/// A client that is slow may store a part when others have completed the upload with that part.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_part_changes_nothing() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(CUT.iter().sum());
    let late = overtaken(&volume, &bytes).await;
    let files = disks.files("objects").len();
    let other = Cursor::new(content(CUT[0]));
    let error = late.put_piece(1, other, PutOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    assert_eq!(disks.files("objects").len(), files);
    assert_eq!(volume.collect_uploads().await.unwrap(), 0);
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_may_have_several_pieces() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let upload = volume.begin_upload(&name(OBJECT), Notes::new()).await.unwrap();
    put_piece(&upload, 7, b"first").await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    put_piece(&upload, 7, b"second").await;
    let pieces = upload.pieces().await.unwrap();
    let parts: Vec<_> = pieces.iter().map(|it| (it.piece.part(), it.piece.length)).collect();
    assert_eq!(parts, [(7, 5), (7, 6)]);
    upload
        .complete(vec![pieces[1].piece], Notes::new(), Attributes::default(), Expected::Anything)
        .await
        .unwrap();
    assert!(get(&volume, OBJECT).await.unwrap() == b"second");
    assert_eq!(listed(&volume, ".paritas/pieces/").await.len(), 1);
    let upload = volume.begin_upload(&name(OBJECT), Notes::new()).await.unwrap();
    for part in [0, Piece::MOST_PARTS + 1] {
        let put = upload.put_piece(part, Cursor::new(vec![1]), PutOptions::default()).await;
        assert_eq!(put.unwrap_err().kind(), ErrorKind::Parameters);
    }
}

/// Notes are replaced where the object is; a version that others write meanwhile counts.
#[tokio::test(flavor = "multi_thread")]
async fn other_notes_change_nothing_else() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let bytes = content(CUT.iter().sum());
    let find = async || volume.find(&name(OBJECT), GetOptions::default()).await.unwrap();
    let put = async |bytes: &[u8]| {
        let source = Cursor::new(bytes.to_vec());
        volume.put(&name(OBJECT), source, PutOptions::default()).await.unwrap();
    };
    for whole in [Some(bytes.len()), Some(9), None] {
        match whole {
            Some(length) => put(&bytes[..length]).await,
            None => completed(&volume, &bytes).await,
        }
        let found = find().await;
        let before = (found.length(), found.digest(), found.created(), found.listed().version);
        volume.renote(found, &notes("new"), Some(before.2)).await.unwrap();
        let now = find().await;
        assert_eq!(now.notes(), &notes("new"));
        assert_eq!((now.length(), now.digest(), now.created()), (before.0, before.1, before.2));
        assert!(now.listed().version > before.3);
        assert_eq!(now.listed().version.generation, before.3.generation);
        assert!(get(&volume, OBJECT).await.unwrap() == bytes[..before.0 as usize]);
        // What is replaced or removed meanwhile keeps no notes of it.
        let old = find().await;
        put(b"other").await;
        assert_eq!(
            volume.renote(old, &notes("late"), None).await.unwrap_err().kind(),
            ErrorKind::Busy
        );
        assert!(get(&volume, OBJECT).await.unwrap() == b"other" && find().await.notes().is_empty());
        let old = find().await;
        volume.remove(&name(OBJECT)).await.unwrap();
        assert!(volume.renote(old, &notes("late"), None).await.is_err());
        let found = volume.find(&name(OBJECT), GetOptions::default()).await;
        assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn own_names_and_unknown_uploads_are_refused() {
    let disks = Disks::new(3);
    let volume = disks.volume("2+1").await;
    let put = volume.put(&name(".paritas/x"), Cursor::new(vec![1]), PutOptions::default()).await;
    assert_eq!(put.unwrap_err().kind(), ErrorKind::Parameters);
    for id in ["", "x", "../x", "0123456789abcdef-00"] {
        let error = volume.find_upload(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{id}: {error}");
    }
}

fn steady(file: &Path) -> SteadyFile {
    SteadyFile::new(File::open(file).unwrap(), file, String::new()).unwrap()
}

/// Puts a file in pieces until the second one is there, and then no further.
async fn interrupted(volume: &Volume, file: &Path) {
    let (enough, reached) = (150 << 20, Arc::new(tokio::sync::Notify::new()));
    let (told, done) = (Arc::clone(&reached), AtomicU64::new(0));
    let mut options = PutOptions::default();
    options.progress = Some(Arc::new(move |bytes| {
        if done.fetch_add(bytes, Ordering::Relaxed) + bytes > enough {
            told.notify_one();
        }
    }));
    let object = name(OBJECT);
    tokio::select! {
        done = volume.put_in_pieces(&object, steady(file), options) => panic!("{done:?}"),
        () = reached.notified() => {}
    }
}

/// Of the pieces of an earlier put, those are kept that can still be read.
#[tokio::test(flavor = "multi_thread")]
async fn pieces_that_are_lost_are_stored_again() {
    const CUT: usize = 32 << 20;
    let disks = Disks::new(4);
    let volume = disks.volume("2+2").await;
    let folder = tempfile::tempdir().unwrap();
    let (file, bytes) = (folder.path().join("film"), content(2 * CUT + 9));
    fs::write(&file, &bytes).unwrap();
    let upload = volume.begin_upload(&name(OBJECT), Notes::new()).await.unwrap();
    let notes: Notes = [("cut".to_owned(), CUT.to_string())].into();
    for (number, piece) in (1..).zip(bytes.chunks(CUT).take(2)) {
        let options = PutOptions::default().noting(&notes).unwrap();
        upload.put_piece(number, Cursor::new(piece.to_vec()), options).await.unwrap();
    }
    let stored = upload.pieces().await.unwrap();
    for (stored, lost) in stored.iter().zip([3, 1]) {
        let shards = shards_of(&disks, &stored.piece);
        shards[..lost].iter().for_each(|path| fs::remove_file(path).unwrap());
    }
    let (object, options) = (name(OBJECT), PutOptions::default());
    let put = volume.put_in_pieces(&object, steady(&file), options).await.unwrap();
    assert_eq!(put.kept_bytes, CUT as u64, "the second piece alone");
    assert!(put.report.is_owed && put.report.spare == 1, "{:?}", put.report);
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
}

/// A put in pieces goes on where it stopped, and keeps what has the bytes of the file alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_put_in_pieces_goes_on_where_it_stopped() {
    const PIECE: usize = 64 << 20;
    let disks = Disks::new(4);
    let volume = disks.volume("2+2").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("film");
    let mut bytes = content(PIECE).repeat(3);
    bytes.truncate(3 * PIECE - 5);
    fs::write(&file, &bytes).unwrap();
    let put = async || {
        volume.put_in_pieces(&name(OBJECT), steady(&file), PutOptions::default()).await.unwrap()
    };
    // An upload of another program is not continued.
    let other = volume.begin_upload(&name(OBJECT), Notes::new()).await.unwrap();
    put_piece(&other, 1, &bytes[..PIECE]).await;
    // Nor is one whose pieces are so short that the file would have too many.
    let short = volume.begin_upload(&name(OBJECT), Notes::new()).await.unwrap();
    let notes: Notes = [("cut".to_owned(), "16".to_owned())].into();
    let options = PutOptions::default().noting(&notes).unwrap();
    short.put_piece(1, Cursor::new(bytes[..16].to_vec()), options).await.unwrap();

    interrupted(&volume, &file).await;
    assert_eq!(listed(&volume, "").await, [""; 0], "nothing before");
    bytes[7] ^= 1;
    fs::write(&file, &bytes).unwrap();
    assert_eq!(put().await.kept_bytes, PIECE as u64, "the second piece alone");
    assert!(get(&volume, OBJECT).await.unwrap() == bytes);
    assert_eq!(volume.uploads().await.unwrap().len(), 2, "the other ones");
    let again = put().await;
    assert_eq!(again.kept_bytes, 0, "a put that was complete is not continued");
    // The manifests are on three nodes, and the pieces on all.
    assert_eq!((again.report.nodes.len(), again.report.is_inline), (4, false));

    // What fits into one piece is an object like any other.
    fs::write(&file, &bytes[..100_000]).unwrap();
    assert_eq!(put().await.kept_bytes, 0);
    assert!(get(&volume, OBJECT).await.unwrap() == bytes[..100_000]);

    // No object has content that the file never had.
    let changing = steady(&file);
    fs::write(&file, &bytes[..100_001]).unwrap();
    let error = volume.put_in_pieces(&name(OBJECT), changing, PutOptions::default()).await;
    let message = error.unwrap_err().to_string();
    assert!(message.contains("changed while it was read (from 100000 to 100001"), "{message}");
    assert!(get(&volume, OBJECT).await.unwrap() == bytes[..100_000]);
}
