//! Measures throughput on one thread, from memory to memory, and checks every answer.
//!
//! MB/s is bytes of the object / seconds / 10^6. The object has 1024 blocks. The time of a decoder
//! includes drawing the graph and solving it. Checksums are switched off, because raptorq has none.
//! raptorq's symbols have at most 65,535 bytes, so a larger block becomes two symbols, in two of
//! its source blocks of 1024.
//!
//! raptorq allocates what it returns. So do [`LtEncoder::encode`] (which always makes checksums)
//! and [`LtDecoder::reconstruct`]; these are the samples "into new memory". The samples "at hand"
//! leave out the time that the system takes to give memory: ours write to memory that was used
//! before, and raptorq runs in a process of its own, whose allocator gives no memory back.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Instant;

use cpu_time::ThreadTime;
use paritas::lt::{Decoder, LtBlock, LtCode, LtDecoder, LtEncoder, LtInfo, LtOptions, Method};
use paritas::{Kernel, KernelChoice, Pages};
use paritas_tune::measure::{Pairs, Rounds, Side};
use raptorq::{
    EncodingPacket, ObjectTransmissionInformation, SourceBlockDecoder, SourceBlockEncoder,
    SourceBlockEncodingPlan,
};

const DATA: usize = 1024;
/// Number of blocks that a decoder gets: 1.05 k of the 1.2 k that were made.
const KEPT: usize = DATA * 105 / 100;

/// Seconds that passed, and seconds of the processor.
#[derive(Clone, Copy)]
struct Seconds(f64, f64);

/// A watch of both.
struct Watch(Instant, ThreadTime);

impl Watch {
    fn start() -> Self {
        Self(Instant::now(), ThreadTime::now())
    }

    fn stop(self) -> Seconds {
        Seconds(self.0.elapsed().as_secs_f64(), self.1.elapsed().as_secs_f64())
    }
}

/// A function that runs the measured operation once, and checks its answer.
type Sample = Box<dyn FnMut() -> Seconds>;

/// Returns pseudorandom content of `bytes` bytes.
fn object(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..bytes.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(bytes).collect()
}

/// Returns the numbers below `count` in a random order.
pub fn order(count: usize, seed: usize) -> Vec<usize> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed as u64 + 1);
    let mut order: Vec<usize> = (0..count).collect();
    for end in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(end, (state % (end as u64 + 1)) as usize);
    }
    order
}

fn options() -> LtOptions {
    LtOptions::default().threads(1)
}

fn code(spec: &str) -> LtCode {
    LtCode::new(&spec.parse().expect("a spec")).expect("a code")
}

/// Returns the sample of encoding into memory that was used before.
fn paritas_encode(spec: &str, object: Vec<u8>) -> Sample {
    let code = code(spec);
    let bytes = object.len() / DATA;
    let mut memory = Pages::zeroed(code.blocks() * bytes).expect("memory");
    Box::new(move || {
        memory.fill(0xEE);
        let start = Watch::start();
        let encoder = LtEncoder::new(code.clone(), options()).expect("an encoder");
        let mut blocks: Vec<&mut [u8]> = memory.chunks_exact_mut(bytes).collect();
        let numbers: Vec<usize> = (0..blocks.len()).collect();
        encoder.encode_into(&object, &numbers, &mut blocks).expect("encode");
        start.stop()
    })
}

/// Returns the sample of encoding by the call that returns the blocks.
fn paritas_encode_new(spec: &str, object: Vec<u8>) -> Sample {
    let code = code(spec);
    Box::new(move || {
        let start = Watch::start();
        let encoder = LtEncoder::new(code.clone(), options()).expect("an encoder");
        let (info, blocks) = encoder.encode(&object).expect("blocks");
        let seconds = start.stop();
        assert_eq!(blocks.count(), info.blocks());
        seconds
    })
}

/// The places of a decoder's blocks and of its result.
#[derive(Clone, Copy)]
struct Places {
    /// Whether each block is in an allocation of its own, as if it came from a network. Otherwise
    /// blocks stay where the encoder put them.
    apart: bool,
    /// Whether the object goes into memory that was used before.
    at_hand: bool,
}

