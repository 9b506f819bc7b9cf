//! Decoding by syndromes: first computes the contribution of the lost data to each parity, then the
//! lost data from these contributions.
//!
//! Elimination expresses a lost cell by cells at hand, which takes dense rows over all of them.
//! Most of that work is repeated, because the known part of each parity is summed up again for each
//! lost cell. Here it is summed up once. The *syndrome* of a parity cell is its XOR with the known
//! data in its row; computing the syndromes costs about as much as encoding. The lost data solves a
//! small system over the syndromes, which is as sparse as the code's matrix. The inverse of the
//! system is dense, so it is solved by triangular factors instead. The pivots are chosen to cause
//! the least fill-in (Markowitz, *The elimination form of the inverse and its application to linear
//! programming*, 1957); for example, plain parity gives the last node by itself. Lost parity comes
//! last, from the complete data.
//!
//! Choosing pivots takes time cubic in the unknowns. If the budget does not suffice for that, the
//! lost data is computed by the inverse, whose rows elimination has found already.

use std::collections::{HashMap, HashSet};

use crate::define::bitmatrix::BitMatrix;
use crate::define::cells::{CellId, CellSet, Role};
use crate::define::code::Code;
use crate::define::erasure::Losses;
use crate::plan::budget::{Budget, Cut};
use crate::plan::equations::{CellSums, Combinations};

/// Returns the wanted cells by syndromes, or `None` if some lost data cell that they need is not
/// determined. `combinations` are those of the wanted cells.
pub(super) fn solve(
    code: &Code,
    losses: &Losses<'_>,
    have: &CellSet,
    wanted: &[CellId],
    combinations: &Combinations,
    budget: &mut Budget,
) -> Option<CellSums> {
    let unknowns = with_combinations(losses, unknown_data(code, have, wanted), combinations)?;
    let parity = wanted.iter().filter(|&&cell| code.cell(cell).role != Role::Data);
    let parity = parity.map(|&cell| (cell, data_of(code, cell).collect()));
    let mut rows = match by_factors(code, losses, have, &unknowns, budget) {
        Factors::Found(rows) => rows,
        Factors::Undetermined => return None,
        Factors::TooMany => {
            budget.cut(Cut::Pivots);
            by_inverse(code, losses, have, unknowns)
        }
    };
    rows.extend(parity);
    Some(CellSums { rows })
}

/// Returns unknown cells with the equations that each is the sum of, or `None` if one is not
/// determined. Combinations that were found for wanted cells are used again.
fn with_combinations(
    losses: &Losses<'_>,
    unknowns: Vec<CellId>,
    found: &Combinations,
) -> Option<Combinations> {
    let found: HashMap<CellId, &Vec<usize>> =
        found.iter().map(|(cell, combination)| (*cell, combination)).collect();
    let combination = |cell: CellId| match found.get(&cell) {
        Some(&combination) => Some((cell, combination.clone())),
        None => Some((cell, losses.combination(cell).ok()?)),
    };
    unknowns.into_iter().map(combination).collect()
}

/// Divisor of the remaining budget. Choosing pivots may take at most this part of it, counted as if
/// the matrix stayed as sparse as it is at first. In fact elimination fills it in, and then
/// choosing takes many times as long.
const DENSE: u64 = 3;

/// The result of looking for triangular factors.
enum Factors {
    Found(Vec<(CellId, Vec<CellId>)>),
    /// Some unknown is not determined.
    Undetermined,
    /// The budget does not suffice.
    TooMany,
}

fn by_factors(
    code: &Code,
    losses: &Losses<'_>,
    have: &CellSet,
    unknowns: &Combinations,
    budget: &mut Budget,
) -> Factors {
    // For every pivot, at least one word is examined in each row.
    let least = (unknowns.len() as u64).pow(2) * unknowns.len().div_ceil(64) as u64;
    if least > budget.left() / DENSE {
        return Factors::TooMany;
    }
    let Some(system) = System::new(code, losses, have, unknowns) else {
        return Factors::Undetermined;
    };
    let elimination = Elimination::of(&system);
    // The factors of a dense matrix are as dense as the inverse, whose rows are independent of each
    // other.
    if elimination.steps() * system.unknowns.len() as u64 > budget.left() / DENSE {
        return Factors::TooMany;
    }
    let mut rows = system.syndromes();
    match budget.share(2, |half| elimination.run(half)) {
        Ok(Some(solved)) => {
            rows.extend(solved);
            Factors::Found(rows)
        }
        Ok(None) => Factors::Undetermined,
        Err(Spent) => Factors::TooMany,
    }
}

