//! The commands about shard files, and about protections and shards alike.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ArgGroup;
use paritas::Spec;
use paritas_shards::DEFAULT_CODE;

use crate::args::code::code_name;
use crate::args::packet::PacketChoice;
use crate::args::protect::Memory;
use crate::args::work::{Threads, Work};

#[derive(Debug, clap::Args)]
#[command(
    group(ArgGroup::new("target").required(true)),
    after_help = "\
Examples:
  paritas encode photos.tar --out shards               4 data and 2 parity shards
  paritas encode db.dump --code 4+2 --to /disk1 --to /disk2 --to /disk3    any disk may be lost
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
    /// K+M is a code of the family cauchy, or of backblaze if K times M is at least 300, M at least
    /// 2 and K plus M at most 256. `paritas codes` lists the families.
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
    /// The number is stored, so every reader knows it. 64 suits every processor (see `paritas tune
    /// --packet`); the default is less if the object does not fill a stripe. `rule` takes the
    /// largest packet with which a stripe and its temporaries fit into the first-level cache (see
    /// `paritas schedule`), for readers that run one operation after the other. `tuned` takes the
    /// packet that `paritas tune` found here. Packets make no difference in the word layout.
    #[arg(long, value_name = "BYTES|rule|tuned", hide_short_help = true)]
    pub packet: Option<PacketChoice>,
    /// Replace existing shards of this name, of whatever code.
    ///
    /// They are kept until the new ones are complete. Any other file stays. So do shards that were
    /// renamed or are in other folders: they remain an object of their own, and `decode` of both
    /// objects asks for an id.
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
    /// If the path is a folder, or ends with /, all objects are decoded to files in it.
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
    /// The file belongs to the user who decodes it, so set-user-ID may stand for another user than
    /// before.
    #[arg(long, conflicts_with = "no_preserve", hide_short_help = true)]
    pub preserve_special: bool,
    #[command(flatten)]
    pub work: Work,
}

