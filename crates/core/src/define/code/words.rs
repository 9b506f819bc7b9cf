//! What the families of bytes in the word layout share: the field, reading k and m, and the pin.
//!
//! Their coefficients follow from k and m by a rule that other people's stored data has fixed for
//! ever, so that the pin needs only the polynomial.

use crate::define::cells::{Code, CodeBuilder, Pin};
use crate::define::field::Field;
use crate::define::spec::Spec;
use crate::define::symbols::SymbolMatrix;
use crate::error::{Error, Result};

/// The polynomial of GF(2^8) in ISA-L, HDFS, MinIO, zfec and Linux RAID-6.
const POLYNOMIAL: u64 = 0x11D;

/// The most nodes: the elements of GF(2^8).
pub(super) const MAX_NODES: usize = 256;

/// The field of bytes.
pub(super) fn field() -> Result<Field> {
    Field::with_polynomial(8, POLYNOMIAL)
}

/// Reads `k` and `m` of a spec: at least 1 each and together at most 256.
pub(super) fn read(spec: &Spec) -> Result<(usize, usize)> {
    spec.allow(&["k", "m"])?;
    let (k, m) = (spec.required("k")?, spec.required("m")?);
    if k > 0 && m > 0 && k.saturating_add(m) <= MAX_NODES {
        return Ok((k, m));
    }
    let m = m.clamp(1, MAX_NODES - 1);
    Err(Error::parameters(format!(
        "{spec}: k and m are at least 1, and together at most {MAX_NODES}, the elements of the \
         field; for m = {m} use k from 1 to {}",
        MAX_NODES - m
    )))
}

/// The code with these coefficients, a row a parity node.
pub(super) fn code(family: &str, k: usize, rows: Vec<Vec<u32>>) -> Result<Code> {
    let m = rows.len();
    let mut builder = CodeBuilder::new(k + m);
    builder
        .words(SymbolMatrix::new(field()?, k, rows)?)
        .pin(Pin::new().with("polynomial", [POLYNOMIAL]));
    builder.finish(Spec::new(family).with("k", k).with("m", m), m)
}

/// Refuses a pin with anything but the one polynomial.
pub(super) fn check_pin(spec: &Spec, pin: &Pin) -> Result<()> {
    if pin.entries().eq([("polynomial", &[POLYNOMIAL][..])]) {
        return Ok(());
    }
    Err(Error::parameters(format!(
        "{spec}: the pinned matrix is not one of {}, which has the polynomial {POLYNOMIAL:#x} \
         and nothing else to pin",
        spec.family()
    )))
}
