//! LT codes as codes: any question to one, answered as a schedule and by a codec over blocks.

use paritas::code::{CellId, CellSet, Reads};
use paritas::erasure::{Losses, combinations};
use paritas::research::{Cost, PlanOptions, interpret};
use paritas::{Buffer, Code, CodecOptions, ErrorKind, LaneCodec, NodeId};

const SPECS: [&str; 5] = [
    "lt:k=12,n=20,nodes=5,seed=3",
    "lt:k=12,n=21,nodes=5,variant=originals",
    "lt:k=12,n=24,nodes=6,variant=uniform+decodable",
    "lt:k=1,n=3,nodes=3",
    "lt:k=5,n=14,nodes=7,c=0.4,variant=originals+singles+coverage",
];

fn code(spec: &str) -> Code {
    Code::new(&spec.parse().unwrap()).unwrap()
}

/// Returns every cell of the code, for blocks of `length` bytes.
fn cells(code: &Code, length: usize) -> Vec<Vec<u8>> {
    let data = |i: usize| (0..length).map(|at| (at * 7 + i * 41 + at * i) as u8).collect();
    let data: Vec<Vec<u8>> = (0..code.data_cells().len()).map(data).collect();
    let sum = |cell: CellId| {
        let mut sum = vec![0; length];
        for &i in code.row(cell) {
            sum.iter_mut().zip(&data[i as usize]).for_each(|(sum, byte)| *sum ^= byte);
        }
        sum
    };
    code.cells().map(sum).collect()
}

/// Recovers all data and the blocks of lost nodes from all other blocks. A question is refused only
/// if elimination over the generator's rows finds too few rows.
#[test]
fn losses_are_recovered_where_the_rows_suffice() {
    let (mut made, mut refused) = (0, 0);
    for spec in SPECS {
        let code = code(spec);
        let values = cells(&code, 3);
        let every = (1..code.node_count()).flat_map(|count| combinations(code.node_count(), count));
        for lost in every {
            let lost: Vec<NodeId> = lost.into_iter().map(NodeId::new).collect();
            let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
            let mut want = code.cells_of(lost.iter().copied());
            code.data_cells().iter().step_by(2).for_each(|&data| want.insert(data));
            for reads in [Reads::Any, Reads::Fewest] {
                let options = PlanOptions::default().reads(reads);
                match code.schedule_with(&have, &want, options) {
                    Ok(plan) => {
                        assert!(plan.inputs().iter().all(|&input| have.contains(input)));
                        let inputs = plan.inputs().iter().map(|i| &values[i.index()][..]);
                        let outputs = interpret(plan.schedule(), &inputs.collect::<Vec<_>>());
                        let wanted = plan.outputs().iter().map(|o| values[o.index()].clone());
                        assert_eq!(outputs.unwrap(), wanted.collect::<Vec<_>>(), "{spec} {lost:?}");
                        made += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::NotEnough);
                        let rows = Losses::of_nodes(&code, &lost);
                        assert!(!rows.is_solvable(), "{spec} without {lost:?}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(made > 100 && refused > 50, "{made} made, {refused} refused");
}

/// Asks for some of the data while other data is at hand, a question that no store asks.
#[test]
fn a_part_of_the_data_helps() {
    let code = code(SPECS[0]);
    let data = code.data_cells();
    let mut have = code.cells_of(code.nodes().take(3));
    data[..6].iter().for_each(|&cell| have.insert(cell));
    let want = CellSet::from_cells(code.cell_count(), data.iter().copied());
    let plan = code.schedule(&have, &want).unwrap();
    let values = cells(&code, 2);
    let inputs: Vec<&[u8]> = plan.inputs().iter().map(|i| &values[i.index()][..]).collect();
    for (output, made) in plan.outputs().iter().zip(interpret(plan.schedule(), &inputs).unwrap()) {
        assert_eq!(made, values[output.index()]);
    }
}

/// Data blocks that are among the blocks are copied, whatever else is at hand.
#[test]
fn originals_take_no_xor() {
    let code = code("lt:k=20,n=50,nodes=5,variant=originals");
    let graph = code.graph().unwrap();
    let originals = (0..20).map(|block| graph.block_cell(block));
    let originals = CellSet::from_cells(code.cell_count(), originals);
    let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
    for have in [originals, code.cells_of(code.nodes())] {
        let cost = Cost::of(code.schedule(&have, &data).unwrap().schedule());
        assert_eq!((cost.xors, cost.copies), (0, 20));
    }
}

/// The codec runs along blocks of any length, and answers the same question twice.
#[test]
fn blocks_of_any_length() {
    for spec in SPECS {
        let codec = LaneCodec::new(code(spec), CodecOptions::default()).unwrap();
        let code = codec.code();
        let data = CellSet::from_cells(code.cell_count(), code.data_cells().iter().copied());
        let blocks = code.cells_of(code.nodes());
        for length in [1, 63, 64, 1000, 1000] {
            let values = cells(code, length);
            for (have, want) in [(&data, &blocks), (&blocks, &data)] {
                let mut buffers: Vec<Vec<u8>> =
                    (0..codec.buffer_count())
                        .map(|buffer| codec.buffer_cells(buffer)[0])
                        .map(|c| {
                            if have.contains(c) {
                                values[c.index()].clone()
                            } else {
                                vec![0; length]
                            }
                        })
                        .collect();
                let mut call: Vec<Buffer<'_>> = buffers
                    .iter_mut()
                    .enumerate()
                    .map(|(number, bytes)| match have.contains(codec.buffer_cells(number)[0]) {
                        true => Buffer::Source(bytes),
                        false => Buffer::Target(bytes),
                    })
                    .collect();
                codec.compute(have, want, &mut call).unwrap();
                let target = call.iter().position(|buffer| matches!(buffer, Buffer::Target(_)));
                call[target.unwrap()] = Buffer::Absent;
                let error = codec.compute(have, want, &mut call).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Buffers, "{spec}: {error}");
                for (number, bytes) in buffers.iter().enumerate() {
                    let cell = codec.buffer_cells(number)[0];
                    assert_eq!(bytes, &values[cell.index()], "{spec}, {length} bytes, {cell:?}");
                }
            }
        }
        let few = CellSet::new(code.cell_count());
        assert!(!codec.solvable(&few, &data) && codec.solvable(&blocks, &data));
        let mut nothing: Vec<Buffer<'_>> = Vec::new();
        assert_eq!(
            codec.compute(&few, &data, &mut nothing).unwrap_err().kind(),
            ErrorKind::NotEnough
        );
        assert_eq!(
            codec.compute(&data, &blocks, &mut nothing).unwrap_err().kind(),
            ErrorKind::Buffers
        );
    }
}

/// A code with too many neighbours is refused before any graph is drawn, also where a decodable one
/// is searched for. None of these graphs could be peeled.
#[test]
fn large_graphs_are_refused_before_they_are_drawn() {
    let spec = "lt:k=4096,n=5000,variant=coverage+decodable,coverage=4096";
    let error = Code::new(&spec.parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("are more than the 16777216 of a stored code"), "{error}");
}
