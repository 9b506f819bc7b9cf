//! Names of objects, and the paths of a volume's files on its nodes.
//!
//! | path | file |
//! | --- | --- |
//! | `objects/<2 hex>/<id>/<escaped base name>.<i>of<n>.paritas` | a part of an object, otherwise named as [`paritas_shards`] names it |
//! | `manifests/<escaped name>@/<generation>-<id>-<length>.<kind>` | a version of what a name means |
//! | `running/<id>` | the heartbeat of the process that writes an object |
//! | `owed/<id>` | a hint: some of the object is not where it belongs |
//! | `backlog/<id>` | a hint: the object waits for its next stage |
//! | `backlog/<id>.claim` | the claim of the process that adds this stage |
//! | `scrub` | how far the scrub of the volume is |
//! | `ready` | the mark of a node that has the manifests which it should have |
//!
//! `<id>` is the object's id, 32 hexadecimal digits, and `<2 hex>` its first two. The generation
//! has 16 hexadecimal digits, so that listings sort by it; the length in bytes is hexadecimal.
//!
//! A name is escaped for every node alike: bytes other than ASCII letters, digits, `.`, `_`, `-`
//! and `/` become `%XX`, and so do a `.` at either end of a component. So no component contains the
//! `@` that ends the folder of a name's manifests, or begins with the `.` of temporary files, and a
//! name can be the folder of others. A file in these folders whose path does not read as one of the
//! table's, to the letter, belongs to somebody else.

use std::fmt::{self, Write};
use std::str::FromStr;

use paritas_shards::ObjectId;

use crate::protocol::{Kind, Listed, Version};
use crate::{Error, Result};

/// The most bytes of a component's escaped form. A shard's file is named after the last component
/// and needs some bytes more; file systems allow 255.
const MOST_COMPONENT: usize = 200;

/// The most bytes of a name's escaped form. Buckets allow keys of 1,024 bytes, of which a manifest
/// needs some for its version.
const MOST_NAME: usize = 900;

/// The file that says which node of which volume this is. `init` writes it to empty nodes, and
/// replacing a lost node writes it last, after the manifests. A node without it answers no survey:
/// being empty, it would count as proof that there is nothing.
pub const READY: &str = "ready";
/// The file that says how far the scrub of the volume is.
pub const SCRUB: &str = "scrub";
/// The folder of all manifests, with the separator.
pub const MANIFESTS: &str = "manifests/";
/// The folder of all shards, with the separator.
pub const OBJECTS: &str = "objects/";
/// The folder of heartbeats, with the separator.
pub const RUNNING: &str = "running/";
/// The folder of hints to what is not where it belongs, with the separator.
pub const OWED: &str = "owed/";
/// The folder of hints to objects that wait for their next stage, with the separator.
pub const BACKLOG: &str = "backlog/";

/// The name of an object: components separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

impl ObjectName {
    /// Creates a name.
    ///
    /// # Errors
    /// If a component is empty, `.` or `..`, has a control character or is too long, or if the name
    /// is too long ([`crate::ErrorKind::Parameters`]).
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = Self(name.into());
        (1..)
            .zip(name.0.split('/'))
            .try_for_each(|(at, part)| check_component(&name.0, at, part))?;
        match name.escaped().len() {
            bytes if bytes > MOST_NAME => Err(Error::parameters(format!(
                "the name {:?} has {bytes} bytes when it is escaped; at most {MOST_NAME} are allowed",
                beginning(&name.0)
            ))),
            _ => Ok(name),
        }
    }

    /// Returns the name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last component.
    pub fn base(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the name as it stands in paths.
    pub fn escaped(&self) -> String {
        let mut escaped = String::with_capacity(self.0.len());
        for component in self.0.split('/') {
            if !escaped.is_empty() {
                escaped.push('/');
            }
            escape_component(component, &mut escaped);
        }
        escaped
    }

    /// Reads a name as it stands in paths. Returns `None` if no name is escaped like this.
    pub fn from_escaped(escaped: &str) -> Option<Self> {
        let name = Self::new(unescape(escaped)?).ok()?;
        (name.escaped() == escaped).then_some(name)
    }

    /// Returns the folder of the name's manifests, with the separator.
    pub fn folder(&self) -> String {
        format!("{MANIFESTS}{}@/", self.escaped())
    }

    /// Returns the path of a version's manifest.
    pub fn manifest(&self, listed: &Listed) -> String {
        let Listed { version: Version { generation, object }, kind, length } = listed;
        format!("{}{generation:016x}-{object}-{length:x}.{kind}", self.folder())
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ObjectName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::new(name)
    }
}

