//! Volumes: objects over disks, hosts and buckets.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use paritas::CodecOptions;
use paritas_shards::{FileSource, FileTarget};
use paritas_volume::config::{Config, NodeEntry};
use paritas_volume::{
    Error, ErrorKind, Expected, FoundObject, GetOptions, NodeStatus, ObjectName, PutOptions, Rate,
    Reencoded, Runner,
};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping, PyString};

use crate::buffers::{NewBytes, Source};
use crate::code::CodeOrSpec;
use crate::errors::{Failure, Result, of_types, refused, text, wrong_argument};
use crate::files::{open, seconds, timestamp};
use crate::results::{ResultObject, results};
use crate::sources;

/// A volume: objects, each cut into shards on several nodes.
///
/// One volume may be used by several threads at once. A process that was forked from the one that
/// opened the volume must open it again; in that process, every call of the old object raises
/// StorageError. After a `with` block over the volume, it is closed: calls raise StorageError, and
/// its threads end when the calls that still run have ended.
#[pyclass(frozen, module = "paritas")]
pub struct Volume(Mutex<Option<Opened>>);

/// A volume, and the threads that work for it.
#[derive(Clone)]
struct Opened {
    threads: Arc<RunnerThreads>,
    volume: Arc<paritas_volume::Volume>,
}

impl Opened {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Future<Output = paritas_volume::Result<T>> + Send,
    ) -> Result<T> {
        self.threads.run(py, work)
    }

    /// Returns the spec of the code of new objects.
    fn code(&self) -> String {
        self.volume.code().spec().to_string()
    }
}

/// Threads, of which only the process that started them has them.
struct RunnerThreads {
    runner: Option<Runner>,
    process: u32,
}

impl RunnerThreads {
    fn begin() -> Result<Self> {
        Ok(Self { runner: Some(Runner::new()?), process: std::process::id() })
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Future<Output = paritas_volume::Result<T>> + Send,
    ) -> Result<T> {
        match &self.runner {
            Some(runner) => run(py, runner, work),
            None => Err(unusable("is closed")),
        }
    }

