//! Where files lie. Everything here deals with files and folders only, and does not know codes or
//! formats. Most functions return [`std::io::Error`]; callers say what they were doing.

pub mod attributes;
pub mod extended;
pub mod folder;
pub mod from_disk;
pub mod identity;
pub mod lock;
pub mod names;
pub mod open_files;
pub mod positional;
pub mod refused;
pub mod secrets;
pub mod source;
pub mod space;
pub mod system;
