//! Parity files that no longer count: what newer layers have replaced, and what killed processes
//! have left.

use std::collections::HashSet;
use std::path::Path;

use super::{Layer, by_layer, is_unfinished, is_whole};
use crate::catalogue::Catalogue;
use crate::format::Header;
use crate::parity::ParityFile;

/// Returns the parity files that do not belong to a layer that counts.
pub(super) fn stray<'f>(files: &[&'f ParityFile], layers: &[Layer]) -> Vec<&'f ParityFile> {
    let used = layers.iter().flat_map(|layer| layer.files.iter().flatten());
    let used: HashSet<&Path> = used.map(|file| file.path.as_path()).collect();
    files.iter().copied().filter(|file| !used.contains(file.path.as_path())).collect()
}

/// Returns those of the stray files that may be removed: files of layers that were never finished,
/// and files of layers that the newest one has replaced. `newest` is the header and the catalogue
/// of the newest layer, and `files_of_newest` has its files.
///
/// What a layer has replaced may be removed only where that layer is: all of it is there before its
/// first file gets its name, with a file in each folder. If only a part of it has come here, as a
/// copy, the older parity may be the only one that can repair anything.
pub(super) fn left<'f>(
    stray: &[&'f ParityFile],
    files: &[&ParityFile],
    files_of_newest: Option<&Vec<&ParityFile>>,
    newest: (&Header, &Catalogue),
) -> Vec<&'f ParityFile> {
    let whole = files_of_newest.filter(|layer| is_whole(layer));
    let folders: HashSet<&Path> =
        whole.into_iter().flatten().filter_map(|file| file.path.parent()).collect();
    let unfinished = unfinished(files);
    let is_left = |file: &&&ParityFile| {
        let is_beside = file.path.parent().is_some_and(|folder| folders.contains(folder));
        is_beside && is_replaced(&file.header, newest)
            || unfinished.iter().any(|layer| layer.agrees(&file.header))
    };
    stray.iter().filter(is_left).copied().collect()
}

/// Returns one header for each layer that is unfinished, because some of its files do not exist.
fn unfinished(files: &[&ParityFile]) -> Vec<Header> {
    let layers = by_layer(files).into_iter().filter(|layer| is_unfinished(layer));
    layers.map(|layer| layer[0].header.clone()).collect()
}

/// Whether newer layers have replaced the layer of a file: it is older than the newest layer, whose
/// header and catalogue are given, and no longer counts.
fn is_replaced(of: &Header, (newest, catalogue): (&Header, &Catalogue)) -> bool {
    let counts = || catalogue.older.iter().any(|older| older.layer == of.layer);
    of.generation < newest.generation && !counts()
}
