//! Codes from a bit matrix that the user gives.
//!
//! Luo, Xu and Plank describe any XOR code by a generator (I | H), section 2. A [`ParityMatrix`] is
//! H, transposed so that a row is a parity packet: m·w rows and k·w columns of bits, with the
//! placement of the packets. It is read from a text:
//!
//! ```text
//! # The toy example of section 4: not MDS.
//! k = 2
//! m = 2
//! w = 1
//! placement = horizontal
//! 11
//! 11
//! ```
//!
//! The first lines state k, m, w and, if it is not `horizontal`, the placement. Every further line
//! is a row: a digit 0 or 1 for each data packet, in the order of nodes and then of their rows.
//! Blanks between digits, empty lines, and everything from a `#` to the end of its line are
//! ignored.
//!
//! A code's name holds the whole matrix ([`ParityMatrix::spec`]), so stored data can be read
//! without the text.

use std::fmt;
use std::str::FromStr;

use crate::define::bitmatrix::BitMatrix;
use crate::define::spec::{MAX_SPEC_BYTES, Spec};
use crate::error::{Error, Result};

/// The family of these codes.
pub(super) const FAMILY: &str = "matrix";

/// The keys of a spec, in canonical order.
const KEYS: [&str; 5] = ["k", "m", "w", "placement", "rows"];

/// Largest number of digits and dots that the rows of a matrix may take in a spec. The other
/// parameters fit into the rest.
const MAX_DIGITS: usize = MAX_SPEC_BYTES - 256;

/// Largest number of nodes of a code from a bit matrix. Every loss of one node is tried when the
/// code is made.
const MAX_NODES: usize = 1024;

/// Number of columns in a hexadecimal digit of a spec.
const DIGIT: usize = 4;

/// The nodes on which parity packets are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParityPlacement {
    /// k nodes hold w data packets each, and m nodes after them w parity packets each.
    Horizontal,
    /// Each of the k + m nodes holds kw / (k + m) data packets, and mw / (k + m) parity packets
    /// after them, as in X-Code. Both must be whole numbers.
    Vertical,
}

impl ParityPlacement {
    /// Name of the placement in texts and specs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Horizontal => "horizontal",
            Self::Vertical => "vertical",
        }
    }
}

impl FromStr for ParityPlacement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = [Self::Horizontal, Self::Vertical];
        known.into_iter().find(|placement| placement.name() == text).ok_or_else(|| {
            Error::parameters(format!("placement must be horizontal or vertical; got `{text}`"))
        })
    }
}

/// The parity rows of a code's generator, with the placement of its packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParityMatrix {
    shape: MatrixShape,
    bits: BitMatrix,
}

/// k, m, w and the placement, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MatrixShape {
    k: usize,
    m: usize,
    w: usize,
    placement: ParityPlacement,
}

impl MatrixShape {
    /// Checks that there are packets, that they can be placed, and that a spec can hold the matrix.
    fn checked(self) -> Result<Self> {
        let Self { k, m, w, placement } = self;
        if k == 0 || m == 0 || w == 0 {
            return Err(Error::parameters(format!(
                "k, m and w must be at least 1; got k = {k}, m = {m}, w = {w}"
            )));
        }
        if k.saturating_add(m) > MAX_NODES {
            return Err(Error::parameters(format!(
                "k + m must be at most {MAX_NODES} for a matrix of one's own; got {k} + {m}"
            )));
        }
        if w > MAX_DIGITS {
            return Err(Error::parameters(format!("w must be at most {MAX_DIGITS}; got {w}")));
        }
        let (rows, columns) = (m * w, k * w);
        let digits = rows.saturating_mul(columns.div_ceil(DIGIT) + 1);
        if digits > MAX_DIGITS {
            return Err(Error::parameters(format!(
                "k = {k}, m = {m}, w = {w}: the matrix has {rows} rows of {columns} bits, which take \
                 {digits} digits in the code's name; it can hold {MAX_DIGITS}"
            )));
        }
        let (data, parity) = (columns % (k + m), rows % (k + m));
        if placement == ParityPlacement::Vertical && (data, parity) != (0, 0) {
            return Err(Error::parameters(format!(
                "k = {k}, m = {m}, w = {w}: {columns} data packets and {rows} parity packets cannot be \
                 spread evenly over {} nodes; with vertical placement k·w and m·w must be multiples \
                 of k + m",
                k + m
            )));
        }
        Ok(self)
    }

