//! Protections: finding them among the paths of a command, and parts that several reports share.

pub mod info;
pub mod kinds;
pub mod repair;
pub mod verify;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use paritas_protect::{
    DiskNeed, ErrorKind, IsWanted, Other, Protection, Skipped, StreamGeometry, find, find_among,
    has_parity, holds_parity, is_list_of_restored, parity_at,
};
use paritas_report::parts::IdText;
use paritas_report::protections::{DiskEntry, ProtectedLayerEntry, ProtectionFields, SkippedEntry};
use paritas_shards::scan_with;
use paritas_store::memory::usable;

use crate::args::protect::Memory;
use crate::args::shards::Search;
use crate::commands::places::folders_below;
use crate::commands::shards::file_entries;
use crate::exit::Failure;
use crate::output::{self, Output, counted, shown};

/// Number of lines about single files in a report that is not verbose.
const FEW: usize = 12;
/// Smallest number of digits of an id that name a protection.
const SHORTEST_ID: usize = 4;

/// The protections among some paths.
#[derive(Debug, Default)]
pub struct Found {
    pub protections: Vec<Protection>,
    /// The paths that belong to no protection, and may have shards.
    pub others: Vec<PathBuf>,
    /// The paths that belong to no protection, and why.
    refused: Vec<Other>,
    /// Failures to report: unusable parity, and paths that belong to no protection.
    pub failures: Vec<Failure>,
}

/// Finds the protections at the paths of `search` and, with `--recursive`, below them.
pub fn search(search: &Search) -> Result<Found, Failure> {
    let mut found = among(&search.paths, search.object.as_deref())?;
    if search.recursive {
        let given: HashSet<PathBuf> = search.paths.iter().flat_map(fs::canonicalize).collect();
        for root in &search.paths {
            let folders = folders_below(root, &given).map(|below| root.join(below));
            folders.filter(|folder| has_parity(folder)).for_each(|folder| found.add(&folder));
        }
    }
    Ok(found)
}

/// Finds the protections at some paths. A path may be a root, a file or folder in it, or parity. A
/// path with shards belongs to a protection only if it is the root or has parity.
pub fn among(paths: &[PathBuf], wanted: Option<&OsStr>) -> Result<Found, Failure> {
    let paths = &without_lists(paths);
    let mut found = Found::default();
    found.find_all(paths, None);
    let of_shards = found.parts_of_shards(paths);
    let paths: Vec<PathBuf> =
        paths.iter().filter(|path| !of_shards.contains(path)).cloned().collect();
    if !of_shards.is_empty() {
        found = Found::default();
        found.find_all(&paths, None);
    }
    let homes: Vec<PathBuf> = paths.iter().filter(|path| found.is_home(path)).cloned().collect();
    let lost = homes.iter().filter(|home| !found.covers(home) && !found.refuses(home));
    let lost: Vec<Failure> = lost.filter_map(|home| cause(home)).collect();
    found.failures.extend(lost);
    match wanted {
        // If one protection is named, unusable others do not matter.
        Some(wanted) => found.choose(&paths, wanted)?,
        None => found.add_unusable(&homes),
    }
    found.sort_refused();
    found.others.extend(of_shards);
    Ok(found)
}

