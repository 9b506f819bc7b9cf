//! Contents of objects by number, and what clients know of each other's uploads.

use std::collections::BTreeMap;

use crate::manifest::Piece;

/// What clients have told each other about uploads.
#[derive(Default)]
pub struct SharedUploads {
    pub uploads: Vec<SharedUpload>,
    /// The contents of objects that somebody began to complete, by what they are called.
    composed: BTreeMap<u64, Vec<u8>>,
}

/// An upload that clients know.
pub struct SharedUpload {
    pub name: usize,
    pub id: String,
    /// The last acknowledged piece of each part, and its bytes.
    pub pieces: BTreeMap<u32, (Piece, Vec<u8>)>,
}

impl SharedUploads {
    /// Returns what the history calls a content: its number, or one that follows from the bytes if
    /// it was put together from pieces. Returns `None` if nobody has written it.
    pub fn number_of(&self, bytes: &[u8]) -> Option<u64> {
        let first = bytes.first_chunk().map(|first| u64::from_le_bytes(*first))?;
        if content(first, bytes.len() as u64) == bytes {
            return Some(first);
        }
        let number = digest(bytes);
        self.composed.get(&number).is_some_and(|composed| composed == bytes).then_some(number)
    }

    /// Writes down the content of an object that somebody begins to complete. Returns its number.
    pub fn compose(&mut self, bytes: Vec<u8>) -> u64 {
        self.composed.insert(digest(&bytes), bytes.clone());
        self.number_of(&bytes).expect("it was just written down")
    }

    /// Finds an upload by its id.
    pub fn of(&mut self, id: &str) -> Option<&mut SharedUpload> {
        self.uploads.iter_mut().find(|upload| upload.id == id)
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let digest = blake3::hash(bytes);
    u64::from_le_bytes(*digest.as_bytes().first_chunk().expect("32 bytes"))
}

/// Returns the bytes of the content of a number: the number, and what follows from it.
pub fn content(number: u64, length: u64) -> Vec<u8> {
    let first = number.to_le_bytes().into_iter();
    let others = (0..).map(|i: u64| (i.wrapping_mul(number | 1) >> 7) as u8);
    first.chain(others).take(length as usize).collect()
}