fn check_component(name: &str, at: usize, component: &str) -> Result<()> {
    let flaw = match component {
        "" => "is empty".to_owned(),
        "." | ".." => format!("is {component:?}"),
        _ if component.contains(char::is_control) => "has a control character".to_owned(),
        _ => match escaped_component(component).len() {
            bytes if bytes > MOST_COMPONENT => {
                format!(
                    "has {bytes} bytes when it is escaped; at most {MOST_COMPONENT} are allowed"
                )
            }
            _ => return Ok(()),
        },
    };
    Err(Error::parameters(format!("component {at} of the name {:?} {flaw}", beginning(name))))
}

/// Returns the beginning of a name, for messages.
fn beginning(name: &str) -> String {
    const SHOWN: usize = 60;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn escaped_component(component: &str) -> String {
    let mut escaped = String::new();
    escape_component(component, &mut escaped);
    escaped
}

fn escape_component(component: &str, escaped: &mut String) {
    let last = component.len().saturating_sub(1);
    for (at, byte) in component.bytes().enumerate() {
        let is_plain = match byte {
            b'.' => at != 0 && at != last,
            _ => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
        };
        match is_plain {
            true => escaped.push(char::from(byte)),
            // Writing to a string does not fail.
            false => _ = write!(escaped, "%{byte:02X}"),
        }
    }
}

fn unescape(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let (byte, others) = match first {
            b'%' => {
                let (digits, others) = others.split_at_checked(2)?;
                (hex(std::str::from_utf8(digits).ok()?)? as u8, others)
            }
            _ => (first, others),
        };
        bytes.push(byte);
        rest = others;
    }
    String::from_utf8(bytes).ok()
}

/// Reads hexadecimal digits, without a sign.
fn hex(digits: &str) -> Option<u64> {
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| all)
}

/// The first generation that no version has. Generations are seconds since 1970 or a little more,
/// so a file that states a greater one was not written by a put. It would leave no room for
/// versions above it.
const GENERATION_END: u64 = 1 << 63;

/// Reads the path of a manifest. Returns `None` if it is no manifest's.
pub fn parse_manifest(path: &str) -> Option<(ObjectName, Listed)> {
    let (escaped, file) = path.strip_prefix(MANIFESTS)?.rsplit_once("@/")?;
    let name = ObjectName::from_escaped(escaped)?;
    let (numbers, kind) = file.split_once('.')?;
    let [generation, object, length] = numbers.split('-').collect::<Vec<_>>().try_into().ok()?;
    let kind = [Kind::Put, Kind::Removed].into_iter().find(|known| known.as_str() == kind)?;
    let version = Version { generation: hex(generation)?, object: object.parse().ok()? };
    let listed = Listed { version, kind, length: hex(length)? };
    let is_possible = version.generation < GENERATION_END;
    (is_possible && name.manifest(&listed) == path).then_some((name, listed))
}

/// Returns the path of a part's file, given the name that [`paritas_shards`] gives it: the object's
/// base name, with a suffix.
pub fn part(object: ObjectId, base: &str, file: &str) -> Option<String> {
    let suffix = file.strip_prefix(base)?;
    Some(format!("{}{}{suffix}", object_folder(object), escaped_component(base)))
}

/// Returns the folder of an object's parts, with the separator.
pub fn object_folder(object: ObjectId) -> String {
    let id = object.to_string();
    format!("{OBJECTS}{}/{id}/", &id[..2])
}

/// Returns the path of an object's heartbeat or hint in a folder such as [`RUNNING`].
pub fn mark(folder: &str, object: ObjectId) -> String {
    format!("{folder}{object}")
}

/// Returns the path of the claim of the process that adds the next stage to an object.
pub fn claim(object: ObjectId) -> String {
    format!("{}.claim", mark(BACKLOG, object))
}

