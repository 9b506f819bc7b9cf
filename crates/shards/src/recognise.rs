//! Recognising a shard file by its content: front header, footer, and their places.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use paritas_store::object::format::{
    END_MAGIC, Identity, MAX_RECORD, PREFIX, Record, RecordFlaw, RecordKind, TRAILER, Total,
    footer_length, is_sealed, record_length, stated_length,
};
use paritas_store::object::geometry::Part;
use paritas_store::object::names;
use paritas_store::place::open_files::is_unreadable;
use paritas_store::place::positional::{read_at, read_exact_at};
use paritas_store::place::system::{is_bad_place, next_data, open_to_read};

/// Number of bytes of a file that are searched for a footer at a time.
const WINDOW: u64 = 1 << 20;

/// Number of bytes at the end of a file that are searched for a footer. It exceeds what tools
/// append, and is read in milliseconds.
const REACH: u64 = 16 << 20;

/// Largest number of places that are tried because they look like the end of a footer. It limits
/// the time that a hostile file can take.
const MAX_CANDIDATES: usize = 4096;

/// A file that holds a shard, or the remains of one.
#[derive(Debug, Clone)]
pub struct ShardFile {
    pub(crate) path: PathBuf,
    pub(crate) length: u64,
    /// The offset of the first block, or the flaw of the front header.
    pub(crate) front: Result<u64, RecordFlaw>,
    pub(crate) footer: Option<Footer>,
}

/// A footer and its place in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Footer {
    pub start: u64,
    pub end: u64,
    pub total: Total,
}

impl ShardFile {
    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether the front header is readable.
    pub fn has_front(&self) -> bool {
        self.front.is_ok()
    }

    /// Whether a footer was found.
    pub fn has_footer(&self) -> bool {
        self.footer.is_some()
    }

    /// Whether the front header is readable, and a footer was found.
    pub(crate) fn has_both_records(&self) -> bool {
        self.has_front() && self.has_footer()
    }
}

/// A shard file with what it states about its object.
#[derive(Debug)]
pub(crate) struct Recognised {
    pub file: ShardFile,
    pub identity: Identity,
    pub part: Part,
}

impl Recognised {
    fn new(file: ShardFile, record: Record) -> Self {
        let part = part_of(&record);
        Self { file, identity: record.identity, part }
    }
}

/// Returns the part that a record belongs to.
fn part_of(record: &Record) -> Part {
    Part { stage: record.stage(), shard: record.shard as usize }
}

/// The reason why a path contributes no shard.
#[derive(Debug)]
pub(crate) struct NoShard {
    /// The reason in the form "is not a shard".
    pub reason: String,
    /// Whether the path could not be opened. It may be a shard nevertheless.
    pub is_unreadable: bool,
    /// Whether it is a shard of a version that this reader does not know.
    pub is_unknown: bool,
    /// The system's number of its refusal, if it refused.
    pub number: Option<i32>,
}

impl NoShard {
    fn is(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_unreadable: false, is_unknown: false, number: None }
    }

    /// Returns the reason for the system's refusal to open a path.
    pub fn refused(error: &io::Error) -> Self {
        let reason = format!("cannot be read: {error}");
        let (is_unreadable, number) = (is_unreadable(error), error.raw_os_error());
        Self { reason, is_unreadable, is_unknown: false, number }
    }
}

/// Reads the headers of a file, or returns why it is not a shard.
pub(crate) fn recognise(path: &Path) -> Result<Recognised, NoShard> {
    let cannot = |error: io::Error| NoShard::refused(&error);
    if !fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(NoShard::is("is not a regular file"));
    }
    let file = open_to_read(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    // A sector that cannot be read is damage; a mount that does not answer says nothing.
    match read_at(&file, &mut [io::IoSliceMut::new(&mut [0])], 0) {
        Err(error) if !is_bad_place(&error) => return Err(cannot(error)),
        _ => {}
    }
    let (length, front) = (metadata.len(), read_front(&file));
    let record = front.as_ref().ok().map(|(record, _)| record);
    let footer = find_footer(&file, length, path, record);
    let path = path.to_owned();
    match (front, footer) {
        (Ok((record, blocks)), footer) => {
            let footer = footer.map(|(_, footer)| footer);
            let file = ShardFile { path, length, front: Ok(blocks), footer };
            Ok(Recognised::new(file, record))
        }
        (Err(flaw), Some((record, footer))) => {
            let file = ShardFile { path, length, front: Err(flaw), footer: Some(footer) };
            Ok(Recognised::new(file, record))
        }
        (Err(RecordFlaw::NoMagic), None) => Err(NoShard::is("is not a shard")),
        (Err(RecordFlaw::Version(version)), None) if has_whole_record(&file) => {
            let reason = format!("is a shard, and {}", RecordFlaw::Version(version));
            Err(NoShard { is_unknown: true, ..NoShard::is(reason) })
        }
        (Err(flaw), None) => Err(NoShard::is(format!(
            "is not readable as a shard: its front header {flaw}, and it has no footer"
        ))),
    }
}

fn unreadable(error: impl fmt::Display) -> RecordFlaw {
    RecordFlaw::Damaged(format!("cannot be read: {error}"))
}

