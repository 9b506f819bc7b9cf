use super::builder::check_tree;
use super::*;
use crate::format::RecordPlace;
use std::collections::BTreeMap;

use minicbor::bytes::ByteVec;
use paritas_store::place::attributes::Owner;

fn entry(path: &str, kind: EntryKind) -> ProtectedEntry {
    let modified = Timestamp::default();
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

/// All that the catalogue of the third set of vectors says of attributes and disks is read as it
/// was written. Restoring it takes root and a file system that keeps it.
#[test]
fn details_that_were_written_once_stay_readable() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/protect/third");
    let found = find(&[vectors]).unwrap().remove(0);
    let texts = |texts: &[ByteVec]| texts.iter().map(|it| it.to_vec()).collect::<Vec<_>>();
    let Settings { excludes, gitignore, mounts, one_file_system, .. } = &found.settings;
    assert_eq!(*excludes, ["*.tmp", "!/kept.tmp"]);
    assert_eq!(texts(mounts), [b"folder/empty"]);
    assert!(*gitignore && *one_file_system);

    let set = |name: &[u8], value: &[u8]| {
        let pair = (ByteVec::from(name.to_vec()), ByteVec::from(value.to_vec()));
        Some(minicbor::to_vec(BTreeMap::from([pair])).unwrap())
    };
    let note = set(b"user.note", b"a note\0\xff");
    // The owner, user 1, the group, the mask, others.
    let list = b"\x02\0\0\0\x01\0\x07\0\xff\xff\xff\xff\x02\0\x05\0\x01\0\0\0\
                 \x04\0\x05\0\xff\xff\xff\xff\x10\0\x05\0\xff\xff\xff\xff\
                 \x20\0\x05\0\xff\xff\xff\xff";
    let (access, inherited) =
        (set(b"system.posix_acl_access", list), set(b"system.posix_acl_default", list));
    let changed = Some(Timestamp { seconds: 1_795_853_877, nanoseconds: 217_744_773 });
    let expected = [
        ("a", changed, (1234, 2345), note.clone()),
        ("folder", changed, (0, 0), inherited),
        ("folder/b", changed, (1234, 3456), access),
        ("folder/empty", changed, (0, 0), None),
        ("folder/link", None, (0, 0), None),
        ("folder/nothing", changed, (0, 0), note),
    ];
    assert_eq!(found.entries.len(), expected.len());
    for (entry, (path, changed, (user, group), extended)) in found.entries.iter().zip(expected) {
        let ProtectedEntry { details, .. } = entry;
        assert_eq!(entry.path, path.as_bytes());
        assert_eq!((details.changed, details.owner), (changed, Some(Owner { user, group })));
        let stored = details.extended.as_ref().map(|it| minicbor::to_vec(&**it).unwrap());
        assert_eq!(stored, extended, "{path}");
    }
}

/// A header that names an intact layer, but describes it otherwise, ends nothing and hides no file.
#[test]
fn a_forged_header_hides_no_layer() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/protect/third");
    for is_wider in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path();
        for file in fs::read_dir(&vectors).unwrap().map(|file| file.unwrap().path()) {
            fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
        let before = find(&[folder.to_owned()]).unwrap().remove(0);
        let mut forged = before.layers.last().unwrap().header.clone();
        forged.generation += 1;
        forged.catalogue.each = 1;
        if is_wider {
            (forged.count, forged.index) = (200, 199);
        }
        fs::write(folder.join("forged"), forged.to_bytes(RecordPlace::Header)).unwrap();
        let after = find(&[folder.to_owned()]).unwrap().remove(0);
        let files = |found: &Protection| {
            let files = found.layers.iter().flat_map(|layer| layer.files.clone());
            files.map(|file| file.map(|file| file.path)).collect::<Vec<_>>()
        };
        assert_eq!(files(&after), files(&before));
        assert!(files(&after).iter().all(Option::is_some));
    }
}
