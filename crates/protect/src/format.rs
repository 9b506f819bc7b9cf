//! The parity file, to the byte.
//!
//! Numbers are little-endian. CRC-64/NVME is the CRC of that name in the usual catalogue. BLAKE3 is
//! unkeyed.
//!
//! # Words
//!
//! A *protection* has a root folder and *layers*. The protected files of a layer, in the order of
//! their paths and with nothing between them, are its *stream*. The stream is cut into *data
//! blocks* of B bytes; the last one may be shorter, and counts as filled up with zeros. From these
//! a long code ([`paritas::long::LongCode`], which follows from the numbers of data and parity
//! blocks) makes *parity blocks* of B bytes.
//!
//! # File
//!
//! A layer has n parity files, numbered from 0.
//!
//! ```text
//! parity file = header | parity block ... | catalogue piece ... | trailer
//! parity block    = B bytes | checksum (8)
//! catalogue piece = C bytes | checksum (8)
//! header, trailer = magic (8): 89 50 52 54 59 0D 0A 1A, that is 0x89 "PRTY" CR LF 0x1A
//!                   version (2): 1
//!                   kind (2): 1 for a header, 2 for a trailer
//!                   length (4): 192, the bytes of this record
//!                   id of the protection (16)
//!                   id of the layer (16)
//!                   generation (4): counts from 0; a layer with a larger number is newer. A
//!                   protection that is made anew keeps its id, and its number grows as well
//!                   number of the file (2), number of files n (2)
//!                   bytes of the stream (8)
//!                   B (8)
//!                   number of data blocks (8)
//!                   number of parity blocks (8)
//!                   bytes of the catalogue (8)
//!                   C (8), a multiple of 128
//!                   number of data pieces k (4)
//!                   number of pieces in each file (4)
//!                   BLAKE3 of the catalogue (32)
//!                   zeros (40)
//!                   CRC-64/NVME (8) of all of the record before it
//! ```
//!
//! File i modulo n has parity block i and catalogue piece i; in each file, blocks and pieces
//! ascend. The catalogue, filled up with zeros to k times C bytes, is cut into pieces 0 to k - 1.
//! The other pieces are the parity blocks that a long code with k data blocks makes of these. Any k
//! pieces give the catalogue. There are at most 256 pieces. What the catalogue says is described in
//! `catalogue.rs`.
//!
//! A checksum is CRC-64/NVME over the id of the layer (16), a number (8) and the bytes. The number
//! is that of the parity block, or that of the catalogue piece plus 2^63. So a block that was moved
//! to another place counts as damaged.
//!
//! # Reading what is damaged
//!
//! A file is recognised by its header or, at its end, by its trailer. If the file has another
//! length than the header says, a block that is not intact at its place is also looked for at the
//! same distance from the end of the file.
//!
//! # Names
//!
//! `LABEL-<8 hex of the protection's id>.<i>of<n>.parity`, and
//! `LABEL-<8 hex>.layer<generation>.<i>of<n>.parity` for layers after the first. Files are
//! recognised by content, whatever their names are. `LABEL-<8 hex>.restored.parity` is no parity
//! file: `restored.rs` describes it.

use std::ffi::OsString;
use std::path::Path;

use crc_fast::{CrcAlgorithm, checksum, checksum_combine};
use paritas_store::error::{Error, Result};
pub use paritas_store::object::format::ObjectId as Id;

use crate::geometry::StreamGeometry;
use crate::paths::owned_name;

const MAGIC: [u8; 8] = *b"\x89PRTY\r\n\x1a";
const VERSION: u16 = 1;
/// Number of bytes of a header and of a trailer.
pub(crate) const RECORD: usize = 192;
/// Number of bytes of a checksum.
pub(crate) const CHECK: u64 = 8;
/// Added to the number of a catalogue piece in its checksum.
const PIECE: u64 = 1 << 63;
/// Largest number of catalogue pieces of a layer.
pub(crate) const MOST_PIECES: u64 = 256;
/// Sizes of catalogue pieces are multiples of this number of bytes.
pub(crate) const PIECE_GRANULE: u64 = 128;
/// Largest number of bytes of the pieces that give a catalogue. It bounds what is read to find out
/// whether files have the pieces that their headers state: 4 GiB are the paths of many million
/// files.
const MOST_CATALOGUE_BYTES: u64 = 1 << 32;
/// The end of the names of parity files.
pub(crate) const EXTENSION: &str = "parity";

