//! `paritas volume put`, `get` and `cat` of one object.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use paritas_report::parts::DigestText;
use paritas_report::volumes::{VolumeCatLine, VolumeGetLine, VolumePutLine};
use paritas_shards::{Attributes, FileSource, FileTarget, Preserve};
use paritas_volume::{
    ErrorKind, Expected, FoundObject, ObjectName, PutOptions, PutReport, SteadyFile, Volume,
};

use super::report;
use crate::args::is_stdout;
use crate::args::volume::{Cat, Get, Put, Staleness};
use crate::commands::Outcome;
use crate::commands::decode::is_folder;
use crate::commands::source;
use crate::exit::{self, Exit, Failure};
use crate::output::{self, Output, Progress, counted, shell_name, shell_path, shown};

/// Stores a file or a pipe.
pub async fn put(volume: &Volume, args: &Put, output: &Output) -> Outcome {
    let name = ObjectName::new(args.name.as_str())?;
    if args.if_absent {
        volume.expect_absent(&name).await?;
    }
    if args.resume {
        return put_in_pieces(volume, args, &name, output).await;
    }
    let source = open_source(args, &args.file, &name)?;
    let progress = Arc::new(output.progress(source.length));
    let options = put_options(args, &progress)?;
    put_source(volume, args, source, &name, options, &progress, output).await
}

/// Stores a file in pieces. Pieces that an interrupted command has stored are used again.
async fn put_in_pieces(volume: &Volume, args: &Put, name: &ObjectName, output: &Output) -> Outcome {
    let unsuitable =
        |what: &str| Failure::arguments(format!("--resume needs a file; {what} is not one"));
    if args.file.as_os_str() == "-" {
        return Err(unsuitable("standard input"));
    }
    let failed = |error| Failure::io(format!("reading {}", shown(&args.file)), &error);
    let file = File::open(&args.file).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(unsuitable(&shown(&args.file).to_string()));
    }
    let progress = Arc::new(output.progress(Some(metadata.len())));
    let mut options = put_options(args, &progress)?;
    options.attributes = Attributes::of_open(&file).map_err(failed)?;
    let advice = ", or repeat the command, which keeps the stored pieces that still fit";
    let file = SteadyFile::new(file, &args.file, advice.to_owned()).map_err(failed)?;
    let start = Instant::now();
    let done = volume.put_in_pieces(name, file, options).await?;
    let mut line = put_line(name, &done.report, start.elapsed().as_secs_f64());
    line.kept_bytes = Some(done.kept_bytes);
    report_put(volume, &args.volume, line, &done.report, &progress, output)
}

/// Returns the options of a put, as far as the arguments tell them.
pub fn put_options(args: &Put, progress: &Arc<Progress>) -> Result<PutOptions, Failure> {
    let told = Arc::clone(progress);
    let notes: BTreeMap<String, String> = args.notes.iter().cloned().collect();
    let twice = |name: &&String| args.notes.iter().filter(|(other, _)| other == *name).count() > 1;
    if let Some(name) = notes.keys().find(twice) {
        return Err(Failure::arguments(format!("--note {name} is given twice")));
    }
    let mut options = PutOptions::default().noting(&notes)?;
    options.progress = Some(Arc::new(move |bytes| told.advance(bytes)));
    if args.if_absent {
        options.expected = Expected::Nothing;
    }
    Ok(options)
}

/// Opens a file or standard input, which is to be stored under a name.
pub fn open_source(args: &Put, path: &Path, name: &ObjectName) -> Result<FileSource, Failure> {
    let (volume, name) = (shell_path(&args.volume), shell_name(name.as_str()));
    let piped = format!("paritas volume put {volume} - {name}");
    source::open(path, |_| "--recursive stores the files in it".to_owned(), &piped)
}

/// Stores the bytes of a source.
pub async fn put_source(
    volume: &Volume,
    args: &Put,
    source: FileSource,
    name: &ObjectName,
    mut options: PutOptions,
    progress: &Progress,
    output: &Output,
) -> Outcome {
    let start = Instant::now();
    options.attributes = source.attributes;
    options.length = source.length;
    let report = volume.put(name, source.stream, options).await?;
    let line = put_line(name, &report, start.elapsed().as_secs_f64());
    report_put(volume, &args.volume, line, &report, progress, output)
}

