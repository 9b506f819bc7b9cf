"""Jugan: Multi-threaded erasure coding in Jerasure (poster)."""

import atexit
import functools
import os
import tempfile
from typing import Iterable, Iterator

import pairs

from .command import paritas, ratio_cell, shown
from .experiment import Cell, Effort, Experiment, Kind, Point, Records

K = 10
# The poster's ways to divide the work: by stripe, by coding node ("disks"), by columns of packets ("packet_cols"), by rows.
SPLITS = ["stripe", "node", "columns", "rows"]
WORDS = [8, 16, 32]
# Bytes of a cache line, which threads never share.
LINE = 64
# The poster names packets of 2 KiB and "large" ones; its figure of the three layouts is not in the text.
PACKETS = [LINE, 2 << 10, 16 << 10]
# What columns of words divide: the poster's packets of 2 KiB.
WORD_PACKET = 2 << 10


# How codes are run: as the poster's library, 64 bits at a time, and as ours.
PACKET_RUNS = {"64 bits": ("--kernel", "packetwise64", "--pass", "smart"), "compiled": ()}
WORD_RUNS = {"64 bits": ("--kernel", "packetwise64"), "compiled": ()}


def cores() -> list[int]:
    """Returns the numbers of threads to try beyond one: those of the poster, further powers of two, and as many as the machine
    has processors."""
    most = len(os.sched_getaffinity(0))
    return sorted({n for n in (2, 3, 4, 8, 16, 32, 64, most) if 1 < n <= most})


PARITIES = range(1, 9)


def size(run: str, layout: str, effort: Effort) -> tuple:
    """The poster encoded 100 MB. Words 64 bits at a time are slow, and no memory is quick enough to matter for them, so they encode
    less; in a quick run, all do. Each takes the fewest pairs that give a verdict."""
    is_slow = (run, layout) == ("64 bits", "words")
    whole, quick = (16 << 20, 1 << 20) if is_slow else (100 << 20, 8 << 20)
    return ("--set", quick if effort.quick else whole, "--reps", pairs.FEWEST)


def divides(split: str, m: int, packet: int) -> bool:
    """Whether there is something to divide: more than one node, or more than one cache line of a packet."""
    return (split != "node" or m > 1) and (split != "columns" or packet > LINE)


def speed_up(row: str, spec: str, split: str, runs: dict[str, tuple], more: tuple, layout: str, effort: Effort) -> Iterator[Cell]:
    """How many times as fast several threads are as one, in pairs."""
    for run, options in runs.items():
        for threads in cores():
            words = ("bench", "--code", spec, "--threads", threads, "--split", split, *more, *options, *size(run, layout, effort),
                     "--against", "threads=1")  # fmt: skip
            line = paritas(*words)[0]
            # Where the work cannot be divided in this way, stripes are, which would be another experiment.
            if line["split"] != split:
                raise RuntimeError(f"{shown(words)} was split by {line['split']}")
            yield ratio_cell(row, f"{run}: {split}, {threads} threads", line, shown(words))


def reed_solomon(effort: Effort) -> list[Point]:
    spec = lambda m, w: f"reed-solomon:k={K},m={m},w={w}"
    return [
        Point(f"{spec(m, w)} {s}", lambda m=m, w=w, s=s: speed_up(
            f"M = {m}, W = {w}", spec(m, w), s, WORD_RUNS, ("--packet", WORD_PACKET) if s == "columns" else (), "words", effort))
        for m in PARITIES for w in WORDS for s in SPLITS[:3] if divides(s, m, WORD_PACKET)
    ]  # fmt: skip


def cauchy(effort: Effort) -> list[Point]:
    name = lambda m, packet: f"M = {m}, packets of {packet}"
    return [
        Point(f"{name(m, packet)} {s}", lambda m=m, packet=packet, s=s: speed_up(
            name(m, packet), f"cauchy:k={K},m={m},w=5", s, PACKET_RUNS, ("--packet", packet), "packets", effort))
        for m in PARITIES for packet in PACKETS for s in SPLITS if divides(s, m, packet)
    ]  # fmt: skip


SOURCES = ("reed-solomon", "cauchy")


def largest(records: Records) -> Iterable[Cell]:
    """The largest and smallest speed-up of each split, over all codes and packets."""
    for name in SOURCES:
        cells = records[f"jugan-{name}"]
        for column in dict.fromkeys(cell.column for cell in cells):
            found = [cell for cell in cells if cell.column == column]
            most, least = max(found, key=lambda c: c.value), min(found, key=lambda c: c.value)
            yield most._replace(row=f"{name}, {column}", column="most")
            yield least._replace(row=f"{name}, {column}", column="least")


