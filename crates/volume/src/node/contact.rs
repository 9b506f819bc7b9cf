//! Contact with a node: how long it has been silent, and whether it is given up.
//!
//! A node that hangs answers nothing, and each call to it would wait for the whole time limit.
//! So the limit counts once for each node, not for each call: as soon as one call has waited that
//! long without a sign of life from the node, contact is *lost*. All calls that wait for the node
//! fail at that moment, and later ones fail at once.
//!
//! ```text
//!             limit                      rest (3 limits, then 6, 12, ...)
//! call 1  |----------x                 .                                |
//! call 2        |----x                 .                                |
//! call 3               x  at once      .                                x  at once; a trial
//! ```
//!
//! After a rest, a lost node is tried again in the background, beside a call that fails at once. So
//! no call waits for the trial. A long command uses a recovered node again, and a short command
//! never tries. Each loss soon after a recovery doubles the rest: a node that answers the trial and
//! then hangs again takes a smaller and smaller part of a long command.
//!
//! Each call must be answered within the limit; an error counts as an answer. Bytes that move
//! extend the limit for all calls, because a large file over a slow link takes longer and is alive
//! all the time. Answers to other calls do not extend it, because a disk that hangs may still
//! answer from the system's cache.
//!
//! A server may also be *closed*: no connection to it can be made, because it is off or because it
//! refuses the login. A call finds that out soon, but only after all its repetitions. So later
//! calls fail at once, with the same reason, and the server is tried again in the background after
//! one limit. Calls that are under way go on, because they may have a connection.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::NodeCall;

/// Time for which a lost node is left alone, in time limits. A command that takes less than three
/// limits never waits twice.
const REST: u32 = 3;

/// After a recovery, a node that stays reachable for this many rests starts again with the shortest
/// rest.
const HELD: u32 = 8;

/// The longest rest, in time limits.
const LONGEST_REST: u32 = 64 * REST;

/// A call is given at least the limit divided by this number, however long earlier calls have
/// waited.
const LEAST: u32 = 10;

/// Number of sent bytes that count as one sign of life. It is small compared with the system's
/// buffers.
const SIGN: usize = 64 << 10;

/// The cause of an error: no connection to the server could be made, for this reason. The client
/// for HTTP has a cause of its own.
#[derive(Debug)]
pub(super) struct NoConnection(pub String);

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoConnection {}

/// Contact with one node, shared by all its callers.
#[derive(Debug)]
pub(crate) struct Contact {
    node: String,
    limit: Duration,
    state: Mutex<ContactState>,
    is_lost: watch::Sender<bool>,
    /// Wakes the calls that wait when contact is lost, in the order in which they began to wait.
    /// `is_lost` would wake them in a random order, and no simulated run would repeat another.
    lost: Notify,
}

#[derive(Debug)]
struct ContactState {
    /// When bytes last moved.
    moved: Instant,
    /// For each kind of call, the waiting time of calls that were given up before the limit.
    doubts: HashMap<NodeCall, Doubt>,
    /// When contact was last regained.
    regained: Instant,
    rest: Duration,
    /// When a lost or closed node is tried again. `None` while it is tried.
    next_trial: Option<Instant>,
    /// Why no connection can be made, if the node is closed.
    closed: Option<Closed>,
}

/// Why no connection to a node can be made.
#[derive(Debug)]
struct Closed {
    kind: ErrorKind,
    reason: String,
    /// When a call last found the node closed.
    found: Instant,
}

/// How long calls of one kind have waited in vain since one of them was last answered. Calls wait
/// side by side, so each adds only the time since `counted`, the moment up to which an earlier one
/// has added it. A disk that hangs may still answer calls of another kind.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    time: Duration,
    counted: Instant,
}

impl Contact {
    /// Begins contact with a node that may be silent for `limit`.
    pub fn new(node: impl Into<String>, limit: Duration) -> Arc<Self> {
        let now = Instant::now();
        let state = ContactState {
            moved: now,
            doubts: HashMap::new(),
            regained: now,
            rest: limit.saturating_mul(REST),
            next_trial: None,
            closed: None,
        };
        let (is_lost, _) = watch::channel(false);
        let (node, state) = (node.into(), Mutex::new(state));
        Arc::new(Self { node, limit, state, is_lost, lost: Notify::new() })
    }

    /// Contact with a node that is never given up.
    pub fn unlimited(node: impl Into<String>) -> Arc<Self> {
        Self::new(node, Duration::from_secs(86_400))
    }

