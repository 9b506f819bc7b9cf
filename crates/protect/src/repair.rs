//! Making everything whole again.
//!
//! A repair verifies first. Then it begins the files to restore under temporary names, copies what
//! is still there, computes the lost blocks layer by layer and column by column as the memory
//! allows, and compares each file by its digest. Only when all files are complete, they get their
//! names: a file that is replaced may have bytes of another one. Parity files come last. So
//! whenever a repair is killed, everything that was good is still there, under its name or a
//! temporary one, in which the next repair finds it.
//!
//! An error that concerns one file or one layer is noted, and the repair goes on without it.

mod back;
mod finish;
mod foretold;
mod layer;
mod links;
mod remember;
mod room;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::progress::Progress;
use paritas_store::setters;
use paritas_store::shown::shown;
use paritas_store::staging::StagedFile;

use crate::aside;
use crate::create::default_memory;
use crate::evidence::{Evidence, FileState};
use crate::find::{EntryKind, ProtectedEntry, Protection};
use crate::paths::name_bytes;
use crate::restore::{RestoreTree, Restoring, Seen};
use crate::scan::digest_of;
use crate::tree::{Skipped, folder_of};
use crate::verify::{VerifyOptions, VerifyReport, examine, short};
use paritas_store::place::space::{DiskNeed, NoRoom};
use paritas_store::state::State;

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
    /// Whether the copies that earlier repairs have kept of replaced files are removed, if
    /// everything is whole at the end, and unfinished files beside the parity
    /// ([`Protection::unfinished`]). This is refused for a part of a protection.
    pub clean: bool,
    /// Whether the repair writes nothing. The report says what it would write.
    pub dry_run: bool,
    /// Approximate limit of the memory for parity and data, in bytes.
    pub memory: u64,
    /// Largest number of threads. Default: the number that the machine runs at once.
    pub threads: Option<NonZeroUsize>,
    /// Whether everything is synced to the disk before files get their names.
    pub sync: bool,
}

