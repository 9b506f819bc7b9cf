//! Variants: the ways in which one program may be compiled, and the rule that chooses one for a
//! call.
//!
//! The best variant depends on the addresses and the size of the buffers of a call. Buffers that
//! exceed the cache are written with non-temporal stores, and wide sets of buffers are read with
//! prefetching. If lines of the buffers compete for the same sets of the first-level cache, as
//! those of page-aligned shards do, every input is read once; if the registers do not suffice for
//! that, inputs are copied to the scratch first. [`Variants`] holds the instructions of each
//! variant, made and proved when they are first asked for, and [`Variants::choose`] is the rule.
//! `paritas schedule` asks the same questions as a codec.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::define::made::FirstMade;
use crate::error::{Error, Result};
use crate::limits::{CACHE_WAYS, COMPILED_STEPS, PAGE, PREFETCH_DISTANCE, PREFETCHED_STREAMS};
use crate::plan::arrange::{self, Arranged};
use crate::plan::machine::{LINE, Machine};
use crate::plan::program::{CellLocation, Footprint, Program};
use crate::plan::prove;

/// The machine that a program is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CompileTarget {
    pub(crate) machine: Machine,
    /// Size of a vector register, in bytes.
    pub(crate) vector: usize,
}

/// How a run reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct RunVariant {
    /// Outputs are written with non-temporal stores.
    pub(crate) nontemporal: bool,
    /// Inputs are copied to the scratch first, stream by stream, each line once. This serves
    /// buffers whose addresses compete for the same sets of the first-level cache, where a line
    /// would be evicted before it is read again later in the body.
    pub(crate) stage_inputs: bool,
    /// Inputs are prefetched into the cache some lines ahead.
    pub(crate) prefetch: bool,
}

impl RunVariant {
    /// The variant that is used unless there is a reason for another.
    pub(crate) const PLAIN: Self =
        Self { nontemporal: false, stage_inputs: false, prefetch: false };

    /// Returns the number of the variant: 0 if it is the plain one, below 4 if it does not
    /// prefetch, and below 8 otherwise.
    pub(crate) fn number(self) -> usize {
        let Self { nontemporal, stage_inputs, prefetch } = self;
        usize::from(nontemporal) + 2 * usize::from(stage_inputs) + 4 * usize::from(prefetch)
    }
}

/// How the body of a compiled function walks over memory, in bytes and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyWalk {
    /// Number of runs of the instructions in one body, each on the next vectors of every packet: as
    /// many as make a cache line, or 1.
    pub(crate) unroll: usize,
    /// Number of bodies in a packet.
    pub(crate) inner: usize,
    /// Number of bytes from one packet's start to that of the next stripe.
    pub(crate) strip: usize,
}

/// How a program's packets are divided into bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyShape {
    /// Every buffer is one stream of packets: stripes are merged.
    Flat {
        /// Number of bytes of one body.
        body: usize,
    },
    /// Strips of several packets, each a whole number of vectors.
    Strips(BodyWalk),
}

/// A program as a compiled kernel runs it.
#[derive(Debug)]
pub(crate) struct Variants {
    program: Arc<Program>,
    target: CompileTarget,
    shape: BodyShape,
    /// For each buffer that a body touches, its number and the sets of the first-level cache that
    /// it touches, as bits, counted as if the buffer began at the first set. A buffer that touches
    /// some sets twice has a second entry with these, and so on.
    sets: Vec<(usize, u64)>,
    /// Buffers that are written.
    outputs: Vec<usize>,
    /// Whether enough streams are read for prefetching to pay.
    is_wide: bool,
    /// Instructions, by the number of the variant that does not prefetch: prefetching does not
    /// change them.
    planned: [FirstMade<Result<PlannedVariant>>; 4],
    /// Whether copying inputs may pay ([`Variants::reads_again`]).
    reads_again: FirstMade<bool>,
}

/// The instructions of a variant.
#[derive(Debug, Clone)]
pub(crate) struct PlannedVariant {
    pub(crate) arranged: Arranged,
    /// Whether inputs have to be staged. If the instructions read each input once, they do not.
    pub(crate) stage_inputs: bool,
}

