//! Files whose content is stored as an object.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::place::attributes::Attributes;
use crate::shown::shown;

/// The content of a file, a device or a pipe, and what is known of it.
pub struct FileSource {
    /// The bytes.
    pub stream: Box<dyn Read + Send>,
    /// Number of bytes of the stream, if that is known.
    pub length: Option<u64>,
    /// Mode, time and owner, if it is a file. A device has no time: that of its file does not tell
    /// when its content changed.
    pub attributes: Attributes,
}

impl FileSource {
    /// Opens a file, a device or a pipe. If a file changes while it is read, reading fails with a
    /// message that ends with `advice`.
    ///
    /// # Errors
    /// If it cannot be opened, or is a folder ([`io::ErrorKind::IsADirectory`]).
    pub fn open(path: &Path, advice: String) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            let attributes = match is_device(&metadata) {
                true => Attributes { modified: None, ..Attributes::of_open(&file)? },
                false => Attributes::default(),
            };
            return Ok(Self::pipe(file, attributes));
        }
        let attributes = Attributes::of_open(&file)?;
        let file = SteadyFile::new(file, path, advice)?;
        Ok(Self { length: Some(file.length()), stream: Box::new(file), attributes })
    }

    /// Returns a source of bytes whose number is not known.
    pub fn pipe(stream: impl Read + Send + 'static, attributes: Attributes) -> Self {
        Self { stream: Box::new(stream), length: None, attributes }
    }
}

/// Whether a file is a disk, a tape, a terminal or the like: its permissions say who may read its
/// content. The permissions of a pipe without a name say nothing.
#[cfg(unix)]
fn is_device(file: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    file.file_type().is_block_device() || file.file_type().is_char_device()
}

#[cfg(not(unix))]
fn is_device(_file: &Metadata) -> bool {
    false
}

/// A file that must not change while it is read. If it did, what is stored would protect content
/// that the file never had. Reading it to its end compares its length and its modification time
/// with those at the beginning.
#[derive(Debug)]
pub struct SteadyFile {
    path: PathBuf,
    advice: String,
    file: File,
    before: Metadata,
    /// Number of bytes read so far.
    read: u64,
}

impl SteadyFile {
    /// Begins with an open file. The message about a change names `path` and ends with `advice`.
    ///
    /// # Errors
    /// If the system does not tell the length of the file.
    pub fn new(file: File, path: &Path, advice: String) -> io::Result<Self> {
        let before = file.metadata()?;
        Ok(Self { path: path.to_owned(), advice, file, before, read: 0 })
    }

    /// Returns the length of the file at the beginning, in bytes.
    pub fn length(&self) -> u64 {
        self.before.len()
    }

    /// Returns a reader of `length` bytes from `start` on. All readers share one position, so only
    /// one may be used at a time. They do not look whether the file has changed.
    ///
    /// # Errors
    /// If the file cannot be positioned.
    pub fn part(&self, start: u64, length: u64) -> io::Result<impl Read + Send + use<>> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file.take(length))
    }

    /// Looks whether the file has changed since the beginning.
    ///
    /// # Errors
    /// If it has, or if the system does not tell.
    pub fn expect_unchanged(&self) -> io::Result<()> {
        let now = self.file.metadata()?;
        let what = match (self.before.len(), now.len()) {
            (before, now) if before != now => format!("from {before} to {now} bytes"),
            _ if self.before.modified().ok() != now.modified().ok() => "in place".to_owned(),
            _ => return Ok(()),
        };
        Err(io::Error::other(format!(
            "{} changed while it was read ({what}), so nothing was written; take a copy or a \
             snapshot{}",
            shown(&self.path),
            self.advice
        )))
    }
}

impl Read for SteadyFile {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(target)?;
        self.read += read as u64;
        let at_end = read == 0 && !target.is_empty();
        if at_end || self.read > self.before.len() {
            self.expect_unchanged()?;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_changes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one").unwrap();
        let mut source = FileSource::open(&path, ", or wait".to_owned()).unwrap();
        assert_eq!((source.length, source.attributes.modified.is_some()), (Some(3), true));
        File::options().append(true).open(&path).unwrap().write_all(b"two").unwrap();
        let error = source.stream.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        let begin = format!("{} changed while it was read (from 3 to 6 bytes)", path.display());
        assert!(error.starts_with(&begin) && error.ends_with("snapshot, or wait"), "{error}");
        let refused = FileSource::open(folder.path(), String::new()).err().unwrap();
        assert!(matches!(
            refused.kind(),
            io::ErrorKind::IsADirectory | io::ErrorKind::PermissionDenied
        ));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_has_no_length_and_no_time() {
        let mut source = FileSource::open(Path::new("/dev/null"), String::new()).unwrap();
        assert_eq!((source.length, source.attributes.modified), (None, None));
        assert_eq!(source.stream.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
