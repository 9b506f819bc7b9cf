//! Explanations: what a codec runs for a question, for people to read.

use crate::codec::engine::Engine;
use crate::codec::question::Question;
use crate::define::cells::{CellId, CellSet};
use crate::error::Result;
use crate::plan::execution::{ProgramPart, Turns};
use crate::plan::machine::LINE;
use crate::plan::program::CellLocation;
use crate::plan::schedule::{Schedule, Slot};
use crate::plan::steps::Instructions;
use crate::run::dispatch::{Kernel, Serving, WordKernel};

/// The call that an [`Explanation`] is about.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Bytes of all buffers together.
    pub bytes: usize,
    /// Buffers begin at multiples of `align` bytes: 4096 if they begin at pages. As far as `align`
    /// allows, each buffer is shifted by 320 bytes against the one before, as in `paritas bench`.
    pub align: usize,
    /// Kernel to explain instead of the codec's; this processor need not be able to run it.
    pub kernel: Option<Kernel>,
}

impl Call {
    /// Returns an address that buffer `number` may have.
    fn start(self, number: usize) -> usize {
        let align = self.align.max(1);
        // A buffer aligned to less than a cache line begins inside one.
        let within = if align < LINE { align } else { 0 };
        number * STAGGER / align * align + within
    }
}

/// Bytes by which buffers are shifted against each other within their pages.
const STAGGER: usize = 5 * LINE;

/// The programs that run for a question, over buffers of a given length and place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// Name of the kernel.
    pub kernel: &'static str,
    /// The parts, in the order in which they run.
    pub parts: Vec<ExplainedPart>,
    /// Whether the parts run in turn over tiles of stripes. Otherwise each part runs over all
    /// stripes, on a thread of its own if there are threads.
    pub in_turn: bool,
    /// Whether some results are stored with non-temporal stores. Only compiled kernels have these,
    /// for results that begin at cache lines.
    pub nontemporal: bool,
}

/// One program of an [`Explanation`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainedPart {
    /// The operations, in the order in which they run.
    pub schedule: Schedule,
    /// Buffer and row of every input of the schedule.
    pub inputs: Vec<(usize, usize)>,
    /// Buffer and row of every output of the schedule.
    pub outputs: Vec<(usize, usize)>,
    /// Whether every input is first copied to the scratch, because lines of the buffers compete for
    /// the same sets of the cache.
    pub stages_inputs: bool,
    /// Whether inputs are prefetched.
    pub prefetches: bool,
    /// Whether outputs are stored with non-temporal stores.
    pub nontemporal: bool,
    /// The instructions, counted, if the kernel is compiled and serves this program.
    pub instructions: Option<Instructions>,
    /// The machine code, one instruction a line, if this build has an assembler for it.
    pub listing: Option<String>,
}

impl Engine {
    /// Explains what runs when the cells of `want` are computed from those of `have`.
    ///
    /// # Errors
    /// As [`Engine::compute`].
    pub(super) fn explain(
        &self,
        have: &CellSet,
        want: &CellSet,
        call: &Call,
    ) -> Result<Explanation> {
        let nontemporal = self.setup.options.stores.are_nontemporal(call.bytes);
        let (serving, kernel) = self.serving_for(call);
        if self.setup.has_blocks() {
            let part = self.explain_blocks(have, want)?;
            let kernel = self.kernel_name();
            return Ok(Explanation { kernel, parts: vec![part], in_turn: false, nontemporal });
        }
        let question = Question::compute(have, want);
        let execution = self.setup.execution_for(&question, serving.target())?;
        let in_turn = execution.turns != Turns::SideBySide;
        let parts = execution.parts.iter();
        let parts = parts.map(|part| self.explain_part(part, serving, call, nontemporal));
        let parts: Vec<ExplainedPart> = parts.collect::<Result<_>>()?;
        let nontemporal = parts.iter().any(|part| part.nontemporal);
        Ok(Explanation { kernel, parts, in_turn, nontemporal })
    }

    fn serving_for(&self, call: &Call) -> (Serving, &'static str) {
        match (call.kernel, self.setup.code.symbols()) {
            (None, _) => (self.setup.serving, self.kernel_name()),
            (Some(kernel), None) => {
                let serving = Serving::packets(
                    self.setup.options.kernel,
                    kernel,
                    self.setup.options.prefetch,
                );
                (serving, kernel.name())
            }
            (Some(kernel), Some(_)) => {
                let kernel = WordKernel::like(kernel);
                (Serving::words(kernel, false, self.setup.options.prefetch), kernel.name())
            }
        }
    }

    fn explain_blocks(&self, have: &CellSet, want: &CellSet) -> Result<ExplainedPart> {
        let plan = self.setup.code.schedule_with(have, want, self.setup.options.plan)?;
        let place = |&cell: &CellId| {
            let CellLocation { buffer, row } =
                self.setup.layout.location(&self.setup.code, cell)?;
            Ok((buffer, row))
        };
        Ok(ExplainedPart {
            inputs: plan.inputs().iter().map(place).collect::<Result<_>>()?,
            outputs: plan.outputs().iter().map(place).collect::<Result<_>>()?,
            ..ExplainedPart::of(plan.into_schedule())
        })
    }

    fn explain_part(
        &self,
        part: &ProgramPart,
        serving: Serving,
        call: &Call,
        nontemporal: bool,
    ) -> Result<ExplainedPart> {
        let schedule = part.program.schedule();
        let places = |count: usize, slot: fn(u32) -> Slot| -> Vec<(usize, usize)> {
            let slots = (0..count as u32).map(slot);
            let places = slots.filter_map(|slot| part.program.location(slot));
            places.map(|CellLocation { buffer, row }| (buffer, row)).collect()
        };
        let mut explained = ExplainedPart {
            inputs: places(schedule.inputs(), Slot::Input),
            outputs: places(schedule.outputs(), Slot::Output),
            ..ExplainedPart::of(schedule.clone())
        };
        if let Some(Ok(variants)) = &part.variants {
            let prefetch = self.setup.options.prefetch;
            let start = |number| call.start(number);
            let variant = variants.choose(start, nontemporal && !part.feeds, prefetch);
            let planned = variants.planned(variant)?;
            explained.schedule = planned.arranged.schedule.clone();
            explained.instructions = Some(planned.arranged.allocation.instructions());
            explained.stages_inputs = planned.stage_inputs;
            explained.prefetches = variant.prefetch;
            explained.nontemporal = variant.nontemporal;
            explained.listing = serving.listing(variants, variant);
        }
        Ok(explained)
    }
}

impl ExplainedPart {
    /// A schedule that is not compiled.
    fn of(schedule: Schedule) -> Self {
        Self {
            schedule,
            inputs: Vec::new(),
            outputs: Vec::new(),
            stages_inputs: false,
            prefetches: false,
            nontemporal: false,
            instructions: None,
            listing: None,
        }
    }
}
