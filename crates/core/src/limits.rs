//! All thresholds, each with what it bounds and the measurement behind it.
//!
//! Figures are GB/s of user data on one core unless another unit is named. "In cache" is 512 KiB
//! for all shards together, "from memory" 64 MiB.

use std::ops::Range;
use std::time::Duration;

/// Smallest number k·m of coefficients for which `k+m` names a code of words that transforms
/// compute. A program of packets for so many coefficients has about 2,500 instructions, too many
/// for the processor's cache of decoded instructions. (Speed as a multiple of that in packets, for
/// encoding and for recovering m losses; AVX2 on Zen 3, in cache, and from memory in parentheses:
/// 30+8 0.7 and 0.6 (1.0 and 1.3), 30+10 1.3 and 0.9 (1.6 and 1.3), 24+24 2.2 and 0.9, 31+31 3.4
/// and 0.6, 64+31 4.3 and 3.1, 100+20 4.2 and 3.5. With GFNI, a product of words takes one
/// instruction instead of six.)
pub(crate) const WIDE: usize = 300;

/// Largest number of steps for trying which losses a user's matrix survives, when its code is made:
/// about a tenth of a second. A step looks at one cell or adds one 64-bit word. For 16+4 with w = 8
/// and 20+4 with w = 5, all losses of four nodes are tried; for 20+6 with w = 8, all losses of
/// three nodes.
pub(crate) const LOSSES_TRIED: u64 = 1 << 22;

/// Largest number of operations of a schedule for which an order with few live values is tried.
/// Longer schedules were not measured with it.
pub(crate) const REORDERED_OPERATIONS: usize = 2000;

/// Number of operands above which a schedule is split into groups of outputs that fit into
/// registers, on machines with three-input XOR. In longer schedules, sharing costs more than it
/// saves: values leave the registers, and code leaves the instruction cache. (AVX-512 on Zen 4:
/// 20+6 with 750 operands is equally fast in both ways, 20+8 with 995 is faster in groups.)
pub(crate) const LONG_SCHEDULE: usize = 900;

/// Largest number of operands of a schedule that is never cut between stripes.
pub(crate) const PIECES_FROM: usize = 600;

/// Number of operands up to which pieces that were cut between stripes are joined again. Pieces
/// that follow each other in one program keep their values in registers, and their code in the
/// cache of decoded instructions. (AVX-512 on Zen 4, in cache: the group (10, 4, 6) with 1510
/// operands encodes at 64 in one program and 43 in six, (12, 3, 6) with 1944 at 29 and 42.)
pub(crate) const PIECES_JOINED: usize = 1600;

/// Number of operands that the smaller side of a cut between stripes must have for each operation
/// that crosses the cut.
pub(crate) const OPERANDS_A_CROSSING: usize = 8;

/// Each side of a cut must have at least one part in `MOST_UNEVEN_CUT` of the operands. A smaller
/// side is not a stripe, but the end of a code of one stripe.
pub(crate) const MOST_UNEVEN_CUT: usize = 8;

/// Bytes of buffers in a tile over which parts of a program run in turn: a present-day level-two
/// cache. Smaller tiles do not pay for the code of the parts, which is fetched again for each tile
/// (128 KiB: 64+16 at 7.0 instead of 10.5).
pub(crate) const TILE_BYTES: usize = 1 << 20;

/// Largest number of steps of a program that is compiled. Code that exceeds the instruction cache
/// still runs four times as fast as tiles (measured up to 100+28, 35,000 steps); beyond this limit,
/// compiling takes seconds.
pub(crate) const COMPILED_STEPS: usize = 128 * 1024;

/// Number of read-only streams from which wide stripes in memory are prefetched by instructions,
/// because the processors' own prefetchers can no longer follow. (Zen 4, from memory: 16+4 runs at
/// 24 without and 17 with prefetching, 17+3 at 16 and 19, 20+4 at 12 and 17.)
pub(crate) const PREFETCHED_STREAMS: usize = 17;

/// Distance of software prefetch, in bytes of each stream. It loads into the second-level cache,
/// because this distance in all streams together exceeds the first one.
pub(crate) const PREFETCH_DISTANCE: usize = 1024;

/// Smallest number of lines that a set of the first-level cache holds, on present-day processors.
/// If one run of a program touches more lines of a set, inputs are read once or copied first.
pub(crate) const CACHE_WAYS: usize = 8;

/// Size of a page in bytes. Addresses that are a multiple of it apart fall into the same set of the
/// first-level cache.
pub(crate) const PAGE: usize = 4096;

/// Number of pages whose addresses processors translate without delay: at most half of what their
/// first-level buffers of translations hold.
pub(crate) const TRANSLATED_PAGES: usize = 32;

/// Largest number of parts of a program, times the buffers of its calls. Every run of a part takes
/// a pointer to every buffer; beyond this limit, one program in tiles is faster, and is prepared in
/// less time and memory. (`reed-solomon:k=60000,m=2` took 2 GB and half a minute in 312 parts.)
pub(crate) const MOST_POINTERS: usize = 1 << 20;

