//! Encoding: from a file or pipe to shard files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{IoSlice, Read};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use paritas::{Code, CodecOptions};

use crate::Progress;
use crate::attributes::{Access, Attributes, STORED_MODE};
use crate::crew::Crew;
use crate::error::{Error, ErrorKind, Result};
use crate::folders::encoded_placement;
use crate::format::{Digest, Identity, ObjectId, Total, check_name};
use crate::geometry::{DEFAULT_BLOCK_BYTES, Geometry};
use crate::place::{NewFile, Pending, Replace, commit_over, existing};
use crate::segment::{BlockId, Segment};
use crate::setters::setters;
use crate::shown::{counted, shown};
use crate::system::name_bytes;

/// The settings of an encoding: those of [`EncodeJob::new`], changed by setters of the same names.
///
/// ```
/// use paritas_shards::EncodeJob;
/// let code = paritas::Code::new(&"4+2".parse()?)?;
/// let job = EncodeJob::new(code, "photos.tar", vec!["shards".into()]).force(true).packet(4096);
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EncodeJob {
    /// The code.
    pub code: Code,
    /// Number of bytes of a packet. The default is [`paritas::DEFAULT_PACKET`], or fewer if the
    /// object does not fill one stripe of these. (Blocks of an LT code may be shorter than any
    /// packet.)
    pub packet: Option<usize>,
    /// Wanted number of bytes of a shard's block, at least one stripe's. For an LT code, the most
    /// bytes of a block.
    pub block_bytes: usize,
    /// The object's base name.
    pub name: OsString,
    /// The object's id. Without it, a random id is drawn.
    pub object: Option<ObjectId>,
    /// The directories that shards are written to, which must exist. Shard i goes to the directory
    /// with the index i modulo their number.
    pub directories: Vec<PathBuf>,
    /// The length of the source, if it is known.
    pub length_hint: Option<u64>,
    /// Mode, time and owner of the source. Mode and time are stored. New shards never give more
    /// access than the source: they get its mode (without execution, and less the umask), and its
    /// owner if the process may give files away.
    pub attributes: Attributes,
    /// Whether shards of that name that are in the directories are replaced.
    pub force: bool,
    /// Whether everything is synced to the disk before the shards get their names.
    pub sync: bool,
    /// Largest number of threads; by default as many as the machine runs at once.
    pub threads: Option<NonZeroUsize>,
    /// The way the code is run on this machine. The stored bytes do not depend on it. Packet and
    /// threads are taken from the job instead.
    pub options: CodecOptions,
}

impl EncodeJob {
    /// Creates a job with the usual settings: shards are synced, and existing ones stay.
    pub fn new(code: Code, name: impl Into<OsString>, directories: Vec<PathBuf>) -> Self {
        Self {
            code,
            packet: None,
            block_bytes: DEFAULT_BLOCK_BYTES,
            name: name.into(),
            object: None,
            directories,
            length_hint: None,
            attributes: Attributes::default(),
            force: false,
            sync: true,
            threads: None,
            options: CodecOptions::default(),
        }
    }
}

setters! { EncodeJob {
    /// Sets the packet size to `packet` bytes.
    packet: impl Into<Option<usize>>,
    /// Cuts shards into blocks of about `block_bytes` bytes.
    block_bytes: usize,
    /// Gives the object the id `object`.
    object: impl Into<Option<ObjectId>>,
    /// States the length of the source.
    length_hint: impl Into<Option<u64>>,
    /// States mode, time and owner of the source.
    attributes: Attributes,
    /// Replaces existing shards of the same name, or refuses to.
    force: bool,
    /// Turns syncing on or off.
    sync: bool,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
    /// Runs the code as `options` says.
    options: CodecOptions,
} }

/// The result of encoding.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EncodeReport {
    /// The object's id.
    pub object: ObjectId,
    /// Its length in bytes.
    pub length: u64,
    /// Its digest.
    pub digest: Digest,
    /// The shards' files by index. If the code has stages, those of the first stage.
    pub shards: Vec<PathBuf>,
    /// Number of bytes of all shard files.
    pub stored: u64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Encodes all bytes of `source`. `progress` gets the number of the source's bytes as they are
