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


def common_elements_help(records: Records) -> Finding:
    """Children that are better than a parent, by the crossover: shares of thousands of children, from fixed seeds."""
    cells = records["crossover"]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    shares = {name: [at(cells, row, name) for row in rows] for name in ("common elements first", "random")}
    more = sum(ours.value > other.value for ours, other in zip(*shares.values(), strict=True))
    verdict = Verdict.HOLDS if more == len(rows) else Verdict.PARTLY if more else Verdict.FAILS
    here = "; ".join(f"{name}: {span(found, ' %')}" for name, found in shares.items())
    return Finding(verdict, f"{here}; more with common elements first in {more} of {len(rows)} rows")


def delayed_parity_reads_as_little(records: Records) -> Finding:
    cells = records["regenerating"]
    same = all(cell.value == at(cells, cell.row, "theorem 1").value for name in ("read by promotion, of all data", "(4.1), m2 - m nodes repaired")
               for cell in column(cells, name))  # fmt: skip
    symbols = [over(theirs, at(cells, theirs.row, "symbols of a node, delayed parity")) for theirs in column(cells, "symbols of a node, (4.2)")]
    verdict = Verdict.HOLDS if same and all(ratio.value > 1 for ratio in symbols) else Verdict.FAILS
    return Finding(verdict, f"promotion reads what theorem 1 and (4.1) allow; by (4.2) a node has {span(symbols)} times as many symbols, in {len(symbols)} rows")


CLAIMS = [
    Claim("BN saves 35 %, smart scheduling 20 %, matching 35 % of the XORs", ("table-3.1",), techniques_save),
    Claim("The parameters of both searches matter little (at most 5 %)", ("table-3.3", "table-3.4"), parameters_matter_little),
    Claim("Common elements first give better children than a random crossover (25 % against 2 %)", ("crossover",), common_elements_help),
    Claim("The genetic algorithm finds better matrices than annealing", ("table-3.5",), genetic_beats_annealing),
    Claim("The order of data (S-CO) gains 0.3 %", ("table-3.1-speed",), gains_of("S-CO")),
    Claim("Vectors (V-XOR, 256 bits) gain 70 %", ("table-3.1-speed",), gains_of("V-XOR")),
    Claim("Delayed parity reads as little as regenerating codes, with fewer symbols a node", ("regenerating",), delayed_parity_reads_as_little),
    Claim("BB-DPG takes fewer XORs and copies than DPG", ("table-4.3",), bound_groups_cost_less),
]
