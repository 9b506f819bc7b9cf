//! Tests of manifests. `vectors/volume` holds files that every later version must read.

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

fn listed(generation: u64, kind: VersionKind, length: u64) -> Listed {
    let object = ObjectId::new(std::array::from_fn(|at| at as u8));
    Listed { version: Version { generation, object }, kind, length }
}

fn inline() -> Manifest {
    let bytes = b"hello\n".to_vec();
    Manifest {
        volume: "f0e1d2c3b4a5968778695a4b3c2d1e0f".to_owned(),
        name: ObjectName::new("letters/to a friend").unwrap(),
        listed: listed(1, VersionKind::Put, 6),
        content: Some(Content {
            digest: Digest::new(blake3::hash(&bytes).into()),
            body: Body::Inline(bytes),
            mode: None,
            modified: None,
            notes: Notes::new(),
        }),
        created: 1_790_000_000,
    }
}

fn shards() -> Manifest {
    let placement = ["disk1", "disk2", "bucket"].map(str::to_owned).to_vec();
    let content = Content {
        digest: Digest::new([7; 32]),
        body: Body::Shards { code: "2+1".to_owned(), header: b"PRTS".to_vec(), placement },
        mode: Some(0o640),
        modified: Some(Timestamp { seconds: -1, nanoseconds: 999_999_999 }),
        notes: Notes::new(),
    };
    let listed = listed(0x2a, VersionKind::Put, 1 << 40);
    Manifest { content: Some(content), listed, ..inline() }
}

/// An object in two pieces, with notes.
fn pieces() -> Manifest {
    let piece = |number, length| Piece { number, length, digest: Digest::new([number as u8; 32]) };
    let pieces = vec![piece(1, 5 << 20), piece(3, 77)];
    let content = Content {
        digest: digest_of_pieces(&pieces),
        body: Body::Pieces { upload: "00112233".to_owned(), pieces },
        mode: None,
        modified: None,
        notes: [("content-type".to_owned(), "video/webm".to_owned())].into(),
    };
    let listed = listed(0x2c, VersionKind::Put, (5 << 20) + 77);
    Manifest { content: Some(content), listed, ..inline() }
}

fn removed() -> Manifest {
    Manifest { content: None, listed: listed(0x2b, VersionKind::Removed, 0), ..inline() }
}

#[test]
fn stored_manifests_are_read_for_ever() {
    let vectors: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../vectors/volume/v1"].iter().collect();
    for manifest in [inline(), shards(), removed()] {
        let stored = std::fs::read(vectors.join(manifest.path())).unwrap();
        assert_eq!(Manifest::from_bytes(&manifest.path(), &stored).unwrap(), manifest);
        assert_eq!(manifest.to_bytes().unwrap(), stored);
    }
    let stored = std::fs::read(vectors.join("../v2").join(pieces().path())).unwrap();
    assert_eq!(Manifest::from_bytes(&pieces().path(), &stored).unwrap(), pieces());
    assert_eq!(pieces().to_bytes().unwrap(), stored);
}

/// Returns why the manifest with `from` replaced by `to` in its first line is refused.
fn refusal(manifest: &Manifest, from: &str, to: &str) -> String {
    let text = String::from_utf8(manifest.to_bytes().unwrap()).unwrap();
    let line = text.lines().next().unwrap();
    assert!(line.contains(from), "{line}");
    let line = line.replacen(from, to, 1);
    let bytes = format!("{line}\n{}\n", blake3::hash(line.as_bytes()));
    let error = Manifest::from_bytes(&manifest.path(), bytes.as_bytes()).unwrap_err();
    // A whole manifest at another's path is not damaged, but a stranger there.
    let is_stranger = error.to_string().contains("the content is that of");
    assert_eq!(error.kind(), if is_stranger { ErrorKind::NotRecognised } else { ErrorKind::Io });
    error.to_string()
}

