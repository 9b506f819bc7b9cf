//! Long codes: up to 65,536 blocks. Any blocks may be lost, up to the number of parity blocks.
//!
//! One code over thousands of blocks survives what many short codes side by side do not. Take 8,000
//! blocks with 10 % of parity, and random damage that hits 5 % of them: stripes of 100 blocks lose
//! data in 83 of 100 cases, one long code never. A long code should be *dense* (each parity block
//! helps against each loss), deterministic, and fast on blocks that stream by once.
//!
//! This one is systematic Reed-Solomon over GF(2^16), so any P lost blocks are recoverable, data
//! and parity in any mixture, and counting alone tells whether a pattern of losses is recoverable.
//! The definition is one formula (`define/long.rs`). The points are chosen so that fast Fourier
//! transforms apply it (`plan/transform/program.rs`): a block takes ten butterflies where P =
//! 1,000, not a thousand products. The inverse of any part of the matrix is applied by the same
//! transforms, with a vector of factors before them and another one after them
//! (`plan/long/recovery.rs`). So no system of equations is solved, and recovering takes no longer
//! than adding. A kernel runs them over tiles in the second-level cache (`run/tiled/transform.rs`).
//!
//! What else was considered:
//!
//! - *LT codes* are sparse: making the parity of 8,000 + 1,000 blocks is about twice as fast. But
//!   if a share x of the parity is lost, all d parity blocks that contain a given data block are
//!   lost with chance x^d. To survive the loss of half the parity, d must be about 40, and there is
//!   still a chance of failure.
//! - *Random bits*, added by tables of the 256 sums of eight blocks, take P/8 + 32 operations for
//!   each vector of a block. For P = 1,000 these are 160; ten levels of butterflies take 20. They
//!   fail with chance 2^-(r - s) where r parity blocks are left for s losses, so about 32 blocks
//!   must be spare.
//! - *Random bytes* fail with chance 256^-(r - s) and take P products for each vector.
//! - *reed-solomon-simd* is a code of the same kind, transformed over whole blocks in memory. With
//!   4,096 + 410 blocks of 4 and 64 KiB on one core of an Ice Lake server (AVX-512, GFNI), encoding
//!   was 1.8 to 4.6 times as fast here, and recovering 410 blocks 6 to 14 times: a recovery
//!   transforms the parity, not the whole code (`lab/peers/run.py --pairs long/simd --shapes
//!   4096+410`).
//!
//! On that core, the data blocks of 8,000 + 1,000 are added at 2.7 GB/s from memory (two cores
//! 5.3), those of 2,000 + 200 at 4.7. Recovering 1,000 lost blocks takes 0.6 of the time that
//! adding the 8,000 takes, and planning the recovery 3 ms (`examples/long_speed.rs`).

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::define::long::LongMatrix;
use crate::define::made::FirstMade;
use crate::define::tower::CantorBasis;
use crate::error::{Error, Result};
use crate::plan::long::recovery::Recovery;
use crate::plan::transform::program::{GRANULE, TransformProgram};
use crate::run;
use crate::run::pages::Pages;

/// A systematic code of N data blocks and P parity blocks. Any lost data blocks are recoverable, up
/// to the number of parity blocks that are left.
///
/// ```
/// let code = paritas::long::LongCode::new(5, 2)?;
/// let data: Vec<Vec<u8>> = (0..5).map(|i| vec![i * 17 + 1; 256]).collect();
/// let blocks: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
/// let mut parity = [[0; 256]; 2];
/// code.encode(&blocks, &mut parity.each_mut().map(|p| &mut p[..]), 1)?;
///
/// // Blocks 1 and 3 are lost. What the others contribute is taken from the parity blocks.
/// let left = [blocks[0], &[], blocks[2], &[], blocks[4]];
/// let recovery = code.solve(&[1, 3], &[0, 1])?;
/// code.add(recovery.rows(), 0, &left, &mut parity.each_mut().map(|p| &mut p[..]), 1)?;
/// let mut lost = [[0; 256]; 2];
/// let sums = parity.each_ref().map(|p| &p[..]);
/// recovery.recover(&sums, &mut lost.each_mut().map(|l| &mut l[..]), 1)?;
/// assert_eq!((&lost[0][..], &lost[1][..]), (blocks[1], blocks[3]));
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LongCode {
    matrix: LongMatrix,
    /// The program of [`LongCode::encode`], made with the first call.
    encoder: Arc<FirstMade<TransformProgram>>,
}

