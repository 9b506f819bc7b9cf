//! Which protections there are at some paths, and which root each of them has.
//!
//! A protection is known by its id and its root, because a copy of a root with the parity in it has
//! the same id. Parity in a root says where the root is. For parity elsewhere, the folders that
//! were given are compared with the roots that the catalogues state.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use paritas_shards::shown;

use super::{
    Protection, assemble, chosen_folders, folder_in, group, named_files_in, newest,
    parity_files_in, stated_folders, stated_root,
};
use crate::catalogue::{Catalogue, FOLDER, Settings};
use crate::error::{Error, Result};
use crate::format::{Header, Id};
use crate::parity::{ParityFile, refusal};

/// Where parity may be, and which roots were given.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Folders with parity files.
    pub folders: Vec<PathBuf>,
    /// Folders without parity, which may be the roots of parity elsewhere.
    pub roots: Vec<PathBuf>,
    /// Files that may be protected.
    pub files: Vec<PathBuf>,
    /// The protections of parity files that were given, if any were.
    pub wanted: Option<BTreeSet<Id>>,
}

impl Places {
    /// Adds a path that was given, as what it is.
    ///
    /// # Errors
    /// If it cannot be read, or its folder for parity is a link ([`crate::ErrorKind::Io`]).
    pub fn add(&mut self, path: &Path) -> Result<()> {
        let whole = path.canonicalize().map_err(|error| Error::io("opening", path, error))?;
        if !whole.is_dir() {
            return self.add_file(&whole);
        }
        let has_parity = !parity_files_in(&whole)?.is_empty();
        let inner = folder_in(&whole)?;
        if has_parity {
            self.folders.push(whole.clone());
        }
        let has_inner = inner.is_dir();
        if has_inner {
            self.folders.push(inner);
        }
        if !has_parity && !has_inner {
            self.roots.push(whole);
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(path);
        match ParityFile::recognise(path) {
            Some(file) => {
                self.wanted.get_or_insert_default().insert(file.header.protection);
                self.folders.push(folder.to_owned());
                Ok(())
            }
            None => {
                self.files.push(path.to_owned());
                self.add(folder)
            }
        }
    }

    /// Reads the protections of the folders, and of those folders that they name.
    pub fn protections(&self) -> Result<Vec<Protection>> {
        let mut given = Vec::new();
        for folder in BTreeSet::from_iter(&self.folders) {
            given.extend(parity_files_in(folder)?);
        }
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
        let roots = self.roots(&known)?;
        let (mut found, mut refused) = (Vec::new(), None);
        for (known, root) in known.into_iter().zip(roots) {
            match root.map(|root| assemble(known, root)) {
                Some(Ok(protection)) => found.push(protection),
                Some(Err(error)) => refused = Some(error),
                None => {}
            }
        }
        // A protection that cannot be used must not hide the others.
        refused.filter(|_| found.is_empty()).map_or(Ok(found), Err)
    }

    /// Whether a parity file is in one of the folders.
    fn has(&self, file: &ParityFile) -> bool {
        self.folders.iter().any(|folder| file.path.parent() == Some(folder))
    }

    /// Returns the parity files in those folders that the catalogues name beside the given ones.
    fn named_files(&self, known: &[Known<'_>]) -> Vec<ParityFile> {
        let named = known.iter().flat_map(|one| chosen_folders(one.settings()));
        let named: BTreeSet<PathBuf> = named.collect();
        let others = named.iter().filter(|folder| !self.folders.contains(folder));
        others.flat_map(|folder| parity_files_in(folder).unwrap_or_default()).collect()
    }

    /// Returns the root of each protection: the folder that has the parity in it, else a folder
    /// that was given besides those for parity, else the one that the catalogue states. Returns
    /// `None` for a protection that has nothing to do with the folders that were given.
    ///
    /// # Errors
    /// If a folder that was given may be the root of several protections
    /// ([`crate::ErrorKind::Parameters`]).
    fn roots(&self, known: &[Known<'_>]) -> Result<Vec<Option<PathBuf>>> {
        // A folder for parity may be empty, because it replaces a lost one.
        let for_parity: HashSet<PathBuf> = known
            .iter()
            .flat_map(|one| stated_folders(one.settings(), &stated_root(one.settings())))
            .collect();
        let given: Vec<&PathBuf> =
            self.roots.iter().filter(|root| !for_parity.contains(*root)).collect();
        let stated = |one: &Known| Some(stated_root(one.settings())).filter(|_| given.is_empty());
        let mut roots: Vec<Option<PathBuf>> =
            known.iter().map(|one| one.home.clone().or_else(|| stated(one))).collect();
        let elsewhere: Vec<(usize, PathBuf)> = (0..)
            .zip(known)
            .filter(|(_, one)| one.home.is_none())
            .map(|(number, one)| (number, stated_root(one.settings())))
            .collect();
        for &root in &given {
            for number in at_root(root, &given, &elsewhere, known)? {
                roots[number] = Some(root.clone());
            }
        }
        Ok(roots)
    }

    /// Returns the error for paths at which there is no protection.
    pub fn nothing(&self, paths: &[PathBuf]) -> Error {
        let paths: Vec<String> = paths.iter().map(|path| shown(path).to_string()).collect();
        let paths = paths.join(", ");
        let refused =
            |path: PathBuf| refusal(&path).map(|error| Error::io("reading", &path, error));
        if let Some(error) = self.named().into_iter().find_map(refused) {
            return error;
        }
        match self.folders.is_empty() {
            true => Error::not_recognised(format!(
                "{paths}: there is no protection; if the parity is elsewhere, give that folder, too"
            )),
            false => Error::not_recognised(format!(
                "{paths}: no parity file has enough of a catalogue to say what is protected{}",
                self.unrecognised()
            )),
        }
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

/// A protection whose newest catalogue can be read.
pub(super) struct Known<'f> {
    pub id: Id,
    /// The root, if the parity is in it.
    home: Option<PathBuf>,
    pub files: Vec<&'f ParityFile>,
    pub header: Header,
    /// The bytes of the newest catalogue.
    pub bytes: Vec<u8>,
    pub newest: Catalogue,
}

impl Known<'_> {
    fn settings(&self) -> &Settings {
        &self.newest.settings
    }

    /// Describes the protection by its label and the root that it states.
    fn name(&self) -> String {
        let label = String::from_utf8_lossy(&self.settings().label).into_owned();
        format!("{} of {}", shown(&label), shown(&stated_root(self.settings())))
    }
}

/// Returns the protections of some parity files whose catalogues can be read.
fn known_in(files: &[ParityFile]) -> Vec<Known<'_>> {
    let mut known = Vec::new();
    for (id, files) in group(files) {
        let Some(newest_of_all) = newest(&files) else { continue };
        let homes = by_home(files, &newest_of_all.2.settings);
        let mut only = (homes.len() == 1).then_some(newest_of_all);
        for (home, files) in homes {
            if let Some((header, bytes, newest)) = only.take().or_else(|| newest(&files)) {
                known.push(Known { id, home, files, header, bytes, newest });
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

/// Returns the numbers of the protections that belong to a root that was given: those that state
/// it, else those of the one root that does not exist any more, because it was moved, else those
/// of the only root. `elsewhere` has the numbers and the stated roots of the protections whose
/// parity lies elsewhere.
///
/// # Errors
/// If there are several such roots ([`crate::ErrorKind::Parameters`]).
fn at_root(
    root: &PathBuf,
    given: &[&PathBuf],
    elsewhere: &[(usize, PathBuf)],
    known: &[Known<'_>],
) -> Result<Vec<usize>> {
    let those = |is_wanted: &dyn Fn(&PathBuf) -> bool| -> Vec<usize> {
        let those = elsewhere.iter().filter(|(_, stated)| is_wanted(stated));
        those.map(|(number, _)| *number).collect()
    };
    let are_one = |numbers: &[usize]| {
        let roots: HashSet<&[u8]> =
            numbers.iter().map(|&number| known[number].settings().root.as_slice()).collect();
        roots.len() == 1
    };
    let stating = those(&|stated| stated == root);
    let others = those(&|stated| !given.contains(&stated));
    let gone = those(&|stated| !given.contains(&stated) && !stated.is_dir());
    if !stating.is_empty() {
        return Ok(stating);
    }
    if are_one(&gone) {
        return Ok(gone);
    }
    if others.is_empty() || others.len() == elsewhere.len() && are_one(&others) {
        return Ok(others);
    }
    let names: Vec<String> = others.iter().map(|&number| known[number].name()).collect();
    Err(Error::parameters(format!(
        "no protection there states the root {}; it may be the new place of {}; name one of them \
         by a parity file",
        shown(root),
        names.join(", or of ")
    )))
}
