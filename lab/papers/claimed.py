"""Tests of what is said about the documents' claims, and of the talk's observations; a part of tests.py."""

import unittest

import readme_tables
import records

from . import catalogue, luo, page, plank, zhou_speed
from .claims import luo as of_luo
from .claims import plank as of_plank
from .claims import zhou as of_zhou
from .claims import CLAIMS, head
from .claims.judge import STORE, Claim, Finding, Verdict, identity
from .experiment import Cell, Effort, Kind, printed

QUICK = Effort(quick=True)


def cell(row: str, column: str, value: float, spread: float = 0.01, doubt: str = "") -> Cell:
    return Cell(row, column, value, value - spread, value + spread, speed=value, doubt=doubt)


class Talk(unittest.TestCase):
    """The experiments of Plank's talk."""

    def test_a_quick_run_has_every_code_of_every_shape(self):
        for k, m in plank.SHAPES:
            quick, whole = (plank.codes(k, m, Effort(is_quick)) for is_quick in (True, False))
            self.assertEqual({plank.family(label) for label in quick}, {plank.family(label) for label in whole})
            self.assertLessEqual({f"RS, w = {w}" for w in (8, 16, 32)}, set(quick))
            self.assertLessEqual({"CRS good, w = 8", "CRS original, w = 8"}, set(quick))
        special = {"RDP, w = 16", "RDP, w = 18", "EVENODD, w = 16", "Blaum-Roth, w = 16", "Liberation, w = 17"}
        self.assertLessEqual(special, set(plank.codes(14, 2, QUICK)))

    def test_libraries_have_rows_of_our_codes(self):
        for k, m in plank.SHAPES:
            names = {p.name for p in plank.all_codes(k, m, "encode")(QUICK)}
            for label in plank.codes(k, m, QUICK):
                is_there = plank.family(label) not in ("RDP", "EVENODD")  # Debian's Jerasure lacks them.
                self.assertEqual(f"library, {label}" in names, is_there, label)
            self.assertLessEqual({"library, RS ISA-L, w = 8", "library, RS liberasurecode, w = 16"}, names)

    def test_a_claim_whose_interval_holds_one_is_undecided(self):
        cell = lambda low, high, doubt="": Cell("r", "c", (low + high) / 2, low, high, doubt=doubt)
        doubt = lambda subject, base: next(plank.claim("n", "w", subject, base)).doubt
        self.assertEqual(doubt(cell(1.0, 1.2), cell(1.1, 1.3)), plank.OVERLAP)
        self.assertEqual(doubt(cell(1.4, 1.6), cell(1.1, 1.3)), "")
        self.assertEqual(doubt(cell(1.4, 1.6, "too noisy"), cell(1.1, 1.3)), "too noisy")
        self.assertEqual(list(plank.claim("n", "w", None, cell(1, 2))), [])
        ratio = next(plank.claim("n", "w", cell(2, 4), cell(1, 2)))
        self.assertEqual((ratio.value, ratio.low, ratio.high), (2, 1, 4))


