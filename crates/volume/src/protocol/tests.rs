//! Single histories of the machines, which the exploration does not check by name.

use std::cell::Cell;
use std::collections::BTreeSet;

use paritas_shards::ObjectId;

use super::*;

const NODES: usize = 5;

fn quorum() -> Quorum {
    Quorum::new(NODES, 1).unwrap()
}

fn spread(parts: usize) -> Spread {
    let homes = (0..parts).map(NodeIndex).collect();
    let substitutes = [4, 3, 2, 1, 0].map(NodeIndex).to_vec();
    Spread { homes, substitutes, domains: (0..NODES).collect() }
}

fn object() -> ObjectId {
    ObjectId::new([7; 16])
}

fn listed() -> Listed {
    let version = Version { generation: 3, object: object() };
    Listed { version, kind: VersionKind::Put, length: 9 }
}

/// Returns the answer of a node that carries out every request and has no files.
fn obliging(request: Request) -> Answer {
    match request {
        Request::ListVersions => Answer::Versions(Vec::new()),
        Request::FindParts(_) => Answer::Parts(Vec::new()),
        Request::StorePart { .. } => Answer::Stored { length: 9 },
        _ => Answer::Done,
    }
}

/// Runs a procedure to its end with answers from `answer`. Returns its outcome and what was asked.
fn run<P: Procedure<Outcome: Clone>>(
    procedure: P,
    answer: impl Fn(usize, Request) -> Option<Answer>,
) -> (P::Outcome, Vec<(usize, Request)>) {
    let mut machine = RunningMachine::new(procedure);
    let mut asked = Vec::new();
    let mut waiting = machine.start();
    while let Some(action) = waiting.pop() {
        let node = action.node.0;
        asked.push((node, action.request));
        let answer = answer(node, action.request).unwrap_or_else(|| obliging(action.request));
        waiting.extend(machine.handle(&Event { action, answer }));
    }
    (machine.outcome().cloned().expect("the machine ends when all is answered"), asked)
}

/// Returns the nodes that were asked for something, in this order.
fn nodes_of(asked: &[(usize, Request)], is: impl Fn(Request) -> bool) -> Vec<usize> {
    let mut nodes: Vec<usize> =
        asked.iter().filter(|(_, request)| is(*request)).map(|(node, _)| *node).collect();
    nodes.sort_unstable();
    nodes
}

fn stores(asked: &[(usize, Request)], wanted: usize) -> Vec<usize> {
    let part = PartIndex(wanted);
    nodes_of(asked, |request| request == Request::StorePart { object: object(), part })
}

fn writes(asked: &[(usize, Request)]) -> Vec<usize> {
    nodes_of(asked, |request| matches!(request, Request::WriteManifest(_)))
}

fn put(needed: usize) -> Put {
    put_asking(needed, true)
}

fn put_asking(needed: usize, asks_first: bool) -> Put {
    let parts = NewParts::Shards { spread: spread(3), needed, asks_first };
    Put::new(quorum(), object(), parts).at_time(100)
}

/// A put may have stored parts for days before it surveys.
#[test]
fn a_version_is_numbered_by_the_time_of_its_survey() {
    let parts = NewParts::Inline { length: 1, order: quorum().indices().collect() };
    let mut machine = RunningMachine::new(Put::new(quorum(), object(), parts));
    let mut actions = machine.start();
    machine.note_time(500);
    while machine.procedure().listed().is_none() {
        let answer =
            |action: &Action| Event { action: *action, answer: Answer::Versions(Vec::new()) };
        actions = actions.iter().flat_map(|action| machine.handle(&answer(action))).collect();
    }
    assert_eq!(machine.procedure().listed().unwrap().version.generation, 500);
}

fn fails_to_store(node: usize, request: Request) -> Option<Answer> {
    let fails = node == 1 && matches!(request, Request::StorePart { .. });
    fails.then_some(Answer::Failed)
}

#[test]
fn a_part_whose_home_fails_goes_to_the_emptiest_substitute() {
    let (outcome, asked) = run(put(3), fails_to_store);
    assert_eq!((stores(&asked, 0), stores(&asked, 1)), (vec![0], vec![1, 4]));
    let PutOutcome::Committed { listed, is_owed: true } = outcome else { panic!("{outcome:?}") };
    assert_eq!((listed.length, listed.version.generation), (9, 100));
    assert_eq!(writes(&asked), [0, 1, 2, 3, 4]);
}

