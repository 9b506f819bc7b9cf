//! Which kernels there are, which this processor has, and which one serves.
//!
//! The only place that asks the processor what it can do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
#[cfg(target_arch = "x86_64")]
use crate::run::jit::{self, Jit, assemble::Isa};
use crate::run::kernel::{self, Compiled, Executable};
use crate::run::program::Program;

/// A kernel by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kernel {
    /// Tiled, 64-bit words.
    Scalar,
    /// Tiled, SSE2.
    Sse2,
    /// Tiled, AVX2.
    Avx2,
    /// Tiled, AVX-512.
    Avx512,
    /// Tiled, NEON.
    Neon,
    /// Compiled, AVX2.
    JitAvx2,
    /// Compiled, AVX-512 on 32-byte vectors.
    JitAvx512Vl,
    /// Compiled, AVX-512 on 64-byte vectors.
    JitAvx512,
}

/// How and when programs are compiled.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only x86-64 has compiled kernels")
)]
pub(crate) struct Compiling {
    /// How many bytes a program runs over before it is compiled.
    pub(crate) patience: usize,
    /// Whether wide stripes from memory are prefetched by instructions.
    pub(crate) prefetch: bool,
}

/// What a caller may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KernelChoice {
    /// The best one for the program.
    #[default]
    Auto,
    /// This one where it suits the packets, else the best one.
    Prefer(Kernel),
    /// This one, or an error.
    Only(Kernel),
}

impl Kernel {
    /// All kernels, the plainest first.
    pub const ALL: [Self; 8] = [
        Self::Scalar,
        Self::Sse2,
        Self::Avx2,
        Self::Avx512,
        Self::Neon,
        Self::JitAvx2,
        Self::JitAvx512Vl,
        Self::JitAvx512,
    ];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
            Self::JitAvx2 => "jit-avx2",
            Self::JitAvx512Vl => "jit-avx512vl",
            Self::JitAvx512 => "jit-avx512",
        }
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => kernel::sse2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => kernel::avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => kernel::avx512::is_available(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => kernel::neon::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx2 => Isa::Avx2.is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx512Vl => Isa::Avx512Vl.is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx512 => Isa::Avx512.is_available(),
            #[allow(unreachable_patterns, reason = "which kernels remain depends on the target")]
            _ => false,
        }
    }

    /// The kernels that this processor can run, the plainest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// The bytes of a vector register.
    pub fn vector_bytes(self) -> usize {
        match self {
            Self::Scalar => 8,
            Self::Sse2 | Self::Neon => 16,
            Self::Avx2 | Self::JitAvx2 | Self::JitAvx512Vl => 32,
            Self::Avx512 | Self::JitAvx512 => 64,
        }
    }

    /// The widest available kernel whose registers fill packets of this size without a rest, or
    /// the plainest one.
    pub fn best(packet: usize) -> Self {
        Self::available().filter(|kernel| kernel.suits(packet)).last().unwrap_or(Self::Scalar)
    }

    /// Whether its registers fill packets of this size without a rest.
    pub fn suits(self, packet: usize) -> bool {
        packet.is_multiple_of(self.vector_bytes())
    }

    /// Makes a program ready for this kernel; `how` is for compiled ones.
    ///
    /// # Errors
    /// When the processor cannot run it.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(unused_variables, reason = "only x86-64 has compiled kernels")
    )]
    pub(crate) fn compile(self, program: &Program, how: Compiling) -> Result<Executable> {
        let footprint = program.footprint();
        let compiled = match self {
            Self::Scalar => kernel::scalar::compile(program),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => kernel::sse2::compile(program),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => kernel::avx2::compile(program),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => kernel::avx512::compile(program),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => kernel::neon::compile(program),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx2 => jit(program, Isa::Avx2, how),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx512Vl => jit(program, Isa::Avx512Vl, how),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx512 => jit(program, Isa::Avx512, how),
            #[allow(unreachable_patterns, reason = "which kernels remain depends on the target")]
            _ => None,
        };
        let compiled = compiled.ok_or_else(|| self.unavailable())?;
        Ok(Executable::new(footprint, compiled))
    }

    /// The machine code of a program, an instruction a line, for kernels that are compiled.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(unused_variables, reason = "only x86-64 has compiled kernels")
    )]
    pub(crate) fn listing(self, program: &Program) -> Option<String> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx2 => Jit::listing(program, Isa::Avx2),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx512Vl => Jit::listing(program, Isa::Avx512Vl),
            #[cfg(target_arch = "x86_64")]
            Self::JitAvx512 => Jit::listing(program, Isa::Avx512),
            _ => None,
        }
    }

    /// The error for a kernel that this processor cannot run.
    pub(crate) fn unavailable(self) -> Error {
        let names: Vec<&str> = Self::available().map(Self::name).collect();
        let names = names.join(", ");
        Error::kernel(format!("this processor has no {self} kernel; it has {names}"))
    }
}

/// Whether this process may run compiled kernels.
///
/// # Errors
/// The reason why not: the system's, or that there are none for this architecture.
pub fn can_compile() -> Result<(), String> {
    #[cfg(target_arch = "x86_64")]
    return jit::probe();
    #[cfg(not(target_arch = "x86_64"))]
    return Err(format!("there is no compiler for {}", std::env::consts::ARCH));
}

/// A compiled kernel, with the tiled one of the same registers beside it.
#[cfg(target_arch = "x86_64")]
fn jit(program: &Program, isa: Isa, how: Compiling) -> Option<Box<dyn Compiled>> {
    let tiled = match isa {
        Isa::Avx2 | Isa::Avx512Vl => kernel::avx2::compile(program),
        Isa::Avx512 => kernel::avx512::compile(program),
    };
    Jit::prepare(program, isa, tiled, how)
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many bytes of buffers a program runs over before [`KernelChoice::Auto`] has it compiled:
/// what the tiled kernel does in the time that compiling takes.
const PATIENCE: usize = 2 << 20;

impl KernelChoice {
    /// How many bytes a program is to run over before it is compiled.
    pub(crate) fn patience(self) -> usize {
        match self {
            Self::Auto | Self::Prefer(_) => PATIENCE,
            Self::Only(_) => 0,
        }
    }

    /// The kernel that serves packets of this size.
    pub fn resolve(self, packet: usize) -> Kernel {
        match self {
            Self::Prefer(kernel) if kernel.suits(packet) && kernel.is_available() => kernel,
            Self::Auto | Self::Prefer(_) => Kernel::best(packet),
            Self::Only(kernel) => kernel,
        }
    }
}

impl FromStr for KernelChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if text == "jit" {
            let compiled = |kernel: &Kernel| kernel.name().starts_with("jit-");
            return match Kernel::available().filter(compiled).last() {
                Some(kernel) => Ok(Self::Only(kernel)),
                None => Err(Error::kernel("this processor has no jit kernel")),
            };
        }
        let found = Kernel::ALL.into_iter().find(|kernel| kernel.name() == text);
        found.map(Self::Only).ok_or_else(|| {
            let names = Kernel::ALL.map(Kernel::name).join(", ");
            Error::kernel(format!("there is no kernel `{text}`; there are auto, jit, {names}"))
        })
    }
}
