//! The marks that identify nodes of a volume.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use paritas_store::error::{Error, ErrorKind};
use tokio::time::Instant;

use crate::node::Node;

/// Time for which a node counts as marked after its mark was seen. A disk may be unmounted while a
/// program goes on using the volume, and the empty folder in its place has no mark.
const MARKED_FOR: Duration = Duration::from_secs(2);

/// When the mark of a node was last seen, if it was.
#[derive(Debug, Default)]
pub(crate) struct Mark {
    seen: Mutex<Option<Instant>>,
    /// Whether the node failed or had no mark when a look was last completed.
    pub is_away: AtomicBool,
}

impl Mark {
    /// Returns `None` if the mark was seen a short while ago. If it was seen longer ago, only the
    /// first caller gets a look and must check again; the others rely on the mark until the answer
    /// comes.
    pub fn look(&self) -> Option<Look<'_>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|at| at.elapsed() < MARKED_FOR) {
            return None;
        }
        *seen = seen.map(|_| Instant::now());
        Some(Look { mark: self, is_seen: false })
    }

    fn note(&self, is_seen: bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = is_seen.then(Instant::now);
    }
}

/// A look at the mark of a node. If the look is given up before its end, the mark counts as not
/// seen. Otherwise a node whose looks are always given up would count as marked.
pub(crate) struct Look<'a> {
    mark: &'a Mark,
    is_seen: bool,
}

impl Look<'_> {
    pub fn end(mut self, is_seen: bool) {
        self.is_seen = is_seen;
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.mark.note(self.is_seen);
    }
}

/// Returns the error for a node that bears a foreign mark; `id` is the id of the volume.
pub(crate) fn foreign(storage: &Arc<dyn Node>, id: &str, mark: &[u8]) -> Error {
    let mark = String::from_utf8_lossy(mark);
    let message = match mark.trim_end().split_once(' ') {
        Some((of, node)) if of == id => {
            format!("the node bears the mark of {node:?}, another node of this volume")
        }
        Some((of, node)) => {
            format!("the node bears the mark of {node:?}, a node of another volume ({of:?})")
        }
        None => "the node has a file `ready` that is no mark of a volume".to_owned(),
    };
    Error::new(ErrorKind::Exists, message).at_node(storage.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_no_longer_if_the_look_at_it_is_given_up() {
        let mark = Mark::default();
        mark.look().unwrap().end(true);
        assert!(mark.look().is_none(), "it was just seen");
        *mark.seen.lock().unwrap() = Instant::now().checked_sub(MARKED_FOR);
        let look = mark.look().unwrap();
        assert!(mark.look().is_none(), "others rely on it meanwhile");
        drop(look);
        mark.look().unwrap().end(false);
        assert!(mark.look().is_some());
    }
}
