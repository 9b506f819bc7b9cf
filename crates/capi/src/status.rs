//! The outcome of a call: a status, and the message of the thread's last error.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use paritas_shards::State;

/// The outcome of a call. The numbers are the exit codes of the command `paritas`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::upper_case_acronyms)]
pub enum paritas_status {
    /// Done, or everything intact.
    PARITAS_OK = 0,
    /// Damaged, but repairable.
    PARITAS_REPAIRABLE = 1,
    /// Too few shards or blocks are left.
    PARITAS_LOST = 2,
    /// Bad arguments: a spec, a parameter, a pointer, a number of shards or a length.
    PARITAS_ARGUMENTS = 3,
    /// No shards were recognised, or there is no object of this name.
    PARITAS_NOT_RECOGNISED = 4,
    /// The final check of decoded data failed, or a block is not the block that the caller says it
    /// is.
    PARITAS_CHECK_FAILED = 5,
    /// Input or output failed.
    PARITAS_IO = 6,
    /// A fault of Paritas.
    PARITAS_INTERNAL = 7,
    /// The system lacks memory, or the volume file allows too little.
    PARITAS_MEMORY = 8,
}

use paritas_status::*;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: paritas_status,
    message: String,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn arguments(message: impl Into<String>) -> Self {
        Self { status: PARITAS_ARGUMENTS, message: message.into() }
    }

    pub(crate) fn not_recognised(message: impl Into<String>) -> Self {
        Self { status: PARITAS_NOT_RECOGNISED, message: message.into() }
    }

    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self { status: PARITAS_LOST, message: message.into() }
    }

    /// Something is damaged or left to do; the message says what.
    pub(crate) fn repairable(message: impl Into<String>) -> Self {
        Self { status: PARITAS_REPAIRABLE, message: message.into() }
    }

    pub(crate) fn check_failed(message: impl Into<String>) -> Self {
        Self { status: PARITAS_CHECK_FAILED, message: message.into() }
    }

    pub(crate) fn io(message: impl Into<String>) -> Self {
        Self { status: PARITAS_IO, message: message.into() }
    }
}

/// Returns the outcome for an object called `name` that was found in a state. An unknown state
/// depends on what `deciding` names; `why` is the end of the message.
pub(crate) fn outcome(state: State, name: &str, deciding: &str, why: &str) -> Result<()> {
    match state {
        State::Intact => Ok(()),
        State::Repairable => Err(Failure::repairable(format!("{name} is repairable{why}"))),
        State::Inconsistent => Err(Failure::check_failed(format!("{name} is inconsistent{why}"))),
        State::Unknown => Err(Failure::io(format!("{name}: {deciding} decide{why}"))),
        State::Lost => Err(Failure::lost(format!("{name} is damaged beyond repair{why}"))),
    }
}

impl From<paritas::Error> for Failure {
    fn from(error: paritas::Error) -> Self {
        use paritas::ErrorKind;
        let status = match error.kind() {
            ErrorKind::NotEnough => PARITAS_LOST,
            ErrorKind::Damaged => PARITAS_CHECK_FAILED,
            ErrorKind::Memory => PARITAS_MEMORY,
            ErrorKind::Internal => PARITAS_INTERNAL,
            _ => PARITAS_ARGUMENTS,
        };
        Self { status, message: error.to_string() }
    }
}

