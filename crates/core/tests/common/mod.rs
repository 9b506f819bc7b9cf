//! What the integration tests share.

#![allow(dead_code, reason = "each test uses a part")]

use paritas::{Code, Codec, CodecOptions, Kernel, KernelChoice};

/// Bytes with a prime period, different for every seed.
pub fn fill(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i % 251) * 7 + seed * 31 + i / 251 * 3) as u8).collect()
}

pub fn code(spec: &str) -> Code {
    Code::new(&spec.parse().unwrap()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

pub fn codec(spec: &str, packet: usize, kernel: KernelChoice) -> Codec {
    let options = CodecOptions { packet, kernel, threads: 1, ..CodecOptions::default() };
    Codec::new(code(spec), options).unwrap()
}

/// Every kernel that this processor has.
pub fn kernels() -> Vec<KernelChoice> {
    Kernel::available().map(KernelChoice::Only).collect()
}

pub fn as_slices(shards: &[Vec<u8>]) -> Vec<&[u8]> {
    shards.iter().map(Vec::as_slice).collect()
}

pub fn as_mut_slices(shards: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    shards.iter_mut().map(Vec::as_mut_slice).collect()
}

/// Shards of `stripes` strips for every node, with the codec's parity.
pub fn encoded(codec: &Codec, stripes: usize) -> Vec<Vec<u8>> {
    let code = codec.code();
    let length = stripes * codec.strip();
    let data_nodes = code.nodes().filter(|&node| code.holds_data(node)).count();
    let mut shards: Vec<Vec<u8>> = (0..data_nodes).map(|node| fill(node, length)).collect();
    if data_nodes == code.node_count() {
        // Data and parity on every node: what fills the parity rows is overwritten.
        codec.encode_nodes(&mut as_mut_slices(&mut shards)).unwrap();
        return shards;
    }
    let mut parity = vec![vec![0xEE; length]; code.node_count() - data_nodes];
    codec.encode(&as_slices(&shards), &mut as_mut_slices(&mut parity)).unwrap();
    shards.into_iter().chain(parity).collect()
}
