//! The stages of a code: which parts each has, and how many losses it survives.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use paritas::{Code, NodeId};
use paritas_shards::{Part, likely_tolerance};
use paritas_store::error::{Error, Result};
use paritas_store::shown::counted;

/// Number of blocks of an LT code, in hundredths of k, that must be left. It bounds how many nodes
/// of an LT volume may be lost.
const LT_HUNDREDTHS: usize = 130;

/// Returns the parts of a code, by stage and then by shard.
pub(crate) fn parts_of(code: &Code) -> Vec<Part> {
    let has_any = |node: NodeId, stage: u8| {
        code.node_cells(node).iter().any(|&cell| code.cell(cell).stage == stage)
    };
    let of_stage = |stage| {
        let nodes = code.nodes().filter(move |&node| has_any(node, stage));
        nodes.map(move |node| Part { stage, shard: node.index() })
    };
    (1..=code.stages()).flat_map(of_stage).collect()
}

/// Returns the number of parts up to the end of each stage of a code.
pub(crate) fn stage_ends(code: &Code) -> Vec<usize> {
    let parts = parts_of(code);
    (1..=code.stages()).map(|stage| parts.partition_point(|part| part.stage <= stage)).collect()
}

/// Returns how many of `nodes` nodes may be lost, whichever they are, at the last stage of a code
/// whose shards are spread over `serving` of them. The result is at most `most`, if `most` is
/// given.
pub(crate) fn losses(code: &Code, most: Option<usize>, nodes: usize, serving: usize) -> usize {
    losses_at(code, code.stages(), nodes, serving).min(most.unwrap_or(usize::MAX))
}

/// Returns the same for any stage of a code.
pub(crate) fn losses_at(code: &Code, stage: u8, nodes: usize, serving: usize) -> usize {
    let most_on_one = code.node_count().div_ceil(serving.max(1));
    (shard_tolerance(code, stage) / most_on_one).min(nodes.saturating_sub(1))
}

/// Returns the number of nodes that a volume lets be lost: `stated`, or else the most that is
/// possible.
///
/// # Errors
/// If `stated` is more than is possible. If it were silently lowered, another code could raise it
/// again unnoticed.
pub(crate) fn allowed_losses(
    code: &Code,
    stated: Option<usize>,
    nodes: usize,
    serving: usize,
) -> Result<usize> {
    let most = losses(code, None, nodes, serving);
    match stated {
        Some(stated) if stated > most => Err(Error::parameters(format!(
            "`losses = {stated}`: with the code {} on {}, at most {} may be lost, whichever they \
             are; write `losses = {most}`, and never raise it again",
            code.spec(),
            counted(serving, "node"),
            counted(most, "node")
        ))),
        stated => Ok(stated.unwrap_or(most)),
    }
}

/// Returns how many shards may be lost in a stage of a code, whichever they are. For an LT code, it
/// is the largest number for which all tried losses are tolerable, but never so large that fewer
/// than [`LT_HUNDREDTHS`] hundredths of k blocks remain.
pub(crate) fn shard_tolerance(code: &Code, stage: u8) -> usize {
    let Some(graph) = code.graph() else { return code.tolerance_at(stage) };
    let enough = graph.data() * LT_HUNDREDTHS / 100;
    let most = graph.blocks().saturating_sub(enough) * code.node_count() / graph.blocks();
    most.min(tried_tolerance(code))
}

/// Returns the number that trying losses of an LT code gives. Each code is tried once in a process.
fn tried_tolerance(code: &Code) -> usize {
    static TRIED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    let tolerance = || likely_tolerance(code).unwrap_or(0);
    *tried.entry(code.spec().to_string()).or_insert_with(tolerance)
}

#[cfg(test)]
mod tests {
    use paritas::erasure::{Losses, combinations};

    use super::*;

    /// The number of nodes that may be lost must be right for each set of nodes, also for graphs of
    /// few blocks.
    #[test]
    fn what_lt_codes_tolerate_is_tried() {
        for (spec, tolerated) in [
            ("lt:k=4,n=8", 1),
            ("lt:k=16,n=32", 1),
            ("lt:k=64,n=128,nodes=8", 2),
            ("lt:k=256,n=512,nodes=8", 2),
        ] {
            let code = Code::new(&spec.parse().unwrap()).unwrap();
            let tolerance = shard_tolerance(&code, 1);
            assert_eq!(tolerance, tolerated, "{spec}");
            for lost in combinations(code.node_count(), tolerance) {
                let lost: Vec<NodeId> = lost.into_iter().map(NodeId::new).collect();
                assert!(Losses::of_nodes(&code, &lost).is_solvable(), "{spec}: {lost:?}");
            }
        }
    }

    #[test]
    fn no_more_losses_are_stated_than_are_possible() {
        let code = Code::new(&"4+2".parse().unwrap()).unwrap();
        for (stated, nodes, serving, allowed) in
            [(None, 6, 6, 2), (Some(2), 6, 6, 2), (Some(0), 6, 6, 0), (Some(1), 6, 5, 1)]
        {
            assert_eq!(allowed_losses(&code, stated, nodes, serving).unwrap(), allowed);
        }
        for (stated, serving, most) in [(3, 6, "2 nodes"), (2, 5, "1 node"), (1, 2, "0 nodes")] {
            let refused = allowed_losses(&code, Some(stated), 6, serving).unwrap_err().to_string();
            assert!(refused.contains(&format!("`losses = {stated}`")), "{refused}");
            assert!(refused.contains(&format!("at most {most} may be lost")), "{refused}");
        }
    }
}
