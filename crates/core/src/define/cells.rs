//! Cells, the parts of a code, and sets of cells.

use std::fmt;
use std::ops::Range;

/// A node: the unit of failure, holding one shard. Calls that ask for a node take its number as
/// well; calls that name nodes return this type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl From<usize> for NodeId {
    /// As [`NodeId::new`], but a number that does not fit 32 bits becomes the largest one, which no
    /// code has.
    fn from(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A cell of a code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(u32);

macro_rules! id {
    ($name:ident, $prefix:literal) => {
        impl $name {
            /// Returns the id with number `index`.
            ///
            /// # Panics
            /// If the number does not fit 32 bits, which no code reaches.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("ids fit 32 bits"))
            }

            /// Returns the number, from 0.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(NodeId, "n");
id!(CellId, "c");

/// The role of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user's bytes.
    Data,
    /// An XOR of data cells that is stored.
    Parity,
    /// An XOR of data cells that is stored nowhere and only helps to compute others.
    Auxiliary,
}

/// Where a cell is stored: row `row` of every strip of node `node`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The node.
    pub node: NodeId,
    /// The row, from 0, in the node's strips.
    pub row: usize,
}

/// One cell: its role, its place, and the stage of encoding in which it is computed. The stage is
/// 1, except for the later parities of delayed parity generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The role of the cell.
    pub role: Role,
    /// The place where the cell is stored; `None` if it is stored nowhere.
    pub place: Option<Place>,
    /// The stage in which the cell is computed, from 1.
    pub stage: u8,
}

/// The state of a code at the end of a stage.
#[derive(Debug, Clone)]
pub(crate) struct StageEnd {
    /// Number of nodes that may be lost.
    pub(crate) tolerance: usize,
    /// The cells that the next stage reads.
    pub(crate) reads: Vec<CellId>,
}

/// Sorts a list and removes pairs: a value that occurs an even number of times vanishes, any other
/// stays once.
pub(crate) fn cancel_pairs<T: Copy + Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    let kept: Vec<T> =
        list.chunk_by(|a, b| a == b).filter(|run| run.len() % 2 == 1).map(|run| run[0]).collect();
    *list = kept;
}

/// A set of cells of one code.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CellSet {
    words: Vec<u64>,
}

impl CellSet {
    /// Returns an empty set for a code with `cells` cells.
    pub fn new(cells: usize) -> Self {
        Self { words: vec![0; cells.div_ceil(64)] }
    }

    /// Returns the set with the given members, for a code with `cells` cells.
    ///
    /// # Panics
    /// If a member is out of the set's range.
    pub fn from_cells(cells: usize, members: impl IntoIterator<Item = CellId>) -> Self {
        let mut set = Self::new(cells);
        set.extend(members.into_iter());
        set
    }

    /// Adds a cell.
    ///
    /// # Panics
    /// If the cell is out of the set's range.
    pub fn insert(&mut self, cell: CellId) {
        self.words[cell.index() / 64] |= 1 << (cell.index() % 64);
    }

    /// Adds cells.
    ///
    /// # Panics
    /// If a cell is out of the set's range.
    pub(crate) fn extend(&mut self, cells: impl Iterator<Item = CellId>) {
        // Cells that follow each other mostly share a word.
        let (mut word, mut bits) = (0, 0);
        for cell in cells {
            if cell.index() / 64 != word && bits != 0 {
                self.words[word] |= std::mem::take(&mut bits);
            }
            word = cell.index() / 64;
            bits |= 1 << (cell.index() % 64);
        }
        if bits != 0 {
            self.words[word] |= bits;
        }
    }

    /// Adds the cells of list number `list`.
    ///
    /// # Panics
    /// If there is no such list, or if a cell is out of the set's range.
    pub(crate) fn add(&mut self, lists: &CellLists, list: usize) {
        let (first, words) = &lists.lists[list];
        let words = &lists.words[words.clone()];
        let of_set = &mut self.words[*first..][..words.len()];
        of_set.iter_mut().zip(words).for_each(|(word, bits)| *word |= bits);
    }

    /// Removes a cell.
    pub fn remove(&mut self, cell: CellId) {
        if let Some(word) = self.words.get_mut(cell.index() / 64) {
            *word &= !(1 << (cell.index() % 64));
        }
    }

    /// Whether the cell is in the set.
    pub fn contains(&self, cell: CellId) -> bool {
        self.words.get(cell.index() / 64).is_some_and(|w| w >> (cell.index() % 64) & 1 == 1)
    }

    /// The members as bits: cell `c` is bit `c % 64` of word `c / 64`.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Whether both sets have a cell in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The last member.
    pub(crate) fn last(&self) -> Option<CellId> {
        let word = self.words.iter().rposition(|&word| word != 0)?;
        Some(CellId::new(64 * word + self.words[word].ilog2() as usize))
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The cells, ascending.
    pub fn iter(&self) -> impl Iterator<Item = CellId> {
        crate::define::bitmatrix::ones_of(&self.words).map(CellId::new)
    }
}

/// Lists of cells that are added to sets often, as the words of sets.
#[derive(Debug)]
pub(crate) struct CellLists {
    /// For each list, the first word of a set that has one of its cells, and where in `words` the
    /// words from there to the last one stand.
    lists: Vec<(usize, Range<usize>)>,
    words: Vec<u64>,
}

impl CellLists {
    pub(crate) fn of(lists: &[Vec<CellId>]) -> Self {
        let (count, words) = (lists.len(), Vec::with_capacity(lists.len()));
        let mut all = Self { lists: Vec::with_capacity(count), words };
        for cells in lists {
            let numbers = || cells.iter().map(|cell| cell.index());
            let (first, last) = (numbers().min().unwrap_or(0) / 64, numbers().max());
            let start = all.words.len();
            all.words.resize(start + last.map_or(0, |last| last / 64 + 1 - first), 0);
            numbers()
                .for_each(|number| all.words[start + number / 64 - first] |= 1 << (number % 64));
            all.lists.push((first, start..all.words.len()));
        }
        all
    }
}

impl fmt::Debug for CellSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
