//! `paritas info`: shows what shards and protections say about themselves.

use paritas_protect::Protection;
use paritas_report::parts::{DigestText, ModeText};
use paritas_report::shard_parts::{HeaderFileEntry, LayoutWord, PartEntry, PartFilesEntry};
use paritas_report::shards::InfoLine;
use paritas_shards::{Object, Part, Placement, ReceptionReport, ShardFile};

use crate::args::shards::Info;
use crate::commands::many::Worst;
use crate::commands::protections::Found;
use crate::commands::shards::{self, Below};
use crate::commands::{Outcome, protections};
use crate::output::{self, Output, counted, mode_text, shown, time_entry, time_text};

/// Reports every object and every protection.
pub fn run(args: &Info, output: &Output) -> Outcome {
    let mut found = protections::among(&args.paths, args.object.as_deref())?;
    let wholes = found.protections.iter().map(Protection::whole);
    wholes.for_each(|protection| protections::info::run(&protection, output));
    let mut worst = Worst::default();
    found.failures.drain(..).for_each(|failure| worst.note(Err(failure), output));
    if !found.others.is_empty() {
        worst.note(objects(&found, args, output), output);
    }
    worst.end(output)
}

fn objects(found: &Found, args: &Info, output: &Output) -> Outcome {
    let inventory = shards::look(&found.others, output);
    if inventory.objects.is_empty() {
        return Err(shards::nothing_found(&inventory, &found.others, Below::ByName));
    }
    let mut worst = Worst::default();
    let wanted = args.object.as_deref();
    shards::not_read(&inventory, wanted).for_each(|failure| worst.note(Err(failure), output));
    let unknown = shards::unknown_of(&inventory, wanted);
    let objects = shards::taken_beside(inventory, wanted, !found.protections.is_empty())?;
    unknown.iter().for_each(|warning| output.warn(warning));
    for object in &objects {
        let missing = object.missing();
        let found: Vec<usize> =
            (0..object.shard_count()).filter(|shard| !missing.contains(shard)).collect();
        let reception = shards::reception(object.code(), &found)?;
        let placement = object.placement();
        let line = line(object, &placement, reception.as_ref());
        output.result(line, || text(object, &placement, reception.as_ref()));
    }
    worst.end(output)
}

fn line(object: &Object, placement: &Placement, reception: Option<&ReceptionReport>) -> InfoLine {
    let parts = object.parts().iter().enumerate();
    InfoLine {
        object: shards::fields(object),
        digest: object.digest().map(DigestText::of),
        mode: object.mode().map(mode_text).map(ModeText::of),
        modified: object.modified().map(time_entry),
        layout: match object.code().symbols() {
            Some(_) => LayoutWord::Words,
            None => LayoutWord::Packets,
        },
        packet: object.packet(),
        stripes_per_block: object.stripes(),
        segment_bytes: object.segment_bytes(),
        stored_bytes: object.stored_bytes(),
        shard_count: object.shard_count(),
        tolerance: object.code().graph().is_none().then(|| object.tolerance()),
        shards: parts.map(|(part, files)| part_entry(object, part, files)).collect(),
        placement: shards::placement_fields(placement),
        aside: shards::aside_entries(object.moved_aside()),
        missing: object.missing(),
        reception: reception.map(shards::reception_entry),
    }
}

fn part_entry(object: &Object, part: usize, files: &[ShardFile]) -> PartFilesEntry {
    let Part { shard, stage } = object.part(part);
    let files = files.iter().map(|file| file_entry(object, part, file)).collect();
    PartFilesEntry { part: PartEntry { index: shard, stage }, files }
}

/// Describes the mode and the time of the file that was encoded, as far as they are known.
fn attributes_note(object: &Object) -> Option<String> {
    let mode = object.mode().map(|mode| format!("mode {}", mode_text(mode)));
    let time = object.modified().map(|time| format!("modified {}", time_text(time)));
    let notes: Vec<String> = mode.into_iter().chain(time).collect();
    (!notes.is_empty()).then(|| notes.join(", "))
}

fn file_entry(object: &Object, part: usize, file: &ShardFile) -> HeaderFileEntry {
    HeaderFileEntry {
        path: file.path().into(),
        bytes: file.length(),
        header: file.has_front(),
        footer: file.has_footer(),
        notes: object.flaws(part, file),
    }
}

fn text(object: &Object, placement: &Placement, reception: Option<&ReceptionReport>) -> String {
    let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let mut text = format!(
        "{}\n  object  {}\n  code    {}, {}\n  length  {}\n  \
         digest  {}\n  layout  {}, packets of {}, {} a block, {} stored",
        object.label(),
        object.id(),
        object.code().spec(),
        shards::tolerance_text(
            object.code(),
            (object.tolerance(), object.standing_shards()),
            "shards"
        ),
        known(object.length().map(|length| counted(length, "byte"))),
        known(object.digest().map(|digest| digest.to_string())),
        object.layout(),
        counted(object.packet(), "byte"),
        counted(object.stripes(), "stripe"),
        output::bytes(object.stored_bytes())
    );
    text.extend(attributes_note(object).map(|note| format!("\n  file    {note}")));
    text.extend(shards::stage_note(object).map(|note| format!("\n  stages  {note}")));
    if let Some(report) = reception {
        text.push_str(&format!("\n  needs   {}", shards::reception_text(report)));
    }
    text.extend(shards::placement_text(placement).map(|note| format!("\n  folders {note}")));
    text.extend(shards::aside_text(object).map(|note| format!("\n  aside   {note}")));
    add_files(&mut text, object);
    text
}

/// Adds a line for each file of a shard, and for each shard without files.
fn add_files(text: &mut String, object: &Object) {
    let unreadable = object.unreadable();
    for (part, files) in object.parts().iter().enumerate() {
        let Part { shard: index, stage } = object.part(part);
        let shard = paritas_shards::shard_name(index, stage);
        if files.is_empty() {
            let state = if unreadable.contains(&index) { "unreadable" } else { "missing" };
            text.push_str(&format!("\n  {shard} is {state}"));
        }
        for file in files {
            let flaws = object.flaws(part, file);
            let note =
                if flaws.is_empty() { String::new() } else { format!(": {}", flaws.join("; ")) };
            text.push_str(&format!("\n  {shard}  {}{note}", shown(file.path())));
        }
    }
}
