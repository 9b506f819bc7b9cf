//! Other people's fragments, in and out.
//!
//! [`import`] turns the fragments that another tool wrote into a shard set of the same code,
//! [`export`] the other way. What passes between the two is the file itself: importing reads its
//! bytes from the data fragments, computing what is missing, and encodes them; exporting decodes
//! and lays them out as the tool does, parity from the same matrix. So nothing here knows the shard
//! format, and a tool's format is no more than how it names fragments, what it puts before their
//! payload, and how it spreads a file over them (`layout`): one file each, behind the trait
//! `Foreign`.
//!
//! Neither changes what it reads. Memory does not depend on the length of the file.

mod fragments;
mod hdfs;
mod jerasure;
mod layout;
mod plain;
mod spread;
mod zfec;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::IoSlice;
use std::path::{Path, PathBuf};

use paritas::{Code, Codec, CodecOptions, Spec};

use crate::error::{Error, ErrorKind, Result};
use crate::foreign::fragments::{Fragment, Fragments};
use crate::foreign::layout::Layout;
use crate::foreign::spread::Spread;
use crate::shard::attributes::{Access, Attributes};
use crate::shard::place::{NewFile, Pending, Replace, commit};
use crate::shard::{DecodeTarget, EncodeJob, EncodeReport, Object, Progress, decode, encode};
use crate::shown::shown;
use crate::system::allow_open_files;

/// A tool's way to store fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The share files of `zfec` and `zunfec`.
    Zfec,
    /// The files `NAME.0`, `NAME.1`, … of klauspost/reedsolomon's simple encoder.
    Klauspost,
    /// Files of the same kind, with any code in the word layout.
    Isal,
    /// Files of the same kind with the cells of HDFS's erasure-coded blocks.
    Hdfs,
    /// The files of Jerasure's example `encoder`, with all of its techniques.
    Jerasure,
}

impl Format {
    fn foreign(self) -> &'static dyn Foreign {
        match self {
            Self::Zfec => &zfec::Zfec,
            Self::Klauspost => &plain::Plain { family: Some("backblaze") },
            Self::Isal => &plain::Plain { family: None },
            Self::Hdfs => &hdfs::Hdfs,
            Self::Jerasure => &jerasure::Jerasure,
        }
    }
}

/// What fragments do not say themselves.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    /// The code.
    pub code: Option<Spec>,
    /// The bytes of the file.
    pub length: Option<u64>,
    /// The bytes of a cell.
    pub cell: Option<u64>,
    /// The bytes of a packet. Exporting takes those of the object if none are given.
    pub packet: Option<usize>,
}

impl Hints {
    fn required_code(&self) -> Result<Code> {
        let message = "these fragments do not say which code made them; give it, as in \
                       backblaze:k=10,m=4";
        let spec = self.code.as_ref().ok_or_else(|| Error::parameters(message))?;
        Ok(Code::new(spec)?)
    }
}

/// A format: how fragments are recognised, and how they are named.
trait Foreign: Sync {
    /// Finds out what these files are.
    fn survey(&self, files: &[PathBuf], hints: &Hints) -> Result<Survey>;

    /// How a file of that name and length is stored.
    fn plan(&self, code: &Code, name: &str, length: u64, hints: &Hints) -> Result<Plan>;
}

/// Fragments that were found.
struct Survey {
    code: Code,
    name: OsString,
    layout: Layout,
    /// The bytes before a fragment's payload.
    header: u64,
    /// The bytes of a packet, of a code in the packet layout.
    packet: Option<usize>,
    /// By number.
    files: Vec<Option<PathBuf>>,
    /// What the fragments leave in doubt, if anything.
    warning: Option<String>,
}

/// Fragments that are to be written.
struct Plan {
    layout: Layout,
    /// The bytes of a packet, of a code in the packet layout.
    packet: Option<usize>,
    /// By number, the name of a fragment's file and what stands before its payload; all headers
    /// are of one length.
    files: Vec<(String, Vec<u8>)>,
    /// Files beside the fragments.
    others: Vec<(String, Vec<u8>)>,
}

