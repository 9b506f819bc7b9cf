//! Puts and removals that expect something of a name.

use std::io::{Cursor, Read};
use std::sync::mpsc;

use futures::future::{join, join_all};

use crate::common::{Disks, content, get, name, put};
use paritas_volume::{ErrorKind, Expected, GetOptions, PutOptions};

/// A source whose bytes come when they may.
struct LateSource(Option<mpsc::Receiver<()>>, Cursor<Vec<u8>>);

impl Read for LateSource {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.take().into_iter().for_each(|told| told.recv().unwrap());
        self.1.read(buffer)
    }
}

#[tokio::test]
async fn what_a_put_expects_must_be_there_when_it_is_numbered() {
    let disks = Disks::new(6);
    let volume = disks.volume("4+2").await;
    let object = name("object");
    for length in [50, 100_000] {
        let (tell, told) = mpsc::channel();
        let late = LateSource(Some(told), Cursor::new(content(length)));
        let mut options = PutOptions::default();
        options.expected = Expected::Nothing;
        let other = async {
            let report = put(&volume, "object", b"other").await;
            tell.send(()).unwrap();
            report
        };
        let (late, other) = join(volume.put(&object, late, options), other).await;
        let error = late.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
        assert!(get(&volume, "object").await.unwrap() == b"other");
        assert_eq!(disks.files("objects").len(), 0, "what was sent is discarded");
        let found = other.listed.version;
        put(&volume, "object", b"newer").await;
        let replaced = Expected::Version(found);
        let error = volume.remove_if(&object, replaced).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        let newer = volume.find(&object, GetOptions::default()).await.unwrap().listed().version;
        volume.remove_if(&object, Expected::Version(newer)).await.unwrap();
    }
    // Of several at once through one volume, one finds nothing.
    let put_new = async |number: u8| {
        let mut options = PutOptions::default();
        options.expected = Expected::Nothing;
        volume.put(&object, Cursor::new(vec![number; 50]), options).await.map(|_| number)
    };
    let done = join_all((0..8).map(put_new)).await;
    let won: Vec<u8> = done.into_iter().filter_map(Result::ok).collect();
    assert_eq!(won.len(), 1, "{won:?}");
    assert!(get(&volume, "object").await.unwrap() == [won[0]; 50]);
}
