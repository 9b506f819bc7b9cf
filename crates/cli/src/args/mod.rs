//! Every flag, defined once. Parser, help, man pages and completions are derived from these
//! definitions.
//!
//! This file lists the commands. Their flags are in modules by theme: [`protect`], [`shards`] (also
//! flags for both shards and protections), [`foreign`], [`volume`], [`serve`], [`codes`],
//! [`machine`]. Definitions that several of them share are in [`work`], [`choices`], [`code`] and
//! [`search`].

pub mod against;
pub mod choices;
pub mod code;
pub mod codes;
pub mod foreign;
pub mod help;
pub mod machine;
pub mod packet;
pub mod protect;
pub mod search;
#[cfg(feature = "gateway")]
pub mod serve;
pub mod shards;
#[cfg(feature = "volume")]
pub mod volume;
pub mod work;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use crate::args::codes::{Codes, Schedule};
use crate::args::foreign::{Export, Import};
use crate::args::machine::{Bench, Tune};
use crate::args::protect::Protect;
use crate::args::shards::{Decode, Encode, Info, Promote, Repair, Verify};

const PROGRAM: &str = "\
Examples:
  paritas protect photos                               parity beside files that stay where they are
  paritas verify photos || paritas repair photos
  paritas encode photos.tar --out shards               six shards, any two of which may be lost
  paritas decode shards --out photos.tar

Exit codes:
  0  done, or everything is intact
  1  damaged, but repairable; or too much has changed for `protect --update`
  2  damaged beyond repair
  3  bad arguments or parameters
  4  nothing recognisable as a shard set, or as protected files
  5  repair or decode finished, but the final check failed; verify --deep found wrong parity; or
     `protect --update` found a damaged file
  6  input or output failed, an unreadable file decides the verdict, or another process interferes
  7  internal error
  8  out of memory
  130  interrupted by Ctrl-C (`paritas volume`; `serve` and `volume keep` at the second one)
  143  ended by SIGTERM (`paritas volume`; `serve` and `volume keep` at the second one)

JSON: `paritas schema COMMAND` prints the fields of a result. A name or path that is not UTF-8 is in \
base64, in a field that ends with _bytes: name_bytes, path_bytes. Long jobs also print lines of type \
\"progress\". On standard error there are lines of type \"warning\", and a command that fails ends with \
one of type \"error\".";

const COMPLETIONS: &str = "\
Example:
  paritas completions bash > ~/.local/share/bash-completion/completions/paritas";

const MAN: &str = "\
Example:
  paritas man ~/.local/share/man/man1";

const SCHEMA: &str = "\
Examples:
  paritas schema verify                    the fields of its lines, with what they mean
  paritas schema volume put --json         the same as a JSON schema
  paritas schema > paritas.schema.json     the schema of all commands";

const DOCTOR: &str = "\
Example:
  paritas doctor";

/// Protect files with erasure codes: verify, repair and recover them.
#[derive(Debug, Parser)]
#[command(name = "paritas", version, after_help = PROGRAM, max_term_width = 100)]
pub struct Args {
    /// Print results as JSON, one object a line.
    ///
    /// Errors are then JSON on standard error. `paritas schema COMMAND` prints the fields.
    #[arg(long, global = true)]
    pub json: bool,

    /// Print only errors, and no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put parity beside files that stay where they are.
    Protect(Protect),
    /// Cut a file into shards, a few of which may be lost.
    Encode(Encode),
    /// Get a file back from its shards.
    Decode(Decode),
    /// Check every protected file, or every block of every shard.
    Verify(Verify),
    /// Restore protected files, or rewrite missing and damaged shards.
    Repair(Repair),
    /// Add the parity that a dpg or bbdpg code leaves for later.
    Promote(Promote),
    /// Show what protections and shards say about themselves.
    Info(Info),
    /// Turn another tool's fragments into shards of the same code.
    Import(Import),
    /// Turn shards into another tool's fragments.
    Export(Export),
    /// Keep objects on disks, hosts and buckets.
    #[cfg(feature = "volume")]
    Volume(volume::Volume),
    /// Let programs that speak S3 use a volume.
    #[cfg(feature = "gateway")]
    Serve(serve::Serve),
    /// List the code families, or describe one code.
    Codes(Codes),
    /// Show the XOR schedule of a code, and its cost.
    Schedule(Schedule),
    /// Measure how fast a code runs on this machine.
    Bench(Bench),
    /// Measure which settings are fastest on this machine, and remember them.
    Tune(Tune),
    /// Show what this machine offers, and check that every kernel computes right.
    #[command(after_help = DOCTOR)]
    Doctor,
    /// Show the fields of results with --json.
    #[command(after_help = SCHEMA)]
    Schema {
        /// The command, such as `verify` or `volume put`; `any` for lines that any command may
        /// print.
        command: Vec<String>,
    },
    /// Print completions for a shell.
    #[command(after_help = COMPLETIONS)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write man pages.
    #[command(after_help = MAN)]
    Man {
        /// The folder to write them to; created if it does not exist.
        directory: PathBuf,
    },
}

/// Whether a path for a result means standard output.
pub fn is_stdout(path: &Path) -> bool {
    let names = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

impl Command {
    /// Whether standard output carries an object's bytes.
    pub fn takes_stdout(&self) -> bool {
        match self {
            Self::Decode(decode) => is_stdout(&decode.out),
            #[cfg(feature = "volume")]
            Self::Volume(volume) => volume.command.takes_stdout(),
            _ => false,
        }
    }
}
