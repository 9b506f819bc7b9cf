//! Direct answers in the word layout, over bytes.

use crate::define::cells::{CellSet, NodeId};
use crate::define::code::Code;
use crate::define::field::Multiples;
use crate::define::made::FirstMade;
use crate::define::points::CodePoints;
use crate::define::symbols::SymbolMatrix;
use crate::limits::TRANSFORM_WEIGHT;
use crate::plan::direct::sums::{PlannedAfter, Sums, Terms};
use crate::plan::machine::LINE;
use crate::plan::program::CellLocation;
use crate::plan::transform::solve;

/// Bits of a word.
const BYTE: usize = 8;

/// Whether a code has words of one byte over a field with tables, and the cells of node n are the
/// eight from 8·n on.
pub(super) fn are_bytes(code: &Code) -> bool {
    let is_byte = |node: NodeId| {
        let numbers = code.node_cells(node).iter().map(|cell| cell.index());
        numbers.eq(node.index() * BYTE..(node.index() + 1) * BYTE)
    };
    code.symbols().is_some_and(|symbols| symbols.field().logarithms().is_some())
        && code.node_count() <= 1 << BYTE
        && code.nodes().all(is_byte)
}

/// As [`DirectSolver::solve`](super::DirectSolver::solve).
pub(super) fn answer(
    code: &Code,
    points: &FirstMade<Option<CodePoints>>,
    have: &CellSet,
    want: &CellSet,
) -> Option<Sums> {
    let symbols = code.symbols()?;
    let data = symbols.data_nodes();
    let (mut from, to) = (whole_nodes(have)?, whole_nodes(want)?);
    if to.is_empty() || have.meets(want) {
        return None;
    }
    let encodes = from.iter().take_while(|&&node| usize::from(node) < data).count() == data;
    if encodes || symbols.evaluation().is_some() {
        from.truncate(data);
    }
    if let Some(sums) = transformed(symbols, &from, &to, encodes) {
        return Some(sums);
    }
    let (from, factors) = if encodes {
        defined(symbols, from, &to)?
    } else if let Some(points) = points.get(|| CodePoints::of(symbols)) {
        from.truncate(data);
        let factors = (from.len() == data).then(|| points.factors(&from, &to))?;
        (from, factors)
    } else {
        combine(code, &from, &to)?
    };
    let terms = Terms::Words { field: symbols.field(), factors };
    let planned = match encodes && symbols.evaluation().is_some() {
        true => PlannedAfter::network(),
        false => PlannedAfter::operands(terms.operands()),
    };
    let (inputs, outputs) = (places(from), places(to));
    Some(Sums { inputs, outputs, terms, is_solved: !encodes, planned })
}

/// Answers by a transform, if the code has one that costs less than the products of all k nodes
/// `from` for each node of `to`.
fn transformed(symbols: &SymbolMatrix, from: &[u8], to: &[u8], encodes: bool) -> Option<Sums> {
    let (field, data) = (symbols.field(), symbols.data_nodes());
    let evaluation = symbols.evaluation().filter(|_| from.len() == data)?;
    // Each coefficient takes a product and a sum.
    let dense = 2 * data * to.len();
    let least = match encodes {
        true => 3 * evaluation.points(),
        false => solve::least_operations(evaluation, data, to.len()),
    };
    if dense <= TRANSFORM_WEIGHT * least {
        return None;
    }
    let rows = || to.iter().map(|&node| usize::from(node) - data).collect::<Vec<usize>>();
    let encoding = encodes.then(|| solve::encoding(field, evaluation, &rows())).flatten();
    let program = match encoding {
        Some(program) => program,
        None => solve::recovery(field, evaluation, from, to)?,
    };
    if TRANSFORM_WEIGHT * program.operations() >= dense {
        return None;
    }
    let planned = match encodes {
        true => PlannedAfter::network(),
        false => PlannedAfter::Never,
    };
    let (inputs, outputs) = (places(from.to_vec()), places(to.to_vec()));
    Some(Sums { inputs, outputs, terms: Terms::Transform(program), is_solved: true, planned })
}

fn places(nodes: Vec<u8>) -> Vec<CellLocation> {
    nodes.into_iter().map(|node| CellLocation { buffer: node.into(), row: 0 }).collect()
}

/// Returns the data nodes on which the parity nodes `to` depend, and the factors of the definition.
/// `data` are all data nodes.
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

/// Returns the nodes whose cells a set consists of; `None` if it has only part of some node. Each
/// node is a byte of the set. The loop does not branch on these bytes, because they are practically
/// random.
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

/// Number of random bytes of a node in a sample; they are repeated to the end of its strip. Each
/// byte misses an error with a chance of 1 in 256.
const SAMPLED: usize = 8;

/// Returns random data, and its parity by the definition.
pub(super) fn sample(code: &Code, mut random: impl FnMut() -> u64) -> Vec<Vec<u8>> {
    let Some(symbols) = code.symbols() else { return Vec::new() };
    let data: Vec<u64> = (0..symbols.data_nodes()).map(|_| random()).collect();
    // For each data node, its products with the elements that have a single bit.
    let bits: Vec<Multiples> =
        (0..BYTE).map(|bit| symbols.field().multiples_of(1 << bit)).collect();
    let products = |&word: &u64| -> [u64; BYTE] {
        std::array::from_fn(|bit| {
            let product = |byte: u8| bits[bit].of(byte.into()) as u8;
            u64::from_le_bytes(word.to_le_bytes().map(product))
        })
    };
    let products: Vec<[u64; BYTE]> = data.iter().map(products).collect();
    let parity = symbols.parity().iter().map(|row| {
        let terms = row.iter().zip(&products);
        terms.fold(0, |sum, (factor, products)| {
            let chosen = products.iter().enumerate();
            // All bits of a product, or zero.
            chosen.fold(sum, |sum, (bit, product)| {
                sum ^ product & u64::from(factor >> bit & 1).wrapping_neg()
            })
        })
    });
    let strip = |word: u64| word.to_le_bytes().repeat(LINE / SAMPLED);
    data.iter().copied().chain(parity).map(strip).collect()
}
