//! Protections: parity beside files that stay where they are.

use std::path::PathBuf;

use paritas_protect::{
    Error, FileState, ProtectJob, Protection, RepairJob, Skipped, State, UpdateJob, Updated,
    VerifyOptions,
};
use pyo3::prelude::*;

use crate::codec::number_of_threads;
use crate::errors::{Result, each};
use crate::files::{Paths, Patterns, seconds};
use crate::results::{ResultObject, results};
use crate::signals::run;

results!(ProtectReport, UpdateReport, ProtectionInfo, ProtectionReport, FileFinding, RestoreReport);

#[derive(IntoPyObject)]
pub struct ProtectReport {
    id: String,
    files: u64,
    bytes: u64,
    parity_files: Vec<PathBuf>,
    stored_bytes: u64,
    skipped: Vec<(PathBuf, String)>,
    unmatched: Vec<String>,
    warnings: Vec<String>,
}

/// Puts parity beside files and folders, as `paritas protect` does: the files stay as they are, and
/// any damage to them can be repaired as long as the lost part is not larger than the parity.
///
/// `redundancy` is the size of the parity. `exclude` has patterns of paths that are left out, by
/// the rules of gitignore. The parity goes to `.paritas` in the root, or to the directories
/// `parity_dirs`, which must exist. `label` begins the names of its files. Raises StorageError if
/// the files are protected already, unless `force` is set (`update` follows changes); files that
/// cannot be read are named in `skipped`.
#[pyfunction]
#[pyo3(signature = (paths, *, redundancy = "10%", parity_dirs = None, exclude = Patterns::default(), label = None, force = false, sync = true, threads = None))]
#[expect(clippy::too_many_arguments, reason = "Python's callers name them")]
pub fn protect(
    py: Python<'_>,
    paths: Paths,
    redundancy: &str,
    parity_dirs: Option<Paths>,
    exclude: Patterns,
    label: Option<String>,
    force: bool,
    sync: bool,
    threads: Option<usize>,
) -> Result<ResultObject<ProtectReport>> {
    let job = ProtectJob::new(paths.some()?)
        .redundancy(redundancy.parse()?)
        .parity_dirs(parity_dirs.map_or_else(|| Ok(Vec::new()), Paths::any)?)
        .excludes(exclude.0)
        .label(label)
        .force(force)
        .sync(sync)
        .threads(number_of_threads(threads)?);
    run(py, |progress| {
        let plan = paritas_protect::plan(&job)?;
        let report = paritas_protect::protect(&plan, progress)?;
        Ok(ResultObject(ProtectReport {
            id: report.id.to_string(),
            files: report.files,
            bytes: report.bytes,
            parity_files: report.parity_files,
            stored_bytes: report.stored_bytes,
            skipped: report.skipped.into_iter().map(with_reason).collect(),
            unmatched: report.unmatched_excludes,
            warnings: report.warnings,
        }))
    })
}

fn with_reason(Skipped { path, reason, .. }: Skipped) -> (PathBuf, String) {
    (path, reason)
}

#[derive(IntoPyObject)]
pub struct UpdateReport {
    id: String,
    updated: &'static str,
    kept: u64,
    added: Vec<PathBuf>,
    changed: Vec<PathBuf>,
    gone: Vec<PathBuf>,
    parity_files: Vec<PathBuf>,
    held: Vec<(PathBuf, String)>,
    skipped: Vec<(PathBuf, String)>,
    warnings: Vec<String>,
}

impl UpdateReport {
    fn of(old: String, report: paritas_protect::UpdateReport) -> Self {
        let with_reasons = |skipped: Vec<Skipped>| skipped.into_iter().map(with_reason).collect();
        let (id, parity_files, new) = match report.protected {
            Some(made) => (made.id.to_string(), made.parity_files, made.warnings),
            None => (old, Vec::new(), Vec::new()),
        };
        let warnings = report.warnings.into_iter().chain(new).collect();
        Self {
            id,
            updated: match report.updated {
                Updated::Nothing => "nothing",
                Updated::Layer => "layer",
                Updated::Anew => "anew",
            },
            kept: report.kept,
            added: report.files.added,
            changed: report.files.changed,
            gone: report.files.gone,
            parity_files,
            held: with_reasons(report.held),
            skipped: with_reasons(report.skipped),
            warnings,
        }
    }
}

