//! Writes `vectors/codes.json` (described in `vectors/README.md`) from the reference alone:
//!
//! ```sh
//! cargo run --release -p paritas-reference --example write_vectors > vectors/codes.json
//! ```
//!
//! Nothing here comes from the crate that the vectors test. Polynomials, points and primes stand
//! in the tables below; scalings are worked out from the written rule; generators are found by
//! encoding cells of a single one. A case, once released, is not changed: stored shards are read
//! by the same numbers.

mod blake3;

use paritas_reference::field::Field;
use paritas_reference::{array, matrix, packets};

/// Irreducible polynomials that `cauchy` uses by default, for w from 1 to 16.
const POLYNOMIALS: [u64; 16] = [
    0x3, 0x7, 0xB, 0x13, 0x25, 0x43, 0x89, 0x11D, 0x211, 0x409, 0x805, 0x1053, 0x201B, 0x4443,
    0x8003, 0x1100B,
];

/// `cauchy` with the points 0, 1, 2, …, which are the default where no matrix was searched: k, m, w,
/// packet, stripes.
const NATURAL_POINTS: [[usize; 5]; 22] = [
    [1, 1, 1, 1, 3],
    [1, 3, 2, 8, 2],
    [2, 2, 2, 1, 5],
    [4, 2, 3, 1, 7],
    [4, 2, 3, 32, 2],
    [5, 3, 3, 8, 2],
    [10, 4, 4, 1, 16],
    [10, 4, 4, 8, 3],
    [10, 4, 4, 32, 2],
    [10, 4, 4, 64, 1],
    [10, 4, 4, 64, 9],
    [10, 4, 4, 100, 2],
    [7, 2, 5, 100, 1],
    [20, 6, 5, 32, 2],
    [6, 3, 6, 8, 2],
    [5, 2, 7, 32, 1],
    [3, 3, 8, 32, 1],
    [10, 4, 8, 64, 3],
    [6, 2, 9, 8, 3],
    [3, 2, 12, 32, 1],
    [4, 4, 16, 8, 2],
    [12, 3, 16, 64, 2],
];

/// `cauchy` with the points and row scalings that a search found, the default there.
const SEARCHED: [([usize; 5], &[u64], &[u64]); 4] = [
    ([4, 2, 3, 32, 2], &[7, 1, 5, 3, 0, 6], &[1, 6]),
    ([10, 4, 4, 64, 1], &[6, 12, 11, 9, 10, 7, 1, 3, 2, 13, 0, 14, 15, 5], &[1, 14, 13, 11]),
    (
        [20, 6, 5, 32, 2],
        &[
            26, 23, 21, 6, 28, 29, 30, 18, 4, 3, 10, 16, 2, 1, 14, 22, 11, 31, 19, 17, 0, 15, 24,
            13, 8, 25,
        ],
        &[1, 29, 25, 30, 25, 24],
    ),
    (
        [10, 4, 8, 64, 3],
        &[134, 172, 1, 102, 18, 205, 202, 156, 171, 177, 0, 153, 53, 127],
        &[1, 38, 68, 145],
    ),
];

/// `cauchy` with points in the spec: the same numbers and the points.
const GIVEN_POINTS: [([usize; 5], &[u64]); 4] = [
    ([2, 2, 3, 8, 4], &[7, 1, 0, 4]),
    ([4, 3, 4, 64, 1], &[9, 15, 2, 6, 11, 0, 4]),
    ([5, 3, 8, 32, 1], &[0, 17, 255, 128, 3, 200, 1, 96]),
    ([3, 2, 16, 1, 19], &[65535, 1, 40000, 2, 32768]),
];

