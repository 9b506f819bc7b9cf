//! Every flag, defined once.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use paritas::{KernelChoice, Machine, Objective, Order, Pass, Spec, Split};
use paritas_store::foreign::Format;

const EXIT_CODES: &str = "\
Exit codes:
  0  done, or everything is intact
  1  damaged, but repairable
  2  damaged beyond repair
  3  bad arguments or parameters
  4  nothing recognisable as a shard set
  5  repair or decode finished, but the final check failed, or verify --deep found wrong parity
  6  input or output failed, what cannot be read decides, or another process is in the way
  7  internal error
  8  out of memory

JSON: the fields of a result are listed in the help of its command, and described in \
docs/json.schema.json. Names and paths that are not UTF-8 are in base64 in fields that end with \
_bytes: name_bytes, path_bytes. Jobs that take long print lines of type \"progress\", bytes, \
total, rate (bytes a second), eta_s. On standard error there are lines of type \"warning\", \
message. What fails ends with one of type \"error\", code (the exit code), kind, message.";

const DOCTOR: &str = "\
Example:
  paritas doctor

JSON: type \"doctor\", version, architecture, threads, packet, kernel (the one for files), tuned, \
executable_memory, executable_memory_error, kernels [{name, vector_bytes, right, fallback}].";

/// Protect files with erasure codes: verify, repair and recover them.
#[derive(Debug, Parser)]
#[command(name = "paritas", version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Args {
    /// Print results as JSON, one object a line, and errors as JSON on standard error;
    /// docs/json.schema.json describes every field.
    #[arg(long, global = true)]
    pub json: bool,

    /// Print nothing but errors, and no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Cut a file into shards, any few of which may be lost.
    Encode(Encode),
    /// Get a file back from its shards.
    Decode(Decode),
    /// Check every block of every shard.
    Verify(Verify),
    /// Rewrite what is missing or damaged.
    Repair(Repair),
    /// Add the parity that a dpg or bbdpg code leaves for later.
    Promote(Promote),
    /// Show what shards say about themselves.
    Info(Info),
    /// Turn another tool's fragments into shards of the same code.
    Import(Import),
    /// Turn shards into another tool's fragments.
    Export(Export),
    /// List the code families, or describe one code.
    Codes(Codes),
    /// Show the XOR schedule of a code and what it costs.
    Schedule(Schedule),
    /// Measure how fast a code runs on this machine.
    Bench(Bench),
    /// Measure which settings are fastest on this machine, and remember them.
    Tune(Tune),
    /// Check what this machine offers and whether every kernel computes right.
    #[command(after_help = DOCTOR)]
    Doctor,
    /// Print shell completions.
    #[command(hide = true)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write man pages.
    #[command(hide = true)]
    Man {
        /// The folder to write them to, which is made if it does not exist.
        directory: PathBuf,
    },
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

An LT code cuts the file into segments of k blocks, whose length is chosen so that they are \
equally long and fill memory of bounded size. Somewhat more than k good blocks of every segment \
are enough, whichever shards they are in; `paritas info` tells how many.

Every shard has headers of some hundred bytes and every block checksums, so a small file may take \
many times what the code makes of it; that is said before anything is written.

A file that changes while it is read is exit 6, and no shards are left. What grows all the time \
goes through a pipe, which ends where it happens to end.

Folders given with --to are taken for disks, whose shards are lost together. Where fewer of them \
may be lost than shards, that is a warning.

Shards are named NAME.<i>of<n>.paritas; n counts those too that `promote` adds to a dpg or bbdpg \
code. They give nobody more access than the file does: they get its permissions, less execution \
and the umask, and its owner and group where the process may give files away (root may). The \
file's mode and modification time are stored, and `decode` restores them; a pipe has neither.
JSON: type \"encode\", object, name, code, stage, stages, length, digest, stored_bytes, seconds, \
shards [{index, path}], warnings."
)]
pub struct Encode {
    /// The file to protect; - reads standard input.
    pub file: PathBuf,
    /// The code: FAMILY:KEY=VALUE,… or K+M (see `paritas codes`).
    #[arg(long, default_value = "4+2", value_name = "SPEC")]
    pub code: Spec,
    /// The folder for all shards; made if it does not exist.
    #[arg(long, group = "target", value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Folders that take shards in turn; give one for each disk.
    #[arg(long, group = "target", value_name = "DIR")]
    pub to: Vec<PathBuf>,
    /// The name to store, instead of the file's own (or `stdin`).
    #[arg(long)]
    pub name: Option<OsString>,
    /// Bytes of a packet, 1 to 1048576. They are stored, so any reader knows them; 64 suits every
    /// processor (see `paritas tune --packet`). In the word layout they make no difference
    /// [default: 64, or fewer where the object does not fill a stripe].
    #[arg(long, value_name = "BYTES")]
    pub packet: Option<usize>,
    /// Replace existing shards of this name; they are kept until the new ones are complete. Any
    /// other file stays.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub work: Work,
}

