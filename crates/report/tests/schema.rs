//! Compares `json.schema.json` with the schema of the types. If the environment variable
//! `PARITAS_WRITE_SCHEMA` is set, writes the file first.

use std::collections::BTreeSet;
use std::path::Path;

use paritas_report::commands::COMMANDS;
use paritas_report::schema;
use serde_json::Value;

#[test]
fn the_schema_is_up_to_date() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("json.schema.json");
    let mut made = schema();
    made.sort_all_objects();
    if std::env::var_os("PARITAS_WRITE_SCHEMA").is_some() {
        let text = serde_json::to_string_pretty(&made).unwrap() + "\n";
        std::fs::write(&kept, text).unwrap();
    }
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    let hint = "PARITAS_WRITE_SCHEMA=1 cargo test -p paritas-report --test schema";
    assert!(kept == made, "json.schema.json is out of date; write it by `{hint}`");
}

/// Every type of line is printed by some command, and commands print only types that exist.
#[test]
fn the_table_of_commands_has_every_line() {
    let schema = schema();
    let lines = schema["oneOf"].as_array().unwrap().iter();
    let places = lines.map(|line| line["$ref"].as_str().unwrap());
    let defined: BTreeSet<&str> = places.map(|place| place.rsplit('/').next().unwrap()).collect();
    let printed = COMMANDS.iter().flat_map(|command| command.types);
    assert_eq!(printed.copied().collect::<BTreeSet<_>>(), defined);
    for name in defined {
        assert_eq!(schema["$defs"][name]["properties"]["type"]["const"], name);
    }
}
