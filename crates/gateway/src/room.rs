//! The memory of all transfers together.
//!
//! A put or a get takes memory for the bytes that are on their way, at most what the volume file
//! allows (`limits.memory`). A gateway moves many objects at a time, so each transfer waits, first
//! come first served, until there is room for it.

use std::sync::Arc;

use paritas_store::error::{Error, Result};
use paritas_store::memory::by_default;
use paritas_volume::Volume;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory of a gateway by default, in bytes, where the machine has four times as much.
const USUAL: u64 = 4 << 30;
/// The most transfers at a time, however small they are. Each of them may keep a thread waiting for
/// its client, and the threads that read and write folders come from the same pool of 512.
const MOST_TRANSFERS: u32 = 256;
/// Memory that a transfer takes beside the bytes of its object.
const OVERHEAD: u64 = 256 << 10;

/// The memory that transfers share, in units of a KiB.
pub(crate) struct TransferMemory {
    free: Arc<Semaphore>,
    total: u32,
    /// The most bytes that one transfer takes.
    most: u64,
    /// Bytes on the way for each byte of an object.
    factor: u64,
}

/// The part of the memory that transfers hold. It is free again when all clones are dropped.
#[derive(Clone)]
pub(crate) struct TransferRoom(
    #[expect(dead_code, reason = "holds its part")] Arc<OwnedSemaphorePermit>,
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
        let free = Arc::new(Semaphore::new(total as usize));
        Ok(Self { free, total, most, factor })
    }

    /// Waits until there is room for a transfer of this many bytes, or of any number of bytes.
    pub async fn take(&self, length: Option<u64>) -> TransferRoom {
        self.take_for(1, length).await
    }

    /// Waits until there is room for the two transfers of a copy.
    pub async fn take_for_copy(&self, length: u64) -> TransferRoom {
        self.take_for(2, Some(length)).await
    }

    async fn take_for(&self, transfers: u32, length: Option<u64>) -> TransferRoom {
        let units = self.units(length).saturating_mul(transfers).min(self.total);
        let taken = Arc::clone(&self.free).acquire_many_owned(units).await;
        TransferRoom(Arc::new(taken.expect("the semaphore is never closed")))
    }

    fn units(&self, length: Option<u64>) -> u32 {
        let bytes =
            length.map(|length| length.saturating_mul(self.factor).saturating_add(OVERHEAD));
        let bytes = bytes.map_or(self.most, |bytes| bytes.min(self.most));
        let least = self.total / MOST_TRANSFERS;
        u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn memory(total: u32, most: u64) -> TransferMemory {
        TransferMemory { free: Arc::new(Semaphore::new(total as usize)), total, most, factor: 3 }
    }

    #[test]
    fn transfers_wait_until_there_is_room() {
        let memory = memory(1 << 20, 256 << 20);
        let rooms: Vec<TransferRoom> =
            (0..4).map(|_| memory.take(Some(1 << 40)).now_or_never().unwrap()).collect();
        assert!(memory.take(Some(0)).now_or_never().is_none());
        let copy = rooms[0].clone();
        drop(rooms);
        assert!(memory.take_for_copy(1 << 40).now_or_never().is_some());
        drop(copy);
        let small: Vec<Option<TransferRoom>> =
            (0..300).map(|_| memory.take(Some(1)).now_or_never()).collect();
        assert_eq!(small.iter().flatten().count(), MOST_TRANSFERS as usize);
    }

    #[test]
    fn room_follows_the_length_up_to_what_a_transfer_may_take() {
        let memory = memory(4 << 20, 256 << 20);
        assert_eq!(memory.units(Some(10 << 20)), (30 << 10) + 256);
        assert_eq!(memory.units(Some(1)), (4 << 20) / MOST_TRANSFERS);
        assert_eq!(memory.units(Some(u64::MAX)), 256 << 10);
        assert_eq!(memory.units(None), 256 << 10);
    }
}
