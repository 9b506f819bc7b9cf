//! Keeps compiled programs and finds them by the content of a caller's table.
//!
//! Planning a program takes a fraction of a millisecond. Slower methods can encode a megabyte in
//! that time. So a library may set how many bytes must pass before a program is made
//! ([`Programs::new`]); until then, its calls get `None`.
//!
//! Each thread keeps its most recent programs in its own list. So a usual call only compares one
//! table: it takes no lock and writes no shared memory. The list that all threads share is bounded
//! in number and in memory; the least recently used program is dropped first.
//!
//! No call waits for another one. A process that was forked while another thread made a program, or
//! held the lock, has no such thread, and would wait for ever.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::thread::{self, LocalKey};

use paritas::Prepared;

/// Length of a thread's own list, which the thread searches before it takes the lock.
const RECENT: usize = 8;

/// Largest number of programs that are kept.
const KEPT: usize = 512;

/// Largest estimated size of all kept programs together, in bytes. (A program for 10+4 takes 90 KB
/// over words and 400 KB for a bit matrix with w = 8; one for 100+30 takes 6 MB.)
const KEPT_BYTES: usize = 256 << 20;

/// Number of times that a call tries to take the lock, letting other threads run in between. No
/// thread holds it so long; but in a forked process, the lock of a thread that only the parent has
/// is never released.
const TRIES: usize = 1000;

/// Key of a program: numbers that name the computation and its sizes, and the caller's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a, T> {
    /// The kind of computation and its sizes.
    pub shape: [usize; 6],
    /// The table.
    pub content: &'a [T],
}

/// Entry for one key. Its program is made when that pays. `P` is the type of the program; a library
/// can add its own data about the program to it.
#[derive(Debug)]
pub struct Kept<T, P = Prepared> {
    shape: [usize; 6],
    content: Box<[T]>,
    /// Estimated bytes of the program.
    bytes: usize,
    /// The program, once it has been made; holds `None` if making it failed.
    program: OnceLock<Option<P>>,
    /// Bytes that calls with this key passed before there was a program.
    passed: AtomicUsize,
}

impl<T: Copy + Eq, P> Kept<T, P> {
    fn is(&self, key: &Key<'_, T>) -> bool {
        self.shape == key.shape && *self.content == *key.content
    }
}

/// Entries, the one that was used last first.
type Entries<T, P> = Vec<Arc<Kept<T, P>>>;

/// The entries that a thread used most recently, the latest first.
pub type Recent<T, P = Prepared> = RefCell<Entries<T, P>>;

/// All programs of a library.
#[derive(Debug)]
pub struct Programs<T: 'static, P: 'static = Prepared> {
    /// Bytes that pass before a program is made.
    after: usize,
    /// Estimates, from the key's shape, the bytes of a program for each number of its table.
    bytes_each: fn(&[usize; 6]) -> usize,
    latest_first: Mutex<Entries<T, P>>,
    made: AtomicUsize,
}

impl<T: Copy + Eq, P> Programs<T, P> {
    /// Starts without programs. The program of a key is made by the call that brings the bytes
    /// passed with this key to `after`. `bytes_each` estimates, from the key's shape, the bytes of
    /// a program for each number of its table.
    pub const fn new(after: usize, bytes_each: fn(&[usize; 6]) -> usize) -> Self {
        Self { after, bytes_each, latest_first: Mutex::new(Vec::new()), made: AtomicUsize::new(0) }
    }

    /// Number of programs made so far, including attempts that failed.
    pub fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Calls `act` with the program for `key`, or with `None` if a program does not pay yet or
    /// cannot be made. `make` makes the program. `bytes` returns the number of bytes that this call
    /// passes; it is called only before the program is made.
    pub fn run<R>(
        &self,
        recent: &'static LocalKey<Recent<T, P>>,
        key: Key<'_, T>,
        bytes: impl FnOnce() -> usize,
        make: impl FnOnce() -> paritas::Result<P>,
        act: impl FnOnce(Option<&P>) -> R,
    ) -> R {
        let run = |kept: &Kept<T, P>| act(self.program(kept, bytes, make));
        let mut once = Some(run);
        let in_list = recent.try_with(|list| {
            let mut list = list.try_borrow_mut().ok()?;
            if !list.first().is_some_and(|kept| kept.is(&key)) {
                self.to_front(&mut list, &key);
            }
            once.take().map(|run| run(&list[0]))
        });
        // A thread that is ending has already dropped its list.
        match (in_list, once) {
            (Ok(Some(result)), _) => result,
            (_, Some(run)) => run(&self.find(&key)),
            _ => unreachable!("`run` has returned if it is gone"),
        }
    }

