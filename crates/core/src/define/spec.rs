//! A code's name: `family:key=value,…`, or `k+m` for the default family of the shape.
//!
//! A [`Spec`] is only the parsed text. A family reads its parameters from it (see
//! [`crate::define::families`]) and returns the canonical spec, in which every parameter that
//! decides the code is written out in the family's own order.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::limits::WIDE;

/// A parsed code name.
///
/// ```
/// use paritas::Spec;
/// let spec: Spec = "10+4".parse()?;
/// assert_eq!(spec.to_string(), "cauchy:k=10,m=4");
/// # Ok::<(), paritas::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    family: String,
    parameters: Vec<(String, String)>,
}

/// Largest length of a spec, in bytes; a longer name is refused before it is parsed.
pub const MAX_SPEC_BYTES: usize = 64 * 1024;

/// The family that `k+m` stands for.
const DEFAULT_FAMILY: &str = "cauchy";

/// The family that `k+m` stands for if k·m is at least [`WIDE`], m at least 2, and k + m at most
/// [`MOST_WIDE_NODES`]. Transforms compute its codes.
const WIDE_FAMILY: &str = "backblaze";

/// Largest number of nodes of a code of [`WIDE_FAMILY`].
const MOST_WIDE_NODES: usize = 256;

impl Spec {
    /// Returns a spec of a family without parameters; add them with [`Spec::with`].
    pub fn new(family: impl Into<String>) -> Self {
        Self { family: family.into(), parameters: Vec::new() }
    }

