//! Decoding: from shard files to the object, as a file or into a pipe.

use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::shard::Progress;
use crate::shard::attributes::{Access, PERMISSIONS};
use crate::shard::crew::Crew;
use crate::shard::format::{Digest, ObjectId};
use crate::shard::object::Object;
use crate::shard::place::{NewFile, Pending, Replace, commit};
use crate::shard::segment::Segment;
use crate::shard::sources::{Depth, FileReport, Sources};
use crate::shown::shown;

/// Where a decoded object goes.
pub enum DecodeTarget {
    /// A file, which appears under its name when all of it is there and has the right digest. A
    /// path that exists and is no regular file, such as `/dev/null`, is written to as it is.
    File {
        /// The path.
        path: PathBuf,
        /// Whether a file that exists is to be replaced.
        force: bool,
        /// Whether the file is to be on the disk before it gets its name.
        sync: bool,
        /// What the file gets of the mode and the time that are stored.
        preserve: Preserve,
    },
    /// A pipe or the like. When the final digest is wrong, the bytes have left already.
    Writer(Box<dyn Write + Send>),
}

impl DecodeTarget {
    /// A file with the usual settings: nothing replaced, synced, mode and time restored.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let preserve = Preserve::default();
        Self::File { path: path.into(), force: false, sync: true, preserve }
    }
}

/// What a decoded file gets of the mode and the time of the source, where these are stored. If it
/// gets a mode, only its owner can open it before it is complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preserve {
    /// Nothing: it is like any new file.
    Nothing,
    /// The permissions and the time.
    #[default]
    Usual,
    /// The set-user-ID, set-group-ID and sticky bits as well.
    Special,
}

impl Preserve {
    fn access(self, object: &Object) -> Access {
        match self {
            Self::Nothing => Access::USUAL,
            Self::Usual => {
                let permissions = object.mode().map(|mode| mode & PERMISSIONS);
                Access::of_decoded(permissions, object.modified())
            }
            Self::Special => Access::of_decoded(object.mode(), object.modified()),
        }
    }
}

impl std::fmt::Debug for DecodeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path, .. } => write!(f, "File({})", shown(path)),
            Self::Writer(_) => f.write_str("Writer"),
        }
    }
}

/// What decoding found.
#[derive(Debug, Clone)]
pub struct DecodeReport {
    /// The object's id.
    pub object: ObjectId,
    /// Its length in bytes.
    pub length: u64,
    /// Its digest, which is that of the bytes.
    pub digest: Digest,
    /// The indices of shards without a file.
    pub missing: Vec<usize>,
    /// The files in which damage was met; what was not needed has not been read.
    pub damaged: Vec<FileReport>,
}

/// Gives back an object. `progress` gets the object's bytes as they are done.
///
/// # Errors
/// [`ErrorKind::TooFewShards`] when more is lost than can be recovered,
/// [`ErrorKind::DigestMismatch`] when the bytes are not those that were encoded,
/// [`ErrorKind::Exists`] when the target is not to be replaced, [`ErrorKind::Io`], also where what
/// is lacking may be in files that could not be opened.
pub fn decode(
    object: &Object,
    target: DecodeTarget,
    threads: usize,
    progress: Progress<'_>,
) -> Result<DecodeReport> {
    let sources = Sources::open(object, 1)?;
    let target = Target::open(target, object)?;
    let (file, stream, sync) = match target {
        Target::File(file, sync) => (Some(file), None, sync),
        Target::Stream(stream) => (None, Some(stream), false),
    };
    let ordered = Ordered { hasher: blake3::Hasher::new(), stream };
    let next = AtomicU64::new(0);
    let ordered = Crew::run(sources.threads(threads), ordered, |crew| {
        work(crew, &sources, &next, file.as_ref(), progress)
    })?;
    let digest = ordered.finish()?;
    check_digest(object, digest)?;
    file.map_or(Ok(Vec::new()), |file| commit(vec![file], sync))?;
    Ok(DecodeReport {
        object: object.id(),
        length: object.length().unwrap_or(0),
        digest,
        missing: object.missing(),
        damaged: sources.damaged(),
    })
}

