//! Memory at chosen places. The addresses at which buffers begin decide which sets of a cache they
//! compete for, so a measurement states the places of its buffers.

/// Bytes of a page. Addresses at equal places in their pages compete for the same set of a cache.
const PAGE: usize = 4096;

/// Memory of a shard, at a chosen place within a page.
#[derive(Debug)]
pub struct Shard {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Shard {
    /// Allocates `length` bytes that begin `offset` bytes (modulo a page) after the start of a
    /// page; `None` if the system lacks that much memory.
    pub fn new(length: usize, offset: usize) -> Option<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(length.checked_add(2 * PAGE)?).ok()?;
        memory.resize(length + 2 * PAGE, 0);
        let start = memory.as_ptr().align_offset(PAGE) % PAGE + offset % PAGE;
        Some(Self { memory, start, length })
    }

    /// Fills the memory with bytes that have no short period.
    pub fn fill(&mut self, seed: usize) {
        self.bytes_mut().iter_mut().zip(pattern(seed)).for_each(|(to, from)| *to = from);
    }

    /// Whether the memory holds what [`Shard::fill`] wrote for `seed`.
    pub fn is_filled(&self, seed: usize) -> bool {
        self.bytes().iter().zip(pattern(seed)).all(|(&is, right)| is == right)
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }

    /// Returns the bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.length]
    }
}

/// Memory of many shards of one length, at equal distances.
#[derive(Debug)]
pub struct ShardMemory {
    memory: Shard,
    length: usize,
    stride: usize,
}

impl ShardMemory {
    /// Allocates `count` shards of `length` bytes. The first begins at a page, and each of the
    /// others `stride` bytes (at least `length`) after the one before. `None` if the system lacks
    /// that much memory.
    pub fn new(count: usize, length: usize, stride: usize) -> Option<Self> {
        let stride = stride.max(length).max(1);
        let memory = Shard::new(count.checked_mul(stride)?, 0)?;
        Some(Self { memory, length, stride })
    }

    /// Fills each shard with different bytes that have no short period.
    pub fn fill(&mut self) {
        for (seed, shard) in self.iter_mut().enumerate() {
            shard.iter_mut().zip(pattern(seed)).for_each(|(to, from)| *to = from);
        }
    }

    /// Iterates over the bytes of each shard.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.memory.bytes().chunks_exact(self.stride).map(|shard| &shard[..self.length])
    }

    /// Iterates over the bytes of each shard, for writing.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [u8]> {
        let chunks = self.memory.bytes_mut().chunks_exact_mut(self.stride);
        chunks.map(|shard| &mut shard[..self.length])
    }
}

fn pattern(seed: usize) -> impl Iterator<Item = u8> {
    (0..).map(move |i: usize| ((i % 251) * 7 + seed * 31 + i / 251 * 3) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_lie_where_they_are_to() {
        for offset in [0, 1, 320, 4095, 5000] {
            let mut shard = Shard::new(10_000, offset).unwrap();
            assert_eq!(shard.bytes().as_ptr().addr() % PAGE, offset % PAGE);
            shard.fill(3);
            assert!(shard.is_filled(3) && !shard.is_filled(4));
            shard.bytes_mut()[9_999] ^= 1;
            assert!(!shard.is_filled(3));
        }
        assert!(Shard::new(usize::MAX, 0).is_none());
    }

    #[test]
    fn many_shards_lie_at_equal_distances() {
        let mut shards = ShardMemory::new(5, 100, 192).unwrap();
        shards.fill();
        let starts: Vec<usize> = shards.iter().map(|shard| shard.as_ptr().addr()).collect();
        assert!(starts[0].is_multiple_of(PAGE) && starts.windows(2).all(|w| w[1] - w[0] == 192));
        assert!(shards.iter().all(|shard| shard.len() == 100));
        let first: Vec<u8> = shards.iter().map(|shard| shard[0]).collect();
        assert_eq!(first, [0, 31, 62, 93, 124]);
        shards.iter_mut().for_each(|shard| shard.fill(7));
        assert!(shards.iter().all(|shard| shard.iter().all(|&byte| byte == 7)));
        assert_eq!(ShardMemory::new(3, 64, 0).unwrap().iter().len(), 3);
        assert!(ShardMemory::new(usize::MAX, 64, 64).is_none());
    }
}
