"""What Uyeda, Xia and Chien claim (2004)."""

from statistics import mean

from .. import uyeda
from ..experiment import Cell, Records
from .judge import Claim, Finding, Verdict, below, compare, marked, number, over, span, tally, together

# Percent by which an average over random graphs may differ from theirs, which is one over ten graphs.
CLOSE = 5


def of_table(cells: list[Cell], number: str) -> list[Cell]:
    """The cells of one table of a record of several, by delta and C."""
    return [cell._replace(column=cell.column.partition(": ")[2]) for cell in cells if cell.column.partition(": ")[0] == number]


def averages_agree(records: Records) -> Finding:
    apart = {}
    for number in uyeda.BLOCKS:
        theirs = uyeda.theirs(number)
        both = [(cell.value, float(theirs[cell.place])) for cell in of_table(records["blocks"], number) if cell.place in theirs]
        apart[number] = 100 * mean(abs(ours / printed - 1) for ours, printed in both)
    verdict = Verdict.HOLDS if max(apart.values()) <= CLOSE else Verdict.PARTLY
    return Finding(verdict, f"cells differ from print by {min(apart.values()):.1f} to {max(apart.values()):.1f} % on average, by table")


def ratios_of(records: Records, number: str, other: str) -> list[Cell]:
    """The cells of one table over those of another, of averages over graphs."""
    base = {cell.place: cell for cell in of_table(records["blocks"], other)}
    return [over(cell, base[cell.place]) for cell in of_table(records["blocks"], number)]


def printed_ratios(number: str, other: str) -> list[float]:
    """The cells of one printed table over those of another."""
    base = uyeda.theirs(other)
    return [float(value) / float(base[place]) for place, value in uyeda.theirs(number).items() if place in base]


def half_of_the_xors_are_saved(records: Records) -> Finding:
    """Section VI.2: table 6 over table 5, which counts the copies to data blocks as well."""
    ratios = ratios_of(records, "6", "5")
    verdicts = [below(ratio, 0.5, exact=True) for ratio in ratios]
    printed = printed_ratios("6", "5")
    print_says = f"print: {min(printed):.2f} to {max(printed):.2f}, less than half in {sum(ratio < 0.5 for ratio in printed)} of {len(printed)}"
    return Finding(together(verdicts), f"table 6 has {span(ratios)} of the operations of table 5, which counts copies as well ({print_says}); less than half: {tally(verdicts)}")


def uniform_coverage_needs_less(records: Records) -> Finding:
    """Section VII.5: table 17 over table 15, both of graphs that are decodable."""
    ratios = ratios_of(records, "17", "15")
    verdicts = [below(ratio, 1, exact=True) for ratio in ratios]
    return Finding(together(verdicts), f"{span(ratios)} of the blocks that a coverage threshold needs; fewer: {tally(verdicts)}")


def lazy_is_faster(records: Records) -> Finding:
    greedy = {cell.place: cell for cell in of_table(records["throughput"], "3")}
    ratios = [over(lazy, greedy[lazy.place]) for lazy in of_table(records["throughput"], "4")]
    verdicts = [compare(ratio, 1) for ratio in ratios]
    theirs = printed_ratios("4", "3")
    return Finding(together(verdicts), f"{span(ratios)} times as fast with XORs of 64 bits (print, with 32: {min(theirs):.2f} to {max(theirs):.2f}); faster: {tally(verdicts)}")


def fewer_blocks_need_more(records: Records) -> Finding:
    """Section IV on k, at (0.1, 1), which needs the fewest blocks of table 1."""
    needed = [cell for cell in records["sizes"] if cell.column == "average" and cell.row.endswith("c = 0.1, delta = 1")]
    values = [cell.value for cell in needed]
    verdict = Verdict.FAILS if values == sorted(values, reverse=True) else Verdict.PARTLY
    return Finding(verdict, f"{', '.join(f'{value:.2f}' for value in values)} k blocks for {', '.join(cell.row.partition(',')[0] for cell in needed)} (C = 0.1, delta = 1)")


# What the evaluation's "nearly double" and "no more than a 30 % improvement" allow.
NEARLY_DOUBLE, LITTLE = 1.75, 1.3


