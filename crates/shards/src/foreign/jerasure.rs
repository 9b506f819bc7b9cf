//! The files of Jerasure's example programs `encoder` and `decoder`, with all of its techniques.
//!
//! `encoder` (Jerasure 2.0, `Examples/encoder.c`) numbers fragments from 1; all numbers have at
//! least the number of digits of k. Data fragment i of `NAME.EXT` is `NAME_k<i>.EXT`, and parity
//! fragment i is `NAME_m<i>.EXT`; NAME ends at the first dot. A file `NAME_meta.txt` has six lines:
//! the path of the file; its length; k, m, w, packet size and buffer size; the name of the
//! technique; its number; and the number of buffers that were read.
//!
//! One buffer is encoded at a time, cut into k cells. If there is only one buffer, its stated size
//! is the file's length, and a cell is as long as a fragment: a k-th of the file, padded to whole
//! strips of longs. The last buffer is full. Its padding is unspecified in the original
//! (uninitialised memory, or the digit 0) and is not part of the file; here it is zeros. The
//! Reed-Solomon techniques compute with words, whatever the packet size; the others compute with
//! strips of w packets.

use std::io::Read;
use std::path::{Path, PathBuf};

use paritas::{Code, DEFAULT_PACKET, Spec};
use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use crate::foreign::layout::{FragmentLayout, Last};
use crate::foreign::plain::lengths;
use crate::foreign::{
    ExportPlan, ForeignFormat, Hints, Survey, by_number, expect_family, file_name, not_recognised,
};
use paritas_store::place::system::open_to_read;

/// Number of bytes of a long: a cell is a multiple of w longs, or of 8 strips of packets.
const LONG: u64 = 8;

/// The end of the name of the file that describes the fragments.
const META: &str = "_meta.txt";

/// The longest description that is read, in bytes: far more than its six lines take.
const MAX_META: u64 = 64 << 10;

/// The largest number of bytes of one strip of all fragments together. It equals the limit of a
/// shard's stripe.
const MAX_STRIPE: u64 = 64 << 20;

/// A technique of the encoder.
struct Technique {
    name: &'static str,
    number: u32,
    family: &'static str,
    /// The parameters of the family. A missing m stands for 2, and a missing w for 8.
    parameters: &'static [&'static str],
    /// Whether packets must be whole longs.
    takes_longs: bool,
}

const TECHNIQUES: [Technique; 7] = [
    technique("reed_sol_van", 0, "reed-solomon", &["k", "m", "w"], false),
    technique("reed_sol_r6_op", 1, "raid6", &["k", "w"], false),
    technique("cauchy_orig", 2, "cauchy-orig", &["k", "m", "w"], false),
    technique("cauchy_good", 3, "cauchy-good", &["k", "m", "w"], false),
    technique("liberation", 4, "liberation", &["k", "w"], true),
    technique("blaum_roth", 5, "blaum-roth", &["k", "w"], true),
    technique("liber8tion", 6, "liber8tion", &["k"], true),
];

const fn technique(
    name: &'static str,
    number: u32,
    family: &'static str,
    parameters: &'static [&'static str],
    takes_longs: bool,
) -> Technique {
    Technique { name, number, family, parameters, takes_longs }
}

impl Technique {
    /// Returns the spec of a code of this technique.
    fn spec(&self, k: u64, m: u64, w: u64) -> Result<Spec> {
        let mut spec = Spec::new(self.family);
        for (parameter, value, only) in [("k", k, k), ("m", m, 2), ("w", w, 8)] {
            if self.parameters.contains(&parameter) {
                spec = spec.with(parameter, value);
            } else if value != only {
                let name = self.name;
                return Err(Error::parameters(format!(
                    "{name}: {parameter} must be {only}; got {value}"
                )));
            }
        }
        Ok(spec)
    }

