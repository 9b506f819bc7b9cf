//! One test body for all kernels: each must equal the interpreter, which must equal the reference.
//! Lengths straddle every boundary, fills have a prime period, and canaries stand around every
//! output.

use crate::common;
use crate::common::{as_slices, code, fill};
use paritas::code::{CellId, Role};
use paritas::research::{Call, Order, Pass, PlanOptions, Width, can_compile, interpret};
use paritas::{Buffer, Code, Codec, CodecOptions, Kernel, KernelChoice, NodeId, Split, Stores};
use paritas_reference as reference;

const CANARY: usize = 64;

/// Splits shards (strips of packets) into their cells, each the packets of one row in sequence.
fn cells_of(shard: &[u8], rows: usize, packet: usize) -> Vec<Vec<u8>> {
    (0..rows)
        .map(|row| {
            shard.chunks(rows * packet).flat_map(|s| s[row * packet..][..packet].to_vec()).collect()
        })
        .collect()
}

/// Returns the parity nodes of the first stage, which encoding computes.
fn parity_nodes(codec: &Codec) -> Vec<NodeId> {
    let code = codec.code();
    code.nodes_at(1).into_iter().filter(|&node| !code.holds_data(node)).collect()
}

/// Returns what the interpreter computes from data shards, as parity shards.
fn interpreted(codec: &Codec, data: &[Vec<u8>], options: PlanOptions) -> Vec<Vec<u8>> {
    let (code, packet) = (codec.code(), codec.packet());
    let (have, want) = (code.stored(Role::Data), code.made_in(1));
    let plan = code.schedule_with(&have, &want, options).unwrap();
    let rows = codec.buffer_cells(0).len();
    let nodes: Vec<Vec<Vec<u8>>> = data.iter().map(|shard| cells_of(shard, rows, packet)).collect();
    let input = |&cell: &CellId| {
        let place = code.cell(cell).place.unwrap();
        &nodes[place.node.index()][place.row][..]
    };
    let inputs: Vec<&[u8]> = plan.inputs().iter().map(input).collect();
    let outputs = interpret(plan.schedule(), &inputs).unwrap();
    let made = |cell| &outputs[plan.outputs().iter().position(|&output| output == cell).unwrap()];
    let shard = |node| {
        let cells: Vec<&Vec<u8>> = code.node_cells(node).iter().map(|&cell| made(cell)).collect();
        let strip =
            |s: usize| cells.iter().flat_map(move |cell| cell[s * packet..][..packet].to_vec());
        (0..data[0].len() / (rows * packet)).flat_map(strip).collect()
    };
    parity_nodes(codec).into_iter().map(shard).collect()
}

/// Encodes with canaries around every parity shard.
fn encoded(codec: &Codec, data: &[Vec<u8>], parity: usize, misalign: usize) -> Vec<Vec<u8>> {
    let length = data[0].len();
    let mut padded = vec![vec![0xC3; length + 2 * CANARY + misalign]; parity];
    {
        let mut targets: Vec<&mut [u8]> =
            padded.iter_mut().map(|shard| &mut shard[CANARY + misalign..][..length]).collect();
        codec.encode(&as_slices(data), &mut targets).unwrap();
    }
    assert_no_fallback(codec);
    for shard in &padded {
        let (before, rest) = shard.split_at(CANARY + misalign);
        let after = &rest[length..];
        assert!(before.iter().chain(after).all(|&byte| byte == 0xC3), "a canary died");
    }
    padded.iter().map(|shard| shard[CANARY + misalign..][..length].to_vec()).collect()
}

/// Checks that no tiled kernel served in the place of a compiled one, except for programs that
/// cannot be compiled; the bytes would not show it. But where the system forbids executable memory,
/// a tiled kernel must have served.
fn assert_no_fallback(codec: &Codec) {
    let fallback = codec.fallback().filter(|why| !why.contains("a program"));
    assert!(can_compile().is_err() || fallback.is_none(), "{fallback:?}");
}

fn reference_parity(spec: &str, data: &[Vec<u8>], packet: usize) -> Vec<Vec<u8>> {
    let code = code(spec);
    if code.stages() > 1 {
        return reference_group(&code, data, packet);
    }
    let pinned = |name: &str| pinned(&code, name);
    let name = code.spec().family();
    if name == "rdp" {
        return reference::array::rdp(pinned("prime")[0] as usize, data, packet).into();
    }
    if name == "evenodd" {
        return reference::array::evenodd(pinned("prime")[0] as usize, data, packet).into();
    }
    reference_cauchy(&code, "", data, packet)
}

