//! Rebalancing: moving shards of a whole object between folders, so that as many folders as
//! possible may be lost together.
//!
//! A shard moves by being written anew in the other folder, from its own blocks, each of which is
//! checked (and computed from other shards if it is damaged). The old file is removed only when the
//! new one is on the disk and has its name. So a shard may exist twice for a moment, but it always
//! exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::Progress;
use crate::error::{Error, Result};
use crate::folders::{BetterSpread, Placement, Spread};
use crate::geometry::Part;
use crate::leftovers::without_copies;
use crate::lock::FolderLocks;
use crate::object::Object;
use crate::place::{Replace, directory_of, sync_directories_of};
use crate::rebuild::make_from;
use crate::recognise::{ShardFile, recognise};
use crate::repair::{Rebuild, Targets};
use crate::shown::shown;
use crate::sources::{Depth, Sources};

/// The result of rebalancing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RebalanceReport {
    /// The files that were moved.
    pub moved: Vec<MovedShard>,
    /// The folders that may be lost now.
    pub placement: Placement,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A shard, or a part of one, that has moved to another folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedShard {
    /// The index.
    pub shard: usize,
    /// The stage of its part.
    pub stage: u8,
    /// The file that it was in before.
    pub from: PathBuf,
    /// The file that it is in now.
    pub path: PathBuf,
}

/// Moves shards from the fullest folders to the emptiest. It moves no more than is needed to
/// tolerate the loss of as many folders as a level spread could. The folders are those that repair
/// would use (the ones given to the scan), and `to`. Every new file is on the disk before an old
/// one is removed. At most `threads` threads are used (`None`: as many as the machine runs at
/// once). `progress` gets the number of the object's bytes for each shard that moves.
///
/// # Errors
/// If a shard is missing or damaged, judging by what shows without reading blocks
/// ([`crate::ErrorKind::TooFewShards`]; repair comes first), if another process moves or replaces
/// the same shards ([`crate::ErrorKind::Busy`]), or if reading or writing fails
/// ([`crate::ErrorKind::Io`]). The shards that have moved by then are whole.
pub fn rebalance(
    object: &Object,
    to: Option<&Path>,
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
) -> Result<RebalanceReport> {
    expect_whole(object)?;
    let mut layout = Layout::new(object, to, object.whole_files());
    let mut moved = Vec::new();
    for step in layout.plan() {
        moved.extend(layout.carry_out(&step, threads, progress)?);
    }
    let files = layout.files.iter().map(|file| (file.part, file.path.as_path()));
    let placement = object.placement_of(object.stage(), files);
    let warning = placement.warning(&object.geometry, object.stage(), 0);
    Ok(RebalanceReport { moved, placement, warnings: warning.into_iter().collect() })
}

/// Returns the spread that rebalancing could reach, or `None` if it would not raise the number of
/// folders that may be lost above `tolerance`. `files` has one file for each part. The result
/// assumes that they are spread evenly over the folders that rebalancing would use.
pub(super) fn better_spread<'p>(
    object: &Object,
    files: impl Iterator<Item = (usize, &'p Path)>,
    tolerance: usize,
) -> Option<BetterSpread> {
    let layout = Layout::new(object, None, files);
    let (_, level) = layout.steps().last()?;
    let (better, is_certain) = layout.tolerance(&level);
    let mut folders = layout.folders;
    folders.sort_by_key(|folder| object.given.iter().position(|given| given.path == *folder));
    (better > tolerance).then_some(BetterSpread { folders, tolerance: better, is_certain })
}

fn expect_whole(object: &Object) -> Result<()> {
    let is_whole = |(part, files): (usize, &Vec<ShardFile>)| {
        files.iter().any(|file| object.flaws(part, file).is_empty())
    };
    match object.parts().iter().enumerate().all(is_whole) {
        true => Ok(()),
        false => Err(Error::too_few(format!(
            "{}: shards are missing or damaged, so none was moved; repair the object first",
            shown(object.name())
        ))),
    }
}

/// A whole file of a part, and the number of the domain that it is in.
#[derive(Debug, Clone)]
struct Whole {
    part: usize,
    domain: usize,
    path: PathBuf,
}

/// A part, and the number of a domain that it is in.
type Place = (usize, usize);

/// A shard that is to move from one domain to another.
#[derive(Debug, Clone, Copy)]
struct Step {
    shard: usize,
    from: usize,
    to: usize,
}

/// The places of an object's whole files, and the folders of all domains.
struct Layout<'a> {
    object: &'a Object,
    folders: Vec<PathBuf>,
    files: Vec<Whole>,
}

impl<'a> Layout<'a> {
    fn new<'p>(
        object: &'a Object,
        to: Option<&Path>,
        files: impl Iterator<Item = (usize, &'p Path)>,
    ) -> Self {
        let mut targets = Targets::new(object, &[]);
        to.iter().for_each(|to| targets.add_folder(to));
        let whole = without_copies(files).into_iter().map(|(part, path)| {
            let domain = targets.domain_of(path);
            Whole { part, domain, path: path.to_owned() }
        });
        let files = whole.collect();
        Self { object, folders: targets.into_folders(), files }
    }

    /// Returns the first steps towards a level spread: the fewest after which as many domains may
    /// be lost as after all steps. There are none if as many may be lost now.
    fn plan(&self) -> Vec<Step> {
        let (mut steps, spreads): (Vec<Step>, Vec<Vec<Place>>) = self.steps().unzip();
        let spreads = std::iter::once(self.places()).chain(spreads);
        let tolerances: Vec<usize> = spreads.map(|places| self.tolerance(&places).0).collect();
        let best = tolerances.iter().max().copied().unwrap_or(0);
        let needed = tolerances.iter().position(|&tolerance| tolerance == best).unwrap_or(0);
        steps.truncate(needed);
        steps
    }