/// The paths to search for objects, and the objects to report.
#[derive(Debug, clap::Args)]
pub struct Search {
    /// Protected files or folders, parity, or shards.
    ///
    /// Folders that hold parity or shards are accepted, too.
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
    /// If all objects are intact, nothing is printed, as cron expects.
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
  paritas verify photos --quick                        compares sizes and times
  paritas verify photos --from-disk                    reads the disk, not what is in memory
  paritas verify photos /disk2/parity                  the same if either was moved
  paritas verify photos/2005                           one folder or file of a protection
  paritas verify shards || paritas repair shards
  paritas verify --recursive /backup --only-bad        all sets of a tree
  paritas verify --recursive /disk1 /disk2 /disk3      all sets that are spread over these
  paritas verify shards --deep                         recomputes parity, too

A folder with parity in it, or in `.paritas` in it, is a protection, and is reported file by file: \
damaged (its bytes differ, its times do not), changed (its bytes and its time or ctime differ), \
missing, moved (its bytes are in another file), touched (only time or mode differ), unreadable. \
Moved and touched files are intact. Parity files that have lost their names, or are in other \
folders, are found if the folders are given. Shards in a protected tree are verified with --recursive.

Each folder of shards that is given counts as a disk or a machine, whose shards are lost together, \
and the report says which folders may be lost. For an LT code, the number of tolerable losses is \
an estimate, from trying some of them (all, if they are few). The exit code is the worst of all \
objects; if there are several, a summary comes last. Before promotion, only the files of the first \
stage are expected; once any file of a later stage exists, all files of that stage are. A file \
that cannot be opened, for lack of permission for example, is not lost: its state is unreadable. \
If such files may hold missing shards, and the status depends on these, it is unknown, and the \
exit code is 6. The exit code is also 6 if a PATH cannot be read. A shard of a later version of \
paritas, or of a code that this version does not know, is not lost either: it is named, and the \
exit code is 4. If other objects are found, files with the names of an object's shards, none of \
which can be read as a shard, count as a lost object.

With --deep, parity is computed from the data of every segment whose data are intact (for an LT \
code, of every segment that can be decoded), and compared with the stored parity. If they differ \
although the checksum is right, the status is inconsistent and the exit code 5: a program wrote \
wrong parity, not a disk.")]
pub struct Verify {
    #[command(flatten)]
    pub search: Search,
    /// Compute parity from the data, and compare it with the stored.
    ///
    /// This finds parity that a faulty encoder wrote.
    #[arg(long)]
    pub deep: bool,
    /// Take files whose size and times are unchanged for intact.
    ///
    /// Such files are not read. A file of the same size with another time or ctime is read, and so
    /// are all others before anything is called lost.
    #[arg(long)]
    pub quick: bool,
    /// Read everything from the disk, not from memory.
    ///
    /// Even files that the system keeps in memory because they were read or written lately. Linux
    /// only.
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
  paritas repair photos --to rescued                   what is not as it was goes there
  paritas repair photos --dry-run                      what would be restored; nothing is written
  paritas repair photos --restore-changed --move-back  changed and moved files go back, too
  paritas repair shards
  paritas repair /disk1 /disk2 /disk3 --to /disk4      missing shards go to the new disk
  paritas repair /disk1 /disk2 /disk3                  the same if /disk3 is new and empty
  paritas repair /disk1 /disk2 /disk3 --rebalance      also moves badly placed shards
  paritas repair --recursive /backup                   all sets of a tree, folder by folder
  paritas repair --recursive /disk1 /disk2 /disk3      all sets that are spread over these

Protected files that are damaged or missing are restored under a temporary name, compared by their \
digest, and get their name and attributes; what they replace is kept as \
NAME.damaged-<id>-<digest>, until `repair --clean` removes it; parity that is damaged or missing \
is written anew. Files that someone changed (their time or ctime differs, too) stay as they are \
unless --restore-changed is given, and moved files stay where they are unless --move-back is \
given. If more is lost than can be repaired, files that need the missing blocks stay as they are \
and are named, and all else is restored (exit 2). If changed files stay, the exit code is 1; \
`protect --update` protects them as they are.

Each folder of shards that is given counts as a disk or a machine, whose shards are lost together. \
Missing shards are placed so that as many whole folders as possible may be lost. An empty folder \
that is given counts as a disk that was replaced, and is filled: make sure that it is mounted. If \
several PATHS are given and one does not exist, nothing is written (exit 3), because its disk may \
not be mounted. With --recursive, several folders are disks: a missing shard of a set in one \
folder may go to the same path below any of them, where that folder is made. If fewer folders may \
be lost than shards, there is a warning.

With --rebalance, shards move from the fullest folders to the emptiest until as many folders as \
possible may be lost. It uses every folder that is given. A shard's old file is removed when the \
new one is on the disk.

A repaired shard is byte for byte the one that was lost. It keeps the permissions and the owner of \
the file that it replaces; if it replaces none, it gets those that all other shards have in \
common. A file that has the name of a shard but is not one is kept as NAME.damaged-<id>-<digest>. \
A file that cannot be opened is left unchanged, and the exit code is 6. The exit code is also 6 if \
another process works on the same shards and the result is not what was asked for.")]
pub struct Repair {
    #[command(flatten)]
    pub search: Search,
    /// The folder for restored files, or for repaired shards.
    ///
    /// Without it, damaged files are replaced in place, and missing shards go to the given folder
    /// with the fewest shards, which may be empty. With it, all protected files that are not as
    /// they were are written to DIR: also those that were changed or moved. Not with --recursive:
    /// give DIR as one more PATH instead.
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
    /// Beside shards, these are temporary files and, once the object of that name is intact, shards
    /// that `encode --force` had replaced (--fewest-reads does not find out whether it is). With
    /// --object, only files of that object are removed. No other command may be writing there.
    /// Beside protected files, these are the copies that earlier repairs kept of what they
    /// replaced, which are removed once everything is whole, and unfinished files of parity. Give
    /// the root, not a part of it.
    #[arg(long)]
    pub clean: bool,
    /// Move shards so that more folders may be lost together.
    ///
    /// Between the given folders, and --to.
    #[arg(long, hide_short_help = true)]
    pub rebalance: bool,
    /// Remove what repair moved aside, once the object is intact.
    ///
    /// This includes what earlier repairs moved. Files that have changed since are not removed.
    #[arg(long, conflicts_with = "fewest_reads", hide_short_help = true)]
    pub remove_moved_aside: bool,
    /// Restore files that were changed, too.
    ///
    /// Their present content is kept beside them.
    #[arg(long)]
    pub restore_changed: bool,
    /// Return moved files to where they were when they were protected.
    #[arg(long, conflicts_with = "to")]
    pub move_back: bool,
    /// Say what would be restored to protected files, and write nothing.
    ///
    /// Protected files are verified. The report tells what would be restored, moved back and
    /// written anew, and how much space that takes on each disk. The exit code is that of `verify`.
    /// For whole trees with shards in them, use `verify --recursive`.
    #[arg(long, conflicts_with = "recursive")]
    pub dry_run: bool,
    #[command(flatten)]
    pub memory: Memory,
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
    /// with the fewest shards.
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
    /// Folders that hold parity or shards are accepted, too.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Only this one, by its name or the first digits of its id.
    ///
    /// An object or a protection; at least four digits.
    #[arg(long, value_name = "ID|NAME")]
    pub object: Option<OsString>,
}
