//! Blocks in memory: a single block with its number, and all blocks of an encoder.

use crate::error::{Error, Result};
use crate::plan::machine::LINE;
use crate::run::pages::Pages;

/// A block and its number. `B` holds its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LtBlock<B = Vec<u8>> {
    /// Number of the block, from 0 to n - 1.
    pub number: usize,
    /// Bytes of the block.
    pub bytes: B,
}

/// All blocks of an object, from 0 to n - 1, in memory that they own.
#[derive(Debug)]
pub struct LtBlocks {
    memory: Pages,
    count: usize,
    bytes: usize,
    /// Distance between the starts of two blocks, in bytes: an odd number of cache lines. With a
    /// large power of two, the same places of all blocks would share few sets of the caches.
    stride: usize,
}

impl LtBlocks {
    /// Returns `count` blocks of `bytes` zeros each; `count` is at least 1.
    pub(super) fn zeroed(count: usize, bytes: usize) -> Result<Self> {
        let too_many = || Error::too_large(format_args!("{count} blocks of {bytes}"));
        let stride = (bytes.div_ceil(LINE) | 1).checked_mul(LINE).ok_or_else(too_many)?;
        let memory = Pages::zeroed(count.checked_mul(stride).ok_or_else(too_many)?)?;
        Ok(Self { memory, count, bytes, stride })
    }

    /// The number of blocks, n.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The length of every block.
    pub fn block_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a block by number, or `None` if the number is n or more.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        (number < self.count).then(|| &self.memory[number * self.stride..][..self.bytes])
    }

    /// The blocks in order, with their numbers.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = LtBlock<&[u8]>> + ExactSizeIterator {
        let blocks = self.memory.chunks_exact(self.stride).enumerate();
        blocks.map(|(number, block)| LtBlock { number, bytes: &block[..self.bytes] })
    }

    /// Returns the blocks in order, for writing.
    pub(super) fn targets(&mut self) -> Vec<&mut [u8]> {
        let blocks = self.memory.chunks_exact_mut(self.stride);
        blocks.map(|block| &mut block[..self.bytes]).collect()
    }
}
