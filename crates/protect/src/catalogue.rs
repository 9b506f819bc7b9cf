//! The catalogue of a layer: the protected items, and the checksums that reveal damage.
//!
//! It is a CBOR map (RFC 8949). Properties that compress well stand in columns, one list for each
//! property. The columns are a CBOR map of their own, which is compressed with DEFLATE (RFC 1951).
//! Digests and checksums are kept as they are.
//!
//! | key | value |
//! | --- | --- |
//! | 0 | the settings, a map: 0 the label; 1 the path of the root when it was protected; 2 an array of the protected paths, relative to the root, in ascending order; 3 an array of the patterns of excluded paths (at most 10,000, of 1 MiB together); 4 the redundancy in millionths; 5 the time, an array of seconds and nanoseconds; 6 an array of the paths of the folders for parity, empty if it is in the root; 7 whether the patterns follow the rules of gitignore, which those of earlier versions of Paritas do not (`exclude.rs`); 8 an array of the paths at which other file systems were mounted, relative to the root (empty for the root itself); 9 whether these were left out |
//! | 1 | an array of the older layers that count, oldest first, at most 64: each an array of the layer's id and an array of the numbers of its pieces that are dead |
//! | 2 | number of bytes of the columns |
//! | 3 | the columns, compressed |
//! | 4 | the digests of the files of kind 3, 16 bytes each |
//! | 5 | the CRC-64/NVME of each data block, 8 bytes each, little-endian |
//!
//! | column | value |
//! | --- | --- |
//! | 0 | bytes: the kind of each item: 0 folder, 1 symbolic link, 2 hard link, 3 file, 4 gap, 5 file of an older layer |
//! | 1 | for each item but gaps: number of bytes that its path shares with the path before |
//! | 2 | bytes: for each of them the rest of the path, and a zero byte |
//! | 3 | their modes, below 4096 |
//! | 4 | the seconds of their times of change: differences to the item before |
//! | 5 | the nanoseconds of these times |
//! | 6 | for files and gaps: the size in bytes |
//! | 7 | bytes: for each link its target, and a zero byte; that of a hard link is the path of a file |
//! | 8 | for files of older layers: an array of the number of the layer (in key 1) and of the piece |
//! | 9 | for each item but gaps: the seconds of the time at which the system last changed anything about it (ctime), less those of its time of change; null if it is not known. Missing if it is known of none |
//! | 10 | for each item with such a time: its nanoseconds less those of the time of change |
//! | 11 | an array of the sets of extended attributes that occur, each a map of names and values |
//! | 12 | for each item but gaps: 0, or 1 more than the number of its set in column 11. Missing if there are none |
//! | 13 | an array of the owners that occur, each an array of the numbers of user and group |
//! | 14 | for each item but gaps: 0, or 1 more than the number of its owner in column 13. Missing if there are none |
//!
//! Keys 7 to 9 and columns 9 to 14 are missing from catalogues of earlier versions of Paritas,
//! which ignore them.
//!
//! All items but gaps are in ascending order of the bytes of their paths. Paths are relative to the
//! root, and have no empty, `.`, `..` or `.paritas` component. Files and gaps are the *pieces* of
//! the layer's stream, in order, with nothing between them. A gap stands for bytes that no longer
//! belong to a file, because the file changed while it was read.

mod counts;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::{DeflateDecoder, DeflateEncoder};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Decoder, Encode};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::{Owner, Timestamp};
use paritas_store::place::extended::Extended;
use paritas_store::shown::counted;

use crate::digest::FileDigest;
use crate::format::Id;
use crate::geometry::StreamGeometry;
use crate::label;
use counts::ColumnCounts;

