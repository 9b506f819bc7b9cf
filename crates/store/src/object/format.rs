//! The shard file, to the byte.
//!
//! Numbers are little-endian. CRC-64/NVME is the CRC of that name in the usual catalogue
//! (polynomial 0xAD93D23594C93659, reflected, all ones in and out; its check value for the digits
//! `123456789` is 0xAE8B14860A799888). Texts are UTF-8.
//!
//! # Words
//!
//! A code has *cells*. Each cell is one *packet* of bytes in a stripe, and is placed as a row of
//! one of the code's *nodes*. What one node stores of one object is a *shard*. `lane_rows` rows of
//! a node form a *lane*. A *segment* is a part of the user's bytes that is encoded together: a
//! whole number of stripes. What a shard holds of segment *b* is its *block* b.
//!
//! Some codes compute their cells in *stages*: those of stage 1 when an object is encoded, those of
//! stage 2 when it is *promoted*. The lanes of a shard that are computed in one stage are a *part*
//! of it, and a shard file holds one part. A code without stages has one part for each shard.
//! Promotion adds files and changes none. An object with at least one file of stage 2 has been
//! promoted.
//!
//! # File
//!
//! ```text
//! shard file = front header | block 0 | block 1 | ... | footer
//! record     = magic (8 bytes): 89 50 52 54 53 0D 0A 1A, that is 0x89 "PRTS" CR LF 0x1A
//!              version (2): 1 to 3, see below
//!              kind (2): 1 for a front header, 2 for a footer
//!              length of the body (4): at most 1048576
//!              body
//!              CRC-64/NVME (8) of all of the record before it
//! front header = record of kind 1
//! footer       = record of kind 2 | trailer
//! trailer      = length of the footer's record (4) | 0 (4) | end magic (8), the magic reversed
//! ```
//!
//! The magic reveals damage by mail gateways and text conversions. The trailer lets a reader find
//! the footer from the end of the file.
//!
//! # Body
//!
//! The body is CBOR (RFC 8949) in its core deterministic encoding, so that equal contents are equal
//! bytes. It is a map, and so are the identity and the total in it. Any key that is marked as
//! optional may be absent.
//!
//! | key | version | value |
//! | --- | --- | --- |
//! | 0 | 1 | the identity of the object, a map, the same in all records of all its shards |
//! | 1 | 1 | the index of this shard, from 0 |
//! | 2 | 1 | in the footer only: the total, a map |
//! | 3 | 2 | optional: the stage of this part, 2 to 255; absent for stage 1 |
//!
//! | identity | version | value |
//! | --- | --- | --- |
//! | 0 | 1 | text: the code's canonical spec, as `cauchy:k=4,m=2` |
//! | 1 | 1 | the pin: an array of pairs (arrays of two) of a name and an array of unsigned numbers, which with the spec give the generator matrix for ever |
//! | 2 | 1 | bytes (32): BLAKE3 of the description of generator and placement (below) |
//! | 3 | 1 | text: `packets` or `words`, the layout of cells in lanes |
//! | 4 | 1 | bytes in a packet, 1 to 1048576; with `words`, a lane's bytes are counted as if in packets |
//! | 5 | 1 | stripes in a full segment; all cells of a full segment are at most 64 MiB |
//! | 6 | 1 | bytes (16): the object's id, drawn at random |
//! | 7 | 1 | bytes: the object's base name, 1 to 255 bytes without `/` and NUL, not `.` or `..` |
//! | 8 | 1 | the number of shards that the object has after its last stage, equal to the nodes of the code |
//! | 9 | 1 | optional: the length that the writer expected; absent when it could not know, as from a pipe |
//! | 10 | 3 | optional: the mode of the source, below 4096: permissions, set-user-ID (2048), set-group-ID (1024) and sticky bit (512) |
//! | 11 | 3 | optional: when the source last changed, an array of two numbers: seconds since 1970 in UTC, rounded down, which may be negative; and nanoseconds, below 1000000000 |
//!
//! | total | version | value |
//! | --- | --- | --- |
//! | 0 | 1 | the object's length in bytes, below 2^63 |
//! | 1 | 1 | bytes (32): BLAKE3 of the object |
//!
//! The version column says which version of the record introduced a key. The version of a record is
//! the highest version of its keys. A reader refuses a record that states any other version, and
//! any key that is not listed here. So records that old readers can understand are written in a way
//! that they accept: an object from a pipe has records of version 1, and in stage 2 of version 2;
//! if the source had a mode and a time, the records are of version 3 in all stages. Records that
//! are written later (by repair and promotion) repeat the identity key by key, and so keep its
//! version.
//!
//! Mode and time are those of the source when it was opened. If a writer has read the source and
//! finds another length or time, it gives up. Readers restore permissions and time; they set the
//! other three bits only on request.
//!
//! The front header holds what is known before the first byte of the object is read. The footer
//! repeats it and adds the total; the footer is authoritative. The description (see
//! [`paritas::Code::describe`]) is a sequence of 32-bit numbers, in this order: the number of data
//! cells; the number of nodes; for each node the number of its cells, and for each of its cells, by
//! row, the number of ones in its generator row and their ascending positions among the data cells.
//! A code of several stages adds the stages of the cells, node by node.
//!
//! # Blocks
//!
//! ```text
//! block = lane 0 | lane 1 | ...
//! lane  = payload (stripes * rows of the lane * packet bytes) | checksum (8)
//! ```
//!
//! Lanes take a node's rows in order, `lane_rows` at a time, and are numbered in the node from 0. A
//! block has the lanes of its file's stage, in order. `lane_rows` follows from the family: it is 1
//! for `evenodd`, `lt`, `matrix`, `rdp`, `star` and `xcode`, the number of rows of a symbol of the
//! base code for `dpg` and `bbdpg`, and all rows for the others. On every node the rows of a stage
//! follow those of the stages before it, and no lane has rows of two stages. In a payload of layout
//! `packets`, row r of the lane in stripe s is the packet at (s * rows + r) * packet. In layout
//! `words`, a node has w rows for each symbol of w bits, and a payload is a sequence of
//! little-endian words of w bits. Each word is a symbol; its bit r is the cell of row r.
//!
//! All segments have the number of stripes that the identity states, except the last. The last has
//! the number that the rest of the object needs: ceil(rest / (data cells * packet)). An empty
//! object has no blocks. The user's bytes of a segment fill its data lanes one after the other, in
//! the order of the data cells, so that each data lane holds consecutive bytes of the object. The
//! remaining bytes are zero.
//!
//! An LT code (`lt:k=…,n=…,nodes=…`) does not store its k data cells, but only n cells that are
//! XORs of them. Cell b is row (b / nodes) of node (b modulo nodes), and each cell is a lane of its
//! own. So a block of an LT code, as the term is used elsewhere, is a lane here. The user's bytes
//! fill k lanes that no file contains. The pin of an LT code has these entries: `generator` (1: the
//! one of `define/lt/generator.rs` in the core crate, specified to the bit there); `spike`,
//! `ripple` and `weight` (whole numbers from which all probabilities follow, see
//! `define/lt/soliton.rs`); `seed`; and `attempt`, the number of graphs of that seed that were
//! drawn and rejected before. The rows follow from the pin and from the spec's k, n, `variant` and
//! `coverage`. A reader expects at most 2^24 ones in them.
//!
//! The code of a bit matrix of one's own (`matrix:k=…,m=…,w=…,rows=…`) has an empty pin: its spec
//! holds the matrix. `rows` has m·w rows separated by dots, the parity packets in the order of
//! nodes and then of their rows, each as hexadecimal digits for k·w bits. The first data packet is
//! the highest bit of the first digit, and zeros fill up the last digit. k nodes hold w data
//! packets and m nodes w parity packets; with `placement=vertical`, each of the k + m nodes holds
//! k·w / (k + m) data packets and m·w / (k + m) parity packets after them.
//!
//! The writer of an object that is too short to fill a stripe chooses shorter packets, down to one
//! byte.
//!
//! The checksum is CRC-64/NVME over the object's id (16), the shard's index (4), the number of the
//! block (8), the number of the lane in the node (4), and the payload. So a block that was moved to
//! another shard, place or object counts as damaged.
//!
//! # Reading what is damaged
//!
//! A file belongs to the object that its front header names or, if that is unreadable, its footer.
//! If the file does not end with a footer of that object, its last 16 MiB are searched backwards
//! for one. If they have none, the place of the footer is computed from the length that other
//! footers state, or that the front header expects. Whole files are searched only if the length is
//! still unknown. Block b begins b full blocks after the front header. If a lane is not intact
//! there, the reader tries the place counted back from the footer. So inserted or removed bytes
//! cost only the blocks around them, and an extended or cut file loses nothing else. A lane that is
//! intact in neither place erases only its own cells in that segment. If footers disagree on the
//! total, the majority is right. Without any footer an object cannot be read, because its length is
//! unknown.

