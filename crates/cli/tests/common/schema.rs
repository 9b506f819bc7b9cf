//! `docs/json.schema.json`, to which every JSON line is held that a test has the program print.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

/// Where the schema would be on the net; it is read from the file.
const PLACE: &str = "https://paritas.invalid/json.schema.json";

struct Schema {
    value: Value,
    compiled: Schemas,
    /// By the type of a line.
    types: BTreeMap<String, SchemaIndex>,
    /// Any line.
    any: SchemaIndex,
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let path: PathBuf =
            [env!("CARGO_MANIFEST_DIR"), "../../docs/json.schema.json"].iter().collect();
        let value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let (mut compiler, mut compiled) = (Compiler::new(), Schemas::new());
        compiler.add_resource(PLACE, value.clone()).unwrap();
        let mut compile = |place: &str| {
            let compiled = compiler.compile(&format!("{PLACE}{place}"), &mut compiled);
            compiled.unwrap_or_else(|error| panic!("{error}"))
        };
        let any = compile("");
        let names = types(&value).map(str::to_owned).collect::<Vec<_>>();
        let of_type = |name: String| {
            let index = compile(&format!("#/$defs/{name}"));
            (name, index)
        };
        let types = names.into_iter().map(of_type).collect();
        Schema { value, compiled, types, any }
    })
}

/// The schema itself.
pub fn text() -> &'static Value {
    &schema().value
}

/// The types of lines that a schema defines.
pub fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let is_type = |(name, definition): &(&String, &Value)| {
        definition["properties"]["type"]["const"] == name.as_str()
    };
    schema["$defs"].as_object().unwrap().iter().filter(is_type).map(|(name, _)| name.as_str())
}

/// What is wrong with a line, if anything.
pub fn flaw(line: &Value) -> Option<String> {
    let schema = schema();
    let index = line["type"].as_str().and_then(|name| schema.types.get(name));
    // Against the definition of its type the message names the field.
    let index = index.copied().unwrap_or(schema.any);
    let error = schema.compiled.validate(line, index).err();
    error.map(|error| format!("{error:#}\n{line}"))
}

/// Insists that a line is as the schema says.
pub fn check(line: &Value) {
    if let Some(flaw) = flaw(line) {
        panic!("the JSON is not as docs/json.schema.json says: {flaw}");
    }
}
