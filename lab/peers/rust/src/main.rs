//! Measures Paritas and the Rust peers, with the protocol of c/peer.h. The variant names the
//! library: `simd`, `erasure`, `long` (Paritas' code for thousands of shards), `leopard16` (the
//! same with Leopard's bytes), `xor` (no library: one XOR for each byte read, by the best kernel,
//! over the same streams), or `paritas@CODE@KERNEL` (an empty CODE means K+M). KERNEL may be
//! followed by `~PACKET~ORDER`: then every row is computed on its own, in the order `parity` or
//! `data`, in packets of PACKET bytes. The length of shards is rounded to a multiple of what the
//! library needs: whole strips for Paritas, 64 bytes for `simd`, 128 for `long` and `leopard16`.

use std::fmt::Display;
use std::io::{BufRead, Write};
use std::time::Instant;

use paritas::code::{CellId, CodeBuilder, Role};
use paritas::erasure::combinations;
use paritas::long::LongCode;
use paritas::research::{Order, Pass, PlanOptions};
use paritas::{Buffer, Code, Codec, CodecOptions, ErrorKind, Spec};
use reed_solomon_erasure::galois_8::ReedSolomon;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};

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

/// A function that runs the measured operation once. Whatever a caller can reuse for several calls
/// has been made before.
type Operation<'a> = Box<dyn FnMut() + 'a>;

trait Peer {
    /// Returns the operation that computes the parity of `shards`.
    fn encoding<'a>(&'a self, shards: &'a mut [Shard]) -> Operation<'a>;
    /// Returns the operation that restores the first `lost` shards.
    fn decoding<'a>(&'a self, shards: &'a mut [Shard], lost: usize) -> Operation<'a>;

    /// Returns the operation that restores the shards of the next pattern of losses, the first
    /// after the last; `None` if this is not measured.
    fn repairing<'a>(&'a self, _: &'a mut [Shard], _: &'a [Vec<usize>]) -> Option<Operation<'a>> {
        None
    }

    /// Whether the library restores the shards of every pattern.
    fn repairs(&self, shards: &mut [Shard], patterns: &[Vec<usize>]) -> bool {
        self.encoding(shards)();
        patterns.iter().all(|lost| {
            let kept: Vec<Vec<u8>> = lost.iter().map(|&i| shards[i].as_ref().to_vec()).collect();
            lost.iter().for_each(|&i| shards[i].as_mut().fill(0xEE));
            let one = std::slice::from_ref(lost);
            self.repairing(shards, one).is_some_and(|mut repair| {
                repair();
                true
            }) && lost.iter().zip(kept).all(|(&i, kept)| shards[i].as_ref() == kept)
        })
    }

    /// Whether the library does what it says: encodes, overwrites the first `lost` shards, and
    /// decodes.
    fn is_right(&self, shards: &mut [Shard], lost: usize) -> bool {
        self.encoding(shards)();
        let kept: Vec<Vec<u8>> =
            shards[..lost].iter().map(|shard| shard.as_ref().to_vec()).collect();
        shards[..lost].iter_mut().for_each(|shard| shard.as_mut().fill(0xEE));
        self.decoding(shards, lost)();
        kept.iter().zip(&*shards).all(|(kept, shard)| kept == shard.as_ref())
    }
}

struct Paritas {
    codec: Codec,
    k: usize,
}

/// Returns the call that an embedder makes for each stripe. No other function calls Paritas to
/// encode.
fn encoding<'a>(
    codec: &'a Codec,
    data: Vec<&'a [u8]>,
    mut parity: Vec<&'a mut [u8]>,
) -> Operation<'a> {
    Box::new(move || codec.encode(&data, &mut parity).expect("encode"))
}

impl Peer for Paritas {
    fn encoding<'a>(&'a self, shards: &'a mut [Shard]) -> Operation<'a> {
        let (data, parity) = shards.split_at_mut(self.k);
        let data = data.iter().map(|shard| shard.as_ref()).collect();
        encoding(&self.codec, data, parity.iter_mut().map(AsMut::as_mut).collect())
    }

