//! Data flows one way: `define` knows nothing of `plan` and `run`, `plan` nothing of `run`, and
//! nothing of the codec; `unsafe` stays where it belongs.

use std::path::{Path, PathBuf};

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The code of a file without its comments and unit tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn assert_without(folder: &str, words: &[&str]) {
    let files = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder));
    assert!(!files.is_empty(), "{folder} is empty");
    for path in files {
        let code = code(&path);
        for word in words {
            assert!(!code.contains(word), "{} contains `{word}`", path.display());
        }
    }
}

#[test]
fn define_stands_alone() {
    assert_without("define", &["crate::plan", "crate::run", "crate::codec", "super::plan"]);
}

#[test]
fn plan_knows_only_define() {
    assert_without("plan", &["crate::run", "crate::codec", "super::run"]);
}

/// Settings are passed in: no file, no network, no environment.
#[test]
fn nothing_is_read_from_the_system() {
    assert_without(".", &["std::fs", "std::net", "env::var", "env::home", "dirs::"]);
}

#[test]
fn unsafe_stays_in_kernels() {
    for folder in ["define", "plan"] {
        assert_without(folder, &["unsafe", "allow(unsafe_code)"]);
    }
    for file in [
        "codec.rs",
        "codec/words.rs",
        "lib.rs",
        "lt.rs",
        "lt/blocks.rs",
        "lt/info.rs",
        "lt/metadata.rs",
        "error.rs",
        "run/blocks.rs",
        "run/pages.rs",
        "run/parallel.rs",
        "run/program.rs",
        "run/select.rs",
        "run/words/program.rs",
        "run/words/select.rs",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
        assert!(!code(&path).contains("unsafe"), "{file}");
    }
}
