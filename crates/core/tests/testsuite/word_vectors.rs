//! The language-neutral cases of the word layout: `vectors/words.json`, which the reference
//! computed, and `vectors/oracles/words.json`, which other projects' libraries computed.
//! `vectors/README.md` describes the files; `lab/oracles/words/run.py` regenerates the second one.

use crate::common::{as_mut_slices, as_slices, code};
use crate::stored::{LibraryCase, StoredShards, cases, data, digest, from_hex};
use paritas::Buffer::{Source, Target};
use paritas::code::{BitMatrix, Pin};
use paritas::erasure::combinations;
use paritas::research::WordKernel;
use paritas::{Code, Codec, CodecOptions, ErrorKind};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    spec: String,
    polynomial: u64,
    k: usize,
    m: usize,
    w: usize,
    words: usize,
    ones: usize,
    describe_blake3: String,
    lost: Vec<Vec<usize>>,
    lost_too_many: Vec<Vec<usize>>,
    #[serde(flatten)]
    parity: StoredShards,
}

fn encoded(codec: &Codec, data: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut parity = vec![vec![0xEE; data[0].len()]; codec.code().node_count() - data.len()];
    codec.encode(&as_slices(data), &mut as_mut_slices(&mut parity)).unwrap();
    parity
}

fn reconstructed(
    codec: &Codec,
    shards: &[Vec<u8>],
    lost: &[usize],
) -> Result<Vec<Vec<u8>>, paritas::Error> {
    let mut made = vec![vec![0xEE; shards[0].len()]; lost.len()];
    let mut buffers: Vec<_> = shards.iter().map(|shard| Source(shard)).collect();
    for (&node, shard) in lost.iter().zip(&mut made) {
        buffers[node] = Target(shard);
    }
    codec.reconstruct_into(&mut buffers)?;
    Ok(made)
}

fn codecs(code: &Code) -> impl Iterator<Item = Codec> {
    WordKernel::available().map(|kernel| {
        let options = CodecOptions::default().word_kernel(kernel);
        Codec::with_options(code.clone(), options).unwrap()
    })
}

impl Case {
    fn code(&self) -> Code {
        let pin = Pin::new().with("polynomial", [self.polynomial]);
        Code::rebuild(&self.spec.parse().unwrap(), &pin)
            .unwrap_or_else(|error| panic!("{}: {error}", self.spec))
    }

    fn data(&self) -> Vec<Vec<u8>> {
        data(self.k, self.words * self.w / 8)
    }
}

#[test]
fn specs_and_polynomials_rebuild_the_generators() {
    for case in cases::<Case>("words.json") {
        let (rebuilt, spec) = (case.code(), &case.spec);
        let new = code(spec);
        assert_eq!(&new.spec().to_string(), spec, "the spec is canonical");
        assert_eq!((new.pin(), new.symbols()), (rebuilt.pin(), rebuilt.symbols()), "{spec}");
        assert_eq!((new.node_count(), new.tolerance()), (case.k + case.m, case.m), "{spec}");
        assert_eq!(new.ones(), case.ones, "{spec}");
        let mut description = Vec::new();
        rebuilt.describe(|bytes| description.extend_from_slice(bytes));
        assert_eq!(digest(&description), case.describe_blake3, "{spec}");
    }
}

/// Takes each bit of a word as a vector of its values in all words: if these were dependent,
/// another generator could give this parity.
#[test]
fn data_bits_are_independent() {
    for case in cases::<Case>("words.json") {
        let data = case.data();
        let is_set = |shard: &[u8], bit: usize| shard[bit / 8] >> (bit % 8) & 1 == 1;
        let support = |cell: usize| {
            let (shard, bit) = (&data[cell / case.w], cell % case.w);
            (0..case.words).filter(|word| is_set(shard, word * case.w + bit)).collect()
        };
        let cells: Vec<Vec<usize>> = (0..case.k * case.w).map(support).collect();
        let rank = BitMatrix::from_supports(case.words, &cells).rank();
        assert_eq!(rank, cells.len(), "{}", case.spec);
    }
}

#[test]
fn every_kernel_makes_parity_and_losses() {
    for case in cases::<Case>("words.json") {
        for codec in codecs(&case.code()) {
            let parity = encoded(&codec, &case.data());
            case.parity.expect(&parity, &format!("{} {}", case.spec, codec.kernel_name()));
            let shards = [case.data(), parity].concat();
            // A program is compiled for every pattern, so the best kernel alone is tried on all.
            let is_best = codec.kernel_name() == WordKernel::best().name();
            for lost in case.lost.iter().take(if is_best { usize::MAX } else { 2 }) {
                let made = reconstructed(&codec, &shards, lost).unwrap();
                assert!(
                    lost.iter().zip(&made).all(|(&node, made)| made == &shards[node]),
                    "{}: {} {lost:?}",
                    case.spec,
                    codec.kernel_name()
                );
            }
        }
    }
}

#[test]
fn losses_beyond_the_tolerance_are_refused() {
    for case in cases::<Case>("words.json") {
        let codec = Codec::with_options(case.code(), CodecOptions::default()).unwrap();
        let shards = [case.data(), encoded(&codec, &case.data())].concat();
        for lost in &case.lost_too_many {
            let error = reconstructed(&codec, &shards, lost).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotEnough, "{} {lost:?}: {error}", case.spec);
        }
    }
}

/// Every kernel computes the bytes of other projects' libraries, and recovers the data from them.
#[test]
fn libraries_and_every_kernel_make_the_same() {
    for made in cases::<LibraryCase>("oracles/words.json") {
        let code = code(&made.spec);
        let k = code.symbols().unwrap().data_nodes();
        let data = data(k, made.length);
        for codec in codecs(&code) {
            let parity = encoded(&codec, &data);
            let who = format!("{} of {}: {}", made.spec, made.library, codec.kernel_name());
            made.parity.expect(&parity, &who);
            let StoredShards::Bytes(theirs) = &made.parity else { continue };
            let theirs = theirs.iter().map(|digits| from_hex(digits));
            let shards: Vec<Vec<u8>> = data.iter().cloned().chain(theirs).collect();
            // A program is compiled for every pattern, so only the best kernel recovers here;
            // `every_kernel_makes_parity_and_losses` lets all of them recover.
            let is_best = codec.kernel_name() == WordKernel::best().name();
            let patterns = if is_best { 4 } else { 0 };
            for lost in combinations(k, k.min(shards.len() - k)).take(patterns) {
                let made = reconstructed(&codec, &shards, &lost).unwrap();
                assert!(lost.iter().zip(&made).all(|(&node, made)| made == &data[node]), "{who}");
            }
        }
    }
}
