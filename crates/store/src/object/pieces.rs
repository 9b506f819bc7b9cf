//! The digest of bytes that become known in any order, by several threads.
//!
//! BLAKE3 is a tree: its leaves are chunks of 1,024 bytes, and the values of two adjacent subtrees
//! of equal size give the value of both together (Aumasson, Neves, O'Connor and Wilcox-O'Hearn,
//! BLAKE3, section 2.1). So each thread hashes the bytes that it has in its cache, and then only
//! the values are combined. Bytes that begin or end within a chunk are kept until the rest of the
//! chunk has come.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, max_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use blake3::{CHUNK_LEN, Hasher};

use crate::object::format::Digest;

const CHUNK: u64 = CHUNK_LEN as u64;

/// A digest that is made of pieces.
#[derive(Debug)]
pub struct PieceDigest {
    length: u64,
    parts: Mutex<KnownPieces>,
}

/// What is known of the bytes, by position.
#[derive(Debug, Default)]
struct KnownPieces {
    /// The length of the longest subtree that begins at a position, and its value.
    subtrees: BTreeMap<u64, (u64, ChainingValue)>,
    /// Bytes of chunks that are not complete yet. No piece reaches beyond its chunk.
    loose: BTreeMap<u64, Vec<u8>>,
    /// The digest, if all bytes came at once.
    whole: Option<Digest>,
}

impl PieceDigest {
    /// Begins the digest of `length` bytes.
    pub fn new(length: u64) -> Self {
        Self { length, parts: Mutex::default() }
    }

    /// Takes adjacent pieces. The first piece begins at `start`. The same bytes may come twice.
    /// Bytes beyond the length are ignored.
    pub fn take(&self, start: u64, pieces: &[impl AsRef<[u8]>]) {
        let total: u64 = pieces.iter().map(|piece| piece.as_ref().len() as u64).sum();
        let run = PieceRun { start, pieces };
        let range = start.min(self.length)..start.saturating_add(total).min(self.length);
        if range == (0..self.length) {
            let digest = Digest::new(run.hasher(0, range).finalize().into());
            self.with(|parts| parts.whole = Some(digest));
            return;
        }
        let middle = self.chunks_within(&range);
        let ends = [range.start..middle.start, middle.end..range.end];
        let subtrees: Vec<_> = self
            .subtrees(middle)
            .map(|tree| (tree.clone(), run.hasher(tree.start, tree).finalize_non_root()))
            .collect();
        self.with(|parts| {
            subtrees.into_iter().for_each(|(tree, value)| parts.insert(tree, value, self.length));
            for end in ends.into_iter().filter(|end| !end.is_empty()) {
                parts.keep(end.start, run.bytes(&end), self.length);
            }
        });
    }

    /// Adds what `other` knows about other bytes of the same object.
    pub fn join(&self, other: Self) {
        let other = other.parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.with(|parts| {
            parts.whole = parts.whole.or(other.whole);
            for (start, (length, value)) in other.subtrees {
                parts.insert(start..start + length, value, self.length);
            }
            for (start, bytes) in other.loose {
                parts.keep(start, bytes, self.length);
            }
        });
    }

    /// Returns the digest, or `None` if bytes are missing.
    pub fn finish(self) -> Option<Digest> {
        let parts = self.parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        if parts.whole.is_some() || self.length == 0 {
            return parts.whole.or_else(|| Some(Digest::new(Hasher::new().finalize().into())));
        }
        let (mut values, mut at) = (Vec::new(), 0);
        while at < self.length {
            let (length, value) = parts.subtrees.get(&at)?;
            values.push(*value);
            at += length;
        }
        let mut right = values.pop()?;
        // Only a whole that came at once or is one chunk is a single subtree.
        let (left, rest) = values.split_first()?;
        for value in rest.iter().rev() {
            right = merge_subtrees_non_root(value, &right, Mode::Hash);
        }
        Some(Digest::new(merge_subtrees_root(left, &right, Mode::Hash).into()))
    }