/// The name of the folder that holds parity in a protected root.
pub const FOLDER: &str = ".paritas";
/// Largest number of folders for parity.
pub(crate) const MOST_FOLDERS: usize = 64;
/// Largest number of patterns of excluded paths, and of bytes of all of them. Patterns take up to
/// some 100 times their bytes of memory.
const MOST_EXCLUDES: usize = 10_000;
const MOST_EXCLUDE_BYTES: usize = 1 << 20;
/// The largest mode, all bits set.
const MODES: u32 = 0o7777;
/// Columns that state this many bytes for each of their compressed bytes are refused. DEFLATE never
/// expands that much.
const EXPANSION: u64 = 1100;
/// Largest number of older layers that a catalogue may list. Updates stop at eight layers. With 64,
/// the bytes of all layers can be added up, whatever sizes they state.
pub(crate) const MOST_OLDER: usize = 64;

/// What a catalogue may expand to. The limits depend on the bytes that are stored, so a small
/// forged catalogue cannot take much memory. A real one stays far below: each file has 16 stored
/// bytes for its digest alone, and names and links take about a byte each or more.
struct Expansion {
    /// Largest number of bytes of the columns.
    columns: usize,
    /// Largest number of items.
    items: usize,
    /// Largest number of bytes of all paths together.
    paths: usize,
    /// Largest number of extended attributes in all sets together.
    attributes: usize,
}

impl Expansion {
    /// Returns the limits of a catalogue of `stored` bytes. A catalogue of any size may have 64 MiB
    /// of columns, 64 MiB of paths, 4 million items, and 262,144 attributes, each of which takes
    /// some 100 bytes of memory.
    fn of(stored: usize) -> Self {
        Self {
            columns: stored.saturating_mul(64).max(64 << 20),
            items: stored.saturating_mul(4).max(4 << 20),
            paths: stored.saturating_mul(1024).max(64 << 20),
            attributes: stored.saturating_mul(4).max(256 << 10),
        }
    }

    /// Whether items with these columns, which have `bytes` bytes, are within the limits.
    fn holds(&self, bytes: usize, columns: &TextColumns, items: &[Item]) -> bool {
        let paths = items.iter().map(|item| item.path.len()).sum::<usize>();
        let attributes = columns.attributes.iter().map(Extended::len).sum::<usize>();
        bytes <= self.columns
            && items.len() <= self.items
            && paths <= self.paths
            && attributes <= self.attributes
    }

    /// Refuses encoded columns with more values than the items can have, before any of them takes
    /// memory.
    fn check(&self, columns: &[u8]) -> Result<()> {
        let counts = ColumnCounts::of(columns).map_err(|error| bad(error.to_string()))?;
        let ColumnCounts { items, attributes, has_empty_set, .. } = counts;
        if items > self.items as u64 {
            return Err(bad("it has more items than a catalogue of its size can have"));
        }
        if let Some((column, values)) = counts.values.iter().find(|(_, values)| *values > items) {
            return Err(bad(format!(
                "its column {column} has {values} values for {}",
                counted(items, "item")
            )));
        }
        if has_empty_set {
            return Err(bad("a set of attributes is empty"));
        }
        match attributes > self.attributes as u64 {
            true => Err(bad(format!(
                "it has {attributes} extended attributes; a catalogue of its size has at most {}",
                self.attributes
            ))),
            false => Ok(()),
        }
    }
}

const DIGEST: usize = size_of::<FileDigest>();
const CHECKSUM: usize = size_of::<u64>();

