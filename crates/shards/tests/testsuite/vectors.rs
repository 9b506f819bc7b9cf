//! The shard files in `vectors/shards/` must stay readable for ever.
//!
//! They were written once, by `write_missing_cases` below (`PARITAS_WRITE_VECTORS=1` adds new
//! ones), and are never written again: a change of this crate that cannot read them is wrong.
//! `index.json` describes each case and what readers must find in it, for readers in any language.
//! Besides this crate's own reader, `reader.rs` has one that is written from the format essay
//! alone.

use crate::common;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::common::{
    check, content, crc64_nvme, edit, files, footer_start, front_length, get, kind, look, mend,
    only, put, small_job,
};
use paritas_shards::{
    Attributes, ErrorKind, ObjectId, PromoteJob, ShardState, Timestamp, VerifyReport, promote,
};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/shards/v1")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bad_shards(report: &VerifyReport) -> Vec<usize> {
    let bad = report.shards.iter().filter(|shard| shard.state != ShardState::Intact);
    bad.map(|shard| shard.index).collect()
}

#[test]
fn every_case_is_as_the_index_says() {
    if std::env::var_os("PARITAS_WRITE_VECTORS").is_some() {
        write_missing_cases();
    }
    let index = fs::read_to_string(root().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let cases = index["cases"].as_array().unwrap();
    assert!(cases.len() >= 16);
    for case in cases {
        let name = case["directory"].as_str().unwrap();
        let inventory = look(&root().join(name));
        let Some(object) = inventory.objects.first() else {
            assert_eq!(case["verify"], "unrecognised", "{name}: {:?}", inventory.ignored);
            let part = case["reason"].as_str().unwrap();
            assert!(inventory.ignored.iter().all(|i| i.reason.contains(part)), "{inventory:?}");
            continue;
        };
        assert_eq!(inventory.objects.len(), 1, "{name}");
        let found = describe(object);
        for (key, value) in found.as_object().unwrap() {
            // Cases of one stage do not state it, and those from before version 3 have no mode or
            // time.
            let default = if key == "stage" { json!(1) } else { Value::Null };
            assert_eq!(case.get(key).unwrap_or(&default), value, "{name}: {key}");
        }
    }
}

/// Checks everything that the index says about an object.
fn describe(object: &paritas_shards::Object) -> Value {
    use std::os::unix::ffi::OsStrExt;
    let report = check(object);
    let decode = match get(object) {
        Ok((bytes, report)) => {
            assert_eq!(blake3::hash(&bytes).as_bytes(), report.digest.as_bytes());
            "right"
        }
        Err(error) if error.kind() == ErrorKind::TooFewShards => "too few shards",
        Err(error) if error.kind() == ErrorKind::DigestMismatch => "digest mismatch",
        Err(error) => panic!("{error}"),
    };
    json!({
        "id": object.id().to_string(),
        "name": hex(object.name().as_bytes()),
        "code": object.code().spec().to_string(),
        "packet": object.packet(),
        "stripes": object.stripes(),
        "shards": object.shard_count(),
        "stage": object.stage(),
        "mode": object.mode(),
        "modified": object.modified().map(|time| json!([time.seconds, time.nanoseconds])),
        "length": object.length(),
        "blake3": object.digest().map(|digest| digest.to_string()),
        "verify": report.status.name(),
        "bad_shards": bad_shards(&report),
        "tolerable": report.tolerable,
        "lost": report.lost.iter().map(|lost| [lost.start, lost.end]).collect::<Vec<_>>(),
        "decode": decode,
    })
}

#[test]
fn checksums_are_published() {
    let index = fs::read_to_string(root().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let sums = index["checksums"].as_array().unwrap();
    assert!(sums.len() >= 4);
    for sum in sums {
        assert_eq!(sum["crc64_nvme"], checksum(sum), "{sum}");
    }
}

/// Computes the checksum of a lane, bit by bit.
fn checksum(of: &Value) -> String {
    let bytes = |key: &str| -> Vec<u8> {
        let text = of[key].as_str().unwrap();
        (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..][..2], 16).unwrap()).collect()
    };
    let number = |key: &str| of[key].as_u64().unwrap();
    let mut fed = bytes("object");
    fed.extend((number("shard") as u32).to_le_bytes());
    fed.extend(number("block").to_le_bytes());
    fed.extend((number("lane") as u32).to_le_bytes());
    fed.extend(bytes("payload"));
    hex(&crc64_nvme(&fed).to_le_bytes())
}

