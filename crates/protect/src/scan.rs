//! Finding bytes that still exist, but have moved.
//!
//! A missing file is looked for, by size and digest, among the files that are not protected.
//! Missing, damaged and changed files are also looked for among the files that a killed repair has
//! left. A lost block is looked for by its checksum at every byte of all these files, and of the
//! damaged or changed ones, because bytes that were inserted or removed in front of a block have
//! moved it. The checksum rolls over the file: a CRC is linear, so one table takes out the byte
//! that leaves the window, and another brings in the byte that enters it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use crc_fast::{CrcAlgorithm, checksum};
use paritas_store::memory::by_default;
use paritas_store::place::system::open_file;

use crate::digest::{FileDigest, digest_of_open};
use crate::evidence::{Evidence, FileState, LayerEvidence};
use crate::find::{EntryKind, Layer, ProtectedEntry, Protection};
use crate::format::{after_zeros, block_checksum, checksum_of_zeros};
use crate::paths::{name_bytes, path_in};
use crate::stream::{Patch, PieceFile, Stream};
use crate::tree::{FoundKind, Links, Tree, map_in_threads, name_of};

/// Number of bytes that are read at once.
const STEP: usize = 1 << 20;
/// Largest size in bytes of a block for which a thread holds whole windows in memory. For a larger
/// block, it holds [`STEP`] bytes at either end of the window.
const MOST_IN_MEMORY: usize = 16 << 20;
/// Largest number of bytes that all threads together have in memory. One thread works in any case.
const MOST_WINDOWS: u64 = 1 << 30;
/// The polynomial of CRC-64/NVME, reflected.
const POLYNOMIAL: u64 = 0x9a6c_9329_ac4b_c9b5;

/// Looks for missing files under other names. Looks for missing, damaged and changed files among
/// those that a killed repair has left, and among copies in place of hard links.
pub(crate) fn find_moved(protection: &Protection, evidence: &mut Evidence, threads: usize) {
    let is_missing = |state: &FileState| *state == FileState::Missing;
    let is_lost =
        |state: &FileState| matches!(state, FileState::Damaged(_) | FileState::Changed(_));
    let missing = files(protection, evidence, is_missing);
    let lost = files(protection, evidence, |state| is_missing(state) || is_lost(state));
    let moved = copies(protection, &missing, unknown_files(protection, &evidence.tree), threads);
    let elsewhere = leftovers(protection, evidence).chain(copies_of_links(protection, evidence));
    let left = copies(protection, &lost, elsewhere, threads);
    let mut used: HashMap<FileContent, usize> = HashMap::new();
    let mut changed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for number in lost {
        let EntryKind::File { size, digest, layer, piece } = protection.entries[number].kind else {
            continue;
        };
        let content = (size, digest);
        let mut source = left.get(&content).and_then(|paths| paths.first());
        if let Some(paths) = moved.get(&content).filter(|_| missing.contains(&number)) {
            // Each of the files is one moved file. Others that are missing can be copied from it.
            let used = used.entry(content).or_default();
            if let Some(path) = paths.get(*used) {
                evidence.states.insert(number, FileState::Moved(path.clone()));
                *used += 1;
            }
            source = paths.get(used.saturating_sub(1));
        }
        if let Some(path) = source {
            evidence.layers[layer].stream.set_source(piece, path.clone());
            evidence.elsewhere.insert(number, path.clone());
            changed.entry(layer).or_default().push(piece);
        }
    }
    for (layer, mut pieces) in changed {
        pieces.sort_unstable();
        recheck(&protection.layers[layer], &mut evidence.layers[layer], &pieces);
    }
    find_moved_links(protection, evidence);
    find_moved_folders(protection, evidence);
}

