//! The protections at some paths, and the meaning of each path for them.
//!
//! A protection is known by its id and its root, because a copy of a root with the parity in it has
//! the same id. Parity in a root says where the root is. For parity outside the root, the catalogue
//! states the root. A path that is given beside it means one of these, in this order:
//!
//! 1. *The protection*, if it is the stated root, or a folder above it, whether the root exists or
//!    not.
//! 2. *A part of the protection*, if it lies inside the stated root and something is protected
//!    there, whether any of it exists or not. No path inside a folder that was given to protect
//!    ever counts as the root.
//! 3. *The root, in a new place*, if it is a folder, nothing that was given to protect exists any
//!    more at the stated root, and the folder looks like it: something protected is there, or
//!    nothing at all, as on a new disk. A file means its folder, and of that the file. While the
//!    stated root exists, it may have a copy; that counts as the root only if the protection is
//!    named, by a parity file for example.
//!
//! For any other path, and for every path if no parity is given, the search continues:
//!
//! 4. The nearest folder above it whose `.paritas` protects something there: the path is *a part of
//!    that protection*, again whether it exists or not.
//! 5. If it is a folder, parity files in it that have lost their names.
//!
//! If a path may mean the new places of several roots, or lies in a root and nothing there is
//! protected, it means nothing, and the caller is told why.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::shown::shown;

use super::files::{holds_named, named_files_in, parity_files_in};
use super::given::{GivenPath, is_folder};
use super::meaning::{Candidate, claim, claim_new_place};
use super::{
    Protection, assemble, chosen_folders, folder_in, group, newest, refused_catalogue,
    stated_folders, stated_root,
};
use crate::catalogue::{Catalogue, FOLDER, Settings};
use crate::format::{Header, Id};
use crate::parity::{ParityFile, refusal};

/// Where parity may be, and what was given beside it.
#[derive(Debug, Default)]
pub(super) struct ParityPlaces {
    /// Folders with parity files.
    pub folders: Vec<PathBuf>,
    /// Parity files that were given.
    files: Vec<ParityFile>,
    /// Everything else that was given, and the folders that have their parity in them.
    given: Vec<GivenPath>,
    /// The folders with parity that were not given, but lie above given paths.
    above: HashSet<PathBuf>,
    /// The protections of parity files that were given, if any were.
    pub wanted: Option<BTreeSet<Id>>,
}

/// A path that belongs to no protection.
#[derive(Debug)]
#[non_exhaustive]
pub struct Other {
    /// The path as it was given.
    pub path: PathBuf,
    /// Why it belongs to none, if there is parity that it may have to do with, or the system
    /// refuses to look.
    pub error: Option<Error>,
}

/// Tells whether a protection is the one that is asked for.
pub type IsWanted<'w> = &'w dyn Fn(&Protection) -> bool;

impl ParityPlaces {
    /// Returns the places of parity in some folders.
    pub fn in_folders(folders: Vec<PathBuf>) -> Self {
        Self { folders, ..Self::default() }
    }

    /// Adds a path that was given, as what it is.
    ///
    /// # Errors
    /// If it cannot be looked at, or its folder for parity is a link
    /// ([`crate::ErrorKind::Io`]).
    pub fn add(&mut self, path: &Path) -> Result<()> {
        let mut given = GivenPath::of(path)?;
        match given.is_folder {
            true => given.has_parity = self.add_folder(&given.target)?,
            false => given.has_parity = self.add_file(&given.target),
        }
        self.given.push(given);
        Ok(())
    }

    /// Adds the parity of a folder: the folder itself, or `.paritas` in it. Returns whether there
    /// is any. A `.paritas` without parity files says nothing about the folder: an interrupted run
    /// may have left it, or its parity was moved elsewhere.
    fn add_folder(&mut self, folder: &Path) -> Result<bool> {
        // A folder that cannot be read may still have `.paritas` in it.
        let mut has_parity = holds_named(folder).unwrap_or(false);
        if has_parity {
            self.folders.push(folder.to_owned());
        }
        let inner = folder_in(folder)?;
        if is_folder(&inner)? {
            has_parity |=
                !named_files_in(&inner)?.is_empty() || !parity_files_in(&inner)?.is_empty();
            self.folders.push(inner);
        }
        Ok(has_parity)
    }

    fn add_file(&mut self, path: &Path) -> bool {
        let Some(file) = ParityFile::recognise(path) else { return false };
        self.wanted.get_or_insert_default().insert(file.header.protection);
        self.folders.extend(path.parent().map(Path::to_owned));
        self.files.push(file);
        true
    }

