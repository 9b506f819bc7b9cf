//! Parts that the commands on shards share: finding objects and describing them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use paritas::Code;
use paritas_protect::has_parity;
use paritas_report::codes::ReceptionEntry;
use paritas_report::parts::{FileEntry, IdText, ObjectStateWord, SizedFileEntry};
use paritas_report::shard_parts::{FolderEntry, ShardEntry, ShardFileFields, ShardStateWord};
use paritas_report::shards::{ObjectFields, PlacementFields, UnrecognisedLine};
use paritas_shards::{
    AsideFile, FileReport, FolderShards, Ignored, Inventory, Object, Placement, ReceptionReport,
    ShardReport, ShardState, VerifyReport, Wreck, reception_key, scan_with,
};
use paritas_tune::RememberedFolder;
use walkdir::WalkDir;

use crate::commands::leftovers;
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Finds shards. Warns of leftovers, of given files that are not shards, and of files in folders
/// that cannot be opened or that have the ending of a shard without being one. Given paths that
/// cannot be read, and shards that this version cannot read, are left to the caller (see
/// [`not_read`]).
pub fn look(paths: &[PathBuf], output: &Output) -> Inventory {
    let inventory = scan_with(paths, paritas_tune::codec_options);
    leftovers::warn(&inventory.leftovers, output);
    let is_left = |ignored: &&Ignored| ignored.is_unread_path() || ignored.unknown;
    for ignored in inventory.ignored.iter().filter(|ignored| !is_left(ignored)) {
        let looks_like_one = ignored.path.extension() == Some(OsStr::new("paritas"));
        if ignored.named || looks_like_one || ignored.unreadable {
            output.warn(&format!("{} {}", shown(&ignored.path), shown(&ignored.reason)));
        }
    }
    inventory
}

/// Finds shards as [`look`] does, fails if there is no object, and warns of paths and shards that
/// cannot be read.
pub fn find(paths: &[PathBuf], output: &Output) -> Result<Inventory, Failure> {
    let inventory = look(paths, output);
    if inventory.objects.is_empty() {
        return Err(nothing_found(&inventory, paths, Below::ByName));
    }
    not_read(&inventory, None).for_each(|failure| output.warn(&failure.message));
    Ok(inventory)
}

/// Returns the failure for paths without any object. It says if files could not be opened, or if
/// this version cannot read shards.
pub fn nothing_found(inventory: &Inventory, paths: &[PathBuf], below: Below) -> Failure {
    inventory.obstacle().map_or_else(|| no_shards(paths, below), Failure::from)
}

/// What a message says about shards in deeper folders than a command searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// That `--recursive` finds them.
    Recursive,
    /// That the user must name their folder.
    ByName,
    /// Nothing, because the command has looked at all depths.
    Unsaid,
}

/// Returns the failure for paths without any object, with hints where to look.
pub fn no_shards(paths: &[PathBuf], below: Below) -> Failure {
    if let Some(path) = paths.iter().find(|path| has_parity(path)) {
        return Failure::not_recognised(format!(
            "{} has no shards but parity of protected files; `paritas repair` restores these files",
            shown(path)
        ));
    }
    let mut message =
        format!("there are no shards and no parity of protected files in {}", listed(paths));
    let deeper = paths.iter().filter(|_| below != Below::Unsaid).find_map(|path| deeper(path));
    if let Some(folder) = &deeper {
        message.push_str(&format!("; there are in {}: ", shown(folder)));
        message.push_str(match below {
            Below::Recursive => "--recursive looks into all folders below",
            _ => "name the folders that hold them",
        });
    }
    match paths.iter().find_map(|path| Some((path, protected_above(path)?))) {
        Some((path, folder)) => message.push_str(&about_parity_above(path, &folder)),
        None if deeper.is_none() => {
            message.push_str("; where parity is elsewhere, name its folder");
        }
        None => {}
    }
    Failure::not_recognised(message)
}

