//! Counting the values of encoded columns before they are decoded. A few compressed bytes can stand
//! for millions of values, each of which would take far more memory than its byte.

use minicbor::Decoder;
use minicbor::data::Type;
use minicbor::decode::Error;

/// The numbers of the columns of kinds and of sets of attributes.
const KINDS: u32 = 0;
const ATTRIBUTES: u32 = 11;

/// The numbers of values in encoded columns.
#[derive(Default)]
pub(super) struct ColumnCounts {
    /// Number of items.
    pub items: u64,
    /// The number of each list, and the number of values in it.
    pub values: Vec<(u32, u64)>,
    /// Number of extended attributes in all sets.
    pub attributes: u64,
    /// Whether any set has no attribute.
    pub has_empty_set: bool,
}

impl ColumnCounts {
    /// Counts without keeping anything. What is no list has no values, and is left to the decoder.
    pub fn of(columns: &[u8]) -> Result<Self, Error> {
        let mut decoder = Decoder::new(columns);
        let mut counts = Self::default();
        for _ in 0..length(&mut decoder, Decoder::map)? {
            let column = decoder.u32()?;
            match decoder.datatype()? {
                Type::Bytes if column == KINDS => counts.items = decoder.bytes()?.len() as u64,
                Type::Array if column == ATTRIBUTES => counts.add_sets(&mut decoder)?,
                Type::Array => {
                    let values = decoder.clone().array()?.unwrap_or(0);
                    counts.values.push((column, values));
                    decoder.skip()?;
                }
                Type::ArrayIndef | Type::MapIndef => return Err(unstated()),
                _ => decoder.skip()?,
            }
        }
        Ok(counts)
    }

    /// Counts the sets of attributes, and what is in them.
    fn add_sets(&mut self, decoder: &mut Decoder<'_>) -> Result<(), Error> {
        let sets = length(decoder, Decoder::array)?;
        self.values.push((ATTRIBUTES, sets));
        for _ in 0..sets {
            let attributes = length(decoder, Decoder::map)?;
            self.has_empty_set |= attributes == 0;
            self.attributes = self.attributes.saturating_add(attributes);
            for _ in 0..attributes {
                decoder.skip()?;
                decoder.skip()?;
            }
        }
        Ok(())
    }
}

/// Returns the number of values of a list or a map that begins here.
fn length<'b>(
    decoder: &mut Decoder<'b>,
    begin: fn(&mut Decoder<'b>) -> Result<Option<u64>, Error>,
) -> Result<u64, Error> {
    begin(decoder)?.ok_or_else(unstated)
}

/// Returns the error for a list that does not state its length, as ours do.
fn unstated() -> Error {
    Error::message("a list does not state its length")
}
