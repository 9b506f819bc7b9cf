//! `paritas codes`: the families, or one code.

use paritas::{CellId, Code, FAMILIES, Family, Promotion, Role, Spec};
use paritas_store::ReceptionReport;
use serde_json::{Map, Value, json};

use crate::args::Codes;
use crate::commands::{Outcome, picture, shards};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Lists families or describes a code.
pub fn run(args: &Codes, output: &Output) -> Outcome {
    match &args.spec {
        None => FAMILIES.iter().try_for_each(|family| list(family, output))?,
        Some(spec) => describe(spec, args, output)?,
    }
    Ok(Exit::Done)
}

/// What a code stores and costs.
struct Figures {
    data_nodes: usize,
    data: usize,
    parity: usize,
    overhead: f64,
    ones: usize,
    fewest: usize,
    density: f64,
}

impl Figures {
    fn of(code: &Code) -> Self {
        let data_nodes = code.nodes().filter(|&node| code.holds_data(node)).count();
        let (data, parity) = (code.data_cells().len(), code.stored(Role::Parity).len());
        let (ones, fewest) = (code.ones(), code.fewest_ones());
        let stored = code.stored(Role::Data).len() + parity;
        let overhead = (stored as f64 - data as f64) / data as f64;
        let density = ones as f64 / fewest as f64;
        Self { data_nodes, data, parity, overhead, ones, fewest, density }
    }

    fn ones_text(&self, code: &Code) -> String {
        if let Some(graph) = code.graph() {
            let degree = self.ones as f64 / graph.blocks() as f64;
            return format!("{} ones, {degree:.2} in a block on average", self.ones);
        }
        format!("{} ones, {:.2} x the fewest possible ({})", self.ones, self.density, self.fewest)
    }

    fn add_to(&self, code: &Code, value: &mut Value) {
        // Nothing bounds the ones of a code that promises no tolerance.
        let is_bounded = code.graph().is_none();
        value["tolerance"] = json!(is_bounded.then(|| code.tolerance()));
        value["overhead"] = json!(self.overhead);
        value["ones"] = json!(self.ones);
        value["fewest_ones"] = json!(is_bounded.then_some(self.fewest));
        value["density"] = json!(is_bounded.then_some(self.density));
    }
}

fn list(family: &Family, output: &Output) -> Result<(), Failure> {
    let Family { name, summary, limits, example, .. } = family;
    let code = Code::new(&example.parse()?)?;
    let figures = Figures::of(&code);
    let mut value = json!({
        "type": "family", "name": name, "summary": summary, "limits": limits, "example": example,
    });
    figures.add_to(&code, &mut value);
    output.result(value, || {
        format!(
            "{name}\n  {summary}\n  {limits}\n  try: {example}\n       {}, {:.1} % overhead, {}\n",
            shards::tolerance_text(&code, (code.tolerance(), code.node_count()), "nodes"),
            100.0 * figures.overhead,
            figures.ones_text(&code)
        )
    });
    Ok(())
}

fn describe(spec: &Spec, args: &Codes, output: &Output) -> Result<(), Failure> {
    let code = Code::new(spec)?;
    let figures = Figures::of(&code);
    let pin: Map<String, Value> =
        code.pin().entries().map(|(name, numbers)| (name.to_owned(), json!(numbers))).collect();
    let mut value = json!({
        "type": "code", "code": code.spec().to_string(), "nodes": code.node_count(),
        "data_nodes": figures.data_nodes,
        "data_cells": figures.data, "parity_cells": figures.parity, "pin": pin,
    });
    figures.add_to(&code, &mut value);
    value["stages"] = (1..=code.stages()).map(|stage| stage_json(&code, stage)).collect();
    let all: Vec<usize> = (0..code.node_count()).collect();
    let reception = shards::reception(&code, &all)?;
    reception.iter().for_each(|report| value["reception"] = shards::reception_value(report));
    if args.matrix {
        let rows = parity_rows(&code).map(|cell| row_text(&code, cell, "0", "1", ""));
        value["matrix"] = rows.collect();
    }
    if let Some(path) = &args.svg {
        picture::write(&code, path)?;
        value["svg"] = json!(path.to_string_lossy());
    }
    output.result(value, || text(&code, &figures, reception.as_ref(), args.matrix));
    Ok(())
}

fn text(
    code: &Code,
    figures: &Figures,
    reception: Option<&ReceptionReport>,
    matrix: bool,
) -> String {
    let (spec, data, parity) = (code.spec(), figures.data, figures.parity);
    let cells = match reception {
        Some(_) => format!("{data} data blocks as {parity} blocks"),
        None => format!("{data} data and {parity} parity packets a stripe"),
    };
    let mut text = format!(
        "{spec}\n  {} nodes, {} with data; {}\n  {cells}: {:.1} % overhead\n  {}\n",
        code.node_count(),
        figures.data_nodes,
        shards::tolerance_text(code, (code.tolerance(), code.node_count()), "nodes"),
        100.0 * figures.overhead,
        figures.ones_text(code)
    );
    for (stage, Promotion { reads, makes }) in
        (2..=code.stages()).filter_map(|stage| Some((stage, code.promotion(stage)?)))
    {
        text.push_str(&format!(
            "\n  after stage {} any {} of {} nodes may be lost; stage {stage} makes {} packets from {}",
            stage - 1,
            code.tolerance_at(stage - 1),
            code.nodes_at(stage - 1).len(),
            makes.len(),
            reads.len()
        ));
    }
    if let Some(report) = reception {
        text.push_str(&format!("  {}\n", shards::reception_text(report)));
    }
    for cell in parity_rows(code).filter(|_| matrix) {
        let row = row_text(code, cell, "·", "1", " ");
        text.push_str(&format!("\n{:>8}  {row}", code.cell_name(cell)));
    }
    text
}

/// What a stage makes and reads, and what may be lost after it.
fn stage_json(code: &Code, stage: u8) -> Value {
    let reads = code.promotion(stage).map_or(code.data_cells().len(), |later| later.reads.len());
    json!({
        "nodes": code.nodes_at(stage).len(), "tolerance": code.tolerance_at(stage),
        "reads": reads, "makes": code.made_in(stage).len(),
    })
}

/// The stored parity cells, whose generator rows are the bit matrix.
pub(super) fn parity_rows(code: &Code) -> impl Iterator<Item = CellId> {
    code.cells().filter(|&cell| code.cell(cell).role == Role::Parity)
}

/// A generator row, with a gap between nodes.
fn row_text(code: &Code, cell: CellId, zero: &str, one: &str, gap: &str) -> String {
    let row = code.row(cell);
    let mut text = String::new();
    let mut last_node = None;
    for (position, &data) in code.data_cells().iter().enumerate() {
        let node = code.cell(data).place.map(|place| place.node);
        if last_node.is_some_and(|last| last != node) {
            text.push_str(gap);
        }
        last_node = Some(node);
        text.push_str(if row.binary_search(&(position as u32)).is_ok() { one } else { zero });
    }
    text
}
