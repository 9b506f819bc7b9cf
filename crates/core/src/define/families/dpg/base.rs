//! The base codes C and C̄ of a group. A base code may be of any family of this crate that gives k
//! data nodes and m2 parity nodes, all with the same number of rows, and survives the loss of any
//! m2 nodes. If the family is in the word layout, the group stores the bits of its symbols in
//! packets.
//!
//! Parameters of a spec that do not belong to the group belong to C. They also apply to C̄ if it is
//! of the same family, unless `bar-KEY` gives another value.

use crate::define::cells::{CellId, NodeId, Role};
use crate::define::code::Code;
use crate::define::families::cauchy;
use crate::define::families::dpg::shape::{DpgShape, NAMES};
use crate::define::pin::Pin;
use crate::define::spec::Spec;
use crate::error::{Error, Result};

const DEFAULT_FAMILY: &str = "cauchy";

/// The keys that belong to the group and not to a base code.
const OWN: [&str; 6] = ["k", "m", "m2", "base", "bar", "interleave"];

/// Prefix of the parameters and pinned numbers of C̄.
const BAR: &str = "bar-";

/// Families whose number of parity nodes is fixed.
const WITHOUT_M: [&str; 8] =
    ["blaum-roth", "evenodd", "liber8tion", "liberation", "qfs", "raid6", "rdp", "star"];

/// C, and C̄ if it is another code.
#[derive(Debug)]
pub(super) struct Bases {
    c: Code,
    bar: Option<Code>,
}

impl Bases {
    /// Returns the codes that a spec names. For `bbdpg` each is chosen for the number of parities
    /// that stage one uses (section 4.8): C for all if groups are coupled, C̄ for the first m.
    pub(super) fn define(spec: &Spec, shape: DpgShape) -> Result<Self> {
        let DpgShape { k, m, m2, .. } = shape;
        let (c, bar) = base_specs(spec, k, m2)?;
        let c = match bar.is_none() || shape.is_coupled() {
            true => Code::new(&c)?,
            false => made_for_first(&c, m)?,
        };
        let bar = bar.map(|bar| made_for_first(&bar, m)).transpose()?;
        Self::checked(spec, c, bar, k, m2)
    }

    /// Returns the codes that a spec and a pin name.
    pub(super) fn rebuild(spec: &Spec, k: usize, m2: usize, pin: &Pin) -> Result<Self> {
        let (c, bar) = base_specs(spec, k, m2)?;
        let (of_c, of_bar) = split(pin);
        let bar = bar.map(|bar| Code::rebuild(&bar, &of_bar)).transpose()?;
        Self::checked(spec, Code::rebuild(&c, &of_c)?, bar, k, m2)
    }

    fn checked(spec: &Spec, c: Code, bar: Option<Code>, k: usize, m2: usize) -> Result<Self> {
        for code in [Some(&c), bar.as_ref()].into_iter().flatten() {
            expect_serves(spec, code, k, m2)?;
        }
        let bases = Self { c, bar };
        let (width, other) = (bases.width(), rows(bases.bar()));
        if width != other {
            return Err(Error::parameters(format!(
                "{spec}: {} and {} have {width} rows a node and {other}; choose parameters that \
                 give both as many",
                bases.c().spec(),
                bases.bar().spec()
            )));
        }
        Ok(bases)
    }

    pub(super) fn c(&self) -> &Code {
        &self.c
    }

    pub(super) fn bar(&self) -> &Code {
        self.bar.as_ref().unwrap_or(&self.c)
    }

    /// Number of rows of a symbol.
    pub(super) fn width(&self) -> usize {
        rows(&self.c)
    }

    /// Returns the numbers that pin both codes.
    pub(super) fn pin(&self) -> Pin {
        let mut pin = self.c.pin().clone();
        for (name, numbers) in self.bar.iter().flat_map(|bar| bar.pin().entries()) {
            pin = pin.with(&format!("{BAR}{name}"), numbers.iter().copied());
        }
        pin
    }

    /// Adds the base codes and their parameters to `spec`, a group's canonical spec so far.
    pub(super) fn write(&self, spec: Spec) -> Spec {
        let (c, bar) = (self.c().spec(), self.bar().spec());
        let mut spec = parameters(c)
            .fold(spec.with("base", c.family()), |spec, (key, value)| spec.with(key, value));
        if bar.family() != c.family() {
            spec = spec.with("bar", bar.family());
        }
        let known = |key: &str, value: &str| {
            bar.family() == c.family() && c.text(key).is_some_and(|of_c| of_c == value)
        };
        let others = parameters(bar).filter(|&(key, value)| !known(key, value));
        others.fold(spec, |spec, (key, value)| spec.with(&format!("{BAR}{key}"), value))
    }
}

