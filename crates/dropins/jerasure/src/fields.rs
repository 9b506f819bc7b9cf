//! The fields of `galois.h`: the polynomial of each word width w, and gf-complete's `gf_t`, with
//! which programs replace a field.
//!
//! A `gf_t` says what a field computes and by which method. This library always uses its own
//! method. A program may replace a field by any other whose elements are polynomials modulo an
//! irreducible polynomial, and whose regions hold one word after the other. Other fields (composite
//! fields, the regions `ALTMAP` and `CAUCHY`) end the process with a message, as Jerasure does for
//! a field that it does not have.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use paritas::code::Field;

use crate::calls::{fail, given};
use crate::regions::multiply_region;

/// Values of gf-complete's `gf_complete.h`.
const GF_MULT_COMPOSITE: c_int = 12;
const GF_REGION_ALTMAP: c_int = 0x20;
const GF_REGION_CAUCHY: c_int = 0x40;

type Multiply = unsafe extern "C" fn(*mut Gf, u32, u32) -> u32;
type Inverse = unsafe extern "C" fn(*mut Gf, u32) -> u32;
type MultiplyRegion = unsafe extern "C" fn(*mut Gf, *mut c_void, *mut c_void, u32, c_int, c_int);
type ExtractWord = unsafe extern "C" fn(*mut Gf, *mut c_void, c_int, c_int) -> u32;

/// `gf_t` of gf-complete: the functions of a field.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Gf {
    multiply: Option<Multiply>,
    divide: Option<Multiply>,
    inverse: Option<Inverse>,
    multiply_region: Option<MultiplyRegion>,
    extract_word: Option<ExtractWord>,
    scratch: *mut ScratchHead,
}

/// The first fields of the memory that `scratch` points to. They tell gf-complete's `gf_free` that
/// there is nothing to free.
#[repr(C)]
#[derive(Clone, Copy)]
struct ScratchHead {
    mult_type: c_int,
    region_type: c_int,
    divide_type: c_int,
    w: c_int,
    prim_poly: u64,
    free_me: c_int,
    arg1: c_int,
    arg2: c_int,
    base_gf: *mut Gf,
    private: *mut c_void,
}

/// A `gf_t` of this library, in one block from `malloc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ours {
    gf: Gf,
    scratch: ScratchHead,
}

/// Number of word widths in Jerasure's tables.
const WIDTHS: usize = 64;

/// The field of each width, as programs see it; null until it is asked for.
#[unsafe(no_mangle)]
pub static gfp_array: [AtomicPtr<Gf>; WIDTHS] = [const { AtomicPtr::new(null_mut()) }; WIDTHS];

/// Whether the field of each width is composite: always 0.
#[unsafe(no_mangle)]
pub static gfp_is_composite: [AtomicI32; WIDTHS] = [const { AtomicI32::new(0) }; WIDTHS];

/// Fields that replace the default field of a width; null where the default is in use.
static EXCHANGED: [AtomicPtr<Field>; WIDTHS] = [const { AtomicPtr::new(null_mut()) }; WIDTHS];

/// Returns the field of words of w bits.
pub(crate) fn field(w: c_int) -> Option<Field> {
    let exchanged = EXCHANGED.get(usize::try_from(w).ok()?)?.load(Ordering::Acquire);
    // SAFETY: a field that was stored there is never freed, because a thread may be reading it.
    match unsafe { exchanged.as_ref() } {
        Some(field) => Some(*field),
        None => Field::new(w as u32).ok(),
    }
}

/// Returns the polynomial of words of w bits, which is part of a program's key; 0 if there are no
/// such words.
pub(crate) fn polynomial(w: c_int) -> usize {
    field(w).map_or(0, |field| field.polynomial() as usize)
}

/// Returns the index of words of w bits in the tables. Ends the process if there are no such words.
fn place(w: c_int) -> usize {
    match field(w) {
        Some(_) => w as usize,
        None => fail(&format!("there are no words of {w} bits")),
    }
}

/// Replaces the field of words of w bits; `None` restores the default.
fn exchange(w: c_int, field: Option<Field>) {
    let field = field.filter(|&field| Field::new(w as u32).ok() != Some(field));
    // The old field is never freed, because a thread may be reading it: each call leaks a few
    // bytes.
    let kept = field.map_or(null_mut(), |field| Box::into_raw(Box::new(field)));
    EXCHANGED[place(w)].store(kept, Ordering::Release);
}

