//! Arithmetic on regions of words in the memory of callers.

use std::ffi::c_int;

use paritas::code::Field;
use paritas_dropins::{multiples, product};

use crate::calls::{CallKind, fail, run, values, values_mut};

/// Adds (XORs) `source` to `target`. The regions may overlap.
///
/// # Safety
/// Both regions are valid for `bytes` bytes.
pub(crate) unsafe fn add(source: *const u8, target: *mut u8, bytes: usize) {
    let overlap = (source as usize).abs_diff(target as usize) < bytes;
    // SAFETY: as the caller promises. Regions that overlap are read before the target is borrowed.
    let copy = if overlap { unsafe { values(source, bytes) }.to_vec() } else { Vec::new() };
    // SAFETY: as above.
    let source = if overlap { &copy[..] } else { unsafe { values(source, bytes) } };
    // SAFETY: nothing that is borrowed overlaps the target.
    let target = unsafe { values_mut(target, bytes) };
    target.iter_mut().zip(source).for_each(|(target, &source)| *target ^= source);
}

/// Multiplies a region of words by `factor`. The product replaces the region if `other` is null;
/// else it replaces `other`, or is added to `other` if `adds`.
///
/// # Safety
/// `region` is valid for `nbytes` bytes; `other` is null, or valid for `nbytes` bytes, too.
pub(crate) unsafe fn multiply_region(
    field: Field,
    region: *mut u8,
    factor: u32,
    nbytes: c_int,
    other: *mut u8,
    adds: bool,
) {
    let bytes = usize::try_from(nbytes).unwrap_or(0);
    let adds = adds && !other.is_null();
    let target = if other.is_null() { region } else { other };
    let make = || match adds {
        true => multiples(field, &[factor]).ok(),
        false => product(field, vec![vec![factor]]).ok(),
    };
    if adds && factor == 0 {
        return;
    }
    let kind = if adds { CallKind::Add } else { CallKind::Words };
    let shape = [1, 1, field.width() as usize, field.polynomial() as usize, 0];
    // SAFETY: as the caller promises.
    if !unsafe { run(kind, shape, &[factor as c_int], make, (bytes, &[region], &[target])) } {
        fail(&format!("no words of {} bits can be multiplied by {factor}", field.width()));
    }
}
