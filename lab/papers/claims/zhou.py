"""What Zhou claims (2020)."""

from statistics import mean, median
from typing import Callable

from .. import zhou_speed
from ..experiment import Cell, Records, printed
from .judge import Claim, Finding, Verdict, below, compare, fastest, marked, number, over, span, tally, together, within

# Percentages of XORs that a row of table 3.1 may differ from print: maximum matchings are not unique.
MATCHINGS = 2.1


def column(cells: list[Cell], name: str) -> list[Cell]:
    return [cell for cell in cells if cell.column == name]


def at(cells: list[Cell], row: str, name: str) -> Cell:
    return next(cell for cell in cells if cell.place == (row, name))


def techniques_save(records: Records) -> Finding:
    """The averages over the printed rows, cell by cell within what matchings may differ."""
    cells, theirs = records["table-3.1"], printed("zhou-table-3.1")
    apart = [abs(cell.value - float(theirs[cell.place])) for cell in cells if cell.place in theirs and cell.column != "baseline"]
    saved = ", ".join(f"{name} {mean(cell.value for cell in column(cells, name)):.0f} %" for name in ("BN", "SS", "UM", "WM"))
    verdict = Verdict.HOLDS if max(apart) <= MATCHINGS else Verdict.PARTLY
    return Finding(verdict, f"on average {saved}; no cell of {len(apart)} is more than {max(apart):.1f} points from print")


def parameters_matter_little(records: Records) -> Finding:
    """The worst value of each parameter, over the best one."""
    ratios = []
    for table in ("table-3.3", "table-3.4"):
        for worst in records[table]:
            if not worst.column.endswith(", best value"):
                ratios.append(over(worst, at(records[table], worst.row, f"{worst.column}, best value")))
    verdict = together(below(ratio, 1.05, exact=True) for ratio in ratios)
    return Finding(verdict, f"the worst value of a parameter gives {span(ratios)} of the length that the best gives")


def genetic_beats_annealing(records: Records) -> Finding:
    """Lengths of matrices under all strategies, the best of the same seeds and numbers of schedules."""
    cells = records["table-3.5"]
    pairs = [(annealed, at(cells, annealed.row, "GA")) for annealed in column(cells, "SA")]
    shorter = sum(1 for annealed, genetic in pairs if genetic.value < annealed.value)
    longer = sum(1 for annealed, genetic in pairs if genetic.value > annealed.value)
    verdict = Verdict.HOLDS if not longer else Verdict.FAILS if not shorter else Verdict.PARTLY
    return Finding(verdict, f"shorter in {shorter} of {len(pairs)} rows, longer in {longer}")


# Strategies of table 3.2: normalised, with unweighted and with weighted matching.
MATCHED = ("(1,2)", "(1,3)")


def two_strategies_are_best(records: Records) -> Finding:
    """On the matrices that the genetic algorithm found for each strategy: these two are the shortest, and within 5 % of each other."""
    lengths: dict[str, dict[str, float]] = {}
    for cell in column(records["table-3.5"], "GA"):
        shape, _, strategy = cell.row.partition(" ")
        lengths.setdefault(shape, {})[strategy] = cell.value
    shortest = sum(max(found[name] for name in MATCHED) <= min(length for name, length in found.items() if name not in MATCHED) for found in lengths.values())
    apart = [Cell(shape, "", found[MATCHED[1]] / found[MATCHED[0]]) for shape, found in lengths.items()]
    same = [below(Cell("", "", max(cell.value, 1 / cell.value)), 1.05, exact=True) for cell in apart]
    verdicts = [*same, *(Verdict.HOLDS for _ in range(shortest)), *(Verdict.FAILS for _ in range(len(lengths) - shortest))]
    here = f"no other is shorter in {shortest} of {len(lengths)} rows; (1, 3) has {span(apart)} of the length of (1, 2); within 5 %: {tally(same)}"
    return Finding(together(verdicts), here)


def gains_of(name: str) -> Callable[[Records], Finding]:
    """A column of table 3.1 with speeds: in how many rows the gain is real."""

    def judge(records: Records) -> Finding:
        gains = column(records["table-3.1-speed"], name)
        middle = median(cell.value for cell in gains)
        verdicts = [compare(cell, 0) for cell in gains]
        here = f"{span(gains, ' %')}, median {middle:.1f} %; more than nothing: {tally(verdicts)}"
        return Finding(together(verdicts), here)

    return judge


