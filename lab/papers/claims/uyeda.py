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


CLAIMS = [
    Claim("Averages over random graphs (tables 1, 2, 5, 6, 9, 11, 13, 15, 17)", ("blocks",), averages_agree),
    Claim("Lazy scheduling is faster than greedy (2.8 times)", ("throughput",), lazy_is_faster),
]