/// The end of the name of the list of restored files.
pub(crate) const RESTORED: &str = ".restored.parity";

/// The content of a header or trailer: facts about the parity file and its layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub protection: Id,
    pub layer: Id,
    pub generation: u32,
    /// Number of the file, below `count`.
    pub index: u16,
    /// Number of parity files of the layer.
    pub count: u16,
    pub geometry: StreamGeometry,
    pub catalogue: CatalogueShape,
}

/// How the catalogue is cut into pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CatalogueShape {
    /// Bytes of the catalogue.
    pub length: u64,
    /// Bytes of a piece.
    pub piece: u64,
    /// Number of pieces that give the catalogue.
    pub data: u32,
    /// Number of pieces in each file.
    pub each: u32,
    pub digest: [u8; 32],
}

/// The place of a record: the beginning of a file, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordPlace {
    Header = 1,
    Trailer = 2,
}

impl Header {
    /// Returns the record's bytes.
    pub fn to_bytes(&self, kind: RecordPlace) -> [u8; RECORD] {
        let StreamGeometry { length, block, data, parity } = self.geometry;
        let mut out = Vec::with_capacity(RECORD);
        out.extend_from_slice(&MAGIC);
        for short in [VERSION, kind as u16] {
            out.extend_from_slice(&short.to_le_bytes());
        }
        out.extend_from_slice(&(RECORD as u32).to_le_bytes());
        out.extend_from_slice(self.protection.as_bytes());
        out.extend_from_slice(self.layer.as_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        for short in [self.index, self.count] {
            out.extend_from_slice(&short.to_le_bytes());
        }
        let shape = &self.catalogue;
        for long in [length, block, data, parity, shape.length, shape.piece] {
            out.extend_from_slice(&long.to_le_bytes());
        }
        for number in [shape.data, shape.each] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&shape.digest);
        out.resize(RECORD - CHECK as usize, 0);
        let check = checksum(CrcAlgorithm::Crc64Nvme, &out);
        out.extend_from_slice(&check.to_le_bytes());
        out.try_into().expect("a record has its length")
    }

    /// Reads a record. Returns `None` if the bytes are damaged, or not a record of this format and
    /// kind.
    pub fn from_bytes(bytes: &[u8; RECORD], kind: RecordPlace) -> Option<Self> {
        let (content, check) = bytes.split_at(RECORD - CHECK as usize);
        if checksum(CrcAlgorithm::Crc64Nvme, content).to_le_bytes() != *check {
            return None;
        }
        let mut fields = RecordFields(content);
        let begins = fields.take() == MAGIC
            && u16::from_le_bytes(fields.take()) == VERSION
            && u16::from_le_bytes(fields.take()) == kind as u16
            && u32::from_le_bytes(fields.take()) == RECORD as u32;
        let header = Self {
            protection: Id::new(fields.take()),
            layer: Id::new(fields.take()),
            generation: u32::from_le_bytes(fields.take()),
            index: u16::from_le_bytes(fields.take()),
            count: u16::from_le_bytes(fields.take()),
            geometry: StreamGeometry {
                length: fields.long(),
                block: fields.long(),
                data: fields.long(),
                parity: fields.long(),
            },
            catalogue: CatalogueShape {
                length: fields.long(),
                piece: fields.long(),
                data: u32::from_le_bytes(fields.take()),
                each: u32::from_le_bytes(fields.take()),
                digest: fields.take(),
            },
        };
        (begins && header.is_valid()).then_some(header)
    }

    /// Refuses a catalogue that no reader would take: those of some 10^8 files are so long.
    pub fn expect_readable(&self) -> Result<()> {
        match self.is_valid() {
            true => Ok(()),
            false => Err(Error::parameters(format!(
                "the catalogue would have {} bytes, and readers take at most about \
                 {MOST_CATALOGUE_BYTES}; protect parts of the tree on their own",
                self.catalogue.length
            ))),
        }
    }

