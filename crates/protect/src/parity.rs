//! Parity files on disk: recognising, checking, reading and writing them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::place::positional::read_exact_at;
use paritas_store::place::system::open_file;
use paritas_store::progress::Progress;
use paritas_store::staging::StagedFile;

use crate::format::{CHECK, Header, RECORD, RecordPlace};
use crate::pieces;
use crate::tree::map_in_threads;
use crate::trouble::Trouble;

/// Number of bytes that are read at once.
const STEP: usize = 1 << 20;

/// A parity file that was recognised.
#[derive(Debug, Clone)]
pub(crate) struct ParityFile {
    pub path: PathBuf,
    pub header: Header,
    pub length: u64,
    /// Whether header, trailer and length are right.
    pub has_ends: bool,
}

/// The intact blocks of a parity file, and the number of damaged pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checked {
    /// The positions of intact parity blocks, by number.
    pub rows: BTreeMap<u64, u64>,
    /// The numbers of damaged catalogue pieces.
    pub damaged_pieces: u64,
}

impl ParityFile {
    /// Looks at a file. Returns `None` if it is not a parity file, or cannot be read.
    pub fn recognise(path: &Path) -> Option<Self> {
        let file = open_file(path).ok()?;
        let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        let record = |offset, kind| {
            let mut bytes = [0; RECORD];
            read_exact_at(&file, &mut bytes, offset).ok()?;
            Header::from_bytes(&bytes, kind)
        };
        let front = record(0, RecordPlace::Header);
        let back =
            length.checked_sub(RECORD as u64).and_then(|at| record(at, RecordPlace::Trailer));
        let agree = front.is_some() && front == back;
        let header = front.or(back)?;
        let has_ends = agree && header.file_length(header.index) == length;
        Some(Self { path: path.to_owned(), header, length, has_ends })
    }

    /// Returns the positions at which to look for something that belongs at `offset`: that position
    /// and, if the file is too long or too short, the one at the same distance from its end.
    fn places(&self, offset: u64) -> impl Iterator<Item = u64> + use<> {
        let expected = self.header.file_length(self.header.index);
        let shifted = (offset + self.length).checked_sub(expected);
        let other = shifted.filter(|&place| place != offset);
        [Some(offset), other].into_iter().flatten()
    }

    /// Whether any parity block or catalogue piece is intact.
    fn has_any_block(&self) -> Result<bool> {
        let file = self.open()?;
        let header = &self.header;
        let mut memory = Vec::new();
        let rows = header
            .rows(header.index)
            .map(|row| (header.row_offset(row), header.geometry.block, header.row_checksum(row)));
        let pieces = header.pieces(header.index).map(|number| {
            let crc = header.piece_checksum(number);
            (header.piece_offset(number), header.catalogue.piece, crc)
        });
        let mut blocks = rows.chain(pieces);
        Ok(blocks.any(|(at, bytes, crc)| {
            let mut places = self.places(at).filter(|place| place + bytes <= self.length);
            places.any(|place| is_intact(&file, place, bytes, crc, &mut memory).unwrap_or(false))
        }))
    }

    /// Checks every parity block and catalogue piece.
    ///
    /// # Errors
    /// If the system refuses to open or to read the file, which may be intact.
    pub fn check(&self, progress: Progress<'_>) -> Result<Checked> {
        let file = self.open()?;
        let mut checked = Checked::default();
        let header = &self.header;
        let (mut memory, mut refused) = (Vec::new(), None);
        let mut intact = |place: u64, bytes: u64, crc: crc_fast::Digest| {
            is_intact(&file, place, bytes, crc, &mut memory).unwrap_or_else(|error| {
                let may_be_intact = matches!(Trouble::of(&error), Trouble::Refused(_));
                refused = refused.take().or(may_be_intact.then_some(error));
                false
            })
        };
        for row in header.rows(header.index) {
            let (bytes, at) = (header.geometry.block, header.row_offset(row));
            let is_there = |place: &u64| intact(*place, bytes, header.row_checksum(row));
            checked.rows.extend(self.places(at).find(is_there).map(|place| (row, place)));
            progress(bytes);
        }
        for number in header.pieces(header.index) {
            let (bytes, at) = (header.catalogue.piece, header.piece_offset(number));
            let is_there = |place: &u64| intact(*place, bytes, header.piece_checksum(number));
            checked.damaged_pieces += u64::from(self.places(at).find(is_there).is_none());
        }
        match refused {
            Some(error) => Err(Error::io("reading", &self.path, &error)),
            None => Ok(checked),
        }
    }

    /// Returns intact catalogue pieces by number, at most `most` of them.
    fn pieces(&self, most: usize) -> Result<Vec<(u64, Vec<u8>)>> {
        let file = self.open()?;
        let header = &self.header;
        let mut memory = Vec::new();
        let piece = |number: u64| {
            let at = header.piece_offset(number);
            // A piece that is longer than the file is not there.
            let bytes = Some(header.catalogue.piece).filter(|&bytes| bytes <= self.length)?;
            // Memory is taken only for what is intact, because a header may state any size.
            let intact = |place: &u64| {
                let read =
                    is_intact(&file, *place, bytes, header.piece_checksum(number), &mut memory);
                read.unwrap_or(false)
            };
            let place = self.places(at).find(intact)?;
            let mut piece = vec![0; bytes as usize];
            read_exact_at(&file, &mut piece, place).is_ok().then_some((number, piece))
        };
        Ok(header.pieces(header.index).filter_map(piece).take(most).collect())
    }

    fn open(&self) -> Result<File> {
        open_file(&self.path).map_err(|error| Error::io("opening", &self.path, &error))
    }
}

