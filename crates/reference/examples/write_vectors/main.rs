//! Writes `vectors/codes.json`, or with `words` `vectors/words.json`, or with `dpg`
//! `vectors/dpg.json` (all described in `vectors/README.md`), from the reference alone:
//!
//! ```sh
//! cargo run --release -p paritas-reference --example write_vectors > vectors/codes.json
//! cargo run --release -p paritas-reference --example write_vectors words > vectors/words.json
//! cargo run --release -p paritas-reference --example write_vectors dpg > vectors/dpg.json
//! ```
//!
//! Nothing here comes from the crate that the vectors test. The tables below list polynomials,
//! points and primes. Scalings are computed from the documented rule. Generators are found by
//! encoding data cells that have a single bit set. A released case never changes, because stored
//! shards are read with the same numbers.

mod blake3;
mod dpg;
mod words;

use paritas_reference::field::Field;
use paritas_reference::{array, coefficients, density, matrix, packets};

/// The default polynomials, which are irreducible, for w from 1 to 32.
const POLYNOMIALS: [u64; 32] = [
    0x3,
    0x7,
    0xB,
    0x13,
    0x25,
    0x43,
    0x89,
    0x11D,
    0x211,
    0x409,
    0x805,
    0x1053,
    0x201B,
    0x4443,
    0x8003,
    0x1100B,
    0x20009,
    0x40081,
    0x80027,
    0x100009,
    0x200005,
    0x400003,
    0x800021,
    0x1000087,
    0x2000009,
    0x4000047,
    0x8000027,
    0x10000009,
    0x20000005,
    0x40800007,
    0x80000009,
    0x100400007,
];

/// `cauchy` with the points 0, 1, 2, …, which are the default for sizes without a searched matrix:
/// k, m, w, packet, stripes.
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

/// `cauchy` with the points and row scalings that a search found. They are the default for these k,
/// m and w.
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

/// `cauchy` with the points in the spec: k, m, w, packet, stripes; and the points.
const GIVEN_POINTS: [([usize; 5], &[u64]); 4] = [
    ([2, 2, 3, 8, 4], &[7, 1, 0, 4]),
    ([4, 3, 4, 64, 1], &[9, 15, 2, 6, 11, 0, 4]),
    ([5, 3, 8, 32, 1], &[0, 17, 255, 128, 3, 200, 1, 96]),
    ([3, 2, 16, 1, 19], &[65535, 1, 40000, 2, 32768]),
];

/// `cauchy` with points and scalings that are not a default. Stored data may have any legal ones.
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
    // The points 7 to 0, in descending order, with another polynomial than the default.
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

/// `star`: k, p, packet, stripes. `liberation` and `blaum-roth`: k, w, packet, stripes.
const STAR: [[usize; 4]; 6] =
    [[1, 3, 1, 5], [3, 3, 8, 4], [5, 5, 32, 2], [4, 7, 100, 2], [11, 11, 32, 1], [4, 13, 1, 40]];
const LIBERATION: [[usize; 4]; 6] =
    [[1, 3, 1, 5], [3, 3, 8, 4], [5, 5, 32, 2], [4, 7, 100, 2], [11, 11, 32, 1], [4, 13, 1, 40]];
const BLAUM_ROTH: [[usize; 4]; 6] =
    [[1, 2, 1, 5], [2, 2, 8, 4], [4, 4, 32, 2], [3, 6, 100, 2], [10, 10, 32, 1], [4, 12, 1, 40]];
/// `liber8tion`: k, packet, stripes. `xcode`: n, packet, stripes.
const LIBER8TION: [[usize; 3]; 4] = [[1, 1, 5], [4, 8, 3], [6, 100, 1], [8, 32, 1]];
const XCODE: [[usize; 3]; 4] = [[3, 1, 9], [5, 8, 3], [7, 32, 1], [11, 16, 2]];