impl Default for RepairJob {
    /// Restores damaged and missing files in place, and leaves changed and moved files.
    fn default() -> Self {
        Self {
            to: None,
            restore_changed: false,
            move_back: false,
            clean: false,
            dry_run: false,
            memory: default_memory(),
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
    /// Removes the copies of what earlier repairs have replaced, or leaves them.
    clean: bool,
    /// Says what would be done instead of doing it.
    dry_run: bool,
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
    /// The state before the repair. If its status is [`State::Lost`], everything that does
    /// not need the missing blocks was repaired.
    pub found: VerifyReport,
    /// Files, folders and links that were restored, where they are now.
    pub restored: Vec<PathBuf>,
    /// Files that were moved back: from where, and to where.
    pub moved_back: Vec<(PathBuf, PathBuf)>,
    /// Parity files that were written anew.
    pub parity: Vec<PathBuf>,
    /// What the repair would write to each disk, if the job says that nothing is to be written.
    pub disks: Vec<DiskNeed>,
    /// What was replaced: the path that it had, and the one that it has now.
    pub kept: Vec<(PathBuf, PathBuf)>,
    /// Copies of what earlier repairs have replaced, and unfinished files beside the parity, which
    /// were removed ([`RepairJob::clean`]).
    pub cleaned: Vec<PathBuf>,
    /// Kinds of attributes that a file system did not take over, such as `modes`.
    pub not_kept: Vec<&'static str>,
    /// What the file systems of parity files refused to keep, and what was not noted, in words.
    pub warnings: Vec<String>,
    /// Files that cannot be computed, because too few blocks are at hand.
    pub lost: Vec<PathBuf>,
    /// Paths that could not be restored for other reasons, and these reasons.
    pub failed: Vec<Skipped>,
    /// Whether the bytes that were computed for any of the failed paths do not have the digest of
    /// the protected file.
    pub check_failed: bool,
}

impl RepairReport {
    /// Returns the report of a repair that has done nothing yet.
    fn of(found: VerifyReport) -> Self {
        Self {
            found,
            restored: Vec::new(),
            moved_back: Vec::new(),
            parity: Vec::new(),
            disks: Vec::new(),
            kept: Vec::new(),
            cleaned: Vec::new(),
            not_kept: Vec::new(),
            warnings: Vec::new(),
            lost: Vec::new(),
            failed: Vec::new(),
            check_failed: false,
        }
    }

    /// Adds warnings about parity files. Those of several layers may be the same.
    fn warn(&mut self, warnings: Vec<String>) {
        let new = warnings.into_iter().filter(|warning| !self.warnings.contains(warning));
        self.warnings.extend(new.collect::<Vec<_>>());
    }

    /// Notes why a path could not be restored.
    fn fail(&mut self, path: PathBuf, error: &Error) {
        self.check_failed |= error.kind() == ErrorKind::DigestMismatch;
        self.failed.push(Skipped { path, reason: error.to_string() });
    }
}

/// Repairs a protection. `progress` gets the number of bytes as they are read.
///
/// # Errors
/// If the root does not exist or the target folder cannot be opened ([`ErrorKind::Io`]), if copies
/// are to be removed for a part ([`ErrorKind::Parameters`]), or if the memory is short
/// ([`ErrorKind::Memory`]). Problems with a single file or with parity do not cause
/// an error; [`RepairReport::failed`] lists them. It also lists all files of a disk that has no
/// room for them.
pub fn repair(
    protection: &Protection,
    job: &RepairJob,
    progress: Progress<'_>,
) -> Result<RepairReport> {
    expect_no_part(protection, job)?;
    let root = job.to.clone().unwrap_or_else(|| protection.root.clone());
    if !root.exists() {
        return Err(absent(&root));
    }
    let options = VerifyOptions::default().threads(job.threads);
    let examined = examine(protection, &options, progress)?;
    if examined.1.layers.is_empty() && protection.is_part() {
        // The part is intact, and the rest was not read.
        return Ok(RepairReport::of(examined.0));
    }
    let target = RestoreTree::open(&root, protection.id.to_string(), job.sync)?;
    let prepare = |examined| prepare(protection, job, progress, &target, examined);
    let (mut repair, mut wanted, mut report) = prepare(examined);
    if repair.make_room(&wanted) {
        // Blocks were removed that are computed instead.
        (repair, wanted, report) = prepare(examine(protection, &options, progress)?);
    }
    repair.carry_out(&wanted, &mut report)?;
    Ok(report)
}

/// Decides what is to be restored, by what a verification has found. Returns the repair, the
/// entries to restore, and the report of what is found and lost.
fn prepare<'a>(
    protection: &'a Protection,
    job: &'a RepairJob,
    progress: Progress<'a>,
    target: &'a RestoreTree,
    (found, evidence): (VerifyReport, Evidence),
) -> (RepairRun<'a>, Vec<usize>, RepairReport) {
    let mut report = RepairReport::of(found);
    let short: Vec<usize> = short(&report.found.layers).collect();
    let wanted = entries_to_restore(protection, job, &evidence);
    let (wanted, lost) = split(protection, &evidence, &short, wanted);
    let lost_parity =
        writes_parity(protection, job) && has_lost_parity(protection, &evidence, &short);
    let is_known = report.found.status != State::Unknown;
    if is_known && (!lost.is_empty() || lost_parity || protection.may_lack_entries()) {
        report.found.status = State::Lost;
    }
    let path_of = |&entry: &usize| target.path_of(&protection.entries[entry].path);
    report.lost = lost.iter().map(path_of).collect();
    let mut repair = RepairRun {
        protection,
        job,
        progress,
        evidence,
        short,
        lost,
        restored_before: HashSet::new(),
        crowded: BTreeMap::new(),
        without_room: Vec::new(),
        target,
    };
    let was_restored = |&number: &usize| repair.was_restored(&protection.entries[number]);
    let files = wanted.iter().copied().filter(|&number| protection.entries[number].is_file());
    repair.restored_before = files.filter(was_restored).collect();
    (repair, wanted, report)
}

/// Refuses to remove copies for a part: whether everything is whole is known of the root alone.
fn expect_no_part(protection: &Protection, job: &RepairJob) -> Result<()> {
    let part = protection.parts().next().filter(|_| job.clean);
    part.map_or(Ok(()), |part| {
        let message = format!(
            "`clean` removes copies once everything is whole, and {} is only a part of {}; give \
             the latter instead",
            shown(&part),
            shown(&protection.root)
        );
        Err(Error::parameters(message).naming(&["clean"]))
    })
}

/// Returns the error for a folder to restore to that does not exist. Making it could fill the
/// wrong disk.
fn absent(folder: &Path) -> Error {
    let message = format!(
        "the folder {} does not exist; mount its disk, make the folder, or restore to another one \
         with `to`",
        shown(folder)
    );
    Error::failed(message).naming(&["to"])
}

/// Whether parity is written anew: not for a part, and not if all goes to another folder.
fn writes_parity(protection: &Protection, job: &RepairJob) -> bool {
    job.to.is_none() && !protection.is_part()
}

/// Whether any of the layers that are short of blocks has a damaged parity file, which cannot be
/// computed.
fn has_lost_parity(protection: &Protection, evidence: &Evidence, short: &[usize]) -> bool {
    short.iter().any(|&layer| !evidence.broken_parity(protection, layer).is_empty())
}

/// Returns the entries of the part that was asked for that are to be restored.
fn entries_to_restore(protection: &Protection, job: &RepairJob, evidence: &Evidence) -> Vec<usize> {
    // A folder whose name only differs in case is there. It is renamed in the end.
    let is_elsewhere = |number: usize| {
        let is_folder = protection.entries[number].kind == EntryKind::Folder;
        is_folder && protection.renamed(number, &evidence.tree).is_none()
    };
    let wanted = in_part(protection, evidence, wanted(job, evidence, is_elsewhere));
    match job.to {
        Some(_) => with_linked_files(protection, wanted),
        None => wanted,
    }
}

/// Adds the files that hard links name. A link is made as a further name of its file, but in
/// another folder none of these files exists.
fn with_linked_files(protection: &Protection, wanted: Vec<usize>) -> Vec<usize> {
    let files = wanted.iter().filter_map(|&number| match &protection.entries[number].kind {
        EntryKind::HardLink { target } => protection.entry_at(target),
        _ => None,
    });
    files.chain(wanted.iter().copied()).collect::<BTreeSet<usize>>().into_iter().collect()
}

/// Returns the entries of all parts that are to be restored. For an entry that has moved,
/// `is_elsewhere` tells whether it is a folder that lies somewhere else.
fn wanted(
    job: &RepairJob,
    evidence: &Evidence,
    is_elsewhere: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let is_wanted = |number: usize, state: &FileState| match state {
        FileState::Damaged(_) | FileState::Missing => true,
        FileState::Changed(_) => job.restore_changed || job.to.is_some(),
        FileState::Touched => false,
        // The file is there, but under another name, or for other readers. In another folder it is
        // wanted as it was.
        FileState::Unreadable(_) => job.to.is_some(),
        // Files that are moved back need their folder.
        FileState::Moved(_) => job.to.is_some() || job.move_back && is_elsewhere(number),
    };
    let states = evidence.states.iter();
    states.filter(|(number, state)| is_wanted(**number, state)).map(|(&number, _)| number).collect()
}

/// Returns those of some entries that belong to the part that was asked for, and the missing
/// folders above them.
fn in_part(protection: &Protection, evidence: &Evidence, wanted: Vec<usize>) -> Vec<usize> {
    if !protection.is_part() {
        return wanted;
    }
    let wanted: Vec<usize> =
        wanted.into_iter().filter(|&number| protection.covers(number)).collect();
    let mut all: BTreeSet<usize> = wanted.iter().copied().collect();
    for number in wanted {
        let mut folder = folder_of(&protection.entries[number].path);
        while let Some(above) = protection.entry_at(folder) {
            let is_missing = evidence.states.get(&above) == Some(&FileState::Missing);
            all.extend(is_missing.then_some(above));
            folder = folder_of(folder);
        }
    }
    all.into_iter().collect()
}

/// Splits `wanted` into the entries that can be restored, and the lost ones, which need parity of
/// the layers in `short`: these have too few blocks.
fn split(
    protection: &Protection,
    evidence: &Evidence,
    short: &[usize],
    wanted: Vec<usize>,
) -> (Vec<usize>, Vec<usize>) {
    let is_lost = |&entry: &usize| {
        // A hard link needs the bytes of its file only if the file is restored.
        let file = protection.file_of(entry);
        let is_restored = file == entry || wanted.binary_search(&file).is_ok();
        is_restored && short.iter().any(|&layer| evidence.needs_parity(protection, layer, &[file]))
    };
    let (lost, possible) = wanted.iter().partition(|entry| is_lost(entry));
    (possible, lost)
}

struct RepairRun<'a> {
    protection: &'a Protection,
    job: &'a RepairJob,
    progress: Progress<'a>,
    evidence: Evidence,
    /// The layers whose lost blocks cannot be computed.
    short: Vec<usize>,
    /// The entries that cannot be restored for that reason.
    lost: Vec<usize>,
    /// The files that an earlier repair to the same folder has restored.
    restored_before: HashSet<usize>,
    /// The entries that find no room on their disks.
    crowded: BTreeMap<usize, NoRoom>,
    /// The layers whose parity finds no room on its disk.
    without_room: Vec<usize>,
    target: &'a RestoreTree,
}

