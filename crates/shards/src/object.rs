//! Objects: the files of each part that a scan has gathered, and what they state about the object.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use paritas::Code;
use paritas_store::error::{Error, Result};
use paritas_store::shown::{counted, shown};

use crate::aside::AsideFile;
use crate::folders::GivenFolder;
use crate::recognise::{ShardFile, recognise};
use paritas_store::object::format::{Digest, Identity, ObjectId, Total};
use paritas_store::object::geometry::{Extent, Geometry, Part};
use paritas_store::object::names::ShardName;
use paritas_store::place::attributes::Timestamp;

/// A path that should be searched for shards and could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnopenedPath {
    pub path: PathBuf,
    /// The system's reason, in words.
    pub reason: String,
    /// Whether it is a folder, or may be one, so that it may hold any number of shards.
    pub is_folder: bool,
}

/// One object and the files that hold its shards.
#[derive(Debug)]
pub struct Object {
    pub(crate) identity: Identity,
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) total: Option<Total>,
    /// The files of each part, over all stages; complete files first.
    pub(crate) parts: Vec<Vec<ShardFile>>,
    /// The paths that could not be opened, whatever they hold.
    pub(crate) unread: Arc<[UnopenedPath]>,
    /// The digits of the id that tell this object apart, if another object has the same name.
    pub(crate) digits: Option<String>,
    /// Whether some shards of this object were set aside for another object of its name, which the
    /// scan found too.
    pub(crate) is_contested: bool,
    /// The folders that were searched.
    pub(crate) given: Arc<[GivenFolder]>,
    /// The files that repair moved aside for this object.
    pub(crate) moved_aside: Vec<AsideFile>,
}

impl Object {
    /// Returns the id.
    pub fn id(&self) -> ObjectId {
        self.identity.object
    }

    /// Returns the base name, which may be any bytes.
    pub fn name(&self) -> &OsStr {
        self.identity.name()
    }

    /// Returns the object's name in messages: the base name and, if another object of that name was
    /// found, enough digits of the id to tell them apart.
    pub fn label(&self) -> String {
        let name = shown(self.name());
        match &self.digits {
            None => name.to_string(),
            Some(digits) => format!("{name} (id {digits})"),
        }
    }

    /// Returns the code, as the object's shards pin it.
    pub fn code(&self) -> &Code {
        self.geometry.code()
    }

    /// Returns the layout of a block's bytes: `packets` or `words`.
    pub fn layout(&self) -> &str {
        self.identity.layout()
    }

    /// Returns the length in bytes, or `None` if no shard has a readable footer.
    pub fn length(&self) -> Option<u64> {
        self.total.map(|total| total.length)
    }

    /// Returns the digest, or `None` if no shard has a readable footer.
    pub fn digest(&self) -> Option<Digest> {
        self.total.map(|total| total.digest)
    }

    /// Returns the mode of the source: permissions, set-user-ID, set-group-ID and sticky bit.
    /// Returns `None` if the source had none, or if the version that encoded it did not store
    /// modes.
    pub fn mode(&self) -> Option<u32> {
        self.identity.mode
    }

    /// Returns the time at which the source last changed. Returns `None` in the same cases as
    /// [`Self::mode`].
    pub fn modified(&self) -> Option<Timestamp> {
        self.identity.modified
    }

    /// Returns the number of shards that the object has after its last stage.
    pub fn shard_count(&self) -> usize {
        self.geometry.shard_count()
    }

    /// Returns the stage that the object has reached: 1, or a later one that it was promoted to.
    /// One file of a stage is enough to have reached it.
    pub fn stage(&self) -> u8 {
        let found = (0..self.parts.len()).rev().find(|&part| !self.parts[part].is_empty());
        found.map_or(1, |part| self.geometry.part(part).stage)
    }

    /// Returns the number of stages of its code.
    pub fn stages(&self) -> u8 {
        self.geometry.code().stages()
    }

    /// Returns the number of shards that the object has in its present stage.
    pub fn standing_shards(&self) -> usize {
        self.geometry.shards_at(self.stage())
    }

    /// Returns the number of shards that may be lost in the object's present stage, whichever they
    /// are.
    pub fn tolerance(&self) -> usize {
        self.geometry.tolerance(self.stage())
    }

    /// Returns the files of every part that the object has in its present stage. Without stages,
    /// part i is shard i; otherwise the parts of each stage follow those of the stage before.
    pub fn parts(&self) -> &[Vec<ShardFile>] {
        &self.parts[..self.geometry.parts_until(self.stage())]
    }

    /// Returns the shard and the stage of a part.
    ///
    /// # Panics
    /// If the code does not have part number `part`.
    pub fn part(&self, part: usize) -> Part {
        self.geometry.part(part)
    }

    /// Returns the parts without any file.
    pub(crate) fn missing_parts(&self) -> Vec<usize> {
        let parts = self.parts();
        (0..parts.len()).filter(|&part| parts[part].is_empty()).collect()
    }

