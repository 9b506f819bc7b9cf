//! The oracle: runs a schedule cell by cell, simply and slowly.
//!
//! Every kernel must give the same result.

use crate::error::{Error, Result};
use crate::plan::schedule::{Schedule, Slot};

/// Runs a schedule over cells of equal length and returns its outputs.
///
/// # Errors
/// If the number of inputs differs from the schedule's, their lengths differ, or a length is not a
/// whole number of words.
pub fn interpret(schedule: &Schedule, inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    let length = inputs.first().map_or(0, |cell| cell.len());
    let word = schedule.word();
    if inputs.len() != schedule.inputs()
        || inputs.iter().any(|cell| cell.len() != length)
        || !length.is_multiple_of(word)
    {
        return Err(Error::length(format!(
            "the schedule has {} inputs, which must be given with equal lengths in words of {word} \
             bytes",
            schedule.inputs()
        )));
    }
    // A schedule may declare more temporaries than it uses. Each is written before it is read.
    let mut temps = vec![Vec::new(); schedule.temps()];
    let mut outputs = vec![vec![0; length]; schedule.outputs()];
    for op in schedule.ops() {
        let mut sum = vec![0; length];
        for &source in op.sources.iter().chain(op.accumulate.then_some(&op.target)) {
            let cell = match source {
                Slot::Input(n) => inputs[n as usize],
                Slot::Temp(n) => &temps[n as usize],
                Slot::Output(n) => &outputs[n as usize],
            };
            sum.iter_mut().zip(cell).for_each(|(sum, byte)| *sum ^= byte);
        }
        if let Some(field) = schedule.field().filter(|_| op.factor != 1) {
            let mut product = vec![0; length];
            field.multiples_of(op.factor).add(&sum, &mut product);
            sum = product;
        }
        let target = match op.target {
            Slot::Temp(n) => &mut temps[n as usize],
            Slot::Output(n) => &mut outputs[n as usize],
            Slot::Input(_) => unreachable!("a checked schedule writes no input"),
        };
        *target = sum;
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        let text =
            "inputs 3 temps 1 outputs 3\nt0 = i0 ^ i1\no0 = t0 ^ i2\no1 = t0\no1 ^= i1\no2 = 0\n";
        let schedule: Schedule = text.parse().unwrap();
        let outputs = interpret(&schedule, &[&[1, 16], &[2, 32], &[4, 64]]).unwrap();
        assert_eq!(outputs, [vec![7, 112], vec![1, 16], vec![0, 0]]);
        assert!(interpret(&schedule, &[&[1], &[2]]).is_err());
        assert!(interpret(&schedule, &[&[1], &[2], &[]]).is_err());
    }

    /// Doubling 0x80 shifts the top bit out and adds 0x1D; the words of two bytes are
    /// little-endian.
    #[test]
    fn words_are_multiplied() {
        let text = "inputs 2 temps 1 outputs 1 field 8 0x11d\nt0 = 2 * (i0 ^ i1)\no0 = t0 ^ i0\n";
        let outputs = interpret(&text.parse().unwrap(), &[&[0x80, 1], &[0, 2]]).unwrap();
        assert_eq!(outputs, [vec![0x1D ^ 0x80, 6 ^ 1]]);
        let text = "inputs 1 temps 0 outputs 1 field 16 0x1100b\no0 = 2 * i0\n";
        let outputs = interpret(&text.parse().unwrap(), &[&[0x80, 0x80]]).unwrap();
        assert_eq!(outputs, [vec![0x0B, 0x11]]);
        assert!(interpret(&text.parse().unwrap(), &[&[1]]).is_err());
    }
}
