//! Every threshold, with what it bounds and the measurement behind it.
//!
//! Figures are GB/s of user data on one core unless another unit is named. "In cache" is 512 KiB for
//! all shards together, "from memory" 64 MiB.

use std::ops::Range;
use std::time::Duration;

/// Schedules up to this many operations are tried in an order with few live values, which takes time
/// quadratic in their number.
pub(crate) const REORDERED_OPERATIONS: usize = 2000;

/// Schedules with more operands than this run in groups of outputs that fit into registers, on
/// machines with three-input XOR. What longer ones share costs more, in values that leave the
/// registers and in code that leaves the instruction cache, than it saves. (AVX-512 on Zen 4: 20+6
/// with 750 operands is as fast in one way as in the other, 20+8 with 995 faster in groups.)
pub(crate) const LONG_SCHEDULE: usize = 900;

/// Schedules with at most this many operands are not cut between stripes.
pub(crate) const PIECES_FROM: usize = 600;

/// What was cut between stripes is joined again up to this many operands: one piece after the other in
/// one program keeps its values in registers, and its code in the cache of decoded instructions.
/// (AVX-512 on Zen 4, in cache: the group (10, 4, 6) with 1510 operands encodes at 64 in one program
/// and 43 in six, (12, 3, 6) with 1944 at 29 and 42.)
pub(crate) const PIECES_JOINED: usize = 1600;

/// A cut between stripes may be crossed by one operation for this many operands of its smaller side.
pub(crate) const OPERANDS_A_CROSSING: usize = 8;

/// The smaller side of a cut has at least this fraction of the operands, as a divisor; what is smaller
/// is the end of a code of one stripe.
pub(crate) const MOST_UNEVEN_CUT: usize = 8;

/// The bytes of buffers over which parts of a program run in turn: a level-two cache of today.
/// Smaller tiles do not pay for the parts' code, which is fetched anew for each (128 KiB: 64+16 at
/// 7.0 instead of 10.5).
pub(crate) const TILE_BYTES: usize = 1 << 20;

/// Programs of more steps than this are not compiled. Code that outgrows the instruction cache still
/// runs four times as fast as tiles (measured up to 100+28, 35,000 steps); beyond, compiling takes
/// seconds.
pub(crate) const COMPILED_STEPS: usize = 128 * 1024;

/// From this many streams that are only read, processors' own prefetchers lose track, and wide
/// stripes from memory are prefetched by instructions. (Zen 4, from memory: 16+4 runs at 24 without
/// and 17 with prefetching, 17+3 at 16 and 19, 20+4 at 12 and 17.)
pub(crate) const PREFETCHED_STREAMS: usize = 17;

/// How far ahead software prefetch reaches, in bytes of each stream: into the second-level cache,
/// because this much of so many streams is more than the first one holds.
pub(crate) const PREFETCH_DISTANCE: usize = 1024;

/// The lines that a set of the first-level cache holds at least, on the processors of today. Where
/// one run of a program touches more lines of a set, inputs are read once or copied first.
pub(crate) const CACHE_WAYS: usize = 8;

/// The bytes of a page: addresses that far apart fall into one set of the first-level cache.
pub(crate) const PAGE: usize = 4096;

/// The products that one part of a word program computes at most, so that its code (some 17 bytes a
/// product with GFNI, 50 with tables) stays in the instruction cache.
pub(crate) const PRODUCTS_A_PART: usize = 1536;

/// The bits of the symbols on which plans of packets are proved: an exact proof up to this many data
/// cells, random vectors beyond. Proving 10+4 takes some 20 microseconds.
pub(crate) const SYMBOL_BITS: usize = 1024;

/// The random vectors on which plans over more data cells are proved.
pub(crate) const RANDOM_BITS: usize = 256;

/// The bits of data up to which plans of words are proved on a word for each bit; beyond, they are
/// proved on this many random words.
pub(crate) const PROOF_WORDS: usize = 256;

/// Vectors of 64 bytes of scratch that a call takes from its stack; more come from the heap.
pub(crate) const LINES_ON_STACK: usize = 64;

/// Buffers whose places a call keeps on its stack; those of more are kept on the heap.
pub(crate) const BUFFERS_ON_STACK: usize = 64;

/// The bytes of each cell in one tile of a tiled kernel, if the cells are few; measured best between
/// 512 and 2048.
pub(crate) const TILED_BYTES: usize = 1024;

/// The bytes that a tile's cells fill together before tiles get smaller.
pub(crate) const TILED_BUDGET: usize = 256 * 1024;

/// The bytes that all cells of a tile of long blocks fill together: a usual second-level cache.
/// Fewer would leave more room in it for inputs that were fetched, but shorter tiles cost more.
pub(crate) const BLOCK_SCRATCH_BYTES: usize = 1024 * 1024;

/// The bytes of each long block in a tile, at least and at most: what the widest registers sum side
/// by side, so that an operation's pointers are looked up once, and a page.
pub(crate) const BLOCK_TILE: Range<usize> = 512..4096;

/// The inputs ahead of the one in use that are fetched from memory at least.
pub(crate) const BLOCKS_AHEAD: usize = 4;

/// The bytes of buffers that a program runs over before it is compiled, unless a compiled kernel is
/// asked for by name: what the tiled kernel does in the time that compiling takes (half a
/// millisecond for 10+4).
pub(crate) const COMPILED_AFTER: usize = 2 << 20;

/// The same for programs over words, which the tiled kernel multiplies a fifth as fast.
pub(crate) const WORDS_COMPILED_AFTER: usize = 256 << 10;

/// The bytes of all buffers of a call beyond which stores are non-temporal, unless a machine's tuning
/// says otherwise.
pub(crate) const NONTEMPORAL_FROM: usize = 16 << 20;

/// The bytes of buffers that a thread should have for another one to be woken, unless a machine's
/// tuning says otherwise: below it, waking one costs more than it saves.
pub const BYTES_A_THREAD: usize = 1 << 20;

/// The bytes that a thread takes at a time at least: enough for the kernel to be under way, and for a
/// helper that is awake anyway to be called.
pub(crate) const BYTES_A_STEP: usize = 128 * 1024;

/// The steps in which a thread takes its share: enough that none waits long for another, few enough
/// that the memory's streams are seldom broken (twenty times as many halve the speed from memory).
pub(crate) const STEPS_A_SHARE: usize = 16;

/// How long a helper thread looks out for more work before it goes back to the pool. Waking it
/// again takes longer than encoding half a megabyte.
pub(crate) const LOOKOUT: Duration = Duration::from_micros(100);

/// Two calls less than this apart belong to one burst. Waking helpers costs more than one small call
/// saves, but pays over a burst.
pub(crate) const BURST_GAP: Duration = Duration::from_micros(20);

/// Looks at a shared counter between two looks at the clock, or before a thread lets others run.
pub(crate) const LOOKS: usize = 64;

/// The programs that a codec keeps; the oldest goes first.
pub(crate) const KEPT_PROGRAMS: usize = 256;

/// The answers about LT codes that a codec keeps; one may have a million operands.
pub(crate) const KEPT_LT_PROGRAMS: usize = 8;
