"""Compares the counts in docs/codes.md and docs/optimiser.md with what the command prints, and figures of searches with their record; a
part of tests.py."""

import pathlib
import re
import unittest
from statistics import mean

import records

from .claims.judge import read
from .command import paritas, schedule
from .experiment import printed
from .zhou import natural, numbers

CODES, OPTIMISER, GROUPS = (records.ROOT / "docs" / f"{name}.md" for name in ("codes", "optimiser", "dpg"))


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

    def test_fewer_xors_are_possible_by_as_many_as_the_page_of_codes_says(self):
        specs = [row[0] for row in table(CODES, "code | ones | fewest")]
        fewer = [schedule(spec)["xors"] - schedule(spec, "--cost", "xors")["xors"] for spec in specs]
        self.assertEqual(max(fewer), 4)
        self.assertIn("`--cost xors` some take up to four fewer XORs", CODES.read_text())

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


    def test_words_lie_between_both_runs_of_groups(self):
        """Table 4.4, percentages beside BB-DPG as the dissertation ran it."""
        cells = {cell.place: cell.value for cell in read("zhou-table-4.4").cells}
        words = {row: value for (row, column), value in cells.items() if column == "DPG in words"}
        self.assertEqual(len(words), 32)
        self.assertTrue(all(value > 0 for value in words.values()))
        self.assertTrue(all(value < cells[row, "compiled (ours)"] for row, value in words.items() if row.endswith(" enc")))

    def test_promotion_in_steps_reads_what_the_page_of_groups_says(self):
        """By the formula above the table, for k = 10 and m = 2."""
        k, m = 10, 2
        step = lambda rows, most: (rows * (k + m) + (most - m - rows) * k) / (k * most)
        bound = lambda m, m2: (m2 - m) * (k + m) / (k * m2)
        shown = lambda *shares: [f"{100 * share + 1e-9:.0f} %" for share in shares]
        first, second, one = step(2, 6), bound(4, 6), bound(2, 6)
        expected = [shown(first, first, 2 * first), shown(bound(2, 4), 1, bound(2, 4) + 1), shown(bound(2, 4), second, bound(2, 4) + second),
                    [*shown(one), "", *shown(one)], [*(f"{text} each" for text in shown(step(1, 6))), "", *shown(4 * step(1, 6))]]  # fmt: skip
        self.assertEqual([row[1:] for row in table(GROUPS, "| first step")], expected)