/// Treats a missing hard link as moved if its file, which may have moved as well, has one more new
/// name.
fn find_moved_links(protection: &Protection, evidence: &mut Evidence) {
    let places = evidence.states.iter().filter_map(|(&number, state)| match state {
        FileState::Moved(to) => Some((number, to.clone())),
        _ => None,
    });
    let places: HashMap<usize, PathBuf> = places.collect();
    let taken: HashSet<&PathBuf> = places.values().collect();
    let mut names: HashMap<Links, VecDeque<PathBuf>> = HashMap::new();
    for found in evidence.tree.others() {
        let FoundKind::File { links: Some(id), .. } = found.kind else { continue };
        let path = path_in(&protection.root, &found.path);
        if !taken.contains(&path) {
            names.entry(id).or_default().push_back(path);
        }
    }
    let links_of = |file: usize, evidence: &Evidence| match places.get(&file) {
        Some(place) => evidence.tree.links_at(&protection.root, place),
        None if is_in_place(file, evidence) => match evidence.tree.of(file)?.kind {
            FoundKind::File { links, .. } => links,
            _ => None,
        },
        None => None,
    };
    for (number, entry) in protection.entries.iter().enumerate() {
        let EntryKind::HardLink { target } = &entry.kind else { continue };
        if evidence.states.get(&number) == Some(&FileState::Missing)
            && let Some(id) = protection.entry_at(target).and_then(|it| links_of(it, evidence))
            && let Some(names) = names.get_mut(&id)
            && let Some(name) = take_alike(names, name_of(&entry.path))
        {
            evidence.states.insert(number, FileState::Moved(name));
        }
    }
}

/// Whether a file is where it was, with its bytes.
fn is_in_place(file: usize, evidence: &Evidence) -> bool {
    matches!(evidence.states.get(&file), None | Some(FileState::Touched))
}

/// Takes the first path with this last name, or else the first one.
fn take_alike(paths: &mut VecDeque<PathBuf>, name: &[u8]) -> Option<PathBuf> {
    let is_alike = |path: &PathBuf| path.file_name().is_some_and(|it| name_bytes(it) == name);
    let alike = paths.iter().position(is_alike);
    paths.remove(alike.unwrap_or(0))
}

/// Treats a missing folder as moved if everything that was in it is in one other folder now.
fn find_moved_folders(protection: &Protection, evidence: &mut Evidence) {
    // Backwards, because whether a folder has moved depends on the folders in it.
    for (number, entry) in protection.entries.iter().enumerate().rev() {
        let is_missing = evidence.states.get(&number) == Some(&FileState::Missing);
        if entry.kind == EntryKind::Folder
            && is_missing
            && let Some((to, others)) = new_folder(protection, evidence, &entry.path)
        {
            let moved = others.into_iter().chain([(number, to)]);
            evidence.states.extend(moved.map(|(number, to)| (number, FileState::Moved(to))));
        }
    }
}

/// Returns the folder in which all is now that was in the folder at `path`. Files are known by
/// their bytes. What has no bytes must have the same name there; it is returned, too, by entry.
fn new_folder(
    protection: &Protection,
    evidence: &Evidence,
    path: &[u8],
) -> Option<(PathBuf, Vec<(usize, PathBuf)>)> {
    let rest =
        |number: usize| path_in(Path::new(""), &protection.entries[number].path[path.len() + 1..]);
    let (mut folder, mut others) = (None, Vec::new());
    for number in protection.below(path) {
        match evidence.states.get(&number) {
            Some(FileState::Moved(to)) => {
                let rest = rest(number);
                let parent = to.ancestors().nth(rest.iter().count());
                let parent = parent.filter(|_| to.ends_with(&rest))?;
                if **folder.get_or_insert(parent) != *parent {
                    return None;
                }
            }
            Some(FileState::Missing) => others.push(number),
            _ => return None,
        }
    }
    let folder = folder?;
    let place = |number: usize| {
        let to = folder.join(rest(number));
        is_at(protection, evidence, &protection.entries[number], &to).then_some((number, to))
    };
    Some((folder.to_owned(), others.into_iter().map(place).collect::<Option<_>>()?))
}