class Judged(unittest.TestCase):
    """Verdicts on invented records: each follows the printed claim."""

    def test_fusion_is_judged_beside_the_order_of_data_alone(self):
        """Section 3 of Luo names loop fusion as the reason."""

        def verdict(new: float, alone: float) -> Verdict:
            cells = [cell(packet, f"RDP: {way}", value) for packet in of_luo.PACKETS for way, value in (("new", new), ("order alone", alone))]
            return of_luo.fusion_is_the_reason({"gains": cells}).verdict

        self.assertEqual([verdict(1.5, 1.0), verdict(1.5, 1.5), verdict(1.2, 1.5)], [Verdict.HOLDS, Verdict.UNDECIDED, Verdict.FAILS])

    def test_large_packets_are_judged_beside_the_traditional_algorithm(self):
        verdict = lambda large: of_luo.large_packets_harm({"gains": [cell("64", "RDP: new", 1.6), cell("32768", "RDP: new", large)]}).verdict
        self.assertEqual([verdict(0.8), verdict(1.4)], [Verdict.HOLDS, Verdict.FAILS])

    def test_misses_are_told_in_two_groups_of_packets(self):
        found = []
        for packet, new, old in ((64, 60, 90), (128, 50, 40), (256, 48, 40), (512, 50, 60)):
            found += [Cell(str(packet), f"P4, first level: {name}", value) for name, value in (("new", new), ("traditional", old))]
        judged = of_luo.caches_miss_less({"caches": found})
        self.assertEqual(judged.verdict, Verdict.PARTLY)
        self.assertEqual(judged.here, "misses of the first level, beside the traditional algorithm: 0.67 to 0.83 times with packets of 64 and 512 bytes, and 1.20 to 1.25 times with packets of 128 to 256 bytes")

    def test_the_two_strategies_are_judged_on_the_matrices_found_for_them(self):
        def verdict(unweighted: int, weighted: int) -> Verdict:
            lengths = {"(0,0)": 90, "(1,1)": 60, "(1,2)": unweighted, "(1,3)": weighted}
            return of_zhou.two_strategies_are_best({"table-3.5": [Cell(f"(8,6,4) {name}", "GA", length) for name, length in lengths.items()]}).verdict

        self.assertEqual([verdict(57, 58), verdict(57, 61), verdict(50, 60)], [Verdict.HOLDS, Verdict.FAILS, Verdict.PARTLY])

    def test_two_strategies_of_table_3_5_are_the_shortest_but_once(self):
        lengths: dict[str, dict[str, int]] = {}
        for (row, column), text in printed("zhou-table-3.5").items():
            if column == "GA":
                shape, _, strategy = row.partition(" ")
                lengths.setdefault(shape, {})[strategy] = int(text)
        both = [found for found in lengths.values() if "(1,3)" in found]
        self.assertEqual((len(both), len(lengths)), (5, 10))
        self.assertTrue(all(found["(1,2)"] == found["(1,3)"] == min(found.values()) for found in both))
        longer = {shape: (found["(1,1)"], found["(1,2)"]) for shape, found in lengths.items() if found["(1,2)"] > min(found.values())}
        self.assertEqual(longer, {"(8,6,8)": (133, 134)})

    def test_printed_ranges_are_those_that_claims_name(self):
        theirs = printed("zhou-table-3.25")
        ranges = {"Vectorized XOR-based CRS code": (-9.44, 34.76), "STAR": (-8.05, -1.08), "Quantcast-QFS": (23.18, 43.34),
                  "Vectorized Raid-6": (9.71, 13.62), "RDP": (-10.75, -8.0), "EVENODD": (-10.15, 18.19)}  # fmt: skip
        for name, expected in ranges.items():
            values = [float(text) for (row, _), text in theirs.items() if row == name]
            self.assertEqual((min(values), max(values)), expected, name)
        table = printed("zhou-table-4.4")
        losses = [100 * (1 - float(text) / float(table[row, "BB-DPG"])) for (row, column), text in table.items() if column == "DPG in words" and row.endswith(" enc")]
        self.assertEqual([round(min(losses)), round(max(losses))], [13, 32])

    def test_a_width_is_judged_by_the_smallest_and_the_largest(self):
        """By number: w = 10 is larger than w = 6."""
        cells = [cell(f"RDP, w = {w}", plank.TALK, value) for w, value in ((10, 0.5), (6, 0.7), (30, 0.4))]
        small, large = of_plank.ends(cells, "RDP")
        self.assertEqual((small.value, large.value), (0.7, 0.4))

    def test_numbers_of_xors_are_judged_by_pairs_of_codes(self):
        """A pair that the intervals do not decide counts for both ends, and codes with as many XORs are no pair."""
        codes = {"RDP, w = 6": (10, 0.7), "Liberation, w = 7": (11, 0.6), "EVENODD, w = 6": (11, 0.65), "CRS good, w = 8": (13, 0.4)}
        counted = [Cell(row, f"[{k},{m}]", xors) for k, m in plank.SHAPES for row, (xors, _) in codes.items()]

        def judged(spread: float, sign: int = 1) -> Finding:
            cells = [cell(row, plank.TALK, sign * speed, spread, "too noisy" if xors == 13 else "") for row, (xors, speed) in codes.items()]
            return of_plank.fewer_xors_are_faster({"xors": counted, **dict.fromkeys(of_plank.ENCODED, cells)})

        self.assertEqual([judged(0.01).verdict, judged(0.06).verdict, judged(0.01, -1).verdict], [Verdict.HOLDS, Verdict.UNDECIDED, Verdict.FAILS])
        self.assertIn("[6,2] 100 (60 to 100) (1 of 4 codes doubtful), [14,2]", judged(0.06).here)

    def test_units_are_judged_by_the_share_of_the_link(self):
        speeds = {16: 2.0, 256: 9.5, 1024: 8.0}
        found = {"figure-4.6": [cell(str(unit), "10 MB/s: dec1", speed) for unit, speed in speeds.items()]}
        self.assertEqual(of_zhou.small_units_waste_the_link(found).verdict, Verdict.HOLDS)
        self.assertEqual(of_zhou.large_units_fill_the_link(found).verdict, Verdict.PARTLY)

    def test_a_claim_may_rest_on_a_record_of_another_document(self):
        self.assertEqual([identity("plank", "luo-disk"), identity("plank", "ones")], ["luo-disk", "plank-ones"])