/// Computes each unknown by itself as a sum of syndromes.
fn by_inverse(
    code: &Code,
    losses: &Losses<'_>,
    have: &CellSet,
    unknowns: Combinations,
) -> Vec<(CellId, Vec<CellId>)> {
    let mut syndromes: HashMap<usize, CellId> = HashMap::new();
    let (mut rows, mut solved) = (Vec::new(), Vec::with_capacity(unknowns.len()));
    for (unknown, used) in unknowns {
        let sources = used.into_iter().map(|equation| {
            *syndromes.entry(equation).or_insert_with(|| {
                let parity = losses.equations()[equation];
                let known = data_of(code, parity).filter(|&cell| have.contains(cell));
                let known: Vec<CellId> = known.chain([parity]).collect();
                // A parity cell whose row has no known data is its own syndrome.
                let [_, _, ..] = known[..] else { return parity };
                let name = CellId::new(code.cell_count() + rows.len());
                rows.push((name, known));
                name
            })
        });
        solved.push((unknown, sources.collect()));
    }
    rows.extend(solved);
    rows
}

/// Returns the data cells in a cell's generator row.
fn data_of(code: &Code, cell: CellId) -> impl Iterator<Item = CellId> {
    code.row(cell).iter().map(|&data| code.data_cells()[data as usize])
}

/// Returns the data cells not at hand that the wanted cells depend on, each once.
fn unknown_data(code: &Code, have: &CellSet, wanted: &[CellId]) -> Vec<CellId> {
    let mut seen = HashSet::new();
    let data = wanted.iter().flat_map(|&cell| data_of(code, cell));
    data.filter(|&cell| !have.contains(cell) && seen.insert(cell)).collect()
}

/// One parity cell in use.
struct Syndrome {
    /// Its cell, whose number is beyond those of the code's cells.
    name: CellId,
    /// The parity cell and the known data in its row.
    known: Vec<CellId>,
    /// The data in its row that is not at hand.
    unknown: Vec<CellId>,
}

/// A square system: it has one syndrome for each unknown, and the syndromes determine the unknowns.
struct System {
    syndromes: Vec<Syndrome>,
    /// The unknowns that are needed, then others in the same equations.
    unknowns: Vec<CellId>,
    needed: usize,
    /// The first number that no cell has.
    unnamed: usize,
}

impl System {
    fn new(
        code: &Code,
        losses: &Losses<'_>,
        have: &CellSet,
        combinations: &Combinations,
    ) -> Option<Self> {
        let needed = combinations.len();
        let mut unknowns: Vec<CellId> = combinations.iter().map(|(cell, _)| *cell).collect();
        let mut seen: HashSet<CellId> = unknowns.iter().copied().collect();
        let mut syndromes = Vec::new();
        let mut next = 0;
        while let Some(&cell) = unknowns.get(next) {
            let more: Vec<usize>;
            let equations = match combinations.get(next) {
                Some((_, equations)) => equations,
                None => {
                    more = losses.combination(cell).ok()?;
                    &more
                }
            };
            for &equation in equations {
                let parity = losses.equations()[equation];
                if seen.insert(parity) {
                    let (mut known, unknown): (Vec<CellId>, Vec<CellId>) =
                        data_of(code, parity).partition(|&cell| have.contains(cell));
                    known.push(parity);
                    unknowns.extend(unknown.iter().filter(|&&cell| seen.insert(cell)));
                    let name = CellId::new(code.cell_count() + syndromes.len());
                    syndromes.push(Syndrome { name, known, unknown });
                }
            }
            next += 1;
        }
        let unnamed = code.cell_count() + syndromes.len();
        Some(Self { syndromes, unknowns, needed, unnamed })
    }

    fn syndromes(&self) -> Vec<(CellId, Vec<CellId>)> {
        let row = |syndrome: &Syndrome| (syndrome.name, syndrome.known.clone());
        self.syndromes.iter().map(row).collect()
    }

