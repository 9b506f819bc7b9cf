"""Zhou's dissertation, sections 3.2.3 and 3.3.4: his XOR loop as a compiler vectorises it and as he did, and what an XOR costs
beside a copy. The loops are C (`loops/`), compiled by the machine's cc."""

import csv
import functools
import os
import pathlib
import platform
import subprocess
from collections import defaultdict
from typing import Iterable

import pairs
import tools

from .experiment import Cell, Effort, Experiment, Kind, Point, Records

SOURCES = pathlib.Path(__file__).resolve().parent / "loops"
# Each loop of xor.c: its function, the bits of its explicit vectors, and what it is compiled with.
LOOPS = {
    "words": (0, ["-fno-tree-vectorize"]), "compiled": (0, []), "compiled_ivdep": (0, ["-DIVDEP"]),
    "explicit_128": (128, []), "explicit_256": (256, []),
}  # fmt: skip
PACKET = 4096
# Bytes of all regions: in the second-level cache, and as the tables of speeds have them.
SETS = {"192 KiB": 192 << 10, "4 MiB": 4 << 20}
EXPLICIT = "explicit, 256 bits"


@functools.cache
def program() -> pathlib.Path:
    """Returns the program that measures, built with the options of section 3.1.1: -O3 and AVX2."""
    if platform.machine() != "x86_64":
        raise RuntimeError(f"lab/papers/loops has the loops for x86-64 alone; this is {platform.machine()}")
    folder = tools.target() / "lab-loops"
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for name, (bits, flags) in LOOPS.items():
        objects.append(folder / f"{name}.o")
        words = ["-O3", "-mavx2", f"-DNAME={name}", f"-DBITS={bits}", *flags]
        subprocess.run(["cc", *words, "-c", SOURCES / "xor.c", "-o", objects[-1]], check=True)
    subprocess.run(["cc", "-O2", SOURCES / "main.c", *objects, "-o", folder / "loops"], check=True)
    return folder / "loops"


@functools.cache
def compiler() -> str:
    return subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def measured(set_bytes: int, count: int) -> dict[tuple[str, str], pairs.Ratio]:
    """Returns how many times as fast as the explicit loop of 256 bits each loop is, by loop and place of the regions."""
    core = str(min(os.sched_getaffinity(0)))
    command = ["taskset", "-c", core, program(), str(set_bytes), str(PACKET), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    taken = defaultdict(list)
    for row in csv.DictReader(done.stdout.splitlines()):
        taken[row["loop"], row["regions"]].append((float(row["seconds"]), float(row["base_seconds"])))
    return {place: pairs.Pairs(samples).ratio() for place, samples in taken.items()}


def loops(name: str, effort: Effort) -> Iterable[Cell]:
    """Measures all loops over one set."""
    count = 40 if effort.quick else 200
    command = f"loops {SETS[name]} {PACKET} {count} ({compiler()})"
    for (loop, regions), ratio in measured(SETS[name], count).items():
        doubt = "too noisy" if ratio.is_noisy else ""
        yield Cell(f"{loop}, {regions}", name, ratio.median, ratio.low, ratio.high, doubt=doubt, command=command)


def weights(records: Records) -> Iterable[Cell]:
    """Section 3.2.3: how many copies an XOR costs; the speed of a copy beside the explicit loop is just that."""
    for cell in records["zhou-loops"]:
        loop, _, regions = cell.row.rpartition(", ")
        if loop == "copy":
            yield cell._replace(row=regions)


@functools.cache
def weight() -> float:
    """Returns how many copies an XOR costs here, to a tenth: by the function as printed, whose three regions lie apart."""
    return round(measured(SETS["192 KiB"], 40)["copy", "apart"].median, 1)


EXPERIMENTS = [
    Experiment(
        "zhou", "loops", "XOR loops: vectorised by the compiler, and explicitly", Kind.TIMED, "times as fast as the explicit loop of 256 bits",
        (5, 40), points=lambda effort: [Point(name, lambda name=name: loops(name, effort)) for name in SETS],
        about="Section 3.3.4 has 10 to 20 % less for the compiler's vectors, and a check at run time that falls back to words where "
        "regions might overlap; ivdep leaves it out. In place: a packet is added to its target (r3 = r2). The compiler is named in each cell's command.",
    ),
    Experiment(
        "zhou", "weight", "What an XOR costs beside a copy", Kind.TIMED, "copies", (0, 0), sources=("zhou-loops",), derive=weights,
        about="Section 3.2.3 has about 1.5 on its workstation. In place, an XOR reads two packets and writes one of them; apart, it writes a third, "
        "as the printed function does.",
    ),
]  # fmt: skip
