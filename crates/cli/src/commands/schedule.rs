//! `paritas schedule`: what a schedule does and costs.

use std::time::Instant;

use clap::ValueEnum;
use paritas::plan::registers::{Allocation, Machine};
use paritas::search::{Crossover, Found, Limit, Method, Problem};
use paritas::{
    CauchyMatrix, CellSet, Code, Codec, CodecOptions, Cost, NodeId, Plan, PlanOptions, Reads, Role,
};
use serde_json::{Value, json};

use crate::args::{Schedule, SearchName, Switch};
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// How many schedules a search makes where nobody says.
const DEFAULT_EVALUATIONS: usize = 2000;

/// Plans and reports.
pub fn run(args: &Schedule, output: &Output) -> Outcome {
    let options = PlanOptions {
        pass: args.pass().into(),
        order: args.order.into(),
        objective: args.objective(),
        rounds: args.rounds,
        reads: if args.fewest_reads { Reads::Fewest } else { Reads::Any },
    };
    let (code, search) = code(args, options, output)?;
    let (have, want) = question(&code, &args.erase)?;
    let start = Instant::now();
    let plan = code.schedule_with(&have, &want, options)?;
    // Without what differs from run to run, a search can be compared byte for byte.
    let seconds = search.is_none().then(|| start.elapsed().as_secs_f64());
    if args.asm && code.graph().is_some() {
        let spec = code.spec();
        return Err(Failure::arguments(format!("--asm: the schedules of {spec} are not compiled")));
    }
    let asm =
        if args.asm { Some(listing(args, code.clone(), options, (&have, &want))?) } else { None };
    let report = Report { args, code, plan, search, seconds, asm };
    let moves = moves(&report.plan, &report.code)?;
    output.result(report.json(moves), || report.text(moves));
    Ok(Exit::Done)
}

struct Report<'a> {
    args: &'a Schedule,
    code: Code,
    plan: Plan,
    search: Option<Value>,
    seconds: Option<f64>,
    asm: Option<String>,
}

impl Report<'_> {
    fn json(&self, moves: Option<(usize, usize)>) -> Value {
        let Self { args, code, plan, .. } = self;
        let cost = Cost::of(plan.schedule());
        let mut value = json!({
            "type": "schedule", "code": code.spec().to_string(), "erased": args.erase,
            "pass": name(args.pass()), "order": name(args.order), "cost": name(args.cost),
            "fewest_reads": args.fewest_reads,
            "ones": code.ones(), "xors": cost.xors, "copies": cost.copies, "total": cost.total,
            "ops": cost.ops, "temps": cost.temps, "ternary": cost.ternary,
            "loads": moves.map(|(loads, _)| loads), "stores": moves.map(|(_, stores)| stores),
            "reads": plan.reads(code), "plan_seconds": self.seconds, "search": self.search,
        });
        if args.text {
            value["text"] = json!(plan.schedule().to_string());
        }
        if let Some(asm) = &self.asm {
            value["asm"] = json!(asm);
        }
        value
    }

    fn text(&self, moves: Option<(usize, usize)>) -> String {
        let Self { args, code, plan, .. } = self;
        let Cost { xors, copies, total, ops, temps, ternary } = Cost::of(plan.schedule());
        let moved =
            moves.map(|(loads, stores)| format!("; {loads} loads and {stores} stores a vector"));
        let question = match args.erase[..] {
            [] => "encode".to_owned(),
            _ => format!("reconstruct {:?}", args.erase),
        };
        let reads: Vec<String> = plan.reads(code).iter().map(usize::to_string).collect();
        let mut text = format!(
            "{}: {question}\n  {} ones; {xors} XORs + {copies} copies = {total} in {ops} operations \
             with {temps} temporaries\n  {ternary} three-input XORs{}\n  packets read of each node: {}\n",
            code.spec(),
            code.ones(),
            moved.unwrap_or_default(),
            reads.join(" ")
        );
        if args.text {
            text.push_str(&format!("\n{}", plan.schedule()));
        }
        self.asm.iter().for_each(|asm| text.push_str(&format!("\n{asm}")));
        text
    }
}

