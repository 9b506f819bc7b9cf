//! Restoring the bytes of one layer: copying its good blocks, computing the lost ones, and writing
//! its parity anew.
//!
//! The files and the parity were verified a moment ago, and are read once more here. They may have
//! changed in between. So every block that is read or computed is compared with its checksum before
//! anything that depends on it is used.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::IoSlice;
use std::ops::Range;
use std::path::Path;

use paritas::Pages;
use paritas::long::{LongCode, LongRecovery};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Access;
use paritas_store::place::positional::write_at;
use paritas_store::shown::shown;
use paritas_store::staging::{NewFile, Replace, StagedFile};

use super::{Files, Parity, RepairReport, RepairRun, expect_survivable};
use crate::access::{Guard, parity_access};
use crate::coding::{Batches, passes};
use crate::evidence::{LayerEvidence, RowPlace};
use crate::find::{EntryKind, Layer, Protection};
use crate::format::{CHECK, Header};
use crate::parity::{read_row, write_catalogue, write_row};
use crate::restore::Restoring;
use crate::sparse;
use crate::stream::{RunningSums, StreamReading};
use crate::tree::threads;

/// Number of bytes that are copied at once.
const STEP: u64 = 1 << 20;

impl<'a> RepairRun<'a> {
    /// Writes the lost bytes of a layer to the files that are being restored, and returns its new
    /// parity files.
    pub(super) fn restore_layer(
        &self,
        number: usize,
        files: &mut Files<'a>,
        report: &mut RepairReport,
    ) -> Result<Parity> {
        self.copy_known(number, files, report)?;
        let mut parity = match self.begin_parity(number) {
            Ok(parity) => parity,
            Err(error) => {
                self.note_parity(number, error, report)?;
                Parity::new()
            }
        };
        let done = self.compute_with(number, files, &mut parity, report);
        let Err(error) = done else { return Ok(parity) };
        let needs = |entry: &usize| self.evidence.needs_parity(self.protection, number, &[*entry]);
        files.retain(|entry, restoring| {
            let is_failed = needs(entry);
            if is_failed {
                let place = self.target.path_of(&restoring.path);
                match self.is_whole_now(&restoring.path) {
                    true => report.restored.push(place),
                    false => report.fail(place, &error),
                }
            }
            !is_failed
        });
        if parity.is_empty() {
            return expect_survivable(error).map(|_| parity);
        }
        self.note_parity(number, error, report)?;
        Ok(Parity::new())
    }

    /// Computes what is lost in a layer. If the parity cannot be written, perhaps because its disk
    /// is full, notes that, and computes the files alone.
    fn compute_with(
        &self,
        number: usize,
        files: &mut Files<'a>,
        parity: &mut Parity,
        report: &mut RepairReport,
    ) -> Result<()> {
        match self.compute(number, files, parity, report) {
            Err(error) if error.kind() == ErrorKind::Io && !parity.is_empty() => {
                self.note_parity(number, error, report)?;
                parity.clear();
                self.compute(number, files, parity, report)
            }
            done => done,
        }
    }

    /// Notes why no parity file of a layer was written.
    pub(super) fn note_parity(
        &self,
        number: usize,
        error: Error,
        report: &mut RepairReport,
    ) -> Result<()> {
        let error = expect_survivable(error)?;
        for index in self.broken(number) {
            report.fail(self.protection.place_of(&self.protection.layers[number], index), &error);
        }
        Ok(())
    }

    /// Copies the bytes of good blocks to the files that are being restored.
    fn copy_known(
        &self,
        number: usize,
        files: &mut Files<'a>,
        report: &mut RepairReport,
    ) -> Result<()> {
        let mut failed = Vec::new();
        for (&entry, restoring) in &*files {
            if let Err(error) = self.copy_file(number, entry, restoring) {
                failed.push((entry, error));
            }
        }
        self.give_up(failed, files, report)
    }

    /// Gives up files that could not be written.
    fn give_up(
        &self,
        failed: impl IntoIterator<Item = (usize, Error)>,
        files: &mut Files<'a>,
        report: &mut RepairReport,
    ) -> Result<()> {
        for (entry, error) in failed {
            files.remove(&entry);
            self.note(Err(error), self.path_at(entry), report)?;
        }
        Ok(())
    }

