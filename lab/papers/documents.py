"""Compares the tables of counts in docs/codes.md and docs/optimiser.md with what the command prints; a part of tests.py."""

import pathlib
import re
import unittest

import records

from .command import paritas, schedule
from .experiment import printed
from .zhou import natural, numbers

CODES, OPTIMISER = (records.ROOT / "docs" / f"{name}.md" for name in ("codes", "optimiser"))


def table(page: pathlib.Path, first: str) -> list[list[str]]:
    """Returns the rows of the table whose head begins with `first`, without marks of code and bold."""
    lines = page.read_text().splitlines()
    (start,) = (number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return rows
        rows.append([re.sub(r"[`*]", "", cell).strip() for cell in line.strip("|").split("|")])
    return rows


def xors_a_packet(spec: str) -> float:
    return schedule(spec)["xors"] / paritas("codes", spec)[0]["parity_cells"]


class Documents(unittest.TestCase):
    def test_encoding_costs_what_the_page_of_codes_says(self):
        for spec, ones, fewest, direct, scheduled, _ in table(CODES, "code | ones | fewest"):
            code, plain, best = paritas("codes", spec)[0], schedule(spec, "--pass", "direct"), schedule(spec)
            found = [code["ones"], code["fewest_ones"], plain["xors"], best["xors"]]
            self.assertEqual(found, [*map(int, (ones, fewest, direct, scheduled))], spec)

    def test_fewest_reads_are_what_the_page_of_codes_says(self):
        for spec, cheapest, fewest, part, _ in table(CODES, "code | cheapest computation"):
            reads = [sum(schedule(spec, "--erase", 0, *more)["reads"]) for more in ((), ("--fewest-reads",))]
            self.assertEqual(reads[0], int(cheapest), spec)
            self.assertIn(str(reads[1]), fewest.split(" to "), spec)
            self.assertIn(f"{reads[1] / reads[0]:.2f}", part.split(" to "), spec)

    def test_passes_leave_what_the_page_of_the_optimiser_says(self):
        for name, start, bn, matched, best, ours, less in table(OPTIMISER, "(n, k, w) | natural, `direct`"):
            shape = numbers(name)
            n, k, w = shape
            length = lambda spec, *more: schedule(spec, *more)["total"]
            found = [length(natural(*shape), "--strategy", strategy) for strategy in ("0,0", "1,0", "1,2")] + [
                     length(f"cauchy:k={k},m={n - k},w={w}")]  # fmt: skip
            self.assertEqual(found, [*map(int, (start, bn, matched, ours))], name)
            row = "({},{},{})".format(*shape)
            theirs = min(int(text) for (place, _), text in printed("zhou-table-3.5").items() if place.startswith(row) and text)
            self.assertEqual((theirs, f"{100 * (1 - found[3] / theirs):.0f} %"), (int(best), less), name)

    def test_default_codes_take_the_xors_that_the_page_of_the_optimiser_says(self):
        for few, xors, _, _, many, others, _ in table(OPTIMISER, "k + 2 | XORs a packet"):
            for shape, said in ((few, xors), (many, others)):
                self.assertEqual(f"{xors_a_packet(shape.replace(' ', '')):.2f}", said, shape)