#[test]
fn a_part_goes_to_spare_nodes_and_is_owed_if_none_takes_it() {
    let (outcome, asked) = run(put(2), fails_to_store);
    assert_eq!(stores(&asked, 1), [1, 4]);
    assert!(matches!(outcome, PutOutcome::Committed { is_owed: true, .. }), "{outcome:?}");
    // Nodes 0 and 2 have a part each; a second one there would be lost with the first.
    let fail = |node, request| {
        let fails = [1, 3, 4].contains(&node) && matches!(request, Request::StorePart { .. });
        fails.then_some(Answer::Failed)
    };
    let (outcome, asked) = run(put(2), fail);
    assert_eq!(stores(&asked, 1), [1, 3, 4]);
    assert!(matches!(outcome, PutOutcome::Committed { is_owed: true, .. }), "{outcome:?}");
    // If all parts must be durable, one of them takes it nevertheless.
    let (outcome, asked) = run(put(3), fail);
    assert_eq!(stores(&asked, 1), [1, 2, 3, 4]);
    assert!(matches!(outcome, PutOutcome::Committed { is_owed: true, .. }), "{outcome:?}");
}

#[test]
fn substitutes_are_in_the_emptiest_failure_domain() {
    let spread = Spread { domains: vec![0, 0, 1, 1, 0], ..spread(4) };
    let part = PartIndex(0);
    let places: PartPlaces = [(1, 1), (2, 2), (3, 3)]
        .map(|(part, node)| (PartIndex(part), NodeIndex(node)))
        .into_iter()
        .collect();
    let failed = BTreeSet::from([NodeIndex(0)]);
    assert_eq!(spread.choose([part], &failed, &places), [(part, NodeIndex(4))]);
    assert_eq!(spread.choose_spare([part], &failed, &places), [(part, NodeIndex(4))]);
    // Node 4 in the domain of nodes 2 and 3 would make three of four parts depend on it.
    let spread = Spread { domains: vec![0, 0, 1, 1, 1], ..spread };
    assert_eq!(spread.choose_spare([part], &failed, &places), []);
    assert_eq!(spread.choose([part], &failed, &places), [(part, NodeIndex(1))]);
}

#[test]
fn what_cannot_be_stored_leaves_nothing() {
    let full = |_, request| matches!(request, Request::StorePart { .. }).then_some(Answer::Failed);
    let (outcome, asked) = run(put(3), full);
    assert_eq!(outcome, PutOutcome::Refused { answered: 5, stored: 0 });
    let deletions = nodes_of(&asked, |request| request == Request::DeleteObject(object()));
    assert_eq!(deletions, [0, 1, 2, 3, 4]);
    assert_eq!(writes(&asked), [0; 0]);
}

#[test]
fn a_put_of_few_bytes_asks_for_versions_once() {
    let (outcome, asked) = run(put_asking(3, false), |_, _| None);
    assert!(matches!(outcome, PutOutcome::Committed { is_owed: false, .. }), "{outcome:?}");
    assert!(matches!(asked[0].1, Request::StorePart { .. }));
    let surveys = |asked: &[_]| nodes_of(asked, |request| request == Request::ListVersions).len();
    assert_eq!(surveys(&asked), NODES);
    // If no node takes parts, it asks how many nodes there are.
    let fail = |_, request| matches!(request, Request::StorePart { .. }).then_some(Answer::Failed);
    let (outcome, asked) = run(put_asking(2, false), fail);
    assert_eq!(outcome, PutOutcome::Refused { answered: NODES, stored: 0 });
    let deleted = nodes_of(&asked, |request| matches!(request, Request::DeleteObject(_)));
    assert_eq!((surveys(&asked), deleted, writes(&asked)), (NODES, vec![0, 1, 2, 3, 4], vec![]));
    let silent = |node, _| (node > 0).then_some(Answer::Failed);
    let (outcome, _) = run(put_asking(2, false), silent);
    assert!(matches!(outcome, PutOutcome::Refused { answered: 1, .. }), "{outcome:?}");
}

#[test]
fn a_small_object_goes_to_two_nodes_and_to_others_if_one_fails() {
    let order = [3, 1, 0, 2, 4].map(NodeIndex).to_vec();
    let small =
        || Put::new(quorum(), object(), NewParts::Inline { length: 1, order: order.clone() });
    let (_, asked) = run(small(), |_, _| None);
    assert_eq!(writes(&asked), [1, 3]);
    let is_full = |node, request| {
        (node == 1 && matches!(request, Request::WriteManifest(_))).then_some(Answer::Failed)
    };
    let (outcome, asked) = run(small(), is_full);
    assert_eq!(writes(&asked), [0, 1, 3]);
    assert!(matches!(outcome, PutOutcome::Committed { is_owed: false, .. }), "{outcome:?}");
}

