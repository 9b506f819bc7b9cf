"""What the documents claim, and what the records say about it.

A verdict follows from intervals alone. Something is more than a bound if its whole interval is above the bound, and less if
its whole interval is below; an interval that holds the bound decides nothing, nor does a speed without an interval. Counts
are exact, so they always decide. Figures keep the mark of those that are doubtful: too noisy, or single samples.

`lab/readme_tables.py` puts the claims of each document into docs/papers.md, and compares the page with the records.
"""

import enum
from typing import Callable, Iterable, NamedTuple

import records

from .. import catalogue
from ..experiment import Cell, Experiment, Kind, Records
from ..store import Origin, Store

STORE = Store(records.ROOT / "lab" / "records" / "papers")


class Verdict(enum.Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    PARTLY = "holds in part"
    UNDECIDED = "undecided"
    OPEN = "nothing claimed"


class Finding(NamedTuple):
    """What was found about a claim, in words with figures of records."""

    verdict: Verdict
    here: str


class Claim(NamedTuple):
    """A claim of a document, and how it is judged from the records of some of its experiments."""

    text: str
    sources: tuple[str, ...]
    judge: Callable[[Records], Finding]


def compare(cell: Cell, bound: float, exact: bool = False) -> Verdict:
    """Whether a figure is above a bound."""
    low, high = (cell.value, cell.value) if exact else (cell.low, cell.high)
    if low is None or high is None or low <= bound <= high:
        return Verdict.UNDECIDED
    return Verdict.HOLDS if low > bound else Verdict.FAILS


def below(cell: Cell, bound: float, exact: bool = False) -> Verdict:
    """Whether a figure is below a bound."""
    swapped = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}
    verdict = compare(cell, bound, exact)
    return swapped.get(verdict, verdict)


def within(cell: Cell, low: float, high: float) -> Verdict:
    """Whether a figure is between two bounds."""
    over_low, under_high = compare(cell, low), below(cell, high)
    return Verdict.FAILS if Verdict.FAILS in (over_low, under_high) else together((over_low, under_high))


