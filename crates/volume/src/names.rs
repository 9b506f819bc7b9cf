//! Names of objects, and the paths of a volume's files on its nodes.
//!
//! | path | file |
//! | --- | --- |
//! | `objects/<2 hex>/<id>/<base name>.<i>of<n>.paritas` | a part of an object, otherwise named as [`paritas_shards`] names it |
//! | `objects2/…` | the same, of objects whose names older programs cannot read |
//! | `manifests/<name>@/<generation>-<id>-<length>.<kind>` | a version of what a name means |
//! | `running/<id>` | the heartbeat of the process that writes an object |
//! | `owed/<id>` | a hint: some of the object is not where it belongs |
//! | `lost/<id>` | a hint: a repair found the object lost |
//! | `backlog/<id>` | a hint: the object waits for its next stage |
//! | `backlog/<id>.claim` | the claim of the process that adds this stage |
//! | `scrub` | how far the scrub of the volume is |
//! | `ready` | the mark of a node that has the manifests which it should have |
//!
//! Objects whose names begin with `.paritas/` are the volume's own (`upload.rs`).
//!
//! `<id>` is the object's id, 32 hexadecimal digits, and `<2 hex>` its first two. The generation
//! has 16 hexadecimal digits, so that listings sort by it; the length in bytes is hexadecimal.
//!
//! In paths, names are escaped, or shortened if they are long (`names/object.rs`). All nodes use
//! the same form. A file in these folders belongs to somebody else unless its path has exactly one
//! of the forms in the table.

mod object;

use paritas_shards::ObjectId;
use paritas_store::error::{Error, ErrorKind, Result};

pub use object::{ObjectName, PathName};
pub(crate) use object::{Texts, may_begin_with};
use object::{component_in_path, path_above};

use crate::protocol::{Listed, Version, VersionKind};

/// The file that says which node of which volume this is. `init` writes it to empty nodes. When a
/// lost node is replaced, it is written last, after the manifests. A node without it does not count
/// in surveys: because it is empty, its answer would count as proof that nothing exists.
pub const READY: &str = "ready";
/// The file that states how far the scrub of the volume is.
pub const SCRUB: &str = "scrub";
/// Folder of all manifests. Ends in `/`.
pub const MANIFESTS: &str = "manifests/";
/// Folder of all shards. Ends in `/`.
pub const OBJECTS: &str = "objects/";
/// Folder of the shards of objects whose names older programs cannot read. Ends in `/`. In the
/// other folder, these programs would treat them as shards of objects without a manifest, and
/// remove them.
pub const OBJECTS_2: &str = "objects2/";
/// Folder of heartbeats. Ends in `/`.
pub const RUNNING: &str = "running/";
/// Folder of hints, one for each object with misplaced files. Ends in `/`.
pub const OWED: &str = "owed/";
/// The folder of hints about objects that a repair could not make whole.
pub const LOST: &str = "lost/";
/// Folder of hints, one for each object that waits for its next stage. Ends in `/`.
pub const BACKLOG: &str = "backlog/";
/// The end of the names of claims. They are in the same folder as these hints.
const CLAIM: &str = ".claim";
/// Begins the names of the volume's own objects: pieces of objects, and records of uploads.
pub(crate) const OWN: &str = ".paritas/";
/// Begins the names of the pieces of objects.
pub(crate) const PIECES: &str = ".paritas/pieces/";
/// Begins the names of the records of uploads.
pub(crate) const UPLOADS: &str = ".paritas/uploads/";
/// Begins the names of the flags of those who complete uploads.
pub(crate) const CLOSING: &str = ".paritas/closing/";

/// Whether an object is the volume's own. Listings show it only to those who ask for such names.
pub(crate) fn is_own(name: &str) -> bool {
    name.starts_with(OWN)
}

/// Refuses the names of the volume's own objects.
pub(crate) fn expect_free(name: &ObjectName) -> Result<()> {
    let message = || format!("{name}: names that begin with .paritas/ are the volume's own");
    if is_own(name.as_str()) { Err(Error::parameters(message())) } else { Ok(()) }
}

/// Returns the name of a piece that an upload has stored.
pub(crate) fn piece(upload: &str, number: u32) -> Result<ObjectName> {
    ObjectName::new(format!("{PIECES}{upload}/{number:05}"))
}

