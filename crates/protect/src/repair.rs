//! Making everything whole again.
//!
//! A repair verifies first. Then it begins the files to restore under temporary names, copies what
//! is still there, computes the lost blocks layer by layer and column by column as the memory
//! allows, compares each file by its digest, and renames it. Parity files come last. So whenever a
//! repair is killed, everything that was good is still there, and the files that were restored keep
//! their names.

use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

use paritas::Pages;
use paritas_shards::staged::{StagedFile, publish};
use paritas_shards::{Attributes, Progress, setters, shown};

use crate::create::{Coding, DEFAULT_MEMORY, passes, threads, write_catalogue, write_row};
use crate::error::{Error, ErrorKind, Result};
use crate::find::{EntryKind, Layer, Protection};
use crate::folder::free_bytes;
use crate::parity::read_row;
use crate::restore::{Restoring, Target};
use crate::scan::digest_of;
use crate::stream::Reading;
use crate::system::path_bytes;
use crate::tree::Skipped;
use crate::verify::{Evidence, FileState, Status, VerifyOptions, VerifyReport, examine};

/// Number of bytes that are copied at once.
const STEP: u64 = 1 << 20;

/// The settings of a repair.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairJob {
    /// The folder for restored files. Without it, they go into the root. With it, nothing in the
    /// root changes, and no parity is written.
    pub to: Option<PathBuf>,
    /// Whether files that someone has changed are restored to what they were.
    pub restore_changed: bool,
    /// Whether files that were moved go back to where they were.
    pub move_back: bool,
    /// Approximate limit of the memory for parity and data, in bytes.
    pub memory: u64,
    /// Largest number of threads; by default as many as the machine runs at once.
    pub threads: Option<NonZeroUsize>,
    /// Whether everything is synced to the disk before files get their names.
    pub sync: bool,
}

impl Default for RepairJob {
    /// Restores in place what is damaged or missing, and leaves what was changed or moved.
    fn default() -> Self {
        Self {
            to: None,
            restore_changed: false,
            move_back: false,
            memory: DEFAULT_MEMORY,
            threads: None,
            sync: true,
        }
    }
}

setters! { RepairJob {
    /// Puts restored files into a folder, which must exist.
    to: impl Into<Option<PathBuf>>,
    /// Restores changed files as well, or leaves them.
    restore_changed: bool,
    /// Moves files back, or leaves them where they are.
    move_back: bool,
    /// Uses about `memory` bytes.
    memory: u64,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
    /// Turns syncing on or off.
    sync: bool,
} }

/// The result of a repair.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RepairReport {
    /// The state before the repair. If its status is [`Status::BeyondRepair`], everything that does
    /// not need the missing blocks was repaired.
    pub found: VerifyReport,
    /// Files, folders and links that were restored, where they are now.
    pub restored: Vec<PathBuf>,
    /// Files that were moved back: from where, and to where.
    pub moved_back: Vec<(PathBuf, PathBuf)>,
    /// Parity files that were written anew.
    pub parity: Vec<PathBuf>,
    /// Files that cannot be computed, because too few blocks are at hand.
    pub lost: Vec<PathBuf>,
    /// Paths that could not be restored for other reasons, and these reasons.
    pub failed: Vec<Skipped>,
}

/// Repairs a protection. `progress` gets the number of bytes as they are read.
///
/// # Errors
/// If a file cannot be written ([`ErrorKind::Io`]), the disk or the memory is short
/// ([`ErrorKind::Io`], [`ErrorKind::Memory`]), or the bytes that were computed do not have the
/// digest of the protected file ([`ErrorKind::CheckFailed`]). The files that were restored before
/// the error stay.
pub fn repair(
    protection: &Protection,
    job: &RepairJob,
    progress: Progress<'_>,
) -> Result<RepairReport> {
    let options = VerifyOptions::default().threads(job.threads);
    let (found, evidence) = examine(protection, &options, progress)?;
    let mut report = RepairReport {
        found,
        restored: Vec::new(),
        moved_back: Vec::new(),
        parity: Vec::new(),
        lost: Vec::new(),
        failed: Vec::new(),
    };
    let short = (0..).zip(&report.found.layers).filter(|(_, layer)| layer.needed > 0);
    let short: Vec<usize> = short.map(|(number, _)| number).collect();
    let (wanted, lost) = split(protection, &evidence, &short, wanted(job, &evidence));
    let has_broken = job.to.is_none() && !report.found.parity.is_empty() && !short.is_empty();
    if !lost.is_empty() || has_broken || protection.unreadable_layers > 0 {
        report.found.status = Status::BeyondRepair;
    }
    let root = job.to.clone().unwrap_or_else(|| protection.root.clone());
    if job.to.is_none() && !root.exists() {
        std::fs::create_dir(&root).map_err(|error| Error::io("making", &root, error))?;
    }
    let target = Target::open(&root, protection.id.to_string())?;
    report.lost = lost.iter().map(|&lost| target.path_of(&protection.entries[lost].path)).collect();
    let repair = Repair { protection, job, progress, evidence, short, target: &target };
    repair.run(&wanted, &mut report)?;
    Ok(report)
}