/// Whether a path has what an entry without bytes is, and does not belong to another entry.
fn is_at(
    protection: &Protection,
    evidence: &Evidence,
    entry: &ProtectedEntry,
    path: &Path,
) -> bool {
    let Some(relative) = protection.relative(path) else { return false };
    let is_new = protection.entry_at(&relative).is_none();
    match (&entry.kind, evidence.tree.at(&relative).map(|found| &found.kind)) {
        (EntryKind::Folder, Some(FoundKind::Folder)) => true,
        (EntryKind::File { size: 0, .. }, Some(FoundKind::File { size: 0, .. })) => is_new,
        (EntryKind::Symlink { target }, Some(FoundKind::Symlink { target: now })) => {
            is_new && target == now
        }
        _ => false,
    }
}

/// The size and the digest of a file.
pub(crate) type FileContent = (u64, FileDigest);

/// Returns the numbers of the protected files that have bytes and a certain state.
fn files(
    protection: &Protection,
    evidence: &Evidence,
    has_state: impl Fn(&FileState) -> bool,
) -> BTreeSet<usize> {
    let states = evidence.states.iter().filter(|(_, state)| has_state(state));
    let numbers = states.map(|(&number, _)| number);
    numbers.filter(|&number| protection.entries[number].size() > 0).collect()
}

/// Returns, in order, the files that have the content of any of the entries.
fn copies(
    protection: &Protection,
    entries: &BTreeSet<usize>,
    files: impl Iterator<Item = (u64, PathBuf)>,
    threads: usize,
) -> HashMap<FileContent, Vec<PathBuf>> {
    let sizes: HashSet<u64> =
        entries.iter().map(|&number| protection.entries[number].size()).collect();
    let files = files.filter(|(size, _)| sizes.contains(size)).collect();
    let mut copies: HashMap<FileContent, Vec<PathBuf>> = HashMap::new();
    for (content, path) in contents(files, threads) {
        copies.entry(content).or_default().push(path);
    }
    copies.values_mut().for_each(|paths| paths.sort_unstable());
    copies
}

/// Returns size and path of the files that a killed repair has left, of the copies of what repairs
/// have replaced, and of what has the names of missing parity files.
fn leftovers<'a>(
    protection: &'a Protection,
    evidence: &'a Evidence,
) -> impl Iterator<Item = (u64, PathBuf)> + 'a {
    let copies = evidence.replaced(protection);
    let paths = evidence.leftovers(protection).chain(copies).cloned();
    paths.chain(protection.strangers()).filter_map(|path| {
        let found = std::fs::symlink_metadata(&path).ok().filter(Metadata::is_file)?;
        Some((found.len(), path))
    })
}

/// Returns size and path of the files that were hard links, and now have the bytes of their files
/// by themselves.
fn copies_of_links<'a>(
    protection: &'a Protection,
    evidence: &'a Evidence,
) -> impl Iterator<Item = (u64, PathBuf)> + 'a {
    let touched = evidence.states.iter().filter(|(_, state)| **state == FileState::Touched);
    touched.filter_map(|(&number, _)| {
        let entry = &protection.entries[number];
        match (&entry.kind, &evidence.tree.of(number)?.kind) {
            (EntryKind::HardLink { .. }, &FoundKind::File { size, .. }) => {
                Some((size, protection.path_of(entry)))
            }
            _ => None,
        }
    })
}

/// Returns size and path of the files that are not protected.
fn unknown_files<'a>(
    protection: &'a Protection,
    tree: &'a Tree,
) -> impl Iterator<Item = (u64, PathBuf)> + 'a {
    tree.others().filter_map(|found| match found.kind {
        FoundKind::File { size, .. } => Some((size, path_in(&protection.root, &found.path))),
        _ => None,
    })
}

/// Returns the files that can be read, each with its size and digest.
pub(crate) fn contents(files: Vec<(u64, PathBuf)>, threads: usize) -> Vec<(FileContent, PathBuf)> {
    let known = map_in_threads(threads, files.into_iter(), |(size, path)| {
        digest_of(&path, size).map(|digest| ((size, digest), path))
    });
    known.into_iter().flatten().collect()
}

