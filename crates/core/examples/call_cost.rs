//! Measures the fixed cost of a call, apart from the bytes that it computes: prepared encoders over
//! shards of one stripe and of many, in nanoseconds, and the times of making a code and of a first
//! call, which includes planning and compiling.
//!
//!     cargo run --release -p paritas --example call_cost [SPEC]...

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use paritas::{Code, Codec, CodecOptions, NodeId, Prepared};

const CALLS: usize = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usual = ["6+3", "10+4", "20+4", "isal-cauchy:k=10,m=4", "isal-cauchy:k=20,m=4"]
        .map(str::to_owned)
        .to_vec();
    println!(
        "code: making it, first encode, first decode of as many lost data nodes as there is parity (microseconds); no bytes; one stripe (nanoseconds)"
    );
    for spec in if arguments.is_empty() { usual } else { arguments } {
        let options = CodecOptions::default().threads(1);
        let start = Instant::now();
        let code = Code::new(&spec.parse()?)?;
        let made = start.elapsed().as_secs_f64() * 1e6;
        let data = vec![[1_u8; 1200]; code.nodes().filter(|&node| code.holds_data(node)).count()];
        let mut parity = vec![[0_u8; 1200]; code.node_count() - data.len()];
        let start = Instant::now();
        let codec = Codec::with_options(code, options)?;
        let encoder = codec.encoder()?;
        encoder.run(&data, &mut parity)?;
        let first = start.elapsed().as_secs_f64() * 1e6;
        let decode = first_decode(&codec, &data, &parity)?;
        call(&encoder, &codec, 1 << 18)?;
        let (none, one) = (call(&encoder, &codec, 0)?, call(&encoder, &codec, codec.strip())?);
        println!(
            "{}: {made:.0}, {first:.0}, {decode:.0}; {none:.1}; {one:.1}",
            codec.code().spec()
        );
    }
    Ok(())
}

/// Returns the time of the first reconstruction that needs all parity, in microseconds.
fn first_decode(
    codec: &Codec,
    data: &[[u8; 1200]],
    parity: &[[u8; 1200]],
) -> Result<f64, Box<dyn Error>> {
    let nodes: Vec<NodeId> = codec.code().nodes().collect();
    let (lost, present) = nodes.split_at(parity.len().min(data.len()));
    let shards: Vec<&[u8; 1200]> = data.iter().chain(parity).skip(lost.len()).collect();
    let mut made = vec![[0; 1200]; lost.len()];
    let start = Instant::now();
    codec.reconstructor(present, lost)?.run(&shards, &mut made)?;
    let seconds = start.elapsed().as_secs_f64();
    assert!(made[..] == data[..made.len()]);
    Ok(seconds * 1e6)
}

/// Returns the least time of a call over shards of `length` bytes, in nanoseconds, averaged over
/// some calls.
fn call(encoder: &Prepared, codec: &Codec, length: usize) -> Result<f64, Box<dyn Error>> {
    let (nodes, data) = (codec.code().node_count(), codec.code().nodes());
    let data = data.filter(|&node| codec.code().holds_data(node)).count();
    let strip = codec.strip();
    let length = length.next_multiple_of(strip);
    let data: Vec<Vec<u8>> = (0..data).map(|number| vec![number as u8; length]).collect();
    let mut parity = vec![vec![0_u8; length]; nodes - data.len()];
    let batch = if length > strip { 1 } else { 200 };
    let rounds = if length > strip { 2 } else { CALLS / batch };
    let mut least = f64::INFINITY;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..batch {
            encoder.run(black_box(&data), black_box(&mut parity))?;
        }
        least = least.min(start.elapsed().as_secs_f64() * 1e9 / batch as f64);
    }
    Ok(least)
}
