#!/usr/bin/env python3
"""Prints tables of figures in README.md and docs/ (see PAGES) from records in lab/records/.

    lab/readme_tables.py [--mixed]             print every table
    lab/readme_tables.py [--mixed] --check     compare the pages with them; exit 1 if one differs
    lab/readme_tables.py [--mixed] --write     put them into the pages

In a page a table stands between the lines `<!-- table: NAME -->` and `<!-- end -->`. Beneath it are the processor, the
commit, the date and the commands of its records, which must agree in processor and commit, and must have been taken of just
that commit. With --mixed they may differ, and every record's own are named. The tables `claims-PAPER` have what the records
of lab/run say about the claims of a document (lab/papers/claims), and `findings` is the list at the head of their page. Of all
documents, --check also says which cite a commit that cannot be looked up (lab/cited.py).

A table of counts is that of an experiment of lab/run, whose record lab/papers/tests.py compares with what is counted now.

The peers' records of RUN are made by these commands:

    lab/peers/run.py --label LABEL
    lab/peers/run.py --op decode --label LABEL
    lab/peers/run.py --words --shapes 6+3,8+3,10+4,12+4,10+6,20+4 --label LABEL-words
    lab/peers/run.py --set dram --shapes 10+4,20+4 --rounds 20 --label LABEL
    lab/peers/run.py --set 1k --shapes 6+3,10+4,20+4 --label LABEL-1k
    lab/peers/run.py --op patterns --shapes 10+4 --set 28672 \
        --pairs paritas:backblaze@auto/erasure,paritas/erasure,paritas:backblaze@auto/klauspost,paritas/klauspost --label LABEL
    lab/peers/run.py --op patterns --shapes 20+4 --set 49152 \
        --pairs paritas:isal-cauchy@auto/erasure,paritas:isal-cauchy@auto/klauspost --label LABEL

those of wide codes, with --op encode and with --op decode, by

    lab/peers/run.py --set 1k --shapes 32+32,64+64,128+128 --label wide \
        --pairs paritas:leopard8@auto/klauspost:leopard,paritas:leopard8@auto/simd,paritas:backblaze@auto/klauspost:leopard
    lab/peers/run.py --set 1k --shapes 1024+1024,1000+200 --label long \
        --pairs long/klauspost:leopard,long/simd,leopard16/klauspost:leopard,leopard16/simd

the one of docs/growth.svg, which lab/report --picture draws, by

    lab/peers/run.py --set 1k --rounds 20 --pairs long/klauspost:leopard --label growth \
        --shapes 16+16,32+32,64+64,128+128,256+256,512+512,1024+1024,2048+2048,4096+4096,8192+8192,16384+16384

the one of whole commands by

    lab/compare_files.py --bytes 256M --minutes 2

and those of planning by lab/planning.py.
"""

import argparse
import difflib
import re
import statistics
import sys
from typing import Callable, NamedTuple

import cited
import pairs
import records
from papers import catalogue, claims, plank, store

# The tables are printed from these records. RUN is the date and the label of the peers' records.
# COMMANDS is the name of the record of whole commands.
RUN = "2026-11-27-final"
COMMANDS = "files-4+2-shm-2026-11-22"
# The records of wide codes and of new patterns, and that of docs/growth.svg.
WIDE = "2026-12-01"
PATTERNS = "2026-11-27"
GROWTH = "2026-11-30-growth"
# The date of the records of lab/planning.py.
PLANNED = "2026-11-28"

