//! The memory of Python objects as slices of bytes, without copies.
//!
//! An object is exported by the buffer protocol: it stays alive and keeps its length and place as
//! long as the export lives. The protocol does not prevent another thread from writing to it
//! meanwhile. The caller must avoid this, as with every library that releases the interpreter; the
//! documentation of the package says so.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PySequence, PyString, PyTuple};

use crate::errors::{Result, wrong_argument};

/// The memory of an object that is read.
pub struct Source(PyUntypedBuffer);

impl Source {
    /// Exports an object's memory, which must be one piece.
    pub fn of(object: &Bound<'_, PyAny>) -> Result<Self> {
        let buffer = export(object)?;
        if !buffer.is_c_contiguous() {
            return Err(wrong_argument("a buffer must be contiguous in memory (C order)"));
        }
        match has_objects(&buffer.format().to_string_lossy()) {
            false => Ok(Self(buffer)),
            true => Err(wrong_argument("a buffer must hold bytes or numbers; got Python objects")),
        }
    }
}

/// Exports an object's memory. Some objects, such as those of ctypes, leave optional fields of the
/// export empty; for these, a memoryview of the object is exported, which fills them in.
fn export(object: &Bound<'_, PyAny>) -> Result<PyUntypedBuffer> {
    let is_refused = |error: &PyErr| error.is_instance_of::<PyBufferError>(object.py());
    match PyUntypedBuffer::get(object) {
        Err(error) if is_refused(&error) => {
            let view = PyMemoryView::from(object)?.into_any();
            if view.getattr("ndim")?.eq(0)? {
                return Err(wrong_argument("a buffer must have a dimension; got a single number"));
            }
            Ok(PyUntypedBuffer::get(&view)?)
        }
        buffer => Ok(buffer?),
    }
}

/// Whether a buffer's format has references to objects, which must not be copied or overwritten as
/// bytes. Names of fields are between colons.
fn has_objects(format: &str) -> bool {
    format.split(':').step_by(2).any(|types| types.contains('O'))
}

impl AsRef<[u8]> for Source {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the export is contiguous, alive as long as `self`, and `len_bytes` long. No one
        // writes to it meanwhile: see the module.
        unsafe { read_slice(self.0.buf_ptr().cast_const().cast(), self.0.len_bytes()) }
    }
}

/// # Safety
/// `length` bytes from `start` must be readable as long as the result lives, and not be written
/// meanwhile; `start` may be null if `length` is 0.
unsafe fn read_slice<'a>(start: *const u8, length: usize) -> &'a [u8] {
    match length {
        0 => &[],
        // SAFETY: as the caller says.
        _ => unsafe { slice::from_raw_parts(start, length) },
    }
}

/// The caller's names for shards.
#[derive(Clone, Copy)]
pub enum Names<'a> {
    /// The items of an argument.
    All(&'a str),
    /// Items of an argument, by their numbers.
    Some(&'a str, &'a [usize]),
    /// Arguments of their own.
    Own(&'a [&'a str]),
}

impl Names<'_> {
    fn of(self, shard: usize) -> String {
        match self {
            Self::All(name) => format!("{name}[{shard}]"),
            Self::Some(name, items) => format!("{name}[{}]", items[shard]),
            Self::Own(names) => names[shard].to_owned(),
        }
    }
}

/// Shards in the memory of Python objects: one object each, or the rows of one array.
pub struct Shards<'a> {
    /// The exports, which keep the memory in place.
    exports: Vec<PyUntypedBuffer>,
    /// The place of each shard.
    places: Vec<Place>,
    names: Names<'a>,
    is_array: bool,
}

#[derive(Clone, Copy)]
struct Place {
    start: *mut u8,
    length: usize,
    is_readonly: bool,
}

impl<'a> Shards<'a> {
    /// Exports the memory of the argument `name`: a list, a tuple or another sequence of objects,
    /// or the rows of an array of two dimensions.
    pub fn of(object: &Bound<'_, PyAny>, name: &'a str) -> Result<Self> {
        let names = Names::All(name);
        if let Ok(list) = object.cast::<PyList>() {
            return Self::of_each(list.iter(), names);
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return Self::of_each(tuple.iter(), names);
        }
        let has_memory = !PyUntypedBuffer::get(object)
            .is_err_and(|error| error.is_instance_of::<PyTypeError>(object.py()));
        if !has_memory
            && !object.is_instance_of::<PyString>()
            && let Ok(sequence) = object.cast::<PySequence>()
        {
            let objects = sequence.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            return Self::of_each(objects.into_iter(), names);
        }
        Self::of_array(object, names).map_err(|error| error.about(name))
    }