/// Returns the paths that stand for protections. A pattern of the shell for all parity files also
/// takes the list of restored files that lies beside them.
fn without_lists(paths: &[PathBuf]) -> Vec<PathBuf> {
    let (beside, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().cloned().partition(|path| is_list_of_restored(path));
    if paths.is_empty() { beside } else { paths }
}

/// Warns of a root and of folders for parity that do not exist.
pub fn warn_of_absent(protection: &Protection, output: &Output) {
    if !protection.root().exists() {
        output.warn(&format!(
            "the protected folder {} does not exist; is its disk mounted? All that was in it counts \
             as missing. If it was moved, give its new place together with the folder of the parity",
            shown(protection.root())
        ));
    }
    for folder in protection.absent_folders() {
        output.warn(&format!(
            "the folder {} for parity of {} does not exist; is its disk mounted? Its parity files \
             count as missing, and new ones go to the other folders",
            shown(&folder),
            title(protection)
        ));
    }
}

/// Warns of what a killed command was still writing beside the parity, or had not named yet.
pub fn warn_of_unfinished(protection: &Protection, output: &Output) {
    if let Some(unnamed) = protection.unnamed().next() {
        output.warn(&format!(
            "{}: {} has a temporary name, because the command that wrote it was interrupted; {} \
             gives all such files their names",
            title(protection),
            shown(unnamed),
            command("repair", protection)
        ));
    }
    let unfinished = protection.unfinished();
    let Some(folder) = unfinished.first().and_then(|path| path.parent()) else { return };
    let them = if unfinished.len() == 1 { "it" } else { "them" };
    output.warn(&format!(
        "{}: {} of parity in {}: the command that wrote {them} was interrupted; {} removes {them}",
        title(protection),
        counted(unfinished.len() as u64, "unfinished file"),
        shown(folder),
        command("repair --clean", protection)
    ));
}

/// Warns if more memory is asked for than this process may use.
pub fn warn_of_memory(memory: Memory, output: &Output) {
    if let (Some(asked), Some(usable)) = (memory.memory, usable())
        && asked > usable
    {
        output.warn(&format!(
            "--memory {} is more than the {} that this process may use; the system may end it",
            output::bytes(asked),
            output::bytes(usable)
        ));
    }
}

impl Found {
    /// Takes the protections that are found at `paths` together, and the paths that belong to none.
    fn find_all(&mut self, paths: &[PathBuf], is_wanted: Option<IsWanted<'_>>) {
        match find_among(paths, is_wanted) {
            Ok((protections, others)) => {
                self.protections = protections;
                self.refused = others;
            }
            // `among` searches each path with parity again, alone, and reports what is wrong there.
            Err(error) if error.kind() == ErrorKind::NotRecognised => {}
            Err(error) => self.failures.push(error.into()),
        }
    }

    /// Returns the paths that would be parts of protections but hold shards.
    fn parts_of_shards(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let refused: HashSet<&PathBuf> = self.refused.iter().map(|other| &other.path).collect();
        let is_root = |path: &PathBuf| {
            let whole = path.canonicalize().ok();
            whole.is_some_and(|whole| self.protections.iter().any(|one| one.root() == whole))
        };
        let paths = paths.iter().filter(|path| !refused.contains(path));
        let parts = paths.filter(|path| !has_parity(path) && !is_root(path));
        let parts = parts.filter(|_| !self.protections.is_empty());
        parts.filter(|path| holds_shards(path)).cloned().collect()
    }

    /// Sorts the paths that belong to no protection: those that may have shards go to `others`; for
    /// the rest, a failure says why they belong to none.
    fn sort_refused(&mut self) {
        for Other { path, error, .. } in std::mem::take(&mut self.refused) {
            match error {
                Some(error) if !holds_shards(&path) => {
                    let hint = match error.kind() {
                        ErrorKind::Parameters => ", or choose one with --object",
                        _ => "",
                    };
                    let failure = Failure::from(error);
                    let message = failure.message + hint;
                    self.failures.push(Failure { message, ..failure });
                }
                _ => self.others.push(path),
            }
        }
    }

    fn push(&mut self, protection: Protection) {
        if !self.has(&protection) {
            self.protections.push(protection);
        }
    }

    /// Whether a protection was found already. Copies of a root have the same id.
    fn has(&self, one: &Protection) -> bool {
        let is_same = |other: &Protection| other.id() == one.id() && other.root() == one.root();
        self.protections.iter().any(is_same)
    }

    /// Adds the protections of one more folder that has parity.
    fn add(&mut self, folder: &Path) {
        match find(&[folder.to_owned()]) {
            Ok(protections) => {
                protections.into_iter().for_each(|one| self.push(one));
                self.add_unusable(&[folder.to_owned()]);
            }
            Err(error) => self.failures.push(error.into()),
        }
    }

    /// Adds failures for protections that cannot be used and whose parity is at `homes`, beside
    /// parity of found protections.
    fn add_unusable(&mut self, homes: &[PathBuf]) {
        let homes: Vec<PathBuf> = homes.iter().filter(|home| self.covers(home)).cloned().collect();
        let mut unknown = parity_at(&homes).unwrap_or_default();
        let used = parity_of(&self.protections);
        unknown.values_mut().for_each(|files| files.retain(|file| !used.contains(file)));
        // Parity of usable protections whose roots were not asked for is not reported.
        let folders: HashSet<&Path> = unknown.values().flatten().flat_map(|f| f.parent()).collect();
        let others = folders.into_iter().flat_map(|folder| find(&[folder.to_owned()]));
        let usable = parity_of(&others.flatten().collect::<Vec<_>>());
        for (id, files) in &mut unknown {
            files.retain(|file| !usable.contains(file));
            let Some(first) = files.first() else { continue };
            self.failures.push(Failure::not_recognised(format!(
                "{}: the protection {id} cannot be used: too little is left of its catalogue in {}",
                shown(first.parent().unwrap_or(first)),
                counted(files.len() as u64, "parity file"),
            )));
        }
    }

    /// Whether a path is or holds parity of any found protection.
    fn covers(&self, path: &Path) -> bool {
        let Ok(whole) = path.canonicalize() else { return false };
        let parity = self.protections.iter().flat_map(Protection::parity_files);
        parity.into_iter().any(|file| file.starts_with(&whole))
    }

    /// Whether a path holds parity that must be reported. Parity files that have lost their names
    /// are looked for only if nothing else is known of the path.
    fn is_home(&self, path: &Path) -> bool {
        let is_known = |whole: PathBuf| {
            let mut roots = self.protections.iter().map(Protection::root);
            roots.any(|root| whole.starts_with(root) || root.starts_with(&whole))
        };
        let is_known = || self.refuses(path) || path.canonicalize().map_or(true, is_known);
        has_parity(path) || !is_known() && holds_parity(path)
    }

    /// Whether it is known why a path belongs to no protection.
    fn refuses(&self, path: &Path) -> bool {
        self.refused.iter().any(|other| other.path == path)
    }

    /// Keeps only the wanted protection. A path that may belong to several belongs to this one.
    fn choose(&mut self, paths: &[PathBuf], wanted: &OsStr) -> Result<(), Failure> {
        if self.protections.is_empty() && self.refused.is_empty() {
            return Ok(());
        }
        let mut chosen = Self::default();
        chosen.find_all(paths, Some(&|one| is_named(one, wanted)));
        let refused: HashSet<&PathBuf> = chosen.refused.iter().map(|other| &other.path).collect();
        self.refused.retain(|other| refused.contains(&other.path));
        let had_some = !self.protections.is_empty();
        self.protections = chosen.protections;
        match self.protections.is_empty() && self.refused.is_empty() && had_some {
            false => Ok(()),
            true => Err(Failure::not_recognised(format!(
                "there is no protection {} here",
                shown(wanted)
            ))),
        }
    }
}

/// Returns the parity files of some protections.
fn parity_of(protections: &[Protection]) -> HashSet<PathBuf> {
    protections.iter().flat_map(Protection::parity_files).map(Path::to_owned).collect()
}

/// Returns the failure of finding a protection at `home`, if it fails.
fn cause(home: &Path) -> Option<Failure> {
    find(&[home.to_owned()]).err().map(Failure::from)
}

/// Whether `wanted` is a protection's label, or the beginning of its id.
fn is_named(protection: &Protection, wanted: &OsStr) -> bool {
    let text = wanted.to_string_lossy();
    let by_id = text.len() >= SHORTEST_ID && protection.id().to_string().starts_with(&*text);
    by_id || protection.label() == text
}

fn holds_shards(path: &Path) -> bool {
    !scan_with(&[path.to_owned()], paritas_tune::codec_options).objects.is_empty()
}

/// The first given option that is only for shards, and the first that is only for protections.
#[derive(Debug)]
pub struct Limited {
    for_shards: Option<&'static str>,
    for_protections: Option<&'static str>,
}

impl Limited {
    /// Takes names of options, each with whether it was given.
    pub fn new(
        for_shards: impl IntoIterator<Item = (&'static str, bool)>,
        for_protections: impl IntoIterator<Item = (&'static str, bool)>,
    ) -> Self {
        let for_shards = given(for_shards);
        Self { for_shards, for_protections: given(for_protections) }
    }

    /// Refuses options that do not apply to what was found. Where a whole tree is searched, there
    /// may be both.
    pub fn expect(&self, found: &Found, recursive: bool) -> Result<(), Failure> {
        if let (Some(option), Some(one), false) =
            (self.for_shards, found.protections.first(), recursive)
        {
            return Err(Failure::arguments(format!(
                "{option} is for shards; {} is a protection",
                title(one)
            )));
        }
        if let (Some(option), Some(path)) = (self.for_protections, found.others.first())
            && (!recursive || found.protections.is_empty())
        {
            return Err(Failure::arguments(format!(
                "{option} is for protected files; {} has no parity that `paritas protect` made",
                shown(path)
            )));
        }
        Ok(())
    }
}

fn given(options: impl IntoIterator<Item = (&'static str, bool)>) -> Option<&'static str> {
    options.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

/// Returns the name of a protection in reports: its root, and its label unless that is the root's
/// name; and the part that was asked for, if it is not all.
pub fn title(protection: &Protection) -> String {
    let (root, label) = (protection.root(), protection.label());
    let mut title = match root.file_name().is_some_and(|name| name.to_string_lossy() == label) {
        true => shown(root).to_string(),
        false => format!("{} ({})", shown(root), shown(&label)),
    };
    let mut parts = protection.parts();
    if let Some(first) = parts.next() {
        title.push_str(&format!(": part {}", shown(&first)));
        match parts.count() {
            0 => {}
            more => title.push_str(&format!(" and {more} more")),
        }
    }
    title
}

/// Returns a command on a protection as a user types it: with its root, and with the folders of its
/// parity if the root does not lead to them.
pub fn command(verb: &str, protection: &Protection) -> String {
    let parity = lies_elsewhere(protection).then(|| protection.parity_folders());
    let folders = parity.unwrap_or_default();
    let folders = std::iter::once(protection.root()).chain(folders.iter().map(PathBuf::as_path));
    let folders: Vec<String> = folders.map(output::shell_path).collect();
    format!("`paritas {verb} {}`", folders.join(" "))
}

/// Whether all parity is outside the root's `.paritas` folder.
fn lies_elsewhere(protection: &Protection) -> bool {
    let inner = protection.root().join(paritas_protect::FOLDER);
    !protection.parity_files().any(|file| file.starts_with(&inner))
}

/// Returns the fields of every line about a protection.
pub fn fields(protection: &Protection) -> ProtectionFields {
    let parts: Vec<PathBuf> = protection.parts().map(|part| protection.root().join(part)).collect();
    ProtectionFields {
        id: IdText::of(protection.id()),
        label: protection.label().to_string(),
        root: protection.root().into(),
        parts: file_entries(&parts),
        files: protection.files(),
        bytes: protection.bytes(),
    }
}

/// Returns entries for skipped paths.
pub fn skipped_entries(skipped: &[Skipped]) -> Vec<SkippedEntry> {
    let entry = |Skipped { path, reason, .. }: &Skipped| SkippedEntry {
        path: path.into(),
        reason: reason.clone(),
    };
    skipped.iter().map(entry).collect()
}

/// Returns the entry for the blocks of a layer.
pub fn layer_entry(geometry: &StreamGeometry) -> ProtectedLayerEntry {
    let StreamGeometry { block, data, parity, .. } = *geometry;
    ProtectedLayerEntry { data_blocks: data, parity_blocks: parity, block_bytes: block }
}

/// Returns a path relative to a root, for texts. A path that is not below the root stays whole.
pub fn below(root: &Path, path: &Path) -> String {
    let inner = path.strip_prefix(root).ok().filter(|inner| !inner.as_os_str().is_empty());
    shown(inner.unwrap_or(path)).to_string()
}

/// Adds lines to a text: all of them, or the first [`FEW`] and the number of the others.
pub fn add_lines(text: &mut String, lines: &[String], verbose: bool) {
    // A single line more is shown itself, not counted.
    let shown = if verbose || lines.len() <= FEW + 1 { lines.len() } else { FEW };
    lines[..shown].iter().for_each(|line| text.push_str(&format!("\n  {line}")));
    if shown < lines.len() {
        let more = lines.len() - shown;
        text.push_str(&format!("\n  …        and {more} more; --verbose lists all"));
    }
}

/// Returns a part of a whole in percent.
pub fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Adds to a text how much would be written to each disk.
pub fn add_disks(text: &mut String, disks: &[DiskNeed]) {
    for DiskNeed { folder, bytes, free } in disks {
        let free = match free.map(|free| (free < *bytes, output::bytes(free))) {
            None => String::new(),
            Some((true, free)) => format!("; only {free} are free, so this does not fit"),
            Some((false, free)) => format!("; {free} are free"),
        };
        text.push_str(&format!(
            "\n  disk     {} to the disk of {}{free}",
            output::bytes(*bytes),
            output::shell_path(folder)
        ));
    }
}

/// Returns entries for how much would be written to each disk.
pub fn disk_entries(disks: &[DiskNeed]) -> Vec<DiskEntry> {
    let entry = |&DiskNeed { ref folder, bytes, free, .. }: &DiskNeed| DiskEntry {
        path: folder.into(),
        bytes,
        free,
    };
    disks.iter().map(entry).collect()
}
