//! What a codec runs for a question, to be read.

use crate::codec::Codec;
use crate::codec::cache::Question;
use crate::define::cells::CellSet;
use crate::error::{Error, Result};
use crate::plan::execution::Turns;
use crate::plan::program::Location;
use crate::plan::schedule::{Schedule, Slot};
use crate::plan::steps::Allocation;

/// What runs for a question over buffers of a given length and place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// The parts, in the order in which they run.
    pub parts: Vec<ExplainedPart>,
    /// Whether the parts run in turn over tiles of stripes; otherwise each runs over all stripes, by
    /// a thread of its own if there are threads.
    pub in_turn: bool,
    /// Whether results are stored by non-temporal stores.
    pub nontemporal: bool,
}

/// One program of an [`Explanation`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainedPart {
    /// The operations, in the order in which they run.
    pub schedule: Schedule,
    /// The buffer and row of every input and output of the schedule.
    pub inputs: Vec<(usize, usize)>,
    /// As `inputs`.
    pub outputs: Vec<(usize, usize)>,
    /// Whether every input is copied to the scratch first, because lines of the buffers compete for
    /// the same sets of the cache.
    pub stages_inputs: bool,
    /// Whether inputs are prefetched.
    pub prefetches: bool,
    /// The instructions, where the kernel is a compiled one and serves this program.
    pub allocation: Option<Allocation>,
    /// The machine code, an instruction a line, where there is an assembler for it in this build.
    pub listing: Option<String>,
}

impl Codec {
    /// What runs when the cells of `want` are made from those of `have`, in a call whose buffers
    /// have `bytes` bytes together and begin at the addresses that `start` gives for their numbers.
    ///
    /// # Errors
    /// As [`Codec::compute`]; also if buffers are the blocks of an LT code, which have no programs.
    pub fn explain(
        &self,
        have: &CellSet,
        want: &CellSet,
        bytes: usize,
        start: impl Fn(usize) -> usize,
    ) -> Result<Explanation> {
        if self.has_blocks() {
            let spec = self.code.spec();
            return Err(Error::parameters(format!(
                "{spec}: the schedules of LT codes are run down whole blocks"
            )));
        }
        let execution = self.execution(&Question::compute(have, want))?;
        let nontemporal = self.options.stores.are_nontemporal(bytes);
        let parts = execution.parts.into_iter().map(|part| {
            let locate = |slot| part.program.location(slot).unwrap_or(Location { buffer: 0, row: 0 });
            let places = |count: usize, slot: fn(u32) -> Slot| {
                let place = |n| locate(slot(n));
                (0..count as u32).map(place).map(|place| (place.buffer, place.row)).collect()
            };
            let schedule = part.program.schedule();
            let mut explained = ExplainedPart {
                inputs: places(schedule.inputs(), Slot::Input),
                outputs: places(schedule.outputs(), Slot::Output),
                schedule: schedule.clone(),
                stages_inputs: false,
                prefetches: false,
                allocation: None,
                listing: None,
            };
            if let Some(variants) = &part.variants {
                let of_call = nontemporal && !part.feeds;
                let variant = variants.choose(&start, of_call, self.options.prefetch);
                let planned = variants.planned(variant)?;
                explained.schedule = planned.arranged.schedule.clone();
                explained.allocation = Some(planned.arranged.allocation.clone());
                explained.stages_inputs = planned.stage_inputs;
                explained.prefetches = variant.prefetch;
                explained.listing = self.serving.listing(variants, variant);
            }
            Ok(explained)
        });
        Ok(Explanation {
            parts: parts.collect::<Result<_>>()?,
            in_turn: matches!(execution.turns, Turns::ByTiles { .. }),
            nontemporal,
        })
    }
}
