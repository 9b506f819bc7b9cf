//! The calls that most programs make: objects to shards and back, and shards that may be missing.

use crate::codec::Codec;
use crate::codec::question::Question;
use crate::define::cells::{CellId, NodeId, Role};
use crate::error::{Error, Result};
use crate::limits::VERIFIED_BYTES;
use crate::run::buffers::Buffer;

impl Codec {
    /// Returns the bytes of each data shard of an object of `object` bytes, as [`Codec::split`]
    /// produces them: an equal share of the object, rounded up to whole rows or words. A parity
    /// shard has the same length, except in codes whose parity nodes have more rows than their data
    /// nodes. In codes whose nodes hold data and parity, the shard has room for both: the rows with
    /// data of all shards hold the object.
    pub fn shard_len(&self, object: usize) -> usize {
        let data = self.code().nodes_at(1).into_iter().filter(|&node| self.code().holds_data(node));
        let (room, unit) = data.fold((0, 1), |(room, unit), node| {
            (room + self.data_unit(node), unit.max(self.unit(node)))
        });
        object.div_ceil(room.max(1)).saturating_mul(unit)
    }

    /// Cuts an object into data shards, one after the other. The last shards are padded with zeros,
    /// which [`Codec::join`] removes.
    ///
    /// # Errors
    /// If nodes hold both data and parity, or blocks of an LT code
    /// ([`crate::ErrorKind::Parameters`]).
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

    /// Joins an object of `object` bytes from its data shards. `shards` are those of all nodes in
    /// node order; parity shards are ignored, and may be left out at the end.
    ///
    /// # Errors
    /// If a data shard is missing ([`crate::ErrorKind::NotEnough`]; see [`Codec::reconstruct`]), if
    /// one does not have the length that [`Codec::shard_len`] gives ([`crate::ErrorKind::Length`]),
    /// if there are more shards than nodes ([`crate::ErrorKind::Buffers`]), or as [`Codec::split`].
    pub fn join<S: AsRef<[u8]>>(&self, shards: &[Option<S>], object: usize) -> Result<Vec<u8>> {
        let mut joined = self.shards_to_join(shards, object)?.concat();
        joined.truncate(object);
        Ok(joined)
    }

    /// Joins an object from its data shards in the caller's memory, which must have the object's
    /// length. On failure, the memory is left unchanged.
    ///
    /// # Errors
    /// As [`Codec::join`].
    pub fn join_into<S: AsRef<[u8]>>(&self, shards: &[Option<S>], object: &mut [u8]) -> Result<()> {
        let shards = self.shards_to_join(shards, object.len())?;
        let mut rest = object;
        for shard in shards {
            let (piece, after) = rest.split_at_mut(rest.len().min(shard.len()));
            piece.copy_from_slice(&shard[..piece.len()]);
            rest = after;
        }
        Ok(())
    }

