//! `paritas schedule`: shows what a schedule does and costs.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Instant;

use paritas::code::{CauchyMatrix, CellId, CellSet, Reads};
use paritas::erasure::combinations;
use paritas::research::search::{FoundMatrix, Problem, SearchLimit, SearchMethod};
use paritas::research::{
    Account, Call, Cost, ExplainedPart, Explanation, Instructions, Machine, Plan, PlanOptions,
};
use paritas::{Code, Codec, CodecOptions, DEFAULT_PACKET, Kernel, KernelChoice, LaneCodec, NodeId};
use paritas_report::codes::{
    CutWord, InstructionsFields, RunPartEntry, RunsEntry, ScheduleLine, SearchEntry,
};

use crate::args::choices::{PassName, named, word};
use crate::args::codes::{CostName, Schedule, Switch};
use crate::args::search::SearchName;
use crate::commands::packet_rule::Packets;
use crate::commands::{Outcome, operations};
use crate::exit::{Exit, Failure};
use crate::output::{Output, bytes, counted};

/// Plans a schedule, and reports.
pub fn run(args: &Schedule, output: &Output) -> Outcome {
    expect_together(args)?;
    let (kernel, machine) = compiled(args)?;
    let asked = (args.asm || args.kernel.is_some()).then_some(kernel);
    let options = PlanOptions::default()
        .pass(args.pass().into())
        .order(args.order().order(machine))
        .objective(args.cost().objective(machine, args.weight()))
        .rounds(args.rounds.map(|rounds| rounds as usize))
        .reads(if args.fewest_reads { Reads::Fewest } else { Reads::Any })
        .bytes(args.bytes);
    let (code, search) = code(args, options, output)?;
    expect_effect(&code, of_other_codes(args))?;
    let stage = stage(&code, args)?;
    let erased = erased(&code, args, stage, options, output)?;
    let (have, want) = question(&code, &erased, stage)?;
    let start = Instant::now();
    let plan = code.schedule_with(&have, &want, options)?;
    // The time is left out of a search's report, so that two reports can be compared byte for byte.
    let seconds = search.is_none().then(|| start.elapsed().as_secs_f64());
    let runs = runs(args, &code, options, (&have, &want), asked)?;
    let executed = executed(&plan, &code, machine)?;
    let report =
        Report { args, stage, erased, code, plan, search, seconds, runs, kernel, executed };
    output.result(report.line()?, || report.text());
    Ok(Exit::Done)
}

/// Refuses options that need others, or that do not go with others.
fn expect_together(args: &Schedule) -> Result<(), Failure> {
    if args.weight.is_some() && args.cost() != CostName::Weighted {
        return Err(Failure::arguments("--weight needs --cost weighted"));
    }
    if args.rounds.is_some() && args.pass() != PassName::Slp {
        return Err(Failure::arguments("--rounds needs --pass slp"));
    }
    let minimises = args.pass() == PassName::Slp || args.search.name != SearchName::None;
    if args.cost.is_some() && !minimises && args.erase.is_empty() && !args.worst_loss {
        return Err(Failure::arguments(
            "--cost needs --pass slp, --search, --erase or --worst-loss: other methods look at no cost",
        ));
    }
    if args.search.name == SearchName::Local && args.normalise() == Some(Switch::Off) {
        return Err(Failure::arguments(
            "--search local scales the matrix, so --normalise off and --strategy 0,j do not go with it",
        ));
    }
    if args.fewest_reads && args.erase.is_empty() && !args.worst_loss {
        return Err(Failure::arguments("--fewest-reads needs --erase or --worst-loss"));
    }
    Ok(())
}

/// Returns the options that mean nothing for an LT code: its graph is solved in one way.
fn of_other_codes(args: &Schedule) -> impl Iterator<Item = (&'static str, bool)> {
    [
        ("--pass", args.pass.is_some()),
        ("--strategy", args.strategy.is_some()),
        ("--order", args.order.is_some()),
        ("--cost", args.cost.is_some()),
        ("--rounds", args.rounds.is_some()),
        ("--fewest-reads", args.fewest_reads),
        ("--bytes", args.bytes.is_some()),
        ("--set", args.set.is_some()),
        ("--align", args.align.is_some()),
        ("--kernel", args.kernel.is_some()),
        ("--asm", args.asm),
    ]
    .into_iter()
}

