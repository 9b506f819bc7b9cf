//! Decoding: from shard files to the object, as a file or into a pipe.

use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::object::Object;
use crate::place::expect_room;
use crate::recognise::ShardFile;
use crate::sources::{FileReport, Sources};
use paritas_store::error::{Error, Result};
use paritas_store::object::format::{Digest, ObjectId};
use paritas_store::place::attributes::{Access, PERMISSIONS, Timestamp};
use paritas_store::place::system::is_disk;
use paritas_store::progress::Progress;
use paritas_store::setters;
use paritas_store::shown::shown;
use paritas_store::staging::{Committed, NewFile, Replace, StagedFile, commit};

/// The destination of a decoded object.
#[non_exhaustive]
pub enum DecodeTarget {
    /// A file, which appears under its name once it is complete and has the right digest. Anything
    /// other than a regular file, such as `/dev/null`, is written to directly.
    File(FileTarget),
    /// A pipe or another stream. If the digest turns out wrong at the end, the bytes have been
    /// written already.
    Writer(Box<dyn Write + Send>),
}

impl From<FileTarget> for DecodeTarget {
    fn from(file: FileTarget) -> Self {
        Self::File(file)
    }
}

/// The file that an object is decoded into, with the settings of [`FileTarget::new`], changed by
/// setters of the same names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileTarget {
    /// The path.
    pub path: PathBuf,
    /// Whether an existing file is replaced.
    pub force: bool,
    /// Whether the file is synced to the disk before it gets its name. A disk that is written to
    /// directly is synced, too.
    pub sync: bool,
    /// The part of the stored mode and time that the file gets.
    pub preserve: Preserve,
}

impl FileTarget {
    /// Creates a target with the usual settings: an existing file stays, the new one is synced, and
    /// mode and time are restored.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), force: false, sync: true, preserve: Preserve::default() }
    }
}

setters! { FileTarget {
    /// Replaces an existing file, or refuses to.
    force: bool,
    /// Turns syncing on or off.
    sync: bool,
    /// Restores as much of the stored mode and time as `preserve` says.
    preserve: Preserve,
} }

/// The part of the source's mode and time that a decoded file gets, if these are stored. If it gets
/// a mode, only its owner can open it until it is complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preserve {
    /// Neither: the file is like any new file.
    Nothing,
    /// The permissions and the time.
    #[default]
    Usual,
    /// The permissions, the time, and the set-user-ID, set-group-ID and sticky bits.
    Special,
}

impl Preserve {
    fn access(self, mode: Option<u32>, modified: Option<Timestamp>) -> Access {
        match self {
            Self::Nothing => Access::USUAL,
            Self::Usual => Access::of_decoded(mode.map(|mode| mode & PERMISSIONS), modified),
            Self::Special => Access::of_decoded(mode, modified),
        }
    }
}

impl std::fmt::Debug for DecodeTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => write!(f, "File({})", shown(&file.path)),
            Self::Writer(_) => f.write_str("Writer"),
        }
    }
}

