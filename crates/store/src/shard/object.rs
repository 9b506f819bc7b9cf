//! From files to objects: [`scan`] looks at what is there and gathers shards by what they say.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paritas::{Code, CodecOptions, Pin, Spec};

use crate::error::{Error, Result};
use crate::shard::aside::AsideFile;
use crate::shard::attributes::Timestamp;
use crate::shard::choose::tell_apart;
use crate::shard::folders::GivenFolder;
use crate::shard::format::{Digest, Identity, ObjectId, Record, Total, describe, layout_of};
use crate::shard::geometry::{Extent, Geometry, Part, planned_bytes};
use crate::shard::leftovers::{self, Leftover, LeftoverState};
use crate::shard::names::{self, ShardName};
use crate::shard::recognise::{NoShard, Recognised, ShardFile, recognise};
use crate::shard::unread::Unread;
use crate::shown::{counted, shown};
use crate::system::{FileId, file_id};

/// What was found at some paths.
#[derive(Debug, Default)]
pub struct Inventory {
    /// The objects, in the order in which their first shards were found.
    pub objects: Vec<Object>,
    /// The files that are no shards, or of no use.
    pub ignored: Vec<Ignored>,
    /// What killed processes left behind.
    pub leftovers: Vec<Leftover>,
}

/// A path that gave no shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The path.
    pub path: PathBuf,
    /// Why, in the form "is not a shard".
    pub reason: String,
    /// Whether the path itself was given to [`scan`], and not a directory that it is in.
    pub named: bool,
    /// Whether it could not be opened, so that nobody knows what it holds: it may be a shard of any
    /// of the objects that were found, which [`super::verify`] takes into account.
    pub unreadable: bool,
}

/// One object and the files that hold its shards.
#[derive(Debug)]
pub struct Object {
    pub(crate) identity: Identity,
    pub(crate) geometry: Arc<Geometry>,
    pub(crate) total: Option<Total>,
    /// Per part of any stage, its files, the complete ones first.
    pub(crate) parts: Vec<Vec<ShardFile>>,
    /// What could not be opened, whatever it holds.
    pub(crate) unread: Arc<[Unread]>,
    /// Where another object has the same name, the digits of the id that tell them apart.
    pub(crate) digits: Option<String>,
    /// Whether shards of it were set aside for another object of its name, which is there.
    pub(crate) is_contested: bool,
    /// The folders that were looked at.
    pub(crate) given: Arc<[GivenFolder]>,
    /// What repair has moved aside.
    pub(crate) moved_aside: Vec<AsideFile>,
}

/// Looks for shards in files and directories (not in directories below these). What reads the
/// objects later runs their codes as [`CodecOptions::default`] says.
pub fn scan(paths: &[PathBuf]) -> Inventory {
    scan_with(paths, |_| CodecOptions::default())
}

/// Looks for shards as [`scan`] does. What reads the objects later runs their codes as `options`
/// says (all but packet and threads), which is asked once for each code that is found.
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

/// How often a scan looks at folders in which shards appear or vanish while it does: half of what
/// another process replaces and half of what it replaces that with would be two damaged objects.
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