use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crc_fast::{CrcAlgorithm, checksum};
use minicbor::{Decode, Encode};

use crate::object::geometry::{MAX_PACKET, Part};
use crate::place::attributes::{STORED_MODE, Timestamp};
use crate::place::system::{name_bytes, name_of};

const MAGIC: [u8; 8] = *b"\x89PRTS\r\n\x1a";
/// The last bytes of a shard file: the magic number reversed.
pub const END_MAGIC: [u8; 8] = *b"\x1a\n\rSTRP\x89";
/// Version of records that have no keys of later versions.
const VERSION: u16 = 1;
/// Version of records that state a later stage.
const STAGED_VERSION: u16 = 2;
/// Version of records that state the mode of the source, or when it changed.
const ATTRIBUTED_VERSION: u16 = 3;
/// Length in bytes of magic, version, kind, and length of the body.
pub const PREFIX: usize = 16;
/// Length in bytes of what follows the footer's record: its length and the end magic.
pub const TRAILER: usize = 16;
const CRC: usize = 8;
const MAX_BODY: usize = 1 << 20;
/// Largest length, in bytes, of a record that is read.
pub const MAX_RECORD: usize = PREFIX + MAX_BODY + CRC;
const MAX_NAME: usize = 255;

/// Largest number of entries of a pin. Codes have some ten, and each entry of a forged header would
/// take thirty times as much memory as it has bytes.
const MAX_PIN: usize = 64;
/// Names of the layouts of a lane's bytes.
const LAYOUTS: [&str; 2] = ["packets", "words"];

