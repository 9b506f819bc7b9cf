//! Finds what is fastest on this machine: measured in pairs, remembered, and handed to the core as
//! options.
//!
//! The crate `paritas` runs a code as [`CodecOptions`] say and reads neither files nor the
//! environment. This crate finds such options. [`measure`](mod@measure) compares two programs on a
//! machine that is not quiet. [`find`] uses it to choose between kernels, schedules, stores,
//! threads, splits and packets. [`RememberedFolder`] keeps the findings in the user's cache
//! directory, and [`codec_options`] reads them from there. [`packet_by_rule`] is the dissertation's
//! rule for packets.
//!
//! Tuning decides only *how* bytes are computed. The bytes that are computed, and so the stored
//! bytes, never depend on it.
//!
//! ```
//! use paritas::{Code, Codec};
//! let code = Code::new(&"10+4".parse()?)?;
//! let options = paritas_tune::codec_options(code.spec());
//! let codec = Codec::with_options(code, options)?;
//! # Ok::<(), paritas::Error>(())
//! ```

pub mod measure;

mod contest;
mod decide;
mod error;
mod memory;
mod packet_rule;
mod packets;
mod tuning;

use paritas::research::Objective;
use paritas::{CodecOptions, Spec};

pub use decide::find;
pub use error::{Error, Result};
pub use memory::RememberedFolder;
pub use packet_rule::{CpuCache, caches, packet_by_rule};
pub use packets::{PACKET_ROUNDS, PACKET_SETS, find_packets};
pub use tuning::{Choice, CodeTuning, Decision, Tuning};

/// Codes that are measured by default.
pub const USUAL_CODES: [&str; 6] = ["4+2", "6+3", "8+3", "10+4", "12+4", "20+4"];

/// Returns the options for a code as tuned for this machine, or the built-in ones if nothing was
/// tuned.
pub fn codec_options(code: &Spec) -> CodecOptions {
    Tuning::remembered().map_or_else(CodecOptions::default, |tuning| tuning.options(code))
}

/// Returns the packet size with which a code is encoded fastest on this machine; `None` if it was
/// not measured. [`codec_options`] leaves it out, because the packet size is part of the stored
/// format.
pub fn packet(code: &Spec) -> Option<usize> {
    Tuning::remembered()?.packet(code)
}

/// Returns the cost of an XOR in thousandths of the cost of a copy, for [`Objective::Weighted`]: as
/// measured on this machine, or as printed in the dissertation if nothing was measured.
pub fn xor_weight() -> u32 {
    Tuning::remembered().map_or(Objective::PRINTED_WEIGHT, |tuning| tuning.xor_weight)
}