/// `cauchy` whose points and scalings no default gives; stored data may have any that are legal.
const PINNED: [Pinned; 3] = [
    // Without normalisation.
    Pinned {
        shape: [4, 3, 4, 32, 1],
        polynomial: 0x13,
        points: &[0, 1, 2, 3, 4, 5, 6],
        row_scale: &[1, 1, 1],
        column_scale: &[1, 1, 1, 1],
    },
    // The polynomial of AES, which is irreducible but not primitive.
    Pinned {
        shape: [3, 3, 8, 8, 4],
        polynomial: 0x11B,
        points: &[5, 80, 33, 254, 0, 7],
        row_scale: &[1, 99, 3],
        column_scale: &[200, 2, 77],
    },
    // The default points in another order, with a field of another polynomial.
    Pinned {
        shape: [6, 2, 5, 100, 1],
        polynomial: 0x29,
        points: &[7, 6, 5, 4, 3, 2, 1, 0],
        row_scale: &[31, 1],
        column_scale: &[1, 2, 3, 4, 5, 6],
    },
];

struct Pinned {
    shape: [usize; 5],
    polynomial: u64,
    points: &'static [u64],
    row_scale: &'static [u64],
    column_scale: &'static [u64],
}

/// `rdp` and `evenodd`: k, p, packet, stripes. Full (k = p - 1 and k = p) and shortened.
const RDP: [[usize; 4]; 9] = [
    [1, 3, 1, 5],
    [2, 3, 8, 4],
    [4, 5, 32, 2],
    [3, 5, 64, 1],
    [6, 7, 64, 1],
    [4, 7, 100, 2],
    [10, 11, 32, 1],
    [3, 13, 1, 40],
    [16, 17, 64, 2],
];
const EVENODD: [[usize; 4]; 9] = [
    [1, 3, 1, 5],
    [3, 3, 8, 4],
    [5, 5, 32, 2],
    [3, 5, 64, 1],
    [7, 7, 64, 1],
    [5, 7, 100, 2],
    [11, 11, 32, 1],
    [4, 13, 1, 40],
    [17, 17, 64, 2],
];

/// Parity of at most this many bytes in all is written out; of more, digests.
const WRITTEN_OUT: usize = 1024;

fn main() {
    let natural_points = NATURAL_POINTS.map(|shape| {
        let points: Vec<u64> = (0..(shape[0] + shape[1]) as u64).collect();
        Case { default_pin: !is_searched(shape), ..normalised(shape, &points, "") }
    });
    let searched = SEARCHED.map(searched);
    let given_points = GIVEN_POINTS.map(|(shape, points)| {
        let list: Vec<String> = points.iter().map(u64::to_string).collect();
        normalised(shape, points, &format!(",points={}", list.join(".")))
    });
    let pinned = PINNED.map(|pinned| {
        let field = Field::new(pinned.shape[2] as u32, pinned.polynomial);
        let scales = (pinned.row_scale.to_vec(), pinned.column_scale.to_vec());
        Case { default_pin: false, ..cauchy(pinned.shape, field, pinned.points, scales, "") }
    });
    let rdp = RDP.map(|shape| array_code("rdp", shape, Layout::Rdp));
    let evenodd = EVENODD.map(|shape| array_code("evenodd", shape, Layout::Evenodd));
    let cases =
        natural_points.iter().chain(&searched).chain(&given_points).chain(&pinned).chain(&rdp);
    let cases: Vec<String> = cases.chain(&evenodd).map(Case::json).collect();
    println!("{{\n  \"version\": 1,\n  \"cases\": [\n{}\n  ]\n}}", cases.join(",\n"));
}

