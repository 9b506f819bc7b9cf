//! `paritas info`: shows what shards and protections say about themselves.

use std::path::PathBuf;

use paritas_protect::Protection;
use paritas_shards::{Object, Part, Placement, ReceptionReport, ShardFile, Timestamp};
use serde_json::{Value, json};

use crate::args::Info;
use crate::commands::many::Worst;
use crate::commands::shards::{self, Below};
use crate::commands::{Outcome, protections};
use crate::output::{self, Output, mode_text, shown, time_text};

/// Reports every object and every protection.
pub fn run(args: &Info, output: &Output) -> Outcome {
    let mut found = protections::among(&args.paths, args.object.as_deref())?;
    let wholes = found.protections.iter().map(Protection::whole);
    wholes.for_each(|protection| protections::info::run(&protection, output));
    let mut worst = Worst::default();
    found.failures.drain(..).for_each(|failure| worst.note(Err(failure), output));
    if !found.others.is_empty() {
        worst.note(objects(&found.others, args, output), output);
    }
    worst.end(output)
}

fn objects(paths: &[PathBuf], args: &Info, output: &Output) -> Outcome {
    let inventory = shards::look(paths, output);
    if inventory.objects.is_empty() {
        return Err(shards::nothing_found(&inventory, paths, Below::ByName));
    }
    let mut worst = Worst::default();
    let wanted = args.object.as_deref();
    shards::not_read(&inventory, wanted).for_each(|failure| worst.note(Err(failure), output));
    let unknown = shards::unknown_of(&inventory, wanted);
    let objects = shards::taken(inventory, wanted)?;
    unknown.iter().for_each(|warning| output.warn(warning));
    for object in &objects {
        let missing = object.missing();
        let found: Vec<usize> =
            (0..object.shard_count()).filter(|shard| !missing.contains(shard)).collect();
        let reception = shards::reception(object.code(), &found)?;
        let placement = object.placement();
        let mut value = value(object, &placement);
        reception.iter().for_each(|report| value["reception"] = shards::reception_value(report));
        output.result(value, || text(object, &placement, reception.as_ref()));
    }
    worst.end(output)
}

fn value(object: &Object, placement: &Placement) -> Value {
    let mut value = shards::describe("info", object);
    value["layout"] = json!(object.layout());
    value["packet"] = json!(object.packet());
    value["stripes_per_block"] = json!(object.stripes());
    value["segment_bytes"] = json!(object.segment_bytes());
    value["stored_bytes"] = json!(object.stored_bytes());
    value["digest"] = json!(object.digest().map(|digest| digest.to_string()));
    value["mode"] = json!(object.mode().map(mode_text));
    value["modified"] = json!(object.modified().map(|Timestamp { seconds, nanoseconds }| {
        json!({"seconds": seconds, "nanoseconds": nanoseconds})
    }));
    value["shard_count"] = json!(object.shard_count());
    value["tolerance"] = json!(object.code().graph().is_none().then(|| object.tolerance()));
    let shards = object.parts().iter().enumerate().map(|(part, files)| {
        let Part { shard, stage } = object.part(part);
        let files = files.iter().map(|file| file_value(object, part, file));
        json!({"index": shard, "stage": stage, "files": files.collect::<Vec<_>>()})
    });
    value["shards"] = shards.collect();
    value["missing"] = json!(object.missing());
    shards::insert_placement(&mut value, placement);
    value["aside"] = json!(shards::aside_values(object.moved_aside()));
    value
}

/// Describes the mode and the time of the file that was encoded, as far as they are known.
fn attributes_note(object: &Object) -> Option<String> {
    let mode = object.mode().map(|mode| format!("mode {}", mode_text(mode)));
    let time = object.modified().map(|time| format!("modified {}", time_text(time)));
    let notes: Vec<String> = mode.into_iter().chain(time).collect();
    (!notes.is_empty()).then(|| notes.join(", "))
}

fn file_value(object: &Object, part: usize, file: &ShardFile) -> Value {
    let mut value = json!({
        "bytes": file.length(), "header": file.has_front(), "footer": file.has_footer(),
        "notes": object.flaws(part, file),
    });
    output::insert_name(&mut value, "path", file.path().as_os_str());
    value
}

fn text(object: &Object, placement: &Placement, reception: Option<&ReceptionReport>) -> String {
    let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let mut text = format!(
        "{}\n  object  {}\n  code    {}, {}\n  length  {}\n  \
         digest  {}\n  layout  {}, packets of {} bytes, {} stripes a block, {} stored",
        object.label(),
        object.id(),
        object.code().spec(),
        shards::tolerance_text(
            object.code(),
            (object.tolerance(), object.standing_shards()),
            "shards"
        ),
        known(object.length().map(|length| format!("{length} bytes"))),
        known(object.digest().map(|digest| digest.to_string())),
        object.layout(),
        object.packet(),
        object.stripes(),
        output::bytes(object.stored_bytes())
    );
    text.extend(attributes_note(object).map(|note| format!("\n  file    {note}")));
    text.extend(shards::stage_note(object).map(|note| format!("\n  stages  {note}")));
    if let Some(report) = reception {
        text.push_str(&format!("\n  needs   {}", shards::reception_text(report)));
    }
    text.extend(shards::placement_text(placement).map(|note| format!("\n  folders {note}")));
    text.extend(shards::aside_text(object).map(|note| format!("\n  aside   {note}")));
    let unreadable = object.unreadable();
    for (part, files) in object.parts().iter().enumerate() {
        let Part { shard: index, stage } = object.part(part);
        let shard = shards::shard_name(index, stage);
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
    text
}
