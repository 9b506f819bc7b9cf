//! The heartbeat of a long put: a file on the nodes that keeps other processes from removing what
//! the put has stored.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};

use crate::cleaning::Unfinished;
use crate::clock::{Since, now};
use crate::cluster::Cluster;
use crate::names;
use crate::node::{Mode, Node};

/// How often the heartbeat of a long put is renewed.
const HEARTBEAT: Duration = Duration::from_secs(3600);

/// How long a put goes on while its heartbeat cannot be renewed.
const PULSELESS: Duration = Duration::from_secs(12 * 3600);

/// The files of a put's heartbeat. They are removed when the put ends, or soon after it is given
/// up.
pub(crate) struct Heartbeat<'a> {
    cluster: &'a Cluster,
    pulse: Arc<Pulse>,
    path: String,
    unfinished: Unfinished,
}

impl<'a> Heartbeat<'a> {
    pub fn new(cluster: &'a Cluster, object: ObjectId, pulse: &Arc<Pulse>) -> Self {
        let path = names::mark(names::RUNNING, object);
        Self { cluster, pulse: Arc::clone(pulse), path, unfinished: Unfinished::begin() }
    }

    /// Runs `work` while the heartbeat is renewed, and then removes the files of the heartbeat.
    ///
    /// # Errors
    /// If the work fails, or if too few nodes have accepted the heartbeat for [`PULSELESS`].
    pub async fn hold<T>(self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let done = tokio::select! {
            biased;
            done = work => done,
            error = self.beat() => Err(error),
        };
        if let Some(removal) = self.removal() {
            removal.await;
            self.pulse.written.store(false, Ordering::Relaxed);
        }
        done
    }

    /// Renews the heartbeat. Returns an error when it is too old.
    async fn beat(&self) -> Error {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            if let Err(error) = self.pulse.expect() {
                return error;
            }
            self.pulse.written.store(true, Ordering::Relaxed);
            let write = async |node| {
                let text = format!("{}\n", now());
                let storage = self.cluster.writable(node).await?;
                storage.write(&self.path, text.into(), Mode::Replace).await
            };
            let written: Vec<Result<()>> = join_all(self.cluster.nodes().map(write)).await;
            if written.iter().flatten().count() >= self.cluster.quorum.to_read() {
                self.pulse.renew();
            }
        }
    }

    /// Returns the future that removes the files from all nodes that answer, if any may exist.
    fn removal(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let nodes = self.cluster.nodes().map(|node| Arc::clone(self.cluster.node(node)));
        let (nodes, path): (Vec<Arc<dyn Node>>, _) = (nodes.collect(), self.path.clone());
        self.pulse.written.load(Ordering::Relaxed).then_some(async move {
            join_all(nodes.iter().map(|node| node.delete(&path))).await;
        })
    }
}

impl Drop for Heartbeat<'_> {
    fn drop(&mut self) {
        if let Some(removal) = self.removal() {
            self.unfinished.remove(removal);
        }
    }
}

/// When the heartbeat of a put was last renewed.
pub(crate) struct Pulse {
    /// When it was last renewed, or the put began. Once that is [`PULSELESS`] ago, what the put
    /// stored may have been collected, so no manifest may be written any more.
    last: Mutex<Since>,
    /// Whether a file of it may be on a node.
    written: AtomicBool,
}

impl Pulse {
    /// Begins with a put that began at some moment.
    pub fn since(begun: Since) -> Self {
        Self { last: Mutex::new(begun), written: AtomicBool::new(false) }
    }

    fn renew(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Since::now();
    }

