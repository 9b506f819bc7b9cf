//! Paritas and the Rust peers, with the protocol of c/peer.h. The variant names the library and, for
//! Paritas, the code and kernel: `paritas@CODE@KERNEL` (an empty
//! CODE is K+M), `simd`, `erasure`.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use paritas::{Buffer, Code, Codec, CodecOptions, Spec};

const PAGE: usize = 4096;
const STAGGER: usize = 320;

struct Shard {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Shard {
    fn new(index: usize, length: usize, aligned: bool) -> Self {
        let mut memory = vec![0; length + 2 * PAGE];
        let stagger = if aligned { 0 } else { index * STAGGER % PAGE };
        let start = memory.as_ptr().align_offset(PAGE) + stagger;
        for (j, byte) in memory[start..start + length].iter_mut().enumerate() {
            *byte = (j % 251 * 7 + index * 31) as u8;
        }
        Self { memory, start, length }
    }
}

impl AsRef<[u8]> for Shard {
    fn as_ref(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }
}

impl AsMut<[u8]> for Shard {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.length]
    }
}

trait Peer {
    fn encode(&mut self, shards: &mut [Shard], k: usize);
    /// Brings back the first `lost` shards.
    fn decode(&mut self, shards: &mut [Shard], k: usize, lost: usize);
}

impl Peer for Codec {
    fn encode(&mut self, shards: &mut [Shard], k: usize) {
        let (data, parity) = shards.split_at_mut(k);
        let data: Vec<&[u8]> = data.iter().map(AsRef::as_ref).collect();
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(AsMut::as_mut).collect();
        Codec::encode(self, &data, &mut parity).expect("encode");
    }

    fn decode(&mut self, shards: &mut [Shard], _: usize, lost: usize) {
        let (targets, sources) = shards.split_at_mut(lost);
        let targets = targets.iter_mut().map(|shard| Buffer::Target(shard.as_mut()));
        let sources = sources.iter().map(|shard| Buffer::Source(shard.as_ref()));
        let mut buffers: Vec<Buffer<'_>> = targets.chain(sources).collect();
        self.reconstruct(&mut buffers).expect("decode");
    }
}

struct Erasure(reed_solomon_erasure::galois_8::ReedSolomon);

impl Peer for Erasure {
    fn encode(&mut self, shards: &mut [Shard], _: usize) {
        self.0.encode(shards).expect("encode");
    }

    fn decode(&mut self, shards: &mut [Shard], _: usize, lost: usize) {
        let mut views: Vec<(&mut [u8], bool)> =
            shards.iter_mut().enumerate().map(|(i, shard)| (shard.as_mut(), i >= lost)).collect();
        self.0.reconstruct_data(&mut views).expect("decode");
    }
}

struct Simd {
    k: usize,
    m: usize,
}

impl Peer for Simd {
    fn encode(&mut self, shards: &mut [Shard], k: usize) {
        let (data, parity) = shards.split_at_mut(k);
        let made = reed_solomon_simd::encode(self.k, self.m, data.iter()).expect("encode");
        parity.iter_mut().zip(made).for_each(|(to, from)| to.as_mut().copy_from_slice(&from));
    }

    fn decode(&mut self, shards: &mut [Shard], k: usize, lost: usize) {
        let (data, parity) = shards.split_at(k);
        let data = data.iter().enumerate().skip(lost);
        let made = reed_solomon_simd::decode(self.k, self.m, data, parity.iter().enumerate());
        let made = made.expect("decode");
        for (index, shard) in made {
            shards[index].as_mut().copy_from_slice(&shard);
        }
    }
}

fn calibrate() -> u128 {
    let start = Instant::now();
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..30_000 {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1_442_695_040_888_963_407);
    }
    black_box(x);
    start.elapsed().as_nanos()
}

fn peer(variant: &str, k: usize, m: usize) -> (Box<dyn Peer>, usize) {
    let mut parts = variant.split('@');
    match parts.next() {
        Some("erasure") => {
            let codec = reed_solomon_erasure::galois_8::ReedSolomon::new(k, m).expect("codec");
            (Box::new(Erasure(codec)), 1)
        }
        Some("simd") => (Box::new(Simd { k, m }), 64),
        _ => {
            let code = parts.next().filter(|code| !code.is_empty());
            let spec: Spec = code.map_or(format!("{k}+{m}"), str::to_owned).parse().expect("spec");
            let kernel = parts.next().unwrap_or("auto").parse().expect("kernel");
            let options = CodecOptions { threads: 1, kernel, ..CodecOptions::default() };
            let codec = Codec::new(Code::new(&spec).expect("code"), options).expect("codec");
            let strip = codec.strip();
            (Box::new(codec), strip)
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize| arguments[i].parse::<usize>().expect("a number");
    let (k, m) = (number(1), number(2));
    let decode = arguments[4] == "decode";
    let (mut peer, strip) = peer(arguments.get(6).map_or("paritas", |v| v), k, m);
    let length = (number(3) / strip).max(1) * strip;
    let mut shards: Vec<Shard> =
        (0..k + m).map(|i| Shard::new(i, length, arguments[5] == "page")).collect();
    println!("bytes {length}");
    peer.encode(&mut shards, k);
    let lost = m.min(k);
    let kept: Vec<Vec<u8>> = shards[..lost].iter().map(|shard| shard.as_ref().to_vec()).collect();
    shards[..lost].iter_mut().for_each(|shard| shard.as_mut().fill(0xEE));
    peer.decode(&mut shards, k, lost);
    if kept.iter().zip(&shards).any(|(kept, shard)| kept != shard.as_ref()) {
        println!("wrong: shards did not come back");
        std::process::exit(1);
    }
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("input");
        let n: usize = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("sample N");
        let mut run = || match decode {
            true => peer.decode(&mut shards, k, lost),
            false => peer.encode(&mut shards, k),
        };
        run();
        let before = calibrate();
        let start = Instant::now();
        for _ in 0..n {
            run();
        }
        let operation = start.elapsed().as_nanos();
        println!("{before} {operation} {}", calibrate());
        std::io::stdout().flush().expect("output");
    }
}