def bound_groups_cost_less(records: Records) -> Finding:
    cells = records["table-4.3"]
    ratios = [over(cell, at(cells, cell.row, "optimised DPG")) for cell in column(cells, "BB-DPG")]
    return Finding(together(below(ratio, 1, exact=True) for ratio in ratios), f"{span(ratios)} of the XORs and copies of optimised DPG")


def common_elements_help(records: Records) -> Finding:
    """Children that are better than a parent, by the crossover: shares of thousands of children, from fixed seeds."""
    cells = records["crossover"]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    shares = {name: [at(cells, row, name) for row in rows] for name in ("common elements first", "random")}
    more = sum(ours.value > other.value for ours, other in zip(*shares.values(), strict=True))
    verdict = Verdict.HOLDS if more == len(rows) else Verdict.PARTLY if more else Verdict.FAILS
    here = "; ".join(f"{name}: {span(found, ' %')}" for name, found in shares.items())
    return Finding(verdict, f"{here}; more with common elements in {more} of {len(rows)} rows")


def delayed_parity_reads_as_little(records: Records) -> Finding:
    cells = records["regenerating"]
    same = all(cell.value == at(cells, cell.row, "theorem 1").value for name in ("read by promotion, of all data", "(4.1), m2 - m nodes repaired")
               for cell in column(cells, name))  # fmt: skip
    symbols = [over(theirs, at(cells, theirs.row, "symbols of a node, delayed parity")) for theirs in column(cells, "symbols of a node, (4.2)")]
    verdict = Verdict.HOLDS if same and all(ratio.value > 1 for ratio in symbols) else Verdict.FAILS
    return Finding(verdict, f"promotion reads what theorem 1 and (4.1) allow; by (4.2) a node has {span(symbols)} times the symbols")


def weighted_cost_leads(records: Records) -> Finding:
    """Table 3.6: matrices found under the weighted cost, in pairs with those that have the fewest XORs."""
    cells = [cell for cell in column(records["table-3.6"], "weighted: times as fast as XORs") if cell.doubt != "the same matrix"]
    if not cells:
        return Finding(Verdict.UNDECIDED, "the records lack these cells")
    verdicts = [compare(cell, 1) for cell in cells]
    return Finding(together(verdicts), f"{span(cells)} times as fast as those with the fewest XORs, where matrices differ; faster: {tally(verdicts)}")


# What "nearly the fastest" means, and the level that the lab takes for the rule's cache.
NEARLY, LEVEL = 90, "L1"


def rule_is_nearly_fastest(records: Records) -> Finding:
    cells = {level: column(records["rule-3.1"], f"speed for {level}, % of the fastest") for level in ("L1", "L2")}
    if not cells[LEVEL]:
        return Finding(Verdict.UNDECIDED, "the records lack these cells")
    verdicts = [compare(cell, NEARLY) for cell in cells[LEVEL]]
    listed = ", ".join(f"{span(found, ' %')} with {level}" for level, found in cells.items())
    return Finding(together(verdicts), f"of the fastest: {listed}; more than {NEARLY} % with {LEVEL}: {tally(verdicts)}")


# Less than this share of the speed of explicit vectors counts as slower.
SLOWER = 0.95


def compiler_is_slower(records: Records) -> Finding:
    """Section 3.3.4: the loop as the compiler vectorises it, with and without its check whether regions overlap."""
    cells = [cell for cell in records["loops"] if cell.row.startswith("vectorised by the compiler")]
    said, verdicts = [], []
    for size in dict.fromkeys(cell.column for cell in cells):
        found = column(cells, size)
        verdicts += [below(cell, SLOWER) for cell in found]
        said.append(f"over {size} {span(found)}")
    return Finding(together(verdicts), f"times as fast as explicit vectors of 256 bits: {', '.join(said)}; less than {SLOWER}: {tally(verdicts)}")


