//! Percentages in text, which are kept in millionths.

use std::fmt;

/// Reads a percentage from 0 to `most`, such as `10%` or `2.5`. Returns it in millionths, or `None`
/// if the text is something else. A number below 1 has the sign: `0.25` could mean a quarter.
pub(crate) fn parse(text: &str, most: f64) -> Option<u32> {
    let number = text.strip_suffix('%');
    let percent: f64 = number.unwrap_or(text).trim().parse().ok()?;
    let is_clear = number.is_some() || percent == 0.0 || percent >= 1.0;
    let is_percentage = is_clear && (0.0..=most).contains(&percent);
    is_percentage.then(|| (percent * 10_000.0).round() as u32)
}

/// Writes millionths as a percentage, such as `2.5%`.
pub(crate) fn write(millionths: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}%", f64::from(millionths) / 10_000.0)
}
