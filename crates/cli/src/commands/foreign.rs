//! `paritas import` and `paritas export`: turn other tools' fragments into shards, and shards into
//! fragments.

use paritas::Code;
use paritas_shards::foreign::{self, ExportJob, Hints};
use paritas_shards::{EncodeJob, Object};
use serde_json::{Value, json};

use crate::args::{Export, FormatName, Import};
use crate::commands::{Outcome, encode, shards};
use crate::exit::{self, Exit};
use crate::output::{self, Output, counted, shown};

/// Imports fragments, and reports.
pub fn import(args: &Import, output: &Output) -> Outcome {
    exit::make_out(&args.out)?;
    let hints =
        Hints::default().code(args.code.clone()).length(args.length).cell(args.foreign.cell);
    let mut made: Option<EncodeJob> = None;
    let job = |code: Code, name| {
        let name = args.name.clone().unwrap_or(name);
        let options = paritas_tune::codec_options(code.spec());
        let job = EncodeJob::new(code, name, vec![args.out.clone()])
            .options(options)
            .force(args.force)
            .sync(args.work.is_synced())
            .threads(args.work.threads.most());
        made.insert(job).clone()
    };
    let progress = output.progress(args.length);
    let advance = |bytes| progress.advance(bytes);
    let mut report =
        foreign::import(args.foreign.format.into(), &args.paths, &hints, job, &advance)?;
    let seconds = progress.finish();
    let warnings = report.encoded.warnings.iter_mut();
    warnings.for_each(|warning| *warning = exit::with_flags(warning, &["length"]));
    report.encoded.warnings.iter().for_each(|warning| output.warn(warning));
    let Some(job) = made else { return Ok(Exit::Done) };
    let spec = job.code.spec().to_string();
    let mut value = encode::value(&spec, &job, &report.encoded, seconds);
    value["type"] = json!("import");
    value["format"] = json!(name_of(args.foreign.format));
    value["missing"] = json!(report.missing);
    output.result(value, || {
        let mut text = format!(
            "{}: {} from fragments of {spec} as {}, object {}",
            shown(&job.name),
            output::bytes(report.encoded.length),
            counted(report.encoded.shards.len(), "shard"),
            report.encoded.object
        );
        for index in &report.missing {
            text.push_str(&format!("\n  fragment {index} was missing"));
        }
        text
    });
    Ok(Exit::Done)
}

/// Exports an object, and reports.
pub fn export(args: &Export, output: &Output) -> Outcome {
    let inventory = shards::find(&args.paths, output)?;
    let object = shards::choose(&inventory, args.object.as_deref())?;
    exit::make_out(&args.out)?;
    let job = ExportJob::new(args.foreign.format.into(), &args.out)
        .hints(Hints::default().cell(args.foreign.cell).packet(args.packet))
        .force(args.force)
        .sync(args.work.is_synced())
        .threads(args.work.threads.most());
    let progress = output.progress(object.length());
    let files = foreign::export(&job, object, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let mut value = exported(object, args.foreign.format, seconds);
    let paths = files.iter().map(|path| {
        let mut file = json!({});
        output::insert_name(&mut file, "path", path.as_os_str());
        file
    });
    value["files"] = paths.collect();
    output.result(value, || {
        let (name, out) = (object.label(), shown(&args.out));
        format!("{name}: {} written to {out}", counted(files.len(), "file"))
    });
    Ok(Exit::Done)
}

fn exported(object: &Object, format: FormatName, seconds: f64) -> Value {
    let mut value = shards::describe("export", object);
    value["format"] = json!(name_of(format));
    value["seconds"] = json!(seconds);
    value
}

/// Returns the name of a format on the command line.
fn name_of(format: FormatName) -> String {
    format!("{format:?}").to_lowercase()
}
