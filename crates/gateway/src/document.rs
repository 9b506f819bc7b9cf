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
    let bytes = answer.body().bytes().filter(|_| is_document);
    let text = bytes.as_ref().and_then(|bytes| std::str::from_utf8(bytes).ok());
    let Some(text) = text.filter(|text| text.contains(is_odd)) else { return answer };
    let mut written = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_odd(character) {
            true => written.push_str(&format!("&#x{:X};", u32::from(character))),
            false => written.push(character),
        }
    }
    let (mut head, _) = answer.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    Response::from_parts(head, Body::from(written))
}

/// Whether a character of a document does not stand for itself.
fn is_odd(character: char) -> bool {
    let is_control = character.is_ascii_control() && !"\t\n\u{7f}".contains(character);
    is_control || matches!(character, '\u{fffe}' | '\u{ffff}')
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
        let key = "<Key>a\r\u{1}\n\té\u{ffff}</Key>";
        let written = "<Key>a&#xD;&#x1;\n\té&#xFFFF;</Key>";
        assert_eq!(sent("application/xml", key), written.as_bytes());
        assert_eq!(sent("text/plain", key), key.as_bytes());
    }
}
