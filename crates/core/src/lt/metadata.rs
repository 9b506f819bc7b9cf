//! The byte form of [`LtInfo`]. It is stored beside the blocks, as the evaluation stores its
//! metadata.
//!
//! All numbers are little-endian, of 64 bits unless another size is given:
//!
//! ```text
//! "PLTI" and the version, 1, in 32 bits
//! the canonical spec's length, and the spec
//! generator, spike, ripple, weight, seed, attempt: the pin
//! bytes of the object, bytes of a block
//! number of checksums (0 or n), and the checksums
//! 1 if the graph follows, otherwise 0
//! for each block of the graph: number of neighbours, and these, in 32 bits each
//! CRC-64 (NVMe) of eight zeros and all of the above
//! ```

use crate::define::lt::{Graph, LtCode};
use crate::define::pin::Pin;
use crate::error::{Error, Result};
use crate::lt::LtInfo;
use crate::lt::info::checksum;

const MAGIC: &[u8; 8] = b"PLTI\x01\0\0\0";
const PINNED: [&str; 6] = ["generator", "spike", "ripple", "weight", "seed", "attempt"];

impl LtInfo {
    /// Adds the graph to the information, so that a reader need not draw it.
    ///
    /// # Errors
    /// As [`LtCode::graph`].
    pub fn with_graph(mut self) -> Result<Self> {
        self.graph = Some(self.graph()?);
        Ok(self)
    }

    /// Returns the information as bytes.
    ///
    /// # Errors
    /// Never, for codes that could be made.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = MAGIC.to_vec();
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        let spec = self.code.spec().to_string();
        put(spec.len() as u64);
        bytes.extend(spec.as_bytes());
        let mut put = |number: u64| bytes.extend(number.to_le_bytes());
        let pin = self.code.pin();
        for name in PINNED {
            put(pin.one(name)?);
        }
        [self.object_bytes, self.block_bytes as u64].into_iter().for_each(&mut put);
        put(self.checksums.len() as u64);
        self.checksums.iter().copied().for_each(&mut put);
        put(u64::from(self.graph.is_some()));
        for block in 0..self.graph.as_ref().map_or(0, Graph::blocks) {
            let row = self.graph.iter().map(|graph| graph.row(block as u32));
            for row in row {
                bytes.extend((row.len() as u32).to_le_bytes());
                row.iter().for_each(|data| bytes.extend(data.to_le_bytes()));
            }
        }
        bytes.extend(checksum(0, &bytes).to_le_bytes());
        Ok(bytes)
    }

    /// Reads the bytes of [`LtInfo::to_bytes`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Damaged`] if the bytes end early, continue after the end, or do not
    /// describe an LT code. Also as [`LtCode::rebuild`] and [`LtInfo::unchecked`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (bytes, sum) = bytes.split_last_chunk().ok_or_else(ends_early)?;
        let mut reader = MetadataReader(bytes);
        if reader.take(MAGIC.len())? != MAGIC {
            return Err(Error::damaged(
                "these bytes are not the metadata of an LT code in version 1",
            ));
        }
        if checksum(0, bytes) != u64::from_le_bytes(*sum) {
            return Err(Error::damaged("the metadata is damaged: its checksum differs"));
        }
        let length = reader.count(bytes.len())?;
        let spec = String::from_utf8_lossy(reader.take(length)?).parse()?;
        let mut pin = Pin::new();
        for name in PINNED {
            pin = pin.with(name, [reader.number()?]);
        }
        let code = LtCode::rebuild(&spec, &pin)?;
        let (object_bytes, block_bytes) = (reader.number()?, reader.count(usize::MAX)?);
        let mut info = Self::unchecked(code, object_bytes, block_bytes)?;
        let checksums = reader.count(info.blocks())?;
        if checksums != 0 && checksums != info.blocks() {
            return Err(Error::damaged(format!("there are checksums of only {checksums} blocks")));
        }
        info.checksums = (0..checksums).map(|_| reader.number()).collect::<Result<_>>()?;
        if reader.count(1)? == 1 {
            let graph = reader.graph(info.data(), info.blocks())?;
            info.graph = Some(graph.of_attempt(info.code.attempt()));
        }
        match reader.0.len() {
            0 => Ok(info),
            more => Err(Error::damaged(format!("{more} bytes follow the metadata"))),
        }
    }
}

fn ends_early() -> Error {
    Error::damaged("the metadata ends early")
}

/// The bytes that are left to read.
struct MetadataReader<'b>(&'b [u8]);

impl<'b> MetadataReader<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(ends_early)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn number(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a count, which must not exceed `most`.
    fn count(&mut self, most: usize) -> Result<usize> {
        let number = self.number()?;
        usize::try_from(number).ok().filter(|&count| count <= most).ok_or_else(|| {
            Error::damaged(format!(
                "the metadata has the number {number} where at most {most} is valid"
            ))
        })
    }

    fn graph(&mut self, data: usize, blocks: usize) -> Result<Graph> {
        let mut rows = Vec::new();
        for _ in 0..blocks {
            let degree = u32::from_le_bytes(self.array()?) as usize;
            let row = self.take(degree.saturating_mul(4))?.chunks_exact(4);
            rows.push(row.map(|n| u32::from_le_bytes([n[0], n[1], n[2], n[3]])).collect());
        }
        Graph::from_neighbours(data, &rows)
    }
}
