//! Encoding: from a file or pipe to shard files.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IoSlice, Read};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use paritas::{Code, CodecOptions};
#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::progress::Progress;
use paritas_store::shown::{counted, shown};

use crate::folders::encoded_placement;
use crate::place::{existing, expect_room, is_shard_of};
use paritas_store::object::encode::encode_segments;
use paritas_store::object::format::{Digest, ObjectId, Total};
use paritas_store::object::geometry::DEFAULT_BLOCK_BYTES;
use paritas_store::object::layout::{NewObject, ObjectLayout};
use paritas_store::object::segment::Segment;
use paritas_store::place::attributes::{Access, Attributes};
use paritas_store::setters;
use paritas_store::staging::{NewFile, Replace, StagedFile, commit_over, directory_of};

/// The default code, in every program, of files and objects for which the user names no code.
pub const DEFAULT_CODE: &str = "4+2";

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
    /// Wanted number of bytes of a shard's block; a block has at least one stripe. For an LT code,
    /// the largest number of bytes of a block.
    pub block_bytes: usize,
    /// The object's base name.
    pub name: OsString,
    /// The object's id. Without it, a random id is drawn.
    pub object: Option<ObjectId>,
    /// The directories that shards are written to, which must exist. Shard i goes to directory
    /// number (i modulo the number of directories).
    pub directories: Vec<PathBuf>,
    /// The length of the source, if it is known.
    pub length_hint: Option<u64>,
    /// Mode, time and owner of the source. Mode and time are stored. New shards never give more
    /// access than the source: they get its mode (without execution, and less the umask), and its
    /// owner if the process may give files away.
    pub attributes: Attributes,
    /// Whether shards of that name that already exist in the directories are replaced.
    pub force: bool,
    /// Whether everything is synced to the disk before the shards get their names.
    pub sync: bool,
    /// Largest number of threads. Default: the number that the machine runs at once.
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

/// Encodes all bytes of `source`. `progress` is told the number of the source's bytes that are
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

/// A job that has passed all checks that are possible before anything is read or written.
#[derive(Debug)]
pub struct Preparation<'a> {
    job: &'a EncodeJob,
    layout: ObjectLayout,
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
    /// Number of these bytes that the code makes: n / k times the length of the object. The others
    /// are headers, checksums and padding.
    pub coded: u64,
}

impl EncodeJob {
    /// Checks the job, without reading or writing anything.
    ///
    /// # Errors
    /// If the job cannot be done ([`ErrorKind::Parameters`]), if shards of that name exist and must
    /// not be replaced ([`ErrorKind::Exists`]), or if a directory cannot be read or its disk has no
    /// room ([`ErrorKind::Io`]).
    pub fn prepare(&self) -> Result<Preparation<'_>> {
        let layout = layout(self)?;
        let paths = shard_paths(self, &layout)?;
        let old = existing(&self.directories, &self.name)?;
        if let (Some(first), false) = (old.first(), self.force) {
            return Err(Error::exists(format!(
                "{} of that name already exist, such as {}; `force` replaces them",
                counted(old.len(), "shard file"),
                shown(first)
            ))
            .naming(&["force"]));
        }
        refuse_taken(&paths, &old, &self.name)?;
        if let Some(length) = self.length_hint {
            let bytes = |part| layout.file_bytes(part, length).ok_or_else(Error::too_long);
            let parts = paths.iter().map(PathBuf::as_path).enumerate();
            let needed = parts.map(|(part, path)| Ok((path, bytes(part)?)));
            expect_room(needed.collect::<Result<Vec<_>>>()?)?;
        }
        Ok(Preparation { job: self, layout, paths })
    }
}

impl Preparation<'_> {
    /// Returns the space that the object will take. Returns `None` if its length is unknown, or if
    /// files cannot be that long.
    pub fn expectation(&self) -> Option<Expectation> {
        let (layout, length) = (&self.layout, self.job.length_hint?);
        let parts = 0..self.paths.len();
        let stored =
            parts.clone().map(|part| layout.file_bytes(part, length)).sum::<Option<u64>>()?;
        let geometry = layout.geometry();
        let cells =
            geometry.cells(parts.flat_map(|part| geometry.part_buffers(part))).len() as u128;
        let coded = u128::from(length) * cells / geometry.code().data_cells().len() as u128;
        Some(Expectation { length, stored, coded: u64::try_from(coded).ok()? })
    }

    /// Encodes all bytes of `source`, as [`encode`] does.
    ///
    /// # Errors
    /// If reading or writing fails ([`ErrorKind::Io`]), if another process has written shards of
    /// that name in the meantime ([`ErrorKind::Busy`]), or if the system lacks the memory for a
    /// segment ([`ErrorKind::Memory`]).
    pub fn run(self, source: impl Read + Send, progress: Progress<'_>) -> Result<EncodeReport> {
        let Self { job, layout, paths } = self;
        let access = Access::of_shards(&job.attributes);
        let new = NewFile::all(paths.iter().cloned(), &Replace::Never, access);
        let files = StagedFile::create_all(new, 0)?;
        let encoding = SharedEncoding { layout: &layout, files: &files };
        let (total, stored) = encoding.run(job, source, progress)?;
        let committed = commit_over(&job.directories, || find_old(job), files, job.sync)?;
        let placement = encoded_placement(layout.geometry(), total.length, &paths);
        let mut warnings: Vec<String> =
            placement.warning(layout.geometry(), 1, job.directories.len()).into_iter().collect();
        warnings.extend(committed.refusals());
        if let Some(hint) = job.length_hint.filter(|&hint| hint != total.length) {
            warnings.push(format!("the source should have {hint} bytes; got {}", total.length));
        }
        let Total { length, digest } = total;
        Ok(EncodeReport {
            object: layout.object(),
            length,
            digest,
            shards: paths,
            stored,
            warnings,
        })
    }
}

