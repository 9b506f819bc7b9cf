//! The JSON schema of all lines.
//!
//! It is generated from the types and then tightened: an object has only the described fields, and
//! each line's definition includes its type, so that it can be read and checked by itself. The
//! names of definitions follow from those of the types.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::line::Line;

/// Returns the schema of the lines that commands print with `--json` (JSON Schema, draft 2020-12).
/// Each line is a definition under the name of its type.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut root = settings.into_generator().into_root_schema_for::<Line>().to_value();
    rename(&mut root);
    let lines = root.get_mut("oneOf").map(Value::take);
    let lines: Vec<Tagged> =
        lines.iter().filter_map(Value::as_array).flatten().filter_map(Tagged::of).collect();
    let references = lines.iter().map(|line| json!({"$ref": line.reference}));
    root["oneOf"] = references.collect();
    root["title"] = json!("What paritas prints with --json");
    let definitions = root.get_mut("$defs").and_then(Value::as_object_mut);
    for (name, definition) in definitions.into_iter().flatten() {
        if let Some(line) = lines.iter().find(|line| line.reference.ends_with(&format!("/{name}")))
        {
            line.add_type(definition);
        }
    }
    tighten(&mut root);
    root
}

/// Names the definitions, and what refers to them, as readers know them.
fn rename(part: &mut Value) {
    const PLACE: &str = "#/$defs/";
    match part {
        Value::Object(fields) => {
            if let Some(Value::String(place)) = fields.get_mut("$ref")
                && let Some(name) = place.strip_prefix(PLACE)
            {
                *place = format!("{PLACE}{}", public_name(name));
            }
            if let Some(Value::Object(all)) = fields.get_mut("$defs") {
                let named = std::mem::take(all).into_iter();
                *all = named.map(|(name, definition)| (public_name(&name), definition)).collect();
            }
            fields.values_mut().for_each(rename);
        }
        Value::Array(items) => items.iter_mut().for_each(rename),
        _ => {}
    }
}

/// Returns the name of the definition of a type: that of `CodeStageEntry` is `code_stage`, and that
/// of the line `VolumePutLine` `volume-put`, its type. Other names stay.
fn public_name(name: &str) -> String {
    let (base, gap) = match name.strip_suffix("Line") {
        Some(base) => (base, "-"),
        None => {
            let mut ends = ["Entry", "Word", "Text"].iter();
            (ends.find_map(|end| name.strip_suffix(end)).unwrap_or(name), "_")
        }
    };
    let mut text = String::new();
    for letter in base.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push_str(gap);
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// A kind of line, as an internally tagged enum describes it.
struct Tagged {
    /// The place of the fields that follow the type.
    reference: String,
    /// The type.
    kind: Value,
}

impl Tagged {
    fn of(variant: &Value) -> Option<Self> {
        let reference = variant["$ref"].as_str()?.to_owned();
        Some(Self { reference, kind: variant["properties"]["type"]["const"].clone() })
    }

    /// Adds the type to the definition of the other fields.
    fn add_type(&self, definition: &mut Value) {
        definition["properties"]["type"] =
            json!({"const": self.kind, "description": "The type of the line."});
        match definition["required"].as_array_mut() {
            Some(required) => required.insert(0, json!("type")),
            None => definition["required"] = json!(["type"]),
        }
    }
}

/// Forbids further fields in every object, removes the formats of numbers, which are names of
/// Rust's types, and makes each description one line.
fn tighten(part: &mut Value) {
    if let Value::Object(fields) = part {
        tighten_one(fields);
    }
    match part {
        Value::Object(fields) => fields.values_mut().for_each(tighten),
        Value::Array(items) => items.iter_mut().for_each(tighten),
        _ => {}
    }
}

fn tighten_one(fields: &mut Map<String, Value>) {
    if fields.get("properties").is_some_and(Value::is_object) {
        fields.insert("additionalProperties".to_owned(), json!(false));
    }
    if fields.get("format").is_some_and(Value::is_string) {
        fields.remove("format");
    }
    let is_any = |choice: &Value| choice.as_object().is_some_and(Map::is_empty);
    // An optional struct that is flattened into another leaves an `anyOf` that allows anything.
    if fields.get("anyOf").and_then(Value::as_array).is_some_and(|any| any.iter().any(is_any)) {
        fields.remove("anyOf");
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}