    fn rows(self) -> usize {
        self.m * self.w
    }

    fn columns(self) -> usize {
        self.k * self.w
    }

    /// Number of digits of a row in a spec.
    fn digits(self) -> usize {
        self.columns().div_ceil(DIGIT)
    }
}

impl ParityMatrix {
    /// Returns a matrix of m·w rows and k·w columns. Rows are parity packets and columns data
    /// packets, both in the order of nodes and then of their rows.
    ///
    /// # Errors
    /// If k, m or w is 0, if the matrix has another size or is too big for a spec, or if vertical
    /// placement cannot spread the packets evenly.
    pub fn new(
        k: usize,
        m: usize,
        w: usize,
        placement: ParityPlacement,
        bits: BitMatrix,
    ) -> Result<Self> {
        let shape = MatrixShape { k, m, w, placement }.checked()?;
        if (bits.rows(), bits.columns()) == (shape.rows(), shape.columns()) {
            return Ok(Self { shape, bits });
        }
        Err(Error::parameters(format!(
            "k = {k}, m = {m}, w = {w}: the matrix must have m·w = {} rows and k·w = {} columns; got \
             {} and {}",
            shape.rows(),
            shape.columns(),
            bits.rows(),
            bits.columns()
        )))
    }

    /// Number of nodes' worth of data.
    pub fn k(&self) -> usize {
        self.shape.k
    }

    /// Number of nodes' worth of parity.
    pub fn m(&self) -> usize {
        self.shape.m
    }

    /// Number of packets of a node in one stripe.
    pub fn w(&self) -> usize {
        self.shape.w
    }

    /// The nodes on which parity packets are placed.
    pub fn placement(&self) -> ParityPlacement {
        self.shape.placement
    }

    /// The bits.
    pub fn bits(&self) -> &BitMatrix {
        &self.bits
    }

    /// Returns the canonical spec, which holds the whole matrix:
    /// `matrix:k=2,m=2,w=1,rows=c.c`. `rows` has the rows separated by dots, each as a number of
    /// hexadecimal digits. The first column is the highest bit of the first digit, and zeros fill
    /// up the last digit.
    pub fn spec(&self) -> Spec {
        let MatrixShape { k, m, w, placement } = self.shape;
        let spec = Spec::new(FAMILY).with("k", k).with("m", m).with("w", w);
        let spec = match placement {
            ParityPlacement::Horizontal => spec,
            ParityPlacement::Vertical => spec.with("placement", placement.name()),
        };
        let rows: Vec<String> = (0..self.bits.rows()).map(|row| self.digits_of(row)).collect();
        spec.with("rows", rows.join("."))
    }

    fn digits_of(&self, row: usize) -> String {
        let mut digits = vec![0; self.shape.digits()];
        for column in self.bits.support(row) {
            digits[column / DIGIT] |= 8 >> (column % DIGIT);
        }
        digits.into_iter().filter_map(|digit| char::from_digit(digit, 16)).collect()
    }

    /// Reads the matrix that a spec holds.
    pub(super) fn of_spec(spec: &Spec) -> Result<Self> {
        spec.allow(&KEYS)?;
        let placement = spec.text("placement").map_or(Ok(ParityPlacement::Horizontal), str::parse);
        let [k, m, w] = [spec.required("k")?, spec.required("m")?, spec.required("w")?];
        let shape = MatrixShape { k, m, w, placement: placement? }.checked()?;
        let text = spec.text("rows").ok_or_else(|| {
            Error::spec(format!(
                "{spec}: rows is missing; write the m·w rows in hexadecimal digits, with dots \
                 between rows"
            ))
        })?;
        let rows: Vec<&str> = text.split('.').collect();
        if rows.len() != shape.rows() {
            return Err(Error::spec(format!(
                "matrix: rows must have m·w = {} rows; got {}",
                shape.rows(),
                rows.len()
            )));
        }
        let mut bits = BitMatrix::zero(shape.rows(), shape.columns());
        for (number, row) in rows.into_iter().enumerate() {
            read_digits(shape, number, row, &mut bits)?;
        }
        Ok(Self { shape, bits })
    }
}

