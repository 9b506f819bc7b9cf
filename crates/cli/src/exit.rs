//! Exit codes. They are a superset of par2's, which scripts already know.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use paritas_report::status::ExitWord;
use paritas_shards::shown;
use signal_hook::consts::SIGABRT;
#[cfg(feature = "volume")]
use signal_hook::consts::{SIGINT, SIGTERM};

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done, or everything intact.
    Done = 0,
    /// Damaged, but repairable; or so much has changed that an update is refused.
    Repairable = 1,
    /// Damaged beyond repair: too few good blocks.
    Lost = 2,
    /// Bad arguments or parameters.
    Arguments = 3,
    /// No shard set and no protection was recognised.
    NotRecognised = 4,
    /// Repair or decode finished, but the final check failed, or parity is wrong.
    CheckFailed = 5,
    /// Input or output failed, or files that could not be opened decide the verdict.
    Io = 6,
    /// A bug.
    Internal = 7,
    /// Out of memory.
    Memory = 8,
    /// Interrupted by the user, as shells report it: 128 plus the number of the signal.
    Interrupted = 130,
    /// Ended by the signal SIGTERM, likewise.
    #[cfg(feature = "volume")]
    Terminated = 143,
}

impl Exit {
    /// Returns the name of the code in error reports. To fail with [`Exit::Done`] would be a bug.
    pub fn word(self) -> ExitWord {
        match self {
            Self::Done | Self::Internal => ExitWord::Internal,
            Self::Repairable => ExitWord::Repairable,
            Self::Lost => ExitWord::Lost,
            Self::Arguments => ExitWord::Arguments,
            Self::NotRecognised => ExitWord::NotRecognised,
            Self::CheckFailed => ExitWord::CheckFailed,
            Self::Io => ExitWord::Io,
            Self::Memory => ExitWord::Memory,
            Self::Interrupted => ExitWord::Interrupted,
            #[cfg(feature = "volume")]
            Self::Terminated => ExitWord::Terminated,
        }
    }
}

/// The reason of a failed run, and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The message to the user.
    pub message: String,
}

impl Failure {
    /// Creates the failure for bad arguments.
    pub fn arguments(message: impl Into<String>) -> Self {
        Self { exit: Exit::Arguments, message: message.into() }
    }

    /// Creates the failure for paths without anything recognisable.
    pub fn not_recognised(message: impl Into<String>) -> Self {
        Self { exit: Exit::NotRecognised, message: message.into() }
    }

    /// Creates the failure for an error of input or output. `what` names the action.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self { exit: Exit::Io, message: format!("{what}: {error}") }
    }

    /// Creates the failure for an allocation of `bytes` bytes that the system refused.
    pub fn memory(bytes: usize) -> Self {
        Self { exit: Exit::Memory, message: format!("there is no memory for {bytes} bytes") }
    }

    /// Creates the failure for a bug.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { exit: Exit::Internal, message: message.into() }
    }
}

/// Makes the process end with [`Exit::Memory`] if a small allocation fails, which Rust reports
/// before it aborts. A panic within a panic aborts, too, but keeps its own exit. Neither loses
/// anything: no file has its final name before it is whole.
pub fn when_memory_is_out() {
    let abort_means_memory = Arc::new(AtomicBool::new(true));
    let panicked = Arc::clone(&abort_means_memory);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        panicked.store(false, Ordering::Relaxed);
        report(panic);
    }));
    let exit = Exit::Memory as i32;
    // Registration fails only for signals that cannot be caught, and SIGABRT can. If it failed, the
    // process would end with an abort.
    let _ = signal_hook::flag::register_conditional_shutdown(SIGABRT, exit, abort_means_memory);
}

/// Makes a write beyond the limit on the size of files (`ulimit -f`) fail, as one on a full disk
/// does. Without this, a signal would end the process without a word.
pub fn when_files_are_limited() {
    // The flag that the handler sets is not read; the write's error says what happened.
    // Registration fails only for signals that cannot be caught, and SIGXFSZ can.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Makes a second Ctrl-C or SIGTERM end the process at once, and sets `is_terminated` when SIGTERM
/// comes. From then on, the first signal does not end the process by itself, so something that ends
/// it cleanly must already wait for that signal.
#[cfg(feature = "volume")]
pub fn at_second_signal(is_terminated: &Arc<AtomicBool>) {
    let is_second = Arc::new(AtomicBool::new(false));
    // Registration fails only for signals that cannot be caught, and these can. Handlers run in
    // the order in which they were registered, so the first signal sees that it is the first.
    for (signal, exit) in [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)] {
        let end = signal_hook::flag::register_conditional_shutdown;
        let _ = end(signal, exit as i32, Arc::clone(&is_second));
        let _ = signal_hook::flag::register(signal, Arc::clone(&is_second));
    }
    let _ = signal_hook::flag::register(SIGTERM, Arc::clone(is_terminated));
}