/// The name of one encoding of an object, drawn at random and written into all of its shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct ObjectId(#[cbor(n(0), with = "minicbor::bytes")] [u8; 16]);

/// A BLAKE3 digest of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Digest(#[cbor(n(0), with = "minicbor::bytes")] [u8; 32]);

impl ObjectId {
    /// Draws a new id.
    ///
    /// # Errors
    /// If the operating system has no random numbers.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::stream("drawing random numbers", error.into()))?;
        Ok(Self(bytes))
    }

    /// Returns the id of these bytes.
    pub fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl Digest {
    /// Returns the digest of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl FromStr for ObjectId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(number) if digits => Ok(Self(number.to_be_bytes())),
            _ => Err(Error::parameters("an object's id must be 32 hexadecimal digits")),
        }
    }
}

/// The part that all records of all shards of an object have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(map)]
pub struct Identity {
    /// The code's canonical spec.
    #[n(0)]
    pub spec: String,
    /// The numbers which with the spec give the generator matrix for ever.
    #[n(1)]
    pub pin: Vec<(String, Vec<u64>)>,
    /// The digest of generator and placement ([`describe`]).
    #[n(2)]
    pub description: Digest,
    #[n(3)]
    layout: String,
    /// Bytes of a packet.
    #[n(4)]
    pub packet: u32,
    /// Stripes of a full segment.
    #[n(5)]
    pub stripes: u32,
    /// The object's id.
    #[n(6)]
    pub object: ObjectId,
    #[cbor(n(7), with = "minicbor::bytes")]
    name: Vec<u8>,
    /// Number of shards after the last stage: the nodes of the code.
    #[n(8)]
    pub shards: u32,
    /// The length that the writer expected, if it could know.
    #[n(9)]
    pub length_hint: Option<u64>,
    /// The mode of the source.
    #[n(10)]
    pub mode: Option<u32>,
    /// The time of the source's last change.
    #[n(11)]
    pub modified: Option<Timestamp>,
}