    fn is_valid(&self) -> bool {
        let CatalogueShape { length, piece, data, each, .. } = self.catalogue;
        let pieces = u64::from(each) * u64::from(self.count);
        let pieces_fit = (1..=MOST_PIECES).contains(&pieces) && (1..=pieces).contains(&data.into());
        let most = MOST_CATALOGUE_BYTES / u64::from(data).max(1);
        let piece_fits = (1..=most).contains(&piece) && piece % PIECE_GRANULE == 0;
        let length_fits = length <= u64::from(data).saturating_mul(piece);
        let is_file = self.index < self.count;
        self.geometry.is_valid() && pieces_fit && piece_fits && length_fits && is_file
    }

    /// Whether the headers of two files describe the same layer alike. They may differ in the
    /// number of the file.
    pub fn agrees(&self, other: &Self) -> bool {
        *self == Self { index: self.index, ..other.clone() }
    }

    /// Returns the numbers of the parity blocks in file `index`.
    pub fn rows(&self, index: u16) -> impl Iterator<Item = u64> + use<> {
        (u64::from(index)..self.geometry.parity).step_by(self.count.into())
    }

    /// Returns the numbers of the catalogue pieces in file `index`.
    pub fn pieces(&self, index: u16) -> impl Iterator<Item = u64> + use<> {
        let pieces = u64::from(self.catalogue.each) * u64::from(self.count);
        (u64::from(index)..pieces).step_by(self.count.into())
    }

    /// Returns the position of parity block `row` in its file.
    pub fn row_offset(&self, row: u64) -> u64 {
        RECORD as u64 + row / u64::from(self.count) * (self.geometry.block + CHECK)
    }

    /// Returns the position of catalogue piece `number` in its file.
    pub fn piece_offset(&self, number: u64) -> u64 {
        let count = u64::from(self.count);
        let rows = self.rows_before(number % count);
        let before = rows * (self.geometry.block + CHECK);
        RECORD as u64 + before + number / count * (self.catalogue.piece + CHECK)
    }

    /// Returns the position of the trailer in file `index`.
    pub fn trailer_offset(&self, index: u16) -> u64 {
        let pieces = u64::from(self.catalogue.each) * (self.catalogue.piece + CHECK);
        self.piece_offset(index.into()) + pieces
    }

    /// Returns the length of file `index`.
    pub fn file_length(&self, index: u16) -> u64 {
        self.trailer_offset(index) + RECORD as u64
    }

    /// Returns the number of parity blocks in file `index`.
    fn rows_before(&self, index: u64) -> u64 {
        (self.geometry.parity + u64::from(self.count) - 1 - index) / u64::from(self.count)
    }

    /// Returns the file that has parity block or catalogue piece `number`.
    pub fn file_of(&self, number: u64) -> u16 {
        (number % u64::from(self.count)) as u16
    }

    /// Begins the checksum of parity block `row`.
    pub fn row_checksum(&self, row: u64) -> crc_fast::Digest {
        begin_checksum(self.layer, row)
    }

    /// Begins the checksum of catalogue piece `number`.
    pub fn piece_checksum(&self, number: u64) -> crc_fast::Digest {
        begin_checksum(self.layer, number + PIECE)
    }

    /// Returns the name of file `index`.
    pub fn name(&self, label: &[u8], index: u16) -> OsString {
        let id = &self.protection.to_string()[..8];
        let layer = match self.generation {
            0 => String::new(),
            generation => format!(".layer{generation}"),
        };
        let rest = format!("-{id}{layer}.{index}of{}.{EXTENSION}", self.count);
        owned_name([label, rest.as_bytes()].concat())
    }

    /// Returns the generation that the name of a parity file of the protection `id` states, if it
    /// is a later one than the first.
    pub fn generation_in(path: &Path, id: Id) -> Option<u32> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let mark = format!("-{}.layer", &id.to_string()[..8]);
        let (_, rest) = name.rsplit_once(&mark)?;
        let (generation, place) = rest.split_once('.')?;
        let is_whole = place.ends_with(&format!(".{EXTENSION}")) && place.contains("of");
        generation.parse().ok().filter(|_| is_whole)
    }
}

