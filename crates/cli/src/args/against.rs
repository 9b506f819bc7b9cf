//! `bench --against`: settings of the run to compare with.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::ValueEnum;
use paritas::{KernelChoice, Split};

use crate::args::choices::{OrderName, PassName, named};

/// Settings that replace those of the command line; `None` keeps a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Against {
    pub kernel: Option<KernelChoice>,
    pub order: Option<OrderName>,
    pub pass: Option<PassName>,
    pub packet: Option<usize>,
    pub threads: Option<usize>,
    pub bytes_a_thread: Option<NonZeroUsize>,
    pub split: Option<Split>,
}

impl Against {
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || value.parse().map_err(|_| format!("{key} must be a number; got `{value}`"));
        match key {
            "kernel" => {
                self.kernel = Some(value.parse().map_err(|e: paritas::Error| e.to_string())?)
            }
            "order" => self.order = Some(OrderName::from_str(value, false)?),
            "pass" => self.pass = Some(PassName::from_str(value, false)?),
            "packet" => self.packet = Some(number()?),
            "threads" => self.threads = Some(number()?),
            "bytes-a-thread" => {
                let number = NonZeroUsize::new(number()?);
                self.bytes_a_thread = Some(number.ok_or(format!("{key} must be at least 1"))?);
            }
            "split" => self.split = Some(value.parse().map_err(|e: paritas::Error| e.to_string())?),
            _ => {
                return Err(format!(
                    "there is no setting `{key}`; there are kernel, order, pass, packet, threads, \
                     bytes-a-thread, split"
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Against {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut against, mut given) = (Self::default(), BTreeSet::new());
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("must be key=value,…; got `{part}`"));
            };
            if !given.insert(key) {
                return Err(format!("{key} is given twice"));
            }
            against.set(key, value)?;
        }
        Ok(against)
    }
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel.map(|choice| match choice {
            KernelChoice::Only(kernel) => kernel.to_string(),
            _ => "auto".to_owned(),
        });
        let parts = [
            ("kernel", kernel),
            ("order", self.order.map(named)),
            ("pass", self.pass.map(named)),
            ("packet", self.packet.map(|packet| packet.to_string())),
            ("threads", self.threads.map(|threads| threads.to_string())),
            ("bytes-a-thread", self.bytes_a_thread.map(|bytes| bytes.to_string())),
            ("split", self.split.map(|split| split.to_string())),
        ];
        let parts = parts.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?)));
        f.write_str(&parts.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_or_refused() {
        let settings = "kernel=scalar,order=data,packet=8,threads=2,bytes-a-thread=3";
        let against: Against = settings.parse().unwrap();
        assert_eq!((against.order, against.packet), (Some(OrderName::Data), Some(8)));
        assert_eq!(against.to_string(), settings);
        assert_eq!((against.threads, against.pass, against.split), (Some(2), None, None));
        for wrong in [
            "",
            "kernel",
            "kernel=fast",
            "order=up",
            "packet=x",
            "set=8",
            "split=no",
            "bytes-a-thread=0",
        ] {
            assert!(wrong.parse::<Against>().is_err(), "{wrong}");
        }
    }
}