    /// Adds the given folders that hold parity files which have lost their names.
    pub fn add_all_nameless(&mut self) {
        let given = self.given.iter().filter(|given| given.is_folder && !given.has_parity);
        let folders: Vec<PathBuf> = given.map(|given| given.target.clone()).collect();
        folders.iter().for_each(|folder| _ = self.add_nameless(folder));
    }

    /// Returns all parity files of the folders, and the parity files that were given.
    pub fn parity_files(&self) -> Result<Vec<ParityFile>> {
        let mut files = Vec::new();
        for folder in BTreeSet::from_iter(&self.folders) {
            files.extend(parity_files_in(folder)?);
        }
        let is_new = |file: &&ParityFile| files.iter().all(|known| known.path != file.path);
        let more: Vec<ParityFile> = self.files.iter().filter(is_new).cloned().collect();
        files.extend(more);
        Ok(files)
    }

    /// Returns the protections of the folders, and of those folders that they name. Each is at the
    /// root that has its parity in it, or else at the one that it states.
    pub fn protections(&self) -> Result<Vec<Protection>> {
        let (found, refused) = self.candidates(None)?;
        let found: Vec<Protection> = found.into_iter().map(|one| one.protection).collect();
        // A protection that cannot be used must not hide the others.
        refused.filter(|_| found.is_empty()).map_or(Ok(found), Err)
    }

    /// Returns the wanted protections whose files and trees are in order, and an error for the last
    /// one of the others.
    fn candidates(
        &self,
        is_wanted: Option<IsWanted<'_>>,
    ) -> Result<(Vec<Candidate>, Option<Error>)> {
        let given = self.parity_files()?;
        let all: Vec<ParityFile>;
        let mut known = known_in(&given);
        let named = self.named_files(&known);
        if !named.is_empty() {
            all = given.iter().cloned().chain(named).collect();
            known = known_in(&all);
            // The other folders may also hold parity that nobody asked for.
            known.retain(|one| one.files.iter().any(|file| self.has(file)));
        }
        known.retain(|one| self.wanted.as_ref().is_none_or(|ids| ids.contains(&one.id)));
        let (mut found, mut refused) = (Vec::new(), None);
        for one in known {
            let (stated, home) = (stated_root(one.settings()), one.home.clone());
            let for_parity = stated_folders(one.settings(), &stated);
            let is_given = one.files.iter().any(|file| !self.is_above(file));
            match assemble(one, home.clone().unwrap_or(stated)) {
                Ok(protection) if is_wanted.is_none_or(|is_wanted| is_wanted(&protection)) => {
                    found.push(Candidate::new(protection, (home.is_some(), is_given), for_parity));
                }
                Ok(_) => {}
                Err(error) => refused = Some(error),
            }
        }
        Ok((found, refused))
    }

    /// Whether a parity file is in one of the folders.
    fn has(&self, file: &ParityFile) -> bool {
        self.folders.iter().any(|folder| file.path.parent() == Some(folder))
    }

    /// Whether a parity file is in a folder that was not given, but lies above a given path.
    fn is_above(&self, file: &ParityFile) -> bool {
        file.path.parent().is_some_and(|folder| self.above.contains(folder))
    }