/// Returns the sample of decoding from 1.05 k of the code's blocks, in a new order each time.
fn paritas_decode(spec: &str, object: Vec<u8>, places: Places) -> Sample {
    let encoder = LtEncoder::new(code(spec), options()).expect("an encoder");
    let (_, made) = encoder.encode(&object).expect("blocks");
    let info = LtInfo::unchecked(code(spec), object.len() as u64, made.block_bytes());
    let info = info.expect("info");
    let apart: Vec<Vec<u8>> = made.iter().map(|block| block.bytes.to_vec()).collect();
    let mut round = 0;
    let mut kept = Pages::zeroed(object.len()).expect("memory");
    Box::new(move || {
        round += 1;
        let order = order(made.count(), round);
        kept.fill(0xEE);
        let start = Watch::start();
        let mut decoder = LtDecoder::new(&info, options()).expect("a decoder");
        for &number in &order[..KEPT] {
            let bytes = if places.apart { &apart[number] } else { made.get(number).expect("made") };
            decoder.push(LtBlock { number, bytes }).expect("a block");
        }
        let new = match places.at_hand {
            true => decoder.reconstruct_into(&mut kept).map(|()| None),
            false => decoder.reconstruct().map(Some),
        };
        let seconds = start.stop();
        assert!(new.expect("enough").as_deref().unwrap_or(&kept) == object, "a wrong object");
        seconds
    })
}

/// The source blocks into which raptorq cuts an object.
struct Parts {
    config: ObjectTransmissionInformation,
    /// Number of bytes of a source block.
    bytes: usize,
}

impl Parts {
    fn new(object: usize) -> Self {
        let mut symbol = object / DATA;
        while symbol > usize::from(u16::MAX) {
            symbol /= 2;
        }
        let bytes = symbol * DATA;
        let parts = object / bytes;
        let config =
            ObjectTransmissionInformation::new(object as u64, symbol as u16, parts as u8, 1, 8);
        Self { config, bytes }
    }

    fn encode(&self, object: &[u8]) -> Vec<Vec<EncodingPacket>> {
        let encode = |(part, data): (usize, &[u8])| {
            let plan = SourceBlockEncodingPlan::generate(DATA as u16);
            let encoder =
                SourceBlockEncoder::with_encoding_plan(part as u8, &self.config, data, &plan);
            let mut packets = encoder.source_packets();
            packets.extend(encoder.repair_packets(0, DATA as u32 / 5));
            packets
        };
        object.chunks(self.bytes).enumerate().map(encode).collect()
    }
}

fn raptorq_encode(object: Vec<u8>) -> Sample {
    let parts = Parts::new(object.len());
    Box::new(move || {
        let start = Watch::start();
        let made = parts.encode(&object);
        let seconds = start.stop();
        assert_eq!(made[0].len(), DATA + DATA / 5);
        seconds
    })
}

/// Returns the sample of raptorq's decoding from 1.05 k of the 1.2 k symbols, in a new order each
/// time.
fn raptorq_decode(object: Vec<u8>) -> Sample {
    let parts = Parts::new(object.len());
    let packets = parts.encode(&object);
    let mut round = 0;
    Box::new(move || {
        round += 1;
        let order = order(DATA + DATA / 5, round);
        let given: Vec<Vec<EncodingPacket>> = packets
            .iter()
            .map(|packets| order[..KEPT].iter().map(|&number| packets[number].clone()).collect())
            .collect();
        let start = Watch::start();
        let mut rebuilt = Vec::with_capacity(object.len());
        for (part, packets) in given.into_iter().enumerate() {
            let mut decoder =
                SourceBlockDecoder::new(part as u8, &parts.config, parts.bytes as u64);
            rebuilt.extend(decoder.decode(packets).expect("enough"));
        }
        let seconds = start.stop();
        assert!(rebuilt == object, "a wrong object");
        seconds
    })
}

/// Returns raptorq's sample of encoding or decoding, as `kind` says.
fn raptorq(kind: &str, block: usize) -> Sample {
    match kind {
        "encode" => raptorq_encode(object(DATA * block)),
        "decode" => raptorq_decode(object(DATA * block)),
        _ => panic!("raptorq encodes and decodes"),
    }
}

