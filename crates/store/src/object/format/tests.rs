use super::*;
use proptest::prelude::*;

fn identity() -> Identity {
    let code = paritas::Code::new(&"4+2".parse().unwrap()).unwrap();
    let mut identity = Identity::new(&code, OsStr::new("name"), ObjectId([7; 16]));
    (identity.packet, identity.stripes) = (64, 256);
    identity
}

fn records() -> [Record; 8] {
    let total = Total { length: 1 << 40, digest: Digest([9; 32]) };
    let hinted = Identity { length_hint: Some(5), ..identity() };
    let modified = Some(Timestamp { seconds: -86_401, nanoseconds: 999_999_999 });
    let attributed = Identity { mode: Some(0o4750), modified, ..identity() };
    [
        Record::new(identity(), 0, 1, None),
        Record::new(identity(), 5, 1, Some(total)),
        Record::new(hinted, 5, 1, Some(total)),
        Record::new(identity(), 0, 2, None),
        Record::new(identity(), 5, 255, Some(total)),
        Record::new(attributed.clone(), 5, 1, Some(total)),
        Record::new(Identity { mode: None, ..attributed.clone() }, 0, 2, None),
        Record::new(Identity { modified: None, ..attributed }, 0, 1, None),
    ]
}

fn kind_of(record: &Record) -> RecordKind {
    if record.total.is_some() { RecordKind::Footer } else { RecordKind::Front }
}

/// Returns the bytes of a record without trailer.
fn bytes_of(record: &Record) -> Vec<u8> {
    let mut bytes = record.to_bytes().unwrap();
    if record.total.is_some() {
        bytes.truncate(bytes.len() - TRAILER);
    }
    bytes
}

#[test]
fn records_come_back() {
    for record in records() {
        let bytes = bytes_of(&record);
        assert_eq!(record_length(&bytes[..PREFIX], kind_of(&record)), Ok(bytes.len()));
        assert_eq!(Record::parse(&bytes, kind_of(&record)), Ok(record));
    }
}

/// Records that old readers can understand are written in the version that they know.
#[test]
fn versions_follow_from_the_keys() {
    let versions = records().map(|record| u16_at(&bytes_of(&record), 8).unwrap());
    assert_eq!(versions, [1, 1, 1, 2, 2, 3, 3, 3]);
}

#[test]
fn the_trailer_leads_to_the_footer() {
    let bytes = records()[1].to_bytes().unwrap();
    let trailer = bytes.last_chunk().unwrap();
    assert_eq!(footer_length(trailer), Some(bytes.len() - TRAILER));
    for at in 0..TRAILER {
        let mut wrong = *trailer;
        wrong[at] ^= 0x80;
        assert_ne!(footer_length(&wrong), Some(bytes.len() - TRAILER));
    }
}