/// One code with one packet size and one number of stripes.
struct Case {
    spec: String,
    pin: Vec<(&'static str, Vec<u64>)>,
    default_pin: bool,
    k: usize,
    m: usize,
    /// Packets a strip.
    rows: usize,
    packet: usize,
    stripes: usize,
    layout: Layout,
}

/// How parity follows from data.
enum Layout {
    Field(Field, Vec<Vec<u64>>),
    Rdp,
    Evenodd,
}

fn normalised(shape: [usize; 5], points: &[u64], spec_end: &str) -> Case {
    let [k, _, w, ..] = shape;
    let field = Field::new(w as u32, POLYNOMIALS[w - 1]);
    let scales = normalise(&field, matrix::cauchy(&field, points, k));
    cauchy(shape, field, points, scales, spec_end)
}

/// Whether the default matrix is one that was searched: with the smallest w that fits for k up to
/// 32 and m up to 8, with w = 8 for k up to 16 and m up to 6, and 6 + 2 with w = 4.
fn is_searched([k, m, w, ..]: [usize; 5]) -> bool {
    let smallest = (k + m).next_power_of_two().trailing_zeros() as usize;
    w == smallest && k <= 32 && m <= 8 || w == 8 && k <= 16 && m <= 6 || [k, m, w] == [6, 2, 4]
}

/// The columns are scaled so that the first row is all ones.
fn searched((shape, points, rows): ([usize; 5], &[u64], &[u64])) -> Case {
    let [k, _, w, ..] = shape;
    let field = Field::new(w as u32, POLYNOMIALS[w - 1]);
    let columns = points[..k].iter().map(|x| x ^ points[k]).collect();
    cauchy(shape, field, points, (rows.to_vec(), columns), "")
}

/// Row and column scalings: each column is divided by its entry of the first row, then each row
/// by the one of its entries that leaves fewest ones in its bit matrices, the smallest of several.
fn normalise(field: &Field, plain: Vec<Vec<u64>>) -> (Vec<u64>, Vec<u64>) {
    let columns: Vec<u64> = plain[0].iter().map(|&entry| field.inverse(entry)).collect();
    let row_scale = |row: &Vec<u64>| {
        let scaled = || row.iter().zip(&columns).map(|(&entry, &scale)| field.mul(entry, scale));
        let ones = |divisor: u64| -> u32 {
            let factor = field.inverse(divisor);
            scaled().map(|entry| ones_of_bit_matrix(field, field.mul(entry, factor))).sum()
        };
        let best = scaled().min_by_key(|&entry| (ones(entry), entry)).expect("k is at least 1");
        field.inverse(best)
    };
    (plain.iter().map(row_scale).collect(), columns)
}

/// The ones of the w x w matrix of "multiply by `a`", whose column c is a·x^c.
fn ones_of_bit_matrix(field: &Field, a: u64) -> u32 {
    (0..field.w()).map(|c| field.mul(a, 1 << c).count_ones()).sum()
}

fn cauchy(
    [k, m, w, packet, stripes]: [usize; 5],
    field: Field,
    points: &[u64],
    (row_scale, column_scale): (Vec<u64>, Vec<u64>),
    spec_end: &str,
) -> Case {
    let mut coefficients = matrix::cauchy(&field, points, k);
    for (row, &row_scale) in coefficients.iter_mut().zip(&row_scale) {
        for (entry, &column_scale) in row.iter_mut().zip(&column_scale) {
            *entry = field.mul(field.mul(*entry, row_scale), column_scale);
        }
    }
    let pin = vec![
        ("polynomial", vec![field.polynomial()]),
        ("points", points.to_vec()),
        ("row-scale", row_scale),
        ("column-scale", column_scale),
    ];
    let (spec, layout) =
        (format!("cauchy:k={k},m={m},w={w}{spec_end}"), Layout::Field(field, coefficients));
    Case { spec, pin, default_pin: true, k, m, rows: w, packet, stripes, layout }
}

fn array_code(family: &str, [k, p, packet, stripes]: [usize; 4], layout: Layout) -> Case {
    let (spec, pin) = (format!("{family}:k={k},p={p}"), vec![("prime", vec![p as u64])]);
    Case { spec, pin, default_pin: true, k, m: 2, rows: p - 1, packet, stripes, layout }
}

impl Case {
    fn encode(&self, data: &[Vec<u8>], packet: usize) -> Vec<Vec<u8>> {
        match &self.layout {
            Layout::Field(field, coefficients) => {
                packets::encode(field, coefficients, data, packet)
            }
            Layout::Rdp => array::rdp(self.rows + 1, data, packet).to_vec(),
            Layout::Evenodd => array::evenodd(self.rows + 1, data, packet).to_vec(),
        }
    }

    /// Byte i of data shard j is 73·(i + 1)·(j + 1) mod 251. Tests check that data cells so filled
    /// are linearly independent: no other generator gives the same parity.
    fn data(&self) -> Vec<Vec<u8>> {
        let length = self.stripes * self.rows * self.packet;
        let byte = |i, j| (73 * (i + 1) * (j + 1) % 251) as u8;
        (0..self.k).map(|j| (0..length).map(|i| byte(i, j)).collect()).collect()
    }