class Sentences(unittest.TestCase):
    """Figures that docs/optimiser.md has in sentences, and tables that have times beside counts."""

    def assert_says(self, *sentences: str):
        """Compares without regard to line breaks."""
        text = " ".join(OPTIMISER.read_text().split())
        for sentence in sentences:
            self.assertIn(sentence, text)

    def test_searches_are_those_of_the_records(self):
        ours = {cell.place: cell.value for cell in read("zhou-table-3.5").cells}
        theirs = {place: float(text) for place, text in printed("zhou-table-3.5").items() if place[1] in ("SA", "GA")}
        ratios = [ours[place] / text for place, text in theirs.items()]
        reached, below = sum(ratio <= 1 for ratio in ratios), sum(ratio < 1 for ratio in ratios)
        self.assert_says(f"reach or beat {reached} of the {len(ratios)} printed cells of both searches ({below} are below) and miss the others by at most {100 * max(ratios) - 100:.0f} %")

    def test_passes_leave_the_share_of_xors_that_table_3_1_has(self):
        cells = read("zhou-table-3.1").cells
        left = {name: f"{100 - mean(cell.value for cell in cells if cell.column == name):.0f} %" for name in ("BN", "SS", "UM", "WM", "slp (ours)")}
        rows = {row[0]: row[2] for row in table(OPTIMISER, "pass | what it does")}
        said = [rows["normalisation (BN)"], rows["smart (SS)"], *rows["um, wm"].split(", "), rows["slp"]]
        self.assertEqual(said, [*left.values()])

    def test_natural_columns_differ_from_print_by_what_the_page_says(self):
        theirs = printed("zhou-table-3.5")
        cells = [cell for cell in read("zhou-table-3.5").cells if cell.column == "natural" and cell.place in theirs]
        apart = [(cell.row.partition(" ")[2], abs(cell.value - float(theirs[cell.place]))) for cell in cells]
        plain = [strategy for strategy, by in apart if by and strategy[3] in "01"]
        self.assertEqual(plain, ["(1,1)"] * 3)
        most = max(by for strategy, by in apart if strategy[3] in "23")
        self.assert_says(f"all agree except three of strategy (1, 1); the cells with matching are within {most:.0f}")

    def test_the_local_search_is_that_of_the_record(self):
        cells = {cell.place: cell.value for cell in read("zhou-searches").cells}
        rows = [row for row, column in cells if column == "local (ours)" and numbers(row)[2] == 8]
        better = {row: min(("SA", "GA"), key=lambda name: cells[row, name]) for row in rows}
        shorter = [100 * (1 - cells[row, "local (ours)"] / cells[row, name]) for row, name in better.items()]
        times = [cells[row, "local (ours), seconds a seed"] / cells[row, f"{name}, seconds a seed"] for row, name in better.items()]
        self.assertEqual(len(rows), 5)
        self.assert_says(f"schedules that are {min(shorter):.1f} to {max(shorter):.0f} % shorter", f"in {min(times):.2f} to {max(times):.2f} times the time")

    def test_counts_in_sentences_are_what_the_command_prints(self):
        points = natural(14, 10, 4)
        default, plain = schedule("10+4"), schedule(points, "--pass", "direct")
        isal = [schedule("isal-rs:k=10,m=4", *more)["xors"] for more in (("--pass", "direct"), ("--cost", "xors", "--rounds", 1000))]
        refined = [schedule(points, "--rounds", rounds)["total"] for rounds in (0, 300, 3000)]
        ones = paritas("codes", "cauchy:k=128,m=128")[0]["ones"]
        known = [schedule(spec, *more)["xors"] for spec in ("12+4", "20+4") for more in ((), ("--rounds", 300))]
        self.assert_says(
            f"with {ones:,} ones, ",
            f"takes {default['xors']} XORs (its matrix has {default['ones']} ones, the natural normalised one has {plain['ones']})",
            f"takes {isal[0]} XORs as it stands; `--cost xors --rounds 1000` reduces them to {isal[1]}.",
            f"takes {refined[0]} XORs and copies after greedy pairs, {refined[1]} after 300 rounds, {refined[2]} after 3000",
            "12+4 takes {} XORs, and {} with `--rounds 300`, which plans it anew; 20+4 takes {} and {}".format(*known),
        )

    def test_planning_takes_the_steps_that_the_page_says(self):
        """Of codes whose planning is short."""
        rows = {row[0]: row for row in table(OPTIMISER, "code | lost | define")}
        for code in ("rdp:k=200", "evenodd:k=200", "star:k=257", "liberation:k=257", "xcode:n=257", "1000+2"):
            found = schedule(code)
            self.assertEqual([f"{found['plan_steps'] / 1e6:.0f}", f"{found['xors']:,}"], rows[code][4:6], code)

    def test_compiled_kernels_execute_what_the_page_says(self):
        less = []
        work = lambda found: found["instructions"] + 4 * found["loads"] + 8 * found["stores"]
        for name, *said in table(OPTIMISER, "| AVX2, `total`"):
            spec = "cauchy:k=10,m=4,w=8" if name == "10+4, w = 8" else name
            both = [schedule(spec, "--kernel", "jit-avx2", *more) for more in ((), ("--cost", "fused"))]
            self.assertEqual([" / ".join(str(one[key]) for key in ("instructions", "loads", "stores")) for one in both], said, name)
            less.append(100 - 100 * work(both[1]) / work(both[0]))
        self.assertGreaterEqual(min(less), 0)
        self.assert_says(f"The weighted sum is up to {max(less):.0f} % lower.")
