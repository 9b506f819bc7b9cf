#!/usr/bin/env python3
"""Prints tables 3.1, 3.5 and 3.6 of the dissertation, ours beside theirs.

    lab/optimiser_tables.py [--table 3.1|3.5|3.6 …] [--evaluations N] [--only N,K,W …]

T. Zhou, Erasure Coding Optimization for Data Storage (2020). All our figures come from `paritas schedule`
and `paritas bench`; a cell is `ours/theirs`. Table 3.1 and the natural columns of 3.5 start from the same
matrices (data points 0..k-1, parity points k..n-1), so their figures can be reproduced. Searches are
heuristic and depend on the number of evaluations. One cell of 3.5, (1, 3) at w = 8, is lost in the source.
Table 3.6 is in GB/s on this machine with compiled kernels, by strategy (1, 3) as in the dissertation; only
ratios within a line can be compared.
"""

import argparse
import json
import subprocess

BASELINE = """
7,5,3 45 31.11 11.11 28.89 28.89; 7,5,4 79 34.18 24.05 32.91 31.65; 7,5,8 267 49.06 26.59 34.46 34.08
8,6,3 60 31.67 13.33 31.67 31.67; 8,6,4 104 42.31 17.31 31.73 31.73; 8,6,8 362 53.31 33.70 34.53 34.81
9,6,4 152 32.89 19.74 32.89 32.89; 9,6,8 549 44.63 29.14 38.25 38.25; 10,6,4 200 27.50 22.00 36.00 36.00
10,6,8 736 40.90 28.80 38.59 38.59; 10,7,4 168 26.79 13.10 31.55 32.14; 10,7,8 633 49.13 24.49 37.60 36.81
11,8,4 192 27.60 20.83 33.85 32.29; 11,8,8 771 41.37 22.05 38.00 37.61; 12,8,4 256 23.44 23.44 35.94 35.94
12,8,8 1028 36.38 24.81 39.79 39.79; 14,10,4 324 19.14 16.36 35.49 35.80
14,10,5 488 23.98 20.29 36.27 36.07; 14,10,6 728 28.85 20.88 37.77 37.77; 14,10,7 890 26.9 11.46 37.53 37.53
14,10,8 1234 32.58 17.26 38.74 38.74; 16,10,4 496 18.95 21.77 37.70 37.70; 16,10,8 1920 30.16 21.98 40.89 40.89
"""
SHAPES = [(n, k, w) for w in (4, 8) for n, k in ((8, 6), (9, 6), (10, 6), (12, 8), (16, 10))]
STRATEGIES = {  # natural, SA, GA, for each of SHAPES
    "0,0": "112 77 77 164 122 117 216 173 162 272 232 232 520 462 464 "
    "378 291 247 573 467 425 768 611 582 1060 880 841 1968 1685 1681",
    "0,1": "94 70 68 134 102 100 172 137 134 212 190 188 412 368 368 "
    "256 234 225 413 393 349 556 518 479 805 740 684 1546 1432 1374",
    "0,2": "90 72 68 127 103 101 164 134 132 204 186 180 376 344 345 "
    "286 227 217 408 346 321 532 474 450 726 636 591 1304 - 1170",
    "0,3": "90 72 68 127 102 101 164 132 132 204 184 182 376 343 345 "
    "286 216 197 408 357 329 532 460 450 726 636 627 1304 - 1170",
    "1,0": "68 58 58 114 99 98 161 142 141 212 198 198 426 419 419 "
    "185 151 142 328 286 262 467 434 419 686 613 563 1389 - 1246",
    "1,1": "64 58 58 99 90 89 138 120 120 189 174 171 365 352 352 "
    "164 155 133 285 270 230 411 383 371 593 557 544 1264 - 1133",
    "1,2": "64 58 57 98 87 87 133 118 118 176 165 164 326 317 316 "
    "167 143 134 272 244 225 377 343 335 520 487 462 998 - 922",
    "1,3": "64 58 57 98 90 87 132 118 118 175 164 164 326 316 316 " + "- " * 15,
}
THROUGHPUT = {  # XORs, XORs and copies, weighted
    (8, 6, 4): "4.64 4.66 4.68", (8, 6, 8): "4.30 4.35 4.32", (9, 6, 4): "3.72 3.73 3.80",
    (9, 6, 8): "3.28 3.28 3.44", (10, 6, 4): "2.33 2.51 2.52", (10, 6, 8): "1.99 1.97 2.11",
    (12, 8, 4): "2.96 3.11 3.16", (12, 8, 8): "2.54 2.56 2.58", (16, 10, 4): "2.29 2.29 2.32",
    (16, 10, 8): "1.71 1.72 1.74",
}  # fmt: skip


