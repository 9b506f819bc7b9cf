//! The choice of kernels: all kernels, the kernels that this processor can run, and the kernel in
//! use.
//!
//! This is the only place that asks the processor for its features.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::limits::{COMPILED_AFTER, WORDS_COMPILED_AFTER};
use crate::plan::execution::{Execution, ProgramPart};
use crate::plan::machine::Machine;
use crate::plan::variants::CompileTarget;
#[cfg(feature = "research")]
use crate::plan::variants::{RunVariant, Variants};
use crate::run::buffers::PreparedKernel;
use crate::run::executable::Executable;
#[cfg(feature = "research")]
use crate::run::jit;
use crate::run::jit::isa::Isa;
use crate::run::jit::{Compiling, Jit};
#[cfg(feature = "research")]
use crate::run::tiled::packets::{PacketScope, Untiled};
use crate::run::tiled::{self, DirectRunner, Runners, Tiled, WordRunners};

/// A kernel by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
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
    /// Tiled, the 128-bit registers of WebAssembly.
    Simd128,
    /// Compiled, AVX2.
    JitAvx2,
    /// Compiled, AVX-512 on 32-byte vectors.
    JitAvx512Vl,
    /// Compiled, AVX-512 on 64-byte vectors.
    JitAvx512,
    /// Compiled, NEON.
    JitNeon,
    /// Compiled, NEON with the three-input XOR of the SHA-3 instructions.
    JitNeonSha3,
    /// For the lab: one operation of two operands after the other, each over a whole packet.
    #[cfg(feature = "research")]
    Packetwise(Width),
    /// For the lab: as [`Kernel::Packetwise`], but consecutive operations that read the same packet
    /// run side by side and read each word of the packet once.
    #[cfg(feature = "research")]
    Datawise(Width),
}

/// Number of bits that a kernel of the lab loads, XORs and stores at once.
#[cfg(feature = "research")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Width {
    /// General registers.
    Bits64,
    /// SSE2, NEON or those of WebAssembly.
    Bits128,
    /// AVX2.
    Bits256,
    /// AVX-512.
    Bits512,
}

#[cfg(feature = "research")]
impl Width {
    /// The tiled kernel on the same registers.
    fn tiled(self) -> Kernel {
        match self {
            Self::Bits64 => Kernel::Scalar,
            Self::Bits128 if cfg!(target_arch = "aarch64") => Kernel::Neon,
            Self::Bits128 if cfg!(target_arch = "wasm32") => Kernel::Simd128,
            Self::Bits128 => Kernel::Sse2,
            Self::Bits256 => Kernel::Avx2,
            Self::Bits512 => Kernel::Avx512,
        }
    }
}

/// A kernel of the word layout by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum WordKernel {
    /// For the lab: one operation of two operands after the other. It doubles the words of a 64-bit
    /// register at once, and looks other multiples up byte by byte.
    #[cfg(feature = "research")]
    Packetwise64,
    /// Tiled, 64-bit registers.
    Scalar,
    /// Tiled: tables, the 128-bit registers of WebAssembly.
    Simd128,
    /// Compiled: tables, SSSE3.
    Ssse3,
    /// Compiled: tables, NEON.
    Neon,
    /// Compiled: tables, AVX2.
    Avx2,
    /// Compiled: tables, AVX-512.
    Avx512,
    /// Compiled: bit matrices, 32-byte registers.
    Gfni256,
    /// Compiled: bit matrices, 64-byte registers.
    Gfni512,
}

