//! Objects as shards, and shards that may be missing: what most callers have.

use crate::codec::Codec;
use crate::codec::cache::Question;
use crate::define::cells::{NodeId, Role};
use crate::error::{Error, Result};
use crate::limits::VERIFIED_BYTES;
use crate::run::buffers::Buffer;

impl Codec {
    /// Returns the bytes of each data shard of an object of `object` bytes, which is what
    /// [`Codec::split`] makes: a share for each, rounded up to whole rows or words. A shard of
    /// parity is as long, except in codes whose parity nodes have more rows than their data nodes.
    pub fn shard_len(&self, object: usize) -> usize {
        let data = self.code().nodes_at(1).into_iter().filter(|&node| self.code().holds_data(node));
        let (nodes, unit) =
            data.fold((0, 1), |(nodes, unit), node| (nodes + 1, unit.max(self.unit(node))));
        let share = object.div_ceil(nodes.max(1));
        share.checked_next_multiple_of(unit).unwrap_or(usize::MAX)
    }

    /// Cuts an object into data shards, one after the other. The last ones are filled up with zeros, which
    /// [`Codec::join`] removes.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Parameters`] if nodes hold data and parity, or blocks of an LT code.
    pub fn split(&self, object: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (data, length) = (self.data_nodes()?.len(), self.shard_len(object.len()));
        let shard = |number: usize| {
            let start = (number * length).min(object.len());
            let mut shard = object[start..object.len().min(start + length)].to_vec();
            shard.resize(length, 0);
            shard
        };
        Ok((0..data).map(shard).collect())
    }

    /// Puts an object of `object` bytes together from its data shards. `shards` are those of all nodes in
    /// node order; parity is not looked at, and may be left out at the end.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if a data shard is missing (see [`Codec::reconstruct`]);
    /// [`crate::ErrorKind::Length`] if one is not as long as [`Codec::shard_len`] says.
    pub fn join(&self, shards: &[Option<Vec<u8>>], object: usize) -> Result<Vec<u8>> {
        let length = self.shard_len(object);
        let shard = |node: &NodeId| {
            let index = node.index();
            let shard = shards.get(index).and_then(Option::as_deref).ok_or_else(|| {
                Error::not_enough(format!("data shard {index} is missing; reconstruct it first"))
            })?;
            let given = shard.len();
            match given == length {
                true => Ok(shard),
                false => Err(Error::length(format!(
                    "shard {index} of an object of {object} bytes must have {length} bytes; got {given}"
                ))),
            }
        };
        let data: Vec<&[u8]> = self.data_nodes()?.iter().map(shard).collect::<Result<_>>()?;
        let mut joined = data.concat();
        joined.truncate(object);
        Ok(joined)
    }

    /// Makes the shards that are `None` from the others, all stages being done. If that fails, all
    /// stay as they are.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NotEnough`] if too many are missing; [`crate::ErrorKind::Length`] if there are not
    /// as many shards as nodes, or if they are not equally long.
    pub fn reconstruct(&self, shards: &mut [Option<Vec<u8>>]) -> Result<()> {
        self.expect_count("node", shards.len(), self.code().node_count())?;
        let (present, lost): (Vec<NodeId>, Vec<NodeId>) =
            self.code().nodes().partition(|node| shards[node.index()].is_some());
        if lost.is_empty() {
            return Ok(());
        }
        let reconstructor = self.reconstructor(&present, &lost)?;
        let sources: Vec<&[u8]> = shards.iter().flatten().map(Vec::as_slice).collect();
        let row = match (present.first(), sources.first()) {
            (Some(&node), Some(shard)) => shard.len() / self.rows(node),
            _ => 0,
        };
        let mut made: Vec<Vec<u8>> =
            lost.iter().map(|&node| vec![0; row * self.rows(node)]).collect();
        reconstructor.run(&sources, &mut made)?;
        for (node, shard) in lost.into_iter().zip(made) {
            shards[node.index()] = Some(shard);
        }
        Ok(())
    }

    /// Computes all parity anew from the data, and returns the nodes whose parity is another than
    /// `shards` have, all stages being done. `shards` are those of all nodes. What is wrong may be the
    /// data as well: if so, most parity disagrees.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Length`] if there are not as many shards as nodes, or if they are not equally long.
    pub fn verify<S: AsRef<[u8]>>(&self, shards: &[S]) -> Result<Vec<NodeId>> {
        let code = self.code();
        self.expect_count("node", shards.len(), code.node_count())?;
        let shards: Vec<&[u8]> = shards.iter().map(AsRef::as_ref).collect();
        let row = self.expect_equal_rows(&shards)?;
        let parity = code.stored(Role::Parity);
        let question = Question::compute(&code.stored(Role::Data), &parity);
        let has_parity =
            |node: NodeId| code.node_cells(node).iter().any(|&cell| parity.contains(cell));
        let mut disagree = vec![false; shards.len()];
        let layout = &self.engine.layout;
        let rows = layout.rows.iter().max().map_or(1, |&rows| rows);
        let step = (VERIFIED_BYTES / (rows * layout.packet)).max(1) * layout.packet;
        for start in (0..row).step_by(step) {
            let end = row.min(start + step);
            let part = |node: NodeId| {
                &shards[node.index()][start * self.rows(node)..end * self.rows(node)]
            };
            let mut made: Vec<(NodeId, Vec<u8>)> = code
                .nodes()
                .filter(|&node| has_parity(node))
                .map(|node| (node, part(node).to_vec()))
                .collect();
            let sources = code.nodes().filter(|&node| !has_parity(node));
            let sources = sources.map(|node| (node.index(), Buffer::Source(part(node))));
            let targets = made.iter_mut().map(|(node, made)| (node.index(), Buffer::Target(made)));
            self.engine.answer(&question, sources.chain(targets))?;
            for (node, made) in made {
                disagree[node.index()] |= made != part(node);
            }
        }
        Ok(code.nodes().filter(|node| disagree[node.index()]).collect())
    }

    /// The nodes with data, in a code in which these have no parity.
    fn data_nodes(&self) -> Result<&[NodeId]> {
        if self.code().graph().is_some() {
            let spec = self.code().spec();
            return Err(Error::parameters(format!(
                "{spec} is an LT code, whose blocks are made by LtEncoder"
            )));
        }
        Ok(self.encoding.shards.split(self.code())?.0)
    }

    /// The rows of a node's shard: its packets a strip, or in the word layout 1.
    fn rows(&self, node: NodeId) -> usize {
        self.engine.layout.rows[node.index()]
    }

    /// What the bytes of a node's shard are a multiple of.
    fn unit(&self, node: NodeId) -> usize {
        match self.code().symbols() {
            Some(_) => self.strip(),
            None => self.rows(node),
        }
    }

    /// The bytes of a row, if all shards are equally long for each of theirs.
    fn expect_equal_rows(&self, shards: &[&[u8]]) -> Result<usize> {
        let first = shards.first().map_or(0, |shard| shard.len());
        let row = first / self.rows(NodeId::new(0));
        let wrong = |(node, shard): &(NodeId, &&[u8])| shard.len() != row * self.rows(*node);
        match self.code().nodes().zip(shards).find(wrong) {
            None => Ok(row),
            Some((node, shard)) => {
                let (index, needed, given) = (node.index(), row * self.rows(node), shard.len());
                Err(Error::length(format!("shard {index} must have {needed} bytes; got {given}")))
            }
        }
    }
}