/// Returns the nearest folder above a path that has parity in it.
fn protected_above(path: &Path) -> Option<PathBuf> {
    let whole = path.canonicalize().ok()?;
    whole.ancestors().skip(1).find(|folder| has_parity(folder)).map(Path::to_owned)
}

/// Returns what a message says about a path without shards and the parity in a folder above it.
fn about_parity_above(path: &Path, folder: &Path) -> String {
    let is_found = |place: &Path| {
        paritas_protect::find(&[place.to_owned()]).is_ok_and(|found| !found.is_empty())
    };
    let above = shown(folder);
    match (is_found(path), is_found(folder)) {
        (true, _) => format!(
            "; the parity in {above} above it protects it, and `paritas repair` restores such files"
        ),
        (false, true) => format!("; the parity in {above} above it protects other files"),
        (false, false) => format!("; {above} above it has parity: name that folder"),
    }
}

/// Limits of the search for a hint: number of entries, and depth in folders.
const HINT: (usize, usize) = (10_000, 4);

/// Returns a folder below `path` with a file that has the ending of a shard, if one is found within
/// [`HINT`].
fn deeper(path: &Path) -> Option<PathBuf> {
    let (entries, depth) = HINT;
    let below =
        WalkDir::new(path).min_depth(2).max_depth(depth).into_iter().take(entries).flatten();
    let mut shards = below.filter(|entry| entry.path().extension() == Some(OsStr::new("paritas")));
    shards.next()?.path().parent().map(Path::to_owned)
}

/// Returns the paths as text, each once.
fn listed(paths: &[PathBuf]) -> String {
    let distinct: BTreeSet<PathBuf> =
        paths.iter().map(|path| path.components().collect()).collect();
    distinct.iter().map(|path| shown(path).to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns the failures for given paths that cannot be read or do not exist and, unless one object
/// is wanted, for shards that this version cannot read.
pub fn not_read(
    inventory: &Inventory,
    wanted: Option<&OsStr>,
) -> impl Iterator<Item = Failure> + use<> {
    let shards = if wanted.is_none() { inventory.unknown_shards() } else { None };
    inventory.unread_paths().into_iter().chain(shards).map(Failure::from)
}

/// Returns a warning for each shard that this version cannot read and whose file has the name of
/// the wanted object.
pub fn unknown_of(inventory: &Inventory, wanted: Option<&OsStr>) -> Vec<String> {
    let Some(wanted) = wanted else { return Vec::new() };
    let start = [wanted.as_encoded_bytes(), b"."].concat();
    let is_wanted = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(&start))
    };
    let unknown = inventory.ignored.iter().filter(|it| it.unknown && is_wanted(&it.path));
    unknown.map(|it| format!("{} {}", shown(&it.path), shown(&it.reason))).collect()
}

/// What to do about an object if too few of its shards were found.
pub const FIND_MORE: &str =
    "find more of its shards, and name all folders that have some, instead of single files";

/// Reports an object of which no shard can be read.
pub fn report_wreck(label: &str, wreck: &Wreck, output: &Output) {
    let line = UnrecognisedLine {
        name: (&wreck.name).into(),
        status: ObjectStateWord::Lost,
        files: file_entries(&wreck.files),
    };
    output.result(line, || {
        let files = wreck.files.iter().map(|path| format!("\n  {}", shown(path)));
        let head = format!("{label}: lost — beyond repair\n  {}", wreck_text(wreck));
        files.fold(head, |text, line| text + &line) + &format!("\n  next: {FIND_MORE}")
    });
}

/// Describes what is left of an object of which no shard can be read.
pub fn wreck_text(wreck: &Wreck) -> String {
    match wreck.files.len() {
        1 => {
            "the only file that has the name of one of its shards cannot be read as one".to_owned()
        }
        count => format!("{count} files have the names of its shards, and none can be read as one"),
    }
}