def doubts(cells: list[Cell]) -> str:
    """Returns the doubts of the cells that a figure is derived from."""
    return "; ".join(dict.fromkeys(cell.doubt for cell in cells if cell.doubt))


def widths(records: Records) -> Iterable[Cell]:
    """How far the width W of words matters: the largest speed-up of a row and split over the smallest."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in records["jugan-reed-solomon"]:
        groups.setdefault((cell.row.partition(",")[0], cell.column), []).append(cell)
    for (row, column), cells in groups.items():
        most, least = max(cells, key=lambda c: c.value), min(cells, key=lambda c: c.value)
        # The intervals of both ends; below 1, they overlap.
        yield Cell(row, column, most.value / least.value, most.low / least.high, most.high / least.low, doubt=doubts(cells))


def one_thread(records: Records) -> Iterable[Cell]:
    """The speed of one thread by M: the median of what it reached beside each split, with the least and the greatest."""
    groups: dict[tuple[str, str], list[float]] = {}
    for name in SOURCES:
        for cell in records[f"jugan-{name}"]:
            m, _, rest = cell.row.partition(", ")
            run = cell.column.partition(":")[0]
            groups.setdefault((f"{name}, {rest}, {run}", m), []).append(cell.speed / cell.value)
    for (row, column), speeds in groups.items():
        speeds.sort()
        doubt = "" if len(speeds) > 1 else "a single sample"
        yield Cell(row, column, speeds[len(speeds) // 2], speeds[0], speeds[-1], doubt=doubt)


def averages(records: Records) -> Iterable[Cell]:
    """Speeds by numbers of threads and ways to divide the work, on average over all parities and widths, from the least to the greatest."""
    groups: dict[tuple[str, str], list[tuple[float, Cell]]] = {}
    for name in SOURCES:
        for cell in records[f"jugan-{name}"]:
            run, _, split = cell.column.partition(": ")
            packets = f", {cell.row.partition(', ')[2]}" if name == "cauchy" else ""
            row = f"{name}{packets}, {run}"
            groups.setdefault((row, "1 thread"), []).append((cell.speed / cell.value, cell))
            groups.setdefault((row, split), []).append((cell.speed, cell))
    for (row, column), found in groups.items():
        speeds, cells = zip(*found, strict=True)
        yield Cell(row, column, sum(speeds) / len(speeds), min(speeds), max(speeds), doubt=doubts(cells))


def nodes(records: Records) -> Iterable[Cell]:
    """Division by nodes, beside what the nodes of the busiest thread allow."""
    for name in SOURCES:
        for cell in records[f"jugan-{name}"]:
            run, _, split = cell.column.partition(": ")
            if split.startswith("node, "):
                m, threads = parities_of(cell), int(split.split()[1])
                row = f"{name}, {cell.row.partition(', ')[2]}, {run}, {threads} threads"
                yield cell._replace(row=row, column=f"M = {m} (at most {allowed(m, threads):.2f})")


def parities_of(cell: Cell) -> int:
    return int(cell.row.partition(",")[0].removeprefix("M = "))


def allowed(m: int, threads: int) -> float:
    """Returns the speed-up of m equal nodes over threads, each of which computes whole ones: three nodes on two threads take two
    thirds of the time of one thread."""
    return m / -(-m // threads)


@functools.cache
def tuned(codes: tuple[str, ...]) -> tempfile.TemporaryDirectory:
    """Tunes codes, and returns the folder where that is remembered until this process ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    paritas("tune", *codes, cache=folder.name)
    return folder


def automatic(effort: Effort) -> list[Point]:
    """The poster's future work: settings that are found automatically."""
    few = [1, 4] if effort.quick else list(PARITIES)
    grids = {f"reed-solomon:k={K},m={m},w=8": grid(m, SPLITS[:3], [None], PACKETS[1:]) for m in few}
    grids |= {f"cauchy:k={K},m={m},w=5": grid(m, SPLITS, PACKETS, PACKETS) for m in few}
    sets = [1 << 20, 32 << 20]
    codes = tuple(grids)
    return [
        Point(f"{code} {size}", lambda code=code, size=size: regret(code, grids[code], size, codes, effort))
        for code in codes for size in sets
    ]  # fmt: skip


def grid(m: int, splits: list[str], packets: list[int | None], columns: list[int]) -> dict[str, str]:
    """Returns all settings, each by what it is called: `packets` are those that make a difference, for columns `columns`. Words have no
    packets, but for columns."""
    called = lambda packet: "" if packet is None else f", packets of {packet}"
    given = lambda packet: "" if packet is None else f",packet={packet}"
    settings = {f"1 thread{called(packet)}": f"threads=1{given(packet)}" for packet in packets}
    for threads in cores():
        for split in splits:
            for packet in columns if split == "columns" else packets:
                if divides(split, m, packet or LINE):
                    # Each number of threads is used, whatever tune found out about how many bytes are worth one.
                    settings[f"{split}, {threads} threads{called(packet)}"] = (
                        f"threads={threads},bytes-a-thread=1,split={split}{given(packet)}"
                    )
    return settings


