//! How work tells what it has done.

/// A function that is told, from any thread, the number of bytes done since it was last called.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);
