"""Uyeda, Xia, Chien: Evaluation of a High Performance Erasure Code Implementation (2004), and what we ask about LT codes
beyond it. Graphs are simulated and blocks decoded by `lab/fountain`."""

import csv
import functools
import math
import os
import statistics
import subprocess
from collections import defaultdict
from typing import Iterable

import pairs
from tools import ROOT

from .command import fountain
from .experiment import Cell, Effort, Experiment, Kind, Plot, Point, Records, printed

PAPER = ROOT / "crates" / "core" / "tests" / "testsuite" / "lt_paper.csv"
C, DELTA = "1,1.1,1.2,1.3,1.4,1.5,1.7", "0.1,0.2,0.5,0.7,1"
BLOCKS = {  # tables of averages over graphs: what a cell counts
    "1": "blocks needed, as a multiple of k",
    "2": "blocks needed times average degree",
    "5": "XORs of the greedy decoder, copies to data blocks included",
    "6": "XORs of the decoder as printed, oldest data block first",
    "9": "blocks needed with originals",
    "11": "blocks needed with a coverage threshold",
    "13": "blocks needed with originals, singles and a coverage threshold",
    "15": "blocks needed with a coverage threshold, decodable",
    "17": "blocks needed with uniform coverage, decodable",
}
THROUGHPUT = {  # tables of speeds: the variant, and the table of the blocks that it needs
    "3": ("greedy, 64-bit XOR", "1"), "4": ("lazy, 64-bit XOR", "1"), "7": ("lazy", "1"), "8": ("with originals", "9"),
    "10": ("coverage threshold", "11"), "12": ("originals, singles, coverage threshold", "13"),
    "14": ("coverage threshold, decodable", "15"), "16": ("uniform coverage, decodable", "17"),
}  # fmt: skip
# On average decodes k = 1024 from less than 1.05 k blocks, with the fewest XORs; see docs/lt.md.
SPEC = "lt:k=1024,n=1229,c=0.01,delta=1,variant=uniform"