/// Reads the front header, and returns it with the offset of its end.
fn read_front(file: &File) -> Result<(Record, u64), RecordFlaw> {
    let mut start = [0; PREFIX];
    let read = read_at(file, &mut [io::IoSliceMut::new(&mut start)], 0).map_err(unreadable)?;
    let length = record_length(&start[..read], RecordKind::Front)?;
    Ok((read_record(file, 0, length, RecordKind::Front)?, length as u64))
}

/// Whether a file begins with a record of any version whose checksum is right.
fn has_whole_record(file: &File) -> bool {
    let mut start = [0; PREFIX];
    let length = read_exact_at(file, &mut start, 0).ok().and_then(|()| stated_length(&start));
    let mut record = vec![0; length.unwrap_or(0)];
    read_exact_at(file, &mut record, 0).is_ok() && is_sealed(&record)
}

fn read_record(
    file: &File,
    offset: u64,
    length: usize,
    kind: RecordKind,
) -> Result<Record, RecordFlaw> {
    let mut bytes = vec![0; length];
    read_exact_at(file, &mut bytes, offset).map_err(unreadable)?;
    Record::parse(&bytes, kind)
}

/// Returns the last footer near the end of the file that agrees with the front header. If the front
/// header is missing and the footer is not at the end of the file, the footer must belong to the
/// object that the file is named after. Otherwise it could be part of the stored bytes of an object
/// that is itself a shard file.
fn find_footer(
    file: &File,
    length: u64,
    path: &Path,
    front: Option<&Record>,
) -> Option<(Record, Footer)> {
    let agrees = |(record, _): &(Record, Footer)| {
        front.is_none_or(|front| is_of(record, &front.identity, part_of(front)))
    };
    if let Some(found) = footer_ending_at(file, length).filter(agrees) {
        return Some(found);
    }
    let named = path.file_name().and_then(names::parse);
    if front.is_none() && named.is_none() {
        return None;
    }
    let ours = |found: &(Record, Footer)| match front {
        Some(_) => agrees(found),
        None => named.as_ref().is_some_and(|name| name.belongs_to(found.0.identity.name())),
    };
    search(file, length, REACH, ours)
}

/// Returns the last footer within `reach` bytes of the end of a file for which `is_right` holds.
fn search(
    file: &File,
    length: u64,
    reach: u64,
    is_right: impl Fn(&(Record, Footer)) -> bool,
) -> Option<(Record, Footer)> {
    candidates(file, length, reach)
        .take(MAX_CANDIDATES)
        .filter_map(|end| footer_ending_at(file, end))
        .find(is_right)
}

impl ShardFile {
    /// Returns the footer that ends at offset `end` of the file, if it is the footer of `part` of
    /// the object.
    pub(crate) fn footer_at(&self, identity: &Identity, part: Part, end: u64) -> Option<Footer> {
        let found = footer_ending_at(&open_to_read(&self.path).ok()?, end);
        found.filter(|(record, _)| is_of(record, identity, part)).map(|(_, footer)| footer)
    }

    /// Returns the last footer of a part of an object, wherever it is: the whole file is read.
    pub(crate) fn footer_anywhere(&self, identity: &Identity, part: Part) -> Option<Footer> {
        let file = open_to_read(&self.path).ok()?;
        let is_right = |(record, _): &(Record, Footer)| is_of(record, identity, part);
        search(&file, self.length, self.length, is_right).map(|(_, footer)| footer)
    }
}

fn is_of(record: &Record, identity: &Identity, part: Part) -> bool {
    record.identity == *identity && part_of(record) == part
}

fn footer_ending_at(file: &File, end: u64) -> Option<(Record, Footer)> {
    let trailer_start = end.checked_sub(TRAILER as u64)?;
    let mut trailer = [0; TRAILER];
    read_exact_at(file, &mut trailer, trailer_start).ok()?;
    let length = footer_length(&trailer)?;
    debug_assert!(length <= MAX_RECORD);
    let start = trailer_start.checked_sub(length as u64)?;
    let mut prefix = [0; PREFIX];
    read_exact_at(file, &mut prefix, start).ok()?;
    if record_length(&prefix, RecordKind::Footer) != Ok(length) {
        return None;
    }
    let record = read_record(file, start, length, RecordKind::Footer).ok()?;
    let total = record.total?;
    Some((record, Footer { start, end, total }))
}

/// Returns the offsets at which an end magic ends in the last `reach` bytes of the file, from the
/// last one backwards. Holes are not read: a file may state terabytes and have none of them.
fn candidates(file: &File, length: u64, reach: u64) -> impl Iterator<Item = u64> {
    let overlap = END_MAGIC.len() as u64 - 1;
    let first = length.saturating_sub(reach) / WINDOW;
    let windows = (first..length.div_ceil(WINDOW)).rev().map(move |window| {
        let start = window * WINDOW;
        (start, (start + WINDOW + overlap).min(length))
    });
    windows.flat_map(move |(start, end)| {
        if next_data(file, start).is_none_or(|data| data >= end) {
            return Vec::new();
        }
        let mut bytes = vec![0; (end - start) as usize];
        let readable = read_exact_at(file, &mut bytes, start).is_ok();
        let found = bytes.windows(END_MAGIC.len()).enumerate().rev();
        let ends: Vec<u64> = found
            .filter(|(_, bytes)| readable && *bytes == END_MAGIC)
            .map(|(at, _)| start + (at + END_MAGIC.len()) as u64)
            .collect();
        ends
    })
}
