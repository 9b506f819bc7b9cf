//! Puts in pieces, which continue where they were interrupted.
//!
//! The file is cut into pieces of one length, and these are stored one after the other as an upload
//! ([`crate::upload`]). If the program ends before the last one, the pieces stay for a week. The
//! next put of the same name looks for them, and compares their digests with the bytes that the
//! file has at their places: equal pieces that are still whole, or can be repaired, do not have to
//! be stored again. So the result is right even if the file was changed meanwhile, or is another
//! file.
//!
//! A file of at most one piece is stored like any other object.
//!
//! Uploads of other programs are left alone: each piece notes the length of all pieces of its put,
//! and only uploads that have such pieces, and no others, are continued.

use std::collections::BTreeMap;
use std::io;

use paritas_shards::Digest;
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::source::SteadyFile;
use paritas_store::state::State;

use crate::cluster::Cluster;
use crate::manifest::{Notes, Piece};
use crate::names::{self, ObjectName};
use crate::outside::block;
use crate::put::{PutJob, PutOptions, PutReport};
use crate::upload::{PutPiece, StoredPiece, Upload, UploadsJob};
use crate::verify::{Verdict, VerifyJob};

/// Bytes of a piece. At most this many bytes are sent again, and the number of pieces stays small
/// enough for manifests to stay small.
pub(crate) const PIECE_BYTES: u64 = 64 << 20;
/// Largest number of pieces. Files that would have more are cut into longer ones.
const MOST_PIECES: u64 = 4096;
/// The note of a piece that tells the length of all pieces of its put. Only the last piece may be
/// shorter.
const CUT_NOTE: &str = "cut";

/// The result of a put in pieces.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PiecewisePut {
    /// What was stored.
    pub report: PutReport,
    /// Bytes of pieces that an earlier put had stored.
    pub kept_bytes: u64,
}

/// Stores a file in pieces.
pub(crate) struct ResumeJob<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a ObjectName,
    pub file: SteadyFile,
    pub piece_bytes: u64,
    pub options: PutOptions,
}

/// An upload, and the pieces that it has by number.
struct ContinuedUpload<'a> {
    upload: Upload<'a>,
    piece_bytes: u64,
    stored: BTreeMap<u32, StoredPiece>,
}

impl<'a> ResumeJob<'a> {
    pub async fn run(self) -> Result<PiecewisePut> {
        let all = self.file.length();
        if all <= self.piece_bytes {
            let report = PutJob::new(self.cluster, self.name, self.options)?.run(self.file).await?;
            return Ok(PiecewisePut { report, kept_bytes: 0 });
        }
        let ContinuedUpload { upload, piece_bytes, stored } = self.upload(all).await?;
        let (mut pieces, mut kept_bytes) = (Vec::new(), 0);
        let (mut reports, mut verdicts) = (Vec::new(), Vec::new());
        for (number, start) in (1..).zip((0..all).step_by(piece_bytes as usize)) {
            let length = piece_bytes.min(all - start);
            let found = stored.get(&number).map(|stored| stored.piece);
            if let Some(piece) = found.filter(|piece| piece.length == length)
                && piece.digest == self.digest(start, length).await?
                && let Some(verdict) = self.kept(&upload, piece).await?
            {
                verdicts.push(verdict);
                self.options.progress.iter().for_each(|progress| progress(length));
                kept_bytes += length;
                pieces.push(piece);
                continue;
            }
            let stored = self.put_piece(&upload, number, start, length, piece_bytes).await?;
            pieces.push(stored.piece);
            reports.push(stored.report);
        }
        self.file.expect_unchanged().map_err(reading)?;
        let notes = self.options.notes.as_ref().map(|notes| notes()).unwrap_or_default();
        let PutOptions { attributes, expected, .. } = self.options;
        let mut report = upload.complete(pieces, notes, attributes, expected).await?;
        report.is_inline = false;
        reports.into_iter().for_each(|piece| report.add(piece));
        for kept in verdicts {
            report.is_owed |= kept.state != State::Intact;
            report.spare = report.spare.min(kept.spare);
        }
        Ok(PiecewisePut { report, kept_bytes })
    }

    /// Looks for the shards of a piece of an earlier put. Returns nothing if the piece must be
    /// stored anew.
    async fn kept(&self, upload: &Upload<'_>, piece: Piece) -> Result<Option<Verdict>> {
        let name = &names::piece(upload.id(), piece.number)?;
        let look = VerifyJob { cluster: self.cluster, name, is_deep: false, overview: None };
        let can_be_read = |it: &Verdict| matches!(it.state, State::Intact | State::Repairable);
        Ok(look.run().await.ok().filter(can_be_read))
    }

    /// Returns the upload that an earlier put has begun, or begins one.
    async fn upload(&self, length: u64) -> Result<ContinuedUpload<'a>> {
        let uploads = UploadsJob { cluster: self.cluster };
        for upload in uploads.of(self.name).await? {
            let stored = upload.pieces().await?;
            let is_fine = |bytes: &u64| length.div_ceil(*bytes) <= MOST_PIECES;
            if let Some(piece_bytes) = cut_of(&stored).filter(is_fine) {
                let stored = stored.into_iter().map(|stored| (stored.piece.part(), stored));
                return Ok(ContinuedUpload { upload, piece_bytes, stored: stored.collect() });
            }
        }
        let mut piece_bytes = self.piece_bytes;
        while length.div_ceil(piece_bytes) > MOST_PIECES {
            piece_bytes *= 2;
        }
        let upload = uploads.begin(self.name, Notes::new()).await?;
        Ok(ContinuedUpload { upload, piece_bytes, stored: BTreeMap::new() })
    }

    async fn put_piece(
        &self,
        upload: &Upload<'_>,
        number: u32,
        start: u64,
        length: u64,
        piece_bytes: u64,
    ) -> Result<PutPiece> {
        let notes: Notes = [(CUT_NOTE.to_owned(), piece_bytes.to_string())].into();
        let options = PutOptions {
            length: Some(length),
            progress: self.options.progress.clone(),
            ..PutOptions::default().noting(&notes)?
        };
        let part = self.file.part(start, length).map_err(reading)?;
        let stored = upload.put_piece(number, part, options).await?;
        match stored.piece.length == length {
            true => Ok(stored),
            false => Err(self.file.expect_unchanged().map_or_else(reading, |()| shorter(length))),
        }
    }

    /// Returns the digest of a part of the file.
    async fn digest(&self, start: u64, length: u64) -> Result<Digest> {
        let mut part = self.file.part(start, length).map_err(reading)?;
        let hashing = block("hashing a piece", move || {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(&mut part).map(|hasher| Digest::new(hasher.finalize().into()))
        });
        hashing.await?.map_err(reading)
    }
}

/// Returns the length of the pieces of an upload, if all of them come from one put in pieces.
fn cut_of(stored: &[StoredPiece]) -> Option<u64> {
    let cut = |stored: &StoredPiece| stored.notes.get(CUT_NOTE)?.parse().ok();
    let first = stored.first().and_then(cut).filter(|&bytes| bytes > 0)?;
    stored.iter().all(|stored| cut(stored) == Some(first)).then_some(first)
}

fn reading(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("reading the source: {error}"))
}

/// Returns the error for a file that ended within a piece of `length` bytes although its length and
/// time are as before.
fn shorter(length: u64) -> Error {
    Error::new(ErrorKind::Io, format!("the source ended within a piece of {length} bytes"))
}