    /// Returns the data shards of an object of `object` bytes, if all have their length.
    fn shards_to_join<'a, S: AsRef<[u8]>>(
        &self,
        shards: &'a [Option<S>],
        object: usize,
    ) -> Result<Vec<&'a [u8]>> {
        let (length, nodes) = (self.shard_len(object), self.code().node_count());
        if shards.len() > nodes {
            self.expect_count("node", shards.len(), nodes)?;
        }
        let shard = |node: &NodeId| {
            let index = node.index();
            let shard = shards.get(index).and_then(Option::as_ref).ok_or_else(|| {
                let message = format!("data shard {index} is missing; reconstruct it first");
                Error::not_enough(message).at(index)
            })?;
            let shard = shard.as_ref();
            match shard.len() == length {
                true => Ok(shard),
                false => Err(wrong_length(index, length, shard.len())),
            }
        };
        self.data_nodes()?.iter().map(shard).collect()
    }

    /// Computes the shards that are `None` from the others, after all stages of the code. On
    /// failure, `shards` are left unchanged.
    ///
    /// # Errors
    /// If too many shards are missing ([`crate::ErrorKind::NotEnough`]); if `shards` does not have
    /// one entry for each node ([`crate::ErrorKind::Buffers`]); or if the shards are not equally
    /// long ([`crate::ErrorKind::Length`]).
    pub fn reconstruct(&self, shards: &mut [Option<Vec<u8>>]) -> Result<()> {
        let is_lost = |node: &NodeId| shards.get(node.index()).is_some_and(Option::is_none);
        let lost: Vec<NodeId> = self.code().nodes().filter(is_lost).collect();
        self.reconstruct_some(shards, &lost)
    }

    /// Computes the missing shards (`None`) of the nodes `wanted` from the shards at hand. All
    /// other entries stay as they are. A reader who wants one shard pays for one, however many are
    /// missing. On failure, `shards` are left unchanged.
    ///
    /// ```
    /// let codec = paritas::Codec::new(4, 2)?;
    /// let data = codec.split(&[7; 4800])?;
    /// let mut parity = vec![vec![0; 1200]; 2];
    /// codec.encode(&data, &mut parity)?;
    /// let mut shards: Vec<Option<Vec<u8>>> = data.into_iter().chain(parity).map(Some).collect();
    /// shards[1..3].fill(None);
    /// codec.reconstruct_some(&mut shards, &[1])?;
    /// assert_eq!((shards[1].as_deref(), &shards[2]), (Some(&[7; 1200][..]), &None));
    /// # Ok::<(), paritas::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Codec::reconstruct`]; also if a node of `wanted` does not exist
    /// ([`crate::ErrorKind::Parameters`]).
    pub fn reconstruct_some<N: Into<NodeId> + Copy>(
        &self,
        shards: &mut [Option<Vec<u8>>],
        wanted: &[N],
    ) -> Result<()> {
        self.expect_count("node", shards.len(), self.code().node_count())?;
        let row = self.expect_equal_present(shards)?;
        let mut lost: Vec<NodeId> = wanted.iter().map(|&node| node.into()).collect();
        lost.iter().try_for_each(|&node| self.expect_node(node))?;
        lost.retain(|node| shards[node.index()].is_none());
        lost.sort_unstable();
        lost.dedup();
        if lost.is_empty() {
            return Ok(());
        }
        let is_present = |node: &NodeId| shards[node.index()].is_some();
        let present: Vec<NodeId> = self.code().nodes().filter(is_present).collect();
        let reconstructor = self.reconstructor(&present, &lost)?;
        let sources: Vec<&[u8]> = shards.iter().flatten().map(Vec::as_slice).collect();
        let mut made: Vec<Vec<u8>> =
            lost.iter().map(|&node| vec![0; row * self.rows(node)]).collect();
        reconstructor.run(&sources, &mut made)?;
        for (node, shard) in lost.into_iter().zip(made) {
            shards[node.index()] = Some(shard);
        }
        Ok(())
    }

    /// Recomputes all parity from the data, and returns the nodes whose parity in `shards` differs
    /// from it. `shards` are those of all nodes, after all stages of the code. If most parity
    /// differs, the fault probably lies in the data.
    ///
    /// # Errors
    /// If `shards` does not have one shard for each node ([`crate::ErrorKind::Buffers`]), or if the
    /// shards are not equally long ([`crate::ErrorKind::Length`]); or if they are blocks of an LT
    /// code ([`crate::ErrorKind::Parameters`]).
    pub fn verify<S: AsRef<[u8]>>(&self, shards: &[S]) -> Result<Vec<NodeId>> {
        let code = self.code();
        self.expect_data()?;
        self.expect_count("node", shards.len(), code.node_count())?;
        let shards: Vec<&[u8]> = shards.iter().map(AsRef::as_ref).collect();
        let row = self.expect_equal_rows(&shards)?;
        let parity = code.stored(Role::Parity);
        let question = Question::compute(&code.stored(Role::Data), &parity);
        let has_parity =
            |node: NodeId| code.node_cells(node).iter().any(|&cell| parity.contains(cell));
        let mut disagree = vec![false; shards.len()];
        let layout = &self.engine.setup.layout;
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

    /// Returns the nodes with data; an error if a node holds both data and parity.
    fn data_nodes(&self) -> Result<&[NodeId]> {
        self.expect_data()?;
        Ok(self.encoding.shards.split(self.code())?.0)
    }

    /// Rows of a node's shard: its packets in a strip, or 1 in the word layout.
    fn rows(&self, node: NodeId) -> usize {
        self.engine.setup.layout.rows[node.index()]
    }

    /// Unit of the length of a node's shard, in bytes.
    fn unit(&self, node: NodeId) -> usize {
        match self.code().symbols() {
            Some(_) => self.strip(),
            None => self.rows(node),
        }
    }

    /// Bytes of data in a unit of a node's shard.
    fn data_unit(&self, node: NodeId) -> usize {
        let code = self.code();
        let is_data = |&&cell: &&CellId| code.cell(cell).role == Role::Data;
        match code.symbols() {
            Some(_) => self.strip(),
            None => code.node_cells(node).iter().filter(is_data).count(),
        }
    }

    /// Returns the bytes of a row, if all rows of all shards have the same number of bytes.
    fn expect_equal_rows(&self, shards: &[&[u8]]) -> Result<usize> {
        let nodes = self.code().nodes();
        self.expect_equal(nodes.zip(shards.iter().map(|shard| shard.len())))
    }

    /// Returns the bytes of a row, if all rows of all shards that are not missing have the same
    /// number of bytes.
    fn expect_equal_present(&self, shards: &[Option<Vec<u8>>]) -> Result<usize> {
        let lengths = self.code().nodes().zip(shards);
        self.expect_equal(lengths.filter_map(|(node, shard)| Some((node, shard.as_ref()?.len()))))
    }

    /// Returns the bytes of a row, if all rows of the nodes have the same number of bytes. Each
    /// node comes with the length of its shard.
    fn expect_equal(&self, lengths: impl Iterator<Item = (NodeId, usize)>) -> Result<usize> {
        let mut lengths = lengths.peekable();
        let Some(&(node, first)) = lengths.peek() else { return Ok(0) };
        let rows = self.rows(node);
        let row = first / rows;
        if !first.is_multiple_of(rows) {
            let spec = self.code().spec();
            let message =
                format!("{spec}: a shard's length must be a multiple of {rows} bytes; got {first}");
            return Err(Error::length(message).at(node.index()).given_instead(first));
        }
        let wanted = |node: NodeId| row.saturating_mul(self.rows(node));
        match lengths.find(|&(node, length)| length != wanted(node)) {
            None => Ok(row),
            Some((node, length)) => Err(wrong_length(node.index(), wanted(node), length)),
        }
    }
}

fn wrong_length(shard: usize, expected: usize, given: usize) -> Error {
    let message = format!("shard {shard} must have {expected} bytes; got {given}");
    Error::length(message).at(shard).expecting(expected).given_instead(given)
}