/// The result of decoding.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DecodeReport {
    /// The object's id.
    pub object: ObjectId,
    /// Its length in bytes.
    pub length: u64,
    /// Its digest, which the decoded bytes have.
    pub digest: Digest,
    /// The indices of shards without a file.
    pub missing: Vec<usize>,
    /// The files in which damage was found. Parts that were not needed have not been read.
    pub damaged: Vec<FileReport>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Decodes an object with at most `threads` threads (`None`: the number that the machine runs at
/// once). `progress` is told the number of the object's bytes that are done.
///
/// # Errors
/// If more is lost than can be recovered ([`crate::ErrorKind::TooFewShards`]), if the decoded bytes
/// differ from the encoded ones ([`crate::ErrorKind::DigestMismatch`]), if the target exists and
/// must not be replaced ([`crate::ErrorKind::Exists`]), or if reading or writing fails
/// ([`crate::ErrorKind::Io`]). The last kind is also used if the missing bytes may be in files that
/// could not be opened.
pub fn decode(
    object: &Object,
    target: impl Into<DecodeTarget>,
    threads: Option<NonZeroUsize>,
    progress: Progress<'_>,
) -> Result<DecodeReport> {
    let sources = Sources::open(object, 1)?;
    let (file, stream, sync) = match target.into() {
        DecodeTarget::Writer(stream) => (None, Some(stream), false),
        DecodeTarget::File(file) => match open(file, object)? {
            OpenedOutput::New(file, sync) => (Some(file), None, sync),
            OpenedOutput::Device(device) => (None, Some(Box::new(device) as _), false),
        },
    };
    let ordered = Ordered { hasher: blake3::Hasher::new(), stream };
    let ordered = sources.each_segment(threads, ordered, |crew, segment, number| {
        sources.load(segment, number)?;
        segment.make_data()?;
        let range = sources.extent.range(number);
        let data = segment.data((range.end - range.start) as usize);
        if let Some(file) = &file {
            let mut slices: Vec<_> = data.iter().map(|lane| IoSlice::new(lane)).collect();
            file.write_at(&mut slices, range.start)?;
        }
        crew.in_turn(number, |ordered| ordered.take(&data))?;
        progress(range.end - range.start);
        Ok(())
    })?;
    let digest = ordered.finish()?;
    check_digest(object, digest)?;
    let committed = file.map_or(Ok(Committed::default()), |file| commit(vec![file], sync))?;
    Ok(DecodeReport {
        object: object.id(),
        length: object.length().unwrap_or(0),
        digest,
        missing: object.missing(),
        damaged: sources.damaged(),
        warnings: committed.refusals(),
    })
}

/// The work that follows the order of the object: hashing, and writing to a stream.
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

/// Refuses a digest that differs from the one that the shards state.
pub(crate) fn check_digest(object: &Object, digest: Digest) -> Result<()> {
    match object.digest() {
        Some(stated) if stated != digest => Err(Error::digest(format!(
            "{}: all blocks that were read are intact, but the object's digest must be {stated}, as \
             its shards state; got {digest}",
            object.label()
        ))),
        _ => Ok(()),
    }
}

/// Refuses a target that is one of the object's own shard files. Links in `target` are resolved
/// already.
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

/// Opens a file for an object.
fn open(file: FileTarget, object: &Object) -> Result<OpenedOutput> {
    let access = file.preserve.access(object.mode(), object.modified());
    if !fs::metadata(&file.path).is_ok_and(|found| !found.is_file()) {
        expect_room(needed(object).map(|bytes| (file.path.as_path(), bytes)))?;
    }
    OpenedOutput::open(file, access, |path| expect_no_shard(path, object))
}

/// Returns the number of bytes that an object may need. The stated length may be forged or damaged,
/// so the number is limited to the bytes of all shards: more could not be decoded from them.
fn needed(object: &Object) -> Option<u64> {
    let shards = object.parts().iter().flatten().map(ShardFile::length);
    let stored = shards.fold(0, u64::saturating_add);
    object.length().map(|length| length.min(stored))
}

/// An open target that was given by its path: a new file, with whether it is synced, or a device or
/// pipe.
enum OpenedOutput {
    New(StagedFile, bool),
    Device(Device),
}

/// A device or pipe that is written to directly.
struct Device {
    file: fs::File,
    /// Whether flushing waits until everything is on the device. Otherwise the disk may fail to
    /// write after the command has ended, and nobody is told.
    sync: bool,
}

impl Write for Device {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.sync { self.file.sync_all() } else { Ok(()) }
    }
}