    /// Returns the name of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the time for which the node may be silent.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Notes a sign of life of a call that takes long. It counts for all calls.
    pub fn moved(&self) {
        self.lock().moved = Instant::now();
    }

    /// Whether the node is given up because it is silent.
    pub fn is_lost(&self) -> bool {
        *self.is_lost.borrow()
    }

    /// Whether new calls fail at once, because the node is lost or closed.
    pub fn is_given_up(&self) -> bool {
        self.is_lost() || self.lock().closed.is_some()
    }

    /// Returns a receiver that tells whether the node is lost.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.is_lost.subscribe()
    }

    /// Waits for the answer to a call.
    ///
    /// # Errors
    /// If the call fails, if the node is lost, or if it is silent for the time limit meanwhile.
    pub async fn hold<T>(
        &self,
        kind: NodeCall,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.wait(Some(kind), Duration::ZERO)?.until_answered(call).await
    }

    /// Waits for the answer to a call, `extra` longer than for others.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn hold_longer<T>(
        &self,
        kind: NodeCall,
        extra: Duration,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.wait(Some(kind), extra)?.until_answered(call).await
    }

    /// Waits for the answer to a call that may be given up early because other nodes were faster.
    /// The time until then says nothing about the node.
    ///
    /// # Errors
    /// As [`Self::hold`].
    pub async fn hold_lightly<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.wait(None, Duration::ZERO)?.until_answered(call).await
    }

    fn wait(&self, kind: Option<NodeCall>, extra: Duration) -> Result<Wait<'_>> {
        if self.is_lost() {
            return Err(self.silence());
        }
        let state = self.lock();
        if let Some(Closed { kind, reason, .. }) = &state.closed {
            return Err(Error::new(*kind, reason.clone()).at_node(&self.node));
        }
        let doubt = kind.and_then(|kind| state.doubts.get(&kind).copied());
        drop(state);
        let waited = doubt.map_or(Duration::ZERO, |doubt| doubt.time);
        let patience = self.limit.saturating_sub(waited).max(self.limit / LEAST);
        Ok(Wait { contact: self, begun: Instant::now(), patience, extra, kind })
    }

    fn silence(&self) -> Error {
        let seconds = self.limit.as_secs_f64();
        Error::new(ErrorKind::Io, format!("no answer within {seconds} s")).at_node(&self.node)
    }

    fn lose(&self) {
        let mut state = self.lock();
        if self.is_lost() {
            return;
        }
        let shortest = self.limit.saturating_mul(REST);
        let has_held = state.regained.elapsed() > state.rest.saturating_mul(HELD);
        if has_held {
            state.rest = shortest;
        }
        state.next_trial = Instant::now().checked_add(state.rest);
        state.closed = None;
        self.is_lost.send_replace(true);
        self.lost.notify_waiters();
    }

    /// Notes that a call has failed after all its repetitions, because no connection to the node
    /// can be made. Later calls fail with an error of the same kind, and with `reason`.
    pub fn close(&self, kind: ErrorKind, reason: &str) {
        let mut state = self.lock();
        if self.is_lost() {
            return;
        }
        let found = Instant::now();
        if state.closed.is_none() {
            state.next_trial = found.checked_add(self.limit);
        }
        state.closed = Some(Closed { kind, reason: reason.to_owned(), found });
    }

    /// Returns a trial if the node is lost or closed, and is to be tried again now.
    pub fn due_trial(self: &Arc<Self>) -> Option<Trial> {
        let is_lost = self.is_lost();
        let mut state = self.lock();
        if !is_lost && state.closed.is_none() {
            return None;
        }
        state.next_trial.take_if(|at| *at <= Instant::now())?;
        Some(Trial { contact: Arc::clone(self), begun: Instant::now(), has_answered: false })
    }

    fn tried(&self, begun: Instant, has_answered: bool) {
        let mut state = self.lock();
        let now = Instant::now();
        if let Some(closed) = &state.closed {
            // The trial's call may be answered with the error that the node is still closed.
            match has_answered && closed.found < begun {
                true => state.closed = None,
                false => state.next_trial = now.checked_add(self.limit),
            }
            return;
        }
        let longest = self.limit.saturating_mul(LONGEST_REST);
        state.rest = state.rest.saturating_mul(2).min(longest);
        match has_answered {
            true => {
                state.regained = now;
                state.doubts.clear();
                self.is_lost.send_replace(false);
            }
            false => state.next_trial = now.checked_add(state.rest),
        }
    }

    /// Divides bytes that are to be sent into pieces. Each piece that leaves the process is a sign
    /// of life, because a server that does not read takes only what fits into buffers.
    pub fn signs(self: &Arc<Self>, bytes: Bytes) -> impl Iterator<Item = Bytes> + Send + use<> {
        let (contact, mut rest) = (Arc::clone(self), bytes);
        std::iter::from_fn(move || {
            let piece = rest.split_to(SIGN.min(rest.len()));
            let contact = Arc::clone(&contact);
            (!piece.is_empty()).then(|| Bytes::from_owner(Sign { piece, contact }))
        })
    }

    fn lock(&self) -> MutexGuard<'_, ContactState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that are a sign of life when they are dropped, because they have been sent.