/// The files that are being restored, by entry.
type Files<'t> = BTreeMap<usize, Restoring<'t>>;

/// The parity files of a layer that are being written anew, by number.
type Parity = BTreeMap<u16, StagedFile>;

impl<'a> RepairRun<'a> {
    /// Restores the wanted entries, or says what would be restored.
    fn carry_out(mut self, wanted: &[usize], report: &mut RepairReport) -> Result<()> {
        let target = self.target;
        match self.job.dry_run {
            true => self.foretell(wanted, report)?,
            false => self.run(wanted, report)?,
        }
        report.kept = target.kept();
        report.not_kept = target.refused().kinds().collect();
        Ok(())
    }

    fn run(mut self, wanted: &[usize], report: &mut RepairReport) -> Result<()> {
        self.expect_space(wanted, report)?;
        if writes_parity(self.protection, self.job) {
            self.protection.remove_left();
        }
        let new = self.new_folders(wanted);
        self.make_folders(wanted, report)?;
        let mut files = self.begin(wanted, report)?;
        let mut parity = Vec::new();
        for number in 0..self.protection.layers.len() {
            parity.push(self.restore_layer(number, &mut files, report)?);
        }
        let needed = self.finish_files(wanted, files, report)?;
        for (number, parity) in parity.into_iter().enumerate() {
            self.finish_parity(number, parity, report)?;
        }
        self.move_back(report)?;
        self.make_links(wanted, &needed, report)?;
        self.sync_names(report)?;
        self.finish_folders(&new)?;
        self.remove_leftovers(wanted, report);
        self.remember(report);
        self.clean_parity(report);
        if writes_parity(self.protection, self.job) {
            self.protection.name_unnamed();
        }
        self.clean(report)
    }