/// Copies a case to a directory in which it may be changed.
fn copied(case: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, bytes) in files(&root().join(case)) {
        fs::write(directory.path().join(path.file_name().unwrap()), bytes).unwrap();
    }
    directory
}

/// A repaired shard has the records of the object's version, byte for byte, whichever shard is
/// missing.
#[test]
fn repair_keeps_the_version() {
    for case in ["cauchy-4-2", "dpg-stage-2", "attributes", "attributes-stage-2"] {
        let directory = copied(case);
        let whole = files(directory.path());
        // Without its only file of stage 2, an object is whole in stage 1.
        for path in whole.keys().filter(|path| !path.ends_with("object.4of5.paritas")) {
            fs::remove_file(path).unwrap();
            mend(&only(directory.path())).unwrap();
            assert!(files(directory.path()) == whole, "{case}: {}", path.display());
        }
    }
}

#[test]
fn promotion_keeps_the_version() {
    for (case, version) in [("dpg-stage-1", 2), ("attributes-stage-2", 3)] {
        let directory = copied(case);
        let last = directory.path().join("object.4of5.paritas");
        let removed = fs::read(&last).ok();
        let _ = fs::remove_file(&last);
        promoted(&[last.with_file_name("object.0of5.paritas")]);
        let made = fs::read(&last).unwrap();
        assert_eq!(made[8..10], [version, 0], "{case}");
        assert!(removed.is_none_or(|removed| removed == made), "{case}");
    }
}

// The rest of this file wrote the vectors.

