#!/usr/bin/env python3
"""Prints table 4.3 of the dissertation, ours beside theirs.

    lab/dpg_tables.py [--paritas BINARY] [--only K,M,M2 …]

T. Zhou, Erasure Coding Optimization for Data Storage (2020), section 4.8. All figures are XORs and copies of
one group, as `paritas schedule` counts them (`total`), with w = 4 for the first six sets and 5 for the last
two. If T(k, m) is the count of a base code's first m parities, the dissertation counts

    m T(k, m2) + (m2 - m) T(k, m) + m (m2 - m) w

where the first T is C's, and the second C-bar's. A cell is ours/theirs. BB-DPG is the default `bbdpg`, DPG is
the default `dpg` (one searched matrix), and DPG w/o opt has the natural points, normalised. (k, m) and (k, m2)
are m2 stripes of the searched codes. `group` is the cost of the schedule of the whole group, which is how
`bbdpg` is run: coupling then costs less than the dissertation counts. (Table 4.4, throughputs, is printed by
`cargo run --release -p paritas-tune --example dpg_throughput`.)
"""

import argparse
import json
import subprocess

THEIRS = {  # BB-DPG, optimised DPG, DPG w/o opt, (k, m), (k, m2)
    (5, 2, 3, 4): (198, 201, 228, 138, 216),
    (6, 2, 4, 4): (366, 376, 408, 228, 472),
    (8, 2, 4, 4): (506, 516, 540, 324, 656),
    (9, 2, 4, 4): (558, 578, 600, 372, 752),
    (9, 3, 5, 4): (999, 1007, 1036, 690, 1165),
    (10, 4, 6, 4): (1724, 1732, 1780, 1260, 1908),
    (12, 3, 6, 5): (2334, 2343, 2523, 1512, 3066),
    (16, 4, 8, 5): (5692, 5772, 6044, 3680, 7544),
}


def paritas(*arguments: object) -> dict:
    command = [OPTIONS.paritas, *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def total(spec: str) -> int:
    return paritas("schedule", spec)["total"]


def given(k: int, m: int, w: int, pin: dict, start: str) -> str:
    """Returns the code of the first m parities of a pinned matrix."""
    dotted = lambda name, count: ".".join(map(str, pin[start + name][:count]))
    return (
        f"cauchy:k={k},m={m},w={w},points={dotted('points', k + m)},"
        f"rows={dotted('row-scale', m)},columns={dotted('column-scale', k)}"
    )


def accounted(k: int, m: int, m2: int, w: int, pin: dict) -> int:
    bar = "bar-" if "bar-points" in pin else ""
    first, last = total(given(k, m2, w, pin, "")), total(given(k, m, w, pin, bar))
    return m * first + (m2 - m) * last + m * (m2 - m) * w


def row(k: int, m: int, m2: int, w: int) -> tuple[list[int], int]:
    sizes = f"k={k},m={m},m2={m2},w={w}"
    natural = ".".join(map(str, range(k + m2)))
    specs = [f"bbdpg:{sizes}", f"dpg:{sizes}", f"dpg:{sizes},points={natural}"]
    dpg = [accounted(k, m, m2, w, paritas("codes", spec)["pin"]) for spec in specs]
    plain = [m2 * total(f"cauchy:k={k},m={parities},w={w}") for parities in (m, m2)]
    return dpg + plain, total(specs[0])


def main() -> None:
    print("| (k, m, m2), w | BB-DPG | DPG | DPG w/o opt | (k, m) | (k, m2) | group | less than theirs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (k, m, m2, w), theirs in THEIRS.items():
        if OPTIONS.only and f"{k},{m},{m2}" not in OPTIONS.only:
            continue
        ours, group = row(k, m, m2, w)
        cells = " | ".join(f"{our}/{their}" for our, their in zip(ours, theirs))
        less = [100 * (1 - figure / theirs[0]) for figure in (ours[0], group)]
        print(
            f"| ({k}, {m}, {m2}), {w} | {cells} | {group} | {less[0]:.0f} %, {less[1]:.0f} % |",
            flush=True,
        )


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--paritas", default="target/release/paritas")
parser.add_argument("--only", nargs="*", metavar="K,M,M2")
OPTIONS = parser.parse_args()

if __name__ == "__main__":
    main()
