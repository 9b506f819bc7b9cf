//! Schedules and bit matrices, as arrays.

use std::ffi::{CString, c_char};

use paritas::Code;
use paritas::code::Role;
use paritas::research::{Plan, Slot};

use crate::codec::{Shaped, ids, paritas_codec};
use crate::handle::{self, Handle};
use crate::matrix::expect_bits;
use crate::memory;
use crate::status::{Failure, Result, guard, paritas_status, pointer};

/// A schedule: XORs that compute wanted cells from cells at hand. Its cells have numbers: first the
/// inputs, then the temporaries, then the outputs. May be used by several threads at once.
pub struct paritas_schedule {
    _opaque: (),
}

impl Handle for paritas_schedule {
    type Value = Arrays;
    const NAME: &'static str = "schedule";
}

/// One operation: cell `target` becomes the XOR of `source_count` cells, whose numbers are
/// `sources[first_source]` and those after it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct paritas_op {
    /// Number of the temporary or output that is written.
    pub target: u32,
    /// Index of its first source in the array of sources.
    pub first_source: u32,
    /// Number of its sources. 0 makes a cell of zeros.
    pub source_count: u32,
}

/// The place of a cell: row `row` of shard `shard`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct paritas_place {
    /// Number of the shard; UINT32_MAX for data that is stored nowhere.
    pub shard: u32,
    /// Row in the shard's strip.
    pub row: u32,
}

/// A schedule, as arrays that C reads. They live as long as the schedule.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct paritas_schedule_view {
    /// The inputs, by number from 0.
    pub inputs: *const paritas_place,
    /// Number of inputs.
    pub input_count: usize,
    /// Number of temporaries. Their numbers follow those of the inputs.
    pub temp_count: usize,
    /// The outputs. Their numbers follow those of the temporaries.
    pub outputs: *const paritas_place,
    /// Number of outputs.
    pub output_count: usize,
    /// The operations in the order in which they run.
    pub ops: *const paritas_op,
    /// Number of operations.
    pub op_count: usize,
    /// The sources of all operations.
    pub sources: *const u32,
    /// Number of sources, which is also the number of XORs and copies that the schedule costs.
    pub source_count: usize,
}

pub(crate) struct Arrays {
    inputs: Vec<paritas_place>,
    outputs: Vec<paritas_place>,
    temps: usize,
    ops: Vec<paritas_op>,
    sources: Vec<u32>,
    text: CString,
}

impl Arrays {
    fn new(code: &Code, plan: &Plan) -> Result<Self> {
        let schedule = plan.schedule();
        let place = |&cell: &paritas::code::CellId| match code.cell(cell).place {
            Some(place) => {
                paritas_place { shard: place.node.index() as u32, row: place.row as u32 }
            }
            None => paritas_place { shard: u32::MAX, row: 0 },
        };
        let (inputs, temps) = (schedule.inputs() as u32, schedule.temps() as u32);
        let number = |slot: Slot| match slot {
            Slot::Input(number) => number,
            Slot::Temp(number) => inputs + number,
            Slot::Output(number) => inputs + temps + number,
        };
        let (mut ops, mut sources) = (Vec::new(), Vec::new());
        for op in schedule.ops() {
            let first = sources.len();
            sources.extend(op.accumulate.then(|| number(op.target)));
            sources.extend(op.sources.iter().map(|&slot| number(slot)));
            ops.push(paritas_op {
                target: number(op.target),
                first_source: first as u32,
                source_count: (sources.len() - first) as u32,
            });
        }
        let text = CString::new(schedule.to_string());
        Ok(Self {
            inputs: plan.inputs().iter().map(place).collect(),
            outputs: plan.outputs().iter().map(place).collect(),
            temps: schedule.temps(),
            ops,
            sources,
            text: text.map_err(|_| Failure::arguments("the schedule has no text"))?,
        })
    }
}

/// Plans how the `lost_count` shards that `lost` numbers are computed from all others. If
/// `lost_count` is 0, plans how parity is computed from data. The code must be in the packet
/// layout; other codes are refused with PARITAS_ARGUMENTS.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_schedule_new(
    codec: *const paritas_codec,
    lost: *const usize,
    lost_count: usize,
    schedule: *mut *mut paritas_schedule,
) -> paritas_status {
    let make = || {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        // SAFETY: as the caller promises.
        let lost = unsafe { codec.listed(lost, lost_count, "lost") }?;
        plan(codec, lost)
    };
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::give(schedule, make) })
}

