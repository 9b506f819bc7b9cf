//! LT codes through the real program: files and pipes, reports, and every exit code.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{
    self, Chance, Run, decode, encode, encoded, exit, names, run, run_with_input, shard_paths,
    snapshot,
};

const CODE: &str = "lt:k=64,n=112,nodes=8";
const CANONICAL: &str = "lt:k=64,n=112,nodes=8,c=0.1,delta=0.5,variant=uniform,seed=0";

/// An object of several segments, and its shards.
struct Scene {
    yard: TempDir,
    paths: Vec<PathBuf>,
}

impl Scene {
    fn new(code: &str, length: usize) -> Self {
        let (yard, _, report) = encoded(&Chance(length as u64).bytes(length), code, &[]);
        Self { paths: shard_paths(&report), yard }
    }

    fn shards(&self) -> PathBuf {
        self.yard.path().join("shards")
    }

    fn lose(&self, shards: std::ops::Range<usize>) {
        self.paths[shards].iter().for_each(|path| fs::remove_file(path).unwrap());
    }

    fn command(&self, command: &str) -> Run {
        run(args![command, self.shards(), "--json"])
    }
}

#[test]
fn pipes_come_back() {
    let yard = tempfile::tempdir().unwrap();
    let shards = yard.path().join("shards");
    let content = Chance(7).bytes(9_000_001);
    let code = "lt:k=64,n=192,nodes=8,variant=originals+singles+coverage+decodable";
    let encode = args!["encode", "-", "--code", code, "--out", &shards, "--no-sync"];
    run_with_input(encode, &content).expect(exit::DONE);
    assert_eq!(names(&shards).len(), 8);
    assert!(decode(&shards) == content);
    fs::remove_file(shards.join(&names(&shards)[3])).unwrap();
    assert!(decode(&shards) == content, "without shard 3");
}

fn reception(of: &Value) -> (u64, f64, f64) {
    let of = &of["reception"];
    let number = |key: &str| of[key].as_f64().unwrap_or_else(|| panic!("{key} of {of}"));
    assert_eq!(of["runs"], 2000);
    (of["blocks"].as_u64().unwrap(), number("average"), number("p999"))
}

#[test]
fn info_and_codes_say_how_many_blocks_it_takes() {
    let scene = Scene::new(CODE, 50_000);
    let info = scene.command("info").expect(exit::DONE).result();
    assert_eq!((&info["code"], &info["tolerance"]), (&CANONICAL.into(), &Value::Null));
    let (blocks, average, p999) = reception(&info);
    assert_eq!(blocks, 112);
    assert!(1.0 < average && average < 1.2 && average < p999 && p999 <= 1.75, "{info}");

    let codes = run(args!["codes", CODE, "--json"]).expect(exit::DONE).result();
    assert_eq!(codes["reception"], info["reception"]);
    assert_eq!((&codes["data_cells"], &codes["parity_cells"]), (&64.into(), &112.into()));
    assert_eq!((&codes["overhead"], &codes["tolerance"]), (&0.75.into(), &Value::Null));
    assert!(codes["pin"]["ripple"].is_array());
    let text = run(args!["codes", CODE]).expect(exit::DONE).text();
    assert!(text.contains("64 data blocks as 112 blocks: 75.0 % overhead"), "{text}");
    assert!(text.contains("k are enough on average"), "{text}");
    let list = run(args!["codes"]).expect(exit::DONE).text();
    assert!(list.contains("somewhat more than any 64 blocks are enough"), "{list}");

    scene.lose(0..2);
    let (blocks, ..) = reception(&scene.command("info").expect(exit::DONE).result());
    assert_eq!(blocks, 84);
    scene.lose(2..5);
    let text = run(args!["info", scene.shards()]).expect(exit::DONE).text();
    assert!(text.contains("all 42 blocks together are not enough"), "{text}");
}

