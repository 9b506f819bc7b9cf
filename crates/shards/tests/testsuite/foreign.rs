//! Other tools' fragments. Fragments that zfec and klauspost/reedsolomon wrote (`vectors/foreign`,
//! made by `lab/oracles/words/foreign.py`) become shards, and come back byte for byte. HDFS's and
//! Jerasure's fragments are laid out here by hand, with parity from the reference. Jerasure's own
//! fragments are in `jerasure`.

mod jerasure;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use paritas::erasure::combinations;
use paritas::{Code, Spec};
use paritas_reference::{families, words};
use paritas_shards::foreign::{ExportJob, Format, Hints, ImportReport, export, import};
use paritas_shards::{EncodeJob, Error, ErrorKind, FileTarget, decode, encode, scan};
use tempfile::TempDir;

/// Returns data shard 0 of `vectors/README.md`.
fn content(length: usize) -> Vec<u8> {
    const C: u64 = 0x9E37_79B9_7F4A_7C15;
    let byte = |i: usize| {
        let z = ((256 * i + 1) as u64).wrapping_mul(C);
        ((z ^ z >> 32).wrapping_mul(C) >> 56) as u8
    };
    (0..length).map(byte).collect()
}

fn spec(text: &str) -> Spec {
    text.parse().unwrap()
}

/// A set of fragments, and the file that they were made from.
#[derive(Clone)]
struct Set {
    format: Format,
    hints: Hints,
    /// The fragments, by number.
    fragments: Vec<(String, Vec<u8>)>,
    /// Files beside the fragments.
    others: Vec<(String, Vec<u8>)>,
    content: Vec<u8>,
    name: String,
    k: usize,
}

impl Set {
    /// Reads a fixture: a folder of `vectors/foreign`.
    fn fixture(format: Format, folder: &str, length: usize, k: usize, hints: Hints) -> Self {
        let path: PathBuf =
            [env!("CARGO_MANIFEST_DIR"), "..", "..", "vectors", "foreign", folder].iter().collect();
        let mut fragments: Vec<(String, Vec<u8>)> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                (path.file_name().unwrap().to_str().unwrap().into(), fs::read(&path).unwrap())
            })
            .collect();
        fragments.sort();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (content, others) = (content(length), Vec::new());
        Self { format, hints, fragments, others, content, name, k }
    }

    fn write(&self, folder: &Path, lost: &[usize]) {
        let kept = self.fragments.iter().enumerate().filter(|(i, _)| !lost.contains(i));
        for (name, bytes) in kept.map(|(_, file)| file).chain(&self.others) {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }

    fn import(&self, from: &Path, to: &Path) -> Result<ImportReport, Error> {
        let job = |code: Code, name| EncodeJob::new(code, name, vec![to.to_owned()]).sync(false);
        import(self.format, &[from.to_owned()], &self.hints, job, &|_| {})
    }

    /// Deletes fragments, imports and decodes.
    fn recover(&self, lost: &[usize]) -> TempDir {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        self.write(from.path(), lost);
        let report = self.import(from.path(), to.path()).unwrap();
        assert_eq!(report.missing, lost, "{}", self.name);
        let inventory = scan(&[to.path().to_owned()]);
        let object = &inventory.objects[0];
        assert_eq!(object.name().to_str(), Some(&*self.name));
        let path = from.path().join("decoded");
        decode(object, FileTarget::new(&path), NonZeroUsize::new(1), &|_| {}).unwrap();
        assert!(fs::read(path).unwrap() == self.content, "{} without {lost:?}", self.name);
        to
    }

    fn export(&self, from: &Path, to: &Path) -> Result<Vec<PathBuf>, Error> {
        let job = ExportJob::new(self.format, to)
            .hints(self.hints.clone())
            .sync(false)
            .threads(NonZeroUsize::new(1));
        export(&job, &scan(&[from.to_owned()]).objects[0], &|_| {})
    }

    /// Checks that an object that was imported from some fragments is exported as all of them.
    fn expect_round_trip(&self) {
        let m = self.fragments.len() - self.k;
        let patterns = combinations(self.fragments.len(), m).step_by(7).take(12);
        for lost in patterns.chain([Vec::new()]) {
            let shards = self.recover(&lost);
            let to = tempfile::tempdir().unwrap();
            let files = self.export(shards.path(), to.path()).unwrap();
            let expected: Vec<&(String, Vec<u8>)> =
                self.fragments.iter().chain(&self.others).collect();
            assert_eq!(files.len(), expected.len());
            for (name, bytes) in expected {
                assert!(&fs::read(to.path().join(name)).unwrap() == bytes, "{name}, {lost:?}");
            }
            let again = self.export(shards.path(), to.path()).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::Exists);
        }
    }
}

