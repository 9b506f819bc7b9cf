//! `paritas encode`: turns a file or pipe into shards.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use paritas::Code;
use paritas::research::PlanOptions;
use paritas_report::parts::{DigestText, IdText};
use paritas_report::shard_parts::MadeShardEntry;
use paritas_report::shards::EncodeLine;
use paritas_shards::{EncodeJob, EncodeReport, Expectation, FileSource, Shown, leftovers_of};

use crate::args::packet::PacketChoice;
use crate::args::shards::Encode;
use crate::commands::source;
use crate::commands::{Outcome, leftovers, packet_rule};
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Encodes a file or pipe, and reports.
pub fn run(args: &Encode, output: &Output) -> Outcome {
    let code = Code::new(&args.code)?;
    let (spec, stages) = (code.spec().to_string(), code.stages());
    let options = paritas_tune::codec_options(code.spec());
    let packet = packet(args, &code, options.plan)?;
    let instead =
        |file: Shown<'_>| format!("pipe it through tar, as in `tar c {file} | paritas encode - …`");
    let source = source::open(&args.file, instead, "paritas encode - --name NAME")?;
    let FileSource { stream, length, attributes } = source::peek(source)?;
    let name = name(args)?;
    let _new = args.out.as_deref().map(exit::make_out).transpose()?;
    let job = EncodeJob::new(code, name, directories(args)?)
        .length_hint(length)
        .packet(packet)
        .attributes(attributes)
        .force(args.force)
        .sync(args.work.is_synced())
        .threads(args.work.threads.most())
        .options(options);
    let prepared = job.prepare().inspect_err(|_| warn_of_leftovers(&job, output))?;
    let expected = prepared.expectation();
    let cost = expected.and_then(|it| cost(&job, it));
    cost.iter().for_each(|note| output.warn(note));
    let progress = output.progress(length);
    let report = prepared.run(stream, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    report.warnings.iter().for_each(|warning| output.warn(warning));
    warn_of_leftovers(&job, output);
    let mut line = line(&spec, &job, &report, seconds);
    line.warnings.splice(0..0, cost);
    output.result(line, || text(&spec, &job, &report) + &stages_note(stages));
    Ok(Exit::Done)
}

/// Returns the result for people.
fn text(spec: &str, job: &EncodeJob, report: &EncodeReport) -> String {
    format!(
        "{}: {} as {} of {spec}, {} stored, object {}",
        shown(&job.name),
        output::bytes(report.length),
        counted(report.shards.len(), "shard"),
        output::bytes(report.stored),
        report.object
    )
}

/// Returns the packet size in bytes that the arguments ask for; `None` means the default.
fn packet(args: &Encode, code: &Code, plan: PlanOptions) -> Result<Option<usize>, Failure> {
    match args.packet {
        None => Ok(None),
        Some(PacketChoice::Bytes(bytes)) => Ok(Some(bytes)),
        Some(PacketChoice::Tuned) => {
            packet_rule::expect_packets(code, "--packet tuned")?;
            let untuned = || {
                Failure::arguments(format!(
                    "--packet tuned: nothing was measured for {0}; run `paritas tune {0}`",
                    code.spec()
                ))
            };
            paritas_tune::packet(code.spec()).map(Some).ok_or_else(untuned)
        }
        Some(PacketChoice::Rule) => packet_rule::for_encoding(code, plan).map(Some),
    }
}

/// Warns of files that earlier runs left behind for objects of this name.
fn warn_of_leftovers(job: &EncodeJob, output: &Output) {
    // A folder that cannot be read has already caused an error.
    let left = leftovers_of(&job.directories, &job.name).unwrap_or_default();
    leftovers::warn(&left, output);
}

/// The user is warned if the stored bytes are more than this many times the coded bytes.
const WORTH_SAYING: u64 = 2;

/// Returns a warning if a small object will take much more space than its coded bytes.
fn cost(job: &EncodeJob, expected: Expectation) -> Option<String> {
    let Expectation { length, stored, coded, .. } = expected;
    (stored > WORTH_SAYING * coded).then(|| {
        format!(
            "{}: {} will take {} in {} instead of {}, because of headers, checksums and padding; many \
             small files take less space as one archive",
            shown(&job.name),
            output::bytes(length),
            output::bytes(stored),
            counted(job.code.nodes_at(1).len(), "shard"),
            output::bytes(coded),
        )
    })
}

/// Describes what a code with stages leaves for later.
fn stages_note(stages: u8) -> String {
    match stages {
        1 => String::new(),
        _ => format!("; stage 1 of {stages}, `paritas promote` adds the rest"),
    }
}

fn name(args: &Encode) -> Result<OsString, Failure> {
    if let Some(name) = &args.name {
        expect_name(name)?;
        return Ok(name.clone());
    }
    if args.file.as_os_str() == "-" {
        return Ok("stdin".into());
    }
    // A shell gives a pipe such a path for `<(COMMAND)`; its last part is a number.
    let is_pipe = ["/dev/fd", "/proc/self/fd"].iter().any(|folder| args.file.starts_with(folder));
    let name = args.file.file_name().filter(|_| !is_pipe).map(OsString::from);
    name.ok_or_else(|| {
        Failure::arguments(format!("{} has no file name; give one with --name", shown(&args.file)))
    })
}

/// Refuses an empty name, `.`, `..`, and names with `/`. The library refuses other invalid names.
fn expect_name(name: &OsStr) -> Result<(), Failure> {
    let flaw = match name.as_encoded_bytes() {
        b"" | b"." | b".." => "must not be empty, `.` or `..`",
        name if name.contains(&b'/') => "must not contain `/`",
        _ => return Ok(()),
    };
    Err(Failure::arguments(format!("--name {flaw}; got '{}'", shown(name))))
}

/// Returns the folders for shards. Each `--to` must exist.
fn directories(args: &Encode) -> Result<Vec<PathBuf>, Failure> {
    args.to.iter().try_for_each(|to| exit::require_folder("--to", to))?;
    Ok(args.out.iter().chain(&args.to).cloned().collect())
}

/// Returns the line for the result of encoding.
pub fn line(spec: &str, job: &EncodeJob, report: &EncodeReport, seconds: f64) -> EncodeLine {
    let shards = report.shards.iter().enumerate();
    EncodeLine {
        object: IdText::of(report.object),
        name: (&job.name).into(),
        code: spec.to_owned(),
        stage: 1,
        stages: job.code.stages(),
        length: report.length,
        digest: DigestText::of(report.digest),
        stored_bytes: report.stored,
        seconds,
        shards: shards.map(|(index, path)| MadeShardEntry { index, path: path.into() }).collect(),
        warnings: report.warnings.clone(),
    }
}