/// Refuses options for an LT code. Each has its flag, and whether it is given.
pub fn expect_effect(
    code: &Code,
    given: impl IntoIterator<Item = (&'static str, bool)>,
) -> Result<(), Failure> {
    match given.into_iter().find(|(_, is_given)| *is_given && code.graph().is_some()) {
        Some((flag, _)) => Err(Failure::arguments(format!(
            "{flag} has no effect on {}; schedules of LT codes run over whole blocks",
            code.spec()
        ))),
        None => Ok(()),
    }
}

/// Returns the compiled kernel for fused schedules, whose instructions are counted and listed.
fn compiled(args: &Schedule) -> Result<(Kernel, Machine), Failure> {
    let kernel = match args.kernel {
        Some(choice) => choice.resolve(DEFAULT_PACKET),
        None if args.asm => "jit".parse::<KernelChoice>()?.resolve(DEFAULT_PACKET),
        None => Kernel::JitAvx2,
    };
    let machine = kernel.machine().ok_or_else(|| {
        Failure::arguments(format!("--kernel must be a compiled kernel (jit-…); got {kernel}"))
    })?;
    Ok((kernel, machine))
}

struct Report<'a> {
    args: &'a Schedule,
    stage: u8,
    erased: Vec<usize>,
    code: Code,
    plan: Plan,
    search: Option<SearchEntry>,
    seconds: Option<f64>,
    runs: Option<Runs>,
    kernel: Kernel,
    executed: Option<Instructions>,
}

/// The programs that a codec runs, and the call in which it runs them.
struct Runs {
    call: Call,
    explanation: Explanation,
}

impl Report<'_> {
    /// Returns the cost of an XOR in copies that was used.
    fn weight(&self) -> Option<f64> {
        let weighted = self.args.cost() == CostName::Weighted;
        weighted.then(|| f64::from(self.args.weight()) / 1000.0)
    }

    fn line(&self) -> Result<ScheduleLine, Failure> {
        let Self { args, code, plan, .. } = self;
        let account = plan.account();
        let cost = Cost::of(plan.schedule());
        let cuts = account.cuts.iter().map(|cut| word::<CutWord>(cut.name()));
        let asm = self.runs.as_ref().filter(|_| args.asm);
        Ok(ScheduleLine {
            code: code.spec().to_string(),
            erased: self.erased.clone(),
            stage: self.stage,
            pass: named(args.pass()),
            order: named(args.order()),
            cost: named(args.cost()),
            weight: self.weight(),
            fewest_reads: args.fewest_reads,
            kernel: self.kernel.name(),
            ones: code.ones(),
            xors: cost.xors,
            copies: cost.copies,
            total: cost.total,
            ops: cost.ops,
            temps: cost.temps,
            ternary: cost.ternary,
            instructions: instructions(self.executed.as_ref()),
            reads: plan.reads(code),
            plan_seconds: self.seconds,
            plan_budget: account.budget,
            plan_steps: account.spent,
            plan_cut: cuts.collect::<Result<_, _>>()?,
            plan_known: account.is_known,
            search: self.search.clone(),
            packet_rule: Packets::new(code, plan).entry(),
            inputs: args.text.then(|| operations::places(code, plan.inputs())),
            outputs: args.text.then(|| operations::places(code, plan.outputs())),
            text: args.text.then(|| plan.schedule().to_string()),
            asm: asm.map(Runs::listing),
            runs: self.runs.as_ref().map(|runs| runs.entry(args)),
        })
    }

    fn question(&self) -> String {
        match (&self.erased[..], self.stage) {
            ([], 1) => "encode".to_owned(),
            ([], stage) => format!("promote to stage {stage}"),
            (lost, stage) if stage < self.code.stages() => {
                format!("reconstruct {lost:?} after stage {stage}")
            }
            (lost, _) => format!("reconstruct {lost:?}"),
        }
    }

    fn text(&self) -> String {
        let Self { args, code, plan, kernel, .. } = self;
        let Cost { xors, copies, total, ops, temps, ternary, .. } = Cost::of(plan.schedule());
        let executed =
            self.executed.as_ref().map(|Instructions { count, loads, stores, .. }| {
                format!("; {kernel}: {} a vector", machine_counts(*count, *loads, *stores))
            });
        let question = self.question();
        let reads: Vec<String> = plan.reads(code).iter().map(usize::to_string).collect();
        let mut text = format!(
            "{}: {question}\n  {}; {} + {} = {total} in {} with {}\n  {}{}\n  packets read of each node: {}\n",
            code.spec(),
            counted(code.ones(), "one"),
            counted(xors, "XOR"),
            counted(copies, "copy"),
            counted(ops, "operation"),
            counted(temps, "temporary"),
            counted(ternary, "three-input XOR"),
            executed.unwrap_or_default(),
            reads.join(" ")
        );
        text.push_str(&Packets::new(code, plan).text());
        text.push_str(&planning_text(plan.account()));
        if let Some(weight) = self.weight() {
            text.push_str(&format!("  an XOR counts as {weight} copies\n"));
        }
        if args.text && self.runs.is_none() {
            text.push_str(&format!("\n{}", operations::text(code, plan)));
        }
        self.runs.iter().for_each(|runs| text.push_str(&runs.text(args)));
        text
    }
}

