//! `paritas tune`: decisions are reported, remembered in the user's cache directory, used by the
//! other commands, and ignored if they do not fit. Stored bytes never depend on them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Chance, Run, exit, finish, names, paritas};
use serde_json::Value;

/// The home directory of a user.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn tuning(&self) -> PathBuf {
        self.path().join("cache/paritas/tuning-1.json")
    }

    fn run(&self, arguments: &[OsString]) -> Run {
        let mut command = paritas(arguments);
        command.env("XDG_CACHE_HOME", self.path().join("cache")).current_dir(self.path());
        finish(command)
    }

    /// Returns the weight of an XOR that a weighted schedule reports.
    fn weight(&self, more: &[&str]) -> f64 {
        let schedule = args!["schedule", "4+2", "--cost", "weighted", "--json"; more];
        self.run(&schedule).expect(exit::DONE).result()["weight"].as_f64().unwrap()
    }

    fn is_tuned(&self) -> bool {
        self.run(&args!["doctor", "--json"]).expect(exit::DONE).result()["tuned"] == true
    }
}

#[test]
fn decisions_are_remembered_and_forgotten() {
    let home = Home::new();
    assert!(!home.is_tuned());
    let refused = home.run(&args!["tune", "0+2", "--json"]).expect(exit::ARGUMENTS);
    assert!(refused.results().is_empty(), "{refused}");
    let dry = args!["tune", "lt:k=16,n=40", "--dry-run", "--json"];
    let dry = home.run(&dry).expect(exit::DONE);
    assert!(!home.tuning().exists());
    // Settings for other codes are measured, too, although only an LT code is named.
    assert!(dry.results().iter().any(|line| line["about"].as_str().unwrap().starts_with("cauchy")));

    let tune = args!["tune", "4+2", "lt:k=64,n=112", "--json"];
    let lines = home.run(&tune).expect(exit::DONE).results();
    let (tuning, decisions) = lines.split_last().unwrap();
    // An XOR costs one more read of memory; a copy is a read and a write.
    let weight = decisions.iter().find(|line| line["question"] == "weight of an XOR").unwrap();
    let ratio: f64 = weight["chosen"].as_str().unwrap().parse().unwrap();
    let faster = weight["choices"][1]["ratio"].as_f64().unwrap();
    let expected = ((1.0 / faster - 1.0) / 3.0).clamp(0.1, 10.0);
    assert!((ratio - expected).abs() < 0.001, "{weight}");
    let kept = tuning["tuning"]["xor_weight"].as_f64().unwrap();
    assert!((kept / 1000.0 - ratio).abs() < 0.001, "{tuning}");
    let questions: Vec<&Value> = decisions.iter().map(|line| &line["question"]).collect();
    for question in ["kernel", "schedule", "word kernel", "stores", "prefetch", "threads", "packet"]
    {
        assert!(questions.iter().any(|asked| *asked == question), "{question}: {questions:?}");
    }
    for decision in decisions.iter().chain(&dry.results()) {
        let choices = decision["choices"].as_array().unwrap();
        let is_measured = decision["question"] == "weight of an XOR";
        let is_choice = choices.iter().any(|choice| choice["name"] == decision["chosen"]);
        assert!(is_measured || is_choice, "{decision}");
        for choice in choices {
            let number = |field: &str| choice[field].as_f64().unwrap();
            assert!(0.0 < number("gbps") && number("gbps") <= number("gbps_p90"), "{decision}");
            assert!(["ratio_low", "ratio", "ratio_high"].map(number).is_sorted(), "{decision}");
        }
    }
    assert_eq!(tuning["type"], "tuning");
    assert!(tuning["tuning"]["codes"]["cauchy:k=4,m=2,w=3"].is_object(), "{tuning}");
    // For an LT code there is only the kernel to choose, which says nothing about kernels for other
    // codes.
    let of_blocks = |line: &&Value| line["about"].as_str().unwrap().starts_with("lt:");
    let of_blocks: Vec<&Value> = decisions.iter().filter(of_blocks).collect();
    assert!(of_blocks.len() == 1 && of_blocks[0]["question"] == "kernel", "{of_blocks:?}");
    let lt = "lt:k=64,n=112,nodes=16,c=0.1,delta=0.5,variant=uniform,seed=0";
    assert_eq!(tuning["tuning"]["codes"][lt]["kernel"], of_blocks[0]["chosen"], "{tuning}");
    assert!(!of_blocks[0]["chosen"].as_str().unwrap().starts_with("jit"), "{of_blocks:?}");
    assert_eq!(tuning["path"], home.tuning().to_str().unwrap());
    assert!(home.is_tuned());
    let packets = decisions.iter().find(|line| line["question"] == "packet").unwrap();
    let packet = &tuning["tuning"]["codes"]["cauchy:k=4,m=2,w=3"]["packet"];
    assert_eq!(packet.to_string(), packets["chosen"].as_str().unwrap(), "{tuning}");
    let bench = |code| args!["bench", "--code", code, "--tuned-packet", "--reps", "1", "--json"];
    let measured = home.run(&bench("4+2")).expect(exit::DONE).result();
    assert_eq!(&measured["packet"], packet);
    let encode = |code, out| {
        args![
            "encode",
            "object",
            "--code",
            code,
            "--packet",
            "tuned",
            "--out",
            out,
            "--no-sync",
            "--json"
        ]
    };
    fs::write(home.path().join("object"), vec![7; 1 << 20]).unwrap();
    home.run(&encode("4+2", "tuned")).expect(exit::DONE);
    let stored = home.run(&args!["info", "tuned", "--json"]).expect(exit::DONE).result();
    assert_eq!(&stored["packet"], packet);
    let refused = home.run(&encode("5+2", "other")).expect(exit::ARGUMENTS).error();
    assert!(refused["message"].as_str().unwrap().contains("run `paritas tune"), "{refused}");
    let other = home.run(&bench("5+2")).expect(exit::DONE).result();
    assert_eq!(other["packet"], 64, "nothing is known about it");

    home.run(&args!["tune", "--forget"]).expect(exit::DONE);
    assert!(!home.is_tuned() && !home.tuning().exists());
    home.run(&args!["tune", "--forget"]).expect(exit::DONE);
    home.run(&args!["tune", "--forget", "4+2"]).expect(exit::ARGUMENTS);
    home.run(&args!["tune", "nonsense:k=2"]).expect(exit::ARGUMENTS);
    for code in ["isal-cauchy:k=2,m=1", "lt:k=16,n=24"] {
        home.run(&args!["tune", "--packet", code]).expect(exit::ARGUMENTS);
    }
    for more in [["--kernel", "scalar"], ["--pass", "smart"], ["--set", "65536"]] {
        home.run(&args!["tune", "4+2", more[0], more[1]]).expect(exit::ARGUMENTS);
    }
}

