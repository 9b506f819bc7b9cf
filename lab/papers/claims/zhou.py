"""What Zhou claims (2020)."""

from statistics import mean, median
from typing import Callable

from ..experiment import Cell, Records, printed
from .judge import Claim, Finding, Verdict, below, compare, over, span, tally, together

# Percentages of XORs that a row of table 3.1 may differ from print: maximum matchings are not unique.
MATCHINGS = 2.1


def column(cells: list[Cell], name: str) -> list[Cell]:
    return [cell for cell in cells if cell.column == name]


def at(cells: list[Cell], row: str, name: str) -> Cell:
    return next(cell for cell in cells if cell.place == (row, name))


def techniques_save(records: Records) -> Finding:
    """The averages over the printed rows, cell by cell within what matchings may differ."""
    cells, theirs = records["table-3.1"], printed("zhou-table-3.1")
    apart = [abs(cell.value - float(theirs[cell.place])) for cell in cells if cell.place in theirs and cell.column != "baseline"]
    saved = ", ".join(f"{name} {mean(cell.value for cell in column(cells, name)):.0f} %" for name in ("BN", "SS", "UM", "WM"))
    verdict = Verdict.HOLDS if max(apart) <= MATCHINGS else Verdict.PARTLY
    return Finding(verdict, f"on average {saved}; no cell of {len(apart)} is more than {max(apart):.1f} points from print")


def parameters_matter_little(records: Records) -> Finding:
    """The worst value of each parameter, over the best one."""
    ratios = []
    for table in ("table-3.3", "table-3.4"):
        for worst in records[table]:
            if not worst.column.endswith(", best value"):
                ratios.append(over(worst, at(records[table], worst.row, f"{worst.column}, best value")))
    verdict = together(below(ratio, 1.05, exact=True) for ratio in ratios)
    return Finding(verdict, f"the worst value of a parameter gives {span(ratios)} of the length that the best gives")


def genetic_beats_annealing(records: Records) -> Finding:
    """Lengths of matrices under all strategies, the best of the same seeds and numbers of schedules."""
    cells = records["table-3.5"]
    pairs = [(annealed, at(cells, annealed.row, "GA")) for annealed in column(cells, "SA")]
    shorter = sum(1 for annealed, genetic in pairs if genetic.value < annealed.value)
    longer = sum(1 for annealed, genetic in pairs if genetic.value > annealed.value)
    verdict = Verdict.HOLDS if not longer else Verdict.FAILS if not shorter else Verdict.PARTLY
    return Finding(verdict, f"the genetic algorithm is shorter in {shorter} of {len(pairs)} rows, annealing in {longer}, and the rest are equal")


def gains_of(name: str) -> Callable[[Records], Finding]:
    """A column of table 3.1 with speeds: in how many rows the gain is real."""

    def judge(records: Records) -> Finding:
        gains = column(records["table-3.1-speed"], name)
        middle = median(cell.value for cell in gains)
        verdicts = [compare(cell, 0) for cell in gains]
        here = f"{span(gains, ' %')} over {len(gains)} rows, {middle:.1f} % in the median; more than nothing: {tally(verdicts)}"
        return Finding(together(verdicts), here)

    return judge


def bound_groups_cost_less(records: Records) -> Finding:
    cells = records["table-4.3"]
    ratios = [over(cell, at(cells, cell.row, "optimised DPG")) for cell in column(cells, "BB-DPG")]
    return Finding(together(below(ratio, 1, exact=True) for ratio in ratios), f"{span(ratios)} of the XORs and copies of optimised DPG, in {len(ratios)} rows")


CLAIMS = [
    Claim("BN saves 35 %, smart scheduling 20 %, matching 35 % of the XORs", ("table-3.1",), techniques_save),
    Claim("The parameters of both searches matter little (at most 5 %)", ("table-3.3", "table-3.4"), parameters_matter_little),
    Claim("The genetic algorithm finds better matrices than annealing", ("table-3.5",), genetic_beats_annealing),
    Claim("The order of data (S-CO) gains 0.3 %", ("table-3.1-speed",), gains_of("S-CO")),
    Claim("Vectors (V-XOR, 256 bits) gain 70 %", ("table-3.1-speed",), gains_of("V-XOR")),
    Claim("BB-DPG takes fewer XORs and copies than DPG", ("table-4.3",), bound_groups_cost_less),
]
