#!/usr/bin/env python3
"""Tests of the lab: counts are the recorded and the printed ones, cell by cell, and runs can be interrupted.

    lab/papers/tests.py

Runs the command of PARITAS_COMMAND; by default the one that cargo built for tests.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
os.environ.setdefault("PARITAS_COMMAND", str(TARGET / "debug" / "paritas"))
sys.path.insert(0, str(ROOT / "lab"))

from papers import catalogue, luo, page, uyeda, widths  # noqa: E402
from papers.command import binary, in_percent  # noqa: E402
from papers.experiment import Cell, Effort, Experiment, Kind, Point, agrees, printed  # noqa: E402
from papers.store import Origin, Store  # noqa: E402

# Exact figures, as the reference machine recorded them; any machine must compute the same.
RECORDED = Store(ROOT / "lab" / "records" / "papers")
QUICK = Effort(quick=True)


def computed(experiment: Experiment) -> list[Cell]:
    return [cell for point in experiment.points(QUICK) for cell in point.measure()]


class Exact(unittest.TestCase):
    """Counts."""

    def test_counts_are_the_recorded_ones_in_every_cell(self):
        exact = [e for e in catalogue.EXPERIMENTS if e.kind is Kind.EXACT and e.points]
        self.assertGreaterEqual(len(exact), 4)
        for experiment in exact:
            recorded = {cell.place: cell.value for cell in RECORDED.read(experiment).cells}
            for cell in computed(experiment):
                self.assertEqual(cell.value, recorded[cell.place], f"{experiment.identity} {cell.place}")

    def test_agreement_with_the_printed_figures(self):
        """How many cells of each column agree to the last digit. (BN of (14, 10, 7) is 26.97, printed as 26.9.)"""
        for identity, agreement in AGREEMENT.items():
            experiment = catalogue.by_identity(identity)
            theirs = experiment.theirs()
            found: dict[str, list[bool]] = {}
            for cell in RECORDED.read(experiment).cells:
                if cell.place in theirs:
                    found.setdefault(cell.column, []).append(agrees(cell.value, theirs[cell.place]))
            self.assertEqual({name: f"{sum(same)} of {len(same)}" for name, same in found.items()}, agreement, identity)

    def test_matchings_differ_by_little(self):
        theirs = printed("zhou-table-3.1")
        for cell in RECORDED.read(catalogue.by_identity("zhou-table-3.1")).cells:
            if cell.column in ("UM", "WM"):
                self.assertLess(abs(cell.value - float(theirs[cell.place])), 2.15, cell.place)


AGREEMENT = {
    "zhou-table-3.1": {"baseline": "23 of 23", "BN": "22 of 23", "SS": "23 of 23", "UM": "6 of 23", "WM": "5 of 23"},
    "zhou-table-3.5": {"natural": "54 of 75", "SA": "11 of 70", "GA": "25 of 75"},
    "zhou-table-4.3": dict.fromkeys(("BB-DPG", "optimised DPG", "DPG w/o opt", "(k, m)", "(k, m')"), "0 of 8"),
    "plank-ones": {"ones a row": "3 of 3"},
    "luo-table-6": {"k": "4 of 4", "w": "4 of 4", "m": "4 of 4"},
}


class Errata(unittest.TestCase):
    """What docs/errata.md says about printed tables."""

    def test_averages_are_over_more_rows_than_printed(self):
        averages = {"BN": "35.36", "SS": "20.22", "UM": "35.36", "WM": "35.34", "S-CO": "0.31", "V-XOR": "70.64"}
        of_rows = {"BN": "33.60", "SS": "21.06", "UM": "35.70", "WM": "35.55", "S-CO": "0.24", "V-XOR": "69.38"}
        theirs = printed("zhou-table-3.1")
        for column, average in averages.items():
            values = [float(text) for (_, name), text in theirs.items() if name == column]
            self.assertEqual(len(values), 23)
            self.assertEqual(f"{sum(values) / 23:.2f}", of_rows[column])
            self.assertNotEqual(of_rows[column], average)

    def test_printed_tables_are_whole(self):
        """Counts cells: table 3.5 would have 240, of which 20 are lost in the text that we have."""
        counts = {"luo-table-5": 12, "luo-table-6": 12, "luo-table-7": 2, "luo-table-8": 16, "uyeda-table-18": 39,
                  "zhou-table-3.1": 23 * 7, "zhou-table-3.3": 9, "zhou-table-3.4": 15, "zhou-table-3.5": 240 - 20,
                  "zhou-table-3.6": 30, "zhou-table-3.7": 48, "zhou-table-3.8": 40, "zhou-table-3.9": 45, "zhou-table-3.10": 10,
                  "zhou-table-3.11": 48, "zhou-table-3.12": 40, "zhou-table-3.13": 45, "zhou-table-3.25": 43,
                  "zhou-table-4.3": 40, "zhou-table-4.4": 160}  # fmt: skip
        counts |= {f"zhou-table-3.{number}": 16 * (4 if number in (18, 22) else 7) for number in range(15, 23)}
        counts |= {f"zhou-table-3.{number}": 6 * 4 * codes for number, codes in ((23, 4), (24, 5), (26, 4), (27, 5))}
        counts |= {f"zhou-table-4.{number}": 64 for number in (6, 7, 8)}
        for name, count in counts.items():
            self.assertEqual(len(printed(name)), count, name)
        files = {path.stem for path in (ROOT / "lab" / "papers" / "printed").glob("*.csv")}
        self.assertEqual(files, set(counts))

    def test_two_cells_of_decoding_are_those_of_encoding(self):
        """Two that stand side by side; a third one of the 96 is equal by chance."""
        encode, decode = printed("zhou-table-3.23"), printed("zhou-table-3.26")
        same = {place for place, text in decode.items() if encode[place] == text}
        self.assertEqual(same, {("(12,9)", "amd: QFS"), ("(12,9)", "amd: STAR"), ("(8,5)", "xeon: CRS")})

    def test_effects_of_parameters_are_below_the_best_result(self):
        """Figures above their own best result, over that result, would be at least 100 %."""
        for number, parameters in (("3.3", 3), ("3.4", 5)):
            values = [float(text) for text in printed(f"zhou-table-{number}").values()]
            self.assertEqual(len(values), 3 * parameters)
            self.assertLess(max(values), 100)

    def test_degrees_of_table_18_have_no_blocks_of_degree_one_added(self):
        """All thirteen agree to every digit if rho(1) is 0, and none if it is 1/k."""
        theirs = printed("uyeda-table-18")
        for ratio in dict.fromkeys(ratio for ratio, _ in theirs):
            c, delta = (float(theirs[ratio, name]) for name in ("C", "delta"))
            self.assertTrue(agrees(uyeda.mean_degree(c, delta, first=0), theirs[ratio, "average degree"]))
            self.assertFalse(agrees(uyeda.mean_degree(c, delta), theirs[ratio, "average degree"]))

    def test_the_model_of_writing_is_the_printed_one(self):
        theirs = printed("luo-table-8")
        same = []
        for machine in luo.MACHINES:
            speeds = (float(theirs[machine, column]) for column in ("new", "traditional", "write"))
            same.append(agrees(luo.improvement(*speeds), theirs[machine, "improvement"]))
        self.assertEqual(same, [True, True, True, False])


class MachineCode(unittest.TestCase):
    """Kernels of the lab."""

    @unittest.skipUnless(widths.can_read(), "needs objdump on x86-64")
    def test_kernels_are_as_wide_as_their_names_say(self):
        for width in widths.FUNCTIONS:
            found = widths.xors(binary(), width)
            self.assertGreater(found[width], 0, f"{width}: {found}")
            self.assertLessEqual(set(found), {width, 64}, f"{width}: {found}")


class Runs(unittest.TestCase):
    """The command lab/run."""

    # There are 23 points, and each takes a moment.
    TABLE = ("--paper", "zhou", "--table", "table-3.1")

    def start(self, folder: str, *words: str) -> subprocess.Popen:
        command = [ROOT / "lab" / "run", "--quick", "--records", folder, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def kill(self, run: subprocess.Popen) -> None:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()

    def test_a_killed_run_is_resumed(self):
        experiment = catalogue.by_identity("zhou-table-3.1")
        with tempfile.TemporaryDirectory() as folder:
            run = self.start(folder, *self.TABLE)
            before = [next(line for line in run.stdout if line.startswith(f"  {number}/23")) for number in (1, 2, 3)]
            self.kill(run)
            store = Store(pathlib.Path(folder))
            self.assertIsNone(store.read(experiment))
            run = self.start(folder, *self.TABLE)
            after = run.communicate()[0]
            self.assertEqual(run.returncode, 0)
            self.assertFalse(any(line.strip() in after for line in before))
            recorded = RECORDED.read(experiment)
            self.assertEqual([cell.place for cell in store.read(experiment).cells], [cell.place for cell in recorded.cells])
            # What is recorded is not run again.
            self.assertIn("0 of 1 experiments to run", self.start(folder, *self.TABLE).communicate()[0])

    def test_a_run_of_all_states_its_time_first(self):
        for effort, least, most in ((("--quick",), 8, 20), ((), 60, 1000)):
            with tempfile.TemporaryDirectory() as folder:
                command = [ROOT / "lab" / "run", "--all", "--records", folder, *effort]
                run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
                first = run.stdout.readline()
                self.kill(run)
                count, total, minutes = map(int, re.match(r"(\d+) of (\d+) experiments to run, about (\d+) minutes", first).groups())
                self.assertEqual(count, total)
                self.assertTrue(least <= minutes <= most, first)

    def test_records_name_no_place_of_a_machine(self):
        for path in (ROOT / "lab" / "records").rglob("*.csv"):
            with open(path) as file:
                self.assertNotRegex(file.readline(), "/(tmp|home|root|work|Users)/", path)


class Frame(unittest.TestCase):
    """Experiments, records and the page."""

    def test_every_experiment_is_found_with_what_it_needs(self):
        identities = [experiment.identity for experiment in catalogue.EXPERIMENTS]
        self.assertEqual(len(identities), len(set(identities)))
        for experiment in catalogue.EXPERIMENTS:
            chosen = [e.identity for e in catalogue.select(experiment.paper, experiment.name)]
            self.assertEqual(chosen[-1], experiment.identity)
            self.assertLessEqual(set(experiment.sources), set(chosen))
            self.assertNotEqual(bool(experiment.points), bool(experiment.derive), experiment.identity)
            self.assertIn(experiment.paper, page.NAMES)
        self.assertEqual(catalogue.select("nobody", None), [])

    def test_a_run_goes_on_where_it_was_interrupted(self):
        experiment = Experiment("luo", "table-0", "", Kind.EXACT, "", (0, 0), points=lambda _: [])
        here = Origin("a processor", "abc", "today", "quick", "lab/run")
        with tempfile.TemporaryDirectory() as folder:
            store = Store(pathlib.Path(folder))
            self.assertEqual(store.begin(experiment, here), set())
            first = [Cell("r", "c", 1.5, 1.0, 2.0, None, "too noisy", "a, b"), Cell("r", "d", 2)]
            store.add(experiment, "one", first)
            with open(store.part(experiment), "a") as file:
                file.write("two,r,e,3,,,,,x\ntwo,r,f")  # A kill.
            self.assertIsNone(store.read(experiment))
            self.assertEqual(store.begin(experiment, here._replace(date="tomorrow")), {"one"})
            store.add(experiment, "two", [Cell("r", "e", 4)])
            store.end(experiment)
            self.assertEqual(store.read(experiment).cells, [*first, Cell("r", "e", 4)])
            self.assertFalse(store.part(experiment).exists())
            # What another commit has measured is measured again.
            store.begin(experiment, here)
            store.add(experiment, "one", first)
            self.assertEqual(store.begin(experiment, here._replace(commit="def")), set())
            # So is what a tree has measured that differed from its commit: it may have changed since.
            dirty = here._replace(commit="abc-dirty")
            store.begin(experiment, dirty)
            store.add(experiment, "one", first)
            self.assertEqual(store.begin(experiment, dirty), set())

    def test_records_serve_the_same_commit_and_no_greater_effort(self):
        quick = Origin("a processor", "abc", "today", "quick", "")
        whole = quick._replace(effort="whole")
        self.assertTrue(quick.allows(whole) and quick.allows(quick) and whole.allows(whole))
        self.assertFalse(whole.allows(quick))
        dirty = quick._replace(commit="abc-dirty")
        self.assertFalse(quick.allows(dirty) or dirty.allows(dirty))
        self.assertFalse(quick.allows(quick._replace(processor="another")))

    def test_printed_figures_agree_digit_by_digit(self):
        self.assertTrue(agrees(31.1111, "31.11") and agrees(45.0, "45") and agrees(4.815068, "4.815068"))
        self.assertFalse(agrees(31.116, "31.11") or agrees(45.6, "45"))

    def test_a_table_shows_ours_theirs_and_what_is_missing(self):
        experiment = catalogue.by_identity("zhou-table-3.1")
        text = page.table(experiment, [Cell("(7,5,3)", "BN", 31.1111), Cell("(7,5,3)", "SS", 12, 11, 13, 1.5, "too noisy")])
        self.assertIn('<td class="same" title=""><span class="ratio">=</span> <b>31.1</b> <span class="theirs">31.11</span></td>', text)
        self.assertIn('<td class="other" title="too noisy; 11 to 13; 1.50 GB/s"><span class="ratio">1.080</span> <b class="doubt">12</b>', text)
        self.assertIn('<td> <span class="theirs">1920</span></td>', text)

    def test_gains_are_ratios_less_one(self):
        gain = in_percent(Cell("r", "gain", 1.5, 0.9, 2.0, 3.5))
        self.assertAlmostEqual(gain.value, 50)
        self.assertAlmostEqual(gain.low, -10)
        self.assertAlmostEqual(gain.high, 100)
        self.assertEqual(gain.speed, 3.5)

    def test_points_of_a_quick_run_are_among_those_of_a_whole_run(self):
        for experiment in catalogue.EXPERIMENTS:
            if experiment.points:
                quick, whole = ({p.name for p in experiment.points(Effort(q))} for q in (True, False))
                self.assertTrue(quick and quick <= whole, experiment.identity)


if __name__ == "__main__":
    unittest.main()