    fn are_here(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for RunnerThreads {
    fn drop(&mut self) {
        let Some(runner) = self.runner.take() else { return };
        match self.are_here() {
            true => Python::attach(|py| py.detach(|| runner.stop())),
            // Stopping threads of another process would wait for ever.
            false => std::mem::forget(runner),
        }
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs work without the interpreter, until it ends or a signal handler raises an exception, such
/// as the handler of Ctrl-C. Handlers may run ten times a second. As in `signals`, no other thread
/// asks for the interpreter.
fn run<T: Send>(
    py: Python<'_>,
    runner: &Runner,
    work: impl Future<Output = paritas_volume::Result<T>> + Send,
) -> Result<T> {
    let mut work = Box::pin(work);
    loop {
        let work_on = || {
            // The first question comes at once, and the second one when handlers may run.
            let is_asked_again = Cell::new(false);
            runner.run(async { Ok(work.as_mut().await) }, || is_asked_again.replace(true))
        };
        if let Ok(result) = py.detach(work_on) {
            return Ok(result?);
        }
        if let Err(error) = py.check_signals() {
            let _ = py.detach(|| runner.run(work, || true));
            return Err(error.into());
        }
    }
}

/// Memory that is lent to readers until this value is dropped, which gives the export back in the
/// caller's thread. A reader may be on a thread that outlives an interrupted call.
struct Lent(Arc<Mutex<Option<Source>>>);

impl Lent {
    fn reader(&self) -> LentReader {
        LentReader { memory: Arc::clone(&self.0), at: 0 }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Reads lent memory from the beginning.
struct LentReader {
    memory: Arc<Mutex<Option<Source>>>,
    at: usize,
}

impl Read for LentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(memory) = &*memory else {
            return Err(io::Error::other("the call that lent its memory has ended"));
        };
        let mut rest = memory.as_ref().get(self.at..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

/// The nodes of a new volume: paths or URIs, or a dictionary of them by name.
struct Nodes(Vec<NodeEntry>);

impl FromPyObject<'_, '_> for Nodes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let uri = |path: &PathBuf| path.to_str().map(str::to_owned);
        let named: Option<Vec<(String, String)>> = match object.cast::<PyMapping>() {
            Ok(nodes) => {
                let named: Vec<(String, PathBuf)> = nodes.items()?.extract()?;
                named.iter().map(|(name, path)| Some((name.clone(), uri(path)?))).collect()
            }
            Err(_) => {
                let what = "nodes are a list of paths and URIs, or a dictionary";
                let paths: Vec<PathBuf> =
                    object.extract().map_err(|error| of_types(error, what, &object))?;
                let numbered = paths.iter().zip(1..);
                numbered.map(|(path, at)| Some((format!("node{at}"), uri(path)?))).collect()
            }
        };
        let named = named.ok_or_else(|| wrong_argument("the path of a node must be UTF-8"))?;
        Ok(Self(named.into_iter().map(|(name, uri)| NodeEntry::new(name, uri)).collect()))
    }
}

/// The name of an object.
struct Name(ObjectName);

impl FromPyObject<'_, '_> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let name = text(&*object.cast::<PyString>()?, "a name")?;
        Ok(Self(ObjectName::new(name).map_err(Failure::from)?))
    }
}

#[pymethods]
impl Volume {
    /// Opens the volume that a volume file (TOML) describes, as `paritas volume init` writes it.
    /// With `background`, each node sends at most `rate` bytes a second, and receives at most
    /// `rate` bytes a second. The default is the volume file's limit for work in the background
    /// (`background_rate`). If `workers` volumes are opened for the same work, each gets an equal
    /// part of this rate.
    #[staticmethod]
    #[pyo3(signature = (path, *, background = false, rate = None, workers = 1))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        background: bool,
        rate: Option<u64>,
        workers: u64,
    ) -> Result<Self> {
        if rate == Some(0) || workers == 0 {
            let what = if workers == 0 { "workers" } else { "rate" };
            return Err(wrong_argument(format!("{what} must be at least 1; got 0")));
        }
        if rate.is_some() && !background {
            return Err(wrong_argument("`rate` needs `background=True`"));
        }
        py.detach(|| std::fs::metadata(&path)).map_err(|error| refused(&path, &error))?;
        let volume = py.detach(|| -> paritas_volume::Result<_> {
            let volume = paritas_volume::Volume::open(&path, |_| CodecOptions::default())?;
            if !background {
                return Ok(volume);
            }
            let usual = Config::read(&path)?.limits.background_rate.map(|rate| rate.as_u64());
            let part = |rate: u64| (rate / workers).max(1);
            Ok(volume.in_background(Some(Rate(rate.or(usual).map(part)))))
        });
        let volume = volume.map_err(|error| match error.kind() {
            // The file is there, but it is another one.
            ErrorKind::NotRecognised => wrong_argument(error.to_string()),
            _ => error.into(),
        })?;
        Self::new(py, volume, RunnerThreads::begin()?)
    }

    /// Makes a volume: writes the volume file `path`, finds out what the nodes can do, marks them,
    /// and opens it. `nodes` are directories or URIs, whose names are then node1, node2 and so on,
    /// or a dictionary of them by name. Directories must exist; relative paths are relative to the
    /// directory of the volume file. `code` is the code of new objects, a `Code` or its spec, by
    /// default 4+2.
    ///
    /// With fewer nodes than shards, a node has several shards: `status().tolerance` says how many
    /// nodes may be lost.
    ///
    /// Raises ExistsError if the file exists, if a node already has files, or if two nodes are at
    /// the same place, and StorageError if a node does not answer.
    #[staticmethod]
    #[pyo3(signature = (path, nodes, code = CodeOrSpec::default(), *, name = None))]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        nodes: Nodes,
        code: CodeOrSpec,
        name: Option<String>,
    ) -> Result<Self> {
        let of_file = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.or_else(of_file).unwrap_or_default();
        let options = |_: &paritas::Spec| CodecOptions::default();
        let (threads, code) = (RunnerThreads::begin()?, code.spec());
        let made = async {
            paritas_volume::create(&path, &name, &code, nodes.0, options).await?;
            let volume = paritas_volume::Volume::open(&path, options)?;
            volume.mark_nodes().await?;
            Ok(volume)
        };
        let volume = threads.run(py, made)?;
        Self::new(py, volume, threads)
    }

    /// The spec of the code of new objects.
    #[getter]
    fn code(&self) -> Result<String> {
        Ok(self.opened()?.code())
    }

    /// The names of the nodes.
    #[getter]
    fn nodes(&self) -> Result<Vec<String>> {
        Ok(self.opened()?.volume.members().iter().map(|member| member.name.clone()).collect())
    }

    /// Stores an object: from memory, or from an object that has `read(n)`, such as an open file. A
    /// memory map, which is both, is stored as a whole, whatever its position. Another thread calls
    /// `read`, and begins no call after an interrupt.
    ///
    /// `notes` are names and texts that are kept with it, such as `{"content-type": "text/html"}`.
    /// `modified` is the time at which its source last changed, in seconds since 1970. With
    /// `create`, an object of this name is not replaced; of puts through one volume at the same
    /// moment, one creates it.
    ///
    /// Returns the known facts about the object. Raises ExistsError if `create` is set and there is
    /// an object of this name, and StorageError if too few nodes accept it, or if the source raises
    /// an exception, which is then the cause. After an error, nothing new is visible.
    #[pyo3(signature = (name, source, *, notes = None, modified = None, create = false))]
    fn put(
        &self,
        py: Python<'_>,
        name: Name,
        source: &Bound<'_, PyAny>,
        notes: Option<BTreeMap<String, String>>,
        modified: Option<f64>,
        create: bool,
    ) -> Result<ResultObject<ObjectInfo>> {
        let mut options = put_options(notes, create)?;
        let modified = modified.map(timestamp).transpose();
        options.attributes.modified = modified.map_err(|error| error.about("modified"))?;
        let memory = Source::of(source);
        if memory.is_err() && source.hasattr("read")? {
            let (reader, reading) = sources::begin(source)?;
            let stored = self.put_from(py, name, reader, options);
            return stored.map_err(|error| match reading.take_failure() {
                // An interrupt or an exit is not a failure of the source.
                Some(raised) if !raised.is_instance_of::<PyException>(py) => raised.into(),
                cause => {
                    let error = PyErr::from(error);
                    error.set_cause(py, cause);
                    error.into()
                }
            });
        }
        let memory = memory?;
        options.length = Some(memory.as_ref().len() as u64);
        let lent = Lent(Arc::new(Mutex::new(Some(memory))));
        self.put_from(py, name, lent.reader(), options)
    }

    /// Stores a file, with its mode and time, and with `notes` and `create` as in `put`.
    #[pyo3(signature = (name, path, *, notes = None, create = false))]
    fn put_file(
        &self,
        py: Python<'_>,
        name: Name,
        path: PathBuf,
        notes: Option<BTreeMap<String, String>>,
        create: bool,
    ) -> Result<ResultObject<ObjectInfo>> {
        let FileSource { stream, length, attributes } = py.detach(|| open(&path))?;
        let mut options = put_options(notes, create)?;
        (options.attributes, options.length) = (attributes, length);
        self.put_from(py, name, stream, options)
    }

    /// Returns the bytes of an object from `start` up to `end`, by default all of them. Raises
    /// NotFoundError if the object does not exist, ParameterError if it is shorter than `end`,
    /// LossError if too many of its shards are lost, and StorageError if a `digest` is given (64
    /// hexadecimal digits) that differs from the object's, for example because the object was
    /// replaced.
    #[pyo3(signature = (name, start = 0, end = None, *, digest = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: Name,
        start: u64,
        end: Option<u64>,
        digest: Option<&str>,
    ) -> Result<Bound<'py, PyBytes>> {
        let is_digit = |digit: u8| digit.is_ascii_hexdigit();
        if let Some(given) =
            digest.filter(|given| given.len() != 64 || !given.bytes().all(is_digit))
        {
            let message = format!("`digest` must have 64 hexadecimal digits; got {given:?}");
            return Err(wrong_argument(message));
        }
        let digest = digest.map(str::to_ascii_lowercase);
        let opened = self.opened()?;
        let object = opened.run(py, opened.volume.find(&name.0, GetOptions::default()))?;
        expect_digest(&name.0, &object, digest.as_deref())?;
        let range = start..end.unwrap_or(object.length());
        // What is beyond the end is refused by the volume.
        let most = object.length().saturating_sub(start);
        let length = usize::try_from(range.end.saturating_sub(start).min(most));
        let mut bytes = NewBytes::zeroed(py, length.unwrap_or(usize::MAX))?;
        let mut memory = bytes.memory();
        let range = (start > 0 || end.is_some()).then_some(range);
        opened.run(py, opened.volume.read(object, range, &mut memory, &|_| {}))?;
        Ok(bytes.finish())
    }

    /// Writes an object to a file, which appears when it is complete. Raises ExistsError if the
    /// file exists, unless `force` is set.
    #[pyo3(signature = (name, path, *, force = false))]
    fn get_file(&self, py: Python<'_>, name: Name, path: PathBuf, force: bool) -> Result<()> {
        let opened = self.opened()?;
        let object = opened.run(py, opened.volume.find(&name.0, GetOptions::default()))?;
        let target = FileTarget::new(path).force(force);
        opened.run(py, opened.volume.read_to_file(object, target, &|_| {}))?;
        Ok(())
    }

    /// Returns the known facts about an object.
    fn stat(&self, py: Python<'_>, name: Name) -> Result<ResultObject<ObjectInfo>> {
        let opened = self.opened()?;
        let object = opened.run(py, opened.volume.find(&name.0, GetOptions::default()))?;
        Ok(ResultObject(ObjectInfo::of(&name.0, &object)))
    }

    /// Returns the names and lengths of all objects whose names begin with `prefix`, by name.
    #[pyo3(signature = (prefix = ""))]
    fn list(&self, py: Python<'_>, prefix: &str) -> Result<Vec<(String, u64)>> {
        let opened = self.opened()?;
        let listing = opened.run(py, opened.volume.list(prefix))?;
        let objects = listing.objects.into_iter();
        Ok(objects.map(|(name, listed)| (name.as_str().to_owned(), listed.length)).collect())
    }

    /// Removes an object.
    fn remove(&self, py: Python<'_>, name: Name) -> Result<()> {
        let opened = self.opened()?;
        opened.run(py, opened.volume.remove(&name.0))?;
        Ok(())
    }

    /// Looks for an object's shards on all nodes; with `deep`, reads every block of them. Damage
    /// does not raise an exception: the verdict says what was found.
    #[pyo3(signature = (name, *, deep = false))]
    fn verify(&self, py: Python<'_>, name: Name, deep: bool) -> Result<ResultObject<Verdict>> {
        let opened = self.opened()?;
        let verdict = opened.run(py, opened.volume.verify(&name.0, deep))?;
        Ok(ResultObject(Verdict {
            name: verdict.name.as_str().to_owned(),
            state: verdict.state.name(),
            stage: verdict.stage,
            stages: verdict.stages,
            missing: verdict.missing,
            tolerable: verdict.spare,
            flaws: verdict.flaws.iter().map(ToString::to_string).collect(),
        }))
    }

    /// Makes an object whole again; with `deep`, reads every block of it first.
    #[pyo3(signature = (name, *, deep = false))]
    fn repair(
        &self,
        py: Python<'_>,
        name: Name,
        deep: bool,
    ) -> Result<ResultObject<RepairedObject>> {
        let opened = self.opened()?;
        Ok(ResultObject(opened.run(py, opened.volume.repair(&name.0, deep))?.into()))
    }

    /// Adds the parity of the next stage to an object of a code with delayed parity.
    fn promote(&self, py: Python<'_>, name: Name) -> Result<ResultObject<RepairedObject>> {
        let opened = self.opened()?;
        Ok(ResultObject(opened.run(py, opened.volume.promote(&name.0))?.into()))
    }

    /// Encodes an object anew if it does not have the code that the volume file names now. Returns
    /// whether it was encoded anew. If the object is replaced or removed meanwhile, it stays
    /// replaced or removed.
    fn reencode(&self, py: Python<'_>, name: Name) -> Result<bool> {
        let opened = self.opened()?;
        let done = opened.run(py, opened.volume.reencode(&name.0))?;
        Ok(matches!(done, Reencoded::Changed(_)))
    }

    /// Returns the names of the objects that wait for promotion, beginning with those that have
    /// waited longest.
    #[pyo3(signature = (prefix = ""))]
    fn backlog(&self, py: Python<'_>, prefix: &str) -> Result<Vec<String>> {
        let opened = self.opened()?;
        let names = opened.run(py, async { Ok(opened.volume.backlog(prefix).await) })?;
        Ok(names.iter().map(|name| name.as_str().to_owned()).collect())
    }

    /// Returns the names of all objects, the least protected first. Names of removed objects that
    /// still have files come last.
    #[pyo3(signature = (prefix = ""))]
    fn most_urgent_first(&self, py: Python<'_>, prefix: &str) -> Result<Vec<String>> {
        let opened = self.opened()?;
        let names = opened.run(py, async {
            let overview = opened.volume.overview(prefix).await?;
            Ok(opened.volume.most_urgent_first(&overview).await)
        })?;
        Ok(names.iter().map(|name| name.as_str().to_owned()).collect())
    }

    /// Returns the state of the nodes, and the numbers of objects that wait for repair or
    /// promotion, or are lost.
    fn status(&self, py: Python<'_>) -> Result<ResultObject<VolumeStatus>> {
        let opened = self.opened()?;
        let status = opened.run(py, opened.volume.status())?;
        let of_node = |node: &NodeStatus| (node.name.clone(), node.problem.clone());
        Ok(ResultObject(VolumeStatus {
            nodes: status.nodes.iter().map(of_node).collect(),
            tolerance: status.tolerance,
            lacking_for_puts: status.lacking_for_puts(),
            owed: status.owed.objects,
            lost: status.lost.objects,
            backlog: status.backlog.objects,
        }))
    }

    /// Closes the volume, as the end of a `with` block does.
    fn close(&self) {
        self.end();
    }

    fn __enter__(volume: Py<Self>, py: Python<'_>) -> Result<Py<Self>> {
        volume.get().opened()?;
        Ok(volume.clone_ref(py))
    }

    fn __exit__(
        &self,
        _type: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.end();
    }

    fn __repr__(&self) -> String {
        match self.opened() {
            Ok(opened) => {
                let nodes = opened.volume.node_count();
                format!("<Volume: {} over {nodes} nodes>", opened.code())
            }
            Err(_) => "<Volume that is closed, or of another process>".to_owned(),
        }
    }
}