    /// Returns the technique that computes the same bytes as a code, in words or in packets as the
    /// code does.
    fn of(code: &Code) -> Result<&'static Self> {
        expect_family(code, &TECHNIQUES.map(|technique| technique.family))?;
        let family = code.spec().family();
        let found = TECHNIQUES.iter().find(|technique| technique.family == family);
        let has_words = matches!(family, "reed-solomon" | "raid6");
        found.filter(|_| has_words == code.symbols().is_some()).ok_or_else(|| {
            Error::parameters(format!(
                "{} is in packets, but Jerasure computes it with words; use a code in words",
                code.spec()
            ))
        })
    }

    /// Refuses a packet size that the encoder does not accept for this technique, or for any
    /// technique.
    fn expect_packet(&self, packet: u64) -> Result<()> {
        if packet > 0 && (!self.takes_longs || packet.is_multiple_of(LONG)) {
            return Ok(());
        }
        let name = self.name;
        let bytes = if self.takes_longs { "a multiple of 8 bytes" } else { "at least 1 byte" };
        Err(Error::parameters(format!("{name}: a packet must be {bytes}; got {packet}")))
    }
}

/// The way in which a code cuts fragments.
struct Strips {
    k: usize,
    /// Number of bits of a word, or of packets of a strip.
    w: u64,
    /// Number of bytes of a packet, unless the code computes with words.
    packet: Option<u64>,
}

impl Strips {
    fn of(code: &Code, technique: &Technique, packet: u64) -> Result<Self> {
        let k = code.nodes().filter(|&node| code.holds_data(node)).count();
        let Some(symbols) = code.symbols() else {
            technique.expect_packet(packet)?;
            let w = code.cells_of(code.nodes().take(1)).len() as u64;
            let strips = Self { k, w, packet: Some(packet) };
            return strips.expect_bounded(code);
        };
        Ok(Self { k, w: symbols.field().width().into(), packet: None })
    }

    fn expect_bounded(self, code: &Code) -> Result<Self> {
        let stripe = self.bytes().saturating_mul(code.node_count() as u64);
        match stripe <= MAX_STRIPE {
            true => Ok(self),
            false => Err(Error::parameters(format!(
                "a strip of all {} fragments must have at most {MAX_STRIPE} bytes; got {stripe}; use \
                 shorter packets",
                code.node_count()
            ))),
        }
    }

    /// Returns the number of bytes of a strip.
    fn bytes(&self) -> u64 {
        self.packet.map_or(self.w / 8, |packet| packet.saturating_mul(self.w))
    }

    /// Returns a number of bytes. The length of every cell of the encoder is a multiple of it.
    fn unit(&self) -> u64 {
        self.packet.unwrap_or(1).saturating_mul(self.w * LONG)
    }

    fn packet(&self) -> Option<usize> {
        self.packet.map(|packet| packet as usize)
    }
}

pub(super) struct Jerasure;

/// The content of `NAME_meta.txt`.
struct Meta {
    /// The file's own name.
    name: String,
    length: u64,
    code: Code,
    strips: Strips,
    buffer: u64,
    buffers: u64,
}

impl Meta {
    fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        open_to_read(path)
            .and_then(|file| file.take(MAX_META).read_to_end(&mut bytes))
            .map_err(|error| Error::io("reading", path, &error))?;
        Self::parse(&String::from_utf8_lossy(&bytes))?
            .ok_or_else(|| not_recognised(path, "this is not what Jerasure's encoder writes"))
    }

    /// Reads a description. Returns `None` if the text is not one.
    ///
    /// # Errors
    /// If the description does not name a valid code.
    fn parse(text: &str) -> Result<Option<Self>> {
        let lines: Vec<&str> = text.lines().collect();
        let &[path, length, shape, technique, _, buffers] = &lines[..] else { return Ok(None) };
        let numbers = |line: &str| -> Option<Vec<u64>> {
            line.split_whitespace().map(|number| number.parse().ok()).collect()
        };
        let (Some(length), Some(shape), Some(buffers)) =
            (numbers(length), numbers(shape), numbers(buffers))
        else {
            return Ok(None);
        };
        let (&[length], &[k, m, w, packet, buffer], &[buffers]) =
            (&length[..], &shape[..], &buffers[..])
        else {
            return Ok(None);
        };
        if length > i64::MAX as u64 {
            return Ok(None);
        }
        let code = Code::new(&named(technique)?.spec(k, m, w)?)?;
        let technique = Technique::of(&code)?;
        let strips = Strips::of(&code, technique, packet)?;
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Some(Self { name, length, code, strips, buffer, buffers }))
    }
}

