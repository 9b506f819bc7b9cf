//! Which options of `bench` suit which codes. An option that would change nothing is refused, so
//! that nobody takes two equal runs for two different ones.

use paritas::code::Role;
use paritas::research::Width;
use paritas::{Code, Kernel, KernelChoice, NodeId, Split};

use crate::args::machine::{Bench, Operation};
use crate::commands::packet_rule::{expect_packets, has_packets};
use crate::commands::schedule::expect_effect;
use crate::exit::Failure;

/// Refuses options that do not suit the code, or either of two codes that are compared. `other` is
/// the code of `--against-code`.
pub(super) fn expect_suited(
    code: &Code,
    other: Option<&Code>,
    args: &Bench,
) -> Result<(), Failure> {
    expect_threads(args)?;
    if code.graph().is_some() {
        return expect_of_blocks(code, args);
    }
    let spec = code.spec();
    if args.reception.is_some() || args.seed.is_some() {
        let why = format!("--reception and --seed are for LT codes; got {spec}");
        return Err(Failure::arguments(why));
    }
    if let Some(other) = other.filter(|other| other.graph().is_some()) {
        let why = format!("--against-code must not name an LT code; got {}", other.spec());
        return Err(Failure::arguments(why));
    }
    if args.op == Operation::Update
        && let Some(node) =
            code.nodes().find(|&node| code.holds_data(node) && holds_parity(code, node))
    {
        return Err(Failure::arguments(format!(
            "--op update measures codes whose nodes hold either data or parity; node {} of {spec} \
             holds both",
            node.index()
        )));
    }
    expect_of_packets(code, other.unwrap_or(code), args)
}

fn holds_parity(code: &Code, node: NodeId) -> bool {
    code.node_cells(node).iter().any(|&cell| code.cell(cell).role == Role::Parity)
}

/// Refuses what only several threads can do, if there is one.
fn expect_threads(args: &Bench) -> Result<(), Failure> {
    let against = args.against.unwrap_or_default();
    let of_base = against.threads.unwrap_or(args.threads);
    let is_alone = args.threads == 1 && of_base == 1;
    let useless = [
        ("--split", args.split.is_some() && is_alone),
        ("--bytes-a-thread", args.bytes_a_thread.is_some() && is_alone),
        ("--against split", against.split.is_some() && of_base == 1),
        ("--against bytes-a-thread", against.bytes_a_thread.is_some() && of_base == 1),
    ];
    match useless.into_iter().find(|(_, is_useless)| *is_useless) {
        Some((flag, _)) => Err(Failure::arguments(format!(
            "{flag} has no effect with one thread; give --threads 2 or more, or 0 for one for each \
             processor"
        ))),
        None => Ok(()),
    }
}

/// Refuses what is about packets and schedules for codes in words, which have neither. `base` is
/// the code to compare with.
fn expect_of_packets(code: &Code, base: &Code, args: &Bench) -> Result<(), Failure> {
    let against = args.against.unwrap_or_default();
    // Threads that share columns share those of packets, in words too.
    let has_columns = [args.split, against.split].contains(&Some(Split::Columns));
    let of_both = [
        ("--packet", args.packet.is_some() && !has_columns),
        ("--tuned-packet", args.tuned_packet),
        ("--sweep packet", args.sweep.is_some()),
        ("--pass", args.pass.is_some()),
        ("--cost", args.cost.is_some()),
        ("--order", args.order.is_some()),
    ];
    let of_base = [
        ("--against packet", against.packet.is_some() && !has_columns),
        ("--against pass", against.pass.is_some()),
        ("--against order", against.order.is_some()),
    ];
    // What both runs share needs to matter for one of them.
    let for_any = of_both.into_iter().filter(|_| !has_packets(base)).map(|given| (given, code));
    let for_base = of_base.into_iter().map(|given| (given, base));
    for ((flag, is_given), code) in for_any.chain(for_base) {
        if is_given {
            expect_packets(code, flag)?;
        }
    }
    expect_kernel(code, "--kernel", args.kernel)?;
    expect_kernel(base, "--against kernel", against.kernel.unwrap_or_default())
}

/// Refuses kernels of the lab that run schedules of packets, for a code that has none.
fn expect_kernel(code: &Code, flag: &str, choice: KernelChoice) -> Result<(), Failure> {
    match choice {
        // This one has a counterpart for words.
        KernelChoice::Only(Kernel::Packetwise(Width::Bits64)) => Ok(()),
        KernelChoice::Only(kernel) if kernel.is_of_the_lab() => {
            expect_packets(code, &format!("{flag} {kernel}"))
        }
        _ => Ok(()),
    }
}

/// Refuses operations that an LT code lacks, and options that have no effect on it.
fn expect_of_blocks(code: &Code, args: &Bench) -> Result<(), Failure> {
    let spec = code.spec();
    let against = args.against.is_some() || args.against_code.is_some();
    if against || args.best_roofline || !args.erase.is_empty() {
        return Err(Failure::arguments(format!(
            "--against, --against-code, --best-roofline and --erase are not for LT codes; got {spec}"
        )));
    }
    if args.op == Operation::Update {
        return Err(Failure::arguments(format!(
            "--op update: {spec} stores no data that could change; use --op encode"
        )));
    }
    if args.op == Operation::Encode && (args.reception.is_some() || args.seed.is_some()) {
        return Err(Failure::arguments("--reception and --seed are for --op decode"));
    }
    if let KernelChoice::Only(kernel) = args.kernel
        && kernel.is_of_the_lab()
    {
        return Err(Failure::arguments(format!(
            "--kernel {kernel} runs whole packets; {spec} has none"
        )));
    }
    let given = [
        ("--packet", args.packet.is_some()),
        ("--pass", args.pass.is_some()),
        ("--sweep", args.sweep.is_some()),
        ("--cost", args.cost.is_some()),
        ("--order", args.order.is_some()),
        ("--split", args.split.is_some()),
        ("--tuned-packet", args.tuned_packet),
    ];
    expect_effect(code, given)
}