fn zfec(folder: &str, length: usize, k: usize) -> Set {
    Set::fixture(Format::Zfec, &format!("zfec/{folder}"), length, k, Hints::default())
}

fn klauspost(folder: &str, length: usize, k: usize, m: usize) -> Set {
    let code = Some(spec(&format!("backblaze:k={k},m={m}")));
    let hints = Hints::default().code(code).length(length as u64);
    Set::fixture(Format::Klauspost, &format!("klauspost/{folder}"), length, k, hints)
}

/// Returns data fragments, and the parity that the reference computes.
fn with_parity(data: &[Vec<u8>], w: u32, rows: &[Vec<u64>]) -> Vec<Vec<u8>> {
    let longest = data.iter().map(Vec::len).max().unwrap();
    let mut padded = data.to_vec();
    padded.iter_mut().for_each(|fragment| fragment.resize(longest, 0));
    let parity = words::encode(&families::field(w), rows, &padded);
    data.iter().cloned().chain(parity).collect()
}

/// Cells of 8 bytes over three nodes; the last stripe is short.
fn hdfs(length: usize) -> Set {
    let (content, mut data) = (content(length), vec![Vec::new(); 3]);
    for (number, cell) in content.chunks(8).enumerate() {
        data[number % 3].extend_from_slice(cell);
    }
    let fragments = with_parity(&data, 8, &families::isal_cauchy(3, 2));
    let name = |i| format!("block.{i}");
    let fragments = fragments.into_iter().enumerate().map(|(i, bytes)| (name(i), bytes)).collect();
    let code = spec("isal-cauchy:k=3,m=2");
    let hints = Hints::default().code(code).length(length as u64).cell(8);
    let (format, others, name) = (Format::Hdfs, Vec::new(), "block".to_owned());
    Set { format, hints, fragments, others, content, name, k: 3 }
}

/// Cells of `cell` bytes over four nodes, padded with the byte `padding`.
fn of_jerasure(length: usize, cell: usize, padding: u8, buffer: usize, buffers: usize) -> Set {
    let mut content = content(length);
    content.resize(length.next_multiple_of(4 * cell), padding);
    let mut data = vec![Vec::new(); 4];
    for (number, cell) in content.chunks(cell).enumerate() {
        data[number % 4].extend_from_slice(cell);
    }
    content.truncate(length);
    let names =
        ["a_k1.tar.gz", "a_k2.tar.gz", "a_k3.tar.gz", "a_k4.tar.gz", "a_m1.tar.gz", "a_m2.tar.gz"];
    let fragments = with_parity(&data, 16, &families::reed_sol_van(16, 4, 2));
    let fragments = names.map(str::to_owned).into_iter().zip(fragments).collect();
    let meta = format!("a.tar.gz\n{length}\n4 2 16 0 {buffer}\nreed_sol_van\n0\n{buffers}\n");
    let others = vec![("a_meta.txt".to_owned(), meta.into_bytes())];
    let (format, name) = (Format::Jerasure, "a.tar.gz".to_owned());
    Set { format, hints: Hints::default(), fragments, others, content, name, k: 4 }
}

