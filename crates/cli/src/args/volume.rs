//! The flags of `paritas volume`, each defined once.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use bytesize::ByteSize;
use clap::Subcommand;
use paritas::Spec;
use paritas_volume::{GetOptions, ObjectName, Rate};

use crate::args::code::code_name;
use crate::args::is_stdout;
use crate::args::work::count_to;

const OVERVIEW: &str = "\
Example:
  paritas volume init tank.toml --code 4+2 --node /disk1 --node /disk2 … --node s3://bucket/tank
  paritas volume put tank.toml photos.tar backup/photos.tar
  paritas volume get tank.toml backup/photos.tar photos.tar
  paritas volume verify tank.toml || paritas volume repair tank.toml

A volume keeps objects on nodes: folders, S3 buckets, WebDAV folders, folders of SFTP hosts. VOLUME \
is a file in TOML that lists them. Names of objects are paths with /. Each object is cut into the \
shards of the volume's code, one for each node; a small one, of at most 4 KiB unless `write.inline` \
says otherwise, is kept in its manifests. In a node's folder, `paritas verify --recursive` reads the \
shards like any others.

Exit codes are those of `paritas --help`, 130 after Ctrl-C, and 143 after the signal SIGTERM; \
`keep` ends with 0 then. 4 \
means that there is no such object, or that VOLUME is not a volume file; 6 also means that too few \
nodes answered. Ctrl-C and SIGTERM end a command within three seconds. An object that it was \
writing does not become visible, unless its shards were complete and its manifests were being \
written. A second signal ends the command at once.";

/// Keep objects on disks, hosts and buckets.
#[derive(Debug, clap::Args)]
#[command(after_help = OVERVIEW)]
pub struct Volume {
    /// The command.
    #[command(subcommand)]
    pub command: VolumeCommand,
}

/// The commands about volumes.
#[derive(Debug, Subcommand)]
pub enum VolumeCommand {
    /// Write a volume file, and prepare its nodes.
    Init(Init),
    /// Store a file, a pipe or a tree.
    Put(Put),
    /// Get an object or a tree back.
    Get(Get),
    /// Print an object, or a part of it.
    Cat(Cat),
    /// List objects.
    Ls(Ls),
    /// Show what is known about an object.
    Stat(Stat),
    /// Remove objects.
    Rm(Rm),
    /// Check that objects are whole.
    Verify(Verify),
    /// Rewrite what is missing or damaged.
    Repair(Repair),
    /// Add the parity that a dpg or bbdpg code leaves for later.
    Promote(Promote),
    /// Convert objects of other codes to the volume's code.
    Reencode(Reencode),
    /// Add a new, empty node.
    Add(Add),
    /// Move what a node holds to the others, so that it can be removed.
    Drain(Drain),
    /// Fill a new, empty node in the place of a lost one.
    Replace(Replace),
    /// Show the state of the nodes, and what waits to be done.
    Status(Status),
    /// Measure how fast objects are stored and read.
    Bench(Bench),
    /// Look after a volume for as long as the command runs.
    Keep(Keep),
}

