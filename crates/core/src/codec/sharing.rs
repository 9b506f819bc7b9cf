//! Programs that share out the work of a question, each making some of the wanted cells or running
//! over some columns of all packets. Threads do so when they do not split it by stripes; and a
//! schedule whose code would outgrow the processor's instruction cache becomes several, cut between stripes
//! or by outputs, that are run in turn, a tile of stripes at a time.
//!
//! Words of a field have neither rows nor columns that could be handled apart; codes in the word
//! layout are split by node or else by stripe.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::codec::Codec;
use crate::define::cells::{CellId, CellSet};
use crate::error::Result;
use crate::plan::cost::Cost;
use crate::run::kernel::{Executable, Turns};
use crate::run::parallel::{Split, thread_count};

/// Packets are cut into columns at multiples of this many bytes, so that no two threads write the
/// same cache line.
const LINE: usize = 64;

/// Schedules with more operands than this are long: what they share costs more, in values that leave the
/// registers and in code that leaves the instruction cache, than computing outputs in groups. (On AVX-512, 20+6
/// with 750 is as fast in one way as in the other, 20+8 with 995 faster in groups.)
const LONG: usize = 900;

impl Codec {
    /// Compiles a question in as many parts as the codec's split and threads ask for.
    pub(super) fn compile_shared(&self, have: &CellSet, want: &CellSet) -> Result<Executable> {
        let parts: Result<Vec<Executable>> = match self.effective_split() {
            Split::Stripe => return self.compile_whole(have, want),
            Split::Columns => {
                let columns = self.column_ranges().into_iter();
                columns.map(|range| self.compile_part(have, want, range)).collect()
            }
            Split::Node | Split::Rows => {
                let threads = thread_count(self.options.threads);
                let shares = self.shares(want, threads).into_iter();
                shares.map(|share| self.compile_part(have, &share, self.packet_bytes())).collect()
            }
        };
        Executable::of_parts(parts?, Turns::SideBySide)
    }

    /// Compiles a question that threads split by stripes.
    fn compile_whole(&self, have: &CellSet, want: &CellSet) -> Result<Executable> {
        if self.word_kernel().is_some() {
            return self.compile_part(have, want, self.packet_bytes());
        }
        let plan = self.plan(have, want)?;
        let ranks: Vec<usize> = plan.inputs().iter().map(|&cell| self.last_lane(cell)).collect();
        let program = self.bind(plan)?;
        // Parts in turn read an input after others have written outputs.
        if want.iter().any(|cell| have.contains(cell)) {
            return self.compile(&program);
        }
        if let Some((pieces, kept)) = program.in_pieces(&ranks)? {
            let pieces: Result<_> = pieces.iter().map(|piece| self.compile(piece)).collect();
            return Executable::of_parts(pieces?, Turns::ByTiles { kept });
        }
        let Some(parts) = self.parts_in_registers(want, Cost::of(program.schedule())) else {
            return self.compile(&program);
        };
        let shares = self.shares(want, parts);
        let plans = self.code.schedule_shares(have, &shares, self.options.plan)?;
        let parts: Result<_> =
            plans.into_iter().map(|plan| self.compile(&self.bind(plan)?)).collect();
        Executable::of_parts(parts?, Turns::ByTiles { kept: 0 })
    }

    /// The last lane of data that a cell depends on. In a group of stripes it tells the stripe.
    fn last_lane(&self, cell: CellId) -> usize {
        self.code.row(cell).last().map_or(0, |&data| data as usize / self.code.lane_rows())
    }

    /// In how many parts a long schedule runs faster, if it does: with whole nodes in each, as many as the
    /// kernel's registers hold.
    fn parts_in_registers(&self, want: &CellSet, cost: Cost) -> Option<usize> {
        let held = self.kernel().outputs_in_registers().filter(|_| cost.total > LONG)?;
        let nodes = self.groups(want);
        let cells = nodes.iter().map(Vec::len).max()?;
        let parts = nodes.len().div_ceil(held / cells.min(held));
        (cells <= held && parts > 1).then_some(parts)
    }

    fn packet_bytes(&self) -> Range<usize> {
        0..self.options.packet
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

    /// The wanted cells in `parts` shares at most: whole nodes, or rows of the same number, dealt out
    /// in turn.
    fn shares(&self, want: &CellSet, parts: usize) -> Vec<CellSet> {
        let groups = self.groups(want);
        let parts = parts.min(groups.len()).max(1);
        let mut shares = vec![CellSet::new(self.code.cell_count()); parts];
        for (number, cells) in groups.into_iter().enumerate() {
            cells.into_iter().for_each(|cell| shares[number % parts].insert(cell));
        }
        shares
    }

    /// The wanted cells of each node, or those of each row.
    fn groups(&self, want: &CellSet) -> Vec<Vec<CellId>> {
        let mut groups: BTreeMap<usize, Vec<CellId>> = BTreeMap::new();
        for cell in want.iter() {
            let place = self.code.cell(cell).place;
            let group = place.map_or(0, |place| match self.options.split {
                Split::Rows => place.row,
                _ => place.node.index(),
            });
            groups.entry(group).or_default().push(cell);
        }
        groups.into_values().collect()
    }
}
