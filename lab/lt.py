#!/usr/bin/env python3
"""LT codes: the tables of Uyeda, Xia and Chien (2004), ours beside theirs, and throughput beside raptorq's.

    lab/lt.py tables [--runs 100] [--cells]         averages of tables 1, 2, 5, 6, 9, 11, 13, 15 and 17
    lab/lt.py system [--runs 20]                    table 18 and the throughput figures of section VIII
    lab/lt.py curve [--runs 1000]                   blocks needed against XORs and failures
    lab/lt.py freedom [--runs 1000]                 how robust the variants are
    lab/lt.py defaults [--runs 1000] [--k 4,16,…]   blocks and XORs that the default distribution and others need
    lab/lt.py variants [--rounds 4] [--kib 128] [--c 1,1.1,…] [--delta 0.1,…] [--cells]   tables 3, 4, 7, 8, 10, 12, 14, 16
    lab/lt.py peers [--rounds 20] [--kib 128] [--spec lt:…]               encode and decode beside raptorq

Everything runs in lab/fountain, which this script builds. Raw output goes to lab/records/, unless the arguments
differ from the defaults. `peers` and `variants` take samples in pairs on one core, and check every result. In `peers` a
pair is ours and raptorq's, in `variants` a variant and table 7. Ratios are those of pairs.py, of wall time and of processor
time, which a loaded machine disturbs less. Speeds are the median and the 90th percentile of all samples. The paper's speeds
were measured on two 2.4 GHz Xeons, so only ratios between its variants can be compared.
"""

import argparse
import collections
import csv
import datetime
import os
import pathlib
import statistics
import subprocess

import pairs

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PAPER = ROOT / "crates" / "core" / "tests" / "lt_paper.csv"
# On average decodes k = 1024 from less than 1.05 k blocks, with the fewest XORs; see docs/lt.md.
SPEC = "lt:k=1024,n=1229,c=0.01,delta=1,variant=uniform"
# The tables of throughput: their variants, their names, and the tables of the blocks that they need.
THROUGHPUT = {"3": "plain", "4": "plain", "7": "plain", "8": "originals", "10": "coverage",
              "12": "originals+singles+coverage", "14": "coverage+decodable", "16": "uniform+decodable"}
NAMES = {"3": "greedy, 64-bit XOR", "4": "lazy, 64-bit XOR", "7": "lazy", "8": "with originals", "10": "coverage threshold",
         "12": "originals, singles, coverage threshold", "14": "coverage threshold, decodable", "16": "uniform, decodable"}
NEEDED = {"3": "1", "4": "1", "7": "1", "8": "9", "10": "11", "12": "13", "14": "15", "16": "17"}
C, DELTA = "1,1.1,1.2,1.3,1.4,1.5,1.7", "0.1,0.2,0.5,0.7,1"
# Table 18: net2comp, C, delta, average degree.
TABLE_18 = [(0.06, 0.1, 1, 10.03576), (0.07, 1.2, 1, 4.815068), (0.08, 1.4, 0.5, 4.000171), (0.09, 1.6, 1, 4.025548),
            (0.1, 1.4, 0.5, 4.000171), (0.2, 2, 1, 3.799221), (0.3, 2, 0.2, 2.864407), (0.4, 1.9, 0.05, 2.690313),
            (0.5, 5, 0.7, 2.412966), (0.6, 10, 0.7, 2.148624), (0.7, 30, 0.00001, 1.969518),
            (0.8, 100, 0.00005, 1.958965), (0.9, 100, 0.1, 1.940646)]


