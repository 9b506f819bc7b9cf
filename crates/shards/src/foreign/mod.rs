//! Other tools' fragments, in and out.
//!
//! [`import`] turns the fragments that another tool wrote into a shard set of the same code, and
//! [`export`] turns shards into fragments. The two formats exchange only the file itself. Importing
//! reads its bytes from the data fragments, computes the missing ones, and encodes them. Exporting
//! decodes the file and lays it out as the tool does, with parity from the same matrix. So nothing
//! here knows the shard format. A tool's format consists only of the names of fragments, the header
//! before their payload, and the spread of a file over them (`layout`). Each format has one source
//! file, and implements the trait `ForeignFormat`.
//!
//! Neither function changes the files that it reads. The memory used does not depend on the length
//! of the file.

mod fragments;
mod hdfs;
mod jerasure;
mod layout;
mod plain;
mod spread;
mod zfec;

use std::ffi::OsString;
use std::fs;
use std::io::IoSlice;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use paritas::{Code, Codec, CodecOptions, Spec};
#[cfg(doc)]
use paritas_store::error::ErrorKind;
use paritas_store::error::{Error, Result};
use paritas_store::progress::Progress;
use paritas_store::shown::shown;

use crate::decode::{DecodeTarget, decode};
use crate::encode::{EncodeJob, EncodeReport, encode};
use crate::foreign::fragments::{Fragment, Fragments};
use crate::foreign::layout::FragmentLayout;
use crate::foreign::spread::FragmentFiles;
use crate::object::Object;
use crate::recognise::recognise;
use paritas_store::place::attributes::{Access, Attributes};
use paritas_store::setters;
use paritas_store::staging::{NewFile, Replace, StagedFile, commit};

/// A tool's way to store fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The share files of `zfec` and `zunfec`.
    Zfec,
    /// The files `NAME.0`, `NAME.1`, … of klauspost/reedsolomon's simple encoder.
    Klauspost,
    /// Files named as for [`Format::Klauspost`], with any code in the word layout.
    Isal,
    /// Files named as for [`Format::Klauspost`], with the cells of HDFS's erasure-coded blocks.
    Hdfs,
    /// The files of Jerasure's example `encoder`, with all of its techniques.
    Jerasure,
}

impl Format {
    fn foreign(self) -> &'static dyn ForeignFormat {
        match self {
            Self::Zfec => &zfec::Zfec,
            Self::Klauspost => &plain::Plain { family: Some("backblaze") },
            Self::Isal => &plain::Plain { family: None },
            Self::Hdfs => &hdfs::Hdfs,
            Self::Jerasure => &jerasure::Jerasure,
        }
    }

    /// Whether fragments tell the length of the file.
    fn tells_length(self) -> bool {
        !matches!(self, Self::Klauspost | Self::Isal)
    }
}

/// Facts that fragments do not state. By default all are unknown; setters of the same names give
/// them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Hints {
    /// The code.
    pub code: Option<Spec>,
    /// Number of bytes of the file.
    pub length: Option<u64>,
    /// Number of bytes of a cell.
    pub cell: Option<u64>,
    /// Number of bytes of a packet. If it is absent, exporting takes the packet size of the object,
    /// or the next larger one that the format allows.
    pub packet: Option<usize>,
}

setters! { Hints {
    /// States the code.
    code: impl Into<Option<Spec>>,
    /// States the number of bytes of the file.
    length: impl Into<Option<u64>>,
    /// States the number of bytes of a cell.
    cell: impl Into<Option<u64>>,
    /// States the number of bytes of a packet.
    packet: impl Into<Option<usize>>,
} }

impl Hints {
    fn required_code(&self) -> Result<Code> {
        let message = "these fragments do not tell which code made them; give the code, as in \
                       backblaze:k=10,m=4";
        let spec = self.code.as_ref().ok_or_else(|| Error::parameters(message))?;
        Ok(Code::new(spec)?)
    }

