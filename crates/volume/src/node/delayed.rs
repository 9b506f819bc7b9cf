//! Making a node slow.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep, sleep_until};

use super::{Meter, Metered, Node, NodeCall};

/// A node that is made slower than it really is.
pub type Delayed = Metered<Delay>;

/// How slow a node is.
#[derive(Debug)]
pub struct Delay {
    latency: Duration,
    /// Bytes a second, read and written together.
    rate: Option<u64>,
    /// The moment at which the line has carried all bytes that it was given.
    free: Mutex<Instant>,
}

impl Metered<Delay> {
    /// Delays every request by `latency`, and limits all requests together to `rate` bytes a second
    /// if it is given. Requests wait for their latency at the same time, but take turns on the
    /// line.
    pub fn by(inner: Arc<dyn Node>, latency: Duration, rate: Option<u64>) -> Self {
        let delay = Delay { latency, rate, free: Mutex::new(Instant::now()) };
        Self::new(inner, Arc::new(delay))
    }
}

impl Delay {
    /// Reserves the line for some bytes. Returns the moment at which it has carried them.
    fn reserve(&self, bytes: u64, rate: u64) -> Instant {
        let takes = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = (*free).max(Instant::now()) + takes;
        *free
    }
}

#[async_trait]
impl Meter for Delay {
    type Guard = ();

    async fn begin(&self, call: NodeCall) {
        if call != NodeCall::Piece {
            sleep(self.latency).await;
        }
    }

    async fn carry(&self, _call: NodeCall, bytes: u64) {
        if let Some(rate) = self.rate {
            sleep_until(self.reserve(bytes, rate)).await;
        }
    }
}
