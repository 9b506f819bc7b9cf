//! Volumes: objects over disks, hosts and buckets.

use std::future::Future;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;

use paritas::CodecOptions;
use paritas_shards::{Attributes, FileTarget};
use paritas_volume::config::Config;
use paritas_volume::names::ObjectName;
use paritas_volume::{GetOptions, Health, Object, PutOptions, Rate, Reencoded, Runner};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffers::Source;
use crate::errors::{Result, wrong_argument};

/// A volume: objects, each cut into shards on several nodes.
///
/// One volume may be used by several threads at once. It must not be used in a process that was
/// forked from the one that opened it: open it again there.
#[pyclass(frozen, module = "paritas")]
pub struct Volume {
    volume: paritas_volume::Volume,
    runner: Runner,
}

#[pymethods]
impl Volume {
    /// Opens the volume that a volume file (TOML) describes, as `paritas volume init` writes it.
    /// With `background`, the nodes are spared: each sends and gets no more than `rate` bytes a
    /// second, by default as many as the volume file allows for the background. Of several workers,
    /// each takes one of `workers` equal parts of that.
    #[staticmethod]
    #[pyo3(signature = (path, *, background = false, rate = None, workers = 1))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        background: bool,
        rate: Option<u64>,
        workers: u64,
    ) -> Result<Self> {
        let volume = py.detach(|| -> paritas_volume::Result<_> {
            let volume = paritas_volume::Volume::open(&path, |_| CodecOptions::default())?;
            if !background {
                return Ok(volume);
            }
            let usual = Config::read(&path)?.limits.background_rate.map(|rate| rate.as_u64());
            let part = |rate: u64| (rate / workers.max(1)).max(1);
            Ok(volume.in_background(Some(Rate(rate.or(usual).map(part)))))
        })?;
        Ok(Self { volume, runner: Runner::new()? })
    }

    /// The spec of the code of new objects.
    #[getter]
    fn code(&self) -> String {
        self.volume.code().spec().to_string()
    }

    /// The names of the nodes.
    #[getter]
    fn nodes(&self) -> Vec<String> {
        self.volume.members().iter().map(|member| member.name.clone()).collect()
    }

    /// Stores an object: from memory, or from an object that has `read(n)`, such as an open file.
    /// Returns what is known of it.
    fn put(&self, py: Python<'_>, name: &str, source: &Bound<'_, PyAny>) -> Result<ObjectInfo> {
        if source.hasattr("read")? {
            let reader = Reader { file: source.clone().unbind() };
            return self.put_from(py, name, reader, PutOptions::default());
        }
        let source = Source::of(source)?;
        let mut options = PutOptions::default();
        options.length = Some(source.as_ref().len() as u64);
        self.put_from(py, name, Cursor::new(source), options)
    }

    /// Stores a file, with its mode and time.
    fn put_file(&self, py: Python<'_>, name: &str, path: PathBuf) -> Result<ObjectInfo> {
        let file = std::fs::File::open(path)?;
        let metadata = file.metadata()?;
        let mut options = PutOptions::default();
        options.attributes = Attributes::of(&metadata);
        options.length = Some(metadata.len());
        self.put_from(py, name, file, options)
    }

    /// Returns the bytes of an object from `start` up to `end`, by default all of them.
    #[pyo3(signature = (name, start = 0, end = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: u64,
        end: Option<u64>,
    ) -> Result<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        self.run(py, async {
            let object = self.volume.find(&ObjectName::new(name)?, GetOptions::default()).await?;
            let range = (start > 0 || end.is_some()).then(|| start..end.unwrap_or(object.length()));
            self.volume.read(object, range, &mut bytes, &|_| {}).await
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes an object to a file, which appears when it is whole.
    #[pyo3(signature = (name, path, *, force = false))]
    fn get_file(&self, py: Python<'_>, name: &str, path: PathBuf, force: bool) -> Result<()> {
        let name = ObjectName::new(name)?;
        let object = self.run(py, self.volume.find(&name, GetOptions::default()))?;
        let target = FileTarget::new(path).force(force);
        self.run(py, self.volume.read_to_file(object, target, &|_| {}))?;
        Ok(())
    }

    /// Returns what is known of an object.
    fn stat(&self, py: Python<'_>, name: &str) -> Result<ObjectInfo> {
        let name = ObjectName::new(name)?;
        let object = self.run(py, self.volume.find(&name, GetOptions::default()))?;
        Ok(ObjectInfo::of(&name, &object))
    }

    /// Returns the names and lengths of all objects whose names begin with `prefix`, by name.
    #[pyo3(signature = (prefix = ""))]
    fn list(&self, py: Python<'_>, prefix: &str) -> Result<Vec<(String, u64)>> {
        let listing = self.run(py, self.volume.list(prefix))?;
        let objects = listing.objects.into_iter();
        Ok(objects.map(|(name, listed)| (name.as_str().to_owned(), listed.length)).collect())
    }

    /// Removes an object.
    fn remove(&self, py: Python<'_>, name: &str) -> Result<()> {
        let name = ObjectName::new(name)?;
        self.run(py, self.volume.remove(&name))?;
        Ok(())
    }

    /// Looks for an object's shards on all nodes; with `deep`, reads every block of them.
    #[pyo3(signature = (name, *, deep = false))]
    fn verify(&self, py: Python<'_>, name: &str, deep: bool) -> Result<Verdict> {
        let name = ObjectName::new(name)?;
        let verdict = self.run(py, self.volume.verify(&name, deep))?;
        Ok(Verdict {
            name: verdict.name.as_str().to_owned(),
            health: health(verdict.health),
            stage: verdict.stage,
            stages: verdict.stages,
            missing: verdict.missing,
            tolerable: verdict.spare,
            flaws: verdict.flaws.iter().map(ToString::to_string).collect(),
        })
    }

    /// Makes an object whole again; with `deep`, reads every block of it first.
    #[pyo3(signature = (name, *, deep = false))]
    fn repair(&self, py: Python<'_>, name: &str, deep: bool) -> Result<RepairedObject> {
        let name = ObjectName::new(name)?;
        Ok(self.run(py, self.volume.repair(&name, deep))?.into())
    }

    /// Adds the parity of the next stage to an object of a code with delayed parity.
    fn promote(&self, py: Python<'_>, name: &str) -> Result<RepairedObject> {
        let name = ObjectName::new(name)?;
        Ok(self.run(py, self.volume.promote(&name))?.into())
    }

    /// Cuts an object by the code that the volume file names now, if it has another. Returns
    /// whether it had. If somebody replaces or removes the object meanwhile, that counts.
    fn reencode(&self, py: Python<'_>, name: &str) -> Result<bool> {
        let name = ObjectName::new(name)?;
        let done = self.run(py, self.volume.reencode(&name))?;
        Ok(matches!(done, Reencoded::Changed(_)))
    }

    /// Returns the names of the objects that wait for promotion, those first that have waited
    /// longest.
    #[pyo3(signature = (prefix = ""))]
    fn backlog(&self, py: Python<'_>, prefix: &str) -> Result<Vec<String>> {
        let names = self.run(py, async { Ok(self.volume.backlog(prefix).await) })?;
        Ok(names.iter().map(|name| name.as_str().to_owned()).collect())
    }

    /// Returns the names of all objects, the least protected first.
    #[pyo3(signature = (prefix = ""))]
    fn most_urgent_first(&self, py: Python<'_>, prefix: &str) -> Result<Vec<String>> {
        let names = self.run(py, self.volume.most_urgent_first(prefix))?;
        Ok(names.iter().map(|name| name.as_str().to_owned()).collect())
    }

    /// Returns the state of the nodes, and how much waits for repair and promotion.
    fn status(&self, py: Python<'_>) -> Result<VolumeStatus> {
        let status = self.run(py, self.volume.status())?;
        let problems = status.nodes.into_iter().map(|node| (node.name, node.problem));
        Ok(VolumeStatus {
            nodes: problems.collect(),
            tolerance: status.tolerance,
            owed: status.owed.objects,
            backlog: status.backlog.objects,
        })
    }

    fn __repr__(&self) -> String {
        format!("<Volume: {} over {} nodes>", self.code(), self.volume.node_count())
    }
}

impl Volume {
    /// Runs work without the interpreter, until it ends or Ctrl-C is pressed.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Future<Output = paritas_volume::Result<T>> + Send,
    ) -> Result<T> {
        let is_interrupted = || Python::attach(|py| py.check_signals().is_err());
        Ok(py.detach(|| self.runner.run(work, is_interrupted))?)
    }

    fn put_from(
        &self,
        py: Python<'_>,
        name: &str,
        source: impl Read + Send + 'static,
        options: PutOptions,
    ) -> Result<ObjectInfo> {
        let name = ObjectName::new(name)?;
        let report = self.run(py, self.volume.put(&name, source, options))?;
        Ok(ObjectInfo {
            name: name.as_str().to_owned(),
            length: report.listed.length,
            digest: report.digest.to_string(),
            code: (!report.is_inline).then(|| self.code()),
            nodes: report.nodes.into_iter().map(Some).collect(),
            is_owed: report.is_owed,
        })
    }
}

