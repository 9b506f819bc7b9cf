//! Measures how fast long codes add data blocks to parity and recover lost ones, beside LT codes.
//!
//!     cargo run --release -p paritas --example long_speed [N P BYTES THREADS [BATCH]]
//!
//! N data blocks of BYTES bytes are coded in batches of BATCH blocks (four chunks by default). Then
//! one data block for each parity block is lost, spread evenly over the data, and recovered. The
//! answer is checked before anything is timed. Speeds are GB/s (10^9 bytes): of data for `add` and
//! `lt`, of lost data for `recover`. The best of three runs counts.

use std::error::Error;
use std::time::Instant;

use paritas::Pages;
use paritas::long::LongCode;
use paritas::lt::{LtCode, LtEncoder, LtOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let at = |place: usize, default| arguments.get(place).copied().unwrap_or(default);
    let (data, parity, bytes, threads) = (at(0, 8000), at(1, 800), at(2, 65_536), at(3, 1));
    let code = LongCode::new(data, parity)?;
    let batch = at(4, 4 * code.chunk());
    let mut object = Pages::zeroed(data * bytes)?;
    fill(&mut object);
    let blocks: Vec<&[u8]> = object.chunks_exact(bytes).collect();

    let mut sums = Pages::zeroed(parity * bytes)?;
    let rows: Vec<usize> = (0..parity).collect();
    let encode = time(|| {
        sums.fill(0);
        add(&code, &rows, &blocks, batch, &mut sums, bytes, threads)
    })?;

    let lost: Vec<usize> = (0..parity).map(|number| number * data / parity).collect();
    let mut left = blocks.clone();
    lost.iter().for_each(|&block| left[block] = &[]);
    let start = Instant::now();
    let recovery = code.solve(&lost, &rows)?;
    let solve = start.elapsed().as_secs_f64();
    add(&code, recovery.rows(), &left, batch, &mut sums, bytes, threads)?;
    let mut made = Pages::zeroed(lost.len() * bytes)?;
    let recover = time(|| {
        let sums: Vec<&[u8]> = sums.chunks_exact(bytes).collect();
        let mut made: Vec<&mut [u8]> = made.chunks_exact_mut(bytes).collect();
        Ok(recovery.recover(&sums, &mut made, threads)?)
    })?;
    let is_right = lost.iter().zip(made.chunks_exact(bytes)).all(|(&n, made)| blocks[n] == made);
    assert!(is_right, "a recovered block differs");

    let lt = match lt(&object, data, parity, threads) {
        Ok(seconds) => format!("{:.2}", gigabytes(object.len(), seconds)),
        Err(error) => error.to_string(),
    };
    println!(
        "{data} + {parity} of {bytes} bytes, {threads} threads, batches of {batch}: add {:.2}, \
         recover {:.2}, solve {:.1} ms, lt {lt}",
        gigabytes(object.len(), encode),
        gigabytes(lost.len() * bytes, recover),
        solve * 1e3
    );
    Ok(())
}

fn gigabytes(bytes: usize, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e9
}

/// Fills memory with pseudo-random words.
fn fill(memory: &mut [u8]) {
    let mut state = 1_u64;
    for word in memory.chunks_exact_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
}

/// Returns the seconds of the fastest of three runs.
fn time(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn add(
    code: &LongCode,
    rows: &[usize],
    blocks: &[&[u8]],
    batch: usize,
    sums: &mut [u8],
    bytes: usize,
    threads: usize,
) -> Result<(), Box<dyn Error>> {
    let mut sums: Vec<&mut [u8]> = sums.chunks_exact_mut(bytes).collect();
    for (number, blocks) in blocks.chunks(batch).enumerate() {
        code.add(rows, number * batch, blocks, &mut sums, threads)?;
    }
    Ok(())
}

/// Returns the seconds that an LT code takes to make `parity` blocks besides the `data` data
/// blocks.
fn lt(object: &[u8], data: usize, parity: usize, threads: usize) -> Result<f64, Box<dyn Error>> {
    let spec = format!("lt:k={data},n={}", data + parity);
    let encoder =
        LtEncoder::new(LtCode::new(&spec.parse()?)?, LtOptions::default().threads(threads))?;
    let numbers: Vec<usize> = (data..data + parity).collect();
    let bytes = object.len() / data;
    let mut memory = Pages::zeroed(parity * bytes)?;
    time(|| {
        let mut blocks: Vec<&mut [u8]> = memory.chunks_exact_mut(bytes).collect();
        Ok(encoder.encode_into(object, &numbers, &mut blocks)?)
    })
}
