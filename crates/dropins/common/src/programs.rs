//! Programs by the content of a caller's table.
//!
//! Each thread has its most recent programs in a list of its own, so that a usual call takes no
//! lock and writes no shared memory: it compares one table. All programs together are bounded in
//! number and in the bytes of their tables; the least recently used is dropped first.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::LocalKey;

use paritas::Prepared;

/// Number of programs that a thread looks through before it takes the lock.
const RECENT: usize = 8;

/// Largest number of programs that are kept.
const KEPT: usize = 512;

/// Largest number of bytes of the tables that are kept, whatever the number of programs.
const KEPT_BYTES: usize = 64 << 20;

/// What a program is found by: numbers that say what is asked, and the caller's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a, T> {
    /// What is asked, and the shape.
    pub shape: [usize; 6],
    /// The table.
    pub content: &'a [T],
}

/// A program that is kept, or the fact that there is none for its key.
#[derive(Debug)]
pub struct Kept<T> {
    shape: [usize; 6],
    content: Box<[T]>,
    program: Option<Prepared>,
}

impl<T: Copy + Eq> Kept<T> {
    fn is(&self, key: &Key<'_, T>) -> bool {
        self.shape == key.shape && *self.content == *key.content
    }
}

/// The programs that a thread has used last, the latest first.
pub type Recent<T> = RefCell<Vec<Arc<Kept<T>>>>;

/// All programs of a library.
#[derive(Debug)]
pub struct Programs<T: 'static> {
    latest_first: Mutex<Vec<Arc<Kept<T>>>>,
    made: AtomicUsize,
}

impl<T: Copy + Eq> Programs<T> {
    /// No programs.
    pub const fn new() -> Self {
        Self { latest_first: Mutex::new(Vec::new()), made: AtomicUsize::new(0) }
    }

    /// Number of programs that have been made so far.
    pub fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Calls `act` with the program for `key`, which `make` makes if there is none yet; with `None`
    /// if it cannot be made.
    pub fn run<R>(
        &self,
        recent: &'static LocalKey<Recent<T>>,
        key: Key<'_, T>,
        make: impl FnOnce() -> paritas::Result<Prepared>,
        act: impl FnOnce(Option<&Prepared>) -> R,
    ) -> R {
        let mut once = Some((make, act));
        let in_list = recent.try_with(|list| {
            let mut list = list.try_borrow_mut().ok()?;
            let (make, act) = once.take()?;
            if !list.first().is_some_and(|kept| kept.is(&key)) {
                self.to_front(&mut list, &key, make);
            }
            Some(act(list[0].program.as_ref()))
        });
        // A thread that is ending has no list any more.
        match (in_list, once) {
            (Ok(Some(result)), _) => result,
            (_, Some((make, act))) => act(self.find(&key, make).program.as_ref()),
            _ => unreachable!("`act` has run if it is gone"),
        }
    }

    /// Puts the program for `key` first in a thread's list.
    fn to_front(
        &self,
        list: &mut Vec<Arc<Kept<T>>>,
        key: &Key<'_, T>,
        make: impl FnOnce() -> paritas::Result<Prepared>,
    ) {
        match list.iter().position(|kept| kept.is(key)) {
            Some(place) => list[..=place].rotate_right(1),
            None => {
                list.truncate(RECENT - 1);
                list.insert(0, self.find(key, make));
            }
        }
    }

    /// Returns the program for `key` from those of all threads.
    fn find(
        &self,
        key: &Key<'_, T>,
        make: impl FnOnce() -> paritas::Result<Prepared>,
    ) -> Arc<Kept<T>> {
        let place = |all: &[Arc<Kept<T>>]| all.iter().position(|kept| kept.is(key));
        let mut all = self.all();
        if let Some(place) = place(&all) {
            all[..=place].rotate_right(1);
            return Arc::clone(&all[0]);
        }
        // Made outside the lock: two threads may make the same program, which is harmless.
        drop(all);
        let program = catch_unwind(AssertUnwindSafe(make)).ok().and_then(Result::ok);
        self.made.fetch_add(1, Ordering::Relaxed);
        let content = key.content.into();
        let made = Arc::new(Kept { shape: key.shape, content, program });
        let mut all = self.all();
        all.insert(0, Arc::clone(&made));
        let bytes = |all: &[Arc<Kept<T>>]| -> usize {
            all.iter().map(|kept| size_of_val(&*kept.content)).sum()
        };
        while all.len() > KEPT || all.len() > 1 && bytes(&all) > KEPT_BYTES {
            all.pop();
        }
        made
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Kept<T>>>> {
        self.latest_first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Copy + Eq> Default for Programs<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static RECENT_OF_TEST: Recent<u8> = const { Recent::new(Vec::new()) };
    }

    fn program() -> paritas::Result<Prepared> {
        crate::product(paritas::Field::new(8)?, vec![vec![1, 2]])
    }

    fn ask(programs: &Programs<u8>, number: usize, content: &[u8]) -> bool {
        let key = Key { shape: [number; 6], content };
        programs.run(&RECENT_OF_TEST, key, program, |program| program.is_some())
    }

    /// A program is made once for a content, and again if the table is rewritten in place.
    #[test]
    fn programs_are_found_by_content() {
        let programs = Programs::new();
        let mut table = [1, 2, 3];
        assert!(ask(&programs, 0, &table) && ask(&programs, 0, &table));
        assert_eq!(programs.made(), 1);
        table[2] = 4;
        assert!(
            ask(&programs, 0, &table) && ask(&programs, 1, &table) && ask(&programs, 0, &[1, 2, 3])
        );
        assert_eq!(programs.made(), 3);
        let other = std::thread::scope(|scope| scope.spawn(|| ask(&programs, 0, &table)).join());
        assert!(other.unwrap());
        assert_eq!(programs.made(), 3, "another thread finds it too");
    }

    #[test]
    fn programs_are_bounded() {
        let programs = Programs::new();
        let none = || Err("no-code".parse::<paritas::Code>().unwrap_err());
        for number in 0..KEPT + 10 {
            let key = Key { shape: [number; 6], content: &[0] };
            assert!(programs.run(&RECENT_OF_TEST, key, none, |program| program.is_none()));
        }
        assert_eq!(programs.all().len(), KEPT);
        assert_eq!(programs.all()[0].shape, [KEPT + 9; 6]);
        let large = vec![0; KEPT_BYTES];
        assert!(
            programs.run(&RECENT_OF_TEST, Key { shape: [0; 6], content: &large }, none, |p| p
                .is_none())
        );
        assert!(
            programs.run(&RECENT_OF_TEST, Key { shape: [1; 6], content: &large }, none, |p| p
                .is_none())
        );
        assert_eq!(programs.all().len(), 1);
    }

    #[test]
    fn what_panics_has_no_program() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let programs = Programs::new();
        let key = Key { shape: [0; 6], content: &[7_u8] };
        let panics = || -> paritas::Result<Prepared> { panic!("on purpose") };
        assert!(programs.run(&RECENT_OF_TEST, key, panics, |program| program.is_none()));
        std::panic::set_hook(hook);
    }
}
