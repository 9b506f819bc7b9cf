//! Manifests: the small files that state the content of a name.
//!
//! A manifest is one line of JSON, and a line with the BLAKE3 of the first (of its bytes without
//! the line feed), so that an operator can read it and a program sees damage:
//!
//! ```text
//! {"format":1,"volume":"…","name":"a/b","generation":1,"object":"…","kind":"put",…}
//! 8d0b…
//! ```
//!
//! A manifest is never changed. It repeats what its path states, and a manifest that contradicts
//! its path is refused, as is the manifest of another volume. The places of the shards are only
//! hints: shards describe themselves and are found by listing their folder, so repair does not have
//! to rewrite manifests.
//!
//! A manifest has format 1 if format 1 can express it. Format 2 adds notes, which programs have
//! made about the object, and objects in pieces ([`Body::Pieces`]).

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use paritas_shards::{Digest, ObjectId};
use paritas_store::error::{Error, ErrorKind, Result};
use paritas_store::place::attributes::Timestamp;
use serde::{Deserialize, Serialize};

use crate::names::ObjectName;
use crate::node::MOST_WHOLE;
use crate::protocol::{Listed, Version, VersionKind};

/// The formats that can be read. The first can express everything but notes and pieces.
const FORMATS: [u32; 2] = [1, 2];
/// Largest size of a manifest's file, in bytes. It is read whole.
pub const MOST_BYTES: usize = MOST_WHOLE as usize;
/// Largest size of an object that is stored in its manifest, in bytes.
pub const MOST_INLINE: usize = 1 << 20;
/// Largest number of shards for which a manifest names the nodes.
const MOST_PLACES: usize = 4096;
/// Largest number of bytes of a node's name, a volume's id, or a code's spec.
const MOST_TEXT: usize = 255;
/// Largest number of pieces of an object.
pub(crate) const MOST_PIECES: usize = 10_000;
/// Largest number of bytes of all notes about an object, including their names.
const MOST_NOTES: usize = 32 << 10;
/// The context that separates digests of objects in pieces from all other uses of BLAKE3.
const PIECES_CONTEXT: &str = "Paritas: an object in pieces";
/// The greatest permissions of a file.
const MOST_MODE: u32 = 0o7777;
const NANOSECONDS: u32 = 1_000_000_000;

/// The content of one version of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The id of the volume.
    pub volume: String,
    /// The name.
    pub name: ObjectName,
    /// Version, kind and length, which the manifest's path states, too.
    pub listed: Listed,
    /// The object; `None` in the mark of a removed name.
    pub content: Option<Content>,
    /// When the manifest was made, in seconds since the beginning of 1970.
    pub created: u64,
}

/// Notes that programs have attached to an object, such as its type. The volume keeps them, and
/// does not interpret them.
pub type Notes = BTreeMap<String, String>;

/// The description of an object in its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The BLAKE3 of the object's bytes; of an object in pieces, [`digest_of_pieces`].
    pub digest: Digest,
    /// Where the object's bytes are.
    pub body: Body,
    /// The permissions of the source, if known.
    pub mode: Option<u32>,
    /// When the source last changed, if known.
    pub modified: Option<Timestamp>,
    /// Notes that programs have attached to the object.
    pub notes: Notes,
}

/// Where an object's bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// In shards.
    Shards {
        /// The spec of the code.
        code: String,
        /// The front header of part 0, so that a reader does not have to read it from a shard.
        header: Vec<u8>,
        /// The names of the nodes that the parts were written to, by part. They are only a hint.
        placement: Vec<String>,
    },
    /// In the manifest itself.
    Inline(Vec<u8>),
    /// In other objects of the volume, whose bytes follow one another.
    Pieces {
        /// The id of the upload that stored them. Their names follow from it ([`crate::names`]).
        upload: String,
        /// The pieces, in order.
        pieces: Vec<Piece>,
    },
}

/// A piece of an object: another object, which is never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The number of the piece in its upload. Numbers ascend, and some may be left out.
    pub number: u32,
    /// Its length in bytes.
    pub length: u64,
    /// The BLAKE3 of its bytes.
    pub digest: Digest,
}