/// The facts about an object that are known once all of it has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(map)]
pub struct Total {
    /// The object's length in bytes.
    #[n(0)]
    pub length: u64,
    /// The digest of its bytes.
    #[n(1)]
    pub digest: Digest,
}

/// A front header (without total) or a footer (with it).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Record {
    /// What all records of the object have in common.
    #[n(0)]
    pub identity: Identity,
    /// The index of the shard, from 0.
    #[n(1)]
    pub shard: u32,
    /// Length and digest of the object, in a footer.
    #[n(2)]
    pub total: Option<Total>,
    /// The stage of the part, if it is not the first.
    #[n(3)]
    later_stage: Option<u8>,
}

/// The position of a record in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// At the beginning of the file.
    Front = 1,
    /// At its end.
    Footer = 2,
}

/// The reason why bytes are not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordFlaw {
    /// The magic is missing, so the bytes may be those of any file.
    NoMagic,
    /// A record of a version that this reader does not know.
    Version(u16),
    /// A record that is damaged, cut, or states something impossible.
    Damaged(String),
}

impl fmt::Display for RecordFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMagic => f.write_str("has no magic number"),
            Self::Version(version) => {
                write!(
                    f,
                    "is of version {version}; this reader knows up to version {ATTRIBUTED_VERSION}"
                )
            }
            Self::Damaged(how) => f.write_str(how),
        }
    }
}

impl Identity {
    /// Returns the identity of a new object.
    pub(crate) fn new(code: &paritas::Code, name: &OsStr, object: ObjectId) -> Self {
        let pin = code.pin().entries().map(|(name, list)| (name.to_owned(), list.to_vec()));
        Self {
            spec: code.spec().to_string(),
            pin: pin.collect(),
            description: describe(code),
            layout: layout_of(code).to_owned(),
            packet: 0,
            stripes: 0,
            object,
            name: name_bytes(name).to_vec(),
            shards: u32::try_from(code.node_count()).unwrap_or(u32::MAX),
            length_hint: None,
            mode: None,
            modified: None,
        }
    }

    /// Returns the object's base name.
    pub fn name(&self) -> &OsStr {
        name_of(&self.name)
    }

    /// Returns the layout of the bytes of a lane: `packets` or `words`.
    pub fn layout(&self) -> &str {
        &self.layout
    }

    /// Returns the record of a part: a footer if there is a total, otherwise a front header.
    pub fn record(&self, part: Part, total: Option<Total>) -> Record {
        Record::new(self.clone(), part.shard as u32, part.stage, total)
    }

    fn check(&self) -> Result<(), String> {
        check_name(&self.name)?;
        if !LAYOUTS.contains(&&*self.layout) {
            return Err(format!("the layout `{}` is unknown", self.layout.escape_debug()));
        }
        if self.packet == 0 || self.packet as usize > MAX_PACKET {
            return Err(format!("a packet of {} bytes; 1 to {MAX_PACKET} are legal", self.packet));
        }
        if self.pin.len() > MAX_PIN {
            let entries = self.pin.len();
            return Err(format!("a pin of {entries} entries; {MAX_PIN} are legal"));
        }
        if self.stripes == 0 || self.shards == 0 {
            return Err("an object without stripes or shards".to_owned());
        }
        if let Some(mode) = self.mode.filter(|mode| mode & !STORED_MODE != 0) {
            return Err(format!("the mode {mode:o} (octal)"));
        }
        if let Some(time) = self.modified.filter(|time| !time.is_normal()) {
            return Err(format!("a time with {} nanoseconds", time.nanoseconds));
        }
        Ok(())
    }
}

