//! Fuzzes programs on every kernel. The input chooses a code of any cells, a question about any
//! cells, and buffers of any place and packet.
//!
//! Wanted cells must equal what the interpreter computes, which must be what the code's rows say.
//! Nothing else may be written.

#![no_main]

use std::ops::Range;

use libfuzzer_sys::arbitrary::{self, Unstructured};
use libfuzzer_sys::fuzz_target;
use paritas::code::{CellId, CellSet, CodeBuilder, Role};
use paritas::research::{Order, Pass, PlanOptions, interpret};
use paritas::{
    Buffer, Code, Codec, CodecOptions, ErrorKind, Kernel, KernelChoice, LaneCodec, Spec, Stores,
};

const MAX_CELLS: usize = 80;
const MAX_STRIPES: usize = 9;
const PACKETS: [usize; 16] = [1, 3, 8, 15, 16, 31, 32, 33, 64, 65, 96, 100, 128, 192, 256, 300];
const PASSES: [Pass; 3] = [Pass::Direct, Pass::Smart, Pass::Slp];
const ORDERS: [Order; 2] = [Order::Parity, Order::Data];

/// Content of buffers where nothing is known, and of the bytes around them.
const UNTOUCHED: u8 = 0xC3;
const MARGIN: usize = 64;

/// Buffers at equal distances from page boundaries compete for the same sets of the cache.
const PAGE: usize = 4096;

fuzz_target!(|input: &[u8]| {
    let _ = run(&mut Unstructured::new(input));
});

fn run(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let options = CodecOptions::default()
        .packet(*input.choose(&PACKETS)?)
        .stores(*input.choose(&[Stores::Cached, Stores::NonTemporal])?)
        .plan(PlanOptions::default().pass(*input.choose(&PASSES)?).order(*input.choose(&ORDERS)?))
        .threads(1);
    let in_lanes = input.arbitrary()?;
    let stripes = input.int_in_range(0..=MAX_STRIPES)?;
    let offsets: [usize; 3] = [offset(input)?, offset(input)?, offset(input)?];
    let code = code(input)?;
    let (have, want) = (cells(input, &code)?, cells(input, &code)?);
    let truth = truth(&code, stripes * options.packet);
    if !interpreted(&code, &have, &want, &truth, options.plan) {
        return Ok(());
    }
    for kernel in Kernel::available() {
        let options = options.clone().kernel(KernelChoice::Only(kernel));
        let code = code.clone();
        let codec = if in_lanes {
            AnyCodec::Lanes(LaneCodec::new(code, options).expect("the kernel is available"))
        } else {
            AnyCodec::Nodes(Codec::with_options(code, options).expect("the kernel is available"))
        };
        check(&codec, (&have, &want), &truth, stripes, offsets);
    }
    Ok(())
}

/// Chooses the distance from a page boundary to a buffer: zero, whole lines, or anything.
fn offset(input: &mut Unstructured<'_>) -> arbitrary::Result<usize> {
    let any = input.int_in_range(0..=127)?;
    Ok(*input.choose(&[0, 64, 320, any])?)
}

/// Chooses data cells and sums of any cells before them, and deals them out to nodes.
fn code(input: &mut Unstructured<'_>) -> arbitrary::Result<Code> {
    let cells = input.int_in_range(1..=MAX_CELLS)?;
    let nodes = cells.div_ceil(input.int_in_range(1..=4)?);
    let mut builder = CodeBuilder::new(nodes);
    builder.lane_rows(1);
    let mut made: Vec<CellId> = Vec::new();
    for cell in 0..cells {
        let node = Some(cell % nodes);
        let is_data = made.is_empty() || input.ratio(1, 2)?;
        made.push(if is_data {
            builder.data(node)
        } else {
            let sources = input.int_in_range(0..=12)?;
            let sources: Vec<CellId> =
                (0..sources).map(|_| input.choose(&made).copied()).collect::<Result<_, _>>()?;
            builder.derived(Role::Parity, node, &sources)
        });
    }
    Ok(builder.finish(Spec::new("any"), 0).expect("every node has cells"))
}

/// Chooses any of a code's cells, at times most of them.
fn cells(input: &mut Unstructured<'_>, code: &Code) -> arbitrary::Result<CellSet> {
    let share = input.int_in_range(1..=7)?;
    let mut cells = CellSet::new(code.cell_count());
    for cell in code.cells() {
        if input.ratio(share, 8_u8)? {
            cells.insert(cell);
        }
    }
    Ok(cells)
}

/// Returns every cell's bytes: data has a prime period, the other cells are sums as their rows say.
fn truth(code: &Code, length: usize) -> Vec<Vec<u8>> {
    let data = |n: usize, i: usize| (73 * (i + 1) * (n + 1) % 251) as u8;
    let byte = |cell, i| code.row(cell).iter().fold(0, |sum, &n| sum ^ data(n as usize, i));
    code.cells().map(|cell| (0..length).map(|i| byte(cell, i)).collect()).collect()
}