/// Describes what a processor executes.
fn machine_counts(instructions: usize, loads: usize, stores: usize) -> String {
    let [instructions, loads, stores] =
        [(instructions, "instruction"), (loads, "load"), (stores, "store")]
            .map(|(count, thing)| counted(count, thing));
    format!("{instructions}, {loads} and {stores}")
}

fn instructions(made: Option<&Instructions>) -> InstructionsFields {
    InstructionsFields {
        instructions: made.map(|made| made.count),
        loads: made.map(|made| made.loads),
        stores: made.map(|made| made.stores),
    }
}

/// Describes how much of its budget planning took, and what it left out.
fn planning_text(account: &Account) -> String {
    let Account { budget, spent, cuts, is_known, .. } = account;
    if *is_known {
        return "  from the list of schedules that were refined beforehand\n".to_owned();
    }
    let cuts: Vec<&str> = cuts.iter().map(|cut| cut.name()).collect();
    let cuts = if cuts.is_empty() { "nothing".to_owned() } else { cuts.join(", ") };
    format!("  planned in {spent} steps with a budget of {budget}; cut: {cuts}\n")
}

/// Returns the code to plan: that of the spec, with its matrix scaled or searched for if the
/// arguments ask for it. Also returns the entry for the search.
fn code(
    args: &Schedule,
    options: PlanOptions,
    output: &Output,
) -> Result<(Code, Option<SearchEntry>), Failure> {
    let code = Code::new(&args.spec)?;
    let method = args.search.method()?;
    if method.is_none() && args.normalise().is_none() {
        return Ok((code, None));
    }
    let matrix = code.cauchy_matrix().ok_or_else(|| {
        let spec = code.spec();
        Failure::arguments(format!(
            "--normalise, --strategy and --search need a code of the family cauchy; got {spec}"
        ))
    })?;
    let Some(method) = method else {
        let plain = matrix.plain();
        let scaled = if args.normalise() == Some(Switch::On) { plain.normalised() } else { plain };
        return Ok((Code::cauchy(&scaled)?, None));
    };
    let (found, report) = search(args, method, &matrix, options, output)?;
    Ok((Code::cauchy(&found.matrix)?, Some(report)))
}

