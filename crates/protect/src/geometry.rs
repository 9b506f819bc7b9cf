//! The number and the size of the blocks that a stream is cut into, and the number of parity
//! blocks.
//!
//! With P parity blocks, any P lost blocks can be repaired (see [`paritas::long::LongCode`]). Many
//! small blocks are better for scattered damage, because each damaged byte costs a block. Few large
//! blocks have fewer checksums. So there are about a thousand parity blocks if each of them then
//! has at least 4 KiB. With less parity, a block has 4 KiB. If there would be fewer than 256 parity
//! blocks of that size, a block has about a 256th of the parity, but never less than 512 bytes. A
//! code has at most 65,536 blocks, so a low redundancy has fewer parity blocks.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use paritas::long::LongCode;
use paritas_store::error::{Error, Result};

use crate::percent;

/// Wanted number of parity blocks. Even after rounding, the number stays below the next power of
/// two, on which the work for each byte depends.
const MANY: u64 = 1000;
/// Smallest size in bytes of a block if there are [`MANY`] parity blocks.
const LARGE: u64 = 4096;
/// Wanted number of parity blocks if there would be fewer of [`LARGE`] bytes.
const SOME: u64 = 256;
/// Smallest size of a block in bytes.
const SMALL: u64 = 512;
/// Sizes of blocks are multiples of this number of bytes.
const GRANULE: u64 = 128;
/// Largest number of data blocks.
const MOST_DATA: u64 = 64_000;
/// Largest number of parity blocks that a header may state.
const MOST_PARITY: u64 = 1 << 15;
/// Largest size of a block in bytes.
const MOST_BLOCK: u64 = 1 << 40;

/// The wanted size of the parity, as a share of what is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Redundancy {
    millionths: u32,
}

impl Redundancy {
    /// A tenth.
    pub const USUAL: Self = Self { millionths: 100_000 };
    /// The smallest, a tenth of a percent.
    pub const LEAST: Self = Self { millionths: 1_000 };
    /// The largest, ten times what is protected.
    pub const MOST: Self = Self { millionths: 10_000_000 };

    /// Returns the redundancy of this many millionths.
    ///
    /// # Errors
    /// If it is not from 0.1 % to 1000 % ([`crate::ErrorKind::Parameters`]).
    pub fn new(millionths: u32) -> Result<Self> {
        let redundancy = Self { millionths };
        match (Self::LEAST..=Self::MOST).contains(&redundancy) {
            true => Ok(redundancy),
            false => Err(Error::parameters(format!(
                "the redundancy is {redundancy}; it must be from {} to {}",
                Self::LEAST,
                Self::MOST
            ))),
        }
    }

    /// Returns the redundancy in millionths.
    pub fn millionths(self) -> u32 {
        self.millionths
    }

    /// Returns this redundancy, or a larger one if a stream of `length` bytes needs it so that
    /// `lost` bytes that follow one another can be repaired wherever they are. It is at most 100 %,
    /// which is enough to repair the loss of everything.
    pub(crate) fn for_loss_of(self, lost: u64, length: u64) -> Self {
        // The lost bytes are parts of a block at both ends. Two blocks are at most a 128th of the
        // parity, or twice the smallest block, before it is rounded up.
        let bytes = u128::from(lost) + u128::from(lost / 100) + u128::from(2 * (SMALL + GRANULE));
        let whole = Self { millionths: 1_000_000 };
        let needed = (bytes * 1_000_000).div_ceil(u128::from(length.max(1)));
        let needed = u32::try_from(needed).map_or(whole, |millionths| Self { millionths });
        self.max(needed.min(whole))
    }

    /// Returns this share of a number, rounded up.
    pub(crate) fn of(self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.millionths);
        u64::try_from(product.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        percent::write(self.millionths, f)
    }
}

impl FromStr for Redundancy {
    type Err = Error;

    /// Reads a percentage, such as `10%` or `2.5%`.
    fn from_str(text: &str) -> Result<Self> {
        Self::new(percent::parse(text, 4000.0).ok_or_else(|| {
            Error::parameters(format!(
                "a redundancy is a percentage such as 10% or 0.5%; got {text:?}"
            ))
        })?)
    }
}

