//! The digest of a file.

use std::fs::File;
use std::io::{self, IoSliceMut};

use paritas_store::object::format::Digest;
use paritas_store::place::positional::read_at;

/// Number of bytes that are read at once.
const STEP: u64 = 1 << 20;

/// The first 16 bytes of the BLAKE3 digest of a file.
pub type FileDigest = [u8; 16];

/// Returns the digest of a whole file.
pub(crate) fn digest(bytes: &[u8]) -> FileDigest {
    shorten(&Digest::new(blake3::hash(bytes).into()))
}

/// Returns the digest of an open file, or `None` if it does not have `size` bytes.
pub(crate) fn digest_of_open(file: &File, size: u64) -> io::Result<Option<FileDigest>> {
    // One byte too many, so that one read shows the end of a small file.
    let mut memory = vec![0; (size + 1).min(STEP) as usize];
    let (mut hasher, mut length) = (blake3::Hasher::new(), 0);
    loop {
        let read = read_at(file, &mut [IoSliceMut::new(&mut memory)], length)?;
        hasher.update(&memory[..read]);
        length += read as u64;
        if read < memory.len() || length > size {
            let digest = || shorten(&Digest::new(hasher.finalize().into()));
            return Ok((length == size).then(digest));
        }
    }
}

/// Returns the part of a digest that is kept.
pub(crate) fn shorten(digest: &Digest) -> FileDigest {
    let mut short = FileDigest::default();
    let kept = short.len();
    short.copy_from_slice(&digest.as_bytes()[..kept]);
    short
}