/// What importing did.
#[derive(Debug, Clone)]
pub struct ImportReport {
    /// What encoding made.
    pub encoded: EncodeReport,
    /// The fragments that were not at hand.
    pub missing: Vec<usize>,
}

/// Encodes what fragments hold. The shards give no more access than all fragments do. `job` is
/// called with their code and the name that they have, and says where shards go. Paths are
/// fragments, or folders of them.
///
/// # Errors
/// [`ErrorKind::NotRecognised`] for files that are no fragments of the format,
/// [`ErrorKind::TooFewShards`] when fewer than k are at hand, [`ErrorKind::DigestMismatch`] when
/// fragments contradict each other, and as [`encode`].
pub fn import(
    format: Format,
    paths: &[PathBuf],
    hints: &Hints,
    job: impl FnOnce(Code, OsString) -> EncodeJob,
    progress: Progress<'_>,
) -> Result<ImportReport> {
    let survey = format.foreign().survey(&regular_files(paths)?, hints)?;
    allow_open_files(survey.files.len());
    let open = |path: PathBuf| match File::open(&path) {
        Ok(file) => Ok(Fragment { path, file }),
        Err(error) => Err(Error::io("opening", &path, &error)),
    };
    let files = survey.files.into_iter().map(|path| path.map(open).transpose());
    let files = files.collect::<Result<Vec<_>>>()?;
    let metadata = files.iter().flatten().filter_map(|fragment| fragment.file.metadata().ok());
    let attributes = Attributes::common(metadata);
    let codec = codec(&survey.code, survey.packet)?;
    let fragments = Fragments::new(codec, survey.layout, survey.header, files)?;
    fragments.check()?;
    let mut job = job(survey.code, survey.name);
    job.length_hint = Some(survey.layout.length);
    job.packet = survey.packet.or(job.packet);
    job.attributes = attributes;
    let mut encoded = encode(&job, fragments.reader(), progress)?;
    encoded.warnings.extend(survey.warning);
    Ok(ImportReport { encoded, missing: fragments.missing() })
}

/// Makes the codec that computes fragments of a code. `packet` is the bytes of a packet, for a code
/// in the packet layout.
fn codec(code: &Code, packet: Option<usize>) -> Result<Codec> {
    let options = CodecOptions::default().threads(1);
    let options = packet.map_or(options.clone(), |packet| options.packet(packet));
    Ok(Codec::with_options(code.clone(), options)?)
}

/// The files that paths name, and those in folders, in order.
fn regular_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let failed = |error| Error::io("reading", path, &error);
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        for entry in fs::read_dir(path).map_err(failed)? {
            files.push(entry.map_err(failed)?.path());
        }
    }
    files.retain(|path| path.is_file());
    files.sort_unstable();
    files.dedup();
    if files.is_empty() {
        return Err(Error::new(ErrorKind::NotRecognised, "there are no files"));
    }
    Ok(files)
}

/// What is to be exported, how, and where to.
#[derive(Debug, Clone)]
pub struct ExportJob {
    /// The format.
    pub format: Format,
    /// The folder for the fragments.
    pub directory: PathBuf,
    /// What the format leaves open.
    pub hints: Hints,
    /// Whether files of the same names are to be replaced.
    pub force: bool,
    /// Whether everything is to be on the disk before the files get their names.
    pub sync: bool,
    /// The number of threads; 0 stands for the machine's.
    pub threads: usize,
}

