//! Executions: the programs that answer a question, down to the last instruction.
//!
//! Planning ends here. An [`Execution`] is one program, or several that share the work of a
//! question. There are two reasons for several. Threads that do not split the work by stripes have
//! a program each. And a schedule whose code would exceed the processor's instruction cache, or
//! whose sums would exceed its registers, becomes several programs that run in turn, a tile of
//! stripes at a time. Each program has the instructions of every variant that may run
//! ([`Variants`]). `run` translates and executes. It makes no decision that changes the result or
//! the order of operations.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::define::cells::{CellId, CellSet, NodeId};
use crate::define::code::Code;
use crate::error::{Error, Result};
use crate::limits::{LONG_SCHEDULE, MOST_POINTERS};
use crate::plan::combination::Change;
use crate::plan::cost::Cost;
use crate::plan::layout::Layout;
use crate::plan::machine::{LINE, Machine};
use crate::plan::products::CoefficientRows;
use crate::plan::program::{CellLocation, Footprint, Program};
use crate::plan::prove::{self, Proof};
use crate::plan::schedule::Schedule;
use crate::plan::solver::Solver;
use crate::plan::transform::network;
use crate::plan::variants::{CompileTarget, Variants};
use crate::plan::words::Words;
use crate::plan::{Plan, PlanOptions, arrange};

/// How the work of a call is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkShares {
    /// By stripes: every thread runs the same programs.
    Stripes,
    /// By bytes of every packet, in whole cache lines, into at most `shares` shares. In the word
    /// layout, where packets are not part of what is stored, `packet` alone says what is divided.
    Columns {
        /// Largest number of shares.
        shares: usize,
        /// Bytes of a packet.
        packet: usize,
    },
    /// By the nodes that are computed, into at most this many shares.
    Nodes(usize),
    /// By the rows of the nodes that are computed, into at most this many shares.
    Rows(usize),
}

/// How parts follow each other, if there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Each part runs over all stripes, on a thread of its own if there are threads.
    SideBySide,
    /// Every thread has stripes of its own and runs all parts over them in turn, a few stripes at a
    /// time that stay in the cache. The last `kept` buffers belong to the execution, not to the
    /// caller: they hold what parts leave for later parts.
    ByTiles {
        /// Number of these buffers.
        kept: usize,
    },
    /// Every thread has the same bytes of each packet of words and runs all parts over them in
    /// turn.
    ByColumns {
        /// Bytes of a packet, a multiple of a cache line.
        packet: usize,
        /// Number of shares, each of whole cache lines.
        shares: usize,
    },
}

/// A program with all its variants.
#[derive(Debug)]
pub(crate) struct ProgramPart {
    pub(crate) program: Arc<Program>,
    /// How the program is compiled, or why it cannot be; `None` if the kernel does not compile.
    pub(crate) variants: Option<Result<Variants, &'static str>>,
    /// Whether a later part reads what this one writes, so that the output should stay in the
    /// cache.
    pub(crate) feeds: bool,
}

/// The programs that answer a question.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) parts: Vec<ProgramPart>,
    pub(crate) turns: Turns,
}

impl Execution {
    /// Combines one or more programs for the same buffers.
    ///
    /// # Errors
    /// If their buffers differ. Side by side, also if one program writes a cell that another one
    /// reads or writes; in turn, also if a program reads kept buffers that no earlier program
    /// writes.
    fn new(programs: Vec<Program>, turns: Turns, target: Option<CompileTarget>) -> Result<Self> {
        let footprints: Vec<_> = programs.iter().map(Program::footprint).collect();
        let buffers = footprints.first().map_or(0, |footprint| footprint.rows.len());
        let feeds = match turns {
            Turns::SideBySide => apart(&footprints).map(|()| vec![false; footprints.len()]),
            Turns::ByTiles { kept } => feeding(&footprints, buffers.saturating_sub(kept)),
            Turns::ByColumns { .. } => feeding(&footprints, buffers),
        };
        let packet = programs.first().map_or(0, Program::packet);
        let is_alike = |(program, of): (&Program, &Footprint)| {
            program.packet() == packet && of.rows == footprints[0].rows
        };
        let feeds = feeds.filter(|_| programs.iter().zip(&footprints).all(is_alike));
        let feeds = feeds.ok_or_else(|| Error::internal("parts of a program meet each other"))?;
        let part = |(program, feeds)| {
            let program = Arc::new(program);
            let variants = target.map(|target| Variants::new(&program, target));
            ProgramPart { program, variants, feeds }
        };
        Ok(Self { parts: programs.into_iter().zip(feeds).map(part).collect(), turns })
    }

