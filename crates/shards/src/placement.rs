//! The placement of an object: which folders hold its files, which of them may be lost, and whether
//! another spread would be better.

use std::path::{Path, PathBuf};

use crate::folders::{DomainSpread, Domains, Placement};
use crate::leftovers::without_copies;
use crate::level::better_spread;
use crate::object::Object;
use paritas_store::staging::directory_of;

impl Object {
    /// Returns the folders that were searched, and the folders that hold files of the object. Its
    /// files should be looked for in these places later.
    pub fn folders(&self) -> Vec<PathBuf> {
        let given = self.given.iter().map(|folder| folder.path.as_path());
        let files = self.parts.iter().flatten();
        let mut folders = Vec::new();
        for folder in given.chain(files.map(|file| directory_of(file.path()))) {
            if !folders.iter().any(|known| known == folder) {
                folders.push(folder.to_owned());
            }
        }
        folders
    }

    /// Returns which folders may be lost, judging by the files that look whole. Their blocks are
    /// not read.
    pub fn placement(&self) -> Placement {
        self.placement_of(self.stage(), self.whole_files())
    }

    /// Returns [`Self::placement`] with part `part` in one more file.
    pub(crate) fn placement_with(&self, part: usize, file: &Path) -> Placement {
        self.placement_of(self.stage(), self.whole_files().chain([(part, file)]))
    }

    /// Returns the files that look whole, by part.
    pub(crate) fn whole_files(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.parts().iter().enumerate().flat_map(move |(part, files)| {
            let whole = files.iter().filter(move |file| self.flaws(part, file).is_empty());
            whole.map(move |file| (part, file.path()))
        })
    }

    /// Returns which folders may be lost in a stage, if `files` are the intact files, each with the
    /// number of its part.
    pub(crate) fn placement_of<'p>(
        &self,
        stage: u8,
        files: impl Iterator<Item = (usize, &'p Path)>,
    ) -> Placement {
        let mut domains = Domains::new(&self.given);
        let files = without_copies(files);
        let places = files.iter().map(|&(part, file)| (part, domains.of_file(file)));
        let places = places.collect::<Vec<_>>();
        let is_empty = self.length() == Some(0);
        let spread = DomainSpread::new(&self.geometry, stage, is_empty, &places);
        let mut placement = spread.placement(&domains);
        if stage == self.stage() && spread.has_all_parts() {
            placement.better = better_spread(self, files.into_iter(), placement.tolerance);
        }
        placement
    }
}
