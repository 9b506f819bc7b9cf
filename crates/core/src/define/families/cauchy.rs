//! Cauchy Reed-Solomon: the default code, MDS for any k and m with k + m ≤ 2^w.
//!
//! The matrix is a [`CauchyMatrix`]. Each coefficient becomes a w by w bit matrix
//! ([`Field::bit_matrix`]) and each strip w packets, so encoding needs only XORs.
//!
//! By default w is the smallest that fits. For many sizes the points and row scalings are the best
//! that a search found (`table`). For the others the data points are 0..k, the parity points k..n,
//! and the matrix is normalised. What a spec with k, m and w means stays as it is.

mod table;

use crate::define::builder::CodeBuilder;
use crate::define::cauchy::CauchyMatrix;
use crate::define::cells::NodeId;
use crate::define::code::Code;
use crate::define::families::Family;
use crate::define::field::{Field, elements};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::define::symbols::expect_size;
use crate::error::{Error, Result};

pub(super) const FAMILY: Family = Family {
    name: "cauchy",
    summary: "Cauchy Reed-Solomon, normalised: any k and m, the default (of wide codes: backblaze)",
    limits: "k >= 1, m >= 1, k + m <= 2^w, w <= 16 (default: the smallest that fits); points=X.X.…: k data points, then m parity points; then rows=R.R.… and columns=C.C.…: factors, instead of normalisation",
    example: "cauchy:k=10,m=4",
    define,
    rebuild,
};

const LIMITS: FamilyLimits = FamilyLimits {
    keys: &["k", "m", "w", "points", "rows", "columns"],
    widest: 16,
    most_nodes: |_, w| elements(w),
};

fn define(spec: &Spec) -> Result<Code> {
    let shape = LIMITS.read(spec)?;
    let given = GivenParts::read(spec)?;
    let matrix = match &given {
        GivenParts { points: None, .. } => shape.default_matrix()?,
        GivenParts { points: Some(points), rows: None, .. } => shape.matrix(points)?.normalised(),
        GivenParts { points: Some(points), rows: Some(rows), columns: None } => {
            shape.matrix(points)?.with_rows(rows)?
        }
        GivenParts { points: Some(points), rows: Some(rows), columns: Some(columns) } => {
            shape.matrix(points)?.with_scalings(rows, columns)?
        }
    };
    shape.code(&matrix, &given)
}

fn rebuild(spec: &Spec, pin: &Pin) -> Result<Code> {
    let shape = LIMITS.read(spec)?;
    shape.code(&pinned(shape.k, shape.m, shape.w, pin)?, &GivenParts::read(spec)?)
}

fn pinned(k: usize, m: usize, w: usize, pin: &Pin) -> Result<CauchyMatrix> {
    let field = Field::with_polynomial(w as u32, pin.one("polynomial")?)?;
    let plain = CauchyMatrix::new(field, k, m, pin.list("points")?)?;
    plain.with_scalings(pin.list("row-scale")?, pin.list("column-scale")?)
}

/// Returns the code of a spec without points, chosen so that its first `m` parities have few ones.
/// Those are the parities of the default code for k and m. Delayed parity generation uses this as
/// its second base code.
pub(super) fn for_first_parities(spec: &Spec, m: usize) -> Result<Code> {
    let shape = LIMITS.read(spec)?;
    let first = CauchyShape { m, ..shape }.default_matrix()?;
    shape.code(&first.extended(shape.m)?, &GivenParts::read(spec)?)
}

impl Code {
    /// Returns the code of a Cauchy matrix over the standard field of its width. Its spec states
    /// everything that the defaults would not give.
    ///
    /// # Errors
    /// If the field is not the standard one, or is wider than 16 bits, because specs cannot name
    /// such codes. Also if the matrix would be too big to plan with.
    pub fn cauchy(matrix: &CauchyMatrix) -> Result<Self> {
        let (field, widest) = (matrix.field(), LIMITS.widest);
        if field.width() as usize > widest || field != Field::new(field.width())? {
            return Err(Error::parameters(format!(
                "the matrix must be over the standard field of a width up to {widest}; got the width \
                 {} and the polynomial {:#x}",
                field.width(),
                field.polynomial()
            )));
        }
        let shape =
            CauchyShape { k: matrix.k(), m: matrix.m(), w: matrix.field().width() as usize };
        let plain = shape.matrix(&matrix.points())?;
        let with_rows = plain.clone().with_rows(&matrix.row_scalings())?;
        let normalised = plain.normalised() == *matrix;
        let given = GivenParts {
            points: Some(matrix.points()),
            rows: (!normalised).then(|| matrix.row_scalings()),
            columns: (!normalised && with_rows != *matrix).then(|| matrix.column_scalings()),
        };
        shape.code(matrix, &given)
    }

