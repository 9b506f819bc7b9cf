//! The disk of a simulated node.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use paritas_store::error::{Error, ErrorKind, Result};
use tokio::time::Instant;

use super::chance::Dice;
use crate::names::READY;
use crate::node::{Entry, Mode, Stat};

#[derive(Debug, Clone)]
struct StoredFile {
    content: Bytes,
    /// When it was written, by the node's clock.
    modified: SystemTime,
    since: Instant,
}

/// The files of a node, and whether it is there.
#[derive(Debug)]
pub struct SimulatedDisk {
    files: BTreeMap<String, StoredFile>,
    /// Files that were deleted or replaced, and when. A listing that lags still shows them.
    gone: Vec<(String, Instant)>,
    pub is_down: bool,
    /// How many disks the node has had before.
    pub replaced: u32,
    /// How far the node's clock is ahead of the true time.
    ahead: Duration,
}

fn missing(path: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no file {path}"))
}

impl SimulatedDisk {
    pub fn new(ahead: Duration) -> Self {
        Self { files: BTreeMap::new(), gone: Vec::new(), is_down: false, replaced: 0, ahead }
    }

    pub fn read(&self, path: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        let content = &self.files.get(path).ok_or_else(|| missing(path))?.content;
        let range = range.unwrap_or(0..content.len() as u64);
        match range.start <= range.end && range.end <= content.len() as u64 {
            true => Ok(content.slice(range.start as usize..range.end as usize)),
            false => Err(Error::new(ErrorKind::Io, format!("{path} ends before {}", range.end))),
        }
    }

    pub fn stat(&self, path: &str) -> Option<Stat> {
        self.files
            .get(path)
            .map(|file| Stat { length: file.content.len() as u64, modified: Some(file.modified) })
    }

    /// Lists files as they were `lag` ago.
    pub fn list(&self, prefix: &str, lag: Duration) -> Vec<Entry> {
        let seen = |since: Instant| lag.is_zero() || since.elapsed() >= lag;
        let there = self.files.iter().filter(|(_, file)| seen(file.since)).map(|(path, _)| path);
        let gone = self.gone.iter().filter(|(_, since)| !seen(*since)).map(|(path, _)| path);
        let mut paths: Vec<&String> = there.chain(gone).collect();
        paths.sort();
        paths.dedup();
        let shown = paths.into_iter().filter(|path| path.starts_with(prefix));
        let entry = |path: &String| {
            let stat = self.stat(path);
            let (length, modified) =
                (stat.map(|stat| stat.length), stat.and_then(|stat| stat.modified));
            Entry { path: path.clone(), length, modified }
        };
        shown.map(entry).collect()
    }

    /// Writes a file at the true time `now`.
    pub fn write(&mut self, path: &str, content: Bytes, mode: Mode, now: SystemTime) -> Result<()> {
        if mode == Mode::Create && self.files.contains_key(path) {
            return Err(Error::new(ErrorKind::Exists, format!("{path} exists")));
        }
        let file = StoredFile { content, modified: now + self.ahead, since: Instant::now() };
        self.files.insert(path.to_owned(), file);
        Ok(())
    }

    pub fn delete(&mut self, path: &str) {
        if self.files.remove(path).is_some() {
            self.gone.push((path.to_owned(), Instant::now()));
        }
    }

    /// Deletes all files whose paths are chosen.
    pub fn delete_all(&mut self, is_chosen: impl Fn(&str) -> bool) {
        self.files.retain(|path, _| !is_chosen(path));
    }

    /// Loses everything but what `stays`.
    pub fn empty(&mut self, stays: impl Fn(&str) -> bool) {
        self.files.retain(|path, _| stays(path));
        self.gone.clear();
        self.replaced += 1;
    }

    /// Forgets what was written within `time`.
    #[cfg(test)]
    pub fn forget(&mut self, time: Duration) {
        self.files.retain(|path, file| path == READY || file.since.elapsed() >= time);
    }

    /// Flips a bit of one of these files, but for the mark. Returns which file.
    pub fn rot(&mut self, paths: &[String], chance: &mut Dice) -> Option<String> {
        let paths: Vec<&String> = paths.iter().filter(|path| *path != READY).collect();
        if paths.is_empty() {
            return None;
        }
        let path = chance.choose(&paths);
        let file = self.files.get_mut(path)?;
        file.content = flipped(&file.content, chance);
        Some(path.clone())
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }
}

/// Returns `content` with one bit flipped.
pub fn flipped(content: &Bytes, chance: &mut Dice) -> Bytes {
    let mut bytes = content.to_vec();
    if !bytes.is_empty() {
        let bit = chance.below(bytes.len() as u64 * 8) as usize;
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    bytes.into()
}
