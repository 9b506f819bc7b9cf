//! Volumes: objects over disks, hosts and buckets.

use std::ffi::{CString, c_char};
use std::future::Future;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::{process, slice};

use paritas::CodecOptions;
use paritas_shards::{FileSource, FileTarget, counted};

// The handle `paritas_volume` has the name of the crate, so the crate gets another one here.
use ::paritas_volume as store;
use store::{Flaw, GetOptions, NodeStatus, ObjectName, PutOptions, Runner, Volume};

use crate::files::open;
use crate::handle::{self, Handle};
use crate::memory;
use crate::status::{Failure, Result, guard, outcome, paritas_status, pointer, value};

/// A volume: objects, each cut into shards on several nodes. May be used by several threads at
/// once, but only in the process that opened it. A process that was forked from it must open the
/// volume again.
pub struct paritas_volume {
    _private: [u8; 0],
}

/// The value behind a handle.
pub struct Opened {
    volume: Volume,
    runner: Runner,
    /// The process in which the threads run.
    process: u32,
}

impl Handle for paritas_volume {
    type Value = Opened;
    const NAME: &'static str = "volume";
}

impl Opened {
    /// Runs work to its end.
    fn run<T>(&self, work: impl Future<Output = store::Result<T>>) -> Result<T> {
        Ok(self.runner.run(work, || false)?)
    }
}

/// Returns the volume of a handle and an object's name.
///
/// # Safety
/// `volume` is null or a handle that lives during `'a`; `name` is null or a text.
unsafe fn named<'a>(
    volume: *const paritas_volume,
    name: *const c_char,
) -> Result<(&'a Opened, ObjectName)> {
    // SAFETY: as the caller promises.
    unsafe { Ok((opened(volume)?, ObjectName::new(memory::text(name, "name")?)?)) }
}

/// Returns the volume of a handle.
///
/// # Safety
/// `volume` is null or a handle that lives during `'a`.
unsafe fn opened<'a>(volume: *const paritas_volume) -> Result<&'a Opened> {
    // SAFETY: as the caller promises.
    let opened = unsafe { handle::open(volume) }?;
    match opened.process == process::id() {
        true => Ok(opened),
        false => Err(Failure::arguments(format!(
            "the volume was opened by process {}; a process that was forked opens it again",
            opened.process
        ))),
    }
}

/// Opens the volume that the volume file `file` describes, as `paritas volume init` writes it, and
/// starts threads for it.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_open(
    file: *const c_char,
    volume: *mut *mut paritas_volume,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let path = unsafe { memory::path(file, "file") };
        let open = || {
            let volume = Volume::open(&path?, |_| CodecOptions::default())?;
            Ok(Opened { volume, runner: Runner::new()?, process: process::id() })
        };
        // SAFETY: as the caller promises.
        unsafe { handle::give(volume, open) }
    })
}

/// Closes a volume. It may be null. Waits at most three seconds for nodes that do not answer. In a
/// process that was forked from the one that opened the volume, does nothing.
///
/// # Safety
/// `volume` is null, or comes from paritas_volume_open() and is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_free(volume: *mut paritas_volume) {
    guard(|| match volume.is_null() {
        true => Ok(()),
        false => {
            // SAFETY: as the caller promises. The threads of another process cannot be waited for.
            let opened = unsafe { opened(volume).and_then(|_| handle::take(volume)) }?;
            opened.runner.stop();
            Ok(())
        }
    });
}

/// Stores an object of `bytes` bytes. An object of this name is replaced. When this returns
/// PARITAS_OK, every reader finds the object; `owed`, which may be null, receives whether something
/// is left for paritas_volume_repair().
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_put(
    volume: *const paritas_volume,
    name: *const c_char,
    object: *const u8,
    bytes: usize,
    owed: *mut bool,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let ((volume, name), object) =
            unsafe { (named(volume, name)?, memory::values(object, bytes, "object")?) };
        let lent = Lent::new(object);
        let mut options = PutOptions::default();
        options.length = Some(bytes as u64);
        let done = volume.run(volume.volume.put(&name, lent.reader(), options));
        drop(lent);
        // SAFETY: as the caller promises.
        unsafe { memory::tell(owed, done?.is_owed, "owed") }
    })
}

/// Stores the file at `file` with its mode and time. In all else like paritas_volume_put().
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_put_file(
    volume: *const paritas_volume,
    name: *const c_char,
    file: *const c_char,
    owed: *mut bool,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let ((volume, name), path) = unsafe { (named(volume, name)?, memory::path(file, "file")?) };
        let FileSource { stream, length, attributes } = open(&path)?;
        let mut options = PutOptions::default();
        (options.attributes, options.length) = (attributes, length);
        let report = volume.run(volume.volume.put(&name, stream, options))?;
        // SAFETY: as the caller promises.
        unsafe { memory::tell(owed, report.is_owed, "owed") }
    })
}

