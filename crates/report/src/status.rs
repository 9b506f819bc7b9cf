//! Lines that several commands print: progress, warnings, errors and summaries.

use schemars::JsonSchema;
use serde::Serialize;

/// The progress of a running job.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ProgressLine {
    /// The number of bytes done.
    pub bytes: u64,
    /// The number of bytes to do; null if unknown.
    pub total: Option<u64>,
    /// The number of bytes per second.
    pub rate: f64,
    /// The remaining seconds; null if unknown.
    pub eta_s: Option<f64>,
}

/// A warning, printed on standard error.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WarningLine {
    /// The text of the warning.
    pub message: String,
}

/// The reason why the command failed; the last line, on standard error.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ErrorLine {
    /// The exit code.
    #[schemars(extend("enum" = [1, 2, 3, 4, 5, 6, 7, 8, 130, 143]))]
    pub code: u8,
    /// The name of the exit code.
    pub kind: ExitWord,
    /// The text of the error: what failed, and what to do.
    pub message: String,
}

/// The name of an exit code other than 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExitWord {
    /// Damaged, but repairable; or so much has changed that an update is refused.
    Repairable,
    /// Damaged beyond repair.
    Lost,
    /// Bad arguments or parameters.
    Arguments,
    /// Nothing was recognised.
    NotRecognised,
    /// The final check failed, or parity is wrong.
    CheckFailed,
    /// Input or output failed.
    Io,
    /// A bug.
    Internal,
    /// Out of memory.
    Memory,
    /// Interrupted by the user.
    Interrupted,
    /// Ended by the signal SIGTERM.
    Terminated,
}

/// The summary of `verify` or `repair`, unless they found exactly one object.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct SummaryLine {
    /// The number of objects.
    pub objects: u64,
    /// The number of objects that are intact.
    pub intact: u64,
    /// The number of objects that are damaged and can be repaired.
    pub repairable: u64,
    /// The number of objects that were damaged and have been repaired.
    pub repaired: u64,
    /// The number of objects that are beyond repair.
    pub lost: u64,
    /// The number of objects whose parity differs from what the code computes from their data.
    pub inconsistent: u64,
    /// The number of objects whose state is unknown, because something could not be read or
    /// written.
    pub unknown: u64,
    /// The number of bytes of all objects of known length.
    pub bytes: u64,
    /// The number of seconds that the work took.
    pub seconds: f64,
    /// The number of bytes per second.
    pub rate: f64,
}
