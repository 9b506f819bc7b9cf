//! The clocks of clients, which may be wrong.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::outside::simulated;

/// Work that is done by a clock which is `ahead` seconds ahead of the true time.
struct ByClock<F> {
    ahead: i64,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for ByClock<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let ahead = self.ahead;
        simulated::by_clock(ahead, || self.work.as_mut().poll(context))
    }
}

/// Does work by a clock which is `ahead` seconds ahead of the true time. Tasks that the work spawns
/// have the true time.
pub fn by_clock<F: Future>(ahead: i64, work: F) -> impl Future<Output = F::Output> {
    ByClock { ahead, work: Box::pin(work) }
}