    /// The data cells that each parity cell is the sum of. Bit c of the packet of data cell c is
    /// one and no other, so that a packet of parity spells its sum.
    fn generator(&self) -> Vec<Vec<usize>> {
        let cells = self.k * self.rows;
        let packet = cells.div_ceil(8);
        let mut data = vec![vec![0; self.rows * packet]; self.k];
        for cell in 0..cells {
            let (node, row) = (cell / self.rows, cell % self.rows);
            data[node][row * packet + cell / 8] |= 1 << (cell % 8);
        }
        let parity = self.encode(&data, packet).concat();
        let sum = |bits: &[u8]| (0..cells).filter(|c| bits[c / 8] >> (c % 8) & 1 == 1).collect();
        parity.chunks(packet).map(sum).collect()
    }

    /// The bytes that `Code::describe` documents, of this generator.
    fn description(&self, generator: &[Vec<usize>]) -> Vec<u8> {
        let cells = self.k * self.rows;
        let data_rows = (0..cells).map(|cell| vec![cell]);
        let all_rows: Vec<Vec<usize>> = data_rows.chain(generator.iter().cloned()).collect();
        let mut numbers = vec![cells, self.k + self.m];
        for node in all_rows.chunks(self.rows) {
            numbers.push(node.len());
            for row in node {
                numbers.push(row.len());
                numbers.extend(row);
            }
        }
        numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()).collect()
    }

    /// Losses of up to m nodes: single ones, the first and last m, and m far apart.
    fn losses(&self) -> Vec<Vec<usize>> {
        let (k, m, n) = (self.k, self.m, self.k + self.m);
        let mut losses = vec![
            vec![0],
            vec![n - 1],
            (0..m).collect(),
            (k..n).collect(),
            (0..m).map(|i| i * n / m + n / m - 1).collect(),
        ];
        losses.sort();
        losses.dedup();
        losses
    }

    /// Losses of m + 1 nodes.
    fn fatal_losses(&self) -> Vec<Vec<usize>> {
        let (k, m, n) = (self.k, self.m, self.k + self.m);
        let mut losses = vec![(0..=m).collect::<Vec<_>>(), [0].into_iter().chain(k..n).collect()];
        losses.dedup();
        losses
    }

    fn json(&self) -> String {
        let generator = self.generator();
        let parity = self.encode(&self.data(), self.packet);
        let bytes: usize = parity.iter().map(Vec::len).sum();
        let (name, texts): (_, Vec<String>) = if bytes <= WRITTEN_OUT {
            ("parity", parity.iter().map(|shard| hex(shard)).collect())
        } else {
            ("parity_blake3", parity.iter().map(|shard| blake3::digest(shard)).collect())
        };
        let texts: Vec<String> = texts.iter().map(|text| format!("        \"{text}\"")).collect();
        let pin: Vec<String> =
            self.pin.iter().map(|(name, list)| format!("[\"{name}\", {list:?}]")).collect();
        [
            "    {".to_owned(),
            format!("      \"spec\": \"{}\",", self.spec),
            format!("      \"pin\": [{}],", pin.join(", ")),
            format!("      \"default_pin\": {},", self.default_pin),
            format!("      \"k\": {}, \"m\": {}, \"rows\": {},", self.k, self.m, self.rows),
            format!("      \"packet\": {}, \"stripes\": {},", self.packet, self.stripes),
            format!("      \"ones\": {},", generator.iter().map(Vec::len).sum::<usize>()),
            format!(
                "      \"describe_blake3\": \"{}\",",
                blake3::digest(&self.description(&generator))
            ),
            format!("      \"lost\": {:?},", self.losses()),
            format!("      \"lost_too_many\": {:?},", self.fatal_losses()),
            format!("      \"{name}\": [\n{}\n      ]", texts.join(",\n")),
            "    }".to_owned(),
        ]
        .join("\n")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