fn search(
    args: &Schedule,
    method: SearchMethod,
    matrix: &CauchyMatrix,
    options: PlanOptions,
    output: &Output,
) -> Result<(FoundMatrix, SearchEntry), Failure> {
    let problem = Problem {
        k: matrix.k(),
        m: matrix.m(),
        w: matrix.field().width(),
        normalise: args.normalise() != Some(Switch::Off),
        options,
    };
    let limit = args.search.limit();
    let bar = output.search_bar(match limit {
        SearchLimit::Evaluations(evaluations) => Some(evaluations as u64),
        _ => None,
    });
    let seed = args.search.seed();
    let found = paritas::research::search::search(problem, method, seed, limit, &|done| {
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    let report = SearchEntry {
        method: named(args.search.name),
        seed,
        evaluations: found.evaluations,
        children: found.children.born,
        better_children: found.children.better,
    };
    Ok((found, report))
}

/// Returns what a codec with these options runs over whole shards, if the arguments ask for it.
/// `kernel` is the one that they name or need.
fn runs(
    args: &Schedule,
    code: &Code,
    plan: PlanOptions,
    (have, want): (&CellSet, &CellSet),
    kernel: Option<Kernel>,
) -> Result<Option<Runs>, Failure> {
    if !args.asm && args.set.is_none() && args.align.is_none() {
        return Ok(None);
    }
    let call = Call {
        bytes: args.set.unwrap_or(CACHE_SET),
        align: args.align.map_or(DEFAULT_ALIGN, NonZeroUsize::get),
        kernel,
    };
    let options = CodecOptions::default().plan(plan);
    let explanation = match code.graph() {
        None => {
            let codec = Codec::with_options(code.clone(), options)?;
            expect_whole_strips(&codec, &call)?;
            codec.explain(have, want, &call)?
        }
        // Every block is a buffer of its own.
        Some(_) => LaneCodec::new(code.clone(), options)?.explain(have, want, &call)?,
    };
    if args.asm && explanation.parts.iter().any(|part| part.listing.is_none()) {
        let kernel = explanation.kernel;
        return Err(Failure::arguments(format!(
            "--asm: the {kernel} kernel compiles no machine code for this schedule"
        )));
    }
    Ok(Some(Runs { call, explanation }))
}

/// Refuses a call that is too small for a strip of every shard.
fn expect_whole_strips(codec: &Codec, call: &Call) -> Result<(), Failure> {
    let code = codec.code();
    let least = codec.strip().saturating_mul(code.node_count());
    if call.bytes >= least {
        return Ok(());
    }
    Err(Failure::arguments(format!(
        "--set {}: shards of one strip of {} have {} together",
        call.bytes,
        code.spec(),
        bytes(least as u64)
    )))
}

impl Runs {
    /// Returns the machine code of all parts.
    fn listing(&self) -> String {
        let listings = self.explanation.parts.iter().filter_map(|part| part.listing.as_deref());
        listings.collect::<Vec<_>>().join("\n")
    }

    fn entry(&self, args: &Schedule) -> RunsEntry {
        let Self { call, explanation } = self;
        let pairs = |pairs: &[(usize, usize)]| pairs.iter().map(|&(a, b)| [a, b]).collect();
        let part = |part: &ExplainedPart| RunPartEntry {
            inputs: pairs(&part.inputs),
            outputs: pairs(&part.outputs),
            stages_inputs: part.stages_inputs,
            prefetches: part.prefetches,
            instructions: instructions(part.instructions.as_ref()),
            text: args.text.then(|| part.schedule.to_string()),
            asm: part.listing.clone().filter(|_| args.asm),
        };
        RunsEntry {
            kernel: explanation.kernel,
            set_bytes: call.bytes,
            align: call.align,
            nontemporal: explanation.nontemporal,
            in_turn: explanation.in_turn,
            parts: explanation.parts.iter().map(part).collect(),
        }
    }

    fn text(&self, args: &Schedule) -> String {
        let Self { call, explanation } = self;
        let Explanation { kernel, parts, in_turn, nontemporal, .. } = explanation;
        let stores = if *nontemporal { "non-temporal" } else { "cached" };
        let mut text = format!(
            "  a call over {} of shards at multiples of {} runs on {kernel} with {stores} stores\n",
            counted(call.bytes, "byte"),
            call.align
        );
        for (number, part) in parts.iter().enumerate() {
            let turn = match (parts.len(), in_turn) {
                (1, _) => String::new(),
                (count, true) => format!("part {} of {count}, in turn by tiles: ", number + 1),
                (count, false) => format!("part {} of {count}, side by side: ", number + 1),
            };
            let Cost { xors, ops, temps, .. } = Cost::of(&part.schedule);
            let counts = [(ops, "operation"), (xors, "XOR"), (temps, "temporary")];
            let counts = counts.map(|(count, thing)| counted(count, thing)).join(", ");
            text.push_str(&format!("  {turn}{counts}"));
            if let Some(Instructions { count, loads, stores, .. }) = &part.instructions {
                text.push_str(&format!("; {}", machine_counts(*count, *loads, *stores)));
            }
            let staged = if part.stages_inputs { "; inputs are copied first" } else { "" };
            let prefetched = if part.prefetches { "; inputs are prefetched" } else { "" };
            text.push_str(&format!("{staged}{prefetched}\n"));
            if args.text {
                text.push_str(&format!("\n{}", part.schedule));
            }
            if let Some(listing) = part.listing.as_ref().filter(|_| args.asm) {
                text.push_str(&format!("\n{listing}"));
            }
        }
        text
    }
}

/// Default number of bytes of all shards together, as for `--set cache`.
const CACHE_SET: usize = 512 << 10;

/// Default alignment of shards in bytes: a cache line.
const DEFAULT_ALIGN: usize = 64;

/// Returns what the compiled kernel executes. Returns `None` for schedules that are not compiled:
/// those that add to cells, and those of LT codes.
fn executed(
    plan: &Plan,
    code: &Code,
    machine: Machine,
) -> Result<Option<Instructions>, paritas::Error> {
    let schedule = plan.schedule();
    if !schedule.is_single_assignment() || code.graph().is_some() {
        return Ok(None);
    }
    plan.instructions(code, machine).map(Some)
}

/// Returns the stage that the arguments ask about.
fn stage(code: &Code, args: &Schedule) -> Result<u8, Failure> {
    let last = code.stages();
    let encodes = args.erase.is_empty() && !args.worst_loss;
    let stage = args.stage.unwrap_or(if encodes { 1 } else { last });
    if (1..=last).contains(&stage) {
        return Ok(stage);
    }
    let (spec, stages) = (code.spec(), stage_range(last));
    Err(Failure::arguments(format!("--stage must be {stages} for {spec}; got {stage}")))
}

/// Describes the stages that a code has.
pub fn stage_range(last: u8) -> String {
    if last == 1 { "1".to_owned() } else { format!("1 to {last}") }
}

/// Largest number of losses that `--worst-loss` plans: about a minute for codes of 16 nodes.
const MOST_LOSSES: usize = 20_000;

/// Returns the nodes to reconstruct: those of the arguments, or the loss of data nodes whose
/// schedule is the longest.
fn erased(
    code: &Code,
    args: &Schedule,
    stage: u8,
    options: PlanOptions,
    output: &Output,
) -> Result<Vec<usize>, Failure> {
    if !args.worst_loss {
        let named: BTreeSet<usize> = args.erase.iter().copied().collect();
        return Ok(named.into_iter().collect());
    }
    let spec = code.spec();
    if code.graph().is_some() {
        return Err(Failure::arguments(format!("--worst-loss is not for LT codes; got {spec}")));
    }
    let data: Vec<usize> =
        code.nodes().filter(|&node| code.holds_data(node)).map(NodeId::index).collect();
    let lost = code.tolerance_at(stage).min(data.len());
    let losses = combinations(data.len(), lost).take(MOST_LOSSES + 1);
    let losses: Vec<Vec<usize>> =
        losses.map(|places| places.iter().map(|&place| data[place]).collect()).collect();
    if losses.len() > MOST_LOSSES {
        return Err(Failure::arguments(format!(
            "--worst-loss plans every loss of {lost} data nodes, at most {MOST_LOSSES} of them; \
             {spec} has more"
        )));
    }
    let mut worst = (0, Vec::new());
    let bar = output.search_bar(Some(losses.len() as u64));
    for loss in losses {
        bar.inc(1);
        let (have, want) = question(code, &loss, stage)?;
        let total = Cost::of(code.schedule_with(&have, &want, options)?.schedule()).total;
        if total > worst.0 {
            worst = (total, loss);
        }
    }
    bar.finish_and_clear();
    Ok(worst.1)
}

/// Returns the cells at hand and the wanted cells. For encoding they are all data and the parity of
/// stage 1, for a later stage what it reads and computes, and for reconstruction the remaining and
/// the erased cells.
fn question(code: &Code, erased: &[usize], stage: u8) -> Result<(CellSet, CellSet), Failure> {
    if erased.is_empty() {
        // Data that is not stored, as in an LT code, is at hand, too.
        let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
        let first = || (data, code.made_in(1));
        return Ok(code.promotion(stage).map_or_else(first, |later| (later.reads, later.makes)));
    }
    let nodes = code.nodes_at(stage).len();
    if let Some(node) = erased.iter().find(|&&node| node >= nodes) {
        let after =
            if stage < code.stages() { format!(" after stage {stage}") } else { String::new() };
        return Err(Failure::arguments(format!(
            "--erase must name nodes 0 to {} of {}{after}; got {node}",
            nodes - 1,
            code.spec()
        )));
    }
    let standing = code.standing(stage);
    let is_erased = |cell: &CellId| {
        let place = code.cell(*cell).place;
        place.is_some_and(|place| erased.contains(&place.node.index()))
    };
    let (want, have): (Vec<CellId>, Vec<CellId>) = standing.iter().partition(is_erased);
    let set = |cells: Vec<CellId>| CellSet::from_cells(code.cell_count(), cells);
    Ok((set(have), set(want)))
}
