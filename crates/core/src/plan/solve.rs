//! Equations: wanted cells as sums of cells at hand, found in every way that the budget allows.
//!
//! With all data at hand, a code's own definitions are the equations. Otherwise there are three
//! ways:
//!
//! - *structure* follows definitions as equations with one unknown ([`structure`]);
//! - *elimination* expresses each wanted cell by itself ([`Losses`]), in dense rows;
//! - *syndromes* split that work in two ([`syndrome`]).
//!
//! Which way is the cheapest is known only after they have been shortened, so all are returned.

use crate::define::bitmatrix::{ones_of, xor_words};
use crate::define::cells::{CellId, CellSet, Role};
use crate::define::code::Code;
use crate::define::erasure::Losses;
use crate::error::{Error, Result};
use crate::plan::budget::{Budget, Cut};
use crate::plan::equations::{CellSums, Combinations};
use crate::plan::{structure, syndrome};

/// Returns all sets of equations that were found for the wanted cells, at least one.
///
/// # Errors
/// [`crate::ErrorKind::NotEnough`] if some wanted cells are not determined.
pub(super) fn find(
    code: &Code,
    have: &CellSet,
    wanted: &[CellId],
    budget: &mut Budget,
) -> Result<Vec<CellSums>> {
    if let Some(equations) = definitions(code, have, wanted) {
        budget.spend(equations.sources() as u64);
        return Ok(vec![equations]);
    }
    let structured = budget.share(2, |half| structure::solve(code, have, wanted, half));
    let at_hand = |(_, sources): &(CellId, Vec<CellId>)| sources.iter().all(|&s| have.contains(s));
    if let Some(equations) = structured.iter().find(|equations| equations.rows.iter().all(at_hand))
    {
        return Ok(vec![equations.clone()]);
    }
    let mut found = solve(code, have, wanted, structured.is_some(), budget)?;
    found.extend(structured);
    Ok(found)
}

/// Returns the definitions of the wanted cells and of the cells in them. This is encoding: all data
/// in the definitions is at hand, and all derived cells are absent.
fn definitions(code: &Code, have: &CellSet, wanted: &[CellId]) -> Option<CellSums> {
    if have.iter().any(|cell| code.cell(cell).role != Role::Data) {
        return None;
    }
    let mut is_needed = CellSet::from_cells(code.cell_count(), wanted.iter().copied());
    let mut rows = Vec::with_capacity(wanted.len());
    // A definition contains only cells that come before the cell that it defines.
    for cell in (0..=wanted.iter().max()?.index()).rev().map(CellId::new) {
        if !is_needed.contains(cell) || have.contains(cell) {
            continue;
        }
        if code.cell(cell).role == Role::Data {
            return None;
        }
        let sources = code.definition(cell).to_vec();
        sources.iter().for_each(|&source| is_needed.insert(source));
        rows.push((cell, sources));
    }
    rows.reverse();
    Some(CellSums { rows })
}

/// Solves the generator's equations: by syndromes if that takes fewer sources, else each wanted
/// cell by itself. Returns no set if other equations exist already and the budget is too small.
fn solve(
    code: &Code,
    have: &CellSet,
    wanted: &[CellId],
    has_others: bool,
    budget: &mut Budget,
) -> Result<Vec<CellSums>> {
    let unknowns = code.data_cells().iter().filter(|&&cell| !have.contains(cell)).count() as u64;
    // Each row is reduced by half of the rows before it. Beside its own words it carries the same
    // number of words that say which rows were added.
    if has_others && unknowns * unknowns * unknowns.div_ceil(64) > budget.left() {
        budget.cut(Cut::Elimination);
        return Ok(Vec::new());
    }
    let losses = Losses::new(code, have.clone());
    // Expressing all unknowns by the equations takes the same time again.
    budget.spend(2 * losses.steps());
    let single = Single::new(code, &losses, have, wanted)?;
    let syndromes = syndrome::solve(code, &losses, have, wanted, &single.combinations, budget);
    let is_affordable = budget.draw(single.steps());
    if let (Some(syndromes), false) = (&syndromes, is_affordable) {
        budget.cut(Cut::Elimination);
        return Ok(vec![syndromes.clone()]);
    }
    let sums = single.sums(&losses);
    let fewer = syndromes.filter(|equations| equations.sources() < single.sources(&sums));
    Ok(vec![fewer.unwrap_or_else(|| single.equations(code, &losses, have, &sums))])
}