/// `bench` accepts the packet size that is found, and not only powers of two are tried.
#[test]
fn packets_are_searched_for_a_kernel() {
    let home = Home::new();
    let words = args!["tune", "--packet", "rdp:k=4", "--kernel", "packetwise64", "--pass", "smart"];
    let words: Vec<OsString> =
        words.into_iter().chain(args!["--set", "262144", "--json"]).collect();
    let [line] = &home.run(&words).expect(exit::DONE).results()[..] else { panic!("one set") };
    assert_eq!(line["about"], "rdp:k=4,p=5, 256 KiB, packetwise64");
    let choices = line["choices"].as_array().unwrap();
    let sizes = choices.iter().map(|choice| choice["name"].as_str().unwrap().parse::<usize>());
    let sizes: Vec<usize> = sizes.collect::<Result<_, _>>().unwrap();
    assert!(sizes.iter().all(|size| size.is_multiple_of(8)) && sizes.is_sorted(), "{sizes:?}");
    assert!(sizes.iter().any(|size| !size.is_power_of_two()), "{sizes:?}");
    let chosen = line["chosen"].as_str().unwrap();
    let bench = args!["bench", "--code", "rdp:k=4", "--kernel", "packetwise64", "--packet", chosen];
    home.run(&bench).expect(exit::DONE);
    assert!(!home.is_tuned());
}

