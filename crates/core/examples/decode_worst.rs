//! Finds the most expensive decoding of every code of the default table, and compares it with the
//! XORs of encoding. It tries all ways to lose as many data nodes as there are parities (or all
//! data nodes, if they are fewer), or PATTERNS of these ways at even distances, planned as a reader
//! would.
//!
//! ```sh
//! cargo run --release -p paritas --example decode_worst [PATTERNS [K,M,W …]]
//! ```
//!
//! Prints one line for each code, with its most expensive pattern, and at the end the codes above
//! 1.5 times.

use paritas::code::{CellSet, Role};
use paritas::erasure::combinations;
use paritas::research::Cost;
use paritas::{Code, Error, NodeId};
use rayon::prelude::*;

/// Default number of patterns that each code is tried with.
const PATTERNS: usize = 1000;

type Shape = (usize, usize, usize);

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let patterns = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(PATTERNS);
    let only: Vec<Shape> = arguments.filter_map(|text| shape(&text)).collect();
    let shapes = if only.is_empty() { table() } else { only };
    println!("| k, m, w | encode | patterns | worst decode | ratio | nodes |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut above = Vec::new();
    for (k, m, w) in shapes {
        let code = Code::new(&format!("cauchy:k={k},m={m},w={w}").parse()?)?;
        let encode = xors(&code, &code.stored(Role::Data), &code.stored(Role::Parity))?;
        let lost = losses(k, m.min(k), patterns);
        let decode = |lost: &Vec<NodeId>| -> Result<(usize, Vec<NodeId>), Error> {
            let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
            Ok((xors(&code, &have, &code.cells_of(lost.iter().copied()))?, lost.clone()))
        };
        let all = lost.par_iter().map(decode).collect::<Result<Vec<_>, Error>>()?;
        let Some((worst, nodes)) = all.into_iter().max_by_key(|(xors, _)| *xors) else { continue };
        let ratio = if encode == 0 { 1.0 } else { worst as f64 / encode as f64 };
        let nodes: Vec<usize> = nodes.iter().map(|node| node.index()).collect();
        let line = format!(
            "| {k}, {m}, {w} | {encode} | {} | {worst} | {ratio:.3} | {nodes:?} |",
            lost.len()
        );
        println!("{line}");
        if 2 * worst > 3 * encode {
            above.push(line);
        }
    }
    println!("\n{} above 1.5:", above.len());
    above.iter().for_each(|line| println!("{line}"));
    Ok(())
}

fn shape(text: &str) -> Option<Shape> {
    let mut numbers = text.split(',').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Returns the shapes that matrices were searched for.
fn table() -> Vec<Shape> {
    let smallest = |k: usize, m: usize| (k + m).next_power_of_two().trailing_zeros() as usize;
    let small = (1..=32).flat_map(|k| (1..=8).map(move |m| (k, m, smallest(k, m))));
    let wide = (1..=16).flat_map(|k| (1..=6).map(move |m| (k, m, 8)));
    small.chain([(6, 2, 4)]).chain(wide).collect()
}

/// Returns all ways to lose `count` of `k` data nodes, or about `most` of them at even distances.
fn losses(k: usize, count: usize, most: usize) -> Vec<Vec<NodeId>> {
    let all = combinations(k, count).count();
    let step = all.div_ceil(most.max(1));
    let nodes = |lost: Vec<usize>| lost.into_iter().map(NodeId::new).collect();
    combinations(k, count).step_by(step).map(nodes).collect()
}

fn xors(code: &Code, have: &CellSet, want: &CellSet) -> Result<usize, Error> {
    Ok(Cost::of(code.schedule(have, want)?.schedule()).xors)
}