/// Returns the object that a command works on: the named one, or the only one. If no shard of the
/// named one can be read, it is lost.
pub fn choose<'a>(inventory: &'a Inventory, wanted: Option<&OsStr>) -> Result<&'a Object, Failure> {
    let wrecks = if wanted.is_some() { inventory.wrecks() } else { Vec::new() };
    if let Some(wreck) = wrecks.iter().find(|wreck| Some(wreck.name.as_os_str()) == wanted) {
        let message = format!("{}: {}", shown(&wreck.name), wreck_text(wreck));
        return Err(Failure { exit: Exit::Lost, message });
    }
    Ok(inventory.choose(wanted)?)
}

/// Returns the objects that a command works on: the named one, or all.
pub fn taken(inventory: Inventory, wanted: Option<&OsStr>) -> Result<Vec<Object>, Failure> {
    if wanted.is_none() {
        return Ok(inventory.objects);
    }
    let chosen = choose(&inventory, wanted)?;
    let place = inventory.objects.iter().position(|object| std::ptr::eq(object, chosen));
    Ok(inventory.objects.into_iter().skip(place.unwrap_or(0)).take(1).collect())
}

/// Returns the objects that a command works on beside protections. If `is_found`, a protection has
/// the name that is wanted, so there need be no such object.
pub fn taken_beside(
    inventory: Inventory,
    wanted: Option<&OsStr>,
    is_found: bool,
) -> Result<Vec<Object>, Failure> {
    match taken(inventory, wanted) {
        Err(failure) if is_found && failure.exit == Exit::NotRecognised => Ok(Vec::new()),
        taken => taken,
    }
}

/// Returns the fields of every line about an object.
pub fn fields(object: &Object) -> ObjectFields {
    ObjectFields {
        object: IdText::of(object.id()),
        name: object.name().into(),
        code: object.code().spec().to_string(),
        stage: object.stage(),
        stages: object.stages(),
        length: object.length(),
    }
}

/// Returns entries for the files at some paths.
pub fn file_entries<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Vec<FileEntry> {
    paths.into_iter().map(|path| FileEntry { path: path.into() }).collect()
}

/// Returns an entry for each file of a shard, or one that says that the shard is missing.
pub fn shard_entries(shards: &[ShardReport]) -> Vec<ShardEntry> {
    let mut entries = Vec::new();
    for shard in shards {
        if shard.files.is_empty() {
            let (index, stage) = (shard.index, Some(shard.stage));
            entries.push(ShardEntry { index, stage, state: word(shard.state), file: None });
        }
        entries.extend(shard.files.iter().map(file_entry));
    }
    entries
}

/// Returns the entry for a shard's file.
pub fn file_entry(file: &FileReport) -> ShardEntry {
    let state = match file.is_intact() {
        true => ShardState::Intact,
        false if file.unreadable => ShardState::Unreadable,
        false if file.inconsistent => ShardState::Inconsistent,
        false => ShardState::Damaged,
    };
    let fields = ShardFileFields {
        path: (&file.path).into(),
        bad_lanes: file.bad_lanes,
        first_bad_offset: file.first_bad,
        notes: file.flaws.clone(),
        misnamed: file.misnamed,
    };
    let (stage, state) = (Some(file.stage), word(state));
    ShardEntry { index: file.shard, stage, state, file: Some(fields) }
}

/// Returns the lines about a shard's files for people, those with something to report.
pub fn file_lines(files: &[FileReport]) -> impl Iterator<Item = String> + '_ {
    let has_its_name = files.iter().any(|file| file.is_intact() && !file.misnamed);
    let line = move |file: &FileReport| match file.is_intact() && file.misnamed && has_its_name {
        true => {
            let shard = paritas_shards::shard_name(file.shard, file.stage);
            Some(format!("  {shard}: one more intact copy, {}", shown(&file.path)))
        }
        false => file_line(file),
    };
    files.iter().filter_map(line)
}

