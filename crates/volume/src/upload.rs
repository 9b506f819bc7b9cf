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
//! replaced or removed, or when nothing happened for a week ([`crate::Volume::collect_uploads`],
//! which is a part of [`crate::Volume::collect`]).
//!
//! A part may be stored several times. Each time, it becomes a piece of its own, whose number
//! begins with that of the part: a slow client that stores a part once more does not replace a
//! piece that an object has by then. A client that stores a piece looks for the record at the end,
//! and removes the piece if the upload is complete without it, or was given up.
//!
//! The record says whether the upload is *over*: complete, or given up. It never goes back, and is
//! removed last, after the pieces. A client that completes an upload raises a flag, which is a
//! small object, and then looks whether the upload is over. A client that gives it up writes that
//! into the record, and then looks for flags. So at least one of them sees the other, and stops,
//! before the manifest is written and before pieces are removed. Before a client relies on a record
//! that says that the upload is over, it makes sure that this record is settled.
//!
//! After completing an upload, the client lowers the flag, unless the outcome is open: then a node
//! may have a manifest that others will carry through. A flag that stays, for this reason or
//! because the client was killed, counts for a day; a client writes no manifest more than 12 hours
//! after it began to complete the upload.
//!
//! A piece is removed only if the upload is over, no flag counts, and no version lists the piece
//! that counts or may come to count: the greatest settled version of the name and all greater ones.
//! If an old flag is left, all nodes must have told their versions (`Upload::look`).
//!
//! The file is long because completing, giving up and collecting keep these rules together, and are
//! read side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Attributes;
use serde::{Deserialize, Serialize};

use crate::clock::{Since, now};
use crate::cluster::Cluster;
use crate::driver::drive;
use crate::find::{FindJob, unsure};
use crate::found::{FoundObject, GetOptions};
use crate::get::ReadJob;
use crate::hands::NameHands;
use crate::list::ListJob;
use crate::manifest::{Notes, Piece, check_notes};
use crate::names::{self, CLOSING, ObjectName, PIECES, UPLOADS};
use crate::outside::new_object;
use crate::overview::Overview;
use crate::protocol::{Expected, Get, Listed, NodeIndex, Version, VersionKind};
use crate::put::{FailedPut, PutJob, PutOptions, PutReport, RemoveJob};

/// Seconds after which an unfinished upload is given up, since its last piece.
const WEEK: u64 = 7 * 24 * 3600;
/// Seconds after which pieces without a record are removed. The flag of a client that completes an
/// upload counts for the same time. The manifest is written within 12 hours, so clocks may differ
/// by half a day.
const DAY: u64 = 24 * 3600;
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
    /// Whether the upload was given up. (Earlier versions removed the record instead.)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    given_up: bool,
}

impl UploadRecord {
    /// Whether the upload is complete or was given up. Nobody begins to complete it any more.
    fn is_over(&self) -> bool {
        self.done || self.given_up
    }
}

/// An upload.
#[derive(Debug)]
pub struct Upload<'v> {
    cluster: &'v Cluster,
    id: String,
    name: ObjectName,
    record: UploadRecord,
    /// The version of the record that was read or written last, if there is one.
    version: Option<Version>,
    begun: u64,
}

/// The pieces that were listed of an upload.
#[derive(Default)]
struct ListedPieces {
    numbers: BTreeSet<u32>,
    /// When the last of them was written.
    last: u64,
}

/// The uploads that have records.
struct RecordedUploads<'v> {
    /// What one listing of all nodes showed of the records.
    overview: Overview,
    uploads: Vec<Upload<'v>>,
    /// The ids of uploads whose records cannot be read, and why.
    unreadable: Vec<(String, Error)>,
}

/// The flags of clients that complete an upload, or did not lower them.
struct Flags {
    names: Vec<ObjectName>,
    /// Whether one of them counts, because it is younger than a day.
    counts: bool,
}

/// What the versions of a name say about the pieces of an upload.
struct PieceUse {
    /// The numbers of the pieces that a version lists which counts or may come to count.
    used: BTreeSet<u32>,
    /// Whether no version can be missing. Otherwise no piece may be removed.
    is_certain: bool,
    /// Whether the greatest version is settled, so that no other one comes to count any more.
    is_settled: bool,
}