    /// Refuses facts that contradict what the fragments state.
    fn expect_agreement(&self, survey: &Survey) -> Result<()> {
        let Survey { code, layout, .. } = survey;
        let given = self.code.as_ref().map(Code::new).transpose()?;
        match (given, self.length) {
            (Some(given), _) if given.spec() != code.spec() => {
                let why = format!("is {}, but the fragments are of {}", given.spec(), code.spec());
                Err(unmeant(&["code"], &why))
            }
            (_, Some(length)) if length != layout.length => {
                let why = format!("is {length}, but the fragments say {}", layout.length);
                Err(unmeant(&["length"], &why))
            }
            _ => Ok(()),
        }
    }

    /// Refuses facts that a format's fragments do not have.
    fn expect_meant_for(&self, format: Format) -> Result<()> {
        match self.cell.is_some() && format != Format::Hdfs {
            true => Err(unmeant(&["cell"], "is for fragments of HDFS only")),
            false => Ok(()),
        }
    }
}

/// Returns the error for a fact that was given and is wrong or means nothing.
fn unmeant(field: &'static [&'static str; 1], why: &str) -> Error {
    Error::parameters(format!("`{}` {why}", field[0])).naming(field)
}

/// A format: recognises fragments, and lays out new ones.
trait ForeignFormat: Sync {
    /// Returns those of the files in a folder that may be fragments. If none has the name of one,
    /// all may be.
    fn fragments_among(&self, files: Vec<PathBuf>) -> Vec<PathBuf> {
        files
    }

    /// Finds out which fragments these files are.
    fn survey(&self, files: &[PathBuf], hints: &Hints) -> Result<Survey>;

    /// Plans how a file of that name and length is stored.
    fn plan(&self, code: &Code, name: &str, length: u64, hints: &Hints) -> Result<ExportPlan>;

    /// Rounds a number of bytes of a packet up to one that the format allows for a code.
    fn legal_packet(&self, _: &Code, packet: usize) -> usize {
        packet
    }
}

/// Fragments that were found.
struct Survey {
    code: Code,
    name: OsString,
    layout: FragmentLayout,
    /// Number of bytes before a fragment's payload.
    header: u64,
    /// Number of bytes of a packet, for a code in the packet layout.
    packet: Option<usize>,
    /// The fragments' files, by number.
    files: Vec<Option<PathBuf>>,
    /// A warning about facts that the fragments leave in doubt.
    warning: Option<String>,
}

/// Fragments that are to be written.
struct ExportPlan {
    layout: FragmentLayout,
    /// Number of bytes of a packet, for a code in the packet layout.
    packet: Option<usize>,
    /// By number, the name of a fragment's file and the header before its payload. All headers have
    /// the same length.
    files: Vec<(String, Vec<u8>)>,
    /// Files beside the fragments.
    others: Vec<(String, Vec<u8>)>,
}

/// The result of importing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImportReport {
    /// The result of encoding.
    pub encoded: EncodeReport,
    /// The numbers of the fragments that were missing.
    pub missing: Vec<usize>,
}

/// Encodes the file that fragments hold. `paths` are fragments, or folders of them. `job` is called
/// with the code and the name of the fragments, and returns the job of encoding, which says where
/// shards go. The shards give no more access than all fragments do.
///
/// # Errors
/// If the files are not fragments of the format ([`ErrorKind::NotRecognised`]), if fewer than k are
/// at hand ([`ErrorKind::TooFewShards`]), if fragments contradict each other
/// ([`ErrorKind::DigestMismatch`]), or as for [`encode`].
pub fn import(
    format: Format,
    paths: &[PathBuf],
    hints: &Hints,
    job: impl FnOnce(Code, OsString) -> EncodeJob,
    progress: Progress<'_>,
) -> Result<ImportReport> {
    hints.expect_meant_for(format)?;
    let foreign = format.foreign();
    let files = regular_files(paths, foreign)?;
    refuse_shards(&files)?;
    let survey = foreign.survey(&files, hints)?;
    hints.expect_agreement(&survey)?;
    let files = Fragment::open_all(survey.files)?;
    let attributes = Attributes::common(files.iter().flatten().map(Fragment::attributes));
    let codec = codec(&survey.code, survey.packet)?;
    let fragments = Fragments::new(codec, survey.layout, survey.header, files)?;
    fragments.check()?;
    if hints.length.is_some() && !format.tells_length() {
        fragments.expect_zeros_at_end()?;
    }
    let mut job = job(survey.code, survey.name);
    job.length_hint = Some(survey.layout.length);
    job.packet = survey.packet.or(job.packet);
    job.attributes = attributes;
    let mut encoded = encode(&job, fragments.reader(), progress)?;
    encoded.warnings.extend(survey.warning);
    encoded.warnings.extend(fragments.doubt());
    Ok(ImportReport { encoded, missing: fragments.missing() })
}