def fountain(args, *words) -> list[dict]:
    """Runs lab/fountain, and returns what it prints; also keeps the output of a run with default arguments."""
    target = ROOT / "target" / "fountain"
    build = ["cargo", "build", "--release", "--quiet", "--target-dir", target]
    subprocess.run(build, cwd=HERE / "fountain", check=True)
    core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if words[0] in ("bench", "variants") else []
    command = [*core, target / "release" / "fountain", *map(str, words)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    name = f"lt-{words[0]}-{datetime.date.today().isoformat()}.csv"
    if args.is_usual:
        (ROOT / "lab" / "records" / name).write_text(text)
    return list(csv.DictReader(text.splitlines()))


def paper() -> dict:
    with open(PAPER, newline="") as file:
        return {(r["table"], float(r["c"]), float(r["delta"])): float(r["value"]) for r in csv.DictReader(file)}


def tables(args) -> None:
    theirs = paper()
    deviations = collections.defaultdict(list)
    for row in fountain(args, "tables", args.runs):
        # "lazy" is Paritas' own schedule; table 6 is that of the decoder as printed.
        key = ("6" if row["table"] == "lazy" else row["table"], float(row["c"]), float(row["delta"]))
        deviations[row["table"]].append((float(row["value"]) / theirs[key] - 1, *key[1:], float(row["value"]), theirs[key]))
    print(f"{args.runs} runs a cell\n\n| table | cells | mean deviation | mean absolute deviation | the farthest cells (c, delta: ours, theirs) |")
    print("| --- | --- | --- | --- | --- |")
    for table, cells in sorted(deviations.items(), key=lambda item: item[0].zfill(4)):
        off = [cell[0] for cell in cells]
        far = sorted(cells, key=lambda cell: -abs(cell[0]))[:3]
        far = "; ".join(f"{c:g}, {d:g}: {ours:g}, {their:g} ({o:+.0%})" for o, c, d, ours, their in far)
        print(f"| {table} | {len(cells)} | {statistics.mean(off):+.1%} | {statistics.mean(map(abs, off)):.1%} | {far} |")
    if args.cells:
        for table, cells in deviations.items():
            for off, c, delta, ours, their in cells:
                print(f"{table},{c:g},{delta:g},{ours:g},{their:g},{off:+.3f}")


def in_pairs(rows: list[dict], seconds: str = "seconds") -> pairs.Pairs:
    """Returns the pairs of some rows, in wall time or in processor time."""
    return pairs.Pairs([(float(row[seconds]), float(row["base_" + seconds])) for row in rows])


def show(rows: list[dict]) -> None:
    """Prints a line for each subject and base: speeds, and ratios of wall time and of processor time."""
    by_names = collections.defaultdict(list)
    for row in rows:
        by_names[row["subject"], row["base"]].append(row)
    print("| what | MB/s, median (p90) | beside | MB/s, median (p90) | ratio (wall) | ratio (processor) | pairs |\n|" + " --- |" * 7)
    for (subject, base), rows in by_names.items():
        wall, busy = in_pairs(rows), in_pairs(rows, "processor_seconds")
        ours, theirs = (speeds(spread, float(rows[0]["bytes"])) for spread in (wall.subject(), wall.base()))
        print(f"| {subject} | {ours} | {base} | {theirs} | {wall.ratio()} | {busy.ratio()} | {len(rows)} |")


def speeds(spread: pairs.Spread, size: float) -> str:
    """Returns MB/s as text: the median and the 90th percentile."""
    return f"{size / spread.median / 1e6:.0f} ({size / spread.p10 / 1e6:.0f})"


def peers(args) -> None:
    rows = fountain(args, "bench", args.spec, args.rounds, args.kib)
    print(f"{args.spec}, 1024 blocks of {args.kib} KiB, one thread; at hand beside new memory is ours beside the only call raptorq has\n")
    show(rows)


Cell = tuple[float, float]


def by_cell(rows: list[dict], column: str) -> dict[tuple[str, str, Cell], list[float]]:
    """Returns the samples of a table's cell, round by round."""
    samples = collections.defaultdict(list)
    for row in rows:
        samples[row["table"], row["variant"], (float(row["c"]), float(row["delta"]))].append(float(row[column]))
    return samples


def variants(args) -> None:
    rows = fountain(args, "variants", args.c, args.delta, args.rounds, args.kib)
    print(f"1024 blocks of {args.kib} KiB, one thread, {args.rounds} pairs a cell with table 7; medians\n")
    grid = [row for row in rows if row["table"] in THROUGHPUT]
    over_all_cells(grid)
    for table in THROUGHPUT if args.cells else []:
        one_table(table, grid)
    summary(rows)


def over_all_cells(rows: list[dict]) -> None:
    """Prints averages over cells; the ratio to table 7 is that of the pairs of all cells."""
    theirs, wall, busy = paper(), by_cell(rows, "mb_per_second"), by_cell(rows, "mb_per_processor_second")
    print("| table | cells | MB/s, average (slowest to fastest cell) | MB per second of processor time | ratio to table 7 (processor) "
          "| theirs, MB/s | theirs, ratio (median) |\n|" + " --- |" * 7)
    for table, variant in THROUGHPUT.items():
        cells = [cell for number, _, cell in wall if number == table]
        if not cells:
            continue
        speed = [statistics.median(wall[table, variant, cell]) for cell in cells]
        processor = [statistics.median(busy[table, variant, cell]) for cell in cells]
        ratio = in_pairs([row for row in rows if row["table"] == table], "processor_seconds").ratio()
        known = [cell for cell in cells if (table, *cell) in theirs]
        their, base = ([theirs[number, *cell] for cell in known] for number in (table, "7"))
        print(f"| {table} {NAMES[table]} | {len(cells)} | {statistics.mean(speed):.0f} ({min(speed):.0f} to {max(speed):.0f}) "
              f"| {statistics.mean(processor):.0f} ({min(processor):.0f} to {max(processor):.0f}) | {ratio} | "
              + (f"{statistics.mean(their):.0f} | {statistics.median(a / b for a, b in zip(their, base)):.2f} |" if known else "- | - |"))


def one_table(table: str, rows: list[dict]) -> None:
    """Prints a table in the paper's form, each cell beside the paper's."""
    theirs, wall = paper(), by_cell([row for row in rows if row["table"] == table], "mb_per_second")
    c, delta = (sorted({cell[i] for _, _, cell in wall}) for i in (0, 1))
    print(f"\nTable {table}, {NAMES[table]}: MB/s, ours / theirs\n\n| delta, C | " + " | ".join(f"{x:g}" for x in c) + " |\n|" + " --- |" * (len(c) + 1))
    for d in delta:
        line = (f"{statistics.median(wall[table, THROUGHPUT[table], (x, d)]):.0f} / {theirs.get((table, x, d), float('nan')):.0f}" for x in c)
        print(f"| {d:g} | " + " | ".join(line) + " |")


def summary(rows: list[dict]) -> None:
    """Prints section X: speed and blocks of all variants at C = 1.4, delta = 0.2; extremes; inactivation."""
    theirs = paper()
    chosen = [row for row in rows if row["table"] not in THROUGHPUT or (float(row["c"]), float(row["delta"])) == (1.4, 0.2)]
    print("\nSection X: C = 1.4, delta = 0.2, and what is beside it\n")
    print("| what | C, delta | blocks received | MB/s, median (min to max) | theirs: blocks, MB/s |\n|" + " --- |" * 5)
    blocks = by_cell(chosen, "blocks")
    for (table, variant, cell), speed in by_cell(chosen, "mb_per_second").items():
        their = "-"
        if table in THROUGHPUT:
            their = f"{theirs[NEEDED[table], *cell]:.2f} k, {theirs[table, *cell]:.0f}"
        name = f"{table} {NAMES[table]}" if table in NAMES else f"{table}: {variant}"
        print(f"| {name} | {cell[0]:g}, {cell[1]:g} | {blocks[table, variant, cell][0] / 1024:.3f} k | {statistics.median(speed):.0f} "
              f"({min(speed):.0f} to {max(speed):.0f}) | {their} |")


def system(args) -> None:
    rows = fountain(args, "system", args.runs)
    by_ratio = collections.defaultdict(list)
    for row in rows:
        by_ratio[float(row["ratio"])].append({key: float(value) for key, value in row.items()})
    theirs = {ratio: rest for ratio, *rest in TABLE_18}
    print("| net / compute | best C, delta (average degree) | k blocks' time until decoded | the paper's choice | its time |")
    print("| --- | --- | --- | --- | --- |")
    for ratio, cells in by_ratio.items():
        best = min(cells, key=lambda cell: cell["done"])
        line = f"| {ratio:g} | {best['c']:g}, {best['delta']:g} ({best['mean_degree']:.2f}) | {best['done']:.3f} |"
        if ratio in theirs:
            c, delta, degree = theirs[ratio]
            same = [cell["done"] for cell in cells if (cell["c"], cell["delta"]) == (c, delta)]
            line += f" {c:g}, {delta:g} ({degree:.2f}) | {same[0]:.3f} |" if same else f" {c:g}, {delta:g} | - |"
        else:
            line += " - | - |"
        print(line)
    print("\nThroughput of the system at its best parameters, MB/s")
    fastest = {ratio: min(cell["done"] for cell in cells) for ratio, cells in by_ratio.items()}
    for what, speed in [
        ("network 128 MB/s; XOR bandwidth in MB/s", lambda r: (128 / r, 128 / fastest[r])),
        ("XOR bandwidth 2100 MB/s; network in MB/s", lambda r: (2100 * r, 2100 * r / fastest[r])),
    ]:
        print(f"- {what}: " + ", ".join("{:.0f} gives {:.0f}".format(*speed(ratio)) for ratio in sorted(fastest)))


def markdown(rows: list[dict]) -> None:
    print("| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")


def plain(args) -> None:
    markdown(fountain(args, args.what, args.runs))


def defaults(args) -> None:
    rows = fountain(args, "defaults", args.runs, args.k)
    by_code = {(int(r["k"]), int(r["n"]), r["variant"], float(r["c"]), float(r["delta"])): r for r in rows}
    others = [("plain", 0.1, 0.5), ("uniform", 0.01, 1.0), ("uniform", 0.02, 0.1), ("uniform", 0.02, 0.01)]
    print("Blocks needed as a multiple of k: average, 99.9 %; XORs a data block with 1.05 k, or as many as it takes\n")
    print("| k | n | the default | " + " | ".join(f"`{v}`, {c:g}, {d:g}" for v, c, d in others) + " |\n|" + " --- |" * (3 + len(others)))
    for k, n in dict.fromkeys((k, n) for k, n, *_ in by_code):
        default = ("uniform", 0.03, 0.1) if k >= 256 else ("uniform", 0.1, 0.5)
        cells = (needs(by_code[k, n, *distribution]) for distribution in [default, *others])
        print(f"| {k} | {n} | " + " | ".join(cells) + " |")


def needs(row: dict) -> str:
    """Returns the share of runs that never decode, as text, if it is more than one in a thousand."""
    failed = int(row["failed"]) / int(row["runs"])
    tail = f"never: {failed:.1%}" if row["q999"] == "NaN" else f"{float(row['q999']):.3f}"
    return f"{float(row['average']):.3f}, {tail}; {float(row['xors_at_1.05']):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    for name, run, runs in [("tables", tables, 100), ("system", system, 20), ("curve", plain, 1000), ("freedom", plain, 1000),
                            ("defaults", defaults, 1000)]:
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--runs", type=int, default=runs)
        if name == "tables":
            command.add_argument("--cells", action="store_true", help="every cell, too")
        if name == "defaults":
            command.add_argument("--k", default="4,16,64,256,1024,8192,65536", help="numbers of data blocks")
    for name, run, rounds in [("peers", peers, 20), ("variants", variants, 4)]:
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--rounds", type=int, default=rounds)
        command.add_argument("--kib", type=int, default=128)
        if name == "peers":
            command.add_argument("--spec", default=SPEC)
        else:
            command.add_argument("--c", default=C)
            command.add_argument("--delta", default=DELTA)
            command.add_argument("--cells", action="store_true", help="every cell of every table, too")
    args = parser.parse_args()
    usual = vars(parser.parse_args([args.what]))
    args.is_usual = all(value == usual[key] for key, value in vars(args).items() if key != "cells")
    args.run(args)


if __name__ == "__main__":
    main()
