"""Codes from bit matrices in files, as Luo, Xu and Plank describe any XOR code (section 2), and the order in which their two
algorithms run one.

`matrices/` has the examples that the paper writes out. The matrices of its other codes are written by `text` from
definitions.py, so that what `paritas` computes of such a file owes nothing to the families that it has built in.
"""

import pathlib
import re
import tempfile
from typing import Callable, Iterable, Iterator, NamedTuple

from . import definitions
from .command import paritas, schedule, shown
from .experiment import Cell, Point

FOLDER = pathlib.Path(__file__).resolve().parent / "matrices"
TOY = FOLDER / "toy.txt"


class Written(NamedTuple):
    """A matrix with the numbers of its file's head."""

    matrix: definitions.Matrix
    k: int
    m: int
    w: int
    placement: str = "horizontal"


def vertical(n: int) -> Written:
    """X-Code: the rows of a file go node by node, those of the definition slope by slope."""
    by_slope = definitions.xcode(n)
    return Written([by_slope[slope * n + node] for node in range(n) for slope in (0, 1)], n - 2, 2, n, "vertical")


# The codes of table 6 with k = 11 (RDP: 10), Liberation, and X-Code with 13 nodes, as large as the others.
CODES: dict[str, Callable[[], Written]] = {
    "EVENODD": lambda: Written(definitions.evenodd(11, 11), 11, 2, 10),
    "RDP": lambda: Written(definitions.rdp(10, 11), 10, 2, 10),
    "X-Code": lambda: vertical(11),
    "X-Code, n = 13": lambda: vertical(13),
    "STAR": lambda: Written(definitions.star(11, 11), 11, 3, 10),
    "Liberation": lambda: Written(definitions.liberation(11, 11), 11, 2, 11),
}


def text(written: Written) -> str:
    """Writes a matrix as the command reads it."""
    matrix, *head = written
    lines = [f"{name} = {value}" for name, value in zip(("k", "m", "w", "placement"), head)]
    return "\n".join([*lines, *("".join(map(str, row)) for row in matrix), ""])


def from_file(name: str, path: pathlib.Path) -> Iterable[Cell]:
    """What the command counts of the code in a file: its XORs without the definitions of its family, and with common sums
    found; and which losses it survives."""
    spec = f"matrix:{path}"
    command = shown(("codes", f"matrix:lab/papers/matrices/{path.name}" if path.parent == FOLDER else f"matrix:{path.name}"))
    code = paritas("codes", spec)[0]
    values = {"ones": code["ones"]}
    for column, method in (("XORs a coding packet, rows as they stand", "direct"), ("the same, common sums found", "slp")):
        values[column] = schedule(spec, "--pass", method)["xors"] / code["parity_cells"]
    for losses in code["losses"]:
        assert losses["tried"] == losses["sets"], "a sample is no count"
        values[f"survived losses of {losses['lost']}, percent"] = 100 * losses["survived"] / losses["sets"]
    for column, value in values.items():
        yield Cell(name, column, value, command=command)


