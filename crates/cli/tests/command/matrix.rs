//! `matrix:FILE` from end to end: a code from the user's own bit matrix is described, scheduled and
//! measured. Objects that were encoded with it are decoded, verified and repaired after the file is
//! gone.

use std::fs;
use std::path::PathBuf;

use crate::common::{self, Chance, exit, names, run};
use tempfile::TempDir;

/// Two groups of two nodes with their sums, and the sum of all: not MDS.
const LOCAL: &str = "# Two groups.\nk = 4\nm = 3\nw = 1\n\n1100  # the first\n0011\n1111\n";

/// X-Code with n = 3: the parity of a node is the two data packets of the other nodes.
const VERTICAL: &str = "k=1\nm=2\nw=3\nplacement=vertical\n001\n010\n100\n001\n010\n100\n";

struct Yard(TempDir);

impl Yard {
    fn new(matrix: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("matrix.txt"), matrix).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn code(&self) -> String {
        format!("matrix:{}", self.path("matrix.txt").display())
    }
}

#[test]
fn a_matrix_is_described_with_the_losses_that_it_survives() {
    let yard = Yard::new(LOCAL);
    let code = run(["codes", &yard.code(), "--matrix", "--json"]).expect(exit::DONE).result();
    common::schema::check(&code);
    assert_eq!(code["code"], "matrix:k=4,m=3,w=1,rows=c.3.f");
    assert_eq!((&code["tolerance"], &code["ones"]), (&1.into(), &8.into()));
    assert_eq!(code["matrix"], serde_json::json!(["1100", "0011", "1111"]));
    assert_eq!(code["matrix_columns"], serde_json::json!([[0, 0], [1, 0], [2, 0], [3, 0]]));
    assert_eq!(code["matrix_rows"], serde_json::json!([[4, 0], [5, 0], [6, 0]]));
    let counted = |lost: u64, sets: u64, survived: u64| serde_json::json!({"lost": lost, "sets": sets, "tried": sets, "survived": survived});
    // Three groups, d0 d1 p0, d2 d3 p1 and p0 p1 p2, each of which repairs one loss. Two kinds of
    // losses are fatal: both data nodes of a group (two pairs, and ten sets of three with such a
    // pair), and a data node with its own parity and p2 (four sets of three).
    let losses = [counted(1, 7, 7), counted(2, 21, 21 - 2), counted(3, 35, 35 - 10 - 4)];
    assert_eq!(code["losses"].as_array().unwrap()[..], losses);
    let text = run(["codes", &yard.code()]).expect(exit::DONE).text();
    assert!(text.contains("  7 of 7 losses of 1 node are survived (100.00 %)\n"), "{text}");
    assert!(
        text.contains("any 1 of 7 nodes may be lost") && text.contains("  not MDS\n"),
        "{text}"
    );
    let other = run(["codes", "4+2", "--json"]).expect(exit::DONE).result();
    assert!(other["losses"].is_null());
    let mds = run(["codes", &Yard::new(VERTICAL).code()]).expect(exit::DONE).text();
    assert!(mds.contains("any 2 of 3 nodes may be lost") && mds.contains("  MDS\n"), "{mds}");
}

#[test]
fn a_matrix_is_scheduled_and_measured() {
    let yard = Yard::new(LOCAL);
    let report = |more: &[&str]| {
        let code = yard.code();
        let arguments = [&["schedule", &code, "--pass", "direct", "--json"], more].concat();
        run(arguments).expect(exit::DONE).result()
    };
    assert_eq!((&report(&[])["ones"], &report(&[])["xors"]), (&8.into(), &5.into()));
    assert_eq!(report(&["--erase", "0"])["xors"], 1);
    let lost = run(["schedule", &yard.code(), "--erase", "0,1,4"]).expect(exit::LOST);
    assert!(lost.stderr.contains("cannot be"), "{lost}");
    let bench = ["bench", "--code", &yard.code(), "--reps", "5", "--set", "65536", "--json"];
    let line = run(bench).expect(exit::DONE).result();
    assert_eq!(line["code"], "matrix:k=4,m=3,w=1,rows=c.3.f");
}

