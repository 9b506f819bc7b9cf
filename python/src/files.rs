//! Shard files.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use paritas_shards::{EncodeJob, FileSource, FileTarget, Inventory, RepairJob, Timestamp, scan};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::code::CodeOrSpec;
use crate::codec::number_of_threads;
use crate::errors::{Result, each, of_types, refused, wrong_argument};
use crate::results::{ResultObject, results};
use crate::signals::run;

results!(VerifyReport, ShardReport, RepairReport);

/// One path, or several.
pub struct Paths(Vec<PathBuf>);

impl Paths {
    /// Returns the paths.
    ///
    /// # Errors
    /// If there is none, or one cannot be the name of a file.
    pub fn some(self) -> Result<Vec<PathBuf>> {
        match self.0.is_empty() {
            true => Err(wrong_argument("at least one path is needed; got an empty list")),
            false => self.any(),
        }
    }

    /// Returns the paths, of which there may be none.
    ///
    /// # Errors
    /// If one cannot be the name of a file.
    pub fn any(self) -> Result<Vec<PathBuf>> {
        match self.0.iter().find(|path| path.as_os_str().as_encoded_bytes().contains(&0)) {
            Some(path) => {
                Err(wrong_argument(format!("{path:?} has a NUL, which names cannot have")))
            }
            None => Ok(self.0),
        }
    }
}

impl FromPyObject<'_, '_> for Paths {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        one_or_several(object, "a path or a list of paths is needed").map(Self)
    }
}

/// Patterns, as those of `.gitignore`.
#[derive(Default)]
pub struct Patterns(pub Vec<String>);

impl FromPyObject<'_, '_> for Patterns {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        one_or_several(object, "a pattern or a list of patterns is needed").map(Self)
    }
}

/// Reads an argument that is one `T` or a list of them.
fn one_or_several<T: for<'a, 'py> FromPyObject<'a, 'py>>(
    object: Borrowed<'_, '_, PyAny>,
    what: &str,
) -> PyResult<Vec<T>> {
    match object.extract::<T>().map_err(Into::into) {
        Ok(one) => Ok(vec![one]),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
            object.extract::<Vec<T>>().map_err(|error| of_types(error, what, &object))
        }
        Err(error) => Err(error),
    }
}

/// Returns a time as Python has it: in seconds since 1970.
pub fn seconds(time: Timestamp) -> f64 {
    time.seconds as f64 + f64::from(time.nanoseconds) / 1e9
}

/// Returns the time of a number of seconds since 1970.
pub fn timestamp(seconds: f64) -> Result<Timestamp> {
    let time =
        Duration::try_from_secs_f64(seconds.abs()).ok().and_then(|distance| match seconds < 0.0 {
            true => SystemTime::UNIX_EPOCH.checked_sub(distance),
            false => SystemTime::UNIX_EPOCH.checked_add(distance),
        });
    time.and_then(Timestamp::of)
        .ok_or_else(|| wrong_argument(format!("a time must be seconds since 1970; got {seconds}")))
}

/// Opens a file that is stored.
pub fn open(path: &Path) -> Result<FileSource> {
    FileSource::open(path, String::new()).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => wrong_argument(format!("{} is a directory", path.display())),
        _ => refused(path, &error),
    })
}

/// Encodes the file `source` into one shard file for each node of `code`, a `Code` or its spec, by
/// default 4+2: shard i goes to directory i modulo their number. The directories must exist.
/// Returns the paths of the shards.
///
/// `name` is the object's name, by default that of the file. If there are shards of another object
/// of this name, raises ExistsError, unless `force` is set. Without `sync`, the shards need not be
/// on disk when this returns. `threads` is the largest number of threads, by default the number of
/// processors.
#[pyfunction]
#[pyo3(signature = (source, directories, code = CodeOrSpec::default(), *, name = None, force = false, sync = true, threads = None))]
#[expect(clippy::too_many_arguments, reason = "Python's callers name them")]
pub fn encode_file(
    py: Python<'_>,
    source: PathBuf,
    directories: Paths,
    code: CodeOrSpec,
    name: Option<OsString>,
    force: bool,
    sync: bool,
    threads: Option<usize>,
) -> Result<Vec<PathBuf>> {
    let (code, threads) = (code.code(py)?, number_of_threads(threads)?);
    let directories = directories.some()?;
    let name = name.or_else(|| source.file_name().map(OsString::from));
    let name = name.ok_or_else(|| wrong_argument("the source has no name; give one"))?;
    run(py, |progress| {
        let FileSource { stream, length, attributes } = open(&source)?;
        let job = EncodeJob::new(code, name, directories);
        let job = job.length_hint(length).attributes(attributes);
        let job = job.force(force).sync(sync).threads(threads);
        Ok(paritas_shards::encode(&job, stream, progress)?.shards)
    })
}

/// Writes the object whose shards are in `paths` (files or directories) to the file `target`, which
/// appears under its name when it is complete and its digest is right. If there are shards of
/// several objects, `name` chooses one by its name or the beginning of its id.
///
/// Raises NotFoundError if there are no shards, StorageError if there are none and something in
/// `paths` cannot be read, ParameterError if several objects match, LossError if too much is lost,
/// and ExistsError if `target` exists and `force` is not set.
#[pyfunction]
#[pyo3(signature = (paths, target, *, name = None, force = false, sync = true, threads = None))]
pub fn decode_file(
    py: Python<'_>,
    paths: Paths,
    target: PathBuf,
    name: Option<OsString>,
    force: bool,
    sync: bool,
    threads: Option<usize>,
) -> Result<()> {
    let (paths, threads) = (paths.some()?, number_of_threads(threads)?);
    run(py, |progress| {
        let inventory = scan(&paths).expect_some(&paths)?;
        let object = inventory.choose(name.as_deref())?;
        let target = FileTarget::new(target).force(force).sync(sync);
        paritas_shards::decode(object, target, threads, progress)?;
        Ok(())
    })
}