/// What became of the pieces of an upload that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceFate {
    /// They are removed.
    Removed,
    /// The name's object has them. Pieces that it does not have are removed, if that is certain.
    Used,
    /// The upload is being completed, or it is open whether it was.
    Closing,
    /// No object has them, but too few nodes say so. They are removed later.
    Kept,
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

    /// Draws a number for a piece that is a certain part and that somebody began to store at a
    /// moment: the milliseconds of its second and random bits follow the number of the part.
    fn draw(part: u32, begun: Since) -> Result<u32> {
        if !(1..=Self::MOST_PARTS).contains(&part) {
            let most = Self::MOST_PARTS;
            return Err(Error::parameters(format!(
                "the number of a part is 1 to {most}; got {part}"
            )));
        }
        let random = u32::from(new_object()?.as_bytes()[0]);
        Ok(part << DRAWN_BITS | begun.milliseconds() << RANDOM_BITS | random)
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
        check_notes(&notes).map_err(|flaw| Error::parameters(format!("{name}: {flaw}")))?;
        let record = UploadRecord { name: name.to_string(), notes, done: false, given_up: false };
        let id = format!("{}-{random}", mark_of(name));
        let (cluster, name, begun) = (self.cluster, name.clone(), now());
        let mut upload = Upload { cluster, id, name, record, version: None, begun };
        upload.store_record().await?;
        Ok(upload)
    }

    /// Finds an upload by its id, unless it was given up.
    pub async fn find(self, id: &str) -> Result<Upload<'v>> {
        let upload = self.read(id).await?;
        if upload.record.given_up { Err(unknown(id)) } else { Ok(upload) }
    }

    /// Finds and reads the record of an upload.
    async fn read(self, id: &str) -> Result<Upload<'v>> {
        let is_id = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        let record = match ObjectName::new(format!("{UPLOADS}{id}")) {
            Ok(record) if !id.is_empty() && id.bytes().all(is_id) => record,
            _ => return Err(unknown(id)),
        };
        let opened = self.open(id, FindJob::of(self.cluster, &record).run().await).await;
        opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => unknown(id),
            _ => error,
        })
    }

    /// Reads the record of an upload, if it was found.
    async fn open(self, id: &str, found: Result<FoundObject>) -> Result<Upload<'v>> {
        let (cluster, object, mut bytes) = (self.cluster, found?, Vec::new());
        let record = object.name().clone();
        let read = ReadJob { cluster, object, progress: &|_| {} };
        let found = read.run(None, &mut bytes).await?;
        let damaged = |flaw| Error::new(ErrorKind::Io, format!("the record {record}: {flaw}"));
        let record: UploadRecord =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let name = ObjectName::new(record.name.as_str())?;
        Ok(Upload {
            cluster,
            id: id.to_owned(),
            name,
            record,
            version: Some(found.listed().version),
            begun: found.created(),
        })
    }

    /// Returns the uploads that are not complete, in the order of their ids.
    pub async fn all(self) -> Result<Vec<Upload<'v>>> {
        let uploads = self.recorded(UPLOADS).await?.uploads;
        Ok(uploads.into_iter().filter(|upload| !upload.record.is_over()).collect())
    }

    /// Returns the uploads for a name that are not complete, in the order of their ids.
    pub async fn of(self, name: &ObjectName) -> Result<Vec<Upload<'v>>> {
        let uploads = self.recorded(&format!("{UPLOADS}{}", mark_of(name))).await?.uploads;
        let is_open = |upload: &Upload<'_>| !upload.record.is_over() && upload.name == *name;
        Ok(uploads.into_iter().filter(is_open).collect())
    }

    /// Returns all uploads whose records have names that begin with `prefix`. A record that cannot
    /// be read does not keep the others from being returned.
    async fn recorded(self, prefix: &str) -> Result<RecordedUploads<'v>> {
        let overview = Overview::of(ListJob::of(self.cluster, prefix)).await?;
        let records: Vec<ObjectName> = overview.objects().map(|(name, _)| name.clone()).collect();
        let find = async |record: ObjectName| {
            let id = record.as_str().strip_prefix(UPLOADS).unwrap_or_default().to_owned();
            if let Ok(upload) = self.open(&id, overview.find(self.cluster, &record).await).await {
                return Ok(Some(Ok(upload)));
            }
            // Perhaps it was replaced meanwhile.
            match self.read(&id).await {
                // It was removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) if error.kind() == ErrorKind::TooFewNodes => Err(error),
                read => Ok(Some(read.map_err(|error| (id, error)))),
            }
        };
        let (mut uploads, mut unreadable) = (Vec::new(), Vec::new());
        let mut found = stream::iter(records).map(find).buffered(AT_ONCE);
        while let Some(found) = found.try_next().await? {
            match found {
                Some(Ok(upload)) => uploads.push(upload),
                Some(Err(failed)) => unreadable.push(failed),
                None => {}
            }
        }
        drop(found);
        Ok(RecordedUploads { overview, uploads, unreadable })
    }

    /// Removes the pieces of objects that were just replaced or removed, given their uploads. What
    /// cannot be removed now is collected later.
    pub async fn clear(self, replaced: &BTreeSet<String>) {
        for id in replaced {
            if let Ok(mut upload) = self.read(id).await
                && upload.record.is_over()
            {
                let _ = upload.clear().await;
            }
        }
    }

    /// Gives up the uploads whose objects were replaced or removed, or at which nothing happened
    /// for a week. Returns the number of those whose pieces were removed.
    ///
    /// # Errors
    /// If an upload cannot be read or removed; the others have been collected then.
    pub async fn collect(self) -> Result<usize> {
        // The pieces are listed first: the records of what is stored later are there already.
        let mut stored: BTreeMap<String, ListedPieces> = BTreeMap::new();
        for (name, listed) in list(self.cluster, PIECES).await? {
            let Some((id, number)) = names::parse_piece(&name) else { continue };
            let pieces = stored.entry(id.to_owned()).or_default();
            pieces.last = pieces.last.max(listed.version.generation);
            pieces.numbers.insert(number);
        }
        let flags = list(self.cluster, CLOSING).await?;
        let is_flagged = |id: &str| flags.keys().any(|flag| id_of_flag(flag) == Some(id));
        let (mut removed, mut known, mut failed) = (0, BTreeSet::new(), None);
        let RecordedUploads { uploads, unreadable, overview } = self.recorded(UPLOADS).await?;
        for mut upload in uploads {
            let pieces = stored.remove(&upload.id).unwrap_or_default();
            let time = pieces.last.max(upload.begun);
            let ends = upload.record.is_over() || now().saturating_sub(time) > WEEK;
            let is_clear = upload.is_settled_by(&overview) && !is_flagged(&upload.id);
            if ends && !(is_clear && upload.is_in_use(&pieces.numbers).await) {
                match upload.end().await {
                    Ok(fate) => removed += usize::from(fate == PieceFate::Removed),
                    Err(error) => _ = failed.get_or_insert(error),
                }
            }
            known.insert(upload.id);
        }
        // Such an upload may be open.
        for (id, _) in &unreadable {
            stored.remove(id);
            known.insert(id.clone());
        }
        known.extend(stored.keys().cloned());
        self.remove_flags_without(&known).await?;
        stored.retain(|_, pieces| now().saturating_sub(pieces.last) > DAY);
        let removed = removed + self.collect_unrecorded(stored.into_keys().collect()).await?;
        let unreadable = unreadable.into_iter().map(|(_, error)| error).next();
        unreadable.or(failed).map_or(Ok(removed), Err)
    }

    /// Removes the flags that do not count any more of uploads that have neither record nor piece.
    async fn remove_flags_without(self, known: &BTreeSet<String>) -> Result<()> {
        let flags = list(self.cluster, CLOSING).await?.into_iter();
        let is_left = |name: &ObjectName, time: u64| {
            now().saturating_sub(time) > DAY
                && id_of_flag(name).is_none_or(|id| !known.contains(id))
        };
        let left = flags.filter(|(name, listed)| is_left(name, listed.version.generation));
        let left: Vec<ObjectName> = left.map(|(name, _)| name).collect();
        remove_all(self.cluster, left).await
    }

    /// Removes the pieces of uploads without a record, if all nodes say that no object has them.
    /// Clients leave such pieces behind if they are killed while they store a part late. The record
    /// of an upload whose object has its pieces is written anew.
    async fn collect_unrecorded(self, ids: Vec<String>) -> Result<usize> {
        if ids.is_empty() {
            return Ok(0);
        }
        let seen = ListJob::of(self.cluster, "").versions().await?;
        if seen.answered.len() < self.cluster.quorum.nodes() || !seen.nameless.is_empty() {
            return Ok(0);
        }
        let mut removed = 0;
        for id in ids {
            // The id begins with a mark of the object's name.
            let has_mark = |name: &&ObjectName| id.split('-').next() == Some(&*mark_of(name));
            let names: Vec<&ObjectName> = seen.names.keys().filter(has_mark).collect();
            let mut upload = self.unrecorded(id.clone(), names.first().copied())?;
            removed += match names.len() {
                0 => usize::from(upload.remove_unnamed().await?),
                1 => usize::from(upload.clear().await? == PieceFate::Removed),
                _ => 0,
            };
        }
        Ok(removed)
    }

    /// Returns an upload without a record, of an object that perhaps has this name.
    fn unrecorded(self, id: String, name: Option<&ObjectName>) -> Result<Upload<'v>> {
        let own = ObjectName::new(format!("{UPLOADS}{id}"))?;
        let name = name.cloned().unwrap_or(own);
        let (notes, done, given_up) = (Notes::new(), false, true);
        let record = UploadRecord { name: name.to_string(), notes, done, given_up };
        Ok(Upload { cluster: self.cluster, id, name, record, version: None, begun: 0 })
    }
}