    /// Removes the unfinished files beside the parity, if this is wanted.
    fn clean_parity(&self, report: &mut RepairReport) {
        if !self.job.clean || self.job.to.is_some() {
            return;
        }
        match self.protection.remove_unfinished() {
            Ok(removed) => report.cleaned.extend(removed),
            Err(error) => report.warn(vec![error.to_string()]),
        }
    }

    /// Removes the copies of what earlier repairs have replaced, if this is wanted and everything
    /// is whole. Otherwise they may have bytes that are nowhere else.
    fn clean(&self, report: &mut RepairReport) -> Result<()> {
        let restored: HashSet<&PathBuf> = report.restored.iter().collect();
        let is_whole = |(number, state): (&usize, &FileState)| {
            let is_moved = matches!(state, FileState::Touched | FileState::Moved(_));
            is_moved || restored.contains(&self.target.path_of(self.path_at(*number)))
        };
        let is_done = report.lost.is_empty() && report.failed.is_empty();
        let is_known = !self.protection.may_lack_entries();
        let is_asked = self.job.clean && self.job.to.is_none();
        if !is_asked || !is_known || !is_done || !self.evidence.states.iter().all(is_whole) {
            return Ok(());
        }
        // Whoever has changed one since the repair began owns it.
        let is_copy =
            |path: &&PathBuf| path.symlink_metadata().is_ok_and(|it| aside::is_copy(path, &it));
        for copy in self.evidence.replaced(self.protection).filter(is_copy) {
            let path = self.target.relative(copy).unwrap_or_default();
            match self.target.remove(&path) {
                Ok(()) => report.cleaned.push(copy.clone()),
                Err(error) => report.fail(copy.clone(), &error),
            }
        }
        Ok(())
    }

    /// Removes the files that an earlier repair of this protection left. They are kept if this
    /// repair did not restore everything, because the next one may find bytes there, and if they
    /// have bytes of changed files that stay as they are.
    fn remove_leftovers(&self, wanted: &[usize], report: &RepairReport) {
        let is_all = !self.protection.is_part() && !self.protection.may_lack_entries();
        if !report.lost.is_empty() || !report.failed.is_empty() || !is_all {
            return;
        }
        if self.job.to.is_none() {
            let is_left = |(number, state): &(&usize, &FileState)| {
                matches!(state, FileState::Changed(_)) && wanted.binary_search(number).is_err()
            };
            let changed = self.evidence.states.iter().filter(is_left).map(|(number, _)| number);
            let needed = self.sources_of(changed);
            let leftovers = self.evidence.leftovers(self.protection);
            leftovers.filter(|path| !needed.contains(*path)).for_each(|path| self.remove(path));
            return;
        }
        self.leftovers_in_target(wanted).iter().for_each(|path| self.remove(path));
    }