/// Returns the code of a spec. A family that has several matrices to choose from gives the one with
/// the best first `m` parities.
fn made_for_first(spec: &Spec, m: usize) -> Result<Code> {
    match spec.family() == DEFAULT_FAMILY && spec.text("points").is_none() {
        true => cauchy::for_first_parities(spec, m),
        false => Code::new(spec),
    }
}

/// Returns the specs of C, and of C̄ in a family with two codes.
fn base_specs(spec: &Spec, k: usize, m2: usize) -> Result<(Spec, Option<Spec>)> {
    let base = spec.text("base").unwrap_or(DEFAULT_FAMILY);
    let family = spec.text("bar").unwrap_or(base);
    if let Some(name) = [base, family].iter().find(|name| NAMES.contains(name)) {
        return Err(Error::spec(format!("{spec}: {name} cannot be the base of a group itself")));
    }
    let has_bar = spec.family() == NAMES[1];
    if let Some((key, _)) = spec.parameters().find(|(key, _)| !has_bar && key.starts_with("bar")) {
        return Err(Error::spec(format!(
            "{} has no parameter {key}; bbdpg has a second base code",
            spec.family()
        )));
    }
    let given = || spec.parameters().filter(|(key, _)| !OWN.contains(key));
    let of_c = || given().filter(|(key, _)| !key.starts_with(BAR));
    let of_bar = || given().filter_map(|(key, value)| Some((key.strip_prefix(BAR)?, value)));
    let is_same = |key: &str| family == base && !of_bar().any(|(other, _)| other == key);
    let write = |spec: Spec, (key, value): (&str, &str)| spec.with(key, value);
    let c = of_c().fold(sizes(base, k, m2), write);
    let of_bar = of_c().filter(|&(key, _)| is_same(key)).chain(of_bar());
    let bar = has_bar.then(|| of_bar.fold(sizes(family, k, m2), write));
    Ok((c, bar))
}

/// Returns the beginning of a base code's spec: its family and sizes.
fn sizes(family: &str, k: usize, m2: usize) -> Spec {
    let spec = Spec::new(family).with("k", k);
    if WITHOUT_M.contains(&family) { spec } else { spec.with("m", m2) }
}

/// Parameters of a base code's canonical spec that the group's spec does not already contain.
fn parameters(spec: &Spec) -> impl Iterator<Item = (&str, &str)> {
    spec.parameters().filter(|(key, _)| !OWN.contains(key))
}

fn split(pin: &Pin) -> (Pin, Pin) {
    let start = (Pin::new(), Pin::new());
    pin.entries().fold(start, |(c, bar), (name, numbers)| {
        let numbers = numbers.iter().copied();
        match name.strip_prefix(BAR) {
            None => (c.with(name, numbers), bar),
            Some(name) => (c, bar.with(name, numbers)),
        }
    })
}

fn rows(code: &Code) -> usize {
    code.node_cells(NodeId::new(0)).len()
}

/// Refuses a code unless it has k data nodes and then m2 parity nodes, with equally many rows, and
/// tolerates any m2 losses.
fn expect_serves(spec: &Spec, code: &Code, k: usize, m2: usize) -> Result<()> {
    let rows = rows(code);
    let holds = |node: NodeId, data: bool| {
        let is = |&cell: &CellId| (code.cell(cell).role == Role::Data) == data;
        code.node_cells(node).len() == rows && code.node_cells(node).iter().all(is)
    };
    let plain = code.stages() == 1 && code.nodes().all(|node| holds(node, node.index() < k));
    if !plain || code.node_count() < k {
        return Err(Error::parameters(format!(
            "{spec}: {} cannot be the base of a group, which needs {k} data nodes and then parity \
             nodes",
            code.spec()
        )));
    }
    let parities = code.node_count() - k;
    if parities == m2 && code.tolerance() == m2 {
        return Ok(());
    }
    let (family, survives) = (code.spec().family(), code.tolerance());
    Err(Error::parameters(match parities == m2 {
        true => format!("{spec}: {family} survives any {survives} losses, not m2 = {m2}"),
        false => format!("{spec}: {family} has {parities} parity nodes, not m2 = {m2}"),
    }))
}
