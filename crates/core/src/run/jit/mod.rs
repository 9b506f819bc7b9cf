//! The compiled kernel: a plan as straight-line machine code.
//!
//! The plan says what happens in registers ([`Variants`]). [`assemble()`] makes a function of it,
//! [`encode`] writes the function for the processor, and [`exec_memory`] makes it executable. One
//! pass over memory runs the whole schedule on one vector of every packet, with temporaries in
//! registers.
//!
//! Compiling takes half a millisecond for 10+4; in that time the tiled kernel runs over some
//! megabytes. So unless a compiled kernel is asked for by name, it is compiled only after that many
//! bytes. One thread compiles; the tiled kernel serves the others meanwhile. Before compiled code
//! touches anyone's data, it runs on a small set of bytes and must give the interpreter's result.
//! If it does not, or cannot be made executable, the tiled kernel of the same instruction set
//! serves.

#![allow(unsafe_code)]

#[cfg(any(target_arch = "aarch64", feature = "research", test))]
mod aarch64;
pub(crate) mod assemble;
#[cfg(all(test, target_arch = "x86_64"))]
mod decoded;
pub(crate) mod encode;
pub(crate) mod exec_memory;
pub(crate) mod instruction;
pub(crate) mod isa;
#[cfg(test)]
mod programs;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "research")]
use crate::error::Error;
use crate::error::Result;
use crate::limits::{MOST_TRIED, PERIOD, TRIED_BYTES};
use crate::plan::interpret::interpret;
use crate::plan::machine::LINE;
use crate::plan::program::Program;
use crate::plan::schedule::Slot;
use crate::plan::variants::{BodyShape, RunVariant, Variants};
use crate::run::buffers::{CacheLine, Memory, PreparedKernel, Scratch, Table};
use crate::run::claimed::Claimed;
use crate::run::jit::assemble::{Assembled, assemble};
use crate::run::jit::exec_memory::ExecutableMemory;
use crate::run::jit::isa::Isa;

/// Why a program was not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// The plan has no instructions for the instruction set, for this reason.
    Unplanned(String),
    /// The instructions cannot be encoded, for this reason.
    Unencodable(String),
    /// The system forbids executable memory, for this reason.
    Forbidden(String),
    /// There is no memory to try the compiled code on.
    Untried,
    /// The compiled code gave a wrong result.
    Wrong,
}

/// Checks whether this process may make memory executable.
#[cfg(feature = "research")]
pub(crate) fn probe() -> Result<()> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        let architecture = std::env::consts::ARCH;
        return Err(Error::kernel(format!("there is no compiler for {architecture}")));
    }
    // The page holds zeros, which are never run.
    let memory = ExecutableMemory::new(&[0; LINE]);
    memory.map(drop).map_err(|error| Error::kernel(error.to_string()).because(error))
}

/// How and when programs are compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compiling {
    /// Bytes that a program runs over before it is compiled.
    pub(crate) after: usize,
    /// Whether compiled code prefetches wide stripes from memory.
    pub(crate) prefetch: bool,
}

/// A program that is compiled once enough bytes have asked for it. Until then, and where compiling
/// fails, the tiled kernel runs it.
pub(crate) struct Jit {
    variants: Variants,
    isa: Isa,
    tiled: Box<dyn PreparedKernel>,
    how: Compiling,
    /// Bytes of a stripe of all buffers.
    stripe: usize,
    bytes: AtomicUsize,
    code: Claimed<Result<Code, Refusal>>,
}

/// The compiled functions of a program.
struct Code {
    /// Function of [`RunVariant::PLAIN`], which is compiled first and tells whether compiling
    /// works.
    plain: Function,
    /// Functions of the other variants by their numbers, from 1, each compiled when first needed.
    others: [Claimed<Result<Function, Refusal>>; 7],
}

/// The type of the function that [`assemble()`] makes, with its calling convention.
#[cfg(target_arch = "x86_64")]
type Entry = unsafe extern "sysv64" fn(*mut *mut u8, usize, *mut u8);
#[cfg(not(target_arch = "x86_64"))]
type Entry = unsafe extern "C" fn(*mut *mut u8, usize, *mut u8);

struct Function {
    memory: ExecutableMemory,
    entry: usize,
    scratch: usize,
}

impl Jit {
    /// Prepares a program for an instruction set; `None` if the processor lacks it. `tiled` runs
    /// the program until it is compiled, and the stripes that compiled code leaves over.
    pub(crate) fn prepare(
        variants: Variants,
        isa: Isa,
        tiled: Box<dyn PreparedKernel>,
        how: Compiling,
    ) -> Option<Box<dyn PreparedKernel>> {
        if !isa.is_available() {
            return None;
        }
        let program = variants.program();
        let stripe = (0..program.rows().len()).map(|buffer| program.strip(buffer)).sum();
        let (bytes, code) = (AtomicUsize::new(0), Claimed::default());
        Some(Box::new(Self { variants, isa, tiled, how, stripe, bytes, code }))
    }