/// Refuses a path that is not a folder or does not exist. A missing folder is not created, because
/// its disk may not be mounted.
pub fn require_folder(flag: &str, folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    let (folder, exists) = (shown(folder), without_slash(folder).exists());
    Err(Failure::arguments(match exists {
        true => format!("{flag} {folder} is not a folder"),
        false => {
            format!("{flag} {folder}: the folder must exist; create it, or mount its disk")
        }
    }))
}

/// Returns a path without the slash at its end, with which the system would not find a file.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Creates the folder of `--out` if it does not exist. Refuses a path that is something else.
pub fn make_out(folder: &Path) -> Result<NewFolders, Failure> {
    make_folder_of("--out ", folder)
}

/// Creates a folder if it does not exist, and those above it. Refuses a path that is something
/// else.
pub fn make_folder(folder: &Path) -> Result<NewFolders, Failure> {
    make_folder_of("", folder)
}

/// Does what [`make_folder`] does. The message begins with the `flag` that gave the folder.
fn make_folder_of(flag: &str, folder: &Path) -> Result<NewFolders, Failure> {
    let plain = without_slash(folder);
    if plain.exists() && !plain.is_dir() {
        return Err(Failure::arguments(format!("{flag}{} is not a folder", shown(folder))));
    }
    let is_new = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let new = NewFolders(folder.ancestors().take_while(is_new).map(Path::to_owned).collect());
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::io(format!("making {}", shown(folder)), &error))?;
    Ok(new)
}

/// Folders that a command has created, the inner ones first. Those that are still empty when the
/// command ends are removed.
#[must_use]
pub struct NewFolders(Vec<PathBuf>);

impl Drop for NewFolders {
    fn drop(&mut self) {
        // A folder with something in it stays, and so do those above it.
        let _ = self.0.iter().try_for_each(std::fs::remove_dir);
    }
}

/// Returns a library's message with flags in place of `fields`, the fields of jobs that it names.
pub fn with_flags(message: &str, fields: &[&str]) -> String {
    fields.iter().fold(message.to_owned(), |text, field| {
        let flag = match *field {
            "label" => "--name".to_owned(),
            "parity_dirs" => "--parity-dir".to_owned(),
            "excludes" => "--exclude".to_owned(),
            field => format!("--{}", field.replace('_', "-")),
        };
        text.replace(&format!("`{field}`"), &flag)
    })
}

impl From<paritas::Error> for Failure {
    fn from(error: paritas::Error) -> Self {
        let exit = match error.kind() {
            paritas::ErrorKind::Spec
            | paritas::ErrorKind::Parameters
            | paritas::ErrorKind::Kernel => Exit::Arguments,
            paritas::ErrorKind::NotEnough => Exit::Lost,
            paritas::ErrorKind::Memory => Exit::Memory,
            _ => Exit::Internal,
        };
        Self { exit, message: error.to_string() }
    }
}

impl From<paritas_tune::Error> for Failure {
    fn from(error: paritas_tune::Error) -> Self {
        match error {
            paritas_tune::Error::Core(error) => error.into(),
            paritas_tune::Error::Memory(bytes) => Self::memory(bytes),
            error @ (paritas_tune::Error::NoPackets(_) | paritas_tune::Error::NoRoom { .. }) => {
                Self::arguments(error.to_string())
            }
            other => Self::internal(other.to_string()),
        }
    }
}

impl From<paritas_store::error::Error> for Failure {
    fn from(error: paritas_store::error::Error) -> Self {
        use paritas_store::error::ErrorKind;
        let exit = match error.kind() {
            ErrorKind::Parameters | ErrorKind::Exists | ErrorKind::Ambiguous => Exit::Arguments,
            ErrorKind::NotFound | ErrorKind::NotRecognised => Exit::NotRecognised,
            ErrorKind::TooFewShards => Exit::Lost,
            ErrorKind::DigestMismatch => Exit::CheckFailed,
            // The old parity can repair what is changed or gone.
            ErrorKind::TooManyChanges => Exit::Repairable,
            ErrorKind::Memory => Exit::Memory,
            ErrorKind::Cancelled => Exit::Interrupted,
            ErrorKind::Io
            | ErrorKind::Busy
            | ErrorKind::Refused
            | ErrorKind::Unsupported
            | ErrorKind::TooFewNodes => Exit::Io,
            _ => Exit::Internal,
        };
        Self { exit, message: with_flags(&error.to_string(), error.fields()) }
    }
}