/// Brings the protections at `paths` up to date after files were added, changed or removed on
/// purpose, as `paritas protect --update` does. Returns a report for each protection.
///
/// Files with the same size and time count as unchanged; with `checksum`, they are read and
/// compared. Raises LossError if a file is damaged, which must be repaired first. Raises
/// StorageError, and writes nothing, if more than half of the files or bytes, and at least 20
/// files, are gone or changed, unless `accept_changes` is set; files that match the patterns
/// `accept_removals` may be gone in any case. If some protections cannot be updated, all others are
/// updated before the first error is raised.
#[pyfunction]
#[pyo3(signature = (paths, *, checksum = false, accept_changes = false, accept_removals = Patterns::default(), sync = true, threads = None))]
pub fn update(
    py: Python<'_>,
    paths: Paths,
    checksum: bool,
    accept_changes: bool,
    accept_removals: Patterns,
    sync: bool,
    threads: Option<usize>,
) -> Result<Vec<ResultObject<UpdateReport>>> {
    let job = UpdateJob::default()
        .checksum(checksum)
        .accept_changes(accept_changes)
        .accept_removals(accept_removals.0)
        .sync(sync)
        .threads(number_of_threads(threads)?);
    let paths = paths.some()?;
    run(py, |progress| {
        let update = |protection: &Protection| -> Result<_> {
            let report = paritas_protect::update(protection, &job, progress)?;
            Ok(ResultObject(UpdateReport::of(protection.id().to_string(), report)))
        };
        each(&paritas_protect::find(&paths)?, update)
    })
}

#[derive(IntoPyObject)]
pub struct ProtectionInfo {
    id: String,
    label: String,
    root: PathBuf,
    files: u64,
    bytes: u64,
    redundancy: String,
    parity_bytes: u64,
    parity_files: Vec<PathBuf>,
    exclude: Vec<String>,
    created: f64,
}

/// Returns the known facts about the protections at `paths`, which are protected directories and
/// files, parity files, or directories with parity. Reads only catalogues. Raises NotFoundError if
/// a path does not belong to a protection.
#[pyfunction]
pub fn info(py: Python<'_>, paths: Paths) -> Result<Vec<ResultObject<ProtectionInfo>>> {
    let describe = |protection: &Protection| {
        ResultObject(ProtectionInfo {
            id: protection.id().to_string(),
            label: protection.label(),
            root: protection.root().to_owned(),
            files: protection.files(),
            bytes: protection.bytes(),
            redundancy: protection.redundancy().to_string(),
            parity_bytes: protection.parity_bytes(),
            parity_files: protection.parity_files().map(ToOwned::to_owned).collect(),
            exclude: protection.excludes().to_vec(),
            created: seconds(protection.created()),
        })
    };
    let paths = paths.some()?;
    run(py, |_| Ok(paritas_protect::find(&paths)?.iter().map(describe).collect()))
}

#[derive(IntoPyObject)]
pub struct ProtectionReport {
    id: String,
    root: PathBuf,
    status: &'static str,
    files: u64,
    intact_files: u64,
    findings: Vec<ResultObject<FileFinding>>,
    parity: Vec<PathBuf>,
    new: Vec<PathBuf>,
}

#[derive(IntoPyObject)]
pub struct FileFinding {
    path: PathBuf,
    state: &'static str,
    ranges: Vec<(u64, u64)>,
    moved_to: Option<PathBuf>,
    reason: Option<String>,
}

impl From<paritas_protect::FileFinding> for FileFinding {
    fn from(finding: paritas_protect::FileFinding) -> Self {
        let pairs = |ranges: Vec<std::ops::Range<u64>>| {
            ranges.into_iter().map(|range| (range.start, range.end)).collect()
        };
        let state = finding.state.name();
        let (ranges, moved_to, reason) = match finding.state {
            FileState::Damaged(ranges) | FileState::Changed(ranges) => (pairs(ranges), None, None),
            FileState::Moved(path) => (Vec::new(), Some(path), None),
            FileState::Unreadable(reason) => (Vec::new(), None, Some(reason)),
            FileState::Touched | FileState::Missing => (Vec::new(), None, None),
        };
        Self { path: finding.path, state, ranges, moved_to, reason }
    }
}

