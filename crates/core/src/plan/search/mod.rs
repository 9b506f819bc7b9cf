//! Matrix search: Cauchy matrices whose schedules are short.
//!
//! The points of a Cauchy matrix may be any distinct elements, and its rows and columns may be
//! scaled; some choices have far shorter schedules than others. The cost of a choice is known only
//! after its schedule has been made, so the searches are heuristic. Two are the dissertation's
//! (section 3.2.1), over the points of plain or normalised matrices: simulated annealing (`anneal`)
//! and a genetic algorithm (`genetic`). The third (`local`) also chooses the scalings, and looks
//! first at ones, which are counted quickly, and then at schedules.
//!
//! Each search is seeded, and gives the same result on any number of threads: work is divided into
//! numbered parts that do not depend on the number of threads.

mod anneal;
mod elements;
mod genetic;
mod local;
mod points;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::define::cauchy::CauchyMatrix;
use crate::define::field::Field;
use crate::define::symbols::expect_size;
use crate::error::{Error, Result};
use crate::plan::PlanOptions;
use crate::plan::arrange::figure_of_rows;
use crate::plan::budget::Budget;
use crate::plan::cost::{Cost, Figure};
use crate::plan::optimise::reduce::{Refining, reduce_rows, rounds_for_encoding};
use crate::plan::optimise::rows::Rows;
use crate::plan::search::elements::Elements;

pub use anneal::Annealing;
pub use genetic::{Crossover, Genetic};

/// Widest field that is searched. Beyond it, tables of all elements are too big, and there are too
/// many points.
pub const MAX_WIDTH: u32 = 12;

/// The subject of a search: matrices of one shape, whose cost is that of their schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Number of data nodes.
    pub k: usize,
    /// Number of parity nodes.
    pub m: usize,
    /// Number of bits of a symbol.
    pub w: u32,
    /// Whether matrices are normalised before they are planned. [`SearchMethod::Local`] ignores it,
    /// because it chooses scalings itself.
    pub normalise: bool,
    /// How schedules are made; `options.objective` is minimised.
    pub options: PlanOptions,
}

/// The search method.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchMethod {
    /// Simulated annealing over the points.
    Annealing(Annealing),
    /// A genetic algorithm over the points.
    Genetic(Genetic),
    /// Annealing on ones, then descent on schedules, over points and scalings.
    Local,
}

/// When a search ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchLimit {
    /// After this many schedules; each walker of a local search may end with one more.
    /// Reproducible.
    Evaluations(usize),
    /// After this much time: not reproducible.
    Time(Duration),
    /// When the method has converged for the first time: each walk of annealing, or the population,
    /// has found no new minimum for `patience` iterations; local search ends after one descent of
    /// each kind. Reproducible.
    Converged,
}

/// The best matrix that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundMatrix {
    /// The matrix.
    pub matrix: CauchyMatrix,
    /// Cost of its schedule, as far as the search refined it.
    pub cost: Cost,
    /// Number of schedules that were made.
    pub evaluations: usize,
    /// Children that a genetic algorithm had; zero for other methods.
    pub children: Children,
}

/// Children of a genetic algorithm: how often crossing two parents helps. Mutants do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Children {
    /// Number of children.
    pub born: usize,
    /// Number of children that are better than at least one of their parents.
    pub better: usize,
}

/// Receives the number of evaluations so far.
pub type SearchProgress<'a> = &'a (dyn Fn(usize) + Sync);

/// Searches for a matrix.
///
/// # Errors
/// If there is no Cauchy matrix of the shape, w is larger than [`MAX_WIDTH`], the bit matrices
/// would be too big to plan with, or a parameter of the method is out of range.
pub fn search(
    problem: Problem,
    method: SearchMethod,
    seed: u64,
    limit: SearchLimit,
    progress: SearchProgress<'_>,
) -> Result<FoundMatrix> {
    let run = SearchRun::new(problem, seed, limit, progress)?;
    match method {
        SearchMethod::Annealing(annealing) => {
            annealing.check()?;
            anneal::search(&run, annealing)
        }
        SearchMethod::Genetic(genetic) => {
            genetic.check()?;
            genetic::search(&run, genetic)
        }
        SearchMethod::Local => local::search(&run),
    }
}

/// Checks a parameter that is a probability or a fraction.
///
/// # Errors
/// If it is not from 0 to 1.
fn check_rate(name: &str, rate: f64) -> Result<()> {
    if (0.0..=1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::parameters(format!("{name} must be from 0 to 1; got {rate}")))
}

/// Checks the number of iterations without a new minimum after which a search has converged.
///
/// # Errors
/// If it is 0.
fn check_patience(patience: usize) -> Result<()> {
    if patience > 0 {
        return Ok(());
    }
    Err(Error::parameters("the patience of a search must be at least 1; got 0"))
}

