//! Running the asynchronous work of a volume from a program that is not asynchronous.

use std::fmt;
use std::future::Future;
use std::io;
use std::thread;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::cleaning::all_removed;

/// Time that interrupted work has to remove what it had begun to write.
const CLEANING: Duration = Duration::from_secs(3);

/// Time that interrupted work has to stop. It cannot stop while it waits for something outside: for
/// a pipe that nobody reads, or for a disk that hangs.
const STOPPING: Duration = Duration::from_millis(500);

/// Time for threads that nobody waits for to end, after everything was removed. Threads that read
/// from a disk that hangs never end.
const ENDING: Duration = Duration::from_millis(100);

/// Most threads that may wait at the same time for what blocks: for disks, and for sources of puts
/// that the caller reads, each of which may be slow for hours.
const MOST_BLOCKING: usize = 8_192;

/// Interval at which `is_interrupted` is asked.
const QUESTION: Duration = Duration::from_millis(100);

/// Threads for the asynchronous work of volumes. Connections to servers stay open between two
/// pieces of work.
///
/// When it is dropped, it waits at most three seconds. During this time, what was given up is
/// removed: unfinished files, heartbeats and claims. It does not wait for remains on a node that
/// does not answer, and leaves behind a thread that waits for something outside. Inside
/// asynchronous work, which must not block, it does not wait.
pub struct Runner(RunnerThreads);

/// The threads, until they are stopped.
struct RunnerThreads(Option<Runtime>);

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Runner")
    }
}

impl Runner {
    /// Starts threads.
    ///
    /// # Errors
    /// If the system cannot start threads ([`ErrorKind::Io`]).
    pub fn new() -> Result<Self> {
        let mut threads = Builder::new_multi_thread();
        threads.enable_all().max_blocking_threads(MOST_BLOCKING);
        let runtime = threads.build().map_err(no_threads)?;
        Ok(Self(RunnerThreads(Some(runtime))))
    }

    fn runtime(&self) -> Result<&Runtime> {
        // They are stopped when the runner is dropped, not before.
        let RunnerThreads(runtime) = &self.0;
        runtime.as_ref().ok_or_else(|| Error::new(ErrorKind::Internal, "the threads are stopped"))
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
        self.runtime()?.block_on(unless(work, interruption))
    }

    /// Stops the threads, as dropping the runner does.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for RunnerThreads {
    fn drop(&mut self) {
        let Some(runtime) = self.0.take() else { return };
        if Handle::try_current().is_ok() {
            return runtime.shutdown_background();
        }
        let _ = runtime.block_on(async { timeout(CLEANING, all_removed()).await });
        runtime.shutdown_timeout(ENDING);
    }
}

/// Runs work to its end. If the user interrupts the program (Ctrl-C), the work is given up: nothing
/// that was begun becomes visible.
///
/// # Errors
/// If the work fails, if it was interrupted ([`ErrorKind::Cancelled`]), or if the system has no
/// threads ([`ErrorKind::Io`]).
pub fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    Runner::new()?.runtime()?.block_on(unless(work, ctrl_c()))
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
    let runtime = runner.runtime()?;
    let (handle, (line, outcome)) = (runtime.handle().clone(), oneshot::channel());
    let [for_work, for_waiting] = [(); 2].map(|()| told_to_end(runtime));
    let work = move || drop(line.send(handle.block_on(unless(begin(), for_work))));
    thread::Builder::new().spawn(work).map_err(no_threads)?;
    let panicked = |_| {
        let message = "this is a bug in paritas; please report it";
        Err(Error::new(ErrorKind::Internal, message))
    };
    runtime.block_on(async {
        tokio::select! {
            result = outcome => result.unwrap_or_else(panicked),
            () = until_stuck(for_waiting) => Err(interrupted()),
        }
    })
}

/// Runs work that lasts until the user ends the program. `begin` gets a future that is ready when
/// the user interrupts the program (Ctrl-C), or when the signal SIGTERM has come; then the work
/// shall end. Once `begin` is called, every signal is noticed, and neither signal ends the program
/// by itself.
///
/// # Errors
/// If the work fails, or if the system has no threads ([`ErrorKind::Io`]).
pub fn run_until_told<T, F: Future<Output = Result<T>>>(
    begin: impl FnOnce(BoxFuture<'static, ()>) -> F,
) -> Result<T> {
    let runner = Runner::new()?;
    let runtime = runner.runtime()?;
    runtime.block_on(begin(told_to_end(runtime)))
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
        // The system does not report interruptions.
        std::future::pending::<()>().await;
    }
}