#[test]
fn every_flipped_bit_is_seen() {
    for record in records() {
        let bytes = bytes_of(&record);
        for bit in 0..8 * bytes.len() {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::parse(&wrong, kind_of(&record)).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let change = |change: fn(&mut Record)| {
        let mut record = records()[2].clone();
        change(&mut record);
        Record::parse(&bytes_of(&record), RecordKind::Footer).unwrap_err().to_string()
    };
    let total = |record: &mut Record| record.total.as_mut().unwrap().length = 1 << 63;
    assert!(change(total).contains("a length of 9223372036854775808 bytes"));
    assert!(change(|r| r.shard = 6).contains("shard 6 of 6"));
    assert!(change(|r| r.identity.shards = 0).contains("without stripes or shards"));
    assert!(change(|r| r.identity.stripes = 0).contains("without stripes or shards"));
    assert!(change(|r| r.identity.packet = 0).contains("a packet of 0 bytes"));
    assert!(change(|r| r.identity.packet = 1 << 21).contains("1 to 1048576 are legal"));
    assert!(change(|r| r.identity.name = b"a/b".to_vec()).contains('/'));
    assert!(change(|r| r.identity.name = vec![b'x'; 256]).contains("256 bytes"));
    assert!(change(|r| r.identity.layout = "bits".to_owned()).contains("`bits`"));
    for (stage, version) in [(Some(1), 2), (Some(0), 2)] {
        let mut record = records()[0].clone();
        record.later_stage = stage;
        let body = record.body().unwrap();
        let error = Record::parse(&sealed_as(version, &body, RecordKind::Front), RecordKind::Front);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&format!("in version {version}")), "{error}");
    }
    for (record, versions) in records().iter().zip([[2, 3], [2, 3], [2, 3], [1, 3], [1, 3]]) {
        for version in versions {
            let bytes = sealed_as(version, &record.body().unwrap(), kind_of(record));
            let error = Record::parse(&bytes, kind_of(record)).unwrap_err().to_string();
            assert!(error.contains(&format!("in version {version}")), "{error}");
        }
    }
    assert!(change(|r| r.identity.mode = Some(0o10000)).contains("the mode 10000 (octal)"));
    let time = Timestamp { seconds: 0, nanoseconds: 1_000_000_000 };
    let mut record = records()[0].clone();
    record.identity.modified = Some(time);
    let error = Record::parse(&bytes_of(&record), RecordKind::Front).unwrap_err().to_string();
    assert!(error.contains("1000000000 nanoseconds"), "{error}");
    for version in [0, 4] {
        let strange = Record::parse(&sealed_as(version, &[], RecordKind::Front), RecordKind::Front);
        assert_eq!(strange, Err(RecordFlaw::Version(version)));
    }
    let front = bytes_of(&records()[0]);
    let kind = Record::parse(&front, RecordKind::Footer).unwrap_err().to_string();
    assert!(kind.contains("kind 1, not 2"), "{kind}");
}

#[test]
fn checksums_are_those_of_the_catalogue() {
    assert_eq!(checksum(CrcAlgorithm::Crc64Nvme, b"123456789"), 0xAE8B_1486_0A79_9888);
    // The checksum depends on everything: each change changes it.
    let sum = |id, shard, block, lane, payload: &[u8]| {
        lane_checksum(ObjectId([id; 16]), shard, block, lane, payload)
    };
    let one = sum(1, 2, 3, 4, b"payload");
    for other in [
        sum(0, 2, 3, 4, b"payload"),
        sum(1, 3, 3, 4, b"payload"),
        sum(1, 2, 4, 4, b"payload"),
        sum(1, 2, 3, 5, b"payload"),
        sum(1, 2, 3, 4, b"Payload"),
    ] {
        assert_ne!(one, other);
    }
}

#[test]
fn ids_are_text() {
    let id: ObjectId = "000102030405060708090a0b0c0d0e0F".parse().unwrap();
    assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0e0f");
    assert!("+00102030405060708090a0b0c0d0e0F".parse::<ObjectId>().is_err());
    assert!("00".parse::<ObjectId>().is_err());
    assert_ne!(ObjectId::random().unwrap(), ObjectId::random().unwrap());
}

/// Returns a record with any body and a correct checksum, so that parsing reaches the body.
fn sealed_as(version: u16, body: &[u8], kind: RecordKind) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend((kind as u16).to_le_bytes());
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    bytes.extend(checksum(CrcAlgorithm::Crc64Nvme, &bytes).to_le_bytes());
    bytes
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for kind in [RecordKind::Front, RecordKind::Footer] {
            prop_assert!(Record::parse(&bytes, kind).is_err());
            for version in 1..=3 {
                let _ = Record::parse(&sealed_as(version, &bytes, kind), kind);
            }
        }
    }

    #[test]
    fn nothing_panics_on_changed_bodies(
        at in any::<proptest::sample::Index>(),
        with in proptest::collection::vec(any::<u8>(), 0..12),
        removed in 0_usize..12,
    ) {
        for record in records() {
            let mut body = record.body().unwrap();
            let start = at.index(body.len());
            let end = (start + removed).min(body.len());
            body.splice(start..end, with.iter().copied());
            // A record that parses would be written with the same bytes.
            let kind = kind_of(&record);
            let bytes = sealed_as(record.version(), &body, kind);
            if let Ok(read) = Record::parse(&bytes, kind) {
                prop_assert_eq!(read.body().unwrap(), body);
            }
        }
    }
}