def network_scales(records: Records) -> Finding:
    """Section VIII, by the model that explains table 18 best."""
    found = {cell.row: cell.value for cell in records["scaling"] if cell.column == uyeda.MODEL}
    network, xors = found["network doubled"], [found["XORs doubled"], found["XORs tripled"]]
    verdict = Verdict.HOLDS if network >= NEARLY_DOUBLE and max(xors) <= LITTLE else Verdict.PARTLY
    return Finding(verdict, f"twice the network gives {network:.2f} times the speed, XORs twice and three times as fast {xors[0]:.2f} and {xors[1]:.2f}")


def long_blocks_gain_most(records: Records) -> Finding:
    """Section VI.3: what the better XOR gains with the longest blocks, over the gain with the shortest."""
    cells = records["xor-blocks"]
    longest, shortest = cells[-1], cells[0]
    here = f"{span([longest])} times as fast with blocks of {longest.row.partition(',')[0]}, {span([shortest])} with blocks of {shortest.row.partition(',')[0]}"
    return Finding(compare(over(longest, shortest), 1), here)


def variants_are_as_printed(records: Records) -> Finding:
    """Section X: whether each variant is faster or slower than the lazy decoder of table 7, as theirs is, and needs more blocks or
    fewer."""
    cells = {cell.place: cell for cell in records["section-10"]}
    names = [row for row, column in cells if column == "theirs"]
    at = lambda column: {name: cells[name, column] for name in names}
    ours, theirs = at("speed, as a multiple of table 7"), at("theirs")
    verdicts = {name: compare(ours[name], 1) if theirs[name].value > 1 else below(ours[name], 1) for name in names if theirs[name].value != 1}
    listed = "; ".join(f"{name} {marked(ours[name])} (print {number(theirs[name].value)})" for name in verdicts)
    return Finding(together(verdicts.values()), f"speed as a multiple of table 7, C = 1.4, delta = 0.2: {listed}; as printed, faster or slower: {tally(verdicts.values())}")


def table_18_is_reached(records: Records) -> Finding:
    """The best parameters for each ratio of network to computation, if an XOR counts the two blocks that it reads."""
    found = {cell.column: cell.value for cell in records["table-18-models"] if cell.row == uyeda.MODEL}
    same = found["cells that are theirs, of 13"]
    apart = [cell.value for cell in records["table-18-chance"] if cell.column == "standard errors apart with 10 graphs"]
    chance = sum(1 for value in apart if abs(value) < 2)
    here = (f"{same:.0f} of 13 cells are theirs; their choices take {found['their choice takes longer, %, average']:.1f} % longer than ours on average; with ten "
            f"graphs, {chance} of {len(apart)} are less than two standard errors apart")  # fmt: skip
    return Finding(Verdict.HOLDS if same == 13 else Verdict.PARTLY if same or chance else Verdict.FAILS, here)


CLAIMS = [
    Claim("Averages over random graphs (tables 1, 2, 5, 6, 9, 11, 13, 15, 17)", ("blocks",), averages_agree),
    Claim("Smaller k needs relatively fewer blocks (section IV)", ("sizes",), fewer_blocks_need_more),
    Claim("Twice the network nearly doubles the system, faster XORs give at most 30 % (section VIII)", ("scaling",), network_scales),
    Claim("Lazy scheduling is faster than greedy (tables 3 and 4)", ("throughput",), lazy_is_faster),
    Claim("Better scheduling saves over half of the XORs (section VI.2)", ("blocks",), half_of_the_xors_are_saved),
    Claim("Uniform coverage needs fewer blocks than a coverage threshold (section VII.5)", ("blocks",), uniform_coverage_needs_less),
    Claim("The better XOR gains most for long blocks (section VI.3)", ("xor-blocks",), long_blocks_gain_most),
    Claim("The variants are faster or slower than the lazy decoder as printed (section X)", ("section-10",), variants_are_as_printed),
    Claim("The best parameters for each ratio of network to computation (table 18)", ("table-18-models", "table-18-chance"), table_18_is_reached),
]
