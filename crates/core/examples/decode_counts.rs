//! Counts the XORs of decoding, as a table for `docs/codes.md`: every way to lose the stated number
//! of data nodes, planned by elimination alone (the generator's rows reduced by common pairs) and
//! as Paritas plans it.
//!
//! ```sh
//! cargo run --release -p paritas --example decode_counts
//! ```

use paritas::code::CellId;
use paritas::erasure::{Losses, combinations};
use paritas::research::Cost;
use paritas::research::passes::{direct, fuse, slp};
use paritas::{Code, Error, NodeId};

const CASES: [(&str, usize); 11] = [
    ("rdp:k=10", 2),
    ("evenodd:k=11", 2),
    ("xcode:n=11", 2),
    ("star:k=11", 2),
    ("star:k=11", 3),
    ("liberation:k=11", 2),
    ("blaum-roth:k=10", 2),
    ("liber8tion:k=8", 2),
    ("raid6:k=10,layout=packets", 2),
    ("qfs:k=10", 3),
    ("cauchy:k=10,m=4", 4),
];

fn main() -> Result<(), Error> {
    println!("| code | data nodes lost | elimination | Paritas | least to most |");
    println!("| --- | --- | --- | --- | --- |");
    for (spec, count) in CASES {
        let code = Code::new(&spec.parse()?)?;
        let data: Vec<NodeId> = code.nodes().filter(|&node| code.holds_data(node)).collect();
        let (mut eliminated, mut planned) = (Vec::new(), Vec::new());
        for lost in combinations(data.len(), count) {
            let lost: Vec<NodeId> = lost.into_iter().map(|index| data[index]).collect();
            eliminated.push(by_elimination(&code, &lost)?);
            planned.push(as_planned(&code, &lost)?);
        }
        println!(
            "| `{spec}` | {count} | {:.1} | {:.1} | {} to {} |",
            average(&eliminated),
            average(&planned),
            planned.iter().min().unwrap_or(&0),
            planned.iter().max().unwrap_or(&0)
        );
    }
    Ok(())
}

fn average(counts: &[usize]) -> f64 {
    counts.iter().sum::<usize>() as f64 / counts.len() as f64
}

fn as_planned(code: &Code, lost: &[NodeId]) -> Result<usize, Error> {
    let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
    let plan = code.schedule(&have, &code.cells_of(lost.iter().copied()))?;
    Ok(Cost::of(plan.schedule()).xors)
}

fn by_elimination(code: &Code, lost: &[NodeId]) -> Result<usize, Error> {
    let losses = Losses::of_nodes(code, lost);
    let wanted = code.cells_of(lost.iter().copied());
    // The cells that remain after losses within the tolerance determine every cell.
    let row = |cell: CellId| -> Vec<usize> {
        losses.express(cell).unwrap_or_default().iter().map(|source| source.index()).collect()
    };
    let rows: Vec<Vec<usize>> = wanted.iter().map(row).collect();
    let matrix = paritas::code::BitMatrix::from_supports(code.cell_count(), &rows);
    let reduced = fuse(&slp(&direct(&matrix)?)?)?;
    Ok(Cost::of(&reduced).xors)
}
