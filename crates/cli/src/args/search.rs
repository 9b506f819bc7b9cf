//! The search for a matrix, as `paritas schedule` takes it.

use std::time::Duration;

use clap::ValueEnum;
use paritas::research::search::{Annealing, Crossover, Genetic, SearchLimit, SearchMethod};

use crate::exit::Failure;

/// Number of schedules that a search evaluates by default.
const DEFAULT_EVALUATIONS: usize = 2000;

/// The default seed of a search.
const DEFAULT_SEED: u64 = 1;

/// `--search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchName {
    /// No search: the matrix of the code.
    None,
    /// Simulated annealing over the points.
    Sa,
    /// A genetic algorithm over the points; children first take the points that both parents have.
    Ga,
    /// The same, but children take any points of their parents.
    GaRandom,
    /// Annealing on the number of ones, then descent on schedules, over points and scalings.
    Local,
}

/// The search, its end and its parameters.
#[derive(Debug, clap::Args)]
pub struct MatrixSearch {
    /// Search for a better matrix.
    #[arg(long = "search", value_enum, default_value = "none")]
    pub name: SearchName,
    /// The seed of the search [default: 1].
    #[arg(long, value_name = "N", hide_short_help = true)]
    seed: Option<u64>,
    /// The number of schedules that the search evaluates [default: 2000]; local adds up to 8.
    #[arg(long, value_name = "N", conflicts_with_all = ["budget", "converge"], hide_short_help = true)]
    pub evaluations: Option<usize>,
    /// The time after which the search ends; the result depends on the machine.
    ///
    /// Schedules that are being made then are finished. One of a wide code takes seconds.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, conflicts_with = "converge", hide_short_help = true)]
    pub budget: Option<Duration>,
    /// End the search after --patience iterations without a new minimum.
    ///
    /// Without it, sa and ga begin anew then.
    #[arg(long, hide_short_help = true)]
    pub converge: bool,
    /// Iterations without a new minimum before sa and ga begin anew.
    ///
    /// With --converge, they end instead. Counts steps of a walk for sa [default: 250], and
    /// generations for ga [default: 50].
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub patience: Option<usize>,
    /// For sa, the initial probability of accepting a worse successor.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, hide_short_help = true)]
    pub accept: Option<f64>,
    /// For sa, the annealing factor.
    ///
    /// After T steps that probability is multiplied by e^(-FACTOR T).
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor, hide_short_help = true)]
    pub cooling: Option<f64>,
    /// For ga, the fraction of the population that become parents [default: 0.3].
    #[arg(long, value_name = "RATE", value_parser = parse_share, hide_short_help = true)]
    pub select: Option<f64>,
    /// For ga, the probability that two parents have a child in a generation.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, hide_short_help = true)]
    pub birth: Option<f64>,
    /// For ga, the probability that an individual mutates in a generation.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, hide_short_help = true)]
    pub mutation: Option<f64>,
    /// For ga, the largest number of individuals [default: 60].
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub population: Option<usize>,
}

impl MatrixSearch {
    /// Returns the method with its parameters, or `None` without a search.
    ///
    /// # Errors
    /// If a parameter is given that the method does not take.
    pub fn method(&self) -> Result<Option<SearchMethod>, Failure> {
        let genetic = |crossover| Some(SearchMethod::Genetic(self.genetic(crossover)));
        let (method, other) = match self.name {
            SearchName::None => (None, self.any().or(self.of_search())),
            SearchName::Local => (Some(SearchMethod::Local), self.any()),
            SearchName::Sa => (Some(SearchMethod::Annealing(self.annealing())), self.of_genetic()),
            SearchName::Ga => (genetic(Crossover::CommonFirst), self.of_annealing()),
            SearchName::GaRandom => (genetic(Crossover::Random), self.of_annealing()),
        };
        match other {
            None => Ok(method),
            Some(name) => {
                Err(Failure::arguments(format!("--{name} needs --search {}", whose(name))))
            }
        }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(DEFAULT_SEED)
    }

    /// Returns when the search ends.
    pub fn limit(&self) -> SearchLimit {
        match self.budget {
            _ if self.converge => SearchLimit::Converged,
            Some(time) => SearchLimit::Time(time),
            None => SearchLimit::Evaluations(self.evaluations.unwrap_or(DEFAULT_EVALUATIONS)),
        }
    }

    fn annealing(&self) -> Annealing {
        let mut annealing = Annealing::default();
        set(&mut annealing.accept, self.accept);
        set(&mut annealing.cooling, self.cooling);
        set(&mut annealing.patience, self.patience);
        annealing
    }

    fn genetic(&self, crossover: Crossover) -> Genetic {
        let mut genetic = Genetic::default();
        genetic.crossover = crossover;
        set(&mut genetic.select, self.select);
        set(&mut genetic.birth, self.birth);
        set(&mut genetic.mutation, self.mutation);
        set(&mut genetic.population, self.population);
        set(&mut genetic.patience, self.patience);
        genetic
    }

    /// Returns the name of a given parameter of annealing, if any.
    fn of_annealing(&self) -> Option<&'static str> {
        self.accept.map(|_| "accept").or(self.cooling.map(|_| "cooling"))
    }

    /// Returns the name of a given parameter of the genetic algorithm, if any.
    fn of_genetic(&self) -> Option<&'static str> {
        let rates = [("select", self.select), ("birth", self.birth), ("mutation", self.mutation)];
        let rate = rates.iter().find(|(_, rate)| rate.is_some()).map(|&(name, _)| name);
        rate.or(self.population.map(|_| "population"))
    }

    /// Returns the name of a given parameter of all searches, if any.
    fn of_search(&self) -> Option<&'static str> {
        let given = [
            ("seed", self.seed.is_some()),
            ("evaluations", self.evaluations.is_some()),
            ("budget", self.budget.is_some()),
            ("converge", self.converge),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|&(name, _)| name)
    }

    /// Returns the name of a given parameter that only some methods take, if any.
    fn any(&self) -> Option<&'static str> {
        self.of_annealing().or(self.of_genetic()).or(self.patience.map(|_| "patience"))
    }
}

/// Returns the methods that take the parameter `name`.
fn whose(name: &str) -> &'static str {
    match name {
        "seed" | "evaluations" | "budget" | "converge" => "sa, ga, ga-random or local",
        "patience" => "sa, ga or ga-random",
        "accept" | "cooling" => "sa",
        _ => "ga or ga-random",
    }
}

fn set<T>(parameter: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *parameter = given;
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("must be a number of seconds from 0 to 1000000000; got `{text}`")),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => Ok(rate),
        _ => Err(format!("must be a number from 0 to 1; got `{text}`")),
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match parse_rate(text)? {
        0.0 => Err("must be above 0; got `0`".to_owned()),
        share => Ok(share),
    }
}

fn parse_factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if factor.is_finite() && factor >= 0.0 => Ok(factor),
        _ => Err(format!("must be a number of at least 0; got `{text}`")),
    }
}