def together(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a claim about several cases: it holds in part if it does in some cases and does not in others."""
    found = set(verdicts)
    if len(found) == 1:
        return found.pop()
    both = {Verdict.HOLDS, Verdict.FAILS} <= found
    return Verdict.PARTLY if both or Verdict.PARTLY in found else Verdict.UNDECIDED


def over(one: Cell, other: Cell) -> Cell:
    """How many times `other` is in `one`. The interval holds all ratios of the two intervals."""
    low = high = None
    if None not in (one.low, one.high, other.low, other.high):
        low, high = one.low / other.high, one.high / other.low
    return Cell(one.row, one.column, one.value / other.value, low, high, doubt=one.doubt or other.doubt)


def fastest(cells: Iterable[Cell]) -> Cell:
    return max(cells, key=lambda cell: cell.value)


def span(cells: Iterable[Cell], unit: str = "") -> str:
    """The least and the greatest of some figures, and how many of them are doubtful."""
    found = list(cells)
    values = [cell.value for cell in found]
    least, most = number(min(values)), number(max(values))
    text = least if least == most else f"{least} to {most}"
    doubtful = sum(1 for cell in found if cell.doubt)
    return f"{text}{unit}" + (f" ({doubtful} of {len(found)} doubtful)" if doubtful else "")


def interval(cell: Cell) -> str:
    """A figure with its interval, and its doubt."""
    text = number(cell.value) + ("" if cell.low is None else f" ({number(cell.low)} to {number(cell.high)})")
    return f"{text}, {cell.doubt}" if cell.doubt else text


def marked(cell: Cell) -> str:
    """A figure with its doubt."""
    return f"{number(cell.value)}, {cell.doubt}" if cell.doubt else number(cell.value)


def number(value: float) -> str:
    """A figure of two or three digits, or of more from 1000 on."""
    if abs(value) < 0.1:
        return f"{value:.2g}"
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}" if abs(value) >= 3 else f"{value:.2f}"


# What a count of cases calls each verdict.
ANSWERS = {Verdict.HOLDS: "yes", Verdict.FAILS: "no", Verdict.PARTLY: "in part", Verdict.UNDECIDED: "undecided"}


def tally(verdicts: Iterable[Verdict]) -> str:
    """Counts the cases by verdict: `5 yes, 2 undecided`."""
    found = list(verdicts)
    return ", ".join(f"{found.count(verdict)} {answer}" for verdict, answer in ANSWERS.items() if verdict in found)


def markdown(paper: str, claims: list[Claim]) -> str:
    """How many of a document's claims hold, their table, and where its figures come from."""
    lines = [f"Of {counted([found_about(paper, claim).verdict for claim in claims])}", "", "| claim | here | verdict | from |", "| --- | --- | --- | --- |"]
    origins: dict[str, Origin] = {}
    for claim in claims:
        origins |= {name: read(identity(paper, name)).origin for name in claim.sources}
        finding = found_about(paper, claim)
        sources = ", ".join(f"`{name}`" for name in claim.sources)
        lines.append(f"| {claim.text} | {finding.here} | {finding.verdict.value} | {sources} |")
    doubtful, timed = doubtful_share([one for one in catalogue.EXPERIMENTS if one.paper == paper])
    return "\n".join([*lines, "", f"<sub>{told(origins)}. Of {timed} timed cells, {doubtful} are doubtful.</sub>"])


def counted(verdicts: Iterable[Verdict]) -> str:
    """Says how many of some claims hold: `11 claims 5 hold, 1 holds in part, 1 does not hold, and 4 are undecided.`"""
    found = [verdict for verdict in verdicts if verdict is not Verdict.OPEN]
    told = {Verdict.HOLDS: ("holds", "hold"), Verdict.PARTLY: ("holds in part", "hold in part"),
            Verdict.FAILS: ("does not hold", "do not hold"), Verdict.UNDECIDED: ("is undecided", "are undecided")}  # fmt: skip
    *first, last = [f"{found.count(verdict)} {words[found.count(verdict) != 1]}" for verdict, words in told.items() if verdict in found]
    return f"{len(found)} claims {', '.join(first)}, and {last}." if first else f"{len(found)} claims {last}."


def found_about(paper: str, claim: Claim) -> Finding:
    return claim.judge({name: read(identity(paper, name)).cells for name in claim.sources})


def identity(paper: str, name: str) -> str:
    """The identity of an experiment of a paper, or of the one that `name` has in full."""
    return name if any(one.identity == name for one in catalogue.EXPERIMENTS) else f"{paper}-{name}"


def read(identity: str):
    """The record of an experiment."""
    return STORE.read(catalogue.by_identity(identity))


def told(origins: dict[str, Origin]) -> str:
    """Says of which processor, commit, date and effort the records are. Those that differ from most are named."""
    groups: dict[tuple, list[str]] = {}
    for name, origin in origins.items():
        groups.setdefault((origin.processor, origin.commit, origin.date, origin.effort), []).append(name)
    most, *others = sorted(groups, key=lambda key: -len(groups[key]))
    # Of a processor, or an effort, that differs as well, everything is said.
    say = lambda key: "commit {1}, {2}" if key[::3] == most[::3] else "{0}, commit {1}, {2}, {3} run"
    named = "".join("; " + ", ".join(groups[key]) + ": " + say(key).format(*key) for key in others)
    return "{}, commit {}, {}, {} run".format(*most) + named


def doubtful_share(experiments: Iterable[Experiment]) -> tuple[int, int]:
    """How many of the measured timed cells are doubtful, and how many there are."""
    timed = [e for e in experiments if e.kind is Kind.TIMED and (e.measures or not e.derive)]
    cells = [cell for e in timed if (record := STORE.read(e)) for cell in record.cells]
    return sum(1 for cell in cells if cell.doubt), len(cells)
