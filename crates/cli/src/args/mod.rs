//! Every flag, defined once.
//!
//! This file is long because it is one table of all commands, their flags and their help texts;
//! those about protection are in [`protect`], those about volumes in [`volume`], and what several
//! commands share in [`work`] and [`choices`]. Parser, help, man pages and completions are derived
//! from it.

pub mod against;
pub mod choices;
pub mod code;
pub mod help;
pub mod packet;
pub mod protect;
pub mod search;
#[cfg(feature = "gateway")]
pub mod serve;
#[cfg(feature = "volume")]
pub mod volume;
pub mod work;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use paritas::research::{Machine, Objective};
use paritas::{KernelChoice, Spec, Split};
use paritas_report::speed::{AlignWord, OperationWord};
use paritas_shards::DEFAULT_CODE;
use paritas_shards::foreign::Format;

use crate::args::against::Against;
use crate::args::choices::{OrderName, PassName};
use crate::args::code::code_name;
use crate::args::packet::PacketChoice;
use crate::args::protect::Protect;
use crate::args::search::MatrixSearch;
use crate::args::work::{Threads, Work};

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
  5  repair or decode finished, but the final check failed, or verify --deep found wrong parity
  6  input or output failed, an unreadable file decides the verdict, or another process interferes
  7  internal error
  8  out of memory
  130  interrupted by Ctrl-C (`paritas volume` only)
  143  ended by SIGTERM (`paritas volume` only)

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
    /// Show what results have with --json.
    #[command(after_help = SCHEMA)]
    Schema {
        /// The command, as `verify` or `volume put`; `any` for lines that any command may print.
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
        /// The folder to write them to, which is made if it does not exist.
        directory: PathBuf,
    },
}