fn begin_checksum(layer: Id, number: u64) -> crc_fast::Digest {
    let mut crc = crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme);
    crc.update(layer.as_bytes());
    crc.update(&number.to_le_bytes());
    crc
}

/// Returns the checksum of a data block.
pub(crate) fn block_checksum() -> crc_fast::Digest {
    crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme)
}

/// Returns the checksum of a data block of zeros.
pub(crate) fn checksum_of_zeros(bytes: u64) -> u64 {
    // The checksum begins with all ones, and inverts all bits at the end.
    !after_zeros(u64::MAX, bytes)
}

/// Returns what the state of a data block's checksum becomes by this many bytes of zeros. It takes
/// a step for each bit of the number.
pub(crate) fn after_zeros(state: u64, bytes: u64) -> u64 {
    checksum_combine(CrcAlgorithm::Crc64Nvme, state, 0, bytes)
}

/// Goes on with the checksum of a data block whose state was kept.
pub(crate) fn resumed_block_checksum(state: u64) -> crc_fast::Digest {
    crc_fast::Digest::new_with_init_state(CrcAlgorithm::Crc64Nvme, state)
}

/// The fields of a record that are not read yet.
struct RecordFields<'a>(&'a [u8]);

impl RecordFields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("a record has its length");
        self.0 = rest;
        *field
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            protection: Id::new([1; 16]),
            layer: Id::new([2; 16]),
            generation: 3,
            index: 1,
            count: 4,
            geometry: StreamGeometry { length: 100_000, block: 512, data: 196, parity: 20 },
            catalogue: CatalogueShape {
                length: 1000,
                piece: 512,
                data: 2,
                each: 1,
                digest: [7; 32],
            },
        }
    }

    #[test]
    fn records_are_read_as_written() {
        for kind in [RecordPlace::Header, RecordPlace::Trailer] {
            let bytes = header().to_bytes(kind);
            assert_eq!(Header::from_bytes(&bytes, kind), Some(header()));
            for at in 0..RECORD {
                let mut damaged = bytes;
                damaged[at] ^= 1;
                assert_eq!(Header::from_bytes(&damaged, kind), None, "byte {at}");
            }
        }
        let bytes = header().to_bytes(RecordPlace::Header);
        assert_eq!(Header::from_bytes(&bytes, RecordPlace::Trailer), None);
    }

    #[test]
    fn impossible_numbers_are_refused() {
        type Change = fn(&mut Header);
        let changes: [Change; 15] = [
            |header| header.count = 0,
            |header| header.index = 4,
            |header| header.geometry.data = 195,
            |header| header.geometry.block = 0,
            |header| header.geometry.block = 500,
            |header| header.geometry.length = u64::MAX,
            |header| header.geometry.parity = 0,
            |header| header.geometry.parity = u64::MAX,
            |header| header.catalogue.length = 1025,
            |header| header.catalogue.piece = 1 << 41,
            |header| header.catalogue.piece = (1 << 32) + 128,
            |header| header.catalogue.data = 0,
            |header| header.catalogue.data = 5,
            |header| header.catalogue.each = 65,
            |header| {
                (header.catalogue.data, header.catalogue.each) = (3, 1);
                header.catalogue.piece = MOST_CATALOGUE_BYTES / 2;
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut changed = header();
            change(&mut changed);
            let bytes = changed.to_bytes(RecordPlace::Header);
            assert_eq!(Header::from_bytes(&bytes, RecordPlace::Header), None, "{number}");
            assert!(changed.expect_readable().is_err(), "{number}");
        }
        header().expect_readable().unwrap();
    }

    #[test]
    fn places_follow_one_another() {
        let header = header();
        for index in 0..4 {
            let mut end = RECORD as u64;
            for row in header.rows(index) {
                assert_eq!((header.file_of(row), header.row_offset(row)), (index, end));
                end += 520;
            }
            for piece in header.pieces(index) {
                assert_eq!((header.file_of(piece), header.piece_offset(piece)), (index, end));
                end += 520;
            }
            assert_eq!(header.file_length(index), end + RECORD as u64);
        }
    }
}