/// How files are written.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Work {
    /// Wait until everything is on the disk before it gets its final name (the default).
    #[arg(long, overrides_with = "no_sync")]
    pub sync: bool,
    /// Do not wait: faster, but a power failure may lose what was just written.
    #[arg(long, overrides_with = "sync")]
    pub no_sync: bool,
    /// The most threads to use [default: one for each processor].
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub threads: usize,
}

impl Work {
    /// Whether to wait for the disk.
    pub fn is_synced(self) -> bool {
        self.sync || !self.no_sync
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas decode shards --out photos.tar
  paritas decode /disk1 /disk2 /disk4 --object db.dump --out - | psql
  paritas decode shards --out restored/                all objects, under their own names

Shards are found by content: names do not matter, damaged and foreign files do no harm. The file \
gets the permissions and the modification time of the one that was encoded; until it is complete \
nobody but its owner can open it. To a folder, each object is decoded as far as it can be; one \
whose name is taken, or that several objects have, is refused (exit 3). The exit code is that of \
the worst.
JSON: one line an object, type \"decode\", object, name, code, stage, stages, length, digest, \
seconds, path, shards [{index, stage, state (missing, damaged, unreadable), path, bad_lanes, \
first_bad_offset, notes, misnamed}].")]
pub struct Decode {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// The file to write, or a folder for all objects (one that exists, or a path that ends with /);
    /// - writes standard output.
    #[arg(long, short, value_name = "FILE|DIR/")]
    pub out: PathBuf,
    /// Which object, by its name or the first digits of its id (at least four), where there are
    /// several.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    /// Replace existing files.
    #[arg(long)]
    pub force: bool,
    /// Do not restore the permissions and the modification time that are stored.
    #[arg(long)]
    pub no_preserve: bool,
    /// Restore the set-user-ID, set-group-ID and sticky bits too. The file belongs to whoever
    /// decodes it, so that set-user-ID may mean another user than it did.
    #[arg(long, conflicts_with = "no_preserve")]
    pub preserve_special: bool,
    #[command(flatten)]
    pub work: Work,
}

/// Where objects are looked for, and which of them are reported.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this object, by its name or the first digits of its id, at least four.
    #[arg(long, value_name = "ID|NAME", conflicts_with = "recursive")]
    pub object: Option<OsString>,
    /// Look into all folders below, too. Each is a place of its own, but folders at the same path
    /// below several PATHS are one: shards may be spread over them. Links to folders are not
    /// followed.
    #[arg(long, short)]
    pub recursive: bool,
    /// Report only objects that are not intact; the summary counts all.
    #[arg(long)]
    pub only_bad: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas verify shards || paritas repair shards
  paritas verify --recursive /backup --only-bad        all sets of a tree
  paritas verify --recursive /disk1 /disk2 /disk3      all sets that are spread over these
  paritas verify shards --deep                         recomputes parity, too

Each folder that is given is taken for a disk or a machine, whose shards are lost together, and \
the report says which folders may be. Of an LT code, tolerable_losses is what is likely: losses of \
this many shards have been tried. Exits with the worst of all objects found; where there are \
several, a summary comes last. An object that has not been promoted is whole without what \
promoting would add; once any file of a later stage is there, all of them are expected. A file \
that cannot be opened, for want of permission say, is not lost: its state is unreadable. Where \
such files would change the status if they held the shards that are lacking, it is unknown, and \
the exit code 6; so it is where a path that was given cannot be read. Beside other objects, files \
that have the names of an object's shards, and of which none can be read as one, are an object that \
is lost.