/// Largest number of products that one part of a word program computes. Its code (about 17 bytes a
/// product with GFNI, 50 with tables) then stays in the instruction cache.
pub(crate) const PRODUCTS_A_PART: usize = 1536;

/// Number of data cells up to which the proof of a packet plan is exact; the value is the number of
/// bits of the symbols on which it is proved. Beyond it, random vectors are used. Proving 10+4
/// takes about 20 microseconds.
pub(crate) const SYMBOL_BITS: usize = 1024;

/// Number of random vectors on which plans over more data cells are proved.
pub(crate) const RANDOM_BITS: usize = 256;

/// Number of bits of data up to which plans of words are proved with one word for each bit; beyond,
/// they are proved with this many random words.
pub(crate) const PROOF_WORDS: usize = 256;

/// Bytes at either end of every packet that the trial of compiled code compares with the
/// interpreter's. (Comparing packets of a megabyte as a whole took minutes and five gigabytes for
/// 60+20, eight times as much memory as a call.)
pub(crate) const TRIED_BYTES: usize = 4096;

/// Period of the bytes on which compiled code is tried: a prime, so that no two cells are alike.
pub(crate) const PERIOD: usize = 251;

/// Number of 64-byte vectors of scratch that a call takes from its stack; larger scratch comes from
/// the heap.
pub(crate) const LINES_ON_STACK: usize = 64;

/// Most bytes of scratch that a thread keeps for its next call. The tiles of long codes with up to
/// 4,096 entries fit.
pub(crate) const KEPT_SCRATCH: usize = 8 << 20;

/// Number of buffers whose addresses a call keeps on its stack; for more buffers they are kept on
/// the heap.
pub(crate) const BUFFERS_ON_STACK: usize = 64;

/// Bytes of each cell in one tile of a tiled kernel, if there are few cells; values between 512 and
/// 2048 were measured to be best.
pub(crate) const TILED_BYTES: usize = 1024;

/// Total bytes of a tile's cells above which tiles are made smaller.
pub(crate) const TILED_BUDGET: usize = 256 * 1024;

/// Total bytes of the cells in a tile of long blocks: a usual second-level cache. A smaller total
/// would leave more of the cache for prefetched inputs, but shorter tiles cost more.
pub(crate) const BLOCK_SCRATCH_BYTES: usize = 1024 * 1024;

/// Smallest and largest number of bytes of each long block in a tile. The smallest is twice what
/// the widest registers sum side by side; in shorter tiles, the pointers of an operation would be
/// looked up for few bytes. The largest is a page.
pub(crate) const BLOCK_TILE: Range<usize> = 512..4096;

/// Smallest number of inputs that are prefetched from memory ahead of the one in use.
pub(crate) const BLOCKS_AHEAD: usize = 4;

/// Bytes of buffers that a program processes before it is compiled, unless a compiled kernel is
/// requested by name. In the time that compiling takes (half a millisecond for 10+4), the tiled
/// kernel processes about this many.
pub(crate) const COMPILED_AFTER: usize = 2 << 20;

/// Like [`COMPILED_AFTER`], for programs over words, where the tiled kernel has a fifth of the
/// speed.
pub(crate) const WORDS_COMPILED_AFTER: usize = 256 << 10;

/// Largest number of 64-bit words of a generator that direct answers are solved on: 32 MiB. Wider
/// codes, of some 1,000+1,000 and more, are planned at once.
pub(crate) const DIRECT_GENERATOR: usize = 1 << 22;

/// Bytes of a shard that a direct answer runs over before its question is planned and compiled. In
/// the time that planning and compiling take (0.2 ms for 10+4 in words, 1.2 ms in packets), the
/// direct kernel runs over about as much.
pub(crate) const PLANNED_AFTER: usize = 512 << 10;

/// Bytes of a shard for each operand of a direct answer, used instead of [`PLANNED_AFTER`] if the
/// product is larger. The time of planning grows faster than the number of operands: 200 ms for
/// 32+32 in packets. (`isal-cauchy`, in products of words: 13 ms for 64+16, and 190 for 128+128.)
pub(crate) const PLANNED_AFTER_EACH: usize = 116;

/// Most bytes of a shard that a direct answer runs over before its question is planned, if it is
/// planned at all. (A direct answer of 200+200 in packets runs over 230 KiB in the 1.2 s that
/// planning takes, one of 300+300 over 500 KiB.)
pub(crate) const PLANNED_AFTER_MOST: usize = 4 << 20;

/// Largest number of operands of a direct answer in packets that is planned, unless it is dense
/// ([`DENSE_ANSWER`]). (Encoding 300+300 has 4.5 million; its plan takes 6 s and is 1.7 times as
/// fast. The plan of 500+500, with 12.5 million, takes 18 s and is slower: 27 ms for a strip
/// instead of 22.)
pub(crate) const MOST_PLANNED: usize = 1 << 23;

/// A direct answer is dense if it has this many times as many operands as the parity rows of the
/// code have ones. (Two lost data nodes of `rdp:k=100` take 980,000 operands, where the parity has
/// 29,801 ones; a plan of 20,000 is made in 20 ms. Those of cauchy have about as many operands as
/// ones at most.)
pub(crate) const DENSE_ANSWER: usize = 4;