/// A search in progress.
struct SearchRun<'a> {
    problem: Problem,
    field: Field,
    elements: Elements,
    seed: u64,
    limit: SearchLimit,
    start: Instant,
    evaluations: AtomicUsize,
    progress: SearchProgress<'a>,
}

impl<'a> SearchRun<'a> {
    fn new(
        problem: Problem,
        seed: u64,
        limit: SearchLimit,
        progress: SearchProgress<'a>,
    ) -> Result<Self> {
        let Problem { k, m, w, .. } = problem;
        if w > MAX_WIDTH || k == 0 || m == 0 || k.saturating_add(m) > 1 << w {
            return Err(Error::parameters(format!(
                "k = {k}, m = {m}, w = {w}: a search needs k, m >= 1, k + m <= 2^w and w <= {MAX_WIDTH}"
            )));
        }
        expect_size(k, m, w as usize)?;
        let field = Field::new(w)?;
        Ok(Self {
            problem,
            field,
            elements: Elements::new(field),
            seed,
            limit,
            start: Instant::now(),
            evaluations: AtomicUsize::new(0),
            progress,
        })
    }

    /// Whether part `part` of `parts`, which has made `done` schedules, must end.
    fn is_over(&self, done: usize, part: usize, parts: usize) -> bool {
        match self.limit {
            SearchLimit::Evaluations(all) => done >= all.saturating_add(part) / parts,
            SearchLimit::Time(time) => self.start.elapsed() >= time,
            SearchLimit::Converged => false,
        }
    }

    /// Whether the search ends when the method has converged for the first time.
    fn ends_converged(&self) -> bool {
        self.limit == SearchLimit::Converged
    }

    /// Plans a matrix of coefficients. The number of rounds of refining is that of the options,
    /// else `rounds`, else that of encoding.
    fn evaluate(&self, coefficients: &[Vec<u32>], rounds: Option<usize>) -> (Figure, Cost) {
        let Problem { k, w, options, .. } = self.problem;
        let bit_rows = self.elements.bit_rows(coefficients);
        let ones = bit_rows.iter().map(Vec::len).sum();
        let rounds = options.rounds.or(rounds).unwrap_or_else(|| rounds_for_encoding(ones));
        let mut rows = Rows::of_outputs(k * w as usize, bit_rows);
        reduce_rows(&mut rows, options, Refining::Asked(rounds), &mut Budget::unlimited());
        let done = self.evaluations.fetch_add(1, Ordering::Relaxed);
        (self.progress)(done + 1);
        (figure_of_rows(options.objective, &rows), rows.cost())
    }

    /// Returns the matrix of data points followed by parity points, normalised if the problem asks
    /// for it.
    fn matrix(&self, points: &[u32]) -> Result<CauchyMatrix> {
        let points: Vec<u64> = points.iter().map(|&point| u64::from(point)).collect();
        let plain = CauchyMatrix::new(self.field, self.problem.k, self.problem.m, &points)?;
        Ok(if self.problem.normalise { plain.normalised() } else { plain })
    }