impl WordKernel {
    /// All word kernels: that of the lab, then the others, the slowest first.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "research")]
        Self::Packetwise64,
        Self::Scalar,
        Self::Simd128,
        Self::Ssse3,
        Self::Neon,
        Self::Avx2,
        Self::Avx512,
        Self::Gfni256,
        Self::Gfni512,
    ];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "research")]
            Self::Packetwise64 => "words-packetwise64",
            Self::Scalar => "words-scalar",
            Self::Simd128 => "words-simd128",
            Self::Ssse3 => "words-ssse3",
            Self::Neon => "words-neon",
            Self::Avx2 => "words-avx2",
            Self::Avx512 => "words-avx512",
            Self::Gfni256 => "words-gfni-avx2",
            Self::Gfni512 => "words-gfni-avx512",
        }
    }

    /// Whether this processor can run the kernel.
    pub fn is_available(self) -> bool {
        match self {
            Self::Simd128 => Kernel::Simd128.is_available(),
            _ => self.isa().is_none_or(Isa::is_available),
        }
    }

    /// The word kernels that this processor can run, in the order of [`WordKernel::ALL`].
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kernel| kernel.is_available())
    }

    /// The word kernels that this processor can run and that may be chosen automatically, the
    /// slowest first.
    pub fn candidates() -> impl Iterator<Item = Self> {
        Self::available().filter(|kernel| !kernel.is_of_the_lab())
    }

    /// As [`Kernel::is_of_the_lab`].
    fn is_of_the_lab(self) -> bool {
        match self {
            #[cfg(feature = "research")]
            Self::Packetwise64 => true,
            _ => false,
        }
    }

    /// The fastest word kernel that this processor can run.
    pub fn best() -> Self {
        Self::candidates().last().unwrap_or(Self::Scalar)
    }

    /// The word kernel that corresponds to a choice among the kernels of the packet layout: the
    /// best one here that uses the registers of the chosen kernel.
    pub(crate) fn resolve(choice: KernelChoice) -> Self {
        let KernelChoice::Only(kernel) = choice else { return Self::best() };
        let most = Self::like(kernel);
        let without_gfni = match most {
            Self::Gfni256 => Self::Avx2,
            Self::Gfni512 => Self::Avx512,
            _ => Self::Scalar,
        };
        let here = [most, without_gfni].into_iter().find(|kernel| kernel.is_available());
        here.unwrap_or(Self::Scalar)
    }

    /// The word kernel that uses the registers of a kernel of the packet layout, even if this
    /// processor lacks it.
    pub(crate) fn like(kernel: Kernel) -> Self {
        match kernel {
            #[cfg(feature = "research")]
            Kernel::Packetwise(Width::Bits64) => Self::Packetwise64,
            #[cfg(feature = "research")]
            Kernel::Packetwise(width) | Kernel::Datawise(width) => Self::like(width.tiled()),
            Kernel::Scalar => Self::Scalar,
            Kernel::Sse2 => Self::Ssse3,
            Kernel::Avx2 | Kernel::JitAvx2 => Self::Avx2,
            Kernel::Neon | Kernel::JitNeon | Kernel::JitNeonSha3 => Self::Neon,
            Kernel::Simd128 => Self::Simd128,
            Kernel::JitAvx512Vl => Self::Gfni256,
            Kernel::Avx512 | Kernel::JitAvx512 => Self::Gfni512,
        }
    }

    /// Instruction set that the kernel is compiled for.
    pub(crate) fn isa(self) -> Option<Isa> {
        match self {
            #[cfg(feature = "research")]
            Self::Packetwise64 => None,
            Self::Scalar | Self::Simd128 => None,
            Self::Ssse3 => Some(Isa::Ssse3),
            Self::Neon => Some(Isa::Neon),
            Self::Avx2 => Some(Isa::Avx2),
            Self::Avx512 => Some(Isa::Avx512Bw),
            Self::Gfni256 => Some(Isa::Avx2Gfni),
            Self::Gfni512 => Some(Isa::Avx512Gfni),
        }
    }

    /// The tiled kernels that multiply in the same way as this kernel; `None` if the processor
    /// lacks it.
    pub(crate) fn runners(self) -> Option<WordRunners> {
        if !self.is_available() {
            return None;
        }
        match self {
            #[cfg(feature = "research")]
            Self::Packetwise64 => Some(tiled::scalar::WORDS),
            Self::Scalar => Some(tiled::scalar::WORDS),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => Some(tiled::sse2::WORDS),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Some(tiled::avx2::WORDS),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => Some(tiled::avx512::WORDS),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256 => Some(tiled::avx2::WORDS_GFNI),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512 => Some(tiled::avx512::WORDS_GFNI),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Some(tiled::neon::WORDS),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => Some(tiled::simd128::WORDS),
            _ => None,
        }
    }

    /// The tiled kernel that runs a program until it has been compiled.
    fn tiled(self) -> Kernel {
        match self {
            #[cfg(feature = "research")]
            Self::Packetwise64 => Kernel::Scalar,
            Self::Scalar => Kernel::Scalar,
            Self::Ssse3 => Kernel::Sse2,
            Self::Neon => Kernel::Neon,
            Self::Simd128 => Kernel::Simd128,
            Self::Avx2 | Self::Gfni256 => Kernel::Avx2,
            Self::Avx512 | Self::Gfni512 => Kernel::Avx512,
        }
    }

    /// The error for a kernel that this processor cannot run.
    pub(crate) fn unavailable(self) -> Error {
        unavailable(self.name(), Self::available().map(Self::name))
    }
}

