"""Compares the codes with what lab/papers/definitions.py makes of the papers, and examples of the dissertation's with ours; a part of
tests.py."""

import pathlib
import re
import tempfile
import unittest

from . import definitions
from .command import paritas, schedule
from .experiment import printed


class Definitions(unittest.TestCase):
    """The codes, bit by bit, beside what lab/papers/definitions.py makes of the papers."""

    def assert_is(self, spec: str, expected: definitions.Matrix):
        found = paritas("codes", spec, "--matrix")[0]["matrix"]
        self.assertEqual(found, ["".join(map(str, row)) for row in expected], spec)

    def test_array_codes_are_those_of_their_papers(self):
        for p in (5, 7, 11, 13, 17):
            for k in range(2, p + 1):
                self.assert_is(f"evenodd:k={k},p={p}", definitions.evenodd(k, p))
                self.assert_is(f"liberation:k={k},w={p}", definitions.liberation(k, p))
                self.assert_is(f"star:k={k},p={p}", definitions.star(k, p))
                if k < p:
                    self.assert_is(f"rdp:k={k},p={p}", definitions.rdp(k, p))
                    self.assert_is(f"blaum-roth:k={k},w={p - 1}", definitions.blaum_roth(k, p - 1))
            self.assert_is(f"xcode:n={p}", definitions.xcode(p))

    def test_cauchy_codes_are_those_of_their_papers(self):
        for k, m in ((6, 2), (14, 2), (12, 4), (10, 6)):
            for w in range((k + m - 1).bit_length(), 9):
                self.assert_is(f"cauchy-orig:k={k},m={m},w={w}", definitions.cauchy_original(k, m, w))
        for k, m, w in ((5, 2, 3), (6, 3, 4), (10, 4, 4), (12, 4, 8)):
            points = ".".join(map(str, range(k + m)))
            scales = f"rows={'.'.join(['1'] * m)},columns={'.'.join(['1'] * k)}"
            plain = definitions.cauchy(list(range(k, k + m)), list(range(k)), w)
            self.assert_is(f"cauchy:k={k},m={m},w={w},points={points},{scales}", plain)

    def test_good_cauchy_codes_are_those_of_their_papers(self):
        for k, m in ((6, 2), (14, 2), (12, 4), (10, 6)):
            for w in range((k + m - 1).bit_length(), 9):
                self.assert_is(f"cauchy-good:k={k},m={m},w={w}", definitions.cauchy_good(k, m, w))

    def test_raid_6_in_words_is_that_of_anvin(self):
        for k in (1, 2, 6, 14):
            self.assert_is(f"raid6:k={k}", definitions.anvin(k))

    def test_liber8tion_is_as_its_paper_describes_it(self):
        """It was found by a search, so there is no formula: w = 8, each block a permutation, all but the first with one more bit, and no
        two losses are too many. Jerasure's bits are compared by lab/oracles/jerasure.py."""
        for k in range(2, 9):
            found = [[*map(int, row)] for row in paritas("codes", f"liber8tion:k={k}", "--matrix")[0]["matrix"]]
            self.assertEqual(found[:8], definitions.matrix_of(definitions.row_parity(k, 8), k, 8))
            blocks = [[row[8 * node : 8 * node + 8] for row in found[8:]] for node in range(k)]
            self.assertEqual([sum(map(sum, block)) for block in blocks], [8] + [9] * (k - 1))
            self.assertTrue(all(definitions.rank([int("".join(map(str, row)), 2) for row in block]) == 8 for block in blocks))
            self.assertTrue(all(any(row) for block in blocks for row in block) and all(any(column) for block in blocks for column in zip(*block)))
            self.assertTrue(definitions.survives(found, k, 2))

    def test_degrees_of_lt_codes_are_those_of_the_robust_soliton_distribution(self):
        """Exactly by what a spec pins, in units of 2^-44, and as drawn: 8,192 blocks of one graph, whose average lies within four standard
        errors, and whose share of each common degree within five."""
        k, drawn = 1024, 8192
        for c, delta in ((0.1, 0.5), (0.1, 1), (1, 0.1), (1.4, 0.2), (2, 1)):
            code = paritas("codes", f"lt:k={k},n={drawn},c={c},delta={delta},variant=plain", "--matrix")[0]
            ripple, spike, weight = definitions.spike(k, c, delta)
            pin = {name: code["pin"][name][0] for name in ("ripple", "spike", "weight")}
            self.assertEqual(pin["spike"], spike)
            self.assertTrue(abs(pin["ripple"] - ripple * 2**44) <= 2 and abs(pin["weight"] - weight * 2**44) <= 2, (c, delta))
            degrees = [row.count("1") for row in code["matrix"]]
            expected = definitions.robust_soliton(k, c, delta)
            mean = sum(degree * share for degree, share in expected.items())
            deviation = sum((degree - mean) ** 2 * share for degree, share in expected.items()) ** 0.5
            self.assertLess(abs(sum(degrees) / drawn - mean), 4 * deviation / drawn**0.5, (c, delta))
            for degree, share in expected.items():
                if share * drawn >= 100:
                    self.assertLess(abs(degrees.count(degree) / drawn - share), 5 * (share / drawn) ** 0.5, (c, delta, degree))

    def test_groups_of_delayed_parity_are_those_of_the_dissertation(self):
        shapes = {tuple(map(int, row.strip("()").split(","))) for row, _ in printed("zhou-table-4.3")}
        self.assertEqual(len(shapes), 8)
        for k, m, m2 in shapes:
            for family, prefix in (("dpg", ""), ("bbdpg", "bar-")):
                code = paritas("codes", f"{family}:k={k},m={m},m2={m2},interleave=none", "--matrix")[0]
                pin, w = code["pin"], int(re.search(r",w=(\d+)", code["code"])[1])
                base, other = (
                    definitions.cauchy(pin[p + "points"][k:], pin[p + "points"][:k], w, pin[p + "row-scale"], pin[p + "column-scale"])
                    for p in ("", prefix)
                )
                expected = definitions.delayed(base, other, k, m, m2, w)
                self.assertEqual(code["matrix"], ["".join(map(str, row)) for row in expected], code["code"])

    def test_what_the_papers_define_survives_every_loss(self):
        codes = {
            "RDP": (definitions.rdp(4, 5), 4, 2), "RDP, shortened": (definitions.rdp(3, 7), 3, 2),
            "EVENODD": (definitions.evenodd(5, 5), 5, 2), "Liberation": (definitions.liberation(7, 7), 7, 2),
            "Blaum-Roth": (definitions.blaum_roth(6, 6), 6, 2), "STAR": (definitions.star(5, 5), 5, 3),
            "Cauchy": (definitions.cauchy_original(5, 3, 3), 5, 3), "good Cauchy": (definitions.cauchy_good(5, 3, 4), 5, 3),
            "good Cauchy, m = 2": (definitions.cauchy_good(7, 2, 3), 7, 2), "Anvin": (definitions.anvin(6), 6, 2),
        }  # fmt: skip
        for name, (matrix, k, m) in codes.items():
            self.assertTrue(definitions.survives(matrix, k, m), name)
        damaged = [row[:] for row in definitions.rdp(4, 5)]
        damaged[-1] = damaged[0]
        self.assertFalse(definitions.survives(damaged, 4, 2))


