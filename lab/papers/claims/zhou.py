"""What Zhou claims (2020)."""

from statistics import mean, median
from typing import Callable

from .. import zhou_speed
from ..experiment import Cell, Records, printed
from .judge import Claim, Finding, Verdict, below, compare, number, over, span, tally, together, within

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
    return Finding(verdict, f"the genetic algorithm is shorter in {shorter} of {len(pairs)} rows, annealing in {longer}, and the rest are equal")


def one_strategy_is_best(records: Records) -> Finding:
    """Strategy (1, 3) of table 3.2, normalised with weighted matching, beside the seven others: XORs and copies, without search."""
    lengths: dict[str, dict[str, float]] = {}
    for cell in records["natural"]:
        shape, _, strategy = cell.row.partition(" ")
        lengths.setdefault(shape, {})[strategy] = cell.value
    ratios = [Cell(shape, "", found["(1,3)"] / min(value for name, value in found.items() if name != "(1,3)")) for shape, found in lengths.items()]
    verdicts = [Verdict.HOLDS if ratio.value <= 1 else Verdict.FAILS for ratio in ratios]
    here = f"normalised with weighted matching, a schedule has {span(ratios)} of the length of the shortest of the others, in {len(ratios)} rows; shortest: {tally(verdicts)}"
    return Finding(together(verdicts), here)


def gains_of(name: str) -> Callable[[Records], Finding]:
    """A column of table 3.1 with speeds: in how many rows the gain is real."""

    def judge(records: Records) -> Finding:
        gains = column(records["table-3.1-speed"], name)
        middle = median(cell.value for cell in gains)
        verdicts = [compare(cell, 0) for cell in gains]
        here = f"{span(gains, ' %')} over {len(gains)} rows, {middle:.1f} % in the median; more than nothing: {tally(verdicts)}"
        return Finding(together(verdicts), here)

    return judge


def bound_groups_cost_less(records: Records) -> Finding:
    cells = records["table-4.3"]
    ratios = [over(cell, at(cells, cell.row, "optimised DPG")) for cell in column(cells, "BB-DPG")]
    return Finding(together(below(ratio, 1, exact=True) for ratio in ratios), f"{span(ratios)} of the XORs and copies of optimised DPG, in {len(ratios)} rows")


def common_elements_help(records: Records) -> Finding:
    """Children that are better than a parent, by the crossover: shares of thousands of children, from fixed seeds."""
    cells = records["crossover"]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    shares = {name: [at(cells, row, name) for row in rows] for name in ("common elements first", "random")}
    more = sum(ours.value > other.value for ours, other in zip(*shares.values(), strict=True))
    verdict = Verdict.HOLDS if more == len(rows) else Verdict.PARTLY if more else Verdict.FAILS
    here = "; ".join(f"{name}: {span(found, ' %')}" for name, found in shares.items())
    return Finding(verdict, f"{here}; more with common elements first in {more} of {len(rows)} rows")


def delayed_parity_reads_as_little(records: Records) -> Finding:
    cells = records["regenerating"]
    same = all(cell.value == at(cells, cell.row, "theorem 1").value for name in ("read by promotion, of all data", "(4.1), m2 - m nodes repaired")
               for cell in column(cells, name))  # fmt: skip
    symbols = [over(theirs, at(cells, theirs.row, "symbols of a node, delayed parity")) for theirs in column(cells, "symbols of a node, (4.2)")]
    verdict = Verdict.HOLDS if same and all(ratio.value > 1 for ratio in symbols) else Verdict.FAILS
    return Finding(verdict, f"promotion reads what theorem 1 and (4.1) allow; by (4.2) a node has {span(symbols)} times as many symbols, in {len(symbols)} rows")


def weighted_cost_leads(records: Records) -> Finding:
    """Table 3.6: matrices found under the weighted cost, in pairs with those that have the fewest XORs."""
    cells = [cell for cell in column(records["table-3.6"], "weighted: times as fast as XORs") if cell.doubt != "the same matrix"]
    if not cells:
        return Finding(Verdict.UNDECIDED, "the records lack these cells")
    verdicts = [compare(cell, 1) for cell in cells]
    return Finding(together(verdicts), f"{span(cells)} times as fast as the matrices with the fewest XORs, in {len(cells)} rows whose matrices differ; faster: {tally(verdicts)}")


# What "nearly the fastest" means, and the level that the lab takes for the rule's cache.
NEARLY, LEVEL = 90, "L1"