def defined(name: str) -> Iterable[Cell]:
    """The same of a code that definitions.py defines."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.txt"
        path.write_text(text(CODES[name]()))
        yield from from_file(name, path)


def points(_: object) -> list[Point]:
    examples = {"toy example": TOY, "figure 2": FOLDER / "figure-2.txt"}
    in_files = [Point(name, lambda name=name, path=path: from_file(name, path)) for name, path in examples.items()]
    return in_files + [Point(name, lambda name=name: defined(name)) for name in CODES]


class Xor(NamedTuple):
    """One XOR of a word, as table 2 lists them: the coding packet, the data packet, the word in both."""

    coding: int
    data: int
    word: int


def packets(path: pathlib.Path, order: str) -> Iterator[tuple[int, int]]:
    """Yields the coding and the data packet of each XOR of whole packets, in the order in which `paritas` runs them. The first
    of a coding packet copies, which the paper counts as an XOR too in its example."""
    printed = schedule(f"matrix:{path}", "--pass", "direct", "--order", order, "--text")["text"]
    for line in printed.splitlines()[1:]:
        target, sources = re.fullmatch(r"o(\d+) \^?= (.*)", line).groups()
        yield from ((int(target), int(source)) for source in re.findall(r"i(\d+)", sources))


def traditional(path: pathlib.Path, words: int) -> list[Xor]:
    """Algorithm 1: a coding packet after the other, and for each of its data packets word by word."""
    return [Xor(coding, data, word) for coding, data in packets(path, "parity") for word in range(words)]


def fused(path: pathlib.Path, words: int) -> list[Xor]:
    """Algorithm 1 with its two inner loops exchanged (section 4.2): for each word of a coding packet all data packets."""
    by_coding: dict[int, list[int]] = {}
    for coding, data in packets(path, "parity"):
        by_coding.setdefault(coding, []).append(data)
    return [Xor(coding, data, word) for coding, all_data in by_coding.items() for word in range(words) for data in all_data]


def new(path: pathlib.Path, words: int) -> list[Xor]:
    """Algorithm 2: a data packet after the other, and for each of its words all coding packets."""
    by_data: dict[int, list[int]] = {}
    for coding, data in packets(path, "data"):
        by_data.setdefault(data, []).append(coding)
    return [Xor(coding, data, word) for data, all_coding in by_data.items() for word in range(words) for coding in all_coding]


def equations(_: object) -> list[Point]:
    """Table 1: the data packets whose words add up to each coding word of the toy example."""
    cells = lambda: [Cell(f"c{xor.coding},{xor.word}", f"D{xor.data}", 1) for xor in traditional(TOY, 2)]
    return [Point("toy example", cells)]


def listed(run: Callable[[pathlib.Path, int], list[Xor]]) -> Iterable[Cell]:
    """Tables 2 and 3: the XORs of the toy example in order. An XOR has the same number in both tables."""
    numbers = {xor: number for number, xor in enumerate(traditional(TOY, 2), 1)}
    for step, xor in enumerate(run(TOY, 2), 1):
        for column, value in (("ID", numbers[xor]), ("coding packet", xor.coding), ("data packet", xor.data), ("word", xor.word)):
            yield Cell(str(step), column, value)


# Bytes of a line of the cache, and of a word.
LINE, WORD = 64, 8
PACKETS = (64, 256, 1024, 4096)


def touched(xors: list[Xor], data_packets: int, packet: int) -> Iterator[int]:
    """Yields the lines of memory that a run touches. Data packets lie one behind the other, coding packets after them."""
    for xor in xors:
        for number in (xor.data, data_packets + xor.coding):
            yield (number * packet + xor.word * WORD) // LINE


def missed(lines: Iterable[int], sets: int, ways: int) -> int:
    """Counts misses of a cache that drops what was used longest ago."""
    kept: list[list[int]] = [[] for _ in range(sets)]
    count = 0
    for line in lines:
        here = kept[line % sets]
        if line in here:
            here.remove(line)
        else:
            count += 1
            del here[: len(here) - ways + 1]
        here.append(line)
    return count


def fusion(name: str, packet: int) -> Iterable[Cell]:
    """Section 4.2, loop fusion in algorithm 1: what the three ways to run a code read and write. The coding word of an XOR is
    read and written, as it is in memory."""
    with tempfile.TemporaryDirectory() as folder:
        written = CODES[name]()
        path = pathlib.Path(folder) / "code.txt"
        path.write_text(text(written))
        columns, words = written.k * written.w, packet // WORD
        for way, run in (("traditional", traditional), ("traditional, fused", fused), ("new", new)):
            xors = run(path, words)
            again = sum(before[1:] == after[1:] for before, after in zip(xors, xors[1:]))
            kib = columns * packet / 1024
            yield Cell(str(packet), f"{way}: data words read for each one there is", (len(xors) - again) / (columns * words))
            # The first level of the paper's Pentium 4: 16 KiB, 8 ways.
            yield Cell(str(packet), f"{way}: lines missed for each KiB of data", missed(touched(xors, columns, packet), 32, 8) / kib)


def fusion_points(_: object) -> list[Point]:
    return [Point(str(packet), lambda packet=packet: fusion("Liberation", packet)) for packet in PACKETS]