fn pinned(code: &Code, name: &str) -> Vec<u64> {
    code.pin().entries().find(|(n, _)| *n == name).unwrap().1.to_vec()
}

/// Returns the parity by a Cauchy matrix that is among a code's pinned numbers.
fn reference_cauchy(code: &Code, bar: &str, data: &[Vec<u8>], packet: usize) -> Vec<Vec<u8>> {
    let pinned = |name: &str| pinned(code, &format!("{bar}{name}"));
    let w: u32 = code.spec().text("w").unwrap().parse().unwrap();
    let field = reference::field::Field::new(w, pinned("polynomial")[0]);
    let mut matrix = reference::matrix::cauchy(&field, &pinned("points"), data.len());
    for (row, row_scale) in matrix.iter_mut().zip(pinned("row-scale")) {
        for (entry, column_scale) in row.iter_mut().zip(pinned("column-scale")) {
            *entry = field.mul(field.mul(*entry, row_scale), column_scale);
        }
    }
    reference::packets::encode(&field, &matrix, data, packet)
}

/// Returns the parity of stage one of a group that is not interleaved.
fn reference_group(code: &Code, data: &[Vec<u8>], packet: usize) -> Vec<Vec<u8>> {
    let number = |key| code.spec().text(key).unwrap().parse::<usize>().unwrap();
    let [k, m, m2] = ["k", "m", "m2"].map(number);
    let strip = code.lane_rows() * packet;
    let symbol = |shard: &Vec<u8>, stripe: usize| -> Vec<u8> {
        shard.chunks(strip).skip(stripe).step_by(m2).flatten().copied().collect()
    };
    let stripes: Vec<Vec<Vec<u8>>> =
        (0..m2).map(|stripe| data.iter().map(|shard| symbol(shard, stripe)).collect()).collect();
    let shape = reference::dpg::Shape { k, m, m2, interleave: reference::dpg::Interleave::None };
    let c = |data: &[Vec<u8>]| reference_cauchy(code, "", data, packet);
    let bar = |data: &[Vec<u8>]| reference_cauchy(code, "bar-", data, packet);
    let nodes = reference::dpg::nodes(shape, &c, &bar, &stripes);
    let shard = |symbols: &Vec<reference::dpg::Stored>| -> Vec<u8> {
        let group =
            |g: usize| symbols.iter().flat_map(move |s| s.bytes[g * strip..][..strip].to_vec());
        (0..data[0].len() / (m2 * strip)).flat_map(group).collect()
    };
    nodes[k..k + m].iter().map(shard).collect()
}

const SPECS: [&str; 9] = [
    "4+2",
    "cauchy:k=10,m=4",
    "cauchy:k=3,m=3,w=8",
    "cauchy:k=1,m=1",
    "cauchy:k=7,m=2,w=5",
    "rdp:k=6",
    "rdp:k=3",
    "evenodd:k=5",
    "bbdpg:k=3,m=2,m2=3",
];

#[test]
fn every_kernel_is_the_interpreter_is_the_reference() {
    for spec in SPECS {
        for packet in [1, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 128, 200, 1500, 4096] {
            for stripes in [1, 17] {
                check(spec, packet, stripes);
            }
        }
    }
}

fn check(spec: &str, packet: usize, stripes: usize) {
    let codec = |kernel, pass, order| {
        let plan = PlanOptions::default().pass(pass).order(order).rounds(3);
        Codec::with_options(
            code(spec),
            CodecOptions::default().packet(packet).kernel(kernel).plan(plan),
        )
        .unwrap()
    };
    let plain = codec(KernelChoice::Only(Kernel::Scalar), Pass::Direct, Order::Parity);
    let nodes = plain.code().nodes();
    let k = nodes.filter(|&node| plain.code().holds_data(node)).count();
    let parity = parity_nodes(&plain).len();
    let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, stripes * plain.strip())).collect();
    let expected = reference_parity(spec, &data, packet);
    for pass in [Pass::Direct, Pass::Smart, Pass::Unweighted, Pass::Weighted, Pass::Slp] {
        for order in [Order::Parity, Order::Data] {
            let options = PlanOptions::default().pass(pass).order(order).rounds(3);
            assert!(interpreted(&plain, &data, options) == expected, "{spec} {packet} {options:?}");
        }
    }
    for kernel in common::kernels() {
        for (pass, order) in [(Pass::Slp, Order::Parity), (Pass::Direct, Order::Data)] {
            for misalign in [0, 1] {
                let made = encoded(&codec(kernel, pass, order), &data, parity, misalign);
                assert!(made == expected, "{spec} packet {packet} x {stripes} {kernel:?} {pass:?}");
            }
        }
    }
}