/// Reads every protected file and all parity of the protections at `paths`. Returns a report for
/// each protection; damage does not raise an exception. With `quick`, files with unchanged size and
/// times count as intact and are not read.
#[pyfunction]
#[pyo3(signature = (paths, *, quick = false, threads = None))]
pub fn verify(
    py: Python<'_>,
    paths: Paths,
    quick: bool,
    threads: Option<usize>,
) -> Result<Vec<ResultObject<ProtectionReport>>> {
    let options = VerifyOptions::default().quick(quick).threads(number_of_threads(threads)?);
    let paths = paths.some()?;
    let verified = run(py, |progress| -> Result<Vec<_>> {
        let found = paritas_protect::find(&paths)?.into_iter().map(|protection| {
            let report = paritas_protect::verify(&protection, &options, progress)?;
            Ok((protection, report))
        });
        found.collect()
    })?;
    Ok(verified.into_iter().map(|(protection, report)| shown(&protection, report)).collect())
}

fn shown(
    protection: &Protection,
    report: paritas_protect::VerifyReport,
) -> ResultObject<ProtectionReport> {
    let status = report.status.name();
    let findings =
        report.findings.into_iter().map(|finding| ResultObject(FileFinding::from(finding)));
    ResultObject(ProtectionReport {
        id: protection.id().to_string(),
        root: protection.root().to_owned(),
        status,
        files: report.files,
        intact_files: report.intact_files,
        findings: findings.collect(),
        parity: report.parity.into_iter().map(|finding| finding.path).collect(),
        new: report.new,
    })
}

#[derive(IntoPyObject)]
pub struct RestoreReport {
    id: String,
    status: &'static str,
    restored: Vec<PathBuf>,
    moved_back: Vec<(PathBuf, PathBuf)>,
    parity: Vec<PathBuf>,
    kept: Vec<(PathBuf, PathBuf)>,
    warnings: Vec<String>,
}

/// Restores damaged and missing files of the protections at `paths`, and the parity. Files that
/// somebody has changed stay as they are unless `restore_changed` is set, and moved files stay
/// where they are unless `move_back` is set. With `to`, restored files go to that directory, which
/// must exist, and nothing else changes. With `dry_run`, nothing is written, and the reports say
/// what would be written.
///
/// If something cannot be restored, everything else is restored first. Then LossError is raised if
/// too many blocks are lost, or StorageError if the system refused something or files or parity
/// cannot be read.
#[pyfunction]
#[pyo3(signature = (paths, *, to = None, restore_changed = false, move_back = false, dry_run = false, sync = true, threads = None))]
#[expect(clippy::too_many_arguments, reason = "Python's callers name them")]
pub fn repair(
    py: Python<'_>,
    paths: Paths,
    to: Option<PathBuf>,
    restore_changed: bool,
    move_back: bool,
    dry_run: bool,
    sync: bool,
    threads: Option<usize>,
) -> Result<Vec<ResultObject<RestoreReport>>> {
    let job = RepairJob::default()
        .to(to)
        .restore_changed(restore_changed)
        .move_back(move_back)
        .dry_run(dry_run)
        .sync(sync)
        .threads(number_of_threads(threads)?);
    let paths = paths.some()?;
    run(py, |progress| {
        let found = paritas_protect::find(&paths)?;
        let restore = |protection: &Protection| -> Result<_> {
            let report = paritas_protect::repair(protection, &job, progress)?;
            Ok((protection.id().to_string(), report))
        };
        let restored = each(&found, restore)?;
        if !dry_run {
            restored.iter().try_for_each(|(_, report)| expect_whole(report))?;
        }
        Ok(restored.into_iter().map(RestoreReport::of).map(ResultObject).collect())
    })
}

impl RestoreReport {
    fn of((id, report): (String, paritas_protect::RepairReport)) -> Self {
        Self {
            id,
            status: report.found.status.name(),
            restored: report.restored,
            moved_back: report.moved_back,
            parity: report.parity,
            kept: report.kept,
            warnings: report.warnings,
        }
    }
}

/// Raises an exception if something could not be restored.
fn expect_whole(report: &paritas_protect::RepairReport) -> paritas_protect::Result<()> {
    let among = |count: usize| match count {
        1 => String::new(),
        count => format!(" and {} others", count - 1),
    };
    if let Some(first) = report.lost.first() {
        let others = among(report.lost.len());
        let first = first.display();
        return Err(Error::too_few(format!("too few blocks are left for {first}{others}")));
    }
    if let Some(Skipped { path, reason, .. }) = report.failed.first() {
        let others = among(report.failed.len());
        let path = path.display();
        return Err(Error::failed(format!("{path} cannot be restored: {reason}{others}")));
    }
    match report.found.status {
        State::Lost => Err(Error::too_few("the protection is beyond repair")),
        State::Unknown => Err(Error::failed("some files or parity cannot be read")),
        _ => Ok(()),
    }
}