/// The settings that the user gave: which paths are protected, and how.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub(crate) struct Settings {
    #[n(0)]
    pub label: ByteVec,
    #[n(1)]
    pub root: ByteVec,
    #[n(2)]
    pub starts: Vec<ByteVec>,
    #[n(3)]
    pub excludes: Vec<String>,
    #[n(4)]
    pub redundancy: u32,
    #[n(5)]
    pub created: Timestamp,
    /// The folders for parity. If there are none, the parity is in the root.
    #[n(6)]
    pub folders: Vec<ByteVec>,
    /// Whether the patterns follow the rules of gitignore.
    #[cbor(n(7), default, skip_if = "is_false")]
    pub gitignore: bool,
    /// The paths, relative to the root, at which other file systems were mounted. An empty path
    /// stands for the root.
    #[cbor(n(8), default, skip_if = "Vec::is_empty")]
    pub mounts: Vec<ByteVec>,
    /// Whether files on other file systems than the root's are left out.
    #[cbor(n(9), default, skip_if = "is_false")]
    pub one_file_system: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Attributes of a file or folder besides its mode and its time of change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// When the system last changed anything about it. Programs cannot set this time. So a file
    /// that still has it was not written since, and a folder that still has it has its old
    /// attributes. Links lack it.
    pub changed: Option<Timestamp>,
    /// Its access control lists and extended attributes, if it has any. Many files share a set.
    pub extended: Option<Arc<Extended>>,
    /// The user and the group that it belongs to.
    pub owner: Option<Owner>,
    /// Whether it has more extended attributes than are recorded. This is not stored.
    pub is_cut: bool,
}

/// An older layer that still counts.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub(crate) struct Older {
    #[n(0)]
    pub layer: Id,
    /// The numbers of its pieces that no longer belong to a file.
    #[n(1)]
    pub dead: Vec<u32>,
}

/// A catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub settings: Settings,
    pub older: Vec<Older>,
    pub items: Vec<Item>,
    /// The checksum of each data block.
    pub checksums: Vec<u64>,
}

/// Something that is protected, with its path and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described<K> {
    pub path: Vec<u8>,
    pub mode: u32,
    pub modified: Timestamp,
    pub details: Details,
    pub kind: K,
}

/// An item of a catalogue. Gaps have no path, mode or time.
pub(crate) type Item = Described<ItemKind>;

/// The kind of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Folder,
    Symlink {
        target: Vec<u8>,
    },
    /// Another name of the file at the path `target`.
    HardLink {
        target: Vec<u8>,
    },
    File {
        size: u64,
        digest: FileDigest,
    },
    Gap {
        size: u64,
    },
    /// A file whose bytes are piece `piece` of an older layer.
    Kept {
        layer: u32,
        piece: u32,
    },
}

impl Details {
    /// Returns a mode that gives nobody more than `mode` and the access control list do together.
    pub fn narrowed(&self, mode: u32) -> u32 {
        self.extended.as_ref().map_or(mode, |extended| extended.narrowed(mode))
    }
}

impl<K> Described<K> {
    /// Returns the same path and attributes with another kind.
    pub fn with_kind<L>(&self, kind: L) -> Described<L> {
        let Self { path, mode, modified, details, .. } = self;
        let (path, details) = (path.clone(), details.clone());
        Described { path, mode: *mode, modified: *modified, details, kind }
    }
}

impl Item {
    /// Whether it is a file whose bytes are in the layer's stream.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, ItemKind::File { .. })
    }

    /// Returns the item for bytes that do not belong to a file.
    pub fn gap(size: u64) -> Self {
        let (modified, details) = Default::default();
        Self { path: Vec::new(), mode: 0, modified, details, kind: ItemKind::Gap { size } }
    }

    /// Returns the number of bytes that the item has in the layer's stream, or `None` if it has no
    /// place there.
    pub fn size(&self) -> Option<u64> {
        match self.kind {
            ItemKind::File { size, .. } | ItemKind::Gap { size } => Some(size),
            _ => None,
        }
    }
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct Stored {
    #[n(0)]
    settings: Settings,
    #[n(1)]
    older: Vec<Older>,
    #[n(2)]
    unpacked: u64,
    #[n(3)]
    packed: ByteVec,
    #[n(4)]
    digests: ByteVec,
    #[n(5)]
    checksums: ByteVec,
}