/// How results are stored, and how far shards are shifted against each other within their pages.
/// With a shift of 0 their lines compete for the same sets of the cache, and inputs are staged.
const STORES_AND_STAGGERS: [(Stores, usize); 4] = [
    (Stores::NonTemporal, 320),
    (Stores::NonTemporal, 0),
    (Stores::Cached, 320),
    (Stores::Cached, 0),
];

/// Non-temporal stores are used where lines are whole: 64-byte packets and alignment.
#[test]
fn nontemporal_stores_change_nothing() {
    for spec in SPECS {
        for (packet, stripes) in [(64, 1), (64, 33), (4096, 3), (8, 64)] {
            let codec = |stores, kernel| {
                let options = CodecOptions::default().packet(packet).stores(stores).kernel(kernel);
                Codec::with_options(code(spec), options).unwrap()
            };
            let plain = codec(Stores::Cached, KernelChoice::Only(Kernel::Scalar));
            let k = plain.code().nodes().filter(|&node| plain.code().holds_data(node)).count();
            let parity = parity_nodes(&plain).len();
            let data: Vec<Vec<u8>> =
                (0..k).map(|node| fill(node, stripes * plain.strip())).collect();
            let expected = encoded(&plain, &data, parity, 0);
            for kernel in common::candidates() {
                for (stores, stagger) in STORES_AND_STAGGERS {
                    let made = encoded_aligned(&codec(stores, kernel), &data, parity, stagger);
                    assert!(made == expected, "{spec} {kernel:?} {stores:?} {stagger}");
                }
            }
        }
    }
}

/// A place at a page boundary, or shifted from one, with room for canaries on both sides.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize, shift: usize) -> Self {
        const PAGE: usize = 4096;
        let memory = vec![0xC3; length + 3 * PAGE];
        let start = CANARY + memory[CANARY..].as_ptr().align_offset(PAGE) + shift % PAGE;
        Self { memory, start, length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.length]
    }

    fn canaries_live(&self) -> bool {
        let outside = self.memory[..self.start].iter();
        let mut outside = outside.chain(&self.memory[self.start + self.length..]);
        outside.all(|&byte| byte == 0xC3)
    }
}

/// Encodes with all shards at pages, or shifted from them by multiples of `stagger`.
fn encoded_aligned(codec: &Codec, data: &[Vec<u8>], parity: usize, stagger: usize) -> Vec<Vec<u8>> {
    let length = data[0].len();
    let mut shards: Vec<Aligned> =
        (0..data.len() + parity).map(|node| Aligned::new(length, node * stagger)).collect();
    for (shard, data) in shards.iter_mut().zip(data) {
        shard.bytes().copy_from_slice(data);
    }
    let (sources, targets) = shards.split_at_mut(data.len());
    let sources: Vec<&[u8]> = sources.iter_mut().map(|shard| &*shard.bytes()).collect();
    let mut outputs: Vec<&mut [u8]> = targets.iter_mut().map(Aligned::bytes).collect();
    codec.encode(&sources, &mut outputs).unwrap();
    assert_no_fallback(codec);
    assert!(shards.iter().all(Aligned::canaries_live), "a canary died");
    shards[data.len()..].iter_mut().map(|shard| shard.bytes().to_vec()).collect()
}