    /// Returns the parity files in those folders that the catalogues name beside the given ones.
    fn named_files(&self, known: &[KnownProtection<'_>]) -> Vec<ParityFile> {
        let named = known.iter().flat_map(|one| chosen_folders(one.settings()));
        let named: BTreeSet<PathBuf> = named.collect();
        let others = named.iter().filter(|folder| !self.folders.contains(folder));
        others.flat_map(|folder| parity_files_in(folder).unwrap_or_default()).collect()
    }

    /// Returns the protections that the paths mean, and the paths that do not mean a protection.
    ///
    /// # Errors
    /// If parity cannot be read ([`crate::ErrorKind::Io`]), or no protection can be used, for the
    /// reason that one of them gives ([`crate::ErrorKind::NotRecognised`]).
    pub fn meant(
        &mut self,
        is_wanted: Option<IsWanted<'_>>,
    ) -> Result<(Vec<Protection>, Vec<Other>)> {
        let is_named = is_wanted.is_some() || self.wanted.is_some();
        let (mut candidates, mut refused) = self.candidates(is_wanted)?;
        let mut others = Vec::new();
        if self.look_further(&mut candidates, is_named, &mut others) {
            (candidates, refused) = self.candidates(is_wanted)?;
        }
        // A folder for parity may be empty, because it replaces a lost one.
        let is_for_parity =
            |given: &GivenPath| candidates.iter().any(|one| one.for_parity.contains(&given.target));
        let given: Vec<&GivenPath> =
            self.given.iter().filter(|given| !is_for_parity(given)).collect();
        // What is given beside parity tells which of the protections there are meant.
        let chooses = given.iter().any(|given| !given.has_parity);
        // Known roots come first, so that they are not mistaken for new places.
        let unclaimed: Vec<&GivenPath> =
            given.into_iter().filter(|given| !claim(given, &mut candidates)).collect();
        for given in unclaimed.into_iter().filter(|given| !given.has_parity) {
            let claimed = claim_new_place(given, &mut candidates, is_named);
            if !matches!(claimed, Ok(true)) {
                others.push(Other { path: given.named.clone(), error: claimed.err() });
            }
        }
        let found = candidates.into_iter().filter_map(|one| one.meant(chooses));
        let found: Vec<Protection> = found.collect();
        match refused.filter(|_| found.is_empty()) {
            Some(error) => Err(error),
            None => Ok((found, others)),
        }
    }

    /// Looks for parity above and in the given paths that mean nothing to the known protections.
    /// Paths above which the system refuses to look become others. Returns whether there is more
    /// parity.
    fn look_further(
        &mut self,
        known: &mut [Candidate],
        is_named: bool,
        others: &mut Vec<Other>,
    ) -> bool {
        let mut above = Above::default();
        let before = self.folders.len();
        for mut given in std::mem::take(&mut self.given) {
            let is_known = given.has_parity
                || known.iter().any(|one| one.for_parity.contains(&given.target))
                || claim(&given, known)
                || matches!(claim_new_place(&given, known, is_named), Ok(true));
            if is_known && !given.is_of_the_disk() {
                self.given.push(given);
                continue;
            }
            match above.nearest(&given) {
                Err(error) => {
                    others.push(Other { path: given.named, error: Some(error) });
                    continue;
                }
                Ok(Some(folder)) if !self.folders.contains(&folder) => {
                    self.above.insert(folder.clone());
                    self.folders.push(folder);
                }
                Ok(_) if given.is_folder => given.has_parity = self.add_nameless(&given.target),
                Ok(_) => {}
            }
            self.given.push(given);
        }
        self.folders.len() > before
    }

    /// Adds a folder if it has parity files. They have all lost their names.
    fn add_nameless(&mut self, folder: &Path) -> bool {
        let has_parity = parity_files_in(folder).is_ok_and(|files| !files.is_empty());
        self.folders.extend(has_parity.then(|| folder.to_owned()));
        has_parity
    }

    /// Returns the error for paths without a protection.
    pub fn nothing(&self, paths: &[PathBuf]) -> Error {
        let absent = self.given.iter().find(|given| !given.is_there());
        if let Some(given) = absent {
            let message = format!("{}: there is no such file or folder", shown(&given.named));
            let missing = fs::symlink_metadata(&given.named).err();
            return Error::failed(message)
                .because(missing.unwrap_or_else(|| io::ErrorKind::NotFound.into()));
        }
        let paths: Vec<String> = paths.iter().map(|path| shown(path).to_string()).collect();
        let paths = paths.join(", ");
        let refused =
            |path: PathBuf| refusal(&path).map(|error| Error::io("reading", &path, &error));
        let given = self.given.iter().map(|given| given.target.clone());
        if let Some(error) = given.chain(self.named()).find_map(refused) {
            return error;
        }
        let files = self.parity_files().unwrap_or_default();
        if let Some(error) = group(&files).values().find_map(|files| refused_catalogue(files)) {
            return Error::not_recognised(format!("{paths}: {error}"));
        }
        match self.has_parity() {
            false => Error::not_recognised(format!(
                "{paths}: there is no protection; if the parity is elsewhere, give that folder, too"
            )),
            true => Error::not_recognised(format!(
                "{paths}: no parity file has enough of a catalogue to say what is protected{}",
                self.unrecognised()
            )),
        }
    }

    /// Whether a folder has parity files, or files with their names. A folder without any may be
    /// what an interrupted run has left.
    fn has_parity(&self) -> bool {
        let has_files =
            |folder: &PathBuf| parity_files_in(folder).is_ok_and(|files| !files.is_empty());
        !self.named().is_empty() || self.folders.iter().any(has_files)
    }

    /// Returns the files in the folders that have names of parity files.
    fn named(&self) -> Vec<PathBuf> {
        let named = |folder: &PathBuf| named_files_in(folder).unwrap_or_default();
        self.folders.iter().flat_map(named).collect()
    }

    /// Describes the files that have names of parity files, but are not recognised as such.
    fn unrecognised(&self) -> String {
        let named = self.named().into_iter();
        let unknown = named.filter(|path| ParityFile::recognise(path).is_none());
        match unknown.collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            [path] => format!("; {} is damaged from end to end, or empty", shown(path)),
            [path, others @ ..] => format!(
                "; {} and {} more are damaged from end to end, or empty",
                shown(path),
                others.len()
            ),
        }
    }
}