/// `cauchy-orig`: k, m, w, packet, stripes.
const CAUCHY_ORIG: [[usize; 5]; 8] = [
    [1, 1, 1, 1, 3],
    [4, 2, 3, 8, 2],
    [10, 4, 4, 32, 2],
    [5, 3, 8, 1, 20],
    [12, 4, 5, 64, 1],
    [6, 2, 13, 8, 3],
    [3, 3, 24, 8, 5],
    [4, 2, 32, 16, 3],
];
/// `cauchy-good`: k, m, w, packet, stripes. For m = 2 and w from 2 to 11 the matrix is made in
/// another way.
const CAUCHY_GOOD: [[usize; 5]; 11] = [
    [1, 1, 1, 1, 3],
    [3, 2, 2, 8, 2],
    [6, 2, 3, 32, 1],
    [15, 2, 4, 8, 3],
    [14, 2, 8, 32, 1],
    [10, 4, 4, 32, 2],
    [5, 3, 8, 1, 20],
    [12, 4, 5, 64, 1],
    [6, 2, 13, 8, 3],
    [3, 3, 24, 8, 5],
    [4, 2, 32, 16, 3],
];
/// `qfs`, and `raid6` in packets: k, w, packet, stripes.
const QFS: [[usize; 4]; 5] =
    [[1, 2, 1, 4], [3, 2, 8, 2], [6, 8, 32, 1], [10, 5, 64, 1], [4, 16, 8, 3]];
const RAID6: [[usize; 4]; 5] =
    [[1, 2, 1, 4], [3, 2, 8, 2], [6, 8, 32, 1], [10, 5, 64, 1], [4, 31, 8, 5]];

/// Shards that end with a strip of shorter packets: a shape as above, and the size of the shorter
/// packets in bytes.
const CAUCHY_TAILS: [([usize; 5], usize); 3] =
    [([10, 4, 4, 64, 1], 33), ([10, 4, 4, 64, 0], 63), ([10, 4, 8, 32, 2], 7)];
const RDP_TAILS: [([usize; 4], usize); 2] = [([4, 5, 64, 3], 1), ([10, 11, 32, 1], 31)];
const EVENODD_TAILS: [([usize; 4], usize); 2] = [([5, 5, 64, 1], 17), ([3, 7, 8, 0], 5)];

/// Largest parity that is written out, in bytes of all shards together. Larger parity is written as
/// digests.
const WRITTEN_OUT: usize = 1024;

fn main() {
    let cases = match std::env::args().nth(1).as_deref() {
        Some("words") => words::cases(),
        Some("dpg") => dpg::cases(),
        _ => packet_cases(),
    };
    println!("{{\n  \"version\": 1,\n  \"cases\": [\n{}\n  ]\n}}", cases.join(",\n"));
}

/// The codes whose bit matrices are the cases of `matrix`.
fn known_matrices() -> [Case; 4] {
    [
        prime("rdp", [4, 5, 8, 3], array::rdp),
        prime("evenodd", [3, 5, 32, 2], array::evenodd),
        word("liberation", [5, 5, 16, 1], 0, density::liberation),
        xcode([5, 8, 3]),
    ]
}

fn packet_cases() -> Vec<String> {
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
    let mut cases: Vec<Case> =
        natural_points.into_iter().chain(searched).chain(given_points).collect();
    cases.extend(pinned);
    cases.extend(RDP.map(|shape| prime("rdp", shape, array::rdp)));
    cases.extend(EVENODD.map(|shape| prime("evenodd", shape, array::evenodd)));
    cases.extend(STAR.map(|shape| prime("star", shape, array::star)));
    cases.extend(LIBERATION.map(|shape| word("liberation", shape, 0, density::liberation)));
    cases.extend(BLAUM_ROTH.map(|shape| word("blaum-roth", shape, 1, density::blaum_roth)));
    cases.extend(LIBER8TION.map(liber8tion));
    cases.extend(XCODE.map(xcode));
    cases.extend(CAUCHY_ORIG.map(|shape| jerasure("orig", shape, coefficients::cauchy_orig)));
    cases.extend(CAUCHY_GOOD.map(|shape| jerasure("good", shape, coefficients::cauchy_good)));
    cases.extend(QFS.map(|shape| powers("qfs", shape, "", coefficients::qfs)));
    cases.extend(RAID6.map(|shape| powers("raid6", shape, ",layout=packets", coefficients::raid6)));
    cases.extend(CAUCHY_TAILS.map(|(shape, tail)| Case { tail, ..default_cauchy(shape) }));
    cases.extend(RDP_TAILS.map(|(shape, tail)| Case { tail, ..prime("rdp", shape, array::rdp) }));
    cases.extend(
        EVENODD_TAILS.map(|(shape, tail)| Case { tail, ..prime("evenodd", shape, array::evenodd) }),
    );
    cases.extend(known_matrices().map(own));
    cases.iter().map(Case::json).collect()
}