impl Command {
    /// Whether standard output carries an object's bytes.
    pub fn takes_stdout(&self) -> bool {
        match self {
            Self::Decode(decode) => decode.out.as_os_str() == "-",
            #[cfg(feature = "volume")]
            Self::Volume(volume) => volume.command.takes_stdout(),
            _ => false,
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(
    group(ArgGroup::new("target").required(true)),
    after_help = "\
Examples:
  paritas encode photos.tar --out shards               4 data and 2 parity shards
  paritas encode db.dump --code 10+4 --to /disk1 --to /disk2 --to /disk3
  tar c /home | paritas encode - --name home.tar --code rdp:k=6 --out shards
  paritas encode log.zst --code bbdpg:k=6,m=2,m2=4 --out shards     8 shards now, 2 by `promote`
  paritas encode disk.img --code lt:k=1024,n=1536 --out shards      1536 blocks in 16 shards
  paritas encode disk.img --code lt:k=256,n=512,nodes=8,variant=uniform+decodable --out shards

An LT code cuts the file into segments of k blocks. All segments are equally long, and one fits \
into memory of bounded size. Somewhat more than k good blocks of every segment are enough, \
whichever shards they are in; `paritas info` tells how many.

Every shard has headers of a few hundred bytes, and every block has checksums. So a small file may \
take many times the space that the code needs; a warning says so before anything is written.

If the file changes while it is read, no shards are left and the exit code is 6. Encode a file \
that keeps growing through a pipe: `cat FILE | paritas encode - --name NAME`.

Each folder given with --to counts as a disk, whose shards are lost together. If fewer folders \
may be lost than shards, there is a warning.

Shards are named NAME.<i>of<n>.paritas; n includes those that `promote` adds to a dpg or bbdpg \
code. They give nobody more access than the file does: they get its permissions, less execution \
and the umask, and its owner and group if the process may give files away (root may). The file's \
mode and modification time are stored, and `decode` restores them; a pipe has neither, and a \
device has no time."
)]
pub struct Encode {
    /// The file to protect; - reads standard input.
    pub file: PathBuf,
    /// The code: K+M, FAMILY:KEY=VALUE,… or matrix:FILE.
    ///
    /// K+M is a code of the family cauchy, or of backblaze if both numbers are at least 32 and
    /// together at most 256. `paritas codes` lists the families.
    #[arg(long, default_value = DEFAULT_CODE, value_name = "SPEC", value_parser = code_name())]
    pub code: Spec,
    /// The folder for all shards; created if it does not exist.
    #[arg(long, group = "target", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folders that take shards in turn, one for each disk.
    ///
    /// They must exist.
    #[arg(long, group = "target", value_name = "DIR")]
    pub to: Vec<PathBuf>,
    /// The name to store, instead of the file's own (or `stdin`).
    #[arg(long)]
    pub name: Option<OsString>,
    /// Bytes of a packet, 1 to 1048576 [default: 64].
    ///
    /// They are stored, so any reader knows them; 64 suits every processor (see `paritas tune
    /// --packet`), and there are fewer if the object does not fill a stripe. `rule` takes the
    /// largest packet with which a stripe and its temporaries fit into the first-level cache (see
    /// `paritas schedule`), for readers that run one operation after the other; `tuned` the one
    /// that `paritas tune` found here. Packets make no difference in the word layout.
    #[arg(long, value_name = "BYTES|rule|tuned", hide_short_help = true)]
    pub packet: Option<PacketChoice>,
    /// Replace existing shards of this name, of whatever code.
    ///
    /// They are kept until the new ones are complete. Any other file stays. So do shards that were
    /// renamed or lie in other folders: they are an object of their own, and `decode` of both asks
    /// for an id.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas decode shards --out photos.tar
  paritas decode /disk1 /disk2 /disk4 --object db.dump --out - | psql
  paritas decode shards --out restored/                all objects, under their own names

Shards are found by content: their names do not matter, and damaged or foreign files do no harm. \
The decoded file gets the permissions and the modification time of the original; until it is \
complete, only its owner can open it. If --out is a folder, each object is decoded if possible. An \
object is refused (exit 3) if its name is taken, or if several objects have it. The exit code is \
the worst of all objects.")]
pub struct Decode {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The file to write, - for standard output, or a folder.
    ///
    /// A folder takes all objects. It exists already, or its path ends with /.
    #[arg(long, short, value_name = "FILE|DIR/")]
    pub out: PathBuf,
    /// The object, by its name or the first digits of its id.
    ///
    /// At least four digits; needed if there are several objects.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    /// Replace existing files.
    #[arg(long)]
    pub force: bool,
    /// Do not restore the stored permissions and modification time.
    #[arg(long)]
    pub no_preserve: bool,
    /// Restore set-user-ID, set-group-ID and sticky bits, too.
    ///
    /// The file belongs to the user who decodes it, so set-user-ID may then mean another user.
    #[arg(long, conflicts_with = "no_preserve", hide_short_help = true)]
    pub preserve_special: bool,
    #[command(flatten)]
    pub work: Work,
}

/// The paths that are searched for objects, and the objects that are reported.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Protected files or folders, parity, or shards.
    ///
    /// Folders of parity and of shards, too.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this one, by its name or the first digits of its id.
    ///
    /// An object or a protection; at least four digits.
    #[arg(long, value_name = "ID|NAME", conflicts_with = "recursive")]
    pub object: Option<OsString>,
    /// Search all folders below, too.
    ///
    /// Each is searched separately, but folders at the same path below several PATHS are searched
    /// together: shards may be spread over them. Links to folders are not followed.
    #[arg(long, short)]
    pub recursive: bool,
    /// Report only objects that are not intact.
    ///
    /// If all are, nothing is printed, as cron expects.
    #[arg(long)]
    pub only_bad: bool,
    /// List all that is wrong, not only the first dozen.
    #[arg(long, short)]
    pub verbose: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas verify photos || paritas repair photos       a folder that `protect` was given
  paritas verify photos --quick                        compares sizes and times, reads no file
  paritas verify photos --from-disk                    reads the disk, not what is in memory
  paritas verify photos /disk2/parity                  the same if either was moved
  paritas verify photos/2005                           one folder or file of a protection
  paritas verify shards || paritas repair shards
  paritas verify --recursive /backup --only-bad        all sets of a tree
  paritas verify --recursive /disk1 /disk2 /disk3      all sets that are spread over these
  paritas verify shards --deep                         recomputes parity, too

A folder with parity in it, or in `.paritas` in it, is a protection, and is reported file by file: \
damaged (the time is the one that it had, the bytes are not), changed (bytes and time differ), \
missing, moved (its bytes are in another file), touched (only time or mode differ), unreadable. \
Moved and touched files are intact. Parity files that have lost their names, or are in other folders, \
are found if the folders are given. Shards in a protected tree are verified with --recursive.

Each folder of shards that is given counts as a disk or a machine, whose shards are lost together, and the \
report says which folders may be lost. For an LT code, tolerable_losses is only likely: some losses \
of this many shards have been tried. The exit code is the worst of all objects; if there are \
several, a summary comes last. An object that has not been promoted is whole without the parts that \
promotion would add; once there is any file of a later stage, all of its files are expected. A \
file that cannot be opened, for lack of permission for example, is not lost: its state is \
unreadable. If such files would change the status by holding the missing shards, the status is \
unknown, and the exit code 6, as it is if a PATH cannot be read. A shard of a later version of \
paritas, or of a code that this version does not know, is not lost either: it is named, and the \
exit code is 4. Beside other objects, files that \
have the names of an object's shards, none of which can be read as one, are an object that is lost.

With --deep, parity is computed from the data of every segment whose data are intact (for an LT \
code, of every segment that can be decoded), and compared with the stored parity. If they differ \
although the checksum is right, the status is inconsistent and the exit code 5: a program wrote \
wrong parity, not a disk.")]
pub struct Verify {
    #[command(flatten)]
    pub search: Search,
    /// Compute parity from the data, and compare it with the stored.
    ///
    /// This finds mistakes of a wrong encoder.
    #[arg(long)]
    pub deep: bool,
    /// Take files that have their size and time for intact.
    ///
    /// None of these protected files is read.
    #[arg(long)]
    pub quick: bool,
    /// Read everything from the disk, not from memory.
    ///
    /// Even what the system has in memory because it was read or written lately. Linux only.
    #[arg(long, conflicts_with = "quick", hide_short_help = true)]
    pub from_disk: bool,
    #[command(flatten)]
    pub threads: Threads,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas repair photos                                a folder that `protect` was given
  paritas repair photos/2005/a.jpg                     one file or folder of it, even a lost one
  paritas repair photos --to rescued                   what is damaged or missing goes there
  paritas repair photos --dry-run                      what would be restored; nothing is written
  paritas repair photos --restore-changed --move-back  changed and moved files go back, too
  paritas repair shards
  paritas repair /disk1 /disk2 /disk3 --to /disk4      missing shards go to the new disk
  paritas repair /disk1 /disk2 /disk3                  the same if /disk3 is new and empty
  paritas repair /disk1 /disk2 /disk3 --rebalance      also moves badly placed shards
  paritas repair --recursive /backup                   all sets of a tree, folder by folder
  paritas repair --recursive /disk1 /disk2 /disk3      all sets that are spread over these

Protected files that are damaged or missing are restored under a temporary name, compared by their \
digest, and get their name and attributes; what they replace is kept as NAME.damaged-<id>-<digest>, \
until `repair --clean` removes it; parity that is damaged or missing is written anew. Files \
that were changed, size or time and all, stay as they are unless --restore-changed is given, and \
moved files stay where they are unless --move-back is given. If more is lost than can be repaired, \
files that need the missing blocks stay as they are and are named, and all else is restored (exit 2). If changed files stay, the exit code is 1; `protect --update` protects them as they are.

Each folder of shards that is given counts as a disk or a machine, whose shards are lost together. Missing \
shards are written to the folders that let as many whole folders as possible be lost. An empty \
folder that is given counts as a disk that was replaced, and is filled: make sure that it is \
mounted. If several PATHS are given and one does not exist, nothing is written (exit 3), because \
its disk may not be mounted. With --recursive, several folders are disks: a missing shard of a set \
in one folder may go to the same path below any of them, where that folder is made. If fewer \
folders may be lost than shards, there is a warning.

With --rebalance, shards move from the fullest folders to the emptiest until as many folders as \
possible may be lost. A shard's old file is removed when the new one is on the disk.

A repaired shard is byte for byte the one that was lost. It keeps the permissions and the owner of \
the file that it replaces; if it replaces none, it gets those that all other shards have in common. \
A file that is no shard but has the name of one is kept as NAME.damaged-<id>-<digest>. A file that \
cannot be opened is left unchanged, and the exit code is 6. The exit code is also 6 if another \
process works on the same shards and the result is not what was asked for.")]
pub struct Repair {
    #[command(flatten)]
    pub search: Search,
    /// The folder for restored files, or for repaired shards.
    ///
    /// Without it, what is damaged is replaced in place, and missing shards go to the folder with
    /// the fewest, which may be an empty one that is given. Not with --recursive: give DIR as one
    /// more PATH instead.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Read only the blocks that a missing shard is computed from.
    ///
    /// If one shard is missing and the others look whole, the checksums of these blocks are
    /// checked. For RDP, EVENODD, STAR and X-Code they are about three quarters of k shards.
    /// Nothing else is verified, not even the object's digest.
    #[arg(long, hide_short_help = true)]
    pub fewest_reads: bool,
    /// Remove what interrupted commands and repairs left behind.
    ///
    /// Of shards: temporary files, and shards that `encode --force` had replaced, once the object
    /// of that name is intact (which --fewest-reads does not find out). With --object, only those
    /// of that object. No other command may be writing there. Of protected files: the copies that
    /// earlier repairs kept of what they replaced, once everything is whole.
    #[arg(long)]
    pub clean: bool,
    /// Move shards so that more folders may be lost together.
    ///
    /// Between the given folders, and --to.
    #[arg(long, hide_short_help = true)]
    pub rebalance: bool,
    /// Remove what repair moved aside, once the object is intact.
    ///
    /// What earlier repairs moved goes, too. Files that have changed since are not removed.
    #[arg(long, conflicts_with = "fewest_reads", hide_short_help = true)]
    pub remove_moved_aside: bool,
    /// Restore files that were changed, too.
    ///
    /// What they are now is kept beside them.
    #[arg(long)]
    pub restore_changed: bool,
    /// Move protected files that were moved back to where they were.
    #[arg(long, conflicts_with = "to")]
    pub move_back: bool,
    /// Say what would be restored and written, and write nothing.
    ///
    /// Protected files are verified. What would be restored, moved back and written anew is told,
    /// and how much that takes on each disk. The exit code is that of `verify`.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub memory: protect::Memory,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas encode log.zst --code bbdpg:k=6,m=2,m2=4 --out shards      any 2 of 8 shards may be lost
  paritas promote shards                                             any 4 of 10
  paritas promote /disk*/shards --to /disk9/shards --to /disk10/shards

Promotion reads only the stored blocks that the new parity is computed from, and checks their \
checksums: (m2 - m)(k + m) symbols of every k m2, or all data if that is less. If shards are \
missing or damaged, others are read instead. No file is changed, and no new file gets its name \
before all are complete. If promotion is killed, the object is as safe as it was, and promoting \
again completes it. An object that is already promoted is left alone (exit 0). A code without a \
second stage is exit 3.")]
pub struct Promote {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Folders that take new files in turn.
    ///
    /// Without them, a new part of a shard goes beside the shard, and a new shard to the folder
    /// with the fewest.
    #[arg(long, value_name = "DIR")]
    pub to: Vec<PathBuf>,
    /// Only this object, by its name or the first digits of its id.
    ///
    /// At least four digits.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas info photos
  paritas info shards

Reads headers and catalogues only; `verify` checks the contents.")]
pub struct Info {
    /// Protected files or folders, parity, or shards.
    ///
    /// Folders of parity and of shards, too.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this one, by its name or the first digits of its id.
    ///
    /// An object or a protection; at least four digits.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
}

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
    /// NAME.0, NAME.1, … as klauspost/reedsolomon's simple encoder writes them; --code
    /// backblaze:k=K,m=M gives their number, and --length the end of the data before the padding.
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
    /// Without it, those of the object, which are those that were imported, or 64.
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

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas codes
  paritas codes rdp:k=6 --matrix
  paritas codes 10+4 --svg matrix.svg
  paritas codes lt:k=1024,n=2048 --json
  paritas codes matrix:k=2,m=2,w=1,rows=c.c

matrix:FILE is the code of a bit matrix of your own, which need not be MDS. FILE is a text: lines \
`k = 2`, `m = 2`, `w = 1`, then a row of k·w digits 0 or 1 for each of the m·w parity packets; from # \
on, a line is a comment. With `placement = vertical`, data and parity lie on all k + m nodes. The \
canonical name, which shards store, holds the rows in hexadecimal digits: nobody needs FILE to \
decode. A matrix with which the loss of one node is fatal is refused; of losses of 1 to m nodes the \
report says how many are survived.

Ones are those of the bit matrix; encoding without a schedule takes an XOR for each. Density is \
the number of ones, divided by the fewest that any code of that shape can have. With GFNI, a Cauchy \
code in packets with more than 20,000 ones encodes slower than a code in words of the same k and m, \
and its description says so. GB/s in packets and in words (one core, AVX-512 and GFNI): 64+16 12.4 and 16.8, 64+32 6.4 and \
8.5, 100+24 8.2 and 11.1, 128+16 4.8 and 11.8, 128+32 2.0 and 8.3, 200+56 1.0 and 4.6, 128+128 \
0.44 and 2.0. On AVX2 packets are faster: 128+32 2.2 and 1.8 GB/s.")]
pub struct Codes {
    /// The code to describe: FAMILY:KEY=VALUE,…, K+M, or matrix:FILE.
    #[arg(value_parser = code_name())]
    pub spec: Option<Spec>,
    /// Print the bit matrix.
    ///
    /// A row for each parity packet, a column for each data packet.
    #[arg(long, requires = "spec")]
    pub matrix: bool,
    /// Draw the bit matrix, grouped by nodes, into an SVG file.
    #[arg(long, requires = "spec", value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Replace an existing SVG file.
    #[arg(long, requires = "svg")]
    pub force: bool,
}

/// `--normalise`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Normalised.
    On,
    /// Without scaling.
    Off,
}

/// `--strategy`: the pair (i, j) of the dissertation's table 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strategy {
    /// i: whether the matrix is normalised.
    pub normalise: Switch,
    /// j: the method that reduces XORs.
    pub pass: PassName,
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (i, j) = text.split_once(',').unwrap_or_default();
        let normalise = ["0", "1"].iter().position(|&name| name == i);
        let pass = ["0", "1", "2", "3"].iter().position(|&name| name == j);
        let (Some(normalise), Some(pass)) = (normalise, pass) else {
            return Err(format!("must be i,j with i from 0 to 1 and j from 0 to 3; got `{text}`"));
        };
        Ok(Self {
            normalise: [Switch::Off, Switch::On][normalise],
            pass: [PassName::Direct, PassName::Smart, PassName::Um, PassName::Wm][pass],
        })
    }
}

/// `--cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CostName {
    /// XORs of two packets.
    Xors,
    /// XORs and copies.
    Total,
    /// XORs and copies, where an XOR counts as --weight copies.
    Weighted,
    /// Operations and XORs of three packets.
    Ternary,
    /// Instructions, loads and stores of the compiled kernel of --kernel; slow to count.
    Fused,
}

impl CostName {
    /// Returns the objective to minimise. `machine` is where fused schedules run, and `weight` is
    /// the cost of an XOR in thousandths of a copy.
    pub fn objective(self, machine: Machine, weight: u32) -> Objective {
        match self {
            Self::Xors => Objective::Xors,
            Self::Total => Objective::Total,
            Self::Weighted => Objective::Weighted(weight),
            Self::Ternary => Objective::Ternary,
            Self::Fused => Objective::Fused(machine),
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas schedule 10+4
  paritas schedule rdp:k=6 --erase 0,3 --text
  paritas schedule 10+4 --pass smart --worst-loss
  paritas schedule cauchy:k=6,m=2,w=8 --strategy 1,2 --search ga --evaluations 2000
  paritas schedule cauchy:k=6,m=3 --strategy 1,3 --search sa --cooling 0.1 --converge --patience 500
  paritas schedule rdp:k=10 --erase 0 --fewest-reads     75 packets instead of 100
  paritas schedule bbdpg:k=6,m=2,m2=4 --stage 2          what promotion reads and computes
  paritas schedule lt:k=64,n=128 --erase 0,1,2           by peeling and inactivation
  paritas schedule backblaze:k=6,m=3 --set 4096 --text   what runs, over words of GF(2^8)
  paritas schedule 10+4 --set dram --align 4096 --asm    what runs on page-aligned shards

With --set or --align, the report describes what a codec runs in one call. --set is the bytes of \
all shards together, and shards begin at multiples of --align bytes. The report shows the parts of \
the program, the order of their operations, and how they read and store. (The tiled kernel runs \
the schedule as planned until some megabytes have been computed with it, and wherever compiling is \
not allowed.) --asm alone means --set cache. Counts are over operations `cell = xor(sources)`, \
including temporaries: ones (of the bit matrix), xors (sum of fan-in - 1), copies (one for each \
operation), total (xors + copies, the sum of fan-ins), ops, temps, ternary (sum of ceil((fan-in - \
1) / 2)), instructions, loads and stores (of the compiled kernel, for every vector of a packet), \
reads (packets read of each node). --cost weighted takes the weight that `paritas tune` measured on \
this machine or, without a measurement, 1.5 as in the dissertation; its counts are the same on all \
machines only with --weight. The weight is reported. --normalise, --strategy and --search are for \
Cauchy codes. A search takes k, m and w of SPEC and searches for the points; the report is about \
the code found. The same seed and evaluations (or --converge) give the same result with any number \
of threads. An iteration of sa is a step of one of its eight walks, an iteration of ga a generation.")]
pub struct Schedule {
    /// The code.
    #[arg(value_parser = code_name())]
    pub spec: Spec,
    /// Reconstruct these nodes instead of encoding.
    #[arg(long, value_delimiter = ',', value_name = "I,J,…", value_parser = parse_node)]
    pub erase: Vec<usize>,
    /// Reconstruct the dearest loss of as many data nodes as may be lost.
    ///
    /// Of all such losses, it is the one whose schedule has the largest total. The report names the
    /// nodes.
    #[arg(long, conflicts_with = "erase", hide_short_help = true)]
    pub worst_loss: bool,
    /// The stage that is computed, or after which nodes are lost.
    ///
    /// With --erase or --worst-loss, nodes are lost after that stage [default: 1, or with these the
    /// last]. Only dpg and bbdpg have more than one.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub stage: Option<u8>,
    /// The method that reduces XORs.
    #[arg(long, value_enum, default_value = "slp")]
    pub pass: PassName,
    /// Scale the matrix anew, or not at all [default: as in the code].
    #[arg(long, value_enum, hide_short_help = true)]
    pub normalise: Option<Switch>,
    /// --normalise and --pass as in the dissertation's table 3.2.
    ///
    /// i is 0 (off) or 1 (on), j is 0 (direct), 1 (smart), 2 (um) or 3 (wm).
    #[arg(long, value_name = "i,j", conflicts_with_all = ["pass", "normalise"], hide_short_help = true)]
    pub strategy: Option<Strategy>,
    /// The order of the operations.
    #[arg(long, value_enum, default_value = "parity", hide_short_help = true)]
    pub order: OrderName,
    /// The cost that slp and searches minimise.
    #[arg(long, value_enum, default_value = "total")]
    pub cost: CostName,
    /// The cost of an XOR in copies, with --cost weighted.
    ///
    /// Without it, as measured by `paritas tune`, or 1.5.
    #[arg(long, value_name = "COPIES", value_parser = parse_weight, hide_short_help = true)]
    pub weight: Option<u32>,
    /// How often slp plans a part of the schedule again.
    ///
    /// Without it, as often as it pays.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub rounds: Option<usize>,
    #[command(flatten)]
    pub search: MatrixSearch,
    /// Read few packets, at the price of more XORs.
    ///
    /// As few as the planner finds to be enough.
    #[arg(long, hide_short_help = true)]
    pub fewest_reads: bool,
    /// Plan for this many bytes of data.
    ///
    /// As `encode` and `decode` do for an object: planning stops when it takes longer than it saves
    /// [default: for unlimited data].
    #[arg(long, hide_short_help = true)]
    pub bytes: Option<u64>,
    /// Print the operations.
    #[arg(long)]
    pub text: bool,
    /// Print the machine code that a compiled kernel makes of the schedule.
    #[arg(long)]
    pub asm: bool,
    /// Report what runs in a call whose shards have this many bytes together.
    #[arg(long, value_name = "cache|dram|BYTES", value_parser = parse_set, hide_short_help = true)]
    pub set: Option<usize>,
    /// Report what runs if shards begin at multiples of BYTES [default: 64].
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub align: Option<NonZeroUsize>,
    /// The compiled kernel whose instructions are counted.
    ///
    /// They are listed, too, and `fused` refers to them. This processor need not have the kernel
    /// [default: jit-avx2, or with --asm the best one here].
    #[arg(long, value_name = "KERNEL", hide_short_help = true)]
    pub kernel: Option<KernelChoice>,
}

impl Schedule {
    /// Returns the method that reduces XORs.
    pub fn pass(&self) -> PassName {
        self.strategy.map_or(self.pass, |strategy| strategy.pass)
    }

    /// Returns how the matrix is scaled. `None` means as in the code.
    pub fn normalise(&self) -> Option<Switch> {
        self.strategy.map(|strategy| strategy.normalise).or(self.normalise)
    }

    /// Returns the cost of an XOR in thousandths of a copy.
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or_else(paritas_tune::xor_weight)
    }
}

/// Reads a weight, and returns it in thousandths.
fn parse_weight(text: &str) -> Result<u32, String> {
    match text.parse::<f64>() {
        Ok(weight) if (0.001..=1000.0).contains(&weight) => Ok((1000.0 * weight).round() as u32),
        _ => Err(format!("must be a number from 0.001 to 1000; got `{text}`")),
    }
}

fn parse_node(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("must be numbers of nodes, such as 0,3; got `{text}`"))
}

/// `--op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// All parity from all data.
    Encode,
    /// As many data nodes as may be lost, from the others.
    Decode,
    /// Parity after a change of one data node.
    Update,
    /// The parity of the second stage (dpg and bbdpg).
    Promote,
}

impl From<Operation> for OperationWord {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Encode => Self::Encode,
            Operation::Decode => Self::Decode,
            Operation::Update => Self::Update,
            Operation::Promote => Self::Promote,
        }
    }
}