/// Refuses a name that is not the base name of a file.
pub(crate) fn check_name(name: &[u8]) -> Result<(), String> {
    let length = name.len();
    // On Windows these characters have a meaning in paths, and could lead to another folder.
    let is_foreign = cfg!(windows) && name.iter().any(|byte| matches!(byte, b'\\' | b':'));
    match name {
        b"" | b"." | b".." => Err("a name that is empty, `.` or `..`".to_owned()),
        _ if length > MAX_NAME => Err(format!("a name of {length} bytes; {MAX_NAME} are legal")),
        _ if is_foreign => Err("a name with `\\` or `:`".to_owned()),
        _ if name.iter().any(|&b| b == b'/' || b == 0) => Err("a name with `/` or NUL".to_owned()),
        _ => Ok(()),
    }
}

/// Returns the layout of a code.
pub(crate) fn layout_of(code: &paritas::Code) -> &'static str {
    if code.symbols().is_some() { LAYOUTS[1] } else { LAYOUTS[0] }
}

/// Returns the BLAKE3 digest of a code's description.
pub fn describe(code: &paritas::Code) -> Digest {
    let mut hasher = blake3::Hasher::new();
    code.describe(|bytes| {
        hasher.update(bytes);
    });
    Digest(hasher.finalize().into())
}

impl Record {
    /// Returns the record of a part of a shard, made in stage `stage`, which is at least 1.
    pub(crate) fn new(identity: Identity, shard: u32, stage: u8, total: Option<Total>) -> Self {
        Self { identity, shard, total, later_stage: (stage > 1).then_some(stage) }
    }

    /// Returns the stage of the part, from 1.
    pub fn stage(&self) -> u8 {
        self.later_stage.unwrap_or(1)
    }

    /// Returns the lowest version that has all of the record's keys.
    fn version(&self) -> u16 {
        let Identity { mode, modified, .. } = &self.identity;
        match self.later_stage {
            _ if mode.is_some() || modified.is_some() => ATTRIBUTED_VERSION,
            Some(_) => STAGED_VERSION,
            None => VERSION,
        }
    }