    /// Returns the Cauchy matrix of a code that was made from one.
    pub fn cauchy_matrix(&self) -> Option<CauchyMatrix> {
        if self.spec().family() != FAMILY.name {
            return None;
        }
        let scalings = |name| self.pin().list(name).map(<[u64]>::len).ok();
        let (m, k) = (scalings("row-scale")?, scalings("column-scale")?);
        pinned(k, m, self.node_cells(NodeId::new(0)).len(), self.pin()).ok()
    }
}

/// The parts of a matrix that the spec states, besides its shape.
struct GivenParts {
    points: Option<Vec<u64>>,
    rows: Option<Vec<u64>>,
    columns: Option<Vec<u64>>,
}

impl GivenParts {
    fn read(spec: &Spec) -> Result<Self> {
        let numbers = |key| -> Result<Option<Vec<u64>>> {
            let numbers = spec.numbers(key)?;
            Ok(numbers.map(|list| list.into_iter().map(|number| number as u64).collect()))
        };
        let given = Self {
            points: numbers("points")?,
            rows: numbers("rows")?,
            columns: numbers("columns")?,
        };
        match given {
            Self { points: None, rows: Some(_), .. } => {
                Err(Error::spec(format!("{spec}: rows are scaled only where points are given")))
            }
            Self { rows: None, columns: Some(_), .. } => Err(Error::spec(format!(
                "{spec}: columns are scaled only where points and rows are given"
            ))),
            given => Ok(given),
        }
    }

    fn write(&self, spec: Spec) -> Spec {
        let lists = [("points", &self.points), ("rows", &self.rows), ("columns", &self.columns)];
        let given = lists.into_iter().filter_map(|(key, list)| Some((key, list.as_ref()?)));
        given.fold(spec, |spec, (key, list)| {
            let numbers: Vec<String> = list.iter().map(u64::to_string).collect();
            spec.with(key, numbers.join("."))
        })
    }
}

/// k, m and w, checked.
pub(super) struct CauchyShape {
    pub(super) k: usize,
    pub(super) m: usize,
    pub(super) w: usize,
}

/// The values of k, m and w that a family of Cauchy matrices accepts.
pub(super) struct FamilyLimits {
    /// The keys of its specs.
    pub(super) keys: &'static [&'static str],
    /// The largest w.
    pub(super) widest: usize,
    /// Returns the largest number of nodes for an m and a w.
    pub(super) most_nodes: fn(usize, usize) -> usize,
}