struct Sign {
    piece: Bytes,
    contact: Arc<Contact>,
}

impl AsRef<[u8]> for Sign {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        self.contact.moved();
    }
}

/// A trial of a lost or closed node. If the trial is dropped before its end, the node counts as not
/// having answered.
#[derive(Debug)]
pub(crate) struct Trial {
    contact: Arc<Contact>,
    begun: Instant,
    has_answered: bool,
}

impl Trial {
    /// Waits for any answer. Once it comes, calls go to the node again.
    pub async fn wait<T>(mut self, call: impl Future<Output = T>) {
        self.has_answered = tokio::time::timeout(self.contact.limit, call).await.is_ok();
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.contact.tried(self.begun, self.has_answered);
    }
}

/// A call that is waited for.
struct Wait<'a> {
    contact: &'a Contact,
    begun: Instant,
    patience: Duration,
    extra: Duration,
    /// The kind of call whose time counts as doubt if it is given up before the limit.
    kind: Option<NodeCall>,
}

impl Wait<'_> {
    async fn until_answered<T>(mut self, call: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            answer = call => {
                if let Some(kind) = self.kind.take() {
                    self.contact.lock().doubts.remove(&kind);
                }
                answer
            }
            () = self.until_lost() => Err(self.contact.silence()),
        }
    }

    /// Returns when contact is lost, by this call or another one.
    async fn until_lost(&self) {
        // A loss from here on is noticed, also if contact is regained before this is polled.
        let mut lost = std::pin::pin!(self.contact.lost.notified());
        lost.as_mut().enable();
        while !self.contact.is_lost() {
            let due = self.due();
            tokio::select! {
                biased;
                () = sleep_until(due) => if self.due() <= Instant::now() {
                    self.contact.lose();
                },
                () = lost.as_mut() => return,
            }
        }
    }

    /// Returns the moment until which the node may be silent.
    fn due(&self) -> Instant {
        let moved = self.contact.lock().moved;
        let since_begun = self.begun + self.patience;
        since_begun.max(moved + self.contact.limit) + self.extra
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(kind) = self.kind else { return };
        let mut state = self.contact.lock();
        let doubt =
            state.doubts.entry(kind).or_insert(Doubt { time: Duration::ZERO, counted: self.begun });
        let now = Instant::now();
        // The time of calls that wait side by side counts once.
        doubt.time += now.saturating_duration_since(self.begun.max(doubt.counted));
        doubt.counted = now;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::future::{join, join_all};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn after<T>(seconds: u64, answer: T) -> Result<T> {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(answer)
    }

    fn seconds_since(begun: Instant) -> u64 {
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_waited_for_once_by_all() {
        let (contact, begun) = (Contact::new("n", LIMIT), Instant::now());
        let late = |seconds| {
            let contact = &contact;
            async move {
                after(seconds, ()).await.unwrap();
                contact.hold(NodeCall::Write, pending::<Result<()>>()).await.unwrap_err()
            }
        };
        let errors = join_all([0, 3, 9].map(late)).await;
        assert_eq!(seconds_since(begun), 10);
        for error in errors {
            assert_eq!((error.kind(), error.node()), (ErrorKind::Io, Some("n")));
            assert_eq!(error.message(), "no answer within 10 s");
        }
        contact.hold(NodeCall::Write, pending::<Result<()>>()).await.unwrap_err();
        assert_eq!(seconds_since(begun), 10, "nobody waits for it again");
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_signs_of_life_is_waited_for() {
        let (contact, begun) = (Contact::new("n", LIMIT), Instant::now());
        let signs = async {
            for _ in 0..12 {
                after(9, ()).await.unwrap();
                contact.signs(Bytes::from_static(&[0; 100])).for_each(drop);
            }
        };
        let (answer, ()) = join(contact.hold(NodeCall::Write, after(115, 7)), signs).await;
        assert_eq!((answer.unwrap(), seconds_since(begun)), (7, 115));
        contact.hold_longer(NodeCall::Write, LIMIT, after(19, ())).await.unwrap();
        let answers = async {
            after(9, ()).await.unwrap();
            contact.hold(NodeCall::Write, after(0, ())).await
        };
        let (hung, answered) =
            join(contact.hold(NodeCall::Write, pending::<Result<()>>()), answers).await;
        assert!(hung.is_err() && answered.is_ok());
        assert_eq!(seconds_since(begun), 144, "answers to others are no sign of this call");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_given_up_early_count_together() {
        let give_up = async |call: &mut (dyn Future<Output = Result<()>> + Unpin + Send)| {
            tokio::time::timeout(Duration::from_secs(4), call).await.unwrap_err();
        };
        let contact = Contact::new("n", LIMIT);
        for _ in 0..2 {
            give_up(&mut Box::pin(contact.hold_lightly(pending()))).await;
        }
        let begun = Instant::now();
        for _ in 0..2 {
            let both = join_all([
                contact.hold(NodeCall::Write, pending()),
                contact.hold(NodeCall::Write, pending()),
            ]);
            let both = async { both.await.into_iter().collect::<Result<Vec<()>>>().map(drop) };
            give_up(&mut Box::pin(both)).await;
        }
        contact.hold(NodeCall::Write, pending::<Result<()>>()).await.unwrap_err();
        assert_eq!(seconds_since(begun), 10, "two of them were given up at the same time");

        let contact = Contact::new("n", LIMIT);
        give_up(&mut Box::pin(contact.hold(NodeCall::Write, pending()))).await;
        contact.hold(NodeCall::Delete, after(1, ())).await.unwrap();
        contact.hold(NodeCall::Write, after(5, ())).await.unwrap();
        let begun = Instant::now();
        contact.hold(NodeCall::Write, pending::<Result<()>>()).await.unwrap_err();
        assert_eq!(seconds_since(begun), 10, "it has answered meanwhile");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_node_rests_longer_each_time() {
        let contact = Contact::new("n", LIMIT);
        let lose = async || {
            contact.hold(NodeCall::Write, pending::<Result<()>>()).await.unwrap_err();
            let lost = Instant::now();
            let trial = loop {
                match contact.due_trial() {
                    Some(trial) => break trial,
                    None => after(1, ()).await.unwrap(),
                }
            };
            assert!(contact.due_trial().is_none(), "it is tried by one alone");
            (seconds_since(lost), trial)
        };
        let (rest, trial) = lose().await;
        assert_eq!(rest, 30);
        drop(trial);
        contact.moved();
        assert!(contact.is_lost(), "what still moves may be old");
        after(59, ()).await.unwrap();
        assert!(contact.due_trial().is_none());
        after(1, ()).await.unwrap();
        contact.due_trial().unwrap().wait(after(9, ())).await;
        assert!(!contact.is_lost());
        let (rest, trial) = lose().await;
        assert_eq!(rest, 120);
        trial.wait(after(9, ())).await;
        after(8 * 240 + 1, ()).await.unwrap();
        let (rest, trial) = lose().await;
        assert_eq!(rest, 30, "it has held long enough");
        trial.wait(after(11, ())).await;
        assert!(contact.is_lost(), "the answer came too late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_node_is_not_asked_until_a_trial_finds_it_open() {
        let contact = Contact::new("n", LIMIT);
        let refused = async || {
            after(1, ()).await.unwrap();
            contact.close(ErrorKind::Refused, "login refused");
            Err::<(), _>(Error::new(ErrorKind::Refused, "cannot read a: login refused"))
        };
        let (under_way, closing) = join(
            contact.hold(NodeCall::Read, after(9, 7)),
            contact.hold(NodeCall::Read, refused()),
        )
        .await;
        assert_eq!(under_way.unwrap(), 7, "it had a connection");
        closing.unwrap_err();
        let error = contact.hold(NodeCall::Read, pending::<Result<()>>()).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Refused, "login refused"));
        assert!(contact.is_given_up() && !contact.is_lost());
        assert!(contact.due_trial().is_none(), "it rests for one limit");
        after(2, ()).await.unwrap();
        contact.due_trial().unwrap().wait(refused()).await;
        assert!(contact.is_given_up(), "the answer was that it is still closed");
        after(9, ()).await.unwrap();
        assert!(contact.due_trial().is_none());
        after(1, ()).await.unwrap();
        contact.due_trial().unwrap().wait(after(1, ())).await;
        contact.hold(NodeCall::Read, after(1, ())).await.unwrap();
    }
}
