//! Schedules: lists of operations. Each operation is an array of five numbers: device and packet of
//! the source, device and packet of the target, and 0 to copy or 1 to add. An operation that begins
//! with -1 ends the list.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

use paritas::Prepared;
use paritas::code::BitMatrix;
use paritas_dropins::{Key, Programs, Recent, Regions, packets};

use crate::calls::{BYTES_A_BIT, fail, given, none, size, values};
use crate::encode::{Devices, strip_bytes};
use crate::linear::{bit_recovery, bits, survivors};
use crate::regions;

type ScheduleEntry = [c_int; 5];

/// Number of operations that [`read`] reserves room for; most schedules have fewer.
const USUAL: usize = 1024;

static SCHEDULES: Programs<c_int, KnownSchedule> = Programs::new(0, |_| BYTES_A_BIT);

thread_local! {
    static RECENT: Recent<c_int, KnownSchedule> = const { Recent::new(Vec::new()) };
}

/// A schedule that has been planned: the devices that it touches, and its program.
#[derive(Debug)]
struct KnownSchedule {
    touched: Touched,
    /// The program that computes the same as the schedule; `None` if the schedule writes nothing.
    program: Option<Prepared>,
}

/// Number of programs that have been made so far for schedules.
pub(crate) fn made() -> usize {
    SCHEDULES.made()
}

/// Returns a schedule in C's form, in memory from `malloc`; null if there is no memory.
fn given_schedule(ops: &[ScheduleEntry]) -> *mut *mut c_int {
    let end = [-1, 0, 0, 0, 0];
    let ops: Vec<*mut c_int> = ops.iter().chain([&end]).map(|op| given(op)).collect();
    let schedule = if ops.contains(&null_mut()) { null_mut() } else { given(&ops) };
    if schedule.is_null() {
        // SAFETY: each is from `malloc` or null, and nobody else has it.
        ops.iter().for_each(|&op| unsafe { libc::free(op.cast()) });
    }
    schedule
}

/// # Safety
/// `schedule` is a schedule.
unsafe fn read(schedule: *const *mut c_int) -> Vec<ScheduleEntry> {
    let mut all = Vec::with_capacity(USUAL);
    for at in 0.. {
        // SAFETY: as the caller promises.
        let op = unsafe { *schedule.add(at) };
        // SAFETY: as the caller promises; the last operation may consist of its first number only.
        if unsafe { *op } < 0 {
            break;
        }
        // SAFETY: as the caller promises, it is an operation: five numbers with the alignment of
        // `int`.
        all.push(unsafe { *op.cast::<ScheduleEntry>() });
    }
    all
}

/// Returns a schedule for a bit matrix with w rows for each target and w columns for each source.
/// Row r computes packet r mod w of the device `targets[r / w]`. With `smart`, a row may start from
/// a copy of a row that is already computed, if that takes fewer operations.
fn schedule(
    matrix: &BitMatrix,
    w: usize,
    sources: &[usize],
    targets: &[usize],
    smart: bool,
) -> Vec<ScheduleEntry> {
    let ones: Vec<Vec<usize>> =
        (0..matrix.rows()).map(|row| matrix.support(row).collect()).collect();
    let place = |devices: &[usize], at: usize| [devices[at / w] as c_int, (at % w) as c_int];
    let mut ops = Vec::new();
    let mut left: Vec<usize> = (0..ones.len()).collect();
    // For each row: its number of operations, and the row that it starts from.
    let mut start: Vec<(usize, Option<usize>)> = ones.iter().map(|row| (row.len(), None)).collect();
    while !left.is_empty() {
        let cheapest = |&(_, row): &(usize, &usize)| if smart { start[*row].0 } else { 0 };
        let Some((at, _)) = left.iter().enumerate().min_by_key(cheapest) else { break };
        let row = left.remove(at);
        let [device, packet] = place(targets, row);
        let base = start[row].1;
        if let Some(base) = base {
            let [from, of] = place(targets, base);
            ops.push([from, of, device, packet, 0]);
        }
        let added = differences(base.map_or(&[], |base| &ones[base]), &ones[row]);
        for (number, column) in added.into_iter().enumerate() {
            let [from, of] = place(sources, column);
            let adds = c_int::from(number > 0 || base.is_some());
            ops.push([from, of, device, packet, adds]);
        }
        for &other in left.iter().filter(|_| smart) {
            let cost = 1 + differences(&ones[row], &ones[other]).len();
            if cost < start[other].0 {
                start[other] = (cost, Some(row));
            }
        }
    }
    ops
}