/// Returns the digest of a file of `size` bytes, if it can be read and has that size.
pub(crate) fn digest_of(path: &Path, size: u64) -> Option<FileDigest> {
    read_digest(path, size).ok()?
}

/// Returns the digest of a file, if it has `size` bytes.
///
/// # Errors
/// If the system refuses to open or to read the file.
pub(crate) fn read_digest(path: &Path, size: u64) -> io::Result<Option<FileDigest>> {
    digest_of_open(&open_file(path)?, size)
}

/// Reads the lost blocks of some pieces again, because the files of these were found elsewhere, and
/// drops the blocks that are now right.
pub(crate) fn recheck(layer: &Layer, evidence: &mut LayerEvidence, pieces: &[usize]) {
    let geometry = layer.header.geometry;
    let mut memory = vec![0; geometry.block.min(STEP as u64) as usize];
    let LayerEvidence { stream, lost, .. } = evidence;
    lost.retain(|&block| {
        let (start, bytes) = (block * geometry.block, geometry.bytes_of(block));
        let is_found = |piece: usize| pieces.binary_search(&piece).is_ok();
        if !stream.pieces_in(start..start + bytes).any(is_found) {
            return true;
        }
        let mut crc = block_checksum();
        for at in (0..bytes).step_by(memory.len()) {
            let count = (bytes - at).min(memory.len() as u64) as usize;
            stream.fill(start + at, &mut memory[..count]);
            crc.update(&memory[..count]);
        }
        crc.finalize() != layer.checksums[block as usize]
    });
}

/// Looks for lost blocks in files that are damaged, changed or not protected, or that a killed
/// repair has left.
pub(crate) fn find_shifted(protection: &Protection, evidence: &mut Evidence, threads: usize) {
    for (number, layer) in protection.layers.iter().enumerate() {
        if evidence.layers[number].lost.is_empty() {
            continue;
        }
        let files = suspects(protection, evidence, layer.header.geometry.block);
        if files.is_empty() {
            continue;
        }
        let LayerEvidence { lost, stream, .. } = &mut evidence.layers[number];
        let wanted = WantedBlocks::new(layer, lost);
        let found = search(&wanted, files, threads);
        patch(layer, stream, &found);
        lost.retain(|block| !found.contains_key(block));
    }
}

/// Returns the files that may have blocks of `block` bytes in other places.
fn suspects(protection: &Protection, evidence: &Evidence, block: u64) -> Vec<PathBuf> {
    let is_suspect = |&(_, state): &(&usize, &FileState)| {
        matches!(state, FileState::Damaged(_) | FileState::Changed(_))
    };
    let damaged = evidence.states.iter().filter(is_suspect);
    let damaged = damaged.filter_map(|(&number, _)| {
        let found = evidence.tree.of(number)?;
        match found.kind {
            FoundKind::File { size, .. } => Some((size, path_in(&protection.root, &found.path))),
            _ => None,
        }
    });
    let files = damaged.chain(unknown_files(protection, &evidence.tree));
    let files = files.chain(leftovers(protection, evidence));
    files.filter(|(size, _)| *size >= block).map(|(_, path)| path).collect()
}

fn patch(layer: &Layer, stream: &mut Stream, found: &BTreeMap<u64, (PathBuf, u64)>) {
    let length = layer.header.geometry.block;
    for (&block, (path, offset)) in found {
        stream.patch(block * length, Patch { length, path: path.clone(), offset: *offset });
    }
}

/// The lost blocks that are looked for. A last block that is shorter than the others is not.
struct WantedBlocks {
    block: usize,
    /// The lost blocks by the linear part of their checksums.
    lost: HashMap<u64, Vec<u64>>,
    /// The sums of all whole blocks, lost or not. After each block that is found, the window jumps
    /// to its end, where the next block probably begins.
    sums: HashSet<u64>,
    /// One bit for each value of the last bits of a sum, set if some sum in `sums` ends in that
    /// value. Most sums are not in `sums`, and this tells so quickly.
    hints: Vec<u64>,
    roll: Roll,
}

