//! Our side: a codec, or a long code in Leopard's bytes.

use paritas::long::LongCode;
use paritas::{Buffer, Code, Codec, CodecOptions, Spec};

/// A code of ours.
pub enum Coder {
    Codec(Box<Codec>),
    Long(LongCode),
}

impl Coder {
    /// Returns the code that a spec names; `None` if there is no such code.
    pub fn new(spec: &Spec) -> Option<Self> {
        if spec.family() == "leopard16" {
            let number = |key| spec.text(key)?.parse().ok();
            return LongCode::leopard(number("k")?, number("m")?).ok().map(Self::Long);
        }
        let codec = Codec::with_options(Code::new(spec).ok()?, CodecOptions::default());
        codec.ok().map(|codec| Self::Codec(Box::new(codec)))
    }

    /// The canonical spec.
    pub fn spec(&self) -> String {
        match self {
            Self::Codec(codec) => codec.code().spec().to_string(),
            Self::Long(code) => format!("leopard16:k={},m={}", code.data(), code.parity()),
        }
    }

    /// Returns the parity of data shards.
    pub fn encode(&self, data: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
        let parity = match self {
            Self::Codec(codec) => codec.code().node_count() - data.len(),
            Self::Long(code) => code.parity(),
        };
        let mut parity = vec![vec![0; data[0].len()]; parity];
        let data = slices(data);
        let done = match self {
            Self::Codec(codec) => codec.encode(&data, &mut targets(&mut parity)),
            Self::Long(code) => code.encode(&data, &mut targets(&mut parity), 1),
        };
        done.map_err(|error| error.to_string())?;
        Ok(parity)
    }

    /// Returns all shards, computed from the shards that are not lost.
    pub fn reconstruct(&self, shards: &[Vec<u8>], lost: &[usize]) -> Result<Vec<Vec<u8>>, String> {
        let made = match self {
            Self::Codec(codec) => reconstruct(codec, shards, lost),
            Self::Long(code) => recover(code, shards, lost),
        };
        made.map_err(|error| error.to_string())
    }
}

fn slices(shards: &[Vec<u8>]) -> Vec<&[u8]> {
    shards.iter().map(Vec::as_slice).collect()
}

fn targets(shards: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    shards.iter_mut().map(Vec::as_mut_slice).collect()
}

fn reconstruct(
    codec: &Codec,
    shards: &[Vec<u8>],
    lost: &[usize],
) -> Result<Vec<Vec<u8>>, paritas::Error> {
    let mut all = shards.to_vec();
    let buffers = all.iter_mut().zip(shards).enumerate();
    let mut buffers: Vec<Buffer<'_>> = buffers
        .map(|(node, (target, source))| match lost.contains(&node) {
            true => {
                target.fill(0xEE);
                Buffer::Target(target)
            }
            false => Buffer::Source(source),
        })
        .collect();
    codec.reconstruct_into(&mut buffers)?;
    Ok(all)
}

/// Recovers the data shards, and makes the parity shards of them.
fn recover(
    code: &LongCode,
    shards: &[Vec<u8>],
    lost: &[usize],
) -> Result<Vec<Vec<u8>>, paritas::Error> {
    let (k, length) = (code.data(), shards[0].len());
    let (lost_data, lost_parity): (Vec<usize>, Vec<usize>) = lost.iter().partition(|&&n| n < k);
    let left = (0..code.parity()).filter(|row| !lost_parity.contains(&(k + row)));
    let recovery = code.solve(&lost_data, &left.collect::<Vec<usize>>())?;
    let mut data = slices(&shards[..k]);
    lost_data.iter().for_each(|&node| data[node] = &[]);
    let rows = recovery.rows();
    let mut sums: Vec<Vec<u8>> = rows.iter().map(|&row| shards[k + row].clone()).collect();
    code.add(rows, 0, &data, &mut targets(&mut sums), 1)?;
    let mut made = vec![vec![0xEE; length]; lost_data.len()];
    recovery.recover(&slices(&sums), &mut targets(&mut made), 1)?;
    let mut all = shards.to_vec();
    lost_data.iter().zip(made).for_each(|(&node, shard)| all[node] = shard);
    let rows: Vec<usize> = lost_parity.iter().map(|node| node - k).collect();
    let mut parity = vec![vec![0; length]; rows.len()];
    code.add(&rows, 0, &slices(&all[..k]), &mut targets(&mut parity), 1)?;
    lost_parity.iter().zip(parity).for_each(|(&node, shard)| all[node] = shard);
    Ok(all)
}
