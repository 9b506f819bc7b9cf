"""What Uyeda, Xia and Chien claim (2004)."""

from statistics import mean

from .. import uyeda
from ..experiment import Cell, Records
from .judge import Claim, Finding, Verdict, compare, over, span, tally, together

# Percent by which an average over random graphs may differ from theirs, which is one over ten graphs.
CLOSE = 5


def of_table(cells: list[Cell], number: str) -> list[Cell]:
    """The cells of one table of a record of several, by delta and C."""
    return [cell._replace(column=cell.column.partition(": ")[2]) for cell in cells if cell.column.partition(": ")[0] == number]


def averages_agree(records: Records) -> Finding:
    apart = {}
    for number in uyeda.BLOCKS:
        theirs = uyeda.theirs(number)
        both = [(cell.value, float(theirs[cell.place])) for cell in of_table(records["blocks"], number) if cell.place in theirs]
        apart[number] = 100 * mean(abs(ours / printed - 1) for ours, printed in both)
    verdict = Verdict.HOLDS if max(apart.values()) <= CLOSE else Verdict.PARTLY
    return Finding(verdict, "cells differ from print, on average, by " + ", ".join(f"{value:.1f} % (table {number})" for number, value in apart.items()))


def lazy_is_faster(records: Records) -> Finding:
    greedy = {cell.place: cell for cell in of_table(records["throughput"], "3")}
    ratios = [over(lazy, greedy[lazy.place]) for lazy in of_table(records["throughput"], "4")]
    verdicts = [compare(ratio, 1) for ratio in ratios]
    return Finding(together(verdicts), f"{span(ratios)} times as fast with 64-bit XORs, over {len(ratios)} cells; faster: {tally(verdicts)}")


def fewer_blocks_need_more(records: Records) -> Finding:
    """Section IV on k, at (0.1, 1), which needs the fewest blocks of table 1."""
    needed = [cell for cell in records["sizes"] if cell.column == "average" and cell.row.endswith("c = 0.1, delta = 1")]
    values = [cell.value for cell in needed]
    verdict = Verdict.FAILS if values == sorted(values, reverse=True) else Verdict.PARTLY
    return Finding(verdict, f"{', '.join(f'{value:.2f}' for value in values)} k blocks for {', '.join(cell.row.partition(',')[0] for cell in needed)} (C = 0.1, delta = 1)")


# What the evaluation's "nearly double" and "no more than a 30 % improvement" allow.
NEARLY_DOUBLE, LITTLE = 1.75, 1.3


def network_scales(records: Records) -> Finding:
    """Section VIII, by the model that explains table 18 best."""
    found = {cell.row: cell.value for cell in records["scaling"] if cell.column == uyeda.MODEL}
    network, xors = found["network doubled"], [found["XORs doubled"], found["XORs tripled"]]
    verdict = Verdict.HOLDS if network >= NEARLY_DOUBLE and max(xors) <= LITTLE else Verdict.PARTLY
    return Finding(verdict, f"twice the network gives {network:.2f} times the speed, XORs twice and three times as fast {xors[0]:.2f} and {xors[1]:.2f}")


CLAIMS = [
    Claim("Averages over random graphs (tables 1, 2, 5, 6, 9, 11, 13, 15, 17)", ("blocks",), averages_agree),
    Claim("Smaller k needs relatively fewer blocks (section IV)", ("sizes",), fewer_blocks_need_more),
    Claim("Twice the network nearly doubles the system, faster XORs give at most 30 % (section VIII)", ("scaling",), network_scales),
    Claim("Lazy scheduling is faster than greedy (2.8 times)", ("throughput",), lazy_is_faster),
]
