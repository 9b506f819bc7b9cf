//! Long codes: programs over blocks behind a safe interface.

#![allow(unsafe_code)]

use std::num::NonZeroUsize;

use crate::error::{Error, Result};
use crate::limits::BYTES_A_THREAD;
use crate::plan::transform::program::{GRANULE, TransformProgram};
use crate::run::buffers::{BufferPlace, Memory};
use crate::run::dispatch::WordKernel;
use crate::run::threads::{self, Threads};

/// Bytes of a symbol.
const SYMBOL: usize = 2;

/// Runs a program that reads `inputs` and writes `outputs`; the outputs are numbered after the
/// inputs. Uses at most `threads` threads; 0 means as many as the machine has processors.
///
/// # Errors
/// If the number of blocks is not the number that the program reads and writes; if parity blocks
/// (the inputs of a program that recovers, the outputs of any other) differ in length, or
/// their length is not a multiple of a granule (of a symbol in Leopard's codes); or if another
/// block is longer than the parity blocks (in Leopard's codes: if its length differs from theirs
/// and is not 0).
pub(crate) fn run(
    program: &TransformProgram,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    threads: usize,
) -> Result<()> {
    run_on(WordKernel::best(), program, inputs, outputs, threads)
}

/// As [`run`], with a kernel that the processor must have.
fn run_on(
    kernel: WordKernel,
    program: &TransformProgram,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    threads: usize,
) -> Result<()> {
    let length = check(program, inputs, outputs)?;
    execute(kernel, program, places(inputs, outputs), length, threads)
}

/// Runs a program as [`run`] does, and keeps its sum in `kept`, whose entries have the length of a
/// parity block.
///
/// # Errors
/// As for [`run`]; also if the length of `kept` is not the total length of all entries of a
/// transform.
pub(crate) fn run_keeping(
    program: &TransformProgram,
    (kept, length): (&mut [u8], usize),
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    threads: usize,
) -> Result<()> {
    keep_on(WordKernel::best(), program, (kept, length), inputs, outputs, threads)
}

/// As [`run_keeping`], with a kernel that the processor must have.
fn keep_on(
    kernel: WordKernel,
    program: &TransformProgram,
    (kept, length): (&mut [u8], usize),
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    threads: usize,
) -> Result<()> {
    let (read, written) = program.buffers();
    expect_count("read", inputs.len(), read)?;
    expect_count("written", outputs.len(), written)?;
    expect_whole(program, length)?;
    let needed = program.entries().saturating_mul(length.next_multiple_of(GRANULE));
    if !program.keeps() || kept.len() != needed {
        let message = format!("a sum must have {needed} bytes; got {}", kept.len());
        return Err(Error::length(message).expecting(needed).given_instead(kept.len()));
    }
    expect_alike(&lengths(outputs), length)?;
    let lengths: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
    expect_short(program, &lengths, length)?;
    let mut places = places(inputs, outputs);
    places.push(kept.into());
    execute(kernel, program, places, length, threads)
}

fn places<'a>(inputs: &[&'a [u8]], outputs: &'a mut [&mut [u8]]) -> Vec<BufferPlace<'a>> {
    let inputs = inputs.iter().map(|input| BufferPlace::from(*input));
    let outputs = outputs.iter_mut().map(|output| BufferPlace::from(&mut **output));
    inputs.chain(outputs).collect()
}

