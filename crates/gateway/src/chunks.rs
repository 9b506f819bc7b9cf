//! The framing of bodies that come `aws-chunked`: pieces, each after its length, then an empty
//! piece and the headers that follow the body.
//!
//! ```text
//! 5\r\n                                    length in hexadecimal digits; `;chunk-signature=…` may
//! hello\r\n                                follow
//! 0\r\n
//! x-amz-checksum-crc32:NhCmhg==\r\n
//! \r\n
//! ```
//!
//! The adapter removes the framing of requests whose headers are signed, and checks the signatures
//! in it. It accepts a body without the empty piece, so such bodies are read here as well.

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The most bytes of a line.
const LONGEST_LINE: usize = 8 << 10;
/// The most headers after a body.
const MOST_TRAILERS: usize = 100;

/// A body is not framed as it should be.
#[derive(Debug, PartialEq, Eq)]
pub struct BadFraming;

/// What comes next.
#[derive(Debug, Default)]
enum NextChunk {
    #[default]
    Length,
    /// So many bytes of a piece.
    Content(u64),
    /// The end of the line after a piece.
    PieceEnd,
    /// Headers, until the body ends.
    Trailers,
}

/// Reads the framing of a body as it comes.
#[derive(Debug, Default)]
pub struct ChunkReader {
    expected: NextChunk,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    trailers: HeaderMap,
}

impl ChunkReader {
    /// Takes the next bytes of a body, and returns the content in them.
    ///
    /// # Errors
    /// If the bytes do not go on as a framed body does.
    pub fn take(&mut self, bytes: Bytes) -> Result<Vec<Bytes>, BadFraming> {
        let (mut bytes, mut content) = (bytes, Vec::new());
        while !bytes.is_empty() {
            if let NextChunk::Content(left) = &mut self.expected {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                content.push(bytes.split_to(length));
                *left -= length as u64;
                if *left == 0 {
                    self.expected = NextChunk::PieceEnd;
                }
            } else if let Some(line) = self.next_line(&mut bytes)? {
                self.read(&line)?;
            }
        }
        Ok(content)
    }

    /// Returns the headers after the body, which has come to its end.
    ///
    /// # Errors
    /// If the empty piece is missing.
    pub fn end(&mut self) -> Result<HeaderMap, BadFraming> {
        let line = std::mem::take(&mut self.line);
        match self.expected {
            NextChunk::Trailers => self.read(&line)?,
            _ => return Err(BadFraming),
        }
        Ok(std::mem::take(&mut self.trailers))
    }

    /// Takes a line, without its end, or its beginning if it does not end in these bytes.
    fn next_line(&mut self, bytes: &mut Bytes) -> Result<Option<Vec<u8>>, BadFraming> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let length = end.unwrap_or(bytes.len());
        if self.line.len() + length > LONGEST_LINE {
            return Err(BadFraming);
        }
        self.line.extend_from_slice(&bytes.split_to(length));
        if end.is_none() {
            return Ok(None);
        }
        bytes.advance(1);
        let mut line = std::mem::take(&mut self.line);
        line.pop_if(|byte| *byte == b'\r');
        Ok(Some(line))
    }

    fn read(&mut self, line: &[u8]) -> Result<(), BadFraming> {
        self.expected = match self.expected {
            NextChunk::Length => match length_in(line).ok_or(BadFraming)? {
                0 => NextChunk::Trailers,
                length => NextChunk::Content(length),
            },
            NextChunk::PieceEnd if line.is_empty() => NextChunk::Length,
            NextChunk::Trailers => {
                self.note_trailer(line)?;
                NextChunk::Trailers
            }
            _ => return Err(BadFraming),
        };
        Ok(())
    }

    fn note_trailer(&mut self, line: &[u8]) -> Result<(), BadFraming> {
        if line.is_empty() {
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':').ok_or(BadFraming)?;
        let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| BadFraming)?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        self.trailers.append(name, value.map_err(|_| BadFraming)?);
        match self.trailers.len() > MOST_TRAILERS {
            true => Err(BadFraming),
            false => Ok(()),
        }
    }
}

/// Returns the length in the line before a piece.
fn length_in(line: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(line).ok()?.split(';').next()?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body that comes in pieces of `step` bytes.
    fn read(body: &str, step: usize) -> Result<(String, HeaderMap), BadFraming> {
        let (mut reader, mut content) = (ChunkReader::default(), Vec::new());
        for bytes in body.as_bytes().chunks(step) {
            for piece in reader.take(Bytes::copy_from_slice(bytes))? {
                content.extend_from_slice(&piece);
            }
        }
        Ok((String::from_utf8(content).unwrap(), reader.end()?))
    }

    #[test]
    fn framed_bodies_are_read_wherever_they_are_cut() {
        let signed = format!(
            "A;chunk-signature={}\r\n0123456789\r\n0;chunk-signature=0\r\n",
            "a".repeat(64)
        );
        let trailer = "5\r\nhello\r\n6\r\n world\r\n0\r\nX-Amz-Checksum-Crc32: NhCmhg==\r\n\r\n";
        for step in 1..80 {
            assert_eq!(read(&signed, step).unwrap().0, "0123456789");
            let (content, trailers) = read(trailer, step).unwrap();
            assert_eq!(content, "hello world");
            assert_eq!(trailers["x-amz-checksum-crc32"], "NhCmhg==");
            assert_eq!(read("0\r\n\r\n", step), Ok((String::new(), HeaderMap::new())));
        }
    }

    #[test]
    fn other_bodies_are_refused() {
        let long = format!("{}\r\n", "0".repeat(LONGEST_LINE + 1));
        let many = format!("0\r\n{}", "a: b\r\n".repeat(MOST_TRAILERS + 1));
        for body in [
            "",
            "hello",
            "5\r\nhello\r\n",
            "5\r\nhell",
            "5\r\nhelloo\r\n0\r\n\r\n",
            "\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "fffffffffffffffff\r\n",
            "0\r\nno colon\r\n",
            &long,
            &many,
        ] {
            assert_eq!(read(body, 7).err(), Some(BadFraming), "{body}");
        }
    }
}