fn report_put(
    volume: &Volume,
    path: &Path,
    line: VolumePutLine,
    report: &PutReport,
    progress: &Progress,
    output: &Output,
) -> Outcome {
    let stages = if report.is_inline { 1 } else { volume.code().stages() };
    progress.aside(|| {
        let text = put_text(&line, report, stages);
        output.result(line, || text);
        if report.is_owed && volume.troubles().is_empty() {
            let nodes = report.flaws.iter().map(|flaw| flaw.node.as_str()).collect();
            output.next(&report::repair_command_once_writable(path, &nodes));
        }
    });
    Ok(Exit::Done)
}

fn put_line(name: &ObjectName, report: &PutReport, seconds: f64) -> VolumePutLine {
    VolumePutLine {
        version: report::version_fields(name, &report.listed),
        digest: DigestText::of(report.digest),
        inline: report.is_inline,
        nodes: report.nodes.clone(),
        owed: report.is_owed,
        spare: report.spare,
        flaws: report::flaw_entries(&report.flaws),
        kept_bytes: None,
        seconds,
    }
}

fn put_text(line: &VolumePutLine, report: &PutReport, stages: u8) -> String {
    let kept = match line.kept_bytes {
        Some(bytes) if bytes > 0 => format!(", {} of it by an earlier put", output::bytes(bytes)),
        _ => String::new(),
    };
    let owed = match report.is_owed {
        true => format!(
            "; some of it is owed: {} until `repair` writes it",
            report::may_be_lost(report.spare)
        ),
        false => String::new(),
    };
    let stage = if stages > 1 { format!(", stage 1 of {stages}") } else { String::new() };
    format!(
        "{}: {} stored on {}{kept}{stage}{owed}{}",
        shown(line.version.name.as_str()),
        output::bytes(report.listed.length),
        counted(report.nodes.len(), "node"),
        report::flaw_lines(&report.flaws)
    )
}

/// Writes an object to a file or to standard output.
pub async fn get(volume: &Volume, args: &Get, output: &Output) -> Outcome {
    let name = ObjectName::new(args.name.as_str())?;
    let is_stream = is_stdout(&args.file);
    if is_stream {
        output::expect_open_stdout()?;
    }
    let target = target(&args.file, &name)?;
    let object = find(volume, &name, args.staleness, output).await?;
    let _new = is_folder(&args.file).then(|| exit::make_folder(&args.file)).transpose()?;
    let progress = output.progress(Some(object.length()));
    match is_stream {
        true => get_stream(volume, object, &name, args, &progress, output).await,
        false => get_file(volume, object, &name, &target, args, &progress, output).await,
    }
}

/// Returns the file that an object is written to. In a folder, it is named after the last part of
/// the object's name.
fn target(file: &Path, name: &ObjectName) -> Result<PathBuf, Failure> {
    if !is_folder(file) {
        return Ok(file.to_owned());
    }
    let mut parts = Path::new(name.base()).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(base)), None) => Ok(file.join(base)),
        _ => Err(Failure::arguments(format!(
            "{} is a folder, in which no file can have the name of the object; give a file",
            shown(file)
        ))),
    }
}

/// Finds an object.
pub async fn find(
    volume: &Volume,
    name: &ObjectName,
    staleness: Staleness,
    output: &Output,
) -> Result<FoundObject, Failure> {
    let object = match volume.find(name, staleness.options()).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(absent(volume, name).await),
        object => object?,
    };
    report::warn_if_stale(name, &object, output);
    Ok(object)
}

/// Returns the failure for a name without an object. It says if the name is a folder of names.
pub async fn absent(volume: &Volume, name: &ObjectName) -> Failure {
    let below = volume.list(&format!("{name}/")).await.map_or(0, |listing| listing.objects.len());
    let name = shown(name.as_str());
    let hint = match below {
        0 => String::new(),
        _ => format!("; {name}/ has {}", counted(below, "object")),
    };
    Failure::not_recognised(format!("there is no object {name}{hint}"))
}

async fn get_stream(
    volume: &Volume,
    object: FoundObject,
    name: &ObjectName,
    args: &Get,
    progress: &Progress,
    output: &Output,
) -> Outcome {
    let (start, mut stdout) = (Instant::now(), io::stdout());
    let object = volume.read(object, None, &mut stdout, &|bytes| progress.advance(bytes)).await?;
    flush(&mut stdout)?;
    report_get(name, &object, Path::new("-"), start, progress, output);
    advise_to_verify(volume, name, &object, &args.volume, output);
    Ok(Exit::Done)
}

