//! What a given path means to a protection (`places.rs` has the rules): all of it, a part, or the
//! new place of its root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use super::Protection;
use super::given::{GivenPath, Relation};
use crate::paths::{path_bytes, path_in};
use crate::tree::is_below;

/// A protection that paths may mean.
#[derive(Debug)]
pub(super) struct Candidate {
    pub protection: Protection,
    /// The folders in which its parity was put.
    pub for_parity: Vec<PathBuf>,
    /// Whether the parity is in the root, so that it is known where the root is.
    is_home: bool,
    /// Whether any of the parity was given by the caller, rather than found above a given path.
    is_given: bool,
    claim: PathsMeaning,
}

/// What the paths together mean to a protection.
#[derive(Debug)]
enum PathsMeaning {
    Nothing,
    Whole,
    Parts(Vec<Vec<u8>>),
}

impl PathsMeaning {
    fn add_part(&mut self, path: Vec<u8>) {
        match self {
            Self::Nothing => *self = Self::Parts(vec![path]),
            Self::Whole => {}
            Self::Parts(paths) => paths.push(path),
        }
    }
}

impl Candidate {
    /// Creates a candidate that nothing has claimed yet.
    pub fn new(
        protection: Protection,
        (is_home, is_given): (bool, bool),
        for_parity: Vec<PathBuf>,
    ) -> Self {
        Self { protection, for_parity, is_home, is_given, claim: PathsMeaning::Nothing }
    }

    fn relation(&self, given: &GivenPath) -> Relation {
        given.relation(&self.protection.root, |path| self.protection.holds(path))
    }

    /// Returns the path inside the root at which a given path is, if something is protected there.
    fn part_at(&self, given: &GivenPath) -> Option<Vec<u8>> {
        match self.relation(given) {
            Relation::Inside(path) => Some(path).filter(|path| self.protection.holds(path)),
            Relation::Whole | Relation::Apart => None,
        }
    }

    /// Whether something inside the root is protected at a given path.
    pub fn holds(&self, given: &GivenPath) -> bool {
        self.part_at(given).is_some()
    }

    /// Returns the protection, or the part of it that was claimed. If parity was given, all of its
    /// protections are meant, unless paths choose among the protections whose parity is outside
    /// their roots.
    pub fn meant(self, chooses: bool) -> Option<Protection> {
        let Self { mut protection, is_home, is_given, claim, .. } = self;
        match claim {
            PathsMeaning::Nothing if !is_given || chooses && !is_home => return None,
            PathsMeaning::Nothing | PathsMeaning::Whole => {}
            PathsMeaning::Parts(paths) => protection.narrow(paths),
        }
        Some(protection)
    }

    /// Whether the parity lies elsewhere, and no path has claimed the protection yet.
    fn is_free(&self) -> bool {
        !self.is_home && matches!(self.claim, PathsMeaning::Nothing)
    }

    /// Whether a folder may be the new place of the root.
    fn may_be_at(&self, root: &Path, is_empty: bool, is_named: bool) -> bool {
        let looks_like = || looks_like(root, &self.protection);
        self.is_free() && (self.is_gone() && (is_empty || looks_like()) || is_named && looks_like())
    }

    /// Whether everything that was given to protect is gone.
    fn is_gone(&self) -> bool {
        let root = &self.protection.root;
        let mut starts = self.protection.starts();
        starts.all(|start| path_in(root, start).symlink_metadata().is_err())
    }

    /// Whether a path lies in a folder that was given to protect.
    fn surrounds(&self, given: &GivenPath) -> bool {
        match self.relation(given) {
            Relation::Inside(path) => self.protection.starts().any(|start| is_below(&path, start)),
            Relation::Whole | Relation::Apart => false,
        }
    }

    /// Describes the protection by its label and the root that it states.
    fn name(&self) -> String {
        let Self { protection, .. } = self;
        format!("{} of {}", shown(&protection.label()), shown(&protection.root))
    }
}

/// Whether anything that is protected is in a folder.
fn looks_like(folder: &Path, protection: &Protection) -> bool {
    let is_there = |path: &[u8]| path_in(folder, path).symlink_metadata().is_ok();
    protection.entries.iter().any(|entry| is_there(&entry.path))
}

