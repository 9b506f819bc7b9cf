//! Whatever happens to shard files, wrong bytes are never delivered.

use std::fs;
use std::path::Path;

use crate::common::{check, content, files, get, kind, look, mend, only, put, restore, small_job};
use paritas_shards::{ErrorKind, State};
use proptest::prelude::*;

/// A change of a file.
#[derive(Debug, Clone)]
enum Accident {
    Flip(prop::sample::Index, u8),
    Fill(prop::sample::Index, usize, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Delete,
    Replace(Vec<u8>),
    /// Gets the content of another file.
    Copy(prop::sample::Index),
}

fn accident() -> impl Strategy<Value = Accident> {
    let index = any::<prop::sample::Index>;
    let bytes = || prop::collection::vec(any::<u8>(), 1..90);
    prop_oneof![
        4 => (index(), 1_u8..).prop_map(|(at, bits)| Accident::Flip(at, bits)),
        2 => (index(), 1_usize..90, any::<u8>()).prop_map(|(at, n, b)| Accident::Fill(at, n, b)),
        1 => index().prop_map(Accident::Cut),
        1 => (index(), bytes()).prop_map(|(at, bytes)| Accident::Insert(at, bytes)),
        1 => (index(), 1_usize..90).prop_map(|(at, count)| Accident::Remove(at, count)),
        1 => Just(Accident::Delete),
        1 => bytes().prop_map(Accident::Replace),
        1 => index().prop_map(Accident::Copy),
    ]
}

fn happen(directory: &Path, path: &Path, accident: &Accident) {
    let Ok(mut bytes) = fs::read(path) else { return };
    let length = bytes.len().max(1);
    let range = |at: &prop::sample::Index, count: usize| {
        let start = at.index(length).min(bytes.len());
        start..(start + count).min(bytes.len())
    };
    match accident {
        Accident::Flip(at, bits) => {
            let range = range(at, 1);
            bytes[range].iter_mut().for_each(|byte| *byte ^= bits);
        }
        Accident::Fill(at, count, byte) => {
            let range = range(at, *count);
            bytes[range].fill(*byte);
        }
        Accident::Cut(at) => bytes.truncate(at.index(length)),
        Accident::Insert(at, inserted) => {
            let range = range(at, 0);
            bytes.splice(range, inserted.iter().copied());
        }
        Accident::Remove(at, count) => drop(bytes.drain(range(at, *count))),
        Accident::Delete => return fs::remove_file(path).unwrap(),
        Accident::Replace(with) => bytes.clone_from(with),
        Accident::Copy(from) => {
            let all = files(directory);
            bytes = all.values().nth(from.index(all.len())).unwrap().clone();
        }
    }
    fs::write(path, bytes).unwrap();
}

proptest! {
    #[test]
    fn right_bytes_or_a_refusal(
        spec in prop::sample::select(vec!["4+2", "2+2", "rdp:k=4", "evenodd:k=3", "xcode:n=5", "lt:k=9,n=20,nodes=5"]),
        length in 0_usize..900,
        accidents in prop::collection::vec((any::<prop::sample::Index>(), accident()), 1..7),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let bytes = content(length);
        let shards = put(&small_job(spec, directory.path()), &bytes).shards;
        let whole = files(directory.path());
        for (which, accident) in &accidents {
            happen(directory.path(), &shards[which.index(shards.len())], accident);
        }
        let before = files(directory.path());
        let inventory = look(directory.path());
        prop_assert!(inventory.objects.len() <= 1);
        let Some(object) = inventory.objects.first() else { return Ok(()) };
        let report = check(object);
        match get(object) {
            Ok((back, _)) => {
                prop_assert!(back == bytes, "wrong bytes");
                prop_assert_ne!(report.status, State::Lost);
                let mended = mend(object).unwrap();
                prop_assert_eq!(mended.repaired.is_empty(), report.status == State::Intact);
                for shard in &mended.repaired {
                    let original = &whole[&shards[shard.shard]];
                    prop_assert!(fs::read(&shard.path).unwrap() == *original, "{shard:?}");
                }
                prop_assert_eq!(check(&only(directory.path())).status, State::Intact);
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::TooFewShards);
                prop_assert_eq!(report.status, State::Lost, "{}", error);
                prop_assert_eq!(kind(mend(object)), ErrorKind::TooFewShards);
                prop_assert!(before == files(directory.path()), "something was written");
            }
        }
        restore(directory.path(), &whole);
        prop_assert_eq!(check(&only(directory.path())).status, State::Intact);
    }
}
