//! Python objects that have `read(n)`, as sources of puts.
//!
//! A thread of Python's own calls `read` (`paritas/_sources.py`), and its bytes come by a channel.
//! When the program ends, Python ends every thread that is about to run Python code. Threads that
//! Python has started survive this; a thread of Rust, with functions of Rust below those of Python,
//! would crash the program.

use std::io::{self, Cursor, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::buffers::Source;
use crate::errors::{Result, wrong_argument};

/// The function of Python that begins to read.
static BEGIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Imports what [`begin`] needs: when objects are freed at the end of the program, Python imports
/// nothing any more.
pub fn prepare(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    BEGIN.import(py, "paritas._sources", "begin")
}

/// Begins to read an object. No `read` begins after the [`Reading`] is dropped.
pub fn begin(object: &Bound<'_, PyAny>) -> Result<(SourceReader, Reading)> {
    let ((wants, wanted), (gives, given)) = (channel(), channel());
    let shared = Arc::new(ReadingState::default());
    let feed = Feed { wanted: Mutex::new(wanted), gives, shared: Arc::clone(&shared) };
    prepare(object.py())?.call1((feed, object.getattr("read")?))?;
    let reader = SourceReader { wants, given, left: Cursor::default(), is_at_end: false };
    Ok((reader, Reading(shared)))
}

/// The bytes of the object, for any thread.
pub struct SourceReader {
    wants: Sender<usize>,
    given: Receiver<io::Result<Vec<u8>>>,
    /// The part of the last bytes that was not read yet.
    left: Cursor<Vec<u8>>,
    is_at_end: bool,
}

impl Read for SourceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.position() == self.left.get_ref().len() as u64 && !self.is_at_end {
            // Where all was given beforehand, nobody takes this.
            let _ = self.wants.send(buffer.len());
            let ended = |_| Err(io::Error::other("the source is not read any longer"));
            self.left = Cursor::new(self.given.recv().unwrap_or_else(ended)?);
            self.is_at_end = self.left.get_ref().is_empty();
        }
        self.left.read(buffer)
    }
}

/// The caller's side: reading ends when it is dropped.
pub struct Reading(Arc<ReadingState>);

impl Reading {
    /// Takes the exception that `read` raised.
    pub fn take_failure(&self) -> Option<PyErr> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct ReadingState {
    is_over: AtomicBool,
    failure: Mutex<Option<PyErr>>,
}

/// The side of the thread that calls `read`.
#[pyclass(frozen)]
struct Feed {
    wanted: Mutex<Receiver<usize>>,
    gives: Sender<io::Result<Vec<u8>>>,
    shared: Arc<ReadingState>,
}

#[pymethods]
impl Feed {
    /// Waits until bytes are wanted, and returns how many, or `None` if no more will be.
    fn wanted(&self, py: Python<'_>) -> Option<usize> {
        let wait = || self.wanted.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        py.detach(wait).filter(|_| !self.shared.is_over.load(Ordering::Relaxed))
    }

    /// Takes what `read(wanted)` returned. Returns whether it was the end of the source.
    fn give(&self, py: Python<'_>, content: &Bound<'_, PyAny>, wanted: usize) -> Result<bool> {
        let source = Source::of(content)?;
        let bytes = py.detach(|| source.as_ref().to_vec());
        if bytes.len() > wanted {
            return Err(wrong_argument("`read(n)` returned more than n bytes"));
        }
        let is_end = bytes.is_empty();
        // A put that failed takes nothing more.
        let _ = self.gives.send(Ok(bytes));
        Ok(is_end)
    }

    /// Takes the exception that ends reading.
    fn fail(&self, error: Bound<'_, PyAny>) {
        let error = PyErr::from_value(error);
        let message = io::Error::other(error.to_string());
        *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        let _ = self.gives.send(Err(message));
    }
}