    /// Returns the same spec with one more parameter.
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.parameters.push((key.to_owned(), value.to_string()));
        self
    }

    /// The family's name.
    pub fn family(&self) -> &str {
        &self.family
    }

    /// Text of a parameter, if it is given.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.parameters.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The parameters with their texts, in order.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the value of a number that the family requires.
    pub(crate) fn required(&self, key: &str) -> Result<usize> {
        self.number(key)?.ok_or_else(|| {
            Error::spec(format!("{self}: {key} is missing; write {key}=NUMBER, as in {key}=4"))
        })
    }

    /// Returns the value of a number, if it is given.
    pub(crate) fn number(&self, key: &str) -> Result<Option<usize>> {
        self.text(key).map(|value| self.parse_number(key, value)).transpose()
    }

    /// Returns a list of numbers separated by dots, if it is given.
    pub(crate) fn numbers(&self, key: &str) -> Result<Option<Vec<usize>>> {
        self.text(key)
            .map(|value| value.split('.').map(|part| self.parse_number(key, part)).collect())
            .transpose()
    }

    /// Refuses keys that the family does not know.
    pub(crate) fn allow(&self, keys: &[&str]) -> Result<()> {
        let mut given = self.parameters.iter().enumerate();
        let is_again =
            |at: usize, key: &str| self.parameters[..at].iter().any(|(one, _)| one == key);
        if let Some((_, (key, _))) = given.find(|(at, (key, _))| is_again(*at, key)) {
            return Err(Error::spec(format!("{self}: {key} is given twice")));
        }
        match self.parameters.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some((key, _)) => Err(Error::spec(format!(
                "{} has no parameter {key}; it takes {}",
                self.family,
                keys.join(", ")
            ))),
        }
    }

    fn parse_number(&self, key: &str, value: &str) -> Result<usize> {
        let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
        match value.parse() {
            Ok(number) if digits => Ok(number),
            Err(_) if digits => Err(Error::spec(format!(
                "{self}: {key} must be a number up to {}; got {value}",
                usize::MAX
            ))),
            _ => Err(Error::spec(format!(
                "{self}: {key} must be a whole number from 0; got {value}"
            ))),
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.family)?;
        for (i, (key, value)) in self.parameters.iter().enumerate() {
            write!(f, "{}{key}={value}", if i == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() > MAX_SPEC_BYTES {
            let length = text.len();
            return Err(Error::spec(format!(
                "a code's name has at most {MAX_SPEC_BYTES} bytes, this one {length}"
            )));
        }
        match text.split_once('+') {
            Some((k, m)) if is_number(k) && is_number(m) => {
                Ok(Self::new(default_family(k, m)).with("k", k).with("m", m))
            }
            _ => parse_long_form(text),
        }
    }
}

/// Returns the family that `k+m` stands for. Stored data names its family, so another choice here
/// would not change how it is read.
fn default_family(k: &str, m: &str) -> &'static str {
    match (k.parse::<usize>(), m.parse::<usize>()) {
        (Ok(k), Ok(m))
            if m > 1 && k.saturating_mul(m) >= WIDE && k.saturating_add(m) <= MOST_WIDE_NODES =>
        {
            WIDE_FAMILY
        }
        _ => DEFAULT_FAMILY,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn parse_long_form(text: &str) -> Result<Spec> {
    let (family, rest) = text.split_once(':').unwrap_or((text, ""));
    if !is_word(family) {
        return Err(Error::spec(format!(
            "`{}` is not a code's name; write FAMILY:KEY=VALUE,… as in cauchy:k=10,m=4, or 10+4",
            shorten(text)
        )));
    }
    let mut spec = Spec::new(family);
    for part in rest.split(',').filter(|_| !rest.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if !is_word(key) || value.is_empty() || !value.bytes().all(is_value_byte) {
            return Err(Error::spec(format!(
                "`{}` in `{}` is not KEY=VALUE, as in k=10",
                shorten(part),
                shorten(text)
            )));
        }
        if spec.text(key).is_some() {
            return Err(Error::spec(format!("{key} is given twice in `{}`", shorten(text))));
        }
        spec = spec.with(key, value);
    }
    Ok(spec)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_value_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".+-_".contains(&byte)
}

fn shorten(text: &str) -> String {
    let printable = |c: char| if c.is_control() { '?' } else { c };
    let short: String = text.chars().take(60).map(printable).collect();
    if short.len() < text.len() { short + "…" } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_and_long_form() {
        let short: Spec = "10+4".parse().unwrap();
        let long: Spec = "cauchy:k=10,m=4".parse().unwrap();
        assert_eq!(short, long);
        assert_eq!(long.to_string(), "cauchy:k=10,m=4");
        assert_eq!("rdp".parse::<Spec>().unwrap().to_string(), "rdp");
        for (text, family) in [
            ("32+32", "backblaze"),
            ("224+32", "backblaze"),
            ("30+10", "backblaze"),
            ("10+30", "backblaze"),
            ("30+9", "cauchy"),
            ("150+2", "backblaze"),
            ("149+2", "cauchy"),
            ("255+1", "cauchy"),
            ("225+32", "cauchy"),
            ("99999999999999999999+32", "cauchy"),
        ] {
            assert_eq!(text.parse::<Spec>().unwrap().family(), family, "{text}");
        }
    }

    #[test]
    fn errors_name_the_part() {
        for (text, part) in [
            ("", "FAMILY:KEY=VALUE"),
            ("Cauchy:k=1", "Cauchy"),
            ("cauchy:k", "`k`"),
            ("cauchy:k=", "`k=`"),
            ("cauchy:k=1,,m=2", "``"),
            ("cauchy:k=1,k=2", "k is given twice"),
            ("10+", "10+"),
            ("cauchy:k=1 ", "`k=1 `"),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let spec: Spec = "cauchy:k=ten,m=99999999999999999999999".parse().unwrap();
        assert!(spec.required("k").unwrap_err().to_string().contains("k=ten"));
        assert!(spec.required("m").unwrap_err().to_string().contains("a number up to 1844"));
        assert!(spec.required("w").unwrap_err().to_string().contains("w is missing"));
        let twice = Spec::new("cauchy").with("k", 2).with("k", 3);
        assert!(twice.allow(&["k"]).unwrap_err().to_string().contains("k is given twice"));
    }

    proptest! {
        #[test]
        fn what_parses_prints_back(text in "[a-z0-9:=,.+-]{0,30}") {
            if let Ok(spec) = text.parse::<Spec>() {
                prop_assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
            }
        }

        #[test]
        fn nothing_panics(text in any::<String>()) {
            let _ = text.parse::<Spec>();
        }
    }
}
