//! Names that a file system treats as equal although their bytes differ: upper and lower case on
//! exFAT, NTFS and APFS, composed and decomposed letters on APFS and HFS+.
//!
//! This is detected without a table of file systems: the recorded name of something opens, although
//! the listing of its folder does not have that name. Then the thing has another name in the
//! listing. Unicode's rules say which names may be the same. Size and time decide only if several
//! names match, because a driver may remember an old time for one of the names for a while.

use std::collections::{HashMap, HashSet};
use std::fs;

use unicode_normalization::UnicodeNormalization;

use crate::find::Protection;
use crate::paths::{name_bytes, path_in};
use crate::tree::{FoundEntry, Tree, folder_of, joined, name_of};

/// Matches the entries that were not found under their recorded names with the names that the file
/// system takes for the same.
pub(crate) fn match_folded(protection: &Protection, tree: &mut Tree) {
    let root = &protection.root;
    let is_listed = |path: &[u8]| {
        let entries = fs::read_dir(path_in(root, folder_of(path))).into_iter().flatten();
        let name = name_of(path);
        entries.flatten().any(|entry| name_bytes(&entry.file_name()) == name)
    };
    let open = |path: &[u8]| FoundEntry::at(root, path);
    let paths = protection.entries.iter().map(|entry| entry.path.as_slice());
    Folding { tree, open, is_listed }.match_all(paths);
}

/// Looks for names in a tree that a file system treats as equal.
struct Folding<'t, O, L> {
    tree: &'t mut Tree,
    /// Returns what opens under a path.
    open: O,
    /// Whether the listing of a folder has a path at this moment.
    is_listed: L,
}

impl<O: Fn(&[u8]) -> Option<FoundEntry>, L: Fn(&[u8]) -> bool> Folding<'_, O, L> {
    /// Matches paths. They must be in ascending order, and the same paths that the tree was matched
    /// with.
    fn match_all<'p>(&mut self, paths: impl Iterator<Item = &'p [u8]>) {
        // The folders that have other names, and those that are not there under any name.
        let (mut folded, mut absent) = (HashMap::new(), HashSet::new());
        for (number, path) in paths.enumerate() {
            if self.tree.of(number).is_some() {
                continue;
            }
            let folder = folder_of(path);
            let here = folded.get(folder).map_or(folder, Vec::as_slice);
            let place = match absent.contains(folder) {
                true => None,
                false => self.place_of(path, here),
            };
            match place {
                Some(place) => {
                    self.tree.match_with(number, place);
                    folded.insert(path, self.tree.found[place].path.clone());
                }
                None => _ = absent.insert(path),
            }
        }
    }

    /// Returns the index of what has a path, if its folder has the path `folder` in the listing.
    fn place_of(&self, path: &[u8], folder: &[u8]) -> Option<usize> {
        let name = name_of(path);
        let exact = self.tree.place_of(&joined(folder, name));
        if exact.is_some() && folder != folder_of(path) {
            return exact.filter(|&place| self.tree.number_of(place).is_none());
        }
        let opened = (self.open)(path)?;
        let wanted = folded(name);
        let has_name = |&place: &usize| {
            let found = &self.tree.found[place];
            self.tree.number_of(place).is_none() && folded(name_of(&found.path)) == wanted
        };
        let mut places: Vec<usize> = self.tree.places_in(folder).filter(has_name).collect();
        if places.len() > 1 {
            places.retain(|&place| self.tree.found[place].is_alike(&opened));
        }
        let &[only] = &places[..] else { return None };
        // A file that somebody has made since the folder was listed does not prove anything.
        (!(self.is_listed)(path)).then_some(only)
    }
}

/// Returns a form that is the same for all names which a file system may treat as equal.
fn folded(name: &[u8]) -> Vec<u8> {
    let Ok(text) = str::from_utf8(name) else { return name.to_ascii_lowercase() };
    let upper = text.nfkd().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfkd().collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::FoundKind;
    use paritas_store::place::attributes::Timestamp;

    fn thing(path: &str, size: Option<u64>) -> FoundEntry {
        let kind = match size {
            Some(size) => FoundKind::File { size, links: None },
            None => FoundKind::Folder,
        };
        let modified = Timestamp { seconds: 1, nanoseconds: 2 };
        FoundEntry { path: path.into(), mode: 0o755, modified, changed: None, owner: None, kind }
    }

    /// Returns the listed path of each recorded one, on a file system that folds names or not.
    fn places(listed: &[FoundEntry], recorded: &[&str], folds: bool) -> Vec<Option<String>> {
        let mut tree = Tree::default();
        tree.found = listed.to_vec();
        tree.found.sort_by(|one, other| one.path.cmp(&other.path));
        let things = tree.found.clone();
        let open = |path: &[u8]| {
            let is_at = |found: &&FoundEntry| match folds {
                true => folded(&found.path) == folded(path),
                false => found.path == path,
            };
            things.iter().find(is_at).cloned()
        };
        let is_listed = |path: &[u8]| things.iter().any(|found| found.path == path);
        let paths = || recorded.iter().map(|path| path.as_bytes());
        tree.match_paths(paths());
        Folding { tree: &mut tree, open, is_listed }.match_all(paths());
        let path = |found: &FoundEntry| String::from_utf8(found.path.clone()).unwrap();
        (0..recorded.len()).map(|number| tree.of(number).map(path)).collect()
    }

    #[test]
    fn names_that_fold_are_found() {
        let listed = [
            thing("DCIM", None),
            thing("DCIM/A.JPG", Some(5)),
            thing("DCIM/b.jpg", Some(5)),
            thing("cafe\u{301}", Some(7)),
            thing("new", Some(5)),
        ];
        let recorded = ["caf\u{e9}", "dcim", "dcim/a.jpg", "dcim/b.jpg", "dcim/c.jpg"];
        let names = ["cafe\u{301}", "DCIM", "DCIM/A.JPG", "DCIM/b.jpg"];
        let expected: Vec<Option<String>> =
            names.into_iter().map(|name| Some(name.to_owned())).chain([None]).collect();
        assert_eq!(places(&listed, &recorded, true), expected);
        assert_eq!(places(&listed, &recorded, false), [None, None, None, None, None]);
    }

    #[test]
    fn names_that_may_be_the_same() {
        let alike = |one: &str, other: &str| folded(one.as_bytes()) == folded(other.as_bytes());
        assert!(alike("\u{3c2}IGMA", "\u{3c3}igma") && alike("\u{c5}", "a\u{30a}"));
        assert!(!alike("a", "b") && !alike("a", "a."));
    }
}