/// Looks at some files in directories.
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
    /// The id.
    pub fn id(&self) -> ObjectId {
        self.identity.object
    }

    /// The base name, which may be any bytes.
    pub fn name(&self) -> &OsStr {
        self.identity.name()
    }

    /// What messages call the object: its name and, if another object of this name was found, as
    /// many digits of its id as tell them apart.
    pub fn label(&self) -> String {
        let name = shown(self.name());
        match &self.digits {
            None => name.to_string(),
            Some(digits) => format!("{name} (id {digits})"),
        }
    }

    /// The code, as its shards pin it.
    pub fn code(&self) -> &Code {
        self.geometry.code()
    }

    /// What the bytes of a block are: `packets` or `words`.
    pub fn layout(&self) -> &str {
        self.identity.layout()
    }

    /// The length in bytes, unless no shard has a readable footer.
    pub fn length(&self) -> Option<u64> {
        self.total.map(|total| total.length)
    }

    /// The digest, unless no shard has a readable footer.
    pub fn digest(&self) -> Option<Digest> {
        self.total.map(|total| total.digest)
    }

    /// The mode of the source: permissions, set-user-ID, set-group-ID and sticky bit. Nothing where
    /// the source had none, or was encoded by a version that did not store it.
    pub fn mode(&self) -> Option<u32> {
        self.identity.mode
    }

    /// When the source last changed; nothing as for [`Self::mode`].
    pub fn modified(&self) -> Option<Timestamp> {
        self.identity.modified
    }

    /// The number of shards that the object has after its last stage.
    pub fn shard_count(&self) -> usize {
        self.geometry.shard_count()
    }

    /// The stage that the object has reached: 1, or a later one to which it was promoted. It was as
    /// soon as any file of that stage is there.
    pub fn stage(&self) -> u8 {
        let found = (0..self.parts.len()).rev().find(|&part| !self.parts[part].is_empty());
        found.map_or(1, |part| self.geometry.part(part).stage)
    }

    /// The stages that its code has.
    pub fn stages(&self) -> u8 {
        self.geometry.code().stages()
    }

    /// The number of shards that the object has in its present stage.
    pub fn standing_shards(&self) -> usize {
        self.geometry.shards_at(self.stage())
    }

    /// Any so many shards may be lost of an object in its present stage.
    pub fn tolerance(&self) -> usize {
        self.geometry.tolerance(self.stage())
    }

    /// The files of every part that an object in its present stage has. Without stages part i is
    /// shard i; otherwise the parts of each stage follow those of the one before.
    pub fn parts(&self) -> &[Vec<ShardFile>] {
        &self.parts[..self.geometry.parts_until(self.stage())]
    }

    /// The shard and stage of a part.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn part(&self, part: usize) -> Part {
        self.geometry.part(part)
    }

    /// The parts without any file.
    pub fn missing_parts(&self) -> Vec<usize> {
        let parts = self.parts();
        (0..parts.len()).filter(|&part| parts[part].is_empty()).collect()
    }

    /// The indices of shards that miss a part.
    pub fn missing(&self) -> Vec<usize> {
        let shards = self.missing_parts().into_iter().map(|part| self.part(part).shard);
        let shards: BTreeSet<usize> = shards.collect();
        shards.into_iter().collect()
    }

    /// The bytes of a packet.
    pub fn packet(&self) -> usize {
        self.geometry.packet()
    }

    /// The stripes of a full segment.
    pub fn stripes(&self) -> usize {
        self.geometry.stripes()
    }

    /// The bytes of a part's full block, checksums included.
    ///
    /// # Panics
    /// When there is no such part.
    pub fn block_bytes(&self, part: usize) -> u64 {
        self.geometry.block(part, self.geometry.stripes())
    }

    /// The user's bytes in a full segment.
    pub fn segment_bytes(&self) -> u64 {
        self.geometry.segment_data()
    }

    /// The bytes of all shard files that were found.
    pub fn stored_bytes(&self) -> u64 {
        self.parts.iter().flatten().map(ShardFile::length).sum()
    }

    /// What is wrong with a file as a whole, without its blocks having been read.
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
            flaws.push("the footer states another length or digest than most".to_owned());
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

    /// The files that were found, by part.
    fn files(&self) -> impl Iterator<Item = (usize, &ShardFile)> {
        let parts = self.parts().iter().enumerate();
        parts.flat_map(|(part, files)| files.iter().map(move |file| (part, file)))
    }

    /// Whether there still is a file of the part that was found in a file, as far as is known.
    fn is_there(&self, part: usize, file: &ShardFile) -> bool {
        match recognise(&file.path) {
            Ok(found) => found.identity == self.identity && found.part == self.part(part),
            Err(why) => why.is_unreadable,
        }
    }

    /// What another process has replaced or taken away since the scan, in words.
    pub(crate) fn replaced_note(&self) -> Option<String> {
        let (_, file) = self.files().find(|(part, file)| !self.is_there(*part, file))?;
        Some(format!(
            "{}: another process has changed {} meanwhile; run the command again",
            shown(self.name()),
            shown(file.path())
        ))
    }

    /// Expects that any of the files that were found is still there: where none is, another process
    /// has replaced the whole object, and nothing is to be added to it.
    pub(crate) fn expect_standing(&self) -> Result<()> {
        match self.files().any(|(part, file)| self.is_there(part, file)) {
            true => Ok(()),
            false => Err(Error::busy(self.replaced_note().unwrap_or_default())),
        }
    }

    /// Whether a file has the name that its part was given.
    pub fn is_named_well(&self, part: usize, file: &ShardFile) -> bool {
        let name = self.part_name(part);
        name.is_ok_and(|name| file.path.file_name() == Some(&name.finished()))
    }

    /// The segments, where the length is known.
    pub(crate) fn extent(&self) -> Option<Extent> {
        self.length().map(|length| self.geometry.extent(length))
    }

    /// The front header and the footer of a part, byte by byte.
    pub(crate) fn records(&self, part: usize) -> Result<(Vec<u8>, Vec<u8>)> {
        let record = |total| self.identity.record(self.part(part), total).to_bytes();
        Ok((record(None)?, record(self.total)?))
    }

    /// The name that a part's file is given.
    pub(crate) fn part_name(&self, part: usize) -> Result<ShardName<'_>> {
        self.identity.part_name(&self.geometry, part)
    }

    /// The length in bytes that a part's file has when it is whole, where that is known.
    pub fn part_length(&self, part: usize) -> Option<u64> {
        let (front, footer) = self.records(part).ok()?;
        Some((front.len() + footer.len()) as u64 + self.blocks(part)?)
    }

    fn blocks(&self, part: usize) -> Option<u64> {
        self.geometry.blocks(&self.extent()?, part)
    }
}

