//! The flags of `paritas serve`, each defined once.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use paritas_gateway::DoorOptions;

use crate::args::protect::parse_memory;
use crate::args::volume::Background;

/// Let programs that speak S3 use a volume.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas serve tank.toml --keys keys.toml
  paritas serve tank.toml --keys keys.toml --listen 0.0.0.0:9000 --tls cert.pem key.pem

Buckets are the first folders of names, if they have 3 to 63 lower-case letters, digits, dots and \
hyphens: what `volume put tank.toml a.jpg photos/a.jpg` stores is the object a.jpg of the bucket \
photos. The file of keys is TOML, and only its owner may read it:

  [[key]]
  id = \"backup\"
  secret = \"at least 16 characters\"
  buckets = [\"photos\"]     all, if left out
  read_only = true         false, if left out

The gateway holds no state: run several before one volume, on several machines, behind any load \
balancer, which may check /-/health. The page /-/ shows the nodes, /-/metrics is for Prometheus. \
While it serves, it also repairs what is owed, promotes, scrubs once a week, and removes remains; \
several gateways share this work. When the volume file lists other nodes, they are used within \
seconds. At the signal SIGHUP, the keys, the certificate and the volume file are read anew, and no \
request is broken off. docs/gateway.md has more.

After Ctrl-C or the signal SIGTERM, the gateway answers the requests that it has begun, for up to \
30 seconds, and ends with exit code 0. A second one ends it at once.")]
pub struct Serve {
    /// The volume file.
    #[arg(value_name = "VOLUME")]
    pub volume: PathBuf,
    /// The address to listen at.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    pub listen: String,
    /// The file of the keys that are accepted.
    #[arg(long, value_name = "FILE", required_unless_present = "anonymous")]
    pub keys: Option<PathBuf>,
    /// Accept every request without a key.
    #[arg(long, conflicts_with = "keys")]
    pub anonymous: bool,
    /// Speak TLS, with a certificate and its key.
    ///
    /// Both are PEM files. The first holds the certificate, then the certificates that it depends
    /// on.
    #[arg(long, num_args = 2, value_names = ["CERTIFICATE", "KEY"])]
    pub tls: Vec<PathBuf>,
    /// The name of the gateway: requests to BUCKET.NAME are about the bucket.
    ///
    /// Without it, the bucket stands in the path (path style).
    #[arg(long, value_name = "NAME", value_parser = parse_domain)]
    pub domain: Option<String>,
    /// Refuse whatever would change something.
    #[arg(long, conflicts_with = "rate")]
    pub read_only: bool,
    /// The most connections at a time; others wait.
    #[arg(long, value_name = "N", default_value_t = DoorOptions::CONNECTIONS, hide_short_help = true)]
    pub connections: NonZeroUsize,
    /// The memory for all objects that are being sent and received.
    ///
    /// Others wait for half a minute, and then get 503. Documents count as well. Must be at least
    /// `limits.memory` of the volume file, the most that one object takes. Without
    /// this flag, 4GiB, or a quarter of what the machine and its container leave if that is less.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, hide_short_help = true)]
    pub memory: Option<u64>,
    /// Serve the page and the metrics to other machines, too.
    #[arg(long, hide_short_help = true)]
    pub public_pages: bool,
    /// Leave repairs, promotions and scrubs to others.
    #[arg(long, conflicts_with = "rate")]
    pub no_upkeep: bool,
    /// How the log is written to standard error [default: lines, or json with --json].
    ///
    /// With --quiet, it has failures alone.
    #[arg(long, value_enum, value_name = "FORM", hide_short_help = true)]
    pub log: Option<LogForm>,
    /// The load that upkeep may put on nodes.
    #[command(flatten)]
    pub background: Background,
}

/// Parses the name of a host.
fn parse_domain(text: &str) -> Result<String, String> {
    let is_label = |part: &str| {
        !part.is_empty() && part.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '-')
    };
    match text.split('.').all(is_label) {
        true => Ok(text.to_owned()),
        false => Err("must be the name of a host without a port, as store.example.org".to_owned()),
    }
}

/// The forms of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogForm {
    /// Lines for people.
    Lines,
    /// A JSON object a line.
    Json,
    /// Nothing.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_a_name_of_a_host() {
        for name in ["store", "store.example.org", "s3-1.lan"] {
            assert_eq!(parse_domain(name).as_deref(), Ok(name));
        }
        for other in ["", ".lan", "store:9000", "http://store", "store.lan/"] {
            assert!(parse_domain(other).unwrap_err().contains("without a port"), "{other}");
        }
    }
}