/// Returns the entries that are to be restored.
fn wanted(job: &RepairJob, evidence: &Evidence) -> Vec<usize> {
    let is_wanted = |state: &FileState| match state {
        FileState::Damaged(_) | FileState::Missing => true,
        FileState::Changed(_) => job.restore_changed || job.to.is_some(),
        FileState::Touched | FileState::Unreadable(_) => false,
        // The file is there under another name. In another folder it is wanted under its own.
        FileState::Moved(_) => job.to.is_some(),
    };
    let states = evidence.states.iter();
    states.filter(|(_, state)| is_wanted(state)).map(|(&number, _)| number).collect()
}

/// Splits entries into those that can be restored, and those that need the blocks of layers that
/// are short of blocks.
fn split(
    protection: &Protection,
    evidence: &Evidence,
    short: &[usize],
    wanted: Vec<usize>,
) -> (Vec<usize>, Vec<usize>) {
    let is_lost = |&entry: &usize| {
        // A hard link has the bytes of its file, and needs them only if the file is restored.
        let file = match &protection.entries[entry].kind {
            EntryKind::HardLink { target } => protection.entry_at(target).unwrap_or(entry),
            _ => entry,
        };
        let is_restored = file == entry || wanted.binary_search(&file).is_ok();
        is_restored && short.iter().any(|&layer| evidence.needs_parity(protection, layer, &[file]))
    };
    let (lost, possible) = wanted.iter().partition(|entry| is_lost(entry));
    (possible, lost)
}

struct Repair<'a> {
    protection: &'a Protection,
    job: &'a RepairJob,
    progress: Progress<'a>,
    evidence: Evidence,
    /// The layers of which no lost block can be computed.
    short: Vec<usize>,
    target: &'a Target,
}

/// The files that are being restored, by entry.
type Files<'t> = BTreeMap<usize, Restoring<'t>>;

impl<'a> Repair<'a> {
    fn run(&self, wanted: &[usize], report: &mut RepairReport) -> Result<()> {
        self.expect_space(wanted)?;
        if self.job.to.is_none() {
            self.remove_leftovers();
            self.protection.remove_left()?;
        }
        self.make_folders(wanted, report)?;
        let mut files = self.begin(wanted, report)?;
        for number in 0..self.protection.layers.len() {
            let parity = self.begin_parity(number)?;
            self.copy_known(number, &files)?;
            self.compute(number, &files, &parity)?;
            self.finish_files(number, &mut files, report)?;
            self.finish_parity(number, parity, report)?;
        }
        if self.job.move_back && self.job.to.is_none() {
            self.move_back(report)?;
        }
        self.make_links(wanted, report);
        self.finish_folders(wanted)
    }

