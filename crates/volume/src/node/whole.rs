//! A writer of a short file: it keeps the bytes, and writes the file with one request when it is
//! finished. On a folder that takes one thread one time, on a service one round trip, where a
//! writer that sends bytes as it gets them takes several.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use paritas_store::error::Result;

use super::{Mode, Node, Writer};

/// Largest number of bytes that a writer keeps.
pub(crate) const MOST_KEPT: usize = 1 << 20;

/// A file whose bytes are kept until it is finished. They are copied, because the caller may wait
/// until its memory comes back before it writes more. If there are more than [`MOST_KEPT`], they go
/// to the node's own writer.
pub(crate) struct WholeWriter {
    node: Arc<dyn Node>,
    path: String,
    kept: BytesMut,
    writer: Option<Box<dyn Writer>>,
}

impl WholeWriter {
    /// Begins a file. The node is not asked for anything yet.
    pub fn new(node: Arc<dyn Node>, path: String) -> Self {
        Self { node, path, kept: BytesMut::new(), writer: None }
    }
}

#[async_trait]
impl Writer for WholeWriter {
    async fn write(&mut self, pieces: Vec<Bytes>) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            return writer.write(pieces).await;
        }
        pieces.iter().for_each(|piece| self.kept.extend_from_slice(piece));
        if self.kept.len() <= MOST_KEPT {
            return Ok(());
        }
        let writer = self.writer.insert(self.node.writer(&self.path).await?);
        writer.write(vec![self.kept.split().freeze()]).await
    }

    async fn finish(self: Box<Self>) -> Result<()> {
        if let Some(writer) = self.writer {
            return writer.finish().await;
        }
        self.node.write(&self.path, self.kept.freeze(), Mode::Replace).await
    }

    async fn abort(self: Box<Self>) {
        if let Some(writer) = self.writer {
            writer.abort().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Counted, FolderNode};

    async fn written(pieces: &[usize]) -> (usize, Vec<u8>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let node = Counted::of(Arc::new(FolderNode::new("n", folder.path(), true)));
        let counters = Arc::clone(node.meter());
        let mut writer = Box::new(WholeWriter::new(Arc::new(node), "a/b".to_owned()));
        for (at, bytes) in (0u8..).zip(pieces) {
            writer.write(vec![Bytes::from(vec![at; *bytes])]).await.unwrap();
        }
        let before = usize::from(folder.path().join("a").exists());
        writer.finish().await.unwrap();
        let calls = counters.take().values().map(|tally| tally.calls).sum();
        (before, std::fs::read(folder.path().join("a/b")).unwrap(), calls)
    }

    #[tokio::test]
    async fn a_short_file_takes_one_call_and_a_long_one_is_written_nevertheless() {
        let (before, content, calls) = written(&[3, 0, 2]).await;
        assert_eq!((before, content, calls), (0, vec![0, 0, 0, 2, 2], 1));
        let (_, content, calls) = written(&[MOST_KEPT, 1, 1]).await;
        assert_eq!((content.len(), &content[MOST_KEPT..]), (MOST_KEPT + 2, &[1, 2][..]));
        // The writer, two pieces, and the end.
        assert_eq!(calls, 4);
    }

    #[tokio::test]
    async fn the_memory_of_the_caller_is_not_held() {
        let folder = tempfile::tempdir().unwrap();
        let node = Arc::new(FolderNode::new("n", folder.path(), true));
        let mut writer = WholeWriter::new(node, "a".to_owned());
        let piece = Bytes::from(vec![1; 1000]);
        writer.write(vec![piece.clone(), piece.slice(..500)]).await.unwrap();
        assert!(piece.is_unique());
    }

    #[tokio::test]
    async fn what_is_given_up_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let node = Arc::new(FolderNode::new("n", folder.path(), true));
        let mut writer = Box::new(WholeWriter::new(node, "a".to_owned()));
        writer.write(vec![Bytes::from_static(b"x")]).await.unwrap();
        writer.abort().await;
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
