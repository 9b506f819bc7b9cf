//! The steps to a level spread: which shards have to move between folders, so that the largest
//! possible number of folders may be lost together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::folders::{BetterSpread, DomainSpread};
use crate::leftovers::without_copies;
use crate::object::Object;
use crate::targets::Targets;

/// Returns the spread that rebalancing could reach, or `None` if it would not raise the number of
/// folders that may be lost above `tolerance`. `files` has one file for each part. The result
/// assumes that they are spread evenly over the folders that rebalancing would use.
pub(super) fn better_spread<'p>(
    object: &Object,
    files: impl Iterator<Item = (usize, &'p Path)>,
    tolerance: usize,
) -> Option<BetterSpread> {
    let layout = DomainLayout::new(object, std::iter::empty(), files);
    let (_, level) = layout.steps().last()?;
    let (better, is_certain) = layout.tolerance(&level);
    let mut folders = layout.folders;
    folders.sort_by_key(|folder| object.given.iter().position(|given| given.path == *folder));
    (better > tolerance).then_some(BetterSpread { folders, tolerance: better, is_certain })
}

/// A whole file of a part, and the number of the domain that it is in.
#[derive(Debug, Clone)]
pub(super) struct Whole {
    pub part: usize,
    pub domain: usize,
    pub path: PathBuf,
}

/// A part, and the number of a domain that it is in.
type PartDomain = (usize, usize);

/// A shard that is to move from one domain to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct LevelStep {
    pub shard: usize,
    pub from: usize,
    pub to: usize,
}

/// The places of an object's whole files, and the folders of all domains.
pub(super) struct DomainLayout<'a> {
    pub object: &'a Object,
    pub folders: Vec<PathBuf>,
    pub files: Vec<Whole>,
}

impl<'a> DomainLayout<'a> {
    /// Takes the folders that repair would use, and `more`.
    pub fn new<'p>(
        object: &'a Object,
        more: impl Iterator<Item = &'p Path>,
        files: impl Iterator<Item = (usize, &'p Path)>,
    ) -> Self {
        let mut targets = Targets::new(object, &[]);
        more.for_each(|folder| targets.add_folder(folder));
        let whole = without_copies(files).into_iter().map(|(part, path)| {
            let domain = targets.domain_of(path);
            Whole { part, domain, path: path.to_owned() }
        });
        let files = whole.collect();
        Self { object, folders: targets.into_folders(), files }
    }

    /// Returns the first steps towards a level spread, up to the step after which the largest
    /// number of domains may be lost. Returns no steps if that number may be lost now.
    pub fn plan(&self) -> Vec<LevelStep> {
        let (mut steps, spreads): (Vec<LevelStep>, Vec<Vec<PartDomain>>) = self.steps().unzip();
        let spreads = std::iter::once(self.places()).chain(spreads);
        let tolerances: Vec<usize> = spreads.map(|places| self.tolerance(&places).0).collect();
        let best = tolerances.iter().max().copied().unwrap_or(0);
        let needed = tolerances.iter().position(|&tolerance| tolerance == best).unwrap_or(0);
        steps.truncate(needed);
        steps
    }

    fn places(&self) -> Vec<PartDomain> {
        self.files.iter().map(|file| (file.part, file.domain)).collect()
    }

    /// Returns the steps to a level spread, each with the places of the files after it.
    fn steps(&self) -> impl Iterator<Item = (LevelStep, Vec<PartDomain>)> {
        let mut places = self.places();
        std::iter::from_fn(move || {
            let step = self.next_step(&places)?;
            let moves = |&&mut (part, domain): &&mut PartDomain| self.is_moved(part, domain, &step);
            places.iter_mut().filter(moves).for_each(|(_, domain)| *domain = step.to);
            Some((step, places.clone()))
        })
    }

    /// Returns how many domains may be lost if the files are at `places`, and whether that is
    /// certain.
    fn tolerance(&self, places: &[PartDomain]) -> (usize, bool) {
        let is_empty = self.object.length() == Some(0);
        DomainSpread::new(&self.object.geometry, self.object.stage(), is_empty, places).tolerance()
    }

    pub fn is_moved(&self, part: usize, domain: usize, step: &LevelStep) -> bool {
        domain == step.from && self.object.part(part).shard == step.shard
    }

    /// Returns the move of a shard from the fullest domain to the emptiest one, which must not hold
    /// that shard already. Returns `None` if the two are level.
    fn next_step(&self, places: &[PartDomain]) -> Option<LevelStep> {
        let mut held = vec![BTreeMap::<usize, Vec<usize>>::new(); self.folders.len()];
        for &(part, domain) in places {
            held[domain].entry(self.object.part(part).shard).or_default().push(part);
        }
        let from = (0..held.len()).max_by_key(|&at| (held[at].len(), std::cmp::Reverse(at)))?;
        let to = (0..held.len()).min_by_key(|&at| held[at].len())?;
        if held[from].len() <= held[to].len() + 1 {
            return None;
        }
        // If the domain holds a part twice, one copy would stay.
        let is_movable =
            |parts: &[usize]| parts.iter().collect::<BTreeSet<_>>().len() == parts.len();
        let mut shards = held[from].iter().rev();
        let shard =
            shards.find(|(shard, parts)| !held[to].contains_key(shard) && is_movable(parts));
        shard.map(|(&shard, _)| LevelStep { shard, from, to })
    }
}