def rows_of(cells: list[Cell], ours: str, theirs: str) -> list[Cell]:
    """How many times as fast one code is as another, in each row that has both."""
    by_row = {name: {cell.row: cell for cell in column(cells, name)} for name in (ours, theirs)}
    return [over(cell, by_row[theirs][row]) for row, cell in by_row[ours].items() if row in by_row[theirs]]


def beside_libraries(operation: str) -> Callable[[Records], Finding]:
    """Jo-CRS on vectors of 256 bits, beside ISA-L and Jerasure, which ran in pairs with our word kernel."""

    def judge(records: Records) -> Finding:
        cells = zhou_speed.by_place({f"zhou-{name}": found for name, found in records.items()}, *(f"zhou-{name}-{operation}" for name in ("speeds", "libraries")))
        said, verdicts = [], []
        for name, variant in {"ISA-L": "ISA-L, 256 bits", "Jerasure": "Jerasure, Reed-Solomon"}.items():
            pairs = [(cells.get((row, "Jo-CRS, 256 bits")), zhou_speed.library(cells, row, variant)) for row in dict.fromkeys(row for row, _ in cells)]
            ratios = [over(ours, theirs) for ours, theirs in pairs if ours and theirs]
            if not ratios:
                return Finding(Verdict.UNDECIDED, "the records lack these cells")
            found = [compare(ratio, 1) for ratio in ratios]
            verdicts += found
            said.append(f"{span(ratios)} of {name}'s speed, median {number(median(ratio.value for ratio in ratios))} (faster: {tally(found)})")
        return Finding(together(verdicts), "; ".join(said))

    return judge


Decide = Callable[[Cell], Verdict]


def faster(ratio: Cell) -> Verdict:
    return compare(ratio, 1)


def slower(ratio: Cell) -> Verdict:
    return below(ratio, 1)


def judged(ratios: list[Cell], decide: Decide, words: str, where: str) -> tuple[list[Verdict], str]:
    """Verdicts on ratios of speeds, and what to say of them."""
    found = [decide(ratio) for ratio in ratios]
    return found, f"{where} {span(ratios)} ({words}: {tally(found)})"


def proposed(other: str, decide: Decide, words: str, widest: int = 512) -> Callable[[Records], Finding]:
    """The proposed code beside another, on vectors of 256 and 512 bits; the other one has no wider vectors than `widest`."""

    def judge(records: Records) -> Finding:
        said, verdicts = [], []
        for bits in (256, 512):
            ratios = rows_of(records["speeds-encode"], f"Jo-CRS, {bits} bits", f"{other}, {min(bits, widest)} bits")
            if ratios:
                found, here = judged(ratios, decide, words, f"at {bits} bits")
                verdicts += found
                said.append(here)
        return Finding(together(verdicts), f"times as fast: {', '.join(said)}")

    return judge


def proposed_with_fixed_packets(records: Records) -> Finding:
    """Table 3.10: packets of 16 KiB and vectors of 128 bits, at both w."""
    cells = records["fixed-encode"]
    ratios = [ratio for w in (4, 8) for ratio in rows_of(cells, f"Jo-CRS, w = {w}, 128 bits", f"CRS, w = {w}, 128 bits")]
    verdicts, here = judged(ratios, faster, "faster", "at 128 bits")
    return Finding(together(verdicts), f"times as fast: {here}; {100 * (mean(ratio.value for ratio in ratios) - 1):.0f} % faster on average")


def verdicts_in_print(ours: str, theirs: str, decide: Decide) -> list[Verdict]:
    """What the printed table 4.4 says, encoding."""
    figures = printed("zhou-table-4.4")
    rows = dict.fromkeys(row for row, _ in figures if row.endswith(" enc"))
    ratios = [float(figures[row, ours]) / float(figures[row, theirs]) for row in rows]
    return [decide(Cell("", "", ratio, ratio, ratio)) for ratio in ratios]


def delayed(ours: str, theirs: str, decide: Decide, words: str) -> Callable[[Records], Finding]:
    """Table 4.4, encoding: one code beside another."""

    def judge(records: Records) -> Finding:
        cells = [cell for cell in records["delayed"] if cell.row.endswith(" enc")]
        verdicts, here = judged(rows_of(cells, ours, theirs), decide, words, "times as fast:")
        print_says = tally(verdicts_in_print(ours, theirs, decide))
        return Finding(together(verdicts), f"{here}; in print: {print_says}")

    return judge