/// done.
///
/// On an error, everything is as it was before.
///
/// # Errors
/// If the job cannot be done (see [`EncodeJob::prepare`]), or if reading or writing fails (see
/// [`Preparation::run`]).
pub fn encode(
    job: &EncodeJob,
    source: impl Read + Send,
    progress: Progress<'_>,
) -> Result<EncodeReport> {
    job.prepare()?.run(source, progress)
}

/// A job that can be done, as far as this is known before anything is read or written.
#[derive(Debug)]
pub struct Preparation<'a> {
    job: &'a EncodeJob,
    geometry: Arc<Geometry>,
    identity: Identity,
    /// The shards' files.
    paths: Vec<PathBuf>,
}

/// The space that an object will take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expectation {
    /// Number of bytes of the object.
    pub length: u64,
    /// Number of bytes of all shard files together.
    pub stored: u64,
    /// Number of these bytes that the code makes: n / k times the object's. The others are headers,
    /// checksums and padding.
    pub coded: u64,
}

impl EncodeJob {
    /// Checks the job, without reading or writing anything.
    ///
    /// # Errors
    /// If the job cannot be done ([`ErrorKind::Parameters`]), if shards of that name exist and must
    /// not be replaced ([`ErrorKind::Exists`]), or if a directory cannot be read
    /// ([`ErrorKind::Io`]).
    pub fn prepare(&self) -> Result<Preparation<'_>> {
        let (geometry, identity) = shape(self)?;
        let paths = shard_paths(self, &geometry, &identity)?;
        let old = existing(&self.directories, &self.name)?;
        if let (Some(first), false) = (old.first(), self.force) {
            return Err(Error::exists(format!(
                "{} of that name already exist, such as {}; --force replaces them",
                counted(old.len(), "shard file"),
                shown(first)
            )));
        }
        refuse_taken(&paths, &old, &self.name)?;
        Ok(Preparation { job: self, geometry, identity, paths })
    }
}

impl Preparation<'_> {
    /// Returns the space that the object will take. Returns `None` if its length is unknown, or if
    /// files cannot be that long.
    pub fn expectation(&self) -> Option<Expectation> {
        let (geometry, length) = (&self.geometry, self.job.length_hint?);
        let extent = geometry.extent(length);
        let total = Total { length, digest: Digest::new([0; 32]) };
        let file = |part: usize| {
            let record = |total| self.identity.record(geometry.part(part), total).to_bytes().ok();
            let headers = record(None)?.len() + record(Some(total))?.len();
            Some(headers as u64 + geometry.blocks(&extent, part)?)
        };
        let parts = 0..self.paths.len();
        let stored = parts.clone().map(file).sum::<Option<u64>>()?;
        let cells =
            geometry.cells(parts.flat_map(|part| geometry.part_buffers(part))).len() as u128;
        let coded = u128::from(length) * cells / geometry.code().data_cells().len() as u128;
        Some(Expectation { length, stored, coded: u64::try_from(coded).ok()? })
    }

    /// Encodes all bytes of `source`, as [`encode`] does.
    ///
    /// # Errors
    /// If reading or writing fails ([`ErrorKind::Io`]), if another process has written shards of
    /// that name in the meantime ([`ErrorKind::Exists`]), or if there is no memory for a segment
    /// ([`ErrorKind::Memory`]).
    pub fn run(self, source: impl Read + Send, progress: Progress<'_>) -> Result<EncodeReport> {
        let Self { job, geometry, identity, paths } = self;
        let access = Access::of_shards(&job.attributes);
        let new =
            |target: &PathBuf| NewFile { target: target.clone(), replace: Replace::Never, access };
        let targets: Vec<NewFile> = paths.iter().map(new).collect();
        let files = Pending::create_all(targets, 0)?;
        let encoding = Encoding { geometry: &geometry, identity: &identity, files: &files };
        let (total, stored) = encoding.run(job, source, progress)?;
        commit_over(&job.directories, || find_old(job), files, job.sync)?;
        let placement = encoded_placement(&geometry, total.length, &paths);
        let mut warnings: Vec<String> =
            placement.warning(&geometry, 1, job.directories.len()).into_iter().collect();
        if let Some(hint) = job.length_hint.filter(|&hint| hint != total.length) {
            warnings.push(format!("the source should have {hint} bytes; got {}", total.length));
        }
        let Total { length, digest } = total;
        Ok(EncodeReport {
            object: identity.object,
            length,
            digest,
            shards: paths,
            stored,
            warnings,
        })
    }
}

