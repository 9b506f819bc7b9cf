//! Running the asynchronous work of a volume from a program that is not asynchronous.

use std::fmt;
use std::future::Future;
use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

/// Time that interrupted work has to remove what it had begun to write.
const CLEANING: Duration = Duration::from_secs(3);

/// Time that interrupted work has to stop. It cannot stop while it waits for something outside: for
/// a pipe that nobody reads, or for a disk that hangs.
const STOPPING: Duration = Duration::from_millis(500);

/// Interval at which `is_interrupted` is asked.
const QUESTION: Duration = Duration::from_millis(100);

/// Threads for the asynchronous work of volumes. Connections to servers stay open between two
/// pieces of work.
pub struct Runner(Runtime);

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runner")
    }
}

impl Runner {
    /// Starts threads.
    ///
    /// # Errors
    /// If the system has none ([`ErrorKind::Io`]).
    pub fn new() -> Result<Self> {
        Builder::new_multi_thread().enable_all().build().map(Self).map_err(no_threads)
    }

    /// Runs work to its end, unless `is_interrupted`, which is asked ten times a second, returns
    /// true. Then the work is given up, and nothing that was begun becomes visible.
    ///
    /// # Errors
    /// If the work fails, or if it was interrupted ([`ErrorKind::Cancelled`]).
    pub fn run<T>(
        &self,
        work: impl Future<Output = Result<T>>,
        is_interrupted: impl Fn() -> bool,
    ) -> Result<T> {
        let interruption = async {
            while !is_interrupted() {
                tokio::time::sleep(QUESTION).await;
            }
        };
        self.0.block_on(unless(work, interruption))
    }

    /// Stops the threads within three seconds. During this time, tasks remove the unfinished files
    /// of work that was given up. A thread that waits for something outside is left behind.
    pub fn stop(self) {
        self.0.shutdown_timeout(CLEANING);
    }
}

/// Runs work to its end. If the user interrupts the program (Ctrl-C), the work is given up: nothing
/// that was begun becomes visible.
///
/// # Errors
/// If the work fails, if it was interrupted ([`ErrorKind::Cancelled`]), or if the system has no
/// threads ([`ErrorKind::Io`]).
pub fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runner = Runner::new()?;
    let result = runner.0.block_on(unless(work, ctrl_c()));
    runner.stop();
    result
}

/// Runs the work that `begin` begins as [`run`] does, but on a thread of its own, and treats the
/// signal SIGTERM as an interruption, too. Work that cannot stop when it is interrupted is left
/// behind, and ends with the program. From then on, neither signal ends the program by itself.
///
/// # Errors
/// As [`run`]; if the work panicked ([`ErrorKind::Internal`]).
pub fn run_apart<T: Send + 'static, F: Future<Output = Result<T>>>(
    begin: impl FnOnce() -> F + Send + 'static,
) -> Result<T> {
    let runner = Runner::new()?;
    let (handle, (line, outcome)) = (runner.0.handle().clone(), oneshot::channel());
    let work = move || drop(line.send(handle.block_on(unless(begin(), signal()))));
    thread::Builder::new().spawn(work).map_err(no_threads)?;
    let panicked = |_| {
        let message = "this is a bug in paritas; please report it";
        Err(Error::new(ErrorKind::Internal, message))
    };
    let result = runner.0.block_on(async {
        tokio::select! {
            result = outcome => result.unwrap_or_else(panicked),
            () = until_stuck() => Err(interrupted()),
        }
    });
    runner.stop();
    result
}

/// Runs work unless `interruption` comes first.
async fn unless<T>(
    work: impl Future<Output = Result<T>>,
    interruption: impl Future<Output = ()>,
) -> Result<T> {
    tokio::select! {
        result = work => result,
        () = interruption => Err(interrupted()),
    }
}

/// Returns when the user has interrupted the program.
async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        // The system tells of no interruption.
        std::future::pending::<()>().await;
    }
}

/// Returns when the user has interrupted the program, or when it was asked to end.
async fn signal() {
    tokio::select! {
        () = ctrl_c() => {}
        () = terminated() => {}
    }
}

/// Returns when the signal SIGTERM has come.
#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signals) => _ = signals.recv().await,
        // The system tells of no signal.
        Err(_) => std::future::pending().await,
    }
}

/// Never returns: the system has no such signal.
#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

/// Returns when the user has interrupted the program and the work has had time to stop.
async fn until_stuck() {
    signal().await;
    tokio::time::sleep(STOPPING).await;
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "interrupted")
}

fn no_threads(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("starting threads: {error}")).because(error)
}