impl FamilyLimits {
    /// Reads a spec; w defaults to the smallest width that fits.
    pub(super) fn read(&self, spec: &Spec) -> Result<CauchyShape> {
        spec.allow(self.keys)?;
        let (k, m) = (spec.required("k")?, spec.required("m")?);
        if k == 0 || m == 0 {
            return Err(Error::parameters(format!(
                "{spec}: k and m must be at least 1; got k = {k} and m = {m}"
            )));
        }
        let n = k.saturating_add(m);
        let smallest = (1..=self.widest).find(|&w| n <= (self.most_nodes)(m, w));
        let w = spec.number("w")?.or(smallest).unwrap_or(self.widest + 1);
        let most = (self.most_nodes)(m, self.widest);
        if n > most {
            return Err(Error::parameters(format!(
                "{spec}: k + m must be at most {most}; got {k} + {m}"
            )));
        }
        if w == 0 || w > self.widest {
            let widest = self.widest;
            return Err(Error::parameters(format!(
                "{spec}: w must be from 1 to {widest}; got {w}"
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
        Ok(CauchyShape { k, m, w })
    }
}

impl CauchyShape {
    fn matrix(&self, points: &[u64]) -> Result<CauchyMatrix> {
        CauchyMatrix::new(Field::new(self.w as u32)?, self.k, self.m, points)
    }

    fn default_matrix(&self) -> Result<CauchyMatrix> {
        let Self { k, m, w } = *self;
        match table::find(k, m, w) {
            Some(entry) => self.matrix(&entry.points)?.with_rows(&entry.rows),
            None => Ok(self.matrix(&(0..(k + m) as u64).collect::<Vec<_>>())?.normalised()),
        }
    }

    fn code(&self, matrix: &CauchyMatrix, given: &GivenParts) -> Result<Code> {
        let Self { k, m, w } = *self;
        let mut builder = CodeBuilder::new(k + m);
        builder.symbols(&matrix.symbols()?).pin(pin(matrix));
        let spec = Spec::new(FAMILY.name).with("k", k).with("m", m).with("w", w);
        builder.finish(given.write(spec), m)
    }
}

fn pin(matrix: &CauchyMatrix) -> Pin {
    Pin::new()
        .with("polynomial", [matrix.field().polynomial()])
        .with("points", matrix.points())
        .with("row-scale", matrix.row_scalings())
        .with("column-scale", matrix.column_scalings())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(spec: &str) -> Result<Code> {
        Code::new(&spec.parse()?)
    }

    #[test]
    fn the_first_parity_row_is_plain_parity() {
        let code = code("10+4").unwrap();
        assert_eq!(code.spec().to_string(), "cauchy:k=10,m=4,w=4");
        for row in 0..4 {
            let parity = code.node_cells(NodeId::new(10))[row];
            let expected: Vec<u32> = (0..10).map(|node| (node * 4 + row) as u32).collect();
            assert_eq!(code.row(parity), expected);
        }
    }

    #[test]
    fn a_pin_rebuilds_the_same_code() {
        for spec in [
            "4+2",
            "cauchy:k=5,m=3,w=8",
            "cauchy:k=2,m=2,w=3,points=7.1.0.4",
            "cauchy:k=2,m=2,w=3,points=7.1.0.4,rows=1.5",
            "cauchy:k=2,m=2,w=3,points=7.1.0.4,rows=1.5,columns=7.1",
        ] {
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

    /// A spec states just what is needed to make its matrix again.
    #[test]
    fn matrices_have_specs() {
        for spec in [
            "cauchy:k=2,m=2,w=3,points=7.1.0.4",
            "cauchy:k=2,m=2,w=3,points=7.1.0.4,rows=2.5",
            "cauchy:k=2,m=2,w=3,points=7.1.0.4,rows=1.5,columns=2.3",
        ] {
            let code = code(spec).unwrap();
            let matrix = code.cauchy_matrix().unwrap();
            assert_eq!(Code::cauchy(&matrix).unwrap().spec().to_string(), spec);
        }
        assert!(Code::new(&"rdp:k=4".parse().unwrap()).unwrap().cauchy_matrix().is_none());
    }

    #[test]
    fn matrices_that_no_spec_names_are_refused() {
        for field in [Field::with_polynomial(4, 0x19).unwrap(), Field::new(17).unwrap()] {
            let matrix = CauchyMatrix::new(field, 2, 1, &[0, 1, 2]).unwrap();
            let error = Code::cauchy(&matrix).unwrap_err().to_string();
            let part =
                format!("width {} and the polynomial {:#x}", field.width(), field.polynomial());
            assert!(error.ends_with(&part), "{error}");
        }
    }

    #[test]
    fn refusals_say_what_is_legal() {
        for (spec, part) in [
            ("cauchy:k=10", "m is missing"),
            ("cauchy:k=0,m=2", "at least 1"),
            ("cauchy:k=4,m=0", "at least 1"),
            ("cauchy:k=10,m=7,w=4", "use w = 5"),
            ("cauchy:k=10,m=4,w=17", "w must be from 1 to 16; got"),
            ("cauchy:k=70000,m=4", "k + m must be at most 65536; got 70000 + 4"),
            (
                "cauchy:k=18446744073709551615,m=4",
                "k + m must be at most 65536; got 18446744073709551615 + 4",
            ),
            ("cauchy:k=2,m=2,points=1.2.3", "4 distinct points below 4"),
            ("cauchy:k=2,m=2,points=1.2.3.3", "4 distinct points below 4"),
            ("cauchy:k=2,m=2,points=0.1.2.3,rows=1.0", "2 nonzero scalings below 4"),
            ("cauchy:k=2,m=2,rows=1.1", "only where points are given"),
            ("cauchy:k=2,m=2,points=0.1.2.3,columns=1.1", "points and rows are given"),
            ("cauchy:k=2,m=2,x=1", "no parameter x"),
            ("couchy:k=2,m=2", "cauchy"),
            ("cauchy:k=4000,m=4000", "more than"),
        ] {
            let error = code(spec).unwrap_err().to_string();
            assert!(error.contains(part), "{spec}: {error}");
        }
    }
}