def regret(code: str, settings: dict[str, str], size: int, codes: tuple[str, ...], effort: Effort) -> Iterable[Cell]:
    """How many times as fast the tuned settings are as each of the grid, in pairs, and by how many percent the best of the grid
    is faster than them."""
    row = f"{code}, {size >> 20} MiB"
    found = [middle(row, name, code, size, against, tuned(codes).name, effort) for name, against in settings.items()]
    yield from found
    best = min(found, key=lambda cell: cell.value)
    less = lambda ratio: 100 * (1 / ratio - 1)
    yield Cell(row, "regret, %", max(0, less(best.value)), max(0, less(best.high)), max(0, less(best.low)), doubt=best.doubt)


def middle(row: str, name: str, code: str, size: int, against: str, cache: str, effort: Effort) -> Cell:
    """The middle of three ratios, because the processors of a virtual machine may share a core for some tenths of a second; in a
    quick run a single one."""
    count = 1 if effort.quick else 3
    tuned = ("--tuned-packet",) if code.startswith("cauchy") else ()
    words = ("bench", "--code", code, *tuned, "--threads", 0, "--set", size, "--reps", pairs.FEWEST, "--against", against)
    cells = [ratio_cell(row, f"over {name}", paritas(*words, cache=cache)[0], shown(words)) for _ in range(count)]
    return sorted(cells, key=lambda cell: cell.value)[count // 2]


ABOUT = (
    "Speed-up against one thread with the same code and packets, in pairs. The poster reached 3.62 with 4 cores at most, and "
    "less than 1 with large packets. 64 bits: as its library ran, one operation after the other, without vectors. The poster encoded "
    "100 MB; here that is 100 MiB, and 16 MiB for words without vectors. A quick run encodes 8 MiB, and 1 MiB of such words."
)
UNIT = "times as fast as one thread"
BOTH = ("jugan-reed-solomon", "jugan-cauchy")
EXPERIMENTS = [
    Experiment("jugan", "reed-solomon", "Speed-up of Reed-Solomon codes", Kind.TIMED, UNIT,
               (20, 400), points=reed_solomon, about=ABOUT + " Columns divide packets of 2 KiB. Words have no rows to divide. A single coding "
               "node is not divided."),
    Experiment("jugan", "cauchy", "Speed-up of Cauchy codes, w = 5", Kind.TIMED, UNIT,
               (30, 900), points=cauchy, about=ABOUT + " Schedules are smart ones at 64 bits. Packets of one cache line have no columns, and "
               "a single coding node is not divided."),
    Experiment("jugan", "largest", "The largest and smallest speed-up of each way", Kind.TIMED, UNIT,
               (0, 0), sources=BOTH, derive=largest),
    Experiment("jugan", "nodes", "Division by coding nodes", Kind.TIMED, UNIT, (0, 0), sources=BOTH, derive=nodes,
               about="If the nodes are no multiple of the threads, some threads compute one node more. At most: with equal nodes and nothing that "
               "threads repeat."),
    Experiment("jugan", "w", "How far W matters for the speed-up", Kind.TIMED, "largest speed-up of W = 8, 16, 32 over the smallest",
               (0, 0), sources=BOTH[:1], derive=widths, about="An interval that reaches below 1 holds no difference."),
    Experiment("jugan", "one-thread", "One thread by M", Kind.TIMED, "GB/s of user data", (0, 0), sources=BOTH, derive=one_thread,
               about="The median of the medians that one thread reached beside each split, some seconds apart, from the least to the greatest."),
    Experiment("jugan", "averages", "Average speeds for all tested parameters", Kind.TIMED, "GB/s of user data", (0, 0), sources=BOTH, derive=averages,
               about="Averages over M = 1 to 8 and, for words, W = 8, 16, 32, with the least and the greatest. The poster's figure of this name is not in the text."),
    Experiment("jugan", "regret", "What tune finds, beside the best of all numbers of threads, splits and packets", Kind.TIMED,
               "times as fast; percent", (42, 900), points=automatic,
               about="The poster leaves it to future work to find the settings. paritas tune measures once for a machine; then these codes run "
               "as tuned with all cores, in the packets that tune found. Regret: by how many percent the best of the grid is faster, which is too "
               "high by the noise of choosing the best of several. A quick run has M = 1 and 4, and one ratio where a whole one has the middle of three."),
]  # fmt: skip
