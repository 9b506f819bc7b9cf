//! The information that a decoder needs: the metadata of the evaluation's appendix.
//!
//! The neighbours of blocks follow from the code's name and pin; they may also be stored explicitly
//! ([`LtInfo::with_graph`]). A checksum for each block, bound to the block's number, detects
//! damaged blocks and blocks of other objects.

use crc64fast_nvme::Digest;

use crate::define::lt::{Graph, LtCode};
use crate::error::{Error, Result};
use crate::lt::LtBlocks;

/// The information that a decoder needs about an object's blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct LtInfo {
    pub(super) code: LtCode,
    /// The graph, if it is stored explicitly.
    pub(super) graph: Option<Graph>,
    pub(super) object_bytes: u64,
    pub(super) block_bytes: usize,
    /// One checksum for each block; empty if the caller checks blocks.
    pub(super) checksums: Vec<u64>,
}

impl LtInfo {
    pub(super) fn new(code: LtCode, object: usize, blocks: &LtBlocks) -> Self {
        let block_bytes = blocks.block_bytes();
        let checksums = blocks.iter().map(|block| checksum(block.number as u64, block.bytes));
        let checksums = checksums.collect();
        Self { code, graph: None, object_bytes: object as u64, block_bytes, checksums }
    }

    /// Returns the information for blocks that the caller checks with its own checksums. The
    /// decoder then checks only counts and lengths.
    ///
    /// # Errors
    /// If the object is empty, or if it does not fit into k blocks of that length.
    pub fn unchecked(code: LtCode, object_bytes: u64, block_bytes: usize) -> Result<Self> {
        let room = (block_bytes as u64).checked_mul(code.data() as u64);
        if object_bytes == 0 || room.is_none_or(|room| room < object_bytes) {
            return Err(Error::parameters(format!(
                "{} blocks of {block_bytes} bytes must hold an object of at least 1 byte; got one \
                 of {object_bytes} bytes",
                code.data()
            )));
        }
        Ok(Self { code, graph: None, object_bytes, block_bytes, checksums: Vec::new() })
    }

    /// The code.
    pub fn code(&self) -> &LtCode {
        &self.code
    }

    /// The graph.
    ///
    /// # Errors
    /// As [`LtCode::graph`].
    pub fn graph(&self) -> Result<Graph> {
        self.graph.clone().map_or_else(|| self.code.graph(), Ok)
    }

    /// Whether a graph is the object's. If it was not drawn by its code, the code's is drawn.
    pub(super) fn has_graph(&self, graph: &Graph) -> Result<bool> {
        Ok(match &self.graph {
            Some(own) => own == graph,
            None => self.code.has_drawn(graph) || self.code.graph()? == *graph,
        })
    }

    /// The number of data blocks, k.
    pub fn data(&self) -> usize {
        self.code.data()
    }

    /// The number of blocks, n.
    pub fn blocks(&self) -> usize {
        self.code.blocks()
    }

    /// The length of the object, in bytes.
    pub fn object_bytes(&self) -> u64 {
        self.object_bytes
    }

    /// The length of every block, in bytes.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Checks the length and checksum of the block with number `number`.
    ///
    /// # Errors
    /// If `number` is out of range, or if the block's length or checksum does not match.
    pub(super) fn check(&self, number: usize, bytes: &[u8]) -> Result<()> {
        if number >= self.blocks() {
            let last = self.blocks() - 1;
            let message = format!("a block's number must be at most {last}; got {number}");
            return Err(Error::parameters(message).at(number));
        }
        if bytes.len() != self.block_bytes {
            let (expected, given) = (self.block_bytes, bytes.len());
            let message = format!("block {number} must have {expected} bytes; got {given}");
            let error = Error::length(message).at(number);
            return Err(error.expecting(expected).given_instead(given));
        }
        match self.checksums.get(number) {
            Some(&expected) if checksum(number as u64, bytes) != expected => {
                let what = "is damaged, or of another object: its checksum differs";
                Err(Error::damaged(format!("block {number} {what}")).at(number))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the CRC-64 (NVMe) of the number and the bytes.
pub(super) fn checksum(number: u64, bytes: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.write(&number.to_le_bytes());
    digest.write(bytes);
    digest.sum64()
}