/// Number of last bits of a sum that select a hint.
const HINT_BITS: u32 = 20;

impl WantedBlocks {
    fn new(layer: &Layer, lost: &[u64]) -> Self {
        let geometry = &layer.header.geometry;
        let block = geometry.block as usize;
        let roll = Roll::new(block);
        let sum_of = |number: u64| layer.checksums[number as usize] ^ roll.zeros;
        let is_whole = |number: &u64| geometry.bytes_of(*number) == geometry.block;
        let sums: HashSet<u64> = (0..geometry.data).filter(is_whole).map(sum_of).collect();
        let mut hints = vec![0; 1 << (HINT_BITS - 6)];
        for &sum in &sums {
            let (word, bit) = hint(sum);
            hints[word] |= bit;
        }
        let mut by_sum: HashMap<u64, Vec<u64>> = HashMap::new();
        for number in lost.iter().copied().filter(is_whole) {
            by_sum.entry(sum_of(number)).or_default().push(number);
        }
        Self { block, lost: by_sum, sums, hints, roll }
    }

    /// Returns the number of bytes that a thread has in memory.
    fn memory(&self) -> usize {
        match self.block > MOST_IN_MEMORY {
            true => 3 * STEP,
            false => self.block + STEP.max(self.block),
        }
    }

    fn knows(&self, sum: u64) -> bool {
        let (word, bit) = hint(sum);
        self.hints[word] & bit != 0 && self.sums.contains(&sum)
    }

    /// Looks for the blocks in a file. Many blocks may be alike, such as blocks of zeros. The first
    /// place that is found serves all of them.
    fn search(&self, path: PathBuf) -> Vec<(u64, (PathBuf, u64))> {
        let source = PieceFile { path, expected: None };
        let (mut found, mut told) = (Vec::new(), HashSet::new());
        let tell = |at: u64, sum: u64| {
            let lost = self.lost.get(&sum).filter(|_| told.insert(sum));
            let place = || (source.path.clone(), at);
            found.extend(lost.into_iter().flatten().map(|&block| (block, place())));
        };
        match self.block > MOST_IN_MEMORY {
            true => self.search_in_parts(&source, tell),
            false => self.search_in_windows(&source, tell),
        }
        found
    }

    /// Moves the window over a file, with all bytes of the window in memory. Calls `tell` with each
    /// place whose sum is known, and the sum.
    fn search_in_windows(&self, source: &PieceFile, mut tell: impl FnMut(u64, u64)) {
        // The window, and what it moves over.
        let mut memory = Vec::new();
        // If the memory is short, nothing is found.
        if memory.try_reserve_exact(self.memory()).is_err() {
            return;
        }
        memory.resize(self.memory(), 0);
        let mut start = 0;
        while let Ok(filled) = source.read(start, &mut memory)
            && filled >= self.block
        {
            start += self.roll_through(&memory[..filled], |at, sum| tell(start + at, sum));
        }
    }

    /// Does what [`WantedBlocks::search_in_windows`] does, but takes little memory for blocks of
    /// any size: it reads the file at two places, where bytes leave the window and where bytes
    /// enter it.
    fn search_in_parts(&self, source: &PieceFile, mut tell: impl FnMut(u64, u64)) {
        let block = self.block as u64;
        let [mut leaving, mut entering] = [0, 0].map(|_| FileBytes::of(source));
        let mut at = 0;
        while let Some(mut sum) = self.sum_at(source, at) {
            while !self.knows(sum) {
                let ends = (leaving.at(at), entering.at(at + block));
                let (Some(leaves), Some(enters)) = ends else { return };
                sum = self.roll.step(sum, leaves, enters);
                at += 1;
            }
            tell(at, sum);
            at += block;
        }
    }