class Derived(unittest.TestCase):
    """Tables that are derived from kept records."""

    # Their cells have doubts of their own: two are measured while they are derived, and the third has the spread of all samples as its interval.
    OWN = ("luo-table-5", "luo-peaks", "jugan-one-thread")

    def test_figures_that_are_made_of_doubtful_ones_are_doubtful(self):
        derived = [e for e in catalogue.EXPERIMENTS if e.kind is Kind.TIMED and e.derive and e.identity not in self.OWN]
        self.assertGreater(len(derived), 30)
        of_print = lambda found: found.column.startswith("theirs") or found.column in luo.MACHINES or found.column.startswith("blocks")
        for experiment in derived:
            cells = {name: STORE.read(catalogue.by_identity(name)).cells for name in experiment.sources}
            doubtful = {name: [one._replace(doubt="too noisy") for one in found] for name, found in cells.items()}
            plain = [one.place for one in experiment.derive(doubtful) if not one.doubt and not of_print(one)]
            self.assertEqual(plain, [], experiment.identity)

    def test_kept_tables_are_those_that_follow_from_the_kept_sources(self):
        for name in ("zhou-table-3.10", "zhou-table-3.25", "zhou-table-4.4", "luo-table-7", "luo-table-8", "luo-figure-9", "plank-figure-encode-6-2", "plank-observations"):
            experiment = catalogue.by_identity(name)
            sources = {source: STORE.read(catalogue.by_identity(source)).cells for source in experiment.sources}
            found, kept = list(experiment.derive(sources)), STORE.read(experiment).cells
            self.assertEqual([(one.place, one.doubt, one.low is None) for one in found], [(one.place, one.doubt, one.low is None) for one in kept], name)
            for one, other in zip(found, kept):
                self.assertAlmostEqual(one.value, other.value, msg=f"{name} {one.place}")

    def test_an_average_gain_has_an_interval_and_counts_its_doubtful_rows(self):
        pairs = [(cell("", "", 1.2, 0.1), cell("", "", 1.0, 0.0)), (cell("", "", 1.0, 0.1, "too noisy"), cell("", "", 1.0, 0.0))]
        (gain,) = zhou_speed.improvement("CRS", "i7", [*pairs, (None, pairs[0][1])])
        self.assertEqual([round(value) for value in (gain.value, gain.low, gain.high)], [10, 0, 20])
        self.assertEqual(gain.doubt, "1 of 2 rows too noisy")
        self.assertEqual([*zhou_speed.improvement("CRS", "i7", [])], [])