/// Returns the numbers that are in exactly one of two ascending lists.
fn differences(a: &[usize], b: &[usize]) -> Vec<usize> {
    let only = |in_one: &[usize], other: &[usize]| -> Vec<usize> {
        in_one.iter().copied().filter(|one| other.binary_search(one).is_err()).collect()
    };
    [only(a, b), only(b, a)].concat()
}

/// # Safety
/// `bitmatrix` is null, or valid for `k · m · w · w` values.
unsafe fn of_bitmatrix(
    (k, m, w): (c_int, c_int, c_int),
    bitmatrix: *const c_int,
    smart: bool,
) -> *mut *mut c_int {
    let (k, m, w) = (size(k, "k"), size(m, "m"), size(w, "w"));
    if bitmatrix.is_null() || k * m * w == 0 {
        return null_mut();
    }
    // SAFETY: as the caller promises.
    let matrix = bits(unsafe { values(bitmatrix, k * m * w * w) }, k * w);
    let (data, coding): (Vec<usize>, Vec<usize>) = (0..k + m).partition(|&device| device < k);
    given_schedule(&schedule(&matrix, w, &data, &coding, smart))
}

/// Returns a schedule that computes every row from data only; null for a null matrix.
///
/// # Safety
/// `bitmatrix` is null, or valid for `k · m · w · w` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_dumb_bitmatrix_to_schedule(
    k: c_int,
    m: c_int,
    w: c_int,
    bitmatrix: *mut c_int,
) -> *mut *mut c_int {
    // SAFETY: as the caller promises.
    unsafe { of_bitmatrix((k, m, w), bitmatrix, false) }
}

/// Returns a schedule that may compute a row from another row; null for a null matrix.
///
/// # Safety
/// `bitmatrix` is null, or valid for `k · m · w · w` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_smart_bitmatrix_to_schedule(
    k: c_int,
    m: c_int,
    w: c_int,
    bitmatrix: *mut c_int,
) -> *mut *mut c_int {
    // SAFETY: as the caller promises.
    unsafe { of_bitmatrix((k, m, w), bitmatrix, true) }
}

/// Frees a schedule.
///
/// # Safety
/// `schedule` is a schedule, in memory of `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_free_schedule(schedule: *mut *mut c_int) {
    if schedule.is_null() {
        return;
    }
    for at in 0.. {
        // SAFETY: as the caller promises.
        unsafe {
            let op = *schedule.add(at);
            let is_last = *op < 0;
            libc::free(op.cast());
            if is_last {
                break;
            }
        }
    }
    // SAFETY: as the caller promises.
    unsafe { libc::free(schedule.cast()) };
}

/// Runs a schedule over one strip: `ptrs` point to the first packet of each device.
///
/// # Safety
/// `operations` is a schedule, and the packets that it names are valid for `packetsize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_do_scheduled_operations(
    ptrs: *mut *mut c_char,
    operations: *mut *mut c_int,
    packetsize: c_int,
) {
    let bytes = size(packetsize, "packetsize");
    // SAFETY: as the caller promises.
    let ops = unsafe { read(operations) };
    for op in &ops {
        let packet = |device: c_int, packet: c_int| {
            // SAFETY: as the caller promises.
            unsafe { (*ptrs.add(device as usize)).cast::<u8>().add(packet as usize * bytes) }
        };
        let (source, target) = (packet(op[0], op[1]), packet(op[2], op[3]));
        // SAFETY: as the caller promises.
        unsafe {
            match op[4] {
                0 => source.copy_to(target, bytes),
                _ => regions::add(source, target, bytes),
            }
        }
    }
}

/// The devices that a schedule touches.
#[derive(Debug)]
struct Touched {
    /// Devices with a packet that is read before it is written. Also devices of which only some
    /// packets are written, because the other packets must keep their content.
    sources: Vec<usize>,
    /// Devices with a packet that is written.
    targets: Vec<usize>,
}

/// A packet of a device.
#[derive(Clone, Copy)]
struct Packet {
    device: usize,
    /// Number of the packet among those of all devices: w times the device's number plus the
    /// packet's number in the device.
    cell: usize,
}