With --deep, parity is computed from the data of every segment whose data are intact (of an LT \
code, of every segment that can be decoded) and compared with what is stored. Where it differs \
although it has its checksum, the status is inconsistent and the exit code 5: a program wrote it \
wrongly, not a disk.
JSON: one line an object, type \"verify\", object, name, code, stage, stages, length, status \
(intact, repairable, lost, unknown, inconsistent), tolerable_losses, digest_ok, damaged_segments, \
seconds, shards [{index, stage, state (intact, damaged, missing, unreadable, inconsistent), path, \
bad_lanes, first_bad_offset, notes, misnamed}], folders [{path, shards}], folder_tolerance (any \
this many folders may be lost), folder_tolerance_certain (false where only some losses were \
tried), losable_folders (the largest sets that may be lost together, as indices into folders; null \
where there are more than six), \
aside [{path, bytes}] (what repair has moved aside), lost_ranges [{start, end}], reason (null \
unless lost, unknown or inconsistent), recomputed_segments (null without --deep), wrong_lanes \
[{index, stage, lane, first_segment, segments}]. Of an LT code also blocks (of a segment), \
good_blocks (in the segment with the fewest), likely_needed (more blocks, where one is lost). \
Of an object of which no shard can be read, type \"unrecognised\", name, \
status (lost), files [{path}]. Where there are several objects, a line of type \"summary\" \
comes last: objects, intact, repairable, repaired, lost, inconsistent, unknown, bytes (of the \
objects), seconds, rate (bytes a second).")]
pub struct Verify {
    #[command(flatten)]
    pub search: Search,
    /// Compute parity from the data, too, and compare: finds what a wrong encoder did.
    #[arg(long)]
    pub deep: bool,
    /// The most threads to use [default: one for each processor].
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    pub threads: usize,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas repair shards
  paritas repair /disk1 /disk2 /disk3 --to /disk4      what is missing goes to the new disk
  paritas repair --recursive /backup                   all sets of a tree, folder by folder
  paritas repair /disk1 /disk2 /disk3                  the same if /disk3 is new and empty
  paritas repair /disk1 /disk2 /disk3 --rebalance      and shards that lie badly move

A folder that is given is a disk or a machine: what is in it is lost together. What is missing \
goes where as many whole folders as possible may be lost. An empty folder that is given is taken \
for a disk that was replaced, and is filled: make sure that it is mounted. Where fewer folders may \
be lost than shards, that is a warning.

With --rebalance, shards move from the fullest folders to the emptiest until as many folders may \
be lost as can be. A shard's old file goes when the new one is on the disk.

A repaired shard is byte for byte the one that was lost. It keeps the permissions and the owner of \
the file that it replaces, or else gets what all other shards have in common. A file that is no \
shard but has the name of one is kept as NAME.damaged-<id>-<digest>. A file that cannot be opened \
is left as it is, and the exit code is 6; so it is where another process works on the same shards \
and the result is not what was asked for.
JSON: one line an object, type \"repair\", object, name, code, stage, stages, length, seconds, \
read_bytes (of blocks), digest_check (right, wrong, unchecked), repaired [{index, stage, was, \
path}], unreadable [{index, stage}], moved_aside [{from, path}], removed [{path, bytes}] (with \
--remove-moved-aside), moved [{index, stage, from, path}] (with --rebalance), \
folders [{path, shards}], folder_tolerance (any \
this many folders may be lost), folder_tolerance_certain (false where only some losses were \
tried), losable_folders (the largest sets that may be lost together, as indices into folders; null \
where there are more than six), once \
all is done, warnings. With --clean also type \"clean\", name, object (null if unknown), removed \
[{path}]. Of an object of which no shard can be read, type \"unrecognised\", name, \
status (lost), files [{path}]. Where there are several objects, a line of type \"summary\" \
comes last: objects, intact, repairable, repaired, lost, inconsistent, unknown, bytes (of the \
objects), seconds, rate (bytes a second).")]
pub struct Repair {
    #[command(flatten)]
    pub search: Search,
    /// Where repaired shards go [default: damaged ones are replaced in place, missing ones go to
    /// the folder with the fewest, which may be an empty one that is given].
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Where one shard is missing and the others look whole: read only what it is computed from
    /// (for RDP, EVENODD, STAR and X-Code about three quarters of k shards), each block by its
    /// checksum. Nothing else is verified, nor the object's digest.
    #[arg(long)]
    pub fewest_reads: bool,
    /// Remove what commands that were interrupted left behind: temporary files, and shards that
    /// `encode --force` had replaced, once the object of that name is intact. No other command may
    /// be writing there.
    #[arg(long)]
    pub clean: bool,
    /// Move shards between the folders that are given, and --to, where that lets more folders be
    /// lost together.
    #[arg(long)]
    pub rebalance: bool,
    /// Once the object is intact, remove what repair has moved aside for it, now or before. What
    /// was changed since is not removed.
    #[arg(long, conflicts_with = "fewest_reads")]
    pub remove_moved_aside: bool,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas encode log.zst --code bbdpg:k=6,m=2,m2=4 --out shards      any 2 of 8 shards may be lost
  paritas promote shards                                             any 4 of 10
  paritas promote /disk*/shards --to /disk9/shards --to /disk10/shards

Reads only the part of what is stored that the new parity is made from, each block by its \
checksum: (m2 - m)(k + m) symbols of every k m2, or all data where that is less. Where shards are \
missing or damaged, others are read in their place. No file is changed, and until all new ones are \
complete none has a name: killed at any moment, the object is as safe as it was, and promoting \
again completes it. What is promoted already is left alone, with exit 0; a code that has no second \
stage is exit 3.
JSON: one line an object, type \"promote\", object, name, code, stage, stages, length, tolerance, \
read_bytes (of blocks), read_payload_bytes (checksums apart), damaged_segments, missing [index], \
seconds, added [{index, stage, path}], warnings.")]
pub struct Promote {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Folders that take new files in turn [default: what is added to a shard goes beside it, a new
    /// shard to the folder with the fewest].
    #[arg(long, value_name = "DIR")]
    pub to: Vec<PathBuf>,
    /// Only this object, by its name or the first digits of its id, at least four.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
    #[command(flatten)]
    pub work: Work,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  paritas info shards

Reads headers only; `verify` checks the contents. JSON: one line an object, type \"info\", object, \
name, code, stage, stages, layout, packet, stripes_per_block, segment_bytes, stored_bytes, length, \
digest, mode (octal digits) and modified {seconds (since 1970), nanoseconds} of the file that was \
encoded (null if unknown), shard_count (after the last stage), tolerance (in this one), shards \
[{index, stage, files [{path, bytes, header, footer, notes}]}], missing, folders [{path, shards}], folder_tolerance (any \
this many folders may be lost), folder_tolerance_certain (false where only some losses were \
tried), losable_folders (the largest sets that may be lost together, as indices into folders; null \
where there are more than six), \
aside [{path, bytes}] (what repair has moved aside). Of an LT code tolerance is null, and \
reception says how many blocks of the shards that were found it takes, as multiples of k: blocks, \
average, p999 (99.9th percentile; the most, where runs are fewer than a thousand), runs (2000, or \
fewer where k is above 1024, so that it takes some seconds at most), failures. That is simulated, \
and remembered in the user's cache directory.")]
pub struct Info {
    /// Shards, or folders of shards.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this object, by its name or the first digits of its id, at least four.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
}