/// Facts about an object of a volume.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_volume_object {
    /// Bytes of the object.
    pub bytes: u64,
    /// The BLAKE3 of its bytes.
    pub digest: [u8; 32],
}

/// Finds an object. Returns PARITAS_NOT_RECOGNISED if there is no object of this name.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_stat(
    volume: *const paritas_volume,
    name: *const c_char,
    found: *mut paritas_volume_object,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let (volume, name) = unsafe { named(volume, name) }?;
        let object = volume.run(volume.volume.find(&name, GetOptions::default()))?;
        let (bytes, digest) = (object.length(), *object.digest().as_bytes());
        // SAFETY: as the caller promises.
        unsafe { memory::tell(found, paritas_volume_object { bytes, digest }, "found") }
    })
}

/// Copies what was noted about an object under `note`, such as `content-type`, to the `bytes` bytes
/// at `text`, with a null byte behind it. `needed`, which may be null, receives the number of bytes
/// that this takes. If there are fewer, returns PARITAS_ARGUMENTS and copies nothing; `text` may be
/// null then. Returns PARITAS_NOT_RECOGNISED if there is no object of this name, or no such note
/// about it.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_note(
    volume: *const paritas_volume,
    name: *const c_char,
    note: *const c_char,
    text: *mut c_char,
    bytes: usize,
    needed: *mut usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let ((volume, name), note) = unsafe { (named(volume, name)?, memory::text(note, "note")?) };
        let object = volume.run(volume.volume.find(&name, GetOptions::default()))?;
        let noted = object
            .notes()
            .get(note)
            .ok_or_else(|| Failure::not_recognised(format!("{name} has no note `{note}`")))?;
        let noted = CString::new(noted.as_str()).map_err(|_| {
            Failure::io(format!("the note `{note}` of {name} has a null byte in it"))
        })?;
        let noted = noted.as_bytes_with_nul();
        // SAFETY: as the caller promises.
        unsafe { memory::tell(needed, noted.len(), "needed") }?;
        if bytes < noted.len() {
            let count = noted.len();
            let message = format!("the note `{note}` of {name} takes {count} bytes; got {bytes}");
            return Err(Failure::arguments(message));
        }
        // SAFETY: as the caller promises.
        let text = unsafe { memory::values_mut(text.cast::<u8>(), noted.len(), "text") }?;
        text.copy_from_slice(noted);
        Ok(())
    })
}

/// Reads `bytes` bytes of an object into `target`, from the byte `start` on. A range beyond the
/// object is refused. If the whole object is read, its digest is checked; if a part is read, each
/// block that is read is checked.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_get(
    volume: *const paritas_volume,
    name: *const c_char,
    start: u64,
    target: *mut u8,
    bytes: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let ((volume, name), mut target) =
            unsafe { (named(volume, name)?, memory::values_mut(target, bytes, "target")?) };
        let object = volume.run(volume.volume.find(&name, GetOptions::default()))?;
        let range = start..start.saturating_add(bytes as u64);
        let is_whole = range == (0..object.length());
        let range = (!is_whole).then_some(range);
        volume.run(volume.volume.read(object, range, &mut target, &|_| {}))?;
        Ok(())
    })
}

/// Writes an object to the file `output`, which appears under its name when it is complete and its
/// digest is right. An existing file is refused unless `force` is set.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_get_file(
    volume: *const paritas_volume,
    name: *const c_char,
    output: *const c_char,
    force: bool,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let ((volume, name), path) =
            unsafe { (named(volume, name)?, memory::path(output, "output")?) };
        let object = volume.run(volume.volume.find(&name, GetOptions::default()))?;
        let target = FileTarget::new(path).force(force);
        volume.run(volume.volume.read_to_file(object, target, &|_| {}))?;
        Ok(())
    })
}

/// Removes an object.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_remove(
    volume: *const paritas_volume,
    name: *const c_char,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let (volume, name) = unsafe { named(volume, name) }?;
        volume.run(volume.volume.remove(&name)).map(drop)
    })
}

/// The names of objects of a volume, in order, with their lengths. May be used by several threads
/// at once, and stays valid when the volume is freed.
pub struct paritas_listing {
    _private: [u8; 0],
}

impl Handle for paritas_listing {
    type Value = Vec<(CString, u64)>;
    const NAME: &'static str = "listing";
}