/// Takes raptorq's sample for every line of input, and prints its seconds. [`elsewhere`] starts a
/// process that does this.
pub fn serve(kind: &str, block: usize) {
    let mut sample = raptorq(kind, block);
    for line in std::io::stdin().lines() {
        line.expect("a line");
        let Seconds(wall, processor) = sample();
        println!("{wall} {processor}");
    }
}

/// Returns raptorq's sample, taken in another process. The allocator there (glibc's) takes all
/// memory from one heap and gives none back, so there are no page faults after the first sample.
fn elsewhere(kind: &str, block: usize) -> Sample {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["raptorq", kind, &(block >> 10).to_string()])
        .env("MALLOC_MMAP_MAX_", "0")
        .env("MALLOC_TRIM_THRESHOLD_", (64_u64 << 30).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut questions = child.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    Box::new(move || {
        writeln!(questions).expect("a question");
        let line = answers.next().expect("an answer").expect("a line");
        let mut seconds = line.split(' ').map(|word| word.parse().expect("seconds"));
        let mut next = || seconds.next().expect("two numbers");
        Seconds(next(), next())
    })
}

/// Takes pairs of two samples, back to back, in alternating order: at least `rounds` pairs, and up
/// to four times as many while the ratio of the seconds of `clock` is uncertain.
fn pairs(
    rounds: usize,
    clock: fn(Seconds) -> f64,
    mut sample: impl FnMut(Side) -> Seconds,
) -> impl Iterator<Item = (Seconds, Seconds)> {
    // The first runs warm up.
    sample(Side::Subject);
    sample(Side::Base);
    let (mut subject, mut base) = (Vec::new(), Vec::new());
    let taken = Pairs::take(
        Rounds::from_least(rounds),
        |ratio| !ratio.is_noisy(),
        |side| {
            let seconds = sample(side);
            if side == Side::Subject { &mut subject } else { &mut base }.push(seconds);
            Ok::<_, Infallible>(clock(seconds))
        },
    );
    let Ok(_) = taken;
    subject.into_iter().zip(base)
}

/// The comparisons. Both sides use the same kind of memory, except in the last three: there ours
/// uses memory at hand, and raptorq new memory, because it has no other call.
const BESIDE: [(&str, &str); 9] = [
    ("encode paritas into new memory", "encode raptorq into new memory"),
    ("encode paritas at hand", "encode raptorq at hand"),
    ("decode paritas into new memory", "decode raptorq into new memory"),
    ("decode paritas into new memory (blocks apart)", "decode raptorq into new memory"),
    ("decode paritas at hand", "decode raptorq at hand"),
    ("decode paritas at hand (blocks apart)", "decode raptorq at hand"),
    ("encode paritas at hand", "encode raptorq into new memory"),
    ("decode paritas at hand", "decode raptorq into new memory"),
    ("decode paritas at hand (blocks apart)", "decode raptorq into new memory"),
];

/// Measures all comparisons, and prints every pair.
pub fn peers(spec: &str, rounds: usize, block: usize) {
    let object = object(DATA * block);
    let decode = |apart, at_hand| {
        let places = Places { apart, at_hand };
        paritas_decode(spec, object.clone(), places)
    };
    let mut samples: HashMap<&str, Sample> = HashMap::from([
        ("encode paritas into new memory", paritas_encode_new(spec, object.clone())),
        ("encode raptorq into new memory", raptorq("encode", block)),
        ("encode paritas at hand", paritas_encode(spec, object.clone())),
        ("encode raptorq at hand", elsewhere("encode", block)),
        ("decode paritas into new memory", decode(false, false)),
        ("decode paritas into new memory (blocks apart)", decode(true, false)),
        ("decode raptorq into new memory", raptorq("decode", block)),
        ("decode paritas at hand", decode(false, true)),
        ("decode paritas at hand (blocks apart)", decode(true, true)),
        ("decode raptorq at hand", elsewhere("decode", block)),
    ]);
    println!(
        "subject,base,round,bytes,seconds,base_seconds,processor_seconds,base_processor_seconds"
    );
    for (subject, base) in BESIDE {
        let sample = |side| {
            let name = if side == Side::Subject { subject } else { base };
            samples.get_mut(name).expect("a sample")()
        };
        for (round, (ours, theirs)) in pairs(rounds, |Seconds(wall, _)| wall, sample).enumerate() {
            let (Seconds(wall, processor), Seconds(base_wall, base_processor)) = (ours, theirs);
            println!(
                "{subject},{base},{round},{},{wall:.6},{base_wall:.6},{processor:.6},{base_processor:.6}",
                object.len()
            );
        }
    }
}

