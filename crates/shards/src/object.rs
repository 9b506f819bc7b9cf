//! From files to objects: [`scan`] looks at files, and gathers shards into objects by their
//! content.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paritas::{Code, CodecOptions, Pin, Spec};

use crate::aside::AsideFile;
use crate::attributes::Timestamp;
use crate::choose::tell_apart;
use crate::error::{Error, Result};
use crate::folders::GivenFolder;
use crate::format::{Digest, Identity, ObjectId, Record, Total, describe, layout_of};
use crate::geometry::{Extent, Geometry, Part, planned_bytes};
use crate::leftovers::{self, Leftover, LeftoverState};
use crate::names::{self, ShardName};
use crate::recognise::{NoShard, Recognised, ShardFile, recognise};
use crate::shown::{counted, shown};
use crate::system::{FileId, file_id};
use crate::unread::Unread;

/// The objects and other files that were found at some paths.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Inventory {
    /// The objects, in the order in which their first shards were found.
    pub objects: Vec<Object>,
    /// The files that are not shards, or cannot be used.
    pub ignored: Vec<Ignored>,
    /// Files that killed processes left behind.
    pub leftovers: Vec<Leftover>,
}

/// A path that contributes no shard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ignored {
    /// The path.
    pub path: PathBuf,
    /// The reason, in the form "is not a shard".
    pub reason: String,
    /// Whether the path itself was given to [`scan`], not only a directory that contains it.
    pub named: bool,
    /// Whether it could not be opened, so its content is unknown. It may be a shard of any object
    /// that was found; [`crate::verify`] takes this into account.
    pub unreadable: bool,
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
    pub(crate) unread: Arc<[Unread]>,
    /// The digits of the id that tell this object apart, if another object has the same name.
    pub(crate) digits: Option<String>,
    /// Whether some shards of this object were set aside for another object of its name, which is
    /// there.
    pub(crate) is_contested: bool,
    /// The folders that were searched.
    pub(crate) given: Arc<[GivenFolder]>,
    /// The files that repair moved aside for this object.
    pub(crate) moved_aside: Vec<AsideFile>,
}

/// Finds shards in files and directories (but not in subdirectories). Codecs of the objects found
/// are run with [`CodecOptions::default`].
pub fn scan(paths: &[PathBuf]) -> Inventory {
    scan_with(paths, |_| CodecOptions::default())
}

/// Finds shards as [`scan`] does. Codecs of the objects found are run with the options (except for
/// packet and threads) that `options` returns, which is called once for each code.
pub fn scan_with(paths: &[PathBuf], options: impl Fn(&Spec) -> CodecOptions) -> Inventory {
    let paths = &distinct(paths);
    let mut listed = names::list(paths);
    let mut gathering = gather(paths);
    for _ in 1..MOST_LOOKS {
        let now = names::list(paths);
        if now == listed {
            break;
        }
        (listed, gathering) = (now, gather(paths));
    }
    gathering.finish(&options)
}

/// Returns paths without those that were given before, spelled in whatever way.
fn distinct(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or(path.components().collect());
    paths.iter().filter(|path| seen.insert(resolved(path))).cloned().collect()
}

/// How often a scan looks at folders in which shards appear or vanish during the scan. When another
/// process replaces an object, half of its old shards and half of the new ones would look like two
/// damaged objects.
const MOST_LOOKS: usize = 4;

fn gather(paths: &[PathBuf]) -> Gathering {
    let given = paths.iter().filter_map(|path| GivenFolder::look(path)).collect();
    let mut gathering = Gathering { given, ..Gathering::default() };
    for path in paths {
        match fs::read_dir(path) {
            Ok(entries) => gathering.add_directory(path, entries),
            Err(error) if path.is_dir() => gathering.refuse_folder(path, &error),
            Err(_) => gathering.add_file(path, true),
        }
    }
    gathering
}