/// Lists the objects whose names begin with `prefix`; all objects if it is null or empty.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_list(
    volume: *const paritas_volume,
    prefix: *const c_char,
    listing: *mut *mut paritas_listing,
) -> paritas_status {
    guard(|| {
        let list = || {
            // SAFETY: as the caller promises.
            let volume = unsafe { opened(volume) }?;
            let prefix = match prefix.is_null() {
                true => "",
                // SAFETY: as the caller promises.
                false => unsafe { memory::text(prefix, "prefix") }?,
            };
            let found = volume.run(volume.volume.list(prefix))?;
            let named = |name: &ObjectName| CString::new(name.as_str()).unwrap_or_default();
            Ok(found.objects.iter().map(|(name, it)| (named(name), it.length)).collect())
        };
        // SAFETY: as the caller promises.
        unsafe { handle::give(listing, list) }
    })
}

/// Returns the number of objects of a listing.
///
/// # Safety
/// `listing` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_listing_count(listing: *const paritas_listing) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(listing, |objects| objects.len()) }
}

/// Returns the object with this number in a listing.
///
/// # Safety
/// `listing` is null or a handle that lives during `'a`.
unsafe fn listed<'a>(listing: *const paritas_listing, number: usize) -> Result<&'a (CString, u64)> {
    // SAFETY: as the caller promises.
    let objects = unsafe { handle::open(listing) }?;
    let beyond = || format!("there is no object {number} among {}", objects.len());
    objects.get(number).ok_or_else(|| Failure::arguments(beyond()))
}

/// Returns the name of the object `number` of a listing; null beyond the last one. It lives as long
/// as the listing.
///
/// # Safety
/// `listing` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_listing_name(
    listing: *const paritas_listing,
    number: usize,
) -> *const c_char {
    // SAFETY: as the caller promises.
    pointer(|| unsafe { listed(listing, number) }.map(|(name, _)| name.as_ptr()))
}

/// Returns the length in bytes of the object `number` of a listing; 0 beyond the last one.
///
/// # Safety
/// `listing` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_listing_bytes(
    listing: *const paritas_listing,
    number: usize,
) -> u64 {
    // SAFETY: as the caller promises.
    value(|| Ok(unsafe { listed(listing, number) }?.1))
}

/// Frees a listing. It may be null.
///
/// # Safety
/// `listing` is null, or comes from paritas_volume_list() and is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_listing_free(listing: *mut paritas_listing) {
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::free(listing) });
}

/// How an object of a volume is protected.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_volume_verdict {
    /// Shards that no node holds whole.
    pub missing: usize,
    /// Number of further nodes that may be lost, whichever they are.
    pub tolerable: usize,
    /// The stage that the object's parity has reached, from 1; 0 if the object is so small that it
    /// is kept beside its name.
    pub stage: usize,
    /// Number of stages of its code.
    pub stages: usize,
}

/// Looks for the shards of an object on all nodes; with `deep`, reads every block of them. Returns
/// PARITAS_OK if the object is intact, PARITAS_REPAIRABLE if paritas_volume_repair() can restore
/// it, PARITAS_LOST if it cannot, and PARITAS_IO if this depends on nodes that did not answer.
/// Unless the object is intact, paritas_last_message() tells what is wrong. `found` may be null.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_verify(
    volume: *const paritas_volume,
    name: *const c_char,
    deep: bool,
    found: *mut paritas_volume_verdict,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let (volume, name) = unsafe { named(volume, name) }?;
        let verdict = volume.run(volume.volume.verify(&name, deep))?;
        let told = paritas_volume_verdict {
            missing: verdict.missing.len(),
            tolerable: verdict.spare,
            stage: verdict.stage.into(),
            stages: verdict.stages.into(),
        };
        // SAFETY: as the caller promises.
        unsafe { memory::tell(found, told, "found") }?;
        let why = missing(&verdict.missing) + &flaws(&verdict.flaws);
        outcome(verdict.state, verdict.name.as_str(), "absent nodes", &why)
    })
}

/// Returns the shards that are missing, for a message.
fn missing(shards: &[usize]) -> String {
    let shards: Vec<String> = shards.iter().map(usize::to_string).collect();
    match shards.is_empty() {
        true => String::new(),
        false => format!(" (missing shards: {})", shards.join(", ")),
    }
}

/// Returns the problems of nodes, for the end of a message.
fn flaws(flaws: &[Flaw]) -> String {
    let separator = |number| if number == 0 { ": " } else { "; " };
    flaws.iter().enumerate().map(|(number, flaw)| format!("{}{flaw}", separator(number))).collect()
}

