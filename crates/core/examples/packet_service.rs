//! A service that protects packets: it encodes groups of small packets, and repairs each group that
//! arrives with other losses. Every pattern of losses is met in turn or drawn at random, once by a
//! codec that has not seen it, and then again. Each repair is timed by itself.
//!
//!     cargo run --release -p paritas --example packet_service [SPEC BYTES LOST [KERNEL]]...
//!
//! Prints, for each code, the median and the largest time of an encoding, of a repair and of the
//! same repair again in microseconds, and the time from the spec to the first encoded group. Each
//! pattern is repaired in several rounds, each with a new codec, and its least time counts, so that
//! the largest time is one of the library, not of other programs on the machine.

use std::error::Error;
use std::time::Instant;

use paritas::erasure::combinations;
use paritas::{Buffer, Code, Codec, CodecOptions};

/// Largest number of patterns; if there are more, this many are drawn at random.
const PATTERNS: usize = 1001;

/// Number of codecs that repair each pattern twice; between the two they repair all others.
const ROUNDS: usize = 9;

const USUAL: [&str; 6] = [
    "backblaze:k=10,m=4",
    "10+4",
    "isal-cauchy:k=20,m=4",
    "20+4",
    "backblaze:k=32,m=32",
    "cauchy:k=32,m=32",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("code, bytes, lost: first; encode; repair; again: median, largest (microseconds)");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for asked in arguments.chunks(4) {
        let [spec, bytes, lost, kernel @ ..] = asked else {
            return Err("name a spec, the bytes of a packet, and the number of losses".into());
        };
        let kernel = kernel.first().map_or("auto", String::as_str);
        measure(spec, bytes.parse()?, lost.parse()?, kernel)?;
    }
    for spec in USUAL.into_iter().filter(|_| arguments.is_empty()) {
        let code = Code::new(&spec.parse()?)?;
        let bytes = if code.node_count() > 60 { 1024 } else { 2048 };
        measure(spec, bytes, code.tolerance(), "auto")?;
    }
    Ok(())
}

fn measure(spec: &str, bytes: usize, lost: usize, kernel: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let options = CodecOptions::default().threads(1).kernel(kernel.parse()?);
    let codec = Codec::with_options(Code::new(&spec.parse()?)?, options.clone())?;
    let bytes = bytes.next_multiple_of(codec.shard_unit());
    let (k, m) = (codec.data_shards(), codec.parity_shards());
    let packet = |number: usize| (0..bytes).map(move |at| (at * at + 31 * number) as u8).collect();
    let data: Vec<Vec<u8>> = (0..k).map(packet).collect();
    let mut parity = vec![vec![0; bytes]; m];
    let made = Instant::now();
    codec.encode(&data, &mut parity)?;
    let first = (start.elapsed() - (made - start), made - start);

    let mut encodings = vec![f64::INFINITY; PATTERNS];
    for time in &mut encodings {
        let start = Instant::now();
        codec.encode(&data, &mut parity)?;
        *time = start.elapsed().as_secs_f64() * 1e6;
    }
    let shards: Vec<Vec<u8>> = data.into_iter().chain(parity).collect();
    let patterns = patterns(k + m, lost);
    let mut repairs = [vec![f64::INFINITY; patterns.len()], vec![f64::INFINITY; patterns.len()]];
    for _ in 0..ROUNDS {
        let codec = Codec::with_options(codec.code().clone(), options.clone())?;
        // What a codec makes once for all repairs.
        repair(&codec, &shards, &[0])?;
        for times in &mut repairs {
            for (pattern, least) in patterns.iter().zip(times) {
                *least = repair(&codec, &shards, pattern)?.min(*least);
            }
        }
    }
    let (encode, [repair, again]) = (spread(encodings), repairs.map(spread));
    println!(
        "{}, {bytes}, {lost}: {:.0} + {:.0}; {:.2}; {:.2}, {:.2}; {:.2}, {:.2}",
        codec.code().spec(),
        first.1.as_secs_f64() * 1e6,
        first.0.as_secs_f64() * 1e6,
        encode.0,
        repair.0,
        repair.1,
        again.0,
        again.1
    );
    Ok(())
}

/// Repairs the packets of a pattern, and returns the time that it took in microseconds.
fn repair(codec: &Codec, shards: &[Vec<u8>], lost: &[usize]) -> Result<f64, Box<dyn Error>> {
    let mut made = vec![vec![0xEE; shards[0].len()]; lost.len()];
    let mut targets = made.iter_mut();
    let mut buffers: Vec<Buffer<'_>> = Vec::with_capacity(shards.len());
    for (node, shard) in shards.iter().enumerate() {
        let target = if lost.contains(&node) { targets.next() } else { None };
        buffers.push(target.map_or(Buffer::Source(shard), |made| Buffer::Target(made)));
    }
    let start = Instant::now();
    codec.reconstruct_into(&mut buffers)?;
    let time = start.elapsed().as_secs_f64() * 1e6;
    assert!(lost.iter().zip(&made).all(|(&node, made)| shards[node] == *made), "{lost:?}");
    Ok(time)
}

/// Returns all ways to lose `lost` of `nodes` nodes, or random ones if there are too many.
fn patterns(nodes: usize, lost: usize) -> Vec<Vec<usize>> {
    let all: Vec<Vec<usize>> = combinations(nodes, lost).take(PATTERNS + 1).collect();
    if all.len() <= PATTERNS {
        return all;
    }
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let mut pattern = || {
        let mut order: Vec<usize> = (0..nodes).collect();
        (0..lost).for_each(|place| order.swap(place, place + below(nodes - place)));
        order.truncate(lost);
        order.sort_unstable();
        order
    };
    (0..PATTERNS).map(|_| pattern()).collect()
}

/// Returns the median and the largest of some times.
fn spread(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() - 1])
}
