//! Objects in pieces.
//!
//! A large object may be stored in pieces, in any order, by several clients, over days. Each piece
//! is an object of its own, under a name that nobody else uses ([`names::piece`]), so it is
//! written, read, verified, repaired, promoted and cut anew as every object is. When all pieces are
//! there, a manifest is written that lists them ([`Body::Pieces`](crate::manifest::Body)): then the
//! name means their bytes, one after the other.
//!
//! An *upload* is a set of pieces for one name. Its record, a small object, tells the name, and
//! stays as long as the pieces do. The pieces go when the upload is given up, when its object was
//! replaced or removed, or when nothing happened for a week ([`crate::Volume::collect_uploads`]).
//!
//! A part may be stored several times. Each time, it becomes a piece of its own, whose number
//! begins with that of the part: a slow client that stores a part once more does not replace a
//! piece that an object has by then. Who stores a piece looks for the record at the end, and
//! removes the piece if the upload is complete without it, or was given up.
//!
//! An upload may be completed and given up at the same time. Who completes raises a flag, which is
//! a small object, and then looks for the record; who gives up removes the record, and then looks
//! for flags. So at least one of them sees the other, and stops, before the manifest is written
//! and before pieces are removed. A flag that a killed client has left counts for an hour.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Attributes;
use serde::{Deserialize, Serialize};

use crate::clock::{milliseconds, now};
use crate::cluster::Cluster;
use crate::find::FindJob;
use crate::found::{FoundObject, GetOptions};
use crate::get::read_all;
use crate::list::ListJob;
use crate::manifest::{Notes, Piece};
use crate::names::{self, CLOSING, ObjectName, PIECES, UPLOADS};
use crate::outside::new_object;
use crate::protocol::Listed;
use crate::put::{PutJob, PutOptions, PutReport, RemoveJob};

/// Seconds after which an unfinished upload is given up, since its last piece.
const WEEK: u64 = 7 * 24 * 3600;
/// Seconds after which pieces without a record go.
const DAY: u64 = 24 * 3600;
/// Seconds for which the flag of somebody who completes an upload counts.
const HOUR: u64 = 3600;
/// Number of bits of a piece's number that follow the number of the part, and how many of them are
/// random.
const DRAWN_BITS: u32 = 18;
const RANDOM_BITS: u32 = 8;
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
    cluster: &'v Cluster,
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

/// A piece that was just stored.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PutPiece {
    /// Number, length and digest.
    pub piece: Piece,
    /// The report of the put.
    pub report: PutReport,
}

impl Piece {
    /// Greatest number of a part.
    pub const MOST_PARTS: u32 = (1 << (u32::BITS - DRAWN_BITS)) - 1;

    /// Returns the number of the part that the piece is. (Earlier versions gave pieces the numbers
    /// of their parts.)
    pub fn part(&self) -> u32 {
        part_of(self.number)
    }

    /// Draws a number for a piece that is a certain part: the milliseconds of this second and
    /// random bits follow the number of the part.
    fn draw(part: u32) -> Result<u32> {
        if !(1..=Self::MOST_PARTS).contains(&part) {
            let most = Self::MOST_PARTS;
            return Err(Error::parameters(format!(
                "the number of a part is 1 to {most}; got {part}"
            )));
        }
        let random = u32::from(new_object()?.as_bytes()[0]);
        Ok(part << DRAWN_BITS | milliseconds() << RANDOM_BITS | random)
    }
}

fn part_of(number: u32) -> u32 {
    match number >> DRAWN_BITS {
        0 => number,
        part => part,
    }
}

/// Begins, finds and collects the uploads of a volume.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UploadsJob<'v> {
    pub cluster: &'v Cluster,
}

