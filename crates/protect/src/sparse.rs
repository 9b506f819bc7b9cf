//! Files with holes: zeros that take no room on the disk.

use std::fs::{File, Metadata};
use std::io::{self, IoSlice};
use std::ops::Range;

use paritas_store::place::positional::{read_exact_at, write_at};

use crate::format::checksum_of_zeros;
use crate::geometry::StreamGeometry;

/// Number of bytes that are copied at once.
const STEP: u64 = 1 << 20;
/// File systems make holes of pages of this many bytes, or of multiples.
const PAGE: u64 = 4096;

/// Writes bytes to a file that reads as zeros there. Pages of zeros are not written, so that they
/// stay holes.
pub(crate) fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let end = offset + bytes.len() as u64;
    let mut at = offset;
    let mut run = offset..offset;
    while at < end {
        let next = (at / PAGE * PAGE + PAGE).min(end);
        let page = &bytes[(at - offset) as usize..(next - offset) as usize];
        if page.iter().all(|&byte| byte == 0) {
            write_range(file, bytes, offset, run)?;
            run = next..next;
        } else {
            run.end = next;
        }
        at = next;
    }
    write_range(file, bytes, offset, run)
}

fn write_range(file: &File, bytes: &[u8], offset: u64, range: Range<u64>) -> io::Result<()> {
    match range.is_empty() {
        true => Ok(()),
        false => {
            let part = (range.start - offset) as usize..(range.end - offset) as usize;
            write_at(file, &mut [IoSlice::new(&bytes[part])], range.start)
        }
    }
}

/// Copies `size` bytes of a file to a new one, which reads as zeros.
///
/// # Errors
/// If the file has fewer bytes ([`io::ErrorKind::UnexpectedEof`]), or if the system refuses.
pub(crate) fn copy_bytes(from: &File, to: &File, size: u64) -> io::Result<()> {
    let mut memory = vec![0; size.min(STEP) as usize];
    for at in (0..size).step_by(STEP as usize) {
        let bytes = &mut memory[..(size - at).min(STEP) as usize];
        read_exact_at(from, bytes, at)?;
        write(to, bytes, at)?;
    }
    Ok(())
}

/// Returns the number of bytes that become free on a disk if a file there is removed.
#[cfg(unix)]
pub(crate) fn taken(file: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    // Whatever the file system allocates, these blocks have 512 bytes.
    if file.nlink() > 1 { 0 } else { file.blocks() * 512 }
}

#[cfg(not(unix))]
pub(crate) fn taken(file: &Metadata) -> u64 {
    file.len()
}

/// Returns the number of bytes that a file takes on its disk, if the blocks of its zeros are holes.
/// `range` is where it lies in the stream of a layer with these blocks and checksums.
pub(crate) fn room(range: Range<u64>, geometry: &StreamGeometry, checksums: &[u64]) -> u64 {
    let zeros = checksum_of_zeros(geometry.block);
    let whole = range.start.div_ceil(geometry.block)..range.end / geometry.block;
    let mut holes = 0;
    let mut begin = None;
    for block in whole.start..whole.end.max(whole.start) + 1 {
        let is_zero = block < whole.end && checksums.get(block as usize) == Some(&zeros);
        match (begin, is_zero) {
            (None, true) => begin = Some(block),
            (Some(first), false) => {
                let from = (first * geometry.block - range.start).next_multiple_of(PAGE);
                let to = (block * geometry.block - range.start) / PAGE * PAGE;
                holes += to.saturating_sub(from);
                begin = None;
            }
            _ => {}
        }
    }
    range.end - range.start - holes
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;

    use paritas_store::place::positional::read_at;

    use super::*;
    use crate::format::block_checksum;

    /// Bytes with zeros and others in turns, of lengths around a page.
    fn content() -> Vec<u8> {
        let runs = [5_000, 4_096, 1, 20_000, 4_095, 300_000, 12_288, 9];
        let runs = runs.into_iter().enumerate();
        runs.flat_map(|(number, length)| vec![(number % 2) as u8 * 7; length]).collect()
    }

    #[test]
    fn every_byte_arrives() {
        let content = content();
        let (source, copy) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        source.set_len(content.len() as u64).unwrap();
        copy.set_len(content.len() as u64).unwrap();
        for (number, part) in content.chunks(7_001).enumerate() {
            write(&source, part, number as u64 * 7_001).unwrap();
        }
        copy_bytes(&source, &copy, content.len() as u64).unwrap();
        for file in [source, copy] {
            let mut read = vec![1; content.len() + 1];
            let slice = &mut [IoSliceMut::new(&mut read)];
            assert_eq!(read_at(&file, slice, 0).unwrap(), content.len());
            assert!(read[..content.len()] == content);
        }
    }

    /// What a file takes is never taken for more than its bytes, nor for less than the pages that
    /// have any.
    #[test]
    fn holes_need_no_room() {
        let content = content();
        let length = content.len() as u64;
        for block in [512, 4_096, 53_760] {
            let sum = |bytes: &[u8]| {
                let mut crc = block_checksum();
                crc.update(bytes);
                crc.finalize()
            };
            let checksums: Vec<u64> = content.chunks(block as usize).map(sum).collect();
            let data = checksums.len() as u64;
            let geometry = StreamGeometry { length, block, data, parity: 1 };
            for range in [0..length, 700..length - 3, 9..10, 5..5] {
                let bytes = &content[range.start as usize..range.end as usize];
                let is_used = |page: &&[u8]| page.iter().any(|&byte| byte != 0);
                let used =
                    bytes.chunks(PAGE as usize).filter(is_used).map(<[u8]>::len).sum::<usize>();
                let room = room(range.clone(), &geometry, &checksums);
                assert!((used as u64..=range.end - range.start).contains(&room), "{range:?}");
            }
        }
        let zeros = vec![checksum_of_zeros(PAGE); 100];
        let geometry = StreamGeometry { length: 409_600, block: PAGE, data: 100, parity: 1 };
        assert_eq!(room(0..409_600, &geometry, &zeros), 0);
        assert_eq!(room(1..409_600, &geometry, &zeros), PAGE - 1 + PAGE);
    }
}
