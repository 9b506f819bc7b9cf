//! Fuzzes schedule texts: reading never panics; what is read prints back equal; every pass and
//! order preserves what a schedule computes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use paritas::research::passes::{data_first, few_live, fuse, parity_first, slp, smart};
use paritas::research::{Schedule, interpret};

/// Larger schedules are read and printed, but not run.
const MAX_CELLS: usize = 4096;

/// Most operations that passes are run on: passes look at pairs of operations or of slots, and the
/// fuzzer must stay quick.
const MAX_OPERATIONS: usize = 256;

type Pass = fn(&Schedule) -> paritas::Result<Schedule>;

const PASSES: [(&str, Pass); 6] = [
    ("smart", smart),
    ("slp", slp),
    ("fuse", fuse),
    ("parity-first", parity_first),
    ("data-first", data_first),
    ("few-live", few_live),
];

fuzz_target!(|text: &str| {
    if let Ok(schedule) = text.parse::<Schedule>() {
        let printed = schedule.to_string();
        let again: Schedule = printed.parse().expect("what prints is read");
        assert_eq!(again, schedule);
        if schedule.inputs() + schedule.temps() + schedule.outputs() <= MAX_CELLS {
            run(&schedule);
        }
    }
});

fn run(schedule: &Schedule) {
    let expected = outputs(schedule);
    if schedule.ops().len() > MAX_OPERATIONS {
        return;
    }
    for (name, pass) in PASSES {
        match pass(schedule) {
            Ok(changed) => assert_eq!(outputs(&changed), expected, "{name} made {changed}"),
            Err(error) => assert!(!schedule.is_single_assignment(), "{name}: {error}"),
        }
    }
}

/// Returns what the interpreter computes from inputs with a prime period.
fn outputs(schedule: &Schedule) -> Vec<Vec<u8>> {
    let byte = |input: usize, i: usize| (73 * (i + 1) * (input + 1) % 251) as u8;
    let cell = |input| (0..16).map(|i| byte(input, i)).collect();
    let inputs: Vec<Vec<u8>> = (0..schedule.inputs()).map(cell).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    interpret(schedule, &inputs).expect("the inputs fit")
}
