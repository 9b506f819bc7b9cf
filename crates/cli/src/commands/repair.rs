//! `paritas repair`: writes missing and damaged shards anew, and restores protected files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use paritas_protect::Protection;
use paritas_report::parts::{MovedFileEntry, ObjectStateWord};
use paritas_report::shard_parts::{
    DigestCheckWord, MovedShardEntry, PartEntry, RewrittenShardEntry,
};
use paritas_report::shards::RepairLine;
use paritas_shards::{
    AsideFile, DigestCheck, Leftover, MovedAside, MovedShard, Object, RebalanceReport, RepairJob,
    RepairReport, RepairedShard, ShardState, rebalance, repair, scan_with, shard_name,
};

use crate::args::shards::Repair;
use crate::commands::leftovers::Standing;
use crate::commands::many::{self, Handle};
use crate::commands::protections::{Limited, warn_of_memory};
use crate::commands::{Outcome, leftovers, protections, shards};
use crate::exit::{self, Failure};
use crate::output::{self, Output, Progress, counted, shown};

/// Repairs all objects and protections, each as far as possible. Returns the worst exit code.
pub fn run(args: &Repair, output: &Output) -> Outcome {
    args.to.iter().try_for_each(|to| exit::require_folder("--to", to))?;
    expect_one_folder(args)?;
    warn_of_memory(args.memory, output);
    many::each_found(&args.search, output, &Job { args, output })
}

struct Job<'a> {
    args: &'a Repair,
    output: &'a Output,
}

impl Handle for Job<'_> {
    fn limited(&self) -> Limited {
        let args = self.args;
        let for_shards = [
            ("--fewest-reads", args.fewest_reads),
            ("--rebalance", args.rebalance),
            ("--remove-moved-aside", args.remove_moved_aside),
        ];
        let for_protections = [
            ("--restore-changed", args.restore_changed),
            ("--move-back", args.move_back),
            ("--dry-run", args.dry_run),
            ("--memory", args.memory.memory.is_some()),
        ];
        Limited::new(for_shards, for_protections)
    }

    fn expect(&self, others: &[PathBuf]) -> Result<(), Failure> {
        match self.args.search.paths.len() {
            1 => Ok(()),
            _ => others.iter().try_for_each(|path| expect_there(path)),
        }
    }

    fn object(&self, object: &Object, label: &str) -> Result<ObjectStateWord, Failure> {
        one(object, label, self.args, self.output)
    }

    fn protection(&self, protection: &Protection) -> Result<ObjectStateWord, Failure> {
        protections::repair::run(protection, self.args, self.output)
    }

    fn clean(&self, leftovers: &[Leftover], standing: &Standing) -> Result<usize, Failure> {
        match self.args.clean {
            // Without verification, a copy that was left behind may be the only good one.
            true if self.args.fewest_reads => {
                leftovers::clean(leftovers, &Standing::default(), self.output)
            }
            true => leftovers::clean(leftovers, standing, self.output),
            false => Ok(0),
        }
    }
}

/// Refuses `--to` with `--recursive`, which would mix the shards of different folders.
fn expect_one_folder(args: &Repair) -> Result<(), Failure> {
    match args.to.as_deref().filter(|_| args.search.recursive) {
        None => Ok(()),
        Some(to) => Err(Failure::arguments(format!(
            "--to {to} with --recursive would put the shards of different folders into one: give \
             {to} as one more PATH, and shards go to the same path below it",
            to = shown(to)
        ))),
    }
}

/// Refuses one of several paths if it does not exist: perhaps its disk only has to be mounted, and
/// its shards would be written to the other disks.
fn expect_there(path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::arguments(format!(
            "{}: there is no such file or folder; if it is on a disk, that may not be mounted; to \
             repair without it, leave it out",
            shown(path)
        ))),
        _ => Ok(()),
    }
}

fn one(
    object: &Object,
    label: &str,
    args: &Repair,
    output: &Output,
) -> Result<ObjectStateWord, Failure> {
    let job = RepairJob::default()
        .to(args.to.clone())
        .sync(args.work.is_synced())
        .threads(args.work.threads.most())
        .fewest_reads(args.fewest_reads);
    // Every byte counts twice: it is verified, and read again to write shards.
    let progress = output.progress(object.length().map(|length| 2 * length));
    let mut report = repair(object, &job, &|bytes| progress.advance(bytes))?;
    let is_whole = report.unreadable().next().is_none();
    let mut tidied = Tidied::default();
    let tidying = if is_whole { tidied.tidy(object, args, &progress) } else { Ok(()) };
    let seconds = progress.finish();
    if let Some(balanced) = &tidied.balanced {
        report.placement = balanced.placement.clone();
        let is_changed = !report.repaired.is_empty() || !balanced.moved.is_empty();
        report.warnings = if is_changed { balanced.warnings.clone() } else { Vec::new() };
    }
    report.warnings.extend(tidied.warning());
    report.warnings.iter().for_each(|warning| output.warn(warning));
    let is_untouched = report.repaired.is_empty() && tidied.is_nothing();
    let state = match is_untouched && is_whole {
        true => ObjectStateWord::Intact,
        false => ObjectStateWord::Repaired,
    };
    if args.search.reports(state) {
        let text = || text(label, &report, &tidied);
        output.result(line(object, &report, &tidied, seconds), text);
    }
    tidying?;
    report.expect_all_read(object)?;
    Ok(state)
}