/// Returns the id of the upload that a flag is about.
fn id_of_flag(flag: &ObjectName) -> Option<&str> {
    flag.as_str().strip_prefix(CLOSING).and_then(|rest| rest.split('/').next())
}

fn unknown(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no upload {id:?}"))
}

/// Returns the objects whose names begin with a prefix.
async fn list(cluster: &Cluster, prefix: &str) -> Result<BTreeMap<ObjectName, Listed>> {
    Ok(ListJob::of(cluster, prefix).run(GetOptions::default()).await?.objects)
}

/// Removes objects that may be gone already.
async fn remove_all(cluster: &Cluster, names: impl IntoIterator<Item = ObjectName>) -> Result<()> {
    let expected = Expected::Anything;
    let remove =
        async |name: ObjectName| match (RemoveJob { cluster, name: &name, expected }).run().await {
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

    async fn store_record(&mut self) -> Result<()> {
        let text = serde_json::to_vec(&self.record)
            .map_err(|error| Error::internal("writing the record of an upload", error))?;
        let name = self.record_name()?;
        let job = PutJob::new(self.cluster, &name, PutOptions::default())?;
        self.version = Some(job.run(Cursor::new(text)).await?.listed.version);
        Ok(())
    }

    /// Makes sure that every reader finds that the upload is over. A record that one reader has
    /// found may be on too few nodes yet, and another reader may find the one before.
    async fn settle_record(&mut self) -> Result<()> {
        let name = self.record_name()?;
        if self.version.is_none() {
            return remove_all(self.cluster, [name]).await;
        }
        let (_, get) = survey(self.cluster, &name, false).await;
        match get.view().settled().map(|settled| settled.version) >= self.version {
            true => Ok(()),
            false => self.store_record().await,
        }
    }

    fn record_name(&self) -> Result<ObjectName> {
        ObjectName::new(format!("{UPLOADS}{}", self.id))
    }

    /// Stores a part as a piece. It counts instead of pieces that are the same part and were begun
    /// earlier.
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
        if self.record.is_over() {
            return Err(self.is_over());
        }
        // The piece's version and number tell together which piece of a part is the newest, so
        // both are of the same moment.
        let begun = Since::now();
        let number = Piece::draw(part, begun)?;
        let name = names::piece(&self.id, number)?;
        let options = PutOptions { time: Some(begun.seconds()), ..options };
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
        let uploads = UploadsJob { cluster: self.cluster };
        let mut upload = match uploads.read(&self.id).await {
            Ok(upload) if !upload.record.is_over() => return Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                uploads.unrecorded(self.id.clone(), Some(&self.name))?
            }
            over => over?,
        };
        upload.settle_record().await?;
        // Somebody who completes the upload at this moment may have chosen the piece.
        let flags = upload.flags().await?;
        if flags.counts {
            return Ok(true);
        }
        let PieceUse { used, is_certain, .. } = upload.look(&flags).await?;
        Ok(!is_certain || used.contains(&number))
    }

    /// Returns the pieces that are stored, by part. A part that was stored several times has
    /// several pieces, the newest one last.
    ///
    /// # Errors
    /// As [`crate::Volume::list`] and [`crate::Volume::find`].
    pub async fn pieces(&self) -> Result<Vec<StoredPiece>> {
        self.look_at(self.numbers().await?.into_iter().map(|(_, number)| number)).await
    }

    /// Returns the newest piece of each part after part `after`, at most `most` of them, and
    /// whether there are more. Only these pieces are looked at.
    ///
    /// # Errors
    /// As [`Self::pieces`].
    pub async fn parts(&self, after: u32, most: usize) -> Result<(Vec<StoredPiece>, bool)> {
        let newest: BTreeMap<u32, u32> = self.numbers().await?.into_iter().collect();
        let mut numbers: Vec<u32> =
            newest.range(after.saturating_add(1)..).map(|(_, &number)| number).collect();
        let are_more = numbers.len() > most;
        numbers.truncate(most);
        Ok((self.look_at(numbers.into_iter()).await?, are_more))
    }

    /// Returns the parts and the numbers of the pieces that are stored, by part. If a part has
    /// several pieces, the newest one comes last.
    async fn numbers(&self) -> Result<Vec<(u32, u32)>> {
        let mut places = Vec::new();
        for (name, listed) in list(self.cluster, &format!("{PIECES}{}/", self.id)).await? {
            if let Some((_, number)) = names::parse_piece(&name) {
                places.push((part_of(number), listed.version.generation, number));
            }
        }
        places.sort_unstable();
        Ok(places.into_iter().map(|(part, _, number)| (part, number)).collect())
    }

    /// Returns the names of the stored pieces whose numbers are not among these.
    async fn stored_but(&self, numbers: &BTreeSet<u32>) -> Result<Vec<ObjectName>> {
        let is_other = |name: &ObjectName| {
            names::parse_piece(name).is_some_and(|(_, number)| !numbers.contains(&number))
        };
        let stored = list(self.cluster, &format!("{PIECES}{}/", self.id)).await?;
        Ok(stored.into_keys().filter(is_other).collect())
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
    /// attributes of a file that was put. The name must have what is expected.
    ///
    /// # Errors
    /// If the numbers do not ascend ([`ErrorKind::Parameters`]), if the upload was completed or
    /// given up meanwhile, or the name has something else
    /// ([`ErrorKind::Busy`]); as [`crate::Volume::put`]. Whether the pieces are
    /// there is not looked at: [`Self::pieces`] tells it.
    pub async fn complete(
        mut self,
        pieces: Vec<Piece>,
        notes: Notes,
        attributes: Attributes,
        expected: Expected,
    ) -> Result<PutReport> {
        let begun = Since::now();
        let chosen: BTreeSet<u32> = pieces.iter().map(|piece| piece.number).collect();
        let notes: Notes = self.record.notes.clone().into_iter().chain(notes).collect();
        let options = PutOptions { attributes, expected, ..PutOptions::default() };
        let options = PutOptions { begun: Some(begun), ..options };
        let options = PutOptions { notes: Some(Arc::new(move || notes.clone()) as _), ..options };
        let flag = self.raise_flag().await?;
        let completed = self.complete_flagged(pieces, options).await;
        if !completed.as_ref().is_err_and(|failed| failed.is_open) {
            // A flag that stays does not count after a day.
            let _ = remove_all(self.cluster, [flag]).await;
        }
        let mut report = completed?;
        // What is not removed now is collected later.
        let _ = self.clear_all_but(&chosen).await;
        let replaced = std::mem::take(&mut report.replaced);
        UploadsJob { cluster: self.cluster }.clear(&replaced).await;
        Ok(report)
    }

    /// Tells others that the upload is being completed. Returns the name of the flag.
    async fn raise_flag(&self) -> Result<ObjectName> {
        let name = ObjectName::new(format!("{CLOSING}{}/{}", self.id, new_object()?))?;
        let job = PutJob::new(self.cluster, &name, PutOptions::default())?;
        job.run(Cursor::new(Vec::new())).await.map(|_| name)
    }

    /// Returns the flags.
    async fn flags(&self) -> Result<Flags> {
        let flags = list(self.cluster, &format!("{CLOSING}{}/", self.id)).await?;
        let age = |time: u64| now().saturating_sub(time);
        let counts = flags.values().any(|listed| age(listed.version.generation) <= DAY);
        Ok(Flags { names: flags.into_keys().collect(), counts })
    }

    async fn complete_flagged(
        &mut self,
        pieces: Vec<Piece>,
        options: PutOptions,
    ) -> Result<PutReport, FailedPut> {
        let cluster = self.cluster;
        match (UploadsJob { cluster }).find(&self.id).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.is_over().into()),
            Ok(upload) if upload.record.done => return Err(self.is_over().into()),
            found => _ = found?,
        }
        let job = PutJob::new(cluster, &self.name, options)?;
        let report = job.run_in_pieces(&self.id, pieces).await?;
        self.set_done().await?;
        Ok(report)
    }

    async fn set_done(&mut self) -> Result<()> {
        (self.record.done, self.record.given_up) = (true, false);
        self.store_record().await
    }

    /// Removes the pieces whose numbers are not among these.
    async fn remove_all_but(&self, numbers: &BTreeSet<u32>) -> Result<()> {
        remove_all(self.cluster, self.stored_but(numbers).await?).await
    }

    /// Gives up the upload: nobody completes it any more, and its pieces are removed, unless the
    /// name has them as its content. Returns whether it was given up. If too few nodes answer to be
    /// sure that no object has the pieces, they are collected later.
    ///
    /// # Errors
    /// If somebody completes the upload at this moment, or the outcome of that is open
    /// ([`ErrorKind::Busy`]); as [`crate::Volume::find`] and [`crate::Volume::remove`].
    pub async fn give_up(mut self) -> Result<bool> {
        match self.end().await? {
            PieceFate::Removed | PieceFate::Kept => Ok(true),
            PieceFate::Used => Ok(false),
            PieceFate::Closing => {
                let message = format!(
                    "the upload of {} is being completed, or it is open whether it was; try again, \
                     or complete it",
                    self.name
                );
                Err(Error::new(ErrorKind::Busy, message))
            }
        }
    }

    /// Gives up the upload, unless it is over or being completed, and then removes the pieces that
    /// are not used.
    async fn end(&mut self) -> Result<PieceFate> {
        if !self.record.is_over() {
            if self.flags().await?.counts {
                return Ok(PieceFate::Closing);
            }
            self.record.given_up = true;
            self.store_record().await?;
        }
        self.clear().await
    }

    /// Whether the overview shows that enough nodes have the record as it was read.
    fn is_settled_by(&self, overview: &Overview) -> bool {
        let settled = |name| Some(overview.settled(self.cluster.quorum, &name)?.0.version);
        self.record_name().is_ok_and(|name| settled(name) == self.version)
    }

    /// Whether the upload is complete and the name's object has all pieces that are `stored`.
    async fn is_in_use(&self, stored: &BTreeSet<u32>) -> bool {
        if !self.record.done {
            return false;
        }
        let Ok(object) = FindJob::of(self.cluster, &self.name).run().await else { return false };
        let used: BTreeSet<u32> = self.used_by(&object).collect();
        !used.is_empty() && stored.is_subset(&used)
    }

    /// Returns the numbers of the pieces of this upload that an object has.
    fn used_by(&self, object: &FoundObject) -> impl Iterator<Item = u32> {
        let pieces = object.pieces().filter(|_| object.upload() == Some(&*self.id));
        pieces.into_iter().flatten().map(|piece| piece.number)
    }

    /// Removes the pieces that are not used of an upload that is over; the record goes last.
    async fn clear(&mut self) -> Result<PieceFate> {
        self.settle_record().await?;
        let flags = self.flags().await?;
        if flags.counts {
            return Ok(PieceFate::Closing);
        }
        let PieceUse { used, is_certain, is_settled } = self.look(&flags).await?;
        let (is_used, is_open) = (!used.is_empty(), !flags.names.is_empty());
        if is_certain {
            self.remove_all_but(&used).await?;
            // A manifest that is not settled may be on a node that is silent the next time. Only
            // the flag tells then that all nodes must answer.
            if is_settled || !is_used {
                remove_all(self.cluster, flags.names).await?;
            }
        }
        match (is_used, is_certain) {
            (true, _) if self.record.done => Ok(PieceFate::Used),
            (true, _) => self.set_done().await.map(|()| PieceFate::Used),
            (false, true) => {
                remove_all(self.cluster, [self.record_name()?]).await?;
                Ok(PieceFate::Removed)
            }
            (false, false) if is_open => Ok(PieceFate::Closing),
            (false, false) => Ok(PieceFate::Kept),
        }
    }

    /// Removes the pieces that are not used, if there are others than these.
    async fn clear_all_but(&mut self, numbers: &BTreeSet<u32>) -> Result<()> {
        match self.stored_but(numbers).await?.is_empty() {
            true => Ok(()),
            false => self.clear().await.map(drop),
        }
    }

    /// Removes all pieces of an upload without a record, if no flag counts. Returns whether it did.
    async fn remove_unnamed(&mut self) -> Result<bool> {
        self.settle_record().await?;
        let flags = self.flags().await?;
        if !flags.counts {
            self.remove_all_but(&BTreeSet::new()).await?;
            remove_all(self.cluster, flags.names).await?;
        }
        Ok(!flags.counts)
    }

    /// Looks which pieces are used.
    ///
    /// The answer is certain if all nodes have answered. Without flags, it is also certain if
    /// enough nodes have answered and they show a settled version, or no version at all: then each
    /// version that was ever written of this upload was settled, and is seen unless another one has
    /// replaced it.
    async fn look(&self, flags: &Flags) -> Result<PieceUse> {
        let (hands, get) = survey(self.cluster, &self.name, !flags.names.is_empty()).await;
        let view = get.view();
        if !view.is_sure() {
            return Err(unsure(hands.files, &hands.log.flaws));
        }
        let is_clear = view.settled().is_some() || view.latest().is_none();
        let is_certain = view.is_complete() || flags.names.is_empty() && is_clear;
        let is_settled = view.latest() == view.settled();
        let mut found = PieceUse { used: BTreeSet::new(), is_certain, is_settled };
        for listed in view.candidates().into_iter().filter(|it| it.kind == VersionKind::Put) {
            let holders: Vec<NodeIndex> = view.holders(listed.version).into_iter().collect();
            let object = FindJob::of(self.cluster, &self.name).listed(listed, &holders).await;
            found.is_certain &= object.is_some();
            found.used.extend(object.iter().flat_map(|object| self.used_by(object)));
        }
        Ok(found)
    }
}

/// Surveys a name. Asks all nodes if `asks_everyone`, or if the first answers do not show that the
/// greatest version is settled.
async fn survey<'a>(
    cluster: &'a Cluster,
    name: &'a ObjectName,
    asks_everyone: bool,
) -> (NameHands<'a>, Get) {
    let mut hands = NameHands::new(cluster, name);
    hands.asks_everyone = asks_everyone;
    let (_, get) = drive(Get::new(cluster.quorum), &mut hands).await;
    match asks_everyone || get.view().latest() == get.view().settled() {
        true => (hands, get),
        false => Box::pin(survey(cluster, name, true)).await,
    }
}

/// Returns what the ids of all uploads for a name begin with.
fn mark_of(name: &ObjectName) -> String {
    blake3::hash(name.as_str().as_bytes()).to_hex()[..16].to_owned()
}