    fn found(&self, matrix: CauchyMatrix, cost: Cost) -> FoundMatrix {
        let evaluations = self.evaluations.load(Ordering::Relaxed);
        FoundMatrix { matrix, cost, evaluations, children: Children::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define::cells::Role;
    use crate::define::code::Code;
    use crate::plan::Pass;

    fn methods() -> [SearchMethod; 4] {
        let random = Genetic { crossover: Crossover::Random, ..Genetic::default() };
        [
            SearchMethod::Annealing(Annealing::default()),
            SearchMethod::Genetic(Genetic::default()),
            SearchMethod::Genetic(random),
            SearchMethod::Local,
        ]
    }

    fn problem(pass: Pass) -> Problem {
        let options = PlanOptions { pass, ..PlanOptions::default() };
        Problem { k: 6, m: 2, w: 4, normalise: true, options }
    }

    fn found(problem: Problem, method: SearchMethod, evaluations: usize) -> FoundMatrix {
        search(problem, method, 1, SearchLimit::Evaluations(evaluations), &|_| {}).unwrap()
    }

    /// The cost equals that of the matrix when computed through its code and plan. It is lower than
    /// the cost of the natural matrix, which is 68 with the dissertation's normalisation alone
    /// (table 3.5).
    #[test]
    fn every_method_finds_better_matrices() {
        for method in methods() {
            let options = PlanOptions { pass: Pass::Direct, ..PlanOptions::default() };
            let found = found(Problem { options, ..problem(Pass::Direct) }, method, 300);
            let code = Code::cauchy(&found.matrix).unwrap();
            let (have, want) = (code.stored(Role::Data), code.stored(Role::Parity));
            let plan = code.schedule_with(&have, &want, options).unwrap();
            assert_eq!(Cost::of(plan.schedule()), found.cost, "{method:?}");
            assert!(found.cost.total < 68, "{method:?}: {:?}", found.cost);
        }
    }

    #[cfg_attr(target_family = "wasm", ignore = "there are no threads")]
    #[test]
    fn threads_do_not_change_the_result() {
        let on = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        for method in methods() {
            let run = || found(problem(Pass::Slp), method, 200);
            assert_eq!(on(1).install(run), on(3).install(run), "{method:?}");
        }
    }

    #[test]
    fn evaluations_are_kept_and_shapes_checked() {
        for method in &methods()[..3] {
            assert_eq!(found(problem(Pass::Direct), *method, 100).evaluations, 100);
        }
        let none = SearchLimit::Evaluations(0);
        for method in methods() {
            assert!(search(problem(Pass::Direct), method, 1, none, &|_| {}).is_err());
        }
        for (k, m, w) in [(0, 2, 4), (4, 0, 4), (10, 7, 4), (4, 2, 13), (2000, 2000, 12)] {
            let problem = Problem { k, m, w, ..problem(Pass::Direct) };
            assert!(search(problem, SearchMethod::Local, 1, none, &|_| {}).is_err());
        }
    }

    /// The dissertation's hypothesis: children who first take the points that both parents have are
    /// more often better than one of their parents than are children who take any points.
    #[test]
    fn common_points_make_better_children() {
        let share = |crossover| {
            let genetic = Genetic { crossover, ..Genetic::default() };
            let Children { born, better } = found(
                Problem { w: 8, ..problem(Pass::Smart) },
                SearchMethod::Genetic(genetic),
                1500,
            )
            .children;
            assert!(born > 200 && better < born, "{born} {better}");
            better as f64 / born as f64
        };
        let (common, random) = (share(Crossover::CommonFirst), share(Crossover::Random));
        assert!(common > 1.5 * random, "{common} {random}");
        let annealed =
            found(problem(Pass::Direct), SearchMethod::Annealing(Annealing::default()), 100);
        assert_eq!(annealed.children, Children::default());
    }

    #[test]
    fn the_greatest_limit_is_one() {
        let problem = problem(Pass::Direct);
        let run =
            SearchRun::new(problem, 1, SearchLimit::Evaluations(usize::MAX), &|_| {}).unwrap();
        assert!((0..4).all(|part| !run.is_over(usize::MAX / 8, part, 4)));
    }

    /// A search that ends converged takes longer with more patience, and its result is no worse.
    #[test]
    fn searches_converge() {
        let with = |patience| {
            let annealing = Annealing { patience, ..Annealing::default() };
            let genetic = Genetic { patience, ..Genetic::default() };
            [SearchMethod::Annealing(annealing), SearchMethod::Genetic(genetic)]
        };
        let ends = |method| {
            search(problem(Pass::Direct), method, 1, SearchLimit::Converged, &|_| {}).unwrap()
        };
        for (short, long) in with(3).into_iter().zip(with(30)) {
            let (short, long) = (ends(short), ends(long));
            assert!(short.evaluations < long.evaluations, "{short:?} {long:?}");
            assert!(long.cost.total <= short.cost.total, "{short:?} {long:?}");
        }
        assert!(ends(SearchMethod::Local).cost.total < 68);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let (annealing, genetic) = (Annealing::default(), Genetic::default());
        let refused = [
            SearchMethod::Annealing(Annealing { accept: 1.5, ..annealing }),
            SearchMethod::Annealing(Annealing { cooling: -0.1, ..annealing }),
            SearchMethod::Annealing(Annealing { cooling: f64::NAN, ..annealing }),
            SearchMethod::Annealing(Annealing { patience: 0, ..annealing }),
            SearchMethod::Genetic(Genetic { select: 0.0, ..genetic }),
            SearchMethod::Genetic(Genetic { select: 1.1, ..genetic }),
            SearchMethod::Genetic(Genetic { birth: -1.0, ..genetic }),
            SearchMethod::Genetic(Genetic { mutation: f64::NAN, ..genetic }),
            SearchMethod::Genetic(Genetic { population: 1, ..genetic }),
            SearchMethod::Genetic(Genetic { population: usize::MAX, ..genetic }),
            SearchMethod::Genetic(Genetic { patience: 0, ..genetic }),
        ];
        for method in refused {
            let limit = SearchLimit::Evaluations(10);
            assert!(
                search(problem(Pass::Direct), method, 1, limit, &|_| {}).is_err(),
                "{method:?}"
            );
        }
    }
}
