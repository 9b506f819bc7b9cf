//! Cauchy Reed-Solomon: the default code, MDS for any k and m with k + m ≤ 2^w.
//!
//! Blömer, Kalfane, Karp, Karpinski, Luby and Zuckerman, *An XOR-based erasure-resilient coding
//! scheme* (1995). Data points x_j and parity points y_i, all distinct, give the coefficients
//! 1 / (y_i + x_j) over GF(2^w); every square submatrix of such a matrix is invertible, so any m
//! losses are recoverable. A coefficient becomes a w by w bit matrix
//! ([`Field::bit_matrix`]) and a strip w packets, after which encoding is XOR alone.
//!
//! Multiplying a row or a column by a nonzero element keeps all that and changes the number of
//! ones. *Normalisation* (Plank and Xu 2006; the dissertation's section 3.3.1, BN) divides every
//! column by its entry of the first row, which makes that row plain parity, and then every other
//! row by the one of its entries that leaves the fewest ones.
//!
//! By default the data points are 0..k and the parity points k..n, with the smallest w that
//! fits. Points and scalings are pinned, so that better defaults do not touch stored data.

use crate::define::cells::{Code, CodeBuilder, Pin};
use crate::define::code::Family;
use crate::define::field::Field;
use crate::define::spec::Spec;
use crate::define::symbols::{SymbolMatrix, expect_size};
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: "cauchy",
    summary: "Cauchy Reed-Solomon, normalised: any k and m, the default",
    limits: "k >= 1, m >= 1, k + m <= 2^w, w <= 16 (default: the smallest that fits); points=X.X.…: k data points, then m parity points",
    example: "cauchy:k=10,m=4",
    define,
    rebuild,
};

const LIMITS: Limits =
    Limits { keys: &["k", "m", "w", "points"], widest: 16, most_nodes: |_, w| 1 << w };

/// Coefficients as a Cauchy matrix with scaled rows and columns.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Matrix {
    field: Field,
    /// Parity points.
    y: Vec<u32>,
    /// Data points.
    x: Vec<u32>,
    row_scale: Vec<u32>,
    column_scale: Vec<u32>,
}

fn define(spec: &Spec) -> Result<Code> {
    let shape = LIMITS.read(spec)?;
    let given = spec.numbers("points")?;
    let points = match &given {
        Some(points) => points.iter().map(|&p| p as u64).collect(),
        None => (0..shape.nodes() as u64).collect::<Vec<_>>(),
    };
    let mut matrix = Matrix::new(Field::new(shape.w as u32)?, shape.k, shape.m, &points)?;
    matrix.normalise();
    matrix.code(&shape, given.is_some())
}

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    let shape = LIMITS.read(spec)?;
    let field = Field::with_polynomial(shape.w as u32, pin.one("polynomial")?)?;
    let mut matrix = Matrix::new(field, shape.k, shape.m, pin.list("points")?)?;
    matrix.row_scale = scales(field, shape.m, pin.list("row-scale")?)?;
    matrix.column_scale = scales(field, shape.k, pin.list("column-scale")?)?;
    matrix.code(&shape, spec.text("points").is_some())
}

fn scales(field: Field, count: usize, numbers: &[u64]) -> Result<Vec<u32>> {
    let legal = |&&number: &&u64| number != 0 && field.contains(number);
    if numbers.len() != count || numbers.iter().filter(legal).count() != count {
        return Err(Error::parameters(format!(
            "the pinned matrix needs {count} nonzero scalings below {}",
            field.size()
        )));
    }
    Ok(numbers.iter().map(|&number| number as u32).collect())
}

/// k, m and w, checked.
pub(super) struct Shape {
    pub(super) k: usize,
    pub(super) m: usize,
    pub(super) w: usize,
}

/// What k, m and w a family of Cauchy matrices takes.
pub(super) struct Limits {
    /// The keys of its specs.
    pub(super) keys: &'static [&'static str],
    /// The largest w.
    pub(super) widest: usize,
    /// The most nodes for an m and a w.
    pub(super) most_nodes: fn(usize, usize) -> usize,
}