const IMPORT: &str = "\
Examples:
  paritas import photos.tar.*_*.fec --format zfec --out shards
  paritas import backup --format klauspost --code backblaze:k=10,m=4 --length 123456789 --out shards

Fragments carry no checksums: where more are given than are needed, they are compared, and a \
contradiction is exit 5. With two more than are needed, the message names the one that is damaged. \
Leave it out: missing fragments are computed.
JSON: type \"import\", format, object, name, code, stage, stages, length, digest, stored_bytes, \
seconds, missing [index], shards [{index, path}], warnings.";

const EXPORT: &str = "\
Examples:
  paritas export shards --format zfec --out shares
  paritas export shards --format jerasure --packet 1024 --out Coding

The object's code must be one of the format's. JSON: type \"export\", format, object, name, code, \
stage, stages, length, seconds, files [{path}].";

/// `--format`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FormatName {
    /// Share files of zfec and zunfec.
    Zfec,
    /// NAME.0, NAME.1, … as klauspost/reedsolomon's simple encoder writes them; --code
    /// backblaze:k=K,m=M says how many, and --length where padding begins.
    Klauspost,
    /// Files of the same kind, with any code in the word layout.
    Isal,
    /// Files of the same kind with the cells of HDFS's blocks, without their checksums.
    Hdfs,
    /// Files of Jerasure's example encoder, all techniques, with NAME_meta.txt.
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
    /// The bytes of a cell, for hdfs [default: 1048576].
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
    /// The code, where fragments do not tell it.
    #[arg(long, value_name = "SPEC")]
    pub code: Option<Spec>,
    /// The bytes of the file, where fragments do not tell them.
    #[arg(long, value_name = "BYTES")]
    pub length: Option<u64>,
    /// The folder for all shards; made if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The name to store, instead of the fragments' own.
    #[arg(long)]
    pub name: Option<OsString>,
    /// Replace existing shards of this name; they are kept until the new ones are complete.
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
    /// The bytes of a packet, for the techniques of jerasure that have packets [default: those of
    /// the object, which are those that were imported, or 64].
    #[arg(long, value_name = "BYTES")]
    pub packet: Option<usize>,
    /// The folder for the fragments; made if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Which object, by its name or the first digits of its id (at least four), where there are
    /// several.
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