    /// Copies the bytes of good blocks of a layer to a file, and all bytes that are elsewhere.
    fn copy_file(&self, number: usize, entry: usize, restoring: &Restoring<'_>) -> Result<()> {
        let EntryKind::File { layer, piece, size, .. } = self.protection.entries[entry].kind else {
            return Ok(());
        };
        if layer != number || size == 0 || restoring.is_resumed() {
            return Ok(());
        }
        let evidence = &self.evidence.layers[number];
        let geometry = &self.protection.layers[number].header.geometry;
        let start = evidence.stream.pieces()[piece].start;
        let mut memory = vec![0; size.min(STEP) as usize];
        let mut file = None;
        let lost = match self.evidence.elsewhere.contains_key(&entry) {
            true => &[],
            false => &evidence.lost[..],
        };
        for range in known_ranges(lost, geometry.block, start..start + size) {
            for at in range.clone().step_by(STEP as usize) {
                let count = (range.end - at).min(STEP) as usize;
                evidence.stream.fill(at, &mut memory[..count]);
                // The new file reads as zeros already, and perhaps takes no space on the disk for
                // them.
                if memory[..count].iter().all(|&byte| byte == 0) {
                    continue;
                }
                if file.is_none() {
                    file = Some(restoring.open()?);
                }
                let file = file.as_ref().expect("it was opened");
                sparse::write(file, &memory[..count], at - start)
                    .map_err(|error| restoring.failed(error))?;
            }
        }
        Ok(())
    }

    /// Computes the lost blocks of a layer, and from these its lost parity blocks.
    ///
    /// # Errors
    /// If any block does not have its checksum: then files or parity changed since they were
    /// verified, and what was computed is wrong ([`ErrorKind::Busy`]).
    fn compute(
        &self,
        number: usize,
        files: &mut Files<'a>,
        parity: &Parity,
        report: &mut RepairReport,
    ) -> Result<()> {
        let (layer, evidence) = (&self.protection.layers[number], &self.evidence.layers[number]);
        let header = &layer.header;
        let Some(code) = header.geometry.code()? else { return Ok(()) };
        let Some(mut lost) = self.lost_parts(number, &code, files, parity)? else { return Ok(()) };
        let mut sums_of_blocks = RunningSums::new(header.geometry.data);
        let mut writer =
            BlockWriter { repair: self, number, files, open: None, failed: BTreeMap::new() };
        for columns in passes(&header.geometry, lost.columns_in_memory(), self.job.memory) {
            let reading = StreamReading {
                stream: &evidence.stream,
                geometry: header.geometry,
                columns,
                threads: threads(self.job.threads),
                progress: self.progress,
            };
            let mut sums = self.sums(number, &lost, &reading, &mut sums_of_blocks)?;
            let (syndromes, rows) = sums.split_at_mut(lost.used() * reading.width());
            let blocks = lost.recover(syndromes, &reading)?;
            for (&block, bytes) in lost.blocks().iter().zip(blocks.chunks(reading.width())) {
                reading.add_to(&mut sums_of_blocks, block as u64, bytes);
                writer.write(block as u64, reading.columns.start, bytes);
            }
            lost.write_rows(rows, &blocks, &reading, header, parity)?;
        }
        let failed = writer.failed;
        self.give_up(failed, files, report)?;
        let different: Vec<u64> = sums_of_blocks.differences(&layer.checksums).collect();
        match different.is_empty() {
            true => Ok(()),
            false => Err(self.changed(number, &different)),
        }
    }

