//! The sources of objects: files, devices and pipes.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use paritas_shards::{Attributes, Shown};
#[cfg(unix)]
use rustix::fs::OFlags;

use crate::commands::leftovers::quoted;
use crate::exit::Failure;
use crate::output::shown;

/// The source of an object.
pub struct Source {
    /// The bytes.
    pub stream: Box<dyn Read + Send>,
    /// Number of bytes of the stream, if that is known.
    pub length: Option<u64>,
    /// Mode, time and owner, if it is a file. A device has no time: that of its file does not tell
    /// when its content changed.
    pub attributes: Attributes,
}

/// Number of bytes of a source that are read before anything is written. A pipe that ends within
/// them has a known length, so it is encoded like a file of that length: with few threads and short
/// packets. Files are read, too, if the system states a smaller length: in /proc and /sys it is
/// wrong.
const PEEKED: u64 = 1 << 20;

impl Source {
    /// Opens a file or device, or standard input if `path` is `-`. Refuses a folder with the advice
    /// that `instead` returns. `piped` is the command that stores a pipe instead of the file; the
    /// message names it if the file changes while it is read.
    pub fn open(
        path: &Path,
        instead: impl Fn(Shown<'_>) -> String,
        piped: String,
    ) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            expect_open_input()?;
            return Ok(Self::pipe(io::stdin(), Attributes::default()));
        }
        let failed = |error| Failure::io(format!("reading {}", shown(path)), &error);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            let path = shown(path);
            return Err(Failure::arguments(format!("{path} is a folder; {}", instead(path))));
        }
        if !metadata.is_file() {
            let attributes = match is_device(&metadata) {
                true => Attributes { modified: None, ..Attributes::of(&metadata) },
                false => Attributes::default(),
            };
            return Ok(Self::pipe(file, attributes));
        }
        let attributes = Attributes::of_open(&file).map_err(failed)?;
        let length = Some(metadata.len());
        let stream =
            Box::new(Unchanging { path: path.to_owned(), piped, file, before: metadata, read: 0 });
        Ok(Self { stream, length, attributes })
    }

    fn pipe(stream: impl Read + Send + 'static, attributes: Attributes) -> Self {
        Self { stream: Box::new(stream), length: None, attributes }
    }

    /// Reads the first bytes, which tells the length of a short source.
    pub fn peek(mut self) -> Result<Self, Failure> {
        if self.length.is_none_or(|length| length < PEEKED) {
            let mut head = Vec::new();
            let read = self.stream.by_ref().take(PEEKED).read_to_end(&mut head);
            read.map_err(|error| Failure::io("reading the source", &error))?;
            self.length = Some(head.len() as u64).filter(|&length| length < PEEKED);
            self.stream = Box::new(Cursor::new(head).chain(self.stream));
        }
        Ok(self)
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

/// Refuses standard input that was closed when the process began (`<&-`), or is open for writing
/// alone: it would be stored as an object without bytes.
#[cfg(unix)]
fn expect_open_input() -> Result<(), Failure> {
    if crate::output::was_closed(&io::stdin()) {
        let closed = io::Error::other(
            "it is closed, or is /dev/null opened for writing as well; for an object without bytes, \
             give an empty file",
        );
        return Err(Failure::io("reading standard input", &closed));
    }
    if crate::output::is_opened_for(&io::stdin(), OFlags::WRONLY) {
        let written = io::Error::other("it is open for writing alone");
        return Err(Failure::io("reading standard input", &written));
    }
    Ok(())
}

#[cfg(not(unix))]
fn expect_open_input() -> Result<(), Failure> {
    Ok(())
}

/// A file that must not change while it is read. If it did, the shards would protect content that
/// the file never had. Its length and its modification time are compared at its end, and when it
/// has more bytes than its length.
struct Unchanging {
    path: PathBuf,
    /// The command that stores a pipe.
    piped: String,
    file: File,
    before: Metadata,
    /// Number of bytes read so far.
    read: u64,
}

impl Read for Unchanging {
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

impl Unchanging {
    fn expect_unchanged(&self) -> io::Result<()> {
        let now = self.file.metadata()?;
        let what = match (self.before.len(), now.len()) {
            (before, now) if before != now => format!("from {before} to {now} bytes"),
            _ if self.before.modified().ok() != now.modified().ok() => "in place".to_owned(),
            _ => return Ok(()),
        };
        Err(io::Error::other(format!(
            "{} changed while it was read ({what}), so nothing was written; take a copy or a \
             snapshot, or what `cat` reads of it, as in `cat {} | {}`",
            shown(&self.path),
            quoted(&self.path),
            self.piped
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_changes_is_refused_with_the_command_for_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one").unwrap();
        let piped = "paritas volume put tank.toml - logs/log".to_owned();
        let mut source = Source::open(&path, |_| String::new(), piped).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"two").unwrap();
        let error = source.stream.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        let shown = path.display();
        assert!(error.starts_with(&format!("{shown} changed while it was read")), "{error}");
        let command = format!("`cat {shown} | paritas volume put tank.toml - logs/log`");
        assert!(error.ends_with(&command), "{error}");
    }
}