#[derive(IntoPyObject)]
pub struct VerifyReport {
    name: OsString,
    id: String,
    code: String,
    length: Option<u64>,
    status: &'static str,
    tolerable: usize,
    shards: Vec<ResultObject<ShardReport>>,
    lost: Vec<(u64, u64)>,
    reason: Option<String>,
}

#[derive(IntoPyObject)]
pub struct ShardReport {
    shard: usize,
    state: &'static str,
    paths: Vec<PathBuf>,
}

/// Reads every block of the objects whose shards are in `paths`. Returns a report for each object.
/// With `deep`, it also recomputes the parity from the data. Raises NotFoundError if there are no
/// shards, if some are of a version or code that is not known, or if a path does not exist, and
/// StorageError if a path cannot be read.
#[pyfunction]
#[pyo3(signature = (paths, *, deep = false, threads = None))]
pub fn verify_files(
    py: Python<'_>,
    paths: Paths,
    deep: bool,
    threads: Option<usize>,
) -> Result<Vec<ResultObject<VerifyReport>>> {
    let (paths, threads) = (paths.some()?, number_of_threads(threads)?);
    let verify = if deep { paritas_shards::verify_deep } else { paritas_shards::verify };
    let reports = run(py, |progress| -> Result<Vec<_>> {
        let found = scan(&paths).expect_some(&paths)?;
        expect_read(&found)?;
        let verified = found.objects.into_iter().map(|object| {
            let report = verify(&object, threads, progress)?;
            Ok((object, report))
        });
        verified.collect()
    })?;
    Ok(reports.into_iter().map(|(object, report)| shown(&object, report)).collect())
}

fn shown(
    object: &paritas_shards::Object,
    report: paritas_shards::VerifyReport,
) -> ResultObject<VerifyReport> {
    let shard = |shard: &paritas_shards::ShardReport| {
        let paths = shard.files.iter().map(|file| file.path.clone()).collect();
        ResultObject(ShardReport { shard: shard.index, state: shard.state.name(), paths })
    };
    ResultObject(VerifyReport {
        name: object.name().to_owned(),
        id: object.id().to_string(),
        code: object.code().spec().to_string(),
        length: object.length(),
        status: report.status.name(),
        tolerable: report.tolerable,
        shards: report.shards.iter().map(shard).collect(),
        lost: report.lost.into_iter().map(|range| (range.start, range.end)).collect(),
        reason: report.reason,
    })
}

#[derive(IntoPyObject)]
pub struct RepairReport {
    name: OsString,
    id: String,
    repaired: Vec<usize>,
    written: Vec<PathBuf>,
    warnings: Vec<String>,
}

/// Checks that all given paths could be read, and that no shard is of a version or code that is not
/// known: objects would be passed over.
fn expect_read(found: &Inventory) -> paritas_shards::Result<()> {
    found.unread_paths().or_else(|| found.unknown_shards()).map_or(Ok(()), Err)
}

/// Makes every shard of the objects in `paths` whole again. New shards go to the directory `to`,
/// which must exist, by default to the directories in `paths` and those of the other shards; one of
/// these that does not exist is made if shards belong there. Returns a report for each object. If
/// some objects cannot be repaired, because too much is lost or shards cannot be opened, or if
/// shards or paths cannot be read, all others are repaired, and then the first such error is
/// raised.
#[pyfunction]
#[pyo3(signature = (paths, *, to = None, sync = true, threads = None))]
pub fn repair_files(
    py: Python<'_>,
    paths: Paths,
    to: Option<PathBuf>,
    sync: bool,
    threads: Option<usize>,
) -> Result<Vec<ResultObject<RepairReport>>> {
    let (paths, threads) = (paths.some()?, number_of_threads(threads)?);
    run(py, |progress| {
        let job = RepairJob::default().to(to).sync(sync).threads(threads);
        // Directories that do not exist are not searched, but shards may be written there.
        let there = paths.iter().filter(|path| path.symlink_metadata().is_ok()).cloned();
        let there = Some(there.collect::<Vec<_>>()).filter(|there| !there.is_empty());
        let mut inventory = scan(there.as_ref().unwrap_or(&paths)).expect_some(&paths)?;
        let all_read = expect_read(&inventory);
        inventory.offer(&paths);
        let repair = |object: paritas_shards::Object| -> Result<_> {
            let report = paritas_shards::repair(&object, &job, progress)?;
            report.expect_all_read(&object)?;
            Ok(ResultObject(RepairReport {
                name: object.name().to_owned(),
                id: object.id().to_string(),
                repaired: report.repaired.iter().map(|shard| shard.shard).collect(),
                written: report.repaired.into_iter().map(|shard| shard.path).collect(),
                warnings: report.warnings,
            }))
        };
        let reports = each(inventory.objects, repair)?;
        all_read?;
        Ok(reports)
    })
}