Ones are those of the bit matrix, an XOR each in encoding without a schedule; density is their \
number over the fewest that any code of that shape can have. With GFNI, a Cauchy code in packets \
with more than 20,000 ones encodes slower than a code in words of the same k and m, and SPEC says \
so. GB/s in packets and in words (one core, AVX-512 and GFNI): 64+16 12.4 and 16.8, 64+32 6.4 and \
8.5, 100+24 8.2 and 11.1, 128+16 4.8 and 11.8, 128+32 2.0 and 8.3, 200+56 1.0 and 4.6, 128+128 \
0.44 and 2.0. On AVX2 packets are faster: 128+32 2.2 and 1.8.
JSON without SPEC: one line a family, type \"family\", name, summary, limits, example, tolerance, \
overhead, ones, fewest_ones, density (figures of the example). With SPEC: type \"code\", code, \
stages (nodes, tolerance, reads, makes of each, in packets), nodes, data_nodes, tolerance, \
data_cells, parity_cells, overhead, ones, fewest_ones, density, pin {…}, faster (a code in words \
that is, with figures; or null), and with --matrix: matrix [\"0101…\", …], one string a parity \
row, and with --svg: svg. Of an LT code tolerance, fewest_ones and density are null, and reception \
says how many blocks it takes (see `paritas info --help`).")]
pub struct Codes {
    /// The code to describe.
    pub spec: Option<Spec>,
    /// Print the bit matrix: a row for each parity packet, a column for each data packet.
    #[arg(long, requires = "spec")]
    pub matrix: bool,
    /// Draw the bit matrix, blocks by nodes, into an SVG file.
    #[arg(long, requires = "spec", value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// `--pass`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PassName {
    /// Rows as they stand.
    Direct,
    /// A row from an earlier row plus differences.
    Smart,
    /// Common pairs of data packets by unweighted matching.
    Um,
    /// Common pairs of data packets by weighted matching.
    Wm,
    /// Greedy common pairs, intermediates included, then refined.
    Slp,
}

impl From<PassName> for Pass {
    fn from(name: PassName) -> Self {
        match name {
            PassName::Direct => Self::Direct,
            PassName::Smart => Self::Smart,
            PassName::Um => Self::Unweighted,
            PassName::Wm => Self::Weighted,
            PassName::Slp => Self::Slp,
        }
    }
}

/// `--order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// One wanted packet after the other.
    Parity,
    /// One source packet after the other.
    Data,
    /// As the compiled kernel of --kernel runs it.
    Fused,
}

impl OrderName {
    /// Returns the order, where fused schedules run on this machine.
    pub fn order(self, machine: Machine) -> Order {
        match self {
            Self::Parity => Order::Parity,
            Self::Data => Order::Data,
            Self::Fused => Order::Fused(machine),
        }
    }
}

/// `--normalise`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Normalised.
    On,
    /// Without any scaling.
    Off,
}

/// `--strategy`: the pair (i, j) of the dissertation's table 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strategy {
    /// i: whether the matrix is normalised.
    pub normalise: Switch,
    /// j: how XORs are reduced.
    pub pass: PassName,
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (i, j) = text.split_once(',').unwrap_or_default();
        let normalise = ["0", "1"].iter().position(|&name| name == i);
        let pass = ["0", "1", "2", "3"].iter().position(|&name| name == j);
        let (Some(normalise), Some(pass)) = (normalise, pass) else {
            return Err(format!("`{text}` is not i,j with i from 0 to 1 and j from 0 to 3"));
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
    /// XORs and copies, an XOR counting as --weight copies.
    Weighted,
    /// Operations and XORs of three packets.
    Ternary,
    /// Instructions, loads and stores of the compiled kernel of --kernel; slow to count.
    Fused,
}

