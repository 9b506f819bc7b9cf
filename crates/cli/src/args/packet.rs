//! `encode --packet`: a number of bytes, or the way to find one.

use std::str::FromStr;

/// The packet that `encode` stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketChoice {
    /// This many bytes.
    Bytes(usize),
    /// The packet by rule (3.1) of the dissertation, for the first-level cache of this processor.
    Rule,
    /// The packet that `paritas tune` found for the code.
    Tuned,
}

impl FromStr for PacketChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "rule" => Ok(Self::Rule),
            _ if text == "tuned" => Ok(Self::Tuned),
            Ok(bytes) => Ok(Self::Bytes(bytes)),
            Err(_) => Err(format!("must be a number of bytes, `rule` or `tuned`; got `{text}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_the_rule_are_told_apart() {
        assert_eq!("4096".parse(), Ok(PacketChoice::Bytes(4096)));
        assert_eq!("rule".parse(), Ok(PacketChoice::Rule));
        assert_eq!("tuned".parse(), Ok(PacketChoice::Tuned));
        for wrong in ["", "Rule", "4K", "-1", "rule:4096"] {
            assert!(wrong.parse::<PacketChoice>().is_err(), "{wrong}");
        }
    }
}