/// Creates the codec that computes fragments of a code. `packet` is the number of bytes of a
/// packet, for a code in the packet layout.
fn codec(code: &Code, packet: Option<usize>) -> Result<Codec> {
    let options = CodecOptions::default().threads(1);
    let options = packet.map_or(options.clone(), |packet| options.packet(packet));
    Ok(Codec::with_options(code.clone(), options)?)
}

/// Returns the files that `paths` name, and the fragments in folders among `paths`, in order.
fn regular_files(paths: &[PathBuf], format: &dyn ForeignFormat) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        let failed = |error| Error::io("reading", path, &error);
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.is_file() {
            files.push(path.clone());
        } else if metadata.is_dir() {
            let entries = fs::read_dir(path).map_err(failed)?;
            let entries = entries.map(|entry| Ok(entry.map_err(failed)?.path()));
            let entries = entries.collect::<Result<Vec<PathBuf>>>()?;
            let entries = entries.into_iter().filter(|entry| entry.is_file());
            files.extend(format.fragments_among(entries.collect()));
        } else {
            return Err(not_recognised(path, "it is not a regular file"));
        }
    }
    files.sort_unstable();
    files.dedup();
    if files.is_empty() {
        return Err(Error::not_recognised("there are no files at the given paths"));
    }
    Ok(files)
}

/// Refuses whole shards of our own: they need no import.
fn refuse_shards(files: &[PathBuf]) -> Result<()> {
    let is_shard =
        |path: &&PathBuf| recognise(path).is_ok_and(|found| found.file.has_both_records());
    match files.iter().find(is_shard) {
        Some(path) => {
            Err(not_recognised(path, "it is a shard of Paritas already; `decode` reads it"))
        }
        None => Ok(()),
    }
}

/// The settings of an export: those of [`ExportJob::new`], changed by setters of the same names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExportJob {
    /// The format.
    pub format: Format,
    /// The folder for the fragments.
    pub directory: PathBuf,
    /// Facts that the format leaves open.
    pub hints: Hints,
    /// Whether files of the same names are replaced.
    pub force: bool,
    /// Whether everything is synced to the disk before the files get their names.
    pub sync: bool,
    /// Largest number of threads. Default: the number that the machine runs at once.
    pub threads: Option<NonZeroUsize>,
}

impl ExportJob {
    /// Creates a job with the usual settings: files are synced, and existing ones stay.
    pub fn new(format: Format, directory: impl Into<PathBuf>) -> Self {
        Self {
            format,
            directory: directory.into(),
            hints: Hints::default(),
            force: false,
            sync: true,
            threads: None,
        }
    }
}

setters! { ExportJob {
    /// States facts that the format leaves open.
    hints: Hints,
    /// Replaces existing files of the same names, or refuses to.
    force: bool,
    /// Turns syncing on or off.
    sync: bool,
    /// Uses at most `threads` threads.
    threads: impl Into<Option<NonZeroUsize>>,
} }