def paritas(*arguments: object) -> dict:
    command = [OPTIONS.paritas, *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def natural(n: int, k: int, w: int) -> str:
    return f"cauchy:k={k},m={n - k},w={w},points=" + ".".join(map(str, range(n)))


def searched(shape: tuple[int, int, int], method: str, strategy: str, cost: str = "total") -> dict:
    return paritas(
        "schedule", natural(*shape), "--search", method, "--strategy", strategy, "--cost", cost,
        "--weight", 1.5,
        "--evaluations", OPTIONS.evaluations,
    )  # fmt: skip


def table_3_1() -> None:
    print("Table 3.1: XORs, and their reduction in percent (ours/theirs)")
    print("| (n, k, w) | baseline | BN | SS | UM | WM | slp |\n|---|---|---|---|---|---|---|")
    for row in BASELINE.replace("\n", ";").split(";"):
        if not row.strip():
            continue
        shape, baseline, *theirs = row.split()
        spec = natural(*map(int, shape.split(",")))
        xors = lambda *more: paritas("schedule", spec, *more)["xors"]
        start = xors("--strategy", "0,0")
        cells = [f"{start}/{baseline}"]
        for strategy, printed in zip(("1,0", "0,1", "0,2", "0,3"), theirs):
            cells.append(f"{100 - 100 * xors('--strategy', strategy) / start:.2f}/{printed}")
        cells.append(f"{100 - 100 * xors('--normalise', 'off') / start:.2f}")
        print(f"| ({shape}) | " + " | ".join(cells) + " |", flush=True)


def table_3_5() -> None:
    print(f"Table 3.5: XORs and copies (ours/theirs), searches of {OPTIONS.evaluations} evaluations")
    print("| (n, k, w) | (i, j) | natural | SA | GA |\n|---|---|---|---|---|")
    for place, shape in enumerate(SHAPES):
        if OPTIONS.only and shape not in OPTIONS.only:
            continue
        for strategy, printed in STRATEGIES.items():
            theirs = printed.split()[3 * place : 3 * place + 3]
            ours = [paritas("schedule", natural(*shape), "--strategy", strategy)["total"]]
            ours += [searched(shape, method, strategy)["total"] for method in ("sa", "ga")]
            cells = " | ".join(f"{a}/{b}" for a, b in zip(ours, theirs))
            print(f"| {shape} | ({strategy}) | {cells} |", flush=True)
        n, k, w = shape
        default = paritas("schedule", f"cauchy:k={k},m={n - k},w={w}")["total"]
        print(f"| {shape} | default matrix, slp | {default} | | |", flush=True)


def table_3_6() -> None:
    print("Table 3.6: GB/s under three cost functions (ours/theirs)")
    print("| (n, k, w) | XORs | XORs and copies | weighted |\n|---|---|---|---|")
    for shape, printed in THROUGHPUT.items():
        cells = []
        for cost, theirs in zip(("xors", "total", "weighted"), printed.split()):
            code = searched(shape, "ga", "1,3", cost)["code"]
            speed = paritas("bench", "--code", code, "--pass", "wm")["gbps_median"]
            cells.append(f"{speed:.1f}/{theirs}")
        print(f"| {shape} | " + " | ".join(cells) + " |", flush=True)


def shape(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


PARSER = argparse.ArgumentParser(description=__doc__.splitlines()[0])
PARSER.add_argument("--table", nargs="*", default=["3.1", "3.5", "3.6"])
PARSER.add_argument("--paritas", default="target/release/paritas")
PARSER.add_argument("--evaluations", type=int, default=2000)
PARSER.add_argument("--only", nargs="*", type=shape, help="shapes N,K,W of table 3.5")

if __name__ == "__main__":
    OPTIONS = PARSER.parse_args()
    for name in OPTIONS.table:
        {"3.1": table_3_1, "3.5": table_3_5, "3.6": table_3_6}[name]()