impl Variants {
    /// Returns the variants of a program, or the reason why it cannot be compiled.
    pub(crate) fn new(program: &Arc<Program>, target: CompileTarget) -> Result<Self, &'static str> {
        let shape = BodyShape::of(program, target)?;
        let Footprint { read, written, .. } = program.footprint();
        let buffers = |cells: &[CellLocation]| -> BTreeSet<usize> {
            cells.iter().map(|cell| cell.buffer).collect()
        };
        let (sources, targets) = (buffers(&read), buffers(&written));
        let touched: BTreeSet<CellLocation> = read.into_iter().chain(written).collect();
        Ok(Self {
            shape,
            sets: sets_by_buffer(program, &touched),
            is_wide: sources.difference(&targets).count() >= PREFETCHED_STREAMS,
            outputs: targets.into_iter().collect(),
            planned: [const { FirstMade::new() }; 4],
            reads_again: FirstMade::new(),
            program: Arc::clone(program),
            target,
        })
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    pub(crate) fn shape(&self) -> BodyShape {
        self.shape
    }

    /// Chooses the variant for a call. `starts` gives the addresses of its buffers, `nontemporal`
    /// says whether they exceed the cache, `prefetch` whether prefetching is allowed.
    pub(crate) fn choose(
        &self,
        starts: impl Fn(usize) -> usize,
        nontemporal: bool,
        prefetch: bool,
    ) -> RunVariant {
        let nontemporal = nontemporal && self.lines_are_whole(&starts);
        RunVariant {
            nontemporal,
            stage_inputs: self.reads_again() && self.lines_compete(&starts),
            prefetch: prefetch && nontemporal && self.is_wide,
        }
    }

    /// Returns the instructions of a variant, which have been proved to compute the program.
    ///
    /// # Errors
    /// If the program cannot be compiled, or its proof fails.
    pub(crate) fn planned(&self, variant: RunVariant) -> Result<&PlannedVariant> {
        let plan = || {
            let shared = self.program.shared();
            let planned = self.plan(variant, &shared)?;
            let allocation = &planned.arranged.allocation;
            prove::allocation(self.program.schedule(), &shared, allocation)?;
            Ok(planned)
        };
        let planned = &self.planned[RunVariant { prefetch: false, ..variant }.number()];
        planned.get(plan).as_ref().map_err(Error::clone)
    }

    fn plan(&self, variant: RunVariant, shared: &[(usize, usize)]) -> Result<PlannedVariant> {
        let (schedule, streams) = (self.program.schedule(), self.program.streams());
        let machine = Machine { outputs_readable: !variant.nontemporal, ..self.target.machine };
        if variant.stage_inputs
            && let Some(arranged) = arrange::reading_once(schedule, &streams, shared, machine)
        {
            return Ok(PlannedVariant { arranged, stage_inputs: false });
        }
        let arranged = arrange::arranged_in_place(schedule, &streams, shared, machine)?;
        Ok(PlannedVariant { arranged, stage_inputs: variant.stage_inputs })
    }

    /// Whether copying the inputs may pay: the plain variant reads more than half of them a second
    /// time. If it cannot be planned, neither can the others.
    fn reads_again(&self) -> bool {
        *self.reads_again.get(|| {
            self.planned(RunVariant::PLAIN).is_ok_and(|planned| {
                let allocation = &planned.arranged.allocation;
                let inputs = self.program.schedule().inputs() * allocation.group;
                allocation.reads_of_cells() > inputs + inputs / 2
            })
        })
    }

    /// Whether a body touches more lines of some set of the first-level cache than the set holds.
    /// The set follows from the address within a page.
    fn lines_compete(&self, starts: &impl Fn(usize) -> usize) -> bool {
        // One counter for each set, stored bit by bit; overflow stays in `beyond`.
        let (mut counts, mut beyond) = ([0_u64; CACHE_WAYS.ilog2() as usize], 0);
        let mut full = 0;
        for &(buffer, sets) in &self.sets {
            let first = starts(buffer) / LINE % SETS;
            let mut carry = sets.rotate_left(first as u32);
            beyond |= full & carry;
            for bits in &mut counts {
                (*bits, carry) = (*bits ^ carry, *bits & carry);
            }
            full |= carry;
        }
        beyond != 0
    }