impl VolumeCommand {
    /// Whether standard output carries an object's bytes.
    pub fn takes_stdout(&self) -> bool {
        match self {
            Self::Cat(_) => true,
            Self::Get(get) => !get.recursive && is_stdout(&get.file),
            _ => false,
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume init tank.toml --code 2+1 --node /disk1 --node /disk2 --node /disk3
  paritas volume init tank.toml --code 4+2 --node a=/disk1 --node b=s3://bucket/tank … --domain a=here
  paritas volume init tank.toml --code 2+1 … --node c=s3://b/t --credentials c=OFFICE
  paritas volume init tank.toml          prepares the nodes of an existing volume file

A node is a folder, s3://BUCKET/PREFIX?endpoint=URL&region=NAME, webdav://HOST/PATH (webdav+http:// \
without TLS), or sftp://USER@HOST:PORT/PATH. Relative folders are relative to the volume file. \
Credentials come from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3), or from \
where --credentials says: other variables, or a file; they never stand in the volume file. Comments \
in the volume file explain every key. To set other keys first, write it by hand or change it, and run \
`init` with the file alone.

Each node must exist and be empty; a missing folder of an SFTP or WebDAV server is made. It is tried \
out with files in a folder probe-…, which are removed, and gets a file `ready` that names its volume \
and node. If a node cannot be written or listed, no volume file is written. There is a warning if no \
node may be lost, if there are fewer nodes or domains than shards, or if a domain has more nodes than \
may be lost.")]
pub struct Init {
    /// The volume file to write.
    #[arg(value_name = "VOLUME")]
    pub volume: PathBuf,
    /// The code: K+M, FAMILY:KEY=VALUE,… or matrix:FILE.
    ///
    /// K+M is a code of the family cauchy, or of backblaze if K times M is at least 300, M at least
    /// 2 and K plus M at most 256. `paritas codes` lists the families.
    #[arg(long, value_name = "SPEC", requires = "node", value_parser = code_name())]
    pub code: Option<Spec>,
    /// A node, with its name [default: node1, node2, …]; give one for each.
    #[arg(long, value_name = "[NAME=]URI", requires = "code")]
    pub node: Vec<NodeArg>,
    /// The failure domain of a node.
    ///
    /// Nodes of one domain are lost together [default: each node is a domain of its own].
    #[arg(long, value_name = "NAME=DOMAIN", requires = "node", value_parser = parse_of_node)]
    pub domain: Vec<(String, String)>,
    /// Where the credentials of a node are.
    ///
    /// A file that only its owner may use (mode 600), or the prefix of environment variables:
    /// OFFICE stands for OFFICE_ACCESS_KEY_ID and OFFICE_SECRET_ACCESS_KEY.
    #[arg(long, value_name = "NAME=WHERE", requires = "node", value_parser = parse_of_node)]
    pub credentials: Vec<(String, String)>,
    /// The name of the volume, for people [default: the name of the file].
    #[arg(long, requires = "node")]
    pub name: Option<String>,
}

/// `--node`.
#[derive(Debug, Clone)]
pub struct NodeArg {
    /// The name, if one is given.
    pub name: Option<String>,
    /// The place.
    pub uri: String,
}

impl FromStr for NodeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
        };
        let (name, uri) = match text.split_once('=') {
            Some((name, uri)) if is_name(name) => (Some(name.to_owned()), uri),
            _ => (None, text),
        };
        match uri.is_empty() {
            true => Err("a node must have a URI or a folder; got none".to_owned()),
            false => Ok(Self { name, uri: uri.to_owned() }),
        }
    }
}

/// Reads `NAME=VALUE`: a node and its setting.
fn parse_of_node(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, said)) if !name.is_empty() && !said.is_empty() => {
            Ok((name.to_owned(), said.to_owned()))
        }
        _ => Err(format!("must be NAME=…, with the name of a node; got `{text}`")),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume put tank.toml photos.tar backup/photos.tar
  pg_dump db | paritas volume put tank.toml - backup/db.dump
  paritas volume put tank.toml --recursive /home backup/home
  paritas volume put tank.toml disk.img backup/disk.img --resume
  paritas volume put tank.toml page.html www/page.html --note content-type=text/html

When the command ends, the object is durable on enough nodes, and every reader finds it. Until \
then nobody sees it, and an older object of that name stays as it is. If nodes fail, other nodes \
get their shards. Shards that are missing or not on their own node are owed: `repair` brings them \
there. With --recursive, an object is stored for each file below DIR; links, devices, empty \
folders and folders that are nodes of the volume are left out. The permissions of files, but for \
set-user-ID, set-group-ID and sticky, and their modification time are kept.")]
pub struct Put {
    /// The volume file.
    pub volume: PathBuf,
    /// The file to store; - reads standard input. With --recursive, a folder.
    #[arg(value_name = "FILE|DIR")]
    pub file: PathBuf,
    /// The name of the object, or the prefix of all names.
    ///
    /// With --recursive, a prefix; it may be empty.
    #[arg(value_name = "NAME|PREFIX")]
    pub name: String,
    /// Store all files below a folder.
    #[arg(long, short)]
    pub recursive: bool,
    /// Store a large file in pieces, and go on where an earlier put stopped.
    ///
    /// If the command is interrupted, its pieces of 64 MiB stay for a week. Pieces whose bytes the
    /// file still has are not sent again.
    #[arg(long, conflicts_with = "recursive")]
    pub resume: bool,
    /// Fail if an object of this name exists, instead of replacing it.
    ///
    /// This is checked before the file is read, and again when the object is about to appear. Of
    /// commands that store the same name at the same moment, several may succeed.
    #[arg(long, conflicts_with = "recursive", hide_short_help = true)]
    pub if_absent: bool,
    /// Note NAME=TEXT about the object, as `volume stat` shows it.
    ///
    /// May be given several times. `paritas serve` sends its clients the note `content-type`, those
    /// of other headers of S3, and those that begin with `x-amz-meta-`.
    #[arg(long = "note", value_name = "NAME=TEXT", value_parser = parse_note, hide_short_help = true)]
    pub notes: Vec<(String, String)>,
}