#[derive(Default, Encode, Decode)]
#[cbor(map)]
struct TextColumns {
    #[cbor(n(0), with = "minicbor::bytes")]
    kinds: Vec<u8>,
    #[n(1)]
    shared: Vec<u32>,
    #[cbor(n(2), with = "minicbor::bytes")]
    names: Vec<u8>,
    #[n(3)]
    modes: Vec<u32>,
    #[n(4)]
    seconds: Vec<i64>,
    #[n(5)]
    nanoseconds: Vec<u32>,
    #[n(6)]
    sizes: Vec<u64>,
    #[cbor(n(7), with = "minicbor::bytes")]
    targets: Vec<u8>,
    #[n(8)]
    kept: Vec<(u32, u32)>,
    #[cbor(n(9), default, skip_if = "Vec::is_empty")]
    changed_seconds: Vec<Option<i64>>,
    #[cbor(n(10), default, skip_if = "Vec::is_empty")]
    changed_nanoseconds: Vec<i64>,
    #[cbor(n(11), default, skip_if = "Vec::is_empty")]
    attributes: Vec<Extended>,
    #[cbor(n(12), default, skip_if = "Vec::is_empty")]
    attributes_of: Vec<u32>,
    #[cbor(n(13), default, skip_if = "Vec::is_empty")]
    owners: Vec<Owner>,
    #[cbor(n(14), default, skip_if = "Vec::is_empty")]
    owner_of: Vec<u32>,
}

impl Catalogue {
    /// Writes the catalogue.
    ///
    /// # Errors
    /// If it has more items than a reader accepts, which must refuse forged catalogues
    /// ([`ErrorKind::Parameters`]).
    pub fn encode(&self) -> Result<Vec<u8>> {
        let texts = TextColumns::of(&self.items);
        let columns = to_bytes(&texts)?;
        let mut packed = Vec::new();
        let mut encoder = DeflateEncoder::new(&columns[..], Compression::default());
        encoder.read_to_end(&mut packed).map_err(|error| internal(&error))?;
        let digest = |item: &Item| match item.kind {
            ItemKind::File { digest, .. } => Some(digest),
            _ => None,
        };
        let digests: Vec<FileDigest> = self.items.iter().filter_map(digest).collect();
        let checksums: Vec<[u8; CHECKSUM]> =
            self.checksums.iter().map(|checksum| checksum.to_le_bytes()).collect();
        let bytes = to_bytes(&Stored {
            settings: self.settings.clone(),
            older: self.older.clone(),
            unpacked: columns.len() as u64,
            packed: packed.into(),
            digests: digests.concat().into(),
            checksums: checksums.concat().into(),
        })?;
        match Expansion::of(bytes.len()).holds(columns.len(), &texts, &self.items) {
            true => Ok(bytes),
            false => Err(Error::parameters(format!(
                "{} files, folders and links are too many for one catalogue, because it has few \
                 files beside them; protect parts of the tree by themselves",
                self.items.len()
            ))),
        }
    }

    /// Reads the catalogue of a layer with the blocks of `geometry`.
    ///
    /// # Errors
    /// If anything contradicts the format ([`ErrorKind::NotRecognised`]).
    pub fn decode(bytes: &[u8], geometry: &StreamGeometry) -> Result<Self> {
        let stored: Stored = from_bytes(bytes)?;
        let most = Expansion::of(bytes.len());
        let columns = unpack(&stored.packed, stored.unpacked, &most)?;
        most.check(&columns)?;
        let columns: TextColumns = from_bytes(&columns)?;
        let digests = in_chunks::<DIGEST>(&stored.digests, "digests")?;
        let checksums = in_chunks::<CHECKSUM>(&stored.checksums, "checksums")?;
        let checksums: Vec<u64> =
            checksums.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        if checksums.len() as u64 != geometry.data {
            return Err(bad(format!(
                "{} checksums for {} data blocks",
                checksums.len(),
                geometry.data
            )));
        }
        if !stored.settings.created.is_normal() {
            return Err(bad("its time is not a valid one"));
        }
        if !label::is_safe(&stored.settings.label) {
            let label = String::from_utf8_lossy(&stored.settings.label);
            return Err(bad(format!("the label {label:?} is not allowed")));
        }
        if stored.older.len() > MOST_OLDER {
            return Err(bad(format!("it lists {} older layers", stored.older.len())));
        }
        let Settings { starts, mounts, .. } = &stored.settings;
        for path in starts.iter().chain(mounts).filter(|path| !path.is_empty()) {
            check_path(path)?;
        }
        if !starts.is_sorted_by(|one, next| one.as_slice() < next.as_slice()) {
            return Err(bad(format!("its {} protected paths are not in order", starts.len())));
        }
        if stored.settings.folders.len() > MOST_FOLDERS {
            let folders = stored.settings.folders.len();
            return Err(bad(format!(
                "it lists {folders} folders for parity; at most {MOST_FOLDERS} are possible"
            )));
        }
        expect_few(&stored.settings.excludes).map_err(bad)?;
        if !columns.attributes.iter().all(Extended::is_possible) {
            return Err(bad("a set of attributes is not allowed"));
        }
        let items = columns.items(digests, &most)?;
        check_length(&items, geometry)?;
        check_kept(&items, &stored.older)?;
        Ok(Self { settings: stored.settings, older: stored.older, items, checksums })
    }
}