    /// Whether every body writes whole cache lines.
    fn lines_are_whole(&self, starts: &impl Fn(usize) -> usize) -> bool {
        let whole = |bytes: usize| bytes.is_multiple_of(LINE);
        let program = &self.program;
        self.outputs.iter().all(|&buffer| {
            let columns = program.columns();
            let packets = whole(program.packet()) && whole(columns.start) && whole(columns.end);
            let strips = whole(program.strip(buffer)) && packets;
            whole(starts(buffer)) && (self.shape.is_flat() || strips)
        })
    }
}

/// Number of sets of the first-level cache that can be distinguished by the address within a page.
pub(crate) const SETS: usize = PAGE / LINE;

/// Returns the sets of the first-level cache that these packets of a body lie in, in the form that
/// [`Variants`] stores.
fn sets_by_buffer(program: &Program, touched: &BTreeSet<CellLocation>) -> Vec<(usize, u64)> {
    let mut sets: Vec<(usize, u64)> = Vec::new();
    for &location in touched {
        let set = 1 << (program.offset(location) / LINE % SETS);
        match sets.iter_mut().rev().find(|(buffer, of)| *buffer == location.buffer && of & set == 0)
        {
            Some((_, of)) => *of |= set,
            None => sets.push((location.buffer, set)),
        }
    }
    sets
}

impl BodyShape {
    /// Returns the shape of a program, or the reason why it cannot be compiled.
    fn of(program: &Program, target: CompileTarget) -> Result<Self, &'static str> {
        let (packet, vector) = (program.packet(), target.vector);
        let columns = program.columns().len();
        let used = program.buffers_in_use();
        let mut rows: Vec<usize> = used.map(|buffer| program.rows()[buffer]).collect();
        rows.dedup();
        let [rows] = rows[..] else { return Err("the buffers of a program differ in rows") };
        let largest_displacement = rows * packet + PREFETCH_DISTANCE;
        let schedule = program.schedule();
        let steps: usize = schedule.ops().iter().map(|op| op.sources.len() + 1).sum();
        if !schedule.is_single_assignment() {
            return Err("a program adds to cells that it has computed");
        }
        if steps > COMPILED_STEPS {
            return Err("a program is too long");
        }
        if largest_displacement > i32::MAX as usize {
            return Err("the strips of a program are too large");
        }
        if program.is_flat() {
            return Ok(Self::Flat { body: LINE.max(schedule.word() * vector) });
        }
        // Words of several bytes need several vectors at once, which a walk over strips does not
        // support.
        if schedule.word() > 1 || !columns.is_multiple_of(vector) {
            return Err("the packets of a program are not whole registers");
        }
        let vectors = columns / vector;
        let wanted = (LINE / vector).max(1);
        let unroll = if vectors.is_multiple_of(wanted) { wanted } else { 1 };
        Ok(Self::Strips(BodyWalk { unroll, inner: vectors / unroll, strip: rows * packet }))
    }

    fn is_flat(self) -> bool {
        matches!(self, Self::Flat { .. })
    }

    /// Returns the walk of a function whose instructions process `run` consecutive bytes of each
    /// packet.
    pub(crate) fn walk(self, run: usize) -> BodyWalk {
        match self {
            Self::Flat { body } => BodyWalk { unroll: body / run, inner: 1, strip: body },
            Self::Strips(walk) => walk,
        }
    }

    /// Returns the smallest number of stripes of packets of `packet` bytes that form a whole number
    /// of bodies.
    pub(crate) fn together(self, packet: usize) -> usize {
        match self {
            Self::Strips(_) => 1,
            Self::Flat { body } => body / greatest_common_divisor(body, packet),
        }
    }

    /// Returns the number of iterations of the function's outer loop for `stripes` stripes of
    /// packets of `packet` bytes, and the number of stripes that these iterations cover.
    pub(crate) fn bodies(self, stripes: usize, packet: usize) -> (usize, usize) {
        let covered = stripes - stripes % self.together(packet);
        match self {
            Self::Strips(_) => (covered, covered),
            Self::Flat { body } => (covered * packet / body, covered),
        }
    }
}

pub(crate) fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
