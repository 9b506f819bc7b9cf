//! The oracle: runs a schedule one byte at a time, with no regard for speed.
//!
//! Every kernel must give what this gives.

use crate::error::{Error, Result};
use crate::plan::schedule::{Schedule, Slot};

/// Runs a schedule over cells of equal length and returns its outputs.
///
/// # Errors
/// When the number of inputs is not the schedule's, or their lengths differ.
pub fn interpret(schedule: &Schedule, inputs: &[&[u8]]) -> Result<Vec<Vec<u8>>> {
    let length = inputs.first().map_or(0, |cell| cell.len());
    if inputs.len() != schedule.inputs() || inputs.iter().any(|cell| cell.len() != length) {
        return Err(Error::length(format!(
            "the schedule has {} inputs, which must be given with equal lengths",
            schedule.inputs()
        )));
    }
    let mut temps = vec![vec![0; length]; schedule.temps()];
    let mut outputs = vec![vec![0; length]; schedule.outputs()];
    for op in schedule.ops() {
        for byte in 0..length {
            let read = |slot: Slot| match slot {
                Slot::Input(n) => inputs[n as usize][byte],
                Slot::Temp(n) => temps[n as usize][byte],
                Slot::Output(n) => outputs[n as usize][byte],
            };
            let start = if op.accumulate { read(op.target) } else { 0 };
            let value = op.sources.iter().fold(start, |sum, &source| sum ^ read(source));
            match op.target {
                Slot::Temp(n) => temps[n as usize][byte] = value,
                Slot::Output(n) => outputs[n as usize][byte] = value,
                Slot::Input(_) => unreachable!("a checked schedule writes no input"),
            }
        }
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
}
