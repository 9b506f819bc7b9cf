//! What is fastest on the machine at hand: measured in pairs, remembered, and handed to the core as options.
//!
//! The crate `paritas` runs a code as [`CodecOptions`] say and reads neither files nor the environment. This
//! crate finds such options out. [`measure`](mod@measure) compares two programs on a machine that is not quiet,
//! [`find`] uses it to choose between kernels, schedules, stores, threads and splits, and [`Memory`] keeps
//! what was found in the user's cache directory, from where [`codec_options`] takes it.
//!
//! Only *how* bytes are computed is tuned. What is computed, and so stored, never depends on it.
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
mod tuning;

use paritas::{CodecOptions, Objective, Spec};

pub use decide::find;
pub use error::{Error, Result};
pub use memory::Memory;
pub use tuning::{Choice, CodeTuning, Finding, Tuning};

/// The codes that are measured unless others are asked for.
pub const USUAL_CODES: [&str; 6] = ["4+2", "6+3", "8+3", "10+4", "12+4", "20+4"];

/// Returns the options for a code as tuned for this machine, or the built-in ones where nothing was tuned.
pub fn codec_options(code: &Spec) -> CodecOptions {
    Tuning::remembered().map_or_else(CodecOptions::default, |tuning| tuning.options(code))
}

/// Returns how many thousandths of a copy an XOR costs, for [`Objective::Weighted`]: as measured on this machine,
/// or as printed in the dissertation where nothing was measured.
pub fn xor_weight() -> u32 {
    Tuning::remembered().map_or(Objective::PRINTED_WEIGHT, |tuning| tuning.xor_weight)
}
