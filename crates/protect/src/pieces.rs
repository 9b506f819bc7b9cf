//! The catalogue in pieces. Some of them may be lost.
//!
//! Half of the parity files, rounded up, suffice to read a catalogue: three of five. For a
//! catalogue that is small, in itself or compared with the parity, fewer files suffice, at best any
//! one. In each case some pieces in these files may be damaged as well.

use paritas::long::LongCode;
use paritas_store::error::Result;

use crate::format::{CatalogueShape, Header, MOST_PIECES, PIECE_GRANULE};

/// Wanted number of bytes of a piece. Smaller ones confine damage, larger ones have fewer
/// checksums.
const PIECE: u64 = 1024;
/// More than half of the parity files may be lost as long as all pieces together take at most the
/// parity's bytes divided by this number.
const SMALL: u64 = 50;
/// Number of bytes that all pieces together may take for the same purpose, however small the parity
/// is.
const FREE: u64 = 64 << 10;
/// In the files that suffice, one piece in this number may be damaged, and one piece in any case.
const SPARE: u64 = 16;

impl CatalogueShape {
    /// Chooses the pieces of a catalogue that is spread over `files` files with `parity` bytes of
    /// parity blocks.
    pub fn choose(catalogue: &[u8], files: u16, parity: u64) -> Self {
        let (length, files) = (catalogue.len() as u64, u64::from(files));
        // The size of all pieces together, as a multiple of the catalogue's size.
        let copies = ((parity / SMALL).max(FREE) / length.max(1)).clamp(2, files.max(2));
        let wanted = length.div_ceil(PIECE).max(1);
        let wanted = wanted + wanted.div_ceil(SPARE);
        let most = MOST_PIECES / files;
        let (each, sufficient) = match files {
            // A single file holds the catalogue twice.
            1 => {
                let half = wanted.min(most / 2);
                (2 * half, half)
            }
            _ => {
                let needed = files.div_ceil(copies);
                let each = wanted.div_ceil(needed).min(most);
                (each, each * needed)
            }
        };
        let data = (sufficient - (sufficient / SPARE).max(1)).max(1);
        let piece = length.div_ceil(data).max(1).next_multiple_of(PIECE_GRANULE);
        let digest = *blake3::hash(catalogue).as_bytes();
        Self { length, piece, data: data as u32, each: each as u32, digest }
    }

    fn code(&self, files: u16) -> Result<Option<LongCode>> {
        let (data, all) = (self.data as usize, self.each as usize * usize::from(files));
        if all == data {
            return Ok(None);
        }
        Ok(Some(LongCode::new(data, all - data)?))
    }
}

/// Returns all pieces of a catalogue.
pub(crate) fn cut(catalogue: &[u8], header: &Header) -> Result<Vec<Vec<u8>>> {
    let shape = &header.catalogue;
    let mut filled = catalogue.to_vec();
    filled.resize(shape.piece as usize * shape.data as usize, 0);
    let mut pieces: Vec<Vec<u8>> =
        filled.chunks(shape.piece as usize).map(<[u8]>::to_vec).collect();
    if let Some(code) = shape.code(header.count)? {
        let mut parity = vec![vec![0; shape.piece as usize]; code.parity()];
        let data: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let mut slices: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        code.encode(&data, &mut slices, 1)?;
        pieces.extend(parity);
    }
    Ok(pieces)
}

/// Returns the catalogue, if enough pieces are there to read it.
pub(crate) fn join(mut pieces: Vec<Option<Vec<u8>>>, header: &Header) -> Result<Option<Vec<u8>>> {
    let shape = &header.catalogue;
    let data = shape.data as usize;
    let lost: Vec<usize> = (0..data).filter(|&piece| pieces[piece].is_none()).collect();
    if !lost.is_empty() {
        let Some(code) = shape.code(header.count)? else { return Ok(None) };
        let Some(found) = recover(&code, &lost, &pieces, shape.piece as usize)? else {
            return Ok(None);
        };
        for (piece, bytes) in lost.into_iter().zip(found) {
            pieces[piece] = Some(bytes);
        }
    }
    let mut catalogue = pieces.into_iter().take(data).flatten().collect::<Vec<_>>().concat();
    catalogue.truncate(shape.length as usize);
    let is_right = blake3::hash(&catalogue) == shape.digest;
    Ok(is_right.then_some(catalogue))
}