fn plan(codec: &Shaped, lost: &[usize]) -> Result<Arrays> {
    let code = codec.codec.code();
    if code.symbols().is_some() {
        let spec = code.spec();
        return Err(Failure::arguments(format!("{spec} multiplies words, so it has no XOR list")));
    }
    lost.iter().try_for_each(|&node| codec.expect_node(node).map(drop))?;
    let plan = if lost.is_empty() {
        code.schedule(&code.stored(Role::Data), &code.stored(Role::Parity))?
    } else {
        let have = ids(&(0..codec.nodes()).filter(|node| !lost.contains(node)).collect::<Vec<_>>());
        code.schedule(&code.cells_of(have), &code.cells_of(ids(lost)))?
    };
    Arrays::new(code, &plan)
}

/// Stores the arrays of a schedule in `view`.
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_schedule_read(
    schedule: *const paritas_schedule,
    view: *mut paritas_schedule_view,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let arrays = unsafe { handle::open(schedule) }?;
        let arrays = paritas_schedule_view {
            inputs: arrays.inputs.as_ptr(),
            input_count: arrays.inputs.len(),
            temp_count: arrays.temps,
            outputs: arrays.outputs.as_ptr(),
            output_count: arrays.outputs.len(),
            ops: arrays.ops.as_ptr(),
            op_count: arrays.ops.len(),
            sources: arrays.sources.as_ptr(),
            source_count: arrays.sources.len(),
        };
        // SAFETY: as the caller promises.
        unsafe { memory::store(view, arrays, "view") }
    })
}

/// Returns a schedule as text, an operation a line. It lives as long as the schedule.
///
/// # Safety
/// `schedule` is null or a schedule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_schedule_text(schedule: *const paritas_schedule) -> *const c_char {
    // SAFETY: as the caller promises.
    pointer(|| unsafe { handle::open(schedule) }.map(|schedule| schedule.text.as_ptr()))
}

/// Frees a schedule. Null is allowed.
///
/// # Safety
/// `schedule` is null or a schedule that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_schedule_free(schedule: *mut paritas_schedule) {
    // SAFETY: as the caller promises.
    guard(|| unsafe { handle::free(schedule) });
}

/// Returns the number of rows of a codec's bit matrix: one for each bit of parity.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_matrix_rows(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.codec.code().stored(Role::Parity).len()) }
}

/// Returns the number of columns of a codec's bit matrix: one for each bit of data.
///
/// # Safety
/// `codec` is null or a codec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_matrix_columns(codec: *const paritas_codec) -> usize {
    // SAFETY: as the caller promises.
    unsafe { handle::ask(codec, |codec| codec.codec.code().data_cells().len()) }
}

/// Writes a codec's bit matrix to `bits`, row by row, a byte of 0 or 1 for each bit. Rows are the
/// parity cells and columns the data cells, both by shard and then by row of the shard. `count` is
/// the number of bytes, paritas_matrix_rows() times paritas_matrix_columns().
///
/// # Safety
/// The pointers are null or as this describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paritas_matrix(
    codec: *const paritas_codec,
    bits: *mut u8,
    count: usize,
) -> paritas_status {
    guard(|| {
        // SAFETY: as the caller promises.
        let codec = unsafe { handle::open(codec) }?;
        let code = codec.codec.code();
        let (parity, columns) = (code.stored(Role::Parity), code.data_cells().len());
        expect_bits(parity.len(), columns, count)?;
        // SAFETY: as the caller promises.
        let bits = unsafe { memory::values_mut(bits, count, "bits") }?;
        bits.fill(0);
        let stored = code.nodes().flat_map(|node| code.node_cells(node));
        let rows = stored.filter(|&&cell| parity.contains(cell));
        for (&cell, row) in rows.zip(bits.chunks_exact_mut(columns)) {
            code.row(cell).iter().for_each(|&data| row[data as usize] = 1);
        }
        Ok(())
    })
}
