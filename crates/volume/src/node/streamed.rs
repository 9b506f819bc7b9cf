//! A file that is sent to a WebDAV server while it is written: one PUT, whose body comes through a
//! channel. OpenDAL sends bodies only when they are complete.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use opendal::Buffer;
use opendal::raw::{build_rooted_abs_path, normalize_root, percent_encode_path};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::contact::Contact;
use super::redact::Secret;

/// Largest number of pieces, of up to 64 KiB each, that wait to be sent. Their memory belongs to
/// the caller.
const WAITING: usize = 64;

/// A server that takes bodies of unknown length.
pub(super) struct Puts {
    pub client: reqwest::Client,
    pub endpoint: String,
    pub root: String,
    pub user: Option<Secret>,
    pub password: Option<Secret>,
    /// Gets a sign of life when bytes are sent.
    pub contact: Arc<Contact>,
}

impl Puts {
    /// Begins to send a file, whose folder exists.
    pub fn begin(&self, path: &str) -> StreamedPut {
        let root = normalize_root(&self.root);
        let path = percent_encode_path(&build_rooted_abs_path(&root, path));
        let url = format!("{}{path}", self.endpoint.trim_end_matches('/'));
        let (line, pieces) = channel(WAITING);
        let request = self.client.put(url).body(body(pieces));
        let request = match &self.user {
            Some(user) => {
                request.basic_auth(user.reveal(), self.password.as_ref().map(Secret::reveal))
            }
            None => request,
        };
        let answer = tokio::spawn(async move {
            let sent = request.send().await.map_err(|error| not_sent(error.without_url()))?;
            judge(sent.status())
        });
        StreamedPut { line, answer, contact: Arc::clone(&self.contact) }
    }
}

/// An item in the channel to a body.
enum BodyItem {
    Piece(Bytes),
    /// The end of the file. If the channel closes without it, the writer has given up.
    End,
}

fn body(pieces: Receiver<BodyItem>) -> reqwest::Body {
    reqwest::Body::wrap_stream(stream::unfold(pieces, async |mut pieces| {
        match pieces.recv().await {
            Some(BodyItem::Piece(piece)) => Some((Ok(piece), pieces)),
            Some(BodyItem::End) => None,
            None => Some((Err(io::Error::other("the writer has given up")), pieces)),
        }
    }))
}

/// A file that is being sent. If it is dropped, the request is cancelled.
pub(super) struct StreamedPut {
    line: Sender<BodyItem>,
    answer: JoinHandle<opendal::Result<()>>,
    contact: Arc<Contact>,
}

impl StreamedPut {
    /// Hands over bytes. Waits while too many bytes wait to be sent.
    ///
    /// # Errors
    /// If the server has answered already, or cannot be reached.
    pub async fn write(&mut self, content: Buffer) -> opendal::Result<()> {
        for piece in content {
            for piece in self.contact.signs(piece) {
                self.push(BodyItem::Piece(piece)).await?;
            }
        }
        Ok(())
    }

    /// Ends the file, and waits until the server has it.
    ///
    /// # Errors
    /// If the server refuses it, or cannot be reached.
    pub async fn close(&mut self) -> opendal::Result<()> {
        self.push(BodyItem::End).await?;
        self.answer().await
    }

    async fn push(&mut self, item: BodyItem) -> opendal::Result<()> {
        if self.line.send(item).await.is_ok() {
            return Ok(());
        }
        // The body is no longer read.
        self.answer().await?;
        Err(failure("the server has answered before it had the whole file"))
    }

    async fn answer(&mut self) -> opendal::Result<()> {
        let ended = (&mut self.answer).await;
        ended.map_err(|error| failure("sending").set_source(error))?
    }
}

impl Drop for StreamedPut {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

/// Converts a server's answer to a file into a result.
fn judge(status: StatusCode) -> opendal::Result<()> {
    use opendal::ErrorKind as Reason;
    let (kind, message) = match status {
        _ if status.is_success() => return Ok(()),
        StatusCode::UNAUTHORIZED => {
            (Reason::PermissionDenied, "the server does not accept the user and password".into())
        }
        StatusCode::FORBIDDEN => (Reason::PermissionDenied, format!("the server answers {status}")),
        _ => (Reason::Unexpected, format!("the server answers {status}")),
    };
    Err(opendal::Error::new(kind, message))
}

fn not_sent(error: reqwest::Error) -> opendal::Error {
    failure("sending the file").set_source(error)
}

fn failure(message: &'static str) -> opendal::Error {
    opendal::Error::new(opendal::ErrorKind::Unexpected, message)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    const END: &[u8] = b"0\r\n\r\n";

    /// Starts a server for one connection, and a PUT to it.
    fn put_to(serve: impl FnOnce(TcpStream) + Send + 'static) -> StreamedPut {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || serve(listener.accept().unwrap().0));
        let client = crate::node::service::http_client();
        let (root, contact) = ("/below".to_owned(), Contact::unlimited("n"));
        Puts { client, endpoint, root, user: None, password: None, contact }.begin("a file")
    }

    /// Reads until `end` has come, or the connection has ended.
    fn read_to(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
        let mut got = Vec::new();
        let mut byte = [0];
        while !got.ends_with(end) && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            got.push(byte[0]);
        }
        got
    }

    fn answer(stream: &mut TcpStream, status: &str) {
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
    }

    #[tokio::test]
    async fn bytes_are_sent_before_the_file_is_complete() {
        let (line, first) = mpsc::channel();
        let mut put = put_to(move |mut stream| {
            let head = read_to(&mut stream, b"first");
            line.send(String::from_utf8(head).unwrap()).unwrap();
            assert!(read_to(&mut stream, END).windows(6).any(|bytes| bytes == b"second"));
            answer(&mut stream, "201 Created");
        });
        put.write(Buffer::from("first")).await.unwrap();
        let head = tokio::task::spawn_blocking(move || first.recv().unwrap()).await.unwrap();
        assert!(head.starts_with("PUT /below/a%20file HTTP/1.1\r\n"), "{head}");
        put.write(Buffer::from("second")).await.unwrap();
        put.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_given_up_has_no_end() {
        let (line, all) = mpsc::channel();
        let mut put = put_to(move |mut stream| {
            read_to(&mut stream, b"first");
            line.send(Vec::new()).unwrap();
            line.send(read_to(&mut stream, END)).unwrap();
        });
        put.write(Buffer::from("first")).await.unwrap();
        tokio::task::spawn_blocking(move || {
            all.recv().unwrap();
            drop(put);
            assert!(!all.recv().unwrap().ends_with(END));
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn what_a_server_refuses_is_told() {
        for (status, kind, shown) in [
            ("401 Unauthorized", opendal::ErrorKind::PermissionDenied, "user and password"),
            ("403 Forbidden", opendal::ErrorKind::PermissionDenied, "403"),
            ("507 Insufficient Storage", opendal::ErrorKind::Unexpected, "507"),
        ] {
            let mut put = put_to(move |mut stream| {
                read_to(&mut stream, END);
                answer(&mut stream, status);
            });
            put.write(Buffer::from("bytes")).await.unwrap();
            let error = put.close().await.unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(shown), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told() {
        let mut put = put_to(drop);
        let mut result = Ok(());
        while result.is_ok() {
            result = put.write(Buffer::from("bytes")).await;
        }
        assert_eq!(result.unwrap_err().kind(), opendal::ErrorKind::Unexpected);
    }
}
