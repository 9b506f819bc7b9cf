//! Shard files, as the command `paritas` writes and reads them.

use std::ffi::{OsString, c_char};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use paritas::Code;
use paritas_shards::{
    EncodeJob, FileSource, FileTarget, Object, RepairJob, ShardState, State, scan,
};

use crate::memory;
use crate::status::{Failure, Result, guard, outcome, paritas_status};

/// Ignores progress.
const SILENT: paritas_shards::Progress<'static> = &|_| {};

/// Writes the shards of the file at `file` into the `folder_count` folders of `folders`: shard i
/// into folder i modulo their number. The folders must exist. `spec` names the code. If the folders
/// have shards of that name, also of the same file, the call is refused with PARITAS_ARGUMENTS
/// unless `force` is set; the old shards are kept until the new ones are complete.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_file_encode(
    file: *const c_char,
    spec: *const c_char,
    folders: *const *const c_char,
    folder_count: usize,
    force: bool,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let (path, spec) = unsafe { (memory::path(file, "file")?, memory::text(spec, "spec")?) };
        // SAFETY: as the caller promises.
        let folders = unsafe { memory::paths(folders, folder_count, "folders") }?;
        encode(&path, spec.parse()?, folders, force)
    })
}

fn encode(path: &Path, code: Code, folders: Vec<PathBuf>, force: bool) -> Result<()> {
    if folders.is_empty() {
        return Err(Failure::arguments("folders: at least one is needed"));
    }
    let name = path
        .file_name()
        .map(OsString::from)
        .ok_or_else(|| Failure::arguments(format!("{} has no file name", path.display())))?;
    let FileSource { stream, length, attributes } = open(path)?;
    let job = EncodeJob::new(code, name, folders).length_hint(length).attributes(attributes);
    paritas_shards::encode(&job.force(force), stream, SILENT)?;
    Ok(())
}

/// Opens a file that is stored.
pub(crate) fn open(path: &Path) -> Result<FileSource> {
    FileSource::open(path, String::new()).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => Failure::arguments(format!("{} is a folder", path.display())),
        _ => Failure::io(format!("{}: {error}", path.display())),
    })
}

/// Looks for shards in files and folders, and chooses the object whose name or beginning of the id
/// is `wanted`; without `wanted`, the only object.
fn with_object<T>(
    paths: &[PathBuf],
    wanted: Option<&str>,
    act: impl FnOnce(&Object) -> Result<T>,
) -> Result<T> {
    let mut inventory = scan(paths).expect_some(paths)?;
    inventory.offer(paths);
    act(inventory.choose(wanted.map(AsRef::as_ref))?)
}

/// Reads the arguments that all functions of this file share, and acts on the object.
///
/// # Safety
/// The pointers are null or as [`paritas_file_decode`] describes.
unsafe fn on_object<T>(
    paths: *const *const c_char,
    path_count: usize,
    object: *const c_char,
    act: impl FnOnce(&Object) -> Result<T>,
) -> Result<T> {
    // SAFETY: as the caller promises.
    let paths = unsafe { memory::paths(paths, path_count, "paths") }?;
    if paths.is_empty() {
        return Err(Failure::arguments("paths: at least one is needed"));
    }
    let wanted = (!object.is_null())
        // SAFETY: as the caller promises.
        .then(|| unsafe { memory::text(object, "object") })
        .transpose()?;
    with_object(&paths, wanted, act)
}

/// Writes an object to the file `output`, from the shards found in the `path_count` files and
/// folders of `paths`. `object` chooses one by its name or the beginning of its id; it may be null
/// if there is only one. If `output` exists, the call is refused with PARITAS_ARGUMENTS unless
/// `force` is set. The file appears under its name when it is complete and its digest is right.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_file_decode(
    paths: *const *const c_char,
    path_count: usize,
    object: *const c_char,
    output: *const c_char,
    force: bool,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let output = unsafe { memory::path(output, "output") }?;
        let target = FileTarget::new(output).force(force);
        let act = |object: &Object| Ok(paritas_shards::decode(object, target, None, SILENT)?);
        // SAFETY: as the caller promises.
        unsafe { on_object(paths, path_count, object, act) }.map(drop)
    })
}

/// The result of a verification. In a code of several stages, the numbers of shards count the parts
/// that are stored.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_verify_report {
    /// Shards that are present and intact.
    pub intact: usize,
    /// Shards that are damaged.
    pub damaged: usize,
    /// Shards that are missing or cannot be read.
    pub missing: usize,
    /// Number of further shards that may be lost, whichever they are.
    pub tolerable: usize,
    /// Bytes of the object; 0 if they are unknown.
    pub object_bytes: u64,
}

/// Verifies every byte of an object's shards, given as for paritas_file_decode(). Returns
/// PARITAS_OK if all shards are intact, PARITAS_REPAIRABLE if the object can be repaired,
/// PARITAS_LOST if it cannot, PARITAS_IO if this depends on shards that cannot be read, and
/// PARITAS_CHECK_FAILED if the shards contradict each other. In all of these cases `found` receives
/// the report, unless it is null. Unless all shards are intact, paritas_last_message() tells what
/// is wrong.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_file_verify(
    paths: *const *const c_char,
    path_count: usize,
    object: *const c_char,
    found: *mut paritas_verify_report,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let (verdict, verified) = unsafe { on_object(paths, path_count, object, verify) }?;
        // SAFETY: as the caller promises.
        unsafe { memory::tell(found, verified, "found") }?;
        verdict
    })
}

/// Verifies an object. Returns the verdict apart from the report, because the caller gets the
/// report even if the verdict is an error.
fn verify(object: &Object) -> Result<(Result<()>, paritas_verify_report)> {
    let report = paritas_shards::verify(object, None, SILENT)?;
    let count = |states: &[ShardState]| {
        report.shards.iter().filter(|shard| states.contains(&shard.state)).count()
    };
    let found = paritas_verify_report {
        intact: count(&[ShardState::Intact]),
        damaged: count(&[ShardState::Damaged, ShardState::Inconsistent]),
        missing: count(&[ShardState::Missing, ShardState::Unreadable]),
        tolerable: report.tolerable,
        object_bytes: object.length().unwrap_or(0),
    };
    let why = match report.status {
        State::Repairable => {
            let (damaged, missing) = (found.damaged, found.missing);
            format!("; damaged shards: {damaged}; missing or unreadable: {missing}")
        }
        _ => report.reason.map(|reason| format!(": {reason}")).unwrap_or_default(),
    };
    Ok((outcome(report.status, &object.label(), "unread shards", &why), found))
}

/// Writes the damaged and missing shards of an object anew, into the folder `to`, or where they
/// belong if `to` is null. The object is given as for paritas_file_decode(). `repaired` receives
/// the number of shards that were written, unless it is null. If shards could not be opened, they
/// stay as they are, and PARITAS_IO is returned once all others are whole.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_file_repair(
    paths: *const *const c_char,
    path_count: usize,
    object: *const c_char,
    to: *const c_char,
    repaired: *mut usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let to = (!to.is_null()).then(|| unsafe { memory::path(to, "to") }).transpose()?;
        let job = RepairJob::default().to(to);
        let act = |object: &Object| {
            let report = paritas_shards::repair(object, &job, SILENT)?;
            Ok((report.repaired.len(), report.expect_all_read(object)))
        };
        // SAFETY: as the caller promises.
        let (written, all_read) = unsafe { on_object(paths, path_count, object, act) }?;
        // SAFETY: as the caller promises.
        unsafe { memory::tell(repaired, written, "repaired") }?;
        Ok(all_read?)
    })
}