def words_are_slower(records: Records) -> Finding:
    """Table 4.4, encoding: words are run by the kernels of today, so they are judged beside BB-DPG that is compiled as well."""
    cells = [cell for cell in records["delayed"] if cell.row.endswith(" enc")]
    verdicts, here = judged(rows_of(cells, "DPG in words", "compiled (ours)"), slower, "slower", "times as fast, both as run today:")
    then = rows_of(cells, "DPG in words", "BB-DPG")
    return Finding(together(verdicts), f"{here}; beside BB-DPG as run then {span(then)} times")


def bound_groups_lie_between(records: Records) -> Finding:
    """Table 4.4, encoding: slower than (k, m), and faster than (k, m2)."""
    cells = [cell for cell in records["delayed"] if cell.row.endswith(" enc")]
    sides = {"(k, m)": (slower, "slower"), "(k, m2)": (faster, "faster")}
    found = [judged(rows_of(cells, "BB-DPG", name), decide, words, f"{name}") for name, (decide, words) in sides.items()]
    return Finding(together(verdict for verdicts, _ in found for verdict in verdicts), f"times as fast as {', as '.join(here for _, here in found)}")


def on_arm(records: Records) -> Finding:
    cells = records["table-3.18"]
    ratios = rows_of(cells, "ISA-L", "Jo-CRS")
    verdicts = [compare(ratio, 2, exact=True) for ratio in ratios]
    return Finding(together(verdicts), f"counted, not timed: ISA-L's code takes {span(ratios)} times the NEON instructions; more than twice: {tally(verdicts)}")


def writes(other: str, decide: Decide, words: str) -> Callable[[Records], Finding]:
    """Figure 4.7: writes by BB-DPG beside those of another code. A single round decides nothing."""

    def judge(records: Records) -> Finding:
        cells = records["figure-4.7"]
        ratios = [over(cell, at(cells, cell.row, f"{rate}: {other}")) for cell in cells for rate, _, scheme in [cell.column.partition(": ")] if scheme == "BB-DPG"]
        verdicts = [Verdict.UNDECIDED if ratio.doubt else decide(ratio) for ratio in ratios]
        return Finding(together(verdicts), f"{span(ratios)} times the speed, three rates of links; {words}: {tally(verdicts)}")

    return judge


# KiB of the unit that the dissertation chose for its slowest link; those of the other two, 512, were not run here.
CHOSEN_UNIT = 256
# What "almost exhaust" means: the text has a tenth less in its largest test.
ALMOST_ALL = 0.9


def by_link(cells: list[Cell]) -> dict[float, list[Cell]]:
    """The cells of figure 4.6 as shares of the link, by its rate in MB/s, smallest unit first."""
    found: dict[float, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: int(cell.row)):
        rate = float(cell.column.partition(" ")[0])
        found.setdefault(rate, []).append(over(cell, Cell("", "", rate, rate, rate)))
    return found


def small_units_waste_the_link(records: Records) -> Finding:
    links = by_link(records["figure-4.6"])
    verdicts = [below(over(cells[0], fastest(cells)), 1) for cells in links.values()]
    listed = "; ".join(f"{marked(cells[0])} of {rate:g} MB/s, and {marked(fastest(cells))} with {fastest(cells).row} KiB" for rate, cells in links.items())
    return Finding(together(verdicts), f"units of 16 KiB reach {listed}; less than the best unit: {tally(verdicts)}")


def large_units_fill_the_link(records: Records) -> Finding:
    links = {rate: [cell for cell in cells if int(cell.row) >= CHOSEN_UNIT] for rate, cells in by_link(records["figure-4.6"]).items()}
    verdicts = [compare(cell, ALMOST_ALL) for cells in links.values() for cell in cells]
    listed = "; ".join(f"{', '.join(map(marked, cells))} of {rate:g} MB/s" for rate, cells in links.items())
    units = ", ".join(cell.row for cell in next(iter(links.values())))
    return Finding(together(verdicts), f"units of {units} KiB reach {listed}; more than {ALMOST_ALL}: {tally(verdicts)}")


