//! Finding out what an endpoint can really do. Some servers lack abilities that their kind of
//! service claims.

use std::time::SystemTime;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use paritas_store::error::{Error, ErrorKind, Result};

use super::{Abilities, Mode, Node};
use crate::names::READY;
use crate::outside;

/// Number of files that several tasks try to create at once.
const ROUNDS: usize = 4;

/// Number of tasks that try to create one file at once.
const RACERS: u8 = 8;

/// The findings about a node.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Probe {
    /// What the node can do.
    pub abilities: Abilities,
    /// Seconds by which the node's clock is ahead of this machine's, if the time of a file shows
    /// it. At many nodes, files have times in whole seconds.
    pub clock_ahead: Option<f64>,
    /// Why the node refuses to be listed or written to, if it refuses.
    pub refusal: Option<String>,
}

impl Probe {
    /// Refuses a node that cannot store objects. `name` is that of the node.
    ///
    /// # Errors
    /// If the node cannot be written to or listed ([`ErrorKind::Parameters`]).
    pub fn expect_useful(&self, name: &str) -> Result<()> {
        let Abilities { write, list, .. } = self.abilities;
        if write && list {
            return Ok(());
        }
        let cannot = if write { "listed" } else { "written to" };
        let why = self.refusal.as_deref().map_or(String::new(), |why| format!(": {why}"));
        Err(Error::parameters(format!(
            "node {name} cannot be {cannot}, so it can store no objects{why}"
        )))
    }

    /// Refuses a node that cannot distinguish names which differ only in case, unless the volume
    /// file says so: names are stored there in another form. `name` is that of the node.
    ///
    /// # Errors
    /// If the volume file does not say so ([`ErrorKind::Parameters`]).
    pub fn expect_cases(&self, name: &str, known: Option<Abilities>) -> Result<()> {
        let is_known = known.is_some_and(|known| !known.cases);
        if self.abilities.cases || is_known { Ok(()) } else { Err(caseless(name)) }
    }
}

/// Returns the error for a node that cannot distinguish names which differ only in case, although
/// the volume file does not say so.
pub(crate) fn caseless(name: &str) -> Error {
    let message = "this place does not tell upper from lower case in names: give the node \
                   `abilities = { cases = false }` in the volume file, on every client";
    Error::parameters(message).at_node(name)
}

/// Tries out what a node can do, with test files in a folder `probe-…`, which are removed
/// afterwards.
///
/// # Errors
/// If the node does not answer, or if it loses, changes or does not list what was written.
pub async fn probe(node: &dyn Node) -> Result<Probe> {
    let prober = Prober::new(node)?;
    let claims = node.abilities();
    let unlisted = if claims.list { prober.list().await? } else { None };
    let list = claims.list && unlisted.is_none();
    let unwritten = if claims.write { prober.write().await? } else { None };
    if claims.write && unwritten.is_none() {
        let found = prober.try_out(Abilities { list, ..claims }).await;
        prober.clean_up().await;
        return found.map(|found| Probe { refusal: unlisted, ..found });
    }
    let abilities = Abilities { write: false, list, create: false, ..claims };
    Ok(Probe { abilities, clock_ahead: None, refusal: unwritten.or(unlisted) })
}

/// Removes the files that interrupted calls of [`probe`] left.
pub(crate) async fn remove_probes(node: &dyn Node) -> Result<()> {
    let mut left = Vec::new();
    let mut entries = node.list("");
    while let Some(entry) = entries.next().await {
        let path = entry?.path;
        match is_of_probe(&path) {
            true => left.push(path),
            // The search stops at the first other file.
            false if path != READY => break,
            false => {}
        }
    }
    drop(entries);
    for path in left {
        node.delete(&path).await?;
    }
    Ok(())
}

/// Whether a path is that of a file which [`probe`] writes.
pub(crate) fn is_of_probe(path: &str) -> bool {
    let Some((number, name)) = path.strip_prefix("probe-").and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    let is_number = number.len() == 16 && number.chars().all(|c| c.is_ascii_hexdigit());
    is_number && probe_files().any(|file| file == name)
}

/// Returns the names of the files that [`probe`] writes.
fn probe_files() -> impl Iterator<Item = String> {
    let races = (0..ROUNDS).map(|round| format!("race-{round}"));
    races.chain(["file", "clock", "stream"].map(str::to_owned))
}

/// Whether a node distinguishes upper and lower case in names.
///
/// # Errors
/// If the node does not answer, or cannot be written to.
pub(crate) async fn tells_cases(node: &dyn Node) -> Result<bool> {
    let prober = Prober::new(node)?;
    node.write(&prober.path("file"), Prober::content(), Mode::Replace).await?;
    let found = node.stat(&prober.path("FILE")).await;
    prober.clean_up().await;
    found.map(|found| found.is_none())
}