impl PartialEq for LongCode {
    fn eq(&self, other: &Self) -> bool {
        self.matrix == other.matrix
    }
}

impl Eq for LongCode {}

impl Hash for LongCode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.matrix.hash(state);
    }
}

impl LongCode {
    fn of(basis: CantorBasis, data: usize, parity: usize) -> Result<Self> {
        let matrix = LongMatrix::new(basis, data, parity)?;
        Ok(Self { matrix, encoder: Arc::default() })
    }

    /// Returns the code of `data` data blocks and `parity` parity blocks. There is one such code:
    /// its matrix never changes.
    ///
    /// # Errors
    /// If a count is 0, or if the number of data blocks, plus that of parity blocks rounded up to a
    /// power of two, exceeds 65,536.
    pub fn new(data: usize, parity: usize) -> Result<Self> {
        Self::of(CantorBasis::Own, data, parity)
    }

    /// Returns Leopard's code over GF(2^16), `leopard16`, of `data` data blocks and `parity` parity
    /// blocks: the bytes of klauspost/reedsolomon for more than 256 shards (`WithLeopardGF16` for
    /// fewer), of the crate reed-solomon-simd and of catid's Leopard. The crate makes other bytes
    /// if the number of parity blocks, rounded up to a power of two, exceeds that of data blocks,
    /// rounded up as well.
    ///
    /// A block may have any even number of bytes, as in the crate; klauspost/reedsolomon and
    /// Leopard accept only multiples of 64.
    ///
    /// ```
    /// let code = paritas::long::LongCode::leopard(4, 2)?;
    /// let data = [[7; 64], [1; 64], [200; 64], [33; 64]];
    /// let mut parity = [[0; 64]; 2];
    /// let blocks = data.each_ref().map(|block| &block[..]);
    /// code.encode(&blocks, &mut parity.each_mut().map(|p| &mut p[..]), 1)?;
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`LongCode::new`].
    pub fn leopard(data: usize, parity: usize) -> Result<Self> {
        Self::of(CantorBasis::Leopard, data, parity)
    }

    /// The number of data blocks, N.
    pub fn data(&self) -> usize {
        self.matrix.data()
    }

    /// The number of parity blocks, P. Any P lost blocks are recoverable.
    pub fn parity(&self) -> usize {
        self.matrix.parity()
    }

    /// The unit of length, in bytes: the length of sums, and so of whole blocks, is a multiple of
    /// it (in [Leopard's code](LongCode::leopard), of two bytes). Ranges of bytes that begin at
    /// multiples of it may be coded separately.
    pub fn granule(&self) -> usize {
        GRANULE
    }

    /// The number of data blocks that are transformed together: P rounded up to a power of two.
    /// [`LongCode::add`] takes the least time for each block if a call adds several whole chunks. A
    /// chunk begins at a multiple of this number.
    pub fn chunk(&self) -> usize {
        self.matrix.chunk()
    }

    /// Returns the coefficient of data block `data` in parity block `parity`: the element a + b·t
    /// of GF(2^16) as the number a + 256·b, in Leopard's code, too. `None` if one of the two blocks
    /// does not exist.
    pub fn coefficient(&self, parity: usize, data: usize) -> Option<u16> {
        let exists = parity < self.parity() && data < self.data();
        exists.then(|| self.matrix.coefficient(parity, data).0)
    }

    /// Computes all parity blocks of all data blocks. Use [`LongCode::add`] or [`LongCode::sums`]
    /// if not all blocks are at hand, or not all parity blocks are wanted. A data block that is
    /// shorter than the parity blocks is treated as if zeros followed it. Uses at most `threads`
    /// threads; 0 means as many as the machine has processors.
    ///
    /// # Errors
    /// If the number of data blocks or of parity blocks is not the code's, if the parity blocks
    /// differ in length or their length is not a multiple of the granule, or if a data block is
    /// longer than they are.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]], threads: usize) -> Result<()> {
        let program = self.encoder.get(|| TransformProgram::encode(self.matrix));
        run::long::run(program, data, parity, threads)
    }

    /// Adds data blocks to parity blocks: `sums[i]` becomes `sums[i]` XOR the part that the data
    /// blocks `first`, `first + 1`, … have in parity block `rows[i]`. A block that is shorter than
    /// the sums is treated as if zeros followed it, so a block that is not at hand may be empty.
    /// (In Leopard's code, here and in all other calls, a data block is whole or empty.) Uses at
    /// most `threads` threads; 0 means as many as the machine has processors.
    ///
    /// # Errors
    /// If a data block or a row does not exist, if a row occurs twice, if there is not exactly one
    /// sum for each row, if the sums differ in length or their length is not a multiple of the
    /// granule, or if a block is longer than the sums.
    pub fn add(
        &self,
        rows: &[usize],
        first: usize,
        blocks: &[&[u8]],
        sums: &mut [&mut [u8]],
        threads: usize,
    ) -> Result<()> {
        self.check_numbers("parity", self.parity(), rows)?;
        let program = TransformProgram::add(self.matrix, rows, self.columns(first, blocks.len())?);
        run::long::run(&program, blocks, sums, threads)
    }

    /// Returns the numbers of `count` data blocks that begin with block `first`.
    fn columns(&self, first: usize, count: usize) -> Result<Range<usize>> {
        match first.checked_add(count).filter(|&end| end <= self.data()) {
            Some(end) => Ok(first..end),
            None => Err(Error::parameters(format!(
                "there are {} data blocks; got {count} blocks that begin with block {first}",
                self.data()
            ))),
        }
    }

    /// Returns empty sums for parity blocks of `bytes` bytes, to which data blocks are then added.
    /// Use them instead of [`LongCode::add`] if the data blocks come in several calls and most
    /// parity blocks are wanted: they take as little as half of the time, and memory for
    /// [`LongCode::chunk`] blocks.
    ///
    /// # Errors
    /// If the system lacks that much memory ([`crate::ErrorKind::Memory`]).
    pub fn sums(&self, bytes: usize) -> Result<LongSums> {
        let room = bytes.checked_next_multiple_of(GRANULE).unwrap_or(usize::MAX);
        let kept = Pages::zeroed(self.chunk().saturating_mul(room))?;
        Ok(LongSums { code: self.clone(), bytes, kept })
    }

    /// Returns how the lost data blocks `lost` are computed if the parity blocks `rows` are at
    /// hand.
    ///
    /// # Errors
    /// If there are fewer parity blocks than lost data blocks ([`crate::ErrorKind::NotEnough`]; the
    /// message says how many more are needed), if a block does not exist, or if one occurs twice.
    pub fn solve(&self, lost: &[usize], rows: &[usize]) -> Result<LongRecovery> {
        self.check_numbers("data", self.data(), lost)?;
        self.check_numbers("parity", self.parity(), rows)?;
        Ok(LongRecovery { plan: Recovery::new(self.matrix, lost, rows)? })
    }

    /// Checks that `numbers` are different numbers below `count`.
    fn check_numbers(&self, kind: &str, count: usize, numbers: &[usize]) -> Result<()> {
        let mut seen = vec![false; count];
        for &number in numbers {
            match seen.get_mut(number) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => {
                    let message = format!("{kind} block {number} is named twice");
                    return Err(Error::parameters(message).at(number));
                }
                None => {
                    let message = format!("there is no {kind} block {number}; there are {count}");
                    return Err(Error::parameters(message).at(number));
                }
            }
        }
        Ok(())
    }
}

