//! Names and paths, which may be any bytes.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

use base64::Engine;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A name or a path. If it is UTF-8, it is printed as text under the key `K`; otherwise its bytes
/// are printed in base64 under the same key followed by `_bytes`. Structs flatten a field of this
/// type.
#[derive(Debug, Clone)]
pub struct Name<K> {
    name: OsString,
    key: PhantomData<K>,
}

/// The key of a [`Name`].
pub trait NameKey {
    /// The key of a name that is UTF-8.
    const TEXT: &'static str;
    /// The key of a name that is not UTF-8.
    const BYTES: &'static str;
    /// A description without a full stop.
    const ABOUT: &'static str;
}

macro_rules! keys {
    ($($(#[$doc:meta])* $key:ident: $text:literal, $about:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy)]
            pub enum $key {}

            impl NameKey for $key {
                const TEXT: &'static str = $text;
                const BYTES: &'static str = concat!($text, "_bytes");
                const ABOUT: &'static str = $about;
            }
        )*
    };
}

keys! {
    /// The key of an object's name.
    ObjectNameKey: "name", "The object's name";
    /// The key of the path of a file, or of anything else.
    PathKey: "path", "The path";
    /// The key of the path that a command wrote to.
    TargetKey: "path", "The path of the file that was written (- for standard output)";
    /// The key of the path of a folder.
    FolderKey: "path", "The path of the folder";
    /// The key of the path of a folder that stands for a disk.
    DiskFolderKey: "path", "A folder on the disk to which files would be written";
    /// The key of the path that a file had before it was moved.
    FormerPathKey: "from", "The path that the file had";
    /// The key of the path to which a protected file was moved.
    MovedToKey: "moved_to", "For a moved file, the path of the file with its bytes";
    /// The key of the root of a protection.
    RootKey: "root", "The folder that protected paths are relative to";
    /// The key of the path of a drawing.
    DrawingKey: "svg", "With --svg, the path of the drawing";
}

impl<K, N: AsRef<OsStr> + ?Sized> From<&N> for Name<K> {
    fn from(name: &N) -> Self {
        Self { name: name.as_ref().to_owned(), key: PhantomData }
    }
}

impl<K: NameKey> Serialize for Name<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let base64 = base64::engine::general_purpose::STANDARD;
        match self.name.to_str() {
            Some(text) => serializer.collect_map([(K::TEXT, text)]),
            None => {
                let bytes = base64.encode(self.name.as_encoded_bytes());
                serializer.collect_map([(K::BYTES, bytes)])
            }
        }
    }
}

impl<K: NameKey> JsonSchema for Name<K> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        K::TEXT.into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}::{}", module_path!(), K::ABOUT).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                K::TEXT: {
                    "type": "string",
                    "description": format!("{}, if it is UTF-8.", K::ABOUT),
                },
                K::BYTES: {
                    "type": "string",
                    "description": format!("{}, as bytes in base64 if it is not UTF-8.", K::ABOUT),
                    "contentEncoding": "base64",
                },
            },
            "oneOf": [{"required": [K::TEXT]}, {"required": [K::BYTES]}],
        })
    }
}