class Dissertation(unittest.TestCase):
    """Examples in the text of Zhou's dissertation."""

    def test_normalisation_takes_46_ones_to_34(self):
        """Section 2.2.2, after the manual of Jerasure, which has k = 3 and w = 3. The points are those of the original Cauchy matrix."""
        spec = "cauchy:k=3,m=3,w=3,points=3.4.5.0.1.2"
        ones = lambda strategy: schedule(spec, "--strategy", strategy)["ones"]
        self.assertEqual(sum(map(sum, definitions.cauchy_original(3, 3, 3))), 46)
        self.assertEqual([ones("0,0"), ones("1,0")], [46, 34])

    def test_the_second_parity_of_2_6_takes_two_xors_in_place_of_three(self):
        """p0 = u0 + u2 + u3 + u4 and p1 = u0 + u2 + u3 + u5; u1 is in neither, and is left out. p0 alone takes three."""
        with tempfile.TemporaryDirectory() as folder:
            xors = []
            for name, rows in {"both": "11110\n11101", "first": "1111"}.items():
                path = pathlib.Path(folder, f"{name}.txt")
                path.write_text(f"k = {len(rows.split()[0])}\nm = {len(rows.split())}\nw = 1\n{rows}\n")
                xors.append({way: schedule(f"matrix:{path}", "--pass", way)["xors"] for way in ("direct", "smart")})
        both, first = xors
        self.assertEqual({way: both[way] - first[way] for way in both}, {"direct": 3, "smart": 2})
