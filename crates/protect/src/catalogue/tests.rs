use super::*;
use paritas_store::error::ErrorKind;

fn item(path: &str, kind: ItemKind) -> Item {
    let modified = Timestamp { seconds: -5, nanoseconds: 999_999_999 };
    Item { path: path.into(), mode: 0o644, modified, details: Details::default(), kind }
}

fn details() -> Details {
    let changed = Some(Timestamp { seconds: 9, nanoseconds: 0 });
    Details { changed, owner: Some(Owner { user: 7, group: 8 }), ..Details::default() }
}

fn sample() -> (Catalogue, StreamGeometry) {
    let settings = Settings {
        label: b"label".to_vec().into(),
        root: b"/root\xff".to_vec().into(),
        starts: vec![Vec::new().into()],
        excludes: vec!["*.tmp".to_owned()],
        redundancy: 100_000,
        created: Timestamp { seconds: 1 << 40, nanoseconds: 1 },
        folders: Vec::new(),
        gitignore: true,
        mounts: vec![b"a".to_vec().into()],
        one_file_system: true,
    };
    let items = vec![
        item("a", ItemKind::Folder),
        item("a/b", ItemKind::File { size: 700, digest: [1; 16] }),
        Item::gap(100),
        item("a/c", ItemKind::Symlink { target: b"../\xff\n".to_vec() }),
        item("a/d", ItemKind::HardLink { target: b"a/b".to_vec() }),
        Item { details: details(), ..item("b", ItemKind::Kept { layer: 0, piece: 7 }) },
        item("c", ItemKind::File { size: 0, digest: [2; 16] }),
    ];
    let older = vec![Older { layer: Id::new([9; 16]), dead: vec![1, 2] }];
    let catalogue = Catalogue { settings, older, items, checksums: vec![3, 4] };
    (catalogue, StreamGeometry { length: 800, block: 512, data: 2, parity: 1 })
}

#[test]
fn catalogues_are_read_as_written() {
    let (catalogue, geometry) = sample();
    let bytes = catalogue.encode().unwrap();
    assert_eq!(Catalogue::decode(&bytes, &geometry).unwrap(), catalogue);
}

fn refused(bytes: &[u8], geometry: &StreamGeometry, why: &str) {
    let error = Catalogue::decode(bytes, geometry).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotRecognised);
    assert!(error.to_string().contains(why), "{error} instead of {why}");
}

#[test]
fn what_contradicts_itself_is_refused() {
    type Change = fn(&mut Catalogue);
    let changes: [(&str, Change); 28] = [
        ("the label", |it| it.settings.label = b"../../x".to_vec().into()),
        ("the label", |it| it.settings.label = b"/etc/cron.d/x".to_vec().into()),
        ("the label", |it| it.settings.label = b".hidden".to_vec().into()),
        ("a gap has no bytes", |it| it.items[2] = Item::gap(0)),
        ("not allowed", |it| it.items[1].path = b"/a".to_vec()),
        ("not allowed", |it| it.items[1].path = b"a/../b".to_vec()),
        ("not allowed", |it| it.items[1].path = b"a//b".to_vec()),
        ("not allowed", |it| it.items[1].path = b"a/./b".to_vec()),
        ("not allowed", |it| it.items[1].path = b"a/.paritas".to_vec()),
        ("not allowed", |it| it.items[1].path = b"a/b/".to_vec()),
        ("not allowed", |it| it.items[0].path = b"".to_vec()),
        ("not allowed", |it| it.settings.starts.push(b"..".to_vec().into())),
        ("2 protected paths are not in order", |it| {
            it.settings.starts = vec![b"b".to_vec().into(), b"a".to_vec().into()];
        }),
        ("40000 protected paths are not in order", |it| {
            it.settings.starts = vec![Vec::new().into(); 40_000];
        }),
        ("10001 patterns", |it| it.settings.excludes = vec!["a".to_owned(); 10_001]),
        ("have 1048577 bytes", |it| it.settings.excludes = vec!["a".repeat((1 << 20) + 1)]),
        ("lists 65 folders", |it| it.settings.folders = vec![b"/a".to_vec().into(); 65]),
        ("not in order", |it| it.items[1].path = b"a".to_vec()),
        ("not in order", |it| it.items.swap(0, 6)),
        ("out of range", |it| it.items[1].mode = 0o10000),
        ("out of range", |it| it.items[1].modified.nanoseconds = 1_000_000_000),
        ("800 bytes", |it| it.items[1].kind = ItemKind::File { size: 701, digest: [0; 16] }),
        ("800 bytes", |it| {
            let file = || ItemKind::File { size: u64::MAX, digest: [0; 16] };
            it.items[1].kind = file();
            it.items[6].kind = file();
        }),
        ("does not list", |it| it.items[5].kind = ItemKind::Kept { layer: 1, piece: 0 }),
        ("65 older layers", |it| it.older = vec![it.older[0].clone(); 65]),
        ("1 checksums for 2", |it| it.checksums.truncate(1)),
        ("its time", |it| it.settings.created.nanoseconds = u32::MAX),
        ("3 checksums for 2", |it| it.checksums.push(0)),
    ];
    for (why, change) in changes {
        let (mut catalogue, geometry) = sample();
        change(&mut catalogue);
        refused(&catalogue.encode().unwrap(), &geometry, why);
    }
}

