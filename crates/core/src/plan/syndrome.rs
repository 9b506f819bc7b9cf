//! Decoding by syndromes: what the losses add to each parity first, then the losses from that.
//!
//! Elimination expresses a lost cell by cells at hand, which takes dense rows over all of them. Most of
//! that is the same work over and over: the known part of each parity that is used. Here it is
//! done once. The *syndrome* of a parity cell is its XOR with the known data in its row; that is about
//! what encoding costs. Lost data is a sum of syndromes, a small dense system; and where an
//! equation has a single unknown left, as plain parity has after all nodes but one, that
//! gives the unknown more cheaply. Lost parity comes last, from data that is whole again.

use std::collections::{HashMap, HashSet};

use crate::define::cells::{CellId, CellSet, Code, Role};
use crate::define::erasure::Losses;
use crate::plan::Equations;

/// The wanted cells by syndromes, or `None` where some lost data cell that they need is not
/// determined by itself.
pub(super) fn solve(
    code: &Code,
    losses: &Losses<'_>,
    have: &CellSet,
    wanted: &[CellId],
) -> Option<Equations> {
    let unknown = unknown_data(code, have, wanted);
    let solutions: Vec<(CellId, Vec<CellId>)> = unknown
        .into_iter()
        .map(|cell| losses.solution(cell).map(|solution| (cell, solution)))
        .collect::<Option<_>>()?;
    let mut system = System::new(code, have, &solutions);
    let mut rows = system.syndromes();
    rows.extend(system.losses(solutions)?);
    for &cell in wanted.iter().filter(|&&cell| code.cell(cell).role != Role::Data) {
        rows.push((cell, data_of(code, cell).collect()));
    }
    Some(Equations { rows })
}

/// The data cells in a cell's generator row.
fn data_of(code: &Code, cell: CellId) -> impl Iterator<Item = CellId> {
    code.row(cell).iter().map(|&data| code.data_cells()[data as usize])
}

/// The data cells not at hand that wanted cells are made of, each once.
fn unknown_data(code: &Code, have: &CellSet, wanted: &[CellId]) -> Vec<CellId> {
    let mut seen = HashSet::new();
    let data = wanted.iter().flat_map(|&cell| data_of(code, cell));
    data.filter(|&cell| !have.contains(cell) && seen.insert(cell)).collect()
}

/// One parity cell in use.
struct Syndrome {
    /// A number beyond those of the code's cells.
    name: CellId,
    /// The parity cell and the known data in its row.
    known: Vec<CellId>,
    /// The data in its row that is not at hand.
    unknown: Vec<CellId>,
}

struct System {
    syndromes: Vec<Syndrome>,
    by_parity: HashMap<CellId, usize>,
}

impl System {
    fn new(code: &Code, have: &CellSet, solutions: &[(CellId, Vec<CellId>)]) -> Self {
        let mut system = Self { syndromes: Vec::new(), by_parity: HashMap::new() };
        for &parity in solutions.iter().flat_map(|(_, solution)| solution) {
            let number = system.syndromes.len();
            if system.by_parity.contains_key(&parity) {
                continue;
            }
            let (mut known, unknown): (Vec<CellId>, Vec<CellId>) =
                data_of(code, parity).partition(|&cell| have.contains(cell));
            known.push(parity);
            let name = CellId::new(code.cell_count() + number);
            system.syndromes.push(Syndrome { name, known, unknown });
            system.by_parity.insert(parity, number);
        }
        system
    }

    fn syndromes(&self) -> Vec<(CellId, Vec<CellId>)> {
        let row = |syndrome: &Syndrome| (syndrome.name, syndrome.known.clone());
        self.syndromes.iter().map(row).collect()
    }

    /// Lost cells in the order in which they are made: next comes the one that takes fewest sources.
    fn losses(
        &mut self,
        mut left: Vec<(CellId, Vec<CellId>)>,
    ) -> Option<Vec<(CellId, Vec<CellId>)>> {
        let mut done: HashSet<CellId> = HashSet::new();
        let mut rows = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let ready = self.syndromes.iter().filter_map(|syndrome| syndrome.single(&done));
            let cheapest = ready.min_by_key(|(_, sources)| sources.len());
            let (place, solution) = left
                .iter()
                .enumerate()
                .min_by_key(|(_, (_, solution))| solution.len())
                .map(|(place, (_, solution))| (place, solution.len()))?;
            let (cell, sources) = match cheapest {
                Some((cell, sources)) if sources.len() <= solution => {
                    left.retain(|(other, _)| *other != cell);
                    (cell, sources)
                }
                _ => {
                    let (cell, solution) = left.remove(place);
                    let name = |parity: &CellId| self.syndromes[self.by_parity[parity]].name;
                    (cell, solution.iter().map(name).collect())
                }
            };
            done.insert(cell);
            rows.push((cell, sources));
        }
        Some(rows)
    }
}

impl Syndrome {
    /// The only unknown that is not done, if there is just one, and what it is the XOR of.
    fn single(&self, done: &HashSet<CellId>) -> Option<(CellId, Vec<CellId>)> {
        let mut left = self.unknown.iter().filter(|cell| !done.contains(cell));
        let (&cell, None) = (left.next()?, left.next()) else { return None };
        let others = self.unknown.iter().copied().filter(|&other| other != cell);
        Some((cell, [self.name].into_iter().chain(others).collect()))
    }
}
