//! An encoded object as the gauntlet sees it: its bytes, its shards, and the layout of a shard. The
//! layout is implemented here by hand, from the essay in `crates/store/src/object/format.rs`, so
//! that the tests do not rely on the program's own reader.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::common::{self, Chance, crc64_nvme, exit, run};

/// Magic, version, kind, length of the body.
const PREFIX: usize = 16;
const CRC: usize = 8;
const TRAILER: usize = 16;
const DIGEST: usize = 32;

/// A code of the gauntlet.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    pub spec: &'static str,
    pub data: usize,
    pub parity: usize,
    /// Number of separately checksummed parts of a block.
    pub lanes: usize,
    /// Whether the object is promoted before it is damaged.
    pub promoted: bool,
    /// Number of lanes that the user's bytes of a segment fill.
    pub data_lanes: usize,
    /// Whether the length of segments depends on the object.
    pub fitted: bool,
}

impl Family {
    /// Creates a code whose data fills `data` nodes, or is spread evenly over all nodes.
    pub const fn new(spec: &'static str, data: usize, parity: usize, lanes: usize) -> Self {
        let data_lanes = data * lanes;
        Self { spec, data, parity, lanes, promoted: false, data_lanes, fitted: false }
    }

    /// Creates a code with two stages, both of which are computed.
    pub const fn promoted(spec: &'static str, data: usize, parity: usize, lanes: usize) -> Self {
        Self { promoted: true, ..Self::new(spec, data, parity, lanes) }
    }

    /// Creates a code that cuts an object into segments of equal length.
    pub const fn fitted(
        spec: &'static str,
        data: usize,
        parity: usize,
        lanes: usize,
        data_lanes: usize,
    ) -> Self {
        Self { data_lanes, fitted: true, ..Self::new(spec, data, parity, lanes) }
    }

    pub fn shards(&self) -> usize {
        self.data + self.parity
    }

    /// Returns the number of the user's bytes in a full segment, as `info` states it.
    pub fn segment(&self) -> usize {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("probe");
        fs::write(&file, b"probe").unwrap();
        let shards = folder.path().join("shards");
        common::encode(&file, &shards, self.spec, &[]);
        segment_of(&shards)
    }
}

fn segment_of(shards: &Path) -> usize {
    let info = run(args!["info", shards, "--json"]).expect(exit::DONE).result();
    info["segment_bytes"].as_u64().unwrap() as usize
}

/// A shard as it was written.
#[derive(Debug, Clone)]
pub struct Shard {
    pub name: OsString,
    pub bytes: Vec<u8>,
    /// The blocks, between front header and footer.
    pub blocks: Range<usize>,
    /// The range of the footer with the object's length and digest.
    total: Range<usize>,
}

impl Shard {
    /// Creates the description of a shard of an object of this length.
    fn new(name: OsString, bytes: Vec<u8>, length: u64) -> Self {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let front = PREFIX + number(12) + CRC;
        let footer = bytes.len() - TRAILER - number(bytes.len() - TRAILER);
        // A map of four keys instead of three ends with the stage: a key and a small number.
        let stage = if bytes[footer + PREFIX] == 0xa4 { 2 } else { 0 };
        let end = bytes.len() - TRAILER - CRC - stage;
        let total = end - total(length, [0; DIGEST]).len()..end;
        Self { name, blocks: front..footer, bytes, total }
    }

    pub fn front(&self) -> Range<usize> {
        0..self.blocks.start
    }

    pub fn footer(&self) -> Range<usize> {
        self.blocks.end..self.bytes.len()
    }

    /// Returns the checksum of the last lane.
    pub fn last_checksum(&self) -> Range<usize> {
        self.blocks.end - CRC..self.blocks.end
    }

    /// Returns the shard with another length and digest in its footer. Everything else is right,
    /// including the checksum.
    pub fn with_total(&self, length: u64, digest: [u8; DIGEST]) -> Vec<u8> {
        let record = &self.bytes[self.blocks.end..];
        let body = &self.bytes[self.blocks.end + PREFIX..self.total.start];
        let stage = &self.bytes[self.total.end..self.bytes.len() - TRAILER - CRC];
        let body = [body, &total(length, digest), stage].concat();
        let size = (body.len() as u32).to_le_bytes();
        let mut record = [&record[..PREFIX - 4], &size, &body].concat();
        record.extend(crc64_nvme(&record).to_le_bytes());
        let size = (record.len() as u32).to_le_bytes();
        let trailer = &self.bytes[self.bytes.len() - TRAILER + 4..];
        [&self.bytes[..self.blocks.end], &record, &size, trailer].concat()
    }

