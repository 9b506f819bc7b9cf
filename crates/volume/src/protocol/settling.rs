//! Writing one manifest to the nodes that should have it.
//!
//! Whoever has an older version gets the new one, because only then is the older one deleted there
//! ([`View::superseded_on`]).

use std::collections::BTreeSet;

use crate::protocol::action::ask;
use crate::protocol::{Action, Event, Listed, NodeIndex, Request, View};

/// The writing of one manifest, until enough nodes have it or all were asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Settling {
    /// The nodes that may have it, the best first, if t + 1 are enough. Otherwise all nodes get it.
    few: Option<Vec<NodeIndex>>,
    /// The nodes that get it in any case, because their manifest is damaged.
    damaged: BTreeSet<NodeIndex>,
    asked: BTreeSet<NodeIndex>,
    /// The nodes that confirmed it. Some of them may answer no survey yet.
    confirmed: BTreeSet<NodeIndex>,
}

impl Settling {
    /// Writes to every node that is not drained.
    pub fn everywhere() -> Self {
        Self::new(None)
    }

    /// Writes to t + 1 nodes: first to all that have older versions, and then in this order.
    pub fn on_few(order: Vec<NodeIndex>) -> Self {
        Self::new(Some(order))
    }

    fn new(few: Option<Vec<NodeIndex>>) -> Self {
        let [damaged, asked, confirmed] = [const { BTreeSet::new() }; 3];
        Self { few, damaged, asked, confirmed }
    }

    /// Also writes to nodes whose manifest is damaged.
    pub fn replace(&mut self, damaged: &BTreeSet<NodeIndex>) {
        self.damaged.extend(damaged);
    }

    /// Returns the next writes. Returns an empty list once enough nodes have the manifest or all
    /// were asked.
    pub fn next(&mut self, view: &View, listed: Listed) -> Vec<Action> {
        let holders = view.holders(listed.version);
        let counts = |node: &NodeIndex| view.quorum().counts(*node);
        let may = |node: &NodeIndex| !holders.contains(node) && !self.asked.contains(node);
        let lacking = view.quorum().to_write().saturating_sub(view.counted(listed.version));
        let damaged = self.damaged.iter().copied().filter(may);
        let nodes: BTreeSet<NodeIndex> = match &self.few {
            Some(order) => {
                let behind = view.behind(listed.version).into_iter().filter(counts).filter(may);
                let behind: BTreeSet<NodeIndex> = behind.collect();
                let others = order.iter().copied().filter(may);
                let others = others.filter(|node| !behind.contains(node));
                let others = others.take(lacking.saturating_sub(behind.len()));
                damaged.chain(others).chain(behind.iter().copied()).collect()
            }
            None => damaged.chain(view.quorum().indices().filter(counts).filter(may)).collect(),
        };
        self.asked.extend(&nodes);
        ask(nodes, Request::WriteManifest(listed))
    }

    /// Takes in an answer.
    pub fn note(&mut self, event: &Event) {
        if let (Request::WriteManifest(_), true) = (event.action.request, event.is_done()) {
            self.confirmed.insert(event.action.node);
        }
    }

    /// Whether every node that should have the manifest has it.
    pub fn is_complete(&self, view: &View, listed: Listed) -> bool {
        let mut holders = view.holders(listed.version);
        holders.extend(&self.confirmed);
        let counted = holders.into_iter().filter(|&node| view.quorum().counts(node)).count();
        match self.few {
            Some(_) => counted >= view.quorum().to_write(),
            None => counted == view.quorum().serving(),
        }
    }
}