fn layout(job: &EncodeJob) -> Result<ObjectLayout> {
    let shape = NewObject {
        packet: job.packet,
        block_bytes: job.block_bytes,
        object: job.object,
        length: job.length_hint,
        attributes: job.attributes,
        options: job.options.clone(),
    };
    if job.directories.is_empty() {
        return Err(Error::parameters(
            "at least one directory must be given to write shards to; got none",
        ));
    }
    for directory in &job.directories {
        match fs::metadata(directory) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                let message = format!("{} is not a folder", shown(directory));
                return Err(Error::failed(message));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("the folder {} does not exist", shown(directory));
                return Err(Error::failed(message).because(error));
            }
            Err(error) => return Err(Error::io("looking at", directory, &error)),
        }
    }
    ObjectLayout::new(job.code.clone(), &job.name, shape)
}

/// Refuses paths at which a file exists that is not a shard of an object of this name: such files
/// are never replaced.
fn refuse_taken(paths: &[PathBuf], old: &[PathBuf], name: &OsStr) -> Result<()> {
    // Another process may be replacing the files, so only their folders are looked at.
    let place = |path: &PathBuf| {
        Some((directory_of(path).canonicalize().ok()?, path.file_name()?.to_owned()))
    };
    let old: Vec<_> = old.iter().filter_map(place).collect();
    let is_ours = |path: &PathBuf| place(path).is_some_and(|place| old.contains(&place));
    // Shards that another process has written since `old` was listed are noticed later, before
    // files are named.
    let is_taken = |path: &&PathBuf| {
        fs::symlink_metadata(path).is_ok() && !is_ours(path) && !is_shard_of(path, name)
    };
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
            "another process has written shards of that name in the meantime, such as {}; `force` \
             replaces them",
            shown(first)
        ))
        .naming(&["force"])),
        _ => Ok(old),
    }
}

/// Returns the paths of the parts of stage 1. Names of later stages must be possible, too.
fn shard_paths(job: &EncodeJob, layout: &ObjectLayout) -> Result<Vec<PathBuf>> {
    let names = (0..layout.part_count()).map(|part| layout.file_name(part));
    let names = names.collect::<Result<Vec<_>>>()?;
    let places = names.iter().zip(job.directories.iter().cycle());
    let paths = places.map(|(name, directory)| directory.join(name));
    Ok(paths.take(layout.parts_in(1).len()).collect())
}

/// The data that all threads of an encoding share.
struct SharedEncoding<'a> {
    layout: &'a ObjectLayout,
    /// The files of stage 1, by part.
    files: &'a [StagedFile],
}

impl SharedEncoding<'_> {
    /// Writes all files completely. Returns the total of the source, and the number of bytes
    /// written.
    fn run(
        &self,
        job: &EncodeJob,
        source: impl Read + Send,
        progress: Progress<'_>,
    ) -> Result<(Total, u64)> {
        self.write_fronts()?;
        let threads = self.layout.threads(job.threads, job.length_hint);
        let free: Mutex<Vec<Segment>> = Mutex::default();
        let free = || free.lock().unwrap_or_else(PoisonError::into_inner);
        let next = || free().pop().map_or_else(|| self.layout.segment(), Ok);
        let done = |mut segment: Segment, bytes: usize| {
            self.write_blocks(&mut segment)?;
            free().push(segment);
            progress(bytes as u64);
            Ok(())
        };
        let parts = 0..self.files.len();
        let (length, digest) = encode_segments(source, parts, threads, next, done)?;
        let total = Total { length, digest };
        Ok((total, self.write_footers(total)?))
    }

    /// Writes the front headers.
    fn write_fronts(&self) -> Result<()> {
        let mut files = self.files.iter().enumerate();
        files.try_for_each(|(part, file)| {
            file.write_at(&mut [IoSlice::new(&self.layout.front(part)?)], 0)
        })
    }

    /// Writes the blocks of one segment.
    fn write_blocks(&self, segment: &mut Segment) -> Result<()> {
        for (part, file) in self.files.iter().enumerate() {
            let start =
                self.layout.block_start(part, segment.number()).ok_or_else(Error::too_long)?;
            file.write_at(&mut segment.seal(part), start)?;
        }
        Ok(())
    }

    /// Writes the footers, and returns the number of bytes of all files.
    fn write_footers(&self, total: Total) -> Result<u64> {
        let Total { length, digest } = total;
        let mut stored = 0;
        for (part, file) in self.files.iter().enumerate() {
            let footer = self.layout.footer(part, length, digest)?;
            let end = self.layout.file_bytes(part, length).ok_or_else(Error::too_long)?;
            file.write_at(&mut [IoSlice::new(&footer)], end - footer.len() as u64)?;
            stored += end;
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use paritas_store::error::ErrorKind;

    use super::*;

    /// Another process may write shards of the same name after the existing shards were listed.
    #[test]
    fn new_shards_of_the_name_are_no_strangers() {
        let folder = tempfile::tempdir().unwrap();
        let code = Code::new(&"2+1".parse().unwrap()).unwrap();
        let job = EncodeJob::new(code, "object", vec![folder.path().to_owned()]).sync(false);
        let paths = encode(&job, &b"content"[..], &|_| {}).unwrap().shards;
        refuse_taken(&paths, &[], OsStr::new("object")).unwrap();
        fs::write(&paths[1], "somebody's own").unwrap();
        let refused = refuse_taken(&paths, &[], OsStr::new("object")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Exists);
        assert!(refused.message().starts_with(&shown(&paths[1]).to_string()), "{refused}");
    }
}
