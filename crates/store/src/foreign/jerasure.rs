//! The files of Jerasure's example programs `encoder` and `decoder`, with its Reed-Solomon
//! techniques.
//!
//! `encoder` (Jerasure 2.0, `Examples/encoder.c`) writes data fragment i of `NAME.EXT`, from 1, as
//! `NAME_k<i>.EXT` and parity as `NAME_m<i>.EXT`, both with the digits of k; NAME ends at the first
//! dot. A file `NAME_meta.txt` has six lines: the path of the file; its length; k, m, w, packet
//! size and buffer size; the name of the technique; its number; and how many buffers were read.
//!
//! One buffer is encoded at a time, cut into k cells. With one buffer its size is stated as the
//! file's length, and cells follow from the fragments, a k-th of the file padded to whole words.
//! The last buffer is full. What pads it is unspecified in the original (memory as it was found, or
//! the digit 0) and is part of no file; here it is zeros. Packet sizes do not matter in these
//! techniques.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use paritas::{Code, Spec};

use crate::error::{Error, Result};
use crate::foreign::layout::{Last, Layout};
use crate::foreign::plain::lengths;
use crate::foreign::{
    Foreign, Hints, Plan, Survey, by_number, data_nodes, expect_family, file_name, not_recognised,
};
use crate::shown::shown;

/// The bytes of a long, which cells are a multiple of w of.
const LONG: u64 = 8;

/// The end of the name of the file that describes the others.
const META: &str = "_meta.txt";

/// More bytes than any such file has.
const MAX_META: u64 = 64 << 10;

/// The techniques in the word layout: name, number and family.
const TECHNIQUES: [(&str, u32, &str); 2] =
    [("reed_sol_van", 0, "reed-solomon"), ("reed_sol_r6_op", 1, "raid6")];

pub(super) struct Jerasure;

/// What `NAME_meta.txt` says.
struct Meta {
    /// The file's own name.
    name: String,
    length: u64,
    code: Code,
    buffer: u64,
    buffers: u64,
}

impl Meta {
    fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_META).read_to_end(&mut bytes))
            .map_err(|error| Error::io("reading", path, &error))?;
        Self::parse(&String::from_utf8_lossy(&bytes))?
            .ok_or_else(|| not_recognised(path, "it is not what Jerasure's encoder writes"))
    }

    /// # Errors
    /// When the code that it names cannot be made.
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
        let (&[length], &[k, m, w, _, buffer], &[buffers]) =
            (&length[..], &shape[..], &buffers[..])
        else {
            return Ok(None);
        };
        if length > i64::MAX as u64 {
            return Ok(None);
        }
        let code = Code::new(&spec(technique, k, m, w)?)?;
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Some(Self { name, length, code, buffer, buffers }))
    }
}

/// The spec of a technique.
fn spec(technique: &str, k: u64, m: u64, w: u64) -> Result<Spec> {
    let known = TECHNIQUES.iter().find(|(name, ..)| *name == technique);
    match known {
        Some(&(.., "raid6")) if m == 2 => Ok(Spec::new("raid6").with("k", k).with("w", w)),
        Some(&(.., family)) if family != "raid6" => {
            Ok(Spec::new(family).with("k", k).with("m", m).with("w", w))
        }
        _ => Err(Error::parameters(format!(
            "{} with m = {m}: of Jerasure's techniques there are reed_sol_van, and \
             reed_sol_r6_op with m = 2",
            shown(technique)
        ))),
    }
}

impl Foreign for Jerasure {
    fn survey(&self, files: &[PathBuf], _: &Hints) -> Result<Survey> {
        let is_meta = |path: &&PathBuf| file_name(path).ends_with(META);
        let Some(path) = files.iter().find(is_meta) else {
            let why = "no NAME_meta.txt is beside it, without which fragments tell nothing";
            return Err(not_recognised(&files[0], why));
        };
        let meta = Meta::read(path)?;
        let (k, n) = (data_nodes(&meta.code)?, meta.code.node_count());
        let names = fragment_names(&meta.name, k, n);
        let numbered = files.iter().filter_map(|path| {
            let number = names.iter().position(|name| name == file_name(path))?;
            Some((number, path.clone()))
        });
        let files = by_number(n, numbered)?;
        let layout = layout(&meta, k, lengths(&files)?.into_iter().flatten().next());
        let Meta { code, name, .. } = meta;
        Ok(Survey { code, name: name.into(), layout, header: 0, files })
    }

    fn plan(&self, code: &Code, name: &str, length: u64, _: &Hints) -> Result<Plan> {
        expect_family(code, &TECHNIQUES.map(|(.., family)| family))?;
        let (k, n) = (data_nodes(code)?, code.node_count());
        let w = code.symbols().map_or(0, |symbols| symbols.field().width());
        let cell = length.div_ceil(k as u64).next_multiple_of(u64::from(w) * LONG);
        let technique = TECHNIQUES.iter().find(|(.., family)| *family == code.spec().family());
        let (technique, number, _) = technique.copied().unwrap_or(TECHNIQUES[0]);
        let meta =
            format!("{name}\n{length}\n{k} {} {w} 0 {length}\n{technique}\n{number}\n1\n", n - k);
        let files = fragment_names(name, k, n).into_iter().map(|name| (name, Vec::new())).collect();
        let cell = cell.max(1);
        Ok(Plan {
            layout: Layout { k, length, cell, last: Last::Even(cell) },
            files,
            others: vec![(format!("{}{META}", stem(name)), meta.into_bytes())],
        })
    }
}

/// One buffer is as long as the fragments say; of several, the stated size counts.
fn layout(meta: &Meta, k: usize, fragment: Option<u64>) -> Layout {
    let cell = match meta.buffers {
        0 | 1 => fragment.unwrap_or(0),
        _ => meta.buffer / k as u64,
    };
    let cell = cell.max(1);
    Layout { k, length: meta.length, cell, last: Last::Even(cell) }
}

/// A name up to the first dot.
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
                let layout = layout(&meta, k as usize, fragment);
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
        for (from, to) in [("reed_sol_van", "cauchy_good"), ("4 2 8", "0 2 8"), ("4 2 8", "4 2 9")]
        {
            assert!(Meta::parse(&good.replace(from, to)).is_err(), "{to}");
        }
    }
}
