//! How a codec is to work.

use std::num::NonZeroUsize;

use crate::limits::BYTES_A_THREAD;
use crate::plan::PlanOptions;
use crate::run::buffers::Stores;
use crate::run::dispatch::{KernelChoice, WordKernel};
use crate::run::threads::Split;

/// The packet size of files and the default of codecs, in bytes.
pub const DEFAULT_PACKET: usize = 64;

/// How a codec is to work.
///
/// ```
/// use paritas::{Codec, CodecOptions, Stores};
/// let options = CodecOptions::default().packet(4096).threads(1).stores(Stores::Cached);
/// let codec = Codec::with_options("20+4".parse()?, options)?;
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodecOptions {
    /// The bytes of a packet.
    pub packet: usize,
    /// The most threads that a call may use; by default as many as the machine has.
    pub threads: Option<NonZeroUsize>,
    /// How many bytes of buffers a thread should have to do at least, for another to be used.
    pub bytes_a_thread: usize,
    /// How they share the work of [`Codec::compute`](crate::Codec::compute); an update is always split by stripe.
    pub split: Split,
    /// Which kernel runs. For a code in the word layout, a word kernel on the same registers.
    pub kernel: KernelChoice,
    /// Which word kernel runs, whatever `kernel` is, for codes in the word layout.
    pub word_kernel: Option<WordKernel>,
    /// How results are stored.
    pub stores: Stores,
    /// Whether compiled kernels prefetch wide stripes (of 17 streams and more, with which the processor's own
    /// prefetchers lose track) that are stored past the cache.
    pub prefetch: bool,
    /// Which passes plan.
    pub plan: PlanOptions,
}

/// Sets one of several fields of options.
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
    /// The same with packets of `packet` bytes.
    packet: usize,
    /// The same with another thread for every `bytes_a_thread` bytes of buffers.
    bytes_a_thread: usize,
    /// The same with work that is shared as `split` says.
    split: Split,
    /// The same with this choice of a kernel.
    kernel: KernelChoice,
    /// The same with results stored as `stores` says.
    stores: Stores,
    /// The same with or without prefetching.
    prefetch: bool,
    /// The same with schedules planned as `plan` says.
    plan: PlanOptions,
}

impl CodecOptions {
    /// The same with at most `threads` threads; 0 sets no limit but the machine's.
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: NonZeroUsize::new(threads), ..self }
    }

    /// The same with this kernel for codes in the word layout.
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
        }
    }
}
