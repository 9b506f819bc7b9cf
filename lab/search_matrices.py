#!/usr/bin/env python3
"""Searches for the matrices of the `cauchy` family: crates/core/src/define/families/cauchy/matrices.txt.

    lab/search_matrices.py [--paritas COMMAND] [--evaluations N] [--seed N] [--only K,M,W …]

For every shape of the table, runs `paritas schedule cauchy:k=K,m=M,w=W --search local` with the given seed
and evaluations. If the schedule of the matrix found is shorter than that of the matrix in the table (`total`:
XORs and copies), the matrix is replaced. The shapes are

- every k up to 32 and m up to 8 with the smallest w that fits;
- 6+2 at w = 4, which the dissertation measures;
- w = 8 for k up to 16 and m up to 6;
- those of the second base code of delayed parity generation: k up to 16 and m below m2 up to 8, with the
  smallest w that fits k + m2.

Runs can be repeated with other seeds, and never make the table worse. Each line records the seed and the
evaluations that reproduce it.
"""

import argparse
import json
import subprocess

import tools

TABLE = tools.ROOT / "crates/core/src/define/families/cauchy/matrices.txt"
HEAD = """\
# The shortest schedules found for encoding, by lab/search_matrices.py: shape k m w, then the points
# (k of data, m of parity), the row scalings, and how it was found: XORs and copies of the schedule,
# XORs, and the S and N of
#
#     paritas schedule cauchy:k=K,m=M,w=W --search local --seed S --evaluations N
#
# The field is the standard one of its width; columns are scaled so that the first row is all ones.
# k m w | points | row scalings | total xors seed evaluations
"""


def shapes() -> list[tuple[int, int, int]]:
    width = lambda n: max(1, (n - 1).bit_length())
    smallest = [(k, m, width(k + m)) for k in range(1, 33) for m in range(1, 9)]
    later = [(k, m, width(k + m2)) for k in range(1, 17) for m in range(1, 8) for m2 in range(m + 1, 9)]
    bytes_wide = [(k, m, 8) for k in range(1, 17) for m in range(1, 7)]
    return list(dict.fromkeys(smallest + [(6, 2, 4)] + later + bytes_wide))


def read() -> dict[tuple[int, int, int], str]:
    lines = [line for line in TABLE.read_text().splitlines() if line and line[0] != "#"]
    return {tuple(map(int, line.split("|")[0].split())): line for line in lines}


def write(table: dict[tuple[int, int, int], str]) -> None:
    order = {shape: place for place, shape in enumerate(shapes())}
    lines = [table[shape] for shape in sorted(table, key=order.get)]
    TABLE.write_text(HEAD + "".join(line + "\n" for line in lines))


def total(line: str) -> int:
    return int(line.split("|")[3].split()[0])


def run(*arguments: str) -> dict:
    out = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    return json.loads(out)


def search(paritas: str, shape: tuple[int, int, int], seed: int, evaluations: int) -> str:
    k, m, w = shape
    found = run(
        paritas, "schedule", f"cauchy:k={k},m={m},w={w}", "--search", "local", "--json",
        "--seed", str(seed), "--evaluations", str(evaluations),
    )  # fmt: skip
    pin = run(paritas, "codes", found["code"], "--json")["pin"]
    numbers = lambda name: " ".join(map(str, pin[name]))
    how = f"{found['total']} {found['xors']} {seed} {evaluations}"
    return f"{k} {m} {w} | {numbers('points')} | {numbers('row-scale')} | {how}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paritas", metavar="COMMAND", help="the command [default: an optimised build of this tree]")
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", metavar="K,M,W")
    arguments = parser.parse_args()
    paritas = str(tools.paritas(arguments.paritas))
    wanted = [tuple(map(int, shape.split(","))) for shape in arguments.only or []] or shapes()
    for shape in wanted:
        line = search(paritas, shape, arguments.seed, arguments.evaluations)
        table = read()
        if shape not in table or total(line) < total(table[shape]):
            table[shape] = line
            write(table)
            print(line, flush=True)


if __name__ == "__main__":
    main()
