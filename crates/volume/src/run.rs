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
        tokio::select! {
            result = work => result,
            Ok(()) = tokio::signal::ctrl_c() => {
                Err(Error::new(ErrorKind::Cancelled, "interrupted"))
            }
        }
    });
    runtime.shutdown_timeout(CLEANING);
    result
}
