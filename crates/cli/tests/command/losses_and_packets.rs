//! What researchers ask about a code: the packet of rule (3.1), the worst loss, the speed of chosen
//! losses, and a comparison with another code.

use std::fs;

use crate::common::{Chance, exit, run};
use serde_json::{Value, json};

const REPS: [&str; 5] = ["--set", "65536", "--reps", "3", "--json"];

fn schedule(arguments: &[&str]) -> Value {
    run([&["schedule"], arguments, &["--json"]].concat()).expect(exit::DONE).result()
}

/// A stripe needs the packets that are read, the results and the temporaries. The rule takes the
/// largest packet, a multiple of 64 bytes, with which they fit into a cache.
#[test]
fn the_rule_fills_a_cache_with_a_stripe() {
    for (arguments, cells) in
        [(&["6+3"][..], 9 * 4), (&["rdp:k=6"], 8 * 6), (&["rdp:k=3", "--order", "data"], 5 * 4)]
    {
        let report = schedule(arguments);
        let number = |field: &Value| field.as_u64().unwrap();
        let stripe = number(&report["packet_rule"]["stripe_packets"]);
        assert_eq!(stripe, cells + number(&report["temps"]), "{report}");
        let text = run([&["schedule"], arguments].concat()).expect(exit::DONE).text();
        assert!(text.contains(&format!("a stripe needs {stripe} packets")), "{text}");
        for cache in report["packet_rule"]["caches"].as_array().unwrap() {
            let (bytes, packet) = (number(&cache["cache_bytes"]), number(&cache["packet"]));
            assert!(packet % 64 == 0 && (packet == 64 || packet * stripe <= bytes), "{cache}");
            assert!((packet + 64) * stripe > bytes, "{cache}");
            assert!(text.contains(&format!("{packet} bytes for L{}", cache["level"])), "{text}");
        }
    }
    // Codes in words and LT codes have no packets.
    for code in ["lt:k=8,n=16,nodes=4", "backblaze:k=6,m=3"] {
        assert_eq!(schedule(&[code])["packet_rule"]["caches"], Value::Array(Vec::new()));
        let text = run(["schedule", code].to_vec()).expect(exit::DONE).text();
        assert!(!text.contains("by rule (3.1)"), "{text}");
    }
}

/// `encode --packet rule` uses and stores the packet size that `schedule` prints for the
/// first-level cache.
#[test]
fn the_packet_of_the_rule_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let content = Chance(7).bytes(300_000);
    fs::write(path("object"), &content).unwrap();
    let encode = |code: &str| {
        run(args![
            "encode",
            path("object"),
            "--out",
            path(code),
            "--code",
            code,
            "--packet",
            "rule"
        ])
    };
    let rule = &schedule(&["6+3"])["packet_rule"]["caches"][0];
    if rule["level"] == 1 {
        encode("6+3").expect(exit::DONE);
        let info = run(args!["info", path("6+3"), "--json"]).expect(exit::DONE).result();
        assert_eq!(info["packet"], rule["packet"]);
        run(args!["decode", path("6+3"), "--out", path("copy")]).expect(exit::DONE);
        assert!(fs::read(path("copy")).unwrap() == content);
    } else {
        encode("6+3").expect(exit::ARGUMENTS);
    }
    for code in ["backblaze:k=4,m=2", "lt:k=16,n=40"] {
        encode(code).expect(exit::ARGUMENTS);
    }
}

#[test]
fn the_worst_loss_has_the_longest_schedule() {
    let worst = schedule(&["4+2", "--pass", "smart", "--worst-loss"]);
    let mut totals = Vec::new();
    for lost in ["0,1", "0,2", "0,3", "1,2", "1,3", "2,3"] {
        let report = schedule(&["4+2", "--pass", "smart", "--erase", lost]);
        totals.push((report["total"].as_u64().unwrap(), report["erased"].clone()));
    }
    let twice = schedule(&["4+2", "--pass", "smart", "--erase", "1,0,1"]);
    assert_eq!((twice["total"].as_u64().unwrap(), twice["erased"].clone()), totals[0]);
    let most = totals.iter().map(|(total, _)| *total).max().unwrap();
    assert_eq!(worst["total"], most);
    let first = totals.iter().find(|(total, _)| *total == most).unwrap();
    assert_eq!(worst["erased"], first.1);
    for wrong in [&["4+2", "--erase", "0"][..], &["lt:k=16,n=40"], &["20+10"]] {
        run([&["schedule", "--worst-loss"], wrong].concat()).expect(exit::ARGUMENTS);
    }
}

#[test]
fn chosen_nodes_are_decoded() {
    let bench = ["bench", "--code", "4+2", "--op"];
    let decode = |erase: &[&str]| run([&bench[..], &["decode"], erase, &REPS].concat());
    let erased = |erase: &[&str]| decode(erase).expect(exit::DONE).result()["erased"].clone();
    assert_eq!([erased(&[]), erased(&["--erase", "5,2"])], [json!([0, 1]), json!([2, 5])]);
    let encode = run([&bench[..], &["encode"], &REPS].concat()).expect(exit::DONE).result();
    assert_eq!(encode["erased"], json!([]));
    for wrong in ["6", "x"] {
        decode(&["--erase", wrong]).expect(exit::ARGUMENTS);
    }
    decode(&["--erase", "0,1,2"]).expect(exit::LOST);
    // A loss that the code does not promise to survive, and survives.
    let lucky = ["bench", "--code", "matrix:k=2,m=2,w=1,rows=c.c", "--op", "decode"];
    let lucky = run([&lucky[..], &["--erase", "0,2"], &REPS].concat()).expect(exit::DONE);
    assert_eq!(lucky.result()["erased"], json!([0, 2]));
    run([&bench[..], &["encode", "--erase", "0"]].concat()).expect(exit::ARGUMENTS);
}

#[test]
fn two_codes_are_compared() {
    let bench = ["bench", "--code", "6+2", "--against-code", "rdp:k=6"];
    let line = run([&bench[..], &REPS].concat()).expect(exit::DONE).result();
    assert_eq!((&line["type"], &line["against"]), (&json!("comparison"), &json!("")));
    assert!(line["against_code"].as_str().unwrap().starts_with("rdp:k=6"), "{line}");
    assert!(line["ratio"].as_f64().unwrap() > 0.0);
    let text = run([&bench[..], &REPS[..4]].concat()).expect(exit::DONE).text();
    assert!(text.contains("times as fast as rdp:k=6"), "{text}");
    run([&bench[..], &["--best-roofline"]].concat()).expect(exit::ARGUMENTS);
}
