//! How threads share the work of a question when they do not split it by stripes: each gets a program
//! of its own, which makes some of the wanted cells or runs over some columns of all packets.
//!
//! Words of a field have neither rows nor columns that could be handled apart; codes in the word
//! layout are split by node or else by stripe.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::codec::Codec;
use crate::define::cells::{CellId, CellSet};
use crate::error::Result;
use crate::run::kernel::Executable;
use crate::run::parallel::{Split, thread_count};

/// Packets are cut into columns at multiples of this many bytes, so that no two threads write the
/// same cache line.
const LINE: usize = 64;

impl Codec {
    /// Compiles a question in as many parts as the codec's split and threads ask for.
    pub(super) fn compile_shared(&self, have: &CellSet, want: &CellSet) -> Result<Executable> {
        let whole = 0..self.options.packet;
        let parts: Result<Vec<Executable>> = match self.effective_split() {
            Split::Stripe => return self.compile_part(have, want, whole),
            Split::Columns => {
                let columns = self.column_ranges().into_iter();
                columns.map(|range| self.compile_part(have, want, range)).collect()
            }
            Split::Node | Split::Rows => {
                let shares = self.shares(want).into_iter();
                shares.map(|share| self.compile_part(have, &share, whole.clone())).collect()
            }
        };
        Executable::side_by_side(parts?)
    }

    fn effective_split(&self) -> Split {
        match (self.options.split, self.word_kernel()) {
            (Split::Columns | Split::Rows, Some(_)) => Split::Stripe,
            (split, _) => split,
        }
    }

    /// The columns of each thread: whole lines, as evenly as possible.
    fn column_ranges(&self) -> Vec<Range<usize>> {
        let packet = self.options.packet;
        let lines = packet.div_ceil(LINE);
        let pieces = thread_count(self.options.threads).min(lines);
        let bound = |piece: usize| (lines * piece / pieces * LINE).min(packet);
        (0..pieces).map(|piece| bound(piece)..bound(piece + 1)).collect()
    }

    /// The wanted cells of each thread: whole nodes, or rows of the same number, dealt out in turn.
    fn shares(&self, want: &CellSet) -> Vec<CellSet> {
        let mut groups: BTreeMap<usize, Vec<CellId>> = BTreeMap::new();
        for cell in want.iter() {
            let place = self.code.cell(cell).place;
            let group = place.map_or(0, |place| match self.options.split {
                Split::Rows => place.row,
                _ => place.node.index(),
            });
            groups.entry(group).or_default().push(cell);
        }
        let threads = thread_count(self.options.threads).min(groups.len()).max(1);
        let mut shares = vec![CellSet::new(self.code.cell_count()); threads];
        for (number, cells) in groups.into_values().enumerate() {
            cells.into_iter().for_each(|cell| shares[number % threads].insert(cell));
        }
        shares
    }
}