/// Returns the digest of an object in pieces: the BLAKE3, in a context of its own, of the length
/// (eight bytes, little-endian) and the digest of each piece.
pub fn digest_of_pieces(pieces: &[Piece]) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key(PIECES_CONTEXT);
    for piece in pieces {
        hasher.update(&piece.length.to_le_bytes()).update(piece.digest.as_bytes());
    }
    Digest::new(hasher.finalize().into())
}

/// The fields as they stand in the file, in their order.
#[derive(Default, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upload: Option<String>,
    /// Number, length and digest of each piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pieces: Option<Vec<(u32, u64, String)>>,
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    notes: Notes,
}

/// The field that says how to read the other fields.
#[derive(Deserialize)]
struct FormatField {
    format: u32,
}

impl Manifest {
    /// Returns the upload that has stored the object's pieces, if the object is in pieces.
    pub(crate) fn upload(&self) -> Option<String> {
        match &self.content.as_ref()?.body {
            Body::Pieces { upload, .. } => Some(upload.clone()),
            _ => None,
        }
    }

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
        // A listing would not show such a path, so no reader would find the version.
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
    /// If the file is damaged, too large, of another format, or contradicts itself
    /// ([`ErrorKind::Io`]), or if it is whole, but belongs at another path
    /// ([`ErrorKind::NotRecognised`]). The message names the flaw.
    pub fn from_bytes(path: &str, bytes: &[u8]) -> Result<Self> {
        let refuse = |kind, flaw: String| Error::new(kind, format!("manifest {path}: {flaw}"));
        let manifest = read(bytes).map_err(|flaw| refuse(ErrorKind::Io, flaw))?;
        match manifest.path() {
            stated if stated == path => Ok(manifest),
            stated => {
                let flaw = format!("the content is that of {stated}");
                Err(refuse(ErrorKind::NotRecognised, flaw))
            }
        }
    }

    /// Checks that the manifest is one of this volume.
    ///
    /// # Errors
    /// If it is one of another volume ([`ErrorKind::NotRecognised`]).
    pub(crate) fn expect_volume(self, id: &str) -> Result<Self> {
        if self.volume == id {
            return Ok(self);
        }
        let flaw = format!("manifest {}: it belongs to another volume", self.path());
        Err(Error::new(ErrorKind::NotRecognised, format!("{flaw} ({})", self.volume)))
    }

    fn fields(&self) -> Fields {
        let Listed { version, kind, length } = self.listed;
        let mut fields = Fields {
            format: FORMATS[0],
            volume: self.volume.clone(),
            name: self.name.to_string(),
            generation: version.generation,
            object: version.object.to_string(),
            kind: kind.to_string(),
            length,
            created: self.created,
            ..Fields::default()
        };
        if let Some(content) = &self.content {
            fields.describe(content);
        }
        fields
    }
}

impl Fields {
    /// Fills in the fields that describe the object.
    fn describe(&mut self, content: &Content) {
        self.digest = Some(content.digest.to_string());
        self.mode = content.mode;
        self.modified = content.modified.map(|time| (time.seconds, time.nanoseconds));
        self.notes = content.notes.clone();
        match &content.body {
            Body::Shards { code, header, placement } => {
                self.code = Some(code.clone());
                self.header = Some(STANDARD.encode(header));
                self.placement = Some(placement.clone());
            }
            Body::Inline(bytes) => self.content = Some(STANDARD.encode(bytes)),
            Body::Pieces { upload, pieces } => {
                let piece = |piece: &Piece| (piece.number, piece.length, piece.digest.to_string());
                self.upload = Some(upload.clone());
                self.pieces = Some(pieces.iter().map(piece).collect());
            }
        }
        if self.pieces.is_some() || !self.notes.is_empty() {
            self.format = FORMATS[1];
        }
    }
}

/// The reason why bytes are not a manifest.
type ManifestFlaw = String;