impl CostName {
    /// What is made small, where fused schedules run on this machine and an XOR costs so many
    /// thousandths of a copy.
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

/// `--search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchName {
    /// The matrix of the code.
    None,
    /// Simulated annealing over the points.
    Sa,
    /// A genetic algorithm over the points, children taking common points first.
    Ga,
    /// The same, children taking any points of their parents.
    GaRandom,
    /// Annealing on ones, then descent on schedules, over points and scalings.
    Local,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas schedule 10+4
  paritas schedule rdp:k=6 --erase 0,3 --text
  paritas schedule cauchy:k=6,m=2,w=8 --strategy 1,2 --search ga --evaluations 2000
  paritas schedule rdp:k=10 --erase 0 --fewest-reads     75 packets, where one parity alone takes 100
  paritas schedule bbdpg:k=6,m=2,m2=4 --stage 2          what promotion reads and computes
  paritas schedule lt:k=64,n=128 --erase 0,1,2           by peeling and inactivation
  paritas schedule backblaze:k=6,m=3 --set 4096 --text   what runs, over words of GF(2^8)
  paritas schedule 10+4 --set dram --align 4096 --asm    what runs on page-aligned shards from memory

With --set or --align the report is about what a codec runs in a call whose shards have that many \
bytes together and begin at multiples of that many bytes: its parts in turn, the order of their \
operations, how they read and store. (The tiled kernel runs the schedule as it was planned until \
some megabytes have asked for it, and wherever nothing may be compiled.) --asm alone means --set \
cache. Counts, over operations `cell = xor(sources)`, temporaries included: ones (of the bit \
matrix), xors (sum of fan-in - 1), copies (one an operation), total (xors + copies, the sum of \
fan-ins), ops, temps, ternary (sum of ceil((fan-in - 1) / 2)), instructions, loads and stores (of \
the compiled kernel, for every vector of a packet), reads (packets read of each node). --cost \
weighted takes the weight that `paritas tune` measured on this machine, or 1.5, the \
dissertation's, where it was not run: only with --weight are its counts the same everywhere. The \
weight is reported. --normalise, --strategy and --search are for Cauchy codes. A search takes k, m \
and w of SPEC and looks for the points; its result is the code that is reported. The same seed and \
evaluations give the same result, whatever the number of threads.
JSON: type \"schedule\", code, erased, stage, pass, order, cost, weight (null unless cost is \
weighted), fewest_reads, kernel (whose instructions are counted), ones, xors, copies, total, ops, \
temps, ternary, instructions, loads, stores (null if none is compiled), reads, plan_seconds (null \
after a search), plan_budget and plan_steps (what planning might take and took, in steps of about \
a nanosecond), plan_cut (what it left out for want of budget: reads, structure, elimination, \
pivots, alternatives, pairs, refining), search (method, seed, evaluations; null without), and with \
--text: text, with --asm: asm. With --set, --align or --asm also runs: kernel, set_bytes, align, \
nontemporal, in_turn, parts [{inputs, outputs (of each its shard and row), stages_inputs, \
prefetches, instructions, loads, stores (null if not compiled), text, asm}].")]
pub struct Schedule {
    /// The code.
    pub spec: Spec,
    /// Reconstruct these nodes instead of encoding.
    #[arg(long, value_delimiter = ',', value_name = "I,J,…")]
    pub erase: Vec<usize>,
    /// The stage that is made, or with --erase the one after which nodes are lost [default: 1, or
    /// with --erase the last]; only dpg and bbdpg have more than one.
    #[arg(long, value_name = "N")]
    pub stage: Option<u8>,
    /// How XORs are reduced.
    #[arg(long, value_enum, default_value = "slp")]
    pub pass: PassName,
    /// Scale the rows and columns of the matrix anew, or not at all [default: as the code has
    /// them].
    #[arg(long, value_enum)]
    pub normalise: Option<Switch>,
    /// --normalise and --pass as in table 3.2 of the dissertation: i is 0 (off) or 1 (on), j is 0
    /// (direct), 1 (smart), 2 (um) or 3 (wm).
    #[arg(long, value_name = "i,j", conflicts_with_all = ["pass", "normalise"])]
    pub strategy: Option<Strategy>,
    /// In which order operations come.
    #[arg(long, value_enum, default_value = "parity")]
    pub order: OrderName,
    /// What slp and searches make small.
    #[arg(long, value_enum, default_value = "total")]
    pub cost: CostName,
    /// How many copies an XOR costs, with --cost weighted [default: as measured by `paritas tune`,
    /// or 1.5].
    #[arg(long, value_name = "COPIES", value_parser = parse_weight)]
    pub weight: Option<u32>,
    /// How often slp takes a part of the schedule back and does it again [default: as often as
    /// pays].
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Search a better matrix.
    #[arg(long, value_enum, default_value = "none")]
    pub search: SearchName,
    /// Where the search begins.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// How many schedules the search makes [default: 2000].
    #[arg(long, value_name = "N", conflicts_with = "budget")]
    pub evaluations: Option<usize>,
    /// How long the search takes; the result depends on the machine.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<Duration>,
    /// Read as few packets as are found to be enough, at the price of more XORs.
    #[arg(long)]
    pub fewest_reads: bool,
    /// Plan for this many bytes of data, as `encode` and `decode` do for an object: planning stops
    /// where it takes longer than it saves. By default for data without end.
    #[arg(long)]
    pub bytes: Option<u64>,
    /// Print the operations.
    #[arg(long)]
    pub text: bool,
    /// Print the machine code that a compiled kernel makes of it.
    #[arg(long)]
    pub asm: bool,
    /// Report what runs in a call whose shards have this many bytes together.
    #[arg(long, value_name = "cache|dram|BYTES", value_parser = parse_set)]
    pub set: Option<usize>,
    /// Report what runs where shards begin at multiples of this many bytes [default: 64].
    #[arg(long, value_name = "BYTES")]
    pub align: Option<usize>,
    /// The compiled kernel whose instructions are counted and listed, and that is meant by `fused`;
    /// this processor need not have it [default: jit-avx2, or with --asm the best one here].
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<KernelChoice>,
}