/// Returns a line about a shard's file for people, unless there is nothing to report.
pub fn file_line(file: &FileReport) -> Option<String> {
    let (path, shard) = (shown(&file.path), paritas_shards::shard_name(file.shard, file.stage));
    if !file.is_intact() {
        return Some(format!("  {shard}: {path}: {}", file.flaws.join("; ")));
    }
    file.misnamed.then(|| format!("  {shard}: intact under another name, {path}"))
}

/// Returns the stage of an object for people. Returns `None` if its code has only one.
pub fn stage_note(object: &Object) -> Option<String> {
    let (stage, stages) = (object.stage(), object.stages());
    let later = (stage < stages).then(|| {
        let tolerance = counted(object.code().tolerance_at(stage + 1), "shard");
        format!("; after promote, any {tolerance} may be lost")
    });
    (stages > 1).then(|| format!("stage {stage} of {stages}{}", later.unwrap_or_default()))
}

/// Returns entries for the files that repair has moved aside.
pub fn aside_entries(files: &[AsideFile]) -> Vec<SizedFileEntry> {
    let entry = |file: &AsideFile| SizedFileEntry { path: (&file.path).into(), bytes: file.bytes };
    files.iter().map(entry).collect()
}

/// Describes the files that repair has moved aside. Returns `None` if there are none.
pub fn aside_text(object: &Object) -> Option<String> {
    let files = object.moved_aside();
    let bytes = output::bytes(files.iter().map(|file| file.bytes).sum());
    (!files.is_empty()).then(|| {
        format!(
            "{} that repair moved aside, {bytes}; `repair --remove-moved-aside` removes {}",
            counted(files.len(), "file"),
            if files.len() == 1 { "it" } else { "them" }
        )
    })
}

/// Returns the fields about which folders may be lost.
pub fn placement_fields(placement: &Placement) -> PlacementFields {
    let folder = |folder: &FolderShards| FolderEntry {
        path: (&folder.path).into(),
        shards: folder.shards.clone(),
    };
    PlacementFields {
        folders: placement.folders.iter().map(folder).collect(),
        folder_tolerance: placement.tolerance,
        folder_tolerance_certain: placement.is_certain,
        better_folder_tolerance: placement.better.as_ref().map(|better| better.tolerance),
        losable_folders: placement.losable.clone(),
    }
}

/// Returns a command on the folders of an object as a user types it: those that were given, and
/// those that hold its files, whatever state these are in. A given folder whose files are all in
/// folders below it is left out.
pub fn command(verb: &str, object: &Object, report: &VerifyReport) -> String {
    let files = || report.shards.iter().flat_map(|shard| &shard.files);
    let holds = |folder: &Path| files().any(|file| file.path.parent() == Some(folder));
    let folders = object.folders();
    let is_above =
        |folder: &Path| folders.iter().any(|other| other != folder && other.starts_with(folder));
    let wanted = folders.iter().map(PathBuf::as_path);
    command_over(verb, wanted.filter(|folder| holds(folder) || !is_above(folder)))
}

fn command_over<'p>(verb: &str, folders: impl Iterator<Item = &'p Path> + Clone) -> String {
    // A folder that does not exist was found only by `--recursive`, so the command needs this, too.
    match folders.clone().all(|folder| folder.as_os_str().is_empty() || folder.exists()) {
        true => {
            let folders: Vec<String> = folders.map(output::shell_path).collect();
            format!("`paritas {verb} {}`", folders.join(" "))
        }
        false => {
            let (verb, more) = verb.split_once(' ').unwrap_or((verb, ""));
            let verb = format!("{verb} --recursive {more}");
            format!("`paritas {}` over the same folders", verb.trim_end())
        }
    }
}

/// Describes the command that would let more folders be lost. Returns `None` if none would.
pub fn better_text(placement: &Placement) -> Option<String> {
    let better = placement.better.as_ref()?;
    let command = command_over("repair --rebalance", better.folders.iter().map(PathBuf::as_path));
    let tolerance = better.tolerance_text();
    Some(format!("{command} would let {tolerance} of {} folders be lost", better.folders.len()))
}