    /// Fails if the heartbeat is too old.
    pub fn expect(&self) -> Result<()> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match last.elapsed() < PULSELESS {
            true => Ok(()),
            false => {
                let message = "too few nodes took the heartbeat for 12 hours, or the machine was \
                               suspended for as long";
                Err(Error::new(ErrorKind::TooFewNodes, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use futures::StreamExt;
    use paritas_shards::Digest;

    use super::*;
    use crate::manifest::Piece;
    use crate::names::ObjectName;
    use crate::node::Endpoint;
    use crate::placement::Member;
    use crate::put::{PutJob, PutOptions};
    use crate::setup::Setup;
    use crate::volume::Volume;

    #[test]
    fn a_heartbeat_that_stood_still_while_the_machine_slept_is_void() {
        assert!(Pulse::since(Since::now()).expect().is_ok());
        let pulse = Pulse::since(Since::suspended_for(PULSELESS));
        assert_eq!(pulse.expect().unwrap_err().kind(), ErrorKind::TooFewNodes);
        pulse.renew();
        assert!(pulse.expect().is_ok());
    }

    /// A source that signals when it is read, and then blocks until the other end of its channel is
    /// dropped.
    struct Stalled(Arc<AtomicBool>, std::sync::mpsc::Receiver<()>);

    impl Read for Stalled {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            self.0.store(true, Ordering::Relaxed);
            let _ = self.1.recv();
            Ok(0)
        }
    }

    /// Lets other tasks run until `holds` returns true.
    async fn until(holds: impl AsyncFn() -> bool) {
        let begun = std::time::Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < Duration::from_secs(20));
            tokio::task::yield_now().await;
        }
    }

    /// Makes a volume over three nodes in memory, which are returned as well.
    async fn volume() -> (Volume, Vec<Arc<dyn Node>>) {
        let node = |number: usize| {
            let name = format!("n{number}");
            let node: Arc<dyn Node> = Arc::new(Endpoint::memory(&name).unwrap());
            (Member { domain: name.clone(), name, is_drained: false }, node)
        };
        let nodes: Vec<_> = (0..3).map(node).collect();
        let stores = nodes.iter().map(|(_, node)| Arc::clone(node)).collect();
        let code = paritas::Code::new(&"2+1".parse().unwrap()).unwrap();
        let volume = Volume::new(Setup::new("0".repeat(32), code, nodes)).unwrap();
        volume.mark_nodes().await.unwrap();
        (volume, stores)
    }

    /// Others may have given the upload up meanwhile.
    #[tokio::test]
    async fn a_completion_that_slept_for_half_a_day_writes_no_manifest() {
        let (volume, _) = volume().await;
        let name = ObjectName::new("object").unwrap();
        let piece = Piece { number: 1, length: 7, digest: Digest::new([7; 32]) };
        for (begun, is_late) in
            [(Since::suspended_for(PULSELESS), true), (Since::suspended_for(PULSELESS / 2), false)]
        {
            let options = PutOptions { begun: Some(begun), ..PutOptions::default() };
            let job = PutJob::new(&volume.cluster, &name, options).unwrap();
            let done = job.run_in_pieces("upload", vec![piece]).await;
            assert_eq!(done.is_err(), is_late);
            assert_eq!(volume.list("").await.unwrap().objects.is_empty(), is_late);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_put_that_is_given_up_removes_its_heartbeat() {
        let (volume, stores) = volume().await;
        let (line, end) = std::sync::mpsc::channel();
        let is_storing = Arc::new(AtomicBool::new(false));
        let stalled = Stalled(Arc::clone(&is_storing), end);
        let put = tokio::spawn(async move {
            let source = Cursor::new(vec![7; 10_000]).chain(stalled);
            volume.put(&ObjectName::new("object").unwrap(), source, PutOptions::default()).await
        });
        let heartbeats = async || {
            let beats = async |store: &Arc<dyn Node>| store.list(names::RUNNING).count().await;
            join_all(stores.iter().map(beats)).await.iter().sum::<usize>()
        };
        until(async || is_storing.load(Ordering::Relaxed)).await;
        assert_eq!(heartbeats().await, 0);
        tokio::time::advance(HEARTBEAT).await;
        until(async || heartbeats().await == 3).await;
        put.abort();
        until(async || heartbeats().await == 0).await;
        drop(line);
    }
}