    fn places(&self) -> Vec<Place> {
        self.files.iter().map(|file| (file.part, file.domain)).collect()
    }

    /// Returns the steps to a level spread, each with the places of the files after it.
    fn steps(&self) -> impl Iterator<Item = (Step, Vec<Place>)> {
        let mut places = self.places();
        std::iter::from_fn(move || {
            let step = self.next_step(&places)?;
            let moves = |&&mut (part, domain): &&mut Place| self.is_moved(part, domain, &step);
            places.iter_mut().filter(moves).for_each(|(_, domain)| *domain = step.to);
            Some((step, places.clone()))
        })
    }

    /// Returns how many domains may be lost if the files are at `places`, and whether that is
    /// certain.
    fn tolerance(&self, places: &[Place]) -> (usize, bool) {
        let is_empty = self.object.length() == Some(0);
        Spread::new(&self.object.geometry, self.object.stage(), is_empty, places).tolerance()
    }

    fn is_moved(&self, part: usize, domain: usize, step: &Step) -> bool {
        domain == step.from && self.object.part(part).shard == step.shard
    }

    /// Returns the move of a shard from the fullest domain to the emptiest one, which lacks it,
    /// unless the two are level.
    fn next_step(&self, places: &[Place]) -> Option<Step> {
        let mut held = vec![BTreeMap::<usize, Vec<usize>>::new(); self.folders.len()];
        for &(part, domain) in places {
            held[domain].entry(self.object.part(part).shard).or_default().push(part);
        }
        let from = (0..held.len()).max_by_key(|&at| (held[at].len(), std::cmp::Reverse(at)))?;
        let to = (0..held.len()).min_by_key(|&at| held[at].len())?;
        if held[from].len() <= held[to].len() + 1 {
            return None;
        }
        // If a part is there twice, one copy would stay.
        let is_movable =
            |parts: &[usize]| parts.iter().collect::<BTreeSet<_>>().len() == parts.len();
        let mut shards = held[from].iter().rev();
        let shard =
            shards.find(|(shard, parts)| !held[to].contains_key(shard) && is_movable(parts));
        shard.map(|(&shard, _)| Step { shard, from, to })
    }

    /// Writes the parts of a shard in the other folder, and then removes their old files.
    fn carry_out(
        &mut self,
        step: &Step,
        threads: Option<NonZeroUsize>,
        progress: Progress<'_>,
    ) -> Result<Vec<MovedShard>> {
        let is_moved = |file: &Whole| self.is_moved(file.part, file.domain, step);
        let moving: Vec<usize> =
            (0..self.files.len()).filter(|&at| is_moved(&self.files[at])).collect();
        let parts: Vec<usize> = moving.iter().map(|&at| self.files[at].part).collect();
        let targets = Targets::new(self.object, &[]);
        let name = |&part: &usize| targets.free_name(&self.folders[step.to], part);
        let targets = parts.iter().map(name).collect::<Result<Vec<_>>>()?;
        let paths: Vec<PathBuf> = targets.iter().map(|(path, _)| path.clone()).collect();
        write_anew(self.object, &parts, targets, threads, progress)?;
        let mut moved = Vec::new();
        for (at, path) in moving.into_iter().zip(paths) {
            let file = &mut self.files[at];
            let Part { shard, stage } = self.object.part(file.part);
            remove_old(self.object, file, &path)?;
            let from = std::mem::replace(&mut file.path, path.clone());
            file.domain = step.to;
            moved.push(MovedShard { shard, stage, from, path });
        }
        Ok(moved)
    }
}

/// Writes parts anew from their own lanes. In damaged segments, other shards' lanes are used.
fn write_anew(
    object: &Object,
    parts: &[usize],
    targets: Vec<(PathBuf, Replace)>,
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
) -> Result<()> {
    let sources = Sources::open(object, parts.len())?;
    let needed: Vec<usize> =
        parts.iter().flat_map(|&part| object.geometry.part_buffers(part)).collect();
    let rebuilds = Rebuild::create_all(object, targets, parts)?;
    make_from(&sources, &needed, &rebuilds, threads, progress, |segment, number| {
        sources.load(segment, number, Depth::Enough)?;
        segment.compute_data()?;
        Ok(true)
    })?;
    Rebuild::commit(rebuilds, &sources, true).map(|_| ())
}

/// Removes the old file of a part, if the new one holds it. Locks keep other processes from
/// removing the new one in the meantime.
fn remove_old(object: &Object, old: &Whole, new: &Path) -> Result<()> {
    let _locks = FolderLocks::acquire([directory_of(&old.path), directory_of(new)])?;
    let is_there = recognise(new).is_ok_and(|shard| {
        let is_it = shard.identity == object.identity && shard.part == object.part(old.part);
        is_it && object.flaws(old.part, &shard.file).is_empty()
    });
    if !is_there {
        return Err(Error::busy(format!(
            "another process has changed {} in the meantime, so {} stays; run the command again",
            shown(new),
            shown(&old.path)
        )));
    }
    match fs::remove_file(&old.path) {
        // Another process has moved it, too.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("removing", &old.path, &error)),
        Ok(()) => sync_directories_of([old.path.as_path()].into_iter()),
    }
}
