//! The evidence of a verification: the findings about files, blocks and parity, before they are put
//! into a report.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::aside;
use crate::find::{EntryKind, Layer, Protection};
use crate::parity::{Checked, ParityFile};
use crate::paths::name_bytes;
use crate::stream::Stream;
use crate::tree::{Tree, is_temporary};

/// The state of something that is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// Its bytes are right, its mode or time is not.
    Touched,
    /// Its time is right, but its bytes are not. The ranges are the bytes of the file that lie in
    /// lost blocks.
    Damaged(Vec<Range<u64>>),
    /// Both its bytes and its time differ, or it has become something else: someone has changed it.
    /// The ranges are as for [`FileState::Damaged`].
    Changed(Vec<Range<u64>>),
    /// It does not exist.
    Missing,
    /// It does not exist, but the file at this path has its bytes. For a folder: everything that
    /// was in it is in the folder at this path.
    Moved(PathBuf),
    /// It, or a folder above it, cannot be read now, for the reason that the system gives. It may
    /// be intact.
    Unreadable(String),
}

impl FileState {
    /// Returns the word for the state in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Touched => "touched",
            Self::Damaged(_) => "damaged",
            Self::Changed(_) => "changed",
            Self::Missing => "missing",
            Self::Moved(_) => "moved",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

/// The evidence behind the report of a verification.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub tree: Tree,
    /// The state of each entry that is not as it was.
    pub states: BTreeMap<usize, FileState>,
    /// The entries that are not whole under their names, each with the file in which all of its
    /// bytes were found.
    pub elsewhere: BTreeMap<usize, PathBuf>,
    pub layers: Vec<LayerEvidence>,
}

/// The evidence about a layer.
#[derive(Debug)]
pub(crate) struct LayerEvidence {
    pub stream: Stream,
    /// The lost data blocks, in order.
    pub lost: Vec<u64>,
    /// The parity blocks at hand, by number.
    pub rows: BTreeMap<u64, RowPlace>,
    /// The intact blocks of each parity file that could be read, by number.
    pub checked: Vec<Option<Checked>>,
}

/// Where a parity block is.
#[derive(Debug, Clone)]
pub(crate) struct RowPlace {
    /// The parity file that has it.
    pub path: PathBuf,
    /// Its position in the file.
    pub at: u64,
}

impl LayerEvidence {
    /// Puts the evidence about a layer together. `checked` has its parity files by number, and
    /// `copies` are further copies of them, which are used for what the files themselves lack.
    pub fn new(
        layer: &Layer,
        stream: Stream,
        lost: Vec<u64>,
        checked: Vec<Option<Checked>>,
        copies: Vec<(&ParityFile, Checked)>,
    ) -> Self {
        let mut rows = BTreeMap::new();
        let files = layer.files.iter().flatten();
        let files = files
            .filter_map(|file| Some((file, checked[usize::from(file.header.index)].as_ref()?)));
        for (file, checked) in files.chain(copies.iter().map(|(file, checked)| (*file, checked))) {
            for (&row, &at) in &checked.rows {
                rows.entry(row).or_insert_with(|| RowPlace { path: file.path.clone(), at });
            }
        }
        Self { stream, lost, rows, checked }
    }
}

impl Evidence {
    /// Returns the files that killed repairs of this protection have left.
    pub fn leftovers(&self, protection: &Protection) -> impl Iterator<Item = &PathBuf> {
        let id = protection.id.to_string();
        self.tree.leftovers.iter().filter(move |path| is_left_by(path, &id))
    }

    /// Returns the copies of files that repairs of this protection have replaced.
    pub fn replaced(&self, protection: &Protection) -> impl Iterator<Item = &PathBuf> {
        let id = protection.id.to_string();
        self.tree.replaced.iter().filter(move |path| aside::is_of(path, &id))
    }

    /// Returns the bytes of an entry that are in lost blocks of a layer and in no other file.
    pub fn lost_bytes(
        &self,
        protection: &Protection,
        layer: usize,
        entry: usize,
    ) -> Vec<Range<u64>> {
        let known = &self.layers[layer];
        let block = protection.layers[layer].header.geometry.block;
        match protection.entries[entry].kind {
            EntryKind::File { layer: of, piece, size, .. }
                if of == layer && size > 0 && !self.elsewhere.contains_key(&entry) =>
            {
                let start = known.stream.pieces()[piece].start;
                lost_ranges(&known.lost, block, start..start + size)
            }
            _ => Vec::new(),
        }
    }

    /// Whether any of these entries has bytes in lost blocks of a layer and in no other file.
    pub fn needs_parity(&self, protection: &Protection, layer: usize, entries: &[usize]) -> bool {
        entries.iter().any(|&entry| !self.lost_bytes(protection, layer, entry).is_empty())
    }
}

/// Whether a repair of the protection `id` has given a file its name.
pub(crate) fn is_left_by(path: &Path, id: &str) -> bool {
    path.file_name().is_some_and(|name| is_temporary(name_bytes(name), id))
}

/// Returns the parts of a range of a stream that are in lost blocks, counted from its beginning.
pub(crate) fn lost_ranges(lost: &[u64], block: u64, range: Range<u64>) -> Vec<Range<u64>> {
    let first = lost.partition_point(|number| (number + 1) * block <= range.start);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for number in lost[first..].iter().take_while(|&number| number * block < range.end) {
        let from = (number * block).max(range.start) - range.start;
        let to = ((number + 1) * block).min(range.end) - range.start;
        match ranges.last_mut() {
            Some(last) if last.end == from => last.end = to,
            _ => ranges.push(from..to),
        }
    }
    ranges
}
