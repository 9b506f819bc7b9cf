//! Serves the crate reed-solomon-simd with the protocol of `c/serve.h`.
//!
//! The crate itself chooses between its two codes, "high rate" and "low rate". Leopard has the first
//! one alone, so that is asked for where the crate would choose other bytes: where the number of
//! parity shards, rounded up to a power of two, exceeds that of data shards, rounded up as well.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateDecoder, HighRateEncoder, RateDecoder, RateEncoder};
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

type Shards = Vec<Vec<u8>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut requests = BufReader::new(stdin().lock());
    let mut line = String::new();
    while requests.read_line(&mut line)? > 0 {
        let reply = serve(&line, &mut requests)?;
        stdout().lock().write_all(&reply.concat())?;
        stdout().flush()?;
        line.clear();
    }
    Ok(())
}

/// Reads the shards of a request, and returns those that it asks for.
fn serve(line: &str, requests: &mut impl Read) -> Result<Shards, Box<dyn Error>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: usize| words[word].parse::<usize>();
    let (k, m, length) = (number(2)?, number(3)?, number(5)?);
    let encodes = words[0] == "encode";
    let mut shards = vec![vec![0; length]; if encodes { k } else { k + m }];
    shards.iter_mut().try_for_each(|shard| requests.read_exact(shard))?;
    let is_default = m.next_power_of_two() <= k.next_power_of_two();
    if encodes {
        return Ok(encode(&shards, m, length, is_default)?);
    }
    let lost = words[6].split(',').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let data = decode(&shards, &lost, [k, m, length], is_default)?;
    let parity = encode(&data, m, length, is_default)?;
    Ok([data, parity].concat())
}

fn encode(
    data: &[Vec<u8>],
    m: usize,
    length: usize,
    is_default: bool,
) -> Result<Shards, reed_solomon_simd::Error> {
    if is_default {
        let mut encoder = ReedSolomonEncoder::new(data.len(), m, length)?;
        data.iter().try_for_each(|shard| encoder.add_original_shard(shard))?;
        return Ok(encoder.encode()?.recovery_iter().map(<[u8]>::to_vec).collect());
    }
    let engine = DefaultEngine::new();
    let mut encoder = HighRateEncoder::new(data.len(), m, length, engine, None)?;
    data.iter().try_for_each(|shard| encoder.add_original_shard(shard))?;
    Ok(encoder.encode()?.recovery_iter().map(<[u8]>::to_vec).collect())
}

/// Returns the data shards.
fn decode(
    shards: &[Vec<u8>],
    lost: &[usize],
    [k, m, length]: [usize; 3],
    is_default: bool,
) -> Result<Shards, reed_solomon_simd::Error> {
    let left = || shards.iter().enumerate().filter(|(node, _)| !lost.contains(node));
    let mut data = shards[..k].to_vec();
    if is_default {
        let mut decoder = ReedSolomonDecoder::new(k, m, length)?;
        for (node, shard) in left() {
            match node.checked_sub(k) {
                None => decoder.add_original_shard(node, shard)?,
                Some(row) => decoder.add_recovery_shard(row, shard)?,
            }
        }
        let decoded = decoder.decode()?;
        decoded.restored_original_iter().for_each(|(node, shard)| data[node] = shard.to_vec());
        return Ok(data);
    }
    let mut decoder = HighRateDecoder::new(k, m, length, DefaultEngine::new(), None)?;
    for (node, shard) in left() {
        match node.checked_sub(k) {
            None => decoder.add_original_shard(node, shard)?,
            Some(row) => decoder.add_recovery_shard(row, shard)?,
        }
    }
    let decoded = decoder.decode()?;
    decoded.restored_original_iter().for_each(|(node, shard)| data[node] = shard.to_vec());
    Ok(data)
}
