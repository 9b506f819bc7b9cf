//! The lines that `paritas --json` prints, defined once.
//!
//! With `--json`, a command prints one object a line: its results, progress, warnings and errors.
//! Each kind of line is a struct here, and [`Line`] holds any of them. The commands fill the
//! structs in, serde prints them, and [`SCHEMA`] describes them. It is written from these types, so
//! a field's doc comment is what users read about it in `paritas schema`.
//!
//! Names tell what a type is for:
//!
//! | ending | what it is |
//! | --- | --- |
//! | `Line` | a line |
//! | `Entry` | an object in a line, mostly one of a list |
//! | `Fields` | fields that several lines or entries share, printed among their own |
//! | `Word` | a string that is one of a few words |
//! | `Text` | a string of a certain form |
//! | `Key` | the field under which a [`Name`] is printed |
//!
//! A field is `null` if its value is unknown or does not apply. A field that is left out belongs to
//! a flag that was not given, or to another kind of object. Names and paths may be any bytes, so
//! each has two fields, and one of them is printed (see [`Name`]).
//!
//! Nothing here depends on the other crates: the commands turn the reports of those crates into
//! these types.

mod line;
mod name;
mod schema;

pub mod codes;
pub mod commands;
pub mod machine;
pub mod parts;
pub mod protections;
pub mod shard_parts;
pub mod shards;
pub mod speed;
pub mod status;
pub mod volumes;

pub use line::Line;
pub use name::{
    DiskFolderKey, DrawingKey, FolderKey, FormerPathKey, MovedToKey, Name, NameKey, ObjectNameKey,
    PathKey, RootKey, TargetKey,
};
pub use schema::schema;

/// The schema of all lines as a document: what [`schema()`] makes of the types.
pub const SCHEMA: &str = include_str!("../json.schema.json");