/// Returns the answers of nodes that all have the manifest. Part 1 is on nodes 1 and 4, part 2 on
/// node 3, away from its home. `has` says what else is different.
fn stored(node: usize, request: Request) -> Option<Answer> {
    let parts: &[usize] = [&[0][..], &[1], &[], &[2], &[1]][node];
    match request {
        Request::ListVersions => Some(Answer::Versions(vec![listed()])),
        Request::ReadManifest(_) => {
            Some(Answer::Manifest(Shape::Shards { spread: spread(3), stages: vec![3] }))
        }
        Request::FindParts(_) => {
            Some(Answer::Parts(parts.iter().copied().map(PartIndex).collect()))
        }
        _ => None,
    }
}

#[test]
fn parts_move_home_and_surplus_copies_go() {
    let (outcome, asked) = run(Repair::new(quorum(), 0), stored);
    let repaired =
        RepairOutcome::Repaired { listed: listed(), stored: 1, stage: 1, is_owed: false };
    assert_eq!(outcome, repaired);
    assert_eq!((stores(&asked, 1), stores(&asked, 2)), (vec![], vec![2]));
    let checks = nodes_of(&asked, |request| matches!(request, Request::CheckPart { .. }));
    assert_eq!(checks, [1], "part 2 was just written");
    let deletions = nodes_of(&asked, |request| matches!(request, Request::DeletePart { .. }));
    assert_eq!(deletions, [3, 4]);
}

#[test]
fn a_surplus_copy_stays_if_the_one_at_home_is_damaged() {
    let damaged = |node, request| match request {
        Request::CheckPart { .. } => Some(Answer::Failed),
        _ => stored(node, request),
    };
    let (outcome, asked) = run(Repair::new(quorum(), 0), damaged);
    assert!(matches!(outcome, RepairOutcome::Repaired { is_owed: true, .. }), "{outcome:?}");
    let deletions = nodes_of(&asked, |request| matches!(request, Request::DeletePart { .. }));
    assert_eq!(deletions, [3]);
}

#[test]
fn damaged_manifests_are_written_anew() {
    let damaged = |node, request| match request {
        Request::ReadManifest(_) if node < 2 => Some(Answer::Failed),
        _ => stored(node, request),
    };
    let (_, asked) = run(Repair::new(quorum(), 0), damaged);
    assert_eq!(writes(&asked), [0, 1]);
    // Only one that is asked for is known to be damaged, unless all are read.
    let late = |node, request| match request {
        Request::ReadManifest(_) if node > 2 => Some(Answer::Failed),
        _ => stored(node, request),
    };
    assert_eq!(writes(&run(Repair::new(quorum(), 0), late).1), [0; 0]);
    let (outcome, asked) = run(Repair::new(quorum(), 0).reading_all(), late);
    assert_eq!(writes(&asked), [3, 4]);
    assert!(matches!(outcome, RepairOutcome::Repaired { is_owed: false, .. }), "{outcome:?}");
    // So is that of a small object, although enough other nodes have it.
    let small = |node, request| match request {
        Request::ReadManifest(_) if node < 4 => {
            Some(Answer::Manifest(Shape::Inline { order: vec![NodeIndex(0), NodeIndex(1)] }))
        }
        _ => late(node, request),
    };
    assert_eq!(writes(&run(Repair::new(quorum(), 0).reading_all(), small).1), [4]);
    // A manifest that cannot be written anew is owed.
    let full = |node, request| match request {
        Request::WriteManifest(_) => Some(Answer::Failed),
        _ => late(node, request),
    };
    let (outcome, _) = run(Repair::new(quorum(), 0).reading_all(), full);
    assert!(matches!(outcome, RepairOutcome::Repaired { is_owed: true, .. }), "{outcome:?}");
    let unreadable = |node, request| match request {
        Request::ReadManifest(_) => Some(Answer::Failed),
        _ => stored(node, request),
    };
    let (outcome, asked) = run(Repair::new(quorum(), 0), unreadable);
    assert_eq!(outcome, RepairOutcome::Unreadable(listed()));
    assert_eq!(writes(&asked), [0; 0]);
}

