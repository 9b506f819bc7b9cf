//! Which word kernels there are, which this processor has, and which one serves.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::run::kernel::Executable;
use crate::run::select::{Kernel, KernelChoice};
use crate::run::words::multiplier::Multiplier;
use crate::run::words::program::WordProgram;
use crate::run::words::scalar::Scalar;
use crate::run::words::{self, engine};

/// A word kernel by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WordKernel {
    /// 64-bit registers.
    Scalar,
    /// Shuffled tables, SSSE3.
    Ssse3,
    /// Shuffled tables, NEON.
    Neon,
    /// Shuffled tables, AVX2.
    Avx2,
    /// Shuffled tables, AVX-512.
    Avx512,
    /// Affine transformations, 32-byte registers.
    Gfni256,
    /// Affine transformations, 64-byte registers.
    Gfni512,
}

impl WordKernel {
    /// All word kernels, the slowest first.
    pub const ALL: [Self; 7] = [
        Self::Scalar,
        Self::Ssse3,
        Self::Neon,
        Self::Avx2,
        Self::Avx512,
        Self::Gfni256,
        Self::Gfni512,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "words-scalar",
            Self::Ssse3 => "words-ssse3",
            Self::Neon => "words-neon",
            Self::Avx2 => "words-avx2",
            Self::Avx512 => "words-avx512",
            Self::Gfni256 => "words-gfni-avx2",
            Self::Gfni512 => "words-gfni-avx512",
        }
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => words::ssse3::Ssse3::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => words::avx2::Avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => words::avx512::Avx512::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256 => words::gfni::Gfni256::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512 => words::gfni::Gfni512::is_available(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => words::neon::Neon::is_available(),
            #[allow(unreachable_patterns, reason = "which kernels remain depends on the target")]
            _ => false,
        }
    }

    /// The word kernels that this processor can run, the slowest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// The fastest one that this processor can run.
    pub fn best() -> Self {
        Self::available().last().unwrap_or(Self::Scalar)
    }

    /// The word kernel that stands for a choice among the kernels of the packet layout: the best one
    /// that needs no more of the processor than the chosen kernel's generation has.
    pub(crate) fn resolve(choice: KernelChoice) -> Self {
        let KernelChoice::Only(kernel) = choice else { return Self::best() };
        let most = match kernel {
            Kernel::Scalar => Self::Scalar,
            Kernel::Sse2 => Self::Ssse3,
            Kernel::Avx2 | Kernel::JitAvx2 => Self::Avx2,
            _ => return Self::best(),
        };
        if most.is_available() { most } else { Self::Scalar }
    }

    /// Compiles a program for this kernel.
    ///
    /// # Errors
    /// When the processor cannot run it.
    pub(crate) fn compile(self, program: &WordProgram) -> Result<Executable> {
        let compiled = match self {
            Self::Scalar => engine::compile::<Scalar>(program),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => engine::compile::<words::ssse3::Ssse3>(program),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => engine::compile::<words::avx2::Avx2>(program),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => engine::compile::<words::avx512::Avx512>(program),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256 => engine::compile::<words::gfni::Gfni256>(program),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512 => engine::compile::<words::gfni::Gfni512>(program),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => engine::compile::<words::neon::Neon>(program),
            #[allow(unreachable_patterns, reason = "which kernels remain depends on the target")]
            _ => None,
        };
        let compiled = compiled.ok_or_else(|| self.unavailable())?;
        Ok(Executable::new(program.footprint(), compiled))
    }

    /// The error for a kernel that this processor cannot run.
    pub(crate) fn unavailable(self) -> Error {
        let names: Vec<&str> = Self::available().map(Self::name).collect();
        let names = names.join(", ");
        Error::kernel(format!("this processor has no {self} kernel; it has {names}"))
    }
}

impl fmt::Display for WordKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
