//! Running the asynchronous work of a volume from a program that is not asynchronous.

use std::future::Future;
use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

/// How long what was interrupted may take to remove what it had begun to write.
const CLEANING: Duration = Duration::from_secs(3);

/// How long work is waited for that is to stop. It does not stop while it waits for the outside:
/// for a pipe that nobody reads, or for a disk that hangs.
const STOPPING: Duration = Duration::from_millis(500);

/// Runs work to its end. If the user interrupts the program (Ctrl-C), the work is given up: nothing
/// that was begun becomes visible.
///
/// # Errors
/// If the work fails, if it was interrupted ([`ErrorKind::Cancelled`]), or if the system has no
/// threads ([`ErrorKind::Io`]).
pub fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = runtime()?;
    let result = runtime.block_on(until_interrupted(work));
    runtime.shutdown_timeout(CLEANING);
    result
}

/// Runs the work that `begin` begins as [`run`] does, but on a thread of its own. Work that cannot
/// stop when it is interrupted is left behind, and ends with the program.
///
/// # Errors
/// As [`run`]; if the work panicked ([`ErrorKind::Internal`]).
pub fn run_apart<T: Send + 'static, F: Future<Output = Result<T>>>(
    begin: impl FnOnce() -> F + Send + 'static,
) -> Result<T> {
    let runtime = runtime()?;
    let (handle, (line, outcome)) = (runtime.handle().clone(), oneshot::channel());
    let work = move || drop(line.send(handle.block_on(until_interrupted(begin()))));
    thread::Builder::new().spawn(work).map_err(no_threads)?;
    let panicked = |_| {
        let message = "this is a bug in paritas; please report it";
        Err(Error::new(ErrorKind::Internal, message))
    };
    let result = runtime.block_on(async {
        tokio::select! {
            result = outcome => result.unwrap_or_else(panicked),
            () = until_stuck() => Err(interrupted()),
        }
    });
    runtime.shutdown_timeout(CLEANING);
    result
}

fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().map_err(no_threads)
}

async fn until_interrupted<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        result = work => result,
        Ok(()) = tokio::signal::ctrl_c() => Err(interrupted()),
    }
}

/// Returns when the user has interrupted the program and the work has had time to stop.
async fn until_stuck() {
    match tokio::signal::ctrl_c().await {
        Ok(()) => tokio::time::sleep(STOPPING).await,
        Err(_) => std::future::pending().await,
    }
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "interrupted")
}

fn no_threads(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("starting threads: {error}")).because(error)
}
