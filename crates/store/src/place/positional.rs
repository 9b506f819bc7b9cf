//! Vectored reads and writes at a position, which are either complete or return an error.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};

use crate::place::refused::is_refusal;
use crate::place::system::{read_once, write_once};

/// Largest number of slices that one system call takes.
const MAX_SLICES: usize = 1024;

/// Number of bytes of two files that are compared at a time.
const COMPARED: usize = 1 << 20;

/// Reads until the slices are full or the file ends. Returns the number of bytes read.
///
/// # Errors
/// If the system cannot read.
pub fn read_at(file: &File, slices: &mut [IoSliceMut<'_>], mut offset: u64) -> io::Result<usize> {
    let start = offset;
    let mut left = slices;
    IoSliceMut::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let batch = left.len().min(MAX_SLICES);
        match read_once(file, &mut left[..batch], offset) {
            Ok(0) => break,
            Ok(read) => {
                offset += read as u64;
                IoSliceMut::advance_slices(&mut left, read);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((offset - start) as usize)
}

/// Fills the buffer.
///
/// # Errors
/// If the file ends before ([`io::ErrorKind::UnexpectedEof`]), or if the system cannot read.
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let wanted = buffer.len();
    match read_at(file, &mut [IoSliceMut::new(buffer)], offset)? {
        read if read == wanted => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Whether two files have the same bytes.
///
/// # Errors
/// If the system cannot read.
pub fn are_same(one: &File, other: &File) -> io::Result<bool> {
    let length = one.metadata()?.len();
    if other.metadata()?.len() != length {
        return Ok(false);
    }
    let mut buffers = [(); 2].map(|()| vec![0; COMPARED]);
    for offset in (0..length).step_by(COMPARED) {
        let count = COMPARED.min((length - offset) as usize);
        for (file, buffer) in [one, other].into_iter().zip(&mut buffers) {
            read_exact_at(file, &mut buffer[..count], offset)?;
        }
        if buffers[0][..count] != buffers[1][..count] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sets the length of a file, with zeros where nothing was written. A file system that does not set
/// lengths still takes a last byte.
///
/// # Errors
/// If the system cannot write, or if it refuses to shorten the file.
pub fn set_length(file: &File, length: u64) -> io::Result<()> {
    match file.set_len(length) {
        Err(error) if is_refusal(&error) => match file.metadata()?.len() {
            same if same == length => Ok(()),
            shorter if shorter < length => write_at(file, &mut [IoSlice::new(&[0])], length - 1),
            _ => Err(error),
        },
        done => done,
    }
}

/// Writes all slices.
///
/// # Errors
/// If the system cannot write.
pub fn write_at(file: &File, slices: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    let mut left = slices;
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let batch = left.len().min(MAX_SLICES);
        match write_once(file, &left[..batch], offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
