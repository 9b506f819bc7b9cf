//! The sources of objects: files and pipes.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::Path;

use paritas_shards::{Attributes, Shown};

use crate::exit::Failure;
use crate::output::shown;

/// The source of an object.
pub struct Source {
    /// The bytes.
    pub stream: Box<dyn Read + Send>,
    /// Number of bytes that it will give, if that is known.
    pub length: Option<u64>,
    /// Mode, time and owner, if it is a file.
    pub attributes: Attributes,
}

/// Number of bytes of a pipe that are read before anything is written. A pipe that ends within them
/// has a known length, so it is encoded like a file of that length: with few threads and short
/// packets.
const PEEKED: u64 = 1 << 20;

impl Source {
    /// Opens a file, or standard input if `path` is `-`. A folder is refused with what `instead`
    /// advises about it.
    pub fn open(path: &Path, instead: impl Fn(Shown<'_>) -> String) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Ok(Self::pipe(io::stdin()));
        }
        let failed = |error| Failure::io(format!("reading {}", shown(path)), &error);
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            let path = shown(path);
            return Err(Failure::arguments(format!("{path} is a folder; {}", instead(path))));
        }
        if !metadata.is_file() {
            return Ok(Self::pipe(file));
        }
        let (length, attributes) = (Some(metadata.len()), Attributes::of(&metadata));
        let stream = Box::new(Unchanging { file, before: metadata, read: 0 });
        Ok(Self { stream, length, attributes })
    }

    fn pipe(stream: impl Read + Send + 'static) -> Self {
        Self { stream: Box::new(stream), length: None, attributes: Attributes::default() }
    }

    /// Finds out the length of a short pipe.
    pub fn peek(mut self) -> Result<Self, Failure> {
        if self.length.is_none() {
            let mut head = Vec::new();
            let read = self.stream.by_ref().take(PEEKED).read_to_end(&mut head);
            read.map_err(|error| Failure::io("reading the source", &error))?;
            self.length = Some(head.len() as u64).filter(|&length| length < PEEKED);
            self.stream = Box::new(Cursor::new(head).chain(self.stream));
        }
        Ok(self)
    }
}

/// A file that must not change while it is read. If it did, the shards would protect content that
/// the file never had. Its length and its time of change are compared when it ends, and when it
/// goes on beyond its length.
struct Unchanging {
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
            "the file changed while it was read ({what}), so nothing is left of it; take a copy or a \
             snapshot, or what `cat` reads of it, as in `cat FILE | paritas encode - --name NAME`"
        )))
    }
}