/// Computes the parity shards from the data shards and the packet size. If nodes hold data and
/// parity, computes the parity rows of every node.
type Encode = Box<dyn Fn(&[Vec<u8>], usize) -> Vec<Vec<u8>>>;

/// Computes the parities of a code over a prime, from the prime, the data shards and the packet
/// size.
type ByPrime<const M: usize> = fn(usize, &[Vec<u8>], usize) -> [Vec<u8>; M];

/// One code with one packet size and one number of stripes.
struct Case {
    spec: String,
    pin: Vec<(&'static str, Vec<u64>)>,
    default_pin: bool,
    /// Number of nodes with data (`k`) and without (`m`).
    k: usize,
    m: usize,
    /// Packets of data and of parity in the strip of a node with data.
    data_rows: usize,
    parity_rows: usize,
    tolerance: usize,
    packet: usize,
    stripes: usize,
    /// Packet size of the last, shorter strip, in bytes; 0 if there is none.
    tail: usize,
    encode: Encode,
}

fn normalised(shape: [usize; 5], points: &[u64], spec_end: &str) -> Case {
    let [k, _, w, ..] = shape;
    let field = Field::new(w as u32, POLYNOMIALS[w - 1]);
    let scales = normalise(&field, matrix::cauchy(&field, points, k));
    cauchy(shape, field, points, scales, spec_end)
}

/// Whether the default matrix was found by a search: for the smallest w with 2^w >= k + m if k <=
/// 32 and m <= 8, for w = 8 if k <= 16 and m <= 6, and for k = 6, m = 2, w = 4.
fn is_searched([k, m, w, ..]: [usize; 5]) -> bool {
    let smallest = (k + m).next_power_of_two().trailing_zeros() as usize;
    w == smallest && k <= 32 && m <= 8 || w == 8 && k <= 16 && m <= 6 || [k, m, w] == [6, 2, 4]
}

/// `cauchy` with the default matrix of a new code: the searched one, or else the points 0, 1, 2, ….
fn default_cauchy(shape: [usize; 5]) -> Case {
    match SEARCHED.into_iter().find(|(searched, ..)| searched[..3] == shape[..3]) {
        Some((_, points, rows)) => searched((shape, points, rows)),
        None => {
            let points: Vec<u64> = (0..(shape[0] + shape[1]) as u64).collect();
            Case { default_pin: !is_searched(shape), ..normalised(shape, &points, "") }
        }
    }
}

/// `cauchy` with searched points and row scalings. The columns are scaled so that the first row is
/// all ones.
fn searched((shape, points, rows): ([usize; 5], &[u64], &[u64])) -> Case {
    let [k, _, w, ..] = shape;
    let field = Field::new(w as u32, POLYNOMIALS[w - 1]);
    let columns = points[..k].iter().map(|x| x ^ points[k]).collect();
    cauchy(shape, field, points, (rows.to_vec(), columns), "")
}

/// Returns the row and column scalings. Each column is divided by its entry in the first row. Then
/// each row is divided by its entry that leaves the fewest ones in the row's bit matrices; among
/// equals, by the smallest.
fn normalise(field: &Field, plain: Vec<Vec<u64>>) -> (Vec<u64>, Vec<u64>) {
    let columns: Vec<u64> = plain[0].iter().map(|&entry| field.inverse(entry)).collect();
    let row_scale = |row: &Vec<u64>| {
        let scaled = || row.iter().zip(&columns).map(|(&entry, &scale)| field.mul(entry, scale));
        let ones = |divisor: u64| -> u32 {
            let factor = field.inverse(divisor);
            scaled().map(|entry| coefficients::ones(field, field.mul(entry, factor))).sum()
        };
        let best = scaled().min_by_key(|&entry| (ones(entry), entry)).expect("k is at least 1");
        field.inverse(best)
    };
    (plain.iter().map(row_scale).collect(), columns)
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
    let spec = format!("cauchy:k={k},m={m},w={w}{spec_end}");
    symbols(spec, [k, w, packet, stripes], pin, field, coefficients)
}

/// A code over a field: k, w, packet, stripes.
fn symbols(
    spec: String,
    [k, w, packet, stripes]: [usize; 4],
    pin: Vec<(&'static str, Vec<u64>)>,
    field: Field,
    coefficients: Vec<Vec<u64>>,
) -> Case {
    let m = coefficients.len();
    let encode: Encode =
        Box::new(move |data, packet| packets::encode(&field, &coefficients, data, packet));
    horizontal(spec, pin, [k, m, w, packet, stripes], encode)
}

/// A code with data nodes and parity nodes: k, m, rows, packet, stripes.
fn horizontal(
    spec: String,
    pin: Vec<(&'static str, Vec<u64>)>,
    [k, m, data_rows, packet, stripes]: [usize; 5],
    encode: Encode,
) -> Case {
    let (default_pin, parity_rows, tolerance) = (true, 0, m);
    Case {
        spec,
        pin,
        default_pin,
        k,
        m,
        data_rows,
        parity_rows,
        tolerance,
        packet,
        stripes,
        tail: 0,
        encode,
    }
}

fn default_field(w: usize) -> (Field, Vec<(&'static str, Vec<u64>)>) {
    let polynomial = POLYNOMIALS[w - 1];
    (Field::new(w as u32, polynomial), vec![("polynomial", vec![polynomial])])
}

/// `cauchy-orig` and `cauchy-good`.
fn jerasure(
    kind: &str,
    [k, m, w, packet, stripes]: [usize; 5],
    matrix: fn(&Field, usize, usize) -> Vec<Vec<u64>>,
) -> Case {
    let (field, pin) = default_field(w);
    let coefficients = matrix(&field, k, m);
    let spec = format!("cauchy-{kind}:k={k},m={m},w={w}");
    symbols(spec, [k, w, packet, stripes], pin, field, coefficients)
}

/// `qfs` and `raid6`.
fn powers(
    family: &str,
    [k, w, packet, stripes]: [usize; 4],
    spec_end: &str,
    matrix: fn(&Field, usize) -> Vec<Vec<u64>>,
) -> Case {
    let (field, pin) = default_field(w);
    let coefficients = matrix(&field, k);
    let spec = format!("{family}:k={k},w={w}{spec_end}");
    symbols(spec, [k, w, packet, stripes], pin, field, coefficients)
}

/// `rdp`, `evenodd` and `star`: p - 1 rows.
fn prime<const M: usize>(
    family: &str,
    [k, p, packet, stripes]: [usize; 4],
    encode: ByPrime<M>,
) -> Case {
    let encode: Encode = Box::new(move |data, packet| encode(p, data, packet).to_vec());
    let pin = vec![("prime", vec![p as u64])];
    horizontal(format!("{family}:k={k},p={p}"), pin, [k, M, p - 1, packet, stripes], encode)
}

/// `liberation` and `blaum-roth`: w rows, and the prime w + `more`.
fn word(
    family: &str,
    [k, w, packet, stripes]: [usize; 4],
    more: usize,
    encode: ByPrime<2>,
) -> Case {
    let encode: Encode = Box::new(move |data, packet| encode(w + more, data, packet).to_vec());
    let pin = vec![("prime", vec![(w + more) as u64])];
    horizontal(format!("{family}:k={k},w={w}"), pin, [k, 2, w, packet, stripes], encode)
}

fn liber8tion([k, packet, stripes]: [usize; 3]) -> Case {
    let encode: Encode = Box::new(|data, packet| density::liber8tion(data, packet).to_vec());
    let blocks = density::LIBER8TION.map(u64::from_le_bytes);
    let pin = vec![("blocks", blocks[..k].to_vec())];
    horizontal(format!("liber8tion:k={k}"), pin, [k, 2, 8, packet, stripes], encode)
}

fn xcode([n, packet, stripes]: [usize; 3]) -> Case {
    let pin = vec![("prime", vec![n as u64])];
    let encode = Box::new(array::xcode);
    let (k, m, data_rows, parity_rows, tolerance) = (n, 0, n - 2, 2, 2);
    let (spec, default_pin) = (format!("xcode:n={n}"), true);
    Case {
        spec,
        pin,
        default_pin,
        k,
        m,
        data_rows,
        parity_rows,
        tolerance,
        packet,
        stripes,
        tail: 0,
        encode,
    }
}

/// `matrix`: a code whose spec contains the bit matrix of `known`, row by row, with four columns in
/// each hexadecimal digit.
fn own(known: Case) -> Case {
    let columns = known.k * known.data_rows;
    let digits = |row: &Vec<usize>| -> String {
        let bit = |column: usize| u32::from(row.contains(&column));
        let digit = |at: usize| (0..4).fold(0, |digit, i| 2 * digit + bit(4 * at + i));
        (0..columns.div_ceil(4)).filter_map(|at| char::from_digit(digit(at), 16)).collect()
    };
    let rows: Vec<String> = known.generator().iter().flatten().map(digits).collect();
    let (k, w, placement) = match known.parity_rows {
        0 => (known.k, known.data_rows, ""),
        parity_rows => {
            let w = known.data_rows + parity_rows;
            (known.k * known.data_rows / w, w, ",placement=vertical")
        }
    };
    let spec =
        format!("matrix:k={k},m={},w={w}{placement},rows={}", known.tolerance, rows.join("."));
    Case { spec, pin: Vec::new(), default_pin: true, ..known }
}

impl Case {
    /// Byte i of data shard j is 73·(i + 1)·(j + 1) mod 251. Tests check that these data cells are
    /// linearly independent, so that no other generator gives the same parity.
    fn data(&self) -> Vec<Vec<u8>> {
        let length = self.data_rows * (self.stripes * self.packet + self.tail);
        let byte = |i, j| (73 * (i + 1) * (j + 1) % 251) as u8;
        (0..self.k).map(|j| (0..length).map(|i| byte(i, j)).collect()).collect()
    }

    /// The parity of the data: first that of the whole strips, then that of the shorter one.
    fn parity(&self) -> Vec<Vec<u8>> {
        let whole = self.stripes * self.data_rows * self.packet;
        let (head, end): (Vec<_>, Vec<_>) = self
            .data()
            .iter()
            .map(|shard| (shard[..whole].to_vec(), shard[whole..].to_vec()))
            .unzip();
        let head = (self.encode)(&head, self.packet);
        if self.tail == 0 {
            return head;
        }
        let end = (self.encode)(&end, self.tail);
        head.into_iter().zip(end).map(|(head, end)| [head, end].concat()).collect()
    }

    /// For each parity shard, the data cells that each of its cells is the sum of. In the packet of
    /// data cell c only bit c is set, so the set bits of a parity packet number its data cells.
    fn generator(&self) -> Vec<Vec<Vec<usize>>> {
        let cells = self.k * self.data_rows;
        let packet = cells.div_ceil(8);
        let mut data = vec![vec![0; self.data_rows * packet]; self.k];
        for cell in 0..cells {
            let (node, row) = (cell / self.data_rows, cell % self.data_rows);
            data[node][row * packet + cell / 8] |= 1 << (cell % 8);
        }
        let sum = |bits: &[u8]| (0..cells).filter(|c| bits[c / 8] >> (c % 8) & 1 == 1).collect();
        let parity = (self.encode)(&data, packet);
        parity.iter().map(|shard| shard.chunks(packet).map(sum).collect()).collect()
    }

    /// The bytes that `Code::describe` documents, for this generator.
    fn description(&self, generator: &[Vec<Vec<usize>>]) -> Vec<u8> {
        let cells = self.k * self.data_rows;
        let of_node = |node: usize| node * self.data_rows..(node + 1) * self.data_rows;
        let mut nodes: Vec<Vec<Vec<usize>>> =
            (0..self.k).map(|node| of_node(node).map(|cell| vec![cell]).collect()).collect();
        if self.parity_rows == 0 {
            nodes.extend(generator.iter().cloned());
        } else {
            nodes.iter_mut().zip(generator).for_each(|(node, rows)| node.extend(rows.clone()));
        }
        description(cells, &nodes)
    }

    /// The JSON fields with the packets of a strip. Codes with data and parity on one node have two
    /// more fields.
    fn rows(&self) -> String {
        let Case { data_rows, parity_rows, tolerance, .. } = self;
        if *parity_rows == 0 {
            return format!("\"rows\": {data_rows}");
        }
        let rows = data_rows + parity_rows;
        format!("\"rows\": {rows}, \"data_rows\": {data_rows}, \"tolerance\": {tolerance}")
    }

    fn json(&self) -> String {
        let generator = self.generator();
        let parity = self.parity();
        let tail = match self.tail {
            0 => String::new(),
            bytes => format!(" \"tail\": {bytes},"),
        };
        let nodes = self.k + self.m;
        let pin: Vec<String> =
            self.pin.iter().map(|(name, list)| format!("[\"{name}\", {list:?}]")).collect();
        [
            "    {".to_owned(),
            format!("      \"spec\": \"{}\",", self.spec),
            format!("      \"pin\": [{}],", pin.join(", ")),
            format!("      \"default_pin\": {},", self.default_pin),
            format!("      \"k\": {}, \"m\": {}, {},", self.k, self.m, self.rows()),
            format!("      \"packet\": {}, \"stripes\": {},{tail}", self.packet, self.stripes),
            format!("      \"ones\": {},", generator.iter().flatten().map(Vec::len).sum::<usize>()),
            format!(
                "      \"describe_blake3\": \"{}\",",
                blake3::digest(&self.description(&generator))
            ),
            format!("      \"lost\": {:?},", losses(nodes, self.tolerance)),
            format!("      \"lost_too_many\": {:?},", fatal_losses(nodes, self.tolerance)),
            parity_json(&parity),
            "    }".to_owned(),
        ]
        .join("\n")
    }
}

/// The bytes that `Code::describe` documents.
fn description(cells: usize, nodes: &[Vec<Vec<usize>>]) -> Vec<u8> {
    let numbers = description_numbers(cells, nodes);
    numbers.iter().flat_map(|&number| (number as u32).to_le_bytes()).collect()
}

/// Returns the description's numbers: the count of data cells and the count of nodes; for each node
/// the count of its cells; and for each cell the count and the numbers of the data cells that it is
/// the sum of.
fn description_numbers(cells: usize, nodes: &[Vec<Vec<usize>>]) -> Vec<usize> {
    let mut numbers = vec![cells, nodes.len()];
    for node in nodes {
        numbers.push(node.len());
        for row in node {
            numbers.push(row.len());
            numbers.extend(row);
        }
    }
    numbers
}

/// Returns tolerable losses: the first node, the last node, the first `most` nodes, the last `most`
/// nodes, and `most` nodes far apart.
fn losses(n: usize, most: usize) -> Vec<Vec<usize>> {
    let mut losses = vec![
        vec![0],
        vec![n - 1],
        (0..most).collect(),
        (n - most..n).collect(),
        (0..most).map(|i| i * n / most + n / most - 1).collect(),
    ];
    losses.sort();
    losses.dedup();
    losses
}

/// Returns losses of `most` + 1 nodes, which is one too many.
fn fatal_losses(n: usize, most: usize) -> Vec<Vec<usize>> {
    let last = n - most..n;
    let mut losses = vec![(0..=most).collect::<Vec<_>>(), [0].into_iter().chain(last).collect()];
    losses.dedup();
    losses
}

/// Returns the JSON field with the parity or its digests.
fn parity_json(parity: &[Vec<u8>]) -> String {
    let bytes: usize = parity.iter().map(Vec::len).sum();
    let (name, texts): (_, Vec<String>) = if bytes <= WRITTEN_OUT {
        ("parity", parity.iter().map(|shard| hex(shard)).collect())
    } else {
        ("parity_blake3", parity.iter().map(|shard| blake3::digest(shard)).collect())
    };
    let texts: Vec<String> = texts.iter().map(|text| format!("        \"{text}\"")).collect();
    format!("      \"{name}\": [\n{}\n      ]", texts.join(",\n"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