impl Limits {
    /// Reads a spec; w defaults to the smallest that fits.
    pub(super) fn read(&self, spec: &Spec) -> Result<Shape> {
        spec.allow(self.keys)?;
        let (k, m) = (spec.required("k")?, spec.required("m")?);
        if k == 0 || m == 0 {
            return Err(Error::parameters(format!(
                "{spec}: k and m are at least 1; without parity there is nothing to compute"
            )));
        }
        let n = k.saturating_add(m);
        let smallest = (1..=self.widest).find(|&w| n <= (self.most_nodes)(m, w));
        let w = spec.number("w")?.or(smallest).unwrap_or(self.widest + 1);
        if w == 0 || w > self.widest {
            return Err(Error::parameters(format!(
                "{spec}: {n} nodes, but {} has w from 1 to {}, so at most {} nodes",
                spec.family(),
                self.widest,
                (self.most_nodes)(m, self.widest)
            )));
        }
        if n > (self.most_nodes)(m, w) {
            let wider = smallest.map(|w| format!("; use w = {w}")).unwrap_or_default();
            return Err(Error::parameters(format!(
                "{spec}: {n} nodes need as many distinct points, but w = {w} has {}{wider}",
                (self.most_nodes)(m, w)
            )));
        }
        expect_size(k, m, w)?;
        Ok(Shape { k, m, w })
    }
}

impl Shape {
    fn nodes(&self) -> usize {
        self.k + self.m
    }
}

impl Matrix {
    /// The plain Cauchy matrix of k data points followed by m parity points.
    fn new(field: Field, k: usize, m: usize, points: &[u64]) -> Result<Self> {
        let mut sorted = points.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let distinct = sorted.len() == points.len();
        if points.len() != k + m || !distinct || points.iter().any(|&p| !field.contains(p)) {
            return Err(Error::parameters(format!(
                "a Cauchy matrix for k = {k}, m = {m} needs {} distinct points below {}",
                k + m,
                field.size()
            )));
        }
        let (x, y) = points.split_at(k);
        Ok(Self {
            field,
            x: x.iter().map(|&p| p as u32).collect(),
            y: y.iter().map(|&p| p as u32).collect(),
            row_scale: vec![1; m],
            column_scale: vec![1; k],
        })
    }

    fn coefficient(&self, i: usize, j: usize) -> u32 {
        let scale = self.field.multiply(self.row_scale[i], self.column_scale[j]);
        self.field.multiply(scale, self.invert(self.y[i] ^ self.x[j]))
    }

    fn invert(&self, nonzero: u32) -> u32 {
        self.field.inverse(nonzero).expect("points are distinct and scalings nonzero")
    }

    fn normalise(&mut self) {
        for j in 0..self.x.len() {
            self.column_scale[j] = self.y[0] ^ self.x[j];
        }
        for i in 1..self.y.len() {
            let row: Vec<u32> = (0..self.x.len()).map(|j| self.coefficient(i, j)).collect();
            let ones_when_divided_by = |divisor: u32| -> usize {
                let factor = self.invert(divisor);
                row.iter().map(|&entry| self.field.ones(self.field.multiply(entry, factor))).sum()
            };
            let mut divisors = row.clone();
            divisors.sort_unstable();
            divisors.dedup();
            let best = divisors.into_iter().min_by_key(|&d| ones_when_divided_by(d));
            self.row_scale[i] = best.map_or(1, |divisor| self.invert(divisor));
        }
    }

    fn code(&self, shape: &Shape, points_given: bool) -> Result<Code> {
        let Shape { k, m, w } = *shape;
        let row = |i| (0..k).map(|j| self.coefficient(i, j)).collect();
        let matrix = SymbolMatrix::new(self.field, k, (0..m).map(row).collect())?;
        let mut builder = CodeBuilder::new(k + m);
        builder.symbols(&matrix).pin(self.pin());
        let mut spec = Spec::new("cauchy").with("k", k).with("m", m).with("w", w);
        if points_given {
            let points: Vec<String> = self.x.iter().chain(&self.y).map(u32::to_string).collect();
            spec = spec.with("points", points.join("."));
        }
        builder.finish(spec, m)
    }