/// `verify` reports the numbers of blocks of intact, repairable and lost objects.
#[test]
fn verify_counts_blocks() {
    let scene = Scene::new(CODE, 300_000);
    let whole = snapshot(&scene.shards());
    let verify = scene.command("verify").expect(exit::DONE).result();
    assert_eq!((&verify["blocks"], &verify["good_blocks"]), (&112.into(), &112.into()));
    let tolerable = verify["tolerable_losses"].as_u64().unwrap() as usize;
    assert!((1..=3).contains(&tolerable), "{verify}");
    let text = run(args!["verify", scene.shards()]).expect(exit::DONE).text();
    assert!(text.contains(&format!("likely {tolerable} more loss")), "{text}");

    scene.lose(0..tolerable);
    let verify = scene.command("verify").expect(exit::REPAIRABLE).result();
    assert_eq!(verify["good_blocks"], 14 * (8 - tolerable));
    scene.command("repair").expect(exit::DONE);
    assert!(snapshot(&scene.shards()) == whole, "another shard than was lost");

    scene.lose(0..5);
    let run = scene.command("verify").expect(exit::LOST);
    let verify = run.result();
    let needed = verify["likely_needed"].as_u64().unwrap();
    assert!((22..40).contains(&needed), "{verify}");
    for command in ["decode", "repair"] {
        let arguments = match command {
            "decode" => args!["decode", scene.shards(), "--out", "-", "--json"].to_vec(),
            _ => args!["repair", scene.shards(), "--json"].to_vec(),
        };
        let error = common::run(arguments).expect(exit::LOST).error();
        let message = error["message"].as_str().unwrap();
        let part = format!("42 of 112 blocks, and likely {needed} more are enough");
        assert!(message.contains(&part), "{message}");
    }
}

#[test]
fn schedules_of_graphs() {
    let encode = run(args!["schedule", CODE, "--json"]).expect(exit::DONE).result();
    let ones = encode["ones"].as_u64().unwrap();
    assert_eq!((&encode["total"], &encode["ops"]), (&ones.into(), &112.into()));
    assert_eq!(encode["xors"].as_u64().unwrap(), ones - 112);
    let arguments = args!["schedule", CODE, "--erase", "0,5", "--text", "--json"];
    let repair = run(arguments).expect(exit::DONE).result();
    let reads = repair["reads"].as_array().unwrap();
    assert_eq!((&reads[0], &reads[5]), (&0.into(), &0.into()));
    assert!(reads.iter().map(|n| n.as_u64().unwrap()).sum::<u64>() >= 64, "{repair}");
    assert!(repair["text"].as_str().unwrap().starts_with("inputs "));
    run(args!["schedule", CODE, "--erase", "0,1,2,3,4,5"]).expect(exit::LOST);
}