PAGES = ("README.md", "docs/speed.md", "docs/papers.md", "docs/codes.md", "docs/dpg.md", "docs/optimiser.md", "docs/lt.md")
PLACE = re.compile(r"(?<=<!-- table: )(\S+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

Row = list[str]
Records = dict[str, records.Record]


class Table(NamedTuple):
    """The page on which a table stands, what it takes from which record, and how its rows, the first of which is its head,
    are made from them."""

    page: str
    sources: dict[str, str]
    rows: Callable[[Records], list[Row]]
    load: Callable[[str], records.Record] = records.load


def of_experiment(identity: str) -> records.Record:
    """Returns the record of an experiment of lab/run: a row for each cell, with its doubt, and with what the document prints as `theirs`."""
    experiment = catalogue.by_identity(identity)
    found = store.Store(records.FOLDER / "papers").read(experiment)
    if found is None:
        sys.exit(f"there is no record of {identity}; lab/run makes it")
    theirs, (processor, commit, date, _, command) = experiment.theirs(), found.origin
    rows = [{"row": cell.row, "column": cell.column, "value": f"{cell.value:g}", "theirs": theirs.get(cell.place, ""), "doubt": cell.doubt} for cell in found.cells]
    return records.Record(identity, records.Origin(processor, commit, date, command), rows)


def samples(record: records.Record, shape: str, subject: str, base: str) -> pairs.Pairs:
    """Pairs of nanoseconds per byte of a shard."""
    names = (shape, subject, base)
    return pairs.Pairs([
        (float(row["subject_ns"]) / int(row["subject_bytes"]), float(row["base_ns"]) / int(row["base_bytes"]))
        for row in record.rows if (row["shape"], row["subject"], row["base"]) == names
    ])


def ratio(taken: pairs.Pairs) -> str:
    """How many times as fast the subject is as its base; empty where no pairs were taken."""
    return f"{taken.median():.1f}" if taken.pairs else ""


def speed(shape: str, side: list[float]) -> str:
    """GB/s of user data; empty where there are no samples."""
    return f"{int(shape.partition('+')[0]) / statistics.median(side):.1f}" if side else ""


SPEED_COLUMNS = [("6+3", "cache"), ("10+4", "cache"), ("10+6", "cache"), ("20+4", "cache"), ("10+4", "256 MiB"), ("20+4", "256 MiB")]
# A row's label, a pair, and which side of it is shown.
SPEED_ROWS = [
    ("paritas", ("paritas", "klauspost"), 0),
    ("paritas, AVX2 only", ("paritas:jit-avx2", "klauspost:avx2"), 0),
    ("klauspost/reedsolomon 1.14 (AVX-512, GFNI)", ("paritas", "klauspost"), 1),
    ("klauspost/reedsolomon 1.14, AVX2 only", ("paritas:jit-avx2", "klauspost:avx2"), 1),
    ("ISA-L 2.31 (AVX-512, GFNI)", ("paritas", "isal"), 1),
    ("ISA-L 2.31, AVX2 only", ("paritas:jit-avx2", "isal:avx2"), 1),
]


def speeds(found: Records) -> list[Row]:
    def cell(shape: str, place: str, names: tuple[str, str], side: int) -> str:
        return speed(shape, [pair[side] for pair in samples(found[place], shape, *names).pairs])

    head = ["encode", *(f"{shape} {place}" for shape, place in SPEED_COLUMNS)]
    return [head, *([label, *(cell(*column, names, side) for column in SPEED_COLUMNS)] for label, names, side in SPEED_ROWS)]


RATIO_SHAPES = ["6+3", "8+3", "10+4", "12+4", "10+6", "17+3", "20+4"]
AVX2, WIDEST = ("paritas:jit-avx2", "klauspost:avx2"), ("paritas", "klauspost")
# A row's label, what it takes its samples from, and a pair.
RATIO_ROWS = [
    ("encode, AVX2", "encode", AVX2),
    ("encode, AVX-512 and GFNI", "encode", WIDEST),
    ("decode, m data shards lost, AVX2", "decode", AVX2),
    ("decode, the same, AVX-512 and GFNI", "decode", WIDEST),
    ("its own bytes (`backblaze`), AVX2", "peers' bytes", ("paritas:backblaze@jit-avx2", "klauspost:avx2")),
    ("its own bytes, AVX-512 and GFNI", "peers' bytes", ("paritas:backblaze@auto", "klauspost")),
    ("ISA-L's bytes (`isal-cauchy`), AVX2", "peers' bytes", ("paritas:isal-cauchy@jit-avx2", "klauspost:avx2")),
    ("ISA-L's bytes, AVX2, beside ISA-L", "peers' bytes", ("paritas:isal-cauchy@jit-avx2", "isal:avx2")),
    ("ISA-L's bytes, AVX-512 and GFNI, beside ISA-L", "peers' bytes", ("paritas:isal-cauchy@auto", "isal")),
    ("shards of 1 KiB, AVX2 (20+4: 960 bytes)", "1 KiB", AVX2),
    ("shards of 1 KiB, AVX-512 and GFNI", "1 KiB", WIDEST),
]


def ratios(found: Records) -> list[Row]:
    rows = ([label, *(ratio(samples(found[source], shape, *names)) for shape in RATIO_SHAPES)] for label, source, names in RATIO_ROWS)
    return [["", *RATIO_SHAPES], *rows]


# A shape of wide codes, and the record that has it.
WIDE_SHAPES = {"32+32": "wide", "64+64": "wide", "128+128": "wide", "1024+1024": "long", "1000+200": "long"}
# Codes of bytes and of two bytes, and their variants in each record. The first has the peers' bytes.
WIDE_CODES = [
    ("the peers' bytes (`leopard8`, `leopard16`)", {"wide": "paritas:leopard8@auto", "long": "leopard16"}),
    ("own bytes (`backblaze`, `LongCode`)", {"wide": "paritas:backblaze@auto", "long": "long"}),
]
WIDE_PEERS = [("klauspost/reedsolomon's Leopard", "klauspost:leopard"), ("reed-solomon-simd", "simd")]


def wide(found: Records) -> list[Row]:
    """GB/s of each code, and beneath it how many times as fast it is as a peer."""

    def cells(op: str, variants: dict[str, str], peer: str, value: Callable[[str, pairs.Pairs], str]) -> Row:
        taken = ((shape, samples(found[f"{op}, {name}"], shape, variants[name], peer)) for shape, name in WIDE_SHAPES.items())
        return [value(shape, each) for shape, each in taken]

    own = lambda shape, taken: speed(shape, [subject for subject, _ in taken.pairs])
    rows = [["", *WIDE_SHAPES]]
    for op, what in [("encode", "encode"), ("decode", "m data shards lost")]:
        for code, variants in WIDE_CODES:
            rows.append([f"{what}, {code}: GB/s", *cells(op, variants, WIDE_PEERS[0][1], own)])
            for peer, variant in WIDE_PEERS:
                row = [f"x {peer}", *cells(op, variants, variant, lambda _, taken: ratio(taken))]
                rows += [row] if any(row[1:]) else []
    return rows


PATTERN_ROWS = [("`backblaze` 10+4", "10+4", "paritas:backblaze@auto"), ("`cauchy` 10+4, the default", "10+4", "paritas"),
                ("`isal-cauchy` 20+4", "20+4", "paritas:isal-cauchy@auto")]


def new_patterns(found: Records) -> list[Row]:
    """Microseconds of a repair beside those of each peer, and how many times as fast it is."""
    peers = {"reed-solomon-erasure 6": "erasure", "klauspost/reedsolomon, its inverses kept": "klauspost"}
    rows = [["", "shards", "paritas, µs", *(cell for peer in peers for cell in (f"{peer}, µs", "ratio (95 %)"))]]
    for label, shape, subject in PATTERN_ROWS:
        beside = lambda peer: [row for row in found[shape].rows if (row["subject"], row["base"]) == (subject, peer)]
        micros = lambda rows, side: f"{statistics.median(float(row[side]) for row in rows) / 1e3:.1f}"
        own = beside("erasure")
        cells = [cell for peer in peers.values()
                 for cell in (micros(beside(peer), "base_ns"), str(samples(found[shape], shape, subject, peer).ratio()))]
        rows.append([label, f"{own[0]['subject_bytes']} bytes", micros(own, "subject_ns"), *cells])
    return rows


# A row's label, the operation, and the command: paritas, or what is beside it. par2 may be left out of a record.
COMMAND_ROWS = [
    ("`paritas encode --no-sync`", "encode", "paritas"),
    ("`cp` of as many bytes as it writes", "encode", "cp of the bytes written"),
    ("`zfec` 1.6 (one thread)", "encode", "zfec"),
    ("`par2 create` 0.8.1, as much redundancy", "encode", "par2"),
    ("`paritas decode --no-sync`, 2 data shards lost", "decode, 2 data shards lost", "paritas"),
    ("`zunfec`, the same", "decode, 2 data shards lost", "zfec"),
    ("`cp` of the file", "decode, 2 data shards lost", "cp"),
    ("`paritas decode --no-sync`, nothing lost", "decode, nothing lost", "paritas"),
    ("`zunfec`, the same (it only copies)", "decode, nothing lost", "zfec"),
]


def commands(found: Records) -> list[Row]:
    taken = {(what, command): seconds(found["whole commands"], what, command) for _, what, command in COMMAND_ROWS}
    rows = [[label, *times(taken[what, command], command)] for label, what, command in COMMAND_ROWS
            if command != "par2" or taken[what, command].pairs]
    return [["command", "seconds, median (low to high)", "times as long as paritas"], *rows]


def seconds(record: records.Record, what: str, command: str) -> pairs.Pairs:
    """All pairs of paritas and `command`, or of paritas and anything."""
    return pairs.Pairs([
        (float(row["seconds"]), float(row["base_seconds"])) for row in record.rows
        if (row["what"], row["subject"]) == (what, "paritas") and command in ("paritas", row["base"])
    ])


def times(taken: pairs.Pairs, command: str) -> tuple[str, str]:
    """Seconds, and how many times those of paritas; empty where no pairs were taken. A single sample has no spread."""
    if not taken.pairs:
        return "", ""
    ours = command == "paritas"
    spread = taken.subject() if ours else taken.base()
    if len(taken.pairs) == 1:
        return f"{spread.median:.0f} (one run)", f"{taken.median():.0f}"
    return f"{spread.median:.2f} ({spread.least:.2f} to {spread.most:.2f})", f"{1 if ours else taken.median():.1f}"


GROUP_COLUMNS = {"BB-DPG": "BB-DPG", "optimised DPG": "DPG", "DPG w/o opt": "DPG w/o opt", "(k, m)": "(k, m)", "(k, m')": "(k, m2)"}
WHOLE_GROUP = "whole group (ours)"


def group_lengths(found: Records) -> list[Row]:
    """Ours/theirs, and by how many percent BB-DPG is shorter than theirs: by their count, and as a whole."""
    cells = {(row["row"], row["column"]): row for row in found["lengths"].rows}
    less = lambda ours, theirs: f"{100 * (1 - int(ours) / int(theirs)):.0f} %"
    lines = [["(k, m, m2)", *GROUP_COLUMNS.values(), "group", "less than theirs"]]
    for name in dict.fromkeys(row for row, _ in cells):
        both = [cells[name, column] for column in GROUP_COLUMNS]
        whole = cells[name, WHOLE_GROUP]["value"]
        gains = ", ".join(less(ours, both[0]["theirs"]) for ours in (both[0]["value"], whole))
        lines.append([name, *(f"{cell['value']}/{cell['theirs']}" for cell in both), whole, gains])
    return lines


FAMILIES = ("RDP", "EVENODD", "Liberation", "Blaum-Roth", "Liber8tion", "CRS good", "CRS original", "RS", "RS RAID-6", "RS zfec")
SHAPES = {f"[{k},{m}]": f"plank-encode-{k}-{m}" for k, m in plank.SHAPES}


# Marks a figure that is too noisy.
DOUBTFUL = "†"


def families(found: Records) -> list[Row]:
    """What each family reaches of the speed of an XOR, at the fastest of the w that were measured: then and compiled."""

    def fastest(family: str, shape: str, way: str) -> str:
        rows = [row for row in found[shape].rows if row["column"] == way and plank.family(row["row"]) == family]
        best = max(rows, key=lambda row: float(row["value"]), default=None)
        return claims.number(float(best["value"])) + (DOUBTFUL if best["doubt"] else "") if best else ""

    cell = lambda family, shape: " / ".join(filter(None, (fastest(family, shape, way) for way in (plank.TALK, plank.COMPILED))))
    return [["encode", *SHAPES], *([family, *(cell(family, shape) for shape in SHAPES)] for family in FAMILIES)]


# What table 4.4 puts beside BB-DPG, in its order, with the names of its columns.
BESIDE = {"optimised DPG": "DPG", "DPG w/o opt": "DPG w/o opt", "DPG in words": "DPG, GF(2^8)", "(k, m)": "(k, m)", "(k, m2)": "(k, m2)", "compiled (ours)": "compiled"}


def group_speeds(found: Records) -> list[Row]:
    """The speed of each code in percent of that of BB-DPG, ours/theirs; of the compiled kernel there is none of theirs."""
    cells = {(row["row"], row["column"]): row for row in found["speeds"].rows}
    percent = lambda text: f"{100 + float(text):.0f}"

    def cell(row: str, column: str) -> str:
        if (row, column) not in cells:
            return "-"
        one = cells[row, column]
        return percent(one["value"]) + (DOUBTFUL if one["doubt"] else "") + (f" / {percent(one['theirs'])}" if one["theirs"] else "")

    rows = dict.fromkeys(row for row, _ in cells)
    return [["(k, m, m2)", *BESIDE.values()], *([row, *(cell(row, column) for column in BESIDE)] for row in rows)]


def by_row(record: records.Record) -> dict[str, dict[str, float]]:
    """The cells of each row by column."""
    found: dict[str, dict[str, float]] = {}
    for row in record.rows:
        found.setdefault(row["row"], {})[row["column"]] = float(row["value"])
    return found


# A row's label and its name in the record of distributions.
DISTRIBUTIONS = {"`n=1229,c=0.01,delta=1,variant=uniform`": "uniform n=1229, method = Inactivation, c = 0.01, delta = 1",
                 "`n=5120,c=0.05,delta=0.01,variant=uniform`": "uniform n=5120, method = Inactivation, c = 0.05, delta = 0.01",
                 "`n=5120,c=0.05,delta=0.01` (rateless)": "plain n=5120, method = Inactivation, c = 0.05, delta = 0.01"}  # fmt: skip


def distributions(found: Records) -> list[Row]:
    cells = by_row(found["curve"])
    rows = [["code", "average degree", "blocks needed, average", "99.9 %", "failures at 1.05 k",
             "XORs for each data block: when decoding first succeeds, and with 1.05 k blocks"]]  # fmt: skip
    for label, name in DISTRIBUTIONS.items():
        row = cells[f"variant = {name}"]
        rows.append([label, f"{row['mean_degree']:.1f}", f"{row['average']:.4f}", f"{row['q999']:.4f}", f"{100 * row['failure_at_1.05']:.1f} %",
                     f"{row['xors_a_block']:.1f}, {row['xors_at_1.05']:.1f}"])  # fmt: skip
    return rows


# Variants beside the default, which is uniform with (0.03, 0.1) from k = 256 on and with (0.1, 0.5) below.
BESIDE_DEFAULT = {"`plain`, 0.1, 0.5": ("plain", "0.1", "0.5"), "`uniform`, 0.01, 1": ("uniform", "0.01", "1"), "`uniform`, 0.02, 0.1": ("uniform", "0.02", "0.1"),
                  "`uniform`, 0.02, 0.01": ("uniform", "0.02", "0.01")}  # fmt: skip


def lt_defaults(found: Records) -> list[Row]:
    cells = by_row(found["defaults"])

    def shown(shape: str, variant: str, c: str, delta: str) -> str:
        row = cells[f"{shape}, variant = {variant}, c = {c}, delta = {delta}"]
        most = f"{row['q999']:.3f}" if "q999" in row else f"never: {100 * row['failed'] / row['runs']:.1f}%"
        return f"{row['average']:.3f}, {most}; {row['xors_at_1.05']:.1f}"

    rows = [["k", "n", "the default", *BESIDE_DEFAULT]]
    for shape in dict.fromkeys(name.partition(", variant")[0] for name in cells):
        k, n = (word.rpartition(" ")[2] for word in shape.split(", "))
        own = ("uniform", "0.03", "0.1") if int(k) >= 256 else ("uniform", "0.1", "0.5")
        rows.append([k, n, *(shown(shape, *one) for one in (own, *BESIDE_DEFAULT.values()))])
    return rows


RATIOS = ("0.02", "0.06", "0.1", "0.2", "0.4", "0.6", "0.8", "1")


def balance(found: Records) -> list[Row]:
    cells = by_row(found["network"])
    value = lambda ratio, name: cells[ratio][f"written: {name}"]
    plain = lambda number: f"{number:.6f}".rstrip("0").rstrip(".")
    return [["r", "best C, delta (average degree)", "time"],
            *([ratio, f"{value(ratio, 'C'):g}, {plain(value(ratio, 'delta'))} ({value(ratio, 'average degree'):.1f})", f"{value(ratio, 'time, best'):.2f}"] for ratio in RATIOS)]  # fmt: skip


def median_of(rows: list[dict[str, str]], *columns: str) -> float:
    """The median over the rounds of the sum of some columns."""
    return statistics.median(sum(float(row[column]) for column in columns) for row in rows)


def by_code(record: records.Record) -> dict[str, list[dict[str, str]]]:
    """The rounds of each code."""
    return {code: [row for row in record.rows if row["code"] == code] for code in dict.fromkeys(row["code"] for row in record.rows)}


def plan_times(found: Records) -> list[Row]:
    """Seconds, millions of steps, and XORs. Blocks of LT codes are planned without a budget."""

    def seconds(rows: list[dict[str, str]], what: str) -> str:
        value = median_of(rows, f"{what}_s")
        return f"{value:.1f}" if value >= 0.3 else f"{value:.2f}"

    def counts(row: dict[str, str], what: str) -> Row:
        steps = int(row[f"{what}_steps"])
        return [f"{steps / 1e6:.0f}" if steps else "-", f"{int(row[f'{what}_xors']):,}"]

    head = ["code", "lost", "define", "encode", "steps", "XORs", "decode", "steps", "XORs"]
    return [head, *([f"`{code}`", rows[0]["lost"], seconds(rows, "define"), seconds(rows, "encode"), *counts(rows[0], "encode"), seconds(rows, "decode"),
                     *counts(rows[0], "decode")] for code, rows in by_code(found["planning"]).items())]  # fmt: skip


def first_calls(found: Records) -> list[Row]:
    """The first encode begins with the spec, so it has the time of defining the code."""
    head = ["code", "first encode, µs", "first decode of m data shards, µs", "a call without bytes, ns"]
    return [head, *([f"`{code}`", f"{median_of(rows, 'define_us', 'encode_us'):.0f}", f"{median_of(rows, 'decode_us'):.0f}", f"{median_of(rows, 'no_bytes_ns'):.0f}"]
                    for code, rows in by_code(found["calls"]).items())]  # fmt: skip


TABLES = {
    "speeds": Table("docs/speed.md", {"cache": f"peers-encode-cache-staggered-{RUN}", "256 MiB": f"peers-encode-dram-staggered-{RUN}"}, speeds),
    "ratios": Table("docs/speed.md", {
        "encode": f"peers-encode-cache-staggered-{RUN}",
        "decode": f"peers-decode-cache-staggered-{RUN}",
        "peers' bytes": f"peers-encode-cache-staggered-{RUN}-words",
        "1 KiB": f"peers-encode-1k-staggered-{RUN}-1k",
    }, ratios),
    "wide": Table("docs/speed.md", {
        f"{op}, {name}": f"peers-{op}-1k-staggered-{WIDE}-{name}" for op in ("encode", "decode") for name in ("wide", "long")
    }, wide),
    "new-patterns": Table("docs/speed.md", {
        "10+4": f"peers-patterns-28672-staggered-{PATTERNS}-final",
        "20+4": f"peers-patterns-49152-staggered-{PATTERNS}-final",
    }, new_patterns),
    "commands": Table("README.md", {"whole commands": COMMANDS}, commands),
    "families": Table("docs/codes.md", SHAPES, families, of_experiment),
    "group-speeds": Table("docs/dpg.md", {"speeds": "zhou-table-4.4"}, group_speeds, of_experiment),
    "group-lengths": Table("docs/dpg.md", {"lengths": "zhou-table-4.3"}, group_lengths, of_experiment),
    "lt-distributions": Table("docs/lt.md", {"curve": "uyeda-curve"}, distributions, of_experiment),
    "lt-defaults": Table("docs/lt.md", {"defaults": "uyeda-defaults"}, lt_defaults, of_experiment),
    "lt-network": Table("docs/lt.md", {"network": "uyeda-network"}, balance, of_experiment),
    "plan-times": Table("docs/optimiser.md", {"planning": f"plan-times-{PLANNED}"}, plan_times),
    "first-calls": Table("docs/optimiser.md", {"calls": f"first-calls-{PLANNED}"}, first_calls),
}


# The list at the head of docs/papers.md, whose figures come from many records.
FINDINGS = "findings"


def markdown(name: str, mixed: bool) -> str:
    """The table `name`, and its origin."""
    table = TABLES[name]
    found = {what: table.load(record) for what, record in table.sources.items()}
    origin = of_each(found) if mixed else of_all(name, found)
    head, *rows = table.rows(found)
    if empty := [row[0] for row in rows if not any(row[1:])]:
        sys.exit(f"table {name}: the records have no samples for {', '.join(empty)}")
    lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in row) + "|" for row in [head, ["---"] * len(head), *rows]]
    return "\n".join([*lines, "", f"<sub>{origin}</sub>"])


