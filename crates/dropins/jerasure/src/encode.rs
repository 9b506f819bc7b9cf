//! Encoding and decoding with matrices and bit matrices.

use std::ffi::{c_char, c_int};

use paritas_dropins::{packets, product};

use crate::calls::{CallKind, fail, run, size, values};
use crate::fields::{field, polynomial};
use crate::linear::{Matrix, Survivors, bit_recovery, bits, recovery, survivors};

/// The devices of a call: data, then coding.
pub(crate) struct Devices {
    pub(crate) all: Vec<*mut u8>,
    pub(crate) k: usize,
}

impl Devices {
    /// # Safety
    /// The lists are valid for reads of `k` and `m` pointers.
    pub(crate) unsafe fn new(
        k: c_int,
        m: c_int,
        data: *mut *mut c_char,
        coding: *mut *mut c_char,
    ) -> Self {
        let (k, m) = (size(k, "k"), size(m, "m"));
        // SAFETY: as the caller promises.
        let (data, coding) = unsafe { (values(data, k), values(coding, m)) };
        Self { all: data.iter().chain(coding).map(|device| device.cast()).collect(), k }
    }

    fn pick(&self, devices: &[usize]) -> Vec<*mut u8> {
        devices.iter().map(|&device| self.all[device]).collect()
    }
}

/// Returns the size of a device. Ends the process if it is not a whole number of words.
fn word_bytes(w: c_int, bytes: c_int) -> usize {
    if ![8, 16, 32].contains(&w) {
        fail(&format!("w must be 8, 16 or 32; got {w}"));
    }
    let (bytes, word) = (size(bytes, "size"), w as usize / 8);
    match bytes.is_multiple_of(word) {
        true => bytes,
        false => fail(&format!("size must be a multiple of {word} bytes; got {bytes}")),
    }
}

/// Returns the sizes of a device and of a packet. Ends the process if the device is not a whole
/// number of strips.
pub(crate) fn strip_bytes(w: c_int, bytes: c_int, packet: c_int) -> (usize, usize) {
    let (bytes, packet, w) = (size(bytes, "size"), size(packet, "packetsize"), size(w, "w"));
    match packet > 0 && w > 0 && bytes.is_multiple_of(packet * w) {
        true => (bytes, packet),
        false => fail(&format!(
            "size must be a multiple of w packets ({w} times {packet} bytes); got {bytes}"
        )),
    }
}

/// Computes `m` coding devices from `k` data devices with a matrix over words.
///
/// # Safety
/// `matrix` is valid for `m · k` values, the lists for `k` and `m` pointers, and all regions for
/// `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_matrix_encode(
    k: c_int,
    m: c_int,
    w: c_int,
    matrix: *mut c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
) {
    let bytes = word_bytes(w, size);
    // SAFETY: as the caller promises.
    let devices = unsafe { Devices::new(k, m, data_ptrs, coding_ptrs) };
    let (data, coding) = devices.all.split_at(devices.k);
    // SAFETY: as the caller promises.
    unsafe { multiply(w, matrix, bytes, data, coding) };
}

/// # Safety
/// `matrix` is valid for `sources.len() · targets.len()` values, and all regions for `bytes` bytes.
unsafe fn multiply(
    w: c_int,
    matrix: *const c_int,
    bytes: usize,
    sources: &[*mut u8],
    targets: &[*mut u8],
) {
    let (k, m) = (sources.len(), targets.len());
    // SAFETY: as the caller promises.
    let content = unsafe { values(matrix, k * m) };
    let make = || {
        let matrix = Matrix::new(w, content, k)?;
        product(matrix.field, matrix.rows).ok()
    };
    let shape = [k, m, w as usize, polynomial(w), 0];
    // SAFETY: as the caller promises.
    if !unsafe { run(CallKind::Words, shape, content, make, (bytes, sources, targets)) } {
        fail(&format!("no program for k = {k}, m = {m}, w = {w}"));
    }
}

/// Computes `m` coding devices from `k` data devices with a bit matrix.
///
/// # Safety
/// As `jerasure_matrix_encode`; the bit matrix has `m · w` rows and `k · w` columns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_bitmatrix_encode(
    k: c_int,
    m: c_int,
    w: c_int,
    bitmatrix: *mut c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
    packetsize: c_int,
) {
    let lengths = strip_bytes(w, size, packetsize);
    // SAFETY: as the caller promises.
    let devices = unsafe { Devices::new(k, m, data_ptrs, coding_ptrs) };
    let (data, coding) = devices.all.split_at(devices.k);
    // SAFETY: as the caller promises.
    unsafe { multiply_bits(w as usize, bitmatrix, lengths, data, coding) };
}