/// Decodes an object into fragments of another tool, and returns their files. These give no more
/// access than the file that was encoded. On an error, everything is as it was before.
///
/// # Errors
/// If the format cannot hold the object or its code ([`ErrorKind::Parameters`]), if files exist
/// that must not be replaced ([`ErrorKind::Exists`]), or as for [`decode`].
pub fn export(job: &ExportJob, object: &Object, progress: Progress<'_>) -> Result<Vec<PathBuf>> {
    let name = object.name().to_str().ok_or_else(|| {
        Error::parameters(format!(
            "{}: the name of an exported object must be UTF-8",
            shown(object.name())
        ))
    })?;
    let length = object.length().ok_or_else(|| {
        Error::too_few(format!("{}: no readable shard states the object's length", shown(name)))
    })?;
    job.hints.expect_meant_for(job.format)?;
    let format = job.format.foreign();
    let usual = || format.legal_packet(object.code(), object.packet());
    let hints = job.hints.clone().packet(job.hints.packet.unwrap_or_else(usual));
    let plan = format.plan(object.code(), name, length, &hints)?;
    if job.hints.packet.is_some() && plan.packet.is_none() {
        return Err(unmeant(&["packet"], "is for Jerasure's techniques that compute with packets"));
    }
    let paths = |files: &[(String, Vec<u8>)]| -> Vec<PathBuf> {
        files.iter().map(|(name, _)| job.directory.join(name)).collect()
    };
    let (fragments, others) = (paths(&plan.files), paths(&plan.others));
    refuse_existing(job, fragments.iter().chain(&others))?;
    let replace = if job.force { Replace::Together } else { Replace::Never };
    let source = Attributes { mode: object.mode(), ..Attributes::default() };
    let access = Access::of_shards(&source);
    let new = |paths: &[PathBuf]| NewFile::all(paths.iter().cloned(), &replace, access);
    let begun = begin(new(&fragments), &plan.files)?;
    let header = plan.files.first().map_or(0, |(_, header)| header.len() as u64);
    let spread = FragmentFiles::new(begun, plan.layout, header);
    let target = DecodeTarget::Writer(Box::new(spread.writer()));
    decode(object, target, job.threads, progress)?;
    let mut files = spread.finish(&codec(object.code(), plan.packet)?)?;
    files.extend(begin(new(&others), &plan.others)?);
    commit(files, job.sync)?;
    Ok(fragments.into_iter().chain(others).collect())
}

/// Creates files, and writes the bytes with which each begins. `contents` has the name and these
/// bytes for each file.
fn begin(new: Vec<NewFile>, contents: &[(String, Vec<u8>)]) -> Result<Vec<StagedFile>> {
    let files = StagedFile::create_all(new, 0)?;
    for (file, (_, content)) in files.iter().zip(contents) {
        file.write_at(&mut [IoSlice::new(content)], 0)?;
    }
    Ok(files)
}

/// Refuses at the beginning the files that [`commit`] would refuse at the end of the work.
fn refuse_existing<'a>(
    job: &ExportJob,
    mut paths: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    match paths.find(|path| !job.force && fs::symlink_metadata(path).is_ok()) {
        Some(path) => Err(Error::exists(format!("{} exists; `force` replaces it", shown(path)))
            .naming(&["force"])),
        None => Ok(()),
    }
}

/// Returns the name of a file as text. Fragments are told apart by the ends of their names, so a
/// name that is not UTF-8 counts as empty.
fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Puts files in the order of their numbers, which must differ and be less than `count`.
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
    Error::not_recognised(format!("{}: {why}", shown(path)))
}

/// Returns the number of data nodes of a code in the word layout.
fn data_nodes(code: &Code) -> Result<usize> {
    code.symbols().map(|symbols| symbols.data_nodes()).ok_or_else(|| {
        Error::parameters(format!(
            "{}: other tools' fragments are in words; use a code in the word layout",
            code.spec()
        ))
    })
}

/// Returns the number of bytes of which fragments of a code are multiples: that of a word, or 64
/// for Leopard, whose programs take no other lengths.
fn word(code: &Code) -> u64 {
    match code.spec().family().starts_with("leopard") {
        true => 64,
        false => code.symbols().map_or(1, |symbols| u64::from(symbols.field().width()) / 8),
    }
}

/// Refuses a code whose family is not in `families`.
fn expect_family(code: &Code, families: &[&str]) -> Result<()> {
    if families.contains(&code.spec().family()) {
        return Ok(());
    }
    Err(Error::parameters(format!(
        "a code of this format must be one of {}; got {}; the format `isal` takes any code over \
         words; files are read with the code that made them, and an object gets another code if it \
         is decoded and encoded again",
        families.join(", "),
        code.spec()
    )))
}
