//! Tests of placement.

use paritas_shards::ObjectId;
use proptest::prelude::*;

use super::{Member, Members, losable};
use crate::protocol::NodeIndex;

fn member(name: usize, domain: usize) -> Member {
    Member { name: format!("node{name}"), domain: format!("rack{domain}"), is_drained: false }
}

/// Creates nodes in domains of the given sizes.
fn racks(sizes: &[usize]) -> Members {
    let domains = sizes.iter().enumerate().flat_map(|(domain, &size)| vec![domain; size]);
    Members::new(domains.enumerate().map(|(name, domain)| member(name, domain)).collect()).unwrap()
}

fn drained(members: &Members, node: usize) -> Members {
    let mut list = members.as_slice().to_vec();
    list[node].is_drained = true;
    Members::new(list).unwrap()
}

fn id(number: u64) -> ObjectId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    ObjectId::new(bytes)
}

/// Returns the greatest number of shards in a domain and on a node.
fn fullest(members: &Members, homes: &[NodeIndex]) -> (usize, usize) {
    let count =
        |is_there: &dyn Fn(NodeIndex) -> bool| homes.iter().filter(|&&home| is_there(home)).count();
    let nodes = members.as_slice();
    let in_domain = |at: usize| count(&|home| nodes[home.0].domain == nodes[at].domain);
    let domains = (0..nodes.len()).map(in_domain).max().unwrap();
    (domains, (0..nodes.len()).map(|at| count(&|home| home.0 == at)).max().unwrap())
}

/// Returns the fullest domain and node of the best spread of `shards` shards over domains of
/// `sizes` nodes, by trying all. `fullest` is the fullest domain and node of other domains.
fn best(sizes: &[usize], shards: usize, fullest: (usize, usize)) -> (usize, usize) {
    let Some((&size, others)) = sizes.split_first() else {
        return if shards == 0 { fullest } else { (usize::MAX, usize::MAX) };
    };
    let with = |here: usize| {
        let fullest = (fullest.0.max(here), fullest.1.max(here.div_ceil(size)));
        best(others, shards - here, fullest)
    };
    (0..=shards).map(with).min().unwrap()
}

#[test]
fn lists_that_cannot_be_are_refused() {
    let refusal = |members| Members::new(members).unwrap_err().to_string();
    let two = vec![member(1, 0), member(2, 0), member(1, 1)];
    assert_eq!(refusal(two), "nodes 0 and 2 are both called \"node1\"");
    let gone = Member { is_drained: true, ..member(0, 0) };
    assert_eq!(refusal(vec![gone]), "none of 1 nodes takes shards");
}

#[test]
fn homes_are_the_same_for_ever() {
    let homes = |sizes: &[usize], shards| {
        racks(sizes).homes(id(1), shards).into_iter().map(|home| home.0).collect::<Vec<_>>()
    };
    // Computed by another program from the description in this module.
    assert_eq!(homes(&[1; 6], 6), [3, 2, 1, 0, 5, 4]);
    assert_eq!(homes(&[2, 3, 4], 6), [3, 5, 1, 0, 8, 2]);
    assert_eq!(homes(&[1, 3, 3], 7), [3, 5, 0, 1, 6, 2, 4]);
}

#[test]
fn nodes_get_equal_shares_of_many_objects() {
    const OBJECTS: u64 = 4000;
    let members = racks(&[1; 20]);
    let mut shares = [0; 20];
    for object in 0..OBJECTS {
        members.homes(id(object), 6).iter().for_each(|home| shares[home.0] += 1);
    }
    // A share is binomial with mean 1200 and deviation 29; each is within five deviations.
    assert!(shares.iter().all(|share| (1055..1345).contains(share)), "{shares:?}");
}

#[test]
fn a_node_that_leaves_the_list_moves_little_besides_its_own() {
    const OBJECTS: u64 = 300;
    const SHARDS: usize = 6;
    const NODES: usize = 20;
    let all = racks(&[1; NODES]);
    let mut list = all.as_slice().to_vec();
    list.pop();
    let fewer = Members::new(list).unwrap();
    let (mut own, mut others) = (0, 0);
    for object in 0..OBJECTS {
        let (before, after) = (all.homes(id(object), SHARDS), fewer.homes(id(object), SHARDS));
        own += before.iter().filter(|home| home.0 == NODES - 1).count();
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
        others += moved.filter(|(before, _)| before.0 != NODES - 1).count();
        if !before.contains(&NodeIndex(NODES - 1)) {
            assert_eq!(before, after);
        }
    }
    assert!(own > 0 && others * 2 < own, "{own} shards of the node moved, and {others} others");
}

#[test]
fn the_fullest_groups_decide_what_may_be_lost() {
    let members = racks(&[2, 1, 1]);
    let places = [0, 0, 1, 2, 3].map(NodeIndex);
    assert_eq!(members.losable_nodes(&places, 1), 0);
    assert_eq!(members.losable_nodes(&places, 2), 1);
    assert_eq!(members.losable_nodes(&places, 3), 2);
    let domains =
        |tolerance| losable(places.iter().map(|at| members.domains()[at.0]), 3, tolerance);
    assert_eq!((domains(2), domains(3)), (0, 1));
    assert_eq!(members.losable_nodes(&places, 5), 3, "one node must be left");
}

proptest! {
    #[test]
    fn no_spread_is_more_even(
        sizes in proptest::collection::vec(1usize..5, 1..5), shards in 1usize..9, object: u64,
    ) {
        let members = racks(&sizes);
        let homes = members.homes(id(object), shards);
        prop_assert_eq!(fullest(&members, &homes), best(&sizes, shards, (0, 0)));
    }

    #[test]
    fn a_drained_node_is_as_one_that_has_left(
        sizes in proptest::collection::vec(1usize..4, 2..5), shards in 1usize..9, object: u64,
        node in 0usize..12,
    ) {
        let members = racks(&sizes);
        let node = node % members.as_slice().len();
        let mut others = members.as_slice().to_vec();
        others.remove(node);
        let without = Members::new(others).unwrap();
        let names = |members: &Members| -> Vec<String> {
            let homes = members.homes(id(object), shards).into_iter();
            homes.map(|home| members.as_slice()[home.0].name.clone()).collect()
        };
        prop_assert_eq!(names(&drained(&members, node)), names(&without));
    }

    #[test]
    fn substitutes_are_the_emptiest_first(object: u64) {
        let members = racks(&[1; 8]);
        let homes = members.homes(id(object), 6);
        let mut substitutes = members.substitutes(id(object), &homes);
        prop_assert!(!homes.contains(&substitutes[0]) && !homes.contains(&substitutes[1]));
        substitutes.sort_unstable();
        prop_assert_eq!(substitutes, (0..8).map(NodeIndex).collect::<Vec<_>>());
    }
}
