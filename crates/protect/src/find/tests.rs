use super::builder::check_tree;
use super::*;

fn entry(path: &str, kind: EntryKind) -> ProtectedEntry {
    let modified = Timestamp { seconds: 0, nanoseconds: 0 };
    ProtectedEntry { path: path.into(), mode: 0o644, modified, details: Default::default(), kind }
}

#[test]
fn trees_that_cannot_be_are_refused() {
    let file = || EntryKind::File { size: 1, digest: [0; 16], layer: 0, piece: 0 };
    let link = |target: &str| EntryKind::Symlink { target: target.into() };
    let name = |target: &str| EntryKind::HardLink { target: target.into() };
    let folder = || entry("a", EntryKind::Folder);
    let cases = [
        (None, vec![folder(), entry("a/b", file()), entry("c", name("a/b"))]),
        (None, vec![folder(), entry("a/b", link("../../..")), entry("c", link("/"))]),
        (Some("twice"), vec![folder(), folder()]),
        (Some("not in a folder"), vec![entry("a/b", file())]),
        (Some("not in a folder"), vec![entry("a", file()), entry("a/b", file())]),
        (Some("not in a folder"), vec![entry("a", link("/etc")), entry("a/b", file())]),
        (Some("not in a folder"), vec![entry("a", link("/etc")), entry("a/b", name("a"))]),
        (Some("not allowed"), vec![entry("a", name("../b"))]),
        (Some("not allowed"), vec![entry("a", name("/etc/passwd"))]),
        (Some("no file"), vec![entry("a", name("a"))]),
        (Some("no file"), vec![entry("a", link("b")), entry("b", name("a"))]),
        (Some("no file"), vec![folder(), entry("b", name("a"))]),
        (Some("without a target"), vec![entry("a", link(""))]),
    ];
    for (why, entries) in cases {
        let checked = check_tree(&entries).map_err(|error| error.to_string());
        match (why, checked) {
            (None, Ok(())) => {}
            (Some(why), Err(error)) => assert!(error.contains(why), "{error}, not {why}"),
            (_, checked) => panic!("{entries:?}: {checked:?}"),
        }
    }
}