/// Decodes an object into fragments of another tool; returns their files, which give no more access
/// than the file did that was encoded. On an error nothing is
/// left but what was there before.
///
/// # Errors
/// [`ErrorKind::Parameters`] when the format cannot hold the object or its code,
/// [`ErrorKind::Exists`] when files are not to be replaced, and as [`decode`].
pub fn export(job: &ExportJob, object: &Object, progress: Progress<'_>) -> Result<Vec<PathBuf>> {
    let name = object.name().to_str().ok_or_else(|| {
        Error::parameters(format!("{}: the name is not UTF-8", shown(object.name())))
    })?;
    let length = object.length().ok_or_else(|| {
        Error::too_few(format!("{}: no shard is left that states the object's length", shown(name)))
    })?;
    let packet = Some(job.hints.packet.unwrap_or(object.packet()));
    let hints = Hints { packet, ..job.hints.clone() };
    let plan = job.format.foreign().plan(object.code(), name, length, &hints)?;
    let paths = |files: &[(String, Vec<u8>)]| -> Vec<PathBuf> {
        files.iter().map(|(name, _)| job.directory.join(name)).collect()
    };
    let (fragments, others) = (paths(&plan.files), paths(&plan.others));
    refuse_existing(job, fragments.iter().chain(&others))?;
    let replace = if job.force { Replace::Always } else { Replace::Never };
    let source = Attributes { mode: object.mode(), ..Attributes::default() };
    let access = Access::of_shards(&source);
    let begin = |paths: &[PathBuf], contents: &[(String, Vec<u8>)]| {
        let new = |target: &PathBuf| {
            let (target, replace) = (target.clone(), replace.clone());
            NewFile { target, replace, access }
        };
        let files = Pending::create_all(paths.iter().map(new).collect(), 0)?;
        for (file, (_, content)) in files.iter().zip(contents) {
            file.write_at(&mut [IoSlice::new(content)], 0)?;
        }
        Ok::<_, Error>(files)
    };
    let begun = begin(&fragments, &plan.files)?;
    let header = plan.files.first().map_or(0, |(_, header)| header.len() as u64);
    let spread = Spread::new(begun, plan.layout, header);
    let target = DecodeTarget::Writer(Box::new(spread.writer()));
    decode(object, target, job.threads, progress)?;
    let mut files = spread.finish(&codec(object.code(), plan.packet)?)?;
    files.extend(begin(&others, &plan.others)?);
    commit(files, job.sync)?;
    Ok(fragments.into_iter().chain(others).collect())
}

/// Refuses early what would be refused in the end.
fn refuse_existing<'a>(
    job: &ExportJob,
    mut paths: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    match paths.find(|path| !job.force && fs::symlink_metadata(path).is_ok()) {
        Some(path) => Err(Error::exists(format!("{} exists; --force replaces it", shown(path)))),
        None => Ok(()),
    }
}

/// The name of a file as text; fragments' names are told apart by their ends.
fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Puts files in the order of their numbers, which must differ and be below `count`.
fn by_number(
    count: usize,
    numbered: impl IntoIterator<Item = (usize, PathBuf)>,
) -> Result<Vec<Option<PathBuf>>> {
    let mut files: Vec<Option<PathBuf>> = vec![None; count];
    for (number, path) in numbered {
        let place = files.get_mut(number).ok_or_else(|| {
            Error::parameters(format!("{} is not one of {count} fragments", shown(&path)))
        })?;
        if let Some(first) = place.replace(path.clone()) {
            return Err(Error::parameters(format!(
                "{} and {} are both fragment {number}",
                shown(&first),
                shown(&path)
            )));
        }
    }
    Ok(files)
}

fn not_recognised(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::NotRecognised, format!("{}: {why}", shown(path)))
}

/// The number of data nodes of a code in the word layout.
fn data_nodes(code: &Code) -> Result<usize> {
    code.symbols().map(|symbols| symbols.data_nodes()).ok_or_else(|| {
        Error::parameters(format!(
            "{}: other tools' fragments are words; use a code in the word layout",
            code.spec()
        ))
    })
}

/// Refuses a code of another family than those.
fn expect_family(code: &Code, families: &[&str]) -> Result<()> {
    if families.contains(&code.spec().family()) {
        return Ok(());
    }
    Err(Error::parameters(format!(
        "{} is not a code of this format, which takes {}; decode, and encode with that",
        code.spec(),
        families.join(", ")
    )))
}