    /// Returns the compiled code, if enough bytes have been run, compiling succeeds, and no other
    /// thread is compiling the program.
    fn code(&self, stripes: usize) -> Option<&Code> {
        if let Some(code) = self.code.get() {
            return code.as_ref().ok();
        }
        let bytes = stripes * self.stripe;
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if total < self.how.after {
            return None;
        }
        self.code.get_or_make(|| Code::compile(&self.variants, self.isa))?.as_ref().ok()
    }

    /// Returns the function that suits a call's memory, or the plain one if that one cannot be
    /// compiled or is not ready.
    fn function<'c>(
        &self,
        code: &'c Code,
        memory: &Memory<'_>,
        starts: &[*mut u8],
    ) -> &'c Function {
        let start = |buffer: usize| starts[buffer].addr();
        let variant = self.variants.choose(start, memory.nontemporal, self.how.prefetch);
        let Some(number) = variant.number().checked_sub(1) else { return &code.plain };
        let compile = || Function::compile(&self.variants, self.isa, variant);
        let function = code.others[number].get_or_make(compile).and_then(|made| made.as_ref().ok());
        function.unwrap_or(&code.plain)
    }
}

impl PreparedKernel for Jit {
    unsafe fn run(&self, memory: &Memory<'_>, stripes: Range<usize>) {
        let mut rest = stripes.clone();
        if let Some(code) = self.code(stripes.len()) {
            let program = self.variants.program();
            let shape = self.variants.shape();
            let (count, covered) = shape.bodies(stripes.len(), program.packet());
            if count > 0 {
                let mut pointers = Table::new();
                let start = |buffer| stripes.start * program.strip(buffer);
                let pointers = pointers.fill(program.rows().len(), |buffer| {
                    memory.pointer(buffer).wrapping_add(start(buffer))
                });
                let function = self.function(code, memory, pointers);
                // SAFETY: the caller vouches for the buffers of all stripes; `count` bodies stay
                // within the first `covered` of them; `prepare` checked for the instruction set.
                unsafe { function.call(pointers, count) };
            }
            rest.start += covered;
        }
        if !rest.is_empty() {
            // SAFETY: the caller's contract, for the stripes that are left.
            unsafe { self.tiled.run(memory, rest) };
        }
    }

    fn fallback(&self) -> Option<String> {
        let refusal = match self.code.get()? {
            Err(refusal) => refusal,
            Ok(code) => code.others.iter().find_map(|other| other.get()?.as_ref().err())?,
        };
        Some(match refusal {
            Refusal::Unplanned(why) | Refusal::Unencodable(why) => why.clone(),
            Refusal::Forbidden(why) => format!("the system gives no executable memory: {why}"),
            Refusal::Untried => "there is no memory to try its code on".to_owned(),
            Refusal::Wrong => "its code computes wrong on this processor".to_owned(),
        })
    }
}

impl Code {
    fn compile(variants: &Variants, isa: Isa) -> Result<Self, Refusal> {
        let plain = Function::compile(variants, isa, RunVariant::PLAIN)?;
        Ok(Self { plain, others: Default::default() })
    }
}

/// Assembles the function of a variant, before it is encoded.
///
/// # Errors
/// If the plan has no instructions for it.
fn assembled(variants: &Variants, isa: Isa, variant: RunVariant) -> Result<Assembled, Refusal> {
    let planned = variants.planned(variant);
    let planned = planned.map_err(|error| Refusal::Unplanned(error.to_string()))?;
    let allocation = &planned.arranged.allocation;
    let walk = variants.shape().walk(allocation.group * isa.vector());
    let variant = RunVariant { stage_inputs: planned.stage_inputs, ..variant };
    Ok(assemble(isa, variants.program(), allocation, walk, variant))
}

/// Lists the machine code of a variant, one instruction a line; the processor need not have the
/// instruction set.
#[cfg(feature = "research")]
pub(crate) fn listing(variants: &Variants, isa: Isa, variant: RunVariant) -> Option<String> {
    encode::list(isa, &assembled(variants, isa, variant).ok()?).ok()
}

