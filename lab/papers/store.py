"""Keeps the cells of experiments: a CSV file each, which says where its figures come from.

The first line names the columns and ends with the processor, the commit (as records.py states it), the date, the effort
and the command. While an experiment runs, its file ends in `.part`; a run that was interrupted goes on with the points that
are not in it.
"""

import csv
import pathlib
import sys
from typing import NamedTuple

import records

from .command import NAMED
from .experiment import Cell, Experiment

COLUMNS = ["point", *Cell._fields]


class Origin(NamedTuple):
    """Where figures come from."""

    processor: str
    commit: str
    date: str
    effort: str
    command: str

    def allows(self, other: "Origin") -> bool:
        """Whether figures of `other` need not be measured again: those of the same commit on the same processor, with
        at least as much effort."""
        enough = other.effort in (self.effort, "whole")
        return enough and (self.processor, self.commit) == (other.processor, other.commit)


def origin(effort: str) -> Origin:
    """Returns the origin of what this process measures now."""
    now = records.origin(NAMED)
    return Origin(now.processor, now.commit, now.date, effort, now.command)


class Record(NamedTuple):
    """What is kept of an experiment."""

    origin: Origin
    cells: list[Cell]


class Store:
    """A folder of records."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder

    def path(self, experiment: Experiment) -> pathlib.Path:
        return self.folder / f"{experiment.identity}.csv"

    def read(self, experiment: Experiment) -> Record | None:
        """Returns the record, if the experiment has run to its end."""
        path = self.path(experiment)
        if not path.exists():
            return None
        source, rows = parse(path)
        return Record(source, [cell for _, cell in rows])

    def begin(self, experiment: Experiment, source: Origin) -> set[str]:
        """Opens the record of a run, and returns the points that an interrupted run like it has measured."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.part(experiment)
        if part.exists():
            before, rows = parse(part)
            if before._replace(date="", command="") == source._replace(date="", command=""):
                done = {point for point, cell in rows if cell is END}
                write(part, before, [(point, cell) for point, cell in rows if point in done])
                return done
        write(part, source, [])
        return set()

    def add(self, experiment: Experiment, point: str, cells: list[Cell]) -> None:
        """Adds the cells of a point."""
        with open(self.part(experiment), "a", newline="") as file:
            csv.writer(file).writerows(lines(point, [*cells, END]))

    def end(self, experiment: Experiment) -> None:
        """Gives the record its final name."""
        source, rows = parse(self.part(experiment))
        write(self.path(experiment), source, [(point, cell) for point, cell in rows if cell is not END])
        self.part(experiment).unlink()

    def part(self, experiment: Experiment) -> pathlib.Path:
        return self.path(experiment).with_suffix(".csv.part")


# Marks that all cells of a point are there.
END = Cell("", "end", 0)


def lines(point: str, cells: list[Cell]) -> list[list]:
    return [[point, *("" if field is None else field for field in cell)] for cell in cells]


def write(path: pathlib.Path, source: Origin, rows: list[tuple[str, Cell]]) -> None:
    new = path.with_suffix(".new")
    with open(new, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, *source])
        for point, cell in rows:
            writer.writerows(lines(point, [cell]))
    new.replace(path)


def parse(path: pathlib.Path) -> tuple[Origin, list[tuple[str, Cell]]]:
    """Reads a record. A last line that a kill cut is left out."""
    with open(path, newline="") as file:
        header, *rows = [*csv.reader(file)] or [[]]
    if header[: len(COLUMNS)] != COLUMNS or len(header) != len(COLUMNS) + len(Origin._fields):
        sys.exit(f"{path} is not a record of this version of the lab; remove it")
    whole = [row for row in rows if len(row) == len(COLUMNS)]
    return Origin(*header[len(COLUMNS) :]), [(row[0], cell_of(row[1:])) for row in whole]


def cell_of(fields: list[str]) -> Cell:
    row, column, value, low, high, speed, doubt, command = fields
    if (row, column) == ("", "end"):
        return END
    number = lambda text: float(text) if text else None
    return Cell(row, column, float(value), number(low), number(high), number(speed), doubt, command)