    /// Returns the record as bytes; a footer is followed by its trailer.
    ///
    /// # Errors
    /// If the body would be longer than a reader accepts.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let body = self.body().unwrap_or_default();
        if body.is_empty() || body.len() > MAX_BODY {
            let (spec, length) = (&self.identity.spec, body.len());
            return Err(Error::parameters(format!(
                "the header of {spec} must have 1 to {MAX_BODY} bytes; got {length}"
            )));
        }
        let kind = if self.total.is_some() { RecordKind::Footer } else { RecordKind::Front };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.version().to_le_bytes());
        bytes.extend((kind as u16).to_le_bytes());
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        bytes.extend(checksum(CrcAlgorithm::Crc64Nvme, &bytes).to_le_bytes());
        if kind == RecordKind::Footer {
            let length = bytes.len() as u32;
            bytes.extend(length.to_le_bytes());
            bytes.extend([0; 4]);
            bytes.extend(END_MAGIC);
        }
        Ok(bytes)
    }

    fn body(&self) -> Option<Vec<u8>> {
        minicbor::to_vec(self).ok()
    }

    /// Reads a record of exactly these bytes, without trailer.
    pub fn parse(bytes: &[u8], kind: RecordKind) -> Result<Self, RecordFlaw> {
        let damaged = |how: &str| RecordFlaw::Damaged(how.to_owned());
        if record_length(bytes, kind)? != bytes.len() {
            return Err(damaged("is cut short"));
        }
        if !is_sealed(bytes) {
            return Err(damaged("fails its checksum"));
        }
        let body = &bytes[PREFIX..bytes.len() - CRC];
        let record: Self = minicbor::decode(body)
            .map_err(|error| RecordFlaw::Damaged(format!("cannot be understood: {error}")))?;
        if record.body().as_deref() != Some(body) {
            return Err(damaged("is not in the deterministic form"));
        }
        let version = u16_at(bytes, 8).unwrap_or(VERSION);
        record.check(kind, version).map_err(|how| RecordFlaw::Damaged(format!("states {how}")))?;
        Ok(record)
    }

    fn check(&self, kind: RecordKind, version: u16) -> Result<(), String> {
        self.identity.check()?;
        if version != self.version() {
            return Err(format!("keys of version {} in version {version}", self.version()));
        }
        if let Some(stage) = self.later_stage.filter(|&stage| stage < 2) {
            return Err(format!("a later stage {stage} in version {version}"));
        }
        if self.shard >= self.identity.shards {
            return Err(format!("shard {} of {}", self.shard, self.identity.shards));
        }
        match self.total {
            Some(total) if total.length > i64::MAX as u64 => {
                Err(format!("a length of {} bytes", total.length))
            }
            total if total.is_some() != (kind == RecordKind::Footer) => {
                Err("a total at the wrong end of the file".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Returns the length of the record that begins with `start`, which must have at least [`PREFIX`]
/// bytes unless the file is shorter.
pub fn record_length(start: &[u8], kind: RecordKind) -> Result<usize, RecordFlaw> {
    if !start.starts_with(&MAGIC) {
        return Err(RecordFlaw::NoMagic);
    }
    let (Some(version), Some(found), Some(body)) =
        (u16_at(start, 8), u16_at(start, 10), u32_at(start, 12))
    else {
        return Err(RecordFlaw::Damaged("is cut short".to_owned()));
    };
    if !(VERSION..=ATTRIBUTED_VERSION).contains(&version) {
        return Err(RecordFlaw::Version(version));
    }
    if found != kind as u16 {
        return Err(RecordFlaw::Damaged(format!("is of kind {found}, not {}", kind as u16)));
    }
    if body as usize > MAX_BODY {
        return Err(RecordFlaw::Damaged(format!(
            "has a body of {body} bytes; {MAX_BODY} are legal"
        )));
    }
    Ok(PREFIX + body as usize + CRC)
}

/// Returns the length of the record, of any version, that begins with `start`. Returns `None` if
/// `start` does not begin a record, or if the length is greater than any record's.
pub fn stated_length(start: &[u8; PREFIX]) -> Option<usize> {
    let body = u32_at(start, 12)? as usize;
    (start.starts_with(&MAGIC) && body <= MAX_BODY).then_some(PREFIX + body + CRC)
}

/// Whether the checksum of `record`, which may be of any version, is correct.
pub fn is_sealed(record: &[u8]) -> bool {
    record.split_last_chunk::<CRC>().is_some_and(|(content, crc)| {
        checksum(CrcAlgorithm::Crc64Nvme, content).to_le_bytes() == *crc
    })
}

/// Returns the length of the footer's record that a trailer states.
pub fn footer_length(trailer: &[u8; TRAILER]) -> Option<usize> {
    let length = u32_at(trailer, 0)? as usize;
    let legal = (PREFIX + CRC..=MAX_RECORD).contains(&length);
    (legal && u32_at(trailer, 4) == Some(0) && trailer[8..] == END_MAGIC).then_some(length)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the checksum of one lane of one block.
pub(crate) fn lane_checksum(
    object: ObjectId,
    shard: u32,
    block: u64,
    lane: u32,
    payload: &[u8],
) -> [u8; CRC] {
    let mut bound = [0; 32];
    bound[..16].copy_from_slice(&object.0);
    bound[16..20].copy_from_slice(&shard.to_le_bytes());
    bound[20..28].copy_from_slice(&block.to_le_bytes());
    bound[28..].copy_from_slice(&lane.to_le_bytes());
    let mut crc = crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme);
    crc.update(&bound);
    crc.update(payload);
    crc.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests;