    /// Returns the matrix with a row for each syndrome and a column for each unknown.
    fn matrix(&self) -> BitMatrix {
        let columns: HashMap<CellId, usize> =
            self.unknowns.iter().enumerate().map(|(column, &cell)| (cell, column)).collect();
        let support = |syndrome: &Syndrome| -> Vec<usize> {
            syndrome.unknown.iter().map(|cell| columns[cell]).collect()
        };
        let supports: Vec<Vec<usize>> = self.syndromes.iter().map(support).collect();
        BitMatrix::from_supports(self.unknowns.len(), &supports)
    }
}

/// The budget did not suffice.
struct Spent;

/// Cells and the sums that give them, in the order in which they are computed.
type MadeSums = Vec<(CellId, Vec<CellId>)>;

/// An elimination in progress.
struct Elimination<'a> {
    system: &'a System,
    matrix: BitMatrix,
    /// Rows that have not been a pivot yet.
    open: Vec<usize>,
    /// For each row, the cells whose XOR is its right side.
    sums: Vec<Vec<CellId>>,
    /// For each column, the number of ones in open rows.
    uses: Vec<usize>,
}

impl<'a> Elimination<'a> {
    fn of(system: &'a System) -> Self {
        let matrix = system.matrix();
        let mut uses = vec![0; matrix.columns()];
        (0..matrix.rows()).for_each(|row| matrix.support(row).for_each(|c| uses[c] += 1));
        let sums = system.syndromes.iter().map(|syndrome| vec![syndrome.name]).collect();
        Self { open: (0..matrix.rows()).collect(), system, matrix, sums, uses }
    }

    /// Returns the right sides of the pivots, then the unknowns in reverse order of their pivots.
    /// Returns `None` if the system does not determine the unknowns.
    fn run(mut self, budget: &mut Budget) -> Result<Option<MadeSums>, Spent> {
        let (mut forward, mut pivots) = (Vec::new(), Vec::new());
        for _ in 0..self.system.unknowns.len() {
            if !budget.draw(self.steps()) {
                return Err(Spent);
            }
            let Some((row, column)) = self.pivot() else { return Ok(None) };
            let side = self.side(row, &mut forward);
            self.eliminate(row, column, side);
            pivots.push((row, column, side));
        }
        let unknown = |(row, column, side)| {
            let others = self.matrix.support(row).filter(|&other| other != column);
            let others = others.map(|other| self.system.unknowns[other]);
            (self.system.unknowns[column], others.chain([side]).collect())
        };
        forward.extend(pivots.into_iter().rev().map(unknown));
        Ok(Some(forward))
    }

    /// Number of steps until the next pivot is found: every one (set bit) in an open row is
    /// examined, and every word.
    fn steps(&self) -> u64 {
        let ones: usize = self.uses.iter().sum();
        (2 * ones + self.open.len() * self.matrix.columns().div_ceil(64)) as u64
    }

    /// Returns the pivot that causes the least fill-in. Pivots of unneeded unknowns come first, so
    /// that these unknowns would be computed last, and can be left out.
    fn pivot(&self) -> Option<(usize, usize)> {
        let ones = self.open.iter().flat_map(|&row| {
            let length = self.matrix.support(row).count();
            self.matrix.support(row).map(move |column| (row, column, length))
        });
        let fill = |&(row, column, length): &(usize, usize, usize)| {
            let needed = column < self.system.needed;
            (needed, (length - 1) * (self.uses[column] - 1), row, column)
        };
        let (row, column, _) = ones.min_by_key(fill)?;
        Some((row, column))
    }

    /// Returns the cell of a row's right side: its syndrome, or a new cell.
    fn side(&mut self, row: usize, forward: &mut Vec<(CellId, Vec<CellId>)>) -> CellId {
        let sum = std::mem::take(&mut self.sums[row]);
        match sum[..] {
            [syndrome] => syndrome,
            _ => {
                let name = CellId::new(self.system.unnamed + row);
                forward.push((name, sum));
                name
            }
        }
    }

    /// Clears a column in all open rows but the pivot's.
    fn eliminate(&mut self, pivot: usize, column: usize, side: CellId) {
        self.count(pivot, false);
        self.open.retain(|&row| row != pivot);
        for row in self.open.clone() {
            if self.matrix.get(row, column) {
                self.count(row, false);
                self.matrix.add_row(pivot, row);
                self.count(row, true);
                self.sums[row].push(side);
            }
        }
    }