/// Runs a program over checked buffers. `length` is the length of a parity block.
fn execute(
    kernel: WordKernel,
    program: &TransformProgram,
    places: Vec<BufferPlace<'_>>,
    length: usize,
    threads: usize,
) -> Result<()> {
    let runner = kernel.runners().ok_or_else(|| kernel.unavailable())?.long;
    let bytes = length.saturating_mul(places.len());
    let memory = Memory { places: &places, nontemporal: false };
    let threads = Threads { most: NonZeroUsize::new(threads), bytes_each: BYTES_A_THREAD };
    let granules = length.div_ceil(GRANULE);
    threads::over_stripes(granules, program.grain(granules), bytes, threads, |range| {
        // SAFETY: the caller checked that every buffer is there, and that parity blocks have whole
        // granules. (In Leopard's codes they may have partial granules, because the kernel does not
        // read or write buffers by whole granules.) The kernel keeps within the length of each
        // buffer. All that is written is borrowed exclusively. Threads get disjoint granules, which
        // begin at whole tiles if a sum is kept, so that its tiles are disjoint, too. Runners exist
        // only where the processor has the features that they need.
        unsafe { runner(program, &memory, range) };
    });
    Ok(())
}

/// Checks the blocks of a call and returns the length of the parity blocks.
fn check(program: &TransformProgram, inputs: &[&[u8]], outputs: &[&mut [u8]]) -> Result<usize> {
    let (read, written) = program.buffers();
    expect_count("read", inputs.len(), read)?;
    expect_count("written", outputs.len(), written)?;
    let inputs: Vec<usize> = inputs.iter().map(|input| input.len()).collect();
    let outputs = lengths(outputs);
    let (parity, data) = if program.recovers() { (inputs, outputs) } else { (outputs, inputs) };
    let Some(&length) = parity.first() else { return Ok(0) };
    expect_whole(program, length)?;
    expect_alike(&parity, length)?;
    expect_short(program, &data, length)?;
    Ok(length)
}

fn lengths(blocks: &[&mut [u8]]) -> Vec<usize> {
    blocks.iter().map(|block| block.len()).collect()
}

fn expect_whole(program: &TransformProgram, length: usize) -> Result<()> {
    let unit = if program.is_leopard() { SYMBOL } else { GRANULE };
    if length.is_multiple_of(unit) {
        return Ok(());
    }
    let message = format!("a parity block must have a multiple of {unit} bytes; got {length}");
    Err(Error::length(message).given_instead(length))
}

/// Expects that all parity blocks have this length.
fn expect_alike(parity: &[usize], length: usize) -> Result<()> {
    match parity.iter().enumerate().find(|&(_, &other)| other != length) {
        None => Ok(()),
        Some((number, &other)) => {
            let message = format!(
                "parity block {number} of those given must have {length} bytes, as the others; got {other}"
            );
            Err(Error::length(message).at(number).expecting(length).given_instead(other))
        }
    }
}

/// Expects that no data block is longer than the parity blocks. In Leopard's codes, the length of a
/// block decides where the symbols of its last bytes lie, so the block must be as long as the
/// parity blocks or empty.
fn expect_short(program: &TransformProgram, data: &[usize], length: usize) -> Result<()> {
    let (most, fits): (&str, fn(usize, usize) -> bool) = match program.is_leopard() {
        true => ("0 or", |block, length| block == 0 || block == length),
        false => ("at most", |block, length| block <= length),
    };
    match data.iter().enumerate().find(|&(_, &block)| !fits(block, length)) {
        None => Ok(()),
        Some((number, &block)) => {
            let message = format!(
                "data block {number} of those given must have {most} {length} bytes; got {block}"
            );
            Err(Error::length(message).at(number).expecting(length).given_instead(block))
        }
    }
}

