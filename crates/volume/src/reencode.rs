//! Writing objects anew in their own place: with the present code of the volume, or with other
//! notes.
//!
//! An object keeps its bytes and its time, and its version keeps its generation. So a client that
//! writes other bytes at the same time writes a greater version, and wins
//! ([`crate::protocol::Put::in_place_of`]).

use std::collections::VecDeque;
use std::io::{self, Read};

use bytes::Bytes;
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::sync::mpsc::Receiver;

use crate::cluster::Cluster;
use crate::files::NameFiles;
use crate::find::{FindJob, find_piece, look_everywhere};
use crate::found::FoundObject;
use crate::get::ahead;
use crate::manifest::{Notes, Piece};
use crate::names::{self, ObjectName};
use crate::outside::{random, take};
use crate::protocol::{Expected, Version};
use crate::put::{PutJob, PutOptions, PutReport};
use crate::transfer::receive::Pieces;

/// The result of [`crate::Volume::reencode`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reencoded {
    /// The object was left as it was: it has the volume's code already, or is kept in its
    /// manifests.
    Unchanged,
    /// The object was cut anew.
    Changed(PutReport),
}

/// Cuts an object anew by the volume's code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReencodeJob<'a> {
    pub cluster: &'a Cluster,
    pub name: &'a ObjectName,
}

impl ReencodeJob<'_> {
    pub async fn run(self) -> Result<Reencoded> {
        let object = FindJob::of(self.cluster, self.name).run().await?;
        match object.upload().zip(object.pieces()) {
            Some((upload, pieces)) => self.run_over(object.listed().version, upload, pieces).await,
            None => self.run_of(object).await,
        }
    }

    /// Cuts an object without pieces.
    async fn run_of(self, object: FoundObject) -> Result<Reencoded> {
        let Self { cluster, name } = self;
        let code = cluster.setup.code.spec().to_string();
        if object.code().is_none_or(|old| old == code) {
            return Ok(Reencoded::Unchanged);
        }
        let job = in_place_of(cluster, name, &object, object.notes())?;
        let source = Box::new(source(cluster, name, object).await?);
        Ok(Reencoded::Changed(job.run_in_shards(source).await?))
    }

    /// Cuts the pieces of an object. Returns what the last one that was cut anew has become.
    async fn run_over(self, version: Version, upload: &str, pieces: &[Piece]) -> Result<Reencoded> {
        let Self { cluster, name } = self;
        let mut done = Reencoded::Unchanged;
        for piece in pieces {
            let found = find_piece(NameFiles { cluster, name }, version, upload, piece).await?;
            let name = &names::piece(upload, piece.number)?;
            let job = ReencodeJob { cluster, name };
            if let changed @ Reencoded::Changed(_) = job.run_of(found).await? {
                done = changed;
            }
        }
        Ok(done)
    }
}

/// Gives an object other notes. Its bytes are written anew with them, since a manifest never
/// changes; pieces stay as they are.
pub(crate) async fn renote(
    cluster: &Cluster,
    object: FoundObject,
    notes: &Notes,
    created: Option<u64>,
) -> Result<PutReport> {
    let (name, old) = (&object.name().clone(), object.listed());
    let mut job = in_place_of(cluster, name, &object, notes)?;
    job.options.created = created;
    let done = match object.upload().zip(object.pieces()) {
        Some((upload, pieces)) => {
            job.run_in_pieces(upload, pieces.to_vec()).await.map_err(Error::from)
        }
        None => job.run(source(cluster, name, object).await?).await,
    };
    match done {
        // The bytes of an old version may be gone.
        Err(_) if FindJob::of(cluster, name).run().await.is_ok_and(|now| now.listed() != old) => {
            Err(Error::new(ErrorKind::Busy, format!("{name} was replaced meanwhile")))
        }
        done => done,
    }
}

/// Prepares to write an object in place of itself.
fn in_place_of<'a>(
    cluster: &'a Cluster,
    name: &'a ObjectName,
    object: &FoundObject,
    notes: &Notes,
) -> Result<PutJob<'a>> {
    let mut options = PutOptions::default().noting(notes)?;
    options.attributes.mode = object.mode();
    options.attributes.modified = object.modified();
    options.length = Some(object.length());
    options.created = Some(object.created());
    let old = object.listed().version;
    options.expected = Expected::Version(old);
    Ok(PutJob { cluster, name, object: greater(old.object)?, options, old: Some(old) })
}

/// Returns the bytes of an object as a source. It is read once, so its shards are looked for
/// before: they may have moved.
async fn source(cluster: &Cluster, name: &ObjectName, object: FoundObject) -> Result<ObjectSource> {
    let (object, _) = look_everywhere(cluster, object).await;
    let receiver = object.receiver();
    receiver.map_or(Ok(()), |receiver| cluster.expect_room(name, &receiver.layout))?;
    Ok(ObjectSource::of(&object))
}

/// Draws an id that is greater than `old`, among the next 2^64. So two clients hardly ever draw the
/// same one, and from the first id of an object, which is any number of 128 bits, practically any
/// number of steps is left.
fn greater(old: ObjectId) -> Result<ObjectId> {
    let old = u128::from_be_bytes(*old.as_bytes());
    let drawn = old.checked_add(u128::from(random()?) + 1);
    let spent = || Error::new(ErrorKind::Busy, "no greater id is left; put the object again");
    Ok(ObjectId::new(drawn.ok_or_else(spent)?.to_be_bytes()))
}

/// The bytes of an object, as a source for a put. If their digest is wrong, reading fails instead
/// of ending.
struct ObjectSource {
    units: Receiver<Result<Pieces>>,
    pieces: VecDeque<Bytes>,
    hasher: blake3::Hasher,
    digest: Digest,
}

impl ObjectSource {
    fn of(object: &FoundObject) -> Self {
        Self {
            units: ahead(object.bytes(0..object.length())),
            pieces: VecDeque::new(),
            hasher: blake3::Hasher::new(),
            digest: object.digest(),
        }
    }

    fn end(&self) -> io::Result<usize> {
        let digest = Digest::new(self.hasher.finalize().into());
        match digest == self.digest {
            true => Ok(0),
            false => {
                Err(io::Error::other(format!("the digest must be {}; got {digest}", self.digest)))
            }
        }
    }
}

impl Read for ObjectSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.pieces.is_empty() {
            match take(&mut self.units) {
                Some(pieces) => self.pieces = pieces.map_err(io::Error::other)?.into(),
                None => return self.end(),
            }
        }
        let Some(piece) = self.pieces.front_mut() else { return Ok(0) };
        let bytes = piece.split_to(buffer.len().min(piece.len()));
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.hasher.update(&bytes);
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_by_small_steps() {
        for old in [[0; 16], [0x7f; 16], [0xfe; 16]] {
            let mut last = ObjectId::new(old);
            for _ in 0..100_000 {
                let next = greater(last).unwrap();
                assert!(next > last);
                last = next;
            }
        }
        assert_eq!(greater(ObjectId::new([0xff; 16])).unwrap_err().kind(), ErrorKind::Busy);
    }
}