    /// Returns the program of `kept`, and makes it first if it pays now. If several calls make it
    /// at once, one of their programs stays.
    fn program<'k>(
        &self,
        kept: &'k Kept<T, P>,
        bytes: impl FnOnce() -> usize,
        make: impl FnOnce() -> paritas::Result<P>,
    ) -> Option<&'k P> {
        if let Some(program) = kept.program.get() {
            return program.as_ref();
        }
        let bytes = bytes();
        let passed = kept.passed.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if passed < self.after {
            return None;
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        let program = catch_unwind(AssertUnwindSafe(make)).ok().and_then(Result::ok);
        let _ = kept.program.set(program);
        kept.program.get()?.as_ref()
    }

    /// Puts the entry for `key` first in a thread's list.
    fn to_front(&self, list: &mut Entries<T, P>, key: &Key<'_, T>) {
        match list.iter().position(|kept| kept.is(key)) {
            Some(place) => list[..=place].rotate_right(1),
            None => {
                list.truncate(RECENT - 1);
                list.insert(0, self.find(key));
            }
        }
    }

    /// Returns the entry for `key` from the list that all threads share; adds a new entry if there
    /// is none. If the list cannot be had, the entry is the caller's alone.
    fn find(&self, key: &Key<'_, T>) -> Arc<Kept<T, P>> {
        let new = || Arc::new(self.entry(key));
        let Some(mut all) = self.all() else { return new() };
        if let Some(place) = all.iter().position(|kept| kept.is(key)) {
            all[..=place].rotate_right(1);
            return Arc::clone(&all[0]);
        }
        let kept = new();
        all.insert(0, Arc::clone(&kept));
        let bytes = |all: &Entries<T, P>| {
            all.iter().fold(0, |sum: usize, kept| sum.saturating_add(kept.bytes))
        };
        while all.len() > KEPT || all.len() > 1 && bytes(&all) > KEPT_BYTES {
            all.pop();
        }
        kept
    }

    fn entry(&self, key: &Key<'_, T>) -> Kept<T, P> {
        Kept {
            shape: key.shape,
            content: key.content.into(),
            bytes: key.content.len().saturating_mul((self.bytes_each)(&key.shape)),
            program: OnceLock::new(),
            passed: AtomicUsize::new(0),
        }
    }

    /// The list that all threads share; `None` if another thread holds it for ever.
    fn all(&self) -> Option<MutexGuard<'_, Entries<T, P>>> {
        for _ in 0..TRIES {
            match self.latest_first.try_lock() {
                Ok(all) => return Some(all),
                Err(TryLockError::Poisoned(all)) => return Some(all.into_inner()),
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static RECENT_OF_TEST: Recent<u8> = const { Recent::new(Vec::new()) };
    }

    fn program() -> paritas::Result<Prepared> {
        crate::product(paritas::code::Field::new(8)?, vec![vec![1, 2]])
    }

    fn ask(programs: &Programs<u8>, number: usize, content: &[u8]) -> bool {
        let key = Key { shape: [number; 6], content };
        programs.run(&RECENT_OF_TEST, key, || 10, program, |program| program.is_some())
    }

    /// A program is made once for a content, and again if the table is rewritten in place.
    #[test]
    fn programs_are_found_by_content() {
        let programs = Programs::new(0, |_| 1);
        let mut table = [1, 2, 3];
        assert!(ask(&programs, 0, &table) && ask(&programs, 0, &table));
        assert_eq!(programs.made(), 1);
        table[2] = 4;
        assert!(
            ask(&programs, 0, &table) && ask(&programs, 1, &table) && ask(&programs, 0, &[1, 2, 3])
        );
        assert_eq!(programs.made(), 3);
        let other = thread::scope(|scope| scope.spawn(|| ask(&programs, 0, &table)).join());
        assert!(other.unwrap());
        assert_eq!(programs.made(), 3, "another thread finds it too");
    }

    /// As in a forked process whose parent held the lock.
    #[test]
    fn a_lock_that_is_held_for_ever_keeps_nobody() {
        let programs = Programs::new(0, |_| 1);
        let held = programs.all();
        assert!(ask(&programs, 0, &[1]) && ask(&programs, 0, &[1]));
        assert_eq!(programs.made(), 1, "the thread found its own");
        drop(held);
        assert!(programs.all().unwrap().is_empty());
    }

    #[test]
    fn programs_are_made_when_it_pays() {
        let programs = Programs::new(30, |_| 1);
        assert_eq!([0; 4].map(|_| ask(&programs, 0, &[1])), [false, false, true, true]);
        assert_eq!(programs.made(), 1);
    }

    #[test]
    fn programs_are_bounded() {
        const MEGABYTE: usize = 1 << 20;
        let programs = Programs::new(0, |_| MEGABYTE);
        let none = || Err("no-code".parse::<paritas::Code>().unwrap_err());
        for number in 0..KEPT + 10 {
            let key = Key { shape: [number; 6], content: &[] };
            assert!(programs.run(&RECENT_OF_TEST, key, || 0, none, |program| program.is_none()));
        }
        assert_eq!(programs.all().unwrap().len(), KEPT);
        assert_eq!(programs.all().unwrap()[0].shape, [KEPT + 9; 6]);
        let large = vec![0; KEPT_BYTES / MEGABYTE];
        assert!(programs.run(
            &RECENT_OF_TEST,
            Key { shape: [0; 6], content: &large },
            || 0,
            none,
            |p| p.is_none()
        ));
        assert!(programs.run(
            &RECENT_OF_TEST,
            Key { shape: [1; 6], content: &large },
            || 0,
            none,
            |p| p.is_none()
        ));
        assert_eq!(programs.all().unwrap().len(), 1);
    }

    #[test]
    fn what_panics_has_no_program() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let programs = Programs::new(0, |_| 1);
        let key = Key { shape: [0; 6], content: &[7_u8] };
        let panics = || -> paritas::Result<Prepared> { panic!("on purpose") };
        assert!(programs.run(&RECENT_OF_TEST, key, || 0, panics, |program| program.is_none()));
        std::panic::set_hook(hook);
    }
}
