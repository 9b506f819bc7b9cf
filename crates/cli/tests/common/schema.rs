//! The schema of `--json`, by which every line of JSON is checked that a test makes the program
//! print.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

/// The address of the schema. It is not fetched: the schema is read from the file.
const PLACE: &str = "https://paritas.invalid/json.schema.json";

struct Schema {
    value: Value,
    compiled: Schemas,
    /// The validators by the type of a line.
    types: BTreeMap<String, SchemaIndex>,
    /// The validator of any line.
    any: SchemaIndex,
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let value: Value = serde_json::from_str(paritas_report::SCHEMA).unwrap();
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

/// Returns the schema itself.
pub fn text() -> &'static Value {
    &schema().value
}

/// Returns the types of lines that a schema defines.
pub fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let is_type = |(name, definition): &(&String, &Value)| {
        definition["properties"]["type"]["const"] == name.as_str()
    };
    schema["$defs"].as_object().unwrap().iter().filter(is_type).map(|(name, _)| name.as_str())
}

/// Returns what is wrong with a line, if anything.
pub fn flaw(line: &Value) -> Option<String> {
    let schema = schema();
    let index = line["type"].as_str().and_then(|name| schema.types.get(name));
    // If a line is checked against the definition of its own type, the message names the field.
    let index = index.copied().unwrap_or(schema.any);
    let error = schema.compiled.validate(line, index).err();
    error.map(|error| format!("{error:#}\n{line}"))
}

/// Checks that a line matches the schema.
pub fn check(line: &Value) {
    if let Some(flaw) = flaw(line) {
        panic!("the JSON is not as crates/report/json.schema.json says: {flaw}");
    }
}