    /// Number of operands of all parts, by which the memory that they take grows.
    pub(crate) fn operands(&self) -> usize {
        let operands = |part: &ProgramPart| Cost::of(part.program.schedule()).total;
        self.parts.iter().map(operands).sum()
    }

    /// Makes an execution of one program.
    pub(crate) fn of_program(program: Program, target: Option<CompileTarget>) -> Result<Self> {
        Self::new(vec![program], Turns::SideBySide, target)
    }
}

/// Checks that parts may run at the same time: no part may write a cell that another one reads or
/// writes.
fn apart(parts: &[Footprint]) -> Option<()> {
    let mut writers: HashMap<CellLocation, Vec<usize>> = HashMap::new();
    for (number, part) in parts.iter().enumerate() {
        part.written.iter().for_each(|&cell| writers.entry(cell).or_default().push(number));
    }
    let is_apart = |number: usize| {
        let part = &parts[number];
        let is_own = |&writer: &usize| {
            let other = &parts[writer].columns;
            writer == number || part.columns.end <= other.start || other.end <= part.columns.start
        };
        let mut touched = part.read.iter().chain(&part.written);
        touched.all(|cell| writers.get(cell).is_none_or(|writers| writers.iter().all(is_own)))
    };
    (0..parts.len()).all(is_apart).then_some(())
}

/// For each part, whether a later one reads what it writes. The caller does not fill the buffers
/// from `own` on; returns `None` if a part reads a cell of these that no earlier part writes.
fn feeding(parts: &[Footprint], own: usize) -> Option<Vec<bool>> {
    let mut feeds = vec![false; parts.len()];
    let mut writers: HashMap<CellLocation, usize> = HashMap::new();
    for (number, part) in parts.iter().enumerate() {
        for cell in &part.read {
            match writers.get(cell) {
                Some(&writer) => feeds[writer] = true,
                None if cell.buffer >= own => return None,
                None => {}
            }
        }
        writers.extend(part.written.iter().map(|&cell| (cell, number)));
    }
    Some(feeds)
}

/// Plans executions of one code over buffers of one layout.
pub(crate) struct Planner<'a> {
    pub(crate) code: &'a Code,
    pub(crate) layout: &'a Layout,
    /// The target that the programs are compiled for, if they are compiled.
    pub(crate) target: Option<CompileTarget>,
    pub(crate) shares: WorkShares,
    pub(crate) options: PlanOptions,
}

