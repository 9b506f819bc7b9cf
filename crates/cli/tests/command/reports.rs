//! The JSON reports of every command: each field on which scripts rely is present and has the right
//! value. The file is long because every command has its reports here, with one set of checks.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::Engine;
use serde_json::{Value, json};

use crate::common::{self, Chance, Run, crc64_nvme, encoded, exit, names, paritas, run, schema};

/// Checks the type of a report, and that it has the fields on which scripts rely. (`run` compares
/// every line with the schema.)
fn check_report(kind: &str, report: &Value, promised: &[&str]) {
    assert_eq!(report["type"], kind, "{report}");
    for field in promised {
        assert!(report.get(field).is_some(), "{field} is not reported: {report}");
    }
}

/// `paritas schema` prints every field of every type, with its description.
#[test]
fn the_schema_of_each_command_is_printed() {
    let schema = schema::text();
    let whole = run(args!["schema"]).expect(exit::DONE).text();
    assert_eq!(&serde_json::from_str::<Value>(&whole).unwrap(), schema);
    let mut printed = BTreeSet::new();
    let refusal = run(args!["schema", "none"]).expect(exit::ARGUMENTS).stderr;
    let (_, commands) = refusal.trim().rsplit_once(": ").unwrap();
    for command in commands.split(", ") {
        let words: Vec<&str> = ["schema"].into_iter().chain(command.split(' ')).collect();
        let text = run(&words).expect(exit::DONE).text();
        // A schema is not a report, and `run` would check it as one.
        let part = paritas(words.iter().chain(&["--json"])).output().unwrap().stdout;
        let part: Value = serde_json::from_slice(&part).unwrap();
        for one in part["oneOf"].as_array().unwrap() {
            let kind = one["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            assert_eq!(part["$defs"][&kind], schema["$defs"][&kind]);
            for (field, property) in schema["$defs"][&kind]["properties"].as_object().unwrap() {
                let line = text.lines().find(|line| {
                    let name = line.trim_start().split(' ').next().unwrap();
                    name.trim_end_matches('?') == field
                });
                assert!(line.is_some(), "{command} lacks {field}: {text}");
                if let Some(about) = property["description"].as_str() {
                    assert!(text.contains(about), "{command} lacks {about}");
                }
            }
            printed.insert(kind);
        }
    }
    // A build without volumes lacks their commands.
    let is_there = |name: &&str| cfg!(feature = "volume") || !name.starts_with("volume-");
    assert_eq!(printed, schema::types(schema).filter(is_there).map(str::to_owned).collect());
}

/// Every property of every definition has a description.
#[test]
fn the_schema_describes_every_field() {
    let definitions = schema::text()["$defs"].as_object().unwrap();
    for (name, definition) in definitions {
        let Some(properties) = definition["properties"].as_object() else { continue };
        assert_eq!(definition["additionalProperties"], false, "{name}");
        for (field, property) in properties {
            let by_reference =
                property["$ref"].as_str().and_then(|place| place.strip_prefix("#/$defs/"));
            let referred = by_reference.map(|name| &definitions[name]["description"]);
            let said = [Some(&property["description"]), referred].into_iter().flatten();
            let is_sentence = |said: &Value| {
                said.as_str().is_some_and(|text| text.ends_with('.') && !text.contains(". "))
            };
            assert!(said.clone().any(is_sentence), "{name}.{field}");
        }
    }
    let any: BTreeSet<&str> = schema::text()["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["$ref"].as_str().unwrap().rsplit('/').next().unwrap())
        .collect();
    assert_eq!(any, schema::types(schema::text()).collect());
}

/// Tests the check itself: it refuses a line with an additional field, without a required field, or
/// with a field of another type.
#[test]
fn the_schema_refuses_what_it_does_not_describe() {
    let (_folder, shards, encoded) = encoded(b"bytes", "4+2", &[]);
    let verified = run(args!["verify", &shards, "--json"]).expect(exit::DONE).result();
    let error = run(args!["verify", "nowhere", "--json"]).error();
    for line in [encoded, verified, error] {
        assert_eq!(schema::flaw(&line), None);
        let mut more = line.clone();
        more["more"] = 1.into();
        assert!(schema::flaw(&more).unwrap().contains("more"), "{line}");
        let kind = line["type"].as_str().unwrap().to_owned();
        for field in schema::text()["$defs"][kind]["required"].as_array().unwrap() {
            let mut less = line.clone();
            less.as_object_mut().unwrap().remove(field.as_str().unwrap());
            assert!(schema::flaw(&less).is_some(), "{field} of {line}");
            let mut other = line.clone();
            other[field.as_str().unwrap()] = serde_json::json!({"no": "such"});
            assert!(schema::flaw(&other).is_some(), "{field} of {line}");
        }
    }
    assert!(schema::flaw(&serde_json::json!({"type": "nothing"})).is_some());
}

const COMMON: [&str; 6] = ["object", "name", "code", "stage", "stages", "length"];

#[test]
fn encode() {
    let content = Chance(1).bytes(100_000);
    let (_folder, shards, report) = encoded(&content, "4+2", &[]);
    let fields = ["digest", "stored_bytes", "seconds", "shards", "warnings"];
    check_report("encode", &report, &[&COMMON[..], &fields].concat());
    assert_eq!(report["name"], "object");
    assert_eq!(report["code"], "cauchy:k=4,m=2,w=3");
    assert_eq!(report["length"], 100_000);
    assert_eq!(report["digest"], blake3::hash(&content).to_hex().as_str());
    assert_eq!(report["object"].as_str().unwrap().len(), 32);
    let stored: usize = common::snapshot(&shards).values().map(Vec::len).sum();
    assert_eq!(report["stored_bytes"], stored);
    let paths = common::shard_paths(&report);
    assert_eq!(paths.len(), 6);
    for (index, path) in paths.iter().enumerate() {
        assert_eq!(report["shards"][index]["index"], index);
        assert!(path.is_file());
    }
    assert!(report["warnings"].as_array().unwrap().iter().all(Value::is_string));
}

#[test]
fn decode() {
    let content = Chance(2).bytes(100_000);
    let (folder, shards, encoded) = encoded(&content, "4+2", &[]);
    fs::remove_file(shards.join("object.1of6.paritas")).unwrap();
    let harmed = shards.join("object.2of6.paritas");
    let mut bytes = fs::read(&harmed).unwrap();
    bytes[500] ^= 1;
    fs::write(&harmed, bytes).unwrap();
    let out = folder.path().join("out");
    let report = run(args!["decode", &shards, "--out", &out, "--json"]).expect(exit::DONE).result();
    let fields = ["digest", "seconds", "path", "shards"];
    check_report("decode", &report, &[&COMMON[..], &fields].concat());
    for same in ["object", "name", "code", "length", "digest"] {
        assert_eq!(report[same], encoded[same]);
    }
    assert_eq!(report["path"], out.to_str().unwrap());
    let shards = report["shards"].as_array().unwrap();
    let shard = |index: u64| shards.iter().find(|shard| shard["index"] == index).unwrap();
    assert_eq!(shards.len(), 2, "{report}");
    assert_eq!(shard(1)["state"], "missing");
    assert_eq!(shard(2)["state"], "damaged");
    assert_eq!(shard(2)["path"], harmed.to_str().unwrap());
    assert!(shard(2)["notes"][0].as_str().unwrap().contains("offset"), "{report}");

    // If the output goes to a pipe, the report goes to standard error.
    let piped = run(args!["decode", harmed.parent().unwrap(), "--out", "-", "--json"]);
    let piped = piped.expect(exit::DONE);
    assert!(piped.stdout == content);
    let lines = common::json_lines(&piped.stderr).unwrap();
    assert_eq!(lines.last().unwrap()["type"], "decode");
}

#[test]
fn verify() {
    let (_folder, shards, _) = encoded(&Chance(3).bytes(1_000_000), "4+2", &[]);
    let intact = run(args!["verify", &shards, "--json"]).expect(exit::DONE).result();
    let fields = ["status", "tolerable_losses", "digest_ok", "seconds", "shards", "lost_ranges"];
    check_report("verify", &intact, &[&COMMON[..], &fields].concat());
    assert_eq!(intact["status"], "intact");
    assert_eq!(intact["tolerable_losses"], 2);
    assert_eq!(intact["digest_ok"], true);
    for shard in intact["shards"].as_array().unwrap() {
        let fields = ["index", "state", "path", "bad_lanes", "first_bad_offset", "notes"];
        assert!(fields.iter().all(|field| shard.get(field).is_some()), "{shard}");
    }
    for shard in [0, 2, 4] {
        let path = shards.join(format!("object.{shard}of6.paritas"));
        let mut bytes = fs::read(&path).unwrap();
        bytes[1000] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    // Only the first segment is lost.
    let info = run(args!["info", &shards, "--json"]).expect(exit::DONE).result();
    let lost = run(args!["verify", &shards, "--json"]).expect(exit::LOST).result();
    assert_eq!(lost["status"], "lost");
    assert_eq!(lost["tolerable_losses"], 0);
    let ranges = lost["lost_ranges"].as_array().unwrap();
    assert_eq!(ranges.len(), 1, "{lost}");
    assert_eq!(ranges[0]["start"], 0);
    assert_eq!(ranges[0]["end"], info["segment_bytes"]);
}

/// Changes the only lane of a shard with a single block, and gives it the matching checksum.
fn write_wrongly(path: &Path, shard: u32, object: &str) {
    let mut bytes = fs::read(path).unwrap();
    let length = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (front, trailer) = (16 + length(12) + 8, bytes.len() - 16);
    let end = trailer - length(trailer) - 8;
    bytes[front] ^= 1;
    let mut bound = u128::from_str_radix(object, 16).unwrap().to_be_bytes().to_vec();
    bound.extend(shard.to_le_bytes());
    bound.extend([0; 12]);
    bound.extend(&bytes[front..end]);
    bytes[end..end + 8].copy_from_slice(&crc64_nvme(&bound).to_le_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn verify_deep() {
    let (_folder, shards, encoded) = encoded(&Chance(3).bytes(1000), "4+2", &[]);
    let deep = args!["verify", &shards, "--deep", "--json"];
    let whole = run(&deep).expect(exit::DONE).result();
    check_report("verify", &whole, &["recomputed_segments", "wrong_lanes", "reason"]);
    assert_eq!((&whole["recomputed_segments"], &whole["status"]), (&json!(1), &json!("intact")));
    let path = shards.join("object.4of6.paritas");
    write_wrongly(&path, 4, encoded["object"].as_str().unwrap());
    let plain = run(args!["verify", &shards, "--json"]).expect(exit::DONE).result();
    assert_eq!(plain["recomputed_segments"], Value::Null);
    let wrong = run(&deep).expect(exit::CHECK_FAILED).result();
    assert_eq!(wrong["status"], "inconsistent");
    let lane = json!({"index": 4, "stage": 1, "lane": 0, "first_segment": 0, "segments": 1});
    assert_eq!(wrong["wrong_lanes"], json!([lane]));
    assert_eq!(wrong["shards"][4]["state"], "inconsistent");
    let text = run(args!["verify", &shards, "--deep"]).expect(exit::CHECK_FAILED).text();
    assert!(text.contains(": inconsistent") && text.contains("4of6.paritas: lane 0"), "{text}");
    fs::remove_file(path).unwrap();
    run(args!["repair", &shards]).expect(exit::DONE);
    run(&deep).expect(exit::DONE);
    // If data are missing, parity cannot be compared with them.
    fs::remove_file(shards.join("object.0of6.paritas")).unwrap();
    let text = run(args!["verify", &shards, "--deep"]).expect(exit::REPAIRABLE).text();
    assert!(text.contains("recomputed in 0 of 1 segments"), "{text}");
}

#[test]
fn repair() {
    let (_folder, shards, _) = encoded(&Chance(4).bytes(1000), "rdp:k=4", &[]);
    let lost = shards.join("object.3of6.paritas");
    fs::remove_file(&lost).unwrap();
    let report = run(args!["repair", &shards, "--json"]).expect(exit::DONE).result();
    check_report(
        "repair",
        &report,
        &[&COMMON[..], &["seconds", "repaired", "read_bytes", "digest_check"]].concat(),
    );
    assert_eq!(report["digest_check"], "right");
    assert_eq!(report["repaired"].as_array().unwrap().len(), 1);
    assert_eq!(report["repaired"][0]["index"], 3);
    assert_eq!(report["repaired"][0]["path"], lost.to_str().unwrap());
    let nothing = run(args!["repair", &shards, "--json"]).expect(exit::DONE).result();
    assert_eq!(nothing["repaired"].as_array().unwrap().len(), 0);
}

#[test]
fn promote() {
    let (_folder, shards, _) = encoded(&Chance(5).bytes(1000), "dpg:k=3,m=1,m2=2", &[]);
    let report = run(args!["promote", &shards, "--json"]).expect(exit::DONE).result();
    let fields = [
        "tolerance",
        "read_bytes",
        "read_payload_bytes",
        "damaged_segments",
        "missing",
        "seconds",
        "added",
        "warnings",
    ];
    check_report("promote", &report, &[&COMMON[..], &fields].concat());
    assert_eq!(report["added"][0]["index"], 4);
    let path = report["added"][0]["path"].as_str().unwrap();
    assert!(path.ends_with("object.4of5.paritas"), "{path}");
}

#[test]
fn info() {
    let (_folder, shards, encoded) = encoded(&Chance(5).bytes(1000), "evenodd:k=3", &[]);
    fs::remove_file(shards.join("object.3of5.paritas")).unwrap();
    let report = run(args!["info", &shards, "--json"]).expect(exit::DONE).result();
    let fields = [
        "layout",
        "packet",
        "length",
        "digest",
        "mode",
        "modified",
        "shard_count",
        "tolerance",
        "shards",
        "missing",
    ];
    check_report("info", &report, &[&COMMON[..], &fields].concat());
    assert_eq!(report["layout"], "packets");
    assert_eq!(report["digest"], encoded["digest"]);
    assert_eq!(report["shard_count"], 5);
    assert_eq!(report["tolerance"], 2);
    assert_eq!(report["missing"], json!([3]));
    assert!(report["segment_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    let file = &report["shards"][0]["files"][0];
    assert_eq!(report["shards"][0]["index"], 0);
    assert!(file["path"].as_str().unwrap().ends_with("object.0of5.paritas"));
    assert!(file["header"] == true && file["footer"] == true, "{file}");
}

/// Export to zfec's shares and import again, and the treatment of damaged shares.
#[test]
fn import_and_export() {
    let content = Chance(6).bytes(100_000);
    let (folder, shards, _) = encoded(&content, "zfec:k=3,m=3", &[]);
    let (shares, again) = (folder.path().join("shares"), folder.path().join("again"));
    let export = args!["export", &shards, "--format", "zfec", "--out", &shares, "--json"];
    let report = run(&export).expect(exit::DONE).result();
    check_report("export", &report, &[&COMMON[..], &["format", "seconds", "files"]].concat());
    assert_eq!(report["files"].as_array().unwrap().len(), 6);
    run(&export).expect(exit::ARGUMENTS);

    let share = |index: usize| shares.join(format!("object.{index}_6.fec"));
    fs::remove_file(share(0)).unwrap();
    let import = args!["import", &shares, "--format", "zfec", "--out", &again, "--json"];
    let report = run(&import).expect(exit::DONE).result();
    let fields = ["format", "digest", "stored_bytes", "seconds", "missing", "shards", "warnings"];
    check_report("import", &report, &[&COMMON[..], &fields].concat());
    assert_eq!((&report["format"], &report["missing"]), (&"zfec".into(), &vec![0].into()));
    assert_eq!((&report["name"], &report["code"]), (&"object".into(), &"zfec:k=3,m=3".into()));
    let out = folder.path().join("out");
    run(args!["decode", &again, "--out", &out]).expect(exit::DONE);
    assert!(fs::read(&out).unwrap() == content);

    let mut bytes = fs::read(share(4)).unwrap();
    bytes[9000] ^= 1;
    fs::write(share(4), bytes).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    let import = args!["import", &shares, "--format", "zfec", "--out", &elsewhere];
    let damaged = run(&import).expect(exit::CHECK_FAILED).stderr;
    assert!(damaged.contains("object.4_6.fec) is damaged") && damaged.contains("leave it out"));
    (1..4).for_each(|index| fs::remove_file(share(index)).unwrap());
    run(&import).expect(exit::LOST);
    fs::write(share(0), "").unwrap();
    run(&import).expect(exit::NOT_RECOGNISED);
    run(args!["import", &shares, "--format", "hdfs", "--out", &elsewhere]).expect(exit::ARGUMENTS);
    let cell = run([&import[..], &args!["--cell", "64"]].concat()).expect(exit::ARGUMENTS);
    assert!(cell.stderr.contains("--cell is for fragments of HDFS only"), "{cell}");
    let packet = args!["--packet", "64", "--out", &elsewhere];
    let packet = [&args!["export", &shards, "--format", "zfec"], &packet[..]].concat();
    let packet = run(packet).expect(exit::ARGUMENTS);
    assert!(packet.stderr.contains("--packet is for Jerasure's techniques"), "{packet}");
    assert!(!elsewhere.exists(), "an empty folder is left");
}

#[test]
fn what_fragments_tell_is_kept_and_what_not_is_warned_of() {
    let (folder, shards, _) = encoded(&Chance(7).bytes(1000), "cauchy-good:k=3,m=2,w=3", &[]);
    let [jerasure, again] = ["jerasure", "again"].map(|name| folder.path().join(name));
    let export =
        args!["export", &shards, "--format", "jerasure", "--packet", "16", "--out", &jerasure];
    run(export).expect(exit::DONE);
    run(args!["import", &jerasure, "--format", "jerasure", "--out", &again]).expect(exit::DONE);
    let info = run(args!["info", &again, "--json"]).expect(exit::DONE).result();
    assert_eq!(info["packet"], 16);

    let (folder, shards, _) = encoded(&Chance(8).bytes(1000), "backblaze:k=3,m=2", &[]);
    let [parts, again] = ["parts", "again"].map(|name| folder.path().join(name));
    run(args!["export", &shards, "--format", "klauspost", "--out", &parts]).expect(exit::DONE);
    let import = args![
        "import",
        &parts,
        "--format",
        "klauspost",
        "--code",
        "backblaze:k=3,m=2",
        "--out",
        &again,
        "--json",
    ];
    let warns = |run: &Run| {
        let warnings = run.result()["warnings"].as_array().unwrap().clone();
        warnings
            .iter()
            .any(|text| text.as_str().unwrap().contains("--length leaves the padding out"))
    };
    let padded = run(&import).expect(exit::DONE);
    assert!(warns(&padded) && padded.stderr.contains("all 1002 bytes are kept"), "{padded}");
    let known = run([&import[..], &args!["--length", "1000", "--force"]].concat());
    assert!(!warns(&known.expect(exit::DONE)));
    let short = run([&import[..], &args!["--length", "990", "--force"]].concat());
    let short = short.expect(exit::ARGUMENTS).error();
    let message = short["message"].as_str().unwrap();
    assert!(message.contains("--length is 990, but the file has at least 99"), "{message}");
}

#[test]
fn names_that_are_no_text_are_base64() {
    let name = OsStr::from_bytes(b"caf\xe9.tar");
    let base64 = base64::engine::general_purpose::STANDARD.encode(name.as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, "bytes").unwrap();
    let (shards, out) = (folder.path().join("shards"), folder.path().join("out"));
    let reports = [
        run(args!["encode", &file, "--out", &shards, "--json"]),
        run(args!["info", &shards, "--json"]),
        run(args!["verify", &shards, "--json"]),
        run(args!["repair", &shards, "--json"]),
        run(args!["decode", &shards, "--out", &out, "--json"]),
    ];
    for report in reports {
        let report = report.expect(exit::DONE).result();
        assert_eq!(report["name_bytes"], base64.as_str(), "{report}");
        assert!(report.get("name").is_none(), "{report}");
        let path = match report["type"].as_str().unwrap() {
            "encode" | "verify" => &report["shards"][0],
            "info" => &report["shards"][0]["files"][0],
            _ => continue,
        };
        let bytes = path["path_bytes"].as_str().unwrap_or_else(|| panic!("no path in {report}"));
        let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).unwrap();
        assert!(bytes.ends_with(b"caf\xe9.tar.0of6.paritas"), "{report}");
    }
}

#[test]
fn codes() {
    let families = run(["codes", "--json"]).expect(exit::DONE).results();
    for family in &families {
        let texts = ["name", "summary", "limits", "example"];
        let figures = ["tolerance", "overhead", "ones", "fewest_ones", "density"];
        check_report("family", family, &[&texts[..], &figures].concat());
        let example = family["example"].as_str().unwrap();
        match family["density"].as_f64() {
            Some(density) => assert!(density >= 1.0 && family["tolerance"].is_u64(), "{family}"),
            // The ones of a code that promises no tolerance have no lower bound.
            None => {
                assert!(example.starts_with("lt:") && family["tolerance"].is_null(), "{family}")
            }
        }
        let code = run(["codes", example, "--json"]).expect(exit::DONE).result();
        let fields = [
            "code",
            "nodes",
            "data_nodes",
            "tolerance",
            "data_cells",
            "parity_cells",
            "overhead",
            "ones",
            "fewest_ones",
            "density",
            "pin",
            "faster",
            "losses",
        ];
        check_report("code", &code, &fields);
        assert!(code["faster"].is_null(), "{code}");
        // The canonical form is a fixed point.
        let canonical = code["code"].as_str().unwrap();
        let again = run(["codes", canonical, "--json"]).expect(exit::DONE).result();
        assert_eq!(again["code"], canonical);
    }
    let wide = run(["codes", "cauchy:k=128,m=32", "--json"]).expect(exit::DONE).result();
    assert_eq!(wide["faster"]["code"], "isal-cauchy:k=128,m=32");
    assert!(wide["faster"]["words_gbps"].as_f64() > wide["faster"]["gbps"].as_f64());
    let text = run(["codes", "cauchy:k=128,m=32"]).expect(exit::DONE).text();
    assert!(text.contains("isal-cauchy:k=128,m=32 is faster with GFNI"), "{text}");
    for family in ["cauchy", "rdp"] {
        assert!(families.iter().any(|found| found["name"] == family), "{family} is not listed");
    }
    let code = run(["codes", "rdp:k=6", "--matrix", "--json"]).expect(exit::DONE).result();
    check_report("code", &code, &["matrix", "matrix_rows", "matrix_columns"]);
    let rows: Vec<&str> =
        code["matrix"].as_array().unwrap().iter().map(|row| row.as_str().unwrap()).collect();
    assert_eq!(code["parity_cells"], rows.len());
    assert!(rows.iter().all(|row| code["data_cells"] == row.len()));
    let ones: usize = rows.iter().map(|row| row.matches('1').count()).sum();
    assert_eq!(code["ones"], ones);
    // 6 nodes of 6 packets, P and Q: 2·6·6 + 5.
    assert_eq!(code["fewest_ones"], 77);
}

#[test]
fn a_code_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.svg");
    let report = run(args!["codes", "xcode:n=5", "--svg", &path, "--json"]);
    let report = report.expect(exit::DONE).result();
    check_report("code", &report, &["svg"]);
    assert_eq!(report["svg"], path.to_str().unwrap());
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("xcode:n=5: 30 ones") && svg.contains("p4.4"));
    let nowhere = folder.path().join("nowhere").join("matrix.svg");
    run(args!["codes", "4+2", "--svg", &nowhere]).expect(exit::IO);
    // An existing file is replaced only with --force, and as a whole.
    let refused = run(args!["codes", "4+2", "--svg", &path]).expect(exit::ARGUMENTS);
    assert!(refused.stderr.contains("matrix.svg exists"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), svg);
    run(args!["codes", "4+2", "--svg", &path, "--force"]).expect(exit::DONE);
    assert!(fs::read_to_string(&path).unwrap().contains("k=4,m=2"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let huge = run(args!["codes", "cauchy-orig:k=64,m=64,w=32", "--svg", &path]);
    assert!(huge.expect(exit::ARGUMENTS).stderr.contains("at most 1000000 ones"));
}

#[test]
fn schedule() {
    let counts = [
        "ones",
        "xors",
        "copies",
        "total",
        "ops",
        "temps",
        "ternary",
        "instructions",
        "loads",
        "stores",
        "reads",
    ];
    let number = |report: &Value, field: &str| report[field].as_u64().unwrap();
    let spec = "cauchy:k=10,m=4,w=4";
    let report = run(["schedule", spec, "--json"]).expect(exit::DONE).result();
    let fields = [
        "code",
        "erased",
        "stage",
        "pass",
        "order",
        "cost",
        "weight",
        "fewest_reads",
        "kernel",
        "plan_seconds",
        "plan_budget",
        "plan_steps",
        "plan_cut",
        "plan_known",
        "search",
    ];
    check_report("schedule", &report, &[&fields[..], &counts].concat());
    assert_eq!(report["code"], spec);
    assert_eq!(number(&report, "xors") + number(&report, "copies"), number(&report, "total"));
    assert_eq!(number(&report, "copies"), number(&report, "ops"));
    assert_eq!(number(&report, "ops"), 16 + number(&report, "temps"));
    assert!(number(&report, "loads") >= 40 && number(&report, "stores") >= 16);
    let reads: Vec<u64> =
        report["reads"].as_array().unwrap().iter().map(|cells| cells.as_u64().unwrap()).collect();
    assert_eq!(reads, [vec![4; 10], vec![0; 4]].concat());

    // Computed row by row, the total cost equals the number of ones in the matrix.
    let direct = run(["schedule", spec, "--pass", "direct", "--json"]).expect(exit::DONE).result();
    assert_eq!(direct["total"], direct["ones"]);
    assert_eq!(direct["temps"], 0);
    assert!(number(&report, "xors") < number(&direct, "xors"));
    // A cost that is asked for is not worse than without asking.
    for spec in ["6+3", "12+4", "20+4"] {
        let of = |more: &[&str]| {
            let arguments = [&["schedule", spec, "--json"], more].concat();
            let report = run(arguments).expect(exit::DONE).result();
            (number(&report, "xors"), 3 * number(&report, "xors") + 2 * number(&report, "copies"))
        };
        let usual = of(&[]);
        assert!(of(&["--cost", "xors"]).0 <= usual.0, "{spec}");
        assert!(of(&["--cost", "weighted", "--weight", "1.5"]).1 <= usual.1, "{spec}");
    }

    let erased = run(["schedule", spec, "--erase", "0,13", "--text", "--json"]);
    let erased = erased.expect(exit::DONE).result();
    check_report("schedule", &erased, &["inputs", "outputs", "text"]);
    assert_eq!(erased["erased"], json!([0, 13]));
    assert_eq!(
        erased["outputs"],
        json!([0, 13].map(|node| [0, 1, 2, 3].map(|row| [node, row])).concat())
    );
    let text = run(["schedule", spec, "--erase", "0,13", "--text"]).expect(exit::DONE).text();
    assert!(text.contains("\n# o0 to o3: node 0, rows 0 to 3\n# o4 to o7: node 13, "), "{text}");
    let parsed: paritas::research::Schedule =
        text[text.find("inputs ").unwrap()..].parse().unwrap();
    assert_eq!(parsed.to_string(), erased["text"]);
    assert!(erased["reads"][0] == 0 && erased["reads"][13] == 0, "{erased}");
    assert!(!erased["text"].as_str().unwrap().is_empty());

    // With the fewest reads, RDP rebuilds a data shard from half of its rows and half of its
    // diagonals.
    let total = |more: &[&str]| -> u64 {
        let arguments = [&["schedule", "rdp:k=10", "--erase", "0", "--json"], more].concat();
        let report = run(arguments).expect(exit::DONE).result();
        report["reads"].as_array().unwrap().iter().map(|cells| cells.as_u64().unwrap()).sum()
    };
    assert_eq!((total(&[]), total(&["--fewest-reads"])), (100, 75));
    for pass in ["direct", "smart", "um", "wm", "slp"] {
        for order in ["parity", "data", "fused"] {
            let arguments = ["schedule", "rdp:k=6", "--pass", pass, "--order", order, "--json"];
            let report = run(arguments).expect(exit::DONE).result();
            assert!(report["pass"] == pass && report["order"] == order, "{report}");
        }
    }
}

/// The weight of the executed instructions does not rise if it is the cost to minimise, or if the
/// operations are listed in the order of the compiled kernel.
#[test]
fn fused_schedules() {
    let report = |more: &[&str]| {
        let spec = "cauchy:k=6,m=3,w=8";
        let report = run([&["schedule", spec, "--json", "--rounds", "60"], more].concat());
        report.expect(exit::DONE).result()
    };
    for kernel in ["jit-avx2", "jit-avx512", "jit-neon"] {
        let weigh = |report: &Value| {
            let count = |field: &str| report[field].as_u64().unwrap();
            4 * (count("loads") + 2 * count("stores")) + count("instructions")
        };
        let [by_total, by_fused] =
            ["total", "fused"].map(|cost| report(&["--kernel", kernel, "--cost", cost]));
        assert_eq!(by_fused["kernel"], kernel);
        assert!(weigh(&by_fused) <= weigh(&by_total), "{by_fused} {by_total}");
        let ordered = report(&["--kernel", kernel, "--order", "fused"]);
        assert!(weigh(&ordered) <= weigh(&by_total), "{kernel}: {ordered}");
    }
    let bench = ["bench", "--code", "4+2", "--set", "65536", "--reps", "1", "--cost", "fused"];
    run([&bench[..], &["--kernel", "scalar"]].concat()).expect(exit::ARGUMENTS);
    if paritas::research::can_compile().is_ok() {
        run([&bench[..], &["--kernel", "jit"]].concat()).expect(exit::DONE);
    }
    let arguments = ["schedule", "4+2", "--kernel", "avx2"];
    assert!(run(arguments).expect(exit::ARGUMENTS).stderr.contains("must be a compiled kernel"));
}

/// --strategy and --normalise change the matrix that is scheduled. Codes without a Cauchy matrix
/// refuse --normalise and --search.
#[test]
fn schedules_of_other_matrices() {
    let plain = "cauchy:k=6,m=2,w=4,points=0.1.2.3.4.5.6.7";
    let total = |arguments: &[&str]| {
        let report = run([&["schedule", plain, "--json"], arguments].concat()).expect(exit::DONE);
        report.result()["total"].as_u64().unwrap()
    };
    // The dissertation's table 3.5, natural matrices: strategies (0, 0) and (1, 0).
    assert_eq!(total(&["--strategy", "0,0"]), 112);
    assert_eq!(total(&["--normalise", "off", "--pass", "direct"]), 112);
    assert_eq!(total(&["--strategy", "1,0"]), 68);
    for strategy in ["2,0", "1,4", "1", "x"] {
        run(["schedule", plain, "--strategy", strategy]).expect(exit::ARGUMENTS);
    }
    run(["schedule", "rdp:k=6", "--normalise", "on"]).expect(exit::ARGUMENTS);
    run(["schedule", "rdp:k=6", "--search", "ga"]).expect(exit::ARGUMENTS);
}

/// A search takes only the parameters of its own method, within their ranges.
#[test]
fn searches_refuse_parameters() {
    let refused = |arguments: &str| {
        let arguments = ["schedule cauchy:k=4,m=2,w=4", arguments].join(" ");
        run(arguments.split(' ')).expect(exit::ARGUMENTS).stderr
    };
    for (arguments, reason) in [
        ("--patience 9", "--patience needs --search sa, ga or ga-random"),
        ("--search local --accept 0.5", "--accept needs --search sa"),
        ("--search ga --cooling 0.5", "--cooling needs --search sa"),
        ("--search sa --population 9", "--population needs --search ga or ga-random"),
        ("--search sa --accept 2", "--accept <RATE>': must be a number from 0 to 1; got `2`"),
        ("--search ga --population 1", "a population needs 2 to 1000 individuals; got 1"),
        ("--search ga --patience 0", "must be at least 1; got 0"),
        ("--search ga --select 0", "--select <RATE>': must be above 0; got `0`"),
        ("--search sa --cooling inf", "must be a number of at least 0; got `inf`"),
        ("--search local --normalise off", "--search local scales the matrix"),
        ("--pass um --cost xors", "--cost needs --pass slp"),
        ("--set 1", "--set 1: shards of one strip of cauchy:k=4,m=2,w=4 have 1.50 KiB together"),
        ("--search ga --converge --evaluations 9", "cannot be used with"),
        ("--seed 2", "--seed needs --search sa, ga, ga-random or local"),
        ("--evaluations 9", "--evaluations needs --search"),
        ("--weight 2", "--weight needs --cost weighted"),
    ] {
        let stderr = refused(arguments);
        assert!(stderr.contains(reason), "{arguments}: {stderr}");
    }
}

/// The same seed gives the same bytes on any number of threads, and the spec of the result gives
/// the same counts.
#[test]
fn searches_are_reproducible() {
    let names = ["sa", "ga", "ga-random", "local"];
    let ends = [&["--evaluations", "300"][..], &["--converge"]];
    for (search, end) in names.iter().flat_map(|name| ends.map(|end| (*name, end))) {
        let arguments = [&["schedule", "cauchy:k=4,m=2,w=4", "--search", search], end].concat();
        let on = |threads: &str| {
            let mut command = paritas([&arguments[..], &["--json"]].concat());
            command.env("RAYON_NUM_THREADS", threads);
            common::finish(command).expect(exit::DONE)
        };
        let (one, two) = (on("1"), on("2"));
        assert!(one.stdout == two.stdout, "{search}");
        let report = one.result();
        assert_eq!(report["search"]["method"], search);
        assert!(report["plan_seconds"].is_null());
        let again = run(["schedule", report["code"].as_str().unwrap(), "--json"]);
        assert_eq!(again.expect(exit::DONE).result()["total"], report["total"]);
    }
}

#[test]
fn bench_and_every_kernel_of_doctor() {
    let doctor = run(["doctor", "--json"]).expect(exit::DONE).result();
    let fields = ["version", "architecture", "threads", "packet", "kernel", "kernels"];
    assert!(fields.iter().all(|field| doctor.get(field).is_some()), "{doctor}");
    assert_eq!(doctor["version"], env!("CARGO_PKG_VERSION"));
    let kernels: Vec<&str> =
        doctor["kernels"].as_array().unwrap().iter().map(|k| k["name"].as_str().unwrap()).collect();
    assert!(kernels.contains(&"scalar"));
    let words = doctor["word_kernels"].as_array().unwrap();
    assert!(words.iter().any(|kernel| kernel["name"] == "words-scalar"));
    assert!(words.iter().all(|kernel| kernel["right"] == true), "{doctor}");
    assert!(kernels.contains(&doctor["kernel"].as_str().unwrap()));
    for operation in ["encode", "decode", "update"] {
        for kernel in kernels.iter().chain(&["auto"]) {
            let report = run([
                "bench", "--code", "4+2", "--set", "65536", "--reps", "3", "--json", "--kernel",
                kernel, "--op", operation,
            ]);
            let report = report.expect(exit::DONE).result();
            check_bench(&report);
            assert_eq!(report["op"], operation);
            assert!(*kernel == "auto" || report["kernel"] == **kernel, "{report}");
        }
    }
}

/// Codes of two stages: what each stage computes and reads, and how fast.
#[test]
fn stages_are_described_planned_and_measured() {
    for interleave in ["none", "first", "all"] {
        let spec = format!("bbdpg:k=3,m=2,m2=3,w=3,interleave={interleave}");
        let code = run(["codes", &spec, "--json"]).expect(exit::DONE).result();
        let count = |stage: usize, field: &str| code["stages"][stage][field].as_u64().unwrap();
        assert_eq!([count(0, "tolerance"), count(1, "tolerance")], [2, 3]);
        assert_eq!([count(0, "reads"), count(1, "reads")], [3 * 3 * 3, 5 * 3]);
        assert_eq!([count(0, "makes"), count(1, "makes")], [2 * 3 * 3, 3 * 3]);
        let plan = run(["schedule", &spec, "--stage", "2", "--json"]).expect(exit::DONE).result();
        let reads = plan["reads"].as_array().unwrap().iter().map(|cells| cells.as_u64().unwrap());
        assert_eq!(reads.sum::<u64>(), 5 * 3);
        let lost = ["schedule", &spec, "--erase", "0,4", "--stage", "1", "--json"];
        assert_eq!(run(lost).expect(exit::DONE).result()["stage"], 1);
        let settings = ["--set", "65536", "--reps", "3", "--json"];
        for operation in [&["encode"][..], &["promote"], &["decode"], &["decode", "--stage", "1"]] {
            let bench = [&["bench", "--code", &spec][..], &settings, &["--op"], operation].concat();
            check_bench(&run(bench).expect(exit::DONE).result());
        }
    }
    run(["bench", "--code", "4+2", "--op", "promote"]).expect(exit::ARGUMENTS);
    run(["schedule", "4+2", "--stage", "2"]).expect(exit::ARGUMENTS);
}

#[test]
fn packets_are_swept_and_orders_chosen() {
    let fused = ["--order", "fused", "--kernel", "scalar"];
    run([&["bench", "--code", "4+2"], &fused[..]].concat()).expect(exit::ARGUMENTS);

    // A strip of all nodes of 4+2 has 18 packets.
    let sweep = ["bench", "--code", "4+2", "--set", "1200", "--reps", "1", "--json", "--sweep"];
    let sizes = run([&sweep[..], &["packet", "--order", "data"]].concat()).expect(exit::DONE);
    let sizes = sizes.results();
    let field =
        |name: &str| -> Vec<Value> { sizes.iter().map(|line| line[name].clone()).collect() };
    assert_eq!(field("packet"), [8, 16, 32, 64]);
    assert!(field("order").iter().all(|order| order == "data"), "{sizes:?}");
    run([&sweep[..], &["packet", "--packet", "64"]].concat()).expect(exit::ARGUMENTS);
    run(["bench", "--code", "lt:k=16,n=40", "--sweep", "packet"]).expect(exit::ARGUMENTS);
    for (refused, why) in [
        ("bench --code 4+2 --sweep packet --set 10", "no packet of cauchy:k=4,m=2,w=3 fits"),
        ("bench --code 4+2 --packet 1073741824", "have 18.00 GiB together; at most 16.00 GiB"),
        ("bench --code lt:k=16,n=40 --kernel datawise64", "runs whole packets"),
        ("tune 4+2 --dry-run --kernel avx2", "cannot be used with"),
        ("tune --packet 4+2 --set 143", "no packet of cauchy:k=4,m=2,w=3 fits into a set of 143"),
        ("bench --code 4+2 --erase 6 --op decode", "nodes 0 to 5 of cauchy:k=4,m=2,w=3; got 6"),
        ("bench --code 4+2 --erase 0", "--erase is for --op decode"),
        ("bench --code 4+2 --stage 1", "--stage is for --op decode"),
        ("bench --code xcode:n=5 --op update", "node 0 of xcode:n=5 holds both"),
        ("bench --code 4+2 --kernel words-avx2", "is not chosen by its own name"),
    ] {
        let refused = run(refused.split(' ').collect::<Vec<_>>()).expect(exit::ARGUMENTS);
        assert!(refused.stderr.contains(why), "{refused}");
    }
}

/// An option that would change nothing is refused.
#[test]
fn benches_refuse_options_without_effect() {
    for (refused, why) in [
        ("backblaze:k=6,m=3 --packet 64", "--packet needs a code in packets"),
        ("backblaze:k=6,m=3 --tuned-packet", "--tuned-packet needs a code in packets"),
        ("backblaze:k=6,m=3 --sweep packet", "--sweep packet needs a code in packets"),
        ("backblaze:k=6,m=3 --pass direct", "--pass needs a code in packets"),
        ("backblaze:k=6,m=3 --cost xors", "--cost needs a code in packets"),
        ("backblaze:k=6,m=3 --order fused", "--order needs a code in packets"),
        ("backblaze:k=6,m=3 --kernel datawise64", "--kernel datawise64 needs a code in packets"),
        ("backblaze:k=6,m=3 --against packet=128", "--against packet needs a code in packets"),
        ("4+2 --against-code isal-rs:k=4,m=2 --against order=data", "--against order needs a code"),
        ("4+2 --against-code lt:k=64,n=128", "--against-code must not name an LT code"),
        ("4+2 --split rows", "--split has no effect with one thread"),
        ("4+2 --bytes-a-thread 1000", "--bytes-a-thread has no effect with one thread"),
        ("4+2 --threads 2 --against threads=1,split=rows", "--against split has no effect"),
        ("lt:k=64,n=128 --packet 64", "--packet has no effect on lt:k=64"),
    ] {
        let words = format!("bench --code {refused}");
        let refused = run(words.split(' ').collect::<Vec<_>>()).expect(exit::ARGUMENTS);
        assert!(refused.stderr.contains(why), "{refused}");
    }
    // What both runs share needs to matter for one of them.
    let shared = ["bench", "--code", "4+2", "--against-code", "isal-rs:k=4,m=2", "--packet", "128"];
    run([&shared[..], &["--set", "65536", "--reps", "3"]].concat()).expect(exit::DONE);
}

/// A schedule in the order data adds to cells, which compiled kernels do not do: what is reported
/// is the kernel that ran, and the roofline is its own.
#[test]
fn benches_name_the_kernel_that_ran() {
    let kernels = paritas::Kernel::available();
    let compiled = kernels.filter(|kernel| kernel.machine().is_some());
    for kernel in compiled.map(|kernel| kernel.name()) {
        let words = ["bench", "--code", "4+2", "--set", "65536", "--reps", "3", "--json"];
        let ran = run([&words[..], &["--order", "data", "--kernel", kernel]].concat());
        let ran = ran.expect(exit::DONE);
        let name = ran.result()["kernel"].as_str().unwrap().to_owned();
        assert!(!name.starts_with("jit") && ran.stderr.contains("cannot serve"), "{ran}");
    }
}

/// Two ways to run a code are measured in pairs.
#[test]
fn settings_are_compared_in_pairs() {
    let bench = ["bench", "--code", "rdp:k=4", "--set", "65536", "--reps", "3", "--json"];
    let kernel = ["--kernel", "datawise64", "--order", "data", "--packet", "128", "--against"];
    let against = "kernel=packetwise64,order=parity,packet=64";
    let line = run([&bench[..], &kernel, &[against]].concat()).expect(exit::DONE).result();
    assert_eq!(line["type"], "comparison");
    assert_eq!(line["against"], against);
    assert_eq!([&line["kernel"], &line["against_kernel"]], ["datawise64", "packetwise64"]);
    let number = |field: &str| line[field].as_f64().unwrap();
    assert!(number("ratio_low") <= number("ratio") && number("ratio") <= number("ratio_high"));
    assert!(number("gbps_median") > 0.0 && number("against_gbps") > 0.0, "{line}");
    // Three pairs give no verdict.
    assert_eq!((&line["pairs"], &line["noisy"]), (&3.into(), &true.into()));
    run([&bench[..], &["--against", "kernel"]].concat()).expect(exit::ARGUMENTS);
    let lt = ["bench", "--code", "lt:k=16,n=40"];
    run([&lt[..], &["--against", "kernel=scalar"]].concat()).expect(exit::ARGUMENTS);
    run([&lt[..], &["--best-roofline"]].concat()).expect(exit::ARGUMENTS);
    let words = ["bench", "--code", "isal-cauchy:k=4,m=2", "--set", "65536", "--reps", "3"];
    check_bench(
        &run([&words[..], &["--best-roofline", "--json"]].concat()).expect(exit::DONE).result(),
    );
}

/// The roofline uses the registers of the measured kernel, or with --best-roofline those of the
/// best one.
#[test]
fn rooflines_are_of_the_same_kernel_unless_asked() {
    let words = ["bench", "--code", "rdp:k=6", "--kernel", "packetwise64", "--packet", "2048"];
    let more = ["--set", "1000000", "--reps", "21", "--json"];
    let roofline = |last: &[&str]| {
        let line = run([&words[..], &more, last].concat()).expect(exit::DONE).result();
        line["roofline_gbps"].as_f64().unwrap()
    };
    let best = paritas::Kernel::best(64).vector_bytes();
    // The measured kernel has registers of 8 bytes. With 16 bytes or more, XORs in the cache are
    // several times as fast.
    assert!(best < 16 || roofline(&["--best-roofline"]) > 1.2 * roofline(&[]));
}

/// A chosen packet is stored, and readers of the shards find it there.
#[test]
fn packets_of_files_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let content = Chance(19).bytes(500_000);
    fs::write(path("object"), &content).unwrap();
    let encode = |packet: &str, code: &str| {
        let (object, shards) = (path("object"), path(packet));
        run(args!["encode", object, "--out", shards, "--packet", packet, "--code", code])
    };
    for (packet, code) in [("8", "4+2"), ("4096", "rdp:k=4")] {
        encode(packet, code).expect(exit::DONE);
        let shards = path(packet);
        let info = run(args!["info", &shards, "--json"]).expect(exit::DONE).result();
        assert_eq!(info["packet"].to_string(), packet);
        fs::remove_file(shards.join(&names(&shards)[1])).unwrap();
        run(args!["repair", &shards]).expect(exit::DONE);
        let copy = path("copy");
        run(args!["decode", &shards, "--out", &copy, "--force"]).expect(exit::DONE);
        assert!(fs::read(copy).unwrap() == content);
    }
    for packet in ["0", "1048577", "some"] {
        encode(packet, "4+2").expect(exit::ARGUMENTS);
        assert!(!path(packet).exists() || names(&path(packet)).is_empty());
    }
}

/// A code with data and parity on every node.
#[test]
fn bench_of_a_vertical_code() {
    for operation in ["encode", "decode"] {
        let settings = ["--set", "65536", "--reps", "3", "--json", "--op", operation];
        let report = run([&["bench", "--code", "xcode:n=5"][..], &settings].concat());
        check_bench(&report.expect(exit::DONE).result());
    }
}

#[test]
fn bench_of_an_lt_code() {
    for operation in ["encode", "decode"] {
        let settings = ["--set", "65536", "--reps", "3", "--json", "--op", operation];
        let report = run([&["bench", "--code", "lt:k=16,n=40"][..], &settings].concat());
        let report = report.expect(exit::DONE).result();
        check_bench(&report);
        check_report("bench", &report, &["block_bytes", "blocks", "reception", "seed"]);
    }
}

#[test]
fn doctor() {
    let report = run(["doctor", "--json"]).expect(exit::DONE).result();
    check_report("doctor", &report, &["kernel", "kernels"]);
    let right = |kernel: &Value| kernel["right"] == true;
    assert!(report["kernels"].as_array().unwrap().iter().all(right), "{report}");
}

fn check_bench(report: &Value) {
    let fields = [
        "gbps_median",
        "gbps_p90",
        "gbps_min",
        "gbps_max",
        "roofline_gbps",
        "roofline_gbps_p90",
        "roofline_fraction",
        "roofline_fraction_low",
        "roofline_fraction_high",
        "pairs",
        "verdict",
        "noisy",
        "kernel",
        "packet",
    ];
    check_report("bench", report, &fields);
    let number = |field: &str| report[field].as_f64().unwrap();
    let speeds = ["gbps_min", "gbps_median", "gbps_p90", "gbps_max"].map(number);
    assert!(0.0 < speeds[0] && speeds.is_sorted(), "{report}");
    let interval = ["roofline_fraction_low", "roofline_fraction", "roofline_fraction_high"];
    assert!(interval.map(number).is_sorted(), "{report}");
    assert_eq!(report["set_bytes"], 65536);
    assert_eq!((&report["reps"], &report["pairs"]), (&3.into(), &3.into()));
    // Three pairs are too few for a verdict.
    assert_eq!((&report["verdict"], &report["noisy"]), (&"too noisy".into(), &true.into()));
}