def pages() -> dict[str, str]:
    """The page of each table."""
    of_papers = [FINDINGS, *(f"claims-{paper}" for paper in claims.CLAIMS)]
    return {name: table.page for name, table in TABLES.items()} | dict.fromkeys(of_papers, "docs/papers.md")


def of_all(name: str, found: Records) -> str:
    """What the records agree in, and their commands; ends the program if they are of several commits or processors."""
    origins = [record.origin for record in found.values()]
    for field in ("processor", "commit"):
        if len({getattr(origin, field) for origin in origins}) > 1:
            each = "".join(f"\n  {record.name}: {getattr(record.origin, field)}" for record in found.values())
            sys.exit(f"table {name}: its records must have one {field} (or give --mixed):{each}")
    if not records.is_plain(origins[0].commit):
        sys.exit(f"table {name}: its records must be of a commit (or give --mixed); got {origins[0].commit}")
    dates = ", ".join(dict.fromkeys(origin.date for origin in origins))
    lines = ", ".join(dict.fromkeys(f"`{origin.command}`" for origin in origins))
    return f"{origins[0].processor}, commit {origins[0].commit}, {dates}: {lines}"


def of_each(found: Records) -> str:
    """Each record's own origin, beside what was taken from it."""
    return "; ".join(
        f"{what}: {origin.processor}, commit {origin.commit}, {origin.date}, `{origin.command}`" for what, (_, origin, _) in found.items()
    )