impl Volume {
    fn new(py: Python<'_>, volume: paritas_volume::Volume, threads: RunnerThreads) -> Result<Self> {
        sources::prepare(py)?;
        let opened = Opened { threads: Arc::new(threads), volume: Arc::new(volume) };
        Ok(Self(Mutex::new(Some(opened))))
    }

    /// Closes the volume. In a process that did not open it, the volume does not work, and nothing
    /// of it is removed.
    fn end(&self) {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(opened) = opened.filter(|opened| !opened.threads.are_here()) {
            std::mem::forget(opened);
        }
    }

    /// Returns the opened volume, if it is open and this process opened it.
    fn opened(&self) -> Result<Opened> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let opened = opened.ok_or_else(|| unusable("is closed"))?;
        match opened.threads.are_here() {
            true => Ok(opened),
            false => Err(unusable("was opened by another process")),
        }
    }

    fn put_from(
        &self,
        py: Python<'_>,
        Name(name): Name,
        source: impl Read + Send + 'static,
        options: PutOptions,
    ) -> Result<ResultObject<ObjectInfo>> {
        let notes = options.notes.as_ref().map(|notes| notes()).unwrap_or_default();
        let modified = options.attributes.modified.map(seconds);
        let opened = self.opened()?;
        let report = opened.run(py, opened.volume.put(&name, source, options))?;
        Ok(ResultObject(ObjectInfo {
            name: name.as_str().to_owned(),
            length: report.listed.length,
            digest: report.digest.to_string(),
            code: (!report.is_inline).then(|| opened.code()),
            nodes: report.nodes.into_iter().map(Some).collect(),
            is_owed: report.is_owed,
            created: report.created as f64,
            modified,
            notes,
        }))
    }
}

