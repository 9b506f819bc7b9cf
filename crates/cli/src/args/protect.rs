//! The flags of `paritas protect`, and the flag about memory that `repair` shares with it.

use std::path::PathBuf;

use bytesize::ByteSize;
use paritas_protect::{Redundancy, Share};

use crate::args::work::Work;

/// Smallest value of `--memory` in bytes.
const LEAST_MEMORY: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  paritas protect photos                                    a tenth of parity, in photos/.paritas
  paritas protect photos --redundancy 25% --exclude '*.tmp' --exclude cache
  paritas protect photos --parity-dir /disk2/parity --parity-dir /disk3/parity
  paritas protect disk.img mail --name backup               several files and folders
  paritas protect photos --dry-run                          what it would take; nothing is written
  paritas protect --update photos                           after changes
  paritas protect --update photos --most-changed 80%        unless more than that has changed
  paritas protect --update photos --accept-removals thumbs/   files that a program removes
  paritas verify photos || paritas repair photos

Files are read and never changed, moved or copied. All of them together are cut into some ten \
thousand blocks, from which parity blocks are computed. Damage can be repaired if it touches no \
more blocks, of files and parity together, than there are parity blocks: flipped bits, lost files \
and folders, lost parity files. Small files share blocks. Names, modes, times, links, empty files \
and folders are protected, too. Links are not followed.

The root of a protection is the folder that is given, or the deepest folder that has all PATHs in \
it. Give `verify`, `repair` and `info` the root, or the folders of its parity if `protect` was \
given --parity-dir, alone or with the root; a protected file or folder, even one that is gone, \
stands for that part. Parity lies in `.paritas` in the root, or in the folders given with \
--parity-dir: give one for each disk; if a disk is lost, each parity block on the other disks \
still repairs one block. Names of parity files begin with LABEL. Other protections of the same \
files may have other labels.

Every byte is read once if the parity and some of the data fit into --memory; else at most twice, \
and a warning says so before anything is read. A file that cannot be read, or that changes while \
it is read, is not protected, and the exit code is 6; sockets, pipes and devices are only \
mentioned. `.paritas` folders are left out.

With --update, files whose size and time have not changed keep their parity; those whose ctime is \
new, as in a copied tree, are read and compared first. New and changed ones get parity of their own. \
What was removed or changed counts as lost, so that less other damage can be repaired; when that \
uses up too much parity, all parity is made anew. The old parity is kept until the new one is \
complete. If the bytes of a file have changed but not its time, and its ctime does not tell that it \
was written, it is damaged, and nothing is written (exit 5): repair it first. If more than half of \
the files or of the bytes are gone or changed, and at least 20 files, nothing is written (exit 1), \
because the old parity may be needed to repair them: --accept-changes updates nevertheless, and \
--most-changed sets another limit. A file that was renamed is not gone.")]
pub struct Protect {
    /// Files and folders to protect; with --update, as `verify` takes them.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The size of the parity, as a share of the files.
    ///
    /// From 0.1% to 1000%.
    #[arg(
        long,
        default_value = "10%",
        value_name = "PERCENT",
        conflicts_with = "update",
        allow_hyphen_values = true
    )]
    pub redundancy: Redundancy,
    /// Folders for the parity, one for each disk.
    ///
    /// They take parity files in turn, and must exist [default: `.paritas` in the root].
    #[arg(long, value_name = "DIR", conflicts_with = "update")]
    pub parity_dir: Vec<PathBuf>,
    /// Leave out what matches a pattern, as in gitignore.
    ///
    /// `*.tmp` and `cache` match anywhere; `/cache`, `./cache` or its whole path only in the root;
    /// `build/` only folders; `!keep.tmp` takes files in again. There is a warning if a pattern
    /// matches nothing.
    #[arg(long, value_name = "GLOB", conflicts_with = "update")]
    pub exclude: Vec<String>,
    /// Leave out folders at which another file system is mounted.
    #[arg(long, conflicts_with = "update", hide_short_help = true)]
    pub one_file_system: bool,
    /// The beginning of the names of the parity files.
    ///
    /// Without it, the name of the root, or of the only file. With --update, only the protection of
    /// this label.
    #[arg(long, value_name = "LABEL", hide_short_help = true)]
    pub name: Option<String>,
    /// Replace the protection of the same root and label.
    ///
    /// It is kept until the new one is complete.
    #[arg(long, conflicts_with = "update")]
    pub force: bool,
    /// Bring protections up to date after changes.
    #[arg(long)]
    pub update: bool,
    /// With --update, compare every file by its digest.
    ///
    /// Even if its size and time have not changed.
    #[arg(long, requires = "update", hide_short_help = true)]
    pub checksum: bool,
    /// With --update, the largest share that may be gone or changed.
    ///
    /// It counts protected files, and their bytes. If a larger share is gone or changed, and at
    /// least 20 files are, nothing is written (exit 1).
    #[arg(
        long,
        default_value = "50%",
        value_name = "PERCENT",
        requires = "update",
        allow_hyphen_values = true
    )]
    pub most_changed: Share,
    /// With --update, accept all that is gone or changed.
    #[arg(long, requires = "update", conflicts_with = "most_changed", hide_short_help = true)]
    pub accept_changes: bool,
    /// With --update, accept that any number of matching files is gone.
    ///
    /// GLOB is as in gitignore. It is for folders in which a program regularly removes files, such
    /// as `data/` in a repository of backups. Changed files still count.
    #[arg(long, value_name = "GLOB", requires = "update", hide_short_help = true)]
    pub accept_removals: Vec<String>,
    /// Say what would be written, and write nothing.
    ///
    /// The report tells how much space it takes, and which files have changed.
    #[arg(long)]
    pub dry_run: bool,
    /// List all files and parity files, not only the first.
    ///
    /// All that have changed, and everything that was skipped.
    #[arg(long, short, hide_short_help = true)]
    pub verbose: bool,
    #[command(flatten)]
    pub memory: Memory,
    #[command(flatten)]
    pub work: Work,
}

/// The option that limits memory.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Memory {
    /// The approximate memory for parity and data of protections.
    ///
    /// Without it, 1GiB, or a quarter of what the machine and its container leave if that is less.
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, hide_short_help = true)]
    pub memory: Option<u64>,
}

impl Memory {
    /// Returns the number of bytes.
    pub fn bytes(self) -> u64 {
        self.memory.unwrap_or_else(paritas_protect::default_memory)
    }
}

/// Reads a size of at least 1 MiB.
///
/// # Errors
/// If `text` is not a size, or a smaller one.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let size = text.parse::<ByteSize>().ok().map(|size| size.as_u64());
    size.filter(|&size| size >= LEAST_MEMORY)
        .ok_or_else(|| format!("must be a size of at least 1MiB, such as 512MiB; got `{text}`"))
}