    /// Returns the part of a range that consists of whole chunks. The last chunk of all bytes
    /// counts as whole even if it is short.
    fn chunks_within(&self, range: &Range<u64>) -> Range<u64> {
        let end = if range.end == self.length { range.end } else { range.end / CHUNK * CHUNK };
        let start = range.start.next_multiple_of(CHUNK).min(range.end);
        start..end.max(start)
    }

    /// Cuts a range of whole chunks into the largest subtrees.
    fn subtrees(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let left = range.end - at;
            if left == 0 {
                return None;
            }
            let most = max_subtree_len(at).unwrap_or(u64::MAX);
            let is_last = range.end == self.length && left <= most && at > 0;
            let length = if is_last { left } else { (1 << left.ilog2()).min(most) };
            at += length;
            Some(at - length..at)
        })
    }

    fn with(&self, act: impl FnOnce(&mut KnownPieces)) {
        act(&mut self.parts.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl KnownPieces {
    /// Takes the value of a subtree, and merges it with its neighbour for as long as that is
    /// possible. The two halves of the whole stay apart: their parent is the root.
    fn insert(&mut self, tree: Range<u64>, value: ChainingValue, whole: u64) {
        let (mut start, mut length, mut value) = (tree.start, tree.end - tree.start, value);
        while length.is_power_of_two() && length >= CHUNK && 2 * length < whole {
            let (left, right) = (start & !length, start | length);
            let other = if start == left { right } else { left };
            let Some(&(same, neighbour)) = self.subtrees.get(&other) else { break };
            if same != length {
                break;
            }
            self.subtrees.remove(&other);
            value = match start == left {
                true => merge_subtrees_non_root(&value, &neighbour, Mode::Hash),
                false => merge_subtrees_non_root(&neighbour, &value, Mode::Hash),
            };
            (start, length) = (left, 2 * length);
        }
        let known = self.subtrees.entry(start).or_insert((length, value));
        if known.0 < length {
            *known = (length, value);
        }
    }

    /// Keeps bytes of one chunk, and hashes the chunk when it is complete.
    fn keep(&mut self, start: u64, bytes: Vec<u8>, whole: u64) {
        let known = self.loose.entry(start).or_default();
        if known.len() < bytes.len() {
            *known = bytes;
        }
        let first = start / CHUNK * CHUNK;
        let end = (first + CHUNK).min(whole);
        let mut chunk = Vec::with_capacity(CHUNK_LEN);
        for (&at, piece) in self.loose.range(first..end) {
            let known = first + chunk.len() as u64;
            match known.checked_sub(at) {
                Some(again) => chunk.extend(piece.iter().skip(again as usize)),
                None => return,
            }
        }
        if first + (chunk.len() as u64) < end {
            return;
        }
        let mut later = self.loose.split_off(&first);
        self.loose.append(&mut later.split_off(&end));
        if (first..end) == (0..whole) {
            self.whole = Some(Digest::new(blake3::hash(&chunk).into()));
            return;
        }
        let value = Hasher::new().set_input_offset(first).update(&chunk).finalize_non_root();
        self.insert(first..end, value, whole);
    }
}

/// Adjacent pieces.
struct PieceRun<'a, P> {
    start: u64,
    pieces: &'a [P],
}

impl<P: AsRef<[u8]>> PieceRun<'_, P> {
    /// Returns the hasher of the bytes of `range`. The first piece begins at the position `offset`.
    fn hasher(&self, offset: u64, range: Range<u64>) -> Hasher {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(offset);
        self.each(&range, |bytes| _ = hasher.update(bytes));
        hasher
    }

    fn bytes(&self, range: &Range<u64>) -> Vec<u8> {
        let mut all = Vec::new();
        self.each(range, |bytes| all.extend_from_slice(bytes));
        all
    }

    fn each(&self, range: &Range<u64>, mut act: impl FnMut(&[u8])) {
        let mut start = self.start;
        for piece in self.pieces.iter().map(AsRef::as_ref) {
            let end = start + piece.len() as u64;
            let (from, to) = (start.max(range.start), end.min(range.end));
            if from < to {
                act(&piece[(from - start) as usize..(to - start) as usize]);
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * i / 7 + i) as u8).collect()
    }

    fn digest(bytes: &[u8], cuts: &[usize], order: impl Fn(usize) -> usize) -> Option<Digest> {
        let made = PieceDigest::new(bytes.len() as u64);
        let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        bounds.extend([0, bytes.len()]);
        bounds.sort_unstable();
        let mut parts: Vec<_> = bounds.windows(2).map(|pair| pair[0]..pair[1]).collect();
        parts.sort_by_key(|part| order(part.start));
        for (number, part) in parts.into_iter().enumerate() {
            let middle = part.start.midpoint(part.end);
            let pieces = [&bytes[part.start..middle], &bytes[middle..part.end]];
            if number % 3 > 0 {
                made.take(part.start as u64, &pieces);
                continue;
            }
            let other = PieceDigest::new(bytes.len() as u64);
            other.take(part.start as u64, &pieces);
            made.join(other);
        }
        made.finish()
    }

    fn expected(bytes: &[u8]) -> Option<Digest> {
        Some(Digest::new(blake3::hash(bytes).into()))
    }

    #[test]
    fn whole_chunks_in_any_order() {
        for chunks in 0..40 {
            for tail in [0, 1, 1023] {
                let bytes = bytes(chunks * CHUNK_LEN + tail);
                let cuts: Vec<usize> = (0..chunks).map(|chunk| chunk * CHUNK_LEN).collect();
                for order in
                    [|at| at, |at| usize::MAX - at, |at: usize| at.wrapping_mul(0x9E37) % 97]
                {
                    assert_eq!(digest(&bytes, &cuts, order), expected(&bytes), "{chunks} {tail}");
                }
            }
        }
    }

    #[test]
    fn missing_bytes_give_no_digest() {
        let bytes = bytes(10_000);
        let made = PieceDigest::new(10_000);
        made.take(0, &[&bytes[..5000]]);
        made.take(5001, &[&bytes[5001..]]);
        assert_eq!(made.finish(), None);
    }

    #[test]
    fn fewer_of_the_same_bytes_take_nothing_away() {
        let bytes = bytes(45);
        let made = PieceDigest::new(45);
        made.take(22, &[&bytes[22..]]);
        made.take(22, &[&bytes[22..30]]);
        made.take(0, &[&bytes[..22]]);
        assert_eq!(made.finish(), expected(&bytes));
    }

    proptest! {
        #[test]
        fn any_pieces_in_any_order(
            length in 0usize..70_000,
            cuts in proptest::collection::vec(any::<usize>(), 0..20),
            factor in any::<usize>(),
        ) {
            let bytes = bytes(length);
            let order = |at: usize| at.wrapping_mul(factor | 1) % 1009;
            prop_assert_eq!(digest(&bytes, &cuts, order), expected(&bytes));
        }

        #[test]
        fn bytes_may_come_twice(
            length in 1usize..20_000,
            again in proptest::collection::vec(any::<(usize, usize)>(), 1..30),
        ) {
            let bytes = bytes(length);
            let made = PieceDigest::new(length as u64);
            let half = length / 2;
            made.take(half as u64, &[&bytes[half..]]);
            for (start, end) in again {
                let (start, end) = (start % length, end % length);
                let (start, end) = (start.min(end), start.max(end));
                made.take(start as u64, &[&bytes[start..end]]);
            }
            made.take(0, &[&bytes[..half]]);
            prop_assert_eq!(made.finish(), expected(&bytes));
        }
    }
}