    /// Exports the memory of each of several objects.
    pub fn of_each<'py>(
        objects: impl Iterator<Item = Bound<'py, PyAny>>,
        names: Names<'a>,
    ) -> Result<Self> {
        let (mut exports, mut places) = (Vec::new(), Vec::new());
        for (at, object) in objects.enumerate() {
            let exported = Source::of(&object);
            let Source(export) = exported.map_err(|error| error.about(names.of(at)))?;
            places.push(Place::of(&export));
            exports.push(export);
        }
        Ok(Self { exports, places, names, is_array: false })
    }

    fn of_array(object: &Bound<'_, PyAny>, names: Names<'a>) -> Result<Self> {
        let Source(export) = Source::of(object)?;
        let (whole, rows) = (Place::of(&export), export.shape().first().copied().unwrap_or(0));
        if export.dimensions() != 2 {
            let given = export.dimensions();
            return Err(wrong_argument(format!(
                "shards must be a list of buffers or an array of 2 dimensions; got {given}"
            )));
        }
        let length = whole.length.checked_div(rows).unwrap_or(0);
        let row =
            |row: usize| Place { start: whole.start.wrapping_add(row * length), length, ..whole };
        let (places, exports) = ((0..rows).map(row).collect(), vec![export]);
        Ok(Self { exports, places, names, is_array: true })
    }

    /// No shards.
    pub fn none() -> Self {
        let names = Names::Own(&[]);
        Self { exports: Vec::new(), places: Vec::new(), names, is_array: false }
    }

    /// Whether the shards are rows of one array.
    pub fn is_array(&self) -> bool {
        self.is_array
    }

    /// Refuses an array whose items are longer than a byte: a caller could take the new array with
    /// their parity for numbers, but parity is bytes.
    pub fn expect_bytes(&self) -> Result<()> {
        match self.exports.iter().find(|export| export.item_size() != 1) {
            None => Ok(()),
            Some(export) => Err(wrong_argument(format!(
                "an array must have items of one byte, or `parity` must be given; its items have {} \
                 bytes (numpy: data.view(numpy.uint8))",
                export.item_size()
            ))),
        }
    }

    /// Returns the length of the first shard.
    pub fn first_len(&self) -> usize {
        self.lengths().next().unwrap_or(0)
    }

    /// Returns the length of each shard.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.places.iter().map(|place| place.length)
    }

    /// Runs `work` on the bytes of shards to read and shards to write.
    ///
    /// # Errors
    /// If a shard to write is read-only or shares memory with another one; also the errors of
    /// `work`.
    pub fn with<R>(
        sources: &Shards<'_>,
        targets: &Self,
        work: impl FnOnce(&[&[u8]], &mut [&mut [u8]]) -> Result<R>,
    ) -> Result<R> {
        expect_apart(sources, targets)?;
        let read = |place: &Place| {
            // SAFETY: the place is in an export that `sources` keeps. No target shares memory with
            // it, so nothing here writes to it; for others see the module.
            unsafe { read_slice(place.start, place.length) }
        };
        let write = |place: &Place| match place.length {
            0 => &mut [][..],
            // SAFETY: the place is in a writable export that `targets` keeps, and shares memory
            // with no other shard.
            length => unsafe { slice::from_raw_parts_mut(place.start, length) },
        };
        let read: Vec<&[u8]> = sources.places.iter().map(read).collect();
        let mut write: Vec<&mut [u8]> = targets.places.iter().map(write).collect();
        work(&read, &mut write)
    }
}

impl Place {
    fn of(export: &PyUntypedBuffer) -> Self {
        let (start, length) = (export.buf_ptr().cast(), export.len_bytes());
        Self { start, length, is_readonly: export.readonly() }
    }

    fn range(&self) -> Range<usize> {
        let start = self.start.addr();
        start..start + self.length
    }
}

