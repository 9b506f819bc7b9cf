//! Errors of volumes as S3 tells them.

use paritas_volume::{Error, ErrorKind};
use s3s::{S3Error, S3ErrorCode};

/// Returns the error of S3 for an error of a volume. What clients may try again has a code with
/// which they do.
pub fn told(error: &Error) -> S3Error {
    let code = match error.kind() {
        ErrorKind::NotFound => S3ErrorCode::NoSuchKey,
        ErrorKind::Parameters => S3ErrorCode::InvalidArgument,
        ErrorKind::Busy => S3ErrorCode::OperationAborted,
        ErrorKind::TooFewNodes | ErrorKind::Memory => S3ErrorCode::ServiceUnavailable,
        _ => S3ErrorCode::InternalError,
    };
    S3Error::with_message(code, error.to_string())
}
