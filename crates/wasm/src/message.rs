//! Messages: a JSON object, and the bytes of shards.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | number of bytes of the JSON text, little-endian |
//! | that many | the JSON text; its member `shards` has the length of each shard, null for one that is absent |
//! | the rest | the bytes of the shards, one after the other |

use serde_json::{Value, json};

use crate::refusal::{Refusal, Result};

/// A received message, or one to send.
pub struct Message<'a> {
    /// The request or the answer.
    pub json: Value,
    /// The shards of a request; `None` for an absent one.
    pub shards: Vec<Option<&'a [u8]>>,
    /// The shards of an answer; `None` for an absent one.
    pub made: Vec<Option<Vec<u8>>>,
}

impl Message<'_> {
    /// Makes an answer without shards.
    pub fn of(json: Value) -> Self {
        Self { json, shards: Vec::new(), made: Vec::new() }
    }

    /// Makes an answer of shards.
    pub fn of_shards(made: Vec<Option<Vec<u8>>>) -> Self {
        Self { json: json!({}), shards: Vec::new(), made }
    }

    /// Returns the message as bytes.
    pub fn write(mut self) -> Vec<u8> {
        let lengths: Vec<Option<usize>> =
            self.made.iter().map(|shard| shard.as_ref().map(Vec::len)).collect();
        self.json["shards"] = json!(lengths);
        let text = self.json.to_string();
        let mut bytes =
            Vec::with_capacity(4 + text.len() + lengths.iter().flatten().sum::<usize>());
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        self.made.iter().flatten().for_each(|shard| bytes.extend_from_slice(shard));
        bytes
    }
}

impl<'a> Message<'a> {
    /// Reads a message.
    ///
    /// # Errors
    /// If it is cut off, or if its text is not JSON.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut_off)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, mut rest) = rest.split_at_checked(length).ok_or_else(cut_off)?;
        let json: Value = serde_json::from_slice(text)
            .map_err(|error| Refusal::request(format!("this is no JSON: {error}")))?;
        let mut shards = Vec::new();
        for length in json["shards"].as_array().into_iter().flatten() {
            let Some(length) = length.as_u64() else {
                shards.push(None);
                continue;
            };
            let length = usize::try_from(length).map_err(|_| cut_off())?;
            let (shard, after) = rest.split_at_checked(length).ok_or_else(cut_off)?;
            shards.push(Some(shard));
            rest = after;
        }
        Ok(Self { json, shards, made: Vec::new() })
    }

    /// Returns all shards of a request, which must all be present.
    ///
    /// # Errors
    /// If a shard is absent.
    pub fn whole_shards(&self) -> Result<Vec<&'a [u8]>> {
        let present = |(number, shard): (usize, &Option<&'a [u8]>)| {
            shard.ok_or_else(|| Refusal::request(format!("shard {number} is missing")))
        };
        self.shards.iter().enumerate().map(present).collect()
    }
}

fn cut_off() -> Refusal {
    Refusal::request("the message ends before its last shard does")
}