    /// Returns what killed repairs to another folder have left there, in the folders that get
    /// something.
    fn leftovers_in_target(&self, wanted: &[usize]) -> Vec<PathBuf> {
        // Hard links are made with their files, whether they are wanted or not.
        let is_written = |(number, entry): &(usize, &ProtectedEntry)| {
            let is_link = matches!(entry.kind, EntryKind::HardLink { .. });
            is_link || wanted.binary_search(number).is_ok()
        };
        let written = self.protection.entries.iter().enumerate().filter(is_written);
        let folders = written.map(|(_, entry)| folder_of(&entry.path));
        let folders = folders.collect::<BTreeSet<&[u8]>>().into_iter();
        folders.flat_map(|folder| self.target.leftovers_in(folder)).collect()
    }

    /// Removes something that a killed repair has left. If the system refuses, it stays.
    fn remove(&self, leftover: &Path) {
        if let Some(path) = self.target.relative(leftover) {
            let _ = self.target.remove(&path);
        }
    }

    fn make_folders(&self, wanted: &[usize], report: &mut RepairReport) -> Result<()> {
        for &number in wanted {
            let entry = &self.protection.entries[number];
            if entry.kind == EntryKind::Folder {
                let made = self.target.make_folder(entry);
                self.note(made, &entry.path, report)?;
            }
        }
        Ok(())
    }

    /// Notes what was restored, or why it was not. It also is restored if another repair was
    /// faster, and has perhaps removed the unfinished file of this one.
    ///
    /// # Errors
    /// If the error concerns more than one file.
    fn note(&self, done: Result<()>, path: &[u8], report: &mut RepairReport) -> Result<()> {
        let place = self.target.path_of(path);
        match done {
            Ok(()) => report.restored.push(place),
            Err(_) if self.is_whole_now(path) => report.restored.push(place),
            Err(error) => report.fail(place, &expect_survivable(error)?),
        }
        Ok(())
    }

    /// Returns the path in the target at which an entry is restored: where it is now, if the file
    /// system takes that name for the recorded one.
    fn path_at(&self, number: usize) -> &[u8] {
        match self.job.to.is_none() {
            true => self.protection.path_now(number, &self.evidence.tree),
            false => &self.protection.entries[number].path,
        }
    }