/// `bench` measures the operation, reception, alignment and kernel that were asked for.
#[test]
fn bench_encodes_and_decodes() {
    let bench = |more: &[&str]| {
        let settings = ["bench", "--code", CODE, "--set", "65536", "--reps", "3", "--json"];
        let report = run([&settings[..], more].concat()).expect(exit::DONE).result();
        let speed = |field: &str| report[field].as_f64().unwrap();
        let speeds = ["gbps_min", "gbps_median", "gbps_p90", "gbps_max"].map(speed);
        assert!(0.0 < speeds[0] && speeds.is_sorted(), "{report}");
        let interval = ["roofline_fraction_low", "roofline_fraction", "roofline_fraction_high"];
        assert!(interval.map(speed).is_sorted(), "{report}");
        assert!(speed("first_seconds") > 0.0);
        assert_eq!((&report["code"], &report["packet"]), (&CANONICAL.into(), &Value::Null));
        report
    };
    let encode = bench(&[]);
    assert_eq!((&encode["op"], &encode["blocks"]), (&"encode".into(), &112.into()));
    assert_eq!((&encode["reception"], &encode["seed"]), (&Value::Null, &Value::Null));
    // 65536 bytes hold 64 data blocks and 112 blocks in whole cache lines; a node has 14 blocks.
    assert_eq!((&encode["block_bytes"], &encode["shard_bytes"]), (&320.into(), &4480.into()));
    let decode = bench(&["--op", "decode", "--reception", "1.3", "--seed", "7"]);
    assert_eq!((&decode["blocks"], &decode["seed"]), (&83.into(), &7.into()));
    assert_eq!(
        (&decode["reception"], &decode["block_bytes"]),
        (&(83.0 / 64.0).into(), &384.into())
    );
    let enough = bench(&["--op", "decode", "--align", "page", "--threads", "2"]);
    assert!((67..=112).contains(&enough["blocks"].as_u64().unwrap()), "{enough}");
    assert_eq!(bench(&["--kernel", "scalar", "--op", "decode"])["kernel"], "scalar");
    // LT codes are not compiled: the tiled kernel on the same registers runs instead.
    assert!(!bench(&["--kernel", "auto"])["kernel"].as_str().unwrap().starts_with("jit"));
    let text = run(["bench", "--code", CODE, "--op", "decode", "--set", "65536", "--reps", "1"]);
    let text = text.expect(exit::DONE).text();
    assert!(text.contains(" k) of 384 bytes") || text.contains(" k) of 448 bytes"), "{text}");
}

#[test]
fn what_cannot_be_is_refused() {
    let yard = tempfile::tempdir().unwrap();
    let file = yard.path().join("file");
    fs::write(&file, b"x").unwrap();
    let refused = |arguments: &[std::ffi::OsString], part: &str| {
        let run = run(arguments).expect(exit::ARGUMENTS);
        assert!(run.stderr.contains(part), "{run}");
    };
    let out: &Path = &yard.path().join("out");
    for (code, part) in [
        ("lt:k=64", "n is missing"),
        ("lt:k=64,n=128,variant=fancy", "got fancy"),
        ("lt:k=64,n=128,m=3", "no parameter m"),
        ("lt:k=65537,n=70000", "k must be from 1 to 65536; got 65537"),
        ("lt:k=64,n=64,c=100", "even all blocks together do not determine the data"),
        ("lt:k=9000,n=9900,variant=coverage,coverage=200", "takes too long to solve"),
    ] {
        refused(&args!["encode", &file, "--out", out, "--code", code], part);
    }
    for (flags, part) in [
        (&["--op", "update"][..], "stores no data that could change"),
        (&["--op", "promote"], "needs a code with two stages"),
        (&["--op", "decode", "--stage", "2"], "must be 1 for lt:k=64"),
        (&["--op", "decode", "--reception", "1"], "; got 64"),
        (&["--op", "decode", "--reception", "2"], "; got 128"),
        (&["--op", "decode", "--reception", "0.9"], "a multiple of k from 1 to 1000000; got `0.9`"),
        (&["--seed", "2"], "are for --op decode"),
        (&["--packet", "32"], "--packet has no effect"),
        (&["--pass", "direct"], "--pass has no effect"),
        (&["--cost", "xors"], "--cost has no effect"),
        (&["--split", "node"], "--split has no effect"),
    ] {
        refused(&args!["bench", "--code", CODE; flags], part);
    }
    let rdp = ["bench", "--code", "rdp:k=4", "--reception", "1.1"].map(Into::into);
    refused(&rdp, "are for LT codes; got rdp:k=4,p=5");
    refused(
        &args!["bench", "--code", "lt:k=64,n=64,c=100", "--op", "decode"],
        "even all 64 blocks",
    );
    refused(&args!["schedule", CODE, "--asm"], "--asm has no effect");
    refused(&args!["schedule", CODE, "--search", "sa"], "need a code of the family cauchy");
    let folder = yard.path().join("shards");
    encode(&file, &folder, CODE, &[]);
    refused(&args!["export", &folder, "--format", "zfec", "--out", out], "zfec");
}