/// Scans some files in directories.
pub(crate) fn scan_files(mut files: Vec<PathBuf>, options: Options<'_>) -> Inventory {
    let mut gathering = Gathering::default();
    files.sort_unstable();
    for path in files {
        match path.file_name().is_some_and(names::is_temporary) {
            true => gathering.temporary.push(path),
            false => gathering.add_file(&path, false),
        }
    }
    gathering.finish(options)
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
    /// If there is no such part.
    pub fn part(&self, part: usize) -> Part {
        self.geometry.part(part)
    }

    /// Returns the parts without any file.
    pub fn missing_parts(&self) -> Vec<usize> {
        let parts = self.parts();
        (0..parts.len()).filter(|&part| parts[part].is_empty()).collect()
    }

    /// Returns the indices of shards that miss a part.
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
    /// If there is no such part.
    pub fn block_bytes(&self, part: usize) -> u64 {
        self.geometry.block(part, self.geometry.stripes())
    }

    /// Returns the number of the user's bytes in a full segment.
    pub fn segment_bytes(&self) -> u64 {
        self.geometry.segment_data()
    }

    /// Returns the number of bytes of all shard files that were found.
    pub fn stored_bytes(&self) -> u64 {
        self.parts.iter().flatten().map(ShardFile::length).sum()
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

    /// Whether the file of a part that the scan found is still there, as far as is known.
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

    /// Refuses to go on if not a single file of the scan is still there. Then another process has
    /// replaced the whole object, and nothing must be added to it.
    pub(crate) fn expect_standing(&self) -> Result<()> {
        match self.files().any(|(part, file)| self.is_there(part, file)) {
            true => Ok(()),
            false => Err(Error::busy(self.replaced_note().unwrap_or_default())),
        }
    }

    /// Whether a file has the name that its part is given.
    pub fn is_named_well(&self, part: usize, file: &ShardFile) -> bool {
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

    /// Returns the name that a part's file is given.
    pub(crate) fn part_name(&self, part: usize) -> Result<ShardName<'_>> {
        self.identity.part_name(&self.geometry, part)
    }

    /// Returns the length in bytes of a part's file when it is whole, if that is known.
    pub fn part_length(&self, part: usize) -> Option<u64> {
        let (front, footer) = self.records(part).ok()?;
        Some((front.len() + footer.len()) as u64 + self.blocks(part)?)
    }

    fn blocks(&self, part: usize) -> Option<u64> {
        self.geometry.blocks(&self.extent()?, part)
    }
}

/// The findings of a scan so far.
#[derive(Default)]
struct Gathering {
    seen: HashSet<FileId>,
    /// Shards, each with whether the path itself was given.
    found: Vec<(Recognised, bool)>,
    /// Files in directories that have temporary names.
    temporary: Vec<PathBuf>,
    /// Those of the temporary files that belong to no object.
    unfinished: Vec<(PathBuf, Option<Recognised>)>,
    ignored: Vec<Ignored>,
    unread: Vec<Unread>,
    given: Vec<GivenFolder>,
    moved_aside: Vec<AsideFile>,
}

impl Gathering {
    fn add_directory(&mut self, directory: &Path, entries: fs::ReadDir) {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if names::is_temporary(&entry.file_name()) => {
                    self.temporary.push(entry.path());
                }
                Ok(entry) if names::set_aside(&entry.file_name()).is_some() => {
                    self.moved_aside.extend(AsideFile::look(&entry.path()));
                }
                Ok(entry) => files.push(entry.path()),
                Err(error) => self.refuse_folder(directory, &error),
            }
        }
        files.sort_unstable();
        files.iter().filter(|path| !path.is_dir()).for_each(|path| self.add_file(path, false));
    }

    fn add_file(&mut self, path: &Path, named: bool) {
        // A file that is reached on two paths is one copy, not two.
        if file_id(path).is_some_and(|id| !self.seen.insert(id)) {
            return;
        }
        match recognise(path) {
            Ok(recognised) => self.found.push((recognised, named)),
            // If a given path cannot be opened, it may even be unknown whether it is a folder.
            Err(why) => self.refuse(path, why, named, named && fs::metadata(path).is_err()),
        }
    }

    fn refuse_folder(&mut self, path: &Path, error: &io::Error) {
        self.refuse(path, NoShard::refused(error), true, true);
    }

    fn refuse(&mut self, path: &Path, why: NoShard, named: bool, is_folder: bool) {
        let NoShard { reason, is_unreadable } = why;
        if is_unreadable {
            let (path, reason) = (path.to_owned(), reason.clone());
            self.unread.push(Unread { path, reason, is_folder });
        }
        self.ignored.push(Ignored {
            path: path.to_owned(),
            reason,
            named,
            unreadable: is_unreadable,
        });
    }

    fn ignore(&mut self, path: &Path, reason: String, named: bool) {
        self.ignored.push(Ignored { path: path.to_owned(), reason, named, unreadable: false });
    }

    /// Adds files with temporary names that are shards. Usually such files are unfinished, and not
    /// shards. But a crash while a complete set gets its names leaves some without: these are
    /// complete, and others of their object have names.
    fn add_unnamed(&mut self) {
        let mut named: HashSet<Identity> = HashSet::new();
        named.extend(self.found.iter().map(|(recognised, _)| recognised.identity.clone()));
        let mut temporary = std::mem::take(&mut self.temporary);
        temporary.sort_unstable();
        for path in temporary {
            let unnamed = match recognise(&path) {
                Err(why) if why.is_unreadable => {
                    self.refuse(&path, why, false, false);
                    continue;
                }
                unnamed => unnamed.ok(),
            };
            let complete = |r: &Recognised| r.file.has_front() && r.file.has_footer();
            match unnamed.as_ref().filter(|r| complete(r)) {
                Some(r) if named.contains(&r.identity) => self.add_file(&path, false),
                _ => self.unfinished.push((path, unnamed)),
            }
        }
    }

    /// Takes a whole set of files with temporary names for an object, unless an object of its name
    /// was found. Returns whether it did.
    fn adopt(&mut self, left: &Leftover) -> bool {
        let is_taken = |(found, _): &(Recognised, bool)| found.identity.name() == left.name;
        if left.state != LeftoverState::Unnamed || self.found.iter().any(is_taken) {
            return false;
        }
        left.files.iter().for_each(|path| self.add_file(path, false));
        true
    }

    fn finish(mut self, options: Options<'_>) -> Inventory {
        self.add_unnamed();
        let mut geometries = Geometries { options, known: HashMap::new() };
        let parts = |identity: &Identity| Some(geometries.of(identity, None).ok()?.parts_until(1));
        let mut leftovers = leftovers::temporary(std::mem::take(&mut self.unfinished), parts);
        leftovers.retain(|left| !self.adopt(left));
        let mut objects: Vec<Object> = Vec::new();
        let mut by_identity: HashMap<Identity, Result<usize, String>> = HashMap::new();
        for (recognised, named) in std::mem::take(&mut self.found) {
            let Recognised { file, identity, part } = recognised;
            let length = file.footer.map(|footer| footer.total.length);
            let place = by_identity.entry(identity).or_insert_with_key(|identity| {
                objects.push(Object::new(identity.clone(), geometries.of(identity, length)?));
                Ok(objects.len() - 1)
            });
            let path = file.path.clone();
            let added = place.clone().and_then(|place| objects[place].add(part, file));
            if let Err(reason) = added {
                self.ignore(&path, reason, named);
            }
        }
        objects.retain(|object| object.parts.iter().any(|files| !files.is_empty()));
        let unread: Arc<[Unread]> = self.unread.into();
        let given: Arc<[GivenFolder]> = self.given.into();
        for object in &mut objects {
            object.unread = Arc::clone(&unread);
            object.given = Arc::clone(&given);
            let is_of = |file: &&AsideFile| file.is_named_for(object.id());
            object.moved_aside = self.moved_aside.iter().filter(is_of).cloned().collect();
            object.settle();
        }
        leftovers.extend(leftovers::set_aside(&mut objects));
        leftovers.extend(leftovers::copies(&objects));
        leftovers.extend(leftovers::nameless(&objects));
        tell_apart(&mut objects);
        Inventory { objects, ignored: self.ignored, leftovers }
    }
}

