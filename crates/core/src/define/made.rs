//! Values that are made when they are first needed.

use std::sync::OnceLock;

/// A value that is made by whoever needs it first. Several threads may make it at the same time;
/// the first one counts. So nobody waits for a value that is being made: a forked process would
/// wait for ever for a thread that only its parent has.
#[derive(Debug, Clone)]
pub(crate) struct FirstMade<T>(OnceLock<T>);

impl<T> FirstMade<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the value, if it has been made.
    pub(crate) fn peek(&self) -> Option<&T> {
        self.0.get()
    }

    /// Returns the value. `make` makes it, if it is not there.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.peek().unwrap_or_else(|| {
            let made = make();
            self.0.get_or_init(|| made)
        })
    }
}

impl<T> Default for FirstMade<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for FirstMade<T> {
    fn from(made: T) -> Self {
        Self(made.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// The thread that came first need not end before others have the value.
    #[test]
    fn nobody_waits_for_a_value_that_is_being_made() {
        let made = &FirstMade::new();
        let ((begun, begins), (end, ends)) = (mpsc::channel(), mpsc::channel::<()>());
        std::thread::scope(|scope| {
            let slow = scope.spawn(move || {
                *made.get(|| {
                    begun.send(()).unwrap();
                    let _ = ends.recv();
                    1
                })
            });
            begins.recv().unwrap();
            assert_eq!(*made.get(|| 2), 2);
            drop(end);
            assert_eq!(slow.join().unwrap(), 2, "the first value counts");
        });
        assert_eq!(*made.get(|| 3), 2);
        assert_eq!(*FirstMade::from(4).get(|| 5), 4);
    }
}