/// What has been found so far.
#[derive(Default)]
struct Gathering {
    seen: HashSet<FileId>,
    /// Shards, and whether the path itself was given.
    found: Vec<(Recognised, bool)>,
    /// Files in directories that have temporary names.
    temporary: Vec<PathBuf>,
    /// Those of them that are part of nothing.
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
        // A file that is reached in two ways is one copy, not two.
        if file_id(path).is_some_and(|id| !self.seen.insert(id)) {
            return;
        }
        match recognise(path) {
            Ok(recognised) => self.found.push((recognised, named)),
            // Of a path that was given it may not even be known whether it is a folder.
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

    /// Files with temporary names are unfinished and no shards, but for one case: a crash while a
    /// complete set was given its names left some without. They are complete, and others of their
    /// object have names.
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

    /// Takes a whole set that has temporary names for an object, unless one of its name is there.
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

    /// Takes a file, or says why the code has none such.
    fn add(&mut self, part: Part, file: ShardFile) -> Result<(), String> {
        let place = self.geometry.find_part(part).ok_or_else(|| {
            let (spec, Part { shard, stage }) = (self.code().spec(), part);
            format!("states stage {stage} of shard {shard}, which {spec} has not")
        })?;
        self.parts[place].push(file);
        Ok(())
    }

    /// Decides on the total and the order of copies, once all files are there.
    fn settle(&mut self) {
        self.total = self.majority();
        self.find_footers();
        self.total = self.majority();
        for files in &mut self.parts {
            files.sort_by_key(|file| (file.front.is_err(), file.footer.is_none()));
        }
    }

    /// Looks for footers before what was appended to files: where the length that others state, or
    /// that was expected, puts them. Only if that leaves the length unknown a whole file is read.
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

    /// Searches whole files for a footer, until there is one, and returns the length that it
    /// states.
    fn search_footer(&mut self) -> Option<u64> {
        let Self { identity, geometry, parts, .. } = self;
        let files = parts.iter_mut().enumerate();
        let mut files = files.flat_map(|(part, files)| files.iter_mut().map(move |f| (part, f)));
        files.find_map(|(part, file)| {
            file.footer = file.footer_anywhere(identity, geometry.part(part));
            file.footer.map(|footer| footer.total.length)
        })
    }

    /// The total that most footers state.
    fn majority(&self) -> Option<Total> {
        let mut votes: Vec<(Total, usize)> = Vec::new();
        for total in self.parts.iter().flatten().filter_map(|file| file.footer).map(|f| f.total) {
            match votes.iter_mut().find(|(voted, _)| *voted == total) {
                Some((_, count)) => *count += 1,
                None => votes.push((total, 1)),
            }
        }
        // Of equals, the one of the first shard.
        votes.iter().rev().max_by_key(|(_, count)| count).map(|(total, _)| *total)
    }
}

/// How a code is to be run.
type Options<'o> = &'o dyn Fn(&Spec) -> CodecOptions;

/// The shapes of codes that were rebuilt, so that a directory of many objects costs each code once.
struct Geometries<'o> {
    options: Options<'o>,
    known: HashMap<Shape, Result<Arc<Geometry>, String>>,
}

/// All parts of an identity that decide the geometry, and for how many bytes it plans.
type Shape = (String, Vec<(String, Vec<u64>)>, Digest, [u32; 3], Option<u64>);

impl Geometries<'_> {
    /// Returns the shape of an identity's object, of which a shard has told this length.
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

/// The geometry that an identity pins, for an object of about this length.
fn rebuild(
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
        return Err(format!("states layout {}, which {spec} has not", identity.layout()));
    }
    if describe(&code) != identity.description {
        return Err(format!("states another generator matrix than {spec} with its pin has"));
    }
    let options = options(code.spec());
    let (packet, stripes) = (identity.packet as usize, identity.stripes as usize);
    Geometry::new(code, packet, stripes, length, options)
        .map_err(|error| format!("states what cannot be: {error}"))
}

impl Identity {
    /// The record of a part: a footer with the total, a front header without.
    pub(crate) fn record(&self, part: Part, total: Option<Total>) -> Record {
        Record::new(self.clone(), part.shard as u32, part.stage, total)
    }

    /// Where the footer of a part's file ends, if something follows it in the file, for an object
    /// of this length.
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

    /// The canonical name of a part's file.
    pub(crate) fn part_name(&self, geometry: &Geometry, part: usize) -> Result<ShardName<'_>> {
        let Part { stage, shard } = geometry.part(part);
        let added = geometry.is_added(part).then_some(stage);
        ShardName::new(self.name(), shard, self.shards as usize, added)
    }
}