CLAIMS = [
    Claim("BN saves 35 %, smart scheduling 20 %, matching 35 % of the XORs", ("table-3.1",), techniques_save),
    Claim("The parameters of both searches matter little (at most 5 %)", ("table-3.3", "table-3.4"), parameters_matter_little),
    Claim("Common elements first give better children than a random crossover (25 % against 2 %)", ("crossover",), common_elements_help),
    Claim("The genetic algorithm finds better matrices than annealing", ("table-3.5",), genetic_beats_annealing),
    Claim("On the matrices found, strategies (1, 2) and (1, 3) are the best, without significant difference", ("table-3.5",), two_strategies_are_best),
    Claim("The order of data (S-CO) gains 0.3 %", ("table-3.1-speed",), gains_of("S-CO")),
    Claim("Vectors (V-XOR, 256 bits) gain 70 %", ("table-3.1-speed",), gains_of("V-XOR")),
    Claim("Vectors of the compiler are slower than explicit ones (10 to 20 %)", ("loops",), compiler_is_slower),
    Claim("Matrices found under the weighted cost are the fastest", ("table-3.6",), weighted_cost_leads),
    Claim("The packet of rule (3.1) is nearly the fastest", ("rule-3.1",), rule_is_nearly_fastest),
    Claim("Vector XORs are faster than vectorised finite fields (50 to 74 % than ISA-L, 190 to 280 % than Jerasure)", ("speeds-encode", "libraries-encode"),
          beside_libraries("encode")),
    Claim("Vector XORs are faster than vectorised finite fields, decoding", ("speeds-decode", "libraries-decode"), beside_libraries("decode")),
    Claim("The proposed code is faster than CRS on three machines (4.9 to 35 %; it is 9.4 % slower on the i7)", ("speeds-encode",), proposed("CRS", faster, "faster")),
    Claim("The proposed code is faster than CRS with packets of 16 KiB (15 %)", ("fixed-encode",), proposed_with_fixed_packets),
    Claim("The proposed code is level with STAR (1.1 to 8.1 % slower)", ("speeds-encode",), proposed("STAR", lambda ratio: within(ratio, 0.95, 1.05), "within 5 %")),
    Claim("The proposed code is faster than QFS (23 to 43 %)", ("speeds-encode",), proposed("QFS", faster, "faster")),
    Claim("The proposed code is slower than RDP (8.0 to 11 %)", ("speeds-encode",), proposed("RDP", slower, "slower")),
    Claim("The proposed code is between 10 % slower and 18 % faster than EVENODD", ("speeds-encode",), proposed("EO", lambda ratio: within(ratio, 0.898, 1.182), "in between")),
    Claim("The proposed code is faster than vectorised Raid-6 (9.7 to 14 %)", ("speeds-encode",), proposed("Raid6", faster, "faster", widest=256)),
    Claim("On Arm the proposed code is twice as fast as ISA-L", ("table-3.18",), on_arm),
    Claim("Delayed parity reads as little as regenerating codes, with fewer symbols a node", ("regenerating",), delayed_parity_reads_as_little),
    Claim("BB-DPG takes fewer XORs and copies than DPG", ("table-4.3",), bound_groups_cost_less),
    Claim("Encoding, BB-DPG is faster than optimised DPG (table 4.4)", ("delayed",), delayed("BB-DPG", "optimised DPG", faster, "faster")),
    Claim("BB-DPG is faster than DPG without optimised matrices", ("delayed",), delayed("BB-DPG", "DPG w/o opt", faster, "faster")),
    Claim("DPG over a finite field is slower than BB-DPG (13 to 32 %)", ("delayed",), words_are_slower),
    Claim("BB-DPG lies between (k, m2) and (k, m)", ("delayed",), bound_groups_lie_between),
    Claim("Writes of BB-DPG over links run at the speed of (k, m)", ("figure-4.7",), writes("(k, m)", lambda ratio: within(ratio, 0.95, 1.05), "within 5 %")),
    Claim("Writes of BB-DPG over links are faster than those of (k, m2)", ("figure-4.7",), writes("(k, m2)", faster, "faster")),
    Claim("Small transmission units waste the link (section 4.9)", ("figure-4.6",), small_units_waste_the_link),
    Claim("Large transmission units almost exhaust the link", ("figure-4.6",), large_units_fill_the_link),
]  # fmt: skip