fn parse_note(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, said)) if !name.is_empty() => Ok((name.to_owned(), said.to_owned())),
        _ => Err(format!("must be NAME=TEXT; got `{text}`")),
    }
}

/// The load that background work may put on nodes.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Background {
    /// The most bytes a second from and to each node, such as 20MB.
    ///
    /// `none` means no limit [default: background_rate of the volume file].
    #[arg(long)]
    pub rate: Option<Rate>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume keep tank.toml
  paritas volume keep tank.toml --rate 20MB

Every minute, objects with owed shards are repaired and waiting objects are promoted, the oldest \
first; every hour, remains of interrupted commands are removed; once a week, all blocks are read. \
Work that fails causes a warning, and is tried again. Several machines may do this for one volume; \
`paritas serve` does it as well. Both notice when the volume file lists other nodes. Ctrl-C and the \
signal SIGTERM end the command, with 0; a second one ends it at once. docs/gateway.md has a unit \
for systemd.")]
pub struct Keep {
    /// The volume file.
    #[arg(value_name = "VOLUME")]
    pub volume: PathBuf,
    /// The load that the work may put on nodes.
    #[command(flatten)]
    pub background: Background,
}

/// The objects to work on: the named ones or, with `--all`, all.
#[derive(Debug, clap::Args)]
pub struct Objects {
    /// The objects: a name, or a prefix of names that ends with /.
    #[arg(value_name = "NAME|PREFIX/", required_unless_present = "all")]
    pub names: Vec<String>,
    /// Work on all objects that need it.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// How reading treats nodes that do not answer.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Staleness {
    /// Take the newest version that is found.
    ///
    /// Even if too few nodes answered to be sure that it is the newest.
    #[arg(long)]
    pub allow_stale: bool,
}

impl Staleness {
    /// Returns the settings of reading.
    pub fn options(self) -> GetOptions {
        GetOptions::default().allow_stale(self.allow_stale)
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume get tank.toml backup/photos.tar photos.tar
  paritas volume get tank.toml backup/db.dump - | psql
  paritas volume get tank.toml --recursive backup/home restored

A file gets its name once it is complete and its digest is right; it gets the permissions and the \
modification time that were stored. On standard output, a wrong digest shows only after the bytes \
have left: the exit code is 5. With --recursive, the part of a name after PREFIX is the file's \
path below DIR. No file is written outside DIR, and links in it are not followed.")]
pub struct Get {
    /// The volume file.
    pub volume: PathBuf,
    /// The name of the object, or a prefix of names.
    ///
    /// With --recursive, a folder in names, such as backup/home; it may be empty.
    #[arg(value_name = "NAME|PREFIX")]
    pub name: String,
    /// The file to write, - for standard output, or a folder.
    ///
    /// If the path is a folder, or ends with /, the file in it is named after the last part of
    /// NAME. With --recursive, a folder. Such folders are created if they do not exist.
    #[arg(value_name = "FILE|DIR")]
    pub file: PathBuf,
    /// Get all objects whose names begin with PREFIX and /.
    #[arg(long, short)]
    pub recursive: bool,
    /// Replace existing files.
    #[arg(long)]
    pub force: bool,
    /// Do not restore the stored permissions and modification time.
    #[arg(long)]
    pub no_preserve: bool,
    /// Do not wait until files are on the disk.
    ///
    /// Many small files are written much faster, but a power failure may lose the newest.
    #[arg(long)]
    pub no_sync: bool,
    #[command(flatten)]
    pub staleness: Staleness,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume cat tank.toml notes/todo
  paritas volume cat tank.toml disk.img --range 0+512 | xxd
  paritas volume cat tank.toml log --range 1000000..

If the object is in shards, only the blocks that the range touches are read. Every block is \
checked before its bytes are printed. Results and progress go to standard error.")]
pub struct Cat {
    /// The volume file.
    pub volume: PathBuf,
    /// The name of the object.
    pub name: ObjectName,
    /// The bytes to print, counted from 0.
    ///
    /// A..B ends before B; A+LEN takes LEN bytes from A on; A.. takes all from A on.
    #[arg(long, value_name = "A..B|A+LEN|A..")]
    pub range: Option<ByteRange>,
    #[command(flatten)]
    pub staleness: Staleness,
}

/// `--range`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    start: u64,
    /// `None` means the end of the object.
    end: Option<u64>,
}

impl ByteRange {
    /// Returns the range in an object of `length` bytes. It may reach beyond the end of the object.
    pub fn within(self, length: u64) -> Range<u64> {
        self.start..self.end.unwrap_or(length.max(self.start))
    }
}

impl FromStr for ByteRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_range(text)
            .filter(|range| range.end.is_none_or(|end| range.start <= end))
            .ok_or_else(|| format!("must be A..B with A <= B, A+LEN or A..; got `{text}`"))
    }
}