fn recover(
    code: &LongCode,
    lost: &[usize],
    pieces: &[Option<Vec<u8>>],
    bytes: usize,
) -> Result<Option<Vec<Vec<u8>>>> {
    let rows: Vec<usize> =
        (0..code.parity()).filter(|row| pieces[code.data() + row].is_some()).collect();
    let Ok(recovery) = code.solve(lost, &rows) else { return Ok(None) };
    let row = |&row: &usize| pieces[code.data() + row].clone().unwrap_or_default();
    let mut sums: Vec<Vec<u8>> = recovery.rows().iter().map(row).collect();
    let zeros = vec![0; bytes];
    let known: Vec<&[u8]> =
        pieces[..code.data()].iter().map(|piece| piece.as_deref().unwrap_or(&zeros)).collect();
    let mut slices: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
    code.add(recovery.rows(), 0, &known, &mut slices, 1)?;
    let mut found = vec![vec![0; bytes]; lost.len()];
    let sums: Vec<&[u8]> = sums.iter().map(Vec::as_slice).collect();
    let mut slices: Vec<&mut [u8]> = found.iter_mut().map(Vec::as_mut_slice).collect();
    recovery.recover(&sums, &mut slices, 1)?;
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Id, RecordPlace};
    use crate::geometry::{Redundancy, StreamGeometry};

    fn header(catalogue: &[u8], files: u16, parity: u64) -> Header {
        Header {
            protection: Id::new([0; 16]),
            layer: Id::new([0; 16]),
            generation: 0,
            index: 0,
            count: files,
            geometry: StreamGeometry::choose(1000, Redundancy::USUAL).unwrap(),
            catalogue: CatalogueShape::choose(catalogue, files, parity),
        }
    }

    /// Half of the files suffice. If the catalogue is small compared with the parity, any one file
    /// does.
    #[test]
    fn catalogues_survive_lost_files() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at % 253) as u8).collect();
        for length in [1, 511, 4096, 4097, 20_000, 300_000] {
            for files in [1_u16, 2, 4, 5, 6, 7, 128] {
                let alone =
                    if length as u64 * u64::from(files) <= FREE { 1 } else { files.div_ceil(2) };
                for (parity, needed) in [(0, alone), (1 << 40, 1)] {
                    let catalogue = &bytes[..length];
                    let header = header(catalogue, files, parity);
                    let record = header.to_bytes(RecordPlace::Header);
                    assert_eq!(
                        Header::from_bytes(&record, RecordPlace::Header).as_ref(),
                        Some(&header)
                    );
                    let pieces = cut(catalogue, &header).unwrap();
                    let most = header.catalogue.piece * u64::from(header.catalogue.data);
                    assert!(most >= length as u64 && pieces.len() as u64 <= MOST_PIECES);
                    let is_kept = |file: u64| file < u64::from(needed);
                    let with = |is_kept: &dyn Fn(u64) -> bool| {
                        let numbered = (0..).zip(&pieces);
                        let kept = numbered.map(|(number, piece): (u64, &Vec<u8>)| {
                            is_kept(number % u64::from(files)).then(|| piece.clone())
                        });
                        join(kept.collect(), &header).unwrap()
                    };
                    assert_eq!(with(&is_kept).as_deref(), Some(catalogue), "{length} {files}");
                    let last = |file| is_kept(u64::from(files) - 1 - file);
                    assert_eq!(with(&last).as_deref(), Some(catalogue), "{length} {files}");
                    assert_eq!(with(&|_| false), None);
                    if files > 1 {
                        let mut kept: Vec<_> = pieces.iter().cloned().map(Some).collect();
                        let lost = (0..kept.len())
                            .filter(|piece| piece % usize::from(files) >= needed.into());
                        lost.for_each(|piece| kept[piece] = None);
                        kept[0] = None;
                        let joined = join(kept, &header).unwrap();
                        assert_eq!(joined.as_deref(), Some(catalogue), "and a piece");
                    }
                }
            }
        }
    }
}
