//! Clients that store objects in pieces, alone or several of them at one upload.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::time::Duration;

use futures::future::join;
use paritas_store::error::Result;
use paritas_store::place::attributes::Attributes;
use tokio::time::sleep;

use super::client::{Scene, name};
use super::history::Act;
use super::shared::{SharedUpload, SharedUploads, content};
use crate::found::GetOptions;
use crate::manifest::{Notes, Piece};
use crate::names;
use crate::protocol::Expected;
use crate::put::PutOptions;
use crate::upload::Upload;
use crate::volume::Volume;

/// The most parts of an upload.
const PARTS: u64 = 3;

impl Scene {
    fn uploads(&self) -> std::sync::MutexGuard<'_, SharedUploads> {
        self.uploads.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns what the history calls a content that was read.
    pub fn number_of(&self, bytes: &[u8]) -> Option<u64> {
        self.uploads().number_of(bytes)
    }

    /// Stores an object in pieces, from the beginning to the end, unless others interfere.
    pub async fn put_pieces(&self, volume: &Volume, number: usize, content: u64) -> Result<()> {
        let id = self.begin(volume, number, content).await?;
        self.complete(volume.find_upload(&id).await?, number).await
    }

    /// Begins an upload and stores its parts. Returns its id, which other clients then know.
    async fn begin(&self, volume: &Volume, number: usize, content: u64) -> Result<String> {
        let upload = volume.begin_upload(&name(number), Notes::new()).await?;
        let id = upload.id().to_owned();
        let shared = SharedUpload { name: number, id: id.clone(), pieces: BTreeMap::new() };
        self.uploads().uploads.push(shared);
        for part in 0..1 + content % PARTS {
            self.store(&upload, part, content.wrapping_add(part)).await?;
        }
        Ok(id)
    }

    /// Stores one more part of an upload that somebody has begun.
    pub async fn put_piece(&self, volume: &Volume, number: usize, content: u64) -> Result<()> {
        let Some(upload) = self.shared(volume, number).await? else { return Ok(()) };
        self.store(&upload, content % PARTS, content).await
    }

    /// Completes an upload that somebody has begun, with the parts that are there.
    pub async fn complete_upload(&self, volume: &Volume, number: usize) -> Result<()> {
        match self.shared(volume, number).await? {
            Some(upload) => self.complete(upload, number).await,
            None => Ok(()),
        }
    }

    /// Gives up an upload that somebody has begun.
    pub async fn give_up(&self, volume: &Volume, number: usize) -> Result<()> {
        match self.shared(volume, number).await? {
            Some(upload) => upload.give_up().await.map(drop),
            None => Ok(()),
        }
    }

    /// Stores an upload, and then two clients at once complete it, or one completes it while the
    /// other one gives it up or stores a part once more.
    pub async fn race(&self, volume: &Volume, number: usize, content: u64) -> Result<()> {
        let id = self.begin(volume, number, content).await?;
        let later = self.world.draw(|chance| chance.time(Duration::from_millis(300)));
        let other = async {
            sleep(later).await;
            let upload = volume.find_upload(&id).await?;
            match content % 4 {
                0 => self.complete(upload, number).await,
                1 => self.store(&upload, 0, content.wrapping_add(PARTS)).await,
                _ => upload.give_up().await.map(drop),
            }
        };
        let complete = async { self.complete(volume.find_upload(&id).await?, number).await };
        let (done, other) = join(complete, other).await;
        done.and(other)
    }

    /// Finds one of the uploads of a name that clients know.
    async fn shared<'v>(&self, volume: &'v Volume, number: usize) -> Result<Option<Upload<'v>>> {
        let known: Vec<String> = {
            let uploads = self.uploads();
            let of_name = uploads.uploads.iter().filter(|upload| upload.name == number);
            of_name.map(|upload| upload.id.clone()).collect()
        };
        match known.is_empty() {
            true => Ok(None),
            false => {
                let id = self.world.draw(|chance| chance.below(known.len() as u64) as usize);
                volume.find_upload(&known[id]).await.map(Some)
            }
        }
    }

    async fn store(&self, upload: &Upload<'_>, part: u64, number: u64) -> Result<()> {
        let bytes = content(number, 8 + number % 700);
        let (part, source) = (part as u32 + 1, Cursor::new(bytes.clone()));
        let put = upload.put_piece(part, source, PutOptions::default()).await?;
        if let Some(shared) = self.uploads().of(upload.id()) {
            shared.pieces.insert(part, (put.piece, bytes));
        }
        Ok(())
    }

    /// Completes an upload with the pieces that were acknowledged.
    async fn complete(&self, upload: Upload<'_>, number: usize) -> Result<()> {
        let (pieces, content) = {
            let mut uploads = self.uploads();
            let shared = uploads.of(upload.id()).map(|shared| shared.pieces.clone());
            let Some(shared) = shared.filter(|pieces| !pieces.is_empty()) else { return Ok(()) };
            let (pieces, bytes): (Vec<Piece>, Vec<Vec<u8>>) = shared.into_values().unzip();
            (pieces, uploads.compose(bytes.concat()))
        };
        let deed = self.history().begin(number, Act::Put(content, None));
        let report = upload
            .complete(pieces, Notes::new(), Attributes::default(), Expected::Anything)
            .await?;
        self.history().end(deed, Act::Put(content, Some(report.listed)));
        Ok(())
    }

    /// Returns the pieces of the objects that count.
    pub async fn pieces_in_use(&self, volume: &Volume) -> BTreeSet<names::ObjectName> {
        let mut used = BTreeSet::new();
        for number in 0..self.names {
            let Ok(found) = volume.find(&name(number), GetOptions::default()).await else {
                continue;
            };
            let pieces = found.pieces().into_iter().flatten();
            let id = found.upload().unwrap_or_default();
            used.extend(pieces.filter_map(|piece| names::piece(id, piece.number).ok()));
        }
        used
    }

    /// Checks that nothing is left of uploads but the pieces of objects and the uploads' records.
    pub async fn expect_no_uploads(&self, volume: &Volume) -> Result<()> {
        let used = self.pieces_in_use(volume).await;
        let ids: BTreeSet<&str> =
            used.iter().filter_map(names::parse_piece).map(|it| it.0).collect();
        for own in volume.list(names::OWN).await?.objects.into_keys() {
            let record = own.as_str().strip_prefix(names::UPLOADS);
            let is_used = used.contains(&own) || record.is_some_and(|id| ids.contains(id));
            if !is_used {
                self.history().flaw(format!("weeks later, there is still {own}"));
            }
        }
        Ok(())
    }
}