fn parse_range(text: &str) -> Option<ByteRange> {
    if let Some((start, length)) = text.split_once('+') {
        let start: u64 = start.parse().ok()?;
        return Some(ByteRange { start, end: Some(start.checked_add(length.parse().ok()?)?) });
    }
    let (start, end) = text.split_once("..")?;
    let end = if end.is_empty() { None } else { Some(end.parse().ok()?) };
    Some(ByteRange { start: start.parse().ok()?, end })
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume ls tank.toml
  paritas volume ls tank.toml backup/ --long
  paritas volume ls tank.toml -0 | xargs -0 -n1 echo

On a terminal, a name with blanks at either end or with control characters is quoted for shells, \
as in $'two\\nlines'.
With --allow-stale, the list may lack objects, and may show objects that were removed or \
replaced.")]
pub struct Ls {
    /// The volume file.
    pub volume: PathBuf,
    /// List only objects whose names begin with this.
    ///
    /// The exit code is 4 if there is no such object.
    pub prefix: Option<String>,
    /// Show length, generation and id of each object, too.
    ///
    /// The generation is the number of seconds since 1970 by the writer's clock, or a larger
    /// number.
    #[arg(long, short)]
    pub long: bool,
    /// End each name with a NUL character, and print it exactly.
    ///
    /// Instead of a line break.
    #[arg(long, short = '0')]
    pub null: bool,
    #[command(flatten)]
    pub staleness: Staleness,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  paritas volume stat tank.toml backup/photos.tar")]
pub struct Stat {
    /// The volume file.
    pub volume: PathBuf,
    /// The name of the object.
    pub name: ObjectName,
    #[command(flatten)]
    pub staleness: Staleness,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume rm tank.toml backup/photos.tar
  paritas volume rm tank.toml --recursive backup/home")]
pub struct Rm {
    /// The volume file.
    pub volume: PathBuf,
    /// The names of the objects.
    #[arg(required = true, value_name = "NAME|PREFIX")]
    pub names: Vec<String>,
    /// Remove all objects whose names begin with PREFIX and /.
    ///
    /// An empty PREFIX, which all names begin with, is refused.
    #[arg(long, short)]
    pub recursive: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume verify tank.toml --only-bad
  paritas volume verify tank.toml backup/ --deep

Without --deep, only the lengths of shards are checked; with it, every block and manifest is read \
and checked; `repair --deep` mends what only that finds. Files on nodes that are folders are then read from the disk, even if this machine has \
them in memory. If only nodes that do not answer could tell whether an object can be read, its \
status is unknown, and the exit code is 6. The exit code is the worst of all objects.")]
pub struct Verify {
    /// The volume file.
    pub volume: PathBuf,
    /// The objects: a name, or a prefix that ends with / [default: all].
    #[arg(value_name = "NAME|PREFIX/")]
    pub names: Vec<String>,
    /// Read and check every block and manifest.
    #[arg(long)]
    pub deep: bool,
    /// Report only objects that are not intact.
    ///
    /// If all objects are intact, nothing is printed, as cron expects.
    #[arg(long)]
    pub only_bad: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume repair tank.toml
  paritas volume repair tank.toml backup/photos.tar --deep
  paritas volume repair tank.toml --scrub

Every shard and every manifest is brought to the node where it belongs, and older versions are \
removed. Without names, the objects that can lose the fewest further nodes come first; at the end, \
remains of interrupted commands are removed if they are older than a day. With --scrub, every \
block of every object is read, in the order of names, and from the disk where nodes are folders; \
an interrupted scrub continues where it stopped, and `status` tells how far it is. The exit code \
is the worst of all objects; 1 means that something is left to repair: a node failed, or a shard \
is damaged on its node and whole on another one, which only --deep repairs.")]
pub struct Repair {
    /// The volume file.
    pub volume: PathBuf,
    /// The objects: a name, or a prefix that ends with / [default: all].
    #[arg(value_name = "NAME|PREFIX/")]
    pub names: Vec<String>,
    /// Read every block and manifest first to find damage.
    #[arg(long)]
    pub deep: bool,
    /// Read every block of all objects.
    ///
    /// In the order of names; an interrupted scrub continues where it stopped.
    #[arg(long, conflicts_with_all = ["names", "deep"])]
    pub scrub: bool,
    /// Remove what interrupted commands have left behind.
    ///
    /// Without names, this is always done.
    #[arg(long)]
    pub collect: bool,
    #[command(flatten)]
    pub background: Background,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume promote tank.toml --all
  paritas volume promote tank.toml backup/photos.tar
  paritas volume promote tank.toml backup/

An object of a dpg or bbdpg code is whole without the parity that is added here, but tolerates \
more losses with it. Only the blocks that this parity needs are read. With --all or a prefix, the \
objects that have waited longest come first. An interrupted command can be run again; shards that \
are whole stay. An object that another process is promoting is left to that process, if a node can \
refuse to create a file that exists.")]
pub struct Promote {
    /// The volume file.
    pub volume: PathBuf,
    #[command(flatten)]
    pub objects: Objects,
    #[command(flatten)]
    pub background: Background,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume reencode tank.toml --all
  paritas volume reencode tank.toml backup/ --rate 20MB

The volume file states the code of new objects; older objects keep theirs. After you have changed \
it, this command reads the objects of other codes and stores them by the new one. Readers find \
each object at any moment, with its mode and time. An interrupted command can be run again; \
objects that already have the code stay as they are. Small objects are kept whole, and have no \
code.")]
pub struct Reencode {
    /// The volume file.
    pub volume: PathBuf,
    #[command(flatten)]
    pub objects: Objects,
    #[command(flatten)]
    pub background: Background,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume add tank.toml --node /disk5
  paritas volume add tank.toml --node nas=sftp://me@nas/tank --domain cellar
  paritas volume add tank.toml --node e=/disk5 --node f=/disk6 --domain e=shelf --domain f=shelf

Each node must exist and be empty, as for `init`. It is tried out as there, gets the volume's mark, \
and is then added to the volume file; the rest of the file does not change. New objects use the node \
at once; `repair` moves to it the shards and manifests of older objects that belong there. The number \
of nodes that may be lost does not change. Before that repair, copy the file to all other clients: \
with the old list they do not ask the new node, and objects that moved there cannot be read. `serve` \
and `keep` notice within seconds that the file lists other nodes.")]
pub struct Add {
    /// The volume file.
    pub volume: PathBuf,
    /// A node, with its name; give one for each.
    ///
    /// Without a name, it is called node and a number. See `init`.
    #[arg(long, value_name = "[NAME=]URI", required = true)]
    pub node: Vec<NodeArg>,
    /// The failure domain of a node, by name if there are several.
    ///
    /// Without it, each node is a domain of its own.
    #[arg(long, value_name = "[NAME=]DOMAIN")]
    pub domain: Vec<String>,
    /// Where a node's credentials are, by name if there are several.
    ///
    /// See `init`.
    #[arg(long, value_name = "[NAME=]WHERE")]
    pub credentials: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume drain tank.toml usb
  paritas volume drain tank.toml usb --remove

The node is marked by `drained = true` in the volume file, whose other lines do not change, and \
all objects are repaired: the node's shards go to other nodes, and its manifests do not count any \
more. An interrupted command continues when it is run again. Draining is refused if fewer nodes \
might be lost without the node. A node that does not answer can be drained, too: its shards are \
computed from others.

To remove a node while other clients use the volume, drain it, copy the volume file to all of \
them, and drain it again with --remove, which first moves what they have written meanwhile and \
then takes the node out of the file. Copy the file again; then the files of the node may be \
deleted.

The exit code is 1 if the node is not empty yet.")]
pub struct Drain {
    /// The volume file.
    pub volume: PathBuf,
    /// The node's name.
    pub node: String,
    /// Remove the node from the volume file once it is empty.
    #[arg(long)]
    pub remove: bool,
    #[command(flatten)]
    pub background: Background,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  paritas volume replace tank.toml usb

Give the new node the name of the lost one in the volume file, with the new URI if that differs. \
It must be empty. It gets the manifests first, and then the volume's mark, without which it is not \
asked for anything; then all objects are repaired. An interrupted command can be run again. If the \
old disk comes back, delete its file `ready`, and replace the node by it: it has names that were \
removed since, which this command deletes. To take a node out of the volume, use `drain` instead.")]
pub struct Replace {
    /// The volume file.
    pub volume: PathBuf,
    /// The node's name.
    pub node: String,
    #[command(flatten)]
    pub background: Background,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  paritas volume status tank.toml

A node is ready if it bears the volume's mark, lists its manifests and, unless it is drained, \
takes a small file, which is removed. Only owed shards that commands know of are counted; `verify` \
looks for the others. The exit code is 1 if a node cannot be used now or an object waits for \
repair, 2 if a repair could not make an object whole (until `repair --deep` can, or the object is \
removed), and 6 if more nodes cannot be used than may be lost.")]
pub struct Status {
    /// The volume file.
    pub volume: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas volume bench tank.toml
  paritas volume bench tank.toml --size 1GiB --rounds 9
  paritas volume bench tank.toml --size 4KiB --objects 1000

Each round puts an object, gets it, reads 4 KiB of it, promotes it if its code has stages, and \
removes it. Beside each operation, the nodes do the same work with plain files of the length of \
shards, written or read at once through the same protocol. A put is compared with a file for each \
shard of the object, a get with just enough files to hold the object's bytes, a range with one \
file, and a promotion with a file for each shard that it adds. So the ratio tells what coding, \
checksums, manifests and the search for the newest version cost. All bytes that are read are \
compared with what was stored. With --objects, many objects are put and got, 16 at a time, and so \
are their plain files. `rate` in the volume file limits both.

The objects are stored below paritas-bench/ and a random name, and are removed at the end, even if \
something fails. `rm --recursive` removes what an interrupted run has left there.")]
pub struct Bench {
    /// The volume file.
    pub volume: PathBuf,
    /// The length of an object, such as 64MiB.
    #[arg(long, default_value = "64MiB", value_parser = parse_size)]
    pub size: u64,
    /// The number of rounds.
    #[arg(long, default_value_t = 5, value_parser = count_to(1000))]
    pub rounds: u32,
    /// Measure N objects side by side instead of one.
    #[arg(long, value_name = "N", value_parser = parse_objects)]
    pub objects: Option<usize>,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let size = text.parse::<ByteSize>().ok().map(|size| size.as_u64());
    let refused = || format!("must be at least 1 byte and at most 1 TiB, as 64MiB; got `{text}`");
    size.filter(|size| (1..=1 << 40).contains(size)).ok_or_else(refused)
}

fn parse_objects(text: &str) -> Result<usize, String> {
    let refused = || format!("must be between 1 and 1000000; got `{text}`");
    text.parse().ok().filter(|count| (1..=1_000_000).contains(count)).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let range = |text: &str| text.parse::<ByteRange>().map(|range| range.within(100));
        assert_eq!(range("3..7"), Ok(3..7));
        assert_eq!(range("3+7"), Ok(3..10));
        assert_eq!(range("3.."), Ok(3..100));
        assert_eq!(range("200.."), Ok(200..200));
        for text in ["", "3", "..", "7..3", "-1..3", "3+", "18446744073709551615+1", "a..b"] {
            assert!(range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nodes_have_names_where_one_is_given() {
        let node = |text: &str| text.parse::<NodeArg>().map(|node| (node.name, node.uri));
        assert_eq!(node("a=/mnt/a"), Ok((Some("a".into()), "/mnt/a".into())));
        assert_eq!(node("/mnt/a=b"), Ok((None, "/mnt/a=b".into())));
        let bucket = "s3://bucket?endpoint=http://host";
        assert_eq!(node(bucket), Ok((None, bucket.into())));
        assert!(node("a=").is_err() && node("").is_err());
    }
}