/// The wanted cells, each expressed by itself, without syndromes.
struct Single {
    combinations: Combinations,
    /// Number of words of a bit set of the data at hand.
    words: usize,
}

impl Single {
    fn new(code: &Code, losses: &Losses<'_>, have: &CellSet, wanted: &[CellId]) -> Result<Self> {
        let (mut combinations, mut out_of_reach) = (Vec::with_capacity(wanted.len()), Vec::new());
        for &cell in wanted {
            match losses.combination(cell) {
                Ok(combination) => combinations.push((cell, combination)),
                Err(_) => out_of_reach.push(cell),
            }
        }
        if !out_of_reach.is_empty() {
            return Err(not_enough(code, have, wanted, &out_of_reach));
        }
        let known = code.data_cells().len() - losses.unknowns();
        Ok(Self { combinations, words: known.div_ceil(64) })
    }

    /// Number of steps of [`Single::sums`].
    fn steps(&self) -> u64 {
        let used: usize = self.combinations.iter().map(|(_, used)| used.len() + 1).sum();
        used as u64 * self.words as u64
    }

    /// Returns, for each wanted cell, the data at hand that its sum contains, one bit each.
    fn sums(&self, losses: &Losses<'_>) -> Vec<Vec<u64>> {
        let known = losses.known_parts(losses.equations());
        let cells: Vec<CellId> = self.combinations.iter().map(|(cell, _)| *cell).collect();
        let own = losses.known_parts(&cells);
        let sum = |(row, (_, used)): (usize, &(CellId, Vec<usize>))| {
            let mut sum = own.row(row).to_vec();
            used.iter().for_each(|&equation| xor_words(&mut sum, known.row(equation)));
            sum
        };
        self.combinations.iter().enumerate().map(sum).collect()
    }

    fn sources(&self, sums: &[Vec<u64>]) -> usize {
        let parities: usize = self.combinations.iter().map(|(_, used)| used.len()).sum();
        parities + sums.iter().map(|sum| ones_of(sum).count()).sum::<usize>()
    }

    fn equations(
        &self,
        code: &Code,
        losses: &Losses<'_>,
        have: &CellSet,
        sums: &[Vec<u64>],
    ) -> CellSums {
        let known: Vec<CellId> =
            code.data_cells().iter().copied().filter(|&cell| have.contains(cell)).collect();
        let row = |((cell, used), sum): (&(CellId, Vec<usize>), &Vec<u64>)| {
            let parities = used.iter().map(|&equation| losses.equations()[equation]);
            let mut sources: Vec<CellId> =
                ones_of(sum).map(|column| known[column]).chain(parities).collect();
            sources.sort_unstable();
            (*cell, sources)
        };
        CellSums { rows: self.combinations.iter().zip(sums).map(row).collect() }
    }
}

fn not_enough(code: &Code, have: &CellSet, wanted: &[CellId], out_of_reach: &[CellId]) -> Error {
    let names: Vec<String> = out_of_reach.iter().take(8).map(|&c| code.cell_name(c)).collect();
    let more = if out_of_reach.len() > names.len() { ", …" } else { "" };
    Error::not_enough(format!(
        "{}: {} of the {} wanted cells cannot be computed from the {} at hand: {}{more}",
        code.spec(),
        out_of_reach.len(),
        wanted.len(),
        have.len(),
        names.join(", ")
    ))
}
