//! Vectored reads and writes at a position, whole or with a reason.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

/// The most slices that one system call takes.
const MAX_SLICES: usize = 1024;

/// A file that counts the bytes read from it, and the slices that were filled with them.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
    read: AtomicU64,
    slices: AtomicU64,
}

impl Input {
    pub fn new(file: File) -> Self {
        Self { file, read: AtomicU64::new(0), slices: AtomicU64::new(0) }
    }

    /// As [`read_at`].
    pub fn read_at(&self, slices: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let ends = slices.iter().scan(0, |end, slice| {
            *end += slice.len();
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        let read = read_at(&self.file, slices, offset)?;
        let filled = ends.into_iter().filter(|&end| end <= read).count();
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        self.slices.fetch_add(filled as u64, Ordering::Relaxed);
        Ok(read)
    }

    /// The bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The slices filled so far.
    pub fn read_slices(&self) -> u64 {
        self.slices.load(Ordering::Relaxed)
    }
}

/// Reads until the slices are full or the file ends; returns the bytes read.
pub(crate) fn read_at(
    file: &File,
    slices: &mut [IoSliceMut<'_>],
    mut offset: u64,
) -> io::Result<usize> {
    let start = offset;
    let mut left = slices;
    IoSliceMut::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let batch = left.len().min(MAX_SLICES);
        match rustix::io::preadv(file, &mut left[..batch], offset) {
            Ok(0) => break,
            Ok(read) => {
                offset += read as u64;
                IoSliceMut::advance_slices(&mut left, read);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((offset - start) as usize)
}

/// Reads exactly this many bytes.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let wanted = buffer.len();
    match read_at(file, &mut [IoSliceMut::new(buffer)], offset)? {
        read if read == wanted => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes all slices.
pub(crate) fn write_at(file: &File, slices: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    let mut left = slices;
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let batch = left.len().min(MAX_SLICES);
        match rustix::io::pwritev(file, &left[..batch], offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