impl OpenedOutput {
    /// Opens a file. `check` may refuse an existing one that would be replaced.
    fn open(
        target: FileTarget,
        access: Access,
        check: impl Fn(&Path) -> Result<()>,
    ) -> Result<Self> {
        let FileTarget { path, force, sync, .. } = target;
        let create = |target| {
            let replace = if force { Replace::Always } else { Replace::Never };
            Ok(Self::New(StagedFile::create(NewFile { target, replace, access })?, sync))
        };
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => {
                Err(Error::exists(format!("{} is a directory", shown(&path))))
            }
            Ok(found) if !found.is_file() => Self::open_device(&path, sync && is_disk(&found)),
            Ok(_) if !force => {
                Err(Error::exists(format!("{} exists; `force` replaces it", shown(&path)))
                    .naming(&["force"]))
            }
            // The target of a link is replaced, not the link.
            Ok(_) => {
                let path = fs::canonicalize(&path)
                    .map_err(|error| Error::io("resolving", &path, &error))?;
                check(&path)?;
                create(path)
            }
            Err(_) if path.file_name().is_none() => {
                Err(Error::parameters(format!("{} must be the name of a file", shown(&path))))
            }
            // Without `force`, a broken link could not be replaced at the end.
            Err(error) if !force && fs::symlink_metadata(&path).is_ok() => {
                Err(Error::exists(format!(
                    "{} is a link that cannot be followed ({error}); `force` replaces it",
                    shown(&path)
                ))
                .naming(&["force"]))
            }
            Err(_) => create(path),
        }
    }

    fn open_device(path: &Path, sync: bool) -> Result<Self> {
        let file = OpenOptions::new().write(true).open(path);
        file.map(|file| Self::Device(Device { file, sync }))
            .map_err(|error| Error::io("opening", path, &error))
    }
}

/// A file that gets its name once it is complete, or a device or pipe that is written to directly.
pub struct Output {
    target: OpenedOutput,
    written: u64,
}

impl Output {
    /// Opens a file, which gets as much of `mode` and `modified` as its settings say.
    ///
    /// # Errors
    /// If the file exists and must not be replaced ([`crate::ErrorKind::Exists`]), or if it cannot
    /// be written ([`crate::ErrorKind::Io`]).
    pub fn create(
        file: FileTarget,
        mode: Option<u32>,
        modified: Option<Timestamp>,
    ) -> Result<Self> {
        let access = file.preserve.access(mode, modified);
        Ok(Self { target: OpenedOutput::open(file, access, |_| Ok(()))?, written: 0 })
    }

    /// Refuses the file if its disk has no room for `length` bytes.
    ///
    /// # Errors
    /// If there is less room ([`crate::ErrorKind::Io`]).
    pub fn expect_room(&self, length: u64) -> Result<()> {
        match &self.target {
            OpenedOutput::New(file, _) => expect_room([(file.target(), length)]),
            OpenedOutput::Device(_) => Ok(()),
        }
    }

    /// Whether [`Output::write_at`] can be used: devices and pipes are written in order.
    pub fn takes_positions(&self) -> bool {
        matches!(self.target, OpenedOutput::New(..))
    }

    /// Writes pieces one after the other from the position `start` on. Several threads may do so at
    /// the same time. A position that is never written holds zeros.
    ///
    /// # Errors
    /// If writing fails, or if this is a device or a pipe ([`crate::ErrorKind::Io`]).
    pub fn write_at(&self, pieces: &[impl AsRef<[u8]>], start: u64) -> Result<()> {
        let mut slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece.as_ref())).collect();
        match &self.target {
            OpenedOutput::New(file, _) => file.write_at(&mut slices, start),
            OpenedOutput::Device(_) => Err(cannot_write(io::ErrorKind::NotSeekable.into())),
        }
    }

    /// Gives the file its name. If this is not called, the file is removed. Returns warnings of
    /// what its file system refuses to keep.
    ///
    /// # Errors
    /// If the name was taken meanwhile ([`crate::ErrorKind::Busy`]), or if writing fails
    /// ([`crate::ErrorKind::Io`]).
    pub fn commit(self) -> Result<Vec<String>> {
        match self.target {
            OpenedOutput::New(file, sync) => Ok(commit(vec![file], sync)?.refusals()),
            OpenedOutput::Device(mut device) => {
                device.flush().map_err(cannot_write)?;
                Ok(Vec::new())
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            OpenedOutput::New(..) => {
                self.write_at(&[bytes], self.written).map_err(io::Error::other)?;
            }
            OpenedOutput::Device(device) => device.write_all(bytes)?,
        }
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            OpenedOutput::New(..) => Ok(()),
            OpenedOutput::Device(device) => device.flush(),
        }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("written", &self.written).finish_non_exhaustive()
    }
}
