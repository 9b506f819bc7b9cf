//! Records, on this machine, of puts that have stored shards and no manifest yet.
//!
//! Shards without a manifest may belong to a put that is still at work, on any machine, so they are
//! removed only after a day. A put therefore leaves a small file on its own machine while it stores
//! shards. If the file is there and its process is over, no manifest was or will be written, and
//! the next repair on this machine removes the shards at once. The file goes before the first
//! manifest is asked for.
//!
//! After a crash of the machine the removal of the file may be lost, while a node has the manifest.
//! But then the process's tag tells that it belongs to an earlier run of the machine, and the file
//! says nothing ([`crate::process`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::process;

/// Age from which a record is useless, because the age of its shards says the same.
const OLD: Duration = Duration::from_secs(2 * 24 * 3600);

/// Number of attempts at writing a record.
const ATTEMPTS: usize = 4;

/// The record of a put.
#[derive(Debug)]
pub(crate) struct PutRecord(Mutex<Option<PathBuf>>);

impl PutRecord {
    /// Writes a record. If the system offers no place for records, no record is written.
    pub fn begin(volume: &str, object: ObjectId) -> Self {
        let write = || {
            let (folder, tag) = (folder(volume)?, process::tag()?);
            let file = folder.join(object.to_string());
            // The end of another put may remove the folder before the file is in it.
            let write = || fs::create_dir_all(&folder).and_then(|()| fs::write(&file, &tag));
            (0..ATTEMPTS).any(|_| write().is_ok()).then_some(file)
        };
        Self(Mutex::new(write()))
    }

    /// Removes the record, because nothing is left to be removed or because manifests follow.
    ///
    /// # Errors
    /// If it cannot be removed. Then no manifest may be written.
    pub fn end(&self) -> Result<()> {
        // Manifests are asked for side by side. None may be before the record is gone.
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match file.as_ref().map(fs::remove_file) {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("cannot remove the record of an unfinished put: {error}");
                Err(Error::new(ErrorKind::Io, message).because(error))
            }
            _ => {
                // The folder goes with the last record.
                let folder = file.as_deref().and_then(Path::parent);
                folder.into_iter().for_each(|folder| _ = fs::remove_dir(folder));
                *file = None;
                Ok(())
            }
        }
    }
}

/// Returns the records of puts whose process is over, each with its object.
pub(crate) fn of_the_past(volume: &str) -> Vec<(ObjectId, PutRecord)> {
    let entries = folder(volume).and_then(|folder| fs::read_dir(folder).ok());
    let mut records = Vec::new();
    for entry in entries.into_iter().flatten().flatten() {
        let object = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let (Some(object), Ok(tag)) = (object, fs::read_to_string(entry.path())) else { continue };
        let age = entry.metadata().and_then(|found| found.modified());
        let is_old = age.is_ok_and(|then| then.elapsed().is_ok_and(|age| age > OLD));
        match is_old {
            true => _ = fs::remove_file(entry.path()),
            false if process::is_over(&tag) => {
                records.push((object, PutRecord(Mutex::new(Some(entry.path())))))
            }
            false => {}
        }
    }
    records
}

/// Returns the folder of a volume's records.
fn folder(volume: &str) -> Option<PathBuf> {
    Some(dirs::state_dir()?.join("paritas").join("unfinished").join(volume))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_records_goes_with_the_last_record() {
        let volume = format!("test-{}", std::process::id());
        let [one, two] = [1, 2].map(|id| PutRecord::begin(&volume, ObjectId::new([id; 16])));
        let Some(folder) = folder(&volume).filter(|folder| folder.exists()) else { return };
        one.end().unwrap();
        assert!(folder.exists());
        two.end().unwrap();
        two.end().unwrap();
        assert!(!folder.exists());
    }
}
