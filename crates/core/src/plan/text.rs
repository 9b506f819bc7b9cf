//! The text form of schedules, in which passes are tested and which `paritas schedule --text`
//! prints.
//!
//! ```text
//! inputs 4 temps 1 outputs 2
//! t0 = i0 ^ i1
//! o0 = t0 ^ i2
//! o1 = t0 ^ i3        # from here to the end of the line is a comment
//! o1 ^= i2            # adds to what is there
//! ```
//!
//! The first line declares the number of cells of each kind. `= 0` sets a cell to zeros. If cells
//! hold words, the first line also names the field by its width and polynomial, and a sum may be
//! multiplied:
//!
//! ```text
//! inputs 2 temps 1 outputs 1 field 8 0x11d
//! t0 = 2 * (i0 ^ i1)
//! o0 = i0 ^ t0
//! ```
//!
//! `cantor` behind the polynomial says that a number stands for another element: its bits choose
//! elements of Cantor's basis instead of powers of x, as in Leopard's codes. So its product with a
//! word is not the product of polynomials.

use std::fmt;
use std::str::FromStr;

use crate::define::field::Field;
use crate::error::{Error, Result};
use crate::plan::schedule::{Op, Schedule, Slot};

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inputs, temps, outputs) = (self.inputs(), self.temps(), self.outputs());
        write!(f, "inputs {inputs} temps {temps} outputs {outputs}")?;
        if let Some(field) = self.field() {
            write!(f, " field {} {:#x}", field.width(), field.polynomial())?;
            f.write_str(if field.has_powers() { "" } else { " cantor" })?;
        }
        writeln!(f)?;
        self.ops().iter().try_for_each(|op| writeln!(f, "{op}"))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assign = if self.accumulate { "^=" } else { "=" };
        let names: Vec<String> = self.sources.iter().map(Slot::to_string).collect();
        let sum = if names.is_empty() { "0".to_owned() } else { names.join(" ^ ") };
        match (self.factor, names.len()) {
            (1, _) => write!(f, "{} {assign} {sum}", self.target),
            (factor, 0 | 1) => write!(f, "{} {assign} {factor} * {sum}", self.target),
            (factor, _) => write!(f, "{} {assign} {factor} * ({sum})", self.target),
        }
    }
}

impl FromStr for Schedule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or("").trim())
            .enumerate()
            .filter(|(_, line)| !line.is_empty());
        let (number, head) = lines
            .next()
            .ok_or_else(|| Error::schedule("the text is empty; it begins with `inputs N …`"))?;
        let Head { cells: [inputs, temps, outputs], field } =
            parse_head(head).ok_or_else(|| wrong_line(number, head))?;
        let ops = lines
            .map(|(number, line)| parse_op(line).ok_or_else(|| wrong_line(number, line)))
            .collect::<Result<Vec<Op>>>()?;
        match field {
            None => Self::new(inputs, temps, outputs, ops),
            Some(field) => {
                let wrong = |error| Error::schedule(format!("line {}: {error}", number + 1));
                Self::over(field.map_err(wrong)?, inputs, temps, outputs, ops)
            }
        }
    }
}

/// The declarations of the first line.
struct Head {
    /// Numbers of inputs, temporaries and outputs.
    cells: [usize; 3],
    /// The field, or what is wrong with it.
    field: Option<Result<Field>>,
}

fn wrong_line(number: usize, line: &str) -> Error {
    let shown: String = line.chars().take(60).collect();
    Error::schedule(format!(
        "line {}: `{shown}` is neither `inputs N temps N outputs N` nor `t0 = i0 ^ i1`",
        number + 1
    ))
}

fn parse_head(line: &str) -> Option<Head> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["inputs", inputs, "temps", temps, "outputs", outputs, ref rest @ ..] = words[..] else {
        return None;
    };
    let cells = [parse_number(inputs)?, parse_number(temps)?, parse_number(outputs)?];
    let field = match *rest {
        [] => None,
        ["field", width, polynomial] => {
            let digits = polynomial.strip_prefix("0x")?;
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            let polynomial = u64::from_str_radix(digits, 16).ok().filter(|_| plain)?;
            Some(Field::with_polynomial(parse_number(width)?, polynomial))
        }
        ["field", "8", "0x11d", "cantor"] => Some(Ok(Field::cantor())),
        _ => return None,
    };
    Some(Head { cells, field })
}

fn parse_op(line: &str) -> Option<Op> {
    let (left, right) = line.split_once('=')?;
    let (target, accumulate) = match left.strip_suffix('^') {
        Some(target) => (target, true),
        None => (left, false),
    };
    let target = parse_slot(target.trim())?;
    let (factor, sum) = match right.split_once('*') {
        Some((factor, sum)) => (parse_number(factor.trim())?, sum.trim()),
        None => (1, right.trim()),
    };
    let inner = sum.strip_prefix('(').and_then(|sum| sum.strip_suffix(')'));
    let sources = match inner.unwrap_or(sum).trim() {
        "0" if !accumulate => Vec::new(),
        sources => {
            sources.split('^').map(|source| parse_slot(source.trim())).collect::<Option<_>>()?
        }
    };
    Some(Op { target, accumulate, factor, sources })
}

fn parse_number<T: FromStr>(digits: &str) -> Option<T> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

fn parse_slot(word: &str) -> Option<Slot> {
    let number = parse_number(word.get(1..)?)?;
    match word.as_bytes()[0] {
        b'i' => Some(Slot::Input(number)),
        b't' => Some(Slot::Temp(number)),
        b'o' => Some(Slot::Output(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prints_what_it_reads() {
        let text = "inputs 4 temps 1 outputs 3\nt0 = i0 ^ i1\no0 = t0 ^ i2\no1 = i3\no1 ^= i2 ^ t0\no2 = 0\n";
        let schedule: Schedule = text.parse().unwrap();
        assert_eq!(schedule.to_string(), text);
        let words = "inputs 2 temps 1 outputs 2 field 8 0x11d\n\
                     t0 = 2 * (i0 ^ i1)\no0 = 255 * t0\no1 = i0 ^ t0\n";
        assert_eq!(words.parse::<Schedule>().unwrap().to_string(), words);
        let loose = "# a comment\n\n inputs 1  temps 0 outputs 1 \no0=i0# end";
        assert_eq!(loose.parse::<Schedule>().unwrap().ops().len(), 1);
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, part) in [
            ("", "empty"),
            ("inputs 1", "line 1"),
            ("inputs 1 temps 0 outputs -1", "line 1"),
            ("inputs +1 temps 0 outputs 1", "line 1"),
            ("inputs 1 temps 0 outputs 1 field 8", "line 1"),
            ("inputs 1 temps 0 outputs 1 field 8 0x+1d", "line 1"),
            ("inputs 1 temps 0 outputs 1\no0 = x0", "line 2"),
            ("inputs 1 temps 0 outputs 1 field 8 0x11d\no0 = 2 * (i0", "line 2"),
            ("inputs 1 temps 0 outputs 1\n\no0 = i0 ^", "line 3"),
            ("inputs 1 temps 0 outputs 1\no0 = i99999999999", "line 2"),
            ("inputs 99999999 temps 0 outputs 1\no0 = i0", "at most"),
        ] {
            let error = text.parse::<Schedule>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in any::<String>()) {
            let _ = text.parse::<Schedule>();
        }

        #[test]
        fn nothing_like_a_schedule_panics(body in "([iot][0-3] ?\\^?= ?[iot0-3^* ()]{0,12}\n){0,6}") {
            let _ = format!("inputs 3 temps 3 outputs 3\n{body}").parse::<Schedule>();
        }
    }
}