/// Describes which folders may be lost. Returns `None` if all shards lie in one.
pub fn placement_text(placement: &Placement) -> Option<String> {
    let count = placement.folders.len();
    if count < 2 {
        return None;
    }
    let path = |&index: &usize| shown(&placement.folders[index].path).to_string();
    let sets = placement.losable.iter().flatten().filter(|set| set.len() > placement.tolerance);
    let sets: Vec<String> =
        sets.map(|set| set_text(&set.iter().map(path).collect::<Vec<_>>())).collect();
    let any = format!("{} of {count} folders may be lost", placement.tolerance_text());
    Some(match (placement.tolerance, sets.is_empty()) {
        (_, true) => any,
        (0, false) => format!("no folder may be lost, except {}", sets.join(", or ")),
        (_, false) => format!("{any}; also {}", sets.join(", or ")),
    })
}

fn set_text(folders: &[String]) -> String {
    match folders {
        [alone] => format!("{alone} alone"),
        several => several.join(" with "),
    }
}

/// Returns the word for a state in lines.
pub fn word(state: ShardState) -> ShardStateWord {
    match state {
        ShardState::Intact => ShardStateWord::Intact,
        ShardState::Damaged => ShardStateWord::Damaged,
        ShardState::Missing => ShardStateWord::Missing,
        ShardState::Unreadable => ShardStateWord::Unreadable,
        ShardState::Inconsistent => ShardStateWord::Inconsistent,
    }
}

/// Describes which losses of a code's nodes are tolerable. `nodes` is the word for nodes.
pub fn tolerance_text(code: &Code, (tolerable, count): (usize, usize), nodes: &str) -> String {
    match code.graph() {
        Some(graph) if graph.blocks() == graph.data() => "every block is needed".to_owned(),
        Some(graph) => {
            format!("somewhat more than any {} are enough", counted(graph.data(), "block"))
        }
        None => format!("any {tolerable} of {count} {nodes} may be lost"),
    }
}

/// Returns how many blocks of `shards` decoding an LT code takes: the remembered result or, if
/// there is none, a simulated one, which is then remembered. Returns `None` for other codes.
pub fn reception(code: &Code, shards: &[usize]) -> Result<Option<ReceptionReport>, Failure> {
    let Some(key) = reception_key(code, shards) else { return Ok(None) };
    let (name, memory) = (format!("reception/{key}"), RememberedFolder::of_user());
    if let Some(known) = memory.as_ref().and_then(|memory| memory.recall(&name)) {
        return Ok(Some(known));
    }
    let report = paritas_shards::reception(code, shards)?;
    if let (Some(memory), Some(report)) = (memory, &report) {
        // If it cannot be remembered, it is simulated again next time.
        let _ = memory.remember(&name, report);
    }
    Ok(report)
}

/// Returns the entry for the result of a simulation.
pub fn reception_entry(report: &ReceptionReport) -> ReceptionEntry {
    let ReceptionReport { blocks, average, p999, runs, failures, .. } = *report;
    ReceptionEntry { blocks, average, p999, runs, failures }
}

/// Returns the result of a simulation in a line for people.
pub fn reception_text(report: &ReceptionReport) -> String {
    let ReceptionReport { blocks, average, p999, runs, failures, .. } = report;
    let Some(average) = average else {
        return format!("all {blocks} blocks together are not enough");
    };
    let p999 = p999.map_or("more than there are".to_owned(), |p999| format!("{p999:.3} k"));
    let share = if *runs < 1000 { "all" } else { "99.9 %" };
    let failed = match failures {
        0 => String::new(),
        _ => format!(", {failures} without success"),
    };
    format!(
        "of {blocks} blocks in random order {average:.3} k are enough on average, {p999} in {share} of \
         {runs} simulations{failed}"
    )
}