/// Returns the packets that an operation reads and writes; `None` if one of them does not exist.
fn packets_of(op: &ScheduleEntry, w: usize, devices: usize) -> Option<(Packet, Packet)> {
    let packet = |device: c_int, packet: c_int| {
        let (device, packet) = (usize::try_from(device).ok()?, usize::try_from(packet).ok()?);
        (device < devices && packet < w).then_some(Packet { device, cell: device * w + packet })
    };
    Some((packet(op[0], op[1])?, packet(op[2], op[3])?))
}

fn touched(ops: &[ScheduleEntry], w: usize, devices: usize) -> Option<Touched> {
    let mut is_written = vec![false; devices * w];
    let mut is_read = vec![false; devices];
    for op in ops {
        let (source, target) = packets_of(op, w, devices)?;
        is_read[source.device] |= !is_written[source.cell];
        is_read[target.device] |= op[4] != 0 && !is_written[target.cell];
        is_written[target.cell] = true;
    }
    let of = |device: usize| &is_written[device * w..(device + 1) * w];
    let is_target = |device: &usize| of(*device).contains(&true);
    let is_source =
        |device: &usize| is_read[*device] || is_target(device) && of(*device).contains(&false);
    let targets = (0..devices).filter(is_target).collect();
    Some(Touched { sources: (0..devices).filter(is_source).collect(), targets })
}

/// Returns the bit matrix that a schedule computes. Runs the schedule on sets of source packets
/// instead of bytes.
fn matrix_of(
    ops: &[ScheduleEntry],
    w: usize,
    devices: usize,
    touched: &Touched,
) -> Option<BitMatrix> {
    let mut values = BitMatrix::zero(devices * w, touched.sources.len() * w);
    for (number, source) in touched.sources.iter().enumerate() {
        (0..w).for_each(|row| values.set(source * w + row, number * w + row, true));
    }
    for op in ops {
        let (source, target) = packets_of(op, w, devices)?;
        let (source, target) = (source.cell, target.cell);
        if op[4] == 0 {
            let old: Vec<usize> = values.support(target).collect();
            old.into_iter().for_each(|column| values.set(target, column, false));
        }
        let added: Vec<usize> = values.support(source).collect();
        added.into_iter().for_each(|column| values.flip(target, column));
    }
    let rows = touched.targets.iter().flat_map(|device| device * w..(device + 1) * w);
    let rows: Vec<Vec<usize>> = rows.map(|row| values.support(row).collect()).collect();
    Some(BitMatrix::from_supports(values.columns(), &rows))
}

/// Plans a schedule. `None` if it names a packet that does not exist, or cannot be planned.
fn known(ops: &[ScheduleEntry], w: usize, devices: usize, packet: usize) -> Option<KnownSchedule> {
    let touched = touched(ops, w, devices)?;
    let program = match touched.targets.is_empty() {
        true => None,
        false => Some(packets(&matrix_of(ops, w, devices, &touched)?, w, packet).ok()?),
    };
    Some(KnownSchedule { touched, program })
}

/// Runs a schedule over whole devices.
///
/// # Safety
/// All devices that the schedule names are valid for `bytes` bytes.
unsafe fn run_schedule(
    ops: &[ScheduleEntry],
    w: usize,
    (bytes, packet): (usize, usize),
    devices: &Devices,
) {
    let all = &devices.all;
    let key = Key { shape: [all.len(), w, packet, 0, 0, 0], content: ops.as_flattened() };
    let make = || known(ops, w, all.len(), packet).ok_or_else(none);
    SCHEDULES.run(
        &RECENT,
        key,
        || 0,
        make,
        |known| {
            let Some(known) = known else { refuse(ops, w, all.len()) };
            let sources = known.touched.sources.iter().map(|&device| all[device].cast_const());
            let targets = known.touched.targets.iter().map(|&device| all[device]);
            let Some(program) = known.program.as_ref().filter(|_| bytes > 0) else { return };
            // SAFETY: as the caller promises.
            let regions = unsafe { Regions::new(bytes, sources, targets) };
            regions.run(program).unwrap_or_else(|error| fail(&error.to_string()));
        },
    );
}

/// Ends the process with a message that says why a schedule has no program.
fn refuse(ops: &[ScheduleEntry], w: usize, devices: usize) -> ! {
    match touched(ops, w, devices) {
        Some(_) => fail("there is no program for this schedule"),
        None => fail(&format!(
            "a schedule names a device or a packet that does not exist; there are {devices} \
             devices with {w} packets each"
        )),
    }
}

