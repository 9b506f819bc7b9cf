//! The memory of all transfers together.
//!
//! A put or a get takes memory for the bytes that are on their way, at most what the volume file
//! allows (`limits.memory`). A gateway moves many objects at a time, so each transfer waits, first
//! come first served, until there is room for it, but not without end. Large ones share three
//! quarters of the memory, so that small ones find room while clients on slow links take large
//! objects. If there are several keys, each takes at most half of the memory, of which its large
//! transfers take three quarters: a client that sends as slowly as it may leaves room for the
//! others, and for small transfers of its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paritas_store::error::{Error, Result};
use paritas_store::memory::by_default;
use paritas_volume::Volume;
use s3s::auth::Credentials;
use s3s::{S3Result, s3_error};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::held::held;

/// Memory of a gateway by default, in bytes, where the machine has four times as much.
const USUAL: u64 = 4 << 30;
/// The most transfers at a time, however small they are. Each of them may keep a thread waiting for
/// its client.
const MOST_TRANSFERS: u32 = 256;
/// A transfer is large if it takes more than this part of the memory.
const LARGE: u32 = 64;
/// How long a transfer waits for room. Clients wait a minute for an answer, and try again if they
/// are told so.
const ROOM_WITHIN: Duration = Duration::from_secs(30);
/// Memory that a transfer takes beside the bytes of its object.
const OVERHEAD: u64 = 256 << 10;

/// The memory that transfers share, in units of a KiB.
#[derive(Clone)]
pub(crate) struct TransferMemory {
    all: MemoryShare,
    /// What each key may still take of it, if there are several.
    of_keys: Option<KeyShares>,
    total: u32,
    /// The most bytes that one transfer takes.
    most: u64,
    /// Bytes on the way for each byte of an object.
    factor: u64,
}

/// The shares of keys by their ids.
type KeyShares = Arc<Mutex<HashMap<String, MemoryShare>>>;

/// Memory of which large transfers take at most a part.
#[derive(Clone)]
struct MemoryShare {
    free: Arc<Semaphore>,
    /// What large transfers may still take of it.
    free_for_large: Arc<Semaphore>,
    /// The most that large transfers take together.
    most_large: u32,
}

impl MemoryShare {
    /// Shares `total` units, of which large transfers take three quarters, or as much as `one`.
    fn of(total: u32, one: u32) -> Self {
        let most_large = (total - total / 4).max(one.min(total));
        let [free, free_for_large] =
            [total, most_large].map(|units| Arc::new(Semaphore::new(units as usize)));
        Self { free, free_for_large, most_large }
    }

    /// Takes units, in the order in which transfers come.
    async fn take(&self, units: u32, is_large: bool) -> Vec<OwnedSemaphorePermit> {
        let mut taken = Vec::new();
        for units_of in [is_large.then_some(&self.free_for_large), Some(&self.free)] {
            let Some(free) = units_of else { continue };
            let permit = Arc::clone(free).acquire_many_owned(units).await;
            taken.push(permit.expect("the semaphore is never closed"));
        }
        taken
    }
}

/// The part of the memory that transfers hold. It is free again when all clones are dropped.
#[derive(Clone)]
pub(crate) struct TransferRoom(
    #[expect(dead_code, reason = "holds its parts")] Arc<Vec<OwnedSemaphorePermit>>,
);

impl TransferMemory {
    /// Shares `bytes` of memory, or a quarter of what the process may use, up to 4 GiB.
    ///
    /// # Errors
    /// If one put or get may take more than `bytes` ([`ErrorKind::Parameters`]).
    ///
    /// [`ErrorKind::Parameters`]: paritas_store::error::ErrorKind::Parameters
    pub fn new(bytes: Option<u64>, volume: &Volume) -> Result<Self> {
        let most = volume.memory() as u64;
        if let Some(bytes) = bytes.filter(|&bytes| bytes < most) {
            return Err(Error::parameters(format!(
                "a gateway with {bytes} bytes of memory has no room for one put, which may take \
                 {most} (`limits.memory` of the volume file)"
            )));
        }
        let bytes = bytes.unwrap_or_else(|| by_default(USUAL).max(most));
        let total = u32::try_from(bytes >> 10).unwrap_or(u32::MAX).max(MOST_TRANSFERS);
        let (files, needed) = (volume.shards_at(1), volume.shards_needed().max(1));
        let factor = 1 + files.div_ceil(needed) as u64;
        Ok(Self::of(total, most, factor))
    }

    /// Bounds what each of the keys takes, if there are several.
    #[must_use]
    pub fn shared_by(self, keys: usize) -> Self {
        let of_keys = (keys > 1).then(|| self.of_keys.clone().unwrap_or_default());
        Self { of_keys, ..self }
    }