    fn decoding<'a>(&'a self, shards: &'a mut [Shard], lost: usize) -> Operation<'a> {
        let (targets, sources) = shards.split_at_mut(lost);
        let targets = targets.iter_mut().map(|shard| Buffer::Target(shard.as_mut()));
        let sources = sources.iter().map(|shard| Buffer::Source(shard.as_ref()));
        let mut buffers: Vec<Buffer<'_>> = targets.chain(sources).collect();
        Box::new(move || self.codec.reconstruct_into(&mut buffers).expect("decode"))
    }

    fn repairing<'a>(
        &'a self,
        shards: &'a mut [Shard],
        patterns: &'a [Vec<usize>],
    ) -> Option<Operation<'a>> {
        let mut patterns = patterns.iter().cycle();
        Some(Box::new(move || {
            let lost = patterns.next().expect("a pattern");
            let mut buffers: Vec<Buffer<'_>> = Vec::with_capacity(shards.len());
            for (i, shard) in shards.iter_mut().enumerate() {
                let shard = shard.as_mut();
                let is_lost = lost.contains(&i);
                buffers.push(if is_lost { Buffer::Target(shard) } else { Buffer::Source(shard) });
            }
            self.codec.reconstruct_into(&mut buffers).expect("repair");
        }))
    }
}

/// The limit that codes are compared with: parity shards divide the data shards among them, so that
/// each byte read costs one XOR.
struct Xor {
    codec: Codec,
    k: usize,
}

impl Xor {
    fn new(k: usize, m: usize) -> Self {
        let mut builder = CodeBuilder::new(k + m);
        let data: Vec<CellId> = (0..k).map(|node| builder.data(Some(node))).collect();
        for target in 0..m {
            let cells: Vec<CellId> = data[target % k..].iter().step_by(m).copied().collect();
            builder.derived(Role::Parity, Some(k + target), &cells);
        }
        let code = builder.finish(Spec::new("roofline"), 1).expect("code");
        Self { codec: Codec::with_options(code, options("auto")).expect("codec"), k }
    }
}

impl Peer for Xor {
    fn encoding<'a>(&'a self, shards: &'a mut [Shard]) -> Operation<'a> {
        let (data, parity) = shards.split_at_mut(self.k);
        let data = data.iter().map(|shard| shard.as_ref()).collect();
        encoding(&self.codec, data, parity.iter_mut().map(AsMut::as_mut).collect())
    }

    /// The limit of decoding reads and writes as many shards.
    fn decoding<'a>(&'a self, shards: &'a mut [Shard], _: usize) -> Operation<'a> {
        self.encoding(shards)
    }

    fn is_right(&self, shards: &mut [Shard], _: usize) -> bool {
        self.encoding(shards)();
        let (data, parity) = shards.split_at(self.k);
        (0..parity[0].length).all(|at| {
            let sum = |shards: &[Shard]| shards.iter().fold(0, |sum, s| sum ^ s.as_ref()[at]);
            // With more parity than data, several parity shards repeat a data shard.
            parity.len() > data.len() || sum(data) == sum(parity)
        })
    }
}

impl Peer for ReedSolomon {
    fn encoding<'a>(&'a self, shards: &'a mut [Shard]) -> Operation<'a> {
        Box::new(|| self.encode(&mut *shards).expect("encode"))
    }

    fn decoding<'a>(&'a self, shards: &'a mut [Shard], lost: usize) -> Operation<'a> {
        Box::new(move || {
            let mut views: Vec<(&mut [u8], bool)> = shards
                .iter_mut()
                .enumerate()
                .map(|(i, shard)| (shard.as_mut(), i >= lost))
                .collect();
            self.reconstruct_data(&mut views).expect("decode");
        })
    }

    fn repairing<'a>(
        &'a self,
        shards: &'a mut [Shard],
        patterns: &'a [Vec<usize>],
    ) -> Option<Operation<'a>> {
        let mut patterns = patterns.iter().cycle();
        Some(Box::new(move || {
            let lost = patterns.next().expect("a pattern");
            let shards = shards.iter_mut().enumerate();
            let mut views: Vec<(&mut [u8], bool)> =
                shards.map(|(i, shard)| (shard.as_mut(), !lost.contains(&i))).collect();
            self.reconstruct(&mut views).expect("repair");
        }))
    }
}