#[test]
fn what_zfec_wrote_comes_back() {
    for set in [
        zfec("two-stripes", 9001, 2),
        zfec("tiny.txt", 10, 3),
        zfec("wide", 101, 10),
        zfec("full", 8192, 2),
    ] {
        set.expect_round_trip();
    }
}

#[test]
fn hints_that_contradict_fragments_are_refused() {
    let import = |hints: Hints| {
        let set = Set { hints, ..zfec("tiny.txt", 10, 3) };
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        set.write(from.path(), &[]);
        set.import(from.path(), to.path()).map(drop)
    };
    let refused = import(Hints::default().code(spec("rdp:k=4"))).unwrap_err().to_string();
    assert!(refused.contains("`code` is rdp:k=4"), "{refused}");
    let refused = import(Hints::default().length(11)).unwrap_err().to_string();
    assert!(refused.contains("`length` is 11, but the fragments say 10"), "{refused}");
    import(Hints::default().length(10)).unwrap();
}

#[test]
fn what_klauspost_wrote_comes_back() {
    klauspost("split.bin", 1001, 5, 3).expect_round_trip();
    klauspost("even", 400, 4, 2).expect_round_trip();
}

/// Fragments that an export replaces come back if it fails, and its own go.
#[test]
fn a_failed_export_changes_nothing() {
    let set = klauspost("even", 400, 4, 2);
    let (shards, to) = (set.recover(&[]), tempfile::tempdir().unwrap());
    let place = |number: usize| to.path().join(&set.fragments[number].0);
    fs::write(place(0), "old").unwrap();
    fs::create_dir(place(5)).unwrap();
    let object = &scan(&[shards.path().to_owned()]).objects[0];
    let job = ExportJob::new(set.format, to.path()).hints(set.hints.clone()).force(true);
    export(&job, object, &|_| {}).unwrap_err();
    assert_eq!(fs::read(place(0)).unwrap(), b"old");
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 2);
    fs::remove_dir(place(5)).unwrap();
    assert_eq!(export(&job, object, &|_| {}).unwrap().len(), 6);
    assert!(fs::read(place(0)).unwrap() == set.fragments[0].1);
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 6);
}

#[test]
fn cells_of_hdfs_come_back() {
    for length in [1, 7, 8, 9, 16, 24, 25, 47, 48, 100] {
        hdfs(length).expect_round_trip();
    }
}

