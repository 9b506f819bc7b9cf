//! Reading few cells: which of the cells at hand suffice.
//!
//! A lost node can be rebuilt from any parity, and the cheapest computation often reads more cells
//! than necessary. If every lost cell lies on a row and on a diagonal, half of the cells can be
//! rebuilt by rows and half by diagonals. Cells where both cross are then read only once: about
//! three quarters of what rows alone read. Xiang, Xu, Lui and Chang, *Optimal recovery of single
//! disk failure in RDP code storage systems* (SIGMETRICS 2010) prove that to be the least for RDP;
//! Wang, Dimakis and Bruck, *Rebuilding for array codes in distributed storage systems* (2010) do
//! the same with EVENODD, Khan, Burns, Plank, Pierce and Huang (FAST 2012) with any code.
//!
//! Nothing here depends on a family. The equations are the code's definitions, as for
//! [`structure`](super::structure); each has some unknown cells and some cells at hand. A *basis*
//! is a set of independent equations, as many as there are unknown cells. It gives every unknown
//! cell as one sum of equations. The cells at hand that remain in the sums for the wanted cells are
//! the ones that are read. Auxiliary cells (EVENODD's S) are unknown cells that are not wanted; a
//! basis that gives S may use S or not, whichever reads less.
//!
//! The search descends: it begins with a basis and exchanges an equation for another as long as
//! that lowers the number of reads. It begins several times. One start is the basis of the
//! equations that come first. Every other start begins with a single equation and repeatedly adds
//! the equation that adds the fewest cells to those already read. This heuristic is deterministic.
//! The tests compare it with all bases for small primes and, for larger primes, with the proved
//! optimum if there is one. (A single start was not enough: the nodes of X-Code are all alike, but
//! it found 72 cells for most of 11 nodes and 73 for two.)

use crate::define::bitmatrix::Echelon;
use crate::define::cells::{CellId, CellSet, Role, cancel_pairs};
use crate::define::code::Code;
use crate::plan::budget::{Budget, Cut};
use crate::plan::structure::{Unknowns, equation};

/// Upper bound on the unknown cells for which fewer reads are searched.
const MOST_UNKNOWN: usize = 1 << 9;

/// Number of equations, evenly spaced, from which the search begins.
const STARTS: usize = 16;

/// Upper bound on the steps of the search, some tens of milliseconds.
const MOST_STEPS: u64 = 1 << 25;

/// Returns the smallest set of cells at hand found by the search that determines the wanted cells.
/// Returns `None` if even all cells at hand do not determine them, or if there are too many unknown
/// cells to search.
pub(super) fn narrow(
    code: &Code,
    have: &CellSet,
    wanted: &[CellId],
    budget: &mut Budget,
) -> Option<CellSet> {
    let Some(system) = ReadSystem::new(code, have, wanted) else {
        budget.cut(Cut::Reads);
        return None;
    };
    let mut search = Budget::new(MOST_STEPS.min(budget.left()));
    let mut fewest: Option<CellSet> = None;
    for start in system.starts() {
        if !search.draw(system.start_steps(start)) {
            budget.cut(Cut::Reads);
            break;
        }
        let basis = start.map_or_else(|| system.first_basis(), |first| system.frugal_basis(first));
        let Some(reads) = system.descend(basis, &mut search) else { break };
        if fewest.as_ref().is_none_or(|fewest| reads.len() < fewest.len()) {
            fewest = Some(reads);
        }
    }
    if search.left() == 0 {
        budget.cut(Cut::Reads);
    }
    budget.spend(search.into_account().spent);
    fewest
}

/// An equation between unknown cells and cells at hand.
struct CellEquation {
    /// The unknown cells, one bit each.
    unknown: Vec<u64>,
    known: Vec<CellId>,
}

struct ReadSystem {
    cells: usize,
    unknowns: usize,
    equations: Vec<CellEquation>,
    /// The wanted cells, each as a bit set of one bit.
    wanted: Vec<Vec<u64>>,
}

/// Numbers of independent equations that together give every cell that all equations give.
type Basis = Vec<usize>;