/// Returns a new `gf_t` for a field; null if there is no memory.
fn given_gf(field: Field) -> *mut Gf {
    let scratch = ScratchHead {
        mult_type: 0,
        region_type: 0,
        divide_type: 0,
        w: field.width() as c_int,
        prim_poly: field.polynomial(),
        free_me: 0,
        arg1: 0,
        arg2: 0,
        base_gf: null_mut(),
        private: null_mut(),
    };
    let gf = Gf {
        multiply: Some(multiply),
        divide: Some(divide),
        inverse: Some(inverse),
        multiply_region: Some(region),
        extract_word: Some(extract_word),
        scratch: null_mut(),
    };
    let ours = given(&[Ours { gf, scratch }]);
    // SAFETY: the memory is new, and has a value unless it is null.
    if let Some(ours) = unsafe { ours.as_mut() } {
        ours.gf.scratch = &raw mut ours.scratch;
    }
    ours.cast()
}

/// Returns the field modulo `polynomial`, which may omit its leading term; 0 means the default
/// polynomial.
fn field_of(w: c_int, polynomial: u64) -> paritas::Result<Field> {
    let usual = Field::new(w as u32)?;
    match polynomial | 1 << w {
        same if polynomial == 0 || same == usual.polynomial() => Ok(usual),
        other => Field::with_polynomial(w as u32, other),
    }
}

/// Returns the field of a `gf_t`.
///
/// # Safety
/// `gf` is a `gf_t` of this library or of gf-complete. (Jerasure's `galois_w8_region_xor` passes
/// the `gf_t` of one field to the function of another.)
unsafe fn of(gf: *const Gf) -> Field {
    // SAFETY: as the caller promises.
    let ScratchHead { w, prim_poly, .. } = unsafe { *(*gf).scratch };
    field_of(w, prim_poly).unwrap_or_else(|error| fail(&error.to_string()))
}

unsafe extern "C" fn multiply(gf: *mut Gf, a: u32, b: u32) -> u32 {
    // SAFETY: gf-complete's callers pass the `gf_t` that the function came from.
    unsafe { of(gf) }.multiply(a, b)
}

unsafe extern "C" fn divide(gf: *mut Gf, a: u32, b: u32) -> u32 {
    // SAFETY: as above.
    let field = unsafe { of(gf) };
    field.inverse(b).map_or(0, |inverse| field.multiply(a, inverse))
}

unsafe extern "C" fn inverse(gf: *mut Gf, a: u32) -> u32 {
    // SAFETY: as above.
    unsafe { of(gf) }.inverse(a).unwrap_or(0)
}

unsafe extern "C" fn region(
    gf: *mut Gf,
    source: *mut c_void,
    target: *mut c_void,
    factor: u32,
    bytes: c_int,
    adds: c_int,
) {
    // SAFETY: as above; the regions are valid as the caller promises.
    unsafe { multiply_region(of(gf), source.cast(), factor, bytes, target.cast(), adds != 0) };
}

unsafe extern "C" fn extract_word(
    gf: *mut Gf,
    start: *mut c_void,
    _bytes: c_int,
    at: c_int,
) -> u32 {
    // SAFETY: as above; the word is in the region, as the caller promises.
    unsafe {
        let at = at as usize;
        match of(gf).width() {
            8 => u32::from(*start.cast::<u8>().add(at)),
            16 => u32::from(start.cast::<u16>().add(at).read_unaligned()),
            32 => start.cast::<u32>().add(at).read_unaligned(),
            w => fail(&format!("regions have words of 8, 16 or 32 bits; got {w}")),
        }
    }
}

/// Prepares the field of words of w bits. Returns 0, EINVAL if there are no such words, or ENOMEM.
#[unsafe(no_mangle)]
pub extern "C" fn galois_init_default_field(w: c_int) -> c_int {
    match field(w) {
        None => libc::EINVAL,
        Some(_) if galois_get_field_ptr(w).is_null() => libc::ENOMEM,
        Some(_) => 0,
    }
}

/// Returns the `gf_t` of words of w bits, and makes it if there is none. Null if there are no such
/// words, or no memory.
#[unsafe(no_mangle)]
pub extern "C" fn galois_get_field_ptr(w: c_int) -> *mut Gf {
    let Some(field) = field(w) else { return null_mut() };
    let place = &gfp_array[w as usize];
    let there = place.load(Ordering::Acquire);
    if !there.is_null() {
        return there;
    }
    let made = given_gf(field);
    match place.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(there) => {
            // SAFETY: it is new, and nobody else has it.
            unsafe { libc::free(made.cast()) };
            there
        }
    }
}

/// Frees the `gf_t` of words of w bits and restores the default field. Returns 0.
///
/// # Safety
/// If the caller has replaced this field, the new `gf_t` came from `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galois_uninit_field(w: c_int) -> c_int {
    if field(w).is_some() {
        exchange(w, None);
        let old = gfp_array[w as usize].swap(null_mut(), Ordering::AcqRel);
        // SAFETY: as the caller promises; ours come from `malloc`.
        unsafe { libc::free(old.cast()) };
    }
    0
}

