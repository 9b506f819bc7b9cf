//! Manifests: the small files that say what a name means.
//!
//! A manifest is one line of JSON, and a line with the BLAKE3 of the first (of its bytes without
//! the line feed), so that an operator can read it and a program sees damage:
//!
//! ```text
//! {"format":1,"volume":"…","name":"a/b","generation":1,"object":"…","kind":"put",…}
//! 8d0b…
//! ```
//!
//! It is never changed. What its path says it says again, and a manifest that contradicts its path
//! is refused. Where the shards are is only a hint in it: shards describe themselves and are found
//! by listing their folder, so repair need not write manifests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Timestamp;
use serde::{Deserialize, Serialize};

use crate::names::ObjectName;
use crate::node::MOST_WHOLE;
use crate::protocol::{Listed, Version, VersionKind};

/// The number of the format.
const FORMAT: u32 = 1;
/// The most bytes of a manifest's file, which is read whole.
pub const MOST_BYTES: usize = MOST_WHOLE as usize;
/// The most bytes of an object that stands in its manifest.
pub const MOST_INLINE: usize = 1 << 20;
/// The most shards whose nodes a manifest names.
const MOST_PLACES: usize = 4096;
/// The most bytes of a node's name, a volume's id, or a code's spec.
const MOST_TEXT: usize = 255;
/// The greatest permissions of a file.
const MOST_MODE: u32 = 0o7777;
const NANOSECONDS: u32 = 1_000_000_000;

/// What a name means in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The id of the volume.
    pub volume: String,
    /// The name.
    pub name: ObjectName,
    /// What the manifest's path says as well: version, kind and length.
    pub listed: Listed,
    /// The object; `None` in the mark of a removed name.
    pub content: Option<Content>,
    /// When the manifest was made, in seconds since the beginning of 1970.
    pub created: u64,
}

/// What a manifest says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The BLAKE3 of the object's bytes.
    pub digest: Digest,
    /// Where the object's bytes are.
    pub body: Body,
    /// The permissions of the source, if known.
    pub mode: Option<u32>,
    /// When the source last changed, if known.
    pub modified: Option<Timestamp>,
}

/// Where an object's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// In shards.
    Shards {
        /// The spec of the code.
        code: String,
        /// The front header of part 0, so that a reader need not ask a shard for it.
        header: Vec<u8>,
        /// The names of the nodes that the parts were written to, by part: a hint.
        placement: Vec<String>,
    },
    /// In the manifest itself.
    Inline(Vec<u8>),
}

/// The fields as they stand in the file, in their order.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    format: u32,
    volume: String,
    name: String,
    generation: u64,
    object: String,
    kind: String,
    length: u64,
    created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    /// Seconds and nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<(i64, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placement: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

/// The field that tells how to read the others.
#[derive(Deserialize)]
struct FormatField {
    format: u32,
}