/// The blocks of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamGeometry {
    /// Number of bytes of the stream.
    pub length: u64,
    /// Number of bytes of a block. The last data block may be shorter.
    pub block: u64,
    /// Number of data blocks.
    pub data: u64,
    /// Number of parity blocks.
    pub parity: u64,
}

impl StreamGeometry {
    /// Chooses the blocks of a stream of `length` bytes. An empty stream has none.
    ///
    /// # Errors
    /// If the stream is too long for any code ([`crate::ErrorKind::Parameters`]).
    pub fn choose(length: u64, redundancy: Redundancy) -> Result<Self> {
        refuse_too_long(length.into(), redundancy)?;
        if length == 0 {
            return Ok(Self { length, block: SMALL, data: 0, parity: 0 });
        }
        let bytes = redundancy.of(length);
        let block = bytes.div_ceil(MANY).max(LARGE.min(bytes.div_ceil(SOME))).max(SMALL);
        let block = block.max(length.div_ceil(MOST_DATA)).next_multiple_of(GRANULE);
        let data = length.div_ceil(block);
        let geometry = Self { length, block, data, parity: redundancy.of(data).max(1) };
        match geometry.is_valid() {
            true => Ok(geometry),
            false => Err(Error::parameters(format!(
                "{length} bytes are too many to protect with a redundancy of {redundancy}"
            ))),
        }
    }

    /// Whether the numbers fit together, and are within the limits.
    pub(crate) fn is_valid(&self) -> bool {
        let Self { length, block, data, parity } = *self;
        // A block that is much longer than the stream would be zeros, which fill a disk.
        let is_short = block.saturating_sub(GRANULE) < length.max(LARGE);
        let in_range = (1..=MOST_BLOCK).contains(&block) && is_short && length < 1 << 63;
        let counts = data < 1 << 16 && parity <= MOST_PARITY && (data == 0) == (parity == 0);
        let has_code = counts && data + parity.next_power_of_two() <= 1 << 16;
        in_range && has_code && block % GRANULE == 0 && length.div_ceil(block) == data
    }

    /// Returns the long code of these blocks, unless there are none.
    pub(crate) fn code(&self) -> Result<Option<LongCode>> {
        match self.data {
            0 => Ok(None),
            data => Ok(Some(LongCode::new(data as usize, self.parity as usize)?)),
        }
    }

    /// Returns the number of data blocks with bytes of the wanted pieces of the stream. `pieces`
    /// are all pieces in order: the size of each, and whether it is wanted.
    pub(crate) fn blocks_with(&self, pieces: impl Iterator<Item = (u64, bool)>) -> u64 {
        self.block_ranges(pieces).map(|range| range.end - range.start).sum()
    }

    /// Returns the numbers of these blocks, in order.
    pub(crate) fn block_ranges(
        &self,
        pieces: impl Iterator<Item = (u64, bool)>,
    ) -> impl Iterator<Item = Range<u64>> {
        let (block, mut start, mut next) = (self.block, 0, 0);
        pieces.filter_map(move |(size, is_wanted)| {
            let end = start + size;
            let range = (start / block).max(next)..end.div_ceil(block);
            start = end;
            let is_some = size > 0 && is_wanted && !range.is_empty();
            is_some.then(|| {
                next = range.end;
                range
            })
        })
    }

    /// Returns the number of bytes of a data block.
    pub(crate) fn bytes_of(&self, block: u64) -> u64 {
        self.block.min(self.length - block * self.block)
    }
}