/// Returns a new `gf_t` for words of w bits modulo `prim_poly`, which may omit its leading term; 0
/// means the default polynomial. The caller cannot choose the method of multiplication: `mult_type`
/// and `region_type` are only checked for unsupported kinds.
#[unsafe(no_mangle)]
pub extern "C" fn galois_init_field(
    w: c_int,
    mult_type: c_int,
    region_type: c_int,
    _divide_type: c_int,
    prim_poly: u64,
    _arg1: c_int,
    _arg2: c_int,
) -> *mut Gf {
    if mult_type == GF_MULT_COMPOSITE {
        fail("composite fields are not supported");
    }
    if region_type & (GF_REGION_ALTMAP | GF_REGION_CAUCHY) != 0 {
        fail("regions of the kinds ALTMAP and CAUCHY are not supported");
    }
    match field_of(w, prim_poly).map(given_gf) {
        Ok(gf) if gf.is_null() => fail("there is no memory for a field"),
        Ok(gf) => gf,
        Err(error) => fail(&format!("no field of words of {w} bits: {error}")),
    }
}

/// Ends the process: this library has no composite fields.
#[unsafe(no_mangle)]
pub extern "C" fn galois_init_composite_field(
    _w: c_int,
    _region_type: c_int,
    _divide_type: c_int,
    _degree: c_int,
    _base_gf: *mut Gf,
) -> *mut Gf {
    fail("composite fields are not supported")
}

/// Replaces the field of words of w bits by that of `gf`, which comes from `galois_init_field` or
/// from gf-complete.
///
/// # Safety
/// `gf` is null or a `gf_t` for words of w bits that does not change until the field is replaced
/// again. During the call, no other thread computes with words of w bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galois_change_technique(gf: *mut Gf, w: c_int) {
    let place = place(w);
    // SAFETY: as the caller promises.
    match unsafe { computed(gf, w) } {
        Some(field) => exchange(w, Some(field)),
        None => fail(&format!(
            "words of {w} bits cannot be exchanged for a field that is null, composite, or has its \
             regions in another order"
        )),
    }
    // The old `gf_t` is not freed: the caller may still use it as the base of other fields.
    gfp_array[place].store(gf, Ordering::Release);
}

/// Returns the field that a `gf_t` computes. `None` if its elements are not polynomials modulo an
/// irreducible polynomial, or if its regions do not hold one word after the other.
///
/// # Safety
/// `gf` is null or a `gf_t` for words of w bits.
unsafe fn computed(gf: *mut Gf, w: c_int) -> Option<Field> {
    // SAFETY: as the caller promises.
    let &Gf { multiply, multiply_region, .. } = unsafe { gf.as_ref() }?;
    let (multiply, multiply_region) = (multiply?, multiply_region?);
    // SAFETY: the functions of a `gf_t` may be called with it.
    let times = |a: u32, b: u32| unsafe { multiply(gf, a, b) };
    let field = match w {
        1 => Field::new(1).ok()?,
        // x^(w-1) times x is x^w, which equals the polynomial without its leading term.
        _ => Field::with_polynomial(w as u32, 1 << w | u64::from(times(1 << (w - 1), 2))).ok()?,
    };
    // Every product is a sum of products of powers of x, so it is enough to check these.
    let powers = || (0..w).map(|power| 1 << power);
    if powers().any(|a| powers().any(|b| times(a, b) != field.multiply(a, b))) {
        return None;
    }
    if ![8, 16, 32].contains(&w) {
        return Some(field);
    }
    let source: Region = Region(std::array::from_fn(|at| (at * 151 + at / 256) as u8));
    let (mut theirs, mut ours) = (Region([0; REGION]), Region([0; REGION]));
    let (from, to) = ((&raw const source).cast_mut().cast(), (&raw mut theirs).cast());
    // SAFETY: as above; the regions have this length, and gf-complete's alignment.
    unsafe { multiply_region(gf, from, to, 0x53, REGION as c_int, 0) };
    let bytes = w as usize / 8;
    for (from, to) in source.0.chunks_exact(bytes).zip(ours.0.chunks_exact_mut(bytes)) {
        let word = from.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        to.copy_from_slice(&field.multiply(word, 0x53).to_le_bytes()[..bytes]);
    }
    (theirs.0 == ours.0).then_some(field)
}

/// Bytes of the region with which [`computed`] checks the order of words: several vectors of any
/// method of gf-complete.
const REGION: usize = 4096;

#[repr(align(64))]
struct Region([u8; REGION]);