    /// Refuses to begin if the disks have no room for what will be written.
    fn expect_space(&self, wanted: &[usize]) -> Result<()> {
        let root = self.job.to.as_ref().unwrap_or(&self.protection.root);
        let bytes = wanted.iter().map(|&number| self.protection.entries[number].size()).sum();
        let mut needs = vec![(root.clone(), bytes)];
        for (number, layer) in self.protection.layers.iter().enumerate() {
            for index in self.broken(number) {
                let path = self.protection.place_of(layer, index);
                let folder = path.parent().unwrap_or(&path).to_owned();
                needs.push((folder, layer.header.file_length(index)));
            }
        }
        let mut by_system: BTreeMap<u64, (PathBuf, u64, u64)> = BTreeMap::new();
        for (folder, bytes) in needs {
            let Some((system, free)) = free_bytes(&folder) else { continue };
            by_system.entry(system).or_insert((folder, 0, free)).1 += bytes;
        }
        match by_system.into_values().find(|(_, bytes, free)| bytes > free) {
            Some((folder, bytes, free)) => Err(Error::new(
                ErrorKind::Io,
                format!(
                    "the repair writes {bytes} bytes before it removes any; the disk of {} has \
                     {free} free",
                    shown(&folder)
                ),
            )),
            None => Ok(()),
        }
    }