impl From<paritas_shards::Error> for Failure {
    fn from(error: paritas_shards::Error) -> Self {
        use paritas_shards::ErrorKind;
        let status = match error.kind() {
            ErrorKind::Parameters | ErrorKind::Exists | ErrorKind::Ambiguous => PARITAS_ARGUMENTS,
            ErrorKind::NotFound | ErrorKind::NotRecognised => PARITAS_NOT_RECOGNISED,
            ErrorKind::TooFewShards => PARITAS_LOST,
            ErrorKind::DigestMismatch => PARITAS_CHECK_FAILED,
            ErrorKind::TooManyChanges => PARITAS_REPAIRABLE,
            ErrorKind::Memory => PARITAS_MEMORY,
            ErrorKind::Internal => PARITAS_INTERNAL,
            _ => PARITAS_IO,
        };
        Self { status, message: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps a message for [`paritas_last_message`]. Bytes after a null byte are dropped.
fn remember(message: String) {
    let mut bytes = message.into_bytes();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    let message = CString::new(bytes).unwrap_or_default();
    // A thread that is ending no longer has a last message.
    let _ = LAST.try_with(|last| *last.borrow_mut() = message);
}

/// Runs the body of an exported function that returns a status. A panic becomes a status, too.
pub(crate) fn guard(call: impl FnOnce() -> Result<()>) -> paritas_status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => PARITAS_OK,
        Ok(Err(Failure { status, message })) => {
            remember(message);
            status
        }
        Err(_) => {
            remember("a fault of Paritas: it panicked, and wrote why to standard error".into());
            PARITAS_INTERNAL
        }
    }
}

/// Runs the body of an exported function that returns a value. If it fails, the value is `T`'s
/// default: 0.
pub(crate) fn value<T: Default>(call: impl FnOnce() -> Result<T>) -> T {
    let mut value = T::default();
    guard(|| {
        value = call()?;
        Ok(())
    });
    value
}

/// As [`value`], for a function that returns a pointer to something that lives on.
pub(crate) fn pointer<T>(call: impl FnOnce() -> Result<*const T>) -> *const T {
    value(|| call().map(Some)).unwrap_or(ptr::null())
}

/// Returns the message of the last failed call of this thread: a text in UTF-8, empty if no call
/// has failed.
///
/// Each thread has its own message, which calls of other threads do not change. Call this function
/// on the thread whose call failed, before that thread makes another call: the text stays valid
/// until the next call of the same thread, or until that thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn paritas_last_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the meaning of a status in a few English words, such as "damaged, but repairable". The
/// text stays valid for ever. For a number that is not a status, it is "unknown status".
#[unsafe(no_mangle)]
pub extern "C" fn paritas_status_text(status: c_int) -> *const c_char {
    let is = |known: paritas_status| status == known as c_int;
    let text = match () {
        () if is(PARITAS_OK) => c"done, or everything intact",
        () if is(PARITAS_REPAIRABLE) => c"damaged, but repairable",
        () if is(PARITAS_LOST) => c"too few shards or blocks are left",
        () if is(PARITAS_ARGUMENTS) => c"bad arguments",
        () if is(PARITAS_NOT_RECOGNISED) => c"nothing recognised, or no object of this name",
        () if is(PARITAS_CHECK_FAILED) => c"a final check failed",
        () if is(PARITAS_IO) => c"input or output failed",
        () if is(PARITAS_INTERNAL) => c"a fault of Paritas",
        () if is(PARITAS_MEMORY) => c"not enough memory",
        () => c"unknown status",
    };
    text.as_ptr()
}

/// Returns the version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn paritas_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the pointer is to this thread's last message, which no call replaces meanwhile.
        unsafe { CStr::from_ptr(paritas_last_message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn each_status_has_a_text_of_its_own() {
        let text = |status| {
            // SAFETY: the texts are constants that end with a null byte.
            unsafe { CStr::from_ptr(paritas_status_text(status)) }.to_str().unwrap()
        };
        let all: std::collections::BTreeSet<_> = (0..=8).map(text).collect();
        assert_eq!(all.len(), 9);
        assert_eq!(text(PARITAS_REPAIRABLE as c_int), "damaged, but repairable");
        assert_eq!((text(-1), text(9)), ("unknown status", "unknown status"));
        assert!(!all.contains("unknown status"));
    }

    #[test]
    fn a_panic_is_an_error() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let status = guard(|| panic!("on purpose"));
        std::panic::set_hook(hook);
        assert_eq!(status, PARITAS_INTERNAL);
        assert!(last().contains("panicked"));
    }

    #[test]
    fn messages_are_each_threads_own() {
        assert_eq!(guard(|| Err(Failure::arguments("mine\0rest"))), PARITAS_ARGUMENTS);
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
        assert_eq!(last(), "mine");
    }
}