/// Reads a row of a spec.
fn read_digits(shape: MatrixShape, number: usize, row: &str, bits: &mut BitMatrix) -> Result<()> {
    let (columns, digits) = (shape.columns(), shape.digits());
    let wrong = |what: String| Err(Error::spec(format!("matrix: row {number} {what}")));
    if row.len() != digits {
        let given = row.len();
        return wrong(format!(
            "must have {digits} hexadecimal digits for its {columns} bits; got {given}"
        ));
    }
    for (place, character) in row.chars().enumerate() {
        let Some(digit) = character.to_digit(16) else {
            return wrong(format!("has `{character}` at digit {place}, which is not hexadecimal"));
        };
        for bit in (0..DIGIT).filter(|bit| digit & 8 >> bit != 0) {
            let column = place * DIGIT + bit;
            if column >= columns {
                return wrong(format!("has a one in column {column}; the last is {}", columns - 1));
            }
            bits.set(number, column, true);
        }
    }
    Ok(())
}

impl fmt::Display for ParityMatrix {
    /// Writes the text from which the matrix is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatrixShape { k, m, w, placement } = self.shape;
        writeln!(f, "k = {k}\nm = {m}\nw = {w}\nplacement = {}", placement.name())?;
        for row in 0..self.bits.rows() {
            let digit = |column| if self.bits.get(row, column) { '1' } else { '0' };
            writeln!(f, "{}", (0..self.bits.columns()).map(digit).collect::<String>())?;
        }
        Ok(())
    }
}

impl FromStr for ParityMatrix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut reader = MatrixReader::default();
        // Some editors put a mark before all text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in (1..).zip(text.lines()) {
            let content = line.split('#').next().unwrap_or("").trim();
            if !content.is_empty() {
                reader.take(content).map_err(|error| in_line(number, &error))?;
            }
        }
        reader.finish()
    }
}

/// The part of a text that has been read so far: the head, then the rows.
#[derive(Default)]
struct MatrixReader {
    sizes: [Option<usize>; 3],
    placement: Option<ParityPlacement>,
    body: Option<ParityMatrix>,
    rows: usize,
}

/// Names of the sizes in a text's head.
const SIZES: [&str; 3] = ["k", "m", "w"];

impl MatrixReader {
    fn take(&mut self, line: &str) -> Result<()> {
        match line.split_once('=') {
            Some((key, value)) => self.take_parameter(key.trim(), value.trim()),
            None => self.take_row(line),
        }
    }

    fn take_parameter(&mut self, key: &str, value: &str) -> Result<()> {
        if self.body.is_some() {
            return Err(Error::parameters(format!("{key} must stand before the first row")));
        }
        let is_known = match SIZES.iter().position(|&size| size == key) {
            Some(at) => self.sizes[at].replace(number(key, value)?).is_some(),
            None if key == "placement" => self.placement.replace(value.parse()?).is_some(),
            None => {
                return Err(Error::parameters(format!(
                    "there is no parameter `{}`; there are k, m, w and placement",
                    key.escape_debug()
                )));
            }
        };
        match is_known {
            true => Err(Error::parameters(format!("{key} is given twice"))),
            false => Ok(()),
        }
    }

    /// Reads a row; before the first row, the head must be complete.
    fn take_row(&mut self, line: &str) -> Result<()> {
        let mut matrix = match self.body.take() {
            Some(matrix) => matrix,
            None => self.begin()?,
        };
        let (shape, row) = (matrix.shape, self.rows);
        if row == shape.rows() {
            return Err(Error::parameters(format!(
                "the matrix must have m·w = {row} rows; this is one more"
            )));
        }
        let digits = || line.chars().filter(|character| !character.is_whitespace());
        let (given, columns) = (digits().count(), shape.columns());
        for (column, digit) in digits().enumerate() {
            match digit {
                '0' | '1' if column < columns => matrix.bits.set(row, column, digit == '1'),
                '0' | '1' => {}
                other => {
                    return Err(Error::parameters(format!(
                        "digit {} of a row must be 0 or 1; got `{}`",
                        column + 1,
                        other.escape_debug()
                    )));
                }
            }
        }
        if given != columns {
            return Err(Error::parameters(format!(
                "a row must have k·w = {columns} digits; got {given}"
            )));
        }
        self.rows += 1;
        self.body = Some(matrix);
        Ok(())
    }

