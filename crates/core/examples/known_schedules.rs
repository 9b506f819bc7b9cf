//! Makes `crates/core/src/plan/known/schedules.txt`: schedules that encode the usual codes, refined
//! at length.
//!
//! ```sh
//! cargo run --release -p paritas --example known_schedules > schedules.txt
//! mv schedules.txt crates/core/src/plan/known/
//! ```

use std::error::Error;

use paritas::Code;
use paritas::code::Role;
use paritas::research::{Cost, Machine, Objective, Plan, PlanOptions};

/// k and m of the codes, each with the smallest w.
const SHAPES: [[usize; 2]; 24] = [
    [2, 2],
    [3, 2],
    [4, 2],
    [5, 2],
    [6, 2],
    [8, 2],
    [10, 2],
    [12, 2],
    [16, 2],
    [3, 3],
    [4, 3],
    [5, 3],
    [6, 3],
    [8, 3],
    [9, 3],
    [10, 3],
    [12, 3],
    [17, 3],
    [4, 4],
    [8, 4],
    [10, 4],
    [12, 4],
    [16, 4],
    [20, 4],
];

/// Objectives to minimise, each with its number of rounds, in addition to what planning does by
/// itself.
const WAYS: [(Objective, usize); 5] = [
    (Objective::Total, 4_000),
    (Objective::Total, 40_000),
    (Objective::Xors, 40_000),
    (Objective::Fused(Machine::AVX2), 400),
    (Objective::Fused(Machine::AVX2), 2_000),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("Made by the example `known_schedules`. See plan/known.rs.");
    for [k, m] in SHAPES {
        let code = Code::new(&format!("{k}+{m}").parse()?)?;
        let usual = (Objective::Total, (100_000 / code.ones()).min(400));
        let ways = [usual].into_iter().chain(WAYS);
        let plans: Vec<Plan> = ways.map(|way| plan(&code, way)).collect::<Result<_, _>>()?;
        let usual = Cost::of(plans[0].schedule());
        let is_shorter = |plan: &&Plan| {
            let cost = Cost::of(plan.schedule());
            cost.xors <= usual.xors && cost.total <= usual.total
        };
        let best = plans.iter().filter(is_shorter).min_by_key(|plan| executed(&code, plan));
        let best = best.ok_or("the first plan is as short as itself")?;
        print!("= {}\n{}", code.spec(), best.schedule());
        let Cost { xors, total, .. } = Cost::of(best.schedule());
        eprintln!(
            "{k}+{m}: {} XORs, {} in all, {} executed; by planning {}, {} and {}",
            xors,
            total,
            executed(&code, best),
            usual.xors,
            usual.total,
            executed(&code, &plans[0])
        );
    }
    Ok(())
}

fn plan(code: &Code, (objective, rounds): (Objective, usize)) -> Result<Plan, paritas::Error> {
    let options = PlanOptions::default().objective(objective).rounds(rounds);
    code.schedule_with(&code.stored(Role::Data), &code.stored(Role::Parity), options)
}

/// Returns what a compiled kernel executes on AVX2, weighed as `Objective::Fused` does.
fn executed(code: &Code, plan: &Plan) -> usize {
    let executed = plan.instructions(code, Machine::AVX2);
    executed.map_or(usize::MAX, |instructions| instructions.cost())
}