/// A setup to measure: that of a cell of one of the evaluation's tables of throughput, or another.
struct Setup {
    /// The number of the table, or the name of another setup.
    table: String,
    variant: String,
    c: String,
    delta: String,
    /// Number of data blocks.
    data: usize,
    spec: String,
    options: LtOptions,
}

impl Setup {
    fn new(table: &str, variant: &str, blocks: usize, cell: (&str, &str)) -> Self {
        Self::of(DATA, table, variant, blocks, cell)
    }

    fn of(
        data: usize,
        table: &str,
        variant: &str,
        blocks: usize,
        (c, delta): (&str, &str),
    ) -> Self {
        let spec = format!("lt:k={data},n={blocks},c={c},delta={delta},variant={variant}");
        let [table, variant, c, delta] = [table, variant, c, delta].map(str::to_owned);
        Self { table, variant, c, delta, data, spec, options: options().method(Method::Lazy) }
    }

    fn with(self, method: Method, kernel: KernelChoice) -> Self {
        Self { options: self.options.method(method).kernel(kernel), ..self }
    }
}

/// Measures decoding of codes with 5 k blocks, which come in random order until they suffice: every
/// variant in every cell. In a cell, every table is measured in pairs with table 7, which is the
/// plain code with the lazy decoder.
pub fn variants(c: &str, delta: &str, rounds: usize, block: usize) {
    let object = Rc::new(object(DATA * block));
    println!("{HEAD}");
    for delta in delta.split(',') {
        for c in c.split(',') {
            compare(cell(c, delta), &object, rounds);
        }
    }
}

/// Measures the extremes of section X and inactivation, in pairs with the first of them.
pub fn extremes(rounds: usize, block: usize) {
    println!("{HEAD}");
    compare(beside(), &Rc::new(object(DATA * block)), rounds);
}

/// Measures the XOR of 64 bits in pairs with the best one, both with the lazy decoder, for an object
/// of `bytes` bytes that has fewer and fewer, longer and longer blocks (section VI.3).
pub fn blocks(bytes: usize, data: &[usize], rounds: usize) {
    let object = Rc::new(object(bytes));
    println!("{HEAD}");
    for &k in data {
        let setup = |table: &str| Setup::of(k, table, "plain", 5 * k, ("1.4", "0.2"));
        let words = setup("4").with(Method::Lazy, KernelChoice::Only(Kernel::Scalar));
        compare(vec![words, setup("7")], &object, rounds);
    }
}

const HEAD: &str = "table,variant,c,delta,k,blocks,round,seconds,base_seconds,processor_seconds,base_processor_seconds,mb_per_second,mb_per_processor_second";

/// Returns the setups of all tables of throughput in one cell.
fn cell(c: &str, delta: &str) -> Vec<Setup> {
    let scalar = KernelChoice::Only(Kernel::Scalar);
    let paper = |table: &str, variant| Setup::new(table, variant, 5 * DATA, (c, delta));
    let mut setups = vec![
        paper("3", "plain").with(Method::Greedy, scalar),
        paper("4", "plain").with(Method::Lazy, scalar),
    ];
    for (variant, _, table, _) in crate::simulate::variants() {
        setups.push(paper(&table.to_string(), variant));
    }
    setups
}