impl TextColumns {
    fn of(items: &[Item]) -> Self {
        let mut columns = Self::default();
        let mut before: &[u8] = &[];
        let mut second = 0_i64;
        for item in items {
            columns.kinds.push(item.kind.number());
            columns.sizes.extend(item.size());
            match &item.kind {
                ItemKind::Gap { .. } => continue,
                ItemKind::Symlink { target } | ItemKind::HardLink { target } => {
                    put_text(&mut columns.targets, target);
                }
                &ItemKind::Kept { layer, piece } => columns.kept.push((layer, piece)),
                _ => {}
            }
            let shared = before.iter().zip(&item.path).take_while(|(a, b)| a == b).count();
            columns.shared.push(shared as u32);
            put_text(&mut columns.names, &item.path[shared..]);
            columns.modes.push(item.mode);
            columns.seconds.push(item.modified.seconds.wrapping_sub(second));
            columns.nanoseconds.push(item.modified.nanoseconds);
            columns.put_changed(item);
            (before, second) = (&item.path, item.modified.seconds);
        }
        if columns.changed_nanoseconds.is_empty() {
            columns.changed_seconds.clear();
        }
        let all = || items.iter().filter(|item| !matches!(item.kind, ItemKind::Gap { .. }));
        let sets = all().map(|item| item.details.extended.as_deref());
        (columns.attributes, columns.attributes_of) = numbered(sets);
        let owners = all().map(|item| item.details.owner.as_ref());
        (columns.owners, columns.owner_of) = numbered(owners);
        columns
    }

    fn put_changed(&mut self, item: &Item) {
        let Timestamp { seconds, nanoseconds } = item.modified;
        let changed = item.details.changed;
        self.changed_seconds.push(changed.map(|time| time.seconds.wrapping_sub(seconds)));
        let difference = |time: Timestamp| i64::from(time.nanoseconds) - i64::from(nanoseconds);
        self.changed_nanoseconds.extend(changed.map(difference));
    }

    fn items(mut self, digests: &[FileDigest], most: &Expansion) -> Result<Vec<Item>> {
        let attributes = std::mem::take(&mut self.attributes).into_iter().map(Arc::new).collect();
        let mut left = UnreadColumns::new(&self, attributes, digests, most.paths);
        let items: Vec<Item> =
            self.kinds.iter().map(|&kind| left.item(kind)).collect::<Result<_>>()?;
        left.expect_nothing().map(|()| items)
    }
}

impl ItemKind {
    fn number(&self) -> u8 {
        match self {
            Self::Folder => 0,
            Self::Symlink { .. } => 1,
            Self::HardLink { .. } => 2,
            Self::File { .. } => 3,
            Self::Gap { .. } => 4,
            Self::Kept { .. } => 5,
        }
    }
}