    /// Returns the indices of shards that lack a part.
    pub fn missing(&self) -> Vec<usize> {
        let shards = self.missing_parts().into_iter().map(|part| self.part(part).shard);
        let shards: BTreeSet<usize> = shards.collect();
        shards.into_iter().collect()
    }

    /// Returns the number of bytes of a packet.
    pub fn packet(&self) -> usize {
        self.geometry.packet()
    }

    /// Returns the number of stripes of a full segment.
    pub fn stripes(&self) -> usize {
        self.geometry.stripes()
    }

    /// Returns the number of bytes of a part's full block, checksums included.
    ///
    /// # Panics
    /// If the code does not have part number `part`.
    pub fn block_bytes(&self, part: usize) -> u64 {
        self.geometry.block(part, self.geometry.stripes())
    }

    /// Returns the number of the user's bytes in a full segment.
    pub fn segment_bytes(&self) -> u64 {
        self.geometry.segment_data()
    }

    /// Returns the number of bytes of all shard files that were found.
    pub fn stored_bytes(&self) -> u64 {
        self.parts.iter().flatten().map(ShardFile::length).fold(0, u64::saturating_add)
    }

    /// Returns the flaws of a file that show without reading its blocks, in words.
    pub fn flaws(&self, part: usize, file: &ShardFile) -> Vec<String> {
        let mut flaws = Vec::new();
        if let Err(flaw) = &file.front {
            flaws.push(format!("the front header {flaw}"));
        }
        let Some(footer) = file.footer else {
            flaws.push(match self.part_length(part) {
                Some(expected) if expected > file.length => {
                    format!("the file is {} too short", counted(expected - file.length, "byte"))
                }
                _ => "the footer is missing or damaged".to_owned(),
            });
            return flaws;
        };
        if self.total.is_some_and(|total| total != footer.total) {
            flaws.push(
                "the footer states a length or digest that differs from most others".to_owned(),
            );
        }
        if footer.end < file.length {
            let bytes = counted(file.length - footer.end, "byte");
            flaws.push(format!("{bytes} after the footer at offset {}", footer.end));
        }
        match (&file.front, self.blocks(part)) {
            (Ok(front), Some(blocks)) if front + blocks > footer.start => {
                let bytes = counted(front + blocks - footer.start, "byte");
                flaws.push(format!("{bytes} missing before the footer"));
            }
            (Ok(front), Some(blocks)) if front + blocks < footer.start => {
                let bytes = counted(footer.start - front - blocks, "byte");
                flaws.push(format!("{bytes} too many before the footer"));
            }
            _ => {}
        }
        flaws
    }

    /// Returns the files that were found, by part.
    fn files(&self) -> impl Iterator<Item = (usize, &ShardFile)> {
        let parts = self.parts().iter().enumerate();
        parts.flat_map(|(part, files)| files.iter().map(move |file| (part, file)))
    }

    /// Whether a file of a part that the scan found still exists, as far as is known.
    fn is_there(&self, part: usize, file: &ShardFile) -> bool {
        match recognise(&file.path) {
            Ok(found) => found.identity == self.identity && found.part == self.part(part),
            Err(why) => why.is_unreadable,
        }
    }

    /// Returns a message about a file that another process has replaced or removed since the scan,
    /// if there is one.
    pub(crate) fn replaced_note(&self) -> Option<String> {
        let (_, file) = self.files().find(|(part, file)| !self.is_there(*part, file))?;
        Some(format!(
            "{}: another process has changed {} in the meantime; run the command again",
            shown(self.name()),
            shown(file.path())
        ))
    }

    /// Refuses to go on if not a single file of the scan is still there. In that case another
    /// process has replaced the whole object, and nothing may be added to it.
    pub(crate) fn expect_standing(&self) -> Result<()> {
        match self.files().any(|(part, file)| self.is_there(part, file)) {
            true => Ok(()),
            false => Err(Error::busy(self.replaced_note().unwrap_or_default())),
        }
    }

    /// Whether a file has the canonical name of its part.
    pub(crate) fn is_named_well(&self, part: usize, file: &ShardFile) -> bool {
        let name = self.part_name(part);
        name.is_ok_and(|name| file.path.file_name() == Some(&name.finished()))
    }

    /// Returns the segments, if the length is known.
    pub(crate) fn extent(&self) -> Option<Extent> {
        self.length().map(|length| self.geometry.extent(length))
    }

    /// Returns the front header and the footer of a part as bytes.
    pub(crate) fn records(&self, part: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        let record = |total| self.identity.record(self.part(part), total).to_bytes();
        Ok((record(None)?, record(self.total)?))
    }

    /// Returns the canonical name of a part's file.
    pub(crate) fn part_name(&self, part: usize) -> Result<ShardName<'_>> {
        self.identity.part_name(&self.geometry, part)
    }

    /// Returns the length in bytes of a part's file when it is whole, if that is known.
    pub(crate) fn part_length(&self, part: usize) -> Option<u64> {
        let (front, footer) = self.records(part).ok()?;
        Some((front.len() + footer.len()) as u64 + self.blocks(part)?)
    }

    fn blocks(&self, part: usize) -> Option<u64> {
        self.geometry.blocks(&self.extent()?, part)
    }
}