/// Sums of data blocks; see [`LongCode::sums`]. A polynomial is kept, whose values are the parity
/// blocks. One transform computes these values at the end, where [`LongCode::add`] needs one
/// transform in each call.
///
/// ```
/// let code = paritas::long::LongCode::new(5, 2)?;
/// let data: Vec<Vec<u8>> = (0..5).map(|i| vec![i * 17 + 1; 256]).collect();
/// let blocks: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
/// let mut parity = [[0; 256]; 2];
/// code.encode(&blocks, &mut parity.each_mut().map(|p| &mut p[..]), 1)?;
///
/// let mut sums = code.sums(256)?;
/// sums.add(0, &blocks[..2], 1)?;
/// sums.add(2, &blocks[2..], 1)?;
/// let mut same = [[0; 256]; 2];
/// sums.parity(&[0, 1], &mut same.each_mut().map(|p| &mut p[..]), 1)?;
/// assert_eq!(same, parity);
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug)]
pub struct LongSums {
    code: LongCode,
    bytes: usize,
    kept: Pages,
}

impl LongSums {
    /// Adds the data blocks `first`, `first + 1`, …, each of them once. A block that is shorter
    /// than the parity blocks is treated as if zeros followed it. Uses at most `threads` threads; 0
    /// means as many as the machine has processors.
    ///
    /// # Errors
    /// If a data block does not exist, if one is longer than the parity blocks, or if the length of
    /// the parity blocks is not a multiple of the granule.
    pub fn add(&mut self, first: usize, blocks: &[&[u8]], threads: usize) -> Result<()> {
        let columns = self.code.columns(first, blocks.len())?;
        let program = TransformProgram::gather(self.code.matrix, columns);
        run::long::run_keeping(&program, (&mut self.kept, self.bytes), blocks, &mut [], threads)
    }