#[test]
fn threads_do_not_change_the_result() {
    // Packets of many lines, of one line, and of no whole number of lines.
    for (spec, packet, stripes) in [
        ("10+4", 64, 801),
        ("cauchy:k=3,m=2,w=8", 4096, 17),
        ("rdp:k=4", 1000, 90),
        ("5+1", 64, 999),
    ] {
        let codec = |threads, split, kernel| {
            let options =
                CodecOptions::default().packet(packet).threads(threads).split(split).kernel(kernel);
            Codec::with_options(code(spec), options).unwrap()
        };
        let one = codec(1, Split::Stripe, KernelChoice::Only(Kernel::Scalar));
        let k = one.code().nodes().filter(|&node| one.code().holds_data(node)).count();
        let parity = one.code().node_count() - k;
        let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, stripes * one.strip())).collect();
        let expected = encoded(&one, &data, parity, 0);
        for split in Split::ALL {
            for threads in [0, 1, 2, 3, 8] {
                for kernel in common::candidates() {
                    let codec = codec(threads, split, kernel);
                    let what = format!("{spec} {packet} by {split} on {threads} {kernel:?}");
                    assert!(encoded(&codec, &data, parity, 0) == expected, "{what}");
                    assert!(recovers(&codec, &data, &expected), "{what}");
                }
            }
        }
    }
}

/// What a codec says about its threads is what they do: a single node, a single row, a packet of
/// one line and the work of one thread can be shared by stripes alone.
#[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
#[test]
fn codecs_tell_how_work_is_shared() {
    for (spec, packet, threads, divisible) in [
        ("cauchy:k=3,m=3,w=4", 128, 2, &[Split::Node, Split::Columns, Split::Rows][..]),
        ("cauchy:k=3,m=3,w=4", 64, 2, &[Split::Node, Split::Rows]),
        ("cauchy:k=3,m=1,w=4", 128, 2, &[Split::Columns, Split::Rows]),
        ("cauchy:k=3,m=3,w=4", 128, 1, &[]),
        ("isal-cauchy:k=3,m=3", 128, 2, &[Split::Node, Split::Columns]),
        ("isal-cauchy:k=3,m=3", 64, 2, &[Split::Node]),
        ("isal-cauchy:k=3,m=1", 128, 2, &[Split::Columns]),
    ] {
        let code = code(spec);
        for split in Split::ALL {
            if code.symbols().is_some() && split == Split::Rows {
                continue;
            }
            let options = CodecOptions::default().packet(packet).threads(threads).split(split);
            let codec = Codec::with_options(code.clone(), options).unwrap();
            assert_eq!(codec.split_in_use(), Split::Stripe, "nothing has run");
            let data: Vec<Vec<u8>> = (0..3).map(|node| fill(node, 4096)).collect();
            encoded(&codec, &data, parity_nodes(&codec).len(), 0);
            let expected = if divisible.contains(&split) { split } else { Split::Stripe };
            assert_eq!(codec.split_in_use(), expected, "{spec} {packet} {threads} {split}");
        }
    }
}

/// Some kernels run these schedules in parts, over several tiles of stripes: in groups of outputs,
/// and in pieces that keep values for each other.
#[test]
fn long_schedules_are_no_different() {
    for (spec, packet, stripes) in
        [("20+8", 64, 250), ("20+8", 96, 50), ("bbdpg:k=12,m=3,m2=6", 64, 60)]
    {
        let codec = |kernel| {
            let plan = PlanOptions::default().rounds(0);
            let options = CodecOptions::default().packet(packet).kernel(kernel).plan(plan);
            Codec::with_options(code(spec), options).unwrap()
        };
        let plain = codec(KernelChoice::Only(Kernel::Scalar));
        let parity = parity_nodes(&plain).len();
        let k = plain.code().nodes().filter(|&node| plain.code().holds_data(node)).count();
        let data: Vec<Vec<u8>> = (0..k).map(|node| fill(node, stripes * plain.strip())).collect();
        let expected = reference_parity(spec, &data, packet);
        for kernel in common::kernels() {
            let codec = codec(kernel);
            assert!(encoded(&codec, &data, parity, 0) == expected, "{spec} {packet} {kernel:?}");
            assert!(recovers(&codec, &data, &expected), "{spec} {packet} {kernel:?}");
        }
    }
}

/// Loses as many data shards as there are parity shards, and checks that they are recovered.
fn recovers(codec: &Codec, data: &[Vec<u8>], parity: &[Vec<u8>]) -> bool {
    let lost = parity.len().min(data.len());
    let mut back = vec![vec![0xC3; data[0].len()]; lost];
    let mut buffers: Vec<Buffer<'_>> = back.iter_mut().map(|b| Buffer::Target(b)).collect();
    buffers.extend(data[lost..].iter().chain(parity).map(|shard| Buffer::Source(shard)));
    buffers.resize_with(codec.code().node_count(), || Buffer::Absent);
    codec.reconstruct_at(1, &mut buffers).unwrap();
    back[..] == data[..lost]
}

