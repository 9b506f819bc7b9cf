//! Folders as failure domains. A folder stands for a disk or a machine, whose content is lost
//! together. The places of an object's shards decide which folders may be lost.
//!
//! If a folder was given to the scan, it is one domain together with everything below it. The
//! domain of any other file is the folder that it is in. Two paths that lead to the same folder are
//! one domain.
//!
//! Whether a set of folders may be lost is decided from the remaining shards. If few enough shards
//! are gone, the code's tolerance gives the answer. Otherwise the equations of the remaining cells
//! give it. They are exact for every code, including the graph of an LT code. The fullest folders
//! are tried first; if any k shards are enough, only the loss of the fullest folders has to be
//! tried. For other codes there may be too many sets to try all. Then the answer is only likely,
//! and is marked so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use paritas::erasure::combinations;
use paritas_store::shown::{counted, shown};

use crate::rateless;
use paritas_store::object::geometry::Geometry;
use paritas_store::place::identity::Inode;
use paritas_store::staging::directory_of;

/// The largest number of folders for which all sets are tried, to list the sets that may be lost
/// together. The list has at most 20 sets.
const FEW_FOLDERS: usize = 6;

/// Lower and upper limit of the number of sets of folders that are tried for each size.
const TRIALS: (usize, usize) = (64, 4096);

/// Number of cells that all trials of one size examine together. This takes at most a second.
const TRIED_CELLS: usize = 1 << 19;

/// Name of the folder that a new file system contains, so that it still counts as empty.
const LOST_AND_FOUND: &str = "lost+found";

/// The folders that may be lost together, and the intact shards in each folder now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// The folders that hold intact shards, in the order of the shards.
    pub folders: Vec<FolderShards>,
    /// Number of folders that may be lost, whichever they are. 0 also means that too much is lost
    /// already.
    pub tolerance: usize,
    /// Whether [`Self::tolerance`] is certain. If there are too many sets of folders to try all, it
    /// is the result of trying some.
    pub is_certain: bool,
    /// The largest sets of folders that may be lost together, as indices into [`Self::folders`].
    /// `None` if there are more than a few folders.
    pub losable: Option<Vec<Vec<usize>>>,
    /// The spread that rebalancing over the folders given to the scan would reach. `None` if no
    /// more folders could be lost than now, or if a shard is missing, so that repair comes first.
    pub better: Option<BetterSpread>,
}

/// A spread that is better than the present one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BetterSpread {
    /// The folders that shards would be in.
    pub folders: Vec<PathBuf>,
    /// Number of folders that could be lost together, whichever they are.
    pub tolerance: usize,
    /// Whether [`Self::tolerance`] is certain.
    pub is_certain: bool,
}

/// A folder and the shards of one object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderShards {
    /// The folder.
    pub path: PathBuf,
    /// The indices of the shards that have an intact part there, ascending.
    pub shards: Vec<usize>,
}

/// A folder that a scan was given.
#[derive(Debug, Clone)]
pub(crate) struct GivenFolder {
    pub path: PathBuf,
    canonical: PathBuf,
    /// Whether the folder is empty, like that of a disk that was replaced.
    pub is_empty: bool,
}

impl GivenFolder {
    /// Looks at a path. Returns `None` unless it is a folder that can be read.
    pub fn look(path: &Path) -> Option<Self> {
        let names = fs::read_dir(path).ok()?.filter_map(|entry| Some(entry.ok()?.file_name()));
        let is_empty = names.into_iter().all(|name| name == LOST_AND_FOUND);
        Some(Self { path: path.to_owned(), canonical: fs::canonicalize(path).ok()?, is_empty })
    }

    /// Returns a folder that does not exist, and counts as empty.
    pub fn absent(path: &Path) -> Self {
        Self { path: path.to_owned(), canonical: path.to_owned(), is_empty: true }
    }
}

/// A numbering of domains, in the order in which they first occur.
#[derive(Debug)]
pub(crate) struct Domains<'a> {
    given: &'a [GivenFolder],
    known: Vec<(Option<Inode>, PathBuf)>,
}

impl<'a> Domains<'a> {
    pub fn new(given: &'a [GivenFolder]) -> Self {
        Self { given, known: Vec::new() }
    }

    /// Returns the number of the domain that a file is in.
    pub fn of_file(&mut self, file: &Path) -> usize {
        let holds = |folder: &&GivenFolder| {
            file.starts_with(&folder.path) || file.starts_with(&folder.canonical)
        };
        let given = self.given.iter().filter(holds);
        let nearest = given.max_by_key(|folder| folder.canonical.components().count());
        self.of_folder(nearest.map_or_else(|| directory_of(file), |folder| &folder.path))
    }

