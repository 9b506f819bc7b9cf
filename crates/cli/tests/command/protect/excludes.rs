//! The patterns of --exclude.

use super::*;

/// `./cache` means only the folder in the root, not other folders of that name.
#[test]
fn a_folder_in_the_root_is_left_out_alone() {
    let yard = Yard::new();
    for folder in ["deep/cache", "build", "deep/src"] {
        fs::create_dir_all(yard.photo(folder)).unwrap();
        fs::write(yard.photo(folder).join("keep"), folder).unwrap();
    }
    fs::write(yard.photo("deep/build"), "a file").unwrap();
    let absolute = yard.root().canonicalize().unwrap().join("deep/src");
    let patterns = ["./cache", "build/", "*.jpg", "!b.jpg", absolute.to_str().unwrap()];
    let options = patterns.map(|pattern| ["--exclude", pattern]).concat();
    let protect = yard.protect(&options).expect(exit::DONE);
    assert!(!protect.stderr.contains("matches nothing"), "{protect}");
    let info = json(args!["info", yard.root()], exit::DONE);
    let stored = ["/cache", "build/", "*.jpg", "!b.jpg", "/deep/src"];
    assert_eq!((&info["excludes"], &info["files"]), (&json!(stored), &json!(6)));
    for path in ["deep/cache/keep", "b.jpg", "deep/build", "z"] {
        fs::remove_file(yard.photo(path)).unwrap();
        let verify = run(args!["verify", yard.photo(path)]);
        assert!([exit::REPAIRABLE, exit::LOST].contains(&verify.code), "{verify}");
        fs::write(yard.photo(path), "new").unwrap();
    }
    run(args!["verify", yard.photo("deep/src/keep")]).expect(exit::NOT_RECOGNISED);
}

/// A pattern that matches nothing is reported, because it may be misspelt.
#[test]
fn patterns_that_match_nothing_are_said() {
    let yard = Yard::new();
    let options =
        ["--exclude", "chache", "--exclude", "*.tmp", "--exclude", "/deep/none", "--exclude", ""];
    for more in [&["--dry-run"][..], &[]] {
        let protect = yard.protect(&[&options, more].concat()).expect(exit::DONE);
        let said = |pattern: &str| {
            protect.stderr.contains(&format!("--exclude {pattern} matches nothing"))
        };
        assert!(said("chache") && said("/deep/none") && !said("*.tmp"), "{protect}");
        assert!(said("$''"), "{protect}");
    }
    let line = yard.protect(&[&options[..], &["--force", "--json"]].concat()).expect(exit::DONE);
    let line = line.results().pop().unwrap();
    assert_eq!(line["unmatched_excludes"], json!(["chache", "/deep/none", ""]));
}
