//! `paritas schema`: prints the fields of the lines that `--json` prints.

use std::collections::BTreeSet;

use paritas_report::SCHEMA;
use paritas_report::commands::{COMMANDS, CommandLines};
use serde_json::{Map, Value, json};

use crate::commands::Outcome;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Returns the commands that this build has, and the types of their lines.
fn commands() -> impl Iterator<Item = &'static CommandLines> {
    let is_there = |command: &&CommandLines| {
        (cfg!(feature = "volume") || !command.is_of_volumes())
            && (cfg!(feature = "gateway") || !command.is_gateway())
    };
    COMMANDS.iter().filter(is_there)
}

/// Prints the schema of the lines that a command prints with `--json`; without a command, the whole
/// schema.
pub fn run(command: &[String], output: &Output) -> Outcome {
    let schema: Value = serde_json::from_str(SCHEMA)
        .map_err(|error| Failure::internal(format!("the schema cannot be read: {error}")))?;
    if command.is_empty() {
        output.document(&schema, || SCHEMA.to_owned());
        return Ok(Exit::Done);
    }
    let name = command.join(" ");
    let Some(CommandLines { types, .. }) = commands().find(|known| known.command == name) else {
        let known: Vec<&str> = commands().map(|known| known.command).collect();
        let message = format!("no command `{name}` prints JSON; these do: {}", known.join(", "));
        return Err(Failure::arguments(message));
    };
    let definitions = Definitions(&schema["$defs"]);
    let used = definitions.used_by(types);
    output.document(&definitions.part(&schema, types, &used), || definitions.text(types, &used));
    Ok(Exit::Done)
}

/// The definitions of a schema, by name.
struct Definitions<'s>(&'s Value);

impl Definitions<'_> {
    /// Returns the definitions that some types refer to, directly or through others.
    fn used_by(&self, types: &[&str]) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        let mut left: Vec<String> = types.iter().map(|&name| name.to_owned()).collect();
        while let Some(name) = left.pop() {
            for inner in references(&self.0[&name]) {
                if used.insert(inner.clone()) {
                    left.push(inner);
                }
            }
        }
        used
    }

    /// Returns the schema of some types alone.
    fn part(&self, whole: &Value, types: &[&str], used: &BTreeSet<String>) -> Value {
        let any: Vec<Value> = types.iter().map(|name| json!({"$ref": place_of(name)})).collect();
        let names = types.iter().copied().chain(used.iter().map(String::as_str));
        let kept: Map<String, Value> =
            names.map(|name| (name.to_owned(), self.0[name].clone())).collect();
        json!({"$schema": whole["$schema"], "oneOf": any, "$defs": kept})
    }

    /// Returns the fields of some types, and of the objects in them, a line each.
    fn text(&self, types: &[&str], used: &BTreeSet<String>) -> String {
        let mut sections: Vec<String> = types.iter().map(|name| self.section(name)).collect();
        let is_object = |name: &&String| self.0[name.as_str()]["properties"].is_object();
        sections.extend(used.iter().filter(is_object).map(|name| self.section(name)));
        sections.join("\n")
    }

    /// Returns the fields of one definition.
    fn section(&self, name: &str) -> String {
        let definition = &self.0[name];
        let about = definition["description"].as_str().unwrap_or_default();
        let required: Vec<&str> = definition["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let fields = definition["properties"].as_object().into_iter().flatten();
        let rows: Vec<[String; 3]> = fields
            .map(|(field, property)| {
                let mark = if required.contains(&field.as_str()) { "" } else { "?" };
                [format!("{field}{mark}"), self.kind(property), self.about(property)]
            })
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let (first, second) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
        let line = |[field, kind, about]: &[String; 3]| {
            format!("  {field:first$}  {kind:second$}  {about}\n")
        };
        format!("{name}: {about}\n{}", rows.iter().map(line).collect::<String>())
    }

    /// Returns the kind of a field: a type of JSON, the name of a definition, or its possible
    /// values.
    fn kind(&self, property: &Value) -> String {
        if let Some(values) = property["enum"].as_array() {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            return values.join(" | ");
        }
        if let Some(name) = referred(property) {
            return match self.0[name]["properties"].is_object() {
                true => name.to_owned(),
                false => self.kind(&self.0[name]),
            };
        }
        if let Some(value) = property.get("const") {
            return value.to_string();
        }
        let either = ["oneOf", "anyOf"].map(|either| property[either].as_array());
        if let Some(either) = either.into_iter().flatten().next() {
            return either.iter().map(|one| self.kind(one)).collect::<Vec<_>>().join(" | ");
        }
        let one = |kind: &Value| match kind.as_str() {
            Some("array") => format!("[{}]", self.kind(&property["items"])),
            kind => kind.unwrap_or("any").to_owned(),
        };
        match &property["type"] {
            Value::Array(kinds) => kinds.iter().map(one).collect::<Vec<_>>().join(" | "),
            kind => one(kind),
        }
    }

    /// Returns the description of a field, or of the definition that it refers to.
    fn about(&self, property: &Value) -> String {
        let said = property["description"].as_str();
        let of_reference =
            || referred(property).and_then(|name| self.0[name]["description"].as_str());
        said.or_else(of_reference).unwrap_or_default().to_owned()
    }
}

/// Returns the place of a definition in the schema.
fn place_of(name: &str) -> String {
    format!("#/$defs/{name}")
}

/// Returns the name of the definition that a field refers to.
fn referred(property: &Value) -> Option<&str> {
    property["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// Returns the names of the definitions that a part of a schema refers to.
fn references(part: &Value) -> Vec<String> {
    let inner: Vec<&Value> = match part {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    let own = referred(part).map(str::to_owned);
    own.into_iter().chain(inner.into_iter().flat_map(references)).collect()
}
