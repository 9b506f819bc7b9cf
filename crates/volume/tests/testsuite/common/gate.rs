//! Meters that hold back or refuse requests about certain files, to stop a client at a certain
//! step, or that make a node slow.

use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use paritas_volume::node::{Meter, Metered, Node, NodeCall};
use paritas_volume::{Error, ErrorKind, Result, Volume};
use tokio::sync::watch;

use super::Disks;

/// What happens to the requests that a gate stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Hold,
    Refuse,
}

/// Stops requests of one kind whose paths contain a text.
#[derive(Debug, Clone)]
pub struct Gate {
    rule: watch::Sender<Option<(Act, NodeCall, &'static str)>>,
    caught: watch::Sender<bool>,
}

impl Gate {
    /// Opens a volume with a gate, which lets everything pass, before these nodes.
    pub fn before(disks: &Disks, code: &str, nodes: impl RangeBounds<usize>) -> (Volume, Self) {
        let gate = Self { rule: watch::Sender::new(None), caught: watch::Sender::new(false) };
        let wrap = |disk: usize, inner: Arc<dyn Node>| -> Arc<dyn Node> {
            match nodes.contains(&disk) {
                true => Arc::new(Metered::new(inner, Arc::new(gate.clone()))),
                false => inner,
            }
        };
        (disks.open_with(code, &wrap), gate)
    }

    /// Holds back these requests until the gate is opened.
    pub fn hold(&self, call: NodeCall, path: &'static str) {
        self.caught.send_replace(false);
        self.rule.send_replace(Some((Act::Hold, call, path)));
    }

    /// Refuses these requests until the gate is opened.
    pub fn refuse(&self, call: NodeCall, path: &'static str) {
        self.rule.send_replace(Some((Act::Refuse, call, path)));
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.rule.send_replace(None);
    }

    /// Waits until a request is held back.
    pub async fn caught(&self) {
        self.caught.subscribe().wait_for(|caught| *caught).await.unwrap();
    }

    async fn pass(&self, call: NodeCall, path: &str) -> Result<()> {
        let mut rule = self.rule.subscribe();
        let act = |rule: &Option<(Act, NodeCall, &str)>| {
            rule.and_then(|(act, stopped, text)| {
                (stopped == call && path.contains(text)).then_some(act)
            })
        };
        let found = act(&rule.borrow());
        match found {
            Some(Act::Refuse) => return Err(Error::new(ErrorKind::Io, "the gate is shut")),
            Some(Act::Hold) => _ = self.caught.send_replace(true),
            None => return Ok(()),
        }
        rule.wait_for(|rule| act(rule).is_none()).await.map(drop).unwrap();
        Ok(())
    }
}

#[async_trait]
impl Meter for Gate {
    type Guard = ();

    async fn begin(&self, call: NodeCall, path: &str) -> Result<()> {
        self.pass(call, path).await
    }

    async fn carry(&self, _call: NodeCall, _bytes: u64) {}
}

/// Returns a node on which each request takes longer by `pause`.
pub fn slow(node: Arc<dyn Node>, pause: Duration) -> Arc<dyn Node> {
    Arc::new(Metered::new(node, Arc::new(Slowness(pause))))
}

#[derive(Debug)]
struct Slowness(Duration);

#[async_trait]
impl Meter for Slowness {
    type Guard = ();

    async fn begin(&self, _call: NodeCall, _path: &str) -> Result<()> {
        tokio::time::sleep(self.0).await;
        Ok(())
    }

    async fn carry(&self, _call: NodeCall, _bytes: u64) {}
}
