"""Zhou's dissertation, sections 3.2.1 and 3.2.3: crossovers of the genetic algorithm, matrices of three cost functions
(table 3.6), the matrices of Jo-CRS, and the worst losses.

Searches are deterministic and take long, so what they find is kept in target/lab-searches.json for the command that found it.
"""

import csv
import functools
import hashlib
import json
import pathlib
from typing import Iterable, NamedTuple

import tools

from . import zhou_loops
from .command import bench_cell, binary, compared, paritas, schedule, shown
from .experiment import Cell, Effort, Experiment, Kind
from .zhou import by_row, natural, numbers, set_and_reps, their_kernel

KEPT = tools.target() / "lab-searches.json"
# Strategy (1, 3) of table 3.2: normalised, weighted matching. Its searches evaluate as many schedules as ours of table 3.5.
STRATEGY, EVALUATIONS = ("--strategy", "1,3"), 2000


@functools.cache
def kept() -> dict[str, object]:
    """Returns what this command has found before; what another one found is dropped, so that the file stays small."""
    digest = hashlib.sha256(binary().read_bytes()).hexdigest()
    try:
        before = json.loads(KEPT.read_text())
    except (OSError, ValueError):
        before = {}
    return before if before.get("command") == digest else {"command": digest}


def once(key: str, find) -> object:
    """Returns what was found for a key, or finds it."""
    found = kept()
    if key not in found:
        found[key] = find()
        new = KEPT.with_suffix(".new")
        new.write_text(json.dumps(found))
        new.replace(KEPT)
    return found[key]


class Matrix(NamedTuple):
    """A matrix that a search found."""

    code: str
    xors: int
    copies: int
    children: int
    better: int

    def cost(self, name: str, weight: float) -> float:
        return {"xors": self.xors, "total": self.xors + self.copies}.get(name, weight * self.xors + self.copies)


def search(shape: tuple[int, int, int], method: str, cost: str, weight: float, seed: int, evaluations: int) -> Matrix:
    """Searches for a matrix of a shape (n, k, w)."""
    words = search_words(shape, method, cost, weight, seed, evaluations)

    def find() -> Matrix:
        line = paritas(*words)[0]
        return Matrix(line["code"], line["xors"], line["copies"], line["search"]["children"], line["search"]["better_children"])

    return Matrix(*once(shown(words), find))


def search_words(shape: tuple[int, int, int], method: str, cost: str, weight: float, seed: int | str, evaluations: int) -> tuple:
    weighted = ("--weight", weight) if cost == "weighted" else ()
    return "schedule", natural(*shape), *STRATEGY, "--search", method, "--cost", cost, *weighted, "--seed", seed, "--evaluations", evaluations


def seeds(effort: Effort) -> range:
    return range(1, 2) if effort.quick else range(1, 4)


CROSSOVERS = {"common elements first": "ga", "random": "ga-random"}


def crossovers(row: str, effort: Effort) -> Iterable[Cell]:
    """Section 3.2.1.1: how many of the children are better than at least one of their parents, and the best length."""
    for name, method in CROSSOVERS.items():
        found = [search(numbers(row), method, "total", 1, seed, EVALUATIONS) for seed in seeds(effort)]
        command = shown(search_words(numbers(row), method, "total", 1, f"1..{len(found)}", EVALUATIONS))
        yield Cell(row, name, 100 * sum(one.better for one in found) / sum(one.children for one in found), command=command)
        yield Cell(row, f"{name}: length", min(one.cost("total", 1) for one in found), command=command)


COSTS = {"XORs": "xors", "XORs and copies": "total", "weighted": "weighted"}


def costs(row: str, effort: Effort) -> Iterable[Cell]:
    """Table 3.6: speed of matrices found under three cost functions, run by strategy (1, 3) on 256-bit vectors; and the second
    and third in pairs with the first."""
    weight = zhou_loops.weight()
    run = ("--pass", "wm", "--kernel", their_kernel(), "--packet", 4096, *set_and_reps(effort))
    best: dict[str, Matrix] = {}
    for name, cost in COSTS.items():
        found = (search(numbers(row), "ga", cost, weight, seed, EVALUATIONS) for seed in seeds(effort))
        best[name] = min(found, key=lambda one, cost=cost: one.cost(cost, weight))
        yield bench_cell(row, name, best[name].code, *run)
    yield Cell(row, "weight of an XOR", weight)
    first = best["XORs"]
    for name, matrix in best.items():
        column = f"{name}: times as fast as XORs"
        if matrix is first:
            continue
        if matrix.code == first.code:
            yield Cell(row, column, 1, 1, 1, doubt="the same matrix")
        else:
            yield compared(row, column, matrix.code, "", *run, "--threads", 1, "--against-code", first.code)


JO_CRS = pathlib.Path(__file__).resolve().parent / "jo-crs.csv"
# The dissertation's weight (section 3.2.3). With that of the machine at hand, the codes would differ from machine to machine.
PRINTED_WEIGHT = 1.5


@functools.cache
def jo_crs(k: int, m: int, w: int) -> str:
    """Returns the code of Jo-CRS: the matrix that the genetic algorithm found under the weighted cost (lab/jo_crs.py)."""
    with open(JO_CRS, newline="") as file:
        codes = {(row["n"], row["k"], row["w"]): row["code"] for row in csv.DictReader(file)}
    return codes[str(k + m), str(k), str(w)]


@functools.cache
def worst_loss(spec: str, way: str) -> str:
    """Returns the loss of as many data nodes as may be lost whose decoding takes the most XORs and copies, as `--erase` takes it:
    section 3.3.3 calls the losses of m data nodes the worst, and tests them all."""
    return ",".join(map(str, schedule(spec, "--pass", way, "--worst-loss")["erased"]))


EXPERIMENTS = [
    Experiment(
        "zhou", "crossover", "Children that are better than a parent, by the crossover", Kind.SAMPLED, "percent of children; XORs and copies",
        (20, 240), points=by_row("zhou-table-3.6", crossovers),
        about=f"Section 3.2.1.1: about 25 % with common elements first, about 2 % at random; its conditions are not said. Strategy (1, 3), "
        f"{EVALUATIONS} schedules, seed 1 (whole: seeds 1 to 3). Better means fewer XORs and copies than at least one of the two parents.",
    ),
    Experiment(
        "zhou", "table-3.6", "Speed of matrices found under three cost functions", Kind.TIMED, "fraction of the roofline",
        (25, 250), points=by_row("zhou-table-3.6", costs), printed="zhou-table-3.6", comparable=False,
        about=f"Theirs in GB/s. Searches by the genetic algorithm, {EVALUATIONS} schedules, seed 1 (whole: the best of seeds 1 to 3), with the weight "
        "of an XOR that experiment `weight` measures here. Run as theirs: two-operand XORs of 256 bits over packets of 4 KiB, strategy (1, 3). The last "
        "two columns are in pairs; where two costs lead to the same matrix, they say so.",
    ),
]  # fmt: skip