/// An encoder and a decoder of this library compute in memory of their own. All shards are copied
/// there and back, which is part of what is measured. When their result is dropped, they are reset.
struct Simd {
    k: usize,
    m: usize,
}

impl Peer for Simd {
    fn encoding<'a>(&'a self, shards: &'a mut [Shard]) -> Operation<'a> {
        let length = shards[0].length;
        let mut encoder = ReedSolomonEncoder::new(self.k, self.m, length).expect("encoder");
        let (data, parity) = shards.split_at_mut(self.k);
        Box::new(move || {
            for shard in data.iter() {
                encoder.add_original_shard(shard).expect("a data shard");
            }
            let made = encoder.encode().expect("encode");
            let made = made.recovery_iter();
            parity.iter_mut().zip(made).for_each(|(to, from)| to.as_mut().copy_from_slice(from));
        })
    }

    fn decoding<'a>(&'a self, shards: &'a mut [Shard], lost: usize) -> Operation<'a> {
        let length = shards[0].length;
        let mut decoder = ReedSolomonDecoder::new(self.k, self.m, length).expect("decoder");
        let (data, parity) = shards.split_at_mut(self.k);
        Box::new(move || {
            for (index, shard) in data.iter().enumerate().skip(lost) {
                decoder.add_original_shard(index, shard).expect("a data shard");
            }
            for (index, shard) in parity.iter().enumerate() {
                decoder.add_recovery_shard(index, shard).expect("a parity shard");
            }
            let made = decoder.decode().expect("decode");
            for (index, shard) in made.restored_original_iter() {
                data[index].as_mut().copy_from_slice(shard);
            }
        })
    }
}

impl Peer for LongCode {
    fn encoding<'a>(&'a self, shards: &'a mut [Shard]) -> Operation<'a> {
        let (data, parity) = shards.split_at_mut(self.data());
        let data: Vec<&[u8]> = data.iter().map(|shard| shard.as_ref()).collect();
        Box::new(move || {
            let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(AsMut::as_mut).collect();
            self.encode(&data, &mut parity, 1).expect("encode");
        })
    }

    fn decoding<'a>(&'a self, shards: &'a mut [Shard], lost: usize) -> Operation<'a> {
        let (data, parity) = shards.split_at_mut(self.data());
        let rows: Vec<usize> = (0..self.parity()).collect();
        let numbers: Vec<usize> = (0..lost).collect();
        Box::new(move || {
            let recovery = self.solve(&numbers, &rows).expect("decode");
            let (targets, known) = data.split_at_mut(lost);
            let known: Vec<&[u8]> = known.iter().map(|shard| shard.as_ref()).collect();
            let rows = recovery.rows().iter();
            let mut sums: Vec<Vec<u8>> = rows.map(|&row| parity[row].as_ref().to_vec()).collect();
            let mut slices: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
            self.add(recovery.rows(), lost, &known, &mut slices, 1).expect("decode");
            let sums: Vec<&[u8]> = sums.iter().map(Vec::as_slice).collect();
            let mut targets: Vec<&mut [u8]> = targets.iter_mut().map(AsMut::as_mut).collect();
            recovery.recover(&sums, &mut targets, 1).expect("decode");
        })
    }
}

/// Ends the program as c/peer.h says of one that cannot serve a shape.
fn refuse(why: impl Display) -> ! {
    eprintln!("{why}");
    std::process::exit(3)
}

/// Returns what Paritas made, unless it refuses the shape or this processor lacks the kernel.
fn made<T>(result: paritas::Result<T>) -> T {
    result.unwrap_or_else(|error| match error.kind() {
        ErrorKind::Parameters | ErrorKind::Kernel => refuse(error),
        _ => panic!("{error}"),
    })
}