def place(page: str, before: str, printed: dict[str, str]) -> str:
    """The text of a page with its tables, as they were printed, at their places; ends the program unless each has one place."""
    expected = [name for name, its in pages().items() if its == page]
    places = [match[1] for match in PLACE.finditer(before)]
    if sorted(places) != sorted(expected):
        sys.exit(f"{page} must have places for the tables {', '.join(expected)}; it has {', '.join(places) or 'none'}")
    return PLACE.sub(lambda match: f"{match[1]}{match[2]}\n{printed[match[1]]}\n\n", before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--check", action="store_true", help="compare the pages with the tables; exit 1 if one differs")
    which.add_argument("--write", action="store_true", help="put the tables into the pages")
    parser.add_argument("--mixed", action="store_true", help="allow records of several commits or processors in a table")
    args = parser.parse_args()
    printed = {name: markdown(name, args.mixed) for name in TABLES}
    printed |= {f"claims-{paper}": claims.markdown(paper, said) for paper, said in claims.CLAIMS.items()}
    printed[FINDINGS] = claims.head.findings(claims.CLAIMS)
    if not (args.check or args.write):
        print("\n\n".join(f"<!-- table: {name} -->\n\n{text}\n\n<!-- end -->" for name, text in printed.items()))
        return
    texts = {page: (records.ROOT / page).read_text() for page in PAGES}
    placed = {page: place(page, before, printed) for page, before in texts.items()}
    if args.write:
        for page, after in placed.items():
            (records.ROOT / page).write_text(after)
        return
    for page, after in placed.items():
        sys.stdout.writelines(difflib.unified_diff(texts[page].splitlines(True), after.splitlines(True), page, "its records"))
    # Records of older commits stay, so this is no failure.
    for line in cited.doubts():
        print(f"warning: {line}")
    if placed != texts:
        sys.exit(1)


if __name__ == "__main__":
    main()