    /// Returns what is to be computed of a layer; `None` if nothing is.
    fn lost_parts<'c>(
        &self,
        number: usize,
        code: &'c LongCode,
        files: &Files<'a>,
        parity: &Parity,
    ) -> Result<Option<LostParts<'c>>> {
        let (layer, evidence) = (&self.protection.layers[number], &self.evidence.layers[number]);
        let header = &layer.header;
        let is_lost_row = |row: &u64| !evidence.rows.contains_key(row) && !parity.is_empty();
        let rows: Vec<u64> = (0..header.geometry.parity).filter(is_lost_row).collect();
        let entries: Vec<usize> = files.keys().copied().collect();
        if rows.is_empty() && !self.evidence.needs_parity(self.protection, number, &entries) {
            return Ok(None);
        }
        let lost: Vec<usize> = evidence.lost.iter().map(|&block| block as usize).collect();
        let at_hand: Vec<usize> = evidence.rows.keys().map(|&row| row as usize).collect();
        let recovery = code.solve(&lost, &at_hand)?;
        let checks = rows.iter().map(|&row| header.row_checksum(row)).collect();
        Ok(Some(LostParts { code, recovery, rows, checks }))
    }

    /// Reads the rows of parity that are used, and adds the blocks that are not lost to them and to
    /// the rows that are lost.
    fn sums(
        &self,
        number: usize,
        lost: &LostParts<'_>,
        reading: &StreamReading<'_>,
        sums_of_blocks: &mut RunningSums,
    ) -> Result<Pages> {
        let evidence = &self.evidence.layers[number];
        let (rows, width) = (lost.all_rows(), reading.width());
        let mut sums = Pages::zeroed(rows.len() * width)?;
        for (&row, sum) in rows[..lost.used()].iter().zip(sums.chunks_mut(width)) {
            let RowPlace { path, at } = &evidence.rows[&(row as u64)];
            read_row(path, at + reading.columns.start, sum)?;
        }
        let is_lost = |block: u64| evidence.lost.binary_search(&block).is_ok();
        let memory = self.job.memory.saturating_sub(sums.len() as u64);
        let mut targets: Vec<&mut [u8]> = sums.chunks_mut(width).collect();
        let batches = Batches { code: lost.code, reading, memory };
        batches.each(
            |blocks, memory| reading.load(blocks, memory, is_lost, sums_of_blocks),
            |first, blocks| {
                Ok(lost.code.add(&rows, first, blocks, &mut targets, reading.threads)?)
            },
        )?;
        Ok(sums)
    }

    /// Returns the error for blocks that do not have their checksums any more.
    fn changed(&self, number: usize, different: &[u64]) -> Error {
        let geometry = &self.protection.layers[number].header.geometry;
        let LayerEvidence { stream, lost, .. } = &self.evidence.layers[number];
        // If any other block is wrong, so is every lost block.
        let known = different.iter().find(|block| lost.binary_search(block).is_err());
        let piece = known.and_then(|&block| stream.first_in(geometry, block));
        let source = piece.and_then(|piece| stream.pieces()[piece].source.as_ref());
        let what = match source {
            Some(source) => format!("{}, or a file beside it,", shown(&source.path)),
            None => format!("a file or the parity of {}", shown(&self.protection.root)),
        };
        Error::busy(format!(
            "{what} changed while the repair read it, so nothing that was computed from it is \
             used; run the repair again"
        ))
    }

    /// Begins the parity files that are to be written anew, and copies the good blocks of the old
    /// ones and of their copies.
    fn begin_parity(&self, number: usize) -> Result<Parity> {
        let (layer, evidence) = (&self.protection.layers[number], &self.evidence.layers[number]);
        let broken = self.broken(number);
        let access = self.parity_access();
        let new = broken.iter().map(|&index| {
            let target = self.protection.place_of(layer, index);
            // What somebody puts into a free place meanwhile stays.
            let is_free = target.symlink_metadata().is_err();
            NewFile {
                target,
                replace: if is_free { Replace::Never } else { Replace::Always },
                access,
            }
        });
        let files = StagedFile::create_all(new.collect(), 0)?;
        let files: Parity = broken.into_iter().zip(files).collect();
        write_catalogue(&layer.header, &layer.catalogue, |index| files.get(&index))?;
        for (&index, new) in &files {
            for row in layer.header.rows(index) {
                if let Some(RowPlace { path, at }) = evidence.rows.get(&row) {
                    copy_row(layer, row, path, *at, new)?;
                }
            }
        }
        Ok(files)
    }
}

impl RepairRun<'_> {
    /// Returns who may use the files beside the parity.
    pub(super) fn parity_access(&self) -> Access {
        let Protection { root, entries, .. } = self.protection;
        let guards = entries.iter().filter_map(Guard::of_entry);
        parity_access(root, &self.protection.parity_folders(), guards)
    }
}

/// What is computed of a layer: its lost blocks, and from these its lost rows of parity.
struct LostParts<'c> {
    code: &'c LongCode,
    recovery: LongRecovery,
    /// The lost rows that are written anew.
    rows: Vec<u64>,
    /// Their checksums, as far as they are computed.
    checks: Vec<crc_fast::Digest>,
}

