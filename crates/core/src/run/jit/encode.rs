//! Instructions for the processor that an instruction set belongs to.

#[cfg(any(target_arch = "aarch64", feature = "research", test))]
use crate::run::jit::aarch64;
use crate::run::jit::assemble::Assembled;
use crate::run::jit::instruction::Instruction;
use crate::run::jit::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::run::jit::x86_64;

/// Machine code: a function's constants, then its instructions.
pub(crate) struct MachineCode {
    pub(crate) bytes: Vec<u8>,
    /// Offset of the first instruction.
    pub(crate) entry: usize,
}

/// Encodes a function as machine code.
///
/// # Errors
/// If this build has no assembler for the instruction set, or if an instruction cannot be encoded,
/// which would be a bug of this crate.
pub(crate) fn encode(isa: Isa, function: &Assembled) -> Result<MachineCode, String> {
    let Assembled { instructions, constants, .. } = function;
    let entry = constants.len();
    let code = encode_instructions(isa, instructions, entry)?;
    Ok(MachineCode { bytes: [&constants[..], &code].concat(), entry })
}

#[cfg_attr(
    not(any(target_arch = "aarch64", target_arch = "x86_64", test)),
    expect(unused_variables, reason = "targets without an assembler encode nothing")
)]
fn encode_instructions(
    isa: Isa,
    instructions: &[Instruction],
    entry: usize,
) -> Result<Vec<u8>, String> {
    match isa.is_aarch64() {
        #[cfg(any(target_arch = "aarch64", test))]
        true => Ok(aarch64::encode(instructions, entry)),
        #[cfg(target_arch = "x86_64")]
        false => x86_64::encode(isa, instructions, entry).map_err(|error| error.to_string()),
        #[allow(unreachable_patterns, reason = "what remains depends on the target")]
        _ => Err(foreign(isa)),
    }
}

/// Lists a function as text, one instruction a line; a jump's target is an instruction's number,
/// from 0.
///
/// # Errors
/// As [`encode`].
#[cfg(feature = "research")]
pub(crate) fn list(isa: Isa, function: &Assembled) -> Result<String, String> {
    let Assembled { instructions, constants, .. } = function;
    match isa.is_aarch64() {
        true => Ok(aarch64::list(instructions, constants.len())),
        #[cfg(target_arch = "x86_64")]
        false => x86_64::list(isa, instructions).map_err(|error| error.to_string()),
        #[allow(unreachable_patterns, reason = "what remains depends on the target")]
        _ => Err(foreign(isa)),
    }
}

fn foreign(isa: Isa) -> String {
    format!("there is no assembler for {isa:?} on {}", std::env::consts::ARCH)
}
