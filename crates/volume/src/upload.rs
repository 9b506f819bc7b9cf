//! Objects in pieces.
//!
//! A large object may be stored in pieces, in any order, by several clients, over days. Each piece
//! is an object of its own, under a name that nobody else uses ([`names::piece`]), so it is written,
//! read, verified, repaired, promoted and cut anew as every object is. When all pieces are there, a
//! manifest is written that lists them ([`Body::Pieces`](crate::manifest::Body)): then the name
//! means their bytes, one after the other.
//!
//! An *upload* is a set of pieces for one name. Its record, a small object, tells the name, and
//! stays as long as the pieces do. The pieces go when the upload is given up, when its object was
//! replaced or removed, or when nothing happened for a week ([`Volume::collect_uploads`]).
//!
//! An upload may be completed and given up at the same time. Who completes writes the manifest, and
//! then looks for the record; who gives up removes the record, and then looks for the manifest. So
//! at least one of them sees the other: then the manifest is taken back, or the pieces stay.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::state::State;
use serde::{Deserialize, Serialize};

use crate::get::{FoundObject, GetOptions};
use crate::hands::now;
use crate::manifest::{Notes, Piece};
use crate::names::{self, ObjectName, PIECES, UPLOADS};
use crate::put::{PutOptions, PutReport};
use crate::reencode::Reencoded;
use crate::upkeep::Verdict;
use crate::volume::Volume;

/// Seconds after which an unfinished upload is given up, since its last piece.
const WEEK: u64 = 7 * 24 * 3600;
/// Seconds after which pieces without a record go.
const DAY: u64 = 24 * 3600;
/// Number of pieces that are looked at, or removed, side by side.
const AT_ONCE: usize = 16;

/// The record of an upload, as it is stored: JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UploadRecord {
    /// The name of the object.
    name: String,
    /// What is to be noted about the object.
    notes: Notes,
    /// Whether the object was completed.
    done: bool,
}

/// An upload.
#[derive(Debug)]
pub struct Upload<'v> {
    volume: &'v Volume,
    id: String,
    name: ObjectName,
    record: UploadRecord,
    begun: u64,
}

/// A piece that an upload has stored.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredPiece {
    /// Number, length and digest.
    pub piece: Piece,
    /// What was noted about it.
    pub notes: Notes,
    /// When it was written, in seconds since the beginning of 1970.
    pub created: u64,
}