impl fmt::Display for WordKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kernel that a codec uses. It determines the target of plans, and how plans are prepared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Serving {
    /// Instruction set that programs are compiled for, if they are compiled.
    isa: Option<Isa>,
    /// Kernel that runs a program until it is compiled, or always if it cannot be compiled.
    tiled: Kernel,
    /// For a kernel of the lab, the steps that a pass over a packet covers.
    #[cfg(feature = "research")]
    untiled: Option<PacketScope>,
    /// Kernel that runs direct answers until questions are planned; `None` if the caller chose a
    /// kernel by name, which then runs from the beginning.
    direct: Option<DirectRunner>,
    how: Compiling,
}

impl Serving {
    /// Creates the kernel in use for packets. A kernel that the caller chose by name compiles at
    /// once.
    pub(crate) fn packets(choice: KernelChoice, kernel: Kernel, prefetch: bool) -> Self {
        let after = if choice.is_by_name() { 0 } else { COMPILED_AFTER };
        let how = Compiling { after, prefetch };
        #[cfg(feature = "research")]
        let untiled = match kernel {
            Kernel::Packetwise(_) => Some(PacketScope::Step),
            Kernel::Datawise(_) => Some(PacketScope::Source),
            _ => None,
        };
        Self {
            isa: kernel.isa(),
            tiled: kernel.tiled(),
            #[cfg(feature = "research")]
            untiled,
            direct: kernel.runners().filter(|_| !choice.is_by_name()).map(|runners| runners.sums),
            how,
        }
    }

    /// Creates the kernel in use for words. A kernel that the caller chose by name compiles at
    /// once.
    pub(crate) fn words(kernel: WordKernel, by_name: bool, prefetch: bool) -> Self {
        let after = if by_name { 0 } else { WORDS_COMPILED_AFTER };
        let how = Compiling { after, prefetch };
        #[cfg(feature = "research")]
        let untiled = (kernel == WordKernel::Packetwise64).then_some(PacketScope::Step);
        Self {
            isa: kernel.isa(),
            tiled: kernel.tiled(),
            #[cfg(feature = "research")]
            untiled,
            direct: kernel.runners().filter(|_| !by_name).map(|runners| runners.products),
            how,
        }
    }

    /// The kernel that runs direct answers; `None` if questions are planned at once.
    pub(crate) fn direct(self) -> Option<DirectRunner> {
        self.direct
    }

    /// The same kernel, but compiling programs at once.
    pub(crate) fn at_once(self) -> Self {
        Self { how: Compiling { after: 0, ..self.how }, ..self }
    }

    /// Target that plans are made for.
    pub(crate) fn target(self) -> Option<CompileTarget> {
        self.isa.map(Isa::target)
    }

    /// Prepares a planned execution.
    ///
    /// # Errors
    /// If the processor lacks a feature that the kernel needs.
    pub(crate) fn prepare(self, execution: Execution) -> Result<Executable> {
        Executable::new(execution, |part| self.prepare_part(part))
    }

    fn prepare_part(
        self,
        ProgramPart { program, variants, .. }: ProgramPart,
    ) -> Result<Box<dyn PreparedKernel>> {
        let unavailable = || self.tiled.unavailable();
        #[cfg(feature = "research")]
        if let Some(pass) = self.untiled {
            let bytes = self.tiled.vector_bytes();
            return Ok(Box::new(Untiled::new(&program, pass, bytes).ok_or_else(unavailable)?));
        }
        let runners = self.tiled.runners().ok_or_else(unavailable)?;
        let tiled = Tiled::new(&program, runners);
        match (self.isa, variants) {
            (Some(isa), Some(Ok(variants))) => {
                Jit::prepare(variants, isa, Box::new(tiled), self.how).ok_or_else(unavailable)
            }
            (_, Some(Err(reason))) => Ok(Box::new(tiled.because(reason))),
            _ => Ok(Box::new(tiled)),
        }
    }