    /// Computes parity blocks: `parity[i]` becomes the parity block `rows[i]` of all data blocks
    /// that were added. More may be added afterwards. Uses at most `threads` threads; 0 means as
    /// many as the machine has processors.
    ///
    /// # Errors
    /// If a row does not exist or occurs twice, if there is not exactly one parity block for each
    /// row, or if a parity block has another length.
    pub fn parity(
        &mut self,
        rows: &[usize],
        parity: &mut [&mut [u8]],
        threads: usize,
    ) -> Result<()> {
        self.code.check_numbers("parity", self.code.parity(), rows)?;
        let program = TransformProgram::finish(self.code.matrix, rows);
        run::long::run_keeping(&program, (&mut self.kept, self.bytes), &[], parity, threads)
    }
}

/// How lost data blocks are computed; see [`LongCode::solve`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongRecovery {
    plan: Recovery,
}

impl LongRecovery {
    /// The parity blocks that are needed: the first ones at hand, one for each lost data block.
    pub fn rows(&self) -> &[usize] {
        self.plan.rows()
    }

    /// The lost data blocks.
    pub fn lost(&self) -> &[usize] {
        self.plan.lost()
    }

    /// Computes the lost data blocks: `lost[i]` becomes the block with number [`Self::lost`]`[i]`.
    /// `sums[i]` is the parity block [`Self::rows`]`[i]`, to which all data blocks at hand have
    /// been added by [`LongCode::add`]. A lost block may be shorter than the sums, as the last one
    /// of a stream is. Uses at most `threads` threads; 0 means as many as the machine has
    /// processors.
    ///
    /// # Errors
    /// If there is not exactly one sum for each row and one buffer for each lost block; if the sums
    /// differ in length or their length is not a multiple of the granule; or if a lost block is
    /// longer than the sums.
    pub fn recover(&self, sums: &[&[u8]], lost: &mut [&mut [u8]], threads: usize) -> Result<()> {
        run::long::run(&TransformProgram::recover(&self.plan), sums, lost, threads)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::codec::Codec;
    use crate::run::threads::forks::tests::forked_calls_end;

    /// Another thread of the parent may prepare the same codec at the moment of the fork.
    #[test]
    fn a_forked_process_uses_codecs_that_its_parent_prepares() {
        let spec = "backblaze:k=60,m=20";
        let new = || {
            let codec: Codec = spec.parse().unwrap();
            Arc::new((codec, LongCode::new(300, 20).unwrap()))
        };
        let latest = Mutex::new(new());
        let blocks = vec![[1_u8; 128]; 300];
        let call = || {
            let used = match latest.try_lock() {
                Ok(latest) => Arc::clone(&latest),
                Err(_) => new(),
            };
            let (codec, long) = &*used;
            let mut parity = vec![[0_u8; 128]; 20];
            codec.encode(&blocks[..60], &mut parity).unwrap();
            let mut rows: Vec<&mut [u8]> = parity.iter_mut().map(|row| &mut row[..]).collect();
            let data: Vec<&[u8]> = blocks.iter().map(|block| &block[..]).collect();
            long.encode(&data, &mut rows, 1).unwrap();
            // Whoever comes next meets what nobody has used.
            if let Ok(mut latest) = latest.try_lock() {
                *latest = new();
            }
        };
        assert!(forked_calls_end(call));
    }
}
