//! Long blocks: programs for LT codes, prepared for a kernel.

#![allow(unsafe_code)]

use std::ops::Range;

use crate::error::{Error, Result};
use crate::plan::blocks::BlockProgram;
use crate::run::buffers::{Memory, PreparedKernel};
use crate::run::executable::Executable;
use crate::run::tiled::Runners;
use crate::run::tiled::blocks::BlockMemory;

/// A program, and the buffers that its inputs and outputs lie in.
struct BlockKernel {
    program: BlockProgram,
    runners: Runners,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

/// Prepares a program. Its input `n` is buffer `inputs[n]` of a call, and its output `n` is buffer
/// `outputs[n]`. If outputs are `optional`, one whose buffer is absent is not computed; otherwise
/// it is an error of the call.
///
/// # Errors
/// If the counts differ, or if a buffer does not exist.
pub(crate) fn prepare(
    program: BlockProgram,
    runners: Runners,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    optional: bool,
    buffers: usize,
) -> Result<Executable> {
    if (inputs.len(), outputs.len()) != (program.inputs(), program.outputs()) {
        return Err(Error::internal(format!(
            "{} blocks are given to make {}, but the program makes {} from {}",
            inputs.len(),
            outputs.len(),
            program.outputs(),
            program.inputs()
        )));
    }
    if let Some(buffer) = inputs.iter().chain(&outputs).find(|&&buffer| buffer >= buffers) {
        return Err(Error::internal(format!(
            "buffer {buffer} does not exist; there are {buffers}"
        )));
    }
    let (read, written, grain) = (inputs.clone(), outputs.clone(), program.tile());
    let kernel = Box::new(BlockKernel { program, runners, inputs, outputs });
    Ok(Executable::of_blocks(kernel, buffers, read, written, optional, grain))
}

impl PreparedKernel for BlockKernel {
    unsafe fn run(&self, memory: &Memory<'_>, bytes: Range<usize>) {
        let places = (&self.inputs[..], &self.outputs[..]);
        let blocks = BlockMemory::new(&self.program, places, memory, bytes);
        // SAFETY: `prepare` compared the counts; the caller vouches for the buffers and the bytes.
        // Runners exist only where the processor has the features that they need.
        unsafe { (self.runners.blocks)(&self.program, &blocks) };
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;
    use crate::plan::interpret::interpret;
    use crate::plan::schedule::Schedule;
    use crate::run::buffers::{Buffer, Stores, enter};
    use crate::run::dispatch::Kernel;
    use crate::run::threads::Threads;

    /// Covers inputs that are read once and inputs that are read twice, cells that are used again,
    /// a sum that grows, an output that is read, and an output that is not read.
    const PROGRAM: &str = "inputs 4 temps 3 outputs 3\nt0 = i0 ^ i1\no0 = t0 ^ i2\nt1 = o0 ^ i1 ^ i3\n\
                           t0 ^= i1\no1 = t0 ^ t1\nt2 = o1\no2 = t2 ^ o0 ^ i1\n";

    fn fill(blocks: usize, length: usize) -> Vec<Vec<u8>> {
        let byte = |block: usize| move |at: usize| (at % 251 * 7 + block * 31) as u8;
        (0..blocks).map(|block| (0..length).map(byte(block)).collect()).collect()
    }

    fn executable(kernel: Kernel) -> Executable {
        let program = BlockProgram::new(&PROGRAM.parse().unwrap()).unwrap();
        let runners = kernel.runners().unwrap();
        prepare(program, runners, (0..4).collect(), (4..7).collect(), true, 7).unwrap()
    }

    fn run(
        executable: &Executable,
        inputs: &[&[u8]],
        outputs: &mut [Option<&mut [u8]>],
        threads: Threads,
        stores: Stores,
    ) -> Result<()> {
        let inputs = inputs.iter().copied().map(Buffer::Source);
        let outputs = outputs.iter_mut().map(|output| match output {
            Some(output) => Buffer::Target(output),
            None => Buffer::Absent,
        });
        let buffers = inputs.chain(outputs).enumerate();
        executable.run_placed(|places| enter(places, buffers), |buffer| buffer, threads, stores)
    }

    /// Checks every kernel, length, alignment and way to store: the result equals the
    /// interpreter's, and nothing else is written.
    #[test]
    fn blocks_are_those_of_the_interpreter() {
        let schedule: Schedule = PROGRAM.parse().unwrap();
        assert!(BlockProgram::new(&schedule).unwrap().cells() < 7, "cells are used again");
        for kernel in Kernel::available() {
            if kernel.tiled() != kernel {
                continue;
            }
            let executable = executable(kernel);
            for length in [1, 7, 63, 64, 65, 511, 512, 4096, 4097, 9000, 20_001] {
                let data = fill(4, length);
                let inputs: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
                let expected = interpret(&schedule, &inputs).unwrap();
                for (shift, stores) in
                    [(0, Stores::NonTemporal), (1, Stores::NonTemporal), (0, Stores::Cached)]
                {
                    let mut made = vec![vec![0xEE_u8; length + 200]; 3];
                    let starts: Vec<usize> = made
                        .iter()
                        .enumerate()
                        .map(|(i, m)| m.as_ptr().align_offset(64) + 13 + shift * i)
                        .collect();
                    let mut targets: Vec<Option<&mut [u8]>> = made
                        .iter_mut()
                        .zip(&starts)
                        .map(|(m, &start)| Some(&mut m[start..start + length]))
                        .collect();
                    targets[1] = None;
                    let threads = Threads { most: NonZeroUsize::new(2), bytes_each: 1 };
                    run(&executable, &inputs, &mut targets, threads, stores).unwrap();
                    for (i, (made, start)) in made.iter().zip(starts).enumerate() {
                        let wanted = if i == 1 { vec![0xEE; length] } else { expected[i].clone() };
                        assert_eq!(
                            made[start..start + length],
                            wanted,
                            "{kernel} {length} {shift}"
                        );
                        let mut around = made[..start].iter().chain(&made[start + length..]);
                        assert!(around.all(|&byte| byte == 0xEE), "{kernel} {length} {shift}");
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_that_do_not_fit_are_refused() {
        let executable = executable(Kernel::Scalar);
        let threads = Threads { most: NonZeroUsize::new(1), bytes_each: 1 };
        let data = fill(4, 10);
        let mut inputs: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut none = [None, None, None];
        let try_run = |inputs: &[&[u8]], outputs: &mut [Option<&mut [u8]>]| {
            run(&executable, inputs, outputs, threads, Stores::Cached)
        };
        assert!(try_run(&inputs, &mut none).is_ok());
        assert!(try_run(&inputs[..3], &mut none).is_err());
        let program = BlockProgram::new(&PROGRAM.parse().unwrap()).unwrap();
        let runners = Kernel::Scalar.runners().unwrap();
        assert!(prepare(program, runners, vec![0, 1, 2, 3], vec![4, 5], true, 6).is_err());
        let mut long = [0; 11];
        none[2] = Some(&mut long);
        assert!(try_run(&inputs, &mut none).is_err());
        none[2] = None;
        inputs[3] = &data[3][..9];
        assert!(try_run(&inputs, &mut none).is_err());
    }

    /// A block that is computed may be left out, but not if it is read as well.
    #[test]
    fn blocks_that_are_read_are_needed() {
        let program = BlockProgram::new(&PROGRAM.parse().unwrap()).unwrap();
        let runners = Kernel::Scalar.runners().unwrap();
        let executable =
            prepare(program, runners, vec![0, 1, 2, 3], vec![4, 5, 3], true, 6).unwrap();
        let data = fill(3, 10);
        let inputs: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let threads = Threads { most: NonZeroUsize::new(1), bytes_each: 1 };
        let mut last = [7; 10];
        let run = |last| {
            let inputs = inputs.iter().copied().map(Buffer::Source).chain([last]).enumerate();
            let name = |buffer| buffer;
            executable.run_placed(|places| enter(places, inputs), name, threads, Stores::Cached)
        };
        assert!(run(Buffer::Target(&mut last)).is_ok());
        assert_eq!(run(Buffer::Absent).unwrap_err().node(), Some(3));
    }
}
