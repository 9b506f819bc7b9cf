//! Updates that are refused because too much is gone, and dry runs.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

/// If most of many files are gone, an update is refused unless an option accepts the loss.
#[test]
fn a_catastrophe_is_refused() {
    let yard = Yard::new();
    for number in 0..40 {
        let path = yard.photo(&format!("many/{number:02}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, Chance(100 + number).bytes(100)).unwrap();
    }
    yard.protect(&["--redundancy", "50%"]).expect(exit::DONE);
    for number in 0..25 {
        fs::remove_file(yard.photo(&format!("many/{number:02}"))).unwrap();
    }
    let before = snapshot(&yard.photo(".paritas"));
    let update = |more: &[&str]| run(args!["protect", "--update", yard.root(), "--no-sync"; more]);
    let refused = update(&[]).expect(exit::REPAIRABLE);
    let text = refused.text();
    assert!(text.contains("not updated; 21 files kept, 0 new, 0 changed, 25 gone"), "{text}");
    assert_eq!(text.matches("\n  gone     many/").count(), 12, "{text}");
    assert!(refused.stderr.contains("25 of 46 files"), "{refused}");
    assert!(refused.stderr.contains("--accept-changes"), "{refused}");
    let verbose = update(&["-v"]).expect(exit::REPAIRABLE).text();
    assert_eq!(verbose.matches("\n  gone     many/").count(), 25, "{verbose}");
    let refused = update(&["--json"]).expect(exit::REPAIRABLE);
    assert_eq!(refused.error()["kind"], json!("repairable"));
    let line = refused.result();
    assert_eq!((&line["updated"], &line["gone"]), (&json!("refused"), &json!(25)));
    assert_eq!(line["gone_files"].as_array().unwrap().len(), 25);
    update(&["--dry-run"]).expect(exit::REPAIRABLE);
    update(&["--most-changed", "101%"]).expect(exit::ARGUMENTS);
    assert!(snapshot(&yard.photo(".paritas")) == before);
    let dry = update(&["--accept-changes", "--dry-run", "--json"]).expect(exit::DONE).result();
    assert_eq!((&dry["updated"], &dry["dry_run"]), (&json!("layer"), &json!(true)));
    assert!(snapshot(&yard.photo(".paritas")) == before);
    update(&["--most-changed", "80%"]).expect(exit::DONE);
    run(args!["verify", yard.root()]).expect(exit::DONE);
}

/// A dry run says what would be written, and writes nothing, not even a folder.
#[test]
fn dry_runs_write_nothing() {
    let yard = Yard::new();
    let protect = |more: &[&str]| run(args!["protect", yard.root(), "--no-sync"; more]);
    let text = protect(&["--dry-run"]).expect(exit::DONE).text();
    assert!(text.starts_with("photos: 6 files, 345.21 KiB would be protected"), "{text}");
    assert!(text.contains("\n  file     deep/er/c.txt") && text.contains("in 1 pass"), "{text}");
    assert!(text.contains("nothing was written") && !yard.photo(".paritas").exists(), "{text}");
    let dry = protect(&["--dry-run", "--json"]).expect(exit::DONE).result();
    let real = protect(&["--json"]).expect(exit::DONE).result();
    for field in ["stored_bytes", "catalogue_bytes", "parity_bytes", "files", "read_bytes"] {
        assert_eq!(dry[field], real[field], "{field}");
    }
    assert_eq!(dry["parity_files"].as_array().unwrap().len(), 5);
    assert_eq!((&dry["id"], &dry["disks"][0]["bytes"]), (&Value::Null, &real["stored_bytes"]));
    assert_eq!(dry["added_files"].as_array().unwrap().len(), 6);
    // What can be repaired is said in bytes as well, as it is once it is written.
    let done = protect(&["--force"]).expect(exit::DONE).text();
    let repairs = |text: &str| text.lines().find(|it| it.contains("repairs  ")).map(str::to_owned);
    assert_eq!(repairs(&text), repairs(&done));
    assert!(repairs(&text).is_some_and(|line| line.contains(" KiB, wherever")), "{text}");

    fs::remove_file(yard.photo("b.jpg")).unwrap();
    fs::remove_file(&yard.parity()[3]).unwrap();
    let before = [snapshot(&yard.root()), snapshot(&yard.photo(".paritas"))];
    let repair = args!["repair", yard.root(), "--dry-run"];
    let text = run(&repair).expect(exit::REPAIRABLE).text();
    assert!(text.contains("1 would be restored, 1 parity file would be written anew"), "{text}");
    assert!(text.contains("\n  restore  b.jpg\n") && text.contains("to be written anew"), "{text}");
    let line = json(repair, exit::REPAIRABLE);
    assert_eq!((&line["status"], &line["dry_run"]), (&json!("repairable"), &json!(true)));
    assert!(line["disks"][0]["bytes"].as_u64().unwrap() > 3_000, "{line}");
    assert!(before == [snapshot(&yard.root()), snapshot(&yard.photo(".paritas"))]);
    run(args!["repair", yard.root()]).expect(exit::DONE);
    run(args!["repair", yard.root(), "--dry-run"]).expect(exit::DONE);
}

/// If files that changed while they were read use up all parity, because there are no others,
/// `verify` says what to do, and that helps.
#[test]
fn parity_that_is_used_up_is_made_anew() {
    let yard = Yard::new();
    let root = yard.path("logs");
    let log = root.join("log");
    fs::create_dir(&root).unwrap();
    fs::write(&log, Chance(9).bytes(4_000_000)).unwrap();
    let done = AtomicBool::new(false);
    let protect = thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(&log).unwrap();
            while !done.load(Ordering::Relaxed) {
                file.write_all(b"more").unwrap();
            }
        });
        // On a busy machine, the other thread may not run while the file is read.
        let mut runs = (0..50).map(|_| {
            let _ = fs::remove_dir_all(root.join(".paritas"));
            run(args!["protect", &root, "--no-sync"])
        });
        let protect = runs.find(|protect| protect.code == exit::IO);
        done.store(true, Ordering::Relaxed);
        protect.expect("the file changes while it is read")
    });
    assert!(protect.stderr.contains("or changed while they were read, take "), "{protect}");
    fs::write(&log, Chance(10).bytes(200_000)).unwrap();
    let verify = run(args!["verify", &root]).expect(exit::DONE).text();
    let update = format!("\n  next     `paritas protect --update {}` makes all", root.display());
    assert!(verify.contains("; no more of ") && verify.contains(&update), "{verify}");
    run(args!["protect", "--update", &root]).expect(exit::DONE);
    let verify = run(args!["verify", &root]).expect(exit::DONE).text();
    assert!(verify.contains("; any ") && !verify.contains("next"), "{verify}");
}

/// Users may have changed more than the parity can restore. This is no loss, but the protected
/// versions are gone.
#[test]
fn what_was_protected_of_changed_files_may_be_beyond_repair() {
    let yard = Yard::protected(&["--redundancy", "10%"]);
    fs::write(yard.photo("a.jpg"), vec![1; 210_000]).unwrap();
    let part = yard.photo("a.jpg");
    for path in [yard.root(), part.clone()] {
        let verify = run(args!["verify", path]).expect(exit::REPAIRABLE).text();
        assert!(
            verify.contains(": changed, ") && verify.contains("parity stands for "),
            "{verify}"
        );
        assert!(
            verify.contains("the protected content of changed files is beyond repair"),
            "{verify}"
        );
        assert!(!verify.contains("restore"), "{verify}");
    }
    let repair = run(args!["repair", yard.root()]).expect(exit::REPAIRABLE).text();
    assert!(!repair.contains("restore-changed"), "{repair}");
    run(args!["repair", "--restore-changed", part]).expect(exit::LOST);
    assert_eq!(fs::read(yard.photo("a.jpg")).unwrap(), vec![1; 210_000]);
}