/// Returns the setups without a cell: values of C that give few XORs, or need few blocks, and
/// inactivation.
fn beside() -> Vec<Setup> {
    let extremes = [("100", "0.1"), ("30", "0.5"), ("0.1", "1"), ("0.5", "1")];
    let mut setups: Vec<Setup> =
        extremes.map(|cell| Setup::new("extreme", "uniform", 5 * DATA, cell)).into();
    for (variant, blocks) in
        [("plain", 5 * DATA), ("uniform", 5 * DATA), ("uniform", DATA * 6 / 5 + 1)]
    {
        let name = format!("inactivation n={blocks}");
        let setup = Setup::new(&name, variant, blocks, ("0.01", "1"));
        setups.push(setup.with(Method::Inactivation, KernelChoice::Auto));
    }
    setups
}

/// Measures each setup in pairs with that of table 7, or else with the first, and prints every
/// pair. The processor's seconds decide when there are enough pairs: one thread decodes from memory to
/// memory and waits for nothing, so only other programs make the seconds that pass longer.
fn compare(setups: Vec<Setup>, object: &Rc<Vec<u8>>, rounds: usize) {
    let mut samples: Vec<(&Setup, usize, Sample)> = Vec::new();
    for setup in &setups {
        let mut orders: Vec<Vec<usize>> =
            (0..TRIED_ORDERS).filter_map(|seed| sufficient(setup, seed)).collect();
        orders.sort_by_key(Vec::len);
        if orders.is_empty() {
            eprintln!("{}: none of {TRIED_ORDERS} orders decodes; left out", setup.spec);
            continue;
        }
        let typical = orders.swap_remove(orders.len() / 2);
        let count = typical.len();
        samples.push((setup, count, decode_until_ready(setup, typical, Rc::clone(object))));
    }
    let base = samples.iter().position(|(setup, ..)| setup.table == "7").unwrap_or(0);
    for subject in 0..samples.len() {
        let (Setup { table, variant, c, delta, data, .. }, blocks, _) = samples[subject];
        let sample = |side| samples[if side == Side::Subject { subject } else { base }].2();
        for (round, (ours, theirs)) in
            pairs(rounds, |Seconds(_, processor)| processor, sample).enumerate()
        {
            let (Seconds(wall, processor), Seconds(base_wall, base_processor)) = (ours, theirs);
            let speed = |seconds: f64| object.len() as f64 / seconds / 1e6;
            println!(
                "{table},{variant},{c},{delta},{data},{blocks},{round},{wall:.6},{base_wall:.6},{processor:.6},\
                 {base_processor:.6},{:.1},{:.1}",
                speed(wall),
                speed(processor)
            );
        }
    }
}

/// Number of random orders that are tried. The one that takes the median number of blocks is
/// measured.
const TRIED_ORDERS: usize = 9;

/// Returns the blocks that come until the data is determined. Returns `None` if all are too few.
fn sufficient(setup: &Setup, seed: usize) -> Option<Vec<usize>> {
    let code = code(&setup.spec);
    let mut order = order(code.blocks(), seed);
    let mut solver = Decoder::new(&code.graph().expect("a graph"), setup.options.method);
    let last = order.iter().position(|&block| solver.push(block).expect("a block"))?;
    order.truncate(last + 1);
    Some(order)
}

/// Returns the sample of decoding the blocks `order`.
fn decode_until_ready(setup: &Setup, order: Vec<usize>, object: Rc<Vec<u8>>) -> Sample {
    let code = code(&setup.spec);
    let encoder = LtEncoder::new(code.clone(), options()).expect("an encoder");
    let mut blocks = vec![vec![0; object.len() / setup.data]; order.len()];
    let mut targets: Vec<&mut [u8]> = blocks.iter_mut().map(Vec::as_mut_slice).collect();
    encoder.encode_into(&object, &order, &mut targets).expect("encode");
    let info = LtInfo::unchecked(code, object.len() as u64, blocks[0].len()).expect("info");
    let (options, mut rebuilt) = (setup.options, vec![0; object.len()]);
    Box::new(move || {
        rebuilt.fill(0xEE);
        let start = Watch::start();
        let mut decoder = LtDecoder::new(&info, options).expect("a decoder");
        for (&number, bytes) in order.iter().zip(&blocks) {
            decoder.push(LtBlock { number, bytes: &bytes[..] }).expect("a block");
        }
        decoder.reconstruct_into(&mut rebuilt).expect("enough");
        let seconds = start.stop();
        assert!(rebuilt == *object, "a wrong object");
        seconds
    })
}
