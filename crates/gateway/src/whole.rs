//! What a client says of an object whose parts are joined: its length, and its checksum.
//!
//! There are two kinds of checksums. That of the whole object (`FULL_OBJECT`) is combined from
//! those of its pieces and their lengths; this is possible for CRCs. A composite one is the
//! checksum of the checksums of the pieces, with `-` and their number after it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, checksum_combine};
use paritas_volume::StoredPiece;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::dto::{Checksum, ChecksumType};
use s3s::{S3Result, s3_error};

use crate::facts::{beside, checksum_of};

/// The algorithms, in the order of [`beside`], as far as their checksums can be combined.
const COMBINED: [Option<CrcAlgorithm>; 5] = [
    Some(CrcAlgorithm::Crc32IsoHdlc),
    Some(CrcAlgorithm::Crc32Iscsi),
    Some(CrcAlgorithm::Crc64Nvme),
    None,
    None,
];

/// What a client says of the whole object.
pub struct StatedWhole {
    pub length: Option<i64>,
    pub checksum: Checksum,
    pub kind: Option<ChecksumType>,
}

/// Whether a checksum is that of the whole object.
pub fn is_of_whole(kind: &ChecksumType) -> bool {
    kind.as_str() == ChecksumType::FULL_OBJECT
}

impl StatedWhole {
    /// Refuses pieces that do not make what was stated.
    pub fn expect_of(&self, pieces: &[&StoredPiece]) -> S3Result<()> {
        let total: u64 = pieces.iter().map(|stored| stored.piece.length).sum();
        if self.length.is_some_and(|length| u64::try_from(length) != Ok(total)) {
            return Err(s3_error!(InvalidRequest, "the parts have {total} bytes together"));
        }
        for (at, stated) in listed(&self.checksum).into_iter().enumerate() {
            let Some(stated) = stated else { continue };
            let found = self.found(at, stated, pieces).ok_or_else(|| {
                s3_error!(InvalidRequest, "the checksum does not follow from those of the parts")
            })?;
            if stated.split('-').next() != Some(&found) || !has_count(stated, pieces.len()) {
                return Err(s3_error!(BadDigest, "the parts do not have the checksum together"));
            }
        }
        Ok(())
    }

    /// Returns the checksum of the pieces, with the algorithm and of the kind of the stated one, if
    /// it can be computed from the checksums that are kept with them.
    fn found(&self, at: usize, stated: &str, pieces: &[&StoredPiece]) -> Option<String> {
        let kept = kept(at, pieces)?;
        let is_composite =
            stated.contains('-') || self.kind.as_ref().is_some_and(|k| !is_of_whole(k));
        match is_composite {
            true => composite(at, &kept),
            false => combined(COMBINED[at]?, &kept),
        }
    }
}

/// Returns the checksums of an object from those of its pieces, in all algorithms in which all
/// pieces have one: composite ones, or, if `is_whole`, those of all bytes. The latter is the only
/// kind of CRC-64.
pub fn checksum_of_pieces(pieces: &[&StoredPiece], is_whole: bool) -> Checksum {
    const CRC64: usize = 2;
    let kept = std::array::from_fn::<_, 5, _>(|at| kept(at, pieces));
    let is_whole = is_whole || kept[CRC64].is_some();
    let mut found = kept.into_iter().enumerate().map(|(at, kept)| match is_whole {
        true => combined(COMBINED[at]?, &kept?),
        false => composite(at, &kept?).map(|text| format!("{text}-{}", pieces.len())),
    });
    let mut next = || found.next().flatten();
    Checksum {
        checksum_crc32: next(),
        checksum_crc32c: next(),
        checksum_crc64nvme: next(),
        checksum_sha1: next(),
        checksum_sha256: next(),
        checksum_type: None,
    }
}

/// Returns the checksums of pieces in one algorithm, if all have one, each with the piece's length.
fn kept(at: usize, pieces: &[&StoredPiece]) -> Option<Vec<(Vec<u8>, u64)>> {
    let of_piece = |stored: &&StoredPiece| {
        let kept = checksum_of(&stored.notes);
        Some((STANDARD.decode(listed(&kept)[at]?).ok()?, stored.piece.length))
    };
    pieces.iter().map(of_piece).collect()
}

/// Returns the checksums in the order of [`COMBINED`].
fn listed(checksum: &Checksum) -> [Option<&str>; 5] {
    beside(checksum, checksum).map(|[one, _]| one)
}

/// Whether the number after a composite checksum is that of the pieces, if there is one.
fn has_count(stated: &str, count: usize) -> bool {
    stated.split_once('-').is_none_or(|(_, stated)| stated.parse() == Ok(count))
}

/// Returns the checksum of checksums.
fn composite(at: usize, kept: &[(Vec<u8>, u64)]) -> Option<String> {
    let mut hasher = ChecksumHasher {
        crc32: Some(Crc32::new()),
        crc32c: Some(Crc32c::new()),
        crc64nvme: Some(Crc64Nvme::new()),
        sha1: Some(Sha1::new()),
        sha256: Some(Sha256::new()),
    };
    kept.iter().for_each(|(checksum, _)| hasher.update(checksum));
    listed(&hasher.finalize())[at].map(str::to_owned)
}

/// Returns the checksum of all bytes, from the checksums and lengths of pieces.
fn combined(algorithm: CrcAlgorithm, kept: &[(Vec<u8>, u64)]) -> Option<String> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    let ((first, _), rest) = kept.split_first()?;
    let whole = rest.iter().fold(number(first), |whole, (checksum, length)| {
        checksum_combine(algorithm, whole, number(checksum), *length)
    });
    let bytes = whole.to_be_bytes();
    Some(STANDARD.encode(&bytes[bytes.len().checked_sub(first.len())?..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_pieces_are_combined() {
        let hash = |bytes: &[u8]| {
            let mut hasher = ChecksumHasher {
                crc32: Some(Crc32::new()),
                crc32c: Some(Crc32c::new()),
                crc64nvme: Some(Crc64Nvme::new()),
                ..ChecksumHasher::default()
            };
            hasher.update(bytes);
            hasher.finalize()
        };
        let parts = [&b"The quick brown fox"[..], b" jumps over", b" the lazy dog"];
        let hashes = parts.map(hash);
        for (at, algorithm) in COMBINED.into_iter().flatten().enumerate() {
            let kept = |(hash, part): (&Checksum, &&[u8])| {
                (STANDARD.decode(listed(hash)[at].unwrap()).unwrap(), part.len() as u64)
            };
            let kept: Vec<(Vec<u8>, u64)> = hashes.iter().zip(&parts).map(kept).collect();
            let whole = hash(&parts.concat());
            assert_eq!(combined(algorithm, &kept).as_deref(), listed(&whole)[at]);
            let raw: Vec<u8> = kept.iter().flat_map(|(checksum, _)| checksum.clone()).collect();
            assert_eq!(composite(at, &kept).as_deref(), listed(&hash(&raw))[at]);
        }
    }
}
