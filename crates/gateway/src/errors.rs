//! Errors of volumes in the form of S3.

use paritas_volume::{Error, ErrorKind};
use s3s::{S3Error, S3ErrorCode};

/// Returns the error of S3 for an error of a volume. If a client may try again, the code is one
/// that clients retry.
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