/// Whether an unrecognised file of `length` bytes is a remnant of the parity file that `header`
/// describes: it has an intact block or catalogue piece of that file, or has the same length and
/// only zeros. One intact block proves it, because checksums begin with the id of the layer.
pub(crate) fn is_remnant(path: &Path, length: u64, header: &Header) -> bool {
    let (path, header) = (path.to_owned(), header.clone());
    let file = ParityFile { path, header, length, has_ends: false };
    let has_length = length == file.header.file_length(file.header.index);
    file.has_any_block().unwrap_or(false) || has_length && is_zeros(&file.path, length)
}

/// Whether the `length` bytes of a file are zeros.
fn is_zeros(path: &Path, length: u64) -> bool {
    let Ok(file) = open_file(path) else { return false };
    let mut memory = vec![0; STEP.min(length as usize)];
    (0..length).step_by(STEP).all(|at| {
        let bytes = &mut memory[..(length - at).min(STEP as u64) as usize];
        read_exact_at(&file, bytes, at).is_ok() && bytes.iter().all(|&byte| byte == 0)
    })
}

/// Returns why the system does not let this process read a file that may be intact.
pub(crate) fn refusal(path: &Path) -> Option<io::Error> {
    open_file(path).err().filter(|error| matches!(Trouble::of(error), Trouble::Refused(_)))
}

/// Whether the `bytes` bytes at a place have the checksum that follows them, and the file does not
/// end before it. `crc` is the begun checksum.
///
/// # Errors
/// If the system cannot read them.
fn is_intact(
    file: &File,
    place: u64,
    bytes: u64,
    mut crc: crc_fast::Digest,
    memory: &mut Vec<u8>,
) -> io::Result<bool> {
    memory.resize(STEP.min((bytes + CHECK) as usize), 0);
    let is_read = |bytes: &mut [u8], place: u64| match read_exact_at(file, bytes, place) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    };
    let mut at = 0;
    while at < bytes {
        let count = (bytes - at).min(memory.len() as u64) as usize;
        // The checksum is read with the last bytes, if there is room.
        let with_check = (count + CHECK as usize).min(memory.len());
        let is_last = at + count as u64 == bytes && with_check > count;
        let read = if is_last { with_check } else { count };
        if !is_read(&mut memory[..read], place + at)? {
            return Ok(false);
        }
        crc.update(&memory[..count]);
        at += count as u64;
        if is_last {
            return Ok(memory[count..read] == crc.finalize().to_le_bytes());
        }
    }
    let mut check = [0; CHECK as usize];
    Ok(is_read(&mut check, place + bytes)? && check == crc.finalize().to_le_bytes())
}

/// Reads the columns of a parity block at its place into memory.
pub(crate) fn read_row(path: &Path, place: u64, bytes: &mut [u8]) -> Result<()> {
    let file = open_file(path).map_err(|error| Error::io("opening", path, &error))?;
    read_exact_at(&file, bytes, place).map_err(|error| Error::io("reading", path, &error))
}

/// Checks files in several threads.
pub(crate) fn check_all(
    files: &[&ParityFile],
    threads: usize,
    progress: Progress<'_>,
) -> Vec<Result<Checked>> {
    map_in_threads(threads.min(files.len()), files.iter(), |file| file.check(progress))
}

/// Returns the catalogue of a layer from its files, if they have enough of it.
pub(crate) fn read_catalogue(files: &[&ParityFile]) -> Result<Option<Vec<u8>>> {
    let Some(first) = files.first() else { return Ok(None) };
    let header = &first.header;
    let count = header.catalogue.each as usize * usize::from(header.count);
    let mut pieces = vec![None; count];
    // As many as give the catalogue: a header may state far more.
    let mut wanted = header.catalogue.data as usize;
    for file in files {
        let found = file.pieces(wanted).unwrap_or_default();
        wanted -= found.len();
        found.into_iter().for_each(|(number, piece)| pieces[number as usize] = Some(piece));
    }
    pieces::join(pieces, header)
}

/// Writes headers, catalogue pieces and trailers of those parity files that `file` returns.
pub(crate) fn write_catalogue<'f>(
    header: &Header,
    catalogue: &[u8],
    file: impl Fn(u16) -> Option<&'f StagedFile>,
) -> Result<()> {
    for (number, piece) in (0..).zip(pieces::cut(catalogue, header)?) {
        let Some(file) = file(header.file_of(number)) else { continue };
        let mut crc = header.piece_checksum(number);
        crc.update(&piece);
        let check = crc.finalize().to_le_bytes();
        let at = header.piece_offset(number);
        file.write_at(&mut [IoSlice::new(&piece), IoSlice::new(&check)], at)?;
    }
    for index in 0..header.count {
        let Some(file) = file(index) else { continue };
        let header = Header { index, ..header.clone() };
        file.write_at(&mut [IoSlice::new(&header.to_bytes(RecordPlace::Header))], 0)?;
        let trailer = header.to_bytes(RecordPlace::Trailer);
        file.write_at(&mut [IoSlice::new(&trailer)], header.trailer_offset(index))?;
    }
    Ok(())
}

/// Writes some columns of a parity block and, after the last column, the block's checksum.
pub(crate) fn write_row(
    header: &Header,
    row: u64,
    columns: &Range<u64>,
    bytes: &[u8],
    check: &mut crc_fast::Digest,
    file: &StagedFile,
) -> Result<()> {
    check.update(bytes);
    let sum = check.finalize().to_le_bytes();
    let is_last = columns.end == header.geometry.block;
    let tail: &[u8] = if is_last { &sum } else { &[] };
    let at = header.row_offset(row) + columns.start;
    file.write_at(&mut [IoSlice::new(bytes), IoSlice::new(tail)], at)
}
