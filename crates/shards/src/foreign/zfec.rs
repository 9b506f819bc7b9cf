//! The share files of zfec's command line.
//!
//! `zfec` (github.com/tahoe-lafs/zfec, `zfec/filefec.py`) encodes 4096 bytes of every share at a
//! time. The rest at the end is divided evenly, with less than k bytes of padding. Share i of n is
//! called `PREFIX.<i>_<n>.fec`; both numbers are padded to the number of digits of n. A share
//! begins with a header of two to four bytes: a string of bits, most significant first and padded
//! with zeros.
//!
//! | bits | field |
//! | --- | --- |
//! | 8 | n - 1 |
//! | log2 n, rounded up | k - 1 |
//! | log2 k, rounded up | the number of bytes of padding |
//! | log2 n, rounded up | the number of the share |

use std::io::Read;
use std::path::{Path, PathBuf};

use paritas::{Code, Spec};
use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use crate::foreign::layout::{FragmentLayout, Last};
use crate::foreign::plain::lengths;
use crate::foreign::{
    ExportPlan, ForeignFormat, Hints, Survey, by_number, data_nodes, expect_family, file_name,
    not_recognised,
};
use paritas_store::place::system::open_to_read;

/// Number of bytes of a share that zfec encodes at a time.
const CELL: u64 = 4096;

/// Length of the longest header, in bytes.
const HEADER: usize = 4;

pub(super) struct Zfec;

/// The fields of a share's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ZfecHeader {
    n: u32,
    k: u32,
    padding: u32,
    share: u32,
}

/// Returns the number of bits that a number below `count` takes.
fn bits_below(count: u32) -> u32 {
    count.next_power_of_two().ilog2()
}

impl ZfecHeader {
    /// Returns the fields with their widths in bits, in order.
    fn fields(&self) -> [(u32, u32); 4] {
        let Self { n, k, padding, share } = *self;
        let (n_bits, k_bits) = (bits_below(n), bits_below(k));
        [(n - 1, 8), (k - 1, n_bits), (padding, k_bits), (share, n_bits)]
    }

    fn length(&self) -> usize {
        self.fields().iter().map(|&(_, width)| width).sum::<u32>().div_ceil(8).max(2) as usize
    }

    fn to_bytes(self) -> Vec<u8> {
        let (mut bits, mut used) = (0_u64, 0);
        for (value, width) in self.fields() {
            bits = bits << width | u64::from(value);
            used += width;
        }
        (bits << (64 - used)).to_be_bytes()[..self.length()].to_vec()
    }

    /// Reads the header of a share that begins with `start`. Returns `None` if `start` does not
    /// begin with a header.
    fn parse(start: [u8; HEADER]) -> Option<Self> {
        let mut left = u64::from(u32::from_be_bytes(start)) << 32;
        let mut take = |width: u32| {
            let value = if width == 0 { 0 } else { left >> (64 - width) };
            left <<= width;
            value as u32
        };
        let n = take(8) + 1;
        let k = take(bits_below(n)) + 1;
        let padding = take(bits_below(k));
        let header = Self { n, k, padding, share: take(bits_below(n)) };
        (n > 1 && k <= n && padding < k && header.share < n).then_some(header)
    }

    fn read(path: &Path) -> Result<Self> {
        let mut start = Vec::new();
        open_to_read(path)
            .and_then(|file| file.take(HEADER as u64).read_to_end(&mut start))
            .map_err(|error| Error::io("reading", path, &error))?;
        let given = start.len();
        start.resize(HEADER, 0);
        let header = start.try_into().ok().and_then(Self::parse);
        let header = header.filter(|header| header.length() <= given);
        header.ok_or_else(|| not_recognised(path, "it does not begin with a zfec header"))
    }
}

impl ForeignFormat for Zfec {
    /// Shares that were renamed have the header of the others.
    fn fragments_among(&self, files: Vec<PathBuf>) -> Vec<PathBuf> {
        let header = |path: &Path| {
            let header = ZfecHeader::read(path).ok();
            header.map(|header| ZfecHeader { share: 0, ..header })
        };
        let named = files.iter().find(|path| named_prefix(path).is_some());
        let Some(of_named) = named.map(|path| header(path)) else { return files };
        let may = |path: &PathBuf| {
            named_prefix(path).is_some() || of_named.is_some() && header(path) == of_named
        };
        files.into_iter().filter(may).collect()
    }

    fn survey(&self, files: &[PathBuf], _: &Hints) -> Result<Survey> {
        let headers =
            files.iter().map(|path| ZfecHeader::read(path)).collect::<Result<Vec<_>>>()?;
        let (first, path) = (headers[0], &files[0]);
        let same = |header: &ZfecHeader| ZfecHeader { share: first.share, ..*header } == first;
        if let Some(other) = headers.iter().position(|header| !same(header)) {
            let why = format!("its header and that of {} are of different files", shown(path));
            return Err(not_recognised(&files[other], &why));
        }
        expect_one_file(files)?;
        let ZfecHeader { n, k, padding, .. } = first;
        if k == n {
            let why = format!("its header states {k} of {n} shares, so there is no parity");
            return Err(not_recognised(path, &why));
        }
        let header = first.length() as u64;
        let bytes = usual_length(files)?;
        let held = bytes.saturating_sub(header).saturating_mul(k.into());
        let length = held.checked_sub(padding.into()).ok_or_else(|| {
            not_recognised(path, "it is shorter than the padding that its header states")
        })?;
        let code = Code::new(&Spec::new("zfec").with("k", k).with("m", n - k))?;
        let numbered = headers.iter().zip(files).map(|(h, path)| (h.share as usize, path.clone()));
        let files = by_number(n as usize, numbered)?;
        let (name, layout) = (prefix(path).into(), layout(k, length));
        Ok(Survey { code, name, layout, header, packet: None, files, warning: None })
    }