def rule_is_nearly_fastest(records: Records) -> Finding:
    cells = {level: column(records["rule-3.1"], f"speed for {level}, % of the fastest") for level in ("L1", "L2")}
    if not cells[LEVEL]:
        return Finding(Verdict.UNDECIDED, "the records lack these cells")
    verdicts = [compare(cell, NEARLY) for cell in cells[LEVEL]]
    listed = "; ".join(f"with {level}, {span(found, ' %')} of the fastest" for level, found in cells.items())
    return Finding(together(verdicts), f"{listed}, over {len(verdicts)} codes; more than {NEARLY} % with {LEVEL}: {tally(verdicts)}")


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
            said.append(f"{span(ratios)} of {name}'s speed, {number(median(ratio.value for ratio in ratios))} in the median (faster: {tally(found)})")
        return Finding(together(verdicts), "; ".join(said))

    return judge


def proposed(other: str, decide: Callable[[Cell], Verdict], words: str) -> Callable[[Records], Finding]:
    """The proposed code beside another, on vectors of 256 and 512 bits."""

    def judge(records: Records) -> Finding:
        said, verdicts = [], []
        for bits in (256, 512):
            ratios = rows_of(records["speeds-encode"], f"Jo-CRS, {bits} bits", f"{other}, {bits} bits")
            if ratios:
                found = [decide(ratio) for ratio in ratios]
                verdicts += found
                said.append(f"{span(ratios)} times as fast at {bits} bits ({words}: {tally(found)})")
        return Finding(together(verdicts), "; ".join(said))

    return judge


def on_arm(records: Records) -> Finding:
    cells = records["table-3.18"]
    ratios = rows_of(cells, "ISA-L", "Jo-CRS")
    verdicts = [compare(ratio, 2, exact=True) for ratio in ratios]
    return Finding(together(verdicts), f"counted, not timed: ISA-L's code takes {span(ratios)} times as many NEON instructions, in {len(ratios)} rows; twice as many or more: {tally(verdicts)}")


def writes_at_full_speed(records: Records) -> Finding:
    """Figure 4.7: writes by BB-DPG beside those of (k, m). A single round decides nothing."""
    ratios = []
    for cell in records["figure-4.7"]:
        rate, _, scheme = cell.column.partition(": ")
        if scheme == "BB-DPG":
            ratios.append(over(cell, at(records["figure-4.7"], cell.row, f"{rate}: (k, m)")))
    verdicts = [Verdict.UNDECIDED if ratio.doubt else within(ratio, 0.95, 1.05) for ratio in ratios]
    return Finding(together(verdicts), f"at {span(ratios)} of it, over three rates of links and {len(ratios) // 3} codes; within 5 %: {tally(verdicts)}")


CLAIMS = [
    Claim("BN saves 35 %, smart scheduling 20 %, matching 35 % of the XORs", ("table-3.1",), techniques_save),
    Claim("The parameters of both searches matter little (at most 5 %)", ("table-3.3", "table-3.4"), parameters_matter_little),
    Claim("Common elements first give better children than a random crossover (25 % against 2 %)", ("crossover",), common_elements_help),
    Claim("The genetic algorithm finds better matrices than annealing", ("table-3.5",), genetic_beats_annealing),
    Claim("Normalisation with weighted matching is the best strategy", ("natural",), one_strategy_is_best),
    Claim("The order of data (S-CO) gains 0.3 %", ("table-3.1-speed",), gains_of("S-CO")),
    Claim("Vectors (V-XOR, 256 bits) gain 70 %", ("table-3.1-speed",), gains_of("V-XOR")),
    Claim("Vectors of the compiler are slower than explicit ones (10 to 20 %)", ("loops",), compiler_is_slower),
    Claim("Matrices found under the weighted cost are the fastest", ("table-3.6",), weighted_cost_leads),
    Claim("The packet of rule (3.1) is nearly the fastest", ("rule-3.1",), rule_is_nearly_fastest),
    Claim("Vector XORs are faster than vectorised finite fields (50 to 74 % than ISA-L, 190 to 280 % than Jerasure)", ("speeds-encode", "libraries-encode"),
          beside_libraries("encode")),
    Claim("The same, decoding", ("speeds-decode", "libraries-decode"), beside_libraries("decode")),
    Claim("The proposed code is faster than CRS (15 to 35 %)", ("speeds-encode",), proposed("CRS", lambda ratio: compare(ratio, 1), "faster")),
    Claim("It is level with STAR", ("speeds-encode",), proposed("STAR", lambda ratio: within(ratio, 0.95, 1.05), "within 5 %")),
    Claim("It is slower than RDP", ("speeds-encode",), proposed("RDP", lambda ratio: below(ratio, 1), "slower")),
    Claim("On Arm the proposed code is twice as fast as ISA-L", ("table-3.18",), on_arm),
    Claim("Delayed parity reads as little as regenerating codes, with fewer symbols a node", ("regenerating",), delayed_parity_reads_as_little),
    Claim("BB-DPG takes fewer XORs and copies than DPG", ("table-4.3",), bound_groups_cost_less),
    Claim("Writes of BB-DPG over links run at the speed of (k, m)", ("figure-4.7",), writes_at_full_speed),
]  # fmt: skip
