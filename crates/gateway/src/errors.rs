//! Errors in the form of S3.

use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use paritas_store::shown::shown;
use paritas_volume::{Error, ErrorKind};
use s3s::{Body, S3Error, S3ErrorCode, S3Result};

/// How often something is tried that others overtake.
const TRIES: usize = 5;

/// The code if nodes have no space left. S3 has none; this one is MinIO's. Clients do not send the
/// body again.
const FULL: &str = "XMinioStorageFull";

/// The adapter's code if it could not read a body that is a document: the client broke off, or the
/// body does not have the digest that the request states. Errors of the gateway have a message.
const UNREAD: &str = "InternalError";

/// Returns the error of S3 for an error of a volume. If a client may try again, the code is one
/// that clients retry. What names nodes and their paths is for the log alone.
pub fn told(error: &Error) -> S3Error {
    let (code, message) = match error.kind() {
        ErrorKind::NotFound => (S3ErrorCode::NoSuchKey, error.to_string()),
        ErrorKind::Parameters => (S3ErrorCode::InvalidArgument, error.to_string()),
        ErrorKind::Busy | ErrorKind::Exists => (S3ErrorCode::OperationAborted, error.to_string()),
        ErrorKind::TooFewNodes if error.io_kind() == Some(std::io::ErrorKind::StorageFull) => {
            (S3ErrorCode::Custom(FULL.into()), "too few nodes have space left".to_owned())
        }
        ErrorKind::TooFewNodes => {
            (S3ErrorCode::ServiceUnavailable, "too few nodes answer; try again later".to_owned())
        }
        ErrorKind::Memory => (S3ErrorCode::ServiceUnavailable, "the memory is short".to_owned()),
        _ => (S3ErrorCode::InternalError, "it failed; the gateway's log says why".to_owned()),
    };
    let is_full = code.as_str() == FULL;
    if is_full || matches!(code, S3ErrorCode::ServiceUnavailable | S3ErrorCode::InternalError) {
        tracing::warn!(error = line_of(error), "a request failed");
    }
    let mut answer = S3Error::with_message(code, message);
    if is_full {
        answer.set_status_code(StatusCode::INSUFFICIENT_STORAGE);
    }
    answer
}

/// Returns what a log says of an error or a name: on one line, whatever characters names have.
pub fn line_of(told: &impl ToString) -> String {
    shown(&told.to_string()).to_string()
}

/// Whether others have changed meanwhile what a request is about.
pub fn is_overtaken(error: &S3Error) -> bool {
    *error.code() == S3ErrorCode::OperationAborted
}

/// Calls `act` again if others have changed meanwhile what it works on: the next call sees the new
/// state.
pub async fn unless_overtaken<T, F: Future<Output = S3Result<T>>>(
    mut act: impl FnMut() -> F,
) -> S3Result<T> {
    for _ in 1..TRIES {
        match act().await {
            Err(error) if is_overtaken(&error) => {}
            done => return done,
        }
    }
    act().await
}

/// Completes the document of an error: with the id of its request, by which the log tells more, and
/// with a message if it has none, which some clients cannot read.
pub fn explained(answer: Response<Body>, refusal: Option<S3Error>, id: &str) -> Response<Body> {
    let told = answer.body().bytes().filter(|_| !answer.status().is_success());
    let text = told.as_ref().and_then(|bytes| std::str::from_utf8(bytes).ok());
    let Some(text) = text.and_then(|text| text.strip_suffix("</Error>")) else { return answer };
    let bare = text.strip_suffix("</Code>").and_then(|text| text.rsplit_once("<Code>"));
    let (status, text) = match bare {
        Some((before, code)) => {
            let (status, code, message) = explanation(code, answer.status(), refusal.as_ref());
            (status, format!("{before}<Code>{code}</Code><Message>{message}</Message>"))
        }
        None => (answer.status(), text.to_owned()),
    };
    let text = format!("{text}<RequestId>{id}</RequestId></Error>");
    let (mut head, _) = answer.into_parts();
    head.status = status;
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(text))
}

/// Returns the status, the code and the message for a code of the adapter without a message. A
/// document that could not be read becomes the client's error: `refusal`, if the gateway has
/// refused it.
fn explanation<'a>(
    code: &'a str,
    status: StatusCode,
    refusal: Option<&'a S3Error>,
) -> (StatusCode, &'a str, &'a str) {
    let message = match (code, refusal) {
        (UNREAD, Some(refusal)) => {
            let status = refusal.status_code().unwrap_or(StatusCode::BAD_REQUEST);
            return (status, refusal.code().as_str(), refusal.message().unwrap_or_default());
        }
        (UNREAD, None) => {
            let message = "the body is not what the request says of it";
            return (StatusCode::BAD_REQUEST, "IncompleteBody", message);
        }
        ("SignatureDoesNotMatch", _) => {
            "the signature does not follow from the request and the secret of this key"
        }
        ("InvalidBucketName", _) => {
            "a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens"
        }
        ("NoSuchKey", _) => "there is no object of this key",
        ("MalformedXML", _) => "the document of the request cannot be read",
        ("InvalidURI", _) => "the address is not a bucket and a key in UTF-8",
        ("PreconditionFailed", _) => "a condition of the request does not hold",
        _ => "the request was refused",
    };
    (status, code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_to_client(status: StatusCode, text: &str) -> (StatusCode, String) {
        let mut answer = Response::new(Body::from(text.to_owned()));
        *answer.status_mut() = status;
        let answer = explained(answer, None, "7F");
        let bytes = answer.body().bytes().unwrap();
        (answer.status(), String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn every_error_has_a_message() {
        let bare = "<?xml?><Error><Code>SignatureDoesNotMatch</Code></Error>";
        let (status, text) = told_to_client(StatusCode::FORBIDDEN, bare);
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(text.starts_with("<?xml?><Error><Code>SignatureDoesNotMatch</Code><Message>the "));
        assert!(text.ends_with("</Message><RequestId>7F</RequestId></Error>"));
        let unread = "<Error><Code>InternalError</Code></Error>";
        let (status, text) = told_to_client(StatusCode::INTERNAL_SERVER_ERROR, unread);
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(text.contains("<Code>IncompleteBody</Code><Message>"));
        let failed = "<Error><Code>InternalError</Code><Message>a disk</Message></Error>";
        let kept = told_to_client(StatusCode::INTERNAL_SERVER_ERROR, failed);
        let identified = failed.replace("</Error>", "<RequestId>7F</RequestId></Error>");
        assert_eq!(kept, (StatusCode::INTERNAL_SERVER_ERROR, identified));
        assert_eq!(told_to_client(StatusCode::OK, bare), (StatusCode::OK, bare.to_owned()));
    }
}