/// Returns a future that is ready when the user has interrupted the program (Ctrl-C), or when the
/// signal SIGTERM has come. Signals count from now on, even before the future is awaited.
#[cfg(unix)]
fn told_to_end(runtime: &Runtime) -> BoxFuture<'static, ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let _inside = runtime.enter();
    let next = |kind: SignalKind| {
        let signals = signal(kind);
        async move {
            match signals {
                Ok(mut signals) => _ = signals.recv().await,
                // The system does not report signals.
                Err(_) => std::future::pending().await,
            }
        }
    };
    let (interrupt, terminate) = (next(SignalKind::interrupt()), next(SignalKind::terminate()));
    async move {
        tokio::select! {
            () = interrupt => {}
            () = terminate => {}
        }
    }
    .boxed()
}

/// Returns a future that is ready when the user has interrupted the program (Ctrl-C).
#[cfg(not(unix))]
fn told_to_end(_runtime: &Runtime) -> BoxFuture<'static, ()> {
    ctrl_c().boxed()
}

/// Returns when the user has interrupted the program and the work has had time to stop.
async fn until_stuck(told_to_end: BoxFuture<'static, ()>) {
    told_to_end.await;
    tokio::time::sleep(STOPPING).await;
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, "interrupted")
}

fn no_threads(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("starting threads: {error}")).because(error)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use tokio::sync::watch;

    use super::*;
    use crate::cleaning::Unfinished;

    #[test]
    fn a_runner_is_dropped_in_bounded_time_though_a_thread_hangs() {
        let (line, hangs) = std::sync::mpsc::channel::<()>();
        let runner = Runner::new().unwrap();
        let work = async move {
            drop(tokio::task::spawn_blocking(move || hangs.recv()));
            Ok(())
        };
        runner.run(work, || false).unwrap();
        let begun = Instant::now();
        drop(runner);
        assert!(begun.elapsed() < CLEANING, "{:?}", begun.elapsed());
        drop(line);
    }

    #[test]
    fn what_is_on_a_lost_node_is_not_waited_for() {
        let (is_lost, node) = watch::channel(false);
        let runner = Runner::new().unwrap();
        let work = async {
            let mut unfinished = Unfinished::begin_at(node);
            unfinished.remove(std::future::pending());
            Ok(())
        };
        runner.run(work, || false).unwrap();
        is_lost.send_replace(true);
        let begun = Instant::now();
        drop(runner);
        assert!(begun.elapsed() < CLEANING, "{:?}", begun.elapsed());
    }

    /// A signal may come before the work first waits for it.
    #[cfg(unix)]
    #[test]
    fn a_signal_at_the_very_beginning_is_not_missed() {
        let ended = run_until_told(|told| {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
                .unwrap();
            async move { Ok(timeout(CLEANING, told).await.is_ok()) }
        });
        assert!(ended.unwrap());
    }

    #[tokio::test]
    async fn a_runner_may_be_dropped_inside_asynchronous_work() {
        drop(Runner::new().unwrap());
    }

    struct Remains {
        unfinished: Unfinished,
        are_removed: Arc<AtomicBool>,
    }

    impl Drop for Remains {
        fn drop(&mut self) {
            let are_removed = Arc::clone(&self.are_removed);
            self.unfinished.remove(async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                are_removed.store(true, Ordering::Relaxed);
            });
        }
    }

    #[test]
    fn what_is_given_up_is_removed_before_the_threads_stop() {
        let [are_removed, is_begun] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let runner = Runner::new().unwrap();
        let work = async {
            let are_removed = Arc::clone(&are_removed);
            let _remains = Remains { unfinished: Unfinished::begin(), are_removed };
            is_begun.store(true, Ordering::Relaxed);
            std::future::pending::<Result<()>>().await
        };
        let given_up = runner.run(work, || is_begun.load(Ordering::Relaxed)).unwrap_err();
        assert_eq!(given_up.kind(), ErrorKind::Cancelled);
        runner.stop();
        assert!(are_removed.load(Ordering::Relaxed));
    }
}
