//! `paritas encode`: turns a file or pipe into shards.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use paritas::Code;
use paritas_shards::{Attributes, EncodeJob, EncodeReport, Expectation, leftovers_of};
use serde_json::{Value, json};

use crate::args::Encode;
use crate::commands::{Outcome, leftovers};
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, counted, shown};

/// Encodes a file or pipe, and reports.
pub fn run(args: &Encode, output: &Output) -> Outcome {
    let code = Code::new(&args.code)?;
    let (spec, stages) = (code.spec().to_string(), code.stages());
    let options = paritas_tune::codec_options(code.spec());
    let Source { stream, length, attributes } = open(&args.file)?.peek()?;
    let job = EncodeJob::new(code, name(args)?, directories(args)?)
        .length_hint(length)
        .packet(args.packet)
        .attributes(attributes)
        .force(args.force)
        .sync(args.work.is_synced())
        .threads(args.work.threads.most())
        .options(options);
    let prepared = job.prepare().inspect_err(|_| warn_of_leftovers(&job, output))?;
    let expected = prepared.expectation();
    expected.and_then(|it| cost(&job, it)).iter().for_each(|note| output.warn(note));
    let progress = output.progress(length);
    let report = prepared.run(stream, &|bytes| progress.advance(bytes))?;
    let seconds = progress.finish();
    report.warnings.iter().for_each(|warning| output.warn(warning));
    warn_of_leftovers(&job, output);
    output.result(value(&spec, &job, &report, seconds), || {
        format!(
            "{}: {} as {} of {spec}, {} stored, object {}",
            shown(&job.name),
            output::bytes(report.length),
            counted(report.shards.len(), "shard"),
            output::bytes(report.stored),
            report.object
        ) + &stages_note(stages)
    });
    Ok(Exit::Done)
}

/// Warns of files that earlier runs left behind for objects of this name.
fn warn_of_leftovers(job: &EncodeJob, output: &Output) {
    // A folder that cannot be read has already caused an error.
    let left = leftovers_of(&job.directories, &job.name).unwrap_or_default();
    leftovers::warn(&left, output);
}

/// The factor by which the stored bytes must exceed what the code makes of the object, before the
/// user is warned.
const WORTH_SAYING: u64 = 2;

/// Returns a warning of how much space a small object will take.
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

/// The source of an object.
struct Source {
    stream: Box<dyn Read + Send>,
    /// Number of bytes that it will give, if that is known.
    length: Option<u64>,
    attributes: Attributes,
}

/// Number of bytes of a pipe that are read before anything is written. A pipe that ends within them
/// has a known length, so it is encoded like a file of that length: with few threads and short
/// packets.
const PEEKED: u64 = 1 << 20;

impl Source {
    fn pipe(stream: impl Read + Send + 'static) -> Self {
        Self { stream: Box::new(stream), length: None, attributes: Attributes::default() }
    }

    /// Finds out the length of a short pipe.
    fn peek(mut self) -> Result<Self, Failure> {
        if self.length.is_none() {
            let mut head = Vec::new();
            let read = self.stream.by_ref().take(PEEKED).read_to_end(&mut head);
            read.map_err(|error| Failure::io("reading the source", &error))?;
            self.length = Some(head.len() as u64).filter(|&length| length < PEEKED);
            self.stream = Box::new(Cursor::new(head).chain(self.stream));
        }
        Ok(self)
    }
}

fn open(path: &Path) -> Result<Source, Failure> {
    if path.as_os_str() == "-" {
        return Ok(Source::pipe(io::stdin()));
    }
    let failed = |error| Failure::io(format!("reading {}", shown(path)), &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::arguments(format!(
            "{} is a folder; pipe it through tar, as in `tar c {} | paritas encode - …`",
            shown(path),
            shown(path)
        )));
    }
    if !metadata.is_file() {
        return Ok(Source::pipe(file));
    }
    let (length, attributes) = (Some(metadata.len()), Attributes::of(&metadata));
    let stream = Box::new(Unchanging { file, before: metadata, read: 0 });
    Ok(Source { stream, length, attributes })
}

/// A file that must not change while it is read. If it did, the shards would protect content that
/// the file never had. Its length and its time of change are compared when it ends, and when it
/// goes on beyond its length.
struct Unchanging {
    file: File,
    before: Metadata,
    /// Number of bytes read so far.
    read: u64,
}

impl Read for Unchanging {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(target)?;
        self.read += read as u64;
        let at_end = read == 0 && !target.is_empty();
        if at_end || self.read > self.before.len() {
            self.expect_unchanged()?;
        }
        Ok(read)
    }
}

impl Unchanging {
    fn expect_unchanged(&self) -> io::Result<()> {
        let now = self.file.metadata()?;
        let what = match (self.before.len(), now.len()) {
            (before, now) if before != now => format!("from {before} to {now} bytes"),
            _ if self.before.modified().ok() != now.modified().ok() => "in place".to_owned(),
            _ => return Ok(()),
        };
        Err(io::Error::other(format!(
            "the file changed while it was read ({what}), so no shards are left; encode a copy or a \
             snapshot of it, or what `cat` reads of it: `cat FILE | paritas encode - --name NAME`"
        )))
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
    let name = args.file.file_name().map(OsString::from);
    name.ok_or_else(|| {
        Failure::arguments(format!("{} has no file name; give one with --name", shown(&args.file)))
    })
}

/// Refuses names that mean a folder, or nothing. The library refuses whatever else is no name.
fn expect_name(name: &OsStr) -> Result<(), Failure> {
    match ["", ".", ".."].iter().any(|other| name == *other) {
        true => Err(Failure::arguments(format!(
            "--name must not be empty, `.` or `..`; got '{}'",
            shown(name)
        ))),
        false => Ok(()),
    }
}

/// Returns the folders for shards. `--out` is created if it does not exist; each `--to` must exist.
fn directories(args: &Encode) -> Result<Vec<PathBuf>, Failure> {
    args.out.as_deref().map_or(Ok(()), exit::make_folder)?;
    args.to.iter().try_for_each(|to| exit::require_folder("--to", to))?;
    Ok(args.out.iter().chain(&args.to).cloned().collect())
}

/// Returns the result of encoding in JSON.
pub fn value(spec: &str, job: &EncodeJob, report: &EncodeReport, seconds: f64) -> Value {
    let shards = report.shards.iter().enumerate().map(|(index, path)| {
        let mut shard = json!({"index": index});
        output::insert_name(&mut shard, "path", path.as_os_str());
        shard
    });
    let mut value = json!({
        "type": "encode", "object": report.object.to_string(), "code": spec,
        "stage": 1, "stages": job.code.stages(), "length": report.length, "digest": report.digest.to_string(),
        "stored_bytes": report.stored, "seconds": seconds,
        "shards": shards.collect::<Vec<_>>(), "warnings": report.warnings,
    });
    output::insert_name(&mut value, "name", &job.name);
    value
}
