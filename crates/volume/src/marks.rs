//! The marks that identify nodes of a volume.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paritas_store::error::{Error, ErrorKind, Result};
use tokio::time::Instant;

use crate::node::Node;

/// Time for which a node counts as marked after its mark was seen. A disk may be unmounted while a
/// program goes on using the volume, and the empty folder in its place has no mark.
const MARKED_FOR: Duration = Duration::from_secs(2);

/// Time after which a mark that was seen counts for nobody. In between, calls rely on it while one
/// of them looks again. After a pause, a disk may have been unmounted for hours, so all calls look.
const RELIED_ON_FOR: Duration = Duration::from_secs(4);

/// When the mark of a node was last seen, if it was.
#[derive(Debug, Default)]
pub(crate) struct Mark {
    state: Mutex<MarkState>,
    /// What was wrong when a look was last completed.
    trouble: Mutex<Option<NodeTrouble>>,
}

/// Why a node cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NodeTrouble {
    /// It did not answer, or bears no mark. It may be lost.
    Away,
    /// It refuses access. What it holds is there.
    Refused,
    /// It bears the mark of another node or of another volume: it is not the place that the volume
    /// file means.
    Foreign,
}

impl NodeTrouble {
    /// Returns the trouble that an error of a look at a mark tells.
    fn of(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Exists => Self::Foreign,
            ErrorKind::Refused => Self::Refused,
            _ => Self::Away,
        }
    }
}

#[derive(Debug, Default)]
struct MarkState {
    /// The beginning of the last look, if it saw the mark.
    seen: Option<Instant>,
    is_looked_at: bool,
}

impl Mark {
    /// Returns `None` if the mark was seen less than [`MARKED_FOR`] ago, or less than
    /// [`RELIED_ON_FOR`] ago while another caller looks. Otherwise the caller must check the mark.
    pub fn look(&self) -> Option<Look<'_>> {
        let mut state = self.state();
        let limit = if state.is_looked_at { RELIED_ON_FOR } else { MARKED_FOR };
        if state.seen.is_some_and(|at| at.elapsed() < limit) {
            return None;
        }
        state.is_looked_at = true;
        Some(Look { mark: self, began: Instant::now(), is_seen: false })
    }

    /// Returns what was wrong when a look was last completed.
    pub fn trouble(&self) -> Option<NodeTrouble> {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a completed look has shown.
    pub fn note<T>(&self, looked: &Result<T>) {
        let trouble = looked.as_ref().err().map(NodeTrouble::of);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn state(&self) -> MutexGuard<'_, MarkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A look at the mark of a node. If the look is given up before its end, the mark counts as not
/// seen. Otherwise a node whose looks are always given up would count as marked.
pub(crate) struct Look<'a> {
    mark: &'a Mark,
    began: Instant,
    is_seen: bool,
}

impl Look<'_> {
    pub fn end(mut self, is_seen: bool) {
        self.is_seen = is_seen;
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let seen = self.is_seen.then_some(self.began);
        *self.mark.state() = MarkState { seen, is_looked_at: false };
    }
}

/// Whether the file of a mark has no content, as a crash of a machine can leave it.
pub(crate) fn is_blank(mark: &[u8]) -> bool {
    mark.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace())
}

/// Returns the error for a node without a mark.
pub(crate) fn unmarked(storage: &Arc<dyn Node>, why: &str) -> Error {
    let message = format!("the node does not bear the volume's mark: {why}");
    Error::new(ErrorKind::NotFound, message).at_node(storage.name())
}

/// Returns the error for a node that bears a foreign mark; `id` is the id of the volume.
pub(crate) fn foreign(storage: &Arc<dyn Node>, id: &str, mark: &[u8]) -> Error {
    let mark = String::from_utf8_lossy(mark);
    let is_id = |id: &str| id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    let parts = mark.trim_end().split_once(' ');
    let message = match parts.filter(|(of, node)| is_id(of) && !node.contains('\n')) {
        Some((of, node)) if of == id => {
            format!("the node bears the mark of {node:?}, another node of this volume")
        }
        Some((of, node)) => {
            format!("the node bears the mark of {node:?}, a node of another volume ({of:?})")
        }
        None => "the file `ready` on the node is not the mark of a volume".to_owned(),
    };
    Error::new(ErrorKind::Exists, message).at_node(storage.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Endpoint;

    fn seen_ago(mark: &Mark, ago: Duration) {
        mark.state().seen = Instant::now().checked_sub(ago);
    }

    /// A page of a server that asks for a login is no mark.
    #[test]
    fn only_marks_are_taken_for_marks() {
        let storage: Arc<dyn Node> = Arc::new(Endpoint::memory("n").unwrap());
        let (own, other) = ("0".repeat(32), "f".repeat(32));
        for (mark, part) in [
            (format!("{own} m\n"), "the mark of \"m\", another node of this volume"),
            (format!("{other} m\n"), "a node of another volume"),
            ("<html>Please log in</html>".to_owned(), "is not the mark of a volume"),
            (format!("{other} m\nx\n"), "is not the mark of a volume"),
            (other.clone(), "is not the mark of a volume"),
        ] {
            let error = foreign(&storage, &own, mark.as_bytes()).to_string();
            assert!(error.contains(part), "{mark}: {error}");
        }
    }

    #[test]
    fn a_mark_counts_no_longer_if_the_look_at_it_is_given_up() {
        let mark = Mark::default();
        mark.look().unwrap().end(true);
        assert!(mark.look().is_none(), "it was just seen");
        seen_ago(&mark, MARKED_FOR);
        let look = mark.look().unwrap();
        assert!(mark.look().is_none(), "others rely on it meanwhile");
        drop(look);
        mark.look().unwrap().end(false);
        assert!(mark.look().is_some());
    }

    #[test]
    fn after_a_pause_every_call_looks() {
        let mark = Mark::default();
        mark.look().unwrap().end(true);
        seen_ago(&mark, RELIED_ON_FOR);
        let looks = [mark.look().unwrap(), mark.look().unwrap()];
        looks.into_iter().for_each(|look| look.end(true));
        assert!(mark.look().is_none());
    }
}
