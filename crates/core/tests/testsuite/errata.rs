//! Checks statements of `docs/errata.md` about the papers that no test of a feature covers: figures
//! that follow from others, and conditions that are printed the wrong way round.

use crate::common::code;
use paritas::code::{Field, Role};
use paritas::research::{Cost, Pass, PlanOptions};
use paritas::{Code, NodeId};

fn is_legal(spec: &str) -> bool {
    Code::new(&spec.parse().unwrap()).is_ok()
}

/// Luo, Xu and Plank: the peak GB/s of tables 5 and 8 on each machine, new and traditional, and the
/// printed gains in percent, of encoding and of writing.
const PEAKS: [(f64, f64, &str, &str); 4] = [
    (1.411, 0.956, "47", "8.3"),
    (2.125, 1.621, "31", "3.8"),
    (3.29, 2.673, "23", "1.9"),
    (3.56, 2.925, "21", "1.6"),
];

/// Their bandwidth is bytes over seconds, not the inverse. If it is read so, the formula of section
/// 5.5 gives all gains of table 8 except the last. The gains of table 5 follow, too, except the
/// first and the last.
#[test]
fn gains_follow_from_bytes_over_seconds_but_three() {
    let write = 0.296;
    let gains = PEAKS.map(|(new, traditional, ..)| {
        let seconds = |encode: f64| 1.0 / encode + 1.0 / write;
        (100.0 * (new / traditional - 1.0), 100.0 * (seconds(traditional) / seconds(new) - 1.0))
    });
    let is_printed = gains.iter().zip(PEAKS).map(|(&(encoding, writing), (.., first, second))| {
        (format!("{encoding:.0}") == first, format!("{writing:.1}") == second)
    });
    let expected = [(false, true), (true, true), (true, true), (false, false)];
    assert_eq!(is_printed.collect::<Vec<_>>(), expected);
    let digits = |number: f64| format!("{number:.2}");
    assert_eq!([gains[0].0, gains[3].0, gains[3].1].map(digits), ["47.59", "21.71", "1.67"]);
}

/// Special-purpose codes need k of at most w (EVENODD: w + 1), not w of at most k.
#[test]
fn packets_a_strip_bound_the_nodes_not_the_reverse() {
    for legal in ["rdp:k=6,p=11", "liberation:k=3,w=7", "evenodd:k=5,p=11", "blaum-roth:k=4,w=6"] {
        let w = code(legal).node_cells(NodeId::new(0)).len();
        let k = legal.split(['=', ',']).nth(1).unwrap().parse().unwrap();
        assert!(w > k, "{legal}: w = {w}");
    }
    for (largest, too_many) in [
        ("rdp:k=10,p=11", "rdp:k=11,p=11"),
        ("liberation:k=7,w=7", "liberation:k=8,w=7"),
        ("evenodd:k=11,p=11", "evenodd:k=12,p=11"),
        ("blaum-roth:k=6,w=6", "blaum-roth:k=7,w=6"),
    ] {
        assert!(is_legal(largest) && !is_legal(too_many), "{largest}");
    }
}

/// Cauchy codes need 2^w of at least n, not w of at least 2^n. For n = 2^w + 1 there are too few
/// points.
#[test]
fn cauchy_codes_have_a_point_for_every_node() {
    for w in 2..=8_usize {
        let n = 1 << w;
        assert!(is_legal(&format!("cauchy-orig:k={},m=2,w={w}", n - 2)), "w = {w}, n = {n}");
        assert!(!is_legal(&format!("cauchy-orig:k={},m=2,w={w}", n - 1)), "w = {w}, n = {n} + 1");
    }
    // The poster's codes, 10 + 1 to 10 + 8, need w = 5 by either condition.
    assert!(is_legal("cauchy-orig:k=10,m=8,w=5") && !is_legal("cauchy-orig:k=10,m=8,w=4"));
}

/// Zhou, section 2.2.1: the ones of a bit matrix are not the XORs of encoding. The first one of a
/// parity packet is a copy, so each parity packet takes one XOR less than it has ones. The code (7,
/// 5, 3) has 51 ones in 6 parity packets, and takes the 45 XORs of table 3.1.
#[test]
fn a_parity_packet_has_one_xor_less_than_ones() {
    let plain = Code::new(&"cauchy:k=5,m=2,w=3,points=0.1.2.3.4.5.6".parse().unwrap()).unwrap();
    let plain = Code::cauchy(&plain.cauchy_matrix().unwrap().plain()).unwrap();
    let (have, want) = (plain.stored(Role::Data), plain.stored(Role::Parity));
    let options = PlanOptions::default().pass(Pass::Direct);
    let cost = Cost::of(plain.schedule_with(&have, &want, options).unwrap().schedule());
    assert_eq!((plain.ones(), cost.xors, cost.copies), (51, 45, 6));
    assert_eq!(plain.ones(), cost.total);
}

/// Zhou, section 2.2.1: row i of the matrix of an element e, whose vector is V(e), is V(e 2^(i-1)),
/// e times a power of the generator 2. It is not V(e^(2^(i-1))), a power of e: with these rows
/// products are wrong.
#[test]
fn rows_of_a_bit_matrix_are_multiples_and_no_powers() {
    for w in [3, 4, 8] {
        let field = Field::new(w).unwrap();
        let bits = |a: u32| (0..w).filter(move |bit| a >> bit & 1 == 1);
        // V(a) M: the sum of the rows where V(a) has a one.
        let product = |a, row: &dyn Fn(u32) -> u32| bits(a).map(row).fold(0, |sum, row| sum ^ row);
        let power = |e: u32, i: u32| (0..i).fold(e, |power, _| field.multiply(power, power));
        let mut wrong = 0;
        for e in 2..1 << w {
            for a in 1..1 << w {
                let right = field.multiply(a, e);
                assert_eq!(product(a, &|i| field.multiply(e, 1 << i)), right, "w = {w}, {a} {e}");
                wrong += usize::from(product(a, &|i| power(e, i)) != right);
            }
        }
        assert!(wrong > 0, "w = {w}");
    }
}
