//! The cases of `vectors/dpg.json`: groups of delayed parity generation over Cauchy matrices, over
//! RDP, and over both RDP and EVENODD.

use paritas_reference::dpg::{Interleave, Shape, Stored, nodes};
use paritas_reference::field::Field;
use paritas_reference::{array, matrix, packets};

use crate::{POLYNOMIALS, blake3, description_numbers, parity_json};

/// A Cauchy matrix: points, row scalings, column scalings.
type Matrix = (&'static [u64], &'static [u64], &'static [u64]);

/// Over Cauchy matrices: k, m, m2, w, packet, groups; the placement; the matrix C; and C̄ if it
/// differs from C.
const CAUCHY: [([usize; 6], &str, Matrix, Option<Matrix>); 6] = [
    ([3, 2, 3, 3, 8, 2], "none", THREE, None),
    ([3, 2, 3, 3, 8, 2], "none", THREE, Some(THREE_BAR)),
    ([3, 2, 3, 3, 1, 40], "first", THREE, Some(THREE_BAR)),
    ([3, 2, 3, 3, 64, 1], "all", THREE, Some(THREE_BAR)),
    ([2, 1, 3, 3, 16, 3], "none", TWO, Some(TWO_BAR)),
    ([2, 1, 3, 3, 16, 3], "all", TWO, Some(TWO_BAR)),
];

const THREE: Matrix = (&[0, 1, 2, 3, 4, 5], &[1, 3, 6], &[3, 2, 1]);
const THREE_BAR: Matrix = (&[7, 5, 0, 1, 2, 6], &[1, 2, 7], &[1, 1, 5]);
const TWO: Matrix = (&[6, 1, 4, 3, 0], &[1, 1, 1], &[2, 5]);
const TWO_BAR: Matrix = (&[0, 3, 1, 7, 2], &[4, 1, 2], &[1, 3]);

/// Over RDP and EVENODD: family of C̄, k, m, p, packet, groups, placement. m2 is 2.
const ARRAYS: [(&str, [usize; 5], &str); 3] = [
    ("rdp", [4, 1, 5, 8, 2], "none"),
    ("evenodd", [4, 1, 5, 8, 2], "first"),
    ("evenodd", [3, 1, 5, 16, 1], "all"),
];

type Encode = Box<dyn Fn(&[Vec<u8>], usize) -> Vec<Vec<u8>>>;

struct Case {
    spec: String,
    pin: Vec<(String, Vec<u64>)>,
    shape: Shape,
    /// Packets of a symbol.
    rows: usize,
    packet: usize,
    groups: usize,
    first: Encode,
    last: Encode,
}

pub(crate) fn cases() -> Vec<String> {
    let cauchy = CAUCHY.iter().map(|(sizes, placed, c, bar)| over_cauchy(*sizes, placed, c, *bar));
    let arrays = ARRAYS.iter().map(|(bar, sizes, placed)| over_arrays(bar, *sizes, placed));
    cauchy.chain(arrays).map(|case| case.json()).collect()
}

fn interleave(name: &str) -> Interleave {
    match name {
        "none" => Interleave::None,
        "first" => Interleave::First,
        _ => Interleave::All,
    }
}

fn over_cauchy(
    [k, m, m2, w, packet, groups]: [usize; 6],
    placed: &str,
    c: &Matrix,
    bar: Option<Matrix>,
) -> Case {
    let field = Field::new(w as u32, POLYNOMIALS[w - 1]);
    let mut pin = pinned("", &field, c);
    bar.iter().for_each(|bar| pin.extend(pinned("bar-", &field, bar)));
    let family = if bar.is_some() { "bbdpg" } else { "dpg" };
    let spec = format!("{family}:k={k},m={m},m2={m2},base=cauchy,w={w},interleave={placed}");
    let (first, last) = (cauchy(&field, k, c), cauchy(&field, k, &bar.unwrap_or(*c)));
    let shape = Shape { k, m, m2, interleave: interleave(placed) };
    Case { spec, pin, shape, rows: w, packet, groups, first, last }
}

fn pinned(start: &str, field: &Field, (points, rows, columns): &Matrix) -> Vec<(String, Vec<u64>)> {
    let entries = [
        ("polynomial", vec![field.polynomial()]),
        ("points", points.to_vec()),
        ("row-scale", rows.to_vec()),
        ("column-scale", columns.to_vec()),
    ];
    entries.into_iter().map(|(name, list)| (format!("{start}{name}"), list)).collect()
}

fn cauchy(field: &Field, k: usize, (points, rows, columns): &Matrix) -> Encode {
    let field = Field::new(field.w(), field.polynomial());
    let mut coefficients = matrix::cauchy(&field, points, k);
    for (row, &scale) in coefficients.iter_mut().zip(*rows) {
        for (entry, &other) in row.iter_mut().zip(*columns) {
            *entry = field.mul(*entry, field.mul(scale, other));
        }
    }
    Box::new(move |data, packet| packets::encode(&field, &coefficients, data, packet))
}

fn over_arrays(bar: &str, [k, m, p, packet, groups]: [usize; 5], placed: &str) -> Case {
    let mut spec = format!("bbdpg:k={k},m={m},m2=2,base=rdp,p={p}");
    if bar != "rdp" {
        spec += &format!(",bar={bar},bar-p={p}");
    }
    spec += &format!(",interleave={placed}");
    let prime = vec![p as u64];
    let pin = vec![("prime".to_owned(), prime.clone()), ("bar-prime".to_owned(), prime)];
    let rdp = move |data: &[Vec<u8>], packet| array::rdp(p, data, packet).to_vec();
    let last: Encode = match bar {
        "rdp" => Box::new(rdp),
        _ => Box::new(move |data, packet| array::evenodd(p, data, packet).to_vec()),
    };
    let shape = Shape { k, m, m2: 2, interleave: interleave(placed) };
    Case { spec, pin, shape, rows: p - 1, packet, groups, first: Box::new(rdp), last }
}

impl Case {
    /// Returns what the nodes store for the data symbols `data`, in packets of `packet` bytes.
    fn encode(&self, data: &[Vec<u8>], packet: usize) -> Vec<Vec<Stored>> {
        let stripes: Vec<Vec<Vec<u8>>> = data.chunks(self.shape.k).map(<[_]>::to_vec).collect();
        let first = |data: &[Vec<u8>]| (self.first)(data, packet);
        nodes(self.shape, &first, &|data| (self.last)(data, packet), &stripes)
    }

    /// Returns the data symbols. Byte i of symbol j equals byte i of data shard j in
    /// `vectors/words.json`.
    fn data(&self) -> Vec<Vec<u8>> {
        const C: u64 = 0x9E37_79B9_7F4A_7C15;
        let byte = |i: usize, j: usize| {
            let z = ((256 * i + j + 1) as u64).wrapping_mul(C);
            ((z ^ z >> 32).wrapping_mul(C) >> 56) as u8
        };
        let length = self.groups * self.rows * self.packet;
        let symbols = self.shape.k * self.shape.m2;
        (0..symbols).map(|j| (0..length).map(|i| byte(i, j)).collect()).collect()
    }

    /// For each node, the data cells that each of its packets is the sum of. In data cell c only
    /// bit c is set.
    fn generator(&self) -> Vec<Vec<Vec<usize>>> {
        let cells = self.shape.k * self.shape.m2 * self.rows;
        let packet = cells.div_ceil(8);
        let of_symbol = |symbol: usize| {
            let mut bytes = vec![0_u8; self.rows * packet];
            for row in 0..self.rows {
                let cell = symbol * self.rows + row;
                bytes[row * packet + cell / 8] |= 1 << (cell % 8);
            }
            bytes
        };
        let data: Vec<Vec<u8>> = (0..self.shape.k * self.shape.m2).map(of_symbol).collect();
        let sum = |bits: &[u8]| (0..cells).filter(|c| bits[c / 8] >> (c % 8) & 1 == 1).collect();
        let rows = |node: &Vec<Stored>| {
            node.iter().flat_map(|s| s.bytes.chunks(packet).map(sum)).collect()
        };
        self.encode(&data, packet).iter().map(rows).collect()
    }

    /// The bytes of a node: group by group, its symbols in their order.
    fn shard(&self, symbols: &[Stored]) -> Vec<u8> {
        let strip = self.rows * self.packet;
        let of_group = |group: usize| {
            symbols.iter().flat_map(move |s| s.bytes[group * strip..][..strip].iter().copied())
        };
        (0..self.groups).flat_map(of_group).collect()
    }

    fn json(&self) -> String {
        let stored = self.encode(&self.data(), self.packet);
        let generator = self.generator();
        let stages: Vec<Vec<u8>> =
            stored.iter().map(|node| node.iter().map(|s| s.stage).collect()).collect();
        let mut numbers = description_numbers(self.shape.k * self.shape.m2 * self.rows, &generator);
        let of_cells = stages.iter().flatten();
        numbers.extend(of_cells.flat_map(|&stage| vec![usize::from(stage); self.rows]));
        let description: Vec<u8> =
            numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()).collect();
        let shards: Vec<Vec<u8>> = stored.iter().map(|symbols| self.shard(symbols)).collect();
        let pin: Vec<String> =
            self.pin.iter().map(|(name, list)| format!("[\"{name}\", {list:?}]")).collect();
        let Shape { k, m, m2, .. } = self.shape;
        [
            "    {".to_owned(),
            format!("      \"spec\": \"{}\",", self.spec),
            format!("      \"pin\": [{}],", pin.join(", ")),
            format!("      \"k\": {k}, \"m\": {m}, \"m2\": {m2}, \"rows\": {},", self.rows),
            format!("      \"packet\": {}, \"groups\": {},", self.packet, self.groups),
            format!("      \"describe_blake3\": \"{}\",", blake3::digest(&description)),
            format!("      \"stages\": {stages:?},"),
            parity_json(&shards).replacen("parity", "shards", 1),
            "    }".to_owned(),
        ]
        .join("\n")
    }
}
