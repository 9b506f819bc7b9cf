//! Opening a volume from its volume file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use paritas::{Code, CodecOptions, Spec};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::config::{Config, NodeEntry};
use crate::node::{self, Location, Node, Unopened};
use crate::placement::Member;
use crate::setup::Setup;
use crate::stages::parts_of;
use crate::transfer::{Hedge, Settings};

/// A volume file from which a volume was opened.
#[derive(Clone)]
pub(crate) struct OpenedFile {
    path: PathBuf,
    nodes: Vec<NodeEntry>,
}

impl fmt::Debug for OpenedFile {
    /// Shows no nodes: their URIs may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl OpenedFile {
    /// Adds the path to an error about what the file says.
    pub fn named_in(&self, error: Error) -> Error {
        match error.kind() {
            // The nodes' errors name what they are about.
            ErrorKind::Parameters if error.node().is_none() => {
                Error::parameters(format!("{}: {error}", self.path.display()))
            }
            _ => error,
        }
    }

    /// Returns the folders of this machine that are nodes, without links and `..` in their paths.
    pub fn folders(&self) -> Vec<PathBuf> {
        let base = self.path.parent().unwrap_or(Path::new(""));
        let places = self.nodes.iter().filter_map(|node| location_of(node, base).ok());
        let places = Location::canonical(places.collect()).into_iter();
        let folder = |place| match place {
            Location::Folder(folder) => Some(folder),
            _ => None,
        };
        places.filter_map(folder).collect()
    }

    /// Whether the file lists other nodes than when it was opened. A file that cannot be read at
    /// present says nothing.
    pub fn has_other_nodes(&self) -> bool {
        Config::read(&self.path).is_ok_and(|now| now.nodes != self.nodes)
    }
}

/// Reads the setup of a volume from its volume file. The code is run with the options that
/// `options` returns for it.
pub(crate) fn read(
    path: &Path,
    options: impl Fn(&Spec) -> CodecOptions,
) -> Result<(Setup, OpenedFile)> {
    let config = Config::read(path)?;
    // The program may change its working folder while it uses the volume.
    let path = std::path::absolute(path).map_err(|error| {
        let message = format!("cannot find the folder of {}: {error}", path.display());
        Error::new(ErrorKind::Io, message).because(error)
    })?;
    let setup = config.open(path.parent().unwrap_or(Path::new("")), options);
    let file = OpenedFile { path, nodes: config.nodes };
    Ok((setup.map_err(|error| file.named_in(error))?, file))
}

impl Config {
    /// Opens the nodes. Relative folders are relative to `base`.
    pub(crate) fn open(
        &self,
        base: &Path,
        options: impl Fn(&Spec) -> CodecOptions,
    ) -> Result<Setup> {
        let variable = |name: &str| std::env::var(name).ok();
        let nodes = self.nodes.iter().map(|entry| {
            let member = Member {
                name: entry.name.clone(),
                domain: entry.domain().to_owned(),
                is_drained: entry.drained,
            };
            let opened = match node::open(entry, self, base, &variable) {
                // Only its credentials are missing. A volume may do without a node.
                Err(error) if error.kind() == ErrorKind::Refused => {
                    let (config, entry, base) = (self.clone(), entry.clone(), base.to_owned());
                    let (name, abilities) = (entry.name.clone(), entry.abilities);
                    let again = move || node::open(&entry, &config, &base, &variable);
                    Arc::new(Unopened::new(&name, abilities, Box::new(again)))
                }
                opened => opened?,
            };
            Ok((member, opened))
        });
        self.setup(nodes.collect::<Result<_>>()?, options)
    }