/// Computes the coding devices with a schedule.
///
/// # Safety
/// `schedule` is a schedule, the lists are valid for `k` and `m` pointers, and all regions for
/// `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_schedule_encode(
    k: c_int,
    m: c_int,
    w: c_int,
    schedule: *mut *mut c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
    packetsize: c_int,
) {
    let lengths = strip_bytes(w, size, packetsize);
    // SAFETY: as the caller promises.
    unsafe {
        let devices = Devices::new(k, m, data_ptrs, coding_ptrs);
        run_schedule(&read(schedule), w as usize, lengths, &devices);
    }
}

/// Returns the schedules for all losses of one or two devices of a code with m = 2. Null if m is
/// not 2 or `bitmatrix` is null; a loss that cannot be recovered has a null entry.
///
/// # Safety
/// `bitmatrix` is valid for `k · m · w · w` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_generate_schedule_cache(
    k: c_int,
    m: c_int,
    w: c_int,
    bitmatrix: *mut c_int,
    smart: c_int,
) -> *mut *mut *mut c_int {
    if m != 2 || bitmatrix.is_null() {
        return null_mut();
    }
    let (k, w) = (size(k, "k"), size(w, "w"));
    let n = k + 2;
    // SAFETY: as the caller promises.
    let matrix = bits(unsafe { values(bitmatrix, 2 * k * w * w) }, k * w);
    let of = |a: usize, b: usize| {
        let erased: Vec<bool> = (0..n).map(|device| device == a || device == b).collect();
        let survivors = survivors(&erased, k)?;
        let map = bit_recovery(&matrix, w, &survivors.sources, &survivors.lost)?;
        let ops = schedule(&map, w, &survivors.sources, &survivors.lost, smart != 0);
        Some(given_schedule(&ops))
    };
    let mut cache = vec![null_mut(); n * (n + 1)];
    for a in 0..n {
        for b in 0..=a {
            let schedule = of(a, b).unwrap_or(null_mut());
            (cache[a * n + b], cache[b * n + a]) = (schedule, schedule);
        }
    }
    given(&cache)
}

/// Frees a cache of schedules.
///
/// # Safety
/// `cache` is a cache for `k` and `m` from `jerasure_generate_schedule_cache`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_free_schedule_cache(
    k: c_int,
    m: c_int,
    cache: *mut *mut *mut c_int,
) {
    if cache.is_null() {
        return;
    }
    let n = size(k, "k") + size(m, "m");
    for a in 0..n {
        for b in 0..=a {
            // SAFETY: as the caller promises; each schedule stands once in this half.
            unsafe { jerasure_free_schedule(*cache.add(a * n + b)) };
        }
    }
    // SAFETY: as the caller promises.
    unsafe { libc::free(cache.cast()) };
}

/// Recomputes one or two erased devices with a cache of schedules. Returns 0, or -1 if they cannot
/// be recovered or more devices are erased.
///
/// # Safety
/// `scache` is a cache for `k` and `m`, and `erasures` ends with -1. The rest is as for
/// `jerasure_schedule_encode`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jerasure_schedule_decode_cache(
    k: c_int,
    m: c_int,
    w: c_int,
    scache: *mut *mut *mut c_int,
    erasures: *mut c_int,
    data_ptrs: *mut *mut c_char,
    coding_ptrs: *mut *mut c_char,
    size: c_int,
    packetsize: c_int,
) -> c_int {
    let lengths = strip_bytes(w, size, packetsize);
    // SAFETY: as the caller promises.
    let devices = unsafe { Devices::new(k, m, data_ptrs, coding_ptrs) };
    let n = devices.all.len();
    // SAFETY: as the caller promises.
    let erased = unsafe { crate::encode::erased(erasures, n) };
    let lost: Vec<usize> = (0..n).filter(|&device| erased[device]).collect();
    let (Some(&first), Some(&last), true) = (lost.first(), lost.last(), lost.len() <= 2) else {
        return if lost.is_empty() { 0 } else { -1 };
    };
    // SAFETY: as the caller promises.
    let schedule = unsafe { *scache.add(first * n + last) };
    if schedule.is_null() {
        return -1;
    }
    // SAFETY: as the caller promises.
    unsafe { run_schedule(&read(schedule), w as usize, lengths, &devices) };
    0
}
