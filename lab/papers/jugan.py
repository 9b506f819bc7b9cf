"""Jugan: Multi-threaded erasure coding in Jerasure (poster)."""

import atexit
import functools
import os
import tempfile
from typing import Iterable

from .command import compared, paritas, ratio_cell, shown
from .experiment import Cell, Effort, Experiment, Kind, Point, Records

K = 10
# The poster's ways to divide the work: by stripe, by coding node ("disks"), by columns of packets ("packet_cols"), by rows.
SPLITS = ["stripe", "node", "columns", "rows"]
WORDS = [8, 16, 32]
PACKETS = [64, 2 << 10, 16 << 10]


def cores() -> list[int]:
    """Returns the numbers of threads to try beyond one: those of the poster, further powers of two, and as many as the machine
    has processors."""
    most = len(os.sched_getaffinity(0))
    return sorted({n for n in (2, 3, 4, 8, 16, 32, 64, most) if 1 < n <= most})


def parities(effort: Effort) -> list[int]:
    return [1, 4] if effort.quick else list(range(1, 9))


def size(effort: Effort) -> tuple:
    """The poster encoded 100 MB."""
    return ("--set", 32 << 20, "--reps", 20) if effort.quick else ("--set", 128 << 20, "--reps", 41)


def speed_up(row: str, spec: str, split: str, more: tuple, effort: Effort) -> Iterable[Cell]:
    """How many times as fast several threads are as one, in pairs."""
    for threads in cores():
        options = ("--threads", threads, "--split", split, *more, *size(effort))
        yield compared(row, f"{split}, {threads} threads", spec, "threads=1", *options)


def reed_solomon(effort: Effort) -> list[Point]:
    grid = [(m, w, split) for m in parities(effort) for w in WORDS for split in ("stripe", "node")]
    spec = lambda m, w: f"reed-solomon:k={K},m={m},w={w}"
    return [
        Point(f"{spec(m, w)} {s}", lambda m=m, w=w, s=s: speed_up(f"M = {m}, W = {w}", spec(m, w), s, (), effort))
        for m, w, s in grid
    ]


def cauchy(effort: Effort) -> list[Point]:
    grid = [(m, packet, split) for m in parities(effort) for packet in PACKETS for split in SPLITS]
    name = lambda m, packet: f"M = {m}, packets of {packet}"
    return [
        Point(f"{name(m, packet)} {s}", lambda m=m, packet=packet, s=s: speed_up(
            name(m, packet), f"cauchy:k={K},m={m},w=5", s, ("--packet", packet), effort))
        for m, packet, s in grid
    ]  # fmt: skip


def largest(records: Records) -> Iterable[Cell]:
    """The largest speed-up of each split, over all codes and packets."""
    for name in ("reed-solomon", "cauchy"):
        cells = records[f"jugan-{name}"]
        for column in dict.fromkeys(cell.column for cell in cells):
            found = [cell for cell in cells if cell.column == column]
            most, least = max(found, key=lambda c: c.value), min(found, key=lambda c: c.value)
            yield most._replace(row=f"{name}, {column}", column="most")
            yield least._replace(row=f"{name}, {column}", column="least")


@functools.cache
def tuned(codes: tuple[str, ...]) -> tempfile.TemporaryDirectory:
    """Tunes codes, and returns the folder where that is remembered until this process ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    paritas("tune", *codes, cache=folder.name)
    return folder


def automatic(effort: Effort) -> list[Point]:
    """The poster's future work: settings that are found automatically."""
    few = [1, 4] if effort.quick else parities(effort)
    # A single coding node is one part, which is run by stripes.
    of = lambda m, splits: [split for split in splits if m > 1 or split != "node"]
    splits = {f"reed-solomon:k={K},m={m},w=8": of(m, SPLITS[:2]) for m in few}
    splits |= {f"cauchy:k={K},m={m},w=5": of(m, SPLITS) for m in few}
    sets = [1 << 20, 32 << 20] if effort.quick else [1 << 20, 8 << 20, 32 << 20, 128 << 20]
    codes = tuple(splits)
    return [
        Point(f"{code} {size}", lambda code=code, size=size: regret(code, splits[code], size, codes))
        for code in codes for size in sets
    ]  # fmt: skip


def regret(code: str, splits: list[str], size: int, codes: tuple[str, ...]) -> Iterable[Cell]:
    """How many times as fast the tuned settings are as each of the grid, in pairs, and by how many percent the best of the grid
    is faster than them."""
    row = f"{code}, {size >> 20} MiB"
    # Each number of threads is used, whatever tune found out about how many bytes are worth one.
    grid = {"1 thread": "threads=1"} | {
        f"{split}, {n} threads": f"threads={n},bytes-a-thread=1,split={split}" for n in cores() for split in splits
    }
    found = [middle(row, name, code, size, against, tuned(codes).name) for name, against in grid.items()]
    yield from found
    best = min(found, key=lambda cell: cell.value)
    less = lambda ratio: 100 * (1 / ratio - 1)
    yield Cell(row, "regret, %", max(0, less(best.value)), max(0, less(best.high)), max(0, less(best.low)), doubt=best.doubt)


def middle(row: str, name: str, code: str, size: int, against: str, cache: str) -> Cell:
    """The middle of three ratios, because the processors of a virtual machine may share a core for some tenths of a second."""
    words = ("bench", "--code", code, "--threads", 0, "--set", size, "--reps", 60, "--against", against)
    cells = [ratio_cell(row, f"over {name}", paritas(*words, cache=cache)[0], shown(words)) for _ in range(3)]
    return sorted(cells, key=lambda cell: cell.value)[1]


ABOUT = (
    "Speed-up against one thread with the same code and packets, in pairs. The poster reached 3.62 with 4 cores at most, and "
    "less than 1 with large packets."
)
EXPERIMENTS = [
    Experiment("jugan", "reed-solomon", "Speed-up of Reed-Solomon codes", Kind.TIMED, "times as fast as one thread",
               (20, 600), points=reed_solomon, about=ABOUT + " Words of a field have no rows or columns to divide."),
    Experiment("jugan", "cauchy", "Speed-up of Cauchy codes, w = 5", Kind.TIMED, "times as fast as one thread",
               (35, 1500), points=cauchy, about=ABOUT),
    Experiment("jugan", "largest", "The largest and smallest speed-up of each way", Kind.TIMED, "times as fast as one thread",
               (0, 0), sources=("jugan-reed-solomon", "jugan-cauchy"), derive=largest),
    Experiment("jugan", "regret", "What tune finds, beside the best of all numbers of threads and splits", Kind.TIMED,
               "times as fast; percent", (45, 1500), points=automatic,
               about="The poster leaves it to future work to find the settings. paritas tune measures once for a machine; then these codes run "
               "as tuned with all cores. Regret: by how many percent the best of the grid is faster, which is too high by the noise of choosing "
               "the best of several."),
]  # fmt: skip
