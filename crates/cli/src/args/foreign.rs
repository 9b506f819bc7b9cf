//! The commands about other tools' fragments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;
use paritas::Spec;
use paritas_shards::foreign::Format;

use crate::args::code::code_name;
use crate::args::work::Work;

const IMPORT: &str = "\
Examples:
  paritas import photos.tar.*_*.fec --format zfec --out shards
  paritas import backup --format klauspost --code backblaze:k=10,m=4 --length 123456789 --out shards

Fragments carry no checksums. If more are given than are needed, they are compared, and a \
contradiction is exit 5. If two more are given than are needed, the message names the damaged one. \
Leave it out: missing fragments are computed.";

const EXPORT: &str = "\
Examples:
  paritas export shards --format zfec --out shares
  paritas export shards --format jerasure --packet 1024 --out Coding

The object's code must be one that the format can hold.";

/// `--format`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FormatName {
    /// Share files of zfec and zunfec.
    Zfec,
    /// NAME.0, NAME.1, … as klauspost/reedsolomon's simple encoder writes them (import needs --code
    /// backblaze:k=K,m=M; without --length, the length of the data, it keeps the padding).
    Klauspost,
    /// Files named as for klauspost, with any code in the word layout.
    Isal,
    /// Files named as for klauspost, with the cells of HDFS's blocks, without their checksums.
    Hdfs,
    /// Files of Jerasure's example encoder, with NAME_meta.txt; all techniques.
    Jerasure,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Zfec => Self::Zfec,
            FormatName::Klauspost => Self::Klauspost,
            FormatName::Isal => Self::Isal,
            FormatName::Hdfs => Self::Hdfs,
            FormatName::Jerasure => Self::Jerasure,
        }
    }
}

/// Another tool's fragments.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Foreign {
    /// The tool's format.
    #[arg(long, value_enum)]
    pub format: FormatName,
    /// Bytes of a cell, for hdfs [default: 1048576].
    #[arg(long, value_name = "BYTES")]
    pub cell: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT)]
pub struct Import {
    /// Fragments, or folders of them.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub foreign: Foreign,
    /// The code, if fragments do not tell it.
    #[arg(long, value_name = "SPEC", value_parser = code_name())]
    pub code: Option<Spec>,
    /// The length of the file in bytes, if fragments do not tell it.
    #[arg(long, value_name = "BYTES")]
    pub length: Option<u64>,
    /// The folder for all shards; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The name to store, instead of the fragments' own.
    #[arg(long)]
    pub name: Option<OsString>,
    /// Replace existing shards of this name.
    ///
    /// They are kept until the new ones are complete.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT)]
pub struct Export {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub foreign: Foreign,
    /// Bytes of a packet, for jerasure's techniques with packets.
    ///
    /// Without it, the packet of the object, or the next larger one that the technique allows.
    #[arg(long, value_name = "BYTES")]
    pub packet: Option<usize>,
    /// The folder for the fragments; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The object, by its name or the first digits of its id.
    ///
    /// At least four digits; needed if there are several objects.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    /// Replace existing files.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub work: Work,
}