/// The work that was done once the object was whole.
#[derive(Default)]
struct Tidied {
    balanced: Option<RebalanceReport>,
    /// Files that repair had moved aside.
    moved_aside: Vec<AsideFile>,
    /// Files of `moved_aside` that were removed.
    removed: Vec<AsideFile>,
}

impl Tidied {
    fn moved(&self) -> &[MovedShard] {
        self.balanced.as_ref().map_or(&[], |balanced| &balanced.moved)
    }

    fn is_nothing(&self) -> bool {
        self.moved().is_empty() && self.removed.is_empty()
    }

    /// Moves shards, and removes files that were moved aside, if that is asked for. Scans again,
    /// because repair has changed the folders.
    fn tidy(&mut self, object: &Object, args: &Repair, progress: &Progress) -> Result<(), Failure> {
        if !args.rebalance && !args.remove_moved_aside {
            return Ok(());
        }
        let paths: Vec<PathBuf> = object.folders().into_iter().chain(args.to.clone()).collect();
        let mut inventory = scan_with(&paths, paritas_tune::codec_options);
        inventory.offer(&paths);
        let id = object.id().to_string();
        let object = inventory.choose(Some(id.as_ref()))?;
        if args.remove_moved_aside {
            self.moved_aside = object.moved_aside().to_vec();
            self.removed = object.remove_moved_aside()?;
        }
        if args.rebalance {
            let advance = |bytes| progress.advance(bytes);
            let (to, threads) = (args.to.as_deref(), args.work.threads.most());
            self.balanced = Some(rebalance(object, to, threads, &advance)?);
        }
        Ok(())
    }

    /// Returns a warning about files that should have been removed but stay.
    fn warning(&self) -> Option<String> {
        let kept = self.moved_aside.iter().filter(|file| !self.removed.contains(file));
        let kept: Vec<String> = kept.map(|file| shown(&file.path).to_string()).collect();
        (!kept.is_empty()).then(|| {
            format!(
                "files that repair moved aside have changed since, so they stay: {}",
                kept.join(", ")
            )
        })
    }
}

fn line(object: &Object, report: &RepairReport, tidied: &Tidied, seconds: f64) -> RepairLine {
    let unreadable =
        report.unreadable().map(|shard| PartEntry { index: shard.index, stage: shard.stage });
    RepairLine {
        object: shards::fields(object),
        seconds,
        read_bytes: report.read_bytes,
        digest_check: match report.digest {
            DigestCheck::Right => DigestCheckWord::Right,
            DigestCheck::Wrong => DigestCheckWord::Wrong,
            DigestCheck::Unchecked => DigestCheckWord::Unchecked,
        },
        repaired: report.repaired.iter().map(repaired).collect(),
        moved_aside: report.moved_aside.iter().map(moved_aside).collect(),
        removed: shards::aside_entries(&tidied.removed),
        moved: tidied.moved().iter().map(moved).collect(),
        placement: shards::placement_fields(&report.placement),
        warnings: report.warnings.clone(),
        unreadable: unreadable.collect(),
    }
}

fn repaired(shard: &RepairedShard) -> RewrittenShardEntry {
    let part = PartEntry { index: shard.shard, stage: shard.stage };
    RewrittenShardEntry { part, was: shards::word(shard.was), path: (&shard.path).into() }
}

fn moved_aside(moved: &MovedAside) -> MovedFileEntry {
    MovedFileEntry { path: (&moved.to).into(), from: (&moved.from).into() }
}

fn moved(shard: &MovedShard) -> MovedShardEntry {
    let part = PartEntry { index: shard.shard, stage: shard.stage };
    MovedShardEntry { part, path: (&shard.path).into(), from: (&shard.from).into() }
}

fn text(label: &str, report: &RepairReport, tidied: &Tidied) -> String {
    let is_intact = report.repaired.is_empty() && report.unreadable().next().is_none();
    let mut text = match (is_intact, tidied.moved().len()) {
        (true, 0) => format!("{label}: intact, nothing to repair"),
        (true, moved) => format!("{label}: intact; {} moved", counted(moved, "shard")),
        (false, _) => format!("{label}: {} written", counted(report.repaired.len(), "shard")),
    };
    for shard in &report.repaired {
        let name = shard_name(shard.shard, shard.stage);
        let path = shown(&shard.path);
        let was = match shard.was {
            ShardState::Intact => "not under its name",
            state => state.name(),
        };
        text.push_str(&format!("\n  {name} was {was}: {path}"));
    }
    for moved in &report.moved_aside {
        let (from, to) = (shown(&moved.from), shown(&moved.to));
        text.push_str(&format!("\n  {from} was not a shard and is kept as {to}"));
    }
    for removed in &tidied.removed {
        let (path, bytes) = (shown(&removed.path), output::bytes(removed.bytes));
        text.push_str(&format!("\n  {path} was removed, {bytes}"));
    }
    for moved in tidied.moved() {
        let name = shard_name(moved.shard, moved.stage);
        let (from, path) = (shown(&moved.from), shown(&moved.path));
        text.push_str(&format!("\n  {name} has moved from {from} to {path}"));
    }
    let placement = shards::placement_text(&report.placement).filter(|_| text.contains('\n'));
    text.extend(placement.map(|note| format!("\n  {note}")));
    text.extend(shards::better_text(&report.placement).map(|note| format!("\n  {note}")));
    text
}