    /// Checks that all nodes are at different places, none is inside another one, and none contains
    /// `base`, the folder of the volume file. Two nodes at one place would be lost together, but
    /// count as two, and a node must be empty. Links of folders are followed. Relative folders are
    /// relative to `base`.
    ///
    /// # Errors
    /// If two nodes are at one place, or if a node has another one or the volume file inside
    /// ([`ErrorKind::Exists`]), or if a node's URI cannot be used.
    pub fn expect_apart(&self, base: &Path) -> Result<()> {
        let place = |node: &NodeEntry| location_of(node, base);
        let places = Location::canonical(self.nodes.iter().map(place).collect::<Result<_>>()?);
        let name = |at: usize| &self.nodes[at].name;
        for (at, place) in places.iter().enumerate() {
            if let Some(other) = places[..at].iter().position(|other| other.overlaps(place)) {
                let (one, two, same) = (name(other), name(at), places[other] == *place);
                let how = if same { "at the same place" } else { "one inside the other" };
                let message = format!("nodes {one} and {two} are {how}");
                return Err(Error::new(ErrorKind::Exists, message));
            }
        }
        let here = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
        let is_around = |place: &Location| match place {
            Location::Folder(folder) => here.starts_with(folder),
            _ => false,
        };
        match places.iter().position(is_around) {
            None => Ok(()),
            Some(at) => {
                let message = format!(
                    "the volume file would be inside the folder of node {}, which is for files of \
                     the volume alone; write it elsewhere",
                    name(at)
                );
                Err(Error::new(ErrorKind::Exists, message))
            }
        }
    }

    fn setup(
        &self,
        nodes: Vec<(Member, Arc<dyn Node>)>,
        options: impl Fn(&Spec) -> CodecOptions,
    ) -> Result<Setup> {
        let spec: Spec = self.code.parse()?;
        let unknown = |error| Error::parameters(format!("`code` {:?}: {error}", self.code));
        let code = Code::new(&spec).map_err(unknown)?;
        let hedge = Hedge {
            quantile: self.hedge.quantile,
            at_least: Duration::from_millis(self.hedge.at_least),
            most: self.hedge.most / 100.0,
        };
        let memory = usize::try_from(self.limits.memory.as_u64()).unwrap_or(usize::MAX);
        let unit = usize::try_from(self.unit.as_u64()).unwrap_or(usize::MAX);
        // A put collects a unit of each part before it writes, and reads the same number of bytes
        // ahead.
        let unit = unit.min(memory / 2 / parts_of(&code).len().max(1)).max(1);
        let settings = Settings { unit, memory, hedge, ..Settings::default() };
        let options = options(code.spec());
        Ok(Setup {
            block_bytes: usize::try_from(self.block.as_u64()).unwrap_or(usize::MAX),
            losses: self.losses,
            missing: self.write.missing,
            inline_bytes: usize::try_from(self.write.inline.as_u64()).unwrap_or(usize::MAX),
            background_rate: self.limits.background_rate.map(|rate| rate.as_u64()),
            settings,
            options,
            ..Setup::new(self.id.clone(), code, nodes)
        })
    }
}