/// The protections of the folders above some paths, each looked for once.
#[derive(Default)]
struct Above {
    folders: HashMap<PathBuf, Vec<Candidate>>,
}

impl Above {
    /// Returns the folder of parity in the nearest folder above a path that protects something
    /// there.
    fn nearest(&mut self, given: &GivenPath) -> Result<Option<PathBuf>> {
        let above = given.own.ancestors().skip(1).chain(given.target.ancestors().skip(1));
        for folder in above {
            if !is_folder(&folder.join(FOLDER))? {
                continue;
            }
            let inner = folder_in(folder)?;
            if !self.folders.contains_key(folder) {
                let places = ParityPlaces::in_folders(vec![inner.clone()]);
                let found = places.candidates(None).map_or_else(|_| Vec::new(), |(found, _)| found);
                self.folders.insert(folder.to_owned(), found);
            }
            if self.folders[folder].iter().any(|one| one.holds(given)) {
                return Ok(Some(inner));
            }
        }
        Ok(None)
    }
}

/// A protection whose newest catalogue can be read.
pub(super) struct KnownProtection<'f> {
    pub id: Id,
    /// The root, if the parity is in it.
    pub home: Option<PathBuf>,
    pub files: Vec<&'f ParityFile>,
    pub header: Header,
    /// The bytes of the newest catalogue.
    pub bytes: Vec<u8>,
    pub newest: Catalogue,
}

impl KnownProtection<'_> {
    fn settings(&self) -> &Settings {
        &self.newest.settings
    }
}

/// Returns the protections of some parity files whose catalogues can be read.
fn known_in(files: &[ParityFile]) -> Vec<KnownProtection<'_>> {
    let mut known = Vec::new();
    for (id, files) in group(files) {
        let Some(newest_of_all) = newest(&files) else { continue };
        let homes = by_home(files, &newest_of_all.2.settings);
        let mut only = (homes.len() == 1).then_some(newest_of_all);
        for (home, files) in homes {
            if let Some((header, bytes, newest)) = only.take().or_else(|| newest(&files)) {
                known.push(KnownProtection { id, home, files, header, bytes, newest });
            }
        }
    }
    known
}

/// Splits files with the same id by the roots that have them in it: if a root is copied, its parity
/// is copied as well. Files that are in no root belong to the root that the catalogue states, or to
/// the only one if that does not exist any more.
fn by_home<'f>(
    files: Vec<&'f ParityFile>,
    settings: &Settings,
) -> BTreeMap<Option<PathBuf>, Vec<&'f ParityFile>> {
    let mut homes: BTreeMap<Option<PathBuf>, Vec<&ParityFile>> = BTreeMap::new();
    for file in files {
        homes.entry(home_of(file, settings)).or_default().push(file);
    }
    let Some(elsewhere) = homes.remove(&None) else { return homes };
    let stated = stated_root(settings);
    let only = homes.keys().next().filter(|_| homes.len() == 1 && !stated.is_dir());
    let home = match only {
        Some(only) => only.clone(),
        None => Some(stated).filter(|stated| homes.contains_key(&Some(stated.clone()))),
    };
    homes.entry(home).or_default().extend(elsewhere);
    homes
}

/// Returns the root that has a parity file in it. A folder that was chosen for parity says nothing
/// about the root, whatever its name is.
fn home_of(file: &ParityFile, settings: &Settings) -> Option<PathBuf> {
    let folder = file.path.parent()?;
    let is_chosen = |path: &Path| chosen_folders(settings).any(|chosen| chosen == path);
    match folder.file_name().is_some_and(|name| name == FOLDER) {
        _ if is_chosen(folder) => None,
        true => folder.parent().map(Path::to_owned),
        // The parity was put into the root itself, which has been moved or copied.
        false => is_chosen(&stated_root(settings)).then(|| folder.to_owned()),
    }
}
