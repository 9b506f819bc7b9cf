//! Measures how long it takes to define codes and to plan encoding and decoding, and how many steps
//! of its budget planning took.
//!
//!     cargo run --release -p paritas --example plan_times [SPEC LOST]...
//!
//! Times are the processor's where Linux reports them, so that other work does not count. LOST is
//! the number of lost nodes, evenly spaced from the first. Without arguments, the example times the
//! wide codes of `docs/optimiser.md` and the usual codes.

use std::error::Error;
use std::time::{Duration, Instant};

use paritas::code::{CellSet, Role};
use paritas::research::{Account, Cost, Plan, PlanOptions};
use paritas::{Code, NodeId};

/// Codes, each with its number of lost nodes.
const CODES: [(&str, usize); 22] = [
    ("4+2", 2),
    ("6+3", 3),
    ("8+3", 3),
    ("10+4", 4),
    ("12+4", 4),
    ("20+4", 4),
    ("14+4", 4),
    ("64+16", 16),
    ("rdp:k=200", 2),
    ("evenodd:k=200", 2),
    ("star:k=257", 3),
    ("liberation:k=257", 2),
    ("xcode:n=257", 2),
    ("cauchy:k=128,m=128", 128),
    ("1000+2", 2),
    ("cauchy:k=200,m=56,w=8", 56),
    ("cauchy:k=500,m=500", 500),
    ("cauchy:k=500,m=500", 100),
    ("cauchy:k=60000,m=2", 2),
    ("cauchy-good:k=500,m=500", 500),
    ("dpg:k=100,m=4,m2=50", 50),
    ("lt:k=8192,n=16384,nodes=16", 5),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "code, lost: define; encode; decode (seconds, XORs, steps of the budget, what was cut)"
    );
    if arguments.is_empty() {
        return CODES.iter().try_for_each(|&(spec, lost)| time(spec, lost));
    }
    arguments
        .chunks(2)
        .try_for_each(|pair| time(&pair[0], pair.get(1).map_or(Ok(1), |n| n.parse())?))
}

/// Returns the time that this thread has run or, where that is unknown, the time since the first
/// call.
fn now() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran = ran.and_then(|text| text.split(' ').next()?.parse().ok()).map(Duration::from_nanos);
    ran.unwrap_or_else(|| START.get_or_init(Instant::now).elapsed())
}

fn time(spec: &str, lost: usize) -> Result<(), Box<dyn Error>> {
    let start = now();
    let code = Code::new(&spec.parse()?)?;
    let define = (now() - start).as_secs_f64();
    let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
    let encode = plan(&code, &data, &code.stored(Role::Parity))?;
    let step = code.node_count() / lost.max(1);
    let lost: Vec<NodeId> = (0..lost).map(|number| NodeId::new(number * step)).collect();
    let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
    let want = code.cells_of(lost.iter().copied());
    let decode = plan(&code, &have, &want)?;
    println!("{spec}, {}: {define:.4}; {encode}; {decode}", lost.len());
    Ok(())
}

fn plan(code: &Code, have: &CellSet, want: &CellSet) -> Result<String, Box<dyn Error>> {
    let start = now();
    let plan: Plan = code.schedule_with(have, want, PlanOptions::default())?;
    let seconds = (now() - start).as_secs_f64();
    let Account { budget, spent, cuts, .. } = plan.account();
    let xors = Cost::of(plan.schedule()).xors;
    Ok(format!("{seconds:.4} s, {xors}, {spent} of {budget}, {cuts:?}"))
}