impl LostParts<'_> {
    fn blocks(&self) -> &[usize] {
        self.recovery.lost()
    }

    /// Returns the number of parity rows that are used to compute the blocks.
    fn used(&self) -> usize {
        self.recovery.rows().len()
    }

    /// Returns the rows that are used, followed by the lost rows.
    fn all_rows(&self) -> Vec<usize> {
        let lost = self.rows.iter().map(|&row| row as usize);
        self.recovery.rows().iter().copied().chain(lost).collect()
    }

    /// Returns the number of blocks and rows whose columns are in memory together.
    fn columns_in_memory(&self) -> u64 {
        (self.used() + self.rows.len() + self.blocks().len()) as u64
    }

    /// Computes the lost blocks from `syndromes`: the parity rows that are used, with all other
    /// blocks added to them.
    fn recover(&self, syndromes: &[u8], reading: &StreamReading<'_>) -> Result<Pages> {
        let width = reading.width();
        let mut blocks = Pages::zeroed(self.blocks().len() * width)?;
        let syndromes: Vec<&[u8]> = syndromes.chunks(width).collect();
        let mut found: Vec<&mut [u8]> = blocks.chunks_mut(width).collect();
        self.recovery.recover(&syndromes, &mut found, reading.threads)?;
        Ok(blocks)
    }

    /// Adds the lost blocks to the lost rows, and writes these.
    fn write_rows(
        &mut self,
        sums: &mut [u8],
        blocks: &[u8],
        reading: &StreamReading<'_>,
        header: &Header,
        parity: &Parity,
    ) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut all: Vec<&[u8]> = vec![&[]; header.geometry.data as usize];
        for (&block, bytes) in self.blocks().iter().zip(blocks.chunks(reading.width())) {
            all[block] = bytes;
        }
        let rows: Vec<usize> = self.rows.iter().map(|&row| row as usize).collect();
        let mut sums: Vec<&mut [u8]> = sums.chunks_mut(reading.width()).collect();
        self.code.add(&rows, 0, &all, &mut sums, reading.threads)?;
        for ((&row, bytes), check) in self.rows.iter().zip(&sums).zip(&mut self.checks) {
            let file = &parity[&header.file_of(row)];
            write_row(header, row, &reading.columns, bytes, check, file)?;
        }
        Ok(())
    }
}

/// Returns the parts of a range of a stream that lie outside of the lost blocks.
fn known_ranges(lost: &[u64], block: u64, range: Range<u64>) -> Vec<Range<u64>> {
    let first = lost.partition_point(|number| (number + 1) * block <= range.start);
    let mut known = Vec::new();
    let mut at = range.start;
    for number in lost[first..].iter().take_while(|&number| number * block < range.end) {
        if at < number * block {
            known.push(at..number * block);
        }
        at = (number + 1) * block;
    }
    if at < range.end {
        known.push(at..range.end);
    }
    known
}

/// Writes computed blocks to the files that they belong to.
struct BlockWriter<'r, 'a> {
    repair: &'r RepairRun<'a>,
    number: usize,
    files: &'r Files<'a>,
    /// The file that was written last.
    open: Option<(usize, File)>,
    /// The files that could not be written, and why.
    failed: BTreeMap<usize, Error>,
}

impl BlockWriter<'_, '_> {
    /// Writes some columns of a block.
    fn write(&mut self, block: u64, column: u64, bytes: &[u8]) {
        let layer = &self.repair.protection.layers[self.number];
        let stream = &self.repair.evidence.layers[self.number].stream;
        let geometry = &layer.header.geometry;
        let start = block * geometry.block + column;
        let end = (start + bytes.len() as u64).min(geometry.length);
        if start >= end {
            return;
        }
        for number in stream.pieces_in(start..end) {
            let piece = &stream.pieces()[number];
            let Some(entry) = layer.pieces[number].entry else { continue };
            let Some(restoring) = self.files.get(&entry) else { continue };
            if self.failed.contains_key(&entry) {
                continue;
            }
            let (from, to) = (start.max(piece.start), end.min(piece.start + piece.length));
            let part = &bytes[(from - start) as usize..(to - start) as usize];
            let file = self.file(entry, restoring);
            let written = file.and_then(|file| {
                write_at(file, &mut [IoSlice::new(part)], from - piece.start)
                    .map_err(|error| restoring.failed(error))
            });
            self.failed.extend(written.err().map(|error| (entry, error)));
        }
    }

    fn file(&mut self, entry: usize, restoring: &Restoring<'_>) -> Result<&File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != entry) {
            self.open = Some((entry, restoring.open()?));
        }
        Ok(&self.open.as_ref().expect("it was opened").1)
    }
}

/// Copies a good parity block to a new parity file.
///
/// # Errors
/// If the block does not have its checksum any more ([`ErrorKind::Busy`]), or if the system refuses
/// ([`ErrorKind::Io`]).
fn copy_row(layer: &Layer, row: u64, old: &Path, place: u64, new: &StagedFile) -> Result<()> {
    let block = layer.header.geometry.block;
    let mut check = layer.header.row_checksum(row);
    let mut memory = vec![0; block.min(STEP) as usize];
    for at in (0..block).step_by(STEP as usize) {
        let end = (at + STEP).min(block);
        let bytes = &mut memory[..(end - at) as usize];
        read_row(old, place + at, bytes)?;
        write_row(&layer.header, row, &(at..end), bytes, &mut check, new)?;
    }
    let mut stored = [0; CHECK as usize];
    read_row(old, place + block, &mut stored)?;
    match stored == check.finalize().to_le_bytes() {
        true => Ok(()),
        false => Err(Error::busy(format!(
            "{} changed while the repair read it; run the repair again",
            shown(old)
        ))),
    }
}