    fn plan(&self, code: &Code, name: &str, length: u64, _: &Hints) -> Result<ExportPlan> {
        expect_family(code, &["zfec"])?;
        let (n, k) = (code.node_count() as u32, data_nodes(code)? as u32);
        let padding = (length.next_multiple_of(k.into()) - length) as u32;
        let digits = n.to_string().len();
        let file = |share| {
            let header = ZfecHeader { n, k, padding, share };
            (format!("{name}.{share:0digits$}_{n:0digits$}.fec"), header.to_bytes())
        };
        let files = (0..n).map(file).collect();
        Ok(ExportPlan { layout: layout(k, length), packet: None, files, others: Vec::new() })
    }
}

fn layout(k: u32, length: u64) -> FragmentLayout {
    FragmentLayout { k: k as usize, length, cell: CELL, last: Last::Even(1) }
}

/// Returns the length that most files have, or the first of such lengths: a file with another
/// length is damaged.
fn usual_length(files: &[PathBuf]) -> Result<u64> {
    let given: Vec<Option<PathBuf>> = files.iter().cloned().map(Some).collect();
    let lengths: Vec<u64> = lengths(&given)?.into_iter().flatten().collect();
    let count = |length: &u64| lengths.iter().filter(|&other| other == length).count();
    Ok(lengths.iter().copied().rev().max_by_key(count).unwrap_or_default())
}

/// Refuses shares whose names are of different files. Their headers may be equal, and shares that
/// were renamed are told by these alone.
fn expect_one_file(files: &[PathBuf]) -> Result<()> {
    let mut named = files.iter().filter_map(|path| Some((path, named_prefix(path)?)));
    let Some((first, prefix)) = named.next() else { return Ok(()) };
    match named.find(|&(_, other)| other != prefix) {
        None => Ok(()),
        Some((other, _)) => {
            let first = shown(first);
            let why = format!(
                "fragments of two files are given, since {first} has another name; give those of \
                 one file"
            );
            Err(not_recognised(other, &why))
        }
    }
}

/// Returns the name of the file in the name of a share, if that ends as zfec ends it:
/// `.<i>_<n>.fec`.
fn named_prefix(path: &Path) -> Option<&[u8]> {
    let stem = path.file_name()?.as_encoded_bytes().strip_suffix(b".fec")?;
    let dot = stem.iter().rposition(|&byte| byte == b'.')?;
    let numbers: Vec<&[u8]> = stem[dot + 1..].split(|&byte| byte == b'_').collect();
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    (numbers.len() == 2 && numbers.into_iter().all(is_number)).then_some(&stem[..dot])
}

/// Returns a share's name without the suffix that zfec adds.
fn prefix(path: &Path) -> &str {
    let name = file_name(path);
    let stem = name.strip_suffix(".fec").unwrap_or(name);
    stem.rsplit_once('.').map_or(stem, |(prefix, _)| prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(start in any::<[u8; HEADER]>()) {
            if let Some(header) = ZfecHeader::parse(start) {
                let bytes = header.to_bytes();
                prop_assert_eq!(ZfecHeader::parse(start), Some(header));
                prop_assert!(bytes[0] == start[0] && bytes.len() == header.length());
            }
        }
    }

    /// n - 1 = 7 in 8 bits; then k - 1 = 4, the padding, and the share's number in 3 bits each.
    #[test]
    fn headers_are_bits() {
        let header = ZfecHeader { n: 8, k: 5, padding: 2, share: 6 };
        assert_eq!(header.to_bytes(), [0b0000_0111, 0b1000_1011, 0b0000_0000]);
        assert_eq!(ZfecHeader { n: 2, k: 1, padding: 0, share: 1 }.to_bytes(), [1, 0b0100_0000]);
    }

    #[test]
    fn every_header_is_read_as_it_was_written() {
        for n in [2, 3, 4, 5, 8, 9, 16, 17, 100, 128, 129, 255, 256] {
            for k in [1, 2, 3, n / 2, n - 1] {
                let header = ZfecHeader { n, k, padding: k - 1, share: n - 1 };
                if k == 0 || k >= n {
                    continue;
                }
                let mut bytes = header.to_bytes();
                assert!((2..=HEADER).contains(&bytes.len()));
                bytes.resize(HEADER, 0xFF);
                assert_eq!(ZfecHeader::parse(bytes.try_into().unwrap()), Some(header));
            }
        }
    }

    #[test]
    fn names_of_shares_tell_the_file() {
        for (name, prefix) in [
            ("a/b.tar.07_40.fec", Some("b.tar")),
            (".0_3.fec", Some("")),
            ("b.0_3.fec.old", None),
            ("b.0_3", None),
            ("b.0_3_4.fec", None),
            ("b._3.fec", None),
            ("b.fec", None),
        ] {
            assert_eq!(named_prefix(Path::new(name)), prefix.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn what_no_share_begins_with_is_refused() {
        assert_eq!(ZfecHeader::parse([0; 4]), None, "n = 1");
        assert_eq!(ZfecHeader::parse([4, 0b1111_1111, 0, 0]), None, "k = 8 of n = 5");
    }
}