/// Notes what a path means to protections whose roots are known. Returns whether it means anything.
pub(super) fn claim(given: &GivenPath, candidates: &mut [Candidate]) -> bool {
    let mut is_any = false;
    for one in candidates {
        let part = one.part_at(given).filter(|_| !given.has_parity);
        let is_whole = one.relation(given) == Relation::Whole;
        is_any |= is_whole || part.is_some();
        match part {
            Some(path) => one.claim.add_part(path),
            None if is_whole => one.claim = PathsMeaning::Whole,
            None => {}
        }
    }
    is_any
}

/// Tries to use a path as the new place of a root, or as a file in it. Returns whether it is one.
///
/// # Errors
/// If it is inside a root and nothing is protected there ([`crate::ErrorKind::NotRecognised`]), or
/// if it cannot be told whose new place it is ([`crate::ErrorKind::Parameters`]).
pub(super) fn claim_new_place(
    given: &GivenPath,
    candidates: &mut [Candidate],
    is_named: bool,
) -> Result<bool> {
    let is_inside = |one: &&Candidate| !one.is_home && one.surrounds(given);
    if let Some(one) = candidates.iter().find(is_inside) {
        return Err(Error::not_recognised(format!(
            "{} lies in {}, but nothing is protected there: it is new, or left out",
            shown(&given.named),
            shown(&one.protection.root)
        )));
    }
    let Some(root) = root_of(given) else { return Ok(false) };
    let is_empty = given.is_empty_folder();
    let part = given.is_file.then(|| given.target.strip_prefix(root).map(path_bytes));
    let part = part.and_then(std::result::Result::ok);
    let is_meant = |one: &&mut Candidate| {
        let holds = part.as_ref().is_none_or(|path| one.protection.holds(path));
        holds && one.may_be_at(root, is_empty, is_named)
    };
    let mut meant: Vec<&mut Candidate> = candidates.iter_mut().filter(is_meant).collect();
    let roots: BTreeSet<PathBuf> = meant.iter().map(|one| one.protection.root.clone()).collect();
    match roots.len() {
        0 => refuse_copy(given, candidates),
        1 => {
            for one in &mut meant {
                one.protection.move_to(root.to_owned());
                match &part {
                    Some(path) => one.claim.add_part(path.clone()),
                    None => one.claim = PathsMeaning::Whole,
                }
            }
            Ok(true)
        }
        _ => Err(ambiguous(given, meant.iter().map(|one| one.name()))),
    }
}

/// Returns the folder that may be the new place of a root: the given one, or that of a given file.
fn root_of(given: &GivenPath) -> Option<&Path> {
    match given.is_folder {
        true => Some(&given.target),
        false => given.target.parent().filter(|_| given.is_file),
    }
}

/// Says why a path is not the new place of any of the roots. There may be none to which it could
/// be.
fn refuse_copy(given: &GivenPath, candidates: &[Candidate]) -> Result<bool> {
    let elsewhere: Vec<&Candidate> =
        candidates.iter().filter(|one| !one.is_home && given.is_folder).collect();
    let is_copy = |one: &&&Candidate| looks_like(&given.target, &one.protection);
    let copied: Vec<&&Candidate> = elsewhere.iter().filter(is_copy).collect();
    match (copied.as_slice(), elsewhere.iter().find(|one| one.is_free())) {
        ([_, _, ..], _) => Err(ambiguous(given, copied.iter().map(|one| one.name()))),
        ([one], _) => Err(Error::parameters(format!(
            "{} is not the root {}, which still exists: name that one; if a copy of it is meant, \
             name the protection by a parity file",
            shown(&given.named),
            shown(&one.protection.root)
        ))),
        ([], Some(one)) => Err(Error::parameters(format!(
            "{} holds nothing that {} protects, so it does not count as its root: name the root, \
             or a parity file",
            shown(&given.named),
            one.name()
        ))),
        ([], None) => Ok(false),
    }
}

fn ambiguous(given: &GivenPath, names: impl Iterator<Item = String>) -> Error {
    let names: Vec<String> = names.collect();
    Error::parameters(format!(
        "no protection there states the root {}; it may be the new place of {}; name one of them \
         by a parity file",
        shown(&given.named),
        names.join(", or of ")
    ))
}
