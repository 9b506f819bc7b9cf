//! Running the asynchronous work of a volume from a program that is not asynchronous.

use std::future::Future;
use std::io;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

/// How long what was interrupted may take to remove what it had begun to write.
const CLEANING: Duration = Duration::from_secs(3);

/// How long work is waited for that is to stop. It does not stop while it waits for the outside:
/// for a pipe that nobody reads, or for a disk that hangs.
const STOPPING: Duration = Duration::from_millis(500);

/// Runs the work that `begin` begins to its end, on a thread of its own. If the user interrupts the
/// program (Ctrl-C), the work is given up: nothing that was begun becomes visible. Work that cannot
/// stop is left behind, and ends with the program.
///
/// # Errors
/// If the work fails, if it was interrupted ([`ErrorKind::Cancelled`]), if it panicked
/// ([`ErrorKind::Internal`]), or if the system has no threads ([`ErrorKind::Io`]).
pub fn run<T: Send + 'static, F: Future<Output = Result<T>>>(
    begin: impl FnOnce() -> F + Send + 'static,
) -> Result<T> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build().map_err(no_threads)?;
    let (handle, (line, outcome)) = (runtime.handle().clone(), oneshot::channel());
    let work = move || {
        let result = handle.block_on(async {
            tokio::select! {
                result = begin() => result,
                Ok(()) = tokio::signal::ctrl_c() => Err(interrupted()),
            }
        });
        drop(line.send(result));
    };
    thread::Builder::new().spawn(work).map_err(no_threads)?;
    let result = runtime.block_on(async {
        let is_stuck = async {
            let pressed = tokio::signal::ctrl_c().await;
            tokio::time::sleep(STOPPING).await;
            pressed
        };
        tokio::select! {
            biased;
            result = outcome => result.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Internal, "this is a bug in paritas; please report it"))
            }),
            Ok(()) = is_stuck => Err(interrupted()),
        }
    });
    runtime.shutdown_timeout(CLEANING);
    result
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "interrupted")
}

fn no_threads(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("starting threads: {error}")).because(error)
}
