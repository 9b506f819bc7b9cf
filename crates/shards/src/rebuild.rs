//! Rebuilding parts of shards, segment by segment, while reading the fewest possible bytes of other
//! parts.
//!
//! If the lanes of a code are single rows (see [`paritas_store::object::format`]), it is read lane
//! by lane: the planner names few cells that determine the lost ones, and only their lanes are
//! read, which is about three quarters of what any k shards hold. For other codes the fewest
//! possible whole blocks are read.
//!
//! Every lane that is read is checked by its checksum, and the parts are computed from these lanes
//! alone. If a needed lane is not intact, the caller loads the segment in another way, or gives up.

use std::fs;
use std::io::IoSlice;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::progress::Progress;

use crate::object::Object;
use crate::place::{Occupant, expect_room};
use crate::recognise::ShardFile;
use crate::sources::Sources;
use paritas_store::object::segment::Segment;
use paritas_store::place::attributes::{Access, Attributes};
use paritas_store::staging::{
    Committed, NewFile, Replace, StagedFile, commit_over, directory_of, sync_directories_of,
};

/// A part that is being written.
pub(super) struct RebuiltPart {
    part: usize,
    file: StagedFile,
    /// Offset of its first block in the file.
    blocks: u64,
}

impl RebuiltPart {
    /// Creates the files, with their front headers. A new file gets the mode and the owner of the
    /// file that it replaces. If it does not replace a file, it gets the mode and the owner that
    /// all shards of the object have in common.
    pub fn create_all(
        object: &Object,
        targets: Vec<(PathBuf, Replace)>,
        parts: &[usize],
    ) -> Result<Vec<Self>> {
        let sources = object.parts().iter().map(Vec::len).sum();
        let siblings = Access::like(object.parts().iter().flatten().filter_map(attributes));
        let new = |((target, replace), &part): ((PathBuf, Replace), &usize)| {
            let is_copy = object.occupant(part, &target) == Occupant::SamePart;
            let replaced = is_copy.then(|| Attributes::of_path(&target).ok()).flatten();
            let access = replaced.map_or(siblings, |file| Access::like([file]));
            NewFile { target, replace, access }
        };
        let needed = targets.iter().zip(parts).map(|((path, _), &part)| {
            Ok((path.as_path(), object.part_length(part).ok_or_else(Error::too_long)?))
        });
        expect_room(needed.collect::<Result<Vec<_>>>()?)?;
        make_offered(object, &targets)?;
        let targets: Vec<NewFile> = targets.into_iter().zip(parts).map(new).collect();
        let begin = |(file, &part): (StagedFile, &usize)| {
            let (front, _) = object.records(part)?;
            file.write_at(&mut [IoSlice::new(&front)], 0)?;
            Ok(Self { part, file, blocks: front.len() as u64 })
        };
        StagedFile::create_all(targets, sources)?.into_iter().zip(parts).map(begin).collect()
    }

    /// Returns, for each buffer, whether it is a lane of the parts to be written.
    pub fn wanted(rebuilds: &[Self], sources: &Sources<'_>) -> Vec<bool> {
        sources.geometry.buffers_in(rebuilds.iter().map(|rebuild| rebuild.part))
    }

    /// Writes the block of a segment.
    pub fn write(&self, sources: &Sources<'_>, segment: &mut Segment, number: u64) -> Result<()> {
        let start = sources.geometry.block_start(self.part, number).ok_or_else(Error::too_long)?;
        self.file.write_at(&mut segment.seal(self.part), self.blocks + start)
    }

    /// Writes the footers, which complete the files, and publishes them.
    pub fn commit(rebuilds: Vec<Self>, sources: &Sources<'_>, sync: bool) -> Result<Committed> {
        for Self { part, file, blocks } in &rebuilds {
            let (_, footer) = sources.object.records(*part)?;
            let length =
                sources.geometry.blocks(&sources.extent, *part).ok_or_else(Error::too_long)?;
            file.write_at(&mut [IoSlice::new(&footer)], blocks + length)?;
        }
        let files = rebuilds.into_iter().map(|rebuild| rebuild.file).collect();
        let nothing_old = || sources.object.expect_standing().map(|()| Vec::new());
        commit_over(&[], nothing_old, files, sync)
    }
}

fn attributes(file: &ShardFile) -> Option<Attributes> {
    Attributes::of_path(file.path()).ok()
}

/// Makes the folders for new files that were offered to the scan and do not exist yet. Their names
/// are synced to the disk, because rebalancing removes the old files once the new ones are there.
fn make_offered(object: &Object, targets: &[(PathBuf, Replace)]) -> Result<()> {
    for folder in targets.iter().map(|(path, _)| directory_of(path)) {
        if object.given.iter().any(|given| given.path == folder) {
            let new: Vec<&Path> = folder.ancestors().take_while(|above| !above.exists()).collect();
            fs::create_dir_all(folder).map_err(|error| Error::io("making", folder, &error))?;
            sync_directories_of(new.into_iter())?;
        }
    }
    Ok(())
}

/// Computes parts, segment by segment, from the lanes in `needed`. If one of these is not intact,
/// `instead` is called to load the segment in another way. If it returns false, all work stops.
/// Returns whether all parts are complete.
pub(super) fn make_from(
    sources: &Sources<'_>,
    needed: &[usize],
    rebuilds: &[RebuiltPart],
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
    instead: impl Fn(&mut Segment, u64) -> Result<bool> + Sync,
) -> Result<bool> {
    let wanted = RebuiltPart::wanted(rebuilds, sources);
    let made = sources.each_segment(threads, (), |_, segment, number| {
        if !sources.load_buffers(segment, number, needed) && !instead(segment, number)? {
            return Err(Error::cancelled());
        }
        segment.compute(|buffer| wanted[buffer])?;
        rebuilds.iter().try_for_each(|part| part.write(sources, segment, number))?;
        progress(sources.extent.bytes(number));
        Ok(())
    });
    match made {
        Err(error) if error.kind() == ErrorKind::Cancelled => Ok(false),
        made => made.map(|()| true),
    }
}