    /// Lists the machine code of a variant of a program, one instruction a line. The processor need
    /// not be able to run the kernel.
    #[cfg(feature = "research")]
    pub(crate) fn listing(self, variants: &Variants, variant: RunVariant) -> Option<String> {
        jit::listing(variants, self.isa?, variant)
    }
}

/// The choice of a kernel that a caller may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum KernelChoice {
    /// The best kernel for the program.
    #[default]
    Auto,
    /// This kernel, if the processor has it and its registers divide a packet; otherwise the best
    /// one.
    Prefer(Kernel),
    /// This kernel, or an error if the processor lacks it. Programs that cannot be compiled run on
    /// the tiled kernel with the same registers; [`Codec::fallback`](crate::Codec::fallback) then
    /// says why.
    Only(Kernel),
}

impl Kernel {
    /// All kernels: those of the lab, then the others, the simplest first.
    pub const ALL: &[Self] = &[
        #[cfg(feature = "research")]
        Self::Packetwise(Width::Bits64),
        #[cfg(feature = "research")]
        Self::Packetwise(Width::Bits128),
        #[cfg(feature = "research")]
        Self::Packetwise(Width::Bits256),
        #[cfg(feature = "research")]
        Self::Packetwise(Width::Bits512),
        #[cfg(feature = "research")]
        Self::Datawise(Width::Bits64),
        #[cfg(feature = "research")]
        Self::Datawise(Width::Bits128),
        #[cfg(feature = "research")]
        Self::Datawise(Width::Bits256),
        #[cfg(feature = "research")]
        Self::Datawise(Width::Bits512),
        Self::Scalar,
        Self::Sse2,
        Self::Avx2,
        Self::Avx512,
        Self::Neon,
        Self::Simd128,
        Self::JitAvx2,
        Self::JitAvx512Vl,
        Self::JitAvx512,
        Self::JitNeon,
        Self::JitNeonSha3,
    ];

    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Sse2 => "sse2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
            Self::Simd128 => "simd128",
            Self::JitAvx2 => "jit-avx2",
            Self::JitAvx512Vl => "jit-avx512vl",
            Self::JitAvx512 => "jit-avx512",
            Self::JitNeon => "jit-neon",
            Self::JitNeonSha3 => "jit-neon-sha3",
            #[cfg(feature = "research")]
            Self::Packetwise(width) => match width {
                Width::Bits64 => "packetwise64",
                Width::Bits128 => "packetwise128",
                Width::Bits256 => "packetwise256",
                Width::Bits512 => "packetwise512",
            },
            #[cfg(feature = "research")]
            Self::Datawise(width) => match width {
                Width::Bits64 => "datawise64",
                Width::Bits128 => "datawise128",
                Width::Bits256 => "datawise256",
                Width::Bits512 => "datawise512",
            },
        }
    }

    /// Whether this processor can run the kernel.
    pub fn is_available(self) -> bool {
        match self.isa() {
            Some(isa) => isa.is_available(),
            None => self.runners().is_some(),
        }
    }

    /// The kernels that this processor can run: those of the lab, then the others, the simplest
    /// first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kernel| kernel.is_available())
    }

    /// The kernels that this processor can run and that may be chosen automatically, the simplest
    /// first.
    pub fn candidates() -> impl Iterator<Item = Self> {
        Self::available().filter(|kernel| !kernel.is_of_the_lab())
    }

    /// Whether the kernel exists only to repeat the papers' measurements. Such a kernel is slower
    /// than others on the same registers, and runs only if the caller chooses it by name.
    pub fn is_of_the_lab(self) -> bool {
        match self {
            #[cfg(feature = "research")]
            Self::Packetwise(_) | Self::Datawise(_) => true,
            _ => false,
        }
    }

    /// Bytes of a vector register.
    pub fn vector_bytes(self) -> usize {
        match self {
            #[cfg(feature = "research")]
            Self::Packetwise(width) | Self::Datawise(width) => width.tiled().vector_bytes(),
            Self::Scalar => 8,
            Self::Sse2 | Self::Neon | Self::Simd128 | Self::JitNeon | Self::JitNeonSha3 => 16,
            Self::Avx2 | Self::JitAvx2 | Self::JitAvx512Vl => 32,
            Self::Avx512 | Self::JitAvx512 => 64,
        }
    }

    /// The widest candidate whose registers divide a packet of `packet` bytes without
    /// remainder, or the simplest kernel if there is none.
    pub fn best(packet: usize) -> Self {
        Self::candidates().filter(|kernel| kernel.suits(packet)).last().unwrap_or(Self::Scalar)
    }

    /// Whether the kernel's registers divide a packet of `packet` bytes without remainder.
    pub fn suits(self, packet: usize) -> bool {
        packet.is_multiple_of(self.vector_bytes())
    }

    /// The tiled kernels that use the same registers; `None` if the processor lacks them.
    pub(crate) fn runners(self) -> Option<Runners> {
        match self.tiled() {
            Self::Scalar => tiled::scalar::runners(),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => tiled::sse2::runners(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => tiled::avx2::runners(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => tiled::avx512::runners(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => tiled::neon::runners(),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => tiled::simd128::runners(),
            _ => None,
        }
    }

    /// The tiled kernel that uses the same registers. It runs in place of a compiled kernel that
    /// cannot run, and runs the blocks of LT codes.
    pub(crate) fn tiled(self) -> Self {
        match self {
            Self::JitAvx2 | Self::JitAvx512Vl => Self::Avx2,
            Self::JitAvx512 => Self::Avx512,
            Self::JitNeon | Self::JitNeonSha3 => Self::Neon,
            #[cfg(feature = "research")]
            Self::Packetwise(width) | Self::Datawise(width) => width.tiled(),
            tiled => tiled,
        }
    }

    /// Instruction set of a compiled kernel.
    pub(crate) fn isa(self) -> Option<Isa> {
        match self {
            Self::JitAvx2 => Some(Isa::Avx2),
            Self::JitAvx512Vl => Some(Isa::Avx512Vl),
            Self::JitAvx512 => Some(Isa::Avx512),
            Self::JitNeon => Some(Isa::Neon),
            Self::JitNeonSha3 => Some(Isa::NeonSha3),
            _ => None,
        }
    }

    /// Properties of the machine that planning depends on; `None` for kernels that are not
    /// compiled.
    pub fn machine(self) -> Option<Machine> {
        self.isa().map(|isa| isa.target().machine)
    }

    /// The error for a kernel that this processor cannot run.
    pub(crate) fn unavailable(self) -> Error {
        unavailable(self.name(), Self::available().map(Self::name))
    }
}

/// Returns the error for the kernel `name` on a processor that has only the kernels `available`.
fn unavailable(name: &str, available: impl Iterator<Item = &'static str>) -> Error {
    let names = available.collect::<Vec<_>>().join(", ");
    Error::kernel(format!("this processor has no {name} kernel; it has {names}"))
}

/// Checks whether this process may run compiled kernels.
///
/// # Errors
/// If the process may not ([`crate::ErrorKind::Kernel`]): the message comes from the operating
/// system, or says that there are no compiled kernels for this architecture.
#[cfg(feature = "research")]
pub fn can_compile() -> Result<()> {
    jit::probe()
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl KernelChoice {
    /// Whether the caller chose a kernel by name, so that only this kernel may run.
    pub(crate) fn is_by_name(self) -> bool {
        matches!(self, Self::Only(_))
    }

    /// The kernel that runs packets of `packet` bytes.
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
        let found = Kernel::ALL.iter().find(|kernel| kernel.name() == text);
        found.copied().map(Self::Only).ok_or_else(|| {
            let names =
                Kernel::ALL.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ");
            let none = match WordKernel::ALL.iter().any(|kernel| kernel.name() == text) {
                true => format!(
                    "`{text}` is not chosen by its own name: a code in words runs on the kernel for \
                     words that has the registers of the chosen one"
                ),
                false => format!("there is no kernel `{text}`"),
            };
            Error::kernel(format!("{none}; there are auto, jit, {names}"))
        })
    }
}