/// Returns where a node is. Relative folders are relative to `base`.
///
/// # Errors
/// If the node's URI cannot be used. The error names the node.
pub(crate) fn location_of(node: &NodeEntry, base: &Path) -> Result<Location> {
    let variable = |name: &str| std::env::var(name).ok();
    let location = Location::parse(&node.uri, base, &variable);
    location.map_err(|error| error.at_node(&node.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Volume;

    #[test]
    fn units_of_all_shards_fit_into_half_of_the_memory() {
        let unit = |unit: &str, memory: &str| {
            let text = format!(
                "name = \"v\"\nid = \"{}\"\ncode = \"6+2\"\nunit = \"{unit}\"\n\
                 [limits]\nmemory = \"{memory}\"\n",
                "0".repeat(32)
            );
            let setup =
                Config::parse(&text).unwrap().setup(Vec::new(), |_| CodecOptions::default());
            setup.unwrap().settings.unit
        };
        assert_eq!(unit("1 MiB", "256 MiB"), 1 << 20);
        assert_eq!(unit("1 GiB", "256 MiB"), 16 << 20);
        assert_eq!(unit("1 MiB", "1 B"), 1);
    }

    #[test]
    fn folders_stay_where_they_are_if_the_program_changes_its_own() {
        let here = std::env::current_dir().unwrap();
        let folder = tempfile::tempdir_in(&here).unwrap();
        let path = folder.path().join("v.toml");
        Config::init(&path, "v", "1+1", &["a", "b"].map(|node| NodeEntry::new(node, node)))
            .unwrap();
        let relative = path.strip_prefix(&here).unwrap();
        let volume = Volume::open(relative, |_| CodecOptions::default()).unwrap();
        let shown = format!("{volume:?}");
        let expected = format!("{:?}", folder.path().join("a"));
        assert!(shown.contains(&expected), "{shown}");
    }

    #[test]
    fn changed_nodes_of_a_file_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.toml");
        let nodes = ["a", "b"].map(|node| NodeEntry::new(node, node));
        Config::init(&path, "v", "1+1", &nodes).unwrap();
        let (_, file) = read(&path, |_| CodecOptions::default()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let other = text.replace("uri = \"b\"", "uri = \"c\"");
        for (now, is_other) in [
            (format!("{text}\n# a remark\n"), false),
            (other, true),
            ("half".to_owned(), false),
            (text, false),
        ] {
            std::fs::write(&path, now).unwrap();
            assert_eq!(file.has_other_nodes(), is_other);
        }
    }

    /// The secrets of a service may come later than the service.
    #[tokio::test]
    async fn a_node_is_opened_once_its_credentials_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let nodes = ["a", "b"].map(|name| NodeEntry::new(name, "webdav+http://127.0.0.1:9/x"));
        let mut config = Config::draft("v", "1+1", &nodes).unwrap();
        config.nodes[0].credentials = Some("secret.toml".to_owned());
        let setup = config.open(folder.path(), |_| CodecOptions::default()).unwrap();
        let node = &setup.nodes[0].1;
        let error = node.stat("ready").await.unwrap_err();
        assert_eq!((error.kind(), error.node()), (ErrorKind::Refused, Some("a")), "{error}");
        let secret = folder.path().join("secret.toml");
        std::fs::write(&secret, "user = \"me\"\npassword = \"0123\"\n").unwrap();
        let file = std::fs::File::open(&secret).unwrap();
        paritas_store::place::system::set_mode(&file, 0o600).unwrap();
        let error = node.stat("ready").await.unwrap_err();
        assert!(!error.to_string().contains("credentials"), "{error}");
    }

    #[test]
    fn errors_about_what_a_file_says_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.toml");
        let nodes = ["a", "b"].map(|node| NodeEntry::new(node, node));
        Config::init(&path, "v", "1+1", &nodes).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("losses = 1", "losses = 2")).unwrap();
        let error = Volume::open(&path, |_| CodecOptions::default()).unwrap_err().to_string();
        assert!(error.contains("v.toml: `losses = 2`"), "{error}");
    }

    #[test]
    fn one_folder_is_one_node() {
        let folder = tempfile::tempdir().unwrap();
        ["a", "b"].iter().for_each(|name| std::fs::create_dir(folder.path().join(name)).unwrap());
        let config = |uri: &str| {
            let nodes = [NodeEntry::new("x", "a"), NodeEntry::new("y", uri)];
            Config::draft("v", "1+1", &nodes).unwrap()
        };
        config("b").expect_apart(folder.path()).unwrap();
        let mut same = vec!["a", "./a/", "b/../a", "fs:a"];
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
            same.push("link");
        }
        for uri in same {
            let error = config(uri).expect_apart(folder.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Exists, "{uri}");
            assert_eq!(error.to_string(), "nodes x and y are at the same place", "{uri}");
        }
        std::fs::create_dir(folder.path().join("a/below")).unwrap();
        for uri in ["a/below", "a/not made yet", "b/../a/below"] {
            let error = config(uri).expect_apart(folder.path()).unwrap_err();
            assert_eq!(error.to_string(), "nodes x and y are one inside the other", "{uri}");
        }
        for base in ["a", "a/below"] {
            let place = folder.path().join("a");
            let nodes = [NodeEntry::new("x", place.to_str().unwrap()), NodeEntry::new("y", "c")];
            let config = Config::draft("v", "1+1", &nodes[..1]).unwrap();
            let error = config.expect_apart(&folder.path().join(base)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
            assert!(error.to_string().contains("folder of node x"), "{error}");
        }
    }

    #[test]
    fn an_unusable_value_is_told_with_its_file_and_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.toml");
        let head = format!("name = \"v\"\nid = \"{}\"\n", "0".repeat(32));
        for (rest, key) in [
            ("code = \"bogus\"", "`code` \"bogus\""),
            ("code = \"bogus:k=2\"", "`code`"),
            ("code = \"1+1\"\n[[node]]\nname = \"a\"\nuri = \"\"", "`uri` is empty"),
        ] {
            std::fs::write(&path, format!("{head}{rest}\n")).unwrap();
            let error = Volume::open(&path, |_| CodecOptions::default()).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
            assert!(error.contains("v.toml") || error.contains("node a"), "{error}");
        }
    }
}
