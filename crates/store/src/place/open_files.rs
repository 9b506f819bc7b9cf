//! Files that are opened in turns. The number of open files stays within what the system allows,
//! because an object may have more shards than a process may have descriptors.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::place::lock::hold;
use crate::place::positional::read_at;
use crate::place::system::{is_scarcity, open};

/// The files that are open.
#[derive(Debug)]
pub struct OpenFiles {
    state: Mutex<OpenState>,
    /// Signalled when a file is given back while a thread waits for one.
    returned: Condvar,
    /// Whether files are opened for writing, too.
    writable: bool,
}

#[derive(Debug)]
struct OpenState {
    /// The open files with their numbers, in the order in which they were opened. Each user of a
    /// file holds a reference to it.
    open: VecDeque<(usize, Arc<File>)>,
    /// The most files to have open.
    most: usize,
    /// The number of threads that wait for a descriptor.
    waiting: usize,
}

impl OpenFiles {
    /// Keeps at most `most` files open for reading (minimum 1).
    pub fn reading(most: usize) -> Arc<Self> {
        Self::new(most, false)
    }

    /// Keeps at most `most` files open for writing (minimum 1).
    pub(crate) fn writing(most: usize) -> Arc<Self> {
        Self::new(most, true)
    }

    fn new(most: usize, writable: bool) -> Arc<Self> {
        let state = OpenState { open: VecDeque::new(), most: most.max(1), waiting: 0 };
        Arc::new(Self { state: Mutex::new(state), returned: Condvar::new(), writable })
    }

    /// Calls `act` with the file of this number, which is opened if it is not open.
    ///
    /// # Errors
    /// If the file cannot be opened, or if `act` fails.
    pub fn with<R>(
        &self,
        number: usize,
        path: &Path,
        act: impl FnOnce(&File) -> io::Result<R>,
    ) -> io::Result<R> {
        let file = self.lend(number, path)?;
        let result = act(&file);
        self.give_back(file);
        result
    }

    /// Returns a file, and opens it if necessary. If the system has no more descriptors, closes
    /// another file, or waits until one is no longer in use.
    fn lend(&self, number: usize, path: &Path) -> io::Result<Arc<File>> {
        let mut state = self.lock();
        loop {
            if let Some((_, file)) = state.open.iter().find(|(open, _)| *open == number) {
                return Ok(Arc::clone(file));
            }
            if state.open.len() >= state.most {
                state.close_one();
            }
            let opened = open(path, OpenOptions::new().read(true).write(self.writable));
            let error = match opened {
                Ok(file) => {
                    if self.writable {
                        hold(&file);
                    }
                    return Ok(state.add(number, file));
                }
                Err(error) => error,
            };
            if !is_scarcity(&error) || state.open.is_empty() {
                return Err(error);
            }
            state.most = state.open.len();
            if !state.close_one() {
                state.waiting += 1;
                state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.waiting -= 1;
            }
        }
    }

    fn give_back(&self, file: Arc<File>) {
        let state = self.lock();
        drop(file);
        if state.waiting > 0 {
            self.returned.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenState {
    fn add(&mut self, number: usize, file: File) -> Arc<File> {
        let file = Arc::new(file);
        self.open.push_back((number, Arc::clone(&file)));
        file
    }

    /// Closes one file that is not in use. Returns whether there was such a file.
    fn close_one(&mut self) -> bool {
        let idle = self.open.iter().position(|(_, file)| Arc::strong_count(file) == 1);
        idle.is_some_and(|idle| self.open.remove(idle).is_some())
    }
}

/// Whether the content of a file is unknown because opening it failed with `error`. If the file
/// does not exist, its content is known.
pub fn is_unreadable(error: &io::Error) -> bool {
    !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Why a file could not be opened.
#[derive(Debug, Clone)]
pub struct OpenRefusal {
    /// The system's reason, in words.
    pub reason: String,
    /// Whether the file may be intact nevertheless.
    pub is_unreadable: bool,
}

/// A file that counts the bytes read from it, and the slices that were filled with them.
#[derive(Debug)]
pub struct Input<'a> {
    files: Arc<OpenFiles>,
    /// The file's number among `files`.
    number: usize,
    path: &'a Path,
    refusal: OnceLock<OpenRefusal>,
    read: AtomicU64,
    slices: AtomicU64,
}

impl<'a> Input<'a> {
    /// Opens a file. If this fails, [`Input::refusal`] tells why.
    pub fn open(files: &Arc<OpenFiles>, number: usize, path: &'a Path) -> Self {
        let input = Self {
            files: Arc::clone(files),
            number,
            path,
            refusal: OnceLock::new(),
            read: AtomicU64::new(0),
            slices: AtomicU64::new(0),
        };
        let _ = input.with_file(|_| Ok(0));
        input
    }

    fn with_file(&self, act: impl FnOnce(&File) -> io::Result<usize>) -> io::Result<usize> {
        let file = self.files.lend(self.number, self.path).inspect_err(|error| {
            let is_unreadable = is_unreadable(error);
            self.refusal.get_or_init(|| OpenRefusal { reason: error.to_string(), is_unreadable });
        })?;
        let result = act(&file);
        self.files.give_back(file);
        result
    }

    /// Returns why the file could not be opened, or `None` if it could.
    pub fn refusal(&self) -> Option<&OpenRefusal> {
        self.refusal.get()
    }

    /// Reads as [`read_at`] does, and counts what was read.
    pub(crate) fn read_at(&self, slices: &mut [IoSliceMut<'_>], offset: u64) -> io::Result<usize> {
        let ends = slices.iter().scan(0, |end, slice| {
            *end += slice.len();
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        let read = self.with_file(|file| read_at(file, slices, offset))?;
        let filled = ends.into_iter().filter(|&end| end <= read).count();
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        self.slices.fetch_add(filled as u64, Ordering::Relaxed);
        Ok(read)
    }

    /// Returns the number of bytes read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Returns the number of slices filled so far.
    pub fn read_slices(&self) -> u64 {
        self.slices.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::thread;

    /// Threads read more files than may be open. One further file does not exist.
    #[test]
    fn more_files_than_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> = (0..20).map(|i| folder.path().join(i.to_string())).collect();
        for (path, content) in paths.iter().zip(0_u8..) {
            fs::write(path, [content; 10]).unwrap();
        }
        let files = OpenFiles::reading(3);
        let open = |(number, path)| Input::open(&files, number, path);
        let inputs: Vec<_> =
            paths.iter().map(|path| path.as_path()).enumerate().map(open).collect();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for (content, input) in (0_u8..).zip(&inputs).cycle().take(200) {
                        let mut bytes = [99; 10];
                        let read = input.read_at(&mut [IoSliceMut::new(&mut bytes)], 0).unwrap();
                        assert_eq!((read, bytes), (10, [content; 10]));
                    }
                });
            }
        });
        let open = files.lock().open.len();
        assert!((1..=4).contains(&open), "{open}");
        assert_eq!((inputs[0].read_bytes(), inputs[0].read_slices()), (400, 40));
        let nowhere = folder.path().join("nowhere");
        let input = Input::open(&files, 20, &nowhere);
        assert!(!input.refusal().unwrap().is_unreadable);
    }
}
