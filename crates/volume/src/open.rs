//! Opening a volume from its volume file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use paritas::{Code, CodecOptions, Spec};
use paritas_store::error::{Error, ErrorKind, Result};

use crate::config::{Config, NodeEntry};
use crate::node::{self, Location, Node};
use crate::placement::Member;
use crate::setup::Setup;
use crate::stages::parts_of;
use crate::transfer::{Hedge, Settings};

/// Reads the setup of a volume from its volume file. The code is run with the options that
/// `options` returns for it.
pub(crate) fn read(path: &Path, options: impl Fn(&Spec) -> CodecOptions) -> Result<Setup> {
    let config = Config::read(path)?;
    // The program may change its working folder while it uses the volume.
    let path = std::path::absolute(path).map_err(|error| {
        let message = format!("cannot find the folder of {}: {error}", path.display());
        Error::new(ErrorKind::Io, message).because(error)
    })?;
    config.open(path.parent().unwrap_or(Path::new("")), options)
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
            Ok((member, node::open(entry, self, base, &variable)?))
        });
        self.setup(nodes.collect::<Result<_>>()?, options)
    }

    /// Checks that all nodes are at different places. Two nodes at one place would be lost
    /// together, but count as two. Links of folders are followed. Relative folders are relative to
    /// `base`.
    ///
    /// # Errors
    /// If two nodes are at one place ([`ErrorKind::Exists`]), or if a node's URI cannot be used.
    pub fn expect_apart(&self, base: &Path) -> Result<()> {
        let variable = |name: &str| std::env::var(name).ok();
        let place = |node: &NodeEntry| Location::parse(&node.uri, base, &variable);
        let places = Location::canonical(self.nodes.iter().map(place).collect::<Result<_>>()?);
        let name = |at: usize| &self.nodes[at].name;
        for (at, place) in places.iter().enumerate() {
            if let Some(other) = places[..at].iter().position(|other| other == place) {
                let message =
                    format!("nodes {} and {} are at the same place", name(other), name(at));
                return Err(Error::new(ErrorKind::Exists, message));
            }
        }
        Ok(())
    }

    fn setup(
        &self,
        nodes: Vec<(Member, Arc<dyn Node>)>,
        options: impl Fn(&Spec) -> CodecOptions,
    ) -> Result<Setup> {
        let spec: Spec = self.code.parse()?;
        let code = Code::new(&spec)?;
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
    }
}
