//! `paritas volume put` and `get` of trees.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use paritas_volume::{ErrorKind, Listed, ObjectName, Overview, Volume};
use walkdir::WalkDir;

use super::{AT_ONCE, each, folder_prefix, object, report};
use crate::args::volume::{Get, Put};
use crate::commands::Outcome;
use crate::commands::many::Worst;
use crate::exit::{self, Exit, Failure};
use crate::output::{Output, Progress, shell_name, shown};

/// Largest number of bytes of an object that is handled side by side with others. Each may take as
/// much memory as the volume file allows for a put or a get.
const SMALL: u64 = 1 << 20;

/// A file and the object that it is stored as.
struct TreeItem {
    path: PathBuf,
    name: ObjectName,
    length: u64,
}

/// Stores all files below a folder.
pub async fn put(volume: &Volume, args: &Put, output: &Output) -> Outcome {
    exit::require_folder("DIR", &args.file)?;
    let prefix = folder_prefix(&args.name);
    let nodes = volume.node_folders();
    let (items, mut worst) = files(&args.file, &prefix, &nodes, output);
    if items.is_empty() {
        output.warn(&format!("{} has no files that can be stored", shown(&args.file)));
    }
    let progress = Arc::new(progress(&items, output));
    // Without an overview, each put asks all nodes, and says what is wrong.
    let overview = volume.overview_to_put(&prefix, items.len()).await.map(Arc::new);
    let put = async |item: TreeItem| {
        let source = object::open_source(args, &item.path, &item.name)?;
        let mut options = object::put_options(args, &progress)?;
        options.overview.clone_from(&overview);
        object::put_source(volume, args, source, &item.name, options, &progress, output).await
    };
    all(items, &mut worst, output, put).await;
    worst.end(output)
}

/// Returns the files below a folder, in order, and the worst failure. Leaves out the folders of
/// `nodes`: a node inside would be stored in itself.
fn files(
    folder: &Path,
    prefix: &str,
    nodes: &[PathBuf],
    output: &Output,
) -> (Vec<TreeItem>, Worst) {
    let (mut items, mut worst) = (Vec::new(), Worst::default());
    let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let is_stored = |path: &Path| {
        let resolved = root.join(path.strip_prefix(folder).unwrap_or(path));
        let is_node = nodes.iter().any(|node| resolved.starts_with(node));
        if is_node {
            output.warn(&format!("{} is a node of the volume, so it is not stored", shown(path)));
        }
        !is_node
    };
    if !is_stored(folder) {
        return (items, worst);
    }
    let walk = WalkDir::new(folder).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| is_stored(entry.path())) {
        let item = entry.map_err(unreadable).and_then(|entry| item(folder, prefix, &entry, output));
        match item {
            Ok(item) => items.extend(item),
            Err(failure) => worst.note(Err(failure), output),
        }
    }
    (items, worst)
}

fn unreadable(error: walkdir::Error) -> Failure {
    let path = error.path().map(|path| shown(path).to_string()).unwrap_or_default();
    Failure::io(format!("reading {path}"), &error.into())
}

/// Returns the object for an entry of a folder, if the entry is a file.
fn item(
    folder: &Path,
    prefix: &str,
    entry: &walkdir::DirEntry,
    output: &Output,
) -> Result<Option<TreeItem>, Failure> {
    let kind = entry.file_type();
    if !kind.is_file() {
        if !kind.is_dir() {
            output.warn(&format!("{} is not a file, so it is not stored", shown(entry.path())));
        }
        return Ok(None);
    }
    let not_stored = |why: &dyn Display| {
        Failure::arguments(format!("{} is not stored: {why}", shown(entry.path())))
    };
    let below = name_below(folder, entry.path())
        .ok_or_else(|| not_stored(&"names of objects must be UTF-8"))?;
    let name = ObjectName::new(format!("{prefix}{below}")).map_err(|error| not_stored(&error))?;
    let length = entry.metadata().map_err(unreadable)?.len();
    Ok(Some(TreeItem { path: entry.path().to_owned(), name, length }))
}

/// Returns the path below a folder, with `/` between its components, if it is UTF-8.
fn name_below(folder: &Path, path: &Path) -> Option<String> {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let components: Option<Vec<&str>> =
        below.components().map(|component| component.as_os_str().to_str()).collect();
    Some(components?.join("/"))
}

/// Writes all objects whose names begin with a folder of names to files below a folder.
pub async fn get(volume: &Volume, args: &Get, output: &Output) -> Outcome {
    let prefix = folder_prefix(&args.name);
    let (overview, items) = objects(volume, &prefix, args, output).await?;
    if args.file.as_os_str() == "-" {
        return Err(Failure::arguments(
            "with --recursive, the last argument is a folder; give ./- for a folder called -",
        ));
    }
    let _new = exit::make_folder(&args.file)?;
    let progress = progress(&items, output);
    let names: BTreeSet<String> = items.iter().map(|item| item.name.to_string()).collect();
    let get = async |item: TreeItem| {
        make_way(&args.file, &item).map_err(|failure| collision(&names, &item, args, failure))?;
        let found = match &overview {
            Some(overview) => volume.find_by(overview, &item.name).await,
            None => volume.find(&item.name, args.staleness.options()).await,
        };
        let found = match found {
            // It was removed after it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Exit::Done),
            found => found?,
        };
        report::warn_if_stale(&item.name, &found, output);
        let got = object::get_file(volume, found, &item.name, &item.path, args, &progress, output);
        match got.await {
            // It was removed while it was read.
            Err(failure) if failure.exit == Exit::NotRecognised => Ok(Exit::Done),
            // Another object's folder was made there meanwhile.
            Err(failure) if item.path.is_dir() => Err(collision(&names, &item, args, failure)),
            got => got,
        }
    };
    let mut worst = Worst::default();
    all(items, &mut worst, output, get).await;
    // Objects whose names cannot be told may be among those that were asked for.
    let nameless = overview.iter().flat_map(Overview::nameless);
    nameless.for_each(|error| worst.note(Err(error.into()), output));
    worst.end(output)
}