struct Prober<'a> {
    node: &'a dyn Node,
    folder: String,
}

impl<'a> Prober<'a> {
    fn new(node: &'a dyn Node) -> Result<Self> {
        let number = outside::random()?;
        Ok(Self { node, folder: format!("probe-{number:016x}") })
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    fn content() -> Bytes {
        Bytes::from_static(b"what a node stores")
    }

    /// Lists files. Returns why the node refuses, if it does.
    async fn list(&self) -> Result<Option<String>> {
        refused(self.node.list("").next().await.transpose())
    }

    /// Writes a file. Returns why the node refuses, if it does.
    async fn write(&self) -> Result<Option<String>> {
        refused(self.node.write(&self.path("file"), Self::content(), Mode::Replace).await)
    }

    async fn try_out(&self, mut abilities: Abilities) -> Result<Probe> {
        let clock_ahead = self.clock_ahead().await?;
        let path = self.path("file");
        let whole = self.node.read(&path, None).await?;
        let part = self.node.read(&path, Some(5..11)).await?;
        if whole != Self::content() || part != whole.slice(5..11) {
            let message = "a file that was just written has another content";
            return Err(Error::new(ErrorKind::Io, message).at_node(self.node.name()));
        }
        if abilities.list && !self.lists(&path).await? {
            let message = "a file that was just written is not in the list of its folder";
            return Err(Error::new(ErrorKind::Io, message).at_node(self.node.name()));
        }
        // A node notices by itself if it got the whole file instead of a range.
        abilities.ranges &= self.node.abilities().ranges;
        // A folder notices by itself if its file system lacks exclusive creation of files.
        abilities.create =
            abilities.create && self.creates_once().await? && self.node.abilities().create;
        abilities.cases = abilities.cases && self.node.stat(&self.path("FILE")).await?.is_none();
        abilities.streams = abilities.streams && self.streams().await;
        Ok(Probe { abilities, clock_ahead, refusal: None })
    }

    /// Whether a file is listed.
    async fn lists(&self, path: &str) -> Result<bool> {
        let folder = format!("{}/", self.folder);
        let mut entries = self.node.list(&folder);
        while let Some(entry) = entries.next().await {
            if entry?.path == path {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the node takes a file that is still being written.
    async fn streams(&self) -> bool {
        let path = self.path("stream");
        let write = async {
            let mut writer = self.node.writer(&path).await?;
            writer.write(vec![Self::content()]).await?;
            writer.write(vec![Self::content()]).await?;
            writer.finish().await?;
            self.node.read(&path, None).await
        };
        write.await.is_ok_and(|content| content == [Self::content(), Self::content()].concat())
    }

    /// Whether the node refuses to create a file that exists, even if several tasks ask for it at
    /// once. A node that refuses all requests with that condition does not create conditionally.
    async fn creates_once(&self) -> Result<bool> {
        match self.creators("file", 1).await {
            Ok(0) => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(false),
            Err(error) => return Err(error),
        }
        for round in 0..ROUNDS {
            if self.creators(&format!("race-{round}"), RACERS).await? != 1 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns how many of several tasks that create a file at once succeed.
    async fn creators(&self, name: &str, racers: u8) -> Result<usize> {
        let path = self.path(name);
        let create = |racer| self.node.write(&path, Bytes::from(vec![racer]), Mode::Create);
        let mut created = 0;
        for result in join_all((0..racers).map(create)).await {
            match result {
                Ok(()) => created += 1,
                Err(error) if error.kind() == ErrorKind::Exists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(created)
    }

    async fn clock_ahead(&self) -> Result<Option<f64>> {
        let before = SystemTime::now();
        self.node.write(&self.path("clock"), Self::content(), Mode::Replace).await?;
        let after = SystemTime::now();
        let written = self.node.stat(&self.path("clock")).await?.and_then(|found| found.modified);
        let middle = before + after.duration_since(before).unwrap_or_default() / 2;
        Ok(written.map(|written| match written.duration_since(middle) {
            Ok(ahead) => ahead.as_secs_f64(),
            Err(behind) => -behind.duration().as_secs_f64(),
        }))
    }

    /// Removes all files and their folder. What cannot be removed now could not be removed later
    /// either.
    async fn clean_up(&self) {
        for name in probe_files() {
            let _ = self.node.delete(&self.path(&name)).await;
        }
        let _ = self.node.delete_folder(&self.path("")).await;
    }
}

/// Returns why a node refused something, if it did.
///
/// # Errors
/// If something else was wrong.
fn refused<T>(tried: Result<T>) -> Result<Option<String>> {
    match tried {
        Ok(_) => Ok(None),
        Err(error) if is_refusal(&error) => Ok(Some(error.message().to_owned())),
        Err(error) => Err(error),
    }
}

/// Whether an error says that a node cannot do something, or is not allowed to.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unsupported)
}
