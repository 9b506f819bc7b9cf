//! BLAKE3, plain hashing only, from sections 2.1 to 2.6 of its paper (O'Connor, Aumasson, Neves and
//! Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere", 2020).
//!
//! It is written out here because the reference crate has no dependency. So the digests are a
//! second opinion, too: the test that reads the vectors computes them with the `blake3` crate.

const CHUNK: usize = 1024;
const BLOCK: usize = 64;

const CHUNK_START: u32 = 1;
const CHUNK_END: u32 = 2;
const PARENT: u32 = 4;
const ROOT: u32 = 8;

/// Table 1 of the paper: SHA-256's initial state.
const INITIAL: [u32; 8] = [
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
];

/// Table 2 of the paper: word i of the next round's message is word `PERMUTATION[i]` of this one's.
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// The digest of `input` in hexadecimal digits.
pub fn digest(input: &[u8]) -> String {
    let bytes = subtree(input, 0, ROOT).map(u32::to_le_bytes);
    bytes.iter().flatten().map(|byte| format!("{byte:02x}")).collect()
}

/// The chaining value of a subtree that begins with chunk number `first_chunk`. The left child
/// takes the largest power of two of chunks that leaves at least one byte for the right child.
fn subtree(input: &[u8], first_chunk: usize, root: u32) -> [u32; 8] {
    if input.len() <= CHUNK {
        return chunk(input, first_chunk, root);
    }
    let left_chunks = input.len().div_ceil(CHUNK).next_power_of_two() / 2;
    let (left, right) = input.split_at(left_chunks * CHUNK);
    let mut children = [0; 16];
    children[..8].copy_from_slice(&subtree(left, first_chunk, 0));
    children[8..].copy_from_slice(&subtree(right, first_chunk + left_chunks, 0));
    compress(INITIAL, children, 0, BLOCK, PARENT | root)
}

fn chunk(input: &[u8], number: usize, root: u32) -> [u32; 8] {
    let last = input.len().saturating_sub(1) / BLOCK;
    (0..=last).fold(INITIAL, |value, block| {
        let bytes = &input[block * BLOCK..input.len().min((block + 1) * BLOCK)];
        let start = if block == 0 { CHUNK_START } else { 0 };
        let end = if block == last { CHUNK_END | root } else { 0 };
        compress(value, words(bytes), number, bytes.len(), start | end)
    })
}

/// A block's little-endian words, padded with zeros.
fn words(block: &[u8]) -> [u32; 16] {
    let mut words = [0; 16];
    for (i, byte) in block.iter().enumerate() {
        words[i / 4] |= u32::from(*byte) << (8 * (i % 4));
    }
    words
}

fn compress(
    value: [u32; 8],
    mut message: [u32; 16],
    counter: usize,
    length: usize,
    flags: u32,
) -> [u32; 8] {
    let mut v = [0; 16];
    v[..8].copy_from_slice(&value);
    v[8..12].copy_from_slice(&INITIAL[..4]);
    v[12..].copy_from_slice(&[counter as u32, (counter as u64 >> 32) as u32, length as u32, flags]);
    for _ in 0..7 {
        for column in 0..4 {
            mix(&mut v, [0, 4, 8, 12].map(|row| row + column), &message[2 * column..]);
        }
        for d in 0..4 {
            let diagonal = [d, 4 + (d + 1) % 4, 8 + (d + 2) % 4, 12 + (d + 3) % 4];
            mix(&mut v, diagonal, &message[8 + 2 * d..]);
        }
        message = PERMUTATION.map(|from| message[from]);
    }
    std::array::from_fn(|i| v[i] ^ v[i + 8])
}

/// The function G on four words of the state, with the first two words of `message`.
fn mix(v: &mut [u32; 16], [a, b, c, d]: [usize; 4], message: &[u32]) {
    for (word, [rotate_d, rotate_b]) in message.iter().zip([[16, 12], [8, 7]]) {
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(*word);
        v[d] = (v[d] ^ v[a]).rotate_right(rotate_d);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(rotate_b);
    }
}
