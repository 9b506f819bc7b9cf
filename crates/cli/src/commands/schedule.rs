//! `paritas schedule`: what a schedule does and costs.

use std::time::Instant;

use clap::ValueEnum;
use paritas::plan::registers::{Allocation, Machine};
use paritas::{CellSet, Code, Codec, CodecOptions, Cost, NodeId, Plan, PlanOptions, Reads, Role};
use serde_json::json;

use crate::args::Schedule;
use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Plans and reports.
pub fn run(args: &Schedule, output: &Output) -> Outcome {
    let code = Code::new(&args.spec)?;
    let (have, want) = question(&code, &args.erase)?;
    let reads = if args.fewest_reads { Reads::Fewest } else { Reads::Any };
    let options = PlanOptions { pass: args.pass.into(), order: args.order.into(), reads };
    let start = Instant::now();
    let plan = code.schedule_with(&have, &want, options)?;
    let seconds = start.elapsed().as_secs_f64();
    let cost = Cost::of(plan.schedule());
    let reads = plan.reads(&code);
    let moves = moves(&plan, &code)?;
    let mut value = json!({
        "type": "schedule", "code": code.spec().to_string(), "erased": args.erase,
        "pass": name(args.pass), "order": name(args.order), "fewest_reads": args.fewest_reads,
        "ones": code.ones(), "xors": cost.xors, "copies": cost.copies, "total": cost.total,
        "ops": cost.ops, "temps": cost.temps, "ternary": cost.ternary,
        "loads": moves.map(|(loads, _)| loads), "stores": moves.map(|(_, stores)| stores), "reads": reads, "plan_seconds": seconds,
    });
    if args.text {
        value["text"] = json!(plan.schedule().to_string());
    }
    let asm =
        if args.asm { Some(listing(args, code.clone(), options, (&have, &want))?) } else { None };
    if let Some(asm) = &asm {
        value["asm"] = json!(asm);
    }
    output.result(value, || {
        let moved =
            moves.map(|(loads, stores)| format!("; {loads} loads and {stores} stores a vector"));
        let moved = moved.unwrap_or_default();
        let mut text = format!(
            "{}: {}\n  {} ones; {} XORs + {} copies = {} in {} operations with {} temporaries\n  \
             {} three-input XORs{moved}\n  packets read of each node: {}\n",
            code.spec(),
            if args.erase.is_empty() {
                "encode".to_owned()
            } else {
                format!("reconstruct {:?}", args.erase)
            },
            code.ones(),
            cost.xors,
            cost.copies,
            cost.total,
            cost.ops,
            cost.temps,
            cost.ternary,
            reads.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
        );
        if args.text {
            text.push_str(&format!("\n{}", plan.schedule()));
        }
        asm.iter().for_each(|asm| text.push_str(&format!("\n{asm}")));
        text
    });
    Ok(Exit::Done)
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
/// compiled.
fn moves(plan: &Plan, code: &Code) -> Result<Option<(usize, usize)>, paritas::Error> {
    let schedule = plan.schedule();
    if !schedule.is_single_assignment() {
        return Ok(None);
    }
    let allocation = Allocation::best(schedule, &plan.streams(code), Machine::AVX2)?;
    Ok(Some((allocation.loads, allocation.stores)))
}

/// The cells at hand and wanted: all data and all parity, or what is left and what is erased.
fn question(code: &Code, erased: &[usize]) -> Result<(CellSet, CellSet), Failure> {
    if erased.is_empty() {
        return Ok((code.stored(Role::Data), code.stored(Role::Parity)));
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