    fn pin(&self) -> Pin {
        let widen = |numbers: &[u32]| numbers.iter().map(|&n| u64::from(n)).collect::<Vec<_>>();
        Pin::new()
            .with("polynomial", [self.field.polynomial()])
            .with("points", widen(&self.x).into_iter().chain(widen(&self.y)))
            .with("row-scale", widen(&self.row_scale))
            .with("column-scale", widen(&self.column_scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(spec: &str) -> Result<Code> {
        Code::new(&spec.parse()?)
    }

    fn plain(k: usize, m: usize, w: u32) -> Matrix {
        let points: Vec<u64> = (0..(k + m) as u64).collect();
        Matrix::new(Field::new(w).unwrap(), k, m, &points).unwrap()
    }

    /// The baselines of the dissertation's table 3.1, in XORs: ones - m·w.
    #[test]
    fn plain_matrices_have_the_published_ones() {
        let rows =
            [(7, 5, 3, 45), (7, 5, 4, 79), (7, 5, 8, 267), (8, 6, 4, 104), (16, 10, 8, 1920)];
        for (n, k, w, xors) in rows {
            let shape = Shape { k, m: n - k, w };
            let ones = plain(k, n - k, w as u32).code(&shape, false).unwrap().ones();
            assert_eq!(ones - (n - k) * w, xors, "n = {n}, k = {k}, w = {w}");
        }
    }

    #[test]
    fn the_first_parity_row_is_plain_parity() {
        let code = code("10+4").unwrap();
        assert_eq!(code.spec().to_string(), "cauchy:k=10,m=4,w=4");
        for row in 0..4 {
            let parity = code.node_cells(crate::NodeId::new(10))[row];
            let expected: Vec<u32> = (0..10).map(|node| (node * 4 + row) as u32).collect();
            assert_eq!(code.row(parity), expected);
        }
    }

    #[test]
    fn normalising_never_adds_ones() {
        for (k, m) in [(4, 2), (6, 3), (10, 4), (20, 6)] {
            let w = ((k + m) as u32).next_power_of_two().trailing_zeros();
            let shape = Shape { k, m, w: w as usize };
            let mut matrix = plain(k, m, w);
            let before = matrix.code(&shape, false).unwrap().ones();
            matrix.normalise();
            assert!(matrix.code(&shape, false).unwrap().ones() < before);
        }
    }

    #[test]
    fn a_pin_rebuilds_the_same_code() {
        for spec in ["4+2", "cauchy:k=5,m=3,w=8", "cauchy:k=2,m=2,w=3,points=7.1.0.4"] {
            let code = code(spec).unwrap();
            let again = Code::rebuild(code.spec(), code.pin()).unwrap();
            assert_eq!(again.spec(), code.spec());
            assert_eq!(again.pin(), code.pin());
            let (mut a, mut b) = (Vec::new(), Vec::new());
            code.describe(|bytes| a.extend_from_slice(bytes));
            again.describe(|bytes| b.extend_from_slice(bytes));
            assert_eq!(a, b);
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("cauchy:k=10", "m is missing"),
            ("cauchy:k=0,m=2", "at least 1"),
            ("cauchy:k=4,m=0", "at least 1"),
            ("cauchy:k=10,m=7,w=4", "use w = 5"),
            ("cauchy:k=10,m=4,w=17", "w from 1 to 16"),
            ("cauchy:k=70000,m=4", "at most 65536 nodes"),
            ("cauchy:k=18446744073709551615,m=4", "at most 65536 nodes"),
            ("cauchy:k=2,m=2,points=1.2.3", "4 distinct points below 4"),
            ("cauchy:k=2,m=2,points=1.2.3.3", "4 distinct points below 4"),
            ("cauchy:k=2,m=2,x=1", "no parameter x"),
            ("couchy:k=2,m=2", "cauchy"),
            ("cauchy:k=4000,m=4000", "more than"),
        ] {
            let error = code(spec).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }
}
