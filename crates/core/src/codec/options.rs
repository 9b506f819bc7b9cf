//! Options of codecs.

use std::num::NonZeroUsize;

use crate::limits::BYTES_A_THREAD;
use crate::plan::PlanOptions;
use crate::run::buffers::Stores;
use crate::run::dispatch::{KernelChoice, WordKernel};
use crate::run::threads::Split;

/// Bytes of a packet in files, and by default in codecs.
pub const DEFAULT_PACKET: usize = 64;

/// Options of a codec: packet size, threads, kernel, and how it stores and plans.
///
/// ```
/// use paritas::{Codec, CodecOptions, Stores};
/// let options = CodecOptions::default().threads(1).stores(Stores::Cached);
/// let codec = Codec::with_options("20+4".parse()?, options)?;
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodecOptions {
    /// Bytes of a packet. In codes over packets, the bytes of parity depend on it: shards are
    /// decoded with the packet size with which they were encoded. In the word layout it decides
    /// only what [`Split::Columns`] divides, and is rounded up to whole cache lines.
    pub packet: usize,
    /// Largest number of threads that a call may use; by default as many as the machine has
    /// processors.
    pub threads: Option<NonZeroUsize>,
    /// Smallest number of bytes of buffers for each thread: another thread is used only if each
    /// then has at least this many. A call that does not closely follow another one must first wake
    /// its threads. It wakes one only if each thread then has at least eight times `bytes_a_thread`
    /// or 1 MiB, whichever is less, and in any case at least `bytes_a_thread`.
    pub bytes_a_thread: usize,
    /// How threads share the work of [`Codec::compute`](crate::Codec::compute).
    /// [`Codec::split_in_use`](crate::Codec::split_in_use) lists the work that is always split by
    /// stripe.
    pub split: Split,
    /// Kernel that runs. A code in the word layout gets a word kernel that uses the same registers.
    pub kernel: KernelChoice,
    /// Word kernel that runs for codes in the word layout; overrides `kernel`.
    pub word_kernel: Option<WordKernel>,
    /// How results are stored.
    pub stores: Stores,
    /// Whether compiled kernels prefetch wide stripes that are written with non-temporal stores.
    /// Wide means 17 streams and more, which the processor's own prefetchers cannot follow.
    pub prefetch: bool,
    /// Which passes the planner uses.
    pub plan: PlanOptions,
    /// Whether the first calls of a question are answered directly, and it is planned and compiled
    /// once it has been asked about enough bytes. Otherwise its first call does that. Losses that a
    /// transform recovers are never planned.
    pub direct: bool,
}

/// Defines setters, each of which sets one field of the options.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty,)*) => {
        impl CodecOptions {
            $($(#[$doc])*
            pub fn $field(self, $field: $type) -> Self {
                Self { $field, ..self }
            })*
        }
    };
}

setters! {
    /// Sets the packet size to `packet` bytes. Keep it beside stored shards: in codes over packets,
    /// the bytes of parity depend on it.
    packet: usize,
    /// Uses another thread for every `bytes_a_thread` bytes of buffers.
    bytes_a_thread: usize,
    /// Shares the work of a call among threads as `split` says.
    split: Split,
    /// Sets the choice of a kernel.
    kernel: KernelChoice,
    /// Stores results as `stores` says.
    stores: Stores,
    /// Turns prefetching on or off.
    prefetch: bool,
    /// Plans schedules as `plan` says.
    plan: PlanOptions,
    /// Answers first calls directly, or plans and compiles in them.
    direct: bool,
}

impl CodecOptions {
    /// Uses at most `threads` threads; 0 means as many as the machine has processors.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: NonZeroUsize::new(threads), ..self }
    }

    /// Sets the kernel for codes in the word layout.
    pub fn word_kernel(self, kernel: WordKernel) -> Self {
        Self { word_kernel: Some(kernel), ..self }
    }
}

impl Default for CodecOptions {
    fn default() -> Self {
        Self {
            packet: DEFAULT_PACKET,
            threads: None,
            bytes_a_thread: BYTES_A_THREAD,
            split: Split::default(),
            kernel: KernelChoice::default(),
            word_kernel: None,
            stores: Stores::default(),
            prefetch: true,
            plan: PlanOptions::default(),
            direct: true,
        }
    }
}