#[test]
fn contradictions_are_refused_by_name() {
    let cases = [
        (inline(), "\"format\":1", "\"format\":3,\"more\":0", "its format is 3"),
        (pieces(), "\"format\":2", "\"format\":1", "has neither pieces nor notes"),
        (pieces(), "\"00112233\"", "\"..\"", "no component of a name"),
        (pieces(), "\"00112233\"", "\"a/..\"", "no component of a name"),
        (pieces(), "[1,5242880", "[3,5242880", "the numbers of its pieces do not ascend"),
        (pieces(), "[1,5242880", "[1,5242881", "its pieces do not have 5242957 bytes"),
        (pieces(), "[3,77,\"03", "[3,77,\"04", "its pieces do not have the digest"),
        (pieces(), "\"upload\"", "\"code\"", "either content, or code, header and placement"),
        (inline(), "\"generation\":1", "\"generation\":2", "the content is that of manifests/"),
        (inline(), "letters/to", "letters/by", "the content is that of manifests/letters/by"),
        (inline(), "letters/to", "letters//to", "component 2"),
        (inline(), "\"length\":6", "\"length\":7", "its content has 6 bytes, its length is 7"),
        (inline(), "aGVsbG8K", "aGVsbG9v", "not have the digest"),
        (inline(), "\"kind\":\"put\"", "\"kind\":\"got\"", "its kind \"got\" is unknown"),
        (inline(), "\"created\"", "\"made\"", "unknown field `made`"),
        (inline(), "\"content\"", "\"code\"", "either content, or code, header and placement"),
        (shards(), "\"mode\":416", "\"mode\":4096", "its mode is 10000"),
        (shards(), "999999999", "1000000000", "has 1000000000 nanoseconds"),
        (shards(), "\"2+1\"", "\"\"", "code has 0 bytes"),
        (shards(), "disk2", "disk\\n", "placement has a control character"),
        (removed(), "\"created\"", "\"mode\":1,\"created\"", "removes the name, but"),
        (removed(), "\"length\":0", "\"length\":1", "removes the name, but"),
    ];
    for (manifest, from, to, flaw) in cases {
        let refusal = refusal(&manifest, from, to);
        assert!(refusal.contains(flaw), "{from} -> {to}: {refusal}");
    }
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let mut manifest = shards();
    let Some(Content { body: Body::Shards { placement, .. }, .. }) = &mut manifest.content else {
        panic!("the object is in shards");
    };
    *placement = vec!["disk".to_owned(); MOST_PLACES + 1];
    let error = manifest.to_bytes().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters);
    assert!(error.to_string().contains("names 4097 nodes"), "{error}");
    // A listing ignores a file with such a generation as foreign.
    let late = Manifest { listed: listed(1 << 63, VersionKind::Put, 6), ..inline() };
    let error = late.to_bytes().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Parameters);
    assert!(error.to_string().contains("/8000000000000000-"), "{error}");
}

#[test]
fn any_damage_is_seen() {
    let manifest = inline();
    let bytes = manifest.to_bytes().unwrap();
    let read = |bytes: &[u8]| Manifest::from_bytes(&manifest.path(), bytes);
    for at in 0..bytes.len() {
        assert!(read(&bytes[..at]).is_err(), "cut after {at} bytes");
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(read(&damaged).is_err(), "byte {at} changed");
    }
}

proptest! {
    #[test]
    fn manifests_survive_their_bytes(
        name in "\\PC{1,20}", bytes: Vec<u8>, mode in proptest::option::of(0..=MOST_MODE),
        time in proptest::option::of((any::<i64>(), 0..NANOSECONDS)), generation in 0..1u64 << 63,
        notes in proptest::collection::btree_map(".{0,9}", ".{0,9}", 0..4),
    ) {
        let Ok(name) = ObjectName::new(name) else { return Ok(()) };
        let listed = listed(generation, VersionKind::Put, bytes.len() as u64);
        let content = Content {
            digest: Digest::new(blake3::hash(&bytes).into()),
            body: Body::Inline(bytes),
            mode,
            modified: time.map(|(seconds, nanoseconds)| Timestamp { seconds, nanoseconds }),
            notes,
        };
        let manifest = Manifest { name, listed, content: Some(content), ..inline() };
        let read = Manifest::from_bytes(&manifest.path(), &manifest.to_bytes().unwrap());
        prop_assert_eq!(read.unwrap(), manifest);
    }

    #[test]
    fn any_line_is_read_without_panic(line in "\\PC{0,40}") {
        let bytes = format!("{line}\n{}\n", blake3::hash(line.as_bytes()));
        prop_assert!(Manifest::from_bytes("manifests/a@/", bytes.as_bytes()).is_err());
    }
}
