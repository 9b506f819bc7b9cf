//! Places: what is looked at together for the shards of an object.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::exit::Failure;
use crate::output::shown;

/// Paths that are looked at together.
#[derive(Debug)]
pub struct Place {
    /// Shards, or folders of shards.
    pub paths: Vec<PathBuf>,
    /// Where the place lies below the paths that were given; empty for these themselves.
    below: PathBuf,
}

impl Place {
    /// What a report calls an object that was found here and is called `label` among those that
    /// were.
    pub fn label(&self, label: impl Display) -> String {
        match self.below.as_os_str().is_empty() {
            true => label.to_string(),
            false => format!("{}/{label}", shown(&self.below)),
        }
    }

    /// Says where an object failed, which messages about a single one leave out.
    pub fn locate(&self, failure: Failure) -> Failure {
        match self.below.as_os_str().is_empty() {
            true => failure,
            false => {
                let message = format!("{}: {}", shown(&self.below), failure.message);
                Failure { message, ..failure }
            }
        }
    }
}

/// Returns one place with all paths. In a `tree`, each folder below them is a place, too; folders
/// that lie at the same path below several of them are one place, because a set whose shards were
/// spread over disks lies so.
pub fn places(paths: &[PathBuf], tree: bool) -> Vec<Place> {
    let mut places = BTreeMap::from([(PathBuf::new(), paths.to_vec())]);
    let given: HashSet<PathBuf> = paths.iter().flat_map(fs::canonicalize).collect();
    for root in paths.iter().filter(|_| tree) {
        for below in folders_below(root, &given) {
            places.entry(below.clone()).or_insert_with(Vec::new).push(root.join(below));
        }
    }
    places.into_iter().map(|(below, paths)| Place { paths, below }).collect()
}

/// The folders below one, as paths from there, but for those that were given themselves. Links are
/// not followed. What cannot be looked at is among them, so that whoever looks for shards in it
/// says why.
fn folders_below(root: &Path, given: &HashSet<PathBuf>) -> impl Iterator<Item = PathBuf> {
    let is_given = |path: &Path| fs::canonicalize(path).is_ok_and(|path| given.contains(&path));
    let is_new = move |entry: &DirEntry| {
        entry.depth() == 0 || !entry.file_type().is_dir() || !is_given(entry.path())
    };
    let folder = |entry: walkdir::Result<DirEntry>| match entry {
        Ok(entry) => entry.file_type().is_dir().then(|| entry.into_path()),
        Err(error) => error.path().map(Path::to_owned),
    };
    let entries = WalkDir::new(root).min_depth(1).into_iter().filter_entry(is_new);
    entries
        .filter_map(folder)
        .filter_map(move |path| Some(path.strip_prefix(root).ok()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn folders_at_the_same_path_are_one_place() {
        let yard = tempfile::tempdir().unwrap();
        let disks = ["one", "two"].map(|disk| yard.path().join(disk));
        for folder in ["a/b", "c"] {
            fs::create_dir_all(disks[0].join(folder)).unwrap();
        }
        fs::create_dir_all(disks[1].join("c/d")).unwrap();
        fs::write(disks[1].join("file"), "").unwrap();
        symlink(&disks[0], disks[1].join("link")).unwrap();
        let found = places(&disks, true);
        let below: Vec<&str> = found.iter().map(|place| place.below.to_str().unwrap()).collect();
        assert_eq!(below, ["", "a", "a/b", "c", "c/d"]);
        assert_eq!(found[0].paths, disks);
        assert_eq!(found[2].paths, [disks[0].join("a/b")]);
        assert_eq!(found[3].paths, disks.each_ref().map(|disk| disk.join("c")));
        assert_eq!(places(&disks, false).len(), 1);
        // A folder that is given is not looked at once more as a part of another.
        let found = places(&[disks[0].clone(), disks[0].join("a")], true);
        let below: Vec<&str> = found.iter().map(|place| place.below.to_str().unwrap()).collect();
        assert_eq!(below, ["", "b", "c"]);
    }
}