impl Object {
    /// Returns the files in the scanned folders that repair moved aside for this object, according
    /// to their names.
    pub fn moved_aside(&self) -> &[AsideFile] {
        &self.moved_aside
    }

    /// Removes those [files](Self::moved_aside) whose content has not changed since repair moved
    /// them aside, and returns them. Changed files may be somebody's own work, and stay. Call this
    /// only when the object is intact, because a file that was moved aside may be the remains of a
    /// shard.
    ///
    /// # Errors
    /// If a file cannot be read or removed ([`crate::ErrorKind::Io`]).
    pub fn remove_moved_aside(&self) -> Result<Vec<AsideFile>> {
        let mut removed = Vec::new();
        for file in &self.moved_aside {
            if file.remove(self.id())? {
                removed.push(file.clone());
            }
        }
        Ok(removed)
    }
}

impl Object {
    pub(crate) fn new(identity: Identity, geometry: Arc<Geometry>) -> Self {
        let parts = vec![Vec::new(); geometry.part_count()];
        Self {
            identity,
            geometry,
            total: None,
            parts,
            unread: Arc::new([]),
            digits: None,
            is_contested: false,
            given: Arc::new([]),
            moved_aside: Vec::new(),
        }
    }

    /// Adds the file of a part, or returns why the code does not have that part.
    pub(crate) fn add(&mut self, part: Part, file: ShardFile) -> Result<(), String> {
        let place = self.geometry.find_part(part).ok_or_else(|| {
            let (spec, Part { shard, stage }) = (self.code().spec(), part);
            format!("states stage {stage} of shard {shard}, which {spec} does not have")
        })?;
        self.parts[place].push(file);
        Ok(())
    }

    /// Decides on the total and on the order of copies, once all files are there.
    pub(crate) fn settle(&mut self) {
        self.total = self.majority();
        self.find_footers();
        self.total = self.majority();
        for files in &mut self.parts {
            files.sort_by_key(|file| (file.front.is_err(), file.footer.is_none()));
        }
    }

    /// Finds footers after which something was appended. Their place follows from the length that
    /// other footers state, or that the front header expects. If the length is still unknown, whole
    /// files are searched.
    fn find_footers(&mut self) {
        let stated = self.total.map(|total| total.length).or(self.identity.length_hint);
        stated.into_iter().for_each(|length| self.place_footers(length));
        if self.majority().is_none()
            && let Some(length) = self.search_footer()
        {
            self.place_footers(length);
        }
    }

    /// Looks for footers at the places where an object of this length has them.
    fn place_footers(&mut self, length: u64) {
        let Self { identity, geometry, parts, .. } = self;
        for (part, files) in parts.iter_mut().enumerate() {
            for file in files.iter_mut().filter(|file| file.footer.is_none()) {
                let end = footer_end(identity, geometry, part, file, length);
                file.footer =
                    end.and_then(|end| file.footer_at(identity, geometry.part(part), end));
            }
        }
    }

    /// Searches whole files until a footer is found, and returns the length that it states.
    fn search_footer(&mut self) -> Option<u64> {
        let Self { identity, geometry, parts, .. } = self;
        let files = parts.iter_mut().enumerate();
        let mut files = files.flat_map(|(part, files)| files.iter_mut().map(move |f| (part, f)));
        files.find_map(|(part, file)| {
            file.footer = file.footer_anywhere(identity, geometry.part(part));
            file.footer.map(|footer| footer.total.length)
        })
    }

    /// Returns the total that most footers state.
    fn majority(&self) -> Option<Total> {
        let mut votes: Vec<(Total, usize)> = Vec::new();
        for total in self.parts.iter().flatten().filter_map(|file| file.footer).map(|f| f.total) {
            match votes.iter_mut().find(|(voted, _)| *voted == total) {
                Some((_, count)) => *count += 1,
                None => votes.push((total, 1)),
            }
        }
        // Among totals with equally many votes, the first shard's wins.
        votes.iter().rev().max_by_key(|(_, count)| count).map(|(total, _)| *total)
    }
}

/// Returns the offset at which the footer of a part's file ends in an object of `length` bytes.
/// Returns `None` if nothing follows it in the file.
fn footer_end(
    identity: &Identity,
    geometry: &Geometry,
    part: usize,
    file: &ShardFile,
    length: u64,
) -> Option<u64> {
    let total = Total { length, digest: Digest::new([0; 32]) };
    let footer = identity.record(geometry.part(part), Some(total)).to_bytes().ok()?;
    let blocks = geometry.blocks(&geometry.extent(length), part)?;
    let end = file.front.as_ref().ok()?.checked_add(blocks)?.checked_add(footer.len() as u64)?;
    (end < file.length).then_some(end)
}
