//! Pins: the numbers from which a stored code's matrix is rebuilt.

use std::fmt;

use crate::error::{Error, Result};

/// The numbers that pin a code's matrix: named lists such as a polynomial, points, a prime.
///
/// A pin is stored in every shard header. A code rebuilt from its family's name and its pin stays
/// the same for ever, whatever tables later versions choose their defaults from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pin(Vec<(String, Vec<u64>)>);

impl Pin {
    /// Returns a pin without numbers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the same pin with one more named list.
    pub fn with(mut self, name: &str, numbers: impl IntoIterator<Item = u64>) -> Self {
        self.0.push((name.to_owned(), numbers.into_iter().collect()));
        self
    }

    /// The named lists, in the family's order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.0.iter().map(|(name, numbers)| (name.as_str(), numbers.as_slice()))
    }

    /// Returns the list named `name`.
    pub(crate) fn list(&self, name: &str) -> Result<&[u64]> {
        let found = self.entries().find(|&(n, _)| n == name);
        found
            .map(|(_, numbers)| numbers)
            .ok_or_else(|| Error::parameters(format!("the pinned matrix has no `{name}`")))
    }

    /// Returns the list named `name`, which must hold a single number.
    pub(crate) fn one(&self, name: &str) -> Result<u64> {
        match self.list(name)? {
            &[number] => Ok(number),
            list => {
                let count = list.len();
                Err(Error::parameters(format!("the pinned matrix has {count} of `{name}`, not 1")))
            }
        }
    }
}

impl fmt::Display for Pin {
    /// Writes a pin like `prime = 7; points = 0, 1, 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |(name, numbers): (&str, &[u64])| {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("{name} = {}", numbers.join(", "))
        };
        f.write_str(&self.entries().map(list).collect::<Vec<_>>().join("; "))
    }
}