/// # Safety
/// As [`multiply`], for a bit matrix with w rows for each target and w columns for each source.
unsafe fn multiply_bits(
    w: usize,
    matrix: *const c_int,
    (bytes, packet): (usize, usize),
    sources: &[*mut u8],
    targets: &[*mut u8],
) {
    let (k, m) = (sources.len(), targets.len());
    // SAFETY: as the caller promises.
    let content = unsafe { values(matrix, k * m * w * w) };
    let make = || packets(&bits(content, k * w), w, packet).ok();
    let shape = [k, m, w, packet, 0];
    // SAFETY: as the caller promises.
    if !unsafe { run(CallKind::Packets, shape, content, make, (bytes, sources, targets)) } {
        fail(&format!("no program for k = {k}, m = {m}, w = {w}"));
    }
}

/// Returns the sources and the target of a dot product. `src_ids` names the sources; if it is null,
/// they are devices 0 to `k` - 1.
///
/// # Safety
/// As `jerasure_matrix_dotprod`.
unsafe fn of_dot_product(
    k: c_int,
    src_ids: *const c_int,
    dest_id: c_int,
    data: *mut *mut c_char,
    coding: *mut *mut c_char,
) -> (Vec<*mut u8>, *mut u8) {
    let device = |id: c_int| {
        let (list, at) = if id < k { (data, id) } else { (coding, id - k) };
        // SAFETY: as the caller promises.
        unsafe { *list.add(size(at, "the number of a device")) }.cast::<u8>()
    };
    // SAFETY: as the caller promises.
    let ids = unsafe { values(src_ids, size(k, "k")) };
    let sources = match ids {
        [] => (0..k).map(device).collect(),
        ids => ids.iter().map(|&id| device(id)).collect(),
    };
    (sources, device(dest_id))
}

/// Computes device `dest_id` from `k` others with one row of a matrix. With w = 1, the row tells
/// which of them are added.
///
/// # Safety
/// `matrix_row` is valid for `k` values, and `src_ids` is null or valid for `k` values. The lists
/// contain the devices that `src_ids` and `dest_id` name, and the regions of these are valid for
/// `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_matrix_dotprod(
    k: c_int,
    w: c_int,
    matrix_row: *mut c_int,
    src_ids: *mut c_int,
    dest_id: c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
) {
    // The sum of single bits is that of bytes with the factors 0 and 1.
    let w = if w == 1 { 8 } else { w };
    let bytes = word_bytes(w, size);
    // SAFETY: as the caller promises.
    let (sources, target) = unsafe { of_dot_product(k, src_ids, dest_id, data_ptrs, coding_ptrs) };
    // SAFETY: as the caller promises.
    unsafe { multiply(w, matrix_row, bytes, &sources, &[target]) };
}

/// Computes device `dest_id` from `k` others with w rows of a bit matrix.
///
/// # Safety
/// As `jerasure_matrix_dotprod`; `bitmatrix_row` is valid for `k · w · w` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_bitmatrix_dotprod(
    k: c_int,
    w: c_int,
    bitmatrix_row: *mut c_int,
    src_ids: *mut c_int,
    dest_id: c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
    packetsize: c_int,
) {
    let lengths = strip_bytes(w, size, packetsize);
    // SAFETY: as the caller promises.
    let (sources, target) = unsafe { of_dot_product(k, src_ids, dest_id, data_ptrs, coding_ptrs) };
    // SAFETY: as the caller promises.
    unsafe { multiply_bits(w as usize, bitmatrix_row, lengths, &sources, &[target]) };
}

/// Returns for each device whether `erasures`, a list that ends with -1, names it.
///
/// # Safety
/// `erasures` is valid up to the -1.
pub(crate) unsafe fn erased(erasures: *const c_int, devices: usize) -> Vec<bool> {
    let mut erased = vec![false; devices];
    for at in 0.. {
        // SAFETY: as the caller promises.
        let device = unsafe { *erasures.add(at) };
        if device == -1 {
            break;
        }
        match usize::try_from(device).ok().and_then(|device| erased.get_mut(device)) {
            Some(erased) => *erased = true,
            None => fail(&format!("there is no device {device} among {devices}")),
        }
    }
    erased
}

