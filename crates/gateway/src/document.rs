//! XML documents that write control characters as numbers.
//!
//! Keys may have characters that XML 1.0 cannot hold, such as U+0001: a client would refuse the
//! whole document. A client also reads a carriage return as a line feed, and so gets another key.
//! S3 writes such characters by their numbers, as `&#x1;`, which many clients read; listings with
//! `encoding-type=url` do not contain such characters.

use http::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use s3s::Body;

/// Writes characters that do not stand for themselves by their numbers, if the answer is a
/// document.
pub fn numbered(answer: Response<Body>) -> Response<Body> {
    let is_document =
        answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/xml");
    let text = answer.body().bytes().filter(|bytes| is_document && bytes.iter().any(is_odd));
    let Some(text) = text else { return answer };
    let mut written = Vec::with_capacity(text.len() + 16);
    for byte in &text {
        match is_odd(byte) {
            true => written.extend_from_slice(format!("&#x{byte:X};").as_bytes()),
            false => written.push(*byte),
        }
    }
    let (mut head, _) = answer.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(written))
}

/// Whether a byte of a document is a character that does not stand for itself. (UTF-8 has these
/// bytes for these characters alone.)
fn is_odd(byte: &u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(kind: &'static str, text: &'static str) -> Vec<u8> {
        let mut answer = Response::new(Body::from(text.to_owned()));
        answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
        numbered(answer).body().bytes().unwrap().to_vec()
    }

    #[test]
    fn characters_of_documents_can_be_read() {
        let key = "<Key>a\r\u{1}\n\té</Key>";
        assert_eq!(sent("application/xml", key), "<Key>a&#xD;&#x1;\n\té</Key>".as_bytes());
        assert_eq!(sent("text/plain", key), key.as_bytes());
    }
}
