//! Instructions of the function that a plan becomes, for no particular processor.
//!
//! [`assemble`](crate::run::jit::assemble()) writes them; `x86_64` and `aarch64` translate each to
//! one or a few instructions of their processor.

use crate::plan::steps::{Register, Step};

/// A general register that holds an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    /// Register of the argument `pointers`.
    Pointers,
    /// Register of the argument `scratch`.
    Scratch,
    /// Register for a buffer's address, numbered from 0.
    Buffer(u8),
    /// Register for a buffer's address, to which the index register is added.
    Indexed(u8),
    /// Register for the beginning of the function's constants.
    Constants,
}

/// An address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) base: Base,
    /// Bytes from the base.
    pub(crate) offset: usize,
}

/// A general register that counts bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Counter of the argument `count`.
    Outer,
    /// Counter of the bodies that are left in a packet.
    Inner,
}

/// One instruction of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Saves the registers that the caller expects unchanged.
    Enter,
    /// Makes the constants addressable.
    FindConstants,
    /// Restores the saved registers and returns.
    Leave {
        /// Whether the function contains non-temporal stores.
        nontemporal: bool,
    },
    /// `to = *from`, where the value is an address
    Fetch { to: Base, from: Address },
    /// `base += bytes`
    Advance { base: Base, bytes: usize },
    /// `*place += bytes`, where the value is an address
    AdvanceFetched { place: Address, bytes: usize },
    /// `index = 0`
    StartIndex,
    /// `index += bytes`
    AdvanceIndex(usize),
    /// `inner = count`
    Count(usize),
    /// `counter -= 1; if counter != 0 { goto the instruction number to }`
    Repeat { counter: Counter, to: usize },
    /// Prefetches a line into the cache.
    Prefetch(Address),
    /// A step of the register allocation.
    Step(Step<Address>),
    /// Stores a vector with a non-temporal store.
    StoreNontemporal { from: Register, to: Address },
}
