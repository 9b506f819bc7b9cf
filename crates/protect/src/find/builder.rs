//! Putting a protection together from the catalogues of its layers.

use std::collections::{HashMap, HashSet};

use paritas_store::error::Result;

use super::{Builder, EntryKind, Layer, LayerPiece, ProtectedEntry, catalogue, lossy};
use crate::catalogue::{Catalogue, Item, ItemKind, bad, check_path};
use crate::format::Header;
use crate::parity::ParityFile;
use crate::tree::above;

impl Builder {
    /// Adds the older layers that count by the newest catalogue. Returns the number of these layers
    /// that cannot be read.
    pub(super) fn add_older(
        &mut self,
        newest: &Catalogue,
        groups: &[Vec<&ParityFile>],
    ) -> Result<usize> {
        let kept = kept(newest);
        let mut unreadable = 0;
        for (number, older) in (0..).zip(&newest.older) {
            // A forged header can name the layer, too; its catalogue cannot be read.
            let mut of_layer = groups.iter().filter(|group| group[0].header.layer == older.layer);
            let read = of_layer.find_map(|files| Some((files, catalogue(files)?)));
            let Some((files, (header, bytes, catalogue))) = read else {
                unreadable += 1;
                continue;
            };
            let dead: HashSet<u32> = older.dead.iter().copied().collect();
            let file = |piece: u32, item| match kept.get(&(number, piece)) {
                _ if dead.contains(&piece) => None,
                newer => Some(newer.copied().unwrap_or(item)),
            };
            self.add_layer(&header, Some(files), bytes, &catalogue, file)?;
        }
        Ok(unreadable)
    }

    /// Adds a layer and its files. `file` returns the newest item of a piece that still belongs to
    /// a file.
    pub(super) fn add_layer<'i>(
        &mut self,
        header: &Header,
        files: Option<&Vec<&ParityFile>>,
        bytes: Vec<u8>,
        catalogue: &'i Catalogue,
        file: impl Fn(u32, &'i Item) -> Option<&'i Item>,
    ) -> Result<()> {
        let layer = self.layers.len();
        let (mut pieces, mut originals) = (Vec::new(), Vec::new());
        for item in &catalogue.items {
            let Some(size) = item.size() else { continue };
            originals.push(item.clone());
            let piece = pieces.len();
            pieces.push(LayerPiece { size, entry: None });
            let ItemKind::File { digest, .. } = item.kind else { continue };
            if let Some(item) = file(piece as u32, item) {
                self.entries.push(item.with_kind(EntryKind::File { size, digest, layer, piece }));
            }
        }
        let mut by_index = vec![None; header.count.into()];
        let mut copies: Vec<ParityFile> = Vec::new();
        for &file in files.into_iter().flatten() {
            let place: &mut Option<ParityFile> = &mut by_index[usize::from(file.header.index)];
            match place.as_ref().is_none_or(|known| !known.has_ends && file.has_ends) {
                true => copies.extend(place.replace(file.clone())),
                false => copies.push(file.clone()),
            }
        }
        self.layers.push(Layer {
            header: header.clone(),
            files: by_index,
            copies,
            catalogue: bytes,
            checksums: catalogue.checksums.clone(),
            pieces,
            originals,
        });
        Ok(())
    }

    /// Adds folders and links.
    pub(super) fn add_others(&mut self, newest: &Catalogue) {
        for item in &newest.items {
            let kind = match &item.kind {
                ItemKind::Folder => EntryKind::Folder,
                ItemKind::Symlink { target } => EntryKind::Symlink { target: target.clone() },
                ItemKind::HardLink { target } => EntryKind::HardLink { target: target.clone() },
                _ => continue,
            };
            self.entries.push(item.with_kind(kind));
        }
    }

    /// Drops hard links to files of layers that cannot be read, because these files are unknown.
    pub(super) fn drop_orphans(&mut self) {
        let paths: HashSet<Vec<u8>> = self.entries.iter().map(|entry| entry.path.clone()).collect();
        self.entries.retain(|entry| match &entry.kind {
            EntryKind::HardLink { target } => paths.contains(target),
            _ => true,
        });
    }

    pub(super) fn finish(mut self) -> Result<(Vec<ProtectedEntry>, Vec<Layer>)> {
        self.entries.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        check_tree(&self.entries)?;
        for (number, entry) in self.entries.iter().enumerate() {
            if let EntryKind::File { layer, piece, .. } = entry.kind {
                self.layers[layer].pieces[piece].entry = Some(number);
            }
        }
        Ok((self.entries, self.layers))
    }
}

/// Returns the items of the newest catalogue that are files of older layers.
fn kept(newest: &Catalogue) -> HashMap<(u32, u32), &Item> {
    let kept = |item| match item {
        &Item { kind: ItemKind::Kept { layer, piece }, .. } => Some(((layer, piece), item)),
        _ => None,
    };
    newest.items.iter().filter_map(kept).collect()
}

/// Refuses trees in which a path occurs twice, a path leads through something that is not a folder,
/// or a hard link leads to something that is not a file.
pub(super) fn check_tree(entries: &[ProtectedEntry]) -> Result<()> {
    let at = |path: &[u8]| {
        let found = entries.binary_search_by(|entry| entry.path.as_slice().cmp(path));
        found.ok().map(|number| &entries[number].kind)
    };
    if let Some(pair) = entries.windows(2).find(|pair| pair[0].path == pair[1].path) {
        return Err(bad(format!("{:?} occurs twice", lossy(&pair[0].path))));
    }
    for entry in entries {
        let parent = above(&entry.path).last();
        if parent.is_some_and(|parent| at(parent) != Some(&EntryKind::Folder)) {
            return Err(bad(format!(
                "{:?} is not in a folder of the catalogue",
                lossy(&entry.path)
            )));
        }
        match &entry.kind {
            EntryKind::HardLink { target } => {
                check_path(target)?;
                if !matches!(at(target), Some(EntryKind::File { .. })) {
                    return Err(bad(format!("{:?} is a hard link to no file", lossy(&entry.path))));
                }
            }
            EntryKind::Symlink { target } if target.is_empty() => {
                return Err(bad(format!(
                    "{:?} is a symbolic link without a target",
                    lossy(&entry.path)
                )));
            }
            _ => {}
        }
    }
    Ok(())
}
