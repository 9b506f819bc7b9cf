//! `paritas codes`: the families, or one code.

use paritas::{CellId, Code, FAMILIES, Role, Spec};
use serde_json::{Map, Value, json};

use crate::args::Codes;
use crate::commands::Outcome;
use crate::exit::Exit;
use crate::output::Output;

/// Lists families or describes a code.
pub fn run(args: &Codes, output: &Output) -> Outcome {
    match &args.spec {
        None => list(output),
        Some(spec) => describe(spec, args.matrix, output)?,
    }
    Ok(Exit::Done)
}

fn list(output: &Output) {
    for family in FAMILIES {
        let value = json!({
            "type": "family", "name": family.name, "summary": family.summary,
            "limits": family.limits, "example": family.example,
        });
        output.result(value, || {
            let (name, summary) = (family.name, family.summary);
            format!("{name}\n  {summary}\n  {}\n  try: {}\n", family.limits, family.example)
        });
    }
}

fn describe(spec: &Spec, matrix: bool, output: &Output) -> Result<(), paritas::Error> {
    let code = Code::new(spec)?;
    let data_nodes = code.nodes().filter(|&node| code.holds_data(node)).count();
    let (data, parity) = (code.stored(Role::Data).len(), code.stored(Role::Parity).len());
    let overhead = parity as f64 / data as f64;
    let pin: Map<String, Value> =
        code.pin().entries().map(|(name, numbers)| (name.to_owned(), json!(numbers))).collect();
    let mut value = json!({
        "type": "code", "code": code.spec().to_string(), "nodes": code.node_count(),
        "data_nodes": data_nodes, "tolerance": code.tolerance(), "data_cells": data,
        "parity_cells": parity, "overhead": overhead, "ones": code.ones(), "pin": pin,
    });
    if matrix {
        let rows = parity_rows(&code).map(|cell| row_text(&code, cell, "0", "1", ""));
        value["matrix"] = rows.collect();
    }
    output.result(value, || {
        let mut text = format!(
            "{}\n  {} nodes, {data_nodes} with data; any {} may be lost\n  \
             {data} data and {parity} parity packets a stripe: {:.1} % overhead\n  \
             {} ones in the parity rows\n",
            code.spec(),
            code.node_count(),
            code.tolerance(),
            100.0 * overhead,
            code.ones()
        );
        if matrix {
            for cell in parity_rows(&code) {
                let row = row_text(&code, cell, "·", "1", " ");
                text.push_str(&format!("\n{:>8}  {row}", code.cell_name(cell)));
            }
        }
        text
    });
    Ok(())
}

fn parity_rows(code: &Code) -> impl Iterator<Item = CellId> {
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