fn read(bytes: &[u8]) -> Result<Manifest, ManifestFlaw> {
    let line = checked_line(bytes)?;
    let FormatField { format } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let [first, last] = FORMATS;
    if !FORMATS.contains(&format) {
        return Err(format!("its format is {format}; this program reads {first} and {last}"));
    }
    let fields: Fields = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if format == first && (fields.pieces.is_some() || !fields.notes.is_empty()) {
        return Err(format!("its format is {first}, which has neither pieces nor notes"));
    }
    manifest_of(fields)
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
    let Fields { digest, mode, modified, code, header, placement, content, upload, .. } = fields;
    let texts = [digest, code, header, content, upload];
    let is_empty = texts.iter().all(|text| text.is_none())
        && (mode.is_none() && modified.is_none() && placement.is_none())
        && (fields.pieces.is_none() && fields.notes.is_empty() && fields.length == 0);
    match is_empty {
        true => Ok(None),
        false => Err("it removes the name, but describes an object".to_owned()),
    }
}

fn content_of(fields: &Fields) -> Result<Content, ManifestFlaw> {
    let digest = digest_from(fields.digest.as_deref().ok_or("it has no digest")?)?;
    if let Some(mode) = fields.mode.filter(|&mode| mode > MOST_MODE) {
        return Err(format!("its mode is {mode:o}; the greatest is {MOST_MODE:o}"));
    }
    let modified = fields.modified;
    if let Some((_, nanoseconds)) = modified.filter(|&(_, nanoseconds)| nanoseconds >= NANOSECONDS)
    {
        return Err(format!("its modification time has {nanoseconds} nanoseconds"));
    }
    let modified = modified.map(|(seconds, nanoseconds)| Timestamp { seconds, nanoseconds });
    let notes = check_notes(&fields.notes)?;
    Ok(Content { digest, body: body_of(fields, digest)?, mode: fields.mode, modified, notes })
}

fn body_of(fields: &Fields, digest: Digest) -> Result<Body, ManifestFlaw> {
    let Fields { content, code, header, placement, upload, pieces, .. } = fields;
    match (content, (code, header, placement), (upload, pieces)) {
        (Some(text), (None, None, None), (None, None)) => inline_of(text, fields.length, digest),
        (None, (Some(code), Some(header), Some(placement)), (None, None)) => {
            shards_of(code, header, placement)
        }
        (None, (None, None, None), (Some(upload), Some(pieces))) => {
            pieces_of(upload, pieces, fields.length, digest)
        }
        _ => Err("it must have either content, or code, header and placement, or upload and \
                  pieces"
            .to_owned()),
    }
}

/// Returns the notes, unless they are too long.
pub(crate) fn check_notes(notes: &Notes) -> Result<Notes, ManifestFlaw> {
    let bytes: usize = notes.iter().map(|(name, text)| name.len() + text.len()).sum();
    match bytes <= MOST_NOTES {
        true => Ok(notes.clone()),
        false => Err(format!("its notes have {bytes} bytes; the most is {MOST_NOTES}")),
    }
}

fn digest_from(text: &str) -> Result<Digest, ManifestFlaw> {
    let digest = blake3::Hash::from_hex(text).map_err(|error| format!("digest: {error}"))?;
    Ok(Digest::new(digest.into()))
}

fn pieces_of(
    upload: &str,
    stated: &[(u32, u64, String)],
    length: u64,
    digest: Digest,
) -> Result<Body, ManifestFlaw> {
    check_text("upload", upload)?;
    if upload.contains('/') || matches!(upload, "." | "..") {
        return Err(format!("upload is {upload:?}, which is no component of a name"));
    }
    let piece = |&(number, length, ref digest): &(u32, u64, String)| {
        Ok(Piece { number, length, digest: digest_from(digest)? })
    };
    let pieces = stated.iter().map(piece).collect::<Result<Vec<_>, ManifestFlaw>>()?;
    let total = pieces.iter().try_fold(0_u64, |total, piece| total.checked_add(piece.length));
    let count = pieces.len();
    let flaw = if !(1..=MOST_PIECES).contains(&count) {
        format!("it has {count} pieces; 1 to {MOST_PIECES} are allowed")
    } else if !pieces.is_sorted_by(|a, b| a.number < b.number) {
        "the numbers of its pieces do not ascend".to_owned()
    } else if total != Some(length) {
        format!("its pieces do not have {length} bytes, which is its length")
    } else if digest_of_pieces(&pieces) != digest {
        "its pieces do not have the digest that it states".to_owned()
    } else {
        return Ok(Body::Pieces { upload: upload.to_owned(), pieces });
    };
    Err(flaw)
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