    fn begin(&self, wanted: &[usize], report: &mut RepairReport) -> Result<Files<'a>> {
        let mut files = Files::new();
        for &number in wanted {
            let entry = &self.protection.entries[number];
            let EntryKind::File { size, .. } = entry.kind else { continue };
            let path = self.path_at(number);
            if self.restored_before.contains(&number) {
                self.note(Ok(()), path, report)?;
                continue;
            }
            if let Some(refused) = self.crowded.get(&number) {
                self.note(Err(self.no_room(refused)), path, report)?;
                continue;
            }
            if let Some(name) = self.other_name(number) {
                self.note(self.link_to(name, number), path, report)?;
                continue;
            }
            let resumed = self.resumed(number).and_then(|left| {
                self.target.resume(path, name_bytes(left.file_name()?), self.seen(number))
            });
            let begun =
                resumed.map_or_else(|| self.target.begin(path, size, self.seen(number)), Ok);
            match begun {
                Ok(restoring) => _ = files.insert(number, restoring),
                Err(error) => self.note(Err(error), path, report)?,
            }
        }
        Ok(files)
    }

    /// Returns what has the name of an entry, if it may be replaced.
    fn seen(&self, number: usize) -> Option<Seen> {
        let found = self.evidence.tree.of(number).filter(|_| self.job.to.is_none())?;
        let state = self.evidence.states.get(&number);
        let is_changed = matches!(state, Some(FileState::Changed(_)));
        let is_kept = is_changed || matches!(state, Some(FileState::Damaged(_)));
        Some(Seen { modified: found.modified, is_kept, is_changed })
    }

    /// Whether an earlier repair to the same folder has restored an entry.
    fn was_restored(&self, entry: &ProtectedEntry) -> bool {
        self.job.to.is_some() && self.is_whole_at(entry, &self.target.path_of(&entry.path))
    }

    /// Whether the entry with a path is whole there now.
    fn is_whole_now(&self, path: &[u8]) -> bool {
        let entry = self.protection.entry_at(path);
        let entry = entry.map(|number| &self.protection.entries[number]);
        entry.is_some_and(|entry| self.is_whole_at(entry, &self.target.path_of(path)))
    }

    /// Whether the file or the link of an entry is at a path, with its bytes.
    fn is_whole_at(&self, entry: &ProtectedEntry, path: &Path) -> bool {
        let has = |file: &ProtectedEntry| match file.kind {
            EntryKind::File { size, digest, .. } => digest_of(path, size) == Some(digest),
            _ => false,
        };
        match &entry.kind {
            EntryKind::Folder => false,
            EntryKind::File { .. } => has(entry),
            EntryKind::HardLink { target } => {
                let file = self.protection.entry_at(target);
                file.is_some_and(|file| has(&self.protection.entries[file]))
            }
            EntryKind::Symlink { target } => std::fs::read_link(path)
                .is_ok_and(|now| name_bytes(now.as_os_str()) == target.as_slice()),
        }
    }

    /// Makes the names of what was restored durable.
    fn sync_names(&self, report: &mut RepairReport) -> Result<()> {
        for (folder, error) in self.target.sync_names() {
            report.fail(self.target.path_of(&folder), &expect_survivable(error)?);
        }
        Ok(())
    }

    /// Returns the numbers of the parity files of a layer that are to be written anew.
    fn broken(&self, number: usize) -> Vec<u16> {
        let is_left = self.short.contains(&number) || self.without_room.contains(&number);
        if !writes_parity(self.protection, self.job) || is_left {
            return Vec::new();
        }
        self.evidence.broken_parity(self.protection, number)
    }

    /// Refuses to make a hard link to a file that was changed and stays so: the link would get
    /// bytes that it never had.
    fn expect_unchanged(&self, number: usize, wanted: &[usize]) -> Result<()> {
        let entry = &self.protection.entries[number];
        let EntryKind::HardLink { target } = &entry.kind else { return Ok(()) };
        let is_left = |file: usize| self.is_own(file) && wanted.binary_search(&file).is_err();
        match self.protection.entry_at(target).is_some_and(is_left) {
            false => Ok(()),
            true => Err(Error::busy(format!(
                "{} is another name of {}, which was changed and stays as it is; \
                 --restore-changed restores both",
                shown(&self.target.path_of(&entry.path)),
                shown(&self.target.path_of(target))
            ))),
        }
    }

    /// Returns the folders that are made. In another folder, those that are there already stay as
    /// they are.
    fn new_folders(&self, wanted: &[usize]) -> HashSet<usize> {
        let entries = self.protection.entries.iter().enumerate();
        let folders = entries.filter(|(_, entry)| entry.kind == EntryKind::Folder);
        let is_new = |number: usize, entry: &ProtectedEntry| match self.job.to {
            None => wanted.binary_search(&number).is_ok(),
            Some(_) => self.target.path_of(&entry.path).symlink_metadata().is_err(),
        };
        folders.filter(|&(number, entry)| is_new(number, entry)).map(|(number, _)| number).collect()
    }

    /// Gives new folders their modes and times, and others the times that they had.
    fn finish_folders(&self, new: &HashSet<usize>) -> Result<()> {
        let entries = self.protection.entries.iter().enumerate().rev();
        for (number, entry) in entries.filter(|(_, entry)| entry.kind == EntryKind::Folder) {
            let had_time = || {
                let found = self.evidence.tree.of(number);
                found.is_some_and(|found| found.modified == entry.modified)
            };
            let is_in_root = self.job.to.is_none();
            let done = match new.contains(&number) {
                true => self.target.finish_folder(entry),
                false if is_in_root && had_time() => self.target.set_folder_time(entry),
                false => Ok(()),
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

/// Returns an error that concerns one file or one layer, so that the repair can go on.
///
/// # Errors
/// If it concerns everything.
fn expect_survivable(error: Error) -> Result<Error> {
    match error.kind() {
        ErrorKind::Memory | ErrorKind::Internal => Err(error),
        _ => Ok(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    /// A file that may not be read can be computed, but not put in its place.
    #[test]
    fn unreadable_files_are_restored_elsewhere() {
        let states = BTreeMap::from([(3, FileState::Unreadable("no".to_owned()))]);
        let (elsewhere, layers) = Default::default();
        let evidence = Evidence { tree: Tree::default(), states, elsewhere, layers };
        assert!(wanted(&RepairJob::default(), &evidence, |_| false).is_empty());
        let elsewhere = RepairJob::default().to(PathBuf::from("elsewhere"));
        assert_eq!(wanted(&elsewhere, &evidence, |_| false), [3]);
    }
}
