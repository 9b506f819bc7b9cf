//! Running the asynchronous work of a volume from a program that is not asynchronous.

use std::future::Future;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// How long what was interrupted may take to remove what it had begun to write.
const CLEANING: Duration = Duration::from_secs(3);

/// Runs work to its end. If the user interrupts the program (Ctrl-C), the work is given up: nothing
/// that was begun becomes visible.
///
/// # Errors
/// If the work fails, if it was interrupted ([`ErrorKind::Cancelled`]), or if the system has no
/// threads ([`ErrorKind::Io`]).
pub fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build().map_err(|error| {
        Error::new(ErrorKind::Io, format!("starting threads: {error}")).because(error)
    })?;
    let result = runtime.block_on(async {
        let interrupted = tokio::select! {
            result = work => return result,
            Ok(()) = tokio::signal::ctrl_c() => Error::new(ErrorKind::Cancelled, "interrupted"),
        };
        // What was dropped with the work is removed by tasks of its own.
        let _ = tokio::time::timeout(CLEANING, idle()).await;
        Err(interrupted)
    });
    runtime.shutdown_timeout(CLEANING);
    result
}

/// Waits until no task is left.
async fn idle() {
    let runtime = tokio::runtime::Handle::current();
    while runtime.metrics().num_alive_tasks() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