impl ReadSystem {
    fn new(code: &Code, have: &CellSet, wanted: &[CellId]) -> Option<Self> {
        let derived = code.cells().filter(|&cell| code.cell(cell).role != Role::Data);
        let all: Vec<Vec<CellId>> = derived.map(|cell| equation(code, cell)).collect();
        let named = all.iter().flatten().chain(wanted).copied();
        let unknowns = Unknowns::new(named.filter(|&cell| !have.contains(cell)));
        if unknowns.cells.len() > MOST_UNKNOWN {
            return None;
        }
        let open = all.into_iter().filter(|cells| cells.iter().any(|&cell| !have.contains(cell)));
        let equations = open.map(|mut cells| {
            let unknown = unknowns.row(&cells);
            cells.retain(|&cell| have.contains(cell));
            CellEquation { unknown, known: cells }
        });
        Some(Self {
            cells: code.cell_count(),
            equations: equations.collect(),
            wanted: wanted.iter().map(|&cell| unknowns.row(&[cell])).collect(),
            unknowns: unknowns.cells.len(),
        })
    }

    /// Starting points of the search: the frugal basis of an equation, or the first basis.
    fn starts(&self) -> impl Iterator<Item = Option<usize>> {
        let step = self.equations.len().div_ceil(STARTS).max(1);
        (0..self.equations.len()).step_by(step).map(Some).chain([None])
    }

    /// Number of steps for finding the first basis of a search. A frugal basis examines all
    /// equations for each one that it takes.
    fn start_steps(&self, start: Option<usize>) -> u64 {
        let reduce = self.unknowns * self.unknowns.div_ceil(64);
        let known: usize = self.equations.iter().map(|equation| equation.known.len()).sum();
        let all = (self.equations.len() * reduce + known) as u64;
        if start.is_some() { all * self.unknowns as u64 / 2 } else { all }
    }

    /// Returns the basis of the equations that come first.
    fn first_basis(&self) -> Basis {
        let mut echelon = Echelon::new(self.unknowns);
        let independent = |&number: &usize| echelon.insert(&self.equations[number].unknown).is_ok();
        (0..self.equations.len()).filter(independent).collect()
    }

    /// Returns the basis that begins with equation `first`. Every further equation is the one that
    /// adds the fewest cells to the cells already read.
    fn frugal_basis(&self, first: usize) -> Basis {
        let mut echelon = Echelon::new(self.unknowns);
        let mut read = CellSet::new(self.cells);
        let mut left: Vec<usize> = (0..self.equations.len()).collect();
        let mut basis = Basis::new();
        let mut first = Some(first);
        loop {
            left.retain(|&number| echelon.express(&self.equations[number].unknown).is_err());
            let added = |&&number: &&usize| {
                let known = self.equations[number].known.iter();
                known.filter(|&&cell| !read.contains(cell)).count()
            };
            let cheapest = first.take().or_else(|| left.iter().min_by_key(added).copied());
            let Some(cheapest) = cheapest else { return basis };
            let equation = &self.equations[cheapest];
            if echelon.insert(&equation.unknown).is_ok() {
                basis.push(cheapest);
            }
            equation.known.iter().for_each(|&cell| read.insert(cell));
        }
    }

    /// Exchanges equations of a basis as long as that lowers the reads, or until the budget is
    /// spent. Returns the cells that are read in the end; `None` if the basis does not give the
    /// wanted cells, or if the budget is already spent.
    fn descend(&self, mut basis: Basis, budget: &mut Budget) -> Option<CellSet> {
        let mut reads = self.reads(&self.echelon(&basis), &basis).filter(|_| budget.left() > 0)?;
        while let Some((better, fewer)) = self.exchange(&basis, reads.len(), budget) {
            (basis, reads) = (better, fewer);
        }
        Some(reads)
    }