impl Planner<'_> {
    /// Plans how the cells of `want` are computed from those of `have`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if some wanted cells are not determined, or
    /// [`crate::ErrorKind::Parameters`] if no buffer holds some cell that is read or computed.
    pub(crate) fn compute(&self, have: &CellSet, want: &CellSet) -> Result<Execution> {
        self.code.expect_cells([have, want])?;
        if self.code.symbols().is_some() {
            return self.compute_words(have, want);
        }
        let whole = 0..self.layout.packet;
        let shares: Vec<(CellSet, Range<usize>)> = match self.shares {
            WorkShares::Stripes => Vec::new(),
            WorkShares::Columns { shares, packet } => {
                let ranges = column_ranges(packet, shares).into_iter();
                ranges.map(|range| (want.clone(), range)).collect()
            }
            WorkShares::Nodes(shares) | WorkShares::Rows(shares) => {
                let shares = self.dealt(want, shares).into_iter();
                shares.map(|share| (share, whole.clone())).collect()
            }
        };
        // A single node, row or cache line cannot be shared, so threads share the stripes.
        if shares.len() < 2 {
            return self.compute_whole(have, want);
        }
        let programs = shares.into_iter().map(|(share, range)| self.part(have, &share, range));
        Execution::new(programs.collect::<Result<_>>()?, Turns::SideBySide, self.target)
    }

    /// Proves and binds a plan that the caller supplies.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Schedule`] if the plan names cells that the code lacks or computes a
    /// cell wrongly, or if the code is in the word layout; [`crate::ErrorKind::Parameters`] if no
    /// buffer holds some cell of the plan.
    pub(crate) fn given(&self, plan: &Plan) -> Result<Execution> {
        let spec = self.code.spec();
        if self.code.symbols().is_some() {
            return Err(Error::schedule(format!(
                "{spec} is in the word layout; plans are about packets"
            )));
        }
        if plan.schedule().field().is_some() {
            return Err(Error::schedule(format!(
                "{spec} is in the packet layout; the plan is about words"
            )));
        }
        let cells = self.code.cell_count();
        if let Some(cell) = plan.cells().find(|cell| cell.index() >= cells) {
            let cell = cell.index();
            return Err(Error::schedule(format!(
                "{spec} has {cells} cells; the plan has cell {cell}"
            )));
        }
        if let Some(cell) = Proof::new(self.code).wrong_cell(plan)? {
            let cell = self.code.cell_name(cell);
            return Err(Error::schedule(format!(
                "the plan does not compute cell {cell} of {spec}"
            )));
        }
        Execution::of_program(self.bind(plan.clone())?, self.target)
    }

    /// Plans how parity is updated after data node `node` changed. The buffers are the shards of
    /// `change`, then the shards of `targets`.
    ///
    /// # Errors
    /// If no parity depends on the node.
    pub(crate) fn update(
        &self,
        node: NodeId,
        change: Change,
        targets: &[NodeId],
    ) -> Result<Execution> {
        if self.code.symbols().is_some() {
            return self.update_words(node, change, targets);
        }
        let parity = self.code.cells_of(targets.iter().copied());
        let (schedule, touched) = self.code.schedule_update(node, change, &parity, self.options)?;
        let (rows, given) = (self.code.node_cells(node).len(), change.shards());
        prove::update(self.code, &schedule, node, given, &touched)?;
        let changed =
            (0..given * rows).map(|cell| CellLocation { buffer: cell / rows, row: cell % rows });
        let outputs: Vec<CellLocation> = touched
            .iter()
            .filter_map(|&cell| self.code.cell(cell).place)
            .map(|place| {
                let number = targets.iter().position(|&target| target == place.node);
                CellLocation { buffer: given + number.unwrap_or(0), row: place.row }
            })
            .collect();
        let inputs = changed.chain(outputs.iter().copied()).collect();
        let nodes = std::iter::repeat_n(node, given).chain(targets.iter().copied());
        let strips: Vec<usize> = nodes.map(|node| self.code.node_cells(node).len()).collect();
        let program = Program::new(schedule, inputs, outputs, strips, self.layout.packet)?;
        Execution::of_program(program, self.target)
    }

    /// Plans a question whose work is split by stripes.
    fn compute_whole(&self, have: &CellSet, want: &CellSet) -> Result<Execution> {
        let mut proof = Proof::new(self.code);
        let solver = Solver::new(self.code, have, want, self.options);
        let plan = proof.proved(solver.plan()?)?;
        let ranks: Vec<usize> = plan.inputs().iter().map(|&cell| self.last_lane(cell)).collect();
        let program = self.bind(plan)?;
        // With parts in turn, an input may be read after other parts have written outputs.
        if want.iter().any(|cell| have.contains(cell)) {
            return Execution::of_program(program, self.target);
        }
        if let Some((pieces, kept)) = program.in_pieces(&ranks)? {
            return Execution::new(pieces, Turns::ByTiles { kept }, self.target);
        }
        let Some(parts) = self.parts_in_registers(want, Cost::of(program.schedule())) else {
            return Execution::of_program(program, self.target);
        };
        let plans = solver.plan_shares(&self.dealt(want, parts))?;
        let parts = plans.into_iter().map(|plan| self.bind(proof.proved(plan)?));
        Execution::new(parts.collect::<Result<_>>()?, Turns::ByTiles { kept: 0 }, self.target)
    }

    /// Returns the program that computes some of the wanted cells, over some columns of the
    /// packets.
    fn part(&self, have: &CellSet, want: &CellSet, columns: Range<usize>) -> Result<Program> {
        let plan = self.code.schedule_with(have, want, self.options)?;
        self.bind(Proof::new(self.code).proved(plan)?)?.over_columns(columns)
    }

    fn bind(&self, plan: Plan) -> Result<Program> {
        let locate = |cells: &[CellId]| -> Result<Vec<CellLocation>> {
            cells.iter().map(|&cell| self.layout.location(self.code, cell)).collect()
        };
        let (inputs, outputs) = (locate(plan.inputs())?, locate(plan.outputs())?);
        let rows = Arc::clone(&self.layout.rows);
        Program::new(plan.into_schedule(), inputs, outputs, rows, self.layout.packet)
    }

    /// Returns the last lane of data that a cell depends on. In a group of stripes it identifies
    /// the stripe.
    fn last_lane(&self, cell: CellId) -> usize {
        self.code.row(cell).last().map_or(0, |&data| data as usize / self.code.lane_rows())
    }

    /// Returns the number of parts into which a long schedule is divided to run faster; `None` if
    /// it is not divided. Each part computes as many whole nodes as the machine's registers hold.
    fn parts_in_registers(&self, want: &CellSet, cost: Cost) -> Option<usize> {
        let machine = self.target?.machine;
        let pays = machine.ternary && machine.registers >= 32 && cost.total > LONG_SCHEDULE;
        let held = pays.then_some(machine.registers - 8)?;
        let nodes = self.groups(want);
        let cells = nodes.iter().map(Vec::len).max()?;
        let parts = nodes.len().div_ceil(held / cells.min(held));
        let is_light = parts * self.layout.rows.len() <= MOST_POINTERS;
        (cells <= held && parts > 1 && is_light).then_some(parts)
    }

    /// Deals the wanted cells out in turn, into at most `parts` shares. The unit that is dealt out
    /// is a node, or the rows of the same number in all nodes.
    fn dealt(&self, want: &CellSet, parts: usize) -> Vec<CellSet> {
        let groups = self.groups(want);
        let parts = parts.min(groups.len()).max(1);
        let mut shares = vec![CellSet::new(self.code.cell_count()); parts];
        for (number, cells) in groups.into_iter().enumerate() {
            cells.into_iter().for_each(|cell| shares[number % parts].insert(cell));
        }
        shares
    }

    /// Returns the wanted cells of each node, or those of each row.
    fn groups(&self, want: &CellSet) -> Vec<Vec<CellId>> {
        let mut groups: BTreeMap<usize, Vec<CellId>> = BTreeMap::new();
        for cell in want.iter() {
            let place = self.code.cell(cell).place;
            let group = place.map_or(0, |place| match self.shares {
                WorkShares::Rows(_) => place.row,
                _ => place.node.index(),
            });
            groups.entry(group).or_default().push(cell);
        }
        groups.into_values().collect()
    }

    /// Plans a question about a code in the word layout. Its nodes have no rows; codecs refuse to
    /// split by rows.
    fn compute_words(&self, have: &CellSet, want: &CellSet) -> Result<Execution> {
        let (have, want) = (self.whole_nodes(have)?, self.whole_nodes(want)?);
        let combination = self.code.combination(&have, &want)?;
        let buffers =
            |nodes: &[NodeId]| -> Vec<usize> { nodes.iter().map(|node| node.index()).collect() };
        let words = Words {
            rows: CoefficientRows {
                field: combination.field(),
                inputs: combination.inputs().len(),
                coefficients: combination.rows(),
            },
            inputs: buffers(combination.inputs()),
            outputs: buffers(combination.outputs()),
            buffers: Arc::clone(&self.layout.rows),
            in_place: false,
        };
        let (parts, turns) = match self.shares {
            WorkShares::Nodes(shares) if shares > 1 && words.outputs.len() > 1 => {
                (words.shares(shares), Turns::SideBySide)
            }
            WorkShares::Columns { shares, packet } if column_ranges(packet, shares).len() > 1 => {
                let packet = packet.next_multiple_of(LINE);
                (words.parts(self.machine()), Turns::ByColumns { packet, shares })
            }
            _ => {
                if let Some(schedule) = self.transform(&words)? {
                    return Execution::of_program(words.program_of(schedule)?, self.target);
                }
                (words.parts(self.machine()), Turns::ByTiles { kept: 0 })
            }
        };
        self.execute_words(&parts, turns)
    }

    /// Returns the schedule of a transform that computes the same as `words`, if `words` encode and
    /// the transform costs less.
    fn transform(&self, words: &Words) -> Result<Option<Schedule>> {
        let Some(symbols) = self.code.symbols() else { return Ok(None) };
        let data = symbols.data_nodes();
        let encodes = words.inputs.iter().copied().eq(0..data)
            && words.outputs.iter().all(|&output| output >= data);
        let Some(evaluation) = symbols.evaluation().filter(|_| encodes) else { return Ok(None) };
        let rows: Vec<usize> = words.outputs.iter().map(|output| output - data).collect();
        let adds_three = self.machine().ternary;
        let Some(schedule) = network::encoding(symbols.field(), evaluation, &rows, adds_three)?
        else {
            return Ok(None);
        };
        let cost = arrange::cost(&schedule, self.machine())?;
        Ok(words.costs_more(cost, self.machine())?.then_some(schedule))
    }

    fn update_words(&self, node: NodeId, change: Change, targets: &[NodeId]) -> Result<Execution> {
        let combination = self.code.combination_update(node, change, targets)?;
        let given = change.shards();
        let buffer = |output: &NodeId| given + targets.iter().take_while(|&t| t != output).count();
        let words = Words {
            rows: CoefficientRows {
                field: combination.field(),
                inputs: given,
                coefficients: combination.rows(),
            },
            inputs: (0..given).collect(),
            outputs: combination.outputs().iter().map(buffer).collect(),
            buffers: std::iter::repeat_n(1, given + targets.len()).collect(),
            in_place: true,
        };
        self.execute_words(&words.parts(self.machine()), Turns::ByTiles { kept: 0 })
    }

    fn execute_words(&self, parts: &[Words], turns: Turns) -> Result<Execution> {
        let programs: Vec<Program> =
            parts.iter().map(|words| words.program(self.machine())).collect::<Result<_>>()?;
        let turns = match turns {
            Turns::ByTiles { .. } if programs.len() == 1 => Turns::SideBySide,
            turns => turns,
        };
        Execution::new(programs, turns, self.target)
    }

    /// Returns the machine for which the order of operations is planned; any machine will do if
    /// nothing is compiled.
    fn machine(&self) -> Machine {
        self.target.map_or(Machine::AVX2, |target| target.machine)
    }

    /// Returns the nodes that consist of these cells.
    fn whole_nodes(&self, cells: &CellSet) -> Result<Vec<NodeId>> {
        let mut nodes = Vec::new();
        for node in self.code.nodes() {
            let all = self.code.node_cells(node);
            match all.iter().filter(|&&cell| cells.contains(cell)).count() {
                0 => {}
                count if count == all.len() => nodes.push(node),
                count => {
                    return Err(Error::parameters(format!(
                        "{}: words are not divided, but the call names {count} of the {} cells of \
                         node {}",
                        self.code.spec(),
                        all.len(),
                        node.index()
                    )));
                }
            }
        }
        Ok(nodes)
    }
}