/// Returns the key's content for a decoding program: the matrix, then 1 for each erased device and
/// 0 for each other.
fn decoding_key(matrix: &[c_int], erased: &[bool]) -> Vec<c_int> {
    matrix.iter().copied().chain(erased.iter().map(|&erased| c_int::from(erased))).collect()
}

/// Recomputes the erased devices. Returns 0, or -1 if they cannot be recovered or if w is not 8, 16
/// or 32.
///
/// # Safety
/// As `jerasure_matrix_encode`; `erasures` ends with -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_matrix_decode(
    k: c_int,
    m: c_int,
    w: c_int,
    matrix: *mut c_int,
    _row_k_ones: c_int,
    erasures: *mut c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
) -> c_int {
    if ![8, 16, 32].contains(&w) {
        return -1;
    }
    let bytes = word_bytes(w, size);
    // SAFETY: as the caller promises.
    let devices = unsafe { Devices::new(k, m, data_ptrs, coding_ptrs) };
    let (k, n) = (devices.k, devices.all.len());
    // SAFETY: as the caller promises.
    let (erased, matrix) = unsafe { (erased(erasures, n), values(matrix, k * (n - k))) };
    let Some(Survivors { sources, lost }) = survivors(&erased, k) else { return -1 };
    let make = || {
        let matrix = recovery(&Matrix::new(w, matrix, k)?, k, &sources, &lost)?;
        product(matrix.field, matrix.rows).ok()
    };
    let content = decoding_key(matrix, &erased);
    let shape = [k, n, w as usize, polynomial(w), 0];
    let regions = (bytes, &devices.pick(&sources)[..], &devices.pick(&lost)[..]);
    // SAFETY: as the caller promises.
    if unsafe { run(CallKind::DecodeWords, shape, &content, make, regions) } { 0 } else { -1 }
}

/// Recomputes the erased devices with a bit matrix. Returns 0, or -1 if they cannot be recovered.
///
/// # Safety
/// As `jerasure_bitmatrix_encode`; `erasures` ends with -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_bitmatrix_decode(
    k: c_int,
    m: c_int,
    w: c_int,
    bitmatrix: *mut c_int,
    _row_k_ones: c_int,
    erasures: *mut c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
    packetsize: c_int,
) -> c_int {
    let (bytes, packet) = strip_bytes(w, size, packetsize);
    // SAFETY: as the caller promises.
    let devices = unsafe { Devices::new(k, m, data_ptrs, coding_ptrs) };
    let (k, n, w) = (devices.k, devices.all.len(), w as usize);
    // SAFETY: as the caller promises.
    let (erased, matrix) = unsafe { (erased(erasures, n), values(bitmatrix, k * (n - k) * w * w)) };
    let Some(Survivors { sources, lost }) = survivors(&erased, k) else { return -1 };
    let make = || packets(&bit_recovery(&bits(matrix, k * w), w, &sources, &lost)?, w, packet).ok();
    let content = decoding_key(matrix, &erased);
    let shape = [k, n, w, packet, 0];
    let regions = (bytes, &devices.pick(&sources)[..], &devices.pick(&lost)[..]);
    // SAFETY: as the caller promises.
    if unsafe { run(CallKind::DecodePackets, shape, &content, make, regions) } { 0 } else { -1 }
}

/// Recomputes the erased devices with a bit matrix. Returns 0, or -1 if they cannot be recovered.
///
/// # Safety
/// As `jerasure_bitmatrix_decode`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_schedule_decode_lazy(
    k: c_int,
    m: c_int,
    w: c_int,
    bitmatrix: *mut c_int,
    erasures: *mut c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
    packetsize: c_int,
    _smart: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        jerasure_bitmatrix_decode(
            k,
            m,
            w,
            bitmatrix,
            0,
            erasures,
            data_ptrs,
            coding_ptrs,
            size,
            packetsize,
        )
    }
}

/// Computes the two coding devices of technique `reed_sol_r6_op`. Returns 1, or 0 if w is not 8, 16
/// or 32.
///
/// # Safety
/// As `jerasure_matrix_encode`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reed_sol_r6_encode(
    k: c_int,
    w: c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
) -> c_int {
    let (8 | 16 | 32, Some(field)) = (w, field(w)) else { return 0 };
    let mut matrix = vec![1; 2 * k.max(0) as usize];
    for column in 0..k.max(0) as usize {
        matrix[k as usize + column] = field.power(2, column as u64) as c_int;
    }
    // SAFETY: as the caller promises.
    unsafe { jerasure_matrix_encode(k, 2, w, matrix.as_mut_ptr(), data_ptrs, coding_ptrs, size) };
    1
}