    /// Adds a row's ones to the uses, or removes them.
    fn count(&mut self, row: usize, add: bool) {
        for column in self.matrix.support(row) {
            self.uses[column] = if add { self.uses[column] + 1 } else { self.uses[column] - 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::{NodeId, cancel_pairs};
    use crate::define::erasure::combinations;

    fn code(spec: &str) -> Code {
        Code::new(&spec.parse().unwrap()).unwrap()
    }

    fn solved(code: &Code, lost: &[usize], wanted: &[usize]) -> Option<CellSums> {
        let nodes = |list: &[usize]| list.iter().copied().map(NodeId::new).collect::<Vec<_>>();
        let lost = nodes(lost);
        let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
        let wanted: Vec<CellId> = code.cells_of(nodes(wanted)).iter().collect();
        let losses = Losses::new(code, have.clone());
        solve(code, &losses, &have, &wanted, &Vec::new(), &mut Budget::unlimited())
    }

    /// Returns the generator row of every cell that the equations compute, in their order.
    fn made(code: &Code, equations: &CellSums) -> Vec<(CellId, Vec<u32>)> {
        let mut made: Vec<(CellId, Vec<u32>)> = Vec::new();
        for (cell, sources) in &equations.rows {
            let row = |source: &CellId| match made.iter().find(|(cell, _)| cell == source) {
                Some((_, row)) => row.clone(),
                None => code.row(*source).to_vec(),
            };
            let mut sum: Vec<u32> = sources.iter().flat_map(row).collect();
            cancel_pairs(&mut sum);
            made.push((*cell, sum));
        }
        made
    }

    #[test]
    fn every_loss_is_what_it_was() {
        for (spec, nodes, most) in [("cauchy:k=4,m=3", 7, 3), ("cauchy:k=3,m=3,w=8", 6, 3)] {
            let code = code(spec);
            for lost in (1..=most).flat_map(|count| combinations(nodes, count)) {
                let made = made(&code, &solved(&code, &lost, &lost).unwrap());
                for cell in code.cells_of(lost.iter().copied().map(NodeId::new)).iter() {
                    let row =
                        made.iter().find(|(other, _)| *other == cell).map(|(_, row)| &row[..]);
                    assert_eq!(row, Some(code.row(cell)), "{spec} {lost:?}");
                }
                let true_rows = made.iter().filter(|(cell, _)| cell.index() < code.cell_count());
                assert!(true_rows.into_iter().all(|(cell, row)| row == code.row(*cell)));
            }
        }
    }

    /// Unwanted cells are computed after the wanted ones.
    #[test]
    fn wanted_cells_do_not_wait_for_others() {
        let code = code("cauchy:k=4,m=3");
        let equations = solved(&code, &[0, 1, 2], &[1]).unwrap();
        let lost = |cell: &CellId| cell.index() < code.cell_count();
        let cells: Vec<CellId> =
            equations.rows.iter().map(|(cell, _)| *cell).filter(lost).collect();
        assert_eq!(cells.len(), 9);
        let wanted = code.node_cells(NodeId::new(1));
        assert!(cells[..3].iter().all(|cell| wanted.contains(cell)), "{cells:?}");
    }

    /// Without steps for choosing pivots, the inverse is used.
    #[test]
    fn big_systems_are_solved_by_the_inverse() {
        for (spec, lost) in [("cauchy:k=4,m=3", &[0, 1][..]), ("cauchy:k=3,m=3,w=8", &[0, 1, 2])] {
            let code = code(spec);
            let lost: Vec<NodeId> = lost.iter().copied().map(NodeId::new).collect();
            let have = code.cells_of(code.nodes().filter(|node| !lost.contains(node)));
            let wanted: Vec<CellId> = code.cells_of(lost).iter().collect();
            let (losses, mut budget) = (Losses::new(&code, have.clone()), Budget::new(0));
            let equations =
                solve(&code, &losses, &have, &wanted, &Vec::new(), &mut budget).unwrap();
            assert_eq!(budget.into_account().cuts, [Cut::Pivots]);
            let made = made(&code, &equations);
            for cell in wanted {
                assert!(made.iter().any(|(other, row)| *other == cell && row == code.row(cell)));
            }
        }
    }

    #[test]
    fn too_many_losses_are_not_solved() {
        assert!(solved(&code("cauchy:k=4,m=2"), &[0, 1, 2], &[0]).is_none());
    }
}