    /// Returns the sum of the window at a place, unless the file ends before it does.
    fn sum_at(&self, source: &PieceFile, at: u64) -> Option<u64> {
        let mut memory = vec![0; STEP.min(self.block)];
        let mut crc = block_checksum();
        for from in (0..self.block).step_by(STEP) {
            let bytes = &mut memory[..STEP.min(self.block - from)];
            let read = source.read(at + from as u64, bytes).ok()?;
            crc.update((read == bytes.len()).then_some(&*bytes)?);
        }
        Some(crc.finalize() ^ self.roll.zeros)
    }

    /// Moves the window over the bytes, and calls `tell` with each place whose sum is known, and
    /// the sum. Returns the place at which to go on, which may be beyond the bytes.
    fn roll_through(&self, bytes: &[u8], mut tell: impl FnMut(u64, u64)) -> u64 {
        let (mut at, last) = (0, bytes.len() - self.block);
        let mut sum = self.roll.of(&bytes[..self.block]);
        loop {
            let is_known = self.knows(sum);
            if is_known {
                tell(at as u64, sum);
            }
            let next = at + if is_known { self.block } else { 1 };
            if next > last {
                return next as u64;
            }
            sum = match is_known {
                true => self.roll.of(&bytes[next..next + self.block]),
                false => self.roll.step(sum, bytes[at], bytes[at + self.block]),
            };
            at = next;
        }
    }
}

/// The bytes of a file, some of which are in memory.
struct FileBytes<'s> {
    source: &'s PieceFile,
    start: u64,
    bytes: Vec<u8>,
}

impl<'s> FileBytes<'s> {
    fn of(source: &'s PieceFile) -> Self {
        Self { source, start: 0, bytes: Vec::new() }
    }

    /// Returns the byte at a place, unless the file ends before it.
    fn at(&mut self, place: u64) -> Option<u8> {
        if !(self.start..self.start + self.bytes.len() as u64).contains(&place) {
            self.bytes.resize(STEP, 0);
            let read = self.source.read(place, &mut self.bytes).unwrap_or(0);
            self.bytes.truncate(read);
            self.start = place;
        }
        self.bytes.get((place - self.start) as usize).copied()
    }
}

/// Returns the word and the bit of a sum's hint.
fn hint(sum: u64) -> (usize, u64) {
    let low = sum & ((1 << HINT_BITS) - 1);
    ((low >> 6) as usize, 1 << (low & 63))
}

fn search(
    wanted: &WantedBlocks,
    files: Vec<PathBuf>,
    threads: usize,
) -> BTreeMap<u64, (PathBuf, u64)> {
    let at_once = (by_default(MOST_WINDOWS) / wanted.memory() as u64) as usize;
    let threads = threads.min(at_once).max(1).min(files.len());
    let found = map_in_threads(threads, files.into_iter(), |path| wanted.search(path));
    found.into_iter().flatten().collect()
}

/// The linear part of CRC-64/NVME over a window: the checksum without what the initial value and
/// the final inversion add, which depends on the length alone.
struct Roll {
    /// What each byte adds when it enters the window.
    enter: [u64; 256],
    /// What each byte still contributes when it leaves the window, a window's length later.
    leave: [u64; 256],
    /// The checksum of a window of zeros.
    zeros: u64,
}

impl Roll {
    fn new(window: usize) -> Self {
        let mut enter = [0; 256];
        for (byte, entry) in (0_u64..).zip(&mut enter) {
            *entry = (0..8).fold(byte, |sum, _| (sum >> 1) ^ (POLYNOMIAL * (sum & 1)));
        }
        let mut leave = [0; 256];
        for bit in 0..8 {
            let single = after_zeros(enter[1 << bit], window as u64);
            for byte in (0..256).filter(|byte| byte >> bit & 1 == 1) {
                leave[byte] ^= single;
            }
        }
        Self { enter, leave, zeros: checksum_of_zeros(window as u64) }
    }

    /// Returns the sum of a window. A sum of fewer bytes is meaningless.
    fn of(&self, window: &[u8]) -> u64 {
        checksum(CrcAlgorithm::Crc64Nvme, window) ^ self.zeros
    }