/// Number of operands of a direct answer from which its plan is made on a thread of its own. With
/// fewer operands, the call that reaches [`PLANNED_AFTER`] makes the plan, which takes about as
/// long as the direct answer has run before. (Planning takes 1.2 ms for 10+4 in packets, with some
/// 300 operands, and 50 ms for encoding 128+128 in words, with 2,944.)
pub(crate) const PLANNED_ASIDE: usize = 1000;

/// Total bytes of the buffers of a call above which stores are non-temporal, unless the machine's
/// tuning says otherwise.
pub(crate) const NONTEMPORAL_FROM: usize = 16 << 20;

/// Bytes of buffers for each thread from which another thread is used in a burst of calls, unless
/// the machine's tuning says otherwise.
pub(crate) const BYTES_A_THREAD: usize = BYTES_A_STEP;

/// Smallest number of bytes of buffers for each thread for which a call outside a burst wakes
/// another thread. Below it, waking a thread costs more than it saves in one call.
pub(crate) const BYTES_TO_WAKE: usize = 1 << 20;

/// Smallest number of bytes that a thread takes at a time: enough to make up for starting the
/// kernel and for calling a helper thread that is awake.
pub(crate) const BYTES_A_STEP: usize = 128 * 1024;

/// Number of steps in which a thread processes its share. It is large enough that no thread waits
/// long for another, and small enough that the streams from memory are seldom interrupted (twenty
/// times as many steps halve the speed from memory).
pub(crate) const STEPS_A_SHARE: usize = 16;

/// Time for which a helper thread looks for more work before it returns to the pool. Waking it
/// again takes longer than encoding half a megabyte.
pub(crate) const LOOKOUT: Duration = Duration::from_micros(100);

/// Two calls less than this apart belong to one burst. Waking helpers costs more than one small
/// call saves, but pays over a burst.
pub(crate) const BURST_GAP: Duration = Duration::from_micros(20);

/// Number of looks at a shared counter between two looks at the clock, or before a thread yields to
/// others.
pub(crate) const LOOKS: usize = 64;

/// Largest number of answers that a codec keeps; the oldest is dropped first. Most are direct
/// answers, of some kilobytes each: 10+4 has 1,001 patterns of four losses.
pub(crate) const KEPT_ANSWERS: usize = 4096;

/// Largest number of these answers that begin with a plan, and of those that get one later. Plans
/// are compiled and take some ten kilobytes each. When both numbers are reached, further questions
/// keep their direct answers.
pub(crate) const KEPT_PROGRAMS: usize = 256;

/// Largest number of operands of all answers that a codec keeps; the oldest answer is dropped
/// first, and the newest one stays. Programs of usual codes have some hundreds, those of wide codes
/// and of LT codes up to millions. (Programs that encode and decode 500+500 have 8 million, and
/// made a process of 1.3 GB.)
pub(crate) const KEPT_OPERANDS: usize = 4 << 20;

/// Largest number of unknowns of an LT code that are left to dense elimination, whose time grows
/// with their cube: 7,800 take 14 s and half a gigabyte.
pub(crate) const MOST_INACTIVE: usize = 1 << 13;

/// Number of bytes of all buffers together on which compiled code is tried. Packets so long that it
/// would take more (64 MiB, for 10+4) run on kernels that need no trial.
pub(crate) const MOST_TRIED: usize = 1 << 30;

/// Number of bytes of each shard that are verified at a time: enough that the cost of a call does
/// not matter, and few enough that the shards of usual codes stay in the second-level cache.
pub(crate) const VERIFIED_BYTES: usize = 64 << 10;

/// Largest number of quotients that are compared when the matrix of a new `cauchy-good` code is
/// improved, over a field too large for tables. Each takes 60 ns, all together two seconds.
pub(crate) const MOST_QUOTIENTS: usize = 1 << 25;

/// Total bytes of the two tiles of a transform of long codes with up to 256 entries; longer ones
/// have entries of 1 KiB. (Sapphire Rapids, 4,096 + 410 blocks of 4 KiB, thus 512 entries: with
/// entries of 2 KiB they are encoded 0.88 times as fast as with 1 KiB.)
pub(crate) const TRANSFORM_TILE_BYTES: usize = 512 << 10;

/// Like [`TRANSFORM_TILE_BYTES`], for the tile of a transform of bytes, whose blocks are mostly
/// small: it stays in the first-level cache. (Sapphire Rapids, encoding 32+32 with shards of 1 KiB:
/// 3.8 microseconds with 32 KiB, 5.1 with 256.)
pub(crate) const BYTES_TILE_BYTES: usize = 32 << 10;

/// Number of operations of products that take as long as one operation of a transform. A
/// transform's values go through memory; those of products stay in registers. (Sapphire Rapids with
/// GFNI, shards of 1 KiB, m random losses: 32+32 takes 7.8 microseconds by products and 9.4 by a
/// transform, with 1.4 operations of products for one of the transform; 64+64 takes 28 and 23, with
/// 2.1; 128+128 takes 108 and 50, with 4.)
pub(crate) const TRANSFORM_WEIGHT: usize = 2;