/// The code to plan: that of the spec, with its matrix scaled anew or searched where that is asked.
/// With the report of the search.
fn code(
    args: &Schedule,
    options: PlanOptions,
    output: &Output,
) -> Result<(Code, Option<Value>), Failure> {
    let code = Code::new(&args.spec)?;
    if args.search == SearchName::None && args.normalise().is_none() {
        return Ok((code, None));
    }
    let matrix = code.cauchy_matrix().ok_or_else(|| {
        let spec = code.spec();
        Failure::arguments(format!("{spec}: only Cauchy matrices are scaled and searched"))
    })?;
    if args.search == SearchName::None {
        let plain = matrix.plain();
        let scaled = if args.normalise() == Some(Switch::On) { plain.normalised() } else { plain };
        return Ok((Code::cauchy(&scaled)?, None));
    }
    let (found, report) = search(args, &matrix, options, output)?;
    Ok((Code::cauchy(&found.matrix)?, Some(report)))
}

fn search(
    args: &Schedule,
    matrix: &CauchyMatrix,
    options: PlanOptions,
    output: &Output,
) -> Result<(Found, Value), Failure> {
    let problem = Problem {
        k: matrix.k(),
        m: matrix.m(),
        w: matrix.field().width(),
        normalise: args.normalise() != Some(Switch::Off),
        options,
    };
    let method = match args.search {
        SearchName::None | SearchName::Local => Method::Local,
        SearchName::Sa => Method::Annealing,
        SearchName::Ga => Method::Genetic(Crossover::CommonFirst),
        SearchName::GaRandom => Method::Genetic(Crossover::Random),
    };
    let evaluations = args.evaluations.unwrap_or(DEFAULT_EVALUATIONS);
    let limit = args.budget.map_or(Limit::Evaluations(evaluations), Limit::Time);
    let bar = output.search_bar(args.budget.is_none().then_some(evaluations as u64));
    let found = paritas::search::search(problem, method, args.seed, limit, &|done| {
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    let report =
        json!({"method": name(args.search), "seed": args.seed, "evaluations": found.evaluations});
    Ok((found, report))
}

/// The machine code for the question, over whole nodes with packets of the default size.
fn listing(
    args: &Schedule,
    code: Code,
    plan: PlanOptions,
    (have, want): (&CellSet, &CellSet),
) -> Result<String, Failure> {
    let codec = Codec::new(code, CodecOptions { plan, ..Default::default() })?;
    let kernel = args.kernel.resolve(codec.packet());
    codec.listing(kernel, have, want)?.ok_or_else(|| {
        Failure::arguments(format!("--asm: the {kernel} kernel compiles no machine code for this"))
    })
}

/// The vectors that the compiled AVX2 kernel loads and stores; schedules that add to cells are not
/// compiled, nor those of LT codes.
fn moves(plan: &Plan, code: &Code) -> Result<Option<(usize, usize)>, paritas::Error> {
    let schedule = plan.schedule();
    if !schedule.is_single_assignment() || code.graph().is_some() {
        return Ok(None);
    }
    let allocation = Allocation::best(schedule, &plan.streams(code), Machine::AVX2)?;
    Ok(Some((allocation.loads, allocation.stores)))
}

/// The cells at hand and wanted: all data and all parity, or what is left and what is erased.
fn question(code: &Code, erased: &[usize]) -> Result<(CellSet, CellSet), Failure> {
    if erased.is_empty() {
        // Also data that is stored nowhere, as an LT code's, is at hand.
        let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
        return Ok((data, code.stored(Role::Parity)));
    }
    let nodes = code.node_count();
    if let Some(node) = erased.iter().find(|&&node| node >= nodes) {
        return Err(Failure::arguments(format!(
            "--erase {node}: {} has nodes 0 to {}",
            code.spec(),
            nodes - 1
        )));
    }
    let erased: Vec<NodeId> = erased.iter().copied().map(NodeId::new).collect();
    let have = code.cells_of(code.nodes().filter(|node| !erased.contains(node)));
    Ok((have, code.cells_of(erased)))
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
