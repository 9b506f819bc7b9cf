//! Rebalancing: moving shards of a whole object between folders, so that the largest possible
//! number of folders may be lost together.
//!
//! To move, a shard is written anew in the other folder from its own blocks. Each block is checked,
//! and is computed from other shards if it is damaged. The old file is removed only when the new
//! one is on the disk and has its name. So a shard may exist twice for a moment, but it always
//! exists.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::folders::Placement;
use crate::level::{DomainLayout, LevelStep, Whole};
use crate::object::Object;
use crate::rebuild::{RebuiltPart, make_from};
use crate::recognise::{ShardFile, recognise};
use crate::sources::Sources;
use crate::targets::Targets;
use paritas_store::error::{Error, Result};
use paritas_store::object::geometry::Part;
use paritas_store::place::lock::FolderLocks;
use paritas_store::progress::Progress;
use paritas_store::shown::shown;
use paritas_store::staging::{Committed, Replace, directory_of, sync_directories_of};

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

/// Moves shards from the fullest folders to the emptiest. It stops when the object tolerates the
/// loss of the same number of folders as a level spread would. The folders are `to`, those that
/// were given to the scan, and those that hold the object. Every new file is on the disk before an
/// old one is removed. At most `threads` threads are used (`None`: the number that the machine runs
/// at once). `progress` gets the number of the object's bytes for each shard that moves.
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
    let given = object.given.iter().map(|folder| folder.path.as_path());
    let mut layout = DomainLayout::new(object, to.into_iter().chain(given), object.whole_files());
    let (mut moved, mut committed) = (Vec::new(), Committed::default());
    for step in layout.plan() {
        let (shards, written) = layout.carry_out(&step, threads, progress)?;
        moved.extend(shards);
        committed.add(written);
    }
    let mut warnings = committed.warnings();
    let files = layout.files.iter().map(|file| (file.part, file.path.as_path()));
    let placement = object.placement_of(object.stage(), files);
    warnings.extend(placement.warning(&object.geometry, object.stage(), 0));
    Ok(RebalanceReport { moved, placement, warnings })
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

impl DomainLayout<'_> {
    /// Writes the parts of a shard in the other folder, and then removes their old files. Returns
    /// the moved files, and the result of committing the new ones.
    fn carry_out(
        &mut self,
        step: &LevelStep,
        threads: Option<NonZeroUsize>,
        progress: Progress<'_>,
    ) -> Result<(Vec<MovedShard>, Committed)> {
        let is_moved = |file: &Whole| self.is_moved(file.part, file.domain, step);
        let moving: Vec<usize> =
            (0..self.files.len()).filter(|&at| is_moved(&self.files[at])).collect();
        let parts: Vec<usize> = moving.iter().map(|&at| self.files[at].part).collect();
        let targets = Targets::new(self.object, &[]);
        let name = |&part: &usize| targets.free_name(&self.folders[step.to], part);
        let targets = parts.iter().map(name).collect::<Result<Vec<_>>>()?;
        let paths: Vec<PathBuf> = targets.iter().map(|(path, _)| path.clone()).collect();
        let committed = write_anew(self.object, &parts, targets, threads, progress)?;
        let mut moved = Vec::new();
        for (at, path) in moving.into_iter().zip(paths) {
            let file = &mut self.files[at];
            let Part { shard, stage } = self.object.part(file.part);
            remove_old(self.object, file, &path)?;
            let from = std::mem::replace(&mut file.path, path.clone());
            file.domain = step.to;
            moved.push(MovedShard { shard, stage, from, path });
        }
        Ok((moved, committed))
    }
}

/// Writes parts anew from their own lanes. In damaged segments, other shards' lanes are used.
fn write_anew(
    object: &Object,
    parts: &[usize],
    targets: Vec<(PathBuf, Replace)>,
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
) -> Result<Committed> {
    let sources = Sources::open(object, parts.len())?;
    let needed: Vec<usize> =
        parts.iter().flat_map(|&part| object.geometry.part_buffers(part)).collect();
    let rebuilds = RebuiltPart::create_all(object, targets, parts)?;
    make_from(&sources, &needed, &rebuilds, threads, progress, |segment, number| {
        sources.load(segment, number)?;
        segment.make_data()?;
        Ok(true)
    })?;
    RebuiltPart::commit(rebuilds, &sources, true)
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
        Ok(()) => sync_directories_of([old.path.as_path()].into_iter()).map(|_| ()),
    }
}
