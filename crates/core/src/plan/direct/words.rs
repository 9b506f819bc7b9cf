//! Direct answers in the word layout, over bytes.

use std::sync::OnceLock;

use crate::define::cells::{CellSet, NodeId};
use crate::define::code::Code;
use crate::define::logarithms::product;
use crate::define::points::CodePoints;
use crate::define::symbols::SymbolMatrix;
use crate::plan::direct::sums::{Sums, Terms};
use crate::plan::program::CellLocation;

/// Bits of a word.
const BYTE: usize = 8;

/// Whether a code has words of one byte over the usual field, and the cells of node n are the eight
/// from 8·n on.
pub(super) fn are_bytes(code: &Code) -> bool {
    let is_byte = |node: NodeId| {
        let numbers = code.node_cells(node).iter().map(|cell| cell.index());
        numbers.eq(node.index() * BYTE..(node.index() + 1) * BYTE)
    };
    code.symbols().is_some_and(|symbols| symbols.field().has_logarithms())
        && code.node_count() <= 1 << BYTE
        && code.nodes().all(is_byte)
}

/// As [`DirectSolver::solve`](super::DirectSolver::solve).
pub(super) fn solve(
    code: &Code,
    points: &OnceLock<Option<CodePoints>>,
    have: &CellSet,
    want: &CellSet,
) -> Option<Sums> {
    let symbols = code.symbols()?;
    let data = symbols.data_nodes();
    let (mut from, to) = (whole_nodes(have)?, whole_nodes(want)?);
    if to.is_empty() || have.meets(want) {
        return None;
    }
    let is_solved = from.iter().take_while(|&&node| usize::from(node) < data).count() < data;
    let (from, factors) = if !is_solved {
        from.truncate(data);
        defined(symbols, from, &to)?
    } else if let Some(points) = points.get_or_init(|| CodePoints::of(symbols)) {
        from.truncate(data);
        let factors = (from.len() == data).then(|| points.factors(&from, &to))?;
        (from, factors)
    } else {
        combine(code, &from, &to)?
    };
    let places = |nodes: Vec<u8>| {
        nodes.into_iter().map(|node| CellLocation { buffer: node.into(), row: 0 }).collect()
    };
    Some(Sums {
        inputs: places(from),
        outputs: places(to),
        terms: Terms::Words(factors),
        is_solved,
    })
}

/// Returns those of the data nodes `data`, which are all, that parity nodes depend on, and the
/// factors of the definition.
fn defined(symbols: &SymbolMatrix, data: Vec<u8>, to: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let first = symbols.data_nodes();
    let rows: Vec<&[u32]> =
        to.iter().map(|&node| &symbols.parity()[usize::from(node) - first][..]).collect();
    let is_used = |&node: &u8| rows.iter().any(|row| row[usize::from(node)] != 0);
    let read: Vec<u8> = data.into_iter().filter(is_used).collect();
    let factors = rows.iter().flat_map(|row| read.iter().map(|&node| row[usize::from(node)] as u8));
    let factors = factors.collect();
    (!read.is_empty()).then_some((read, factors))
}

/// Solves the equations of a code without points. Returns the nodes that are read, and the factors.
fn combine(code: &Code, from: &[u8], to: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let ids = |nodes: &[u8]| -> Vec<NodeId> {
        nodes.iter().map(|&node| NodeId::new(node.into())).collect()
    };
    let combination = code.combination(&ids(from), &ids(to)).ok()?;
    let read: Vec<u8> = combination.inputs().iter().map(|node| node.index() as u8).collect();
    let factors = combination.rows().into_iter().flatten().map(|factor| factor as u8).collect();
    (!read.is_empty()).then_some((read, factors))
}

/// Returns the nodes whose cells a set consists of; `None` if it has part of a node. Each node is a
/// byte of the set. Which nodes are there is as good as random, so nothing branches on it.
fn whole_nodes(cells: &CellSet) -> Option<Vec<u8>> {
    let mut whole = vec![0; cells.words().len() * BYTE];
    let (mut count, mut is_whole) = (0, true);
    for (number, word) in cells.words().iter().enumerate() {
        for (place, byte) in word.to_le_bytes().into_iter().enumerate() {
            whole[count] = (number * BYTE + place) as u8;
            count += usize::from(byte == u8::MAX);
            is_whole &= byte == u8::MAX || byte == 0;
        }
    }
    whole.truncate(count);
    is_whole.then_some(whole)
}

/// Returns random data, and its parity by the definition.
pub(super) fn sample(code: &Code, random: impl FnMut() -> Vec<u8>) -> Vec<Vec<u8>> {
    let Some(symbols) = code.symbols() else { return Vec::new() };
    let mut shards: Vec<Vec<u8>> =
        std::iter::repeat_with(random).take(symbols.data_nodes()).collect();
    for row in symbols.parity() {
        let mut parity = vec![0; shards.first().map_or(0, Vec::len)];
        for (&factor, shard) in row.iter().zip(&shards) {
            let bytes = parity.iter_mut().zip(shard);
            bytes.for_each(|(sum, &byte)| *sum ^= product(factor as u8, byte));
        }
        shards.push(parity);
    }
    shards
}
