//! Fuzzes reconstruction. The input chooses a code, a packet, a kernel, and for every node whether
//! its shard is at hand, wanted or absent, with perhaps one buffer of a wrong length. Without a
//! named kernel, questions are answered directly or by transforms.
//!
//! Wanted shards must come back as they were, exactly when the code can recover them. Wrong lengths
//! must be errors. Nothing outside a wanted shard may be written.

#![no_main]

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use libfuzzer_sys::arbitrary::{self, Unstructured};
use libfuzzer_sys::fuzz_target;
use paritas::research::{Order, Pass, PlanOptions};
use paritas::{Buffer, Code, Codec, CodecOptions, ErrorKind, Kernel, KernelChoice};

/// MDS codes: any k shards, and no fewer, determine any other.
const SPECS: [&str; 20] = [
    "1+1",
    "1+3",
    "2+2",
    "4+2",
    "5+3",
    "10+4",
    "cauchy:k=3,m=3,w=8",
    "cauchy:k=2,m=2,w=3,points=7.1.0.4",
    "rdp:k=1",
    "rdp:k=4",
    "rdp:k=5",
    "evenodd:k=1",
    "evenodd:k=4",
    "evenodd:k=5",
    "isal-cauchy:k=3,m=2",
    "backblaze:k=4,m=3",
    "backblaze:k=17,m=16",
    "backblaze:k=40,m=40",
    "leopard8:k=5,m=3",
    "reed-solomon:k=3,m=2,w=16",
];
/// Those of them that are only answered directly: planning takes too long.
const WIDE: [&str; 2] = ["backblaze:k=17,m=16", "backblaze:k=40,m=40"];
const PACKETS: [usize; 12] = [1, 3, 8, 15, 16, 31, 32, 33, 64, 65, 100, 300];
const PASSES: [Pass; 5] = [Pass::Direct, Pass::Smart, Pass::Unweighted, Pass::Weighted, Pass::Slp];
const ORDERS: [Order; 2] = [Order::Parity, Order::Data];

/// Bytes before and after every wanted shard, which must stay as they are.
const CANARY: usize = 64;
const UNTOUCHED: u8 = 0xC3;

/// The choices that determine a code and a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Choice {
    spec: &'static str,
    packet: usize,
    /// `None` is the usual choice, which begins with direct answers.
    kernel: Option<Kernel>,
    pass: Pass,
    order: Order,
}

/// What is true of a node's shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    AtHand,
    Wanted,
    Absent,
}

fuzz_target!(|input: &[u8]| {
    let _ = run(&mut Unstructured::new(input));
});

fn run(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    let spec = *input.choose(&SPECS)?;
    let is_direct = WIDE.contains(&spec) || input.ratio(1, 4)?;
    let choice = Choice {
        spec,
        packet: *input.choose(&PACKETS)?,
        kernel: if is_direct { None } else { Some(*input.choose(&kernels)?) },
        pass: *input.choose(&PASSES)?,
        order: *input.choose(&ORDERS)?,
    };
    let codec = codec(choice);
    let stripes = input.int_in_range(0..=9)?;
    let shards = shards(&codec, choice, stripes * codec.strip(), input.arbitrary()?);
    let states = &[State::AtHand, State::Wanted, State::Absent];
    let states: Vec<State> =
        shards.iter().map(|_| input.choose(states).copied()).collect::<Result<_, _>>()?;
    let mut lengths = vec![stripes * codec.strip(); shards.len()];
    let damaged = input.ratio(1, 4)?.then(|| input.choose_index(shards.len())).transpose()?;
    if let Some(node) = damaged {
        lengths[node] = input.int_in_range(0..=lengths[node] + codec.strip() + 1)?;
    }
    check(&codec, &shards, &states, &lengths);
    Ok(())
}