/// `--sweep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sweep {
    /// The size of a packet.
    Packet,
}

/// `--align`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Align {
    /// At cache lines, each shifted against the one before by some lines.
    Staggered,
    /// All at pages, so that they compete for the same sets of the cache.
    Page,
}

impl From<Align> for AlignWord {
    fn from(align: Align) -> Self {
        match align {
            Align::Staggered => Self::Staggered,
            Align::Page => Self::Page,
        }
    }
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  paritas bench --code 10+4 --op encode
  paritas bench --code rdp:k=6 --op decode --set dram --threads 1
  paritas bench --code bbdpg:k=6,m=2,m2=4 --op promote
  paritas bench --code lt:k=1024,n=1229 --op decode --reception 1.05 --set dram
  paritas bench --code rdp:k=6 --sweep packet --kernel avx2 --order data
  paritas bench --code liberation:k=11,w=11 --sweep packet --kernel datawise64 --order data --set dram
  paritas bench --code liberation:k=11,w=11 --kernel datawise64 --order data --packet 1024 \
    --against kernel=packetwise64,order=parity

GB/s is k x shard bytes / seconds / 10^9 for every operation (an update counts the whole stripes \
whose parity it keeps right). The roofline is the speed of reading and writing the same streams \
with one XOR for each byte read, in the same process and with the same kernel. (Kernels of the lab, \
packetwise64 to packetwise512 and datawise64 to datawise512, run schedules as papers did, a whole \
packet at a time, and 64 to 512 bits at once; datawise reads each word of a packet once for all \
operations in a row that need it. Their roofline has packets of 4 KiB. With --best-roofline, the roofline \
of any kernel runs with the best kernel and packets of 64 bytes, so that fractions of it compare kernels.) Results are checked \
before they are timed. Code and roofline are measured in pairs, back to back (within a millisecond, \
unless one run takes longer), in alternating order. Speeds are the median and the 90th percentile \
of all samples. The fraction of the roofline is the median over all pairs, with an interval that \
holds it with 95 % confidence (a bootstrap from a fixed seed). If the interval is wider than a \
tenth of the fraction, up to four times as many pairs are taken. If that does not help, or if there \
are fewer than 20 pairs, the figure is called too noisy. For an LT code, GB/s is k x block bytes. \
Its decode computes all data from blocks received in random order; the graph is solved once, in \
the first run, as for the segments of a file; the roofline reads k blocks. LT codes have no --op \
update, and --packet, --tuned-packet, --pass, --cost, --order and --split do not apply to them.")]
pub struct Bench {
    /// The code.
    #[arg(long, value_name = "SPEC", value_parser = code_name())]
    pub code: Spec,
    /// The operation to measure.
    #[arg(long, value_enum, default_value = "encode")]
    pub op: Operation,
    /// For decode, the stage after which nodes are lost [default: the last].
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub stage: Option<u8>,
    /// Bytes of all shards together: cache, dram or a number.
    ///
    /// cache is 512 KiB, dram 256 MiB. Of an LT code, all blocks and the data count.
    #[arg(long, default_value = "cache", value_name = "cache|dram|BYTES", value_parser = parse_set)]
    pub set: usize,
    /// For decode of an LT code, the blocks received, in multiples of k.
    ///
    /// Without it, as many as decoding takes, but at least 1.05.
    #[arg(long, value_name = "MULTIPLE", value_parser = parse_reception, hide_short_help = true)]
    pub reception: Option<f64>,
    /// For decode of an LT code, the seed of the blocks received.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Bytes of a packet.
    #[arg(long, default_value_t = paritas::DEFAULT_PACKET, value_name = "BYTES")]
    pub packet: usize,
    /// Use the packet that `paritas tune` found for the code [default: 64].
    #[arg(long, conflicts_with_all = ["packet", "sweep"], hide_short_help = true)]
    pub tuned_packet: bool,
    /// For decode, the nodes that are lost.
    ///
    /// Without it, the first data nodes, as many as may be lost.
    #[arg(long, value_delimiter = ',', value_name = "I,J,…", value_parser = parse_node)]
    pub erase: Vec<usize>,
    /// Measure one packet size after the other.
    ///
    /// In powers of two from 8 bytes to 32 KiB, as far as one strip of all nodes fits into the set;
    /// one line for each.
    #[arg(long, value_enum, conflicts_with = "packet", hide_short_help = true)]
    pub sweep: Option<Sweep>,
    /// The alignment of shards in memory.
    #[arg(long, value_enum, default_value = "staggered", hide_short_help = true)]
    pub align: Align,
    /// The method that reduces XORs [default: slp, or as tuned].
    #[arg(long, value_enum, hide_short_help = true)]
    pub pass: Option<PassName>,
    /// The cost that slp minimises.
    ///
    /// fused refers to the kernel that runs, if it is compiled.
    #[arg(long, value_enum, default_value = "total", hide_short_help = true)]
    pub cost: CostName,
    /// The order in which operations are planned.
    ///
    /// A compiled kernel still takes the cheapest of several orders; all other kernels run the
    /// order as it is.
    #[arg(long, value_enum, default_value = "parity", hide_short_help = true)]
    pub order: OrderName,
    /// The kernel: auto, or one of those that `paritas doctor` lists.
    #[arg(long, default_value = "auto")]
    pub kernel: KernelChoice,
    /// The most threads to use; 0 means one for each processor.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub threads: usize,
    /// Use one thread for each BYTES bytes of all shards.
    ///
    /// Up to --threads [default: as tuned].
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub bytes_a_thread: Option<NonZeroUsize>,
    /// How threads share the work: auto, stripe, node, columns or rows.
    ///
    /// auto is as tuned, columns are bytes of every packet, in whole cache lines, and rows are of
    /// packets, which codes in words lack. What cannot be shared in this way is shared by stripes,
    /// as a single node is; split in JSON says so.
    #[arg(long, default_value = "auto", value_name = "SPLIT", value_parser = parse_split, hide_short_help = true)]
    pub split: SplitChoice,
    /// Run the roofline with the best kernel and packets of 64 bytes.
    ///
    /// Not with the measured kernel.
    #[arg(long, conflicts_with = "against", hide_short_help = true)]
    pub best_roofline: bool,
    /// Measure in pairs with other settings, not with the roofline.
    ///
    /// Of the same code: kernel, order, pass, packet, threads, bytes-a-thread, split. What is not
    /// given is the same. Both work on the same memory, unless the packets make shards of another
    /// length.
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub against: Option<Against>,
    /// Measure in pairs with another code.
    ///
    /// With the settings of --against if these are given.
    #[arg(long, value_name = "SPEC", conflicts_with = "best_roofline", value_parser = code_name())]
    pub against_code: Option<Spec>,
    /// The number of pairs to measure.
    ///
    /// More are taken if they differ too much.
    #[arg(long, default_value_t = 41, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), hide_short_help = true)]
    pub reps: u32,
}

impl Bench {
    /// Returns the arguments of the other run that this one is compared with.
    pub fn with(&self, other: &Against) -> Self {
        Self {
            code: self.against_code.as_ref().unwrap_or(&self.code).clone(),
            against_code: None,
            kernel: other.kernel.unwrap_or(self.kernel),
            order: other.order.unwrap_or(self.order),
            pass: other.pass.or(self.pass),
            packet: other.packet.unwrap_or(self.packet),
            threads: other.threads.unwrap_or(self.threads),
            bytes_a_thread: other.bytes_a_thread.or(self.bytes_a_thread),
            split: other.split.or(self.split),
            against: None,
            ..self.clone()
        }
    }
}

/// Measure kernels, schedules, stores, threads, splits and packets, and remember the best in the
/// user's cache directory, where all commands find them. A choice replaces the built-in default
/// only if it is clearly at least 3 % faster. Stored bytes never depend on it: the packet is
/// remembered for `encode --packet tuned` and `bench --tuned-packet` alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas tune
  paritas tune 17+3 rdp:k=10
  paritas tune lt:k=1024,n=1536          the kernel for its blocks; there is no other choice
  paritas tune --packet 10+4             the `encode --packet` that would be fastest here
  paritas tune --packet --kernel packetwise64 --pass smart --set 2097152 rdp:k=6
  paritas tune --forget

Every choice is measured in pairs with the built-in default, back to back, in alternating order. \
It is taken if the whole interval of the ratio (95 % confidence) is above 1.03, or 1.1 for \
non-temporal stores. If that is not clear after 84 pairs, the default stays. Sets of 32 MiB \
down to 256 KiB are tried with a second thread. Whatever is larger than some size gets one; that \
size is chosen for which the gains and losses of all larger sets add up to the most.
A search for packets has two stages: powers of two up to 32 KiB of which a strip of all nodes fits into \
the set, then, from half the fastest of these to its double, steps of an eighth of it. All are \
multiples of 8 bytes, or of the registers of --kernel.")]
pub struct Tune {
    /// The codes to measure [default: 4+2, 6+3, 8+3, 10+4, 12+4, 20+4].
    #[arg(value_name = "SPEC", value_parser = code_name())]
    pub codes: Vec<Spec>,
    /// Measure and report, but remember nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Find the fastest packet of each code.
    ///
    /// With one thread, in the cache and from memory. Nothing is remembered, because packets are
    /// stored: use `encode --packet`.
    #[arg(long, conflicts_with = "dry_run")]
    pub packet: bool,
    /// With --packet, the kernel, as `paritas doctor` lists them.
    ///
    /// auto takes the one for files.
    #[arg(long, requires = "packet", default_value = "auto")]
    pub kernel: KernelChoice,
    /// With --packet, the method that reduces XORs [default: slp].
    #[arg(long, requires = "packet", value_enum)]
    pub pass: Option<PassName>,
    /// With --packet, the bytes of all shards together.
    ///
    /// cache (512 KiB), dram (256 MiB), or a number [default: first 512 KiB, then 64 MiB].
    #[arg(long, requires = "packet", value_name = "cache|dram|BYTES", value_parser = parse_set)]
    pub set: Option<usize>,
    /// With --packet, the number of pairs for each size [default: 21].
    ///
    /// More are taken if they do not show whether the size is faster than the default one. With
    /// fewer than 5, which never show that, just so many are taken, the default size stays chosen,
    /// and the ratios say what was measured.
    #[arg(long, requires = "packet", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), hide_short_help = true)]
    pub reps: Option<u32>,
    /// Forget what was remembered, so that the built-in defaults are used.
    #[arg(long, conflicts_with_all = ["codes", "dry_run", "packet"])]
    pub forget: bool,
}

/// `--split`: `None` means as tuned.
pub type SplitChoice = Option<Split>;

fn parse_split(text: &str) -> Result<SplitChoice, paritas::Error> {
    if text == "auto" { Ok(None) } else { text.parse().map(Some) }
}

fn parse_reception(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(multiple) if (1.0..=1e6).contains(&multiple) => Ok(multiple),
        _ => Err(format!("must be a multiple of k from 1 to 1000000; got `{text}`")),
    }
}

fn parse_set(text: &str) -> Result<usize, String> {
    match text {
        "cache" => Ok(512 << 10),
        "dram" => Ok(256 << 20),
        bytes => match bytes.parse() {
            Ok(bytes) if (1..=1 << 34).contains(&bytes) => Ok(bytes),
            _ => Err(format!("must be cache, dram, or 1 to 2^34 bytes; got `{bytes}`")),
        },
    }
}