/// Reads the name of a piece: its upload and its number.
pub(crate) fn parse_piece(name: &ObjectName) -> Option<(&str, u32)> {
    let (upload, number) = name.as_str().strip_prefix(PIECES)?.split_once('/')?;
    let number = number.parse().ok()?;
    piece(upload, number).is_ok_and(|same| same == *name).then_some((upload, number))
}

impl ObjectName {
    /// Returns the folder of the name's manifests. It ends in `/`.
    pub(crate) fn folder(&self) -> String {
        manifests_at(&self.in_path())
    }

    /// Returns the folder of the parts of an object of this name. It ends in `/`.
    pub(crate) fn object_folder(&self, object: ObjectId) -> String {
        let objects = if self.is_readable_by_all() { OBJECTS } else { OBJECTS_2 };
        object_folder(objects, object)
    }

    /// Returns the path of a part's file, given what [`paritas_shards`] adds to the base name.
    pub(crate) fn part(&self, object: ObjectId, suffix: &str) -> String {
        format!("{}{}{suffix}", self.object_folder(object), component_in_path(self.base()))
    }

    /// Returns the path of a version's manifest.
    pub(crate) fn manifest(&self, listed: &Listed) -> String {
        manifest_at(&self.in_path(), listed)
    }

    /// Parses the path of one of the name's manifests. Returns `None` if it is the path of another
    /// file.
    pub(crate) fn version(&self, path: &str) -> Option<Listed> {
        parse_version_file(path.strip_prefix(&self.folder())?)
    }
}

/// Returns the folder that contains all manifests of names that begin with `prefix`. It ends in
/// `/`.
pub(crate) fn folder_above(prefix: &str) -> String {
    format!("{MANIFESTS}{}", path_above(prefix))
}

/// Returns the folder of the manifests of a name, given the form of the name in paths. It ends in
/// `/`.
pub(crate) fn manifests_at(name: &str) -> String {
    format!("{MANIFESTS}{name}@/")
}

/// Returns the path of a manifest of a name, given the form of the name in paths.
pub(crate) fn manifest_at(name: &str, listed: &Listed) -> String {
    manifests_at(name) + &version_file(listed)
}

fn version_file(listed: &Listed) -> String {
    let Listed { version: Version { generation, object }, kind, length } = listed;
    format!("{generation:016x}-{object}-{length:x}.{kind}")
}

/// Reads hexadecimal digits, without a sign.
fn hex(digits: &str) -> Option<u64> {
    let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| all)
}

/// Upper limit of generations: every version has a smaller one. Generations are seconds since 1970
/// or a little more, so a file that states a greater one was not written by a put. Such a version
/// would leave no room for greater generations.
const GENERATION_END: u64 = 1 << 63;

/// Refuses a version that no reader would see, because a file on a node states the greatest
/// possible generation.
pub(crate) fn expect_seen(name: &ObjectName, version: Version) -> Result<()> {
    if version.generation < GENERATION_END {
        return Ok(());
    }
    let last = GENERATION_END - 1;
    let message = format!(
        "{name}: a file in {} states generation {last:x}, after which there is none; no put wrote \
         it, so delete it",
        name.folder()
    );
    Err(Error::new(ErrorKind::Io, message))
}

/// Parses the path of a manifest. Returns `None` if it is the path of another file.
pub fn parse_manifest(path: &str) -> Option<(PathName, Listed)> {
    let (name, file) = path.strip_prefix(MANIFESTS)?.rsplit_once("@/")?;
    Some((PathName::parse(name)?, parse_version_file(file)?))
}

fn parse_version_file(file: &str) -> Option<Listed> {
    let (numbers, kind) = file.split_once('.')?;
    let [generation, object, length] = numbers.split('-').collect::<Vec<_>>().try_into().ok()?;
    let kind = [VersionKind::Put, VersionKind::Removed]
        .into_iter()
        .find(|known| known.as_str() == kind)?;
    let version = Version { generation: hex(generation)?, object: object.parse().ok()? };
    let listed = Listed { version, kind, length: hex(length)? };
    let is_possible = version.generation < GENERATION_END;
    (is_possible && version_file(&listed) == file).then_some(listed)
}

/// Returns the folder of an object's parts below [`OBJECTS`] or [`OBJECTS_2`]. It ends in `/`.
pub fn object_folder(objects: &str, object: ObjectId) -> String {
    let id = object.to_string();
    format!("{objects}{}/{id}/", &id[..2])
}

/// Returns the path of an object's heartbeat or hint in a folder such as [`RUNNING`].
pub fn mark(folder: &str, object: ObjectId) -> String {
    format!("{folder}{object}")
}

