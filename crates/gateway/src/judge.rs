//! What requests say of their bodies, and whether it is true.

use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::Checksum;
use s3s::{S3Error, S3ErrorCode, s3_error};

use crate::facts::beside;

/// The properties that the request states for its body.
#[derive(Debug, Default)]
pub struct ExpectedBody {
    /// The number of bytes.
    pub length: Option<u64>,
    /// The MD5 in Base64.
    pub md5: Option<String>,
    /// Checksums in Base64.
    pub checksum: Checksum,
    /// The names of the headers that come after the body.
    pub trailing: Vec<String>,
}

/// The properties of a received body.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// The MD5, in hexadecimal digits.
    pub md5: String,
    /// The checksums that the client asked for.
    pub checksum: Checksum,
}

/// Compares a body with what its request says of it.
pub struct BodyJudge {
    count: u64,
    md5: Md5,
    hasher: ChecksumHasher,
    expected: ExpectedBody,
}

impl BodyJudge {
    pub fn new(expected: ExpectedBody) -> Self {
        Self { count: 0, md5: Md5::new(), hasher: hasher_for(&expected), expected }
    }

    /// Returns what an empty body has, which takes as much room in notes as what any body has.
    pub fn empty(&self) -> Received {
        let checksum = hasher_for(&self.expected).finalize();
        Received { md5: hex(&Md5::new().finalize()), checksum }
    }

    /// Returns the number of bytes so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.count += bytes.len() as u64;
        self.md5.update(bytes);
        self.hasher.update(bytes);
    }

    /// Returns why the body is refused before its end, if more bytes have come than were stated.
    pub fn too_long(&self) -> Option<S3Error> {
        let length = self.expected.length.filter(|&length| length < self.count)?;
        Some(s3_error!(IncompleteBody, "more than {length} bytes came"))
    }

    /// Compares the complete body with what the request says of it.
    ///
    /// # Errors
    /// If the body is another one, or headers that were announced did not come after it.
    pub fn judge(mut self, trailers: &HeaderMap) -> Result<Received, S3Error> {
        let md5 = std::mem::replace(&mut self.md5, Md5::new()).finalize();
        let checksum = std::mem::take(&mut self.hasher).finalize();
        if let Some(length) = self.expected.length.filter(|&length| length != self.count) {
            let count = self.count;
            return Err(s3_error!(IncompleteBody, "{count} of {length} bytes came"));
        }
        if self.expected.md5.as_ref().is_some_and(|stated| *stated != base64(&md5)) {
            return Err(s3_error!(BadDigest, "the body does not have the MD5 that was stated"));
        }
        let mut announced = self.expected.trailing.iter();
        if announced.any(|name| !trailers.contains_key(name)) {
            return Err(lacking_trailer());
        }
        let stated = self.stated(trailers);
        let is_it = |[stated, found]: [Option<&str>; 2]| stated.is_none() || stated == found;
        let is_right = beside(&stated, &checksum).into_iter().all(is_it);
        match is_right {
            true => Ok(Received { md5: hex(&md5), checksum }),
            false => {
                Err(s3_error!(BadDigest, "the body does not have the checksum that was stated"))
            }
        }
    }

    /// Returns the checksums that were stated before the body or after it.
    fn stated(&self, trailers: &HeaderMap) -> Checksum {
        let before = &self.expected.checksum;
        let stated = |given: &Option<String>, name: &str| {
            let after = trailers.get(format!("x-amz-checksum-{name}"));
            let after = || after.and_then(|text| text.to_str().ok()).map(str::to_owned);
            given.clone().or_else(after)
        };
        Checksum {
            checksum_crc32: stated(&before.checksum_crc32, "crc32"),
            checksum_crc32c: stated(&before.checksum_crc32c, "crc32c"),
            checksum_crc64nvme: stated(&before.checksum_crc64nvme, "crc64nvme"),
            checksum_sha1: stated(&before.checksum_sha1, "sha1"),
            checksum_sha256: stated(&before.checksum_sha256, "sha256"),
            checksum_type: None,
        }
    }
}

fn hasher_for(expected: &ExpectedBody) -> ChecksumHasher {
    let Checksum { checksum_crc32, checksum_crc32c, checksum_crc64nvme, .. } = &expected.checksum;
    let Checksum { checksum_sha1, checksum_sha256, .. } = &expected.checksum;
    let is_wanted = |given: &Option<String>, name: &str| {
        given.is_some() || expected.trailing.iter().any(|after| after == name)
    };
    ChecksumHasher {
        crc32: is_wanted(checksum_crc32, "x-amz-checksum-crc32").then(Crc32::new),
        crc32c: is_wanted(checksum_crc32c, "x-amz-checksum-crc32c").then(Crc32c::new),
        crc64nvme: is_wanted(checksum_crc64nvme, "x-amz-checksum-crc64nvme").then(Crc64Nvme::new),
        sha1: is_wanted(checksum_sha1, "x-amz-checksum-sha1").then(Sha1::new),
        sha256: is_wanted(checksum_sha256, "x-amz-checksum-sha256").then(Sha256::new),
    }
}

/// Returns the error for a body after which a header is missing.
pub fn lacking_trailer() -> S3Error {
    let message = "what x-amz-trailer names did not come after the body";
    bad_request("MalformedTrailerError", message)
}

/// Returns an error whose code the adapter does not have.
pub fn bad_request(code: &'static str, message: &'static str) -> S3Error {
    let mut error = S3Error::with_message(S3ErrorCode::Custom(code.into()), message);
    error.set_status_code(http::StatusCode::BAD_REQUEST);
    error
}

/// Returns the digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes that digits stand for, if they do.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