/// What happens in the order of the object.
struct Ordered {
    hasher: blake3::Hasher,
    stream: Option<Box<dyn Write + Send>>,
}

impl Ordered {
    fn take(&mut self, data: &[&[u8]]) -> Result<()> {
        for lane in data {
            self.hasher.update(lane);
            self.stream.as_mut().map_or(Ok(()), |s| s.write_all(lane)).map_err(cannot_write)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Digest> {
        self.stream.as_mut().map_or(Ok(()), |stream| stream.flush()).map_err(cannot_write)?;
        Ok(Digest::new(self.hasher.finalize().into()))
    }
}

fn cannot_write(error: io::Error) -> Error {
    Error::stream("writing the output", error)
}

fn work(
    crew: &Crew<Ordered>,
    sources: &Sources<'_>,
    next: &AtomicU64,
    file: Option<&Pending>,
    progress: Progress<'_>,
) -> Result<()> {
    let mut segment = Segment::new(sources.geometry)?;
    while !crew.is_stopped() {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= sources.extent.count() {
            break;
        }
        sources.load(&mut segment, number, Depth::Enough)?;
        segment.compute_data()?;
        let range = sources.extent.range(number);
        let data = segment.data((range.end - range.start) as usize);
        if let Some(file) = file {
            let mut slices: Vec<_> = data.iter().map(|lane| IoSlice::new(lane)).collect();
            file.write_at(&mut slices, range.start)?;
        }
        crew.in_turn(number, |ordered| ordered.take(&data))?;
        progress(range.end - range.start);
    }
    Ok(())
}

/// Refuses bytes that have another digest than the shards state.
pub(crate) fn check_digest(object: &Object, digest: Digest) -> Result<()> {
    match object.digest() {
        Some(stated) if stated != digest => Err(Error::digest(format!(
            "{}: all blocks that were read are intact, yet the object's digest is {digest}, and not \
             {stated} as its shards state",
            object.label()
        ))),
        _ => Ok(()),
    }
}

/// Refuses a target, without links, that is one of the files which hold the object.
fn expect_no_shard(target: &Path, object: &Object) -> Result<()> {
    let mut files = object.parts.iter().flatten();
    match files.any(|file| fs::canonicalize(file.path()).is_ok_and(|path| path == target)) {
        true => Err(Error::exists(format!(
            "{} holds a shard of {}; decode to another file",
            shown(target),
            object.label()
        ))),
        false => Ok(()),
    }
}

/// An open target.
enum Target {
    File(Pending, bool),
    Stream(Box<dyn Write + Send>),
}

impl Target {
    fn open(target: DecodeTarget, object: &Object) -> Result<Self> {
        let (path, force, sync, preserve) = match target {
            DecodeTarget::Writer(stream) => return Ok(Self::Stream(stream)),
            DecodeTarget::File { path, force, sync, preserve } => (path, force, sync, preserve),
        };
        let create = |target| {
            let replace = if force { Replace::Always } else { Replace::Never };
            let access = preserve.access(object);
            Ok(Self::File(Pending::create(NewFile { target, replace, access })?, sync))
        };
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                Err(Error::exists(format!("{} is a directory", shown(&path))))
            }
            Ok(found) if !found.is_file() => Self::open_stream(&path),
            Ok(_) if !force => {
                Err(Error::exists(format!("{} exists; --force replaces it", shown(&path))))
            }
            // What a link leads to is replaced, not the link.
            Ok(_) => {
                let path = fs::canonicalize(&path)
                    .map_err(|error| Error::io("resolving", &path, &error))?;
                expect_no_shard(&path, object)?;
                create(path)
            }
            Err(_) if path.file_name().is_none() => {
                Err(Error::parameters(format!("{} is not the name of a file", shown(&path))))
            }
            Err(_) => create(path),
        }
    }

    fn open_stream(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).open(path);
        file.map(|file| Self::Stream(Box::new(file)))
            .map_err(|error| Error::io("opening", path, &error))
    }
}