impl Schedule {
    /// How XORs are reduced.
    pub fn pass(&self) -> PassName {
        self.strategy.map_or(self.pass, |strategy| strategy.pass)
    }

    /// How the matrix is scaled, unless as the code has it.
    pub fn normalise(&self) -> Option<Switch> {
        self.strategy.map(|strategy| strategy.normalise).or(self.normalise)
    }

    /// How many thousandths of a copy an XOR costs.
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or_else(paritas_tune::xor_weight)
    }
}

/// Thousandths.
fn parse_weight(text: &str) -> Result<u32, String> {
    match text.parse::<f64>() {
        Ok(weight) if (0.001..=1000.0).contains(&weight) => Ok((1000.0 * weight).round() as u32),
        _ => Err(format!("`{text}` is not a number from 0.001 to 1000")),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("`{text}` is not a number of seconds")),
    }
}

/// `--op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// All parity from all data.
    Encode,
    /// As many data nodes as may be lost.
    Decode,
    /// Parity after a change of one data node.
    Update,
    /// The parity of the second stage (dpg and bbdpg).
    Promote,
}

/// `--sweep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sweep {
    /// The bytes of a packet.
    Packet,
}

/// `--align`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Align {
    /// At cache lines, each shifted against the others by some lines.
    Staggered,
    /// All at pages, so that they compete for the same sets of the cache.
    Page,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas bench --code 10+4 --op encode
  paritas bench --code rdp:k=6 --op decode --set dram --threads 1
  paritas bench --code bbdpg:k=6,m=2,m2=4 --op promote
  paritas bench --code lt:k=1024,n=1229 --op decode --reception 1.05 --set dram
  paritas bench --code rdp:k=6 --sweep packet --kernel avx2 --order data

GB/s is k x shard bytes / seconds / 10^9 for every operation (an update counts the whole stripes \
it keeps right). The roofline is, in the same process and with the same kernel, the speed of \
reading as many streams and writing as many with one XOR for each byte read. Answers are checked \
before they are timed. Code and roofline are measured in pairs, back to back (within a \
millisecond, unless one run takes longer), in alternating order. Speeds are the median and the \
90th percentile of all samples; the fraction of the roofline is the median over all pairs, with an \
interval that holds it with 95 % confidence (a bootstrap from a fixed seed). Where the interval is \
wider than a tenth of the fraction, up to four times as many pairs are taken; where that does not \
help, or there are fewer than 20, the figure is called too noisy. Of an LT code, GB/s is k x block \
bytes; decode makes all data from blocks received in random order, the graph being solved once, in \
the first run, as for the segments of a file; the roofline reads k blocks. It has no --op update, \
and neither --packet, --pass, --cost, --order nor --split make a difference.
JSON: type \"bench\", code, op, stage, set_bytes, shard_bytes, align, packet, order, kernel, threads, \
split, reps, kept and pairs (how many were taken; none is left out), gbps_median, gbps_p90, \
gbps_min, gbps_max, roofline_gbps, roofline_gbps_p90, roofline_fraction, roofline_fraction_low, \
roofline_fraction_high, verdict (beside the roofline the code is faster, slower, level, or this is \
too noisy to say), noisy (whether the fraction is uncertain), first_seconds (of the first run, \
which plans and compiles). Of an LT code packet, order and split are null, and there are block_bytes, \
blocks (made or received), reception (these as a multiple of k) and seed (both null for encode).")]
pub struct Bench {
    /// The code.
    #[arg(long, value_name = "SPEC")]
    pub code: Spec,
    /// What to measure.
    #[arg(long, value_enum, default_value = "encode")]
    pub op: Operation,
    /// For decode, the stage after which nodes are lost [default: the last].
    #[arg(long, value_name = "N")]
    pub stage: Option<u8>,
    /// All shards together, of an LT code all blocks and data: cache (512 KiB), dram (256 MiB), or
    /// a number of bytes.
    #[arg(long, default_value = "cache", value_name = "cache|dram|BYTES", value_parser = parse_set)]
    pub set: usize,
    /// For decode of an LT code, how many blocks are received, as a multiple of k [default: as many
    /// as it takes, and 1.05 at least].
    #[arg(long, value_name = "MULTIPLE", value_parser = parse_reception)]
    pub reception: Option<f64>,
    /// For decode of an LT code, which blocks are received [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The bytes of a packet.
    #[arg(long, default_value_t = paritas::DEFAULT_PACKET, value_name = "BYTES")]
    pub packet: usize,
    /// Measure one packet after the other, in powers of two from 8 bytes to 32 KiB, as far as a
    /// strip of each fits into the set; a line each.
    #[arg(long, value_enum, conflicts_with = "packet")]
    pub sweep: Option<Sweep>,
    /// How shards lie in memory.
    #[arg(long, value_enum, default_value = "staggered")]
    pub align: Align,
    /// How XORs are reduced [default: slp, or as tuned].
    #[arg(long, value_enum)]
    pub pass: Option<PassName>,
    /// What slp makes small; fused is for the kernel that runs, if it is compiled.
    #[arg(long, value_enum, default_value = "total")]
    pub cost: CostName,
    /// In which order operations are planned. A compiled kernel still takes the cheapest of several
    /// orders; tiled kernels (scalar, sse2, avx2, avx512, neon) run the order as it is.
    #[arg(long, value_enum, default_value = "parity")]
    pub order: OrderName,
    /// Which kernel runs: auto, or one of those that `paritas doctor` lists.
    #[arg(long, default_value = "auto")]
    pub kernel: KernelChoice,
    /// The most threads to use; 0 is one for each processor.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub threads: usize,
    /// How threads share the work: auto, stripe, node, columns or rows; auto is as tuned.
    #[arg(long, default_value = "auto", value_name = "SPLIT", value_parser = parse_split)]
    pub split: SplitChoice,
    /// How many pairs to measure; more where they differ too much.
    #[arg(long, default_value_t = 41, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub reps: u32,
}