fn named(name: &str) -> Result<&'static Technique> {
    TECHNIQUES.iter().find(|technique| technique.name == name).ok_or_else(|| {
        let known = TECHNIQUES.map(|technique| technique.name).join(", ");
        Error::parameters(format!("a technique must be one of {known}; got {}", shown(name)))
    })
}

impl ForeignFormat for Jerasure {
    fn survey(&self, files: &[PathBuf], _: &Hints) -> Result<Survey> {
        let mut metas = files.iter().filter(|path| file_name(path).ends_with(META));
        let Some(path) = metas.next() else {
            let why = "no NAME_meta.txt is given, and without that file the code is unknown";
            return Err(not_recognised(&files[0], why));
        };
        if let Some(other) = metas.next() {
            let why = format!("{} is given, too; give the fragments of one object", shown(path));
            return Err(not_recognised(other, &why));
        }
        let meta = Meta::read(path)?;
        let (k, n) = (meta.strips.k, meta.code.node_count());
        let names = fragment_names(&meta.name, k, n);
        let numbered = files.iter().filter_map(|path| {
            let number = names.iter().position(|name| name == file_name(path))?;
            Some((number, path.clone()))
        });
        let files = by_number(n, numbered)?;
        if files.iter().all(Option::is_none) {
            let (first, last) = (shown(&names[0]), shown(&names[n - 1]));
            return Err(Error::not_recognised(format!(
                "{} describes {first} to {last}, but none of these is given",
                shown(path)
            )));
        }
        let cell = cell(&meta, lengths(&files)?.into_iter().flatten().next());
        if !cell.is_multiple_of(meta.strips.bytes()) {
            let strip = meta.strips.bytes();
            let why = format!(
                "a cell must be a whole number of strips of {strip} bytes; got {cell} bytes"
            );
            return Err(not_recognised(path, &why));
        }
        let Meta { code, name, strips, length, .. } = meta;
        let layout = layout(k, length, cell);
        let packet = strips.packet();
        Ok(Survey { code, name: name.into(), layout, header: 0, packet, files, warning: None })
    }

    fn plan(&self, code: &Code, name: &str, length: u64, hints: &Hints) -> Result<ExportPlan> {
        // NAME_meta.txt has one line for the name.
        if name.contains(['\n', '\r']) {
            return Err(Error::parameters(format!(
                "Jerasure's NAME_meta.txt cannot hold a name with a line break; got {}; to change \
                 the name, decode the object and encode it again",
                shown(name)
            )));
        }
        let technique = Technique::of(code)?;
        let strips = Strips::of(code, technique, hints.packet.unwrap_or(DEFAULT_PACKET) as u64)?;
        let (n, Strips { k, w, packet }) = (code.node_count(), &strips);
        let cell = length.div_ceil(*k as u64).next_multiple_of(strips.unit());
        let meta = format!(
            "{name}\n{length}\n{k} {} {w} {} {length}\n{}\n{}\n1\n",
            n - k,
            packet.unwrap_or(0),
            technique.name,
            technique.number
        );
        let files = fragment_names(name, *k, n).into_iter().map(|name| (name, Vec::new()));
        Ok(ExportPlan {
            layout: layout(*k, length, cell),
            packet: strips.packet(),
            files: files.collect(),
            others: vec![(format!("{}{META}", stem(name)), meta.into_bytes())],
        })
    }