class Pages(unittest.TestCase):
    """What stands in docs/ and in the plots."""

    def test_doubtful_figures_are_marked_in_tables(self):
        row = lambda name, column, value, doubt: {"row": name, "column": column, "value": value, "theirs": "-50", "doubt": doubt}
        shape = [row("RDP, w = 6", plank.TALK, "0.5", ""), row("RDP, w = 10", plank.TALK, "0.75", "too noisy"), row("RDP, w = 6", plank.COMPILED, "1.0", "")]
        origin = records.Origin("p", "c", "d", "l")
        found = {name: records.Record("", origin, shape) for name in readme_tables.SHAPES}
        self.assertEqual(readme_tables.families(found)[1][:2], ["RDP", f"0.75{readme_tables.DOUBTFUL} / 1.00"])
        speeds = [row("(5,2,3) enc", "optimised DPG", "10", "too noisy"), row("(5,2,3) enc", "(k, m)", "25", "")]
        table = readme_tables.group_speeds({"speeds": records.Record("", origin, speeds)})
        self.assertEqual(table[1], ["(5,2,3) enc", f"110{readme_tables.DOUBTFUL} / 50", "-", "-", "125 / 50", "-", "-"])

    def test_doubtful_figures_are_marked_in_what_is_said_of_claims(self):
        units = {16: 2.0, 256: 9.5}
        cells = [cell(str(unit), "10 MB/s: dec1", speed, doubt="too noisy") for unit, speed in units.items()]
        for judge in (of_zhou.small_units_waste_the_link, of_zhou.large_units_fill_the_link):
            self.assertIn("0.95, too noisy", judge({"figure-4.6": cells}).here)
        talk = [cell(f"{family}, w = {w}", way, 0.5, doubt="too noisy") for family, w in of_plank.NORMALISED.items() for way in (plank.TALK, plank.COMPILED)]
        self.assertEqual(of_plank.fractions({"encode-6-2": talk}).here.count("0.50, too noisy"), len(talk))

    def test_doubtful_points_are_circled_in_plots(self):
        curve = [cell("64", "new", 0.5), cell("128", "new", 0.7, doubt="too noisy")]
        self.assertEqual(page.doubtful(curve), [(128.0, 0.7)])

    def test_the_head_of_the_page_counts_verdicts_and_names_what_failed(self):
        claim = lambda text, verdict: Claim(text, (), lambda _: Finding(verdict, ""))
        claims = {"luo": [claim("A", Verdict.HOLDS), claim("B", Verdict.FAILS), claim("(C)", Verdict.OPEN)], "zhou": [claim("D", Verdict.UNDECIDED)]}
        self.assertIn("Of 3 claims** 1 holds, 1 does not hold, and 1 is undecided", head.verdicts(claims))
        self.assertEqual(head.failures(claims), "**What does not hold**: B (Luo).")
        self.assertEqual(set(head.NAMES), set(CLAIMS))

    def test_whole_runs_take_as_long_as_the_page_says(self):
        """By what lab/run announces."""
        minutes = lambda experiments: sum(experiment.seconds[1] for experiment in experiments) / 60
        of_paper = {paper: minutes(e for e in catalogue.EXPERIMENTS if e.paper == paper) for paper in CLAIMS}
        links = minutes(e for e in catalogue.EXPERIMENTS if e.identity in ("zhou-table-4.6", "zhou-table-4.7", "zhou-table-4.8", "zhou-figure-4.6"))
        self.assertLessEqual(max(of_paper.values()), 120)
        self.assertEqual([round(taken / 5) for taken in (of_paper["plank"], of_paper["zhou"], links)], [22, 23, 9])
        text = " ".join((records.ROOT / "docs" / "papers.md").read_text().split())
        self.assertIn("Each fits into two hours (`--hours`), after which a run ends and the next one goes on: Plank's takes some 110 minutes, and Zhou's 115, of which 45 are over links", text)

    def test_claims_can_be_read_alone(self):
        """The head of the page names them outside their table."""
        for claims in CLAIMS.values():
            for claim in claims:
                self.assertNotRegex(claim.text, "^(The same|It|They|That|His|The others)\\b")