impl<'v> UploadsJob<'v> {
    /// Begins an upload.
    pub async fn begin(self, name: &ObjectName, notes: Notes) -> Result<Upload<'v>> {
        let random = new_object()?;
        let record = UploadRecord { name: name.to_string(), notes, done: false };
        let id = format!("{}-{random}", mark_of(name));
        let upload = Upload { cluster: self.cluster, id, name: name.clone(), record, begun: now() };
        upload.store_record().await?;
        Ok(upload)
    }

    /// Finds an upload by its id.
    pub async fn find(self, id: &str) -> Result<Upload<'v>> {
        let unknown = || Error::new(ErrorKind::NotFound, format!("there is no upload {id:?}"));
        let is_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        if id.is_empty() || !id.bytes().all(is_id) {
            return Err(unknown());
        }
        let record = ObjectName::new(format!("{UPLOADS}{id}"))?;
        let mut bytes = Vec::new();
        let read = read_all(self.cluster, &record, &mut bytes).await;
        let found = read.map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown(),
            _ => error,
        })?;
        let damaged = |flaw| Error::new(ErrorKind::Io, format!("the record {record}: {flaw}"));
        let record: UploadRecord =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let name = ObjectName::new(record.name.as_str())?;
        Ok(Upload {
            cluster: self.cluster,
            id: id.to_owned(),
            name,
            record,
            begun: found.created(),
        })
    }

    /// Returns the uploads that are not complete, in the order of their ids.
    pub async fn all(self) -> Result<Vec<Upload<'v>>> {
        let uploads = self.recorded(UPLOADS).await?;
        Ok(uploads.into_iter().filter(|upload| !upload.record.done).collect())
    }

    /// Returns the uploads for a name that are not complete, in the order of their ids.
    pub async fn of(self, name: &ObjectName) -> Result<Vec<Upload<'v>>> {
        let uploads = self.recorded(&format!("{UPLOADS}{}", mark_of(name))).await?;
        let is_open = |upload: &Upload<'_>| !upload.record.done && upload.name == *name;
        Ok(uploads.into_iter().filter(is_open).collect())
    }

    /// Whether there are uploads, complete or not.
    pub async fn any(self) -> Result<bool> {
        Ok(!list(self.cluster, UPLOADS).await?.is_empty())
    }

    /// Returns all uploads whose records have names that begin with `prefix`.
    async fn recorded(self, prefix: &str) -> Result<Vec<Upload<'v>>> {
        let names = list(self.cluster, prefix).await?.into_keys();
        let ids: Vec<String> = names
            .filter_map(|name| name.as_str().strip_prefix(UPLOADS).map(str::to_owned))
            .collect();
        let find = async |id: String| match self.find(&id).await {
            // It was given up meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        };
        let found: Vec<Option<Upload<'v>>> =
            stream::iter(ids).map(find).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Removes the pieces of objects of a name that were replaced or removed.
    pub async fn collect_of(self, name: &ObjectName) -> Result<()> {
        for upload in self.recorded(&format!("{UPLOADS}{}", mark_of(name))).await? {
            if upload.record.done && upload.name == *name {
                upload.give_up().await?;
            }
        }
        Ok(())
    }

    /// Gives up the uploads whose objects were replaced or removed, or at which nothing happened
    /// for a week. Returns their number.
    pub async fn collect(self) -> Result<usize> {
        // The pieces are listed first: the records of what is stored later are there already.
        let mut last: BTreeMap<String, (u64, BTreeSet<ObjectName>)> = BTreeMap::new();
        for (name, listed) in list(self.cluster, PIECES).await? {
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
                given_up += match upload.give_up().await {
                    // It is being completed.
                    Err(error) if error.kind() == ErrorKind::Busy => 0,
                    done => usize::from(done?),
                };
            }
        }
        let flags = list(self.cluster, CLOSING).await?.into_iter();
        let is_left = |listed: &Listed| now().saturating_sub(listed.version.generation) > DAY;
        let left = flags.filter(|(_, listed)| is_left(listed)).map(|(name, _)| name);
        remove_all(self.cluster, left).await?;
        for (time, names) in last.into_values() {
            if now().saturating_sub(time) > DAY {
                remove_all(self.cluster, names).await?;
                given_up += 1;
            }
        }
        Ok(given_up)
    }
}

/// Returns the objects whose names begin with a prefix.
async fn list(cluster: &Cluster, prefix: &str) -> Result<BTreeMap<ObjectName, Listed>> {
    Ok(ListJob::of(cluster, prefix).run(GetOptions::default()).await?.objects)
}

