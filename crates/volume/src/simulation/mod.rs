//! The real client in a simulated world: put, get, remove, repair, promote and all else as programs
//! run it, over nodes whose every delay, failure, cut, loss and rot comes from a seed.
//!
//! A run has one thread and tokio's paused clock: time passes only when everybody waits, so hours
//! take milliseconds. What a client takes from outside itself (`outside`) comes from the seed, too.
//! So the same seed has the same history, event by event, and a failing one can be replayed:
//!
//! ```text
//! SIMULATION_SEED=17 cargo test -p paritas-volume --lib simulation::tests::one_seed -- \
//!   --ignored --nocapture
//! ```
//!
//! - `world` has the disks, the processes, and what becomes of each request; `link` is a process's
//!   way to a node, and the trait `Node`. A request is on its way by itself: it may happen minutes
//!   after nobody waits for it any more.
//! - `client` opens the volume and draws jobs. Its clock is up to six hours wrong. Its processes
//!   are killed, or given up, at any moment. In three of ten runs clients store objects in pieces
//!   (`uploads`), several of them at one upload.
//! - In three of five runs, some nodes, as many as the volume may lose, fail in every way: they
//!   refuse, hang, break connections, garble, rot, and lose their disks. Then everything must work.
//!   In the others, requests to all nodes fail. Then everything may fail, but nothing acknowledged
//!   is lost.
//! - `history` checks that each name was a regular register. At the end, `run` checks that
//!   everything acknowledged can be read, even if as many nodes as the volume may lose are missing;
//!   that repair puts everything in order; and that finished work leaves no files behind.
//!
//! Listings are exact, because a node whose listings lag must not be part of a volume: that they
//! lag is one of the broken rules that the simulation finds. Not simulated are the threads that
//! read folders of this machine, and the programs that talk to services. The gateway has a
//! simulation of its own, in the same world: what it needs of this module is public if the feature
//! `simulation` is on.

mod chance;
#[cfg(test)]
mod client;
mod clock;
mod disk;
#[cfg(test)]
mod history;
mod link;
#[cfg(test)]
mod run;
#[cfg(test)]
mod shared;
#[cfg(test)]
mod tests;
mod thread;
#[cfg(test)]
mod uploads;
mod world;

pub use chance::Dice;
pub use clock::by_clock;
pub(crate) use thread::block;
pub use thread::take;
pub use world::{BrokenRule, SimulatedWorld, Weather};

pub use crate::outside::simulated::Simulated;

/// Returns a number from the environment, such as the seed of a run.
///
/// # Panics
/// If the variable is set and is not a number.
#[must_use]
pub fn number_from_environment(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}
