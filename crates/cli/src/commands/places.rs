//! Places: paths that are searched together for the shards of an object.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use paritas_protect::FOLDER;
use walkdir::{DirEntry, WalkDir};

use crate::exit::Failure;
use crate::output::shown;

/// Paths that are searched together.
#[derive(Debug)]
pub struct Place {
    /// Shards, or folders of shards.
    pub paths: Vec<PathBuf>,
    /// Folders that do not exist yet: where the place would be below the given folders that lack
    /// it, such as a replaced disk.
    pub absent: Vec<PathBuf>,
    /// The position of the place below the given paths; empty for these paths themselves.
    below: PathBuf,
}

impl Place {
    /// Returns the name in reports of an object that is called `label` in this place.
    pub fn label(&self, label: impl Display) -> String {
        match self.below.as_os_str().is_empty() {
            true => label.to_string(),
            false => format!("{}/{label}", shown(&self.below)),
        }
    }

    /// Adds the path of the place to a failure; messages about a single object leave it out.
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

/// Returns one place with all paths. In a `tree`, each folder below them is a place, too. Folders
/// at the same path below several of `paths` are one place, because a set that was spread over
/// disks has its shards at the same path on each. A given folder that lacks the place may be a new
/// disk that gets it, unless it lies inside another given folder or holds one.
pub fn places(paths: &[PathBuf], tree: bool) -> Vec<Place> {
    let mut places = BTreeMap::from([(PathBuf::new(), paths.to_vec())]);
    let given: HashSet<PathBuf> = paths.iter().flat_map(fs::canonicalize).collect();
    for root in paths.iter().filter(|_| tree) {
        for below in folders_below(root, &given) {
            places.entry(below.clone()).or_insert_with(Vec::new).push(root.join(below));
        }
    }
    let disks: Vec<&PathBuf> = paths.iter().filter(|root| tree && is_apart(root, &given)).collect();
    let place = |(below, paths): (PathBuf, Vec<PathBuf>)| {
        let wanted = disks.iter().map(|disk| disk.join(&below));
        let absent = wanted.filter(|path| path.symlink_metadata().is_err()).collect();
        Place { paths, absent, below }
    };
    places.into_iter().map(place).collect()
}

/// Whether a path is a folder that neither lies in any of the given ones nor holds one.
fn is_apart(root: &Path, given: &HashSet<PathBuf>) -> bool {
    let Ok(root) = fs::canonicalize(root) else { return false };
    let mut others = given.iter().filter(|other| **other != root);
    root.is_dir() && !others.any(|other| root.starts_with(other) || other.starts_with(&root))
}

/// Returns the folders below `root`, as paths relative to it, except for those in `given` and for
/// folders of parity (`.paritas`). Links are not followed. Folders that cannot be read are
/// included, so that the search for shards in them reports why.
pub fn folders_below(root: &Path, given: &HashSet<PathBuf>) -> impl Iterator<Item = PathBuf> {
    let is_given = |path: &Path| fs::canonicalize(path).is_ok_and(|path| given.contains(&path));
    let is_new = move |entry: &DirEntry| {
        let is_inner = entry.depth() > 0 && entry.file_type().is_dir();
        !is_inner || entry.file_name() != FOLDER && !is_given(entry.path())
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
        assert_eq!(found[2].absent, [disks[1].join("a/b")]);
        assert!(found[0].absent.is_empty() && found[3].absent.is_empty());
        assert_eq!(found[3].paths, disks.each_ref().map(|disk| disk.join("c")));
        assert_eq!(places(&disks, false).len(), 1);
        // A given folder inside another given one is searched once.
        let found = places(&[disks[0].clone(), disks[0].join("a")], true);
        let below: Vec<&str> = found.iter().map(|place| place.below.to_str().unwrap()).collect();
        assert_eq!(below, ["", "b", "c"]);
        assert!(found.iter().all(|place| place.absent.is_empty()));
    }
}
