"""What an experiment is: a table or figure of a document, and how ours is made.

An experiment is a list of points, each measured at once, so that a run that was interrupted goes on where it
ended. A point gives cells; a cell has a row and a column like the document's table. For a figure, rows are
places on the x axis and columns are curves.
"""

import csv
import enum
import pathlib
from dataclasses import dataclass
from typing import Callable, Iterable, NamedTuple

PRINTED = pathlib.Path(__file__).resolve().parent / "printed"


class Kind(enum.Enum):
    """How far figures can agree with the printed ones."""

    EXACT = "exact"  # counts: the same on every machine
    SAMPLED = "sampled"  # averages over random graphs from fixed seeds
    TIMED = "timed"  # speeds of this machine, as ratios to a base measured beside them


class Cell(NamedTuple):
    """One figure of ours. A timed one is a ratio, with the interval that holds it with 95 % confidence."""

    row: str
    column: str
    value: float
    low: float | None = None
    high: float | None = None
    speed: float | None = None
    """GB/s of user data, if the cell is timed."""
    doubt: str = ""
    command: str = ""

    @property
    def place(self) -> tuple[str, str]:
        return self.row, self.column


class Point(NamedTuple):
    """A part of an experiment that is measured at once."""

    name: str
    measure: Callable[[], Iterable[Cell]]


class Plot(NamedTuple):
    """How a figure is drawn: a curve a column."""

    x: str
    y: str
    log_x: bool = True


class Effort(NamedTuple):
    """How long a run may take."""

    quick: bool = False

    @property
    def name(self) -> str:
        return "quick" if self.quick else "whole"


Records = dict[str, list[Cell]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a document.

    It has either points to measure, or it is derived from the cells of other experiments.
    """

    paper: str
    name: str
    """As on the command line: `table-3.1`, `figure-8`."""
    title: str
    kind: Kind
    value: str
    """What a cell counts, with its unit."""
    seconds: tuple[float, float]
    """About how long a quick and a whole run take, on two cores of 2.8 GHz."""
    points: Callable[[Effort], list[Point]] | None = None
    sources: tuple[str, ...] = ()
    derive: Callable[[Records], Iterable[Cell]] | None = None
    measures: bool = False
    """Whether `derive` measures, with settings that the sources gave. Then it is kept and counted as what has points is."""
    printed: "str | Callable[[], dict[tuple[str, str], str]]" = ""
    """Name of the file with the printed figures, without `.csv`, or a function that reads them; empty if the document has
    none."""
    comparable: bool = True
    """Whether a cell of ours can be divided by the printed one: not if theirs has another unit."""
    plot: Plot | None = None
    about: str = ""
    """What the reader must know to compare: conditions, and what differs from the document."""

    @property
    def identity(self) -> str:
        return f"{self.paper}-{self.name}"

    def theirs(self) -> dict[tuple[str, str], str]:
        """Returns the printed figures, digit by digit, by row and column."""
        if callable(self.printed):
            return self.printed()
        return printed(self.printed) if self.printed else {}


def printed(name: str) -> dict[tuple[str, str], str]:
    """Reads a table as a document prints it: the first line has the columns, the first field of each further line
    the row. A field that is empty was lost in the text that we have."""
    with open(PRINTED / f"{name}.csv", newline="") as file:
        (_, *columns), *rows = csv.reader(file)
    return {(row, column): text for row, *fields in rows for column, text in zip(columns, fields, strict=True) if text}


def agrees(ours: float, theirs: str) -> bool:
    """Whether a figure rounds to the printed one, digit by digit."""
    decimals = len(theirs.partition(".")[2])
    return f"{ours:.{decimals}f}" == theirs
