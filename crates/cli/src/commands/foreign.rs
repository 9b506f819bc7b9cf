//! `paritas import` and `paritas export`: turn other tools' fragments into shards, and shards into
//! fragments.

use paritas::Code;
use paritas_report::shard_parts::FragmentFormatWord;
use paritas_report::shards::{ExportLine, ImportLine};
use paritas_shards::EncodeJob;
use paritas_shards::foreign::{self, ExportJob, Hints, ImportReport};

use crate::args::foreign::{Export, FormatName, Import};
use crate::commands::{Outcome, encode, shards};
use crate::exit::{self, Exit};
use crate::output::{self, Output, counted, shown};

/// Imports fragments, and reports.
pub fn import(args: &Import, output: &Output) -> Outcome {
    let _new = exit::make_out(&args.out)?;
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
    let line = ImportLine {
        made: encode::line(&spec, &job, &report.encoded, seconds),
        format: word(args.foreign.format),
        missing: report.missing.clone(),
    };
    output.result(line, || import_text(&job, &report));
    Ok(Exit::Done)
}

fn import_text(job: &EncodeJob, report: &ImportReport) -> String {
    let mut text = format!(
        "{}: {} from fragments of {} as {}, object {}",
        shown(&job.name),
        output::bytes(report.encoded.length),
        job.code.spec(),
        counted(report.encoded.shards.len(), "shard"),
        report.encoded.object
    );
    for index in &report.missing {
        text.push_str(&format!("\n  fragment {index} was missing"));
    }
    text
}

/// Exports an object, and reports.
pub fn export(args: &Export, output: &Output) -> Outcome {
    let inventory = shards::find(&args.paths, output)?;
    let object = shards::choose(&inventory, args.object.as_deref())?;
    let _new = exit::make_out(&args.out)?;
    let job = ExportJob::new(args.foreign.format.into(), &args.out)
        .hints(Hints::default().cell(args.foreign.cell).packet(args.packet))
        .force(args.force)
        .sync(args.work.is_synced())
        .threads(args.work.threads.most());
    let progress = output.progress(object.length());
    let files = foreign::export(&job, object, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    let line = ExportLine {
        object: shards::fields(object),
        format: word(args.foreign.format),
        seconds,
        files: shards::file_entries(&files),
    };
    output.result(line, || {
        let (name, out) = (object.label(), shown(&args.out));
        format!("{name}: {} written to {out}", counted(files.len(), "file"))
    });
    Ok(Exit::Done)
}

fn word(format: FormatName) -> FragmentFormatWord {
    match format {
        FormatName::Zfec => FragmentFormatWord::Zfec,
        FormatName::Klauspost => FragmentFormatWord::Klauspost,
        FormatName::Isal => FragmentFormatWord::Isal,
        FormatName::Hdfs => FragmentFormatWord::Hdfs,
        FormatName::Jerasure => FragmentFormatWord::Jerasure,
    }
}