/// Checks that every target can be written, and that memory that is written has no other use in the
/// call.
fn expect_apart(sources: &Shards<'_>, targets: &Shards<'_>) -> Result<()> {
    if let Some(at) = targets.places.iter().position(|place| place.is_readonly) {
        let name = targets.names.of(at);
        return Err(wrong_argument(format!("{name} is read-only memory")));
    }
    let filled = |shards: &Shards<'_>, number: fn(usize) -> Option<usize>| -> Vec<_> {
        let filled = shards.places.iter().enumerate().filter(|(_, place)| place.length > 0);
        filled.map(|(at, place)| (place.range(), number(at))).collect()
    };
    let mut all = filled(sources, |_| None);
    all.extend(filled(targets, Some));
    all.sort_unstable_by_key(|(range, _)| range.start);
    // Ends of the memory that has been passed: of sources, and of targets with the number of the
    // target.
    let (mut read, mut written) = (0, (0, 0));
    for (range, target) in all {
        let shared = match target {
            _ if range.start < written.0 => Some(target.unwrap_or(written.1)),
            Some(_) if range.start < read => target,
            _ => None,
        };
        if let Some(at) = shared {
            let name = targets.names.of(at);
            return Err(wrong_argument(format!("{name} shares memory with another shard")));
        }
        match target {
            Some(at) => written = (range.end, at),
            None => read = range.end.max(read),
        }
    }
    Ok(())
}

/// Bytes that are being made: nobody else has the object yet, so its memory may be written, also by
/// a thread without the interpreter.
pub struct NewBytes<'py>(Bound<'py, PyBytes>);

impl<'py> NewBytes<'py> {
    /// Makes bytes of zeros. Other threads of the interpreter may run meanwhile.
    pub fn zeroed(py: Python<'py>, length: usize) -> PyResult<Self> {
        let size = ffi::Py_ssize_t::try_from(length).map_err(|_| {
            PyMemoryError::new_err(format!("there is no memory for {length} bytes"))
        })?;
        // SAFETY: without a content, the function makes a new object of this size, or raises an
        // exception. Its bytes are not initialised.
        let mut new = unsafe {
            let object = ffi::PyBytes_FromStringAndSize(ptr::null(), size);
            Self(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
        };
        let memory = new.uninitialised();
        py.detach(|| {
            // SAFETY: these are the bytes of `memory`.
            unsafe { ptr::write_bytes(memory.as_mut_ptr(), 0, memory.len()) }
        });
        Ok(new)
    }

    /// Copies bytes. Other threads of the interpreter may run meanwhile.
    pub fn copy_of(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut new = Self::zeroed(py, content.len())?;
        let memory = new.memory();
        py.detach(|| memory.copy_from_slice(content));
        Ok(new.finish())
    }

    /// Returns the memory of the bytes.
    pub fn memory(&mut self) -> &mut [u8] {
        let memory = self.uninitialised();
        // SAFETY: `zeroed` has initialised these bytes.
        unsafe { slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), memory.len()) }
    }

    /// Returns the bytes, which stay as they are from now on.
    pub fn finish(self) -> Bound<'py, PyBytes> {
        self.0
    }

    fn uninitialised(&mut self) -> &mut [MaybeUninit<u8>] {
        let object = self.0.as_ptr();
        // SAFETY: `object` is bytes.
        let (start, size) = unsafe { (ffi::PyBytes_AsString(object), ffi::PyBytes_Size(object)) };
        match usize::try_from(size) {
            // All empty bytes are one object.
            Err(_) | Ok(0) => &mut [],
            // SAFETY: only `self` has this object. Python neither reads nor moves it, because the
            // garbage collector does not know bytes. While the result lives, `self` is not used.
            Ok(size) => unsafe { slice::from_raw_parts_mut(start.cast(), size) },
        }
    }
}

/// Makes new byte arrays of zeros.
pub fn new_shards<'py>(
    py: Python<'py>,
    lengths: impl IntoIterator<Item = usize>,
) -> PyResult<Vec<Bound<'py, PyByteArray>>> {
    lengths.into_iter().map(|length| zeroed_array(py, length)).collect()
}

/// Makes a byte array of zeros. Other threads of the interpreter may run meanwhile.
fn zeroed_array(py: Python<'_>, length: usize) -> PyResult<Bound<'_, PyByteArray>> {
    let size = ffi::Py_ssize_t::try_from(length)
        .map_err(|_| PyMemoryError::new_err(format!("there is no memory for {length} bytes")))?;
    // SAFETY: without a content, the function makes a new object of this size, or raises an
    // exception. Its bytes are not initialised.
    let array = unsafe {
        let object = ffi::PyByteArray_FromStringAndSize(ptr::null(), size);
        Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyByteArray>()
    };
    // SAFETY: these are the bytes of the array. Only this function has it, so nobody else accesses
    // or moves them.
    let memory: &mut [MaybeUninit<u8>] = unsafe {
        slice::from_raw_parts_mut(ffi::PyByteArray_AsString(array.as_ptr()).cast(), length)
    };
    py.detach(|| memory.fill(MaybeUninit::new(0)));
    Ok(array)
}