/// Packs columns as a forger would.
fn forged(change: impl FnOnce(&mut TextColumns, &mut Stored)) -> Vec<u8> {
    let (catalogue, _) = sample();
    let mut columns = TextColumns::of(&catalogue.items);
    let mut stored: Stored = from_bytes(&catalogue.encode().unwrap()).unwrap();
    stored.unpacked = 0;
    change(&mut columns, &mut stored);
    let columns = to_bytes(&columns).unwrap();
    let mut packed = Vec::new();
    DeflateEncoder::new(&columns[..], Compression::default()).read_to_end(&mut packed).unwrap();
    if stored.unpacked == 0 {
        stored.unpacked = columns.len() as u64;
    }
    stored.packed = packed.into();
    to_bytes(&stored).unwrap()
}

#[test]
fn forged_columns_are_refused() {
    type Change = fn(&mut TextColumns, &mut Stored);
    let changes: [(&str, Change); 22] = [
        ("missing", |columns, _| columns.changed_seconds.truncate(1)),
        ("missing", |columns, _| columns.changed_seconds[0] = Some(0)),
        ("longer than its items", |columns, _| columns.changed_nanoseconds.push(0)),
        ("out of range", |columns, _| columns.changed_nanoseconds[0] = 1),
        ("out of range", |columns, _| columns.changed_nanoseconds[0] = i64::MIN),
        ("owner is missing", |columns, _| columns.owners.clear()),
        ("missing", |columns, _| columns.owner_of.truncate(5)),
        ("longer than its items", |columns, _| columns.owner_of.push(0)),
        ("is unknown", |columns, _| columns.kinds[0] = 6),
        ("longer than its items", |columns, _| columns.kinds.truncate(6)),
        ("missing", |columns, _| columns.kinds.push(0)),
        ("missing", |columns, _| columns.sizes.clear()),
        ("missing", |columns, _| columns.modes.clear()),
        ("missing", |columns, _| columns.targets.clear()),
        ("missing", |columns, _| columns.kept.clear()),
        ("missing", |columns, _| _ = columns.names.pop()),
        ("shares more bytes", |columns, _| columns.shared[1] = 2),
        ("cut", |_, stored| stored.digests.truncate(31)),
        ("missing", |_, stored| stored.digests.truncate(16)),
        ("longer than its items", |_, stored| stored.digests.extend([0; 16])),
        ("more bytes than DEFLATE", |_, stored| stored.unpacked = u64::MAX),
        ("decompressed", |_, stored| stored.unpacked = 10),
    ];
    let (_, geometry) = sample();
    for (why, change) in changes {
        refused(&forged(change), &geometry, why);
    }
    // A path of a megabyte that 2,000 items share.
    let bomb = forged(|columns, _| {
        *columns = TextColumns::default();
        for number in 0..2000_u32 {
            columns.kinds.push(0);
            columns.modes.push(0);
            columns.seconds.push(0);
            columns.nanoseconds.push(0);
            match number {
                0 => put_text(&mut columns.names, &vec![b'a'; 1 << 20]),
                _ => put_text(&mut columns.names, format!("{number:06}").as_bytes()),
            }
            columns.shared.push(if number == 0 { 0 } else { 1 << 20 });
        }
    });
    refused(&bomb, &geometry, "longer than a catalogue of its size");
    // Values that no item has, each of which would take far more memory than its bytes.
    // A map of one attribute, with an empty value.
    let set: Extended = from_bytes(b"\xa1\x45user.\x40").unwrap();
    refused(
        &forged(|columns, _| columns.attributes = vec![set.clone(); 1 << 20]),
        &geometry,
        "column 11 has 1048576 values for 7 items",
    );
    refused(
        &forged(|columns, _| columns.changed_seconds = vec![None; 1 << 20]),
        &geometry,
        "column 9 has 1048576 values for 7 items",
    );
    refused(
        &forged(|columns, _| columns.attributes = vec![Extended::default()]),
        &geometry,
        "a set of attributes is empty",
    );
    refused(
        &forged(|columns, _| {
            columns.kinds = vec![4; 300_000];
            columns.attributes = vec![set.clone(); 300_000];
        }),
        &geometry,
        "300000 extended attributes",
    );
    // More items, and longer columns, than so few bytes should have.
    let gaps = |count| {
        forged(|columns, _| {
            let (kinds, sizes) = (vec![4; count], vec![1; count]);
            *columns = TextColumns { kinds, sizes, ..TextColumns::default() };
        })
    };
    refused(&gaps(5 << 20), &geometry, "more items than a catalogue of its size");
    refused(&gaps(34 << 20), &geometry, "longer than a catalogue of its size");
}

#[test]
fn any_damage_is_refused_or_harmless() {
    let (catalogue, geometry) = sample();
    let bytes = catalogue.encode().unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let _ = Catalogue::decode(&damaged, &geometry);
        }
        assert!(Catalogue::decode(&bytes[..at], &geometry).is_err());
    }
}