/// Returns the path of the claim of the process that adds the next stage to an object.
pub fn claim(object: ObjectId) -> String {
    format!("{}{CLAIM}", mark(BACKLOG, object))
}

/// Whether a path is that of a claim.
pub fn is_claim(path: &str) -> bool {
    path.starts_with(BACKLOG) && path.ends_with(CLAIM)
}

/// Parses the path of an object's heartbeat or hint in a folder such as [`RUNNING`]. Returns `None`
/// if it is another path.
pub fn parse_mark(folder: &str, path: &str) -> Option<ObjectId> {
    let object = path.strip_prefix(folder)?.parse().ok()?;
    (mark(folder, object) == path).then_some(object)
}

/// The facts that the path of a part states. Only the file's header is certain.
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

/// Parses the path of a part of an object. Returns `None` if the file is not a part, or is
/// temporary.
pub fn parse_part(path: &str) -> Option<PartPath> {
    let (folder, file) = path.rsplit_once('/')?;
    let object: ObjectId = folder.rsplit_once('/')?.1.parse().ok()?;
    let is_folder = |objects| object_folder(objects, object).strip_suffix('/') == Some(folder);
    if ![OBJECTS, OBJECTS_2].into_iter().any(is_folder) || file.starts_with('.') {
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

    #[test]
    fn a_manifest_of_an_impossible_generation_is_none() {
        let path = |generation: u64| {
            let version = Version { generation, object: ObjectId::new([1; 16]) };
            ObjectName::new("a").unwrap().manifest(&Listed {
                version,
                kind: VersionKind::Put,
                length: 1,
            })
        };
        assert!(parse_manifest(&path(GENERATION_END - 1)).is_some());
        assert!(parse_manifest(&path(GENERATION_END)).is_none());
        assert!(parse_manifest(&path(u64::MAX)).is_none());
    }

    #[test]
    fn only_exact_paths_are_manifests() {
        let object = "000102030405060708090a0b0c0d0e0f";
        let path = format!("manifests/a/b@/000000000000002a-{object}-1f.put");
        let (name, listed) = parse_manifest(&path).unwrap();
        assert_eq!(name, PathName::Whole(ObjectName::new("a/b").unwrap()));
        assert_eq!((listed.length, listed.kind), (31, VersionKind::Put));
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
        let folder = ObjectName::new("a.tar").unwrap().object_folder(object);
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
        for text in ["new\nline", &"x".repeat(201), &"é/".repeat(150)] {
            let part = ObjectName::new(format!("{text}x")).unwrap().part(object, ".3of6.paritas");
            assert!(part.starts_with(OBJECTS_2), "{part}");
            assert_eq!(parse_part(&part), found(3, 6, 1));
        }
    }

    #[test]
    fn shard_files_of_the_command_are_parts() {
        let folder = tempfile::tempdir().unwrap();
        let code = paritas::Code::new(&"4+2".parse().unwrap()).unwrap();
        let job = paritas_shards::EncodeJob::new(code, "letter", vec![folder.path().to_path_buf()]);
        let report = paritas_shards::encode(&job, &b"hello"[..], &|_| {}).unwrap();
        let names = report.shards.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
        for (shard, name) in names.enumerate() {
            let part =
                parse_part(&format!("{}{name}", object_folder(OBJECTS, report.object))).unwrap();
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
        assert!(is_claim(&claim(object)) && !is_claim(&mark(BACKLOG, object)));
    }

    proptest! {
        #[test]
        fn manifests_survive_their_paths(
            text in "[a-zé@./ ]{1,12}|[é/]{1,200}", generation in 0..GENERATION_END, id: [u8; 16],
            length: u64, removed: bool,
        ) {
            let Ok(name) = ObjectName::new(text) else { return Ok(()) };
            let version = Version { generation, object: ObjectId::new(id) };
            let kind = if removed { VersionKind::Removed } else { VersionKind::Put };
            let listed = Listed { version, kind, length };
            let path = name.manifest(&listed);
            let found = PathName::parse(&name.in_path()).unwrap();
            prop_assert_eq!(parse_manifest(&path), Some((found, listed)));
            prop_assert_eq!(name.version(&path), Some(listed));
        }

        #[test]
        fn any_text_is_read_without_panic(text in "(objects/|manifests/|\\PC|[@./%-]){0,30}") {
            let _ = (parse_manifest(&text), parse_part(&text), PathName::parse(&text));
        }
    }
}