impl Volume {
    /// Begins an upload. `notes` are kept for the object.
    ///
    /// # Errors
    /// As [`Volume::put`].
    pub async fn begin_upload(&self, name: &ObjectName, notes: Notes) -> Result<Upload<'_>> {
        let random = paritas_shards::ObjectId::random()?;
        let record = UploadRecord { name: name.to_string(), notes, done: false };
        let id = format!("{}-{random}", mark_of(name));
        let upload = Upload { volume: self, id, name: name.clone(), record, begun: now() };
        upload.store_record().await?;
        Ok(upload)
    }

    /// Finds an upload by its id.
    ///
    /// # Errors
    /// If there is none, or none any more ([`ErrorKind::NotFound`]); as [`Volume::find`].
    pub async fn find_upload(&self, id: &str) -> Result<Upload<'_>> {
        let unknown = || Error::new(ErrorKind::NotFound, format!("there is no upload {id:?}"));
        let is_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        if id.is_empty() || !id.bytes().all(is_id) {
            return Err(unknown());
        }
        let record = ObjectName::new(format!("{UPLOADS}{id}"))?;
        let mut bytes = Vec::new();
        let read = self.get(&record, None, &mut bytes, GetOptions::default(), &|_| {}).await;
        let found = read.map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown(),
            _ => error,
        })?;
        let damaged = |flaw| Error::new(ErrorKind::Io, format!("the record {record}: {flaw}"));
        let record: UploadRecord =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let name = ObjectName::new(record.name.as_str())?;
        Ok(Upload { volume: self, id: id.to_owned(), name, record, begun: found.created() })
    }

    /// Returns the uploads that are not complete, in the order of their ids.
    ///
    /// # Errors
    /// As [`Volume::list`] and [`Volume::find`].
    pub async fn uploads(&self) -> Result<Vec<Upload<'_>>> {
        let uploads = self.recorded(UPLOADS).await?;
        Ok(uploads.into_iter().filter(|upload| !upload.record.done).collect())
    }

    /// Whether there are uploads, complete or not.
    ///
    /// # Errors
    /// As [`Volume::list`].
    pub async fn has_uploads(&self) -> Result<bool> {
        Ok(!self.list(UPLOADS).await?.objects.is_empty())
    }

    /// Returns all uploads whose records have names that begin with `prefix`.
    async fn recorded(&self, prefix: &str) -> Result<Vec<Upload<'_>>> {
        let names = self.list(prefix).await?.objects.into_keys();
        let ids: Vec<String> = names
            .filter_map(|name| name.as_str().strip_prefix(UPLOADS).map(str::to_owned))
            .collect();
        let find = async |id: String| match self.find_upload(&id).await {
            // It was given up meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        };
        let found: Vec<Option<Upload<'_>>> =
            stream::iter(ids).map(find).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Removes the pieces of objects of this name that were replaced or removed.
    ///
    /// # Errors
    /// As [`Volume::list`], [`Volume::find`] and [`Volume::remove`].
    pub async fn collect_uploads_of(&self, name: &ObjectName) -> Result<()> {
        for upload in self.recorded(&format!("{UPLOADS}{}", mark_of(name))).await? {
            if upload.record.done && upload.name == *name {
                upload.give_up().await?;
            }
        }
        Ok(())
    }

    /// Gives up the uploads whose objects were replaced or removed, or at which nothing happened
    /// for a week. Returns their number.
    ///
    /// # Errors
    /// As [`Volume::list`], [`Volume::find`] and [`Volume::remove`].
    pub async fn collect_uploads(&self) -> Result<usize> {
        // The pieces are listed first: the records of what is stored later are there already.
        let mut last: BTreeMap<String, (u64, BTreeSet<ObjectName>)> = BTreeMap::new();
        for (name, listed) in self.list(PIECES).await?.objects {
            let Some((id, _)) = names::parse_piece(&name) else { continue };
            let (time, names) = last.entry(id.to_owned()).or_default();
            *time = (*time).max(listed.version.generation);
            names.insert(name);
        }
        let mut given_up = 0;
        for upload in self.recorded(UPLOADS).await? {
            let (time, _) = last.remove(&upload.id).unwrap_or_default();
            let is_old = now().saturating_sub(time.max(upload.begun)) > WEEK;
            if upload.record.done || is_old {
                given_up += usize::from(upload.give_up().await?);
            }
        }
        for (time, names) in last.into_values() {
            if now().saturating_sub(time) > DAY {
                self.remove_all(names).await?;
                given_up += 1;
            }
        }
        Ok(given_up)
    }

    /// Looks at the pieces of an object as well, and adds what is found there to the verdict.
    pub(crate) async fn judge_pieces(
        &self,
        mut verdict: Verdict,
        object: &FoundObject,
        is_deep: bool,
    ) -> Result<Verdict> {
        let Some((upload, pieces)) = object.upload().zip(object.pieces()) else {
            return Ok(verdict);
        };
        for piece in pieces {
            let of_piece = match self.find_piece(object, upload, piece).await {
                Ok(_) => self.verify(&names::piece(upload, piece.number)?, is_deep).await,
                Err(error) => Err(error),
            };
            match of_piece {
                Ok(found) => {
                    verdict.state = verdict.state.max(found.state);
                    verdict.spare = verdict.spare.min(found.spare);
                    verdict.read_bytes += found.read_bytes;
                    found.flaws.into_iter().for_each(|flaw| flaw.add_to(&mut verdict.flaws));
                }
                // The piece is gone.
                Err(error) if error.kind() == ErrorKind::TooFewShards => {
                    (verdict.state, verdict.spare) = (verdict.state.max(State::Lost), 0);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(verdict)
    }

    /// Cuts the pieces of an object by the volume's code. Returns what the last one that was cut
    /// anew has become.
    pub(crate) async fn reencode_pieces(
        &self,
        upload: &str,
        pieces: &[Piece],
    ) -> Result<Reencoded> {
        let mut done = Reencoded::Unchanged;
        for piece in pieces {
            let name = names::piece(upload, piece.number)?;
            if let changed @ Reencoded::Changed(_) = self.reencode(&name).await? {
                done = changed;
            }
        }
        Ok(done)
    }

    /// Removes objects that may be gone already.
    async fn remove_all(&self, names: impl IntoIterator<Item = ObjectName>) -> Result<()> {
        let remove = async |name: ObjectName| match self.remove(&name).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        stream::iter(names).map(remove).buffer_unordered(AT_ONCE).try_collect().await
    }
}

impl Upload<'_> {
    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name of the object.
    pub fn name(&self) -> &ObjectName {
        &self.name
    }

    /// Returns what is to be noted about the object.
    pub fn notes(&self) -> &Notes {
        &self.record.notes
    }

    /// Returns when the upload began, in seconds since the beginning of 1970.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether the object was completed.
    pub fn is_done(&self) -> bool {
        self.record.done
    }

    async fn store_record(&self) -> Result<()> {
        let text = serde_json::to_vec(&self.record)
            .map_err(|error| Error::internal("writing the record of an upload", error))?;
        let name = self.record_name()?;
        self.volume.put_any(&name, Cursor::new(text), PutOptions::default()).await.map(drop)
    }

    fn record_name(&self) -> Result<ObjectName> {
        ObjectName::new(format!("{UPLOADS}{}", self.id))
    }

    /// Stores a piece. A piece of the same number is replaced.
    ///
    /// # Errors
    /// If the object is complete ([`ErrorKind::Busy`]); as [`Volume::put`].
    pub async fn put_piece(
        &self,
        number: u32,
        source: impl Read + Send + 'static,
        options: PutOptions,
    ) -> Result<PutReport> {
        if self.record.done {
            let message = format!("{} is complete; begin another upload", self.name);
            return Err(Error::new(ErrorKind::Busy, message));
        }
        self.volume.put_any(&names::piece(&self.id, number)?, source, options).await
    }

    /// Returns the pieces that are stored, by number.
    ///
    /// # Errors
    /// As [`Volume::list`] and [`Volume::find`].
    pub async fn pieces(&self) -> Result<Vec<StoredPiece>> {
        let names = self.volume.list(&format!("{PIECES}{}/", self.id)).await?.objects.into_keys();
        let numbers: Vec<u32> =
            names.filter_map(|name| names::parse_piece(&name).map(|(_, number)| number)).collect();
        let mut pieces = self.look_at(numbers).await?;
        pieces.sort_unstable_by_key(|stored| stored.piece.number);
        Ok(pieces)
    }

    async fn look_at(&self, numbers: Vec<u32>) -> Result<Vec<StoredPiece>> {
        let look = async |number: u32| {
            let name = names::piece(&self.id, number)?;
            let found = self.volume.find(&name, GetOptions::default()).await?;
            let piece = Piece { number, length: found.length(), digest: found.digest() };
            Ok(StoredPiece { piece, notes: found.notes().clone(), created: found.created() })
        };
        stream::iter(numbers).map(look).buffered(AT_ONCE).try_collect().await
    }

    /// Gives the name its object: these pieces, one after the other. Pieces that are left out are
    /// removed. `notes` are added to those that the upload began with.
    ///
    /// # Errors
    /// If a piece is not there ([`ErrorKind::NotFound`]), if the numbers do not ascend
    /// ([`ErrorKind::Parameters`]), if the upload was given up meanwhile ([`ErrorKind::Busy`]); as
    /// [`Volume::put`].
    pub async fn complete(mut self, pieces: Vec<Piece>, notes: Notes) -> Result<PutReport> {
        let volume = self.volume;
        let chosen: BTreeSet<u32> = pieces.iter().map(|piece| piece.number).collect();
        let all: Notes = self.record.notes.clone().into_iter().chain(notes).collect();
        let options =
            PutOptions { notes: Some(Arc::new(move || all.clone())), ..PutOptions::default() };
        let report = volume.put_pieces(&self.name, &self.id, pieces, options).await?;
        match volume.find(&self.record_name()?, GetOptions::default()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                volume.remove(&self.name).await?;
                let message = format!("the upload of {} was given up meanwhile", self.name);
                return Err(Error::new(ErrorKind::Busy, message));
            }
            found => found?,
        };
        self.record.done = true;
        self.store_record().await?;
        let stored = volume.list(&format!("{PIECES}{}/", self.id)).await?.objects.into_keys();
        let is_left = |name: &ObjectName| {
            names::parse_piece(name).is_some_and(|(_, number)| !chosen.contains(&number))
        };
        volume.remove_all(stored.filter(is_left)).await?;
        Ok(report)
    }

    /// Gives the upload up: removes its record and its pieces, unless they are what its name means.
    /// Returns whether it did.
    ///
    /// # Errors
    /// As [`Volume::find`] and [`Volume::remove`].
    pub async fn give_up(self) -> Result<bool> {
        if self.record.done && self.is_in_use().await? {
            return Ok(false);
        }
        self.volume.remove_all([self.record_name()?]).await?;
        if self.is_in_use().await? {
            let record = UploadRecord { done: true, ..self.record.clone() };
            Upload { record, ..self }.store_record().await?;
            return Ok(false);
        }
        let pieces = self.volume.list(&format!("{PIECES}{}/", self.id)).await?.objects.into_keys();
        self.volume.remove_all(pieces).await?;
        Ok(true)
    }

    /// Whether the name means the pieces of this upload.
    async fn is_in_use(&self) -> Result<bool> {
        let is_ours = |found: FoundObject| found.upload() == Some(self.id.as_str());
        match self.volume.find(&self.name, GetOptions::default()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            found => found.map(is_ours),
        }
    }
}

/// Returns what the ids of all uploads for a name begin with.
fn mark_of(name: &ObjectName) -> String {
    blake3::hash(name.as_str().as_bytes()).to_hex()[..16].to_owned()
}
