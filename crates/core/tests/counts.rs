//! Counts that are published or proved, exactly.

mod common;

use common::code;
use paritas::{CellSet, Code, Cost, NodeId, Pass, PlanOptions, Role};

fn encode_cost(code: &Code, pass: Pass) -> Cost {
    let options = PlanOptions { pass, ..PlanOptions::default() };
    let (have, want) = (code.stored(Role::Data), code.stored(Role::Parity));
    Cost::of(code.schedule_with(&have, &want, options).unwrap().schedule())
}

/// Corbett et al., section 4: RDP at k = p - 1 takes exactly k - 1 XORs a parity packet.
#[test]
fn rdp_is_optimal() {
    for p in [3, 5, 7, 11, 13] {
        let k = p - 1;
        let code = code(&format!("rdp:k={k}"));
        assert_eq!(encode_cost(&code, Pass::Slp).xors, 2 * k * (k - 1), "p = {p}");
    }
    // Luo, Xu and Plank, table 5: k = w = 10 takes 180.
    assert_eq!(encode_cost(&code("rdp:k=10"), Pass::Slp).xors, 180);
}

/// Luo, Xu and Plank, table 5: EVENODD at k = 11 takes 209.
#[test]
fn evenodd_is_as_published() {
    assert_eq!(encode_cost(&code("evenodd:k=11"), Pass::Slp).xors, 209);
}

/// RDP's zigzag: any two lost nodes cost no more than encoding.
#[test]
fn rdp_decodes_as_cheaply_as_it_encodes() {
    let code = code("rdp:k=10");
    for a in 0..12 {
        for b in a + 1..12 {
            let lost = [NodeId::new(a), NodeId::new(b)];
            let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
            let want = code.cells_of(lost);
            let cost = Cost::of(code.schedule(&have, &want).unwrap().schedule());
            assert!(cost.xors <= 180, "nodes {a} and {b}: {}", cost.xors);
        }
    }
}

#[test]
fn every_pass_helps() {
    for spec in ["6+3", "10+4", "cauchy:k=10,m=4,w=8"] {
        let code = code(spec);
        let [direct, smart, slp] =
            [Pass::Direct, Pass::Smart, Pass::Slp].map(|pass| encode_cost(&code, pass).xors);
        assert_eq!(direct, code.ones() - code.stored(Role::Parity).len(), "{spec}");
        assert!(slp < smart && smart <= direct, "{spec}: {direct} {smart} {slp}");
    }
}

#[test]
fn a_single_loss_is_read_from_plain_parity() {
    let code = code("10+4");
    let lost = NodeId::new(3);
    let have = code.cells_of(code.nodes().filter(|&node| node != lost));
    let plan = code.schedule(&have, &code.cells_of([lost])).unwrap();
    assert_eq!(Cost::of(plan.schedule()).xors, 4 * 9);
    assert_eq!(plan.reads(&code), [4, 4, 4, 0, 4, 4, 4, 4, 4, 4, 4, 0, 0, 0]);
}

#[test]
fn what_is_at_hand_is_not_made() {
    let code = code("4+2");
    let all = code.cells_of(code.nodes());
    let plan = code.schedule(&all, &code.cells_of([NodeId::new(0)])).unwrap();
    assert!(plan.outputs().is_empty() && plan.schedule().ops().is_empty());
}

#[test]
fn not_enough_names_the_cells() {
    let code = code("4+2");
    let have = code.cells_of([0, 1, 2].map(NodeId::new));
    let want = CellSet::from_cells(code.cell_count(), [code.node_cells(NodeId::new(3))[1]]);
    let error = code.schedule(&have, &want).unwrap_err();
    assert_eq!(error.kind(), paritas::ErrorKind::NotEnough);
    assert!(error.to_string().contains("d3.1"), "{error}");
}
