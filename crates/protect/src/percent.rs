//! Percentages in text, which are kept in millionths.

use std::fmt;

/// Reads a percentage from 0 to `most`, such as `10%` or `2.5`. Returns it in millionths, or `None`
/// if the text is something else.
pub(crate) fn parse(text: &str, most: f64) -> Option<u32> {
    let percent: f64 = text.strip_suffix('%').unwrap_or(text).trim().parse().ok()?;
    (0.0..=most).contains(&percent).then(|| (percent * 10_000.0).round() as u32)
}

/// Writes millionths as a percentage, such as `2.5%`.
pub(crate) fn write(millionths: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}%", f64::from(millionths) / 10_000.0)
}