/// After a loss, the code may bear more losses than its tolerance leaves.
#[test]
fn tolerable_losses_are_tried() {
    let yard = Yard::new(LOCAL);
    let (file, shards) = (yard.path("object"), yard.path("shards"));
    fs::write(&file, Chance(8).bytes(10_000)).unwrap();
    common::encode(&file, &shards, &yard.code(), &[]);
    for (lost, more) in [(4, 1), (0, 0)] {
        fs::remove_file(shards.join(format!("object.{lost}of7.paritas"))).unwrap();
        let report = run(args!["verify", &shards, "--json"]).expect(exit::REPAIRABLE).result();
        assert_eq!(report["tolerable_losses"], more, "{report}");
    }
}

#[test]
fn shards_are_read_without_the_file() {
    for (matrix, lost) in [(LOCAL, [0, 3]), (VERTICAL, [0, 2])] {
        let yard = Yard::new(matrix);
        let (file, shards) = (yard.path("object"), yard.path("shards"));
        let content = Chance(7).bytes(300_000);
        fs::write(&file, &content).unwrap();
        common::encode(&file, &shards, &yard.code(), &[]);
        fs::remove_file(yard.path("matrix.txt")).unwrap();
        let paths: Vec<PathBuf> =
            names(&shards).into_iter().map(|name| shards.join(name)).collect();
        let before: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        for lost in lost {
            fs::remove_file(&paths[lost]).unwrap();
        }
        let report = run(args!["verify", &shards, "--json"]).expect(exit::REPAIRABLE).result();
        assert!(report["code"].as_str().unwrap().starts_with("matrix:k="), "{report}");
        let out = yard.path("out");
        run(args!["decode", &shards, "--out", &out]).expect(exit::DONE);
        assert!(fs::read(&out).unwrap() == content);
        run(args!["repair", &shards]).expect(exit::DONE);
        run(args!["verify", &shards, "--deep"]).expect(exit::DONE);
        assert!(paths.iter().zip(before).all(|(path, bytes)| fs::read(path).unwrap() == bytes));
        if matrix == LOCAL {
            // What cannot be computed is lost.
            [0, 1].iter().for_each(|&lost| fs::remove_file(&paths[lost]).unwrap());
            run(args!["verify", &shards]).expect(exit::LOST);
            run(args!["decode", &shards, "--out", yard.path("none")]).expect(exit::LOST);
        }
    }
}

#[test]
fn files_that_hold_no_matrix_are_refused_by_line_and_number() {
    for (matrix, part) in [
        ("k = 2\nm = 1\nw = 1\n11\n10\n", "line 5: the matrix must have m·w = 1 rows"),
        ("k = 2\nm = 2\nw = 1\n11\n1\n", "line 5: a row must have k·w = 2 digits; got 1"),
        ("k = 2\nm = 1\nw = 1\n1x\n", "line 4: digit 2 of a row must be 0 or 1; got `x`"),
        (
            "k = 200\nm = 200\nw = 9\n1\n",
            "line 4: k = 200, m = 200, w = 9: the matrix has 1800 rows",
        ),
        ("k = 2\nm = 1\n", "w is missing"),
    ] {
        let yard = Yard::new(matrix);
        let refused = run(["codes", &yard.code()]).expect(exit::ARGUMENTS);
        assert!(refused.stderr.contains("matrix.txt: "), "{refused}");
        assert!(refused.stderr.contains(part), "{refused}");
    }
    let yard = Yard::new("k = 3\nm = 1\nw = 1\n110\n");
    let file = yard.path("object");
    fs::write(&file, b"object").unwrap();
    let out = yard.path("shards");
    let refused = run(args!["encode", &file, "--code", yard.code(), "--out", &out]);
    let refused = refused.expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("does not survive the loss of node 2 alone"), "{refused}");
    assert!(!out.exists());
    let nowhere = run(["codes", "matrix:no-such-file"]).expect(exit::ARGUMENTS);
    assert!(nowhere.stderr.contains("no-such-file: No such file"), "{nowhere}");
}