    pub fn digest(&self) -> [u8; DIGEST] {
        self.bytes[self.total.end - DIGEST..self.total.end].try_into().unwrap()
    }
}

/// Returns the length and digest of a footer in CBOR: {0: length, 1: digest}.
fn total(length: u64, digest: [u8; DIGEST]) -> Vec<u8> {
    let bytes = length.to_be_bytes();
    let number = match length {
        0..24 => bytes[7..].to_vec(),
        24..0x100 => [&[0x18], &bytes[7..]].concat(),
        0x100..0x1_0000 => [&[0x19], &bytes[6..]].concat(),
        0x1_0000..0x1_0000_0000 => [&[0x1a], &bytes[4..]].concat(),
        _ => [&[0x1b], &bytes[..]].concat(),
    };
    [&[0xa2, 0x00], &number[..], &[0x01, 0x58, DIGEST as u8], &digest].concat()
}

#[test]
fn the_forging_checksum_is_the_catalogues() {
    assert_eq!(crc64_nvme(b"123456789"), 0xAE8B_1486_0A79_9888);
}

/// An object with its shards.
#[derive(Debug)]
pub struct Specimen {
    pub family: Family,
    pub content: Vec<u8>,
    pub name: String,
    pub id: String,
    pub shards: Vec<Shard>,
    segment: usize,
}

impl Specimen {
    /// Encodes seeded bytes.
    pub fn new(
        family: Family,
        length: usize,
        segment: usize,
        name: &str,
        chance: &mut Chance,
    ) -> Self {
        let content = chance.bytes(length);
        let folder = tempfile::tempdir().unwrap();
        let (file, shards) = (folder.path().join(name), folder.path().join("shards"));
        fs::write(&file, &content).unwrap();
        let report = common::encode(&file, &shards, family.spec, &[]);
        assert_eq!(report["digest"], blake3::hash(&content).to_hex().as_str());
        assert_eq!(report["length"], length as u64);
        let mut paths = common::shard_paths(&report);
        if family.promoted {
            let promote = args!["promote", &shards, "--no-sync", "--json"];
            let report = run(promote).expect(exit::DONE).result();
            let added = report["added"].as_array().unwrap();
            paths.extend(added.iter().map(|part| part["path"].as_str().unwrap().into()));
        }
        assert_eq!(paths.len(), family.shards());
        let read = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap().to_owned();
            Shard::new(name, fs::read(path).unwrap(), length as u64)
        };
        let id = report["object"].as_str().unwrap().to_owned();
        let segment = if family.fitted { segment_of(&shards) } else { segment };
        let shards: Vec<Shard> = paths.iter().map(read).collect();
        let specimen = Self { family, content, name: name.to_owned(), id, shards, segment };
        specimen.check_layout();
        specimen
    }

    /// Checks the arithmetic of the layout, which all damage relies on.
    fn check_layout(&self) {
        for shard in &self.shards {
            let rest = shard.blocks.len() - self.segments().saturating_sub(1) * self.full_block();
            assert!(rest <= self.full_block() && (rest > 0) == (self.segments() > 0));
            assert_eq!(shard.digest(), *blake3::hash(&self.content).as_bytes());
            let length = self.content.len() as u64;
            assert_eq!(shard.with_total(length, shard.digest()), shard.bytes);
        }
    }

    pub fn segments(&self) -> usize {
        self.content.len().div_ceil(self.segment)
    }

    fn full_block(&self) -> usize {
        let Family { lanes, data_lanes, .. } = self.family;
        self.segment / data_lanes * lanes + lanes * CRC
    }

    /// Returns the range of a shard's file with the block of a segment.
    pub fn block(&self, shard: usize, segment: usize) -> Range<usize> {
        let blocks = &self.shards[shard].blocks;
        let start = blocks.start + segment * self.full_block();
        start..(start + self.full_block()).min(blocks.end)
    }

    /// Writes all shards into a folder, after emptying it.
    pub fn lay_out(&self, folder: &Path) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).unwrap();
        self.shards.iter().for_each(|s| fs::write(folder.join(&s.name), &s.bytes).unwrap());
    }

    /// Returns the names and contents of the shards.
    pub fn files(&self) -> BTreeMap<OsString, Vec<u8>> {
        self.shards.iter().map(|shard| (shard.name.clone(), shard.bytes.clone())).collect()
    }
}
