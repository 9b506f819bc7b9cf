#!/usr/bin/env python3
"""Measures how long it takes to define and plan codes, and what a first call takes.

    lab/planning.py [--rounds 3]

Keeps two records in lab/records: `plan-times-DATE` of the example `plan_times`, and `first-calls-DATE` of the example `call_cost`. Each
round is a process of its own. lab/readme_tables.py puts the medians into docs/optimiser.md.
"""

import argparse
import re
import subprocess
from typing import Iterator

import records
import tools

# Codes and numbers of lost nodes.
PLANNED = {"rdp:k=200": 2, "evenodd:k=200": 2, "star:k=257": 3, "liberation:k=257": 2, "xcode:n=257": 2, "1000+2": 2,
           "cauchy:k=128,m=128": 128, "cauchy:k=200,m=56,w=8": 56, "cauchy:k=500,m=500": 500, "cauchy:k=60000,m=2": 2,
           "dpg:k=100,m=4,m2=50": 50, "lt:k=8192,n=16384,nodes=16": 5}  # fmt: skip
PLAN = r"(?P<{0}_s>[\d.]+) s, (?P<{0}_xors>\d+), (?P<{0}_steps>\d+) of \d+, .*"
PLANNING = re.compile(rf"(?P<code>\S+), (?P<lost>\d+): (?P<define_s>[\d.]+); {PLAN.format('encode')}; {PLAN.format('decode')}")

CALLED = ("6+3", "10+4", "20+4", "isal-cauchy:k=10,m=4", "isal-cauchy:k=20,m=4")
CALL = re.compile(r"(?P<code>\S+): (?P<define_us>\d+), (?P<encode_us>\d+), (?P<decode_us>\d+); (?P<no_bytes_ns>[\d.]+); .*")


def run(example: str, arguments: list[str], line: re.Pattern) -> Iterator[dict[str, str]]:
    """Runs an example and reads the lines that it prints for each code, after its first line."""
    command = ["cargo", "run", "--release", "--quiet", "--locked", "-p", "paritas", "--example", example, "--", *arguments]
    printed = subprocess.run(command, cwd=tools.ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for text in printed.splitlines()[1:]:
        found = line.fullmatch(text)
        if not found:
            raise SystemExit(f"{example} printed a line that is not understood: {text}")
        yield found.groupdict()


def keep(kind: str, rounds: int, *what) -> None:
    columns = ["round", *what[2].groupindex]
    with records.keep(kind, "", columns, records.origin()) as writer:
        for number in range(rounds):
            writer.writerows([number, *found.values()] for found in run(*what))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="how often each example runs [default: 3]")
    args = parser.parse_args()
    tools.toolchain()
    keep("plan-times", args.rounds, "plan_times", [word for code, lost in PLANNED.items() for word in (code, str(lost))], PLANNING)
    keep("first-calls", args.rounds, "call_cost", list(CALLED), CALL)


if __name__ == "__main__":
    main()
