//! Changing the list of nodes in a volume file. Everything else, including comments and layout,
//! stays.

use std::fs;
use std::path::{Path, PathBuf};

use paritas::{Code, Spec};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::lock::FolderLocks;
use paritas_store::shown::counted;
use paritas_store::staging::directory_of;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value};

use crate::cluster::unknown;
use crate::config::{Config, NodeEntry, node_template, unreadable, unwritable, written_beside};
use crate::node::Location;
use crate::open::location_of;
use crate::stages::losses;

/// A volume file that is being changed. Nothing is written before [`Edit::save`].
///
/// The number of nodes that may be lost must never rise. Otherwise readers would look for earlier
/// manifests on too few nodes. So the number is written into the file before the list grows.
#[derive(Debug)]
pub struct Edit {
    path: PathBuf,
    /// The folder of the path that was given, which may be a link to `path`.
    base: PathBuf,
    /// What the file said when it was read.
    before: String,
    document: DocumentMut,
    config: Config,
}

impl Edit {
    /// Reads a volume file.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn open(path: &Path) -> Result<Self> {
        let config = Config::read(path)?;
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        // A link stays a link.
        let path = fs::canonicalize(path).map_err(|error| unreadable(path, error))?;
        let before = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        let document = before.parse().map_err(unparsable)?;
        Ok(Self { path, base, before, document, config })
    }

    /// Returns the configuration with the changes so far.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the folder that relative paths start from: the folder of the file or, if a link to
    /// the file was given, the folder of the link, as for [`crate::Volume::open`].
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Adds a node.
    ///
    /// # Errors
    /// If a node of that name or at that place exists already ([`ErrorKind::Exists`]), or if the
    /// name or the URI cannot be used ([`ErrorKind::Parameters`]).
    pub fn add(&mut self, node: &NodeEntry) -> Result<()> {
        let all = self.config.nodes.iter().chain([node]).map(|node| location_of(node, self.base()));
        let mut places = Location::canonical(all.collect::<Result<_>>()?);
        let place = places.pop();
        for (other, at) in self.config.nodes.iter().zip(places) {
            let name = &other.name;
            let what = match &place {
                Some(place) if at == *place => "at this place already",
                Some(place) if at.overlaps(place) => "inside this place or around it",
                _ if *name == node.name => "of this name already",
                _ => continue,
            };
            let message = format!("the volume has a node {what}: {name}");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        let tolerance = self.tolerance()?;
        if self.config.losses != Some(tolerance) {
            set(&mut self.document, "losses", i64::try_from(tolerance).unwrap_or(i64::MAX).into());
        }
        let text: DocumentMut = node_template(node).parse().map_err(unparsable)?;
        self.tables()?.extend(tables_of(&text));
        self.changed()
    }

    /// Marks a node as drained: it is to be emptied. Returns `false` if it was drained already.
    ///
    /// # Errors
    /// If the node does not exist, or if fewer nodes could be lost without it
    /// ([`ErrorKind::Parameters`]).
    pub fn drain(&mut self, name: &str) -> Result<bool> {
        let at = self.position(name)?;
        if self.config.nodes[at].drained {
            return Ok(false);
        }
        self.expect_room_without(name)?;
        if let Some(table) = self.tables()?.get_mut(at) {
            set(table, "drained", true.into());
        }
        self.changed().map(|()| true)
    }

    /// Removes a node from the list. The caller must know that it is empty. Comments above the node
    /// stay, except the comments directly above it.
    ///
    /// # Errors
    /// If the node does not exist, or if it is not drained ([`ErrorKind::Parameters`]).
    pub fn remove(&mut self, name: &str) -> Result<()> {
        let at = self.position(name)?;
        if !self.config.nodes[at].drained {
            return Err(Error::parameters(format!("node {name} must be drained first")));
        }
        let tables = self.tables()?;
        let above = tables.get(at).and_then(|table| table.decor().prefix()?.as_str());
        let kept = above.and_then(|above| Some(above[..above.rfind("\n\n")? + 1].to_owned()));
        tables.remove(at);
        self.put_above(at, &kept.unwrap_or_default());
        self.changed()
    }

    /// Puts comments above node number `at`, or at the end of the file if there is no such node.
    fn put_above(&mut self, at: usize, comments: &str) {
        let next = self.tables().ok().and_then(|tables| tables.get_mut(at));
        match next {
            Some(next) => {
                let prefix = next.decor().prefix().and_then(|prefix| prefix.as_str());
                let prefix = format!("{comments}{}", prefix.unwrap_or_default());
                next.decor_mut().set_prefix(prefix);
            }
            None => {
                let trailing = self.document.trailing().as_str().unwrap_or_default().to_owned();
                self.document.set_trailing(format!("{comments}{trailing}"));
            }
        }
    }

    /// Writes the whole file under a temporary name, and then renames it to its own name. Its mode
    /// stays.
    ///
    /// # Errors
    /// If somebody else changed it meanwhile ([`ErrorKind::Busy`]), or if it cannot be written
    /// ([`ErrorKind::Io`]). Then it is as it was.
    pub fn save(self) -> Result<()> {
        let Self { path, before, document, .. } = self;
        let failed = |error| unwritable(&path, error);
        // Nobody else changes the file between the comparison below and the renaming.
        let _turn = FolderLocks::acquire([directory_of(&path)])?;
        let mode = fs::metadata(&path).map_err(failed)?.permissions();
        let text = as_before(&before, document.to_string());
        let file = written_beside(&path, &text, Some(mode)).map_err(failed)?;
        if fs::read_to_string(&path).map_err(failed)? != before {
            let message = format!("{} was changed meanwhile; try again", path.display());
            return Err(Error::new(ErrorKind::Busy, message));
        }
        file.persist(&path).map(drop).map_err(|error| failed(error.error))
    }

    /// Parses and checks the changed text like any other volume file.
    fn changed(&mut self) -> Result<()> {
        self.config = Config::parse(&self.document.to_string())?;
        Ok(())
    }

    fn tables(&mut self) -> Result<&mut ArrayOfTables> {
        let tables =
            self.document.entry("node").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        tables.as_array_of_tables_mut().ok_or_else(|| {
            Error::parameters("`node` is a list in one line; each node must have a table [[node]]")
        })
    }

    fn position(&self, name: &str) -> Result<usize> {
        let nodes = &self.config.nodes;
        let names = nodes.iter().map(|node| &*node.name);
        let position = nodes.iter().position(|node| node.name == name);
        position.ok_or_else(|| unknown(name, names))
    }

    /// Returns the number of nodes that may be lost, whichever they are.
    fn tolerance(&self) -> Result<usize> {
        let nodes = &self.config.nodes;
        let serving = nodes.iter().filter(|node| !node.drained).count();
        Ok(losses(&self.code()?, self.config.losses, nodes.len(), serving))
    }

    fn code(&self) -> Result<Code> {
        let spec: Spec = self.config.code.parse()?;
        Ok(Code::new(&spec)?)
    }

    /// Checks that the number of nodes that may be lost stays the same without this node.
    fn expect_room_without(&self, name: &str) -> Result<()> {
        let (nodes, code) = (&self.config.nodes, self.code()?);
        let left = nodes.iter().filter(|node| !node.drained && node.name != name).count();
        let (before, shards) = (self.tolerance()?, code.node_count());
        let after = losses(&code, self.config.losses, nodes.len(), left);
        if left > 0 && after >= before {
            return Ok(());
        }
        let most = match left {
            0 => String::new(),
            left => format!(", up to {} on one", shards.div_ceil(left)),
        };
        let after = if left > 0 { after } else { 0 };
        let could = counted(after, "node");
        let (left, shards) = (counted(left, "node"), counted(shards, "shard"));
        Err(Error::parameters(format!(
            "without {name}, {left} would have to hold {shards} of each object{most}, and {could} \
             instead of {before} could be lost; add a node first"
        )))
    }
}

/// Gives a text the beginning and the ends of lines that a file had before: a mark of the order of
/// bytes, and carriage returns, which programs on Windows write. A document keeps neither.
fn as_before(before: &str, text: String) -> String {
    let text = match before.contains("\r\n") {
        true => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => text,
    };
    if before.starts_with(BYTE_ORDER) { format!("{BYTE_ORDER}{text}") } else { text }
}

/// The mark of the order of bytes.
const BYTE_ORDER: char = '\u{feff}';

/// Returns the tables of nodes in a text.
fn tables_of(text: &DocumentMut) -> impl Iterator<Item = Table> + '_ {
    let tables = text.get("node").and_then(Item::as_array_of_tables).into_iter().flatten();
    tables.cloned().map(|mut table| {
        table.set_position(None);
        table
    })
}

/// Sets a key. Comments beside an old value stay.
fn set(table: &mut Table, key: &str, value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        None => _ = table.insert(key, Item::Value(value)),
    }
}

/// Returns the error for a text that one TOML parser accepts and the other refuses.
fn unparsable(error: toml_edit::TomlError) -> Error {
    Error::new(ErrorKind::Internal, format!("the volume file: {}", error.message()))
}

#[cfg(test)]
mod tests;
