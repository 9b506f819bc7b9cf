//! The kinds of damage to one shard file.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::Chance;
use crate::specimen::{Shard, Specimen};

/// A kind of damage to a shard file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    Delete,
    CutToNothing,
    CutInHeader,
    CutInBlocks,
    CutInFooter,
    ExtendByOne,
    ExtendByMuch,
    AppendNeighbour,
    Prepend,
    FlipFront,
    FlipBlocks,
    FlipChecksum,
    FlipFooter,
    Insert,
    Remove,
    Zeros,
    Splice,
    Directory,
    DanglingLink,
    Fifo,
}

/// The part of a damaged file that is still good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Gone,
    /// All of its blocks.
    Edges,
    /// Only the blocks before some offset.
    Tail,
    /// All lanes except one or a few.
    Spot,
}

impl Damage {
    pub const ALL: [Self; 20] = [
        Self::Delete,
        Self::CutToNothing,
        Self::CutInHeader,
        Self::CutInBlocks,
        Self::CutInFooter,
        Self::ExtendByOne,
        Self::ExtendByMuch,
        Self::AppendNeighbour,
        Self::Prepend,
        Self::FlipFront,
        Self::FlipBlocks,
        Self::FlipChecksum,
        Self::FlipFooter,
        Self::Insert,
        Self::Remove,
        Self::Zeros,
        Self::Splice,
        Self::Directory,
        Self::DanglingLink,
        Self::Fifo,
    ];

    pub fn effect(self) -> Effect {
        match self {
            Self::Delete
            | Self::CutToNothing
            | Self::CutInHeader
            | Self::Zeros
            | Self::Directory
            | Self::DanglingLink
            | Self::Fifo => Effect::Gone,
            Self::CutInFooter
            | Self::ExtendByOne
            | Self::ExtendByMuch
            | Self::AppendNeighbour
            | Self::Prepend
            | Self::FlipFront
            | Self::FlipFooter => Effect::Edges,
            Self::CutInBlocks | Self::Splice => Effect::Tail,
            Self::FlipBlocks | Self::FlipChecksum | Self::Insert | Self::Remove => Effect::Spot,
        }
    }

    /// Whether the shard must have blocks. The shards of an empty object have none.
    pub fn needs_blocks(self) -> bool {
        matches!(self.effect(), Effect::Tail | Effect::Spot)
    }

    /// Whether exactly one byte of a block changes, and nothing else.
    pub fn is_flip_in_blocks(self) -> bool {
        matches!(self, Self::FlipBlocks | Self::FlipChecksum)
    }

    /// Damages a shard's file, and returns the offset of the damage.
    pub fn strike(
        self,
        folder: &Path,
        specimen: &Specimen,
        index: usize,
        chance: &mut Chance,
    ) -> usize {
        let shard = &specimen.shards[index];
        let neighbour = &specimen.shards[(index + 1) % specimen.shards.len()];
        let path = folder.join(&shard.name);
        fs::remove_file(&path).unwrap();
        let (offset, bytes) = match self {
            Self::Delete => return 0,
            Self::Directory => {
                fs::create_dir(&path).unwrap();
                return 0;
            }
            Self::DanglingLink => {
                symlink("nowhere", &path).unwrap();
                return 0;
            }
            Self::Fifo => {
                mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
                return 0;
            }
            _ => self.harm(shard, neighbour, chance),
        };
        fs::write(&path, bytes).unwrap();
        offset
    }

    fn harm(self, shard: &Shard, neighbour: &Shard, chance: &mut Chance) -> (usize, Vec<u8>) {
        let bytes = shard.bytes.clone();
        let inside = |range: &Range<usize>| range.start + 1..range.end;
        let cut = |at: usize| (at, bytes[..at].to_vec());
        let append = |more: &[u8]| (bytes.len(), [&bytes, more].concat());
        match self {
            Self::CutToNothing => cut(0),
            Self::CutInHeader => cut(chance.within(inside(&shard.front()))),
            Self::CutInBlocks => cut(chance.within(inside(&shard.blocks))),
            Self::CutInFooter => cut(chance.within(shard.footer())),
            Self::ExtendByOne => append(&chance.bytes(1)),
            Self::ExtendByMuch => append(&chance.bytes(5000)),
            Self::AppendNeighbour => append(&neighbour.bytes),
            Self::Prepend => (0, [&chance.bytes(1000), &bytes[..]].concat()),
            Self::FlipFront => flip(bytes, chance.within(shard.front()), chance),
            Self::FlipBlocks => flip(bytes, chance.within(shard.blocks.clone()), chance),
            Self::FlipChecksum => flip(bytes, chance.within(shard.last_checksum()), chance),
            Self::FlipFooter => flip(bytes, chance.within(shard.footer()), chance),
            Self::Insert => {
                let at = chance.within(inside(&shard.blocks));
                let others = [bytes[at - 1], bytes[at]];
                let byte = (0..=u8::MAX).find(|byte| !others.contains(byte)).unwrap();
                (at, [&bytes[..at], &[byte], &bytes[at..]].concat())
            }
            Self::Remove => {
                let at = chance.within(inside(&shard.blocks));
                (at, [&bytes[..at], &bytes[at + 1..]].concat())
            }
            Self::Zeros => (0, vec![0; bytes.len()]),
            Self::Splice => {
                let at = (shard.blocks.start + shard.blocks.end) / 2;
                (at, [&bytes[..at], &neighbour.bytes[at..]].concat())
            }
            Self::Delete | Self::Directory | Self::DanglingLink | Self::Fifo => {
                unreachable!("leaves no file")
            }
        }
    }
}

/// Changes the byte at `at`. Returns `at` and the changed bytes.
pub fn flip(mut bytes: Vec<u8>, at: usize, chance: &mut Chance) -> (usize, Vec<u8>) {
    bytes[at] ^= chance.within(1..256) as u8;
    (at, bytes)
}
