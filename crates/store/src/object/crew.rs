//! Threads that share the segments of an object.
//!
//! All workers of a [`Crew`] do the same: each takes the next segment, reads, computes, and writes.
//! Work that must follow the order of the object (hashing it, writing it to a pipe) is done in
//! turns: a worker waits until the previous segment's turn is over. The first error stops all
//! workers.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, Result};

/// A group of threads, and a value that they visit in turn.
#[derive(Debug)]
pub struct Crew<T> {
    line: Mutex<WaitingLine<T>>,
    moved: Condvar,
    stopped: AtomicBool,
}

#[derive(Debug)]
struct WaitingLine<T> {
    next: u64,
    error: Option<Error>,
    value: T,
}

impl<T: Send> Crew<T> {
    /// Runs `work` on up to `threads` threads until each returns, and returns the value.
    ///
    /// # Errors
    /// If any thread fails; the first error is returned.
    pub fn run(threads: usize, value: T, work: impl Fn(&Self) -> Result<()> + Sync) -> Result<T> {
        let line = Mutex::new(WaitingLine { next: 0, error: None, value });
        let crew = Self { line, moved: Condvar::new(), stopped: AtomicBool::new(false) };
        thread::scope(|scope| {
            // If the system has no more threads, fewer do the same work.
            let spawn = |_| thread::Builder::new().spawn_scoped(scope, || crew.work_once(&work));
            let hands: Vec<_> = (1..threads).map_while(|hand| spawn(hand).ok()).collect();
            crew.work_once(&work);
            for hand in hands {
                hand.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
        });
        let line = crew.line.into_inner().unwrap_or_else(PoisonError::into_inner);
        line.error.map_or(Ok(line.value), Err)
    }

    fn work_once(&self, work: &impl Fn(&Self) -> Result<()>) {
        let stop_if_panicking = StopIfPanicking(self);
        if let Err(error) = work(self) {
            self.stop(Some(error));
        }
        drop(stop_if_panicking);
    }

    /// Waits until all earlier turns are over, and then runs `act`. Turns are numbered from 0, and
    /// every one must be taken.
    ///
    /// # Errors
    /// If `act` fails, or if the crew has stopped ([`crate::error::ErrorKind::Cancelled`]).
    pub fn in_turn<R>(&self, turn: u64, act: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        let mut line = self.lock();
        while line.next != turn && !self.is_stopped() {
            line = self.moved.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_stopped() {
            return Err(Error::cancelled());
        }
        // After an error the turn does not advance: this worker is about to stop the crew.
        let result = act(&mut line.value)?;
        line.next += 1;
        self.moved.notify_all();
        Ok(result)
    }

    /// Whether the crew has stopped, so that a worker should give up.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn stop(&self, error: Option<Error>) {
        let mut line = self.lock();
        if !self.stopped.swap(true, Ordering::Relaxed) {
            line.error = error;
        }
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, WaitingLine<T>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops the crew when this thread panics, so that the panic surfaces instead of a deadlock.
struct StopIfPanicking<'a, T: Send>(&'a Crew<T>);

impl<T: Send> Drop for StopIfPanicking<'_, T> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn each_turn(
        crew: &Crew<Vec<u64>>,
        next: &AtomicU64,
        act: impl Fn(u64) -> Result<()>,
    ) -> Result<()> {
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn >= 200 || crew.is_stopped() {
                return Ok(());
            }
            act(turn)?;
            crew.in_turn(turn, |seen| {
                seen.push(turn);
                Ok(())
            })?;
        }
    }

    #[test]
    fn turns_are_in_order() {
        let next = AtomicU64::new(0);
        let seen = Crew::run(5, Vec::new(), |crew| each_turn(crew, &next, |_| Ok(()))).unwrap();
        assert_eq!(seen, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_stops_all() {
        let next = AtomicU64::new(0);
        let fail = |turn| if turn == 50 { Err(Error::parameters("at 50")) } else { Ok(()) };
        let error = Crew::run(5, Vec::new(), |crew| each_turn(crew, &next, fail)).unwrap_err();
        assert_eq!(error.to_string(), "at 50");
        assert!(next.into_inner() < 70);
    }

    #[test]
    fn a_panic_is_no_standstill() {
        let run = || {
            let next = AtomicU64::new(0);
            let fail = |turn| if turn == 50 { panic!("at 50") } else { Ok(()) };
            Crew::run(5, Vec::new(), |crew| each_turn(crew, &next, fail))
        };
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