/// Refuses streams of more bytes than blocks of the largest size can hold. `length` may be the sum
/// of any sizes.
///
/// # Errors
/// If the stream is too long ([`crate::ErrorKind::Parameters`]).
pub(crate) fn refuse_too_long(length: u128, redundancy: Redundancy) -> Result<()> {
    let of_data = u128::from(MOST_DATA * MOST_BLOCK);
    // The number of parity blocks is limited as well.
    let of_parity = u128::from(MANY * MOST_BLOCK) * 1_000_000 / u128::from(redundancy.millionths());
    let most = of_data.min(of_parity);
    match length <= most {
        true => Ok(()),
        false => Err(Error::parameters(format!(
            "the files have {length} bytes together, holes in sparse files included; at most \
             {most} bytes can be protected with a redundancy of {redundancy}; leave out the \
             largest ones, or protect parts of the tree by themselves"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paritas_store::error::ErrorKind;

    /// The limit that the message names is the one that holds.
    #[test]
    fn too_many_bytes_are_refused_by_number() {
        for (redundancy, most) in
            [("0.1%", 64_000 << 40), ("10%", 10_000 << 40), ("1000%", 100 << 40)]
        {
            let redundancy: Redundancy = redundancy.parse().unwrap();
            let chosen = StreamGeometry::choose(most, redundancy).unwrap();
            assert!(chosen.is_valid() && chosen.code().is_ok(), "{chosen:?}");
            for length in [most + 1, 1 << 63, u64::MAX] {
                let error = StreamGeometry::choose(length, redundancy).unwrap_err().to_string();
                assert!(error.contains(&format!("have {length} bytes")), "{error}");
                assert!(error.contains(&format!("at most {most} bytes")), "{error}");
            }
        }
    }

    #[test]
    fn every_length_has_blocks() {
        let redundancies = ["0.1%", "1%", "5%", "10%", "33.3%", "100%", "1000%"];
        for redundancy in redundancies.map(|text| text.parse::<Redundancy>().unwrap()) {
            for length in (0..46).flat_map(|bits| [1_u64 << bits, (1_u64 << bits) / 7 * 13 + 1]) {
                let chosen = StreamGeometry::choose(length, redundancy).unwrap();
                assert!(chosen.is_valid(), "{chosen:?}");
                let bytes = chosen.parity * chosen.block;
                assert!(bytes >= redundancy.of(length), "{chosen:?}");
                // The last data block and the last parity block may be longer than is needed.
                let allowed = redundancy.of(length + chosen.block) + chosen.block;
                assert!(bytes <= allowed, "{chosen:?} {redundancy}");
                chosen.code().unwrap();
            }
        }
        assert_eq!(StreamGeometry::choose(0, Redundancy::USUAL).unwrap().code().unwrap(), None);
        let usual = StreamGeometry::choose(1 << 29, Redundancy::USUAL).unwrap();
        assert_eq!((usual.data, usual.parity, usual.block), (9_987, 999, 53_760));
        let small = StreamGeometry::choose(5, Redundancy::USUAL).unwrap();
        assert!(!StreamGeometry { block: 1 << 32, ..small }.is_valid(), "a block of zeros");
    }

    /// The parity is enough for the loss, and hardly more, unless even the smallest redundancy is
    /// more.
    #[test]
    fn a_redundancy_may_be_chosen_for_a_loss() {
        for length in (9..46).map(|bits| (1_u64 << bits) / 7 * 13 + 1) {
            for lost in [length / 1000, length / 50, length / 3, length - 1, length] {
                let chosen = Redundancy::LEAST.for_loss_of(lost, length);
                let StreamGeometry { block, data, parity, .. } =
                    StreamGeometry::choose(length, chosen).unwrap();
                let spans = (lost.saturating_sub(1) / block + 2).min(data);
                assert!(parity >= spans, "{lost} of {length}: {parity} blocks of {block}");
                let few = chosen == Redundancy::LEAST
                    || parity.saturating_sub(4) * block <= lost / 50 * 51;
                assert!(few, "{lost} of {length}: {parity} blocks of {block}");
            }
        }
        assert_eq!(Redundancy::USUAL.for_loss_of(1 << 20, 1 << 30), Redundancy::USUAL);
    }

    #[test]
    fn redundancies_are_read() {
        assert_eq!("10%".parse::<Redundancy>().unwrap(), Redundancy::USUAL);
        assert_eq!("2.5".parse::<Redundancy>().unwrap().to_string(), "2.5%");
        for text in ["", "%", "-1%", "0%", "ten", "nan", "inf", "1001%", "0.05%", "1e99"] {
            let error = text.parse::<Redundancy>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Parameters, "{text}");
        }
    }
}
