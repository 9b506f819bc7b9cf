//! `paritas volume bench`: its figures agree with each other, and it leaves no objects.

use std::fs;

use crate::common::tank::Tank;
use crate::common::{Chance, exit, run};
use serde_json::{Value, json};

fn ops(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["op"].as_str().unwrap()).collect()
}

/// Checks that the numbers of each line agree.
fn expect_sound(lines: &[Value]) {
    for line in lines {
        let number = |key: &str| line[key].as_f64().unwrap();
        for of in ["seconds", "plain_seconds"] {
            let [least, middle, most] =
                ["min", "median", "max"].map(|which| number(&format!("{of}_{which}")));
            assert!(0.0 < least && least <= middle && middle <= most, "{line}");
        }
        assert!(number("ratio_min") <= number("ratio") && number("ratio") <= number("ratio_max"));
    }
}

#[test]
fn a_volume_is_measured_and_left_as_it_was() {
    let tank = Tank::new(6, "bbdpg:k=3,m=1,m2=3");
    let content = Chance(1).bytes(20_000);
    tank.put("mine", &content);
    let before = tank.files();
    let lines = tank.run("bench", &args!["--size", "3MiB", "--rounds", "3"]);
    let lines = lines.expect(exit::DONE).results();
    assert_eq!(ops(&lines), ["put", "get", "range", "promote"]);
    expect_sound(&lines);
    assert_eq!((&lines[0]["size"], &lines[0]["rounds"]), (&json!(3 << 20), &json!(3)));
    let (rate, seconds) = (&lines[1]["rate"], lines[1]["seconds_median"].as_f64().unwrap());
    // Both figures were rounded on their way through decimal text.
    let expected = f64::from(3 << 20) / seconds;
    assert!((rate.as_f64().unwrap() / expected - 1.0).abs() < 1e-12, "{rate} {expected}");
    // Only marks of removed names are left.
    let is_new = |path: &&std::path::PathBuf| !before.contains(path);
    let left: Vec<_> = tank.files().into_iter().filter(|path| is_new(&path)).collect();
    let is_mark = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "removed");
    assert!(left.iter().all(is_mark), "{left:?}");
    assert_eq!(tank.names(), ["mine"]);
    assert!(tank.get("mine") == content);
}

#[test]
fn small_objects_are_measured_side_by_side() {
    let tank = Tank::new(4, "2+2");
    for size in ["4KiB", "10kB", "1"] {
        let small = args!["--size", size, "--objects", "20", "--rounds", "1"];
        let lines = tank.run("bench", &small).expect(exit::DONE).results();
        assert_eq!(ops(&lines), ["put", "get"]);
        expect_sound(&lines);
        assert_eq!(lines[0]["objects"], 20);
    }
    assert!(tank.names().is_empty());
    let text =
        run(args!["volume", "bench", tank.path("tank.toml"), "--size", "1kB", "--rounds", "1"]);
    let text = text.expect(exit::DONE).text();
    assert!(text.contains("put ") && text.contains("range ") && text.contains(" ms"), "{text}");
}

#[test]
fn nothing_is_measured_where_nodes_fail() {
    let tank = Tank::new(3, "2+1");
    fs::rename(tank.disk(1), tank.path("away")).unwrap();
    tank.run("bench", &args!["--size", "1MiB", "--rounds", "1"]).expect(exit::IO);
    fs::rename(tank.path("away"), tank.disk(1)).unwrap();
    assert!(tank.names().is_empty());
    for wrong in [["--size", "0"], ["--rounds", "0"], ["--objects", "0"], ["--size", "big"]] {
        tank.run("bench", &wrong.map(Into::into)).expect(exit::ARGUMENTS);
    }
}