    /// Returns the number of a folder.
    pub fn of_folder(&mut self, folder: &Path) -> usize {
        if let Some(number) = self.known.iter().position(|(_, known)| known == folder) {
            return number;
        }
        let inode = Inode::at(folder);
        let is_same = |(known, _): &(Option<Inode>, PathBuf)| {
            inode.as_ref().zip(known.as_ref()).is_some_and(|(inode, known)| inode.is_same(known))
        };
        self.known.iter().position(is_same).unwrap_or_else(|| {
            self.known.push((inode, folder.to_owned()));
            self.known.len() - 1
        })
    }

    /// Returns the folders of all numbered domains, by number.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.known.iter().map(|(_, path)| path)
    }
}

/// Returns which folders may be lost of an object that was just encoded into `files`.
pub(crate) fn encoded_placement(geometry: &Geometry, length: u64, files: &[PathBuf]) -> Placement {
    let mut domains = Domains::new(&[]);
    let place = |(part, file): (usize, &PathBuf)| (part, domains.of_file(file));
    let files = files.iter().enumerate().map(place).collect::<Vec<_>>();
    DomainSpread::new(geometry, 1, length == 0, &files).placement(&domains)
}

impl Placement {
    /// Returns a warning if fewer folders may be lost than shards (for an LT code, if no folder may
    /// be lost). It warns only if the object is in several folders, or in one although `wanted` is
    /// greater than one.
    pub(crate) fn warning(&self, geometry: &Geometry, stage: u8, wanted: usize) -> Option<String> {
        let code = geometry.code();
        let is_one = self.folders.len().max(wanted) < 2;
        let fullest = self.folders.iter().max_by_key(|folder| folder.shards.len())?;
        let tolerance = match code.graph() {
            // Finding the number of shards that may be lost takes trials, which are not worth their
            // time if a folder may be lost.
            Some(_) if !is_one && self.tolerance == 0 => {
                rateless::likely_tolerance(code).unwrap_or(0)
            }
            Some(_) => 0,
            None => geometry.tolerance(stage),
        };
        (!is_one && self.tolerance < tolerance).then(|| {
            let likely = if code.graph().is_some() { "likely " } else { "" };
            format!(
                "{} of {} may be lost, although {} tolerates the loss of {likely}any {}: the \
                 fullest folder, {}, has {}",
                self.tolerance_text(),
                counted(self.folders.len(), "folder"),
                code.spec(),
                counted(tolerance, "shard"),
                shown(&fullest.path),
                counted(fullest.shards.len(), "shard")
            )
        })
    }

    /// Returns how many folders may be lost, in words that precede "of 3 folders may be lost".
    pub fn tolerance_text(&self) -> String {
        let none_may = self.losable.as_ref().is_some_and(Vec::is_empty);
        match self.tolerance {
            0 if !none_may => "not every one".to_owned(),
            _ => tolerance_text(self.tolerance, self.is_certain),
        }
    }
}

impl BetterSpread {
    /// Returns how many folders could be lost, in the words of [`Placement::tolerance_text`].
    pub fn tolerance_text(&self) -> String {
        tolerance_text(self.tolerance, self.is_certain)
    }
}

fn tolerance_text(tolerance: usize, is_certain: bool) -> String {
    match (tolerance, is_certain) {
        (0, true) => "none".to_owned(),
        (0, false) => "likely none".to_owned(),
        (count, true) => format!("any {count}"),
        (count, false) => format!("likely any {count}"),
    }
}

/// The result of trying sets of folders.
enum SetTrial {
    AllSurvive,
    /// All tried sets survive, but there are more sets.
    TriedSurvive,
    SomeFail,
}

/// The domains that hold the parts of an object, by number of the domain.
pub(crate) struct DomainSpread<'a> {
    geometry: &'a Geometry,
    stage: u8,
    /// Whether the object has no bytes, so that any shard is enough.
    is_empty: bool,
    /// The domains that hold each part.
    holders: Vec<BTreeSet<usize>>,
    /// For each domain, the shards that have a part in it.
    shards: Vec<BTreeSet<usize>>,
}

impl<'a> DomainSpread<'a> {
    /// Creates the spread of `files`: pairs of a part, and the domain of a file of it.
    pub fn new(
        geometry: &'a Geometry,
        stage: u8,
        is_empty: bool,
        files: &[(usize, usize)],
    ) -> Self {
        let count = files.iter().map(|&(_, domain)| domain + 1).max().unwrap_or(0);
        let mut shards = vec![BTreeSet::new(); count];
        let mut holders = vec![BTreeSet::new(); geometry.parts_until(stage)];
        for &(part, domain) in files {
            shards[domain].insert(geometry.part(part).shard);
            holders[part].insert(domain);
        }
        Self { geometry, stage, is_empty, holders, shards }
    }

