//! The disk space that a plan will take, before anything is read.

use std::path::PathBuf;

use paritas_store::error::Result;
use paritas_store::place::space::{DiskNeed, by_disk};

use super::ProtectPlan;
use crate::catalogue::Catalogue;
use crate::format::{CatalogueShape, Header, Id};
use crate::paths::path_in;

/// The number of bytes that new parity files will have.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParityCost {
    /// Number of bytes of the catalogue.
    pub catalogue_bytes: u64,
    /// Number of bytes of all parity files, with catalogues.
    pub stored_bytes: u64,
    /// The bytes that go to each disk. The old parity files stay until the new ones are complete.
    pub disks: Vec<DiskNeed>,
}

impl ProtectPlan {
    /// Returns the paths of the files whose bytes will be read and protected.
    pub fn protected_files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let items = self.order.items.iter().filter(|item| item.is_file());
        items.map(|item| path_in(&self.root, &item.path))
    }

    /// Returns how much will be written. It is exact unless a file cannot be read or changes until
    /// then. Digests and checksums are not known yet, but have a fixed length.
    ///
    /// # Errors
    /// If the catalogue would be too long ([`crate::ErrorKind::Parameters`]).
    pub fn cost(&self) -> Result<ParityCost> {
        let order = &self.order;
        let catalogue = Catalogue {
            settings: order.settings.clone(),
            older: order.older.clone(),
            items: order.items.clone(),
            checksums: vec![0; self.geometry.data as usize],
        };
        let catalogue = catalogue.encode()?;
        let count = order.count();
        let shape = CatalogueShape::choose(&catalogue, count, self.parity_bytes);
        let header = Header { catalogue: shape, ..order.header(Id::new([0; 16])) };
        let lengths = (0..count).map(|index| header.file_length(index));
        let files: Vec<(PathBuf, u64)> = order.targets().into_iter().zip(lengths).collect();
        Ok(ParityCost {
            catalogue_bytes: shape.length,
            stored_bytes: files.iter().map(|(_, bytes)| bytes).sum(),
            disks: by_disk(&files),
        })
    }
}
