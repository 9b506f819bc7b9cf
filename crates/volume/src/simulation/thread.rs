//! Threads of simulated clients, for work that blocks.
//!
//! A thread and the clients take turns, so a run stays in one order. The thread works until it is
//! done or has to wait for a message. While it waits, the clients go on, and after a while it looks
//! again.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paritas_store::error::{Error, ErrorKind, Result};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::sleep;

use crate::outside::simulated::share;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Thread,
    Clients,
    /// Nobody waits for the thread's work any more, or the thread has ended.
    Over,
}

#[derive(Debug)]
struct ThreadTurns {
    turn: Mutex<Turn>,
    changed: Condvar,
}

thread_local! {
    /// The turns of this thread, if it works for a simulated client.
    static TURNS: RefCell<Option<Arc<ThreadTurns>>> = const { RefCell::new(None) };
}

impl ThreadTurns {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to the other side, unless all is over.
    fn give(&self, turn: Turn) {
        let mut now = self.lock();
        if *now != Turn::Over {
            *now = turn;
        }
        self.changed.notify_all();
    }

    /// Waits while it is this turn. Returns the turn that comes after it.
    fn wait_while(&self, turn: Turn) -> Turn {
        let wait = self.changed.wait_while(self.lock(), |now| *now == turn);
        *wait.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the turns when one of the two sides is gone.
struct TurnSide(Arc<ThreadTurns>);

impl Drop for TurnSide {
    fn drop(&mut self) {
        self.0.give(Turn::Over);
    }
}

/// Does work that blocks in a thread of its own.
///
/// # Errors
/// If the work panicked ([`ErrorKind::Internal`]).
pub(crate) async fn block<R: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R> {
    let turns = Arc::new(ThreadTurns { turn: Mutex::new(Turn::Thread), changed: Condvar::new() });
    let side = TurnSide(Arc::clone(&turns));
    let (runtime, outside, of_thread) = (Handle::current(), share(), Arc::clone(&turns));
    let thread = std::thread::spawn(move || {
        let _side = TurnSide(Arc::clone(&of_thread));
        let _runtime = runtime.enter();
        outside.take_over();
        TURNS.set(Some(of_thread));
        work()
    });
    let mut pause = Duration::from_micros(50);
    while turns.wait_while(Turn::Thread) == Turn::Clients {
        sleep(pause).await;
        pause = (2 * pause).min(Duration::from_millis(100));
        turns.give(Turn::Thread);
    }
    let done = thread.join();
    drop(side);
    done.map_err(|_| Error::new(ErrorKind::Internal, format!("{doing}: the thread panicked")))
}

/// Takes the next message from a line, in a thread that works for a simulated client. Returns
/// `None` in all other threads.
pub fn take<T>(line: &mut Receiver<T>) -> Option<Option<T>> {
    let turns = TURNS.with_borrow(Clone::clone)?;
    loop {
        match line.try_recv() {
            Ok(message) => return Some(Some(message)),
            Err(TryRecvError::Disconnected) => return Some(None),
            Err(TryRecvError::Empty) => {}
        }
        turns.give(Turn::Clients);
        if turns.wait_while(Turn::Clients) == Turn::Over {
            return Some(None);
        }
    }
}