/// Parity is computed from whole words, so cells that cut words would give wrong bytes.
#[test]
fn cells_of_hdfs_are_whole_words() {
    let code = "reed-solomon:k=3,m=2,w=16";
    for (length, cell, part) in [
        (100, 7, Some("`cell` must be a whole number of words of 2 bytes; got 7")),
        (95, 6, Some("words of 2 bytes, but that of a file of 95 bytes has 35 bytes;")),
        (1, 1 << 20, Some("but that of a file of 1 byte has 1 byte;")),
        (107, 6, None),
        (100, 10, None),
    ] {
        let (shards, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let job = EncodeJob::new(Code::new(&spec(code)).unwrap(), "n", vec![shards.path().into()]);
        encode(&job, &content(length)[..], &|_| {}).unwrap();
        let hints = Hints::default().code(spec(code)).length(length as u64).cell(cell);
        let mut set = Set {
            format: Format::Hdfs,
            hints,
            fragments: (0..5).map(|number| (format!("n.{number}"), vec![0; 36])).collect(),
            others: Vec::new(),
            content: content(length),
            name: "n".into(),
            k: 3,
        };
        let exported = set.export(shards.path(), out.path());
        let Some(part) = part else {
            set.fragments.clear();
            for path in exported.unwrap() {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                set.fragments.push((name, fs::read(path).unwrap()));
            }
            set.expect_round_trip();
            continue;
        };
        for error in [exported.unwrap_err(), refused(&set, &[], |_| {})] {
            assert_eq!(error.kind(), ErrorKind::Parameters);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

/// In one buffer, as `export` writes it; and in several buffers with other padding, as the encoder
/// writes them.
#[test]
fn fragments_of_jerasure_come_back() {
    for length in [1_usize, 128, 512, 513, 3000] {
        let cell = length.div_ceil(4).next_multiple_of(128);
        of_jerasure(length, cell, 0, length, 1).expect_round_trip();
    }
    for lost in [&[][..], &[0], &[1, 4], &[2, 3], &[4, 5]] {
        of_jerasure(3000, 256, b'0', 1024, 3).recover(lost);
    }
}

/// If no length is given, the padding is a part of the file.
#[test]
fn an_unknown_length_keeps_the_padding() {
    let mut set = klauspost("split.bin", 1001, 5, 3);
    set.hints.length = None;
    set.content.resize(1005, 0);
    set.recover(&[0, 6]);
    let mut set = hdfs(50);
    set.hints.length = None;
    set.recover(&[3, 4]);
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    set.write(from.path(), &[1]);
    let error = set.import(from.path(), to.path()).unwrap_err();
    assert!(error.to_string().contains("so the length of the file is unknown"), "{error}");
}

/// Imports changed fragments, which must fail and leave nothing.
fn refused(set: &Set, lost: &[usize], change: impl Fn(&Path)) -> Error {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    set.write(from.path(), lost);
    change(from.path());
    let error = set.import(from.path(), to.path()).unwrap_err();
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    error
}

#[test]
fn damage_is_found_or_refused() {
    let set = klauspost("split.bin", 1001, 5, 3);
    let path = |folder: &Path| folder.join("split.bin.2");
    let flip = |folder: &Path| {
        let mut bytes = fs::read(path(folder)).unwrap();
        bytes[77] ^= 1;
        fs::write(path(folder), bytes).unwrap();
    };
    let error = refused(&set, &[0, 7], flip);
    assert_eq!(error.kind(), ErrorKind::DigestMismatch);
    assert!(error.to_string().contains("byte 77 of fragment 6"), "{error}");
    let cut = |folder: &Path| fs::write(path(folder), [0; 50]).unwrap();
    let error = refused(&set, &[], cut);
    assert_eq!(error.kind(), ErrorKind::Parameters);
    assert!(error.to_string().contains("leave out damaged ones"), "{error}");
    let error = refused(&set, &[0, 1, 2, 3], |_| {});
    assert_eq!(error.kind(), ErrorKind::TooFewShards);
    assert!(error.to_string().contains("4 of 8 fragments are at hand"), "{error}");
    // With exactly k fragments there is nothing to compare with.
    set.recover(&[2, 6, 7]);
}

/// Changes bytes of fragments, given as pairs of a fragment and a byte.
fn flip(set: &Set, places: &[(usize, usize)]) -> impl Fn(&Path) {
    let places: Vec<(String, usize)> =
        places.iter().map(|&(number, byte)| (set.fragments[number].0.clone(), byte)).collect();
    move |folder: &Path| {
        for (name, byte) in &places {
            let mut bytes = fs::read(folder.join(name)).unwrap();
            bytes[*byte] ^= 0x40;
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

/// With two fragments more than are needed, the damaged one is named, whichever it is. Importing
/// without it gives the right file.
#[test]
fn the_damaged_fragment_is_named() {
    let set = klauspost("split.bin", 1001, 5, 3);
    for lost in [&[][..], &[4]] {
        for culprit in (0..8).filter(|number| !lost.contains(number)) {
            let error = refused(&set, lost, flip(&set, &[(culprit, 99)])).to_string();
            let named =
                format!("split.bin.{culprit}) is damaged, since all others agree; leave it out");
            assert!(error.contains(&named), "{error}");
            let mut without = [lost, &[culprit]].concat();
            without.sort_unstable();
            set.recover(&without);
        }
    }
    // One fragment more than is needed shows only that one is damaged.
    let error = refused(&set, &[0, 1], flip(&set, &[(5, 99)])).to_string();
    assert!(error.contains("7 fragments would tell which is damaged, but 6"), "{error}");
    // Two are damaged, at different places and at the same.
    let error = refused(&set, &[], flip(&set, &[(2, 77), (6, 150)])).to_string();
    assert!(error.contains("split.bin.2) is damaged") && error.contains("at byte 150"), "{error}");
    let error = refused(&set, &[], flip(&set, &[(2, 77), (6, 77)])).to_string();
    assert!(error.contains("more than one of them is damaged"), "{error}");
}

/// The damaged share is told by its length, also if it is the first.
#[test]
fn a_cut_share_is_named() {
    let set = zfec("two-stripes", 9001, 2);
    for culprit in [0, 1] {
        let name = &set.fragments[culprit].0;
        let cut = |folder: &Path| {
            let bytes = fs::read(folder.join(name)).unwrap();
            fs::write(folder.join(name), &bytes[..20]).unwrap();
        };
        let error = refused(&set, &[], cut).to_string();
        assert!(error.contains(&format!("{name} has 20 bytes, but")), "{error}");
    }
}

/// Fragments that change while they are read would give a file that never was.
#[test]
fn fragments_that_change_meanwhile_are_refused() {
    let set = klauspost("split.bin", 1001, 5, 3);
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    set.write(from.path(), &[]);
    // The job is asked for after the fragments were compared, and before they are encoded.
    let job = |code: Code, name| {
        let fragment = fs::File::options().write(true).open(from.path().join("split.bin.1"));
        fragment.unwrap().set_len(50).unwrap();
        EncodeJob::new(code, name, vec![to.path().to_owned()]).sync(false)
    };
    let paths = [from.path().to_owned()];
    let error = import(set.format, &paths, &set.hints, job, &|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("split.bin.1 changed while it was read"), "{error}");
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
}

/// A misspelled path, or one that is not a file, is refused. It does not count as a missing
/// fragment.
#[test]
fn paths_that_are_no_files_are_refused() {
    let set = klauspost("split.bin", 1001, 5, 3);
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    set.write(from.path(), &[]);
    for (path, kind) in [
        (from.path().join("nowhere.2"), ErrorKind::Io),
        (PathBuf::from("/dev/null"), ErrorKind::NotRecognised),
    ] {
        let paths = [from.path().to_owned(), path.clone()];
        let job = |code: Code, name| EncodeJob::new(code, name, vec![to.path().to_owned()]);
        let error = import(set.format, &paths, &set.hints, job, &|_| {}).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn an_unknown_length_is_warned_of() {
    for (set, warned) in [(klauspost("split.bin", 1001, 5, 3), true), (hdfs(50), false)] {
        for known in [true, false] {
            let mut set = set.clone();
            set.hints.length = set.hints.length.filter(|_| known);
            let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            set.write(from.path(), &[]);
            let warnings = set.import(from.path(), to.path()).unwrap().encoded.warnings;
            let found = warnings.iter().any(|text| text.contains("all 1005 bytes are kept"));
            assert_eq!(found, warned && !known, "{warnings:?}");
        }
    }
}

/// A shard set is named as what it is, whatever format is asked for.
#[test]
fn own_shards_are_not_imported() {
    let own = zfec("tiny.txt", 10, 3).recover(&[]);
    for format in [Format::Zfec, Format::Klauspost, Format::Isal, Format::Hdfs, Format::Jerasure] {
        let set = Set { format, ..zfec("tiny.txt", 10, 3) };
        let to = tempfile::tempdir().unwrap();
        let error = set.import(own.path(), to.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotRecognised);
        assert!(error.to_string().contains("a shard of Paritas already"), "{error}");
    }
}

#[test]
fn what_is_no_fragment_is_refused() {
    let stray = |name: &'static str, bytes: &'static [u8]| {
        move |folder: &Path| fs::write(folder.join(name), bytes).unwrap()
    };
    let set = klauspost("even", 400, 4, 2);
    assert_eq!(refused(&set, &[], stray("odd.1", b"")).kind(), ErrorKind::NotRecognised);
    assert_eq!(refused(&set, &[], stray("even.6", b"")).kind(), ErrorKind::Parameters);
    assert_eq!(refused(&set, &[5], stray("even.05", b"")).kind(), ErrorKind::Parameters);
    let set = zfec("tiny.txt", 10, 3);
    assert_eq!(refused(&set, &[], stray("x.9_9.fec", b"")).kind(), ErrorKind::NotRecognised);
    let short = stray("x.9_9.fec", &[4, 0x80]);
    assert_eq!(refused(&set, &[], short).kind(), ErrorKind::NotRecognised);
    assert_eq!(refused(&set, &[0, 1, 2, 3, 4], |_| {}).kind(), ErrorKind::NotRecognised);
    let set = of_jerasure(100, 128, 0, 100, 1);
    let remove = |folder: &Path| fs::remove_file(folder.join("a_meta.txt")).unwrap();
    assert_eq!(refused(&set, &[], remove).kind(), ErrorKind::NotRecognised);
    assert_eq!(refused(&set, &[], stray("a_meta.txt", b"?")).kind(), ErrorKind::NotRecognised);
}

/// Tools write fragments beside the file, and the folder may have others.
#[test]
fn other_files_in_a_folder_are_left_out() {
    let (plain, shares) = (klauspost("even", 400, 4, 2), zfec("tiny.txt", 10, 3));
    for set in [&plain, &shares] {
        for stray in [&b""[..], &set.content, b"\x04\x80"] {
            let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            set.write(from.path(), &[1]);
            fs::write(from.path().join("README"), stray).unwrap();
            assert_eq!(set.import(from.path(), to.path()).unwrap().missing, [1]);
            // What is named is meant.
            let job = |code: Code, name| EncodeJob::new(code, name, vec![to.path().to_owned()]);
            let readme = [from.path().join("README"), from.path().join(&set.fragments[0].0)];
            let named = import(set.format, &readme, &set.hints, job, &|_| {});
            assert_eq!(named.unwrap_err().kind(), ErrorKind::NotRecognised);
        }
    }
}

/// With exactly k fragments, nothing tells that one is damaged.
#[test]
fn fragments_that_nothing_checks_are_warned_of() {
    let set = klauspost("even", 400, 4, 2);
    for (lost, is_warned) in [(&[0][..], false), (&[0, 5], true)] {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        set.write(from.path(), lost);
        let report = set.import(from.path(), to.path()).unwrap();
        let warning = "none could be compared";
        let is_told = report.encoded.warnings.iter().any(|told| told.contains(warning));
        assert_eq!(is_told, is_warned, "{:?}", report.encoded.warnings);
    }
}

/// zfec itself makes shares without parity.
#[test]
fn shares_without_parity_are_told() {
    let folder = tempfile::tempdir().unwrap();
    // n = 2, k = 2, no padding, share 0 or 1.
    for share in 0..2 {
        let header = [1, 0b1000_0000 | share << 5];
        let name = format!("a.{share}_2.fec");
        fs::write(folder.path().join(name), [&header[..], b"abc"].concat()).unwrap();
    }
    let set = zfec("tiny.txt", 10, 3);
    let error = set.import(folder.path(), folder.path()).unwrap_err();
    assert!(error.to_string().contains("2 of 2 shares"), "{error}");
}

/// Leopard's programs take lengths that are multiples of 64 bytes alone.
#[test]
fn fragments_of_leopard_are_whole_blocks() {
    let (shards, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let code = Code::new(&spec("leopard8:k=4,m=2")).unwrap();
    let job = EncodeJob::new(code, "n", vec![shards.path().into()]);
    encode(&job, &content(99_999)[..], &|_| {}).unwrap();
    let set = Set { format: Format::Isal, hints: Hints::default(), ..zfec("full", 8192, 2) };
    for path in set.export(shards.path(), out.path()).unwrap() {
        assert_eq!(fs::metadata(path).unwrap().len(), 25_024);
    }
}

/// Shares of two files may have equal headers. Their names tell them apart, unless they were
/// renamed.
#[test]
fn shares_of_two_files_are_not_mixed() {
    let set = zfec("tiny.txt", 10, 3);
    let rename = |to: &'static str| {
        move |folder: &Path| {
            fs::rename(folder.join("tiny.txt.1_5.fec"), folder.join(to)).unwrap();
        }
    };
    let error = refused(&set, &[0, 4], rename("other.1_5.fec"));
    assert_eq!(error.kind(), ErrorKind::NotRecognised);
    let error = error.to_string();
    assert!(error.contains("fragments of two files are given"), "{error}");
    assert!(error.contains("other.1_5.fec") && error.contains("tiny.txt.2_5.fec"), "{error}");
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    set.write(from.path(), &[0, 4]);
    rename("second")(from.path());
    assert_eq!(set.import(from.path(), to.path()).unwrap().missing, [0, 4]);
}

#[test]
fn formats_take_their_codes_alone() {
    for (code, format, part) in [
        ("4+2", Format::Isal, "use a code in the word layout"),
        ("backblaze:k=2,m=1", Format::Zfec, "must be one of zfec"),
        ("zfec:k=2,m=1", Format::Klauspost, "must be one of backblaze"),
        ("zfec:k=2,m=1", Format::Jerasure, "must be one of reed-solomon, raid6, cauchy-orig"),
        ("raid6:k=2,w=8,layout=packets", Format::Jerasure, "use a code in words"),
    ] {
        let (shards, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let code = Code::new(&spec(code)).unwrap();
        let job = EncodeJob::new(code, "name", vec![shards.path().to_owned()]);
        encode(&job, &b"some bytes"[..], &|_| {}).unwrap();
        let set = Set { format, ..zfec("full", 8192, 2) };
        let error = set.export(shards.path(), to.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parameters);
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    }
}

/// The name stands in one line of Jerasure's description. With a line break in it, nobody could
/// read the description.
#[test]
fn names_with_line_breaks_are_refused() {
    for (name, is_refused) in [("two words", false), ("two\nlines", true), ("end\r", true)] {
        let (shards, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let code = Code::new(&spec("reed-solomon:k=2,m=1,w=8")).unwrap();
        let job = EncodeJob::new(code, name, vec![shards.path().to_owned()]);
        encode(&job, &b"some bytes"[..], &|_| {}).unwrap();
        let set = Set { format: Format::Jerasure, ..zfec("full", 8192, 2) };
        match set.export(shards.path(), to.path()) {
            Ok(files) => assert!(!is_refused && files.len() == 4, "{files:?}"),
            Err(error) => {
                assert!(is_refused && error.to_string().contains("line break"), "{error}");
                assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
            }
        }
    }
}

/// Any code in the word layout, over more than one chunk, in both directions; words stay whole.
#[test]
fn plain_fragments_of_any_code() {
    for (code, length) in
        [("reed-solomon:k=3,m=2,w=32", 400_003), ("raid6:k=2,w=16", 5), ("isal-rs:k=4,m=3", 0)]
    {
        let shards = tempfile::tempdir().unwrap();
        let job = EncodeJob::new(Code::new(&spec(code)).unwrap(), "n", vec![shards.path().into()]);
        encode(&job, &content(length)[..], &|_| {}).unwrap();
        let k = job.code.symbols().unwrap().data_nodes();
        let hints = Hints::default().code(spec(code)).length(length as u64);
        let mut set = Set {
            format: Format::Isal,
            hints,
            fragments: Vec::new(),
            others: Vec::new(),
            content: content(length),
            name: "n".into(),
            k,
        };
        let out = tempfile::tempdir().unwrap();
        for path in set.export(shards.path(), out.path()).unwrap() {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            set.fragments.push((name, fs::read(path).unwrap()));
        }
        set.expect_round_trip();
    }
}