/// A Python object with `read(n)`.
struct Reader {
    file: Py<PyAny>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |py: Python<'_>| -> Result<usize> {
            let bytes = self.file.call_method1(py, "read", (buffer.len(),))?;
            let source = Source::of(bytes.bind(py))?;
            let bytes = source.as_ref();
            let place = buffer.get_mut(..bytes.len());
            let place =
                place.ok_or_else(|| wrong_argument("`read(n)` returned more than n bytes"))?;
            place.copy_from_slice(bytes);
            Ok(bytes.len())
        };
        Python::attach(read).map_err(|failure| PyErr::from(failure).into())
    }
}

/// What is known of an object.
#[pyclass(frozen, get_all, module = "paritas")]
pub struct ObjectInfo {
    /// Its name.
    name: String,
    /// Its length in bytes.
    length: u64,
    /// The BLAKE3 of its bytes in hexadecimal digits.
    digest: String,
    /// The spec of its code, or `None` if it is kept in its manifests because it is small.
    code: Option<String>,
    /// The node of each shard, as far as it is known.
    nodes: Vec<Option<String>>,
    /// Whether a put left something for repair.
    is_owed: bool,
}

impl ObjectInfo {
    fn of(name: &ObjectName, object: &Object) -> Self {
        Self {
            name: name.as_str().to_owned(),
            length: object.length(),
            digest: object.digest().to_string(),
            code: object.code(),
            nodes: object.nodes(),
            is_owed: false,
        }
    }
}