/// Removes objects that may be gone already.
async fn remove_all(cluster: &Cluster, names: impl IntoIterator<Item = ObjectName>) -> Result<()> {
    let remove = async |name: ObjectName| match (RemoveJob { cluster, name: &name }).run().await {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    stream::iter(names).map(remove).buffer_unordered(AT_ONCE).try_collect().await
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
        let job = PutJob::new(self.cluster, &name, PutOptions::default())?;
        job.run(Cursor::new(text)).await.map(drop)
    }

    fn record_name(&self) -> Result<ObjectName> {
        ObjectName::new(format!("{UPLOADS}{}", self.id))
    }

    /// Stores a part as a piece. It counts instead of earlier pieces that are the same part.
    ///
    /// # Errors
    /// If the number is not 1 to [`Piece::MOST_PARTS`] ([`ErrorKind::Parameters`]), if the object
    /// is complete or the upload was given up, perhaps while the piece was stored
    /// ([`ErrorKind::Busy`]); as [`crate::Volume::put`].
    pub async fn put_piece(
        &self,
        part: u32,
        source: impl Read + Send + 'static,
        options: PutOptions,
    ) -> Result<PutPiece> {
        if self.record.done {
            return Err(self.is_over());
        }
        let number = Piece::draw(part)?;
        let name = names::piece(&self.id, number)?;
        let report = PutJob::new(self.cluster, &name, options)?.run(source).await?;
        if !self.may_have(number).await? {
            remove_all(self.cluster, [name]).await?;
            return Err(self.is_over());
        }
        let piece = Piece { number, length: report.listed.length, digest: report.digest };
        Ok(PutPiece { piece, report })
    }

    fn is_over(&self) -> Error {
        let message =
            format!("the upload of {} is complete or was given up; begin another one", self.name);
        Error::new(ErrorKind::Busy, message)
    }

    /// Whether the upload is open, or its object has or may get the piece of a number.
    async fn may_have(&self, number: u32) -> Result<bool> {
        match (UploadsJob { cluster: self.cluster }).find(&self.id).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(upload) if !upload.record.done => return Ok(true),
            _ => {}
        }
        // Somebody who completes the upload at this moment may have chosen the piece.
        if self.flags().await? > 0 {
            return Ok(true);
        }
        let object = self.object().await?;
        let mut pieces = object.iter().filter_map(FoundObject::pieces).flatten();
        Ok(pieces.any(|piece| piece.number == number))
    }

    /// Returns the pieces that are stored, by part. A part that was stored several times has
    /// several pieces, of which the last one is the newest.
    ///
    /// # Errors
    /// As [`crate::Volume::list`] and [`crate::Volume::find`].
    pub async fn pieces(&self) -> Result<Vec<StoredPiece>> {
        let mut places = Vec::new();
        for (name, listed) in list(self.cluster, &format!("{PIECES}{}/", self.id)).await? {
            if let Some((_, number)) = names::parse_piece(&name) {
                places.push((part_of(number), listed.version.generation, number));
            }
        }
        places.sort_unstable();
        self.look_at(places.into_iter().map(|(_, _, number)| number)).await
    }

    /// Returns the names of the pieces that are stored.
    async fn stored(&self) -> Result<impl Iterator<Item = ObjectName> + use<>> {
        Ok(list(self.cluster, &format!("{PIECES}{}/", self.id)).await?.into_keys())
    }

    async fn look_at(&self, numbers: impl Iterator<Item = u32>) -> Result<Vec<StoredPiece>> {
        let look = async |number: u32| {
            let name = names::piece(&self.id, number)?;
            let found = FindJob::of(self.cluster, &name).run().await?;
            let piece = Piece { number, length: found.length(), digest: found.digest() };
            Ok(StoredPiece { piece, notes: found.notes().clone(), created: found.created() })
        };
        stream::iter(numbers).map(look).buffered(AT_ONCE).try_collect().await
    }

    /// Gives the name its object: these pieces, one after the other. Pieces that are left out are
    /// removed. `notes` are added to the notes of the upload, and `attributes` are kept like the
    /// attributes of a file that was put.
    ///
    /// # Errors
    /// If a piece is not there ([`ErrorKind::NotFound`]), if the numbers do not ascend
    /// ([`ErrorKind::Parameters`]), if the upload was completed or given up meanwhile
    /// ([`ErrorKind::Busy`]); as [`crate::Volume::put`].
    pub async fn complete(
        mut self,
        pieces: Vec<Piece>,
        notes: Notes,
        attributes: Attributes,
    ) -> Result<PutReport> {
        let (cluster, flag) = (self.cluster, self.raise_flag().await?);
        let completed = self.complete_flagged(pieces, notes, attributes).await;
        let lowered = remove_all(cluster, [flag]).await;
        completed.and_then(|report| lowered.map(|()| report))
    }

    /// Tells others that the upload is being completed. Returns the name of the flag.
    async fn raise_flag(&self) -> Result<ObjectName> {
        let name = ObjectName::new(format!("{CLOSING}{}/{}", self.id, new_object()?))?;
        let job = PutJob::new(self.cluster, &name, PutOptions::default())?;
        job.run(Cursor::new(Vec::new())).await.map(|_| name)
    }

    /// Returns how many clients are completing the upload.
    async fn flags(&self) -> Result<usize> {
        let flags = list(self.cluster, &format!("{CLOSING}{}/", self.id)).await?;
        let counts = |listed: &&Listed| now().saturating_sub(listed.version.generation) <= HOUR;
        Ok(flags.values().filter(counts).count())
    }

    async fn complete_flagged(
        &mut self,
        pieces: Vec<Piece>,
        notes: Notes,
        attributes: Attributes,
    ) -> Result<PutReport> {
        let cluster = self.cluster;
        match (UploadsJob { cluster }).find(&self.id).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.is_over()),
            Ok(upload) if upload.record.done => return Err(self.is_over()),
            found => _ = found?,
        }
        let chosen: BTreeSet<u32> = pieces.iter().map(|piece| piece.number).collect();
        let all: Notes = self.record.notes.clone().into_iter().chain(notes).collect();
        let notes = Some(Arc::new(move || all.clone()) as _);
        let options = PutOptions { attributes, notes, ..PutOptions::default() };
        let job = PutJob::new(cluster, &self.name, options)?;
        let report = job.run_in_pieces(&self.id, pieces).await?;
        self.record.done = true;
        self.store_record().await?;
        // Somebody else who completes the upload at this moment may have chosen other pieces.
        if self.flags().await? <= 1 {
            self.remove_all_but(&chosen).await?;
        }
        Ok(report)
    }

    /// Removes the pieces whose numbers are not among these.
    async fn remove_all_but(&self, numbers: &BTreeSet<u32>) -> Result<()> {
        let is_left = |name: &ObjectName| {
            names::parse_piece(name).is_some_and(|(_, number)| !numbers.contains(&number))
        };
        remove_all(self.cluster, self.stored().await?.filter(is_left)).await
    }

    /// Gives up the upload: removes its record and its pieces, unless the name has them as its
    /// content. Returns whether it did.
    ///
    /// # Errors
    /// If somebody completes the upload at this moment ([`ErrorKind::Busy`]); as
    /// [`crate::Volume::find`] and [`crate::Volume::remove`].
    pub async fn give_up(self) -> Result<bool> {
        if self.record.done
            && let Some(object) = self.object().await?
        {
            if self.flags().await? == 0 {
                let pieces = object.pieces().into_iter().flatten();
                self.remove_all_but(&pieces.map(|piece| piece.number).collect()).await?;
            }
            return Ok(false);
        }
        remove_all(self.cluster, [self.record_name()?]).await?;
        if self.flags().await? > 0 {
            self.store_record().await?;
            let message = format!("the upload of {} is being completed; try again", self.name);
            return Err(Error::new(ErrorKind::Busy, message));
        }
        if self.object().await?.is_some() {
            let record = UploadRecord { done: true, ..self.record.clone() };
            Upload { record, ..self }.store_record().await?;
            return Ok(false);
        }
        self.remove_all_but(&BTreeSet::new()).await?;
        Ok(true)
    }

    /// Returns the object that the name means, if its content is the pieces of this upload.
    async fn object(&self) -> Result<Option<FoundObject>> {
        match FindJob::of(self.cluster, &self.name).run().await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(|found| Some(found).filter(|it| it.upload() == Some(&*self.id))),
        }
    }
}

/// Returns what the ids of all uploads for a name begin with.
fn mark_of(name: &ObjectName) -> String {
    blake3::hash(name.as_str().as_bytes()).to_hex()[..16].to_owned()
}