/// Returns the codec, kept from earlier inputs if possible, so that its programs are used again.
fn codec(choice: Choice) -> Rc<Codec> {
    thread_local! {
        static CODECS: RefCell<HashMap<Choice, Rc<Codec>>> = RefCell::default();
    }
    let Choice { spec, packet, kernel, pass, order } = choice;
    CODECS.with_borrow_mut(|codecs| {
        Rc::clone(codecs.entry(choice).or_insert_with(|| {
            let code = Code::new(&spec.parse().expect("a legal spec")).expect("a legal code");
            let kernel = kernel.map_or(KernelChoice::Auto, KernelChoice::Only);
            let plan = PlanOptions::default().pass(pass).order(order);
            let options =
                CodecOptions::default().packet(packet).kernel(kernel).plan(plan).threads(1);
            Rc::new(Codec::with_options(code, options).expect("the kernel is available"))
        }))
    })
}

/// Returns data, and the parity that the plainest codec computes from it.
fn shards(codec: &Codec, choice: Choice, length: usize, seed: u8) -> Vec<Vec<u8>> {
    let data_nodes = codec.code().nodes().filter(|&node| codec.code().holds_data(node)).count();
    let byte = |i: usize, j: usize| (73 * (i + 1 + usize::from(seed)) * (j + 1) % 251) as u8;
    let shard = |j| -> Vec<u8> { (0..length).map(|i| byte(i, j)).collect() };
    let data: Vec<Vec<u8>> = (0..data_nodes).map(shard).collect();
    let mut parity = vec![vec![0; length]; codec.code().node_count() - data_nodes];
    let plainest =
        Choice { kernel: Some(Kernel::Scalar), pass: Pass::Direct, order: Order::Parity, ..choice };
    let sources: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut targets: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
    self::codec(plainest).encode(&sources, &mut targets).expect("the shards fit");
    [data, parity].concat()
}

/// Checks a reconstruction. `lengths` are those of the buffers that are passed; one may differ from
/// the shards'.
fn check(codec: &Codec, shards: &[Vec<u8>], states: &[State], lengths: &[usize]) {
    let resized = |(shard, &length): (&Vec<u8>, &usize)| {
        let mut shard = shard.clone();
        shard.resize(length, 0);
        shard
    };
    let sources: Vec<Vec<u8>> = shards.iter().zip(lengths).map(resized).collect();
    let mut targets: Vec<Vec<u8>> =
        lengths.iter().map(|&length| vec![UNTOUCHED; length + 2 * CANARY]).collect();
    let mut buffers: Vec<Buffer<'_>> = targets
        .iter_mut()
        .zip(&sources)
        .zip(states)
        .map(|((target, source), state)| match state {
            State::AtHand => Buffer::Source(source),
            State::Wanted => Buffer::Target(&mut target[CANARY..][..source.len()]),
            State::Absent => Buffer::Absent,
        })
        .collect();
    let result = codec.reconstruct_into(&mut buffers);
    drop(buffers);

    let wrong_length = |node: usize| lengths[node] != shards[node].len();
    let nodes_that_are = |state| (0..shards.len()).filter(move |&node| states[node] == state);
    let wanted = nodes_that_are(State::Wanted).count();
    let lost = shards.len() - nodes_that_are(State::AtHand).count();
    match result {
        Ok(()) => {
            assert!(wanted == 0 || lost <= codec.code().tolerance(), "{states:?}");
            for node in nodes_that_are(State::Wanted) {
                assert!(!wrong_length(node), "node {node} of {lengths:?}");
                assert!(targets[node][CANARY..][..lengths[node]] == shards[node], "node {node}");
            }
        }
        Err(error) if error.kind() == ErrorKind::NotEnough => {
            assert!(wanted > 0 && lost > codec.code().tolerance(), "{error}");
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Length, "{error}");
            let given = |node: &usize| states[*node] != State::Absent;
            assert!((0..shards.len()).filter(given).any(wrong_length), "{error}");
        }
    }
    for (target, &length) in targets.iter().zip(lengths) {
        let outside = target[..CANARY].iter().chain(&target[CANARY + length..]);
        assert!(outside.copied().eq([UNTOUCHED; 2 * CANARY]), "a canary died");
    }
}