/// Largest number of times that an object is read again because it was replaced during a get.
const MOST_AGAIN: usize = 4;

/// Writes an object to a file, which gets its name once it is complete. If the object is replaced
/// meanwhile, the new version is read instead, unless the target is a pipe or a device.
pub async fn get_file(
    volume: &Volume,
    mut object: FoundObject,
    name: &ObjectName,
    path: &Path,
    args: &Get,
    progress: &Progress,
    output: &Output,
) -> Outcome {
    let start = Instant::now();
    let preserve = if args.no_preserve { Preserve::Nothing } else { Preserve::Usual };
    let target = FileTarget::new(path).force(args.force).sync(!args.no_sync).preserve(preserve);
    let told = AtomicU64::new(0);
    // Bytes that went to a pipe or a device cannot be taken back.
    let is_file = path.metadata().map_or(true, |found| found.is_file());
    let mut again = if is_file { MOST_AGAIN } else { 0 };
    let object = loop {
        let read = AtomicU64::new(0);
        // Progress that an earlier try has reported is not reported again.
        let advance = |bytes| {
            let read = read.fetch_add(bytes, Ordering::Relaxed) + bytes;
            progress.advance(read.saturating_sub(told.fetch_max(read, Ordering::Relaxed)));
        };
        match volume.read_to_file(object, target.clone(), &advance).await {
            Err(error) if error.kind() == ErrorKind::Busy && again > 0 => again -= 1,
            read => break read?,
        }
        object = find(volume, name, args.staleness, output).await?;
    };
    report_get(name, &object, path, start, progress, output);
    advise_to_verify(volume, name, &object, &args.volume, output);
    Ok(Exit::Done)
}

/// Advises to verify an object that was read although some of its shards are damaged, missing or
/// misplaced.
fn advise_to_verify(
    volume: &Volume,
    name: &ObjectName,
    object: &FoundObject,
    path: &Path,
    output: &Output,
) {
    let is_flawed = object.flaws().iter().any(|flaw| flaw.shard.is_some());
    if is_flawed && volume.troubles().is_empty() {
        let name = format!(" --deep {}", shell_name(name.as_str()));
        output.next(&format!("{} tells what is wrong", report::command("verify", path, &name)));
    }
}

fn report_get(
    name: &ObjectName,
    object: &FoundObject,
    path: &Path,
    start: Instant,
    progress: &Progress,
    output: &Output,
) {
    progress.aside(|| object.warnings().iter().for_each(|warning| output.warn(warning)));
    let line = VolumeGetLine {
        found: report::found_fields(name, object),
        digest: DigestText::of(object.digest()),
        path: path.into(),
        read_bytes: object.read_bytes(),
        seconds: start.elapsed().as_secs_f64(),
    };
    progress.aside(|| output.result(line, || get_text(name, object)));
}

fn get_text(name: &ObjectName, object: &FoundObject) -> String {
    format!(
        "{}: {} read, digest right{}",
        shown(name.as_str()),
        output::bytes(object.length()),
        report::flaw_lines(object.flaws())
    )
}

/// Prints an object, or a part of it.
pub async fn cat(volume: &Volume, args: &Cat, output: &Output) -> Outcome {
    output::expect_open_stdout()?;
    let object = find(volume, &args.name, args.staleness, output).await?;
    let length = object.length();
    let range = args.range.map_or(0..length, |range| range.within(length));
    let progress = output.progress(Some(range.end - range.start));
    let mut stdout = io::stdout();
    let advance = |bytes| progress.advance(bytes);
    let object = volume.read(object, Some(range.clone()), &mut stdout, &advance).await?;
    flush(&mut stdout)?;
    output.result_if_json(VolumeCatLine {
        found: report::found_fields(&args.name, &object),
        start: range.start,
        end: range.end,
        read_bytes: object.read_bytes(),
        seconds: progress.finish(),
    });
    Ok(Exit::Done)
}

fn flush(stdout: &mut io::Stdout) -> Result<(), Failure> {
    output::expect_printed("standard output", stdout.flush())
}