/// Returns the options of a put, as far as all puts have them.
fn put_options(notes: Option<BTreeMap<String, String>>, create: bool) -> Result<PutOptions> {
    let mut options = PutOptions::default().noting(&notes.unwrap_or_default())?;
    if create {
        options.expected = Expected::Nothing;
    }
    Ok(options)
}

/// Returns the error for a volume that cannot be used here.
fn unusable(why: &str) -> Failure {
    Error::failed(format!("the volume {why}; open it again")).into()
}

/// Refuses an object whose digest differs from the expected one.
fn expect_digest(
    name: &ObjectName,
    object: &FoundObject,
    digest: Option<&str>,
) -> paritas_volume::Result<()> {
    let found = object.digest().to_string();
    match digest.filter(|&digest| digest != found) {
        None => Ok(()),
        Some(digest) => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "{name} was replaced: it has {} bytes of digest {found}, not those of {digest}",
                object.length()
            ),
        )),
    }
}

results!(ObjectInfo, Verdict, RepairedObject, VolumeStatus);

#[derive(IntoPyObject)]
pub struct ObjectInfo {
    name: String,
    length: u64,
    digest: String,
    code: Option<String>,
    nodes: Vec<Option<String>>,
    is_owed: bool,
    created: f64,
    modified: Option<f64>,
    notes: BTreeMap<String, String>,
}

