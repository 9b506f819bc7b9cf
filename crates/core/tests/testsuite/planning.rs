//! Planning is bounded: at the limits of every family, the number of steps has a bound. Steps are
//! counted, not timed, so that these tests give the same result on every machine.
//!
//! Codes in the word layout are planned at node level, in time cubic in the number of lost nodes,
//! which is at most 362; LT codes follow their graph. Both have no budget.

use crate::common::code;
use paritas::code::{CellSet, Role};
use paritas::research::{Account, Call, Cut, Pass, Plan, PlanOptions};
use paritas::{Code, Codec, CodecOptions, Kernel, NodeId, Spec};

/// Most steps that may be drawn from the budget, whatever the code.
const MOST: u64 = 1 << 27;

/// Most additional steps for each one in the generator: necessary work goes over all ones several
/// times, and solves for what is lost.
const STEPS_A_ONE: u64 = 64;

/// A code at the limit of each family that has packets, and the number of its lost nodes.
const LIMITS: [(&str, usize); 13] = [
    ("cauchy:k=500,m=500", 500),
    ("cauchy:k=60000,m=2", 2),
    ("cauchy-orig:k=181,m=181,w=16", 181),
    ("cauchy-good:k=2000,m=8", 8),
    ("raid6:k=30000,w=16,layout=packets", 2),
    ("qfs:k=20000,w=16", 3),
    ("rdp:k=256", 2),
    ("evenodd:k=257", 2),
    ("star:k=257", 3),
    ("xcode:n=257", 2),
    ("liberation:k=257", 2),
    ("blaum-roth:k=256", 2),
    ("dpg:k=60,m=4,m2=40", 40),
];

fn encode(code: &Code, options: PlanOptions) -> Plan {
    let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
    code.schedule_with(&data, &code.stored(Role::Parity), options).unwrap()
}

/// Plans the loss of nodes that are evenly spaced.
fn decode(code: &Code, lost: usize, options: PlanOptions) -> Plan {
    let step = code.node_count() / lost;
    let lost: Vec<NodeId> = (0..lost).map(|number| NodeId::new(number * step)).collect();
    let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
    code.schedule_with(&have, &code.cells_of(lost.iter().copied()), options).unwrap()
}

fn assert_bounded(spec: &str, ones: usize, plan: &Plan) {
    let Account { budget, spent, .. } = plan.account();
    assert!(*budget <= MOST, "{spec}: {budget}");
    let most = budget + STEPS_A_ONE * ones as u64;
    assert!(*spent <= most, "{spec}, {ones} ones: {spent} steps, at most {most} are allowed");
}

/// Decoding solves for what is lost, and then does what encoding does.
#[test]
fn decoding_is_bounded_at_the_limits_of_every_family() {
    for (spec, lost) in LIMITS {
        let code = code(spec);
        assert_bounded(spec, code.ones(), &decode(&code, lost, PlanOptions::default()));
    }
}

#[test]
#[ignore = "takes as long again; scripts/test-soak runs it"]
fn encoding_is_bounded_at_the_limits_of_every_family() {
    for (spec, _) in LIMITS {
        let code = code(spec);
        assert_bounded(spec, code.ones(), &encode(&code, PlanOptions::default()));
    }
}

/// For one byte, planning has nothing to gain.
#[test]
fn few_bytes_are_planned_for_in_few_steps() {
    let options = PlanOptions::default().bytes(1);
    for (spec, lost) in [("14+4", 4), ("64+16", 16), ("cauchy:k=128,m=128", 128), ("star:k=101", 3)]
    {
        let code = code(spec);
        for plan in [encode(&code, options), decode(&code, lost, options)] {
            // The possible savings for a single byte add next to nothing to the budget.
            assert!(plan.account().budget < (1 << 20) + 32, "{spec}: {:?}", plan.account());
            assert_bounded(spec, code.ones(), &plan);
        }
    }
}

/// Every pass is bounded, including matching, which counts all pairs of data packets in a table.
#[test]
fn every_pass_is_bounded() {
    let code = code("rdp:k=150");
    for pass in Pass::ALL {
        let plan = encode(&code, PlanOptions::default().pass(pass));
        assert_bounded(pass.name(), code.ones(), &plan);
        let is_cut = plan.account().cuts.contains(&Cut::Pairs);
        let has_table = matches!(pass, Pass::Unweighted | Pass::Weighted);
        assert!(is_cut || !has_table, "{pass}: {:?}", plan.account());
    }
}