    fn step(&self, sum: u64, leaves: u8, enters: u8) -> u64 {
        let entered = self.enter[usize::from(sum as u8 ^ enters)] ^ (sum >> 8);
        entered ^ self.leave[usize::from(leaves)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One place serves all blocks that are alike. A file of zeros has almost as many places as
    /// bytes.
    #[test]
    fn blocks_that_are_alike_are_found_once() {
        let block = 1000;
        let roll = Roll::new(block);
        let sum = roll.of(&vec![0; block]);
        let hints = vec![u64::MAX; 1 << (HINT_BITS - 6)];
        let lost = HashMap::from([(sum, (0..50).collect())]);
        let wanted = WantedBlocks { block, lost, sums: HashSet::from([sum]), hints, roll };
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(3 * STEP as u64 + 123).unwrap();
        let found = wanted.search(file.path().to_owned());
        let blocks: Vec<u64> = found.iter().map(|&(block, _)| block).collect();
        assert_eq!(blocks, (0..50).collect::<Vec<u64>>());
        assert!(found.iter().all(|(_, place)| *place == (file.path().to_owned(), 0)));
    }

    /// Large blocks are found at the same places, with little memory.
    #[test]
    fn blocks_are_found_in_parts() {
        let block = 1_500_000;
        let noise = |count: usize, seed: u64| -> Vec<u8> {
            let mut state = seed;
            let next = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 56) as u8
            };
            std::iter::repeat_with(next).take(count).collect()
        };
        let blocks = [1, 2].map(|seed| noise(block, seed));
        let roll = Roll::new(block);
        let sums = [roll.of(&blocks[0]), roll.of(&blocks[1])];
        let lost = HashMap::from([(sums[0], vec![3]), (sums[1], vec![4])]);
        let hints = vec![u64::MAX; 1 << (HINT_BITS - 6)];
        let wanted = WantedBlocks { block, lost, sums: HashSet::from(sums), hints, roll };
        let parts: [&[u8]; 5] = [&noise(1_100_007, 3), &blocks[1], &noise(11, 4), &blocks[0], &[5]];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), parts.concat()).unwrap();
        let source = PieceFile { path: file.path().to_owned(), expected: None };
        let (mut in_parts, mut in_windows) = (Vec::new(), Vec::new());
        wanted.search_in_parts(&source, |at, sum| in_parts.push((at, sum)));
        wanted.search_in_windows(&source, |at, sum| in_windows.push((at, sum)));
        let expected = vec![(1_100_007, sums[1]), (2_600_018, sums[0])];
        assert_eq!((&in_parts, &in_windows), (&expected, &expected));
    }

    /// Neither the number of threads nor the size of a block decides how much memory is taken.
    #[test]
    fn windows_take_little_memory() {
        for block in [512, 1 << 20, MOST_IN_MEMORY, MOST_IN_MEMORY + 128, 1 << 40] {
            let (lost, sums, hints) = Default::default();
            let wanted = WantedBlocks { block, lost, sums, hints, roll: Roll::new(512) };
            assert!(wanted.memory() <= 2 * MOST_IN_MEMORY, "{block}");
        }
    }

    /// A header may state blocks that are larger than any memory.
    #[test]
    fn tables_of_large_windows_take_no_memory() {
        assert_ne!(Roll::new(1 << 40).zeros, Roll::new(1 << 39).zeros);
    }

    #[test]
    fn rolled_sums_are_those_of_windows() {
        let bytes: Vec<u8> = (0..5000_u32).map(|at| (at * at % 251) as u8).collect();
        for window in [1, 64, 512, 1000] {
            let roll = Roll::new(window);
            let mut sum = roll.of(&bytes[..window]);
            for at in 0..bytes.len() - window {
                let whole = checksum(CrcAlgorithm::Crc64Nvme, &bytes[at..at + window]);
                assert_eq!(sum, whole ^ roll.zeros, "{window} at {at}");
                sum = roll.step(sum, bytes[at], bytes[at + window]);
            }
        }
    }
}