impl ObjectInfo {
    fn of(name: &ObjectName, object: &FoundObject) -> Self {
        Self {
            name: name.as_str().to_owned(),
            length: object.length(),
            digest: object.digest().to_string(),
            code: object.code(),
            nodes: object.nodes(),
            is_owed: false,
            created: object.created() as f64,
            modified: object.modified().map(seconds),
            notes: object.notes().clone(),
        }
    }
}

#[derive(IntoPyObject)]
pub struct Verdict {
    name: String,
    state: &'static str,
    stage: u8,
    stages: u8,
    missing: Vec<usize>,
    tolerable: usize,
    flaws: Vec<String>,
}

#[derive(IntoPyObject)]
pub struct RepairedObject {
    name: String,
    stored: usize,
    manifests: usize,
    is_removed: bool,
    is_owed: bool,
    read_bytes: u64,
    flaws: Vec<String>,
}

impl From<paritas_volume::Repaired> for RepairedObject {
    fn from(repaired: paritas_volume::Repaired) -> Self {
        Self {
            name: repaired.name.as_str().to_owned(),
            stored: repaired.stored,
            manifests: repaired.manifests,
            is_removed: repaired.is_removed,
            is_owed: repaired.is_owed,
            read_bytes: repaired.read_bytes,
            flaws: repaired.flaws.iter().map(ToString::to_string).collect(),
        }
    }
}

#[derive(IntoPyObject)]
pub struct VolumeStatus {
    nodes: Vec<(String, Option<String>)>,
    tolerance: usize,
    lacking_for_puts: usize,
    owed: usize,
    lost: usize,
    backlog: usize,
}
