//! Limiting the load on a node: the number of requests at a time, and the number of bytes a second.

use std::num::NonZeroU32;
use std::sync::Arc;

use async_trait::async_trait;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use paritas_store::error::Result;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Meter, Metered, Node, NodeCall};

/// A node whose load is limited.
pub type Limited = Metered<NodeLimits>;

/// The limits of the load on a node.
///
/// A writer counts as a request only while it sends bytes, not from beginning to end. So any number
/// of writers can be open, and writers that wait for each other cannot deadlock.
#[derive(Debug)]
pub struct NodeLimits {
    requests: Arc<Semaphore>,
    /// Limits the bytes that come from the node.
    reading: Option<TokenRate>,
    /// Limits the bytes that go to the node.
    writing: Option<TokenRate>,
}

#[derive(Debug)]
struct TokenRate {
    limiter: DefaultDirectRateLimiter,
    /// Bytes that may move at once: the number allowed in one second.
    burst: NonZeroU32,
}

impl Metered<NodeLimits> {
    /// Allows a node `requests` requests at a time, and `rate` bytes a second in each direction if
    /// it is given. At least one of each is allowed.
    pub fn to(inner: Arc<dyn Node>, requests: usize, rate: Option<u64>) -> Self {
        let requests = Arc::new(Semaphore::new(requests.clamp(1, Semaphore::MAX_PERMITS)));
        let [reading, writing] = [rate.map(TokenRate::new), rate.map(TokenRate::new)];
        Self::new(inner, Arc::new(NodeLimits { requests, reading, writing }))
    }

    /// Allows a node `rate` bytes a second in each direction, and any number of requests.
    pub fn to_rate(inner: Arc<dyn Node>, rate: u64) -> Self {
        Self::to(inner, usize::MAX, Some(rate))
    }
}

impl TokenRate {
    fn new(rate: u64) -> Self {
        let rate = u32::try_from(rate).unwrap_or(u32::MAX);
        let burst = NonZeroU32::new(rate).unwrap_or(NonZeroU32::MIN);
        Self { limiter: RateLimiter::direct(Quota::per_second(burst)), burst }
    }

    async fn wait(&self, bytes: u64) {
        let mut left = bytes;
        while left > 0 {
            let now =
                u32::try_from(left).map_or(self.burst.get(), |left| left.min(self.burst.get()));
            if let Some(now) = NonZeroU32::new(now) {
                // This fails only for more bytes than a burst.
                let _ = self.limiter.until_n_ready(now).await;
            }
            left -= u64::from(now);
        }
    }
}

#[async_trait]
impl Meter for NodeLimits {
    type Guard = Option<OwnedSemaphorePermit>;

    /// Waits until fewer requests are under way. The semaphore is never closed.
    async fn begin(&self, _call: NodeCall, _path: &str) -> Result<Self::Guard> {
        Ok(self.requests.clone().acquire_owned().await.ok())
    }

    /// Does not take a permit: only few threads read this way, and a disk that hangs would keep the
    /// permit, because such a read has no time limit.
    async fn begin_here(&self, _path: &str) -> Result<Self::Guard> {
        Ok(None)
    }

    async fn carry(&self, call: NodeCall, bytes: u64) {
        let rate = if call == NodeCall::Read { &self.reading } else { &self.writing };
        if let Some(rate) = rate {
            rate.wait(bytes).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::FolderNode;

    /// Such a thread may hang with its disk. Other callers of the disk have time limits.
    #[tokio::test]
    async fn a_thread_that_may_block_takes_no_permit() {
        let folder = Arc::new(FolderNode::new("disk", "nowhere", false));
        let meter = Arc::clone(Metered::to(folder, 1, None).meter());
        assert!(meter.begin_here("file").await.unwrap().is_none());
        assert!(meter.begin(NodeCall::Read, "file").await.unwrap().is_some());
    }
}
