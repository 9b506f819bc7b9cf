//! The digest of a file.

use paritas_store::object::format::Digest;

/// The first 16 bytes of the BLAKE3 digest of a file.
pub type FileDigest = [u8; 16];

/// Returns the digest of a whole file.
pub(crate) fn digest(bytes: &[u8]) -> FileDigest {
    shorten(&Digest::new(blake3::hash(bytes).into()))
}

/// Returns the part of a digest that is kept.
pub(crate) fn shorten(digest: &Digest) -> FileDigest {
    let mut short = FileDigest::default();
    let kept = short.len();
    short.copy_from_slice(&digest.as_bytes()[..kept]);
    short
}
