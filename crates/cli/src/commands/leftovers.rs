//! Files that killed commands left behind. Every command that finds them reports them, and `repair
//! --clean` removes them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use paritas_report::parts::{FileEntry, IdText};
use paritas_report::shards::CleanLine;
use paritas_shards::{Leftover, LeftoverState, Object, ObjectId};

use crate::exit::Failure;
use crate::output::{Output, counted, shell_path, shown};

/// Warns of everything that was left behind.
pub fn warn(leftovers: &[Leftover], output: &Output) {
    leftovers.iter().for_each(|leftover| output.warn(&text(leftover)));
}

fn text(leftover: &Leftover) -> String {
    let Leftover { name, object, state, files, .. } = leftover;
    let object = object.map_or_else(|| "an unknown object".to_owned(), |id| format!("object {id}"));
    let (name, folder) = (shown(name), folders(leftover));
    let clean = format!("`paritas repair --clean {folder}`");
    let [temporary, shards] = ["temporary file", "shard"].map(|thing| counted(files.len(), thing));
    let is_one = files.len() == 1;
    let them = if is_one { "it" } else { "them" };
    match state {
        LeftoverState::Unfinished => format!(
            "{name}: {temporary} of {object} in {folder}, not a whole set: the command that wrote \
             {them} was interrupted or is still running; if it is not running, {clean} removes {them}"
        ),
        LeftoverState::Copies => format!(
            "{name}: {temporary} in {folder}, copied from shards of {object} that are there under \
             their own names: a command was interrupted, or still runs; if it does not, {clean} \
             removes {them} if the object is intact"
        ),
        LeftoverState::Unnamed => format!(
            "{name}: {object} is whole, in {temporary} in {folder}: an `encode` was interrupted \
             before it gave them their names, and another object has these; {clean} removes the \
             files if that object is intact"
        ),
        LeftoverState::Nameless => format!(
            "{name}: {shards} of {object} in {folder} still {}: a command was interrupted before \
             it renamed {them}; `paritas repair {folder}` does so where no other file has the name",
            if is_one { "has a temporary name" } else { "have temporary names" }
        ),
        LeftoverState::Replaced { by } => format!(
            "{name}: {shards} of {object} in {folder}: an `encode --force` was interrupted after it \
             had replaced {them} by object {by}, which has all its shards; if object {by} is \
             intact, {clean} removes {them}"
        ),
        LeftoverState::SetAside { rival } => {
            let shards = format!("{name}: {shards} of {object} in {folder}");
            set_aside_text(&shards, is_one, &folder, *rival)
        }
    }
}

/// Says what to do about shards in a folder, or the one there, that were set aside for `rival`, if
/// it exists.
fn set_aside_text(shards: &str, is_one: bool, folder: &str, rival: Option<ObjectId>) -> String {
    let (have, back, them) = match is_one {
        true => ("has", "it its name back", "it"),
        false => ("have", "them their names back", "them"),
    };
    let set_aside =
        format!("{shards} {have} been set aside by an `encode --force` that was interrupted");
    match rival {
        None => format!(
            "{set_aside}; `paritas repair {folder}` gives {back}, and \
             `encode --force` replaces {them}"
        ),
        Some(rival) => format!(
            "{set_aside}, for object {rival}, which is not whole; `paritas verify {folder}` tells \
             which of the two is readable, and `encode --force` replaces both"
        ),
    }
}

/// Returns the folders that the files are in, quoted for a shell.
fn folders(leftover: &Leftover) -> String {
    let folders: BTreeSet<&Path> = leftover.files.iter().filter_map(|file| file.parent()).collect();
    folders.into_iter().map(shell_path).collect::<Vec<_>>().join(" ")
}

/// The objects of a place, and which of them are known to be whole.
#[derive(Debug, Default)]
pub struct Standing(Vec<(ObjectId, OsString, bool)>);

impl Standing {
    /// Takes the objects of a place. None is known to be whole yet.
    pub fn of(objects: &[Object]) -> Self {
        let unknown = |object: &Object| (object.id(), object.name().to_owned(), false);
        Self(objects.iter().map(unknown).collect())
    }

    /// Notes that an object is whole.
    pub fn note_whole(&mut self, object: &Object) {
        let mut entries = self.0.iter_mut();
        let entry = entries.find(|(id, _, is_whole)| *id == object.id() && !is_whole);
        entry.into_iter().for_each(|(_, _, is_whole)| *is_whole = true);
    }

    /// Whether there is a whole object with this id.
    fn has_whole(&self, object: Option<ObjectId>) -> bool {
        self.are_whole(|id, _| Some(id) == object)
    }

    /// Whether there are objects with this name, all of them whole.
    fn has_whole_ones_named(&self, name: &OsStr) -> bool {
        self.are_whole(|_, other| other == name)
    }

    fn are_whole(&self, is_meant: impl Fn(ObjectId, &OsStr) -> bool) -> bool {
        let mut meant = self.0.iter().filter(|(id, name, _)| is_meant(*id, name)).peekable();
        meant.peek().is_some() && meant.all(|(_, _, is_whole)| *is_whole)
    }
}

/// Removes the leftovers that nothing needs, and returns their number.
pub fn clean(
    leftovers: &[Leftover],
    standing: &Standing,
    output: &Output,
) -> Result<usize, Failure> {
    let needless = leftovers.iter().filter(|leftover| is_needless(leftover, standing));
    let mut count = 0;
    for leftover in needless {
        for file in &leftover.files {
            match fs::remove_file(file) {
                // Repair has already given the file its final name.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed
                    .map_err(|error| Failure::io(format!("removing {}", shown(file)), &error))?,
            }
        }
        report(leftover, output);
        count += 1;
    }
    Ok(count)
}

fn is_needless(leftover: &Leftover, standing: &Standing) -> bool {
    match leftover.state {
        LeftoverState::Unfinished => true,
        LeftoverState::Copies => standing.has_whole(leftover.object),
        LeftoverState::Replaced { by } => standing.has_whole(Some(by)),
        LeftoverState::Unnamed => standing.has_whole_ones_named(&leftover.name),
        LeftoverState::Nameless | LeftoverState::SetAside { .. } => false,
    }
}

fn report(leftover: &Leftover, output: &Output) {
    let line = CleanLine {
        object: leftover.object.map(IdText::of),
        name: (&leftover.name).into(),
        removed: leftover.files.iter().map(|path| FileEntry { path: path.into() }).collect(),
    };
    output.result(line, || {
        let count = counted(leftover.files.len(), "file");
        format!("{}: removed {count} that a command had left behind", shown(&leftover.name))
    });
}