    fn legal_packet(&self, code: &Code, packet: usize) -> usize {
        let takes_longs = Technique::of(code).is_ok_and(|technique| technique.takes_longs);
        if takes_longs { packet.next_multiple_of(LONG as usize) } else { packet }
    }
}

/// Returns the number of bytes of a cell. If there is one buffer, the cell is as long as a
/// fragment; if there are several, the stated buffer size decides.
fn cell(meta: &Meta, fragment: Option<u64>) -> u64 {
    match meta.buffers {
        0 | 1 => fragment.unwrap_or(0),
        _ => meta.buffer / meta.strips.k as u64,
    }
}

fn layout(k: usize, length: u64, cell: u64) -> FragmentLayout {
    // Fragments of an empty file are empty.
    let cell = cell.max(1);
    FragmentLayout { k, length, cell, last: Last::Even(cell) }
}

/// Returns a name up to the first dot.
fn stem(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn fragment_names(name: &str, k: usize, n: usize) -> Vec<String> {
    let (stem, digits) = (stem(name), k.to_string().len());
    let extension = &name[stem.len()..];
    let one = |node: usize| match node.checked_sub(k) {
        None => format!("{stem}_k{:0digits$}{extension}", node + 1),
        Some(parity) => format!("{stem}_m{:0digits$}{extension}", parity + 1),
    };
    (0..n).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_description_panics(
            length in any::<u64>(), k in 0_u64..9, m in 0_u64..9, buffer in any::<u64>(), buffers in 0_u64..3,
            fragment in any::<Option<u64>>(),
        ) {
            let text = format!("a\n{length}\n{k} {m} 8 0 {buffer}\nreed_sol_van\n0\n{buffers}\n");
            if let Ok(Some(meta)) = Meta::parse(&text) {
                let layout = layout(k as usize, meta.length, cell(&meta, fragment));
                prop_assert!(layout.parity_length() >= layout.fragment_length(0));
                prop_assert!(layout.runs().take(9).all(|run| run.length <= length));
            }
        }
    }

    #[test]
    fn names_end_at_the_first_dot() {
        let names = fragment_names("a.tar.gz", 10, 12);
        assert_eq!(
            [&names[0], &names[9], &names[11]],
            ["a_k01.tar.gz", "a_k10.tar.gz", "a_m02.tar.gz"]
        );
        assert_eq!(fragment_names("plain", 2, 3)[2], "plain_m1");
    }

    #[test]
    fn what_is_no_description_is_refused() {
        let good = "/tmp/a.txt\n1000\n4 2 8 0 1000\nreed_sol_van\n0\n1\n";
        let meta = Meta::parse(good).unwrap().unwrap();
        assert_eq!((&*meta.name, meta.length, meta.code.node_count()), ("a.txt", 1000, 6));
        for (from, to) in [("1000\n4", "many\n4"), ("4 2 8 0 1000", "4 2 8 0"), ("\n1\n", "\n")] {
            assert!(Meta::parse(&good.replace(from, to)).unwrap().is_none(), "{to}");
        }
        for (from, to) in [
            ("reed_sol_van", "no_coding"),
            ("4 2 8", "0 2 8"),
            ("4 2 8", "4 2 9"),
            // These compute with packets.
            ("reed_sol_van", "cauchy_good"),
            ("4 2 8 0 1000\nreed_sol_van", "4 3 5 8 1000\nliberation"),
            ("4 2 8 0 1000\nreed_sol_van", "4 2 5 12 1000\nliberation"),
            ("4 2 8 0 1000\nreed_sol_van", "4 2 5 9000000000 1000\nliberation"),
            ("4 2 8 0 1000\nreed_sol_van", "4 2 7 8 1000\nliber8tion"),
        ] {
            assert!(Meta::parse(&good.replace(from, to)).is_err(), "{to}");
        }
    }
}
