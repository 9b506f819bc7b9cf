//! Volumes over folders in a temporary place. Every test uses some of this.

pub mod gate;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paritas_volume::node::{Counted, Counters, FolderNode, Node, NodeCall};
use paritas_volume::{
    GetOptions, Member, ObjectName, PutOptions, PutReport, Result, Setup, Upload, Volume,
};
use tempfile::TempDir;

/// All kinds of calls.
pub const CALLS: [NodeCall; 7] = [
    NodeCall::Read,
    NodeCall::Stat,
    NodeCall::List,
    NodeCall::Write,
    NodeCall::Piece,
    NodeCall::Finish,
    NodeCall::Delete,
];

/// Folders that stand for disks.
pub struct Disks {
    root: TempDir,
    count: usize,
}

impl Disks {
    pub fn new(count: usize) -> Self {
        let root = tempfile::tempdir().unwrap();
        (0..count)
            .for_each(|disk| std::fs::create_dir(root.path().join(disk.to_string())).unwrap());
        Self { root, count }
    }

    pub fn path(&self, disk: usize) -> PathBuf {
        self.root.path().join(disk.to_string())
    }

    /// Opens the volume over all disks, without asking any.
    pub fn open(&self, code: &str) -> Volume {
        self.open_with(code, &|_, node| node)
    }

    /// Opens the volume over what `wrap` makes of the disks.
    pub fn open_with(
        &self,
        code: &str,
        wrap: &dyn Fn(usize, Arc<dyn Node>) -> Arc<dyn Node>,
    ) -> Volume {
        self.open_changed(code, wrap, |_| {})
    }

    /// Opens the volume so that all its nodes count together.
    pub fn open_counted(&self, code: &str) -> (Volume, Arc<Counters>) {
        let counters = Arc::new(Counters::default());
        (self.open_counted_by(code, &counters), counters)
    }

    /// Opens the volume so that its nodes count with these counters.
    pub fn open_counted_by(&self, code: &str, counters: &Arc<Counters>) -> Volume {
        self.open_with(code, &|_, node| Arc::new(Counted::new(node, Arc::clone(counters))))
    }

    /// Opens the volume without one disk.
    pub fn open_without(&self, code: &str, disk: usize) -> Volume {
        self.open_changed(code, &|_, node| node, |setup| _ = setup.nodes.remove(disk))
    }

    /// Opens the volume with one disk drained.
    pub fn open_drained(&self, code: &str, disk: usize) -> Volume {
        let drain = |setup: &mut Setup| setup.nodes[disk].0.is_drained = true;
        self.open_changed(code, &|_, node| node, drain)
    }

    /// Opens the volume over what `wrap` makes of the disks, with a changed setup.
    pub fn open_changed(
        &self,
        code: &str,
        wrap: &dyn Fn(usize, Arc<dyn Node>) -> Arc<dyn Node>,
        change: impl FnOnce(&mut Setup),
    ) -> Volume {
        let code = paritas::Code::new(&code.parse().unwrap()).unwrap();
        let node = |disk: usize| {
            let name = format!("disk{disk}");
            let folder: Arc<dyn Node> = Arc::new(FolderNode::new(&name, self.path(disk), false));
            (Member { domain: name.clone(), name, is_drained: false }, wrap(disk, folder))
        };
        let mut setup = Setup::new("0".repeat(32), code, (0..self.count).map(node).collect());
        setup.block_bytes = 64 << 10;
        change(&mut setup);
        Volume::new(setup).unwrap()
    }

    /// Opens the volume, and marks its disks.
    pub async fn volume(&self, code: &str) -> Volume {
        let volume = self.open(code);
        volume.mark_nodes().await.unwrap();
        volume
    }

    /// Makes disks disappear until they are shown again.
    pub fn hide(&self, disks: &[usize]) -> Hidden {
        let mut hidden = Vec::new();
        for &disk in disks {
            let away = self.root.path().join(format!("{disk}.hidden"));
            if std::fs::rename(self.path(disk), &away).is_ok() {
                hidden.push((away, self.path(disk)));
            }
        }
        Hidden(hidden)
    }

    /// Returns all files of a disk, with their contents.
    pub fn files_on(&self, disk: usize) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = Vec::new();
        walk(&self.path(disk), &mut found);
        found.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
    }

    /// Returns all files below a folder of every disk.
    pub fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        (0..self.count).for_each(|disk| walk(&self.path(disk).join(folder), &mut found));
        found
    }
}

/// Disks that have disappeared.
#[derive(Debug)]
pub struct Hidden(Vec<(PathBuf, PathBuf)>);

impl Hidden {
    pub fn show(self) {
        self.0.iter().for_each(|(away, back)| std::fs::rename(away, back).unwrap());
    }
}

pub fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => walk(&path, found),
            false => found.push(path),
        }
    }
}

/// Returns bytes that do not repeat soon.
pub fn content(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * i % 251) as u8 ^ (i >> 8) as u8).collect()
}

/// Returns the name of an object.
pub fn name(text: &str) -> ObjectName {
    ObjectName::new(text).unwrap()
}

/// Stores an object.
pub async fn put(volume: &Volume, object: &str, bytes: &[u8]) -> PutReport {
    let source = std::io::Cursor::new(bytes.to_vec());
    volume.put(&name(object), source, PutOptions::default()).await.unwrap()
}

/// Reads an object.
pub async fn get(volume: &Volume, object: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    volume.get(&name(object), None, &mut bytes, GetOptions::default(), &|_| {}).await?;
    Ok(bytes)
}

/// Returns the names that begin with `prefix`.
pub async fn listed(volume: &Volume, prefix: &str) -> Vec<String> {
    let objects = volume.list(prefix).await.unwrap().objects;
    objects.into_keys().map(|name| name.to_string()).collect()
}

/// Stores a piece.
pub async fn put_piece(upload: &Upload<'_>, number: u32, bytes: &[u8]) {
    let source = std::io::Cursor::new(bytes.to_vec());
    upload.put_piece(number, source, PutOptions::default()).await.unwrap();
}

/// Changes one byte in the middle of a file.
pub fn damage(path: &Path) {
    let mut content = std::fs::read(path).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    std::fs::write(path, content).unwrap();
}