/// Returns the library that `variant` names, and the number of bytes that divides the length of its
/// shards.
fn peer(variant: &str, k: usize, m: usize) -> (Box<dyn Peer>, usize) {
    let mut parts = variant.split('@');
    match parts.next() {
        Some("erasure") => {
            let codec = ReedSolomon::new(k, m).unwrap_or_else(|error| refuse(error));
            (Box::new(codec), 1)
        }
        Some("simd") if !ReedSolomonEncoder::supports(k, m) => refuse("too many shards"),
        Some("simd") => (Box::new(Simd { k, m }), 64),
        Some("xor") => {
            let xor = Xor::new(k, m);
            let strip = xor.codec.strip();
            (Box::new(xor), strip)
        }
        Some(name @ ("long" | "leopard16")) => {
            let new = if name == "long" { LongCode::new } else { LongCode::leopard };
            let code = made(new(k, m));
            let granule = code.granule();
            (Box::new(code), granule)
        }
        _ => {
            let code = parts.next().filter(|code| !code.is_empty());
            let spec: Spec = code.map_or(format!("{k}+{m}"), str::to_owned).parse().expect("spec");
            let options = options(parts.next().unwrap_or("auto"));
            let codec = made(Codec::with_options(made(Code::new(&spec)), options));
            let strip = codec.strip();
            (Box::new(Paritas { codec, k }), strip)
        }
    }
}

/// Returns the options that `KERNEL` or `KERNEL~PACKET~ORDER` names.
fn options(detail: &str) -> CodecOptions {
    let mut words = detail.split('~');
    let kernel = words.next().unwrap_or_default().parse().expect("kernel");
    let options = CodecOptions::default().threads(1).kernel(kernel);
    let Some(packet) = words.next() else { return options };
    let order = if words.next() == Some("data") { Order::Data } else { Order::Parity };
    let plan = PlanOptions::default().pass(Pass::Direct).order(order);
    options.packet(packet.parse().expect("packet")).plan(plan)
}

/// Returns the FNV-1a hash of all parity.
fn checksum(parity: &[Shard]) -> u64 {
    let bytes = parity.iter().flat_map(|shard| shard.as_ref());
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, step)
}

fn serve(mut run: Operation<'_>) {
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("input");
        let n: usize =
            line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("sample N");
        if n > 1 {
            run();
        }
        let start = Instant::now();
        for _ in 0..n {
            run();
        }
        println!("{}", start.elapsed().as_nanos());
        std::io::stdout().flush().expect("output");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize| arguments[i].parse::<usize>().expect("a number");
    let (k, m) = (number(1), number(2));
    let (peer, strip) = peer(arguments.get(6).map_or("paritas", |v| v), k, m);
    let length = ((number(3) + strip / 2) / strip).max(1) * strip;
    let aligned = arguments[5] == "page";
    let mut shards: Vec<Shard> = (0..k + m).map(|i| Shard::new(i, length, aligned)).collect();
    let lost = m.min(k);
    println!("bytes {length}");
    if !peer.is_right(&mut shards, lost) {
        println!("wrong: shards did not come back");
        std::process::exit(1);
    }
    let patterns = patterns(k + m, lost);
    if arguments[4] == "patterns" && !peer.repairs(&mut shards, &patterns) {
        println!("wrong: shards of a pattern did not come back");
        std::process::exit(1);
    }
    println!("parity {:016x}\nready", checksum(&shards[k..]));
    match &arguments[4][..] {
        "decode" => serve(peer.decoding(&mut shards, lost)),
        "patterns" => serve(peer.repairing(&mut shards, &patterns).expect("patterns")),
        _ => serve(peer.encoding(&mut shards)),
    }
}

/// Returns all ways to lose `lost` of `nodes` shards or, if there are more than 2,000, about that
/// many of the first million at even distances.
fn patterns(nodes: usize, lost: usize) -> Vec<Vec<usize>> {
    let count = combinations(nodes, lost).take(1_000_000).count();
    combinations(nodes, lost).take(count).step_by(count.div_ceil(2000)).collect()
}