    /// Removes what an earlier repair of this protection left when it was killed.
    fn remove_leftovers(&self) {
        let mark = format!(".paritas-{}-", &self.protection.id.to_string()[..8]);
        for path in &self.evidence.tree.leftovers {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&mark) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn make_folders(&self, wanted: &[usize], report: &mut RepairReport) -> Result<()> {
        for &number in wanted {
            let entry = &self.protection.entries[number];
            if entry.kind == EntryKind::Folder {
                let made = self.target.make_folder(&entry.path);
                self.note(made, &entry.path, report);
            }
        }
        Ok(())
    }

    /// Notes what was restored, or why it was not.
    fn note(&self, done: Result<()>, path: &[u8], report: &mut RepairReport) {
        let path = self.target.path_of(path);
        match done {
            Ok(()) => report.restored.push(path),
            Err(error) => report.failed.push(Skipped { path, reason: error.to_string() }),
        }
    }

    fn begin(&self, wanted: &[usize], report: &mut RepairReport) -> Result<Files<'a>> {
        let mut files = Files::new();
        for &number in wanted {
            let entry = &self.protection.entries[number];
            let EntryKind::File { size, digest, .. } = entry.kind else { continue };
            // An earlier run has restored it.
            if self.job.to.is_some()
                && digest_of(&self.target.path_of(&entry.path), size) == Some(digest)
            {
                self.note(Ok(()), &entry.path, report);
                continue;
            }
            let seen = self.evidence.tree.of(number).map(|found| found.modified);
            let seen = if self.job.to.is_some() { None } else { seen };
            match self.target.begin(&entry.path, size, seen) {
                Ok(restoring) => _ = files.insert(number, restoring),
                Err(error) if is_in_the_way(&error) => {
                    let path = self.target.path_of(&entry.path);
                    report.failed.push(Skipped { path, reason: error.to_string() });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }

    /// Copies the bytes of good blocks to the files that are being restored.
    fn copy_known(&self, number: usize, files: &Files<'a>) -> Result<()> {
        let evidence = &self.evidence.layers[number];
        let geometry = &self.protection.layers[number].header.geometry;
        let mut memory = vec![0; STEP as usize];
        for (&entry, restoring) in files {
            let EntryKind::File { layer, piece, size, .. } = self.protection.entries[entry].kind
            else {
                continue;
            };
            if layer != number || size == 0 {
                continue;
            }
            let start = evidence.stream.pieces()[piece].start;
            let mut file = None;
            for range in known_ranges(&evidence.lost, geometry.block, start..start + size) {
                for at in range.clone().step_by(STEP as usize) {
                    let count = (range.end - at).min(STEP) as usize;
                    evidence.stream.fill(at, &mut memory[..count]);
                    // The new file reads as zeros already, and perhaps takes no space on the disk
                    // for them.
                    if memory[..count].iter().all(|&byte| byte == 0) {
                        continue;
                    }
                    if file.is_none() {
                        file = Some(restoring.open()?);
                    }
                    let file = file.as_ref().expect("it was opened");
                    write_all(file, &memory[..count], at - start, || {
                        self.target.path_of(&restoring.path)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Computes the lost blocks of a layer, and from these its lost parity blocks.
    fn compute(
        &self,
        number: usize,
        files: &Files<'a>,
        parity: &BTreeMap<u16, StagedFile>,
    ) -> Result<()> {
        let (layer, evidence) = (&self.protection.layers[number], &self.evidence.layers[number]);
        let header = &layer.header;
        let Some(code) = header.geometry.code()? else { return Ok(()) };
        let is_lost_row = |row: &u64| !evidence.rows.contains_key(row);
        let lost_rows: Vec<u64> = (0..header.geometry.parity).filter(is_lost_row).collect();
        let lost_rows = if parity.is_empty() { Vec::new() } else { lost_rows };
        let entries: Vec<usize> = files.keys().copied().collect();
        let is_needed = self.evidence.needs_parity(self.protection, number, &entries);
        if lost_rows.is_empty() && !is_needed {
            return Ok(());
        }
        let lost: Vec<usize> = evidence.lost.iter().map(|&block| block as usize).collect();
        let at_hand: Vec<usize> = evidence.rows.keys().map(|&row| row as usize).collect();
        let recovery = code.solve(&lost, &at_hand)?;
        let used = recovery.rows().len();
        let rows: Vec<usize> = recovery
            .rows()
            .iter()
            .copied()
            .chain(lost_rows.iter().map(|&row| row as usize))
            .collect();
        let mut checks: Vec<crc_fast::Digest> =
            lost_rows.iter().map(|&row| header.row_checksum(row)).collect();
        let mut writer = Writer { repair: self, number, files, open: None };
        let memory = (rows.len() + lost.len()) as u64;
        for columns in passes(&header.geometry, memory, self.job.memory) {
            let reading = Reading {
                stream: &evidence.stream,
                geometry: header.geometry,
                columns,
                threads: threads(self.job.threads),
                progress: self.progress,
            };
            let width = reading.width();
            let mut sums = Pages::zeroed(rows.len() * width)?;
            for (&row, sum) in rows[..used].iter().zip(sums.chunks_mut(width)) {
                let (file, place) = evidence.rows[&(row as u64)];
                let file = layer.files[usize::from(file)].as_ref();
                let path = &file.expect("it has parity blocks at hand").path;
                read_row(path, place + reading.columns.start, sum)?;
            }
            let is_lost = |block: u64| evidence.lost.binary_search(&block).is_ok();
            let coding = Coding { code: &code, rows: &rows, memory: self.job.memory };
            coding.add(&reading, &mut sums, |blocks, memory| {
                reading.load(blocks, memory, is_lost);
            })?;
            let (syndromes, regenerated) = sums.split_at_mut(used * width);
            let mut blocks = Pages::zeroed(lost.len() * width)?;
            let syndromes: Vec<&[u8]> = syndromes.chunks(width).collect();
            let mut found: Vec<&mut [u8]> = blocks.chunks_mut(width).collect();
            recovery.recover(&syndromes, &mut found, reading.threads)?;
            for (&block, bytes) in recovery.lost().iter().zip(blocks.chunks(width)) {
                writer.write(block as u64, reading.columns.start, bytes)?;
            }
            if !lost_rows.is_empty() {
                let mut all: Vec<&[u8]> = vec![&[]; header.geometry.data as usize];
                for (&block, bytes) in recovery.lost().iter().zip(blocks.chunks(width)) {
                    all[block] = bytes;
                }
                let mut regenerated: Vec<&mut [u8]> = regenerated.chunks_mut(width).collect();
                code.add(&rows[used..], 0, &all, &mut regenerated, reading.threads)?;
                for ((&row, bytes), check) in lost_rows.iter().zip(&regenerated).zip(&mut checks) {
                    let file = &parity[&header.file_of(row)];
                    write_row(header, row, &reading.columns, bytes, check, file)?;
                }
            }
        }
        Ok(())
    }

    /// Gives the restored files of a layer their names.
    fn finish_files(
        &self,
        number: usize,
        files: &mut Files<'a>,
        report: &mut RepairReport,
    ) -> Result<()> {
        for (entry, restoring) in std::mem::take(files) {
            let found = &self.protection.entries[entry];
            match found.kind {
                EntryKind::File { layer, digest, .. } if layer == number => {
                    let path = found.path.clone();
                    match restoring.finish(found, digest, self.job.sync) {
                        Err(error) if is_in_the_way(&error) || error.kind() == ErrorKind::Busy => {
                            self.note(Err(error), &path, report);
                        }
                        done => {
                            done?;
                            self.note(Ok(()), &path, report);
                        }
                    }
                }
                _ => _ = files.insert(entry, restoring),
            }
        }
        Ok(())
    }

    /// Returns the numbers of the parity files of a layer that are to be written anew.
    fn broken(&self, number: usize) -> Vec<u16> {
        if self.job.to.is_some() || self.short.contains(&number) {
            return Vec::new();
        }
        let (layer, evidence) = (&self.protection.layers[number], &self.evidence.layers[number]);
        let is_whole = |&index: &u16| {
            let at = usize::from(index);
            let pair = layer.files[at].as_ref().zip(evidence.checked[at].as_ref());
            pair.is_some_and(|(file, checked)| {
                let rows = layer.header.rows(index).count();
                file.has_ends && checked.rows.len() == rows && checked.damaged_pieces == 0
            })
        };
        (0..layer.header.count).filter(|index| !is_whole(index)).collect()
    }

    /// Begins the parity files that are to be written anew, and copies the good blocks of the old
    /// ones.
    fn begin_parity(&self, number: usize) -> Result<BTreeMap<u16, StagedFile>> {
        let (layer, evidence) = (&self.protection.layers[number], &self.evidence.layers[number]);
        let broken = self.broken(number);
        let places = broken.iter().map(|&index| self.protection.place_of(layer, index));
        let mode = self.protection.entries.iter().filter(|entry| entry.is_file());
        let mode = mode.fold(0o666, |mode, entry| mode & entry.mode);
        let attributes = Attributes { mode: Some(mode), ..Attributes::default() };
        let files = StagedFile::create_all(places, &attributes, true)?;
        let files: BTreeMap<u16, StagedFile> = broken.into_iter().zip(files).collect();
        write_catalogue(&layer.header, &layer.catalogue, |index| files.get(&index))?;
        for (&index, new) in &files {
            let Some(checked) = &evidence.checked[usize::from(index)] else { continue };
            let Some(old) = &layer.files[usize::from(index)] else { continue };
            for (&row, &place) in &checked.rows {
                copy_row(layer, row, &old.path, place, new)?;
            }
        }
        Ok(files)
    }

    fn finish_parity(
        &self,
        number: usize,
        parity: BTreeMap<u16, StagedFile>,
        report: &mut RepairReport,
    ) -> Result<()> {
        let layer = &self.protection.layers[number];
        report.parity.extend(parity.keys().map(|&index| self.protection.place_of(layer, index)));
        if parity.is_empty() {
            return Ok(());
        }
        let files = parity.into_values().collect();
        publish(files, &[], || Ok(Vec::new()), self.job.sync)
    }

    fn move_back(&self, report: &mut RepairReport) -> Result<()> {
        for (&number, state) in &self.evidence.states {
            let FileState::Moved(from) = state else { continue };
            let entry = &self.protection.entries[number];
            let Ok(relative) = from.strip_prefix(&self.protection.root) else { continue };
            self.target.take(&path_bytes(relative), &entry.path)?;
            report.moved_back.push((from.clone(), self.target.path_of(&entry.path)));
        }
        Ok(())
    }

    /// Restores symbolic links, and hard links to files that were restored.
    fn make_links(&self, wanted: &[usize], report: &mut RepairReport) {
        let entries = &self.protection.entries;
        for &number in wanted {
            let entry = &entries[number];
            if let EntryKind::Symlink { target } = &entry.kind {
                let done = self.target.symlink(entry, target);
                self.note(done, &entry.path, report);
            }
        }
        for (number, entry) in entries.iter().enumerate() {
            let EntryKind::HardLink { target } = &entry.kind else { continue };
            let file = self.protection.entry_at(target);
            let is_new = |number: usize| wanted.binary_search(&number).is_ok();
            if is_new(number) || file.is_some_and(is_new) {
                let done = self.target.hard_link(target, &entry.path);
                self.note(done, &entry.path, report);
            }
        }
    }

    /// Gives new folders their modes and times, and others the times that they had.
    fn finish_folders(&self, wanted: &[usize]) -> Result<()> {
        let entries = self.protection.entries.iter().enumerate().rev();
        for (number, entry) in entries.filter(|(_, entry)| entry.kind == EntryKind::Folder) {
            let had_time = || {
                let found = self.evidence.tree.of(number);
                found.is_some_and(|found| found.modified == entry.modified)
            };
            let is_new = wanted.binary_search(&number).is_ok();
            let done = match (is_new || self.job.to.is_some(), had_time()) {
                (true, _) => self.target.finish_folder(entry),
                (false, true) => self.target.set_folder_time(entry),
                (false, false) => Ok(()),
            };
            // If a folder is not there, it has been reported already, or no restored file needed
            // it.
            if done.as_ref().is_err_and(|error| error.kind() != ErrorKind::Io) {
                return done;
            }
        }
        Ok(())
    }
}

/// Whether an error means that a folder stands where a file is to go, or something else where a
/// folder is needed.
fn is_in_the_way(error: &Error) -> bool {
    use std::io::ErrorKind as Io;
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    source.is_some_and(|source: &std::io::Error| {
        // A link is refused as a loop of links.
        matches!(source.kind(), Io::NotADirectory | Io::IsADirectory | Io::DirectoryNotEmpty)
            || source.raw_os_error() == Some(LOOP)
    })
}

/// The system's error for a symbolic link that stands where a folder is needed.
#[cfg(unix)]
const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();
#[cfg(not(unix))]
const LOOP: i32 = i32::MIN;

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
struct Writer<'r, 'a> {
    repair: &'r Repair<'a>,
    number: usize,
    files: &'r Files<'a>,
    /// The file that was written last.
    open: Option<(usize, File)>,
}

impl Writer<'_, '_> {
    /// Writes some columns of a block.
    fn write(&mut self, block: u64, column: u64, bytes: &[u8]) -> Result<()> {
        let layer = &self.repair.protection.layers[self.number];
        let stream = &self.repair.evidence.layers[self.number].stream;
        let geometry = &layer.header.geometry;
        let start = block * geometry.block + column;
        let end = (start + bytes.len() as u64).min(geometry.length);
        if start >= end {
            return Ok(());
        }
        for number in stream.pieces_in(start..end) {
            let piece = &stream.pieces()[number];
            let Some(entry) = layer.pieces[number].entry else { continue };
            let Some(restoring) = self.files.get(&entry) else { continue };
            let (from, to) = (start.max(piece.start), end.min(piece.start + piece.length));
            let part = &bytes[(from - start) as usize..(to - start) as usize];
            let path = || self.repair.target.path_of(&restoring.path);
            write_all(self.file(entry, restoring)?, part, from - piece.start, path)?;
        }
        Ok(())
    }

    fn file(&mut self, entry: usize, restoring: &Restoring<'_>) -> Result<&File> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != entry) {
            self.open = Some((entry, restoring.open()?));
        }
        Ok(&self.open.as_ref().expect("it was opened").1)
    }
}

/// Writes all bytes at a position.
fn write_all(file: &File, bytes: &[u8], offset: u64, path: impl Fn() -> PathBuf) -> Result<()> {
    #[cfg(unix)]
    let written = std::os::unix::fs::FileExt::write_all_at(file, bytes, offset);
    #[cfg(windows)]
    let written = {
        let mut done = 0;
        loop {
            if done == bytes.len() {
                break Ok(());
            }
            let at = offset + done as u64;
            match std::os::windows::fs::FileExt::seek_write(file, &bytes[done..], at) {
                Ok(count) => done += count,
                Err(error) => break Err(error),
            }
        }
    };
    written.map_err(|error| Error::io("restoring", &path(), error))
}

/// Copies a good parity block to a new parity file.
fn copy_row(
    layer: &Layer,
    row: u64,
    old: &std::path::Path,
    place: u64,
    new: &StagedFile,
) -> Result<()> {
    let block = layer.header.geometry.block;
    let mut check = layer.header.row_checksum(row);
    let mut memory = vec![0; block.min(STEP) as usize];
    for at in (0..block).step_by(STEP as usize) {
        let end = (at + STEP).min(block);
        let bytes = &mut memory[..(end - at) as usize];
        read_row(old, place + at, bytes)?;
        write_row(&layer.header, row, &(at..end), bytes, &mut check, new)?;
    }
    Ok(())
}