impl Manifest {
    /// Returns the path of the manifest on a node.
    pub fn path(&self) -> String {
        self.name.manifest(&self.listed)
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// If the manifest contradicts itself or is too large, or if its path would not be read as a
    /// manifest's ([`ErrorKind::Parameters`]).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let unusable = |flaw: String| Error::parameters(format!("{}: {flaw}", self.name));
        // No listing would show it, so nobody would find the version.
        let path = self.path();
        if self.name.version(&path) != Some(self.listed) {
            return Err(unusable(format!("no manifest may have the path {path}")));
        }
        let line = serde_json::to_string(&self.fields()).map_err(|e| unusable(e.to_string()))?;
        let bytes = format!("{line}\n{}\n", blake3::hash(line.as_bytes())).into_bytes();
        match read(&bytes) {
            Ok(read) if read == *self => Ok(bytes),
            Ok(_) => Err(unusable("the manifest would read as another one".to_owned())),
            Err(flaw) => Err(unusable(flaw)),
        }
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If the file is damaged, too large, of another format, or contradicts itself or its path
    /// ([`ErrorKind::Io`]). The message names the flaw.
    pub fn from_bytes(path: &str, bytes: &[u8]) -> Result<Self> {
        let refuse = |flaw: String| Error::new(ErrorKind::Io, format!("manifest {path}: {flaw}"));
        let manifest = read(bytes).map_err(refuse)?;
        match manifest.path() {
            stated if stated == path => Ok(manifest),
            stated => Err(refuse(format!("the content is that of {stated}"))),
        }
    }

    fn fields(&self) -> Fields {
        let Listed { version, kind, length } = self.listed;
        let content = self.content.as_ref();
        let shards = content.and_then(|content| match &content.body {
            Body::Shards { code, header, placement } => {
                Some((code.clone(), (STANDARD.encode(header), placement.clone())))
            }
            Body::Inline(_) => None,
        });
        let inline = content.and_then(|content| match &content.body {
            Body::Shards { .. } => None,
            Body::Inline(bytes) => Some(STANDARD.encode(bytes)),
        });
        let (code, others) = shards.unzip();
        let (header, placement) = others.unzip();
        Fields {
            format: FORMAT,
            volume: self.volume.clone(),
            name: self.name.to_string(),
            generation: version.generation,
            object: version.object.to_string(),
            kind: kind.to_string(),
            length,
            created: self.created,
            digest: content.map(|content| content.digest.to_string()),
            mode: content.and_then(|content| content.mode),
            modified: content
                .and_then(|content| content.modified)
                .map(|time| (time.seconds, time.nanoseconds)),
            code,
            header,
            placement,
            content: inline,
        }
    }
}

/// A reason why bytes are no manifest.
type ManifestFlaw = String;

fn read(bytes: &[u8]) -> Result<Manifest, ManifestFlaw> {
    let line = checked_line(bytes)?;
    let FormatField { format } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if format != FORMAT {
        return Err(format!("its format is {format}; this program reads {FORMAT}"));
    }
    manifest_of(serde_json::from_str(line).map_err(|error| error.to_string())?)
}

/// Returns the first line, if the second one states its digest.
fn checked_line(bytes: &[u8]) -> Result<&str, ManifestFlaw> {
    if bytes.len() > MOST_BYTES {
        return Err(format!("it has {} bytes; at most {MOST_BYTES} are read", bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let lines = text.strip_suffix('\n').and_then(|text| text.split_once('\n'));
    let (line, stated) = lines.ok_or("it does not consist of two lines")?;
    match blake3::hash(line.as_bytes()).to_hex() {
        digest if digest.as_str() == stated => Ok(line),
        _ => Err("its digest does not match: it is damaged".to_owned()),
    }
}

fn manifest_of(fields: Fields) -> Result<Manifest, ManifestFlaw> {
    let name = ObjectName::new(fields.name.as_str()).map_err(|error| error.to_string())?;
    let object = fields.object.parse::<ObjectId>().map_err(|error| error.to_string())?;
    let version = Version { generation: fields.generation, object };
    let kind = [VersionKind::Put, VersionKind::Removed]
        .into_iter()
        .find(|kind| kind.as_str() == fields.kind);
    let kind = kind.ok_or_else(|| format!("its kind {:?} is unknown", fields.kind))?;
    check_text("volume", &fields.volume)?;
    let content = match kind {
        VersionKind::Put => Some(content_of(&fields)?),
        VersionKind::Removed => expect_no_content(&fields)?,
    };
    let listed = Listed { version, kind, length: fields.length };
    Ok(Manifest { volume: fields.volume, name, listed, content, created: fields.created })
}

fn expect_no_content(fields: &Fields) -> Result<Option<Content>, ManifestFlaw> {
    let Fields { digest, mode, modified, code, header, placement, content, .. } = fields;
    let is_empty = digest.is_none() && mode.is_none() && modified.is_none() && code.is_none();
    match is_empty
        && header.is_none()
        && placement.is_none()
        && content.is_none()
        && fields.length == 0
    {
        true => Ok(None),
        false => Err("it removes the name, but describes an object".to_owned()),
    }
}

fn content_of(fields: &Fields) -> Result<Content, ManifestFlaw> {
    let digest = fields.digest.as_deref().ok_or("it has no digest")?;
    let digest = blake3::Hash::from_hex(digest).map_err(|error| format!("digest: {error}"))?;
    let digest = Digest::new(digest.into());
    if let Some(mode) = fields.mode.filter(|&mode| mode > MOST_MODE) {
        return Err(format!("its mode is {mode:o}; the greatest is {MOST_MODE:o}"));
    }
    let modified = fields.modified;
    if let Some((_, nanoseconds)) = modified.filter(|&(_, nanoseconds)| nanoseconds >= NANOSECONDS)
    {
        return Err(format!("its modification time has {nanoseconds} nanoseconds"));
    }
    let modified = modified.map(|(seconds, nanoseconds)| Timestamp { seconds, nanoseconds });
    let body = match (&fields.content, &fields.code, &fields.header, &fields.placement) {
        (Some(text), None, None, None) => inline_of(text, fields.length, digest)?,
        (None, Some(code), Some(header), Some(placement)) => shards_of(code, header, placement)?,
        _ => return Err("it must have either content, or code, header and placement".to_owned()),
    };
    Ok(Content { digest, body, mode: fields.mode, modified })
}

fn inline_of(text: &str, length: u64, digest: Digest) -> Result<Body, ManifestFlaw> {
    let bytes = STANDARD.decode(text).map_err(|error| format!("content: {error}"))?;
    if bytes.len() as u64 != length {
        return Err(format!("its content has {} bytes, its length is {length}", bytes.len()));
    }
    if bytes.len() > MOST_INLINE {
        return Err(format!("its content has {} bytes; the most is {MOST_INLINE}", bytes.len()));
    }
    match blake3::hash(&bytes).as_bytes() == digest.as_bytes() {
        true => Ok(Body::Inline(bytes)),
        false => Err("its content does not have the digest that it states".to_owned()),
    }
}

fn shards_of(code: &str, header: &str, placement: &[String]) -> Result<Body, ManifestFlaw> {
    check_text("code", code)?;
    let header = STANDARD.decode(header).map_err(|error| format!("header: {error}"))?;
    let count = placement.len();
    if count > MOST_PLACES {
        return Err(format!("its placement names {count} nodes; the most is {MOST_PLACES}"));
    }
    placement.iter().try_for_each(|node| check_text("placement", node))?;
    Ok(Body::Shards { code: code.to_owned(), header, placement: placement.to_vec() })
}

fn check_text(field: &str, text: &str) -> Result<(), ManifestFlaw> {
    match text.len() {
        1..=MOST_TEXT if !text.contains(char::is_control) => Ok(()),
        1..=MOST_TEXT => Err(format!("{field} has a control character")),
        bytes => Err(format!("{field} has {bytes} bytes; 1 to {MOST_TEXT} are allowed")),
    }
}

#[cfg(test)]
mod tests;