    /// Returns the same memory for transfers of another volume, if it has the same size there.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn renewed(&self, bytes: Option<u64>, volume: &Volume) -> Result<Self> {
        let next = Self::new(bytes, volume)?;
        match (next.total, next.most) == (self.total, self.most) {
            true => Ok(Self { all: self.all.clone(), of_keys: self.of_keys.clone(), ..next }),
            false => Ok(next),
        }
    }

    fn of(total: u32, most: u64, factor: u64) -> Self {
        let one = u32::try_from(most >> 10).unwrap_or(u32::MAX);
        Self { all: MemoryShare::of(total, one), of_keys: None, total, most, factor }
    }

    /// Waits until there is room for a transfer of this many bytes, or of any number of bytes, with
    /// the client that signed by a key.
    ///
    /// # Errors
    /// If there is none within [`ROOM_WITHIN`].
    pub async fn take(
        &self,
        key: Option<&Credentials>,
        length: Option<u64>,
    ) -> S3Result<TransferRoom> {
        soon(self.take_for(key.map(|key| &*key.access_key), 1, length)).await
    }

    /// Waits until there is room for the two transfers of a copy, which no client delays.
    ///
    /// # Errors
    /// As for [`Self::take`].
    pub async fn take_for_copy(&self, length: u64) -> S3Result<TransferRoom> {
        soon(self.take_for(None, 2, Some(length))).await
    }

    async fn take_for(
        &self,
        key: Option<&str>,
        transfers: u32,
        length: Option<u64>,
    ) -> TransferRoom {
        let units = self.units(length).saturating_mul(transfers).min(self.all.most_large);
        let is_large = units > self.total / LARGE;
        let share = key.and_then(|key| self.share_of(key));
        let mut room = Vec::new();
        for share in share.iter().chain([&self.all]) {
            room.extend(share.take(units, is_large).await);
        }
        TransferRoom(Arc::new(room))
    }

    /// Returns the share of a key: half of the memory, or as much as one transfer may take.
    fn share_of(&self, key: &str) -> Option<MemoryShare> {
        let mut shares = held(self.of_keys.as_ref()?);
        let share = shares.entry(key.to_owned()).or_insert_with(|| {
            let one = self.units(None).min(self.all.most_large);
            MemoryShare::of((self.total / 2).max(one), one)
        });
        Some(share.clone())
    }

    fn units(&self, length: Option<u64>) -> u32 {
        let bytes =
            length.map(|length| length.saturating_mul(self.factor).saturating_add(OVERHEAD));
        let bytes = bytes.map_or(self.most, |bytes| bytes.min(self.most));
        let least = self.total / MOST_TRANSFERS;
        u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX).max(least)
    }
}

/// Waits for room. A client that waits without end would give up, and not know why.
///
/// # Errors
/// If there is none within [`ROOM_WITHIN`].
pub async fn soon<T>(room: impl Future<Output = T>) -> S3Result<T> {
    let room = tokio::time::timeout(ROOM_WITHIN, room).await;
    room.map_err(|_| s3_error!(SlowDown, "other requests take all room; try again later"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    impl TransferMemory {
        fn now(&self, transfers: u32, length: Option<u64>) -> Option<TransferRoom> {
            self.take_for(None, transfers, length).now_or_never()
        }
    }

    fn small(memory: &TransferMemory) -> usize {
        let rooms: Vec<Option<TransferRoom>> = (0..300).map(|_| memory.now(1, Some(1))).collect();
        rooms.iter().flatten().count()
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_room_without_end() {
        let memory = TransferMemory::of(1 << 20, 1 << 30, 3);
        let begun = tokio::time::Instant::now();
        let all = memory.take(None, None).await.unwrap();
        let refused = memory.take(None, None).await.err().unwrap();
        assert_eq!((refused.code().as_str(), begun.elapsed()), ("SlowDown", ROOM_WITHIN));
        drop(all);
        memory.take(None, None).await.unwrap();
    }

    #[test]
    fn transfers_wait_until_there_is_room() {
        let memory = TransferMemory::of(1 << 20, 256 << 20, 3);
        let rooms: Vec<TransferRoom> =
            (0..3).map(|_| memory.now(1, Some(1 << 40)).unwrap()).collect();
        assert!(memory.now(1, Some(1 << 40)).is_none());
        let copy = rooms[0].clone();
        drop(rooms);
        assert!(memory.now(2, Some(1 << 40)).is_some());
        drop(copy);
        assert_eq!(small(&memory), MOST_TRANSFERS as usize);
    }

    /// Clients on slow links may hold them for hours.
    #[test]
    fn large_transfers_leave_room_for_small_ones() {
        let memory = TransferMemory::of(4 << 20, 256 << 20, 3);
        let large: Vec<Option<TransferRoom>> = (0..20).map(|_| memory.now(1, None)).collect();
        assert_eq!(large.iter().flatten().count(), 12);
        assert_eq!(small(&memory), MOST_TRANSFERS as usize / 4);
        let least = TransferMemory::of(256 << 10, 256 << 20, 3);
        assert!(least.now(1, None).is_some(), "one put has room in any case");
    }

    /// One of several keys does not take all room.
    #[test]
    fn several_keys_share_the_room() {
        for (keys, most) in [(1, 12), (2, 6)] {
            let memory = TransferMemory::of(4 << 20, 256 << 20, 3).shared_by(keys);
            let of = |key| memory.take_for(Some(key), 1, None).now_or_never();
            let rooms: Vec<Option<TransferRoom>> = (0..20).map(|_| of("one")).collect();
            assert_eq!(rooms.iter().flatten().count(), most);
            assert_eq!(of("other").is_some(), keys > 1);
            let small = memory.take_for(Some("one"), 1, Some(1)).now_or_never();
            assert!(small.is_some(), "a key's large transfers leave room for its small ones");
            drop(small);
            drop(rooms);
            assert!(of("one").is_some());
        }
    }

    #[test]
    fn room_follows_the_length_up_to_what_a_transfer_may_take() {
        let memory = TransferMemory::of(4 << 20, 256 << 20, 3);
        assert_eq!(memory.units(Some(10 << 20)), (30 << 10) + 256);
        assert_eq!(memory.units(Some(1)), (4 << 20) / MOST_TRANSFERS);
        assert_eq!(memory.units(Some(u64::MAX)), 256 << 10);
        assert_eq!(memory.units(None), 256 << 10);
    }
}
