//! The sources of objects: files, devices and pipes.

use std::io::{self, Cursor, Read};
use std::path::Path;

use paritas_shards::{Attributes, FileSource, Shown};
#[cfg(unix)]
use rustix::fs::OFlags;

use crate::exit::Failure;
use crate::output::{shell_path, shown};

/// Number of bytes of a source that are read before anything is written. A pipe that ends within
/// them has a known length, so it is encoded like a file of that length: with few threads and short
/// packets. Files are read, too, if the system states a smaller length: in /proc and /sys it is
/// wrong.
const PEEKED: u64 = 1 << 20;

/// Opens a file or device, or standard input if `path` is `-`. Refuses a folder with the advice
/// that `instead` returns. `piped` is the command that stores a pipe instead of the file; the
/// message names it if the file changes while it is read.
pub fn open(
    path: &Path,
    instead: impl Fn(Shown<'_>) -> String,
    piped: &str,
) -> Result<FileSource, Failure> {
    if path.as_os_str() == "-" {
        expect_open_input()?;
        return Ok(FileSource::pipe(io::stdin(), Attributes::default()));
    }
    let advice = format!(", or what `cat` reads of it, as in `cat {} | {piped}`", shell_path(path));
    FileSource::open(path, advice).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => {
            let path = shown(path);
            Failure::arguments(format!("{path} is a folder; {}", instead(path)))
        }
        _ => Failure::io(format!("reading {}", shown(path)), &error),
    })
}

/// Reads the first bytes, which tells the length of a short source.
pub fn peek(mut source: FileSource) -> Result<FileSource, Failure> {
    if source.length.is_none_or(|length| length < PEEKED) {
        let mut head = Vec::new();
        let read = source.stream.by_ref().take(PEEKED).read_to_end(&mut head);
        read.map_err(|error| Failure::io("reading the source", &error))?;
        source.length = Some(head.len() as u64).filter(|&length| length < PEEKED);
        source.stream = Box::new(Cursor::new(head).chain(source.stream));
    }
    Ok(source)
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_changes_is_refused_with_the_command_for_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one").unwrap();
        let piped = "paritas volume put tank.toml - logs/log";
        let mut source = open(&path, |_| String::new(), piped).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"two").unwrap();
        let error = source.stream.read_to_end(&mut Vec::new()).unwrap_err().to_string();
        let shown = path.display();
        assert!(error.starts_with(&format!("{shown} changed while it was read")), "{error}");
        let command = format!("`cat {shown} | paritas volume put tank.toml - logs/log`");
        assert!(error.ends_with(&command), "{error}");
    }
}