/// Returns the objects whose names begin with a prefix, each with its file, and the overview to
/// find them by, if enough nodes answered.
async fn objects(
    volume: &Volume,
    prefix: &str,
    args: &Get,
    output: &Output,
) -> Result<(Option<Overview>, Vec<TreeItem>), Failure> {
    let item = |(name, listed): (ObjectName, Listed)| {
        let path = args.file.join(&name.as_str()[prefix.len()..]);
        TreeItem { path, name, length: listed.length }
    };
    match volume.overview(prefix).await {
        Ok(overview)
            if overview.objects().next().is_some() || overview.nameless().next().is_some() =>
        {
            overview.flaws().iter().for_each(|flaw| output.warn(&flaw.to_string()));
            let objects = overview.objects().map(|(name, listed)| item((name.clone(), listed)));
            let items = objects.collect();
            Ok((Some(overview), items))
        }
        // The listing says what is wrong, or lists what a few nodes have, if that is enough.
        _ => {
            let options = args.staleness.options();
            let listing = super::listing::list(volume, prefix, options, output).await?;
            Ok((None, listing.objects.into_iter().map(item).collect()))
        }
    }
}

/// Makes the folders above a file, and refuses a file that would not be below `folder`.
fn make_way(folder: &Path, item: &TreeItem) -> Result<(), Failure> {
    let below = item.path.strip_prefix(folder).map_err(|_| misleading(item))?;
    let (mut path, components) = (folder.to_owned(), below.components().collect::<Vec<_>>());
    let is_plain = components.iter().all(|part| matches!(part, Component::Normal(_)));
    // On some systems, more characters than `/` separate folders, and some names are devices.
    let count = components.len();
    let is_named = |below: String| item.name.as_str().ends_with(&below);
    if !is_plain || !name_below(folder, &item.path).is_some_and(is_named) {
        return Err(misleading(item));
    }
    for (at, component) in (1..).zip(components) {
        path.push(component);
        match at == count {
            true => expect_file_or_nothing(&path)?,
            false => make_plain_folder(&path)?,
        }
    }
    Ok(())
}

/// Explains the failure to make way for a file if another object's file is in its way, or it is in
/// the way of another's.
fn collision(names: &BTreeSet<String>, item: &TreeItem, args: &Get, failure: Failure) -> Failure {
    let name = item.name.as_str();
    let above = name.match_indices('/').map(|(at, _)| &name[..at]);
    let below = format!("{name}/");
    let mut below = names.range(below.clone()..).take_while(|other| other.starts_with(&below));
    let other = above.map(str::to_owned).find(|above| names.contains(above));
    let Some(other) = other.or_else(|| below.next().cloned()) else { return failure };
    let get = format!(" {} FILE", shell_name(name));
    let get = report::command("get", &args.volume, &get);
    let (name, other) = (shown(name), shown(&other));
    let message = format!(
        "{name} cannot be written below the folder beside {other}: a path is either a file or a \
         folder; {get} writes it elsewhere"
    );
    Failure { message, ..failure }
}

fn misleading(item: &TreeItem) -> Failure {
    Failure::arguments(format!(
        "{}: on this system, an object of this name cannot be a file below a folder",
        shown(item.name.as_str())
    ))
}

fn expect_file_or_nothing(path: &Path) -> Result<(), Failure> {
    match path.symlink_metadata() {
        Ok(found) if !found.is_file() => Err(in_the_way(path, "file")),
        _ => Ok(()),
    }
}

/// Makes a folder unless it exists. Refuses a link to a folder, which may lead anywhere.
fn make_plain_folder(path: &Path) -> Result<(), Failure> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Failure::io(format!("making {}", shown(path)), &error))
        }
        _ => match path.symlink_metadata() {
            Ok(found) if !found.is_dir() => Err(in_the_way(path, "folder")),
            _ => Ok(()),
        },
    }
}

fn in_the_way(path: &Path, kind: &str) -> Failure {
    Failure::arguments(format!("{} exists and is no {kind}", shown(path)))
}

fn progress(items: &[TreeItem], output: &Output) -> Progress {
    // The lengths may come from nodes, so their sum may overflow.
    output.progress(Some(items.iter().map(|item| item.length).fold(0, u64::saturating_add)))
}

/// Runs `act` on all items: on small ones side by side, on large ones one after the other.
async fn all(
    items: Vec<TreeItem>,
    worst: &mut Worst,
    output: &Output,
    act: impl AsyncFn(TreeItem) -> Outcome,
) {
    let (small, large): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.length <= SMALL);
    for (items, most) in [(small, AT_ONCE), (large, 1)] {
        worst.join(each(items, most, output, &act).await, output);
    }
}