/// The rest of the columns that is still to be read into items.
struct UnreadColumns<'a> {
    shared: std::slice::Iter<'a, u32>,
    names: &'a [u8],
    modes: std::slice::Iter<'a, u32>,
    seconds: std::slice::Iter<'a, i64>,
    nanoseconds: std::slice::Iter<'a, u32>,
    sizes: std::slice::Iter<'a, u64>,
    targets: &'a [u8],
    kept: std::slice::Iter<'a, (u32, u32)>,
    changed_seconds: Option<std::slice::Iter<'a, Option<i64>>>,
    changed_nanoseconds: std::slice::Iter<'a, i64>,
    attributes: Vec<Arc<Extended>>,
    attributes_of: Option<std::slice::Iter<'a, u32>>,
    owners: &'a [Owner],
    owner_of: Option<std::slice::Iter<'a, u32>>,
    digests: std::slice::Iter<'a, FileDigest>,
    path: Vec<u8>,
    second: i64,
    /// Number of bytes that the paths still to be read may have.
    budget: usize,
}

impl<'a> UnreadColumns<'a> {
    fn new(
        columns: &'a TextColumns,
        attributes: Vec<Arc<Extended>>,
        digests: &'a [FileDigest],
        budget: usize,
    ) -> Self {
        Self {
            shared: columns.shared.iter(),
            names: &columns.names,
            modes: columns.modes.iter(),
            seconds: columns.seconds.iter(),
            nanoseconds: columns.nanoseconds.iter(),
            sizes: columns.sizes.iter(),
            targets: &columns.targets,
            kept: columns.kept.iter(),
            changed_seconds: some_of(&columns.changed_seconds),
            changed_nanoseconds: columns.changed_nanoseconds.iter(),
            attributes,
            attributes_of: some_of(&columns.attributes_of),
            owners: &columns.owners,
            owner_of: some_of(&columns.owner_of),
            digests: digests.iter(),
            path: Vec::new(),
            second: 0,
            budget,
        }
    }

    fn item(&mut self, kind: u8) -> Result<Item> {
        if kind == 4 {
            return match next(&mut self.sizes, "size")? {
                0 => Err(bad("a gap has no bytes")),
                size => Ok(Item::gap(size)),
            };
        }
        let path = self.next_path()?;
        let mode = next(&mut self.modes, "mode")?;
        let step = next(&mut self.seconds, "time")?;
        self.second = self.second.wrapping_add(step);
        let nanoseconds = next(&mut self.nanoseconds, "time")?;
        let modified = Timestamp { seconds: self.second, nanoseconds };
        if mode > MODES || !modified.is_normal() {
            return Err(bad("a mode or a time is out of range"));
        }
        let kind = match kind {
            0 => ItemKind::Folder,
            1 => ItemKind::Symlink { target: take_text(&mut self.targets)?.to_vec() },
            2 => ItemKind::HardLink { target: take_text(&mut self.targets)?.to_vec() },
            3 => ItemKind::File {
                size: next(&mut self.sizes, "size")?,
                digest: next(&mut self.digests, "digest")?,
            },
            5 => {
                let (layer, piece) = next(&mut self.kept, "kept file")?;
                ItemKind::Kept { layer, piece }
            }
            other => return Err(bad(format!("kind {other} is unknown"))),
        };
        let details = Details {
            changed: self.changed(modified)?,
            extended: numbered_of(&self.attributes, &mut self.attributes_of)?,
            owner: numbered_of(self.owners, &mut self.owner_of)?,
            is_cut: false,
        };
        Ok(Item { path, mode, modified, details, kind })
    }

    fn changed(&mut self, modified: Timestamp) -> Result<Option<Timestamp>> {
        let Some(column) = &mut self.changed_seconds else { return Ok(None) };
        let Some(seconds) = next(column, "time")? else { return Ok(None) };
        let difference = next(&mut self.changed_nanoseconds, "time")?;
        let nanoseconds = i64::from(modified.nanoseconds).checked_add(difference);
        let nanoseconds = nanoseconds.and_then(|nanoseconds| u32::try_from(nanoseconds).ok());
        let seconds = modified.seconds.wrapping_add(seconds);
        let time = nanoseconds.map(|nanoseconds| Timestamp { seconds, nanoseconds });
        match time.filter(|time| time.is_normal()) {
            Some(time) => Ok(Some(time)),
            None => Err(bad("a time is out of range")),
        }
    }