    /// Returns the first basis that differs in one equation and reads fewer cells.
    fn exchange(
        &self,
        basis: &Basis,
        most: usize,
        budget: &mut Budget,
    ) -> Option<(Basis, CellSet)> {
        let echelon = self.echelon(basis);
        let price = self.unknowns * self.unknowns * self.unknowns.div_ceil(32);
        for entering in (0..self.equations.len()).filter(|number| !basis.contains(number)) {
            // Any of the equations whose sum is the entering one may leave.
            for leaving in echelon.express(&self.equations[entering].unknown).ok()? {
                budget.spend(price as u64);
                if budget.left() == 0 {
                    return None;
                }
                let mut other = basis.clone();
                other[leaving] = entering;
                let reads = self.reads(&self.echelon(&other), &other)?;
                if reads.len() < most {
                    return Some((other, reads));
                }
            }
        }
        None
    }

    fn echelon(&self, basis: &Basis) -> Echelon {
        let mut echelon = Echelon::new(self.unknowns);
        for &number in basis {
            // The equations of a basis are independent.
            let _ = echelon.insert(&self.equations[number].unknown);
        }
        echelon
    }

    /// Returns the cells at hand whose sums are the wanted cells; `None` if the basis does not give
    /// the wanted cells.
    fn reads(&self, echelon: &Echelon, basis: &Basis) -> Option<CellSet> {
        let mut reads = CellSet::new(self.cells);
        for wanted in &self.wanted {
            let used = echelon.express(wanted).ok()?;
            let known = used.into_iter().flat_map(|index| &self.equations[basis[index]].known);
            let mut sum: Vec<CellId> = known.copied().collect();
            cancel_pairs(&mut sum);
            sum.into_iter().for_each(|cell| reads.insert(cell));
        }
        Some(reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::NodeId;
    use crate::define::erasure::{Losses, combinations};

    fn losses(spec: &str, lost: usize) -> (Code, CellSet, Vec<CellId>) {
        let code = Code::new(&spec.parse().unwrap()).unwrap();
        let lost = NodeId::new(lost);
        let have = code.cells_of(code.nodes().filter(|&node| node != lost));
        let wanted = code.node_cells(lost).to_vec();
        (code, have, wanted)
    }

    /// Returns the fewest reads of all bases.
    fn fewest(system: &ReadSystem) -> usize {
        let size = system.first_basis().len();
        let all = combinations(system.equations.len(), size);
        let reads = all.filter_map(|basis| system.reads(&system.echelon(&basis), &basis));
        reads.map(|reads| reads.len()).min().unwrap()
    }

    /// Every node of small codes: no basis reads less.
    #[test]
    fn no_basis_of_small_codes_reads_less() {
        for spec in ["rdp:k=4", "rdp:k=3", "rdp:k=6", "evenodd:k=5", "star:k=5", "xcode:n=7"] {
            for lost in 0..losses(spec, 0).0.node_count() {
                let (code, have, wanted) = losses(spec, lost);
                let system = ReadSystem::new(&code, &have, &wanted).unwrap();
                let reads = narrow(&code, &have, &wanted, &mut Budget::unlimited()).unwrap();
                assert_eq!(reads.len(), fewest(&system), "{spec}: {lost}");
            }
        }
    }

    #[test]
    fn searches_that_the_budget_ends_are_accounted_for() {
        let (code, have, wanted) = losses("rdp:k=4", 0);
        for steps in [0, 1, 1000] {
            let mut budget = Budget::new(steps);
            narrow(&code, &have, &wanted, &mut budget);
            assert_eq!(budget.into_account().cuts, [Cut::Reads], "{steps}");
        }
        let mut budget = Budget::unlimited();
        narrow(&code, &have, &wanted, &mut budget);
        assert_eq!(budget.into_account().cuts, []);
    }

    #[test]
    fn the_cells_read_suffice() {
        for spec in ["rdp:k=5", "evenodd:k=6", "star:k=4", "xcode:n=7", "liberation:k=5", "6+3"] {
            let nodes = losses(spec, 0).0.node_count();
            for lost in 0..nodes {
                let (code, have, wanted) = losses(spec, lost);
                let reads = narrow(&code, &have, &wanted, &mut Budget::unlimited()).unwrap();
                assert!(reads.iter().all(|cell| have.contains(cell)));
                let left = Losses::new(&code, reads);
                assert!(wanted.iter().all(|&cell| left.express(cell).is_ok()), "{spec}: {lost}");
            }
        }
    }
}