/// A case: its directory, its description, code and length, and the changes to its files.
type Case = (&'static str, &'static str, &'static str, usize, fn(&[PathBuf]));

fn flip(path: &Path, at: usize) {
    edit(path, |bytes| bytes[at] ^= 0x10);
}

fn remove(paths: &[PathBuf]) {
    paths.iter().for_each(|path| fs::remove_file(path).unwrap());
}

/// Changes the digest in a footer, and corrects the checksum.
fn forge_digest(path: &Path) {
    edit(path, |bytes| {
        let start = footer_start(bytes);
        common::forge(bytes, start, |record| {
            let last = record.len() - 1;
            record[last] ^= 1;
        });
    });
}

const CASES: [Case; 34] = [
    ("cauchy-4-2", "three segments, the last one short", "4+2", 2000, |_| {}),
    ("cauchy-points", "points of its own", "cauchy:k=3,m=2,w=4,points=9.3.12.1.7", 1500, |_| {}),
    ("cauchy-wide", "17 shards: padded indices", "cauchy:k=14,m=3", 700, |_| {}),
    ("rdp-4", "a lane for every row", "rdp:k=4", 2500, |_| {}),
    ("evenodd-3-of-5", "shortened", "evenodd:k=3,p=5", 1000, |_| {}),
    ("empty", "an empty object", "4+2", 0, |_| {}),
    ("one-byte", "an object of one byte", "1+1", 1, |_| {}),
    (
        "renamed",
        "files have names of their own; the object's name is no UTF-8",
        "2+1",
        333,
        |paths| {
            for (path, name) in paths.iter().zip(["one", "two", "three"]) {
                fs::rename(path, path.with_file_name(name)).unwrap();
            }
        },
    ),
    ("missing-two", "shards 0 and 4 are missing", "4+2", 2000, |paths| {
        remove(&[paths[0].clone(), paths[4].clone()]);
    }),
    (
        "damaged-everywhere",
        "no shard is intact, but every segment has four good ones",
        "4+2",
        2000,
        |paths| {
            let block = |shard: usize, block: usize| {
                let front = front_length(&fs::read(&paths[shard]).unwrap());
                flip(&paths[shard], front + block * 200 + 50);
            };
            (0..6).for_each(|shard| block(shard, shard / 2));
        },
    ),
    (
        "cut-extended-shifted",
        "shard 0 is cut, 1 extended, 2 has bytes inserted, 3 bytes removed",
        "4+2",
        4000,
        |paths| {
            edit(&paths[0], |bytes| bytes.truncate(front_length(bytes) + 450));
            edit(&paths[1], |bytes| bytes.extend(b"and so on"));
            edit(&paths[2], |bytes| {
                let at = front_length(bytes) + 1000;
                bytes.splice(at..at, *b"inserted");
            });
            edit(&paths[3], |bytes| {
                let at = front_length(bytes) + 700;
                bytes.drain(at..at + 5);
            });
        },
    ),
    (
        "fronts-gone",
        "all front headers are destroyed; the footers serve",
        "rdp:k=4",
        1500,
        |paths| {
            paths.iter().for_each(|path| flip(path, 40));
        },
    ),
    ("one-footer", "all footers but one are cut off", "4+2", 1500, |paths| {
        paths[1..].iter().for_each(|p| edit(p, |bytes| bytes.truncate(footer_start(bytes))));
    }),
    ("bad-three-missing", "one shard too many is missing", "4+2", 2000, |paths| {
        remove(&paths[1..4])
    }),
    (
        "bad-segment",
        "segment 1 has three good shards of the four that it needs",
        "4+2",
        2000,
        |paths| {
            paths[..3].iter().for_each(|path| {
                let front = front_length(&fs::read(path).unwrap());
                flip(path, front + 250);
            });
        },
    ),
    ("bad-no-footer", "all footers are cut off: the length is unknown", "4+2", 600, |paths| {
        paths.iter().for_each(|p| edit(p, |bytes| bytes.truncate(footer_start(bytes))));
    }),
    (
        "bad-digest",
        "every footer states a wrong digest, with a right checksum",
        "2+1",
        600,
        |paths| {
            paths.iter().for_each(|path| forge_digest(path));
        },
    ),
    ("bad-version", "every record is of version 2", "2+1", 600, |paths| {
        for path in paths {
            edit(path, |bytes| {
                let footer = footer_start(bytes);
                common::forge(bytes, footer, |record| record[8] = 2);
                common::forge(bytes, 0, |record| record[8] = 2);
            });
        }
    }),
    ("several-stripes", "segments of 4 stripes, the last one of 2", "4+2", 10_000, |_| {}),
    ("xcode-5", "data and parity on every node", "xcode:n=5", 2500, |_| {}),
    (
        "matrix-local",
        "a bit matrix of one's own that is not MDS: two groups and their sum",
        "matrix:k=4,m=3,w=1,rows=c.3.f",
        1500,
        |_| {},
    ),
    (
        "matrix-vertical",
        "a bit matrix of one's own: data and parity on every node",
        "matrix:k=3,m=2,w=5,placement=vertical,rows=0222.0540.2044.00a8.4408.8014.8880.5002.1110.2a00",
        2500,
        |_| {},
    ),
    ("dpg-stage-1", "two stages, the first done", "dpg:k=3,m=1,m2=2", 5000, |_| {}),
    ("dpg-stage-2", "both done: a shard more", "dpg:k=3,m=1,m2=2", 5000, promoted),
    ("bbdpg-all-stage-1", "on all nodes from the start", BBDPG_ALL, 9000, |_| {}),
    ("bbdpg-all-stage-2", "a second part of three shards", BBDPG_ALL, 9000, promoted),
    (
        "bbdpg-all-one-part",
        "one second part, which makes all others missing",
        BBDPG_ALL,
        9000,
        |paths| {
            promoted(paths);
            let name = |shard| format!("object.{shard}of6.stage2.paritas");
            remove(&[0, 1].map(|shard| paths[0].with_file_name(name(shard))));
        },
    ),
    (
        "bad-dpg",
        "after stage one, one shard too many is missing",
        "dpg:k=3,m=1,m2=2",
        5000,
        |paths| remove(&paths[1..3]),
    ),
    (
        "lt-plain",
        "an LT code; three segments",
        "lt:k=10,n=24,nodes=6,c=0.1,delta=0.5,variant=plain,seed=0",
        1500,
        |_| {},
    ),
    (
        "lt-originals",
        "data blocks among the blocks; shards of different lengths",
        "lt:k=10,n=27,nodes=5,c=0.3,delta=0.5,variant=originals,seed=0",
        900,
        |_| {},
    ),
    (
        "lt-one",
        "copies of one data block",
        "lt:k=1,n=3,c=0.1,delta=0.5,variant=plain,seed=0",
        100,
        |_| {},
    ),
    (
        "lt-damaged",
        "two shards are missing, and a block of every other one is damaged",
        "lt:k=10,n=36,nodes=6,c=0.1,delta=0.5,variant=uniform+decodable,seed=0",
        1000,
        |paths| {
            remove(&paths[..2]);
            for (block, path) in paths[2..].iter().enumerate() {
                let front = front_length(&fs::read(path).unwrap());
                flip(path, front + block * 72 + 30);
            }
        },
    ),
    ("attributes", "mode and time of the source: version 3", "4+2", 2000, |_| {}),
    (
        "attributes-stage-2",
        "mode and time, before 1970, of an object in stage 2: version 3 in both stages",
        "dpg:k=3,m=1,m2=2",
        5000,
        promoted,
    ),
];

/// Returns the mode and time of the sources of cases that have them.
fn attributes(case: &str) -> Attributes {
    let (mode, seconds, nanoseconds) = match case {
        "attributes" => (0o640, 1_700_000_000, 123_456_789),
        "attributes-stage-2" => (0o4755, -1, 999_999_999),
        _ => return Attributes::default(),
    };
    let modified = Some(Timestamp { seconds, nanoseconds });
    Attributes { mode: Some(mode), modified, owner: None }
}

const BBDPG_ALL: &str = "bbdpg:k=3,m=2,m2=3,interleave=all";

/// Promotes an object to stage 2.
fn promoted(paths: &[PathBuf]) {
    let job = PromoteJob::default().sync(false).threads(NonZeroUsize::new(1));
    promote(&only(paths[0].parent().unwrap()), &job, &|_| {}).unwrap();
}

/// Adds the cases of [`CASES`] that are missing; existing ones stay as they are.
fn write_missing_cases() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    fs::create_dir_all(root()).unwrap();
    let path = root().join("index.json");
    let old: Value = fs::read_to_string(&path)
        .map_or_else(|_| json!({"cases": []}), |text| serde_json::from_str(&text).unwrap());
    let mut cases = Vec::new();
    for (number, (name, about, spec, length, happen)) in CASES.into_iter().enumerate() {
        let directory = root().join(name);
        if directory.exists() {
            let known = old["cases"].as_array().unwrap().iter().find(|c| c["directory"] == name);
            cases.push(known.unwrap().clone());
            continue;
        }
        fs::create_dir(&directory).unwrap();
        let mut job = small_job(spec, &directory);
        job.packet = None;
        job.attributes = attributes(name);
        job.object =
            Some(ObjectId::new(*blake3::hash(name.as_bytes()).as_bytes().first_chunk().unwrap()));
        job.length_hint = (number % 2 == 0).then_some(length as u64);
        if name == "several-stripes" {
            job.block_bytes = 4 * 3 * 64;
        }
        if name == "renamed" {
            job.name = OsStr::from_bytes(b"caf\xe9").to_owned();
        }
        happen(&put(&job, &content(length)).shards);
        let inventory = look(&directory);
        let mut case = inventory
            .objects
            .first()
            .map_or_else(|| json!({"verify": "unrecognised", "reason": "version 2"}), describe);
        case["directory"] = name.into();
        case["about"] = about.into();
        cases.push(case);
    }
    let sums = [
        (0, 0, 0, &b""[..]),
        (1, 0, 0, b"123456789"),
        (65535, 1_u64 << 40, 3, &[0; 64]),
        (2, 1, 255, &[255; 65]),
    ];
    let sums = sums.map(|(shard, block, lane, payload)| {
        let mut sum = json!({
            "object": hex(b"0123456789abcdef"), "shard": shard, "block": block, "lane": lane as u64,
            "payload": hex(payload),
        });
        sum["crc64_nvme"] = checksum(&sum).into();
        sum
    });
    let index = json!({
        "about": "Shard files of versions 1 to 3 of the format; see crates/store/src/object/format.rs. Names and checksums are hexadecimal. The mode of a case is a number, its time of change an array of seconds since 1970 and nanoseconds.",
        "cases": cases,
        "checksums": sums,
    });
    fs::write(path, serde_json::to_string_pretty(&index).unwrap() + "\n").unwrap();
}

#[test]
fn known_bad_cases_are_refused() {
    for (name, expected) in [
        ("bad-three-missing", ErrorKind::TooFewShards),
        ("bad-segment", ErrorKind::TooFewShards),
        ("bad-no-footer", ErrorKind::TooFewShards),
        ("bad-digest", ErrorKind::DigestMismatch),
        ("bad-dpg", ErrorKind::TooFewShards),
    ] {
        let inventory = look(&root().join(name));
        assert_eq!(kind(get(&inventory.objects[0])), expected, "{name}");
    }
}
