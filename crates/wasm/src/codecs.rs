//! Codecs, by number.

use std::collections::BTreeMap;

use paritas::{Code, Codec, CodecOptions, NodeId};
use serde::Serialize;
use serde_json::{Value, json};

use crate::message::Message;
use crate::refusal::{Refusal, Result};

/// The open codecs.
#[derive(Default)]
pub struct Codecs {
    open: BTreeMap<u32, OpenCodec>,
    next: u32,
}

impl Codecs {
    /// Opens a codec, and describes it.
    pub(crate) fn open(&mut self, code: Code, packet: Option<usize>) -> Result<CodecFacts> {
        if code.graph().is_some() {
            let spec = code.spec();
            let message =
                format!("{spec}: an LT code has no codec here; describe, plan and survey know it");
            return Err(Refusal::request(message));
        }
        let options = CodecOptions::default();
        let options = packet.map_or(options.clone(), |packet| options.packet(packet));
        let codec = OpenCodec(Codec::with_options(code, options)?);
        let facts = codec.facts(self.next);
        self.open.insert(self.next, codec);
        self.next += 1;
        Ok(facts)
    }

    /// Drops a codec.
    pub(crate) fn close(&mut self, number: u32) -> Value {
        json!({ "closed": self.open.remove(&number).is_some() })
    }

    /// Returns an open codec.
    ///
    /// # Errors
    /// If it is not open.
    pub(crate) fn get(&self, number: u32) -> Result<&OpenCodec> {
        self.open.get(&number).ok_or_else(|| Refusal::request("the codec is closed"))
    }
}

/// Facts about a codec.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodecFacts {
    codec: u32,
    spec: String,
    kernel: &'static str,
    nodes: usize,
    data_nodes: Vec<usize>,
    /// Number of nodes that may be lost, whichever they are.
    tolerance: usize,
    /// The length of a data shard must be a multiple of this.
    unit: usize,
    packet: usize,
}

/// A codec.
pub(crate) struct OpenCodec(Codec);

impl OpenCodec {
    fn facts(&self, codec: u32) -> CodecFacts {
        let code = self.0.code();
        let data_nodes = code.nodes().filter(|&node| code.holds_data(node));
        CodecFacts {
            codec,
            spec: code.spec().to_string(),
            kernel: self.0.kernel_name(),
            nodes: code.node_count(),
            data_nodes: data_nodes.map(|node| node.index()).collect(),
            tolerance: code.tolerance(),
            unit: self.0.shard_unit(),
            packet: self.0.packet(),
        }
    }

    /// Cuts an object into data shards.
    pub(crate) fn split(&self, objects: &[&[u8]]) -> Result<Message<'static>> {
        let [object] = objects else {
            let count = objects.len();
            return Err(Refusal::request(format!("one object is split at a time; got {count}")));
        };
        Ok(Message::of_shards(self.0.split(object)?.into_iter().map(Some).collect()))
    }

    /// Joins an object from its data shards.
    pub(crate) fn join(&self, shards: &[Option<&[u8]>], bytes: usize) -> Result<Message<'static>> {
        Ok(Message::of_shards(vec![Some(self.0.join(&owned(shards), bytes)?)]))
    }

    /// Computes parity. If nodes hold both data and parity, both `shards` and the answer have the
    /// shards of all nodes. Otherwise `shards` are the data shards, and the answer has the parity
    /// shards.
    pub(crate) fn encode(&self, shards: &[&[u8]]) -> Result<Message<'static>> {
        let code = self.0.code();
        code.expect_encoded_whole()?;
        let standing = code.nodes_at(1);
        if code.graph().is_none() && standing.iter().all(|&node| code.holds_data(node)) {
            let mut nodes: Vec<Vec<u8>> = shards.iter().map(|shard| shard.to_vec()).collect();
            let mut slices: Vec<&mut [u8]> = nodes.iter_mut().map(Vec::as_mut_slice).collect();
            self.0.encode_nodes(&mut slices)?;
            return Ok(Message::of_shards(nodes.into_iter().map(Some).collect()));
        }
        let (data, parity): (Vec<NodeId>, Vec<NodeId>) =
            standing.into_iter().partition(|&node| code.holds_data(node));
        let packet = match (data.first(), shards.first()) {
            (Some(&node), Some(shard)) => shard.len() / self.rows(node),
            _ => 0,
        };
        let room = |&node: &NodeId| vec![0; packet * self.rows(node)];
        let mut made: Vec<Vec<u8>> = parity.iter().map(room).collect();
        self.0.encode(shards, &mut made)?;
        Ok(Message::of_shards(made.into_iter().map(Some).collect()))
    }

    /// Computes the shards that are absent. The answer has these shards.
    pub(crate) fn reconstruct(&self, shards: &[Option<&[u8]>]) -> Result<Message<'static>> {
        let mut all = owned(shards);
        self.0.reconstruct(&mut all)?;
        for (shard, given) in all.iter_mut().zip(shards) {
            *shard = shard.take().filter(|_| given.is_none());
        }
        Ok(Message::of_shards(all))
    }

    /// Names the nodes whose parity differs from the data.
    pub(crate) fn verify(&self, shards: &[&[u8]]) -> Result<Value> {
        let wrong = self.0.verify(shards)?;
        Ok(json!({ "wrong": wrong.into_iter().map(|node| node.index()).collect::<Vec<_>>() }))
    }

    /// Rows of a node's shard after the first stage: its packets in a strip, or 1 in words.
    fn rows(&self, node: NodeId) -> usize {
        let code = self.0.code();
        match code.symbols() {
            Some(_) => 1,
            None => {
                let cells = code.node_cells(node).iter();
                cells.filter(|&&cell| code.cell(cell).stage == 1).count().max(1)
            }
        }
    }
}

fn owned(shards: &[Option<&[u8]>]) -> Vec<Option<Vec<u8>>> {
    shards.iter().map(|shard| shard.map(<[u8]>::to_vec)).collect()
}
