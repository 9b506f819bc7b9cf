//! From a volume file to a volume in use.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use paritas::{Code, CodecOptions, Spec};

use crate::config::Config;
use crate::error::Result;
use crate::node::{self, Node};
use crate::placement::Member;
use crate::transfer::{Hedge, Settings};
use crate::volume::{Setup, Volume, parts_of};

impl Volume {
    /// Opens the volume that a volume file describes. The code is run with the options that
    /// `options` returns for it. No node is asked for anything yet.
    ///
    /// # Errors
    /// If the file cannot be read or says something impossible, or if a node's URI or credentials
    /// cannot be used.
    pub fn open(path: &Path, options: impl Fn(&Spec) -> CodecOptions) -> Result<Self> {
        let base = path.parent().unwrap_or(Path::new(""));
        Self::of(&Config::read(path)?, base, options)
    }

    /// Opens the volume that `config` describes. Relative folders are relative to `base`, the
    /// folder of the volume file.
    ///
    /// # Errors
    /// If the configuration says something impossible, or if a node's URI or credentials cannot be
    /// used.
    pub fn of(
        config: &Config,
        base: &Path,
        options: impl Fn(&Spec) -> CodecOptions,
    ) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        let nodes = config.nodes.iter().map(|entry| {
            let member = Member {
                name: entry.name.clone(),
                domain: entry.domain().to_owned(),
                is_drained: entry.drained,
            };
            Ok((member, node::open(entry, config, base, &variable)?))
        });
        let nodes: Vec<(Member, Arc<dyn Node>)> = nodes.collect::<Result<_>>()?;
        Self::new(config.setup(nodes, options)?)
    }
}

impl Config {
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
        // A put collects a unit of each part before it writes, and reads as much ahead.
        let unit = unit.min(memory / 2 / parts_of(&code).len().max(1)).max(1);
        let settings = Settings { unit, memory, hedge, ..Settings::default() };
        let options = options(code.spec());
        Ok(Setup {
            block_bytes: usize::try_from(self.block.as_u64()).unwrap_or(usize::MAX),
            losses: self.losses,
            missing: self.write.missing,
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
}