fn shape(job: &EncodeJob) -> Result<(Arc<Geometry>, Identity)> {
    check_name(name_bytes(&job.name))
        .map_err(|how| Error::parameters(format!("{}: {how}", shown(&job.name))))?;
    if job.directories.is_empty() {
        return Err(Error::parameters(
            "at least one directory must be given to write shards to; got none",
        ));
    }
    for directory in &job.directories {
        if !directory.is_dir() {
            let message = format!("{} is not a directory", shown(directory));
            return Err(Error::new(ErrorKind::Io, message));
        }
    }
    let (packet, stripes) =
        Geometry::choose(&job.code, job.packet, job.block_bytes, job.length_hint);
    let (length, options) = (job.length_hint, job.options.clone());
    let geometry = Geometry::new(job.code.clone(), packet, stripes, length, options)?;
    geometry.expect_decodable()?;
    let object = job.object.map_or_else(ObjectId::random, Ok)?;
    let mut identity = Identity::new(&job.code, &job.name, object);
    identity.packet = packet as u32;
    identity.stripes = stripes as u32;
    identity.length_hint = job.length_hint;
    identity.mode = job.attributes.mode.map(|mode| mode & STORED_MODE);
    identity.modified = job.attributes.modified;
    Ok((Arc::new(geometry), identity))
}

/// Refuses names that belong to files that encoding did not make: those are never replaced.
fn refuse_taken(paths: &[PathBuf], old: &[PathBuf], name: &OsStr) -> Result<()> {
    let old: Vec<_> = old.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    let is_ours = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|path| old.contains(&path));
    let is_taken = |path: &&PathBuf| fs::symlink_metadata(path).is_ok() && !is_ours(path);
    let Some(taken) = paths.iter().find(is_taken) else { return Ok(()) };
    let message = format!(
        "{} exists and is not recognised as a shard of {}, so it is not replaced; move it away",
        shown(taken),
        shown(name)
    );
    Err(Error::exists(message))
}

/// Returns the shards that are to be replaced, once all new ones are written.
fn find_old(job: &EncodeJob) -> Result<Vec<PathBuf>> {
    let old = existing(&job.directories, &job.name)?;
    match old.first() {
        Some(first) if !job.force => Err(Error::busy(format!(
            "another process has written shards of that name in the meantime, such as {}; --force \
             replaces them",
            shown(first)
        ))),
        _ => Ok(old),
    }
}

/// Returns the paths of the parts of stage 1. Names of later stages must be possible, too.
fn shard_paths(job: &EncodeJob, geometry: &Geometry, identity: &Identity) -> Result<Vec<PathBuf>> {
    let name = |part| Ok(identity.part_name(geometry, part)?.finished());
    let names = (0..geometry.part_count()).map(name).collect::<Result<Vec<_>>>()?;
    let places = names.iter().zip(job.directories.iter().cycle());
    let paths = places.map(|(name, directory)| directory.join(name));
    Ok(paths.take(geometry.parts_until(1)).collect())
}

/// The data that all threads of an encoding share.
struct Encoding<'a> {
    geometry: &'a Arc<Geometry>,
    identity: &'a Identity,
    /// The files of stage 1, by part.
    files: &'a [Pending],
}

/// A source, and the position that has been read.
struct Reading<R> {
    source: R,
    segments: u64,
    bytes: u64,
    ended: bool,
}