def simulated(*words: object) -> list[dict]:
    """Runs `lab/fountain`, and returns the lines that it prints; what measures time gets a core of its own."""
    core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if words[0] in ("bench", "variants", "blocks") else []
    command = [*core, fountain(), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{shown(words)} ended with code {done.returncode}: {done.stderr.strip()}")
    return list(csv.DictReader(done.stdout.splitlines()))


def shown(words: tuple) -> str:
    return f"fountain {' '.join(map(str, words))}"


@functools.cache
def theirs(table: str) -> dict[tuple[str, str], str]:
    """Returns a printed table, by delta and C."""
    with open(PAPER, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == table]
    return {(short(row["delta"]), short(row["c"])): row["value"] for row in rows}


def short(number: str) -> str:
    return f"{float(number):g}"


def averages(effort: Effort) -> Iterable[Cell]:
    """All tables that simulation gives; a column is a table and C."""
    words = ("tables", 20 if effort.quick else 100)
    for row in simulated(*words):
        if row["table"] in BLOCKS or row["table"] in SCHEDULES:
            doubt = f"{row['failed']} runs did not decode" if row["failed"] != "0" else ""
            place = short(row["delta"]), f"{row['table']}: {short(row['c'])}"
            yield Cell(*place, float(row["value"]), doubt=doubt, command=shown(words))


# Schedules for table 6, as `fountain tables` names them: the decoder as printed under both readings of its queue, and ours.
SCHEDULES = {"6": "oldest data block first", "6 last in": "newest data block first", "lazy": "ours: the first giver"}


def queues(records: Records) -> Iterable[Cell]:
    """By how much table 6 differs from each schedule, over its 35 cells."""
    printed_cells = theirs("6")
    for table, name in SCHEDULES.items():
        cells = of_table(records, "uyeda-blocks", table)
        off = [100 * (cell.value / float(printed_cells[cell.place]) - 1) for cell in cells]
        yield Cell(name, "cells", len(off))
        yield Cell(name, "mean deviation, %", statistics.mean(off))
        yield Cell(name, "mean absolute deviation, %", statistics.mean(map(abs, off)))


def of_table(records: Records, identity: str, table: str) -> Iterable[Cell]:
    """Returns the cells of one table of a record of several."""
    for cell in records[identity]:
        number, _, column = cell.column.partition(": ")
        if number == table:
            yield cell._replace(column=column)


def speeds(c: str, delta: str, effort: Effort) -> Iterable[Cell]:
    """All tables of speeds at one C and delta, each in pairs with table 7: ratios, and GB/s."""
    # Fewer pairs than these decide nothing; more are taken while a ratio is uncertain.
    words = ("variants", c, delta, pairs.FEWEST, 16 if effort.quick else 128)
    by_table = defaultdict(list)
    for row in simulated(*words):
        by_table[row["table"]].append(row)
    for table, rows in by_table.items():
        if table in THROUGHPUT:
            speed = statistics.median(float(row["mb_per_processor_second"]) for row in rows) / 1000
            samples = [(float(row["processor_seconds"]), float(row["base_processor_seconds"])) for row in rows]
            yield in_pairs(short(delta), f"{table}: {short(c)}", samples, speed, shown(words))


def in_pairs(row: str, column: str, samples: list[tuple[float, float]], speed: float, command: str) -> Cell:
    """Returns the ratio of the pairs of some samples."""
    ratio = pairs.Pairs(samples).ratio()
    doubt = "too noisy" if ratio.is_noisy else ""
    return Cell(row, column, ratio.median, ratio.low, ratio.high, speed, doubt, command)


def all_speeds(effort: Effort) -> list[Point]:
    grid = [(c, delta) for delta in DELTA.split(",") for c in C.split(",")]
    if effort.quick:
        grid = [("1.4", "0.2"), ("1", "1"), ("1.7", "0.1"), ("1", "0.1")]
    return [Point(f"C = {c}, delta = {d}", lambda c=c, d=d: speeds(c, d, effort)) for c, d in grid]


def block_sizes(effort: Effort) -> Iterable[Cell]:
    """Section VI.3: what the better XOR gains, for one object that is cut into fewer and fewer blocks."""
    mib = 32 if effort.quick else 128
    words = ("blocks", mib << 10, "1024,256,64,16", pairs.FEWEST)
    by_k = defaultdict(list)
    for row in simulated(*words):
        if row["table"] == "4":
            by_k[row["k"]].append((float(row["base_processor_seconds"]), float(row["processor_seconds"])))
    for k, samples in by_k.items():
        speed = mib * 2**20 / statistics.median(better for better, _ in samples) / 1e9
        yield in_pairs(f"{(mib << 10) // int(k)} KiB, k = {k}", "as a multiple of 64-bit XORs", samples, speed, shown(words))


def summary(records: Records) -> Iterable[Cell]:
    """Section X: speed and blocks of all variants at C = 1.4, delta = 0.2."""
    for table, (name, needed) in THROUGHPUT.items():
        for cell in of_table(records, "uyeda-throughput", table):
            if cell.place == ("0.2", "1.4"):
                yield cell._replace(row=name, column="speed, as a multiple of table 7")
                their, base = (float(theirs(number)["0.2", "1.4"]) for number in (table, "7"))
                yield Cell(name, "theirs", their / base)
        for cell in of_table(records, "uyeda-blocks", needed):
            if cell.place == ("0.2", "1.4"):
                yield cell._replace(row=name, column="blocks, as a multiple of k")
                yield Cell(name, "theirs: blocks", float(theirs(needed)["0.2", "1.4"]))


def network(effort: Effort) -> Iterable[Cell]:
    """Section VIII: the time until all data is there, in k arrivals, for each ratio of network to computation and each guess at
    what counts as work: with the best parameters, and with those of table 18."""
    words = ("system", 20 if effort.quick else 200)
    by_place = defaultdict(list)
    for row in simulated(*words):
        work = row.pop("work")
        by_place[work, short(row["ratio"])].append({key: float(value) for key, value in row.items()})
    chosen = printed("uyeda-table-18")
    for (work, ratio), cells in by_place.items():
        best = min(cells, key=lambda cell: cell["done"])
        values = {"C": best["c"], "delta": best["delta"], "average degree": best["mean_degree"], "time, best": best["done"],
                  "other winners": sum(cell["wins"] > 0 for cell in cells)}  # fmt: skip
        if (ratio, "C") in chosen:
            place = float(chosen[ratio, "C"]), float(chosen[ratio, "delta"])
            their = next(cell for cell in cells if (cell["c"], cell["delta"]) == place)
            values["time, their choice"] = their["done"]
            values["deviation of the difference"] = math.hypot(their["deviation"], best["deviation"])
        for column, value in values.items():
            yield Cell(ratio, f"{work}: {column}", value, command=shown(words))


# The model that table 18 is shown with, which explains it best: an XOR counts both blocks that it reads.
MODEL = "read"


def table_18(records: Records) -> Iterable[Cell]:
    return [cell._replace(column=column) for work, column, cell in by_work(records) if work == MODEL]


def by_work(records: Records) -> Iterable[tuple[str, str, Cell]]:
    """Returns the cells of the simulation with the model of work and the rest of the column."""
    for cell in records["uyeda-network"]:
        work, _, column = cell.column.partition(": ")
        yield work, column, cell


def models(records: Records) -> Iterable[Cell]:
    """How well each guess at the work explains table 18."""
    theirs = printed("uyeda-table-18")
    found = {(work, column, cell.row): cell.value for work, column, cell in by_work(records)}
    ratios = dict.fromkeys(ratio for ratio, _ in theirs)
    for work in dict.fromkeys(work for work, _, _ in found):
        same = [all(found[work, name, ratio] == float(theirs[ratio, name]) for name in ("C", "delta")) for ratio in ratios]
        slower = [100 * (found[work, "time, their choice", ratio] / found[work, "time, best", ratio] - 1) for ratio in ratios]
        degrees = [found[work, "average degree", ratio] / float(theirs[ratio, "average degree"]) for ratio in ratios]
        yield Cell(work, "cells that are theirs, of 13", sum(same))
        yield Cell(work, "their choice takes longer, %, average", statistics.mean(slower))
        yield Cell(work, "at most, %", max(slower))
        yield Cell(work, "our degree / theirs, least", min(degrees))
        yield Cell(work, "most", max(degrees))


def chances(records: Records) -> Iterable[Cell]:
    """Why table 18 cannot be reproduced cell by cell: how far their choice is from the best, and how far chance alone takes the
    times of a single graph, or the averages of ten, apart."""
    found = {(column, cell.row): cell.value for work, column, cell in by_work(records) if work == MODEL}
    for ratio in dict.fromkeys(ratio for ratio, _ in printed("uyeda-table-18")):
        best, their = found["time, best", ratio], found["time, their choice", ratio]
        deviation = found["deviation of the difference", ratio]
        yield Cell(ratio, "their choice takes longer, %", 100 * (their / best - 1))
        yield Cell(ratio, "standard deviation of one graph's difference, %", 100 * deviation / best)
        yield Cell(ratio, "parameters that win a run of one graph each", found["other winners", ratio])
        for graphs in (1, 10):
            far = (their - best) * math.sqrt(graphs) / deviation if deviation else 0.0
            yield Cell(ratio, f"standard errors apart with {graphs} graph{'s' * (graphs > 1)}", far)


# Network and XORs of the evaluation's machines, in MB/s (section VIII): a ratio of about 0.06.
NETWORK, XORS = 128, 2100
# What is scaled, and the ratio of network to XORs after that.
SCALED = {"network doubled": ("0.12", 2), "XORs doubled": ("0.03", 1), "XORs tripled": ("0.02", 1)}


def scaling(records: Records) -> Iterable[Cell]:
    """Section VIII: how many times as fast the system is with more of one kind. It claims almost twice for the network, and
    at most 1.3 times for XORs."""
    found = {(work, cell.row): cell.value for work, column, cell in by_work(records) if column == "time, best"}
    for work in dict.fromkeys(work for work, _ in found):
        for name, (ratio, network) in SCALED.items():
            # The time is in arrivals of k blocks, which take half as long with twice the network.
            yield Cell(name, work, network * found[work, "0.06"] / found[work, ratio])


def throughput_of_system(records: Records, what: str) -> Iterable[Cell]:
    """The figures of section VIII: MB/s of the system at its best parameters, one bandwidth fixed."""
    for cell in records["uyeda-table-18"]:
        if cell.column == "time, best":
            ratio = float(cell.row)
            x, speed = (NETWORK / ratio, NETWORK / cell.value) if what == "XOR" else (XORS * ratio, XORS * ratio / cell.value)
            yield Cell(f"{x:.0f}", "the system", speed)


def lines(words: tuple, key: list[str]) -> Iterable[Cell]:
    """Returns what `lab/fountain` prints: a row for each line, named by some of its fields; a column for each other field."""
    for row in simulated(*words):
        name = ", ".join(f"{field} = {row[field]}" for field in key)
        for field, text in row.items():
            if field not in key and text not in ("-", "NaN"):
                yield Cell(name, field, float(text), command=shown(words))


def table_of_lines(name: str, title: str, words, key: list[str], seconds: tuple[float, float], about: str) -> Experiment:
    points = lambda effort: [Point("all", lambda: lines(words(effort), key))]
    return Experiment("uyeda", name, title, Kind.SAMPLED, "as the columns say", seconds, points=points, about=about)


def peers(effort: Effort) -> Iterable[Cell]:
    """Encoding and decoding beside the raptorq crate, in pairs; every answer is checked."""
    words = ("bench", SPEC, 5 if effort.quick else 20, 128)
    by_names = defaultdict(list)
    for row in simulated(*words):
        by_names[row["subject"], row["base"]].append(row)
    for (subject, base), rows in by_names.items():
        speed = float(rows[0]["bytes"]) / statistics.median(float(r["seconds"]) for r in rows) / 1e9
        samples = [(float(r["seconds"]), float(r["base_seconds"])) for r in rows]
        yield in_pairs(subject, f"times as fast as {base}", samples, speed, shown(words))


def mean_degree(c: float, delta: float, first: float = 1 / 1024, k: int = 1024) -> float:
    """Returns the average degree of the robust soliton distribution as docs/errata.md reads it; `first` is rho(1)."""
    reach = c * math.log(k / delta) * math.sqrt(k)
    spike = max(2, math.ceil(k / reach))
    weights = {1: first} | {degree: 1 / (degree * (degree - 1)) for degree in range(2, k + 1)}
    for degree in range(1, min(spike, k + 1)):
        weights[degree] += reach / (degree * k)
    weights[min(spike, k)] += reach * math.log(reach / delta) / k
    return sum(degree * weight for degree, weight in weights.items()) / sum(weights.values())


def degrees() -> Iterable[Cell]:
    """Figure 1: average degree by C, a curve a delta."""
    for tenths in range(1, 51):
        for delta in ("0.001", "0.01", "0.1", "0.5", "1"):
            c = tenths / 10
            yield Cell(f"{c:g}", f"delta = {delta}", mean_degree(c, float(delta)))


TABLES = [
    Experiment("uyeda", f"table-{number}", what, Kind.SAMPLED, what, (0, 0), sources=("uyeda-blocks",),
               derive=lambda records, number=number: of_table(records, "uyeda-blocks", number),
               printed=functools.partial(theirs, number),
               about="Rows are delta (their Sigma), columns C. Theirs are averages of ten runs.")
    for number, what in BLOCKS.items()
] + [
    Experiment("uyeda", f"table-{number}", f"Speed: {name}", Kind.TIMED, "as a multiple of table 7 (theirs in MB/s)", (0, 0),
               sources=("uyeda-throughput",),
               derive=lambda records, number=number: of_table(records, "uyeda-throughput", number),
               printed=functools.partial(theirs, number), comparable=False)
    for number, (name, _) in THROUGHPUT.items()
]  # fmt: skip
EXPERIMENTS = [
    Experiment("uyeda", "figure-1", "Average degree", Kind.EXACT, "neighbours of a block", (0, 0),
               points=lambda _: [Point("all", degrees)], plot=Plot("C", "average degree", log_x=False),
               about="By the formula; a test compares it with the degrees that table 18 prints, and the core with it."),
    Experiment("uyeda", "blocks", "All averages over graphs", Kind.SAMPLED, "by table and C", (20, 400),
               points=lambda effort: [Point("all", lambda: averages(effort))],
               about="k = 1024, 5 k blocks in random order, a new graph for each run. lazy is our schedule for table 6."),
    Experiment("uyeda", "throughput", "All speeds, in pairs with table 7", Kind.TIMED, "as a multiple of table 7", (30, 3000),
               points=all_speeds, about="With exactly as many blocks as are needed, decoding 1024 blocks of 128 KiB (quick: "
               f"16 KiB), one thread. At least {pairs.FEWEST} pairs a cell, and up to four times as many while its ratio is uncertain. Seconds are the "
               "processor's: the decoder waits for nothing, so that other programs matter less."),
    Experiment("uyeda", "queues", "Table 6 and the order of the queue", Kind.SAMPLED, "percent", (0, 0), sources=("uyeda-blocks",),
               derive=queues, about="Section II does not say which data block leaves the queue first. Deviations of averages from the printed cells."),
    table_of_lines("sizes", "Blocks needed for fewer and more data blocks", lambda effort: ("sizes", 20 if effort.quick else
                   200, "64,256,1024,4096"), ["k", "c", "delta"], (10, 100),
                   "Section IV expects smaller k to need relatively fewer blocks, and to decode faster. average is in multiples of k."),
    Experiment("uyeda", "xor-blocks", "Better XORs for longer blocks", Kind.TIMED, "as a multiple of 64-bit XORs", (10, 60),
               points=lambda effort: [Point("all", lambda: block_sizes(effort))],
               about="Section VI.3: the better XOR gains most for long blocks. An object of 128 MiB (quick: 32), k = 1024 to 16, C = 1.4, delta = 0.2; "
               "64-bit XORs run by the tiled scalar kernel, the others by the default one."),
    *sorted(TABLES, key=lambda experiment: int(experiment.name.partition("-")[2])),
    Experiment("uyeda", "network", "Network against computation: all ratios and guesses at the work", Kind.SAMPLED,
               "parameters, degrees; time in k arrivals", (20, 400), points=lambda effort: [Point("all", lambda: network(effort))],
               about="Uniform coverage, decodable; averages over 20 graphs (whole: 200) a cell, each with one reception."),
    Experiment("uyeda", "table-18", "The best parameters for each ratio of network to computation", Kind.SAMPLED,
               "parameters, degrees; time in k arrivals", (0, 0), sources=("uyeda-network",), derive=table_18,
               printed="uyeda-table-18", comparable=False, about="Work counts the blocks that XORs read, the guess of the next table that explains theirs best; "
               "see docs/errata.md. The average degrees of their parameters are exact in a test of the core."),
    Experiment("uyeda", "table-18-models", "Table 18 under several guesses at the work", Kind.SAMPLED, "as the columns say", (0, 0),
               sources=("uyeda-network",), derive=models, about="written: an XOR is work when its block is determined, and counts the bytes "
               "that it writes; read: those that it reads; read and written: both; after: all XORs follow the last arrival, of lazy or of greedy decoding."),
    Experiment("uyeda", "table-18-chance", "Table 18 and chance", Kind.SAMPLED, "as the columns say", (0, 0), sources=("uyeda-network",),
               derive=chances, about="With the model of table 18. A choice less than two standard errors from the best cannot be told from it by "
               "as many graphs. How many graphs the evaluation had is not said."),
    Experiment("uyeda", "scaling", "Section VIII: more network, or faster XORs", Kind.SAMPLED, "times as fast", (0, 0), sources=("uyeda-network",),
               derive=scaling, about="From a network of 128 MB/s and XORs of 2.1 GB/s (a ratio of 0.06), at the best parameters of either side. "
               "It claims nearly twice for the doubled network, and at most 1.3 times for faster XORs. Columns are the models of work."),
    Experiment("uyeda", "figure-xor", "The system with a network of 128 MB/s", Kind.SAMPLED, "MB/s", (0, 0),
               sources=("uyeda-table-18",), derive=lambda records: throughput_of_system(records, "XOR"),
               plot=Plot("MB/s of XORs", "MB/s of the system")),
    Experiment("uyeda", "figure-network", "The system with XORs at 2100 MB/s", Kind.SAMPLED, "MB/s", (0, 0),
               sources=("uyeda-table-18",), derive=lambda records: throughput_of_system(records, "network"),
               plot=Plot("MB/s of the network", "MB/s of the system")),
    Experiment("uyeda", "section-10", "Section X: all variants at C = 1.4, delta = 0.2", Kind.TIMED, "multiples", (0, 0),
               sources=("uyeda-throughput", "uyeda-blocks"), derive=summary, comparable=False),
    table_of_lines("freedom", "Degree of freedom: how freely blocks replace each other", lambda effort: ("freedom", 10 if
                   effort.quick else 1000), ["variant", "method", "n", "received"], (15, 300),
                   "The paper asks for such a measure; ours are in docs/lt.md."),
    table_of_lines("curve", "Blocks needed, XORs and failures of many distributions", lambda effort: ("curve", 4 if
                   effort.quick else 1000), ["variant", "method", "c", "delta"], (5, 900),
                   "k = 1024, and 5 k blocks, or the 1.2 k that a reader of files has. average and q999 are the blocks needed, in multiples of k; "
                   "failure_at_1.05 is the share of runs that fail with 1.05 k blocks. The paper plots no such curve; docs/lt.md chooses by it."),
    table_of_lines("defaults", "Blocks and XORs of the default distribution and others", lambda effort:
                   ("defaults", 5 if effort.quick else 1000, "4,16,64,256,1024" if effort.quick else
                    "4,16,64,256,1024,8192,65536"), ["k", "n", "variant", "c", "delta"], (3, 1200),
                   "A new graph for each run, by inactivation; average, q999 and most are in multiples of k. The distributions of specs "
                   "that name k and n alone, beside others between few XORs and few blocks; the paper has none of them."),
    Experiment("uyeda", "peers", "Beside the raptorq crate", Kind.TIMED, "times as fast", (5, 200),
               points=lambda effort: [Point("all", lambda: peers(effort))],
               about=f"{SPEC}, 1024 blocks of 128 KiB, one thread; every answer is checked."),
]  # fmt: skip