/// How an object is protected.
#[pyclass(frozen, get_all, module = "paritas")]
pub struct Verdict {
    /// Its name.
    name: String,
    /// `intact`, `repairable`, `unknown` or `lost`.
    health: &'static str,
    /// The stage that its parity has reached.
    stage: u8,
    /// The number of stages of its code.
    stages: u8,
    /// The numbers of the shards that are missing.
    missing: Vec<usize>,
    /// The number of further shards that may be lost.
    tolerable: usize,
    /// What is wrong on nodes.
    flaws: Vec<String>,
}

fn health(health: Health) -> &'static str {
    match health {
        Health::Intact => "intact",
        Health::Repairable => "repairable",
        Health::Unknown => "unknown",
        Health::Lost => "lost",
    }
}

/// What a repair or promotion did to an object.
#[pyclass(frozen, get_all, module = "paritas")]
pub struct RepairedObject {
    /// Its name.
    name: String,
    /// The number of shards that were written.
    stored: usize,
    /// Whether something is left for another repair.
    is_owed: bool,
    /// The number of bytes of shards that were read.
    read_bytes: u64,
    /// What is wrong on nodes.
    flaws: Vec<String>,
}

impl From<paritas_volume::Repaired> for RepairedObject {
    fn from(repaired: paritas_volume::Repaired) -> Self {
        Self {
            name: repaired.name.as_str().to_owned(),
            stored: repaired.stored,
            is_owed: repaired.is_owed,
            read_bytes: repaired.read_bytes,
            flaws: repaired.flaws.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The state of a volume.
#[pyclass(frozen, get_all, module = "paritas")]
pub struct VolumeStatus {
    /// The nodes, each with what is wrong with it.
    nodes: Vec<(String, Option<String>)>,
    /// The number of nodes that may be lost.
    tolerance: usize,
    /// The number of objects that wait for repair.
    owed: usize,
    /// The number of objects that wait for promotion.
    backlog: usize,
}