/// An invented tuning that any machine can follow: kernels, stores, split and others.
const INVENTED: &str = r#"{"processor": "PROCESSOR", "kernel": "scalar", "word_kernel": "scalar",
    "nontemporal_from": 1, "prefetch": true, "threads": 2, "bytes_a_thread": 1, "split": "rows", "xor_weight": 725,
    "codes": {"cauchy:k=6,m=3,w=4": {"kernel": "scalar", "pass": "direct"}}}"#;

#[test]
fn the_other_commands_follow_and_store_the_same() {
    let home = Home::new();
    home.run(&args!["tune", "4+2"]).expect(exit::DONE);
    let measured: Value = serde_json::from_slice(&fs::read(home.tuning()).unwrap()).unwrap();
    let processor = measured["processor"].as_str().unwrap();
    let bench = args![
        "bench",
        "--code",
        "4+2",
        "--set",
        "100000",
        "--reps",
        "1",
        "--threads",
        "2",
        "--json"
    ];

    fs::remove_file(home.tuning()).unwrap();
    let found = home.run(&bench).expect(exit::DONE).result();
    assert!(found["kernel"] != "scalar" && found["split"] == "stripe", "{found}");
    assert_eq!(home.weight(&[]), 1.5);
    let mut content = vec![0; 3_000_000];
    Chance(9).fill(&mut content);
    fs::write(home.path().join("file"), content).unwrap();
    let codes = ["6+3", "raid6:k=5", "isal-rs:k=4,m=1", "rdp:k=4"];
    for code in codes {
        let encode = args!["encode", "file", "--code", code, "--out", code, "--no-sync"];
        home.run(&encode).expect(exit::DONE);
    }

    fs::write(home.tuning(), INVENTED.replace("PROCESSOR", processor)).unwrap();
    let found = home.run(&bench).expect(exit::DONE).result();
    assert!(found["kernel"] == "scalar" && found["split"] == "rows", "{found}");
    assert_eq!(home.weight(&[]), 0.725);
    assert_eq!(home.weight(&["--weight", "1.25"]), 1.25);
    for code in codes {
        let folder = home.path().join(code);
        let names = names(&folder);
        for name in [&names[0], &names[names.len() - 1]] {
            let before = fs::read(folder.join(name)).unwrap();
            fs::remove_file(folder.join(name)).unwrap();
            home.run(&args!["repair", code, "--no-sync"]).expect(exit::DONE);
            assert!(
                fs::read(folder.join(name)).unwrap() == before,
                "{code}: shard {name:?} differs"
            );
        }
    }
}

/// The number of needed blocks is simulated only once.
#[test]
fn simulations_are_remembered() {
    let home = Home::new();
    let ask = || {
        let codes = home.run(&args!["codes", "lt:k=16,n=40", "--json"]);
        codes.expect(exit::DONE).result()["reception"].clone()
    };
    let simulated = ask();
    assert_eq!(simulated["blocks"], 40);
    let folder = home.path().join("cache/paritas/reception");
    let files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), simulated);
    let average = simulated["average"].to_string();
    fs::write(file, text.replace(&average, "1.25")).unwrap();
    assert_eq!(ask()["average"], 1.25);
    fs::write(file, "{").unwrap();
    assert_eq!(ask(), simulated);
}

#[test]
fn what_does_not_fit_is_ignored() {
    let home = Home::new();
    fs::create_dir_all(home.tuning().parent().unwrap()).unwrap();
    for text in ["", "{", "[]", "{}", INVENTED] {
        fs::write(home.tuning(), text).unwrap();
        assert!(!home.is_tuned(), "{text}");
    }
}
