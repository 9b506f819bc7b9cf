//! The cases of `vectors/words.json`: codes whose symbols are words.

use paritas_reference::field::Field;
use paritas_reference::{families, words};

use crate::{blake3, description, fatal_losses, losses, parity_json};

/// Returns the rows of coefficients for w, k and m.
type Rows = fn(u32, usize, usize) -> Vec<Vec<u64>>;

/// A family: its name, how its specs name a shape, and its matrix.
struct Family {
    name: &'static str,
    keys: fn(&Case) -> String,
    rows: Rows,
}

fn k_and_m(case: &Case) -> String {
    format!("k={},m={}", case.k, case.m)
}

const FAMILIES: [Family; 6] = [
    Family { name: "backblaze", keys: k_and_m, rows: |_, k, m| families::backblaze(k, m) },
    Family { name: "isal-cauchy", keys: k_and_m, rows: |_, k, m| families::isal_cauchy(k, m) },
    Family { name: "isal-rs", keys: k_and_m, rows: |_, k, m| families::isal_rs(k, m) },
    Family { name: "zfec", keys: k_and_m, rows: |_, k, m| families::zfec(k, m) },
    Family {
        name: "raid6",
        keys: |case| format!("k={},w={},layout=words", case.k, case.w),
        rows: |w, k, _| families::raid6(w, k),
    },
    Family {
        name: "reed-solomon",
        keys: |case| format!("k={},m={},w={}", case.k, case.m, case.w),
        rows: families::reed_sol_van,
    },
];

/// Shapes: k, m, w, and the number of words in a shard. `BYTES` is for the families over bytes,
/// `PQ` for `raid6` (where m is 2), and `WIDE` for `reed-solomon`.
const BYTES: [[usize; 4]; 7] = [
    [1, 1, 8, 17],
    [1, 3, 8, 40],
    [2, 2, 8, 64],
    [4, 2, 8, 100],
    [6, 3, 8, 120],
    [10, 4, 8, 513],
    [20, 3, 8, 1000],
];
const PQ: [[usize; 4]; 6] = [
    [1, 2, 8, 40],
    [6, 2, 8, 200],
    [3, 2, 16, 90],
    [10, 2, 16, 513],
    [3, 2, 32, 150],
    [9, 2, 32, 1001],
];
const WIDE: [[usize; 4]; 9] = [
    [3, 1, 8, 60],
    [10, 4, 8, 513],
    [1, 2, 16, 40],
    [4, 2, 16, 130],
    [10, 4, 16, 1001],
    [5, 5, 16, 400],
    [1, 2, 32, 50],
    [4, 3, 32, 300],
    [10, 4, 32, 1025],
];

struct Case {
    k: usize,
    m: usize,
    w: usize,
    words: usize,
    field: Field,
    rows: Vec<Vec<u64>>,
}

/// All cases as JSON.
pub(crate) fn cases() -> Vec<String> {
    let of = |family: &Family| {
        let shapes: &[[usize; 4]] = match family.name {
            "raid6" => &PQ,
            "reed-solomon" => &WIDE,
            _ => &BYTES,
        };
        shapes.iter().map(|&shape| Case::new(family, shape).json(family)).collect::<Vec<_>>()
    };
    FAMILIES.iter().flat_map(of).collect()
}

impl Case {
    fn new(family: &Family, [k, m, w, words]: [usize; 4]) -> Self {
        let rows = (family.rows)(w as u32, k, m);
        Self { k, m, w, words, field: families::field(w as u32), rows }
    }

    /// With 64-bit numbers, the constant C below and z = (256·i + j + 1)·C, byte i of data shard j
    /// is the top byte of (z xor (z >> 32))·C.
    fn data(&self) -> Vec<Vec<u8>> {
        const C: u64 = 0x9E37_79B9_7F4A_7C15;
        let byte = |i: usize, j: usize| {
            let z = ((256 * i + j + 1) as u64).wrapping_mul(C);
            ((z ^ z >> 32).wrapping_mul(C) >> 56) as u8
        };
        let length = self.words * self.w / 8;
        (0..self.k).map(|j| (0..length).map(|i| byte(i, j)).collect()).collect()
    }

    /// The data bits that each parity bit is the sum of. Bit c of data symbol j adds the
    /// coefficient times 2^c.
    fn generator(&self) -> Vec<Vec<usize>> {
        let holds = |row: &[u64], bit: usize, cell: usize| {
            self.field.mul(row[cell / self.w], 1 << (cell % self.w)) >> bit & 1 == 1
        };
        let cells =
            |row: &[u64], bit| (0..self.k * self.w).filter(|&c| holds(row, bit, c)).collect();
        let bits = |row: &Vec<u64>| (0..self.w).map(|bit| cells(row, bit)).collect::<Vec<_>>();
        self.rows.iter().flat_map(bits).collect()
    }

    fn json(&self, family: &Family) -> String {
        let &Self { k, m, w, words, .. } = self;
        let generator = self.generator();
        let data = (0..k * w).map(|cell| vec![cell]);
        let cells: Vec<Vec<usize>> = data.chain(generator.iter().cloned()).collect();
        let nodes: Vec<Vec<Vec<usize>>> = cells.chunks(w).map(<[_]>::to_vec).collect();
        let mut description = description(k * w, &nodes);
        description.extend((w as u32).to_le_bytes());
        let description = blake3::digest(&description);
        [
            "    {".to_owned(),
            format!("      \"spec\": \"{}:{}\",", family.name, (family.keys)(self)),
            format!("      \"polynomial\": {},", self.field.polynomial()),
            format!("      \"k\": {k}, \"m\": {m}, \"w\": {w}, \"words\": {words},"),
            format!("      \"ones\": {},", generator.iter().map(Vec::len).sum::<usize>()),
            format!("      \"describe_blake3\": \"{description}\","),
            format!("      \"lost\": {:?},", losses(k + m, m)),
            format!("      \"lost_too_many\": {:?},", fatal_losses(k + m, m)),
            parity_json(&words::encode(&self.field, &self.rows, &self.data())),
            "    }".to_owned(),
        ]
        .join("\n")
    }
}
