//! Arranging: chooses the operations by which a compiled kernel computes a schedule, and their
//! order.
//!
//! Three orders are tried: the schedule's own, one with few live values, and stream by stream
//! (`optimise/by_source.rs`), which computes the cells by other operations. The order whose
//! allocation costs least on the machine is taken. If an output takes the place of an input, orders
//! that read the input after writing the output are left out. Schedules over words are already in
//! the order in which they are to run.

use crate::error::{Error, Result};
use crate::limits::REORDERED_OPERATIONS;
use crate::plan::allocate::allocate;
use crate::plan::cost::{Cost, Figure, Objective};
use crate::plan::lower::lower;
use crate::plan::machine::Machine;
use crate::plan::optimise::by_source::by_source;
use crate::plan::optimise::order;
use crate::plan::optimise::rows::Rows;
use crate::plan::schedule::Schedule;
use crate::plan::steps::{Allocation, MemoryOperand, Step};

/// A schedule in the order in which it runs, with its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arranged {
    /// The operations in order.
    pub schedule: Schedule,
    /// The instructions for one vector of every cell.
    pub allocation: Allocation,
}

/// Returns the cheapest arrangement of a schedule whose input `i` belongs to stream `streams[i]`.
///
/// # Errors
/// If an operation adds to its target, or if the machine has too few or too many registers.
pub fn arranged(schedule: &Schedule, streams: &[usize], machine: Machine) -> Result<Arranged> {
    arranged_in_place(schedule, streams, &[], machine)
}

/// As [`arranged`], where each pair of `shared` is an input and the output that takes its place in
/// memory.
///
/// # Errors
/// As [`arranged`].
pub(crate) fn arranged_in_place(
    schedule: &Schedule,
    streams: &[usize],
    shared: &[(usize, usize)],
    machine: Machine,
) -> Result<Arranged> {
    let mut orders = orders(schedule, Some(streams), machine)?;
    orders.retain(|order| order.conflict(shared).is_none());
    cheapest(orders, machine)
}

/// Returns the arrangement that reads every input once, stream by stream, and reads nothing else,
/// if there is one. It does not need any line of a stream to stay in the cache. `shared` is as in
/// [`arranged_in_place`].
pub(crate) fn reading_once(
    schedule: &Schedule,
    streams: &[usize],
    shared: &[(usize, usize)],
    machine: Machine,
) -> Option<Arranged> {
    let schedule = match schedule.field() {
        None => by_source(schedule, streams).ok()?,
        Some(_) => schedule.clone(),
    };
    if schedule.conflict(shared).is_some() {
        return None;
    }
    let allocation = allocate(&lower(&schedule, machine).ok()?, machine);
    let constants = allocation.steps.iter().filter_map(Step::reads);
    let constants = constants.filter(|read| matches!(read, MemoryOperand::Constant(_))).count();
    let once = allocation.loads - constants <= schedule.inputs() * allocation.group;
    once.then_some(Arranged { schedule, allocation })
}

/// Returns the cost of the schedule under an objective.
pub(crate) fn figure(objective: Objective, schedule: &Schedule) -> Figure {
    let cost = Cost::of(schedule);
    let Objective::Fused(machine) = objective else { return objective.of(&cost) };
    // A schedule that adds to cells is not compiled.
    let made = orders(schedule, None, machine).and_then(|orders| cheapest(orders, machine));
    made.map_or((u64::MAX, 0), |made| (made.allocation.cost() as u64, cost.total as u64))
}

/// Returns the cost of the schedule of rows under an objective.
pub(crate) fn figure_of_rows(objective: Objective, rows: &Rows) -> Figure {
    match objective {
        Objective::Fused(_) => {
            rows.schedule().map_or((u64::MAX, 0), |made| figure(objective, &made))
        }
        _ => objective.of(&rows.cost()),
    }
}

/// Returns the cost of a schedule over words, whose order is given, as instructions of the machine.
///
/// # Errors
/// As [`arranged`].
pub(crate) fn cost(schedule: &Schedule, machine: Machine) -> Result<usize> {
    Ok(allocate(&lower(schedule, machine)?, machine).cost())
}

