//! The digest of a file whose parts are hashed by different threads, in any order.
//!
//! BLAKE3 is a tree over chunks of 1 KiB. Whoever reads a range of a file hashes the whole subtrees
//! that lie in it ([`Parts::of`]); bytes of chunks that a range cuts are kept as they are. When all
//! ranges have been read, [`Parts::join`] hashes the cut chunks and the rest of the tree. Files
//! that lie in one range are hashed at once.

use std::collections::BTreeMap;

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};
use blake3::{CHUNK_LEN, Hasher};

/// The first 16 bytes of the BLAKE3 digest of a file.
pub type FileDigest = [u8; 16];

const CHUNK: u64 = CHUNK_LEN as u64;

/// Returns the digest of a whole file.
pub(crate) fn digest(bytes: &[u8]) -> FileDigest {
    shorten(&blake3::hash(bytes))
}

fn shorten(hash: &blake3::Hash) -> FileDigest {
    hash.as_slice()[..16].try_into().expect("a hash has 32 bytes")
}

/// What is known of a file's tree after some ranges of it were hashed.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Subtrees by the position of their first byte: the position of their end, and their value.
    subtrees: BTreeMap<u64, (u64, ChainingValue)>,
    /// Bytes of chunks that the ends of ranges cut, by position.
    fragments: BTreeMap<u64, Vec<u8>>,
}

impl Parts {
    /// Hashes the bytes of a file of `length` bytes that begin at `offset`.
    pub fn of(offset: u64, bytes: &[u8], length: u64) -> Self {
        let mut parts = Self::default();
        if length <= CHUNK {
            parts.keep(offset, bytes);
            return parts;
        }
        let end = offset + bytes.len() as u64;
        let at = |position: u64| (position - offset) as usize;
        let first = offset.next_multiple_of(CHUNK).min(end);
        let last = if end == length { end } else { (end / CHUNK * CHUNK).max(first) };
        parts.keep(offset, &bytes[..at(first)]);
        let mut start = first;
        while start < last {
            let next = start + subtree(start, last - start).min(left_length(length));
            let value = hash_subtree(start, &bytes[at(start)..at(next)]);
            parts.subtrees.insert(start, (next, value));
            start = next;
        }
        parts.keep(last, &bytes[at(last)..]);
        parts
    }

    fn keep(&mut self, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.fragments.insert(offset, bytes.to_vec());
        }
    }

    /// Adds what another range gave.
    pub fn add(&mut self, other: Self) {
        self.subtrees.extend(other.subtrees);
        self.fragments.extend(other.fragments);
    }

    /// Hashes chunks and parents of the file of `length` bytes whose parts are there, so that what
    /// is kept does not grow with the number of ranges.
    pub fn settle(&mut self, length: u64) {
        if length > CHUNK {
            self.settle_chunks(length);
            self.settle_parents(length);
        }
    }

    fn settle_chunks(&mut self, length: u64) {
        let mut chunk: Vec<u8> = Vec::new();
        let mut next = 0;
        for (offset, bytes) in std::mem::take(&mut self.fragments) {
            if offset != next {
                self.keep(next - chunk.len() as u64, &chunk);
                chunk.clear();
            }
            next = offset + bytes.len() as u64;
            chunk.extend_from_slice(&bytes);
            let start = next - chunk.len() as u64;
            if next % CHUNK == 0 || next == length {
                match start % CHUNK {
                    0 => _ = self.subtrees.insert(start, (next, hash_subtree(start, &chunk))),
                    _ => self.keep(start, &chunk),
                }
                chunk.clear();
            }
        }
        self.keep(next - chunk.len() as u64, &chunk);
    }

    fn settle_parents(&mut self, length: u64) {
        let mut settled: Vec<(u64, u64, ChainingValue)> = Vec::new();
        for (start, (end, value)) in std::mem::take(&mut self.subtrees) {
            let mut node = (start, end, value);
            while let Some(&(left, middle, value)) = settled.last() {
                let size = node.1 - node.0;
                let are_siblings =
                    middle == node.0 && middle - left == size && left % (2 * size) == 0;
                // The root is no subtree.
                if !are_siblings || !size.is_power_of_two() || (left, node.1) == (0, length) {
                    break;
                }
                settled.pop();
                node = (left, node.1, merge_subtrees_non_root(&value, &node.2, Mode::Hash));
            }
            settled.push(node);
        }
        self.subtrees = settled.into_iter().map(|(start, end, v)| (start, (end, v))).collect();
    }

    /// Returns the digest of the file of `length` bytes, of which all ranges were added.
    pub fn join(mut self, length: u64) -> FileDigest {
        if length <= CHUNK {
            return digest(&self.fragments.into_values().collect::<Vec<_>>().concat());
        }
        self.settle(length);
        let left = left_length(length);
        let (left, right) = (self.value(0, left), self.value(left, length));
        shorten(&merge_subtrees_root(&left, &right, Mode::Hash))
    }

    /// Returns the value of the subtree from `start` to `end`.
    fn value(&self, start: u64, end: u64) -> ChainingValue {
        match self.subtrees.get(&start) {
            Some((known, value)) if *known == end => *value,
            _ if end - start <= CHUNK => unreachable!("a chunk at {start} was not added"),
            _ => {
                let middle = start + left_length(end - start);
                let (left, right) = (self.value(start, middle), self.value(middle, end));
                merge_subtrees_non_root(&left, &right, Mode::Hash)
            }
        }
    }
}

/// Returns the length of the largest subtree that begins at `start` and lies in `length` bytes.
/// Below a chunk it is all of them, which are the end of the file.
fn subtree(start: u64, length: u64) -> u64 {
    if length <= CHUNK {
        return length;
    }
    let fits = 1 << length.ilog2();
    match start {
        0 => fits,
        _ => fits.min(1 << start.trailing_zeros()),
    }
}

/// Returns the length of the left subtree of a tree of `length` bytes, which has more than a chunk.
fn left_length(length: u64) -> u64 {
    1 << (length - 1).ilog2()
}

fn hash_subtree(start: u64, bytes: &[u8]) -> ChainingValue {
    Hasher::new().set_input_offset(start).update(bytes).finalize_non_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_ranges_give_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at * 31 % 251) as u8).collect();
        let lengths = [1, 1023, 1024, 1025, 2048, 2049, 3072, 65_536, 100_001, 131_072, 200_000];
        for length in lengths {
            let file = &bytes[..length];
            for step in [1, 100, 1000, 1024, 1536, 4096, 10_007, 65_536, 70_000] {
                if length / step > 5000 {
                    continue;
                }
                let mut all = Parts::default();
                let ranges: Vec<usize> = (0..length).step_by(step).collect();
                for &start in ranges.iter().rev() {
                    let range = &file[start..(start + step).min(length)];
                    all.add(Parts::of(start as u64, range, length as u64));
                    if start % 3 == 0 {
                        all.settle(length as u64);
                    }
                }
                assert_eq!(all.join(length as u64), digest(file), "{length} by {step}");
            }
        }
    }
}