/// Makes an object whole again; with `deep`, reads every block of it first. `repaired` receives the
/// number of shards that were written; it may be null. Returns PARITAS_REPAIRABLE if something is
/// left for another repair; paritas_last_message() then tells the problems of nodes.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_repair(
    volume: *const paritas_volume,
    name: *const c_char,
    deep: bool,
    repaired: *mut usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let (volume, name) = unsafe { named(volume, name) }?;
        let done = volume.run(volume.volume.repair(&name, deep))?;
        // SAFETY: as the caller promises.
        unsafe { memory::tell(repaired, done.stored, "repaired") }?;
        let left = || format!("{} needs another repair{}", name.as_str(), flaws(&done.flaws));
        if done.is_owed { Err(Failure::repairable(left())) } else { Ok(()) }
    })
}

/// The state of a volume.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_volume_state {
    /// Nodes of the volume.
    pub nodes: usize,
    /// Nodes that cannot be used now.
    pub failing: usize,
    /// Number of nodes that may be lost, whichever they are.
    pub tolerable: usize,
    /// Objects that wait for paritas_volume_repair().
    pub owed: usize,
    /// Objects that wait for a later stage of their code.
    pub backlog: usize,
}

/// Asks all nodes of a volume. Returns PARITAS_OK if all nodes work and no object waits for repair,
/// PARITAS_REPAIRABLE if some nodes fail or objects wait, PARITAS_LOST if there are objects that a
/// repair could not make whole, and PARITAS_IO if more nodes fail than may be lost. A node that has
/// worked since the volume was opened counts as working; to see the current state, open the volume
/// anew. Unless the outcome is PARITAS_OK, paritas_last_message() tells what is wrong. `found` may
/// be null.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_volume_status(
    volume: *const paritas_volume,
    found: *mut paritas_volume_state,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let volume = unsafe { opened(volume) }?;
        let status = volume.run(volume.volume.status())?;
        let problem = |node: &NodeStatus| {
            node.problem.as_ref().map(|problem| format!("node {}: {problem}", node.name))
        };
        let mut problems: Vec<String> = status.nodes.iter().filter_map(problem).collect();
        let told = paritas_volume_state {
            nodes: status.nodes.len(),
            failing: problems.len(),
            tolerable: status.tolerance,
            owed: status.owed.objects,
            backlog: status.backlog.objects,
        };
        // SAFETY: as the caller promises.
        unsafe { memory::tell(found, told, "found") }?;
        match status.lacking_for_puts() {
            0 => {}
            lacking => problems.push(format!("puts need {lacking} more nodes")),
        }
        if status.lost.objects > 0 {
            problems.push(format!("{} lost", counted(status.lost.objects, "object")));
        }
        if told.owed > 0 {
            problems.push(format!("{} waiting for repair", counted(told.owed, "object")));
        }
        match problems.join("; ") {
            all_right if all_right.is_empty() => Ok(()),
            what if told.failing > told.tolerable => Err(Failure::io(what)),
            what if status.lost.objects > 0 => Err(Failure::lost(what)),
            what => Err(Failure::repairable(what)),
        }
    })
}

/// The memory of a caller, lent to readers until this value is dropped. A reader may run on a
/// thread that outlives a failed call.
struct Lent(Arc<Mutex<Option<ReadPiece>>>);

struct ReadPiece(*const u8, usize);

// SAFETY: a piece is only read, and by one thread at a time, under the lock.
unsafe impl Send for ReadPiece {}

impl Lent {
    fn new(memory: &[u8]) -> Self {
        Self(Arc::new(Mutex::new(Some(ReadPiece(memory.as_ptr(), memory.len())))))
    }

    fn reader(&self) -> Borrower {
        Borrower { piece: Arc::clone(&self.0), at: 0 }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

struct Borrower {
    piece: Arc<Mutex<Option<ReadPiece>>>,
    at: u64,
}

impl Read for Borrower {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ReadPiece(start, bytes)) = &*piece else {
            return Err(io::Error::other("the call that lent its memory has ended"));
        };
        // SAFETY: `Lent` was made of this memory and is not dropped yet, for it takes the lock.
        let memory = unsafe { slice::from_raw_parts(*start, *bytes) };
        let mut cursor = Cursor::new(memory);
        cursor.set_position(self.at);
        let read = cursor.read(buffer)?;
        self.at = cursor.position();
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_lent_until_the_call_ends() {
        let memory = [1, 2, 3, 4, 5];
        let lent = Lent::new(&memory);
        let (mut reader, mut buffer) = (lent.reader(), [0; 3]);
        assert_eq!(reader.read(&mut buffer).unwrap(), 3);
        assert_eq!(buffer, [1, 2, 3]);
        drop(lent);
        assert!(reader.read(&mut buffer).is_err());
    }
}