/// Returns the orders to try, the schedule's own first. Stream by stream is among them if the
/// streams of the inputs are known.
fn orders(
    schedule: &Schedule,
    streams: Option<&[usize]>,
    machine: Machine,
) -> Result<Vec<Schedule>> {
    let mut orders = vec![schedule.clone()];
    if schedule.field().is_some() {
        machine.expect_registers(8)?;
        return Ok(orders);
    }
    machine.expect_registers(3)?;
    if schedule.ops().len() <= REORDERED_OPERATIONS {
        orders.push(order::few_live(schedule)?);
    }
    if let Some(streams) = streams
        && schedule.outputs() < machine.registers
    {
        orders.push(by_source(schedule, streams)?);
    }
    Ok(orders)
}

/// Returns the cheapest arrangement; among equally cheap ones, the first.
fn cheapest(orders: Vec<Schedule>, machine: Machine) -> Result<Arranged> {
    let mut best: Option<Arranged> = None;
    for schedule in orders {
        let allocation = allocate(&lower(&schedule, machine)?, machine);
        if best.as_ref().is_none_or(|best| allocation.cost() < best.allocation.cost()) {
            best = Some(Arranged { schedule, allocation });
        }
    }
    best.ok_or_else(|| Error::schedule("there is no order to run in"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::Role;
    use crate::define::code::Code;
    use crate::define::field::Field;
    use crate::plan::interpret::interpret;
    use crate::plan::machine::Multiplier;
    use crate::plan::products::CoefficientRows as Products;
    use crate::plan::prove;
    use crate::plan::steps::Operand;
    use crate::plan::streams;

    #[test]
    fn steps_compute_what_the_schedule_says() {
        for spec in ["4+2", "10+4", "cauchy:k=6,m=3,w=8", "rdp:k=10", "evenodd:k=5", "20+4"] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let plan = code.schedule(&code.stored(Role::Data), &code.stored(Role::Parity)).unwrap();
            let schedule = plan.schedule();
            let streams = streams(&code, plan.inputs());
            for machine in machines() {
                let allocation = arranged(schedule, &streams, machine).unwrap().allocation;
                assert!(machine.memory_operands || allocation.steps.iter().all(only_loads_read));
                prove::allocation(schedule, &[], &allocation)
                    .unwrap_or_else(|error| panic!("{spec} {machine:?}: {error}"));
            }
        }
    }

    fn machines() -> impl Iterator<Item = Machine> {
        [3, 4, 7, 16, 32].into_iter().flat_map(|registers| {
            (0..8).map(move |bits| Machine {
                registers,
                ternary: bits & 1 != 0,
                memory_operands: bits & 2 != 0,
                outputs_readable: bits & 4 != 0,
                multiplier: Multiplier::Shuffle,
            })
        })
    }

    /// Whether a step suits a machine without memory operands: only loads read memory.
    fn only_loads_read(step: &Step) -> bool {
        let b = match step {
            Step::Xor { b, .. } | Step::Xor3 { b, .. } | Step::Pair { b, .. } => Some(b),
            _ => None,
        };
        !matches!(b, Some(Operand::Memory(_)))
    }

    /// The arranged schedule computes the same cells as the original, and its allocation is that of
    /// its own order.
    #[test]
    fn arranged_schedules_are_what_is_allocated() {
        for (spec, ternary) in [("10+4", false), ("6+3", true), ("20+4", true)] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let plan = code.schedule(&code.stored(Role::Data), &code.stored(Role::Parity)).unwrap();
            let machine = Machine { ternary, registers: 32, ..Machine::AVX2 };
            let streams = streams(&code, plan.inputs());
            let Arranged { schedule: arranged, allocation } =
                arranged(plan.schedule(), &streams, machine).unwrap();
            assert_eq!(
                allocate(&lower(&arranged, machine).unwrap(), machine),
                allocation,
                "{spec}"
            );
            let cells: Vec<[u8; 1]> =
                (0..arranged.inputs()).map(|i| [(i * 89 + 7 + i / 3 * 31) as u8]).collect();
            let cells: Vec<&[u8]> = cells.iter().map(|cell| &cell[..]).collect();
            let run = |schedule| interpret(schedule, &cells).unwrap();
            assert_eq!(run(&arranged), run(plan.schedule()), "{spec}");
        }
    }

    /// Sums of products on every machine that multiplies, over words of every width, including
    /// cases in which sums and operands outnumber the registers.
    #[test]
    fn words_are_multiplied_on_every_machine() {
        for (w, coefficients) in [
            (8, vec![vec![1, 2, 3], vec![7, 255, 0], vec![9, 9, 1]]),
            (8, vec![vec![1; 5], vec![1, 2, 4, 8, 16]]),
            (8, (1..12).map(|r| (0..9).map(|c| (r * 29 + c * 31) % 256).collect()).collect()),
            (16, vec![vec![1, 40_000, 3], vec![700, 0, 1]]),
            (16, vec![vec![1; 3], vec![4, 1, 2]]),
            (32, vec![vec![1 << 31, 77, 1], vec![5, 1 << 17, 3]]),
        ] {
            let (field, inputs) = (Field::new(w).unwrap(), coefficients[0].len());
            let rows = Products { field, inputs, coefficients };
            for machine in multiplying_machines() {
                let schedule = rows.schedule(machine).unwrap();
                prove::rows(&rows, &schedule).unwrap();
                let allocation = arranged(&schedule, &[], machine).unwrap().allocation;
                assert!(machine.memory_operands || allocation.steps.iter().all(only_loads_read));
                prove::allocation(&schedule, &[], &allocation)
                    .unwrap_or_else(|error| panic!("w = {w} {machine:?}: {error}\n{schedule}"));
            }
        }
    }

    fn multiplying_machines() -> impl Iterator<Item = Machine> {
        use Multiplier::*;
        [
            (8, false, true, Shuffle),
            (16, false, true, Shuffle),
            (16, false, false, Shuffle),
            (16, false, true, Affine),
            (32, true, true, Affine),
            (32, true, true, ShuffleMasked),
            (32, false, false, ShuffleNeon),
            (32, true, false, ShuffleNeon),
        ]
        .into_iter()
        .flat_map(|(registers, ternary, memory_operands, multiplier)| {
            [false, true].map(|outputs_readable| Machine {
                registers,
                ternary,
                memory_operands,
                outputs_readable,
                multiplier,
            })
        })
    }

    #[test]
    fn machines_without_registers_are_refused() {
        let packets = "inputs 2 temps 0 outputs 1\no0 = i0 ^ i1\n".parse().unwrap();
        for registers in [0, 2, 33, usize::MAX] {
            let machine = Machine { registers, ..Machine::AVX2 };
            let error = arranged(&packets, &[0, 0], machine).unwrap_err().to_string();
            assert!(error.starts_with("a machine must have 3 to 32 vector registers"), "{error}");
            let never = (u64::MAX, 0);
            assert_eq!(figure(Objective::Fused(machine), &packets), never);
        }
    }

    #[test]
    fn counts_by_hand() {
        let text = "inputs 3 temps 1 outputs 2\nt0 = i0 ^ i1\no0 = t0 ^ i2\no1 = t0\n";
        let arranged = arranged(&text.parse().unwrap(), &[0, 0, 1], Machine::AVX2).unwrap();
        let allocation = arranged.allocation;
        assert_eq!((allocation.loads, allocation.stores, allocation.scratch), (3, 2, 0));
    }

    /// Six inputs of one use: with few registers they are loaded two or three at a time, with many
    /// all at once.
    #[test]
    fn loads_come_first_where_xors_read_no_memory() {
        let schedule =
            "inputs 6 temps 0 outputs 1\no0 = i0 ^ i1 ^ i2 ^ i3 ^ i4 ^ i5\n".parse().unwrap();
        let shape = |registers, ternary| -> String {
            let machine = Machine { registers, ternary, memory_operands: false, ..Machine::AVX2 };
            let letter = |step: &Step| match step {
                Step::Zero { .. } => '0',
                Step::Load { .. } => 'L',
                Step::Xor { .. } => 'X',
                Step::Xor3 { .. } => '3',
                Step::Map { .. } | Step::Pair { .. } => '?',
                Step::Store { .. } => 'S',
            };
            arranged(&schedule, &[0; 6], machine)
                .unwrap()
                .allocation
                .steps
                .iter()
                .map(letter)
                .collect()
        };
        assert_eq!(shape(3, false), "LLLXXLLXXLXS");
        assert_eq!(shape(3, true), "LLL3LL3LXS");
        assert_eq!(shape(32, false), "LLLLLLXXXXXS");
        assert_eq!(shape(32, true), "LLLLLL33XS");
    }
}