    /// Returns the matrix of zeros that the head describes.
    fn begin(&self) -> Result<ParityMatrix> {
        let [k, m, w] = [self.size(0)?, self.size(1)?, self.size(2)?];
        let placement = self.placement.unwrap_or(ParityPlacement::Horizontal);
        let shape = MatrixShape { k, m, w, placement }.checked()?;
        Ok(ParityMatrix { shape, bits: BitMatrix::zero(shape.rows(), shape.columns()) })
    }

    fn size(&self, at: usize) -> Result<usize> {
        let name = SIZES[at];
        self.sizes[at].ok_or_else(|| {
            Error::parameters(format!(
                "{name} is missing; write `{name} = NUMBER` before the first row"
            ))
        })
    }

    fn finish(self) -> Result<ParityMatrix> {
        let matrix = match self.body {
            Some(matrix) => matrix,
            None => self.begin()?,
        };
        match (self.rows, matrix.shape.rows()) {
            (given, expected) if given == expected => Ok(matrix),
            (given, expected) => Err(Error::parameters(format!(
                "the matrix must have m·w = {expected} rows; got {given}"
            ))),
        }
    }
}

fn in_line(number: usize, error: &Error) -> Error {
    Error::parameters(format!("line {number}: {error}"))
}

fn number(key: &str, value: &str) -> Result<usize> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| is_number).ok_or_else(|| {
        let value: String = value.chars().take(30).collect();
        let most = if is_number { format!(" up to {}", usize::MAX) } else { String::new() };
        Error::parameters(format!("{key} must be a number{most}; got `{}`", value.escape_debug()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOY: &str = "k = 2\nm = 2\nw = 1\nplacement = horizontal\n11\n11\n";

    fn error(text: &str) -> String {
        text.parse::<ParityMatrix>().unwrap_err().to_string()
    }

    #[test]
    fn a_text_is_read_and_printed_back() {
        let toy: ParityMatrix = TOY.parse().unwrap();
        assert_eq!(toy.to_string(), TOY);
        assert_eq!(toy.spec().to_string(), "matrix:k=2,m=2,w=1,rows=c.c");
        let loose = "# toy\r\nw=1\r\n\r\n m =2 # two\nk= 2\n1 1\n\t1 1 # last\n";
        assert_eq!(loose.parse::<ParityMatrix>().unwrap(), toy);
        let vertical = "k=1\nm=1\nw=2\nplacement=vertical\n01\n10";
        let vertical: ParityMatrix = vertical.parse().unwrap();
        let spec = "matrix:k=1,m=1,w=2,placement=vertical,rows=4.8";
        assert_eq!(vertical.spec().to_string(), spec);
    }

    #[test]
    fn errors_name_the_line_and_the_number() {
        for (text, part) in [
            ("", "k is missing; write `k = NUMBER`"),
            ("k = 2\nm = 2\n11", "line 3: w is missing"),
            ("k = 2\nk = 3", "line 2: k is given twice"),
            ("k = two", "line 1: k must be a number; got `two`"),
            ("k = +2", "line 1: k must be a number; got `+2`"),
            (
                "k = 99999999999999999999999",
                "k must be a number up to 18446744073709551615; got `9999",
            ),
            ("k = 2\nn = 4", "line 2: there is no parameter `n`"),
            ("placement = diagonal", "line 1: placement must be horizontal or vertical"),
            ("k=2\nm=1\nw=1\n11\nw=1", "line 5: w must stand before the first row"),
            ("k=2\nm=1\nw=1\n\n111", "line 5: a row must have k·w = 2 digits; got 3"),
            ("k=2\nm=2\nw=1\n11\n1", "line 5: a row must have k·w = 2 digits; got 1"),
            ("k=2\nm=1\nw=1\n1 2", "line 4: digit 2 of a row must be 0 or 1; got `2`"),
            ("k=2\nm=1\nw=1\n11\n11", "line 5: the matrix must have m·w = 1 rows; this is one"),
            ("k=2\nm=2\nw=1\n11", "the matrix must have m·w = 2 rows; got 1"),
            ("k=2\nm=2\nw=1", "the matrix must have m·w = 2 rows; got 0"),
            ("k=0\nm=2\nw=1\n11", "line 4: k, m and w must be at least 1; got k = 0"),
            ("k=2000\nm=2\nw=1\n1", "line 4: k + m must be at most 1024"),
            ("k=200\nm=200\nw=8\n1", "1600 rows of 1600 bits, which take 641600 digits"),
            (
                "k=18446744073709551615\nm=18446744073709551615\nw=9\n1",
                "line 4: k + m must be at most 1024",
            ),
            ("k=2\nm=2\nw=18446744073709551615\n1", "line 4: w must be at most "),
            ("k=3\nm=2\nw=4\nplacement=vertical\n1", "12 data packets and 8 parity packets cannot"),
        ] {
            let error = error(text);
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn specs_that_hold_no_matrix_are_refused() {
        for (spec, part) in [
            ("matrix:k=2,m=2,w=1", "rows is missing"),
            ("matrix:k=2,m=2,rows=c.c", "w is missing"),
            ("matrix:k=2,m=2,w=1,rows=c.c,x=1", "no parameter x"),
            ("matrix:k=2,m=2,w=1,rows=c", "m·w = 2 rows; got 1"),
            ("matrix:k=2,m=2,w=1,rows=c.cc", "row 1 must have 1 hexadecimal digits for its 2 bits"),
            ("matrix:k=2,m=2,w=1,rows=c.e", "row 1 has a one in column 2; the last is 1"),
            ("matrix:k=2,m=2,w=1,rows=g.c", "row 0 has `g` at digit 0"),
            ("matrix:k=2,m=2,w=1,placement=up,rows=c.c", "horizontal or vertical; got `up`"),
        ] {
            let error = ParityMatrix::of_spec(&spec.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
        let bits = BitMatrix::zero(2, 3);
        let new = ParityMatrix::new(2, 2, 1, ParityPlacement::Horizontal, bits);
        let error = new.unwrap_err().to_string();
        assert!(error.contains("m·w = 2 rows and k·w = 2 columns; got 2 and 3"), "{error}");
    }

    /// The largest matrix that is allowed has a spec that can be read.
    #[test]
    fn the_largest_matrix_has_a_name() {
        let (k, m, w) = (1, 1, 508);
        let matrix = |w: usize| {
            let bits = BitMatrix::identity(w);
            ParityMatrix::new(k, m, w, ParityPlacement::Vertical, bits)
        };
        let spec = matrix(w).unwrap().spec();
        assert!(spec.to_string().len() > MAX_SPEC_BYTES - 1000);
        let again = spec.to_string().parse().unwrap();
        assert_eq!(ParityMatrix::of_spec(&again).unwrap(), matrix(w).unwrap());
        assert!(matrix(w + 2).is_err());
    }

    proptest! {
        #[test]
        fn texts_and_specs_come_back(
            k in 1_usize..6,
            m in 1_usize..4,
            w in 1_usize..5,
            ones in proptest::collection::vec(any::<bool>(), 400),
        ) {
            let mut bits = BitMatrix::zero(m * w, k * w);
            for (at, &one) in ones[..m * w * k * w].iter().enumerate() {
                bits.set(at / (k * w), at % (k * w), one);
            }
            let placement = match w.is_multiple_of(k + m) {
                true => ParityPlacement::Vertical,
                false => ParityPlacement::Horizontal,
            };
            let matrix = ParityMatrix::new(k, m, w, placement, bits).unwrap();
            prop_assert_eq!(&matrix.to_string().parse::<ParityMatrix>().unwrap(), &matrix);
            let spec: Spec = matrix.spec().to_string().parse().unwrap();
            prop_assert_eq!(&ParityMatrix::of_spec(&spec).unwrap(), &matrix);
        }

        #[test]
        fn nothing_panics(text in "([kmw]|placement)? ?=? ?[0-9]{0,3}\n?[01 \n#]{0,40}") {
            let _ = text.parse::<ParityMatrix>();
        }
    }
}