impl<R: Read> Reading<R> {
    /// Fills a segment, and returns its number and the number of bytes. Returns `None` if the
    /// source has ended.
    fn next(&mut self, segment: &mut Segment) -> Result<Option<(u64, usize)>> {
        if self.ended {
            return Ok(None);
        }
        let bytes = segment.fill(&mut self.source).map_err(|error| {
            let doing = format!("reading the source after {} bytes", self.bytes);
            Error::stream(doing, error).at_byte(self.bytes)
        })?;
        let number = self.segments;
        self.ended = bytes == 0;
        self.segments += 1;
        self.bytes += bytes as u64;
        Ok((bytes > 0).then_some((number, bytes)))
    }
}

impl Encoding<'_> {
    /// Writes all files completely. Returns the total of the source, and the number of bytes
    /// written.
    fn run(
        &self,
        job: &EncodeJob,
        source: impl Read + Send,
        progress: Progress<'_>,
    ) -> Result<(Total, u64)> {
        let fronts = self.write_fronts()?;
        let reading = Mutex::new(Reading { source, segments: 0, bytes: 0, ended: false });
        let mut threads = self.geometry.threads(job.threads);
        if let Some(hint) = job.length_hint {
            threads = threads.min(self.geometry.extent(hint).count().max(1) as usize);
        }
        let hasher = Crew::run(threads, blake3::Hasher::new(), |crew| {
            self.work(crew, &reading, &fronts, progress)
        })?;
        let reading = reading.into_inner().unwrap_or_else(PoisonError::into_inner);
        let digest = Digest::new(hasher.finalize().into());
        let total = Total { length: reading.bytes, digest };
        Ok((total, self.write_footers(&fronts, total)?))
    }

    fn work<R: Read>(
        &self,
        crew: &Crew<blake3::Hasher>,
        reading: &Mutex<Reading<R>>,
        fronts: &[u64],
        progress: Progress<'_>,
    ) -> Result<()> {
        let mut segment = Segment::new(self.geometry)?;
        let wanted = self.geometry.buffers_in(0..self.files.len());
        while !crew.is_stopped() {
            let next = reading.lock().unwrap_or_else(PoisonError::into_inner).next(&mut segment)?;
            let Some((number, bytes)) = next else { break };
            crew.in_turn(number, |hasher| {
                segment.data(bytes).into_iter().for_each(|lane| _ = hasher.update(lane));
                Ok(())
            })?;
            segment.compute(|buffer| wanted[buffer])?;
            for (part, file) in self.files.iter().enumerate() {
                let id = BlockId { object: self.identity.object, part, segment: number };
                let start = self.geometry.block_start(part, number).ok_or_else(too_long)?;
                file.write_at(&mut segment.seal(id), fronts[part] + start)?;
            }
            progress(bytes as u64);
        }
        Ok(())
    }

    /// Writes the front headers, and returns their lengths.
    fn write_fronts(&self) -> Result<Vec<u64>> {
        let write = |(part, file): (usize, &Pending)| {
            let front = self.record(part, None)?;
            file.write_at(&mut [IoSlice::new(&front)], 0)?;
            Ok(front.len() as u64)
        };
        self.files.iter().enumerate().map(write).collect()
    }

    /// Writes the footers, and returns the number of bytes of all files.
    fn write_footers(&self, fronts: &[u64], total: Total) -> Result<u64> {
        let extent = self.geometry.extent(total.length);
        let mut stored = 0;
        for (part, file) in self.files.iter().enumerate() {
            let footer = self.record(part, Some(total))?;
            let blocks = self.geometry.blocks(&extent, part).ok_or_else(too_long)?;
            let start = fronts[part] + blocks;
            file.write_at(&mut [IoSlice::new(&footer)], start)?;
            stored += start + footer.len() as u64;
        }
        Ok(stored)
    }

    fn record(&self, part: usize, total: Option<Total>) -> Result<Vec<u8>> {
        self.identity.record(self.geometry.part(part), total).to_bytes()
    }
}

fn too_long() -> Error {
    Error::parameters("the object is too long: a shard file would have 2^63 bytes or more")
}
