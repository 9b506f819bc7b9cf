"""Runs the programs that measure: the `paritas` command, and `lab/fountain` for LT codes."""

import functools
import json
import os
import pathlib
import shlex
import subprocess
import time
from typing import Iterator

import tools

from .experiment import Cell

# The command that measures, if `lab/run --paritas` names one.
NAMED = os.environ.get("PARITAS_COMMAND")


def paritas(*arguments: object, cache: str | None = None) -> list[dict]:
    """Runs the command, and returns the lines of JSON that it prints; `cache` is the folder where it remembers tuning, in
    place of the user's."""
    words = [*map(str, arguments), "--json"]
    environment = {**os.environ, "XDG_CACHE_HOME": cache} if cache else None
    done = subprocess.run([binary(), *words], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{shown(arguments)} ended with code {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def shown(arguments: tuple) -> str:
    """Returns the command line as a reader would type it."""
    return shlex.join(["paritas", *map(str, arguments)])


@functools.cache
def binary() -> pathlib.Path:
    """Returns the command. Unless one is named it is built, so that it is that of the commit which records state."""
    return tools.paritas(NAMED)


def schedule(spec: str, *more: object) -> dict:
    """Returns what `paritas schedule` counts."""
    return paritas("schedule", spec, *more)[0]


# Pairs that a search for a packet takes for each size. Neighbouring sizes differ by less than three pairs tell, which costs
# nothing, and more would take longer than all that is measured with the packet that they find.
PACKET_PAIRS = 3

# All rooflines run with the best kernel, so that fractions of them can be compared.
BEST_ROOFLINE = "--best-roofline"


def bench(spec: str, *more: object) -> list[dict]:
    """Returns what `paritas bench` measures on one thread: a line for each packet size of a sweep."""
    return paritas(*of_bench(spec, *more))


def of_bench(spec: str, *more: object) -> tuple:
    """Returns the arguments of `bench`."""
    return ("bench", "--code", spec, "--threads", "1", *more)


def sweep(column: str, spec: str, *more: object) -> Iterator[Cell]:
    """Measures a cell for each size of a packet."""
    words = (BEST_ROOFLINE, *more, "--sweep", "packet")
    command = shown(of_bench(spec, *words))
    for line in bench(spec, *words):
        yield timed(str(line["packet"]), column, line, command)


def bench_cell(row: str, column: str, spec: str, *more: object) -> Cell:
    """Measures one cell: the speed as a fraction of the roofline of the best kernel."""
    return same_kernel_cell(row, column, spec, BEST_ROOFLINE, *more)


def same_kernel_cell(row: str, column: str, spec: str, *more: object) -> Cell:
    """Measures one cell: the speed as a fraction of the roofline of the same kernel."""
    return timed(row, column, bench(spec, *more)[0], shown(of_bench(spec, *more)))


@functools.cache
def best_packet(spec: str, *more: object) -> int:
    """Returns the packet with which a code is encoded fastest, by `paritas tune --packet` with few pairs for each of some
    thirty sizes; each process searches once."""
    (line,) = paritas("tune", "--packet", spec, "--reps", PACKET_PAIRS, *more)
    return int(max(line["choices"], key=lambda choice: choice["ratio"])["name"])


def timed(row: str, column: str, line: dict, command: str) -> Cell:
    """Returns a cell of a line of `paritas bench`: its speed as a fraction of the roofline's."""
    doubt = "too noisy" if line["noisy"] else ""
    fraction = [line[f"roofline_fraction{end}"] for end in ("", "_low", "_high")]
    return Cell(row, column, *fraction, speed=line["gbps_median"], doubt=doubt, command=command)


def compared(row: str, column: str, spec: str, against: str, *more: object) -> Cell:
    """Measures how many times as fast a code is as with other settings, in pairs; as another code if `more` names one with
    `--against-code`, and then `against` may be empty."""
    words = ("bench", "--code", spec, *more, *(("--against", against) if against else ()))
    return ratio_cell(row, column, paritas(*words)[0], shown(words))


def ratio_cell(row: str, column: str, line: dict, command: str) -> Cell:
    """Returns a cell of a line of `paritas bench --against`."""
    ratio = [line[f"ratio{end}"] for end in ("", "_low", "_high")]
    doubt = "too noisy" if line["noisy"] else ""
    return Cell(row, column, *ratio, speed=line["gbps_median"], doubt=doubt, command=command)


def in_percent(ratio: Cell) -> Cell:
    """Returns by how many percent something is faster."""
    gain = lambda value: 100 * (value - 1)
    return ratio._replace(value=gain(ratio.value), low=gain(ratio.low), high=gain(ratio.high))


@functools.cache
def kernels() -> list[str]:
    """Returns the names of the kernels that this processor can run."""
    return [kernel["name"] for kernel in paritas("doctor")[0]["kernels"]]


def available(*names: str) -> list[str]:
    """Returns those of the kernels that this processor can run."""
    return [name for name in names if name in kernels()]


@functools.cache
def fountain() -> pathlib.Path:
    """Returns the program for LT codes, built."""
    target = tools.target() / "fountain"
    build = ["cargo", "build", "--release", "--quiet", "--locked", "--target-dir", target]
    subprocess.run(build, cwd=tools.ROOT / "lab" / "fountain", check=True)
    return target / "release" / "fountain"


def seconds_of(action) -> float:
    """Returns how long `action` takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