#[test]
fn too_few_parts_remove_nothing() {
    let older = Listed { version: Version { generation: 2, ..listed().version }, ..listed() };
    let lost = |node, request| match request {
        Request::ListVersions => Some(Answer::Versions(vec![older, listed()])),
        Request::StorePart { .. } => Some(Answer::Impossible),
        _ => stored(node, request),
    };
    let (outcome, asked) = run(Repair::new(quorum(), 0), lost);
    assert_eq!(outcome, RepairOutcome::TooFewParts(listed()));
    let is_deletion =
        |request| matches!(request, Request::DeleteOlder(_) | Request::DeleteManifest(_));
    assert_eq!(nodes_of(&asked, is_deletion), [0; 0]);
}

/// Another repair moves parts: what was found is not there any more, but somewhere else.
#[test]
fn parts_that_move_are_not_lost() {
    let listings = Cell::new(0);
    let moving = |node, request| match request {
        Request::FindParts(_) => {
            listings.set(listings.get() + 1);
            let is_moved = node == 2 && listings.get() > NODES;
            match is_moved {
                true => Some(Answer::Parts(vec![PartIndex(0)])),
                false => stored(node, request),
            }
        }
        Request::StorePart { .. } => Some(Answer::Impossible),
        _ => stored(node, request),
    };
    let (outcome, asked) = run(Repair::new(quorum(), 0), moving);
    assert_eq!(outcome, RepairOutcome::Superseded);
    assert_eq!(nodes_of(&asked, |it| matches!(it, Request::FindParts(_))).len(), 2 * NODES);
}

#[test]
fn slow_nodes_may_be_given_up_when_enough_answered() {
    let mut machine = RunningMachine::new(Get::new(quorum()));
    let actions = machine.start();
    for (answered, &action) in actions.iter().enumerate() {
        assert_eq!(machine.is_enough(), answered >= 4);
        machine.handle(&Event { action, answer: Answer::Versions(vec![listed()]) });
    }
    assert!(matches!(machine.outcome(), Some(GetOutcome::Found(found, _)) if *found == listed()));
}

#[test]
fn what_a_drained_node_has_does_not_count() {
    let quorum = quorum().with_drained(1).unwrap();
    let on_drained = |node| Answer::Versions(if node >= 3 { vec![listed()] } else { Vec::new() });
    let repair = |shape: Shape| {
        run(Repair::new(quorum, 100), move |node, request| match request {
            Request::ListVersions => Some(on_drained(node)),
            Request::ReadManifest(_) => Some(Answer::Manifest(shape.clone())),
            Request::FindParts(_) => Some(Answer::Parts([0, 1, 2].map(PartIndex).to_vec())),
            _ => None,
        })
    };
    // A small object is on nodes 3 and 4. Node 4 is drained, so the object gets one more copy.
    let order = [3, 0, 1, 2].map(NodeIndex).to_vec();
    let (outcome, asked) = repair(Shape::Inline { order });
    assert_eq!(writes(&asked), [0]);
    assert!(matches!(outcome, RepairOutcome::Repaired { is_owed: false, .. }), "{outcome:?}");
    // All other manifests go to all nodes that stay.
    let (_, asked) = repair(Shape::Shards { spread: spread(3), stages: vec![3] });
    assert_eq!(writes(&asked), [0, 1, 2]);
    assert!(Quorum::new(3, 1).unwrap().with_drained(2).is_err());
}

#[test]
fn a_removal_that_stopped_halfway_is_carried_through_by_the_next() {
    let mark = Version { generation: 4, object: ObjectId::new([8; 16]) };
    let mark = Listed { version: mark, kind: VersionKind::Removed, length: 0 };
    let order: Vec<NodeIndex> = [4, 2, 0, 1, 3].map(NodeIndex).to_vec();
    let content = || NewParts::Removed { order: order.clone() };
    let remove = || Put::new(quorum(), ObjectId::new([9; 16]), content());
    let on = |nodes: usize| {
        run(remove(), move |node, request| match request {
            Request::ListVersions if node < nodes => Some(Answer::Versions(vec![listed(), mark])),
            Request::ListVersions => Some(Answer::Versions(vec![listed()])),
            _ => None,
        })
    };
    let (outcome, asked) = on(1);
    assert!(matches!(outcome, PutOutcome::Committed { is_owed: false, .. }), "{outcome:?}");
    assert_eq!(writes(&asked), [0, 1, 2, 3, 4], "all have the version that the mark removes");
    let deletions = nodes_of(&asked, |request| request == Request::DeleteOlder(listed()));
    assert_eq!(deletions, [0, 1, 2, 3, 4]);
    let (outcome, asked) = on(2);
    assert_eq!((outcome, writes(&asked)), (PutOutcome::NotFound, vec![]), "the mark is settled");
}