/// Returns whether the cells at hand determine the wanted ones; then the interpreter must compute
/// them.
fn interpreted(
    code: &Code,
    have: &CellSet,
    want: &CellSet,
    truth: &[Vec<u8>],
    options: PlanOptions,
) -> bool {
    let plan = match code.schedule_with(have, want, options) {
        Ok(plan) => plan,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotEnough, "{error}");
            return false;
        }
    };
    let inputs: Vec<&[u8]> = plan.inputs().iter().map(|cell| &truth[cell.index()][..]).collect();
    let outputs = interpret(plan.schedule(), &inputs).expect("the inputs fit");
    for (cell, bytes) in plan.outputs().iter().zip(outputs) {
        // Without inputs the interpreter does not know how many zeros to produce.
        let expected = if inputs.is_empty() { &[] } else { &truth[cell.index()][..] };
        assert!(bytes == expected, "{cell:?}");
    }
    true
}

/// A buffer at an offset from a page boundary, with known bytes around it.
struct Guarded {
    memory: Vec<u8>,
    at: Range<usize>,
}

impl Guarded {
    fn new(bytes: &[u8], offset: usize) -> Self {
        let mut memory = vec![UNTOUCHED; bytes.len() + offset + 2 * PAGE + MARGIN];
        let start = MARGIN + memory[MARGIN..].as_ptr().align_offset(PAGE) + offset;
        let at = start..start + bytes.len();
        memory[at.clone()].copy_from_slice(bytes);
        Self { memory, at }
    }

    fn guards_live(&self) -> bool {
        let mut around = self.memory[..self.at.start].iter().chain(&self.memory[self.at.end..]);
        around.all(|&byte| byte == UNTOUCHED)
    }
}

/// A codec over nodes or over lanes.
enum AnyCodec {
    Nodes(Codec),
    Lanes(LaneCodec),
}

/// Calls the same method of either codec.
macro_rules! either {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl AnyCodec {
            $(fn $name(&self, $($argument: $type),*) -> $result {
                match self {
                    Self::Nodes(codec) => codec.$name($($argument),*),
                    Self::Lanes(codec) => codec.$name($($argument),*),
                }
            })*
        }
    };
}

either! {
    code() -> &Code;
    packet() -> usize;
    kernel_name() -> &'static str;
    fallback() -> Option<String>;
    buffer_count() -> usize;
    buffer_cells(buffer: usize) -> &[CellId];
    compute(have: &CellSet, want: &CellSet, buffers: &mut [Buffer<'_>]) -> paritas::Result<()>;
}

/// Makes a buffer whose cells have their true bytes where `known`.
fn filled(
    codec: &AnyCodec,
    buffer: usize,
    known: &CellSet,
    truth: &[Vec<u8>],
    stripes: usize,
) -> Vec<u8> {
    let packet = codec.packet();
    let cells = codec.buffer_cells(buffer);
    let mut bytes = vec![UNTOUCHED; stripes * cells.len() * packet];
    for (at, piece) in bytes.chunks_mut(packet).enumerate() {
        let cell = cells[at % cells.len()];
        if known.contains(cell) {
            piece.copy_from_slice(&truth[cell.index()][at / cells.len() * packet..][..packet]);
        }
    }
    bytes
}

fn check(
    codec: &AnyCodec,
    (have, want): (&CellSet, &CellSet),
    truth: &[Vec<u8>],
    stripes: usize,
    offsets: [usize; 3],
) {
    let numbers = 0..codec.buffer_count();
    let before = numbers.clone().map(|buffer| filled(codec, buffer, have, truth, stripes));
    let mut memory: Vec<Guarded> = before
        .zip(offsets.iter().cycle())
        .map(|(bytes, &offset)| Guarded::new(&bytes, offset))
        .collect();
    let mut buffers: Vec<Buffer<'_>> = Vec::new();
    for (number, guarded) in memory.iter_mut().enumerate() {
        let written = codec.buffer_cells(number).iter().any(|&cell| want.contains(cell));
        let bytes = &mut guarded.memory[guarded.at.clone()];
        buffers.push(if written { Buffer::Target(bytes) } else { Buffer::Source(bytes) });
    }
    codec.compute(have, want, &mut buffers).expect("a plan was found before");
    drop(buffers);
    // A program that cannot be compiled may run on the tiled kernel; any other must not.
    assert_eq!(codec.fallback().filter(|why| !why.contains("a program")), None);
    let kernel = codec.kernel_name();
    let known = CellSet::from_cells(codec.code().cell_count(), have.iter().chain(want.iter()));
    for (buffer, guarded) in numbers.zip(&memory) {
        let after = filled(codec, buffer, &known, truth, stripes);
        assert!(guarded.memory[guarded.at.clone()] == after, "{kernel}, buffer {buffer}");
        assert!(guarded.guards_live(), "{kernel}, around buffer {buffer}");
    }
}
