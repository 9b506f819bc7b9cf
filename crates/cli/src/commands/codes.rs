//! `paritas codes`: the families, or one code.

use paritas::{CellId, Code, FAMILIES, Family, Promotion, Role, Spec};
use serde_json::{Map, Value, json};

use crate::args::Codes;
use crate::commands::{Outcome, picture};
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
        let (data, parity) = (code.stored(Role::Data).len(), code.stored(Role::Parity).len());
        let (ones, fewest) = (code.ones(), code.fewest_ones());
        let overhead = parity as f64 / data as f64;
        let density = ones as f64 / fewest as f64;
        Self { data_nodes, data, parity, overhead, ones, fewest, density }
    }

    fn ones_text(&self) -> String {
        format!("{} ones, {:.2} x the fewest possible ({})", self.ones, self.density, self.fewest)
    }

    fn add_to(&self, value: &mut Value) {
        value["overhead"] = json!(self.overhead);
        value["ones"] = json!(self.ones);
        value["fewest_ones"] = json!(self.fewest);
        value["density"] = json!(self.density);
    }
}

fn list(family: &Family, output: &Output) -> Result<(), Failure> {
    let Family { name, summary, limits, example, .. } = family;
    let code = Code::new(&example.parse()?)?;
    let figures = Figures::of(&code);
    let mut value = json!({
        "type": "family", "name": name, "summary": summary, "limits": limits, "example": example,
        "tolerance": code.tolerance(),
    });
    figures.add_to(&mut value);
    output.result(value, || {
        format!(
            "{name}\n  {summary}\n  {limits}\n  try: {example}\n       any {} of {} nodes may be lost, \
             {:.1} % overhead, {}\n",
            code.tolerance(),
            code.node_count(),
            100.0 * figures.overhead,
            figures.ones_text()
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
        "data_nodes": figures.data_nodes, "tolerance": code.tolerance(),
        "data_cells": figures.data, "parity_cells": figures.parity, "pin": pin,
    });
    figures.add_to(&mut value);
    value["stages"] = (1..=code.stages()).map(|stage| stage_json(&code, stage)).collect();
    if args.matrix {
        let rows = parity_rows(&code).map(|cell| row_text(&code, cell, "0", "1", ""));
        value["matrix"] = rows.collect();
    }
    if let Some(path) = &args.svg {
        picture::write(&code, path)?;
        value["svg"] = json!(path.to_string_lossy());
    }
    output.result(value, || text(&code, &figures, args.matrix));
    Ok(())
}

fn text(code: &Code, figures: &Figures, matrix: bool) -> String {
    let mut text = format!(
        "{}\n  {} nodes, {} with data; any {} may be lost\n  \
         {} data and {} parity packets a stripe: {:.1} % overhead\n  {}\n",
        code.spec(),
        code.node_count(),
        figures.data_nodes,
        code.tolerance(),
        figures.data,
        figures.parity,
        100.0 * figures.overhead,
        figures.ones_text()
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
