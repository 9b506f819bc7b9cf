//! Running the asynchronous work of a volume from a program that is not asynchronous.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::error::{Error, ErrorKind, Result};

/// How long what was interrupted may take to remove what it had begun to write.
const CLEANING: Duration = Duration::from_secs(3);

/// Time between two questions whether the user has interrupted the work.
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
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.enable_all().build().map_err(|error| {
            Error::new(ErrorKind::Io, format!("starting threads: {error}")).because(error)
        })?;
        Ok(Self(runtime))
    }

    /// Runs work to its end. If `is_interrupted`, which is asked ten times a second, says so, the
    /// work is given up: nothing that was begun becomes visible.
    ///
    /// # Errors
    /// If the work fails, or if it was interrupted ([`ErrorKind::Cancelled`]).
    pub fn run<T>(
        &self,
        work: impl Future<Output = Result<T>>,
        is_interrupted: impl Fn() -> bool,
    ) -> Result<T> {
        self.run_until(work, async {
            while !is_interrupted() {
                tokio::time::sleep(QUESTION).await;
            }
        })
    }

    fn run_until<T>(
        &self,
        work: impl Future<Output = Result<T>>,
        interruption: impl Future<Output = ()>,
    ) -> Result<T> {
        self.0.block_on(async {
            let before = self.0.metrics().num_alive_tasks();
            tokio::select! {
                result = work => return result,
                () = interruption => {}
            }
            // What was dropped with the work is removed by tasks of its own.
            let _ = tokio::time::timeout(CLEANING, self.idle(before)).await;
            Err(Error::new(ErrorKind::Cancelled, "interrupted"))
        })
    }

    /// Waits until no more tasks are left than `usual`: those that keep connections.
    async fn idle(&self, usual: usize) {
        while self.0.metrics().num_alive_tasks() > usual {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Runs work to its end on threads of its own. If the user interrupts the program (Ctrl-C), the work
/// is given up: nothing that was begun becomes visible.
///
/// # Errors
/// If the work fails, if it was interrupted ([`ErrorKind::Cancelled`]), or if the system has no
/// threads ([`ErrorKind::Io`]).
pub fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runner = Runner::new()?;
    let result = runner.run_until(work, async {
        if tokio::signal::ctrl_c().await.is_err() {
            // The system tells of no interruption.
            std::future::pending::<()>().await;
        }
    });
    runner.0.shutdown_timeout(CLEANING);
    result
}