    fn next_path(&mut self) -> Result<Vec<u8>> {
        let shared = next(&mut self.shared, "path")? as usize;
        let rest = take_text(&mut self.names)?;
        let Some(kept) = self.path.get(..shared) else {
            return Err(bad("a path shares more bytes than the path before has"));
        };
        let path = [kept, rest].concat();
        self.budget = self
            .budget
            .checked_sub(path.len())
            .ok_or_else(|| bad("its paths are longer than a catalogue of its size can have"))?;
        check_path(&path)?;
        if path <= self.path {
            return Err(bad("its paths are not in order"));
        }
        self.path.clone_from(&path);
        Ok(path)
    }

    fn expect_nothing(self) -> Result<()> {
        let lists = [
            self.shared.len(),
            self.modes.len(),
            self.seconds.len(),
            self.nanoseconds.len(),
            self.sizes.len(),
            self.kept.len(),
            self.changed_seconds.map_or(0, |left| left.len()),
            self.changed_nanoseconds.len(),
            self.attributes_of.map_or(0, |left| left.len()),
            self.owner_of.map_or(0, |left| left.len()),
            self.digests.len(),
        ];
        let is_empty = lists.iter().all(|&left| left == 0);
        match is_empty && self.names.is_empty() && self.targets.is_empty() {
            true => Ok(()),
            false => Err(bad("its columns are longer than its items")),
        }
    }
}

/// Returns the values that occur, and for each item 1 more than the number of its value, or 0 if it
/// has no value. If all items lack a value, both lists are empty.
fn numbered<'v, T: Clone + Ord + 'v>(
    values: impl Iterator<Item = Option<&'v T>>,
) -> (Vec<T>, Vec<u32>) {
    let (mut all, mut numbers) = (Vec::new(), BTreeMap::new());
    let mut number = |value: &'v T| {
        *numbers.entry(value).or_insert_with(|| {
            all.push(value.clone());
            all.len() as u32
        })
    };
    let of: Vec<u32> = values.map(|value| value.map_or(0, &mut number)).collect();
    let is_empty = all.is_empty();
    (all, if is_empty { Vec::new() } else { of })
}

/// Returns the next value of a column that [`numbered`] has made.
fn numbered_of<T: Clone>(
    all: &[T],
    column: &mut Option<std::slice::Iter<'_, u32>>,
) -> Result<Option<T>> {
    let Some(column) = column else { return Ok(None) };
    match next(column, "number")?.checked_sub(1) {
        None => Ok(None),
        Some(number) => match all.get(number as usize) {
            Some(value) => Ok(Some(value.clone())),
            None => Err(bad("a set of attributes or an owner is missing")),
        },
    }
}

/// Returns the values of a column that is missing if it would say nothing.
fn some_of<T>(column: &[T]) -> Option<std::slice::Iter<'_, T>> {
    (!column.is_empty()).then(|| column.iter())
}

fn next<T: Copy>(column: &mut std::slice::Iter<'_, T>, what: &str) -> Result<T> {
    column.next().copied().ok_or_else(|| bad(format!("a {what} is missing")))
}

fn put_text(column: &mut Vec<u8>, text: &[u8]) {
    column.extend_from_slice(text);
    column.push(0);
}

/// Takes the bytes up to a zero byte from the front.
fn take_text<'a>(column: &mut &'a [u8]) -> Result<&'a [u8]> {
    let end = column.iter().position(|&byte| byte == 0);
    let end = end.ok_or_else(|| bad("a path or target is missing"))?;
    let text = &column[..end];
    *column = &column[end + 1..];
    Ok(text)
}