impl Object {
    fn new(identity: Identity, geometry: Arc<Geometry>) -> Self {
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
    fn add(&mut self, part: Part, file: ShardFile) -> Result<(), String> {
        let place = self.geometry.find_part(part).ok_or_else(|| {
            let (spec, Part { shard, stage }) = (self.code().spec(), part);
            format!("states stage {stage} of shard {shard}, which {spec} does not have")
        })?;
        self.parts[place].push(file);
        Ok(())
    }

    /// Decides on the total and on the order of copies, once all files are there.
    fn settle(&mut self) {
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

    /// Looks for footers where an object of this length has them.
    fn place_footers(&mut self, length: u64) {
        let Self { identity, geometry, parts, .. } = self;
        for (part, files) in parts.iter_mut().enumerate() {
            for file in files.iter_mut().filter(|file| file.footer.is_none()) {
                let end = identity.footer_end(geometry, part, file, length);
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

/// Returns the options that a code is run with.
type Options<'o> = &'o dyn Fn(&Spec) -> CodecOptions;

/// The geometries of codes that were rebuilt, so that a directory of many objects costs each code
/// once.
struct Geometries<'o> {
    options: Options<'o>,
    known: HashMap<Shape, Result<Arc<Geometry>, String>>,
}

/// All fields of an identity that decide the geometry, and the number of bytes that it plans for.
type Shape = (String, Vec<(String, Vec<u64>)>, Digest, [u32; 3], Option<u64>);

impl Geometries<'_> {
    /// Returns the geometry of an identity's object. `length` is the length that one of its shards
    /// states.
    fn of(&mut self, identity: &Identity, length: Option<u64>) -> Result<Arc<Geometry>, String> {
        let numbers = [identity.packet, identity.stripes, identity.shards];
        let length = identity.length_hint.or(length);
        let planned = length.and_then(planned_bytes);
        let Identity { spec, pin, description, .. } = identity;
        let shape = (spec.clone(), pin.clone(), *description, numbers, planned);
        let rebuilt = || rebuild(identity, length, self.options).map(Arc::new);
        self.known.entry(shape).or_insert_with(rebuilt).clone()
    }
}

/// Rebuilds the geometry that an identity pins, for an object of about `length` bytes.
pub(crate) fn rebuild(
    identity: &Identity,
    length: Option<u64>,
    options: Options<'_>,
) -> Result<Geometry, String> {
    let spec: Spec =
        identity.spec.parse().map_err(|error| format!("states a code that is none: {error}"))?;
    let pin = identity
        .pin
        .iter()
        .fold(Pin::new(), |pin, (name, numbers)| pin.with(name, numbers.iter().copied()));
    let code = Code::rebuild(&spec, &pin)
        .map_err(|error| format!("cannot be read by this version: {error}"))?;
    let (nodes, shards) = (code.node_count(), identity.shards);
    if nodes != shards as usize {
        return Err(format!("states {}, but {spec} has {nodes}", counted(shards, "shard")));
    }
    if layout_of(&code) != identity.layout() {
        return Err(format!("states layout {}, which {spec} does not have", identity.layout()));
    }
    if describe(&code) != identity.description {
        return Err(format!(
            "states a generator matrix that differs from that of {spec} with its pin"
        ));
    }
    let options = options(code.spec());
    let (packet, stripes) = (identity.packet as usize, identity.stripes as usize);
    Geometry::new(code, packet, stripes, length, options)
        .map_err(|error| format!("states impossible sizes: {error}"))
}

impl Identity {
    /// Returns the record of a part: a footer if there is a total, otherwise a front header.
    pub(crate) fn record(&self, part: Part, total: Option<Total>) -> Record {
        Record::new(self.clone(), part.shard as u32, part.stage, total)
    }

    /// Returns the offset at which the footer of a part's file ends in an object of `length` bytes.
    /// Returns `None` if nothing follows it in the file.
    fn footer_end(
        &self,
        geometry: &Geometry,
        part: usize,
        file: &ShardFile,
        length: u64,
    ) -> Option<u64> {
        let total = Total { length, digest: Digest::new([0; 32]) };
        let footer = self.record(geometry.part(part), Some(total)).to_bytes().ok()?;
        let blocks = geometry.blocks(&geometry.extent(length), part)?;
        let end = file.front.as_ref().ok()?.checked_add(blocks)?.checked_add(footer.len() as u64)?;
        (end < file.length).then_some(end)
    }

    /// Returns the canonical name of a part's file.
    pub(crate) fn part_name(&self, geometry: &Geometry, part: usize) -> Result<ShardName<'_>> {
        let Part { stage, shard } = geometry.part(part);
        let added = geometry.is_added(part).then_some(stage);
        ShardName::new(self.name(), shard, self.shards as usize, added)
    }
}
