//! Compares `include/paritas.h` with what cbindgen makes from the sources. With the environment
//! variable `PARITAS_WRITE_HEADER` set, writes it anew.

use std::path::Path;

#[test]
fn the_header_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = folder.join("include/paritas.h");
    let made = cbindgen::generate(folder).expect("the sources parse");
    let mut text = Vec::new();
    made.write(&mut text);
    let text = without_safety(&String::from_utf8(text).unwrap());
    if std::env::var_os("PARITAS_WRITE_HEADER").is_some() {
        std::fs::write(&kept, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&kept).unwrap_or_default();
    let hint = "PARITAS_WRITE_HEADER=1 cargo test -p paritas-capi --test header";
    assert!(kept == text, "include/paritas.h is out of date; write it by `{hint}`");
}

#[test]
fn the_header_states_the_version() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/paritas.h");
    let header = std::fs::read_to_string(kept).unwrap();
    for (part, number) in [
        ("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        ("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        ("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ] {
        let line = format!("#define PARITAS_VERSION_{part} {number}\n");
        assert!(header.contains(&line), "crates/capi/cbindgen.toml must state {line}");
    }
}

/// Leaves out the sections about safety, which are for readers of the Rust sources: the header's
/// introduction says the same.
fn without_safety(header: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut skips = false;
    for line in header.lines() {
        if line.trim() == "* # Safety" {
            skips = true;
            lines.pop();
        }
        skips &= line.trim() != "*/";
        if !skips {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}