/// Refuses more patterns of excluded paths than a catalogue may have. Returns the reason in words.
pub(crate) fn expect_few(excludes: &[String]) -> std::result::Result<(), String> {
    let bytes = excludes.iter().map(String::len).sum::<usize>();
    match excludes.len() <= MOST_EXCLUDES && bytes <= MOST_EXCLUDE_BYTES {
        true => Ok(()),
        false => Err(format!(
            "{} patterns of excluded paths have {bytes} bytes; at most {MOST_EXCLUDES} patterns of \
             {MOST_EXCLUDE_BYTES} bytes are possible",
            excludes.len()
        )),
    }
}

/// Refuses paths that lead out of the root, or into the folder of parity.
pub(crate) fn check_path(path: &[u8]) -> Result<()> {
    let is_bad = |part: &[u8]| {
        matches!(part, b"" | b"." | b"..") || part == FOLDER.as_bytes() || part.contains(&0)
    };
    // On Windows these characters have a meaning in paths, and could lead out of the root.
    let is_foreign = cfg!(windows) && path.iter().any(|byte| matches!(byte, b'\\' | b':'));
    match is_foreign || path.split(|&byte| byte == b'/').any(is_bad) {
        true => Err(bad(format!("the path {:?} is not allowed", String::from_utf8_lossy(path)))),
        false => Ok(()),
    }
}

fn check_length(items: &[Item], geometry: &StreamGeometry) -> Result<()> {
    let mut sizes = items.iter().filter_map(Item::size);
    let total = sizes.try_fold(0_u64, u64::checked_add);
    match total {
        Some(total) if total == geometry.length => Ok(()),
        _ => Err(bad(format!("its files do not have the {} bytes of the stream", geometry.length))),
    }
}

fn check_kept(items: &[Item], older: &[Older]) -> Result<()> {
    let layers = older.len() as u64;
    let is_beyond = |item: &Item| match item.kind {
        ItemKind::Kept { layer, .. } => u64::from(layer) >= layers,
        _ => false,
    };
    match items.iter().any(is_beyond) {
        true => Err(bad("a file belongs to a layer that it does not list")),
        false => Ok(()),
    }
}

/// Decompresses columns that should have `unpacked` bytes. The memory that this takes depends on
/// the stored bytes, not on the stated number.
fn unpack(packed: &[u8], unpacked: u64, most: &Expansion) -> Result<Vec<u8>> {
    if unpacked / EXPANSION > packed.len() as u64 {
        return Err(bad("its columns state more bytes than DEFLATE can make of them"));
    }
    if unpacked > most.columns as u64 {
        return Err(bad("its columns are longer than a catalogue of its size can have"));
    }
    let mut columns = Vec::new();
    let read = DeflateDecoder::new(packed).take(unpacked + 1).read_to_end(&mut columns);
    match read {
        Ok(read) if read as u64 == unpacked => Ok(columns),
        _ => Err(bad("its columns cannot be decompressed")),
    }
}

fn in_chunks<'a, const N: usize>(bytes: &'a [u8], what: &str) -> Result<&'a [[u8; N]]> {
    match bytes.as_chunks::<N>() {
        (chunks, []) => Ok(chunks),
        _ => Err(bad(format!("its {what} are cut"))),
    }
}

fn to_bytes(value: &impl Encode<()>) -> Result<Vec<u8>> {
    minicbor::to_vec(value).map_err(|error| internal(&error))
}

fn from_bytes<'a, T: Decode<'a, ()>>(bytes: &'a [u8]) -> Result<T> {
    let mut decoder = Decoder::new(bytes);
    let value = decoder.decode().map_err(|error| bad(error.to_string()))?;
    match decoder.position() == bytes.len() {
        true => Ok(value),
        false => Err(bad("there are bytes after its end")),
    }
}

fn internal(error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("writing the catalogue: {error}"))
}

/// Returns the error for a catalogue that contradicts the format.
pub(crate) fn bad(why: impl std::fmt::Display) -> Error {
    Error::not_recognised(format!("the catalogue cannot be used: {why}"))
}

#[cfg(test)]
mod tests;
