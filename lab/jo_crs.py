#!/usr/bin/env python3
"""Searches for the matrices of Jo-CRS, the code that Zhou's dissertation proposes: lab/papers/jo-crs.csv.

    lab/jo_crs.py [--seeds N] [--evaluations N]

For every shape of the dissertation's tables, it takes the best matrix that

    paritas schedule cauchy:k=K,m=M,w=W --strategy 1,3 --search ga --cost weighted --weight 1.5 --seed S --evaluations N

finds with seeds 1 to N: the genetic algorithm, the cost of XORs and copies in which an XOR counts as 1.5 copies, and weighted
matching (section 3.3). Shapes that the file has with as many seeds and evaluations are not searched again. The shapes are those of tables
3.7 to 3.27 with the smallest w and with w = 8, those with w = 4 that tables 3.8, 3.9, 3.12 and 3.13 have, and those of figure 3.4.
"""

import argparse
import csv

from papers import zhou_search, zhou_speed
from papers.zhou import numbers

COLUMNS = ["n", "k", "w", "code", "xors", "copies", "weight", "seed", "seeds", "evaluations"]


def shapes() -> list[tuple[int, int, int]]:
    sizes = [numbers(row) for row in zhou_speed.all_rows("3.7", "3.15", "3.23", "3.24")] + [(8, 6), (9, 6)]
    smallest = [(n, k, (n - 1).bit_length()) for n, k in sizes]
    narrow = [(n, k, 4) for n, k in sizes if n - k <= 3 and n <= 16]
    return sorted({*smallest, *narrow, *((n, k, 8) for n, k in sizes)})


def read() -> dict[tuple[int, int, int], dict[str, str]]:
    if not zhou_search.JO_CRS.exists():
        return {}
    with open(zhou_search.JO_CRS, newline="") as file:
        return {(int(row["n"]), int(row["k"]), int(row["w"])): row for row in csv.DictReader(file)}


def write(table: dict[tuple[int, int, int], dict[str, str]]) -> None:
    new = zhou_search.JO_CRS.with_suffix(".new")
    with open(new, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table[shape] for shape in sorted(table))
    new.replace(zhou_search.JO_CRS)


def best(shape: tuple[int, int, int], seeds: int, evaluations: int) -> dict[str, str]:
    weight = zhou_search.PRINTED_WEIGHT
    found = [zhou_search.search(shape, "ga", "weighted", weight, seed, evaluations) for seed in range(1, seeds + 1)]
    seed, matrix = min(enumerate(found, 1), key=lambda each: each[1].cost("weighted", weight))
    values = (*shape, matrix.code, matrix.xors, matrix.copies, weight, seed, seeds, evaluations)
    return dict(zip(COLUMNS, map(str, values)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds to try, from 1 [default: 3]")
    parser.add_argument("--evaluations", type=int, default=zhou_search.EVALUATIONS, help="schedules of each search [default: 2000]")
    args = parser.parse_args()
    table = read()
    wanted = shapes()
    for number, shape in enumerate(wanted, 1):
        row = table.get(shape)
        if row is None or (int(row["seeds"]), int(row["evaluations"])) != (args.seeds, args.evaluations):
            table[shape] = best(shape, args.seeds, args.evaluations)
            write({shape: row for shape, row in table.items() if shape in wanted})
        print(f"{number}/{len(wanted)} {shape}: {table[shape]['xors']} XORs, {table[shape]['copies']} copies", flush=True)


if __name__ == "__main__":
    main()