/// Reads the path of an object's heartbeat or hint in a folder such as [`RUNNING`]. Returns `None`
/// if it is none.
pub fn parse_mark(folder: &str, path: &str) -> Option<ObjectId> {
    let object = path.strip_prefix(folder)?.parse().ok()?;
    (mark(folder, object) == path).then_some(object)
}

/// What the path of a part says. Only the file's header tells for sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartPath {
    /// The object.
    pub object: ObjectId,
    /// The index of the shard.
    pub shard: usize,
    /// Number of shards that the object has in its last stage.
    pub shards: usize,
    /// The stage that the part belongs to, from 1.
    pub stage: u8,
}

/// Reads the path of a part of an object. Returns `None` if it is no part's, or a temporary one.
pub fn parse_part(path: &str) -> Option<PartPath> {
    let (folder, file) = path.rsplit_once('/')?;
    let object: ObjectId = folder.rsplit_once('/')?.1.parse().ok()?;
    if object_folder(object).trim_end_matches('/') != folder || file.starts_with('.') {
        return None;
    }
    let stem = file.strip_suffix(".paritas")?;
    let (stem, stage) = match stem.rsplit_once(".stage") {
        Some((stem, stage)) if is_number(stage) => (stem, stage.parse().ok()?),
        _ => (stem, 1),
    };
    let (shard, shards) = stem.rsplit_once('.')?.1.split_once("of")?;
    let [shard, shards] = [shard, shards].map(|text| text.parse().ok().filter(|_| is_number(text)));
    let part = PartPath { object, shard: shard?, shards: shards?, stage };
    (part.shard < part.shards && part.stage > 0).then_some(part)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(name: &str) -> String {
        ObjectName::new(name).unwrap_err().to_string()
    }

    #[test]
    fn names_are_escaped_by_component() {
        let escaped = |name: &str| ObjectName::new(name).unwrap().escaped();
        assert_eq!(escaped("photos/2026/a-b_c.tar.gz"), "photos/2026/a-b_c.tar.gz");
        assert_eq!(escaped("@home/.rc/a b./100%"), "%40home/%2Erc/a%20b%2E/100%25");
        assert_eq!(escaped("é:*?\\"), "%C3%A9%3A%2A%3F%5C");
    }

    #[test]
    fn a_manifest_of_an_impossible_generation_is_none() {
        let path = |generation: u64| {
            let version = Version { generation, object: ObjectId::new([1; 16]) };
            ObjectName::new("a").unwrap().manifest(&Listed { version, kind: Kind::Put, length: 1 })
        };
        assert!(parse_manifest(&path(GENERATION_END - 1)).is_some());
        assert!(parse_manifest(&path(GENERATION_END)).is_none());
        assert!(parse_manifest(&path(u64::MAX)).is_none());
    }

    #[test]
    fn what_cannot_be_a_name_is_refused_with_its_component() {
        assert_eq!(refusal(""), "component 1 of the name \"\" is empty");
        assert_eq!(refusal("a//b"), "component 2 of the name \"a//b\" is empty");
        assert_eq!(refusal("/a"), "component 1 of the name \"/a\" is empty");
        assert_eq!(refusal("a/../b"), "component 2 of the name \"a/../b\" is \"..\"");
        assert!(refusal("a/b\n").contains("component 2 of the name \"a/b\\n\" has a control"));
        let long = format!("a/{}", "x".repeat(201));
        assert!(
            refusal(&long).ends_with("has 201 bytes when it is escaped; at most 200 are allowed")
        );
        let deep = vec!["x".repeat(100); 9].join("/");
        assert!(refusal(&deep).contains("has 908 bytes when it is escaped; at most 900"));
    }

    #[test]
    fn only_exact_paths_are_manifests() {
        let object = "000102030405060708090a0b0c0d0e0f";
        let path = format!("manifests/a/b@/000000000000002a-{object}-1f.put");
        let (name, listed) = parse_manifest(&path).unwrap();
        assert_eq!((name.as_str(), listed.length, listed.kind), ("a/b", 31, Kind::Put));
        assert_eq!(listed.version.generation, 42);
        for other in [
            path.replace("1f", "01f"),
            path.replace("1f", "1F"),
            path.replace("1f", "+1f"),
            path.replace(".put", ".tmp"),
            path.replace("@/", "@/."),
            path.replace("a/b", "a%2Fb"),
            path.replace("a/b", "%61/b"),
            path.replace("a/b", ""),
            path.replace("b@", "b"),
            path.replace("b@", "b@@"),
            path.replace("manifests", "Manifests"),
            path.replace("0f-", "0F-"),
            path.replace("@/00", "@/"),
        ] {
            assert_eq!(parse_manifest(&other), None, "{other}");
        }
    }

    #[test]
    fn parts_are_found_in_their_object_s_folder_only() {
        let object: ObjectId = "ab0102030405060708090a0b0c0d0e0f".parse().unwrap();
        let folder = object_folder(object);
        assert_eq!(folder, "objects/ab/ab0102030405060708090a0b0c0d0e0f/");
        let part = |file: &str| parse_part(&format!("{folder}{file}"));
        let found = |shard, shards, stage| Some(PartPath { object, shard, shards, stage });
        assert_eq!(part("a.tar.03of14.paritas"), found(3, 14, 1));
        assert_eq!(part("a.3of6.stage2.paritas"), found(3, 6, 2));
        assert_eq!(part("a.stage2.3of6.paritas"), found(3, 6, 1));
        for other in [
            ".a.3of6.paritas.0123abcd.tmp",
            ".3of6.paritas",
            "a.6of6.paritas",
            "a.3of6.stage0.paritas",
            "a.+3of6.paritas",
            "a.3of6",
            "sub/a.3of6.paritas",
        ] {
            assert_eq!(part(other), None, "{other}");
        }
        assert_eq!(parse_part(&format!("objects/ac/{object}/a.3of6.paritas")), None);
    }

    #[test]
    fn shard_files_of_the_command_are_parts() {
        let folder = tempfile::tempdir().unwrap();
        let code = paritas::Code::new(&"4+2".parse().unwrap()).unwrap();
        let job = paritas_shards::EncodeJob::new(code, "letter", vec![folder.path().to_path_buf()]);
        let report = paritas_shards::encode(&job, &b"hello"[..], &|_| {}).unwrap();
        let names = report.shards.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
        for (shard, name) in names.enumerate() {
            let part = parse_part(&format!("{}{name}", object_folder(report.object))).unwrap();
            assert_eq!((part.shard, part.shards, part.stage), (shard, 6, 1));
        }
    }

    #[test]
    fn marks_are_named_after_objects() {
        let object: ObjectId = "ab0102030405060708090a0b0c0d0e0f".parse().unwrap();
        assert_eq!(parse_mark(RUNNING, &mark(RUNNING, object)), Some(object));
        assert_eq!(parse_mark(OWED, &mark(RUNNING, object)), None);
        assert_eq!(parse_mark(OWED, &mark(OWED, object).to_uppercase()), None);
        assert_eq!(parse_mark(BACKLOG, &claim(object)), None, "a claim is no hint");
    }

    proptest! {
        #[test]
        fn names_survive_escaping(text in "(\\PC|[@./ %]){1,40}") {
            let Ok(name) = ObjectName::new(text) else { return Ok(()) };
            let escaped = name.escaped();
            prop_assert!(escaped.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/%".contains(&b)));
            prop_assert_eq!(ObjectName::from_escaped(&escaped), Some(name));
        }

        #[test]
        fn manifests_survive_their_paths(
            text in "[a-zé@./ ]{1,12}", generation in 0..GENERATION_END, id: [u8; 16],
            length: u64, removed: bool,
        ) {
            let Ok(name) = ObjectName::new(text) else { return Ok(()) };
            let version = Version { generation, object: ObjectId::new(id) };
            let kind = if removed { Kind::Removed } else { Kind::Put };
            let listed = Listed { version, kind, length };
            prop_assert_eq!(parse_manifest(&name.manifest(&listed)), Some((name, listed)));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "(objects/|manifests/|\\PC|[@./%-]){0,30}") {
            let _ = (parse_manifest(&text), parse_part(&text), ObjectName::from_escaped(&text));
        }
    }
}
