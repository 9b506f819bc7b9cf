//! LT codes for the second reader, written from the text of `generator.rs` and `soliton.rs`: the
//! graph is drawn from the pin alone, and solved by plain elimination.

use super::{Cbor, Shard, cases, content, spec};

/// The cases, and the number of blocks of each shard that are checked.
const LT: [&str; 3] = ["lt-plain", "lt-originals", "lt-one"];

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

const G: u64 = 0x9E37_79B9_7F4A_7C15;

/// The generator of a block.
struct Words(u64);

impl Words {
    fn of_block(seed: u64, attempt: u64, block: u64) -> Self {
        Self([seed, attempt, 0, block].iter().fold(0, |s: u64, w| mix(s.wrapping_add(G) ^ w)))
    }

    fn below(&mut self, n: u64) -> u64 {
        loop {
            self.0 = self.0.wrapping_add(G);
            let product = u128::from(mix(self.0)) * u128::from(n);
            if u128::from(product as u64) >= (1_u128 << 64) % u128::from(n) {
                return (product >> 64) as u64;
            }
        }
    }
}

/// The code as the header states it.
struct Lt {
    k: u64,
    n: u64,
    nodes: u64,
    originals: bool,
    spike: u64,
    ripple: u64,
    weight: u64,
    seed: u64,
    attempt: u64,
}

impl Lt {
    fn of(shards: &[Shard]) -> Self {
        let parameters = spec(shards).split_once(':').unwrap().1;
        let text = |key: &str| {
            let found = parameters.split(',').find_map(|p| p.strip_prefix(key)?.strip_prefix('='));
            found.unwrap()
        };
        let number = |key| text(key).parse().unwrap();
        let Cbor::Array(pin) = shards[0].footer.at(0).at(1) else { panic!() };
        let pinned = |key: &str| {
            let entry = |entry: &Cbor| match entry {
                Cbor::Array(pair) if pair[0] == Cbor::Text(key.to_owned()) => match &pair[1] {
                    Cbor::Array(numbers) => Some(numbers[0].number()),
                    other => panic!("{other:?}"),
                },
                _ => None,
            };
            pin.iter().find_map(entry).unwrap()
        };
        assert_eq!(pinned("generator"), 1);
        let variant = text("variant");
        assert!(["plain", "originals"].contains(&variant), "{variant}");
        Self {
            k: number("k"),
            n: number("n"),
            nodes: number("nodes"),
            originals: variant == "originals",
            spike: pinned("spike"),
            ripple: pinned("ripple"),
            weight: pinned("weight"),
            seed: pinned("seed"),
            attempt: pinned("attempt"),
        }
    }

    /// Returns the weight of a degree.
    fn degree_weight(&self, i: u64) -> u64 {
        let unit = 1_u64 << 44;
        let ideal = if i == 1 { unit / self.k } else { unit / (i * (i - 1)) };
        ideal
            + match i {
                _ if i < self.spike => self.ripple / i,
                _ if i == self.spike => self.weight,
                _ => 0,
            }
    }

    /// Returns the data blocks that a block is the XOR of, ascending.
    fn neighbours(&self, block: u64) -> Vec<u64> {
        if self.originals && block < self.k {
            return vec![block];
        }
        let mut words = Words::of_block(self.seed, self.attempt, block);
        let least = if self.originals && self.k > 1 { 2 } else { 1 };
        let total: u64 = (least..=self.k).map(|i| self.degree_weight(i)).sum();
        let mut number = words.below(total);
        let mut degree = least;
        while number >= self.degree_weight(degree) {
            number -= self.degree_weight(degree);
            degree += 1;
        }
        let mut chosen = Vec::new();
        for j in self.k - degree..self.k {
            let t = words.below(j + 1);
            chosen.push(if chosen.contains(&t) { j } else { t });
        }
        chosen.sort_unstable();
        chosen
    }

    /// Computes the BLAKE3 digest of the description: data cells, nodes, and for each node its
    /// cells' rows.
    fn description(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let mut number = |n: u64| _ = hasher.update(&(n as u32).to_le_bytes());
        number(self.k);
        number(self.nodes);
        for node in 0..self.nodes {
            let blocks = (node..self.n).step_by(self.nodes as usize);
            number(blocks.clone().count() as u64);
            for block in blocks {
                let row = self.neighbours(block);
                number(row.len() as u64);
                row.into_iter().for_each(&mut number);
            }
        }
        hasher.finalize()
    }

    /// Computes the data blocks by elimination from all blocks, in falling order, so that originals
    /// help least.
    fn solve(&self, block: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
        type Row = (Vec<bool>, Vec<u8>);
        fn add((bits, bytes): &mut Row, (other, others): &Row) {
            bits.iter_mut().zip(other).for_each(|(bit, &other)| *bit ^= other);
            bytes.iter_mut().zip(others).for_each(|(byte, &other)| *byte ^= other);
        }
        let mut basis: Vec<Option<Row>> = vec![None; self.k as usize];
        for number in (0..self.n).rev() {
            let mut row: Row = (vec![false; self.k as usize], block(number));
            self.neighbours(number).iter().for_each(|&data| row.0[data as usize] = true);
            while let Some(lead) = row.0.iter().position(|&bit| bit) {
                match &basis[lead] {
                    Some(known) => add(&mut row, known),
                    None => {
                        basis[lead] = Some(row);
                        break;
                    }
                }
            }
        }
        for lead in (0..basis.len()).rev() {
            let mut row = basis[lead].take().unwrap();
            while let Some(other) = (lead + 1..row.0.len()).find(|&other| row.0[other]) {
                add(&mut row, basis[other].as_ref().unwrap());
            }
            basis[lead] = Some(row);
        }
        basis.into_iter().flat_map(|row| row.unwrap().1).collect()
    }
}

#[test]
fn graphs_follow_from_the_pin() {
    for (case, shards) in cases(&LT) {
        let lt = Lt::of(&shards);
        let stated = shards[0].footer.at(0).at(2).bytes();
        assert_eq!(lt.description().as_bytes(), stated, "{case}");
        let mut object = Vec::new();
        for segment in 0..shards[0].blocks.len() {
            object.extend(lt.solve(|block| {
                let shard = &shards[(block % lt.nodes) as usize];
                shard.blocks[segment][(block / lt.nodes) as usize].clone()
            }));
        }
        let length = shards[0].footer.at(2).at(0).number() as usize;
        assert!(object[length..].iter().all(|&byte| byte == 0), "{case}: the rest is not zero");
        assert!(object[..length] == content(length), "{case}");
    }
}
