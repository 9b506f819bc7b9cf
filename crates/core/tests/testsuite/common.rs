//! Helpers that the integration tests share.

use paritas::code::{CellSet, Promotion};
use paritas::{Buffer, Code, Codec, CodecOptions, Kernel, KernelChoice, NodeId};

/// Returns bytes with a prime period, different for every seed.
pub fn fill(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| ((i % 251) * 7 + seed * 31 + i / 251 * 3) as u8).collect()
}

pub fn code(spec: &str) -> Code {
    Code::new(&spec.parse().unwrap()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

pub fn codec(spec: &str, packet: usize, kernel: KernelChoice) -> Codec {
    let options = CodecOptions::default().packet(packet).kernel(kernel).threads(1);
    Codec::with_options(code(spec), options).unwrap()
}

/// Returns every kernel that this processor has.
pub fn kernels() -> Vec<KernelChoice> {
    Kernel::available().map(KernelChoice::Only).collect()
}

/// Returns every kernel of [`kernels`] but those of the lab.
pub fn candidates() -> Vec<KernelChoice> {
    Kernel::candidates().map(KernelChoice::Only).collect()
}

pub fn as_slices(shards: &[Vec<u8>]) -> Vec<&[u8]> {
    shards.iter().map(Vec::as_slice).collect()
}

pub fn as_mut_slices(shards: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    shards.iter_mut().map(Vec::as_mut_slice).collect()
}

/// Returns shards of `stripes` strips for every node, with the codec's parity of all stages.
pub fn encoded(codec: &Codec, stripes: usize) -> Vec<Vec<u8>> {
    let mut shards = encoded_at_first(codec, stripes);
    for stage in 2..=codec.code().stages() {
        promote(codec, stage, &mut shards);
    }
    shards
}

/// As [`encoded`], after the first stage: the rows of later stages still hold what filled them.
pub fn encoded_at_first(codec: &Codec, stripes: usize) -> Vec<Vec<u8>> {
    let code = codec.code();
    let length = stripes * codec.strip();
    let shard = |node: NodeId| match code.holds_data(node) {
        true => fill(node.index(), length),
        false => vec![0xEE; length],
    };
    let mut shards: Vec<Vec<u8>> = code.nodes().map(shard).collect();
    let first = code.nodes_at(1).len();
    let data_nodes = code.nodes().filter(|&node| code.holds_data(node)).count();
    let rows = |node| code.node_cells(node).len();
    let data_cells: usize = code.nodes().take(data_nodes).map(rows).sum();
    if code.data_cells().len() == data_cells {
        let (data, parity) = shards[..first].split_at_mut(data_nodes);
        codec.encode(&as_slices(data), &mut as_mut_slices(parity)).unwrap();
    } else {
        // Nodes hold data and parity: the parity rows are overwritten.
        codec.encode_nodes(&mut as_mut_slices(&mut shards[..first])).unwrap();
    }
    shards
}

/// Computes a later stage; nodes that it neither reads nor writes are absent.
pub fn promote(codec: &Codec, stage: u8, shards: &mut [Vec<u8>]) {
    let code = codec.code();
    let Promotion { reads, makes } = code.promotion(stage).unwrap();
    let has = |node, set: &CellSet| code.node_cells(node).iter().any(|&cell| set.contains(cell));
    let mut buffers: Vec<Buffer<'_>> = Vec::new();
    for (shard, node) in shards.iter_mut().zip(code.nodes()) {
        buffers.push(match (has(node, &makes), has(node, &reads)) {
            (true, _) => Buffer::Target(shard),
            (false, true) => Buffer::Source(shard),
            (false, false) => Buffer::Absent,
        });
    }
    codec.promote(stage, &mut buffers).unwrap();
}
