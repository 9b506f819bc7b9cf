//! Following a code's own structure: definitions as equations between few cells.
//!
//! Every derived cell XORed with its definition is zero. An equation with exactly one unknown cell
//! gives that cell; the cells so found make further equations solvable. Encoding, RDP's zigzag
//! reconstruction and the peeling decoder of LT codes are all this one procedure. Equations with
//! fewer known cells are used first. When it gets stuck, elimination is left.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::define::cells::{CellId, CellSet, Code, Role};
use crate::plan::Equations;

/// The wanted cells (and what they need on the way) by single-unknown equations, or `None` where
/// that does not reach them all.
pub(super) fn solve(code: &Code, have: &CellSet, wanted: &[CellId]) -> Option<Equations> {
    let mut peeling = Peeling::new(code, have);
    let found = peeling.run(wanted);
    found.then(|| Equations { rows: needed(wanted, have, peeling.solved) })
}

struct Peeling {
    /// Per equation, its cells.
    equations: Vec<Vec<CellId>>,
    /// Per equation, how many of its cells are unknown.
    unknown: Vec<usize>,
    /// Per cell, the equations it occurs in.
    uses: Vec<Vec<u32>>,
    known: CellSet,
    ready: BinaryHeap<Reverse<(usize, usize)>>,
    solved: Vec<(CellId, Vec<CellId>)>,
}

impl Peeling {
    fn new(code: &Code, have: &CellSet) -> Self {
        let derived = code.cells().filter(|&cell| code.cell(cell).role != Role::Data);
        let equations: Vec<Vec<CellId>> = derived
            .map(|cell| code.definition(cell).iter().copied().chain([cell]).collect())
            .collect();
        let mut uses = vec![Vec::new(); code.cell_count()];
        for (number, cells) in equations.iter().enumerate() {
            cells.iter().for_each(|cell| uses[cell.index()].push(number as u32));
        }
        let unknown: Vec<usize> = equations
            .iter()
            .map(|cells| cells.iter().filter(|&&cell| !have.contains(cell)).count())
            .collect();
        let ready = (0..equations.len())
            .filter(|&number| unknown[number] == 1)
            .map(|number| Reverse((equations[number].len(), number)))
            .collect();
        Self { equations, unknown, uses, known: have.clone(), ready, solved: Vec::new() }
    }

    fn run(&mut self, wanted: &[CellId]) -> bool {
        let mut missing = wanted.iter().filter(|&&cell| !self.known.contains(cell)).count();
        let targets: std::collections::HashSet<CellId> = wanted.iter().copied().collect();
        while missing > 0 {
            let Some(Reverse((_, number))) = self.ready.pop() else { return false };
            let cells = &self.equations[number];
            let Some(&cell) = cells.iter().find(|&&cell| !self.known.contains(cell)) else {
                continue;
            };
            let sources = cells.iter().copied().filter(|&source| source != cell).collect();
            missing -= usize::from(targets.contains(&cell));
            self.solved.push((cell, sources));
            self.learn(cell);
        }
        true
    }

    fn learn(&mut self, cell: CellId) {
        self.known.insert(cell);
        for &number in &self.uses[cell.index()] {
            let number = number as usize;
            self.unknown[number] -= 1;
            if self.unknown[number] == 1 {
                self.ready.push(Reverse((self.equations[number].len(), number)));
            }
        }
    }
}

/// Keeps of the solved cells those that the wanted ones need, in the order they were solved.
fn needed(
    wanted: &[CellId],
    have: &CellSet,
    solved: Vec<(CellId, Vec<CellId>)>,
) -> Vec<(CellId, Vec<CellId>)> {
    let mut needed: std::collections::HashSet<CellId> = wanted.iter().copied().collect();
    let mut kept: Vec<_> = solved
        .into_iter()
        .rev()
        .filter(|(cell, sources)| {
            let keep = needed.contains(cell);
            if keep {
                needed.extend(sources.iter().filter(|&&source| !have.contains(source)));
            }
            keep
        })
        .collect();
    kept.reverse();
    kept
}