/// The account names every step that was cut, and no other.
#[test]
fn cuts_are_accounted_for() {
    let cuts = |plan: &Plan| plan.account().cuts.clone();
    let usual = code("14+4");
    assert_eq!(cuts(&encode(&usual, PlanOptions::default())), []);
    let few = PlanOptions::default().bytes(1);
    assert_eq!(cuts(&encode(&usual, few)), [Cut::Refining]);
    let wide = code("cauchy:k=128,m=128");
    assert_eq!(cuts(&encode(&wide, PlanOptions::default())), [Cut::Pairs]);
    let decoding = decode(&wide, 128, PlanOptions::default());
    assert_eq!(cuts(&decoding), [Cut::Structure, Cut::Pivots, Cut::Pairs]);
}

/// Rounds that the caller asks for are run, whatever the budget.
#[test]
fn rounds_that_are_asked_for_are_not_cut() {
    let rounds = |bytes| PlanOptions::default().rounds(300).bytes(bytes);
    let code = code("14+4");
    let [asked, for_a_byte] = [None, Some(1)].map(|bytes| encode(&code, rounds(bytes)));
    assert_eq!(asked.schedule(), for_a_byte.schedule());
    assert_eq!(for_a_byte.account().cuts, []);
}

/// A wide code runs in parts that fit registers; a very wide one would run in thousands of parts,
/// each with pointers to thousands of buffers.
#[test]
fn very_wide_codes_stay_whole() {
    let kernel = Some(Kernel::JitAvx512);
    for (spec, is_whole) in [
        ("cauchy:k=16,m=150", false),
        ("cauchy:k=16,m=1500", true),
        ("reed-solomon:k=16,m=150,w=16", false),
        ("reed-solomon:k=2,m=3000,w=16", true),
    ] {
        let codec = Codec::with_options(code(spec), CodecOptions::default()).unwrap();
        let code = codec.code();
        let (have, want) = (code.stored(Role::Data), code.stored(Role::Parity));
        let call = Call { bytes: 1 << 16, align: 64, kernel };
        let parts = codec.explain(&have, &want, &call).unwrap().parts.len();
        assert_eq!(parts == 1, is_whole, "{spec}: {parts} parts");
    }
}

/// `k+m` is a code in packets while its program has at most about 2,500 instructions, which the
/// caches of decoded instructions hold.
#[test]
fn the_default_changes_where_programs_of_packets_grow_long() {
    let kernel = Some(Kernel::JitAvx2);
    let instructions = |k: usize, m: usize| {
        let codec: Codec = format!("cauchy:k={k},m={m}").parse().unwrap();
        let (have, want) = (codec.code().stored(Role::Data), codec.code().stored(Role::Parity));
        let call = Call { bytes: 1 << 16, align: 64, kernel };
        let parts = codec.explain(&have, &want, &call).unwrap().parts;
        parts.iter().map(|part| part.instructions.unwrap().count).sum::<usize>()
    };
    for (k, m) in [(49, 6), (37, 8), (29, 10), (19, 15), (17, 17), (9, 33)] {
        assert_eq!(format!("{k}+{m}").parse::<Spec>().unwrap().family(), "cauchy");
        assert!(instructions(k, m) < 2_700, "{k}+{m}");
    }
    for (k, m) in [(100, 3), (60, 5), (43, 7), (30, 10), (20, 15), (18, 18), (10, 30)] {
        assert_eq!(format!("{k}+{m}").parse::<Spec>().unwrap().family(), "backblaze");
        assert!(instructions(k, m) > 2_400, "{k}+{m}");
    }
}

/// Non-temporal stores need results that begin at cache lines.
#[test]
fn explanations_tell_how_results_are_stored() {
    let codec: Codec = "10+4".parse().unwrap();
    let (have, want) = (codec.code().stored(Role::Data), codec.code().stored(Role::Parity));
    for (bytes, align, kernel, expected) in [
        (1 << 28, 64, Kernel::JitAvx2, true),
        (1 << 28, 4096, Kernel::JitAvx512, true),
        (1 << 28, 48, Kernel::JitAvx2, false),
        (1 << 28, 3, Kernel::JitAvx512, false),
        (1 << 16, 64, Kernel::JitAvx2, false),
        (1 << 28, 64, Kernel::Avx2, false),
    ] {
        let call = Call { bytes, align, kernel: Some(kernel) };
        let explained = codec.explain(&have, &want, &call).unwrap();
        assert_eq!(explained.nontemporal, expected, "{bytes} {align} {kernel}");
    }
}
