"""All experiments."""

from . import jugan, luo, plank, uyeda, zhou, zhou_delayed, zhou_loops, zhou_network, zhou_packets, zhou_search, zhou_speed
from .experiment import Experiment

PAPERS = (luo, plank, zhou, zhou_loops, zhou_search, zhou_packets, zhou_speed, zhou_delayed, zhou_network, jugan, uyeda)
EXPERIMENTS: list[Experiment] = [experiment for module in PAPERS for experiment in module.EXPERIMENTS]


def select(paper: str | None, table: str | None) -> list[Experiment]:
    """Returns the experiments of a paper, or the one of a name; all without a paper. A derived one comes after what it
    is derived from, which is chosen with it."""
    chosen = [e for e in EXPERIMENTS if paper in (None, e.paper) and table in (None, e.name)]
    needed = {identity for experiment in chosen for identity in closure(experiment)}
    return [experiment for experiment in EXPERIMENTS if experiment.identity in needed]


def closure(experiment: Experiment) -> set[str]:
    """Returns an experiment and all that it is derived from, by identity."""
    return {experiment.identity}.union(*(closure(by_identity(source)) for source in experiment.sources))


def by_identity(identity: str) -> Experiment:
    return next(experiment for experiment in EXPERIMENTS if experiment.identity == identity)


def assumptions(experiment: Experiment) -> list[str]:
    """Returns what the reader must know to compare: conditions of an experiment, and of what it is derived from."""
    inherited = [text for source in experiment.sources for text in assumptions(by_identity(source))]
    return list(dict.fromkeys([*filter(None, [experiment.about]), *inherited]))