/// Returns the columns of each share of a packet. Shares are whole cache lines, divided as evenly
/// as possible, so that no two threads write the same line.
pub(crate) fn column_ranges(packet: usize, shares: usize) -> Vec<Range<usize>> {
    let lines = packet.div_ceil(LINE);
    let pieces = shares.min(lines);
    let bound = |piece: usize| (lines * piece / pieces * LINE).min(packet);
    (0..pieces).map(|piece| bound(piece)..bound(piece + 1)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::define::cells::Role;
    use crate::plan::layout::BufferLayout;
    use crate::plan::machine::Multiplier;

    /// Returns the number of nodes that each thread computes, divided by nodes.
    fn nodes_by_thread(spec: &str, threads: usize) -> Vec<usize> {
        let code = Code::new(&spec.parse().unwrap()).unwrap();
        let layout = Layout::new(&code, BufferLayout::Node, 64);
        let shares = WorkShares::Nodes(threads);
        let options = PlanOptions::default();
        let planner = Planner { code: &code, layout: &layout, target: None, shares, options };
        let (data, parity) = (code.stored(Role::Data), code.stored(Role::Parity));
        let parts = planner.compute(&data, &parity).unwrap().parts;
        let written = |part: &ProgramPart| {
            let nodes = part.program.footprint().written.into_iter().map(|cell| cell.buffer);
            nodes.collect::<BTreeSet<usize>>().len()
        };
        parts.iter().map(written).collect()
    }

    /// The poster: if the number of nodes is not a multiple of the number of threads, some threads
    /// compute one node more. With three nodes and two threads, one thread computes two nodes and
    /// the other one node. So two threads take two thirds of the time of one.
    #[test]
    fn some_threads_compute_a_node_more() {
        let mut even = 0;
        for m in 2..=8_usize {
            for threads in 2..=4 {
                for (family, more) in [("cauchy", "w=5"), ("reed-solomon", "w=8")] {
                    let parts = nodes_by_thread(&format!("{family}:k=10,m={m},{more}"), threads);
                    let most = m.div_ceil(threads);
                    assert_eq!(parts.iter().sum::<usize>(), m, "{family} {m} {threads}");
                    assert_eq!(parts.iter().max(), Some(&most), "{family} {m} {threads}");
                    assert!(parts.len() <= threads);
                    even += usize::from(parts == vec![most; threads]);
                }
            }
        }
        assert_eq!(even, 2 * (4 + 2 + 2), "multiples of 2, 3 and 4");
        assert_eq!(nodes_by_thread("cauchy:k=10,m=3,w=5", 2), [2, 1]);
        assert_eq!(nodes_by_thread("cauchy:k=10,m=1,w=5", 2), [1], "threads share its stripes");
        assert_eq!(nodes_by_thread("reed-solomon:k=10,m=3", 2), [2, 1]);
    }

    /// The number of products in the planned encoding of a code, on a machine with GFNI.
    fn products(code: &Code) -> usize {
        let layout = Layout::new(code, BufferLayout::Node, 64);
        let multiplier = Multiplier::Affine;
        let machine = Machine { registers: 32, ternary: true, multiplier, ..Machine::AVX2 };
        let planner = Planner {
            code,
            layout: &layout,
            target: Some(CompileTarget { machine, vector: 64 }),
            shares: WorkShares::Stripes,
            options: PlanOptions::default(),
        };
        let (data, parity) = (code.stored(Role::Data), code.stored(Role::Parity));
        let parts = planner.compute(&data, &parity).unwrap().parts;
        let ops = parts.iter().flat_map(|part| part.program.schedule().ops());
        ops.filter(|op| op.factor != 1).count()
    }

    /// A code whose transform costs less than the products of its coefficients is planned as one.
    #[test]
    fn the_cheaper_way_is_planned() {
        let planned = |spec: &str| products(&Code::new(&spec.parse().unwrap()).unwrap());
        assert_eq!(planned("backblaze:k=32,m=32"), 129);
        assert_eq!(planned("leopard8:k=32,m=32"), 129);
        assert_eq!(planned("isal-cauchy:k=32,m=32"), 768, "its points are not consecutive");
        let row = Code::new(&"backblaze:k=200,m=1".parse().unwrap()).unwrap();
        let factors = row.symbols().unwrap().parity()[0].iter();
        assert_eq!(products(&row), factors.filter(|&&factor| factor > 1).count());
    }
}