#[test]
fn stages_that_a_code_lacks_are_refused() {
    let codec: Codec = "4+2".parse().unwrap();
    for stage in [0, 2] {
        let mut buffers: Vec<Buffer<'_>> = (0..6).map(|_| Buffer::Absent).collect();
        let error = codec.reconstruct_at(stage, &mut buffers).unwrap_err();
        assert_eq!(error.kind(), paritas::ErrorKind::Parameters);
        assert!(error.to_string().contains(&format!("has the stages 1 to 1; got {stage}")));
    }
}

/// Shards of later stages do not count as present, because they are not read.
#[test]
fn only_shards_of_the_stage_are_counted() {
    let codec: Codec = "dpg:k=6,m=2,m2=4".parse().unwrap();
    let mut shards = vec![vec![0; codec.strip()]; 10];
    let (lost, rest) = shards.split_at_mut(3);
    let mut buffers: Vec<Buffer<'_>> = lost.iter_mut().map(|b| Buffer::Target(b)).collect();
    buffers.extend(rest.iter().map(|shard| Buffer::Source(shard)));
    let error = codec.reconstruct_at(1, &mut buffers).unwrap_err();
    assert!(error.to_string().contains("3 of 8 shards are missing; any 2 may be"), "{error}");
    assert_eq!((error.expected(), error.given()), (Some(6), Some(5)));
}

#[test]
fn unavailable_kernels_are_refused() {
    for kernel in Kernel::ALL.iter().copied().filter(|kernel| !kernel.is_available()) {
        let options = CodecOptions::default().kernel(KernelChoice::Only(kernel));
        let error = Codec::with_options(code("4+2"), options).unwrap_err();
        assert_eq!(error.kind(), paritas::ErrorKind::Kernel);
    }
}

#[test]
fn kernels_of_the_lab_serve_only_if_asked_for() {
    assert!(Kernel::Packetwise(Width::Bits64).is_available(), "any processor has them");
    assert!(Kernel::candidates().all(|kernel| !kernel.is_of_the_lab()));
    for packet in [1, 8, 16, 64, 100, 4096] {
        assert!(!KernelChoice::Auto.resolve(packet).is_of_the_lab(), "{packet}");
    }
    for kernel in Kernel::available().filter(|kernel| kernel.is_of_the_lab()) {
        let named: KernelChoice = kernel.name().parse().unwrap();
        let codec = common::codec("4+2", 64, named);
        assert_eq!(codec.kernel_name(), kernel.name());
        // Words have kernels of their own.
        let words = common::codec("isal-cauchy:k=4,m=2", 64, named);
        assert!(words.kernel_name().starts_with("words-"));
    }
}

/// Listings need no processor that has the kernel; those of x86-64 exist where iced-x86 is built.
#[test]
fn code_is_listed_for_other_processors() {
    let codec = common::codec("4+2", 64, KernelChoice::Auto);
    let (have, want) = (codec.code().stored(Role::Data), codec.code().stored(Role::Parity));
    let listing = |kernel| {
        let call = Call { bytes: 1 << 19, align: 64, kernel: Some(kernel) };
        codec.explain(&have, &want, &call).unwrap().parts[0].listing.clone()
    };
    let plain = listing(Kernel::JitNeon).unwrap();
    assert!(plain.contains("eor v") && !plain.contains("eor3"), "{plain}");
    assert!(listing(Kernel::JitNeonSha3).unwrap().contains("eor3 v"));
    assert_eq!(listing(Kernel::JitAvx2).is_some(), cfg!(target_arch = "x86_64"));
    assert_eq!(listing(Kernel::Scalar), None);
}

/// A compiled kernel that is asked for by name says why the tiled one ran.
#[test]
fn programs_that_are_not_compiled_are_reported() {
    let compiled = Kernel::available().filter(|kernel| kernel.machine().is_some());
    for kernel in compiled.map(KernelChoice::Only) {
        let codec = common::codec("4+2", 20, kernel);
        let mut parity = vec![vec![0; 3 * codec.strip()]; 2];
        codec.encode(&vec![fill(1, 3 * codec.strip()); 4], &mut parity).unwrap();
        let why = codec.fallback().unwrap();
        assert!(why.ends_with("the packets of a program are not whole registers"), "{why}");
    }
}