    /// Whether every part is in some domain.
    pub fn has_all_parts(&self) -> bool {
        self.holders.iter().all(|holders| !holders.is_empty())
    }

    /// Returns which domains may be lost.
    pub fn placement(&self, domains: &Domains<'_>) -> Placement {
        let folders = domains.paths().zip(&self.shards);
        let folders = folders.map(|(path, shards)| FolderShards {
            path: path.clone(),
            shards: shards.iter().copied().collect(),
        });
        let (tolerance, is_certain) = self.tolerance();
        let losable = self.losable();
        Placement { folders: folders.collect(), tolerance, is_certain, losable, better: None }
    }

    /// Returns how many domains may be lost, whichever they are, and whether that is certain.
    pub fn tolerance(&self) -> (usize, bool) {
        let mut is_certain = true;
        for count in 1..=self.shards.len() {
            match self.try_losses_of(count) {
                SetTrial::AllSurvive => {}
                SetTrial::TriedSurvive => is_certain = false,
                SetTrial::SomeFail => return (count - 1, is_certain),
            }
        }
        (0, is_certain)
    }

    /// Tries losses of `count` domains, the fullest first.
    fn try_losses_of(&self, count: usize) -> SetTrial {
        let fullest = self.fullest_first();
        let worst = &fullest[..count];
        if !self.survives(worst) {
            return SetTrial::SomeFail;
        }
        // No other set of `count` domains holds more shards.
        let most: usize = worst.iter().map(|&domain| self.shards[domain].len()).sum();
        if self.is_within_tolerance(&self.holders_without(&[]), most) {
            return SetTrial::AllSurvive;
        }
        let mut sets = combinations(fullest.len(), count);
        let mut tried = sets.by_ref().take(self.trials());
        if tried.any(|set| !self.survives(&set.iter().map(|&at| fullest[at]).collect::<Vec<_>>())) {
            return SetTrial::SomeFail;
        }
        if sets.next().is_some() { SetTrial::TriedSurvive } else { SetTrial::AllSurvive }
    }

    fn fullest_first(&self) -> Vec<usize> {
        let mut domains: Vec<usize> = (0..self.shards.len()).collect();
        domains.sort_by_key(|&domain| std::cmp::Reverse(self.shards[domain].len()));
        domains
    }

    fn trials(&self) -> usize {
        match self.geometry.code().graph() {
            Some(graph) => rateless::trials(graph),
            None => (TRIED_CELLS / self.geometry.code().cell_count()).clamp(TRIALS.0, TRIALS.1),
        }
    }

    /// Returns the largest sets of domains that may be lost, if there are few domains.
    fn losable(&self) -> Option<Vec<Vec<usize>>> {
        let count = self.shards.len();
        if count > FEW_FOLDERS || 1 << count > self.trials() {
            return None;
        }
        let mut largest: Vec<Vec<usize>> = Vec::new();
        for set in (1..=count).rev().flat_map(|size| combinations(count, size)) {
            let is_part = largest.iter().any(|known| set.iter().all(|at| known.contains(at)));
            if !is_part && self.survives(&set) {
                largest.push(set);
            }
        }
        Some(largest)
    }

    /// Returns, for each part, whether a domain outside `lost` holds it.
    fn holders_without(&self, lost: &[usize]) -> Vec<bool> {
        let is_left = |holders: &BTreeSet<usize>| holders.iter().any(|at| !lost.contains(at));
        self.holders.iter().map(is_left).collect()
    }

    /// Whether the object survives the loss of these domains.
    fn survives(&self, lost: &[usize]) -> bool {
        let left = self.holders_without(lost);
        if !left.contains(&true) {
            return false;
        }
        self.is_empty || self.is_within_tolerance(&left, 0) || self.is_solvable(&left)
    }

    /// Whether, in any stage so far, the code tolerates the loss of `more` shards in addition to
    /// the shards whose parts are missing from `left`.
    fn is_within_tolerance(&self, left: &[bool], more: usize) -> bool {
        if self.geometry.code().graph().is_some() {
            return false;
        }
        (1..=self.stage).any(|stage| {
            let parts = 0..self.geometry.parts_until(stage);
            let gone = parts.filter(|&part| !left[part]);
            let gone: BTreeSet<usize> = gone.map(|part| self.geometry.part(part).shard).collect();
            gone.len() + more <= self.geometry.tolerance(stage)
        })
    }

    fn is_solvable(&self, left: &[bool]) -> bool {
        let parts = (0..left.len()).filter(|&part| left[part]);
        match self.geometry.code().graph() {
            Some(graph) => {
                let buffers = parts.flat_map(|part| self.geometry.part_buffers(part));
                rateless::is_enough(graph, &self.geometry.lt_blocks(buffers))
            }
            None => self.geometry.is_solvable(&self.geometry.buffers_in(parts)),
        }
    }
}
