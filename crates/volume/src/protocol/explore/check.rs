//! What must be true in every state.

use std::collections::BTreeSet;

use super::job::repair;
use super::world::{ENOUGH, Run, STAGES, World, WorldState};
use crate::protocol::{Listed, NodeIndex, PartIndex, RepairOutcome, VersionKind};

/// Returns the possible results of sure surveys that take no time: the greatest version on each set
/// of nodes that is large enough. Drained nodes answer, or have left the list already.
fn sure_views<'a>(
    world: &'a World,
    state: &'a WorldState,
) -> impl Iterator<Item = Option<Listed>> + 'a {
    // One node is silent: the empty one, or any.
    let empty = state.nodes.iter().position(|node| node.is_empty);
    let silent = empty.map_or(0..state.nodes.len(), |empty| empty..empty + 1);
    let lists = BTreeSet::from([world.quorum.nodes(), world.quorum.serving()]);
    lists.into_iter().flat_map(move |list| {
        silent.clone().map(move |silent| {
            let list = state.nodes.iter().take(list).enumerate();
            let answers = list.filter(move |(at, _)| *at != silent);
            answers.filter_map(|(_, node)| node.manifests.last()).max().copied()
        })
    })
}

/// Whether every sure reader sees the acknowledged version, or a greater one.
pub fn is_regular(world: &World, state: &WorldState) -> bool {
    sure_views(world, state).all(|seen| state.is_recent(seen, state.acked))
}

/// Whether every version that a sure reader may see can be decoded.
pub fn is_readable(world: &World, state: &WorldState) -> bool {
    let objects = sure_views(world, state).flatten().filter(|seen| seen.kind == VersionKind::Put);
    let objects = objects.map(|seen| seen.version.object).filter(|&id| !world.is_inline(id));
    objects.collect::<BTreeSet<_>>().into_iter().all(|object| {
        // As long as no node failed, one may yet.
        match state.faulty {
            Some(_) => state.parts(object) >= ENOUGH,
            None => (0..state.nodes.len()).all(|lost| state.parts_without(object, lost) >= ENOUGH),
        }
    })
}

/// Whether, when nothing is under way, one repair puts everything in order.
pub fn settles(world: &World, state: &WorldState) -> bool {
    let is_quiet = |run: &Run| matches!(run, Run::Waiting | Run::Crashed(_) | Run::Ended);
    if state.flaw.is_some() || !state.jobs.iter().all(|run| is_quiet(run)) {
        return true;
    }
    let mut after = state.clone();
    after.disks().for_each(|node| node.is_down = false);
    after.jobs.iter_mut().for_each(|run| *run = Run::Ended.into());
    let Some(latest) = state.latest() else { return true };
    if after.nodes.iter().any(|node| node.is_empty) {
        // It gets what the others have before it answers surveys itself.
        if repaired(world, &mut after).is_none() {
            return false;
        }
        after.disks().for_each(|node| node.is_empty = false);
    }
    repaired(world, &mut after) == Some(latest) && is_in_order(world, state, &after, latest)
}

/// Returns the version that a repair puts in order, if it comes to its end.
fn repaired(world: &World, state: &mut WorldState) -> Option<Listed> {
    let latest = state.latest();
    match repair(world, state)? {
        RepairOutcome::Repaired { listed, is_owed: false, .. } => Some(listed),
        RepairOutcome::Collected | RepairOutcome::Nothing => {
            latest.filter(|latest| latest.kind == VersionKind::Removed)
        }
        _ => None,
    }
}

/// Whether the nodes hold only the version that counts, with all files where they belong.
fn is_in_order(world: &World, before: &WorldState, after: &WorldState, latest: Listed) -> bool {
    let object = latest.version.object;
    let mut manifests = after.nodes.iter().map(|node| &node.manifests);
    let is_alone = manifests.clone().all(|on| on.iter().all(|listed| *listed == latest));
    let counted = manifests.by_ref().take(world.quorum.serving());
    let holders = counted.filter(|on| on.contains(&latest)).count();
    let is_small = world.is_inline(object);
    let is_settled = match latest.kind {
        VersionKind::Removed if holders == 0 => true,
        VersionKind::Removed => holders >= world.quorum.to_write(),
        _ if is_small => holders >= world.quorum.to_write(),
        _ => holders == world.quorum.serving(),
    };
    let known: BTreeSet<_> = before.nodes.iter().flat_map(|node| &node.manifests).collect();
    let is_older = |of| known.iter().any(|listed| listed.version.object == of && of != object);
    let mut parts = after.nodes.iter().flat_map(|node| &node.parts);
    let is_clean = !parts.any(|(of, _)| is_older(*of));
    let is_whole =
        latest.kind == VersionKind::Removed || is_small || is_at_home(world, after, object);
    is_alone && is_settled && is_clean && is_whole
}

/// Whether each part of the object is on its home and nowhere else.
fn is_at_home(world: &World, state: &WorldState, object: paritas_shards::ObjectId) -> bool {
    let count = STAGES.into_iter().find(|&end| state.parts(object) <= end).unwrap_or(0);
    let homes = world.spread().homes;
    let is_right = |part: usize, node: usize| {
        let is_there = state.nodes[node].parts.contains(&(object, PartIndex(part)));
        is_there == (part < count && homes[part] == NodeIndex(node))
    };
    (0..STAGES[1]).all(|part| (0..state.nodes.len()).all(|node| is_right(part, node)))
}
