//! Instructions of the function that a plan becomes, on no processor in particular.
//!
//! [`assemble`](crate::run::jit::assemble) writes them; `x86_64` and `aarch64` turn each into one or a
//! few of their processor's.

use crate::plan::steps::{Register, Step};

/// A general register that holds an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// The argument `pointers`.
    Pointers,
    /// The argument `scratch`.
    Scratch,
    /// One of those for buffers' addresses, from 0.
    Buffer(u8),
    /// One of the same, to which the index register is added.
    Indexed(u8),
    /// Where the function's constants begin.
    Constants,
}

/// An address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) base: Base,
    /// In bytes from the base.
    pub(crate) offset: usize,
}

/// A general register that counts bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// The argument `count`.
    Outer,
    /// The bodies that are left in a packet.
    Inner,
}

/// One instruction of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Saves the registers that the caller wants back.
    Enter,
    /// Makes the constants addressable.
    FindConstants,
    /// Restores them and returns.
    Leave {
        /// Whether there were non-temporal stores.
        nontemporal: bool,
    },
    /// `to = *from`, an address.
    Fetch { to: Base, from: Place },
    /// `base += bytes`
    Advance { base: Base, bytes: usize },
    /// `*place += bytes`, an address.
    AdvanceFetched { place: Place, bytes: usize },
    /// `index = 0`
    StartIndex,
    /// `index += bytes`
    AdvanceIndex(usize),
    /// `inner = count`
    Count(usize),
    /// `counter -= 1; if counter != 0 { goto the instruction of number to }`
    Repeat { counter: Counter, to: usize },
    /// Has a line fetched to the cache.
    Prefetch(Place),
    /// What register allocation says.
    Step(Step<Place>),
    /// Stores a vector by a non-temporal store.
    StoreNontemporal { from: Register, to: Place },
}
