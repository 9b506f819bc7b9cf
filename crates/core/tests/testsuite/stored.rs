//! The cases of `vectors/`, whose README describes the files.

use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

/// Returns the path of a file in `vectors/`.
pub fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "vectors", name].iter().collect()
}

/// Returns the cases of a file.
pub fn cases<C: for<'a> Deserialize<'a>>(name: &str) -> Vec<C> {
    #[derive(Deserialize)]
    struct Cases<C> {
        version: u32,
        cases: Vec<C>,
    }
    let path = path(name);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let Cases { version, cases } = serde_json::from_str(&text).unwrap();
    assert!(version == 1 && !cases.is_empty(), "{name}");
    cases
}

/// The shards of a case.
#[derive(Deserialize)]
pub enum StoredShards {
    #[serde(rename = "parity", alias = "shards")]
    Bytes(Vec<String>),
    #[serde(rename = "parity_blake3", alias = "shards_blake3")]
    Digests(Vec<String>),
}

impl StoredShards {
    /// Asserts that these are the shards, which `who` made.
    pub fn expect(&self, made: &[Vec<u8>], who: &str) {
        let (expected, made): (_, Vec<String>) = match self {
            Self::Bytes(expected) => (expected, made.iter().map(|shard| hex(shard)).collect()),
            Self::Digests(expected) => (expected, made.iter().map(|shard| digest(shard)).collect()),
        };
        assert_eq!(&made, expected, "{who}");
    }
}

/// Parity that another project's library computed.
#[derive(Deserialize)]
pub struct LibraryCase {
    pub library: String,
    pub spec: String,
    pub length: usize,
    #[serde(flatten)]
    pub parity: StoredShards,
}

/// Returns byte `i` of data shard or symbol `j`.
pub fn byte(i: usize, j: usize) -> u8 {
    const C: u64 = 0x9E37_79B9_7F4A_7C15;
    let z = ((256 * i + j + 1) as u64).wrapping_mul(C);
    ((z ^ z >> 32).wrapping_mul(C) >> 56) as u8
}

/// Returns `k` data shards.
pub fn data(k: usize, length: usize) -> Vec<Vec<u8>> {
    (0..k).map(|j| (0..length).map(|i| byte(i, j)).collect()).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}