impl Function {
    fn compile(variants: &Variants, isa: Isa, variant: RunVariant) -> Result<Self, Refusal> {
        let assembled = assembled(variants, isa, variant)?;
        let code = encode::encode(isa, &assembled).map_err(Refusal::Unencodable)?;
        let memory = ExecutableMemory::new(&code.bytes);
        let memory = memory.map_err(|error| Refusal::Forbidden(error.to_string()))?;
        let function = Self { memory, entry: code.entry, scratch: assembled.scratch };
        let (program, shape) = (variants.program(), variants.shape());
        match function.is_right(program, shape) {
            Some(true) => Ok(function),
            Some(false) => Err(Refusal::Wrong),
            None => Err(Refusal::Untried),
        }
    }

    /// # Safety
    /// The pointers are the program's buffers, valid for what `count` bodies read and write; the
    /// processor has the instruction set; `count` is not 0.
    unsafe fn call(&self, pointers: &mut [*mut u8], count: usize) {
        let mut scratch = Scratch::new(self.scratch);
        // SAFETY: the memory holds a function of this type, made by `assemble`. It touches the
        // memory that the caller vouches for, `pointers`, and `scratch` bytes of scratch. It reads
        // only those bytes of the scratch that it has written.
        unsafe {
            let entry = self.memory.start().add(self.entry);
            let entry = std::mem::transmute::<*const u8, Entry>(entry);
            entry(pointers.as_mut_ptr(), count, scratch.start());
        }
    }

    /// Runs a few bodies on bytes of a prime period and compares the result with the interpreter's.
    /// Of long packets, in which one body follows another, the beginning and the end are compared.
    /// Returns `None` if there is no memory for these bytes, or if they are too many.
    fn is_right(&self, program: &Program, shape: BodyShape) -> Option<bool> {
        // At least two bodies.
        let stripes = 2 * shape.together(program.packet());
        let rows: usize = program.rows().iter().sum();
        if rows.saturating_mul(program.packet()).saturating_mul(stripes) > MOST_TRIED {
            return None;
        }
        let before = |buffer: usize, at: usize| (at % PERIOD * 7 + buffer * 31 + 1) as u8;
        let lines = |buffer: usize| -> Option<Vec<CacheLine>> {
            let is_used = program.access(buffer) != (false, false);
            let count = if is_used { (stripes * program.strip(buffer)).div_ceil(LINE) } else { 0 };
            let period: Vec<u8> = (0..PERIOD + LINE).map(|at| before(buffer, at)).collect();
            let mut lines = Vec::new();
            lines.try_reserve_exact(count).ok()?;
            lines.extend((0..count).map(|line| {
                let mut bytes = [0; LINE];
                bytes.copy_from_slice(&period[line * LINE % PERIOD..][..LINE]);
                CacheLine(bytes)
            }));
            Some(lines)
        };
        let buffers: Option<Vec<Vec<CacheLine>>> = (0..program.rows().len()).map(lines).collect();
        let mut buffers = buffers?;
        let mut pointers: Vec<*mut u8> =
            buffers.iter_mut().map(|lines| lines.as_mut_ptr().cast()).collect();
        let (count, _) = shape.bodies(stripes, program.packet());
        // SAFETY: each buffer in use holds `stripes` strips, and `count` bodies cover just these.
        unsafe { self.call(&mut pointers, count) };
        let after = |buffer: usize, at: usize| buffers[buffer][at / LINE].0[at % LINE];
        let columns = program.columns().len();
        let ends = [0..columns.min(TRIED_BYTES), columns.saturating_sub(TRIED_BYTES)..columns];
        let schedule = program.schedule();
        Some(ends.iter().take(columns.div_ceil(TRIED_BYTES)).all(|end| {
            let inputs = (0..schedule.inputs() as u32).map(Slot::Input);
            let inputs: Vec<Vec<u8>> =
                inputs.map(|slot| bytes_of(program, slot, stripes, end, before)).collect();
            let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            let Ok(expected) = interpret(schedule, &inputs) else { return false };
            (0..).map(Slot::Output).zip(expected).all(|(slot, mut expected)| {
                let made = bytes_of(program, slot, stripes, end, after);
                // Without inputs the interpreter knows no length; all outputs are zeros.
                expected.resize(made.len(), 0);
                made == expected
            })
        }))
    }
}

/// Returns the bytes of a cell in some columns of its packets, stripe by stripe. `byte` returns a
/// byte by its buffer and its place there.
fn bytes_of(
    program: &Program,
    slot: Slot,
    stripes: usize,
    columns: &Range<usize>,
    byte: impl Fn(usize, usize) -> u8,
) -> Vec<u8> {
    let Some(location) = program.location(slot) else { return Vec::new() };
    let places = (0..stripes).flat_map(|stripe| {
        let start = stripe * program.strip(location.buffer) + program.offset(location);
        columns.clone().map(move |column| start + column)
    });
    places.map(|at| byte(location.buffer, at)).collect()
}