/// Measures kernels, schedules, stores, threads and splits, and remembers the best in the user's
/// cache directory, where all commands find them. A choice replaces the built-in default only if it
/// is clearly at least 3 % faster. What is stored never depends on it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas tune
  paritas tune 17+3 rdp:k=10
  paritas tune lt:k=1024,n=1536          which kernel runs its blocks; there is no other choice
  paritas tune --packet 10+4             which `encode --packet` would be fastest here
  paritas tune --forget

Every choice is measured in pairs with the built-in default, back to back, in alternating order, \
and taken if the whole interval of the ratio (95 % confidence) is above 1.03, or 1.1 for \
non-temporal stores. Up to 84 pairs are taken where that is not clear; then the default stays.
JSON: for each a line of type \"decision\", question, about, chosen, choices [{name, gbps and \
gbps_p90 (median and 90th percentile of all samples), ratio (to the default), ratio_low, \
ratio_high, pairs}]. At the end there is one of type \"tuning\", path, tuning (or forgotten).")]
pub struct Tune {
    /// The codes to measure [default: 4+2, 6+3, 8+3, 10+4, 12+4, 20+4].
    #[arg(value_name = "SPEC")]
    pub codes: Vec<Spec>,
    /// Measure and report, but remember nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Find the packet with which each code is encoded fastest here, in the cache and from memory;
    /// nothing is remembered, because packets are stored: say `encode --packet`.
    #[arg(long, conflicts_with = "dry_run")]
    pub packet: bool,
    /// Forget what was remembered, so that the built-in defaults serve.
    #[arg(long, conflicts_with_all = ["codes", "dry_run", "packet"])]
    pub forget: bool,
}

/// Returns the name of a choice, as it is given to its flag.
pub fn named(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// `--split`: nothing stands for what the machine is tuned to.
pub type SplitChoice = Option<Split>;

fn parse_split(text: &str) -> Result<SplitChoice, paritas::Error> {
    if text == "auto" { Ok(None) } else { text.parse().map(Some) }
}

fn parse_reception(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(multiple) if (1.0..=1e6).contains(&multiple) => Ok(multiple),
        _ => Err(format!("`{text}` is not a multiple of k from 1 on")),
    }
}

fn parse_set(text: &str) -> Result<usize, String> {
    match text {
        "cache" => Ok(512 << 10),
        "dram" => Ok(256 << 20),
        bytes => match bytes.parse() {
            Ok(bytes) if (1..=1 << 34).contains(&bytes) => Ok(bytes),
            _ => Err(format!("`{bytes}` is neither cache, dram, nor 1 to 2^34 bytes")),
        },
    }
}
