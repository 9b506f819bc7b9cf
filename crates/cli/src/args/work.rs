//! Options that many commands share: how they write files, and with how many threads.

use std::num::NonZeroUsize;

/// Options of writing files.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Work {
    /// Wait until everything is on the disk (the default).
    ///
    /// No file gets its final name before that.
    #[arg(long, overrides_with = "no_sync", hide_short_help = true)]
    pub sync: bool,
    /// Do not wait for the disk: faster.
    ///
    /// A power failure may then lose the newest files.
    #[arg(long, overrides_with = "sync", hide_short_help = true)]
    pub no_sync: bool,
    #[command(flatten)]
    pub threads: Threads,
}

impl Work {
    /// Whether to wait for the disk.
    pub fn is_synced(self) -> bool {
        self.sync || !self.no_sync
    }
}

/// Returns a parser of whole numbers from 1 to `most`.
pub fn count_to(most: u32) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| format!("must be a whole number from 1 to {most}; got `{text}`"))
    }
}

/// The option that limits threads.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Threads {
    /// The most threads to use [default: one for each processor].
    #[arg(
        long,
        default_value_t = 0,
        hide_default_value = true,
        value_name = "N",
        hide_short_help = true
    )]
    threads: usize,
}

impl Threads {
    /// Returns the largest number of threads; `None` means one for each processor.
    pub fn most(self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(self.threads)
    }
}