fn expect_count(what: &str, given: usize, needed: usize) -> Result<()> {
    if given == needed {
        return Ok(());
    }
    let message = format!("the number of blocks that are {what} must be {needed}; got {given}");
    Err(Error::buffers(message).expecting(needed).given_instead(given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::long::LongMatrix;
    use crate::define::tower::{CantorBasis, Element, base};
    use crate::error::ErrorKind;
    use crate::plan::long::recovery::Recovery;

    fn fill(blocks: usize, length: usize) -> Vec<Vec<u8>> {
        let byte = |block: usize| move |at: usize| (at % 251 * 7 + block * 31 + block / 7) as u8;
        (0..blocks).map(|block| (0..length).map(byte(block)).collect()).collect()
    }

    fn slices(blocks: &[Vec<u8>]) -> Vec<&[u8]> {
        blocks.iter().map(Vec::as_slice).collect()
    }

    /// Adds `factor` times a block to a sum, symbol by symbol.
    fn add_product(factor: Element, block: &[u8], sum: &mut [u8]) {
        let times = |factor: u8| -> [u8; 256] {
            std::array::from_fn(|byte| base().multiply(factor.into(), byte as u32) as u8)
        };
        let [own, cross, both] = factor.factors().map(times);
        let half = GRANULE / 2;
        for (symbols, sums) in block.chunks(GRANULE).zip(sum.chunks_exact_mut(GRANULE)) {
            let mut granule = [0; GRANULE];
            granule[..symbols.len()].copy_from_slice(symbols);
            for at in 0..half {
                let (low, high) = (usize::from(granule[at]), usize::from(granule[at + half]));
                sums[at] ^= own[low] ^ cross[high];
                sums[at + half] ^= own[low] ^ both[low ^ high];
            }
        }
    }

    /// The numbers of blocks, the bytes of each, the bytes of the last, and the first that is
    /// added.
    const CASES: [(usize, usize, usize, usize, usize); 8] = [
        (1, 1, 128, 128, 0),
        (7, 1, 384, 1, 2),
        (9, 2, 128, 127, 0),
        (20, 3, 256, 65, 1),
        (40, 8, 640, 513, 9),
        (50, 13, 384, 129, 0),
        (75, 32, 128, 64, 40),
        (700, 100, 128, 3, 100),
    ];

    /// A case that is long enough for several threads.
    const LONG_CASE: (usize, usize, usize, usize, usize) = (60, 10, 150 * GRANULE, 77, 0);

    /// Checks every kernel against the coefficients, with short, empty and absent blocks, rows in
    /// any order, and nothing written round the sums.
    #[test]
    fn all_kernels_add_products() {
        for (data, parity, length, last, first) in CASES {
            let matrix = LongMatrix::new(CantorBasis::Own, data, parity).unwrap();
            let mut blocks = fill(data, length).split_off(first);
            blocks.last_mut().unwrap().truncate(last);
            if blocks.len() > 3 {
                blocks[1].clear();
                blocks[2].truncate(length / 2 + 1);
            }
            let rows: Vec<usize> = (0..parity).rev().filter(|row| row % 5 != 2).collect();
            let mut expected = fill(rows.len(), length);
            for (&row, sum) in rows.iter().zip(&mut expected) {
                for (number, block) in blocks.iter().enumerate() {
                    add_product(matrix.coefficient(row, first + number), block, sum);
                }
            }
            let program = TransformProgram::add(matrix, &rows, first..data);
            for kernel in WordKernel::available() {
                for shift in [0, 3] {
                    let mut made = fill(rows.len(), length);
                    made.iter_mut().for_each(|sum| {
                        sum.splice(0..0, vec![0xEE; 64 + shift]);
                        sum.extend([0xEE; 64]);
                    });
                    let mut sums: Vec<&mut [u8]> =
                        made.iter_mut().map(|sum| &mut sum[64 + shift..][..length]).collect();
                    run_on(kernel, &program, &slices(&blocks), &mut sums, 1).unwrap();
                    for (made, expected) in made.iter().zip(&expected) {
                        let (before, rest) = made.split_at(64 + shift);
                        let (sum, after) = rest.split_at(length);
                        assert!(sum == expected, "{kernel} {data} + {parity}");
                        assert!(before.iter().chain(after).all(|&byte| byte == 0xEE));
                    }
                }
            }
        }
    }

    /// Encodes blocks, of which the first is not short, into parity blocks that begin `distance`
    /// bytes apart, and checks that nothing between them is written.
    fn encode_apart(
        kernel: WordKernel,
        program: &TransformProgram,
        blocks: &[Vec<u8>],
        (parity, distance): (usize, usize),
        threads: usize,
    ) -> Vec<Vec<u8>> {
        let length = blocks[0].len();
        let mut memory = vec![0xEE; parity * distance];
        let made = memory.chunks_exact_mut(distance);
        let mut made: Vec<&mut [u8]> = made.map(|made| &mut made[..length]).collect();
        run_on(kernel, program, &slices(blocks), &mut made, threads).unwrap();
        let mut between = memory.chunks_exact(distance).flat_map(|made| &made[length..]);
        assert!(between.all(|&byte| byte == 0xEE), "{kernel}, {distance}");
        memory.chunks_exact(distance).map(|made| made[..length].to_vec()).collect()
    }

    /// Parity blocks that lie close together hold the sum while it is made; others do not.
    #[test]
    fn all_kernels_encode_into_blocks_close_together_and_apart() {
        for (data, parity, length, last, _) in CASES.into_iter().chain([(4, 9, 4224, 1, 0)]) {
            let matrix = LongMatrix::new(CantorBasis::Own, data, parity).unwrap();
            let mut blocks = fill(data, length);
            blocks.last_mut().unwrap().truncate(last);
            let mut expected = vec![vec![0; length]; parity];
            for (row, sum) in expected.iter_mut().enumerate() {
                for (column, block) in blocks.iter().enumerate() {
                    add_product(matrix.coefficient(row, column), block, sum);
                }
            }
            let program = TransformProgram::encode(matrix);
            for kernel in WordKernel::available() {
                for distance in [length, length + 3, length + 4096] {
                    let made = encode_apart(kernel, &program, &blocks, (parity, distance), 1);
                    assert!(made == expected, "{kernel} {data} + {parity}, {distance}");
                }
            }
        }
    }

    #[test]
    fn all_kernels_recover() {
        for (data, parity, length, last, _) in CASES {
            let matrix = LongMatrix::new(CantorBasis::Own, data, parity).unwrap();
            let count = data.min(parity.div_ceil(2));
            let lost: Vec<usize> = (0..count).map(|n| data - 1 - n * data / count).collect();
            let rows: Vec<usize> = (0..parity).rev().collect();
            let recovery = Recovery::new(matrix, &lost, &rows).unwrap();
            let mut blocks = fill(count, length);
            blocks[0].truncate(last);
            let mut sums = vec![vec![0; length]; count];
            for (&row, sum) in recovery.rows().iter().zip(&mut sums) {
                for (&column, block) in lost.iter().zip(&blocks) {
                    add_product(matrix.coefficient(row, column), block, sum);
                }
            }
            for kernel in WordKernel::available() {
                let mut made: Vec<Vec<u8>> =
                    blocks.iter().map(|block| vec![0xEE; block.len()]).collect();
                let mut targets: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
                let program = TransformProgram::recover(&recovery);
                run_on(kernel, &program, &slices(&sums), &mut targets, 1).unwrap();
                assert!(made == blocks, "{kernel} {data} + {parity}");
            }
        }
    }

    /// The elements of a block of Leopard's symbols: 64 bytes are the low bytes of 32 symbols and
    /// then their high bytes; the remaining bytes at the end are halved likewise.
    fn elements(block: &[u8]) -> Vec<Element> {
        let of = |chunk: &[u8]| -> Vec<Element> {
            let (low, high) = chunk.split_at(chunk.len() / 2);
            let number = |(&low, &high): (&u8, &u8)| u16::from_le_bytes([low, high]);
            let numbers = low.iter().zip(high).map(number);
            numbers.map(|number| CantorBasis::Leopard.point(number.into())).collect()
        };
        block.chunks(64).flat_map(of).collect()
    }

    /// The numbers of blocks, the bytes of each, and the bytes before the first.
    const LEOPARD_CASES: [(usize, usize, usize, usize); 7] = [
        (1, 1, 2, 0),
        (5, 1, 64, 1),
        (9, 2, 62, 3),
        (20, 3, 66, 0),
        (40, 8, 192, 5),
        (3, 5, 4290, 0),
        (75, 32, 190, 8),
    ];

    /// Checks every kernel against the coefficients, with absent blocks, rows in any order, sums
    /// that are not zero, and nothing written round them. Then recovers blocks.
    #[test]
    fn all_kernels_have_leopards_symbols() {
        for (data, parity, length, shift) in LEOPARD_CASES {
            let matrix = LongMatrix::new(CantorBasis::Leopard, data, parity).unwrap();
            let mut blocks = fill(data, length);
            if data > 3 {
                blocks[1].clear();
            }
            let rows: Vec<usize> = (0..parity).rev().filter(|row| row % 5 != 2).collect();
            let before = fill(rows.len(), length);
            let expected = rows.iter().zip(&before).map(|(&row, sum)| {
                let mut sum = elements(sum);
                for (column, block) in blocks.iter().enumerate() {
                    let factor = matrix.coefficient(row, column);
                    let terms = sum.iter_mut().zip(elements(block));
                    terms.for_each(|(sum, symbol)| *sum = sum.plus(factor.times(symbol)));
                }
                sum
            });
            let expected: Vec<Vec<Element>> = expected.collect();
            let program = TransformProgram::add(matrix, &rows, 0..data);
            for kernel in WordKernel::available() {
                let framed =
                    |block: &Vec<u8>| [&vec![0xEE; shift], &block[..], &[0xEE; 64]].concat();
                let mut made: Vec<Vec<u8>> = before.iter().map(framed).collect();
                let mut sums: Vec<&mut [u8]> =
                    made.iter_mut().map(|sum| &mut sum[shift..][..length]).collect();
                run_on(kernel, &program, &slices(&blocks), &mut sums, 1).unwrap();
                for (made, expected) in made.iter().zip(&expected) {
                    let (sum, round) =
                        (&made[shift..][..length], [&made[..shift], &made[shift + length..]]);
                    assert!(elements(sum) == *expected, "{kernel} {data} + {parity}, {length}");
                    assert!(round.concat().iter().all(|&byte| byte == 0xEE));
                }
                expect_recovered(kernel, matrix, length);
                expect_kept(kernel, matrix, length);
            }
        }
    }

    /// Parity that is made in its own blocks, close together, or elsewhere and moved there.
    #[test]
    fn all_kernels_encode_leopards_symbols_close_together_and_apart() {
        for (data, parity, length) in [(5, 3, 128), (20, 30, 1024), (3, 40, 4096), (9, 2, 190)] {
            let matrix = LongMatrix::new(CantorBasis::Leopard, data, parity).unwrap();
            let blocks = fill(data, length);
            let rows: Vec<usize> = (0..parity).collect();
            let mut expected = vec![vec![0; length]; parity];
            let mut sums: Vec<&mut [u8]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
            let program = TransformProgram::add(matrix, &rows, 0..data);
            run_on(WordKernel::Scalar, &program, &slices(&blocks), &mut sums, 1).unwrap();
            let program = TransformProgram::encode(matrix);
            for kernel in WordKernel::available() {
                for distance in [length, length + 5, length + 4096] {
                    let made = encode_apart(kernel, &program, &blocks, (parity, distance), 1);
                    assert!(made == expected, "{kernel} {data} + {parity}, {distance}");
                }
            }
        }
    }

    /// Threads divide short blocks, whose parity each of them may make in place or in a tile.
    #[test]
    fn threads_encode_as_one_does() {
        for (basis, length) in [(CantorBasis::Own, 1024), (CantorBasis::Leopard, 1090)] {
            for parity in [130, 256, 300] {
                let matrix = LongMatrix::new(basis, 300, parity).unwrap();
                let (blocks, program) = (fill(300, length), TransformProgram::encode(matrix));
                let encode = |threads, distance| {
                    let kernel = WordKernel::best();
                    encode_apart(kernel, &program, &blocks, (parity, distance), threads)
                };
                let expected = encode(1, 4096);
                for (threads, distance) in [(1, length), (2, length), (4, length), (3, 4096)] {
                    assert!(encode(threads, distance) == expected, "{parity}, {threads} threads");
                }
            }
        }
    }

    /// Loses as many blocks as there are parity blocks, and recovers them.
    fn expect_recovered(kernel: WordKernel, matrix: LongMatrix, length: usize) {
        let (data, parity) = (matrix.data(), matrix.parity());
        let blocks = fill(data, length);
        let count = data.min(parity);
        let lost: Vec<usize> = (0..count).map(|n| data - 1 - n * data / count).collect();
        let rows: Vec<usize> = (0..parity).rev().collect();
        let recovery = Recovery::new(matrix, &lost, &rows).unwrap();
        let present = |block: usize| if lost.contains(&block) { &[][..] } else { &blocks[block] };
        let left: Vec<&[u8]> = (0..data).map(present).collect();
        let mut sums = vec![vec![0; length]; count];
        let add = |blocks: &[&[u8]], sums: &mut Vec<Vec<u8>>| {
            let program = TransformProgram::add(matrix, recovery.rows(), 0..data);
            let mut sums: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
            run_on(kernel, &program, blocks, &mut sums, 2).unwrap();
        };
        add(&slices(&blocks), &mut sums);
        add(&left, &mut sums);
        let mut made = vec![vec![0xEE; length]; count];
        let mut targets: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
        let program = TransformProgram::recover(&recovery);
        run_on(kernel, &program, &slices(&sums), &mut targets, 2).unwrap();
        for (&block, made) in lost.iter().zip(&made) {
            assert!(*made == blocks[block], "{kernel} {data} + {parity}, {length}");
        }
    }

    /// Adds blocks in two calls to a sum that is kept.
    fn expect_kept(kernel: WordKernel, matrix: LongMatrix, length: usize) {
        let (blocks, rows) =
            (fill(matrix.data(), length), (0..matrix.parity()).collect::<Vec<_>>());
        let mut parity = vec![[vec![0; length], vec![0xEE; length]]; rows.len()];
        let mut sums: Vec<&mut [u8]> = parity.iter_mut().map(|both| &mut both[0][..]).collect();
        let program = TransformProgram::add(matrix, &rows, 0..matrix.data());
        run_on(kernel, &program, &slices(&blocks), &mut sums, 1).unwrap();
        let mut kept = vec![0; matrix.chunk() * length.next_multiple_of(GRANULE)];
        let middle = matrix.data() / 2;
        for columns in [0..middle, middle..matrix.data()] {
            let program = TransformProgram::gather(matrix, columns.clone());
            let part = slices(&blocks[columns]);
            keep_on(kernel, &program, (&mut kept, length), &part, &mut [], 1).unwrap();
        }
        let mut made: Vec<&mut [u8]> = parity.iter_mut().map(|both| &mut both[1][..]).collect();
        let program = TransformProgram::finish(matrix, &rows);
        keep_on(kernel, &program, (&mut kept, length), &[], &mut made, 1).unwrap();
        assert!(parity.iter().all(|[added, kept]| added == kept), "{kernel} {length}");
    }

    #[test]
    fn leopards_blocks_are_whole_or_empty() {
        let matrix = LongMatrix::new(CantorBasis::Leopard, 2, 1).unwrap();
        let program = TransformProgram::add(matrix, &[0], 0..2);
        let run_with = |[first, second]: [usize; 2], sum: usize| {
            let (bytes, mut sum) = ([0; 70], vec![0; sum]);
            let blocks = [&bytes[..first], &bytes[..second]];
            run(&program, &blocks, &mut [&mut sum], 1).map_err(|error| error.to_string())
        };
        assert_eq!(run_with([66, 0], 66), Ok(()));
        assert!(run_with([66, 64], 66).unwrap_err().contains("must have 0 or 66 bytes; got 64"));
        assert!(run_with([65, 65], 65).unwrap_err().contains("a multiple of 2 bytes; got 65"));
    }

    /// Blocks that are added in several calls to a sum that is kept give the same parity.
    #[test]
    fn kept_sums_give_the_same_parity() {
        for (data, parity, length, last, first) in CASES.into_iter().chain([LONG_CASE]) {
            let matrix = LongMatrix::new(CantorBasis::Own, data, parity).unwrap();
            let mut blocks = fill(data, length).split_off(first);
            blocks.last_mut().unwrap().truncate(last);
            let rows: Vec<usize> = (0..parity).rev().filter(|row| row % 5 != 2).collect();
            let mut expected = vec![vec![0; length]; rows.len()];
            let mut sums: Vec<&mut [u8]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
            let program = TransformProgram::add(matrix, &rows, first..data);
            run(&program, &slices(&blocks), &mut sums, 1).unwrap();
            let middle = first + blocks.len() / 3;
            let parts = [first..middle, middle..data].map(|columns| {
                let part = &blocks[columns.start - first..columns.end - first];
                (TransformProgram::gather(matrix, columns), slices(part))
            });
            let finish = TransformProgram::finish(matrix, &rows);
            for (kernel, threads) in WordKernel::available().zip([1, 2].repeat(9)) {
                let mut kept = vec![0; matrix.chunk() * length];
                for (program, part) in &parts {
                    let sum = (&mut kept[..], length);
                    keep_on(kernel, program, sum, part, &mut [], threads).unwrap();
                }
                let mut made = vec![vec![0xEE; length]; rows.len()];
                let mut targets: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
                keep_on(kernel, &finish, (&mut kept, length), &[], &mut targets, threads).unwrap();
                assert!(made == expected, "{kernel} {data} + {parity}, {threads} threads");
            }
        }
    }

    #[test]
    fn sums_that_do_not_fit_are_refused() {
        let matrix = LongMatrix::new(CantorBasis::Own, 3, 2).unwrap();
        let data = fill(3, 129);
        let keep = |bytes: usize, length, blocks: &[usize], sums: &[usize]| {
            let mut kept = vec![0; bytes];
            let mut sums: Vec<Vec<u8>> = sums.iter().map(|&bytes| vec![0; bytes]).collect();
            let blocks: Vec<&[u8]> = data.iter().zip(blocks).map(|(d, &b)| &d[..b]).collect();
            let mut sums: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
            let program = match blocks.is_empty() {
                true => TransformProgram::finish(matrix, &[0, 1]),
                false => TransformProgram::gather(matrix, 0..3),
            };
            run_keeping(&program, (&mut kept, length), &blocks, &mut sums, 1)
                .map_err(|error| (error.kind(), error.node()))
        };
        assert_eq!(keep(256, 128, &[128, 0, 77], &[]), Ok(()));
        assert_eq!(keep(256, 128, &[], &[128, 128]), Ok(()));
        assert_eq!(keep(128, 128, &[128; 3], &[]), Err((ErrorKind::Length, None)));
        assert_eq!(keep(200, 100, &[100; 3], &[]), Err((ErrorKind::Length, None)));
        assert_eq!(keep(256, 128, &[128, 129, 0], &[]), Err((ErrorKind::Length, Some(1))));
        assert_eq!(keep(256, 128, &[128; 2], &[]), Err((ErrorKind::Buffers, None)));
        assert_eq!(keep(256, 128, &[], &[128]), Err((ErrorKind::Buffers, None)));
        assert_eq!(keep(256, 128, &[], &[128, 256]), Err((ErrorKind::Length, Some(1))));
    }

    /// Checks that threads and ranges of columns give the same bytes as one thread and whole
    /// blocks.
    #[test]
    fn columns_are_independent() {
        let length = 150 * GRANULE;
        let program = TransformProgram::add(
            LongMatrix::new(CantorBasis::Own, 60, 10).unwrap(),
            &[0, 4, 9],
            0..60,
        );
        let blocks = fill(60, length - 50);
        let of = |bytes: std::ops::Range<usize>, threads| {
            let blocks: Vec<&[u8]> = blocks
                .iter()
                .map(|block| &block[bytes.start..block.len().min(bytes.end)])
                .collect();
            let mut sums = fill(3, length);
            let mut targets: Vec<&mut [u8]> =
                sums.iter_mut().map(|sum| &mut sum[bytes.clone()]).collect();
            run(&program, &blocks, &mut targets, threads).unwrap();
            targets.iter().flat_map(|target| target.to_vec()).collect::<Vec<u8>>()
        };
        let whole = of(0..length, 1);
        assert_eq!(of(0..length, 2), whole);
        assert_eq!(of(0..length, 0), whole);
        let cuts = [0, GRANULE, 34 * GRANULE, length];
        let parts: Vec<Vec<u8>> = cuts.windows(2).map(|cut| of(cut[0]..cut[1], 1)).collect();
        for (row, whole) in whole.chunks_exact(length).enumerate() {
            let row =
                parts.iter().flat_map(|part| part.chunks_exact(part.len() / 3).nth(row).unwrap());
            assert!(row.eq(whole));
        }
    }

    #[test]
    fn blocks_that_do_not_fit_are_refused() {
        let program =
            TransformProgram::add(LongMatrix::new(CantorBasis::Own, 3, 2).unwrap(), &[0, 1], 0..3);
        let data = fill(3, 129);
        let run_with = |lengths: [usize; 3], sums: &[usize]| {
            let blocks: Vec<&[u8]> =
                data.iter().zip(lengths).map(|(block, length)| &block[..length]).collect();
            let mut sums: Vec<Vec<u8>> = sums.iter().map(|&length| vec![0; length]).collect();
            let mut sums: Vec<&mut [u8]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
            run(&program, &blocks, &mut sums, 1).map_err(|error| (error.kind(), error.node()))
        };
        assert_eq!(run_with([128, 0, 77], &[128, 128]), Ok(()));
        assert_eq!(run_with([128; 3], &[128]), Err((ErrorKind::Buffers, None)));
        assert_eq!(run_with([100; 3], &[100, 100]), Err((ErrorKind::Length, None)));
        assert_eq!(run_with([128; 3], &[128, 256]), Err((ErrorKind::Length, Some(1))));
        assert_eq!(run_with([128, 128, 129], &[128, 128]), Err((ErrorKind::Length, Some(2))));
        assert_eq!(run_with([128; 3], &[128; 3]), Err((ErrorKind::Buffers, None)));
        assert!(run(&program, &slices(&data[..2]), &mut [], 1).is_err());
        let recovery =
            Recovery::new(LongMatrix::new(CantorBasis::Own, 3, 2).unwrap(), &[1], &[0, 1]).unwrap();
        let recover = |sums: &[&[u8]], lost: &mut [&mut [u8]]| {
            run(&TransformProgram::recover(&recovery), sums, lost, 1).map_err(|error| error.kind())
        };
        let (sum, mut lost) = ([0; 128], [[0; 128]; 2]);
        let mut lost = lost.each_mut().map(|block| &mut block[..]);
        assert_eq!(recover(&[&sum], &mut lost[..1]), Ok(()));
        assert_eq!(recover(&[&sum], &mut lost), Err(ErrorKind::Buffers));
        assert_eq!(recover(&[&sum, &sum], &mut lost[..1]), Err(ErrorKind::Buffers));
    }
}
